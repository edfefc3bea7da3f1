"""Control groups where this process may make them (issue 4 item 1): found, limiting, gone afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import probe, runner
from tamis.sandbox.limits import cgroup_files, cgroup_v1, cgroup_v2, cgroups
from tamis.sandbox.limits.cgroup_files import Bounds, Files, Unusable, own_places
from tamis.sandbox.model import Limits
from tests.sandbox import support
from tests.sandbox.cgroup_v1_folders import folders, needs_v1, reap
from tests.sandbox.real_cgroup2 import OnRealHierarchy
from tests.waiting import until

V1 = "31 23 0:28 / {root}/cgroup {mode},relatime - tmpfs tmpfs rw\n32 31 0:29 / {root}/memory {mode} - cgroup cgroup rw,memory\n33 31 0:30 / {root}/cpu,cpuacct {mode} - cgroup cgroup rw,cpu,cpuacct\n34 31 0:36 / {root}/pids {mode} - cgroup cgroup rw,pids\n"
V2 = "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


needs_v2 = pytest.mark.skipif(
    not support.IS_ROOT or own_places().v2 is None or not os.access(own_places().v2 or "", os.W_OK),
    reason="no hierarchy of version 2 is writable here",
)


class TestPlaces:
    def test_version_1_by_controller(self) -> None:
        found = own_places("9:memory:/a/b\n8:pids:/\n7:cpu,cpuacct:/c\n0::/\n", V1.format(root="/cg", mode="rw"))
        assert found.v1 == {
            "memory": "/cg/memory/a/b",
            "pids": "/cg/pids",
            "cpu": "/cg/cpu,cpuacct/c",
            "cpuacct": "/cg/cpu,cpuacct/c",
        }
        assert found.v2 is None

    def test_version_2_alone(self) -> None:
        found = own_places("0::/user.slice/user-1000.slice/run-1.scope\n", V2)
        assert (found.v1, found.v2) == ({}, "/sys/fs/cgroup/user.slice/user-1000.slice/run-1.scope")
        assert not found.v2_namespaced

    def test_both_side_by_side(self) -> None:
        mounts = V1.format(root="/cg", mode="rw") + V2.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
        found = own_places("4:memory:/x\n0::/y\n", mounts)
        assert (found.v1, found.v2) == ({"memory": "/cg/memory/x"}, "/sys/fs/cgroup/unified/y")

    def test_namespace_of_its_own(self) -> None:
        found = own_places("0::/\n", V2)
        assert (found.v2, found.v2_namespaced) == ("/sys/fs/cgroup", True)

    def test_mount_of_a_part_of_the_hierarchy(self) -> None:
        mounts = "32 31 0:29 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        assert own_places("4:memory:/docker/abc/inner\n", mounts).v1 == {"memory": "/sys/fs/cgroup/memory/inner"}
        assert own_places("4:memory:/docker/abcdef\n", mounts).v1 == {}

    def test_group_outside_the_namespace_is_not_ours(self) -> None:
        assert own_places("0::/../other\n", V2).v2 is None

    def test_read_only_mount_is_said(self) -> None:
        found = own_places("4:memory:/\n8:pids:/\n", V1.format(root="/cg", mode="ro"))
        assert (found.v1, found.reason) == ({}, "the cgroup file system is mounted read-only")

    def test_nothing_mounted_is_said(self) -> None:
        assert own_places("0::/\n", "1 0 8:1 / / rw - ext4 /dev/sda rw\n").reason == "no cgroup file system is mounted"

    def test_spaces_and_colons_in_paths(self) -> None:
        mounts = "32 31 0:29 / /my\\040cg rw - cgroup cgroup rw,memory\n"
        assert own_places("4:memory:/a b:c\n", mounts).v1 == {"memory": "/my cg/a b:c"}

    @pytest.mark.parametrize("junk", ["", "x", "::\n:::::", "4\n4:memory\n0::", "\0\n" * 3])
    def test_junk_finds_nothing(self, junk: str) -> None:
        assert own_places(junk, junk).v1 == {}
        assert own_places(junk, V2).v2 in (None, "/sys/fs/cgroup")


def test_places_are_those_of_the_process_while_one_of_its_threads_spawns() -> None:
    mine = f"/a/tamis-{os.getpid()}-0123456789abcdef/3-0123456789abcdef"
    mounts = "30 20 0:25 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    found = cgroup_files.own_places(f"8:pids:{mine}\n", mounts)
    assert found == cgroup_files.own_places("8:pids:/a\n", mounts)
    other = cgroup_files.own_places("8:pids:/a/tamis-1-0123456789abcdef\n", mounts)
    assert other != found


class TestVersion1:
    @pytest.fixture
    def group(self) -> Iterator[cgroup_v1.Group]:
        tree = cgroups._State.tree  # pyright: ignore[reportPrivateUsage]
        assert isinstance(tree, cgroup_v1.Tree)
        made = tree.group(Bounds(memory_bytes=64 << 20, processes=10))
        yield made
        asyncio.run(cgroups.finish(made))

    pytestmark = needs_v1

    def test_what_is_spawned_inside_is_in_the_group_and_this_thread_is_not(self, group: cgroup_v1.Group) -> None:
        before = Path("/proc/thread-self/cgroup").read_text()
        with group.spawning():
            process = subprocess.Popen(["/bin/sleep", "60"])
        assert Path("/proc/thread-self/cgroup").read_text() == before
        group.limit()
        asyncio.run(group.place(process.pid))
        inside = Path(f"/proc/{process.pid}/cgroup").read_text()
        assert inside.count(f"tamis-{os.getpid()}-") == 2, inside
        gone = group.end()  # which kills what is in it, and does not wait
        assert process.wait() == -9
        assert gone or group.end()

    def test_thread_comes_back_when_the_spawn_fails(self, group: cgroup_v1.Group) -> None:
        before = Path("/proc/thread-self/cgroup").read_text()
        with pytest.raises(FileNotFoundError), group.spawning():
            subprocess.Popen(["/no/such/program"])
        assert Path("/proc/thread-self/cgroup").read_text() == before

    def test_process_outside_is_found_out(self, group: cgroup_v1.Group) -> None:
        with pytest.raises(Unusable, match="not in its group"):
            asyncio.run(group.place(os.getpid()))

    def test_limits_beyond_every_machine_are_taken(self) -> None:
        group = cgroups.new_group(Limits(memory_bytes=1 << 80, processes=1 << 40))
        assert group is not None
        group.limit()
        assert group.end()

    def test_limits_are_read_back(self, group: cgroup_v1.Group, monkeypatch: pytest.MonkeyPatch) -> None:
        group.limit()
        monkeypatch.setattr(Files, "read", lambda *_: "9223372036854771712\n")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        with pytest.raises(Unusable, match="after"):
            group.limit()

    def test_way_back_that_is_closed_ends_the_run(
        self, group: cgroup_v1.Group, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree = cgroups._State.tree  # pyright: ignore[reportPrivateUsage]
        assert isinstance(tree, cgroup_v1.Tree)
        home = tree.homes["pids"]
        way = tree._ways_back[home]  # pyright: ignore[reportPrivateUsage]
        null = os.open(os.devnull, os.O_RDONLY)
        monkeypatch.setitem(tree._ways_back, home, null)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(Unusable, match="the way back"), group.spawning():
            pass
        os.close(null)
        os.write(way, b"0")

    def test_daemon_without_descriptors_keeps_its_groups(self, tmp_path: Path) -> None:
        assert "cgroup" in probe.probe(refresh=True).layers
        wanted = support.request(support.tool_folder(tmp_path, "print(1)"))
        before = Path("/proc/thread-self/cgroup").read_text()
        earlier = set(folders())
        with asyncio.Runner() as loop:  # a daemon has its loop before it runs out of descriptors
            assert loop.run(runner.run(wanted)).kind == "ok"
            for spare in range(30):
                with support.few_descriptors(spare):
                    outcome = loop.run(runner.run(wanted))
                    cgroups.status()
                # refused: the folder could not be opened
                assert outcome.kind in ("ok", "unavailable", "refused"), outcome
                assert Path("/proc/thread-self/cgroup").read_text() == before
        assert set(folders()) <= earlier
        assert "cgroup" in support.run(wanted).sandbox.layers

    def test_sweep_removes_what_a_dead_process_left_and_ends_what_is_in_it(self) -> None:
        tree = cgroups._State.tree  # pyright: ignore[reportPrivateUsage]
        assert isinstance(tree, cgroup_v1.Tree)
        homes = (tree.homes["memory"], tree.homes["pids"])
        name, lock = cgroup_files.make_folder(Files(), homes)
        for home in homes:
            Path(home, name, "1-abc").mkdir()
        process = subprocess.Popen(["/bin/sleep", "60"])
        Files().write(f"{homes[0]}/{name}/1-abc/cgroup.procs", str(process.pid))
        cgroup_files.sweep(Files(), homes)
        assert Path(homes[0], name).is_dir()  # locked: its process lives
        os.close(lock)
        cgroup_files.sweep(Files(), homes)
        assert process.wait() == -9
        cgroup_files.sweep(Files(), homes)
        assert not any(Path(home, name).exists() for home in homes)


class Counters(Files):
    """What the memory and pids files of a group say, by file name."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts

    def read(self, path: str) -> str:
        name = path.rpartition("/")[2].replace(".", "_")
        if name not in self.texts:
            raise FileNotFoundError(path)
        return self.texts[name]


class TestCauseOfAnEnd:
    """A process ended for want of memory: by the run's own limit, or by one further up (S3)."""

    LIMIT = 369_098_752

    def at_limit(self, **texts: str) -> bool:
        class Tree:
            files = Counters(memory_oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", **texts)

        tree: Any = Tree()
        seen = cgroup_v1.Group(tree, "/m", "/p", Bounds(memory_bytes=self.LIMIT, processes=8)).pressure()
        assert seen.oom_kills == 1
        return seen.at_limit

    def test_refusals_counted(self) -> None:
        assert self.at_limit(memory_failcnt="3\n", memory_max_usage_in_bytes="5\n")

    def test_refusals_counted_for_memory_with_swap(self) -> None:
        assert self.at_limit(memory_failcnt="0\n", memory_memsw_failcnt="2\n", memory_max_usage_in_bytes="5\n")

    @pytest.mark.parametrize("short", [0, 64 * 4096])
    def test_kernel_that_counts_no_refusal(self, short: int) -> None:
        assert self.at_limit(memory_failcnt="0\n", memory_max_usage_in_bytes=f"{self.LIMIT - short}\n")

    def test_far_from_the_own_limit_it_was_another(self) -> None:
        assert not self.at_limit(memory_failcnt="0\n", memory_max_usage_in_bytes=f"{self.LIMIT // 2}\n")

    def test_unreadable_numbers_accuse_nobody(self) -> None:
        assert not self.at_limit()
        assert not self.at_limit(memory_failcnt="many\n", memory_max_usage_in_bytes="")


@needs_v2
def test_version_2_on_the_real_hierarchy_moves_kills_and_removes() -> None:
    home = Path(own_places().v2 or "", f"tamis-test-{os.getpid()}")
    home.mkdir()
    files = OnRealHierarchy()
    daemon = subprocess.Popen(["/bin/sleep", "60"])
    # blocked, as a run is while it is placed, so all that it starts is in the group
    script = subprocess.Popen(["/bin/sh", "-c", "read go; sleep 60 & sleep 60 & echo; wait"], stdin=-1, stdout=-1)
    assert script.stdin is not None and script.stdout is not None
    try:
        files.write(f"{home}/cgroup.procs", str(daemon.pid))
        tree = cgroup_v2.open_tree(str(home), namespaced=True, files=files, pid=daemon.pid)
        assert files.processes(str(home)) == []
        assert files.processes(f"{home}/daemon") == [daemon.pid]
        group = tree.group(Bounds(memory_bytes=1 << 28, processes=10))
        group.limit()
        asyncio.run(group.place(script.pid))
        script.stdin.write(b"go\n")
        script.stdin.close()
        script.stdout.readline()
        assert len(files.processes(group.folder)) == 3
        assert not group.end()
        assert script.wait() == -9
        asyncio.run(cgroups.finish(group))
        assert not Path(group.folder).exists()
        tree.close()
    finally:
        for process in (daemon, script):
            process.kill()
            process.wait()
        script.stdout.close()
        reap()
        for folder in (home / "daemon", home):
            if folder.exists():
                folder.rmdir()


DELEGATED = """
import os, sys, signal; sys.path.insert(0, sys.argv[1])
from tests.sandbox.real_cgroup2 import OnRealHierarchy
from tamis.sandbox import lifeline
from tamis.sandbox.limits import cgroup_v2
from tamis.sandbox.limits.cgroup_files import Bounds
sys.stdin.readline()
tree = cgroup_v2.open_tree(sys.argv[2], namespaced=True, files=OnRealHierarchy())
lifeline.clean(tree.folders)
tree.group(Bounds(1 << 28, 10))
print(open("/proc/self/cgroup").read().splitlines()[-1], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@needs_v2
def test_version_2_is_given_back_as_it_was_when_the_daemon_is_killed() -> None:
    home = Path(own_places().v2 or "", f"tamis-test-{os.getpid()}")
    home.mkdir()
    try:
        here = str(Path(__file__).parents[2])
        process = subprocess.Popen([sys.executable, "-c", DELEGATED, here, str(home)], stdin=-1, stdout=-1, cwd="/")
        assert process.stdin is not None and process.stdout is not None
        Files().write(f"{home}/cgroup.procs", str(process.pid))
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.stdout.readline().strip().endswith(f"/{home.name}/daemon".encode())
        assert process.wait() == -9
        process.stdout.close()
        until(lambda: not Files().groups(str(home)))
        reap()
    finally:
        while home.exists():
            with contextlib.suppress(OSError):
                home.rmdir()
