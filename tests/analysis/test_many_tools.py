"""Checking one manifest among many looks at the others once for all manifests, not once for each (R5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.lints import names
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.cli import check_command
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.tools.registry import Registry
from tests.cli.in_process import Tamis
from tests.sample_tools import make_tool


class Counted(list[Any]):
    """A list that counts how often it is walked through."""

    walks = 0

    def __iter__(self) -> Any:
        Counted.walks += 1
        return super().__iter__()


def _many(root: Path, count: int) -> None:
    for number in range(count):
        make_tool(root, f"ns:tool_{number}", aliases=[f"alias_{number}"])


def _counted(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(Counted, "walks", 0)
    for name in ("tools", "conflicts"):
        monkeypatch.setattr(registry, name, Counted(getattr(registry, name)))
    return registry


def test_the_tools_are_walked_through_once_for_all_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _many(tmp_path, 12)
    registry = _counted(Runtime(tmp_path).registry, monkeypatch)
    walks: list[int] = []
    for path in sorted(tmp_path.glob("*/x.tool.json")):
        text = path.read_text("utf-8")
        diagnose(Snapshot(str(path), "manifest", text, registry))
        walks.append(Counted.walks)
    assert walks[0] == walks[-1] > 0, walks


def test_what_a_name_clashes_with_is_found_as_before(tmp_path: Path) -> None:
    make_tool(tmp_path / "a", "ns:one", aliases=["same"])
    make_tool(tmp_path / "b", "ns:two", aliases=["same"])
    make_tool(tmp_path / "c", "ns:one", aliases=["other"])
    registry = Runtime(tmp_path).registry
    codes: dict[str, set[str]] = {}
    for path in sorted(tmp_path.glob("*/*/x.tool.json")):
        found = diagnose(Snapshot(str(path), "manifest", path.read_text("utf-8"), registry))
        codes[path.parts[-3]] = {one.code for one in found} & {"LN740", "MF541"}
    assert codes == {"a": {"LN740", "MF541"}, "b": {"LN740"}, "c": {"MF541"}}


@pytest.mark.parametrize(
    ("code", "second", "named"),
    [
        ("LN740", {"tool_id": "ns:two"}, '"same"'),
        ("LN741", {"tool_id": "ns:ONE"}, '"ns:ONE"'),
        ("MF541", {}, '"ns:one"'),
    ],
)
def test_a_taken_name_is_shown_at_its_place_in_a_file_that_is_not_open(
    tmp_path: Path, code: str, second: dict[str, str], named: str
) -> None:
    """R6: it pointed to the first line."""
    make_tool(tmp_path / "a", "ns:one", aliases=["same"])
    make_tool(tmp_path / "b", second.get("tool_id", "ns:one"), aliases=["same"])
    one, two = sorted(tmp_path.glob("*/*/x.tool.json"))
    index = WorkspaceIndex()
    other = two.read_text("utf-8")
    index.update(str(two), other)
    snapshot = Snapshot(str(one), "manifest", one.read_text("utf-8"), Runtime(tmp_path).registry, index=index)
    (related,) = next(finding.related for finding in diagnose(snapshot) if finding.code == code)
    assert (related.path, other[slice(*related.span)]) == (str(two), named)


def test_taken_names_are_those_of_other_files(tmp_path: Path) -> None:
    _many(tmp_path, 3)
    registry = Runtime(tmp_path).registry
    path = str(tmp_path / "ns_tool_1" / "x.tool.json")
    taken = names.taken_names(Snapshot(path, "manifest", "{}", registry))
    asked = ("ns:tool_0", "alias_2", "ns:tool_1", "alias_1", "nobody")
    assert [name in taken for name in asked] == [True, True, False, False, False]
    assert "ns:tool_0" not in names.taken_names(Snapshot(path, "manifest", "{}", None))


def test_the_workflows_of_a_root_are_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _many(tmp_path, 5)
    (tmp_path / "tamis.toml").write_text('workflows = ["flows"]\n', "utf-8")
    asked: list[Path] = []
    real: Callable[[Runtime], dict[str, str]] = check_command._workflows  # pyright: ignore[reportPrivateUsage]

    def counted(runtime: Runtime) -> dict[str, str]:
        asked.append(runtime.root)
        return real(runtime)

    monkeypatch.setattr(check_command, "_workflows", counted)
    (tmp_path / "flows").mkdir()
    assert Tamis(tmp_path, monkeypatch, capsys)("check", "--root", tmp_path).code == 0
    assert asked == [tmp_path]
