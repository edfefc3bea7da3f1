"""A call with an idempotency key: run once, answered with the stored result from then on (T24, ruling 26).

What counts as the same call is decided here; where results are kept is ``replays.py``. Must not know how a call is run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.observation import plain
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import CallRequest, Stopped, Surroundings
from tamis.server.runtime.calls.replays import KeyReused, RunLost
from tamis.server.runtime.calls.resolving import tool_of
from tamis.server.runtime.calls.retries import unless_cancelled
from tamis.server.runtime.records.trail import Trail


async def run_once(
    request: CallRequest, around: Surroundings, trail: Trail, run: Callable[[], Awaitable[ExecutionResult]]
) -> ExecutionResult:
    """The stored result of the request's key (``replayed``), or what ``run`` gives, which is stored if the call was begun.

    Raises ``Stopped`` when the key stands for other content, for a cancel while another run of it is waited for, and when its run was
    lost with its process, unless the tool is idempotent.
    """
    replays, key = around.replays or around.parts.replays, _key(request, around)
    again = _may_run_twice(request, around)
    try:
        stored = await unless_cancelled(around.cancelled, replays.stored(key, _content(request), again=again))
    except KeyReused:
        text = f"the {_kind(request)} '{plain(_written(request))}' was used before with other content; use a new one"
        raise Stopped("error", failure("ParameterValidationError", text, code="idempotencyMismatch")) from None
    except RunLost:
        text = (
            f"the process that ran the call with the {_kind(request)} '{plain(_written(request))}' ended before it had a result; what the tool"
            " did until then is not known, so it is not run again under it; look at what it changed, and use a new one"
        )
        raise Stopped("error", failure("ServiceError", text, code="callLost")) from None
    if stored is not None:
        own = UNSET if request.call is None else request.call.meta.get("id", UNSET)
        return msgspec.structs.replace(stored, call_id=request.call_id, tool_call_id=own, replayed=True)
    try:
        result = await run()
    except BaseException:
        replays.drop(key)
        raise
    if result.status == "accepted" or (result.attempts and result.status != "cancelled"):
        await replays.keep(key, result, trail.secrets)
    else:
        replays.drop(key)
    return result


def _kind(request: CallRequest) -> str:
    """What the key is to whoever gave it: a model numbers its requests."""
    return "request id" if request.key_is_models else "idempotency key"


def _written(request: CallRequest) -> str:
    """The key as the model or the host gave it; the call's number in its text was put behind it (``text.py``)."""
    if request.key_is_models and request.call is not None:
        return request.call.request_id or request.idempotency_key
    return request.idempotency_key.rpartition("#")[0] if request.key_of else request.idempotency_key


async def is_answered(request: CallRequest, around: Surroundings) -> bool:
    """Whether a call would be answered by what its key stands for, without being run, as things are now. Reserves nothing."""
    if not request.idempotency_key or request.dry_run:
        return False
    replays = around.replays or around.parts.replays
    return await replays.has(_key(request, around), again=_may_run_twice(request, around))


def _may_run_twice(request: CallRequest, around: Surroundings) -> bool:
    """Whether the tool says that a second run does no more than the first (``execution.idempotent``)."""
    tool = tool_of(request, around.registry)
    return tool is not None and tool.manifest.execution.idempotent


def _key(request: CallRequest, around: Surroundings) -> str:
    """The key as it is kept: a model numbers its requests anew in each session, a host's keys are its own."""
    session = around.caller.session_id if request.key_is_models else ""
    return f"{session}\n{request.idempotency_key}"


def _content(request: CallRequest) -> object:
    """What a call does, without where it stood: the same call of another text is the same content."""
    given: object = request.args
    if request.call is not None:
        call = request.call
        given = [call.args(request.source), call.uris, call.type_hints]
    elif request.wire_call is not None:
        wire = request.wire_call
        # what is missing is empty, as in a call that was read here
        given = [wire.get(name) or None for name in ("args", "uris", "typeHints")]
    return [request.name, request.version, given, request.key_of]
