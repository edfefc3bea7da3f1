"""Agent profiles: the seeds' defaults, the inventory, and faults at their places."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import severity
from tamis.protocols.manifest.profile import Profile, ToolCallConfig, read_profile

SEED = """{
  // ...
  "tool_ids_inventory": [
    "system:get_current_time",
    "kb:Query",
    "workflow:summarize_text",
    "workflow:generate_image_from_prompt"
  ]
  // ...
}"""


def said(text: str, known: list[str] | None = None) -> list[tuple[str, str, str]]:
    return [
        (severity(diag), diag.code, text[diag.span[0] : diag.span[1]]) for diag in read_profile(text, known).diagnostics
    ]


def profile(text: str) -> Profile:
    found = read_profile(text).profile
    assert found is not None
    return found


def test_the_seeds_sample_with_comments_is_read():  # W01, W04
    found = profile(SEED)
    assert found.inventory is not None and found.inventory[2] == "workflow:summarize_text"
    assert {level for level, *_ in said(SEED)} == {"hint"}
    assert found.lists("kb:Query") and not found.lists("kb:Other")


def test_a_missing_config_means_that_tool_calls_are_off():  # V08, V17
    assert profile("{}").config == ToolCallConfig() and not profile("{}").has_config
    assert not profile("{}").config.allows("a")
    assert ("hint", "PF608", "{") in said("{}")


def test_the_seeds_defaults():  # V08 to V16
    config = profile('{"toolCallConfig": {"enabled": true}}').config
    assert config == ToolCallConfig(
        enabled=True,
        mode="auto",
        tool_toggles={},
        default_tool_enabled=True,
        max_iterations=5,
        timeout=30_000,
        require_confirmation=False,
        parallel_execution=False,
        protocol="vcp",
    )


def test_a_toggle_wins_over_the_default():  # V10, V11
    config = ToolCallConfig(enabled=True, tool_toggles={"a": False, "b": True}, default_tool_enabled=True)
    assert (config.allows("a"), config.allows("b"), config.allows("c")) == (False, True, True)
    closed = ToolCallConfig(enabled=True, tool_toggles={"b": True}, default_tool_enabled=False)
    assert (closed.allows("b"), closed.allows("c")) == (True, False)


@pytest.mark.parametrize(
    ("config", "level", "code", "place"),
    [
        ({"enabled": "yes"}, "error", "PF601", '"yes"'),
        ({"mode": "Auto"}, "error", "PF602", '"Auto"'),
        ({"protocol": "xml"}, "error", "PF602", '"xml"'),
        ({"maxIterations": 0}, "error", "PF603", "0"),
        ({"timeout": -1}, "error", "PF603", "-1"),
        ({"timeout": "30s"}, "error", "PF601", '"30s"'),
        ({"toolToggles": {"a": 1}}, "error", "PF601", "1"),
        ({"maxIteration": 5}, "warning", "PF604", '"maxIteration"'),
    ],
)
def test_a_fault_of_the_config_is_at_its_key_or_value(config: dict[str, Any], level: str, code: str, place: str):
    assert said(json.dumps({"toolCallConfig": config})) == [(level, code, place)]


def test_unknown_prefixes_and_duplicates_are_warnings():  # W01, W03
    text = '{"toolCallConfig": {}, "tool_ids_inventory": ["wrokflow:a", "kb:Query", "kb:Query", "plain"]}'
    assert said(text) == [("warning", "PF605", '"wrokflow:a"'), ("warning", "PF607", '"kb:Query"')]
    fix = read_profile(text).diagnostics[0].fix
    assert fix is not None and fix.edits[0].new_text == '"workflow:a"'


def test_ids_are_held_against_the_known_ones():  # W01
    text = '{"toolCallConfig": {}, "tool_ids_inventory": ["core:run", "core:rnu", "mine:x", "bad id"]}'
    assert said(text, ["core:run", "mine:y"]) == [
        ("warning", "PF606", '"core:rnu"'),
        ("warning", "PF606", '"mine:x"'),
        ("error", "PF610", '"bad id"'),
    ]


def test_a_toggle_of_a_tool_that_is_not_listed_is_a_warning():
    text = '{"tool_ids_inventory": ["kb:Query"], "toolCallConfig": {"toolToggles": {"kb:query": true}}}'
    assert said(text) == [("warning", "PF609", '"kb:query"')]


@given(st.text('{}[]",:a1 \ntool_ids_inventory', max_size=30))
def test_no_text_raises(text: str):
    reading = read_profile('{"tool_ids_inventory": ' + text + "}", ["a"])
    assert (reading.profile is None) == any(severity(diag) == "error" for diag in reading.diagnostics)


def test_a_misspelt_inventory_is_named_with_what_it_costs():
    text = '{"toolCallConfig": {}, "model": "m", "tool_ids_inventry": ["kb:Query"]}'
    assert said(text) == [("warning", "PF612", "{"), ("warning", "PF604", '"tool_ids_inventry"')]
    fixes = [diag.fix for diag in read_profile(text).diagnostics if diag.fix is not None]
    assert [fix.edits[0].new_text for fix in fixes] == ['"tool_ids_inventory"']


def test_a_misspelt_config_is_named_beside_an_inventory():
    text = '{"tool_ids_inventory": [], "toolCallConfg": {}}'
    assert [code for _, code, _ in said(text)] == ["PF608", "PF604"]


def test_other_names_of_the_root_are_the_hosts():
    assert said('{"toolCallConfig": {}, "tools": [], "toolCallLimit": 3, "inventory": 1}') == []


def test_a_tool_that_a_host_would_have_to_register_is_told_where_tools_are_known() -> None:
    """T8: what is registered is known; without a list of tools nothing can be said."""
    text = '{"toolCallConfig": {}, "tool_ids_inventory": ["system:get_current_time", "system:nope", "kb:Query"]}'
    reading = read_profile(text, ["system:get_current_time"])
    found = [(diag.code, severity(diag), text[diag.span[0] : diag.span[1]]) for diag in reading.diagnostics]
    assert found == [("PF613", "information", '"system:nope"'), ("PF613", "information", '"kb:Query"')]
    assert read_profile(text).diagnostics == []
