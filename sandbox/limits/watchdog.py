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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tamis.sandbox.limits.cgroups import Group
from tamis.sandbox.limits.uncounted import Uncounted, page_tables_bytes, shared_on_machine

INTERVAL_SECONDS = 0.05
GROUP_INTERVAL_SECONDS = 0.1
CONFIRM_SECONDS = 0.01
MAX_TMP_FILES = 65_536
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(msgspec.Struct):
    """The largest seen so far."""

    rss_bytes: int = 0
    processes: int = 0
    cpu_ms: float = 0.0


def children_of(pid: int) -> list[int]:
    """The children of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting.extend(children_of(current))
    return found


def mapped_and_resident_bytes(pid: int) -> tuple[int, int]:
    """The address space of a process, and what of it is in memory, pages shared with others counted in full."""
    try:
        mapped, resident = Path(f"/proc/{pid}/statm").read_bytes().split()[:2]
        return int(mapped) * _PAGE, int(resident) * _PAGE
    except (OSError, ValueError):
        return 0, 0


def resident_bytes(pid: int) -> int:
    """What a process holds in memory, pages shared with others counted in full."""
    return mapped_and_resident_bytes(pid)[1]


def proportional_bytes(pid: int) -> int:
    """As `resident_bytes`, but a page shared by n processes counts 1/n; falls back to it when unreadable."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    return resident_bytes(pid)


def _writable(init_pid: int, places: Mapping[str, int]) -> list[os.statvfs_result]:
    """How full each of these places of a running sandbox is."""
    found: list[os.statvfs_result] = []
    for place, size in places.items():
        try:
            facts = os.statvfs(f"/proc/{init_pid}/root{place}")
        except OSError:
            continue
        # while bubblewrap is still mounting, this is the host's: the size tells ours
        if facts.f_blocks * facts.f_frsize == -(-size // _PAGE) * _PAGE:
            found.append(facts)
    return found


def cpu_ms_of(pids: Sequence[int]) -> float:
    """Processor time of processes and of those of their children that have ended."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
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
    shared_before: int = 0
    """Shared memory of the machine when the run began, in bytes."""


def look_at(init_pid: int, memory_bytes: int, tmpfs: Mapping[str, int], group: Group | None) -> Look:
    """What to look at in a run that begins now."""
    return Look(init_pid, memory_bytes, tmpfs, group, 0 if group is not None else shared_on_machine())


async def watch(look: Look, usage: Usage, on_over: Callable[[Literal["memory", "files", "oom"]], None]) -> None:
    """Sample until cancelled; call `on_over` once and end when a limit is passed."""
    uncounted = Uncounted(look.memory_bytes, look.shared_before) if look.group is None else None
    try:
        while True:
            over = await _sample(look, usage, uncounted)
            if over is not None:
                on_over(over)
                return
            await asyncio.sleep(INTERVAL_SECONDS if look.group is None else GROUP_INTERVAL_SECONDS)
    finally:
        if uncounted is not None:
            uncounted.close()


async def _sample(look: Look, usage: Usage, uncounted: Uncounted | None) -> Literal["memory", "files", "oom"] | None:
    pids = tree(look.init_pid)
    if look.group is not None:
        total = _held_by_group(look, look.group)
    else:
        total = _held_by_processes(look, usage, uncounted, pids[1:])
    usage.rss_bytes = max(usage.rss_bytes, total)
    usage.cpu_ms = max(usage.cpu_ms, cpu_ms_of(pids))
    if look.group is not None and look.group.pressure().oom_kills:
        return "oom"
    if total > look.memory_bytes and await _still(look):
        return "memory"
    return "files" if _files_used(_writable(look.init_pid, look.tmpfs)) > MAX_TMP_FILES else None


async def _still(look: Look) -> bool:
    """Whether a limit that was passed is passed: a group's counts and those of its files come a moment apart."""
    if look.group is None:
        return True
    await asyncio.sleep(CONFIRM_SECONDS)
    return _held_by_group(look, look.group) > look.memory_bytes


def _held_by_group(look: Look, group: Group) -> int:
    held = group.held_bytes()
    return max(0, held - _bytes_used(_writable(look.init_pid, look.tmpfs)))


def _held_by_processes(look: Look, usage: Usage, uncounted: Uncounted | None, pids: Sequence[int]) -> int:
    usage.processes = max(usage.processes, len(pids))
    files = _bytes_used(_writable(look.init_pid, look.tmpfs))
    sizes = {pid: mapped_and_resident_bytes(pid) for pid in pids}
    hidden = uncounted.bytes(look.init_pid, pids, files) if uncounted is not None else 0
    hidden += page_tables_bytes({pid: mapped for pid, (mapped, _) in sizes.items()})
    total = hidden + sum(resident for _, resident in sizes.values())
    if total > look.memory_bytes:
        # a sum counts shared pages many times: ask for the exact share before ending anything
        total = hidden + sum(proportional_bytes(pid) for pid in pids)
    return total
