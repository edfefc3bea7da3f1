"""The runtime that every face shares: what is in force of a root (``in_force.py``), what its calls share, and the methods over both.

One object per root. Must not know framing, LSP or the command line.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from tamis.protocols.contract import Description, ParseResult, ToolList, ToolSummary, ValidateResult
from tamis.protocols.model import Document, ReadOptions, ToolHint
from tamis.protocols.positions import PositionEncoding
from tamis.server.runtime.handlers.runners import Ready, needs_of, runner_of
from tamis.server.runtime.in_force import InForce
from tamis.server.runtime.policy.permissions import missing_capability
from tamis.server.runtime.policy.rules import CallRate, Refusals
from tamis.server.runtime.policy.secrets import SecretFault, missing_secret, secret_fault
from tamis.server.runtime.policy.strangers import StrangerGate
from tamis.server.runtime.settings.config import LoadedSettings, Settings
from tamis.server.runtime.settings.files import find_root
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.tools.inline import InlineTool
from tamis.server.runtime.tools.listing import Discovery, ToolFilter, in_inventory, page, ranked
from tamis.server.runtime.tools.registry import Tool
from tamis.server.runtime.tools.sources import extensions_of

if TYPE_CHECKING:
    import asyncio
    from types import ModuleType

    from tamis.server.runtime.calls.model import Ask, CallContext, CallServices, OnEvent, OnOutput, OnProgress
    from tamis.server.runtime.handlers.script.warming import Warming
    from tamis.server.runtime.observe.audit import AuditLog
    from tamis.server.runtime.observe.tracing import Trace
    from tamis.server.runtime.observe.trail import Caller, Level, Log
    from tamis.server.runtime.policy.secret_values import Value
    from tamis.server.runtime.texts.exports import Form

MAX_TEXT_CHARS = 64 * 1024 * 1024
DEFAULT_PAGE = 500
_AS_IT_IS: Mapping[str, Any] = {}


class Runtime(InForce):
    """What is in force of one root, what its calls share, and the methods over both."""

    def __init__(
        self,
        root: Path,
        overlay: Mapping[str, Any] | None = None,
        *,
        loaded: LoadedSettings | None = None,
        trusted: bool | None = None,
    ) -> None:
        """``loaded``: settings that the caller read already, instead of the files' and ``overlay``. ``trusted``: the host's word about the
        folder, None where it said nothing."""
        super().__init__(root, overlay, loaded, trusted)
        self.started = time.monotonic()
        self.running = 0
        self.discovery = Discovery()
        """What agents are told of, kept until the registry changes."""
        self._warming: Warming | None = None
        self._audit: AuditLog | None = None
        self._log: Log | None = None
        self.log_writer: Callable[[Level, str], bool] | None = None
        """Takes the lines of the log, where a face shows them itself; else they go to standard error."""
        self.log_level: Level = self.settings.log_level if self.settings.log_level == "debug" else "error"
        """Which lines a call writes on standard error. The command line shows what happens itself; a daemon takes the setting."""
        self.parts.audit = lambda: self.audit
        self.gate = StrangerGate(lambda: self.loaded, lambda text: self.parts.log.write("warning", text))
        """Looks at what the operator's configuration grants here while nobody trusts the root."""
        self._rate = CallRate(*_rates(self.settings))
        self._refusals = Refusals()
        self._services: CallServices | None = None

    def _tools_changed(self) -> None:
        if self._warming is not None:
            self._warming.reset()

    def _settings_changed(self, before: Settings) -> None:
        own = self.settings
        if _rates(own) != _rates(before):
            self._rate = CallRate(*_rates(own))
        if own.audit != before.audit:
            self._audit = None
        if self._log is not None:
            self._log.form = own.log_format
        bounds = (own.sandbox, own.policy, own.dependencies)
        if self._warming is not None and bounds != (before.sandbox, before.policy, before.dependencies):
            self._warming.allow_templates(own.sandbox.warm == "auto")
            self._warming.reset()

    def keep_warm(self) -> None:
        """From now on let sandboxes wait for calls, if the settings allow; for a daemon, which calls ``close``."""
        from tamis.server.runtime.handlers.script.warming import Warming

        if self.settings.sandbox.warm != "off" and self._warming is None:
            self._warming = Warming()
            self._warming.allow_templates(self.settings.sandbox.warm == "auto")

    def tell_settings(self) -> None:
        """Has a daemon's log say what commands say of the settings: what is wrong, and what a folder asks for in vain."""
        from tamis.server.runtime.settings.loading import told_of_trust

        for line in (*self.loaded.problems, *told_of_trust(self.loaded)):
            self.parts.log.write("warning", line)

    @property
    def warming(self) -> Warming | None:
        """What waits, in a daemon."""
        return self._warming

    async def close(self) -> None:
        """End what waits for calls, and what the parts keep."""
        await self.parts.close()
        if self._warming is not None:
            await self._warming.close()

    def call_context(
        self,
        *,
        ask: Ask | None = None,
        on_output: OnOutput | None = None,
        on_progress: OnProgress | None = None,
        on_event: OnEvent | None = None,
        cancelled: asyncio.Event | None = None,
        caller: Caller | None = None,
        trace: Trace | None = None,
        asking: Mapping[str, Any] = _AS_IT_IS,
        afterwards: Callable[[Callable[[], object]], object] | None = None,
    ) -> CallContext:
        """What a call runs under that comes in now: the same for every face. ``asking``: further fields of ``Asking``."""
        model, trail = _of_calls()
        log = self._log
        if log is None:
            log = self._log = trail.Log(self.log_level, self.settings.log_format, self.log_writer)
        loaded = self.loaded
        return model.CallContext(
            registry=self.registry,
            settings=loaded.settings,
            root=self.root,
            closed=loaded.closed,
            agent=self.agent_for(caller.agent_id) if caller is not None and caller.agent_id else self.agent,
            observer=model.Observer(
                on_output=on_output, on_progress=on_progress, on_event=on_event, afterwards=afterwards
            ),
            asking=model.Asking(ask=ask, **asking),
            services=self._call_services(log),
            cancelled=cancelled,
            caller=caller or trail.Caller(),
            trace=trace,
        )

    def _call_services(self, log: Log) -> CallServices:
        """What all calls share, made again when a part of it is another one."""
        audit, known = self.audit, self._services
        if (
            known is None
            or known.rate is not self._rate
            or known.warming is not self._warming
            or known.audit is not audit
            or known.log is not log
        ):
            services = self.parts.call_services()
            known = self._services = replace(
                services,
                gate=self.gate,
                rate=self._rate,
                refusals=self._refusals,
                warming=self._warming,
                audit=audit,
                log=log,
                plans=services.plans if known is None else known.plans,
            )
        return known

    @property
    def audit(self) -> AuditLog | None:
        """Where what happens to calls is written down; None when the settings switch it off."""
        own = self.settings.audit
        if self._audit is None and own.enabled:
            from tamis.server.runtime.observe.audit import AuditLog

            path = self.root / own.path if own.path else None
            self._audit = AuditLog(path, max_bytes=own.max_bytes, keep=min(own.keep, 1_000), say=self.parts.log.warn)
        return self._audit

    @property
    def dropped_log_lines(self) -> int:
        """Log lines of calls that nobody took."""
        return 0 if self._log is None else self._log.dropped

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
        from tamis.protocols.reader import read_text

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
        members = options or {}
        return ReadOptions(
            complete=complete,
            reasoning_calls=members.get("reasoningCalls", own.reasoning_calls),
            reasoning_tags=tuple(members["reasoningTags"]) if "reasoningTags" in members else own.reasoning_tags,
            assume_open_reasoning=members.get("assumeOpenReasoning", own.assume_open_reasoning),
            fenced_calls=members.get("fencedCalls", own.fenced_calls),
            allow_multiple_blocks=members.get("allowMultipleBlocks", own.allow_multiple_blocks),
            strict=members.get("strict", False),
            tools=hints,
            also=self.also,
        )

    def parse(
        self, text: str, protocol: str = "auto", *, encoding: PositionEncoding | None = None, **reading: Any
    ) -> ParseResult:
        """``tool/parse``."""
        from tamis.protocols.wire import parse_result

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
        listing = page(
            self.registry,
            wanted or ToolFilter(),
            self.may_call,
            cursor=cursor,
            limit=max(1, min(limit or DEFAULT_PAGE, DEFAULT_PAGE)),
        )
        ready: Ready = set()
        return ToolList(
            tools=[self._summary(tool, ready, full=full) for tool in listing.tools],
            next_cursor=UNSET if listing.next is None else listing.next,
            etag=self.etag,
        )

    def summaries(self, wanted: ToolFilter | None = None) -> list[ToolSummary]:
        """All that the pages of ``list_tools`` hold."""
        ready: Ready = set()
        return [self._summary(tool, ready) for tool in self.listed(wanted or ToolFilter())]

    def listed(self, wanted: ToolFilter) -> list[Tool]:
        """The tools of these."""
        return [tool for _, tool in ranked(self.registry, wanted, self.may_call)]

    def may_call(self, tool: Tool) -> bool:
        """Whether an agent may call a tool, by its definition and the profile in force."""
        agent = self.agent
        if agent.is_unbounded:
            return tool.callable
        inventory = in_inventory(tool, agent, self.registry)
        return tool.callable and inventory and not agent.refusal(tool.tool_id)

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
        from tamis.server.runtime.execution.validating import validate_args

        return validate_args(self.registry, tool_id, args, tools, call=call, prefix=prefix, lint=self.settings.lint)

    def validate_manifest(self, manifest: Mapping[str, Any] | str) -> ValidateResult:
        """``tool/validate`` of a manifest, given as JSON or as its text (then problems carry ranges)."""
        from tamis.server.runtime.execution.validating import validate_manifest

        return validate_manifest(self.settings, manifest, extensions_of(self.root, self.settings))

    def why_not(self, tool: Tool, ready: Ready | None = None) -> str:
        """Why a tool cannot be called now; empty when it can. ``ready`` is for who asks of many at once: it is looked up once for all
        tools that need the same of the machine whether that is there."""
        brief, reason = tool.brief, tool.reason
        context = brief.security_context
        if not reason and (context.required_capabilities or context.secrets):
            reason = missing_capability(context, self.settings.policy) or self._missing_secret(tool)
        # what was kept of a root shares handlers that are equal
        if not reason and (ready is None or id(brief.handler) not in ready):
            reason = self._lacking(tool, ready)
        if reason or tool.origin != "workflow" or self.settings.engine.type != "builtin":
            return reason
        from tamis.server.runtime.tools.workflows import graph_fault

        return graph_fault(tool, self.registry)

    def _lacking(self, tool: Tool, ready: Ready | None) -> str:
        needs = None if ready is None else needs_of(tool)
        if needs is None or ready is None:
            return runner_of(tool).problem(tool, self.parts)
        reason = "" if needs in ready else runner_of(tool).problem(tool, self.parts)
        if not reason:
            ready.update((needs, id(tool.brief.handler)))
        return reason

    def _missing_secret(self, tool: Tool) -> str:
        names = tool.brief.security_context.secrets
        if not names:
            return ""
        settings = self.settings
        return missing_secret(names, tool.tool_id, tool.version, settings.secrets, settings.policy)

    async def secret_for(self, name: str, tool: Tool) -> Value:
        """The value of a secret that a person's call hands to a tool as an argument. Raises ``SecretUnusable``: the folder is not trusted, or
        the operator does not let the tool have it."""
        from tamis.server.runtime.policy.secret_values import SecretUnusable

        own, manifest = self.settings, tool.manifest
        if not self.gate.is_trusted():
            why = f"'{name}' is not given to calls of a folder that you do not trust"
            raise SecretUnusable(
                SecretFault(name, "secretNotGranted", why, f"secrets.{name}", "trust the folder with `tamis trust`")
            )
        fault = secret_fault(name, manifest.tool_id, manifest.version, own.secrets, own.policy)
        if fault is not None:
            raise SecretUnusable(fault)
        return await self.parts.secrets.value(name, own.secrets[name], self.root)

    def _summary(self, tool: Tool, ready: Ready, *, full: bool = False) -> ToolSummary:
        manifest = tool.brief
        reason = self.why_not(tool, ready)
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
            definition=dict(tool.manifest.raw) if full else UNSET,
        )


@lru_cache(maxsize=1)
def _of_calls() -> tuple[ModuleType, ModuleType]:
    """What contexts are made of. Only what runs calls needs an event loop; reading and listing start without one."""
    from tamis.server.runtime.calls import model
    from tamis.server.runtime.observe import trail

    return model, trail


def _rates(settings: Settings) -> tuple[int, Mapping[str, int], Mapping[str, int], int]:
    own = settings.policy
    return own.calls_per_minute, own.tool_calls_per_minute, own.agent_calls_per_minute, own.session_calls_per_minute


def early_log(path: Path | None) -> Log:
    """A log for what is wrong before there is a runtime, in the form of the settings that the runtime of a root would have; None: of
    the folder that the process works in."""
    from tamis.server.runtime.observe.trail import Log

    log = Log()
    with contextlib.suppress(OSError):  # the folder that it was started in is gone
        log.form = load_settings(path or find_root(Path.cwd())).settings.log_format
    return log
