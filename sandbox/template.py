"""A template: one sandbox of a tool, in which a Python waits that forks for each call into a sandbox of its own.

The outer sandbox is an ordinary one of exactly this tool, so that no fork can be shown more than the tool may see. It differs in what its
forks need to build theirs: no bound on user namespaces, an uncovered `/proc`, and a filter that lets `mount` and `unshare` through. The
template keeps no capability: only what it forked has any, in user namespaces of its own and until the script. The program that runs inside
is `boot._SERVE`. Whatever cannot be set up ends in `Unavailable`, and the call is run without a template.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable, Mapping

import msgspec

from tamis.sandbox import job as jobs
from tamis.sandbox.backends import bubblewrap, seccomp
from tamis.sandbox.descriptors import Descriptors, StatusLines, pipe
from tamis.sandbox.engine import Standing, stand_up
from tamis.sandbox.job import MIB, SHM_BYTES, Job
from tamis.sandbox.launch import SETUP_SECONDS, Launched, at_gate
from tamis.sandbox.limits import cgroup_files, cgroups
from tamis.sandbox.model import Limits, Unavailable
from tamis.sandbox.warm import boot

MAX_CALLS = 200
"""So many share one layout of memory and one seed of hashes; then the template is made anew, as after any script that a signal ended."""
MAX_SECONDS = 300.0
AT_ONCE = 64
"""The kernel counts what the forks hold for their template too, so its own limits are so many times theirs."""
_OWN_BYTES = 128 * MIB
_OWN_PROCESSES = 4 * AT_ONCE
_OWN_FILES = 64
_SUMMED = (
    resource.RLIMIT_NPROC,
    resource.RLIMIT_MEMLOCK,
    resource.RLIMIT_MSGQUEUE,
    resource.RLIMIT_SIGPENDING,
)
_NAMESPACES = (
    0x10000000 | 0x20000 | 0x8000000 | 0x4000000
)  # user, mount, ipc, uts; a control group's is entered when it is in its own
_NEW_PID, _NEW_NET = 0x20000000, 0x40000000
_STREAMS = ("stdin", "stdout", "stderr")


class _Monitor:
    """The process that waits for a fork's init."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None


class Template:
    """One that stands. Belongs to one loop, on whose thread it was started."""

    def __init__(self, standing: Standing, control: socket.socket, limits: Limits, *, grouped: bool) -> None:
        self.calls = 0
        self.shape = ""
        self._standing = standing
        self._control = control
        self._limits = limits
        self._grouped = grouped
        self._began = time.monotonic()
        self._answers: dict[int, asyncio.Future[tuple[int, int] | None]] = {}
        self._over = asyncio.Event()
        self._retired = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(control, self._read)
        standing.on_end(self._ended)

    def keep(self, let_go: Callable[[], None]) -> None:
        """Call this when nothing of it is left."""
        self._standing.on_release = let_go

    @property
    def fits(self) -> bool:
        """Whether it may be used once more."""
        young = self.calls < MAX_CALLS and time.monotonic() - self._began < MAX_SECONDS
        return young and not self._over.is_set() and not self._retired and self._standing.waits

    def memory_bytes(self) -> int:
        """What it and its forks hold."""
        return self._standing.memory_bytes()

    def _ended(self) -> None:
        self._over.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(None)

    def _read(self) -> None:
        try:
            word, given, _, _ = self._control.recvmsg(64, socket.CMSG_SPACE(8), socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            word, given = b"", []
        if not word:
            self._loop.remove_reader(self._control)
            self._ended()
            return
        held = array.array("i")
        for _, _, part in given:
            held.frombytes(part[: len(part) // held.itemsize * held.itemsize])
        answer = self._answers.pop(int(word) if word.isdigit() else -1, None)
        if answer is not None and not answer.done() and len(held) == 2:
            answer.set_result((held[0], held[1]))
            return
        # nobody waits for it any more; it ends by itself, because its input has ended
        for fd in held:
            os.close(fd)
        if answer is not None and not answer.done():
            answer.set_result(None)

    async def fork(self) -> Standing:
        """A sandbox for one call, in which the interpreter has read the script and waits. Raises `Unavailable` or `OSError`."""
        self.calls += 1
        number = self.calls
        fds = Descriptors()
        group: cgroups.Group | None = None
        standing: Standing | None = None
        try:
            async with asyncio.timeout(SETUP_SECONDS):
                group = cgroups.new_group(self._limits) if self._grouped else None
                monitor, init = await self._ask(number, fds)
                launched = _launched(monitor, init, fds)
                launched.group = group
                standing = Standing(launched, self._limits)
                if group is not None:
                    with cgroups.failing():
                        group.limit()
                        await group.adopt(launched.outer_pid)
                await at_gate(fds.number("stdout"))
                await standing.made_ready()
        except BaseException as error:
            if standing is not None:
                await standing.discard()
            else:
                fds.close()
                if group is not None:
                    await cgroups.finish(group)
            if isinstance(error, TimeoutError):
                raise Unavailable("the template did not answer") from error
            raise
        return standing

    async def _ask(self, number: int, fds: Descriptors) -> tuple[int, int]:
        """Have it fork: descriptors of the new monitor and of its init."""
        theirs: list[str] = []
        for name in (*_STREAMS, "status"):
            ends = (f"{name}-theirs", name) if name == "stdin" else (name, f"{name}-theirs")
            pipe(fds, *ends)
            theirs.append(f"{name}-theirs")
        for name in _STREAMS:
            # as in every run: the script may open its own streams again by name
            os.fchmod(fds.number(name), 0o666)
        answer = self._answers[number] = self._loop.create_future()
        try:
            socket.send_fds(self._control, [b"%d" % number], [fds.number(name) for name in theirs])
            fds.close(*theirs)
            forked = await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled():
                for fd in answer.result() or ():
                    os.close(fd)
            raise
        finally:
            self._answers.pop(number, None)
        if forked is None:
            raise Unavailable("the template ended" if self._over.is_set() else "the template could not fork")
        return forked

    async def retire(self, seconds: float = 0.0) -> None:
        """Have no more forked, give what runs these seconds or as long as it takes (0), and end all of it."""
        self._retired = True
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds or None):
                    if self._answers:
                        await asyncio.wait(self._answers.values())
                    self._close()
                    await self._over.wait()
        finally:
            self._close()
            self._ended()
            await self._standing.discard()

    def _close(self) -> None:
        """It ends when it hears nobody any more and what it forked has ended."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()


def _launched(monitor: int, init: int, fds: Descriptors) -> Launched:
    """What a template forked, as any sandbox at its gate. Owns the descriptors, also when it raises."""
    try:
        pids = _pid(monitor), _pid(init)
    except BaseException:
        os.close(monitor)
        os.close(init)
        raise
    launched = Launched(_Monitor(pids[0]), fds, monitor)
    launched.forked = True
    launched.outer_fd = init
    launched.outer_pid = launched.init_pid = pids[1]
    launched.status = StatusLines(fds.take("status"))
    return launched


def _pid(fd: int) -> int:
    """The process of a descriptor, as it is seen from here."""
    for line in cgroup_files.read(f"/proc/self/fdinfo/{fd}").splitlines():
        if line.startswith(b"Pid:") and int(line[4:]) > 0:
            return int(line[4:])
    raise Unavailable("what the template forked has ended")


async def start(job: Job, opened: Mapping[str, int], limits: Limits) -> Template:
    """The template of a job. Raises `Unavailable` or `OSError` when it did not come up."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    grouped = "cgroup" not in job.without
    try:
        ours.setblocking(False)
        job = msgspec.structs.replace(job, warm=boot.template(), is_gate=True, forks=True)
        plan = msgspec.structs.replace(bubblewrap.build(job), rlimits=_own_rlimits(job))
        wide = msgspec.structs.replace(
            limits,
            memory_bytes=max(limits.memory_bytes, _OWN_BYTES),
            processes=max(limits.processes, _OWN_PROCESSES),
        )
        standing = await stand_up(
            plan,
            opened={**opened, "control": theirs.fileno()},
            limits=wide,
            seccomp=seccomp.filter_bytes(job.machine, seccomp.TEMPLATES),
            grouped=grouped,
        )
        try:
            ours.send(msgspec.json.encode(_terms(job)))
        except BaseException:
            await standing.discard()
            raise
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Template(standing, ours, limits, grouped=grouped)


def _terms(job: Job) -> dict[str, object]:
    """What the template is told of all calls."""
    off = job.without
    sized = "sized-tmpfs" not in off
    return {
        "filter": "" if "seccomp" in off else seccomp.filter_bytes(job.machine).hex(),
        # its monitor and its init are counted with the script's
        "rlimits": () if "rlimits" in off else jobs.rlimits(job.limits, "python", extra_processes=2),
        "tmpfs": (("/dev/shm", SHM_BYTES if sized else 0), ("/tmp", job.limits.tmp_bytes if sized else 0)),
        "namespaces": _NAMESPACES | ("pids" not in off and _NEW_PID) | ("network" not in off and _NEW_NET),
        "session": "new-session" not in off,
        "pids": "pids" not in off,
        "proc-sys": "proc-sys" not in off,
        "userns": "disable-userns" not in off,
        "capabilities": "capabilities" not in off,
    }


def _own_rlimits(job: Job) -> tuple[tuple[int, int, int], ...]:
    """A run's limits, wide enough for all that the template forks at once."""
    if "rlimits" in job.without:
        return ()
    rows: list[tuple[int, int, int]] = []
    for name, soft, hard in jobs.rlimits(job.limits, "python", extra_processes=4):
        least = {resource.RLIMIT_DATA: _OWN_BYTES, resource.RLIMIT_AS: 1024 * MIB, resource.RLIMIT_NOFILE: _OWN_FILES}
        if name == resource.RLIMIT_CPU:
            continue  # it lasts longer than any call
        if name in _SUMMED:
            soft, hard = soft * AT_ONCE, hard * AT_ONCE
        elif name in least:
            soft, hard = max(soft, least[name]), max(hard, least[name])
        rows.append((name, soft, hard))
    return tuple(rows)
