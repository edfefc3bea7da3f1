"""What nobody of the daemon writes to standard error by itself: warnings of Python, a task's lost exception, the prints of a handler.

Where the log is JSON (``logFormat``) it becomes records of the log, so that every line is one object. Must not know what is said.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import TextIO, cast

from tamis.protocols.invisible import visible_lines
from tamis.server.runtime.observe.trail import Log

MAX_HELD_CHARS = 65_536
"""Of a text without an end of line so much is kept; what comes before it is a record of its own."""


class StrayText(io.TextIOBase):
    """Standard error, or standard output once that leads there, for whoever writes to it without knowing of the log."""

    def __init__(self, under: TextIO, log: Callable[[], Log]) -> None:
        self._under = under
        self._log = log
        self._held = ""
        self._lock = threading.RLock()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the stream itself."""
        return self._under.encoding

    def fileno(self) -> int:
        """The descriptor of the stream itself."""
        return self._under.fileno()

    def isatty(self) -> bool:
        """Whether a person reads along."""
        return self._under.isatty()

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Text as it comes; in a log of JSON a record when it comes to the end of a line, however many lines it has."""
        log = self._log()
        if log.form == "text":
            self._under.write(visible_lines(text))
            if "\n" in text:
                # what goes to a file or a pipe would else be written with the next kilobytes, or never
                self._under.flush()
            return len(text)
        with self._lock:
            self._held += text
            if self._held.endswith("\n") or len(self._held) > MAX_HELD_CHARS:
                self._tell(log)
        return len(text)

    def flush(self) -> None:
        """Writes on what the stream itself holds."""
        self._under.flush()

    def close(self) -> None:
        """Tells what has no end of line; the stream itself stays open."""
        with self._lock:
            self._tell(self._log())

    def _tell(self, log: Log) -> None:
        told, self._held = self._held.strip("\n"), ""
        if told:
            log.write("warning", told)


def catch_stray_text(log: Callable[[], Log]) -> None:
    """From here on, to the end of the process, what is written to ``sys.stderr`` and ``sys.stdout`` goes by the log's form."""
    sys.stdout, sys.stderr = (_caught(stream, log) for stream in (sys.stdout, sys.stderr))


def _caught(stream: TextIO, log: Callable[[], Log]) -> TextIO:
    try:
        stream.fileno()
    except (AttributeError, OSError, ValueError):
        return stream  # closed: nobody reads it
    return cast("TextIO", StrayText(stream, log))
