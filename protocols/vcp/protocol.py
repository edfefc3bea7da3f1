"""VCP (seed 001 §4 and §7, rulings 27 to 30): the markers and marks, and the two ways of reading a block.

The strict walk takes canonical text and gives up at anything unusual; the tolerant one (``pairs/lexer.py``) owns the
findings. Both give the same pairs, from which ``vcp/calls.py`` makes the calls. Must not know tools beyond ``ReadOptions``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tamis.protocols.base import Markers, PlainCall, PromptTool, Source, Style, WriteOptions, Written
from tamis.protocols.model import MAX_NAME_CHARS, MAX_PARAMS, Block, Call, Diag, ReadOptions
from tamis.protocols.pairs.doubt import runs_on
from tamis.protocols.pairs.lexer import lex
from tamis.protocols.pairs.walk import (
    CONTROL,
    Codes,
    Dialect,
    Family,
    Findings,
    Lexed,
    Pair,
    block_of,
    doubled,
    empty_block,
    in_prose,
    mention,
    note_controls,
    note_marker,
    note_unterminated,
    too_many,
)
from tamis.protocols.patterns import lazy, signed
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import INVISIBLE, visible
from tamis.protocols.vcp.calls import make_calls

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult

OPEN = "<<<[TOOL_REQUEST]>>>"
CLOSE = "<<<[END_TOOL_REQUEST]>>>"
HEAD = "「始」"
TAIL = "「末」"

_Z = rf"[{INVISIBLE}]*+"
_S = rf"[ \t{INVISIBLE}]*+"
_GAP = rf"[ \t_\-{INVISIBLE}]*+"
# Patterns that are looked for in whole texts begin with one set of characters, which the regex engine skips to.
_SIGNS = "<《＜"
_LEFT = rf"(?<![{_SIGNS}][{_SIGNS}])[{_SIGNS}]{{1,3}}+(?![{_SIGNS}]){_S}[\[［【]?{_S}"
_RIGHT = rf"{_S}[\]］】]?{_S}[>》＞]{{2,4}}+(?![>》＞])"


def _letters(word: str) -> str:
    return _Z.join(word)


_TOOL_REQUEST = f"{_letters('TOOL')}{_GAP}{_letters('REQUEST')}"
# The variants with a suffix are an extension of upstream; a block is closed by the marker with the same suffix.
_SUFFIXES = {"": "", "EXP": f"{_GAP}EXP", "ESCAPE": f"{_GAP}ESCAPE"}
_OPENS = signed(_SIGNS, _SIGNS, f"{_LEFT}{_TOOL_REQUEST}(?:{_GAP}(?:EXP|ESCAPE))?{_RIGHT}")

_L = r"[「｢『{｛【［\[〔《〈]"
_R = r"[」｣』}｝】］\]〕》〉]"
_KIND = r"(?:[ _\-]?(?:ESCAPE|exp))?"
_STARTS = (
    rf"(?i:[「｢『{{｛【［\[〔《〈始(（<＜](?:(?<={_L}){_S}(?:始|开始|開始|start|begin){_KIND}{_S}{_R}"
    rf"|(?<=始){_R}|(?<=[(（<＜])始[)）>＞]))"
)
# Half a mark, unless the character goes on as a word (「始终…).
_HALF = "「始(?![终終末于於])"
_ENDS = (
    rf"(?i:[「｢『{{｛【［\[〔《〈(（<＜](?:(?<={_L}){_S}(?:末|未|终|終|结束|結束|end|stop|/始){_KIND}{_S}{_R}"
    r"|(?<=[(（<＜])[末未][)）>＞]))"
)
_ANY_HEAD = lazy(f"{_STARTS[:-2]}|(?<=「)始(?![终終末于於])))")
_ANY_TAIL = lazy(_ENDS)
PLAIN = Family("plain", HEAD, TAIL, lazy(TAIL), lazy("「始(?:ESCAPE|exp)?」"))
ESCAPE = Family("escape", "「始ESCAPE」", "「末ESCAPE」", lazy("(?i:「末ESCAPE」)"), lazy("(?i:「始ESCAPE」)"))
EXP = Family("exp", "「始exp」", "「末exp」", lazy("(?i:「末exp」)"), lazy("(?i:「始exp」)"))
_LINE_KEY = r"[ \t]*+(?:[-*+•][ \t]++)?[*`\"']*+[\w\-]{1,64}+[*`\"']*+[ \t]*+[:：=︰﹕∶](?!//)"


def _family_of(head: str) -> str:
    if head == HEAD:
        return "plain"
    if _ANY_TAIL.fullmatch(head):
        return "swapped"
    lowered = head.casefold()
    if "escape" in lowered:
        return "escape"
    return "exp" if "exp" in lowered else "plain" if head.startswith(HEAD) else "odd"


def _dialect(suffix: str) -> Dialect:
    ending = _SUFFIXES[suffix]
    tag = f"_{suffix}" if suffix else ""
    return Dialect(
        protocol="vcp",
        opens=_OPENS,
        closes=signed(_SIGNS, _SIGNS, f"{_LEFT}{_letters('END')}{_GAP}{_TOOL_REQUEST}{ending}{_RIGHT}"),
        foreign_closes=None,
        foreign_opens=None,
        open_text=f"<<<[TOOL_REQUEST{tag}]>>>",
        close_text=f"<<<[END_TOOL_REQUEST{tag}]>>>",
        case_matters=True,
        key_text=lazy(r"[^\r\n:：=→︰﹕∶<>「」,，;；、|]*+"),
        separator=lazy(r"=>|::|[:：=→︰﹕∶]"),
        head=lazy(
            rf"(?i:「始(?:ESCAPE|exp)?」)(?:[ \t]*+「始」)*+|(?P<odd>{_STARTS})(?:[ \t]*+(?:(?P=odd)|「始」))*+|{_ENDS}|{_HALF}"
        ),
        strong_head=lazy("「始(?:ESCAPE|exp)?」"),
        any_head=_ANY_HEAD,
        any_tail=_ANY_TAIL,
        ending_tail=lazy(rf"(?:{_ENDS}|「始」|「末)\Z"),
        bare_key=lazy(r"[\w\-]{1,64}"),
        bare_line=lazy(_LINE_KEY),
        later_bare_line=lazy(r"[\r\n]" + _LINE_KEY),
        inline_pair=lazy(r"[,，;；、|][ \t]*+[\w\-]{1,64}+[ \t]*+[:：=](?!//)"),
        next_key=lazy(r"[\w\-]{1,64}+(?:[ \t][\w\-]{1,64}+){0,2}"),
        first_key="tool_name",
        drops=True,
        between=",，;；、|",
        comment=None,
        foreign_comment=None,
        families={
            "plain": PLAIN,
            "escape": ESCAPE,
            "exp": EXP,
            "swapped": Family("swapped", HEAD, TAIL, lazy(HEAD), lazy(TAIL)),
            "odd": Family("odd", HEAD, TAIL, _ANY_TAIL, _ANY_HEAD),
        },
        codes=Codes(
            missing_tail="VC310",
            missing_head="VC311",
            bare="VC313",
            swapped="VC314",
            own_tail="VC315",
            separator="VC320",
            decoration="VC324",
            noise="VC325",
            after_value="VC321",
            missing_end="VC301",
            empty="VC302",
        ),
        family_of=_family_of,
    )


DIALECTS: Final = {suffix: _dialect(suffix) for suffix in _SUFFIXES}


def _suffix(marker: str) -> str:
    upper = visible(marker).upper()
    return next((name for name in ("EXP", "ESCAPE") if name in upper), "")


def dialect_of(marker: str) -> Dialect:
    """The dialect of the block that an opening marker opens."""
    return DIALECTS[_suffix(marker)]


_OTHER_BLOCK = lazy(r"(?i:<<{1,3}\[TOOL_(?:DEFINITION|RESULT)\]>{2,4})")
_OTHER_CLOSE = lazy(r"(?i:<<{1,3}\[END_TOOL_(?:DEFINITION|RESULT)\]>{2,4})")

_LAYOUT = lazy(r"[ \t\r\n]*+")
_PAIR = lazy(r"([A-Za-z0-9_-]++):[ \t]*+「始」(?!「始)")
_NEXT = lazy(r",?+[ \t]*+[\r\n]")


def lex_canonical(source: Source, start: int, limit: int) -> Lexed | None:
    """The pairs of a block in canonical form, or None at anything unusual."""
    text = source.text
    pairs: list[Pair] = []
    starts, ends = source.tokens(PLAIN.closes)
    at = start
    while True:
        layout = _LAYOUT.match(text, at, limit)
        at = layout.end() if layout else at
        match = _PAIR.match(text, at, limit)
        if match is None:
            break
        head, key = match.end(), match.span(1)
        i = bisect_left(starts, head)
        if i == len(starts) or ends[i] > limit or key[1] - key[0] > MAX_NAME_CHARS:
            return None
        tail, end = starts[i], ends[i]
        if text.find("「始", head, tail) >= 0:
            return None
        pairs.append(Pair(at, end, key, match.group(1), (head, tail), "plain"))
        at = end
        following = _NEXT.match(text, at, limit)
        if following is not None:
            at = following.end()
        elif text.startswith(",", at):
            at += 1
        else:
            return None
    end = at + len(CLOSE)
    if not text.startswith(CLOSE, at) or end > limit or not pairs:
        return None
    # A closing marker inside a value and control characters need the tolerant walk's judgement.
    if CONTROL.search(text, start, at) is not None:
        return None
    # So does anything like a mark inside a value.
    if (text.count("末", start, at) != len(pairs) or text.find("未", start, at) >= 0) and any(
        runs_on(text[slice(*pair.value)], "vcp") for pair in pairs
    ):
        return None
    if any(text.find(char, start, at) >= 0 for char in "<《＜") and DIALECTS[""].closes.search(text, start, at):
        return None
    lexed = Lexed(pairs, [], Findings(), (at, end), "close", end)
    if len(pairs) > MAX_PARAMS:
        too_many(lexed, pairs[MAX_PARAMS].start)
    return lexed


class VcpProtocol:
    """``<<<[TOOL_REQUEST]>>>`` … ``<<<[END_TOOL_REQUEST]>>>`` with ``key:「始」value「末」``."""

    id = "vcp"
    opener = lazy(f"{_OPENS.pattern}|{_OTHER_BLOCK.pattern}")
    markers = Markers(
        open=OPEN,
        close=CLOSE,
        values="text",
        stray=r"<{2,4}+\[(?i:END_TOOL_REQUEST(?:_?EXP)?)\]>{2,4}+",
        escaped=r"(?:&lt;){3}\[TOOL_REQUEST\](?:&gt;){3}",
        bare_sign=HEAD,
        bare=lazy(r"(?:tool_name)[ \t]*+[:：][ \t]*+「始」"),
        fence="example",
    )

    def read_block(self, source: Source, opener: Span, limit: int, options: ReadOptions) -> Block:
        """Reads the block opened at ``opener``; see ``CallProtocol``.

        A definition or result block is no request: it comes back as a mention that spans the whole of it (VC326).
        """
        text = source.text
        marker = text[opener[0] : opener[1]]
        if _OTHER_BLOCK.fullmatch(marker):
            return _no_request(source, opener, limit, marker)
        if _quoted(source, opener, limit, options):
            return mention("vcp", opener, Diag("VC326", opener, {"marker": marker}))
        suffix = _suffix(marker)
        dialect = DIALECTS[suffix]
        lexed = lex_canonical(source, opener[1], limit) if marker == OPEN else None
        if lexed is None:
            twice = doubled(text, opener, limit, dialect)
            if twice is not None:
                return twice
            lexed = lex(source, opener[1], limit, dialect, complete=options.complete)
            note_controls(lexed.findings, text, opener[1], lexed.end, lexed.pairs)
            if lexed.close is not None and _cut_marker(text, opener, lexed.close, options):
                lexed.close, lexed.stop, lexed.end, lexed.cut = None, "end", limit, "its closing marker"
        if suffix == "ESCAPE":
            lexed.findings.add("VC316", opener, minor=True)
        if not lexed.pairs:
            return empty_block(source, opener, limit, lexed, dialect, options)
        if in_prose(text, opener, lexed, dialect):
            return mention("vcp", opener)
        note_marker(lexed.findings, text, opener, dialect.open_text, dialect)
        if lexed.close is not None:
            note_marker(lexed.findings, text, lexed.close, dialect.close_text, dialect)
        truncated = note_unterminated(lexed, opener, dialect, options)
        dropped = lexed.close is None and not truncated
        calls = make_calls(text, lexed, opener, options)
        block = block_of(text, dialect, opener, lexed, calls, truncated=truncated, dropped=dropped)
        if suffix == "EXP":
            _make_inert(block, marker)
        return block

    def parse_tool_requests(self, text: str, options: ReadOptions | None = None) -> list[Call]:
        """The calls of a text; see ``CallProtocol``."""
        from tamis.protocols.engine import parse_tool_requests

        return parse_tool_requests(self.id, text, options)

    def format_tool_results(self, results: Sequence[ExecutionResult]) -> str:
        """The observations of results; see ``CallProtocol``."""
        from tamis.protocols.engine import format_tool_results

        return format_tool_results("vcp", results)

    def write_calls(self, calls: Sequence[PlainCall], options: WriteOptions) -> Written:
        """The calls in canonical spelling; see ``CallProtocol``."""
        from tamis.protocols.vcp.write import write_calls

        return write_calls(calls, options)

    def generate_tool_definitions(self, tools: Sequence[PromptTool], style: Style = "full") -> str:
        """The definitions of tools for a prompt; see ``CallProtocol``."""
        from tamis.protocols.prompt.vcp import vcp_definitions

        return vcp_definitions(tools, style)


def _make_inert(block: Block, marker: str) -> None:
    """A block in upstream's spelling for examples is set aside (rulings 28, 44): shown with a hint, never run, its faults nobody's concern."""
    block.aside, block.context = True, "spelling"
    block.diagnostics = [
        Diag("VC328", block.open, {"marker": marker}),
        *(replace(diag, severity="hint", fix=None, repair=False) for diag in block.diagnostics),
    ]
    for call in block.calls:
        call.executable, call.repairs = False, []


def _cut_marker(text: str, opener: Span, close: Span, options: ReadOptions) -> bool:
    """Whether a closing marker at the end of the text still lacks brackets (rulings 1 and 51): it has fewer behind than before it,
    or, in a text that is known to be cut off, fewer than the opening marker."""
    raw = text[close[0] : close[1]]
    if close[1] != len(text):
        return False
    behind = len(raw) - len(raw.rstrip(">》＞"))
    before = len(raw) - len(raw.lstrip("<《＜"))
    if options.complete:
        return behind < before
    opened = text[opener[0] : opener[1]]
    return behind < max(before, len(opened) - len(opened.rstrip(">》＞")))


def _quoted(source: Source, opener: Span, limit: int, options: ReadOptions) -> bool:
    """Whether a request stands inside a definition or result block, as an example or as what a tool said."""
    text = source.text
    source = source.everywhere()
    starts, ends = source.tokens(_OTHER_BLOCK)
    i = bisect_left(starts, opener[0]) - 1
    if i < 0 or source.next_token(_OTHER_CLOSE, ends[i], opener[0]) is not None:
        return False
    if text[max(0, starts[i] - 80) : starts[i]].rstrip(" \t")[-1:] not in ("", "\n", "\r"):
        return False
    # In a text that was cut off the closing marker may still have come.
    return not options.complete or source.next_token(_OTHER_CLOSE, opener[1], limit) is not None


def _no_request(source: Source, opener: Span, limit: int, marker: str) -> Block:
    close = source.next_token(_OTHER_CLOSE, opener[1], limit)
    block = mention("vcp", opener, Diag("VC326", opener, {"marker": marker}))
    block.span = (opener[0], close[1] if close else opener[1])
    return block


VCP: Final = VcpProtocol()
