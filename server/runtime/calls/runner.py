"""What runs a call, and what it is given: a call that was let through, with its arguments checked and its rights granted.

A runner judges what happened into the result; it does not decide whether a call may run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import (
    ErrorDetails,
    ErrorType,
    ExecutionError,
    ExecutionResult,
    Granted,
    Permissions,
    Status,
    Usage,
)
from tamis.protocols.manifest.reading import Execution, WorkflowHandler
from tamis.protocols.model import Call
from tamis.server.runtime.policy.secrets import SecretFault
from tamis.server.runtime.tools.builtin import READER, ScriptTarget
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    from tamis.protocols.contract import ApprovalElicitation, ApprovalOption, Task
    from tamis.server.runtime.calls.model import CallContext, CallRequest, Host, Reply
    from tamis.server.runtime.handlers.mcp.servers import McpServers
    from tamis.server.runtime.handlers.service.state import States
    from tamis.server.runtime.handlers.workflow.streams import Workflows
    from tamis.server.runtime.observe.trail import Trail
    from tamis.server.runtime.policy.permissions import Grant
    from tamis.server.runtime.policy.secret_values import SecretValues
    from tamis.server.runtime.settings.config import Settings
    from tamis.server.runtime.tools.host_services import HostServices


class Invocation(msgspec.Struct, kw_only=True):
    """One call that may run. A runner fills ``result``: status, output or error, logs, usage, sandbox."""

    request: CallRequest
    tool: Tool
    args: dict[str, Any]
    target: ScriptTarget | None
    """The script that is run; None where the handler is none of scripts."""
    rights: Grant
    context: CallContext
    trail: Trail
    result: ExecutionResult
    run_call: Callable[[CallRequest, CallContext, int], Awaitable[ExecutionResult]]
    """How a call that this one makes is run: as any other, up to so many times while it fails."""
    contents: str = ""
    """What the folder held that a person allowed to be run; empty where nobody had to be asked."""

    @property
    def services(self) -> RunnerServices:
        """What it may use of its runtime."""
        return self.context.services.handlers

    @property
    def timeout_ms(self) -> int:
        """How long one attempt of this call may take (``effective_timeout_ms``), a script no longer than its call says besides."""
        own = effective_timeout_ms(self.tool, self.context, self.request.timeout_ms)
        asked = None if self.target is None else self.target.timeout_ms
        return own if asked is None else min(own, asked)


def effective_timeout_ms(tool: Tool | None, context: CallContext, asked_ms: int | None) -> int:
    """How long one attempt of a call may take, in milliseconds: the least of what operator, agent, manifest and request say.

    The operator's word is ``engine.wallMs`` for a workflow, ``tasks.wallMs`` for an asynchronous tool and what runs inside of its call, else
    ``sandbox.wallMs``. ``tool`` is None where the name fits none.
    """
    settings, execution = context.settings, Execution() if tool is None else tool.manifest.execution
    if tool is not None and isinstance(tool.manifest.handler, WorkflowHandler) and tool.tool_id != READER:
        wall = settings.engine.wall_ms
    elif context.in_task or execution.mode == "async":
        wall = settings.tasks.wall_ms
    else:
        wall = settings.sandbox.wall_ms
    asked = (wall, context.agent.timeout_ms, execution.timeout_ms, execution.limits.get("wallMs"), asked_ms)
    return max(1, min(ms for ms in asked if ms is not None))


class McpProblems(Protocol):
    """What is known of MCP servers without starting one."""

    def problem(self, server: str, /) -> str:
        """Why a server cannot be asked now; empty when it can."""
        ...


class HandlerServices(Protocol):
    """What decides whether a tool's handler can run now."""

    @property
    def settings(self) -> Settings:
        """Those in force."""
        ...

    @property
    def host(self) -> Host | None:
        """Who is asked for the host's services; None where there is no one."""
        ...

    @property
    def host_services(self) -> HostServices:
        """Those that the host has registered."""
        ...

    @property
    def mcp(self) -> McpProblems:
        """The MCP servers of the settings."""
        ...


class HostConnection(Protocol):
    """The host as it is now: another may come while calls run."""

    @property
    def host(self) -> Host | None:
        """Who can be asked; None on the command line, where there is no one."""
        ...

    @property
    def stays(self) -> bool:
        """Whether this process stays when a call was answered: then asynchronous tools become tasks, else they are waited for."""
        ...

    def tell(self, method: str, params: object) -> None:
        """Tells the host, if there is one."""
        ...


class TaskLookup(Protocol):
    """The tasks, as far as a call may ask about them."""

    async def status(self, task_id: str) -> Task | None:
        """A task with its result; None when there is no such task."""
        ...


class Elicitation(Protocol):
    """The person, as far as the MCP server of a call may ask."""

    async def elicit(self, call: Invocation, asked: ApprovalElicitation, options: tuple[ApprovalOption, ...]) -> Reply:
        """Puts the server's question to a person."""
        ...


class RunnerServices(HandlerServices, HostConnection, Protocol):
    """What a running call may use of its runtime, each made when it is first asked for."""

    @property
    def host(self) -> Host | None:
        """Who is asked for the host's services; None where there is no one."""
        ...

    @property
    def mcp(self) -> McpServers:
        """The MCP servers of the settings, those that run among them."""
        ...

    @property
    def secrets(self) -> SecretValues:
        """The values of the operator's secrets."""
        ...

    @property
    def states(self) -> States:
        """The world's state, and each agent's private one."""
        ...

    @property
    def workflows(self) -> Workflows:
        """Runs of workflows and their streams."""
        ...

    @property
    def tasks(self) -> TaskLookup:
        """What became of asynchronous calls."""
        ...

    @property
    def approvals(self) -> Elicitation:
        """Who is asked for an MCP server."""
        ...


class Runner(Protocol):
    """Runs the calls of one type of handler."""

    @property
    def problem_type(self) -> ErrorType:
        """The error type of a ``problem``."""
        ...

    def problem(self, tool: Tool, services: HandlerServices) -> str:
        """Why a tool of this type cannot be called now, cause and remedy; empty when it can. Cheap: lists ask it too."""
        ...

    async def run(self, call: Invocation) -> None:
        """Runs the call once. Raises ``Stopped`` for a call that was not started, or that ended by time or a cancel."""
        ...


# The result of a call before anything ran, and the error of one that did not succeed. Data only.


def failure(error_type: ErrorType, message: str, **details: Any) -> ExecutionError:
    """An error with details, leaving out what is empty."""
    fields = {name: value for name, value in details.items() if value not in (None, "", [], ())}
    return ExecutionError(type=error_type, message=message, details=ErrorDetails(**fields) if fields else UNSET)


def secret_failure(message: str, fault: SecretFault) -> ExecutionError:
    """The error of a call that lacks a secret, with which it is and what the operator has to write."""
    return failure(
        "SecurityError", message, code=fault.code, secret=fault.name, setting=fault.setting, remedy=fault.remedy
    )


def empty_result(
    call_id: str, tool_id: str, status: Status = "error", *, version: str = "", call: Call | None = None
) -> ExecutionResult:
    """The result of a call of which nothing was run: no usage, no rights, no output. ``call``: as it was read, if it was."""
    return ExecutionResult(
        call_id=call_id,
        tool_id=tool_id,
        tool_call_id=UNSET if call is None else call.meta.get("id", UNSET),
        version=version,
        status=status,
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
