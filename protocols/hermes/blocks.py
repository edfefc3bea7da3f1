"""One ``<tool_call>`` block: where it ends, what JSON it holds, and what had to be assumed to read it.

A call runs only when its JSON is whole and its block is closed; a missing ``</tool_call>`` behind whole JSON and one missing ``}``
before ``</tool_call>`` have one reading and are repaired (ruling 18 by analogy). Must not know the registry.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.calljson.document import settle
from tamis.protocols.calljson.forms import FoundCall, find_calls, make_call
from tamis.protocols.invisible import IN_JSON
from tamis.protocols.jsontext.spoken import COMMENT, STRING, Layer, Spoken, read_spoken
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.model import (
    MAX_BLOCK_CHARS,
    MAX_PROBLEMS,
    MAX_STEPS,
    Block,
    BlockState,
    Call,
    Diag,
    Edit,
    Fix,
    ReadOptions,
)
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

# Where a block of JSON ends: brackets are followed through strings, so that a marker inside a string is text (F4, F16).


OPEN = "<tool_call>"
CLOSE = "</tool_call>"
_NAME = r"(?i:tool[_\- ]?calls?)"
OPENS = lazy(rf"<(?:\|[ \t]*)?[ \t]*{_NAME}[ \t]*(?:\|[ \t]*)?>")
CLOSES = lazy(rf"<(?:\|[ \t]*)?[ \t]*(?:/[ \t]*{_NAME}|{_NAME}[ \t]*/|(?i:end_tool_call))[ \t]*(?:\|[ \t]*)?>")
_SCAN = lazy(
    rf"(?s:(?P<string>{STRING})|(?P<comment>{COMMENT})|(?P<open>[{{\[｛［])|(?P<close>[}}\]｝］])|(?P<stop><|[\"']))"
)
_BLANK = lazy(rf"[ \t\r\n{IN_JSON}]*+")

# A text may make every marker look through the strings of all that follows; after so many times its length it is refused.
_PATIENCE = 4


class Extent(msgspec.Struct, frozen=True):
    """How far one JSON value reaches.

    ``end`` is behind its last bracket, or None where it is never closed. ``sealed`` says that a marker stands in a string that is
    closed on its own line: then the text behind that marker belongs to the value, whatever else is wrong with it. ``refused`` says
    that the text was looked through too often already.
    """

    end: int | None
    sealed: bool = False
    refused: bool = False


def skip_blank(text: str, at: int, limit: int) -> int:
    """Behind blanks and invisible characters."""
    match = _BLANK.match(text, at, limit)
    return match.end() if match is not None else at


def next_marker(source: Source, at: int, limit: int) -> Span | None:
    """The next opening or closing marker, wherever it stands."""
    first = source.next_token(OPENS, at, limit)
    close = source.next_token(CLOSES, at, limit)
    return close if first is None or (close is not None and close < first) else first


def extent_of(source: Source, start: int, limit: int) -> Extent:
    """How far the value whose bracket stands at ``start`` reaches; linear in the text for all its blocks together."""
    text = source.text
    spent = source.memo.get("hermes.spent")
    spent = spent if isinstance(spent, int) else 0
    if spent > _PATIENCE * len(text) + 65_536:
        return Extent(None, refused=True)
    depth = 0
    sealed = False
    end: int | None = None
    at = start
    for match in _SCAN.finditer(text, start, limit):
        kind = match.lastgroup
        at = match.end()
        if kind == "string":
            first, last = match.span()
            if not sealed and text.find("<", first, last) >= 0:
                held = next_marker(source, first, last)
                sealed = held is not None and _BREAK.search(text, first, last) is None
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth == 0:
                end = at
                break
        elif kind == "stop":
            if text[match.start()] != "<":
                at = limit
                break
            marker = next_marker(source, match.start(), min(limit, match.start() + 64))
            if marker is not None and marker[0] == match.start():
                break
    else:
        at = limit
    first = next_marker(source, start, limit)
    if first is not None and at > first[1]:
        # Only what lies behind the next marker can be looked at again from there.
        source.memo["hermes.spent"] = spent + at - first[1]
    return Extent(end, sealed)


_FENCE = lazy(r"(?:```|~~~)[\w\-]*+[ \t]*+\r?\n[ \t\r\n]*+(?=[{\[])")
_NOISE = lazy(r"[\s}\]);,.`~]*+")
_OTHER_FORM = lazy(r"<(?i:function|invoke|parameter)\b")
_BREAK = lazy(r"[\r\n]")
_NEAR = 80


class _Found(msgspec.Struct):
    """What a block turned out to be."""

    end: int
    state: BlockState
    close: Span | None = None
    spoken: list[Spoken] = []
    diags: list[Diag] = []


def read_block(source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
    """The block whose opening marker stands at ``opener``; see ``CallProtocol.read_block``."""
    text = source.text
    at = skip_blank(text, opener[1], limit)
    fence = _FENCE.match(text, at, limit) if text.startswith(("```", "~~~"), at) else None
    start = at if fence is None else fence.end()
    if text[start : start + 1] in ("{", "[", "｛", "［") and start < limit:
        body = _canonical(source, start, limit) or _tolerant(source, opener, start, limit, options)
        if fence is not None:
            body.diags.append(_noise(text, *fence.span()))
        return _block(source, opener, body)
    return _without_json(source, opener, at, limit, options)


def _canonical(source: Source, start: int, limit: int) -> _Found | None:
    """One JSON value up to the canonical closing marker, or None at anything unusual."""
    close = next_marker(source, start, limit)
    if close is None or not source.text.startswith(CLOSE, close[0]):
        return None
    spoken = read_spoken(Layer(source.text, start, close[0]))
    if spoken.root is None or spoken.diags:
        return None
    return _Found(close[1], "complete", close, [spoken], [])


def _tolerant(source: Source, opener: Span, start: int, limit: int, options: ReadOptions) -> _Found:
    text = source.text
    body = _Found(start, "complete")
    at = start
    while True:
        extent = extent_of(source, at, limit)
        if extent.refused:
            body.diags.append(Diag("TC023", opener, {"n": MAX_PROBLEMS}))
            return _ended(body, limit, "rejected")
        spoken = None if extent.end is None else read_spoken(Layer(text, at, extent.end))
        if extent.end is None or spoken is None or (spoken.root is None and not extent.sealed):
            return _broken(source, opener, at, limit, options, body)
        body.spoken.append(spoken)
        if spoken.root is None:
            body.diags.append(spoken.fault or Diag("HM603", (at, extent.end), {"reason": "it cannot be read"}))
        behind = extent.end
        at = skip_blank(text, behind, limit)
        if text[at : at + 1] in (",", ";") and at < limit:
            following = skip_blank(text, at + 1, limit)
            if text[following : following + 1] == "{" and following < limit:
                fix = Fix("Remove the separator", (Edit(at, at + 1, ""),))
                body.diags.append(Diag("HM607", (at, at + 1), fix=fix, repair=True))
                at = following
        if text[at : at + 1] not in ("{", "[") or at >= limit:
            return _closed(source, opener, behind, limit, options, body)
        if len(body.spoken) > MAX_STEPS:
            body.diags.append(Diag("TC022", opener, {"limit": MAX_STEPS, "what": "calls"}))
            return _ended(body, behind, "rejected")


def _closed(source: Source, opener: Span, behind: int, limit: int, options: ReadOptions, body: _Found) -> _Found:
    """Behind whole JSON: the closing marker, or what stands in its place."""
    text = source.text
    at = skip_blank(text, behind, limit)
    marker = next_marker(source, behind, limit)
    if marker is not None and CLOSES.fullmatch(text, *marker):
        if marker[0] > at:
            body.diags.append(_between(text, at, marker[0]))
        body.close = marker
        return _ended(body, marker[1], "complete")
    if marker is not None and marker[0] == at:
        following = skip_blank(text, marker[1], limit)
        if following < limit and text[following] not in "{[`~":
            fix = Fix(f"Write {CLOSE}", (Edit(*marker, CLOSE),))
            args: dict[str, str | int] = {"raw": text[slice(*marker)], "canonical": CLOSE}
            body.diags.append(Diag("TC004", marker, args, fix=fix, repair=True))
            body.close = marker
            return _ended(body, marker[1], "complete")
        if following >= limit and not options.complete:
            marker = None
    args = {"close": CLOSE, "where": "the end of its JSON"}
    if marker is None and not options.complete:
        # What follows could still be more of the block (ruling 1).
        body.diags.append(Diag("TC002", opener, args, "error"))
        return _ended(body, behind if at < limit else limit, "truncated")
    if marker is None and at < limit == len(text) and text[at] == "<" and _begins_marker(text[at:limit].rstrip()):
        # The text ends inside a tag (ruling 18).
        body.diags.append(Diag("TC001", opener, {"protocol": "HERMES", "construct": "its closing marker"}))
        return _ended(body, limit, "truncated")
    if at < limit and (marker is None or marker[0] != at) and _BREAK.search(text, behind, at) is None:
        # A sentence that goes on behind the JSON speaks about a call.
        body.diags.append(Diag("TC002", opener, args, "error"))
        return _ended(body, behind, "rejected")
    fix = Fix(f"Insert {CLOSE}", (Edit(behind, behind, CLOSE),))
    body.diags.append(Diag("TC002", opener, args, fix=fix, repair=True))
    return _ended(body, behind, "complete")


def _begins_marker(rest: str) -> bool:
    return len(rest) < len(CLOSE) and (CLOSE.startswith(rest) or OPEN.startswith(rest))


def _broken(source: Source, opener: Span, at: int, limit: int, options: ReadOptions, body: _Found) -> _Found:
    """JSON that is never closed, or that no repair makes whole: the block ends at the next marker."""
    text = source.text
    marker = next_marker(source, at, limit)
    end = limit if marker is None else marker[0]
    while end > at and text[end - 1] in " \t\r\n":
        end -= 1
    layer = Layer(text, at, end)
    spoken = read_spoken(layer)
    closes = marker is not None and CLOSES.fullmatch(text, *marker) is not None
    if spoken.root is not None:
        # Several values in which only the scan went astray (a lone quote between them).
        body.diags.append(Diag("HM603", (at, end), {"reason": "where the JSON ends is unclear"}))
    elif closes and lacks_root_bracket(spoken):
        mended = read_spoken(layer, closed="}")
        if mended.root is not None:
            fix = Fix("Insert '}'", (Edit(end, end, "}"),))
            body.diags.append(Diag("HM617", (end - 1, end), {"bracket": "}"}, fix=fix, repair=True))
            body.spoken.append(mended)
            body.close = marker
            return _ended(body, marker[1] if marker is not None else end, "complete")
    elif marker is None and (spoken.cut or not options.complete):
        args: dict[str, str | int] = {"protocol": "HERMES", "construct": "the JSON of a call"}
        body.diags.append(Diag("TC001", opener, args))
        if spoken.cut:
            body.spoken.append(spoken)
        return _ended(body, limit, "truncated")
    if not body.diags or spoken.fault is not None:
        body.diags.append(spoken.fault or Diag("HM603", (at, end), {"reason": "it cannot be read"}))
    if closes:
        body.close = marker
    return _ended(body, marker[1] if closes and marker is not None else end, "rejected")


def lacks_root_bracket(spoken: Spoken) -> bool:
    """Whether nothing is missing but the last ``}``, and it can be missing nowhere else.

    Were it missing further in, members of an inner object would belong to an outer one; with an inner object of several members
    both can be meant.
    """
    root = spoken.tree.root
    faults = [diag for diag in spoken.tree.diagnostics if diag.code not in ("MF524", "MF527")]
    if root is None or root.kind != "object" or root.closed or not root.members:
        return False
    if [diag.code for diag in faults] != ["MF521"] or not str(faults[0].args.get("open", "")).startswith("'"):
        return False
    last = root.members[-1].value
    if last is None or spoken.clean.rstrip()[-1:] == "," or any(not m.value.closed for m in root.members if m.value):
        return False
    inner = [node for member in root.members if member.value is not None for node in (member.value,)]
    return not any(_has_wide_object(node) for node in inner)


def _has_wide_object(node: JsonNode) -> bool:
    """Whether an object below ``node``, directly in another object, has more than one member."""
    stack = [node]
    while stack:
        here = stack.pop()
        parts = [member.value for member in here.members if member.value is not None]
        if any(part.kind == "object" and len(part.members) > 1 for part in parts):
            return True
        stack += [part for part in (*parts, *here.items) if part.kind in ("object", "array")]
    return False


def _ended(body: _Found, end: int, state: BlockState) -> _Found:
    body.end = end
    body.state = state
    return body


def _noise(text: str, start: int, end: int) -> Diag:
    excerpt = text[start:end].strip()[:40]
    fix = Fix("Remove the text", (Edit(start, end, ""),))
    return Diag("TC011", (start, end), {"excerpt": repr(excerpt)}, fix=fix, repair=True)


def _between(text: str, start: int, end: int) -> Diag:
    """Text between whole JSON and the closing marker: noise, unless it could be more of the call."""
    while end > start and text[end - 1] in " \t\r\n":
        end -= 1
    noise = _NOISE.match(text, start, end)
    if (noise is not None and noise.end() == end) or not any(char in "{[\"':=<" for char in text[start:end]):
        return _noise(text, start, end)
    return Diag("HM603", (start, end), {"reason": "there is more text behind the end of the JSON"})


# A marker with no JSON behind it


def _without_json(source: Source, opener: Span, at: int, limit: int, options: ReadOptions) -> Block:
    text = source.text
    alone = _own_line(text, opener)
    marker = next_marker(source, opener[1], limit)
    if at >= limit:
        if not options.complete or alone:
            args: dict[str, str | int] = {"protocol": "HERMES", "construct": "the block"}
            return _block(source, opener, _Found(limit, "truncated", diags=[Diag("TC001", opener, args)]))
    elif marker is not None and CLOSES.fullmatch(text, *marker):
        if marker[0] == at and alone:
            return _block(source, opener, _Found(marker[1], "rejected", marker, diags=[Diag("TC012", opener)]))
        other = _OTHER_FORM.match(text, at)
        if marker[0] > at and (alone or other is not None):
            reason = "there is no JSON object behind the marker"
            if other is not None:
                reason = f"it is written in tags ({text[at : at + 20]}…), not in JSON"
            fault = Diag("HM602", (at, min(at + 40, marker[0])), {"reason": reason})
            return _block(source, opener, _Found(marker[1], "rejected", marker, diags=[fault]))
    return Block("hermes", opener, opener, None, "mention")


def _own_line(text: str, span: Span) -> bool:
    before = text[max(0, span[0] - _NEAR) : span[0]].rsplit("\n", 1)[-1]
    after = text[span[1] : span[1] + _NEAR].split("\n", 1)[0]
    return not before.strip() and (not after.strip() or CLOSES.match(after.lstrip()) is not None)


# The finished block


def _block(source: Source, opener: Span, body: _Found) -> Block:
    text = source.text
    diags = body.diags
    for span, right in ((opener, OPEN), (body.close, CLOSE)):
        if span is not None and text[slice(*span)] != right and (right == OPEN or CLOSES.fullmatch(text, *span)):
            fix = Fix(f"Write {right}", (Edit(*span, right),))
            diags.append(Diag("TC004", span, {"raw": text[slice(*span)], "canonical": right}, fix=fix, repair=True))
    calls: list[Call] = []
    for spoken in body.spoken:
        diags.extend(spoken.diags)
        root = spoken.root if spoken.root is not None else spoken.tree.root if body.state == "truncated" else None
        if root is not None:
            _calls(root, spoken, calls, diags)
    if body.end - opener[0] > MAX_BLOCK_CHARS:
        diags.append(Diag("TC021", opener, {"limit": MAX_BLOCK_CHARS}))
    if len(calls) > MAX_STEPS:
        diags.append(Diag("TC022", opener, {"limit": MAX_STEPS, "what": "calls"}))
        del calls[MAX_STEPS:]
    if sum(diag.repair for diag in diags) > MAX_PROBLEMS:
        diags.append(Diag("TC023", opener, {"n": MAX_PROBLEMS}))
        del diags[MAX_PROBLEMS:-1]
    if len(calls) > 1:
        diags.append(Diag("HM618", opener, {"n": len(calls)}))
    return settle(Block("hermes", (opener[0], max(body.end, opener[1])), opener, body.close, body.state, calls, diags))


def _calls(root: JsonNode, spoken: Spoken, calls: list[Call], diags: list[Diag]) -> None:
    found_calls = find_calls(root, bare=True)
    if found_calls is None:
        kinds = {"object": "a tool's definition, not a call", "array": "a list that holds more than calls"}
        reason = f"it is {kinds.get(root.kind, 'no JSON object')}"
        diags.append(Diag("HM602", spoken.span(root.start, root.end), {"reason": reason}))
        return
    for found_call in found_calls[: MAX_STEPS + 1]:
        if found_call.form != "named":
            diags.append(_foreign(found_call, spoken))
        call = make_call(found_call, spoken, "hermes")
        diags.extend(call.diags)
        if call.call is not None:
            calls.append(call.call)


_SAID = {
    "toolName": '{"toolName", "arguments"}',
    "openai": "OpenAI's form",
    "responses": "OpenAI's form",
    "anthropic": "Anthropic's form",
    "mcp": "MCP's form",
}


def _foreign(call: FoundCall, spoken: Spoken) -> Diag:
    """A call in another JSON form, which the fix rewrites as a whole."""
    span = spoken.span(call.node.start, call.node.end)
    args: dict[str, str | int] = {"raw": _SAID[call.form], "canonical": '{"name", "arguments"}'}
    name = call.name.value if call.name is not None else None
    fix = None
    if name is not None:
        written = "{}"
        value = call.args.value if call.args is not None else None
        if value is not None and value.kind == "object":
            written = spoken.clean[value.start : value.end]
        elif value is not None and isinstance(value.value, str) and value.value.strip():
            inner = read_spoken(Layer(value.value, 0, len(value.value)))
            written = inner.clean if inner.root is not None else ""
        if written:
            new = f'{{"name": {spoken.clean[name.start : name.end]}, "arguments": {written}}}'
            fix = Fix("Write it as a Hermes call", (Edit(*span, new),))
    return Diag("HM604", span, args, fix=fix, repair=True)
