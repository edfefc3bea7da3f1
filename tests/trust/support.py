"""Commands and answers in a folder that nobody trusts."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

from tamis.server.runtime.settings.reading import read_settings
from tamis.server.runtime.settings.trust import trust
from tests.trust.conftest import World

RPC = [sys.executable, "-m", "tamis.server.cli.main", "rpc"]


def accept(world: World) -> None:
    """The user trusts the folder as it is."""
    import tomllib

    text = (world.root / "tamis.toml").read_bytes()
    trust(world.root, text, read_settings(tomllib.loads(text.decode())).values)


def in_a_terminal(world: World, words: list[str], answer: str, *, waits_for: str = "[y/N]") -> tuple[int, str]:
    """Runs a command in a terminal of its own and answers its question."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(world.root)
        os.execv(sys.executable, [sys.executable, "-m", "tamis.server.cli.main", *words])
    said, answered, end = b"", False, time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        if not answered and waits_for.encode() in said:
            answered = True
            os.write(terminal, answer.encode() + b"\n")
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()
