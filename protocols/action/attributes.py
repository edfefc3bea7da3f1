"""Attributes of a tag in an ACTION block, as models write them. Must not know what they are used for."""

from __future__ import annotations

import json
import re

import msgspec

from tamis.protocols.action.decode import Decoded
from tamis.protocols.model import Param, Piece, Value
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

_QUOTES = "\"'“”„‘’`"
_ATTRIBUTE = lazy(
    rf"""\s*+(?:
        (?P<name>(?>(?:(?!:[{_QUOTES}])[^\s=＝<>{_QUOTES}])+))\s*+(?:(?:[=＝]|:(?=\s*+[{_QUOTES}]))\s*+(?P<value>"[^"]*+"|'[^']*+'|[{_QUOTES}][^{_QUOTES}]*+[{_QUOTES}]|[^\s=]++))?
        | =\s*+(?P<bare>"[^"]*+"|'[^']*+'|[^\s=]++)
        | (?P<junk>[^\s]++)
    )""",
    re.VERBOSE,
)
MAX_ATTRIBUTES = 1_000


class Attribute(msgspec.Struct, frozen=True):
    """One attribute; ``name`` is empty for ``<input=query>``, ``value`` None for a bare word."""

    name: str
    name_span: Span
    value: Value | None
    span: Span
    straight: bool
    """False when the value does not stand in one pair of straight quotes."""
    raw: str = ""


def read_attributes(text: str, span: Span | None) -> list[Attribute]:
    """The attributes in a tag's attribute text, at most ``MAX_ATTRIBUTES``; never raises."""
    if span is None:
        return []
    at, end = span
    out: list[Attribute] = []
    while at < end and len(out) < MAX_ATTRIBUTES and (match := _ATTRIBUTE.match(text, at, end)) is not None:
        if match.end() == at:
            break
        at = match.end()
        group = "value" if match.group("value") is not None else "bare"
        raw = match.group(group)
        if raw is None:
            name_group = "name" if match.group("name") is not None else "junk"
            out.append(
                Attribute(match.group(name_group), match.span(name_group), None, match.span(name_group), straight=True)
            )
            continue
        start, stop = match.span(group)
        straight = len(raw) >= 2 and raw[0] in "\"'" and raw[-1] == raw[0]
        if group == "value" and "=" not in text[match.end("name") : start]:
            straight = False
        while stop > start and text[stop - 1] in _QUOTES and (not straight or stop == match.end(group)):
            stop -= 1
        while start < stop and text[start] in _QUOTES and (not straight or start == match.start(group)):
            start += 1
        decoded = Decoded()
        decoded.text(text, start, stop)
        value = Value("text", (start, stop), tuple(decoded.pieces))
        name = match.group("name") or ""
        name_span = match.span("name") if name else (match.start(group), match.start(group))
        out.append(Attribute(name, name_span, value, (name_span[0], match.end(group)), straight, raw))
    return out


# A JSON object where the inputs of a call were due (AX161): its members as parameters with their places. Members that are strings become texts,
# everything else keeps its JSON text (values are strings first, ruling 2).


_BLANK = re.compile(r"[ \t\r\n]*+")
_DECODER = json.JSONDecoder(strict=False)
_MAX_MEMBERS = 1_000


def json_params(source: str, value: Value, body: str) -> dict[str, Param] | None:
    """The members of the object that ``body`` (the text of ``value``) is, or None when it is none."""
    params: dict[str, Param] = {}
    try:
        at = _skip(body, 0)
        if body[at] != "{":
            return None
        at = _skip(body, at + 1)
        while body[at] != "}":
            key_start = at
            if body[at] != '"':
                return None
            key, at = _DECODER.raw_decode(body, at)
            key_end = at
            at = _skip(body, at)
            if body[at] != ":":
                return None
            at = _skip(body, at + 1)
            start = at
            member, at = _DECODER.raw_decode(body, at)
            if not isinstance(key, str) or key in params or len(params) >= _MAX_MEMBERS:
                return None
            params[key] = _param(value, body, key, (key_start, key_end), member, start, at)
            at = _skip(body, at)
            if body[at] == ",":
                at = _skip(body, at + 1)
                if body[at] == "}":
                    return None
            elif body[at] != "}":
                return None
        if body[at + 1 :].strip():
            return None
    except (ValueError, IndexError, RecursionError):
        return None
    del source
    return params


def _skip(body: str, at: int) -> int:
    match = _BLANK.match(body, at)
    return match.end() if match is not None else at


def _param(value: Value, body: str, key: str, key_span: tuple[int, int], member: object, start: int, end: int) -> Param:
    name_span = value.source_span(*key_span)
    if isinstance(member, str):
        inner = value.source_span(start + 1, end - 1)
        written = body[start + 1 : end - 1]
        plain = written == member and inner[1] - inner[0] == len(member)
        pieces = (Piece(inner[0], inner[1], None if plain else member),) if member else ()
        part = Value("text", inner, pieces)
    else:
        inner = value.source_span(start, end)
        written = body[start:end]
        plain = inner[1] - inner[0] == len(written)
        part = Value("text", inner, (Piece(inner[0], inner[1], None if plain else written),))
    return Param(key, part, (name_span[0], inner[1]), name_span, key, "json")
