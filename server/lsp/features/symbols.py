"""``textDocument/documentSymbol``, ``workspace/symbol`` and ``workspaceSymbol/resolve``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tamis.server.lsp.documents import path_of
from tamis.server.lsp.verb import Verb
from tamis.server.lsp.workspace.elsewhere import Elsewhere, asked

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.analysis.navigation.symbols import Symbol
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session

_KINDS = {
    "tool": 12,  # Function
    "handler": 6,  # Method
    "group": 19,  # Object
    "parameter": 7,  # Property
    "definition": 23,  # Struct
    "example": 24,  # Event
    "field": 15,  # String
    "block": 3,  # Namespace
    "call": 12,  # Function
    "argument": 13,  # Variable
    "name": 14,  # Constant
}
_FUNCTION, _STRUCT, _CLASS = 12, 23, 5
_FIRST_KINDS = 18
"""What every client knows: File to Array."""


def document_symbol(session: Session, params: types.DocumentSymbolParams) -> list[dict[str, Any]]:
    """The outline of a document."""
    from tamis.server.analysis.navigation.symbols import outline

    opened = asked(session, params.text_document.uri)
    if opened is None:
        return []
    document, snapshot = opened
    places = Elsewhere(session, snapshot)
    symbols = outline(snapshot)
    where = "textDocument.documentSymbol"
    if session.can(f"{where}.hierarchicalDocumentSymbolSupport"):
        return [_nested(session, places, snapshot, symbol) for symbol in symbols]
    flat: list[dict[str, Any]] = []
    stack = [(symbol, "") for symbol in reversed(symbols)]
    while stack:
        symbol, container = stack.pop()
        entry: dict[str, Any] = {
            "name": symbol.name,
            "kind": _kind_of(session, symbol.kind, where),
            "location": {"uri": document.uri, "range": places.range(snapshot.path, symbol.span)},
        }
        if container:
            entry["containerName"] = container
        flat.append(entry)
        stack += [(child, symbol.name) for child in reversed(symbol.children)]
    return flat


def _nested(session: Session, places: Elsewhere, snapshot: Snapshot, symbol: Symbol) -> dict[str, Any]:
    members: dict[str, Any] = {
        "name": symbol.name,
        "kind": _kind_of(session, symbol.kind, "textDocument.documentSymbol"),
        "range": places.range(snapshot.path, symbol.span),
        "selectionRange": places.range(snapshot.path, symbol.selection),
    }
    if symbol.detail:
        members["detail"] = symbol.detail
    if symbol.children:
        members["children"] = [_nested(session, places, snapshot, child) for child in symbol.children]
    return members


def _kind_of(session: Session, kind: str, where: str) -> int:
    number = _KINDS[kind]
    known = session.capability(f"{where}.symbolKind.valueSet")
    allowed = number in known if isinstance(known, list) else number <= _FIRST_KINDS
    return number if allowed else _CLASS


def workspace_symbol(session: Session, params: types.WorkspaceSymbolParams) -> list[dict[str, Any]]:
    """The tools of the folders that a query finds."""
    from tamis.server.analysis.navigation.symbols import find_tools

    for root in session.workspace.roots:
        root.loaded.wait(0.5)
    session.workspace.settle()
    places = Elsewhere(session)
    resolved = session.capability("workspace.symbol.resolveSupport.properties")
    lazily = isinstance(resolved, list) and "location.range" in resolved
    workspace_symbol: list[dict[str, Any]] = []
    for tool in find_tools(session.workspace.index, params.query):
        path, span = tool.tool.path, tool.tool.declared.span
        entry: dict[str, Any] = {
            "name": tool.name,
            "kind": _kind_of(session, "tool", "workspace.symbol"),
            "location": {"uri": places.uri(path)} if lazily else places.location(path, span),
        }
        if tool.container:
            entry["containerName"] = tool.container
        if lazily:
            entry["data"] = {"toolId": tool.tool.tool_id}
        workspace_symbol.append(entry)
    return workspace_symbol


def resolve(session: Session, symbol: types.WorkspaceSymbol) -> types.WorkspaceSymbol | dict[str, Any]:
    """A tool with its place in its file."""
    data: Any = symbol.data
    path = path_of(symbol.location.uri)
    session.workspace.settle()
    tool_id: Any = cast("dict[str, Any]", data).get("toolId") if isinstance(data, dict) else getattr(data, "toolId", "")
    for tool in session.workspace.index.declarations(str(tool_id)):
        if tool.path == path:
            location = Elsewhere(session).location(tool.path, tool.declared.span)
            fields: dict[str, Any] = {"name": symbol.name, "kind": symbol.kind.value, "location": location}
            return {**fields, "containerName": symbol.container_name} if symbol.container_name else fields
    return symbol


REQUESTS = (
    Verb(
        method="textDocument/documentSymbol",
        params="DocumentSymbolParams",
        handler=document_symbol,
        schedule="snapshot",
        capability={"documentSymbolProvider": {"label": "Tamis"}},
    ),
    Verb(
        method="workspace/symbol",
        params="WorkspaceSymbolParams",
        handler=workspace_symbol,
        schedule="snapshot",
        capability={"workspaceSymbolProvider": {"resolveProvider": True}},
    ),
    Verb(method="workspaceSymbol/resolve", params="WorkspaceSymbol", handler=resolve, schedule="snapshot"),
)
