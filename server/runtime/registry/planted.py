"""Manifests that a tool could have put there itself: standing in a tool folder is a permission (ruling 34), so it must be a person's doing.

Must not know how manifests are found or read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from tamis.server.runtime.rights.patterns import BadPattern, read_pattern


def writable_folders(asked: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """The folders that manifests ask to write below their own, each with the manifest that asks; given (manifest path, patterns)."""
    found: dict[str, str] = {}
    for manifest, patterns in asked:
        for text in patterns:
            try:
                pattern = read_pattern(text)
            except BadPattern:
                continue
            if pattern.parts and not (pattern.absolute or pattern.glob):
                found.setdefault(os.path.join(os.path.dirname(manifest), *pattern.parts), manifest)
    return found


def planted_in(path: str, writable: Mapping[str, str]) -> str:
    """The writable folder that a manifest stands in, or an empty text."""
    return next((folder for folder in _above(path) if folder in writable), "")


def _above(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    while folder != path:
        yield folder
        path, folder = folder, os.path.dirname(folder)
