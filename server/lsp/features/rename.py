"""``textDocument/prepareRename``, ``textDocument/rename`` and ``workspace/willRenameFiles``.

A rename that cannot be proven is refused with a response error that says why; clients show its message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.documents import path_of, uri_of
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, all_read, asked, looked_again, offset_of
from tamis.server.wire.jsonrpc import RpcError

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.navigation.reverse import Memory
    from tamis.server.analysis.navigation.spelled import RenameEdit
    from tamis.server.lsp.session import Session

PATIENCE = 5.0
"""How long a rename waits for the folders to be read, in seconds: one that misses a file would break it."""
_TRIES = 3
_REQUEST_FAILED = -32803
_WARNING = 2
_CLOSED, _ASIDE, _LOST = "closed", "aside", "lost"
_ANNOTATIONS = {
    _CLOSED: {
        "label": "Files that are not open",
        "description": "The edits reach files that no editor shows",
        "needsConfirmation": True,
    },
    _ASIDE: {
        "label": "Examples and reasoning",
        "description": "The calls are quoted and would not run",
        "needsConfirmation": True,
    },
}
"""By kind; an edit that renaming back would not undo has one of its own (``_LOST`` with a number), which says so."""
MAX_NOTES = 3
MOVED = (
    {"scheme": "file", "pattern": {"glob": "**/*.{py,js,mjs,cjs,ts,mts,cts,tsx,jsx}", "matches": "file"}},
    {"scheme": "file", "pattern": {"glob": "**/*.{json,jsonc}", "matches": "file"}},
    {"scheme": "file", "pattern": {"glob": "**/*", "matches": "folder"}},
)
"""The files and folders whose renames are asked about: scripts, manifests, workflows and what holds them."""


class Renames:
    """What was renamed in a session, so that renaming back gives the same bytes."""

    def __init__(self, _session: Session) -> None:
        from tamis.server.analysis.navigation.reverse import Memory

        self.memory: Memory = Memory()


def prepare_rename(session: Session, params: types.PrepareRenameParams) -> dict[str, Any] | None:
    """What a rename at a position would rename."""
    from tamis.server.analysis.navigation.rename import prepare
    from tamis.server.analysis.navigation.spelled import RenameRefusedError

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return None
    document, snapshot = opened
    try:
        what = prepare(snapshot, offset_of(document, params.position), files=_renames_files(session))
    except RenameRefusedError as refused:
        raise RpcError(_REQUEST_FAILED, str(refused)) from None
    return {"range": Elsewhere(session, snapshot).range(snapshot.path, what.span), "placeholder": what.name}


def do_rename(session: Session, params: types.RenameParams) -> dict[str, Any] | None:
    """The edits of a rename."""
    from tamis.server.analysis.navigation.rename import left_in, moved_workflow, remembered, rename
    from tamis.server.analysis.navigation.spelled import RenameRefusedError

    memory = session.state(Renames).memory
    if not all_read(session, PATIENCE):
        raise RpcError(_REQUEST_FAILED, "The folders are still being read; try again in a moment")
    for _ in range(_TRIES):
        opened = asked(session, params.text_document.uri)
        if opened is None:
            return None
        document, snapshot = opened
        offset = offset_of(document, params.position)
        try:
            edits = rename(snapshot, offset, params.new_name, files=_renames_files(session), memory=memory)
            done = remembered(snapshot, offset, params.new_name, edits)
        except RenameRefusedError as refused:
            raise RpcError(_REQUEST_FAILED, str(refused)) from None
        if not looked_again(session, (edit.path for edit in edits)):
            places = Elsewhere(session, snapshot)
            answer = workspace_edit(session, places, edits)
            move = moved_workflow(snapshot, offset, params.new_name)
            if move is not None and edits:
                answer["documentChanges"].append(
                    {"kind": "rename", "oldUri": places.uri(move[0]), "newUri": uri_of(move[1])}
                )
            if done is not None:
                memory.keep(done)
            if left := left_in(snapshot, offset, edits):
                warn(session, left)
            if not annotates(session):
                for note in list(dict.fromkeys(edit.lost for edit in edits if edit.lost))[:MAX_NOTES]:
                    warn(session, note)
            return answer
    raise RpcError(_REQUEST_FAILED, "Files of the workspace are changing; try again in a moment")


def warn(session: Session, text: str) -> None:
    """Tells the user something that they did not ask for: as a message, or in the log where they want none."""
    if session.workspace.client.shows("warning"):
        session.notify("window/showMessage", {"type": _WARNING, "message": text})
    else:
        session.log(text, _WARNING)


def will_rename_files(session: Session, params: types.RenameFilesParams) -> dict[str, Any] | None:
    """The edits that keep what names the files true."""
    from tamis.server.analysis.navigation.spelled import edits_of_moves

    moves: list[tuple[str, str]] = []
    for file in params.files:
        old, new = path_of(file.old_uri), path_of(file.new_uri)
        if old is not None and new is not None:
            moves.append((old.rstrip("/"), new.rstrip("/")))
    all_read(session, PATIENCE)
    session.workspace.settle()
    roots = [root.path for root in session.workspace.roots]
    edits, notes = edits_of_moves(session.workspace.index, moves, roots)
    if looked_again(session, (edit.path for edit in edits)):
        edits, notes = edits_of_moves(session.workspace.index, moves, roots)
    for note in notes[:5]:
        warn(session, note)
    return workspace_edit(session, Elsewhere(session), edits) if edits else None


def _renames_files(session: Session) -> bool:
    """Whether the client renames files as part of a workspace edit."""
    able: Any = session.capability("workspace.workspaceEdit.resourceOperations")
    return session.can("workspace.workspaceEdit.documentChanges") and isinstance(able, list) and "rename" in able


def annotates(session: Session) -> bool:
    """Whether the client shows annotations of changes."""
    able = session.can("workspace.workspaceEdit.documentChanges")
    return able and session.capability("workspace.workspaceEdit.changeAnnotationSupport") is not None


def workspace_edit(session: Session, places: Elsewhere, edits: Sequence[RenameEdit]) -> dict[str, Any]:
    """The edits as the client takes them: bound to versions and with annotations where it knows them."""
    from tamis.server.analysis.navigation.spelled import in_files

    versioned = session.can("workspace.workspaceEdit.documentChanges")
    annotated = annotates(session)
    used: dict[str, Any] = {}
    operations: list[dict[str, Any]] = []
    changes: dict[str, list[dict[str, Any]]] = {}
    for path, mine in in_files(edits).items():
        document = places.document(path)
        file_edits: list[dict[str, Any]] = []
        for rename_edit in mine:
            edit = {
                "range": places.range(path, (rename_edit.edit.start, rename_edit.edit.end)),
                "newText": rename_edit.edit.new_text,
            }
            kind = _CLOSED if document is None else _ASIDE if rename_edit.aside else None
            if annotated and rename_edit.lost:
                edit["annotationId"] = _annotation(used, rename_edit.lost)
            elif annotated and kind is not None:
                used[kind] = _ANNOTATIONS[kind]
                edit["annotationId"] = kind
            file_edits.append(edit)
        uri = places.uri(path)
        changes[uri] = file_edits
        version = document.version if document is not None else None
        operations.append({"textDocument": {"uri": uri, "version": version}, "edits": file_edits})
    if not versioned:
        return {"changes": changes}
    answer: dict[str, Any] = {"documentChanges": operations}
    if used:
        answer["changeAnnotations"] = used
    return answer


def _annotation(used: dict[str, Any], lost: str) -> str:
    """The id of the annotation that says what renaming back would leave."""
    for name, known in used.items():
        if name.startswith(_LOST) and known["description"] == lost:
            return name
    name = f"{_LOST}{len(used)}"
    used[name] = {"label": "Not undone by renaming back", "description": lost, "needsConfirmation": True}
    return name


def _capability(session: Session) -> dict[str, Any]:
    prepares = session.can("textDocument.rename.prepareSupport")
    return {"renameProvider": {"prepareProvider": True} if prepares else True}


def _files_capability(session: Session) -> dict[str, Any]:
    if not session.can("workspace.fileOperations.willRename"):
        return {}
    return {"workspace": {"fileOperations": {"willRename": {"filters": list(MOVED)}}}}


REQUESTS = (
    Verb(
        method="textDocument/prepareRename",
        params="PrepareRenameParams",
        handler=prepare_rename,
        schedule="snapshot",
    ),
    Verb(
        method="textDocument/rename",
        params="RenameParams",
        handler=do_rename,
        schedule="snapshot",
        capability=_capability,
    ),
    Verb(
        method="workspace/willRenameFiles",
        params="RenameFilesParams",
        handler=will_rename_files,
        schedule="snapshot",
        capability=_files_capability,
    ),
)
