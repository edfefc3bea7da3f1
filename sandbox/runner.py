"""Running a request: probe, open, plan, execute, classify. The room's front door.

Fails closed: whatever keeps the sandbox from standing as planned ends in `unavailable` or `refused`, and nothing is
run with fewer layers instead (ruling 39).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import pwd
import random
import re
from contextlib import AsyncExitStack
from typing import get_args

import msgspec

from tamis.sandbox import classify, engine, host, probe, turns
from tamis.sandbox.backends import seccomp, unsandboxed
from tamis.sandbox.backends.choice import BACKENDS, explain
from tamis.sandbox.engine import OnOutput
from tamis.sandbox.interpreters import Interpreter, Missing, find_interpreter
from tamis.sandbox.job import LAYERS, InsideFile, Job
from tamis.sandbox.model import (
    BackendChoice,
    Probe,
    Refusal,
    RunOutcome,
    RunRequest,
    SandboxInfo,
    Unavailable,
    size,
)
from tamis.sandbox.network.egress import Budgets
from tamis.sandbox.network.handoff import LISTENER, Handoff, with_contacts
from tamis.sandbox.network.node_proxy import PRELOAD
from tamis.sandbox.paths import grants, lending
from tamis.sandbox.paths.pins import pin_script
from tamis.sandbox.paths.walk import Opened, open_absolute, open_beneath, resolve_script
from tamis.sandbox.talk import Talk
from tamis.sandbox.warm.boot import starter
from tamis.sandbox.warm.key import Warm
from tamis.sandbox.warm.key import key as warm_key

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_ENV_RESERVED = frozenset(
    (
        "PATH",
        "HOME",
        "TMPDIR",
        "GLIBC_TUNABLES",
        "NODE_OPTIONS",
        "BASH_ENV",
        "ENV",
        "IFS",
        "PYTHONSTARTUP",
        "PYTHONHOME",
    )
)
_WORD_BYTES, _COMMAND_BYTES = 100_000, 1_000_000  # Linux takes 128 KiB a string, and about 2 MiB in all
_CALL_ENV_CHARS = 2_048
_LIMIT_MOST = 1 << 53
_LIMIT_MAY_BE_NONE = frozenset(("stdin_bytes", "stdout_bytes", "stderr_bytes", "file_bytes", "open_files"))
_UID_FIRST, _UID_COUNT = 60_000, 5_000
# several daemons of root on one machine should not meet on one uid
_uids = itertools.count(random.SystemRandom().randrange(_UID_COUNT))
_writers: dict[tuple[int, int], asyncio.Lock] = {}


async def run(
    request: RunRequest,
    *,
    on_output: OnOutput | None = None,
    cancelled: asyncio.Event | None = None,
    warm: Warm | None = None,
    talk: Talk | None = None,
) -> RunOutcome:
    """Run one script in a sandbox of its own and wait for its end.

    Never raises for what the request or the script does: see `RunOutcome.kind`. `on_output` gets each piece that is
    kept, as it comes; call this on a loop whose thread outlives the run, as bubblewrap dies with it. Setting `cancelled`, or cancelling the task, ends the script and everything that it started.
    With a `talk` the program is talked to while it runs instead of being handed `stdin`; then only `stderr` is kept and shown, and
    the run takes no turn of those that end by themselves.
    """
    try:
        return await _run(request, frozenset(), on_output, cancelled, warm if talk is None else None, talk)
    finally:
        if talk is not None:
            talk.over()


async def run_without(request: RunRequest, layers: frozenset[str]) -> RunOutcome:
    """For tests only: run with some of `plan.LAYERS` left out, to see that the cases that they hold then fail."""
    unknown = layers - set(LAYERS)
    if unknown:
        raise ValueError(f"unknown layers: {sorted(unknown)}")
    return await _run(request, layers, None, None)


def next_uid() -> int:
    """A uid that no account has and no recent run used: process counts are charged to it and released late."""
    while True:
        uid = _UID_FIRST + next(_uids) % _UID_COUNT
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid


async def _run(
    request: RunRequest,
    without: frozenset[str],
    on_output: OnOutput | None,
    cancelled: asyncio.Event | None,
    warm: Warm | None = None,
    talk: Talk | None = None,
) -> RunOutcome:
    info = SandboxInfo()
    try:
        checked = await _probe(request)
        info = SandboxInfo(backend=checked.backend, version=checked.version, layers=checked.layers)
        if not checked.available:
            raise Unavailable(checked.reason, checked.remedy)
        return await _checked_run(request, without, on_output, cancelled, info, warm, talk)
    except Refusal as error:
        return RunOutcome(
            kind="refused", error_type="SecurityError", message=error.message, remedy=error.remedy, sandbox=info
        )
    except Unavailable as error:
        reason, remedy = explain(info.backend, error.reason, error.remedy)
        return RunOutcome(
            kind="unavailable", error_type="SandboxUnavailable", message=reason, remedy=remedy, sandbox=info
        )
    except OSError as error:
        return RunOutcome(
            kind="unavailable",
            error_type="SandboxUnavailable",
            message=f"the sandbox could not be set up: {error}",
            remedy="see whether this process is out of descriptors, memory or processes",
            sandbox=info,
        )


async def _probe(request: RunRequest) -> Probe:
    if request.backend not in get_args(BackendChoice):
        raise Refusal(f"there is no sandbox {request.backend!r}", "use auto, bubblewrap or nsjail")
    found = probe.cached(request.backend)
    return found if found is not None else await asyncio.to_thread(probe.probe, backend=request.backend)


def _word_bytes(word: str, what: str) -> int:
    """The size of one string that a process is started with. Raises `Refusal` for one that cannot be."""
    try:
        size = len(os.fsencode(word))
    except UnicodeEncodeError as error:
        raise Refusal(f"{what} holds characters that have no bytes (lone surrogates)") from error
    if "\0" in word:
        raise Refusal(f"{what} contains a NUL byte")
    if size > _WORD_BYTES:
        raise Refusal(f"{what} is longer than {_WORD_BYTES} bytes", "pass the data on stdin")
    return size


def _check_request(request: RunRequest) -> RunOutcome | None:
    if len(request.stdin) > request.limits.stdin_bytes:
        return RunOutcome(
            kind="limit",
            error_type="ResourceError",
            limit="stdin",
            message=f"the input has {size(len(request.stdin))}; the limit is {size(request.limits.stdin_bytes)}",
            remedy="raise sandbox.stdinBytes or send less",
        )
    for name, value in (*request.env.items(), *request.call_env.items()):
        if not _ENV_NAME.fullmatch(name):
            raise Refusal(f"the environment variable {name!r} cannot be set")
        if name in _ENV_RESERVED or name.startswith("LD_"):
            raise Refusal(f"the environment variable {name} is the sandbox's own", "use another name")
        _word_bytes(value, f"the environment variable {name}")
    if "\n" in "".join(request.call_env.values()) or sum(map(len, request.call_env.values())) > _CALL_ENV_CHARS:
        raise Refusal(f"variables of one call hold at most {_CALL_ENV_CHARS} characters in one line")
    sizes = [_word_bytes(arg, "an argument") for arg in request.args]
    if sum(sizes) + len(sizes) > _COMMAND_BYTES:
        raise Refusal("the arguments are longer than a command line can be", "pass the data on stdin")
    for field, value in msgspec.structs.asdict(request.limits).items():
        # a limit that cannot be set is none
        if not (0 < value < _LIMIT_MOST or (value == 0 and field in _LIMIT_MAY_BE_NONE)):
            raise Refusal(f"the limit {field} is {value}, which no run can be held to", "give a positive number")
    return None


async def _checked_run(
    request: RunRequest,
    without: frozenset[str],
    on_output: OnOutput | None,
    cancelled: asyncio.Event | None,
    info: SandboxInfo,
    warm: Warm | None,
    talk: Talk | None,
) -> RunOutcome:
    early = _check_request(request)
    if early is not None:
        return msgspec.structs.replace(early, sandbox=info)
    if cancelled is not None and cancelled.is_set():
        return RunOutcome(kind="cancelled", message="the run was cancelled before it began", sandbox=info)
    found = _interpreter(request)
    if isinstance(found, Missing):
        return RunOutcome(
            kind="unavailable", error_type="SandboxUnavailable", message=found.reason, remedy=found.remedy, sandbox=info
        )
    if info.backend == unsandboxed.NAME:
        if warm is not None and warm.parks:
            raise Unavailable("nothing is kept ready without a sandbox")
        ended = await unsandboxed.execute(request, found, on_output=on_output, cancelled=cancelled, talk=talk)
        return _outcome(request, ended, (), info)
    listening = find_interpreter("python", request.interpreters) if request.hosts else None
    if isinstance(listening, Missing):
        return RunOutcome(
            kind="unavailable",
            error_type="SandboxUnavailable",
            message=f"allowHosts needs a Python to open the proxy inside: {listening.reason}",
            remedy=listening.remedy,
            sandbox=info,
        )
    violations: list[str] = []
    uid = (request.uid or next_uid()) if os.geteuid() == 0 else None
    async with AsyncExitStack() as cleaning:
        counted = talk is None and (warm is None or not warm.parks)
        if counted and not await cleaning.enter_async_context(turns.turn(cancelled)):
            return RunOutcome(kind="cancelled", message="the run was cancelled before it began", sandbox=info)
        opening = grants.Opening()
        cleaning.callback(opening.close)
        folder, script, pinned = _open(request, found, opening, cleaning)
        if uid is not None:
            grants.require_readable(folder, script)
        await _lend(request, opening, uid, violations, cleaning)
        job = msgspec.structs.replace(_job(request, found, script, opening, uid, without, info.backend), files=pinned)
        opened = {name: item.fd for name, item in opening.opened.items()}
        network: Handoff | None = None
        if listening is not None:
            job = msgspec.structs.replace(job, egress=listening, listener=LISTENER, preload=PRELOAD)
            budgets = Budgets(bytes=request.network_bytes)
            network = Handoff(request.hosts, request.allow_cidrs, request.pin, budgets=budgets)
            cleaning.push_async_callback(network.close)
            opened["handoff"] = network.inside
        ready: engine.Standing | None = None
        if warm is not None:
            with open_beneath(folder, script) as file:
                key = warm_key(job, opening.opened, file, warm.generation)
            if warm.parks:
                if found.runner or not starter(found.language):
                    raise Unavailable(f"{found.path} is always started cold")
                job = msgspec.structs.replace(job, warm=starter(found.language))
                plan = BACKENDS[info.backend].build(job)
                warm.put(key, await engine.park(plan, opened=opened, limits=request.limits, seccomp=_filter()))
                return RunOutcome(kind="ok", sandbox=info)
            ready = await warm.take(key)
        ended = await engine.execute(
            lambda: BACKENDS[info.backend].build(
                msgspec.structs.replace(job, env=(*job.env, *request.call_env.items()))
            ),
            opened=opened,
            stdin=request.stdin if talk is None else talk,
            limits=request.limits,
            seccomp=_filter(),
            watched="watchdog" not in without,
            grouped="cgroup" not in without,
            on_output=on_output,
            cancelled=cancelled,
            beside=network.serve if network is not None else None,
            ready=ready,
            call_env=request.call_env,
        )
        info = msgspec.structs.replace(info, warm=ended.warm)
    outcome = _outcome(request, ended, tuple(violations), info)
    return outcome if network is None else with_contacts(outcome, network.egress)


def _open(
    request: RunRequest, interpreter: Interpreter, opening: grants.Opening, cleaning: AsyncExitStack
) -> tuple[Opened, str, tuple[InsideFile, ...]]:
    """Open all that is shown: the tool's folder, the script's path in it, and the checked copy of a pinned script."""
    folder, script = _open_tool(request, cleaning)
    pinned: tuple[InsideFile, ...] = ()
    if request.integrity:
        pinned = (pin_script(folder, script, request.integrity, opening, copied=interpreter.language == "bun"),)
    else:
        opening.add("tool", folder, "/tool", writable=False)
    grants.open_grants(request, folder, opening)
    if request.environment is not None:
        opening.add("environment", open_absolute(os.path.realpath(request.environment.path)), "/env", writable=False)
    return folder, script, pinned


async def _lend(
    request: RunRequest, opening: grants.Opening, uid: int | None, violations: list[str], cleaning: AsyncExitStack
) -> None:
    """As root, give the writable folders to the run's uid until its end; have them swept then, however it ends."""
    own = {mount.path for mount in request.write if mount.own}
    granted = [opening.opened[grant.fd] for grant in opening.grants if grant.writable]
    writable = [folder for folder in granted if folder.path not in own]
    if uid is not None:
        ownership = lending.Ownership(uid)
        for folder in sorted(writable, key=lambda item: (item.stat.st_dev, item.stat.st_ino)):
            # two runs cannot own one folder at a time
            lock = _writers.setdefault((folder.stat.st_dev, folder.stat.st_ino), asyncio.Lock())
            await cleaning.enter_async_context(lock)
            cleaning.callback(ownership.take_back)
            ownership.lend(folder)
    cleaning.callback(lambda: violations.extend(line for folder in writable for line in lending.sweep(folder)))


def _open_tool(request: RunRequest, cleaning: AsyncExitStack) -> tuple[Opened, str]:
    """The tool's folder and the script's path below it, both walked; the path is empty for a program without a script."""
    if request.program is not None and not request.script:
        folder = open_absolute(request.folder)
        cleaning.callback(folder.close)
        return folder, ""
    script = resolve_script(request.folder, request.script)
    cleaning.callback(script.close)
    return script.folder, script.path


def _interpreter(request: RunRequest) -> Interpreter | Missing:
    if request.program is not None:
        return Interpreter(request.language, request.program.command[0], request.program.binds)
    return find_interpreter(request.language, request.interpreters)


def _filter() -> bytes:
    try:
        return seccomp.filter_bytes(seccomp.supported_machine())
    except seccomp.UnsupportedMachineError as error:
        raise Unavailable(f"no system call filter is known for {error}", "run on x86_64 or aarch64") from error


def _job(
    request: RunRequest,
    interpreter: Interpreter,
    script: str,
    opening: grants.Opening,
    uid: int | None,
    without: frozenset[str],
    backend: str,
) -> Job:
    return Job(
        binary=probe.probed_binary(backend),
        machine=platform.machine(),
        layout=host.root_layout(),
        interpreter=interpreter,
        script=script,
        args=request.args,
        boot=request.boot.encode("utf-8"),
        env=tuple(request.env.items()),
        limits=request.limits,
        grants=tuple(opening.grants),
        environment=request.environment.kind if request.environment is not None else "",
        program=request.program.command if request.program is not None else (),
        uid=uid,
        setpriv=host.find_setpriv() if uid is not None else "",
        without=without,
    )


def _outcome(request: RunRequest, ended: engine.Ended, violations: tuple[str, ...], info: SandboxInfo) -> RunOutcome:
    verdict = classify.classify(
        ended.ending, ended.exit_code, ended.cpu_ms, ended.stderr, request.limits, request.language, ended.pressure
    )
    message, remedy = verdict.message, verdict.remedy
    if verdict.kind == "unavailable" and ended.exit_code is None:
        said = ended.stderr.decode("utf-8", "replace").strip()
        message, remedy = explain(info.backend, said) if said else (message, remedy)
    return RunOutcome(
        kind=verdict.kind,
        exit_code=ended.exit_code,
        signal=verdict.signal,
        limit=verdict.limit,
        stdout=ended.stdout,
        stderr=ended.stderr,
        stdout_truncated=ended.stdout_truncated,
        stderr_truncated=ended.stderr_truncated,
        wall_ms=ended.wall_ms,
        cpu_ms=ended.cpu_ms,
        max_rss_bytes=ended.max_rss_bytes,
        message=message,
        remedy=remedy,
        error_type=verdict.error_type,
        suspected=verdict.suspected,
        violations=violations,
        sandbox=info,
    )
