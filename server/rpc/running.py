"""Running calls (``tool/execute``, ``tool/executeText``) and what a call's surroundings are for a host. Holds no rules of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from tamis.protocols.contract import ExecuteTextResult, ExecutionResult
from tamis.server.rpc.errors import named_error
from tamis.server.rpc.params import Group, Host, Params, ReadingOptions, check_protocol, check_size, given
from tamis.server.rpc.session import Request
from tamis.server.runtime.calls.execute import execute
from tamis.server.runtime.calls.model import Answer, Ask, CallRequest, OnOutput, OnProgress, Question, Surroundings
from tamis.server.runtime.calls.text import TextOptions, execute_text
from tamis.server.runtime.records.trail import Caller
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError


class Context(Params, kw_only=True):
    """Who a call is run for."""

    session_id: str | None = None
    agent_id: str | None = None


class Running(Params, kw_only=True):
    """What every method that runs calls may be given."""

    timeout_ms: int | None = None
    idempotency_key: str = ""
    dry_run: bool = False
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

    def around(self, request: Request, params: Running) -> Surroundings:
        """What a call of this request runs under."""
        host = self._host
        streams = params.output == "stream" or (params.output is None and host.streams)
        context = params.context or Context()
        return host.runtime.surroundings(
            ask=self._asker() if host.approval == "request" else None,
            on_output=self._shower() if streams else None,
            on_progress=None if params.work_done_token is None else self._reporter(params.work_done_token),
            cancelled=request.cancelled,
            caller=Caller("rpc", context.session_id or "", context.agent_id or ""),
        )

    async def execute(self, request: Request, params: Execute) -> ExecutionResult:
        """``tool/execute``."""
        self.check_trust()
        name = params.tool_id if params.call is None else str(params.call.get("toolId", ""))
        if name is None:
            raise RpcError(INVALID_PARAMS, "give toolId and args, or call")
        number = self.number()
        given_id = params.call.get("callId") if params.call is not None else None
        call_id = given_id if isinstance(given_id, str) else f"call-{number}"
        call = CallRequest(
            call_id=call_id,
            name=name,
            version=params.version,
            args=params.args,
            wire_call=params.call,
            timeout_ms=params.timeout_ms,
            idempotency_key=params.idempotency_key,
            dry_run=params.dry_run,
        )
        with self.counted():
            return await execute(call, self.around(request, params))

    async def execute_text(self, request: Request, params: ExecuteText) -> ExecuteTextResult:
        """``tool/executeText``."""
        self.check_trust()
        check_size(params.text)
        check_protocol(params.protocol)
        document = self._host.runtime.read(
            params.text, params.protocol, complete=params.complete, options=given(params.options)
        )
        prefix = f"text-{self.number()}"
        around = self.around(request, params)
        if params.options is not None and params.options.stderr_fails is not UNSET:
            own = around.settings
            protocol = replace(own.protocol, stderr_fails=params.options.stderr_fails)
            around = replace(around, settings=replace(own, protocol=protocol))
        options = TextOptions(
            mode=params.mode,
            on_error=params.on_error,
            timeout_ms=params.timeout_ms,
            dry_run=params.dry_run,
            call_prefix=prefix,
            encoding=self._host.encoding,
        )
        with self.counted():
            return await execute_text(document, around, options)

    def _shower(self) -> OnOutput:
        sequences: dict[str, int] = {}
        lost: set[str] = set()

        def show(call_id: str, stream: str, text: str) -> None:
            number = sequences[call_id] = sequences.get(call_id, 0) + 1
            told = {"callId": call_id, "seq": number, "stream": stream, "text": text, "truncated": call_id in lost}
            if self._host.session.notify("tool/output", told, droppable=True):
                lost.discard(call_id)
            else:
                lost.add(call_id)

        return show

    def _reporter(self, token: str | int) -> OnProgress:
        def report(call_id: str, text: str) -> None:
            value = {"kind": "report", "callId": call_id, "message": text}
            self._host.session.notify("$/progress", {"token": token, "value": value}, droppable=True)

        return report

    def _asker(self) -> Ask:
        async def ask(question: Question) -> Answer:
            loop_time = asyncio.get_running_loop().time()
            granted = question.permissions.granted
            asked = {
                "approvalId": f"approval-{question.call_id}-{loop_time:.6f}",
                "callId": question.call_id,
                "tool": question.tool_id,
                "args": question.args,
                "argsPreview": _preview(question.args),
                "risk": "high" if granted.write or granted.hosts else "low",
                "permissions": question.permissions,
                "options": [
                    {"optionId": "allow", "label": "Allow once", "kind": "allow_once"},
                    {"optionId": "reject", "label": "Deny", "kind": "reject_once"},
                ],
                "expiresAt": _expiry(question.timeout_ms),
            }
            try:
                reply = await self._host.session.ask("tool/requestApproval", asked)
            except RpcError:
                return "unavailable"
            content = cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}
            if content.get("outcome") != "selected":
                return "cancelled"
            return "allow" if content.get("optionId") == "allow" else "deny"

        return ask


def methods(host: Host) -> Group:
    """The methods of this group."""
    runs = host.runs
    return {"tool/execute": (Execute, runs.execute), "tool/executeText": (ExecuteText, runs.execute_text)}


def _preview(args: dict[str, Any]) -> str:
    text = msgspec.json.encode(args).decode("utf-8", "replace")
    return text if len(text) <= 400 else text[:399] + "…"


def _expiry(timeout_ms: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime.now(UTC) + timedelta(milliseconds=timeout_ms)).isoformat()
