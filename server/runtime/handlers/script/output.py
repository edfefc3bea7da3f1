"""What a script reads and prints: its arguments as JSON, and its output as exactly one JSON document or an error that shows
what came instead.

Seed 003 §2.1.2-5, ruling 37. Pure.
"""

from __future__ import annotations

import math
import re
from typing import Any, cast

import msgspec

from tamis.protocols.expected import Match
from tamis.protocols.jsontext.tree import not_finite
from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.observation import plain, readable
from tamis.server.runtime.tools.builtin import is_script_service

MAX_DEPTH = 100
MAX_INTEGER_DIGITS = 4300
EXCERPT_CHARS = 200
KEY_CHARS = 60

_BLANKS = " \t\r\n"
# A string that nothing closes ends with the text: each character is looked at once, whatever the script wrote.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_NUMBER = re.compile(rf"[0-9]{{{MAX_INTEGER_DIGITS + 1}}}")
_ONE_DOCUMENT = "print one JSON document on standard output"
_TO_STDERR = "write messages to standard error"


class OutputError(Exception):
    """Standard output that is no JSON document; ``excerpt`` is what it began with."""

    def __init__(self, text: str, excerpt: str) -> None:
        super().__init__(text)
        self.text = text
        self.excerpt = excerpt


def read_output(data: bytes) -> Any:
    """The one JSON value in ``data``; raises ``OutputError``.

    Strict (RFC 8259) where a slip would change the value: no second document and no text around it, no ``NaN``, no key twice
    in one object. A byte order mark is passed over, half of a surrogate pair becomes U+FFFD.
    """
    text = _decoded(data).strip(_BLANKS)
    if not text:
        raise OutputError(f"the script printed nothing; {_ONE_DOCUMENT}", "")
    bare = _STRING.sub('""', text)
    if _too_deep(bare):
        raise OutputError(f"the JSON on standard output is nested deeper than {MAX_DEPTH}", excerpt(data))
    if len(bare) > MAX_INTEGER_DIGITS and _LONG_NUMBER.search(bare):
        raise OutputError(f"a number on standard output has more than {MAX_INTEGER_DIGITS} digits", excerpt(data))
    try:
        value = msgspec.json.decode(text.encode("utf-8"))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _second_reading(text, data, str(error))
    colons = bare.count(":")
    if colons > 1 and _members(value) != colons:
        _second_reading(text, data, "")
    return value


def vcp_fault(document: object) -> str:
    """Why a VCP plug-in's document says that it failed, in its own words; empty where it does not say so."""
    members = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if members.get("status") != "error":
        return ""
    words = next((members[name] for name in ("error", "message", "result") if members.get(name)), "")
    if not isinstance(words, str):
        import json

        words = json.dumps(words, ensure_ascii=False)
    return words.strip() or "the script says that it failed, and not why"


def input_bytes(value: object) -> bytes:
    """What a script reads on standard input: one JSON document; half of a surrogate pair, which has no bytes, is U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return _SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode()


def excerpt(data: bytes) -> str:
    """The beginning of an output, as text."""
    text = data[: EXCERPT_CHARS * 4].decode("utf-8", "replace").strip(_BLANKS)
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 1] + "…"


def log_text(data: bytes) -> str:
    """What a script wrote for people, as text that is safe to show: no terminal sequences, each state of a progress bar a line."""
    return shown_text(data.decode("utf-8", "replace"))


def shown_text(text: str) -> str:
    """The same of a text that was decoded before."""
    return readable(_lines(text))


def _lines(text: str) -> str:
    return re.sub(r"\r+\n|\r", "\n", text)


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
        raise OutputError("standard output is not UTF-8 but looks like UTF-16; print UTF-8", excerpt(data))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OutputError(f"standard output is not UTF-8 at byte {error.start}", excerpt(data)) from None


def _too_deep(bare: str) -> bool:
    """Whether brackets outside of strings nest too deep, found before any recursive decoder sees the text."""
    depth = 0
    for match in _BRACKET.finditer(bare):
        depth += 1 if match.group() in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _members(value: object) -> int:
    """How many members all objects in a value have: fewer than the text's colons where a key stood twice."""
    count = 0
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            members = cast("dict[str, object]", item)
            count += len(members)
            stack.extend(members.values())
        elif isinstance(item, list):
            stack.extend(cast("list[object]", item))
    return count


def _second_reading(text: str, data: bytes, reason: str) -> Any:
    # The standard decoder accepts what the fast one refuses and JSON allows: lone surrogate escapes and floats out of
    # range. It also says whether one document stands there with more behind it, the usual fault of a chatty script (F29).
    import json

    refused: list[str] = []

    def constant(name: str) -> float:
        refused.append(name)
        return float(name)

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            refused.append(digits if len(digits) <= KEY_CHARS else digits[:KEY_CHARS] + "…")
        return value

    def refuse(value: object) -> None:
        spot = not_finite(value)
        if spot is not None or refused:
            place = f" at {plain(spot[0])}" if spot is not None and spot[0] else ""
            text = f"{refused[0]}{place} on standard output is not JSON; print null or a text instead"
            raise OutputError(text, excerpt(data))

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, value in pairs:
            name = _SURROGATE.sub("\ufffd", key)
            if name in members:
                shown = plain(name if len(name) <= KEY_CHARS else name[:KEY_CHARS] + "…")
                raise OutputError(f"the key '{shown}' stands twice in one object on standard output", excerpt(data))
            members[name] = value
        return members

    decoder = json.JSONDecoder(parse_constant=constant, parse_float=number, object_pairs_hook=members)
    try:
        value, end = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        refuse(None)
        raise OutputError(_what_else(text, reason), excerpt(data)) from None
    refuse(value)
    if end < len(text):
        rest = text[end:].strip(_BLANKS)
        raise OutputError(
            f"standard output holds more than one JSON document; {_TO_STDERR}. It goes on with: {rest[:KEY_CHARS]!r}",
            excerpt(data),
        )
    return json.loads(_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def _what_else(text: str, reason: str) -> str:
    """What stands there instead of a JSON document, as far as it is one of the usual faults."""
    bare = readable(_lines(text)).strip(_BLANKS)
    if "\x1b" in text and _is_json(bare):
        return "standard output is not JSON: terminal colours stand around it; print without them"
    first = re.search(r"^[{\[]", bare, re.MULTILINE)
    if first is not None and first.start() > 0 and _is_json(bare[first.start() :]):
        return f"standard output is not JSON: text stands before the document; {_TO_STDERR}"
    return f"standard output is not JSON: {reason}; {_ONE_DOCUMENT}"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


# How the output of a tool's examples is compared (D42, D44).


MATCH_KEY = "x-match"
"""Beside an example's ``expectedOutput``: its value ``partial`` lets the output hold more."""


def match_of(manifest: Manifest, match: object) -> Match:
    """How an example's output is compared; ``given`` is what stands at ``x-match``. The records of the script service hold logs that
    nobody can foresee."""
    return "partial" if match == "partial" or is_script_service(manifest.handler) else "equal"
