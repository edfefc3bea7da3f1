"""What stands where a manifest's script should be: facts about the disk, and the finding that they give (D34, MF540, MF542)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.snapshot import FolderFacts, Snapshot
from tamis.server.runtime.texts.checkables import files_beside


def findings(folder: FolderFacts | None, script: str) -> list[tuple[str, str]]:
    manifest = {
        "toolId": "core:echo",
        "displayName": "Echo",
        "description": "Gives back the text that it is given, so that a call can be tried out.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": script, "language": "python"},
    }
    snapshot = Snapshot("/w/echo.tool.json", "manifest", json.dumps(manifest), None, folder=folder)
    return [(finding.code, finding.message) for finding in diagnose(snapshot)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "real.py").write_text("print(1)\n")
    (tmp_path / "link.py").symlink_to("real.py")
    (tmp_path / "gone.py").symlink_to("nowhere.py")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "in.py").write_text("print(1)\n")
    (tmp_path / "there").symlink_to("bin")
    os.mkfifo(tmp_path / "pipe.py")
    return tmp_path


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("real.py", []),
        ("bin/in.py", []),
        ("link.py", ["a symbolic link; put the file itself there"]),
        ("gone.py", ["a symbolic link; put the file itself there"]),
        ("there/in.py", ["behind 'there', a symbolic link; put the folder itself there"]),
        ("bin", ["a folder; name a file in it"]),
        ("pipe.py", ["not a regular file"]),
    ],
)
def test_a_script_that_is_no_file_is_said_before_the_call_fails(folder: Path, script: str, said: list[str]) -> None:
    found = findings(FolderFacts(*files_beside(str(folder))), script)
    assert found == [("MF542", f"The script '{script}' is {what}") for what in said]


def test_an_unreadable_script_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may read everything, so the answer of the kernel is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: not os.fspath(path).endswith("real.py"))
    found = findings(FolderFacts(*files_beside(str(folder))), "real.py")
    assert [code for code, _ in found] == ["MF542"]


def test_without_the_fact_a_link_counts_as_a_file_and_an_unknown_name_is_missing() -> None:
    facts = FolderFacts(frozenset({"link.py"}))
    assert findings(facts, "link.py") == []
    assert [code for code, _ in findings(facts, "other.py")] == ["MF540"]
    assert findings(None, "other.py") == []
