"""Which tools an agent is told of: the five steps of seed 001 §5.2 (V27), kept until something changes (V28, V29).

1. every tool, 2. that says what it is, 3. that agents may call (``agentCallable``, V03), 4. that the agent's profile lets through (inventory,
``toolToggles``, ``defaultToolEnabled``, ``enabled``; V08, V10, V11, V17), 5. handed to the protocol that writes about them. The last is the caller's.
Must not know protocols' texts, or whether a tool could be run just now.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.tools.registry import Registry, Tool
from tamis.server.runtime.tools.workflows import READER, streams

MAX_KEPT = 64
TASK_STATUS = "system:task_status"
Step = Literal["metadata", "agentCallable", "profile"]
"""The step that kept a tool out."""


class LeftOut(msgspec.Struct, frozen=True):
    """A tool that the agent is not told of, and why."""

    tool: Tool
    step: Step
    reason: str


class Discovered(msgspec.Struct, frozen=True):
    """What an agent is told of, by id, and what it is not. ``off`` is why it is told of nothing at all; else empty."""

    tools: tuple[Tool, ...]
    left_out: tuple[LeftOut, ...] = ()
    off: str = ""

    def reason(self, tool: Tool) -> str:
        """Why a tool was left out; empty for one that was not."""
        return next((one.reason for one in self.left_out if one.tool.tool_id == tool.tool_id), "")


class Discovery:
    """Discoveries by protocol, agent and config. The same key gives the same object until the registry is another one."""

    def __init__(self) -> None:
        self._registry: Registry | None = None
        self._kept: dict[tuple[str, str, str], Discovered] = {}

    def find(self, registry: Registry, agent: AgentRules, protocol: str, agent_id: str = "") -> Discovered:
        """What the agent is told of in a protocol."""
        if registry is not self._registry:
            self._registry = registry
            self._kept.clear()
        key = (protocol, agent_id, config_hash(agent))
        found = self._kept.get(key)
        if found is None:
            while len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            found = self._kept[key] = discover(registry, agent)
        return found


def discover(registry: Registry, agent: AgentRules) -> Discovered:
    """The first four steps."""
    tools: list[Tool] = []
    left_out: list[LeftOut] = []
    for tool in registry.current():
        found = judged(tool, agent, registry)
        if found is None:
            tools.append(tool)
        else:
            left_out.append(found)
    return Discovered(tuple(tools), tuple(left_out), agent.off)


def judged(tool: Tool, agent: AgentRules, registry: Registry) -> LeftOut | None:
    """The first step that a tool does not pass, or None."""
    if not has_metadata(tool):
        return LeftOut(tool, "metadata", "it says neither what it does nor what it takes")
    if not tool.callable:
        said = tool.manifest.agent_callable is False
        return LeftOut(tool, "agentCallable", f"the {_source(tool)} says agentCallable: false" if said else _UNSAID)
    if not in_inventory(tool, agent, registry):
        return LeftOut(tool, "profile", "it is not in the agent's inventory")
    refusal = agent.refusal(tool.tool_id)
    return LeftOut(tool, "profile", refusal) if refusal else None


def in_inventory(tool: Tool, agent: AgentRules, registry: Registry) -> bool:
    """Whether the agent's inventory holds a tool. With an asynchronous tool it also holds the one that asks for tasks, and with a workflow
    that streams the one that reads streams: without it the agent could start what it can never see the end of."""
    if agent.lists(tool.tool_id):
        return True
    if tool.origin != "builtin" or tool.tool_id not in (TASK_STATUS, READER) or agent.profile is None:
        return False
    held = [one for name in agent.profile.inventory or () if (one := registry.get(name)) is not None]
    if tool.tool_id == TASK_STATUS:
        return any(one.manifest.execution.mode == "async" for one in held)
    return any(streams(one) for one in held)


_UNSAID = "the host did not say agentCallable: true of this method"


def _source(tool: Tool) -> str:
    return "host" if tool.origin == "host" else "manifest"


def has_metadata(tool: Tool) -> bool:
    """Whether a tool says anything that a model could go by; a method that a host registered by name alone does not (seed 001 §5.2)."""
    return bool(tool.manifest.description.strip()) or tool.manifest.parameters is not None


def config_hash(agent: AgentRules) -> str:
    """A hash of all in an agent's rules that decides about tools."""
    return hashlib.sha256(msgspec.json.encode(agent, order="sorted")).hexdigest()[:16]
