"""Memory and file counts of a running sandbox, looked at from outside, each 50 ms.

Needed where no control group counts for us: RLIMIT_DATA is per process, so many small processes pass below it, and a
tmpfs bounds bytes but not the number of files (each costs kernel memory that nothing else counts).

With a group it looks at the group's own numbers, and half as often. The group's limit is that of the memory, of the
writable places and of the sandbox itself together, since files in a tmpfs are memory too; what a run may hold beside
them is told apart here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from tamis.sandbox.limits import cgroup_files
from tamis.sandbox.limits.cgroups import OWN_BYTES, Group
from tamis.sandbox.limits.uncounted import (
    Uncounted,
    kernel_on_machine,
    machine_now,
    page_tables_bytes,
    shared_on_machine,
)
from tamis.sandbox.model import lacks

INTERVAL_SECONDS = 0.05
GROUP_INTERVAL_SECONDS = 0.1
CONFIRM_SECONDS = 0.01
MOST_PAUSE_SECONDS = 0.5
MAX_TMP_FILES = 65_536
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(msgspec.Struct):
    """The largest seen so far."""

    rss_bytes: int = 0
    processes: int = 0
    cpu_ms: float = 0.0


def children_of(pid: int, *, certain: bool = False) -> list[int]:
    """The children of a process. `certain`: raises OSError where it cannot be looked at for want of descriptors or memory."""
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            children.extend(map(int, cgroup_files.read(f"/proc/{pid}/task/{thread}/children").split()))
    except OSError as error:
        if certain and lacks(error):
            raise
    return children


def first_child(pid: int) -> int | None:
    """The oldest living child of a process's first thread."""
    with contextlib.suppress(OSError):
        for child in cgroup_files.read(f"/proc/{pid}/task/{pid}/children").split(None, 1)[:1]:
            return int(child)
    return None


def tree(pid: int, *, certain: bool = False) -> list[int]:
    """A process and all its descendants; as `children_of`."""
    tree: list[int] = []
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        tree.append(current)
        waiting.extend(children_of(current, certain=certain))
    return tree


def mapped_and_resident_bytes(pid: int) -> tuple[int, int]:
    """The address space of a process, and what of it is in memory, pages shared with others counted in full."""
    try:
        mapped, resident = cgroup_files.read(f"/proc/{pid}/statm").split()[:2]
        return int(mapped) * _PAGE, int(resident) * _PAGE
    except (OSError, ValueError):
        return 0, 0


def resident_bytes(pid: int) -> int:
    """What a process holds in memory, pages shared with others counted in full."""
    return mapped_and_resident_bytes(pid)[1]


def proportional_bytes(pid: int) -> int:
    """As `resident_bytes`, but a page shared by n processes counts 1/n; falls back to it when unreadable."""
    try:
        for line in cgroup_files.read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    return resident_bytes(pid)


def _writable(init_pid: int, places: Mapping[str, int]) -> list[os.statvfs_result]:
    """How full each of these places of a running sandbox is."""
    file_systems: list[os.statvfs_result] = []
    for place, size in places.items():
        try:
            facts = os.statvfs(f"/proc/{init_pid}/root{place}")
        except OSError:
            continue
        # while bubblewrap is still mounting, this is the host's: the size tells ours
        if facts.f_blocks * facts.f_frsize == -(-size // _PAGE) * _PAGE:
            file_systems.append(facts)
    return file_systems


def cpu_ms_of(pids: Sequence[int]) -> float:
    """Processor time of processes and of those of their children that have ended."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            fields = cgroup_files.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks * 1000 / _TICKS


def _files_used(facts: Sequence[os.statvfs_result]) -> int:
    return sum(place.f_files - place.f_ffree for place in facts)


def _bytes_used(facts: Sequence[os.statvfs_result]) -> int:
    return sum((place.f_blocks - place.f_bfree) * place.f_frsize for place in facts)


class Look(msgspec.Struct, frozen=True):
    """What to look at. `tmpfs` are the writable places inside with their sizes in bytes."""

    init_pid: int
    memory_bytes: int
    tmpfs: Mapping[str, int]
    group: Group | None = None
    before: bytes = b""
    """The machine's memory when the run began, as `machine_now` gives it: most runs have ended before anybody reads it."""


def look_at(init_pid: int, memory_bytes: int, tmpfs: Mapping[str, int], group: Group | None) -> Look:
    """What to look at in a run that begins now."""
    return Look(init_pid, memory_bytes, tmpfs, group, machine_now())


async def watch(look: Look, usage: Usage, on_over: Callable[[Literal["memory", "files", "oom"]], None]) -> None:
    """Sample until cancelled; call `on_over` once and end when a limit is passed."""
    uncounted = Uncounted(look.memory_bytes, shared_on_machine(look.before), kernel_on_machine(look.before))
    try:
        while True:
            begun = time.monotonic()
            over = await _sample(look, usage, uncounted)
            spent = time.monotonic() - begun
            if over is not None:
                on_over(over)
                return
            # a run with very many records takes long to look at: it may not take the daemon's time for that
            pause = INTERVAL_SECONDS if look.group is None else GROUP_INTERVAL_SECONDS
            await asyncio.sleep(max(pause, min(spent * 4, MOST_PAUSE_SECONDS)))
    finally:
        uncounted.close()


async def _sample(look: Look, usage: Usage, uncounted: Uncounted) -> Literal["memory", "files", "oom"] | None:
    pids = tree(look.init_pid)
    records = await _records(look, uncounted, pids[1:])
    if look.group is not None:
        total = _held_by_group(look, look.group) + records
    elif records:
        # a share is told by going through every mapping: where there are very many, not on the loop
        total = await asyncio.to_thread(_held_by_processes, look, usage, uncounted, pids[1:], records)
    else:
        total = _held_by_processes(look, usage, uncounted, pids[1:])
    usage.rss_bytes = max(usage.rss_bytes, total)
    usage.cpu_ms = max(usage.cpu_ms, cpu_ms_of(pids))
    if look.group is not None and look.group.pressure().oom_kills:
        return "oom"
    if total > look.memory_bytes and await _still(look, records):
        return "memory"
    return "files" if _files_used(_writable(look.init_pid, look.tmpfs)) > MAX_TMP_FILES else None


async def _records(look: Look, uncounted: Uncounted, pids: Sequence[int]) -> int:
    """What the kernel keeps for these processes beside what they hold, in bytes; a group does not count all of it."""
    group = look.group
    if not uncounted.suspects(pids, pipes=group is None):
        if not uncounted.due():
            return 0
        records = await asyncio.to_thread(uncounted.records_bytes, pids, pipes=False)
        return (
            records if records > look.memory_bytes // 8 else 0
        )  # what every process has is no part of a run's figures
    records = await asyncio.to_thread(uncounted.records_bytes, pids, pipes=group is None)
    if group is None:
        return records
    # of a group's number, names and files that the kernel can forget are no fault of the run's
    return max(records, min(group.kernel_bytes(), uncounted.kernel_grown()) - OWN_BYTES)


async def _still(look: Look, records: int) -> bool:
    """Whether a limit that was passed is passed: a group's counts and those of its files come a moment apart."""
    if look.group is None:
        return True
    await asyncio.sleep(CONFIRM_SECONDS)
    return _held_by_group(look, look.group) + records > look.memory_bytes


def _held_by_group(look: Look, group: Group) -> int:
    held = group.held_bytes()
    return max(0, held - _bytes_used(_writable(look.init_pid, look.tmpfs)))


def _held_by_processes(
    look: Look, usage: Usage, uncounted: Uncounted | None, pids: Sequence[int], records: int = 0
) -> int:
    usage.processes = max(usage.processes, len(pids))
    files = _bytes_used(_writable(look.init_pid, look.tmpfs))
    sizes = {pid: mapped_and_resident_bytes(pid) for pid in pids}
    hidden = uncounted.bytes(look.init_pid, pids, files) if uncounted is not None else 0
    hidden += records + page_tables_bytes({pid: mapped for pid, (mapped, _) in sizes.items()})
    total = hidden + sum(resident for _, resident in sizes.values())
    if total > look.memory_bytes and hidden <= look.memory_bytes:
        # a sum counts shared pages many times: ask for the exact share before ending anything
        total = hidden + sum(proportional_bytes(pid) for pid in pids)
    return total
