"""The documented Emacs configuration, in a real Emacs with eglot."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import ECHO
from tests.editors.user_settings import write_settings

DOC = Path(__file__).resolve().parents[2] / "docs" / "editors" / "emacs.md"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("no Emacs: install emacs with eglot (Emacs 29, or 28 with the package) to run this session")
    probe = subprocess.run(
        [emacs, "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("this Emacs has no eglot")
    workspace = tmp_path_factory.mktemp("工具")
    home = tmp_path_factory.mktemp("home")
    tools = workspace / "tools"
    tools.mkdir()
    (workspace / "package.json").write_text("{}")
    (workspace / "calls.tam").write_text(
        "<|[REQUEST_TOOL]|>\ncommand:»»»core:eccho«««\ntext:»»»你好 😋«««\n<|[END_TOOL]|>\n"
    )
    (workspace / "later.tam").write_text("<|[REQUEST_TOOL]|>\ncommand:»»»core:later«««\ntext:»»»a«««\n<|[END_TOOL]|>\n")
    (tools / "echo.py").write_text("import json, sys\njson.dump(json.load(sys.stdin), sys.stdout)\n")
    asking = {**ECHO, "toolId": "core:ask", "execution": {"requireConfirmation": True}}
    (tools / "ask.tool.json").write_text(json.dumps(asking))
    examples = [
        {"description": "Says a.", "input": {"text": "a"}, "expectedOutput": {"text": "a"}},
        {"input": {"text": "b"}, "expectedOutput": {"text": "c"}},
    ]
    (tools / "tested.tool.json").write_text(json.dumps({**ECHO, "toolId": "core:tested", "examples": examples}))
    (tools / "sleep.py").write_text("import time\ntime.sleep(86400)\n")
    handler = {**ECHO["handler"], "scriptPath": "sleep.py"}
    (tools / "sleep.tool.json").write_text(json.dumps({**ECHO, "toolId": "core:sleep", "handler": handler}))
    (workspace / "sleeps.tam").write_text(
        "<|[REQUEST_TOOL]|>\ncommand:»»»core:sleep«««\ntext:»»»a«««\n<|[END_TOOL]|>\n"
    )
    (tools / "echo.tool.json").write_text(json.dumps(ECHO, indent=2))
    broken = json.dumps({**ECHO, "toolId": "core:broken", "displayName": "回声 😋"}, ensure_ascii=False)
    (tools / "broken.tool.json").write_text(broken.replace('"echo.py"', '"missing.py"').replace('"python"', '"pyton"'))
    snippet = "\n".join(re.findall(r"```elisp\n(.*?)```", DOC.read_text("utf-8"), re.S))
    config = home / "config.el"
    config.write_text(snippet)
    write_settings(home / ".config")
    result = home / "seen.json"
    script = Path(__file__).with_name("eglot_session.el")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    run = subprocess.run(
        [emacs, "--batch", "-l", str(script), str(config), f"{workspace}/", str(result)],
        env={
            **os.environ,
            "PATH": path,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "LANG": "C.UTF-8",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.exists(), (run.stdout + run.stderr)[:2000]
    return json.loads(result.read_text("utf-8"))


def test_manifest_errors_cover_what_is_wrong(seen: dict[str, Any]) -> None:
    assert any("'pyton'" in message for message in seen["manifest"])
    assert '"pyton"' in seen["places"]
    assert '"missing.py"' in seen["places"]


def test_typing_takes_the_error_away(seen: dict[str, Any]) -> None:
    assert not any("'pyton'" in message for message in seen["mended"])


def test_completion_offers_the_script(seen: dict[str, Any]) -> None:
    assert any("echo.py" in label for label in seen["labels"])


def test_calls_are_checked_against_the_tools(seen: dict[str, Any]) -> None:
    assert any("did you mean 'core:echo'" in message for message in seen["calls"])


def test_hover_and_signature_come_through_eldoc(seen: dict[str, Any]) -> None:
    assert ECHO["description"] in seen["hover"]
    assert seen["signature"].startswith('core:echo(text: string, mode?: "plain" | "loud")')


def test_settings_reach_the_server(seen: dict[str, Any]) -> None:
    # The documented ones say that prompts are shown in TAM first.
    assert seen["hover"].index("What a model reads in TAM") < seen["hover"].index("In VCP")


def test_completion_tells_of_its_items_and_ends_as_plain_text(seen: dict[str, Any]) -> None:
    # No package for snippets is there, and eglot says so.
    assert "plain" in seen["told"]
    assert seen["exited"] == "text:»»»a«««"


def test_code_action_mends_the_tool_id(seen: dict[str, Any]) -> None:
    assert seen["fixed"] == "command:»»»core:echo«««"


def test_calls_are_run_by_a_code_action(seen: dict[str, Any]) -> None:
    assert '"text": "你好 😋"' in seen["ran"]


def test_approvals_are_asked_with_their_arguments(seen: dict[str, Any]) -> None:
    prompt, *titles = seen["question"]
    assert '{"text":"a"}' in prompt
    assert titles == ["Allow once", "Deny", "More…"]
    assert len(prompt.splitlines()[0]) < 80
    _, *more = seen["more"]
    assert more == ["Allow for this session", "Always allow", "Always deny", "Back"]
    assert "core:ask executed successfully" in seen["approved"]
    assert "denied" in seen["denied"]


def test_examples_are_tested_by_a_code_action(seen: dict[str, Any]) -> None:
    assert "1 of 2 examples passed" in seen["tested"]


def test_a_run_that_eglot_gave_up_waiting_for_is_cancelled(seen: dict[str, Any]) -> None:
    assert "core:sleep" in seen["cancelled"]
    assert "cancelled" in seen["cancelled"]


def test_xref_finds_the_manifest_and_the_calls(seen: dict[str, Any]) -> None:
    assert seen["definition"] == ["echo.tool.json"]
    assert set(seen["references"]) == {"echo.tool.json", "calls.tam"}


def test_symbols_of_the_workspace_and_imenu(seen: dict[str, Any]) -> None:
    assert any("core:echo" in symbol for symbol in seen["symbols"])
    assert any(name.startswith("core:broken") for name in seen["menu"])


def test_formatting_lays_the_manifest_out(seen: dict[str, Any]) -> None:
    assert re.match(r'\{\n\s+"toolId": "core:broken",\n', seen["formatted"])


def test_rename_changes_the_manifest_and_the_calls(seen: dict[str, Any]) -> None:
    assert "command:»»»core:said«««" in seen["renamed"]


def test_a_manifest_that_comes_on_disk_is_known(seen: dict[str, Any]) -> None:
    assert seen["watched"] is True


def test_other_json_is_left_alone(seen: dict[str, Any]) -> None:
    assert seen["plain"] is False


def test_shutdown_is_clean(seen: dict[str, Any]) -> None:
    assert seen["exit"] == 0
