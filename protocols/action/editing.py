"""ACTION's blocks in an editor: what its elements mean, what a value stands in, how an argument is written behind the last one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tamis.protocols.action.attributes import read_attributes
from tamis.protocols.action.tokens import Token as Tag
from tamis.protocols.action.tokens import Tokens
from tamis.protocols.base import Source
from tamis.protocols.editing import Editing, Place, card, place_behind, without_line
from tamis.protocols.lossless import Tiles, Token, TokenKind
from tamis.protocols.model import Block, Call, Edit, Param, Value
from tamis.protocols.patterns import lazy

_WORDS = {
    "action": ("an ACTION block", "Its elements are calls: a tool's id as tag name, or `<tool_id>` with `<inputs>`."),
    "tool_id": ("the tool to run", "Its id as text; `<inputs>` beside it holds the arguments."),
    "inputs": ("the arguments of a call", 'One `<input name="…">` for each.'),
    "input": ("one argument", "`name` says which; complex values are JSON text, best in CDATA."),
    "item": ("an item of a list", "An element with only `<item>` children is a list (ruling 15)."),
}


class ActionEditing(Editing):
    """See ``Editing``."""

    opens = "<action>"
    closes = lazy(r"(?i:</\s{0,8}action\s{0,8}>)")
    marker = "</?action>"
    begin = "<ACTION>"
    empty_call = "<ACTION>\n  {0}\n</ACTION>"
    call_title = "ACTION call, tool id as tag"
    keywords = frozenset(_WORDS)
    explained = (
        (
            lazy(r"(?i)<action>"),
            "**ACTION block**: the calls up to `</ACTION>`\n\nEach element in it is a call: the tag is the tool's id, its children are the arguments.",
        ),
        (lazy(r"(?i)</\s*action\s*>"), "**End of the ACTION block**"),
        (
            lazy(r"<!\[CDATA\["),
            "**CDATA**: text that is taken as it is\n\nNo entity is decoded up to `]]>`; one newline after the opening and the last one are not part of it (ruling 16).",
        ),
        (lazy(r"\]\]>"), "**End of CDATA**"),
    )

    def container(self, value: Value, source: str) -> str:
        """``cdata``, ``attribute`` or ``text``."""
        start = value.pieces[0].start if value.pieces else value.span[0]
        if value.cdata:
            return "cdata"
        before = source[max(0, start - 400) : start].rstrip()
        if before.endswith("<![CDATA["):
            return "cdata"
        return "attribute" if before.endswith(("='", '="')) else "text"

    def about_field(self, key: str, calls: Sequence[Call]) -> str:
        """What an element of the protocol means."""
        del calls
        about = _WORDS.get(key.strip("</> ").lower())
        return card(key, *about) if about else ""

    def insertion(self, text: str, call: Call, values: Mapping[str, str]) -> Edit | None:
        """Elements behind the last one, or in the call's empty element; None where a name is no tag."""
        place = place_behind(text, call)
        if call.shape == "inputs":
            parts = [f'<input name="{_attribute(name)}">{_escaped(value)}</input>' for name, value in values.items()]
            if not call.params:
                return _into_inputs(text, call, place, "".join(parts))
        else:
            if any(not re.fullmatch(r"[^\s<>/&\"'=]+", name) for name in values):
                return None
            parts = [f"<{name}>{_escaped(value)}</{name}>" for name, value in values.items()]
            if not call.params:
                return _into_tag(text, call, "".join(parts))
        own_line = not text[place.line : place.anchor[0]].strip()
        between = f"{place.eol}{place.margin}" if own_line else ""
        return Edit(place.anchor[1], place.anchor[1], "".join(f"{between}{part}" for part in parts))

    def removal(self, text: str, param: Param) -> Edit:
        """The element with its line."""
        return without_line(text, *param.span)


def _into_inputs(text: str, call: Call, place: Place, arguments: str) -> Edit | None:
    """The first arguments of a call with ``<tool_id>``: into its ``<inputs>``, or with one behind the id."""
    opener = re.compile(r"<inputs\s*(/?)>").search(text, place.anchor[1], call.span[1])
    whole = f"<inputs>{arguments}</inputs>"
    if opener is None:
        closed = re.compile(r"\s*</tool_id\s*>").match(text, place.anchor[1])
        own_line = text[place.line : place.anchor[0]].strip() == "<tool_id>"
        lead = f"{place.eol}{place.margin}" if own_line else ""
        return closed and Edit(closed.end(), closed.end(), lead + whole)
    if opener[1]:
        return Edit(*opener.span(), whole)
    return Edit(opener.end(), opener.end(), arguments)


def _into_tag(text: str, call: Call, arguments: str) -> Edit | None:
    """The first arguments of a call by tag, which may be an empty element."""
    closer = re.compile(r"\s*(/?)>").match(text, call.tool_span[1])
    if closer is None:
        return None
    if closer[1]:
        return Edit(*closer.span(), f">{arguments}</{text[slice(*call.tool_span)]}>")
    return Edit(closer.end(), closer.end(), arguments)


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(value: str) -> str:
    return _escaped(value).replace('"', "&quot;")


EDITING: Final = ActionEditing()


# An ACTION block as tokens without gaps (the lossless view of ``protocols/lossless.py``). What the calls say comes first: tool ids, names, values
# with their entities. What is left of the markup is cut as the scanner of the tolerant path sees it.


Claim = tuple[int, int, TokenKind]


def action_tokens(text: str, block: Block) -> list[Token]:
    """The tokens of one block of ``text``, in order; together they are its text."""
    start, end = block.span
    tags = _tags(text, block)
    taken = _merged([], _names(block))
    taken = _merged(taken, [(*span, "marker") for span in (block.open, block.close) if span is not None])
    taken = _merged(taken, [(*comment.span, "comment") for comment in block.comments])
    taken = _merged(taken, _values(block))
    taken = _merged(taken, [claim for tag in tags for claim in _markup(text, tag)])
    tiles = Tiles(text, 0)
    at = start
    for left, right, kind in taken:
        if right <= start or left >= end:
            continue
        tiles.words("noise", at, max(at, left))
        tiles.put(kind, max(at, left), min(right, end))
        at = max(at, min(right, end))
    tiles.words("noise", at, end)
    return tiles.tokens


def _tags(text: str, block: Block) -> list[Tag]:
    end = block.close[0] if block.close is not None else block.span[1]
    tokens = Tokens(Source(text), block.open[1], end)
    out: list[Tag] = []
    while (tag := tokens.get(len(out))) is not None:
        out.append(tag)
    return out


def _names(block: Block) -> list[Claim]:
    claims: list[Claim] = [(*call.tool_span, "tool") for call in block.calls]
    for call in block.calls:
        claims.extend((*param.name_span, "key") for param in call.params)
    return claims


def _values(block: Block) -> Iterable[Claim]:
    """The leaves of all values, piece by piece: what decodes to something else is an entity, what lies between is markup."""
    for call in block.calls:
        for param in call.params:
            for _, value in param.value.walk():
                if value.kind == "text":
                    yield from _pieces(value)


def _pieces(value: Value) -> Iterable[Claim]:
    for piece in value.pieces:
        yield piece.start, piece.end, "value" if piece.text is None else "entity"


def _markup(text: str, tag: Tag) -> list[Claim]:
    """The parts of one piece of markup, from left to right."""
    if tag.kind == "comment":
        return [(tag.start, tag.end, "comment")]
    if tag.kind == "cdata":
        start, end = tag.content
        return [(tag.start, start, "delimiter"), *_blank_or(text, start, end), (end, tag.end, "delimiter")]
    if tag.kind in ("pi", "doctype"):
        return [(tag.start, tag.end, "noise")]
    claims: list[Claim] = [(tag.start, tag.name_span[0], "tag"), (*tag.name_span, "key")]
    at = tag.name_span[1]
    for attribute in read_attributes(text, tag.attributes):
        claims.append((at, attribute.name_span[0], "tag"))
        claims.append((*attribute.name_span, "attribute"))
        at = attribute.name_span[1]
        if attribute.value is not None:
            claims.append((at, attribute.value.span[0], "tag"))
            claims.append((*attribute.value.span, "value"))
            at = attribute.value.span[1]
    claims.append((at, tag.end, "tag"))
    return claims


def _blank_or(text: str, start: int, end: int) -> list[Claim]:
    """The inside of a section that no value claims: the blanks of its layout, or a text that was dropped."""
    return [] if text[start:end].strip() else [(start, end, "blank")]


def _merged(taken: list[Claim], new: Iterable[Claim]) -> list[Claim]:
    """``taken`` (sorted, disjoint) with as much of the new claims as is still free, sorted and disjoint."""
    out: list[Claim] = []
    i = 0
    at = 0
    for start, end, kind in sorted(new, key=_start):
        start = max(start, at)
        while start < end:
            while i < len(taken) and taken[i][1] <= start:
                out.append(taken[i])
                i += 1
            limit = taken[i][0] if i < len(taken) else end
            if limit > start:
                out.append((start, min(end, limit), kind))
                start = min(end, limit)
            else:
                start = min(end, taken[i][1])
            at = start
    out.extend(taken[i:])
    return out


def _start(claim: Claim) -> int:
    return claim[0]
