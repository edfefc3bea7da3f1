"""Folders granted for writing: lent to the run's uid before it, and put in order after it.

A script may leave anything there: special files, set-id bits, folders that are closed, very deep or very full, names that
are no text. Nothing is opened here but folders, no link is followed, and all of it is bounded.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tamis.sandbox.model import PathRefused, lacks
from tamis.sandbox.paths.walk import Opened

MAX_ENTRIES = 20_000
MAX_DEPTH = 64
_CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE, which Python has no name for
_MAX_SAID = 100
# `O_NONBLOCK` because what was a folder a moment ago may be a FIFO now: another run can have the same grant
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


# What other programs obey without being told to: written by a tool, it would act as whoever works in the folder next.
_OBEYED_NAMES = frozenset(
    (
        *(
            "tamis.toml",
            "agent_profile.json",
            ".envrc",
            ".env",
            ".pre-commit-config.yaml",
            "sitecustomize.py",
            ".npmrc",
        ),
        *("usercustomize.py", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", ".mise.toml", "mise.toml"),
        *(".tool-versions", ".python-version", ".node-version", ".nvmrc", ".ruby-version", "conftest.py", "pip.conf"),
        *("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".gitattributes", ".gitmodules", ".gitconfig"),
        *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".exrc", ".vimrc", ".nvim.lua", ".gdbinit"),
        # a plain file `.git` leads git to settings elsewhere
        *(".git", ".eslintrc.js", ".eslintrc.cjs", "eslint.config.js", "eslint.config.mjs"),
        *(".mcp.json", "AGENTS.md", "CLAUDE.md", ".cursorrules", "setup.py", ".inputrc", ".netrc", ".pypirc"),
    )
)
_OBEYED_ENDS = (".tool.json", ".workflow.json", ".pth", ".desktop", ".code-workspace")
_OBEYED_FOLDERS = frozenset(
    (
        ".vscode",
        ".idea",
        ".github",
        ".husky",
        ".devcontainer",
        ".cargo",
        ".claude",
        ".cursor",
        ".ssh",
        ".direnv",
        ".zed",
    )
)
_GIT_FILES = frozenset(("config", "config.worktree"))


class _Entry(msgspec.Struct, frozen=True):
    """One name in a folder. `path` is relative to the granted folder; `info` is None below what was left out."""

    path: str
    name: str
    fd: int
    info: os.stat_result | None = None
    left_out: str = ""
    """Why what is below or behind was not looked at."""
    failed: int = 0
    """The number of the error, where it was one."""


def _walk(top: int) -> Iterator[_Entry]:
    """Everything below a folder, each folder before what is in it; the descriptors live until the next step."""
    left = MAX_ENTRIES
    open_folders: list[tuple[int, str, Iterator[os.DirEntry[str]]]] = []
    try:
        open_folders.append(_opened_names(os.dup(top), ""))
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
                open_folders.append(_opened_names(_open_folder(name, fd), shown))
            except OSError as error:
                yield _Entry(shown, name, fd, None, f"it cannot be opened ({error.strerror})", error.errno or 0)
    finally:
        for fd, _, names in open_folders:
            getattr(names, "close", lambda: None)()
            os.close(fd)


def _opened_names(folder: int, path: str) -> tuple[int, str, Iterator[os.DirEntry[str]]]:
    """A folder's descriptor, which is closed if its names cannot be had, its path, and its names."""
    try:
        return folder, path, os.scandir(folder)
    except BaseException:
        os.close(folder)
        raise


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


Before = dict[tuple[int, int], tuple[int, int]]
"""(device, inode) of entries that do not belong to the folder's owner, with their (uid, gid)."""


class Ownership:
    """As root: lends the writable folders to the throw-away uid for one run, and takes them back."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._lent: list[tuple[Opened, Before]] = []

    def lend(self, folder: Opened, write_down: Callable[[Before], None]) -> None:
        """Give a folder and what is in it to the uid, after `write_down` was told whose it is.

        Raises `PathRefused` when it is too large to walk, and OSError for a want of descriptors or memory.
        """
        owner = (folder.stat.st_uid, folder.stat.st_gid)
        before: Before = {}
        top = _top(folder)
        try:
            # looked through before anything is changed
            for entry in _walk(top):
                _require_no_lack(entry)
                if entry.left_out:
                    raise PathRefused(f"{folder.path}: {shown(entry.path)}: {entry.left_out}", "grant a smaller folder")
                info = entry.info
                if info is not None and (info.st_uid, info.st_gid) != owner and _is_lent(info):
                    before[info.st_dev, info.st_ino] = (info.st_uid, info.st_gid)
            write_down(before)
            self._lent.append((folder, before))
            for entry in _walk(top):
                _require_no_lack(entry)
                if entry.info is not None and _is_lent(entry.info):
                    with contextlib.suppress(FileNotFoundError):
                        os.chown(entry.name, self.uid, self.uid, dir_fd=entry.fd, follow_symlinks=False)
            os.fchown(top, self.uid, self.uid)
        finally:
            os.close(top)

    def take_back(self) -> None:
        """Give everything that the uid owns back: to whom it belonged before, what is new to the folder's owner."""
        for folder, before in self._lent:
            give_back(folder, self.uid, (folder.stat.st_uid, folder.stat.st_gid), before)
        self._lent.clear()


def _require_no_lack(entry: _Entry) -> None:
    error = OSError(entry.failed, os.strerror(entry.failed), entry.path)
    if lacks(error):
        raise error


def _is_lent(info: os.stat_result) -> bool:
    # a file with another name may be one that was not granted
    return stat.S_ISDIR(info.st_mode) or info.st_nlink == 1


def give_back(folder: Opened, uid: int, owner: tuple[int, int], before: Before) -> str:
    """Take from `uid` a folder and what is in it: to whom it belonged before, the rest to `owner`; what was left out.

    Raises OSError for a want of descriptors or memory: then it has to be done again.
    """
    left_out = ""
    top = _top(folder)
    try:
        if os.fstat(top).st_uid == uid:
            os.fchown(top, *owner)
        for entry in _walk(top):
            info = entry.info
            _require_no_lack(entry)
            left_out = left_out or (f"{shown(entry.path)}: {entry.left_out}" if entry.left_out else "")
            if info is not None and info.st_uid == uid:
                to = before.get((info.st_dev, info.st_ino), owner)
                with contextlib.suppress(OSError):
                    os.chown(entry.name, *to, dir_fd=entry.fd, follow_symlinks=False)
    finally:
        os.close(top)
    return left_out


def shown(path: str) -> str:
    """A path as text that can be said to anyone: no control characters, no bytes that are no text."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def file_time(*, chowned: bool) -> int:
    """The time in nanoseconds from which on a change of a file is a run's, by the clock that file systems use.

    `chowned`: files have just been given away, which changed them too, so the time must lie after that.
    """
    return time.time_ns() if chowned else time.clock_gettime_ns(_CLOCK_OF_FILES)


def sweep(folder: Opened, since: int = 0) -> list[str]:
    """After a run: remove set-id bits, device nodes, sockets and FIFOs from a writable folder; say what was there.

    Said too is what the run made or changed since `since` (`file_time`) and somebody else may fall for: files that other
    programs obey, links that lead out, names that a terminal would act on. Nobody can set back the time of change.
    """
    notes = _Notes()
    try:
        _sweep(folder, since, notes)
    except OSError as error:
        notes.add(f"{shown(folder.path)} could not be looked through: {error.strerror}", weighty=True)
    return notes.said(shown(folder.path))


class _Notes:
    """What is said of a folder, in bounded number: a run that leaves much cannot hide among it what others obey."""

    def __init__(self) -> None:
        self._weighty: list[str] = []
        self._others: list[str] = []
        self._count = 0

    def add(self, note: str, *, weighty: bool) -> None:
        """One more; what others obey stands before all else."""
        self._count += 1
        notes = self._weighty if weighty else self._others
        if len(notes) < _MAX_SAID:
            notes.append(note)

    def said(self, folder: str) -> list[str]:
        """The notes, and how many more there would be."""
        notes = [*self._weighty, *self._others]
        if self._count <= _MAX_SAID:
            return notes
        left = self._count - _MAX_SAID + 1
        return [*notes[: _MAX_SAID - 1], f"{folder}: {left} more such things, which are not named"]


def _sweep(folder: Opened, since: int, notes: _Notes) -> None:
    top = _top(folder)
    try:
        shares_group = bool(os.fstat(top).st_mode & stat.S_ISGID)
        for entry in _walk(top):
            text = _put_in_order(entry, since, shares_group=shares_group)
            if entry.info is not None and entry.info.st_ctime_ns >= since:
                text = "; ".join(filter(None, (text, *_warnings(entry))))
            if text:
                weighty = is_obeyed(entry.path)
                notes.add(f"{shown(posixpath.join(folder.path, entry.path))}: {text}", weighty=weighty)
    finally:
        os.close(top)


def _put_in_order(entry: _Entry, since: int, *, shares_group: bool) -> str:
    if entry.info is None:
        return f"{entry.left_out}, the rest was not looked at"
    mode = entry.info.st_mode
    try:
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            os.unlink(entry.name, dir_fd=entry.fd)
            return "a special file was removed"
        # below a folder that shares its group, folders inherit the bit
        harmless = 0 if stat.S_ISREG(mode) else 0o2000 if shares_group else 0
        if mode & 0o6000 & ~harmless and (stat.S_ISREG(mode) or entry.info.st_ctime_ns >= since):
            _drop_set_id(entry.name, entry.fd)
            return "set-uid bits were removed"
    except OSError as error:
        return f"could not be put in order: {error.strerror}"
    return ""


def _warnings(entry: _Entry) -> Iterator[str]:
    """What is to be said of an entry that the run made or changed."""
    assert entry.info is not None
    if not entry.name.isprintable():
        yield "its name holds characters that a terminal acts on"
    if stat.S_ISDIR(entry.info.st_mode):
        return
    if stat.S_ISLNK(entry.info.st_mode):
        with contextlib.suppress(OSError):
            target = os.readlink(entry.name, dir_fd=entry.fd)
            there = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
            if there.startswith("/") or there.split("/")[0] == "..":
                yield f"a link that leads out of the folder, to {shown(target)[:200]}"
    if is_obeyed(entry.path):
        yield "the run made or changed a file that other programs obey; look at it before you work in this folder"


def is_obeyed(path: str) -> bool:
    """Whether programs act by what stands in a file of this relative path without being told to."""
    *folders, name = path.split("/")
    if name in _OBEYED_NAMES or name.endswith(_OBEYED_ENDS) or not _OBEYED_FOLDERS.isdisjoint(folders):
        return True
    if "hooks" in folders[-1:] and not name.endswith(".sample"):
        return ".git" in folders or folders[-2:-1] == []
    if name == "HEAD":
        # it makes a folder a repository of its own, whose settings git obeys; in `.git` every commit changes it
        return ".git" not in folders
    # also of a submodule or a worktree, which stand below it
    return ".git" in folders and (name in _GIT_FILES or (name == "commondir" and folders[-1:] == [".git"]))


def _drop_set_id(name: str, dir_fd: int) -> None:
    file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            Path(f"/proc/self/fd/{file}").chmod(stat.S_IMODE(mode) & 0o1777)
    finally:
        os.close(file)
