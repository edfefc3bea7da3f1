"""``tamis check`` and workflows: files in the configured folders, named files, and what profiles list (W02, W05, W07)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.server.cli.main import main

BROKEN = {
    "description": "Has a slip.",
    "interfaceOutputs": {"o": {"dataFlowType": "STRING"}},
    "nodes": [{"id": "a", "type": "tmplate"}],
    "outputInterfaceMappings": {"o": {"nodeId": "a", "slotKey": "text"}},
}


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, list[tuple[str, int]]]]:
    """The exit code, and for each file its findings with the line that they begin on."""
    code = main(["check", "--format", "json", *arguments])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, {
        Path(one["path"]).name: [(diag["code"], diag["range"]["start"]["line"]) for diag in one["diagnostics"]]
        for one in report["files"]
    }


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flows" / "deep").mkdir(parents=True)
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n')
    (tmp_path / "flows" / "deep" / "broken.json").write_text(json.dumps(BROKEN, indent=1))
    (tmp_path / "flows" / "plain.json").write_text('{"description": "An interface.", "interfaceInputs": {}}')
    (tmp_path / "data.json").write_text('{"interfaceInputs": []}')
    profile = {"tool_ids_inventory": ["workflow:plain", "workflow:plane"], "toolCallConfig": {"enabled": True}}
    (tmp_path / "agent_profile.json").write_text(json.dumps(profile))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_checked_with_its_workflows(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(capsys)
    assert code == 1
    assert found["broken.json"] == [("WF905", 10)]
    assert found["plain.json"] == []
    assert [name for name, _ in found["agent_profile.json"]] == ["PF611"]
    assert "data.json" not in found  # it stands in no workflow folder


def test_only_what_is_below_the_checked_folder_is_looked_at(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "else").mkdir()
    assert checked(capsys, "else") == (0, {})
    assert list(checked(capsys, "flows/deep")[1]) == ["broken.json"]


def test_a_named_file_is_checked_wherever_it_stands(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(capsys, "data.json")
    assert code == 1
    assert ("WF901", 0) in found["data.json"]


def test_the_worked_example_of_the_seed_is_clean(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.rpc.seed_workflow import SEED

    (root / "flows" / "summarize_text.json").write_text(SEED.replace("// seed 004 §2.3.1", ""), encoding="utf-8")
    assert checked(capsys, "--strict", "flows/summarize_text.json") == (0, {"summarize_text.json": []})


def test_a_configured_folder_is_judged_as_the_registry_judges_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # `tamis list` says that check lists all
    (root / "flows" / "bare.json").write_text('{"nodes": [{"id": "a", "type": "constant"}, {"id": "a"}]}')
    (root / "bare.json").write_text('{"nodes": [{"id": "a"}]}')
    code, found = checked(capsys)
    assert code == 1
    assert {name for name, _ in found["bare.json"]} >= {"WF902"}
    assert code == 1 and ("WF902", 0) in checked(capsys, "bare.json")[1]["bare.json"]  # named: its user means it


def test_node_definitions_are_checked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:  # A41
    (root / "good.node.json").write_text('{"fullType": "图像:模糊", "inputs": {"a": {"dataFlowType": "STRING"}}}')
    (root / "bad.node.json").write_text('[{"fullType": ""},\n 7,\n {"fullTyp": "x:y"}]')
    (root / "cut.node.json").write_text('{"fullType": "a:b",')
    code, found = checked(capsys)
    assert code == 1
    assert found["good.node.json"] == []
    assert [line for _, line in found["bad.node.json"]] == [0, 1, 2]
    assert found["cut.node.json"]


def test_the_findings_of_one_graph_are_bounded(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "flows" / "deep" / "broken.json").write_text(json.dumps(BROKEN | {"nodes": [None] * 500}))
    _, found = checked(capsys)
    assert len(found["broken.json"]) == 201 and "TC025" in [name for name, _ in found["broken.json"]]


def test_workflow_folders_of_a_root_below_are_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = tmp_path / "inner"
    (inner / "flows").mkdir(parents=True)
    (inner / "tamis.toml").write_text('workflows = ["flows"]\n', "utf-8")
    (inner / "flows" / "x.json").write_text('{"nodes": [{"id": "a", "type": "no:such"}, {"id": "b"}]}', "utf-8")
    for where in (tmp_path, inner, inner / "flows", inner / "flows" / "x.json"):
        assert main(["check", str(where), "--root", str(tmp_path)]) == 1, where
        assert "WF" in capsys.readouterr().out, where


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"nodes": [{"id": "a"', "MF521"),
        ('{"nodes": [{"id": "a", "typ": "constant"}]}', "WF902"),
        ('{"nodes": [], "edges": [{"source": "b", "sourceHandle": "x", "target": "a", "targetHandle": "y"}]}', "WF907"),
        ('{"nods": [], "interfaceInputs": {}, "description": "A slip."}', "WF904"),
    ],
)
def test_a_broken_workflow_is_an_error_in_its_folder_and_named(
    root: Path, capsys: pytest.CaptureFixture[str], text: str, code: str
) -> None:  # W02
    for place in (root / "flows" / "one.json", root / "one.json"):
        place.write_text(text, "utf-8")
        found = checked(capsys, str(place))
        assert found[0] == 1 and code in [name for name, _ in found[1]["one.json"]], place


def test_other_json_is_left_alone_where_it_stands(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "flows" / "other.json").write_text('{"a": "nodes"}')
    assert checked(capsys, "flows/other.json") == (0, {"other.json": []})


def test_folders_behind_links_are_checked(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(root, target_is_directory=True)
    main(["check", str(tmp_path / "link" / "flows"), "--root", str(root)])
    assert "WF905" in capsys.readouterr().out


def test_a_list_that_is_opened_as_an_object_is_one_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "flows" / "open.json").write_text(
        '{"nodes": [], "edges": {\n {"source": "a"},\n {"source": "b"}\n], "description": "x"}'
    )
    assert checked(capsys, "flows/open.json") == (1, {"open.json": [("WF901", 0)]})


def test_mcp_handlers_are_judged_by_the_settings(root: Path, capsys: pytest.CaptureFixture[str]) -> None:  # D92
    (root / "tamis.toml").write_text(
        '[mcpServers.time]\nscript = "time.py"\n[mcpServers.gone]\nscript = "gone.py"\n', "utf-8"
    )
    (root / "time.py").write_text("")
    for server in ("time", "tim", "gone"):
        handler = {"type": "mcp", "server": server, "tool": "now"}
        manifest = {"toolId": f"t:{server}", "displayName": "T", "description": "Says the time.", "version": "1.0.0"}
        manifest |= {"handler": handler, "parameters": {"type": "object", "properties": {}}}
        (root / f"{server}.tool.json").write_text(json.dumps(manifest))
    _, found = checked(capsys)
    codes = {
        name: [code for code, _ in found[f"{name}.tool.json"] if code.startswith("MF54")]
        for name in ("time", "tim", "gone")
    }
    assert codes == {"time": [], "tim": ["MF547"], "gone": ["MF548"]}
    main(["check"])
    assert "No MCP server 'tim' is configured, did you mean 'time'?" in capsys.readouterr().out


@pytest.mark.parametrize("text", ['workflows = ["a\\u0000b"]\n', "profile =\n", "workflows = 3\n"])
def test_a_fault_in_the_settings_of_one_path_keeps_no_other_from_being_looked_at(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.md").write_text("<ACTION><t:x><p>1</p></t:x></ACTION>\n")
    (tmp_path / "b" / "tamis.toml").write_text(text)
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    root = ["--root", str(tmp_path)]
    main(["check", "--format", "json", *root, *paths])
    told = capsys.readouterr()
    files = json.loads(told.out)["files"]
    assert [Path(file["path"]).name for file in files] == ["x.md", "tamis.toml", "x.md", "x.md"]
    assert main(["format", "--check", *root, *paths]) == 1
    formatted = capsys.readouterr()
    assert formatted.out.count("would format") == 3
    # what is wrong is told once by each: among the findings, and by a command that has none on standard error
    faults = [found for file in files for found in file["diagnostics"] if found["code"] in ("ST801", "ST803")]
    assert (formatted.err.count("tamis.toml"), told.err.count("tamis.toml")) == (len(faults), 0)
