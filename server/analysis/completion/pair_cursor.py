"""The cursor's place in a block of fields: in a key, between a key and its value, in a value. Must not know tools."""

from __future__ import annotations

import re

import msgspec

from tamis.protocols.editing import Fields
from tamis.protocols.plugins import editing_of
from tamis.protocols.suggest import normalised
from tamis.server.analysis.completion.cursor_place import Cursor, last_match, whole_value

_KEY_REST = re.compile(r"([\w\-]{0,256})[ \t]*[:：]")
_NUMBERED = re.compile(r"(.*?)_?(\d{1,4})\Z", re.S)
_COMMAND = re.compile(r"command(?:_?(\d{1,4}))?\Z", re.I)


def in_fields(text: str, start: int, offset: int, end: int, protocol: str, fields: Fields) -> Cursor:
    """The cursor in a block whose text begins at ``start`` and ends at ``end``."""
    head = last_match(fields.head, text, start, offset)
    tail = last_match(fields.tail, text, start, offset)
    pairs = [(match[1].strip(), match[2].strip()) for match in fields.pair.finditer(text, start, end)]
    open_value = head is not None and (tail is None or tail.start() < head.start())
    key_typed = fields.typing_key.search(text, max(start, offset - 300), offset)
    if open_value and head is not None:
        next_tail = fields.tail.search(text, offset, end)
        next_head = fields.head.search(text, offset, end)
        unfinished = next_tail is None or (next_head is not None and next_head.start() < next_tail.start())
        # A value without its end that runs over lines ends at the next key line, so a key may begin here.
        if not (unfinished and key_typed is not None and "\n" in text[head.end() : offset]):
            key = fields.key_before_head.search(text, max(start, head.start() - 300), head.start())
            found = _value(protocol, text, head.end(), offset, key[1].strip() if key else "", pairs, fields)
            stop = (
                next_tail.start() if next_tail is not None and not unfinished else _line_stop(text, offset, end, fields)
            )
            kind = editing_of(protocol).container_behind(head[0])
            span = found.span if unfinished else whole_value(text, found.span, stop)
            return msgspec.structs.replace(found, span=span, value=(head.end(), max(stop, offset)), container=kind)
    opening = fields.opening.search(text, max(start, offset - 300), offset)
    if opening is not None:
        return Cursor(protocol, "open", (opening.start(2), offset), path=(opening[1],))
    if key_typed is None:
        return Cursor(protocol, "nothing", (offset, offset))
    rest = _KEY_REST.match(text, offset, end)
    bare = rest is not None
    span = (key_typed.start(1), rest.end(1) if rest is not None else offset)
    present = frozenset(normalised(key) for key, _ in pairs)
    if not fields.steps:
        return Cursor(protocol, "parameter", span, _tool_of(pairs, fields), present=present, bare=bare)
    steps = _steps(pairs)
    before = [(match[1].strip(), match[2].strip()) for match in fields.pair.finditer(text, start, span[0])]
    commands = [command for key, _ in before if (command := _COMMAND.match(key))]
    number = commands[-1][1] if commands else None
    suffix = f"_{number}" if number else ""
    tool = dict(steps).get(int(number) if number else 0, "")
    return Cursor(
        protocol,
        "parameter",
        span,
        tool,
        present=present,
        suffix=suffix,
        steps=tuple(sorted(step for step, _ in steps)),
        bare=bare,
    )


def _line_stop(text: str, offset: int, end: int, fields: Fields) -> int:
    """Where an unfinished value ends: before the next key line, else with the block's text."""
    following = fields.pair.search(text, offset, end)
    stop = following.start() if following is not None else end
    while stop > offset and text[stop - 1].isspace():
        stop -= 1
    return stop


def _value(
    protocol: str, text: str, start: int, offset: int, key: str, pairs: list[tuple[str, str]], fields: Fields
) -> Cursor:
    typed = text[start:offset]
    span = (start + len(typed) - len(typed.lstrip()), offset)
    if not fields.steps:
        if normalised(key) == normalised(fields.tool_key):
            return Cursor(protocol, "tool", span)
        return Cursor(protocol, "value", span, _tool_of(pairs, fields), path=(key,))
    if _COMMAND.match(key):
        return Cursor(protocol, "tool", span)
    steps = dict(_steps(pairs))
    numbered = _NUMBERED.match(key)
    if numbered and numbered[1] and int(numbered[2]) in steps:
        return Cursor(protocol, "value", span, steps[int(numbered[2])], path=(numbered[1],), suffix=f"_{numbered[2]}")
    return Cursor(protocol, "value", span, steps.get(0, next(iter(steps.values()), "")), path=(key,))


def _steps(pairs: list[tuple[str, str]]) -> list[tuple[int, str]]:
    """The commands of a block as (step, tool id); a command without number is step 0."""
    found: list[tuple[int, str]] = []
    for key, value in pairs:
        command = _COMMAND.match(key)
        if command:
            # An unfinished value runs on into the lines behind it; the id is what stands on its own line.
            found.append((int(command[1] or 0), value.split("\n")[0].strip()))
    return found


def _tool_of(pairs: list[tuple[str, str]], fields: Fields) -> str:
    """The tool of a block that has one; of several the last."""
    name = normalised(fields.tool_key)
    return next((value for key, value in reversed(pairs) if normalised(key) == name), "")
