"""The user's record of trusted folders: which `tamis.toml` they accepted, and the files that it names, as they were then.

One file in the state folder, replaced as a whole under a lock, so that processes that trust and revoke at once all count. A record that
cannot be read is no trust. Must not ask anyone.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tamis.server.runtime.store.folders import make_private, state_folder, write_private

RECORD = "trust.json"
VERSION = 1
MAX_BYTES = 16 * 1024 * 1024
MAX_HASHED = 64 * 1024 * 1024
"""Bytes of a named file that its digest is made of; a longer one is never trusted."""
MAX_FILES = 100
LOCK_S = 10.0
_POLL_S = 0.02
_UNREADABLE = "unreadable"


class Trusted(msgspec.Struct, frozen=True):
    """A folder as it was when its user trusted it."""

    text: str
    """What its ``tamis.toml`` held."""
    files: dict[str, str]
    """The digests of the files that it names, by path."""
    at: int
    """When, in seconds since 1970."""


class _Record(msgspec.Struct):
    version: int = VERSION
    folders: dict[str, Trusted] = {}


class _Stamp(msgspec.Struct):
    version: int


class TrustFault(Exception):  # noqa: N818 (a fault of the record)
    """Why the record cannot be read or changed; the message is one sentence with a remedy."""


def is_trusted(root: Path, text: bytes, values: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the user trusted a folder whose file holds this, and what is wrong with the record (empty: nothing)."""
    try:
        entry = _read().folders.get(os.path.realpath(root))
    except TrustFault as fault:
        return False, f"{fault}; no folder counts as trusted"
    # What a text names that nobody accepted is not looked at.
    if entry is None or entry.text != _as_recorded(text):
        return False, ""
    return entry == _now(root, text, values, entry.at), ""


def changed_since(root: Path, values: Mapping[str, Any]) -> dict[str, str]:
    """The files that a folder's settings name, or named when it was trusted, that are other ones now, each with what happened to it.

    Empty where the folder was not trusted. Raises ``TrustFault``.
    """
    entry = _read().folders.get(os.path.realpath(root))
    if entry is None:
        return {}
    now = _now(root, b"", values, 0).files
    words: dict[str, str] = {}
    for path in sorted({*entry.files, *now}):
        if path not in entry.files:
            words[path] = "was not named, or not there"
        elif path not in now:
            words[path] = "is not there" if not os.path.lexists(path) else "is not named any more"
        elif entry.files[path] != now[path]:
            words[path] = "has changed"
    return words


def trusted_folders() -> dict[str, Trusted]:
    """Every folder of the record, by its real path. Raises ``TrustFault``."""
    return dict(sorted(_read().folders.items()))


def trust(root: Path, text: bytes, values: Mapping[str, Any]) -> None:
    """Records that the user trusts a folder as it is. Raises ``TrustFault``."""
    entry = _now(root, text, values, int(time.time()))
    unread = [path for path, digest in entry.files.items() if digest == _UNREADABLE]
    if unread:
        raise TrustFault(f"{unread[0]} is named by tamis.toml and cannot be read as a regular file: mend it first")

    def add(folders: dict[str, Trusted]) -> bool:
        folders[os.path.realpath(root)] = entry
        return True

    _change(add)


def revoke(folder: str) -> bool:
    """Takes a folder out of the record; whether it was there. Raises ``TrustFault``."""

    def take(folders: dict[str, Trusted]) -> bool:
        return folders.pop(os.path.realpath(folder), None) is not None

    return _change(take)


def _now(root: Path, text: bytes, values: Mapping[str, Any], at: int) -> Trusted:
    files = {path: _digest(path) for path in named_files(os.path.realpath(root), values)}
    return Trusted(_as_recorded(text), files, at)


def _as_recorded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


# What a file names


def named_files(root: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a folder's settings name and that are not the system's own: programs, the profile, servers' scripts."""
    named = [values.get(f"sandbox.interpreters.{name}", "") for name in ("python", "nodejs", "bun", "uv")]
    named += [word for runtime in values.get("sandbox.runtimes", {}).values() for word in runtime.command]
    named.append(values.get("profile", ""))
    named += [os.path.join(item.folder, item.script) for item in values.get("mcpServers", {}).values() if item.script]
    paths = [os.path.join(root, os.path.expanduser(name)) for name in named if name and "\0" not in name]
    real = [os.path.realpath(path) for path in paths]
    return tuple(sorted(path for path in {*real} if os.path.lexists(path) and not _is_systems(path, root)))[:MAX_FILES]


def _is_systems(path: str, root: str) -> bool:
    """Whether a file is the machine's: its packages replace it now and then, and no folder can."""
    return path.startswith(_SYSTEM) and not path.startswith(root.rstrip("/") + "/")


_SYSTEM = ("/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/local/bin/", "/bin/", "/sbin/", "/nix/store/")


def _digest(path: str) -> str:
    """SHA-256 of a regular file; a word for one that cannot be read, and for a folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return _UNREADABLE
    try:
        facts = os.fstat(descriptor)
        if stat.S_ISDIR(facts.st_mode):
            return "folder"
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_HASHED:
            return _UNREADABLE
        with open(descriptor, "rb", closefd=False) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return _UNREADABLE
    finally:
        os.close(descriptor)


# The record


def _path() -> Path:
    return state_folder() / RECORD


def _read() -> _Record:
    path = _path()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _Record()
    except OSError as error:
        raise TrustFault(f"the record of trust {path} cannot be read: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            raise TrustFault(f"the record of trust {path} is not this user's own file: remove it")
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise TrustFault(f"the record of trust {path} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    return _decoded(data, path)


def _decoded(data: bytes, path: Path) -> _Record:
    try:
        if len(data) > MAX_BYTES:
            raise ValueError
        if msgspec.json.decode(data, type=_Stamp).version > VERSION:
            raise TrustFault(f"the record of trust {path} is from a newer version of Tamis: use that one")
        return msgspec.json.decode(data, type=_Record)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise TrustFault(f"the record of trust {path} is damaged: remove it and trust the folders again") from None


def _change(change: Callable[[dict[str, Trusted]], bool]) -> bool:
    """Changes the record as it is now; what ``change`` says. A record that cannot be read is left as it is."""
    path = _path()
    try:
        make_private(path.parent)
        with _locked(path.with_suffix(".lock")):
            record = _read()
            changed = change(record.folders)
            if changed:
                _write(path, msgspec.json.encode(record))
    except OSError as error:
        raise TrustFault(f"the record of trust {path} cannot be written: {error.strerror or error}") from None
    return changed


def _write(path: Path, data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise TrustFault(
            f"the record of trust {path} is full: `tamis trust --revoke` folders that are not used any more"
        )
    write_private(path, data)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        end = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TrustFault(f"{path} is held by another process: try again when that one has ended") from None
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)
