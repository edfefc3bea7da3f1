"""What a block holds besides its calls: TAM's comments and shared parameters (seed 002 §4), the texts of a vendor's message.

A conversion takes it along or names it as lost, and the formatter leaves a block alone that has any. Must not know how calls are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tamis.protocols.base import PlainCall
from tamis.protocols.model import Block
from tamis.protocols.plugins import extras_of
from tamis.protocols.writing.values import json_text


class BlockField(msgspec.Struct, frozen=True):
    """A field of the whole block with its text."""

    kind: Literal["comment", "common"]
    text: str


def block_fields(text: str, block: Block) -> list[BlockField]:
    """The comments and shared parameters of a TAM block, in order; none for other protocols."""
    return extras_of(block.protocol).block_fields(text, block)


class MessageTexts(msgspec.Struct, frozen=True):
    """The texts of a message in call JSON: before its first call and behind it."""

    lead: str = ""
    tail: str = ""
    between: bool = False
    """Whether a text stood between two calls."""
    others: tuple[str, ...] = ()
    """Types of parts that are neither texts nor calls."""


def message_texts(text: str, block: Block) -> MessageTexts:
    """What OpenAI's and Anthropic's messages say beside their calls."""
    from tamis.protocols.jsontext.parse import parse_json

    root = parse_json(text[block.span[0] : block.span[1]]).root
    content = root if root is not None and root.kind == "array" else None if root is None else root.get("content")
    if content is None:
        return MessageTexts()
    if content.kind == "string" and isinstance(content.value, str):
        return MessageTexts(lead=content.value)
    lead: list[str] = []
    tail: list[str] = []
    others: list[str] = []
    called = between = False
    for item in content.items if content.kind == "array" else []:
        kind, said = (node.value if node is not None else None for node in (item.get("type"), item.get("text")))
        if kind == "text" and isinstance(said, str):
            (tail if called else lead).append(said)
        elif kind in _CALL_TYPES or kind is None:
            between = between or bool(tail)
            called = True
        else:
            others.append(str(kind))
    return MessageTexts("\n\n".join(lead), "\n\n".join(tail), between, tuple(dict.fromkeys(others)))


_CALL_TYPES = ("tool_use", "function", "function_call")


def with_line_ends(written: str, source: str, calls: Sequence[PlainCall]) -> str:
    """Written calls with the line ends of the text that they go to, where those are layout only: no value has one."""
    if "\r\n" not in source or source.count("\n") != source.count("\r\n"):
        return written
    if any("\\n" in said or "\\r" in said for said in (json_text(call.args) for call in calls)):
        return written
    return written.replace("\r\n", "\n").replace("\n", "\r\n")
