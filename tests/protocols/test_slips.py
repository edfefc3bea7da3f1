"""Typing slips in the markup of good calls (ruling 67, P2): the same call runs, or none.

Each character of the markup is deleted, doubled, swapped with the next, and followed by another one. A slip that makes another correct
call is left out where a ruling says so: a longer run of TAM's delimiters (56), a bracket at the edge of a CDATA section (16).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tamis.protocols.api import check
from tests.protocols.third_round import cases, world_of_tools

INSERTED = "<>/=\"' x:»«「」]![,"
# Markup and values in turn, beginning with markup.
GOOD: dict[str, tuple[str, ...]] = {
    "action": ("<ACTION>\n<files:write>\n<path>", "a.txt", "</path>\n<content>", "keep me", "</content>\n</files:write>\n</ACTION>"),
    "action typed": ("<ACTION><shell:run><command>", "ls -la", "</command><timeout>", "5", "</timeout></shell:run></ACTION>"),
    "action list": ("<ACTION><note:add><title>", "T", "</title><text>", "two\nlines", "</text>\n<tags><item>", "x", "</item><item>", "y", "</item></tags></note:add></ACTION>"),
    "inputs": ('<ACTION>\n<tool_id>', "files:write", '</tool_id>\n<inputs>\n<input name="path">', "a.txt", '</input>\n<input name="content">', "keep me", "</input>\n</inputs>\n</ACTION>"),
    "cdata": ("<ACTION><files:write><path>", "a", "</path><content><![CDATA[", "if a < b: pass", "]]></content></files:write></ACTION>"),
    "tam": ("<|[REQUEST_TOOL]|>\ncommand:»»»", "files:write", "«««\npath:»»»", "a.txt", "«««\ncontent:»»»", "keep me", "«««\n<|[END_TOOL]|>"),
    "vcp": ("<<<[TOOL_REQUEST]>>>\ntool_name:「始」", "files:write", "「末」,\npath:「始」", "a.txt", "「末」,\ncontent:「始」", "keep me", "「末」\n<<<[END_TOOL_REQUEST]>>>"),
    "vcp escape": ("<<<[TOOL_REQUEST]>>>\ntool_name:「始」", "files:write", "「末」,\npath:「始」", "a.txt", "「末」,\ncontent:「始ESCAPE」", "keep 「末」 me", "「末ESCAPE」\n<<<[END_TOOL_REQUEST]>>>"),
}  # fmt: skip


def slips(pieces: tuple[str, ...]) -> Iterator[str]:
    """Every text that one slip in the markup makes."""
    good, at = "".join(pieces), 0
    for turn, piece in enumerate(pieces):
        inside = range(at, at + len(piece)) if turn % 2 == 0 else ()
        for i in inside:
            yield good[:i] + good[i + 1 :]
            yield good[:i] + good[i] + good[i:]
            if i + 1 in inside:
                yield good[:i] + good[i + 1] + good[i] + good[i + 2 :]
            if i > at or i == 0:
                yield from (good[:i] + char + good[i:] for char in INSERTED)
        at += len(piece)


def is_another_correct_call(text: str) -> bool:
    return any(mark in text for mark in ("»»»»", "««««", "[CDATA[[", "]]]>"))


def running(text: str) -> list[tuple[str, object]]:
    return [(call["toolId"], call["args"]) for call in check(text, tools=world_of_tools())["calls"] if call["valid"]]


@pytest.mark.parametrize("form", GOOD)
def test_a_slip_in_the_markup_runs_the_same_call_or_none(form: str, is_long: bool) -> None:  # ruling 67
    good = running("".join(GOOD[form]))
    assert len(good) == 1
    chosen = [text for text in sorted(set(slips(GOOD[form]))) if is_long or zlib.crc32(text.encode()) % 8 == 0]
    others = [text for text in chosen if running(text) not in ([], good) and not is_another_correct_call(text)]
    assert others == []


@pytest.mark.parametrize("case", cases("fragment", "emptied"), ids=lambda case: case["id"])
def test_a_value_with_a_piece_of_a_mark_or_emptied_by_a_slip_does_not_run(case: dict[str, object]) -> None:  # P1 P2
    run = [(tool, args) for tool, args in case["run"]]  # type: ignore[attr-defined]
    assert running(str(case["text"])) in ([], run)
