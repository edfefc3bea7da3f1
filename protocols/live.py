"""Edits that make one block live: it is taken out of the context that sets it aside (rulings 44 to 47).

What stands beside it in the context stays there: a comment or fence with other text is ended before the block and begun again
behind it. Each edit is proven: the text is read again, and an edit counts only if the block then runs, says the same, and no
other call became live or was lost. No edit is offered for echoes, turns of others and JSON documents: what they hold is not the
model's own text, and taking a block out of it would say that the model had written it. A block that would be no good call either
has none. Must not know files or LSP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from tamis.protocols.base import Source
from tamis.protocols.changes import line_edits
from tamis.protocols.context import CONTEXTS, Fence
from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.marks import marks_of
from tamis.protocols.model import Block, Document, Edit, Fix, Json
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span

MAX_LAYERS = 6
"""Contexts around one block that are taken away one after the other."""
MAX_CHARS = 200_000
"""The largest text that is read again for an edit."""

_BLANK = " \t\r\n\u3000\ufeff"
_Z = f"[{IGNORABLE}]*+"
_COMMENT = lazy(rf"[<＜]{_Z}[!！]{_Z}[-－]{_Z}[-－]")
_TICKS = lazy(r"`++")
_BLANK_LINE = lazy(r"(?>\r\n|\n|\r)[ \t]*+(?=[\r\n])")
_FENCE_LINE = lazy(
    r"(?m:^)(?P<lead>[ \t\u3000\ufeff]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++){0,8}+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^\r\n]*+)"
)
_LISTED = lazy(r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++){1,4}+(?=[>＞])")
"""The marks of a list before those of a quote; they stay."""
_SIGN = lazy(r"(?:[ \t]*+[>＞])++[ \t]?|[ \t]*+(?://++|/\*++)[ \t]?")
_PARTS = lazy(
    r"(?P<number>[ \t]*+\d++)|(?P<level>\b(?i:trace|debug|info(?:rmation)?|notice|warn(?:ing)?|error|fatal|critical)\b[ \t]*+)"
)
_ROW = lazy(r"[ \t]*+[|｜]")
_EXAMPLE = lazy(rf"(?i)(request)[ \t_\-{IGNORABLE}]*+exp")
"""What makes a marker of VCP that of an example."""
_MAX_MARKER = 80
_NEXT_CHANNEL = lazy(r"(?:<\|\w{1,40}\|>\w{0,40}){0,4}?<\|message\|>")
_REASONING_OPENER = lazy(r"[<＜]\s*+(?P<tag>[^\s<>＜＞/|]{1,64}+)|(?P<bracket>[\[◁])(?P<name>\w{1,64}+)(?P<end>[\]▷])")
_PAIRS = {
    '"': '"', "＂": "＂", "'": "'", "`": "`", "‘": "’", "‹": "›", "»": "«", "「": "」", "“": "”", "«": "»", "„": "“”", "『": "』",
}  # fmt: skip


_TITLES = {"reasoning": "Move the block behind the reasoning", "spelling": "Write the markers of a request"}


class _Rewritten(msgspec.Struct, frozen=True):
    """A text in which a block was taken out of one context, and where the block begins there.

    ``same`` is false where the block's own text changed with it.
    """

    text: str
    at: int
    same: bool = True


class _Place(msgspec.Struct, frozen=True):
    """A block in its text. In ``plain`` every block is dots, so that no mark in a value is seen."""

    text: str
    plain: str
    span: Span
    eol: str
    reasoning: list[Span]


def made_live(document: Document, block: Block, read: Callable[[str], Document]) -> Fix | None:
    """The fix that makes a block run that is set aside, for a person to choose; None where there is no such edit.

    ``read`` reads a text as the document was read.
    """
    if not block.aside or block.context not in _OUT_OF or len(document.text) > MAX_CHARS:
        return None
    title = _TITLES.get(block.context) or f"Take the block out of {CONTEXTS[block.context]}"
    others = _others(document, block)
    here = document
    for _ in range(MAX_LAYERS):
        layer: tuple[Document, Block] | None = None
        for rewritten in _rewritings(here, block):
            again = read(rewritten.text)
            moved = _block_at(again, rewritten.at, block.protocol)
            if moved is None or (rewritten.same and _said(again, moved) != _said(here, block)):
                continue
            if _is_live(moved) and _others(again, moved) == others:
                return Fix(title, tuple(line_edits(document.text, rewritten.text)), "unsafe")
            if moved.aside and layer is None:
                layer = again, moved
        if layer is None:
            return None
        here, block = layer
    return None


def _is_live(block: Block) -> bool:
    return not block.aside and bool(block.calls) and all(call.executable for call in block.calls)


def _said(document: Document, block: Block) -> list[tuple[str, dict[str, Json]]]:
    return [(call.tool_id, call.args(document.text)) for call in block.calls]


def _others(document: Document, block: Block) -> list[tuple[str, bool]]:
    """The calls of all other blocks, and whether they run."""
    return [(call.tool_id, call.executable) for other in document.blocks if other is not block for call in other.calls]


def _block_at(document: Document, at: int, protocol: str) -> Block | None:
    return next((block for block in document.blocks if block.span[0] == at and block.protocol == protocol), None)


def _rewritings(document: Document, block: Block) -> Iterator[_Rewritten]:
    """Texts in which the innermost mark of the block's context is gone, the least change first."""
    text = document.text
    parts: list[str] = []
    at = 0
    for start, end in (other.span for other in document.blocks):
        parts += [text[at:start], "." * (end - start)]
        at = max(at, end)
    place = _Place(
        text, "".join([*parts, text[at:]]), block.span, "\r\n" if "\r\n" in text else "\n", document.reasoning
    )
    yield from _OUT_OF.get(block.context, _nowhere)(place)


def _nowhere(place: _Place) -> Iterator[_Rewritten]:
    del place
    yield from ()


# Contexts with an opening and a closing mark


def _alone(text: str, span: Span) -> Span:
    """A mark with the line that it has for itself."""
    start, end = span
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    rest = re.compile(r"[ \t]*+(\r\n|\n|\r)").match(text, end)
    return (line, rest.end()) if rest is not None and not text[line:start].strip(_BLANK) else span


def _taken_out(place: _Place, opener: Span, closer: Span | None, close: str) -> _Rewritten:
    """The marks around a block removed, or ended before and begun again behind it where other text stands in them."""
    text, plain, (start, end) = place.text, place.plain, place.span
    again = text[slice(*opener)]
    if plain[opener[1] : start].strip(_BLANK):
        before = text[:start] + close
    else:
        first, last = _alone(text, opener)
        before = text[:first] + text[last:start]
    if plain[end : closer[0] if closer else len(text)].strip(_BLANK):
        # What is not closed counts only where it begins a line.
        after = (again if closer else place.eol + again) + text[end:]
    elif closer is not None:
        first, last = _alone(text, closer)
        after = text[end:first] + text[last:]
    else:
        after = text[end:]
    return _Rewritten(before + text[start:end] + after, len(before))


def _comment(place: _Place) -> Iterator[_Rewritten]:
    plain, (start, end) = place.plain, place.span
    opener = _COMMENT.search(plain, plain.rfind("-->", 0, start) + 1, start)
    if opener is not None:
        close = plain.find("-->", end)
        yield _taken_out(place, opener.span(), (close, close + 3) if close >= 0 else None, "-->")


def _element(place: _Place) -> Iterator[_Rewritten]:
    """Out of the innermost element that quotes."""
    start, end = place.span
    marks = marks_of()
    opened: list[tuple[str, Span]] = []
    depth = 0
    closer: Span | None = None
    for match in marks.angle.finditer(place.plain):
        mark = marks.meaning(match)
        if mark is None or mark.family != "element":
            continue
        if match.end() <= start:
            names = [name for name, _ in opened]
            if not mark.closes:
                opened.append((mark.name, match.span()))
            elif mark.name in names:
                del opened[len(names) - 1 - names[::-1].index(mark.name) :]
        elif opened and match.start() >= end and mark.name == opened[-1][0]:
            depth += -1 if mark.closes else 1
            if depth < 0:
                closer = match.span()
                break
    if opened:
        name, opener = opened[-1]
        yield _taken_out(place, opener, closer, f"</{name}>")


def _code(place: _Place) -> Iterator[_Rewritten]:
    # A fence in a block quote reads as code over several lines.
    yield from _unprefixed(place)
    plain, (start, end) = place.plain, place.span
    at = 0
    runs = [run.span() for run in _TICKS.finditer(plain)]
    for i, (first, last) in enumerate(runs):
        if first >= start:
            return
        if first < at:
            continue
        closer = next((run for run in runs[i + 1 :] if run[1] - run[0] == last - first), None)
        if closer is None or _BLANK_LINE.search(plain, last, closer[0]) is not None:
            continue
        if closer[0] >= end:
            yield _taken_out(place, (first, last), closer, plain[first:last])
            return
        at = closer[1]


def _fence(place: _Place) -> Iterator[_Rewritten]:
    text, plain, eol, (start, end) = place.text, place.plain, place.eol, place.span
    opener: re.Match[str] | None = None
    closer: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(plain):
        mark, info = line["mark"], line["info"]
        if opener is None:
            if line.start() >= start:
                return
            opener = line if mark[0] == "~" or "`" not in info else None
        elif mark[0] == opener["mark"][0] and len(mark) >= len(opener["mark"]) and not info.strip():
            if line.start() >= end:
                closer = line
                break
            opener = None
    if opener is None:
        return
    if plain[opener.end() : start].strip(_BLANK):
        before = text[:start].rstrip(" \t")
        before += ("" if before.endswith(("\n", "\r")) else eol) + opener["mark"] + eol
    else:
        before = text[: opener.start("mark")]
    stop = closer.start() if closer is not None else len(text)
    if plain[end:stop].strip(_BLANK):
        rest = text[end:]
        after = eol + opener["mark"] + opener["info"] + ("" if rest.startswith(("\n", "\r")) else eol) + rest
    else:
        after = text[closer.end() :] if closer is not None else text[end:]
    yield _Rewritten(before + text[start:end] + after, len(before))


def _marks(place: _Place) -> Iterator[_Rewritten]:
    """Without the quotation marks directly around it, or in a paragraph of its own."""
    text, (start, end), eol = place.text, place.span, place.eol
    before, after = text[:start].rstrip(), text[end:].lstrip()
    closers = _PAIRS.get(before[-1:], "")
    if closers and after[:1] and after[0] in closers:
        head = text[: len(before) - 1] + text[len(before) : start]
        behind = len(text) - len(after)
        yield _Rewritten(head + text[start:end] + text[end:behind] + after[1:], len(head))
    head = f"{before}{eol}{eol}"
    yield _Rewritten(f"{head}{text[start:end]}{eol}{eol}{after}", len(head))


# Lines with a prefix


def _prefix(place: _Place) -> Iterator[_Rewritten]:
    """The block's lines without what every line of it begins with."""
    text, (start, end) = place.text, place.span
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    lead = text[line:start]
    if not lead:
        return
    listed = _LISTED.match(lead)
    keep = listed.end() if listed is not None else 0
    sign = _SIGN.match(lead, keep)
    # Behind a mark that quotes alone, words on the line stay; any other prefix is all that every line begins with.
    stop = sign.end() if sign is not None and lead[sign.end() :].strip() else len(lead)
    pattern = _pattern(lead[keep:stop])
    kept = lead[:keep] + lead[stop:]
    bodies: list[str] = [kept]
    at = start
    lines = text[start:].splitlines(keepends=True)
    for i, whole in enumerate(lines):
        if i and (match := pattern.match(whole)) is not None:
            whole = whole[match.end() :]
        elif i and whole.strip() and at >= end:
            break
        bodies.append(whole)
        at += len(lines[i])
        if at >= end:
            break
    yield _Rewritten(text[:line] + "".join(bodies) + text[at:], line + len(kept), same=False)


def _pattern(lead: str) -> re.Pattern[str]:
    """What a line begins with as the first one does: with other numbers and levels of a log, and at most its blanks."""
    depth = lead.count(">") + lead.count("＞")
    if depth and not lead.strip(" \t>＞"):
        return re.compile(rf"(?:[ \t]*+[>＞]){{1,{depth}}}[ \t]?")
    body = lead.strip(" \t")
    parts: list[str] = []
    at = 0
    for match in _PARTS.finditer(body):
        parts += [re.escape(body[at : match.start()]), r"[ \t]*+\d++" if match["number"] else r"\w++[ \t]*?"]
        at = match.end()
    parts.append(re.escape(body[at:]))
    blanks = len(lead) - len(lead.rstrip(" \t"))
    return re.compile(rf"[ \t]*+{''.join(parts)}[ \t]{{0,{blanks}}}")


def _unprefixed(place: _Place) -> Iterator[_Rewritten]:
    """All lines around the block without the mark that quotes them."""
    text, (start, end) = place.text, place.span
    before = text[:start].splitlines(keepends=True)
    sign = _SIGN.match(before[-1]) if before and not before[-1].endswith(("\n", "\r")) else None
    if sign is None:
        return
    pattern = _pattern(sign.group())
    first = len(before) - 1
    while first > 0 and pattern.match(before[first - 1]) is not None:
        first -= 1
    head = "".join(before[:first]) + "".join(pattern.sub("", line, count=1) for line in before[first:])
    lines = text[start:].splitlines(keepends=True)
    last = 1
    while last < len(lines) and pattern.match(lines[last]) is not None:
        last += 1
    if sum(map(len, lines[:last])) >= end - start:
        tail = lines[0] + "".join(pattern.sub("", line, count=1) for line in lines[1:last]) + "".join(lines[last:])
        yield _Rewritten(head + tail, len(head), same=False)


def _table(place: _Place) -> Iterator[_Rewritten]:
    """Lines that only look like rows lose their first sign; a block in a cell is moved behind the table."""
    text, (start, end), eol = place.text, place.span, place.eol
    yield from _prefix(place) if "\n" in text[start:end] or "\r" in text[start:end] else ()
    stop = end
    for whole in text[end:].splitlines(keepends=True):
        if stop > end and _ROW.match(whole) is None:
            break
        stop += len(whole)
    head = text[:start] + text[end:stop].rstrip("\r\n") + eol + eol
    yield _Rewritten(f"{head}{text[start:end]}{eol}{text[stop:]}", len(head))


def _spelling(place: _Place) -> Iterator[_Rewritten]:
    """The block with the markers of a request instead of those of an example."""
    text, (start, end) = place.text, place.span
    block = text[start:end]
    opener = _EXAMPLE.search(block, 0, _MAX_MARKER)
    if opener is None:
        return
    closer = _EXAMPLE.search(block, max(opener.end(), block.rfind("\n")))
    parts = [block[: opener.end(1)], block[opener.end() :]]
    if closer is not None:
        parts[1:] = [block[opener.end() : closer.end(1)], block[closer.end() :]]
    yield _Rewritten(text[:start] + "".join(parts) + text[end:], start)


# Reasoning


def _reasoning(place: _Place) -> Iterator[_Rewritten]:
    """The block behind the end of the reasoning in which it stands; where that is open, it is ended."""
    text, (start, end), eol = place.text, place.span, place.eol
    thought = next((span for span in place.reasoning if span[0] <= start < span[1]), None)
    if thought is None:
        return
    channel = _NEXT_CHANNEL.match(text, thought[1])
    thought = (thought[0], channel.end() if channel is not None else thought[1])
    first, last = _alone(text, place.span)
    for ending in ("", _ending(text[thought[0] : thought[0] + 80])):
        if ending and thought[1] < len(text):
            return
        head = text[:first] + text[last : thought[1]]
        head += (eol if ending and not head.endswith("\n") else "") + ending
        head = head.rstrip(" \t") + eol + eol
        rest = text[max(last, thought[1]) :].lstrip(" \t")
        yield _Rewritten(head + text[start:end] + ("" if rest[:1] in ("", "\n", "\r") else eol) + rest, len(head))


def _ending(opener: str) -> str:
    """The closer of reasoning that begins so."""
    if opener.startswith("<|"):
        return "<|end|>"
    match = _REASONING_OPENER.match(opener)
    if match is None:
        return ""
    return f"</{match['tag']}>" if match["tag"] else f"{match['bracket']}/{match['name']}{match['end']}"


_OUT_OF: dict[str, Callable[[_Place], Iterator[_Rewritten]]] = {
    "comment": _comment,
    "element": _element,
    "code": _code,
    "fence": _fence,
    "marks": _marks,
    "quote": _prefix,
    "prefix": _prefix,
    "table": _table,
    "reasoning": _reasoning,
    "spelling": _spelling,
}


# Edits that take a block out of what hides it: a code fence around it (TC008), HTML escapes (TC010).


_ESCAPED_CLOSE = lazy(r"&lt;(?:/ACTION|\|\[END_TOOL\]\||&lt;&lt;\[END_TOOL_REQUEST\]&gt;&gt;)&gt;")
_MAX_ESCAPED = 20_000
_MAX_FENCE_LINE = 300
_SPACES = " \t\r\n"
_QUOTES = frozenset('`"“”„«»「」『』')


def unwrapped(text: str, fence: Fence, block: Block) -> Fix | None:
    """The removal of both lines of a fence that holds one block and nothing else."""
    if len(fence.blocks) != 1 or not fence.closed or fence.other:
        return None
    start, end = block.span
    above = text[max(0, start - _MAX_FENCE_LINE) : start]
    top = above.rstrip(_SPACES)
    line = max(top.rfind("\n"), top.rfind("\r")) + 1
    if not {"\n", "\r"} & set(above[len(top) :]):
        # On the opener's own line the block is its info string: without the marks what is around them may read otherwise.
        return None
    paragraph = above[:line].replace("\r\n", "\n").replace("\r", "\n").rpartition("\n\n")[2]
    if not _QUOTES.isdisjoint(paragraph):
        # Without the fence the block would be a part of this paragraph, behind what it opens.
        return None
    below = text[end : end + _MAX_FENCE_LINE]
    close = len(below) - len(below.lstrip(_SPACES))
    if not top[line:].lstrip(" \t\ufeff\u3000").startswith(fence.mark) or not below.startswith(fence.mark, close):
        return None
    bare = top[line:].lstrip("\ufeff")
    first = start - len(above) + line + len(top[line:]) - len(bare)
    rest = below[close + len(fence.mark) :]
    left = rest.lstrip(fence.mark[0])
    if left.lstrip(" \t")[:1] not in ("", "\r", "\n"):
        # No closing line of a fence: its text would stand behind the block.
        return None
    stop = end + close + len(fence.mark) + len(rest) - len(left)
    return Fix("Remove the code fence", (Edit(first, start, ""), Edit(end, stop, "")))


def unescaped(source: Source, start: int, end: int) -> Fix | None:
    """The block whose escaped opening marker stands at ``start``, with its escapes decoded once; for a person to decide."""
    text = source.text
    close = source.next_token(_ESCAPED_CLOSE, end, len(text))
    done = source.memo.get("unescaped", 0)
    # Each stretch is decoded once, however many escaped openers stand in it.
    if close is None or close[1] - start > _MAX_ESCAPED or not isinstance(done, int) or start < done:
        return None
    source.memo["unescaped"] = close[1]
    from html import unescape

    return Fix("Decode the HTML escapes", (Edit(start, close[1], unescape(text[start : close[1]])),), "unsafe")
