"""``prompt/generate``: the tools that may be called now, as the text that tells a model about them.

Which tools there are is decided here (registry, agent profile, ruling 42; the five steps of seed 001 §5.2); how they are described is
``protocols/prompt``'s matter. Results are kept until the registry or the profile changes (V28, V29). Must not know framing.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.base import CallProtocol, Example, PromptTool, Shape, Style
from tamis.protocols.contract import PromptResult, PromptTokens
from tamis.protocols.manifest.reading import ExternalScript
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.plugins import ALWAYS, extras_of, find_protocol, known_protocols
from tamis.protocols.prompt.assemble import (
    MACRO,
    TOOLS_MACRO,
    Pieces,
    PromptTooLargeError,
    PromptWish,
    build_prompt,
    fill,
)
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.handlers.runners import Ready
from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.settings.protocols import load_protocol
from tamis.server.runtime.texts.token_counts import count_tokens
from tamis.server.runtime.tools.listing import ToolFilter, config_hash, judged, ranked
from tamis.server.runtime.tools.registry import Registry, Tool

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime

MAX_KEPT = 64
_PORTABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What ``prompt/generate`` is asked for. Without ``protocol`` the profile's, else the configured default is taken."""

    protocol: str | None = None
    shape: Shape = "tag"
    tool_ids: tuple[str, ...] | None = None
    filter: ToolFilter | None = None
    style: Style = "full"
    few_shot: int = 0
    instructions: bool = True
    template: str | None = None
    max_tokens: int | None = None
    agent_id: str = ""
    """Whose prompt it is, where the host tells agents apart; else the configured profile's."""


class PromptError(ValueError):
    """The request names what there is not: a protocol or a tool."""


class Prompts:
    """Generates prompts and keeps them; one for each face. Any thread may ask; one prompt is made at a time."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._pieces: Pieces = {}
        self._kept: dict[bytes, PromptResult] = {}
        self._state: tuple[object, object, object] = (None, None, None)
        self._hash = b""

    def generate(self, runtime: Runtime, request: PromptRequest) -> PromptResult:
        """The prompt; the same object for the same request until tools, profile or settings change.

        Raises ``PromptError``, and ``PromptTooLargeError`` when ``max_tokens`` cannot be kept.
        """
        with self._turn:
            return self._generated(runtime, request)

    def _generated(self, runtime: Runtime, request: PromptRequest) -> PromptResult:
        self._refresh(runtime)
        own = config_hash(runtime.agent_for(request.agent_id)).encode() if request.agent_id else b""
        key = self._hash + own + msgspec.json.encode(request)
        kept = self._kept.get(key)
        if kept is None:
            kept = _generate(runtime, request, self._pieces)
            while len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = kept
        return kept

    def _refresh(self, runtime: Runtime) -> None:
        state = (runtime.registry, runtime.agent, runtime.settings)
        if all(current is other for current, other in zip(state, self._state, strict=True)):
            return
        self._state = state
        content = [runtime.registry.etag(), runtime.agent, runtime.settings]
        digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).digest()
        if digest != self._hash:
            self._hash = digest
            self._kept.clear()


def shown_tools(runtime: Runtime, request: PromptRequest) -> tuple[CallProtocol, list[PromptTool], list[str]]:
    """The protocol, the tools that a model may be told about, and what was left out. Raises ``PromptError``."""
    protocol = _protocol(runtime, request.protocol, runtime.agent_for(request.agent_id))
    notes: list[str] = []
    tools = [
        prompt_tool(tool, protocol.id, request.shape, runtime.registry)
        for tool in _tools(runtime, request, protocol.id, notes)
    ]
    return protocol, tools, notes


def _generate(runtime: Runtime, request: PromptRequest, pieces: Pieces) -> PromptResult:
    protocol, tools, notes = shown_tools(runtime, request)
    template = request.template
    wish = PromptWish(
        style=request.style,
        shape=request.shape,
        few_shot=request.few_shot,
        instructions=request.instructions,
        max_tokens=request.max_tokens,
    )
    try:
        prompt = build_prompt(
            protocol,
            tools,
            wish,
            wrap=lambda text: text if template is None else fill(template, text)[0],
            count=lambda text: count_tokens(text)[0],
            pieces=pieces,
        )
    except PromptTooLargeError:
        raise
    except Exception as error:
        # Only a plug-in's own code can fail here: that is a sentence, never the end of the daemon.
        if protocol.id in ALWAYS:
            raise
        raise PromptError(f"protocol '{protocol.id}' cannot write a prompt: {type(error).__name__}: {error}") from error
    if template is not None and fill(template, "")[1] == 0:
        notes.append(f"the template has no {MACRO}, so it is unchanged")
    if request.shape not in extras_of(protocol.id).shapes:
        notes.append(f"shape '{request.shape}' is one of ACTION's; {protocol.id} has one form")
    digest = hashlib.sha256(f"{protocol.id}\0{prompt.text}".encode("utf-8", "surrogatepass")).hexdigest()
    return PromptResult(
        text=prompt.text,
        etag=digest[:16],
        protocol=protocol.id,
        style=prompt.style,
        few_shot=prompt.few_shot,
        tokens=PromptTokens(total=prompt.tokens, exact=count_tokens("")[1], per_tool=prompt.per_tool),
        macro=TOOLS_MACRO,
        notes=[*notes, *prompt.notes],
    )


def _protocol(runtime: Runtime, name: str | None, agent: AgentRules) -> CallProtocol:
    if name is None:
        name = agent.protocol or runtime.settings.protocol.default
    problem = load_protocol(name)
    protocol = find_protocol(name)
    if protocol is None:
        raise PromptError(problem or f"no protocol '{name}' can be written; known: {', '.join(known_protocols())}")
    return protocol


def _tools(runtime: Runtime, request: PromptRequest, protocol: str, notes: list[str]) -> list[Tool]:
    """The tools to show; what is left out although it was asked for, or cannot run, is noted."""
    tool_ids = request.tool_ids
    agent = runtime.agent_for(request.agent_id)
    discovered = runtime.discovery.find(runtime.registry, agent, protocol, request.agent_id)
    tools = list(runtime.registry.current()) if tool_ids is None else _named(runtime, tool_ids)
    if request.filter is not None:
        ranks = ranked(runtime.registry, request.filter, runtime.may_call)
        wanted = {tool.tool_id: place for place, (_, tool) in enumerate(ranks)}
        # the best first: where not all fit into a budget, these are chosen
        tools = sorted((tool for tool in tools if tool.tool_id in wanted), key=lambda tool: wanted[tool.tool_id])
    off = runtime.loaded.closed or discovered.off
    kept_out = {left_out.tool.tool_id: left_out.reason for left_out in discovered.left_out}
    shown: list[Tool] = []
    reasons: list[str] = []
    ready: Ready = set()
    for tool in tools:
        reason = off or _reason(tool, kept_out, agent, runtime.registry) or runtime.why_not(tool, ready)
        if not reason:
            shown.append(tool)
        elif tool_ids is not None or tool.callable:
            reasons.append(reason if reason == off else f"{tool.tool_id} is left out: {reason}")
    notes += dict.fromkeys(reasons)
    if not tools:
        notes.append("no registered tool fits")
    return shown


def _reason(tool: Tool, kept_out: dict[str, str], agent: AgentRules, registry: Registry) -> str:
    """Why discovery keeps a tool out; one that was named with a version, or is in no list, is judged by itself."""
    if tool.listed and tool.tool_id in kept_out:
        return kept_out[tool.tool_id]
    left_out = judged(tool, agent, registry)
    return "" if left_out is None else left_out.reason


def _named(runtime: Runtime, names: Sequence[str]) -> list[Tool]:
    by_id: dict[str, Tool] = {}
    for name in names:
        tool = runtime.registry.get(name)
        if tool is None:
            near = best(name, runtime.registry.names())
            raise PromptError(f"no tool '{name}'{hint(near)}")
        by_id.setdefault(tool.tool_id, tool)
    return list(by_id.values())


def prompt_tool(tool: Tool, protocol: str, shape: Shape, registry: Registry) -> PromptTool:
    """A tool as a prompt in ``protocol`` shows it."""
    manifest = tool.manifest
    script = isinstance(manifest.handler, ExternalScript)
    return PromptTool(
        name=shown_name(tool, protocol, shape, registry),
        description=manifest.description,
        parameters=manifest.parameters or {},
        examples=tuple(Example(example.description, example.input) for example in manifest.examples),
        kind="workflow" if tool.tool_id.startswith(PREFIX) else "tool" if script else "service",
        display_name=manifest.display_name,
        tool_id=tool.tool_id,
    )


def shown_name(tool: Tool, protocol: str, shape: Shape, registry: Registry) -> str:
    """The name that a model is told to write; a call by it reaches the tool.

    VCP shows the mapped command (V18). A tag is best a plain XML name, so ACTION by tag shows an alias that is one where the id is not
    (A15, A16). Everything else shows the id.
    """
    wanted: list[str] = []
    if extras_of(protocol).by_command and tool.manifest.vcp_command:
        wanted = [tool.manifest.vcp_command]
    elif extras_of(protocol).elements and shape == "tag" and _PORTABLE.fullmatch(tool.tool_id) is None:
        wanted = [name for name in tool.manifest.aliases if _PORTABLE.fullmatch(name)]
    for name in wanted:
        reached = registry.get(name)
        if reached is not None and reached.tool_id == tool.tool_id:
            return name
    return tool.tool_id
