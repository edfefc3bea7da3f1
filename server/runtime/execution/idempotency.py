"""A call with an idempotency key: run once, answered with the stored result from then on (T24, ruling 26).

What counts as the same call is decided here; where results are kept is ``idempotency.py``. Must not know how a call is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.observation import plain
from tamis.server.runtime.calls.model import CallContext, CallRequest, Stopped
from tamis.server.runtime.calls.runner import effective_timeout_ms, failure
from tamis.server.runtime.calls.running_calls import unless_cancelled
from tamis.server.runtime.execution.preparing import MAX_ATTEMPTS, backoff_s
from tamis.server.runtime.execution.resolving import tool_of
from tamis.server.runtime.observe.redaction import read_result, stored_result
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.store.owners import BEAT_S, Sight

# One execution per idempotency key: the same key with the same content gives the stored result (T24, ruling 26). Where results are kept is a shelf's:
# the store's, so that this holds after a restart and between processes, or this process's memory. Of a key and a content only hashes are kept, of a
# result what may be shown.


_MAX_PAUSE_S = 0.5


class KeyReused(Exception):  # noqa: N818 (an outcome, not a fault)
    """A key came again with other content."""


class RunLost(Exception):  # noqa: N818 (an outcome, not a fault)
    """Who ran a key's call ended without a word of what came of it."""


class StillRunning(Exception):  # noqa: N818 (an outcome, not a fault)
    """Another run of a key's call goes on, and was waited for long enough. ``sight``: who runs it, and for how many seconds, where known."""

    def __init__(self, sight: tuple[Sight, float] | None) -> None:
        super().__init__()
        self.sight = sight


class StoreHeld(Exception):  # noqa: N818 (an outcome, not a fault)
    """Where keys are kept was another process's for so long that the call could not be protected, so nothing was run."""


class Shelf(Protocol):
    """Where keys and results are kept."""

    async def take(self, key: bytes, content: bytes, *, again: bool) -> bytes | None:
        """None: the key is the caller's now. Else its result, empty while another one runs it; ``KeyReused`` for other content.

        A run that was lost makes the key the caller's with ``again``, else it is ``RunLost``. ``StoreHeld``: not now, ask again.
        """
        ...

    def protects(self, key: bytes) -> bool:
        """Whether a key that was taken holds for every process and after a restart; of another key whether it would now."""
        ...

    async def has(self, key: bytes, *, again: bool) -> bool:
        """Whether ``take`` would not make a key the caller's; takes nothing."""
        ...

    async def sight(self, key: bytes) -> tuple[Sight, float] | None:
        """Who runs a key's call, and for how many seconds; None where nobody does, or it is not known."""
        ...

    async def put(self, key: bytes, result: bytes) -> None:
        """The result of a key that was taken."""
        ...

    def free(self, key: bytes) -> None:
        """Nothing came of a key that was taken, or may have been; does not wait."""
        ...


class MemoryShelf:
    """Results of one text or one process; as many as come."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[bytes, bytes]] = {}

    async def take(self, key: bytes, content: bytes, *, again: bool) -> bytes | None:
        """See ``Shelf``."""
        digest = hashlib.sha256(content).digest()
        known = self._kept.setdefault(key, (digest, b""))
        if known[0] != digest:
            raise KeyReused
        return known[1] or None

    def protects(self, key: bytes) -> bool:
        """See ``Shelf``."""
        return False

    async def has(self, key: bytes, *, again: bool) -> bool:
        """See ``Shelf``."""
        return key in self._kept

    async def sight(self, key: bytes) -> tuple[Sight, float] | None:
        """See ``Shelf``."""
        return None

    async def put(self, key: bytes, result: bytes) -> None:
        """See ``Shelf``."""
        self._kept[key] = (self._kept[key][0], result)

    def free(self, key: bytes) -> None:
        """See ``Shelf``."""
        if key in self._kept and not self._kept[key][1]:
            del self._kept[key]


class IdempotencyKeys:
    """Results by key."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        """``shelf`` None is one in memory that goes with this object."""
        self._shelf = shelf or MemoryShelf()
        self._running: dict[str, tuple[bytes, asyncio.Event]] = {}

    async def has(self, key: str, *, again: bool = True) -> bool:
        """Whether ``stored`` would leave nothing to the caller to run, as things are now; takes nothing and waits for no run."""
        return key in self._running or await self._shelf.has(_named(key), again=again)

    def protects(self, key: str) -> bool:
        """Whether a key that the caller runs or was answered from holds for every process and after a restart."""
        return self._shelf.protects(_named(key))

    async def stored(
        self, key: str, content: object, *, again: bool = True, patience_s: float = math.inf
    ) -> ExecutionResult | None:
        """The result of an earlier run, or None: then the caller runs it, and must ``keep`` or ``drop`` the key.

        Waits up to ``patience_s`` while another run of the key goes on, here or in another process. Raises ``KeyReused`` when the key
        stands for other content, unless ``again`` ``RunLost`` when its run was lost, ``StillRunning``, and ``StoreHeld``.
        """
        text = _encoded(content)
        digest = hashlib.sha256(text).digest()
        pause = 0.01
        clock = asyncio.get_running_loop().time
        until = math.inf
        while True:
            running = self._running.get(key)
            if running is not None:
                if not hmac.compare_digest(running[0], digest):
                    raise KeyReused
                until = min(until, clock() + patience_s)
                if not await _is_set_before(running[1], until - clock()):
                    raise StillRunning(await self._shelf.sight(_named(key)))
                continue
            # before the shelf is asked, so that a second one that comes meanwhile waits here
            self._running[key] = (digest, asyncio.Event())
            try:
                record = await self._shelf.take(_named(key), text, again=again)
            except (KeyReused, RunLost):
                self._ended(key)
                raise
            except StoreHeld:
                self._ended(key)
                until = min(until, clock() + patience_s)
                if clock() >= until:
                    raise
                pause = await _paused(pause, until - clock())
                continue
            except BaseException:
                # it may have been taken all the same
                self.drop(key)
                raise
            if record is None:
                return None
            self._ended(key)
            if record:
                return read_result(record)
            until = min(until, clock() + patience_s)
            left = until - clock()
            if left <= 0:
                raise StillRunning(await self._shelf.sight(_named(key)))
            pause = await _paused(pause, left)

    async def keep(self, key: str, result: ExecutionResult, secrets: Sequence[str] = ()) -> None:
        """Stores the result of the run that ``stored`` left to the caller, with ``secrets`` masked."""
        try:
            await self._shelf.put(_named(key), stored_result(result, secrets))
        finally:
            self._ended(key)

    def drop(self, key: str) -> None:
        """Nothing ran: the key is free again."""
        self._shelf.free(_named(key))
        self._ended(key)

    def _ended(self, key: str) -> None:
        with contextlib.suppress(KeyError):
            self._running.pop(key)[1].set()


async def _paused(pause: float, left: float) -> float:
    """Waits, and gives how long to wait the next time."""
    await asyncio.sleep(min(pause, left))
    return min(pause * 2, _MAX_PAUSE_S)


async def _is_set_before(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), None if seconds == math.inf else max(seconds, 0))
    except TimeoutError:
        return event.is_set()
    return True


def _named(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


def _encoded(content: object) -> bytes:
    try:
        return msgspec.json.encode(content, order="sorted")
    except (UnicodeError, ValueError, TypeError, OverflowError):
        # lone surrogates, and numbers beyond 64 bits
        return json.dumps(content, sort_keys=True, default=repr).encode("ascii")


MARGIN_S = 5.0


async def run_once(
    request: CallRequest,
    context: CallContext,
    trail: Trail,
    run: Callable[[], Awaitable[ExecutionResult]],
    attempts: int = 1,
) -> ExecutionResult:
    """The stored result of the request's key (``replayed``), or what ``run`` gives, which is stored if the call was begun.

    Raises ``Stopped`` when the key stands for other content, for a cancel while another run of it is waited for, when that takes longer
    than the call itself might, when its run was lost with its process, unless the tool is idempotent, and when the store was held by others
    for as long. The result says whether the key was ``protected``.
    """
    keys, key = context.services.idempotency or context.services.execution.idempotency, _key(request, context)
    again = _may_run_twice(request, context)
    patience = patience_s(request, context, attempts)
    asked = keys.stored(key, _content(request), again=again, patience_s=patience)
    try:
        stored = await unless_cancelled(context.cancelled, asked)
    except KeyReused:
        text = f"the {_kind(request)} '{plain(_written(request))}' was used before with other content; use a new one"
        raise Stopped("error", failure("ParameterValidationError", text, code="idempotencyMismatch")) from None
    except RunLost:
        text = (
            f"the process that ran the call with the {_kind(request)} '{plain(_written(request))}' ended before it had a result; what the tool"
            " did until then is not known, so it is not run again under it; look at what it changed, and use a new one"
        )
        raise Stopped("error", failure("ServiceError", text, code="callLost")) from None
    except StillRunning as still:
        text = f"{_running(request, still)}; it was waited for {patience:.1f} s, and nothing was run for this request. {_remedy(still, again=again)}"
        raise Stopped("timeout", failure("TimeoutError", text, code="stillRunning")) from None
    except StoreHeld as held:
        text = f"{held}; it was waited for {patience:.1f} s, and nothing was run for this request. Send it again with the same key"
        raise Stopped("error", failure("ResourceError", text, code="storeHeld")) from None
    protected = keys.protects(key)
    if stored is not None:
        own = UNSET if request.call is None else request.call.meta.get("id", UNSET)
        return msgspec.structs.replace(
            stored, call_id=request.call_id, tool_call_id=own, replayed=True, protected=protected
        )
    try:
        result = await run()
    except BaseException:
        keys.drop(key)
        raise
    result = msgspec.structs.replace(result, protected=protected)
    if trail.outcome is not None and result.status == "success":
        context.services.handlers.workflows.at_end(_keep_outcome(keys, key, trail.outcome, trail))
        return result
    if result.status == "accepted" or (result.attempts and result.status not in ("cancelled", "inputRequired")):
        await keys.keep(key, result, trail.secrets)
        # what was taken where all see it may have been kept where only this process does
        result = msgspec.structs.replace(result, protected=protected and keys.protects(key))
    else:
        keys.drop(key)
    return result


async def _keep_outcome(
    keys: IdempotencyKeys, key: str, outcome: asyncio.Future[ExecutionResult], trail: Trail
) -> None:
    """Keeps what a call comes to that goes on behind its answer; until then the key waits for it."""
    try:
        result = await outcome
    except BaseException:
        keys.drop(key)
        raise
    if result.status == "cancelled":
        keys.drop(key)
        return
    await keys.keep(key, result, trail.secrets)


def patience_s(request: CallRequest, context: CallContext, attempts: int) -> float:
    """How long another run of a call is waited for: as long as the call itself may run, in all its attempts. Where the request does not
    say how long that is, its begin and its end have time too."""
    each = effective_timeout_ms(tool_of(request, context.registry), context, request.timeout_ms) / 1000
    count = min(max(1, attempts), MAX_ATTEMPTS)
    pauses = sum(backoff_s(attempt) for attempt in range(1, count))
    return each * count + pauses + (MARGIN_S if request.timeout_ms is None else 0)


def _running(request: CallRequest, still: StillRunning) -> str:
    """What is known of the run that is waited for."""
    what = f"the call with the {_kind(request)} '{plain(_written(request))}' is still running"
    if still.sight is None or still.sight[0].is_here:
        return what + ("" if still.sight is None else f" here, since {still.sight[1]:.0f} s")
    owner, since = still.sight
    where = f"process {owner.process}" if owner.process else "a process of another machine or container"
    if owner.is_stopped:
        where += ", which is stopped"
    elif owner.silent_s > 2 * BEAT_S:
        where += f", which was last heard of {owner.silent_s:.0f} s ago"
    return f"{what} in {where}, since {since:.0f} s"


def _remedy(still: StillRunning, *, again: bool) -> str:
    later = "Send it again with the same key to get that result"
    if still.sight is None or still.sight[0].is_here:
        return later
    then = "then it is run again" if again else "then what it did is not known, and the key says so (callLost)"
    return f"{later}; if that process hangs, continue or end it: {then}"


def _kind(request: CallRequest) -> str:
    """What the key is to whoever gave it: a model numbers its requests."""
    return "request id" if request.key_is_models else "idempotency key"


def _written(request: CallRequest) -> str:
    """The key as the model or the host gave it; the call's number in its text was put behind it (``text.py``)."""
    if request.key_is_models and request.call is not None:
        return request.call.request_id or request.idempotency_key
    return request.idempotency_key.rpartition("#")[0] if request.key_of else request.idempotency_key


async def is_answered(request: CallRequest, context: CallContext) -> bool:
    """Whether a call would be answered by what its key stands for, without being run, as things are now. Reserves nothing."""
    if not request.idempotency_key or request.dry_run:
        return False
    keys = context.services.idempotency or context.services.execution.idempotency
    return await keys.has(_key(request, context), again=_may_run_twice(request, context))


def _may_run_twice(request: CallRequest, context: CallContext) -> bool:
    """Whether the tool says that a second run does no more than the first (``execution.idempotent``)."""
    tool = tool_of(request, context.registry)
    return tool is not None and tool.manifest.execution.idempotent


def _key(request: CallRequest, context: CallContext) -> str:
    """The key as it is kept: it is its caller's. Another face, host, agent or session has keys of its own, and sees no result of these."""
    caller = context.caller
    client = "" if caller.client is UNSET else caller.client
    whose = "model" if request.key_is_models else "host"
    parts = (caller.face, client, caller.agent_id, caller.session_id, whose, request.idempotency_key)
    # no two callers come to one text; the rows of older versions, which name no caller, are nobody's
    return "\n".join(f"{len(part)} {part}" for part in parts)


def _content(request: CallRequest) -> object:
    """What a call does, without where it stood: the same call of another text is the same content."""
    arguments: object = request.args
    if request.call is not None:
        call = request.call
        arguments = [call.args(request.source), call.uris, call.type_hints]
    elif request.wire_call is not None:
        wire = request.wire_call
        # what is missing is empty, as in a call that was read here
        arguments = [wire.get(name) or None for name in ("args", "uris", "typeHints")]
    return [request.name, request.version, arguments, request.key_of]
