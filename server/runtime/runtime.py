"""The runtime that every face shares: settings, the registry in force, and the methods over them.

One object per root. Replacing the registry never disturbs a running call, which keeps the one it resolved from. Must not
know framing, LSP or the command line.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.contract import (
    Description,
    ParseResult,
    Problem,
    ToolList,
    ToolSummary,
    ValidateResult,
)
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.model import Diag, Document, Json, ReadOptions, ToolHint
from tamis.protocols.observation import unknown_tool
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.reader import read_text
from tamis.protocols.suggest import best
from tamis.protocols.wire import parse_result, to_range
from tamis.server.runtime.agents.profile import AgentRules, load_agent_rules
from tamis.server.runtime.calls.checking import check_arguments, check_wire_call
from tamis.server.runtime.calls.dispatch import runner_of
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.calls.rates import CallRate, Refusals
from tamis.server.runtime.registry.registry import Registry, Tool, load_registry
from tamis.server.runtime.settings.config import LoadedSettings, Settings, load_settings
from tamis.server.runtime.texts.token_counts import count_tokens

if TYPE_CHECKING:
    import asyncio

    from tamis.server.runtime.calls.model import Ask, OnOutput, OnProgress, Surroundings
    from tamis.server.runtime.calls.replays import Replays
    from tamis.server.runtime.records.audit import AuditLog
    from tamis.server.runtime.records.trail import Caller, Level, Log
    from tamis.server.runtime.scripts.warming import Warming

MAX_TEXT_CHARS = 64 * 1024 * 1024
DEFAULT_PAGE = 500


class InlineTool(msgspec.Struct, rename="camel"):
    """A tool given with a request: it guides reading and checking like a registered one."""

    tool_id: str
    parameters: dict[str, Any] = {}


class ToolFilter(msgspec.Struct, rename="camel"):
    """Which tools to list; every given part must fit."""

    tags: list[str] = []
    namespace: str | None = None
    query: str | None = None
    callable: bool | None = None


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
        self._registry: Registry | None = None
        self._agent: AgentRules | None = None
        self._replays: Replays | None = None
        self._warming: Warming | None = None
        self._audit: AuditLog | None = None
        self._log: Log | None = None
        self.log_level: Level = self.settings.log_level if self.settings.log_level == "debug" else "error"
        """Which lines a call writes on standard error. The command line shows what happens itself; a daemon takes the setting."""
        self.parts = Parts(root, self.settings)
        self._rate = CallRate(self.settings.policy.calls_per_minute)
        self._refusals = Refusals()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    @property
    def registry(self) -> Registry:
        """The registry in force."""
        if self._registry is None:
            self._registry = load_registry(self.root, self.settings)
        return self._registry

    @property
    def agent(self) -> AgentRules:
        """The agent profile in force."""
        if self._agent is None:
            self._agent = load_agent_rules(self.root, self.settings.profile)
        return self._agent

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
        cancelled: asyncio.Event | None = None,
        caller: Caller | None = None,
    ) -> Surroundings:
        """What a call runs under that comes in now: the same for every face."""
        # Only what runs calls needs an event loop; reading and listing start without one.
        from tamis.server.runtime.calls.model import Surroundings
        from tamis.server.runtime.calls.replays import Replays
        from tamis.server.runtime.records.trail import Caller, Log

        if self._replays is None:
            self._replays = Replays()
        if self._log is None:
            self._log = Log(self.log_level)
        return Surroundings(
            registry=self.registry,
            settings=self.settings,
            root=self.root,
            closed=self.loaded.closed,
            agent=self.agent,
            rate=self._rate,
            refusals=self._refusals,
            replays=self._replays,
            ask=ask,
            on_output=on_output,
            on_progress=on_progress,
            cancelled=cancelled,
            warming=self._warming,
            audit=self.audit,
            log=self._log,
            caller=caller or Caller(),
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

    def adopt(self, registry: Registry) -> None:
        """Takes the tools of a face that keeps them itself (an editor, whose open manifests count as they stand there)."""
        self._registry = registry

    def reload(self) -> Registry:
        """Reads the tool folders and the agent profile again."""
        self._agent = None
        self._registry = load_registry(self.root, self.settings)
        if self._warming is not None:
            self._warming.reset()
        return self._registry

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
        hints: dict[str, ToolHint] = dict(self.registry.hints()) if guided else {}
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
        """``tool/list``, in the order of ids, newest version first."""
        wanted = wanted or ToolFilter()
        tools = [tool for tool in self.registry.tools if fits(tool, wanted)]
        start = int(cursor) if cursor is not None and cursor.isdigit() and len(cursor) < 12 else 0
        end = start + max(1, min(limit or DEFAULT_PAGE, DEFAULT_PAGE))
        return ToolList(
            tools=[self._summary(tool, full=full) for tool in tools[start:end]],
            next_cursor=str(end) if end < len(tools) else UNSET,
            etag=self.registry.etag(),
        )

    def describe(self, tool_id: str, version: str | None = None) -> Description | None:
        """``tool/describe`` in the native form; None when there is no such tool or version."""
        tool = self.registry.get(tool_id, version)
        if tool is None:
            return None
        text = msgspec.json.encode(tool.manifest.raw).decode("utf-8", "replace")
        return Description(definition=dict(tool.manifest.raw), losses=[], tokens=count_tokens(text)[0])

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
        tool = _inline(tool_id, tools) or self.registry.get(tool_id)
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
        reading = read_manifest(text, strict=self.settings.strict_json, runtimes=self.settings.sandbox.runtimes)
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
        return tool.reason or runner_of(tool).problem(tool, self.parts)

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
            callable=tool.callable and self.agent.lists(tool.tool_id) and not self.agent.refusal(tool.tool_id),
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


def fits(tool: Tool, wanted: ToolFilter) -> bool:
    """Whether a tool is among those that a filter wants."""
    manifest = tool.manifest
    if wanted.namespace is not None and tool.namespace != wanted.namespace:
        return False
    if wanted.callable is not None and tool.callable != wanted.callable:
        return False
    if not set(wanted.tags) <= set(manifest.tags):
        return False
    if wanted.query:
        query = wanted.query.casefold()
        text = "\n".join((manifest.tool_id, manifest.display_name, manifest.description, *manifest.tags)).casefold()
        return query in text or best(wanted.query, [manifest.tool_id]) is not None
    return True


def _pointer(diag: Diag, tree: Any) -> str:
    found = diag.data.get("pointer")
    if isinstance(found, str):
        return found
    return str(tree.pointer_at(diag.span[0]).pointer)
