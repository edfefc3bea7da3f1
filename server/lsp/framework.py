"""The framework lane: pygls and lsprotocol serve every verb that is not hot, on an event loop in a thread of its own.

The session hands over whole envelopes. This protocol class decodes their parameters by method instead of by a hook on every
nested object, answers parameters of a wrong shape with -32602 (pygls 2.1 leaves such requests without an answer) and keeps
custom parameters as they are (pygls makes tuples of them, which renames keys). It writes bytes, once, through the
session's writer. Handlers see documents as frozen values of the session. Must not hold rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import msgspec
from cattrs import Converter
from cattrs.errors import BaseValidationError
from lsprotocol import types
from msgspec import UNSET, Raw
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

import tamis
from tamis.server.lsp.envelope import Envelope, MessageId, decode_params
from tamis.server.lsp.features import (
    call_hierarchy,
    code_action,
    code_lens,
    definition,
    execute_command,
    folding_range,
    formatting,
    hover,
    inlay_hint,
    linked_editing,
    links,
    references,
    rename,
    selection_range,
    semantic_tokens,
    signature_help,
    symbols,
    test_explorer,
)
from tamis.server.lsp.tool_names import is_tool_method
from tamis.server.wire.jsonrpc import (
    INTERNAL_ERROR,
    REQUEST_CANCELLED,
    RpcError,
    encode,
    encode_error,
    encode_request,
    encode_result,
)

if TYPE_CHECKING:
    from tamis.server.lsp.running.commands import Commands
    from tamis.server.lsp.running.tool_methods import ToolMethods
    from tamis.server.lsp.session import Session


CONTENT_MODIFIED = -32801
END_SECONDS = 0.35


class TamisProtocol(LanguageServerProtocol):
    """pygls' dispatch without its reader, decoder and writer."""

    session: Session
    write: Callable[[bytes], object]
    tool_methods: ToolMethods | None = None
    commands: Commands | None = None
    """What runs calls, once something was asked of it."""

    def receive(self, message: Envelope) -> None:
        """Handles one message; runs on the loop, where nothing may raise."""
        if message.method is UNSET:
            self._take_response(message)
            return
        if message.id is UNSET or message.id is None:
            self._take_notification(message)
            return
        flight = self.session.pending.start(message.id, self.session.documents)
        if flight is None:
            return  # cancelled before its turn came
        if flight.stale(self.session.documents):
            self._send_response(message.id, None, types.ResponseError(CONTENT_MODIFIED, "The document has changed"))
            return
        self.session.workspace.settle()
        raw = message.params
        try:
            params: Any = decode_params(raw, Any) if isinstance(raw, Raw) else None
        except RpcError as error:
            self._send_response(message.id, None, types.ResponseError(error.code, str(error)))
            return
        if is_tool_method(message.method):
            self._take_tool_request(message.id, message.method, params)
            return
        message_type = types.METHOD_TO_TYPES.get(message.method, (None,))[0]
        try:
            if message_type is not None:
                whole = {"jsonrpc": "2.0", "id": message.id, "method": message.method, "params": params}
                params = self._converter.structure(whole, message_type).params
        except (BaseValidationError, TypeError, ValueError, KeyError, AttributeError) as error:
            refusal = JsonRpcInvalidParams(f"Parameters of '{message.method}': {describe(error)}")
            self._send_response(message.id, None, refusal.to_response_error())
            return
        self._handle_request(message.id, message.method, params)

    def _take_tool_request(self, identity: MessageId, method: str, params: Any) -> None:
        """Answers a method of ``tamis rpc``."""

        async def answer() -> None:
            try:
                body = encode_result(
                    identity, await execute_command.tool_methods_of(self.session, self).answer(identity, method, params)
                )
            except RpcError as error:
                body = encode_error(identity, error)
            except Exception as error:  # one bad request never ends the session
                import sys
                import traceback

                traceback.print_exception(error, file=sys.stderr)
                body = encode_error(identity, RpcError(INTERNAL_ERROR, f"'{method}' failed: {error!r}"))
            if self.session.pending.take(identity) is not None:
                self.write(body)

        task: Any = asyncio.get_running_loop().create_task(answer())
        self._request_futures[identity] = task

        def done(_: object) -> None:
            self._request_futures.pop(identity, None)

        task.add_done_callback(done)

    def ask(self, identity: str, method: str, params: object) -> Future[Any]:
        """Sends a request whose answer is taken as it comes."""
        future: Future[Any] = Future()
        self._request_futures[identity] = future
        self.write(encode_request(identity, method, params))
        return future

    def cancel(self, identity: MessageId) -> None:
        """Ends the work of a request that was answered as cancelled, as far as its handler can be ended."""
        future = self._request_futures.pop(identity, None)
        if future is not None:
            future.cancel()

    def _take_notification(self, message: Envelope) -> None:
        try:
            params: Any = decode_params(message.params, Any)
            message_type = types.METHOD_TO_TYPES[str(message.method)][0]
            whole = {"jsonrpc": "2.0", "method": message.method, "params": params}
            params = self._converter.structure(whole, message_type).params
        except Exception:  # of a notification that is not understood nothing follows
            return
        self._handle_notification(str(message.method), params)

    def _take_response(self, message: Envelope) -> None:
        identity = message.id
        future = self._request_futures.get(identity) if isinstance(identity, (int, str)) else None
        if future is None or not isinstance(identity, (int, str)):
            return
        if future.done():  # whoever waited for it was cancelled
            del self._request_futures[identity]
            return
        result_type: Any = self._result_types.pop(identity, None)
        try:
            if isinstance(message.error, Raw):
                decoded = msgspec.json.decode(message.error)
                self._handle_response(identity, None, self._converter.structure(decoded, types.ResponseError))
                return
            result: Any = msgspec.json.decode(message.result) if isinstance(message.result, Raw) else None
            if result_type is not None:
                whole = {"jsonrpc": "2.0", "id": identity, "result": result}
                result = self._converter.structure(whole, result_type).result
        except Exception as error:  # an answer that is not understood is a failed one for whoever waits for it
            failed = types.ResponseError(types.ErrorCodes.ParseError.value, f"The client's answer: {describe(error)}")
            self._handle_response(identity, None, failed)
            return
        self._handle_response(identity, result)

    def _send_handler_result(self, future: Future[Any], *, msg_id: MessageId) -> None:
        """Answers with what a handler gave. A refusal is an answer like any other; only a failure is written to the log."""
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self._send_response(msg_id, None, types.ResponseError(REQUEST_CANCELLED, "Cancelled"))
            return
        error = future.exception()
        if error is None:
            self._send_response(msg_id, result=future.result())
        elif isinstance(error, JsonRpcException):
            self._send_response(msg_id, None, error.to_response_error())
        else:
            import sys
            import traceback

            print("tamis: a request failed", file=sys.stderr)  # noqa: T201
            traceback.print_exception(error, file=sys.stderr)
            self._send_response(msg_id, None, types.ResponseError(INTERNAL_ERROR, f"The request failed: {error!r}"))

    def _send_data(self, data: Any) -> None:
        # One encoding, no log line of every body, and never the falsy-result drop of the base class.
        plain = self._converter.unstructure(data) if hasattr(data, "__attrs_attrs__") else data
        identity: Any = None
        if isinstance(plain, dict) and "method" not in plain:
            message = cast("dict[str, Any]", plain)
            identity = message.get("id")
            flight = self.session.pending.take(identity)
            if flight is None:
                return  # answered already
            if message.get("error") is None and flight.stale(self.session.documents):
                self.write(encode_error(identity, RpcError(CONTENT_MODIFIED, "The document has changed")))
                return
        try:
            body = msgspec.json.encode(plain, enc_hook=self._serialize_message)
        except Exception:  # text that UTF-8 cannot carry, or an answer that is none
            try:
                body = encode(msgspec.to_builtins(plain, enc_hook=self._serialize_message))
            except Exception as error:
                if identity is None:
                    raise
                body = encode_error(identity, RpcError(INTERNAL_ERROR, f"The answer cannot be written: {error!r}"))
        self.write(body)


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
    given = _KINDS.get(cast("type[Any]", type(value)), "another value")
    raise _WrongKindError(f"{given} where {_KINDS[kind]} is wanted")


class Framework:
    """A pygls server on its own loop, fed by the session."""

    def __init__(self, session: Session, write: Callable[[bytes], object]) -> None:
        self._loop = asyncio.new_event_loop()
        server = LanguageServer(
            "tamis", tamis.__version__, protocol_cls=TamisProtocol, converter_factory=strict_converter
        )
        self.protocol = cast("TamisProtocol", server.protocol)
        self.protocol.session = session
        self.protocol.write = write
        self.server = server
        register(server, session)
        threading.Thread(target=self._run, name="tamis-framework", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.wait(left, timeout=END_SECONDS) if left else asyncio.sleep(0))
        self._loop.close()

    def _soon(self, work: Callable[..., object], *args: object) -> None:
        # the session may have ended while another thread had something to say
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *args)

    def receive(self, message: Envelope) -> None:
        """Hands over a message from any thread."""
        self._soon(self.protocol.receive, message)

    def abort_tests(self) -> None:
        """Ends the tests that run; from any thread."""

        def abort() -> None:
            if self.protocol.commands is not None:
                self.protocol.commands.tests.abort()

        self._soon(abort)

    def tools_changed(self, *, edited: bool = False) -> None:
        """What is known of tools is different: documents of ours that speak of them are; from any thread. Of an ``edited`` manifest only
        who uses the tool methods is told, for that may be at every key."""

        def tell() -> None:
            if self.protocol.tool_methods is not None:
                self.protocol.tool_methods.tools_changed()
            if self.protocol.commands is not None and not edited:
                self.protocol.commands.previews.changed()
                self.protocol.commands.tests.changed()

        self._soon(tell)

    def close(self) -> None:
        """Ends what was started for the client and waits for it, for ``END_SECONDS`` at most; from any other thread."""
        commands = self.protocol.commands
        if commands is not None:
            with contextlib.suppress(TimeoutError, RuntimeError):
                asyncio.run_coroutine_threadsafe(commands.runner.close(), self._loop).result(END_SECONDS)
        self._soon(self._loop.stop)

    def cancel(self, identity: MessageId) -> None:
        """Ends the work of a request, from any thread."""
        self._soon(self.protocol.cancel, identity)


FEATURES = (
    hover,
    inlay_hint,
    code_action,
    code_lens,
    execute_command,
    test_explorer,
    semantic_tokens,
    signature_help,
    folding_range,
    formatting,
    selection_range,
    definition,
    references,
    rename,
    symbols,
    links,
    linked_editing,
    call_hierarchy,
)
"""The modules of the verbs, in no order that matters."""


def register(server: LanguageServer, session: Session) -> None:
    """Registers every verb of this lane; ``FRAMEWORK_METHODS`` of the session names the same."""
    for feature in FEATURES:
        feature.register(server, session)


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


__all__ = ["Framework", "JsonRpcMethodNotFound", "TamisProtocol", "register"]
