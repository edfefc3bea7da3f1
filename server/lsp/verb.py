"""What a verb of the language server is: a message of the client, who handles it, when, and what is announced of it.

Each module of ``features/`` declares its verbs beside their handlers; ``table.py`` has them all. A declaration is read at start, so its
module imports pygls and lsprotocol for types only and the analyses inside its handlers. Must not know any verb.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

Schedule = Literal["now", "snapshot", "background"]
"""When a handler runs.

``now``: on the session's thread, in the order of the messages. ``snapshot``: on the framework lane, one after the other, about documents
that do not change meanwhile; an answer about a text that has changed since is ``ContentModified``. ``background``: a coroutine on the
framework lane's loop, ended when its request is cancelled.
"""

Capability = dict[str, Any] | Callable[["Session"], dict[str, Any]]
"""A part of ``ServerCapabilities``, or what makes it for one client."""


class Verb(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A request or a notification of the client."""

    method: str
    params: Any
    """What the params are decoded as: a msgspec type, by whose name ``str`` one of lsprotocol (on the framework lane), or ``object`` where
    nobody looks at them."""
    handler: Callable[..., Any]
    """Gets the session and the params, and the request's id where ``gets_id``; gives the result. A refusal is an ``RpcError``."""
    schedule: Schedule
    capability: Capability | None = None
    gets_id: bool = False
    waits: Callable[[Session, Document], float] | None = None
    """For how many seconds a request waits for the tools of its document's folder, while these are read; only with ``now``."""

    def handle(self, session: Session, params: Any, identity: Any) -> Any:
        """The handler's result."""
        return self.handler(session, params, identity) if self.gets_id else self.handler(session, params)
