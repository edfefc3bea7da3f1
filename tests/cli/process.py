"""The program ``tamis`` as a process of its own, for tests of commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "tamis.server.cli.main"]


def tamis(
    *words: str, cwd: Path, data: str | bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        input=data.encode() if isinstance(data, str) else data,
        capture_output=True,
        check=False,
        env=env,
        start_new_session=True,
    )
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())
