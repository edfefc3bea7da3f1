"""The measures of ``tools/house.py``, and what they must not exceed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def graph(house: ModuleType) -> dict[str, set[str]]:
    """Which module of the product imports which; reading all of them takes seconds."""
    return house.imports(house.modules())


@pytest.mark.slow
def test_no_function_is_above_the_bound_of_complexity(house: ModuleType) -> None:
    assert house.complex_functions() == []


def test_circles_are_groups_that_lead_back_to_themselves(house: ModuleType) -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set[str](), "x": {"y"}, "y": {"x"}}
    assert house.circles(graph) == [["a", "b", "c"], ["x", "y"]]


def test_imports_inside_functions_count_and_those_for_types_do_not(house: ModuleType, tmp_path: Path) -> None:
    body = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tamis.a\ndef f():\n    from tamis import b\n    import tamis.c\n"
    file = tmp_path / "m.py"
    file.write_text(body, "utf-8")
    known = {"tamis.m": file} | {f"tamis.{name}": tmp_path / "none.py" for name in "abc"}
    (tmp_path / "none.py").touch()
    assert house.imports(known)["tamis.m"] == {"tamis.b", "tamis.c"}


def test_no_modules_import_one_another_in_a_circle(house: ModuleType, graph: dict[str, set[str]]) -> None:
    # Line 2 of the house: those inside functions counted, in every room.
    assert house.circles(graph) == []


def test_marker_files_repeat_next_to_nothing(house: ModuleType) -> None:
    repeated, lines = house.repeated_marker_lines()
    assert repeated < lines / 100


@pytest.mark.slow
def test_the_measures_are_printed_with_their_aims(
    house: ModuleType,
    graph: dict[str, set[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(house, "imports", lambda _: graph)
    house.main([])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("   aim ")[-1] for line in lines] == ["450", "220", *"00000"]


LONELY = {
    "tamis.protocols.contract.approvals": "a module of the contract is loaded when one of its names is asked for",
}
"""Small modules with one importer that keep a file of their own, and why. None joins the list without a reason."""


MOST_MODULES = 560
"""There may be no more; when modules are joined, the number goes down with them. The aim is 450."""


def test_modules_do_not_become_more_than_they_were(house: ModuleType) -> None:
    assert len(house.modules()) <= MOST_MODULES


def test_a_small_module_serves_more_than_one_or_says_why(house: ModuleType, graph: dict[str, set[str]]) -> None:
    alone = {line.partition(" ")[0] for line in house.lonely(house.modules(), graph)}
    assert alone <= LONELY.keys(), alone - LONELY.keys()


def test_a_module_is_lonely_only_for_one_importer_at_its_top(house: ModuleType, tmp_path: Path) -> None:
    texts = {
        "tamis.r.user": "from tamis.r.small import x\nfrom tamis.r.both import y\ndef f():\n    from tamis.r.late import z\n",
        "tamis.r.other": "from tamis.r.both import y\n",
        **dict.fromkeys(("tamis.r.small", "tamis.r.both", "tamis.r.late"), "x = y = z = 1\n"),
    }
    known: dict[str, Path] = {}
    for name, text in texts.items():
        known[name] = tmp_path / f"{name}.py"
        known[name].write_text(text, "utf-8")
    assert house.lonely(known, house.imports(known)) == ["tamis.r.small -> user"]
