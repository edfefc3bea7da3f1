"""LSP shapes of the hot methods as msgspec Structs: lifecycle, document sync, diagnostics, completion.

These methods are served before and without pygls, whose types cost 300 ms to import; every other verb uses lsprotocol
(``framework.py``). Field names are LSP's. Must not hold behaviour.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType


class Lsp(msgspec.Struct, rename="camel", omit_defaults=True):
    """Base: camelCase names, defaults left out."""


class Position(msgspec.Struct):
    """Zero-based line and character, in the negotiated encoding."""

    line: int
    character: int


class Range(msgspec.Struct):
    """Half open."""

    start: Position
    end: Position


class WorkspaceFolder(Lsp):
    """A folder that the client has open."""

    uri: str
    name: str = ""


class ClientInfo(Lsp):
    """What the client is called."""

    name: str = ""


class InitializeParams(Lsp):
    """Of ``initialize``; capabilities stay a dict, they are looked up, not modelled."""

    capabilities: dict[str, Any]
    process_id: int | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: list[WorkspaceFolder] | None = None
    initialization_options: Any = None
    locale: str | None = None
    client_info: ClientInfo | None = None
    trace: str | None = None


class TextDocumentItem(Lsp):
    """A document as the client opens it."""

    uri: str
    language_id: str
    version: int
    text: str


class TextDocumentIdentifier(Lsp):
    """A document by its URI."""

    uri: str


class VersionedTextDocumentIdentifier(Lsp):
    """A document at a version."""

    uri: str
    version: int | None = None


class DidOpenParams(Lsp):
    """Of ``textDocument/didOpen``."""

    text_document: TextDocumentItem


class ContentChange(Lsp):
    """One change; without a range the whole text."""

    text: str
    range: Range | None = None


class DidChangeParams(Lsp):
    """Of ``textDocument/didChange``."""

    text_document: VersionedTextDocumentIdentifier
    content_changes: list[ContentChange]


class DocumentParams(Lsp):
    """Of ``textDocument/didClose`` and ``didSave``."""

    text_document: TextDocumentIdentifier


class FileEvent(Lsp):
    """A file that changed on disk (1 created, 2 changed, 3 deleted)."""

    uri: str
    type: int


class DidChangeWatchedFilesParams(Lsp):
    """Of ``workspace/didChangeWatchedFiles``."""

    changes: list[FileEvent]


class FileUri(Lsp):
    """A file that was created or deleted in the editor."""

    uri: str


class FilesParams(Lsp):
    """Of ``workspace/didCreateFiles`` and ``didDeleteFiles``."""

    files: list[FileUri]


class FileRename(Lsp):
    """A file that was renamed in the editor."""

    old_uri: str
    new_uri: str


class RenamedFilesParams(Lsp):
    """Of ``workspace/didRenameFiles``."""

    files: list[FileRename]


class SetTraceParams(Lsp):
    """Of ``$/setTrace``."""

    value: str


class DidChangeConfigurationParams(Lsp):
    """Of ``workspace/didChangeConfiguration``."""

    settings: Any = None


class FoldersEvent(Lsp):
    """What changed in the list of folders."""

    added: list[WorkspaceFolder] = []
    removed: list[WorkspaceFolder] = []


class DidChangeFoldersParams(Lsp):
    """Of ``workspace/didChangeWorkspaceFolders``."""

    event: FoldersEvent


class DocumentDiagnosticParams(Lsp):
    """Of ``textDocument/diagnostic``."""

    text_document: TextDocumentIdentifier
    previous_result_id: str | None = None


class PreviousResultId(Lsp):
    """What a client has of a document already."""

    uri: str
    value: str


class WorkspaceDiagnosticParams(Lsp):
    """Of ``workspace/diagnostic``."""

    previous_result_ids: list[PreviousResultId]
    partial_result_token: int | str | None = None


_Unsigned = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class AskedPosition(Position):
    """A position in a request: unlike one in an edit, which is taken as well as it goes, it is refused when it is none."""

    line: _Unsigned
    character: _Unsigned


class CompletionParams(Lsp):
    """Of ``textDocument/completion``."""

    text_document: TextDocumentIdentifier
    position: AskedPosition


class WorkDoneProgressCancelParams(Lsp):
    """Of ``window/workDoneProgress/cancel``."""

    token: int | str


class CancelParams(Lsp):
    """Of ``$/cancelRequest``."""

    id: int | str


class Location(Lsp):
    """A range in a document."""

    uri: str
    range: Range


class RelatedInformation(Lsp):
    """Another place that belongs to a diagnostic."""

    location: Location
    message: str


class CodeDescription(Lsp):
    """Where a code is explained."""

    href: str


class Diagnostic(Lsp):
    """A finding; ``severity`` 1 error, 2 warning, 3 information, 4 hint; ``tags`` 1 unnecessary, 2 deprecated."""

    range: Range
    message: str
    severity: int | UnsetType = UNSET
    code: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    code_description: CodeDescription | UnsetType = UNSET
    tags: list[int] | UnsetType = UNSET
    related_information: list[RelatedInformation] | UnsetType = UNSET
    data: Any = UNSET


class PublishDiagnosticsParams(Lsp):
    """Of ``textDocument/publishDiagnostics``."""

    uri: str
    diagnostics: list[Diagnostic]
    version: int | UnsetType = UNSET


class FullReport(msgspec.Struct, rename="camel"):
    """A document's diagnostics in full; ``related_documents`` are other documents' by URI."""

    kind: Literal["full"]
    result_id: str
    items: list[Diagnostic]
    related_documents: dict[str, FullReport | UnchangedReport] | UnsetType = UNSET


class UnchangedReport(msgspec.Struct, rename="camel"):
    """The diagnostics of ``previousResultId`` still hold."""

    kind: Literal["unchanged"]
    result_id: str
    related_documents: dict[str, FullReport | UnchangedReport] | UnsetType = UNSET


class WorkspaceFullReport(msgspec.Struct, rename="camel"):
    """A file's diagnostics in full; ``version`` of an open document, else None."""

    uri: str
    version: int | None
    kind: Literal["full"]
    result_id: str
    items: list[Diagnostic]


class WorkspaceUnchangedReport(msgspec.Struct, rename="camel"):
    """What the client has of a file still holds."""

    uri: str
    version: int | None
    kind: Literal["unchanged"]
    result_id: str


class TextEdit(Lsp):
    """An edit."""

    range: Range
    new_text: str


class MarkupContent(Lsp):
    """Markdown or plain text."""

    kind: str
    value: str


class InsertReplaceEdit(Lsp):
    """An edit that either goes on before what stands behind the cursor (``insert``) or replaces it (``replace``)."""

    new_text: str
    insert: Range
    replace: Range


class LabelDetails(Lsp):
    """What stands beside a proposal's label."""

    detail: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class CompletionItem(Lsp):
    """A proposal; ``insert_text_format`` 1 plain, 2 snippet; ``text_edit_text`` goes with the list's ``edit_range``."""

    label: str
    label_details: LabelDetails | UnsetType = UNSET
    kind: int | UnsetType = UNSET
    tags: list[int] | UnsetType = UNSET
    deprecated: bool | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    documentation: MarkupContent | UnsetType = UNSET
    preselect: bool | UnsetType = UNSET
    sort_text: str | UnsetType = UNSET
    filter_text: str | UnsetType = UNSET
    insert_text_format: int | UnsetType = UNSET
    insert_text_mode: int | UnsetType = UNSET
    text_edit: TextEdit | InsertReplaceEdit | UnsetType = UNSET
    text_edit_text: str | UnsetType = UNSET
    additional_text_edits: list[TextEdit] | UnsetType = UNSET
    data: Any = UNSET


class ItemDefaults(Lsp):
    """What holds for every item of a list that does not say otherwise."""

    edit_range: Range | UnsetType = UNSET
    insert_text_format: int | UnsetType = UNSET


class CompletionList(msgspec.Struct, rename="camel", omit_defaults=True):
    """Proposals; ``is_incomplete`` only when the list was cut."""

    is_incomplete: bool
    items: list[CompletionItem]
    item_defaults: ItemDefaults | UnsetType = UNSET
