"""Lists of tools: which fit a filter, in which order, in pages that stay right while tools come and go.

Without a query the order is that of ids, newest version first; with one it is that of the search. A cursor says after which tool the next page
begins, so a tool that is new or gone moves nothing else. Must not know what is shown of a tool.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.tools.builtin import READER
from tamis.server.runtime.tools.registry import Registry, Tool
from tamis.server.runtime.tools.versions import Key, version_key

MAX_CURSOR_CHARS = 2_048


class ToolFilter(msgspec.Struct, rename="camel"):
    """Which tools to list; every given part must fit."""

    tags: list[str] = []
    """All of these."""
    namespace: str | None = None
    """What stands before the first colon of the id; empty: ids without one."""
    query: str | None = None
    """Words that are looked for in ids, names, tags, descriptions and parameters; the best come first."""
    callable: bool | None = None
    """Only tools that may be called, or only those that may not."""


class WrongCursorError(ValueError):
    """A cursor that no earlier page of the same list gave."""


class _Cursor(msgspec.Struct, array_like=True):
    filter: str
    score: int
    tool_id: str
    version: str


class Page(msgspec.Struct):
    """Tools of one page, and the cursor of the next, if there is one."""

    tools: list[Tool]
    next: str | None = None


def page(
    registry: Registry,
    wanted: ToolFilter,
    callable_now: Callable[[Tool], bool],
    *,
    cursor: str | None = None,
    limit: int,
) -> Page:
    """One page of the tools that fit. Raises ``WrongCursorError``."""
    after = None if cursor is None else _read(cursor, wanted)
    ranking = ranked(registry, wanted, callable_now)
    if after is not None:
        last = _place(after.score, after.tool_id, after.version)
        ranking = [entry for entry in ranking if _place(entry[0], entry[1].tool_id, entry[1].version) > last]
    shown = ranking[:limit]
    more = None
    if len(ranking) > limit:
        score, tool = shown[-1]
        more = _written(_Cursor(_digest(wanted), score, tool.tool_id, tool.version))
    return Page([tool for _, tool in shown], more)


def ranked(registry: Registry, wanted: ToolFilter, callable_now: Callable[[Tool], bool]) -> Sequence[tuple[int, Tool]]:
    """The tools that fit with their scores, best first."""
    query = (wanted.query or "").strip()
    ranking = registry.search.ranked(query) if query else [(0, tool) for tool in registry.tools]
    tags = set(wanted.tags)
    return [
        (score, tool)
        for score, tool in ranking
        if (wanted.namespace is None or tool.namespace == wanted.namespace)
        and (not tags or tags.issubset(tool.brief.tags))
        and (wanted.callable is None or callable_now(tool) == wanted.callable)
    ]


class _Descending:
    """A key that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Key, str]) -> None:
        self.key = key

    def __lt__(self, other: _Descending) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def _place(score: int, tool_id: str, version: str) -> tuple[int, str, _Descending]:
    return -score, tool_id, _Descending((version_key(version), version))


def _digest(wanted: ToolFilter) -> str:
    return hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()[:8]


def _written(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _read(text: str, wanted: ToolFilter) -> _Cursor:
    try:
        if len(text) > MAX_CURSOR_CHARS:
            raise WrongCursorError
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        cursor = msgspec.json.decode(raw, type=_Cursor)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise WrongCursorError("not a cursor of an earlier answer") from None
    if cursor.filter != _digest(wanted):
        raise WrongCursorError("the cursor of a list with another filter")
    return cursor


# Which tools an agent is told of: the five steps of seed 001 §5.2 (V27), kept until something changes (V28, V29). 1. every tool, 2. that says what it
# is, 3. that agents may call (``agentCallable``, V03), 4. that the agent's profile lets through (inventory, ``toolToggles``, ``defaultToolEnabled``,
# ``enabled``; V08, V10, V11, V17), 5. handed to the protocol that writes about them. The last is the caller's.


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
        return next((left_out.reason for left_out in self.left_out if left_out.tool.tool_id == tool.tool_id), "")


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
        discovery = self._kept.get(key)
        if discovery is None:
            while len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            discovery = self._kept[key] = discover(registry, agent)
        return discovery


def discover(registry: Registry, agent: AgentRules) -> Discovered:
    """The first four steps."""
    tools: list[Tool] = []
    left_out: list[LeftOut] = []
    for tool in registry.current():
        omission = judged(tool, agent, registry)
        if omission is None:
            tools.append(tool)
        else:
            left_out.append(omission)
    return Discovered(tuple(tools), tuple(left_out), agent.off)


def judged(tool: Tool, agent: AgentRules, registry: Registry) -> LeftOut | None:
    """The first step that a tool does not pass, or None."""
    if not has_metadata(tool):
        return LeftOut(tool, "metadata", "it says neither what it does nor what it takes")
    if not tool.callable:
        is_explicit = tool.brief.agent_callable is False
        return LeftOut(
            tool, "agentCallable", f"the {_source(tool)} says agentCallable: false" if is_explicit else _UNSAID
        )
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
    tools = [listed_tool for name in agent.profile.inventory or () if (listed_tool := registry.get(name)) is not None]
    if tool.tool_id == TASK_STATUS:
        return any(tool.manifest.execution.mode == "async" for tool in tools)
    from tamis.server.runtime.tools.workflows import streams

    return any(streams(tool) for tool in tools)


_UNSAID = "the host did not say agentCallable: true of this method"


def _source(tool: Tool) -> str:
    return "host" if tool.origin == "host" else "manifest"


def has_metadata(tool: Tool) -> bool:
    """Whether a tool says anything that a model could go by; a method that a host registered by name alone does not (seed 001 §5.2)."""
    return bool(tool.brief.description.strip()) or tool.manifest.parameters is not None


def config_hash(agent: AgentRules) -> str:
    """A hash of all in an agent's rules that decides about tools."""
    return hashlib.sha256(msgspec.json.encode(agent, order="sorted")).hexdigest()[:16]
