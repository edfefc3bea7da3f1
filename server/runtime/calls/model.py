"""What the steps of a call hand to each other: the request, what it runs under, what a person is asked, an early end.

Data only; the steps are `execution/pipeline.py`, `execution/approving.py` and `handlers/script/running.py`. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tamis.protocols.contract import ApprovalNode, ApprovalOption, ApprovalResolved, ExecutionError, Permissions, Status
from tamis.protocols.model import Call
from tamis.protocols.observation import Style
from tamis.protocols.positions import PositionEncoding
from tamis.server.runtime.calls.states import OnEvent
from tamis.server.runtime.observe.audit import AuditLog
from tamis.server.runtime.observe.tracing import Trace
from tamis.server.runtime.observe.trail import Caller, Log
from tamis.server.runtime.policy.rates import CallRate, Refusals
from tamis.server.runtime.policy.strangers import StrangerGate
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.tools.registry import Registry

if TYPE_CHECKING:
    from tamis.server.runtime.execution.idempotency_keys import IdempotencyKeys
    from tamis.server.runtime.execution.suspended_run import SuspendedRun
    from tamis.server.runtime.handlers.script.warming import Warming
    from tamis.server.runtime.services import Parts


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that comes with the call itself. ``lenient``: where the token does not fit, the call is as without it."""

    token: str
    option_id: str
    edited_args: Any = None
    comment: str = ""
    lenient: bool = False


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
    key_is_models: bool = False
    """The key is a ``request_id`` of a text: it counts within its session."""
    key_of: str = ""
    """What else the key stands for beside the call: the text that the host's key was given with."""
    wait: bool = False
    """Wait for an asynchronous tool instead of making it a task: whoever asks needs its result now (a node of a workflow)."""
    ask: bool = False
    """Ask before running whatever the policy says (the command line does)."""
    approval: TokenAnswer | None = None
    """A person's answer to the question that an earlier result of this call held."""
    node: ApprovalNode | None = None
    """The node that the call is, of a workflow that runs."""
    style: Style = "action"
    step: int | None = None


Answer = Literal["allow", "deny", "timeout", "unavailable", "cancelled"]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with what belongs to it. ``scope``: for how long it is the answer to the same question."""

    answer: Answer
    scope: Literal["once", "session", "always"] = "once"
    edited_args: Any = None
    """Arguments to run with instead, as they came; None: those that were shown."""
    comment: str = ""
    whole_batch: bool = False
    """It answers every question of the batch that is still open."""


class Batch(msgspec.Struct, frozen=True, rename="camel"):
    """Which of several questions that are asked together one is; ``index`` from zero."""

    id: str
    index: int
    count: int


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked before a call runs; secrets in ``args`` are masked."""

    approval_id: str
    call_id: str
    tool_id: str
    version: str
    display_name: str
    args: dict[str, Any]
    preview: str
    """The arguments in bounded length, without secrets and without what cannot be seen."""
    risk: Literal["low", "medium", "high"]
    permissions: Permissions
    timeout_ms: int
    expires_at: str
    """In ISO 8601, UTC."""
    binding: str
    """A digest of all that an answer is about."""
    options: tuple[ApprovalOption, ...]
    batch: Batch | None = None
    node: ApprovalNode | None = None


Ask = Callable[[Question], Awaitable[Answer | Reply]]
OnResolved = Callable[[ApprovalResolved], None]
"""Called when a question is settled, however."""
OnOutput = Callable[[str, str, str], None]
"""Called with the call's id, the stream's name and text while a script runs."""
OnCut = Callable[[str, str], None]
"""Called with the call's id and the stream's name, once and last, when the stream has more than its limit lets be shown."""
OnProgress = Callable[[str, str], None]
"""Called with the call's id and a few words while what a script depends on is installed."""


class Observer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told what happens to the calls of a request while it happens."""

    on_resolved: OnResolved | None = None
    on_output: OnOutput | None = None
    on_cut: OnCut | None = None
    on_progress: OnProgress | None = None
    on_event: OnEvent | None = None
    """Told the states of each call (``states.py``)."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """How a person is asked about a call."""

    ask: Ask | None = None
    asks_together: bool = False
    """Whether the questions of a text are asked at once."""
    polls: bool = False
    """Whether a question that cannot be asked is handed out with a token, for the host to come back with."""
    asks_later: bool = False
    """Whether this face can put a question to its person, or hand it out, also when the request has ended: for tasks."""
    asked_ahead: Callable[[Question], Awaitable[Reply] | None] | None = None
    """The answer to a question that was asked before its call's turn came."""
    suspended: SuspendedRun | None = None
    """The run that this call is, or is a node of, where its host polls: it takes the nodes' questions."""


class CallServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one runtime share that bounds them, is written down of them, or spares them work."""

    gate: StrangerGate | None = None
    """What tools get of the operator's grants while nobody trusts the folder; None: all that is granted, unsaid."""
    rate: CallRate | None = None
    refusals: Refusals | None = None
    idempotency: IdempotencyKeys | None = None
    """Results by idempotency key; None: those that the runtime keeps in its store."""
    warming: Warming | None = None
    """Where sandboxes wait for calls; None: each call starts its own."""
    audit: AuditLog | None = None
    log: Log = msgspec.field(default_factory=Log)


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a call runs under; the registry is the one that was in force when the request came."""

    registry: Registry
    settings: Settings
    root: Path = Path()
    closed: str = ""
    """Why nothing may run here, whatever it is; empty when calls may."""
    agent: AgentRules = AgentRules()
    observer: Observer = Observer()
    asking: Asking = Asking()
    services: CallServices = msgspec.field(default_factory=CallServices)
    cancelled: asyncio.Event | None = None
    caller: Caller = Caller()
    variables: Mapping[str, str] = MappingProxyType({})
    """What the host puts in the place of ``@{name}`` in the texts of arguments (seed 002 §5.2, T36)."""
    in_task: bool = False
    """It runs inside the call of an asynchronous tool: the operator's bound on time is the one of tasks."""
    secrets: tuple[str, ...] = ()
    """Secrets of the calls that this one is a part of, as they may be spelled: hidden in all that is told of it."""
    trace: Trace | None = None
    """The trace that the host names; scripts, services and call-backs are told it."""
    parts: Parts

    def having(self, **changes: Any) -> CallContext:
        """The context with other values, by the names of its own fields and those of ``observer``, ``asking`` and ``services``."""
        for name in _GROUPS:
            group = getattr(self, name)
            own = {field: changes.pop(field) for field in group.__struct_fields__ if field in changes}
            if own:
                changes[name] = msgspec.structs.replace(group, **own)
        return msgspec.structs.replace(self, **changes)


_GROUPS = ("observer", "asking", "services")


class Stopped(Exception):  # noqa: N818 (an outcome, not a fault)
    """A call ended before or while it ran, with this status and error."""

    def __init__(self, status: Status, error: ExecutionError | None = None, *, started: bool = False) -> None:
        """``started``: it ended while it ran, so that it counts as an attempt."""
        super().__init__(status)
        self.status: Status = status
        self.error = error
        self.started = started
