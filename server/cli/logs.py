"""What the commands share that read logs of messages: options, input, progress, what is told of broken records. Holds no rules."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tamis.server.cli.inputs import UsageError, open_named, tell_terminal
from tamis.server.cli.outputs import warn, write_progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.server.logs.records import Block, Problem, Texts
    from tamis.server.logs.workers import Workers

_TOLD = 20
_SIZE = re.compile(r"([1-9][0-9]{0,9})([KMG]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_EVERY_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of logs."""
    parser.add_argument(
        "--field",
        metavar="PATH",
        help="where the text stands in a record: message.content, messages.-1.content or /message/content (default: the record itself, text, content)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="how many processes read (default: one a processor)")
    parser.add_argument(
        "--max-record", metavar="SIZE", help="a longer record is passed over and told: 500K, 64M, 1G (default: 256M)"
    )


def used(arguments: argparse.Namespace) -> list[str]:
    """The options of logs that were given."""
    options = {"--field": arguments.field, "--jobs": arguments.jobs, "--max-record": arguments.max_record}
    return [name for name, value in options.items() if value is not None]


def texts_of(field: str | None, label: str = "") -> Texts:
    """What is taken of each record."""
    from tamis.server.logs.records import Texts, path_of

    try:
        return Texts(() if field is None else (path_of(field),), path_of(label) if label else ())
    except ValueError as error:
        raise UsageError(f"--field: {error}") from None


class Logs:
    """Logs that are read one after the other by the same workers."""

    def __init__(self, arguments: argparse.Namespace, texts: Texts) -> None:
        """Raises ``UsageError``."""
        from tamis.server.logs.records import MAX_RECORD_BYTES
        from tamis.server.logs.workers import processors

        self._texts = texts
        self._limit = MAX_RECORD_BYTES
        if arguments.max_record is not None:
            size = _SIZE.fullmatch(arguments.max_record)
            if size is None:
                raise UsageError(f"--max-record: '{arguments.max_record}' is no size: 500K, 64M, 1G")
            self._limit = int(size[1]) * _UNITS[size[2].upper()]
        self._jobs = processors() if arguments.jobs is None else arguments.jobs
        if not 1 <= self._jobs <= 256:
            raise UsageError("--jobs is a number from 1 to 256")
        self.records = 0
        self.broken = 0
        """Records that gave nothing."""
        self._told = 0
        self._bytes = 0
        self._started = time.monotonic()
        self._shown = self._started
        self._shows = sys.stderr.isatty() and not sys.stdout.isatty()

    def read(self, names: list[str], work: Callable[[Block], Any], lost: Callable[[Block], Any]) -> Iterator[Any]:
        """The results of every block of these files, in order. Raises ``UsageError`` for a file that cannot be read."""
        from tamis.server.logs.workers import Workers

        for name in names:
            if name != "-" and not os.path.exists(name):
                raise UsageError(f"cannot read '{name}': No such file or directory")
        with Workers(work, lost, self._jobs) as workers:
            for name in names:
                shown = "<stdin>" if name == "-" else name
                for result in self._one(name, shown, workers):
                    self.records += result.records
                    for problem in result.problems:
                        self._tell(shown, problem)
                    self._show()
                    yield result
        self._show(last=True)
        if self._told > _TOLD:
            warn(
                f"{self._told - _TOLD} more records were told of, which are not shown; {self.broken} gave nothing in all"
            )

    def _one(self, name: str, shown: str, workers: Workers) -> Iterator[Any]:
        from tamis.server.logs import records
        from tamis.server.logs.records import Lines, PackedError
        from tamis.server.logs.workers import results

        try:
            # what is read of a pipe to look at it is gone
            if name != "-" and os.path.isfile(name) and records.is_parquet(name):
                for block in records.blocks(name, self._texts):
                    self._count(len(block.data))
                    yield from workers.give(block)
                yield from workers.rest()
                return
            if name == "-":
                tell_terminal()
            source = os.dup(0) if name == "-" else open_named(name)
            try:
                yield from results(source, Lines(self._limit), workers, self._count)
            finally:
                os.close(source)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(f"cannot read '{shown}': {error.strerror}") from None
        except PackedError as error:
            whole = "" if name == "-" else f" {name}"
            raise UsageError(f"'{shown}' is packed with {error.form}: `{error.program}{whole} | tamis … -`") from None
        except records.ParquetError as error:
            raise UsageError(f"'{shown}': {error}") from None

    def _tell(self, shown: str, problem: Problem) -> None:
        self._told += 1
        self.broken += problem.lost
        if self._told <= _TOLD:
            self._clear()
            warn(f"{shown}:{problem.line}: {problem.message}")

    def _count(self, size: int) -> None:
        self._bytes += size
        self._show()

    def _clear(self) -> None:
        if self._shows and self._shown != self._started:
            write_progress("")

    def _show(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if (
            not self._shows
            or (last and self._shown == self._started)
            or (not last and now - self._shown < _EVERY_SECONDS)
        ):
            return
        self._shown = now
        if last:
            write_progress("")
            return
        seconds = max(now - self._started, 0.001)
        megabytes = self._bytes / 1_000_000
        write_progress(f"{self.records:,} records, {megabytes:,.0f} MB, {self.records / seconds:,.0f} a second")
