"""MCP's manners, on top of the JSON-RPC session: a message a line, no word after a cancel, batches only where a revision has them.

Must not know what a method does.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, cast

from tamis.server.rpc.session import Answer, Method, Request, Session
from tamis.server.wire.jsonrpc import INVALID_REQUEST, PARSE_ERROR, RpcError, encode_error

_HEADER = re.compile(rb"(?i)[ \t]*content-(?:length|type)[ \t]*:")
_KEPT = frozenset({"initialize"})
"""Requests that a client may not take back."""


class McpSession(Session):
    """The connection to one MCP client."""

    def __init__(self, methods: dict[str, Method]) -> None:
        super().__init__(methods, {"notifications/cancelled": self._cancelled}, framing="lines")
        self.takes_batches = True
        """Whether the revision that was agreed on has batches."""
        self._told_framing = False

    def _body(self, body: bytes | RpcError) -> None:
        if isinstance(body, bytes) and _HEADER.match(body):
            text = "a message stands alone on its line, without headers: MCP on stdio has no Content-Length"
            if not self._told_framing:
                self._told_framing = True
                self.log().warn(text)
            body = RpcError(PARSE_ERROR, text)
        super()._body(body)

    def _batch(self, items: list[object]) -> None:
        if self.takes_batches:
            super()._batch(items)
            return
        text = "the revision of MCP that is spoken here has no batches; send each message on its own line"
        self._way()(encode_error(None, RpcError(INVALID_REQUEST, text)))

    def _notification(self, method: str, params: object) -> None:
        if method in self.on_notification:
            self.on_notification[method](params)

    def _cancelled(self, params: object) -> None:
        identity = cast("dict[str, Any]", params).get("requestId") if isinstance(params, dict) else None
        found = self.pending.get(identity) if isinstance(identity, str | int | float) else None
        if found is None:
            return
        self.take_back(found[0])

    def take_back(self, request: Request) -> None:
        """Cancels a request that its client does not wait for any more."""
        if request.method in _KEPT:
            return
        # nothing more is said of a cancelled request, however it ends
        request.answer = partial(_say_nothing, request.answer)
        request.cancelled.set()

    def _withdraw(self, identity: str, about: Request | None) -> None:
        self.notify("notifications/cancelled", {"requestId": identity, "reason": "the call has ended"}, about=about)


def _say_nothing(answer: Answer, _reply: bytes | None) -> None:
    answer(None)
