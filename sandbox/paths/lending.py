"""Folders granted for writing: lent to the run's uid before it, and put in order after it.

A script may leave anything there: special files, set-id bits, folders that are closed, very deep or very full, names that
are no text. Nothing is opened here but folders, no link is followed, and all of it is bounded.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tamis.sandbox.model import PathRefused
from tamis.sandbox.paths.walk import Opened

MAX_ENTRIES = 20_000
MAX_DEPTH = 64
_MAX_SAID = 100
# `O_NONBLOCK` because what was a folder a moment ago may be a FIFO now: another run can have the same grant
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Entry(msgspec.Struct, frozen=True):
    """One name in a folder. `path` is relative to the granted folder; `info` is None below what was left out."""

    path: str
    name: str
    fd: int
    info: os.stat_result | None = None
    left_out: str = ""
    """Why what is below or behind was not looked at."""


def _walk(top: int) -> Iterator[_Entry]:
    """Everything below a folder, each folder before what is in it; the descriptors live until the next step."""
    left = MAX_ENTRIES
    open_folders: list[tuple[int, str, Iterator[os.DirEntry[str]]]] = []
    try:
        open_folders.append((os.dup(top), "", os.scandir(top)))
        while open_folders:
            fd, path, names = open_folders[-1]
            name = _next_name(names)
            if name is None:
                os.close(fd)
                open_folders.pop()
                continue
            left -= 1
            shown = posixpath.join(path, name)
            if left < 0:
                yield _Entry(shown, name, fd, None, f"more than {MAX_ENTRIES} entries")
                return
            try:
                info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue
            yield _Entry(shown, name, fd, info)
            if not stat.S_ISDIR(info.st_mode):
                continue
            if len(open_folders) >= MAX_DEPTH:
                yield _Entry(shown, name, fd, None, f"deeper than {MAX_DEPTH} folders")
                continue
            try:
                inner = _open_folder(name, fd)
            except OSError as error:
                yield _Entry(shown, name, fd, None, f"it cannot be opened ({error.strerror})")
                continue
            open_folders.append((inner, shown, os.scandir(inner)))
    finally:
        for fd, _, names in open_folders:
            getattr(names, "close", lambda: None)()
            os.close(fd)


def _next_name(names: Iterator[os.DirEntry[str]]) -> str | None:
    try:
        return next(names).name
    except (StopIteration, OSError):
        return None


def _open_folder(name: str, fd: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=fd)
    except PermissionError:
        # closed by the script, which for an ordinary user is the same user: opened again, or it could never be removed
        held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            Path(f"/proc/self/fd/{held}").chmod(stat.S_IMODE(os.fstat(held).st_mode) & 0o777 | 0o700)
        finally:
            os.close(held)
        return os.open(name, _FOLDER, dir_fd=fd)


def _top(folder: Opened) -> int:
    return os.open(f"/proc/self/fd/{folder.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class Ownership:
    """As root: lends the writable folders to the throw-away uid for one run, and takes them back."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._lent: list[Opened] = []
        self._before: dict[tuple[int, int], tuple[int, int]] = {}

    def lend(self, folder: Opened) -> None:
        """Give a folder and what is in it to the uid. Raises `PathRefused` when it is too large to walk."""
        top = _top(folder)
        try:
            # looked through before anything is changed
            for entry in _walk(top):
                if entry.left_out:
                    raise PathRefused(f"{folder.path}: {shown(entry.path)}: {entry.left_out}", "grant a smaller folder")
            self._lent.append(folder)
            for entry in _walk(top):
                self._give(entry)
            self._before[folder.stat.st_dev, folder.stat.st_ino] = (folder.stat.st_uid, folder.stat.st_gid)
            os.fchown(top, self.uid, self.uid)
        finally:
            os.close(top)

    def _give(self, entry: _Entry) -> None:
        info = entry.info
        # a file with another name may be one that was not granted
        if info is None or (not stat.S_ISDIR(info.st_mode) and info.st_nlink > 1):
            return
        self._before[info.st_dev, info.st_ino] = (info.st_uid, info.st_gid)
        with contextlib.suppress(FileNotFoundError):
            os.chown(entry.name, self.uid, self.uid, dir_fd=entry.fd, follow_symlinks=False)

    def take_back(self) -> None:
        """Give everything that the uid owns back: to whom it belonged before, what is new to the folder's owner."""
        for folder in self._lent:
            owner = (folder.stat.st_uid, folder.stat.st_gid)
            top = _top(folder)
            try:
                os.fchown(top, *owner)
                for entry in _walk(top):
                    info = entry.info
                    if info is not None and info.st_uid == self.uid:
                        to = self._before.get((info.st_dev, info.st_ino), owner)
                        with contextlib.suppress(OSError):
                            os.chown(entry.name, *to, dir_fd=entry.fd, follow_symlinks=False)
            finally:
                os.close(top)
        self._lent.clear()


def shown(path: str) -> str:
    """A path as text that can be said to anyone: no control characters, no bytes that are no text."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def sweep(folder: Opened) -> list[str]:
    """After a run: remove set-id bits, device nodes, sockets and FIFOs from a writable folder; say what was there."""
    found: list[str] = []
    try:
        top = _top(folder)
    except OSError as error:
        return [f"{shown(folder.path)} could not be looked through: {error.strerror}"]
    try:
        for entry in _walk(top):
            said = _put_in_order(entry)
            if said and len(found) < _MAX_SAID:
                found.append(f"{shown(posixpath.join(folder.path, entry.path))}: {said}")
    finally:
        os.close(top)
    return found


def _put_in_order(entry: _Entry) -> str:
    if entry.info is None:
        return f"{entry.left_out}, the rest was not looked at"
    mode = entry.info.st_mode
    try:
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            os.unlink(entry.name, dir_fd=entry.fd)
            return "a special file was removed"
        if mode & 0o6000 and stat.S_ISREG(mode):
            _drop_set_id(entry.name, entry.fd)
            return "set-uid bits were removed"
    except OSError as error:
        return f"could not be put in order: {error.strerror}"
    return ""


def _drop_set_id(name: str, dir_fd: int) -> None:
    file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISREG(mode):
            Path(f"/proc/self/fd/{file}").chmod(stat.S_IMODE(mode) & 0o777)
    finally:
        os.close(file)
