"""Commands and answers in a folder that nobody trusts."""

from __future__ import annotations

import os
import pty
import sys

from tamis.server.runtime.settings.reading import read_settings
from tamis.server.runtime.settings.trust import trust
from tests.trust.conftest import World

RPC = [sys.executable, "-m", "tamis.server.cli.main", "rpc"]


def accept(world: World) -> None:
    """The user trusts the folder as it is."""
    import tomllib

    text = (world.root / "tamis.toml").read_bytes()
    trust(world.root, text, read_settings(tomllib.loads(text.decode())).values)


SEVERAL = """
import json, sys
from tamis.server.cli.main import main
for words in json.loads(sys.argv[1]):
    main(words)
"""
"""Runs commands one after the other in one process."""


def in_a_terminal(
    world: World, words: list[str], answer: str, *, waits_for: str = "[y/N]", several: bool = False
) -> tuple[int, str]:
    """Runs a command in a terminal of its own and answers its question. With `several` each word is a command, as JSON."""
    program = ["-c", SEVERAL, f"[{','.join(words)}]"] if several else ["-m", "tamis.server.cli.main", *words]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(world.root)
        os.execv(sys.executable, [sys.executable, *program])
    said, answered = b"", False
    while True:
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
