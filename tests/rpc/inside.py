"""A server in a thread of this process, behind pipes as a process's: it starts ten times faster than an interpreter does.

Signals, the exit of a process, text that libraries print and limits of a process need a real one.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from tamis.client import Client, blocking
from tamis.server.mcp import server as mcp
from tamis.server.rpc import methods as rpc
from tamis.server.rpc import session
from tamis.server.runtime.observe import trail

PATIENT = "[sandbox]\nwallMs = 600000\n"
"""The settings of a folder whose tools may take longer than usual, as they do on a busy machine."""


class Loop(asyncio.SelectorEventLoop):
    """A loop outside the main thread, which the system gives no signals; `Inside.send_signal` calls the handlers."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[int, Callable[[], object]] = {}

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:
        self.handlers[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        return self.handlers.pop(sig, None) is not None


_here = threading.local()
_running: list[Inside] = []
"""The servers that have not ended; the log of a thread that a server started goes to the newest."""


class Inside:
    """A server of this process; as much of `Popen` as the clients of the tests use."""

    def __init__(self, serve: Callable[[], Coroutine[Any, Any, int]], bufsize: int = -1) -> None:
        incoming, to_server = os.pipe()
        from_server, outgoing = os.pipe()
        log, to_log = os.pipe()
        self.stdin = os.fdopen(to_server, "wb", bufsize)
        self.stdout = os.fdopen(from_server, "rb", bufsize)
        self.stderr = os.fdopen(log, "rb", bufsize)
        self.returncode: int | None = None
        # a reader may sit in a read of it when the server has ended: it is closed with this object
        self._incoming = os.fdopen(incoming, "rb", 0)
        self._outgoing = outgoing
        self._log = to_log
        self._loop = Loop()
        self._serve = serve
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)
        _running.append(self)
        self._thread.start()

    def _run(self) -> None:
        _here.server = self
        code = 1
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                code = runner.run(self._serve())
        finally:
            _running.remove(self)
            log, self._log = self._log, -1
            os.close(self._outgoing)
            os.close(log)
            self.returncode = code

    def streams(self) -> tuple[int, int]:
        """The descriptors that the server reads and writes; it does not close them."""
        return self._incoming.fileno(), self._outgoing

    def log(self, line: str) -> bool:
        """Writes a line where a process has its standard error; as there, a line that nobody has room for is dropped."""
        ready = select.poll()
        try:
            ready.register(self._log, select.POLLOUT)
            return bool(ready.poll(0)) and os.write(self._log, line.encode("utf-8", "backslashreplace")) > 0
        except (OSError, ValueError):  # the server has ended, or nobody reads
            return False

    def send_signal(self, number: int) -> None:
        """Calls what the server does at a signal."""
        self._loop.call_soon_threadsafe(self._loop.handlers[number])

    def terminate(self) -> None:
        """Ends the server as SIGTERM does."""
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        """The exit code, once there is one."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        self._thread.join(timeout)
        if self._thread.is_alive() or self.returncode is None:
            raise subprocess.TimeoutExpired("server", timeout or 0)
        return self.returncode

    def kill(self) -> None:
        """Ends the server's input: a thread cannot be killed."""
        self.stdin.close()


def _of_this_thread() -> Inside | None:
    return getattr(_here, "server", None)


def _redirect() -> None:
    """Gives servers in threads their own streams and log, and leaves this process's alone."""
    claim, catch, write = session.claim_stdio, rpc.catch_stray_text, trail._write  # pyright: ignore[reportPrivateUsage]

    def claim_stdio() -> tuple[int, int]:
        server = _of_this_thread()
        return claim() if server is None else server.streams()

    def catch_stray_text(log: Any) -> None:
        if _of_this_thread() is None:
            catch(log)

    def write_line(line: str) -> bool:
        server = _of_this_thread()
        others = _running[-1:] if threading.current_thread() is not threading.main_thread() else []
        for one in others if server is None else [server]:
            return one.log(line)
        return write(line)

    session.claim_stdio = claim_stdio
    rpc.catch_stray_text = mcp.catch_stray_text = catch_stray_text
    trail._write = write_line  # pyright: ignore[reportPrivateUsage]


_redirect()


def rpc_server(root: Path | None, bufsize: int = -1) -> Inside:
    """`tamis rpc`."""
    return Inside(lambda: rpc._serve(root), bufsize)  # pyright: ignore[reportPrivateUsage]


def mcp_server(root: Path | None) -> Inside:
    """`tamis mcp`."""
    return Inside(lambda: mcp._serve(root))  # pyright: ignore[reportPrivateUsage]


class InsideClient(Client):
    """The client for threads, of a daemon in this process."""

    def _start(self) -> None:
        def start(words: Sequence[str], bufsize: int, **_: Any) -> Inside:
            root = words[words.index("--root") + 1] if "--root" in words else None
            return rpc_server(None if root is None else Path(root), bufsize)

        names = {"PIPE": subprocess.PIPE, "Popen": start, "TimeoutExpired": subprocess.TimeoutExpired}
        with mock.patch.object(blocking, "subprocess", cast("Any", SimpleNamespace(**names))):
            super()._start()
