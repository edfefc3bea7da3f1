"""What a run of the tests costs: the processor time and the started processes of each test, summed by folder.

``conftest.py`` loads this plugin. Each worker measures its tests and sends the figures with their reports; the controller prints the
ten longest tests and the sums. A whole run is compared with the table in ``tests/README.md``:

- more processor time than the table has, in units of a calibration loop, is a warning;
- more started processes than the table has fails the run, since a count does not depend on the machine.

``TAMIS_WRITE_FIGURES=1 ./test`` writes the table.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.growth import calibration

README = Path(__file__).resolve().parent / "README.md"
STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"})
SLACK = 1.1
"""A whole run may take a tenth more processor time than the table before the run warns."""
READ_EVERY = 200
"""Tests between two readings of the calibration loop."""

_events: list[str] = []
"""The audit events since the test began that `fast.py` forbids or this module counts."""
_WATCHED = STARTS | {"socket.__new__", "time.sleep"}


def _watch(event: str, args: tuple[object, ...]) -> None:
    if event in _WATCHED and args != (0,):
        _events.append(event)


sys.addaudithook(_watch)


def events() -> list[str]:
    """Returns the audit events of the running test: started processes, sockets and sleeps."""
    return _events


class Spent(NamedTuple):
    """The cost of one test or of many: seconds of wall and of processor time (with ended children), started processes."""

    wall: float
    processor: float
    processes: int


def _now() -> tuple[float, float]:
    times = os.times()
    return time.monotonic(), times.user + times.system + times.children_user + times.children_system


class _Measure:
    """Runs where tests run: adds `spent` to each report."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.before = _now()
        self.collection = 0.0
        self.loops: list[float] = []
        self.count = 0

    def pytest_collection_finish(self) -> None:
        now = _now()
        self.collection, self.before = now[1] - self.before[1], now
        del _events[:]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        wall, processor = _now()
        started = sum(event in STARTS for event in _events)
        report.spent = (wall - self.before[0], processor - self.before[1], started)
        del _events[:]
        if report.when == "teardown":
            if self.count % READ_EVERY == 0:
                self.loops.append(calibration())
            self.count += 1
        self.before = _now()
        return report

    def pytest_sessionfinish(self) -> None:
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["loops"] = self.loops
            output["collection"] = self.collection


class _Report:
    """Runs in the controller: sums, prints and compares."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tests: dict[str, Spent] = {}
        self.loops: list[float] = []
        self.collection = 0.0
        self.left: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        wall, processor, processes = getattr(report, "spent", (0.0, 0.0, 0))
        so_far = self.tests.get(report.nodeid, Spent(0, 0, 0))
        self.tests[report.nodeid] = Spent(
            so_far.wall + wall, so_far.processor + processor, so_far.processes + processes
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self.loops += output.get("loops", [])
        self.collection += output.get("collection", 0.0)
        self.left = Counter(output.get("left", {})) or self.left

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        measure = self.config.pluginmanager.get_plugin("spent-measure")
        if measure is not None:
            self.loops += measure.loops
            self.collection += measure.collection
        self.left = self.left or getattr(self.config, "left_to_long", Counter())
        if self._is_whole() and not os.environ.get("TAMIS_WRITE_FIGURES"):
            figures = written(README.read_text("utf-8"))
            if session.exitstatus == 0 and figures and self._total().processes > figures.processes:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.tests:
            return
        line = terminalreporter.write_line
        rows = by_folder(self.tests)
        if len(rows) > 1:
            terminalreporter.section("processor time and processes by room")
            line(f"{'collection':14}{'':13} {self.collection:8.1f} s")
            for name, tests, spent in rows:
                line(f"{name:14}{tests:7} tests {spent.processor:8.1f} s {spent.processes:7} processes")
        if len(self.tests) > 20:
            terminalreporter.section("the ten longest")
            longest = sorted(self.tests.items(), key=lambda item: -item[1].wall)[:10]
            for name, spent in longest:
                line(f"{spent.wall:7.1f} s, {spent.processor:6.1f} s of processor time: {name}")
        self._print_long(terminalreporter)
        if self._is_whole() and self.loops:
            self._compare(terminalreporter)

    def _print_long(self, terminal: pytest.TerminalReporter) -> None:
        if self.left and self.config.getoption("--long"):
            terminal.section("only --long runs these")
            for name, count in sorted(self.left.items()):
                terminal.write_line(f"{count:6} of {name}")
        elif self.left:
            terminal.write_line(f"{sum(self.left.values())} tests were left to --long")

    def _compare(self, terminal: pytest.TerminalReporter) -> None:
        total, loop = self._total(), statistics.median(self.loops)
        loops = total.processor / loop / 1000
        text = README.read_text("utf-8")
        if os.environ.get("TAMIS_WRITE_FIGURES"):
            README.write_text(with_figures(text, table(by_folder(self.tests), self.collection, total, loop)), "utf-8")
            terminal.write_line(f"wrote the figures of this run into tests/{README.name}")
            return
        figures = written(text) or Figures(sys.maxsize, sys.maxsize)
        terminal.write_line(
            f"in all {total.processor:.0f} s of processor time ({loops:.0f} thousand calibration loops of"
            f" {loop * 1000:.1f} ms; the table has {figures.loops}), {total.processes} processes (the table has {figures.processes})"
        )
        if loops > figures.loops * SLACK:
            terminal.write_line(
                "warning: the tests take more than a tenth more processor time than the table in tests/README.md has"
            )
        if total.processes > figures.processes:
            terminal.write_line(
                "FAILED: the tests start more processes than the table in tests/README.md has; share one, or call the"
                " function in the process. If they are needed: TAMIS_WRITE_FIGURES=1 ./test"
            )

    def _is_whole(self) -> bool:
        options = self.config.option
        named = self.config.args != self.config.getini("testpaths")
        return not (
            named
            or options.long
            or options.fast
            or options.untrusted
            or options.keyword
            or getattr(options, "lf", False)
        )

    def _total(self) -> Spent:
        tests = _sum(list(self.tests.values()))
        return tests._replace(processor=tests.processor + self.collection)


def _sum(several: list[Spent]) -> Spent:
    return Spent(
        sum(one.wall for one in several),
        sum(one.processor for one in several),
        sum(one.processes for one in several),
    )


def by_folder(tests: dict[str, Spent]) -> list[tuple[str, int, Spent]]:
    """Returns folder of tests, number of tests and their cost, the dearest first."""
    folders: dict[str, list[Spent]] = {}
    for name, spent in tests.items():
        folders.setdefault(name.split("/")[1] if name.startswith("tests/") else ".", []).append(spent)
    rows = [(name, len(several), _sum(several)) for name, several in folders.items()]
    return sorted(rows, key=lambda row: -row[2].processor)


class Figures(NamedTuple):
    """The sums that the table in ``tests/README.md`` has: thousands of calibration loops and started processes."""

    loops: int
    processes: int


_FIGURES = re.compile(r"(?s)<!-- figures -->\n.*?<!-- end of figures -->\n")
_TOTAL = re.compile(r"\| all \|[^|]*\| [^|]*\((\d+) thousand loops\) \| (\d+) \|")


def written(text: str) -> Figures | None:
    """Returns the sums of the table in a README's text, `None` if it has no table."""
    found = _TOTAL.search(text)
    return Figures(int(found[1]), int(found[2])) if found else None


def table(rows: list[tuple[str, int, Spent]], collection: float, total: Spent, loop: float) -> str:
    """Returns the table of a run as Markdown. Processes are rounded up by a hundredth, for those that depend on the moment."""
    lines = ["| folder | tests | processor time | processes |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {tests} | {spent.processor:.0f} s | {spent.processes} |" for name, tests, spent in rows]
    lines.append(f"| collection, by each worker | | {collection:.0f} s | |")
    loops = round(total.processor / loop / 1000)
    allowed = -(-total.processes * 101 // 10000) * 100
    count = sum(tests for _, tests, _ in rows)
    lines.append(f"| all | {count} | {total.processor:.0f} s ({loops} thousand loops) | {allowed} |")
    return "\n".join(lines) + "\n"


def with_figures(text: str, new: str) -> str:
    """Returns the README's text with another table."""
    return _FIGURES.sub(lambda _: f"<!-- figures -->\n{new}<!-- end of figures -->\n", text)


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if is_worker or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Measure(config), "spent-measure")
    if not is_worker:
        config.pluginmanager.register(_Report(config), "spent-report")
