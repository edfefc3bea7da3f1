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

from tamis.server.runtime.records.store import Store

BEAT_S = 15.0
LEASE_S = 60.0
"""An owner elsewhere that has not been heard of for so long is gone."""
_FORGET_S = 86_400.0

_here: WeakValueDictionary[str, Owner] = WeakValueDictionary()


class Owner:
    """What a runtime of this process owns in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._busy = 0
        self._beating: asyncio.Task[None] | None = None
        self.token = f"{_machine()} {os.getpid()} {_started(os.getpid())} {os.urandom(6).hex()}"
        """Names this owner and no other, ever."""
        _here[self.token] = self

    def mark(self, db: sqlite3.Connection) -> None:
        """Says in the store that this owner is there; to be called in the transaction that writes its name into a row."""
        now = time.time()
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
    # a clock that was set back must not keep an owner for ever
    return row is None or abs(time.time() - row[0]) > LEASE_S


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
