"""When an agent turns in circles: the same calls with the same arguments and the same results three rounds running (ruling 41, V51).

Rounds are compared, not single calls: the same call twice in one answer is two calls (ruling 8), and a call that comes again among
others that changed is work. Must not know how calls are run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult

LOOP_ROUNDS = 3
"""So many equal rounds running are a loop."""
DENIED_ROUNDS = 2
"""So many equal rounds running whose calls a person denied: the model insists."""


class Repeats:
    """How many times running the last round came; only digests are kept."""

    def __init__(self) -> None:
        self._last = b""
        self.times = 0

    def add(self, digest: bytes) -> int:
        """One more round; how many times running it has come now."""
        self.times = self.times + 1 if digest == self._last else 1
        self._last = digest
        return self.times

    def clear(self) -> None:
        """What came before counts no more."""
        self._last, self.times = b"", 0


def digest_of(calls: Iterable[tuple[dict[str, Any], ExecutionResult]]) -> bytes:
    """What a round did: its tools, arguments and outcomes, in order; not how long they took, nor what they logged."""
    found = hashlib.sha256()
    for args, result in calls:
        error = None if result.error is UNSET else [result.error.type, result.error.message]
        output = None if result.output is UNSET else result.output
        told = [result.tool_id, args, result.status, output, error]
        try:
            text = json.dumps(told, sort_keys=True, default=repr)
        except (RecursionError, TypeError, ValueError):
            # what cannot be compared is never a repeat
            return os.urandom(32)
        found.update(text.encode() + b"\0")
    return found.digest()
