"""What stands in where no control group counts: memory of a whole tree, also what no process's numbers show."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tamis.sandbox.classify import Pressure
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.limits import uncounted, watchdog
from tamis.sandbox.model import Interpreters, Limits
from tests.growth import loops
from tests.sandbox import support
from tests.waiting import arrives

SMALL = Limits(memory_bytes=100_000_000, wall_ms=300_000)


def without_group(parent: Path, source: str, limits: Limits = SMALL) -> object:
    outcome = support.run_without(support.request(support.tool_folder(parent, source), limits=limits), "cgroup")
    return outcome.kind, outcome.limit, outcome.stdout


@contextlib.contextmanager
def started(code: str) -> Iterator[int]:
    """A Python process with this code that has printed a line, in a session of its own."""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


class TestTree:
    def test_children_of_every_thread_are_found(self) -> None:
        code = "import threading,subprocess,time\ndef go(): subprocess.Popen(['/bin/sleep','3600']); up.set(); time.sleep(3600)\nup=threading.Event(); threading.Thread(target=go,daemon=True).start(); up.wait(); print(1,flush=True); time.sleep(3600)"
        with started(code) as pid:
            assert len(watchdog.tree(pid)) == 2

    def test_process_that_is_gone_is_itself_alone(self) -> None:
        assert watchdog.tree(2**22 + 1) == [2**22 + 1]
        assert watchdog.resident_bytes(2**22 + 1) == watchdog.proportional_bytes(2**22 + 1) == 0

    def test_daemonised_grandchildren_count(self, tmp_path: Path) -> None:
        # they come to pid 1 of the namespace, which is the root of the tree
        source = "import os,time\nfor _ in range(4):\n  if os.fork()==0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    x=b'y'*40_000_000; time.sleep(3600)\ntime.sleep(3600)"
        assert without_group(tmp_path, source) == ("limit", "memory", b"")

    def test_processes_that_fork_on_and_on_count(self, tmp_path: Path) -> None:
        # each lives shorter than the pause between two looks; what they hold is always there
        source = "import os,time\nfor _ in range(5):\n  if os.fork()==0:\n    x=bytearray(b'y')*40_000_000\n    while True:\n      time.sleep(0.01)\n      if os.fork(): os._exit(0)\ntime.sleep(3600)"
        assert without_group(tmp_path, source) == ("limit", "memory", b"")


class TestShares:
    def test_shared_pages_count_once(self, tmp_path: Path) -> None:
        source = "import os,time\nx=b'y'*60_000_000\nfor _ in range(10):\n  if os.fork()==0: time.sleep(0.5); os._exit(0)\nfor _ in range(10): os.wait()\nprint('x')"
        assert without_group(tmp_path, source) == ("ok", None, b"x\n")

    def test_files_in_tmp_are_beside_the_memory(self, tmp_path: Path) -> None:
        source = "f=open('/tmp/x','wb')\nfor _ in range(60): f.write(b'x'*1_000_000)\nf.flush(); x=b'y'*50_000_000\nimport time; time.sleep(0.3); print(1)"
        assert without_group(tmp_path, source) == ("ok", None, b"1\n")


class TestUncounted:
    @pytest.fixture(autouse=True)
    def no_other_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(uncounted._Machine, "runs", set[uncounted.Uncounted]())  # pyright: ignore[reportPrivateUsage]

    def test_small_shared_mapping_is_no_offence(self, tmp_path: Path) -> None:
        source = "import mmap,os,time\nm=mmap.mmap(-1, 40_000_000); m[:]=b'x'*40_000_000\nif os.fork()==0: time.sleep(0.3); os._exit(m[5] != 120)\nprint(os.wait()[1])"
        assert without_group(tmp_path, source) == ("ok", None, b"0\n")

    def test_shared_pages_that_were_let_go_of_count(self, tmp_path: Path) -> None:
        # all but one page of each mapping is given back to nobody
        source = "import ctypes,mmap,time\nlibc=ctypes.CDLL(None); libc.mmap.restype=ctypes.c_void_p; keep=[]\nfor _ in range(40):\n  p=libc.mmap(None, ctypes.c_size_t(8_388_608), 3, 0x21, -1, ctypes.c_long(0)); ctypes.memset(ctypes.c_void_p(p), 1, 8_388_608); libc.munmap(ctypes.c_void_p(p+4096), ctypes.c_size_t(8_384_512))\ntime.sleep(3600)"
        assert without_group(tmp_path, source) == ("limit", "memory", b"")

    def test_growth_of_the_machine_is_not_a_run_s_without_such_a_mapping(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0]
        monkeypatch.setattr(uncounted, "shared_on_machine", lambda: now[0])
        with started("import time; x=b'y'*300_000_000; print(1, flush=True); time.sleep(3600)") as pid:
            run = uncounted.Uncounted(100_000_000, 0)
            now[0] = 250_000_000
            assert run._let_go([pid], 0) == 0  # pyright: ignore[reportPrivateUsage]
            run.close()

    def test_growth_counts_no_more_than_was_touched_and_not_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0]
        monkeypatch.setattr(uncounted, "shared_on_machine", lambda: now[0])
        code = "import mmap,time\nm=mmap.mmap(-1, 80_000_000); m[:]=b'x'*80_000_000; print(1, flush=True); time.sleep(3600)"
        with started(code) as pid:
            run = uncounted.Uncounted(50_000_000, 0)
            now[0] = 5_000_000_000
            most = run._let_go([pid], 0)  # pyright: ignore[reportPrivateUsage]
            assert 80_000_000 <= most < 400_000_000
            now[0] = 80_000_000 // 4096 * 4096 + 4096
            # all of it is mapped, so the process's own numbers have it
            assert run._let_go([pid], 0) < 10_000_000  # pyright: ignore[reportPrivateUsage]
            run.close()

    def test_runs_that_overlap_share_the_start_of_the_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [1000]
        monkeypatch.setattr(uncounted, "shared_on_machine", lambda: now[0])
        first = uncounted.Uncounted(1, now[0])
        now[0] = 5000
        second = uncounted.Uncounted(1, now[0])
        assert second._grown(now[0]) == 4000  # pyright: ignore[reportPrivateUsage]
        first.close()
        second.close()
        third = uncounted.Uncounted(1, now[0])
        assert third._grown(now[0]) == 0  # pyright: ignore[reportPrivateUsage]
        third.close()
        third.close()

    @pytest.mark.parametrize(
        "fill",
        [
            "a,b=socket.socketpair(); keep+=[a,b]; fill(a); fill(b)",
            "a=socket.create_connection(l.getsockname()); b,_=l.accept(); keep+=[a,b]; fill(a); fill(b)",
            "a=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); a.bind(('127.0.0.1',0)); a.connect(a.getsockname()); keep+=[a]; fill(a,300)",
        ],
        ids=["local", "stream", "datagrams"],
    )
    def test_what_waits_in_sockets_counts(self, tmp_path: Path, fill: str) -> None:
        source = f"import socket,os,time\nl=socket.create_server(('127.0.0.1',0)); keep=[]\ndef fill(x,n=2000):\n  x.setblocking(False)\n  try:\n    for _ in range(n): x.send(b'x'*60000)\n  except OSError: pass\nfor _ in range(14):\n  if os.fork()==0:\n    try:\n      for _ in range(100): {fill}\n    except OSError: pass\n    time.sleep(3600)\ntime.sleep(3600)"
        assert without_group(tmp_path, source) == ("limit", "memory", b"")

    def test_ordinary_use_of_sockets_is_no_offence(self, tmp_path: Path) -> None:
        source = "import socket,asyncio\nasync def main():\n  async def serve(r,w): w.write(await r.read()); w.close()\n  s=await asyncio.start_server(serve,'127.0.0.1',0); port=s.sockets[0].getsockname()[1]\n  async def one():\n    r,w=await asyncio.open_connection('127.0.0.1',port); w.write(b'x'*200000); w.write_eof(); return len(await r.read())\n  print(sum(await asyncio.gather(*(one() for _ in range(40)))))\nasyncio.run(main())"
        assert without_group(tmp_path, source) == ("ok", None, b"8000000\n")

    def test_page_tables_of_a_large_address_space_count(self, tmp_path: Path) -> None:
        # a Node tool may map far more than it may use; each 2 MiB of it that were read once cost a page
        if isinstance(find_interpreter("nodejs", Interpreters()), Missing):
            pytest.skip("there is no Node here")
        code = "import mmap,time\nkeep=[]\ntry:\n  for _ in range(28):\n    m=mmap.mmap(-1,1<<30,prot=mmap.PROT_READ,flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS); keep.append(m)\n    for at in range(0,1<<30,1<<21): m[at]\nexcept OSError: pass\ntime.sleep(3600)"
        source = f"const {{spawn}} = require('child_process'); for (let i = 0; i < 4; i++) spawn('/usr/bin/python3', ['-c', {code!r}]); setTimeout(() => {{}}, 3600000)"
        folder = support.tool_folder(tmp_path, source, "tool.js")
        limits = Limits(memory_bytes=200_000_000, wall_ms=300_000)
        outcome = support.run_without(support.request(folder, "tool.js", "nodejs", limits=limits), "cgroup")
        assert (outcome.kind, outcome.limit, outcome.stdout) == ("limit", "memory", b""), outcome

    def test_queues_are_read_from_the_kernels_tables(self) -> None:
        table = b"  sl  local_address rem_address   st tx_queue rx_queue tr\n   0: 0100007F:8235 00000000:0000 0A 00000010:00000001 00:0 0\n   1: short\n"
        assert uncounted._queued(table) == 17  # pyright: ignore[reportPrivateUsage]
        assert uncounted._queued(b"") == 0  # pyright: ignore[reportPrivateUsage]

    def test_own_sockets_are_counted_by_kind(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            taken, _ = server.accept()
            client.setblocking(False)
            sent = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    sent += client.send(b"x" * 65536)
            assert uncounted.sockets_bytes(os.getpid(), 0) >= sent
            taken.close()


class TestRecords:
    """Trust 5: what the kernel keeps for processes counts where it is seen, or where the machine's kernel has grown by it."""

    @pytest.fixture(autouse=True)
    def grown(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        now = [0]
        monkeypatch.setattr(uncounted._Machine, "runs", set[uncounted.Uncounted]())  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(uncounted, "kernel_on_machine", lambda: now[0])
        return now

    @pytest.fixture
    def run(self) -> Iterator[uncounted.Uncounted]:
        run = uncounted.Uncounted(64_000_000, 0)
        yield run
        run.close()

    def test_growth_of_the_machine_alone_is_no_run_s(self, run: uncounted.Uncounted, grown: list[int]) -> None:
        with started("import time; print(1, flush=True); time.sleep(3600)") as pid:
            assert not run.suspects([pid])
            grown[0] = 1 << 30
            assert run.suspects([pid])
            assert run.records_bytes([pid]) < 1_000_000

    def test_watches_count_each(self, run: uncounted.Uncounted, grown: list[int]) -> None:
        code = "import os,select,time\nx=[os.eventfd(0) for _ in range(100)]\ne=[select.epoll() for _ in range(50)]\nfor a in e:\n  for b in x: a.register(b, 1)\nprint(1, flush=True); time.sleep(3600)"
        with started(code) as pid:
            assert 1_000_000 <= run.records_bytes([pid]) < 2_000_000

    def test_what_cannot_be_seen_counts_no_more_than_the_machine_has_grown(
        self, run: uncounted.Uncounted, grown: list[int]
    ) -> None:
        code = "import ctypes,time\nx=[ctypes.CDLL(None).inotify_init() for _ in range(10)]; print(1, flush=True); time.sleep(3600)"
        with started(code) as pid:
            assert run.records_bytes([pid]) < 1_000_000
            grown[0] = 30_000_000
            assert run.records_bytes([pid], pipes=False) == 30_000_000
            grown[0] = 1 << 33
            assert 50_000_000 < run.records_bytes([pid]) < 60_000_000

    def test_growth_is_counted_to_one_run_only(self, run: uncounted.Uncounted, grown: list[int]) -> None:
        code = "import ctypes,time\nx=[ctypes.CDLL(None).inotify_init() for _ in range(10)]; print(1, flush=True); time.sleep(3600)"
        with started(code) as pid:
            grown[0] = 30_000_000
            assert run.records_bytes([pid], pipes=False) == 30_000_000
            other = uncounted.Uncounted(64_000_000, 0)
            assert other.records_bytes([pid]) < 1_000_000
            other.close()

    def test_idle_pipes_count_only_when_there_are_very_many(self, run: uncounted.Uncounted) -> None:
        code = "import os,time\nx=[os.pipe() for _ in range({})]; print(1, flush=True); time.sleep(3600)"
        with started(code.format(50)) as pid:
            assert not run.suspects([pid])
        with started(code.format(200)) as pid:
            assert run.suspects([pid])
            assert 200 * 65_536 <= run.records_bytes([pid]) < 203 * 65_536 + 1_000_000
            assert run.records_bytes([pid], pipes=False) < 1_000_000

    def test_records_count_also_where_the_growth_is_hidden(
        self, run: uncounted.Uncounted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # m61 to m66: the machine's numbers have not grown, because other programs gave back as much
        monkeypatch.setattr(uncounted, "EVERY_SECONDS", 0.0)
        code = "import os,select,time\nx=[os.eventfd(0) for _ in range(500)]\ne=[select.epoll() for _ in range(400)]\nfor a in e:\n  for b in x: a.register(b, 1)\nprint(1, flush=True); time.sleep(3600)"
        told: list[str] = []
        with started(code) as pid:
            monkeypatch.setattr(watchdog, "tree", lambda _: [os.getpid(), pid])  # pyright: ignore[reportUnknownLambdaType]
            monkeypatch.setattr(watchdog, "_held_by_processes", lambda *given: given[-1])  # pyright: ignore[reportUnknownLambdaType]
            monkeypatch.setattr(watchdog, "Uncounted", lambda *_: run)  # pyright: ignore[reportUnknownLambdaType]
            look = watchdog.Look(os.getpid(), 30_000_000, {})
            asyncio.run(watchdog.watch(look, watchdog.Usage(), told.append))
        assert told == ["memory"]

    def test_records_that_every_process_has_are_no_part_of_the_figures(self, run: uncounted.Uncounted) -> None:
        look = watchdog.Look(os.getpid(), 100_000_000, {})
        with started("import time; print(1, flush=True); time.sleep(3600)") as pid:
            assert not run.due()
            run._looked_at -= uncounted.EVERY_SECONDS + 1  # pyright: ignore[reportPrivateUsage]
            assert run.due()
            assert asyncio.run(watchdog._records(look, run, [pid])) == 0  # pyright: ignore[reportPrivateUsage]
            assert not run.due()

    def test_counting_ends_when_there_is_enough(
        self, run: uncounted.Uncounted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        monkeypatch.setattr(
            uncounted, "_records_of", lambda pid, *_: (asked.append(pid), uncounted._Records(40_000_000, 0, 1.0))[1]
        )  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        assert run.records_bytes(range(50)) == 80_000_000
        assert asked == [0, 1]

    def test_processes_that_there_is_no_time_for_are_taken_to_be_like_the_others(
        self, run: uncounted.Uncounted, grown: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(uncounted, "LOOK_SECONDS", -1.0)
        assert run.records_bytes(range(50)) == 0
        monkeypatch.setattr(uncounted, "LOOK_SECONDS", 0.02)
        asked: list[int] = []

        def slow(pid: int, *_: object) -> uncounted._Records:  # pyright: ignore[reportPrivateUsage]
            asked.append(pid)
            time.sleep(0.03)
            return uncounted._Records(2_000_000, 0, time.monotonic())  # pyright: ignore[reportPrivateUsage]

        monkeypatch.setattr(uncounted, "_records_of", slow)
        assert run.records_bytes(range(50)) == 2_000_000
        grown[0] = 90_000_000
        assert run.records_bytes(range(50)) == 90_000_000
        assert asked == [0, 1]  # each look begins with what the one before had no time for
        # what ended is forgotten
        assert run.records_bytes(range(1, 3)) == 4_000_000


class FakeGroup:
    """A group whose numbers are given."""

    def __init__(self, held: Sequence[int], kills: int = 0) -> None:
        self.held = list(held)
        self.kills = kills
        self.kernel = 0
        self.looks = 0
        self.at_look: Callable[[int], None] = lambda _: None

    def held_bytes(self) -> int:
        self.looks += 1
        self.at_look(self.looks)
        return self.held.pop(0) if len(self.held) > 1 else self.held[0]

    def kernel_bytes(self) -> int:
        return self.kernel

    def pressure(self) -> Pressure:
        return Pressure(oom_kills=self.kills, at_limit=True)


def watched(group: FakeGroup) -> tuple[list[str], watchdog.Usage]:
    """What six looks at the group tell."""
    over: list[str] = []
    usage = watchdog.Usage()

    async def main() -> None:
        look = watchdog.Look(os.getpid(), 1000, {}, group)  # pyright: ignore[reportArgumentType]
        watching = asyncio.ensure_future(watchdog.watch(look, usage, over.append))
        await arrives(lambda: watching.done() or group.looks >= 6)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(main())
    return over, usage


class TestGroupsNumbers:
    @pytest.fixture(autouse=True)
    def kernel(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """What the machine's kernel holds, in bytes."""
        now = [0]
        monkeypatch.setattr(uncounted._Machine, "runs", set[uncounted.Uncounted]())  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(uncounted, "kernel_on_machine", lambda: now[0])
        return now

    def test_memory_of_the_kernel_for_the_group_counts_when_the_machine_s_has_grown(self, kernel: list[int]) -> None:
        """Trust 5: small amounts too, which the group's own limit has room for."""
        group = FakeGroup([500])
        group.kernel = 100_000_000
        assert watched(group)[0] == []
        group.looks, kernel[0] = 0, 0
        group.at_look = lambda look: kernel.__setitem__(0, 90_000_000) if look == 2 else None
        assert watched(group)[0] == ["memory"]

    def test_limit_that_is_passed_twice_in_a_row_ends_the_run(self) -> None:
        over, usage = watched(FakeGroup([500, 1500]))
        assert over == ["memory"]
        assert usage.rss_bytes == 1500

    def test_one_passing_sample_is_no_offence(self) -> None:
        # a file was removed in between: the counts of the group and of the tmpfs are not taken at once
        assert watched(FakeGroup([500, 1500, 500]))[0] == []

    def test_kill_by_the_kernel_ends_what_is_left(self) -> None:
        assert watched(FakeGroup([500], kills=1))[0] == ["oom"]


def test_looking_at_sixty_four_processes_is_cheap() -> None:
    code = "import os,time\nfor _ in range(63):\n  if os.fork()==0: time.sleep(3600)\nprint(1,flush=True); time.sleep(3600)"
    with started(code) as pid:
        look = watchdog.Look(pid, 1 << 40, {})
        run = uncounted.Uncounted(1 << 40, 0)

        def look_once() -> None:
            assert not run.suspects(watchdog.tree(pid)[1:])
            watchdog._held_by_processes(look, watchdog.Usage(), run, watchdog.tree(pid))  # pyright: ignore[reportPrivateUsage]

        # half a loop where it was measured
        assert loops(look_once, tries=10) < 5
        run.close()
        assert len(watchdog.tree(pid)) == 64


def test_what_a_run_is_compared_with_is_taken_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    # read as it was then, though nobody looks at it before the first look
    tables = iter((b"MemTotal: 9 kB\nShmem: 3 kB\nPageTables: 4 kB\nPercpu: 5 kB\n",))
    monkeypatch.setattr(uncounted, "_read", lambda path: next(tables) if path == "/proc/meminfo" else b"")
    look = watchdog.look_at(os.getpid(), 1000, {}, None)
    assert uncounted.shared_on_machine(look.before) == 3 * 1024
    assert uncounted.kernel_on_machine(look.before) == 9 * 1024


def test_numbers_of_the_machine_are_those_of_its_table() -> None:
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    wanted = ("SUnreclaim", "PageTables", "SecPageTables", "VmallocUsed", "KernelStack", "Percpu")
    table = "".join(f"{name}:{value}\n" for name, value in rows.items()).encode()
    kib = sum(int(rows[name].split()[0]) for name in wanted if name in rows)
    assert uncounted.kernel_on_machine(table) == kib * 1024
    assert uncounted.shared_on_machine(table) == int(rows["Shmem"].split()[0]) * 1024


def test_the_first_child_is_the_oldest_of_all() -> None:
    code = "import os, time\nfor _ in range(2):\n  if os.fork() == 0: time.sleep(3600)\nprint(flush=True); time.sleep(3600)"
    with started(code) as pid:
        children = watchdog.children_of(pid)
        assert len(children) == 2
        assert watchdog.first_child(pid) == children[0]
    assert watchdog.first_child(pid) is None
