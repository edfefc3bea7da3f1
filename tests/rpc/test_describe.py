"""``tool/describe as``: a tool in the forms of others, with what each cannot hold (interface, interop §2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.client import Client
from tests.protocols.export_rules import faults
from tests.rpc.inside import InsideClient
from tests.rpc.process import failure
from tests.sample_tools import make_tool

FORMS = ["native", "mcp", "openai", "openaiStrict", "anthropic", "gemini", "cursor", "smolagents", "vcp"]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    make_tool(
        tmp_path, "core:echo", properties={"text": {"type": "string"}, "o": {"type": "object"}}, required=["text"]
    )
    make_tool(tmp_path / "other", "core_echo")
    with InsideClient(root=str(tmp_path)) as client:
        yield client


def test_every_form_that_initialize_names_is_given(client: Client) -> None:
    for form in FORMS[1:-1]:
        described = client.request("tool/describe", {"toolId": "core:echo", "as": form})
        assert set(described) == {"definition", "losses", "tokens"}
        assert faults(form, described["definition"]) == []
        body = described["definition"].get("function", described["definition"])
        # among all tools of the registry, whichever is asked for
        assert body["name"] == "core_echo_2"
        assert described["tokens"] > 20
        assert all(set(loss) == {"code", "path", "message"} for loss in described["losses"])
    codes = {
        form: {loss["code"] for loss in client.request("tool/describe", {"toolId": "core:echo", "as": form})["losses"]}
        for form in FORMS
    }
    assert codes["native"] == codes["mcp"] == set()
    assert "free-object" in codes["openaiStrict"] & codes["gemini"]
    assert "name-changed" in codes["openai"] & codes["anthropic"]


def test_the_form_of_vcp_is_the_text_of_a_definition_block(client: Client) -> None:  # V23, V33
    text = client.request("tool/describe", {"toolId": "core:echo", "as": "vcp"})["definition"]
    assert text.startswith("<<<[TOOL_DEFINITION]>>>")
    assert "tool_name:「始」core:echo「末」" in text


def test_another_form_is_wrong_params(client: Client) -> None:
    assert failure(client, "tool/describe", {"toolId": "core:echo", "as": "yaml"}).code == -32602
    assert failure(client, "tool/describe", {"toolId": "nope", "as": "mcp"}).code == 1001


def test_initialize_names_the_forms(tmp_path: Path) -> None:
    with InsideClient(root=str(tmp_path)) as client:
        told = client.request("initialize", {"capabilities": {}})
    assert told["capabilities"]["experimental"]["tamis"]["exports"] == FORMS
