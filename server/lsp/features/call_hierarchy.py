"""``textDocument/prepareCallHierarchy``, ``callHierarchy/incomingCalls`` and ``outgoingCalls``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from tamis.server.analysis.navigation.hierarchy import Caller, callers_at, incoming, outgoing
from tamis.server.lsp.documents import path_of
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked, offset_of

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.session import Session

_FILE, _FUNCTION = 1, 12


def register(server: LanguageServer, session: Session) -> None:
    """Registers the three verbs."""

    def prepare(params: types.CallHierarchyPrepareParams) -> list[dict[str, Any]]:
        found = asked(session, params.text_document.uri)
        if found is None:
            return []
        document, snapshot = found
        places = Elsewhere(session, snapshot)
        return [_item(places, one) for one in callers_at(snapshot, offset_of(document, params.position))]

    def incoming_calls(params: types.CallHierarchyIncomingCallsParams) -> list[dict[str, Any]]:
        session.workspace.settle()
        places = Elsewhere(session)
        return [
            {
                "from": _item(places, edge.other),
                "fromRanges": [places.range(edge.other.path, span) for span in edge.spans],
            }
            for edge in incoming(session.workspace.index, path_of(params.item.uri) or params.item.uri, params.item.name)
        ]

    def outgoing_calls(params: types.CallHierarchyOutgoingCallsParams) -> list[dict[str, Any]]:
        session.workspace.settle()
        places = Elsewhere(session)
        path = path_of(params.item.uri) or params.item.uri
        return [
            {"to": _item(places, edge.other), "fromRanges": [places.range(path, span) for span in edge.spans]}
            for edge in outgoing(session.workspace.index, path)
        ]

    server.feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)(prepare)
    server.feature(types.CALL_HIERARCHY_INCOMING_CALLS)(incoming_calls)
    server.feature(types.CALL_HIERARCHY_OUTGOING_CALLS)(outgoing_calls)


def _item(places: Elsewhere, caller: Caller) -> dict[str, Any]:
    span = places.range(caller.path, caller.span)
    made: dict[str, Any] = {
        "name": caller.name,
        "kind": _FUNCTION if caller.tool_id else _FILE,
        "uri": places.uri(caller.path),
        "range": span,
        "selectionRange": span,
    }
    return {**made, "detail": caller.detail} if caller.detail else made
