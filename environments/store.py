"""The store of finished environments: one folder per key, renamed into place whole, locked between processes, pruned.

    environments/
      v1/<key>/env        the environment, read-only by mode and never changed
      v1/<key>/meta.json  what it is; lock.txt beside it, where something was resolved
      v1/.tmp-<key>-…     one that is being built; swept when nobody holds its key any more
      locks/<key>         flock: shared while an environment is in use, exclusive while it is built or removed;
                          its time of change is the time of the last use
      failed/<name>.json  builds that failed in the last minute
      caches/<name>       the installers' download caches

Whoever dies lets go of its locks, so nothing here needs repair after a crash. Must not know how anything is built.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tamis.environments.model import FORMAT, Cancelled, Cause, DependencyFault, Meta


def remove_tree(path: Path) -> None:
    """Remove a folder with all below it, read-only or not; no link is followed, and what is gone already is fine."""
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            return
        path.chmod(0o700)
        if os.geteuid() != 0:
            for _, folders, _, fd in os.fwalk(path, follow_symlinks=False):
                for name in folders:
                    if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                        os.chmod(name, 0o700, dir_fd=fd)
    shutil.rmtree(path, ignore_errors=True)


def folder_size(path: Path, *, most_entries: int = 1_000_000) -> tuple[int, int]:
    """(bytes on disk, entries) below a folder, no link followed; counting stops at `most_entries`."""
    total = entries = 0
    for _, folders, files, fd in os.fwalk(path, follow_symlinks=False):
        for name in (*folders, *files):
            entries += 1
            with contextlib.suppress(OSError):
                total += os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks * 512
        if entries > most_entries:
            break
    return total, entries


class FileLock:
    """A lock file; taking one never waits. What is held is let go by `close()` or by the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def take(self, *, shared: bool) -> bool:
        """Take it, or turn what is held into the other kind; False when somebody else is in the way."""
        while True:
            if self._fd < 0:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._fd = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(self._fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError as error:
                self.close()
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    return False
                raise
            # a file that was removed in between locks nobody out
            try:
                there = os.stat(self.path, follow_symlinks=False)
            except FileNotFoundError:
                there = None
            here = os.fstat(self._fd)
            if there is not None and (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
                return True
            self.close()

    def stamp(self) -> None:
        """Note that the key is used now."""
        with contextlib.suppress(OSError):
            os.utime(self._fd)

    def forget(self) -> None:
        """Remove the file; only under an exclusive lock."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def close(self) -> None:
        """Let go of it; a second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


REMEMBER_SECONDS = 60.0
"""How long a failed build is not tried again."""
GRACE_SECONDS = 600.0
"""An environment that was used this recently is not pruned: it will be wanted again."""
MAX_META_BYTES = 4 * 1024 * 1024

_KEY = re.compile(r"[0-9a-f]{40}")
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.2


class Entry(msgspec.Struct, frozen=True):
    """A finished environment in a listing. `last_used` is in seconds since the epoch."""

    meta: Meta
    last_used: float


class Pruned(msgspec.Struct, frozen=True, rename="camel"):
    """What a pruning removed and left: keys, bytes freed, bytes that stay."""

    removed: tuple[str, ...]
    freed_bytes: int
    kept_bytes: int


class _Failure(msgspec.Struct, frozen=True):
    at: float
    message: str
    cause: Cause
    remedy: str
    package: str
    text: str
    denied: tuple[str, ...]


class Lease:
    """An environment that is in use: while it is held, nobody removes it. Close it after the run."""

    def __init__(self, meta: Meta, path: str, lock: FileLock) -> None:
        self.meta = meta
        self.path = path
        """The environment's folder on the host, for `Environment.path`."""
        self._lock = lock

    @property
    def key(self) -> str:
        """The environment's key."""
        return self.meta.key

    def again(self) -> Lease:
        """Another lease of the same environment, for who uses it longer; only while this one is held."""
        lock = FileLock(self._lock.path)
        if not lock.take(shared=True):
            raise BlockingIOError(errno.EAGAIN, "the environment is leased no longer", str(self._lock.path))
        return Lease(self.meta, self.path, lock)

    def close(self) -> None:
        """Let go of it; a second call does nothing."""
        self._lock.stamp()
        self._lock.close()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Claim:
    """The exclusive right to build a key, with the folders to build it in. End it with `finish` or `abandon`.

    `tree` becomes the environment, `sources` is for the recipe's files, `cache` is a download cache of this build alone.
    """

    def __init__(self, store: Store, key: str, lock: FileLock) -> None:
        self.key = key
        self._store = store
        self._lock = lock
        self.folder = store.environments / f".tmp-{key}-{os.getpid()}-{secrets.token_hex(4)}"
        self.tree = self.folder / "env"
        self.sources = self.folder / "sources"
        self.cache = self.folder / "cache"

    def begin(self) -> None:
        """Make the folders. Raises OSError."""
        for folder in (self.folder, self.tree, self.sources, self.cache):
            folder.mkdir(mode=0o755)
            folder.chmod(0o755)  # whatever the umask: as root, another uid reads here

    def finish(self, meta: Meta, lock: bytes = b"") -> Lease:
        """Put the built tree in its place, whole, and keep it as a lease. Raises OSError."""
        for gone in (self.sources, self.cache):
            remove_tree(gone)
        if lock:
            (self.folder / "lock.txt").write_bytes(lock)
        (self.folder / "meta.json").write_bytes(msgspec.json.format(msgspec.json.encode(meta), indent=1))
        place = self._store.environments / self.key
        os.rename(self.folder, place)
        self._lock.stamp()
        while not self._lock.take(shared=True):
            time.sleep(_FIRST_WAIT)  # somebody looked at the key while the lock changed its kind
        if not place.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the environment was removed as soon as it was built", str(place))
        return Lease(meta, str(place / "env"), self._lock)

    def abandon(self) -> None:
        """Remove what was begun and let go of the key."""
        remove_tree(self.folder)
        self._lock.close()


class Store:
    """The environments below one folder, which only this user can enter."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.environments = self.folder / f"v{FORMAT}"
        self.locks = self.folder / "locks"
        self.failed = self.folder / "failed"
        self.caches = self.folder / "caches"

    def make(self) -> None:
        """Make the folders; raises OSError, also for one that another user owns."""
        for folder in (self.folder, self.environments, self.locks, self.failed, self.caches):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = self.folder.stat()
        if info.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "belongs to another user", str(self.folder))
        if info.st_mode & 0o077:
            self.folder.chmod(0o700)

    def ready(self, key: str, *, patience: float = 2.0) -> Lease | None:
        """The finished environment of a key, leased; None when there is none. Waits at most `patience` seconds, and only
        where someone is about to remove it."""
        _check(key)
        end = time.monotonic() + patience
        while (self.environments / key).is_dir():
            lease = self._lease(key)
            if lease is not None:
                return lease
            if time.monotonic() > end:
                return None
            time.sleep(0.002)
        return None

    def has(self, key: str) -> bool:
        """Whether a finished environment of that key stands here now."""
        return (self.environments / key / "env").is_dir()

    def _lease(self, key: str) -> Lease | None:
        lock = FileLock(self.locks / key)
        if not lock.take(shared=True):
            return None
        place = self.environments / key
        meta = _read_meta(place)
        if meta is None or not (place / "env").is_dir():
            lock.close()
            self._discard(key)
            return None
        lock.stamp()
        return Lease(meta, str(place / "env"), lock)

    def _discard(self, key: str) -> None:
        """Remove an environment that cannot be read (a disk that lost what was written last)."""
        lock = FileLock(self.locks / key)
        if lock.take(shared=False):
            self._remove(key)
            lock.close()

    async def claim(
        self,
        key: str,
        *,
        seconds: float,
        cancelled: asyncio.Event | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> Lease | Claim:
        """The finished environment, or the right to build it; waits while another builds the same.

        `on_wait` is called once if there is something to wait for. Raises `DependencyFault` after `seconds`, `Cancelled`,
        OSError.
        """
        _check(key)
        self.make()
        end, pause, told = time.monotonic() + seconds, _FIRST_WAIT, False
        while True:
            if cancelled is not None and cancelled.is_set():
                raise Cancelled
            if (self.environments / key).is_dir():
                lease = self._lease(key)
                if lease is not None:
                    return lease
            lock = FileLock(self.locks / key)
            if lock.take(shared=False):
                if (self.environments / key).is_dir():
                    lock.close()
                    continue
                self.sweep(key)
                claim = Claim(self, key, lock)
                try:
                    claim.begin()
                except BaseException:
                    claim.abandon()
                    raise
                return claim
            if time.monotonic() > end:
                raise DependencyFault(
                    f"another process was still building the same environment after {seconds:g} s",
                    cause="timeout",
                    remedy="try again, or raise dependencies.wallMs",
                    passing=True,
                )
            if not told and on_wait is not None:
                on_wait()
                told = True
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_WAIT)

    def entries(self) -> list[Entry]:
        """Every finished environment, the one that was used last first."""
        entries: list[Entry] = []
        for key in self._keys():
            meta = _read_meta(self.environments / key)
            if meta is not None:
                entries.append(Entry(meta, self._last_used(key)))
        return sorted(entries, key=lambda entry: -entry.last_used)

    def _keys(self) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self.environments) as listed:
            yield from sorted(entry.name for entry in listed if _KEY.fullmatch(entry.name))

    def _last_used(self, key: str) -> float:
        for path in (self.locks / key, self.environments / key):
            with contextlib.suppress(OSError):
                return path.stat().st_mtime
        return 0.0

    def prune(self, limit_bytes: int, *, grace: float = GRACE_SECONDS, now: float | None = None) -> Pruned:
        """Remove the environments that were not used for longest until the others take at most `limit_bytes`.

        What is in use, or was used in the last `grace` seconds, stays. Removes what dead builders left, too.
        """
        now = time.time() if now is None else now
        self.sweep()
        entries = self.entries()
        total = sum(entry.meta.bytes for entry in entries)
        removed: list[str] = []
        freed = 0
        for entry in reversed(entries):
            if total - freed <= limit_bytes:
                break
            # by its distance: a time in the future, from a clock that was set back, must not keep it for ever
            if abs(now - entry.last_used) < grace:
                continue
            lock = FileLock(self.locks / entry.meta.key)
            if not lock.take(shared=False):
                continue
            self._remove(entry.meta.key)
            lock.forget()
            lock.close()
            removed.append(entry.meta.key)
            freed += entry.meta.bytes
        return Pruned(tuple(removed), freed, total - freed)

    def _remove(self, key: str) -> None:
        gone = self.environments / f".gone-{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.environments / key, gone)  # out of sight at once, whatever ends this process
        remove_tree(gone)

    def sweep(self, held: str = "") -> None:
        """Remove what builders and removers that died left behind. `held` is a key that the caller has locked itself."""
        names: list[str] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.environments) as listed:
            names = [entry.name for entry in listed if entry.name.startswith((".tmp-", ".gone-"))]
        for name in names:
            key = name.split("-")[1]
            lock = FileLock(self.locks / key) if name.startswith(".tmp-") and key != held else None
            if lock is None or lock.take(shared=False):
                remove_tree(self.environments / name)
            if lock is not None:
                lock.close()

    def remember(self, name: str, fault: DependencyFault) -> None:
        """Keep a failed build in mind for a minute; a passing fault is not kept."""
        if fault.passing:
            return
        kept = _Failure(time.time(), fault.message, fault.cause, fault.remedy, fault.package, fault.text, fault.denied)
        place = self.failed / f"{name}.json"
        with contextlib.suppress(OSError):
            part = self.failed / f".{name}-{secrets.token_hex(4)}"
            part.write_bytes(msgspec.json.encode(kept))
            os.rename(part, place)
            self._forget_old()

    def _forget_old(self) -> None:
        with os.scandir(self.failed) as listed:
            for entry in listed:
                if abs(time.time() - entry.stat(follow_symlinks=False).st_mtime) > REMEMBER_SECONDS:
                    os.unlink(entry.path)

    def remembered(self, name: str) -> DependencyFault | None:
        """The fault of a build that failed less than a minute ago."""
        try:
            kept = msgspec.json.decode((self.failed / f"{name}.json").read_bytes(), type=_Failure)
        except (OSError, msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
            return None
        if not 0 <= time.time() - kept.at < REMEMBER_SECONDS:
            return None
        return DependencyFault(
            kept.message,
            cause=kept.cause,
            remedy=kept.remedy,
            package=kept.package,
            text=kept.text,
            denied=kept.denied,
            passing=True,
        )

    def forget(self, name: str) -> None:
        """Let a failed build be tried again."""
        with contextlib.suppress(OSError):
            (self.failed / f"{name}.json").unlink()

    def use_cache(self, name: str) -> CacheUse | None:
        """The shared download cache of that name, kept from being removed while it is used; None while it is removed."""
        lock = FileLock(self.locks / f"cache-{name}")
        if not lock.take(shared=True):
            return None
        path = self.caches / name
        path.mkdir(mode=0o700, exist_ok=True)
        return CacheUse(path, lock)

    def drop_cache(self, name: str) -> bool:
        """Remove a download cache, unless a build uses it."""
        lock = FileLock(self.locks / f"cache-{name}")
        if not lock.take(shared=False):
            return False
        gone = self.caches / f".gone-{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.caches / name, gone)
        remove_tree(gone)
        lock.close()
        return True

    def bound_caches(self, limit_bytes: int, *, every_seconds: float = 3600.0) -> None:
        """Remove each download cache that takes more than `limit_bytes`; looks at most once in `every_seconds`, as it has to
        walk them."""
        if not self.caches.is_dir():
            return  # nothing was ever downloaded
        looked = self.caches / ".looked"
        with contextlib.suppress(FileNotFoundError):
            if abs(time.time() - looked.stat().st_mtime) < every_seconds:
                return
        looked.touch()
        for name in self.cache_names():
            if folder_size(self.caches / name)[0] > limit_bytes:
                self.drop_cache(name)

    def cache_names(self) -> list[str]:
        """The shared download caches that there are."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.caches) as listed:
            return sorted(entry.name for entry in listed if not entry.name.startswith("."))
        return []


class CacheUse:
    """A download cache in use."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    def close(self) -> None:
        """Let it be removed again."""
        self._lock.close()


def _check(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no key of an environment")


def _read_meta(place: Path) -> Meta | None:
    try:
        data = (place / "meta.json").read_bytes()[:MAX_META_BYTES]
        meta = msgspec.json.decode(data, type=Meta)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
        return None
    return meta if meta.format == FORMAT and meta.key == place.name else None
