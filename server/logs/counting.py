"""One block of records to its counts. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tamis.protocols.api import Reader
from tamis.protocols.counts import Counts, KnownTools
from tamis.server.logs.parsing import each
from tamis.server.logs.records import Block, Problem
from tamis.server.logs.texts import Texts


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
        found = each(block, self._texts)
        for record in found:
            if isinstance(record, Problem):
                problems.append(record)
                counts.broken += 1
                continue
            if record.problem is not None:
                problems.append(record.problem)
            counts.add(self._reader.document(record.text), record.label, self._known)
        return Counted(counts, len(found), tuple(problems))


def lost(block: Block) -> Counted:
    """The counts that stand for a record that could not be had."""
    assert block.problem is not None
    return Counted(Counts(broken=1), 1, (block.problem,))
