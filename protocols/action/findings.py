"""What the tolerant ACTION path collects: elements as records, findings within bounds. Must not know how they are made."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tamis.protocols.action.tokens import Token
from tamis.protocols.model import MAX_PROBLEMS, Call, Comment, Diag, Edit, Fix
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


# What only all findings of a block together can tell: guesses that are each likely alone and doubtful side by side.


_MAX_SHARED = 64
_MAX_NOISE = 400
_GUESSED = frozenset({"AX102", "AX103", "AX104", "AX105", "AX106", "AX132"})
"""Findings about which tag was meant."""
_TAGS = _GUESSED | {"AX110", "AX112", "AX114", "AX120", "AX121", "AX122", "AX155", "AX156", "AX160"}
"""Findings whose edits say where an element or a value begins or ends."""


def settle_doubts(text: str, findings: Findings, calls: Sequence[Call]) -> None:
    """Makes an error of what has more than one reading (ruling 1)."""
    diagnostics = findings.list
    codes = {diag.code for diag in diagnostics}
    if not codes & _GUESSED:
        return
    noise = [text[slice(*diag.span)][:_MAX_NOISE] for diag in diagnostics if diag.code == "TC011"]
    ids = [call.tool_id for call in calls[:_MAX_SHARED]]
    # A tool with a parameter of its own name: one of the two tags may be the other's. The same with a tool that is empty.
    twice = any(call.shape == "tag" and call.param(call.tool_id) is not None for call in calls) or (
        "AX103" in codes and any(not call.params and ids.count(call.tool_id) > 1 for call in calls[:_MAX_SHARED])
    )
    empty: set[int] = set()
    if noise:
        # Text beside a parameter without any: it may be its value.
        empty = {p.span[0] for call in calls for p in call.params if p.value.kind == "text" and not p.value.pieces}
    for i, diag in enumerate(diagnostics):
        if diag.code not in _GUESSED:
            continue
        lost = diag.code == "AX102" and diag.span[0] in empty
        if diag.code == "AX105":
            # A stray closing tag whose name stands in the noise: its opening tag was misspelled.
            name = str(diag.args.get("name"))
            lost = any(name in part for part in noise)
        if twice or lost:
            diagnostics[i] = replace(diag, severity="error", repair=False)


def report_emptied(text: str, findings: Findings, calls: Sequence[Call]) -> None:
    """Reports text directly beside an empty parameter, which may be its value (ruling 67, TC063)."""
    noise = [diag.span for diag in findings.list if diag.code == "TC011"]
    if not noise:
        return
    starts, ends = {span[0]: span for span in noise}, {span[1]: span for span in noise}
    for param in (param for call in calls for param in call.params):
        if param.value.kind != "text" or param.value.pieces:
            continue
        behind = (
            param.span[1]
            + len(text[param.span[1] : param.span[1] + _MAX_NOISE])
            - len(text[param.span[1] : param.span[1] + _MAX_NOISE].lstrip())
        )
        ahead = len(text[max(0, param.span[0] - _MAX_NOISE) : param.span[0]].rstrip()) + max(
            0, param.span[0] - _MAX_NOISE
        )
        span = starts.get(behind) or ends.get(ahead)
        if span is not None:
            excerpt = text[slice(*span)][:40]
            findings.add("TC063", span, {"param": param.name, "excerpt": excerpt}, error=True)


def report_dashes(text: str, findings: Findings) -> None:
    """``--`` in a comment, which XML forbids and nothing depends on (AX124)."""
    for comment in findings.comments[:_MAX_SHARED]:
        start, end = comment.span[0] + 4, comment.span[1] - 3
        at = text.find("--", start, end)
        if at < 0 and text.endswith("-", start, end):
            at = end - 1
        if at >= 0:
            findings.list.append(Diag("AX124", (at, min(at + 2, end))))


def leave_to_a_person(findings: Findings, end: int, *, every: bool) -> None:
    """Makes fixes unsafe: ``every`` one, as in a block with an error, where it would settle what the error leaves open (P4);
    otherwise those that reach past the block's ``end``, or change what another one changes as well.
    """
    diagnostics = findings.list
    safe = {
        i: diag.fix for i, diag in enumerate(diagnostics) if diag.fix is not None and diag.fix.applicability == "safe"
    }
    chosen = set(safe) if every else _crossing(safe) | {i for i, fix in safe.items() if fix.edits[-1].end > end}
    for i in chosen:
        diagnostics[i] = replace(diagnostics[i], fix=replace(safe[i], applicability="unsafe"))
    if any(diag.code in _TAGS and diag.fix is not None and diag.fix.applicability == "unsafe" for diag in diagnostics):
        # Some of a block put right and a tag not: what then closes what is another question.
        for i, fix in safe.items():
            diagnostics[i] = replace(diagnostics[i], fix=replace(fix, applicability="unsafe"))


def _crossing(fixes: dict[int, Fix]) -> set[int]:
    """The fixes of several edits that overlap those of another one, and that one."""
    edits = sorted((edit.start, edit.end, edit.new_text, i) for i, fix in fixes.items() for edit in fix.edits)
    crossing: set[int] = set()
    last: tuple[int, int, str, int] | None = None
    for edit in edits:
        if last is not None and edit[0] < last[1] and edit[:3] != last[:3]:
            both = (edit[3], last[3])
            if any(len(fixes[i].edits) > 1 for i in both):
                crossing.update(both)
        if last is None or edit[1] > last[1]:
            last = edit
    return crossing
