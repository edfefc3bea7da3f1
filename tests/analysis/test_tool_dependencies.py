"""What an editor and ``tamis check`` say of tools that need each other (D91), and of VCP's ways to name a method (V45)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.server.analysis.answers import Finding
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.cli.main import main
from tamis.server.runtime.runtime import Runtime
from tests.sample_tools import make_tool, vcp


def manifest(tool_id: str, dependencies: dict[str, Any], version: str = "1.0.0") -> str:
    return json.dumps(
        {
            "toolId": tool_id,
            "displayName": tool_id,
            "description": "Needs other tools, as the tests of this project want it.",
            "version": version,
            "handler": {"type": "external-script", "scriptPath": "tool.py", "language": "python"},
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
            "dependencies": dependencies,
        },
        indent=2,
    )


def found(root: Path, text: str, name: str = "draft.tool.json") -> list[tuple[str, str, str]]:
    """Code, marked text and message of what is said about dependencies."""
    path = root / name
    snapshot = Snapshot(str(path), "manifest", text, Runtime(root).registry)
    return [shown(one, text) for one in diagnose(snapshot) if one.code in ("MF544", "MF545", "MF546")]


def shown(finding: Finding, text: str) -> tuple[str, str, str]:
    return finding.code, text[slice(*finding.span)], finding.message


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "core:base", version="1.4.0")
    make_tool(tmp_path, "core:back", dependencies={"core:draft": "*"})
    return tmp_path


def test_each_fault_stands_on_its_entry(root: Path) -> None:  # D91
    text = manifest("core:draft", {"core:bsae": "^1", "core:base": "^2", "core:back": "^1", "core:draft": "*"})
    assert found(root, text) == [
        (
            "MF544",
            '"core:bsae"',
            "'core:bsae' is not registered, so this tool cannot be called, did you mean 'core:base'?",
        ),
        ("MF545", '"^2"', "No version of 'core:base' is in '^2'; there is 1.4.0"),
        ("MF546", '"core:back"', "'core:back' needs this tool in turn: core:draft → core:back → core:draft"),
        ("MF546", '"core:draft"', "'core:draft' needs this tool in turn: core:draft → core:draft"),
    ]


def test_a_fix_writes_the_id_that_is_there(root: Path) -> None:
    text = manifest("core:draft", {"core:bsae": "^1"})
    snapshot = Snapshot(str(root / "draft.tool.json"), "manifest", text, Runtime(root).registry)
    (finding,) = (one for one in diagnose(snapshot) if one.code == "MF544")
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    assert text[: edit.start] + edit.new_text + text[edit.end :] == manifest("core:draft", {"core:base": "^1"})


@pytest.mark.parametrize(
    "dependencies",
    [
        {},
        {"core:base": "^1.2"},
        {"core:base": ">=1 <2 || ^7"},
        {"system:clock": "*"},
        {"kb:notes": "^1"},
        {"workflow:x": "*"},
    ],
)
def test_what_holds_or_cannot_be_known_here_is_not_said(root: Path, dependencies: dict[str, str]) -> None:
    assert found(root, manifest("core:other", dependencies)) == []


@pytest.mark.parametrize("dependencies", [3, [], {"core:x": 3}, {"core:x": "no range"}, {"a b": "*"}, {"core:x": None}])
def test_what_is_no_entry_has_its_own_finding_alone(root: Path, dependencies: Any) -> None:
    assert found(root, manifest("core:other", dependencies)) == []


def test_a_half_typed_manifest_is_judged_as_far_as_it_goes(root: Path) -> None:
    text = manifest("core:draft", {"core:nowhere": "^1"})
    for end in range(0, len(text), 7):
        found(root, text[:end])


def test_tamis_check_says_it_at_the_entry(root: Path, capsys: pytest.CaptureFixture[str]) -> None:  # D91
    path = root / "draft" / "x.tool.json"
    path.parent.mkdir()
    path.write_text(manifest("core:draft", {"core:base": "^2"}))
    (path.parent / "tool.py").write_text("print(1)")
    assert main(["check", "--format", "json", "--root", str(root)]) == 1
    said = {
        one["code"]: one["range"]["start"]["line"]
        for file in json.loads(capsys.readouterr().out)["files"]
        for one in file["diagnostics"]
        if file["path"].endswith("draft/x.tool.json")
    }
    assert said == {"MF545": path.read_text().split("\n").index('    "core:base": "^2"')}


# VCP


def test_a_vcp_call_by_its_method_is_no_unknown_tool(root: Path) -> None:  # V45, ruling 30
    make_tool(
        root,
        "math:sum",
        handler={"type": "service-method", "serviceName": "Math", "methodName": "add"},
        properties={"a": {"type": "integer"}},
    )
    registry = Runtime(root).registry

    def codes(text: str) -> list[str]:
        return [one.code for one in diagnose(Snapshot("t.vcp", "text", text, registry)) if one.severity == "error"]

    for text in (vcp("math:sum_add", a="1"), vcp("Math_add", a="1"), vcp("Math", command="add", a="1")):
        assert codes(text) == []
    assert codes(vcp("Math_sub", a="1")) == ["VA401"]
    assert codes(vcp("Math", command="add", b="1")) == ["VA403"]


def test_the_index_resolves_vcp_names_by_the_same_rule(root: Path) -> None:  # ruling 30: one rule
    cases = [
        ("a", "A1", "b_c"),
        ("a_b", "A2", "c"),
        ("x:one", "Twice", "run"),
        ("x:two", "Twice", "run"),
        ("x:t", "Text", "up"),
    ]
    index = WorkspaceIndex()
    for tool_id, service, method in cases:
        handler = {"type": "service-method", "serviceName": service, "methodName": method}
        folder = make_tool(root / "vcp", tool_id, handler=handler)
        index.update(str(folder / "x.tool.json"), (folder / "x.tool.json").read_text("utf-8"))
    registry = Runtime(root / "vcp").registry
    for name in ("a_b_c", "a_b", "Twice_run", "Text_up", "x:t_up", "x:t_up@^1", "Text_down", "x:one", "x:one@^1"):
        tool = registry.resolve(name, protocol="vcp").tool
        assert index.resolve(name, "vcp") == (None if tool is None else tool.tool_id), name
