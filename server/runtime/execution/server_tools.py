"""What an MCP server of the settings offers (``tools/list``), asked of the server itself: it is started in the sandbox as for a call.

The same policy, question and rights hold as for a call of one of its tools. Must not know framing or faces.
"""

from __future__ import annotations

from typing import Any

from tamis.protocols.manifest.reading import Manifest, McpTool
from tamis.server.runtime.calls.model import CallContext, CallRequest, Stopped
from tamis.server.runtime.calls.prepared import Prepared
from tamis.server.runtime.calls.runner import Invocation, empty_result, failure
from tamis.server.runtime.execution.approving import approved
from tamis.server.runtime.execution.pipeline import check_runner, execute
from tamis.server.runtime.execution.preparing import check_allowed, ready_to_run
from tamis.server.runtime.handlers.mcp.session import McpError
from tamis.server.runtime.handlers.secrets import given_secrets
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.tools.registry import Tool

CALL_ID = "list"


async def server_tools(server: str, context: CallContext) -> list[dict[str, Any]]:
    """The definitions that a server lists, as it gives them. Raises ``Stopped`` with what kept it from doing so."""
    manifest = Manifest(
        tool_id=f"mcp-server:{server}",
        display_name=server,
        description="Lists the tools of this MCP server.",
        version="0.0.0",
        handler=McpTool(server, ""),
    )
    tool = Tool(manifest, str(context.root / "tamis.toml"))
    request = CallRequest(call_id=CALL_ID, name=manifest.tool_id)
    trail = Trail(None, None, str(context.root), CALL_ID)
    result = empty_result(CALL_ID, manifest.tool_id)
    check_runner(tool, context)

    def ready_again(_arguments: dict[str, Any]) -> Prepared:
        return ready_to_run(tool, {}, (), context, trail)

    ready = ready_again({})
    check_allowed(tool, ready.rights, context)
    ready = await approved(request, ready, context, trail, result, ready_again)
    call = Invocation(
        request=request,
        tool=tool,
        args={},
        target=None,
        rights=ready.rights,
        context=context,
        trail=trail,
        result=result,
        contents=ready.contents,
        run_call=execute,
    )
    servers = context.services.handlers.mcp
    running, _ = await servers.server(call, await given_secrets(call.rights, context, trail, result))
    assert running.session is not None
    try:
        async with servers.using(running, []):
            return list((await running.session.tools()).values())
    except McpError as error:
        text = f"the MCP server '{server}' did not list its tools: {error}"
        raise Stopped("error", failure("ServiceError", text, text="\n".join(running.notes)), started=True) from None
