"""The files of the setting ``schemaExtension``: rules that manifests have to fit besides those of Tamis (T4). Must not know manifests."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.paths import can_be_path, shown_name
from tamis.server.runtime.tools.loader import FileStamp, FoundFile, file_stamp, read_manifest_file

if TYPE_CHECKING:
    from tamis.protocols.manifest.extension import SchemaExtension

MAX_KEPT = 64
STEP_NS = 2_000_000_000
_kept: dict[str, tuple[FileStamp, str, SchemaExtension]] = {}
"""By path, as the file was read; its rules are compiled once."""


def extensions_of(root: Path, settings: Settings) -> tuple[SchemaExtension, ...]:
    """The rules in force, as their files are now. Never raises."""
    return tuple(_extension(root, name) for name in settings.schema_extension)


def _extension(root: Path, name: str) -> SchemaExtension:
    from tamis.protocols.manifest.extension import SchemaExtension

    shown = shown_name(name)
    if not can_be_path(name):
        return SchemaExtension(shown, "", "cannot be a file's name")
    path = str(root / name)
    stamp = file_stamp(path)
    kept = _kept.get(path)
    if (
        kept is not None
        and stamp is not None
        and kept[0] == stamp
        and kept[2].name == shown
        and max(stamp[1], stamp[2]) + STEP_NS < time.time_ns()
    ):
        return kept[2]
    file = read_manifest_file(path)
    if not isinstance(file, FoundFile):
        return SchemaExtension(shown, "", file.message)
    if kept is not None and kept[1] == file.text and kept[2].name == shown:
        made = kept[2]
    else:
        made = SchemaExtension(shown, file.text.removeprefix("\ufeff"))
    if file.stamp is not None:
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        _kept[path] = file.stamp, file.text, made
    return made
