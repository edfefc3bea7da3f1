"""Services of a host: what can be registered, what becomes a tool of it, and which names never reach a method."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import ExecutionResult
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.tools import host_services as hosted
from tamis.server.runtime.tools.host_services import HostServices
from tamis.server.runtime.tools.method_metadata import Refused, manifest_of, schema_of_type
from tests.runtime.service_world import Served, error_of, method
from tests.sample_tools import vcp

SEED_METHOD: dict[str, Any] = {
    "name": "sendMessage",
    "displayName": "Send a message",
    "description": "Sends a message to a topic of the chat.",
    "parameters": [
        {"name": "topicId", "type": "string", "description": "The topic."},
        {"name": "text", "type": "string", "secret": True},
        {"name": "count", "type": "number", "required": False, "defaultValue": 1},
        {"name": "mode", "type": "'fast' | 'slow'", "required": False},
        {
            "name": "options",
            "type": "SendOptions",
            "required": False,
            "properties": [{"name": "quiet", "type": "boolean"}],
        },
    ],
    "returnType": "Promise<string>",
    "agentCallable": True,
    "protocolConfig": {"vcpCommand": "SendMessage"},
    "executionMode": "sync",
    "timeoutMs": 5000,
    "requireConfirmation": True,
}


def test_the_seeds_list_of_parameters_becomes_a_schema() -> None:  # V18, seed 001 §3.2
    manifest = manifest_of("llm-chat", SEED_METHOD)
    assert manifest.tool_id == "llm-chat:sendMessage"
    assert manifest.parameters == {
        "type": "object",
        "properties": {
            "topicId": {"type": "string", "description": "The topic."},
            "text": {"type": "string", "x-secret": True},
            "count": {"type": "number", "default": 1},
            "mode": {"enum": ["fast", "slow"]},
            "options": {
                "description": "SendOptions",
                "type": "object",
                "properties": {"quiet": {"type": "boolean"}},
                "required": ["quiet"],
            },
        },
        "required": ["topicId", "text"],
    }
    assert manifest.vcp_command == "SendMessage"
    assert (manifest.execution.timeout_ms, manifest.execution.require_confirmation) == (5000, True)


def test_a_json_schema_is_taken_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
    manifest = manifest_of("s", {"name": "m", "parameters": schema, "returns": {"type": "integer"}, "secret": ["a"]})
    assert manifest.parameters == {**schema, "properties": {"a": {"type": "integer", "minimum": 3, "x-secret": True}}}
    assert manifest.output == {"type": "integer"}
    assert manifest.description == "m"


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("string", {"type": "string"}),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("Array<number>", {"type": "array", "items": {"type": "number"}}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("Record<string, number>", {"type": "object", "additionalProperties": {"type": "number"}}),
        ("string | null", {"type": ["string", "null"]}),
        ("number | undefined", {"type": "number"}),
        ("(string | number)[]", {"type": "array", "items": {"type": ["string", "number"]}}),
        ("'a' | 'b'", {"enum": ["a", "b"]}),
        ('"only"', {"const": "only"}),
        ("Promise<boolean>", {"type": "boolean"}),
        ("any", {}),
        ("GenerateTreeOptions", {"description": "GenerateTreeOptions"}),
    ],
)
def test_names_of_types_are_read(written: str, schema: dict[str, Any]) -> None:
    assert schema_of_type(written) == schema


@given(st.text(alphabet="aA<>[]()|'\",? {}", max_size=60))
def test_any_text_as_a_type_gives_a_sound_schema(text: str) -> None:
    manifest = manifest_of("s", {"name": "m", "parameters": [{"name": "p", "type": text}]})
    assert manifest.parameters is not None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("text", "must be an object"),
        ({}, "name must be a text"),
        ({"name": ""}, "not empty"),
        ({"name": "__init__"}, "private"),
        ({"name": "_send"}, "private"),
        ({"name": "a.b"}, "dot"),
        ({"name": "a b"}, "no method name"),
        ({"name": "1a"}, "no method name"),
        ({"name": "x" * 101}, "more than 100"),
        ({"name": "m", "description": 5}, "'description' must be a text"),
        ({"name": "m", "parameters": 5}, "JSON Schema, or a list"),
        ({"name": "m", "parameters": [5]}, "parameters[0]"),
        ({"name": "m", "parameters": [{"type": "string"}]}, "parameters[0].name"),
        ({"name": "m", "parameters": [{"name": "a"}, {"name": "a"}]}, "second time"),
        ({"name": "m", "parameters": [{"name": "a", "type": 5}]}, "parameters[0].type"),
        ({"name": "m", "parameters": {"type": "array"}}, "must describe an object"),
        ({"name": "m", "parameters": {"type": "objekt"}}, "objekt"),
        ({"name": "m", "agentCallable": "yes"}, "'agentCallable' must be true or false"),
        ({"name": "m", "protocolConfig": []}, "'protocolConfig'"),
        ({"name": "m", "secret": ["x"]}, "no parameter"),
        ({"name": "m", "timeoutMs": -1}, "timeoutMs"),
        ({"name": "m", "returns": 5}, "'returns'"),
        ({"name": "m", "aliases": ["a b"]}, "blanks"),
        ({"name": "m", "description": "x" * 300_000}, "more than 262144 bytes"),
    ],
)
def test_metadata_that_gives_no_tool_is_refused_with_its_reason(given: Any, reason: str) -> None:  # D61
    with pytest.raises(Refused) as refused:
        manifest_of("s", given)
    assert reason in str(refused.value)


def test_parameters_that_nest_without_end_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(40):
        deep = [{"name": "a", "type": "object", "properties": deep}]
    with pytest.raises(Refused, match="nested deeper"):
        manifest_of("s", {"name": "m", "parameters": deep})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    (
                        "name",
                        "type",
                        "parameters",
                        "properties",
                        "required",
                        "description",
                        "returns",
                        "secret",
                        "execution",
                        "x",
                    )
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_is_registered_is_a_registration(value: Any) -> None:
    made = HostServices().register("s", [value])
    assert len(made.registered) + len(made.rejected) == 1


@pytest.mark.parametrize(
    "name", ["", "_own", "a b", "a/b", "a@b", "x" * 101, "<s>", "a\x00b", "File", "ExternalScriptExecutionService"]
)
def test_names_that_no_service_can_have(name: str) -> None:
    with pytest.raises(Refused):
        HostServices().register(name, [method("m")])


def test_services_and_methods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "MAX_SERVICES", 2)
    monkeypatch.setattr(hosted, "MAX_METHODS", 2)
    services = HostServices()
    assert len(services.register("a", [method(f"m{n}") for n in range(3)]).registered) == 2
    services.register("b", [method("m")])
    with pytest.raises(Refused, match="2 services"):
        services.register("c", [method("m")])
    assert services.register("b", [method("n")]).changed


# What becomes of it in the registry


def test_a_registered_method_is_a_tool_under_all_of_its_names(tmp_path: Path) -> None:  # A25, V18, V45, ruling 30
    world = Served(tmp_path, lambda *given: given[1])
    world.register("llm-chat", method("send", protocolConfig={"vcpCommand": "SendIt"}))
    summary = world.runtime.list_tools().tools[0]
    assert (summary.tool_id, summary.kind, summary.callable, summary.available) == (
        "llm-chat:send",
        "service",
        True,
        True,
    )
    assert summary.source == "service:llm-chat"
    for name in ("llm-chat:send", "llm-chat_send", "llm-chat.send", "SendIt", "llm-chat:send@^1"):
        result = world.run(name, {"text": "x"})
        assert (result.status, result.output, result.tool_id) == ("success", "send", "llm-chat:send"), name


def test_the_longest_service_wins_a_name_with_two_readings(tmp_path: Path) -> None:  # V45, ruling 30
    world = Served(tmp_path, lambda *given: f"{given[0]}.{given[1]}")
    world.register("a", method("b_c"))
    world.register("a_b", method("c"))
    assert world.run("a_b_c").output == "a_b.c"
    assert not world.runtime.registry.conflicts


def test_a_method_is_for_agents_only_where_it_says_so(tmp_path: Path) -> None:  # V03, ruling 34
    world = Served(tmp_path)
    made = world.register("s", {"name": "inner", "description": "Only for the host itself."})
    assert [one.name for one in made.registered] == ["inner"]
    assert [tool.callable for tool in world.runtime.list_tools().tools] == [False]
    result = world.run("s:inner")
    assert (result.status, error_of(result)["type"]) == ("blocked", "SecurityError")
    assert world.host.asked == []


def test_what_says_nothing_of_its_parameters_takes_any_and_an_empty_list_none(tmp_path: Path) -> None:  # ruling 2
    world = Served(tmp_path, lambda *given: given[2])
    unsaid = {name: value for name, value in method("open").items() if name != "parameters"}
    world.register("s", unsaid, method("closed", parameters=[]))
    assert world.run("s:open", {"x": [1]}).output == {"x": [1]}
    assert error_of(world.run("s:closed", {"x": 1}))["type"] == "ParameterValidationError"


def test_vcp_reaches_a_method_by_each_of_its_spellings(tmp_path: Path) -> None:  # V45, V18, ruling 30
    world = Served(tmp_path, lambda *given: given[2])
    world.register("llm-chat", method("send", protocolConfig={"vcpCommand": "SendIt"}))
    blocks = [
        vcp("llm-chat_send", text="a"),
        vcp("SendIt", text="b"),
        vcp("llm-chat:send", text="c"),
        vcp("llm-chat", command="send", text="d"),
    ]

    async def work() -> list[ExecutionResult]:
        document = world.runtime.read("\n".join(blocks), "vcp")
        made = await execute_text(document, world.runtime.call_context(), TextOptions())
        await world.runtime.close()
        return made.results

    results = asyncio.run(work())
    assert [result.output for result in results] == [{"text": letter} for letter in "abcd"], [
        result.observation for result in results
    ]


def test_a_toggle_of_the_service_holds_for_all_of_its_methods(tmp_path: Path) -> None:  # V10, seed 001 §5.2
    config = {"enabled": True, "defaultToolEnabled": False, "toolToggles": {"s": True, "s:b": False}}
    (tmp_path / "agent_profile.json").write_text(json.dumps({"toolCallConfig": config}))
    world = Served(tmp_path, lambda *given: given[1], profile="agent_profile.json")
    world.register("s", method("a"), method("b"))
    world.register("t", method("c"))
    assert {tool.tool_id: tool.callable for tool in world.runtime.list_tools().tools} == {
        "s:a": True,
        "s:b": False,
        "t:c": False,
    }
    assert [world.run(name).status for name in ("s:a", "s:b", "t:c")] == ["success", "blocked", "blocked"]


def test_registering_the_same_again_changes_nothing(tmp_path: Path) -> None:
    world = Served(tmp_path)
    assert world.register("s", method("m")).changed
    etag = world.runtime.registry.etag()
    again = world.register("s", method("m"))
    assert (again.changed, len(again.registered)) == (False, 1)
    assert world.runtime.registry.etag() == etag
    assert len(world.host.said("registry/changed")) == 1


def test_a_service_registered_again_is_what_the_last_registration_says(tmp_path: Path) -> None:
    world = Served(tmp_path, lambda *given: given[1])
    world.register("s", method("old"), method("kept"))
    made = world.register("s", method("kept", description="It does something else now."), method("new"), method("_x"))
    assert [one.name for one in made.registered] == ["kept", "new"]
    assert [one.method_name for one in made.rejected] == ["_x"]
    assert [tool.tool_id for tool in world.runtime.registry.tools] == ["s:kept", "s:new"]
    assert world.runtime.registry.get("s:kept").manifest.description == "It does something else now."  # type: ignore[union-attr]
    assert error_of(world.run("s:old"))["type"] == "UnknownTool"


def test_a_method_named_twice_is_registered_once() -> None:
    made = HostServices().register("s", [method("m", description="the first"), method("m")])
    assert [one.manifest.description for one in made.registered] == ["the first"]
    assert "twice" in made.rejected[0].reason


def test_a_service_can_be_taken_away_whole_or_in_part(tmp_path: Path) -> None:
    world = Served(tmp_path)
    world.register("s", method("a"), method("b"))
    services = world.runtime.parts.host_services
    assert services.unregister("s", ["a", "none"]) == ["a"]
    world.runtime.services_changed()
    assert [tool.tool_id for tool in world.runtime.registry.tools] == ["s:b"]
    assert services.unregister("s") == ["b"]
    assert services.unregister("s") == []
    world.runtime.services_changed()
    assert world.runtime.registry.tools == []
    assert len(world.host.said("registry/changed")) == 3


def test_a_manifest_with_the_same_id_stays_and_the_conflict_is_told(tmp_path: Path) -> None:  # ruling 35
    write_manifest(tmp_path, "s:m", "other", "x")
    world = Served(tmp_path, lambda *given: "host")
    world.register("s", method("m"))
    world.register("other", method("x"))
    assert [conflict.dropped for conflict in world.runtime.registry.conflicts] == ["service:s"]


# Manifests that name a service


def write_manifest(root: Path, tool_id: str, service: str, name: str, **fields: Any) -> None:
    manifest = {
        "toolId": tool_id,
        "displayName": tool_id,
        "description": "Calls a method of a service, for the tests of this project.",
        "version": "1.0.0",
        "handler": {"type": "service-method", "serviceName": service, "methodName": name},
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    } | fields
    (root / f"{tool_id.replace(':', '_')}.tool.json").write_text(json.dumps(manifest))


def test_a_manifest_reaches_a_registered_method_also_one_that_is_not_for_agents(
    tmp_path: Path,
) -> None:  # A25, D33, D60, ruling 34
    write_manifest(tmp_path, "t:go", "Images", "apply")
    world = Served(tmp_path, lambda *given: {"did": given[2]})
    world.register("Images", method("apply", agentCallable=False))
    result = world.run("t:go", {"text": "hi"})
    assert (result.status, result.output, result.sandbox, result.attempts) == (
        "success",
        {"did": {"text": "hi"}},
        None,
        1,
    )
    assert world.host.asked[0] == (
        "service/invoke",
        {"serviceName": "Images", "methodName": "apply", "args": {"text": "hi"}, "callId": "call-1"},
    )


def test_a_manifest_whose_service_is_not_there_says_so_in_lists_and_calls(tmp_path: Path) -> None:  # D61
    write_manifest(tmp_path, "t:go", "Imges", "apply")
    write_manifest(tmp_path, "t:no", "Images", "aply")
    world = Served(tmp_path)
    world.register("Images", method("apply"))
    reasons = {tool.tool_id: tool.reason for tool in world.runtime.list_tools().tools if not tool.available}
    assert reasons == {
        "t:go": "no service 'Imges' is registered, did you mean 'Images'?",
        "t:no": "the service 'Images' has no method 'aply', did you mean 'apply'?",
    }
    result = world.run("t:go")
    assert (result.status, error_of(result)["type"], result.attempts) == ("error", "ServiceError", 0)


@pytest.mark.parametrize("name", ["__class__", "_apply", "apply.__globals__", "apply.call", "a b"])
def test_names_that_are_no_public_methods_never_reach_a_host(tmp_path: Path, name: str) -> None:  # D61
    write_manifest(tmp_path, "t:go", "Images", name)
    world = Served(tmp_path)
    world.register("Images", method("apply"))
    result = world.run("t:go")
    assert (result.status, error_of(result)["type"]) == ("error", "ServiceError")
    assert "no method of 'Images' can be called by this name" in error_of(result)["message"]
    assert world.host.asked == []


def test_arguments_reach_a_method_under_its_own_names_and_types(tmp_path: Path) -> None:  # V46, D61
    properties = {"playerId": {"type": "string"}, "max-count": {"type": "string"}, "text": {"type": "string"}}
    write_manifest(tmp_path, "t:go", "Game", "find", parameters={"type": "object", "properties": properties})
    own = {"player_id": {"type": "string"}, "maxCount": {"type": "integer"}, "text": {"type": "string"}}
    world = Served(tmp_path, lambda *given: given[2])
    world.register("Game", method("find", parameters={"type": "object", "properties": own, "required": ["player_id"]}))
    result = world.run("t:go", {"playerId": "p1", "max-count": "3", "text": "x"})
    assert result.output == {"player_id": "p1", "maxCount": 3, "text": "x"}


def test_a_manifest_maps_its_parameters_to_those_of_the_method(tmp_path: Path) -> None:
    """D96, seed 003 §3.3: also where another parameter has the method's name; the mapped one is coerced to its type."""
    properties = {"who": {"type": "string"}, "count": {"type": "string"}, "max": {"type": "string"}}
    handler = {
        "type": "service-method",
        "serviceName": "Game",
        "methodName": "find",
        "parameterMapping": {"who": "player_id", "count": "max", "max": "count"},
    }
    write_manifest(
        tmp_path, "t:go", "Game", "find", parameters={"type": "object", "properties": properties}, handler=handler
    )
    own = {"player_id": {"type": "string"}, "max": {"type": "integer"}, "count": {"type": "string"}}
    world = Served(tmp_path, lambda *given: given[2])
    world.register("Game", method("find", parameters={"type": "object", "properties": own, "required": ["player_id"]}))
    result = world.run("t:go", {"who": "p1", "count": "3", "max": "many"})
    assert result.output == {"player_id": "p1", "max": 3, "count": "many"}


def test_a_manifest_maps_its_parameters_to_those_of_an_own_method(tmp_path: Path) -> None:
    """D96."""
    handler = {
        "type": "service-method",
        "serviceName": "system",
        "methodName": "get_current_time",
        "parameterMapping": {"place": "timezone"},
    }
    properties = {"place": {"type": "string"}}
    parameters = {"type": "object", "properties": properties}
    write_manifest(tmp_path, "t:when", "system", "get_current_time", parameters=parameters, handler=handler)
    output = Served(tmp_path).run("t:when", {"place": "Asia/Tokyo"}).output
    assert isinstance(output, dict)
    assert output["timezone"] == "Asia/Tokyo"


def test_a_method_that_cannot_take_the_arguments_is_an_error_that_advises_a_facade(tmp_path: Path) -> None:  # V47, V19
    write_manifest(tmp_path, "t:go", "Game", "find")
    own = {"type": "object", "properties": {"filter": {"type": "object"}}, "required": ["filter"]}
    world = Served(tmp_path)
    world.register("Game", method("find", parameters=own))
    error = error_of(world.run("t:go", {"text": "x"}))
    assert (error["type"], error["details"]["code"]) == ("ServiceError", "incompatibleSignature")
    assert "do not fit the method Game.find" in error["message"]
    assert "facade" in error["message"]
    assert {problem["path"] for problem in error["details"]["errors"]} == {"/text", "/filter"}
    assert world.host.asked == []
