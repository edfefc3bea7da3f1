"""Requests that wait for tools: while the folder of their document is read, for a bounded time. Must not know what they ask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tamis.server.analysis.kinds import uses_tools
from tamis.server.lsp.pending import target_uri

if TYPE_CHECKING:
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.envelope import Envelope, MessageId
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.verb import Verb


class Waiting:
    """The waiting requests of one session; other messages go on meanwhile."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[MessageId, tuple[float, Document, Envelope]] = {}

    def postponed(self, request_id: MessageId, verb: Verb, message: Envelope) -> bool:
        """Whether a request has to wait; then it is kept until it is ``ready``."""
        session = self._session
        if (
            verb.waits is None
            or request_id in self._waiting
            or all(root.loaded.is_set() for root in session.workspace.roots)
        ):
            return False
        uri = target_uri(message.params)
        document = session.documents.get(uri) if uri is not None else None
        if document is None or not uses_tools(document.kind) or not session.workspace.waits(document):
            return False
        wait = verb.waits(session, document)
        if not wait or not session.begun:
            return False
        self._waiting[request_id] = (time.monotonic() + wait, document, message)
        return True

    @property
    def due(self) -> list[float]:
        """When each has waited long enough (monotonic seconds)."""
        return [until for until, _, _ in self._waiting.values()]

    def ready(self, *, everything: bool = False) -> Iterator[tuple[MessageId, Envelope]]:
        """Those that have waited long enough or whose tools are there, with ``everything`` all; each is gone once it was answered."""
        now = time.monotonic()
        for request_id, (until, document, message) in list(self._waiting.items()):
            if everything or until <= now or not self._session.workspace.waits(document):
                if until <= now:
                    self._session.workspace.waited(document)
                yield request_id, message
                self._waiting.pop(request_id, None)

    def forget(self, request_id: MessageId) -> bool:
        """Drops a request, if it waits."""
        return self._waiting.pop(request_id, None) is not None
