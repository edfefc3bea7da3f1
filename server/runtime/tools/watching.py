"""Whether anything that the registry is made of is other on disk than when it was read: definitions, workflows, the profile, the settings.

Asks the file system for times and sizes and reads nothing, so that asking often costs little; it works on every file system, also where
notifications do not reach (network and shared folders). Must not know what is done about it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import FILE_NAME, FRESH_NS, Stamp, can_be_path, folder_time, stamp_of
from tamis.server.runtime.tools.loader import IGNORE_FILES, is_definition, walk_files


class Seen(msgspec.Struct, frozen=True):
    """What the disk looked like before it was read, in nanoseconds since 1970."""

    files: dict[str, Stamp | None]
    folders: dict[str, int]
    taken: int


def look(root: Path, settings: Settings) -> Seen:
    """Looks at all that a registry of ``root`` is made of. Take it before reading: what changes meanwhile is then seen later."""
    taken = time.time_ns()
    files: dict[str, Stamp | None] = {}
    folders: dict[str, int] = {}
    for name in settings.tools:
        _add(root / name, folders, files, definitions=True)
    for name in settings.workflows:
        _add(root / name, folders, files, definitions=False)
    for name in (FILE_NAME, settings.profile, *settings.schema_extension):
        if name and can_be_path(name):
            path = str(root / name)
            files[path] = stamp_of(path)
    return Seen(files, folders, taken)


def differs(seen: Seen) -> bool:
    """Whether anything is other than it was, or may be without any sign of it."""
    since, until = seen.taken - FRESH_NS, seen.taken + FRESH_NS
    # what is from the future, because a clock was set back, was not written just then: its next change has another time
    for folder, before in seen.folders.items():
        if since < before <= until or folder_time(folder) != before:
            return True
    return any(
        (before is not None and since < before[0] <= until) or stamp_of(path) != before
        for path, before in seen.files.items()
    )


def _add(top: Path, folders: dict[str, int], files: dict[str, Stamp | None], *, definitions: bool) -> None:
    if not can_be_path(str(top)):
        return
    real = Path(os.path.realpath(top))
    folders[str(top)] = folder_time(str(top))
    if not os.path.isdir(real):
        return
    if definitions:
        wanted = is_definition
    else:
        from tamis.server.runtime.tools.workflows import is_workflow_name as wanted
    # Ignore files decide what is found.
    paths, _ = walk_files(real, lambda name: wanted(name) or name in IGNORE_FILES, folders)
    for path in paths:
        files[path] = stamp_of(path)
