"""The store: one file for any number of processes, and memory when the file cannot be had (D83, F26, issue 6 line 4)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import math
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from tamis.server.runtime.doctor import examine
from tamis.server.runtime.health import health
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.store import database as database_module
from tamis.server.runtime.store.owners import Owner, is_gone
from tamis.server.runtime.store.store import Store
from tamis.server.runtime.store.upgrading import MIGRATIONS, prepare

T = TypeVar("T")


def with_store(folder: Path, work: Callable[[Store], Awaitable[T]]) -> tuple[T, list[str], str]:
    """What ``work`` gives, what was said meanwhile, and the store's problem at the end."""
    said: list[str] = []

    async def run() -> tuple[T, str]:
        store = Store(folder, said.append)
        try:
            return await work(store), store.problem
        finally:
            await store.close()

    result, problem = asyncio.run(run())
    return result, said, problem


async def put(store: Store, name: str) -> None:
    await store.run(lambda db: db.execute("INSERT INTO secrets VALUES (?, ?)", (name, b"x")))


async def names(store: Store) -> list[str]:
    return await store.run(lambda db: [name for (name,) in db.execute("SELECT name FROM secrets ORDER BY name")])


async def put_and_names(store: Store) -> list[str]:
    await put(store, f"n{len(await names(store))}")
    return await names(store)


def test_what_is_stored_is_there_for_the_next_process(tmp_path: Path) -> None:
    assert with_store(tmp_path / "state", put_and_names) == (["n0"], [], "")
    assert with_store(tmp_path / "state", put_and_names) == (["n0", "n1"], [], "")


def test_folder_and_files_are_the_users_alone(tmp_path: Path) -> None:  # D83: state folder 0700
    folder = tmp_path / "state"
    modes: dict[str, int] = {}

    async def work(store: Store) -> None:
        await put(store, "x")
        modes.update({path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()})

    old = os.umask(0)
    try:
        with_store(folder, work)
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "tamis.db" in modes
    assert set(modes.values()) == {0o600}


def test_nothing_is_opened_before_the_first_need(tmp_path: Path) -> None:
    async def work(store: Store) -> bool:
        return store.is_open

    assert with_store(tmp_path / "state", work)[0] is False
    assert not (tmp_path / "state").exists()


def test_work_that_fails_is_undone_and_its_error_is_the_callers(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        def half(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO secrets VALUES ('half', x'00')")
            raise KeyError("half")

        with pytest.raises(KeyError):
            await store.run(half)
        with pytest.raises(sqlite3.IntegrityError):
            await store.run(lambda db: db.execute("INSERT INTO secrets VALUES (NULL, NULL)"))
        return await put_and_names(store)

    assert with_store(tmp_path, work) == (["n0"], [], "")


@pytest.mark.parametrize("content", [b"no database at all, but text\n" * 200, b"SQLite format 3\x00" + b"\xff" * 8000])
def test_a_damaged_file_is_moved_aside_and_a_new_one_begun(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tamis.db").write_bytes(content)
    result, said, problem = with_store(tmp_path, put_and_names)
    assert (result, problem) == (["n0"], "")
    aside = [path for path in tmp_path.iterdir() if path.name.endswith(".bad")]
    assert [path.read_bytes() for path in aside] == [content]
    assert len(said) == 1
    assert aside[0].name in said[0]
    assert with_store(tmp_path, put_and_names) == (["n0", "n1"], [], "")


@pytest.mark.parametrize("change", ["DROP TABLE secrets", "ALTER TABLE secrets DROP COLUMN value"])
def test_a_file_whose_tables_were_taken_away_is_moved_aside(tmp_path: Path, change: str) -> None:
    async def work(store: Store) -> list[str]:
        await put(store, "before")
        with contextlib.closing(sqlite3.connect(tmp_path / "tamis.db")) as other:
            other.execute(change)
            other.commit()
        return await put_and_names(store)

    result, said, problem = with_store(tmp_path, work)
    assert (result[-1][0], problem) == ("n", "")
    assert ["its tables are not those" in text for text in said] == [True]
    assert with_store(tmp_path, names) == (result, [], "")


def test_a_file_that_is_damaged_while_it_is_open_costs_what_it_held_only(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        await put(store, "before")
        (tmp_path / "tamis.db-wal").write_bytes(b"\xff" * 40_000)
        (tmp_path / "tamis.db").write_bytes(b"\xff" * 40_000)
        return await put_and_names(store)

    result, _said, _problem = with_store(tmp_path, work)
    assert result[-1].startswith("n")
    assert with_store(tmp_path, put_and_names)[0]


def test_of_several_processes_that_find_a_damaged_file_one_moves_it(tmp_path: Path, is_long: bool) -> None:
    # several times: one of a hundred had a store whose file was moved between two steps of opening it
    for number in range(600 if is_long else 15):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "tamis.db").write_bytes(b"\xff" * 40_000)

        async def work(store: Store, folder: Path = folder) -> list[str]:
            others = [Store(folder) for _ in range(6)]
            await asyncio.gather(*(put(other, f"n{number}") for number, other in enumerate([store, *others])))
            for other in others:
                assert other.problem == ""
                await other.close()
            return await names(store)

        assert with_store(folder, work)[0] == [f"n{number}" for number in range(7)]
        assert len(list(folder.glob("*.bad"))) == 1


def test_a_store_whose_file_another_process_began_anew_goes_on_in_the_new_one(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        await put(store, "old")

        def replaced(db: sqlite3.Connection) -> None:
            # between the opening and the work: what is open is not the file at the path any more, and fails
            if not (tmp_path / "aside").exists():
                (tmp_path / "tamis.db").rename(tmp_path / "aside")
                raise _error(sqlite3.SQLITE_IOERR)
            db.execute("INSERT INTO secrets VALUES ('new', x'00')")

        await store.run(replaced)
        return await names(store)

    assert with_store(tmp_path, work) == (["new"], [], "")


def _error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


def test_another_that_keeps_the_turn_to_open_does_not_hold_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.05)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert with_store(tmp_path, put_and_names) == (["n0"], [], "")
    finally:
        os.close(held)


def test_a_store_that_nobody_closed_takes_its_thread_and_file_with_it(tmp_path: Path) -> None:
    # of a runtime that was dropped: a worker of this suite once had more than a thousand files open
    before = set(threading.enumerate())
    store: Store | None = Store(tmp_path)
    asyncio.run(put(store, "x"))
    (thread,) = (one for one in set(threading.enumerate()) - before if one.name == "tamis-store")
    store = None
    gc.collect()
    thread.join()
    assert not [name for name in open_files() if name.startswith(str(tmp_path))]


def open_files() -> list[str]:
    found: list[str] = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found


def test_a_damaged_file_that_cannot_be_moved_is_left_and_memory_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tamis.db").write_bytes(b"\xff" * 40_000)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(database_module.os, "rename", refuse)
    result, said, problem = with_store(tmp_path, put_and_names)
    assert result == ["n0"]
    assert "it is damaged, and it cannot be moved aside: Permission denied" in problem
    assert said == [problem]


def test_another_programs_database_is_kept_and_not_written_to(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "tamis.db")
    other.execute("CREATE TABLE tasks (mine TEXT)")
    other.execute("INSERT INTO tasks VALUES ('kept')")
    other.commit()
    other.close()
    result, said, problem = with_store(tmp_path, put_and_names)
    assert (result, problem, len(said)) == (["n0"], "", 1)
    (aside,) = tmp_path.glob("*.bad")
    assert sqlite3.connect(aside).execute("SELECT mine FROM tasks").fetchall() == [("kept",)]


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    with_store(tmp_path, put_and_names)
    newer = sqlite3.connect(tmp_path / "tamis.db")
    newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    before = (tmp_path / "tamis.db").read_bytes()
    result, said, problem = with_store(tmp_path, put_and_names)
    assert result in (["n0"], ["n0", "n1"])  # in memory
    assert "newer version" in problem
    assert said == [problem]
    assert (tmp_path / "tamis.db").read_bytes() == before
    assert not list(tmp_path.glob("*.bad"))


def test_a_file_of_every_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    for version in range(len(MIGRATIONS)):
        folder = tmp_path / str(version)
        folder.mkdir(mode=0o700)
        older = sqlite3.connect(folder / "tamis.db")
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                older.execute(statement)
        older.execute(f"PRAGMA application_id = {0x54616D73}")
        older.execute(f"PRAGMA user_version = {version}")
        older.commit()
        older.close()
        assert with_store(folder, put_and_names) == (["n0"], [], "")


def test_a_file_that_someone_holds_is_waited_for_and_then_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.2)
    with_store(tmp_path, put_and_names)
    holder = sqlite3.connect(tmp_path / "tamis.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    result, said, problem = with_store(tmp_path, put_and_names)
    assert result == ["n0", "n1"]  # what the file holds was taken along
    assert "another process has held it" in problem
    assert said[0] == problem
    holder.execute("ROLLBACK")
    assert with_store(tmp_path, put_and_names)[0][:2] == ["n0", "n1"]


def test_what_was_kept_in_memory_is_in_the_file_when_it_can_be_had_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R2: a lock of more than 5 s put a daemon on memory until it was started again
    monkeypatch.setattr(database_module, "BUSY_S", 0.1)
    monkeypatch.setattr(database_module, "RETRY_S", 0.1)
    with_store(tmp_path, put_and_names)
    holder = sqlite3.connect(tmp_path / "tamis.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    async def work(store: Store) -> list[str]:
        found = await put_and_names(store)
        assert "kept in memory until it can be used again" in store.problem
        # another process writes what this one does not see
        holder.execute("INSERT INTO secrets VALUES ('theirs', x'00')")
        holder.execute("INSERT INTO secrets VALUES ('n2', x'00')")
        holder.execute("COMMIT")
        # nothing more is asked: the store goes back by itself
        while store.problem:
            await asyncio.sleep(0.02)
        return [*found, *await names(store)]

    result, said, problem = with_store(tmp_path, work)
    assert (result, problem) == (["n0", "n1", "n0", "n1", "n2", "theirs"], "")
    assert len(said) == 2 and "1 changes were brought to it from memory" in said[1]
    assert with_store(tmp_path, names) == (["n0", "n1", "n2", "theirs"], [], "")


def test_a_change_that_finds_no_place_any_more_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.1)
    monkeypatch.setattr(database_module, "RETRY_S", 0.1)
    with_store(tmp_path, put_and_names)
    holder = sqlite3.connect(tmp_path / "tamis.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    async def work(store: Store) -> None:
        for name in ("first", "taken", "last"):
            await put(store, name)
        holder.execute("INSERT INTO secrets VALUES ('taken', x'00')")
        holder.execute("COMMIT")
        while store.problem:
            await asyncio.sleep(0.02)

    _, said, _ = with_store(tmp_path, work)
    assert "2 changes were brought to it from memory, 1 were not (IntegrityError" in said[1]
    assert with_store(tmp_path, names)[0] == ["first", "last", "n0", "taken"]


def test_what_waits_for_the_file_is_bounded_and_what_is_left_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.05)
    monkeypatch.setattr(database_module, "RETRY_S", 0.2)
    monkeypatch.setattr(database_module, "MAX_KEPT_BYTES", 5000)
    with_store(tmp_path, names)
    holder = sqlite3.connect(tmp_path / "tamis.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    async def work(store: Store) -> None:
        for n in range(6):
            await store.run(lambda db, n=n: db.execute("INSERT INTO secrets VALUES (?, x'00')", (f"n{n}",)), size=2000)
        assert len(await names(store)) == 6
        holder.execute("ROLLBACK")
        while store.problem:
            await asyncio.sleep(0.02)

    _, said, _ = with_store(tmp_path, work)
    assert "4 were not" in said[1]
    assert with_store(tmp_path, names)[0] == ["n4", "n5"]


def test_work_that_all_must_see_is_not_done_in_memory_while_another_holds_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_S", 0.05)
    monkeypatch.setattr(database_module, "BACK_S", 0.05)
    with_store(tmp_path, put_and_names)
    holder = sqlite3.connect(tmp_path / "tamis.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    async def work(store: Store) -> list[str]:
        def count(db: sqlite3.Connection) -> int:
            return db.execute("SELECT count(*) FROM secrets").fetchone()[0]

        for _ in range(2):
            with pytest.raises(database_module.Held, match="another process has held it"):
                await store.run_shared(count)
        # others go on meanwhile
        await put(store, "meanwhile")
        holder.execute("ROLLBACK")
        # asked for, the file is tried at once
        assert await store.run_shared(count) == 2
        assert store.problem == ""
        return await names(store)

    assert with_store(tmp_path, work)[0] == ["meanwhile", "n0"]


def test_a_full_disk_is_left_as_soon_as_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R2: the same of a disk that was full once
    monkeypatch.setattr(database_module, "RETRY_S", 0.1)
    real = sqlite3.connect
    full = True

    def connect(*args: object, **more: object) -> sqlite3.Connection:
        connection = cast("sqlite3.Connection", real(*args, **more))  # type: ignore[call-overload]
        if full and args[0] != ":memory:":
            connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(database_module.sqlite3, "connect", connect)

    async def work(store: Store) -> None:
        nonlocal full
        await put(store, "kept")
        assert "full" in store.problem
        await asyncio.sleep(0.3)
        assert "full" in store.problem
        full = False
        while store.problem:
            await asyncio.sleep(0.02)

    _, said, _ = with_store(tmp_path, work)
    assert len(said) == 2
    assert with_store(tmp_path, names)[0] == ["kept"]


def test_a_full_disk_costs_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "RETRY_S", 1000.0)

    async def work(store: Store) -> list[str]:
        await put(store, "before")
        await store.run(lambda db: db.execute("PRAGMA max_page_count = 1"))

        def large(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO secrets VALUES ('large', zeroblob(3000000))")

        await store.run(large)
        return await names(store)

    result, said, problem = with_store(tmp_path, work)
    assert result == ["before", "large"]
    assert "full" in problem
    assert said[0] == problem
    assert "before" in with_store(tmp_path, names)[0]


def test_a_bound_on_file_sizes_costs_no_call(tmp_path: Path) -> None:
    code = (
        "import asyncio, resource, signal, sys\nfrom pathlib import Path\n"
        "from tamis.server.runtime.store.store import Store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "async def main():\n"
        "    store = Store(Path(sys.argv[1]), print)\n"
        "    print(await store.run(lambda db: db.execute('SELECT 1').fetchone()[0]))\n"
        "    await store.close()\nasyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "1", done.stderr
    assert "in memory" in done.stdout
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


@pytest.mark.parametrize("what", ["file", "link", "folder"])
def test_a_place_that_cannot_be_written_costs_no_call(tmp_path: Path, what: str) -> None:  # read-only HOME
    folder = tmp_path / "state"
    if what == "file":
        folder.write_text("a file where the folder should be")
    else:
        folder.mkdir(mode=0o700)
        target = tmp_path / "elsewhere"
        if what == "link":
            (folder / "tamis.db").symlink_to(target)
        else:
            (folder / "tamis.db").mkdir()
    result, said, problem = with_store(folder, put_and_names)
    assert result == ["n0"]
    assert "kept in memory" in problem
    assert said == [problem]
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_was_taken_away_is_begun_anew(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        await put(store, "before")
        for path in tmp_path.glob("tamis.db*"):
            path.unlink()
        return await put_and_names(store)

    assert with_store(tmp_path, work) == (["n0"], [], "")


def test_many_processes_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tamis.server.runtime.store.store import Store\n"
        "async def main():\n"
        "    store = Store(Path(sys.argv[1]), print)\n"
        "    for n in range(25):\n"
        "        await store.run(lambda db: db.execute('INSERT INTO secrets VALUES (?, x\\'00\\')', (f'{sys.argv[2]}-{n}',)))\n"
        "    await store.close()\nasyncio.run(main())\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    assert [run.communicate()[0] for run in runs] == [""] * 4
    assert len(with_store(tmp_path, names)[0]) == 100


def test_two_stores_of_one_process_on_one_file(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        other = Store(tmp_path)
        for n in range(10):
            await asyncio.gather(put(store, f"a{n}"), put(other, f"b{n}"))
        await other.close()
        return await names(store)

    assert len(with_store(tmp_path, work)[0]) == 20


def test_a_closed_store_opens_again(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        await put(store, "before")
        await store.close()
        await store.close()
        return await put_and_names(store)

    assert with_store(tmp_path, work)[0] == ["before", "n1"]


def test_what_is_posted_is_done_in_order_and_a_fault_in_it_is_said(tmp_path: Path) -> None:
    async def work(store: Store) -> list[str]:
        store.post(lambda db: db.execute("INSERT INTO secrets VALUES ('posted', x'00')"))
        store.post(lambda db: db.execute("no such statement"))
        return await put_and_names(store)

    result, said, _ = with_store(tmp_path, work)
    assert result == ["n1", "posted"]
    assert len(said) == 1
    assert "did not take a change" in said[0]


def test_who_is_gone_is_known_by_process_and_start(tmp_path: Path) -> None:
    async def work(store: Store) -> None:
        owner = Owner(store)
        ended = subprocess.Popen([sys.executable, "-c", "pass"])
        ended.wait()
        machine, process, started, _ = owner.token.split(" ")

        def look(db: sqlite3.Connection) -> None:
            assert not is_gone(db, owner.token)
            assert is_gone(db, f"{machine} {ended.pid} {started} 00")
            # the parent is there, but did not start then: the number was given again
            assert is_gone(db, f"{machine} {os.getppid()} 1 00")
            assert not is_gone(db, f"{machine} {os.getppid()} {parent} 00")
            # elsewhere: only its beat tells
            assert is_gone(db, f"elsewhere {process} {started} 00")
            db.execute("INSERT INTO owners VALUES (?, unixepoch() - 10)", (f"elsewhere {process} {started} 00",))
            assert not is_gone(db, f"elsewhere {process} {started} 00")
            db.execute("UPDATE owners SET beat = beat - 3600")
            assert is_gone(db, f"elsewhere {process} {started} 00")
            for nonsense in ("", " ", "x y z", f"{machine} x y"):
                assert is_gone(db, nonsense)

        parent = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19]
        await store.run(look)
        owner.close()
        assert await store.run(lambda db: is_gone(db, owner.token))

    with_store(tmp_path, work)


def test_doctor_and_health_say_what_is_wrong_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # D86
    monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))

    def told() -> tuple[str, str]:
        (found,) = [one for one in examine(Runtime(tmp_path))["checks"] if one["name"] == "store"]
        return found["state"], found["text"]

    assert told() == ("ok", str(tmp_path / "state" / "tamis.db"))
    (tmp_path / "state" / "tamis.db").unlink()
    (tmp_path / "state" / "tamis.db").mkdir()
    assert told()[0] == "warning"
    assert "kept in memory" in told()[1]

    async def use() -> dict[str, object]:
        runtime = Runtime(tmp_path)
        assert runtime.parts.store_problem == ""
        await put(runtime.parts.store, "x")
        found = health(runtime)
        await runtime.close()
        return found

    found = asyncio.run(use())
    assert found["status"] == "degraded"
    assert any("kept in memory" in str(problem) for problem in cast("list[str]", found["problems"]))


class Crowd:
    """Other processes that write one behind the other and leave no moment between them. The store's clock goes on with their turns alone."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, turn_s: float, turns: float = math.inf) -> None:
        self._other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._turn_s, self._turns, self._now = turn_s, turns, 1000.0
        self._begin = database_module.begin
        clock = SimpleNamespace(monotonic=lambda: self._now, sleep=lambda _seconds: None)
        monkeypatch.setattr(database_module, "time", clock)
        monkeypatch.setattr(database_module, "begin", self._begin_in_crowd)

    def _begin_in_crowd(self, connection: sqlite3.Connection) -> None:
        if self._turns <= 0:
            return self._begin(connection)
        self._turns -= 1
        self._other.execute("BEGIN IMMEDIATE")
        self._other.execute("INSERT OR REPLACE INTO states VALUES ('crowd', 'x', ?, 0)", (str(self._now),))
        try:
            return self._begin(connection)
        finally:
            self._other.execute("COMMIT")
            self._now += self._turn_s


def test_a_store_waits_its_turn_while_others_write_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R2: by contention alone 107 of 200 daemons fell off the store
    monkeypatch.setattr(database_module, "BUSY_S", 0.3)
    with_store(tmp_path, names)
    Crowd(tmp_path / "tamis.db", monkeypatch, 0.05, turns=30)
    assert with_store(tmp_path, put_and_names) == (["n0"], [], "")


def test_a_crowd_that_never_ends_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # R2
    monkeypatch.setattr(database_module, "BUSY_S", 0.2)
    monkeypatch.setattr(database_module, "TURNS_S", 0.5)
    with_store(tmp_path, names)
    Crowd(tmp_path / "tamis.db", monkeypatch, 0.15)
    assert with_store(tmp_path, put_and_names)[0] == ["n0"]


def test_shared_work_in_a_crowd_is_held_and_leaves_the_store_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R2: who asked knows how long it may wait; the others of this process are not sent to memory for it
    monkeypatch.setattr(database_module, "BUSY_S", 0.3)
    with_store(tmp_path, names)

    async def work(store: Store) -> str:
        Crowd(tmp_path / "tamis.db", monkeypatch, 0.12)
        with pytest.raises(database_module.Held, match="other processes have used it"):
            await store.run_shared(lambda db: db.execute("SELECT 1").fetchone())
        return store.problem

    assert with_store(tmp_path, work) == ("", [], "")


def test_opening_a_file_that_is_up_to_date_takes_no_right_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R2: each start was one more transaction that waited for all others
    monkeypatch.setattr(database_module, "BUSY_S", 0.05)
    with_store(tmp_path, names)
    with contextlib.closing(sqlite3.connect(tmp_path / "tamis.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with contextlib.closing(sqlite3.connect(tmp_path / "tamis.db", isolation_level=None, timeout=0)) as opened:
            prepare(opened, 0.05)
