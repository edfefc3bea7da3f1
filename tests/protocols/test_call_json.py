"""Call JSON (W14): a text that is one document of calls, in the forms of seed 004, OpenAI, Anthropic and MCP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PlainCall, WriteOptions
from tamis.protocols.calljson.plain import read_call_json
from tamis.protocols.calljson.protocol import JSON
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits, safe_edits
from tests.growth import growth
from tests.protocols.json_calls import CALLS, check_spans, executable_calls, read
from tests.protocols.reading import codes, runnable
from tests.protocols.test_hermes_properties import slips

SEED = {"toolName": "workflow:summarize_text", "arguments": {"text_to_summarize": "…", "n": 3}}
CHAT = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1, "x\\ny"], "路": true}'}},
        {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ],
}
TWO = [("f", {"a": [1, "x\ny"], "路": True}), ("g", {})]
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1.5}}
MCP = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "f", "arguments": {"a": None}}}

SURE: list[tuple[str, Any, list[Any], list[str]]] = [
    ("seed 004", SEED, [("workflow:summarize_text", SEED["arguments"])], []),
    ("seed 004, several", [SEED, SEED], [("workflow:summarize_text", SEED["arguments"])] * 2, []),
    ("OpenAI message", CHAT, TWO, ["call_1", "call_2"]),
    ("OpenAI list", CHAT["tool_calls"], TWO, ["call_1", "call_2"]),
    ("OpenAI call", CHAT["tool_calls"][0], TWO[:1], ["call_1"]),
    (
        "OpenAI, arguments as an object",
        {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
        [("f", {"a": 1})],
        [],
    ),
    (
        "OpenAI, old",
        {"role": "assistant", "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        [("f", {"a": 1})],
        [],
    ),
    (
        "Responses",
        [
            {"type": "reasoning", "summary": []},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_9",
                "name": "f",
                "arguments": '{"a": 1}',
                "status": "completed",
            },
        ],
        [("f", {"a": 1})],
        ["call_9"],
    ),
    ("Anthropic block", TOOL_USE, [("f", {"a": 1.5})], ["toolu_1"]),
    ("Anthropic content", [{"type": "text", "text": "I look."}, TOOL_USE], [("f", {"a": 1.5})], ["toolu_1"]),
    (
        "Anthropic message",
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, TOOL_USE]},
        [("f", {"a": 1.5})],
        ["toolu_1"],
    ),
    ("MCP", MCP, [("f", {"a": None})], ["7"]),
    ("MCP batch", [MCP, MCP], [("f", {"a": None})] * 2, ["7", "7"]),
]
OPEN: list[tuple[str, Any, list[Any]]] = [
    ("Hermes", {"name": "f", "arguments": {"a": 1}}, [("f", {"a": 1})]),
    ("list", [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}], [("f", {"a": 1}), ("g", {})]),
    ("MCP params", {"name": "f", "arguments": {"a": 1}, "_meta": {}}, [("f", {"a": 1})]),
    ("input", {"name": "f", "input": {"a": 1}}, [("f", {"a": 1})]),
]


@pytest.mark.parametrize(("value", "calls", "ids"), [row[1:] for row in SURE], ids=[row[0] for row in SURE])
@pytest.mark.parametrize("form", ["{}", " \n{}\n", "```json\n{}\n```", "\ufeff{}", "~~~\n{}\n~~~\n"])
def test_a_document_that_can_be_nothing_else_is_read_by_auto(
    value: object, calls: list[Any], ids: list[str], form: str
) -> None:
    text = form.replace("{}", json.dumps(value, ensure_ascii=False, indent=1), 1)
    document = read(text, "auto")
    assert repr(runnable(document)) == repr(calls)
    assert [call.meta["id"] for call in document.calls if call.meta] == ids
    assert set(codes(document)) <= {"TC008"}
    assert {call.protocol for call in document.calls} == {"json"}
    check_spans(document)


@pytest.mark.parametrize(("value", "calls"), [row[1:] for row in OPEN], ids=[row[0] for row in OPEN])
def test_a_form_that_could_be_something_else_needs_the_protocol_json(value: object, calls: list[Any]) -> None:
    text = json.dumps(value)
    assert executable_calls(text, "auto") == []
    assert executable_calls(text, "json") == calls


@pytest.mark.parametrize(
    "text",
    [
        "Call this: " + json.dumps(SEED),
        json.dumps(SEED) + " now",
        f"```json\n{json.dumps(SEED)}\n```\nThat is how.",
        f"For example:\n```json\n{json.dumps(SEED)}\n```",
        json.dumps(SEED) + "\n" + json.dumps(SEED),
    ],
)
@pytest.mark.parametrize("protocol", ["auto", "json"])
def test_json_inside_prose_is_never_a_call(text: str, protocol: str) -> None:
    assert executable_calls(text, protocol) == []


@pytest.mark.parametrize(
    "value",
    [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}},
        },
        [{"name": "f", "description": "d", "inputSchema": {"type": "object"}}],
        {"jsonrpc": "2.0", "method": "tools/list", "params": {}},
        {"role": "assistant", "content": "text"},
        {"toolName": "f"},
        {"toolName": "f", "displayName": "F", "parameters": {}},
        [1, 2, 3],
        {"tool_calls": []},
        [SEED, 5],
    ],
)
def test_other_json_is_not_a_call(value: object) -> None:
    document = read(json.dumps(value), "auto")
    assert document.calls == []
    assert document.blocks == []


def test_a_place_in_arguments_that_are_text_is_exact() -> None:
    """Ruling 9, through the escapes of the text that holds them."""
    text = json.dumps(CHAT, ensure_ascii=False)
    param = read(text, "auto").calls[0].params[0]
    assert text[slice(*param.name_span)] == "a"
    assert [text[slice(*value.span)] for _, value in param.value.walk()] == ['[1, \\"x\\\\ny\\"]', "1", "x\\\\ny"]


def test_a_block_inside_an_argument_is_text() -> None:
    """F16."""
    text = json.dumps({"toolName": "write", "arguments": {"text": "<ACTION><rm><p>/</p></rm></ACTION>"}})
    assert executable_calls(text, "auto") == [("write", {"text": "<ACTION><rm><p>/</p></rm></ACTION>"})]


def test_what_is_cut_off_never_runs() -> None:
    """Ruling 1, F2."""
    text = json.dumps(SEED)
    for end in range(len(text)):
        assert executable_calls(text[:end], "auto") == []
        assert executable_calls(text[:end], "json") == []
    assert executable_calls(text, "auto", complete=False) == [], "prose could follow, and then it would be none"
    assert read(text[:-5], "auto").blocks[0].state == "truncated"


@pytest.mark.parametrize(
    "text",
    [
        '{"arguments": {"text": "<ACTION><rm><p>/</p></rm></ACTION> and"}, "toolName": "write"}',
        '{"toolName": "write", "arguments": {"text": "<ACTION><rm><p>/</p></rm></ACTION>\nand"}}',
        '```json\n{"arguments": {"text": "<ACTION><rm><p>/</p></rm></ACTION> and"}, "toolName": "write"}\n```',
    ],
)
def test_no_prefix_runs_what_stands_in_an_argument(text: str) -> None:
    """P9: what looks like a block may turn out to be text."""
    assert [name for name, _ in executable_calls(text, "auto")] == ["write"]
    for end in range(len(text)):
        assert executable_calls(text[:end], "auto", complete=False) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'toolName': 'f', 'arguments': {'a': True,},}", "HM609"),
        ('{"toolName": "f", "arguments": "{\\"a\\": true}"}', "HM605"),
        ('{"toolName": "f", "arguments": {"a": true} // so\n}', "HM612"),
        ('{"toolName": "f", "args": {"a": true}, "arguments": null}', "HM602"),
    ],
)
def test_slips_are_repaired_as_in_every_json_call(text: str, expected: str) -> None:
    document = read(text, "auto")
    assert expected in codes(document)
    if expected == "HM602":
        assert runnable(document) == []
        return
    assert runnable(document) == [("f", {"a": True})]
    fixed = read(apply_edits(text, safe_edits(document.diagnostics)), "auto")
    assert (runnable(fixed), codes(fixed)) == ([("f", {"a": True})], [])


def test_without_arguments_an_empty_object_is_read_with_a_warning() -> None:
    text = '{"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]}'
    document = read(text, "auto")
    assert (runnable(document), codes(document)) == ([("f", {})], ["HM619"])
    assert codes(read(apply_edits(text, safe_edits(document.diagnostics)), "auto")) == []


def test_fences_are_read_as_the_options_say() -> None:
    """Ruling 7."""
    text = f"```json\n{json.dumps(SEED)}\n```"
    assert codes(read(text, "auto")) == ["TC008"]
    ignored = read(text, "auto", fenced_calls="ignore")
    assert (runnable(ignored), codes(ignored)) == ([], ["TC009"])


def test_asked_for_json_a_text_that_is_none_says_why() -> None:
    assert codes(read('{"a": 1}', "json")) == ["HM601"]
    assert codes(read("[1, 2]", "json")) == ["HM602"]
    assert codes(read('{"name": "f" "arguments": {}}', "json")) == ["HM603"]
    assert codes(read("plain prose", "json")) == []


def test_calls_for_conversion_come_from_texts_and_values() -> None:
    for given_json in (json.dumps(CHAT), CHAT):
        found = read_call_json(given_json)
        assert [(call.tool_id, call.args, call.meta["id"]) for call in found.calls] == [
            (*TWO[0], "call_1"),
            (*TWO[1], "call_2"),
        ]
        assert found.diagnostics == ()
    broken = read_call_json([{"name": "f", "arguments": [1]}])
    assert broken.calls == ()
    assert [diag.code for diag in broken.diagnostics] == ["HM606"]
    assert read_call_json("no JSON").calls == ()


@given(CALLS)
def test_what_is_written_reads_back_equal(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """P1."""
    written = JSON.write_calls([PlainCall(name, args) for name, args in calls], WriteOptions())
    assert not written.refusals
    assert repr(executable_calls(written.text, "auto")) == repr(calls)


@given(CALLS, st.integers(0, 2**32), st.sampled_from(["toolName", "openai"]))
def test_broken_documents_give_places_and_sound_fixes(
    calls: list[tuple[str, dict[str, Any]]], seed: int, form: str
) -> None:
    import random

    contents = [
        {"toolName": name, "arguments": args}
        if form == "toolName"
        else {"type": "function", "function": {"name": name, "arguments": json.dumps(args, ensure_ascii=False)}}
        for name, args in calls
    ]
    text = slips(json.dumps(contents, ensure_ascii=False), random.Random(seed))
    document = read(text, "auto")
    check_spans(document)
    edits = safe_edits(document.diagnostics)
    if edits:
        again = read(apply_edits(text, edits), "auto")
        assert repr(runnable(again)) == repr(runnable(document))
    # Where a slip ends the document early, what follows is prose, and a block that a value quoted is a block of the text.
    whole = [repr(call) for call in executable_calls(text, "auto")]
    for end in range(0, len(text), 11):
        assert [call for call in executable_calls(text[:end], "auto", complete=False) if repr(call) not in whole] == []


def test_time_is_linear_in_the_text() -> None:
    """Ruling 10; also for JSON that is no call, and for text that only begins like it."""
    rows = [
        ('{"toolName":"f","arguments":{"a":[', "1,", "1]}}"),
        ('[{"type":"function","function":{"name":"f","arguments":"{', '\\"a\\":\\"x\\\\n\\",', '\\"b\\":1}"}}]'),
        ('{"toolName":"f","arguments":{"a":"', "\\n", '"}}'),
        ("[", "{", ""),
        ('{"', '\\"', ""),
        ("```\n", "{", ""),
        ("[note] ", "word it's ", ""),
    ]
    for head, unit, tail in rows:
        text = lambda size, head=head, unit=unit, tail=tail: head + unit * (size // len(unit)) + tail  # noqa: E731
        assert growth(text, lambda one: read(one, "auto", complete=False), 10_000) <= 8, (head, unit)


def test_an_openai_response_with_one_choice_is_read() -> None:
    call = {"id": "call_9", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}}
    found = read_text(json.dumps({"object": "chat.completion", "choices": [choice]}), "json").calls
    assert [(one.tool_id, one.meta, one.executable) for one in found] == [("t", {"id": "call_9"}, True)]
    # Several choices are alternatives: none of them is run.
    assert read_text(json.dumps({"choices": [choice, choice]}), "json").calls == []
