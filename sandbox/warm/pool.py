"""Warm sandboxes that wait for a call: each is an ordinary one, started early, used once or not at all.

As many wait as calls come while one is started. A call takes a waiting sandbox only if everything that decides a run is the same at the moment of the call (`warm.key`);
whatever differs, has died or has spoken in the meantime is thrown away, and the call is run cold. Belongs to one event
loop, because a sandbox dies with the thread that started it. Knows neither tools nor settings.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

import msgspec

from tamis.sandbox import runner
from tamis.sandbox.engine import OnOutput, Standing
from tamis.sandbox.model import RunOutcome, RunRequest, Unavailable
from tamis.sandbox.runner import OnWait
from tamis.sandbox.warm.key import Forks, Make, may_wait, shape

WINDOW_SECONDS = 600.0
"""Two calls within this time, and a third is expected."""
BUSY_SECONDS = 1.0
"""Two calls within this time, and two sandboxes or more are kept: as many as calls come while one is started, and one more."""
PACE_CALLS = 8
"""From so many calls it is told at what pace they come."""
START_SECONDS = 0.1
"""How long a sandbox takes until it waits, before one was measured."""
SOON_SHARE, MOST_SOON_SECONDS = 0.3, 0.25
"""One that has this share of its start behind it is there sooner than a cold run, and is waited for, at most for so long."""
BYTES_EACH = 12_000_000
"""What one that waits holds, before one was looked at."""
FAILED_SECONDS = 60.0
"""For how long no sandbox is started early after one did not come to wait."""
BUSY_RUNS = max(2, os.cpu_count() or 1)
"""With so many calls under way, the processors have better to do than to make ready for further ones."""
PAUSE_SECONDS = 0.002
"""Between an answer and the start of the next sandbox, so that the answer is written first."""
LOOK_SECONDS = 5.0
MAX_SHAPES = 256
MAX_TEMPLATES = 4
RETIRE_SECONDS = 2.0
"""What runs of a template when the pool is closed has so long to end."""


class PoolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a pool: waiting sandboxes in all, seconds that one waits, bytes that all of them hold."""

    max_idle: int = 8
    idle_seconds: float = 120.0
    memory_bytes: int = 268_435_456
    eager: bool = False
    """Keep a sandbox from the first call on."""
    templates: bool = False
    """Have the sandboxes of a busy Python tool forked by a template of it."""


class PoolMetrics(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Counts since the start; `idle` and `memory_bytes` are of now (the memory as last looked at)."""

    idle: int = 0
    starting: int = 0
    hits: int = 0
    misses: int = 0
    cold: int = 0
    """Calls that may not use a warm sandbox: grants, hosts or variables of their own."""
    refills: int = 0
    failed: int = 0
    discarded: dict[str, int] = {}
    """By reason: `changed`, `crash`, `died`, `idle`, `full`, `memory`, `reload`, `shutdown`."""
    memory_bytes: int = 0
    templates: int = 0
    forks: int = 0
    """Sandboxes that templates made."""


class Held(Protocol):
    """What keeps a thing that a waiting sandbox shows from being removed."""

    def close(self) -> None:
        """It is not shown any more."""
        ...


Hold = Callable[[], Held | None]


class _Waiting:
    """One sandbox from its start until it waits, and then until it is taken or thrown away."""

    def __init__(self, shape_key: str, held: Held | None = None) -> None:
        self.shape = shape_key
        self.held = held
        self.key = ""
        self.standing: Standing | None = None
        self.claimed = False
        self.timer: asyncio.TimerHandle | None = None
        self.began = math.inf
        """When its start began; one that has to wait its turn to be started has not."""
        self.settled = asyncio.Event()
        """It waits, or it did not come to wait."""

    def let_go(self) -> None:
        """It waits no more: whoever took it holds what it shows, or nobody needs it."""
        held, self.held = self.held, None
        if held is not None:
            held.close()


class Demand:
    """The last calls of one shape, and how long a sandbox of it takes to start."""

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=PACE_CALLS)
        self.failed_at = float("-inf")
        self.start_s = START_SECONDS

    def note(self, now: float) -> None:
        """A call came."""
        self.times.append(now)

    def started(self, seconds: float) -> None:
        """A sandbox took so long until it waited."""
        self.start_s += (seconds - self.start_s) / 4

    def wanted(self, now: float, *, eager: bool) -> int:
        """How many sandboxes should wait after a call that came now."""
        if now - self.failed_at < FAILED_SECONDS:
            return 0
        if len(self.times) < 2 or now - self.times[-2] > WINDOW_SECONDS:
            return 1 if eager else 0
        if self.times[-1] - self.times[-2] >= BUSY_SECONDS:
            return 1
        lately = [at for at in self.times if self.times[-1] - at < BUSY_SECONDS]
        each = (lately[-1] - lately[0]) / (len(lately) - 1)
        # no more than the processors can make up for: calls that come at the same moment have no pace
        return max(2, min(2 * BUSY_RUNS, math.ceil(self.start_s / each) + 1)) if each > 0 else 2

    def is_soon(self, began: float, now: float) -> bool:
        """Whether one whose start began then will wait before a cold run could begin."""
        return now - began >= SOON_SHARE * self.start_s


class Pool:
    """Runs requests, warm where it can. All methods are called on one loop; `close` before it ends."""

    def __init__(self, settings: PoolSettings | None = None) -> None:
        self.settings = settings or PoolSettings()
        self._idle: OrderedDict[int, _Waiting] = OrderedDict()
        self._starting: dict[_Waiting, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._demands: OrderedDict[str, Demand] = OrderedDict()
        self._retiring: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(BUSY_RUNS)
        """To be started: more at once than there are processors are each there later."""
        self._running = 0
        self._templates: OrderedDict[str, Forks] = OrderedDict()
        self._template_timers: dict[str, asyncio.TimerHandle] = {}
        self._template_turn = asyncio.Lock()
        self._no_templates_until = float("-inf")
        self._counts: Counter[str] = Counter()
        self._discarded: Counter[str] = Counter()
        self._memory = 0
        self._watch: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def run(
        self,
        request: RunRequest,
        *,
        generation: str = "",
        hold: Hold | None = None,
        on_output: OnOutput | None = None,
        cancelled: asyncio.Event | None = None,
        on_wait: OnWait | None = None,
    ) -> RunOutcome:
        """As `runner.run`. A sandbox that was started under another `generation` is never used.

        `hold` is asked, before this returns, for each sandbox that will wait: what it gives is closed when that one does
        not wait any more.
        """
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._closed or loop is not self._loop or not may_wait(request):
            self._counts["cold"] += 1
            return await runner.run(request, on_output=on_output, cancelled=cancelled, on_wait=on_wait)
        wanted = shape(request, generation)
        demand = self._demand(wanted)
        taking = _Taking(self, wanted, generation)
        self._running += 1
        try:
            outcome = await runner.run(request, on_output=on_output, cancelled=cancelled, warm=taking, on_wait=on_wait)
        finally:
            self._running -= 1
            taking.end()
        self._counts["hits" if outcome.sandbox.warm else "misses"] += 1
        if outcome.sandbox.template and outcome.signal is not None:
            # whoever tries to guess what stands where in memory gets one try at each layout
            self._retire_shape(wanted)
            for waiting in [each for each in self._idle.values() if each.shape == wanted and not each.claimed]:
                self._discard(waiting, "crash")
        if outcome.kind not in ("refused", "unavailable"):
            self._refill(request, wanted, generation, demand, hold)
        return outcome

    def metrics(self) -> PoolMetrics:
        """What the pool holds and did."""
        return PoolMetrics(
            idle=len(self._idle),
            starting=len(self._starting),
            hits=self._counts["hits"],
            misses=self._counts["misses"],
            cold=self._counts["cold"],
            refills=self._counts["refills"],
            failed=self._counts["failed"],
            discarded=dict(self._discarded),
            memory_bytes=self._memory if self._idle or self._templates else 0,
            templates=len(self._templates),
            forks=self._counts["forks"],
        )

    async def settle(self) -> None:
        """Wait until no sandbox is being started or ended."""
        while left := [*self._starting.values(), *self._ending]:
            await asyncio.wait(left)
            await asyncio.sleep(0)

    def reset(self, reason: str = "reload") -> None:
        """Throw away everything that waits or is being started; calls that run are not disturbed."""
        for waiting in list(self._idle.values()):
            self._discard(waiting, reason)
        for task in self._starting.values():
            task.cancel()
        for key in list(self._templates):
            self._retire(key)
        self._demands.clear()

    async def close(self) -> None:
        """As `reset`, for good, and wait until nothing of it is left."""
        self._closed = True
        self.reset("shutdown")
        if self._watch is not None:
            self._watch.cancel()
        while left := [*self._starting.values(), *self._ending]:
            await asyncio.wait(left)
        if self._retiring:
            # what still runs of a template has a moment; then it ends with it
            await asyncio.wait(self._retiring, timeout=RETIRE_SECONDS)
            for task in self._retiring:
                task.cancel()
        if self._retiring:
            await asyncio.wait(self._retiring)

    # From here on: what is kept.

    def _demand(self, wanted: str) -> Demand:
        demand = self._demands.setdefault(wanted, Demand())
        self._demands.move_to_end(wanted)
        while len(self._demands) > MAX_SHAPES:
            self._demands.popitem(last=False)
        demand.note(time.monotonic())
        return demand

    def claim(self, wanted: str) -> _Waiting | None:
        """The oldest waiting sandbox of a shape that nobody else will take, or one that will wait soon."""
        now, demand = time.monotonic(), self._demands.get(wanted)
        for waiting in (*self._idle.values(), *self._starting):
            if waiting.shape != wanted or waiting.claimed:
                continue
            if waiting.standing is not None or (demand is not None and demand.is_soon(waiting.began, now)):
                waiting.claimed = True
                return waiting
        return None

    async def take(self, waiting: _Waiting, key: str) -> Standing | None:
        """The sandbox that was claimed, once it waits; None when it does not fit after all."""
        if not waiting.settled.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(MOST_SOON_SECONDS):
                    await waiting.settled.wait()
        standing = waiting.standing
        if standing is None or not waiting.settled.is_set():
            self.release(waiting)
            return None
        if waiting.key != key:
            self._discard(waiting, "changed")
        elif not standing.waits:
            self._discard(waiting, "died")
        else:
            self._forget(waiting)
            waiting.let_go()
            return standing
        return None

    async def fork(self, key: str, make: Make | None, wanted: str) -> Standing | None:
        """A sandbox of a template of this key, made where there is none; None where there may be none, or it failed."""
        if not self.settings.templates or self._closed:
            return None
        try:
            template = self._fitting(key)
            if template is None and make is not None:
                template = await self._made(key, make, wanted)
            if template is None:
                return None
            standing = await template.fork()
        except (Unavailable, OSError):
            # no worse than without: the call is run as it would have been
            self._no_templates_until = time.monotonic() + FAILED_SECONDS
            self._counts["failed"] += 1
            self._retire(key)
            return None
        self._counts["forks"] += 1
        return standing

    def _fitting(self, key: str) -> Forks | None:
        template = self._templates.get(key)
        if template is None or not template.fits:
            self._retire(key)
            return None
        self._templates.move_to_end(key)
        self._template_timers.pop(key).cancel()
        self._time(key)
        return template

    def _time(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        self._template_timers[key] = loop.call_later(self.settings.idle_seconds, self._retire, key)

    async def _made(self, key: str, make: Make, wanted: str) -> Forks | None:
        async with self._template_turn:
            template = self._fitting(key)
            if template is not None or time.monotonic() < self._no_templates_until:
                return template
            template = await make()
            template.shape = wanted
            if self._closed:
                await template.retire(RETIRE_SECONDS)
                return None
            # an older one of the same shape is of a script that has changed
            self._retire_shape(wanted)
            self._templates[key] = template
            self._time(key)
            while len(self._templates) > MAX_TEMPLATES:
                self._retire(next(iter(self._templates)))
            return template

    def _retire_shape(self, wanted: str) -> None:
        for key, template in list(self._templates.items()):
            if template.shape == wanted:
                self._retire(key)

    def _retire(self, key: str) -> None:
        """Use a template no more. What it forked and still waits or runs goes on."""
        template = self._templates.pop(key, None)
        if template is None:
            return
        self._template_timers.pop(key).cancel()
        task = asyncio.get_running_loop().create_task(template.retire())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    def release(self, waiting: _Waiting) -> None:
        """The run that claimed it ended before it asked: another may have it."""
        waiting.claimed = False

    def _forget(self, waiting: _Waiting) -> None:
        self._idle.pop(id(waiting), None)
        waiting.standing = None
        if waiting.timer is not None:
            waiting.timer.cancel()

    def _discard(self, waiting: _Waiting, reason: str) -> None:
        standing = waiting.standing
        if standing is None:
            return
        self._forget(waiting)
        self._discarded[reason] += 1
        task = asyncio.get_running_loop().create_task(standing.discard())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        held, waiting.held = waiting.held, None
        if held is not None:
            task.add_done_callback(lambda _: held.close())

    def _refill(
        self, request: RunRequest, wanted: str, generation: str, demand: Demand, hold: Hold | None = None
    ) -> None:
        now = time.monotonic()
        if self._closed or (self._running >= BUSY_RUNS and not self._wants_template(wanted, request, now)):
            return
        there = [*self._idle.values(), *self._starting]
        have = sum(waiting.shape == wanted and not waiting.claimed for waiting in there)
        each = self._memory / len(self._idle) if self._memory and self._idle else BYTES_EACH
        room = min(self.settings.max_idle, int(self.settings.memory_bytes / each)) - len(there)
        missing = demand.wanted(now, eager=self.settings.eager) - have
        if self._running >= BUSY_RUNS:
            missing = min(missing, 1)  # for the sake of its template
        # the first one of a tool pushes out the longest unused
        for _ in range(min(missing, max(room, 0 if have else 1))):
            try:
                waiting = _Waiting(wanted, hold() if hold is not None else None)
            except OSError:  # what it would show cannot be held: nothing is started early
                return
            task = asyncio.get_running_loop().create_task(self._start(request, waiting, generation, demand))
            self._starting[waiting] = task
            # also when it is cancelled before it began
            task.add_done_callback(lambda _, waiting=waiting: self._started(waiting))

    def _wants_template(self, wanted: str, request: RunRequest, now: float) -> bool:
        """Whether a template is worth making even now: with one, calls take less of the processors."""
        if not self.settings.templates or request.language != "python" or request.environment is not None:
            return False
        if now < self._no_templates_until or any(waiting.shape == wanted for waiting in self._starting):
            return False
        return not any(template.shape == wanted and template.fits for template in self._templates.values())

    def _started(self, waiting: _Waiting) -> None:
        self._starting.pop(waiting, None)
        waiting.settled.set()
        if id(waiting) not in self._idle:
            waiting.let_go()

    async def _start(self, request: RunRequest, waiting: _Waiting, generation: str, demand: Demand) -> None:
        parking = _Parking(self, waiting, generation)
        try:
            await asyncio.sleep(PAUSE_SECONDS)
            async with self._turns:
                waiting.began = time.monotonic()
                outcome = await runner.run(msgspec.structs.replace(request, stdin=b""), warm=parking)
        except BaseException:
            if waiting.standing is not None:
                await waiting.standing.discard()
                waiting.standing = None
            raise
        standing = waiting.standing
        if outcome.kind != "ok" or standing is None:
            self._counts["failed"] += 1
            demand.failed_at = time.monotonic()
            return
        self._counts["refills"] += 1
        demand.started(time.monotonic() - waiting.began)
        if self._closed:
            self._discard(waiting, "shutdown")
            return
        loop = asyncio.get_running_loop()
        self._idle[id(waiting)] = waiting
        waiting.settled.set()
        standing.on_end(lambda: self._discard(waiting, "died"))
        waiting.timer = loop.call_later(self.settings.idle_seconds, self._discard, waiting, "idle")
        self._shrink(self.settings.max_idle, "full")
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._look())

    def _shrink(self, most: int, reason: str) -> None:
        """Throw away the longest waiting until at most this many are left."""
        for waiting in list(self._idle.values()):
            if len(self._idle) <= most:
                return
            if not waiting.claimed:
                self._discard(waiting, reason)

    async def _look(self) -> None:
        """Keep the memory of all that wait within its bound."""
        while self._idle or self._templates:
            sizes = [waiting.standing.memory_bytes() for waiting in self._idle.values() if waiting.standing is not None]
            self._memory = sum(sizes) + sum(template.memory_bytes() for template in self._templates.values())
            count = len(self._idle)
            if self._memory > self.settings.memory_bytes:
                self._shrink(count - 1, "memory")
            if len(self._idle) == count:
                await asyncio.sleep(LOOK_SECONDS)


class _Taking:
    """A run that would take a waiting sandbox."""

    parks = False

    def __init__(self, pool: Pool, wanted: str, generation: str) -> None:
        self.generation = generation
        self._pool = pool
        self._wanted = wanted
        self._claimed = pool.claim(wanted)

    async def take(self, key: str) -> Standing | None:
        claimed, self._claimed = self._claimed, None
        return await self._pool.take(claimed, key) if claimed is not None else None

    async def fork(self, key: str, make: Make | None) -> Standing | None:
        return await self._pool.fork(key, make, self._wanted)

    def put(self, key: str, standing: Standing) -> None:
        raise AssertionError("this run does not park")

    def end(self) -> None:
        """The run ended before it asked."""
        if self._claimed is not None:
            self._pool.release(self._claimed)


class _Parking:
    """A start that leaves its sandbox waiting."""

    parks = True

    def __init__(self, pool: Pool, waiting: _Waiting, generation: str) -> None:
        self.generation = generation
        self._pool = pool
        self._waiting = waiting

    async def take(self, key: str) -> Standing | None:
        return None

    async def fork(self, key: str, make: Make | None) -> Standing | None:
        return await self._pool.fork(key, make, self._waiting.shape)

    def put(self, key: str, standing: Standing) -> None:
        self._waiting.key, self._waiting.standing = key, standing


@contextlib.asynccontextmanager
async def opened_pool(settings: PoolSettings | None = None) -> AsyncGenerator[Pool]:
    """A pool that is closed at the end."""
    pool = Pool(settings)
    try:
        yield pool
    finally:
        await pool.close()
