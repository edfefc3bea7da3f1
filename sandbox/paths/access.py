"""As root: lets the run's uid use the folders of a run, each by the way that the machine offers.

What must be written, or is closed to others, is shown by a mount on which its owner is the run's uid (`idmapped`): runs that
share a folder need not wait for each other. Where that cannot be done, a writable folder is lent (`lending`), to one run at a
time (`claims`); what is only to be read must then be open to all.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import msgspec

from tamis.sandbox import host, uids
from tamis.sandbox.model import PathRefused
from tamis.sandbox.paths import claims, idmapped, lending
from tamis.sandbox.paths.walk import Opened, open_absolute

_FIRST_PAUSE, _MOST_PAUSE = 0.005, 0.1
_TOLD_AFTER = 0.05
"""A wait that is over so soon is not worth a word."""


class Needed(msgspec.Struct, frozen=True):
    """A folder or file that the run's uid is to use.

    `refusal` is said where no mount can show it; without one, what is only to be read is then shown as it is.
    """

    opened: Opened
    writable: bool = False
    refusal: PathRefused | None = None


class NotWaited(Exception):  # noqa: N818 - an outcome, named as the outcome is
    """A folder was not free in time, or the run was cancelled while it waited. `path` is the folder's."""

    def __init__(self, path: str, *, cancelled: bool) -> None:
        super().__init__(path)
        self.path = path
        self.cancelled = cancelled


class Waiting:
    """How long a run may wait for folders that others have, and how long it did."""

    def __init__(
        self, wall_ms: int, cancelled: asyncio.Event | None = None, on_wait: Callable[[str], None] | None = None
    ) -> None:
        self.ms = 0
        """Milliseconds that were waited so far."""
        self._end = time.monotonic() + wall_ms / 1000
        self._cancelled = cancelled
        self._on_wait = on_wait

    async def claim(self, folder: Opened) -> claims.Claim:
        """The claim of a folder once it is free. Raises `NotWaited`."""
        began, pause = time.monotonic(), _FIRST_PAUSE
        told = False
        while (claim := claims.claim(folder)) is None:
            now = time.monotonic()
            if self._cancelled is not None and self._cancelled.is_set():
                raise NotWaited(folder.path, cancelled=True)
            if now >= self._end:
                raise NotWaited(folder.path, cancelled=False)
            if not told and now - began >= _TOLD_AFTER and self._on_wait is not None:
                told = True
                self._on_wait(f"waits for {lending.shown(folder.path)}, which another run is writing")
            await self._sleep(min(pause, max(0.0, self._end - now)))
            pause = min(_MOST_PAUSE, pause * 1.5)
        self.ms += round((time.monotonic() - began) * 1000)
        return claim

    async def _sleep(self, seconds: float) -> None:
        if self._cancelled is None:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._cancelled.wait(), seconds)


async def give(
    needed: Sequence[Needed], uid: int, waiting: Waiting, told: list[str], cleaning: AsyncExitStack
) -> tuple[str, ...]:
    """Let `uid` use all of these until `cleaning` ends; the command that the sandbox is started behind, if there is one.

    What a run before left undone is put back, and said in `told`. Raises `PathRefused`, `NotWaited`, `Unavailable` and OSError.
    """
    nsenter = host.find_nsenter()
    with contextlib.ExitStack() as mounting:
        mounts: list[tuple[Opened, int]] = []
        lent: list[Opened] = []
        for need in needed:
            try:
                if nsenter is None:
                    raise idmapped.CannotMap("nsenter (util-linux) is not there")
                mount = idmapped.mapped(need.opened, uid, writable=need.writable)
            except idmapped.CannotMap as reason:
                if need.refusal is not None:
                    raise _refused(need.refusal, reason) from reason
                if need.writable:
                    lent.append(need.opened)
            else:
                mounting.callback(os.close, mount)
                mounts.append((need.opened, mount))
        for folder in sorted(lent, key=lambda item: (item.stat.st_dev, item.stat.st_ino)):
            await _lend(folder, uid, waiting, told, cleaning)
        if nsenter is None or not mounts:
            return ()
        view = idmapped.view_of(mounts)
    cleaning.callback(view.close)
    return (nsenter, f"--mount={view.path}", "--")


async def _lend(folder: Opened, uid: int, waiting: Waiting, told: list[str], cleaning: AsyncExitStack) -> None:
    claim = await waiting.claim(folder)
    ownership = lending.Ownership(uid)

    def end() -> None:
        done = False
        try:
            ownership.take_back()
            done = True
        except OSError as error:
            # what the run did counts; whose the folder is stands written down
            told.append(
                f"{lending.shown(folder.path)} could not be given back ({error.strerror}): the next run there does it, or `tamis doctor`"
            )
        finally:
            claim.release(done=done)

    cleaning.callback(end)
    told.extend(claim.told)
    # as it is now: when it was opened, another run may have had it
    folder.stat = os.fstat(folder.fd)
    ownership.lend(folder, lambda before: claim.write_down(folder, uid, before))


def why_lent(path: str) -> str:
    """As root: why a folder would be lent for writing instead of being shown by a mount; empty where it would not."""
    if host.find_nsenter() is None:
        return "nsenter (util-linux) is not there"
    with contextlib.closing(uids.reserve()) as reserved, open_absolute(path) as folder:
        try:
            os.close(idmapped.mapped(folder, reserved.uid, writable=True))
        except idmapped.CannotMap as reason:
            return str(reason)
    return ""


def _refused(refusal: PathRefused, reason: idmapped.CannotMap) -> PathRefused:
    return PathRefused(f"{refusal.message}, and it cannot be shown in another way: {reason}", refusal.remedy)
