"""The cursor's place in a TAM or VCP block: in a key, between a key and its value, in a value. Must not know tools."""

from __future__ import annotations

import re

import msgspec

from tamis.protocols.suggest import normalised
from tamis.server.analysis.completion.cursor_place import Cursor, last_match, whole_value


class Fields(msgspec.Struct, frozen=True):
    """How a protocol writes ``key: value`` fields."""

    protocol: str
    head: re.Pattern[str]
    tail: re.Pattern[str]
    key_before_head: re.Pattern[str]
    typing_key: re.Pattern[str]
    pair: re.Pattern[str]
    commands: bool
    opening: re.Pattern[str]
    """A key with its colon and the beginning of the opening mark, at the cursor."""


TAM = Fields(
    "tam",
    re.compile("»»»|>>>"),
    re.compile("«««|<<<"),
    re.compile(r"([^\n\r:：»«]{1,256}?)[ \t]*[:：][ \t]*\Z"),
    re.compile(r"(?m:^)[ \t]*([\w\-]{0,256})\Z"),
    re.compile(r"(?m:^)[ \t]*([^\n\r:：»«]{1,256}?)[ \t]*[:：][ \t]*(?:»»»|>>>)((?s:.*?))(?:«««|<<<|$)"),
    True,
    re.compile(r"(?m:^)[ \t]*([\w\-]{1,256})[ \t]*[:：][ \t]*(»{0,2}|>{1,2})\Z"),
)
VCP = Fields(
    "vcp",
    re.compile("「始(?:ESCAPE|exp)?」"),
    re.compile("「末(?:ESCAPE|exp)?」"),
    re.compile(r"([\w\-]{1,256})[ \t]*[:：][ \t]*\Z"),
    re.compile(r"(?:(?m:^)|[,，」])[ \t]*([\w\-]{0,256})\Z"),
    re.compile(r"([\w\-]{1,256})[ \t]*[:：][ \t]*「始(?:ESCAPE|exp)?」((?s:.*?))(?:「末(?:ESCAPE|exp)?」|$)"),
    False,
    re.compile(r"(?:(?m:^)|[,，」])[ \t]*([\w\-]{1,256})[ \t]*[:：][ \t]*(「?始?)\Z"),
)
_KEY_REST = re.compile(r"([\w\-]{0,256})[ \t]*[:：]")
_NUMBERED = re.compile(r"(.*?)_?(\d{1,4})\Z", re.S)
_COMMAND = re.compile(r"command(?:_?(\d{1,4}))?\Z", re.I)


def in_fields(text: str, start: int, offset: int, end: int, fields: Fields) -> Cursor:
    """The cursor in a block whose text begins at ``start`` and ends at ``end``."""
    protocol = fields.protocol
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
            kind = "tam" if fields.commands else "vcp-escape" if "ESCAPE" in head[0].upper() else "vcp"
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
    if not fields.commands:
        return Cursor(protocol, "parameter", span, _vcp_tool(pairs), present=present, bare=bare)
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
    if not fields.commands:
        if normalised(key) == "toolname":
            return Cursor(protocol, "tool", span)
        return Cursor(protocol, "value", span, _vcp_tool(pairs), path=(key,))
    if _COMMAND.match(key):
        return Cursor(protocol, "tool", span)
    steps = dict(_steps(pairs))
    numbered = _NUMBERED.match(key)
    if numbered and numbered[1] and int(numbered[2]) in steps:
        return Cursor(protocol, "value", span, steps[int(numbered[2])], path=(numbered[1],), suffix=f"_{numbered[2]}")
    return Cursor(protocol, "value", span, steps.get(0, next(iter(steps.values()), "")), path=(key,))


def _steps(pairs: list[tuple[str, str]]) -> list[tuple[int, str]]:
    """TAM's commands as (step, tool id); a command without number is step 0."""
    found: list[tuple[int, str]] = []
    for key, value in pairs:
        command = _COMMAND.match(key)
        if command:
            # An unfinished value runs on into the lines behind it; the id is what stands on its own line.
            found.append((int(command[1] or 0), value.split("\n")[0].strip()))
    return found


def _vcp_tool(pairs: list[tuple[str, str]]) -> str:
    return next((value for key, value in reversed(pairs) if normalised(key) == "toolname"), "")
