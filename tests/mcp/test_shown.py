"""Prompts, resources, completion (mcp, Server)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.raw_client import RawClient
from tests.sample_tools import make_tool

SECRET = {"key": {"type": "string", "x-secret": True, "default": "hidden-value"}, "unit": {"enum": ["m", "mm", "km"]}}


def completed(server: RawClient, ref: dict[str, Any], name: str, value: str) -> list[str]:
    told = {"ref": ref, "argument": {"name": name, "value": value}}
    return server.modern("completion/complete", told)["result"]["completion"]["values"]


@pytest.mark.parametrize(
    ("name", "marker"),
    [("tools-action", "<ACTION>"), ("tools-tam", "<|[REQUEST_TOOL]|>"), ("tools-vcp", "<<<[TOOL_REQUEST]>>>")],
)
def test_a_prompt_tells_the_tools_in_each_protocol(server: RawClient, name: str, marker: str) -> None:
    assert name in {one["name"] for one in server.modern("prompts/list")["result"]["prompts"]}
    told = server.modern("prompts/get", {"name": name})["result"]["messages"]
    assert told[0]["role"] == "user"
    assert marker in told[0]["content"]["text"]
    assert "core:fails" in told[0]["content"]["text"]


def test_a_prompt_tells_of_the_tools_that_are_named(server: RawClient) -> None:
    arguments = {"tools": "core_echo, core_slow", "style": "compact"}
    told = server.modern("prompts/get", {"name": "tools-action", "arguments": arguments})["result"]
    assert "core:fails" not in told["messages"][0]["content"]["text"]


@pytest.mark.parametrize(
    "params",
    [{}, {"name": "x"}, {"name": ["tools-vcp"]}, {"name": "tools-vcp", "arguments": {"style": "loud"}},
     {"name": "tools-vcp", "arguments": {"tools": 7}}, {"name": "tools-vcp", "arguments": {"tools": "no_such"}}],
    ids=str,
)  # fmt: skip
def test_what_is_no_prompt_is_refused(server: RawClient, params: dict[str, Any]) -> None:
    assert server.modern("prompts/get", params)["error"]["code"] == -32602


def test_a_definition_is_read_without_the_values_of_secrets(root: Path) -> None:
    make_tool(root, "core:keyed", properties=SECRET)
    with RawClient(root) as server:
        listed = server.modern("resources/list")["result"]["resources"]
        assert "tamis:tool/core_keyed" in {one["uri"] for one in listed}
        held = server.modern("resources/read", {"uri": "tamis:tool/core_keyed"})["result"]["contents"][0]
    assert json.loads(held["text"])["toolId"] == "core:keyed"
    assert "hidden-value" not in held["text"]


def test_the_result_of_a_call_is_kept_with_its_logs(server: RawClient) -> None:
    address = server.call("core_fails")["_meta"]["dev.tamis/result"]
    held = server.modern("resources/read", {"uri": address})["result"]["contents"][0]
    assert "stderr: what went wrong" in json.loads(held["text"])["logs"]
    assert address in {one["uri"] for one in server.modern("resources/list")["result"]["resources"]}


@pytest.mark.parametrize(
    "uri",
    ["tamis:tool/no", "tamis:tool/../core_echo", "tamis-result:call-9", "file:///etc/passwd", "fam://x/y", "", 7, None],
)
def test_no_other_address_is_read(server: RawClient, uri: Any) -> None:
    assert server.modern("resources/read", {"uri": uri})["error"]["code"] == -32602


def test_a_missing_resource_has_its_own_code_before_the_stateless_revision(server: RawClient) -> None:
    server.shake()
    assert server.ask("resources/read", {"uri": "tamis:tool/no"})["error"]["code"] == -32002


def test_names_styles_and_values_are_completed(root: Path) -> None:
    make_tool(root, "core:keyed", properties=SECRET)
    prompt = {"type": "ref/prompt", "name": "tools-vcp"}
    with RawClient(root) as server:
        assert completed(server, prompt, "style", "c") == ["compact"]
        assert completed(server, prompt, "tools", "core_echo,core_s") == ["core_echo,core_slow"]
        assert completed(server, {"type": "ref/resource", "uri": "tamis:tool/{name}"}, "name", "core_k") == [
            "core_keyed"
        ]
        of_tool = {"type": "ref/resource", "uri": "tamis:tool/core_keyed"}
        assert completed(server, of_tool, "unit", "m") == ["m", "mm"]
        assert completed(server, of_tool, "key", "") == []
        for wrong in ({}, {"ref": prompt}, {"ref": {"type": "x"}, "argument": {"name": "a", "value": ""}}):
            assert server.modern("completion/complete", wrong)["error"]["code"] == -32602
