"""How a tool says how far it is: lines on standard error that begin with ``[progress]``.

``[progress] 40% reading``, ``[progress] 3/10 files``, ``[progress] almost there``. Any other line is only a log. Must not know tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import UNSET

from tamis.protocols.contract import TaskProgress
from tamis.protocols.observation import readable

MAX_LINE_CHARS = 1_000
_LINE = re.compile(
    r"\[progress\](?: +([0-9]{1,15}(?:\.[0-9]{1,6})?)(?:(%)|/([0-9]{1,15}(?:\.[0-9]{1,6})?)))?(?: +(.*))?"
)


def read_progress(line: str) -> TaskProgress | None:
    """What a line says; None for one that says nothing of progress."""
    if not line.startswith("[progress]"):
        return None
    match = _LINE.fullmatch(readable(line.rstrip()))
    if match is None:
        return None
    done, percent, total, words = match.groups()
    return TaskProgress(
        progress=UNSET if done is None else float(done),
        total=100.0 if percent else UNSET if total is None else float(total),
        message=words or UNSET,
    )


class ProgressReader:
    """Reads the standard error of a run while it arrives."""

    def __init__(self, tell: Callable[[TaskProgress], None]) -> None:
        self._tell = tell
        self._line = ""
        self._long = False

    def piece(self, text: str) -> None:
        """More of it."""
        *lines, rest = (self._line + text).split("\n")
        for line in lines:
            # the beginning of a line that was too long is gone, and its end says nothing
            if not self._long and (progress := read_progress(line[:MAX_LINE_CHARS])) is not None:
                self._tell(progress)
            self._long = False
        self._long = self._long or len(rest) > MAX_LINE_CHARS
        self._line = "" if self._long else rest
