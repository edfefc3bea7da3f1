"""The table of kinds: every kind has a row, every row leads to functions, and nobody asks for "other" instead."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from tamis.server.analysis.kinds import (
    KINDS,
    MAX_ANALYSED_CHARS,
    Answers,
    DocumentKind,
    Verb,
    answer,
    function_of,
    kind_of,
    serves,
)
from tamis.server.analysis.snapshot import Snapshot

ROOT = Path(__file__).parents[2]
NAMED = [(kind, verb) for kind in get_args(DocumentKind) for verb in get_args(Verb) if getattr(KINDS[kind], verb)]
NAMES = {
    "/w/a.tool.json": "manifest",
    "/w/agent_profile.json": "profile",
    "/w/plugin-manifest.json": "plugin",
    "/w/flow.json": "workflow",
    "/w/a.node.json": "nodes",
    "/w/tamis.toml": "settings",
    "/w/a.md": "text",
    "/w/a.yaml": "other",
}
TESTS_OF_KIND = 51
"""Comparisons with a kind outside the table; this number only falls."""


def test_every_kind_has_a_row_and_every_verb_a_column() -> None:
    assert set(KINDS) == set(get_args(DocumentKind)) == set(NAMES.values())
    assert set(get_args(Verb)) == {field.name for field in msgspec.structs.fields(Answers)} - {
        "uses_tools",
        "holds_calls",
        "names_workflows",
    }


@pytest.mark.parametrize("path", NAMES)
def test_a_kind_is_told_by_the_name(path: str) -> None:
    assert kind_of(path, "") == NAMES[path]


@pytest.mark.parametrize(("kind", "verb"), NAMED)
def test_what_the_table_names_is_a_function_of_that_module(kind: DocumentKind, verb: Verb) -> None:
    named = function_of(kind, verb)
    assert inspect.isfunction(named)
    assert f"{named.__module__}:{named.__name__}".endswith(getattr(KINDS[kind], verb))


@pytest.mark.parametrize("verb", get_args(Verb))
def test_the_functions_of_a_verb_take_the_same_arguments(verb: Verb) -> None:
    functions = [found for kind in KINDS if (found := function_of(kind, verb)) is not None]
    takes = {
        len(inspect.signature(one).parameters) for one in functions if "_" not in inspect.signature(one).parameters
    }
    assert len(takes) <= 1, [(one.__module__, one.__name__) for one in functions]


def test_nothing_is_answered_about_what_is_not_ours() -> None:
    assert not any(serves("other", verb) for verb in get_args(Verb))


def test_a_document_that_is_too_long_is_answered_nothing() -> None:
    snapshot = Snapshot("/w/a.md", "text", "", None)
    assert answer(snapshot, "hover") is not None
    assert answer(snapshot.with_text(" " * (MAX_ANALYSED_CHARS + 1)), "hover") is None


def comparisons_of_kind(path: Path) -> list[str]:
    kinds = {*get_args(DocumentKind)}
    asked = {"snapshot.kind", "document.kind", "self.snapshot.kind", "facts.kind", "kind", "self.kind", "one.kind"}
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Compare) and ast.unparse(node.left) in asked:
            words = {
                one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
            if words and words <= kinds:
                found.append(ast.unparse(node))
    return found


def test_verbs_ask_the_table_and_not_the_kind() -> None:
    rooms = ("server/analysis", "server/lsp")
    found = [test for room in rooms for path in (ROOT / room).rglob("*.py") for test in comparisons_of_kind(path)]
    assert len(found) <= TESTS_OF_KIND, found
    assert not [test for test in found if "'other'" in test]
