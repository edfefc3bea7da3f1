"""Selection ranges: from the word at a place outwards, each step the next thing that has a meaning of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.lossless import block_tokens
from tamis.protocols.model import Call, Value
from tamis.protocols.positions import Span
from tamis.server.analysis.embedded import block_at, calls_at, param_at
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.snapshot import Snapshot

_WORD = re.compile(r"\w+")
_REACH = 256
MAX_JSON_CHARS = 1024 * 1024
"""Longer values are not looked into."""


def selection(snapshot: Snapshot, offset: int) -> list[Span]:
    """Spans around an offset, each strictly inside the next; the last is the document. Never empty."""
    text = snapshot.text
    offset = max(0, min(offset, len(text)))
    whole = (0, len(text))
    spans: list[Span] = []
    if (find := answer(snapshot, "selection")) is not None:
        spans.extend(_words(text, offset))
        spans.extend(find(snapshot, offset))
    return nested([*spans, whole], offset)


def nested(spans: list[Span], offset: int) -> list[Span]:
    """Of spans around an offset those that hold one another, from the smallest outwards."""
    chain: list[Span] = []
    around = [span for span in spans if span[0] <= offset <= span[1]]
    for span in sorted(around, key=lambda span: (span[1] - span[0], span[0])):
        if not chain:
            chain.append(span)
            continue
        last = chain[-1]
        if span != last and span[0] <= last[0] and last[1] <= span[1]:
            chain.append(span)
    return chain or [spans[-1]]


def _words(text: str, offset: int) -> Iterator[Span]:
    low, high = max(0, offset - _REACH), min(len(text), offset + _REACH)
    for match in _WORD.finditer(text, low, high):
        if match.start() <= offset <= match.end():
            yield match.span()
            return
        if match.start() > offset:
            return


def _comment(tree: JsonTree, offset: int) -> Iterator[Span]:
    for span in tree.comments:
        if span[0] <= offset <= span[1]:
            yield span
        elif span[0] > offset:
            return


# Texts


def in_text(snapshot: Snapshot, offset: int) -> Iterator[Span]:
    """Around a place in a text: values, arguments, calls, blocks."""
    block = block_at(snapshot.document.blocks, offset)
    if block is None:
        return
    yield block.span
    if block.close is not None:
        yield block.open[1], block.close[0]
    inner: list[Span] = []
    for call in calls_at(block, offset):
        inner += (call.span, call.tool_span, *_in_call(snapshot.text, call, offset))
        if any(start < offset < end for start, end in _texts_at(call, offset)):
            # Inside a text there are no marks, and cutting a long block takes its time.
            yield from inner
            return
    yield from inner
    for tile in block_tokens(snapshot.document, block):
        if tile.start > offset:
            break
        if offset <= tile.end and tile.kind not in ("blank", "noise"):
            yield tile.start, tile.end


def _texts_at(call: Call, offset: int) -> Iterator[Span]:
    param = param_at(call, offset)
    if param is not None:
        yield from (value.span for _, value in param.value.walk() if value.kind == "text")


def _in_call(text: str, call: Call, offset: int) -> Iterator[Span]:
    param = param_at(call, offset)
    if param is None:
        return
    yield param.span
    yield param.name_span
    for _, value in param.value.walk():
        if value.span[0] <= offset <= value.span[1]:
            yield value.span
            if value.kind == "text":
                yield _line(text, value.span, offset)
                yield from _in_value(text, value, offset)


def _line(text: str, span: Span, offset: int) -> Span:
    """What a value has on the line of an offset, without the blanks around it."""
    low = max(span[0], max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1)
    ends = [at for at in (text.find("\n", offset, span[1]), text.find("\r", offset, span[1])) if at >= 0]
    high = min([*ends, span[1]])
    part = text[low:high]
    return low + len(part) - len(part.lstrip()), max(low, high - (len(part) - len(part.rstrip())))


def _in_value(text: str, value: Value, offset: int) -> Iterator[Span]:
    """The parts of JSON text in a value that stands there as it is."""
    start, end = value.span
    if len(value.pieces) != 1 or value.pieces[0].text is not None or end - start > MAX_JSON_CHARS:
        return
    inner = text[start:end]
    if not inner.lstrip().startswith(("{", "[")):
        return
    from tamis.protocols.jsontext.parse import parse_json

    for span in _in_tree(parse_json(inner), offset - start):
        yield span[0] + start, span[1] + start


# JSON


def in_json(snapshot: Snapshot, offset: int) -> Iterator[Span]:
    """Around a place in JSON: values, members, containers, comments."""
    yield from _comment(snapshot.tree, offset)
    yield from _in_tree(snapshot.tree, offset)


def _in_tree(tree: JsonTree, offset: int) -> Iterator[Span]:
    node: JsonNode | None = tree.root
    while node is not None and node.start <= offset <= node.end:
        yield node.span
        if node.kind == "string" and node.end - node.start >= 2:
            yield node.start + 1, node.end - 1
        below: JsonNode | None = None
        if node.kind == "object":
            if node.closed and node.end - node.start >= 2:
                yield node.start + 1, node.end - 1
            for member in node.members:
                start, end = member.span
                if start > offset:
                    break
                if offset <= end:
                    yield start, end
                    yield member.key_span
                    if member.key_end - member.key_start >= 2:
                        yield member.key_start + 1, member.key_end - 1
                    below = member.value
        elif node.kind == "array":
            if node.closed and node.end - node.start >= 2:
                yield node.start + 1, node.end - 1
            for item in node.items:
                if item.start > offset:
                    break
                if offset <= item.end:
                    below = item
        node = below
