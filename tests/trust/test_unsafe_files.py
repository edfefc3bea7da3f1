"""Configuration files that others may have written, or that are no files, are never in force (issue 13, bad input)."""

from __future__ import annotations

import itertools
import os
import stat
import threading
from pathlib import Path

import pytest

from tamis.server.runtime.settings import files
from tamis.server.runtime.settings.files import Unsafe, find_root, is_there, read_own
from tamis.server.runtime.settings.loading import load_settings
from tests.trust.conftest import World

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
OTHER = 4242


def is_closed(world: World, words: str) -> None:
    """The folder's file is not in force, says why, and its tools may still be listed."""
    loaded = load_settings(world.root, trusted=True)
    assert loaded.settings.sandbox.interpreters.python == ""
    assert words in loaded.closed
    assert len(loaded.problems) == 1
    assert loaded.settings.tools == (".",)


EVIL = '[sandbox.interpreters]\npython = "/tmp/evil.sh"\n'


@as_root
def test_another_user_s_file_is_never_in_force_even_when_trusted(world: World) -> None:  # trust 1
    world.folder(EVIL)
    os.chown(world.root / "tamis.toml", OTHER, OTHER)
    is_closed(
        world, "belongs to another user (4242) and is not in force; no tool is run until it is mended: `chown root` it"
    )


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o777])
def test_a_file_that_others_may_write_is_never_in_force(world: World, mode: int) -> None:
    world.folder(EVIL)
    os.chmod(world.root / "tamis.toml", mode)
    is_closed(world, "may be written by others")


@as_root
def test_a_file_that_a_group_may_write_is_never_in_force(world: World) -> None:
    world.folder(EVIL)
    os.chmod(world.root / "tamis.toml", 0o664)
    is_closed(world, "may be written by others")


@as_root
def test_a_group_that_is_the_owner_s_alone_is_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    user = pwd.struct_passwd(("ann", "x", 1234, 1234, "", "/home/ann", "/bin/sh"))
    groups = {1234: ("ann", "x", 1234, [])}
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: user)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group(groups[gid]))
    assert files._is_private(1234, 1234)  # pyright: ignore[reportPrivateUsage]
    groups[1234] = ("ann", "x", 1234, ["bob"])
    assert not files._is_private(1234, 1234)  # pyright: ignore[reportPrivateUsage]
    assert not files._is_private(0, 0)  # pyright: ignore[reportPrivateUsage]


def test_a_folder_that_everybody_may_write_makes_its_file_unsafe(world: World) -> None:
    world.folder(EVIL)
    os.chmod(world.root, 0o777)
    is_closed(world, "stands in a folder that everybody may write")
    os.chmod(world.root, 0o1777)
    assert load_settings(world.root, trusted=True).closed == ""


def test_a_link_that_leads_outside_is_never_in_force(world: World, tmp_path: Path) -> None:
    world.write(tmp_path / "outside.toml", EVIL)
    (world.root / "tamis.toml").symlink_to(tmp_path / "outside.toml")
    is_closed(world, "is a link that leads outside its folder")


def test_a_link_that_stays_inside_is_read(world: World) -> None:
    world.write(world.root / "conf" / "own.toml", "[sandbox]\nwallMs = 7\n")
    (world.root / "tamis.toml").symlink_to("conf/own.toml")
    assert load_settings(world.root).settings.sandbox.wall_ms == 7


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "dangling"])
def test_what_is_no_file_closes_and_is_not_waited_for(world: World, kind: str) -> None:
    path = world.root / "tamis.toml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("only root can make a device")
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    else:
        path.symlink_to("nowhere")
    loaded = load_settings(world.root, trusted=True)
    assert loaded.closed
    assert loaded.settings.tools == ()


@as_root
@pytest.mark.parametrize("which", ["machine", "user"])
def test_the_operators_files_are_held_to_the_same(world: World, which: str) -> None:
    path = world.write(world.machine if which == "machine" else world.user, "[sandbox]\nwallMs = 7\n")
    os.chown(path, OTHER, OTHER)
    loaded = load_settings(world.root)
    assert loaded.settings.sandbox.wall_ms == 30_000
    assert f"{path} belongs to another user" in loaded.closed


def test_the_users_file_may_be_a_link(world: World, tmp_path: Path) -> None:
    world.write(tmp_path / "dotfiles" / "tamis.toml", "[sandbox]\nwallMs = 7\n")
    world.user.parent.mkdir()
    world.user.symlink_to(tmp_path / "dotfiles" / "tamis.toml")
    assert load_settings(world.root).settings.sandbox.wall_ms == 7


@pytest.mark.slow
def test_a_file_changed_between_look_and_use_is_either_the_one_or_the_other(world: World, tmp_path: Path) -> None:
    """A link that is swapped in while the file is read never lets a file outside be read as the folder's."""
    outside = world.write(tmp_path / "outside.toml", "secret = 1\n")
    inside = "[sandbox]\nwallMs = 7\n"
    path = world.root / "tamis.toml"
    world.folder(inside)
    over = threading.Event()
    number = 0

    def swap() -> None:
        nonlocal number
        while not over.is_set():
            number += 1
            other = world.root / f"other{number % 2}"
            other.unlink(missing_ok=True)
            if number % 2:
                other.symlink_to(outside)
            else:
                other.write_text(inside)
            os.replace(other, path)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[bytes] = set()
    try:
        for turn in itertools.count():
            if turn >= 1_000 and number >= 1_000:
                break
            try:
                seen.add(read_own(str(path), 100, str(world.root)))
            except (Unsafe, OSError):
                continue
    finally:
        over.set()
        swapper.join()
    assert seen <= {inside.encode(), b""}


def test_nothing_there_is_one_look(world: World) -> None:
    assert not is_there(str(world.root / "tamis.toml" / "below"))
    assert load_settings(world.root).problems == ()


# Where a root is looked for


def test_a_root_is_not_looked_for_in_a_folder_that_everybody_may_write(tmp_path: Path) -> None:
    below = tmp_path / "open" / "work" / "sub"
    below.mkdir(parents=True)
    (tmp_path / "open" / "tamis.toml").write_text(EVIL)
    assert find_root(below) == (tmp_path / "open").resolve()
    os.chmod(tmp_path / "open", 0o1777)
    assert find_root(below) == below.resolve()
    assert find_root(tmp_path / "open") == (tmp_path / "open").resolve()


@as_root
def test_a_root_is_not_looked_for_in_another_user_s_folder(tmp_path: Path) -> None:
    below = tmp_path / "theirs" / "own"
    below.mkdir(parents=True)
    (tmp_path / "theirs" / "tamis.toml").write_text(EVIL)
    os.chown(tmp_path / "theirs", OTHER, OTHER)
    assert find_root(below) == below.resolve()
    os.chown(below, OTHER, OTHER)
    assert find_root(below) == (tmp_path / "theirs").resolve()


def test_a_root_is_not_looked_for_above_a_mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = tmp_path / "top" / "mounted" / "sub"
    mounted.mkdir(parents=True)
    (tmp_path / "top" / "tamis.toml").write_text(EVIL)
    own = Path.stat

    def on_another_disk(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        facts = own(path, follow_symlinks=follow_symlinks)
        if "mounted" not in path.parts:
            return facts
        return os.stat_result([*facts[:2], facts.st_dev + 1, *facts[3:10]])

    assert find_root(mounted) == (tmp_path / "top").resolve()
    monkeypatch.setattr(Path, "stat", on_another_disk)
    assert find_root(mounted) == mounted.resolve()
