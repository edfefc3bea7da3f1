"""What holds for every Hermes text: exact writing, sound fixes, prefix safety, no crash, linear time."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PlainCall, WriteOptions
from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.repair import apply_edits, safe_edits
from tests.growth import growth
from tests.protocols.hermes_slips import JSON_CHARS, slips
from tests.protocols.json_calls import ARGS, CALLS, NAMES, block, check_spans, executable_calls, read
from tests.protocols.reader_helpers import runnable


@given(CALLS)
def test_what_is_written_reads_back_equal(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """P1: or is refused; only what no protocol carries may be."""
    written = HERMES.write_calls([PlainCall(name, args) for name, args in calls], WriteOptions())
    assert not written.refusals
    document = read(written.text)
    assert repr(runnable(document)) == repr(calls)
    assert not [diag for diag in document.diagnostics if diag.code != "HM618"]
    check_spans(document)


@given(CALLS, st.integers(0, 2**32))
def test_the_fixes_of_a_slip_are_sound(calls: list[tuple[str, dict[str, Any]]], seed: int) -> None:
    """P4: applying the safe fixes gives a text that reads clean to the same calls."""
    rng = random.Random(seed)
    text = slips("\n".join(block(name, args) for name, args in calls), rng)
    document = read(text)
    check_spans(document)
    edits = safe_edits(document.diagnostics)
    if edits:
        again = read(apply_edits(text, edits))
        assert repr(runnable(again)) == repr(runnable(document)), (text, edits)
        assert not safe_edits(again.diagnostics)


@pytest.mark.slow
@given(NAMES, ARGS, st.integers(0, 2**32))
def test_no_prefix_runs_what_the_whole_text_does_not(name: str, args: dict[str, Any], seed: int) -> None:
    """P9, ruling 11: at any split point, of good and of broken text."""
    rng = random.Random(seed)
    text = f"I go.\n{block(name, args)}\nthen\n{block('g', {'x': [1, 'y']})} end"
    for source in (text, slips(text, rng)):
        whole = [repr(call) for call in runnable(read(source))]
        for end in rng.sample(range(len(source)), min(len(source), 20)):
            part = [repr(call) for call in executable_calls(source[:end], complete=False)]
            assert part == whole[: len(part)], (source, end)


@given(
    st.lists(
        st.sampled_from(
            ["<tool_call>", "</tool_call>", *JSON_CHARS, '{"name":"f","arguments":{', '"a":"', "//", "```"]
        ),
        max_size=30,
    )
)
def test_no_text_raises_and_every_place_lies_in_it(parts: list[str]) -> None:
    text = "".join(parts)
    check_spans(read(text))
    check_spans(read(text, complete=False))


def test_time_is_linear_in_the_text() -> None:
    """Ruling 10, F18."""
    good = block("f", {"a": ["x\n" * 20, 1, None]}) + "\n"
    rows = [
        good,
        "<tool_call>",
        '<tool_call>{"',
        '<tool_call>{\\"',
        "<tool_call>{'",
        '<tool_call>{"name":"f","arguments":{"a":"',
        '{"a":"\\"\\"',
        '<tool_call>{"a":{"b":[',
        "<tool_call>[",
        '<tool_call>"""',
    ]
    around = [("", row, "") for row in rows]
    around += [
        ("<tool_call>{", '\\"', ""),
        ('<tool_call>{"name":"f","arguments":{"a":"', "\\n", '"}}</tool_call>'),
        ("<tool_call>{", "'a' ", "}</tool_call>"),
        ('<tool_call>{"name":"f","arguments":"', '\\"a\\",', '"}</tool_call>'),
    ]
    for head, unit, tail in around:
        text = lambda size, head=head, unit=unit, tail=tail: head + unit * (size // len(unit)) + tail  # noqa: E731
        assert growth(text, read, 10_000) <= 8, (head, unit)


def test_a_large_value_is_read_whole() -> None:
    value = "x\\n\"'<tool_call>" * 60_000
    document = read(block("f", {"a": value}))
    assert runnable(document) == [("f", {"a": value})]
    assert json.loads(document.text[document.calls[0].span[0] : document.calls[0].span[1]])["arguments"]["a"] == value


@given(NAMES, ARGS)
def test_a_python_dictionary_reads_equal_or_not_at_all(name: str, args: dict[str, Any]) -> None:
    """F20: what ``repr`` writes; escapes that JSON does not know are refused, never guessed."""
    text = f"<tool_call>{ {'name': name, 'arguments': args}!r}</tool_call>"
    assert repr(executable_calls(text)) in (repr([(name, args)]), "[]")
