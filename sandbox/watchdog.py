"""Memory and file counts of a running sandbox, looked at every 50 ms from outside.

Needed where no cgroup counts for us: RLIMIT_DATA is per process, so many small processes pass below it, and a tmpfs
bounds bytes but not the number of files (each costs kernel memory that nothing else counts).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

INTERVAL_SECONDS = 0.05
MAX_TMP_FILES = 65_536
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(msgspec.Struct):
    """The largest seen so far."""

    rss_bytes: int = 0
    processes: int = 0


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        try:
            for thread in os.listdir(f"/proc/{current}/task"):
                children = Path(f"/proc/{current}/task/{thread}/children").read_bytes()
                waiting.extend(int(child) for child in children.split())
        except OSError:
            continue
    return found


def resident_bytes(pid: int) -> int:
    """What a process holds in memory, pages shared with others counted in full."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def proportional_bytes(pid: int) -> int:
    """As `resident_bytes`, but a page shared by n processes counts 1/n; falls back to it when unreadable."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    return resident_bytes(pid)


def _files_used(init_pid: int, places: Mapping[str, int]) -> int:
    used = 0
    for place, size in places.items():
        try:
            facts = os.statvfs(f"/proc/{init_pid}/root{place}")
        except OSError:
            continue
        # while bubblewrap is still mounting, this is the host's: the size tells ours
        if facts.f_blocks * facts.f_frsize == -(-size // _PAGE) * _PAGE:
            used += facts.f_files - facts.f_ffree
    return used


async def watch(
    init_pid: int,
    memory_bytes: int,
    tmpfs: Mapping[str, int],
    usage: Usage,
    on_over: Callable[[Literal["memory", "files"]], None],
) -> None:
    """Sample until cancelled; call `on_over` once and end when a limit is passed.

    `tmpfs` are the writable places inside with their sizes in bytes.
    """
    while True:
        pids = tree(init_pid)[1:]
        sizes = [resident_bytes(pid) for pid in pids]
        usage.processes = max(usage.processes, len(pids))
        total = sum(sizes)
        if total > memory_bytes:
            # a sum counts shared pages many times: ask for the exact share before ending anything
            total = sum(proportional_bytes(pid) for pid in pids)
        usage.rss_bytes = max(usage.rss_bytes, total)
        if total > memory_bytes:
            on_over("memory")
            return
        if _files_used(init_pid, tmpfs) > MAX_TMP_FILES:
            on_over("files")
            return
        await asyncio.sleep(INTERVAL_SECONDS)
