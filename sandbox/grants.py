"""Granted host paths: opened by walk, refused where they must never be shown, made writable for the throw-away uid.

The caller's policy decides what is granted; what stands here is refused whatever the policy says.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import stat
from collections.abc import Iterator
from pathlib import Path

from tamis.sandbox.job import Grant
from tamis.sandbox.model import Mount, PathRefused, RunRequest
from tamis.sandbox.walk import Opened, open_absolute, open_beneath, relative_parts

_NEVER = ("/proc", "/sys", "/dev", "/run", "/boot", "/var/run")
_NEVER_ITSELF = (
    "/",
    "/home",
    "/root",
    "/etc",
    "/usr",
    "/var",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/mnt",
    "/srv",
    "/tmp",
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
_SECRET_NAMES = frozenset(
    (
        *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".pgpass", ".git-credentials", ".npmrc"),
        *(".pypirc", ".password-store", ".mozilla", ".bash_history", ".python_history", ".terraform.d", ".vault-token"),
    )
)

MAX_ENTRIES = 20_000
MAX_DEPTH = 64


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _check_source(path: str, *, home: str) -> None:
    if any(_inside(path, place) for place in _NEVER) or path in _NEVER_ITSELF or path == home:
        raise PathRefused(f"{path} is never shown to a tool", "grant a folder below it")
    secret = next((name for name in path.split("/") if name in _SECRET_NAMES), None)
    if secret is not None:
        raise PathRefused(f"{path} holds secrets ({secret}) and is never shown to a tool", "grant another folder")


class Opening:
    """All descriptors of one request's folder and grants; `close()` releases them."""

    def __init__(self) -> None:
        self.grants: list[Grant] = []
        self.opened: dict[str, Opened] = {}

    def add(self, fd: str, opened: Opened, dest: str, *, writable: bool) -> None:
        """Show `opened` at `dest`."""
        self.opened[fd] = opened
        self.grants.append(Grant(fd, dest, writable))

    def close(self) -> None:
        """Release every descriptor."""
        for opened in self.opened.values():
            opened.close()


def open_grants(request: RunRequest, folder: Opened, opening: Opening) -> None:
    """Open the request's read and write grants into `opening`. Raises `PathRefused`."""
    home = os.path.expanduser("~")
    wanted = [(mount, False) for mount in request.read] + [(mount, True) for mount in request.write]
    seen: dict[str, bool] = {}
    entries: list[tuple[str, Opened, bool]] = []
    for index, (mount, writable) in enumerate(wanted):
        _check_source(mount.path, home=home)
        dest = _dest(request.folder, mount)
        if seen.get(dest) is not None:
            seen[dest] = seen[dest] or writable
            continue
        opened = open_absolute(mount.path)
        opening.opened[f"grant{index}"] = opened
        _check_dest(dest, request.folder, mount, folder, opened)
        if writable and not opened.is_folder:
            raise PathRefused(f"{mount.path} is a file: only a folder can be granted for writing", "grant its folder")
        seen[dest] = writable
        entries.append((dest, opened, writable))
    writable_dests = [dest for dest, writable in seen.items() if writable]
    for dest, opened, _ in sorted(entries, key=lambda entry: entry[0].count("/")):
        # a mount point below a writable folder could be swapped by the tool that writes there
        if any(dest != other and _inside(dest, other) for other in writable_dests):
            raise PathRefused(f"{dest} lies below a folder granted for writing", "grant only the outer folder")
        name = next(key for key, value in opening.opened.items() if value is opened)
        opening.grants.append(Grant(name, dest, seen[dest]))


def _dest(folder: str, mount: Mount) -> str:
    if mount.dest:
        return mount.dest
    if _inside(mount.path, folder) and mount.path != folder:
        return "/tool/" + mount.path[len(folder.rstrip("/")) + 1 :]
    return mount.path


def _check_dest(dest: str, folder: str, mount: Mount, opened_folder: Opened, opened: Opened) -> None:
    try:
        os.fsencode(dest)
    except UnicodeEncodeError as error:
        raise PathRefused("the place in the sandbox holds characters that have no bytes") from error
    if not dest.startswith("/") or posixpath.normpath(dest) != dest or "\0" in dest:
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
    if any(_inside(dest, place) for place in _OCCUPIED) or dest in _NEVER_ITSELF:
        raise PathRefused(f"nothing can be shown at {dest}", "give another place in the sandbox")


def require_readable(folder: Opened, script: str) -> None:
    """As root, the script runs under a uid of its own: its folder and file must be readable by all.

    Raises `PathRefused` with the command that helps.
    """
    current = os.dup(folder.fd)
    try:
        _require(current, folder.path, 0o5, folder.path)
        shown = folder.path
        for name in script.split("/") if script else ():
            following = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = following
            shown = f"{shown}/{name}"
            is_folder = stat.S_ISDIR(os.fstat(current).st_mode)
            _require(current, shown, 0o1 if is_folder else 0o4, folder.path)
    except OSError as error:
        raise PathRefused(f"{script}: {error.strerror}") from error
    finally:
        os.close(current)


def _require(fd: int, path: str, bits: int, folder: str) -> None:
    mode = os.fstat(fd).st_mode
    if mode & bits != bits:
        raise PathRefused(
            f"{path} has mode {stat.S_IMODE(mode):04o}: as root, tools run under a uid of their own and cannot read it",
            f"chmod -R go+rX {folder}, or run as an ordinary user",
        )


class Ownership:
    """As root: lends the writable folders to the throw-away uid for one run, and takes them back."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._lent: list[tuple[Opened, int, int]] = []

    def lend(self, folder: Opened) -> None:
        """Give a folder and what is in it to the uid. Raises `PathRefused` when it is too large to walk."""
        self._lent.append((folder, folder.stat.st_uid, folder.stat.st_gid))
        _own(folder, self.uid, self.uid, only=None)

    def take_back(self) -> None:
        """Give everything that the uid owns back to the folder's owner."""
        for folder, uid, gid in self._lent:
            with contextlib.suppress(OSError, PathRefused):
                _own(folder, uid, gid, only=self.uid)
        self._lent.clear()


def _own(folder: Opened, uid: int, gid: int, only: int | None) -> None:
    top = os.open(f"/proc/self/fd/{folder.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    count = 0
    try:
        for depth, _, folders, files, fd in _fwalk(top):
            for name in (*folders, *files):
                count += 1
                if count > MAX_ENTRIES or depth > MAX_DEPTH:
                    raise PathRefused(f"{folder.path} holds more than {MAX_ENTRIES} entries", "grant a smaller folder")
                with contextlib.suppress(FileNotFoundError):
                    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    linked = not stat.S_ISDIR(info.st_mode) and info.st_nlink > 1
                    if (only is None or info.st_uid == only) and not linked:
                        os.chown(name, uid, gid, dir_fd=fd, follow_symlinks=False)
        os.fchown(top, uid, gid)
    finally:
        os.close(top)


def _fwalk(top: int) -> Iterator[tuple[int, str, list[str], list[str], int]]:
    """(depth, path, folders, files, descriptor) of a folder and all below it; no link is followed."""
    for path, folders, files, fd in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        yield path.count("/"), path, folders, files, fd


def _drop_set_id(name: str, dir_fd: int) -> None:
    file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISREG(mode):
            Path(f"/proc/self/fd/{file}").chmod(stat.S_IMODE(mode) & 0o777)
    finally:
        os.close(file)


def sweep(folder: Opened) -> list[str]:
    """After a run: remove set-uid bits, device nodes, sockets and FIFOs from a writable folder; say what was there.

    Nothing is opened but folders, no link is followed; bounded in entries and depth.
    """
    found: list[str] = []
    top = os.open(f"/proc/self/fd/{folder.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    count = 0
    try:
        for depth, path, folders, files, fd in _fwalk(top):
            if depth > MAX_DEPTH:
                folders.clear()
                continue
            for name in (*folders, *files):
                count += 1
                if count > MAX_ENTRIES:
                    found.append(f"{folder.path}: more than {MAX_ENTRIES} entries, the rest was not looked at")
                    return found
                shown = posixpath.normpath(posixpath.join(folder.path, path, name))
                with contextlib.suppress(OSError):
                    mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
                    if stat.S_ISLNK(mode):
                        continue
                    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                        os.unlink(name, dir_fd=fd)
                        found.append(f"{shown}: a special file was removed")
                    elif mode & 0o6000 and stat.S_ISREG(mode):
                        _drop_set_id(name, fd)
                        found.append(f"{shown}: set-uid bits were removed")
    finally:
        os.close(top)
    return found
