"""Where Tamis keeps what outlives a process: state (audit log, records) and cache (dependency environments).

Below the user's own folders, private to the user, and never below a tool's folder. Must not know what is kept there.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tamis.sandbox.paths.never import own_folder


def state_folder() -> Path:
    """The folder for state: ``TAMIS_STATE_DIR``, else ``$XDG_STATE_HOME/tamis``, else ``~/.local/state/tamis``."""
    return _chosen("TAMIS_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def cache_folder() -> Path:
    """The folder for what can be made again: ``TAMIS_CACHE_DIR``, else ``$XDG_CACHE_HOME/tamis``, else ``~/.cache/tamis``."""
    return _chosen("TAMIS_CACHE_DIR", "XDG_CACHE_HOME", ".cache")


def make_private(folder: Path) -> Path:
    """Makes a folder that only this user can enter. Raises OSError with the cause, also when it is someone else's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.stat()
    if facts.st_uid != os.geteuid():
        raise PermissionError(1, "belongs to another user", str(folder))
    if facts.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _chosen(own: str, standard: str, fallback: str) -> Path:
    return Path(own_folder(own, standard, fallback))


def write_private(path: Path, data: bytes) -> None:
    """Puts a file that only this user may read in the place of ``path``, whole or not at all, and on the disk. Raises OSError."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(new, path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
