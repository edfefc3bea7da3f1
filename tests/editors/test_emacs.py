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

from tests.editors.test_neovim import ECHO

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
    (tools / "echo.py").write_text("")
    (tools / "echo.tool.json").write_text(json.dumps(ECHO, indent=2))
    broken = json.dumps({**ECHO, "toolId": "core:broken", "displayName": "回声 😋"}, ensure_ascii=False)
    (tools / "broken.tool.json").write_text(broken.replace('"echo.py"', '"missing.py"').replace('"python"', '"pyton"'))
    (snippet,) = re.findall(r"```elisp\n(.*?)```", DOC.read_text("utf-8"), re.S)
    config = home / "config.el"
    config.write_text(snippet)
    result = home / "seen.json"
    script = Path(__file__).with_name("eglot_session.el")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    run = subprocess.run(
        [emacs, "--batch", "-l", str(script), str(config), f"{workspace}/", str(result)],
        env={**os.environ, "PATH": path, "HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
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


def test_other_json_is_left_alone(seen: dict[str, Any]) -> None:
    assert seen["plain"] is False


def test_shutdown_is_prompt_and_clean(seen: dict[str, Any]) -> None:
    assert seen["exit"] == 0
    assert seen["seconds"] < 0.5
