"""The runtime that every face shares: settings, the registry in force, and the methods over them.

One object per root. Replacing the registry never disturbs a running call, which keeps the one it resolved from. Must not
know framing, LSP or the command line.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.contract import (
    Description,
    ManifestFault,
    ParseResult,
    Problem,
    RegistryChanges,
    ToolConflict,
    ToolList,
    ToolSummary,
    ValidateResult,
)
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.model import Diag, Document, Json, ReadOptions, ToolHint
from tamis.protocols.observation import unknown_tool
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.reader import read_text
from tamis.protocols.wire import parse_result, to_range
from tamis.server.runtime.agents.discovery import Discovery, in_inventory
from tamis.server.runtime.agents.profile import AgentRules, Agents, load_agent_rules
from tamis.server.runtime.calls.checking import check_arguments, check_wire_call
from tamis.server.runtime.calls.dispatch import runner_of
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.calls.rates import CallRate, Refusals
from tamis.server.runtime.registry.changes import Change, difference
from tamis.server.runtime.registry.listing import ToolFilter, page
from tamis.server.runtime.registry.registry import COMMAND, Registry, Tool
from tamis.server.runtime.registry.sources import Found, compose, find
from tamis.server.runtime.settings.config import LoadedSettings, Settings, load_settings

if TYPE_CHECKING:
    import asyncio

    from tamis.server.runtime.calls.model import Ask, OnOutput, OnProgress, Surroundings
    from tamis.server.runtime.calls.states import OnEvent
    from tamis.server.runtime.records.audit import AuditLog
    from tamis.server.runtime.records.tracing import Trace
    from tamis.server.runtime.records.trail import Caller, Level, Log
    from tamis.server.runtime.registry.watching import Seen
    from tamis.server.runtime.scripts.warming import Warming
    from tamis.server.runtime.texts.exports import Form

MAX_TEXT_CHARS = 64 * 1024 * 1024
DEFAULT_PAGE = 500


class InlineTool(msgspec.Struct, rename="camel"):
    """A tool given with a request: it guides reading and checking like a registered one."""

    tool_id: str
    parameters: dict[str, Any] = {}


class Reading(msgspec.Struct):
    """What was read of a root's files, numbered in the order of beginning."""

    number: int
    loaded: LoadedSettings
    seen: Seen | None
    found: Found
    agent: AgentRules


class Runtime:
    """Settings and registry of one root; the registry is loaded on first use."""

    def __init__(
        self, root: Path, overlay: Mapping[str, Any] | None = None, *, loaded: LoadedSettings | None = None
    ) -> None:
        """``loaded``: settings that the caller read already, instead of the file's and ``overlay``."""
        self.root = root
        self.started = time.monotonic()
        self.loaded: LoadedSettings = loaded or load_settings(root, overlay)
        self.running = 0
        self._overlay = overlay
        self._given = loaded is not None
        self._registry: Registry | None = None
        self._tagged: tuple[tuple[Registry, AgentRules], str] | None = None
        self._found: Found | None = None
        self._seen: Seen | None = None
        self._readings = 0
        self._newest = 0
        self.watched = False
        """Whether somebody looks for changes on disk; then what the disk looked like is noted before it is read."""
        self._answered: Registry | None = None
        """What the host was last answered of, or what was read first: what changed is counted from there."""
        self._agent: AgentRules | None = None
        self._agents = Agents()
        self.discovery = Discovery()
        """What agents are told of, kept until the registry changes."""
        self._warming: Warming | None = None
        self._audit: AuditLog | None = None
        self._log: Log | None = None
        self.log_level: Level = self.settings.log_level if self.settings.log_level == "debug" else "error"
        """Which lines a call writes on standard error. The command line shows what happens itself; a daemon takes the setting."""
        self.parts = Parts(root, self.settings)
        self.parts.audit = lambda: self.audit
        own = self.settings.policy
        self._rate = CallRate(own.calls_per_minute, own.tool_calls_per_minute)
        self._refusals = Refusals()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def registry(self) -> Registry:
        """The registry in force."""
        if self._registry is None:
            self.take(self.read_again(settings=False))
            assert self._registry is not None
        return self._registry

    @property
    def etag(self) -> str:
        """A short hash of what lists say: of the registry, and of the agent's profile where there is one."""
        state = (self.registry, self.agent)
        if self._tagged is None or any(one is not other for one, other in zip(state, self._tagged[0], strict=True)):
            tag = self.registry.etag()
            if self.agent != AgentRules():
                content = tag.encode() + msgspec.json.encode(self.agent, order="sorted")
                tag = hashlib.sha256(content).hexdigest()[:16]
            self._tagged = (state, tag)
        return self._tagged[1]

    @property
    def seen(self) -> Seen | None:
        """What the disk looked like before what is in force was read; None while nothing was, or nobody watches."""
        return self._seen

    def read_again(self, *, settings: bool = True) -> Reading:
        """Reads settings, definitions and profile as they stand on disk now, for ``take``. Safe in a thread."""
        self._readings += 1
        number = self._readings
        loaded = self.loaded if self._given or not settings else load_settings(self.root, self._overlay)
        seen = None
        if self.watched:
            from tamis.server.runtime.registry.watching import look

            seen = look(self.root, loaded.settings)
        found = find(self.root, loaded.settings, self._found.known if self._found is not None else None)
        return Reading(number, loaded, seen, found, load_agent_rules(self.root, loaded.settings.profile))

    def take(self, reading: Reading) -> Change:
        """Puts what was read in force, and says what that changed; running calls keep what they began with (D53).

        A reading that was begun before the one in force is dropped.
        """
        if reading.number < self._newest:
            return Change()
        self._newest = reading.number
        if reading.loaded.settings != self.settings or reading.loaded.closed != self.loaded.closed:
            self._adopt_settings(reading.loaded)
        self._found, self._seen = reading.found, reading.seen
        other_agent = self._agent is not None and self._agent != reading.agent
        self._agent = reading.agent
        return self._compose(reading.found, other=other_agent)

    def services_changed(self) -> Change:
        """Takes up what the host has registered or taken away meanwhile, without reading the disk."""
        if self._found is None:
            # Nothing was asked of the registry yet: its first use finds everything.
            return Change()
        return self._compose(self._found)

    def _compose(self, found: Found, *, other: bool = False) -> Change:
        before, after = self._registry, compose(found, self.root, self.settings, self.parts)
        if before is None:
            self._registry = self._answered = after
            return Change()
        change = difference(before, after)
        if change.any:
            self._registry = after
        if other:
            change = msgspec.structs.replace(change, other=True)
        if change.any:
            if self._warming is not None:
                self._warming.reset()
            self.parts.tell("registry/changed", self.changes(change))
        return change

    def changes(self, change: Change) -> RegistryChanges:
        """A change of the registry in force, with what is wrong in it now."""
        registry = self.registry
        return RegistryChanges(
            added=list(change.added),
            removed=list(change.removed),
            updated=list(change.updated),
            errors=[msgspec.convert(error, ManifestFault, from_attributes=True) for error in registry.errors],
            conflicts=[msgspec.convert(found, ToolConflict, from_attributes=True) for found in registry.conflicts],
            etag=self.etag,
        )

    def changes_since_reload(self, *, reset: bool = False) -> RegistryChanges:
        """What is other than at the last ``reset``, or than what was read first."""
        registry = self.registry
        change = difference(self._answered or registry, registry)
        if reset:
            self._answered = registry
        return self.changes(change)

    def _adopt_settings(self, loaded: LoadedSettings) -> None:
        before, own = self.settings, loaded.settings
        self.loaded = loaded
        self.parts.settings = own
        rates = (own.policy.calls_per_minute, own.policy.tool_calls_per_minute)
        if rates != (before.policy.calls_per_minute, before.policy.tool_calls_per_minute):
            self._rate = CallRate(*rates)
        if own.audit != before.audit:
            self._audit = None
        bounds = (own.sandbox, own.policy, own.dependencies)
        if self._warming is not None and bounds != (before.sandbox, before.policy, before.dependencies):
            self._warming.reset()

    @property
    def agent(self) -> AgentRules:
        """The agent profile in force."""
        if self._agent is None:
            self._agent = load_agent_rules(self.root, self.settings.profile)
        return self._agent

    def agent_for(self, agent_id: str) -> AgentRules:
        """The rules of an agent that the host names; without a name those of the profile in force (ruling 42)."""
        return self._agents.rules(self.root, self.settings.profile, agent_id, self.agent)

    @property
    def also(self) -> tuple[str, ...]:
        """The protocols of ``[protocol] also`` that can be read."""
        return self._protocols()[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong in the settings, also with the protocols that they name; looks at what is installed if they name any."""
        return (*self.loaded.problems, *self._protocols()[1])

    def _protocols(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if not self.settings.protocol.also:
            return (), ()
        from tamis.server.runtime.texts.protocols import load_also

        return load_also(self.settings.protocol.also)

    def keep_warm(self) -> None:
        """From now on let sandboxes wait for calls, if the settings allow; for a daemon, which calls ``close``."""
        from tamis.server.runtime.scripts.warming import Warming

        if self.settings.sandbox.warm == "auto" and self._warming is None:
            self._warming = Warming()

    @property
    def warming(self) -> Warming | None:
        """What waits, in a daemon."""
        return self._warming

    async def close(self) -> None:
        """End what waits for calls, and what the parts keep."""
        await self.parts.close()
        if self._warming is not None:
            await self._warming.close()

    def surroundings(
        self,
        *,
        ask: Ask | None = None,
        on_output: OnOutput | None = None,
        on_progress: OnProgress | None = None,
        on_event: OnEvent | None = None,
        cancelled: asyncio.Event | None = None,
        caller: Caller | None = None,
        trace: Trace | None = None,
    ) -> Surroundings:
        """What a call runs under that comes in now: the same for every face."""
        # Only what runs calls needs an event loop; reading and listing start without one.
        from tamis.server.runtime.calls.model import Surroundings
        from tamis.server.runtime.records.trail import Caller, Log

        if self._log is None:
            self._log = Log(self.log_level, self.settings.log_format)
        return Surroundings(
            registry=self.registry,
            settings=self.settings,
            root=self.root,
            closed=self.loaded.closed,
            agent=self.agent if caller is None else self.agent_for(caller.agent_id),
            rate=self._rate,
            refusals=self._refusals,
            ask=ask,
            on_output=on_output,
            on_progress=on_progress,
            on_event=on_event,
            cancelled=cancelled,
            warming=self._warming,
            audit=self.audit,
            log=self._log,
            caller=caller or Caller(),
            trace=trace,
            parts=self.parts,
        )

    @property
    def audit(self) -> AuditLog | None:
        """Where what happens to calls is written down; None when the settings switch it off."""
        own = self.settings.audit
        if self._audit is None and own.enabled:
            from tamis.server.runtime.records.audit import AuditLog
            from tamis.server.runtime.records.trail import Log

            path = self.root / own.path if own.path else None
            self._audit = AuditLog(path, max_bytes=own.max_bytes, keep=min(own.keep, 1_000), say=Log().warn)
        return self._audit

    @property
    def dropped_log_lines(self) -> int:
        """Log lines of calls that nobody took."""
        return 0 if self._log is None else self._log.dropped

    def adopt(self, registry: Registry) -> None:
        """Takes the tools of a face that keeps them itself (an editor, whose open manifests count as they stand there)."""
        self._registry = registry

    def reload(self) -> Registry:
        """Reads settings, definitions and the agent profile again."""
        self.take(self.read_again())
        return self.registry

    def read(
        self,
        text: str,
        protocol: str = "auto",
        *,
        complete: bool = True,
        tools: Sequence[InlineTool] = (),
        options: Mapping[str, Any] | None = None,
        guided: bool = True,
    ) -> Document:
        """Reads a text. ``guided`` lets registered tools guide the reading; inline ones always do and win.

        Raises ``ValueError`` for a protocol that nobody brings.
        """
        return read_text(
            text, protocol, self.read_options(complete=complete, tools=tools, options=options, guided=guided)
        )

    def read_options(
        self,
        *,
        complete: bool = True,
        tools: Sequence[InlineTool] = (),
        options: Mapping[str, Any] | None = None,
        guided: bool = True,
    ) -> ReadOptions:
        """How ``read`` reads: the request's options over the settings, and the tools that guide it."""
        hints: dict[str, ToolHint] = self.registry.hints() if guided else {}
        if tools:
            hints = hints.copy()
            hints.update({tool.tool_id: ToolHint(tool.tool_id, tool.parameters) for tool in tools})
        own = self.settings.protocol
        given = options or {}
        return ReadOptions(
            complete=complete,
            reasoning_calls=given.get("reasoningCalls", own.reasoning_calls),
            fenced_calls=given.get("fencedCalls", own.fenced_calls),
            allow_multiple_blocks=given.get("allowMultipleBlocks", own.allow_multiple_blocks),
            strict=given.get("strict", False),
            tools=hints,
            also=self.also,
        )

    def parse(
        self, text: str, protocol: str = "auto", *, encoding: PositionEncoding | None = None, **reading: Any
    ) -> ParseResult:
        """``tool/parse``."""
        return parse_result(self.read(text, protocol, **reading), encoding)

    def list_tools(
        self,
        wanted: ToolFilter | None = None,
        *,
        full: bool = False,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> ToolList:
        """``tool/list``: in the order of ids, newest version first, or of the search. Raises ``WrongCursorError``."""
        found = page(
            self.registry,
            wanted or ToolFilter(),
            self.may_call,
            cursor=cursor,
            limit=max(1, min(limit or DEFAULT_PAGE, DEFAULT_PAGE)),
        )
        return ToolList(
            tools=[self._summary(tool, full=full) for tool in found.tools],
            next_cursor=UNSET if found.next is None else found.next,
            etag=self.etag,
        )

    def may_call(self, tool: Tool) -> bool:
        """Whether an agent may call a tool, by its definition and the profile in force."""
        held = in_inventory(tool, self.agent, self.registry)
        return tool.callable and held and not self.agent.refusal(tool.tool_id)

    def describe(self, tool_id: str, version: str | None = None, form: Form = "native") -> Description | None:
        """``tool/describe`` in one of its forms; None when there is no such tool or version."""
        from tamis.server.runtime.texts.exports import describe

        tool = self.registry.get(tool_id, version)
        return None if tool is None else describe(tool, form, self.registry)

    def validate_args(
        self,
        tool_id: str,
        args: Mapping[str, Any],
        tools: Sequence[InlineTool] = (),
        *,
        call: Mapping[str, Any] | None = None,
        prefix: str = "",
    ) -> ValidateResult:
        """``tool/validate`` of one tool's arguments, or of a wire ``call``; an unknown tool is a problem, not an error."""
        tool = _inline(tool_id, tools)
        if tool is None:
            spoken = call or {}
            meant = self.registry.resolve_call(tool_id, str(spoken.get("protocol", "")), spoken.get("args"))
            tool = meant.tool
            if meant.takes_command and call is not None:
                # What named the method is no argument (ruling 30).
                call = {**call, "args": {name: value for name, value in call["args"].items() if name != COMMAND}}
        if tool is None:
            names = [*(inline.tool_id for inline in tools), *self.registry.names()]
            text, found = unknown_tool(tool_id, names)
            problem = Problem(
                code="VA401",
                slug=CATALOGUE["VA401"].slug,
                path=prefix,
                message=text,
                suggestion=UNSET if found is None else found,
            )
            return ValidateResult(valid=False, errors=[problem], warnings=[])
        check = check_arguments(args, tool, prefix) if call is None else check_wire_call(call, tool, prefix)
        return ValidateResult(
            valid=check.valid,
            errors=check.errors,
            warnings=check.warnings,
            coerced=check.coerced if check.valid else UNSET,
        )

    def validate_manifest(self, manifest: Mapping[str, Any] | str) -> ValidateResult:
        """``tool/validate`` of a manifest, given as JSON or as its text (then problems carry ranges)."""
        given = manifest if isinstance(manifest, str) else None
        text = given if given is not None else msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode()
        own = self.settings
        reading = read_manifest(text, strict=own.strict_json, runtimes=own.sandbox.runtimes, handlers=own.handlers)
        lines = LineIndex(text)
        errors: list[Problem] = []
        warnings: list[Problem] = []
        for diag in reading.diagnostics:
            level = severity(diag)
            if level in ("error", "warning"):
                found = diag.data.get("suggestion")
                problem = Problem(
                    code=diag.code,
                    slug=CATALOGUE[diag.code].slug,
                    path=_pointer(diag, reading.tree),
                    message=message(diag),
                    suggestion=found if isinstance(found, str) else UNSET,
                    range=UNSET if given is None else to_range(diag.span, lines, None),
                )
                (errors if level == "error" else warnings).append(problem)
        valid = not errors
        return ValidateResult(
            valid=valid,
            errors=errors,
            warnings=warnings,
            coerced=reading.manifest.raw if valid and reading.manifest is not None else UNSET,
        )

    def why_not(self, tool: Tool) -> str:
        """Why a tool cannot be called now; empty when it can."""
        reason = tool.reason or runner_of(tool).problem(tool, self.parts)
        if reason or tool.origin != "workflow" or self.settings.engine.type != "builtin":
            return reason
        from tamis.server.runtime.workflows.checks import graph_fault

        return graph_fault(tool, self.registry)

    def _summary(self, tool: Tool, *, full: bool) -> ToolSummary:
        manifest = tool.manifest
        reason = self.why_not(tool)
        return ToolSummary(
            tool_id=manifest.tool_id,
            version=manifest.version,
            display_name=manifest.display_name,
            description=manifest.description,
            kind=tool.kind,
            namespace=tool.namespace,
            tags=list(manifest.tags),
            callable=self.may_call(tool),
            available=tool.available and not reason,
            reason=reason or UNSET,
            source=tool.path,
            definition=dict(manifest.raw) if full else UNSET,
        )


def _inline(tool_id: str, tools: Sequence[InlineTool]) -> Tool | None:
    for inline in tools:
        if inline.tool_id == tool_id:
            return inline_tool(inline.tool_id, inline.parameters)
    return None


def inline_tool(tool_id: str, parameters: dict[str, Json]) -> Tool:
    """A tool that exists only for one request: it can be checked against, never run."""
    from tamis.protocols.manifest.reading import Manifest, ServiceMethod

    manifest = Manifest(
        tool_id=tool_id,
        display_name=tool_id,
        description="",
        version="0.0.0",
        handler=ServiceMethod(service_name="inline", method_name="none"),
        parameters=parameters,
    )
    return Tool(manifest, "", available=False, reason="given inline")


def _pointer(diag: Diag, tree: Any) -> str:
    found = diag.data.get("pointer")
    if isinstance(found, str):
        return found
    return str(tree.pointer_at(diag.span[0]).pointer)
