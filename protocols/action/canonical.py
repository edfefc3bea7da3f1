"""The canonical path of the ACTION protocol: what is written as the seeds say, in one pass of one expression.

It gives up (None) on anything unusual; the tolerant path then reads the block and owns the diagnostics. Both give the same
result for every text that this one takes (a test), so it must not repair, warn or guess. Most blocks hold one call with
plain values: a loop reads them that knows nothing else. Comments, nested elements, repeats and several calls are for
``_Canonical``.
"""

from __future__ import annotations

import re

from tamis.protocols.action.decode import INPUT_ALIASES as INPUT_LIKE
from tamis.protocols.action.decode import (
    INPUTS,
    SECTION_LIKE,
    STRONG_TOOL_ID,
    TOOL_ID,
    TOOL_ID_ALIASES,
    WRAPPERS,
    Decoded,
    control_characters,
    is_doubled,
    trim_blank,
    trim_cdata,
    trim_layout,
)
from tamis.protocols.action.decode import INPUTS_ALIASES as INPUTS_LIKE
from tamis.protocols.base import Source
from tamis.protocols.invisible import IN_TAGS
from tamis.protocols.model import (
    MAX_BLOCK_CHARS,
    MAX_DEPTH,
    MAX_NAME_CHARS,
    MAX_PARAMS,
    MAX_STEPS,
    Block,
    Call,
    Comment,
    Diag,
    Param,
    Piece,
    ReadOptions,
    Value,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

# One step: blanks, then a whole leaf, an opening tag with the text behind it, a closing tag, or the start of a comment.
_STEP = lazy(
    r"""\s*+<(?:
        (?P<name>[A-Za-z_][A-Za-z0-9_.:\-]*+)(?:[ ]name="(?P<attr>[^"<>&]++)")?>
            (?:(?P<text>[^<]*+)(?P<leaf></(?P=name)>)?)
        | (?P<self>[A-Za-z_][A-Za-z0-9_.:\-]*+)\s*+/>
        | /(?P<close>[A-Za-z_][A-Za-z0-9_.:\-]*+)>
        | (?P<comment>!--)
    )""",
    re.VERBOSE,
)
# A call with its first parameter; then, over and over, the end of one parameter with the start of the next, or the call's end.
_NAME = r"[A-Za-z_][A-Za-z0-9_.:\-]{0,255}+"
_TAG_HEAD = lazy(rf"\s*+<({_NAME})>\s*+<({_NAME})>")
_TAG_NEXT = lazy(rf"\s*+</({_NAME})>\s*+<(?:({_NAME})|/({_NAME}))>")
_INPUTS_HEAD = lazy(
    r'\s*+<tool_id>\s*+([A-Za-z0-9_][\w:.\-/@]{0,255}+)\s*+</tool_id>\s*+<inputs>\s*+<input name="([^"<>&]++)">'
)
_INPUTS_NEXT = lazy(r'\s*+</(input)>\s*+<(?:input name="([^"<>&]++)"|/(inputs))>')
_END = lazy(r"\s*+</ACTION>")
_CLOSE = lazy(r"</([A-Za-z_][A-Za-z0-9_.:\-]*+)>")
_ATTRIBUTE_NAME = lazy(rf"[^\s{IN_TAGS}\"'“”‘’`](?:[^{IN_TAGS}\"'“”‘’`]*[^\s{IN_TAGS}\"'“”‘’`])?")
_ACTION_MARK = lazy(r"<[\s/]{0,8}+(?i:action)\b")
_TOOL_ID = lazy(r"[A-Za-z0-9_][\w:.\-/@]*+")
_NO_PARAMS = ("action", INPUTS)
"""Both of six letters."""
_INPUT_HEAD = len('<input name="')
_RESERVED = STRONG_TOOL_ID | TOOL_ID_ALIASES | INPUTS_LIKE | INPUT_LIKE | WRAPPERS | {INPUTS, "action"}


class _Unusual(Exception):  # noqa: N818 - control flow of this module, no error
    """Something that only the tolerant path may judge."""


def read_canonical(source: Source, opener: Span, limit: int, options: ReadOptions) -> Block | None:
    """The block at ``opener``, or None when anything in it is unusual."""
    text = source.text
    try:
        block = _flat(source, opener, limit) or _Canonical(source, opener, limit, options).read()
    except _Unusual:
        return None
    start, end = block.span
    if end - start > MAX_BLOCK_CHARS or control_characters(text, start, end):
        return None
    # A second closing marker before the next opener may mean that a value holds the first.
    after = _ACTION_MARK.search(text, end)
    if after is not None and "/" in after.group():
        return None
    return block


def _flat(source: Source, opener: Span, limit: int) -> Block | None:
    """One call whose values are texts or CDATA sections, each name once; None for what ``_Canonical`` may still know."""
    text = source.text
    find, startswith = text.find, text.startswith
    match = _TAG_HEAD.match(text, opener[1], limit)
    tag = match is not None and match.group(1).lower() not in _RESERVED
    match = match if tag else _INPUTS_HEAD.match(text, opener[1], limit)
    if match is None:
        return None
    tool, key = match.group(1, 2)
    tool_span = match.span(1)
    following = _TAG_NEXT if tag else _INPUTS_NEXT
    ampersand = source.find("&", tool_span[1])
    params: dict[str, Param] = {}
    while True:
        if key in params or (len(key) == 6 and key.lower() in _NO_PARAMS if tag else not _is_name(key)):
            return None
        name_span = match.span(2)
        start = match.end()
        end = find("<", start, limit)
        if end < 0:
            raise _Unusual
        if startswith("/", end + 1):
            if 0 <= ampersand < start:
                ampersand = source.find("&", start)
            if 0 <= ampersand < end:
                value = _decoded(text, start, end)
            elif start == end or text[start].isspace() or text[end - 1].isspace() or text[start] in "![>":
                value = _plain(text, start, end)
            else:
                value = Value("text", (start, end), (Piece(start, end),))
        else:
            section = _section(source, start, end, limit)
            if section is None:
                return None
            value, end = section
        match = following.match(text, end, limit)
        if match is None:
            return None
        closed, then, closes_call = match.groups()
        whole = match.end(1) + 1
        if tag:
            if closed != key:
                raise _Unusual
            params[key] = Param(key, value, (name_span[0] - 1, whole), name_span, key)
        else:
            params[key] = Param(key, value, (name_span[0] - _INPUT_HEAD, whole), name_span, key, "input")
        if closes_call is not None:
            break
        key = then
    if (tag and closes_call != tool) or len(params) > MAX_PARAMS:
        raise _Unusual
    shape = "tag" if tag else "inputs"
    call = Call("action", tool, tool_span, (find("<", opener[1]), match.end()), list(params.values()), shape=shape)
    return _around(text, opener, call, limit)


def _around(text: str, opener: Span, call: Call, limit: int) -> Block | None:
    """The block that ends behind its only call; None where something else follows."""
    last = _END.match(text, call.span[1], limit)
    if last is None:
        return None
    end = last.end()
    return Block("action", (opener[0], end), opener, (end - 9, end), calls=[call])


def _section(source: Source, start: int, opened: int, limit: int) -> tuple[Value, int] | None:
    """The CDATA section that is all of a value, and where it ends; None where an element begins at ``opened``."""
    text = source.text
    if start < opened and not text[start:opened].isspace():
        raise _Unusual
    if not text.startswith("![CDATA[", opened + 1):
        return None
    close = _section_end(source, opened + 9, limit)
    if close is None:
        raise _Unusual
    start, end = trim_cdata(text, opened + 9, close)
    return Value("text", (start, end), (Piece(start, end),) if start < end else (), cdata=True), close + 3


def _plain(text: str, start: int, end: int) -> Value:
    """Element text without an entity."""
    if start < end and (text[start].isspace() or text[end - 1].isspace()):
        start, end = trim_layout(text, start, end)
    if text.startswith(SECTION_LIKE, start, end) and text.endswith("]]>", start, end):
        raise _Unusual
    if text.startswith(">", start, end) and text[start - 1] == ">" and is_doubled(text, start, end):
        raise _Unusual
    return Value("text", (start, end), (Piece(start, end),) if start < end else ())


def _decoded(text: str, start: int, end: int) -> Value:
    """Element text with entities that are all known."""
    value = _escaped(text, start, end)
    if value is None:
        raise _Unusual
    return value


def _escaped(text: str, start: int, end: int) -> Value | None:
    """Element text with entities; None when an ampersand begins none that is known."""
    start, end = trim_layout(text, start, end)
    if text.startswith(SECTION_LIKE, start, end):
        return None
    if text.startswith(">", start, end) and text[start - 1] == ">" and is_doubled(text, start, end):
        return None
    decoded = Decoded()
    decoded.text(text, start, end)
    if decoded.raw_ampersands or decoded.undefined:
        return None
    return Value("text", (start, end), tuple(decoded.pieces))


def _section_end(source: Source, start: int, limit: int) -> int | None:
    """Where the CDATA section whose text begins at ``start`` is closed; None when it may hold another section."""
    close = source.find("]]>", start)
    if close < 0 or close + 3 > limit:
        return None
    bracket = source.text.find("<", start, close)
    if bracket >= 0 and source.text.find("<![CDATA[", bracket, close) >= 0:
        return None
    return close


def _is_name(key: str) -> bool:
    return key.isidentifier() or _ATTRIBUTE_NAME.fullmatch(key) is not None


class _Canonical:
    __slots__ = ("_at", "_comments", "_limit", "_opener", "_options", "_source", "_text")

    def __init__(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> None:
        self._source = source
        self._text = source.text
        self._opener = opener
        self._limit = limit
        self._options = options
        self._at = opener[1]
        self._comments: list[Comment] = []

    def read(self) -> Block:
        match = self._step()
        name = match.group("name") or match.group("self")
        if name is None:
            raise _Unusual
        calls: list[Call] = []
        diagnostics: list[Diag] = []
        if name == TOOL_ID:
            calls.append(self._inputs_call(match))
            match = self._step()
        else:
            while name is not None:
                calls.append(self._tool(match, name))
                match = self._step()
                name = match.group("name") or match.group("self")
            if len(calls) > 1:
                second = calls[1]
                diagnostics.append(Diag("AX135", (second.span[0], second.tool_span[1]), {"n": len(calls)}))
        if match.group("close") != "ACTION" or len(calls) > MAX_STEPS:
            raise _Unusual
        end = match.end()
        return Block(
            "action",
            (self._opener[0], end),
            self._opener,
            (end - 9, end),
            calls=calls,
            diagnostics=diagnostics,
            comments=self._comments,
        )

    def _step(self) -> re.Match[str]:
        """The next tag or leaf, behind any comments."""
        while True:
            match = _STEP.match(self._text, self._at, self._limit)
            if match is None:
                raise _Unusual
            self._at = match.end()
            if match.group("comment") is None:
                return match
            start = match.end()
            end = self._text.find("-->", start, min(self._limit, start + 10_000))
            if end < 0:
                raise _Unusual
            if self._text.find("--", start, end) >= 0 or self._text.endswith("-", start, end):
                raise _Unusual
            self._at = end + 3
            self._comments.append(Comment((start - 4, end + 3), self._text[start:end].strip()))

    def _tool(self, match: re.Match[str], name: str) -> Call:
        if name.lower() in _RESERVED or len(name) > MAX_NAME_CHARS:
            raise _Unusual
        hint = self._options.tools.get(name)
        if match.group("self") is not None:
            start = match.start("self")
            return Call("action", name, match.span("self"), (start - 1, match.end()), shape="tag")
        if match.group("attr") is not None:
            raise _Unusual
        start = match.start("name")
        tool_span = match.span("name")
        if match.group("leaf") is not None or match.group("text").strip():
            if match.group("text").strip() or match.group("leaf") is None:
                raise _Unusual
            return Call("action", name, tool_span, (start - 1, match.end()), shape="tag")
        params: dict[str, Param] = {}
        while True:
            match = self._step()
            close = match.group("close")
            if close is not None:
                if close != name:
                    raise _Unusual
                end = match.end()
                break
            key = match.group("name") or match.group("self")
            if match.group("attr") is not None or (hint is not None and self._guided(match)):
                raise _Unusual
            if len(key) > MAX_NAME_CHARS or key.lower() in ("action", INPUTS):
                raise _Unusual
            outer, key_span = match.start("name") - 1, match.span("name")
            if match.group("self") is not None:
                outer, key_span = match.start("self") - 1, match.span("self")
            value = self._value(match, key, 0)
            self._add(params, Param(key, value, (outer, self._at), key_span, key), hint is not None)
        return Call("action", name, tool_span, (start - 1, end), list(params.values()), shape="tag")

    def _add(self, params: dict[str, Param], param: Param, guided: bool) -> None:
        before = params.get(param.name)
        if before is None:
            params[param.name] = param
            if len(params) > MAX_PARAMS:
                raise _Unusual
            return
        if guided:
            raise _Unusual
        before.value = _joined(before.value, param.value)
        before.span = (before.span[0], param.span[1])

    def _value(self, match: re.Match[str], name: str, depth: int) -> Value:
        """The value of the element that ``match`` opens; the pass stands behind its closing tag afterwards."""
        text = self._text
        if match.group("self") is not None:
            return Value("text", (match.end(), match.end()))
        start, end = match.span("text")
        if match.group("leaf") is not None:
            value = _escaped(text, start, end) if text.find("&", start, end) >= 0 else _plain(text, start, end)
            if value is None:
                raise _Unusual
            return value
        if text.startswith("<![CDATA[", end):
            if start < end and not text[start:end].isspace():
                raise _Unusual
            return self._cdata(end, name)
        if start < end and not text[start:end].isspace():
            raise _Unusual
        if depth > MAX_DEPTH // 2:
            raise _Unusual
        return self._structure(start, name, depth)

    def _cdata(self, at: int, name: str) -> Value:
        start = at + 9
        close = _section_end(self._source, start, self._limit)
        if close is None:
            raise _Unusual
        self._at = close + 3
        self._closing(name)
        start, end = trim_cdata(self._text, start, close)
        return Value("text", (start, end), (Piece(start, end),) if start < end else (), cdata=True)

    def _closing(self, name: str) -> None:
        at = self._at
        text = self._text
        while at < self._limit and text[at].isspace():
            at += 1
        match = _CLOSE.match(text, at, self._limit)
        if match is None or match.group(1) != name:
            raise _Unusual
        self._at = match.end()

    def _structure(self, start: int, name: str, depth: int) -> Value:
        """An element with only elements inside: a list of items, or an object (ruling 15)."""
        entries: dict[str, Value] = {}
        items: list[Value] = []
        others = False
        comments = len(self._comments)
        while True:
            match = self._step()
            close = match.group("close")
            if len(self._comments) > comments:
                # Left out of the value, with a word about it (ruling 17).
                raise _Unusual
            if close is not None:
                if close != name:
                    raise _Unusual
                end = match.start("close") - 2
                break
            key = match.group("name") or match.group("self")
            if match.group("attr") is not None or key.lower() == "action" or len(key) > MAX_NAME_CHARS:
                raise _Unusual
            value = self._value(match, key, depth + 1)
            items.append(value)
            others = others or key != "item"
            before = entries.get(key)
            entries[key] = value if before is None else _joined(before, value)
        span = trim_blank(self._text, start, end)
        if not items or (len(items) == 1 and name in entries and items[0].kind == "text" and not items[0].pieces):
            # Nothing, or nothing but an empty pair of its own tag (ruling 52).
            raise _Unusual
        if not others:
            return Value("list", span, items=items, item_list=True)
        return Value("object", span, entries=entries)

    def _inputs_call(self, match: re.Match[str]) -> Call:
        text = self._text
        outer = match.start("name") - 1
        if match.group("self") is not None or match.group("attr") is not None or match.group("leaf") is None:
            raise _Unusual
        span = trim_blank(text, *match.span("text"))
        if _TOOL_ID.fullmatch(text, *span) is None or span[1] - span[0] > MAX_NAME_CHARS:
            raise _Unusual
        tool_id = text[span[0] : span[1]]
        hint = self._options.tools.get(tool_id)
        match = self._step()
        if match.group("self") == INPUTS:
            return Call("action", tool_id, span, (outer, match.end()), shape="inputs")
        if match.group("name") != INPUTS or match.group("attr") is not None or match.group("text").strip():
            raise _Unusual
        params: dict[str, Param] = {}
        if match.group("leaf") is not None:
            return Call("action", tool_id, span, (outer, match.end()), shape="inputs")
        while True:
            match = self._step()
            close = match.group("close")
            if close is not None:
                if close != INPUTS:
                    raise _Unusual
                end = match.end()
                break
            key = match.group("attr")
            if match.group("name") != "input" or key is None or _ATTRIBUTE_NAME.fullmatch(key) is None:
                raise _Unusual
            if key in params or len(params) >= MAX_PARAMS or (hint is not None and self._guided(match)):
                raise _Unusual
            start = match.start("name") - 1
            value = self._value(match, "input", 0)
            params[key] = Param(key, value, (start, self._at), match.span("attr"), key, "input")
        return Call("action", tool_id, span, (outer, end), list(params.values()), shape="inputs")

    def _guided(self, match: re.Match[str]) -> bool:
        """True for an element with elements inside: what it is, the tool's schema says."""
        if match.group("leaf") is not None or match.group("self") is not None:
            return False
        return not self._text.startswith("<![CDATA[", match.end())


def _joined(before: Value, value: Value) -> Value:
    span = (before.span[0], value.span[1])
    if before.kind == "list" and before.repeated:
        before.items.append(value)
        before.span = span
        return before
    return Value("list", span, items=[before, value], repeated=True)
