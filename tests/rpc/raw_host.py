"""A host that speaks with the daemon in raw messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.rpc.inside import rpc_server

COMMAND = [sys.executable, "-m", "tamis.server.cli.main", "rpc"]


def method(name: str, **fields: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": f"Does {name}.", "agentCallable": True, "parameters": parameters} | fields


class RawHost:
    """A host that reads and writes single messages, so that it can say whatever it likes."""

    def __init__(self, root: Path, *, process: bool = False) -> None:
        """``process``: the daemon is a process; else it is a thread of this one."""
        self._process = (
            subprocess.Popen(
                [*COMMAND, "--root", str(root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            if process
            else rpc_server(root)
        )

    def __enter__(self) -> RawHost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def send(self, **message: Any) -> None:
        """Sends one message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def send_all(self, *messages: dict[str, Any]) -> None:
        """Sends messages in one piece."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages))
        self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return self._process.pid if isinstance(self._process, subprocess.Popen) else os.getpid()

    def next(self) -> dict[str, Any]:
        """The daemon's next message."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the daemon has ended"
        return json.loads(line)

    def until(self, **wanted: Any) -> dict[str, Any]:
        """The next message with these fields; others before it are passed over."""
        while True:
            message = self.next()
            if all(message.get(name) == value for name, value in wanted.items()):
                return message

    def register(self, *methods: dict[str, Any]) -> None:
        """Registers the service ``s``."""
        self.send(id=1, method="service/register", params={"serviceName": "s", "methods": [*methods]})
        self.until(id=1)
