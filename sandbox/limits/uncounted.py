"""Memory of a run that no process's numbers show, as far as it can be told without a control group.

Three kinds can grow large: what waits in sockets, pages of shared mappings that the process let go of while another page
of the mapping keeps them, and the page tables of a large address space. The rest is bounded: pipes by the kernel's
limit for a user (64 MiB, then two pages each), page tables of a small address space by its size (1/512), files in a tmpfs by its size and by `watchdog.MAX_TMP_FILES`, small
records (mappings, locks, watches) by the number of processes and open files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LARGE = 4 << 30
_SHARED = b" /dev/zero (deleted)\n"
"""How the kernel calls an anonymous shared mapping, and one of /dev/zero."""


class _Machine:
    least = 0
    """The least shared memory of the machine since the first of the runs that go on now began."""
    runs: ClassVar[set[Uncounted]] = set()


class Uncounted:
    """One run's, from its start to `close`."""

    def __init__(self, memory_bytes: int, shared_before: int) -> None:
        self._memory = memory_bytes
        self._known = 0
        _Machine.least = min(_Machine.least, shared_before) if _Machine.runs else shared_before
        _Machine.runs.add(self)

    def close(self) -> None:
        """The run is over; a second call does nothing."""
        _Machine.runs.discard(self)

    def bytes(self, init_pid: int, pids: Sequence[int], files: int) -> int:
        """An estimate in bytes. `files` is what the run's tmpfs hold."""
        return sockets_bytes(init_pid, self._memory // 4) + self._let_go(pids, files)

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


def shared_on_machine() -> int:
    """Shared memory of the whole machine in bytes, tmpfs included."""
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith(b"Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


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
    found: dict[str, int] = {}
    for line in sockstat.decode("ascii", "replace").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) >= 2 and words[0] in ("used", "inuse") and words[1].isdigit():
            found[name] = int(words[1])
    return found


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
        return Path(path).read_bytes()
    except OSError:
        return b""


def _setting(name: str, otherwise: int) -> int:
    words = _read(f"/proc/sys/net/{name}").split()
    return int(words[-1]) if words else otherwise


@cache
def _local_socket_bytes() -> int:
    # a script may ask for more, up to wmem_max: then this is less than what it holds, by that factor
    return 2 * min(_setting("core/wmem_default", 212_992), _setting("core/wmem_max", 212_992))


@cache
def _tcp_socket_bytes() -> int:
    return _setting("ipv4/tcp_rmem", 6_291_456) + _setting("ipv4/tcp_wmem", 4_194_304)


@cache
def _udp_socket_bytes() -> int:
    return 2 * max(_setting("core/rmem_default", 212_992), _setting("core/rmem_max", 212_992))
