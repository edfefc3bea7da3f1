"""Folders as a whole: removed, though they are read-only, and measured. No link is ever followed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a folder with all below it, read-only or not; no link is followed, and what is gone already is fine."""
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            return
        path.chmod(0o700)
        if os.geteuid() != 0:
            for _, folders, _, fd in os.fwalk(path, follow_symlinks=False):
                for name in folders:
                    if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                        os.chmod(name, 0o700, dir_fd=fd)
    shutil.rmtree(path, ignore_errors=True)


def folder_size(path: Path, *, most_entries: int = 1_000_000) -> tuple[int, int]:
    """(bytes on disk, entries) below a folder, no link followed; counting stops at `most_entries`."""
    total = entries = 0
    for _, folders, files, fd in os.fwalk(path, follow_symlinks=False):
        for name in (*folders, *files):
            entries += 1
            with contextlib.suppress(OSError):
                total += os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks * 512
        if entries > most_entries:
            break
    return total, entries
