"""Control groups of version 1: memory and pids are hierarchies of their own.

A process is not moved into a group: writing its number there waits for a grace period of the kernel (15 ms where it was
measured). Instead the thread that spawns goes in, alone and by writing 0, which needs no such wait, and comes back when
what it started is running. That has no limits until the thread is back, and what the thread itself is charged in that
half millisecond is some pages.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Generator, Iterable

from tamis.sandbox.classify import Pressure
from tamis.sandbox.limits.cgroup_files import (
    Bounds,
    Files,
    Unusable,
    Used,
    check_own,
    fields,
    make_folder,
    refused,
    remove_folders,
    remove_group,
    sweep,
)

_PAGE = os.sysconf("SC_PAGE_SIZE")
_IN_FLIGHT = 64 * _PAGE * ((os.cpu_count() or 1) + 1)
"""What the kernel may have taken and not given yet when it refuses: it charges 64 pages at once for each processor."""


def _number(text: str) -> int:
    text = text.strip()
    return int(text) if text.isdigit() else 0


class Tree:
    """This process's folders, one in each hierarchy."""

    version = "v1"

    def __init__(self, files: Files, homes: dict[str, str], name: str, lock: int) -> None:
        self.files = files
        self.homes = homes
        self.folders = tuple(f"{home}/{name}" for home in (homes["memory"], homes["pids"]))
        self.notes: tuple[str, ...] = ()
        self._lock = lock
        # kept open: the way back must not fail for want of a descriptor
        self._ways_back = {home: os.open(f"{home}/tasks", os.O_WRONLY | os.O_CLOEXEC) for home in homes.values()}
        self._count = itertools.count(1)
        self._left: list[Group] = []

    def group(self, bounds: Bounds) -> Group:
        """A new empty group."""
        self._left = [group for group in self._left if not group.end()]
        name = f"{next(self._count)}-{secrets.token_hex(8)}"
        memory, pids = (f"{folder}/{name}" for folder in self.folders)
        group = Group(self, memory, pids, bounds)
        try:
            self.files.mkdir(memory)
            self.files.mkdir(pids)
        except OSError as error:
            group.end()
            raise refused(error, "no group could be made") from error
        return group

    def leave(self, group: Group) -> None:
        """Have it removed when the next one is made, or at the latest when this process ends."""
        self._left.append(group)

    def close(self) -> None:
        """Remove everything; for a tree that is not used any more."""
        remove_folders(self.files, self.homes.values(), self.folders[0].rpartition("/")[2])
        for fd in (*self._ways_back.values(), *((self._lock,) if self._lock >= 0 else ())):
            os.close(fd)
        self._ways_back.clear()
        self._lock = -1

    def come_back(self) -> None:
        """Have this thread in this process's own groups again. Raises `Unusable`."""
        failed: Unusable | None = None
        for home, fd in self._ways_back.items():
            try:
                os.write(fd, b"0")
            except OSError as error:
                # nothing is limited yet, so this thread is in no danger where it is; but no run begins like that
                failed = Unusable(f"the way back to {home} is closed: {error.strerror}")
        if failed is not None:
            raise failed


def _delegate(homes: Iterable[str]) -> str:
    """What root and the user type to have groups of the user's own; a process may move itself into what its user may write."""
    own = " ".join(f"{home}/tamis" for home in homes)
    return (
        f"as root `mkdir {own} && chown -R {os.geteuid()} {own}`, then start it from a shell of yours in which you typed"
        f" `for group in {own}; do echo $$ > $group/tasks; done`"
    )


def open_tree(homes: dict[str, str], files: Files | None = None, pid: int | None = None) -> Tree:
    """A tree below this process's own groups `{"memory": folder, "pids": folder}`. Raises `Unusable`."""
    files = files or Files()
    homes = {"memory": homes["memory"], "pids": homes["pids"]}
    for home in homes.values():
        check_own(files, home, os.getpid() if pid is None else pid)
        if not os.access(f"{home}/tasks", os.W_OK):
            raise Unusable(f"{home} may not be written", _delegate(homes.values()))
    sweep(files, tuple(homes.values()))
    name, lock = make_folder(files, homes.values())
    try:
        tree = Tree(files, homes, name, lock)
    except OSError as error:
        remove_folders(files, homes.values(), name)
        os.close(lock)
        raise refused(error, "the own groups may not be entered") from error
    try:
        # as a run does it
        trial = tree.group(Bounds(memory_bytes=64 * 1024 * 1024, processes=8))
        try:
            with trial.spawning():
                pass
            trial.limit()
        finally:
            trial.end()
    except BaseException:
        tree.close()
        raise
    if not files.exists(f"{tree.folders[0]}/memory.memsw.limit_in_bytes"):
        tree.notes = ("cgroup v1 does not count swap here (boot with swapaccount=1), so runs are kept out of it",)
    return tree


class Group:
    """One run's two groups."""

    def __init__(self, tree: Tree, memory: str, pids: str, bounds: Bounds) -> None:
        self._tree = tree
        self._files = tree.files
        self._memory = memory
        self._pids = pids
        self._bounds = bounds

    @contextlib.contextmanager
    def spawning(self) -> Generator[None]:
        """This thread, and so what it starts, is in the group."""
        try:
            for group in (self._memory, self._pids):
                self._files.write(f"{group}/tasks", "0")
        except OSError as error:
            self._tree.come_back()
            raise refused(error, "the group could not be entered") from error
        try:
            yield
        finally:
            self._tree.come_back()

    def limit(self) -> None:
        """Set the limits. Raises `Unusable`."""
        memory = self._bounds.memory_bytes // _PAGE * _PAGE
        self._set(f"{self._memory}/memory.limit_in_bytes", memory)
        swap = f"{self._memory}/memory.memsw.limit_in_bytes"
        if self._files.exists(swap):
            self._set(swap, memory)
        else:
            with contextlib.suppress(OSError):
                self._files.write(f"{self._memory}/memory.swappiness", "0")
        with contextlib.suppress(OSError):
            # version 1 counts the buffers of TCP and UDP apart
            self._files.write(f"{self._memory}/memory.kmem.tcp.limit_in_bytes", str(memory))
        self._set(f"{self._pids}/pids.max", self._bounds.processes)

    def _set(self, path: str, value: int) -> None:
        try:
            self._files.write(path, str(value))
            content = self._files.read(path).strip()
        except OSError as error:
            raise refused(error, f"{path.rpartition('/')[2]} could not be set") from error
        if content != str(value):
            raise Unusable(f"{path.rpartition('/')[2]} is {content} after {value} was written")

    async def place(self, pid: int) -> None:
        """See that what was spawned is where it began. Raises `Unusable`."""
        try:
            inside = all(pid in self._files.processes(group) for group in (self._memory, self._pids))
        except OSError as error:
            raise refused(error, "the group cannot be read") from error
        if not inside:
            raise Unusable("the sandbox is not in its group")

    async def adopt(self, pid: int) -> None:
        """Move a blocked process here. Raises `Unusable`."""
        try:
            for group in (self._memory, self._pids):
                self._files.write(f"{group}/cgroup.procs", str(pid))
        except OSError as error:
            raise refused(error, "the sandbox could not be put into its group") from error
        await self.place(pid)

    def held_bytes(self) -> int:
        """Anonymous memory, shared memory with a tmpfs among it, and what waits in network sockets."""
        held = fields(self._read(self._memory, "memory.stat"))
        sockets = _number(self._read(self._memory, "memory.kmem.tcp.usage_in_bytes"))
        return held.get("rss", 0) + held.get("shmem", 0) + sockets

    def kernel_bytes(self) -> int:
        """What the kernel keeps for the run, without what waits in network sockets."""
        return _number(self._read(self._memory, "memory.kmem.usage_in_bytes"))

    def used(self) -> Used:
        """What it has used; processor time is another hierarchy, which it is not in."""
        return Used(peak_bytes=_number(self._read(self._memory, "memory.max_usage_in_bytes")))

    def pressure(self) -> Pressure:
        """Which limits were met so far."""
        kills = fields(self._read(self._memory, "memory.oom_control")).get("oom_kill", 0)
        forks = fields(self._read(self._pids, "pids.events")).get("max", 0)
        return Pressure(oom_kills=kills, at_limit=kills > 0 and self._was_full(), refused_forks=forks)

    def _was_full(self) -> bool:
        """Whether its memory met its limit. Newer kernels leave both counts of refusals at 0, so what was held at most
        tells as well; where swap is counted, that counter is asked first and with equal limits alone refuses."""
        limit = self._bounds.memory_bytes
        full = limit - min(_IN_FLIGHT, limit // 16)
        for name in ("memory", "memory.memsw"):
            if _number(self._read(self._memory, f"{name}.failcnt")) > 0:
                return True
            if _number(self._read(self._memory, f"{name}.max_usage_in_bytes")) >= full:
                return True
        return False

    def _read(self, group: str, name: str) -> str:
        try:
            return self._files.read(f"{group}/{name}")
        except OSError:
            return ""

    def kill(self) -> None:
        """Nothing: version 1 has no word for it, and the run's init is ended by its descriptor."""

    def end(self) -> bool:
        """Remove both groups; False while something is in one; then it is killed."""
        return remove_group(self._files, self._pids) & remove_group(self._files, self._memory)

    def leave(self) -> None:
        """Have it removed later."""
        self._tree.leave(self)
