"""Control groups of version 2, played on a temporary folder where none is delegated (issue 4 item 1)."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from tamis.sandbox.limits import cgroup_v2, cgroups
from tamis.sandbox.limits.cgroup_files import Bounds, Unusable, Used
from tests.sandbox.fake_cgroup2 import FakeKernel

BOUNDS = Bounds(memory_bytes=300_000_000, processes=20)
ME, CHILD, OTHER, SCRIPT = 1_000_001, 1_000_002, 1_000_003, 1_000_004


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    made = FakeKernel(tmp_path)
    made.put(ME)
    return made


def open_tree(kernel: FakeKernel, own: str = "", *, given: bool = True) -> cgroup_v2.Tree:
    home = f"{kernel.root}/{own}".rstrip("/")
    return cgroup_v2.open_tree(home, namespaced=given, files=kernel, pid=ME, is_ours=lambda pid: pid == CHILD)


def names(kernel: FakeKernel) -> list[str]:
    return [os.path.relpath(path, kernel.root) for path in kernel.groups_everywhere()]


def test_process_goes_to_a_leaf_and_its_groups_have_the_controllers(kernel: FakeKernel) -> None:
    kernel.put(CHILD)
    tree = open_tree(kernel)
    assert kernel.processes(f"{kernel.root}/daemon") == [ME, CHILD]
    assert kernel.processes(kernel.root) == []
    group = tree.group(BOUNDS)
    assert {"memory.max", "pids.max"} <= set(os.listdir(group.folder))


def test_every_limit_is_set_and_read_back(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    group.limit()
    found = {
        name: kernel.read(f"{group.folder}/{name}").strip()
        for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max")
    }
    assert found == {
        "memory.max": str(300_000_000 // 4096 * 4096),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "20",
    }


def test_limit_that_does_not_stick_is_found_out(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    group = open_tree(kernel).group(BOUNDS)
    monkeypatch.setattr(kernel, "write", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(Unusable, match=r"memory\.max is max"):
        group.limit()


def test_process_is_placed_while_it_waits(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    kernel.put(SCRIPT, group="daemon")
    asyncio.run(group.place(SCRIPT))
    assert kernel.processes(group.folder) == [SCRIPT]
    assert SCRIPT not in kernel.processes(f"{kernel.root}/daemon")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EBUSY, errno.ESRCH, errno.ENODEV])
def test_process_that_cannot_be_placed_is_told(kernel: FakeKernel, code: int) -> None:
    group = open_tree(kernel).group(BOUNDS)
    kernel.failing[f"{group.folder}/cgroup.procs"] = code
    with pytest.raises(Unusable):
        asyncio.run(group.place(SCRIPT))


def test_what_the_kernel_saw_is_read(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    Path(group.folder, "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n")
    Path(group.folder, "pids.events").write_text("max 3\n")
    Path(group.folder, "memory.stat").write_text("anon 100\nfile 5000\nshmem 20\nsock 3\n")
    seen = group.pressure()
    assert (seen.oom_kills, seen.at_limit, seen.refused_forks) == (2, True, 3)
    assert group.held_bytes() == 123


def test_what_was_used_is_read_where_the_kernel_tells_it(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    assert group.used() == Used()
    Path(group.folder, "memory.peak").write_text("4096\n")
    Path(group.folder, "cpu.stat").write_text("usage_usec 12500\nuser_usec 12000\n")
    assert group.used() == Used(cpu_ms=12.5, peak_bytes=4096)


def test_kill_of_the_machine_is_not_taken_for_the_groups_limit(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    Path(group.folder, "memory.events").write_text("max 0\noom 0\noom_kill 1\n")
    assert not group.pressure().at_limit


def test_group_is_removed_when_it_is_empty(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    assert group.end()
    assert not Path(group.folder).exists()
    assert group.end()  # a second time


def test_group_with_processes_is_killed_then_removed(kernel: FakeKernel) -> None:
    group = open_tree(kernel).group(BOUNDS)
    asyncio.run(group.place(SCRIPT))
    assert not group.end()
    assert kernel.killed == [group.folder]
    assert group.end()


def test_group_that_stays_busy_is_left_and_removed_with_the_next(kernel: FakeKernel) -> None:
    tree = open_tree(kernel)
    group = tree.group(BOUNDS)
    kernel.failing[f"{group.folder}/rmdir"] = errno.EBUSY
    asyncio.run(cgroups.finish(group))
    assert Path(group.folder).exists()
    kernel.failing.clear()
    tree.group(BOUNDS)
    assert not Path(group.folder).exists()


def test_names_cannot_be_guessed(kernel: FakeKernel) -> None:
    tree = open_tree(kernel)
    random = {Path(tree.group(BOUNDS).folder).name.partition("-")[2] for _ in range(20)}
    assert len(random) == 20 and all(len(name) == 16 for name in random)


@pytest.mark.parametrize(
    ("controllers", "said"), [(("cpu", "pids"), "memory"), (("cpu", "memory"), "pids"), ((), "memory, pids")]
)
def test_missing_controller_is_named(tmp_path: Path, controllers: tuple[str, ...], said: str) -> None:
    kernel = FakeKernel(tmp_path, controllers=controllers)
    kernel.put(ME)
    with pytest.raises(Unusable, match=said):
        open_tree(kernel)
    assert names(kernel) == []


def test_process_of_somebody_else_keeps_everything_as_it_was(kernel: FakeKernel) -> None:
    kernel.put(OTHER)
    with pytest.raises(Unusable, match=str(OTHER)):
        open_tree(kernel)
    assert kernel.processes(kernel.root) == [ME, OTHER]
    assert names(kernel) == []


def test_group_that_was_not_given_to_us_is_not_touched(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(Unusable, match="not delegated"):
        open_tree(kernel, given=False)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(kernel.root).st_uid + 1)
    with pytest.raises(Unusable, match="not delegated"):
        open_tree(kernel, given=False)
    assert names(kernel) == []


def test_group_that_systemd_delegated_to_root_is_taken(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"1" if name == "user.delegate" else b"0")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    assert open_tree(kernel, given=False).version == "v2"


def test_threaded_group_is_refused(kernel: FakeKernel) -> None:
    Path(kernel.root, "cgroup.type").write_text("domain threaded\n")
    with pytest.raises(Unusable, match="domain threaded"):
        open_tree(kernel)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EBUSY, errno.ENOENT, errno.EROFS])
@pytest.mark.parametrize("where", ["/cgroup.subtree_control", "/daemon/cgroup.procs", "/daemon/"])
def test_failure_on_the_way_in_is_undone(kernel: FakeKernel, where: str, code: int) -> None:
    kernel.failing[kernel.root + where] = code
    with pytest.raises(Unusable) as failed:
        open_tree(kernel)
    assert os.strerror(code) in str(failed.value)
    assert kernel.processes(kernel.root) == [ME]
    assert names(kernel) == []


@pytest.mark.parametrize("code", [errno.EACCES, errno.ENOSPC, errno.EAGAIN])
def test_run_without_a_group_is_not_made(kernel: FakeKernel, code: int) -> None:
    tree = open_tree(kernel)
    kernel.max_groups = len(kernel.groups_everywhere())
    if code != errno.EAGAIN:
        kernel.max_groups += 1
        kernel.failing["/"] = code
    with pytest.raises(Unusable, match="no group could be made"):
        tree.group(BOUNDS)


def test_second_process_of_ours_in_the_leaf_shares_the_home(kernel: FakeKernel) -> None:
    first = open_tree(kernel)
    second = open_tree(kernel, "daemon")
    assert first.home == second.home
    assert first.folders != second.folders


def test_real_root_is_used_only_where_the_controllers_are_handed_on(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path, real_root=True)
    kernel.put(ME)
    with pytest.raises(Unusable, match="administrator"):
        open_tree(kernel)
    kernel.write(f"{kernel.root}/cgroup.subtree_control", "+memory +pids")
    tree = open_tree(kernel)
    assert kernel.processes(kernel.root) == [ME]  # the rule of no inner processes does not hold there
    tree.group(BOUNDS).limit()


def test_machine_without_swap_accounting_says_so(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    exists = kernel.exists
    monkeypatch.setattr(kernel, "exists", lambda path: not path.endswith("swap.max") and exists(path))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownMemberType]
    tree = open_tree(kernel)
    tree.group(BOUNDS).limit()
    assert "swap" in tree.notes[0]


def test_what_a_dead_process_left_is_swept(kernel: FakeKernel) -> None:
    dead = open_tree(kernel)
    left = dead.group(BOUNDS)
    asyncio.run(left.place(SCRIPT))
    os.close(dead._lock)  # pyright: ignore[reportPrivateUsage] - as its end would
    kernel._set_processes(Path(left.folder), [])  # pyright: ignore[reportPrivateUsage]
    alive = open_tree(kernel, "daemon")
    assert not Path(dead.folders[0]).exists()
    open_tree(kernel, "daemon")
    assert Path(alive.folders[0]).exists()


def test_wrong_folder_is_found_out(kernel: FakeKernel) -> None:
    with pytest.raises(Unusable, match="not the group of this process"):
        cgroup_v2.open_tree(kernel.root, namespaced=True, files=kernel, pid=SCRIPT)
