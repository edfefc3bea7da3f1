"""The host as the runtime asks and tells it: requests and notifications of the session. Must not know what is asked."""

from __future__ import annotations

from typing import Any

from tamis.server.rpc.session import Session
from tamis.server.runtime.calls.parts import HostError
from tamis.server.wire.jsonrpc import RpcError

MAX_ERROR_CHARS = 4_000


class SessionHost:
    """The application at the other end of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def ask(self, method: str, params: object) -> Any:
        """Sends a request and waits for its result. Raises ``HostError`` with the host's own words."""
        try:
            return await self._session.ask(method, params)
        except RpcError as error:
            raise HostError(error.text[:MAX_ERROR_CHARS]) from None

    def tell(self, method: str, params: object) -> None:
        """Sends a notification; it is dropped while the host has far too much to read."""
        self._session.notify(method, params, droppable=True)
