"""Runs in control groups (issue 4 item 1): what only the group holds, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis.sandbox import probe, runner
from tamis.sandbox.limits import cgroups
from tamis.sandbox.limits.cgroup_files import Files
from tamis.sandbox.model import Limits
from tests.sandbox import support
from tests.sandbox.cgroup_v1_folders import HAS_V1, folders, needs_v1, reap
from tests.waiting import until


@needs_v1
class TestRuns:
    def test_run_is_in_a_group_with_limits(self, tmp_path: Path) -> None:
        seen: dict[str, str] = {}

        earlier = set(folders())  # of a run that another test has ended, and which is not gone yet

        def look(*_: object) -> None:
            for folder in set(folders()) - earlier:
                for name in ("memory.limit_in_bytes", "pids.max", "cgroup.procs"):
                    if Path(folder, name).exists():
                        seen[name] = Path(folder, name).read_text()

        limits = Limits(memory_bytes=100 << 20, tmp_bytes=10 << 20, processes=30)
        source = "import time; print('x', flush=True); time.sleep(0.2)"
        wanted = support.request(support.tool_folder(tmp_path, source), limits=limits)
        outcome = support.run(wanted, on_output=look)
        assert outcome.kind == "ok"
        assert "cgroup" in outcome.sandbox.layers
        assert int(seen["memory.limit_in_bytes"]) == (100 + 10 + 16 + 16) << 20
        assert int(seen["pids.max"]) == 30 + cgroups.OWN_PROCESSES
        assert len(seen["cgroup.procs"].split()) >= 3
        assert set(folders()) <= earlier

    def test_full_tmp_beside_little_memory_is_no_offence(self, tmp_path: Path) -> None:
        source = "f=open('/tmp/x','wb')\nfor _ in range(50): f.write(b'x'*1_000_000)\nf.flush(); x=b'y'*10_000_000\nimport time; time.sleep(0.3); print(1)"
        limits = Limits(memory_bytes=40_000_000, tmp_bytes=60_000_000, wall_ms=300_000)
        outcome = support.run_source(tmp_path, source, limits=limits)
        assert (outcome.kind, outcome.stdout) == ("ok", b"1\n"), outcome

    def test_memory_beside_an_empty_tmp_is_held_exactly(self, tmp_path: Path) -> None:
        # three processes together over memoryBytes, and below what the group as a whole may hold
        source = "import os,time\nfor _ in range(3):\n  if os.fork()==0:\n    x=b'y'*20_000_000; time.sleep(3600)\ntime.sleep(3600)"
        limits = Limits(memory_bytes=50_000_000, tmp_bytes=64_000_000, wall_ms=300_000)
        outcome = support.run_source(tmp_path, source, limits=limits)
        assert (outcome.kind, outcome.limit, outcome.suspected) == ("limit", "memory", False), outcome

    # what only the group holds: each of these passes every other limit between two looks of the watchdog, or for ever
    SUDDEN = "import os,time\nfor _ in range(12):\n  if os.fork()==0:\n    x=b'y'*50_000_000; time.sleep(0.5); os._exit(0)\ntime.sleep(2)\nprint('all of it')"
    KERNEL = "import os,time,socket\nfor _ in range(20):\n  if os.fork()==0: break\nkeep=[]\ntry:\n  for _ in range(110):\n    a,b=socket.socketpair(); keep.append((a,b))\n    for x in (a,b):\n      x.setblocking(False)\n      try:\n        while True: x.send(b'x'*60000)\n      except BlockingIOError: pass\nexcept OSError: pass\ntime.sleep(1.5); os.write(1, b'.'); os._exit(0)"
    UIDS = "import os,time\nn=0\ntry:\n  while n<200:\n    if os.fork()==0: time.sleep(2); os._exit(0)\n    n+=1\nexcept BlockingIOError: raise\nprint(n)"

    @pytest.mark.parametrize(
        ("source", "limit", "others"),
        [
            (SUDDEN, "memory", ("watchdog",)),
            (KERNEL, "memory", ("watchdog",)),
            (UIDS, "processes", ("rlimits",)),
        ],
        ids=["all-at-once", "kernel-memory-in-sockets", "processes-that-no-uid-limits"],
    )
    def test_only_the_group_holds(self, tmp_path: Path, source: str, limit: str, others: tuple[str, ...]) -> None:
        limits = Limits(memory_bytes=100_000_000, tmp_bytes=1_000_000, processes=24, wall_ms=300_000)
        wanted = support.request(support.tool_folder(tmp_path, source), limits=limits)
        held = support.run_without(wanted, *others)
        assert (held.kind, held.limit, held.suspected) == ("limit", limit, False), held
        free = support.run_without(wanted, *others, "cgroup")
        assert (free.kind, free.limit) != ("limit", limit), free

    def test_child_killed_for_memory_is_told_although_the_script_goes_on(self, tmp_path: Path) -> None:
        source = "import os\nif os.fork()==0:\n  x=b'y'*300_000_000; os._exit(0)\nos.wait(); print('fine')"
        limits = Limits(memory_bytes=60_000_000, tmp_bytes=1_000_000, wall_ms=300_000)
        wanted = support.request(support.tool_folder(tmp_path, source), limits=limits)
        outcome = support.run_without(wanted, "watchdog", "rlimits")
        assert (outcome.kind, outcome.limit, outcome.exit_code) == ("limit", "memory", 0), outcome

    @pytest.mark.share(5)
    @pytest.mark.parametrize("_round", range(5))
    def test_children_that_together_are_too_large_are_the_scripts_own_fault(self, tmp_path: Path, _round: int) -> None:
        # S3; each round another of kernel and watchdog may be first
        source = "import os,time\nfor _ in range(8):\n  if os.fork()==0:\n    x=b'y'*80_000_000; time.sleep(3600)\ntime.sleep(3600)"
        outcome = support.run_source(tmp_path, source)
        assert (outcome.kind, outcome.limit, outcome.suspected) == ("limit", "memory", False), outcome
        assert outcome.message == "the script used more than 256 MiB of memory"
        assert "sandbox.memoryBytes" in outcome.remedy

    def test_group_that_fails_ends_the_run_and_the_next_one_looks_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "cgroup" in probe.probe(refresh=True).layers
        wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
        real = Files.write

        def refused(self: Files, path: str, text: str) -> None:
            if path.endswith("/memory.limit_in_bytes"):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
            real(self, path, text)

        monkeypatch.setattr(Files, "write", refused)
        outcome = support.run(wanted)
        assert (outcome.kind, outcome.stdout) == ("unavailable", b""), outcome
        assert "control group failed" in outcome.message and "Permission denied" in outcome.message
        outcome = support.run(wanted)
        assert outcome.kind == "ok", outcome
        assert "cgroup" not in outcome.sandbox.layers
        found = probe.probe()
        assert (found.memory, found.pids) == ("rlimit+watchdog", "rlimit")
        assert any("no control groups" in note and "Permission denied" in note for note in found.notes), found.notes
        monkeypatch.undo()
        assert "cgroup" in probe.probe(refresh=True).layers

    def test_many_runs_leave_no_group(self, tmp_path: Path, is_long: bool) -> None:
        wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
        earlier = set(folders())

        async def main() -> None:
            for _ in range(10 if is_long else 2):
                kinds = [outcome.kind for outcome in await asyncio.gather(*(runner.run(wanted) for _ in range(10)))]
                assert kinds == ["ok"] * 10

        asyncio.run(main())
        assert set(folders()) <= earlier

    def test_daemon_killed_at_any_moment_leaves_no_group(self, tmp_path: Path, is_long: bool) -> None:
        folder = support.tool_folder(tmp_path, "import time; time.sleep(86400)")
        code = (
            "import asyncio, sys; sys.path.insert(0, sys.argv[1])\n"
            "from tests.sandbox import support; from tamis.sandbox import runner, probe; from tamis.sandbox.limits import cgroups\n"
            "probe.probe()\n"
            "async def main():\n"
            "    wanted = support.request(sys.argv[2])\n"
            "    print(*cgroups._State.tree.folders, flush=True)\n"
            "    await asyncio.gather(*(runner.run(wanted) for _ in range(3)))\n"
            "asyncio.run(main())\n"
        )
        here = str(Path(__file__).parents[2])
        rounds = 60 if is_long else 3
        for index in range(rounds):
            process = subprocess.Popen([sys.executable, "-c", code, here, folder], stdout=subprocess.PIPE, cwd="/")
            assert process.stdout is not None
            places = process.stdout.readline().decode().split()
            assert len(places) == 2
            time.sleep(index * 0.04 / rounds)
            process.kill()
            process.wait()
            process.stdout.close()
            until(lambda places=places: not any(Path(place).exists() for place in places))
            reap()

    def test_killed_daemon_leaves_no_group(self, tmp_path: Path) -> None:
        folder = support.tool_folder(tmp_path, "import time; print('up', flush=True); time.sleep(86400)")
        code = (
            "import asyncio, sys; sys.path.insert(0, sys.argv[1])\n"
            "from tests.sandbox import support; from tamis.sandbox import runner; from tamis.sandbox.limits import cgroups\n"
            "async def main():\n"
            "    wanted = support.request(sys.argv[2])\n"
            "    print(*cgroups._State.tree.folders, flush=True) if cgroups.status().version else None\n"
            "    await asyncio.gather(*(runner.run(wanted, on_output=lambda *_: print('up', flush=True)) for _ in range(3)))\n"
            "asyncio.run(main())\n"
        )
        here = str(Path(__file__).parents[2])
        process = subprocess.Popen([sys.executable, "-c", code, here, folder], stdout=subprocess.PIPE, cwd="/")
        assert process.stdout is not None
        places = process.stdout.readline().decode().split()
        assert len(places) == 2 and all(Path(place).is_dir() for place in places), places
        assert [process.stdout.readline() for _ in range(3)] == [b"up\n"] * 3
        assert len(Files().groups(places[0])) == 3
        process.kill()
        process.wait()
        process.stdout.close()
        until(lambda: not any(Path(place).exists() for place in places))
        reap()


def test_daemon_that_ends_well_leaves_no_group(tmp_path: Path) -> None:
    code = "from tamis.sandbox.limits import cgroups; print(cgroups.status().version, *(cgroups._State.tree.folders if cgroups._State.tree else ()))"
    here = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": here + ":" + os.environ.get("PYTHONPATH", "")},
    )
    version, *places = done.stdout.split(" ")
    if not version:
        return
    until(lambda: not any(Path(place.strip()).exists() for place in places))
    reap()


@pytest.mark.skipif(HAS_V1, reason="groups may be made here")
def test_where_no_group_may_be_made_it_says_why_and_what_helps() -> None:
    found = cgroups.status()
    if found.version:
        pytest.skip(f"groups of {found.version} may be made here")
    assert found.reason
    notes = probe.probe().notes
    assert any(found.reason in note for note in notes)
    assert "cgroup" not in probe.probe().layers


def test_fork_has_a_tree_of_its_own() -> None:
    if not cgroups.status().version:
        pytest.skip(cgroups.status().reason)
    mine = cgroups._State.tree  # pyright: ignore[reportPrivateUsage]
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            cgroups.status()
            tree = cgroups._State.tree  # pyright: ignore[reportPrivateUsage]
            os.write(
                writing, b"own" if tree is not None and mine is not None and tree.folders != mine.folders else b"same"
            )
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    reap()
    os.close(writing)
    assert os.read(reading, 10) == b"own"
    os.close(reading)
    assert mine is not None and all(Path(folder).is_dir() for folder in mine.folders)
