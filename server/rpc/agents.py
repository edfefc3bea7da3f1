"""An agent's rounds for a host (``agent/step``), and its sessions. Holds no rules of its own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tamis.protocols.contract import EndedSession, SessionView, StepResult
from tamis.protocols.manifest.profile import MAX_TIMEOUT_MS
from tamis.protocols.model import Document
from tamis.server.rpc.approvals import GivenApproval, check_token, token_answer, unknown
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_page, check_protocol, check_size, given
from tamis.server.rpc.running import Context, Running
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.agents.session import MAX_WAITING, TooManyWaitingError
from tamis.server.runtime.agents.step import StepRequest, step
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown

SessionId = Annotated[str, msgspec.Meta(min_length=1, max_length=1_024)]


class ToolCallConfig(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Seed 001's ``ToolCallConfig``; what is given goes over the agent profile's. A misspelled name must not switch asking off."""

    enabled: bool | None = None
    mode: Literal["auto", "manual"] | None = None
    tool_toggles: dict[str, bool] | None = None
    default_tool_enabled: bool | None = None
    max_iterations: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None
    timeout: Annotated[int, msgspec.Meta(ge=1, le=MAX_TIMEOUT_MS)] | None = None
    """Milliseconds that one call may take."""
    require_confirmation: bool | None = None
    parallel_execution: bool | None = None
    protocol: str | None = None


class AgentStep(Params, kw_only=True):
    """Params of ``agent/step``."""

    text: str
    session_id: SessionId
    config: ToolCallConfig | None = None
    new_turn: bool = False
    """Somebody spoke to the model since its last answer."""
    complete: bool = True
    options: ReadingOptions | None = None
    approval: GivenApproval | None = None
    """The answer to a question that a result of this same answer held."""
    output: Literal["stream", "buffer"] | None = None
    context: Context | None = None
    work_done_token: str | int | None = None


class AgentSession(Params, kw_only=True):
    """Params of ``agent/session``."""

    session_id: SessionId
    cursor: str | None = None
    limit: int | None = None


class AgentEnd(Params, kw_only=True):
    """Params of ``agent/end``."""

    session_id: SessionId


def methods(host: Host) -> Group:
    """The methods of this group."""
    runs = host.runs

    async def agent_step(request: Request, params: AgentStep) -> StepResult:
        """One round of an agent's loop: reads a model's answer, runs its calls, and writes what the model reads next."""
        runs.check_trust()
        check_size(params.text)
        check_token(host, params.approval)
        runtime = host.runtime
        config: dict[str, Any] = {} if params.config is None else msgspec.to_builtins(params.config)
        if "protocol" in config:
            check_protocol(config["protocol"])
        asked = params.context or Context()
        asked = msgspec.structs.replace(asked, session_id=params.session_id)
        running = Running(output=params.output, context=asked, work_done_token=params.work_done_token)
        asked = StepRequest(
            text=params.text,
            session_id=params.session_id,
            config=config,
            new_turn=params.new_turn,
            approval=token_answer(params.approval, lenient=True),
            encoding=host.encoding,
        )

        def read(text: str, protocol: str) -> Document:
            check_protocol(protocol)
            return runtime.read(text, protocol, complete=params.complete, options=given(params.options))

        try:
            with runs.counted():
                # who runs rounds reads notifications, also without an initialize
                context = runs.call_context(request, running).having(on_event=runs.tell_state)
                return await step(asked, context, runtime.parts.sessions, read)
        except ApprovalUnknown as error:
            raise unknown(error) from None
        except TooManyWaitingError:
            text = f"{MAX_WAITING} steps of this session wait already"
            raise named_error("overloaded", text, "wait for their results", retryable=True) from None

    def session(_request: Request, params: AgentSession) -> SessionView:
        """What is kept of an agent's session: its messages, whether it runs, and how many rounds it had."""
        check_page(params.cursor, params.limit)
        return host.runtime.parts.sessions.view(params.session_id, params.cursor, params.limit)

    def end(_request: Request, params: AgentEnd) -> EndedSession:
        """Forgets an agent's session, and cancels what still runs for it."""
        cancelled = host.runtime.parts.sessions.end(params.session_id)
        host.runtime.parts.approvals.standing.forget_session(params.session_id)
        return EndedSession(ended=cancelled is not None, cancelled=cancelled or [])

    return {
        "agent/step": (AgentStep, agent_step),
        "agent/session": (AgentSession, session),
        "agent/end": (AgentEnd, end),
    }
