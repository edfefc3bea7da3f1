"""Requests under way in the framework lane: each is answered exactly once, whoever comes first.

A cancelled request is answered at once and not begun if it still waits (pygls#517); what it gives later is dropped. An answer
about a text that has changed meanwhile is ``ContentModified``, for its positions lie in a text that the client has no more. Must
not know verbs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

if TYPE_CHECKING:
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.envelope import MessageId

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
