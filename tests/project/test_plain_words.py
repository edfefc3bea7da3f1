"""What users read names no document that they do not have: the seeds, rulings and checklists that rules are from (V06)."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tamis.server.rpc.described import files
from tamis.server.rpc.described.methods import plain

ROOT = Path(__file__).resolve().parents[2]
SOURCE = re.compile(r"\bseeds? \d|\brulings? \d|§|\b[ADFVW]\d{1,3}\b")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "editors/*/*.md", "schemas/*")
    for path in ROOT.glob(pattern)
    if path.name != "ARCHITECTURE.md" and "design" not in path.parts and "node_modules" not in path.parts
)


@functools.cache
def texts() -> dict[str, str]:
    return files.texts()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_for_users_names_no_source_of_the_developers(page: str) -> None:
    found = [line for line in (ROOT / page).read_text("utf-8").splitlines() if SOURCE.search(line)]
    assert found == []


@pytest.mark.parametrize("name", files.NAMES)
def test_a_generated_description_names_no_source_of_the_developers(name: str) -> None:
    text = texts()[name].replace("# ruff: noqa: A002\n", "")
    assert [line for line in text.splitlines() if SOURCE.search(line)] == []


def descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in cast("dict[str, Any]", value).items():
            if key in ("description", "summary") and isinstance(below, str):
                yield below
            elif key != "examples":
                yield from descriptions(below)
    elif isinstance(value, list):
        for below in cast("list[Any]", value):
            yield from descriptions(below)


def test_no_sentence_is_broken_by_what_was_left_out() -> None:
    found = [
        *descriptions(json.loads(texts()["schemas/openrpc.json"])),
        *descriptions(json.loads(texts()["schemas/contract.json"])),
    ]
    assert len(found) > 1_000
    for text in found:
        assert not re.search(r" [.;:,](?:\s|$)|\(\s*\)|\(,|, ?\)|  ", text), text
        assert text == text.strip()
        assert not text[0].islower(), text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("What is told (seed 001 §6.1).", "What is told."),
        ("Where it failed (seed 004 §4, W21); from zero.", "Where it failed; from zero."),
        ("An event (``PublishEventTool``, seed 000 §4.2).", "An event (`PublishEventTool`)."),
        ("Once each (ruling 26), the tags (W16 to W22, A26, A45 to A48) too.", "Once each, the tags too."),
        ("Two of them (rulings 20 and 23, D86)", "Two of them"),
        ("By name (interface, Errors) and (interface).", "By name and."),
        ("(ruling 1) First.", "First."),
        ("A ``Call``\n    (of two\n    lines)", "A `Call` (of two lines)"),
        ("Counts (from 1, at most 64) and W3C (A4 paper, V8).", "Counts (from 1, at most 64) and W3C (A4 paper)."),
        (
            "The interface (an interface of a workflow) (see tasks)",
            "The interface (an interface of a workflow) (see tasks)",
        ),
    ],
)
def test_notes_of_where_a_rule_is_from_are_left_out(text: str, shown: str) -> None:
    assert plain(text) == shown
