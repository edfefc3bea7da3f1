"""``workspace/executeCommand`` and ``workspace/textDocumentContent``: running, and what came of it; how its progress is cancelled. And
``experimental/discoverTest``, ``runTest`` and ``abortRunTest``: the same in an editor's test explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.server.lsp.structs import WorkDoneProgressCancelParams
from tamis.server.lsp.verb import Verb
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.server.lsp.envelope import MessageId
    from tamis.server.lsp.running.commands import Commands
    from tamis.server.lsp.running.tool_methods import ToolMethods
    from tamis.server.lsp.session import Session

COMMANDS = (
    "tamis.run",
    "tamis.dryRun",
    "tamis.runExample",
    "tamis.testExamples",
    "tamis.previewPrompt",
    "tamis.convert",
    "tamis.copyAs",
    "tamis.cancel",
    "tamis.rerunLast",
    "tamis.showResult",
    "tamis.clearResults",
    "tamis.showReferences",
    "tamis.approve",
    "tamis.explain",
)
SCHEMES = ("tamis-result", "tamis-prompt")
_FINISH = frozenset({"tamis.run", "tamis.dryRun", "tamis.runExample", "tamis.testExamples", "tamis.rerunLast"})
"""Commands that give their normal result when they are cancelled, with what did not end as ``cancelled``."""


async def execute_command(session: Session, params: types.ExecuteCommandParams, identity: MessageId) -> Any:
    """What a command gave."""
    import asyncio  # not at start

    cancel = asyncio.Event()
    if params.command in _FINISH:
        loop = asyncio.get_running_loop()

        def finish() -> None:
            loop.call_soon_threadsafe(cancel.set)

        session.finishing[identity] = finish
    try:
        return await commands_of(session).execute(params.command, params.arguments, params.work_done_token, cancel)
    finally:
        session.finishing.pop(identity, None)


def content(session: Session, params: types.TextDocumentContentParams) -> dict[str, str]:
    """A document of ours."""
    text = commands_of(session).documents.get(params.uri)
    if text is None:
        raise RpcError(INVALID_PARAMS, f"No document '{params.uri}' is kept")
    return {"text": text}


def cancel_progress(session: Session, params: WorkDoneProgressCancelParams) -> None:
    """What a progress tells of is to end."""
    session.cancel_progress(params.token)


def discover_tests(session: Session, params: Any) -> Any:
    """The tests of a document or a folder."""
    return commands_of(session).tests.discover(params)


async def run_tests(session: Session, params: Any) -> None:
    """Begins a run of tests, which is told of as it goes on."""
    commands_of(session).tests.run(params)


def abort_tests(session: Session, _params: object) -> None:
    """Ends the tests that run."""
    session.abort_tests()


def commands_of(session: Session) -> Commands:
    """The session's commands; what runs calls is loaded with the first of them. Only on the framework lane."""
    framework = session.framework.built
    if framework.commands is None:
        from tamis.server.lsp.client import Client
        from tamis.server.lsp.running.commands import Commands
        from tamis.server.lsp.running.runs import VirtualDocuments

        client = Client(session, framework)
        framework.commands = Commands(session, client, session.runs, VirtualDocuments(), COMMANDS)
    return framework.commands


def tool_methods_of(session: Session) -> ToolMethods:
    """The session's tool methods; what serves them is loaded with the first. Only on the framework lane."""
    framework = session.framework.built
    if framework.tool_methods is None:
        from tamis.server.lsp.client import Client
        from tamis.server.lsp.running.tool_methods import ToolMethods

        framework.tool_methods = ToolMethods(session, Client(session, framework), commands_of(session).runner)
    return framework.tool_methods


def _content_capability(session: Session) -> dict[str, Any]:
    if not session.can("workspace.textDocumentContent"):
        return {}
    return {"workspace": {"textDocumentContent": {"schemes": list(SCHEMES)}}}


REQUESTS = (
    Verb(
        method="workspace/executeCommand",
        params="ExecuteCommandParams",
        handler=execute_command,
        schedule="background",
        capability={"executeCommandProvider": {"commands": list(COMMANDS), "workDoneProgress": True}},
        gets_id=True,
    ),
    Verb(
        method="workspace/textDocumentContent",
        params="TextDocumentContentParams",
        handler=content,
        schedule="snapshot",
        capability=_content_capability,
    ),
    Verb(method="experimental/discoverTest", params=Any, handler=discover_tests, schedule="snapshot"),
    Verb(method="experimental/runTest", params=Any, handler=run_tests, schedule="background"),
)
NOTIFICATIONS = (
    Verb(
        method="window/workDoneProgress/cancel",
        params=WorkDoneProgressCancelParams,
        handler=cancel_progress,
        schedule="now",
    ),
    Verb(method="experimental/abortRunTest", params=object, handler=abort_tests, schedule="now"),
)
