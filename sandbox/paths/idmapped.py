"""As root: mounts on which a folder's owner is the run's uid. Nothing is chowned, a closed folder can be shown, and what
the script makes there belongs to the folder's owner.

A user namespace says who is who. It is made by a child that does nothing else: this process may have many threads, and may
be too large to be copied. The mounts stand in a mount namespace of their own, made by a thread that ends then, each over
the very folder that it shows; the sandbox is started in that namespace (`nsenter`), where every path is the one that it was.
On such a mount the kernel takes the run's uid for the folder's owner, and nobody else for another than they are: this
process's own uid can make nothing there if it is the owner's.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import select
import signal
import struct
import threading
from collections import OrderedDict
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import ClassVar

from tamis.sandbox.apart import apart
from tamis.sandbox.model import PathRefused
from tamis.sandbox.paths.walk import Opened, open_absolute

MAX_KEPT = 32
"""User namespaces that are kept for the next run with the same uid and owner."""
_HELPER_SECONDS = 5.0
_UNSHARE, _ECHO = "/usr/bin/unshare", "/bin/cat"
# the same numbers on every machine that the sandbox's filter knows
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_EMPTY_PATH, _RECURSIVE, _CLONE = 0x1000, 0x8000, 0x1
_FROM_EMPTY, _TO_EMPTY = 0x4, 0x40
_READ_ONLY, _NO_SUID, _NO_DEVICES, _ID_MAPPED = 0x1, 0x2, 0x4, 0x100000
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_NEW_MOUNTS, _MAKE_PRIVATE = 0x20000, 0x40000 | 0x4000


class CannotMap(Exception):  # noqa: N818 - an outcome: the caller has another way
    """This kernel, container or file system does not do it. Carries the reason."""


class View:
    """A mount namespace in which mapped mounts stand; `close()` releases it, a sandbox that was started in it keeps it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def path(self) -> str:
        """The name by which a child enters it."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        """A second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _Kept:
    lock = threading.Lock()
    users: ClassVar[OrderedDict[tuple[int, int, int], int]] = OrderedDict()


def mapped(shown: Opened, uid: int, *, writable: bool) -> int:
    """A detached mount of what is shown on which its owner is `uid`, as a descriptor.

    Raises `CannotMap`, and `OSError` for a want of descriptors, memory or processes.
    """
    with _Kept.lock:
        users = _users(shown.stat.st_uid, shown.stat.st_gid, uid)
        with _failing("mounts cannot be copied here"):
            mount = _call(_OPEN_TREE, shown.fd, b"", _CLONE | _EMPTY_PATH | _RECURSIVE | os.O_CLOEXEC)
        try:
            flags = _ID_MAPPED | _NO_SUID | _NO_DEVICES | (0 if writable else _READ_ONLY)
            request = struct.pack("=QQQQ", flags, 0, 0, users)
            with _failing("the file system takes no id-mapped mount"):
                _call(_MOUNT_SETATTR, mount, b"", _EMPTY_PATH | _RECURSIVE, request, ctypes.c_size_t(len(request)))
        except BaseException:
            os.close(mount)
            raise
        return mount


def view_of(mounts: Sequence[tuple[Opened, int]]) -> View:
    """A namespace with each detached mount over the path that it is of, outer ones first. Takes no descriptor over.

    Raises `CannotMap`; `PathRefused` when a path has come to mean something else.
    """
    # a thread that has left the namespaces of the others may do nothing else afterwards: it ends
    return View(apart("tamis-mounts", lambda: _attached(mounts)))


def forget() -> None:
    """Let go of what is kept for further runs."""
    with _Kept.lock:
        while _Kept.users:
            os.close(_Kept.users.popitem()[1])


def _attached(mounts: Sequence[tuple[Opened, int]]) -> int:
    libc = _libc()
    with _failing("this process may make no mount namespace"):
        _checked(libc.unshare(_NEW_MOUNTS))
        _checked(libc.mount(None, b"/", None, ctypes.c_ulong(_MAKE_PRIVATE), None))
    for shown, mount in sorted(mounts, key=lambda pair: pair[0].path.count("/")):
        with open_absolute(shown.path) as place:
            if (place.stat.st_dev, place.stat.st_ino) != (shown.stat.st_dev, shown.stat.st_ino):
                raise PathRefused(
                    f"{shown.path} was replaced while it was opened", "leave it alone while a tool starts"
                )
            with _failing("a mount cannot be put in its place"):
                _call(_MOVE_MOUNT, mount, b"", place.fd, b"", _FROM_EMPTY | _TO_EMPTY)
    return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def _users(owner: int, group: int, uid: int) -> int:
    """A user namespace that takes `uid` for the owner and its group, kept for the next time."""
    key = (owner, group, uid)
    fd = _Kept.users.pop(key, None)
    if fd is None:
        fd = _new_users(_lines(owner, uid, "uid"), _lines(group, uid, "gid"))
    _Kept.users[key] = fd
    while len(_Kept.users) > MAX_KEPT:
        os.close(_Kept.users.popitem(last=False)[1])
    return fd


def _lines(owner: int, uid: int, kind: str) -> bytes:
    """The map: the owner's number on disk is the run's, the others that this process knows are their own.

    The run's own number on disk is nobody's, and so is whoever has the owner's number outside.
    """
    lines = [f"{owner} {uid} 1"]
    for line in Path(f"/proc/self/{kind}_map").read_text("ascii").splitlines():
        start, _, count = (int(word) for word in line.split())
        for first, last in _without(start, start + count, sorted({owner, uid})):
            lines.append(f"{first} {first} {last - first}")
    return "\n".join(lines).encode() + b"\n"


def _without(first: int, end: int, holes: list[int]) -> list[tuple[int, int]]:
    """The range without single numbers in it, as ranges that are not empty."""
    ranges: list[tuple[int, int]] = []
    for hole in holes:
        if first <= hole < end:
            ranges.append((first, hole))
            first = hole + 1
    ranges.append((first, end))
    return [(low, high) for low, high in ranges if low < high]


def _new_users(users: bytes, groups: bytes) -> int:
    """A user namespace with these maps, which lives as long as the descriptor."""
    asking, told = os.pipe2(os.O_CLOEXEC)
    answers = saying = -1
    pid = 0
    try:
        answers, saying = os.pipe2(os.O_CLOEXEC)
        with _failing("`unshare` cannot be started"):
            pid = os.posix_spawn(
                _UNSHARE,
                ["unshare", "--user", "--", _ECHO],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, asking, 0),
                    (os.POSIX_SPAWN_DUP2, saying, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsigmask=(),
            )
        os.close(saying)
        saying = -1
        os.write(told, b"\n")
        look = select.poll()  # no `select`: it takes no descriptor above 1,023
        look.register(answers, select.POLLIN)
        if not look.poll(_HELPER_SECONDS * 1000) or not os.read(answers, 1):
            raise CannotMap("no user namespace can be made here")
        with _failing("a user namespace cannot be given its users"):
            for kind, content in (("uid_map", users), ("gid_map", groups)):
                Path(f"/proc/{pid}/{kind}").write_bytes(content)
            return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (asking, told, answers, saying):
            if fd >= 0:
                os.close(fd)
        if pid:
            with contextlib.suppress(OSError):  # a host that ignores SIGCHLD
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


@contextlib.contextmanager
def _failing(what: str) -> Generator[None]:
    """An error of the kernel's as `CannotMap`, unless it is a want that may have passed the next moment."""
    try:
        yield
    except OSError as error:
        if error.errno in _LACKS:
            raise
        raise CannotMap(f"{what} ({error.strerror})") from error


def _call(number: int, *args: object) -> int:
    # as registers: what is passed as a plain number is an int
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return _checked(_libc().syscall(ctypes.c_long(number), *words))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
