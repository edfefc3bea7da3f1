"""Attributes of a tag in an ACTION block, as models write them. Must not know what they are used for."""

from __future__ import annotations

import re

import msgspec

from tamis.protocols.action.decode import Decoded
from tamis.protocols.model import Value
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
