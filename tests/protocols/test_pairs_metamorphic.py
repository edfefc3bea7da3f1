"""Good TAM and VCP blocks with the faults that models make: read the same or refused, never different; and repairs keep what was read."""

from __future__ import annotations

from collections import Counter

import pytest

from tamis.protocols.model import ReadOptions
from tamis.protocols.reader import read_text
from tests.protocols.pair_blocks import Rng
from tests.protocols.pair_reading import BUILDERS, faulty, level, ran, wrong

PROTOCOLS = ("tam", "vcp")
FAULTS = [(protocol, fault) for protocol in PROTOCOLS for fault in BUILDERS[protocol][1]]
READ_WELL = 0.75
"""The share of single faults that has to be read and not refused: refusing everything would be safe as well."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_good_block_says_what_was_written(protocol: str) -> None:
    build = BUILDERS[protocol][0]
    for seed in range(200):
        written = build(Rng(seed))
        document = read_text(written.text())
        assert level(ran(document, protocol)) == level(written.want), seed


# T02, T03, T05, T06, T07, T08, T26; V24, V25, V37
@pytest.mark.parametrize(("protocol", "fault"), FAULTS)
def test_a_block_with_one_fault_is_read_the_same_or_refused(protocol: str, fault: str, is_long: bool) -> None:
    faults = list(BUILDERS[protocol][1])
    seeds = range(faults.index(fault), (100_000 if is_long else 500), len(faults))
    problems = [problem for seed in seeds for problem in wrong(protocol, seed)]
    assert not problems, "\n".join(problems[:3])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_most_single_faults_are_read_and_not_refused(protocol: str) -> None:
    grades: Counter[bool] = Counter()
    for seed in range(500):
        found = faulty(protocol, seed)
        if found is not None:
            grades[bool(ran(read_text(found[0].text()), protocol))] += 1
    assert grades[True] >= READ_WELL * grades.total(), grades


# F1, F17: wherever a block is cut, nothing of it runs
@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_block_never_runs(protocol: str, is_long: bool) -> None:
    build = BUILDERS[protocol][0]
    step = 1 if is_long else 10
    for seed in range(15):
        text = build(Rng(seed)).text()
        for cut in range(seed % step, len(text), step):
            assert ran(read_text(text[:cut], options=ReadOptions(complete=False)), protocol) == [], (seed, cut)
