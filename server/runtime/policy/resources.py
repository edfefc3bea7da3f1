"""``fam://NAME/path`` to a file on disk, inside the folder that the operator gave the name (seed 002 §3.3, T17, T18).

A path that leaves the folder, runs through a link or is not there is refused with its cause. The file is shown to the tool
read-only at its own path, and the parameter's value is that path. Where a tool writes to a URI (``x-resource``), its value is the path too,
if the tool may write there. Must not know calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeGuard, cast
from urllib.parse import unquote

import msgspec

from tamis.protocols.suggest import best, hint
from tamis.server.runtime.policy.path_grants import inside
from tamis.server.runtime.settings.files import can_be_path

SCHEME = "fam://"
MAX_URI_CHARS = 4_096
MAX_URIS = 64
"""So many parameters of one call may be given by URI."""
_MAX_NAMES = 1_000
"""So many names of a folder are looked at for a suggestion."""


class ResourceError(Exception):
    """Why a URI leads to no resource."""


class ResourcePlace(msgspec.Struct, frozen=True):
    """Where a URI leads: ``path`` as it was written, decoded, below the real folder ``top`` of the resource ``name``."""

    name: str
    top: str
    path: str


def is_uris(candidate: object) -> TypeGuard[Mapping[str, str]]:
    """Whether this is a call's ``uris``: parameter names, each with a URI."""
    if not isinstance(candidate, Mapping):
        return False
    uris = cast("Mapping[object, object]", candidate)
    return len(uris) <= MAX_URIS and all(isinstance(part, str) for item in uris.items() for part in item)


def is_resource(uri: str) -> bool:
    """Whether a text has the scheme of resources, in any letter case."""
    return uri[: len(SCHEME)].lower() == SCHEME


def place_of_uri(uri: str, resources: Mapping[str, str], root: Path) -> ResourcePlace:
    """The folder that a URI names and the path in it, which is not looked at. Raises ``ResourceError``."""
    shown = uri if len(uri) <= 200 else uri[:199] + "…"
    if not is_resource(uri):
        raise ResourceError(f"'{shown}' is no {SCHEME} URI; resources are named {SCHEME}NAME/path")
    if len(uri) > MAX_URI_CHARS:
        raise ResourceError(f"'{shown}' has more than {MAX_URI_CHARS} characters")
    name, _, path = uri[len(SCHEME) :].partition("/")
    folder = resources.get(name)
    if folder is None:
        known = f"; known are {', '.join(sorted(resources))}" if resources else "; [resources] in tamis.toml names none"
        raise ResourceError(f"no resource folder '{name[:100]}' is configured{hint(best(name, resources)) or known}")
    if not can_be_path(folder):
        raise ResourceError(f"[resources] in tamis.toml gives '{name[:100]}' a name that no folder can have")
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise ResourceError(f"'{shown}': what its escapes stand for is no UTF-8") from None
    return ResourcePlace(name, os.path.realpath(root / folder), decoded)


def resolve_resource(uri: str, resources: Mapping[str, str], root: Path) -> str:
    """The real absolute path of a resource; raises ``ResourceError``."""
    # The walk that the sandbox trusts: component by component, no links.
    from tamis.sandbox.model import Refusal
    from tamis.sandbox.paths.walk import open_absolute, open_beneath, relative_parts

    place = place_of_uri(uri, resources, root)
    try:
        with open_absolute(place.top) as opened:
            parts = relative_parts(place.path)
            with open_beneath(opened, "/".join(parts)):
                return "/".join((place.top.rstrip("/"), *parts))
    except Refusal as refused:
        raise ResourceError(f"'{uri}': {refused.message}{_nearest(place)}") from refused
    except OSError as error:
        raise ResourceError(f"'{uri}': {error.strerror}") from error


def target_path(uri: str, resources: Mapping[str, str], root: Path, writable: Iterable[str]) -> str:
    """The absolute path that a URI names for a tool to write to, in one of the folders that it may write. Raises ``ResourceError``.

    Opens nothing and gives no right: it only says in the tool's words where a folder that was granted lies (T36).
    """
    from tamis.sandbox.model import Refusal
    from tamis.sandbox.paths.walk import relative_parts

    place = place_of_uri(uri, resources, root)
    try:
        parts = relative_parts(place.path)
    except Refusal as refused:
        raise ResourceError(f"'{uri}': {refused.message}") from refused
    path = "/".join((place.top.rstrip("/"), *parts))
    if not parts or not any(inside(path, folder) for folder in writable):
        raise ResourceError(
            f"'{uri}' lies in no folder that the tool may write; securityContext.fileAccess.allowWrite asks for one, policy.writeRoots opens it"
        )
    return path


def _nearest(place: ResourcePlace) -> str:
    """What may have been meant by a name that is not there, as the end of a sentence; nothing when the path is refused for another cause."""
    here = place.top
    for part in place.path.split("/"):
        following = os.path.join(here, part)
        if part in ("", ".", "..") or "\0" in part or os.path.islink(following):
            return ""
        if not os.path.lexists(following):
            near = best(part, _names(here))
            return hint(f"{SCHEME}{place.name}{os.path.join(here, near)[len(place.top.rstrip('/')) :]}") if near else ""
        here = following
    return ""


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _MAX_NAMES)]
    except OSError:
        return []
