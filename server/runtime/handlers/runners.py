"""Which code runs a call: one runner for each type of handler (D60, seed 000 §7.3), loaded with the first call that needs it."""

from __future__ import annotations

import os

from tamis.protocols.manifest.reading import LANGUAGES, ExternalScript, McpTool, OtherHandler, WorkflowHandler
from tamis.server.runtime.calls.runner import Runner
from tamis.server.runtime.tools.builtin import is_script_service
from tamis.server.runtime.tools.registry import Tool


def runs_script(tool: Tool) -> bool:
    """Whether a tool's calls are runs of a script."""
    return isinstance(tool.brief.handler, ExternalScript) or is_script_service(tool.brief.handler)


Ready = set[object]
"""What of the machine was found to be there, for tools that need the same."""


def needs_of(tool: Tool) -> tuple[object, ...] | None:
    """All of a tool that decides whether this machine can run it, where that is little: the language of its script; else None."""
    handler = tool.brief.handler
    if not isinstance(handler, ExternalScript) or handler.language not in LANGUAGES:
        return None
    return handler.language, handler.entry_point is None, os.path.splitext(handler.script_path)[1]


def runner_of(tool: Tool) -> Runner:
    """The runner of a tool's calls."""
    if runs_script(tool):
        from tamis.server.runtime.handlers.script.runner import ScriptRunner

        return ScriptRunner()
    handler = tool.brief.handler
    if isinstance(handler, WorkflowHandler):
        from tamis.server.runtime.handlers.workflow.runner import runner_for

        return runner_for(tool, handler)
    if isinstance(handler, McpTool):
        from tamis.server.runtime.handlers.mcp.runner import McpRunner

        return McpRunner()
    if isinstance(handler, OtherHandler):
        from tamis.server.runtime.handlers.plugins import PluginRunner

        return PluginRunner()
    from tamis.server.runtime.handlers.service.runner import ServiceRunner

    return ServiceRunner()
