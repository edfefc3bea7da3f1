"""Two workflow files of one name in different folders (T7, W24)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.workflow_world import World, flow


def saying(text: str, **more: Any) -> dict[str, Any]:
    return flow([{"id": "c", "type": "constant", "config": {"value": text}}], [], {"y": "c.value"}, **more)


def world(root: Path, a: dict[str, Any], b: dict[str, Any], flows: dict[str, Any] | None = None, **more: Any) -> World:
    for name, content in (("a", a), ("b", b)):
        folder = root / "flows" / name
        folder.mkdir(parents=True)
        (folder / "greet.json").write_text(json.dumps(content), "utf-8")
    return World(root, flows or {}, **more)


@pytest.mark.parametrize(("policy", "by_name"), [("keepFirst", "in a"), ("replace", "in b"), ("error", None)])
def test_both_are_reached_by_their_paths_whoever_has_the_name(tmp_path: Path, policy: str, by_name: str | None) -> None:
    """T7, W24."""
    for number, (name, expected) in enumerate(
        [
            ("flows/a/greet.json", "in a"),
            ("flows/b/greet.json", "in b"),
            ("workflow:flows/a/greet.json", "in a"),
            ("workflow:flows/b/greet.json", "in b"),
            ("workflow:greet", by_name),
            ("greet", by_name),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = world(folder, saying("in a"), saying("in b"), onConflict=policy)
        result = made.run(name)
        assert (result.output if result.status == "success" else None) == expected, name


def test_the_conflict_is_told_and_lists_show_each_once(tmp_path: Path) -> None:
    """T7."""
    registry = world(tmp_path, saying("in a"), saying("in b")).runtime.registry
    listed = [tool.tool_id for tool in registry.tools if tool.origin == "workflow"]
    assert listed == ["workflow:flows/b/greet.json", "workflow:greet"]
    (conflict,) = registry.conflicts
    assert conflict.message.endswith("flows/a/greet.json is used; each is called by its path")


def test_two_versions_of_one_workflow_stay_versions_and_have_their_paths(tmp_path: Path) -> None:
    """T7, ruling 35."""
    for number, (name, expected) in enumerate(
        [
            ("workflow:greet", "new"),
            ("workflow:greet@1.0.0", "old"),
            ("flows/a/greet.json", "old"),
            ("flows/b/greet.json", "new"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = world(folder, saying("old", version="1.0.0"), saying("new", version="2.0.0"))
        assert made.run(name).output == expected, name
        assert made.runtime.registry.conflicts == []
        assert [tool.tool_id for tool in made.runtime.registry.tools if tool.origin == "workflow"] == [
            "workflow:greet"
        ] * 2


def test_a_node_may_name_the_other_by_its_path(tmp_path: Path) -> None:
    """T7."""
    outer = flow([{"id": "n", "type": "flows/b/greet.json"}], [], {"z": "n.output"})
    made = world(tmp_path, saying("in a"), saying("in b"), {"outer": outer})
    assert made.run("workflow:outer").output == "in b"


def test_one_that_calls_its_namesake_does_not_call_itself(tmp_path: Path) -> None:
    """T7."""
    outer = flow([{"id": "n", "type": "workflow:flows/b/greet.json"}], [], {"z": "n.output"})
    assert world(tmp_path, outer, saying("in b")).run("workflow:greet").output == "in b"
    (tmp_path / "x").mkdir()
    itself = flow([{"id": "n", "type": "workflow:flows/a/greet.json"}], [], {"z": "n.output"})
    result = world(tmp_path / "x", itself, saying("in b")).run("workflow:greet")
    assert result.status == "error"
