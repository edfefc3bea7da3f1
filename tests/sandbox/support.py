"""What the sandbox tests share: folders with a script in them, runs of requests and cases, and what is left on the host."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.sandbox import lifeline, runner
from tamis.sandbox.engine import Standing
from tamis.sandbox.limits import watchdog
from tamis.sandbox.model import Limits, RunOutcome, RunRequest
from tamis.sandbox.paths import idmapped
from tamis.sandbox.warm.key import Forks, Make, may_wait
from tests.sandbox.cases.base import DEFAULTS, SECRET, Case, Place, nothing_runs, script_name

if TYPE_CHECKING:  # the daemons that tests start import this module, and half of their start would be pytest
    import pytest

IS_ROOT = os.geteuid() == 0
AT_ONCE = 4
PATIENT = Limits(wall_ms=300_000)
"""The limits of a run that ends by itself, on a machine of any speed."""
BACKEND: Any = os.environ.get("TAMIS_TEST_BACKEND") or "auto"
"""TAMIS_TEST_BACKEND=nsjail runs every test here with nsjail."""


def tool_folder(parent: Path, source: str | bytes, name: str = "tool.py") -> str:
    folder = parent / "tool"
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(source if isinstance(source, bytes) else source.encode("utf-8"))
    return os.path.realpath(folder)


def request(folder: str, script: str = "tool.py", language: Any = "python", **more: Any) -> RunRequest:
    more.setdefault("limits", PATIENT)
    more.setdefault("backend", BACKEND)
    return RunRequest(folder=folder, script=script, language=language, **more)


def run(wanted: RunRequest, **more: Any) -> RunOutcome:
    return asyncio.run(runner.run(wanted, **more))


def run_without(wanted: RunRequest, *layers: str) -> RunOutcome:
    return asyncio.run(runner.run_without(wanted, frozenset(layers)))


def run_source(parent: Path, source: str, **more: Any) -> RunOutcome:
    return run(request(tool_folder(parent, source), **more))


class OneTemplate:
    """A template, started for the first request, and what it forks for each."""

    generation = ""

    def __init__(self, layers: frozenset[str] = frozenset()) -> None:
        self.layers = layers
        self.parks = False
        self.standing: Standing | None = None
        self.template: Forks | None = None

    async def __aenter__(self) -> OneTemplate:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.standing is not None:
            await self.standing.discard()
        if self.template is not None:
            await self.template.retire(0.001)

    async def run(self, wanted: RunRequest) -> RunOutcome:
        """The outcome of a request in a sandbox that the template forked; calls may be at once once it stands."""
        if self.template is None:
            self.parks = True
            await runner.run_without(msgspec.structs.replace(wanted, stdin=b""), self.layers, self)
            self.parks = False
        return await runner.run_without(wanted, self.layers, self)

    async def take(self, key: str) -> Standing | None:
        standing, self.standing = self.standing, None
        return standing

    async def fork(self, key: str, make: Make | None) -> Standing | None:
        if self.template is None and make is not None:
            self.template = await make()
        return await self.template.fork() if self.template is not None else None

    def put(self, key: str, standing: Standing) -> None:
        self.standing = standing


async def run_forked(wanted: RunRequest, layers: frozenset[str] = frozenset()) -> RunOutcome:
    """As `runner.run_without`, of what a template forked, where the request may have one."""
    if not may_fork(wanted):
        return await runner.run_without(wanted, layers)
    async with OneTemplate(layers) as one:
        return await one.run(wanted)


def may_fork(wanted: RunRequest) -> bool:
    return may_wait(wanted) and wanted.language == "python" and wanted.environment is None and BACKEND != "nsjail"


# Cases


@contextlib.contextmanager
def _stand_ins(place: Place) -> Generator[dict[str, tuple[str, ...]]]:
    """What `@…` in a case's arguments stands for: things of the host that the script must not reach."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
        name = f"tamis-{place.root.name}-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield {
            "@port": (str(listener.getsockname()[1]),),
            "@abstract": (name,),
            "@root": (str(place.root),),
            "@socket-buffer": (Path("/proc/sys/net/core/wmem_default").read_text().strip(),),
            "@namespaces": tuple(
                f"{kind}={os.readlink(f'/proc/self/ns/{kind}')}" for kind in os.listdir("/proc/self/ns")
            ),
        }


async def run_case(case: Case, root: Path, *without: str, forked: bool = False) -> tuple[RunOutcome, str]:
    """The outcome of a case, and what is wrong with it, if anything. `forked`: through a template, where it may have one."""
    root = Path(os.path.realpath(root))
    place = Place(root, root / "tool")
    name = script_name(case, place)
    tool_folder(root, case.source, name)
    os.environ[SECRET] = "hidden"
    with _stand_ins(place) as stand_ins:
        asked: dict[str, Any] = {"script": name, **(case.arrange(place) if case.arrange else {})}
        args = tuple(word for arg in asked.pop("args", case.args) for word in stand_ins.get(arg, (arg,)))
        folder = asked.pop("folder", str(place.folder))
        chosen = {**DEFAULTS, **case.limits}
        if without:  # a limit that is not there ends nothing
            chosen["wall_ms"] = min(chosen["wall_ms"], 4_000 if case.kind == "limit" else 15_000)
        limits = Limits(**chosen)
        wanted = request(folder, **asked, language=case.language, stdin=case.stdin, args=args, limits=limits)
        if forked:
            outcome = await run_forked(wanted, frozenset(without))
        else:
            outcome = await (runner.run_without(wanted, frozenset(without)) if without else runner.run(wanted))
    wrong = fault_of(case, outcome)
    if not wrong and case.after is not None:
        wrong = case.after(place, outcome)
        # one that was killed may need seconds to give back what it held; the others on this loop go on meanwhile
        while wrong and case.after is nothing_runs and not without:
            await asyncio.sleep(0.1)
            wrong = nothing_runs(place, outcome)
    return outcome, wrong


def fault_of(case: Case, outcome: RunOutcome) -> str:
    """How an outcome differs from the one that the case states; empty when it does not."""
    limits = case.limit if isinstance(case.limit, tuple) else (case.limit,)
    if outcome.kind != case.kind or outcome.limit not in limits or outcome.error_type != case.error:
        return f"ended as {outcome.kind}/{outcome.limit}/{outcome.error_type or '-'}"
    stdout = case.stdout.encode("utf-8") if isinstance(case.stdout, str) else case.stdout
    if stdout is not None and outcome.stdout != stdout:
        return f"wrote {outcome.stdout[:300]!r}"
    if b"BROKEN" in outcome.stdout:
        return f"got through: {outcome.stdout[:300]!r}"
    if case.stderr.encode() not in outcome.stderr:
        return f"did not write {case.stderr!r} to stderr"
    return ""


async def run_cases(
    work: Iterable[tuple[Case, Path, tuple[str, ...]]], *, forked: bool = False
) -> list[tuple[RunOutcome, str] | Exception]:
    """Runs cases, a few at a time, on one loop; one that raises does not end the others."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case, root: Path, without: tuple[str, ...]) -> tuple[RunOutcome, str] | Exception:
        async with gate:
            try:
                return await run_case(case, root, *without, forked=forked)
            except Exception as error:
                return error

    return await asyncio.gather(*(one(*row) for row in work))


Result = tuple[RunOutcome, str] | Exception


def by_area(
    chosen: list[Case], places: pytest.TempPathFactory, layers: Callable[[Case], tuple[str, ...]] = lambda _: ()
) -> Callable[[Case], Result]:
    """Returns the results of cases. The first case of an area runs all that are chosen there, a few at a time."""
    found: dict[str, Result] = {}

    def result(case: Case) -> Result:
        if case.id not in found:
            area = [one for one in chosen if one.id[0] == case.id[0]]
            work = [(one, places.mktemp(one.id.partition("-")[0]), layers(one)) for one in area]
            found.update(zip((one.id for one in area), asyncio.run(run_cases(work)), strict=True))
        return found[case.id]

    return result


def chosen_cases(request: pytest.FixtureRequest, test: str) -> list[Case]:
    """The cases of a test that this run of the suite is going to ask for."""
    import pytest

    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.originalname == test]
    cases = [item.callspec.params["case"] for item in items]
    return [case for case in cases if isinstance(case, Case)]


@contextlib.contextmanager
def few_descriptors(spare: int) -> Generator[None]:
    """While this lasts only so many more descriptors can be opened, and one. Nothing is collected meanwhile: what pytest has to say of
    what earlier tests left open, it could not say."""
    gc.disable()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # the limit is of their numbers, and those of a process that ran other tests have gaps
    limit, free = 0, 0
    while free <= spare:
        free += not os.path.lexists(f"/proc/self/fd/{limit}")
        limit += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.enable()


# What is left


def marked(mark: str) -> list[int]:
    """Processes of this machine with `mark` in their command line."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                line = Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.append(int(name))
    return found


def reap_orphans() -> None:
    """This process adopts what a killed daemon leaves; a zombie is dead, and is cleared away here."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def descriptors() -> int:
    """How many descriptors this process holds, but for what is kept for further runs, which is bounded and no leak."""
    return len(opened())


def opened() -> list[str]:
    """What each descriptor of this process leads to, but for what is kept for further runs."""
    idmapped.forget()
    found: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that listed them
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return found


def await_closed(before: list[str], spare: int = 0) -> None:
    """Waits until at most `spare` more descriptors are open than before, and prints what is open beside them meanwhile.

    A far end of the test that met a reset may stand in a circle of its exception, so those are collected.
    """
    printed: list[str] = []
    while len(now := opened()) > len(before) + spare:
        more = sorted((Counter(now) - Counter(before)).elements())
        if more != printed:
            printed = more
            print(*(_described(one) for one in more), sep="\n")
        gc.collect()
        time.sleep(0.05)


def _described(descriptor: str) -> str:
    """What a descriptor leads to; of a socket the kernel's row of it too (addresses and state, in hexadecimal)."""
    inode = descriptor.removeprefix("socket:[").removesuffix("]")
    for table in ("tcp", "tcp6", "udp", "unix") if inode != descriptor else ():
        for row in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            if inode in row.split():
                return f"{descriptor} {table}: {row.strip()}"
    return descriptor


def children() -> list[int]:
    """What this process started and still has, but for the shell that outlives it."""
    return [pid for pid in watchdog.tree(os.getpid())[1:] if pid != lifeline.watcher()]


def await_gone(mark: str = "") -> None:
    """Waits until no process has `mark` in its command line and this process has no child."""
    while (mark and marked(mark)) or children():
        time.sleep(0.02)
        reap_orphans()


def own_groups(daemon: int = 0) -> set[str]:
    """The control groups that a daemon (this process) made for its runs, by path: one that is over may not leave its own."""
    name_of = f"tamis-{daemon or os.getpid()}-"
    mine: set[str] = set()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in (controllers, "unified", ""):
            mine.add(os.path.normpath(f"/sys/fs/cgroup/{name.removeprefix('name=')}/{path}"))
    found: set[str] = set()
    for place in mine:
        for top, folders, _ in os.walk(place):
            found.update(f"{top}/{name}" for name in folders if name_of in f"{top}/{name}")
            if top.count("/") > 12:
                folders.clear()
    return found


def resident_bytes() -> int:
    return watchdog.resident_bytes(os.getpid())


def on_thread(work: Any) -> threading.Thread:
    """A started daemon thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
