"""Control groups of version 2: one hierarchy, below a group that was delegated to this process.

A group that hands controllers to groups below it may hold no process itself, so this process first goes to a leaf
`daemon/` of its own group; that is done only where the group was given to us and nobody else is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
from collections.abc import Callable

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

LEAF = "daemon"
_NEEDED = ("memory", "pids")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SWITCH_ON = " ".join(f"+{name}" for name in _NEEDED)
_SWITCH_OFF = " ".join(f"-{name}" for name in _NEEDED)


class Tree:
    """This process's folder."""

    version = "v2"

    def __init__(self, files: Files, home: str, name: str, lock: int) -> None:
        self.files = files
        self.home = home
        self.folders = (f"{home}/{name}",)
        self.notes: tuple[str, ...] = ()
        self._lock = lock
        self._count = itertools.count(1)
        self._left: list[Group] = []

    def group(self, bounds: Bounds) -> Group:
        """A new empty group."""
        self._left = [group for group in self._left if not group.end()]
        folder = f"{self.folders[0]}/{next(self._count)}-{secrets.token_hex(8)}"
        try:
            self.files.mkdir(folder)
        except OSError as error:
            raise refused(error, "no group could be made") from error
        return Group(self, folder, bounds)

    def leave(self, group: Group) -> None:
        """Have it removed when the next one is made, or at the latest when this process ends."""
        self._left.append(group)

    def close(self) -> None:
        """Remove everything; for a tree that is not used any more."""
        remove_folders(self.files, (self.home,), self.folders[0].rpartition("/")[2])
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def open_tree(
    own: str,
    *,
    namespaced: bool = False,
    files: Files | None = None,
    pid: int | None = None,
    is_ours: Callable[[int], bool] | None = None,
) -> Tree:
    """A tree below this process's own group. Raises `Unusable`.

    `namespaced`: the group is the whole of a cgroup namespace. `is_ours` tells which other processes may be moved along.
    """
    files = files or Files()
    pid = os.getpid() if pid is None else pid
    check_own(files, own, pid)
    try:
        home = _home(files, own, pid, namespaced, is_ours or _is_child)
        sweep(files, (home,))
        name, lock = make_folder(files, (home,))
    except OSError as error:
        raise refused(error, f"{own} could not be used") from error
    tree = Tree(files, home, name, lock)
    try:
        files.write(f"{tree.folders[0]}/cgroup.subtree_control", _SWITCH_ON)
        trial = tree.group(Bounds(memory_bytes=64 * 1024 * 1024, processes=8))
        try:
            trial.limit()
            swap = files.exists(f"{trial.folder}/memory.swap.max")
        finally:
            trial.end()
    except OSError as error:
        tree.close()
        raise refused(error, f"the controllers could not be handed on in {own}") from error
    except BaseException:
        tree.close()
        raise
    if not swap:
        tree.notes = ("cgroup v2 does not count swap here (boot with swapaccount=1), so runs may use it",)
    return tree


def _home(files: Files, own: str, pid: int, namespaced: bool, is_ours: Callable[[int], bool]) -> str:
    """The group to make groups in, handing its controllers on; this process is then in a leaf of it."""
    parent, _, name = own.rpartition("/")
    if name == LEAF and files.exists(f"{parent}/cgroup.type") and _handed_on(files, parent):
        return parent  # this process, or the one that started it, went there before
    missing = set(_NEEDED) - set(files.read(f"{own}/cgroup.controllers").split())
    if missing:
        raise Unusable(f"{own} is not given the controllers {', '.join(sorted(missing))}")
    if not files.exists(f"{own}/cgroup.type"):
        # the root of the machine's hierarchy, where the rule does not hold
        if _handed_on(files, own):
            return own
        raise Unusable(
            "the controllers are not handed on at the hierarchy's root, which is the administrator's to decide",
            f"echo '{_SWITCH_ON}' > {own}/cgroup.subtree_control",
        )
    kind = files.read(f"{own}/cgroup.type").strip()
    if kind != "domain":
        raise Unusable(f"{own} is a {kind} group")
    if not _delegated(own, namespaced):
        raise Unusable(f"{own} is not delegated to this process")
    _move_to_leaf(files, own, pid, is_ours)
    return own


def _handed_on(files: Files, folder: str) -> bool:
    return set(_NEEDED) <= set(files.read(f"{folder}/cgroup.subtree_control").split())


def _delegated(own: str, namespaced: bool) -> bool:
    """Whether the group was given to us to divide: by its owner, systemd's mark, or a namespace of its own."""
    if os.geteuid() != 0:
        return os.stat(own).st_uid == os.geteuid() and os.access(f"{own}/cgroup.procs", os.W_OK)
    if namespaced:
        return True
    for name in ("trusted.delegate", "user.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(own, name) == b"1":
                return True
    return False


def _is_child(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            return any(line.split() == ["PPid:", str(os.getpid())] for line in status if line.startswith("PPid:"))
    except OSError:
        return True  # gone


def _move_to_leaf(files: Files, own: str, pid: int, is_ours: Callable[[int], bool]) -> None:
    leaf = f"{own}/{LEAF}"
    moved: list[int] = []
    is_made = False
    try:
        for _ in range(5):  # a child may be started meanwhile
            inside = files.processes(own)
            foreign = [each for each in inside if each != pid and not is_ours(each)]
            if foreign:
                raise Unusable(f"another process ({foreign[0]}) is in {own}")
            if not inside:
                break
            if not is_made:
                with contextlib.suppress(FileExistsError):
                    files.mkdir(leaf)
                is_made = True
            for each in inside:
                with contextlib.suppress(ProcessLookupError):
                    files.write(f"{leaf}/cgroup.procs", str(each))
                    moved.append(each)
        files.write(f"{own}/cgroup.subtree_control", _SWITCH_ON)
        if not _handed_on(files, own):
            raise Unusable(f"the controllers could not be handed on in {own}")
    except (OSError, Unusable) as error:
        for each in moved:
            with contextlib.suppress(OSError):
                files.write(f"{own}/cgroup.procs", str(each))
        if is_made:
            with contextlib.suppress(OSError):
                files.rmdir(leaf)
        if isinstance(error, OSError):
            raise refused(error, f"the controllers could not be handed on in {own}") from error
        raise


class Group:
    """One run's group."""

    def __init__(self, tree: Tree, folder: str, bounds: Bounds) -> None:
        self._tree = tree
        self._files = tree.files
        self.folder = folder
        self._bounds = bounds

    def spawning(self) -> contextlib.AbstractContextManager[None]:
        """Version 2 moves whole processes only: `place` does it."""
        return contextlib.nullcontext()

    def limit(self) -> None:
        """Set the limits. Raises `Unusable`."""
        self._set("memory.max", self._bounds.memory_bytes // _PAGE * _PAGE)
        if self._files.exists(f"{self.folder}/memory.swap.max"):
            self._set("memory.swap.max", 0)
        # one process that is ended for the memory of all is of no use to the others
        self._set("memory.oom.group", 1)
        self._set("pids.max", self._bounds.processes)

    def _set(self, name: str, value: int) -> None:
        path = f"{self.folder}/{name}"
        try:
            self._files.write(path, str(value))
            content = self._files.read(path).strip()
        except OSError as error:
            raise refused(error, f"{name} could not be set") from error
        if content != str(value):
            raise Unusable(f"{name} is {content} after {value} was written")

    async def place(self, pid: int) -> None:
        """Move a blocked process here. The kernel may wait for a grace period, so not on the loop. Raises `Unusable`."""
        try:
            await asyncio.to_thread(self._files.write, f"{self.folder}/cgroup.procs", str(pid))
            inside = pid in self._files.processes(self.folder)
        except OSError as error:
            raise refused(error, "the sandbox could not be put into its group") from error
        if not inside:
            raise Unusable("the sandbox is not in its group")

    async def adopt(self, pid: int) -> None:
        """As `place`."""
        await self.place(pid)

    def held_bytes(self) -> int:
        """Anonymous memory, shared memory with a tmpfs among it, and what waits in network sockets."""
        held = fields(self._read("memory.stat"))
        return held.get("anon", 0) + held.get("shmem", 0) + held.get("sock", 0)

    def kernel_bytes(self) -> int:
        """What the kernel keeps for the run; told as one number from Linux 5.18 on, and by its largest parts before."""
        held = fields(self._read("memory.stat"))
        parts = ("slab", "pagetables", "kernel_stack", "percpu")
        return held.get("kernel", sum(held.get(name, 0) for name in parts))

    def used(self) -> Used:
        """What it has used; the peak is told from Linux 5.19 on."""
        peak = self._read("memory.peak").strip()
        cpu = fields(self._read("cpu.stat")).get("usage_usec", 0)
        return Used(cpu_ms=cpu / 1000, peak_bytes=int(peak) if peak.isdigit() else 0)

    def pressure(self) -> Pressure:
        """Which limits were met so far."""
        memory = fields(self._read("memory.events"))
        return Pressure(
            oom_kills=memory.get("oom_kill", 0),
            at_limit=memory.get("max", 0) + memory.get("oom", 0) > 0,
            refused_forks=fields(self._read("pids.events")).get("max", 0),
        )

    def _read(self, name: str) -> str:
        try:
            return self._files.read(f"{self.folder}/{name}")
        except OSError:
            return ""

    def kill(self) -> None:
        """End everything in the group at once; kernels before 5.14 have no word for it."""
        with contextlib.suppress(OSError):
            self._files.write(f"{self.folder}/cgroup.kill", "1")

    def end(self) -> bool:
        """Remove the group. False while something is in it; then it is killed."""
        if fields(self._read("cgroup.events")).get("populated", 0):
            self.kill()
            return False
        return remove_group(self._files, self.folder)

    def leave(self) -> None:
        """Have it removed later."""
        self._tree.leave(self)
