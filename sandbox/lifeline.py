"""A shell beside the daemon that ends what the daemon leaves when it is killed.

`--die-with-parent` does that for a sandbox that stands. But a bubblewrap that is killed while it sets its child up
leaves that child waiting for ever, as the init of its namespace. So every sandbox starts in the process group of a
shell that does nothing but wait for the end of a pipe that only the daemon holds, and then kills its group.
"""

from __future__ import annotations

import contextlib
import os

_WATCH = "trap '' INT TERM HUP QUIT; while read -r _; do :; done; kill -s KILL 0"


class _Lifeline:
    pid = 0
    fd = -1
    session = 0
    owner = 0


def group() -> int | None:
    """The process group to start a sandbox in, made at the first call. None when no shell can be started."""
    here = (os.getpid(), os.getsid(0))
    if (_Lifeline.owner, _Lifeline.session) == here and _alive(_Lifeline.pid):
        return _Lifeline.pid
    if _Lifeline.owner == os.getpid():
        os.close(_Lifeline.fd)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _WATCH],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
        )
    except OSError:
        os.close(writing)
        return None
    finally:
        os.close(reading)
    _Lifeline.pid, _Lifeline.fd = pid, writing
    _Lifeline.owner, _Lifeline.session = here
    return pid


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    return False


def watcher() -> int:
    """The shell's pid, 0 before the first run."""
    return _Lifeline.pid if _Lifeline.owner == os.getpid() else 0
