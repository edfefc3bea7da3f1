"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.in_process import Tamis

if TYPE_CHECKING:
    from tests.cli.terminal import Terminals


@pytest.fixture
def tamis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    # as root, tools run under a uid of their own, which could not read pytest's private folder
    folder = tmp_path / "root"
    folder.mkdir(mode=0o755)
    return Tamis(folder, monkeypatch, capsys)


@pytest.fixture(scope="module")
def on_terminal() -> Iterator[Terminals]:
    # here, since a file is part of --fast only if nothing that its folder imports starts a process
    from tests.cli.terminal import Terminals

    terminals = Terminals()
    yield terminals
    terminals.close()
