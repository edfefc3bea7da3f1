"""Handler types of installed packages, found by entry point (group ``tamis.handlers``) when a tool names one that the operator allows.

Such code runs in the daemon, outside of every sandbox, so nothing is loaded that the setting ``handlers`` does not name. What is wrong
with a package is a sentence about the tools that need it; while it runs, whatever it raises is the failure of one call.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, cast

from msgspec import UNSET

from tamis.protocols.contract import ErrorType
from tamis.protocols.manifest.reading import OtherHandler
from tamis.protocols.observation import plain
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.calls.handlers import HANDLER_API, HandlerCall, HandlerError, HandlerPlugin
from tamis.server.runtime.calls.runner import HandlerServices, Invocation
from tamis.server.runtime.settings.installed import bring, fault, names, words
from tamis.server.runtime.tools.registry import Tool

GROUP = "tamis.handlers"
NO_FOLDER = "/dev/null"
"""For a tool that stands in no folder: nothing can be below it, where an empty text would lead to the working directory."""
MAX_LOG_LINES = 500
MAX_LOG_CHARS = 2_000
_LOADED: dict[str, HandlerPlugin | str] = {}
"""By type: what a package brings, or why it cannot be used. An installation does not change while a process runs."""


class PluginRunner:
    """Runs the calls of handler types that are not built in."""

    problem_type: ErrorType = "DependencyError"

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Why the handler cannot be used."""
        handler = tool.brief.handler
        assert isinstance(handler, OtherHandler)
        if handler.type not in services.settings.handlers:
            return f"the handler type '{handler.type}' is not allowed: `handlers` in tamis.toml has to name it"
        plugin = load_handler(handler.type)
        if isinstance(plugin, str):
            return plugin
        try:
            problem = cast("object", plugin.problem(dict(handler.fields)))
        except Exception as error:
            return f"the handler '{handler.type}' failed when it was asked about the tool: {words(error)}"
        return plain(problem) if isinstance(problem, str) else ""

    async def run(self, call: Invocation) -> None:
        """Runs the handler once."""
        from tamis.server.runtime.calls.outputs import failed, take_output
        from tamis.server.runtime.calls.running_calls import in_time

        handler = call.tool.manifest.handler
        assert isinstance(handler, OtherHandler)
        plugin = load_handler(handler.type)
        if isinstance(plugin, str):
            raise failed("DependencyError", plugin)
        call.result.output, call.result.error = UNSET, UNSET
        output = await in_time(call, _guarded(plugin, call, handler))
        take_output(call, output, f"the handler '{handler.type}'")


def load_handler(name: str) -> HandlerPlugin | str:
    """What an installed package brings under a name, or why nothing can be used; looked for once."""
    if name not in _LOADED:
        _LOADED[name] = _load(name)
    return _LOADED[name]


def _load(name: str) -> HandlerPlugin | str:
    brought = bring(GROUP, name, "the handler type")
    if brought is None:
        known = names(GROUP)
        listed = f"; installed are {', '.join(known)}" if known else ""
        return f"no installed package brings the handler type '{name}'{hint(best(name, known)) or listed}"
    if isinstance(brought, str):
        return brought
    try:
        wrong = fault(brought.plugin, HANDLER_API, "type", name, ("problem", "run"))
    except Exception as error:
        wrong = words(error)
    return f"{brought.where} cannot be used: {wrong}" if wrong else cast("HandlerPlugin", brought.plugin)


async def _guarded(plugin: HandlerPlugin, call: Invocation, handler: OtherHandler) -> Any:
    """The handler's output. Who stops waiting for it is let go at once, whatever the handler does about being cancelled."""
    task = asyncio.ensure_future(_run(plugin, call, handler))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        # what it still raises is nobody's
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise


async def _run(plugin: HandlerPlugin, call: Invocation, handler: OtherHandler) -> Any:
    from tamis.server.runtime.calls.outputs import failed

    handler_call = _given(call, handler)
    try:
        if inspect.iscoroutinefunction(plugin.run):
            return await plugin.run(handler_call)
        thread = await asyncio.to_thread(plugin.run, handler_call)
        return await thread if inspect.isawaitable(thread) else thread
    except HandlerError as error:
        details = plain(error.details)[:MAX_LOG_CHARS]
        raise failed(
            "ServiceError", plain(error.message)[:MAX_LOG_CHARS] or "the handler failed", text=details
        ) from None
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        # also SystemExit: no package ends the daemon
        raise failed("ServiceError", f"the handler '{handler.type}' failed: {words(error)}") from None


def _given(call: Invocation, handler: OtherHandler) -> HandlerCall:
    from tamis.server.runtime.calls.outputs import told_apart

    rights, caller, result = call.rights, call.context.caller, call.result

    def log(text: str) -> None:
        if len(result.logs) < MAX_LOG_LINES:
            result.logs.append(f"stderr: {told_apart(plain(str(text)))[:MAX_LOG_CHARS]}")
        else:
            result.logs_truncated = True

    return HandlerCall(
        tool_id=call.tool.tool_id,
        version=call.tool.manifest.version,
        call_id=call.request.call_id,
        args=call.args,
        handler=dict(handler.fields),
        folder=call.tool.folder or NO_FOLDER,
        timeout_ms=call.timeout_ms,
        hosts=rights.hosts,
        read=rights.read,
        write=tuple(folder.path for folder in (*rights.write, *rights.own_write)),
        session_id=caller.session_id,
        agent_id=caller.agent_id,
        log=log,
    )
