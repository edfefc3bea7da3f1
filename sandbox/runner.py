"""Running a request: probe, open, plan, execute, classify. The room's front door.

Fails closed: whatever keeps the sandbox from standing as planned ends in `unavailable` or `refused`, and nothing is
run with fewer layers instead (ruling 39).
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import get_args

import msgspec

from tamis.sandbox import classify, engine, host, probe, questions, template, uids
from tamis.sandbox.backends import seccomp, unsandboxed
from tamis.sandbox.backends.choice import BACKENDS, BUBBLEWRAP, explain, is_lack
from tamis.sandbox.engine import OnOutput
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.job import LAYERS, SECRETS_FOLDER, Hidden, InsideFile, Job
from tamis.sandbox.model import (
    BackendChoice,
    Interpreter,
    PathRefused,
    Probe,
    Refusal,
    RunOutcome,
    RunRequest,
    SandboxInfo,
    Unavailable,
    size,
)
from tamis.sandbox.network.egress import Budgets
from tamis.sandbox.network.egress_hosts import check_header
from tamis.sandbox.network.handoff import LISTENER, Handoff, with_contacts
from tamis.sandbox.network.node_proxy import PRELOAD
from tamis.sandbox.paths import access, grants, lending, never
from tamis.sandbox.paths.grants import pin_script
from tamis.sandbox.paths.never import hidden_in
from tamis.sandbox.paths.walk import Opened, open_absolute, resolve_script
from tamis.sandbox.talk import Talk
from tamis.sandbox.warm.boot import compiled, compiling, starter
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
OnWait = Callable[[str], None]
_PAUSES = (0.05, 0.25)
"""Before a run that could not be started for want of something is tried again: as root, with another uid."""


async def run(
    request: RunRequest,
    *,
    on_output: OnOutput | None = None,
    cancelled: asyncio.Event | None = None,
    warm: Warm | None = None,
    talk: Talk | None = None,
    on_wait: OnWait | None = None,
) -> RunOutcome:
    """Run one script in a sandbox of its own and wait for its end.

    Never raises for what the request or the script does: see `RunOutcome.kind`. `on_output` gets each piece that is
    kept, as it comes; call this on a loop whose thread outlives the run, as bubblewrap dies with it. Setting `cancelled`, or cancelling the task, ends the script and everything that it started.
    `on_wait` is told, in a sentence, of a folder that another run has; waiting for one counts into the wall time.
    With a `talk` the program is talked to while it runs instead of being handed `stdin`; then only `stderr` is kept and shown, and
    the run takes no turn of those that end by themselves.
    """
    try:
        return await _run(request, frozenset(), on_output, cancelled, warm if talk is None else None, talk, on_wait)
    finally:
        if talk is not None:
            talk.over()


async def run_without(request: RunRequest, layers: frozenset[str], warm: Warm | None = None) -> RunOutcome:
    """For tests only: run with some of `plan.LAYERS` left out, to see that the cases that they hold then fail."""
    unknown = layers - set(LAYERS)
    if unknown:
        raise ValueError(f"unknown layers: {sorted(unknown)}")
    return await _run(request, layers, None, None, warm)


async def _run(
    request: RunRequest,
    without: frozenset[str],
    on_output: OnOutput | None,
    cancelled: asyncio.Event | None,
    warm: Warm | None = None,
    talk: Talk | None = None,
    on_wait: OnWait | None = None,
) -> RunOutcome:
    info = SandboxInfo()
    began = asyncio.Event()
    try:
        checked = await _probe(request)
        info = SandboxInfo(backend=checked.backend, version=checked.version, layers=checked.layers)
        if not checked.available:
            raise Unavailable(checked.reason, checked.remedy, passing=checked.passing)
        for pause in (*_PAUSES, None):
            try:
                return await _checked_run(request, without, on_output, cancelled, info, warm, talk, on_wait, began)
            except (Unavailable, OSError) as error:
                if pause is None or began.is_set() or not is_lack(error):
                    raise
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")
    except Refusal as error:
        return RunOutcome(
            kind="refused", error_type="SecurityError", message=error.message, remedy=error.remedy, sandbox=info
        )
    except access.NotWaited as error:
        return _not_waited(request, error, info)
    except Unavailable as error:
        reason, remedy = explain(info.backend, error.reason, error.remedy)
        return _unavailable(reason, remedy, info, passing=is_lack(error) and not began.is_set())
    except OSError as error:
        reason, remedy = f"the sandbox could not be set up: {error}", ""
        if is_lack(error):
            reason, remedy = explain(info.backend, reason)
        remedy = remedy or "see whether this process is out of descriptors, memory or processes"
        return _unavailable(reason, remedy, info, passing=is_lack(error) and not began.is_set())


def _unavailable(reason: str, remedy: str, info: SandboxInfo, *, passing: bool) -> RunOutcome:
    if passing:
        probe.note_lack(reason, remedy)
    return RunOutcome(
        kind="unavailable",
        error_type="ResourceError" if passing else "SandboxUnavailable",
        message=reason,
        remedy=remedy,
        sandbox=info,
    )


def _not_waited(request: RunRequest, error: access.NotWaited, info: SandboxInfo) -> RunOutcome:
    if error.cancelled:
        return _cancelled_early(info)
    return RunOutcome(
        kind="timeout",
        error_type="TimeoutError",
        limit="wall",
        message=f"{error.path} was another run's for all of the {request.limits.wall_ms} ms, so nothing was run",
        remedy="raise the time limit, or run one tool at a time in that folder",
        sandbox=info,
    )


async def _probe(request: RunRequest) -> Probe:
    if request.backend not in get_args(BackendChoice):
        raise Refusal(f"there is no sandbox {request.backend!r}", "use auto, bubblewrap or nsjail")
    cached = probe.cached(request.backend)
    return cached if cached is not None else await asyncio.to_thread(probe.probe, backend=request.backend)


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
    secrets = [(secret.name, "" if secret.as_file else secret.value) for secret in request.secrets]
    for name, value in (*request.env.items(), *request.call_env.items(), *secrets):
        if not _ENV_NAME.fullmatch(name):
            raise Refusal(f"the environment variable {name!r} cannot be set")
        if name in _ENV_RESERVED or name.startswith("LD_"):
            raise Refusal(f"the environment variable {name} is the sandbox's own", "use another name")
        _word_bytes(value, f"the environment variable {name}")
    for header in request.headers:
        check_header(header)
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
    on_wait: OnWait | None,
    began: asyncio.Event,
) -> RunOutcome:
    """`began` is set before anything of the script can run: from then on nothing may be tried again."""
    early = _check_request(request)
    if early is not None:
        return msgspec.structs.replace(early, sandbox=info)
    if cancelled is not None and cancelled.is_set():
        return _cancelled_early(info)
    interpreter = _interpreter(request)
    if isinstance(interpreter, Missing):
        return _missing(interpreter, info)
    parks = warm is not None and warm.parks
    if info.backend == unsandboxed.NAME:
        if parks:
            raise Unavailable("nothing is kept ready without a sandbox")
        began.set()
        ended = await unsandboxed.execute(request, interpreter, on_output=on_output, cancelled=cancelled, talk=talk)
        return _outcome(request, ended, (), info)
    listening = find_interpreter("python", request.interpreters) if request.hosts else None
    if isinstance(listening, Missing):
        return _missing(listening, info, "allowHosts needs a Python to open the proxy inside: ")
    for host_path, _ in (*interpreter.binds, *(listening.binds if listening is not None else ())):
        never.require_shown(host_path)
    violations: list[str] = []
    async with AsyncExitStack() as cleaning:
        if talk is None and not parks and not await cleaning.enter_async_context(engine.turn(cancelled)):
            return _cancelled_early(info)
        opening = grants.Opening()
        cleaning.callback(opening.close)
        folder, file, pinned, hidden = _open(request, interpreter, opening, cleaning)
        script = file.path if file is not None else ""
        reserved = uids.reserve() if os.geteuid() == 0 and request.uid is None else None
        if reserved is not None:
            cleaning.callback(reserved.close)
        uid = request.uid if reserved is None else reserved.uid
        waiting = access.Waiting(request.limits.wall_ms, cancelled, on_wait)
        view: tuple[str, ...] = ()
        limits = request.limits
        if os.geteuid() == 0 and uid is not None:
            view = await access.give(_needed(request, folder, script, opening), uid, waiting, violations, cleaning)
            limits = msgspec.structs.replace(limits, wall_ms=max(1, limits.wall_ms - waiting.ms))
        _sweep_at_end(request, opening, violations, cleaning)
        job = _job(request, interpreter, script, opening, uid, without, info.backend)
        job = msgspec.structs.replace(job, files=pinned, hidden=hidden, view=view)
        opened = {name: item.fd for name, item in opening.opened.items()}
        network = _connect(request, cleaning) if listening is not None else None
        if network is not None:
            job = msgspec.structs.replace(job, egress=listening, listener=LISTENER, preload=PRELOAD)
            opened["handoff"] = network.inside
        ready: engine.Standing | None = None
        if warm is not None:
            key = _warm_key(job, opening, file, warm)
            if warm.parks:
                warm.put(key, await _park(request, interpreter, job, opened, info, warm, key, reserved))
                return RunOutcome(kind="ok", sandbox=info)
            ready = await warm.take(key) or await warm.fork(key, None)
        ended = await engine.execute(
            lambda: BACKENDS[info.backend].build(
                _with_secrets(msgspec.structs.replace(job, env=(*job.env, *request.call_env.items())), request)
            ),
            opened=opened,
            stdin=request.stdin if talk is None else talk,
            limits=limits,
            seccomp=_filter(),
            watched="watchdog" not in without,
            grouped="cgroup" not in without,
            on_output=on_output,
            cancelled=cancelled,
            beside=network.serve if network is not None else None,
            ready=ready,
            call_env=request.call_env,
            on_go=began.set,
        )
        info = msgspec.structs.replace(info, warm=ended.warm, template=ended.forked)
    outcome = _outcome(request, ended, tuple(violations), info)
    return outcome if network is None else with_contacts(outcome, network.egress)


def _cancelled_early(info: SandboxInfo) -> RunOutcome:
    return RunOutcome(kind="cancelled", message="the run was cancelled before it began", sandbox=info)


def _missing(missing: Missing, info: SandboxInfo, lead: str = "") -> RunOutcome:
    """The outcome of a run without its interpreter. Raises ``Unavailable`` for a lack that passes."""
    if missing.passing:
        raise Unavailable(missing.reason, missing.remedy, passing=True)
    return RunOutcome(
        kind="unavailable",
        error_type="SandboxUnavailable",
        message=f"{lead}{missing.reason}",
        remedy=missing.remedy,
        sandbox=info,
    )


def _connect(request: RunRequest, cleaning: AsyncExitStack) -> Handoff:
    """The private network's way out, closed with the run."""
    budgets = Budgets(bytes=request.network_bytes)
    network = Handoff(request.hosts, request.allow_cidrs, request.pin, budgets=budgets, headers=request.headers)
    cleaning.push_async_callback(network.close)
    return network


def _warm_key(job: Job, opening: grants.Opening, file: Opened | None, warm: Warm) -> str:
    """What a waiting sandbox and a call must have in common."""
    if file is None:
        raise Unavailable("a program without a script is always started cold")
    return warm_key(job, opening.opened, os.fstat(file.fd), warm.generation)


async def _park(
    request: RunRequest,
    interpreter: Interpreter,
    job: Job,
    opened: dict[str, int],
    info: SandboxInfo,
    warm: Warm,
    key: str,
    reserved: uids.Reserved | None,
) -> engine.Standing:
    """A sandbox that waits for one call of the same job, made by the tool's template where there may be one."""
    if interpreter.runner or not starter(interpreter.language):
        raise Unavailable(f"{interpreter.path} is always started cold")
    if interpreter.language == "python" and not job.environment and info.backend == BUBBLEWRAP.name:

        async def make() -> template.Template:
            started = await template.start(job, opened, request.limits)
            if reserved is not None:
                started.keep(reserved.keep())
            return started

        forked = await warm.fork(key, make)
        if forked is not None:
            return forked
    if interpreter.language == "python" and not job.environment:
        # an environment's interpreter need not be the same, and runs code of packages before the starter
        is_gate = info.backend == BUBBLEWRAP.name
        # remembered, so that no loop waits for it twice
        answer = await asyncio.to_thread(questions.ask, interpreter, compiling(interpreter.path, is_gate=is_gate))
        job = msgspec.structs.replace(job, warm=compiled(answer, is_gate=is_gate), is_gate=is_gate)
    else:
        job = msgspec.structs.replace(job, warm=starter(interpreter.language))
    plan = BACKENDS[info.backend].build(job)
    standing = await engine.park(plan, opened=opened, limits=request.limits, seccomp=_filter())
    if reserved is not None:
        standing.on_release = reserved.keep()
    return standing


def _with_secrets(job: Job, request: RunRequest) -> Job:
    """A job with its secrets, made where it is started: what a waiting sandbox is looked for by holds none."""
    if not request.secrets:
        return job
    variables = tuple(
        (f"{secret.name}_FILE", f"{SECRETS_FOLDER}/{secret.name}") if secret.as_file else (secret.name, secret.value)
        for secret in request.secrets
    )
    files = tuple(
        InsideFile(f"secret-{secret.name}", f"{SECRETS_FOLDER}/{secret.name}", secret.value.encode("utf-8"))
        for secret in request.secrets
        if secret.as_file
    )
    return msgspec.structs.replace(job, env=(*job.env, *variables), files=(*job.files, *files))


def _open(
    request: RunRequest, interpreter: Interpreter, opening: grants.Opening, cleaning: AsyncExitStack
) -> tuple[Opened, Opened | None, tuple[InsideFile, ...], tuple[Hidden, ...]]:
    """Open all that is shown: the tool's folder, the script in it, the checked copy of a pinned script, and what of the
    folder is masked."""
    folder, file = _open_tool(request, cleaning)
    # a program of the daemon's own, such as an installer, works in the daemon's own folders
    own = request.program is not None and not request.script
    never.require_tool_folder(request.folder, real=folder.place(), own=own)
    hidden = () if own else hidden_in(folder, is_project=_is_at(request.project, folder))
    pinned: tuple[InsideFile, ...] = ()
    if request.integrity:
        pinned = (
            pin_script(
                folder,
                file.path if file is not None else "",
                request.integrity,
                opening,
                frozenset(entry.name for entry in hidden),
                copied=interpreter.language == "bun",
            ),
        )
        hidden = ()
    else:
        opening.add("tool", folder, "/tool", writable=False)
    grants.open_grants(request, folder, opening)
    if request.environment is not None:
        never.require_shown(request.environment.path, own=True)
        opening.add("environment", open_absolute(os.path.realpath(request.environment.path)), "/env", writable=False)
    for grant in opening.grants:
        top = grant.dest.removeprefix("/tool/").partition("/")[0]
        if grant.dest.startswith("/tool/") and any(entry.name == top for entry in hidden):
            raise PathRefused(f"{grant.dest} is hidden from the tools of a project's root", "move it, or the tool")
    return folder, file, pinned, hidden


def _is_at(path: str, folder: Opened) -> bool:
    """Whether a path leads to this very folder."""
    if not path:
        return False
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        return False
    return (info.st_dev, info.st_ino) == (folder.stat.st_dev, folder.stat.st_ino)


def _own(request: RunRequest) -> set[str]:
    return {mount.path for mount in request.write if mount.own}


def _needed(request: RunRequest, folder: Opened, script: str, opening: grants.Opening) -> list[access.Needed]:
    """What the run's uid must write, and what is closed to it. Raises `PathRefused` for a script that its folder's owner
    cannot read either."""
    fault = grants.closed_to(folder, script)
    owner = (folder.stat.st_uid, folder.stat.st_gid)
    if fault is not None and not request.integrity and (other := grants.closed_to(folder, script, owner)) is not None:
        raise other
    own = _own(request)
    needed: list[access.Needed] = []
    for grant in opening.grants:
        opened = opening.opened[grant.fd]
        # what stands beside a pinned script is shown as the folder would be
        beside = fault is None and grant.fd.startswith("beside")
        if grant.writable:
            if opened.path not in own:
                needed.append(access.Needed(opened, writable=True))
        elif grant.dest == "/tool":
            if fault is not None:
                needed.append(access.Needed(opened, refusal=fault))
        elif grant.fd != "environment" and not beside and grants.closed_to(opened, "") is not None:
            needed.append(access.Needed(opened))
    return needed


def _sweep_at_end(
    request: RunRequest, opening: grants.Opening, violations: list[str], cleaning: AsyncExitStack
) -> None:
    """Have the writable folders looked through and put in order when the run has ended, however it ends."""
    own = _own(request)
    granted = [opening.opened[grant.fd] for grant in opening.grants if grant.writable]
    writable = [folder for folder in granted if folder.path not in own]
    if not writable:
        return
    since = lending.file_time(chowned=os.geteuid() == 0)
    cleaning.callback(lambda: violations.extend(line for folder in writable for line in lending.sweep(folder, since)))


def _open_tool(request: RunRequest, cleaning: AsyncExitStack) -> tuple[Opened, Opened | None]:
    """The tool's folder and the script below it, both walked; None for a program without a script."""
    if request.program is not None and not request.script:
        folder = open_absolute(request.folder)
        cleaning.callback(folder.close)
        return folder, None
    resolved_script = resolve_script(request.folder, request.script)
    cleaning.callback(resolved_script.close)
    return resolved_script.folder, resolved_script.script


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
        ended.ending,
        ended.exit_code,
        ended.cpu_ms,
        ended.stderr,
        request.limits,
        request.language,
        ended.pressure,
        ended.ended_by,
        ended.monitor_code,
    )
    message, remedy = verdict.message, verdict.remedy
    if verdict.kind == "unavailable" and ended.exit_code is None:
        text = ended.stderr.decode("utf-8", "replace").strip()
        message, remedy = explain(info.backend, text) if text else (message, remedy)
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
