"""A text of any length by pieces in bounded memory (C2)."""

from __future__ import annotations

import doctest
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols import api as module
from tamis.protocols import read
from tamis.protocols.api import PieceReader, Summary, read_pieces
from tamis.protocols.model import ReadOptions
from tests.protocols.fuzz import TOKENS, WORDS

ACTION = "<ACTION>\n<t:a>\n<x>1</x>\n</t:a>\n</ACTION>\n"
VCP = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」read「末」,\nx:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>\n"
TAM = "<|[REQUEST_TOOL]|>\ncommand:»»»a«««\nx:»»»1«««\n<|[END_TOOL]|>\n"
FILL = "lorem ipsum dolor\r\n" * 700
PARTS = st.lists(st.sampled_from([ACTION, VCP, TAM, FILL, FILL, *TOKENS, *WORDS]), max_size=25)


def found(chunks: list[str], **options: Any) -> tuple[list[dict[str, Any]], Summary]:
    """The calls that stand, and the summary."""
    calls: dict[str, dict[str, Any]] = {}
    for one in read_pieces(chunks, **options):
        if isinstance(one, Summary):
            return list(calls.values()), one
        if isinstance(one, str):
            calls.pop(one)
        else:
            calls[one.call_id] = msgspec.to_builtins(one)
    raise AssertionError("no summary")


@given(PARTS, st.sampled_from([1, 7, 500, 70_000]))
def test_every_call_is_the_one_of_the_whole_text(parts: list[str], size: int) -> None:
    """C2: the same id, arguments, places and verdict; what is missing stands where the summary says."""
    text = "".join(parts)
    step = max(size, len(text) // 200)
    calls, summary = found([text[at : at + step] for at in range(0, len(text), step)])
    whole = {call["callId"]: call for call in read(text)["calls"]}
    taken_back = {name for name in whole if not whole[name]["executable"]}
    undecided = (summary.undecided or (len(text), len(text)))[0]
    for call in calls:
        # a closer of reasoning in what is undecided takes back what stands before it
        assert call == whole[call["callId"]] or "/" in text[undecided:]
    missing = whole.keys() - {call["callId"] for call in calls} - taken_back
    assert all(whole[name]["range"]["offset"][1] >= undecided for name in missing)
    assert summary.characters == len(text) and summary.calls == len(calls)


@given(PARTS, st.integers(200, 20_000))
def test_what_does_not_fit_is_undecided_and_never_a_call(parts: list[str], limit: int) -> None:
    """C2: a bound on what waits never makes a call of what is none."""
    text = "".join(parts)
    calls, summary = found([text], limit=limit)
    whole = {call["callId"]: call for call in read(text)["calls"]}
    for call in calls:
        same = call == whole[call["callId"]]
        # a closer of reasoning in what is undecided takes back what stands before it
        assert same or (summary.undecided is not None and "</" in text[summary.undecided[0] :])
    assert summary.characters == len(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["calls", "prose", "one open block", "one document", "an open fence"])
def test_memory_does_not_grow_with_the_text(kind: str) -> None:
    """C2: 8 million characters; an open block holds no more than the limit."""
    begin, unit = {
        "calls": ("", FILL + VCP),
        "prose": ("", FILL),
        "one open block": ("<ACTION><t:a><x>", FILL),
        "one document": ('{"toolName": "', "x" * 1000),
        "an open fence": ("```\n", FILL + VCP),
    }[kind]

    def chunks() -> Any:
        yield begin
        for _ in range(8_000_000 // len(unit)):
            yield unit

    tracemalloc.start()
    last: object = None
    for one in read_pieces(chunks(), limit=1_000_000):
        last = one
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000
    assert isinstance(last, Summary) and last.characters > 7_900_000
    assert (last.undecided is not None) == (kind in ("one open block", "one document"))


def test_calls_come_while_the_text_does() -> None:
    """C2: not at its end."""
    came: list[int] = []
    for at, one in enumerate(read_pieces([VCP + FILL, VCP + FILL, VCP])):
        if not isinstance(one, Summary | str):
            came.append(at)
    assert came == [0, 1, 2]


def test_a_block_that_is_not_closed_is_undecided() -> None:
    """C2: and no call."""
    calls, summary = found([FILL, VCP, "<|[REQUEST_TOOL]|>\ncommand:»»»a«««\n"])
    assert [call["toolId"] for call in calls] == ["read"]
    assert summary.undecided == (len(FILL + VCP), summary.characters)


def test_any_number_of_blocks_may_come() -> None:
    """C2: the bound of a text that is held (TC028) is none of this one, which keeps no block."""
    calls, summary = found([VCP] * 5, options=ReadOptions(max_blocks=2))
    assert (len(calls), summary.undecided) == (5, None)


def test_a_document_cannot_be_asked_for() -> None:
    """C2: the text is not there."""
    with pytest.raises(TypeError, match="bounded memory"):
        PieceReader().close()


def test_the_examples_of_the_documentation_run() -> None:
    """House: a public docstring has an example that runs."""
    assert doctest.testmod(module).failed == 0
