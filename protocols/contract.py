"""The wire contract: the msgspec Structs of every request and result.

The single typed source of the public interface; every face (command line, JSON-RPC, LSP) encodes these and nothing else.
Field names are camelCase on the wire. A field that may be missing is ``UNSET`` and left out; a field that may be null is
``None`` and written as ``null``. Ranges are LSP ranges in the negotiated encoding; without negotiation they count code
points and carry ``offset``. Must not know how any of it is computed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.model import Severity

RPC_VERSION = 1

Status = Literal[
    "success",
    "error",
    "timeout",
    "cancelled",
    "denied",
    "approvalTimeout",
    "approvalUnavailable",
    "blocked",
    "accepted",
    "inputRequired",
]
ErrorType = Literal[
    "UnknownTool",
    "ParameterValidationError",
    "SecurityError",
    "DependencyError",
    "ScriptError",
    "OutputFormatError",
    "OutputValidationError",
    "ResourceError",
    "TimeoutError",
    "RateLimited",
    "SandboxUnavailable",
    "WorkflowError",
    "ServiceError",
]


class Wire(msgspec.Struct, rename="camel"):
    """Base of everything on the wire: camelCase names. Keyword construction is set by each class: it is not inherited."""


class Position(Wire, kw_only=True):
    """Zero-based line and character, in the negotiated encoding."""

    line: int
    character: int


class Range(Wire, kw_only=True):
    """An LSP range; ``offset`` (code points, half open) is there when no encoding was negotiated."""

    start: Position
    end: Position
    offset: tuple[int, int] | UnsetType = UNSET


class TextEdit(Wire, kw_only=True):
    """An LSP text edit."""

    range: Range
    new_text: str


class Diagnostic(Wire, kw_only=True):
    """A finding in a text, with its catalogue code and slug."""

    code: str
    slug: str
    severity: Severity
    range: Range
    message: str
    fix: list[TextEdit] | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET


class Repair(Wire, kw_only=True):
    """Something the reader assumed; ``message`` is a sentence that a model can act on."""

    code: str
    slug: str
    range: Range
    message: str


class WireBlock(Wire, kw_only=True):
    """One block found in a text."""

    protocol: str
    range: Range
    complete: bool


class WireCall(Wire, kw_only=True):
    """One call as it was read (``Call`` of the interface); ``args`` are uncoerced."""

    call_id: str
    index: int
    protocol: str
    tool_id: str
    args: dict[str, Any]
    step: int | UnsetType = UNSET
    on_error: Literal["stop", "continue"] | UnsetType = UNSET
    retry: int | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    uris: dict[str, str] | UnsetType = UNSET
    type_hints: dict[str, str] | UnsetType = UNSET
    meta: dict[str, str] | UnsetType = UNSET
    complete: bool = True
    executable: bool = True
    repairs: list[Repair] = []
    range: Range
    tool_id_range: Range
    arg_ranges: dict[str, Range] = {}


class WireComment(Wire, kw_only=True):
    """A comment inside a block."""

    range: Range
    text: str


class ParseResult(Wire, kw_only=True):
    """What was found in a text."""

    response_text: str
    trailing_text: str
    blocks: list[WireBlock]
    calls: list[WireCall]
    diagnostics: list[Diagnostic]
    comments: list[WireComment]


class NewText(Wire, kw_only=True):
    """New characters of an argument's value, which has ``length`` characters with them."""

    argument: str
    text: str
    length: int


class PartialCall(Wire, kw_only=True):
    """What can be seen of a call that is being written; for display only."""

    protocol: str
    tool_id: str | UnsetType = UNSET
    done: list[str]
    argument: str | UnsetType = UNSET
    new: list[NewText]


class OpenedStream(Wire, kw_only=True):
    """Result of ``parse/open``."""

    stream_id: str


class FedText(Wire, kw_only=True):
    """Result of ``parse/feed``: what has become certain with this piece of the text."""

    text: str
    calls: list[WireCall]
    partial: PartialCall | UnsetType = UNSET


class Problem(Wire, kw_only=True):
    """A finding in arguments, a call or a manifest; ``path`` is a JSON Pointer."""

    code: str
    slug: str
    path: str
    message: str
    expected: str | UnsetType = UNSET
    received: str | UnsetType = UNSET
    suggestion: str | UnsetType = UNSET
    range: Range | UnsetType = UNSET


class ValidateResult(Wire, kw_only=True):
    """Result of ``tool/validate``; ``coerced`` is there exactly when ``valid``."""

    valid: bool
    errors: list[Problem]
    warnings: list[Problem]
    coerced: Any = UNSET


class ToolSummary(Wire, kw_only=True):
    """One line of ``tool/list``."""

    tool_id: str
    version: str
    display_name: str
    description: str
    kind: Literal["tool", "workflow", "service"]
    namespace: str
    tags: list[str]
    callable: bool
    available: bool
    reason: str | UnsetType = UNSET
    source: str
    definition: dict[str, Any] | UnsetType = UNSET


class ToolList(Wire, kw_only=True):
    """Result of ``tool/list``, in a stable order."""

    tools: list[ToolSummary]
    next_cursor: str | UnsetType = UNSET
    etag: str


class Loss(Wire, kw_only=True):
    """Something that an export could not carry over."""

    code: str
    path: str
    message: str


class Description(Wire, kw_only=True):
    """Result of ``tool/describe``; ``definition`` is an object, in the form ``vcp`` the text of a definition block."""

    definition: dict[str, Any] | str
    losses: list[Loss]
    tokens: int


class FailedNode(Wire, kw_only=True):
    """The node that a workflow failed at (seed 004 §4, W21); ``item`` counts from zero in the list of a ``map``."""

    node_id: str
    type: str
    status: Status
    error: ExecutionError | UnsetType = UNSET
    item: int | UnsetType = UNSET


class ErrorDetails(Wire, kw_only=True):
    """Details of a failed run; observations print ``text``."""

    text: str | UnsetType = UNSET
    limit: Literal["wall", "cpu", "memory", "processes", "files", "stdout", "stderr", "stdin"] | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET
    signal: str | UnsetType = UNSET
    errors: list[Problem] | UnsetType = UNSET
    denied_hosts: list[str] | UnsetType = UNSET
    code: str | UnsetType = UNSET
    node: FailedNode | UnsetType = UNSET
    """Of a workflow: where it failed."""


class ExecutionError(Wire, kw_only=True):
    """Why a call did not succeed."""

    type: ErrorType
    message: str
    details: ErrorDetails | UnsetType = UNSET


class Usage(Wire, kw_only=True):
    """What a run used."""

    cpu_ms: float
    max_rss_bytes: int


class SandboxInfo(Wire, kw_only=True):
    """The sandbox a run had."""

    backend: str
    version: str
    layers: list[str]
    warm: bool


class Granted(Wire, kw_only=True):
    """What a run was allowed."""

    read: list[str] = []
    write: list[str] = []
    hosts: list[str] = []
    capabilities: list[str] = []


class Denied(Wire, kw_only=True):
    """One request of a manifest that the policy refused."""

    kind: str
    value: str
    reason: str


class Permissions(Wire, kw_only=True):
    """What a tool asked for, what it got and what was refused."""

    requested: dict[str, Any]
    granted: Granted
    denied: list[Denied]


class ApprovalOption(Wire, kw_only=True):
    """One of the answers that a person may choose."""

    option_id: str
    label: str
    kind: Literal["allow_once", "allow_session", "allow_always", "reject_once", "reject_always"]


class ApprovalBatch(Wire, kw_only=True):
    """Questions that belong together: those of one text; ``index`` from zero."""

    id: str
    index: int
    count: int


class ApprovalRequest(Wire, kw_only=True):
    """Params of ``tool/requestApproval``, which the daemon asks the host; ``token`` stands only in a result."""

    approval_id: str
    call_id: str
    tool: str
    version: str
    args: dict[str, Any]
    args_preview: str
    risk: Literal["low", "medium", "high"]
    permissions: Permissions
    options: list[ApprovalOption]
    expires_at: str
    batch: ApprovalBatch | UnsetType = UNSET
    token: str | UnsetType = UNSET


class ApprovalReply(Wire, kw_only=True):
    """The host's answer to ``tool/requestApproval``; ``option_id`` belongs to ``selected``."""

    outcome: Literal["selected", "cancelled"]
    option_id: str | UnsetType = UNSET
    edited_args: dict[str, Any] | UnsetType = UNSET
    comment: str | UnsetType = UNSET


ApprovalOutcome = Literal["allowed", "denied", "timeout", "unavailable", "cancelled"]


class ApprovalResolved(Wire, kw_only=True):
    """Params of ``tool/approvalResolved``: a question is settled, by an answer or otherwise."""

    approval_id: str
    call_id: str
    outcome: ApprovalOutcome


class Approved(Wire, kw_only=True):
    """What was answered before a call. ``standing``: nobody was asked, for an earlier answer still holds; ``edited_args``: what it
    ran with instead, secrets masked."""

    outcome: ApprovalOutcome
    scope: Literal["once", "session", "always"]
    standing: bool
    edited_args: dict[str, Any] | UnsetType = UNSET
    comment: str | UnsetType = UNSET


class StandingApproval(Wire, kw_only=True):
    """An answer that holds for later calls of the same tool with the same rights."""

    id: str
    kind: Literal["allow_session", "allow_always", "reject_always"]
    tool_id: str
    version: str
    agent_id: str
    session_id: str
    permissions: Granted
    created_at: str


class ApprovalList(Wire, kw_only=True):
    """Result of ``approval/list``: what holds, and the questions that are open."""

    approvals: list[StandingApproval]
    open: list[ApprovalRequest]


class RevokedApprovals(Wire, kw_only=True):
    """Result of ``approval/revoke``: the ids that held until now."""

    revoked: list[str]


class ExecutionResult(Wire, kw_only=True):
    """The outcome of one call; every field of the interface is always there."""

    call_id: str
    tool_id: str
    tool_call_id: str | UnsetType = UNSET
    """The id that the call has in its own text, in protocols that give one (call JSON, Hermes)."""
    version: str
    status: Status
    output: Any = UNSET
    error: ExecutionError | UnsetType = UNSET
    logs: list[str] = []
    logs_truncated: bool = False
    duration_ms: float = 0.0
    usage: Usage
    sandbox: SandboxInfo | None = None
    permissions: Permissions
    attempts: int = 0
    replayed: bool = False
    task_id: str | UnsetType = UNSET
    approval: dict[str, Any] | UnsetType = UNSET
    observation: str = ""


TaskStatus = Literal["working", "inputRequired", "completed", "failed", "cancelled"]


class TaskProgress(Wire, kw_only=True):
    """How far a task is: ``progress`` of ``total`` in the tool's own unit, and a few words."""

    progress: float | UnsetType = UNSET
    total: float | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Task(Wire, kw_only=True):
    """A call that outlives its request. ``result`` is there when it is ``completed``, ``error`` when it is ``failed``; times are ISO 8601."""

    task_id: str
    status: TaskStatus
    created_at: str
    ended_at: str | UnsetType = UNSET
    tool_id: str
    call_id: str
    session_id: str | UnsetType = UNSET
    progress: TaskProgress | UnsetType = UNSET
    result: ExecutionResult | UnsetType = UNSET
    error: ExecutionError | UnsetType = UNSET


class TaskList(Wire, kw_only=True):
    """Result of ``task/list``, the newest first; its tasks have no ``result``, which ``task/get`` gives."""

    tasks: list[Task]
    next_cursor: str | UnsetType = UNSET


class CancelResult(Wire, kw_only=True):
    """Result of ``tool/cancel``: ids of calls and tasks that are being cancelled (the session's own where it is between two calls),
    and those that were given but run nowhere."""

    cancelled: list[str]
    not_found: list[str]


class ExecuteTextResult(Wire, kw_only=True):
    """Result of ``tool/executeText``."""

    parse: ParseResult
    results: list[ExecutionResult]
    observation: str
    stopped_at: int | UnsetType = UNSET


class PromptMacro(Wire, kw_only=True):
    """What a macro engine is told of ``{{tools}}`` (seed 001 §6.1)."""

    name: str
    type: str
    phase: str
    description: str
    example: str
    accepts_args: bool
    priority: int
    supported: bool
    context_free: bool


class PromptTokens(Wire, kw_only=True):
    """How many tokens a prompt has; ``per_tool`` is by tool id, without headings and examples."""

    total: int
    exact: bool
    per_tool: dict[str, int]


class PromptResult(Wire, kw_only=True):
    """Result of ``prompt/generate``. ``few_shot`` counts the worked calls shown; ``notes`` say what was left out and why."""

    text: str
    etag: str
    protocol: str
    style: str
    few_shot: int
    tokens: PromptTokens
    macro: PromptMacro
    notes: list[str]


class ObservationText(Wire, kw_only=True):
    """Result of ``observation/format``."""

    text: str


class GrammarText(Wire, kw_only=True):
    """Result of ``prompt/grammar``: a grammar, or a JSON Schema as text."""

    text: str


class FileDiagnostics(Wire, kw_only=True):
    """Findings of one file."""

    path: str
    diagnostics: list[Diagnostic]


class CheckResult(Wire, kw_only=True):
    """Result of ``tamis check --format json``."""

    files: list[FileDiagnostics]
    errors: int
    warnings: int


class RepairResult(Wire, kw_only=True):
    """Result of ``tool/repair``: ``edits`` turn the text that was given into ``text``; ``calls`` have their ranges in ``text``."""

    edits: list[TextEdit]
    text: str
    calls: list[WireCall]


class Assumption(Wire, kw_only=True):
    """Something of warning level that the reader assumed; ``fix`` would have made it unnecessary."""

    code: str
    slug: str
    range: Range
    message: str
    calls: list[int]
    fix: list[TextEdit] | UnsetType = UNSET
    applicability: Literal["safe", "unsafe"] | UnsetType = UNSET


class AlternativeCall(Wire, kw_only=True):
    """A call as another reading would have it."""

    protocol: str
    tool_id: str
    args: dict[str, Any]
    step: int | UnsetType = UNSET


class Alternative(Wire, kw_only=True):
    """A reading that was not taken: the calls that it would run, and how to get it, by ``edits`` or by ``options``."""

    title: str
    code: str
    slug: str
    range: Range
    calls: list[AlternativeCall]
    edits: list[TextEdit] | UnsetType = UNSET
    options: dict[str, Any] | UnsetType = UNSET


class ExplainResult(Wire, kw_only=True):
    """Result of ``tool/explain``."""

    assumptions: list[Assumption]
    alternatives: list[Alternative]


class ConvertResult(Wire, kw_only=True):
    """Result of ``tool/convert``: the calls in their other form, and what it could not carry over."""

    text: str
    losses: list[Loss]


class ManifestFault(Wire, kw_only=True):
    """Why a definition gave no tool, or one that cannot be called."""

    path: str
    message: str
    line: int
    """From one; 0 where there is no text to point at."""
    column: int
    tool_id: str
    """The id that the manifest declares, as far as it can be read."""


class ToolConflict(Wire, kw_only=True):
    """Two manifests that claim the same id and version, or the same name."""

    tool_id: str
    version: str
    kept: str
    """The file that is used; empty when neither is."""
    dropped: str
    message: str


class RegistryChanges(Wire, kw_only=True):
    """What is new, gone and other than before, each as ``id@version``, and what is wrong with definitions now."""

    added: list[str]
    removed: list[str]
    updated: list[str]
    errors: list[ManifestFault]
    conflicts: list[ToolConflict]
    etag: str
    """Another one means other tools."""


class SandboxHealth(Wire, kw_only=True):
    """The sandbox as it was last tried; ``reason`` and ``remedy`` when there is none."""

    available: bool
    backend: str
    version: str
    network: str
    memory: str
    pids: str
    reason: str | UnsetType = UNSET
    remedy: str | UnsetType = UNSET


class WarmHealth(Wire, kw_only=True):
    """Sandboxes that wait for calls; counts since the start, ``idle`` and ``memory_bytes`` of now."""

    idle: int
    starting: int
    hits: int
    misses: int
    cold: int
    refills: int
    failed: int
    discarded: dict[str, int]
    memory_bytes: int


class AuditHealth(Wire, kw_only=True):
    """Whether calls are written down, where, and what keeps them from it."""

    enabled: bool
    path: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET


class Health(Wire, kw_only=True):
    """Result of ``server/health``."""

    status: Literal["ok", "degraded"]
    version: str
    rpc: int
    uptime_ms: int
    root: str
    tools: int
    manifest_errors: int
    conflicts: int
    running: int
    """Requests that run calls at this moment."""
    sandbox: SandboxHealth
    warm: WarmHealth | None
    audit: AuditHealth
    problems: list[str]


class OfferedSandbox(Wire, kw_only=True):
    """The sandbox as ``initialize`` tells of it."""

    backend: str
    version: str
    network: str
    memory: str
    pids: str
    available: bool


class Offered(Wire, kw_only=True):
    """What this daemon brings: its methods, the protocols that it reads, its sandbox and limits."""

    rpc: int
    methods: dict[str, Literal["stable", "experimental"]]
    protocols: list[str]
    exports: list[str]
    sandbox: OfferedSandbox
    limits: dict[str, int]


class OfferedExperimental(Wire, kw_only=True):
    """Where LSP keeps what is not of LSP."""

    tamis: Offered


class ServerCapabilities(Wire, kw_only=True):
    """What the daemon can do; ``position_encoding`` counts all positions from now on."""

    position_encoding: Literal["utf-8", "utf-16", "utf-32"]
    experimental: OfferedExperimental


class ServerInfo(Wire, kw_only=True):
    """The daemon's name and version."""

    name: str
    version: str


class InitializeResult(Wire, kw_only=True):
    """Result of ``initialize``."""

    capabilities: ServerCapabilities
    server_info: ServerInfo


class OpenRpcDocument(Wire, kw_only=True):
    """Result of ``rpc.discover``: the OpenRPC description of this daemon, with what it sends by itself under ``x-``."""

    openrpc: str
    info: dict[str, Any]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
    notifications: list[dict[str, Any]] = msgspec.field(name="x-notifications")
    requests: list[dict[str, Any]] = msgspec.field(name="x-requests")


CallState = Literal["pending", "awaitingApproval", "executing", "completed", "denied", "cancelled"]


class CallEvent(Wire, kw_only=True):
    """Params of ``tool/event``: the state that a call is in now."""

    call_id: str
    state: CallState


NarrowStatus = Literal["success", "error", "denied"]
"""A status as the seeds' records have it: everything but the first and the last is an error."""


class ParsedToolRequest(Wire, kw_only=True):
    """One call that an answer asks for (seed 001 §3.3); ``request_id`` is the ``call_id`` of its result."""

    request_id: str
    tool_name: str
    raw_block: str
    """The exact piece of the text: the block, or the call's part of a block with several calls."""
    args: dict[str, str]
    """Texts as they are, other values as JSON; ``uri_x`` holds the URI that the parameter ``x`` was given by."""


class ToolExecutionResult(Wire, kw_only=True):
    """A result as seed 001 §3.3 has it; ``result`` is the output or the error as text, with secrets masked."""

    request_id: str
    tool_name: str
    status: NarrowStatus
    result: str
    duration_ms: float


StepStop = Literal["noTools", "maxIterations", "loopDetected", "denied", "cancelled"]


class StepResult(Wire, kw_only=True):
    """Result of ``agent/step``. ``parsed_requests`` and ``execution_results`` are seed 001's names and shapes of the same (V22)."""

    response_text: str
    trailing_text: str
    has_tool_requests: bool
    requests: list[ParsedToolRequest]
    results: list[ExecutionResult]
    observation: str
    """What the model reads next; empty when there is nothing to tell it."""
    iteration: int
    """The rounds of this session in which at least one call ran."""
    stop: StepStop | UnsetType = UNSET
    """Why the loop ends here; missing: give the model the observation and go on."""
    explanation: str | UnsetType = UNSET
    """``stop`` in words, with the remedy; with every stop but ``noTools``."""
    parsed_requests: list[ParsedToolRequest]
    execution_results: list[ToolExecutionResult]


class ToolCallRecord(Wire, kw_only=True):
    """``metadata.toolCall`` of a message with role ``tool`` (seed 001 §10.2)."""

    request_id: str
    tool_name: str
    status: NarrowStatus
    duration_ms: float
    raw_args: dict[str, str] | UnsetType = UNSET


class RequestedToolCall(Wire, kw_only=True):
    """One of ``metadata.toolCallsRequested`` of a message with role ``assistant`` (seed 001 §10.2)."""

    request_id: str
    tool_name: str
    args: dict[str, str]
    status: Literal["pending", "awaiting_approval", "executing", "completed", "denied"]
    error: str | UnsetType = UNSET


class MessageMetadata(Wire, kw_only=True):
    """What a message of a session is about; ``stop`` only in the one that explains it."""

    tool_call: ToolCallRecord | UnsetType = UNSET
    tool_calls_requested: list[RequestedToolCall] | UnsetType = UNSET
    more_requested: int | UnsetType = UNSET
    """How many further calls the answer asked for than are listed."""
    stop: StepStop | UnsetType = UNSET


class SessionMessage(Wire, kw_only=True):
    """One message of a session; ``index`` counts from its beginning. Secrets are masked, long contents are cut in their middle."""

    index: int
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    metadata: MessageMetadata


class SessionView(Wire, kw_only=True):
    """Result of ``agent/session``; a session that is not known is ``none`` and empty."""

    session_id: str
    state: Literal["none", "idle", "running"]
    iteration: int
    turn_iteration: int
    """The rounds that count for ``maxIterations``: those since the model last answered without a call."""
    messages: list[SessionMessage]
    dropped: int
    """How many of the oldest messages are no longer kept."""
    next_cursor: str | UnsetType = UNSET


class EndedSession(Wire, kw_only=True):
    """Result of ``agent/end``; ``cancelled`` are the ids of the calls that still ran."""

    ended: bool
    cancelled: list[str]


StepStatus = Literal[
    "pending",
    "running",
    "success",
    "error",
    "timeout",
    "cancelled",
    "denied",
    "approvalTimeout",
    "approvalUnavailable",
    "blocked",
    "skipped",
]


class WorkflowStep(Wire, kw_only=True):
    """One node of a run. ``skipped``: it lies on a branch that was not taken. ``started_ms`` counts from the run's beginning."""

    node_id: str
    type: str
    status: StepStatus
    started_ms: float | UnsetType = UNSET
    duration_ms: float | UnsetType = UNSET
    error: ExecutionError | UnsetType = UNSET


class StepChanged(Wire, kw_only=True):
    """Params of ``workflow/stepChanged``: a node of a running workflow is in another state."""

    workflow_id: str
    call_id: str
    step: WorkflowStep


class WorkflowRunResult(Wire, kw_only=True):
    """Result of ``workflow/run``: the values of the interface's outputs by name, and every node in the file's order."""

    outputs: dict[str, Any]
    steps: list[WorkflowStep]
    status: Status
    call_id: str
    engine: str
    duration_ms: float
    error: ExecutionError | UnsetType = UNSET
    observation: str


class WorkflowSummary(Wire, kw_only=True):
    """One line of ``workflow/list``; ``reason``: why it cannot be run."""

    workflow_id: str
    tool_id: str
    name: str
    description: str
    inputs: list[str]
    outputs: list[str]
    available: bool
    reason: str | UnsetType = UNSET
    source: str


class WorkflowList(Wire, kw_only=True):
    """Result of ``workflow/list``, in the order of ids."""

    workflows: list[WorkflowSummary]


class WorkflowDescription(Wire, kw_only=True):
    """Result of ``workflow/describe``: the tool that agents see (seed 004 §2.3), the file as it is, and what its graph lacks."""

    workflow_id: str
    tool_id: str
    version: str
    definition: dict[str, Any]
    workflow: dict[str, Any]
    problems: list[Problem]
    source: str


class WorkflowGraph(Wire, kw_only=True):
    """Result of ``workflow/graph``; ``timed``: it shows what the last run of the workflow took."""

    format: Literal["mermaid", "svg"]
    text: str
    timed: bool


class StreamItems(Wire, kw_only=True):
    """Result of ``stream/read``: what has come since the last reading. ``done``: nothing more comes; ``error`` says why it ended early."""

    items: list[Any]
    done: bool
    error: ExecutionError | UnsetType = UNSET


class RejectedMethod(Wire, kw_only=True):
    """A method that was not registered, and why."""

    method_name: str
    """Its name as it came; empty where it had none."""
    reason: str


class ServiceRegistration(Wire, kw_only=True):
    """Result of ``service/register``: what stands now, and what was left out."""

    registered: list[str]
    """The names of the methods that are registered."""
    rejected: list[RejectedMethod]
    tool_ids: dict[str, str]
    """Under which id each registered method is a tool."""


class ServiceRemoval(Wire, kw_only=True):
    """Result of ``service/unregister``."""

    removed: list[str]
    """The names of the methods that are gone; empty where there was no such service."""


class ServiceMethods(Wire, kw_only=True):
    """A registered service with the names of its methods."""

    service_name: str
    methods: list[str]


class ServiceList(Wire, kw_only=True):
    """Result of ``service/list``."""

    services: list[ServiceMethods]


class StateValue(Wire, kw_only=True):
    """Result of ``state/get``."""

    found: bool
    value: Any = None
    """What stands at the path; null where nothing does."""


class StateWritten(Wire, kw_only=True):
    """Result of ``state/set``."""

    removed: list[str]
    """Those of the paths to remove at which something stood."""
