"""Ranges of integers in a grammar: exactly the numbers of the range."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PromptTool
from tamis.protocols.grammar.gbnf import gbnf
from tamis.protocols.grammar.rules import bounds_of, spellings
from tamis.protocols.model import Json
from tamis.protocols.plugins import find_protocol
from tests.protocols.gbnf_machine import Grammar, parse

NUMBERS = st.one_of(st.integers(-1200, 1200), st.integers(-(10**18), 10**18))


def grammar_of(low: int, high: int) -> Grammar:
    return parse(f"root ::= {' | '.join(spellings(low, high))}\n")


@given(NUMBERS, NUMBERS, st.lists(NUMBERS, max_size=20))
def test_a_range_holds_its_numbers_and_no_other(one: int, other: int, more: list[int]) -> None:
    low, high = sorted((one, other))
    grammar = grammar_of(low, high)
    near = [low - 1, low, low + 1, high - 1, high, high + 1, (low + high) // 2, low * 10, high // 10, -low, 0, *more]
    for number in near:
        assert grammar.accepts(str(number)) is (low <= number <= high), (low, number, high)
    for odd in ("-0", "+1", "01", "", "-", "1.0", f"0{high}"):
        assert not grammar.accepts(odd)


def test_small_ranges_are_complete() -> None:
    for low in range(-12, 13):
        for high in range(low, 13):
            grammar = grammar_of(low, high)
            assert [n for n in range(-31, 32) if grammar.accepts(str(n))] == list(range(low, high + 1))


@pytest.mark.parametrize(
    ("schema", "bounds"),
    [
        ({"minimum": 1, "maximum": 6}, (1, 6)),
        ({"minimum": 0.5, "maximum": 6.5}, (1, 6)),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 10}, (1, 9)),
        ({"exclusiveMinimum": 0.5, "exclusiveMaximum": 9.5}, (1, 9)),
        ({"minimum": 1, "exclusiveMinimum": 3}, (4, 10**19 - 1)),
        ({"minimum": True, "maximum": 1e300}, (1 - 10**19, 10**19 - 1)),
    ],
)
def test_bounds_are_whole_numbers(schema: dict[str, Json], bounds: tuple[int, int]) -> None:
    assert bounds_of(schema) == bounds


def test_an_empty_range_leaves_an_optional_parameter_out() -> None:
    protocol = find_protocol("json")
    assert protocol is not None
    tool = PromptTool(
        "t", "", {"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 4}, "b": {"type": "integer"}}}
    )
    grammar = parse(gbnf(protocol, [tool]))
    assert grammar.accepts('{"toolName": "t", "arguments": {"b": 3}}')
    assert not grammar.accepts('{"toolName": "t", "arguments": {"a": 5}}')
