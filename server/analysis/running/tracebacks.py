"""Where a script failed: the innermost line of its own files in what Python, Node or Bun wrote on standard error.

What a script writes is not trusted: only paths below the tool's folder count. Must not read files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

import msgspec

from tamis.protocols.patterns import lazy

MAX_LINES = 400
MAX_PLACES = 10
_PYTHON = lazy(r'\s*File "/tool/([^"\n]{1,400})", line (\d{1,7})')
# `at name (/tool/x.js:3:5)`, `at file:///tool/x.mjs:3:5`, and the line `/tool/x.js:3` above the quoted source of a syntax error
_NODE = lazy(
    r"(?:\s*at [^\n]{0,400}?\(?(?:file://)?|(?:file://)?)/tool/([^:\n()]{1,400}):(\d{1,7})(?::\d{1,7})?\)?\s*$"
)


class Place(msgspec.Struct, frozen=True):
    """A line of a file of the tool: path relative to its folder, zero-based line."""

    path: str
    line: int


def places(logs: Sequence[str]) -> list[Place]:
    """The places that a failure names, the innermost first, each once; ``logs`` as an execution result has them."""
    python: list[Place] = []
    node: list[Place] = []
    for log in logs[-MAX_LINES:]:
        if not log.startswith("stderr: ") or "/tool/" not in log:
            continue
        line = log[len("stderr: ") : 1_000]
        if (match := _PYTHON.match(line)) is not None:
            python.append(_place(match[1], match[2]))
        elif (match := _NODE.match(line)) is not None:
            node.append(_place(match[1], match[2]))
    # Python names the innermost call last, Node first.
    found = [*reversed(python), *sorted(node, key=lambda place: place.line < 0)]
    return [place for place in dict.fromkeys(found) if place.line >= 0][:MAX_PLACES]


def _place(path: str, line: str) -> Place:
    clean = posixpath.normpath(path)
    outside = clean.startswith(("/", "..")) or "node_modules" in clean.split("/")
    return Place(clean, -1 if outside else max(0, int(line) - 1))
