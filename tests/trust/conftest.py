"""What the tests of trust share: a user who trusted nothing, with a configuration, a machine's file and a state of their own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tamis.server.runtime.settings import files
from tamis.server.runtime.settings.loading import StartedWith, start_with


class World(NamedTuple):
    """Where everything stands; ``root`` is the folder of a stranger."""

    root: Path
    machine: Path
    user: Path
    state: Path

    def write(self, place: Path, text: str) -> Path:
        """Writes a configuration file."""
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        return place

    def folder(self, text: str) -> None:
        """The folder's own ``tamis.toml``."""
        self.write(self.root / "tamis.toml", text)


@pytest.fixture(autouse=True)
def nothing_trusted(untrusted: None) -> None:
    """Every test here is one of a user who trusted nothing."""
    start_with(StartedWith())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("root", "state", "config"):
        (tmp_path / name).mkdir(mode=0o755)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
    machine = tmp_path / "etc" / "tamis" / "config.toml"
    monkeypatch.setattr(files, "MACHINE_FILE", str(machine))
    return World(tmp_path / "root", machine, tmp_path / "config" / "tamis" / "config.toml", tmp_path / "state")
