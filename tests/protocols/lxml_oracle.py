"""What lxml reads in a well-formed ACTION block: the oracle of the reader."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.protocols.model import Json

etree: Any = pytest.importorskip("lxml.etree", reason="lxml is the oracle of these tests; install the dev extra")


def text_of(element: Any) -> str:
    """Ruling 16 and the rule for text: layout of the tags around a text is not part of it, everything else is."""
    text: str = element.text or ""
    if "<![CDATA[" in etree.tostring(element, encoding="unicode"):
        return _without_last_line(text.removeprefix("\n"))
    if not text.strip():
        return ""
    first, newline, rest = text.partition("\n")
    if not newline or first.strip(" \t"):
        return _without_last_line(text)
    shortened = _without_last_line(rest)
    return shortened.lstrip(" \t") if shortened != rest and "\n" not in shortened else shortened


def _without_last_line(text: str) -> str:
    before, newline, last = text.rpartition("\n")
    return before if newline and not last.strip(" \t") else text


def value_of(element: Any) -> Json:
    """Ruling 15: elements make a list of items or an object."""
    children = children_of(element)
    if not children:
        return text_of(element)
    if all(child.tag == "item" for child in children):
        return [value_of(child) for child in children]
    return together(children)


def children_of(element: Any) -> list[Any]:
    return [child for child in element if isinstance(child.tag, str)]


def together(children: list[Any]) -> dict[str, Json]:
    found: dict[str, list[Json]] = {}
    for child in children:
        found.setdefault(child.tag, []).append(value_of(child))
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def only_own_pair(element: Any) -> bool:
    children = children_of(element)
    if "<![CDATA[" in etree.tostring(element, encoding="unicode"):
        return False
    return (
        len(children) == 1
        and children[0].tag == element.tag
        and not children_of(children[0])
        and not "".join(children[0].itertext()).strip()
    )
