"""What a package implements that brings a handler type, and what it is given (entry point group ``tamis.handlers``; docs/handlers.md).

Plain data and one interface, so that a package needs nothing else of Tamis. Must not know how packages are found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

HANDLER_API = 1
"""The version of this interface; a handler says which it was written for."""


class HandlerError(Exception):
    """A call that failed, with words for the model: what went wrong, where, and what to do."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class HandlerCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that may run: its arguments fit the manifest's schema, and a person allowed it where one had to be asked."""

    tool_id: str
    version: str
    call_id: str
    args: Mapping[str, Any]
    handler: Mapping[str, Any]
    """The fields of the manifest's ``handler``, without ``type``."""
    folder: str
    """The folder that the manifest stands in."""
    timeout_ms: int
    """How long the call may take; then it is cancelled."""
    hosts: tuple[str, ...]
    """What was granted of ``networkAccess.allowHosts``: the handler keeps to it, nothing else does."""
    read: tuple[str, ...]
    """What was granted of ``fileAccess.allowRead``, as absolute paths."""
    write: tuple[str, ...]
    """What was granted of ``fileAccess.allowWrite``, as absolute paths of folders, which may have to be made."""
    session_id: str
    agent_id: str
    log: Callable[[str], None]
    """Adds a line to the logs of the result."""


class HandlerPlugin(Protocol):
    """A handler type. One object serves all calls of all tools that name it."""

    @property
    def api(self) -> int:
        """``HANDLER_API`` as it was when the package was written."""
        ...

    @property
    def type(self) -> str:
        """The handler's type: the name of the entry point."""
        ...

    def problem(self, handler: Mapping[str, Any]) -> str:
        """Why a tool with these fields cannot be called, cause and remedy; empty when it can. Asked often: quick, and no I/O."""
        ...

    def run(self, call: HandlerCall) -> Awaitable[Any] | Any:
        """The output of one call, as plain JSON data. Raises ``HandlerError`` when it fails.

        A coroutine function runs on the daemon's loop and must not block it; any other function runs in a thread.
        """
        ...
