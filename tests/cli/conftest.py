"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.in_process import Tamis


@pytest.fixture
def tamis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    # as root, tools run under a uid of their own, which could not read pytest's private folder
    folder = tmp_path / "root"
    folder.mkdir(mode=0o755)
    return Tamis(folder, monkeypatch, capsys)
