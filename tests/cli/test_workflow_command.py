"""``tamis workflow list|graph|run`` (T10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.server.cli.main import main
from tests.runtime.workflow_world import edge, flow


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "flows"
    folder.mkdir()
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n')
    nodes: list[dict[str, Any]] = [
        {"id": "in", "type": "input"},
        {"id": "say", "type": "template", "config": {"template": "Hello {{name}}!"}},
        {"id": "big", "type": "condition", "config": {"operator": "equals", "than": "Ann"}},
        {"id": "other", "type": "template", "config": {"template": "not {{x}}"}},
    ]
    edges = [edge("in.name", "say.name"), edge("in.name", "big.value"), edge("big.else", "other.x")]
    greet = flow(nodes, edges, {"greeting": "say.text", "no": "other.text"}, {"name": "STRING"})
    (folder / "greet.json").write_text(json.dumps(greet))
    broken = flow(
        [{"id": "a", "type": "template", "config": {"template": "{{x.y}}"}, "inputs": {"x": {}}}], [], {"y": "a.text"}
    )
    (folder / "broken.json").write_text(json.dumps(broken))
    (folder / "gone.json").write_text(json.dumps(flow([{"id": "a", "type": "constant"}], [], {"y": "a.value"})))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_workflows_are_listed_with_inputs_outputs_and_why_one_cannot_run(capsys: pytest.CaptureFixture[str]) -> None:
    """T10."""
    assert main(["workflow"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "greet   (name) → greeting, no  A workflow of the tests." in lines[2]
    assert "[not available: the workflow cannot be run" in lines[1]
    assert main(["workflow", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["workflows"]
    assert [one["workflowId"] for one in found] == ["broken", "gone", "greet"]


@pytest.mark.parametrize("name", ["greet", "workflow:greet", "flows/greet.json"])
def test_a_workflow_is_drawn_by_each_of_its_names(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """T10."""
    assert main(["workflow", "graph", name]) == 0
    assert "flowchart LR\n" in capsys.readouterr().out
    assert main(["workflow", "graph", name, "--format", "svg"]) == 0
    assert capsys.readouterr().out.startswith("<svg")


def test_a_run_prints_its_result_and_on_standard_error_every_node(capsys: pytest.CaptureFixture[str]) -> None:
    """T10."""
    assert main(["workflow", "run", "greet", "--args", '{"name": "Ann"}']) == 0
    written = capsys.readouterr()
    assert json.loads(written.out) == {"greeting": "Hello Ann!"}
    states = [line.split(" (")[0].split() for line in written.err.splitlines()]
    assert states == [["success", "in"], ["success", "say"], ["success", "big"], ["skipped", "other"]]


def test_a_run_that_fails_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    """T10."""
    assert main(["workflow", "run", "broken"]) == 1
    written = capsys.readouterr()
    assert "node 'a' (template)" in written.out
    assert written.err.startswith("error     a (template)")
    assert main(["workflow", "run", "greet", "--json", "--args", "{}"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "ParameterValidationError"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "run needs a workflow"),
        (["graph"], "graph needs a workflow"),
        (["list", "greet"], "list takes no workflow"),
        (["run", "gret"], "no workflow 'gret', did you mean 'greet'?"),
        (["graph", "nothing"], "no workflow 'nothing'"),
        (["run", "greet", "--args", "[1]"], "--args: line 1, column 1: this is no object"),
    ],
)
def test_wrong_words_are_told(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    """T10."""
    assert main(["workflow", *words]) == 2
    assert said in capsys.readouterr().err
