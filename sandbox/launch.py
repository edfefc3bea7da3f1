"""Starting a plan: descriptors, the spawn, limits from outside while it is blocked, then the word to go.

Spawned on the calling thread, because bubblewrap's `--die-with-parent` is tied to the thread that started it. Never
`preexec_fn`, `user=` or `group=`, which copy the whole process first (40 ms per GB).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tamis.sandbox import lifeline
from tamis.sandbox.descriptors import Descriptors, StatusLines, memory_file, pipe, words
from tamis.sandbox.job import Plan
from tamis.sandbox.limits import cgroup_files, cgroups
from tamis.sandbox.limits.watchdog import children_of, first_child, tree
from tamis.sandbox.model import Unavailable, lacks
from tamis.sandbox.paths import walk

SETUP_SECONDS = 10.0
_STOP_SECONDS = 1.0
_PR_SET_CHILD_SUBREAPER = 36
_PIDFD_INFO, _PIDFD_INFO_BYTES, _PIDFD_INFO_EXIT, _EXIT_CODE_AT = 0xC040FF0B, 64, 8, 60


class Monitor(Protocol):
    """The outermost process of a sandbox."""

    pid: int
    returncode: Any


class Launched:
    """A sandbox that is set up, limited, and waits at its gate."""

    def __init__(self, process: Monitor, fds: Descriptors, monitor_fd: int = -1) -> None:
        self.process = process
        self.fds = fds
        self.monitor_fd = os.pidfd_open(process.pid) if monitor_fd < 0 else monitor_fd
        self.init_pid = 0
        """The pid 1 of the script's namespace, as this process sees it."""
        self.outer_pid = 0
        """The outermost pid 1: its end is the end of everything. The same as `init_pid` for an ordinary user."""
        self.outer_fd = -1
        self.script_fd = -1
        """The script's own process."""
        self.status: StatusLines | None = None
        self.stage_status: StatusLines | None = None
        self.group: cgroups.Group | None = None
        """The run's control group; everything of the run has been in it since its start."""
        self.bare = False
        self.forked = False
        """A template's: the monitor is no child of ours, ends by itself behind the init, and tells at last what was used."""
        self.identities: dict[str, tuple[int, int]] = {}
        """What must stand at each of `Plan.compared`'s places, by descriptor: (device, inode)."""
        self.started = time.monotonic()

    def said(self) -> list[str]:
        """What the sandbox's program logged beside its state, the outer stage's first."""
        lines: list[str] = []
        for status in (self.stage_status, self.status):
            if status is not None:
                status.read_now()
                lines.extend(status.said)
        return lines

    def unblock(self) -> None:
        """Let bubblewrap start what stands at the gate."""
        _tell(self.fds.number("block-write"), b"g")
        self.fds.close("block-write")

    def go(self, call_env: Mapping[str, str] = MappingProxyType({})) -> None:
        """Open the gate; the wall clock runs from here. What waits in its interpreter is told variables with the word."""
        self.hold_script()
        self.started = time.monotonic()
        told = "".join(f"\0{name}={value}" for name, value in call_env.items())
        _tell(self.fds.number("stdin"), f"go{told}\n".encode("utf-8", "surrogateescape"))

    def hold_script(self) -> None:
        """Keep a descriptor of the script's process, the first child of the init, if it is there already."""
        if self.script_fd < 0 and self.init_pid and not self.bare:
            pid = first_child(self.init_pid)
            if pid is not None:
                with contextlib.suppress(OSError):
                    self.script_fd = os.pidfd_open(pid)

    def ended_by(self, exit_code: int | None) -> int | None:
        """The signal that ended the script, 0 when it ended by itself with this code.

        None where that is not known: the kernel (before 6.15) does not tell, or what was held was not the script.
        """
        if self.status is not None and "signal" in self.status.values:
            return self.status.values["signal"]
        if self.script_fd < 0:
            return None
        info = bytearray(_PIDFD_INFO_BYTES)
        info[0] = _PIDFD_INFO_EXIT
        try:
            fcntl.ioctl(self.script_fd, _PIDFD_INFO, info)
        except OSError:
            return None
        if not info[0] & _PIDFD_INFO_EXIT:
            return None
        ended = os.waitstatus_to_exitcode(
            int.from_bytes(info[_EXIT_CODE_AT : _EXIT_CODE_AT + 4], sys.byteorder) & 0xFF7F
        )
        if exit_code != (ended if ended >= 0 else 128 - ended):
            return None
        return max(0, -ended)

    def alive(self) -> bool:
        """Whether both the monitor and the outermost init live."""
        look = select.poll()
        for fd in (self.monitor_fd, self.outer_fd):
            look.register(fd, select.POLLIN)
        return not look.poll(0)

    def kill(self) -> None:
        """SIGKILL the outermost init, and with it every process below it, then the monitor and what is left in the group."""
        self.end()
        if self.group is not None:
            self.group.kill()

    def end(self) -> None:
        """SIGKILL the outermost init, and with it every process below it, then the monitor."""
        if self.bare:
            end_below(self.process.pid)
        if self.outer_fd < 0 and self.monitor_fd >= 0 and self.process.returncode is None and not self.forked:
            self._end_early()
        for fd in (self.outer_fd,) if self.forked else (self.outer_fd, self.monitor_fd):
            if fd >= 0:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)

    def _end_early(self) -> None:
        """End what stands of a sandbox whose init has not been told yet."""
        for pid in end_before_it_told(self.process.pid):
            self.outer_pid = pid
            with contextlib.suppress(OSError):
                self.outer_fd = os.pidfd_open(pid)

    def close(self) -> None:
        """Release every descriptor."""
        for status in (self.status, self.stage_status):
            if status is not None:
                status.close()
        self.fds.close()
        for fd in (self.monitor_fd, self.outer_fd, self.script_fd):
            if fd >= 0:
                os.close(fd)
        self.monitor_fd = self.outer_fd = self.script_fd = -1


def end_below(keeper: int) -> None:
    """SIGKILL all that a keeper keeps, for as long as it starts more, at most for a moment."""
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline:
        below = [pid for pid in tree(keeper)[1:] if _lives(pid)]
        if not below:
            return
        for what in (signal.SIGSTOP, signal.SIGKILL):
            for pid in below:
                with contextlib.suppress(OSError):
                    os.kill(pid, what)


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def end_before_it_told(monitor: int) -> list[int]:
    """SIGKILL a monitor that may be making its child just now, and the child; returns the child, which then is ours.

    A bubblewrap that is killed alone at that moment leaves its child waiting for ever. So it is stopped first, and what
    it has made by then is all that it will make.
    """
    children: list[int] = []
    with contextlib.suppress(ProcessLookupError):
        os.kill(monitor, signal.SIGSTOP)
        deadline = time.monotonic() + _STOP_SECONDS
        while _runs(monitor) and time.monotonic() < deadline:
            time.sleep(0.0002)
        children = children_of(monitor)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.kill(monitor, signal.SIGKILL)
    return children


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in (b"T", b"t", b"Z", b"X")


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """End a start that failed half-way, and wait for the end of all of it.

    Its pipes are still open: a monitor whose pipe is gone ends alone, and leaves its child waiting for ever.
    """
    children = end_before_it_told(process.pid)
    process.wait()
    for pid in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


@cache
def become_subreaper() -> bool:
    """Let orphans of the sandbox come to this process, so that their end and their usage can be seen."""
    try:
        return ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


def _tell(fd: int, word: bytes) -> None:
    # what has ended meanwhile is seen by its silence, and by what it said
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, word)


@contextlib.contextmanager
def _default_dispositions() -> Generator[None]:
    """Have what is started meanwhile treat every signal in the default way (`nohup` has SIGHUP ignored, and that is inherited).

    An ignored signal gets a handler that does nothing: it goes on being ignored here, and a new program starts without handlers.
    """
    ignored = [number for number in _SIGNALS if _treatment(number) == _IGNORED]
    if not ignored:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    nothing = ctypes.cast(libc.abs, ctypes.c_void_p)  # takes a number, changes nothing, and may run at any moment
    with _Dispositions.lock:
        before = {number: libc.signal(number, nothing) for number in ignored}
        try:
            yield
        finally:
            for number, treatment in before.items():
                libc.signal(number, treatment)


# the two that Python ignores are `restore_signals`'s
_SIGNALS = tuple(int(number) for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ})
_treatment: Callable[[int], object] = vars(signal)["_signal"].getsignal
_IGNORED = int(signal.SIG_IGN)
"""All are asked at every start, so by plain numbers: `signal.getsignal` makes an enumeration's member of each answer."""


class _Dispositions:
    lock = threading.Lock()
    """They belong to the process: a start in another thread may not put them back in the middle of one here."""


# Starts a program with no signal blocked. In a process of its own: a signal that was unblocked here, even for a moment, would
# be delivered. Python ignores two signals itself.
_UNBLOCK = (
    "import os,signal,sys\n"
    "for one in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(one, signal.SIG_DFL)\n"
    "signal.pthread_sigmask(signal.SIG_SETMASK, ())\n"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def _unblocked(argv: list[str]) -> list[str]:
    """The command behind what gives it an empty signal mask, where this thread's is not empty."""
    if not signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return argv
    return [sys.executable, "-I", "-S", "-c", _UNBLOCK, *argv]


def _start(
    argv: list[str], fds: Descriptors, used: set[int], group: cgroups.Group | None, *, bare: bool
) -> subprocess.Popen[bytes]:
    # never the daemon's own process group: a Ctrl-C at its terminal is not the script's
    # (a keeper notices the daemon's end itself, and has to outlive it to end what it keeps)
    process_group = 0 if bare else lifeline.group() or 0
    process: subprocess.Popen[bytes] | None = None
    try:
        with (
            cgroups.failing(),
            group.spawning() if group is not None else contextlib.nullcontext(),
            _default_dispositions(),
        ):
            process = subprocess.Popen(
                _unblocked(argv),
                stdin=fds.number("stdin-read"),
                stdout=fds.number("stdout-write"),
                stderr=fds.number("stderr-write"),
                close_fds=True,
                pass_fds=sorted(used),
                env={},
                cwd="/",
                process_group=process_group,
                umask=0o022,
            )
    except BaseException:
        if process is not None:
            _abandon(process)
        raise
    assert process is not None  # neither manager swallows an error
    return process


def spawn(plan: Plan, opened: Mapping[str, int], seccomp: bytes, group: cgroups.Group | None = None) -> Launched:
    """Start the process; nothing of the script runs yet. `opened` are descriptors that stay the caller's."""
    become_subreaper()
    fds = Descriptors()
    used: set[int] = set()
    try:
        for name, fd in opened.items():
            fds.put(name, os.dup(fd))
        for name, content in plan.data.items():
            fds.put(name, memory_file(name, content))
        fds.put("seccomp", memory_file("seccomp", seccomp))
        for name in plan.reports:
            pipe(fds, f"{name}-read", name)
        for name in plan.holds:
            pipe(fds, name, f"{name}-write")
        pipe(fds, "stdin-read", "stdin")
        pipe(fds, "stdout", "stdout-write")
        pipe(fds, "stderr", "stderr-write")
        for name in ("stdin", "stdout", "stderr"):
            # as root the script has another uid, and may open its own streams again by name (/dev/stdout)
            os.fchmod(fds.number(name), 0o666)
        argv = words(plan.argv, fds, used)
        process = _start(argv, fds, used, group, bare=plan.bare)
    except BaseException:
        fds.close()
        raise
    kept = {"stdin", "stdout", "stderr", "handoff-ours"}
    kept.update(f"{name}-read" for name in plan.reports)
    kept.update(f"{name}-write" for name in plan.holds)
    try:
        launched = Launched(process, fds)
    except OSError:
        fds.close(
            "seccomp", *plan.data, *opened
        )  # it may have failed for want of descriptors, and the next step needs one
        _abandon(process)
        fds.close()
        raise
    launched.group = group
    launched.bare = plan.bare
    for name in tuple(fds._open):  # pyright: ignore[reportPrivateUsage]
        if name not in kept:
            fds.close(name)
    for name, _ in plan.compared:
        status = os.fstat(opened[name])
        launched.identities[name] = (status.st_dev, status.st_ino)
    return launched


async def prepare(launched: Launched, plan: Plan) -> None:
    """Wait until the sandbox stands, and limit it from outside. Raises `Unavailable` when it did not come up."""
    launched.status = StatusLines(launched.fds.take("status-read"))
    if launched.group is not None:
        with cgroups.failing():
            launched.group.limit()
    try:
        async with asyncio.timeout(SETUP_SECONDS):
            if plan.gates:
                await _at_gates(launched, plan)
                return
            if "stage-status" in plan.reports:
                launched.stage_status = StatusLines(launched.fds.take("stage-status-read"))
                _hold(launched, await launched.stage_status.wait_for("child-pid"))
                await _limit(launched, plan)
                _tell(launched.fds.number("stage-block-write"), b"g")
                launched.fds.close("stage-block-write")
            pid = await launched.status.wait_for("child-pid")
            if launched.stage_status is None:
                _hold(launched, pid)
                await _limit(launched, plan)
            launched.unblock()
            if launched.stage_status is not None and pid is not None:
                pid = _seen_from_here(pid, launched.outer_pid)  # while the sandbox goes on to its gate
            if pid is None:
                raise Unavailable("the sandbox did not come up")
            launched.init_pid = pid
            await at_gate(launched.fds.number("stdout"))
    except TimeoutError:
        raise Unavailable(
            f"the sandbox was not set up within {SETUP_SECONDS:g} s",
            "see whether the machine is overloaded",
            passing=True,
        ) from None


async def _at_gates(launched: Launched, plan: Plan) -> None:
    """Stand up a sandbox that tells nothing but that its gates stand: the first takes the limits, the last the script."""
    if "stage-status" in plan.reports:
        launched.stage_status = StatusLines(launched.fds.take("stage-status-read"))
    stdout = launched.fds.number("stdout")
    await at_gate(stdout)
    _hold(launched, launched.process.pid if plan.bare else _child(launched.process.pid))
    walk.require_same(launched.outer_pid, ((place, launched.identities[name]) for name, place in plan.compared))
    await _limit(launched, plan)
    launched.init_pid = launched.outer_pid
    for _ in range(plan.gates - 1):
        _tell(launched.fds.number("stdin"), b"go\n")
        await at_gate(stdout)
        inner = _child(launched.outer_pid)
        launched.init_pid = _child(inner) or 0 if inner is not None else 0
        if not launched.init_pid:
            raise Unavailable("the sandbox ended while it was set up")


def _child(pid: int) -> int | None:
    """The one child of a process."""
    below = tree(pid, certain=True)[1:]
    return below[0] if below else None


def _hold(launched: Launched, pid: int | None) -> None:
    """Keep a descriptor of the outermost init, which cannot come to mean another process."""
    try:
        if pid is None:
            raise ProcessLookupError
        launched.outer_fd = os.pidfd_open(pid)
        launched.outer_pid = pid
    except ProcessLookupError:
        raise Unavailable("the sandbox did not come up") from None


def _seen_from_here(pid: int, outer_pid: int) -> int | None:
    """The pid in this namespace of what is `pid` in the namespace of `outer_pid`."""
    for candidate in tree(outer_pid, certain=True):
        try:
            status = cgroup_files.read(f"/proc/{candidate}/status")
        except OSError as error:
            if lacks(error):
                raise
            continue
        for line in status.decode("ascii", "replace").splitlines():
            if line.startswith("NSpid:"):
                numbers = line.split()[1:]
                if len(numbers) >= 2 and numbers[0] == str(candidate) and str(pid) in numbers[1:2]:
                    return candidate
    return None


async def wait_ready(launched: Launched) -> None:
    """Wait until the program behind the gate says that it waits too. Raises `Unavailable` when it ends instead."""
    try:
        async with asyncio.timeout(SETUP_SECONDS):
            await at_gate(launched.fds.number("stdout"))
    except TimeoutError:
        raise Unavailable(f"the interpreter was not ready within {SETUP_SECONDS:g} s") from None


async def at_gate(stdout: int) -> None:
    """Wait for the line that the gate writes, and take it off the script's output."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(stdout, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(stdout)
    if os.read(stdout, 1) != b"\n":
        raise Unavailable("the sandbox ended while it was set up")


async def _limit(launched: Launched, plan: Plan) -> None:
    pid = launched.outer_pid
    if launched.group is not None:
        with cgroups.failing():
            await launched.group.place(pid)
    try:
        for name, soft, hard in plan.rlimits:
            ceiling = resource.prlimit(pid, name)[1]
            if ceiling != resource.RLIM_INFINITY:
                soft, hard = min(soft, ceiling), min(hard, ceiling)
            resource.prlimit(pid, name, (soft, hard))
    except ProcessLookupError:
        return
    except OSError as error:
        raise Unavailable(f"the limits could not be set: {error.strerror}") from error
    with contextlib.suppress(OSError):
        # when the machine runs out of memory, a tool goes before anything else
        file = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"500")
        finally:
            os.close(file)
