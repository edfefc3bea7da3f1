"""What the steps of a call hand to each other: the request, what it runs under, what a person is asked, an early end.

Data only; the steps are `execute.py`, `approving.py` and `scripts/running.py`. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from tamis.protocols.contract import ExecutionError, Permissions, Status
from tamis.protocols.model import Call
from tamis.protocols.observation import Style
from tamis.protocols.positions import PositionEncoding
from tamis.server.runtime.agents.profile import AgentRules
from tamis.server.runtime.calls.parts import Parts
from tamis.server.runtime.calls.rates import CallRate, Refusals
from tamis.server.runtime.calls.replays import Replays
from tamis.server.runtime.records.audit import AuditLog
from tamis.server.runtime.records.trail import Caller, Log
from tamis.server.runtime.registry.registry import Registry
from tamis.server.runtime.scripts.warming import Warming
from tamis.server.runtime.settings.config import Settings


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run: by name and arguments, or a call as it was parsed with its source text."""

    call_id: str
    name: str
    version: str | None = None
    args: dict[str, Any] = {}
    call: Call | None = None
    source: str = ""
    encoding: PositionEncoding | None = None
    wire_call: dict[str, Any] | None = None
    """A call as ``tool/parse`` gave it, instead of ``args``."""
    timeout_ms: int | None = None
    dry_run: bool = False
    idempotency_key: str = ""
    ask: bool = False
    """Ask before running whatever the policy says (the command line does)."""
    style: Style = "action"
    step: int | None = None


Answer = Literal["allow", "deny", "timeout", "unavailable", "cancelled"]


class Question(msgspec.Struct, frozen=True):
    """What a person is asked before a call runs; secrets in ``args`` are masked."""

    call_id: str
    tool_id: str
    display_name: str
    args: dict[str, Any]
    permissions: Permissions
    timeout_ms: int


Ask = Callable[[Question], Awaitable[Answer]]
OnOutput = Callable[[str, str, str], None]
"""Called with the call's id, the stream's name and text while a script runs."""
OnProgress = Callable[[str, str], None]
"""Called with the call's id and a few words while what a script depends on is installed."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a call runs under; the registry is the one that was in force when the request came."""

    registry: Registry
    settings: Settings
    root: Path = Path()
    closed: str = ""
    """Why nothing may run here, whatever it is; empty when calls may."""
    agent: AgentRules = AgentRules()
    rate: CallRate | None = None
    refusals: Refusals | None = None
    replays: Replays | None = None
    ask: Ask | None = None
    on_output: OnOutput | None = None
    on_progress: OnProgress | None = None
    cancelled: asyncio.Event | None = None
    warming: Warming | None = None
    """Where sandboxes wait for calls; None: each call starts its own."""
    audit: AuditLog | None = None
    log: Log = msgspec.field(default_factory=Log)
    caller: Caller = Caller()
    parts: Parts = msgspec.field(default_factory=Parts)


class Stopped(Exception):  # noqa: N818 (an outcome, not a fault)
    """A call ended before or while it ran, with this status and error."""

    def __init__(self, status: Status, error: ExecutionError | None = None, *, started: bool = False) -> None:
        """``started``: it ended while it ran, so that it counts as an attempt."""
        super().__init__(status)
        self.status: Status = status
        self.error = error
        self.started = started
