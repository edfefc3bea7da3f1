"""``handler.language``: built-in languages, runners by choice (D04), runtimes of the operator's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.catalogue import severity
from tamis.protocols.manifest.reading import ExternalScript, read_manifest
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.handlers.script.interpreters import custom_program, missing_for
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.loading import load_settings
from tests.node_runtime import NODE, bun
from tests.runtime.run_tool import error_of, run_tool
from tests.sample_tools import make_tool

SHELL = 'read -r given || :\nprintf \'{"given": %s, "here": "%s"}\' "$given" "$0"\n'


def tool(root: Path, language: str, script: str = SHELL, name: str = "tool.sh", **handler: Any) -> Path:
    fields = {"type": "external-script", "scriptPath": name, "language": language, **handler}
    folder = make_tool(root, "test:own", "", handler=fields)
    (folder / name).write_text(script)
    return folder


def settings(*command: str, **more: Any) -> dict[str, Any]:
    return {"sandbox": {"runtimes": {"shell": {"command": [*command], **more}}}}


@pytest.mark.parametrize("words", [("/bin/sh", "{script}"), ("/bin/sh",), ("/usr/bin/env", "sh", "{script}")])
def test_a_runtime_of_the_operators_runs_the_script(tmp_path: Path, words: tuple[str, ...]) -> None:
    tool(tmp_path, "shell")
    result = run_tool(tmp_path, "test:own", {"text": "x"}, settings=settings(*words))
    assert (result.status, result.output) == (
        "success",
        {"given": {"text": "x"}, "here": "/tool/tool.sh"},
    ), result


def test_a_program_outside_usr_is_shown_as_it_stands(tmp_path: Path) -> None:
    program = tmp_path / "elsewhere" / "bin" / "run"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\n. "$(dirname "$0")/../lib/words"\nexec /bin/sh "$@"\n')
    program.chmod(0o755)
    (tmp_path / "elsewhere" / "lib").mkdir()
    (tmp_path / "elsewhere" / "lib" / "words").write_text(":\n")
    tool(tmp_path / "root", "shell")
    shown = settings(str(program), "{script}", show=[str(tmp_path / "elsewhere")])
    result = run_tool(tmp_path / "root", "test:own", {"text": "x"}, settings=shown)
    assert result.status == "success", result
    unseen = settings(str(program), "{script}")
    result = run_tool(tmp_path / "root", "test:own", {"text": "x"}, settings=unseen)
    assert "words" in error_of(result)["details"]["text"]


def test_a_language_that_is_not_configured_makes_the_tool_unavailable(tmp_path: Path) -> None:
    tool(tmp_path, "ruby")
    error = error_of(run_tool(tmp_path, "test:own", {"text": "x"}))
    assert error["type"] == "DependencyError"
    assert "no runtime named 'ruby' is configured" in error["message"]
    assert "known are python, nodejs, bun" in error["message"]
    assert "sandbox.runtimes.ruby.command" in error["message"]


@pytest.mark.parametrize(
    ("runtime", "handler", "cause"),
    [
        ({"command": ["/nowhere/sh"]}, {}, "'/nowhere/sh', which is not an executable file"),
        ({"command": ["/bin/sh"], "show": ["/nowhere"]}, {}, "'/nowhere', which does not exist"),
        ({"command": ["/bin/sh"], "show": ["/etc"]}, {}, "too much to show"),
        ({"command": ["/bin/sh"], "show": ["/"]}, {}, "too much to show"),
        ({"command": ["/bin/sh"]}, {"entryPoint": "main"}, "entryPoint is for python, nodejs, bun"),
        ({"command": ["/bin/sh"], "extensions": [".bash"]}, {}, "does not end as"),
    ],
)
def test_a_runtime_that_cannot_run_the_tool_says_why(
    tmp_path: Path, runtime: dict[str, Any], handler: dict[str, Any], cause: str
) -> None:
    tool(tmp_path, "shell", **handler)
    own = {"sandbox": {"runtimes": {"shell": runtime}}}
    assert cause in error_of(run_tool(tmp_path, "test:own", {"text": "x"}, settings=own))["message"]


@pytest.mark.parametrize(
    ("runtimes", "cause"),
    [
        ({"python": {"command": ["/bin/sh"]}}, "is built in"),
        ({"Shell": {"command": ["/bin/sh"]}}, "cannot be a runtime's name"),
        ({"shell": {"command": []}}, "must begin with a program's absolute path"),
        ({"shell": {"command": ["sh"]}}, "must begin with a program's absolute path"),
        ({"shell": {"command": "sh"}}, "must be a list of texts"),
        ({"shell": {"command": ["/bin/sh"], "shows": []}}, "unknown setting 'sandbox.runtimes.shell.shows'"),
        ({"shell": {"command": ["/bin/sh"], "show": ["lib"]}}, "'lib', which is not absolute"),
        ({"shell": {"command": ["/bin/sh"], "extensions": ["sh"]}}, "does not begin with a dot"),
        ({"shell": 1}, "'sandbox.runtimes.shell' must be a table"),
        (1, "'sandbox.runtimes' must be a table"),
    ],
)
def test_a_wrong_runtime_in_the_settings_is_said_and_closes_all(tmp_path: Path, runtimes: Any, cause: str) -> None:
    loaded = load_settings(tmp_path, {"sandbox": {"runtimes": runtimes}})
    assert cause in "\n".join(loaded.problems)
    assert loaded.closed


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("ruby", "MF536"),
        ("perl", "MF536"),
        ("deno", "MF536"),
        ("js", "MF503"),
        ("node", "MF503"),
        ("pyhton", "MF503"),
        ("Ruby", "MF503"),
        ("a b", "MF503"),
        ("", "MF503"),
        ("../sh", "MF503"),
        ("x" * 40, "MF503"),
    ],
)
def test_an_unknown_language_is_a_warning_and_a_slip_an_error(tmp_path: Path, language: str, code: str) -> None:
    folder = tool(tmp_path, language)
    reading = read_manifest((folder / "x.tool.json").read_text("utf-8"))
    found = [diag for diag in reading.diagnostics if diag.code == code]
    assert found, reading.diagnostics
    assert (reading.manifest is not None) == (severity(found[0]) == "warning")


def test_a_runtime_that_is_configured_is_no_finding(tmp_path: Path) -> None:
    folder = tool(tmp_path, "shell")
    text = (folder / "x.tool.json").read_text("utf-8")
    assert not read_manifest(text, runtimes={"shell": 1}).diagnostics
    own = settings("/bin/sh", "{script}")
    assert not Runtime(tmp_path, own).validate_manifest(text).warnings
    assert [found.code for found in Runtime(tmp_path).validate_manifest(text).warnings] == ["MF536"]


def test_the_program_of_a_link_is_shown_at_the_links_place(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    loaded = load_settings(tmp_path, settings(str(tmp_path / "sh"), "-e", "{script}"))
    program = custom_program(ExternalScript("a/b.sh", "shell"), loaded.settings)
    assert program is not None
    assert program.command == (str(tmp_path / "sh"), "-e", "/tool/a/b.sh")
    assert program.binds == ((os.path.realpath("/bin/sh"), str(tmp_path / "sh")),)


def test_the_doctor_names_files_versions_and_runners(tmp_path: Path) -> None:
    own = settings("/nowhere/sh")["sandbox"] | {
        "interpreters": {"bun": bun(), "nodejs": NODE},
        "runners": {"python": "uv", "nodejs": "bun"},
    }
    tool(tmp_path, "shell")
    report = examine(Runtime(tmp_path, {"sandbox": own}))
    checks = {check["name"]: check for check in report["checks"]}
    assert "uv run" in checks["python"]["text"]
    assert checks["nodejs"]["text"].startswith(bun())
    assert checks["shell"]["state"] == "error"
    assert "not an executable file" in checks["shell"]["text"]
    assert checks["shell"]["remedy"]


def test_typescript_on_an_old_node_is_said_with_the_ways_out(tmp_path: Path) -> None:
    script = ExternalScript("tool.ts", "nodejs")
    if not Path("/usr/bin/node").exists():
        pytest.skip("no Node of the system here")
    loaded = load_settings(tmp_path, {"sandbox": {"interpreters": {"nodejs": "/usr/bin/node"}}})
    told = missing_for(script, loaded.settings)
    assert told == "" or ("is TypeScript" in told and 'sandbox.runners.nodejs = "bun"' in told)
    by_bun = {"sandbox": {"interpreters": {"bun": bun()}, "runners": {"nodejs": "bun"}}}
    assert missing_for(script, load_settings(tmp_path, by_bun).settings) == ""
