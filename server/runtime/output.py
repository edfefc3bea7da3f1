"""From a script's standard output to a value: exactly one JSON document, or an error that shows what came instead.

Seed 003 §2.1.2-5, ruling 37. Pure.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_DEPTH = 100
MAX_INTEGER_DIGITS = 4300
EXCERPT_CHARS = 200

_BLANKS = " \t\r\n"
_SKIP_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_NUMBER = re.compile(rf"\d{{{MAX_INTEGER_DIGITS + 1}}}")


class OutputError(Exception):
    """Standard output that is no JSON document; ``excerpt`` is what it began with."""

    def __init__(self, text: str, excerpt: str) -> None:
        super().__init__(text)
        self.text = text
        self.excerpt = excerpt


def read_output(data: bytes) -> Any:
    """The one JSON value in ``data``; raises ``OutputError``."""
    try:
        text = data.decode("utf-8-sig").strip(_BLANKS)
    except UnicodeDecodeError as error:
        raise OutputError(f"standard output is not UTF-8 at byte {error.start}", excerpt(data)) from None
    if not text:
        raise OutputError("the script printed nothing; print one JSON document on standard output", "")
    if _depth(text) > MAX_DEPTH:
        raise OutputError(f"the JSON on standard output is nested deeper than {MAX_DEPTH}", excerpt(data))
    if len(text) > MAX_INTEGER_DIGITS and _LONG_NUMBER.search(_SKIP_STRING.sub('""', text)):
        raise OutputError(f"a number on standard output has more than {MAX_INTEGER_DIGITS} digits", excerpt(data))
    try:
        return msgspec.json.decode(text.encode("utf-8"))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _second_reading(text, data, str(error))


def excerpt(data: bytes) -> str:
    """The beginning of an output, as text."""
    text = data[: EXCERPT_CHARS * 4].decode("utf-8", "replace").strip(_BLANKS)
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 1] + "…"


def _second_reading(text: str, data: bytes, reason: str) -> Any:
    # The standard decoder accepts what the fast one refuses and JSON allows: lone surrogate escapes and floats out of
    # range. It also says whether one document stands there with more behind it, the usual fault of a chatty script (F29).
    import json

    def refuse(name: str) -> Any:
        raise OutputError(f"{name} on standard output is not JSON; print null or a text instead", excerpt(data))

    def number(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            refuse(digits)
        return value

    try:
        value, end = json.JSONDecoder(parse_constant=refuse, parse_float=number).raw_decode(text)
    except (ValueError, RecursionError):
        raise OutputError(f"standard output is not JSON: {reason}", excerpt(data)) from None
    if end < len(text):
        rest = text[end:].strip(_BLANKS)
        raise OutputError(
            f"standard output holds more than one JSON document; write messages to standard error. It goes on with: {rest[:60]!r}",
            excerpt(data),
        )
    return json.loads(_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def _depth(text: str) -> int:
    """Nesting depth by a linear scan over brackets outside of strings, before any recursive decoder sees the text."""
    depth = deepest = 0
    for char in re.findall(r"[\[\]{}]", _SKIP_STRING.sub("", text)):
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest
