"""The runner of ``mcp`` handlers: tools of an MCP server that runs in the sandbox. Must not know how it is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.protocols.contract import ErrorType, SandboxInfo
from tamis.protocols.manifest.reading import McpTool
from tamis.protocols.observation import plain
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.calls.dispatch import Invocation
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.registry.registry import Tool

if TYPE_CHECKING:
    from tamis.server.runtime.mcp.session import McpSession

MAX_MESSAGE_CHARS = 2_000


class McpRunner:
    """Calls tools of MCP servers."""

    problem_type: ErrorType = "ServiceError"

    def problem(self, tool: Tool, parts: Parts) -> str:
        """Why the server cannot be used."""
        handler = tool.manifest.handler
        assert isinstance(handler, McpTool)
        return parts.mcp.problem(handler.server)

    async def run(self, call: Invocation) -> None:
        """Calls the tool once."""
        from tamis.server.runtime.calls.model import Stopped
        from tamis.server.runtime.calls.outputs import take_output
        from tamis.server.runtime.calls.retries import unless_cancelled
        from tamis.server.runtime.calls.timing import in_time
        from tamis.server.runtime.mcp.results import read_result
        from tamis.server.runtime.mcp.session import McpError

        handler = call.tool.manifest.handler
        assert isinstance(handler, McpTool)
        servers = call.around.parts.mcp
        try:
            running, was_there = await unless_cancelled(call.around.cancelled, servers.server(call))
        except Stopped as stop:
            if stop.status == "cancelled":
                raise Stopped("cancelled") from None  # the call itself was not begun
            raise
        session = running.session
        assert session is not None
        lines: list[str] = []
        call.trail.note("mcp.called", server=handler.server, tool=handler.tool)
        try:
            async with servers.using(running, lines):
                result = await in_time(call, _called(call, handler, session))
        except McpError as error:
            text = f"the MCP server '{handler.server}' failed: {plain(str(error))[:MAX_MESSAGE_CHARS]}"
            text += await servers.ending(running)
            raise Stopped("error", failure("ServiceError", text, text="\n".join(running.notes)), started=True) from None
        finally:
            call.result.logs = lines
            call.result.sandbox = _sandbox(call, was_there)
        given = read_result(result)
        if given.failed:
            raise Stopped("error", failure("ServiceError", plain(given.words)), started=True)
        take_output(call, given.output, f"the MCP tool '{handler.tool}'")


async def _called(call: Invocation, handler: McpTool, session: McpSession) -> dict[str, Any]:
    from tamis.server.runtime.mcp.session import McpError

    known = await session.tools()
    if handler.tool not in known:
        raise McpError(f"it has no tool '{handler.tool}'{hint(best(handler.tool, known))}")
    on_progress = call.around.on_progress
    trace = call.around.trace

    def show(text: str) -> None:
        if on_progress is not None:
            on_progress(call.request.call_id, text)

    return await session.call(
        handler.tool, call.args, {} if trace is None else trace.headers(), None if on_progress is None else show
    )


def _sandbox(call: Invocation, was_there: bool) -> SandboxInfo:
    from tamis.sandbox.probe import probe

    found = probe(backend=call.around.settings.sandbox.backend)
    return SandboxInfo(backend=found.backend, version=found.version, layers=list(found.layers), warm=was_there)
