"""``workspace/executeCommand`` and ``workspace/textDocumentContent``: running, and what came of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from tamis.server.lsp.command_names import COMMANDS
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError, encode_error

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

    from tamis.server.lsp.envelope import MessageId
    from tamis.server.lsp.framework import TamisProtocol
    from tamis.server.lsp.running.commands import Commands
    from tamis.server.lsp.running.tool_methods import ToolMethods
    from tamis.server.lsp.session import Session

_FINISH = frozenset({"tamis.run", "tamis.dryRun", "tamis.runExample", "tamis.testExamples", "tamis.rerunLast"})
"""Commands that give their normal result when they are cancelled, with what did not end as ``cancelled``."""


def register(server: LanguageServer, session: Session) -> None:
    """Registers the verbs."""
    protocol = cast("TamisProtocol", server.protocol)

    async def execute_command(params: types.ExecuteCommandParams) -> Any:
        identity = protocol.msg_id
        cancel = asyncio.Event()
        if params.command in _FINISH and identity is not None:
            loop = asyncio.get_running_loop()

            def finish() -> None:
                loop.call_soon_threadsafe(cancel.set)

            session.finishing[identity] = finish
        try:
            return await commands_of(session, protocol).execute(
                params.command, params.arguments, params.work_done_token, cancel
            )
        except RpcError as error:
            refuse(session, protocol, identity, error)
            return None
        finally:
            if identity is not None:
                session.finishing.pop(identity, None)

    def content(params: types.TextDocumentContentParams) -> dict[str, str] | None:
        text = commands_of(session, protocol).documents.get(params.uri)
        if text is not None:
            return {"text": text}
        refuse(session, protocol, protocol.msg_id, RpcError(INVALID_PARAMS, f"No document '{params.uri}' is kept"))
        return None

    # pygls' own handler knows one function per command, which its cancellation does not reach.
    cast("Any", protocol.fm).builtin_features.pop(types.WORKSPACE_EXECUTE_COMMAND, None)
    options = types.ExecuteCommandOptions(commands=list(COMMANDS))
    server.feature(types.WORKSPACE_EXECUTE_COMMAND, options)(execute_command)
    server.feature(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)(content)


def refuse(session: Session, protocol: TamisProtocol, identity: MessageId | None, error: RpcError) -> None:
    """Answers a request with an error; what its handler gives afterwards is dropped. pygls would write a traceback of every refusal."""
    if identity is not None and session.pending.take(identity) is not None:
        protocol.write(encode_error(identity, error))


def commands_of(session: Session, protocol: TamisProtocol) -> Commands:
    """The session's commands; what runs calls is loaded with the first of them."""
    if protocol.commands is None:
        from tamis.server.lsp.client import Client
        from tamis.server.lsp.running.commands import Commands
        from tamis.server.lsp.running.virtual import VirtualDocuments

        protocol.commands = Commands(session, Client(session, protocol), session.runs, VirtualDocuments())
    return protocol.commands


def tool_methods_of(session: Session, protocol: TamisProtocol) -> ToolMethods:
    """The session's tool methods; what serves them is loaded with the first."""
    if protocol.tool_methods is None:
        from tamis.server.lsp.client import Client
        from tamis.server.lsp.running.tool_methods import ToolMethods

        client = Client(session, protocol)
        protocol.tool_methods = ToolMethods(session, client, commands_of(session, protocol).runner)
    return protocol.tool_methods
