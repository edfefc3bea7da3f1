"""What goes on, told to a client that asks for it (``$/setTrace``), and lines for its log: both bounded, both droppable."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from tamis.protocols.invisible import visible_lines

if TYPE_CHECKING:
    from tamis.server.lsp.envelope import Envelope

MAX_LINE = 2_000
MAX_LINES = 50
LINES_SECONDS = 10.0


class Trace:
    """``$/logTrace`` at the level that the client set: ``off``, ``messages`` or ``verbose``."""

    def __init__(self, notify: Callable[[str, Any], None]) -> None:
        self._notify = notify
        self.level = "off"

    def received(self, message: Envelope) -> None:
        """A request or notification came in."""
        if self.level == "off" or message.kind == "invalid":
            return
        what = {"request": f" ({message.id})", "response": f" to {message.id}"}.get(message.kind, "")
        name = message.method if isinstance(message.method, str) else ""
        params: dict[str, Any] = {"message": shortened(f"received {message.kind} {name}{what}".replace("  ", " "))}
        if self.level == "verbose" and isinstance(message.params, Raw):
            params["verbose"] = shortened(bytes(message.params).decode("utf-8", "replace"))
        self._notify("$/logTrace", params)

    def sent(self, identity: object, outcome: str, began: float) -> None:
        """A request was answered."""
        if self.level != "off":
            took = (time.perf_counter() - began) * 1000
            self._notify("$/logTrace", {"message": f"sent {outcome} to {identity} after {took:.1f} ms"})


class Log:
    """``window/logMessage``: at most ``MAX_LINES`` in ``LINES_SECONDS``; how many were left out is said."""

    def __init__(self, notify: Callable[[str, Any], None]) -> None:
        self._notify = notify
        self._since = 0.0
        self._lines = 0
        self._left_out = 0

    def say(self, message: str, level: int = 2) -> None:
        """One line; ``level`` 1 error, 2 warning, 3 information, 4 log."""
        now = time.monotonic()
        if now - self._since > LINES_SECONDS:
            if self._left_out:
                self._notify("window/logMessage", {"type": 2, "message": f"{self._left_out} more lines were left out"})
            self._since, self._lines, self._left_out = now, 0, 0
        self._lines += 1
        if self._lines > MAX_LINES:
            self._left_out += 1
            return
        self._notify("window/logMessage", {"type": level, "message": shortened(message)})


def shortened(text: str) -> str:
    """A text of bounded length."""
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}… ({len(text) - MAX_LINE} more characters)"


def report_failure(what: str, error: BaseException | None = None) -> None:
    """Writes a failure, that at hand unless one is given, to standard error, where clients show a server's log."""
    import traceback

    trace = "".join(traceback.format_exception(error or sys.exception()))
    sys.stderr.write(visible_lines(f"tamis: {what} failed\n{trace}"))
