"""Where a tool stands among the others, and which files no tool may write: what `permissions.py` must know beside the policy."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from tamis.protocols.manifest.reading import ExternalScript
from tamis.server.runtime.policy.path_grants import Place
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import FILE_NAME
from tamis.server.runtime.store.folders import cache_folder, state_folder
from tamis.server.runtime.tools.registry import Registry


def place_of(folder: str, registry: Registry, settings: Settings, root: Path) -> Place:
    """The place of a tool whose script stands in ``folder``."""
    scripts, folders = _standing(registry)
    real = os.path.realpath(root)
    own = [os.path.join(real, FILE_NAME)]
    if settings.profile:
        own.append(os.path.normpath(os.path.join(real, settings.profile)))
    kept = [state_folder(), cache_folder(), *([Path(real, settings.audit.path)] if settings.audit.path else [])]
    return Place(
        folder=folder,
        hidden=tuple(dict.fromkeys(path for one in kept for path in (str(one), os.path.realpath(one)))),
        protected=(*own, *scripts),
        neighbours=folders,
        searched=tuple(os.path.realpath(root / name) for name in settings.tools),
    )


@functools.lru_cache(maxsize=1)
def _standing(registry: Registry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The manifests and scripts of all registered tools, and their folders."""
    files: set[str] = set()
    folders: set[str] = set()
    for tool in registry.tools:
        files.add(tool.path)
        folders.add(tool.folder)
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript):
            files.add(os.path.normpath(os.path.join(tool.folder, handler.script_path)))
    files.update(error.path for error in registry.errors)
    return tuple(sorted(files)), tuple(sorted(folders))
