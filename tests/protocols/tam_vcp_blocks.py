"""Reading one text with TAM and VCP for their tests, and short ways to say what came of it."""

from __future__ import annotations

from itertools import pairwise

from tamis.protocols.catalogue import severity
from tamis.protocols.model import Block, Call, Diag, Document, Edit, Json, ReadOptions
from tamis.protocols.reader import read_text


def tam(*lines: str) -> str:
    return "\n".join(("<|[REQUEST_TOOL]|>", *lines, "<|[END_TOOL]|>"))


def vcp(*lines: str) -> str:
    return "\n".join(("<<<[TOOL_REQUEST]>>>", *lines, "<<<[END_TOOL_REQUEST]>>>"))


def read(text: str, *, complete: bool = True, options: ReadOptions | None = None) -> Document:
    return read_text(text, options=options or ReadOptions(complete=complete))


def block(text: str, *, complete: bool = True, options: ReadOptions | None = None) -> Block:
    blocks = read(text, complete=complete, options=options).blocks
    assert len(blocks) == 1, blocks
    return blocks[0]


def runs(text: str, *, complete: bool = True, options: ReadOptions | None = None) -> list[tuple[str, dict[str, Json]]]:
    """Tool ids and arguments of the calls that may run."""
    document = read(text, complete=complete, options=options)
    return [(call.tool_id, call.args(text)) for call in document.calls if call.executable]


def call(text: str, *, options: ReadOptions | None = None) -> Call:
    """The only call that may run."""
    calls = [call for call in read(text, options=options).calls if call.executable]
    assert len(calls) == 1, calls
    return calls[0]


def warnings(text: str, *, complete: bool = True, options: ReadOptions | None = None) -> list[str]:
    """The codes of warnings and errors, in order of place."""
    found = read(text, complete=complete, options=options).diagnostics
    return [diag.code for diag in found if severity(diag) in ("warning", "error")]


def codes(text: str, *, options: ReadOptions | None = None) -> list[str]:
    return [diag.code for diag in read(text, options=options).diagnostics]


def find(text: str, code: str, *, options: ReadOptions | None = None) -> Diag:
    """The first finding with a code."""
    return next(diag for diag in read(text, options=options).diagnostics if diag.code == code)


def repaired(text: str) -> str:
    """The text with every safe fix applied (P4 of the parsing properties)."""
    edits: list[Edit] = []
    for diag in read(text).diagnostics:
        if diag.fix is not None and diag.fix.applicability == "safe":
            edits.extend(diag.fix.edits)
    edits.sort(key=lambda edit: (edit.start, edit.end))
    for before, after in pairwise(edits):
        assert before.end <= after.start, ("fixes overlap", before, after)
    for edit in reversed(edits):
        text = text[: edit.start] + edit.new_text + text[edit.end :]
    return text
