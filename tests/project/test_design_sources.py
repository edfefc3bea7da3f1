"""What comments and tests refer to is in the repository: rulings and seeds (``docs/design``)."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DESIGN = ROOT / "docs" / "design"
ROOMS = ("protocols", "sandbox", "environments", "server", "client", "tests", "bench", "tools", "examples")
RULING = re.compile(r"\brulings? (\d+(?:(?:, | and | to |, and )\d+)*)", re.IGNORECASE)
SEED = re.compile(r"\bseeds? (00\d(?:(?:, | and )00\d)*)", re.IGNORECASE)


def referred(pattern: re.Pattern[str]) -> dict[str, str]:
    """Each number that code or tests name, with a file that does."""
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "node_modules" not in path.parts]
    return {
        number: path.relative_to(ROOT).as_posix()
        for path in files
        for match in pattern.finditer(path.read_text("utf-8"))
        for number in re.findall(r"\d+", match[1])
    }


def test_every_ruling_that_is_named_is_in_the_page() -> None:
    there = set(re.findall(r"(?m)^(\d+)\. ", (DESIGN / "rulings.md").read_text("utf-8")))
    assert there == {str(number) for number in range(1, 61)}
    assert {number: file for number, file in referred(RULING).items() if number not in there} == {}


def test_every_seed_that_is_named_is_in_the_page() -> None:
    there = set(re.findall(r"(?m)^\| seed (\d+) \|", (DESIGN / "README.md").read_text("utf-8")))
    assert {number: file for number, file in referred(SEED).items() if number not in there} == {}
