"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.in_process import Tamis
from tests.cli.terminal import Terminals


@pytest.fixture
def tamis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    # as root, tools run under a uid of their own, which could not read pytest's private folder
    folder = tmp_path / "root"
    folder.mkdir(mode=0o755)
    return Tamis(folder, monkeypatch, capsys)


@pytest.fixture(scope="module")
def on_terminal() -> Iterator[Terminals]:
    terminals = Terminals()
    yield terminals
    terminals.close()
