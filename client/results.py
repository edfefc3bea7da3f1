"""What the daemon gives and asks: Structs of its results, notifications and requests. Written by tools/published_contract.py.

A field that the daemon leaves out is ``None`` here. Names are those of the wire in lower case with ``_``.
"""

# fmt: off

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Result(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Base of all of them."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data with the names of the wire; what is not there is left out. ``json.dumps`` takes it."""
        return msgspec.to_builtins(self)


class AbuseSuspected(Result, kw_only=True):
    """A tool was refused for reasons of security so often within a minute that somebody should look at it; for hosts with the capability `events`."""

    tool_id: str
    """The tool's id or an alias."""
    call_id: str
    """The call that was one refusal too many."""
    session_id: str
    """Of the call's `context`; empty without one."""
    agent_id: str
    """Of the call's `context`; empty without one."""
    message: str
    """A sentence for a person or a model."""


class Alternative(Result, kw_only=True):
    """A reading that was not taken: the calls that it would run, and how to get it, by `edits` or by `options`."""

    title: str
    code: str
    """The finding's code in the catalogue."""
    slug: str
    """The finding's name."""
    range: Range
    """Where it stands in the text."""
    calls: list[AlternativeCall]
    edits: list[TextEdit] | None = None
    options: dict[str, Any] | None = None


class AlternativeCall(Result, kw_only=True):
    """A call as another reading would have it."""

    protocol: str
    """The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read."""
    tool_id: str
    """The tool's id or an alias."""
    args: dict[str, Any]
    """The arguments by name."""
    step: int | None = None
    """TAM's number of the step."""


class ApprovalAddress(Result, kw_only=True):
    """An address that a server wants a person to open, and its host. Nothing but the person's own click opens it."""

    url: str
    host: str


class ApprovalBatch(Result, kw_only=True):
    """Questions that belong together: those of one text; `index` from zero."""

    id: str
    index: int
    """The place among the calls of the text, from zero."""
    count: int


class ApprovalChoice(Result, kw_only=True):
    """One of the values of a field, and how it is shown."""

    value: str
    title: str


class ApprovalElicitation(Result, kw_only=True):
    """What the MCP server of a tool asks while the tool runs, in its own words. `field`: what the options are values of; `form`: what is typed, for hosts that declared `forms`; `url`: what is opened, for the same."""

    server: str
    message: str
    """A sentence for a person or a model."""
    field: str | None = None
    form: list[ApprovalField] | None = None
    url: ApprovalAddress | None = None


class ApprovalField(Result, kw_only=True):
    """One field of a form. A `string` with `options` is one of them, an `array` several of them; the other words are those of JSON Schema. `error`: what was wrong with it in the answer before, which `default` then holds."""

    name: str
    title: str
    type: Literal["array", "boolean", "integer", "number", "string"]
    required: bool
    description: str | None = None
    format: Literal["date", "date-time", "email", "uri"] | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    options: list[ApprovalChoice] | None = None
    min_items: int | None = None
    max_items: int | None = None
    default: str | float | bool | list[str] | None = None
    error: str | None = None


class ApprovalList(Result, kw_only=True):
    """Result of `approval/list`: what holds, and the questions that are open."""

    approvals: list[StandingApproval]
    open: list[ApprovalRequest]


class ApprovalNode(Result, kw_only=True):
    """The node of a workflow that a call is, the innermost where workflows call workflows; `item`: of a `map`, from zero."""

    workflow_id: str
    node_id: str
    item: int | None = None


class ApprovalOption(Result, kw_only=True):
    """One of the answers that a person may choose."""

    option_id: str
    label: str
    kind: Literal["allow_always", "allow_once", "allow_session", "reject_always", "reject_once"]


class ApprovalReply(Result, kw_only=True):
    """The host's answer to `tool/requestApproval`; `option_id` belongs to `selected`, `content` to a form: values by field name."""

    outcome: Literal["cancelled", "selected"]
    option_id: str | None = None
    edited_args: dict[str, Any] | None = None
    comment: str | None = None
    content: dict[str, Any] | None = None


class ApprovalRequest(Result, kw_only=True):
    """Params of `tool/requestApproval`, which the daemon asks the host; `token` stands only in a result, `node` where the call is a node of a workflow, `elicitation` where it is no approval but a question of the tool's MCP server."""

    approval_id: str
    call_id: str
    """The call's id in this session."""
    tool: str
    version: str
    args: dict[str, Any]
    """The arguments by name."""
    args_preview: str
    risk: Literal["high", "low", "medium"]
    permissions: Permissions
    """What the tool asked for, got and was refused."""
    options: list[ApprovalOption]
    expires_at: str
    batch: ApprovalBatch | None = None
    node: ApprovalNode | None = None
    elicitation: ApprovalElicitation | None = None
    token: str | None = None


class ApprovalResolved(Result, kw_only=True):
    """Params of `tool/approvalResolved`: a question is settled, by an answer or otherwise."""

    approval_id: str
    call_id: str
    """The call's id in this session."""
    outcome: Literal["allowed", "cancelled", "denied", "timeout", "unavailable"]


class Assumption(Result, kw_only=True):
    """Something of warning level that the reader assumed; `fix` would have made it unnecessary."""

    code: str
    """The finding's code in the catalogue."""
    slug: str
    """The finding's name."""
    range: Range
    """Where it stands in the text."""
    message: str
    """A sentence for a person or a model."""
    calls: list[int]
    fix: list[TextEdit] | None = None
    """Edits that make the finding go away."""
    applicability: Literal["safe", "unsafe"] | None = None


class AuditHealth(Result, kw_only=True):
    """Whether calls are written down, where, and what keeps them from it."""

    enabled: bool
    path: str | None = None
    problem: str | None = None


class CallEvent(Result, kw_only=True):
    """Params of `tool/event`: the state that a call is in now."""

    call_id: str
    """The call's id in this session."""
    state: Literal["awaitingApproval", "cancelled", "completed", "denied", "executing", "pending"]


class CancelRequest(Result, kw_only=True):
    """A request of the daemon's is no longer of interest; its answer is dropped."""

    id: str | int
    """The request's id."""


class CancelResult(Result, kw_only=True):
    """Result of `tool/cancel`: ids of calls and tasks that are being cancelled (the session's own where it is between two calls), and those that were given but run nowhere."""

    cancelled: list[str]
    not_found: list[str]


class ConvertResult(Result, kw_only=True):
    """Result of `tool/convert`: the calls in their other form, and what it could not carry over."""

    text: str
    losses: list[Loss]
    """What could not be carried over."""


class Denied(Result, kw_only=True):
    """One request of a manifest that the policy refused."""

    kind: str
    value: str
    reason: str


class Description(Result, kw_only=True):
    """Result of `tool/describe`; `definition` is an object, in the form `vcp` the text of a definition block."""

    definition: dict[str, Any] | str
    """The definition in the form asked for."""
    losses: list[Loss]
    """What could not be carried over."""
    tokens: int


class Diagnostic(Result, kw_only=True):
    """A finding in a text, with its catalogue code and slug."""

    code: str
    """The finding's code in the catalogue."""
    slug: str
    """The finding's name."""
    severity: Literal["error", "hint", "information", "warning"]
    """How bad it is."""
    range: Range
    """Where it stands in the text."""
    message: str
    """A sentence for a person or a model."""
    fix: list[TextEdit] | None = None
    """Edits that make the finding go away."""
    data: dict[str, Any] | None = None


class EndedSession(Result, kw_only=True):
    """Result of `agent/end`; `cancelled` are the ids of the calls that still ran."""

    ended: bool
    cancelled: list[str]


class ErrorDetails(Result, kw_only=True):
    """Details of a failed run; observations print `text`."""

    text: str | None = None
    limit: Literal["cpu", "files", "memory", "processes", "stderr", "stdin", "stdout", "wall"] | None = None
    exit_code: int | None = None
    signal: str | None = None
    errors: list[Problem] | None = None
    denied_hosts: list[str] | None = None
    code: str | None = None
    """The finding's code in the catalogue."""
    secret: str | None = None
    """The name of the secret that is missing."""
    setting: str | None = None
    """The setting of the operator's that is to be written or mended."""
    remedy: str | None = None
    node: FailedNode | None = None
    """Of a workflow: where it failed."""


class EventPublished(Result, kw_only=True):
    """A model published an event (`PublishEventTool`)."""

    event_id: str
    event_type: str
    payload: dict[str, Any]
    """The event's data; empty where the model gave none."""
    call_id: str
    """The call's id in this session."""
    session_id: str
    """Of the call's `context`; empty without one."""
    agent_id: str
    """Of the call's `context`; empty without one."""
    time: str
    """When it was published (ISO 8601, UTC)."""


class ExecuteTextResult(Result, kw_only=True):
    """Result of `tool/executeText`."""

    parse: ParseResult
    results: list[ExecutionResult]
    observation: str
    """What the model reads next; empty when there is nothing to tell it."""
    explanation: str | None = None
    """Why nothing was run, for a person, where every call of the text was set aside."""
    stopped_at: int | None = None


class ExecutionError(Result, kw_only=True):
    """Why a call did not succeed."""

    type: Literal["DependencyError", "OutputFormatError", "OutputValidationError", "ParameterValidationError", "RateLimited", "ResourceError", "SandboxUnavailable", "ScriptError", "SecurityError", "ServiceError", "TimeoutError", "UnknownTool", "WorkflowError"]
    message: str
    """A sentence for a person or a model."""
    details: ErrorDetails | None = None


class ExecutionResult(Result, kw_only=True):
    """The outcome of one call, however it ended."""

    call_id: str
    """The call's id in this session."""
    tool_id: str
    """The tool's id or an alias."""
    version: str
    status: Literal["accepted", "approvalTimeout", "approvalUnavailable", "blocked", "cancelled", "denied", "error", "inputRequired", "success", "timeout"]
    logs: list[str]
    """Lines of the run, each begun with `stdout: ` or `stderr: `."""
    logs_truncated: bool
    duration_ms: float
    """How long it took, in milliseconds."""
    usage: Usage
    sandbox: SandboxInfo | None
    """The sandbox it ran in; null when nothing ran in one."""
    permissions: Permissions
    """What the tool asked for, got and was refused."""
    attempts: int
    """How often it was tried; 0 when nothing ran."""
    replayed: bool
    """Whether this is the stored result of an earlier call."""
    observation: str
    """What the model reads next."""
    tool_call_id: str | None = None
    """The id that the call has in its own text, in protocols that give one (call JSON, Hermes)."""
    called_as: str | None = None
    """The name that the text calls the tool by, where it is not its id: an alias that a prompt showed. Observations use it."""
    output: Any = None
    parts: list[dict[str, Any]] | None = None
    """Images, sounds and resources of the result as the tool gave them (MCP's content parts), for the host to show; observations name them only."""
    error: ExecutionError | None = None
    protected: bool | None = None
    """Of a call with a key: whether every daemon of the store sees the key, also after a restart. `false`: the store could not be had, so another process, or a later one, might run the call once more."""
    task_id: str | None = None
    """The task that goes on with the call."""
    approval: dict[str, Any] | None = None
    warnings: list[Problem] | None = None
    """What is odd in the arguments of a call that ran all the same: texts that have not the `format` of their schema."""


class ExplainResult(Result, kw_only=True):
    """Result of `tool/explain`."""

    assumptions: list[Assumption]
    alternatives: list[Alternative]


class FailedNode(Result, kw_only=True):
    """The node that a workflow failed at; `item` counts from zero in the list of a `map`."""

    node_id: str
    type: str
    status: Literal["accepted", "approvalTimeout", "approvalUnavailable", "blocked", "cancelled", "denied", "error", "inputRequired", "success", "timeout"]
    error: ExecutionError | None = None
    item: int | None = None


class FedText(Result, kw_only=True):
    """Result of `parse/feed`: what has become certain with this piece of the text."""

    text: str
    calls: list[WireCall]
    retracted: list[str]
    """`callId` of calls that earlier pieces gave: a closer of reasoning shows that they were not meant."""
    partial: PartialCall | None = None


class GrammarText(Result, kw_only=True):
    """Result of `prompt/grammar`: a grammar, or a JSON Schema as text."""

    text: str


class Granted(Result, kw_only=True):
    """What a run was allowed."""

    read: list[str]
    write: list[str]
    hosts: list[str]
    capabilities: list[str]
    secrets: list[str] | None = None
    """Names of secrets, never values; only of a tool that has any."""


class Health(Result, kw_only=True):
    """Result of `server/health`."""

    status: Literal["degraded", "ok"]
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
    """The sandbox it ran in; null when nothing ran in one."""
    warm: WarmHealth | None
    audit: AuditHealth
    problems: list[str]


class InitializeResult(Result, kw_only=True):
    """Result of `initialize`."""

    capabilities: ServerCapabilities
    server_info: ServerInfo


class Loss(Result, kw_only=True):
    """Something that an export could not carry over."""

    code: str
    """The finding's code in the catalogue."""
    path: str
    message: str
    """A sentence for a person or a model."""


class ManifestFault(Result, kw_only=True):
    """Why a definition gave no tool, or one that cannot be called."""

    path: str
    message: str
    """A sentence for a person or a model."""
    line: int
    """From one; 0 where there is no text to point at."""
    column: int
    tool_id: str
    """The id that the manifest declares, as far as it can be read."""


class MessageAction(Result, kw_only=True):
    """One button of a message."""

    title: str


class MessageMetadata(Result, kw_only=True):
    """What a message of a session is about; `stop` only in the one that explains it."""

    tool_call: ToolCallRecord | None = None
    tool_calls_requested: list[RequestedToolCall] | None = None
    more_requested: int | None = None
    """How many further calls the answer asked for than are listed."""
    stop: Literal["cancelled", "denied", "loopDetected", "maxIterations", "noTools"] | None = None


class MethodReport(Result, kw_only=True):
    """The requests of one method."""

    method: str
    requests: int
    errors: int
    duration_ms: TimeNumbers
    """How long it took, in milliseconds."""


class MetricsReport(Result, kw_only=True):
    """Everything that was counted since the daemon started."""

    uptime_ms: int
    process: ProcessNumbers
    running: int
    """Calls that run now."""
    calls: int
    by_status: dict[str, int]
    by_error_type: dict[str, int]
    starts: dict[str, int]
    """Runs in a sandbox that waited (`warm`) or was started for the call (`cold`)."""
    approvals: dict[str, int]
    """Questions to a person, by answer."""
    script_cpu_seconds: float
    tools: list[ToolReport]
    methods: list[MethodReport]
    dropped_log_lines: int


class MetricsText(Result, kw_only=True):
    """The same in the text format of Prometheus."""

    content_type: str
    text: str


class NewText(Result, kw_only=True):
    """New characters of an argument's value, which has `length` characters with them."""

    argument: str
    text: str
    length: int


class ObservationText(Result, kw_only=True):
    """Result of `observation/format`."""

    text: str


class Offered(Result, kw_only=True):
    """What this daemon brings: its methods, the protocols that it reads, its sandbox and limits."""

    rpc: int
    methods: dict[str, Literal["experimental", "stable"]]
    protocols: list[str]
    exports: list[str]
    sandbox: OfferedSandbox
    """The sandbox it ran in; null when nothing ran in one."""
    limits: dict[str, int]


class OfferedExperimental(Result, kw_only=True):
    """Where LSP keeps what is not of LSP."""

    tamis: Offered


class OfferedSandbox(Result, kw_only=True):
    """The sandbox as `initialize` tells of it."""

    backend: str
    version: str
    network: str
    memory: str
    pids: str
    available: bool


class OpenRpcDocument(Result, kw_only=True):
    """Result of `rpc.discover`: the OpenRPC description of this daemon, with what it sends by itself under `x-`."""

    openrpc: str
    info: dict[str, Any]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
    x_notifications: list[dict[str, Any]] = msgspec.field(name="x-notifications")
    x_requests: list[dict[str, Any]] = msgspec.field(name="x-requests")


class OpenedStream(Result, kw_only=True):
    """Result of `parse/open`."""

    stream_id: str
    """The text that `parse/open` began."""


class ParseResult(Result, kw_only=True):
    """What was found in a text."""

    response_text: str
    trailing_text: str
    blocks: list[WireBlock]
    calls: list[WireCall]
    diagnostics: list[Diagnostic]
    comments: list[WireComment]
    reasoning: list[Range]
    """Where the text is reasoning, in order."""


class ParsedToolRequest(Result, kw_only=True):
    """One call that an answer asks for; `request_id` is the `call_id` of its result."""

    request_id: str
    tool_name: str
    raw_block: str
    """The exact piece of the text: the block, or the call's part of a block with several calls."""
    args: dict[str, str]
    """Texts as they are, other values as JSON; `uri_x` holds the URI that the parameter `x` was given by."""


class PartialCall(Result, kw_only=True):
    """What can be seen of a call that is being written; for display only."""

    protocol: str
    """The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read."""
    done: list[str]
    new: list[NewText]
    tool_id: str | None = None
    """The tool's id or an alias."""
    argument: str | None = None


class Permissions(Result, kw_only=True):
    """What a tool asked for, what it got and what was refused."""

    requested: dict[str, Any]
    granted: Granted
    denied: list[Denied]


class Position(Result, kw_only=True):
    """Zero-based line and character, in the negotiated encoding."""

    line: int
    character: int


class Problem(Result, kw_only=True):
    """A finding in arguments, a call or a manifest; `path` is a JSON Pointer."""

    code: str
    """The finding's code in the catalogue."""
    slug: str
    """The finding's name."""
    path: str
    message: str
    """A sentence for a person or a model."""
    expected: str | None = None
    received: str | None = None
    suggestion: str | None = None
    range: Range | None = None
    """Where it stands in the text."""


class ProcessNumbers(Result, kw_only=True):
    """The daemon's own process."""

    cpu_seconds: float
    resident_bytes: int
    open_files: int


class Progress(Result, kw_only=True):
    """Progress of a request that gave a `workDoneToken`."""

    token: str | int
    value: ProgressValue


class ProgressValue(Result, kw_only=True):
    """How far the work behind a `workDoneToken` is."""

    kind: Literal["begin", "end", "report"]
    call_id: str | None = None
    """The call's id in this session."""
    message: str | None = None
    """A sentence for a person or a model."""
    percentage: float | None = None


class PromptMacro(Result, kw_only=True):
    """What a macro engine is told of `{{tools}}`."""

    name: str
    type: str
    phase: str
    description: str
    example: str
    accepts_args: bool
    priority: int
    supported: bool
    context_free: bool


class PromptResult(Result, kw_only=True):
    """Result of `prompt/generate`. `few_shot` counts the worked calls shown; `notes` say what was left out and why."""

    text: str
    etag: str
    """Another one means other tools."""
    protocol: str
    """The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read."""
    style: str
    few_shot: int
    tokens: PromptTokens
    macro: PromptMacro
    notes: list[str]


class PromptTokens(Result, kw_only=True):
    """How many tokens a prompt has; `per_tool` is by tool id, without headings and examples."""

    total: int
    exact: bool
    per_tool: dict[str, int]


class Range(Result, kw_only=True):
    """An LSP range; `offset` (code points, half open) is there when no encoding was negotiated."""

    start: Position
    end: Position
    offset: tuple[int, int] | None = None


class RegistryChanged(Result, kw_only=True):
    """The registered tools, or what an agent may call of them, are others than before; lists and prompts with another `etag` are out of date."""

    added: list[str]
    removed: list[str]
    updated: list[str]
    errors: list[ManifestFault]
    conflicts: list[ToolConflict]
    etag: str
    """Another one means other tools."""


class RegistryChanges(Result, kw_only=True):
    """What is new, gone and other than before, each as `id@version`, and what is wrong with definitions now."""

    added: list[str]
    removed: list[str]
    updated: list[str]
    errors: list[ManifestFault]
    conflicts: list[ToolConflict]
    etag: str
    """Another one means other tools."""


class RejectedMethod(Result, kw_only=True):
    """A method that was not registered, and why."""

    method_name: str
    """Its name as it came; empty where it had none."""
    reason: str


class Repair(Result, kw_only=True):
    """Something the reader assumed; `message` is a sentence that a model can act on."""

    code: str
    """The finding's code in the catalogue."""
    slug: str
    """The finding's name."""
    range: Range
    """Where it stands in the text."""
    message: str
    """A sentence for a person or a model."""


class RepairResult(Result, kw_only=True):
    """Result of `tool/repair`: `edits` turn the text that was given into `text`; `calls` have their ranges in `text`."""

    edits: list[TextEdit]
    text: str
    calls: list[WireCall]


class RequestedToolCall(Result, kw_only=True):
    """One of `metadata.toolCallsRequested` of a message with role `assistant`."""

    request_id: str
    tool_name: str
    args: dict[str, str]
    """The arguments by name."""
    status: Literal["awaiting_approval", "completed", "denied", "executing", "pending"]
    error: str | None = None
    result_in: int | None = None
    """The index of the `tool` message with what came of it, the last one; absent as long as there is none."""


class RevokedApprovals(Result, kw_only=True):
    """Result of `approval/revoke`: the ids that held until now."""

    revoked: list[str]


class SandboxHealth(Result, kw_only=True):
    """The sandbox as it was last tried; `reason` and `remedy` when there is none."""

    available: bool
    backend: str
    version: str
    network: str
    memory: str
    pids: str
    reason: str | None = None
    remedy: str | None = None


class SandboxInfo(Result, kw_only=True):
    """The sandbox a run had."""

    backend: str
    version: str
    layers: list[str]
    warm: bool


class ServerCapabilities(Result, kw_only=True):
    """What the daemon can do; `position_encoding` counts all positions from now on."""

    position_encoding: Literal["utf-16", "utf-32", "utf-8"]
    experimental: OfferedExperimental


class ServerInfo(Result, kw_only=True):
    """The daemon's name and version."""

    name: str
    version: str


class ServiceCancel(Result, kw_only=True):
    """A method of the host's is no longer waited for; what it still answers is dropped."""

    call_id: str
    """The `callId` of its `service/invoke`."""
    reason: Literal["cancelled", "timeout"]


class ServiceInvoke(Result, kw_only=True):
    """Run a method of a service that the host registered; the result is the tool's output, an error reply its failure."""

    service_name: str
    method_name: str
    args: dict[str, Any]
    """The arguments by name."""
    call_id: str
    """The call's; `service/cancel` names it."""
    traceparent: str | None = None
    """W3C trace context: what the method does is a child of it."""
    tracestate: str | None = None


class ServiceList(Result, kw_only=True):
    """Result of `service/list`."""

    services: list[ServiceMethods]


class ServiceMethods(Result, kw_only=True):
    """A registered service with the names of its methods."""

    service_name: str
    methods: list[str]


class ServiceRegistration(Result, kw_only=True):
    """Result of `service/register`: what stands now, and what was left out."""

    registered: list[str]
    """The names of the methods that are registered."""
    rejected: list[RejectedMethod]
    tool_ids: dict[str, str]
    """Under which id each registered method is a tool."""


class ServiceRemoval(Result, kw_only=True):
    """Result of `service/unregister`."""

    removed: list[str]
    """The names of the methods that are gone; empty where there was no such service."""


class SessionMessage(Result, kw_only=True):
    """One message of a session; `index` counts from its beginning. Secrets are masked, long contents are cut in their middle."""

    index: int
    """The place among the calls of the text, from zero."""
    role: Literal["assistant", "system", "tool", "user"]
    content: str
    metadata: MessageMetadata


class SessionView(Result, kw_only=True):
    """Result of `agent/session`; a session that is not known is `none` and empty."""

    session_id: str
    state: Literal["idle", "none", "running"]
    iteration: int
    turn_iteration: int
    """The rounds that count for `maxIterations`: those since the model last answered without a call."""
    messages: list[SessionMessage]
    dropped: int
    """How many of the oldest messages are no longer kept."""
    next_cursor: str | None = None
    """Give it as `cursor` to get the rest."""


class ShowMessageRequest(Result, kw_only=True):
    """May this call run? As LSP's message with buttons, for hosts that declared only that."""

    type: int
    """LSP's type of message: 2 is a warning."""
    message: str
    """A sentence for a person or a model."""
    actions: list[MessageAction]


class StandingApproval(Result, kw_only=True):
    """An answer that holds for later calls of the same tool with the same rights."""

    id: str
    kind: Literal["allow_always", "allow_session", "reject_always"]
    tool_id: str
    """The tool's id or an alias."""
    version: str
    agent_id: str
    session_id: str
    permissions: Granted
    """What the tool asked for, got and was refused."""
    created_at: str


class StateChanged(Result, kw_only=True):
    """A tool changed an agent's private state (`UpdatePrivateStateTool`)."""

    scope: Literal["private", "world"]
    agent_id: str
    """Whose state it is; empty for calls without `context.agentId`."""
    keys: list[str]
    """What is other than before; `state/get` reads it."""


class StateValue(Result, kw_only=True):
    """Result of `state/get`."""

    found: bool
    value: Any
    """What stands at the path; null where nothing does."""


class StateWritten(Result, kw_only=True):
    """Result of `state/set`."""

    removed: list[str]
    """Those of the paths to remove at which something stood."""


class StepChanged(Result, kw_only=True):
    """Params of `workflow/stepChanged`: a node of a running workflow is in another state."""

    workflow_id: str
    call_id: str
    """The call's id in this session."""
    step: WorkflowStep
    """TAM's number of the step."""


class StepResult(Result, kw_only=True):
    """Result of `agent/step`. `parsed_requests` and `execution_results` are the same as records, in the shapes that hosts keep."""

    response_text: str
    publishable: bool
    """Whether `response_text` may be shown to a person: false when a call of the answer was wrong and the model will try again."""
    trailing_text: str
    has_tool_requests: bool
    requests: list[ParsedToolRequest]
    results: list[ExecutionResult]
    observation: str
    """What the model reads next; empty when there is nothing to tell it."""
    iteration: int
    """The rounds of this session in which at least one call ran."""
    parsed_requests: list[ParsedToolRequest]
    execution_results: list[ToolExecutionResult]
    stop: Literal["cancelled", "denied", "loopDetected", "maxIterations", "noTools"] | None = None
    """Why the loop ends here; missing: give the model the observation and go on."""
    explanation: str | None = None
    """`stop` in words, with the remedy; with `noTools` only where calls were seen and not run."""


class StreamItems(Result, kw_only=True):
    """Result of `stream/read`: what has come since the last reading. `done`: nothing more comes; `error` says why it ended early."""

    items: list[Any]
    done: bool
    error: ExecutionError | None = None


class Task(Result, kw_only=True):
    """A call that outlives its request. `result` is there when it is `completed`, `error` when it is `failed`; times are ISO 8601."""

    task_id: str
    """The task that goes on with the call."""
    status: Literal["cancelled", "completed", "failed", "inputRequired", "working"]
    created_at: str
    tool_id: str
    """The tool's id or an alias."""
    call_id: str
    """The call's id in this session."""
    ended_at: str | None = None
    session_id: str | None = None
    progress: TaskProgress | None = None
    approvals: list[ApprovalRequest] | None = None
    """While it is `inputRequired`, in `task/get` of the daemon that runs it: the questions that a host who polls answers with `task/answer`."""
    result: ExecutionResult | None = None
    error: ExecutionError | None = None


class TaskList(Result, kw_only=True):
    """Result of `task/list`, the newest first; its tasks have no `result`, which `task/get` gives."""

    tasks: list[Task]
    next_cursor: str | None = None
    """Give it as `cursor` to get the rest."""


class TaskProgress(Result, kw_only=True):
    """How far a task is: `progress` of `total` in the tool's own unit, and a few words."""

    progress: float | None = None
    total: float | None = None
    message: str | None = None
    """A sentence for a person or a model."""


class TextEdit(Result, kw_only=True):
    """An LSP text edit."""

    range: Range
    """Where it stands in the text."""
    new_text: str


class TimeNumbers(Result, kw_only=True):
    """How long something took, in milliseconds; the quantiles are read off buckets and no finer than these."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class ToolCallRecord(Result, kw_only=True):
    """`metadata.toolCall` of a message with role `tool`."""

    request_id: str
    tool_name: str
    status: Literal["denied", "error", "success"]
    duration_ms: float
    """How long it took, in milliseconds."""
    raw_args: dict[str, str] | None = None
    requested_in: int | None = None
    """The index of the `assistant` message that asked for it."""


class ToolConflict(Result, kw_only=True):
    """Two manifests that claim the same id and version, or the same name."""

    tool_id: str
    """The tool's id or an alias."""
    version: str
    kept: str
    """The file that is used; empty when neither is."""
    dropped: str
    message: str
    """A sentence for a person or a model."""


class ToolExecutionResult(Result, kw_only=True):
    """A result as a record; `result` is the output or the error as text, with secrets masked."""

    request_id: str
    tool_name: str
    status: Literal["denied", "error", "success"]
    result: str
    duration_ms: float
    """How long it took, in milliseconds."""


class ToolList(Result, kw_only=True):
    """Result of `tool/list`, in a stable order."""

    tools: list[ToolSummary]
    etag: str
    """Another one means other tools."""
    next_cursor: str | None = None
    """Give it as `cursor` to get the rest."""


class ToolOutput(Result, kw_only=True):
    """A piece of what a running script writes; all of it comes before the call's response."""

    call_id: str
    """The call's id in this session."""
    seq: int
    """Counts the pieces of a call from 1."""
    stream: str
    """`stdout` or `stderr`."""
    text: str
    truncated: bool
    """Whether pieces before this one were dropped, because the host read too slowly, or the rest of the stream is over its limit."""


class ToolReport(Result, kw_only=True):
    """The calls of one tool; `other` are those of unknown names, and of tools beyond the first 500."""

    tool_id: str
    """The tool's id or an alias."""
    calls: int
    by_status: dict[str, int]
    attempts: int
    """Runs, with those of retries."""
    replayed: int
    """Calls that were answered with a stored result."""
    duration_ms: TimeNumbers
    """How long it took, in milliseconds."""


class ToolSummary(Result, kw_only=True):
    """One line of `tool/list`."""

    tool_id: str
    """The tool's id or an alias."""
    version: str
    display_name: str
    description: str
    kind: Literal["service", "tool", "workflow"]
    namespace: str
    tags: list[str]
    callable: bool
    available: bool
    source: str
    reason: str | None = None
    definition: dict[str, Any] | None = None
    """The definition in the form asked for."""


class Usage(Result, kw_only=True):
    """What a run used."""

    cpu_ms: float
    max_rss_bytes: int


class ValidateResult(Result, kw_only=True):
    """Result of `tool/validate`; `coerced` is there exactly when `valid`."""

    valid: bool
    errors: list[Problem]
    warnings: list[Problem]
    coerced: Any = None
    """The arguments as the tool gets them; there exactly when `valid`."""


class WarmHealth(Result, kw_only=True):
    """Sandboxes that wait for calls; counts since the start, `idle` and `memory_bytes` of now."""

    idle: int
    starting: int
    hits: int
    misses: int
    cold: int
    refills: int
    failed: int
    discarded: dict[str, int]
    memory_bytes: int


class WireBlock(Result, kw_only=True):
    """One block found in a text."""

    protocol: str
    """The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read."""
    range: Range
    """Where it stands in the text."""
    complete: bool


class WireCall(Result, kw_only=True):
    """One call as it was read; `args` are uncoerced."""

    call_id: str
    """The call's id in this session."""
    index: int
    """The place among the calls of the text, from zero."""
    protocol: str
    """The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read."""
    tool_id: str
    """The tool's id or an alias."""
    args: dict[str, Any]
    """The arguments by name."""
    complete: bool
    executable: bool
    """Whether it may be run."""
    repairs: list[Repair]
    range: Range
    """Where it stands in the text."""
    tool_id_range: Range
    """Where the tool's id stands."""
    arg_ranges: dict[str, Range]
    """Where each argument stands, by JSON Pointer."""
    step: int | None = None
    """TAM's number of the step."""
    on_error: Literal["continue", "stop"] | None = None
    retry: int | None = None
    request_id: str | None = None
    uris: dict[str, str] | None = None
    type_hints: dict[str, str] | None = None
    meta: dict[str, str] | None = None


class WireComment(Result, kw_only=True):
    """A comment inside a block."""

    range: Range
    """Where it stands in the text."""
    text: str


class WorkflowDescription(Result, kw_only=True):
    """Result of `workflow/describe`: the tool that agents see, the file as it is, and what its graph lacks."""

    workflow_id: str
    tool_id: str
    """The tool's id or an alias."""
    version: str
    definition: dict[str, Any]
    """The definition in the form asked for."""
    workflow: dict[str, Any]
    problems: list[Problem]
    source: str


class WorkflowGraph(Result, kw_only=True):
    """Result of `workflow/graph`; `timed`: it shows what the last run of the workflow took."""

    format: Literal["mermaid", "svg"]
    text: str
    timed: bool


class WorkflowList(Result, kw_only=True):
    """Result of `workflow/list`, in the order of ids."""

    workflows: list[WorkflowSummary]


class WorkflowRunResult(Result, kw_only=True):
    """Result of `workflow/run`: the values of the interface's outputs by name, and every node in the file's order. `replayed` and `approval` are those of an `ExecutionResult`: with `inputRequired` the question and its token."""

    outputs: dict[str, Any]
    steps: list[WorkflowStep]
    status: Literal["accepted", "approvalTimeout", "approvalUnavailable", "blocked", "cancelled", "denied", "error", "inputRequired", "success", "timeout"]
    call_id: str
    """The call's id in this session."""
    engine: str
    duration_ms: float
    """How long it took, in milliseconds."""
    replayed: bool
    """Whether this is the stored result of an earlier call."""
    observation: str
    """What the model reads next."""
    error: ExecutionError | None = None
    approval: dict[str, Any] | None = None


class WorkflowStep(Result, kw_only=True):
    """One node of a run. `skipped`: it lies on a branch that was not taken. `started_ms` counts from the run's beginning."""

    node_id: str
    type: str
    status: Literal["approvalTimeout", "approvalUnavailable", "blocked", "cancelled", "denied", "error", "pending", "running", "skipped", "success", "timeout"]
    started_ms: float | None = None
    duration_ms: float | None = None
    """How long it took, in milliseconds."""
    error: ExecutionError | None = None


class WorkflowSummary(Result, kw_only=True):
    """One line of `workflow/list`; `reason`: why it cannot be run."""

    workflow_id: str
    tool_id: str
    """The tool's id or an alias."""
    name: str
    description: str
    inputs: list[str]
    outputs: list[str]
    available: bool
    source: str
    reason: str | None = None
