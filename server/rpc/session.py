"""One JSON-RPC session on stdio: order, cancellation, and an end that leaves nothing behind.

Requests run as tasks on one loop, in the thread that also starts sandboxes (a sandbox dies with the thread that started
it). Every request gets exactly one reply. Knows messages, not what the methods mean (``methods.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from tamis.protocols.suggest import best, hint
from tamis.server.runtime.observe.trail import Log
from tamis.server.wire.framing import FrameDecoder, Framing, encode_frame
from tamis.server.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    RpcError,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)
from tamis.server.wire.stdio import QueuedWriter, claim_stdio, start_reader, watch_output, watch_process

# The project's own errors by name (interface, Errors).


_NUMBERS = {
    "toolNotFound": 1001,
    "versionUnsatisfied": 1002,
    "overloaded": 1201,
    "textTooLarge": 1202,
    "taskNotFound": 1301,
    "approvalUnknown": 1401,
    "notTrusted": 1901,
}
MEANINGS = {
    "parseError": "The message is no JSON.",
    "invalidRequest": "This is no request, or it comes at the wrong time.",
    "methodNotFound": "There is no such method.",
    "invalidParams": "The params are wrong; the message names the place.",
    "internalError": "A fault of the daemon.",
    "requestCancelled": "The request was cancelled, or the daemon is ending.",
    "toolNotFound": "No tool has this id.",
    "versionUnsatisfied": "The tool has no such version.",
    "overloaded": "Too much at once; send it again later.",
    "textTooLarge": "The text is larger than what is read.",
    "taskNotFound": "No task has this id.",
    "approvalUnknown": "No question has this id, or it is closed.",
    "notTrusted": "The folder is not trusted; nothing is run in it.",
}
"""What each error means, for its description."""
GIVEN_BY: dict[str, tuple[str, ...]] = {
    "toolNotFound": ("tool/describe", "workflow/describe", "workflow/graph"),
    "versionUnsatisfied": ("tool/describe",),
    "textTooLarge": (
        *("tool/parse", "tool/repair", "tool/explain", "tool/convert", "tool/executeText"),
        *("parse/feed", "prompt/generate", "agent/step"),
    ),
    "taskNotFound": ("task/get", "task/result", "task/answer", "task/cancel"),
    "approvalUnknown": ("tool/execute", "tool/executeText", "agent/step", "workflow/run", "task/answer"),
    "notTrusted": ("tool/execute", "tool/executeText", "agent/step", "workflow/run"),
}
"""Errors of the project's own → the methods that give them; ``overloaded`` may come from any."""
STANDARD = {
    "parseError": PARSE_ERROR,
    "invalidRequest": INVALID_REQUEST,
    "methodNotFound": METHOD_NOT_FOUND,
    "invalidParams": INVALID_PARAMS,
    "internalError": INTERNAL_ERROR,
    "requestCancelled": REQUEST_CANCELLED,
}
"""JSON-RPC's errors, and LSP's for a cancelled request, by the names that descriptions give them."""


def numbers() -> dict[str, int]:
    """The number of every error by name."""
    return {**STANDARD, **_NUMBERS}


MAX_NAME_CHARS = 200


def no_method(method: str, known: Iterable[str]) -> RpcError:
    """The reply to a method that there is not, with the one that may have been meant."""
    return RpcError(METHOD_NOT_FOUND, f"no method '{method[:MAX_NAME_CHARS]}'{hint(best(method, known))}")


def named_error(name: str, text: str, hint: str, *, retryable: bool = False) -> RpcError:
    """One of the project's own errors, with ``data: {code, retryable, hint}``."""
    return RpcError(_NUMBERS[name], text, {"code": name, "retryable": retryable, "hint": hint})


MAX_PENDING = 1000
# Within 0.5 s of the end of stdin (interface): what can still be answered, then what must be killed, then what must be written.
LAST_ANSWERS_S = 0.25
KILL_S = 0.08
FLUSH_S = 0.08


Answer = Callable[[bytes | None], None]
"""Takes the reply to one message, or None when it has none; called exactly once."""


class Batch:
    """Collects the replies to a batch and sends them as one array when its last message is dealt with (JSON-RPC 2.0 §6)."""

    __slots__ = ("_left", "_replies", "_send")

    def __init__(self, size: int, send: Answer) -> None:
        self._left = size
        self._replies: list[bytes] = []
        self._send = send

    def answer(self, reply: bytes | None) -> None:
        """Takes the reply to one message of the batch, or None when it has none."""
        if reply is not None:
            self._replies.append(reply)
        self._left -= 1
        if self._left == 0:
            self._send(b"[" + b",".join(self._replies) + b"]" if self._replies else None)


class Request:
    """One request while it is answered; ``cancelled`` is set by ``$/cancelRequest`` and at the session's end."""

    __slots__ = ("answer", "cancelled", "identity", "is_answered", "later", "method", "session", "stream")

    def __init__(self, session: Session, identity: object, answer: Answer, method: str = "") -> None:
        self.session = session
        self.identity = identity
        self.method = method
        self.answer = answer
        self.cancelled = asyncio.Event()
        self.stream: object = None
        """Where what is said about it goes, on a transport that has more than one way to the client."""
        self.later: list[Callable[[], object]] = []
        self.is_answered = False

    def afterwards(self, work: Callable[[], object]) -> None:
        """Has something done as soon as the request is answered, before anything else is; at once where it is answered already."""
        if self.is_answered:
            work()
        else:
            self.later.append(work)


Handler = Callable[[Request, Any], Awaitable[object] | object]


class Method:
    """A method: its handler, and whether a cancelled request still gets its normal result."""

    __slots__ = ("finishes", "handler")

    def __init__(self, handler: Handler, *, finishes: bool = False) -> None:
        self.handler = handler
        self.finishes = finishes


class Session:
    """Serves ``methods`` on the process's stdio until its stdin ends, nobody reads its stdout, ``exit`` comes, or the parent dies."""

    def __init__(
        self,
        methods: dict[str, Method],
        on_notification: dict[str, Callable[[Any], None]] | None = None,
        framing: Framing | None = None,
    ) -> None:
        """``framing``: the only one that is spoken; None: that of the client's first message."""
        self.methods = methods
        self.on_answered: Callable[[str, float, bool], None] | None = None
        """Told each request's method, its seconds and whether it was answered with an error."""
        self.log: Callable[[], Log] = Log
        """Where what is wrong is said; asked each time, for its form is the settings'."""
        self.on_notification = on_notification or {}
        self.pending: dict[object, tuple[Request, asyncio.Task[None]]] = {}
        self.warned_surrogates = False
        self._decoder = FrameDecoder(framing)
        self._framing: Framing = framing or "headers"
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._reverse = 0
        self._ended = asyncio.Event()
        self._exit_code = 0
        self._writer: QueuedWriter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self) -> int:
        """Runs the session; returns the exit code."""
        loop = self._loop = asyncio.get_running_loop()
        incoming, outgoing = claim_stdio()
        self._writer = QueuedWriter(outgoing)
        loop.add_signal_handler(signal.SIGTERM, self.end)
        loop.add_signal_handler(signal.SIGINT, self.end, 128 + signal.SIGINT)
        start_reader(incoming, lambda data: self._later(self._received, data), lambda: self._later(self._stdin_ended))
        # who cannot be answered any more has gone, though its input is still open
        unwatched = watch_output(outgoing, lambda: self._later(self.end))
        await self._ended.wait()
        await self.end_requests()
        unwatched()
        self._writer.close(FLUSH_S)
        return self._exit_code

    async def end_requests(self, seconds: float = KILL_S) -> None:
        """Cancels what is still answered and waits so long for it, then briefly for what must be ended: each request has a reply then."""
        for request, _ in self.pending.values():
            request.cancelled.set()
        tasks = [task for _, task in self.pending.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=KILL_S)
                for request, task in self.pending.values():
                    # What does not even end when it is cancelled must not hold back the rest of its batch.
                    if not task.done():
                        request.answer(
                            encode_error(request.identity, RpcError(REQUEST_CANCELLED, "the daemon is ending"))
                        )

    def end(self, exit_code: int = 0) -> None:
        """Ends the session soon: what runs is cancelled, what is answered is written. The first code counts."""
        if not self._ended.is_set():
            self._exit_code = exit_code
        self._ended.set()

    def watch_parent(self, process_id: int) -> None:
        """Ends the session when that process ends (interface: within 2 s of the parent's death)."""
        if not watch_process(process_id, lambda: self._later(self.end)):
            self.log().warn(f"there is no process {process_id} (processId of initialize); the session ends")
            self.end()

    def notify(self, method: str, params: object, *, droppable: bool = False, about: Request | None = None) -> bool:
        """Sends a notification, ``about`` one request or none; False when it was dropped."""
        return self._send(encode_notification(method, params), droppable=droppable, about=about)

    async def ask(self, method: str, params: object, *, about: Request | None = None) -> Any:
        """Sends a request to the client and waits for its result; raises ``RpcError`` for an error reply."""
        self._reverse += 1
        identity = f"tamis-{self._reverse}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[identity] = future
        self._send(encode_request(identity, method, params), about=about)
        try:
            return await future
        except asyncio.CancelledError:
            # who asked does not want to know any more: the client may take the question back
            self._withdraw(identity, about)
            raise
        finally:
            self._waiting.pop(identity, None)

    def _withdraw(self, identity: str, about: Request | None) -> None:
        self.notify("$/cancelRequest", {"id": identity}, about=about)

    def _later(self, call: Callable[..., None], *arguments: object) -> None:
        # The loop may be closed already while another thread still has something to say.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call, *arguments)

    def _send(self, body: bytes, *, droppable: bool = False, about: Request | None = None) -> bool:
        # one way leads to this client, whatever a message is about
        writer = self._writer
        return writer is not None and writer.write(encode_frame(body, self._framing), droppable=droppable)

    def _received(self, data: bytes) -> None:
        for body in self._decoder.feed(data):
            self._framing = self._decoder.framing or self._framing
            self._body(body)

    def _stdin_ended(self) -> None:
        for body in self._decoder.end():
            self._body(body)
        if self._exit_code == 0 and not self._ended.is_set():
            # Requests that came with the last bytes are still answered; a short grace, then the end.
            asyncio.get_running_loop().create_task(self._finish())

    async def _finish(self) -> None:
        tasks = [task for _, task in self.pending.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_ANSWERS_S)
        self.end()

    def _body(self, body: bytes | RpcError) -> None:
        if isinstance(body, bytes) and (not body or body.isspace()):
            return
        try:
            if isinstance(body, RpcError):
                raise body
            message, replaced = decode(body)
        except RpcError as error:
            if not (isinstance(body, bytes) and self._is_bad_reply(body)):
                self._send(encode_error(error.identity, error))
            return
        if replaced and not self.warned_surrogates:
            self.warned_surrogates = True
            self.log().warn("a message held a lone surrogate escape; it is read as U+FFFD")
        if isinstance(message, list):
            self._batch(cast("list[object]", message))
        else:
            self._message(message, self._way())

    def _batch(self, items: list[object]) -> None:
        if not 0 < len(items) <= MAX_PENDING:
            text = f"a batch holds from 1 to {MAX_PENDING} messages, this one {len(items)}"
            self._way()(encode_error(None, RpcError(INVALID_REQUEST, text)))
            return
        batch = Batch(len(items), self._way())
        for item in items:
            self._message(item, batch.answer)

    def _way(self) -> Answer:
        """Where the answer to what arrives now goes."""
        return self._answer_alone

    def _answer_alone(self, reply: bytes | None) -> None:
        if reply is not None:
            self._send(reply)

    def _message(self, message: object, answer: Answer) -> None:
        if not isinstance(message, dict):
            answer(encode_error(None, RpcError(INVALID_REQUEST, "a message must be an object")))
            return
        content = cast("dict[str, Any]", message)
        method = content.get("method")
        identity = content.get("id")
        # an answer to us that says nothing is one all the same: who waits for it must not wait on
        if "method" not in content and ("result" in content or "error" in content or self._is_awaited(identity)):
            self._reply(identity, content)
            answer(None)
        elif not isinstance(method, str):
            answer(encode_error(_plain_id(identity), RpcError(INVALID_REQUEST, "a request needs a method name")))
        elif "id" not in content:
            self._notification(method, content.get("params"))
            answer(None)
        elif identity is None or isinstance(identity, bool) or not isinstance(identity, str | int | float):
            answer(encode_error(None, RpcError(INVALID_REQUEST, "an id must be a string or a number")))
        else:
            self._request(identity, method, content.get("params"), answer)

    def _is_bad_reply(self, body: bytes) -> bool:
        """Whether a message that is no JSON is an answer to us all the same: who waits for it judges what is wrong with it."""
        from tamis.protocols.jsontext.tree import read_leniently

        message = read_leniently(body) if self._waiting else None
        if not isinstance(message, dict) or "method" in message:
            return False
        content = cast("dict[str, Any]", message)
        if not self._is_awaited(content.get("id")):
            return False
        self._reply(content["id"], content)
        return True

    def _is_awaited(self, identity: object) -> bool:
        return isinstance(identity, str) and identity in self._waiting

    def _reply(self, identity: object, content: dict[str, Any]) -> None:
        future = self._waiting.get(identity) if isinstance(identity, str) else None
        if future is None or future.done():
            return
        error = content.get("error")
        if isinstance(error, dict):
            fields = cast("dict[str, Any]", error)
            future.set_exception(RpcError(INTERNAL_ERROR, str(fields.get("message", "the client failed"))))
        elif error is not None:
            future.set_exception(RpcError(INTERNAL_ERROR, f"the client failed: {error}"))
        elif "result" in content or "error" in content:
            future.set_result(content.get("result"))
        else:
            future.set_exception(RpcError(INTERNAL_ERROR, "the client's answer holds neither a result nor an error"))

    def _notification(self, method: str, params: object) -> None:
        if method == "exit":
            self.end()
        elif method == "$/cancelRequest" and isinstance(params, dict):
            self._cancel(cast("dict[str, Any]", params).get("id"))
        elif method in self.on_notification:
            self.on_notification[method](params)

    def _cancel(self, identity: object) -> None:
        # a list or an object is nobody's id, and no key
        entry = self.pending.get(_key(identity)) if isinstance(identity, str | int | float) else None
        if entry is None:
            return
        request, _ = entry
        request.cancelled.set()

    def _request(self, identity: object, method: str, params: object, answer: Answer) -> None:
        handler = self.methods.get(method)
        if handler is None:
            answer(encode_error(identity, no_method(method, self.methods)))
            return
        if len(self.pending) >= MAX_PENDING:
            remedy = f"at most {MAX_PENDING} requests are answered at once; send it again later"
            answer(encode_error(identity, named_error("overloaded", "too many requests", remedy, retryable=True)))
            return
        key = _key(identity)
        if key in self.pending:
            answer(encode_error(identity, RpcError(INVALID_REQUEST, "a request with this id is still answered")))
            return
        request = self._new_request(identity, answer, method)
        task = asyncio.get_running_loop().create_task(self._answer(request, method, handler, params))
        self.pending[key] = (request, task)
        # whatever became of it; one that was answered has gone already, and its id may be another request's by now
        task.add_done_callback(lambda done: self._forget(key, done))

    def _new_request(self, identity: object, answer: Answer, method: str) -> Request:
        return Request(self, identity, answer, method)

    def _forget(self, key: object, task: asyncio.Task[None] | None) -> None:
        entry = self.pending.get(key)
        if entry is not None and entry[1] is task:
            del self.pending[key]

    def _reply_to(self, request: Request, reply: bytes) -> None:
        # before the client has the reply, which may use the id again at once
        self._forget(_key(request.identity), asyncio.current_task())
        request.answer(reply)

    async def _answer(self, request: Request, name: str, method: Method, params: object) -> None:
        began, failed = time.perf_counter(), True
        try:
            if request.cancelled.is_set() and not method.finishes:
                raise RpcError(REQUEST_CANCELLED, "the request was cancelled")
            result = method.handler(request, params)
            if hasattr(result, "__await__"):
                work = cast("Awaitable[object]", result)
                result = await (work if method.finishes else self._awaited(request, work))
            self._reply_to(request, encode_result(request.identity, result))
            failed = False
        except RpcError as error:
            self._reply_to(request, encode_error(request.identity, error))
        except asyncio.CancelledError:
            self._reply_to(request, encode_error(request.identity, RpcError(REQUEST_CANCELLED, "the daemon is ending")))
        except Exception as error:  # one bad request never ends the daemon
            self.log().failure(f"the request '{name[:100]}' failed", error)
            text = f"internal error: {type(error).__name__}: {error}"
            self._reply_to(request, encode_error(request.identity, RpcError(INTERNAL_ERROR, text)))
        finally:
            seconds = time.perf_counter() - began
            request.is_answered = True
            for work in request.later:
                try:
                    work()
                except Exception as error:
                    self.log().failure(f"what is written down of the request '{name[:100]}' failed", error)
            if self.on_answered is not None:
                self.on_answered(name, seconds, failed)

    async def _awaited(self, request: Request, work: Awaitable[object]) -> object:
        task = asyncio.ensure_future(work)
        cancelled = asyncio.ensure_future(request.cancelled.wait())
        try:
            await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cancelled.cancel()
        if not task.done():
            task.cancel()
            raise RpcError(REQUEST_CANCELLED, "the request was cancelled")
        return task.result()


def _key(identity: object) -> object:
    # 1 and "1" are different ids, 1 and 1.0 are the same number; True never gets here.
    return identity


def _plain_id(identity: object) -> object:
    return identity if isinstance(identity, str | int | float) and not isinstance(identity, bool) else None


# The host as the runtime asks and tells it: requests and notifications of the session.


MAX_ERROR_CHARS = 4_000
EVENTS = frozenset({"abuse/suspected", "tool/event", "workflow/stepChanged"})
"""What only a host with the capability ``events`` is told."""


class SessionHost:
    """The application at the other end of a session."""

    def __init__(self, session: Session, wants: Callable[[], bool]) -> None:
        """``wants``: whether the host asked to be told what calls and workflows are at."""
        self._session = session
        self._wants = wants

    async def ask(self, method: str, params: object) -> Any:
        """Sends a request and waits for its result. Raises ``HostError`` with the host's own words."""
        try:
            return await self._session.ask(method, params)
        except RpcError as error:
            from tamis.server.runtime.calls.model import HostError

            raise HostError(error.text[:MAX_ERROR_CHARS]) from None

    def tell(self, method: str, params: object) -> None:
        """Sends a notification; it is dropped while the host has far too much to read."""
        if method not in EVENTS or self._wants():
            self._session.notify(method, params, droppable=True)
