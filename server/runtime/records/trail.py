"""What is written down of one call: its events in the audit log, and lines in the daemon's own log (D25, D27, D75).

One ``Trail`` goes with a call through all its steps and knows the call's secrets, so that no step can forget to hide them. Must
not decide anything.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from tamis.protocols.observation import plain
from tamis.server.runtime.records.audit import AuditLog
from tamis.server.runtime.records.redaction import redacted, redacted_text

Level = Literal["debug", "info", "warning", "error"]
_MAX_LINE_CHARS = 3_000
_MAX_LINE_BYTES = select.PIPE_BUF
_ORDER: dict[Level, int] = {"debug": 0, "info": 1, "warning": 2, "error": 3}


class Log:
    """Lines on standard error from ``level`` on (``logLevel``).

    A host that does not read them must not stop the daemon: a line that would have to wait is dropped and counted.
    """

    def __init__(self, level: Level = "warning") -> None:
        self._level: Level = level
        self._dropped = 0

    def takes(self, level: Level) -> bool:
        """Whether lines of this level are written."""
        return _ORDER[level] >= _ORDER[self._level]

    def write(self, level: Level, text: str) -> None:
        """Writes one line; a standard error that cannot take it is no reason to fail."""
        if not self.takes(level):
            return
        lost = f" ({self._dropped} lines before this one were dropped)" if self._dropped else ""
        line = plain(f"tamis: {level}: {text[:_MAX_LINE_CHARS]}{lost}").replace("\n", "\\n") + "\n"
        if _write(line):
            self._dropped = 0
        else:
            self._dropped += 1

    def warn(self, text: str) -> None:
        """Writes a warning."""
        self.write("warning", text)


def _write(line: str) -> bool:
    stream = sys.stderr
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        descriptor = -1
    try:
        if descriptor < 0:
            stream.write(line)
            return True
        stream.flush()
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        # a pipe is ready when so much fits as is written here at once
        if not any(events & select.POLLOUT for _, events in ready.poll(0)):
            return False
        os.write(descriptor, line.encode("utf-8", "backslashreplace")[:_MAX_LINE_BYTES])
    except (OSError, ValueError, AttributeError):
        return False
    return True


class Caller(msgspec.Struct, frozen=True, rename="camel"):
    """Who a call came from: the face, and what the host said of its session and agent (D81)."""

    face: str = "library"
    session_id: str = ""
    agent_id: str = ""


class Trail:
    """The notes of one call."""

    def __init__(self, audit: AuditLog | None, log: Log, root: str, call_id: str) -> None:
        self._audit = audit
        self._log = log
        # call ids are the host's and repeat; this one does not
        self._common: dict[str, Any] = {"root": root, "run": os.urandom(8).hex(), "callId": redacted_text(call_id)}
        self.secrets: tuple[str, ...] = ()
        """What is hidden in all that is told of the call, the longest first."""
        self.refused = 0
        """How many things the script was refused while it ran."""

    def keep_secret(self, texts: Sequence[str]) -> None:
        """From here on these texts are hidden wherever they stand."""
        self.secrets = tuple(sorted({*self.secrets, *texts}, key=len, reverse=True))

    def of_tool(self, tool_id: str, version: str) -> None:
        """From here on each event names the tool."""
        self._common |= {"tool": redacted_text(tool_id), "version": redacted_text(version)}

    def note(self, event: str, level: Level = "debug", **fields: Any) -> None:
        """An event: a line of the audit log, and one of the log at its level. Fields that are None or empty are left out."""
        kept = {
            name: redacted(value, self.secrets) for name, value in fields.items() if value not in (None, "", (), [], {})
        }
        self.refused += event == "network.denied"
        if self._audit is not None:
            self._audit.write(event, self._common | kept)
        if self._log.takes(level):
            words = (self._named(event), *(f"{name}={_shown(value)}" for name, value in kept.items()))
            self._log.write(level, " ".join(words))

    def step(self, number: int, text: str) -> None:
        """One of the seven steps of running a script (seed 003 §2.1.3), in the log only."""
        if self._log.takes("debug"):
            self._log.write("debug", f"{self._named(f'step {number}')} {redacted_text(text, self.secrets)}")

    def _named(self, what: str) -> str:
        return f"{self._common['callId']} {self._common.get('tool', '')} {what}".replace("  ", " ")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode("utf-8", "replace")
