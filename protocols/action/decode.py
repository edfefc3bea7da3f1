"""Text values of the ACTION protocol: entities, CDATA, layout (rulings 2 and 16).

Values are pieces of the source, so every decoded character leads back to where it stands. Must not know tags or calls.
"""

from __future__ import annotations

import re

from tamis.protocols.model import Piece
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

ENTITY = lazy(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#x([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{0,31}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}

BLANK = " \t\r\n\f\v\x1c\x1d\x1e\x1f\x85\u3000\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u1680"
"""What counts as layout between elements: everything that ``str.isspace`` knows."""

_NO_BLANK = lazy(r"\S")
_LEAD = lazy(r"[ \t\u3000\u00a0]*+(?:\r\n|\n|\r)")
_TAIL_BLANKS = " \t\u3000\u00a0"

# XML has no way to write these; a model that sends them has slipped (TC014).
_CONTROLS = (*(chr(c) for c in range(32) if c not in (9, 10, 13)), "\x7f", "\ufffe", "\uffff")

_PIECE = 32_768

SECTION_LIKE = ("![CDATA[", "[CDATA[")
"""How a value begins whose section lost its first bracket; with ``]]>`` at its end nobody means it as text (AX122)."""


def control_characters(text: str, start: int, end: int) -> list[int]:
    """Offsets of the first of each kind of control character in ``text[start:end]``, in order."""
    # One quick search per character beats a character class by ten: most texts have none. In pieces, so that all the
    # searches of a piece find it in the processor's cache.
    first: dict[str, int] = {}
    for low in range(start, end, _PIECE):
        part = text[low : min(end, low + _PIECE)]
        for char in _CONTROLS:
            if char in part and char not in first:
                first[char] = low + part.index(char)
    return sorted(first.values())


class Decoded:
    """Pieces under construction, with what was met on the way."""

    __slots__ = ("pieces", "raw_ampersands", "undefined")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.raw_ampersands: list[int] = []
        self.undefined: list[tuple[Span, str]] = []

    def text(self, text: str, start: int, end: int) -> None:
        """Adds element text: entities are decoded once, what is none stays as written (ruling 16, F6)."""
        at = text.find("&", start, end)
        plain = start
        while at >= 0:
            match = ENTITY.match(text, at, end)
            if match is None:
                self.raw_ampersands.append(at)
                at = text.find("&", at + 1, end)
                continue
            char = _character(match)
            if char is None:
                self.undefined.append((match.span(), match.group()[1:-1]))
            else:
                if plain < at:
                    self.pieces.append(Piece(plain, at))
                self.pieces.append(Piece(at, match.end(), char))
                plain = match.end()
            at = text.find("&", match.end(), end)
        if plain < end:
            self.pieces.append(Piece(plain, end))

    def literal(self, start: int, end: int) -> None:
        """Adds text that is never decoded: the inside of a CDATA section."""
        if start < end:
            self.pieces.append(Piece(start, end))


def _character(match: re.Match[str]) -> str | None:
    name, decimal, hexadecimal, _ = match.groups()
    if name is not None:
        return _NAMED[name]
    if decimal is None and hexadecimal is None:
        return None
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    # XML's own list of characters: NUL, surrogates and what lies beyond Unicode have no reference.
    if code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF:
        return chr(code)
    return None


def trim_cdata(text: str, start: int, end: int) -> Span:
    """A CDATA section's span less one leading newline and the last newline with its indentation (ruling 16)."""
    if start < end and text[start] in "\r\n":
        start += 2 if text.startswith("\r\n", start, end) else 1
    return start, trim_tail(text, start, end)


def trim_tail(text: str, start: int, end: int) -> int:
    """``end`` less the last newline and the indentation behind it."""
    at = end
    while at > start and text[at - 1] in _TAIL_BLANKS:
        at -= 1
    if at > start and text[at - 1] == "\n":
        at -= 1
        return at - 1 if at > start and text[at - 1] == "\r" else at
    if at > start and text[at - 1] == "\r":
        return at - 1
    return end


def trim_layout(text: str, start: int, end: int) -> Span:
    """The span of element text without the layout of its tags.

    Text on the tag's own line is exact. Where it begins on the next line, that line break goes, and where the closing
    tag stands on its own line, the break and indentation before it go, as in CDATA (ruling 16); a single line between
    them also loses its indentation. Nothing but blanks is the empty text.
    """
    if start < end and not text[start].isspace() and not text[end - 1].isspace():
        return start, end
    if start == end or text[start:end].isspace():
        return start, start
    lead = _LEAD.match(text, start, end) if text[start].isspace() else None
    tail = trim_tail(text, start, end)
    if lead is None:
        return start, tail
    start = lead.end()
    if tail < end and "\n" not in text[start:tail] and "\r" not in text[start:tail]:
        while start < tail and text[start] in _TAIL_BLANKS:
            start += 1
    return start, tail


def has_text(text: str, start: int, end: int) -> bool:
    """Whether anything but blanks stands in a part of a text. Nothing is copied."""
    return _NO_BLANK.search(text, start, end) is not None


def is_doubled(text: str, start: int, end: int) -> bool:
    """Whether a ``>`` at the start of a value may be the end of its tag written twice, and not a quotation (``> words``), a comparison or
    a redirection (``>=``, ``>>``)."""
    return text[start] == ">" and (start + 1 == end or text[start + 1] not in " \t\r\n>=")


def trim_blank(text: str, start: int, end: int) -> Span:
    """The span without blanks at either end; an empty one stays at ``start``."""
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end


def clip(pieces: list[Piece], start: int, end: int) -> list[Piece]:
    """The pieces within ``start:end``; pieces that decode to something else are kept whole or dropped."""
    out: list[Piece] = []
    for piece in pieces if start < end else ():
        if piece.end <= start or piece.start >= end:
            continue
        if piece.text is None and (piece.start < start or piece.end > end):
            piece = Piece(max(piece.start, start), min(piece.end, end))
        out.append(piece)
    return out


def as_cdata(value: str) -> str:
    """A CDATA section (or several) that reads back as exactly ``value``."""
    body = value.replace("]]>", "]]]]><![CDATA[>")
    lead = "\n" if value[:1] in ("\n", "\r") else ""
    tail = "\n" if trim_tail(value, 0, len(value)) < len(value) else ""
    return f"<![CDATA[{lead}{body}{tail}]]>"


def escape(value: str) -> str:
    """Element text with its markup characters escaped."""
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def indent(text: str, at: int) -> int:
    """The column of what is first on its line, else -1; looks at a bounded stretch."""
    low = max(0, at - 200)
    line = max(text.rfind("\n", low, at), text.rfind("\r", low, at)) + 1
    return at - line if line and not text[line:at].strip() else -1


# The names that the ACTION protocol reserves, and what models write instead of them (ruling 12).


TOOL_ID = "tool_id"
INPUTS = "inputs"
INPUT = "input"

TOOL_ID_ALIASES = frozenset({"tool_id", "toolid", "tool-id", "tool", "tool_name", "toolname", "tool-name"})
STRONG_TOOL_ID = frozenset({"tool_id", "toolid", "tool-id"})
WEAK_TOOL_ID = frozenset({"name", "id", "function", "function_name", "command", "method"})
"""Names that may stand for the tool's id where ``<inputs>`` follow and nothing else is one."""
INPUTS_ALIASES = frozenset(
    {"inputs", "parameters", "params", "arguments", "args", "tool_inputs", "tool_input", "input_parameters"}
)
INPUT_ALIASES = frozenset({"input", "parameter", "param", "argument", "arg"})
CONTEXT_NAMES = frozenset({"context", "execution_context", "executioncontext", "metadata", "meta"})
"""Children of ACTION that go with a call without being an input, whatever its schema says (seed 003 §4.3, D70)."""
NAME_ATTRIBUTES = (
    *("name", "key", "id", "param", "parameter", "param_name", "field", "input", "n"),
    *("parameter_name", "input_name", "arg", "argument", "arg_name", "label", "title", "var", "property", "prop"),
)
VALUE_ATTRIBUTES = ("value", "val", "content", "text")
TOOL_ATTRIBUTES = ("tool_id", "toolid", "tool-id", "tool", "tool_name", "name", "id", "type")
STRONG_TOOL_ATTRIBUTES = ("tool_id", "toolid", "tool-id", "tool", "tool_name")
WRAPPERS = frozenset(
    {"invoke", "tool", "tool_call", "toolcall", "function", "function_call", "call", "use_tool", "tool_use"}
)
"""Elements that hold a call instead of being one: ``<invoke name="X">``, ``<tool_call><tool_id>…``."""
COMMON_TAGS = (WRAPPERS | INPUT_ALIASES | INPUTS_ALIASES) - {INPUT} | {
    "think",
    "thinking",
    "function_calls",
    "tool_calls",
    "response",
}
"""Tags that models add from other formats: a stray one closes nothing that was meant."""
