"""The host as the runtime asks and tells it: requests and notifications of the session. Must not know what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamis.server.rpc.session import Session
from tamis.server.runtime.calls.host import HostError
from tamis.server.wire.jsonrpc import RpcError

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
            raise HostError(error.text[:MAX_ERROR_CHARS]) from None

    def tell(self, method: str, params: object) -> None:
        """Sends a notification; it is dropped while the host has far too much to read."""
        if method not in EVENTS or self._wants():
            self._session.notify(method, params, droppable=True)
