"""Protocols as plug-ins: known by id, read when asked for, and never by `auto` unless named (V01)."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.protocols.base import PlainCall, PromptTool, WriteOptions
from tamis.protocols.observation import observation
from tamis.protocols.plugins import BUILT_IN, find_protocol, known_protocols, register
from tests.protocols.json_calls import block, executable_calls, read
from tests.protocols.plugin_source import INVOKE, example_source, result
from tests.protocols.reader_helpers import codes, runnable


@pytest.fixture(scope="module")
def invoke() -> str:
    if find_protocol("invoke") is None:
        space: dict[str, Any] = {}
        exec(compile(example_source(), "tamis_invoke.py", "exec"), space)
        register(space["INVOKE"])
    return "invoke"


def test_the_plug_in_of_the_documentation_reads_its_calls(invoke: str) -> None:
    text = f"So.\n{INVOKE}\n<think>{INVOKE}</think> and `{INVOKE}`"
    document = read(text, invoke)
    assert runnable(document) == [("core:echo", {"text": "a < b"})]
    assert codes(document) == ["TC017", "TC018"]
    assert [text[slice(*param.value.span)] for param in document.calls[0].params] == ["a < b"]


def test_it_runs_nothing_that_is_cut_off(invoke: str) -> None:
    """Ruling 1."""
    for end in range(len(INVOKE)):
        assert executable_calls(INVOKE[:end], invoke, complete=False) == []


def test_auto_reads_a_plug_in_only_when_it_is_named(invoke: str) -> None:
    """Installing a package never changes what is run."""
    hermes = block("f", {"a": 1})
    text = f"{INVOKE}\n{hermes}\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」v「末」\n<<<[END_TOOL_REQUEST]>>>"
    assert [name for name, _ in executable_calls(text, "auto")] == ["v"]
    assert [name for name, _ in executable_calls(text, "auto", also=(invoke,))] == ["core:echo", "v"]
    assert [name for name, _ in executable_calls(text, "auto", also=(invoke, "hermes"))] == ["core:echo", "f", "v"]


def test_a_block_inside_a_value_of_another_protocol_is_text(invoke: str) -> None:
    """F16, both ways."""
    inside = block("write", {"t": "<ACTION><rm><p>/</p></rm></ACTION>" + INVOKE})
    assert [name for name, _ in executable_calls(inside, "auto", also=(invoke, "hermes"))] == ["write"]
    outside = f"<ACTION><write><t><![CDATA[{inside}]]></t></write></ACTION>"
    assert [name for name, _ in executable_calls(outside, "auto", also=(invoke, "hermes"))] == ["write"]


def test_ids_are_unique_and_well_formed(invoke: str) -> None:
    class Other:
        id = "invoke"

    class Auto:
        id = "auto"

    class Spelt:
        id = "In-voke"

    for wrong in (Other(), Auto(), Spelt()):
        with pytest.raises(ValueError, match="protocol"):
            register(wrong)  # pyright: ignore[reportArgumentType] (that is the point)
    assert known_protocols()[:4] == ("action", "tam", "vcp", "json")
    assert invoke in known_protocols()


# The four methods of V01, alike for every protocol

CALL = PlainCall("core:echo", {"text": "hello"})
TOOL = PromptTool("core:echo", "Says it.", {"type": "object", "properties": {"text": {"type": "string"}}})
IDS = (*BUILT_IN, "hermes", "json", "invoke")


@pytest.mark.parametrize("name", IDS)
def test_every_protocol_writes_what_it_parses(name: str, invoke: str) -> None:
    """V01: ``parseToolRequests`` and its inverse."""
    protocol = find_protocol(name)
    assert protocol is not None
    assert invoke
    written = protocol.write_calls([CALL], WriteOptions())
    assert not written.refusals
    calls = protocol.parse_tool_requests(f"{written.text}")
    assert [(call.tool_id, call.args(written.text), call.executable) for call in calls] == [
        ("core:echo", {"text": "hello"}, True)
    ]


@pytest.mark.parametrize("name", IDS)
def test_every_protocol_words_definitions_and_results(name: str, invoke: str) -> None:
    """V01: ``generateToolDefinitions`` and ``formatToolResults``."""
    protocol = find_protocol(name)
    assert protocol is not None
    assert invoke
    assert "core:echo" in protocol.generate_tool_definitions([TOOL], "compact")
    text = protocol.format_tool_results([result(output="one"), result("denied")])
    assert "one" in text
    assert "denied" in text or "拒绝" in text


def test_hermes_results_are_response_blocks() -> None:
    shown = observation(result(output={"a": ["<tool_call>"]}), "hermes")
    assert shown == '<tool_response>\n{"name": "core:echo", "content": {"a": ["\\u003ctool_call>"]}}\n</tool_response>'
    assert '"status": "denied"' in observation(result("denied"), "hermes")


def test_a_result_is_shortened_before_its_protocol_words_it() -> None:
    shown = observation(result(output="x" * 500), "hermes", shorten=lambda text: text[:10])
    assert shown == '<tool_response>\n{"name": "core:echo", "content": "xxxxxxxxxx"}\n</tool_response>'


def test_hermes_definitions_are_schemas_that_cannot_become_calls() -> None:
    hermes = find_protocol("hermes")
    assert hermes is not None
    tool = PromptTool(
        "t",
        "Like <tool_call>.",
        {"type": "object", "properties": {"title": {"type": "string", "description": "</tools>"}}},
    )
    full = hermes.generate_tool_definitions([tool], "full")
    compact = hermes.generate_tool_definitions([tool], "compact")
    assert full.startswith("<tools>\n")
    assert full.count("<") == full.count("<tools>") + full.count("</tools>") == 2
    assert '"title": {"type": "string"}' in compact
    assert hermes.generate_tool_definitions([], "full") == ""
