"""Runs of more than three ``»`` or ``«``: what of them is the delimiter, and what is the value (ruling 56).

Only the whole block can tell, so this is settled when all its pairs are known.
"""

from __future__ import annotations

from tamis.protocols.model import Edit
from tamis.protocols.pairs.walk import Dialect, Lexed, Pair, fix
from tamis.protocols.tam.keys import parse_key, visible


def settle_runs(text: str, lexed: Lexed, dialect: Dialect) -> None:
    """Gives each value what a run of more than three ``»`` or ``«`` has of it (ruling 56).

    The outer three are the delimiter, the rest is the value. In a ``command``, and where every field of the block is written with the
    same longer run, the whole run is the delimiter (TM212).
    """
    if not any(_longer(text, pair) for pair in lexed.pairs):
        return
    runs = [_runs(text, pair) for pair in lexed.pairs]
    if all(head <= 3 and tail <= 3 for head, tail in runs):
        return
    plain = dialect.families["plain"]
    same = len(set(runs)) == 1 and runs[0][0] == runs[0][1]
    for index, (pair, (head, tail)) in enumerate(zip(lexed.pairs, runs, strict=True)):
        start, end = pair.value
        if not same and parse_key(visible(pair.raw)).base != dialect.first_key:
            pair.value = (start - max(head - 3, 0), end + max(tail - 3, 0))
            continue
        marks = [
            (text[a:b], (a, b), canonical)
            for a, b, canonical in ((start - head, start, plain.head), (end, end + tail, plain.tail))
            if b - a > 3
        ]
        if marks:
            lexed.findings.add(
                "TM212",
                marks[0][1],
                index,
                args={
                    "raw": " … ".join(raw for raw, _, _ in marks),
                    "canonical": " … ".join(mark[2] for mark in marks),
                },
                fix=fix("Write »»» and «««", *(Edit(*span, canonical) for _, span, canonical in marks)),
                repair=True,
            )


def _longer(text: str, pair: Pair) -> bool:
    """Whether what delimits a value may be a longer run than three; cheap."""
    start, end = pair.value
    return pair.end - end > 3 or text[start - 4 : start - 3] == "»"


def _runs(text: str, pair: Pair) -> tuple[int, int]:
    """How long the runs of ``»`` and ``«`` are that delimit a value; 0 where it is delimited otherwise."""
    if pair.family != "plain":
        return 0, 0
    start, end = pair.value
    head = start
    while head > pair.key[1] and text[head - 1] == "»":
        head -= 1
    tail = text[end : pair.end]
    return start - head, len(tail) if tail and not tail.strip("«") else 0
