"""``tamis test``: the examples of manifests as tests, run in the sandbox and held against expectedOutput (D42, D44)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tamis.protocols.expected import differences, expected_error
from tamis.server.cli.main import COMMANDS
from tests.cli.in_process import Tamis

SAMPLE = Path(__file__).parent.parent / "protocols" / "seed_manifest.jsonc"
ECHO = "import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)"


def write_tool(folder: Path, name: str, examples: list[Any], script: str = ECHO, **fields: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {
        "toolId": f"test:{name}",
        "displayName": name,
        "description": "Does what the test needs and nothing else.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": f"{name}.py", "language": "python"},
        "examples": examples,
        **fields,
    }
    (folder / f"{name}.py").write_text(script)
    path = folder / f"{name}.tool.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return path


def outcomes(report: Any) -> list[tuple[str, Any, str]]:
    return [(test["toolId"], test["example"], test["outcome"]) for test in report["tests"]]


def test_examples_pass_and_fail_by_what_they_expect(tamis: Tamis) -> None:  # D42
    write_tool(
        tamis.folder,
        "echo",
        [
            {"description": "Equal.", "input": {"a": 1}, "expectedOutput": {"a": 1.0}},
            {"description": "Other.", "input": {"a": 1, "b": 2}, "expectedOutput": {"a": 2}},
            {"description": "Nothing is expected.", "input": {"a": 1}},
            {"description": "A part.", "input": {"a": 1, "b": 2}, "expectedOutput": {"a": 1}, "x-match": "partial"},
        ],
    )
    done = tamis("test", "--json")
    assert done.code == 1
    report = done.json()
    assert [outcome for _, _, outcome in outcomes(report)] == ["passed", "failed", "passed", "passed"]
    assert report["tests"][1]["details"] == ["/a: expected 2, given 1", "/b: not expected: 2"]
    assert (report["passed"], report["failed"], report["skipped"]) == (3, 1, 0)
    shown = tamis("test").out
    assert "FAIL" in shown
    assert "/a: expected 2, given 1" in shown
    assert "4 examples of 1 tool: 3 passed, 1 failed" in shown


def test_both_examples_of_the_seeds_sample_pass(tamis: Tamis) -> None:  # D44, seed 003 §2.2.3
    (tamis.folder / "execute-python-script.tool.json").write_text(SAMPLE.read_text("utf-8"), encoding="utf-8")
    (tamis.folder / "examples").mkdir()
    (tamis.folder / "examples" / "echo.py").write_text(
        "import json, sys\nprint(json.dumps({'received_message': json.load(sys.stdin)['message']}))"
    )
    (tamis.folder / "examples" / "long_running.py").write_text("import time\ntime.sleep(86400)")
    done = tamis("test", "--json")
    assert (done.code, done.json()["passed"]) == (0, 2), done


def test_a_failure_can_be_expected_of_any_tool(tamis: Tamis) -> None:  # D44: the sample's form of an error
    wrong = {"success": False, "error": {"type": "TimeoutError"}}
    write_tool(
        tamis.folder,
        "fail",
        [
            {"input": {}, "expectedOutput": {"success": False, "error": {"type": "ScriptError", "details": "no tea"}}},
            {"input": {}, "expectedOutput": wrong},
            {"input": {}, "expectedOutput": {"x": 1}},
        ],
        "import sys\nsys.exit('no tea')",
    )
    report = tamis("test", "--json").json()
    assert [outcome for _, _, outcome in outcomes(report)] == ["passed", "failed", "failed"]
    assert report["tests"][1]["details"] == ['/error/type: expected "TimeoutError", given "ScriptError"']
    assert "no tea" in report["tests"][2]["details"]


def test_what_cannot_run_here_is_skipped_with_its_reason_and_counted(tamis: Tamis) -> None:
    asks = {"execution": {"requireConfirmation": True}}
    write_tool(tamis.folder / "a", "asks", [{"input": {}}], **asks)
    write_tool(tamis.folder / "b", "gone", [{"input": {}}])
    (tamis.folder / "b" / "gone.py").unlink()
    write_tool(tamis.folder / "c", "off", [{"input": {}}], agentCallable=False)
    write_tool(
        tamis.folder / "d",
        "host",
        [{"input": {}}],
        handler={"type": "service-method", "serviceName": "S", "methodName": "m"},
    )
    done = tamis("test")
    assert done.code == 0
    assert "4 examples of 4 tools: 4 skipped" in done.out
    assert "needs approval: --yes" in done.out
    assert "'gone.py' does not exist" in done.out
    assert "agentCallable" in done.out
    assert "1 passed, 3 skipped" in tamis("test", "--yes").out


def test_it_runs_from_any_folder_and_takes_files_and_folders(
    tamis: Tamis, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write_tool(tamis.folder / "own" / "deep", "one", [{"input": {"a": 1}, "expectedOutput": {"a": 1}}])
    (tamis.folder / "own" / "tamis.toml").write_text('tools = ["elsewhere"]\n')
    (tamis.folder / "own" / "elsewhere").mkdir()
    away = tmp_path_factory.mktemp("away")
    for given in (path, path.parent, tamis.folder / "own"):
        # it stands outside the folders that tamis.toml names, and is tested all the same
        assert "1 passed" in tamis("test", given, cwd=away).out
    assert tamis("test", path, path, path.parent, "--json", cwd=away).json()["passed"] == 1
    assert tamis("test", "nowhere").code == 2
    assert tamis("test", path.with_name("one.py"), cwd=away).code == 2


def test_a_manifest_that_is_not_registered_fails(tamis: Tamis) -> None:
    write_tool(tamis.folder, "ok", [{"input": {}, "expectedOutput": {}}])
    (tamis.folder / "bad.tool.json").write_text('{"toolId": "test:bad"')
    for words in (("test",), ("test", ".")):
        done = tamis(*words, "--json")
        assert done.code == 1
        assert outcomes(done.json()) == [("test:bad", None, "failed"), ("test:ok", 0, "passed")]
        assert "not registered" in done.json()["tests"][0]["reason"]


def test_a_tool_that_lacks_a_dependency_is_not_said_to_be_missing_itself(tamis: Tamis) -> None:
    write_tool(tamis.folder, "needy", [{"input": {}}], dependencies={"other:tool": "^1.0"})
    done = tamis("test", "--json")
    reasons = [test["reason"] for test in done.json()["tests"]]
    assert done.code == 1 and all(reason.startswith("not available: ") for reason in reasons)


def test_the_filter_takes_parts_and_patterns_and_says_when_nothing_fits(tamis: Tamis) -> None:
    write_tool(tamis.folder, "echo", [{"description": "Tea.", "input": {}}, {"description": "Milk.", "input": {}}])
    assert [one for _, one, _ in outcomes(tamis("test", "--json", "--filter", "MILK").json())] == [1]
    assert [one for _, one, _ in outcomes(tamis("test", "--json", "--filter", "test:e*").json())] == [0, 1]
    done = tamis("test", "--filter", "coffee")
    assert (done.code, done.out) == (2, "")
    assert "no example fits" in done.err


def test_results_come_in_a_stable_order_when_they_run_in_parallel(tamis: Tamis) -> None:
    slow = "import json, sys, time\na = json.load(sys.stdin)\ntime.sleep(a['wait'])\njson.dump(a, sys.stdout)"
    write_tool(tamis.folder, "slow", [{"input": {"wait": wait}} for wait in (0.3, 0.0, 0.1)], slow)
    done = tamis("test", "--json", "--jobs", "3")
    assert [test["output"]["wait"] for test in done.json()["tests"]] == [0.3, 0.0, 0.1]


def test_junit_holds_every_example_and_only_what_xml_allows(tamis: Tamis) -> None:
    write_tool(
        tamis.folder,
        "echo",
        [
            {"description": 'A "quoted" <one> & \x07', "input": {}, "expectedOutput": {}},
            {"description": "Fails.", "input": {"a": "\x00]]>"}, "expectedOutput": {"a": "b"}},
        ],
    )
    write_tool(tamis.folder, "asks", [{"input": {}}], execution={"requireConfirmation": True})
    assert tamis("test", "--junit", "out.xml").code == 1
    root = ElementTree.parse(tamis.folder / "out.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    cases = {str(case.get("name")): case for case in root.iter("testcase")}
    assert any(name.startswith('A "quoted" <one> &') for name in cases)
    failure = cases["Fails."].find("failure")
    assert failure is not None
    assert "/a: expected" in str(failure.text)
    assert tamis("test", "--junit", "no/such/folder.xml").code == 2


def test_a_tool_that_the_agents_profile_leaves_out_is_tested_all_the_same(tamis: Tamis) -> None:
    write_tool(tamis.folder, "echo", [{"input": {"a": 1}, "expectedOutput": {"a": 1}}])
    (tamis.folder / "agent_profile.json").write_text('{"tool_ids_inventory": [], "toolCallConfig": {"enabled": false}}')
    (tamis.folder / "tamis.toml").write_text('profile = "agent_profile.json"\n[policy]\ncallsPerMinute = 1\n')
    assert "1 passed" in tamis("test").out


def test_without_examples_it_says_so(tamis: Tamis) -> None:
    write_tool(tamis.folder, "echo", [])
    done = tamis("test")
    assert done.code == 0
    assert "no examples" in done.err


def test_a_text_without_calls_is_told_as_a_text(tamis: Tamis) -> None:
    write_tool(tamis.folder, "echo", [])
    (tamis.folder / "no.md").write_text("Nothing to call.\n")
    done = tamis("test", "no.md")
    assert "no call in no.md; a call with what is expected of it is a test (docs/editors/testing.md)" in done.err
    assert "manifest" not in done.err
    both = tamis("test", "no.md", ".").err
    assert "no call in no.md;" in both and "no examples in the manifests of .;" in both


@pytest.mark.parametrize(
    ("expected", "given", "count"),
    [
        (1, 1.0, 0),
        (True, 1, 1),
        (None, False, 1),
        ([1, 2], [1], 1),
        ({"a": []}, {"a": {}}, 1),
        ("x", "x", 0),
        ({"a/b": 1}, {}, 1),
        (list(range(50)), [-1] * 50, 21),
    ],
)
def test_json_is_compared_by_value(expected: Any, given: Any, count: int) -> None:
    assert len(differences(expected, given)) == count


def test_only_the_samples_form_is_an_expected_error() -> None:
    assert expected_error({"success": False, "error": {"type": "X"}}) == {"type": "X"}
    for other in (
        {"success": True, "error": {"type": "X"}},
        {"success": False, "error": "X"},
        {"error": {"type": "X"}},
        None,
        [],
    ):
        assert expected_error(other) is None


def test_the_command_is_listed() -> None:
    assert {"test", "new", "import", "export"} <= set(COMMANDS)


def test_a_handler_that_swallows_its_cancel_does_not_keep_the_command_alive(tmp_path: Path) -> None:
    write_tool(tmp_path, "stays", [{"description": "Ends.", "input": {}}], handler={"type": "stays"})
    (tmp_path / "tamis.toml").write_text('handlers = ["stays"]\n')
    text = """
import asyncio, sys
from tamis.server.cli import interrupts, main
from tamis.server.runtime.calls import handlers
from tamis.server.runtime.handlers import plugins

class Stays:
    api, type = handlers.HANDLER_API, "stays"
    def problem(self, handler):
        return ""
    async def run(self, call):
        while True:
            try: await asyncio.sleep(86400)
            except asyncio.CancelledError: pass

plugins._LOADED["stays"] = Stays()
interrupts.run_to_end.__defaults__ = (0.3,)
sys.exit(main.main(["test", "--yes", "--timeout-ms", "100"]))
"""
    ended = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (
        ended.returncode,
        [line for line in ended.stderr.splitlines() if "TAMIS_TRUST puts in force" not in line],
    ) == (1, [])
    assert "1 example of 1 tool: 1 failed" in ended.stdout


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[[", "is no TOML"),
        ("[policy]\nallowHosts = 3", "'policy.allowHosts' must be a list of texts"),
        ("tools = 3", "'tools' must be a list of texts"),
        ("toolls = ['.']", "did you mean 'tools'?"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--filter", "a"), ("a.tool.json",), ("x.md",)])
def test_settings_that_let_nothing_run_fail_the_tests(
    tamis: Tamis, settings: str, words: str, more: tuple[str, ...]
) -> None:
    """Strangers: a build server must not take a mistake in `tamis.toml` for a pass."""
    write_tool(tamis.folder, "a", [{"input": {}}])
    (tamis.folder / "x.md").write_text("nothing\n")
    (tamis.folder / "tamis.toml").write_text(settings)
    done = tamis("test", "--trust", *more)
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("FAIL")]
    assert line.startswith("FAIL  tamis.toml  settings - the configuration has a fault: ") and words in line
    report = tamis("test", "--trust", "--json", *more).json()
    assert report["failed"] == 1 and report["passed"] == 0


def test_an_environment_that_is_not_there_is_wrong_usage(tamis: Tamis) -> None:
    """Strangers: a misspelled environment must not run the tests with the variables of none."""
    write_tool(tamis.folder, "a", [{"input": {}}])
    done = tamis("test", "--environment", "nosuch")
    assert (done.code, done.out) == (2, "")
    assert "no environment 'nosuch' (there is none: [environments.NAME] in tamis.toml makes one)" in done.err
    (tamis.folder / "tamis.toml").write_text("[environments.staging]\na = 1\n[environments.live]\na = 2\n")
    done = tamis("test", "--environment", "stagign")
    assert (done.code, done.out) == (2, "")
    assert "no environment 'stagign', did you mean 'staging'? (there is 'staging', 'live')" in done.err
    for name in ("staging", "default"):
        assert tamis("test", "--environment", name).code == 0


def test_a_fault_of_the_settings_is_no_example(tamis: Tamis) -> None:
    """The finding of a fresh user: `3 examples of 2 tools` where one tool has two examples."""
    write_tool(tamis.folder, "echo", [{"description": "a", "input": {}}, {"description": "b", "input": {}}])
    (tamis.folder / "tamis.toml").write_text("[policy]\nnonsense = 1\ncallsPerMinute = -1\n")
    done = tamis("test")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "2 examples of 1 tool: 2 skipped; the settings have a fault"


def test_a_manifest_with_an_error_is_a_failing_row_and_no_example(tamis: Tamis) -> None:
    write_tool(tamis.folder, "echo", [{"description": "a", "input": {"text": "x"}}])
    (tamis.folder / "torn.tool.json").write_text('{"toolId": "a:b", ')
    done = tamis("test")
    assert (done.code, "FAIL  a:b  manifest - not registered" in done.out) == (1, True)
    assert done.out.splitlines()[-1] == "1 example of 1 tool: 1 passed; 1 manifest has an error"
    assert json.loads(tamis("test", "--json").out)["failed"] == 1
