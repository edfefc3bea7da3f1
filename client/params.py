"""What the daemon's methods take beside plain values: dictionaries with the names of the wire. Written by tools/published_contract.py."""

# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Context(TypedDict):
    """Who a call is run for."""

    sessionId: NotRequired[str]
    agentId: NotRequired[str]
    traceparent: NotRequired[str]
    """W3C trace context: the calls are children of it, and what they start is told theirs."""
    tracestate: NotRequired[str]
    variables: NotRequired[dict[str, str]]
    """At most 64 by name. Each stands in the place of `@{name}` in the texts of arguments, as they are checked and run."""


class GivenApproval(TypedDict):
    """A person's answer to the question that an earlier result of this call held."""

    token: str
    optionId: str
    editedArgs: NotRequired[dict[str, Any]]
    """Arguments to run with instead; a value that is left `***` stays what it was."""
    comment: NotRequired[str]
    """Words for the model, with a refusal."""


class GivenDetails(TypedDict):
    """What of an error's details stands in an observation; the rest of them is not looked at."""

    text: NotRequired[str]
    code: NotRequired[str]
    """The finding's code in the catalogue."""


class GivenError(TypedDict):
    """An error with the fields that an observation needs."""

    type: Literal["DependencyError", "OutputFormatError", "OutputValidationError", "ParameterValidationError", "RateLimited", "ResourceError", "SandboxUnavailable", "ScriptError", "SecurityError", "ServiceError", "TimeoutError", "UnknownTool", "WorkflowError"]
    message: str
    """A sentence for a person or a model."""
    details: NotRequired[GivenDetails]


class GivenResult(TypedDict):
    """An `ExecutionResult`, or as much of one as an observation needs. `step` is TAM's number, `request_id` what VCP answers to."""

    toolId: str
    """The tool's id or an alias."""
    status: NotRequired[Literal["accepted", "approvalTimeout", "approvalUnavailable", "blocked", "cancelled", "denied", "error", "inputRequired", "success", "timeout"]]
    callId: NotRequired[str]
    """The call's id in this session."""
    output: NotRequired[Any]
    error: NotRequired[GivenError]
    durationMs: NotRequired[float]
    """How long it took, in milliseconds."""
    attempts: NotRequired[int]
    """How often it was tried; 0 when nothing ran."""
    taskId: NotRequired[str]
    """The task that goes on with the call."""
    observation: NotRequired[str]
    """What the model reads next."""
    step: NotRequired[int]
    """TAM's number of the step."""
    requestId: NotRequired[str]
    toolCallId: NotRequired[str]
    calledAs: NotRequired[str]
    approval: NotRequired[dict[str, Any]]
    """What a person answered: the `comment` of a refusal, `editedArgs` that it ran with instead."""
    parts: NotRequired[list[dict[str, Any]]]
    """What the host shows of the output; it is named only."""


class InlineTool(TypedDict):
    """A tool given with a request: it guides reading and checking like a registered one."""

    toolId: str
    """The tool's id or an alias."""
    parameters: NotRequired[dict[str, Any]]


class ReadingOptions(TypedDict):
    """`options` of whatever reads a text: what is given goes over the settings."""

    reasoningCalls: NotRequired[Literal["ignore", "run"]]
    reasoningTags: NotRequired[list[str]]
    assumeOpenReasoning: NotRequired[bool]
    fencedCalls: NotRequired[Literal["auto", "ignore", "run"]]
    allowMultipleBlocks: NotRequired[bool]
    stderrFails: NotRequired[bool]
    strict: NotRequired[bool]


class ToolCallConfig(TypedDict):
    """Seed 001's `ToolCallConfig`; what is given goes over the agent profile's. A misspelled name must not switch asking off."""

    enabled: NotRequired[bool]
    mode: NotRequired[Literal["auto", "manual"]]
    toolToggles: NotRequired[dict[str, bool]]
    defaultToolEnabled: NotRequired[bool]
    maxIterations: NotRequired[int]
    timeout: NotRequired[int]
    """Milliseconds that one call may take."""
    requireConfirmation: NotRequired[bool]
    parallelExecution: NotRequired[bool]
    protocol: NotRequired[str]
    """The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read."""


class ToolFilter(TypedDict):
    """Which tools to list; every given part must fit."""

    tags: NotRequired[list[str]]
    """All of these."""
    namespace: NotRequired[str]
    """What stands before the first colon of the id; empty: ids without one."""
    query: NotRequired[str]
    """Words that are looked for in ids, names, tags, descriptions and parameters; the best come first."""
    callable: NotRequired[bool]
    """Only tools that may be called, or only those that may not."""
