"""One text to one typed scalar, without loss and never silently (ruling 2).

A text is read as what it plainly is, or loosely with a warning (``30000.0`` for an integer, ``True``), or refused: nothing is
rounded, cut or guessed. Must not know schemas beyond the names of types.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from bisect import bisect_right
from collections.abc import Callable
from datetime import date, time
from typing import Literal, NoReturn

import msgspec

from tamis.protocols.catalogue import message
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Diag, Edit, Json
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

MAX_DIGITS = 4_000
_INTEGER = lazy(r"[+-]?[0-9]+")
_PLAIN_INTEGER = lazy(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = lazy(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LOOSE_NUMBER = lazy(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BLANKS = " \t\r\n"
_EXACT_FLOAT = 2**53
_YES_NO = {
    **dict.fromkeys(("yes", "y", "on", "1", "是", "对", "真", "enabled", "t"), "true"),
    **dict.fromkeys(("no", "n", "off", "0", "否", "不", "假", "disabled", "f"), "false"),
}


class Read(msgspec.Struct, frozen=True):
    """A text that could be read as a scalar; ``loose`` when the spelling is not the canonical one."""

    value: Json
    loose: bool = False


class Refused(msgspec.Struct, frozen=True):
    """Why a text is no value of a type: it is something else, or it would lose digits."""

    why: Literal["other", "lossy", "too-long"] = "other"
    suggestion: str | None = None


_OTHER = Refused()


def read_scalar(text: str, wanted: str) -> Read | Refused:
    """Reads a text as ``integer``, ``number``, ``boolean`` or ``null``; blanks around it do not count."""
    text = text.strip(_BLANKS)
    if wanted == "integer":
        return _integer(text)
    if wanted == "number":
        return _number(text)
    if wanted == "boolean":
        return _boolean(text)
    return Read(None) if text == "null" else _OTHER


def _integer(text: str) -> Read | Refused:
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            return Refused("too-long")
        return Read(int(text), _PLAIN_INTEGER.fullmatch(text) is None or text == "-0")
    if not _LOOSE_NUMBER.fullmatch(text):
        return _OTHER
    if len(text) > MAX_DIGITS:
        return Refused("too-long")
    value = float(text)
    # Above 2**53 a float no longer says which integer was meant.
    if value.is_integer() and abs(value) < _EXACT_FLOAT and _is_exact(text):
        return Read(int(value), loose=True)
    return Refused("lossy")


def _is_exact(text: str) -> bool:
    """Whether the digits that the text gives are all in the integer: ``5.0000000000000000001`` is none."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = int(exponent) if exponent and len(exponent) < 6 else 0
    if shift >= 0:
        return not fraction[shift:].strip("0")
    return not fraction.strip("0") and not whole.lstrip("+-")[shift:].strip("0")


def _number(text: str) -> Read | Refused:
    if not _LOOSE_NUMBER.fullmatch(text):
        return _OTHER
    if len(text) > MAX_DIGITS:
        return Refused("too-long")
    loose = _NUMBER.fullmatch(text) is None
    if _INTEGER.fullmatch(text):
        return Read(int(text), loose or text == "-0")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return Refused("lossy")
    return Read(value, loose)


def _boolean(text: str) -> Read | Refused:
    if text == "true":
        return Read(True)
    if text == "false":
        return Read(False)
    folded = text.lower()
    if folded in ("true", "false"):
        return Read(folded == "true", loose=True)
    return Refused("other", _YES_NO.get(folded))


def base64_bytes(text: str) -> bytes | None:
    """The bytes of base64 text in either alphabet, with blanks in it and without padding too; None where it is none."""
    compact = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


# JSON text as the value of a parameter: strict reading, three repairs that have one reading, and located refusals. Repaired with a warning, because
# each has one reading (F19, F20): raw line breaks and tabs inside strings, trailing commas, and the two characters ``\n`` between tokens. Anything
# else that is no JSON is an error, with a repaired text as an offer where one can be made (VA420). Truncated text is never repaired (F2).


MAX_JSON_CHARS = 16 * 1024 * 1024
MAX_VALUE_DEPTH = 100


class JsonNote(msgspec.Struct, frozen=True):
    """Something to say about a JSON text; ``at`` is the place in it. An ``error`` note means that there is no value."""

    code: str
    error: bool
    at: Span
    args: dict[str, str | int] = {}
    suggestion: str | None = None


class _NotPlainError(ValueError):
    """The fast reader met something that needs a look at the places."""


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotPlainError
    return members


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _NotPlainError
    return value


def _not_finite(_: str) -> NoReturn:
    raise _NotPlainError


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_not_finite)
_STRUCTURE = lazy(r'"(?:[^"\\]++|\\.)*+"|([\[{])|([\]}])', re.DOTALL)


def read_json_text(text: str) -> tuple[Json, list[JsonNote]]:
    """The value of a JSON text and what is to be said about it; None and an error note when it has none."""
    if len(text) > MAX_JSON_CHARS:
        return None, [JsonNote("VA424", True, (0, 0), {"what": f"more than {MAX_JSON_CHARS} characters"})]
    bom = text.startswith("\ufeff")
    body = text[1:] if bom else text
    notes = [JsonNote("VA411", False, (0, 1), {"raw": "U+FEFF", "value": "nothing"})] if bom else []
    shift = len(text) - len(body)
    deep = _too_deep(body)
    if deep is not None:
        what: dict[str, str | int] = {"what": f"more than {MAX_VALUE_DEPTH} levels of nesting"}
        return None, [JsonNote("VA424", True, (deep + shift, deep + shift + 1), what)]
    if "\\u" not in body:
        try:
            return _decode(body), notes + _drives(body, shift) if "\\" in body else notes
        except (ValueError, RecursionError):
            pass
    tree = parse_json(body, comments=False)
    written = _Written(body, shift)
    repairs: list[str] = []
    if not tree.ok:
        written = _normalise(body, shift, repairs)
        if repairs:
            tree = parse_json(written.text, comments=False)
    errors = _errors(tree)
    place = written.first
    if errors and all(diag.code == "MF526" for diag in errors):
        place = place if repairs else written.at(errors[0].span)
        repairs.append("the trailing comma is ignored")
        errors = []
    if errors or tree.root is None:
        return None, [*notes, _refusal(tree, errors, written)]
    if repairs:
        notes.append(JsonNote("VA420", False, place, {"reason": "; ".join(repairs)}))
    return tree.root.to_python(), [*notes, *_remarks(tree, written), *_drives(body, shift)]


class _Written:
    """A text that was made readable, with the way back to the places of the text as written."""

    __slots__ = ("_added", "first", "shift", "text")

    def __init__(self, text: str, shift: int, added: list[int] | None = None, first: Span = (0, 0)) -> None:
        self.text = text
        self.shift = shift
        self.first = first
        self._added = added or []

    def at(self, span: Span) -> Span:
        """The place as written of a place in ``text``."""
        start, end = (at - bisect_right(self._added, at - 1) + self.shift for at in span)
        return start, max(start, end)


_ANY_STRING = lazy(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SPACE_ESCAPE = lazy(r"\\[nrt]")
_BREAK = lazy("[\n\r\t]")
_BREAKS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _normalise(text: str, shift: int, repairs: list[str]) -> _Written:
    """Raw breaks inside strings become escapes, ``\\n`` between values becomes blanks; ``repairs`` says what was done."""
    out: list[str] = []
    added: list[int] = []
    places: list[int] = []
    at = length = 0
    for string_match in [*_ANY_STRING.finditer(text), None]:
        start, end = string_match.span() if string_match is not None else (len(text), len(text))
        gap = text[at:start]
        places.extend(at + match.start() for match in _SPACE_ESCAPE.finditer(gap))
        out.append(_SPACE_ESCAPE.sub("  ", gap))
        length += len(gap)
        done = start
        for raw in _BREAK.finditer(text, start, end):
            part = text[done : raw.start()] + _BREAKS[raw.group()]
            out.append(part)
            length += len(part)
            added.append(length - 1)
            places.append(raw.start())
            done = raw.end()
        out.append(text[done:end])
        length += end - done
        at = end
    if len(places) > len(added):
        repairs.append("\\n between values is read as a line break")
    if added:
        repairs.append("line breaks and tabs inside strings are read as written")
    first = min(places, default=0) + shift
    return _Written("".join(out), shift, added, (first, first + 1))


def _decode(body: str) -> Json:
    """The value of plain JSON; raises on anything that needs a closer look, duplicate keys among them."""
    if len(body) < 4_096:
        value: Json = msgspec.json.decode(body)
        # As many colons as keys: none is in a string, and no key was dropped as a duplicate.
        if _keys(value) == body.count(":"):
            return value
    return _DECODER.decode(body)


def _keys(value: Json) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_keys(part) for part in value.values() if isinstance(part, (dict, list)))
    if isinstance(value, list):
        return sum(_keys(part) for part in value if isinstance(part, (dict, list)))
    return 0


def _remarks(tree: JsonTree, written: _Written) -> list[JsonNote]:
    remarks: list[JsonNote] = []
    for diag in tree.diagnostics:
        at = written.at(diag.span)
        if diag.code == "MF524":
            remarks.append(JsonNote("VA423", False, at, {"k": diag.args["k"]}))
        elif diag.code == "MF527":
            raw = tree.text[diag.span[0] : diag.span[1]]
            remarks.append(JsonNote("VA411", False, at, {"raw": raw, "value": "U+FFFD"}))
    return remarks


_DRIVE = lazy(r'"[A-Za-z]:(\\[bfnrt])')
_CONTROL = {"b": "a backspace", "f": "a form feed", "n": "a line break", "r": "a carriage return", "t": "a tab"}


def _drives(body: str, shift: int) -> list[JsonNote]:
    """``"C:\\new"``: good JSON, and hardly what was meant (F20)."""
    return [
        JsonNote(
            "VA411",
            False,
            (match.start(1) + shift, match.end(1) + shift),
            {"raw": match[1], "value": _CONTROL[match[1][1]]},
        )
        for match in _DRIVE.finditer(body)
    ]


def _errors(tree: JsonTree) -> list[Diag]:
    return [diag for diag in tree.diagnostics if diag.code not in ("MF524", "MF527")]


def _refusal(tree: JsonTree, errors: list[Diag], written: _Written) -> JsonNote:
    end = len(tree.text.rstrip())
    cut = any(error.code == "MF521" for error in errors)
    # A word or string that the end of the text breaks off is a fault of the cut, not of its own.
    if cut and all(diag.code in ("MF521", "MF526") or diag.span[1] >= end for diag in errors):
        return JsonNote("VA421", True, written.at((max(end - 1, 0), end)))
    # Where a text also ends too early, the unclosed bracket says less than the fault inside it.
    diag = next(error for error in errors if error.code not in ("MF521", "MF526"))
    at = written.at(diag.span)
    if diag.code in ("MF529", "MF530") or diag.args.get("fault") == "too-many-digits":
        return JsonNote("VA424", True, at, {"what": message(diag)})
    before = tree.text[: diag.span[0]]
    line, column = before.count("\n") + 1, diag.span[0] - (before.rfind("\n") + 1) + 1
    reason = f"{message(diag)} (line {line}, column {column})"
    return JsonNote("VA420", True, at, {"reason": reason}, None if cut else _offer(tree))


def _offer(tree: JsonTree) -> str | None:
    """The text with the reader's own fixes applied, where that makes it JSON; a person decides on it."""
    text = tree.text
    for _ in range(2):
        edits = [edit for diag in _errors(tree) if diag.fix is not None for edit in diag.fix.edits]
        # A colon that was put in makes a name of what may be the rest of a text with quotes in it (F20).
        if not edits or any(edit.new_text == ":" for edit in edits):
            return None
        text = _apply(text, edits)
        tree = parse_json(text, comments=False)
        if tree.ok:
            return text
    return None


def _apply(text: str, edits: list[Edit]) -> str:
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start >= at:
            out += (text[at : edit.start], edit.new_text)
            at = edit.end
    out.append(text[at:])
    return "".join(out)


def _too_deep(text: str) -> int | None:
    """Where the nesting passes the limit, or None; linear, and free for texts with few brackets."""
    if text.count("[") + text.count("{") <= MAX_VALUE_DEPTH:
        return None
    depth = 0
    for match in _STRUCTURE.finditer(text):
        if match.lastindex == 1:
            depth += 1
            if depth > MAX_VALUE_DEPTH:
                return match.start()
        elif match.lastindex == 2:
            depth -= 1
    return None


# String formats of JSON Schema (VA438): hints, never refusals.


_DATE_TIME = lazy(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_TIME = lazy(r"(\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_DATE = lazy(r"\d{4}-\d\d-\d\d", re.ASCII)
_DURATION = lazy(r"P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)", re.ASCII)
_LABEL = lazy(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_URI = lazy(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")
_UUID = lazy(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_POINTER = lazy(r"(/([^~/]|~[01])*)*")


def _date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _clock(text: str) -> bool:
    try:
        # A leap second is a legal time that the standard library does not know.
        time.fromisoformat(text.replace(":60", ":59") if text.endswith(":60") else text)
    except ValueError:
        return False
    return True


def _date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    return match is not None and _date(match.group(1)) and _clock(match.group(2))


def _time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    return match is not None and _clock(match.group(1))


def _hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(_LABEL.fullmatch(part) for part in text.rstrip(".").split("."))


def _email(text: str) -> bool:
    name, at, host = text.rpartition("@")
    return bool(at) and 0 < len(name) <= 64 and not re.search(r"\s", name) and (_hostname(host) or host[:1] == "[")


def _address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


def _regex(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_ARTICLES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "date": ("date (YYYY-MM-DD)", _date),
    "date-time": ("date and time with zone (RFC 3339)", _date_time),
    "time": ("time (hh:mm:ss)", _time),
    "duration": ("duration (ISO 8601)", lambda text: _DURATION.fullmatch(text) is not None),
    "email": ("mail address", _email),
    "hostname": ("host name", _hostname),
    "ipv4": ("IPv4 address", _address(ipaddress.IPv4Address)),
    "ipv6": ("IPv6 address", _address(ipaddress.IPv6Address)),
    "uri": ("URI", lambda text: _URI.fullmatch(text) is not None),
    "uuid": ("UUID", lambda text: _UUID.fullmatch(text) is not None),
    "regex": ("regular expression", _regex),
    "json-pointer": ("JSON Pointer", lambda text: _POINTER.fullmatch(text) is not None),
}
MAX_FORMAT_CHARS = 4_096


def format_name(name: str) -> str | None:
    """What a format is called in a message, or None for one that is not checked."""
    entry = _ARTICLES.get(name)
    return None if entry is None else entry[0]


def has_format(name: str, text: str) -> bool:
    """Whether a text has a format; unknown formats are had by every text, texts over 4,096 characters by none."""
    entry = _ARTICLES.get(name)
    return entry is None or (len(text) <= MAX_FORMAT_CHARS and entry[1](text))
