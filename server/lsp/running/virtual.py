"""Documents that only the server has: results of runs and prompt previews (``workspace/textDocumentContent``). Bounded.

Must not know how their content is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import unquote

RESULT_SCHEME = "tamis-result"
PROMPT_SCHEME = "tamis-prompt"
SCHEMES = (RESULT_SCHEME, PROMPT_SCHEME)
MAX_KEPT = 200


class VirtualDocuments:
    """Texts by URI; a text may be made when it is asked for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str | Callable[[], str]] = OrderedDict()

    def put(self, uri: str, text: str | Callable[[], str]) -> None:
        """Keeps a document, or how it is made; the oldest ones go when there are too many."""
        self._kept[uri] = text
        self._kept.move_to_end(uri)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def get(self, uri: str) -> str | None:
        """A document's present text, or None when it is not kept."""
        found = self._kept.get(uri)
        if found is None:
            # Editors write the escapes of a URI in their own way.
            meant = unquote(uri)
            found = next((text for known, text in self._kept.items() if unquote(known) == meant), None)
        return found if found is None or isinstance(found, str) else found()

    def uris(self, scheme: str) -> list[str]:
        """The kept documents of a scheme."""
        return [uri for uri in self._kept if uri.startswith(scheme + ":")]
