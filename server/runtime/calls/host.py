"""The application at the other end of the connection, as calls see it. Must not know how it is reached."""

from __future__ import annotations

from typing import Any, Protocol


class HostError(Exception):
    """The host answered a request with an error, or went away; the text is its own, shortened."""


class Host(Protocol):
    """The application at the other end of the connection, as far as it can be asked and told."""

    async def ask(self, method: str, params: object) -> Any:
        """Sends a request and waits for its result. Raises ``HostError``; waits without limit, so callers bound it."""
        ...

    def tell(self, method: str, params: object) -> None:
        """Sends a notification; one that a slow host has no room for is dropped."""
        ...
