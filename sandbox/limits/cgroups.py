"""Control groups where this process may make them: which, and one for each run.

A group holds what no per-process limit can: the memory of all processes of a run together, with the kernel's memory
for their pipes, sockets and files, and their number whatever their uid. Where none may be made, `status` says why, and
the limits are resource limits and the watchdog alone (`watchdog`).

Groups are made below this process's own group in each hierarchy, never above: `OWN/tamis-PID-RANDOM/COUNT-RANDOM`. The
folder of a process is locked for its life, so another can tell a dead one's and remove it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from tamis.sandbox import lifeline
from tamis.sandbox.classify import Pressure
from tamis.sandbox.job import MIB, SHM_BYTES
from tamis.sandbox.limits import cgroup_files
from tamis.sandbox.limits.cgroup_files import Bounds, Places, Unusable, Used, own_places
from tamis.sandbox.model import Limits, Unavailable

OWN_BYTES = 16 * MIB
"""What the sandbox's own processes and the kernel's records of them may take beside the script."""
OWN_PROCESSES = 4
"""Two monitors and two inits as root; half of it for an ordinary user."""
_FINISHING = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
_MOST_BYTES, _MOST_PROCESSES = 1 << 60, 4_000_000  # the kernel takes, and tells, little more
DELEGATE = "start it with `systemd-run --user --scope -p Delegate=yes -- tamis …` to have them"


class Group(Protocol):
    """One run's group."""

    def spawning(self) -> AbstractContextManager[None]:
        """Around the spawn; where the kernel has it, what is started within begins in the group."""
        ...

    def limit(self) -> None:
        """Set every limit and read it back. Raises `Unusable`."""
        ...

    async def place(self, pid: int) -> None:
        """See that a blocked process is in the group, moving it there if it is not. Raises `Unusable`."""
        ...

    async def adopt(self, pid: int) -> None:
        """Move a blocked process here that was not spawned by this thread. Raises `Unusable`."""
        ...

    def held_bytes(self) -> int:
        """Anonymous and shared memory of the run, files of a tmpfs among it, and what waits in network sockets; no
        caches. 0 when it cannot be read."""
        ...

    def kernel_bytes(self) -> int:
        """What the kernel keeps for the run: its pipes, mappings, page tables, and names and files that it can forget. 0
        when it cannot be read."""
        ...

    def used(self) -> Used:
        """What it has used so far."""
        ...

    def pressure(self) -> Pressure:
        """Which limits were met so far."""
        ...

    def kill(self) -> None:
        """SIGKILL everything in the group where the kernel has a word for it; else nothing."""
        ...

    def end(self) -> bool:
        """Remove the group. False while something is still in it; that is killed."""
        ...

    def leave(self) -> None:
        """Have it removed later."""
        ...


class Tree(Protocol):
    """The folder of this process, in which its runs' groups are made."""

    version: str
    folders: tuple[str, ...]
    notes: tuple[str, ...]

    def group(self, bounds: Bounds) -> Group:
        """A new empty group, not limited yet. Raises `Unusable`."""
        ...


class Status(msgspec.Struct, frozen=True):
    """`version` is `v1`, `v2` or empty; then `reason` and `remedy` say why and what gives groups."""

    version: str = ""
    reason: str = ""
    remedy: str = ""
    notes: tuple[str, ...] = ()


class GroupLost(Unavailable):
    """Raised for a run whose group failed. Nothing is run with less; the next run is made with what is found then."""


class _State:
    lock = threading.Lock()
    owner = 0
    place: bytes | None = None
    tree: Tree | None = None
    status = Status()


def status() -> Status:
    """Whether this process can make groups; looked for once, and again after it was moved or forked."""
    _current()
    return _State.status


def notes() -> tuple[str, ...]:
    """What an operator should know of it."""
    state = status()
    if state.version:
        return state.notes
    return (f"no control groups for runs: {state.reason}; {state.remedy}",)


def look_again() -> None:
    """Look again for groups where there were none."""
    if _State.tree is None:
        _State.owner = 0


def give_up(reason: str) -> None:
    """Do without groups from now on, because a run in one failed."""
    _State.tree = None
    _State.owner, _State.place = os.getpid(), _own_place()
    _State.status = Status(reason=reason, remedy="run `tamis doctor` again when that is mended")


def new_group(limits: Limits) -> Group | None:
    """A group for one run, or None where this process has none. Raises `GroupLost`."""
    tree = _current()
    if tree is None:
        return None
    memory = min(limits.memory_bytes + limits.tmp_bytes + SHM_BYTES + OWN_BYTES, _MOST_BYTES)
    with failing():
        return tree.group(Bounds(memory_bytes=memory, processes=min(limits.processes + OWN_PROCESSES, _MOST_PROCESSES)))


@contextlib.contextmanager
def failing() -> Generator[None]:
    """Around work with a group: when that fails, so does the run, and the next one looks anew."""
    try:
        yield
    except Unusable as error:
        if error.passing:
            remedy = "see whether this process is out of descriptors or memory"
            raise Unavailable(f"the run's control group could not be made: {error}", remedy) from error
        _State.owner = 0
        raise GroupLost(f"the run's control group failed: {error}", error.remedy or "run `tamis doctor`") from error


async def finish(group: Group) -> None:
    """Remove a group whose processes have ended, which the kernel may tell late."""
    for delay in _FINISHING:
        if group.end():
            return
        await asyncio.sleep(delay)
    if not group.end():
        group.leave()


def _current() -> Tree | None:
    place = _own_place()
    if place is None and _State.owner == os.getpid():
        return _State.tree
    with _State.lock:
        if (_State.owner, _State.place) != (os.getpid(), place):
            try:
                _State.tree = _open_tree(own_places())
                _State.status = Status(_State.tree.version, notes=_State.tree.notes)
                lifeline.clean(_State.tree.folders)
            except Unusable as error:
                _State.tree = None
                _State.status = Status(reason=str(error), remedy=error.remedy or DELEGATE)
                if error.passing:
                    return None  # and look again the next time
            _State.owner = os.getpid()
            _State.place = _own_place()  # looking may have moved this process to a leaf
        return _State.tree


def _own_place() -> bytes | None:
    """Where this thread is; None when that cannot be read, which says nothing about the place."""
    try:
        return cgroup_files.read("/proc/thread-self/cgroup")
    except OSError:
        return None


def _open_tree(places: Places) -> Tree:
    # imported here: most machines have one version or none
    first: Unusable | None = None
    if {"memory", "pids"} <= places.v1.keys():
        from tamis.sandbox.limits import cgroup_v1

        try:
            return cgroup_v1.open_tree({name: places.v1[name] for name in ("memory", "pids")})
        except Unusable as error:
            first = error
    if places.v2 is not None and first is None:
        from tamis.sandbox.limits import cgroup_v2

        return cgroup_v2.open_tree(places.v2, namespaced=places.v2_namespaced)
    raise first or Unusable(places.reason or "no hierarchy has both the memory and the pids controller")
