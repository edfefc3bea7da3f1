"""Conversion in place and to the vendors' call JSON: nothing around the blocks changes, every loss is named."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.base import PlainCall
from tamis.protocols.check import check_call
from tamis.protocols.contract import Loss
from tamis.protocols.convert.blocks import format_blocks
from tamis.protocols.convert.calls import VENDORS
from tamis.protocols.convert.convert import Conversion, ConvertOptions, convert, targets
from tamis.protocols.convert.plain import wire_call
from tamis.protocols.model import Document, Json, ReadOptions, ToolHint
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.corpus_adapter import tools as tools_of
from tests.protocols.nasty_texts import text as nasty_text
from tests.protocols.writer_helpers import plain_args

TEXTS = ("action", "tam", "vcp")
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
}
TOOLS = {"core:a": ToolHint("core:a", SCHEMA)}


def turned(text: str, to: str, options: ConvertOptions | None = None, **reading: Any) -> Conversion:
    options = options or ConvertOptions()
    return convert(read_text(text, "auto", ReadOptions(tools=options.tools, **reading)), to, options)


def codes(losses: list[Loss]) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in losses]


SOURCES = {
    "action": "Before é\r\n<ACTION><core:a><n>7</n><s>x &lt; y</s></core:a></ACTION> after\n",
    "tam": "Before é\r\n<|[REQUEST_TOOL]|>\ncommand:»»»core:a«««\nn:»»»7«««\ns:»»»x < y«««\n<|[END_TOOL]|> after\n",
    "vcp": "Before é\r\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」core:a「末」,\nn:「始」7「末」,\ns:「始」x < y「末」\n<<<[END_TOOL_REQUEST]>>> after\n",
}


@pytest.mark.parametrize("source", TEXTS)
@pytest.mark.parametrize("target", TEXTS)
def test_a_text_is_converted_in_place(source: str, target: str) -> None:  # P3, ruling 4
    made = turned(SOURCES[source], target)
    document = read_text(made.text)
    assert made.losses == []
    assert [(call.protocol, call.tool_id) for call in document.calls] == [(target, "core:a")]
    assert plain_args(document.calls[0], made.text) == {"n": "7", "s": "x < y"}
    assert made.text.startswith("Before é\r\n") and made.text.endswith(" after\n")
    assert turned(made.text, source).losses == []


def test_a_block_that_is_there_already_stays_byte_for_byte() -> None:
    for name, text in SOURCES.items():
        assert turned(text, name).text == text


@pytest.mark.parametrize("target", [*TEXTS, *VENDORS])
def test_a_text_without_calls_stays_as_it_is(target: str) -> None:
    text = "No call, but a `<ACTION>` in prose.\n"
    made = turned(text, target)
    if target in TEXTS:
        assert (made.text, made.losses) == (text, [])
    else:
        assert json.loads(made.text) is not None


def test_the_shape_of_action_can_be_asked_for() -> None:
    made = turned(SOURCES["action"], "action", ConvertOptions(shape="inputs"))
    assert read_text(made.text).calls[0].shape == "inputs"
    again = turned(made.text, "action", ConvertOptions(shape="tag"))
    assert read_text(again.text).calls[0].shape == "tag"


def test_names_that_are_no_tags_go_to_the_shape_that_carries_them() -> None:  # ruling 12
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»3d_print«««\nx:»»»1«««\n<|[END_TOOL]|>"
    made = turned(text, "action")
    assert not made.losses and read_text(made.text).calls[0].shape == "inputs"
    assert codes(turned(text, "action", ConvertOptions(shape="tag")).losses) == [("TC050", "/calls/0/toolId")]


def test_what_the_target_has_no_place_for_is_named() -> None:  # TC052
    text = (
        "<|[REQUEST_TOOL]|>\n# plan\ncomment:»»»why«««\nrequest_id:»»»r«««\ncommand_2:»»»a«««\non_error_2:»»»continue«««\n"
        "retry_2:»»»3«««\nx_2:»»»1«««\n<|[END_TOOL]|>"
    )
    for target in ("action", "vcp", "openai"):
        made = turned(text, target)
        assert codes(made.losses) == [
            ("TC052", "/calls/0/step"),
            ("TC052", "/calls/0/onError"),
            ("TC052", "/calls/0/retry"),
            ("TC052", "/calls/0/requestId"),
            ("TC052", "/comments/0"),
            ("TC052", ""),
        ]
        assert not made.refused
    assert "has no place for it" in turned(text, "vcp").losses[0].message


def test_an_argument_by_address_cannot_go_missing() -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»a«««\nuri_x:»»»fam://p/x«««\n<|[END_TOOL]|>"
    for target in ("action", "vcp", "mcp"):
        made = turned(text, target)
        assert codes(made.losses)[:1] == [("TC050", "/calls/0/uris/x")]
        assert made.refused
    assert turned(text, "action").text == text


def test_type_hints_are_applied_where_they_cannot_go_along() -> None:  # T22, ruling 56
    encoded = base64.b64encode("héllo".encode()).decode()
    text = (
        '<|[REQUEST_TOOL]|>\ncommand:»»»a«««\ntype_hint_x:»»»json«««\nx:»»»{"k": [1]}«««\n'
        f"type_hint_y:»»»base64«««\ny:»»»{encoded}«««\n<|[END_TOOL]|>"
    )
    made = json.loads(turned(text, "anthropic").text)
    assert made["content"][0]["input"] == {"x": {"k": [1]}, "y": encoded}
    broken = turned(text.replace(encoded, "?"), "vcp")
    assert ("TC052", "/calls/0/typeHints/y") in codes(broken.losses)


def test_types_that_no_schema_gives_back_are_named() -> None:  # TC054
    call = PlainCall("core:a", {"n": 7, "tags": ["x"], "s": "t"})
    assert codes(convert([call], "vcp").losses) == [("TC054", "/calls/0/args/n"), ("TC054", "/calls/0/args/tags")]
    assert codes(convert([call], "action").losses) == [("TC054", "/calls/0/args/n")]
    assert convert([call], "tam").losses == []
    assert convert([call], "vcp", ConvertOptions(TOOLS)).losses == []


def test_vendor_json_is_typed_by_the_schema() -> None:  # W14
    made = turned(SOURCES["vcp"], "openai", ConvertOptions(TOOLS))
    message = json.loads(made.text)
    assert message["role"] == "assistant" and message["content"] == "Before é\r\n after\n"
    call = message["tool_calls"][0]
    assert (call["type"], call["id"], call["function"]["name"]) == ("function", "call_1", "core_a")
    assert json.loads(call["function"]["arguments"]) == {"n": 7, "s": "x < y"}
    assert codes(made.losses) == [("TC053", "/calls/0/toolId"), ("TC052", "")]


def test_anthropic_keeps_texts_and_calls_in_order() -> None:
    made = turned("one " + SOURCES["tam"] + SOURCES["vcp"] + "end", "anthropic")
    kinds = [part["type"] for part in json.loads(made.text)["content"]]
    assert kinds == ["text", "tool_use", "text", "tool_use", "text"]
    texts = "".join(part.get("text", "") for part in json.loads(made.text)["content"])
    assert texts == "one Before é\r\n after\nBefore é\r\n after\nend"


def test_mcp_requests_keep_the_tool_id_that_they_cannot_use() -> None:  # interop 2.2
    calls = [PlainCall("core:a", {"x": "1"}), PlainCall("core_a", {}), PlainCall("core.a", {}), PlainCall("core:a", {})]
    requests = json.loads(convert(calls, "mcp").text)
    names = [one["params"]["name"] for one in requests]
    assert names == ["core_a_2", "core_a", "core_a_3", "core_a_2"]
    assert [one["params"].get("_meta", {}).get("dev.tamis/toolId") for one in requests] == [
        "core:a",
        None,
        "core.a",
        "core:a",
    ]
    assert json.loads(convert(calls[:1], "mcp").text)["method"] == "tools/call"


@pytest.mark.parametrize("vendor", VENDORS)
@given(tool=st.text(min_size=1, max_size=200), value=nasty_text)
def test_vendor_documents_are_json_with_names_that_fit(vendor: str, tool: str, value: str) -> None:
    made = convert([PlainCall(tool, {"x": value}), PlainCall(tool + "!", {"x": value})], vendor)
    document = json.loads(made.text)
    names = {
        "openai": lambda: [one["function"]["name"] for one in document.get("tool_calls", [])],
        "anthropic": lambda: [one["name"] for one in document["content"]],
        "mcp": lambda: [one["params"]["name"] for one in (document if isinstance(document, list) else [document])],
    }[vendor]()
    length = 128 if vendor == "anthropic" else 64
    assert all(0 < len(one) <= length and one.replace("-", "_").isascii() for one in names)
    assert len(set(names)) == len(names) or made.refused


@pytest.mark.parametrize("vendor", [*VENDORS, "json"])
@pytest.mark.parametrize("target", TEXTS)
def test_vendor_json_goes_back_into_a_text(vendor: str, target: str) -> None:  # W14
    calls = [PlainCall("core_a", {"n": 7, "tags": ["x", "<y>"]}), PlainCall("b", {})]
    tools = {"core_a": ToolHint("core_a", SCHEMA)}
    made = turned(convert(calls, vendor, ConvertOptions(tools)).text, target, ConvertOptions(tools))
    back = turned(made.text, vendor, ConvertOptions(tools))
    assert [call.tool_id for call in read_text(made.text).calls] == ["core_a", "b"]
    assert turned(back.text, target, ConvertOptions(tools)).text.strip() == made.text.strip()


def test_the_text_of_a_message_stands_around_its_calls() -> None:
    message = {"role": "assistant", "content": "I will look.", "tool_calls": [_tool_call("a", {"x": "1"})]}
    made = turned(json.dumps(message), "vcp")
    assert made.text.startswith("I will look.\n\n<<<[TOOL_REQUEST]>>>")
    assert codes(made.losses) == [("TC052", "/calls/0/meta/id")]


def _tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_a_vendors_ids_stay_between_vendors() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [_tool_call("a", {})]}
    assert json.loads(turned(json.dumps(message), "anthropic").text)["content"][0]["id"] == "c1"


def test_calls_that_would_not_run_are_left_with_the_reason() -> None:  # TC055, ruling 1
    cut = "x <ACTION><a><p>1</p>"
    made = turned(cut, "tam", complete=False)
    assert (made.text, codes(made.losses)) == (cut, [("TC055", "")])
    assert "cut off" in made.losses[0].message
    quoted = "<think>" + SOURCES["vcp"] + "</think>"
    made = turned(quoted, "action")
    assert (made.text, codes(made.losses), made.refused) == (quoted, [("TC057", "/calls/0")], False)


def test_a_block_is_converted_whole_or_not_at_all() -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand_1:»»»a«««\ncommand_2:»»»b«««\nuri_x_2:»»»fam://p«««\n<|[END_TOOL]|>"
    made = turned(text, "vcp")
    assert (made.text, codes(made.losses)) == (text, [("TC055", "/calls/0"), ("TC050", "/calls/1/uris/x")])


def test_a_fence_that_would_make_an_example_of_a_call_keeps_it_as_it_is() -> None:  # ruling 7
    text = "```\n<ACTION><a><p>1</p></a><!-- c --></ACTION>\n```\n"
    made = turned(text, "vcp")
    assert (made.text, codes(made.losses)) == (text, [("TC055", "/calls/0")])
    assert codes(turned(text, "tam").losses) == [("TC052", "/comments/0")]


def test_several_blocks_become_one_where_only_one_is_run() -> None:  # TC056, ruling 14
    text = SOURCES["vcp"] + SOURCES["tam"]
    made = turned(text, "action")
    assert codes(made.losses) == [("TC056", "")]
    assert [call.executable for call in read_text(made.text).calls] == [True, True]
    both = turned(text, "action", ConvertOptions(reading=ReadOptions(allow_multiple_blocks=True)))
    assert both.losses == [] and len(read_text(both.text).blocks) == 2
    mixed = turned(SOURCES["vcp"] + SOURCES["action"], "action")
    assert [call.executable for call in read_text(mixed.text).calls] == [True, True]


def test_calls_never_change_their_order_to_stand_in_one_block() -> None:  # ruling 14
    stays = "<|[REQUEST_TOOL]|>\ncommand:»»»b«««\nuri_x:»»»fam://p«««\n<|[END_TOOL]|>\n"
    made = turned(SOURCES["vcp"] + stays + SOURCES["tam"], "action")
    document = read_text(made.text)
    assert [(call.protocol, call.tool_id) for call in document.calls if call.executable] == [
        ("action", "core:a"),
        ("tam", "b"),
        ("tam", "core:a"),
    ]
    assert codes(made.losses) == [("TC050", "/calls/1/uris/x"), ("TC055", "/calls/2")]


def test_an_unknown_target_is_said_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="known: action, tam, vcp"):
        convert([], "xml")
    assert {"action", "tam", "vcp", "openai", "anthropic", "mcp"} <= set(targets())


@given(st.data())
def test_conversion_there_and_back_keeps_every_argument(data: st.DataObject) -> None:  # P3
    source, target = data.draw(st.sampled_from(TEXTS)), data.draw(st.sampled_from(TEXTS))
    args = data.draw(st.dictionaries(st.sampled_from(["x", "value", "x1", "command", "item"]), nasty_text, max_size=2))
    made = convert([PlainCall("T", dict(args))], source)
    if made.refused:
        return
    around = f"before\n{made.text}after"
    there = turned(around, target)
    back = turned(there.text, source)
    document = read_text(back.text)
    assert [plain_args(call, back.text) for call in document.calls] == [args]
    assert back.text.startswith("before\n") and back.text.endswith("after")


@pytest.mark.parametrize("rows", ["action_tag", "action_inputs", "tam", "vcp", "negatives"])
def test_the_corpus_is_converted_and_formatted_without_another_call(corpora: Path, rows: str) -> None:  # P2, P3
    for line in (corpora / "calls" / f"{rows}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        reading = ReadOptions(complete=row["finish_reason"] != "length", tools=tools_of(row))
        document = read_text(row["text"], "auto", reading)
        running = said(document)
        formatted = format_blocks(document, reading)
        again = read_text(formatted.text, "auto", reading)
        assert said(again) == running, row["id"]
        assert format_blocks(again, reading).text == formatted.text, row["id"]
        for target in (*TEXTS, *VENDORS, "json"):
            # The calls of a text that was cut off are judged where the cut is; what was made is whole.
            made = convert(document, target, ConvertOptions(reading.tools, reading=reading))
            if target not in TEXTS:
                json.loads(made.text or "null")
                continue
            there = said(read_text(made.text, "auto", reading))
            lost = any(one.code == "TC054" for one in made.losses)
            assert [name for name, _ in there] == [name for name, _ in running], row["id"]
            assert lost or there == running, row["id"]


def said(document: Document) -> list[tuple[str, dict[str, Json]]]:
    """The calls that would run, with their arguments under their type hints."""
    found: list[tuple[str, dict[str, Json]]] = []
    for call in document.calls:
        if call.executable:
            checked = check_call(call, document.text, compile_plan({}))
            found.append((call.tool_id, checked.coerced if checked.valid else call.args(document.text)))
    return found


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({}, "toolId must be"),
        ({"toolId": 5}, "toolId must be"),
        ({"toolId": "a", "args": []}, "args must be an object"),
        ({"toolId": "a", "step": "1"}, "step must be a whole number"),
        ({"toolId": "a", "onError": "maybe"}, "onError must be stop or continue"),
        ({"toolId": "a", "uris": {"x": 1}}, "uris must be an object of texts"),
    ],
)
def test_a_wire_call_that_is_none_says_what_is_wrong(call: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wire_call(call, {}, keep_hints=False)


MESSAGE: dict[str, Any] = {
    "role": "assistant",
    "content": "Let me see",
    "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "echo", "arguments": '{"text": "x"}'}}],
}


def test_the_line_end_of_a_json_file_is_no_text_of_its_message() -> None:
    made = turned(json.dumps(MESSAGE) + "\n", "openai")
    assert json.loads(made.text) == MESSAGE
    assert turned(made.text, "openai").text == made.text
    fenced = turned(f"```json\n{json.dumps(MESSAGE)}\n```\n", "anthropic")
    # ruling 53: a document in a fence is an example, and stays text
    assert [part["type"] for part in json.loads(fenced.text)["content"]] == ["text"]


@pytest.mark.parametrize("ident", [7, "7"])
def test_the_id_of_a_request_keeps_its_type(ident: int | str) -> None:
    params = {"name": "echo", "arguments": {"text": "x"}}
    request = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
    made = turned(json.dumps(request), "mcp")
    assert json.loads(made.text) == request
    assert made.losses == []
    assert json.loads(turned(json.dumps(request), "openai").text)["tool_calls"][0]["id"] == "7"


def test_every_member_that_a_vendor_says_beside_its_calls_is_named() -> None:  # TC052
    params = {"name": "echo", "arguments": {}, "_meta": {"progressToken": 1}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, "x": 1}
    assert codes(turned(json.dumps(request), "action").losses) == [
        ("TC052", "/calls/0/x"),
        ("TC052", "/calls/0/_meta"),
        ("TC052", "/calls/0/meta/id"),
    ]
    message = {**MESSAGE, "reasoning_content": "hm", "refusal": None, "annotations": []}
    made = turned(json.dumps(message), "openai")
    assert [one.message for one in made.losses] == [
        "The member 'reasoning_content' is not carried over to OpenAI's tool calls: it has no place for it"
    ]


def test_a_message_without_calls_has_no_list_of_them() -> None:
    assert json.loads(turned("echo nope\n", "openai").text) == {"role": "assistant", "content": "echo nope\n"}


@pytest.mark.parametrize(("to", "text"), [("action", "<ACTION></ACTION>"), ("tam", "<|[REQUEST_TOOL]|>\na:»»»1")])
def test_a_broken_block_of_the_target_itself_is_named(to: str, text: str) -> None:
    made = turned("x\n" + text, to)
    assert (made.text, made.refused) == ("x\n" + text, True)
    assert "2:1" in made.losses[0].message


def test_layout_has_the_line_ends_of_the_text_and_values_keep_theirs() -> None:
    text = "a\r\n<ACTION><T><p>1</p></T></ACTION>\r\n"
    document = read_text(text)
    assert format_blocks(document, ReadOptions()).text == (
        "a\r\n<ACTION>\r\n  <T>\r\n    <p>1</p>\r\n  </T>\r\n</ACTION>\r\n"
    )
    made = turned("a\r\n<ACTION><T><p>1&#10;2</p></T></ACTION>\r\n", "tam")
    assert plain_args(read_text(made.text).calls[0], made.text) == {"p": "1\n2"}


def test_the_formatter_names_the_error_and_writes_what_has_a_safe_fix() -> None:
    bare = '<|[REQUEST_TOOL]|>\n**command**: echo\n- text: "hello there"\n<|[END_TOOL]|>'
    left = format_blocks(read_text(bare), ReadOptions()).left
    assert [one.why for one in left] == ["Value of text is not delimited"]
    text = "<|[REQUEST_TOOL]|>\ncommand_1:»»»a«««\ncommand_2:»»»b«««\non_error_2:»»»contineu«««\n<|[END_TOOL]|>"
    done = format_blocks(read_text(text), ReadOptions())
    assert done.left == []
    assert "contineu" not in done.text
    assert [call.on_error for call in read_text(done.text).calls] == [call.on_error for call in read_text(text).calls]
