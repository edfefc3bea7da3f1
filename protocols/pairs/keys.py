"""The key of a pair and what surrounds it: decoration, separator, invisible characters.

Must not know what a key means, nor where its value ends.
"""

from __future__ import annotations

from tamis.protocols.model import MAX_NAME_CHARS, Edit
from tamis.protocols.pairs.bounds import Bounds, past
from tamis.protocols.pairs.walk import BLANK, LEADING, QUOTES, TRAILING, Pair, delete, excerpt, fix, note_invisible
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import visible

_CLOSING_DECORATION = lazy(r"[*`\"'”’]{1,3}(?=\s)")


def undecorated(written: str, protocol: str) -> tuple[int, str]:
    """A key without its decoration, and how many characters of that stand before it; an empty one when nothing else is there."""
    written = written.rstrip()
    first = LEADING.match(written)
    skip = first.end() if first else 0
    bare = written[skip:].rstrip(TRAILING)
    if protocol == "tam" and len(bare) > 4 and bare.startswith("__") and bare.endswith("__"):
        return skip + 2, bare[2:-2]
    return skip, bare


class Keys(Bounds):
    """The part of the walk that opens pairs."""

    def blank(self, at: int, bound: int) -> int:
        """Past blanks and closing emphasis between separator and value (``**key:** value``)."""
        at = past(BLANK, self.text, at, bound)
        if m := _CLOSING_DECORATION.match(self.text, at, bound):
            at = past(BLANK, self.text, m.end(), bound)
        return at

    def key(self, start: int, end: int) -> tuple[Span, list[Edit]]:
        """The undecorated span of a key and the edits that remove its decoration."""
        written = self.text[start:end].rstrip()
        skip, bare = undecorated(written, self.d.protocol)
        if not bare:
            return (start, start + len(written)), []
        edits = [delete(start, start + skip)] if skip else []
        inner = start + skip + len(bare)
        if skip + len(bare) < len(written):
            edits.append(delete(inner, start + len(written)))
        return (start + skip, inner), edits

    def open_pair(self, start: int, key_end: int, sep: Span | None, head_start: int) -> Pair:
        """Starts a pair: its key, its separator and what is to be said about both."""
        text, d, index = self.text, self.d, len(self.out.pairs)
        span, edits = self.key(start, key_end)
        raw = text[span[0] : span[1]]
        if len(raw) > MAX_NAME_CHARS:
            self.found.add("TC021", span, index, args={"limit": MAX_NAME_CHARS})
            raw = raw[:MAX_NAME_CHARS]
        tail_decoration = sep is not None and visible(text[sep[1] : head_start]).strip() != ""
        if tail_decoration and sep is not None:
            edits.append(delete(sep[1], head_start))
        # In a quotation (``> key``) the lines of the values are quoted too, and nobody wrote them so.
        quoted = raw.startswith(QUOTES)
        if edits or quoted:
            self.found.add(
                d.codes.decoration,
                (start, key_end),
                index,
                args={"raw": excerpt(text, start, key_end)},
                severity="error" if quoted else None,
                fix=fix("Remove the decoration", *edits) if edits else None,
                repair=True,
            )
        if not raw.isascii() and visible(raw) != raw:
            rewrite = fix("Remove the invisible characters", Edit(*span, visible(raw)))
            char = next(char for char in raw if not visible(char))
            args: dict[str, str | int] = {"hex": f"{ord(char):04X}", "where": "a name"}
            self.found.add("TC013", span, index, args=args, fix=rewrite, repair=True)
        written = text[sep[0] : sep[1]] if sep else ""
        if written != ":":
            self.found.add(
                d.codes.separator,
                sep or (key_end, head_start),
                index,
                args={"raw": written or "a missing separator"},
                fix=fix("Write ':'", Edit(*(sep or (key_end, head_start)), ":")),
                repair=True,
            )
        elif sep and not tail_decoration:
            note_invisible(self.found, text, sep[1], head_start, "layout", index)
        pair = Pair(start, start, span, raw, (head_start, head_start), "bare")
        self.out.pairs.append(pair)
        return pair
