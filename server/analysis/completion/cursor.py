"""Where in a call block the cursor stands, from the text around it alone.

Completion works in text that is half-written, where reading finds no call yet. So this looks only at the block around the
cursor: which protocol, which tool, which parameters are there, and whether a name or a value is being typed. One pass over the
block, bounded. Must not know tools.
"""

from __future__ import annotations

import re
from collections import deque
from functools import cache
from typing import Literal

import msgspec

from tamis.protocols.editing import Fields
from tamis.protocols.plugins import SHIPPED, editing_of
from tamis.protocols.positions import Span
from tamis.protocols.suggest import normalised

# A cursor's place inside a call block, and small looks at the text around it.


MAX_SHORT_CHARS = 200

Expect = Literal["tool", "parameter", "attribute", "value", "open", "close", "field", "nothing"]


class Cursor(msgspec.Struct, frozen=True):
    """What is being typed inside a block.

    ``expect`` says what belongs at the cursor and ``span`` what of it is typed already. ``path`` leads from the tool to the
    value (parameter name, then keys of nested elements). ``present`` are the names that the call has already.
    """

    protocol: str
    expect: Expect
    span: Span
    tool_id: str = ""
    path: tuple[str, ...] = ()
    present: frozenset[str] = frozenset()
    suffix: str = ""
    """``_N`` of the step the cursor is in, where a block has several."""
    steps: tuple[int, ...] = ()
    shape: Literal["tag", "inputs", ""] = ""
    open_tags: tuple[str, ...] = ()
    bare: bool = False
    """Only the name belongs here: inside ``name="…"``, or before a ``:`` that is there already."""
    value: Span = (0, 0)
    """The source of the whole value around the cursor, as far as it can be told; ``container`` is what it stands in."""
    container: str = ""


def whole_value(text: str, span: Span, stop: int) -> Span:
    """A value up to its end, where it is a short one on one line: choosing another replaces all of it."""
    start, offset = span
    rest = text[offset:stop].rstrip() if 0 <= stop - offset <= MAX_SHORT_CHARS else "\n"
    return span if "\n" in rest or "\r" in rest or "\n" in text[start:offset] else (start, offset + len(rest))


def first_char(text: str, start: int, end: int) -> int:
    """The first character that is not blank; ``end`` where all are."""
    while start < end and text[start].isspace():
        start += 1
    return start


def last_match(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """The last match in a stretch of text."""
    return next(iter(deque(pattern.finditer(text, start, end), maxlen=1)), None)


# The cursor's place in an ACTION block: in a tag, an attribute, a section, or between elements.


_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(?P<close>/)?(?P<name>[^\s<>/!?][^\s<>]{0,255}?)(?P<attrs>\s[^<>]{0,1024})?(?P<empty>/)?>",
    re.S,
)
_NAME_ATTRIBUTE = re.compile(r"\bname\s*=\s*[\"']([^\"'<>]*)[\"']")
_TYPING_TAG = re.compile(r"<(/?)([^\s<>!?]{0,255})\Z")
_TAG_REST = re.compile(r"([^\s<>/]{0,255})>")
_TYPING_NAME = re.compile(r"<input\s+name\s*=\s*[\"']([^\"'<>]{0,255})\Z")
MAX_TAG_CHARS = 4_000
_ATTRIBUTE = re.compile(r"\s([^\s<>=\"'/]{1,255})\s{0,8}=\s{0,8}(?:\"[^\"<]*\"|'[^'<]*')")
_IN_TAG = re.compile(
    r"<(?P<tag>[^\s<>/!?]{1,255})(?P<had>(?:\s+[^\s<>=\"'/]{1,255}\s{0,8}=\s{0,8}(?:\"[^\"<]*\"|'[^'<]*'))*)\s+"
    r"(?P<name>[^\s<>=\"'/]{0,255})(?:\s{0,8}=\s{0,8}(?P<quote>[\"'])(?P<typed>[^<]*))?\Z"
)
"""An opening tag that ends at the cursor, in an attribute's name or value."""
_TOOL_ID = re.compile(r"<tool_id>\s*([^<\s]{1,256})\s*</tool_id>")
_INPUTS = re.compile(r"<inputs\s*>")
"""A whole tag: one that is still being typed opens nothing."""


class _Elements:
    """The open elements at a place of an ACTION block and the parameters of the call that holds it."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, str]] = []
        """Tag name, and the name that it stands for (an input's ``name``)."""
        self.present: list[str] = []
        self.after_token = 0
        self.inside_raw = False
        self.section = -1
        """Where the text of the CDATA section begins that the scanned text ends in."""

    def scan(self, text: str, start: int, end: int, *, until_call_ends: bool = False) -> None:
        self.after_token = start
        for match in _TOKEN.finditer(text, start, end):
            self.after_token = match.end()
            name = match["name"]
            if name is None:
                self.inside_raw = match.end() == end and not match[0].endswith(("-->", "]]>"))
                is_section = self.inside_raw and match[0].startswith("<![CDATA[")
                self.section = match.start() + 9 if is_section else -1
                continue
            if match["close"]:
                if any(tag == name for tag, _ in self.stack):
                    while self.stack.pop()[0] != name:
                        pass
                if until_call_ends and not self.stack:
                    return
                continue
            attribute = _NAME_ATTRIBUTE.search(match["attrs"] or "")
            if not self.stack and not until_call_ends:
                self.present.clear()
            elif len(self.stack) == 1:
                self.present.append(attribute[1] if attribute else name)
            if not match["empty"]:
                self.stack.append((name, attribute[1] if attribute and name == "input" else name))


class _Where(msgspec.Struct, frozen=True):
    """The cursor's surroundings in a block: ``stack`` are the names of the open elements, ``path`` those below the call's own."""

    text: str
    offset: int
    end: int
    before: _Elements
    stack: tuple[str, ...]
    base: Cursor

    @property
    def path(self) -> tuple[str, ...]:
        return self.stack[1:]

    @property
    def argument_or_tool(self) -> Expect:
        """What an element here would be: an argument in a call, else a call."""
        return "parameter" if self.stack or self.base.shape == "inputs" else "tool"


def in_action(text: str, start: int, offset: int, end: int, protocol: str) -> Cursor:
    """The cursor in a block whose text begins at ``start`` and ends at ``end``."""
    before = _Elements()
    typing = _TYPING_TAG.search(text, max(start, offset - 260), offset)
    naming = _TYPING_NAME.search(text, max(start, offset - 520), offset)
    before.scan(text, start, min(match.start() for match in (typing, naming) if match) if typing or naming else offset)
    nothing = Cursor(protocol, "nothing", (offset, offset))
    if before.inside_raw and before.section < 0:
        return nothing
    section_end = text.find("]]>", offset, end) if before.section >= 0 else -1
    base = _call_around(text, (start, offset, end), before, section_end, nothing)
    where = _Where(text, offset, end, before, tuple(label for _, label in before.stack), base)
    if before.section >= 0:
        return _in_section(where, section_end) if where.path else nothing
    if not where.stack and typing is None and naming is None:
        in_tag = _IN_TAG.search(text, max(start, offset - MAX_TAG_CHARS), offset)
        if in_tag is not None and in_tag["tag"] not in ("tool_id", "inputs", "input"):
            return _in_attributes(text, in_tag, offset, end, protocol)
    if naming is not None:
        return msgspec.structs.replace(
            base, expect="parameter", span=(naming.start(1), offset), bare=True, shape="inputs"
        )
    if typing is None:
        return _in_content(where)
    if not typing[1] and not typing[2] and text.startswith("/", offset):
        return nothing
    return _in_tag_name(where, typing)


def _call_around(
    text: str, place: tuple[int, int, int], before: _Elements, section_end: int, nothing: Cursor
) -> Cursor:
    """A cursor that expects nothing yet, with the call that it is in: its shape, its tool, and the arguments that it has."""
    start, offset, end = place
    after = _Elements()
    after.stack = list(before.stack)
    after.scan(text, section_end + 3 if section_end >= 0 else offset, end, until_call_ends=bool(before.stack))
    tags = tuple(tag for tag, _ in before.stack)
    outermost = before.stack[0][1] if before.stack else ""
    call = msgspec.structs.replace(nothing, present=frozenset((*before.present, *after.present)), open_tags=tags)
    if outermost in ("tool_id", "inputs") or (not before.stack and _awaits_inputs(text, start, offset, end)):
        ids = list(_TOOL_ID.finditer(text, start, offset)) or list(_TOOL_ID.finditer(text, offset, end))
        return msgspec.structs.replace(call, tool_id=ids[-1][1] if ids else "", shape="inputs")
    return msgspec.structs.replace(call, tool_id=outermost, shape="tag")


def _in_section(where: _Where, section_end: int) -> Cursor:
    """The cursor in the text of a CDATA section."""
    text, offset = where.text, where.offset
    start = min(where.before.section, offset)
    span = (first_char(text, start, offset), offset)
    closed_by = "" if where.base.shape == "inputs" else where.path[-1]
    stop = section_end if section_end >= 0 else _closing(text, closed_by, offset, where.end)
    return msgspec.structs.replace(
        where.base, expect="value", span=span, path=where.path, value=(start, stop), container="cdata"
    )


def _in_tag_name(where: _Where, typing: re.Match[str]) -> Cursor:
    """The cursor in the name of a tag that is being typed, or behind its bracket."""
    text, offset, stack, base = where.text, where.offset, where.stack, where.base
    rest = None if typing[1] else _TAG_REST.match(text, offset, where.end)
    if rest is not None and (
        rest[1] or text.startswith("</", rest.end()) or f"</{typing[2]}>" in text[offset : where.end]
    ):
        name = (typing.start(2), rest.end(1))
        return msgspec.structs.replace(
            base, expect="parameter" if stack else "tool", span=name, path=where.path, bare=True
        )
    # An editor that closes brackets has put the ">" there already.
    span = (typing.start(), offset + 1 if text[offset : offset + 1] == ">" else offset)
    if typing[1] or stack[:1] == ("tool_id",):
        return msgspec.structs.replace(base, expect="close", span=span)
    return msgspec.structs.replace(base, expect=where.argument_or_tool, span=span, path=where.path)


def _in_content(where: _Where) -> Cursor:
    """The cursor between tags: in a tool's id, in a value, or where an element may begin."""
    text, offset, end, base = where.text, where.offset, where.end, where.base
    begin = where.before.after_token
    typed = text[begin:offset]
    span = (begin + len(typed) - len(typed.lstrip()), offset)
    if where.stack[:1] == ("tool_id",):
        stop = text.find("</", offset, end)
        return msgspec.structs.replace(base, expect="tool", span=whole_value(text, span, stop) if stop >= 0 else span)
    if where.path:
        following = _NEXT_TAG.search(text, offset, end)
        whole = (begin, following.start() if following is not None else end)
        if following is not None and text.startswith("</", following.start()):
            span = whole_value(text, span, following.start())
        return msgspec.structs.replace(base, expect="value", span=span, path=where.path, value=whole, container="text")
    if not typed.strip():
        # Between elements with nothing typed: whole elements belong here.
        return msgspec.structs.replace(base, expect=where.argument_or_tool, span=(offset, offset), path=where.path)
    return base


def _awaits_inputs(text: str, start: int, offset: int, end: int) -> bool:
    """Whether a ``<tool_id>`` before the cursor has no ``<inputs>`` yet, but for the tag that the cursor is in."""
    match = last_match(_TOOL_ID, text, start, offset)
    if match is None:
        return False
    return all(tag.start() < offset < tag.end() for tag in _INPUTS.finditer(text, match.end(), end))


def _in_attributes(text: str, tag: re.Match[str], offset: int, end: int, protocol: str) -> Cursor:
    """Arguments as attributes of the tool's element."""
    rest = text[offset : min(end, offset + MAX_TAG_CHARS)]
    behind = re.match(r"[^<>]*", rest)
    present = frozenset(
        match[1] for match in _ATTRIBUTE.finditer(tag["had"] + " " + (behind[0] if behind is not None else ""))
    )
    base = Cursor(protocol, "nothing", (offset, offset), tag["tag"], present=present, shape="tag")
    if tag["quote"]:
        quote = tag["quote"]
        start = tag.start("typed")
        stop = re.compile(f"[{quote}<]").search(text, offset, end)
        whole = (start, stop.start() if stop is not None else offset)
        span = (first_char(text, start, offset), whole[1] if "{" not in text[start:offset] else offset)
        return msgspec.structs.replace(
            base, expect="value", span=span, path=(tag["name"],), value=whole, container="attribute"
        )
    has_value = re.match(r"[^\s<>=\"'/]*\s{0,8}=", rest)
    word = re.match(r"[^\s<>=\"'/]*", rest)
    span = (tag.start("name"), offset + (len(word[0]) if word is not None else 0))
    return msgspec.structs.replace(base, expect="attribute", span=span, bare=has_value is not None)


_NEXT_TAG = re.compile(r"<[/!A-Za-z_]")


def _closing(text: str, name: str, offset: int, end: int) -> int:
    """Where an unfinished CDATA section ends: at its element's closing tag, else with the block."""
    at = text.find(f"</{name}" if name else "</", offset, end)
    return at if at >= 0 else end


# The cursor's place in a block of fields: in a key, between a key and its value, in a value.


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
            inner_cursor = _value(protocol, text, head.end(), offset, key[1].strip() if key else "", pairs, fields)
            stop = (
                next_tail.start() if next_tail is not None and not unfinished else _line_stop(text, offset, end, fields)
            )
            kind = editing_of(protocol).container_behind(head[0])
            span = inner_cursor.span if unfinished else whole_value(text, inner_cursor.span, stop)
            return msgspec.structs.replace(
                inner_cursor, span=span, value=(head.end(), max(stop, offset)), container=kind
            )
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
    steps: list[tuple[int, str]] = []
    for key, value in pairs:
        command = _COMMAND.match(key)
        if command:
            # An unfinished value runs on into the lines behind it; the id is what stands on its own line.
            steps.append((int(command[1] or 0), value.split("\n")[0].strip()))
    return steps


def _tool_of(pairs: list[tuple[str, str]], fields: Fields) -> str:
    """The tool of a block that has one; of several the last."""
    name = normalised(fields.tool_key)
    return next((value for key, value in reversed(pairs) if normalised(key) == name), "")


__all__ = ["Cursor", "find_cursor"]

MAX_BLOCK_CHARS = 256 * 1024


@cache
def _openers() -> re.Pattern[str]:
    """The opening markers of all protocols whose blocks can be half-written, each a group with the protocol's id."""
    named = ((name, editing_of(name).opens) for name in SHIPPED)
    return re.compile("(?i:" + "|".join(f"(?P<{name}>{opens})" for name, opens in named if opens) + ")")


def find_cursor(text: str, offset: int) -> Cursor | None:
    """The cursor's place inside the block around ``offset``; None outside every block."""
    opener = _last_opener(text, max(0, offset - MAX_BLOCK_CHARS), offset)
    if opener is None:
        return None
    protocol = opener.lastgroup or ""
    editing = editing_of(protocol)
    closer = editing.closes
    if closer.search(text, opener.end(), offset) is not None:
        return None
    ceiling = min(len(text), offset + MAX_BLOCK_CHARS)
    closing = closer.search(text, offset, ceiling)
    following = _openers().search(text, offset, ceiling)
    end = min(closing.start() if closing else ceiling, following.start() if following else ceiling)
    if editing.fields is not None:
        return in_fields(text, opener.end(), offset, end, protocol, editing.fields)
    return in_action(text, opener.end(), offset, end, protocol)


def _last_opener(text: str, floor: int, offset: int) -> re.Match[str] | None:
    """The last opening marker before the cursor: from one ``<`` to the one before it, so that prose costs nothing."""
    openers = _openers()
    at = text.rfind("<", floor, offset)
    while at >= 0:
        match = openers.match(text, at, offset)
        if match is not None:
            return match
        at = text.rfind("<", floor, at)
    return None
