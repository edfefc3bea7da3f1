"""Memory of a run that no process's numbers show, as far as it can be told without a control group.

- What waits in sockets, by the tables of the run's own network.
- Pages of shared mappings that a process let go of while another page of the mapping keeps them.
- Page tables of a large address space.
- The kernel's records: mappings, page tables of scattered pages, locks, watches, events that wait, terminals, pipes. They
  are looked for when the kernel's memory has grown since the run began, or when so many files are open that pipes could hold
  much, because it takes reading several files for each process; and every few seconds, because what other programs give back
  hides the growth.

The rest is bounded: files in a tmpfs by its size and by `watchdog.MAX_TMP_FILES`, timers and queued signals by their resource
limit, and what cannot be made at all is refused by the filter (`backends.seccomp`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar

import msgspec

from tamis.sandbox.limits import cgroup_files

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LARGE = 4 << 30
_MAPPING, _RECORD = 192, 200
"""What the kernel keeps for a mapping, and for a lock, a watch of epoll or of inotify, in bytes (Linux 6.18)."""
_PIPE, _USERS_PIPES, _LEAST_PIPE = 65_536, 64 << 20, 8192
"""A pipe as it is made, which the filter lets nobody enlarge; what a user's pipes hold together; and each beyond that."""
_FILTER = 320 << 10
"""The largest program of a filter that a script sets itself, as it came and as machine code."""
_MAY_HOLD = (
    (b"inotify", 16_384 * 320),  # a full queue of events with long names
    (b"/dev/ptmx", 256 << 10),
    (b"/dev/pts/ptmx", 256 << 10),
    (b"socket:[", 320 << 10),  # options and groups; what waits in it is counted elsewhere
    (b"/proc/", 1 << 20),  # a file that is made as it is read
    (b"", 1024),
)
"""The most that the kernel keeps for an open file in ways that cannot be seen, by a part of what it is, in bytes."""
_SHARED_MEMORY = (b"\nShmem:",)
_KERNELS_MEMORY = tuple(
    b"\n" + name + b":"
    for name in (b"SUnreclaim", b"PageTables", b"SecPageTables", b"VmallocUsed", b"KernelStack", b"Percpu")
)
"""Rows of /proc/meminfo, each with the end of the row before it: none of them is the first."""
_MANY = 4096
"""No honest program that was looked at had so many mappings."""
LOOK_SECONDS = 0.2
EVERY_SECONDS = 2.5
"""How long a run's records go without a look, whatever the machine's numbers say."""
_SHARED = b" /dev/zero (deleted)\n"
"""How the kernel calls an anonymous shared mapping, and one of /dev/zero."""


class _Records(msgspec.Struct, frozen=True):
    """What one look saw of one process: bytes that are seen, bytes that may be hidden, and when."""

    seen: int
    hidden: int
    at: float


_NEVER = _Records(0, 0, 0.0)


class _Machine:
    least = 0
    """The least shared memory of the machine since the first of the runs that go on now began."""
    least_kernel = 0
    """The same of the kernel's own memory."""
    runs: ClassVar[set[Uncounted]] = set()


class Uncounted:
    """One run's, from its start to `close`."""

    def __init__(self, memory_bytes: int, shared_before: int, kernel_before: int | None = None) -> None:
        self._memory = memory_bytes
        self._known = 0
        self._records = 0
        self._looks: dict[int, _Records] = {}
        self._looked_at = time.monotonic()
        kernel = kernel_on_machine() if kernel_before is None else kernel_before
        _Machine.least = min(_Machine.least, shared_before) if _Machine.runs else shared_before
        _Machine.least_kernel = min(_Machine.least_kernel, kernel) if _Machine.runs else kernel
        _Machine.runs.add(self)

    def close(self) -> None:
        """The run is over; a second call does nothing."""
        _Machine.runs.discard(self)

    def bytes(self, init_pid: int, pids: Sequence[int], files: int) -> int:
        """An estimate in bytes. `files` is what the run's tmpfs hold."""
        return sockets_bytes(init_pid, self._memory // 4) + self._let_go(pids, files)

    def kernel_grown(self) -> int:
        """How much larger the kernel's own memory is than when the run began, in bytes, without what other runs made."""
        now = kernel_on_machine()
        _Machine.least_kernel = min(_Machine.least_kernel, now)
        return now - _Machine.least_kernel - sum(run._records for run in _Machine.runs if run is not self)

    def suspects(self, pids: Sequence[int], *, pipes: bool = True) -> bool:
        """Whether the kernel's records of these processes may be worth counting."""
        if self.kernel_grown() > self._memory // 8:
            return True
        self._records = 0
        return pipes and sum(_open_files(pid) for pid in pids) * _PIPE > self._memory // 4

    def due(self) -> bool:
        """Whether the records were not looked at for `EVERY_SECONDS`."""
        return time.monotonic() - self._looked_at > EVERY_SECONDS

    def records_bytes(self, pids: Sequence[int], *, pipes: bool = True) -> int:
        """The kernel's records of these processes in bytes; takes up to `LOOK_SECONDS` and more, so call it on a thread.

        What can be counted counts. What their open files may hold beside that, what earlier looks saw of the processes that
        there was no time for, and what those that were never looked at have if they are like the others, counts as far as
        the machine's kernel has grown by it since the run began.
        """
        until = time.monotonic() + LOOK_SECONDS
        seen, hidden, looked, pipe_ids = 0, 0, set[int](), set[bytes]()
        for pid in sorted(pids, key=lambda pid: self._looks.get(pid, _NEVER).at):
            if seen > self._memory or time.monotonic() > until:
                break
            look = _records_of(pid, self._memory - seen, until, pipe_ids)
            seen += look.seen
            hidden += look.hidden
            looked.add(pid)
            self._looks[pid] = look
        self._looks = {pid: self._looks[pid] for pid in pids if pid in self._looks}
        hidden += sum(look.seen + look.hidden for pid, look in self._looks.items() if pid not in looked)
        never = len(pids) - len(self._looks)
        hidden += never * sum(look.seen + look.hidden for look in self._looks.values()) // max(len(self._looks), 1)
        self._looked_at = time.monotonic()
        self._records = seen + max(0, min(self.kernel_grown() - seen, hidden))
        if not pipes:
            return self._records
        return self._records + min(len(pipe_ids) * _PIPE, _USERS_PIPES + len(pipe_ids) * _LEAST_PIPE)

    def _let_go(self, pids: Sequence[int], files: int) -> int:
        """Shared memory that has come to this machine since the run began, if the run can have made it.

        Whose it is cannot be seen. So it is the run's only if a process of the run has such a mapping, and no more than
        its processes have touched new pages.
        """
        now = shared_on_machine()
        _Machine.least = min(_Machine.least, now)
        self._known = files
        if self._grown(now) <= self._memory // 2:
            return 0
        if not any(_SHARED in _read(f"/proc/{pid}/maps") for pid in pids):
            return 0
        self._known = files + sum(_mapped(pid) for pid in pids)
        touched = sum(_faults(pid) for pid in pids) * _PAGE
        return max(0, min(self._grown(now), touched))

    def _grown(self, now: int) -> int:
        return now - _Machine.least - sum(run._known for run in _Machine.runs)


def page_tables_bytes(mapped: Mapping[int, int]) -> int:
    """The page tables of the processes (pid: bytes of address space) that are large enough to have many."""
    total = 0
    for pid, size in mapped.items():
        if size > _LARGE:
            for line in _read(f"/proc/{pid}/status").splitlines():
                if line.startswith(b"VmPTE:"):
                    total += int(line.split()[1]) * 1024
    return total


def machine_now() -> bytes:
    """The machine's memory as it is now, for `shared_on_machine` and `kernel_on_machine` to be told later."""
    return _read("/proc/meminfo")


def shared_on_machine(at: bytes | None = None) -> int:
    """Shared memory of the whole machine in bytes, tmpfs included; now, or `at` the time of a `machine_now`."""
    return _sum_of(machine_now() if at is None else at, _SHARED_MEMORY)


def kernel_on_machine(at: bytes | None = None) -> int:
    """The kernel's own memory on the whole machine in bytes, without what it can give back; as `shared_on_machine`."""
    return _sum_of(machine_now() if at is None else at, _KERNELS_MEMORY)


def _sum_of(table: bytes, rows: Sequence[bytes]) -> int:
    """Bytes in these rows of a `machine_now`."""
    total = 0
    for row in rows:
        at = table.find(row)
        if at >= 0:
            total += int(table[at + len(row) : table.find(b"\n", at + 1)].split()[0]) * 1024
    return total


def _open_files(pid: int) -> int:
    folder = f"/proc/{pid}/fd"
    try:
        # Linux 6.2 and later tell the number as the size
        return os.stat(folder).st_size or len(os.listdir(folder))
    except OSError:
        return 0


def _records_of(pid: int, enough: int, until: float, pipes: set[bytes]) -> _Records:
    """The records of one process, and its pipes added to these; ends soon after `enough` were seen, or after this time."""
    status = _words(_read(f"/proc/{pid}/status"))
    seen = 0 if status.get(b"VmSize", 0) * 1024 > _LARGE else status.get(b"VmPTE", 0) * 1024
    mappings = _mappings(pid, enough // _MAPPING, until)
    seen += mappings * _MAPPING
    hidden = 0
    if mappings > _MANY and time.monotonic() > until:
        # not all were counted: it may have as many as its address space has pages, or the kernel lets a process have
        most = min(status.get(b"VmSize", 0) * 1024 // _PAGE, _most_mappings())
        hidden = max(0, most - mappings) * _MAPPING
    hidden += max(0, status.get(b"Seccomp_filters", 0) - 1) * _FILTER
    for name in _listed(f"/proc/{pid}/fd"):
        what = _link(f"/proc/{pid}/fd/{name}")
        if what.startswith(b"pipe:["):
            pipes.add(what)
            continue
        hidden += next(size for part, size in _MAY_HOLD if part in what)
        if seen <= enough and not what.startswith((b"socket:[", b"/proc/")):
            info = _read(f"/proc/{pid}/fdinfo/{name}")
            seen += sum(info.count(start) for start in (b"\ntfd:", b"\nlock:", b"\ninotify ")) * _RECORD
    return _Records(seen, hidden, time.monotonic())


def _mappings(pid: int, enough: int, until: float) -> int:
    """How many mappings a process has; counting ends soon after `enough`, or after this time."""
    count = 0
    try:
        with open(f"/proc/{pid}/maps", "rb", buffering=0) as file:
            while count <= enough and time.monotonic() < until and (piece := file.read(1 << 16)):
                count += piece.count(b"\n")
    except OSError:
        pass
    return count


def _words(table: bytes) -> dict[bytes, int]:
    """The first number of each `name: number …` line."""
    counts: dict[bytes, int] = {}
    for line in table.splitlines():
        name, _, rest = line.partition(b":")
        words = rest.split(None, 1)
        if words and words[0].isdigit():
            counts[name] = int(words[0])
    return counts


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path: str) -> bytes:
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return b""


def sockets_bytes(init_pid: int, enough: int) -> int:
    """What waits in the sockets of a run's own network, or 0 when it cannot be `enough` bytes.

    Of a local (AF_UNIX) socket only the existence is seen, so each counts as full.
    """
    net = f"/proc/{init_pid}/net"
    counts = _counts(_read(f"{net}/sockstat") + _read(f"{net}/sockstat6"))
    tcp = counts.get("TCP", 0) + counts.get("TCP6", 0)
    udp = counts.get("UDP", 0) + counts.get("UDP6", 0)
    local = max(0, counts.get("sockets", 0) - tcp - udp) * _local_socket_bytes()
    if local + tcp * _tcp_socket_bytes() + udp * _udp_socket_bytes() < enough:
        return 0
    # a segment takes up about twice its payload; of UDP the kernel tells what it takes up
    stream = 2 * sum(_queued(_read(f"{net}/{name}")) for name in ("tcp", "tcp6")) if tcp else 0
    datagrams = sum(_queued(_read(f"{net}/{name}")) for name in ("udp", "udp6")) if udp else 0
    return local + stream + datagrams


def _counts(sockstat: bytes) -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in sockstat.decode("ascii", "replace").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) >= 2 and words[0] in ("used", "inuse") and words[1].isdigit():
            counts[name] = int(words[1])
    return counts


def _queued(table: bytes) -> int:
    """The sum of the two queues of every row of `/proc/net/tcp` or `udp`."""
    total = 0
    for row in table.splitlines()[1:]:
        words = row.split(None, 5)
        if len(words) > 4:
            sent, _, received = words[4].partition(b":")
            total += int(sent, 16) + int(received, 16)
    return total


def _mapped(pid: int) -> int:
    """A process's share of the shared memory that is mapped, which its other numbers hold."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss_Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def _faults(pid: int) -> int:
    """New pages that a process and those of its children that have ended touched."""
    words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(words[7]) + int(words[8]) if len(words) > 8 else 0


def _read(path: str) -> bytes:
    try:
        return cgroup_files.read(path)
    except OSError:
        return b""


@cache
def _most_mappings() -> int:
    return _setting("vm/max_map_count", 65_530)


def _setting(name: str, otherwise: int) -> int:
    words = _read(f"/proc/sys/{name}").split()
    return int(words[-1]) if words else otherwise


@cache
def _local_socket_bytes() -> int:
    # a script may ask for more, up to wmem_max: then this is less than what it holds, by that factor
    return 2 * min(_setting("net/core/wmem_default", 212_992), _setting("net/core/wmem_max", 212_992))


@cache
def _tcp_socket_bytes() -> int:
    return _setting("net/ipv4/tcp_rmem", 6_291_456) + _setting("net/ipv4/tcp_wmem", 4_194_304)


@cache
def _udp_socket_bytes() -> int:
    return 2 * max(_setting("net/core/rmem_default", 212_992), _setting("net/core/rmem_max", 212_992))
