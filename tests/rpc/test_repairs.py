"""``tool/repair`` and ``tool/explain`` over a real process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tamis.protocols.model import Edit
from tamis.protocols.repair import apply_edits
from tests.rpc.inside import InsideClient

BLOCK = "好😀\n<|[REQUEST_TOOL]|>\ncommand：»»»T.t«««\nx:>>>1<<<\n<|[END_TOOL]|>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    root: Path = tmp_path_factory.mktemp("root")
    with InsideClient(root) as started:
        yield started


def edits(found: list[dict[str, Any]]) -> list[Edit]:
    return [Edit(*edit["range"]["offset"], edit["newText"]) for edit in found]


# P4
def test_a_text_is_repaired_and_says_the_same(client: Client) -> None:
    before = client.request("tool/parse", {"text": BLOCK})
    done = client.request("tool/repair", {"text": BLOCK})
    assert done["text"] == BLOCK.replace("：", ":").replace(">>>", "»»»", 1).replace("1<<<", "1«««")
    assert apply_edits(BLOCK, edits(done["edits"])) == done["text"]
    assert [call["args"] for call in done["calls"]] == [call["args"] for call in before["calls"]] == [{"x": "1"}]
    assert done["calls"][0]["repairs"] == []
    assert client.request("tool/parse", {"text": done["text"]})["diagnostics"] == []


# ruling 9
def test_ranges_of_the_repaired_calls_are_places_in_the_repaired_text(client: Client) -> None:
    done = client.request("tool/repair", {"text": BLOCK})
    start, end = done["calls"][0]["argRanges"]["/x"]["offset"]
    assert done["text"][start:end] == "1"


def test_a_text_with_nothing_to_repair_comes_back_as_it_is(client: Client) -> None:
    assert client.request("tool/repair", {"text": "Just text."}) == {"edits": [], "text": "Just text.", "calls": []}


# F1
def test_a_cut_text_is_not_closed(client: Client) -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»T.t«««"
    assert client.request("tool/repair", {"text": text})["text"] == f"{text}\n<|[END_TOOL]|>"
    cut = client.request("tool/repair", {"text": text, "complete": False})
    assert (cut["text"], cut["edits"], cut["calls"][0]["executable"]) == (text, [], False)


def test_assumptions_and_alternatives_are_explained(client: Client) -> None:
    text = BLOCK.replace("x:>>>1<<<", "x:>>>1<<<\ny:»»»1«««\ny:»»»2«««")
    found = client.request("tool/explain", {"text": text})
    assert [one["code"] for one in found["assumptions"]] == ["TM220", "TM210", "TC060"]
    assert [one["calls"] for one in found["assumptions"]] == [[0], [0], [0]]
    (other,) = found["alternatives"]
    assert (other["title"], other["slug"]) == ("The first one is used", "duplicate-param")
    assert other["calls"] == [{"protocol": "tam", "toolId": "T.t", "args": {"x": "1", "y": "1"}, "step": 1}]
    assert "y:»»»2" not in apply_edits(text, edits(other["edits"]))


def test_an_option_is_named_for_a_block_that_was_set_aside(client: Client) -> None:
    found = client.request("tool/explain", {"text": f"<think>{BLOCK}</think>"})
    assert [one["options"] for one in found["alternatives"]] == [{"reasoningCalls": "run"}]
    run = client.request("tool/parse", {"text": f"<think>{BLOCK}</think>", "options": {"reasoningCalls": "run"}})
    assert run["calls"][0]["executable"]


def test_inline_tools_guide_the_reading(client: Client) -> None:
    text = "<|[REQUEST_TOOL]|>\ncommand:»»»T.t«««\nScript-Path:»»»a«««\n<|[END_TOOL]|>"
    tools = [{"toolId": "T.t", "parameters": {"type": "object", "properties": {"scriptPath": {"type": "string"}}}}]
    done = client.request("tool/repair", {"text": text, "tools": tools})
    assert done["calls"][0]["args"] == {"scriptPath": "a"}


@pytest.mark.parametrize("method", ["tool/repair", "tool/explain"])
def test_a_wrong_protocol_is_the_requests_fault(client: Client, method: str) -> None:
    with pytest.raises(RpcFailure) as caught:
        client.request(method, {"text": "x", "protocol": "none"})
    assert caught.value.code == -32602
