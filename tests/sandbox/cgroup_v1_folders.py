"""Control groups of version 1 for tests, where this machine has them."""

from __future__ import annotations

import contextlib
import os
import time

import pytest

from tamis.sandbox import lifeline
from tamis.sandbox.limits import cgroups, watchdog
from tamis.sandbox.limits.cgroup_files import Files

HAS_V1 = cgroups.status().version == "v1"


needs_v1 = pytest.mark.skipif(not HAS_V1, reason=f"no groups of version 1 may be made here: {cgroups.status().reason}")


def folders() -> list[str]:
    """What stands in the folders of this process; each run's group is there while it lasts."""
    tree = cgroups._State.tree  # pyright: ignore[reportPrivateUsage]
    assert tree is not None
    return [f"{folder}/{name}" for folder in tree.folders for name in Files().groups(folder)]


def reap() -> None:
    """Clear away what came to this process from one that ended."""
    while [pid for pid in watchdog.tree(os.getpid())[1:] if pid != lifeline.watcher()]:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.01)
