"""The audit log: one JSON line for each thing that happened to a call (D27, D75), kept where no tool can reach it.

Whatever goes wrong with it never disturbs a call: the problem is kept in ``AuditLog.problem`` and said once. Any number of
processes write to one file; each line is one append, and only one of them rotates. Must not know what an event means.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from tamis.protocols.invisible import LINE_SEPARATORS, NOT_IN_NAMES
from tamis.server.runtime.observe.redaction import redacted
from tamis.server.runtime.store.folders import make_private, state_folder

FILE_NAME = "audit.jsonl"
MAX_LINE_BYTES = 32_768

# How each line begins: what begins otherwise was not written here.
_RECORD = re.compile(rb'\{"time":"[0-9T:.\-]{20,30}Z","event":"')
_RECORD_BYTES = 64

# What JSON lets through and a terminal or a viewer of logs acts on (D74).
_UNSEEN = re.compile(f"[\x7f-\x9f{LINE_SEPARATORS}{NOT_IN_NAMES}]")


class AuditLog:
    """An append-only file with its older parts beside it (``audit.jsonl.1`` is the newest of them)."""

    _fd = -1

    def __init__(
        self, path: Path | None = None, *, max_bytes: int = 8_388_608, keep: int = 5, say: Callable[[str], object] = str
    ) -> None:
        """``path`` None is the state folder's own file. ``say`` is told each new problem once."""
        self.path = path or state_folder() / FILE_NAME
        self._name = str(self.path)
        self.problem = ""
        self._own_folder = path is None
        self._max_bytes = max(max_bytes, 4 * MAX_LINE_BYTES)
        self._keep = keep
        self._say = say
        self._identity = (0, 0)
        self._torn = False
        self._lock = threading.Lock()

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Appends one event. Never raises; ``fields`` are plain data whose secrets are hidden already."""
        line = _line(event, fields)
        with self._lock:
            try:
                self._append(line)
            except (OSError, ValueError) as error:
                cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self._failed(f"the audit log {self.path} cannot be written: {cause}")
            else:
                self.problem = ""

    def check(self) -> str:
        """Opens the file as the first event would; the problem with it, or an empty text."""
        with self._lock:
            try:
                self._open()
            except (OSError, ValueError) as error:
                cause = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                self.problem = f"the audit log {self.path} cannot be written: {cause}"
        return self.problem

    def close(self) -> None:
        """Releases the file; the next event opens it again."""
        with self._lock:
            self._close()

    def __del__(self) -> None:
        # of a runtime that nobody closed; a number says nothing to the collector
        self._close()

    def _append(self, line: bytes) -> None:
        for _ in range(3):
            size = self._open()
            if size == 0 or size + len(line) <= self._max_bytes or not self._rotate():
                break
            self._close()
        if self._torn:
            _mend(self._fd)
        opened = self._fd
        locked = _lock(opened, fcntl.LOCK_SH)
        try:
            written = os.write(opened, line)
        finally:
            if locked:
                fcntl.flock(opened, fcntl.LOCK_UN)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(errno.ENOSPC, "the disk is full")

    def _open(self) -> int:
        """Makes sure that the open file is the one at the path; its size."""
        if self._fd >= 0:
            try:
                there = os.lstat(self._name)
            except FileNotFoundError:
                pass
            else:
                if (there.st_dev, there.st_ino) == self._identity:
                    return there.st_size
        self._close()
        if self._own_folder:
            make_private(self.path.parent)
        else:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        opened = os.open(self.path, flags, 0o600)
        try:
            facts = os.fstat(opened)
            if not stat.S_ISREG(facts.st_mode):
                raise OSError(errno.EINVAL, "it is no plain file")
            if facts.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it belongs to another user")
            if not self._own_folder:
                _require_ours(opened, facts)
            if facts.st_mode & 0o077:
                os.fchmod(opened, 0o600)
            _mend(opened)
            self._torn = False
        except BaseException:
            os.close(opened)
            raise
        self._fd, self._identity = opened, (facts.st_dev, facts.st_ino)
        return facts.st_size

    def _rotate(self) -> bool:
        """Moves the full file aside, unless another process is doing it."""
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            there = os.stat(self.path, follow_symlinks=False)
            if (there.st_dev, there.st_ino) != self._identity:
                return True
            parts = [f"{self.path}.{number}" for number in range(1, self._keep + 1)]
            if not self._own_folder and not all(map(_may_replace, parts)):
                return False
            for number in range(self._keep, 0, -1):
                older = f"{self.path}.{number - 1}" if number > 1 else str(self.path)
                with contextlib.suppress(FileNotFoundError):
                    os.replace(older, f"{self.path}.{number}")
            if self._keep == 0:
                os.unlink(self.path)
            return True
        except FileNotFoundError:
            return True
        finally:
            os.close(lock)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._say(problem)


def _require_ours(opened: int, facts: os.stat_result) -> None:
    """Raises OSError for a file at a place of the operator's choice that is not an audit log of this user's alone.

    A setting that names another file must not have lines appended to it, nor its mode changed.
    """
    if facts.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "other users may write it; make it yours alone (chmod 600)")
    if facts.st_nlink > 1:
        raise PermissionError(errno.EPERM, "it has a second name (a hard link); give the audit log a file of its own")
    if facts.st_size and not _RECORD.match(os.pread(opened, _RECORD_BYTES, 0)):
        raise OSError(errno.EINVAL, "it holds something else than an audit log; name a new file in audit.path")


def _may_replace(path: str) -> bool:
    """Whether nothing but an older part of the log, or nothing at all, stands at a path."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        _require_ours(opened, os.fstat(opened))
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def _lock(opened: int, kind: int) -> bool:
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _mend(opened: int) -> None:
    """Ends a line that a writer left in its middle, so that the next one is not lost with it; not while anyone writes."""
    if not _lock(opened, fcntl.LOCK_EX):
        return
    try:
        size = os.fstat(opened).st_size
        if size and os.pread(opened, 1, size - 1) != b"\n":
            os.write(opened, b"\n")
    finally:
        fcntl.flock(opened, fcntl.LOCK_UN)


def _line(event: str, fields: Mapping[str, Any]) -> bytes:
    head = {"time": _now(), "event": event, "pid": os.getpid()}
    record = {**head, **fields}
    if len(record) < len(head) + len(fields):
        # what the event is called, and when and where it was, no field replaces
        record |= head
    line = _encoded(record)
    if len(line) > MAX_LINE_BYTES:
        # what is said of the call matters more than what it was given
        fields = {name: value for name, value in fields.items() if name not in head}
        line = _encoded({**head, **{name: _short(value) for name, value in fields.items()}, "cut": True})
    if len(line) > MAX_LINE_BYTES:
        line = _encoded({**head, "cut": True})
    return line + b"\n"


def _now() -> str:
    """The time in ISO 8601, UTC, to the millisecond."""
    second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_day_and_time(second)}.{nanoseconds // 1_000_000:03}Z"


@lru_cache(maxsize=1)
def _day_and_time(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value[:200]
    return value if isinstance(value, (int, float, bool)) or value is None else "…"


def _encoded(record: Mapping[str, Any]) -> bytes:
    try:
        encoded = msgspec.json.encode(record)
    except (UnicodeError, ValueError, TypeError, RecursionError, OverflowError):
        encoded = msgspec.json.encode(_plain(record))
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    text = encoded.decode("utf-8", "replace")
    return _UNSEEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode("utf-8")


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without what JSON cannot hold: lone surrogates, numbers beyond 64 bits, objects of the program."""
    kept = redacted(dict(record))
    return {str(name): repr(value).encode("ascii", "backslashreplace").decode() for name, value in kept.items()}
