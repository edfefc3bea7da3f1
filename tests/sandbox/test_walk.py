"""Paths are walked one part at a time and never through a link (S1, S2)."""

from __future__ import annotations

import gc
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.sandbox.model import PathRefused
from tamis.sandbox.paths.walk import open_absolute, open_beneath, relative_parts, resolve_script


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    real = Path(os.path.realpath(tmp_path)) / "tool"
    (real / "sub").mkdir(parents=True)
    (real / "a.py").write_text("1")
    (real / "sub" / "b.py").write_text("2")
    (real / "%2e%2e").write_text("an ordinary name")
    (real / "..a").write_text("another")
    (real / "link.py").symlink_to("a.py")
    (real / "away").symlink_to("/etc")
    os.mkfifo(real / "fifo")
    return real


@pytest.mark.parametrize("script", ["a.py", "./a.py", "sub/b.py", "%2e%2e", "..a"])
def test_plain_paths_are_opened(folder: Path, script: str) -> None:
    found = resolve_script(str(folder), script)
    assert found.script.stat.st_ino == (folder / script).stat().st_ino
    found.close()


@pytest.mark.parametrize(
    "script",
    [
        *("", ".", "..", "../tool/a.py", "sub/../a.py", "sub//b.py", "sub/./b.py", "a.py/", "/etc/passwd", "//a.py"),
        *("a\0.py", "sub\\b.py", "link.py", "away/passwd", "fifo", "sub", "missing.py", "a.py/x", "x" * 256),
        *("/".join(["d"] * 65), "\udcff\ud800"),
    ],
)
def test_other_paths_are_refused(folder: Path, script: str) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(PathRefused):
        resolve_script(str(folder), script)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_folder_behind_a_link_is_refused(folder: Path) -> None:
    other = folder.parent / "other"
    other.symlink_to(folder)
    with pytest.raises(PathRefused, match="symbolic link"):
        resolve_script(str(other), "a.py")


def test_relative_folder_is_refused() -> None:
    with pytest.raises(PathRefused):
        resolve_script("tool", "a.py")


def test_socket_is_neither_file_nor_folder(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        with open_absolute(str(folder)) as opened, pytest.raises(PathRefused):
            open_beneath(opened, "s")


def test_refusal_says_what_stands_there(folder: Path) -> None:
    """Trust, counting and telling: "is a FIFO" where a FIFO stands."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        for name, kind in (("fifo", "FIFO"), ("s", "socket")):
            with pytest.raises(PathRefused, match=f"{name} is a {kind}, neither"):
                resolve_script(str(folder), name)
    with pytest.raises(PathRefused, match="/dev/null is a device, neither"):
        open_absolute("/dev/null")


def test_what_was_opened_stays_what_it_was_when_the_name_is_swapped(folder: Path) -> None:
    found = resolve_script(str(folder), "a.py")
    inode = (folder / "a.py").stat().st_ino
    (folder / "a.py").unlink()
    (folder / "a.py").symlink_to("/etc/passwd")
    assert os.fstat(found.script.fd).st_ino == inode
    found.close()


@given(st.text())
def test_any_text_is_split_downwards_or_refused(path: str) -> None:
    try:
        parts = relative_parts(path)
    except PathRefused:
        return
    assert parts
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part or "\\" in part for part in parts)
