"""How time and memory grow with the text: ten times the log, four times each stress text, and the peak while reading."""

from __future__ import annotations

import importlib.util
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.measure import EFFORT, in_turn, shown, timed
from bench.texts import log, message
from tamis.protocols.reader import read_text

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "calls"
_WORTH_TIMING_S = 0.01
_LARGEST = 2_000_000
_SIZE = 20_000
"""For texts whose size the sample does not say: past every cap on counts, so that like is compared with like."""


def _texts() -> dict[str, Callable[[int], str]]:
    """Texts of about ``n`` megabytes."""
    block = message(1_700, cdata=False)[1]

    def logged(n: int) -> str:
        return log(block, EFFORT.size(210 * n))

    def section(n: int) -> str:
        line = "0123456789abcde\n"
        return f"<ACTION><t><p><![CDATA[{line * EFFORT.size(62_500 * n)}]]></p></t></ACTION>"

    def prose(n: int) -> str:
        return "lorem ipsum dolor sit amet, consectetur\n" * EFFORT.size(25_000 * n)

    return {"log of blocks": logged, "one CDATA section": section, "prose": prose}


def bench_growth() -> str:
    """Time at 10 MB over time at 1 MB, and for every stress text time at 4n over time at n."""
    lines = [
        "### Growth",
        "",
        "| text | smaller | larger | ratio of minima | bar |",
        "|---|---|---|---|---|",
    ]
    for name, build in _texts().items():
        small, large = build(1), build(10)
        work: dict[str, Callable[[], object]] = {"1": lambda t=small: read_text(t), "10": lambda t=large: read_text(t)}
        found = in_turn(work, rounds=7, clock=time.process_time)
        one, ten = found["1"].minimum, found["10"].minimum
        lines.append(f"| {name}, 1 → 10 MB | {shown(one)} | {shown(ten)} | {ten / one:.1f} | ≤ 11 |")
    lines += [_stress(*row) for row in _stress_rows()]
    return "\n".join([*lines, ""])


def _stress_rows() -> list[tuple[str, int, Callable[[int], str]]]:
    """The texts of the stress corpus that grow with their size, with the smaller size; none where it is not there."""
    path = CORPUS / "stress_builders.py"
    if not path.is_file():
        return []
    spec = importlib.util.spec_from_file_location("stress_builders", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = [json.loads(line) for line in (CORPUS / "stress.jsonl").read_text(encoding="utf-8").splitlines()]
    sizes = {row["builder"]: row["n"] // 4 for row in rows if row["linear"] and row["n"] >= 400}
    return [
        (name, EFFORT.size(sizes.get(name, _SIZE)), build)
        for name, build in module.BUILDERS.items()
        if len(build(400)) > 2 * len(build(100)) or name in sizes
    ]


def _stress(name: str, n: int, build: Callable[[int], str]) -> str:
    """One stress text at a quarter of its row's size, or at the first larger one that is worth timing, and at four times that."""
    _seconds(build(n))
    while _seconds(build(n)) < _WORTH_TIMING_S * EFFORT.rounds and len(build(4 * n)) < _LARGEST:
        n *= 4
    texts = {"n": build(n), "4n": build(4 * n)}
    work: dict[str, Callable[[], object]] = {k: (lambda t=text: read_text(t)) for k, text in texts.items()}
    found = in_turn(work, rounds=5, at_least=0, clock=time.process_time)
    one, four = found["n"].minimum, found["4n"].minimum
    return f"| `{name}`, n = {n:,} | {shown(one)} | {shown(four)} | {four / one:.1f} | ≤ 5 |"


def _seconds(text: str) -> float:
    return timed(lambda: read_text(text), time.process_time)(1)


def bench_memory() -> str:
    """Peak of what Python allocates while a text is read, by tracemalloc, over the bytes that the text itself takes."""
    lines = [
        "### Memory (peak allocated during reading ÷ size of the text, tracemalloc)",
        "",
        "| text | size | peak | ratio | with the text itself | bar |",
        "|---|---|---|---|---|---|",
    ]
    read_text("<ACTION><t><p>x</p></t></ACTION>")
    for name, build in _texts().items():
        text = build(10)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        document = read_text(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(document.text) == len(text)
        size = text.__sizeof__()
        ratio = (peak - before) / size
        lines.append(
            f"| {name} | {size / 1e6:.1f} MB | {(peak - before) / 1e6:.1f} MB | {ratio:.2f} | {ratio + 1:.2f} | ≤ 4 (2.5) |"
        )
    return "\n".join([*lines, ""])
