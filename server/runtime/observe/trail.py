"""What is written down of one call: its events in the audit log, and lines in the daemon's own log (D25, D27, D75).

One ``Trail`` goes with a call through all its steps and knows the call's secrets, so that no step can forget to hide them. Must
not decide anything.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.invisible import visible_line, visible_lines
from tamis.server.runtime.observe.masking import hides_all, together
from tamis.server.runtime.observe.redaction import Redacted, redacted, redacted_text

if TYPE_CHECKING:
    import asyncio

    from tamis.protocols.contract import ExecutionResult
    from tamis.server.runtime.observe.audit import AuditLog
    from tamis.server.runtime.observe.tracing import Trace

Level = Literal["debug", "info", "warning", "error"]
_MAX_LINE_CHARS = 3_000
_MAX_LINE_BYTES = select.PIPE_BUF
_MAX_TRACE_CHARS = 2_000
_SHORT_CHARS = 200
_ORDER: dict[Level, int] = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_PLAIN = frozenset((int, float, bool))
"""What nothing can be hidden in."""


class Log:
    """Lines on standard error from ``level`` on (``logLevel``), as text or as one JSON object each (``logFormat``).

    A host that does not read them must not stop the daemon: a line that would have to wait is dropped and counted.
    """

    def __init__(
        self,
        level: Level = "warning",
        form: Literal["text", "json"] = "text",
        writer: Callable[[Level, str], bool] | None = None,
    ) -> None:
        """``writer`` takes the lines instead, where the face has a place for them that knows levels."""
        self._level: Level = level
        self._writer = writer
        self.form: Literal["text", "json"] = form
        self._dropped = 0
        self.dropped = 0
        """How many lines nobody took, since the start."""

    def takes(self, level: Level) -> bool:
        """Whether lines of this level are written."""
        return _ORDER[level] >= _ORDER[self._level]

    def write(self, level: Level, text: str) -> None:
        """Writes one line; a standard error that cannot take it is no reason to fail."""
        self.event(level, text, {})

    def event(self, level: Level, what: str, fields: Mapping[str, Any]) -> None:
        """Writes one line of what happened, with plain fields whose secrets are hidden already."""
        if not self.takes(level):
            return
        line = self._json(level, what, fields) if self.form == "json" else self._text(level, what, fields)
        if _write(line + "\n") if self._writer is None else self._writer(level, line):
            self._dropped = 0
        else:
            self._dropped += 1
            self.dropped += 1

    def call_event(self, level: Level, what: str, call: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """As ``event``, of a call: as text its id and its tool stand in front, as JSON all that is known of it is a field."""
        if self.form == "json":
            self.event(level, what, {**call, **fields})
        else:
            self.event(level, f"{call['callId']} {call.get('tool', '')} {what}".replace("  ", " "), fields)

    def _text(self, level: Level, what: str, fields: Mapping[str, Any]) -> str:
        parts = [what]
        for name, value in fields.items():
            parts.append(f"{name}={value}" if type(value) is str or type(value) is int else f"{name}={_shown(value)}")
        text = " ".join(parts)
        lost = f" ({self._dropped} lines before this one were dropped)" if self._dropped else ""
        return visible_line(f"tamis: {level}: {text[:_MAX_LINE_CHARS]}{lost}")

    def _json(self, level: Level, what: str, fields: Mapping[str, Any]) -> str:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {"time": now, "level": level, "message": what[:_MAX_LINE_CHARS]}
        lost = {"dropped": self._dropped} if self._dropped else {}
        if "message" in fields:
            # what the event says itself: ``message`` is which event it is
            fields = {**fields, "text": fields["message"]}
        line = _encoded({**fields, **told, **lost})
        if len(line.encode()) >= _MAX_LINE_BYTES:
            # a line that is cut would be no JSON: what is short stays
            short = {name: value for name, value in fields.items() if len(_shown(value)) <= _SHORT_CHARS}
            line = _encoded(
                dict(list(short.items())[:12]) | told | {"message": what[:_SHORT_CHARS]} | lost | {"shortened": True}
            )
        return line

    def failure(self, what: str, error: BaseException) -> None:
        """Writes an error of the program itself with its trace: on lines of its own for people, else as a field."""
        import traceback

        if self.form == "json":
            trace = "".join(traceback.format_exception(error))[-_MAX_TRACE_CHARS:]
            self.event("error", redacted_text(f"{what}: {error!r}"[:500]), {"trace": redacted_text(trace)})
        elif sys.stderr is not None:
            sys.stderr.write(visible_lines("".join(traceback.format_exception(error))))

    def warn(self, text: str) -> None:
        """Writes a warning."""
        self.write("warning", text)


def _encoded(content: Mapping[str, Any]) -> str:
    from tamis.protocols.observation import plain

    return plain(msgspec.json.encode(content, enc_hook=repr).decode("utf-8", "replace"))


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
        ready = select.poll()  # one for each line: two threads may not ask the same one
        ready.register(descriptor, select.POLLOUT)
        # a pipe is ready when so much fits as is written here at once
        events = ready.poll(0)
        if not events or not events[0][1] & select.POLLOUT:
            return False
        os.write(descriptor, line.encode("utf-8", "backslashreplace")[:_MAX_LINE_BYTES])
    except (OSError, ValueError, AttributeError):
        return False
    return True


class Caller(msgspec.Struct, frozen=True, rename="camel"):
    """Who a call came from: the face, what the host said of its session and agent, and the host's own name (D81)."""

    face: str = "library"
    session_id: str = ""
    agent_id: str = ""
    client: str | UnsetType = UNSET


class Trail:
    """The notes of one call."""

    def __init__(
        self, audit: AuditLog | None, log: Log | None, root: str, call_id: str, trace: Trace | None = None
    ) -> None:
        """Without a log nothing is told: so of a call that is only asked about ahead."""
        self._audit = audit
        self._log = log
        self.root = root
        """The project's folder on this machine."""
        # call ids are the host's and repeat; this one does not
        self._common: dict[str, Any] = {"root": root, "run": os.urandom(8).hex(), "callId": redacted_text(call_id)}
        if trace is not None:
            self._common |= {"traceId": trace.trace_id, "spanId": trace.span_id}
        self.secrets: tuple[str, ...] = ()
        """What is hidden in all that is told of the call, the longest first."""
        self.granted: tuple[str, ...] = ()
        """Those of them that the operator granted: no caller knows them, so that they are hidden in the output too."""
        self.outcome: asyncio.Future[ExecutionResult] | None = None
        """What a call comes to that is answered before it has ended (a workflow with streams); None for any other."""
        self.refused = 0
        """How many things the script was refused while it ran."""

    def keep_secret(self, texts: Sequence[str]) -> None:
        """From here on these texts are hidden wherever they stand."""
        # where nothing is shown any more, a further one changes nothing
        if not texts or hides_all(self.secrets) or set(texts).issubset(self.secrets):
            return
        self.secrets = together(self.secrets, texts)

    def keep_granted(self, texts: Sequence[str]) -> None:
        """As ``keep_secret``, of what the operator granted: these are hidden in the result's own output too."""
        if not texts or set(texts).issubset(self.granted):
            return
        self.keep_secret(texts)
        self.granted = together(self.granted, texts)

    def of_tool(self, tool_id: str, version: str) -> None:
        """From here on each event names the tool."""
        self._common |= _told_tool(tool_id, version)

    def note(self, event: str, level: Level = "debug", **fields: Any) -> None:
        """An event: a line of the audit log, and one of the log at its level. Fields that are None or empty are left out."""
        if self._audit is None and self._log is None:
            return
        secrets = self.secrets
        kept: dict[str, Any] = {}
        for name, value in fields.items():
            # of what is false only zero and False say something
            if value or value == 0:
                if type(value) is str:
                    kept[name] = redacted_text(value, secrets)
                elif type(value) in _PLAIN or (type(value) is Redacted and not secrets):
                    kept[name] = value
                else:
                    kept[name] = redacted(value, secrets)
        self.refused += event == "network.denied"
        if self._audit is not None:
            self._audit.write(event, self._common | kept)
        if self._log is not None and self._log.takes(level):
            self._log.call_event(level, event, self._common, kept)

    def step(self, number: int, text: str) -> None:
        """One of the seven steps of running a script (seed 003 §2.1.3), in the log only."""
        if self._log is not None and self._log.takes("debug"):
            self._log.call_event("debug", f"step {number} {redacted_text(text, self.secrets)}", self._common, {})


@lru_cache(maxsize=256)
def _told_tool(tool_id: str, version: str) -> Mapping[str, str]:
    return MappingProxyType({"tool": redacted_text(tool_id), "version": redacted_text(version)})


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode("utf-8", "replace")
