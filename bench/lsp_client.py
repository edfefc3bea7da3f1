"""A raw client over pipes for both language servers that are compared, ours (which pushes) and VS Code's (which is asked)."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 120.0
Message = dict[str, Any]


class Server:
    """One server process. ``pulls``: diagnostics come as the answer to a request, not by themselves."""

    def __init__(self, command: list[str], root: Path, *, pulls: bool, schema: object = None) -> None:
        self.pulls = pulls
        self._schema = schema
        self._root = root
        self._id = 0
        self._version = 0
        self._buffer = bytearray()
        self.publishes = 0
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    # Messages

    @staticmethod
    def encoded(message: Message) -> bytes:
        """A message with its header."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def write(self, data: bytes) -> None:
        """All of it, whatever the pipe takes at once."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._in, view) :]

    def notify(self, method: str, params: object) -> None:
        """A notification."""
        self.write(self.encoded({"method": method, "params": params}))

    def ask(self, method: str, params: object) -> Message:
        """A request and its answer."""
        self._id += 1
        wanted = self._id
        self.write(self.encoded({"id": wanted, "method": method, "params": params}))
        return self.until(lambda message: message.get("id") == wanted and "method" not in message)

    def read(self, patience: float = PATIENCE) -> Message | None:
        """The next message, or None when none came in time; a server that ends is an error."""
        while True:
            head, mark, _ = bytes(self._buffer[:200]).partition(b"\r\n\r\n")
            if mark:
                size = next(
                    int(line.partition(b":")[2])
                    for line in head.split(b"\r\n")
                    if line[:15].lower() == b"content-length:"
                )
                start = len(head) + 4
                if len(self._buffer) >= start + size:
                    body = bytes(self._buffer[start : start + size])
                    del self._buffer[: start + size]
                    return json.loads(body)
            if not select.select([self._out], [], [], patience)[0]:
                return None
            data = os.read(self._out, 1 << 20)
            assert data, "the server ended"
            self._buffer += data

    def until(self, found: Callable[[Message], bool]) -> Message:
        """Reads on to a message, answering what the server asks meanwhile."""
        while True:
            message = self.read()
            assert message is not None, "no answer in time"
            if message.get("method") == "textDocument/publishDiagnostics":
                self.publishes += 1
            if "id" in message and "method" in message:
                self.write(self.encoded({"id": message["id"], "result": self._answer(message)}))
            if found(message):
                return message

    def _answer(self, message: Message) -> object:
        if message["method"] == "workspace/configuration":
            return [None for _ in message["params"]["items"]]
        return None

    # The conversation

    def initialize(self, more: Message | None = None) -> float:
        """``initialize`` to its answer, with ``more`` of ``textDocument``'s capabilities; seconds since the start of the process."""
        documents: Message = {
            "synchronization": {"didSave": True},
            "completion": {"completionItem": {"snippetSupport": True}},
            "publishDiagnostics": {"relatedInformation": True, "versionSupport": True},
        }
        if self.pulls:
            documents["diagnostic"] = {"dynamicRegistration": False}
        documents |= more or {}
        uri = self._root.as_uri()
        self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "bench"}],
                "capabilities": {"textDocument": documents, "workspace": {"configuration": False}},
            },
        )
        spent = time.perf_counter() - self.started
        self.notify("initialized", {})
        if self._schema is not None:
            schemas = [{"fileMatch": ["*.tool.json"], "url": "bench://manifest", "schema": self._schema}]
            settings = {"json": {"validate": {"enable": True}, "schemas": schemas}}
            self.notify("workspace/didChangeConfiguration", {"settings": settings})
        return spent

    def open(self, path: Path, text: str) -> list[Message]:
        """Opens a document and gives its diagnostics."""
        self._version = 1
        self.uri = path.as_uri()
        document = {"uri": self.uri, "languageId": "json", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self._diagnostics()

    def change(self, edits: list[Message], *, wait: bool = True) -> list[Message]:
        """Sends one message per edit, all at once, and gives the diagnostics of the last version if they are waited for."""
        data = b""
        for edit in edits:
            self._version += 1
            document = {"uri": self.uri, "version": self._version}
            data += self.encoded(
                {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [edit]}}
            )
        if not wait or not self.pulls:
            self.write(data)
            return self._diagnostics() if wait else []
        self._id += 1
        wanted = self._id
        self.write(data + self.encoded({"id": wanted, "method": "textDocument/diagnostic", "params": self._here()}))
        return self.until(lambda message: message.get("id") == wanted)["result"]["items"]

    def complete(self, position: Message) -> int:
        """How many completions there are at a place."""
        result = self.ask("textDocument/completion", {**self._here(), "position": position})["result"]
        return len(result["items"] if isinstance(result, dict) else result or [])

    def _here(self) -> Message:
        return {"textDocument": {"uri": self.uri}}

    def _diagnostics(self) -> list[Message]:
        if self.pulls:
            return self.ask("textDocument/diagnostic", self._here())["result"]["items"]
        return self.published()

    def published(self) -> list[Message]:
        """The next diagnostics that are pushed for the last version."""

        def is_last(message: Message) -> bool:
            params = message.get("params") or {}
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params.get("uri") == self.uri
                and params.get("version") == self._version
            )

        return self.until(is_last)["params"]["diagnostics"]

    def settle(self, quiet: float = 0.3) -> None:
        """Reads what still comes, until nothing did for that long."""
        while (message := self.read(quiet)) is not None:
            if message.get("method") == "textDocument/publishDiagnostics":
                self.publishes += 1

    def processor_seconds(self) -> float:
        """The processor time of all its threads so far: that of a process stands behind its id, as in ``clock_getcpuclockid``."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def memory(self) -> float:
        """Resident megabytes."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0
