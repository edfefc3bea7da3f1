"""Many small texts: how many a second one processor reads with the stable function, beside what it stands on."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from bench.measure import EFFORT, in_turn
from tamis.protocols import read
from tamis.protocols.reader import read_text

PROSE = "I looked at the file and at the test that fails. The cause is the missing check for an empty name, so I add it and run the tests again.\n\n"
FORMS: dict[str, Callable[[int], str]] = {
    "prose": lambda n: f"{PROSE}{PROSE}{n}",
    "ACTION": lambda n: (
        f"{PROSE}<ACTION>\n<read_file>\n<path>src/app_{n}.ts</path>\n<line>{n}</line>\n</read_file>\n</ACTION>"
    ),
    "TAM": lambda n: (
        f"{PROSE}<|[REQUEST_TOOL]|>\ncommand:»»»read_file«««\npath:»»»src/app_{n}.ts«««\nline:»»»{n}«««\n<|[END_TOOL]|>"
    ),
    "VCP": lambda n: (
        f"{PROSE}<<<[TOOL_REQUEST]>>>\ntool_name:「始」read_file「末」,\npath:「始」src/app_{n}.ts「末」,\nline:「始」{n}「末」\n<<<[END_TOOL_REQUEST]>>>"
    ),
}
MIX = ("prose", "ACTION", "prose", "TAM", "VCP", "ACTION")


def mixed(count: int) -> list[str]:
    """Messages of an agent as logs have them: a third without a call, the rest in the three protocols."""
    return [FORMS[MIX[n % len(MIX)]](n) for n in range(count)]


def bench_many() -> str:
    """Texts a second of one processor."""
    lines = [
        "### Many texts: `tamis.protocols.read` (texts a second of one processor, bar 17,000)",
        "",
        "| texts | plain data (best / median) | the reading alone (best / median) |",
        "|---|---|---|",
    ]
    count = EFFORT.size(600)
    kinds = {"mixed": mixed(count), **{name: [form(n) for n in range(count)] for name, form in FORMS.items()}}
    for name, texts in kinds.items():

        def all_by(function: Callable[[str], object], texts: list[str] = texts) -> Callable[[], object]:
            return lambda: [function(text) for text in texts]

        found = in_turn({"ours": all_by(read), "alone": all_by(read_text)}, rounds=9, clock=process_time)
        rates = (f"{count / side.minimum:,.0f} / {count / side.median:,.0f}" for side in found.values())
        lines.append(f"| {name}, {sum(map(len, texts)) // count} characters | {' | '.join(rates)} |")
    return "\n".join(lines) + "\n"
