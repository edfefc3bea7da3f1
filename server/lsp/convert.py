"""Answers of the analyses as lsprotocol types, for the verbs of the framework lane. The only module that builds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from tamis.protocols.model import Edit, Fix
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.lsp.documents import Document, uri_of
from tamis.server.lsp.structs import Diagnostic

if TYPE_CHECKING:
    from tamis.server.analysis.actions.refactorings import Refactoring
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session


def to_range(document: Document, span: tuple[int, int]) -> types.Range:
    """A span as a range."""
    found = document.range(span)
    return types.Range(
        types.Position(found.start.line, found.start.character), types.Position(found.end.line, found.end.character)
    )


def to_span(document: Document, found: types.Range) -> tuple[int, int]:
    """A range as a span."""
    offset = document.lines.offset
    return (
        offset(found.start.line, found.start.character, document.encoding),
        offset(found.end.line, found.end.character, document.encoding),
    )


def to_edits(document: Document, edits: tuple[Edit, ...]) -> list[types.TextEdit | types.AnnotatedTextEdit]:
    """Edits of one document."""
    return [types.TextEdit(to_range(document, (edit.start, edit.end)), edit.new_text) for edit in edits]


def to_workspace_edit(document: Document, edits: tuple[Edit, ...], *, versioned: bool) -> types.WorkspaceEdit:
    """Edits of one document as a workspace edit, bound to its version for clients that check it."""
    changes = to_edits(document, edits)
    if versioned:
        identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [*changes])])
    return types.WorkspaceEdit(changes={document.uri: [edit for edit in changes if isinstance(edit, types.TextEdit)]})


def to_changes(
    session: Session, document: Document, snapshot: Snapshot, item: Refactoring
) -> types.WorkspaceEdit | None:
    """A refactoring as a workspace edit; None where this client cannot carry it out, or a file's text is not known."""
    versioned = session.can("workspace.workspaceEdit.documentChanges")
    creates = "create" in (session.capability("workspace.workspaceEdit.resourceOperations") or ())
    if any(change.create for change in item.changes):
        if not creates:
            return None
        # Operations have no other place; Neovim 0.11 offers them without a word on ``documentChanges``.
        versioned = True
    changes: dict[str, list[types.TextEdit]] = {}
    operations: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
    for change in item.changes:
        uri = uri_of(change.path) if change.path and change.path != document.path else document.uri
        if change.create:
            operations.append(types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=False)))
            start = types.Range(types.Position(0, 0), types.Position(0, 0))
            edits = [types.TextEdit(start, change.text)]
            version = None
        else:
            other = session.documents.get(uri)
            text = other.text if other is not None else None
            if other is None and snapshot.index is not None and snapshot.index.knows(change.path):
                text = snapshot.index.text(change.path)
            if text is None:
                return None
            edits = [
                types.TextEdit(_range(LineIndex(text), (edit.start, edit.end), document.encoding), edit.new_text)
                for edit in change.edits
            ]
            version = other.version if other is not None else None
        changes.setdefault(uri, []).extend(edits)
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri, version)
        operations.append(types.TextDocumentEdit(identifier, [*edits]))
    if versioned:
        return types.WorkspaceEdit(document_changes=operations)
    return types.WorkspaceEdit(changes=changes)


def _range(lines: LineIndex, span: tuple[int, int], encoding: PositionEncoding) -> types.Range:
    start, end = (lines.position(offset, encoding) for offset in span)
    return types.Range(types.Position(*start), types.Position(*end))


def to_diagnostic(found: Diagnostic) -> types.Diagnostic:
    """A diagnostic as it was published, for the quick fix that belongs to it."""
    start, end = found.range.start, found.range.end
    return types.Diagnostic(
        types.Range(types.Position(start.line, start.character), types.Position(end.line, end.character)),
        found.message,
        severity=types.DiagnosticSeverity(found.severity) if isinstance(found.severity, int) else None,
        code=found.code if isinstance(found.code, str) else None,
        source=found.source if isinstance(found.source, str) else None,
    )


def to_quick_fix(
    document: Document, fix: Fix, diagnostic: Diagnostic, *, versioned: bool, preferred: bool
) -> types.CodeAction:
    """A fix as a code action."""
    return types.CodeAction(
        title=fix.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[to_diagnostic(diagnostic)],
        is_preferred=preferred or None,
        edit=to_workspace_edit(document, fix.edits, versioned=versioned),
    )
