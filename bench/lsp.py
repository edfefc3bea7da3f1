"""The language server beside VS Code's JSON server: the same documents, schema and keystrokes, in turn, in one run."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.lsp_client import Server
from bench.lsp_texts import Bulk, keystrokes, manifest, position
from bench.measure import EFFORT, shown
from tamis.protocols.manifest.json_schema import published
from tamis.server.analysis.diagnostics import QUICK_CHARS
from tests.node_runtime import NODE, node_project

PROJECT = Path(__file__).parent / "lsp_anchor"
SIZES = {"10 KB": (10_000, 0.5), "100 KB": (100_000, 0.15), "1 MB": (1_000_000, 0.05)}
KINDS = ("description", "type word", "key", "number")
_HEAD = ["| what | ours (min / median) | VS Code's JSON server | ratio of medians | ratio of minima | bar | |"]
_RULE = ["|---|---|---|---|---|---|---|"]


@dataclass
class _Pair:
    """Seconds (or megabytes) of both sides."""

    ours: list[float] = field(default_factory=list)
    anchor: list[float] = field(default_factory=list)

    def row(self, what: str, bar: float | None, note: str = "", unit: str = "s") -> str:
        """A line of the table."""
        say = shown if unit == "s" else (lambda value: f"{value:.0f} MB")
        ours = f"{say(min(self.ours))} / {say(statistics.median(self.ours))}"
        if not self.anchor:
            return f"| {what} | {ours} | | | | {_bar(bar)} | {note} |"
        ratio = statistics.median(self.ours) / statistics.median(self.anchor)
        least = min(self.ours) / min(self.anchor)
        over = " **over**" if bar is not None and ratio > bar else ""
        theirs = f"{say(min(self.anchor))} / {say(statistics.median(self.anchor))}"
        return f"| {what} | {ours} | {theirs} | {ratio:.3f}{over} | {least:.3f} | {_bar(bar)} | {note} |"


def _bar(bar: float | None) -> str:
    return "" if bar is None else f"≤ {bar:g}"


def anchor_command() -> list[str]:
    """VS Code's JSON server, installed once into the user's cache folder; needs the package registry the first time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis-bench" / "lsp-anchor"
    program = cache / "node_modules" / "vscode-langservers-extracted" / "bin" / "vscode-json-language-server"
    if not program.exists():
        shutil.rmtree(cache, ignore_errors=True)
        node_project(PROJECT, cache)
    return [NODE, str(program), "--stdio"]


class _Sides:
    """How both servers are started."""

    def __init__(self, root: Path, anchor: list[str] | None) -> None:
        self.root = root
        self._anchor = anchor

    def ours(self) -> Server:
        return Server([str(Path(sys.executable).parent / "tamis"), "lsp"], self.root, pulls=False)

    def anchor(self) -> Server | None:
        if self._anchor is None:
            return None
        # What its users get from us: the embedded schemas are held against the draft-07 metaschema that it has built in, so both
        # sides check the same.
        return Server(self._anchor, self.root, pulls=True, schema=published("draft-07"))

    @contextmanager
    def both(self) -> Iterator[list[Server]]:
        servers = [server for server in (self.ours(), self.anchor()) if server is not None]
        try:
            yield servers
        finally:
            for server in servers:
                server.__exit__(None, None, None)


def bench_lsp(
    *,
    node: bool = True,
    bulks: tuple[Bulk, ...] = ("properties", "examples", "nested", "string"),
    sizes: tuple[str, ...] = tuple(SIZES),
) -> str:
    """All bars of the language server."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "tool.py").write_text("print('{}')\n")
        path = root / "large.tool.json"
        sides = _Sides(root, anchor_command() if node else None)
        lines = ["### Language server (utf-16 columns; keystrokes at the start, in the middle and at the end)", ""]
        lines += _HEAD + _RULE
        if node:
            _is_same_work(sides, path)
        lines += _starting(sides, path)
        for size in sizes:
            count, bar = SIZES[size]
            for pretty in (True, False):
                for cjk in (False, True):
                    for bulk in bulks:
                        text = manifest(EFFORT.size(count), bulk, cjk=cjk, pretty=pretty)
                        form = f"{'pretty' if pretty else 'minified'}, {'CJK and emoji' if cjk else 'ASCII'}"
                        lines.append(
                            _typing(sides, path, text, f"change → diagnostics, {size}, {form}, bulk in {bulk}", bar)
                        )
        for size, bar in (("10 KB", 1.0), ("1 MB", 0.1)):
            lines.append(
                _completing(
                    sides, path, manifest(EFFORT.size(SIZES[size][0]), "properties", cjk=False, pretty=True), size, bar
                )
            )
        text = manifest(EFFORT.size(1_000_000), "properties", cjk=False, pretty=True)
        lines += _large(sides, path, text)
    return "\n".join([*lines, ""])


def _is_same_work(sides: _Sides, path: Path) -> None:
    """Both sides must find a type that is none inside an embedded schema; an anchor that does not look there is no measure."""
    text = manifest(2_000, "properties", cjk=False, pretty=True).replace('"type": "integer"', '"type": "integr"', 1)
    path.write_text(text, encoding="utf-8")
    line = text[: text.index('"integr"')].count("\n")
    with sides.both() as servers:
        for server in servers:
            server.initialize()
            found = server.open(path, text)
            assert any(item["range"]["start"]["line"] == line for item in found), "a wrong type was not found"


def _quiet() -> float:
    """Seconds of silence after which a server is taken to have done all that opening a document makes it do."""
    return 0.5 * min(1.0, EFFORT.rounds * 2)


def _rounds(full: int) -> int:
    return max(1, round(full * EFFORT.rounds))


def _starting(sides: _Sides, path: Path) -> list[str]:
    text = manifest(EFFORT.size(10_000), "properties", cjk=False, pretty=True)
    path.write_text(text, encoding="utf-8")
    answered, told = _Pair(), _Pair()
    for _ in range(_rounds(11)):
        for start, into, first in (
            (sides.ours, answered.ours, told.ours),
            (sides.anchor, answered.anchor, told.anchor),
        ):
            server = start()
            if server is None:
                continue
            with server:
                into.append(server.initialize())
                server.open(path, text)
                first.append(time.perf_counter() - server.started)
    large, whole, wrong = _first_looks(sides, path)
    return [
        answered.row("spawn → answer to `initialize`", 1.0),
        told.row("spawn → first diagnostics, 10 KB", 1.0),
        large.row("spawn → first diagnostics, 1 MB", 1.0, "what reading found; the anchor has nothing else"),
        whole.row("spawn → all findings, 1 MB", None, "with the advice, which the anchor has none of"),
        wrong.row("first wrong keystroke of a session, 1 MB", None, f"aim 5 ms; slowest {shown(max(wrong.ours))}"),
    ]


def _first_looks(sides: _Sides, path: Path) -> tuple[_Pair, _Pair, _Pair]:
    """A large manifest in a session that was just started: until something is said, until all is, and the first edit that is wrong."""
    text = manifest(EFFORT.size(1_000_000), "properties", cjk=False, pretty=True)
    path.write_text(text, encoding="utf-8")
    place = position(text, text.index('"type": "integer"') + len('"type": "inte'))
    large, whole, wrong = _Pair(), _Pair(), _Pair()
    for _ in range(_rounds(11)):
        for start in (sides.ours, sides.anchor):
            server = start()
            if server is None:
                continue
            with server:
                server.initialize()
                server.open(path, text)
                (large.anchor if server.pulls else large.ours).append(time.perf_counter() - server.started)
                if not server.pulls and len(text) > QUICK_CHARS:
                    server.published()
                (whole.anchor if server.pulls else whole.ours).append(time.perf_counter() - server.started)
                server.settle(_quiet())
                began = time.perf_counter()
                server.change([{"range": {"start": place, "end": place}, "text": "x"}])
                (wrong.anchor if server.pulls else wrong.ours).append(time.perf_counter() - began)
    return large, whole, wrong


def _typing(sides: _Sides, path: Path, text: str, what: str, bar: float) -> str:
    path.write_text(text, encoding="utf-8")
    per_kind = {kind: _Pair() for kind in KINDS}
    with sides.both() as servers:
        for server in servers:
            server.initialize()
            server.open(path, text)
            server.settle(_quiet())
        for turn in range(_rounds(5) + 1):
            for kind, spent in per_kind.items():
                for pair in keystrokes(text, kind):
                    for edit in pair:
                        for server in servers:
                            began = time.perf_counter()
                            server.change([edit])
                            took = time.perf_counter() - began
                            if turn:  # the first turn warms both up
                                (spent.anchor if server.pulls else spent.ours).append(took)
    whole = _Pair(
        [s for pair in per_kind.values() for s in pair.ours], [s for pair in per_kind.values() for s in pair.anchor]
    )
    note = ", ".join(f"{kind} {shown(statistics.median(pair.ours))}" for kind, pair in per_kind.items())
    return whole.row(what, bar, f"{note}; slowest {shown(max(whole.ours))}")


def _completing(sides: _Sides, path: Path, text: str, size: str, bar: float) -> str:
    path.write_text(text, encoding="utf-8")
    at = text.index('"handler"')
    typed = keystrokes(text, "description")[1]
    spent = _Pair()
    with sides.both() as servers:
        for server in servers:
            server.initialize()
            server.open(path, text)
        for turn in range(_rounds(30) + 1):
            for server in servers:
                # An editor asks right behind the keystroke.
                server.change([typed[turn % 2]], wait=False)
                began = time.perf_counter()
                server.complete(position(text, at + 1))
                (spent.anchor if server.pulls else spent.ours).append(time.perf_counter() - began)
    return spent.row(f"completion behind a keystroke, {size}", bar)


def _large(sides: _Sides, path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    empty, full, burst = _Pair(), _Pair(), _Pair()
    publishes: list[int] = []
    for _ in range(_rounds(3)):
        with sides.both() as servers:
            for server in servers:
                server.initialize()
                server.settle(_quiet())
                (empty.anchor if server.pulls else empty.ours).append(server.memory())
                server.open(path, text)
                server.settle(_quiet())
                typed, taken = keystrokes(text, "description")[1]
                for _ in range(_rounds(3)):
                    server.publishes = 0
                    began = time.perf_counter()
                    server.change([typed, taken] * 15)
                    (burst.anchor if server.pulls else burst.ours).append(time.perf_counter() - began)
                    if not server.pulls:
                        server.settle(_quiet())
                        publishes.append(server.publishes)
                (full.anchor if server.pulls else full.ours).append(server.memory())
    return [
        empty.row("memory at start", None, unit="MB"),
        full.row("memory, 1 MB open and edited", 0.5, unit="MB"),
        burst.row("30 keystrokes at once on 1 MB → settled", 0.3, f"at most {max(publishes)} publishes (bar 3)"),
    ]
