"""The documented entry for Kate, in a real Kate without a screen: what it tells the server, and what comes back (issue 17).

A recorder stands where the entry looks for the program, and passes everything on to the server.
"""

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
from tests.editors.snippets import snippets
from tests.sample_tools import action
from tests.waiting import until

PROFILES = Path(__file__).parents[1] / "lsp" / "editor_profiles.json"
RECORDER = f"""#!/bin/sh
tee -a "$HOME/sent" | '{Path(sys.executable).with_name("tamis")}' "$@" | tee -a "$HOME/got"
"""


class Session:
    """What Kate and the server said to each other about one file."""

    def __init__(self, kate: str, home: Path, file: Path) -> None:
        program = home / ".local" / "bin" / "tamis"
        program.parent.mkdir(parents=True)
        program.write_text(RECORDER)
        program.chmod(0o755)
        settings = home / ".config" / "kate" / "lspclient" / "settings.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(next(text for text in snippets("others.md", "json") if '"servers"' in text))
        # The question that Kate asks once is answered.
        (settings.parents[2] / "katerc").write_text(f"[lspclient]\nAllowedServerCommandLines={program} lsp\n")
        chosen = home / ".local" / "share" / "kate" / "anonymous.katesession"
        chosen.parent.mkdir(parents=True)
        chosen.write_text("[Kate Plugins]\nlspclientplugin=true\n")
        self.home = home
        env = {
            # Without the programs of the tests: what is on the PATH comes first.
            "PATH": os.defpath,
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "LANG": "C.UTF-8",
            "QT_QPA_PLATFORM": "offscreen",
        }
        home.chmod(0o700)
        words = [kate, "--startanon", str(file)]
        output = (home / "kate.txt").open("wb")
        with output, subprocess.Popen(words, env=env, cwd=file.parent, stdout=output, stderr=output) as process:
            try:
                until(lambda: process.poll() is not None or self.findings())
            finally:
                # It would ask about what has no screen; the server ends with its input.
                process.kill()

    def _said(self, name: str) -> list[dict[str, Any]]:
        path = self.home / name
        data = path.read_bytes() if path.exists() else b""
        messages: list[dict[str, Any]] = []
        while (
            head := re.match(rb"(?:[^\r\n]+\r?\n)*?Content-Length: (\d+)\r?\n(?:[^\r\n]+\r?\n)*\r?\n", data)
        ) is not None:
            body = data[head.end() : head.end() + int(head[1])]
            if len(body) < int(head[1]):
                break
            messages.append(json.loads(body))
            data = data[head.end() + len(body) :]
        return messages

    def sent(self, method: str) -> dict[str, Any]:
        """The params of Kate's first message of a method."""
        found = next((one["params"] for one in self._said("sent") if one.get("method") == method), None)
        assert found is not None, (self.home / "kate.txt").read_text("utf-8", "replace")[-2000:]
        return found

    def findings(self) -> list[str]:
        """The codes that were pushed last."""
        pushed = [one for one in self._said("got") if one.get("method") == "textDocument/publishDiagnostics"]
        return [item["code"] for one in pushed[-1:] for item in one["params"]["diagnostics"]]


@pytest.fixture(scope="module")
def kate() -> str:
    found = shutil.which("kate")
    if found is None:
        pytest.skip(
            "no Kate: apt-get install --no-install-recommends kate (160 packages) brings the one that is driven here"
        )
    return found


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kate") / "工具"
    (folder / "tools").mkdir(parents=True)
    (folder / "tamis.toml").write_text("")
    handler = {**ECHO["handler"], "scriptPath": "missing.py"}
    (folder / "tools" / "echo.tool.json").write_text(json.dumps({**ECHO, "handler": handler}))
    (folder / "tools" / "other.tool.json").write_text(json.dumps({**ECHO, "toolId": "core:other"}))
    (folder / "tools" / "echo.py").write_text("print(1)\n")
    (folder / "calls.md").write_text(action("core:othr", text="a") + "\n")
    return folder


@pytest.fixture(scope="module")
def manifest(kate: str, workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(kate, tmp_path_factory.mktemp("home"), workspace / "tools" / "echo.tool.json")


@pytest.fixture(scope="module")
def calls(kate: str, workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(kate, tmp_path_factory.mktemp("home"), workspace / "calls.md")


def test_the_server_is_started_at_the_root_of_the_tools(manifest: Session, calls: Session) -> None:
    # The manifest stands below the folder with tamis.toml, and beside it is what its own folder is named by.
    assert calls.sent("initialize")["rootUri"].endswith(("/工具", "/%E5%B7%A5%E5%85%B7"))
    assert "/home" not in manifest.sent("initialize")["rootUri"]


def test_what_kate_declares_is_its_profile(kate: str, calls: Session) -> None:
    version = subprocess.run(
        [kate, "--version"],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()[-1]
    if not version.startswith("22.12"):
        pytest.skip(f"Kate {version}: the profile of what was sent is that of 22.12")
    profile = next(one for one in json.loads(PROFILES.read_text("utf-8")) if one["name"] == "Kate 22.12")
    assert calls.sent("initialize")["capabilities"] == profile["capabilities"]


def test_a_manifest_and_markdown_are_opened_and_checked(manifest: Session, calls: Session) -> None:
    opened = manifest.sent("textDocument/didOpen")["textDocument"]
    assert (opened["languageId"], opened["uri"].rpartition("/")[2]) == ("json", "echo.tool.json")
    assert manifest.findings() != []
    opened = calls.sent("textDocument/didOpen")["textDocument"]
    assert (opened["languageId"], opened["uri"].rpartition("/")[2]) == ("markdown", "calls.md")
    assert calls.findings() == ["VA401"]
