"""What comments and tests refer to is in the repository: rulings and seeds (``docs/design``); each test that a finding names is there."""

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
    assert there >= {str(number) for number in range(1, 61)}
    assert {number: file for number, file in referred(RULING).items() if number not in there} == {}


def test_every_seed_that_is_named_is_in_the_page() -> None:
    there = set(re.findall(r"(?m)^\| seed (\d+) \|", (DESIGN / "README.md").read_text("utf-8")))
    assert {number: file for number, file in referred(SEED).items() if number not in there} == {}


def test_every_finding_names_tests_that_are_there() -> None:
    rows = re.findall(r"(?m)^\| ([A-Z]\d+) \| [^|]+ \| ([^|]+) \|$", (DESIGN / "findings.md").read_text("utf-8"))
    counts = {"R": 10, "C": 4, "T": 21, "F": 12, "P": 4}
    assert [name for name, _ in rows] == [f"{kind}{n}" for kind, most in counts.items() for n in range(1, most + 1)]
    gone: list[str] = []
    for name, cell in rows:
        tests = re.findall(r"`([a-z_/0-9]+\.py)::(\w+)`", cell)
        assert tests, name
        for file, test in tests:
            path = ROOT / "tests" / file
            if not path.is_file() or f"def {test}(" not in path.read_text("utf-8"):
                gone.append(f"{name}: {file}::{test}")
    assert gone == []
