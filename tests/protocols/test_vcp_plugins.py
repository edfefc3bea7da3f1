"""VCP plug-ins as they are written: what their documented calls carry is what the imported manifest takes (findings F1, F3, F4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.foreign_fields import is_secret_setting
from tamis.protocols.manifest.imports import import_tools
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.manifest.vcp_prose import plain_lines
from tamis.protocols.schema.plan import compile_plan


def request(tool: str = "Draw", **fields: str) -> str:
    inner = ",\n".join(f"{key}:「始」{value}「末」" for key, value in {"tool_name": tool, **fields}.items())
    return f"<<<[TOOL_REQUEST]>>>\n{inner}\n<<<[END_TOOL_REQUEST]>>>"


def plugin(*commands: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "name": "Draw",
        "displayName": "Draw",
        "version": "1.0.0",
        "description": "Draws pictures of what it is told, and changes them.",
        "pluginType": "synchronous",
        "entryPoint": {"type": "nodejs", "command": "node Draw.js"},
        "communication": {"protocol": "stdio"},
        "capabilities": {"invocationCommands": list(commands)},
        **fields,
    }


def command(name: str, description: str, **fields: Any) -> dict[str, Any]:
    return {"commandIdentifier": name, "description": description, **fields}


def one(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The manifest, which reads without an error, and its notes by code."""
    (tool,) = import_tools("vcp", data).tools
    faults = [message(d) for d in read_manifest(json.dumps(tool.manifest)).diagnostics if severity(d) == "error"]
    assert faults == []
    notes: dict[str, list[str]] = {}
    for note in tool.notes:
        notes.setdefault(note.code, []).append(note.message)
    return tool.manifest, notes


def takes(manifest: dict[str, Any], **args: str) -> bool:
    return compile_plan(manifest["parameters"]).check(dict(args), "any").valid


def test_the_command_of_a_plugin_of_one_command_is_kept() -> None:  # F1
    text = "Draws.\n" + request(command="generate", prompt="(必需) what to draw")
    manifest, _ = one(plugin(command("DrawGenerate", text)))
    assert manifest["parameters"]["properties"]["command"] == {"enum": ["generate"]}
    assert takes(manifest, command="generate", prompt="a cat")


def test_a_command_that_is_free_text_has_no_list_of_values() -> None:  # F1
    manifest, _ = one(plugin(command("Shell", "- command (字符串, 必需): 要执行的命令\n" + request(command="ls"))))
    assert takes(manifest, command="rm -r x")
    assert manifest["parameters"]["required"] == ["command"]


def test_the_values_of_command_are_those_that_documented_calls_show() -> None:  # F1
    manifest, _ = one(
        plugin(
            command("DrawGenerate", request(command="generate", prompt="x")),
            command("DrawEdit", "Edits.", example=request(command="edit", prompt="x")),
        )
    )
    assert manifest["parameters"]["properties"]["command"]["enum"] == ["generate", "edit"]
    assert manifest["parameters"]["required"] == ["command"]
    assert [one["input"]["command"] for one in manifest["examples"]] == ["edit"]


def test_command_is_optional_where_a_documented_call_is_without_it() -> None:  # F1
    manifest, _ = one(plugin(command("submit", request(prompt="x")), command("join", request(command="join"))))
    assert manifest["parameters"]["properties"]["command"]["enum"] == ["submit", "join"]
    assert takes(manifest, prompt="x")


def test_a_plugin_whose_calls_never_carry_command_has_no_such_parameter() -> None:  # F1
    manifest, notes = one(plugin(command("search", request(action="search")), command("list", request(action="list"))))
    assert list(manifest["parameters"]["properties"]) == ["action"]
    assert "no such parameter" in notes["commands-joined"][0]


def test_commands_without_documented_calls_are_told_by_their_identifiers() -> None:
    manifest, _ = one(plugin(command("a", "Does a."), command("b", "Does b.")))
    assert manifest["parameters"]["properties"]["command"]["enum"] == ["a", "b"]
    assert manifest["parameters"]["required"] == ["command"]


def test_a_field_in_all_blocks_is_not_therefore_required() -> None:  # F4
    manifest, _ = one(plugin(command("Draw", request(prompt="x", size="1"), example=request(prompt="y", size="2"))))
    assert manifest["parameters"]["required"] == []


def test_a_marked_field_that_a_documented_call_leaves_out_is_optional() -> None:  # F4
    text = request(prompt="(必需) what", id="(可选) of a running job")
    manifest, _ = one(plugin(command("Draw", text, example=request(id="7"))))
    assert manifest["parameters"]["required"] == []


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ("整数, 必需", True),
        ("string, required", True),
        ("string, 可选", False),
        ("必需项", True),
        ("search 必需", False),  # of one command of several
        ("not required, optional", False),
    ],
)
def test_what_a_list_says_of_the_need(words: str, needed: bool) -> None:  # F4
    manifest, _ = one(plugin(command("Draw", f"- n ({words}): how many")))
    assert manifest["parameters"]["required"] == (["n"] if needed else [])


def test_the_value_of_an_example_is_no_description() -> None:  # F4
    manifest, _ = one(plugin(command("Draw", request(prompt="a red cat", size="[宽x高]", style="(可选) 画风"))))
    properties = manifest["parameters"]["properties"]
    assert {name: part.get("description") for name, part in properties.items()} == {
        "prompt": None,
        "size": "宽x高",
        "style": "画风",
    }


def test_lines_whose_ends_were_escaped_twice_are_lines() -> None:  # F4
    text = "Draws.\\n参数:\\n- prompt (字符串, 必需): what\\n" + request(prompt="a\\nb").replace("\n", "\\n")
    manifest, _ = one(plugin(command("Draw", text, example=text)))
    assert manifest["parameters"]["required"] == ["prompt"]
    assert "\\n" not in manifest["parameters"]["properties"]["prompt"]["description"]
    assert manifest["examples"][0]["input"] == {"prompt": "a\\nb"}


@pytest.mark.parametrize("text", [r"C:\new\notes.md", "write `\\n` between lines", "x:「始」a\\n- b「末」"])
def test_a_backslash_that_ends_no_line_stays(text: str) -> None:  # F4
    assert plain_lines(text) == text


def test_an_import_has_no_name_twice() -> None:  # F4, LN736
    manifest, _ = one(plugin(command("Draw", "Draws.")))
    assert "aliases" not in manifest
    assert manifest["protocolConfig"] == {"vcpCommand": "Draw"}


def test_the_one_other_name_of_all_documented_calls_is_an_alias_and_said() -> None:  # F1
    manifest, notes = one(plugin(command("Draw", request("Paint", prompt="(必需) x"))))
    assert manifest["aliases"] == ["Paint"]
    assert "'Paint'" in notes["name-changed"][0]
    assert manifest["parameters"]["required"] == ["prompt"]


def test_calls_of_other_tools_tell_nothing_of_this_one() -> None:  # F1
    manifest, _ = one(plugin(command("Draw", request(prompt="x") + "\n" + request("Save", path="(必需) where"))))
    assert list(manifest["parameters"]["properties"]) == ["prompt"]
    assert "aliases" not in manifest


def test_a_type_that_a_documented_call_contradicts_is_text() -> None:  # F1
    text = "- boost (数字, 可选): weight\n- k (整数, 可选): how many\n" + request(boost="0.6+", k="3")
    properties = one(plugin(command("Draw", text)))[0]["parameters"]["properties"]
    assert (properties["boost"]["type"], properties["k"]["type"]) == ("string", "integer")


@pytest.mark.parametrize(
    ("words", "kind"),
    [("字符串数组", "array"), ("数字或字符串", "string"), ("string|array", "string"), ("object|string", "string")],
)
def test_types_that_stand_beside_each_other(words: str, kind: str) -> None:  # F1
    properties = one(plugin(command("Draw", f"- n ({words}, 可选): what")))[0]["parameters"]["properties"]
    assert properties["n"]["type"] == kind


def test_several_names_of_one_parameter_are_all_taken_and_none_required() -> None:  # F1
    manifest, _ = one(plugin(command("Draw", "- `query` / q (字符串, 必需): what to look for")))
    assert list(manifest["parameters"]["properties"]) == ["query", "q"]
    assert manifest["parameters"]["required"] == []


def test_parameters_in_a_list_are_declared() -> None:  # F1
    listed = [{"name": "n", "type": "integer", "required": True, "description": "How many."}]
    manifest, _ = one(plugin(command("Draw", "Draws.", parameters=listed)))
    assert manifest["parameters"] == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "How many."}},
        "required": ["n"],
    }


def test_numbers_and_switches_are_no_secrets_whatever_they_are_called() -> None:  # F3
    settings = {
        "MaxOutputTokens": {"type": "integer", "default": 8192},
        "REDACT_SECRETS": {"type": "boolean", "default": True},
        "Excluded_Keywords": {"type": "string", "default": "[x]"},
        "API_KEY": {"type": "string", "default": "of-somebody"},
    }
    manifest, notes = one(plugin(command("Draw", "Draws."), configSchema=settings))
    assert manifest["env"] == {"MaxOutputTokens": "8192", "REDACT_SECRETS": "true", "Excluded_Keywords": "[x]"}
    assert manifest["securityContext"] == {"secrets": ["API_KEY"]}
    assert "of-somebody" not in json.dumps([manifest, notes])


def test_variables_that_are_given_outright_become_env() -> None:  # F3
    manifest, notes = one(
        plugin(command("Draw", "Draws."), environment={"UNITS": "metric", "LD_PRELOAD": "x"}, env={"A_TOKEN": "t"})
    )
    assert manifest["env"] == {"UNITS": "metric"}
    assert manifest["securityContext"] == {"secrets": ["A_TOKEN"]}
    assert "LD_PRELOAD" in notes["field-dropped"][0]


@pytest.mark.parametrize(
    ("name", "secret"), [("TavilyKey", True), ("MAX_TOKENS", False), ("keyword_list", False), ("HF_TOKEN", True)]
)
def test_which_settings_hold_secrets(name: str, secret: bool) -> None:  # F3
    assert is_secret_setting(name) is secret


def test_a_plugin_on_standard_streams_is_read_by_its_own_convention() -> None:  # F2
    manifest, _ = one(plugin(command("Draw", "Draws.")))
    assert manifest["handler"]["result"] == "vcp"
    manifest, _ = one(plugin(command("Draw", "Draws."), communication={"protocol": "direct"}))
    assert "result" not in manifest["handler"]


FIELDS = st.dictionaries(
    st.sampled_from(["prompt", "size", "n", "command"]),
    st.sampled_from(["a cat", "7", "generate", "(必需) it", "[it]", "x+"]),
    max_size=3,
)
LISTS = st.sampled_from(
    ["", "- n (整数, 必需): how many\n", "- command (字符串, 可选): which\n", "- size/n (数字): x\n"]
)


@given(st.lists(st.tuples(LISTS, FIELDS, FIELDS), min_size=1, max_size=3))
def test_every_documented_call_is_one_that_the_manifest_takes(described: list[Any]) -> None:  # F1
    commands = [
        command(f"Do{i}", listed + request(**shown), example=request(**given))
        for i, (listed, shown, given) in enumerate(described)
    ]
    manifest, _ = one(plugin(*commands))
    plan = compile_plan(manifest["parameters"])
    for _, *calls in described:
        for args in calls:
            if not any(value.startswith(("(", "[")) for value in args.values()):
                assert plan.check(dict(args), "any").errors == [], args
