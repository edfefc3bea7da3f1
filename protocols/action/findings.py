"""What the tolerant ACTION path collects: elements as records, findings within bounds. Must not know how they are made."""

from __future__ import annotations

from tamis.protocols.action.tokens import Token
from tamis.protocols.model import MAX_PROBLEMS, Comment, Diag, Edit, Fix
from tamis.protocols.positions import Span

_PAIRING = frozenset({"AX104", "AX105", "AX106", "AX107"})


def _holds_section(written: str) -> bool:
    """Whether a value that is written as a section holds the start of another one: what ends where is then in doubt (P4)."""
    if not written.startswith("<![CDATA["):
        return False
    body = written[len("<![CDATA[") :]
    if "<![CDATA[" in body.rpartition("]]]]><![CDATA[>")[2]:
        return True
    own = body.replace("]]]]><![CDATA[>", "")
    last = own.rfind("<![CDATA[")
    return last >= 0 and own.find("</", 0, last) >= 0


class Element:
    """An element as it was read: its tags, and where its content stands in the tokens and in the text."""

    __slots__ = ("a", "b", "closed", "end", "key", "name", "open", "outer_end", "start", "token")

    def __init__(self, token: Token, a: int, b: int, start: int, end: int, outer_end: int, *, closed: bool) -> None:
        self.token = token
        self.name = token.name
        self.key = token.key
        self.a = a
        self.b = b
        self.start = start
        self.end = end
        self.open = token.start
        self.outer_end = outer_end
        self.closed = closed


class Findings:
    """Findings of one block, bounded (TC023), and its comments."""

    def __init__(self) -> None:
        self.list: list[Diag] = []
        self.comments: list[Comment] = []

    def add(
        self,
        code: str,
        span: Span,
        args: dict[str, str | int] | None = None,
        *,
        edits: tuple[Edit, ...] = (),
        title: str = "",
        unsafe: bool = False,
        error: bool = False,
        repair: bool = True,
    ) -> None:
        """Adds a finding; one past the limit becomes the error that says so."""
        if len(self.list) > MAX_PROBLEMS:
            return
        if len(self.list) == MAX_PROBLEMS:
            self.list.append(Diag("TC023", span, {"n": MAX_PROBLEMS}))
            return
        # Where the reading is in doubt, an edit would settle it: that is for a person (ruling 1).
        unsafe = unsafe or error or any(_holds_section(edit.new_text) for edit in edits)
        fix = Fix(title, edits, "unsafe" if unsafe else "safe") if edits else None
        self.list.append(Diag(code, span, args or {}, "error" if error else None, fix, {}, repair and not error))

    def forget_pairing(self, start: int, end: int) -> None:
        """Takes back what was said about closing tags in ``start:end``: they turned out to be text of a value."""
        self.list = [
            diag
            for diag in self.list
            if diag.code not in _PAIRING or diag.severity == "error" or not start <= diag.span[0] < end
        ]
