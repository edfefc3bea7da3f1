"""``fam://NAME/path`` to a file on disk, inside the folder that the operator gave the name (seed 002 §3.3, T17, T18).

A path that leaves the folder, runs through a link or is not there is refused with its cause. The file is shown to the tool
read-only at its own path, and the parameter's value is that path. Where a tool writes to a URI (``x-resource``), its value is the path too,
if the tool may write there. A host that reads resources itself is shown less: see ``ShownPlaces``. Must not know calls.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast
from urllib.parse import quote, unquote

import msgspec

from tamis.protocols.suggest import best, hint
from tamis.server.runtime.policy.path_grants import inside, place_of, real_roots
from tamis.server.runtime.settings.files import Stamp, can_be_path

if TYPE_CHECKING:
    from tamis.server.runtime.settings.config import Settings
    from tamis.server.runtime.tools.registry import Registry

SCHEME = "fam://"
MAX_URI_CHARS = 4_096
MAX_URIS = 64
"""So many parameters of one call may be given by URI."""
_MAX_NAMES = 1_000
"""So many names of a folder are looked at for a suggestion."""
MAX_SHOWN_FILES = 2_000
"""So many files of all places together are listed to a host."""
MAX_SHOWN_BYTES = 8 * 1024 * 1024
_MAX_LOOKED_AT = 20_000
_MAX_SHOWN_DEPTH = 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
    name = name if name in resources else unquote(name)
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


# What a host is shown that reads resources itself, as MCP's do: no person chose the file, and no sandbox stands between it and the model.


class ShownFile(msgspec.Struct, frozen=True):
    """A file that a host may read: its URI, its path below the place, its size in bytes."""

    uri: str
    path: str
    size: int


class ShownPlaces:
    """The folders behind ``fam://`` as far as a host may look into them itself.

    A place in the root is shown, and with ``outside`` one elsewhere that ``policy.readRoots`` opens. In it no name that begins with a dot or is
    masked in projects (``tamis.toml``, keys), nothing that is never mounted, nothing of what Tamis keeps, no link, no special file.
    """

    def __init__(self, settings: Settings, root: Path, registry: Registry, *, outside: bool) -> None:
        from tamis.sandbox.paths.never import is_hidden_name

        real = os.path.realpath(root)
        self._kept = place_of("", registry, settings, root).hidden
        self._root = root
        opened = real_roots(settings.policy.read_roots) if outside else []
        self.tops: dict[str, str] = {}
        """The real folder of each place, by its name."""
        for name, folder in sorted(settings.resources.items()):
            top = os.path.realpath(root / folder) if can_be_path(folder) else ""
            if inside(top, real):
                is_open = not any(is_hidden_name(part) for part in top[len(real) :].split("/") if part)
            else:
                is_open = any(inside(top, allowed.real) for allowed in opened)
            if is_open and top and not self._is_closed(top):
                self.tops[name] = top

    def files(self, name: str = "", prefix: str = "") -> list[ShownFile]:
        """The files of all places, or of one, whose path begins with ``prefix``; by URI, a bounded number of them."""
        from tamis.sandbox.model import Refusal
        from tamis.sandbox.paths.walk import open_absolute

        shown: list[ShownFile] = []
        budget = [_MAX_LOOKED_AT]
        for place, top in self.tops.items():
            if name and place != name:
                continue
            with contextlib.suppress(OSError, Refusal), open_absolute(top) as opened:
                folder = os.open(".", _FOLDER, dir_fd=opened.fd)
                try:
                    found = self._below(folder, place, top, "", prefix, budget)
                    shown += islice(found, MAX_SHOWN_FILES - len(shown))
                finally:
                    os.close(folder)
        return sorted(shown, key=lambda file: file.uri)

    def read(self, uri: str) -> bytes:
        """What a file holds. Raises ``ResourceError``, in the same words for what is not there and what is not shown."""
        with self._opened(uri) as descriptor:
            size = os.fstat(descriptor).st_size
            if size > MAX_SHOWN_BYTES:
                raise ResourceError(f"it has {size} bytes; at most {MAX_SHOWN_BYTES} are read")
            content = bytearray()
            while piece := os.read(descriptor, 1 << 20):
                content += piece
                if len(content) > MAX_SHOWN_BYTES:
                    raise ResourceError(f"it grows; at most {MAX_SHOWN_BYTES} bytes are read")
            return bytes(content)

    def stamp(self, uri: str) -> Stamp | None:
        """What tells that a file is another than before; None where there is none to be shown."""
        try:
            with self._opened(uri) as descriptor:
                facts = os.fstat(descriptor)
                return facts.st_mtime_ns, facts.st_size, facts.st_ino
        except (ResourceError, OSError):
            return None

    @contextlib.contextmanager
    def _opened(self, uri: str) -> Generator[int]:
        from tamis.sandbox.model import Refusal
        from tamis.sandbox.paths.walk import open_absolute, open_beneath, relative_parts

        missing = ResourceError("there is no such resource")
        try:
            place = place_of_uri(uri, self.tops, self._root)
            parts = relative_parts(place.path)
            # a top that has become a link meanwhile is another folder than the one that was judged
            if place.top != self.tops[place.name] or any(map(_is_hidden, parts)):
                raise missing
            if self._is_closed("/".join((place.top.rstrip("/"), *parts))):
                raise missing
            with open_absolute(place.top) as top, open_beneath(top, "/".join(parts)) as file:
                if file.is_folder:
                    raise missing
                descriptor = os.open(f"/proc/self/fd/{file.fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (Refusal, ResourceError, OSError):
            raise missing from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _below(
        self, folder: int, place: str, top: str, path: str, prefix: str, budget: list[int], depth: int = 0
    ) -> Iterator[ShownFile]:
        for name, facts in _children(folder, budget):
            below = f"{path}{name}"
            is_folder = stat.S_ISDIR(facts.st_mode)
            on_way = below.startswith(prefix) or (is_folder and prefix.startswith(f"{below}/"))
            if not on_way or self._is_closed(f"{top.rstrip('/')}/{below}"):
                continue
            if not is_folder:
                uri = f"{SCHEME}{quote(place, safe='')}/{quote(below)}"
                if len(uri) <= MAX_URI_CHARS:
                    yield ShownFile(uri, below, facts.st_size)
            elif depth < _MAX_SHOWN_DEPTH:
                with contextlib.suppress(OSError):
                    inner = os.open(name, _FOLDER, dir_fd=folder)
                    try:
                        yield from self._below(inner, place, top, f"{below}/", prefix, budget, depth + 1)
                    finally:
                        os.close(inner)

    def _is_closed(self, path: str) -> bool:
        from tamis.sandbox.paths.never import never_shown

        return bool(never_shown(path)) or any(inside(path, kept) for kept in self._kept)


def _is_hidden(name: str) -> bool:
    from tamis.sandbox.paths.never import is_hidden_name

    return name.startswith(".") or is_hidden_name(name)


def _children(folder: int, budget: list[int]) -> list[tuple[str, os.stat_result]]:
    """The plain files and folders in a folder that may be named, sorted; links and special files are none."""
    children: list[tuple[str, os.stat_result]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            budget[0] -= 1
            if budget[0] < 0:
                break
            if _is_hidden(entry.name) or "\\" in entry.name or not _is_text(entry.name):
                continue
            with contextlib.suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode):
                    children.append((entry.name, facts))
    return sorted(children)


def _is_text(name: str) -> bool:
    """Whether a name can stand in a URI: bytes that are no UTF-8 cannot."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
