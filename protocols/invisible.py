"""Characters that nobody sees: one table, each set for a character class of a pattern, and for what it is there.

The sets differ on purpose: what a reader passes over must never be what a protocol reads as text, and what is refused in names, or
shown escaped, is more. Whoever needs a further set makes it here. Must not know protocols.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.protocols.patterns import lazy

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
"""Without a width, anywhere."""
IN_LAYOUT = f"\u00ad{ZERO_WIDTH}\u200e\u200f"
"""What models and editors leave in the layout of TAM and VCP; never a letter, digit or blank. Single characters, no ranges."""
IN_TAGS = f"{IN_LAYOUT}\u202a\u202b\u202c\u202d\u202e"
"""What may stand around the names of ACTION's tags and attributes: marks of direction too. Single characters, no ranges."""
IN_MARKERS = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
"""What readers of any dialect pass over inside a marker, so that a text without life must not have it there."""
IN_JSON = "\u00a0\u3000\u200b-\u200f\u2060\ufeff"
"""What the JSON that models write has between its tokens: blanks that JSON does not know too."""
BEHIND_JSON = "\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff"
"""What may stand between the last bracket of a JSON document and a comment."""
NOT_IN_NAMES = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
"""What ids, names and paths must not have, and no record shows as it is."""
LINE_SEPARATORS = "\u2028\u2029"
"""What some systems read as a line's end."""
HIDING = "\u00ad\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
"""What hides words from a person who reads a text that a model is given; joiners, which scripts need, are none of it."""
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Unicode's default ignorable characters: what marks of contexts are read through."""
UNSHOWN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0d"
    "\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What shows nothing, or changes how its neighbours are shown: controls, marks of direction, blanks without width, fillers, tags, selectors of
variants (but the two that emoji have), lone surrogates."""


# Text in which everything can be seen: controls, marks of direction and characters without a shape as escapes. What comes from a folder, a manifest,
# a model, a script or a server is shown to persons only in this form (D74). Pure.


_UNSEEN = lazy(f"[{UNSHOWN}]")
_SHORT = {9: "\\t", 10: "\\n", 13: "\\r"}


def visible(text: str) -> str:
    """The text on one line, with every character that cannot be seen as an escape of JSON's form (``\\u001b``)."""
    return _escaped(text, _json_escape)


def visible_line(text: str) -> str:
    """The same as a terminal shows it: ``\\x1b`` for what is below 256. Line ends are escapes too, so that no text makes lines."""
    return _escaped(text, _short_escape)


def visible_lines(text: str) -> str:
    """The same for a text of several lines: line ends and tabs stay."""
    return _escaped(text, _layout_escape)


def visible_json(text: str) -> str:
    """A JSON document that means the same, whose strings show what cannot be seen as JSON escapes."""
    return _escaped(text, _document_escape)


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda match: escape(match.group()), text)


def _json_escape(char: str) -> str:
    code = ord(char)
    if code in _SHORT:
        return _SHORT[code]
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _short_escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 and code not in _SHORT else _json_escape(char)


def _layout_escape(char: str) -> str:
    return char if char in "\n\t" else _short_escape(char)


def _document_escape(char: str) -> str:
    code = ord(char)
    if char in "\n\t\r":
        return char  # between the values; in a string they are escapes already
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
