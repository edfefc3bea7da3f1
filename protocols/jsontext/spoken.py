"""JSON as models write it in a call: read strictly first, then with the repairs that have one reading.

Repaired, each with the edit that makes it JSON (F19, F20): trailing commas, comments, Python's ``True`` and ``None``, single and
triple quotes, bare names, raw control characters in strings, the two characters ``\\n`` between values, full-width punctuation
and invisible characters outside strings. Whatever has two readings stays an error. Every place leads back to the source, also
where the JSON text itself stands in a string of another one. Must not know what the JSON means.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.invisible import IN_JSON
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.model import MAX_DEPTH, Diag, Edit, Fix, Piece, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

STRING = r'"""(?:[^"\\]|"{1,2}+[^"\\])*+"""|"(?:[^"\\]++|\\.)*+"|' + r"'(?:[^'\\]++|\\.)*+'"
COMMENT = r"//[^\n\r]*+|#[^\n\r]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/"

_TOKEN = lazy(
    rf"(?s:(?P<string>{STRING})|(?P<comment>{COMMENT})|(?P<escape>(?:\\[nrt])++)|(?P<word>[A-Za-z_$][\w$\-]*+)"
    rf"|(?P<mark>[{{}}\[\],:])|(?P<wide>[：，；｛｝［］])|(?P<invisible>[{IN_JSON}]++)|(?P<number>[-+.\d][\w.+\-]*+)"
    r"|(?P<blank>[ \t\r\n]++)|(?P<other>.))"
)
_COLON = lazy(r"[ \t\r\n]*+[:：]")
_WIDE = {"：": ":", "，": ",", "；": ",", "｛": "{", "｝": "}", "［": "[", "］": "]"}
_WORDS = {
    "True": "true",
    "TRUE": "true",
    "False": "false",
    "FALSE": "false",
    "None": "null",
    "NULL": "null",
    "Null": "null",
}
_RAW = lazy(r"(?s:[\x00-\x1f]|\\.)")
_RAW_SINGLE = lazy(r"(?s:[\x00-\x1f\"]|\\.)")
_ESCAPES = lazy(r"(?s:(?:\\u[0-9a-fA-F]{4})++|\\.)")
_DRIVE = lazy(r"[\"'][A-Za-z]:(\\[bfnrt])")
_SURROGATE = lazy("[\ud800-\udfff]")
_SIMPLE = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\", r"\r": "\r", r"\/": "/", r"\b": "\b", r"\f": "\f"}
_CONTROL = {"b": "a backspace", "f": "a form feed", "n": "a line break", "r": "a carriage return", "t": "a tab"}


class Layer:
    """Where a JSON text stands: a stretch of the source, or the decoded text of one of its strings."""

    __slots__ = ("_offsets", "_pieces", "source", "start", "text")

    def __init__(self, source: str, start: int, end: int, value: Value | None = None) -> None:
        """``source[start:end]``, or the text of ``value``."""
        self.source = source
        self.start = start
        self.text = source[start:end] if value is None else value.text(source)
        self._pieces: tuple[Piece, ...] = ()
        self._offsets: list[int] = []
        if value is not None:
            at = 0
            self._pieces = value.pieces
            for piece in value.pieces:
                self._offsets.append(at)
                at += piece.end - piece.start if piece.text is None else len(piece.text)

    @property
    def is_plain(self) -> bool:
        """Whether the text stands in the source as it is."""
        return not self._offsets

    def span(self, start: int, end: int) -> Span:
        """The source span of ``text[start:end]``; logarithmic in the number of escapes."""
        if not self._offsets:
            return self.start + start, self.start + end
        first = bisect_right(self._offsets, start) - 1
        piece = self._pieces[first]
        left = piece.start + (start - self._offsets[first]) if piece.text is None else piece.start
        if end <= start:
            return left, left
        last = bisect_left(self._offsets, end) - 1
        piece = self._pieces[last]
        return left, piece.start + (end - self._offsets[last]) if piece.text is None else piece.end

    def written(self, text: str) -> str:
        """How new text is written at a place of this layer."""
        return text if self.is_plain else json.dumps(text, ensure_ascii=False)[1:-1]


class Spoken:
    """A JSON text that was read: its tree, the repairs that made it JSON, and the way from the tree to the source.

    ``root`` is None where the text is no JSON even so; ``fault`` then says why, and ``cut`` whether it only ends too early.
    """

    __slots__ = ("_at_clean", "_at_text", "_widths", "clean", "cut", "diags", "fault", "layer", "root", "tree")

    def __init__(self, layer: Layer, tree: JsonTree, edits: list[Edit], diags: list[Diag]) -> None:
        self.layer = layer
        self.tree = tree
        self.clean = tree.text
        self.diags = diags
        self._at_clean: list[int] = []
        self._at_text: list[int] = []
        self._widths: list[int] = []
        shift = 0
        for edit in edits:
            # Two entries for each edit: its new text, and the plain text behind it (a width of -1 runs as far as it gets).
            self._at_clean += (edit.start + shift, edit.start + shift + len(edit.new_text))
            self._at_text += (edit.start, edit.end)
            self._widths += (edit.end - edit.start, -1)
            shift += len(edit.new_text) - (edit.end - edit.start)
        self.fault: Diag | None = None
        self.cut = False
        self.root: JsonNode | None = tree.root
        self._judge()

    def _judge(self) -> None:
        tree = self.tree
        for diag in tree.diagnostics:
            if diag.code == "MF524":
                self.diags.append(Diag("HM613", self.span(*diag.span), dict(diag.args), repair=False))
            elif diag.code == "MF527":
                self.diags.append(Diag("HM615", self.span(*diag.span)))
        errors = [diag for diag in tree.diagnostics if diag.code not in ("MF524", "MF527")]
        if not errors and tree.root is not None:
            return
        self.root = None
        end = len(self.clean.rstrip())
        self.cut = any(error.code == "MF521" for error in errors) and all(
            error.code in ("MF521", "MF526") or error.span[1] >= end for error in errors
        )
        worst = next((error for error in errors if error.code not in ("MF521", "MF526")), errors[0] if errors else None)
        if worst is None:
            return
        span = self.span(*worst.span)
        fix = worst.fix
        if fix is not None:
            edits = tuple(
                Edit(*self.span(edit.start, edit.end), self.layer.written(edit.new_text)) for edit in fix.edits
            )
            fix = Fix(fix.title, edits, "unsafe")
        self.fault = Diag("HM603", span, {"reason": message(worst)}, fix=fix)

    def text_span(self, start: int, end: int) -> Span:
        """The span in the layer's text of ``clean[start:end]``."""
        if not self._at_clean:
            return start, end
        return self._back(start, False), max(self._back(start, False), self._back(end, True))

    def _back(self, offset: int, is_end: bool) -> int:
        at = self._at_clean
        i = (bisect_left(at, offset) if is_end else bisect_right(at, offset)) - 1
        if i < 0:
            return offset
        if self._widths[i] >= 0:
            return self._at_text[i] + (self._widths[i] if is_end else 0)
        return self._at_text[i] + offset - at[i]

    def span(self, start: int, end: int) -> Span:
        """The source span of ``clean[start:end]``."""
        return self.layer.span(*self.text_span(start, end))

    def node_span(self, node: JsonNode) -> Span:
        """Where a value stands in the source; of a text without its quotes."""
        if node.kind == "string":
            return self.inner_span(node.start, node.end)
        return self.span(node.start, node.end)

    def inner_span(self, start: int, end: int) -> Span:
        """The source span of a string of the tree without its quotes."""
        return self.span(start + 1, self._inner_end(start, end))

    def _inner_end(self, start: int, end: int) -> int:
        """Where the inside of a string ends; one that the text leaves open has no closing quote."""
        return end - 1 if end > start + 1 and self.clean[end - 1] in "\"'" else max(end, start + 1)

    def pieces(self, node: JsonNode) -> tuple[Piece, ...]:
        """The pieces of a string: runs of the source, and what its escapes stand for."""
        clean = self.clean
        start, end = node.start + 1, self._inner_end(node.start, node.end)
        if end <= start:
            return ()
        if clean.find("\\", start, end) < 0:
            return (self._piece(start, end, clean[start:end]),)
        if not self._at_clean and self.layer.is_plain:
            return _pieces(clean, start, end, self.layer.start)
        pieces: list[Piece] = []
        at = start
        for escape in _ESCAPES.finditer(clean, start, end):
            if escape.start() > at:
                pieces.append(self._piece(at, escape.start(), clean[at : escape.start()]))
            pieces.append(self._piece(*escape.span(), _unescaped(escape.group())))
            at = escape.end()
        if at < end:
            pieces.append(self._piece(at, end, clean[at:end]))
        return tuple(pieces)

    def _piece(self, start: int, end: int, decoded: str) -> Piece:
        first, last = self.span(start, end)
        same = last - first == len(decoded) and self.layer.source.startswith(decoded, first)
        return Piece(first, last, None if same else decoded)

    def drives(self) -> Iterator[tuple[Span, str, str]]:
        """``"C:\\new"``: good JSON, and hardly what was meant (F20)."""
        if "\\" in self.clean and ":\\" in self.clean:
            for match in _DRIVE.finditer(self.clean):
                yield self.span(*match.span(1)), match[1], _CONTROL[match[1][1]]


def _pieces(text: str, start: int, end: int, shift: int) -> tuple[Piece, ...]:
    """The pieces of a string that stands in the source as it is."""
    pieces: list[Piece] = []
    at = start
    for escape in _ESCAPES.finditer(text, start, end):
        first, last = escape.span()
        if first > at:
            pieces.append(Piece(at + shift, first + shift))
        raw = escape.group()
        pieces.append(Piece(first + shift, last + shift, _SIMPLE.get(raw) or _unescaped(raw)))
        at = last
    if at < end:
        pieces.append(Piece(at + shift, end + shift))
    return tuple(pieces)


def _unescaped(raw: str) -> str:
    """What an escape stands for, or several ``\\u`` in a row; half an escape at the end of a cut-off text stands for itself."""
    try:
        return _SURROGATE.sub("\ufffd", json.loads(f'"{raw}"'))
    except ValueError:
        return raw


def read_spoken(layer: Layer, *, closed: str = "") -> Spoken:
    """Reads a JSON text: as it is where it is JSON, else with the repairs that have one reading.

    ``closed`` are brackets that are taken as written at its end.
    """
    if not closed:
        tree = parse_json(layer.text, comments=False)
        if tree.ok:
            return _noted(Spoken(layer, tree, [], []))
    edits, diags = _repairs(layer)
    if closed:
        edits.append(Edit(len(layer.text), len(layer.text), closed))
    return _noted(Spoken(layer, parse_json(_applied(layer.text, edits), comments=False), edits, diags))


def _noted(spoken: Spoken) -> Spoken:
    for span, raw, meaning in spoken.drives():
        spoken.diags.append(Diag("HM614", span, {"raw": raw, "meaning": meaning}))
    return spoken


def _applied(text: str, edits: list[Edit]) -> str:
    out: list[str] = []
    at = 0
    for edit in edits:
        out += (text[at : edit.start], edit.new_text)
        at = edit.end
    out.append(text[at:])
    return "".join(out)


class _Repairs(msgspec.Struct):
    """The edits of one text, in its own offsets, and the findings about them, in the source's."""

    layer: Layer
    edits: list[Edit]
    diags: list[Diag]

    def add(self, code: str, start: int, end: int, title: str, args: dict[str, str | int], *edits: Edit) -> None:
        """One finding with the edits that mend it."""
        self.edits.extend(edits)
        there = tuple(Edit(*self.layer.span(edit.start, edit.end), self.layer.written(edit.new_text)) for edit in edits)
        self.diags.append(Diag(code, self.layer.span(start, end), args, fix=Fix(title, there), repair=True))


def _repairs(layer: Layer) -> tuple[list[Edit], list[Diag]]:
    """The repairs with one reading; the text may still be no JSON with them."""
    text = layer.text
    repairs = _Repairs(layer, [], [])
    comma = -1
    before = ""
    for match in _TOKEN.finditer(text):
        kind, (start, end) = match.lastgroup, match.span()
        raw = match.group()
        if kind == "blank":
            continue
        if kind == "other":
            break  # A quote that opens nothing: no repair makes this JSON, and looking on from each would be quadratic.
        if kind == "comment":
            repairs.add("HM612", start, end, "Remove the comment", {}, Edit(start, end, ""))
        elif kind == "escape":
            repairs.add("HM611", start, end, "Remove it", {"raw": raw}, Edit(start, end, ""))
        elif kind == "invisible":
            args: dict[str, str | int] = {"hex": f"{ord(raw[0]):04X}", "where": "the JSON"}
            repairs.add("TC013", start, end, "Remove the character", args, Edit(start, end, ""))
        else:
            mark = raw if kind == "mark" else ""
            if kind == "wide":
                mark = _WIDE[raw]
                args = {"raw": raw, "canonical": mark}
                repairs.add("HM608", start, end, f"Write {mark}", args, Edit(start, end, mark))
            elif kind == "string":
                _string(repairs, raw, start, end)
            elif kind == "word":
                _word(repairs, raw, start, end, before)
            if mark and mark in "}]" and comma >= 0:
                repairs.add("HM607", comma, comma + 1, "Remove the comma", {}, Edit(comma, comma + 1, ""))
            comma = start if mark == "," and raw == "," else -1
            before = mark or "value"
    repairs.edits.sort(key=lambda edit: (edit.start, edit.end))
    return repairs.edits, repairs.diags


def _word(repairs: _Repairs, raw: str, start: int, end: int, before: str) -> None:
    if before in ("{", ",") and _COLON.match(repairs.layer.text, end):
        quotes = (Edit(start, start, '"'), Edit(end, end, '"'))
        repairs.add("HM609", start, end, "Put the name in double quotes", {"raw": raw}, *quotes)
    elif raw in _WORDS:
        right = _WORDS[raw]
        repairs.add("HM608", start, end, f"Write {right}", {"raw": raw, "canonical": right}, Edit(start, end, right))


def _string(repairs: _Repairs, raw: str, start: int, end: int) -> None:
    """What in a string is no JSON and has one reading."""
    if raw.startswith('"""'):
        if "\\" in raw:
            return
        width, pattern = 3, _RAW_SINGLE
    elif raw[0] == "'":
        width, pattern = 1, _RAW_SINGLE
    else:
        if raw.isprintable() and "\\'" not in raw:
            return
        width, pattern = 1, _RAW
    edits: list[Edit] = []
    control = ""
    for match in pattern.finditer(raw, width, len(raw) - width):
        at, char = start + match.start(), match.group()
        if char[0] == "\\":
            if char == "\\'":
                edits.append(Edit(at, at + 1, ""))
        elif char == '"':
            edits.append(Edit(at, at, "\\"))
        elif char != "\x00":
            control = control or char
            edits.append(Edit(at, at + 1, json.dumps(char)[1:-1]))
    if width == 3 or raw[0] == "'":
        edits = [Edit(start, start + width, '"'), *edits, Edit(end - width, end, '"')]
        shown = raw if len(raw) <= 40 else raw[:39] + "…"
        repairs.add("HM609", start, end, "Use double quotes", {"raw": shown}, *edits)
    elif control:
        args: dict[str, str | int] = {"hex": f"{ord(control):04X}", "canonical": json.dumps(control)[1:-1]}
        repairs.add("HM610", start, end, "Escape the control characters", args, *edits)
    elif edits:
        repairs.add("HM608", start, end, "Write '", {"raw": "\\'", "canonical": "'"}, *edits)


# Values of a call from a JSON tree: typed, each part with its place in the source.


class TooDeepError(ValueError):
    """A value is nested deeper than the limit of the call model."""


def value_of(node: JsonNode, spoken: Spoken, depth: int = 0) -> Value:
    """A tree's value as the call model holds it; of a key that stands twice the last value counts (ruling 27).

    What is no JSON value, as the end of a text that was cut off can be, is left out. Raises ``TooDeepError`` above ``MAX_DEPTH`` levels.
    """
    if node.kind == "string":
        return Value("text", spoken.inner_span(node.start, node.end), spoken.pieces(node))
    span = spoken.span(node.start, node.end)
    if node.kind == "object":
        if depth >= MAX_DEPTH:
            raise TooDeepError
        parts = {
            member.key: value_of(member.value, spoken, depth + 1)
            for member in node.members
            if member.value is not None and member.value.kind != "error"
        }
        return Value("object", span, entries=parts)
    if node.kind == "array":
        if depth >= MAX_DEPTH:
            raise TooDeepError
        return Value(
            "list", span, items=[value_of(item, spoken, depth + 1) for item in node.items if item.kind != "error"]
        )
    literal = node.value
    return Value("literal", span, literal=None if isinstance(literal, str) else literal)
