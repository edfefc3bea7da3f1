"""Worked examples: each reads back to the same call; one shows how a wrong call is put right (A35, seed 000 §4.3 and §5.5)."""

from __future__ import annotations

import re
from typing import cast

import msgspec
import pytest

from tamis.protocols.base import CallProtocol, Example, PromptTool, Shape, Written
from tamis.protocols.check import check_call
from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.model import Document, Json, ReadOptions, ToolHint
from tamis.protocols.plugins import find_protocol, register
from tamis.protocols.prompt.assemble import instructions
from tamis.protocols.prompt.fewshot import CORRECTED, few_shot
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.prompt_forms import example_tools, forms, protocol_of
from tests.protocols.prompt_tools import EVERYTHING, GREET, PUBLISH, READ, TOOLS, schema, text


def read(shown: str, tools: list[PromptTool] | tuple[PromptTool, ...]) -> Document:
    hints = {tool.name: ToolHint(tool.name, tool.parameters) for tool in tools}
    return read_text(shown, "auto", ReadOptions(allow_multiple_blocks=True, tools=hints))


@forms
def test_every_example_of_every_manifest_reads_back_equal(name: str, shape: Shape) -> None:  # A35
    tools = [*example_tools(), *TOOLS]
    count = sum(len(tool.examples) for tool in tools)
    made = few_shot(protocol_of(name), tools, count, shape)
    assert made.left_out == ()
    assert len(made.calls) == count > 30
    remaining = [(tool, example.input) for tool in tools for example in tool.examples]
    for shown in made.calls:
        document = read(shown, tools)
        (call,) = document.calls
        assert call.executable
        assert call.repairs == []
        tool = next(tool for tool in tools if tool.name == call.tool_id)
        check = check_call(call, shown, compile_plan(tool.parameters))
        assert check.valid
        remaining.remove((tool, check.coerced))
    assert remaining == []


@forms
def test_what_shows_most_comes_first_then_each_tool_by_name(name: str, shape: Shape) -> None:  # seed 000 §4.3
    def example(**args: Json) -> Example:
        return Example("", args)

    tools = [
        PromptTool("c", "", schema([], x=text()), (example(x="1"), example(x="2"))),
        PromptTool("a", "", schema([], x=text()), (example(x="a < b"), example(x="3"))),
        PromptTool("b", "", schema([], x={"type": "array"}, n={"type": "integer"}), (example(x=[1, "a"], n=1),)),
    ]
    made = few_shot(protocol_of(name), tools, 5, shape)
    called = [call.tool_id for shown in made.calls for call in read(shown, tools).calls]
    assert called == ["b", "a", "c", "a", "c"]
    assert few_shot(protocol_of(name), [*reversed(tools)], 2, shape).calls == made.calls[:2]


@forms
def test_no_more_examples_are_shown_than_asked_for(name: str, shape: Shape) -> None:
    for count in (1, 2, 3):
        assert len(few_shot(protocol_of(name), TOOLS, count, shape).calls) == count
    assert few_shot(protocol_of(name), TOOLS, 0, shape).text(0) == ""
    assert few_shot(protocol_of(name), (), 3, shape).text(3) == ""


def test_the_corrected_call_is_the_seeds() -> None:  # A40, seed 000 §5.5
    shown = few_shot(protocol_of("action"), (GREET,), 1).text(1)
    assert "<playerId>player123</playerId>" in shown
    wanted = "Observation: Error - Invalid parameters for skill_greet_player: Unknown parameter 'playerId', did you mean 'player_id'?"
    assert wanted in shown.splitlines()
    after = shown.partition(wanted)[2]
    assert "<player_id>player123</player_id>" in after
    assert "playerId" not in after


@forms
def test_a_wrong_call_is_followed_by_its_observation_and_the_right_call(name: str, shape: Shape) -> None:
    shown = few_shot(protocol_of(name), (PUBLISH, READ), 1, shape).text(1)
    document = read(shown, (PUBLISH, READ))
    calls = [call for call in document.calls if call.executable]
    assert len(calls) == 3
    plan = compile_plan(PUBLISH.parameters)
    assert [check_call(call, shown, plan).valid for call in calls] == [True, False, True]
    between = shown[calls[1].span[1] : calls[2].span[0]]
    assert "Unknown parameter" in between or "Missing required parameter" in between
    frames = {"vcp": "<<<[TOOL_RESULT]>>>", "tam": "Observation: Error", "action": "Observation: Error"}
    assert (f'<OBSERVATION tool_id="{PUBLISH.name}">' if shape == "inputs" else frames[name]) in between


def test_tam_shows_a_mistake_that_its_keys_do_not_forgive() -> None:  # ruling 20: playerId is player_id there
    shown = few_shot(protocol_of("tam"), (GREET,), 1).text(1)
    assert "player:»»»player123«««" in shown
    assert "Unknown parameter 'player', did you mean 'player_id'?" in shown or "Missing required parameter" in shown


@forms
def test_the_last_example_needs_no_tool(name: str, shape: Shape) -> None:
    last = few_shot(protocol_of(name), TOOLS, 1, shape).closing[-1]
    assert "No tool is needed" in last
    document = read_text(last)
    assert document.blocks == []
    assert document.diagnostics == []


@forms
def test_the_reason_stands_before_the_call(name: str, shape: Shape) -> None:
    for shown in few_shot(protocol_of(name), TOOLS, 4, shape).calls:
        document = read(shown, TOOLS)
        before = shown[: document.blocks[0].span[0]]
        assert re.search(r"\nI use `[\w]+` for this\.\n$", before)
        assert shown[document.blocks[0].span[1] :] == ""


def test_an_example_with_a_secret_is_not_shown() -> None:  # x-secret
    secret: dict[str, Json] = {"title": "x", "author": {"name": "y"}, "key": "hunter2"}
    tool = msgspec.structs.replace(EVERYTHING, examples=(Example("", secret),))
    for name in ("action", "tam", "vcp"):
        made = few_shot(protocol_of(name), (tool, READ), 5)
        assert "hunter2" not in made.text(5)
        assert made.left_out == (f"example 1 of report_build cannot be shown in {name}",)
        assert "hunter2" not in protocol_of(name).generate_tool_definitions((tool,))


@pytest.mark.parametrize(("name", "key"), [("vcp", "a b"), ("action", "a b"), ("vcp", "tool_name")])
def test_an_example_that_a_protocol_cannot_carry_is_said_to_be_left_out(name: str, key: str) -> None:
    tool = PromptTool("t", "d", schema([], **{key: text()}), (Example("", {key: "v"}),))
    made = few_shot(protocol_of(name), (tool,), 1)
    assert made.calls == ()
    assert made.left_out == (f"example 1 of t cannot be shown in {name}",)


def test_an_example_that_does_not_fit_its_own_schema_is_left_out() -> None:
    tool = PromptTool("t", "d", schema(["n"], n={"type": "integer"}), (Example("", {"n": "many"}),))
    for name in ("action", "tam", "vcp"):
        assert few_shot(protocol_of(name), (tool,), 1).calls == ()


def test_without_a_mistake_that_is_refused_there_is_no_correction_and_a_note() -> None:
    tool = PromptTool("t", "d", {}, (Example("", {"n": "1"}),))
    made = few_shot(protocol_of("action"), (tool,), 1)
    assert len(made.calls) == 1
    assert "corrected" in made.left_out[0]


def test_call_json_stands_alone() -> None:  # W14: it is a call only where nothing else stands in the answer
    protocol = protocol_of("json")
    made = few_shot(protocol, (GREET,), 1)
    (shown,) = made.calls
    assert (
        shown
        == '*A call of `skill_greet_player`*\n{"toolName": "skill_greet_player", "arguments": {"player_id": "player123"}}'
    )
    assert "First say" not in instructions(protocol)
    assert "nothing but JSON" in instructions(protocol)


def test_a_plug_ins_examples_read_back_too() -> None:  # V01
    if find_protocol(HERMES.id) is None:
        register(HERMES)
    made = few_shot(protocol_of("hermes"), TOOLS, 5)
    assert made.left_out == ()
    for shown in (*made.calls, made.closing[0]):
        document = read_text(
            shown, "hermes", ReadOptions(tools={t.name: ToolHint(t.name, t.parameters) for t in TOOLS})
        )
        assert document.calls
        assert all(call.executable for call in document.calls)


def test_a_wrong_call_differs_only_in_its_mistake() -> None:  # the unknown name must not bring a type hint with it
    tool = PromptTool(
        "sum",
        "Adds.",
        schema(["values"], values={"type": "array", "items": {"type": "number"}}),
        (Example("", {"values": [1, 2]}),),
    )
    (fixed, _none) = few_shot(protocol_of("tam"), [tool], 1).closing
    wrong, right = re.findall(r"<\|\[REQUEST_TOOL\]\|>\n(.*?)<\|\[END_TOOL\]\|>", fixed, re.DOTALL)
    differing = [pair for pair in zip(wrong.splitlines(), right.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(differing) == 1
    assert "type_hint" not in fixed


class _Plug:
    """A protocol that the instructions know nothing of: Hermes under another id."""

    id = "other"

    def __init__(self, text: str) -> None:
        self.markers = HERMES.markers
        self.text = text

    def write_calls(self, calls: object, options: object) -> Written:
        return Written(self.text)


@pytest.mark.parametrize("written", ["<call>tool(value)</call>", "<call>\ntool: value\n</call>"])
def test_a_plug_ins_instructions_show_a_made_up_call(written: str) -> None:  # V01
    shown = instructions(cast("CallProtocol", _Plug(written)))
    assert written in shown
    assert "in the examples" not in shown
    assert "in the examples" in instructions(cast("CallProtocol", _Plug("")))


def test_lists_and_objects_stand_as_the_instructions_name_first() -> None:
    """F11: `<item>` and tags, in the worked call and in both calls of the correction."""
    properties: dict[str, Json] = {
        "names": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"depth": {"type": "integer"}, "kind": {"type": "string"}}},
    }
    args: dict[str, Json] = {"names": ["a", "b"], "options": {"depth": 1, "kind": "x"}}
    tool = PromptTool("t", "d", {"type": "object", "properties": properties}, examples=(Example("An example.", args),))
    shown = few_shot(protocol_of("action"), [tool], 1).text(1)
    assert shown.count("<item>a</item>") == 3
    assert shown.count("<kind>x</kind>") == 3
    assert '["a"' not in shown and "{" not in shown.replace("{{", "")


def test_the_corrected_call_is_the_smallest_that_is_shown() -> None:
    """F11: the pair was a third to a half of the tokens of all examples."""
    schema_of: dict[str, Json] = {
        "type": "object",
        "properties": {"text_a": {"type": "string"}},
        "required": ["text_a"],
    }
    long = PromptTool("a:long", "d", schema_of, examples=(Example("Long.", {"text_a": "long words " * 50}),))
    short = PromptTool("b:short", "d", schema_of, examples=(Example("Short.", {"text_a": "few"}),))
    shown = few_shot(protocol_of("action"), [long, short], 2).text(2)
    assert shown.count("long words long words") > 0
    pair = shown.partition(CORRECTED)[2]
    assert "b:short" in pair and "a:long" not in pair
