"""As root: uids of no account, each for one run at a time, also between processes.

The kernel counts processes by uid, so two runs of one uid would use up each other's; and as one user they could look at each
other. A uid is reserved by an abstract socket's name, which needs no file and is freed by death.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import pwd
import random
import socket
import time
from collections.abc import Callable
from typing import ClassVar

from tamis.sandbox.model import Unavailable

FIRST, COUNT = 60_000, 5_000
RING = 32
"""A process comes back to its own uids after so many runs: what was made for one is kept (`paths.idmapped`), and the kernel
has had time to forget its processes, which it does late."""

KNOWN_SECONDS = 60.0
"""For so long a uid that no account had has none: asking takes a quarter of a millisecond, and longer where a directory is asked."""

_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EAFNOSUPPORT)


class Reserved:
    """One uid, until `close()`."""

    def __init__(self, uid: int, held: socket.socket | None) -> None:
        self.uid = uid
        self._held = held

    def keep(self) -> Callable[[], None]:
        """Take it over: `close` does nothing any more, and what is given here frees it."""
        kept = Reserved(self.uid, self._held)
        self._held = None
        return kept.close

    def close(self) -> None:
        """A second call does nothing."""
        held, self._held = self._held, None
        if held is not None:
            held.close()


class _Turn:
    """Where this process looks first; a fork looks elsewhere."""

    owner = 0
    start = 0
    steps = itertools.count()
    free_since: ClassVar[dict[int, float]] = {}
    """When it was last asked, by uid."""


def reserve() -> Reserved:
    """A uid that no account has and no other run uses. Raises `Unavailable` when all are in use, and OSError."""
    if _Turn.owner != os.getpid():
        _Turn.owner, _Turn.start = os.getpid(), random.SystemRandom().randrange(COUNT)
    first = next(_Turn.steps)
    for turn in range(COUNT):
        position = (first + turn) % RING if turn < RING else turn
        uid = FIRST + (_Turn.start + position) % COUNT
        if not _is_free(uid):
            continue
        try:
            return Reserved(uid, _held(uid))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            if error.errno in _FORBIDDEN:
                return Reserved(uid, None)  # then chance must do
            raise
    raise Unavailable(
        f"all {COUNT} uids for runs ({FIRST}-{FIRST + COUNT - 1}) are in use", "run fewer tools at once", passing=True
    )


def _is_free(uid: int) -> bool:
    now = time.monotonic()
    if now - _Turn.free_since.get(uid, -math.inf) < KNOWN_SECONDS:
        return True
    if is_account(uid):
        return False
    _Turn.free_since[uid] = now
    return True


def _held(uid: int) -> socket.socket:
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(f"\0tamis-uid-{uid}")
    except BaseException:
        held.close()
        raise
    return held


def is_account(uid: int) -> bool:
    """Whether somebody of this machine has the uid."""
    with contextlib.suppress(KeyError):
        pwd.getpwuid(uid)
        return True
    return False
