"""What the sandbox tests share: folders with a script in them, and one loop that runs a request."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tamis.sandbox import runner
from tamis.sandbox.model import Limits, RunOutcome, RunRequest

IS_ROOT = os.geteuid() == 0


def tool_folder(parent: Path, source: str, name: str = "tool.py") -> str:
    folder = parent / "tool"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(source, "utf-8")
    return os.path.realpath(folder)


def request(folder: str, script: str = "tool.py", language: Any = "python", **more: Any) -> RunRequest:
    more.setdefault("limits", Limits(wall_ms=10_000))
    return RunRequest(folder=folder, script=script, language=language, **more)


def run(wanted: RunRequest, **more: Any) -> RunOutcome:
    return asyncio.run(runner.run(wanted, **more))


def run_without(wanted: RunRequest, *layers: str) -> RunOutcome:
    return asyncio.run(runner.run_without(wanted, frozenset(layers)))


def run_source(parent: Path, source: str, **more: Any) -> RunOutcome:
    return run(request(tool_folder(parent, source), **more))
