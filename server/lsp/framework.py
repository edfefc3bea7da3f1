"""The framework lane: pygls and lsprotocol serve every verb that is not hot, on an event loop in a thread of its own.

The session hands over whole envelopes. This protocol class decodes their parameters by method instead of by a hook on every
nested object, answers parameters of a wrong shape with -32602 (pygls 2.1 leaves such requests without an answer) and keeps
custom parameters as they are (pygls makes tuples of them, which renames keys). It writes bytes, once, through the
session's writer. Handlers see documents as frozen values of the session. Must not hold rules.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec
from cattrs.errors import BaseValidationError
from lsprotocol import types
from msgspec import UNSET, Raw
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

import tamis
from tamis.server.lsp.envelope import Envelope, decode_params
from tamis.server.lsp.features import code_action, hover
from tamis.server.wire.jsonrpc import RpcError

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session


class TamisProtocol(LanguageServerProtocol):
    """pygls' dispatch without its reader, decoder and writer."""

    write: Callable[[bytes], None]

    def receive(self, message: Envelope) -> None:
        """Handles one message; runs on the loop."""
        if message.method is UNSET:
            self._take_response(message)
            return
        raw = message.params
        try:
            params: Any = decode_params(raw, Any) if isinstance(raw, Raw) else None
        except RpcError as error:
            if isinstance(message.id, (int, str)):
                self._send_response(message.id, None, types.ResponseError(error.code, str(error)))
            return
        if message.id is UNSET or message.id is None:
            if message.method == types.CANCEL_REQUEST and isinstance(params, dict):
                self._handle_cancel_notification(cast("dict[str, Any]", params).get("id", ""))
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

    def _take_response(self, message: Envelope) -> None:
        if not isinstance(message.id, (int, str)):
            return
        if isinstance(message.error, Raw):
            decoded = msgspec.json.decode(message.error)
            error = self._converter.structure(decoded, types.ResponseError)
            self._handle_response(message.id, None, error)
            return
        result: Any = msgspec.json.decode(message.result) if isinstance(message.result, Raw) else None
        result_type: Any = self._result_types.pop(message.id, None)
        if result_type is not None:
            whole = {"jsonrpc": "2.0", "id": message.id, "result": result}
            result = self._converter.structure(whole, result_type).result
        self._handle_response(message.id, result)

    def _send_data(self, data: Any) -> None:
        # One encoding, no log line of every body, and never the falsy-result drop of the base class.
        plain = self._converter.unstructure(data) if hasattr(data, "__attrs_attrs__") else data
        self.write(msgspec.json.encode(plain, enc_hook=self._serialize_message))


class Framework:
    """A pygls server on its own loop, fed by the session."""

    def __init__(self, session: Session, write: Callable[[bytes], None]) -> None:
        self._loop = asyncio.new_event_loop()
        server = LanguageServer("tamis", tamis.__version__, protocol_cls=TamisProtocol)
        self.protocol = cast("TamisProtocol", server.protocol)
        self.protocol.write = write
        self.server = server
        register(server, session)
        threading.Thread(target=self._loop.run_forever, name="tamis-framework", daemon=True).start()

    def receive(self, message: Envelope) -> None:
        """Hands over a message from any thread."""
        self._loop.call_soon_threadsafe(self.protocol.receive, message)


FEATURES = (
    hover,
    code_action,
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
            causes.append(f"{type(here).__name__}: {here}" if str(here) else type(here).__name__)
    return "; ".join(causes)


__all__ = ["Framework", "JsonRpcMethodNotFound", "TamisProtocol", "register"]
