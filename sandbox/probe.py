"""Which program sandboxes on this machine, found by doing it with the flags of a real run, and kept.

`auto` means bubblewrap; where that does not work, nsjail, if its own try of all checks does (ruling 39), and the answer
says so. A program that was asked for by name is never replaced. A failure says its cause and remedy and is looked at
again after ten minutes, one for want of descriptors, memory, processes or space at the next run; nothing is ever tried with fewer flags.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import ClassVar

import msgspec

from tamis.sandbox import engine, host
from tamis.sandbox.backends import seccomp, unsandboxed
from tamis.sandbox.backends.choice import BACKENDS, BUBBLEWRAP, NSJAIL, Backend
from tamis.sandbox.interpreters import Interpreter
from tamis.sandbox.job import Binary, Job
from tamis.sandbox.limits import cgroups
from tamis.sandbox.model import BackendChoice, Limits, Probe, Unavailable
from tamis.sandbox.paths import grants
from tamis.sandbox.paths.walk import open_absolute

RETRY_SECONDS = 600.0
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC})
"""What this process may have again the next moment: no answer about the machine."""
_CAP_SYS_ADMIN = 1 << 21

# Inside: every layer that can be seen from there must be there, and the kernel's settings closed even to the user who
# opens them for writing. Only what the shell itself can do: each further program costs a millisecond.
_CHECKS = """
fail() { echo "$1"; exit 41; }
while read -r key value rest; do case $key in
  Seccomp:) filter=$value;; CapEff:) caps=$value;; CapBnd:) bound=$value;; NoNewPrivs:) closed=$value;; Uid:) uid=$value;;
esac; done </proc/self/status
[ "$filter" = 2 ] || fail 'the system call filter is not in force'
[ "$caps$bound" = 00000000000000000000000000000000 ] || fail "capabilities are left: $caps, $bound"
[ "$closed" = 1 ] || fail 'privileges could be gained'
[ "$uid" = 1000 ] || fail "the user inside is $uid"
read -r inside outside count </proc/self/uid_map
[ "$inside $count" = '1000 1' ] || fail "the users inside are $inside, and $count of them"
[ $$ -lt 10 ] || fail "the processes of the host are to be seen: this is $$"
while read -r name rest; do case $name in *:) [ "$name" = lo: ] || fail "there is a network: $name";; esac; done </proc/net/dev
if { true >>/proc/sys/kernel/core_pattern; } 2>/dev/null; then fail '/proc/sys is writable'; fi
for place in / /dev/ /usr/ /etc/ /tool/; do
  if { true >"${place}probe"; } 2>/dev/null; then fail "$place is writable"; fi
done
exit 0
"""


class _Kept(msgspec.Struct, frozen=True):
    found: Probe
    binary: Binary
    at: float
    passing: bool = False
    """A failure by want of something, which the next run may have."""


class _Cache:
    lock = threading.Lock()
    kept: ClassVar[dict[str, _Kept]] = {}


def cached(backend: BackendChoice = "auto") -> Probe | None:
    """The kept answer, or None when there is none or a failure is due for another look."""
    bare = unsandboxed.asked()
    if bare is not None:
        return bare
    if backend != "auto":
        return _kept(backend)
    first = _kept(BUBBLEWRAP.name)
    if first is None or first.available:
        return first
    second = _kept(NSJAIL.name)
    return None if second is None else _chosen(first, second)


def _kept(name: str) -> Probe | None:
    kept = _Cache.kept.get(name)
    if kept is None:
        return None
    if not kept.found.available:
        return kept.found if not kept.passing and time.monotonic() - kept.at <= RETRY_SECONDS else None
    if ("cgroup" in kept.found.layers) != bool(cgroups.status().version):
        return None  # lost, or this process was moved
    return kept.found


def probed_binary(backend: str) -> Binary:
    """The program that the kept answer is about: a run uses no other."""
    return _Cache.kept[backend].binary


def forget() -> None:
    """Have the next run try the sandbox anew."""
    with _Cache.lock:
        _Cache.kept.clear()


def probe(refresh: bool = False, backend: BackendChoice = "auto") -> Probe:
    """Try the sandbox once (about 30 ms) and keep the answer for this process. Never raises."""
    bare = unsandboxed.asked()
    if bare is not None:
        return bare
    with _Cache.lock:
        found = None if refresh else cached(backend)
        if found is not None:
            return found
        if backend != "auto":
            return _tried(BACKENDS[backend], refresh)
        first = _tried(BUBBLEWRAP, refresh)
        return first if first.available else _chosen(first, _tried(NSJAIL, refresh))


def _tried(backend: Backend, refresh: bool) -> Probe:
    found = None if refresh else _kept(backend.name)
    if found is None:
        found, binary, passing = _look(backend)
        _Cache.kept[backend.name] = _Kept(found, binary, time.monotonic(), passing)
    return found


def _chosen(first: Probe, second: Probe) -> Probe:
    """Of a bubblewrap that does not work and nsjail, what `auto` means."""
    if second.available:
        note = f"bubblewrap does not work here, so nsjail is used: {first.reason}; remedy: {first.remedy}"
        return msgspec.structs.replace(second, notes=(note, *second.notes))
    return msgspec.structs.replace(first, notes=(f"nsjail does not work either: {second.reason}",))


def _look(backend: Backend) -> tuple[Probe, Binary, bool]:
    binary, passing = Binary(""), False
    try:
        binary = backend.find()
        binary = backend.ready(binary)
        _check_root()
        machine = seccomp.supported_machine()
        cgroups.look_again()
        try:
            _try(backend, binary, machine)
        except Unavailable as error:
            if not isinstance(error if error.__cause__ is None else error.__cause__, cgroups.GroupLost):
                raise
            cgroups.give_up(error.reason)
            _try(backend, binary, machine)
        notes = (*backend.notes(binary), *cgroups.notes())
    except seccomp.UnsupportedMachineError as error:
        reason, remedy = f"no system call filter is known for {error}", "run on x86_64 or aarch64"
    except Unavailable as error:
        reason, remedy = backend.explain(error.reason, error.remedy)
        passing = _is_lack(error)
    except OSError as error:
        passing = _is_lack(error)
        reason = f"the sandbox could not be tried: {error}"
        remedy = "see whether this process is out of descriptors, memory, processes or space for temporary files"
    else:
        groups = cgroups.status().version
        available = Probe(
            available=True,
            backend=backend.name,
            version=binary.version,
            path=binary.path,
            layers=backend.layers(root=os.geteuid() == 0, cgroup=bool(groups)),
            memory=f"cgroup {groups}+rlimit+watchdog" if groups else "rlimit+watchdog",
            network="namespace",
            pids=f"cgroup {groups}+rlimit" if groups else "rlimit",
            notes=notes,
        )
        return available, binary, False
    failed = Probe(
        available=False, backend=backend.name, version=binary.version, path=binary.path, reason=reason, remedy=remedy
    )
    return failed, binary, passing


def _is_lack(error: BaseException | None) -> bool:
    """Whether the failure, or what it came of, is a want of something."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _LACKS:
            return True
        error = error.__cause__ or error.__context__
    return False


def _check_root() -> None:
    if os.geteuid() != 0:
        return
    host.find_setpriv()
    if not host.effective_capabilities() & _CAP_SYS_ADMIN:
        raise Unavailable(
            "this process is root without CAP_SYS_ADMIN, so it can neither build a sandbox nor give up root safely",
            "run as an ordinary user, or give the container CAP_SYS_ADMIN",
        )


def _try(backend: Backend, binary: Binary, machine: str) -> None:
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
            machine=machine,
        )

        async def once() -> engine.Ended:
            opened = {name: item.fd for name, item in opening.opened.items()}
            filter_bytes = seccomp.filter_bytes(machine)
            return await engine.execute(
                backend.build(job), opened=opened, stdin=b"", limits=limits, seccomp=filter_bytes
            )

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
