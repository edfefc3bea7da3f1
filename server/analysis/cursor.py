"""Where in a call block the cursor stands, from the text around it alone.

Completion works in text that is half-written, where reading finds no call yet. So this looks only at the block around the
cursor: which protocol, which tool, which parameters are there, and whether a name or a value is being typed. One pass over the
block, bounded. Must not know tools.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Literal

import msgspec

from tamis.protocols.positions import Span
from tamis.protocols.suggest import normalised

MAX_BLOCK_CHARS = 256 * 1024

_OPENERS = re.compile(
    r"(?i:(?P<action><action>)|(?P<tam><\|?\[request_tool\]\|?>)|(?P<vcp><{2,4}\[tool_request(?:_?exp)?\]>{2,4}))"
)
_CLOSERS = {
    "action": re.compile(r"(?i:</\s{0,8}action\s{0,8}>)"),
    "tam": re.compile(r"(?i:<\|?\[end_tool\]\|?>)"),
    "vcp": re.compile(r"(?i:<{2,4}\[end_tool_request(?:_?exp)?\]>{2,4})"),
}

Expect = Literal["tool", "parameter", "value", "close", "field", "nothing"]


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
    """TAM: ``_N`` of the step the cursor is in."""
    steps: tuple[int, ...] = ()
    shape: Literal["tag", "inputs", ""] = ""
    open_tags: tuple[str, ...] = ()
    bare: bool = False
    """Only the name belongs here: inside ``name="…"``, or before a ``:`` that is there already."""


def find_cursor(text: str, offset: int) -> Cursor | None:
    """The cursor's place inside the block around ``offset``; None outside every block."""
    floor = max(0, offset - MAX_BLOCK_CHARS)
    opener = _last(_OPENERS, text, floor, offset)
    if opener is None:
        return None
    protocol = opener.lastgroup or ""
    closer = _CLOSERS[protocol]
    if closer.search(text, opener.end(), offset) is not None:
        return None
    ceiling = min(len(text), offset + MAX_BLOCK_CHARS)
    closing = closer.search(text, offset, ceiling)
    following = _OPENERS.search(text, offset, ceiling)
    end = min(closing.start() if closing else ceiling, following.start() if following else ceiling)
    if protocol == "action":
        return _in_action(text, opener.end(), offset, end)
    if protocol == "tam":
        return _in_fields(text, opener.end(), offset, end, _TAM)
    return _in_fields(text, opener.end(), offset, end, _VCP)


# ACTION

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(?P<close>/)?(?P<name>[^\s<>/!?][^\s<>]{0,255}?)(?P<attrs>\s[^<>]{0,1024})?(?P<empty>/)?>",
    re.S,
)
_NAME_ATTRIBUTE = re.compile(r"\bname\s*=\s*[\"']([^\"'<>]*)[\"']")
_TYPING_TAG = re.compile(r"<(/?)([^\s<>!?]{0,255})\Z")
_TAG_REST = re.compile(r"([^\s<>/]{0,255})>")
_TYPING_NAME = re.compile(r"<input\s+name\s*=\s*[\"']([^\"'<>]{0,255})\Z")
_TOOL_ID = re.compile(r"<tool_id>\s*([^<\s]{1,256})\s*</tool_id>")


class _Elements:
    """The open elements at a place of an ACTION block and the parameters of the call that holds it."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, str]] = []
        """Tag name, and the name that it stands for (an input's ``name``)."""
        self.present: list[str] = []
        self.after_token = 0
        self.inside_raw = False

    def scan(self, text: str, start: int, end: int, *, until_call_ends: bool = False) -> None:
        self.after_token = start
        for match in _TOKEN.finditer(text, start, end):
            self.after_token = match.end()
            name = match["name"]
            if name is None:
                self.inside_raw = match.end() == end and not match[0].endswith(("-->", "]]>"))
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


def _in_action(text: str, start: int, offset: int, end: int) -> Cursor:
    before = _Elements()
    typing = _TYPING_TAG.search(text, max(start, offset - 260), offset)
    naming = _TYPING_NAME.search(text, max(start, offset - 520), offset)
    edge = min(typing.start() if typing else offset, naming.start() if naming else offset)
    before.scan(text, start, edge)
    tags = tuple(tag for tag, _ in before.stack)
    stack = tuple(label for _, label in before.stack)
    nothing = Cursor("action", "nothing", (offset, offset))
    if before.inside_raw:
        return nothing
    after = _Elements()
    after.stack = list(before.stack)
    after.scan(text, offset, end, until_call_ends=bool(stack))
    present = frozenset((*before.present, *after.present))
    inputs = bool(stack) and stack[0] in ("tool_id", "inputs")
    if inputs or (not stack and _TOOL_ID.search(text, start, end)):
        ids = list(_TOOL_ID.finditer(text, start, offset)) or list(_TOOL_ID.finditer(text, offset, end))
        tool = ids[-1][1] if ids else ""
        base = Cursor("action", "nothing", (offset, offset), tool, present=present, shape="inputs", open_tags=tags)
        path = stack[1:]
    else:
        base = Cursor(
            "action",
            "nothing",
            (offset, offset),
            stack[0] if stack else "",
            present=present,
            shape="tag",
            open_tags=tags,
        )
        path = stack[1:]
    if naming is not None:
        return msgspec.structs.replace(
            base, expect="parameter", span=(naming.start(1), offset), bare=True, shape="inputs"
        )
    if typing is not None:
        existing = _TAG_REST.match(text, offset, end)
        if existing is not None and not typing[1] and (existing[1] or f"</{typing[2]}>" in text[offset:end]):
            name = (typing.start(2), existing.end(1))
            expect: Expect = "parameter" if stack else "tool"
            return msgspec.structs.replace(base, expect=expect, span=name, path=path, bare=True)
        # An editor that closes brackets has put the ">" there already.
        span = (typing.start(), offset + 1 if text[offset : offset + 1] == ">" else offset)
        if typing[1] or stack[:1] == ("tool_id",):
            return msgspec.structs.replace(base, expect="close", span=span)
        return msgspec.structs.replace(base, expect="parameter" if stack else "tool", span=span, path=path)
    typed = text[before.after_token : offset]
    lead = len(typed) - len(typed.lstrip())
    span = (before.after_token + lead, offset)
    if stack and stack[0] == "tool_id":
        return msgspec.structs.replace(base, expect="tool", span=span)
    if path:
        return msgspec.structs.replace(base, expect="value", span=span, path=path)
    if not typed.strip():
        # Between elements with nothing typed: whole elements belong here.
        return msgspec.structs.replace(base, expect="parameter" if stack else "tool", span=(offset, offset), path=path)
    return base


# TAM and VCP


class _Fields(msgspec.Struct, frozen=True):
    """How a protocol writes ``key: value`` fields."""

    protocol: str
    head: re.Pattern[str]
    tail: re.Pattern[str]
    key_before_head: re.Pattern[str]
    typing_key: re.Pattern[str]
    pair: re.Pattern[str]
    commands: bool


_TAM = _Fields(
    "tam",
    re.compile("»»»|>>>"),
    re.compile("«««|<<<"),
    re.compile(r"([^\n\r:：»«]{1,256}?)[ \t]*[:：][ \t]*\Z"),
    re.compile(r"(?m:^)[ \t]*([\w\-]{0,256})\Z"),
    re.compile(r"(?m:^)[ \t]*([^\n\r:：»«]{1,256}?)[ \t]*[:：][ \t]*(?:»»»|>>>)((?s:.*?))(?:«««|<<<|$)"),
    True,
)
_VCP = _Fields(
    "vcp",
    re.compile("「始(?:ESCAPE|exp)?」"),
    re.compile("「末(?:ESCAPE|exp)?」"),
    re.compile(r"([\w\-]{1,256})[ \t]*[:：][ \t]*\Z"),
    re.compile(r"(?:(?m:^)|[,，」])[ \t]*([\w\-]{0,256})\Z"),
    re.compile(r"([\w\-]{1,256})[ \t]*[:：][ \t]*「始(?:ESCAPE|exp)?」((?s:.*?))(?:「末(?:ESCAPE|exp)?」|$)"),
    False,
)
_KEY_REST = re.compile(r"([\w\-]{0,256})[ \t]*[:：]")
_NUMBERED = re.compile(r"(.*?)_?(\d{1,4})\Z", re.S)
_COMMAND = re.compile(r"command(?:_?(\d{1,4}))?\Z", re.I)


def _in_fields(text: str, start: int, offset: int, end: int, fields: _Fields) -> Cursor:
    protocol = fields.protocol
    head = _last(fields.head, text, start, offset)
    tail = _last(fields.tail, text, start, offset)
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
            return _value(protocol, text, head.end(), offset, key[1].strip() if key else "", pairs, fields)
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


def _value(
    protocol: str, text: str, start: int, offset: int, key: str, pairs: list[tuple[str, str]], fields: _Fields
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


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text, start, end), maxlen=1)), None)
