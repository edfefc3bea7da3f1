"""Starting a plan: descriptors, the spawn, limits from outside while it is blocked, then the word to go.

Spawned on the calling thread, because bubblewrap's `--die-with-parent` is tied to the thread that started it. Never
`preexec_fn`, `user=` or `group=`, which copy the whole process first (40 ms per GB).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from tamis.sandbox import lifeline
from tamis.sandbox.job import Arg, ArgFile, Plan
from tamis.sandbox.model import Unavailable
from tamis.sandbox.watchdog import tree

SETUP_SECONDS = 10.0
_PR_SET_CHILD_SUBREAPER = 36


class Descriptors:
    """Descriptors by name; `close()` releases whatever was not taken."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def put(self, name: str, fd: int) -> int:
        """Own a descriptor under a name."""
        self._open[name] = fd
        return fd

    def number(self, name: str) -> int:
        """The number behind a name."""
        return self._open[name]

    def take(self, name: str) -> int:
        """Hand a descriptor over to the caller."""
        return self._open.pop(name)

    def close(self, *names: str) -> None:
        """Close these, or all."""
        for name in names or tuple(self._open):
            fd = self._open.pop(name, None)
            if fd is not None:
                os.close(fd)


def memory_file(name: str, content: bytes) -> int:
    """An anonymous file positioned at its start."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


class StatusLines:
    """Reads bubblewrap's `--json-status-fd`, which comes in pieces, without blocking the loop."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.values: dict[str, int] = {}
        self._rest = b""
        self._ended = False
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            piece = os.read(self.fd, 65_536)
        except BlockingIOError:
            return
        if not piece:
            self._ended = True
            asyncio.get_running_loop().remove_reader(self.fd)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):
                value: object = msgspec.json.decode(line)
                if isinstance(value, dict):
                    self.values.update({str(key): item for key, item in value.items() if isinstance(item, int)})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - decoded JSON
        self._changed.set()

    def read_now(self) -> None:
        """Read what is there."""
        while not self._ended:
            before = (len(self.values), self._rest)
            self._read()
            if before == (len(self.values), self._rest):
                return

    async def wait_for(self, key: str) -> int | None:
        """The value of a key, or None when the stream ended without it."""
        while key not in self.values and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        return self.values.get(key)

    def close(self) -> None:
        """Stop reading and release the descriptor; a second call does nothing."""
        if self.fd >= 0:
            asyncio.get_running_loop().remove_reader(self.fd)
            os.close(self.fd)
            self.fd = -1


class Launched:
    """A sandbox that is set up, limited, and waits at its gate."""

    def __init__(self, process: subprocess.Popen[bytes], fds: Descriptors) -> None:
        self.process = process
        self.fds = fds
        self.monitor_fd = os.pidfd_open(process.pid)
        self.init_pid = 0
        """The pid 1 of the script's namespace, as this process sees it."""
        self.outer_pid = 0
        """The outermost pid 1: its end is the end of everything. The same as `init_pid` for an ordinary user."""
        self.outer_fd = -1
        self.status: StatusLines | None = None
        self.stage_status: StatusLines | None = None
        self.started = time.monotonic()

    def unblock(self) -> None:
        """Let bubblewrap start what stands at the gate."""
        os.write(self.fds.number("block-write"), b"g")
        self.fds.close("block-write")

    def go(self) -> None:
        """Open the gate; the wall clock runs from here."""
        self.started = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            os.write(self.fds.number("stdin"), b"go\n")

    def kill(self) -> None:
        """SIGKILL the outermost init, and with it every process below it, then the monitor."""
        for fd in (self.outer_fd, self.monitor_fd):
            if fd >= 0:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)

    def close(self) -> None:
        """Release every descriptor."""
        for status in (self.status, self.stage_status):
            if status is not None:
                status.close()
        self.fds.close()
        for fd in (self.monitor_fd, self.outer_fd):
            if fd >= 0:
                os.close(fd)
        self.monitor_fd = self.outer_fd = -1


@cache
def become_subreaper() -> bool:
    """Let orphans of the sandbox come to this process, so that their end and their usage can be seen."""
    try:
        return ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


def _pipe(fds: Descriptors, read_name: str, write_name: str) -> None:
    reading, writing = os.pipe2(os.O_CLOEXEC)
    fds.put(read_name, reading)
    fds.put(write_name, writing)


def _words(args: Sequence[Arg], fds: Descriptors, used: set[int]) -> list[str]:
    """The arguments with every stand-in as the number of its descriptor, which is noted in `used`."""
    out: list[str] = []
    for arg in args:
        if isinstance(arg, str):
            out.append(arg)
            continue
        if isinstance(arg, ArgFile):
            content = b"".join(os.fsencode(word) + b"\0" for word in _words(arg.args, fds, used))
            fds.put(arg.name, memory_file(arg.name, content))
        number = fds.number(arg.name)
        used.add(number)
        out.append(str(number))
    return out


def spawn(plan: Plan, opened: Mapping[str, int], seccomp: bytes) -> Launched:
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
            _pipe(fds, f"{name}-read", name)
        for name in plan.holds:
            _pipe(fds, name, f"{name}-write")
        _pipe(fds, "stdin-read", "stdin")
        _pipe(fds, "stdout", "stdout-write")
        _pipe(fds, "stderr", "stderr-write")
        argv = _words(plan.argv, fds, used)
        process = subprocess.Popen(
            argv,
            stdin=fds.number("stdin-read"),
            stdout=fds.number("stdout-write"),
            stderr=fds.number("stderr-write"),
            close_fds=True,
            pass_fds=sorted(used),
            env={},
            cwd="/",
            # never the daemon's own group: a Ctrl-C at its terminal is not the script's
            process_group=lifeline.group() or 0,
        )
    except BaseException:
        fds.close()
        raise
    kept = {"stdin", "stdout", "stderr", "handoff-ours"}
    kept.update(f"{name}-read" for name in plan.reports)
    kept.update(f"{name}-write" for name in plan.holds)
    try:
        launched = Launched(process, fds)
    except OSError:
        process.kill()
        process.wait()
        fds.close()
        raise
    for name in tuple(fds._open):  # pyright: ignore[reportPrivateUsage]
        if name not in kept:
            fds.close(name)
    return launched


async def prepare(launched: Launched, plan: Plan) -> None:
    """Wait until the sandbox stands, and limit it from outside. Raises `Unavailable` when it did not come up."""
    launched.status = StatusLines(launched.fds.take("status-read"))
    try:
        async with asyncio.timeout(SETUP_SECONDS):
            if "stage-status" in plan.reports:
                launched.stage_status = StatusLines(launched.fds.take("stage-status-read"))
                _hold(launched, await launched.stage_status.wait_for("child-pid"))
                _limit(launched.outer_pid, plan)
                os.write(launched.fds.number("stage-block-write"), b"g")
                launched.fds.close("stage-block-write")
            pid = await launched.status.wait_for("child-pid")
            if launched.stage_status is not None and pid is not None:
                pid = _seen_from_here(pid, launched.outer_pid)
            if launched.stage_status is None:
                _hold(launched, pid)
                _limit(launched.outer_pid, plan)
            if pid is None:
                raise Unavailable("the sandbox did not come up")
            launched.init_pid = pid
            launched.unblock()
            await _gate(launched.fds.number("stdout"))
    except TimeoutError:
        raise Unavailable(
            f"the sandbox was not set up within {SETUP_SECONDS:g} s", "see whether the machine is overloaded"
        ) from None


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
    for candidate in tree(outer_pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{candidate}/status").read_text("ascii", "replace").splitlines():
                if line.startswith("NSpid:"):
                    numbers = line.split()[1:]
                    if len(numbers) >= 2 and numbers[0] == str(candidate) and str(pid) in numbers[1:2]:
                        return candidate
    return None


async def _gate(stdout: int) -> None:
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


def _limit(pid: int, plan: Plan) -> None:
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
        Path(f"/proc/{pid}/oom_score_adj").write_text("500")
