"""Granted host paths: opened by walk, refused where they must never be shown (`never`), made writable for the throw-away uid.

The caller's policy decides what is granted; what stands here is refused whatever the policy says.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import posixpath
import stat
from pathlib import PurePosixPath

from tamis.sandbox.job import Grant, InsideFile
from tamis.sandbox.model import Mount, PathRefused, Refusal, RunRequest, lacks, size
from tamis.sandbox.paths.never import ITSELF, inside, never_by_name, never_shown
from tamis.sandbox.paths.walk import Opened, open_absolute, open_beneath, relative_parts

_NEVER_WRITTEN = (
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/boot",
    "/var/lib",
    "/var/log",
)
_OCCUPIED = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/stage",
)


def _is_systems(path: str) -> bool:
    return any(inside(path, place) for place in _NEVER_WRITTEN)


def closed(path: str, folder: str, *, writable: bool) -> str:
    """Why a plain absolute path cannot be granted to the tool in `folder`, or an empty text: what a run would be refused
    for, said before it."""
    reason = never_shown(path)
    if reason or (folder and inside(path, folder)):
        return reason
    return _place_fault(path, writable=writable)


def closed_by_name(path: str, *, writable: bool) -> str:
    """The part of `closed` that holds for every tool and machine: nothing is looked up."""
    return never_by_name(path) or _place_fault(path, writable=writable)


def _place_fault(path: str, *, writable: bool) -> str:
    if writable and _is_systems(path):
        return f"{path} belongs to the system and is never written by a tool"
    held = next((place for place in (*_OCCUPIED, "/tool", "/env") if inside(path, place)), None)
    return f"nothing can be shown at {path}: the sandbox has a {held} of its own" if held else ""


def _check_source(path: str, *, writable: bool, own: bool) -> None:
    # a second spelling of a closed place, such as `//etc` or `/etc/`, would pass by its name
    if posixpath.normpath(path) != path or path.startswith("//"):
        raise PathRefused(f"the path {path!r} is not written in its plain form", "write it without '..', '.' and '//'")
    reason = never_shown(path, own=own)
    if reason:
        raise PathRefused(reason, "grant another folder, or one below it")
    if writable and _is_systems(path):
        raise PathRefused(f"{path} belongs to the system and is never written by a tool", "grant another folder")


class Opening:
    """All descriptors of one request's folder and grants; `close()` releases them."""

    def __init__(self) -> None:
        self.grants: list[Grant] = []
        self.opened: dict[str, Opened] = {}

    def add(self, fd: str, opened: Opened, dest: str, *, writable: bool) -> None:
        """Show `opened` at `dest`."""
        self.opened[fd] = opened
        self.grants.append(Grant(fd, dest, writable, opened.path))

    def close(self) -> None:
        """Release every descriptor."""
        for opened in self.opened.values():
            opened.close()


def open_grants(request: RunRequest, folder: Opened, opening: Opening) -> None:
    """Open the request's read and write grants into `opening`. Raises `PathRefused`."""
    # what is granted for both is granted for writing
    wanted = [(mount, True) for mount in request.write] + [(mount, False) for mount in request.read]
    kept = _never_written(request) if request.write else set[tuple[int, int]]()
    seen: dict[str, bool] = {}
    sources: dict[str, str] = {}
    entries: list[tuple[str, Opened, bool]] = []
    for index, (mount, writable) in enumerate(wanted):
        ours = mount.own or inside(mount.path, request.folder)
        _check_source(mount.path, writable=writable and not ours, own=mount.own)
        dest = _dest(request.folder, mount)
        if sources.setdefault(dest, mount.path) != mount.path:
            raise PathRefused(f"two different places were to be shown at {dest}", "give each a place of its own")
        if dest in seen:
            continue
        opened = open_absolute(mount.path)
        opening.opened[f"grant{index}"] = opened
        _check_dest(dest, request.folder, mount, folder, opened)
        if writable and not opened.is_folder:
            raise PathRefused(f"{mount.path} is a file: only a folder can be granted for writing", "grant its folder")
        if writable and (opened.stat.st_dev, opened.stat.st_ino) in kept:
            raise PathRefused(
                f"{mount.path} holds the script itself: a tool that may write there could change what it is",
                "grant a folder that holds no script",
            )
        seen[dest] = writable
        entries.append((dest, opened, writable))
    writable_dests = [dest for dest, writable in seen.items() if writable]
    for dest, opened, _ in sorted(entries, key=lambda entry: entry[0].count("/")):
        # a mount point below a writable folder could be swapped by the tool that writes there
        if any(dest != other and inside(dest, other) for other in writable_dests):
            raise PathRefused(f"{dest} lies below a folder granted for writing", "grant only the outer folder")
        name = next(key for key, value in opening.opened.items() if value is opened)
        opening.grants.append(Grant(name, dest, seen[dest], opened.path))


def _never_written(request: RunRequest) -> set[tuple[int, int]]:
    """(device, inode) of every folder on the way to the script: writing in any of them could replace it."""
    kept: set[tuple[int, int]] = set()
    for folder in PurePosixPath(request.folder, request.script or "x").parents:
        with contextlib.suppress(OSError, ValueError):
            info = os.stat(folder, follow_symlinks=False)
            kept.add((info.st_dev, info.st_ino))
    return kept


def _dest(folder: str, mount: Mount) -> str:
    if mount.dest:
        return mount.dest
    if inside(mount.path, folder) and mount.path != folder:
        return "/tool/" + mount.path[len(folder.rstrip("/")) + 1 :]
    return mount.path


def _check_dest(dest: str, folder: str, mount: Mount, opened_folder: Opened, opened: Opened) -> None:
    try:
        os.fsencode(dest)
    except UnicodeEncodeError as error:
        raise PathRefused("the place in the sandbox holds characters that have no bytes") from error
    if not dest.startswith("/") or dest.startswith("//") or posixpath.normpath(dest) != dest or "\0" in dest:
        raise PathRefused(f"the place {dest!r} in the sandbox is no plain absolute path")
    if dest == "/tool" or mount.path == folder:
        raise PathRefused("the tool's own folder is always shown, and never writable", "grant a folder below it")
    if dest.startswith("/tool/"):
        # the mount point must already be there, and be what it seems: nothing is ever created below a tool's folder
        parts = relative_parts(dest[len("/tool/") :])
        with open_beneath(opened_folder, "/".join(parts)) as place:
            if place.is_folder != opened.is_folder:
                raise PathRefused(f"{dest} is not of the same kind as {mount.path}")
        return
    if any(inside(dest, place) for place in _OCCUPIED) or dest in ITSELF:
        raise PathRefused(f"nothing can be shown at {dest}", "give another place in the sandbox")


def closed_to(folder: Opened, script: str, owner: tuple[int, int] | None = None) -> PathRefused | None:
    """As root, the script runs under a uid of its own, for which nobody's rights hold but everybody's, or with `owner` those
    of that uid and group: why it cannot read its folder and file, with the command that helps."""
    current = os.dup(folder.fd)
    try:
        shown = folder.path
        fault = _closed(current, shown, 0o5 if folder.is_folder else 0o4, folder.path, owner)
        for name in script.split("/") if script else ():
            following = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = following
            shown = f"{shown}/{name}"
            is_folder = stat.S_ISDIR(os.fstat(current).st_mode)
            fault = fault or _closed(current, shown, 0o1 if is_folder else 0o4, folder.path, owner)
    except OSError as error:
        if lacks(error):
            raise
        raise PathRefused(f"{script}: {error.strerror}") from error
    finally:
        os.close(current)
    return fault


def _closed(fd: int, path: str, bits: int, folder: str, owner: tuple[int, int] | None) -> PathRefused | None:
    info = os.fstat(fd)
    mode = info.st_mode
    if owner is not None and info.st_uid == owner[0]:
        mode >>= 6
    elif owner is not None and info.st_gid == owner[1]:
        mode >>= 3
    if mode & bits == bits:
        return None
    return PathRefused(
        f"{path} has mode {stat.S_IMODE(info.st_mode):04o}: as root, tools run under a uid of their own and cannot read it",
        f"chmod -R go+rX {folder}, or run as an ordinary user",
    )


# A script that is pinned by its hash: the bytes that were checked are the bytes that run. A file can change after it was read. So the checked bytes
# are put into the sandbox as a file of its own, and the tool's folder is built around it from what stands beside the script, each entry by its
# descriptor. Every mount point is then in the sandbox's own tmpfs: none is looked up in a folder that somebody else can change (CVE-2026-87766).


MAX_BYTES = 16 * 1024 * 1024
MAX_BESIDE = 128


def pin_script(
    folder: Opened,
    script: str,
    integrity: str,
    opening: Opening,
    hidden: frozenset[str] = frozenset(),
    *,
    copied: bool = False,
) -> InsideFile:
    """Check `script` below `folder` against `integrity` (`sha256-` and base64) and open all that stands beside it.

    Links beside the script, and the names `hidden` at the top, are left out. Raises `Refusal` for another script, and for a folder with too many entries.
    """
    with open_beneath(folder, script) as file:
        content = _read(file, script)
    digest = "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()
    if digest != integrity:
        raise Refusal(
            f"the script '{script}' is not the one that execution.integrity pins; it is {digest}",
            "review the script, then pin its new hash",
        )
    here, place = folder, "/tool"
    parts = script.split("/")
    for level, part in enumerate(parts):
        following = _open_beside(here, place, part, opening, hidden if level == 0 else frozenset())
        if level < len(parts) - 1:
            if following is None or not following.is_folder:
                raise PathRefused(f"{script} changed while it was opened")
            opening.opened[f"tool-at-{level}"] = following
            here, place = following, f"{place}/{part}"
        elif following is not None:
            following.close()
    return InsideFile("script", f"/tool/{script}", content, copied)


def _read(file: Opened, script: str) -> bytes:
    descriptor = os.open(f"/proc/self/fd/{file.fd}", os.O_RDONLY | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Refusal(f"the script '{script}' is larger than {size(MAX_BYTES)}, which is the most that can be pinned")
    return content


def _open_beside(here: Opened, place: str, besides: str, opening: Opening, hidden: frozenset[str]) -> Opened | None:
    """Open all entries of a folder into `opening` but the hidden ones and one, which is returned."""
    descriptor = os.open(f"/proc/self/fd/{here.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = sorted(name for name in os.listdir(descriptor) if name == besides or name not in hidden)
    finally:
        os.close(descriptor)
    kept: Opened | None = None
    try:
        for name in names:
            try:
                fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here.fd)
            except FileNotFoundError:
                continue
            mode = os.fstat(fd).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.close(fd)
                continue
            opened = Opened(fd, f"{here.path}/{name}")
            if name == besides:
                kept = opened
                continue
            number = sum(1 for known in opening.opened if known.startswith("beside"))
            if number >= MAX_BESIDE:
                opened.close()
                raise Refusal(
                    f"more than {MAX_BESIDE} files and folders stand beside the pinned script",
                    "put the script into a folder of its own",
                )
            opening.add(f"beside{number}", opened, f"{place}/{name}", writable=False)
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    return kept
