"""The framework lane, and the one place that knows pygls and lsprotocol: every verb that is not ``now`` is served here, on an event loop in
a thread of its own.

pygls holds the handlers and lsprotocol's types decode the params. What pygls 2.1 does with messages is done here instead, without its private
members: it leaves requests with params of a wrong shape without an answer, makes tuples of custom params (which renames their keys), and
drops results that are falsy. Handlers see documents as frozen values of the session. Must not hold rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from cattrs import Converter
from cattrs.errors import BaseValidationError
from lsprotocol import types
from msgspec import UNSET, Raw
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

import tamis
from tamis.server.lsp.envelope import Envelope, MessageId, decode_params
from tamis.server.lsp.table import REQUESTS
from tamis.server.lsp.trace import report_failure
from tamis.server.wire.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    RpcError,
    encode_error,
    encode_request,
    encode_result,
)

if TYPE_CHECKING:
    from tamis.server.lsp.running.commands import Commands
    from tamis.server.lsp.running.tool_methods import ToolMethods
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.verb import Verb


CONTENT_MODIFIED = -32801
END_SECONDS = 0.35


class Framework:
    """A pygls server on its own loop, fed by the session."""

    def __init__(self, session: Session, write: Callable[[bytes], object]) -> None:
        self.session = session
        self.write = write
        self.tool_methods: ToolMethods | None = None
        self.commands: Commands | None = None
        """What runs calls, once something was asked of it."""
        self.progress: dict[int | str, Callable[[], None]] = {}
        """What ends the work that a progress tells of, by its token."""
        self._asked: dict[str, Future[Any]] = {}
        self._tasks: dict[MessageId, asyncio.Task[Any]] = {}
        self._converter = strict_converter()
        self._loop = asyncio.new_event_loop()
        server = LanguageServer("tamis", tamis.__version__, converter_factory=lambda: self._converter)
        register(server, session)
        self._handlers: dict[str, Callable[[Any, MessageId], Any]] = cast("Any", server.protocol.fm).features
        threading.Thread(target=self._run, name="tamis-framework", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.wait(left, timeout=END_SECONDS) if left else asyncio.sleep(0))
        self._loop.close()

    # From any thread

    def _soon(self, work: Callable[..., object], *args: object) -> None:
        # the session may have ended while another thread had something to say
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *args)

    def receive(self, message: Envelope) -> None:
        """Hands over a message."""
        self._soon(self._take, message)

    def cancel(self, identity: MessageId) -> None:
        """Ends the work of a request that was answered as cancelled, as far as its handler can be ended."""

        def end() -> None:
            task = self._tasks.pop(identity, None)
            if task is not None:
                task.cancel()

        self._soon(end)

    def cancel_progress(self, token: int | str) -> None:
        """Ends the work that a progress tells of."""

        def end() -> None:
            stop = self.progress.pop(token, None)
            if stop is not None:
                stop()

        self._soon(end)

    def abort_tests(self) -> None:
        """Ends the tests that run."""

        def abort() -> None:
            if self.commands is not None:
                self.commands.tests.abort()

        self._soon(abort)

    def tools_changed(self, *, edited: bool = False) -> None:
        """What is known of tools is different: documents of ours that speak of them are. Of an ``edited`` manifest only who uses the tool
        methods is told, for that may be at every key."""

        def tell() -> None:
            if self.tool_methods is not None:
                self.tool_methods.tools_changed()
            if self.commands is not None and not edited:
                self.commands.previews.changed()
                self.commands.tests.changed()

        self._soon(tell)

    def texts_changed(self) -> None:
        """Texts are others: a client that listed the tests in them is told."""

        def tell() -> None:
            if self.commands is not None:
                self.commands.tests.changed()

        self._soon(tell)

    def close(self) -> None:
        """Ends what was started for the client and waits for it, for ``END_SECONDS`` at most; not from the lane itself."""
        if self.commands is not None:
            with contextlib.suppress(TimeoutError, RuntimeError):
                asyncio.run_coroutine_threadsafe(self.commands.runner.close(), self._loop).result(END_SECONDS)
        self._soon(self._loop.stop)

    # On the loop

    def ask(self, identity: str, method: str, params: object) -> Future[Any]:
        """Sends a request whose answer is taken as it comes; an error is an ``RpcError``."""
        future: Future[Any] = Future()
        self._asked[identity] = future
        if self.session.words is not None:
            params = self.session.words.sent(method, params)
        self.write(encode_request(identity, method, params))
        return future

    def _take(self, message: Envelope) -> None:
        """Handles one message; nothing may raise here."""
        identity = message.id
        if message.method is UNSET:
            self._take_response(message)
            return
        if not isinstance(identity, (int, str)):
            return
        session = self.session
        flight = session.pending.start(identity, session.documents)
        if flight is None:
            return  # cancelled before its turn came
        verb, handler = REQUESTS[message.method], self._handlers[message.method]
        try:
            if flight.stale(session.documents):
                raise _modified()
            session.workspace.settle()
            params = self._params(verb, message)
            if verb.schedule == "background":
                self._begin(identity, verb.method, handler(params, identity))
            else:
                self._answer(identity, verb.method, handler(params, identity))
        except Exception as error:  # one bad request never ends the session
            self._fail(identity, verb.method, error)

    def _params(self, verb: Verb, message: Envelope) -> Any:
        """A request's params; raises ``RpcError`` for those of a wrong shape."""
        params: Any = decode_params(message.params, Any) if isinstance(message.params, Raw) else None
        if not isinstance(verb.params, str):
            return params
        try:
            return self._converter.structure(params, getattr(types, verb.params))
        except (BaseValidationError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise RpcError(INVALID_PARAMS, f"Parameters of '{verb.method}': {describe(error)}") from None

    def _begin(self, identity: MessageId, method: str, work: Coroutine[Any, Any, Any]) -> None:
        def ended(task: asyncio.Task[Any]) -> None:
            # A turn of the loop later: what the work began to say stands before its answer.
            self._tasks.pop(identity, None)
            if task.cancelled():
                self._fail(identity, method, RpcError(REQUEST_CANCELLED, "Cancelled"))
            elif isinstance(error := task.exception(), Exception):
                self._fail(identity, method, error)
            else:
                self._answer(identity, method, task.result())

        task = self._tasks[identity] = self._loop.create_task(work)
        task.add_done_callback(ended)

    def _answer(self, identity: MessageId, method: str, result: Any) -> None:
        """Answers a request, unless someone did; about a text that has changed meanwhile nothing is said."""
        flight = self.session.pending.take(identity)
        if flight is None:
            return
        if flight.stale(self.session.documents):
            self.write(encode_error(identity, _modified()))
            return
        plain = self._converter.unstructure(result) if hasattr(result, "__attrs_attrs__") else result
        try:
            if self.session.words is not None:
                plain = self.session.words.answered(method, plain)
            body = encode_result(identity, plain)
        except Exception as error:  # an answer that is none
            body = encode_error(identity, RpcError(INTERNAL_ERROR, f"The answer cannot be written: {error!r}"))
        self.write(body)

    def _fail(self, identity: MessageId, method: str, error: Exception) -> None:
        """Answers with an error. A refusal is an answer like any other; only a failure is written to the log."""
        if not isinstance(error, RpcError):
            report_failure(f"'{method}'", error)
            error = RpcError(INTERNAL_ERROR, f"'{method}' failed: {error!r}")
        if self.session.words is not None:
            error = self.session.words.refused(error)
        if self.session.pending.take(identity) is not None:
            self.write(encode_error(identity, error))

    def _take_response(self, message: Envelope) -> None:
        future = self._asked.pop(message.id, None) if isinstance(message.id, str) else None
        if future is None or future.done():  # an answer to nobody, or to one who was cancelled
            return
        try:
            if isinstance(message.error, Raw):
                refusal = self._converter.structure(msgspec.json.decode(message.error), types.ResponseError)
                future.set_exception(RpcError(INTERNAL_ERROR, refusal.message))
            else:
                future.set_result(msgspec.json.decode(message.result) if isinstance(message.result, Raw) else None)
        except Exception as error:  # an answer that is not understood is a failed one for whoever waits for it
            future.set_exception(RpcError(INTERNAL_ERROR, f"The client's answer: {describe(error)}"))


def register(server: LanguageServer, session: Session) -> None:
    """Gives pygls the verbs of this lane."""
    for verb in REQUESTS.values():
        if verb.schedule != "now":
            server.feature(verb.method)(partial(verb.handle, session))


def _modified() -> RpcError:
    return RpcError(CONTENT_MODIFIED, "The document has changed")


def strict_converter() -> Converter:
    """pygls' converter, without cattrs' habit to make a text, number or truth of whatever is there."""
    converter = default_converter()
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _exactly)
    return converter


_KINDS: dict[type[Any], str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class _WrongKindError(TypeError):
    """A value of a wrong type, in words."""


def _exactly(value: Any, kind: type[Any]) -> Any:
    if issubclass(kind, Enum):  # the named numbers and words of the protocol are numbers and words, too
        return kind(value)
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    actual = _KINDS.get(cast("type[Any]", type(value)), "another value")
    raise _WrongKindError(f"{actual} where {_KINDS[kind]} is wanted")


def describe(error: BaseException) -> str:
    """The innermost causes of a conversion failure, at most three, in one line."""
    causes: list[str] = []
    pending: list[BaseException] = [error]
    while pending and len(causes) < 3:
        here = pending.pop(0)
        if isinstance(here, BaseExceptionGroup):
            pending.extend(cast("BaseExceptionGroup[BaseException]", here).exceptions)
        else:
            causes.append(_in_words(here))
    return "; ".join(dict.fromkeys(causes))


def _in_words(error: BaseException) -> str:
    """A cause for people: nothing of how it was noticed."""
    if isinstance(error, KeyError):
        return f"'{error.args[0]}' is missing" if error.args else "a name is missing"
    if isinstance(error, ValueError) and str(error):
        return str(error)
    return str(error) if isinstance(error, _WrongKindError) else "a value is of another type than is wanted"
