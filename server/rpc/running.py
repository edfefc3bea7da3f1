"""Running calls (``tool/execute``, ``tool/executeText``) and what a call runs under for a host. Holds no rules of its own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from tamis.protocols.contract import CallEvent, ExecuteTextResult, ExecutionResult
from tamis.server.rpc.approvals import GivenApproval, check_token, token_answer, unknown, with_ladder
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, check_size, given
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.calls.checking import MAX_VARIABLES
from tamis.server.runtime.calls.model import CallContext, CallRequest, OnProgress, State
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, check_approval
from tamis.server.runtime.observe.tracing import read_trace
from tamis.server.runtime.observe.trail import Caller
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

# What running calls write, as ``tool/output`` notifications.


class Shown:
    """The output of the calls of one request. ``send`` takes the params and whether they may be dropped, and gives whether they went out."""

    def __init__(self, send: Callable[[dict[str, Any], bool], bool]) -> None:
        self._send = send
        self._numbers: dict[str, int] = {}
        self._lost: set[str] = set()

    def piece(self, call_id: str, stream: str, text: str) -> None:
        """More of a stream."""
        if self._tell(call_id, stream, text, cut=False):
            self._lost.discard(call_id)
        else:
            self._lost.add(call_id)

    def cut(self, call_id: str, stream: str) -> None:
        """The rest of a stream is over its limit."""
        self._tell(call_id, stream, "", cut=True)

    def _tell(self, call_id: str, stream: str, text: str, *, cut: bool) -> bool:
        number = self._numbers[call_id] = self._numbers.get(call_id, 0) + 1
        truncated = cut or call_id in self._lost
        told = {"callId": call_id, "seq": number, "stream": stream, "text": text, "truncated": truncated}
        return self._send(told, not cut)


class Context(Params, kw_only=True):
    """Who a call is run for."""

    session_id: str | None = None
    agent_id: str | None = None
    traceparent: str | None = None
    """W3C trace context: the calls are children of it, and what they start is told theirs."""
    tracestate: str | None = None
    variables: dict[str, str] | None = None
    """At most 64 by name. Each stands in the place of `@{name}` in the texts of arguments, as they are checked and run."""


class Running(Params, kw_only=True):
    """What every method that runs calls may be given."""

    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    idempotency_key: str = ""
    dry_run: bool = False
    approval: GivenApproval | None = None
    output: Literal["stream", "buffer"] | None = None
    context: Context | None = None
    work_done_token: str | int | None = None


class Execute(Running, kw_only=True):
    """Params of ``tool/execute``."""

    tool_id: str | None = None
    version: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    call: dict[str, Any] | None = None


class ExecuteText(Running, kw_only=True):
    """Params of ``tool/executeText``."""

    text: str
    protocol: str = "auto"
    complete: bool = True
    mode: Literal["sequential", "parallel"] = "sequential"
    on_error: Literal["stop", "continue"] | None = None
    options: ReadingOptions | None = None


class Runs:
    """Calls that a client had run, numbered over the session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._calls = 0

    def number(self) -> int:
        """The next call's or text's number."""
        self._calls += 1
        return self._calls

    @contextmanager
    def counted(self) -> Generator[None]:
        """Counts what runs, for ``server/health``."""
        runtime = self._host.runtime
        runtime.running += 1
        try:
            yield
        finally:
            runtime.running -= 1

    def check_trust(self) -> None:
        """Refuses to run anything in a folder that is not trusted (1901)."""
        if not self._host.trusted:
            hint = "initialize with initializationOptions.trusted: true, or let the user trust the folder"
            raise named_error("notTrusted", "this folder is not trusted; nothing is run in it", hint)

    def call_context(self, request: Request, params: Running) -> CallContext:
        """What a call of this request runs under."""
        host = self._host
        streams = params.output == "stream" or (params.output is None and host.streams)
        asked = params.context or Context()
        if asked.variables and len(asked.variables) > MAX_VARIABLES:
            raise RpcError(
                INVALID_PARAMS, f"context.variables names {len(asked.variables)}; at most {MAX_VARIABLES} fit"
            )
        shown = Shown(self._show) if streams else None
        context = host.runtime.call_context(
            on_output=None if shown is None else shown.piece,
            # to a client that never said who it is, all that comes is an answer
            on_event=self.tell_state if host.encoding is not None else None,
            on_progress=None if params.work_done_token is None else self._reporter(params.work_done_token),
            cancelled=request.cancelled,
            caller=Caller("rpc", asked.session_id or "", asked.agent_id or "", host.client or UNSET),
            trace=read_trace(asked.traceparent, asked.tracestate),
        ).having(variables=asked.variables or {})
        return with_ladder(host, context if shown is None else context.having(on_cut=shown.cut))

    async def execute(self, request: Request, params: Execute) -> ExecutionResult:
        """Runs one tool in its sandbox; what happened to it is the result's ``status``, never an error of the request."""
        self.check_trust()
        name = params.tool_id if params.call is None else _tool_of(params.call)
        if name is None:
            raise RpcError(INVALID_PARAMS, "give toolId and args, or call")
        number = self.number()
        given_id = params.call.get("callId") if params.call is not None else None
        call_id = given_id if isinstance(given_id, str) and given_id else f"call-{number}"
        call = CallRequest(
            call_id=call_id,
            name=name,
            version=params.version,
            args=params.args,
            wire_call=params.call,
            timeout_ms=params.timeout_ms,
            idempotency_key=params.idempotency_key,
            dry_run=params.dry_run,
            approval=token_answer(params.approval),
        )
        with self.counted():
            try:
                return await execute(call, self.call_context(request, params))
            except ApprovalUnknown as error:
                raise unknown(error) from None

    async def execute_text(self, request: Request, params: ExecuteText) -> ExecuteTextResult:
        """Finds the calls of a model's text, runs them in order and writes one observation for the model."""
        self.check_trust()
        check_size(params.text)
        check_protocol(params.protocol)
        check_token(self._host, params.approval)
        document = self._host.runtime.read(
            params.text, params.protocol, complete=params.complete, options=given(params.options)
        )
        prefix = f"text-{self.number()}"
        context = self.call_context(request, params)
        if params.options is not None and params.options.stderr_fails is not UNSET:
            own = context.settings
            protocol = replace(own.protocol, stderr_fails=params.options.stderr_fails)
            context = replace(context, settings=replace(own, protocol=protocol))
        options = TextOptions(
            mode=params.mode,
            on_error=params.on_error,
            timeout_ms=params.timeout_ms,
            idempotency_key=params.idempotency_key,
            dry_run=params.dry_run,
            approval=token_answer(params.approval, lenient=True),
            call_prefix=prefix,
            encoding=self._host.encoding,
        )
        with self.counted():
            try:
                await check_approval(document, context, options)
            except ApprovalUnknown as error:
                raise unknown(error) from None
            from tamis.server.runtime.agents.step import execute_noted_text

            return await execute_noted_text(document, context, options)

    def tell_state(self, call_id: str, state: State) -> None:
        """Tells the client the state of a call."""
        # never dropped: a state that is missing would make the next one look illegal
        if self._host.events:
            self._host.session.notify("tool/event", CallEvent(call_id=call_id, state=state))

    def _show(self, told: dict[str, Any], droppable: bool) -> bool:
        return self._host.session.notify("tool/output", told, droppable=droppable)

    def _reporter(self, token: str | int) -> OnProgress:
        def report(call_id: str, text: str) -> None:
            value = {"kind": "report", "callId": call_id, "message": text}
            self._host.session.notify("$/progress", {"token": token, "value": value}, droppable=True)

        return report


def _tool_of(call: dict[str, Any]) -> str:
    """The tool id of a call off the wire; one that is no call is the request's fault."""
    name, args = call.get("toolId"), call.get("args", {})
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "wrong params: a call needs the text `toolId` - at `/call/toolId`")
    if not isinstance(args, dict):
        raise RpcError(INVALID_PARAMS, "wrong params: Expected `object` - at `/call/args`")
    return name


def methods(host: Host) -> Group:
    """The methods of this group."""
    runs = host.runs
    return {"tool/execute": (Execute, runs.execute), "tool/executeText": (ExecuteText, runs.execute_text)}
