"""``prompt/grammar`` over a real process, and ``tamis prompt --grammar``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure
from tests.cli.process import tamis
from tests.protocols.gbnf_machine import parse
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grammars")
    make_tool(folder, "test:echo", aliases=["test_echo"], tags=["a"], required=["text"])
    make_tool(folder, "other:count", properties={"n": {"type": "integer"}}, tags=["b"])
    return folder


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[Client]:
    with InsideClient(root) as started:
        yield started


def text_of(client: Client, **params: Any) -> str:
    result = client.request("prompt/grammar", params)
    assert list(result) == ["text"]
    return result["text"]


@pytest.mark.parametrize("shape", ["tag", "inputs"])
@pytest.mark.parametrize("protocol", ["action", "tam", "vcp", "json"])
def test_every_protocol_has_a_grammar(client: Client, protocol: str, shape: str) -> None:
    grammar = parse(text_of(client, protocol=protocol, format="gbnf", shape=shape))
    assert grammar.undefined() == grammar.unused() == set()


def test_the_grammar_takes_the_call_that_runs(client: Client) -> None:
    grammar = parse(text_of(client, protocol="action", format="gbnf"))
    text = "<ACTION>\n  <test_echo>\n    <text>hi</text>\n  </test_echo>\n</ACTION>"
    assert grammar.accepts(text)
    found = client.request("tool/parse", {"text": text})
    assert [call["executable"] for call in found["calls"]] == [True]
    assert not grammar.accepts(text.replace("test_echo", "test_ecko"))


def test_tools_are_chosen_as_for_a_prompt(client: Client) -> None:
    assert "other:count" not in text_of(client, protocol="vcp", format="gbnf", toolIds=["test_echo"])
    assert "test:echo" not in text_of(client, protocol="vcp", format="gbnf", filter={"tags": ["b"]})
    schema = json.loads(text_of(client, format="jsonSchema", toolIds=["other:count"]))
    assert [one["properties"]["toolName"] for one in schema["anyOf"]] == [{"const": "other:count"}]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"format": "gbnf", "toolIds": ["test:ecko"]}, "no tool 'test:ecko', did you mean 'test:echo'?"),
        ({"format": "gbnf", "protocol": "acton"}, "did you mean 'action'?"),
        ({"format": "bnf"}, "`/format"),
        ({}, "format"),
        ({"format": "jsonSchema", "filter": {"tags": ["none"]}}, "no tool fits"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(client: Client, params: dict[str, Any], words: str) -> None:
    with pytest.raises(RpcFailure) as caught:
        client.request("prompt/grammar", params)
    assert caught.value.code == -32602
    assert words in str(caught.value)


def test_the_command_prints_the_same_text(client: Client, root: Path) -> None:
    done = tamis("prompt", "--protocol", "tam", "--grammar", "gbnf", cwd=root)
    assert (done.returncode, done.stdout) == (0, text_of(client, protocol="tam", format="gbnf"))
    done = tamis("prompt", "--grammar", "jsonSchema", "--json", cwd=root)
    assert json.loads(done.stdout) == {"text": text_of(client, format="jsonSchema")}
    assert tamis("prompt", "--grammar", "gbnf", "--tool", "nobody", cwd=root).returncode == 2
    assert tamis("prompt", "--grammar", "gbnf", "--tag", "nobody", cwd=root).returncode == 1
