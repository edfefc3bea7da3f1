"""``tool/convert`` as a host sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tests.rpc.inside import InsideClient
from tests.sample_tools import action, make_tool


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root = tmp_path_factory.mktemp("root")
    make_tool(root, "other:count", properties={"n": {"type": "integer"}})
    with InsideClient(root) as started:
        yield started


def test_a_text_is_converted_in_place_and_typed_by_registered_tools(client: Client) -> None:
    text = "See: " + action("other:count", n="7") + " done"
    made = client.request("tool/convert", {"text": text, "to": "vcp"})
    assert made == {
        "text": "See: <<<[TOOL_REQUEST]>>>\ntool_name:「始」other:count「末」,\nn:「始」7「末」\n<<<[END_TOOL_REQUEST]>>> done",
        "losses": [],
    }
    message = json.loads(client.request("tool/convert", {"text": text, "to": "openai"})["text"])
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"n": 7}


def test_calls_of_a_parse_are_converted_without_their_text(client: Client) -> None:
    parsed = client.request("tool/parse", {"text": action("other:count", n="7")})
    made = client.request("tool/convert", {"calls": parsed["calls"], "to": "tam"})
    assert made["text"] == "<|[REQUEST_TOOL]|>\ncommand:»»»other:count«««\nn:»»»7«««\n<|[END_TOOL]|>\n"
    assert made["losses"] == []


def test_typed_calls_and_inline_tools(client: Client) -> None:
    call = {"toolId": "new:tool", "args": {"tags": ["a", "b"], "deep": {"x": 1}}, "step": 2, "onError": "continue"}
    schema = {"type": "object", "properties": {"tags": {"type": "array"}, "deep": {"type": "object"}}}
    params: dict[str, Any] = {"calls": [call], "to": "action", "shape": "inputs"}
    bare = client.request("tool/convert", params)
    assert [(one["code"], one["path"]) for one in bare["losses"]] == [
        ("TC052", "/calls/0/step"),
        ("TC052", "/calls/0/onError"),
        ("TC054", "/calls/0/args/deep"),
    ]
    known = client.request("tool/convert", params | {"tools": [{"toolId": "new:tool", "parameters": schema}]})
    assert [one["code"] for one in known["losses"]] == ["TC052", "TC052"]


def test_a_call_that_may_not_run_is_left_out_with_a_loss(client: Client) -> None:  # ruling 1
    parsed = client.request("tool/parse", {"text": "<ACTION><a><p>1</p></a>", "complete": False})
    calls = [*parsed["calls"], {"toolId": "b", "args": {}}]
    made = client.request("tool/convert", {"calls": calls, "to": "action"})
    assert made["text"] == "<ACTION>\n  <b></b>\n</ACTION>\n"
    assert [(one["code"], one["path"]) for one in made["losses"]] == [("TC055", "/calls/0")]


def test_a_vendors_calls_are_taken_as_well(client: Client) -> None:  # W14
    openai = {"id": "c1", "type": "function", "function": {"name": "other:count", "arguments": '{"n": 7}'}}
    mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "b", "arguments": {"x": "<y>"}}}
    made = client.request("tool/convert", {"calls": [openai, mcp], "to": "action"})
    assert "<n>7</n>" in made["text"] and "<x><![CDATA[<y>]]></x>" in made["text"]
    assert [(one["code"], one["path"]) for one in made["losses"]] == [
        ("TC052", "/calls/0/meta/id"),
        ("TC052", "/calls/1/meta/id"),
    ]


def test_what_a_form_cannot_carry_is_refused_not_changed(client: Client) -> None:  # TC050, TC051
    calls = [{"toolId": "a", "args": {"filePath": "x"}}, {"toolId": "b", "args": {"x": "\u0001"}}]
    made = client.request("tool/convert", {"calls": calls, "to": "tam"})
    assert [(one["code"], one["path"]) for one in made["losses"]] == [("TC051", "/calls/0/args/filePath")]
    made = client.request("tool/convert", {"calls": calls, "to": "action"})
    assert [(one["code"], one["path"]) for one in made["losses"]] == [("TC050", "/calls/1/args/x")]
    assert made["text"].count("<a>") == 1


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"to": "tam"}, "give either text or calls"),
        ({"to": "tam", "text": "", "calls": []}, "give either text or calls"),
        ({"to": "xml", "text": ""}, "no target 'xml'"),
        ({"to": "tam", "calls": [{"args": {}}]}, "toolId must be a text that is not empty - at `/calls/0`"),
        ({"to": "tam", "text": "x", "protocol": "xml"}, "xml"),
        ({"to": "action", "text": "x", "shape": "round"}, "shape"),
        ({"text": "x"}, "to"),
    ],
)
def test_wrong_params_are_named(client: Client, params: dict[str, Any], words: str) -> None:
    with pytest.raises(RpcFailure) as caught:
        client.request("tool/convert", params)
    assert caught.value.code == -32602
    assert words in str(caught.value)


@pytest.mark.parametrize("alone", [True, False])
def test_a_vendors_message_is_taken_as_calls(client: Client, alone: bool) -> None:  # W14
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "echo", "arguments": f'{{"n": {n}}}'}} for n in (1, 2)
    ]
    message = {"role": "assistant", "content": "So:", "tool_calls": calls, "reasoning_content": "hm"}
    made = client.request("tool/convert", {"calls": message if alone else [message], "to": "openai"})
    assert json.loads(made["text"])["tool_calls"] == calls
    assert [one["path"] for one in made["losses"]] == ["/calls/0/reasoning_content", "/calls/0/content"]


def test_a_request_off_the_wire_keeps_its_number(client: Client) -> None:
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
    made = client.request("tool/convert", {"calls": [request], "to": "mcp"})
    assert (json.loads(made["text"]), made["losses"]) == (request, [])
