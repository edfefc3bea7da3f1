"""The wire contract: the msgspec Structs of every request and result.

The single typed source of the public interface; every face (command line, JSON-RPC, LSP) encodes these and nothing else.
Field names are camelCase on the wire. A field that may be missing is ``UNSET`` and left out; a field that may be null is
``None`` and written as ``null``. One module for each concern, and all names here: what is imported from here loads the module
that has it and no other, since a command's start is part of the interface. Must not know how any of it is computed.
"""
# ruff: noqa: I001 (a name that is imported as itself is public for type checkers; sorted, each would be a statement)

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.protocols.contract.agents import (
        EndedSession as EndedSession,
        MessageMetadata as MessageMetadata,
        NarrowStatus as NarrowStatus,
        ParsedToolRequest as ParsedToolRequest,
        RequestedToolCall as RequestedToolCall,
        SessionMessage as SessionMessage,
        SessionView as SessionView,
        StepResult as StepResult,
        StepStop as StepStop,
        ToolCallRecord as ToolCallRecord,
        ToolExecutionResult as ToolExecutionResult,
    )
    from tamis.protocols.contract.approvals import (
        ApprovalAddress as ApprovalAddress,
        ApprovalBatch as ApprovalBatch,
        ApprovalChoice as ApprovalChoice,
        ApprovalElicitation as ApprovalElicitation,
        ApprovalField as ApprovalField,
        ApprovalList as ApprovalList,
        ApprovalNode as ApprovalNode,
        ApprovalOption as ApprovalOption,
        ApprovalOutcome as ApprovalOutcome,
        ApprovalReply as ApprovalReply,
        ApprovalRequest as ApprovalRequest,
        ApprovalResolved as ApprovalResolved,
        Approved as Approved,
        RevokedApprovals as RevokedApprovals,
        StandingApproval as StandingApproval,
    )
    from tamis.protocols.contract.base import (
        RPC_VERSION as RPC_VERSION,
        Position as Position,
        Range as Range,
        TextEdit as TextEdit,
        Wire as Wire,
    )
    from tamis.protocols.contract.calls import (
        Alternative as Alternative,
        AlternativeCall as AlternativeCall,
        Assumption as Assumption,
        ConvertResult as ConvertResult,
        ExplainResult as ExplainResult,
        FedText as FedText,
        NewText as NewText,
        OpenedStream as OpenedStream,
        ParseResult as ParseResult,
        PartialCall as PartialCall,
        RepairResult as RepairResult,
        WireBlock as WireBlock,
        WireCall as WireCall,
        WireComment as WireComment,
    )
    from tamis.protocols.contract.daemon import (
        AuditHealth as AuditHealth,
        Health as Health,
        InitializeResult as InitializeResult,
        Offered as Offered,
        OfferedExperimental as OfferedExperimental,
        OfferedSandbox as OfferedSandbox,
        OpenRpcDocument as OpenRpcDocument,
        SandboxHealth as SandboxHealth,
        ServerCapabilities as ServerCapabilities,
        ServerInfo as ServerInfo,
        WarmHealth as WarmHealth,
    )
    from tamis.protocols.contract.findings import (
        CheckResult as CheckResult,
        Diagnostic as Diagnostic,
        FileDiagnostics as FileDiagnostics,
        Loss as Loss,
        ManifestFault as ManifestFault,
        Problem as Problem,
        Repair as Repair,
    )
    from tamis.protocols.contract.prompts import (
        GrammarText as GrammarText,
        PromptMacro as PromptMacro,
        PromptResult as PromptResult,
        PromptTokens as PromptTokens,
    )
    from tamis.protocols.contract.results import (
        CallEvent as CallEvent,
        CallState as CallState,
        CancelResult as CancelResult,
        Denied as Denied,
        ErrorDetails as ErrorDetails,
        ErrorType as ErrorType,
        ExecuteTextResult as ExecuteTextResult,
        ExecutionError as ExecutionError,
        ExecutionResult as ExecutionResult,
        FailedNode as FailedNode,
        Granted as Granted,
        ObservationText as ObservationText,
        Permissions as Permissions,
        SandboxInfo as SandboxInfo,
        Status as Status,
        Usage as Usage,
    )
    from tamis.protocols.contract.services import (
        RejectedMethod as RejectedMethod,
        ServiceList as ServiceList,
        ServiceMethods as ServiceMethods,
        ServiceRegistration as ServiceRegistration,
        ServiceRemoval as ServiceRemoval,
        StateValue as StateValue,
        StateWritten as StateWritten,
    )
    from tamis.protocols.contract.tasks import (
        Task as Task,
        TaskList as TaskList,
        TaskProgress as TaskProgress,
        TaskStatus as TaskStatus,
    )
    from tamis.protocols.contract.tools import (
        Description as Description,
        RegistryChanges as RegistryChanges,
        ToolConflict as ToolConflict,
        ToolList as ToolList,
        ToolSummary as ToolSummary,
        ValidateResult as ValidateResult,
    )
    from tamis.protocols.contract.workflows import (
        StepChanged as StepChanged,
        StepStatus as StepStatus,
        StreamItems as StreamItems,
        WorkflowDescription as WorkflowDescription,
        WorkflowGraph as WorkflowGraph,
        WorkflowList as WorkflowList,
        WorkflowRunResult as WorkflowRunResult,
        WorkflowStep as WorkflowStep,
        WorkflowSummary as WorkflowSummary,
    )

_HOMES = {
    "agents": "EndedSession MessageMetadata NarrowStatus ParsedToolRequest RequestedToolCall SessionMessage "
    "SessionView StepResult StepStop ToolCallRecord ToolExecutionResult",
    "approvals": "ApprovalAddress ApprovalBatch ApprovalChoice ApprovalElicitation ApprovalField ApprovalList ApprovalNode ApprovalOption ApprovalOutcome ApprovalReply "
    "ApprovalRequest ApprovalResolved Approved RevokedApprovals StandingApproval",
    "base": "Position RPC_VERSION Range TextEdit Wire",
    "calls": "Alternative AlternativeCall Assumption ConvertResult ExplainResult FedText NewText OpenedStream "
    "ParseResult PartialCall RepairResult WireBlock WireCall WireComment",
    "daemon": "AuditHealth Health InitializeResult Offered OfferedExperimental OfferedSandbox OpenRpcDocument "
    "SandboxHealth ServerCapabilities ServerInfo WarmHealth",
    "findings": "CheckResult Diagnostic FileDiagnostics Loss ManifestFault Problem Repair",
    "prompts": "GrammarText PromptMacro PromptResult PromptTokens",
    "results": "CallEvent CallState CancelResult Denied ErrorDetails ErrorType ExecuteTextResult ExecutionError "
    "ExecutionResult FailedNode Granted ObservationText Permissions SandboxInfo Status Usage",
    "services": "RejectedMethod ServiceList ServiceMethods ServiceRegistration ServiceRemoval StateValue StateWritten",
    "tasks": "Task TaskList TaskProgress TaskStatus",
    "tools": "Description RegistryChanges ToolConflict ToolList ToolSummary ValidateResult",
    "workflows": "StepChanged StepStatus StreamItems WorkflowDescription WorkflowGraph WorkflowList WorkflowRunResult "
    "WorkflowStep WorkflowSummary",
}
"""Module → the names that are in it."""
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
