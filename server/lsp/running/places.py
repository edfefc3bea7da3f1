"""What a command of the editor is about: its arguments, and the place that they name in a document.

The text is named by URI and range, and proven by the digest or the text of that range, or by the document's version. Anything else there
now: ``ContentModified`` (-32801). Must not know commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from tamis.server.analysis.running.runnables import Target, TargetKind, digest_of, target_at, targets
from tamis.server.lsp.documents import Document
from tamis.server.lsp.structs import Range
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session

CONTENT_MODIFIED = -32801


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What commands take; each uses what it needs (docs/editors/commands.md)."""

    uri: str = ""
    version: int | None = None
    range: Range | None = None
    digest: str | None = None
    text: str | None = None
    show: bool = True
    """Whether the outcome is shown by us, as a document or a message; false for clients that show it themselves."""
    example: int | None = None
    to: str | None = None
    protocol: str | None = None
    lossy: bool = False
    tool_id: str = ""
    run: int | None = None
    approval_id: str = ""
    option_id: str = ""
    reason: str = ""


class Place(msgspec.Struct, frozen=True):
    """A document as it was shown, and the target of a command in it."""

    document: Document
    snapshot: Snapshot
    target: Target


def read_arguments(command: str, arguments: object) -> Arguments:
    """A command's one object. Raises ``RpcError`` (-32602) that names what is wrong."""
    given = cast("list[object]", arguments) if isinstance(arguments, list | tuple) else []
    if len(given) > 1:
        raise RpcError(INVALID_PARAMS, f"{command} takes one object, not {len(given)} arguments")
    try:
        return msgspec.convert(given[0] if given else {}, Arguments)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"Arguments of {command}: {error}") from None


def find_place(session: Session, arguments: Arguments, *kinds: TargetKind) -> Place:
    """What the arguments are about. Raises ``RpcError``: -32602 when they say too little, -32801 when the text is another one now."""
    document = session.documents.get(arguments.uri)
    if document is None:
        said = f"'{arguments.uri}' is not open" if arguments.uri else "give the 'uri' of an open document"
        raise RpcError(INVALID_PARAMS, f"{said}; commands work on open documents")
    snapshot = session.workspace.snapshot(document, wait=0.5)
    if arguments.range is None and arguments.example is None and "manifest" not in kinds:
        raise RpcError(INVALID_PARAMS, "give the 'range' of the call")
    shown = (0, len(document.text)) if arguments.range is None else _span(document, arguments.range)
    _check_shown(document, arguments, document.text[shown[0] : shown[1]])
    if arguments.example is not None:
        found = next((one for one in targets(snapshot) if one.example == arguments.example), None)
    else:
        chosen = [target_at(snapshot, shown, kind) for kind in kinds]
        fitting = [one for one in chosen if one is not None]
        exact = [one for one in fitting if one.span == shown]
        found = min(exact or fitting, key=lambda one: one.span[1] - one.span[0], default=None)
    if found is None or found.kind not in kinds:
        raise RpcError(INVALID_PARAMS, f"There is no {' or '.join(kinds)} at this place")
    return Place(document, snapshot, found)


def _span(document: Document, found: Range) -> tuple[int, int]:
    lines, encoding = document.lines, document.encoding
    start = lines.offset(found.start.line, found.start.character, encoding)
    return start, max(start, lines.offset(found.end.line, found.end.character, encoding))


def _check_shown(document: Document, given: Arguments, here: str) -> None:
    """Ruling of the mission: exactly the text that was shown is run."""
    if given.text is None and given.digest is None and given.version is None:
        raise RpcError(INVALID_PARAMS, "say which text was shown: by 'digest', 'text' or 'version'")
    same = (
        given.text == here
        if given.text is not None
        else given.digest == digest_of(here)
        if given.digest is not None
        else given.version == document.version
    )
    if not same:
        raise RpcError(CONTENT_MODIFIED, "The text at this place is another one now; nothing was done")
