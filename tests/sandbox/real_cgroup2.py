"""The file system of control groups, version 2, of this machine, for tests that may make groups in it."""

from __future__ import annotations

from tamis.sandbox.limits.cgroup_files import Files


class OnRealHierarchy(Files):
    """The real file system of version 2, with the two controllers' files, which it has not here, kept beside it."""

    def __init__(self) -> None:
        self.beside: dict[str, str] = {}

    def _ours(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return name.startswith(("memory.", "pids.")) or name in ("cgroup.controllers", "cgroup.subtree_control")

    def read(self, path: str) -> str:
        if path.endswith("/cgroup.controllers"):
            return "memory pids"
        return self.beside.get(path, "") if self._ours(path) else super().read(path)

    def write(self, path: str, text: str) -> None:
        if self._ours(path):
            self.beside[path] = text.replace("+", "")
        else:
            super().write(path, text)
