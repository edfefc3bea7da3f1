"""``experimental/discoverTest`` and ``experimental/runTest``: examples in an editor's test explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tamis.server.lsp.features.execute_command import commands_of, refuse
from tamis.server.wire.jsonrpc import RpcError

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.framework import TamisProtocol
    from tamis.server.lsp.session import Session


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verbs."""
    protocol = cast("TamisProtocol", server.protocol)

    def discover(params: Any) -> Any:
        try:
            return commands_of(session, protocol).tests.discover(params)
        except RpcError as error:
            refuse(session, protocol, protocol.msg_id, error)
            return None

    async def run(params: Any) -> None:
        identity = protocol.msg_id
        try:
            commands_of(session, protocol).tests.run(params)
        except RpcError as error:
            refuse(session, protocol, identity, error)

    server.feature("experimental/discoverTest")(discover)
    server.feature("experimental/runTest")(run)
