"""Work in several processes: order, bounds, and a worker that dies (C1)."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from tamis.server.logs.records import Block
from tamis.server.logs.workers import Workers


def words(block: Block) -> list[str]:
    time.sleep(0.002 * (block.line % 3))
    for word in block.data.split():
        if word == b"die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == b"exit":
            os._exit(3)
    return [f"{block.line}:{block.data.decode().strip()}"]


def lost(block: Block) -> list[str]:
    assert block.problem is not None
    return [f"{block.line}!{block.problem.code}"]


def results(blocks: list[Block], jobs: int) -> list[str]:
    found: list[str] = []
    with Workers(words, lost, jobs) as workers:
        for block in blocks:
            for result in workers.give(block):
                found += result
        for result in workers.rest():
            found += result
    return found


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_blocks(jobs: int) -> None:
    """C1: a record in, a record out, in order."""
    blocks = [Block(n, b"x\n") for n in range(1, 60)]
    assert results(blocks, jobs) == [f"{n}:x" for n in range(1, 60)]


@pytest.mark.parametrize(("word", "how"), [(b"die", "SIGKILL"), (b"exit", "exit code 3")])
def test_a_record_that_ends_its_worker_costs_itself_alone(word: bytes, how: str) -> None:
    """C1: the others of its block are read, and the blocks behind it too."""
    told: list[str] = []

    def tell(block: Block) -> list[str]:
        assert block.problem is not None
        told.append(block.problem.message)
        return lost(block)

    with Workers(words, tell, 2) as workers:
        blocks = [Block(1, b"a\n"), Block(2, b"b\n" + word + b"\nc\n"), Block(5, b"d\n"), Block(6, word)]
        found: list[Any] = [result for block in blocks for result in workers.give(block)]
        found += workers.rest()
    assert found == [["1:a"], ["2:b"], ["3!workerDied"], ["4:c"], ["5:d"], ["6!workerDied"]]
    assert all(how in message for message in told)


def test_large_blocks_and_results_do_not_lock_up() -> None:
    """C1: more than a pipe holds, both ways."""

    def echo(block: Block) -> bytes:
        return block.data * 3

    blocks = [Block(n, bytes([n]) * 3_000_000) for n in range(12)]
    with Workers(echo, lost, 2) as workers:
        found = [len(result) for block in blocks for result in workers.give(block)]
        found += [len(result) for result in workers.rest()]
    assert found == [9_000_000] * 12


def test_what_is_on_its_way_is_bounded() -> None:
    """C1: bounded memory: a slow first block does not let the others pile up."""

    def slow(block: Block) -> int:
        time.sleep(0.3 if block.line == 0 else 0)
        return block.line

    found: list[int] = []
    with Workers(slow, lost, 2) as workers:
        for n in range(100):
            found += workers.give(Block(n, b"x" * 1000))
            assert n - len(found) <= 10
        found += workers.rest()
    assert found == list(range(100))


def test_no_process_is_left() -> None:
    """C1: also where the results are not taken."""
    with Workers(words, lost, 3) as workers:
        for n in range(3):
            list(workers.give(Block(n, b"x")))
        processes = [worker.process for worker in workers._workers]
        assert len(processes) == 3
    assert not any(process.is_alive() for process in processes)
