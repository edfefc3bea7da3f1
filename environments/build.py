"""Carrying out a recipe: each step in a sandbox of its own, then the built tree is checked, made read-only and put in place.

Nothing of an installation happens outside the sandbox. The shared download cache is writable only in steps in which no
foreign code can run, so that one build cannot change what another gets. Must not know any installer.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from tamis.environments.model import (
    FORMAT,
    Cancelled,
    DependencyFault,
    Done,
    Maker,
    Meta,
    OnProgress,
    Options,
    Progress,
    Recipe,
    Step,
    tail,
)
from tamis.environments.store import CacheUse, Claim, Lease, Store
from tamis.sandbox.model import Limits, Mount, Program, RunOutcome, RunRequest, Unavailable, size
from tamis.sandbox.runner import run
from tamis.sandbox.uids import Reserved, is_account, reserve

NETWORK_BYTES = 512 * 1024 * 1024
FILE_BYTES = 512 * 1024 * 1024
PROCESSES = 128
MAX_ENTRIES = 500_000
MIN_FREE_BYTES = 64 * 1024 * 1024
"""A build is ended before it leaves the disk with less than this."""
_LOOK_SECONDS = 0.05
_BUILDER_UIDS = range(59_000, 60_000)

_Result = TypeVar("_Result")


def failure_name(recipe: Recipe, options: Options) -> str:
    """Under which name a failed build is remembered: another key where the operator opened more since."""
    content = [recipe.key, recipe.hosts, options.allow_cidrs, options.pin, options.wall_ms, options.cache_bytes]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:40]


async def build(
    maker: Maker,
    recipe: Recipe,
    claim: Claim,
    store: Store,
    options: Options,
    *,
    seconds: float,
    on_progress: OnProgress | None = None,
    cancelled: asyncio.Event | None = None,
) -> Lease:
    """Build what was claimed. Raises `DependencyFault`, `Cancelled`, `Unavailable` (no sandbox), OSError; the caller abandons then."""
    started = time.monotonic()
    _lay_out(claim.sources, recipe.files)
    use = await _cache(store, recipe, options)
    reserved: Reserved | None = None
    try:
        cache = use.path if use is not None else claim.cache
        reserved = _lend(claim, cache, shared=use is not None)
        uid = reserved.uid if reserved is not None else None
        done: list[Done] = []
        work = _Work(maker, recipe, claim, cache, uid, options, on_progress, cancelled)
        for step in recipe.steps:
            left = seconds - (time.monotonic() - started)
            finished = await work.carry_out(step, left)
            if finished is not None:
                done.append(finished)
    finally:
        if reserved is not None:
            reserved.close()
        if use is not None:
            use.close()
    told = maker.finish(recipe, str(claim.tree), tuple(done))
    total, entries = await asyncio.to_thread(settle, claim.tree)
    meta = Meta(
        format=FORMAT,
        key=recipe.key,
        kind=recipe.kind,
        form=recipe.form,
        created=time.time(),
        build_ms=round((time.monotonic() - started) * 1000, 1),
        bytes=total,
        entries=entries,
        packages=told.packages,
        identity=recipe.identity,
    )
    return await asyncio.to_thread(claim.finish, meta, told.lock)


def _lay_out(sources: Path, files: tuple[tuple[str, bytes], ...]) -> None:
    for name, content in files:
        place = sources / name
        for folder in reversed(place.relative_to(sources).parents):
            (sources / folder).mkdir(mode=0o755, exist_ok=True)
            (sources / folder).chmod(0o755)
        place.write_bytes(content)
        place.chmod(0o644)


async def _cache(store: Store, recipe: Recipe, options: Options) -> CacheUse | None:
    """The shared download cache, below its size; None where the build gets one of its own."""
    if not recipe.cache or recipe.private_cache:
        return None
    while (use := store.use_cache(recipe.cache)) is None:
        await asyncio.sleep(_LOOK_SECONDS)
    return use


def _lend(claim: Claim, cache: Path, *, shared: bool) -> Reserved | None:
    """As root: give the empty folders to the uid that builds. Who uses the shared cache keeps one uid, so that it need
    not be walked; who may run foreign code gets a uid that nothing else has."""
    if os.geteuid() != 0:
        return None
    if shared:
        uid = cache.stat().st_uid or _builder_uid()
        if uid not in _BUILDER_UIDS or is_account(uid):
            raise PermissionError(f"the download cache belongs to uid {uid}; remove it with `tamis deps prune --all`")
        reserved = Reserved(uid, None)
    else:
        reserved = reserve()
    os.chown(cache, reserved.uid, reserved.uid)
    os.chown(claim.tree, reserved.uid, reserved.uid)
    return reserved


def _builder_uid() -> int:
    for uid in _BUILDER_UIDS:
        if not is_account(uid):
            return uid
    raise PermissionError(f"no free uid in {_BUILDER_UIDS.start}-{_BUILDER_UIDS.stop - 1} to build with")


class _Work:
    """One build's folders and uid; carries out its steps."""

    def __init__(
        self,
        maker: Maker,
        recipe: Recipe,
        claim: Claim,
        cache: Path,
        uid: int | None,
        options: Options,
        on_progress: OnProgress | None,
        cancelled: asyncio.Event | None,
    ) -> None:
        self._maker = maker
        self._recipe = recipe
        self._claim = claim
        self._cache = cache
        self._uid = uid
        self._options = options
        self._on_progress = on_progress
        self._cancelled = cancelled

    async def carry_out(self, step: Step, seconds: float) -> Done | None:
        """One step; without network where that may suffice, or where the index was not reached. None for one that failed and may."""
        end = time.monotonic() + seconds
        alone = self._without_network(step)
        if alone is not None and step.offline_first and any(self._cache.iterdir()):
            with contextlib.suppress(DependencyFault):
                return await self._run(alone, seconds, quiet=True)
        try:
            return await self._with_patience(step, end)
        except DependencyFault as fault:
            if fault.cause != "network" or alone is None or step.offline_first or time.monotonic() >= end:
                raise
            try:
                return await self._run(alone, end - time.monotonic(), quiet=True)
            except DependencyFault:
                raise fault from None

    async def _with_patience(self, step: Step, end: float) -> Done | None:
        try:
            return await self._run(step, end - time.monotonic())
        except DependencyFault as fault:
            if fault.cause != "network" or fault.denied or step.patient is None or time.monotonic() >= end:
                raise
        again = msgspec.structs.replace(step, env={**step.env, **step.patient})
        return await self._run(again, end - time.monotonic(), quiet=True)

    def _without_network(self, step: Step) -> Step | None:
        if step.offline is None:
            return None
        return msgspec.structs.replace(step, env={**step.env, **step.offline}, network=False)

    async def _run(self, step: Step, seconds: float, *, quiet: bool = False) -> Done | None:
        if seconds <= 0:
            raise _late(step, self._options)
        if step.progress is not None and not quiet:
            self._tell(Progress(step.progress))

        def show(_: str, data: bytes) -> None:
            progress = self._maker.progress(step, data.decode("utf-8", "replace"))
            if progress is not None and not quiet:
                self._tell(Progress(*progress))

        request = self._request(step, seconds)
        guard = _Guard(self._claim.folder, self._options.cache_bytes, self._cancelled)
        outcome = await guard.watch(lambda stop: run(request, on_output=show, cancelled=stop))
        if outcome.kind == "ok":
            return Done(step.name, outcome.stdout, outcome.stderr)
        if self._cancelled is not None and self._cancelled.is_set():
            raise Cancelled
        if guard.reason:
            raise DependencyFault(guard.reason, cause="disk", remedy="make room, or raise dependencies.cacheBytes")
        if step.optional and outcome.kind in ("error", "limit"):
            return None
        raise _fault(self._maker, self._recipe, step, outcome, self._options)

    def _tell(self, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)

    def _request(self, step: Step, seconds: float) -> RunRequest:
        write = [Mount(os.path.realpath(self._claim.tree), "/env", own=True)]
        if step.cache:
            write.append(Mount(os.path.realpath(self._cache), "/cache", own=True))
        return RunRequest(
            folder=os.path.realpath(self._claim.sources),
            script="",
            language=step.language,
            program=Program(step.command, step.binds),
            limits=Limits(
                wall_ms=max(1, round(seconds * 1000)),
                cpu_seconds=max(60, round(seconds)),
                memory_bytes=step.memory_bytes,
                processes=PROCESSES,
                open_files=1024,
                file_bytes=FILE_BYTES,
                stdout_bytes=8 * 1024 * 1024,
            ),
            write=tuple(write),
            hosts=self._recipe.hosts if step.network else (),
            allow_cidrs=self._options.allow_cidrs,
            pin=self._options.pin,
            env=dict(step.env),
            interpreters=self._options.interpreters,
            backend=self._options.backend,
            uid=self._uid,
            network_bytes=NETWORK_BYTES,
        )


def _late(step: Step, options: Options) -> DependencyFault:
    return DependencyFault(
        f"installing was not done after {options.wall_ms} ms; it was at: {step.name}",
        cause="timeout",
        remedy="raise dependencies.wallMs, or see whether the package index answers",
    )


def _fault(maker: Maker, recipe: Recipe, step: Step, outcome: RunOutcome, options: Options) -> DependencyFault:
    if outcome.kind == "unavailable":
        raise Unavailable(outcome.message, outcome.remedy)
    if outcome.kind == "timeout":
        late = _late(step, options)
        late.denied = outcome.denied_hosts
        late.text = tail(outcome.stderr)
        return late
    if outcome.kind == "limit":
        return DependencyFault(
            f"the installer was ended at a limit ({outcome.limit}): {outcome.message}",
            cause="installer",
            text=tail(outcome.stderr),
        )
    if outcome.kind in ("refused", "cancelled"):
        return DependencyFault(
            f"the installer could not be run: {outcome.message}", cause="installer", remedy=outcome.remedy, passing=True
        )
    return maker.explain(recipe, step, outcome)


class _Guard:
    """Looks at the disk and at the caller while a step runs; stops it with a reason.

    The sandbox bounds each file, not all of them together: what the file system lost since the step began is what it wrote
    (or a neighbour: then the build ends for nothing, and nothing is lost).
    """

    def __init__(self, folder: Path, most_bytes: int, cancelled: asyncio.Event | None) -> None:
        self._folder = folder
        self._most = most_bytes
        self._cancelled = cancelled
        self.reason = ""

    async def watch(self, start: Callable[[asyncio.Event], Awaitable[_Result]]) -> _Result:
        """Run what `start` gives with an event that ends it."""
        stop = asyncio.Event()
        looking = asyncio.ensure_future(self._look(stop))
        try:
            return await start(stop)
        finally:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    async def _look(self, stop: asyncio.Event) -> None:
        before = os.statvfs(self._folder)
        while not stop.is_set():
            if self._cancelled is not None and self._cancelled.is_set():
                stop.set()
                return
            await asyncio.sleep(_LOOK_SECONDS)
            now = os.statvfs(self._folder)
            written = (before.f_bfree - now.f_bfree) * now.f_frsize
            if written > self._most:
                self.reason = f"the installation takes more than {size(self._most)} of disk"
            elif now.f_bavail * now.f_frsize < MIN_FREE_BYTES:
                self.reason = f"the disk of the environments has less than {size(MIN_FREE_BYTES)} left"
            elif before.f_ffree - now.f_ffree > MAX_ENTRIES:
                self.reason = f"the installation makes more than {MAX_ENTRIES} files"
            if self.reason:
                stop.set()


def settle(tree: Path) -> tuple[int, int]:
    """Make a built tree this process's own and read-only; gives its bytes and entries.

    Special files are removed. Raises `DependencyFault` for a file that has a second name outside of the tree (it could be changed by that) and
    for a tree that is too large or cannot be read. Names inside of it may share a file: some packages put their program in its place by a link.
    """
    total = entries = 0
    within: set[tuple[int, int]] | None = None
    root = os.geteuid() == 0

    def unreadable(error: OSError) -> None:
        raise _bad_tree(f"a folder in it cannot be read ({error.strerror})")

    for _, folders, files, fd in os.fwalk(tree, topdown=False, follow_symlinks=False, onerror=unreadable):
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            raise _bad_tree(f"it has more than {MAX_ENTRIES} entries")
        for name in (*folders, *files):
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            is_shared = stat.S_ISREG(info.st_mode) and info.st_nlink > 1
            if root and not is_shared:
                os.chown(name, 0, 0, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode) or stat.S_ISDIR(info.st_mode):
                continue  # a folder is made read-only when it is left
            if not stat.S_ISREG(info.st_mode):
                os.unlink(name, dir_fd=fd)
                continue
            if is_shared:
                within = _shared_within(tree) if within is None else within
                if (info.st_dev, info.st_ino) not in within:
                    raise _bad_tree(f"the file {name!r} has a second name outside of it")
                if root:
                    os.chown(name, 0, 0, dir_fd=fd, follow_symlinks=False)
            os.chmod(name, 0o555 if info.st_mode & 0o111 else 0o444, dir_fd=fd)
            total += (info.st_size + 4095) // 4096 * 4096
        os.fchmod(fd, 0o555)
    if root:
        os.chown(tree, 0, 0)
    return total, entries


def _shared_within(tree: Path) -> set[tuple[int, int]]:
    """The files with several names, all of which are in the tree."""
    names: dict[tuple[int, int], tuple[int, int]] = {}
    for _, _, files, fd in os.fwalk(tree, follow_symlinks=False):
        for name in files:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
                key = (info.st_dev, info.st_ino)
                names[key] = (names.get(key, (0, 0))[0] + 1, info.st_nlink)
    return {key for key, (seen, links) in names.items() if seen == links}


def _bad_tree(why: str) -> DependencyFault:
    return DependencyFault(f"what was installed cannot be used: {why}", cause="installer")
