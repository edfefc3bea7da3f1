"""Who works on what in the store: a row that names an owner who is gone is nobody's, and may be taken or given up.

An owner on this machine is known by its process: number and start, so that a number that was given again is not taken for it. One
elsewhere (another container or machine on the same folder) is known by its beat. Must not know what is owned.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from tamis.server.runtime.store.store import Store

BEAT_S = 15.0
LEASE_S = 60.0
"""An owner elsewhere that has not been heard of for so long is gone."""
_FORGET_S = 86_400.0
STEP_S = 5.0
"""A wall clock that went so much faster or slower than time between two looks was set (or the machine slept)."""

_here: WeakValueDictionary[str, Owner] = WeakValueDictionary()


class Owner:
    """What a runtime of this process owns in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._busy = 0
        self._beating: asyncio.Task[None] | None = None
        _clock.settles()
        self.token = f"{_machine()} {os.getpid()} {_started(os.getpid())} {os.urandom(6).hex()}"
        """Names this owner and no other, ever."""
        _here[self.token] = self

    def mark(self, db: sqlite3.Connection) -> None:
        """Says in the store that this owner is there; to be called in the transaction that writes its name into a row."""
        now = time.time()
        _clock.settles()
        db.execute("INSERT INTO owners VALUES (?1, ?2) ON CONFLICT (owner) DO UPDATE SET beat = ?2", (self.token, now))
        db.execute("DELETE FROM owners WHERE beat < ?", (now - _FORGET_S,))

    def begin(self) -> None:
        """This owner has work: until the ``end`` of it, it goes on saying that it is there."""
        self._busy += 1
        if self._beating is None:
            self._beating = asyncio.get_running_loop().create_task(self._beat())

    def end(self) -> None:
        """The end of what ``begin`` began."""
        self._busy -= 1
        if self._busy <= 0 and self._beating is not None:
            self._beating.cancel()
            self._beating = None

    def close(self) -> None:
        """This owner is gone, though its process is not."""
        _here.pop(self.token, None)
        if self._beating is not None:
            self._beating.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            with contextlib.suppress(sqlite3.Error):
                await self._store.run(self.mark, durable=False)


def is_gone(db: sqlite3.Connection, owner: str) -> bool:
    """Whether an owner has ended, so that what it owned is nobody's. A moment is enough to look, in a transaction too."""
    if owner in _here:
        return False
    machine, process, started = [*owner.split(" "), "", "", ""][:3]
    if machine == _machine() and process.isdecimal():
        return int(process) == os.getpid() or _started(int(process)) != started
    row = db.execute("SELECT beat FROM owners WHERE owner = ?", (owner,)).fetchone()
    now, settles = time.time(), _clock.settles()
    if row is not None and row[0] > now:
        # a clock was set back: its silence is counted from here on, so that it neither ends at once nor lasts for ever
        db.execute("UPDATE owners SET beat = ? WHERE owner = ?", (now, owner))
        return False
    return not settles and (row is None or now - row[0] > LEASE_S)


class Clock:
    """Whether the wall clock was set a moment ago: then what it says of the silence of others means nothing until they had time to speak."""

    def __init__(self) -> None:
        self._ahead: float | None = None
        self._until = 0.0

    def settles(self) -> bool:
        """Looks at the clock, and whether it was set less than ``LEASE_S`` ago."""
        now = time.monotonic()
        ahead = time.time() - now
        if self._ahead is not None and abs(ahead - self._ahead) > STEP_S:
            self._until = now + LEASE_S
        self._ahead = ahead
        return now < self._until


_clock = Clock()


class Sight(msgspec.Struct, frozen=True):
    """What is known of an owner that is not gone."""

    process: int = 0
    """Its number on this machine; 0 for one elsewhere."""
    is_here: bool = False
    """Whether it is this process."""
    is_stopped: bool = False
    """Whether its process is stopped (SIGSTOP, a debugger), so that it does nothing until it is continued."""
    silent_s: float = 0.0
    """How long ago it was heard of; an owner with work is heard of every ``BEAT_S``."""


def sight_of(db: sqlite3.Connection, owner: str) -> Sight:
    """What is known of an owner."""
    machine, process, _ = [*owner.split(" "), "", "", ""][:3]
    row = db.execute("SELECT beat FROM owners WHERE owner = ?", (owner,)).fetchone()
    silent = 0.0 if row is None else max(0.0, time.time() - row[0])
    if machine != _machine() or not process.isdecimal():
        return Sight(silent_s=silent)
    number = int(process)
    return Sight(number, number == os.getpid(), _state(number) in ("T", "t"), silent)


def _state(process: int) -> str:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0].decode("ascii", "replace")
    return ""


def _machine() -> str:
    """This boot of this machine, and the space in which its process numbers count."""
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    with contextlib.suppress(OSError):
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    # without these facts every owner is known by its beat alone
    return os.urandom(8).hex()


def _started(process: int) -> str:
    """When a process started, in the kernel's ticks; empty for one that is not there or has ended and is not yet buried."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if len(fields) < 20 or fields[0] in (b"Z", b"X") else fields[19].decode("ascii", "replace")
