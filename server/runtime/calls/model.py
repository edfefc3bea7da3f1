"""What the steps of a call hand to each other: the request, what it runs under, what a person is asked, an early end.

Data only; the steps are `execution/pipeline.py`, `execution/approving.py` and `handlers/script/running.py`. Must not know framing or faces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import msgspec

from tamis.protocols.contract import (
    ApprovalElicitation,
    ApprovalNode,
    ApprovalOption,
    ApprovalResolved,
    CallState,
    ExecutionError,
    Permissions,
    Status,
)
from tamis.protocols.model import Call
from tamis.protocols.observation import Style
from tamis.protocols.positions import PositionEncoding
from tamis.server.runtime.calls.prepared import CallPlans
from tamis.server.runtime.observe.audit import AuditLog
from tamis.server.runtime.observe.tracing import Trace
from tamis.server.runtime.observe.trail import Caller, Log
from tamis.server.runtime.policy.rules import CallRate, Refusals
from tamis.server.runtime.policy.strangers import StrangerGate
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.tools.registry import Registry

if TYPE_CHECKING:
    from tamis.server.runtime.calls.runner import HostConnection, RunnerServices
    from tamis.server.runtime.calls.running_calls import RunningCalls
    from tamis.server.runtime.execution.approvals.questions import Approvals
    from tamis.server.runtime.execution.idempotency import IdempotencyKeys
    from tamis.server.runtime.execution.suspended import SuspendedRun, SuspendedRuns
    from tamis.server.runtime.execution.tasks.tasks import Tasks
    from tamis.server.runtime.handlers.script.warming import Warming
    from tamis.server.runtime.observe.metrics import Metrics
    from tamis.server.runtime.observe.tracing import Telemetry
    from tamis.server.runtime.observe.usage import UsageCounts


# The states of a call and which may follow which (seed 001 §11.2.2 and §12, V60, V62). Whoever runs a call says what it does; a state that may not
# follow the last one is not told, so that nobody ever sees an illegal step.


State = CallState
STATES: tuple[State, ...] = get_args(State)
NEXT: dict[State, frozenset[State]] = {
    # completed from here: unknown tool, unfit arguments, refused by policy, no one to ask, replayed
    "pending": frozenset({"awaitingApproval", "executing", "completed", "denied", "cancelled"}),
    # completed from here: no answer in time
    "awaitingApproval": frozenset({"executing", "completed", "denied", "cancelled"}),
    "executing": frozenset({"completed", "cancelled"}),
    "completed": frozenset(),
    "denied": frozenset(),
    "cancelled": frozenset(),
}
"""The states that may follow each; a call begins ``pending``. ``denied`` is a person's refusal, nothing else."""

OnEvent = Callable[[str, State], None]
"""Called with a call's id and the state that it is in now."""


def end_state(status: Status) -> State:
    """The state in which a call with that result is left.

    ``accepted`` goes on as a task and ``inputRequired`` waits for a person: they are not at their end.
    """
    if status == "denied" or status == "cancelled":
        return status
    if status == "accepted":
        return "executing"
    return "awaitingApproval" if status == "inputRequired" else "completed"


class States:
    """Tells the states of the calls of one request, each once and only legal steps. It is an ``OnEvent`` itself."""

    def __init__(self, tell: OnEvent | None) -> None:
        self._tell = tell
        self._now: dict[str, State] = {}

    def begin(self, call_id: str) -> None:
        """A call begins, again if one with that id has ended."""
        now = self._now.get(call_id)
        if now is None or not NEXT[now]:
            self._now[call_id] = "pending"
            self._told(call_id, "pending")

    def __call__(self, call_id: str, state: State) -> None:
        """A call is in a state now; the same state again, or one that may not follow, is not told."""
        now = self._now.get(call_id)
        if now is None:
            self.begin(call_id)
            now = "pending"
        if state in NEXT[now]:
            self._now[call_id] = state
            self._told(call_id, state)

    def now(self, call_id: str) -> State | None:
        """The state that was told last."""
        return self._now.get(call_id)

    def _told(self, call_id: str, state: State) -> None:
        if self._tell is not None:
            self._tell(call_id, state)


def states_of(on_event: OnEvent | None) -> States:
    """The states that a request's calls are told through; the same ones for every call of a text."""
    return on_event if isinstance(on_event, States) else States(on_event)


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that comes with the call itself. ``lenient``: where the token does not fit, the call is as without it."""

    token: str
    option_id: str = ""
    """Empty for a question of an MCP server that was closed without an answer."""
    content: Any = None
    """What was typed into a form of an MCP server, by the names of its fields."""
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
    told_later: bool = False
    """Whoever asks gives a success as it is: it needs no observation, unless something in it has to be hidden."""


Answer = Literal["allow", "deny", "timeout", "unavailable", "cancelled"]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with what belongs to it. ``scope``: for how long it is the answer to the same question."""

    answer: Answer
    option_id: str = ""
    """The option that was chosen; empty where somebody answered in another way."""
    scope: Literal["once", "session", "always"] = "once"
    edited_args: Any = None
    """Arguments to run with instead, as they came; None: those that were shown."""
    comment: str = ""
    content: Any = None
    """What was typed into a form of an MCP server, as it came: by the names of its fields."""
    fault: str = ""
    """Why the answer of a host counts as a question that was closed, as a sentence without its end; empty: it was closed."""
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
    elicitation: ApprovalElicitation | None = None
    """What the tool's MCP server asks; then the question is no approval, and only a chosen option is an answer."""


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
    """Told the states of each call (``model.py``)."""
    afterwards: Callable[[Callable[[], object]], object] | None = None
    """Takes what is written down of the call's end, and does it as soon as the call is answered; None: it is done before."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """How a person is asked about a call."""

    ask: Ask | None = None
    elicits: bool = False
    """Whether ``ask``, or the host that polls, takes questions of MCP servers too (``Question.elicitation``): one choice."""
    forms: bool = False
    """Whether it takes those too that have a form to type into."""
    addresses: bool = False
    """Whether it takes those too that have an address to open."""
    turn: asyncio.Lock | None = None
    """Where questions are put one after the other, since one person answers them all: held by the one whose turn it is."""
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


class CallRecords(Protocol):
    """Where the numbers and spans of calls go."""

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        ...

    @property
    def usage(self) -> UsageCounts:
        """How often each tool was called, over all daemons of the root."""
        ...

    @property
    def telemetry(self) -> Telemetry | None:
        """Where spans go; None unless the settings say so and it can be had."""
        ...


class ExecutionServices(Protocol):
    """What only the steps of a call use, not what runs it."""

    @property
    def approvals(self) -> Approvals:
        """The questions that are open, and the answers that hold."""
        ...

    @property
    def idempotency(self) -> IdempotencyKeys:
        """Results by idempotency key."""
        ...

    @property
    def suspended(self) -> SuspendedRuns:
        """The runs of workflows whose host polls."""
        ...

    @property
    def tasks(self) -> Tasks:
        """Calls that outlive their request."""
        ...


class CallServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one runtime share: what bounds them, is written down of them or spares them work, and the services that a reader
    takes its own from. What stands behind ``connection``, ``records``, ``handlers`` and ``execution`` is made when it is first asked for."""

    connection: HostConnection
    records: CallRecords
    running_calls: RunningCalls
    """The calls that run now, and how each is cancelled."""
    handlers: RunnerServices
    """What runs a call finds it as ``Invocation.services``."""
    execution: ExecutionServices
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
    plans: CallPlans = msgspec.field(default_factory=CallPlans)


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a call runs under; the registry is the one that was in force when the request came."""

    registry: Registry
    settings: Settings
    services: CallServices
    root: Path = Path()
    closed: str = ""
    """Why nothing may run here, whatever it is; empty when calls may."""
    agent: AgentRules = AgentRules()
    observer: Observer = Observer()
    asking: Asking = Asking()
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


# The application at the other end of the connection, as calls see it.


class HostError(Exception):
    """The host answered a request with an error, or went away; the text is its own, shortened."""


class Host(Protocol):
    """The application at the other end of the connection, as far as it can be asked and told."""

    async def ask(self, method: str, params: object) -> Any:
        """Sends a request and waits for its result. Raises ``HostError``; waits without limit, so callers bound it."""
        ...

    def tell(self, method: str, params: object) -> None:
        """Sends a notification; one that a slow host has no room for is dropped."""
        ...
