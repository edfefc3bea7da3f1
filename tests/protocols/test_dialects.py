"""A call in a form that was not read is named by one hint (ruling 55)."""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import message
from tamis.protocols.dialects import DIALECTS
from tamis.protocols.reader import read_text
from tests.protocols.streams import check_stream, pieces

CALLS = {
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "Tokyo"}}</tool_call>',
    "qwen-xml": "<tool_call><function=get_weather><parameter=city>Tokyo</parameter></function></tool_call>",
    "invoke": '<function_calls><invoke name="get_weather"><parameter name="city">Tokyo</parameter></invoke></function_calls>',
    "glm": "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Tokyo</arg_value></tool_call>",
    "deepseek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Tokyo"}<｜tool▁call▁end｜>',
    "dsml": '<｜DSML｜function_calls><｜DSML｜invoke name="get_weather">',
    "kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": 1}',
    "mistral": '[TOOL_CALLS]get_weather[ARGS]{"city": "Tokyo"}',
    "llama": '<|python_tag|>{"name": "get_weather", "parameters": {}}',
    "pythonic": '<|tool_call_start|>[get_weather(city="Tokyo")]<|tool_call_end|>',
    "gemma": "<start_function_call>call:get_weather{city:<escape>Tokyo<escape>}<end_function_call>",
    "harmony": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Tokyo"}<|call|>',
    "cohere": '<|START_ACTION|>[{"tool_name": "get_weather"}]<|END_ACTION|>',
    "internlm": '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Tokyo"}}<|action_end|>',
    "granite": '<function_call> {"name": "get_weather", "arguments": {"city": "Tokyo"}}',
}
WHOLE = {"phi": 'functools[{"name": "get_weather", "arguments": {"city": "Tokyo"}}]'}
"""Forms that stand at the beginning of a text only."""


def test_every_form_has_a_sample() -> None:
    assert {dialect.id for dialect in DIALECTS} == {*CALLS, *WHOLE, "action", "tam", "vcp"}


@pytest.mark.parametrize("dialect", WHOLE)
def test_a_form_that_begins_a_text_is_named_there(dialect: str) -> None:  # ruling 55
    ((named, _),) = hints(WHOLE[dialect])
    assert named == dialect
    assert hints(f"Say {WHOLE[dialect]}") == []


def hints(text: str, protocol: str = "auto") -> list[tuple[str, str]]:
    found = [diagnostic for diagnostic in read_text(text, protocol).diagnostics if diagnostic.code == "TC027"]
    return [(str(diagnostic.args["dialect"]), message(diagnostic)) for diagnostic in found]


@pytest.mark.parametrize("dialect", CALLS)
def test_a_form_that_was_not_read_is_named_once(dialect: str) -> None:  # ruling 55
    ((named, _),) = hints(f"I look.\n{CALLS[dialect]}\n{CALLS[dialect]}\n")
    assert named == dialect


def test_the_setting_that_reads_it_is_named() -> None:  # ruling 55
    ((_, sentence),) = hints(CALLS["hermes"])
    assert 'protocol "hermes" reads it, or for every text also = ["hermes"] under [protocol]' in sentence
    ((_, sentence),) = hints(CALLS["glm"])
    assert "no protocol that is installed reads it" in sentence


def test_a_block_of_another_built_in_protocol_is_named_too() -> None:  # ruling 55
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»t«««\n<|[END_TOOL]|>"
    ((named, sentence),) = hints(text, "action")
    assert named == "tam"
    assert sentence.endswith('which was not read; protocol "auto" or "tam" reads it')
    assert hints(text, "tam") == hints(text) == []


@pytest.mark.parametrize("text", ["", "Nothing.", "a < b", "[1, 2]", "Write `<tool_call>{` first.", "<function_call>"])
def test_ordinary_text_is_no_dialect(text: str) -> None:
    assert hints(text) == []


@pytest.mark.parametrize("dialect", CALLS)
def test_a_stream_ends_with_the_same_hint(dialect: str) -> None:  # ruling 11, ruling 55
    text = f"I look.\n{CALLS[dialect]}\nDone."
    for size in (1, 7, 40):
        check_stream(pieces(text, range(0, len(text), size)))


def test_every_form_begins_with_a_bracket_that_is_looked_for_first() -> None:  # ruling 55
    others = [dialect for dialect in DIALECTS if not dialect.begins.pattern.startswith("<")]
    assert others
    assert all("[" in dialect.sign for dialect in others)
