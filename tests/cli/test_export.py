"""``tamis export``: definitions on stdout as each interface takes them, every loss on stderr (interop §2.3), CAIU records (D87)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.server.runtime.store.store import Store
from tests.cli.in_process import Tamis
from tests.protocols.export_rules import faults
from tests.sample_tools import make_tool


@pytest.fixture(autouse=True)
def tools(tamis: Tamis) -> None:
    make_tool(
        tamis.folder,
        "core:echo",
        properties={"text": {"type": "string"}, "more": {"type": "object"}},
        required=["text"],
        output={"type": "object"},
        tags=["text"],
        examples=[{"description": "Tea.", "input": {"text": "tea"}}],
    )
    make_tool(tamis.folder / "other", "core_echo")
    make_tool(tamis.folder, "off", agentCallable=False)


@pytest.mark.parametrize(
    ("target", "form", "root"),
    [
        ("mcp", "mcp", lambda d: d["tools"]),
        ("openai", "openai", lambda d: d),
        ("openai-strict", "openaiStrict", lambda d: d),
        ("openaiStrict", "openaiStrict", lambda d: d),
        ("anthropic", "anthropic", lambda d: d),
        ("gemini", "gemini", lambda d: d[0]["functionDeclarations"]),
    ],
)
def test_every_tool_in_the_form_that_the_interface_takes(
    tamis: Tamis, target: str, form: str, root: Callable[[Any], list[dict[str, Any]]]
) -> None:
    done = tamis("export", target)
    assert done.code == 0
    definitions = root(done.json())
    assert [faults(form, one) for one in definitions] == [[], []]
    names = [one.get("function", one)["name"] for one in definitions]
    assert names == ["core_echo_2", "core_echo"]
    assert "1 tools that agents may not call are left out" in done.err


def test_each_loss_is_said_with_its_place_and_code(tamis: Tamis) -> None:
    done = tamis("export", "openai-strict", "core:echo", "--json")
    (tool,) = done.json()["tools"]
    assert {"toolId", "version", "definition", "losses", "tokens"} == set(tool)
    assert tool["tokens"] > 10
    for loss in tool["losses"]:
        assert f"core:echo {loss['path']}: {loss['message']} [{loss['code']}]" in done.err
    assert {"name-changed", "output-dropped", "free-object", "optional-nullable"} <= {
        one["code"] for one in tool["losses"]
    }


def test_a_tool_that_is_not_there_is_one_failure_and_the_others_are_exported(tamis: Tamis) -> None:
    done = tamis("export", "anthropic", "core:echo", "core:ecko", "off")
    assert done.code == 1
    assert len(done.json()) == 2
    assert "did you mean 'core:echo'" in done.err
    assert tamis("export", "yaml").code == 2
    assert tamis("export", "mcp", "--force").code == 2


def test_a_plugin_manifest_for_a_vcp_server_comes_back_by_import(tamis: Tamis) -> None:  # interop §2.4, round trip
    done = tamis("export", "vcp", "core:echo", "--out", "out")
    assert done.code == 0
    assert "[value-as-text]" in done.err
    path = tamis.folder / done.out.strip()
    assert path.name == "plugin-manifest.json"
    plugin = json.loads(path.read_text("utf-8"))
    assert plugin["entryPoint"] == {"type": "python", "command": "python3 tool.py"}
    assert "- text (string, 必需)" in plugin["capabilities"]["invocationCommands"][0]["description"]
    back = tamis("import", "vcp", path, "--json").json()["tools"][0]["manifest"]
    was = json.loads((tamis.folder / "core_echo" / "x.tool.json").read_text())
    for key in ("displayName", "description", "version", "parameters", "handler"):
        assert back[key] == was[key] or key == "handler", key
    assert back["handler"] == was["handler"]
    again = tamis("export", "vcp", "core:echo", "--out", "out")
    assert again.code == 1
    assert "there already" in again.err


def test_a_caiu_record_holds_words_to_search_and_schemas_to_use(tamis: Tamis) -> None:  # D87, seed 003 §6.1
    (record,) = tamis("export", "caiu", "core:echo").json()
    text = record["content"]["value"]
    assert "core:echo" in text
    assert "- text (string)" in text
    assert "Tea." in text
    extensions = record["extensions"]
    assert extensions["toolId"] == "core:echo"
    assert extensions["parametersSchema"]["required"] == ["text"]
    assert extensions["outputSchema"] == {"type": "object"}
    assert extensions["handler"]["scriptPath"] == "tool.py"
    assert record["tags"] == ["text"]
    assert "usage" not in extensions
    assert tamis("export", "caiu", "core:echo").json()[0]["id"] == record["id"]
    assert tamis("export", "caiu", "off").json()[0]["management_metadata"]["is_enabled"] is False


@pytest.mark.slow
def test_a_caiu_record_has_the_counts_of_a_daemons_calls(
    tamis: Tamis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # D87
    import asyncio

    from tamis.server.runtime.observe.usage import UsageCounts

    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))

    async def count() -> None:
        store = Store()
        counts = UsageCounts(store, str(tamis.folder))
        counts._new["core:echo"] = (3, 1, time.time())  # pyright: ignore[reportPrivateUsage]
        await counts.all()
        await store.close()

    asyncio.run(count())
    usage = tamis("export", "caiu", "core:echo").json()[0]["extensions"]["usage"]
    assert (usage["calls"], usage["failures"]) == (3, 1)
    assert usage["lastUsed"].endswith("+00:00")


def test_values_of_secrets_are_in_no_export(tamis: Tamis) -> None:
    key = {"type": "string", "x-secret": True, "default": "hunter2"}
    make_tool(tamis.folder, "locked", properties={"key": key}, examples=[{"input": {"key": "hunter2"}}])
    for target in ("mcp", "openai", "openai-strict", "anthropic", "gemini", "vcp", "caiu"):
        assert "hunter2" not in tamis("export", target, "locked").out


def test_files_have_distinct_names(tamis: Tamis) -> None:
    make_tool(tamis.folder, "core-echo")
    done = tamis("export", "anthropic", "core:echo", "core-echo", "--out", "out")
    assert done.code == 0
    assert len(set(done.out.split())) == 2


# Names, there and back


def back(tamis: Tamis, target: str) -> dict[str, dict[str, Any]]:
    """The tools that an export gives, by name."""
    done = tamis("export", target, "--json")
    assert done.code == 0, done.err
    return {one["toolId"]: one for one in done.json()["tools"]}


@pytest.mark.parametrize(
    "name", ["search_web", "getWeather", "_private", "a-b-", "8ball", "x" * 64, "__", "custom_search"]
)
def test_a_legal_name_comes_back_as_it_went_in(tamis: Tamis, name: str) -> None:  # F5
    function = {"type": "function", "function": {"name": name, "description": "Looks.", "parameters": {}}}
    (tamis.folder / "f.json").write_text(json.dumps([function]))
    assert tamis("import", "openai", "f.json", "--out", ".").code == 0
    one = back(tamis, "openai")[f"custom:{name}"]
    assert one["definition"]["function"]["name"] == name
    assert "name-changed" not in {loss["code"] for loss in one["losses"]}


def test_a_name_that_another_tool_has_is_not_given_twice(tamis: Tamis) -> None:  # F5
    make_tool(tamis.folder, "a:go", aliases=["go"])
    make_tool(tamis.folder, "b:go", aliases=["go"])
    made = back(tamis, "openai")
    assert [made[name]["definition"]["function"]["name"] for name in ("a:go", "b:go")] == ["go", "b_go"]


def test_a_plugin_comes_back_under_its_own_name(tamis: Tamis) -> None:  # F5
    make_tool(tamis.folder, "custom:Sum", protocolConfig={"vcpCommand": "Sum"})
    one = back(tamis, "vcp")["custom:Sum"]
    assert one["definition"]["name"] == "Sum"
    assert "name-changed" not in {loss["code"] for loss in one["losses"]}


def test_vcp_names_that_fall_together_are_numbered(tamis: Tamis) -> None:  # F5
    make_tool(tamis.folder, "a:sum", protocolConfig={"vcpCommand": "Sum"})
    make_tool(tamis.folder, "b:sum", protocolConfig={"vcpCommand": "Sum"})
    made = back(tamis, "vcp")
    names = {tool_id: made[tool_id]["definition"]["name"] for tool_id in ("a:sum", "b:sum", "core:echo", "core_echo")}
    assert names == {"a:sum": "Sum", "b:sum": "Sum_2", "core:echo": "core_echo_2", "core_echo": "core_echo"}
    assert "name-changed" in {loss["code"] for loss in made["b:sum"]["losses"]}


def test_check_names_what_a_target_would_refuse_or_lose_at_its_place(tamis: Tamis) -> None:
    make_tool(tamis.folder, "rows", properties={"a b": {"type": "string", "minLength": 1}}, required=["a b"])
    assert "TH4" not in tamis("check").out
    done = tamis("check", "--target", "anthropic", "--target", "openai-strict")
    assert done.code == 0
    (refused,) = [line for line in done.out.splitlines() if "TH401" in line]
    assert "rows" in refused and "anthropic refuses this" in refused
    assert any("TH402" in line and "'minLength'" in line for line in done.out.splitlines())
    assert tamis("check", "--target", "anthropic", "--strict").code == 1


def test_targets_of_the_settings_are_checked_too(tamis: Tamis) -> None:
    (tamis.folder / "tamis.toml").write_text('[lint]\ntargets = ["openai-strict"]\nTH403 = "off"\nTH402 = "error"\n')
    make_tool(tamis.folder, "rows", properties={"a": {"type": "string", "minLength": 1}}, required=["a"])
    done = tamis("check")
    assert done.code == 1 and "TH402" in done.out and "TH403" not in done.out
