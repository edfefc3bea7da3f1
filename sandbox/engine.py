"""One plan, executed: spawn, limit, pump, watch, reap. Says what happened, judges nothing (see `classify`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import select
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec

from tamis.sandbox import launch
from tamis.sandbox.classify import Ending, Pressure
from tamis.sandbox.job import SHM_BYTES, Plan
from tamis.sandbox.limits import cgroups, watchdog
from tamis.sandbox.model import STDERR_DRAIN_BYTES, Limits, Unavailable
from tamis.sandbox.talk import Sink, Source, Talk, TalkSink

DRAIN_SECONDS = 0.25
REAP_SECONDS = 5.0
LAST_WORD_SECONDS = 0.25
"""Between a script's end and the word of it: a loaded machine, no more."""
FIRST_LOOK_SECONDS = 0.025
CLOCK_SECONDS, LATE_SECONDS = 0.5, 1.0
"""How often the deadline's clock is looked at, and how much later than that a loaded machine may come to it: what is beyond was no
time of the script's."""
_PAUSE_SECONDS = 0.005
STAGE_BYTES = 4 << 20
"""No interpreter starts in so little: when what was reaped held less, it was the sandbox's own program alone."""

OnOutput = Callable[[Literal["stdout", "stderr"], bytes], None]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a run that came up. `exit_code` is None when the namespace did not report one."""

    ending: Ending
    exit_code: int | None
    ended_by: int | None = None
    """The signal that ended the script, 0 when it ended by itself, None where that is not known."""
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    wall_ms: float
    cpu_ms: float
    max_rss_bytes: int
    pressure: Pressure = Pressure()
    warm: bool = False
    forked: bool = False
    """A template made the sandbox."""
    started: bool = True
    """False when a sandbox that waited ended before the script began."""
    monitor_code: int | None = None
    """How the sandbox's own program ended, where it did so by itself: negative for a signal."""


async def execute(
    plan: Plan | Callable[[], Plan],
    *,
    opened: Mapping[str, int],
    stdin: bytes | Talk,
    limits: Limits,
    seccomp: bytes,
    watched: bool = True,
    grouped: bool = True,
    on_output: OnOutput | None = None,
    cancelled: asyncio.Event | None = None,
    beside: Callable[[], Awaitable[None]] | None = None,
    ready: Standing | None = None,
    call_env: Mapping[str, str] = MappingProxyType({}),
    on_go: Callable[[], None] = lambda: None,
) -> Ended:
    """Run a plan to its end and verify that nothing of it is left.

    `ready` is a sandbox that waits already (see `park`) and is used up like any other; only if it ended before the
    script began, the plan is made and run after all.
    `on_go` is called before anything of the script can run.
    `beside` is run beside the script from its start on; if it fails, the run is ended and its error raised. Raises `Unavailable`, with what bubblewrap said, when the sandbox did not come up.
    """
    if ready is not None and isinstance(stdin, bytes):
        try:
            on_go()
            ready.go(
                stdin,
                wall_ms=limits.wall_ms,
                watched=watched,
                on_output=on_output,
                cancelled=cancelled,
                call_env=call_env,
            )
            ended = await ready.ended()
        finally:
            await ready.discard()
        if ended.started or ended.ending != "exit":
            return ended
    plan = plan() if callable(plan) else plan
    standing = await stand_up(plan, opened=opened, limits=limits, seccomp=seccomp, grouped=grouped)
    try:
        on_go()
        standing.go(stdin, wall_ms=limits.wall_ms, watched=watched, on_output=on_output, cancelled=cancelled)
        if beside is not None:
            standing.beside(beside())
        return await standing.ended()
    finally:
        await standing.discard()


async def stand_up(
    plan: Plan, *, opened: Mapping[str, int], limits: Limits, seccomp: bytes, grouped: bool = True
) -> Standing:
    """A sandbox that is set up, limited, and waits at its gate; the caller must `discard` it.

    Raises `Unavailable`, with what the sandbox's program said, when it did not come up; then nothing of it is left.
    """
    group = cgroups.new_group(limits) if grouped else None
    try:
        launched = launch.spawn(plan, opened, seccomp, group)
    except BaseException:
        if group is not None:
            await _undisturbed(cgroups.finish(group))
        raise
    standing = Standing(launched, limits)
    try:
        await launch.prepare(launched, plan)
    except BaseException as error:
        text = ""
        if isinstance(error, Unavailable):
            launched.kill()
            await standing.drain(1.0)
            text = "\n".join((bytes(standing.stderr.kept).decode("utf-8", "replace").strip(), *launched.said())).strip()
        await standing.discard()
        if isinstance(error, Unavailable):
            # what was found out here says more than what the program said meanwhile
            reason = error.reason if error.remedy else text or error.reason
            raise Unavailable(reason, error.remedy, passing=error.passing) from error
        raise
    return standing


async def park(
    plan: Plan, *, opened: Mapping[str, int], limits: Limits, seccomp: bytes, grouped: bool = True
) -> Standing:
    """As `stand_up`, of a plan whose interpreter makes ready and waits before it starts the script.

    Raises `Unavailable` when it did not come to wait, which a script can bring about (one that does not compile).
    """
    standing = await stand_up(plan, opened=opened, limits=limits, seccomp=seccomp, grouped=grouped)
    try:
        await standing.made_ready()
    except BaseException:
        await standing.discard()
        raise
    return standing


async def _undisturbed(work: Awaitable[None]) -> None:
    """Wait for `work` even when this task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    again = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            again = True
    if again:
        raise asyncio.CancelledError


class Standing:
    """One sandbox from its gate to its verified end."""

    def __init__(self, launched: launch.Launched, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self._launched = launched
        self._limits = limits
        self._ending: asyncio.Future[Ending] = self._loop.create_future()
        self._monitor_gone = asyncio.Event()
        self._usage = watchdog.Usage()
        self._tasks: list[asyncio.Task[None]] = []
        self._clock: WallClock | None = None
        self._source: Source | None = None
        self._reaped = False
        self._warm = False
        self._cpu_ms = 0.0
        self._max_rss = 0
        self._loop.add_reader(launched.monitor_fd, self._monitor_ended)
        self._on_output: OnOutput | None = None
        self.on_release: Callable[[], None] = lambda: None
        """Called when nothing of it is left."""
        self.stdout: Sink | None = None
        self.stderr = Sink(
            launched.fds.take("stderr"),
            keep=limits.stderr_bytes,
            allow=max(STDERR_DRAIN_BYTES, limits.stderr_bytes),
            on_over=self._stderr_over,
            on_piece=lambda piece: self._show("stderr", piece),
        )

    def _show(self, stream: Literal["stdout", "stderr"], piece: bytes) -> None:
        if self._on_output is not None:
            self._on_output(stream, piece)

    def _stderr_over(self) -> None:
        # Who writes has to wait now. If the script itself has ended, and only the word of it is still to come, then what it
        # left behind wrote this, and is no fault of the script's (S4).
        self.stderr.pause()
        self._loop.call_later(LAST_WORD_SECONDS, self._end, "stderr")

    def _end(self, ending: Ending) -> None:
        if not self._ending.done():
            self._ending.set_result(ending)

    def _script_ended(self) -> None:
        # The exit code is known and nothing else of the run counts: the namespaces are taken down at once, instead of
        # one after the other as each level notices the end of the one below.
        self._end("exit")
        launched = self._launched
        launched.end()
        if launched.outer_pid != launched.init_pid:
            # the inner init reaped the script, and may end without passing on what that used: both are asked as they go
            for pid in (launched.init_pid, launched.outer_pid):
                self._usage.cpu_ms = max(self._usage.cpu_ms, watchdog.cpu_ms_of((pid,)))

    def _monitor_ended(self) -> None:
        self._loop.remove_reader(self._launched.monitor_fd)
        self._monitor_gone.set()
        self._end("exit")

    async def made_ready(self) -> None:
        """Open the gate for the program that waits before the script, and wait until it does. Raises `Unavailable`."""
        self._launched.go()
        await launch.wait_ready(self._launched)
        self._warm = True

    @property
    def waits(self) -> bool:
        """Whether it still waits as it should: alive, and silent."""
        return not self._ending.done() and self.stderr.total == 0 and self._launched.alive()

    def on_end(self, call: Callable[[], None]) -> None:
        """Call this when it ends, by whatever."""
        self._ending.add_done_callback(lambda _: call())

    def memory_bytes(self) -> int:
        """What all of it holds in memory, shared pages by their share."""
        pids = watchdog.tree(self._launched.process.pid)
        return sum(watchdog.proportional_bytes(pid) for pid in pids)

    def go(
        self,
        stdin: bytes | Talk,
        *,
        wall_ms: int | None = None,
        watched: bool = True,
        on_output: OnOutput | None = None,
        cancelled: asyncio.Event | None = None,
        call_env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Open the gate, write the input and start every clock. ``call_env`` is for one that waits in its interpreter."""
        launched = self._launched
        self._on_output = on_output
        if cancelled is not None:
            self._tasks.append(self._loop.create_task(self._when(cancelled)))
        launched.go(call_env)
        if isinstance(stdin, Talk):
            self.stdout = TalkSink(launched.fds.take("stdout"), stdin, lambda: self._end("stdout"))
            stdin.open(launched.fds.take("stdin"))
        else:
            self._hand_over(stdin)
        wall_ms = self._limits.wall_ms if wall_ms is None else wall_ms
        self._clock = WallClock(self._loop, wall_ms / 1000, lambda: self._end("wall"))
        if launched.status is not None:
            launched.status.on_exit = self._script_ended
        if watched:
            tmpfs = {"/tmp": self._limits.tmp_bytes, "/dev/shm": SHM_BYTES}
            look = watchdog.look_at(launched.init_pid, self._limits.memory_bytes, tmpfs, launched.group)
            self._tasks.append(self._loop.create_task(self._watched(look)))

    def _hand_over(self, stdin: bytes) -> None:
        launched = self._launched
        self.stdout = Sink(
            launched.fds.take("stdout"),
            keep=self._limits.stdout_bytes,
            allow=self._limits.stdout_bytes,
            on_over=lambda: self._end("stdout"),
            on_piece=lambda piece: self._show("stdout", piece),
            # the word that the script begins now
            skip=1 if self._warm else 0,
        )
        self._source = Source(launched.fds.take("stdin"), stdin)

    async def _watched(self, look: watchdog.Look) -> None:
        # most scripts have ended before there is anything to see, and looking takes longer than handing them their input
        await asyncio.sleep(FIRST_LOOK_SECONDS)
        self._launched.hold_script()  # nsjail's gate starts it as a process of its own, after the word to go
        await watchdog.watch(look, self._usage, self._end)

    def beside(self, work: Awaitable[None]) -> None:
        """Run this beside the script; if it fails, the run is ended and its error raised by `ended`."""

        async def helped() -> None:
            try:
                await work
            except Exception as error:
                if not self._ending.done():
                    self._ending.set_exception(error)

        self._tasks.append(self._loop.create_task(helped()))

    async def _when(self, cancelled: asyncio.Event) -> None:
        await cancelled.wait()
        self._end("cancelled")

    async def ended(self) -> Ended:
        """Wait for the end, whatever brings it, end what is left, and say what happened."""
        ending = await self._ending
        self.stderr.go_on()
        wall_ms = (time.monotonic() - self._launched.started) * 1000
        if ending == "exit":
            # a stream that something still holds open is not waited for (S4): the whole namespace is ending
            await self.drain(DRAIN_SECONDS)
        self._launched.kill()
        await self._reap()
        await self.drain(DRAIN_SECONDS)
        status = self._launched.status
        exit_code = None
        if status is not None:
            status.read_now()
            exit_code = status.values.get("exit-code")
        stdout = self.stdout
        assert stdout is not None  # a run that ended was started
        if ending == "exit" and stdout.total > self._limits.stdout_bytes:
            ending = "stdout"  # the last pieces came after the script had ended
        used = self._launched.group.used() if self._launched.group is not None else cgroups.Used()
        if self._max_rss >= STAGE_BYTES:
            used = msgspec.structs.replace(used, peak_bytes=0)  # a process's own number says more than its group's
        return Ended(
            ending=ending,
            exit_code=exit_code,
            ended_by=self._launched.ended_by(exit_code),
            stdout=bytes(stdout.kept),
            stderr=bytes(self.stderr.kept),
            stdout_truncated=stdout.truncated,
            stderr_truncated=self.stderr.truncated,
            wall_ms=wall_ms,
            cpu_ms=max(self._cpu_ms, self._usage.cpu_ms, used.cpu_ms),
            max_rss_bytes=max(self._max_rss, self._usage.rss_bytes, used.peak_bytes),
            warm=self._warm,
            forked=self._launched.forked,
            started=not stdout.skip,
            monitor_code=self._launched.process.returncode if ending == "exit" else None,
            pressure=self._launched.group.pressure() if self._launched.group is not None else Pressure(),
        )

    async def drain(self, seconds: float) -> None:
        """Wait for the end of both streams, at most this long."""
        left = [sink.ended for sink in (self.stdout, self.stderr) if sink is not None and not sink.ended.is_set()]
        if not left:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for ended in left:
                    await ended.wait()

    async def discard(self) -> None:
        """End all of it, wait until it is gone, release everything; also when this task is cancelled meanwhile."""
        self._stop()
        await _undisturbed(self._release())

    async def _release(self) -> None:
        await self._reap()
        if self._launched.group is not None:
            await cgroups.finish(self._launched.group)
        self._launched.close()
        self.on_release()

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._clock is not None:
            self._clock.cancel()
        if self._source is not None:
            self._source.close()
        self._launched.kill()  # before its streams are closed: a monitor that dies of a lost stream leaves its child waiting
        for sink in (self.stdout, self.stderr):
            if sink is not None:
                sink.close()

    async def _reap(self) -> None:
        """Wait until the monitor and the namespace's init, thus all in it, are gone, and collect their usage."""
        if self._reaped:
            return
        launched = self._launched
        deadline = self._loop.time() + REAP_SECONDS
        gone = await _until(self._monitor_gone, deadline)
        if gone:
            self._collect_monitor()
        if launched.outer_fd >= 0:
            await _pidfd_gone(launched.outer_fd, deadline)
        if launched.outer_pid and not launched.forked:
            await self._collect(launched.outer_pid, deadline)
        self._loop.remove_reader(launched.monitor_fd)
        self._reaped = True

    def _collect_monitor(self) -> None:
        process = self._launched.process
        if self._launched.forked:
            self._collect_forked()
            return
        try:
            _, status, used = os.wait4(process.pid, 0)
        except ChildProcessError:  # a host that ignores SIGCHLD
            process.returncode = 0
            return
        process.returncode = os.waitstatus_to_exitcode(status)
        self._cpu_ms += (used.ru_utime + used.ru_stime) * 1000

    def _collect_forked(self) -> None:
        launched = self._launched
        launched.process.returncode = 0
        if launched.status is not None:
            launched.status.read_now()
            self._cpu_ms += launched.status.values.get("cpu-us", 0) / 1000
            self._max_rss = max(self._max_rss, launched.status.values.get("rss-kb", 0) * 1024)

    async def _collect(self, pid: int, deadline: float) -> None:
        """Reap an orphan that came to us. One that its monitor already reaped is counted there."""
        with contextlib.suppress(ChildProcessError):
            done, _, used = os.wait4(pid, os.WNOHANG)
            # its end could not be waited for without a descriptor of it
            while not done and self._launched.outer_fd < 0 and self._loop.time() < deadline:
                await asyncio.sleep(_PAUSE_SECONDS)
                done, _, used = os.wait4(pid, os.WNOHANG)
            if done:
                self._cpu_ms += (used.ru_utime + used.ru_stime) * 1000
                self._max_rss = max(self._max_rss, used.ru_maxrss * 1024)


class WallClock:
    """The deadline of a run, in time that this process was there for: what it was stopped or frozen for is not the script's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, on_over: Callable[[], None]) -> None:
        self._loop = loop
        self._left = seconds
        self._on_over = on_over
        self._looked = loop.time()
        self._timer = loop.call_later(min(seconds, CLOCK_SECONDS), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        step = min(self._left, CLOCK_SECONDS)
        self._left -= min(now - self._looked, step + LATE_SECONDS)
        self._looked = now
        # a timer may come a little before its time
        if self._left <= 0.0005:
            self._on_over()
        else:
            self._timer = self._loop.call_later(min(self._left, CLOCK_SECONDS), self._look)

    def cancel(self) -> None:
        """It is not needed any more."""
        self._timer.cancel()


async def _until(event: asyncio.Event, deadline: float) -> bool:
    if event.is_set():
        return True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            await event.wait()
    return event.is_set()


async def _pidfd_gone(fd: int, deadline: float) -> None:
    looking = select.poll()
    looking.register(fd, select.POLLIN)
    if looking.poll(0):
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(fd, gone.set)
    try:
        await _until(gone, deadline)
    finally:
        loop.remove_reader(fd)


# Turns

MOST = 64
"""Sandboxes of one loop that run at once; further runs wait their turn, first come first served. Without a bound, many calls at the same time would
run this process out of descriptors, and each would take longer to be set up than a sandbox may. Time spent waiting is not a script's: its clock
starts when it does."""
_DESCRIPTORS_EACH = 16
_DESCRIPTORS_LEFT = 128
_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def at_once() -> int:
    """How many may run at once: what this process's limit of descriptors allows, at most `MOST`."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return MOST
    return max(1, min(MOST, (allowed - _DESCRIPTORS_LEFT) // _DESCRIPTORS_EACH))


@contextlib.asynccontextmanager
async def turn(cancelled: asyncio.Event | None) -> AsyncGenerator[bool]:
    """Wait for a turn and hold it; False, at once, when `cancelled` was set while waiting."""
    gate = _gate()
    if not await _passed(gate, cancelled):
        yield False
        return
    try:
        yield True
    finally:
        gate.release()


def _gate() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    gate = _gates.get(loop)
    if gate is None:
        gate = _gates[loop] = asyncio.Semaphore(at_once())
    return gate


async def _passed(gate: asyncio.Semaphore, cancelled: asyncio.Event | None) -> bool:
    if cancelled is None or not gate.locked():
        await gate.acquire()
        return True
    passing = asyncio.ensure_future(gate.acquire())
    stopping = asyncio.ensure_future(cancelled.wait())
    passed = False
    try:
        await asyncio.wait({passing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        passed = passing.done() and not cancelled.is_set()
        return passed
    finally:
        stopping.cancel()
        if not passed:
            if passing.done() and not passing.cancelled():
                gate.release()
            passing.cancel()
