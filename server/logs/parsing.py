"""One block of records to one block of results: a ``ParseResult`` a line, or what is wrong with the record. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tamis.protocols.api import Reader
from tamis.protocols.counts import Counts, KnownTools
from tamis.server.logs.records import Block, Found, Problem, RecordError, Texts


class Parsed(NamedTuple):
    """The results of a block."""

    out: bytes
    """Lines of JSON."""
    records: int
    problems: tuple[Problem, ...] = ()


class Parse:
    """The work of ``tamis parse --jsonl``."""

    def __init__(self, texts: Texts, reader: Reader) -> None:
        self._texts = texts
        self._reader = reader

    def __call__(self, block: Block) -> Parsed:
        """The results of its records, in order; a blank line is no record."""
        out: list[bytes] = []
        problems: list[Problem] = []
        for record in each(block, self._texts):
            if isinstance(record, Problem):
                problems.append(record)
                out.append(_told(record))
                continue
            if record.problem is not None:
                problems.append(record.problem)
            out.append(self._reader.json(record.text))
        out.append(b"")
        return Parsed(b"\n".join(out), len(out) - 1, tuple(problems))


def each(block: Block, texts: Texts) -> list[Found | Problem]:
    """What every record of a block holds, or why it holds nothing."""
    records: list[Found | Problem] = []
    for number, line in enumerate(block.data.split(b"\n"), block.line):
        record = line.strip()
        if not record:
            continue
        try:
            records.append(texts.of(record, number))
        except RecordError as error:
            records.append(Problem(number, error.code, error.message))
    return records


def lost_results(block: Block) -> Parsed:
    """The result that stands for a record that could not be had."""
    assert block.problem is not None
    return Parsed(_told(block.problem) + b"\n", 1, (block.problem,))


def _told(problem: Problem) -> bytes:
    error = {"code": problem.code, "message": problem.message}
    return msgspec.json.encode({"line": problem.line, "error": error})


# One block of records to its counts. Pure.


class Counted(NamedTuple):
    """The counts of a block."""

    counts: Counts
    records: int
    problems: tuple[Problem, ...] = ()


class Count:
    """The work of ``tamis stats``; the label of ``texts`` is the model."""

    def __init__(self, texts: Texts, reader: Reader, known: KnownTools | None) -> None:
        self._texts = texts
        self._reader = reader
        self._known = known

    def __call__(self, block: Block) -> Counted:
        """The counts of its records."""
        counts = Counts()
        problems: list[Problem] = []
        records = each(block, self._texts)
        for record in records:
            if isinstance(record, Problem):
                problems.append(record)
                counts.broken += 1
                continue
            if record.problem is not None:
                problems.append(record.problem)
            counts.add(self._reader.document(record.text), record.label, self._known)
        return Counted(counts, len(records), tuple(problems))


def lost_counts(block: Block) -> Counted:
    """The counts that stand for a record that could not be had."""
    assert block.problem is not None
    return Counted(Counts(broken=1), 1, (block.problem,))
