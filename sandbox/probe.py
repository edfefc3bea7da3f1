"""Which program sandboxes on this machine, found by doing it with the flags of a real run, and kept.

`auto` means bubblewrap; where that does not work, nsjail, if its own try of all checks does (ruling 39), and the answer
says so. A program that was asked for by name is never replaced. A failure says its cause and remedy and is looked at
again after ten minutes, one for want of descriptors, memory, processes or space after 1, 2, 4 … s; nothing is ever tried
with fewer flags.
"""

from __future__ import annotations

import os
import threading
import time
from typing import ClassVar

import msgspec

from tamis.sandbox import host
from tamis.sandbox.backends import seccomp, unsandboxed
from tamis.sandbox.backends.choice import BACKENDS, BUBBLEWRAP, NSJAIL, Backend, is_lack
from tamis.sandbox.job import Binary
from tamis.sandbox.limits import cgroups
from tamis.sandbox.model import BackendChoice, Interpreter, Limits, Probe, Unavailable
from tamis.sandbox.paths import claims

RETRY_SECONDS = 600.0
PASSING_SECONDS = 1.0
"""After how long a want is looked at again; twice as long each time that it is still there, at most a minute."""
_MOST_PASSING_SECONDS = 60.0
_PAUSES = (0.05, 0.25)
"""Before a want is an answer, it is looked at again: as root, with another uid."""
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
    seconds: float = 0.0
    """How long a failure is kept."""


class _Cache:
    lock = threading.Lock()
    kept: ClassVar[dict[str, _Kept]] = {}
    lack: tuple[float, str] = (0.0, "")


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
        seconds = kept.seconds if kept.found.passing else RETRY_SECONDS
        return kept.found if time.monotonic() - kept.at <= seconds else None
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
        probe = None if refresh else cached(backend)
        if probe is not None:
            return probe
        if backend != "auto":
            return _tried(BACKENDS[backend], refresh)
        first = _tried(BUBBLEWRAP, refresh)
        return first if first.available else _chosen(first, _tried(NSJAIL, refresh))


def _tried(backend: Backend, refresh: bool) -> Probe:
    probe = None if refresh else _kept(backend.name)
    if probe is not None:
        return probe
    before = _Cache.kept.get(backend.name)
    probe, binary = _look(backend)
    for pause in _PAUSES:
        if not probe.passing:
            break
        time.sleep(pause)
        probe, binary = _look(backend)
    seconds = PASSING_SECONDS
    if before is not None and before.found.passing:
        seconds = min(_MOST_PASSING_SECONDS, before.seconds * 2)
    _Cache.kept[backend.name] = _Kept(probe, binary, time.monotonic(), seconds)
    return probe


def note_lack(reason: str, remedy: str) -> None:
    """A run could not be started for want of something; `lately_lacked` tells it for a minute."""
    _Cache.lack = (time.monotonic(), f"{reason}; remedy: {remedy}" if remedy else reason)


def lately_lacked() -> str:
    """What the last runs could not have, with the remedy; empty when there was enough."""
    at, text = _Cache.lack
    return text if text and time.monotonic() - at <= _MOST_PASSING_SECONDS else ""


def _chosen(first: Probe, second: Probe) -> Probe:
    """Of a bubblewrap that does not work and nsjail, what `auto` means."""
    if second.available:
        note = f"bubblewrap does not work here, so nsjail is used: {first.reason}; remedy: {first.remedy}"
        return msgspec.structs.replace(second, notes=(note, *second.notes))
    return msgspec.structs.replace(first, notes=(f"nsjail does not work either: {second.reason}",))


def _look(backend: Backend) -> tuple[Probe, Binary]:
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
        left = claims.put_back_all() if os.geteuid() == 0 else ()
        notes = (*backend.notes(binary), *cgroups.notes(), *left)
    except seccomp.UnsupportedMachineError as error:
        reason, remedy = f"no system call filter is known for {error}", "run on x86_64 or aarch64"
    except Unavailable as error:
        reason, remedy = backend.explain(error.reason, error.remedy)
        passing = is_lack(error)
    except OSError as error:
        passing = is_lack(error)
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
        return available, binary
    failed = Probe(
        available=False,
        backend=backend.name,
        version=binary.version,
        path=binary.path,
        reason=reason,
        remedy=remedy,
        passing=passing,
    )
    return failed, binary


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
    # only here: what was found is kept, and most processes never try
    from tamis.sandbox.inside import run_inside

    shell = Interpreter("python", "/bin/sh")
    ended = run_inside(backend, binary, machine, shell, ("/bin/sh", "-c", _CHECKS), Limits(wall_ms=10_000))
    text = (ended.stderr + ended.stdout).decode("utf-8", "replace").strip()
    if ended.ending != "exit" or ended.exit_code != 0:
        raise Unavailable(text or f"the sandbox's own check ended with {ended.exit_code} ({ended.ending})")
