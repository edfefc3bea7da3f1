"""A small Python client of the JSON-RPC face, for hosts.

Starts ``tamis rpc`` and speaks newline-delimited JSON with it. Standard library only, safe to use from several threads. Knows
the wire, not the runtime.

>>> from tamis.client import Client
>>> with Client(root="examples") as tamis:  # doctest: +SKIP
...     print(tamis.request("tool/list")["tools"][0]["toolId"])
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any

# -P: what lies in the host's working folder is never imported by the daemon.
_PYTHON = (sys.executable, "-P", "-m", "tamis.server.cli.main")

__all__ = ["Client", "RpcFailure"]


class RpcFailure(Exception):  # noqa: N818 (an error reply of the daemon, named after JSON-RPC)
    """An error reply; ``code`` and ``data`` are JSON-RPC's."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class Client:
    """A running daemon. Use it as a context manager, or call :meth:`close`."""

    def __init__(
        self,
        root: str | Path | None = None,
        *,
        command: Sequence[str] | None = None,
        on_notification: Callable[[str, Any], None] | None = None,
        on_request: Callable[[str, Any], Any] | None = None,
    ) -> None:
        """Starts the daemon.

        ``command`` defaults to this Python's ``tamis rpc``. ``on_notification(method, params)`` and ``on_request(method,
        params) -> result`` (approvals) are called in the reader's thread; without ``on_request`` such requests are refused.
        """
        words = [*command] if command is not None else [*_PYTHON, "rpc"]
        if root is not None:
            words += ["--root", str(root)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._on_notification = on_notification
        self._on_request = on_request
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="tamis-client", daemon=True)
        self._reader.start()

    def request(self, method: str, params: Any = None, *, timeout: float | None = 60.0) -> Any:
        """Sends a request and waits; raises :class:`RpcFailure`, ``TimeoutError`` or ``ConnectionError``."""
        return self.send(method, params)[1].result(timeout)

    def send(self, method: str, params: Any = None) -> tuple[int, Future[Any]]:
        """Sends a request; returns its id (for :meth:`cancel`) and the future of its result."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        with self._lock:
            if self.process.poll() is not None:
                raise ConnectionError("the daemon has ended")
            self._waiting[number] = future
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        self._write(message)
        return number, future

    def notify(self, method: str, params: Any = None) -> None:
        """Sends a notification."""
        self._write({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    def cancel(self, number: int) -> None:
        """Asks the daemon to cancel a request; its reply still comes."""
        self.notify("$/cancelRequest", {"id": number})

    def close(self, timeout: float = 5.0) -> int:
        """Closes the daemon's stdin, which ends it; returns its exit code."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._reader.join(timeout)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode("ascii") + b"\n"
        stdin = self.process.stdin
        assert stdin is not None
        with self._lock:
            try:
                stdin.write(data)
                stdin.flush()
            except (OSError, ValueError) as error:
                raise ConnectionError("the daemon does not read any more") from error

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        for line in stdout:
            if line.strip():
                self._received(json.loads(line))
        with self._lock:
            left = list(self._waiting.values())
            self._waiting.clear()
        for future in left:
            future.set_exception(
                ConnectionError(
                    f"the daemon ended before it answered (exit code {self.process.poll()}; see its stderr)"
                )
            )

    def _received(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            with self._lock:
                future = self._waiting.pop(message.get("id", 0), None)
            if future is None:
                return
            error = message.get("error")
            if error is None:
                future.set_result(message.get("result"))
            else:
                future.set_exception(RpcFailure(error["code"], error["message"], error.get("data")))
        elif "id" in message:
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()
        elif self._on_notification is not None:
            self._on_notification(method, message.get("params"))

    def _answer(self, message: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if self._on_request is None:
            reply["error"] = {"code": -32601, "message": "this host answers no requests"}
        else:
            try:
                reply["result"] = self._on_request(message["method"], message.get("params"))
            except Exception as error:  # the daemon must hear of it, whatever it was
                reply["error"] = {"code": -32603, "message": str(error)}
        try:
            self._write(reply)
        except ConnectionError:
            return
