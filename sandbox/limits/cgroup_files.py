"""What both versions of control groups share: where this process's own groups are, plain file work, and folders.

Knows neither which files a version has nor what a run is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import signal
from collections.abc import Iterable
from pathlib import Path

import msgspec

FOLDER = re.compile(r"tamis-\d+-[0-9a-f]{16}")
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Unusable(Exception):  # noqa: N818 - an outcome
    """Raised when groups cannot be made here, or one failed. Carries what would help, if anything is known to."""

    def __init__(self, reason: str, remedy: str = "", *, passing: bool = False) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.passing = passing
        """It was this process that had no descriptors or memory left; groups are as good as before."""


class Used(msgspec.Struct, frozen=True):
    """What a group has used: processor time in milliseconds, and the most memory that it held, files of a tmpfs, caches
    and the kernel's own included. 0 where the kernel does not tell."""

    cpu_ms: float = 0.0
    peak_bytes: int = 0


class Bounds(msgspec.Struct, frozen=True):
    """What a group may hold: bytes of memory of every kind, and tasks."""

    memory_bytes: int
    processes: int


class Places(msgspec.Struct, frozen=True):
    """This process's own group as a folder: by controller for version 1, and of version 2.

    `v2_namespaced`: that folder is the whole of what this process's cgroup namespace shows, so it was given to it.
    """

    v1: dict[str, str] = {}
    v2: str | None = None
    v2_namespaced: bool = False
    reason: str = ""


_PIECE_BYTES = 64 * 1024


class Files:
    """Reading and writing control files. Every failure is an `OSError`."""

    def read(self, path: str) -> str:
        """The content of a control file."""
        # some dozen for each run: a `Path` and a text file would cost more than the reading
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = piece = os.read(fd, _PIECE_BYTES)
            while piece:
                piece = os.read(fd, _PIECE_BYTES)
                content += piece
        finally:
            os.close(fd)
        return content.decode("ascii", "replace")

    def write(self, path: str, text: str) -> None:
        """One write, as the kernel wants it; the file is never created."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode("ascii"))
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """Whether there is such a control file."""
        return os.path.exists(path)

    def mkdir(self, path: str) -> None:
        """Make a group."""
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        """Remove a group."""
        os.rmdir(path)

    def groups(self, path: str) -> list[str]:
        """The names of the groups directly below one; empty when it has gone."""
        try:
            with os.scandir(path) as entries:
                return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []

    def processes(self, path: str) -> list[int]:
        """The processes of a group; one of another pid namespace is 0."""
        return [int(line) for line in self.read(f"{path}/cgroup.procs").split()]


def own_places(cgroup: str | None = None, mountinfo: str | None = None) -> Places:
    """Find the folders from the text of `/proc/self/cgroup` and `/proc/self/mountinfo`."""
    try:
        cgroup = Path("/proc/self/cgroup").read_text() if cgroup is None else cgroup
        mountinfo = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    except OSError as error:
        return Places(reason=f"/proc does not tell: {error.strerror}")
    ours: dict[str, str] = {}
    # A thread that is just spawning stands in a group of its run: ours is the one that this process began in.
    of_a_run = re.compile(rf"/tamis-{os.getpid()}-[0-9a-f]{{16}}(?:/.*)?$")
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        path = of_a_run.sub("", path) or "/"
        for controller in controllers.split(",") if number != "0" else ("",):
            ours[controller] = path
    v1: dict[str, str] = {}
    v2: str | None = None
    namespaced = False
    read_only = False
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 6 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        options = fields[5].split(",")
        for controller in kind[2].split(",") if kind[0] == "cgroup" else ("",):
            folder = _below(ours.get(controller), _plain(fields[3]), _plain(fields[4]))
            if folder is None:
                continue
            if "ro" in options:
                read_only = True
            elif controller:
                v1[controller] = folder
            else:
                v2, namespaced = folder, ours[""] == "/"
    return Places(v1, v2, namespaced, _why(v1, v2, read_only))


def _why(v1: dict[str, str], v2: str | None, read_only: bool) -> str:
    if v1 or v2 is not None:
        return ""
    return "the cgroup file system is mounted read-only" if read_only else "no cgroup file system is mounted"


def _plain(field: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)


def _below(own: str | None, root: str, mountpoint: str) -> str | None:
    """Where `own` is when `root` of the hierarchy is mounted here; None when that does not show it."""
    if own is None or not own.startswith("/") or "/.." in own or "/.." in root:
        return None
    rest = own if root == "/" else own.removeprefix(root) if (own + "/").startswith(root + "/") else None
    return None if rest is None else f"{mountpoint}{rest}".rstrip("/")


def check_own(files: Files, folder: str, pid: int) -> None:
    """See that a folder really is this process's own group. Raises `Unusable`."""
    try:
        if pid in files.processes(folder):
            return
    except OSError as error:
        raise Unusable(f"{folder} cannot be read: {error.strerror}") from error
    raise Unusable(f"{folder} is not the group of this process")


def fields(text: str) -> dict[str, int]:
    """`name number` lines."""
    fields: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdigit():
            fields[name] = int(value)
    return fields


def refused(error: OSError, doing: str) -> Unusable:
    """What to raise for a control file or group that did not do."""
    return Unusable(f"{doing}: {error.strerror}", passing=error.errno in _PASSING)


def make_folder(files: Files, parents: Iterable[str]) -> tuple[str, int]:
    """(name, descriptor): one new folder of the same name in each parent; the descriptor of the first keeps its lock.

    Raises `Unusable`.
    """
    first, *others = parents
    for _ in range(5):
        name = f"tamis-{os.getpid()}-{secrets.token_hex(8)}"
        folder = f"{first}/{name}"
        try:
            files.mkdir(folder)
        except OSError as error:
            raise refused(error, f"no group may be made in {first}") from error
        fd = -1
        try:
            # another's sweep may hold the lock for a moment, or have removed what was not locked yet
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not Path(folder).is_dir():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        except (FileNotFoundError, BlockingIOError):
            if fd >= 0:
                os.close(fd)
            continue
        try:
            for parent in others:
                files.mkdir(f"{parent}/{name}")
        except OSError as error:
            remove_folders(files, parents, name)
            os.close(fd)
            raise refused(error, "no group may be made in every hierarchy") from error
        return name, fd
    raise Unusable(f"no group could be kept in {first}")


def remove_folders(files: Files, parents: Iterable[str], name: str) -> bool:
    """Remove a folder and the groups in it, ending what is left in them. False when something stays."""
    gone = True
    for parent in reversed(tuple(parents)):
        folder = f"{parent}/{name}"
        for group in files.groups(folder):
            gone &= remove_group(files, f"{folder}/{group}")
        gone &= remove_group(files, folder)
    return gone


def remove_group(files: Files, folder: str) -> bool:
    """Remove one group; when something is in it, end that, and say False."""
    try:
        files.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:  # EBUSY
        end_processes(files, folder)
        return False
    return True


def end_processes(files: Files, folder: str) -> None:
    """SIGKILL each process of a group. Its descriptor is taken first, and the group asked again, so no other is met."""
    with contextlib.suppress(OSError):
        for pid in files.processes(folder):
            if pid <= 1 or pid == os.getpid():
                continue
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                continue
            try:
                if pid in files.processes(folder):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)


def sweep(files: Files, parents: tuple[str, ...]) -> None:
    """Remove what dead processes left: each folder whose lock nobody holds."""
    names = {name for parent in parents for name in files.groups(parent) if FOLDER.fullmatch(name)}
    for name in names:
        with contextlib.suppress(OSError):
            try:
                fd = os.open(f"{parents[0]}/{name}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # being made or removed by a live one: the first is made first and removed last
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folders(files, parents, name)
            finally:
                os.close(fd)


# Reading a file of /proc whole. Several are read at every call, so it is done with the fewest system calls and no objects.


_PIECE = 65_536


def read(path: str) -> bytes:
    """The content of a file. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(fd, _PIECE)
        piece = content
        while piece:
            piece = os.read(fd, _PIECE)
            content += piece
    finally:
        os.close(fd)
    return content
