// What goes over the wire between Tamis and a host. Written from the Structs by tools/published_contract.py.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A tool was refused for reasons of security so often within a minute that somebody should look at it; for hosts with the capability `events`. */
export interface AbuseSuspected {
  /** The tool's id or an alias. */
  toolId: string;
  /** The call that was one refusal too many. */
  callId: string;
  /** Of the call's `context`; empty without one. */
  sessionId: string;
  /** Of the call's `context`; empty without one. */
  agentId: string;
  /** A sentence for a person or a model. */
  message: string;
}

/** Params of `agent/end`. */
export interface AgentEndParams {
  /** The agent's session. */
  sessionId: string;
}

/** Params of `agent/session`. */
export interface AgentSessionParams {
  /** The agent's session. */
  sessionId: string;
  /** `nextCursor` of an earlier answer. */
  cursor?: string | null;
  /** How many to give at most. */
  limit?: number | null;
}

/** Params of `agent/step`. */
export interface AgentStepParams {
  /** The text. */
  text: string;
  /** The agent's session. */
  sessionId: string;
  /** What the agent may do in this step; laid over the profile. */
  config?: ToolCallConfig | null;
  /** Somebody spoke to the model since its last answer. Default: `false`. */
  newTurn?: boolean;
  /** `false`: the text was cut off. Default: `true`. */
  complete?: boolean;
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
  /** The answer to a question that a result of this same answer held. */
  approval?: GivenApproval | null;
  /** Whether `tool/output` is sent; what `initialize` said when it is not given. */
  output?: "buffer" | "stream" | null;
  /** Whose call it is. */
  context?: Context | null;
  /** Send `$/progress` with it while the request is worked on. */
  workDoneToken?: string | number | null;
}

/** A reading that was not taken: the calls that it would run, and how to get it, by `edits` or by `options`. */
export interface Alternative {
  title: string;
  /** The finding's code in the catalogue. */
  code: string;
  /** The finding's name. */
  slug: string;
  /** Where it stands in the text. */
  range: Range;
  calls: AlternativeCall[];
  edits?: TextEdit[];
  options?: { [name: string]: Json };
}

/** A call as another reading would have it. */
export interface AlternativeCall {
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol: string;
  /** The tool's id or an alias. */
  toolId: string;
  /** The arguments by name. */
  args: { [name: string]: Json };
  /** TAM's number of the step. */
  step?: number;
}

/** An address that a server wants a person to open, and its host. Nothing but the person's own click opens it. */
export interface ApprovalAddress {
  url: string;
  host: string;
}

/** Questions that belong together: those of one text; `index` from zero. */
export interface ApprovalBatch {
  id: string;
  /** The place among the calls of the text, from zero. */
  index: number;
  count: number;
}

/** One of the values of a field, and how it is shown. */
export interface ApprovalChoice {
  value: string;
  title: string;
}

/** What the MCP server of a tool asks while the tool runs, in its own words. `field`: what the options are values of; `form`: what is typed, for hosts that declared `forms`; `url`: what is opened, for the same. */
export interface ApprovalElicitation {
  server: string;
  /** A sentence for a person or a model. */
  message: string;
  field?: string;
  form?: ApprovalField[];
  url?: ApprovalAddress;
}

/** One field of a form. A `string` with `options` is one of them, an `array` several of them; the other words are those of JSON Schema. `error`: what was wrong with it in the answer before, which `default` then holds. */
export interface ApprovalField {
  name: string;
  title: string;
  type: "array" | "boolean" | "integer" | "number" | "string";
  required: boolean;
  description?: string;
  format?: "date" | "date-time" | "email" | "uri";
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  options?: ApprovalChoice[];
  minItems?: number;
  maxItems?: number;
  default?: string | number | boolean | string[];
  error?: string;
}

/** Result of `approval/list`: what holds, and the questions that are open. */
export interface ApprovalList {
  approvals: StandingApproval[];
  open: ApprovalRequest[];
}

/** The node of a workflow that a call is, the innermost where workflows call workflows; `item`: of a `map`, from zero. */
export interface ApprovalNode {
  workflowId: string;
  nodeId: string;
  item?: number;
}

/** One of the answers that a person may choose. */
export interface ApprovalOption {
  optionId: string;
  label: string;
  kind: "allow_always" | "allow_once" | "allow_session" | "reject_always" | "reject_once";
}

/** The host's answer to `tool/requestApproval`; `option_id` belongs to `selected`, `content` to a form: values by field name. */
export interface ApprovalReply {
  outcome: "cancelled" | "selected";
  optionId?: string;
  editedArgs?: { [name: string]: Json };
  comment?: string;
  content?: { [name: string]: Json };
}

/** Params of `tool/requestApproval`, which the daemon asks the host; `token` stands only in a result, `node` where the call is a node of a workflow, `elicitation` where it is no approval but a question of the tool's MCP server. */
export interface ApprovalRequest {
  approvalId: string;
  /** The call's id in this session. */
  callId: string;
  tool: string;
  version: string;
  /** The arguments by name. */
  args: { [name: string]: Json };
  argsPreview: string;
  risk: "high" | "low" | "medium";
  /** What the tool asked for, got and was refused. */
  permissions: Permissions;
  options: ApprovalOption[];
  expiresAt: string;
  batch?: ApprovalBatch;
  node?: ApprovalNode;
  elicitation?: ApprovalElicitation;
  token?: string;
}

/** Params of `tool/approvalResolved`: a question is settled, by an answer or otherwise. */
export interface ApprovalResolved {
  approvalId: string;
  /** The call's id in this session. */
  callId: string;
  outcome: "allowed" | "cancelled" | "denied" | "timeout" | "unavailable";
}

/** Params of `approval/revoke`: an answer by its `id`, all of a tool, or all. */
export interface ApprovalRevokeParams {
  /** Which one, as a list gave it. */
  id?: string | null;
  /** The tool's id or an alias. */
  toolId?: string | null;
  /** `true`: all of them. Default: `false`. */
  all?: boolean;
}

/** Something of warning level that the reader assumed; `fix` would have made it unnecessary. */
export interface Assumption {
  /** The finding's code in the catalogue. */
  code: string;
  /** The finding's name. */
  slug: string;
  /** Where it stands in the text. */
  range: Range;
  /** A sentence for a person or a model. */
  message: string;
  calls: number[];
  /** Edits that make the finding go away. */
  fix?: TextEdit[];
  applicability?: "safe" | "unsafe";
}

/** Whether calls are written down, where, and what keeps them from it. */
export interface AuditHealth {
  enabled: boolean;
  path?: string;
  problem?: string;
}

/** Params of `tool/event`: the state that a call is in now. */
export interface CallEvent {
  /** The call's id in this session. */
  callId: string;
  state: "awaitingApproval" | "cancelled" | "completed" | "denied" | "executing" | "pending";
}

/** A request of the daemon's is no longer of interest; its answer is dropped. */
export interface CancelRequest {
  /** The request's id. */
  id: string | number;
}

/** Result of `tool/cancel`: ids of calls and tasks that are being cancelled (the session's own where it is between two calls), and those that were given but run nowhere. */
export interface CancelResult {
  cancelled: string[];
  notFound: string[];
}

/** What the host can do. */
export interface ClientCapabilities {
  general?: GeneralCapabilities;
  window?: WindowCapabilities;
  experimental?: ExperimentalCapabilities;
}

/** The host's name. */
export interface ClientInfo {
  name: string;
  version?: string;
}

/** Who a call is run for. */
export interface Context {
  sessionId?: string | null;
  agentId?: string | null;
  /** W3C trace context: the calls are children of it, and what they start is told theirs. */
  traceparent?: string | null;
  tracestate?: string | null;
  /** At most 64 by name. Each stands in the place of `@{name}` in the texts of arguments, as they are checked and run. */
  variables?: { [name: string]: string } | null;
}

/** Result of `tool/convert`: the calls in their other form, and what it could not carry over. */
export interface ConvertResult {
  text: string;
  /** What could not be carried over. */
  losses: Loss[];
}

/** One request of a manifest that the policy refused. */
export interface Denied {
  kind: string;
  value: string;
  reason: string;
}

/** Result of `tool/describe`; `definition` is an object, in the form `vcp` the text of a definition block. */
export interface Description {
  /** The definition in the form asked for. */
  definition: { [name: string]: Json } | string;
  /** What could not be carried over. */
  losses: Loss[];
  tokens: number;
}

/** A finding in a text, with its catalogue code and slug. */
export interface Diagnostic {
  /** The finding's code in the catalogue. */
  code: string;
  /** The finding's name. */
  slug: string;
  /** How bad it is. */
  severity: "error" | "hint" | "information" | "warning";
  /** Where it stands in the text. */
  range: Range;
  /** A sentence for a person or a model. */
  message: string;
  /** Edits that make the finding go away. */
  fix?: TextEdit[];
  data?: { [name: string]: Json };
}

/** Result of `agent/end`; `cancelled` are the ids of the calls that still ran. */
export interface EndedSession {
  ended: boolean;
  cancelled: string[];
}

/** Details of a failed run; observations print `text`. */
export interface ErrorDetails {
  text?: string;
  limit?: "cpu" | "files" | "memory" | "processes" | "stderr" | "stdin" | "stdout" | "wall";
  exitCode?: number;
  signal?: string;
  errors?: Problem[];
  deniedHosts?: string[];
  /** The finding's code in the catalogue. */
  code?: string;
  /** The name of the secret that is missing. */
  secret?: string;
  /** The setting of the operator's that is to be written or mended. */
  setting?: string;
  remedy?: string;
  /** Of a workflow: where it failed. */
  node?: FailedNode;
}

/** A model published an event (`PublishEventTool`). */
export interface EventPublished {
  eventId: string;
  eventType: string;
  /** The event's data; empty where the model gave none. */
  payload: { [name: string]: Json };
  /** The call's id in this session. */
  callId: string;
  /** Of the call's `context`; empty without one. */
  sessionId: string;
  /** Of the call's `context`; empty without one. */
  agentId: string;
  /** When it was published (ISO 8601, UTC). */
  time: string;
}

/** Result of `tool/executeText`. */
export interface ExecuteTextResult {
  parse: ParseResult;
  results: ExecutionResult[];
  /** What the model reads next; empty when there is nothing to tell it. */
  observation: string;
  /** Why nothing was run, for a person, where every call of the text was set aside. */
  explanation?: string;
  stoppedAt?: number;
}

/** Why a call did not succeed. */
export interface ExecutionError {
  type: "DependencyError" | "OutputFormatError" | "OutputValidationError" | "ParameterValidationError" | "RateLimited" | "ResourceError" | "SandboxUnavailable" | "ScriptError" | "SecurityError" | "ServiceError" | "TimeoutError" | "UnknownTool" | "WorkflowError";
  /** A sentence for a person or a model. */
  message: string;
  details?: ErrorDetails;
}

/** The outcome of one call, however it ended. */
export interface ExecutionResult {
  /** The call's id in this session. */
  callId: string;
  /** The tool's id or an alias. */
  toolId: string;
  /** The id that the call has in its own text, in protocols that give one (call JSON, Hermes). */
  toolCallId?: string;
  /** The name that the text calls the tool by, where it is not its id: an alias that a prompt showed. Observations use it. */
  calledAs?: string;
  version: string;
  status: "accepted" | "approvalTimeout" | "approvalUnavailable" | "blocked" | "cancelled" | "denied" | "error" | "inputRequired" | "success" | "timeout";
  output?: Json;
  /** Images, sounds and resources of the result as the tool gave them (MCP's content parts), for the host to show; observations name them only. */
  parts?: { [name: string]: Json }[];
  error?: ExecutionError;
  /** Lines of the run, each begun with `stdout: ` or `stderr: `. */
  logs: string[];
  logsTruncated: boolean;
  /** How long it took, in milliseconds. */
  durationMs: number;
  usage: Usage;
  /** The sandbox it ran in; null when nothing ran in one. */
  sandbox: SandboxInfo | null;
  /** What the tool asked for, got and was refused. */
  permissions: Permissions;
  /** How often it was tried; 0 when nothing ran. */
  attempts: number;
  /** Whether this is the stored result of an earlier call. */
  replayed: boolean;
  /** Of a call with a key: whether every daemon of the store sees the key, also after a restart. `false`: the store could not be had, so another process, or a later one, might run the call once more. */
  protected?: boolean;
  /** The task that goes on with the call. */
  taskId?: string;
  approval?: { [name: string]: Json };
  /** What is odd in the arguments of a call that ran all the same: texts that have not the `format` of their schema. */
  warnings?: Problem[];
  /** What the model reads next. */
  observation: string;
}

/** Where LSP keeps what is not of LSP. */
export interface ExperimentalCapabilities {
  tamis?: TamisCapabilities;
}

/** Result of `tool/explain`. */
export interface ExplainResult {
  assumptions: Assumption[];
  alternatives: Alternative[];
}

/** The node that a workflow failed at; `item` counts from zero in the list of a `map`. */
export interface FailedNode {
  nodeId: string;
  type: string;
  status: "accepted" | "approvalTimeout" | "approvalUnavailable" | "blocked" | "cancelled" | "denied" | "error" | "inputRequired" | "success" | "timeout";
  error?: ExecutionError;
  item?: number;
}

/** Result of `parse/feed`: what has become certain with this piece of the text. */
export interface FedText {
  text: string;
  calls: WireCall[];
  /** `callId` of calls that earlier pieces gave: a closer of reasoning shows that they were not meant. */
  retracted: string[];
  partial?: PartialCall;
}

/** What LSP keeps under `general`. */
export interface GeneralCapabilities {
  /** How positions may be counted; `utf-16` when none is offered. */
  positionEncodings?: ("utf-16" | "utf-32" | "utf-8")[];
}

/** A person's answer to the question that an earlier result of this call held. */
export interface GivenApproval {
  token: string;
  optionId: string;
  /** Arguments to run with instead; a value that is left `***` stays what it was. */
  editedArgs?: { [name: string]: Json } | null;
  /** Words for the model, with a refusal. */
  comment?: string | null;
}

/** What of an error's details stands in an observation; the rest of them is not looked at. */
export interface GivenDetails {
  text?: string;
  /** The finding's code in the catalogue. */
  code?: string;
}

/** An error with the fields that an observation needs. */
export interface GivenError {
  type: "DependencyError" | "OutputFormatError" | "OutputValidationError" | "ParameterValidationError" | "RateLimited" | "ResourceError" | "SandboxUnavailable" | "ScriptError" | "SecurityError" | "ServiceError" | "TimeoutError" | "UnknownTool" | "WorkflowError";
  /** A sentence for a person or a model. */
  message: string;
  details?: GivenDetails | null;
}

/** An `ExecutionResult`, or as much of one as an observation needs. `step` is TAM's number, `request_id` what VCP answers to. */
export interface GivenResult {
  /** The tool's id or an alias. */
  toolId: string;
  /** Default: `"success"`. */
  status?: "accepted" | "approvalTimeout" | "approvalUnavailable" | "blocked" | "cancelled" | "denied" | "error" | "inputRequired" | "success" | "timeout";
  /** The call's id in this session. Default: `""`. */
  callId?: string;
  output?: Json;
  error?: GivenError | null;
  /** How long it took, in milliseconds. Default: `0.0`. */
  durationMs?: number;
  /** How often it was tried; 0 when nothing ran. Default: `0`. */
  attempts?: number;
  /** The task that goes on with the call. */
  taskId?: string | null;
  /** What the model reads next. Default: `""`. */
  observation?: string;
  /** TAM's number of the step. */
  step?: number | null;
  requestId?: string | null;
  toolCallId?: string | null;
  calledAs?: string | null;
  /** What a person answered: the `comment` of a refusal, `editedArgs` that it ran with instead. */
  approval?: { [name: string]: Json } | null;
  /** What the host shows of the output; it is named only. */
  parts?: { [name: string]: Json }[] | null;
}

/** Result of `prompt/grammar`: a grammar, or a JSON Schema as text. */
export interface GrammarText {
  text: string;
}

/** What a run was allowed. */
export interface Granted {
  read: string[];
  write: string[];
  hosts: string[];
  capabilities: string[];
  /** Names of secrets, never values; only of a tool that has any. */
  secrets?: string[];
}

/** Result of `server/health`. */
export interface Health {
  status: "degraded" | "ok";
  version: string;
  rpc: number;
  uptimeMs: number;
  root: string;
  tools: number;
  manifestErrors: number;
  conflicts: number;
  /** Requests that run calls at this moment. */
  running: number;
  /** The sandbox it ran in; null when nothing ran in one. */
  sandbox: SandboxHealth;
  warm: WarmHealth | null;
  audit: AuditHealth;
  problems: string[];
}

/** What the host decides for this session. */
export interface InitializationOptions {
  /** `true`: the folder's own settings count as the operator's. `false`: read and check, run nothing and install nothing. Missing: the user's record of trust says whether the folder's own settings count; tools run either way. */
  trusted?: boolean;
  /** Whether findings of JSON Schema are shown, in an editor. Default: `"on"`. */
  schemaDiagnostics?: "off" | "on";
  /** Settings laid over `tamis.toml`, by the same names. */
  settings?: { [name: string]: Json };
}

/** Params of `initialize`. */
export interface InitializeParams {
  /** Who the host is, for questions and records. */
  clientInfo?: ClientInfo;
  /** The session ends when this process ends. */
  processId?: number | null;
  /** Where to look for the root; the first folder that is there. `--root` wins. */
  workspaceFolders?: WorkspaceFolder[] | null;
  /** The root's address, where there are no workspace folders. */
  rootUri?: string | null;
  /** The root's path, where there is no address. */
  rootPath?: string | null;
  /** What the host can do. */
  capabilities?: ClientCapabilities;
  /** What the host decides for this session. */
  initializationOptions?: InitializationOptions;
}

/** Result of `initialize`. */
export interface InitializeResult {
  capabilities: ServerCapabilities;
  serverInfo: ServerInfo;
}

/** A tool given with a request: it guides reading and checking like a registered one. */
export interface InlineTool {
  /** The tool's id or an alias. */
  toolId: string;
  /** Default: `{}`. */
  parameters?: { [name: string]: Json };
}

/** Something that an export could not carry over. */
export interface Loss {
  /** The finding's code in the catalogue. */
  code: string;
  path: string;
  /** A sentence for a person or a model. */
  message: string;
}

/** Why a definition gave no tool, or one that cannot be called. */
export interface ManifestFault {
  path: string;
  /** A sentence for a person or a model. */
  message: string;
  /** From one; 0 where there is no text to point at. */
  line: number;
  column: number;
  /** The id that the manifest declares, as far as it can be read. */
  toolId: string;
}

/** One button of a message. */
export interface MessageAction {
  title: string;
}

/** What a message of a session is about; `stop` only in the one that explains it. */
export interface MessageMetadata {
  toolCall?: ToolCallRecord;
  toolCallsRequested?: RequestedToolCall[];
  /** How many further calls the answer asked for than are listed. */
  moreRequested?: number;
  stop?: "cancelled" | "denied" | "loopDetected" | "maxIterations" | "noTools";
}

/** The requests of one method. */
export interface MethodReport {
  method: string;
  requests: number;
  errors: number;
  /** How long it took, in milliseconds. */
  durationMs: TimeNumbers;
}

/** Everything that was counted since the daemon started. */
export interface MetricsReport {
  uptimeMs: number;
  process: ProcessNumbers;
  /** Calls that run now. */
  running: number;
  calls: number;
  byStatus: { [name: string]: number };
  byErrorType: { [name: string]: number };
  /** Runs in a sandbox that waited (`warm`) or was started for the call (`cold`). */
  starts: { [name: string]: number };
  /** Questions to a person, by answer. */
  approvals: { [name: string]: number };
  scriptCpuSeconds: number;
  tools: ToolReport[];
  methods: MethodReport[];
  droppedLogLines: number;
}

/** The same in the text format of Prometheus. */
export interface MetricsText {
  contentType: string;
  text: string;
}

/** New characters of an argument's value, which has `length` characters with them. */
export interface NewText {
  argument: string;
  text: string;
  length: number;
}

/** Params of `observation/format`. */
export interface ObservationFormatParams {
  /** `ExecutionResult`s, or as much of them as an observation needs. */
  results: GivenResult[];
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol: string;
  /** The shape of ACTION: by tag, or with `tool_id` and `inputs`. Default: `"tag"`. */
  shape?: "inputs" | "tag";
  /** The most characters of the whole text. */
  maxChars?: number | null;
}

/** Result of `observation/format`. */
export interface ObservationText {
  text: string;
}

/** What this daemon brings: its methods, the protocols that it reads, its sandbox and limits. */
export interface Offered {
  rpc: number;
  methods: { [name: string]: "experimental" | "stable" };
  protocols: string[];
  exports: string[];
  /** The sandbox it ran in; null when nothing ran in one. */
  sandbox: OfferedSandbox;
  limits: { [name: string]: number };
}

/** Where LSP keeps what is not of LSP. */
export interface OfferedExperimental {
  tamis: Offered;
}

/** The sandbox as `initialize` tells of it. */
export interface OfferedSandbox {
  backend: string;
  version: string;
  network: string;
  memory: string;
  pids: string;
  available: boolean;
}

/** Result of `rpc.discover`: the OpenRPC description of this daemon, with what it sends by itself under `x-`. */
export interface OpenRpcDocument {
  openrpc: string;
  info: { [name: string]: Json };
  methods: { [name: string]: Json }[];
  components: { [name: string]: Json };
  "x-notifications": { [name: string]: Json }[];
  "x-requests": { [name: string]: Json }[];
}

/** Result of `parse/open`. */
export interface OpenedStream {
  /** The text that `parse/open` began. */
  streamId: string;
}

export interface ParseCloseParams {
  /** The text that `parse/open` began. */
  streamId: string;
  /** `false`: the text was cut off. Default: `true`. */
  complete?: boolean;
  /** Leave out what the host has from `parse/feed`: the texts, and of each call its arguments and their places. Default: `false`. */
  summary?: boolean;
}

export interface ParseFeedParams {
  /** The text that `parse/open` began. */
  streamId: string;
  /** The next piece of the text. */
  chunk: string;
}

export interface ParseOpenParams {
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. Default: `"auto"`. */
  protocol?: string;
  /** Tools of this request only, to read and check with. */
  tools?: InlineTool[];
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
}

/** What was found in a text. */
export interface ParseResult {
  responseText: string;
  trailingText: string;
  blocks: WireBlock[];
  calls: WireCall[];
  diagnostics: Diagnostic[];
  comments: WireComment[];
  /** Where the text is reasoning, in order. */
  reasoning: Range[];
}

/** One call that an answer asks for; `request_id` is the `call_id` of its result. */
export interface ParsedToolRequest {
  requestId: string;
  toolName: string;
  /** The exact piece of the text: the block, or the call's part of a block with several calls. */
  rawBlock: string;
  /** Texts as they are, other values as JSON; `uri_x` holds the URI that the parameter `x` was given by. */
  args: { [name: string]: string };
}

/** What can be seen of a call that is being written; for display only. */
export interface PartialCall {
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol: string;
  /** The tool's id or an alias. */
  toolId?: string;
  done: string[];
  argument?: string;
  new: NewText[];
}

/** What a tool asked for, what it got and what was refused. */
export interface Permissions {
  requested: { [name: string]: Json };
  granted: Granted;
  denied: Denied[];
}

/** Zero-based line and character, in the negotiated encoding. */
export interface Position {
  line: number;
  character: number;
}

/** A finding in arguments, a call or a manifest; `path` is a JSON Pointer. */
export interface Problem {
  /** The finding's code in the catalogue. */
  code: string;
  /** The finding's name. */
  slug: string;
  path: string;
  /** A sentence for a person or a model. */
  message: string;
  expected?: string;
  received?: string;
  suggestion?: string;
  /** Where it stands in the text. */
  range?: Range;
}

/** The daemon's own process. */
export interface ProcessNumbers {
  cpuSeconds: number;
  residentBytes: number;
  openFiles: number;
}

/** Progress of a request that gave a `workDoneToken`. */
export interface Progress {
  token: string | number;
  value: ProgressValue;
}

/** How far the work behind a `workDoneToken` is. */
export interface ProgressValue {
  kind: "begin" | "end" | "report";
  /** The call's id in this session. */
  callId?: string;
  /** A sentence for a person or a model. */
  message?: string;
  percentage?: number;
}

/** Params of `prompt/generate`. */
export interface PromptGenerateParams {
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol?: string | null;
  /** The shape of ACTION: by tag, or with `tool_id` and `inputs`. Default: `"tag"`. */
  shape?: "inputs" | "tag";
  /** Which tools, by id or alias; without it every tool that may be called. */
  toolIds?: string[] | null;
  /** Which tools are wanted. */
  filter?: ToolFilter | null;
  /** How much is said of each tool. Default: `"full"`. */
  style?: "compact" | "full";
  /** How many worked calls to show. Default: `0`. */
  fewShot?: number;
  /** `false`: leave out how to call. Default: `true`. */
  instructions?: boolean;
  /** A text with `{{tools}}` where the definitions go. */
  template?: string | null;
  /** The most tokens of the whole text. */
  maxTokens?: number | null;
  /** Whose prompt it is: the profile of `agentId` decides which tools are in it. */
  context?: Context | null;
}

/** Params of `prompt/grammar`. */
export interface PromptGrammarParams {
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol?: string | null;
  /** The form that is wanted. */
  format: "gbnf" | "jsonSchema";
  /** The shape of ACTION: by tag, or with `tool_id` and `inputs`. Default: `"tag"`. */
  shape?: "inputs" | "tag";
  /** Which tools, by id or alias; without it every tool that may be called. */
  toolIds?: string[] | null;
  /** Which tools are wanted. */
  filter?: ToolFilter | null;
}

/** What a macro engine is told of `{{tools}}`. */
export interface PromptMacro {
  name: string;
  type: string;
  phase: string;
  description: string;
  example: string;
  acceptsArgs: boolean;
  priority: number;
  supported: boolean;
  contextFree: boolean;
}

/** Result of `prompt/generate`. `few_shot` counts the worked calls shown; `notes` say what was left out and why. */
export interface PromptResult {
  text: string;
  /** Another one means other tools. */
  etag: string;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol: string;
  style: string;
  fewShot: number;
  tokens: PromptTokens;
  macro: PromptMacro;
  notes: string[];
}

/** How many tokens a prompt has; `per_tool` is by tool id, without headings and examples. */
export interface PromptTokens {
  total: number;
  exact: boolean;
  perTool: { [name: string]: number };
}

/** An LSP range; `offset` (code points, half open) is there when no encoding was negotiated. */
export interface Range {
  start: Position;
  end: Position;
  offset?: [number, number];
}

/** `options` of whatever reads a text: what is given goes over the settings. */
export interface ReadingOptions {
  reasoningCalls?: "ignore" | "run";
  reasoningTags?: string[];
  assumeOpenReasoning?: boolean;
  fencedCalls?: "auto" | "ignore" | "run";
  allowMultipleBlocks?: boolean;
  stderrFails?: boolean;
  strict?: boolean;
}

/** The registered tools, or what an agent may call of them, are others than before; lists and prompts with another `etag` are out of date. */
export interface RegistryChanged {
  added: string[];
  removed: string[];
  updated: string[];
  errors: ManifestFault[];
  conflicts: ToolConflict[];
  /** Another one means other tools. */
  etag: string;
}

/** What is new, gone and other than before, each as `id@version`, and what is wrong with definitions now. */
export interface RegistryChanges {
  added: string[];
  removed: string[];
  updated: string[];
  errors: ManifestFault[];
  conflicts: ToolConflict[];
  /** Another one means other tools. */
  etag: string;
}

/** A method that was not registered, and why. */
export interface RejectedMethod {
  /** Its name as it came; empty where it had none. */
  methodName: string;
  reason: string;
}

/** Something the reader assumed; `message` is a sentence that a model can act on. */
export interface Repair {
  /** The finding's code in the catalogue. */
  code: string;
  /** The finding's name. */
  slug: string;
  /** Where it stands in the text. */
  range: Range;
  /** A sentence for a person or a model. */
  message: string;
}

/** Result of `tool/repair`: `edits` turn the text that was given into `text`; `calls` have their ranges in `text`. */
export interface RepairResult {
  edits: TextEdit[];
  text: string;
  calls: WireCall[];
}

/** One of `metadata.toolCallsRequested` of a message with role `assistant`. */
export interface RequestedToolCall {
  requestId: string;
  toolName: string;
  /** The arguments by name. */
  args: { [name: string]: string };
  status: "awaiting_approval" | "completed" | "denied" | "executing" | "pending";
  error?: string;
  /** The index of the `tool` message with what came of it, the last one; absent as long as there is none. */
  resultIn?: number;
}

/** Result of `approval/revoke`: the ids that held until now. */
export interface RevokedApprovals {
  revoked: string[];
}

/** The sandbox as it was last tried; `reason` and `remedy` when there is none. */
export interface SandboxHealth {
  available: boolean;
  backend: string;
  version: string;
  network: string;
  memory: string;
  pids: string;
  reason?: string;
  remedy?: string;
}

/** The sandbox a run had. */
export interface SandboxInfo {
  backend: string;
  version: string;
  layers: string[];
  warm: boolean;
}

/** What the daemon can do; `position_encoding` counts all positions from now on. */
export interface ServerCapabilities {
  positionEncoding: "utf-16" | "utf-32" | "utf-8";
  experimental: OfferedExperimental;
}

/** The daemon's name and version. */
export interface ServerInfo {
  name: string;
  version: string;
}

/** Params of `server/metrics`. */
export interface ServerMetricsParams {
  /** `prometheus`: the text that a scraper reads. Default: `"json"`. */
  format?: "json" | "prometheus";
}

/** A method of the host's is no longer waited for; what it still answers is dropped. */
export interface ServiceCancel {
  /** The `callId` of its `service/invoke`. */
  callId: string;
  reason: "cancelled" | "timeout";
}

/** Run a method of a service that the host registered; the result is the tool's output, an error reply its failure. */
export interface ServiceInvoke {
  serviceName: string;
  methodName: string;
  /** The arguments by name. */
  args: { [name: string]: Json };
  /** The call's; `service/cancel` names it. */
  callId: string;
  /** W3C trace context: what the method does is a child of it. */
  traceparent?: string;
  tracestate?: string;
}

/** Result of `service/list`. */
export interface ServiceList {
  services: ServiceMethods[];
}

/** A registered service with the names of its methods. */
export interface ServiceMethods {
  serviceName: string;
  methods: string[];
}

/** Params of `service/register`. */
export interface ServiceRegisterParams {
  /** The service's name; it stands in front of the ids of its tools. */
  serviceName: string;
  /** The methods (`MethodMetadata`): `name`, `description`, `parameters`, `agentCallable` and the rest of the page on services. */
  methods: Json[];
}

/** Result of `service/register`: what stands now, and what was left out. */
export interface ServiceRegistration {
  /** The names of the methods that are registered. */
  registered: string[];
  rejected: RejectedMethod[];
  /** Under which id each registered method is a tool. */
  toolIds: { [name: string]: string };
}

/** Result of `service/unregister`. */
export interface ServiceRemoval {
  /** The names of the methods that are gone; empty where there was no such service. */
  removed: string[];
}

/** Params of `service/unregister`. */
export interface ServiceUnregisterParams {
  /** The service. */
  serviceName: string;
  /** Only these of its methods; all of them without it. */
  methods?: string[] | null;
}

/** One message of a session; `index` counts from its beginning. Secrets are masked, long contents are cut in their middle. */
export interface SessionMessage {
  /** The place among the calls of the text, from zero. */
  index: number;
  role: "assistant" | "system" | "tool" | "user";
  content: string;
  metadata: MessageMetadata;
}

/** Result of `agent/session`; a session that is not known is `none` and empty. */
export interface SessionView {
  sessionId: string;
  state: "idle" | "none" | "running";
  iteration: number;
  /** The rounds that count for `maxIterations`: those since the model last answered without a call. */
  turnIteration: number;
  messages: SessionMessage[];
  /** How many of the oldest messages are no longer kept. */
  dropped: number;
  /** Give it as `cursor` to get the rest. */
  nextCursor?: string;
}

/** May this call run? As LSP's message with buttons, for hosts that declared only that. */
export interface ShowMessageRequest {
  /** LSP's type of message: 2 is a warning. */
  type: number;
  /** A sentence for a person or a model. */
  message: string;
  actions: MessageAction[];
}

/** An answer that holds for later calls of the same tool with the same rights. */
export interface StandingApproval {
  id: string;
  kind: "allow_always" | "allow_session" | "reject_always";
  /** The tool's id or an alias. */
  toolId: string;
  version: string;
  agentId: string;
  sessionId: string;
  /** What the tool asked for, got and was refused. */
  permissions: Granted;
  createdAt: string;
}

/** A tool changed an agent's private state (`UpdatePrivateStateTool`). */
export interface StateChanged {
  scope: "private" | "world";
  /** Whose state it is; empty for calls without `context.agentId`. */
  agentId: string;
  /** What is other than before; `state/get` reads it. */
  keys: string[];
}

/** Params of `state/get`. */
export interface StateGetParams {
  /** The state of the world, or that of one agent. Default: `"world"`. */
  scope?: "private" | "world";
  /** Whose private state; empty: that of calls without `context.agentId`. Default: `""`. */
  agentId?: string;
  /** Where to look, with dots between names; empty: the whole. Default: `""`. */
  path?: string;
}

/** Params of `state/set`. */
export interface StateSetParams {
  /** The state of the world, or that of one agent. Default: `"world"`. */
  scope?: "private" | "world";
  /** Whose private state; empty: that of calls without `context.agentId`. Default: `""`. */
  agentId?: string;
  /** What to put at which path; objects on the way are made. The path `""` replaces the whole, by an object. */
  values?: { [name: string]: Json };
  /** Paths at which nothing stands afterwards; they are removed first. */
  remove?: string[];
}

/** Result of `state/get`. */
export interface StateValue {
  found: boolean;
  /** What stands at the path; null where nothing does. */
  value: Json;
}

/** Result of `state/set`. */
export interface StateWritten {
  /** Those of the paths to remove at which something stood. */
  removed: string[];
}

/** Params of `workflow/stepChanged`: a node of a running workflow is in another state. */
export interface StepChanged {
  workflowId: string;
  /** The call's id in this session. */
  callId: string;
  /** TAM's number of the step. */
  step: WorkflowStep;
}

/** Result of `agent/step`. `parsed_requests` and `execution_results` are the same as records, in the shapes that hosts keep. */
export interface StepResult {
  responseText: string;
  /** Whether `response_text` may be shown to a person: false when a call of the answer was wrong and the model will try again. */
  publishable: boolean;
  trailingText: string;
  hasToolRequests: boolean;
  requests: ParsedToolRequest[];
  results: ExecutionResult[];
  /** What the model reads next; empty when there is nothing to tell it. */
  observation: string;
  /** The rounds of this session in which at least one call ran. */
  iteration: number;
  /** Why the loop ends here; missing: give the model the observation and go on. */
  stop?: "cancelled" | "denied" | "loopDetected" | "maxIterations" | "noTools";
  /** `stop` in words, with the remedy; with `noTools` only where calls were seen and not run. */
  explanation?: string;
  parsedRequests: ParsedToolRequest[];
  executionResults: ToolExecutionResult[];
}

/** Result of `stream/read`: what has come since the last reading. `done`: nothing more comes; `error` says why it ended early. */
export interface StreamItems {
  items: Json[];
  done: boolean;
  error?: ExecutionError;
}

/** Params of `stream/read`. */
export interface StreamReadParams {
  /** The handle that a result gave for its stream. */
  handle: string;
  /** Milliseconds to wait for the first new item. Default: `0`. */
  waitMs?: number;
}

/** What the host can do for tools. */
export interface TamisCapabilities {
  /** `request`: it answers `tool/requestApproval`. Default: `"none"`. */
  approval?: "none" | "poll" | "request";
  /** Whether it also shows the questions of MCP servers that `tool/requestApproval` has with `elicitation`. Default: `false`. */
  elicitation?: boolean;
  /** Whether it shows those of them too that have a form or an address (`elicitation.form`, `elicitation.url`). Default: `false`. */
  forms?: boolean;
  /** Whether it takes `tool/output` unless a request says otherwise. Default: `false`. */
  output?: boolean;
  /** Whether it is told `tool/event`, `workflow/stepChanged` and `abuse/suspected`. Default: `false`. */
  events?: boolean;
  /** Whether it shows tests, in an editor. Default: `false`. */
  tests?: boolean;
}

/** A call that outlives its request. `result` is there when it is `completed`, `error` when it is `failed`; times are ISO 8601. */
export interface Task {
  /** The task that goes on with the call. */
  taskId: string;
  status: "cancelled" | "completed" | "failed" | "inputRequired" | "working";
  createdAt: string;
  endedAt?: string;
  /** The tool's id or an alias. */
  toolId: string;
  /** The call's id in this session. */
  callId: string;
  sessionId?: string;
  progress?: TaskProgress;
  /** While it is `inputRequired`, in `task/get` of the daemon that runs it: the questions that a host who polls answers with `task/answer`. */
  approvals?: ApprovalRequest[];
  result?: ExecutionResult;
  error?: ExecutionError;
}

/** Params of `task/answer`. */
export interface TaskAnswerParams {
  /** The task. */
  taskId: string;
  /** The token of one of the task's `approvals`, and what its person chose. */
  approval: GivenApproval;
}

/** Params of `task/get` and `task/cancel`. */
export interface TaskCancelParams {
  /** The task. */
  taskId: string;
}

/** Params of `task/get` and `task/cancel`. */
export interface TaskGetParams {
  /** The task. */
  taskId: string;
}

/** Result of `task/list`, the newest first; its tasks have no `result`, which `task/get` gives. */
export interface TaskList {
  tasks: Task[];
  /** Give it as `cursor` to get the rest. */
  nextCursor?: string;
}

/** Params of `task/list`. */
export interface TaskListParams {
  /** `nextCursor` of the page before. */
  cursor?: string | null;
  /** Tasks on a page, at most 100. */
  limit?: number | null;
}

/** How far a task is: `progress` of `total` in the tool's own unit, and a few words. */
export interface TaskProgress {
  progress?: number;
  total?: number;
  /** A sentence for a person or a model. */
  message?: string;
}

/** Params of `task/result`. */
export interface TaskResultParams {
  /** The task. */
  taskId: string;
  /** Milliseconds to wait for the end of the task, at most an hour. Default: `0`. */
  waitMs?: number;
}

/** An LSP text edit. */
export interface TextEdit {
  /** Where it stands in the text. */
  range: Range;
  newText: string;
}

/** How long something took, in milliseconds; the quantiles are read off buckets and no finer than these. */
export interface TimeNumbers {
  count: number;
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** Seed 001's `ToolCallConfig`; what is given goes over the agent profile's. A misspelled name must not switch asking off. */
export interface ToolCallConfig {
  enabled?: boolean | null;
  mode?: "auto" | "manual" | null;
  toolToggles?: { [name: string]: boolean } | null;
  defaultToolEnabled?: boolean | null;
  maxIterations?: number | null;
  /** Milliseconds that one call may take. */
  timeout?: number | null;
  requireConfirmation?: boolean | null;
  parallelExecution?: boolean | null;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol?: string | null;
}

/** `metadata.toolCall` of a message with role `tool`. */
export interface ToolCallRecord {
  requestId: string;
  toolName: string;
  status: "denied" | "error" | "success";
  /** How long it took, in milliseconds. */
  durationMs: number;
  rawArgs?: { [name: string]: string };
  /** The index of the `assistant` message that asked for it. */
  requestedIn?: number;
}

/** Params of `tool/cancel`: at least one of them; a call must fit both `callId` and `sessionId` where both are given. */
export interface ToolCancelParams {
  /** The call's id in this session. */
  callId?: string | null;
  /** The task. */
  taskId?: string | null;
  /** The agent's session. */
  sessionId?: string | null;
}

/** Two manifests that claim the same id and version, or the same name. */
export interface ToolConflict {
  /** The tool's id or an alias. */
  toolId: string;
  version: string;
  /** The file that is used; empty when neither is. */
  kept: string;
  dropped: string;
  /** A sentence for a person or a model. */
  message: string;
}

export interface ToolConvertParams {
  /** The form that is wanted: a protocol, or `openai`, `anthropic`, `mcp`. */
  to: string;
  /** The text. */
  text?: string | null;
  /** Calls as `tool/parse` gave them. */
  calls?: { [name: string]: Json }[] | { [name: string]: Json } | null;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. Default: `"auto"`. */
  protocol?: string;
  /** The shape of ACTION: by tag, or with `tool_id` and `inputs`. */
  shape?: "inputs" | "tag" | null;
  /** Tools of this request only, to read and check with. */
  tools?: InlineTool[];
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
}

/** Params of `tool/describe`. */
export interface ToolDescribeParams {
  /** The tool's id or an alias. */
  toolId: string;
  /** The version, or a SemVer range where one is chosen. */
  version?: string | null;
  /** The form that is wanted. Default: `"native"`. */
  as?: "anthropic" | "cursor" | "gemini" | "mcp" | "native" | "openai" | "openaiStrict" | "smolagents" | "vcp";
}

/** Params of `tool/execute`. */
export interface ToolExecuteParams {
  /** Wall time of one call in milliseconds; only lowers the limit. */
  timeoutMs?: number | null;
  /** A key that was used before gives the stored result. Default: `""`. */
  idempotencyKey?: string;
  /** `true`: check everything, run nothing. Default: `false`. */
  dryRun?: boolean;
  /** The `token` of a result that asks, and the option that the person chose. */
  approval?: GivenApproval | null;
  /** Whether `tool/output` is sent; what `initialize` said when it is not given. */
  output?: "buffer" | "stream" | null;
  /** Whose call it is. */
  context?: Context | null;
  /** Send `$/progress` with it while the request is worked on. */
  workDoneToken?: string | number | null;
  /** The tool's id or an alias. */
  toolId?: string | null;
  /** The version, or a SemVer range where one is chosen. */
  version?: string | null;
  /** The arguments by name. */
  args?: { [name: string]: Json };
  /** A call as `tool/parse` gave it, instead of `toolId` and `args`. */
  call?: { [name: string]: Json } | null;
}

/** Params of `tool/executeText`. */
export interface ToolExecuteTextParams {
  /** Wall time of one call in milliseconds; only lowers the limit. */
  timeoutMs?: number | null;
  /** A key that was used before gives the stored result. Default: `""`. */
  idempotencyKey?: string;
  /** `true`: check everything, run nothing. Default: `false`. */
  dryRun?: boolean;
  /** The `token` of a result that asks, and the option that the person chose. */
  approval?: GivenApproval | null;
  /** Whether `tool/output` is sent; what `initialize` said when it is not given. */
  output?: "buffer" | "stream" | null;
  /** Whose call it is. */
  context?: Context | null;
  /** Send `$/progress` with it while the request is worked on. */
  workDoneToken?: string | number | null;
  /** The text. */
  text: string;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. Default: `"auto"`. */
  protocol?: string;
  /** `false`: the text was cut off. Default: `true`. */
  complete?: boolean;
  /** One after the other, or at once (ACTION and VCP only). Default: `"sequential"`. */
  mode?: "parallel" | "sequential";
  /** Whether a failed call stops the rest. */
  onError?: "continue" | "stop" | null;
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
}

/** A result as a record; `result` is the output or the error as text, with secrets masked. */
export interface ToolExecutionResult {
  requestId: string;
  toolName: string;
  status: "denied" | "error" | "success";
  result: string;
  /** How long it took, in milliseconds. */
  durationMs: number;
}

export interface ToolExplainParams {
  /** The text. */
  text: string;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. Default: `"auto"`. */
  protocol?: string;
  /** `false`: the text was cut off. Default: `true`. */
  complete?: boolean;
  /** Tools of this request only, to read and check with. */
  tools?: InlineTool[];
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
}

/** Which tools to list; every given part must fit. */
export interface ToolFilter {
  /** All of these. Default: `[]`. */
  tags?: string[];
  /** What stands before the first colon of the id; empty: ids without one. */
  namespace?: string | null;
  /** Words that are looked for in ids, names, tags, descriptions and parameters; the best come first. */
  query?: string | null;
  /** Only tools that may be called, or only those that may not. */
  callable?: boolean | null;
}

/** Result of `tool/list`, in a stable order. */
export interface ToolList {
  tools: ToolSummary[];
  /** Give it as `cursor` to get the rest. */
  nextCursor?: string;
  /** Another one means other tools. */
  etag: string;
}

/** Params of `tool/list`. */
export interface ToolListParams {
  /** Which tools are wanted. */
  filter?: ToolFilter | null;
  /** `full` adds each tool's definition. Default: `"summary"`. */
  view?: "full" | "summary";
  /** `nextCursor` of an earlier answer. */
  cursor?: string | null;
  /** How many to give at most. */
  limit?: number | null;
}

/** A piece of what a running script writes; all of it comes before the call's response. */
export interface ToolOutput {
  /** The call's id in this session. */
  callId: string;
  /** Counts the pieces of a call from 1. */
  seq: number;
  /** `stdout` or `stderr`. */
  stream: string;
  text: string;
  /** Whether pieces before this one were dropped, because the host read too slowly, or the rest of the stream is over its limit. */
  truncated: boolean;
}

/** Params of `tool/parse`. */
export interface ToolParseParams {
  /** The text. */
  text: string;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. Default: `"auto"`. */
  protocol?: string;
  /** `false`: the text was cut off. Default: `true`. */
  complete?: boolean;
  /** Tools of this request only, to read and check with. */
  tools?: InlineTool[];
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
}

export interface ToolRepairParams {
  /** The text. */
  text: string;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. Default: `"auto"`. */
  protocol?: string;
  /** `false`: the text was cut off. Default: `true`. */
  complete?: boolean;
  /** Tools of this request only, to read and check with. */
  tools?: InlineTool[];
  /** How to read; what is given goes over the settings. */
  options?: ReadingOptions | null;
}

/** The calls of one tool; `other` are those of unknown names, and of tools beyond the first 500. */
export interface ToolReport {
  /** The tool's id or an alias. */
  toolId: string;
  calls: number;
  byStatus: { [name: string]: number };
  /** Runs, with those of retries. */
  attempts: number;
  /** Calls that were answered with a stored result. */
  replayed: number;
  /** How long it took, in milliseconds. */
  durationMs: TimeNumbers;
}

/** One line of `tool/list`. */
export interface ToolSummary {
  /** The tool's id or an alias. */
  toolId: string;
  version: string;
  displayName: string;
  description: string;
  kind: "service" | "tool" | "workflow";
  namespace: string;
  tags: string[];
  callable: boolean;
  available: boolean;
  reason?: string;
  source: string;
  /** The definition in the form asked for. */
  definition?: { [name: string]: Json };
}

/** Params of `tool/validate`: one of `toolId` with `args`, `calls`, `manifest`. */
export interface ToolValidateParams {
  /** The tool's id or an alias. */
  toolId?: string | null;
  /** The arguments by name. */
  args?: { [name: string]: Json } | null;
  /** Calls as `tool/parse` gave them. */
  calls?: { [name: string]: Json }[] | null;
  /** A manifest as an object, or as its text: then problems have ranges. */
  manifest?: { [name: string]: Json } | string | null;
  /** Tools of this request only, to read and check with. */
  tools?: InlineTool[];
}

/** What a run used. */
export interface Usage {
  cpuMs: number;
  maxRssBytes: number;
}

/** Result of `tool/validate`; `coerced` is there exactly when `valid`. */
export interface ValidateResult {
  valid: boolean;
  errors: Problem[];
  warnings: Problem[];
  /** The arguments as the tool gets them; there exactly when `valid`. */
  coerced?: Json;
}

/** Sandboxes that wait for calls; counts since the start, `idle` and `memory_bytes` of now. */
export interface WarmHealth {
  idle: number;
  starting: number;
  hits: number;
  misses: number;
  cold: number;
  refills: number;
  failed: number;
  discarded: { [name: string]: number };
  memoryBytes: number;
}

/** What LSP keeps under `window`. */
export interface WindowCapabilities {
  /** It answers `window/showMessageRequest`: the next best way to ask a person. */
  showMessage?: { [name: string]: Json };
}

/** One block found in a text. */
export interface WireBlock {
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol: string;
  /** Where it stands in the text. */
  range: Range;
  complete: boolean;
}

/** One call as it was read; `args` are uncoerced. */
export interface WireCall {
  /** The call's id in this session. */
  callId: string;
  /** The place among the calls of the text, from zero. */
  index: number;
  /** The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read. */
  protocol: string;
  /** The tool's id or an alias. */
  toolId: string;
  /** The arguments by name. */
  args: { [name: string]: Json };
  /** TAM's number of the step. */
  step?: number;
  onError?: "continue" | "stop";
  retry?: number;
  requestId?: string;
  uris?: { [name: string]: string };
  typeHints?: { [name: string]: string };
  meta?: { [name: string]: string };
  complete: boolean;
  /** Whether it may be run. */
  executable: boolean;
  repairs: Repair[];
  /** Where it stands in the text. */
  range: Range;
  /** Where the tool's id stands. */
  toolIdRange: Range;
  /** Where each argument stands, by JSON Pointer. */
  argRanges: { [name: string]: Range };
}

/** A comment inside a block. */
export interface WireComment {
  /** Where it stands in the text. */
  range: Range;
  text: string;
}

/** Params of `workflow/describe`. */
export interface WorkflowDescribeParams {
  /** The file's name without extension; with `workflow:` before it, the file's own `id` and its path are taken too. */
  workflowId: string;
}

/** Result of `workflow/describe`: the tool that agents see, the file as it is, and what its graph lacks. */
export interface WorkflowDescription {
  workflowId: string;
  /** The tool's id or an alias. */
  toolId: string;
  version: string;
  /** The definition in the form asked for. */
  definition: { [name: string]: Json };
  workflow: { [name: string]: Json };
  problems: Problem[];
  source: string;
}

/** Result of `workflow/graph`; `timed`: it shows what the last run of the workflow took. */
export interface WorkflowGraph {
  format: "mermaid" | "svg";
  text: string;
  timed: boolean;
}

/** Params of `workflow/graph`. */
export interface WorkflowGraphParams {
  /** The workflow's id. */
  workflowId: string;
  /** The form that is wanted. Default: `"mermaid"`. */
  format?: "mermaid" | "svg";
}

/** Result of `workflow/list`, in the order of ids. */
export interface WorkflowList {
  workflows: WorkflowSummary[];
}

/** Params of `workflow/run`. */
export interface WorkflowRunParams {
  /** Wall time of one call in milliseconds; only lowers the limit. */
  timeoutMs?: number | null;
  /** A key that was used before gives the stored result. Default: `""`. */
  idempotencyKey?: string;
  /** `true`: check everything, run nothing. Default: `false`. */
  dryRun?: boolean;
  /** The `token` of a result that asks, and the option that the person chose. */
  approval?: GivenApproval | null;
  /** Whether `tool/output` is sent; what `initialize` said when it is not given. */
  output?: "buffer" | "stream" | null;
  /** Whose call it is. */
  context?: Context | null;
  /** Send `$/progress` with it while the request is worked on. */
  workDoneToken?: string | number | null;
  /** The workflow's id. */
  workflowId: string;
  /** The values of the interface's inputs; those with a default may be missing. */
  inputs?: { [name: string]: Json };
}

/** Result of `workflow/run`: the values of the interface's outputs by name, and every node in the file's order. `replayed` and `approval` are those of an `ExecutionResult`: with `inputRequired` the question and its token. */
export interface WorkflowRunResult {
  outputs: { [name: string]: Json };
  steps: WorkflowStep[];
  status: "accepted" | "approvalTimeout" | "approvalUnavailable" | "blocked" | "cancelled" | "denied" | "error" | "inputRequired" | "success" | "timeout";
  /** The call's id in this session. */
  callId: string;
  engine: string;
  /** How long it took, in milliseconds. */
  durationMs: number;
  error?: ExecutionError;
  /** Whether this is the stored result of an earlier call. */
  replayed: boolean;
  approval?: { [name: string]: Json };
  /** What the model reads next. */
  observation: string;
}

/** One node of a run. `skipped`: it lies on a branch that was not taken. `started_ms` counts from the run's beginning. */
export interface WorkflowStep {
  nodeId: string;
  type: string;
  status: "approvalTimeout" | "approvalUnavailable" | "blocked" | "cancelled" | "denied" | "error" | "pending" | "running" | "skipped" | "success" | "timeout";
  startedMs?: number;
  /** How long it took, in milliseconds. */
  durationMs?: number;
  error?: ExecutionError;
}

/** One line of `workflow/list`; `reason`: why it cannot be run. */
export interface WorkflowSummary {
  workflowId: string;
  /** The tool's id or an alias. */
  toolId: string;
  name: string;
  description: string;
  inputs: string[];
  outputs: string[];
  available: boolean;
  reason?: string;
  source: string;
}

/** A folder that the host has open. */
export interface WorkspaceFolder {
  /** Its address, such as `file:///home/me/tools`. */
  uri: string;
  /** Default: `""`. */
  name?: string;
}

/** The methods of the daemon. */
export interface Methods {
  /** Forgets an agent's session, and cancels what still runs for it. */
  "agent/end": { params: AgentEndParams; result: EndedSession };
  /** What is kept of an agent's session: its messages, whether it runs, and how many rounds it had. */
  "agent/session": { params: AgentSessionParams; result: SessionView };
  /** One round of an agent's loop: reads a model's answer, runs its calls, and writes what the model reads next. */
  "agent/step": { params: AgentStepParams; result: StepResult };
  /** The answers of persons that hold for later calls in this folder, and the questions that are open. */
  "approval/list": { params: { [name: string]: never }; result: ApprovalList };
  /** Forgets answers that hold; the next call is asked about again. */
  "approval/revoke": { params: ApprovalRevokeParams; result: RevokedApprovals };
  /** Begins a session: says who the host is and what it can do. May be left out; may be sent once. */
  initialize: { params: InitializeParams; result: InitializeResult };
  /** Writes results as the text that a model reads next. */
  "observation/format": { params: ObservationFormatParams; result: ObservationText };
  /** Ends a text that came in pieces; gives what `tool/parse` gives of the whole text. */
  "parse/close": { params: ParseCloseParams; result: ParseResult };
  /** Takes the next piece of a text; gives what is certain with it: text to show, and calls. */
  "parse/feed": { params: ParseFeedParams; result: FedText };
  /** Begins a text that comes in pieces. */
  "parse/open": { params: ParseOpenParams; result: OpenedStream };
  /** Writes what a model is told about the tools. */
  "prompt/generate": { params: PromptGenerateParams; result: PromptResult };
  /** Writes a grammar under which a model can only write calls that read back whole. */
  "prompt/grammar": { params: PromptGrammarParams; result: GrammarText };
  /** Reads settings, tools, workflows and the agent profile again, and says what changed since the last reload. */
  "registry/reload": { params: { [name: string]: never }; result: RegistryChanges };
  /** Says what is wrong with definitions, and what changed since the last reload; reads nothing. */
  "registry/status": { params: { [name: string]: never }; result: RegistryChanges };
  /** Gives the OpenRPC document of this daemon; needs neither trust nor tools. */
  "rpc.discover": { params: { [name: string]: never }; result: OpenRpcDocument };
  /** Says how the daemon is: versions, the sandbox, what runs, what is wrong. */
  "server/health": { params: { [name: string]: never }; result: Health };
  /** What was counted since the daemon started: calls, outcomes, times, requests, approvals, its own process. */
  "server/metrics": { params: ServerMetricsParams; result: MetricsReport | MetricsText };
  /** Lists the registered services. */
  "service/list": { params: { [name: string]: never }; result: ServiceList };
  /** Registers a service of the host: the daemon calls its methods with `service/invoke`. A service that is there is replaced. */
  "service/register": { params: ServiceRegisterParams; result: ServiceRegistration };
  /** Takes a service of the host away, or some of its methods. Calls that run are not disturbed. */
  "service/unregister": { params: ServiceUnregisterParams; result: ServiceRemoval };
  /** Ends the session's work: every later request is an error; the notification `exit` ends the daemon. */
  shutdown: { params: { [name: string]: never }; result: null };
  /** Reads the world's state or an agent's private one. */
  "state/get": { params: StateGetParams; result: StateValue };
  /** Changes the world's state, which `ReadWorldStateTool` reads, or an agent's private one. All of it is changed or nothing. */
  "state/set": { params: StateSetParams; result: StateWritten };
  /** Gives what has come in a streamed output since the last reading, waiting for it as long as asked. */
  "stream/read": { params: StreamReadParams; result: StreamItems };
  /** Answers a question that a task has while it is `inputRequired`, and gives how it is then. */
  "task/answer": { params: TaskAnswerParams; result: Task };
  /** Cancels a task, also one of another daemon, and gives how it is then; one that has ended stays as it is. */
  "task/cancel": { params: TaskCancelParams; result: Task };
  /** How a task is. */
  "task/get": { params: TaskGetParams; result: Task };
  /** Lists the tasks of the root, the newest first, also those of other daemons. */
  "task/list": { params: TaskListParams; result: TaskList };
  /** The result of a task's call, waiting for it as long as asked; `accepted` while there is none. */
  "task/result": { params: TaskResultParams; result: ExecutionResult };
  /** Cancels a call, a task, or all that runs for a session; they end soon, with their own results. */
  "tool/cancel": { params: ToolCancelParams; result: CancelResult };
  /** Writes calls in another protocol or a vendor's form; every loss is named. */
  "tool/convert": { params: ToolConvertParams; result: ConvertResult };
  /** Gives the definition of one tool, as it is or in the form of another project. */
  "tool/describe": { params: ToolDescribeParams; result: Description };
  /** Runs one tool in its sandbox; what happened to it is the result's `status`, never an error of the request. */
  "tool/execute": { params: ToolExecuteParams; result: ExecutionResult };
  /** Finds the calls of a model's text, runs them in order and writes one observation for the model. */
  "tool/executeText": { params: ToolExecuteTextParams; result: ExecuteTextResult };
  /** Says what the reader assumed, and the readings that it did not take. */
  "tool/explain": { params: ToolExplainParams; result: ExplainResult };
  /** Lists the registered tools, filtered, in a stable order, in pages. */
  "tool/list": { params: ToolListParams; result: ToolList };
  /** Finds the calls of a model's text, with the place of every part; runs nothing. */
  "tool/parse": { params: ToolParseParams; result: ParseResult };
  /** Gives the safe edits that make a text canonical, and its calls; they are the same before and after. */
  "tool/repair": { params: ToolRepairParams; result: RepairResult };
  /** Checks arguments, calls or a manifest, and coerces what passes; an unknown tool is a problem, not an error. */
  "tool/validate": { params: ToolValidateParams; result: ValidateResult };
  /** The tool that a workflow is to agents, its file as it stands, and what keeps its graph from being run. */
  "workflow/describe": { params: WorkflowDescribeParams; result: WorkflowDescription };
  /** Draws a workflow, with what its last run took where it ran. */
  "workflow/graph": { params: WorkflowGraphParams; result: WorkflowGraph };
  /** Lists the workflows with what they take and give. */
  "workflow/list": { params: { [name: string]: never }; result: WorkflowList };
  /** Runs a workflow as a call of its tool; every node is in `steps`, also those that were not reached. */
  "workflow/run": { params: WorkflowRunParams; result: WorkflowRunResult };
}

/** What the daemon tells by itself. */
export interface Notifications {
  /** A piece of what a running script writes; all of it comes before the call's response. */
  "tool/output": { params: ToolOutput };
  /** Params of `tool/event`: the state that a call is in now. */
  "tool/event": { params: CallEvent };
  /** Params of `tool/approvalResolved`: a question is settled, by an answer or otherwise. */
  "tool/approvalResolved": { params: ApprovalResolved };
  /** A call that outlives its request. `result` is there when it is `completed`, `error` when it is `failed`; times are ISO 8601. */
  "task/changed": { params: Task };
  /** The registered tools, or what an agent may call of them, are others than before; lists and prompts with another `etag` are out of date. */
  "registry/changed": { params: RegistryChanged };
  /** Params of `workflow/stepChanged`: a node of a running workflow is in another state. */
  "workflow/stepChanged": { params: StepChanged };
  /** A method of the host's is no longer waited for; what it still answers is dropped. */
  "service/cancel": { params: ServiceCancel };
  /** A model published an event (`PublishEventTool`). */
  "event/published": { params: EventPublished };
  /** A tool changed an agent's private state (`UpdatePrivateStateTool`). */
  "state/changed": { params: StateChanged };
  /** A tool was refused for reasons of security so often within a minute that somebody should look at it; for hosts with the capability `events`. */
  "abuse/suspected": { params: AbuseSuspected };
  /** Progress of a request that gave a `workDoneToken`. */
  "$/progress": { params: Progress };
  /** A request of the daemon's is no longer of interest; its answer is dropped. */
  "$/cancelRequest": { params: CancelRequest };
}

/** What the daemon asks the host. */
export interface Requests {
  /** Params of `tool/requestApproval`, which the daemon asks the host; `token` stands only in a result, `node` where the call is a node of a workflow, `elicitation` where it is no approval but a question of the tool's MCP server. */
  "tool/requestApproval": { params: ApprovalRequest; result: ApprovalReply };
  /** May this call run? As LSP's message with buttons, for hosts that declared only that. */
  "window/showMessageRequest": { params: ShowMessageRequest; result: MessageAction | null };
  /** Run a method of a service that the host registered; the result is the tool's output, an error reply its failure. */
  "service/invoke": { params: ServiceInvoke; result: Json };
}

/** The numbers of errors by name. */
export interface ErrorCodes {
  /** The message is no JSON. */
  parseError: -32700;
  /** This is no request, or it comes at the wrong time. */
  invalidRequest: -32600;
  /** There is no such method. */
  methodNotFound: -32601;
  /** The params are wrong; the message names the place. */
  invalidParams: -32602;
  /** A fault of the daemon. */
  internalError: -32603;
  /** The request was cancelled, or the daemon is ending. */
  requestCancelled: -32800;
  /** No tool has this id. */
  toolNotFound: 1001;
  /** The tool has no such version. */
  versionUnsatisfied: 1002;
  /** Too much at once; send it again later. */
  overloaded: 1201;
  /** The text is larger than what is read. */
  textTooLarge: 1202;
  /** No task has this id. */
  taskNotFound: 1301;
  /** No question has this id, or it is closed. */
  approvalUnknown: 1401;
  /** The folder is not trusted; nothing is run in it. */
  notTrusted: 1901;
}

/** `data` of the project's own errors. */
export interface ErrorData { code: keyof ErrorCodes; retryable: boolean; hint: string }
