"""The daemon's description of itself (``rpc.discover``). A thin face; holds no rules of its own."""

from __future__ import annotations

from tamis.protocols.contract import OpenRpcDocument
from tamis.server.rpc.aside import aside
from tamis.server.rpc.params import Empty, Group, Host
from tamis.server.rpc.session import Request


def methods(host: Host) -> Group:
    """The methods of this group."""
    kept: OpenRpcDocument | None = None

    async def discover(_request: Request, _params: Empty) -> OpenRpcDocument:
        """Gives the OpenRPC document of this daemon; needs neither trust nor tools."""
        # What writes descriptions is loaded with the first one: most sessions need none.
        from tamis.server.rpc.described.openrpc import document

        nonlocal kept
        if kept is None:
            kept = await aside(lambda: document(host.declared))
        return kept

    return {"rpc.discover": (Empty, discover)}
