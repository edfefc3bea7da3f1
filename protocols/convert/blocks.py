"""Formatting the call blocks of a text: each in its protocol's canonical spelling, everything else byte for byte.

Only what has one reading is rewritten: blocks that are clean, or whose repairs are all safe. The result is read again and must
give the same calls; a block that does not is left. Must not know files or the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tamis.protocols.base import PlainCall, WriteOptions
from tamis.protocols.catalogue import message, severity
from tamis.protocols.convert.plain import raw_call
from tamis.protocols.model import Block, Call, Diag, Document, Json, ReadOptions
from tamis.protocols.plugins import extras_of, find_protocol
from tamis.protocols.positions import Span
from tamis.protocols.writing.values import json_text

# What a block holds besides its calls: TAM's comments and shared parameters (seed 002 §4), the texts of a vendor's message. A conversion takes it
# along or names it as lost, and the formatter leaves a block alone that has any.


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
        kind, words = (node.value if node is not None else None for node in (item.get("type"), item.get("text")))
        if kind == "text" and isinstance(words, str):
            (tail if called else lead).append(words)
        elif kind in _CALL_TYPES or kind is None:
            between = between or bool(tail)
            called = True
        else:
            others.append(str(kind))
    return MessageTexts("\n\n".join(lead), "\n\n".join(tail), between, tuple(dict.fromkeys(others)))


_CALL_TYPES = ("tool_use", "function", "function_call")


def has_crlf_only(source: str) -> bool:
    """Whether every line of a text ends with CRLF, and there are any: a question for the whole text, not for each of its blocks."""
    return "\r\n" in source and source.count("\n") == source.count("\r\n")


def with_line_ends(written: str, crlf: bool, calls: Sequence[PlainCall]) -> str:
    """Written calls with the line ends of the text that they go to (``has_crlf_only``), where those are layout only: no value has one."""
    if not crlf:
        return written
    if any("\\n" in text or "\\r" in text for text in (json_text(call.args) for call in calls)):
        return written
    return written.replace("\r\n", "\n").replace("\n", "\r\n")


class Left(msgspec.Struct, frozen=True):
    """A block that was not rewritten. ``doubtful``: not for the sake of its layout, but because a person has to look at it."""

    span: Span
    why: str
    doubtful: bool


class FormattedText(msgspec.Struct, frozen=True):
    """The text with its blocks in canonical spelling, and the blocks that were left."""

    text: str
    left: list[Left]
    made: list[tuple[Span, str]] = []
    """The blocks that were rewritten, by their old place, with their new text."""


def format_blocks(document: Document, reading: ReadOptions, protocol: str = "auto") -> FormattedText:
    """Formats the blocks of a text that was read with ``reading`` as ``protocol``; formatting the result again changes nothing. Never raises."""
    from tamis.protocols.reader import read_text

    left: list[Left] = []
    replacements: list[tuple[Block, str]] = []
    crlf = has_crlf_only(document.text)
    for block in document.blocks:
        text = _written(block, document, reading, left, crlf=crlf)
        if text is not None and text != document.text[block.span[0] : block.span[1]]:
            replacements.append((block, text))
    for _ in range(_ROUNDS):
        text = _replaced(document.text, replacements)
        changed = {block.span for block in _changes(document, read_text(text, protocol, reading))}
        if not changed:
            return FormattedText(text, left, [(block.span, new) for block, new in replacements])
        # A block that reads otherwise goes; where that was another's doing, the last one goes.
        if not any(block.span in changed for block, _ in replacements):
            changed = {replacements[-1][0].span}
        left += [Left(block.span, _OTHERWISE, True) for block, _ in replacements if block.span in changed]
        replacements = [pair for pair in replacements if pair[0].span not in changed]
    left += [Left(block.span, _OTHERWISE, True) for block, _ in replacements]
    return FormattedText(document.text, left)


_ROUNDS = 8
_OTHERWISE = "its canonical spelling would be read otherwise in this place"


def _written(block: Block, document: Document, reading: ReadOptions, left: list[Left], *, crlf: bool) -> str | None:
    """The canonical text of a block, or None when it stays, with an entry in ``left`` unless it is no call at all."""
    source = document.text
    if extras_of(block.protocol).whole_text:
        # A vendor's call JSON is a document of its own form.
        return None
    if not all(call.executable for call in block.calls) or not block.calls:
        levels = ("error", "warning")
        error = next((diag for level in levels for diag in block.diagnostics if severity(diag) == level), None)
        if error is not None:
            left.append(Left(block.span, message(error), True))
        return None
    doubt = next((diag for diag in block.diagnostics if _doubtful(diag, block)), None)
    if doubt is not None:
        left.append(Left(block.span, message(doubt), True))
        return None
    why = _layout(block, document)
    if why is not None:
        left.append(Left(block.span, why, False))
        return None
    protocol = find_protocol(block.protocol)
    shapes = {call.shape for call in block.calls}
    if protocol is None or len(shapes) != 1:
        return None
    calls = [raw_call(call, source) for call in block.calls]
    shape: Literal["tag", "inputs"] = "inputs" if shapes == {"inputs"} else "tag"
    written = protocol.write_calls(calls, WriteOptions(shape=shape))
    if written.refusals:
        # A schema may carry what the text alone does not: the spelling of a TAM parameter.
        written = protocol.write_calls(calls, WriteOptions(shape=shape, tools=reading.tools))
    if written.refusals:
        refusal = written.refusals[0]
        left.append(Left(block.span, message(Diag(refusal.code, (0, 0), refusal.args)), False))
        return None
    return with_line_ends(written.text, crlf, calls)


def _doubtful(diag: Diag, block: Block) -> bool:
    """Whether a person has to look: anything of warning level that no safe edit of the block removes."""
    if severity(diag) not in ("error", "warning"):
        return False
    if diag.fix is not None:
        return diag.fix.applicability != "safe"
    if not diag.repair:
        return True
    # One edit may remove several causes, as one CDATA section does for all markup in a value.
    fixes = [other.fix for other in block.diagnostics if other.fix is not None and other.fix.applicability == "safe"]
    return not any(edit.start <= diag.span[0] <= edit.end for fix in fixes for edit in fix.edits)


def _layout(block: Block, document: Document) -> str | None:
    """What rewriting a block would take from its author."""
    source = document.text
    start, end = block.span
    fields = block_fields(source, block)
    if block.comments or any(field.kind == "comment" for field in fields):
        return "it has comments"
    if fields:
        return "it has shared parameters"
    if source.find("\r", start, end) >= 0:
        return "its line ends are not plain line feeds"
    line = source.rfind("\n", 0, start) + 1
    if start > line and not source[line:start].strip():
        return "it is indented"
    return None


def _replaced(source: str, replacements: list[tuple[Block, str]]) -> str:
    out: list[str] = []
    at = 0
    for block, text in replacements:
        out += (source[at : block.span[0]], text)
        at = block.span[1]
    return "".join([*out, source[at:]])


def _changes(before: Document, after: Document) -> list[Block]:
    """The blocks whose calls are not the same any more."""
    if len(before.blocks) != len(after.blocks):
        pairs = zip(before.blocks, after.blocks, strict=False)
        first = next((block for block, other in pairs if _calls(block, before) != _calls(other, after)), None)
        return [first or before.blocks[-1]] if before.blocks else []
    pairs = zip(before.blocks, after.blocks, strict=True)
    return [block for block, other in pairs if _calls(block, before) != _calls(other, after)]


def _calls(block: Block, document: Document) -> list[list[object]]:
    return [_said(call, document.text) for call in block.calls]


def _said(call: Call, source: str) -> list[object]:
    args: dict[str, Json] = call.args(source)
    modifiers = (call.step, call.on_error, call.retry, call.request_id, call.uris, call.type_hints, call.meta)
    return [call.protocol, call.shape, call.tool_id, args, *modifiers, call.executable]
