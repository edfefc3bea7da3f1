"""A built tree is made read-only and this process's own (T11)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.environments.build import settle
from tamis.environments.model import DependencyFault


def built(root: Path) -> Path:
    tree = root / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "inner").mkdir()
    program = tree / "inner" / "esbuild"
    program.write_text("program")
    program.chmod(0o755)
    return tree


def test_a_file_with_two_names_in_the_tree_is_kept(tmp_path: Path) -> None:
    """T11: esbuild puts its program in its place by a hard link, when it may build."""
    tree = built(tmp_path)
    os.link(tree / "inner" / "esbuild", tree / "bin" / "esbuild")
    settle(tree)
    for place in ("bin", "inner"):
        info = (tree / place / "esbuild").stat()
        assert (info.st_mode & 0o777, info.st_uid, info.st_nlink) == (0o555, os.geteuid(), 2)


@pytest.mark.parametrize("names_inside", [1, 2])
def test_a_file_with_a_name_outside_of_the_tree_is_refused_and_left_as_it_is(tmp_path: Path, names_inside: int) -> None:
    """T11: by that name it could be changed later."""
    tree = built(tmp_path)
    other = tmp_path / "other"
    os.link(tree / "inner" / "esbuild", other)
    if names_inside == 2:
        os.link(other, tree / "bin" / "esbuild")
    before = other.stat()
    with pytest.raises(DependencyFault, match="has a second name outside of it"):
        settle(tree)
    assert (other.stat().st_mode, other.stat().st_uid) == (before.st_mode, before.st_uid)


def test_special_files_are_removed(tmp_path: Path) -> None:
    tree = built(tmp_path)
    os.mkfifo(tree / "bin" / "pipe")
    settle(tree)
    assert os.listdir(tree / "bin") == []
