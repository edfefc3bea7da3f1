"""Which closing tag belongs to which opening one in an ACTION block, when models mix them up.

The pass goes over the tokens once with an explicit stack. Where a closing tag does not fit, what follows decides: the same
tag again, the open element's own closing tag, or neither. Anything with more than one reading is an error (ruling 1, F4,
F7 to F9). Must not know tools, parameters or values.
"""

from __future__ import annotations

from tamis.protocols.action.decode import COMMON_TAGS, INPUT, INPUT_ALIASES, STRONG_TOOL_ID, indent
from tamis.protocols.action.tokens import MARKER_KEY, NOWHERE, TagIndex, Token, Tokens
from tamis.protocols.action.values import HTML
from tamis.protocols.model import MAX_PROBLEMS, Diag, Edit, Fix
from tamis.protocols.patterns import lazy

_LEADS_IN = lazy(r"[\s\"'`“‘«「『(\[{（【:：=]")
_NAMED = lazy(r"(?i:\bname)\s{0,4}=")


class Match:
    """The result: where the block's closing marker is, and what had to be assumed to find out."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.close: int | None = None
        """Index of the token that closes the block, or None."""
        self.nested: int | None = None
        """Index of an opener that stands in the block but in no open element: the block ended before it."""
        self.quoted: int | None = None
        """Index of the first opener inside an open element: it is text there, whatever becomes of the block (ruling 50)."""
        self.diagnostics: list[Diag] = []
        self.inner_end: dict[int, int] = {}
        """Where an element's content ends when that is not the start of its closing tag."""
        self.max_depth = 0


class _Open:
    __slots__ = ("index", "key", "name")

    def __init__(self, index: int, name: str, key: str) -> None:
        self.index = index
        self.name = name
        self.key = key


def match_block(tokens: Tokens, index: TagIndex) -> Match:
    """Pairs the tags of the block whose opening marker ends where ``tokens`` begins."""
    return _Matcher(tokens, index).run()


class _Matcher:
    def __init__(self, tokens: Tokens, index: TagIndex) -> None:
        self.tokens = tokens
        self.index = index
        self.text = tokens.text
        self.match = Match(tokens)
        self.stack: list[_Open] = [_Open(-1, "ACTION", MARKER_KEY)]
        self.places: dict[str, list[int]] = {MARKER_KEY: [0]}
        self.closed: set[str] = set()
        """Keys of elements that were closed, to tell a stray tag from an ambiguity."""

    def run(self) -> Match:
        i = 0
        while (token := self.tokens.get(i)) is not None:
            if token.kind == "open":
                if token.key == MARKER_KEY:
                    if len(self.stack) == 1:
                        self.match.nested = i
                        break
                    if self.match.quoted is None:
                        self.match.quoted = i
                self._push(i, token)
            elif self._closes_block_spoilt(token) or (token.kind == "close" and self._close(i, token)):
                self.match.close = i
                self._check_after(i, token)
                break
            i += 1
        return self.match

    def _closes_block_spoilt(self, token: Token) -> bool:
        """``<ACTION/>`` where the block is closed by nothing else."""
        if token.kind != "self" or token.key != MARKER_KEY or len(self.stack) > 1:
            return False
        index = self.index
        return not index.is_before(index.next_close(MARKER_KEY, token.end), index.next_open(MARKER_KEY, token.end))

    def _check_after(self, i: int, token: Token) -> None:
        """A second run of the same closing tags behind the block: its last value may have held the first (F4)."""
        tokens = self.tokens.list
        if not doubtful_end(tokens, i, self.text):
            return
        index = self.index
        again = index.next_close(MARKER_KEY, token.end)
        if not index.is_before(again, index.next_open(MARKER_KEY, token.end)):
            return
        inner, outer = tokens[i - 2].key, tokens[i - 1].key
        first = index.next_close(inner, token.end)
        second = index.next_close(outer, token.end)
        if (
            index.is_before(first, second)
            and index.is_before(second, again)
            and not self.text[token.end : first].isspace()
            and again - first <= 1024
        ):
            run = "".join(self.text[first:again].split()).lower()
            if run == f"</{inner}></{outer}>":
                self._report(Diag("AX112", (first, again), {"name": tokens[i - 2].name}, "error"))

    def _push(self, i: int, token: Token) -> None:
        self.places.setdefault(token.key, []).append(len(self.stack))
        self.stack.append(_Open(i, token.name, token.key))

    def _pop(self) -> _Open:
        top = self.stack.pop()
        self.places[top.key].pop()
        return top

    def _pair(self, i: int) -> None:
        top = self._pop()
        self.match.max_depth = max(self.match.max_depth, len(self.stack))
        self.tokens.list[top.index].partner = i
        self.tokens.list[i].partner = top.index
        self.closed.add(top.key)

    def _close(self, i: int, token: Token) -> bool:
        """Takes a closing tag; True when it closes the block."""
        places = self.places.get(token.key)
        top = self.stack[-1]
        if not places:
            self._stray(i, token, top)
            return False
        depth = places[-1]
        if depth == len(self.stack) - 1:
            if depth == 0:
                return True
            self._matching(i, token, top)
            return False
        return self._deeper(i, token, depth)

    def _matching(self, i: int, token: Token, top: _Open) -> None:
        """The tag closes the innermost element, unless the value holds its own closing tag (F4)."""
        if len(self.stack) >= 3:
            again = self.index.next_close(top.key, token.end)
            opened = self.index.next_open(top.key, token.end)
            if (
                self.index.is_before(again, opened, lambda: self._scope_end(token.end))
                and self.text[token.end : self._next_start(i)].strip()
            ):
                token.raw = True
                token.flag = "own" if self._only_text(i, again) and not self._was_end(i, again) else "own-unclear"
                return
        if token.name != top.name and token.key == top.key:
            edit = Edit(token.name_span[0], token.name_span[1], top.name)
            fix = Fix(f"Write </{top.name}>", (edit,))
            self._report(
                Diag("AX107", (token.start, token.end), {"got": token.name, "name": top.name}, fix=fix, repair=True)
            )
        self._pair(i)

    def _was_end(self, i: int, again: int) -> bool:
        """True when the value may well have ended at token ``i``, and the same tag ``again`` closes one that lost its opener."""
        token, previous = self.tokens.list[i], self.tokens.list[i - 1]
        if previous.kind in ("cdata", "open") and previous.end == token.start:
            return True
        between = self.text[token.end : again]
        if token.key in INPUT_ALIASES and (between[:1] not in (" ", "\t") or between.lstrip(" \t")[:1] in ("\n", "\r")):
            # Every input closes with the same tag: only prose goes on behind it like that.
            return True
        return "=" in between and _NAMED.search(between) is not None

    def _deeper(self, i: int, token: Token, depth: int) -> bool:
        """The tag closes an outer element while inner ones are open."""
        end = token.end
        for inner in reversed(self.stack[depth + 1 :][-4:]):
            own = self.index.next_close(inner.key, end)
            if not self.index.is_before(own, self.index.next_open(inner.key, end)):
                continue
            gap_end = self._next_start(i)
            follow = self.tokens.get(i + 1)
            if self.text[end:gap_end].strip():
                if self.index.is_before(self.index.next_close(token.key, own), NOWHERE) and (
                    depth == 0 or self.index.is_before(own, self._scope_end_above(depth, end))
                ):
                    token.raw = True
                    return False
                continue
            if follow is not None and follow.kind == "close" and follow.key == inner.key and inner is self.stack[-1]:
                if depth == len(self.stack) - 2:
                    return self._swapped(i, token, follow, depth)
                break
        while len(self.stack) - 1 > depth:
            self._pop()
        if depth == 0:
            return True
        self._pair(i)
        return False

    def _swapped(self, i: int, token: Token, follow: Token, depth: int) -> bool:
        """``<a>x</T></a>``: the two closing tags are in the wrong order (AX106)."""
        text = self.text
        first, second = (f"</{text[slice(*token.name_span)]}>" for token in (token, follow))
        for tag in (token, follow):
            # The swap writes both tags anew, with their brackets.
            tag.flag = "" if tag.flag == "bracket" else tag.flag
        edits = (Edit(token.start, token.end, second), Edit(follow.start, follow.end, first))
        self._report(
            Diag(
                "AX106",
                (token.start, follow.end),
                {"a": token.name, "b": follow.name},
                fix=Fix("Swap the closing tags", edits),
                repair=True,
            )
        )
        token.key, follow.key = follow.key, token.key
        token.name, follow.name = follow.name, token.name
        if depth == 0:
            # The block's own closing tag came first: it is the next token, which the pass takes now.
            self._pair(i)
            return False
        self._pair(i)
        return False

    def _stray(self, i: int, token: Token, top: _Open) -> None:
        """A closing tag of a name that is not open."""
        level = len(self.stack) - 1
        before_start = self.tokens.list[i - 1].end if i > 0 else self.tokens.start
        before = self.text[before_start : token.start]
        previous = self.tokens.list[i - 1] if i > 0 else None
        if previous is not None and previous.kind == "close" and previous.key == token.key and not before.strip():
            # The same closing tag twice (F8): whatever it was meant to close, ruling 18 closes.
            opened = self.tokens.list[previous.partner] if previous.partner >= 0 else None
            # With nothing between its tags, what stood in the element was lost (ruling 52).
            empty = opened is not None and not self.text[opened.end : previous.start].strip()
            self._stray_report(token, error=empty)
            return
        own_ahead = self._own_ahead(top, token.end) and not self._crossed(i, token, top)
        if level >= 2 and own_ahead:
            if token.key not in HTML and self._again(i, token):
                # As in <a>1</b><b>2</a>, with more than that: where the value ends is unclear.
                args: dict[str, str | int] = {"got": token.name, "name": top.name}
                self._report(Diag("AX104", (token.start, token.end), args, "error"))
            token.raw = True
            return
        gap = self.text[token.end : self._next_start(i)]
        follow = self.tokens.get(i + 1)
        if not own_ahead and level >= 1 and not gap.strip() and follow is not None:
            after_element = (
                previous is not None
                and not before.strip()
                and (previous.kind in ("close", "self", "comment") or i - 1 == top.index)
            )
            if (
                level >= 2
                or top.key in STRONG_TOOL_ID
                or (after_element and follow.kind in ("close", "open", "comment"))
            ):
                edit = Edit(token.name_span[0], token.name_span[1], top.name)
                # A tag that lacks its bracket, and a closing tag that does not fit: the name itself is in doubt.
                unclear = top.index == i - 1 and previous is not None and previous.flag == "bracket"
                fix = Fix(f"Write </{top.name}>", (edit,), "unsafe" if unclear else "safe")
                args: dict[str, str | int] = {"got": token.name, "name": top.name}
                level = "error" if unclear else None
                self._report(Diag("AX104", (token.start, token.end), args, level, fix, repair=not unclear))
                self._pair(i)
                return
        if level >= 2:
            token.raw = True
            return
        if before.strip() and token.key in self.closed:
            # Text and then the closing tag of an element that was closed before: its value may have been cut (F4).
            self._report(Diag("AX112", (token.start, token.end), {"name": token.name}, "error"))
            token.raw = False
            return
        self._stray_report(token, error=self._lost_opener(i, token, before, level))

    def _again(self, i: int, token: Token) -> bool:
        """True when the tag behind token ``i`` opens what that one closes."""
        follow = self.tokens.get(i + 1)
        if follow is None or follow.kind != "open" or follow.key != token.key:
            return False
        return not self.text[token.end : follow.start].strip()

    def _lost_opener(self, i: int, token: Token, before: str, level: int) -> bool:
        """True when the stray tag may close an element whose opening tag was lost: what it held must not be dropped."""
        if before.strip():
            return True
        previous = self.tokens.list[i - 1] if i > 0 else None
        if previous is not None and previous.kind == "cdata":
            return True
        if token.key in self.closed or token.key in COMMON_TAGS:
            return False
        if previous is None or previous.kind == "open":
            return True
        begin = self.tokens.list[previous.partner if previous.partner >= 0 else i - 1].start
        deeper = 0 <= indent(self.text, token.start) < indent(self.text, begin)
        return level == 0 or deeper or token.key == INPUT or previous.key == "item"

    def _stray_report(self, token: Token, *, error: bool = False) -> None:
        fix = Fix(f"Remove </{token.name}>", (Edit(token.start, token.end, ""),), "unsafe" if error else "safe")
        level = "error" if error else None
        self._report(Diag("AX105", (token.start, token.end), {"name": token.name}, level, fix, repair=not error))

    def _own_ahead(self, top: _Open, at: int) -> bool:
        own = self.index.next_close(top.key, at)
        if top.index < 0:
            return self.index.is_before(own, NOWHERE)
        return self.index.is_before(own, self.index.next_open(top.key, at), lambda: self._scope_end(at))

    def _crossed(self, i: int, token: Token, top: _Open) -> bool:
        """``<a>1</b><b>2</a>``: the names of two closing tags were mixed up (F7)."""
        follow = self.tokens.get(i + 1)
        if follow is None or follow.kind != "open" or follow.key != token.key or top.index < 0:
            return False
        if self.text[token.end : follow.start].strip():
            return False
        index, at = self.index, follow.end
        own = index.next_close(top.key, at)
        return index.is_before(own, index.next_close(token.key, at), lambda: index.next_open(token.key, at))

    def _scope_end(self, at: int) -> int:
        """Where the element around the innermost one is closed next, or the block; nowhere when neither is."""
        outer = self.stack[-2] if len(self.stack) > 1 else self.stack[-1]
        around, block = self.index.next_close(outer.key, at), self.index.next_close(MARKER_KEY, at)
        return block if self.index.is_before(block, around) else around

    def _scope_end_above(self, depth: int, at: int) -> int:
        return self.index.next_close(self.stack[depth - 1].key, at)

    def _next_start(self, i: int) -> int:
        follow = self.tokens.get(i + 1)
        return follow.start if follow is not None else self.tokens.limit

    def _only_text(self, i: int, until: int) -> bool:
        """True when only text stands between token ``i`` and the closing tag at ``until``."""
        follow = self.tokens.get(i + 1)
        return follow is not None and follow.start >= until

    def _report(self, diag: Diag) -> None:
        if len(self.match.diagnostics) <= MAX_PROBLEMS:
            self.match.diagnostics.append(diag)


def doubtful_end(tokens: list[Token], close: int, text: str) -> bool:
    """Whether the closing marker at index ``close`` could stand inside the last value, as a quotation of all three closing tags.

    That is so only where the tags follow each other without a blank, behind words and what leads a quotation in: a blank, a quote, a
    backtick, an opening bracket or a colon. Everything else ends here whatever follows, so that a stream can give its calls at once.
    """
    if close < 2 or tokens[close - 1].kind != "close" or tokens[close - 2].kind != "close":
        return False
    inner, outer, marker = tokens[close - 2 : close + 1]
    if inner.end != outer.start or outer.end != marker.start:
        return False
    if close >= 3 and tokens[close - 3].kind == "cdata" and tokens[close - 3].end == inner.start:
        return False
    start = tokens[inner.partner].end if inner.partner >= 0 else 0
    if start >= inner.start or not _LEADS_IN.match(text, inner.start - 1):
        return False
    return not text[max(start, inner.start - 4096) : inner.start].isspace()
