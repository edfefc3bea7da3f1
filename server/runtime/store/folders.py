"""Where Tamis keeps what outlives a process: state (audit log, records) and cache (dependency environments).

Below the user's own folders, private to the user, and never below a tool's folder. Must not know what is kept there.
"""

from __future__ import annotations

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
