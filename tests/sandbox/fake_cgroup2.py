"""A cgroup v2 tree in a temporary folder: plain files, with the kernel's rules played on every write and mkdir."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tamis.sandbox.limits.cgroup_files import Files

CONTROLLERS = ("cpu", "memory", "pids")
_FILES = {
    "memory": {
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
        "memory.stat": "anon 0\nshmem 0\nsock 0",
    },
    "pids": {"pids.max": "max", "pids.events": "max 0"},
    "cpu": {"cpu.max": "max 100000"},
}
_EVENTS = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0"


def failure(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class FakeKernel(Files):
    """`root` is the folder of a delegated group; `failing` maps the end of a path to the errno of each write there."""

    def __init__(self, root: Path, *, controllers: tuple[str, ...] = CONTROLLERS, real_root: bool = False) -> None:
        self.root = str(root)
        self.failing: dict[str, int] = {}
        self.killed: list[str] = []
        self.max_groups = 1000
        self.most_inside = 0
        self._fill(root, controllers, real_root=real_root)

    def _fill(self, folder: Path, controllers: tuple[str, ...], *, real_root: bool = False) -> None:
        files = {"cgroup.procs": "", "cgroup.controllers": " ".join(controllers), "cgroup.subtree_control": ""}
        if not real_root:
            files |= {"cgroup.type": "domain", "cgroup.events": "populated 0\nfrozen 0", "cgroup.kill": ""}
            files |= {"memory.events": _EVENTS} if "memory" in controllers else {}
            for name in controllers:
                files |= _FILES[name]
        for name, text in files.items():
            (folder / name).write_text(text + "\n" if text else "")

    def put(self, *pids: int, group: str = "") -> None:
        """Have these processes in a group."""
        path = Path(f"{self.root}/{group}".rstrip("/"))
        self._set_processes(path, [*self.processes(str(path)), *pids])

    def _set_processes(self, group: Path, pids: list[int]) -> None:
        (group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in dict.fromkeys(pids)))
        if (group / "cgroup.events").exists():
            (group / "cgroup.events").write_text(f"populated {int(bool(pids))}\nfrozen 0\n")

    def groups_everywhere(self) -> list[Path]:
        return sorted(path for path in Path(self.root).rglob("*") if path.is_dir())

    def _check(self, path: str) -> None:
        for end, code in self.failing.items():
            if path.endswith(end):
                raise failure(code, path)

    def mkdir(self, path: str) -> None:
        self._check(path + "/")
        if len(self.groups_everywhere()) >= self.max_groups:
            raise failure(errno.EAGAIN, path)  # cgroup.max.descendants
        super().mkdir(path)
        enabled = Path(path).parent.joinpath("cgroup.subtree_control").read_text().split()
        self._fill(Path(path), tuple(enabled))

    def rmdir(self, path: str) -> None:
        folder = Path(path)
        if not folder.is_dir():
            raise failure(errno.ENOENT, path)
        self._check(path + "/rmdir")
        if self.processes(path) or self.groups(path):
            raise failure(errno.EBUSY, path)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def write(self, path: str, text: str) -> None:
        self._check(path)
        file = Path(path)
        if not file.exists():
            raise failure(errno.ENOENT, path)
        group, value = file.parent, text.strip()
        if file.name == "cgroup.procs":
            self._move(group, int(value))
        elif file.name == "cgroup.subtree_control":
            self._hand_on(group, value)
        elif file.name == "cgroup.kill":
            self.killed.append(str(group))
            self._set_processes(group, [])
        else:
            file.write_text(value + "\n")

    def _move(self, group: Path, pid: int) -> None:
        handed_on = (group / "cgroup.subtree_control").read_text().split()
        if handed_on and (group / "cgroup.type").exists():
            raise failure(errno.EBUSY, str(group))  # no internal processes
        for folder in (Path(self.root), *self.groups_everywhere()):
            inside = self.processes(str(folder))
            if pid in inside:
                self._set_processes(folder, [each for each in inside if each != pid])
        self.put(pid, group=os.path.relpath(group, self.root))

    def _hand_on(self, group: Path, words: str) -> None:
        available = (group / "cgroup.controllers").read_text().split()
        enabled = (group / "cgroup.subtree_control").read_text().split()
        for word in words.split():
            if word[1:] not in available:
                raise failure(errno.ENOENT, str(group))
            if word[0] == "+" and self.processes(str(group)) and (group / "cgroup.type").exists():
                raise failure(errno.EBUSY, str(group))
            enabled = [*(each for each in enabled if each != word[1:]), *([word[1:]] if word[0] == "+" else [])]
        (group / "cgroup.subtree_control").write_text(" ".join(enabled) + "\n")
