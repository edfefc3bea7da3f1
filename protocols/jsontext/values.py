"""Values of a call from a JSON tree: typed, each part with its place in the source. Must not know what a call is."""

from __future__ import annotations

from tamis.protocols.jsontext.spoken import Spoken
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.model import MAX_DEPTH, Value


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
