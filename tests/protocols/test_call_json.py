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
from tamis.protocols.catalogue import message, severity
from tamis.protocols.model import ReadOptions, ToolHint
from tamis.protocols.passed_over import notes_of
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits, safe_edits
from tests.growth import growth
from tests.protocols.hermes_slips import slips
from tests.protocols.json_calls import CALLS, check_spans, executable_calls, read
from tests.protocols.reader_helpers import codes, runnable
from tests.protocols.streams import check_stream

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
TWO_NAMED = [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
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
@pytest.mark.parametrize("form", ["{}", " \n{}\n", "\ufeff{}"])
def test_a_document_that_can_be_nothing_else_is_read_by_auto(
    value: object, calls: list[Any], ids: list[str], form: str
) -> None:
    text = form.replace("{}", json.dumps(value, ensure_ascii=False, indent=1), 1)
    document = read(text, "auto")
    assert repr(runnable(document)) == repr(calls)
    assert [call.meta["id"] for call in document.calls if call.meta] == ids
    assert codes(document) == []
    assert {call.protocol for call in document.calls} == {"json"}
    check_spans(document)


@pytest.mark.parametrize("value", [row[1] for row in SURE], ids=[row[0] for row in SURE])
@pytest.mark.parametrize("form", ["```json\n{}\n```", "~~~\n{}\n~~~\n"])
def test_a_fenced_document_is_shown_and_read_when_json_is_asked_for(value: object, form: str) -> None:
    """Ruling 53."""
    text = form.replace("{}", json.dumps(value, ensure_ascii=False, indent=1), 1)
    assert (runnable(read(text, "auto")), codes(read(text, "auto"))) == ([], ["TC019"])
    assert repr(runnable(read(text, "json"))) == repr(runnable(read(json.dumps(value), "json")))


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_a_message_of_somebody_else_is_no_request(role: str) -> None:
    """Ruling 53."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    text = json.dumps({"role": role, "content": None, "tool_calls": [call]})
    assert (runnable(read(text, "auto")), codes(read(text, "auto"))) == ([], ["TC018"])
    assert runnable(read(text.replace(f'"{role}"', '"assistant"', 1), "auto")) == [("f", {})]


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter"])
@pytest.mark.parametrize("key", ["finish_reason", "stop_reason"])
def test_an_answer_that_says_that_it_was_cut_runs_nothing(key: str, reason: str) -> None:
    """Ruling 53."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    for value in ({"choices": [{"message": message, key: reason}]}, {**message, key: reason}):
        document = read(json.dumps(value), "auto")
        assert runnable(document) == []
        assert "TC001" in codes(document)
    assert runnable(read(json.dumps({"choices": [{"message": message, key: "tool_calls"}]}), "auto")) == [("f", {})]


def test_a_call_without_arguments_is_an_error_unless_its_tool_takes_none() -> None:
    """Ruling 53."""
    text = '{"type": "function_call", "name": "f"}'
    assert runnable(read(text, "auto")) == []
    assert runnable(
        read_text(text, "auto", ReadOptions(tools={"f": ToolHint("f", {"type": "object", "properties": {}})}))
    ) == [("f", {})]


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
    assert codes(read(text, "auto")) == ["TC019"]
    assert codes(read(text, "auto", fenced_calls="run")) == ["TC008"]
    ignored = read(text, "auto", fenced_calls="ignore")
    assert (runnable(ignored), codes(ignored)) == ([], ["TC019"])


FENCED = {
    "json": "I call it:\n```json\n{}\n```\nDone.",
    "no word": "I call it:\n\n```\n{}\n```\n",
    "tildes": "I call it:\n~~~~ json title\n\n  {}\n\n~~~~~\n",
    "in a list": "1. first\n   ```json\n   {}\n   ```\n2. then",
    "behind another": "```py\nx\n```\n\n```json\n{}\n```\nx",
    "line ends of Windows": "I call it:\r\n```json\r\n{}\r\n```\r\nDone.",
}


@pytest.mark.parametrize("around", FENCED.values(), ids=FENCED)
@pytest.mark.parametrize("protocol", ["auto", "tam", "json"])
def test_call_json_in_a_fence_between_prose_is_set_aside_with_a_reason(protocol: str, around: str) -> None:
    """Rulings 53, 54: it never runs, a hint says why, in a stream too, and the model is told."""
    for value in (SEED, TWO_NAMED, CHAT):
        text = around.replace("{}", json.dumps(value))
        document = read(text, protocol)
        assert (runnable(document), codes(document)) == ([], ["TC019"])
        (diagnostic,) = document.diagnostics
        assert severity(diagnostic) == "hint" and text[diagnostic.span[0]] in "{["
        (note,) = notes_of(document)
        assert note.kind == "setAside" and "not executed" in note.text and "outside of a fence" in note.text
    check_stream([text[at : at + 5] for at in range(0, len(text), 5)], protocol)


@pytest.mark.parametrize(
    "inner",
    [
        '{"a": 1}',
        '{"name": "x", "version": "1"}',
        '{"name": "x", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "x", "arguments": ',
        "[1, 2]",
        "[text](link)",
        "",
    ],
)
def test_other_json_in_a_fence_is_no_call(inner: str) -> None:  # ruling 53
    assert codes(read(f"See:\n```json\n{inner}\n```\nDone.", "auto")) == []


def test_call_json_in_a_fence_within_a_value_is_text() -> None:
    """Rulings 44, 53: the value belongs to its call; what stands behind it is looked at again."""
    fenced = f"```json\n{json.dumps(SEED)}\n```\n"
    block = f"<|[REQUEST_TOOL]|>\ncommand:»»»t«««\nq:»»»a\n{fenced}«««\n<|[END_TOOL]|>\n"
    assert codes(read(block, "auto")) == []
    assert codes(read(f"{block}Then:\n{fenced}x", "auto")) == ["TC019"]


@pytest.mark.slow
def test_fences_of_json_cost_in_proportion_to_their_number() -> None:  # ruling 10
    for unit in ("```json\n{}\n```\n", f"```json\n{json.dumps(SEED)}\n```\n", "~~~ x ", "```\n\n{ ", "```json\n{\n"):
        assert growth(lambda n, unit=unit: "a\n" + unit * n, read_text, 300) <= 8


def test_asked_for_json_a_text_that_is_none_says_why() -> None:
    assert codes(read('{"a": 1}', "json")) == ["HM601"]
    assert codes(read("[1, 2]", "json")) == ["HM602"]
    assert codes(read('{"name": "f" "arguments": {}}', "json")) == ["HM603"]
    assert codes(read("plain prose", "json")) == []


BROKEN = {
    "no comma": '{"toolName": "f" "arguments": {"a": 1}}',
    "quotes in a text": '{"toolName": "f", "arguments": {"a": "say "hi", now"}}',
    "a bare call": '{"name": "f", "arguments": {"a": "say "hi" now"}}',
    "a bare call that is not closed": '{"name": "f", "arguments": {"a": 1}',
    "a bracket too many": '{"toolName": "f", "arguments": {"a": 1}}}\n',
    "no value": '[{"name": "f", "arguments": {"a": }}]',
    "no comma in a list": '[{"name": "f", "arguments": {}} {"name": "g", "arguments": {}}]',
    "a call a line": '{"toolName": "f", "arguments": {}}\n{"toolName": "g", "arguments": {}}',
    "no escape": '{"name": "f", "parameters": {"path": "C:\\x"}}',
    "OpenAI, quotes in a text": '{"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{"a": 1}"}}]}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_call_json_with_a_fault_is_told_and_runs_nothing(text: str) -> None:  # rulings 53, 54
    document = read(text, "auto")
    assert (runnable(document), document.blocks, codes(document)) == ([], [], ["TC029"])
    (found,) = document.diagnostics
    assert severity(found) == "warning" and 'the protocol "json" reads it' in message(found)
    (note,) = notes_of(document)
    assert note.kind == "setAside" and "This call was not run" in note.text
    fenced = read(f"```json\n{text}\n```\n", "auto")
    assert (runnable(fenced), codes(fenced)) == ([], ["TC029"])
    assert severity(fenced.diagnostics[0]) == "hint"
    check_stream([text[at : at + 5] for at in range(0, len(text), 5)])


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1 "b": 2}',
        '{"name": "x" "version": "1", "arguments": 2',
        '{"name": "x" "description": "d", "parameters": {"a": 1}}',
        '{"name": "x" "parameters": {"type": "object", "properties": {}}}',
        '{"name": "f", "arguments": {}} is how a call is written, {"name": "f" …}',
        '[{"name": "f", "arguments": {}}](link) and more',
        '{"role": "user" "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]}',
        'As in {"toolName": "f" "arguments": {}}',
        'See:\n```json\n{"toolName": "f" "arguments": {}}\n```\nDone.',
    ],
)
def test_other_json_with_a_fault_and_prose_are_no_calls(text: str) -> None:  # rulings 44, 53
    assert codes(read(text, "auto")) == []


@pytest.mark.slow
def test_call_json_with_a_fault_is_looked_at_in_time_in_proportion_to_its_length() -> None:  # ruling 10
    for unit in ('{"toolName": "f", "arguments": {}}\n', '{"name": "f" "arguments": {}},', '"arguments" {'):
        assert growth(lambda n, unit=unit: "[" + unit * n, read_text, 300) <= 8
        assert growth(lambda n, unit=unit: unit * n, read_text, 300) <= 8


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


@pytest.mark.slow
@given(CALLS)
def test_what_is_written_reads_back_equal(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """P1."""
    written = JSON.write_calls([PlainCall(name, args) for name, args in calls], WriteOptions())
    assert not written.refusals
    assert repr(executable_calls(written.text, "auto")) == repr(calls)


@pytest.mark.slow
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
