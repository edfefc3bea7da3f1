"""The programs that can sandbox, behind one interface. A run's layers are the same with each.

A backend says where its program is, turns a job into a plan, explains what its program said, and names what it holds
by other means. Nothing here chooses: see `probe`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from tamis.sandbox import host
from tamis.sandbox.backends import bubblewrap, causes, flaws, nsjail
from tamis.sandbox.job import LAYERS, Binary, Job, Plan
from tamis.sandbox.model import Unavailable, lacks

DROPS_ROOT = ("uid-drop",)
"""Layers that stand only where the daemon is root."""


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """One program that can sandbox.

    `find` and `ready` raise `Unavailable`; `ready` is asked before each try of the sandbox: the version is
    filled in and what it needs on the host is made.
    `elsewhere` names layers that the program itself does not have, with what holds instead. `notes` is what an operator
    should know of this very program.
    """

    name: str
    find: Callable[[], Binary]
    ready: Callable[[Binary], Binary]
    build: Callable[[Job], Plan]
    causes: tuple[causes.Cause, ...]
    notes: Callable[[Binary], tuple[str, ...]] = flaws.no_notes
    elsewhere: Mapping[str, str] = {}

    def layers(self, *, root: bool, cgroup: bool) -> tuple[str, ...]:
        """The layers of a run, by name."""
        left_out = {*self.elsewhere, *(() if root else DROPS_ROOT), *(() if cgroup else ("cgroup",))}
        return tuple(layer for layer in LAYERS if layer not in left_out)

    def explain(self, said: str, remedy: str = "") -> tuple[str, str]:
        """Cause and remedy of what the program said; its own words stay in the cause. A remedy that is known stays."""
        if remedy:
            return said, remedy
        for pattern, cause, helps in (*causes.LACKS, *causes.COMMON, *self.causes):
            found = re.search(pattern, said)
            if found is not None:
                line = said[said.rfind("\n", 0, found.start()) + 1 :].splitlines()[0]
                groups = [group for group in found.groups() if group] or ["what is needed"]
                return f"{cause.format(*groups)} ({line[:300]})", helps
        return said, "run `tamis doctor`"


BUBBLEWRAP = Backend(
    name="bubblewrap",
    find=lambda: host.find_binary(),  # looked up late: tests put another one there
    ready=flaws.ready_bubblewrap,
    build=bubblewrap.build,
    causes=causes.BUBBLEWRAP,
    notes=flaws.follows_links,
)
NSJAIL = Backend(
    name="nsjail",
    find=lambda: host.find_nsjail(),
    ready=flaws.ready_nsjail,
    build=nsjail.build,
    causes=causes.NSJAIL,
    elsewhere=nsjail.CANNOT_HOLD,
)
BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (BUBBLEWRAP, NSJAIL)}


def is_lack(error: BaseException | None) -> bool:
    """Whether a failure, or what it came of, is a want of something that may be there again the next moment.

    A program that sandboxes tells its own only in words.
    """
    while error is not None:
        if isinstance(error, OSError) and lacks(error):
            return True
        if isinstance(error, Unavailable) and (
            error.passing or any(re.search(pattern, error.reason) for pattern, _, _ in causes.LACKS)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def explain(name: str, said: str, remedy: str = "") -> tuple[str, str]:
    """Cause and remedy of what a program said, by the backend's name; what has no backend explains itself."""
    backend = BACKENDS.get(name)
    return backend.explain(said, remedy) if backend is not None else (said, remedy)
