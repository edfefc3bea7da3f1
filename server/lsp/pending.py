"""Requests under way in the framework lane: each is answered exactly once, whoever comes first.

A cancelled request is answered at once and not begun if it still waits (pygls#517); what it gives later is dropped. An answer
about a text that has changed meanwhile is ``ContentModified``, for its positions lie in a text that the client has no more. Must
not know verbs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from tamis.server.analysis.kinds import uses_tools

if TYPE_CHECKING:
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.envelope import Envelope, MessageId
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.verb import Verb


MAX_PENDING = 2_000
"""More requests than this are refused: a client that asks so much does not read the answers."""
HELD = object()
"""What a handler gives that answers later by itself."""


class _Target(msgspec.Struct, rename="camel"):
    """The document that a request is about; with a place in it, the answer depends on the text that the client saw."""

    text_document: _Uri
    position: Any = UNSET
    range: Any = UNSET
    positions: Any = UNSET
    ranges: Any = UNSET


class _Uri(msgspec.Struct):
    uri: str


_DECODER = msgspec.json.Decoder(_Target)


def target_uri(params: Raw | UnsetType) -> str | None:
    """The URI of the document that a request is about, if it is about one."""
    target = _target(params)
    return target.text_document.uri if target is not None else None


def _target(params: Raw | UnsetType) -> _Target | None:
    if not isinstance(params, Raw):
        return None
    try:
        return _DECODER.decode(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # about no document, or not understood: then it has its error later


class Flight:
    """One request under way."""

    __slots__ = ("document", "placed", "uri")

    def __init__(self, uri: str | None, document: Document | None, placed: bool) -> None:
        self.uri = uri
        self.document = document
        self.placed = placed

    def stale(self, documents: dict[str, Document]) -> bool:
        """Whether the text that the answer is about has changed."""
        return self.uri is not None and documents.get(self.uri) is not self.document


class Pending:
    """The requests under way by id; any thread."""

    def __init__(self) -> None:
        self._flights: dict[MessageId, Flight] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._flights)

    def begin(self, identity: MessageId, params: Raw | UnsetType, documents: dict[str, Document]) -> bool:
        """A request arrived; False when one with the same id is under way."""
        flight = Flight(None, None, False)
        target = _target(params)
        if target is not None:
            places = (target.position, target.range, target.positions, target.ranges)
            uri = target.text_document.uri
            flight = Flight(uri, documents.get(uri), any(place is not UNSET for place in places))
        with self._lock:
            return self._flights.setdefault(identity, flight) is flight

    def start(self, identity: MessageId, documents: dict[str, Document]) -> Flight | None:
        """A request's turn has come; None when it was answered already. Without a place in it, it is about the text as it is now."""
        flight = self._flights.get(identity)
        if flight is not None and not flight.placed and flight.uri is not None:
            flight.document = documents.get(flight.uri)
        return flight

    def take(self, identity: MessageId) -> Flight | None:
        """Whoever gets the flight answers; None when someone did."""
        with self._lock:
            return self._flights.pop(identity, None)


# Requests that wait for tools: while the folder of their document is read, for a bounded time.


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
