"""The sample manifest of seed 003 §2.2.3 runs for real: both of its examples give what they state (D44, D62, ruling 43)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.manifest.reading import read_manifest
from tests.runtime.run_tool import error_of, run_tool

SAMPLE = Path(__file__).parent.parent / "protocols" / "seed_manifest.jsonc"
ECHO = "import json, sys\nprint(json.dumps({'received_message': json.load(sys.stdin)['message']}))"
LONG = "import time\ntime.sleep(10**6)"
TOOL = "core:execute-python-script"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "execute-python-script.tool.json").write_text(SAMPLE.read_text("utf-8"), encoding="utf-8")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "echo.py").write_text(ECHO)
    (tmp_path / "examples" / "long_running.py").write_text(LONG)
    return tmp_path


def contains(found: Any, stated: Any) -> bool:
    if isinstance(stated, dict):
        return isinstance(found, dict) and all(name in found and contains(found[name], stated[name]) for name in stated)
    return bool(found == stated)


def test_both_examples_of_the_seed_behave_as_stated(root: Path) -> None:  # D44
    reading = read_manifest(SAMPLE.read_text("utf-8"))
    assert reading.manifest is not None
    outcomes: list[str] = []
    for example in reading.manifest.examples:
        result = run_tool(root, TOOL, dict(example.input))
        assert contains(result.output, example.expected_output), result
        outcomes.append(result.status)
    assert outcomes == ["success", "timeout"]


def test_the_outer_result_mirrors_the_scripts_record(root: Path) -> None:  # ruling 43
    (root / "examples" / "bad.py").write_text("import sys\nsys.exit('Division by zero in script.')")
    result = run_tool(root, TOOL, {"scriptPath": "examples/bad.py"})
    output: Any = result.output
    assert (result.status, output["success"]) == ("error", False)
    assert output["error"]["type"] == error_of(result)["type"] == "ScriptError"
    assert output["error"]["details"] == "Division by zero in script."


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"scriptPath": "../outside.py"}, "SecurityError"),
        ({"scriptPath": "/etc/passwd"}, "SecurityError"),
        ({"scriptPath": "examples/none.py"}, "ScriptError"),  # T12
        ({"scriptPath": "none/none.py"}, "ScriptError"),
        ({"scriptPath": "."}, "SecurityError"),
        ({"scriptPath": "examples/echo.py", "timeoutMs": "soon"}, "ParameterValidationError"),
        ({}, "ParameterValidationError"),
    ],
)
def test_a_call_that_reaches_no_script_has_the_record_too(
    root: Path, args: dict[str, Any], kind: str
) -> None:  # ruling 43, D24
    result = run_tool(root, TOOL, args)
    output: Any = result.output
    assert (result.status, output["success"], output["logs"]) == ("error", False, [])
    assert output["error"] == {"type": kind, "message": error_of(result)["message"]}


def test_the_script_runs_in_its_own_folder(root: Path) -> None:  # D11
    (root / "examples" / "cwd.py").write_text("import json, os\nprint(json.dumps(sorted(os.listdir('.'))))")
    output: Any = run_tool(root, TOOL, {"scriptPath": "examples/cwd.py"}).output
    assert "echo.py" in output["outputData"]
    assert not [name for name in output["outputData"] if name.endswith(".tool.json")]


@pytest.mark.parametrize(
    "path",
    ["../outside.py", "/etc/passwd", "examples/../../outside.py", "examples\\echo.py", "link.py", "linked/echo.py"],
)
def test_a_path_that_leaves_the_base_directory_is_refused(root: Path, path: str) -> None:  # D13, S1, S3
    (root.parent / "outside.py").write_text(ECHO)
    (root / "link.py").symlink_to(root.parent / "outside.py")
    (root / "linked").symlink_to(root / "examples")
    result = run_tool(root, TOOL, {"scriptPath": path, "inputData": {"message": "x"}})
    assert error_of(result)["type"] == "SecurityError"
    assert result.output is UNSET or not re.search("received", json.dumps(result.output))


def test_a_shell_command_in_the_path_is_only_a_name(root: Path, tmp_path: Path) -> None:  # S3
    result = run_tool(root, TOOL, {"scriptPath": "examples/echo.py; touch pwned"})
    assert result.status == "error"
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("path", ["./examples/echo.py", "examples/./echo.py"])
def test_a_dot_in_a_path_changes_nothing(root: Path, path: str) -> None:  # T12
    result = run_tool(root, TOOL, {"scriptPath": path, "inputData": {"message": "x"}})
    assert result.status == "success", result


def test_a_script_that_is_not_there_is_no_abuse_and_links_tell_nothing(root: Path, tmp_path: Path) -> None:  # T12
    (root / "examples" / "out").symlink_to("/etc")
    kinds = {
        name: error_of(run_tool(root, TOOL, {"scriptPath": f"examples/out/{name}"}))["type"]
        for name in ("passwd", "nothing-has-this-name")
    }
    assert set(kinds.values()) == {"SecurityError"}
