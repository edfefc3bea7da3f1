"""The table of what the clients have (docs/editors/clients.md): every row names tests and pictures that are there (editors 1.3, 1.4)."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import msgspec
import pytest

TESTS = Path(__file__).resolve().parent
DOCS = TESTS.parents[1] / "docs" / "editors"
ROWS = {"VS Code": 31, "Neovim": 20}


class Row(msgspec.Struct, frozen=True):
    number: int
    what: str
    shown_by: str
    picture: str
    missing: str

    def tests(self) -> list[tuple[str, str]]:
        """Files with the name of a test in them; a name alone stands in the file named before it. An empty name: the file."""
        found: list[tuple[str, str]] = []
        file = ""
        for path, name in re.findall(r"`([\w./-]+\.(?:py|ts|json|toml))?(?:::)?(test_\w+)?`", self.shown_by):
            file = path or file
            if path or name:
                found.append((file, name))
        return found


def rows(editor: str) -> list[Row]:
    page = (DOCS / "clients.md").read_text("utf-8")
    table = page.split(f"\n## {editor}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line[:3] != "| #"
    ]
    return [Row(int(row[0]), *row[1:]) for row in cells if row[0].isdigit()]


@functools.cache
def functions(path: Path) -> dict[str, set[str]]:
    """The functions of a file with the names of their parameters."""
    tree = ast.parse(path.read_text("utf-8"))
    return {
        node.name: {one.arg for one in node.args.args} for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("editor", ROWS)
def test_every_row_of_the_list_stands_in_the_table_once(editor: str) -> None:
    assert [row.number for row in rows(editor)] == list(range(1, ROWS[editor] + 1))


@pytest.mark.parametrize("editor", ROWS)
def test_every_test_that_a_row_names_exists(editor: str) -> None:
    for row in rows(editor):
        assert row.tests(), row.what
        for file, name in row.tests():
            places = [
                TESTS / file,
                TESTS.parents[1] / file,
                DOCS.parents[1] / "editors" / editor.lower().replace(" ", "") / file,
            ]
            path = next((one for one in places if one.exists()), None)
            assert path is not None, (row.number, file)
            assert not name or name in functions(path), (row.number, file, name)


@pytest.mark.parametrize("editor", ROWS)
def test_every_picture_that_a_row_names_exists_and_every_picture_is_named(editor: str) -> None:
    named = [name for row in rows(editor) for name in re.findall(r"\(([\w/.-]+\.(?:png|jpg))\)", row.picture)]
    assert [name for name in named if not (DOCS / name).is_file()] == []


def test_every_picture_stands_in_a_row_and_is_small() -> None:
    named = "".join(row.picture for editor in ROWS for row in rows(editor))
    for picture in (DOCS / "pictures").iterdir():
        assert f"(pictures/{picture.name})" in named
        assert picture.stat().st_size < 60_000, picture.name


def test_a_row_of_vs_code_is_shown_in_the_real_editor_or_says_that_it_is_not() -> None:
    known = functions(TESTS / "test_vscode.py")
    for row in rows("VS Code"):
        driven = [name for file, name in row.tests() if file == "test_vscode.py" and "seen" in known.get(name, set())]
        assert driven or row.missing, row.what
