"""The runner of ``mcp`` handlers: tools of an MCP server that runs in the sandbox. Must not know how it is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ErrorType, SandboxInfo
from tamis.protocols.manifest.reading import McpTool
from tamis.protocols.observation import plain
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.calls.runner import HandlerServices, Invocation, failure
from tamis.server.runtime.observe.masking import without
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    from tamis.server.runtime.calls.running_calls import TimeHeld
    from tamis.server.runtime.handlers.mcp.session import McpSession

MAX_MESSAGE_CHARS = 2_000


MAX_WORDS = 4_000
PARTS = ("image", "audio", "resource", "resource_link")
"""The types of content that a host shows, and a model does not read."""


class Given(msgspec.Struct, frozen=True):
    """The result of `tools/call`: `output`, or with `failed` the words of the failure."""

    output: Any = None
    failed: bool = False
    words: str = ""
    parts: tuple[dict[str, Any], ...] = ()
    """What a host shows beside the words: images, sounds, resources."""


def read_result(result: dict[str, Any]) -> Given:
    """Structured content is the output as it is; else one text is the text, and anything else the list of content parts.

    Parts keep the server's own form (`{type: "image", data, mimeType}` and so on), so that nothing is lost. A failure (`isError`)
    is told in the words of its text parts.
    """
    kind = result.get("resultType")
    if kind not in (None, "complete"):
        return Given(
            failed=True,
            words=f"the server answered with '{kind}', which is not offered here: it wants input, or a task",
        )
    content = result.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else []
    texts = [text for part in parts if (text := _text_of(part)) is not None]
    shown = tuple(
        cast("dict[str, Any]", part)
        for part in parts
        if isinstance(part, dict) and cast("dict[str, Any]", part).get("type") in PARTS
    )
    if result.get("isError") is True:
        return Given(failed=True, words="\n".join(texts)[:MAX_WORDS] or "the tool failed and said nothing")
    if "structuredContent" in result and result["structuredContent"] is not None:
        return Given(output=result["structuredContent"], parts=shown)
    if len(parts) == 1 and len(texts) == 1:
        return Given(output=texts[0])
    return Given(output=parts, parts=shown)


def _text_of(part: object) -> str | None:
    if not isinstance(part, dict):
        return None
    content = cast("dict[str, Any]", part)
    text = content.get("text")
    return text if content.get("type") == "text" and isinstance(text, str) else None


class McpRunner:
    """Calls tools of MCP servers."""

    problem_type: ErrorType = "ServiceError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Why the server cannot be used."""
        handler = tool.brief.handler
        assert isinstance(handler, McpTool)
        return services.mcp.problem(handler.server)

    async def run(self, call: Invocation) -> None:
        """Calls the tool once."""
        from tamis.server.runtime.calls.model import Stopped
        from tamis.server.runtime.calls.outputs import checked_parts, take_output

        handler = call.tool.manifest.handler
        assert isinstance(handler, McpTool)
        call.result.parts = UNSET  # of an attempt before
        result = await _answer(call, handler)
        credentials = read_result(result)
        if credentials.failed:
            raise Stopped("error", failure("ServiceError", plain(credentials.words)), started=True)
        whose = f"the MCP tool '{handler.tool}'"
        # checked like an output: what is no JSON, or too much, reaches nobody
        parts = checked_parts(call, list(credentials.parts), whose) if credentials.parts else UNSET
        take_output(call, credentials.output, whose)
        call.result.parts = parts


async def _answer(call: Invocation, handler: McpTool) -> dict[str, Any]:
    """The result as the server gave it. A call that it refused for its token, and so did not begin, is made once more with another."""
    from tamis.server.runtime.calls.model import Stopped
    from tamis.server.runtime.calls.running_calls import TimeHeld, in_time, unless_cancelled
    from tamis.server.runtime.handlers.mcp.session import McpError, QuestionError
    from tamis.server.runtime.handlers.secrets import given_secrets

    servers = call.services.mcp
    time_held = TimeHeld()
    again = False
    while True:
        try:
            given = await given_secrets(call.rights, call.context, call.trail, call.result)
            running, was_there = await unless_cancelled(call.context.cancelled, servers.server(call, given))
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
                return await in_time(call, _called(call, handler, session, lines, time_held), time_held)
        except McpError as error:
            if not again and await unless_cancelled(call.context.cancelled, servers.has_another_token(call, error)):
                again = True
                continue
            text = f"the MCP server '{handler.server}' failed: {plain(str(error))[:MAX_MESSAGE_CHARS]}"
            text += await servers.ending(running)
            kind = "OutputFormatError" if isinstance(error, QuestionError) else "ServiceError"
            raise Stopped("error", failure(kind, text, text="\n".join(running.notes)), started=True) from None
        finally:
            call.result.logs = lines
            call.result.sandbox = _sandbox(call, was_there)


async def _called(
    call: Invocation, handler: McpTool, session: McpSession, lines: list[str], time_held: TimeHeld
) -> dict[str, Any]:
    from tamis.server.runtime.calls.outputs import own_line
    from tamis.server.runtime.handlers.mcp.elicitation import Questions, modes_of
    from tamis.server.runtime.handlers.mcp.session import McpError

    if session.tools_changed:
        text = (
            f"the MCP server '{handler.server}' said that its tools changed since it was started; the manifests are as they were"
            f" written, 'tamis import mcp --server {handler.server}' writes them anew"
        )
        lines.append(own_line(text))
    known = await session.tools()
    if handler.tool not in known:
        raise McpError(f"it has no tool '{handler.tool}'{hint(best(handler.tool, known))}")
    on_progress = call.context.observer.on_progress
    trace = call.context.trace

    def show(text: str) -> None:
        if on_progress is not None:
            on_progress(call.request.call_id, without(text, call.trail.secrets))

    return await session.call(
        handler.tool,
        call.args,
        {} if trace is None else trace.headers(),
        None if on_progress is None else show,
        Questions(call, handler.server, lines, time_held) if modes_of(call) else None,
    )


def _sandbox(call: Invocation, was_there: bool) -> SandboxInfo:
    from tamis.sandbox.probe import probe

    sandbox = probe(backend=call.context.settings.sandbox.backend)
    return SandboxInfo(backend=sandbox.backend, version=sandbox.version, layers=list(sandbox.layers), warm=was_there)
