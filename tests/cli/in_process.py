"""Commands run inside the test's process, which is quicker than starting a program for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tamis.server.cli.main import main


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its standard output as one JSON document."""
        return json.loads(self.out)


class Tamis:
    """``tamis`` in a folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._patch = patch
        self._captured = captured

    def __call__(self, *words: str | Path, cwd: Path | None = None) -> Done:
        self._patch.chdir(cwd or self.folder)
        self._captured.readouterr()
        code = main([str(word) for word in words])
        out, err = self._captured.readouterr()
        return Done(code, out, err)
