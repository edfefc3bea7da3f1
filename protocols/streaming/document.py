"""The beginning of a text that may be nothing but call JSON (W14): such a text is one block, and its end decides.

Must not know what call JSON looks like inside: ``calljson/document.py`` says whether a text can still become a document.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.invisible import BEHIND_JSON
from tamis.protocols.model import ReadOptions
from tamis.protocols.patterns import lazy

_BEGUN = lazy(r"\ufeff?+[ \t\r\n]*+(?:(?:`++|~++)[\w\-]*+[ \t]*+(?:\r?+(?:\n[ \t\r\n]*+)?+)?+)?+\Z")
_START = lazy(r"\ufeff?+[ \t\r\n]*+(?:(?P<fence>`{3,}+|~{3,}+)[\w\-]*+[ \t]*+\r?\n[ \t\r\n]*+)?(?=[{\[])")
_ENDS = lazy(r"[\]}`~]")
_COMMENT = lazy(rf"[\]}}][\s{BEHIND_JSON}]*+[/#]")
"""What may be a comment behind the last bracket, of which no end is certain."""
_FENCE_END = "`~ \t\r\n"
_PATIENCE = 8
_SMALL = 2_048


class Gate:
    """Holds the text from its first character on while it may be a document of call JSON."""

    def __init__(self, protocol: str, options: ReadOptions) -> None:
        self.open = protocol in ("auto", "json")
        """True while everything is held."""
        self._protocol = protocol
        self._options = options
        self._chunks: list[str] = []
        self._size = 0
        self._spent = 0
        self._started = False
        self._whole = False

    def feed(self, chunk: str) -> str:
        """Takes the next piece; what is let go, which is everything so far when the text is no such document."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._spent > _PATIENCE * self._size + _SMALL:
            return ""
        if not self._started:
            text = self._joined()
            self._spent += len(text)
            if _BEGUN.match(text) is not None:
                return ""
            if _START.match(text) is None:
                return self._let_go(text)
            self._started = True
        elif self._protocol == "json" or not (_ENDS.search(chunk) is not None or (self._whole and chunk.strip())):
            return ""
        if self._protocol == "json":
            return ""
        text = self._joined()
        self._spent += len(text)
        return self._let_go(text) if self._is_none(text) else ""

    def _is_none(self, text: str) -> bool:
        """True when the text is no document, whatever follows."""
        from tamis.protocols.calljson.document import read_call_document

        reading = read_call_document(Source(text), self._protocol, self._options)
        self._whole = not isinstance(reading, str)
        start = _START.match(text)
        if reading != "no" or start is None or _COMMENT.search(text) is not None:
            return False
        fence = start["fence"]
        if fence is None:
            return True
        # The fence may still be closed right here.
        closed = Source(f"{text.rstrip(_FENCE_END)}\n{fence}")
        options = msgspec.structs.replace(self._options, complete=True)
        return read_call_document(closed, self._protocol, options) == "no"

    def _joined(self) -> str:
        text = "".join(self._chunks)
        self._chunks = [text]
        return text

    def _let_go(self, text: str) -> str:
        self.open = False
        self._chunks.clear()
        return text
