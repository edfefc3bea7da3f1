"""How work grows with size, measured so that a busy machine does not decide: steps of the interpreter, which are the same each time, or
processor time, best of several, no collection, where the work is that of C (searches in texts, copies)."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """How many steps of the interpreter a work takes, those of loops in comprehensions too. What C does in a step counts as one."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def leave_out() -> None:
    """What the process holds already is left out of each collection from now on: in a worker that ran thousands of tests, looking
    through it takes longer than what is measured."""
    gc.collect()
    gc.freeze()


def processor_seconds(work: Callable[[], object], tries: int = 3) -> float:
    """The least processor time of several tries, with the garbage collector off."""
    leave_out()
    return _best(work, tries)


def calibration() -> float:
    """Returns the least processor time of three runs of a fixed loop, in seconds: about 2 ms on a machine of 2024.

    A bound on time is a multiple of it, measured in the same process: a slow or busy machine slows both.
    """

    def loop() -> int:
        total = 0
        for number in range(100_000):
            total += number
        return total

    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        loop()
        best = min(best, time.process_time() - started)
    return best


def loops(work: Callable[[], object], tries: int = 3) -> float:
    """Returns the processor time of a work in runs of the calibration loop, the least of several tries.

    The loop runs before and after, and the slower counts, so that a neighbour who comes in between fails no test.
    """
    before = calibration()
    seconds = processor_seconds(work, tries)
    return seconds / max(before, calibration())


def _best(work: Callable[[], object], tries: int = 3) -> float:
    best = float("inf")
    for _ in range(tries):
        gc.collect()
        gc.disable()
        try:
            started = time.process_time()
            work()
            best = min(best, time.process_time() - started)
        finally:
            gc.enable()
    return best


def growth(build: Callable[[int], str], read: Callable[[str], object], size: int) -> float:
    """Time at four times the size over time at the size; quadratic work gives 16.

    Sizes too fast to time are enlarged, times below two milliseconds count as two, and the least of seven ratios is taken, the first
    good one ends the measuring: a neighbour can spoil a measurement, but only quadratic work spoils them all.
    """
    leave_out()
    return _growth(build, read, size)


def _growth(build: Callable[[int], str], read: Callable[[str], object], size: int) -> float:
    seconds, length = _timed(build(size), read)
    while seconds < 0.004 and length < 500_000:
        size *= 4
        seconds, length = _timed(build(size), read)
    ratios: list[float] = []
    for _ in range(7):
        large, _ = _timed(build(size * 4), read)
        ratios.append(large / max(seconds, 0.002))
        if ratios[-1] <= 8:
            break
        seconds, _ = _timed(build(size), read)
    return min(ratios)


def _timed(text: str, read: Callable[[str], object]) -> tuple[float, int]:
    return _best(lambda: read(text)), len(text)
