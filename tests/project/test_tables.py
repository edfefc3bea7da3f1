"""A fact stands in one table (line 3 of the house): who writes it down a second time is told where it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("protocols", "sandbox", "environments", "server", "client")
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"


MODULES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}


def literals(text: str) -> Iterator[set[str]]:
    """The texts of each collection that is written down."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            yield {item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def test_the_keywords_that_hold_schemas_by_name_are_listed_once() -> None:
    found = {
        name
        for name, text in MODULES.items()
        if "patternProperties" in text
        for texts in literals(text)
        if {"properties", "patternProperties"} <= texts and texts & {"$defs", "definitions"}
    }
    assert found == {"protocols/schema/words.py"}


def test_names_in_json_pointers_are_read_and_written_in_one_place() -> None:
    # what a name of OpenAPI becomes is no reading of a pointer
    found = {name for name, text in MODULES.items() if '"~1"' in text}
    assert found == {"protocols/model.py", "protocols/manifest/openapi_parts.py"}


def test_characters_that_nobody_sees_are_listed_once() -> None:
    found: set[str] = set()
    for name, text in MODULES.items():
        if "\\u200b" in text or "\\u2060" in text or any(char in text for char in INVISIBLE):
            found.add(name)
    assert found == {"protocols/invisible.py"}


def test_the_states_of_a_call_are_listed_once() -> None:
    found = [
        name
        for name, text in MODULES.items()
        if "awaitingApproval" in text
        for texts in literals(text)
        if {"pending", "awaitingApproval"} <= texts
    ]
    # the client's is generated from it
    assert found == ["protocols/contract/results.py", "client/results.py"]
