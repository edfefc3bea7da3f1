"""Commands on a terminal of their own, each forked from one process that has loaded Tamis once.

A command gets what a shell gives it: a session, a controlling terminal, its environment and the standard streams; only the loading of
its modules is shared. The forking process has no threads and runs no command itself, so that no test learns from another.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import pty
import select
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
LOADED = (
    "tamis.server.cli",
    "tamis.server.runtime",
    "tamis.server.rpc",
    "tamis.server.logs",
    "tamis.protocols",
    "tamis.sandbox",
    "tamis.environments",
    "tamis.server.analysis",
)


class Terminals:
    """Runs commands on terminals, one after the other."""

    def __init__(self) -> None:
        self._forks = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # as in the environment of the commands: no word of the user's language
            env={"PATH": os.environ["PATH"]},
        )

    def close(self) -> None:
        assert self._forks.stdin is not None and self._forks.stdout is not None
        self._forks.stdin.close()
        self._forks.stdout.close()
        self._forks.wait()

    def __call__(self, words: list[str], cwd: Path, typed: bytes = b"", **extra: str) -> str:
        """Returns what a command writes to the terminal that it runs on, and that it asks on.

        `typed` answers the first question about a call; the question whether the folder is trusted is answered with no.
        """
        assert self._forks.stdin is not None and self._forks.stdout is not None
        ours, theirs = pty.openpty()
        env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "TERM": "xterm", **extra}
        asked = {
            "words": words,
            "cwd": str(cwd),
            "env": env,
            "terminal": os.ttyname(theirs),
            # these read their input to its end
            "stdin": words[:1] not in (["rpc"], ["mcp"], ["lsp"], ["format"]),
        }
        self._forks.stdin.write(json.dumps(asked).encode() + b"\n")
        self._forks.stdin.flush()
        written = b""
        answered = False
        ended = self._forks.stdout.fileno()
        try:
            while ready := select.select([ours, ended], [], [])[0]:
                if ours in ready:
                    written += os.read(ours, 65536)
                else:
                    # the end comes behind the last that the command wrote
                    assert self._forks.stdout.readline() == b"ended\n"
                    break
                if not answered and written.endswith(b"[y/N] "):
                    os.write(ours, b"n\n")
                    answered = True
                if typed and b"no, and no to all that follows" in written:
                    os.write(ours, typed)
                    typed = b""
        finally:
            os.close(ours)
            os.close(theirs)
        return written.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def _serve() -> None:
    for package in LOADED:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("_http"):
                importlib.import_module(module.name)
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            _run(json.loads(line))
        os.waitpid(child, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()


def _run(asked: dict[str, Any]) -> None:
    from tamis.server.cli.main import entry

    code: object = 70
    try:
        os.setsid()
        # in a session of its own the first terminal that is opened is the controlling one
        terminal = os.open(asked["terminal"], os.O_RDWR)
        os.dup2(terminal if asked["stdin"] else os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(terminal, 1)
        os.dup2(terminal, 2)
        os.closerange(3, terminal + 1)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc] # noqa: SIM115
        sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc] # noqa: SIM115
        sys.stderr = sys.__stderr__ = open(2, "w", errors="backslashreplace", closefd=False)  # type: ignore[misc] # noqa: SIM115
        sys.argv = ["tamis", *asked["words"]]
        entry()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    _serve()
