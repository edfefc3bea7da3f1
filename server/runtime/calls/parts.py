"""What lives as long as a runtime and is shared by all of its calls: services, workflows, tasks, the store and their like.

Each part is made when it is first asked for, so that a command that needs none pays for none. Must not know faces: what a host
can be asked and told goes through ``Host``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from tamis.server.runtime.settings.config import Settings


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


class Parts:
    """The parts of one runtime."""

    def __init__(self, root: Path = Path(), settings: Settings | None = None) -> None:
        self.root = root
        self.settings = settings or Settings()
        self.host: Host | None = None
        """None on the command line: there is no one to ask or tell."""

    def tell(self, method: str, params: object) -> None:
        """Tells the host, if there is one."""
        if self.host is not None:
            self.host.tell(method, params)

    async def close(self) -> None:
        """Ends what the parts keep."""
