"""The store of environments under races and crashes: whole or not there, one builder per key, nothing in use is removed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis.environments.model import FORMAT, Cancelled, DependencyFault, Meta
from tamis.environments.store import Claim, Lease, Store, remove_tree

KEY = "a" * 40
OTHER = "b" * 40


def meta(key: str = KEY, size: int = 1000) -> Meta:
    return Meta(
        format=FORMAT, key=key, kind="python", form="requirements.txt", created=1.0, build_ms=1.0, bytes=size, entries=1
    )


def claim(store: Store, key: str = KEY, seconds: float = 5) -> Claim:
    got = asyncio.run(store.claim(key, seconds=seconds))
    assert isinstance(got, Claim)
    return got


def finished(store: Store, key: str = KEY, size: int = 1000, used: float | None = None) -> None:
    begun = claim(store, key)
    (begun.tree / "file").write_text(key)
    begun.finish(meta(key, size)).close()
    if used is not None:
        os.utime(store.locks / key, (used, used))


def test_what_is_being_built_cannot_be_seen_until_it_is_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    begun = claim(store)
    (begun.tree / "half").write_text("x")
    assert store.ready(KEY) is None and store.entries() == []
    with begun.finish(meta(), b"lock") as lease:
        assert (Path(lease.path) / "half").read_text() == "x"
        assert (Path(lease.path).parent / "lock.txt").read_bytes() == b"lock"
        assert sorted(path.name for path in Path(lease.path).parent.iterdir()) == ["env", "lock.txt", "meta.json"]
    assert [entry.meta.key for entry in store.entries()] == [KEY]


def test_what_is_leased_again_is_not_removed_until_both_leases_end(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    finished(store)
    first = store.ready(KEY)
    assert first is not None
    second = first.again()
    first.close()
    assert store.prune(0, grace=0).removed == () and store.has(KEY)
    second.close()
    assert store.prune(0, grace=0).removed == (KEY,)


def test_the_store_is_closed_to_other_users(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o755)
    store = Store(tmp_path / "store")
    store.make()
    assert store.folder.stat().st_mode & 0o077 == 0


def test_a_second_claim_waits_for_the_first_and_gets_its_environment(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    async def both() -> tuple[str, list[str]]:
        waited: list[str] = []
        first = await store.claim(KEY, seconds=3600)
        assert isinstance(first, Claim)
        second = asyncio.ensure_future(store.claim(KEY, seconds=3600, on_wait=lambda: waited.append("told")))
        await asyncio.sleep(0.1)
        assert not second.done()
        first.finish(meta()).close()
        lease = await second
        assert isinstance(lease, Lease)
        lease.close()
        return lease.key, waited

    assert asyncio.run(both()) == (KEY, ["told"])


def test_waiting_ends_with_the_deadline_or_by_cancelling(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    begun = claim(store)
    with pytest.raises(DependencyFault) as late:
        asyncio.run(store.claim(KEY, seconds=0.1))
    assert late.value.cause == "timeout" and late.value.passing

    async def cancelled() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, stop.set)
        await store.claim(KEY, seconds=3600, cancelled=stop)

    with pytest.raises(Cancelled):
        asyncio.run(cancelled())
    begun.abandon()
    claim(store).abandon()


BUILDER = """
import asyncio, sys, time
from pathlib import Path
from tamis.environments.store import Claim, Lease, Store
from tamis.environments.model import Meta, FORMAT
folder, key, log = sys.argv[1:4]
store = Store(folder)
got = asyncio.run(store.claim(key, seconds=3600))
if isinstance(got, Claim):
    with open(log, "a") as stream:
        stream.write("built\\n")
    for number in range(20):
        (got.tree / str(number)).write_text("x")
        time.sleep(0.01)
    got = got.finish(Meta(format=FORMAT, key=key, kind="python", form="f", created=1.0, build_ms=1.0, bytes=1, entries=20))
assert len(list(Path(got.path).iterdir())) == 20
got.close()
"""


def start(tmp_path: Path, source: str = BUILDER) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", source, str(tmp_path / "store"), KEY, str(tmp_path / "log")])


def test_processes_that_race_build_once_and_all_use_it(tmp_path: Path) -> None:
    running = [start(tmp_path) for _ in range(4)]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    assert (tmp_path / "log").read_text() == "built\n"


def test_a_builder_that_is_killed_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    slow = start(tmp_path, BUILDER.replace("0.01", "5"))
    while not (tmp_path / "log").exists() or not list(store.environments.glob(".tmp-*/env/0")):
        time.sleep(0.02)
    slow.send_signal(signal.SIGKILL)
    slow.wait()
    assert list(store.environments.glob(".tmp-*")) and store.ready(KEY) is None
    finished(store, OTHER)  # any builder sweeps what no process holds
    store.prune(10**9)
    assert list(store.environments.glob(".tmp-*")) == []
    claim(store).abandon()


def test_a_sweep_leaves_what_a_living_builder_builds(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    begun = claim(store)
    store.sweep()
    assert begun.tree.is_dir()
    begun.abandon()
    assert not begun.folder.exists()


def test_pruning_takes_the_least_recently_used_first(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    now = time.time()
    for number, key in enumerate("abcd"):
        finished(store, key * 40, 1000, used=now - 10_000 - number)
    pruned = store.prune(2000)
    assert pruned.removed == ("d" * 40, "c" * 40) and pruned.freed_bytes == 2000 and pruned.kept_bytes == 2000
    assert [entry.meta.key[0] for entry in store.entries()] == ["a", "b"]
    assert sorted(path.name[0] for path in store.locks.iterdir()) == ["a", "b"]


def test_what_was_used_in_the_future_is_bounded_all_the_same(tmp_path: Path) -> None:
    """A clock was set back."""
    store = Store(tmp_path / "store")
    ahead = time.time() + 10**8
    finished(store, KEY, used=ahead)
    assert store.prune(0).removed == (KEY,)
    cache = store.caches / "uv"
    cache.mkdir(parents=True)
    (cache / "file").write_text("x" * 10_000)
    (store.caches / ".looked").touch()
    os.utime(store.caches / ".looked", (ahead, ahead))
    store.bound_caches(100)
    assert not cache.exists()
    store.remember("old", DependencyFault("no", cause="build", remedy="mend it"))
    os.utime(store.failed / "old.json", (ahead, ahead))
    store.remember("new", DependencyFault("no", cause="build", remedy="mend it"))
    assert [path.name for path in store.failed.iterdir()] == ["new.json"]


def test_what_is_in_use_or_was_just_used_is_not_pruned(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    finished(store, KEY, used=time.time() - 10_000)
    finished(store, OTHER)
    lease = store.ready(KEY)
    assert lease is not None
    os.utime(store.locks / KEY, (1, 1))
    assert store.prune(0).removed == ()  # one is leased, the other within its grace
    assert store.prune(0, grace=0).removed == (OTHER,)
    lease.close()
    assert store.prune(0, grace=0).removed == (KEY,)
    assert list(store.environments.iterdir()) == []


def test_read_only_trees_are_removed(tmp_path: Path) -> None:
    deep = tmp_path / "tree" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    outside = tmp_path / "outside"
    outside.write_text("x")
    (deep / "link").symlink_to(outside)
    for folder in (deep, deep.parent, tmp_path / "tree"):
        folder.chmod(0o555)
    remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists() and outside.read_text() == "x"


def test_an_environment_without_its_record_is_not_used(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    finished(store)
    (store.environments / KEY / "meta.json").write_bytes(b"")
    assert store.ready(KEY) is None and not (store.environments / KEY).exists()
    claim(store).abandon()


def test_a_failure_is_remembered_for_a_minute_and_a_passing_one_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.make()
    store.remember("x", DependencyFault("no such package", cause="missing", package="p", denied=("h:1",)))
    known = store.remembered("x")
    assert known is not None and (known.message, known.cause, known.package, known.denied) == (
        "no such package", "missing", "p", ("h:1",)
    )  # fmt: skip
    path = store.failed / "x.json"
    path.write_text(path.read_text().replace('"at":', '"at":1,"was":'))
    assert store.remembered("x") is None
    path.write_bytes(b"\xff{")
    assert store.remembered("x") is None
    store.remember("y", DependencyFault("cancelled", cause="off", passing=True))
    assert store.remembered("y") is None


def test_a_download_cache_is_not_removed_while_it_is_used(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.make()
    use = store.use_cache("uv")
    assert use is not None and not store.drop_cache("uv")
    use.close()
    assert store.cache_names() == ["uv"] and store.drop_cache("uv") and store.cache_names() == []


def test_a_download_cache_that_grew_too_large_is_begun_anew(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.make()
    use = store.use_cache("uv")
    assert use is not None
    (use.path / "file").write_bytes(bytes(100_000))
    use.close()
    store.bound_caches(1_000_000)
    store.bound_caches(10)  # looked a moment ago
    assert store.cache_names() == ["uv"]
    store.bound_caches(10, every_seconds=0)
    assert store.cache_names() == []


def test_a_store_that_was_never_used_can_be_pruned(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert store.prune(0).removed == ()
    store.bound_caches(10)
    assert not (tmp_path / "store").exists()


def test_keys_are_keys_and_nothing_else(tmp_path: Path) -> None:
    for bad in ("", "../x", "A" * 40, "a" * 39, "a" * 40 + "\n"):
        with pytest.raises(ValueError, match="key"):
            Store(tmp_path).ready(bad)
