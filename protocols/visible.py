"""Text in which everything can be seen: controls, marks of direction and characters without a shape as escapes.

What comes from a folder, a manifest, a model, a script or a server is shown to persons only in this form (D74). Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.protocols.invisible import UNSHOWN
from tamis.protocols.patterns import lazy

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
