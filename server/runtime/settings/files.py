"""Configuration files that count: which ones there are, and how each is opened so that nobody but its owner decides what it says.

A file is opened first and looked at by its descriptor, so that it cannot be changed between look and use. Must not know what settings mean.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

FILE_NAME = "tamis.toml"
MAX_FILE_BYTES = 1024 * 1024
MAX_LINKS = 40
"""Links on the way of one path, as the kernel counts them."""
MACHINE_FILE = "/etc/tamis/config.toml"
"""The machine's own file. No variable names another one: whoever starts Tamis must not choose the machine's word."""
_FIRST_OWN_GROUP = 1000
"""Groups below are the system's: more than one account may be in them without being listed as a member."""


class Unsafe(Exception):  # noqa: N818 (an outcome, not a fault)
    """A file that must not be in force; ``reason`` and ``remedy`` are halves of one sentence."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


def user_file() -> str:
    """The user's own file: ``$XDG_CONFIG_HOME/tamis/config.toml``, else ``~/.config/tamis/config.toml``."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # the XDG specification: a relative path is not one
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "tamis", "config.toml")


def is_there(path: str) -> bool:
    """Whether something stands at a path. Raises ``OSError`` where that cannot be seen."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def find_root(start: Path) -> Path:
    """The nearest folder upwards from ``start`` that holds a ``tamis.toml``, else ``start`` itself.

    The search ends below a mount point, a folder in which everybody may make files, and a folder of another user than root, this one
    and the owner of ``start``: what stands there is not this folder's word.
    """
    start = start.resolve()
    if os.path.lexists(start / FILE_NAME):
        return start
    try:
        below = start.stat()
    except OSError:
        return start
    owners = {0, os.geteuid(), below.st_uid}
    for folder in start.parents:
        try:
            facts = folder.stat()
        except OSError:
            return start
        if facts.st_dev != below.st_dev or facts.st_mode & stat.S_IWOTH or facts.st_uid not in owners:
            return start
        # A file that is there but cannot be read still marks the root: what it wanted must not be passed over.
        if os.path.lexists(folder / FILE_NAME):
            return folder
    return start


def read_bounded(path: Path, limit: int) -> bytes:
    """The first ``limit`` bytes of a file. Raises ``OSError``, also for a FIFO and a device, where reading could wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return _first_bytes(descriptor, limit)
    finally:
        os.close(descriptor)


def read_own(path: str, limit: int, root: str | None = None) -> bytes:
    """The first ``limit`` bytes of a configuration file that only this user or root may have written.

    With ``root``, a link must lead to a file in that folder. Raises ``OSError`` for one that cannot be read, ``Unsafe`` for one that
    must not be in force.
    """
    descriptor = _opened(path, root)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, f"it is {_kind(facts.st_mode)}, not a regular file")
        _check_owner(facts)
        _check_folder(os.path.dirname(os.readlink(f"/proc/self/fd/{descriptor}")))
        return _first_bytes(descriptor, limit)
    finally:
        os.close(descriptor)


def _opened(path: str, root: str | None) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    if root is None:
        return os.open(path, flags)
    mode = os.lstat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise OSError(errno.EINVAL, f"it is {_kind(mode)}, not a regular file")
    if leads_out(path, root):
        raise leads_outside()
    descriptor = os.open(path, flags)
    # Where the open file is, not where the link says now.
    real, top = os.readlink(f"/proc/self/fd/{descriptor}"), os.path.realpath(root).rstrip("/")
    if not real.startswith(f"{top}/"):
        os.close(descriptor)
        raise leads_outside()
    return descriptor


def leads_out(path: str, root: str) -> bool:
    """Whether a file of a folder is a link that leads out of it."""
    return os.path.islink(path) and not stays_inside(os.path.basename(path), os.path.realpath(root))


def leads_outside() -> Unsafe:
    """Why such a file must not be in force."""
    return Unsafe("is a link that leads outside its folder", "put the file itself there")


def stays_inside(path: str, root: str) -> bool:
    """Whether a path, relative to ``root`` and with its links resolved, is in the folder ``root`` (a real path), without a look outside.

    A way that leaves the folder is outside, also where a link there would lead back.
    """
    return way_of(path, root) == "inside"


def way_of(path: str, root: str) -> Literal["inside", "outside", "endless"]:
    """The same, with a way of too many links told apart."""
    top = [part for part in root.split("/") if part]
    here = [] if path.startswith("/") else top
    ahead = path.split("/")[::-1]
    links = 0
    try:
        while ahead:
            part = ahead.pop()
            if part in ("", "."):
                continue
            here = here[:-1] if part == ".." else [*here, part]
            if here == top[: len(here)]:
                continue  # the folder itself or one above it, which is no link
            if here[: len(top)] != top:
                return "outside"
            target = _link(f"/{'/'.join(here)}")
            if target:
                links += 1
                if links > MAX_LINKS:
                    return "endless"
                here = [] if target.startswith("/") else here[:-1]
                ahead += target.split("/")[::-1]
    except ValueError:  # a zero byte, or half of a surrogate pair: no path at all
        return "outside"
    return "inside" if len(here) >= len(top) else "outside"


def _link(path: str) -> str:
    """Where a link leads; empty for what is none, and where nothing is."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _first_bytes(descriptor: int, limit: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as stream:
        return stream.read(limit)


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISDIR, "a folder"), (stat.S_ISSOCK, "a socket"))
    return next((name for fits, name in kinds if fits(mode)), "a device")


def _check_owner(facts: os.stat_result) -> None:
    own = os.geteuid()
    if facts.st_uid not in (0, own):
        raise Unsafe(f"belongs to another user ({name_of(facts.st_uid)})", f"`chown {name_of(own)}` it if it is yours")
    if _is_open(facts):
        raise Unsafe("may be written by others", "`chmod go-w` it")


def _check_folder(folder: str) -> None:
    """In a folder where everybody may rename files, any of this user's own can be put in this one's place."""
    mode = os.stat(folder).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise Unsafe("stands in a folder that everybody may write", "`chmod o-w` the folder")


def _is_open(facts: os.stat_result) -> bool:
    """Whether others than the owner may write: everybody, or a group that is not the owner's alone."""
    if facts.st_mode & stat.S_IWOTH:
        return True
    return bool(facts.st_mode & stat.S_IWGRP) and not _is_private(facts.st_uid, facts.st_gid)


def _is_private(uid: int, gid: int) -> bool:
    """Whether a group is the one that many systems make for each user, with nobody else in it (their umask is 002)."""
    if gid < _FIRST_OWN_GROUP:
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and {*group.gr_mem} <= {user.pw_name}


def name_of(uid: int) -> str:
    """A user's name, else the number."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


# Names of files: whether the system can be asked for one, and whether what stands there is another file than before.


Stamp = tuple[int, int, int]
"""Time of change in nanoseconds, size in bytes, number of the inode."""


def stamp_of(path: str) -> Stamp | None:
    """What tells that a file is another than before; None when there is none."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def folder_time(folder: str) -> int:
    """When something in a folder last came, went or was renamed, in nanoseconds; -1 where it cannot be asked."""
    try:
        return os.stat(folder, follow_symlinks=False).st_mtime_ns
    except (OSError, ValueError):
        return -1


FRESH_NS = 50_000_000
"""What changed so shortly before it was looked at may change again without any sign of it: file systems count time in steps."""


def can_be_path(name: str) -> bool:
    """Whether the system can be asked for a name at all: it holds no NUL and no half of a surrogate pair."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def shown_name(name: str) -> str:
    """A name that no file can have, as messages show it."""
    return name.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
