"""A bare client of the language server: raw messages over pipes, so that tests see the bytes and not a library's view."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.lsp.validation import check_message

SERVER = [sys.executable, "-m", "tamis.server.lsp.main"]


class Inside:
    """A server in a thread, behind pipes like a process's; as much of ``Popen`` as the client uses."""

    def __init__(self) -> None:
        from tamis.server.lsp.main import serve_streams

        incoming, to_server = os.pipe()
        from_server, outgoing = os.pipe()
        self.stdin = os.fdopen(to_server, "wb")
        self.stdout = os.fdopen(from_server, "rb")
        self.stderr = None
        self._code: int | None = None

        def work() -> None:
            code = 1
            try:
                code = serve_streams(incoming, outgoing)
            finally:
                os.close(outgoing)
                os.close(incoming)
                self._code = code

        self._thread = threading.Thread(target=work, name="server", daemon=True)
        self._thread.start()

    def poll(self) -> int | None:
        """The exit code, once there is one."""
        return self._code

    def wait(self) -> int:
        """Returns the exit code once the server ends."""
        self._thread.join()
        assert self._code is not None
        return self._code

    def kill(self) -> None:
        """Ends the server's input."""
        self.stdin.close()


class Client:
    """One server and the messages it sent."""

    def __init__(
        self,
        cwd: Path | None = None,
        command: list[str] | None = None,
        env: dict[str, str] | None = None,
        *,
        inside: bool | None = None,
    ) -> None:
        """Starts a server: ``inside`` as a thread of this process, which takes a hundredth of the time, else as a process.

        Without ``inside`` it is a thread unless a command or an environment is given.
        """
        if inside is None:
            inside = command is None and env is None
        self.process: subprocess.Popen[bytes] | Inside = (
            Inside()
            if inside
            else subprocess.Popen(
                command or SERVER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={**os.environ, **(env or {})},
            )
        )
        self.messages: list[dict[str, Any]] = []
        self.stderr = b""
        self._arrived: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._next_id = 0
        self._versions: dict[str, int] = {}
        self._asked: dict[Any, str] = {}
        self.answers: dict[str, Any] = {}
        """What this client answers to requests of the server, by method; null to every other."""
        threading.Thread(target=self._read, daemon=True).start()
        if self.process.stderr is not None:
            threading.Thread(target=self._drain, daemon=True).start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                try:
                    stream.close()
                except OSError:
                    continue

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        try:
            while True:
                length = 0
                while line := out.readline().strip():
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                if not length:
                    break
                self._arrived.put(json.loads(out.read(length)))
        except (ValueError, OSError):
            pass
        self._arrived.put(None)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line

    # Sending

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_body(self, body: bytes, header: str = "Content-Length") -> None:
        self.send_bytes(f"{header}: {len(body)}\r\n\r\n".encode() + body)

    def send(self, message: dict[str, Any]) -> None:
        self.send_body(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode())

    def notify(self, method: str, params: object = None) -> None:
        self.send({"method": method, "params": params} if params is not None else {"method": method})

    def request(self, method: str, params: object = None) -> int:
        self._next_id += 1
        self._asked[self._next_id] = method
        message: dict[str, Any] = {"id": self._next_id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return self._next_id

    # Receiving

    def next(self, timeout: float | None = None) -> dict[str, Any]:
        """Returns the next message; fails when the server ends, and with ``queue.Empty`` when none comes in `timeout` seconds."""
        message = self._arrived.get(timeout=timeout)
        if message is None:
            raise EOFError(f"the server ended: {self.stderr.decode(errors='replace')[-2000:]}")
        self.messages.append(message)
        check_message(message, self._asked)
        if "method" in message and "id" in message:
            self.send({"id": message["id"], "result": self.answers.get(message["method"])})
        return message

    def answer(self, request_id: int | str | None) -> dict[str, Any]:
        """The response to a request; what comes before it is kept in ``messages``."""
        while True:
            message = self.next()
            if "method" not in message and message.get("id") == request_id:
                return message

    def call(self, method: str, params: object = None) -> Any:
        """A request's result; fails on an error."""
        answer = self.answer(self.request(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    def fails(self, method: str, params: object = None) -> dict[str, Any]:
        """A request's error."""
        answer = self.answer(self.request(method, params))
        assert "error" in answer, answer
        return answer["error"]

    def published(self, uri: str, version: int | None = None, timeout: float | None = None) -> list[dict[str, Any]]:
        """The next pushed diagnostics of a document, at a version if one is given."""
        while True:
            message = self.next(timeout)
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params["uri"] == uri and (version is None or params.get("version") == version):
                    return params["diagnostics"]

    # Sessions

    def start(
        self,
        root: Path | None = None,
        capabilities: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        locale: str | None = None,
    ) -> dict[str, Any]:
        own: dict[str, Any] = (capabilities or {}).get("experimental", {})
        told = {"events": True, **own.get("tamis", {})}
        declared = {
            **(capabilities or {}),
            "experimental": {"serverStatusNotification": True, **own, "tamis": told},
        }
        folders = [{"uri": root.as_uri(), "name": root.name}] if root is not None else None
        result = self.call(
            "initialize",
            {
                "processId": None,
                "rootUri": None,
                "workspaceFolders": folders,
                "capabilities": declared,
                "initializationOptions": options,
                **({} if locale is None else {"locale": locale}),
            },
        )
        self.notify("initialized", {})
        self.quiescent()
        return result

    def quiescent(self) -> dict[str, Any]:
        """Waits until the server has loaded its folders, so that what follows does not depend on the moment."""
        while True:
            message = self.next()
            if message.get("method") == "experimental/serverStatus" and message["params"]["quiescent"]:
                return message["params"]

    def open(self, uri: str, text: str, language: str = "markdown") -> None:
        self._versions[uri] = 1
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, *changes: dict[str, Any]) -> int:
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})
        return self._versions[uri]

    def stop(self) -> int:
        """Shuts down and gives the exit code."""
        self.call("shutdown")
        self.notify("exit")
        return self.process.wait()

    def exit_code(self) -> int:
        """Returns the exit code once the server ends."""
        return self.process.wait()


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    """An incremental change."""
    return {
        "range": {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        },
        "text": text,
    }
