"""What a warm sandbox is: which requests may use one, and what it must agree on with the run that takes it.

Pure but for one look at the interpreter's file. The pool is `pool.py`, the programs that wait inside are `warm_boot.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from tamis.sandbox.engine import Standing
from tamis.sandbox.job import Job
from tamis.sandbox.model import RunRequest
from tamis.sandbox.paths.walk import Opened


class Forks(Protocol):
    """A template, as the pool keeps it."""

    shape: str

    @property
    def fits(self) -> bool:
        """Whether it may be used once more."""
        ...

    def memory_bytes(self) -> int:
        """What it and its forks hold."""
        ...

    async def fork(self) -> Standing:
        """A sandbox for one call. Raises `Unavailable` or `OSError`."""
        ...

    async def retire(self, seconds: float = 0.0) -> None:
        """No more calls; what runs may end, within these seconds if any."""
        ...


Make = Callable[[], Awaitable[Forks]]


class Warm(Protocol):
    """What the runner asks on its way, when everything of a run was opened, checked and planned.

    `parks`: nothing is to be run; the sandbox is to be left waiting with `put`. Else `take` gives one that waits.
    """

    parks: bool
    generation: str

    async def take(self, key: str) -> Standing | None:
        """A waiting sandbox of exactly this key, now the caller's; None: start one."""
        ...

    async def fork(self, key: str, make: Make | None) -> Standing | None:
        """A sandbox of a template of exactly this key, which `make` starts where there is none; None: there is no template."""
        ...

    def put(self, key: str, standing: Standing) -> None:
        """Take over a waiting sandbox."""
        ...


_AT_START = ("PYTHON", "NODE_", "OPENSSL_", "GCONV_", "LOCPATH")
"""Variables that begin like this can lead an interpreter to files of the tool's while it starts: `PYTHONPATH` to a `sitecustomize.py`,
`PYTHONPYCACHEPREFIX` to a library compiled by somebody else, `OPENSSL_CONF` to machine code."""


def may_wait(request: RunRequest) -> bool:
    """Whether a request is of the common kind: with grants, hosts or secrets, it is always run cold, so that no sandbox that waits
    ever holds a secret; and with variables by which something of the tool would run before its call."""
    if any(name.startswith(_AT_START) for name in request.env):
        return False
    if not _is_text(request.folder + request.script):
        return False
    own = request.read or request.write or request.hosts or request.secrets or request.program or request.uid
    return not own and bool(request.script) and request.language != "bun"


def _is_text(name: str) -> bool:
    """Whether a name has a digest: one with bytes that are no UTF-8 has none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shape(request: RunRequest, generation: str) -> str:
    """A request but for its input and its deadline: calls of one shape are counted together."""
    limits = msgspec.structs.replace(request.limits, wall_ms=0)
    return _digest(msgspec.structs.replace(request, stdin=b"", call_env={}, limits=limits), generation)


def key(job: Job, opened: Mapping[str, Opened], script: os.stat_result, generation: str) -> str:
    """What two runs must agree on for one to take the other's sandbox: the whole job but for its deadline, its uid and what comes of that,
    and every opened file by what the kernel says of it."""
    limits = msgspec.structs.replace(job.limits, wall_ms=0)
    plain = msgspec.structs.replace(job, limits=limits, uid=None, view=())
    shown = {
        name: (item.stat.st_dev, item.stat.st_ino, item.stat.st_uid, item.stat.st_gid, item.stat.st_mode)
        for name, item in opened.items()
    }
    files = [_stamp(script)]
    if job.interpreter.file:
        files.append(_stamp(os.stat(job.interpreter.file)))
    return _digest(plain, shown, files, os.geteuid(), generation)


def _stamp(status: os.stat_result) -> tuple[int, int, int, int, int]:
    # the time of change too: unlike the time of modification, nobody can set it back
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(*parts: object) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(parts, order="deterministic")).hexdigest()
