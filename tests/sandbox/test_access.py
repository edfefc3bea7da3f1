"""As root: folders that the run's uid may use, by a mapped mount or lent under a lock (trust 9; rulings 58 and 59).

Every fault here was seen: lost writes of two processes, folders that stayed a stray uid's after `kill -9`, calls that waited
outside their time, closed folders that were refused.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.sandbox import host, runner, uids
from tamis.sandbox.model import Limits, Mount, RunOutcome
from tamis.sandbox.paths import claims, idmapped, lending
from tamis.sandbox.paths.walk import open_absolute
from tests.sandbox import access, support

pytestmark = pytest.mark.skipif(
    not support.IS_ROOT, reason="an ordinary user's tools run as that user: nothing is given"
)

ROOT = Path(__file__).parents[2]
PEER = """
import asyncio, os, sys
ROOT, FOLDER, DATA, PLACE, HOW, COUNT = sys.argv[1:]
sys.path.insert(0, ROOT)
from tamis.sandbox import runner
from tamis.sandbox.model import Limits, Mount
from tests.sandbox import access, support
if HOW == "lent": exec(access.WITHOUT_MOUNTS)
wanted = support.request(FOLDER, write=(Mount(DATA),))
async def main():
    for _ in range(int(COUNT)):
        outcome = await runner.run(wanted, on_output=lambda *_: print("began", flush=True))
        assert outcome.kind == "ok", outcome
asyncio.run(main())
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "data"
    folder.mkdir()
    return folder


@pytest.fixture(params=["mapped", "lent"])
def how(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test by either way."""
    if request.param == "lent":
        access.without_mounts(monkeypatch, tmp_path)
    else:
        access.needs_mounts(tmp_path)
    return str(request.param)


@pytest.fixture
def mapped(tmp_path: Path) -> None:
    access.needs_mounts(tmp_path)


@pytest.fixture
def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return access.without_mounts(monkeypatch, tmp_path)


def peer(folder: str, data: Path, how: str, count: int = 1) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", PEER, str(ROOT), folder, str(data), str(data.parent / "claims"), how, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd="/")


def owners(top: Path) -> set[int]:
    return {path.lstat().st_uid for path in (top, *top.rglob("*"))}


def test_two_processes_that_write_in_one_folder_lose_nothing(tmp_path: Path, data: Path, how: str) -> None:
    source = f"import os, time\nfor n in range(4):\n  open(f'{data}/{{os.urandom(8).hex()}}', 'w').write('x'); time.sleep(0.05)"
    folder = support.tool_folder(tmp_path, source)
    peers = [peer(folder, data, how, 2) for _ in range(2)]
    assert [one.wait() for one in peers] == [0, 0]
    for one in peers:
        one.communicate()
    assert len(list(data.iterdir())) == 16
    assert owners(data) == {0}


def test_new_files_belong_to_the_folders_owner(tmp_path: Path, data: Path, how: str) -> None:
    os.chown(data, 1234, 2345)
    (data / "of-others").write_text("x")
    source = f"import os; os.mkdir('{data}/d'); open('{data}/d/f', 'w').write('x'); print(os.stat('{data}').st_uid == os.getuid())"
    outcome = support.run_source(tmp_path, source, write=(Mount(str(data)),))
    assert outcome.stdout == b"True\n", outcome
    shown = {name: (data / name).stat() for name in (".", "d", "d/f", "of-others")}
    assert {name: (info.st_uid, info.st_gid) for name, info in shown.items()} == {
        ".": (1234, 2345),
        "d": (1234, 2345),
        "d/f": (1234, 2345),
        "of-others": (0, 0),
    }


def test_files_of_others_keep_their_rights_on_a_mapped_mount(tmp_path: Path, data: Path, mapped: None) -> None:
    # the run's uid stands for the folder's owner, for nobody else: not for root
    os.chown(data, 1234, 1234)
    (data / "roots").write_text("x")
    (data / "roots").chmod(0o600)
    source = f"try: open('{data}/roots').read(); print('BROKEN')\nexcept PermissionError: print('held')"
    assert support.run_source(tmp_path, source, write=(Mount(str(data)),)).stdout == b"held\n"


def test_nothing_is_chowned_while_a_mapped_folder_is_written(tmp_path: Path, data: Path, mapped: None) -> None:
    (data / "there").touch()
    before = (data / "there").stat()
    seen: list[set[int]] = []
    source = f"open('{data}/x', 'w').write('1'); print('written', flush=True); import time; time.sleep(0.1)"
    wanted = support.request(support.tool_folder(tmp_path, source), write=(Mount(str(data)),))
    outcome = support.run(wanted, on_output=lambda *_: seen.append(owners(data)))
    assert outcome.kind == "ok", outcome
    assert seen and set().union(*seen) == {0}
    assert (data / "there").stat().st_ctime_ns == before.st_ctime_ns


def test_runs_that_share_a_mapped_folder_do_not_wait(tmp_path: Path, data: Path, mapped: None) -> None:
    # each waits for the other's word: one behind the other they would never end
    source = f"import os, sys, time\nmine, other = sys.argv[1:]\nopen(f'{data}/{{mine}}', 'w').close()\nwhile not os.path.exists(f'{data}/{{other}}'): time.sleep(0.01)"
    folder = support.tool_folder(tmp_path, source)

    async def main() -> list[RunOutcome]:
        pairs = (("a", "b"), ("b", "a"))
        return await asyncio.gather(
            *(runner.run(support.request(folder, args=pair, write=(Mount(str(data)),))) for pair in pairs)
        )

    assert [outcome.kind for outcome in asyncio.run(main())] == ["ok", "ok"]


def test_set_id_files_cannot_be_made_in_a_folder_of_roots(tmp_path: Path, data: Path, mapped: None) -> None:
    # on a mapped mount they would be root's at once
    tries = "lambda p: os.chmod(p, 0o4755), lambda p: os.chmod(p, 0o2755), lambda p: os.close(os.open(p + 'n', os.O_CREAT | os.O_WRONLY, 0o4755))"
    source = f"import os\np = '{data}/f'\nopen(p, 'w').close()\nfor one in ({tries}):\n  try: one(p)\n  except OSError: pass\nprint(oct(os.stat(p).st_mode))"
    outcome = support.run_source(tmp_path, source, write=(Mount(str(data)),))
    assert outcome.stdout == b"0o100644\n", outcome
    assert not any(path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) for path in data.iterdir())
    assert "set-uid" not in " ".join(outcome.violations)


# Closed folders


def test_closed_tool_folder_works_and_stays_read_only(tmp_path: Path, mapped: None) -> None:
    source = "import other\ntry: open('/tool/x', 'w')\nexcept OSError as e: print(other.word, e.errno)"
    folder = Path(support.tool_folder(tmp_path, source))
    (folder / "other.py").write_text("word = 'beside'")
    for path in (folder / "tool.py", folder / "other.py"):
        path.chmod(0o600)
    folder.chmod(0o700)
    for owner in (0, 1234):
        for path in (folder, folder / "tool.py", folder / "other.py"):
            os.chown(path, owner, owner)
        outcome = support.run(support.request(str(folder)))
        assert (outcome.kind, outcome.stdout) == ("ok", b"beside 30\n"), outcome
    assert owners(folder) == {1234}


def test_closed_tool_folder_with_a_writable_folder_in_it(tmp_path: Path, mapped: None) -> None:
    folder = Path(support.tool_folder(tmp_path, "open('/tool/out/x', 'w').write('1')"))
    (folder / "out").mkdir(mode=0o700)
    folder.chmod(0o700)
    outcome = support.run(support.request(str(folder), write=(Mount(str(folder / "out")),)))
    assert outcome.kind == "ok", outcome
    assert (folder / "out" / "x").read_text() == "1"


def test_closed_read_grants_are_shown(tmp_path: Path, data: Path, mapped: None) -> None:
    (data / "in").write_text("granted")
    (data / "in").chmod(0o600)
    data.chmod(0o700)
    source = f"print(open('{data}/in').read())\ntry: open('{data}/in', 'w')\nexcept OSError as e: print(e.errno)"
    for path in (data, data / "in"):
        outcome = support.run_source(tmp_path, source, read=(Mount(str(path)),))
        assert outcome.stdout == b"granted\n30\n", outcome


def test_closed_folder_of_a_pinned_script_works(tmp_path: Path, mapped: None) -> None:
    from tests.sandbox.sri import sri

    source = b"import other; print(other.word)"
    folder = Path(support.tool_folder(tmp_path, source))
    (folder / "other.py").write_text("word = 'beside'")
    for path in (folder / "tool.py", folder / "other.py"):
        path.chmod(0o600)
    folder.chmod(0o700)
    outcome = support.run(support.request(str(folder), integrity=sri(source)))
    assert outcome.stdout == b"beside\n", outcome


def test_script_that_belongs_to_another_is_refused_with_its_mode(tmp_path: Path, mapped: None) -> None:
    folder = Path(support.tool_folder(tmp_path, "print(1)"))
    folder.chmod(0o700)
    os.chown(folder / "tool.py", 1234, 1234)
    (folder / "tool.py").chmod(0o600)
    outcome = support.run(support.request(str(folder)))
    assert outcome.kind == "refused" and "0600" in outcome.message and "chmod" in outcome.remedy, outcome


def test_closed_tool_folder_without_mapped_mounts_says_what_to_do(tmp_path: Path, lent: Path) -> None:
    folder = support.tool_folder(tmp_path, "print(1)")
    Path(folder).chmod(0o700)
    outcome = support.run(support.request(folder))
    assert outcome.kind == "refused"
    assert "0700" in outcome.message and "this test does without" in outcome.message and "chmod" in outcome.remedy


def test_folder_that_is_swapped_before_it_is_mounted_is_refused(
    tmp_path: Path, data: Path, mapped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data.parent / "other").mkdir(mode=0o700)
    real = idmapped.mapped

    def swapping(*args: object, **more: object) -> int:
        mount = real(*args, **more)  # type: ignore[arg-type]
        data.rename(data.parent / "gone")
        (data.parent / "other").rename(data)
        return mount

    monkeypatch.setattr(idmapped, "mapped", swapping)
    outcome = support.run_source(tmp_path, f"print(open('{data}/x', 'w'))", write=(Mount(str(data)),))
    assert outcome.kind == "refused" and "replaced" in outcome.message, outcome
    assert list(data.iterdir()) == []


def test_machine_without_nsenter_lends(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_NSENTER", ())
    monkeypatch.setattr(claims, "PLACES", (str(tmp_path / "claims"),))
    outcome = support.run_source(tmp_path, f"open('{data}/x', 'w').close()", write=(Mount(str(data)),))
    assert outcome.kind == "ok", outcome
    assert owners(data) == {0}


# Lent folders


def test_folder_of_a_killed_process_is_put_back_by_the_next_run(tmp_path: Path, data: Path, lent: Path) -> None:
    os.chown(data, 1234, 2345)
    (data / "roots").write_text("x")
    source = f"import time; open('{data}/new', 'w').close(); print(1, flush=True); time.sleep(3600)"
    killed = peer(support.tool_folder(tmp_path / "a", source), data, "lent")
    assert killed.stdout is not None and killed.stdout.readline() == "began\n"
    assert all(uids.FIRST <= uid < uids.FIRST + uids.COUNT for uid in owners(data))
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    outcome = support.run_source(tmp_path / "b", "print(1)", write=(Mount(str(data)),))
    assert outcome.kind == "ok" and "belongs to the uid 1234 again" in outcome.violations[0], outcome
    found = {name: (data / name).stat() for name in (".", "new", "roots")}
    assert {name: (info.st_uid, info.st_gid) for name, info in found.items()} == {
        ".": (1234, 2345),
        "new": (1234, 2345),
        "roots": (0, 0),
    }
    assert list(lent.iterdir()) == []


@pytest.fixture
def left(data: Path, lent: Path) -> Iterator[Path]:
    """A folder that a run which is no more was lent, with what tells of it."""
    (data / "in").touch()
    with open_absolute(str(data)) as folder:
        claim = claims.claim(folder)
        assert claim is not None
        lending.Ownership(uids.FIRST).lend(folder, lambda before: claim.write_down(folder, uids.FIRST, before))
        claim.release(done=False)
    return data


def test_what_was_left_lent_is_put_back_by_whoever_looks(left: Path, lent: Path) -> None:
    assert owners(left) == {uids.FIRST}
    (told,) = claims.put_back_all()
    assert str(left) in told and owners(left) == {0}
    assert claims.put_back_all() == () and list(lent.iterdir()) == []


def test_putting_back_follows_no_link_and_takes_nothing_from_others(left: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    os.chown(victim, 4321, 4321)
    (left / "link").symlink_to(victim)
    os.chown(left / "link", uids.FIRST, uids.FIRST, follow_symlinks=False)
    (left / "alien").touch()
    os.chown(left / "alien", 4321, 4321)
    claims.put_back_all()
    assert victim.stat().st_uid == (left / "alien").stat().st_uid == 4321
    assert (left / "link").lstat().st_uid == 0


def test_folder_that_was_replaced_meanwhile_is_left_alone(left: Path) -> None:
    left.rename(left.parent / "moved")
    left.mkdir()
    os.chown(left, uids.FIRST, uids.FIRST)
    (told,) = claims.put_back_all()
    assert f"uid {uids.FIRST}" in told and "not there any more" in told
    assert owners(left) == {uids.FIRST}


def test_folder_that_a_link_stands_for_now_is_left_alone(left: Path, tmp_path: Path) -> None:
    left.rename(left.parent / "moved")
    left.symlink_to(left.parent / "moved")
    assert "not there any more" in claims.put_back_all()[0]


@pytest.mark.parametrize("content", [b"{", b"\0" * 10, b'{"path":"Lw==","device":1,"inode":2,"uid":0,"owner":[0,0]}'])
def test_broken_claim_is_told_and_kept_aside_and_stops_nothing(
    tmp_path: Path, data: Path, lent: Path, content: bytes
) -> None:
    info = data.stat()
    lent.mkdir()
    (lent / f"{info.st_dev}-{info.st_ino}").write_bytes(content)
    outcome = support.run_source(tmp_path, f"open('{data}/x', 'w').close()", write=(Mount(str(data)),))
    assert outcome.kind == "ok" and "cannot be read" in outcome.violations[0], outcome
    assert "cannot be read" in claims.put_back_all()[0]
    assert [path.read_bytes() for path in lent.iterdir()] == [content]
    assert owners(data) == {0}


def test_claims_are_kept_only_where_nobody_else_writes(tmp_path: Path, data: Path, lent: Path) -> None:
    lent.mkdir()
    lent.chmod(0o777)
    outcome = support.run_source(tmp_path, "print(1)", write=(Mount(str(data)),))
    assert outcome.kind == "unavailable" and "root can write" in outcome.remedy, outcome


def test_nothing_is_lent_that_could_not_be_written_down(
    tmp_path: Path, data: Path, lent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", _no_room)
    outcome = support.run_source(tmp_path, f"open('{data}/x', 'w').close()", write=(Mount(str(data)),))
    assert outcome.kind == "unavailable" and "No space" in outcome.message, outcome
    assert list(data.iterdir()) == [] and owners(data) == {0}


def _no_room(_: int) -> None:
    raise OSError(28, "No space left on device")


# Waiting


def _while_held(data: Path, act: str, tmp_path: Path) -> tuple[RunOutcome, list[str]]:
    told: list[str] = []
    wanted = support.request(
        support.tool_folder(tmp_path, "print(1)"),
        write=(Mount(str(data)),),
        limits=Limits(wall_ms=400 if act == "nothing" else 86_400_000),
    )
    with open_absolute(str(data)) as folder:
        held = claims.claim(folder)
        assert held is not None

        async def main() -> RunOutcome:
            cancelled = asyncio.Event()
            if act == "cancel":
                asyncio.get_running_loop().call_later(0.15, cancelled.set)
            if act == "free":
                asyncio.get_running_loop().call_later(0.15, held.release)
            return await runner.run(wanted, cancelled=cancelled, on_wait=told.append)

        support.run_source(tmp_path, "print(1)")  # the sandbox is known to work
        try:
            outcome = asyncio.run(main())
        finally:
            held.release()
    return outcome, told


def test_waiting_for_a_folder_counts_into_the_wall_time(tmp_path: Path, data: Path, lent: Path) -> None:
    outcome, told = _while_held(data, "nothing", tmp_path)
    assert (outcome.kind, outcome.limit, outcome.wall_ms) == ("timeout", "wall", 0.0), outcome
    assert str(data) in outcome.message
    assert len(told) == 1 and str(data) in told[0]


def test_cancel_while_waiting_for_a_folder_is_answered(tmp_path: Path, data: Path, lent: Path) -> None:
    outcome, _ = _while_held(data, "cancel", tmp_path)
    assert (outcome.kind, outcome.wall_ms, outcome.exit_code) == ("cancelled", 0.0, None), outcome


def test_folder_that_becomes_free_is_taken(tmp_path: Path, data: Path, lent: Path) -> None:
    outcome, told = _while_held(data, "free", tmp_path)
    assert (outcome.kind, outcome.exit_code) == ("ok", 0), outcome
    assert told and owners(data) == {0}


# Uids


def test_uids_are_reserved_between_processes() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from tamis.sandbox import uids; print(*(uids.reserve().uid for _ in range(0)), uids.is_account(0))"
    assert subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, check=True).stdout == b"True\n"
    mine = [uids.reserve() for _ in range(2 * uids.RING)]
    try:
        numbers = {one.uid for one in mine}
        assert len(numbers) == len(mine)
        other = "import sys; sys.path.insert(0, sys.argv[1]); from tamis.sandbox import uids; uids._Turn.owner, uids._Turn.start = __import__('os').getpid(), int(sys.argv[2]); print(uids.reserve().uid)"
        words = [sys.executable, "-c", other, str(ROOT), str(min(numbers) - uids.FIRST)]
        done = subprocess.run(words, capture_output=True, check=True)
        assert int(done.stdout) not in numbers
    finally:
        for one in mine:
            one.close()


def test_freed_uid_may_be_had_again() -> None:
    first = uids.reserve()
    first.close()
    assert any(_reserved_and_freed() == first.uid for _ in range(2 * uids.RING))


def _reserved_and_freed() -> int:
    one = uids.reserve()
    one.close()
    return one.uid


def test_a_uid_is_looked_up_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """R9: the directory of accounts is not asked at each start; a uid that an account has is never had."""
    asked: list[int] = []
    now, taken = 1_000.0, uids.FIRST + 1

    def is_account(uid: int) -> bool:
        asked.append(uid)
        return uid == taken

    monkeypatch.setattr(uids, "is_account", is_account)
    monkeypatch.setattr(uids.time, "monotonic", lambda: now)
    monkeypatch.setattr(uids._Turn, "free_since", {})  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(uids, "RING", 3)
    monkeypatch.setattr(uids._Turn, "start", 0)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(uids._Turn, "owner", os.getpid())  # pyright: ignore[reportPrivateUsage]
    had = {_reserved_and_freed() for _ in range(9)}
    once = list(asked)
    now += uids.KNOWN_SECONDS
    had |= {_reserved_and_freed() for _ in range(9)}
    assert taken not in had
    free = [uid for uid in once if uid != taken]
    assert len(free) == len(set(free))
    assert asked[len(once) :].count(free[0]) == 1
