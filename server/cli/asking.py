"""What a command asks a person on the terminal before it runs anything: for trust, for grants. Holds no rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.cli.outputs import warn, write_note, write_question

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.registry import Tool


def ask_for_trust(root: Path, *, stdin_is_text: bool = False) -> None:
    """On a terminal asks once whether a folder that wants more than it may set by itself is trusted; the answer is recorded."""
    if stdin_is_text or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    from tamis.server.runtime.settings.loading import load_settings

    if load_settings(root).not_in_force:
        from tamis.server.cli.trust_command import offer

        offer(root)


def ask_for_grants(runtime: Runtime, called: Iterable[Tool | None], *, may_ask: bool) -> None:
    """On a terminal asks once whether the tools of a folder that is not trusted get what the operator's configuration grants.

    ``called``: the tools that the command would call first. What a workflow calls is any tool of the folder. Without a terminal, what a call
    gets is told when it gets it.
    """
    runtime.gate.tell_by(warn)
    if not may_ask or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    from tamis.server.runtime.policy.preview import grant_of
    from tamis.server.runtime.policy.strangers import told

    tools = [tool for tool in called if tool is not None]
    if any(tool.origin == "workflow" for tool in tools):
        tools = runtime.registry.tools
    stands = [_with_its_rights(tool, runtime) for tool in tools]
    got = tuple(
        dict.fromkeys(
            gain
            for tool in stands
            for gain in runtime.gate.asked_of(tool, grant_of(tool, runtime.registry, runtime.settings, runtime.root))
        )
    )
    if not got:
        return
    write_note(told(runtime.loaded, got))
    write_question("Run with these? [y] yes  [n] no, run without them (default): ")
    answer = sys.stdin.readline().strip().lower()
    runtime.gate.allowed = frozenset(got) if answer in ("y", "yes") else frozenset()


def _with_its_rights(tool: Tool, runtime: Runtime) -> Tool:
    """The tool, or the server whose rights it has."""
    from tamis.protocols.manifest.reading import McpTool

    handler = tool.manifest.handler
    return (runtime.parts.mcp.stand_in(handler.server) or tool) if isinstance(handler, McpTool) else tool
