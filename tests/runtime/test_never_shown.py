"""The never-list, asked by settings and rights before a run is planned (trust 3); `tests/sandbox/test_never.py` has the plans."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.handlers.script.interpreters import missing_for
from tamis.server.runtime.policy.path_grants import Place, hidden_fault
from tamis.server.runtime.settings.loading import load_settings
from tests.runtime.run_tool import error_of, run_tool
from tests.sample_tools import make_tool


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(os.path.realpath(tmp_path)) / "home"
    for name in (".ssh", ".local/state/tamis", ".config/tamis/inner"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


def test_show_is_asked_for_by_the_settings(home: Path) -> None:
    for path in (home / ".ssh", home, Path("/run"), home / ".local/state/tamis", home / ".config/tamis/inner"):
        loaded = load_settings(home, {"sandbox": {"runtimes": {"x": {"command": ["/bin/sh"], "show": [str(path)]}}}})
        assert "sandbox.runtimes.x.show" in missing_for(ExternalScript("a", "x"), loaded.settings), path


def test_a_runtimes_program_is_asked_for_by_the_settings(home: Path) -> None:
    program = home / ".ssh" / "run"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    loaded = load_settings(home, {"sandbox": {"runtimes": {"x": {"command": [str(program)]}}}})
    assert "sandbox.runtimes.x.command" in missing_for(ExternalScript("a", "x"), loaded.settings)


def test_the_rights_of_a_tool_ask(home: Path) -> None:
    assert hidden_fault(str(home / ".ssh"), Place())


def test_a_tool_whose_folder_is_a_home_is_not_run(home: Path) -> None:
    folder = make_tool(home, "test:own", "print(1)")
    for file in folder.iterdir():
        file.rename(home / file.name)
    folder.rmdir()
    error = error_of(run_tool(home, "test:own", {"text": "x"}, settings={"tools": ["."]}))
    assert "home folder" in error["message"], error
