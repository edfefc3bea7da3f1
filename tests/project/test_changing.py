"""What `docs/changing.md` says has to be touched for a change is what an existing one of its kind touches."""

from __future__ import annotations

import contextlib
import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "changing.md").read_text("utf-8")
NOT_COUNTED = ("tests/", "docs/design/", "bench/results.md", "CHANGELOG.md", "docs/changing.md")
"""What shows a change or tells of it, and is named by its folder."""
CHANGES = {
    title: text
    for title, text in (part.split("\n", 1) for part in re.split(r"(?m)^## ", PAGE)[1:])
    if "**Seen in:**" in text
}


def files(text: str, *fields: str) -> set[str]:
    """The files that these fields of a change name."""
    named: set[str] = set()
    for field in fields:
        found = re.search(rf"(?ms)^- \*\*{field}:\*\*(.*?)(?=^- \*\*|^$|\Z)", text)
        named |= set(re.findall(r"`([\w./-]+\.\w+|[\w.-]+\.lock)`", found[1])) if found else set()
    return named


def holding(pattern: str) -> set[str]:
    """The files of the project, but for tests, that hold what a pattern finds."""
    return {name for name, text in texts() if re.search(pattern, text)}


@functools.cache
def texts() -> list[tuple[str, str]]:
    """The files of the project without its tests, with their texts."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("the files of the project are known by git, and this is no clone")
    found: list[tuple[str, str]] = []
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file() and not name.startswith(NOT_COUNTED):
            with contextlib.suppress(UnicodeDecodeError):
                found.append((name, path.read_text("utf-8")))
    return found


def test_the_usual_changes_are_there() -> None:
    assert len(CHANGES) == 16


@pytest.mark.parametrize("title", CHANGES)
def test_a_change_names_the_files_that_an_existing_one_touches(title: str) -> None:
    text = CHANGES[title]
    seen = re.search(r"\*\*Seen in:\*\* `([^`]+)`(?: without `([^`]+)`)?", text)
    assert seen, title
    programs = {name for name in files(text, "Generate") if name.startswith("tools/")}
    named = files(text, "Touch", "Where it acts", "Generate") - programs
    actual = holding(seen[1]) - {seen[2]}
    assert sorted(actual - named) == [], f"touched by an existing one, and not listed under '{title}'"
    assert sorted(named - actual) == [], f"listed under '{title}', and not touched by the existing one"


@pytest.mark.parametrize("title", CHANGES)
def test_what_a_change_generates_shows_and_runs_is_there(title: str) -> None:
    text = CHANGES[title]
    for field in ("Show", "Run"):
        line = re.search(rf"(?m)^- \*\*{field}:\*\*(.*)$", text)
        assert line, field
        for path in re.findall(r"\btests/[\w./]+\w", line[1]):
            assert (ROOT / path).exists(), f"{title}: {path}"
    for path in files(text, "Generate"):
        assert (ROOT / path).is_file(), f"{title}: {path}"
