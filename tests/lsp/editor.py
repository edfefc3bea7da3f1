"""A client as an editor is one: it has capabilities, answers what the server asks, and keeps what it was told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import waiting
from tests.lsp.lsp_client import Client

EVERYTHING: dict[str, Any] = {
    "window": {"workDoneProgress": True, "showDocument": {"support": True}, "showMessage": {}},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
        "textDocumentContent": {"dynamicRegistration": False},
        "codeLens": {"refreshSupport": True},
    },
    "textDocument": {
        "codeLens": {},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}},
    },
}


class Editor(Client):
    """``replies`` answers the server's requests by method: a function of the params, or a plain result; an exception is an error."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.replies: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []

    def next(self, timeout: float | None = None) -> dict[str, Any]:
        message = self._arrived.get(timeout=timeout)
        if message is None:
            raise EOFError(f"the server ended: {self.stderr.decode(errors='replace')[-2000:]}")
        self.messages.append(message)
        if "method" in message and "id" in message:
            self.asked.append((message["method"], message.get("params")))
            reply = self.replies.get(message["method"])
            if isinstance(reply, Exception):
                self.send({"id": message["id"], "error": {"code": -32601, "message": str(reply)}})
            elif reply is not KEEP:
                result = reply(message.get("params")) if isinstance(reply, Callable) else reply
                self.send({"id": message["id"], "result": result})
        return message

    def forget(self) -> None:
        """Begins anew with what is remembered."""
        self.messages.clear()
        self.asked.clear()

    def close_all(self) -> None:
        """Closes every document."""
        for uri in self._versions:
            self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        self._versions.clear()

    def told(self, method: str) -> list[Any]:
        """The params of every notification of a method so far."""
        return [one.get("params") for one in self.messages if one.get("method") == method and "id" not in one]

    def questions(self, method: str) -> list[Any]:
        """The params of every request of a method so far."""
        return [params for name, params in self.asked if name == method]

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted, of those that came already or the next."""
        for message in self.messages:
            if wanted(message):
                return message
        while True:
            message = self.next()
            if wanted(message):
                return message

    def lenses(self, uri: str) -> list[dict[str, Any]]:
        """The lenses of a document, each resolved."""
        found = self.call("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return [lens if "command" in lens else self.call("codeLens/resolve", lens) for lens in found]

    def lens(self, uri: str, title: str) -> dict[str, Any]:
        """The command of the first lens whose title begins so."""
        found = self.lenses(uri)
        for lens in found:
            if lens["command"]["title"].startswith(title):
                return lens["command"]
        raise AssertionError(f"no lens '{title}' among {[lens['command']['title'] for lens in found]}")

    def command(self, command: dict[str, Any], token: Any = None, **more: Any) -> int:
        """Executes a lens' command, with further arguments; gives the request's id."""
        params: dict[str, Any] = {"command": command["command"], "arguments": [{**command["arguments"][0], **more}]}
        if token is not None:
            params["workDoneToken"] = token
        return self.request("workspace/executeCommand", params)

    def run(self, command: dict[str, Any], **more: Any) -> Any:
        """A command's result; fails on an error."""
        answer = self.answer(self.command(command, **more))
        assert "error" not in answer, answer
        return answer["result"]

    def refused(self, command: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A command's error."""
        answer = self.answer(self.command(command, **more))
        assert "error" in answer, answer
        return answer["error"]


KEEP = object()
"""The reply of a client that lets the server wait."""


def children(process_id: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    for task in Path(f"/proc/{process_id}/task").iterdir():
        try:
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
        except OSError:
            continue
    return found


def all_end(process_ids: list[int]) -> None:
    """Waits until all of these processes have ended."""
    waiting.until(lambda: not any(_alive(one) for one in process_ids))


def _alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X") and os.path.exists(f"/proc/{process_id}")
