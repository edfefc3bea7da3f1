"""The cursor's place in an ACTION block: in a tag, an attribute, a section, or between elements. Must not know tools."""

from __future__ import annotations

import re

import msgspec

from tamis.server.analysis.completion.cursor_place import Cursor, Expect, first_char, last_match, whole_value

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


def in_action(text: str, start: int, offset: int, end: int) -> Cursor:
    """The cursor in a block whose text begins at ``start`` and ends at ``end``."""
    before = _Elements()
    typing = _TYPING_TAG.search(text, max(start, offset - 260), offset)
    naming = _TYPING_NAME.search(text, max(start, offset - 520), offset)
    edge = min(typing.start() if typing else offset, naming.start() if naming else offset)
    before.scan(text, start, edge)
    tags = tuple(tag for tag, _ in before.stack)
    stack = tuple(label for _, label in before.stack)
    nothing = Cursor("action", "nothing", (offset, offset))
    if before.inside_raw and before.section < 0:
        return nothing
    after = _Elements()
    after.stack = list(before.stack)
    section_end = text.find("]]>", offset, end) if before.section >= 0 else -1
    after.scan(text, section_end + 3 if section_end >= 0 else offset, end, until_call_ends=bool(stack))
    present = frozenset((*before.present, *after.present))
    inputs = bool(stack) and stack[0] in ("tool_id", "inputs")
    if inputs or (not stack and _awaits_inputs(text, start, offset, end)):
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
    if before.section >= 0:
        if not path:
            return nothing
        start = min(before.section, offset)
        span = (first_char(text, start, offset), offset)
        stop = section_end if section_end >= 0 else _closing(text, path[-1] if not inputs else "", offset, end)
        return msgspec.structs.replace(
            base, expect="value", span=span, path=path, value=(start, stop), container="cdata"
        )
    if not stack and typing is None and naming is None:
        in_tag = _IN_TAG.search(text, max(start, offset - MAX_TAG_CHARS), offset)
        if in_tag is not None and in_tag["tag"] not in ("tool_id", "inputs", "input"):
            return _in_attributes(text, in_tag, offset, end)
    if naming is not None:
        return msgspec.structs.replace(
            base, expect="parameter", span=(naming.start(1), offset), bare=True, shape="inputs"
        )
    if typing is not None and not typing[1] and not typing[2] and text.startswith("/", offset):
        return nothing
    if typing is not None:
        existing = _TAG_REST.match(text, offset, end)
        if (
            existing is not None
            and not typing[1]
            and (existing[1] or text.startswith("</", existing.end()) or f"</{typing[2]}>" in text[offset:end])
        ):
            name = (typing.start(2), existing.end(1))
            expect: Expect = "parameter" if stack else "tool"
            return msgspec.structs.replace(base, expect=expect, span=name, path=path, bare=True)
        # An editor that closes brackets has put the ">" there already.
        span = (typing.start(), offset + 1 if text[offset : offset + 1] == ">" else offset)
        if typing[1] or stack[:1] == ("tool_id",):
            return msgspec.structs.replace(base, expect="close", span=span)
        awaits = bool(stack) or base.shape == "inputs"
        return msgspec.structs.replace(base, expect="parameter" if awaits else "tool", span=span, path=path)
    typed = text[before.after_token : offset]
    lead = len(typed) - len(typed.lstrip())
    span = (before.after_token + lead, offset)
    if stack and stack[0] == "tool_id":
        stop = text.find("</", offset, end)
        return msgspec.structs.replace(base, expect="tool", span=whole_value(text, span, stop) if stop >= 0 else span)
    if path:
        stop = _NEXT_TAG.search(text, offset, end)
        whole = (before.after_token, stop.start() if stop is not None else end)
        if stop is not None and text.startswith("</", stop.start()):
            span = whole_value(text, span, stop.start())
        return msgspec.structs.replace(base, expect="value", span=span, path=path, value=whole, container="text")
    if not typed.strip():
        # Between elements with nothing typed: whole elements belong here.
        expect = "parameter" if stack or base.shape == "inputs" else "tool"
        return msgspec.structs.replace(base, expect=expect, span=(offset, offset), path=path)
    return base


def _awaits_inputs(text: str, start: int, offset: int, end: int) -> bool:
    """Whether a ``<tool_id>`` before the cursor has no ``<inputs>`` yet, but for the tag that the cursor is in."""
    found = last_match(_TOOL_ID, text, start, offset)
    if found is None:
        return False
    return all(tag.start() < offset < tag.end() for tag in _INPUTS.finditer(text, found.end(), end))


def _in_attributes(text: str, tag: re.Match[str], offset: int, end: int) -> Cursor:
    """Arguments as attributes of the tool's element."""
    rest = text[offset : min(end, offset + MAX_TAG_CHARS)]
    behind = re.match(r"[^<>]*", rest)
    present = frozenset(
        found[1] for found in _ATTRIBUTE.finditer(tag["had"] + " " + (behind[0] if behind is not None else ""))
    )
    base = Cursor("action", "nothing", (offset, offset), tag["tag"], present=present, shape="tag")
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
