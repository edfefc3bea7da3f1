"""Where no mount can be mapped: one run at a time has a writable folder, and what it was lent is written down first.

A claim is a file by the folder's device and inode, locked by whoever has the folder; death frees the lock, and leaves what
is written there to the next process that looks. It is put back then: only what still belongs to the uid that it was lent to,
and no link is followed. The place is one for all daemons of root on this machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tamis.sandbox import uids
from tamis.sandbox.model import PathRefused, Unavailable, lacks
from tamis.sandbox.paths import lending
from tamis.sandbox.paths.walk import Opened, open_absolute

PLACES: tuple[str, ...] = ("/var/lib/tamis/lent", "/run/tamis/lent")
"""The first that can be made and is root's alone. `/run` is emptied at each start of the machine, and so is what it tells."""
MAX_BYTES = 4 << 20
MAX_CLAIMS = 1_000
_BROKEN = ".broken"
_ENDING_SECONDS = 1.0
"""What a killed daemon leaves behind ends within a moment; it is waited for, because it may still write."""


class Lent(msgspec.Struct, frozen=True):
    """What is written down: the folder, the uid that it is lent to, and to whom it belongs."""

    path: bytes
    device: int
    inode: int
    uid: int
    owner: tuple[int, int]
    others: tuple[tuple[int, int, int, int], ...] = ()
    """(device, inode, uid, gid) of what is in it and belongs to somebody else."""


class Claim:
    """The right to one folder, until `release`."""

    def __init__(self, fd: int, path: str, told: tuple[str, ...]) -> None:
        self._fd = fd
        self._path = path
        self.told = told
        """What was put back, because the run before had no time to."""

    def write_down(self, folder: Opened, uid: int, before: Mapping[tuple[int, int], tuple[int, int]]) -> None:
        """Have it on the disk, before anything is changed, what is lent to whom. Raises OSError."""
        lent = Lent(
            path=os.fsencode(folder.path),
            device=folder.stat.st_dev,
            inode=folder.stat.st_ino,
            uid=uid,
            owner=(folder.stat.st_uid, folder.stat.st_gid),
            others=tuple((*key, *owner) for key, owner in before.items()),
        )
        content = memoryview(msgspec.json.encode(lent))
        at = 0
        while at < len(content):
            at += os.pwrite(self._fd, content[at:], at)
        os.fsync(self._fd)
        _sync_folder(self._path)

    def release(self, *, done: bool = True) -> None:
        """Give it up; `done`: everything belongs to whom it did, so nothing is left to tell."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if done:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        os.close(fd)


def claim(folder: Opened) -> Claim | None:
    """The claim of a folder; None when another run has it.

    What a run before left lent is put back. Raises `Unavailable` when there is no place for claims, and OSError.
    """
    path = os.path.join(_place(), f"{folder.stat.st_dev}-{folder.stat.st_ino}")
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if _locked(fd, path):
                return Claim(fd, path, _settle(fd, path))
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # removed by who had it before: there is another by now


def put_back_all() -> tuple[str, ...]:
    """Put back whatever a process that is no more left lent; sentences for a person. Raises nothing."""
    told: list[str] = []
    for place in PLACES:
        try:
            names = sorted(os.listdir(place))
        except OSError:
            continue
        for name in names[:MAX_CLAIMS]:
            path = os.path.join(place, name)
            if name.endswith(_BROKEN):
                told.append(_about_broken(path))
                continue
            with contextlib.suppress(OSError):  # in use, or gone meanwhile
                told.extend(_look_at(path))
    return tuple(told)


def _look_at(path: str) -> tuple[str, ...]:
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not _locked(fd, path):
            return ()
        try:
            told = _settle(fd, path)
        except OSError as error:
            return (f"what {path} tells could not be put back: {error.strerror}",)
        os.unlink(path)
        return told
    finally:
        os.close(fd)


def _place() -> str:
    for place in PLACES:
        with contextlib.suppress(OSError):
            folder = Path(place)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            info = folder.lstat()
            if stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o022:
                return place
    raise Unavailable(
        "what is lent to a tool cannot be written down",
        f"make {PLACES[0]} a folder that root can write, and nobody else",
    )


def _locked(fd: int, path: str) -> bool:
    """Lock it; False when the name means another file by then. Raises `BlockingIOError` when another has the lock."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with contextlib.suppress(FileNotFoundError):
        ours, named = os.fstat(fd), os.stat(path, follow_symlinks=False)
        return (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)
    return False


def _settle(fd: int, path: str) -> tuple[str, ...]:
    """Put back what a locked claim still tells, and empty it; sentences of what was done. Raises OSError."""
    content = os.pread(fd, MAX_BYTES + 1, 0)
    if not content:
        return ()
    try:
        lent = msgspec.json.decode(content, type=Lent)
        # a number that is no run's was not written by this program
        if len(content) > MAX_BYTES or not uids.FIRST <= lent.uid < uids.FIRST + uids.COUNT:
            raise msgspec.ValidationError
    except msgspec.DecodeError:
        Path(path + _BROKEN).write_bytes(content[:MAX_BYTES])
        told = _about_broken(path + _BROKEN)
    else:
        told = _put_back(lent)
    os.ftruncate(fd, 0)
    os.fsync(fd)
    return (told,)


def _put_back(lent: Lent) -> str:
    path = os.fsdecode(lent.path)
    shown = lending.shown(path)
    lost = (
        f"a run ended without giving {shown} back, and it is not there any more: look for files of the uid {lent.uid}"
    )
    try:
        folder = open_absolute(path)
    except OSError as error:
        if lacks(error):
            raise  # it is put back the next time
        return lost
    except PathRefused:
        return lost
    with folder:
        if (folder.stat.st_dev, folder.stat.st_ino) != (lent.device, lent.inode):
            return lost
        _wait_for_end(lent.uid)
        before = {(device, inode): (uid, gid) for device, inode, uid, gid in lent.others}
        left_out = lending.give_back(folder, lent.uid, lent.owner, before)
    rest = f"; {left_out}" if left_out else ""
    return f"a run ended without giving {shown} back: it belongs to the uid {lent.owner[0]} again{rest}"


def _wait_for_end(uid: int) -> None:
    deadline = time.monotonic() + _ENDING_SECONDS
    while _runs_as(uid) and time.monotonic() < deadline:
        time.sleep(0.02)


def _runs_as(uid: int) -> bool:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                for line in Path("/proc", name, "status").read_text("ascii", "replace").splitlines():
                    if line.startswith("Uid:"):
                        if str(uid) in line.split()[1:]:
                            return True
                        break
    return False


def _about_broken(path: str) -> str:
    first, last = uids.FIRST, uids.FIRST + uids.COUNT - 1
    return f"{path} tells what was lent to a tool, and cannot be read: look for files of the uids {first}-{last}, then remove it"


def _sync_folder(path: str) -> None:
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
