"""A shell beside the daemon that ends what the daemon leaves when it is killed.

`--die-with-parent` does that for a sandbox that stands. But a bubblewrap that is killed while it sets its child up
leaves that child waiting for ever, as the init of its namespace. So every sandbox starts in the process group of a
shell that does nothing but wait for the end of a pipe that only the daemon holds, and then kills its group. Through the
pipe it is told which folders of control groups are the daemon's: it ends what is in them and removes them first.
"""

from __future__ import annotations

import contextlib
import os

_WATCH = """
trap '' INT TERM HUP QUIT
while read -r line; do set -- "$@" "$line"; done
turn=0
while [ $turn -lt 100 ]; do
  left=
  for folder; do
    [ -d "$folder" ] || continue
    for group in "$folder"/*/; do
      [ -d "$group" ] || continue
      while read -r pid; do [ "$pid" -le 1 ] || kill -s KILL "$pid"; done <"$group/cgroup.procs"
      /bin/rmdir "$group"
    done
    /bin/rmdir "$folder" || left=1
    leaf=${folder%/*}/daemon
    [ -d "$folder" ] || [ ! -f "$leaf/cgroup.subtree_control" ] || {
      echo '-memory -pids' >"${folder%/*}/cgroup.subtree_control" && {
        while read -r pid; do echo "$pid" >"${folder%/*}/cgroup.procs"; done <"$leaf/cgroup.procs"
        /bin/rmdir "$leaf"
      }
    }
  done
  [ "$left" ] || break
  /bin/sleep 0.02
  turn=$((turn + 1))
done
kill -s KILL 0
"""


class _Lifeline:
    pid = 0
    fd = -1
    session = 0
    owner = 0
    folders: tuple[str, ...] = ()


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
    if _Lifeline.owner != here[0]:
        # a fork's own are told after it made them; its parent's are its parent's
        _Lifeline.folders = tuple(folder for folder in _Lifeline.folders if f"/tamis-{here[0]}-" in folder)
    _Lifeline.owner, _Lifeline.session = here
    _tell(_Lifeline.folders)
    return pid


def clean(folders: tuple[str, ...]) -> None:
    """Have these folders of control groups, and what is in them, removed at the end of this process."""
    started = group() is not None
    _Lifeline.folders = (*_Lifeline.folders, *folders)
    if started:
        _tell(folders)


def _tell(folders: tuple[str, ...]) -> None:
    with contextlib.suppress(OSError):
        for folder in folders:
            if "\n" not in folder:
                os.write(_Lifeline.fd, os.fsencode(folder) + b"\n")


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    return False


def watcher() -> int:
    """The shell's pid, 0 before the first run."""
    return _Lifeline.pid if _Lifeline.owner == os.getpid() else 0
