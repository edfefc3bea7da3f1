"""``textDocument/prepareCallHierarchy``, ``callHierarchy/incomingCalls`` and ``outgoingCalls``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.documents import path_of
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.navigation.references import Caller
    from tamis.server.lsp.session import Session

_FILE, _FUNCTION = 1, 12


def prepare(session: Session, params: types.CallHierarchyPrepareParams) -> list[dict[str, Any]]:
    """The callers at a position."""
    from tamis.server.analysis.navigation.references import callers_at

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return []
    document, snapshot = opened
    places = Elsewhere(session, snapshot)
    return [_item(places, caller) for caller in callers_at(snapshot, offset_of(document, params.position))]


def incoming_calls(session: Session, params: types.CallHierarchyIncomingCallsParams) -> list[dict[str, Any]]:
    """Who calls it."""
    from tamis.server.analysis.navigation.references import incoming

    session.workspace.settle()
    places = Elsewhere(session)
    path = path_of(params.item.uri) or params.item.uri
    return [
        {
            "from": _item(places, edge.other),
            "fromRanges": [places.range(edge.other.path, span) for span in edge.spans],
        }
        for edge in incoming(session.workspace.index, path, params.item.name)
    ]


def outgoing_calls(session: Session, params: types.CallHierarchyOutgoingCallsParams) -> list[dict[str, Any]]:
    """What it calls."""
    from tamis.server.analysis.navigation.references import outgoing

    session.workspace.settle()
    places = Elsewhere(session)
    path = path_of(params.item.uri) or params.item.uri
    return [
        {"to": _item(places, edge.other), "fromRanges": [places.range(path, span) for span in edge.spans]}
        for edge in outgoing(session.workspace.index, path)
    ]


def _item(places: Elsewhere, caller: Caller) -> dict[str, Any]:
    span = places.range(caller.path, caller.span)
    members: dict[str, Any] = {
        "name": caller.name,
        "kind": _FUNCTION if caller.tool_id else _FILE,
        "uri": places.uri(caller.path),
        "range": span,
        "selectionRange": span,
    }
    return {**members, "detail": caller.detail} if caller.detail else members


REQUESTS = (
    Verb(
        method="textDocument/prepareCallHierarchy",
        params="CallHierarchyPrepareParams",
        handler=prepare,
        schedule="snapshot",
        capability={"callHierarchyProvider": True},
    ),
    Verb(
        method="callHierarchy/incomingCalls",
        params="CallHierarchyIncomingCallsParams",
        handler=incoming_calls,
        schedule="snapshot",
    ),
    Verb(
        method="callHierarchy/outgoingCalls",
        params="CallHierarchyOutgoingCallsParams",
        handler=outgoing_calls,
        schedule="snapshot",
    ),
)
