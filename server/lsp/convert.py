"""Answers of the analyses as LSP objects, for the verbs of the framework lane: plain data in the protocol's own names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.protocols.model import Edit, Fix
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.lsp.documents import Document, uri_of
from tamis.server.lsp.structs import Diagnostic

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.actions.refactorings import Refactoring
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session


def to_range(document: Document, span: tuple[int, int]) -> dict[str, Any]:
    """A span as a range."""
    return _range(document.lines, span, document.encoding)


def to_span(document: Document, place: types.Range) -> tuple[int, int]:
    """A range as a span."""
    offset = document.lines.offset
    return (
        offset(place.start.line, place.start.character, document.encoding),
        offset(place.end.line, place.end.character, document.encoding),
    )


def to_edits(document: Document, edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    """Edits of one document."""
    return [{"range": to_range(document, (edit.start, edit.end)), "newText": edit.new_text} for edit in edits]


def to_workspace_edit(document: Document, edits: tuple[Edit, ...], *, versioned: bool) -> dict[str, Any]:
    """Edits of one document as a workspace edit, bound to its version for clients that check it."""
    changes = to_edits(document, edits)
    if versioned:
        identifier = {"uri": document.uri, "version": document.version}
        return {"documentChanges": [{"textDocument": identifier, "edits": changes}]}
    return {"changes": {document.uri: changes}}


def to_changes(session: Session, document: Document, snapshot: Snapshot, item: Refactoring) -> dict[str, Any] | None:
    """A refactoring as a workspace edit; None where this client cannot carry it out, or a file's text is not known."""
    versioned = session.can("workspace.workspaceEdit.documentChanges")
    creates = "create" in (session.capability("workspace.workspaceEdit.resourceOperations") or ())
    if any(change.create for change in item.changes):
        if not creates:
            return None
        # Operations have no other place; Neovim 0.11 offers them without a word on ``documentChanges``.
        versioned = True
    changes: dict[str, list[dict[str, Any]]] = {}
    operations: list[dict[str, Any]] = []
    for change in item.changes:
        uri = uri_of(change.path) if change.path and change.path != document.path else document.uri
        if change.create:
            operations.append({"kind": "create", "uri": uri, "options": {"ignoreIfExists": False}})
            start = {"line": 0, "character": 0}
            edits = [{"range": {"start": start, "end": start}, "newText": change.text}]
            version = None
        else:
            other = session.documents.get(uri)
            text = other.text if other is not None else None
            if other is None and snapshot.index is not None and snapshot.index.knows(change.path):
                text = snapshot.index.text(change.path)
            if text is None:
                return None
            lines = LineIndex(text)
            edits = [
                {"range": _range(lines, (edit.start, edit.end), document.encoding), "newText": edit.new_text}
                for edit in change.edits
            ]
            version = other.version if other is not None else None
        changes.setdefault(uri, []).extend(edits)
        operations.append({"textDocument": {"uri": uri, "version": version}, "edits": edits})
    if versioned:
        return {"documentChanges": operations}
    return {"changes": changes}


def _range(lines: LineIndex, span: tuple[int, int], encoding: PositionEncoding) -> dict[str, Any]:
    start, end = (lines.position(offset, encoding) for offset in span)
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def to_diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as it was published, for the quick fix that belongs to it."""
    members: dict[str, Any] = {"range": msgspec.to_builtins(diagnostic.range), "message": diagnostic.message}
    for name in ("severity", "code", "source"):
        value = getattr(diagnostic, name)
        if value is not msgspec.UNSET and value is not None:
            members[name] = value
    return members


def to_quick_fix(
    document: Document, fix: Fix, diagnostic: Diagnostic, *, versioned: bool, preferred: bool
) -> dict[str, Any]:
    """A fix as a code action."""
    quick_fix: dict[str, Any] = {
        "title": fix.title,
        "kind": "quickfix",
        "diagnostics": [to_diagnostic(diagnostic)],
        "edit": to_workspace_edit(document, fix.edits, versioned=versioned),
    }
    if preferred:
        quick_fix["isPreferred"] = True
    return quick_fix


def markup(markdown: str, formats: Any) -> dict[str, str]:
    """Markdown in the first format that a client prefers; one that names none gets plain text."""
    from tamis.server.analysis.describe import plain_text

    offered = cast("list[Any]", formats) if isinstance(formats, list) else []
    first = next((name for name in offered if name in ("markdown", "plaintext")), "plaintext")
    if first == "markdown":
        return {"kind": "markdown", "value": markdown}
    return {"kind": "plaintext", "value": plain_text(markdown)}
