"""The editor's settings ``roots``, ``exclude`` and ``showNotifications`` (editors 1.3 row 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import Editor
from tests.sample_tools import action, make_tool


def unknown(editor: Editor, uri: str) -> set[str]:
    """The tools that a text calls and nobody knows."""
    found = editor.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
    return {item["message"].split("'")[1] for item in found if item["code"] == "VA401"}


def started(root: Path, **settings: Any) -> Editor:
    editor = Editor(cwd=root, inside=True)
    editor.start(root, {"textDocument": {"diagnostic": {}}}, {"settings": settings})
    return editor


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path / "one", "t:one")
    make_tool(tmp_path / "two", "t:two")
    (tmp_path / "a.md").write_text(action("t:one") + "\n\n---\n\n" + action("t:two") + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ([], set()),
        (["two/"], {"t:two"}),
        (["/one/**", "**/t_two/*.json"], {"t:one", "t:two"}),
        (["two/", "!two/"], set()),
    ],
)
def test_what_is_excluded_is_no_tool(root: Path, patterns: list[str], left: set[str]) -> None:
    make_tool(root / "three", "t:three")
    with started(root, exclude=patterns) as editor:
        uri = (root / "a.md").as_uri()
        editor.open(uri, (root / "a.md").read_text())
        assert unknown(editor, uri) == left


def test_exclusion_can_be_changed_while_the_server_runs(root: Path) -> None:
    with started(root) as editor:
        uri = (root / "a.md").as_uri()
        editor.open(uri, (root / "a.md").read_text())
        assert unknown(editor, uri) == set()
        editor.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"exclude": ["one/"]}}})
        editor.quiescent()
        assert unknown(editor, uri) == {"t:one"}


def test_roots_are_served_instead_of_the_workspace(root: Path) -> None:
    with started(root, roots=["one"]) as editor:
        inside, outside = (root / "one" / "a.md").as_uri(), (root / "a.md").as_uri()
        for uri in (inside, outside):
            editor.open(uri, (root / "a.md").read_text())
        assert unknown(editor, inside) == {"t:two"}


@pytest.mark.parametrize("odd", [None, 1, "one", [1], [""], ["\0"], ["["], ["../.."]])
def test_odd_values_do_no_harm(tmp_path: Path, odd: Any) -> None:
    # "../.." is a folder of this test, and not of all tests
    root = tmp_path / "of" / "mine"
    make_tool(root / "one", "t:one")
    with started(root, roots=[] if odd is None else odd, exclude=odd) as editor:
        assert editor.stop() == 0


@pytest.mark.parametrize(
    ("setting", "level", "shown"),
    [
        ("off", "warning", False),
        ("onWarning", "warning", True),
        ("onError", "warning", False),
        (None, "info", True),
        ("onWarning", "info", False),
    ],
)
def test_which_messages_are_shown(setting: str | None, level: Any, shown: bool) -> None:
    from tamis.server.lsp.client_settings import ClientSettings

    assert ClientSettings(values={} if setting is None else {"showNotifications": setting}).shows(level) is shown
