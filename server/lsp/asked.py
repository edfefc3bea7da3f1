"""Requests of ours to the client: who waits for which answer. Must not know what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from tamis.server.lsp.envelope import Envelope, decode_params
from tamis.server.lsp.trace import report_failure
from tamis.server.wire.jsonrpc import RpcError

MAX_ASKED = 1_000
"""Requests that wait for the client's answer; the oldest are given up."""


class Asked:
    """The open ones of one session, on its lane."""

    def __init__(self) -> None:
        self._next_id = 0
        self._asked: dict[int, Callable[[Any], None]] = {}

    def begin(self, then: Callable[[Any], None] | None) -> int:
        """The id of a new request; ``then`` gets its result, None for an error."""
        self._next_id += 1
        if then is not None:
            self._asked[self._next_id] = then
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]
        return self._next_id

    def answered(self, message: Envelope) -> None:
        """The client's answer; one to an unknown id is nobody's."""
        then = self._asked.pop(message.id, None) if isinstance(message.id, int) else None
        if then is None:
            return
        result: Any = None
        if isinstance(message.result, Raw) and not isinstance(message.error, Raw):
            try:
                result = decode_params(message.result, Any)
            except RpcError:
                result = None
        try:
            then(result)
        except Exception:  # a strange answer ends nothing
            report_failure("an answer of the client")
