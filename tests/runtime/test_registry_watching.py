"""Seeing that the disk is other than it was read (D53, A44, W20)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.watching import FRESH_NS, Seen, differs, look
from tests.sample_tools import make_tool

SETTINGS = Settings(tools=("tools", "later"), workflows=("flows",), profile="agent_profile.json")


def aged(root: Path) -> None:
    """Lets everything be old enough that a change shows."""
    old = time.time_ns() - 100 * FRESH_NS
    for path in (root, *root.rglob("*")):
        os.utime(path, ns=(old, old), follow_symlinks=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path / "tools", "core:a")
    (tmp_path / "tools" / ".gitignore").write_text("ignored\n")
    (tmp_path / "tools" / "n.node.json").write_text("{}")
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "f.json").write_text("{}")
    (tmp_path / "agent_profile.json").write_text("{}")
    aged(tmp_path)
    return tmp_path


def rewrite(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a manifest": lambda root: rewrite(root / "tools/core_a/x.tool.json"),
    "a node": lambda root: rewrite(root / "tools/n.node.json"),
    "a workflow": lambda root: rewrite(root / "flows/f.json"),
    "the profile": lambda root: rewrite(root / "agent_profile.json"),
    "an ignore file": lambda root: rewrite(root / "tools/.gitignore"),
    "a new manifest": lambda root: make_tool(root / "tools", "core:b"),
    "a manifest that is gone": lambda root: (root / "tools/core_a/x.tool.json").unlink(),
    "a script that is gone": lambda root: (root / "tools/core_a/tool.py").unlink(),
    "the profile is gone": lambda root: (root / "agent_profile.json").unlink(),
    "a new tamis.toml": lambda root: (root / "tamis.toml").write_text(""),
    "a tool folder that was missing": lambda root: (root / "later").mkdir(),
    "a workflow folder that is gone": lambda root: (root / "flows").rename(root / "elsewhere"),
    "another file of the same size": lambda root: os.replace(
        make_tool(root / "other", "core:a") / "x.tool.json", root / "tools/core_a/x.tool.json"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(root: Path, change: Callable[[Path], object]) -> None:
    seen = look(root, SETTINGS)
    assert not differs(seen)
    change(root)
    assert differs(seen)
    aged(root)
    again = look(root, SETTINGS)
    assert not differs(again), "what was looked at anew is no change"


def test_what_no_registry_is_made_of_is_not_seen(root: Path) -> None:
    seen = look(root, SETTINGS)
    rewrite(root / "tools/core_a/tool.py")
    (root / "notes.md").write_text("beside the folders")
    assert not differs(seen)


def test_what_changed_a_moment_before_is_looked_at_once_more(root: Path) -> None:
    path = root / "tools/core_a/x.tool.json"
    rewrite(path)
    seen = look(root, SETTINGS)
    assert differs(seen), "within one step of the clock a second change would leave no sign"
    status = path.stat()
    later = Seen(seen.files, seen.folders, status.st_mtime_ns + 2 * FRESH_NS)
    assert not differs(later)


def test_a_link_is_a_link_and_a_name_that_cannot_be_is_nothing(root: Path) -> None:
    (root / "tools" / "l.tool.json").symlink_to("/nowhere")
    (root / "tools" / "loop").symlink_to(root / "tools")
    aged(root)
    settings = Settings(tools=("tools", "a\0b", "x" * 5_000), workflows=("\0",), profile="p\0")
    assert not differs(look(root, settings))
