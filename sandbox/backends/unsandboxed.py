"""Running a script without a sandbox, for an operator who insists: a plain child with limits, and nothing that holds it.

Only the environment variable `TAMIS_UNSAFE_NO_SANDBOX=1` of the daemon itself asks for it; no setting, manifest or request
can. Root is refused, and so is any other value. What stays: no shell, a cleared environment, a folder for temporary files
that is removed, the limits of processor time, memory, files and output, one wall clock, and the end of everything that
the script started. What does not: everything else. The script has all rights of this user.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from tamis.sandbox import engine, job
from tamis.sandbox.engine import OnOutput
from tamis.sandbox.job import Fd, Plan
from tamis.sandbox.model import Interpreter, Limits, Probe, RunRequest, Unavailable
from tamis.sandbox.paths import grants
from tamis.sandbox.paths.grants import pin_script
from tamis.sandbox.paths.walk import resolve_script
from tamis.sandbox.talk import Talk

VARIABLE = "TAMIS_UNSAFE_NO_SANDBOX"
NAME = "none"


def asked() -> Probe | None:
    """What the environment variable comes to, or None when it is not set: the sandbox is used as ever."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    if value != "1":
        reason, remedy = f"{VARIABLE} is {value!r}, and only 1 is understood", f"unset {VARIABLE} to use the sandbox"
    elif os.geteuid() == 0:
        reason = f"{VARIABLE}=1 is refused for root: a script would own this machine"
        remedy = f"unset {VARIABLE}, or run as an ordinary user"
    else:
        return Probe(
            available=True,
            backend=NAME,
            memory="rlimit+watchdog",
            network="the host's",
            pids="rlimit of the user",
            notes=(f"{VARIABLE}=1: scripts run without a sandbox, with all rights of this user",),
        )
    return Probe(available=False, backend=NAME, reason=reason, remedy=remedy)


async def execute(
    request: RunRequest,
    interpreter: Interpreter,
    *,
    on_output: OnOutput | None = None,
    cancelled: asyncio.Event | None = None,
    talk: Talk | None = None,
) -> engine.Ended:
    """Run a request whose values were checked. Raises `Refusal`, and `Unavailable` for what needs a sandbox."""
    if any(mount.dest for mount in (*request.read, *request.write)):
        raise Unavailable(
            f"dependencies are only installed inside a sandbox, and {VARIABLE}=1 does without one",
            f"unset {VARIABLE}, or install them once where a sandbox is, with `tamis deps install`",
        )
    if request.headers:
        raise Unavailable(
            f"headers with a key are added by the sandbox's proxy, and {VARIABLE}=1 does without one",
            f"unset {VARIABLE}, or take the host out of policy.hosts",
        )
    async with AsyncExitStack() as cleaning:
        folder = os.path.realpath(tempfile.mkdtemp(prefix="tamis-run-"))
        cleaning.callback(shutil.rmtree, folder, ignore_errors=True)
        script = ""
        if request.script:
            resolved_script = resolve_script(request.folder, request.script)
            cleaning.callback(resolved_script.close)
            if request.integrity:
                opening = grants.Opening()
                cleaning.callback(opening.close)
                pin_script(resolved_script.folder, resolved_script.path, request.integrity, opening)
            script = f"{resolved_script.folder.path}/{resolved_script.path}"
        boot = ""
        if request.boot:
            boot = f"{folder}/boot.{'py' if interpreter.language == 'python' else 'mjs'}"
            Path(boot).write_text(request.boot, "utf-8")
        for secret in request.secrets:
            if secret.as_file:
                # the folder is this user's alone
                Path(folder, f"secret-{secret.name}").write_text(secret.value, "utf-8")
        command = _command(request, interpreter, boot, script)
        return await engine.execute(
            build(command, _environment(request, folder), request.folder, request.limits, interpreter.language),
            opened={},
            stdin=request.stdin if talk is None else talk,
            limits=request.limits,
            seccomp=b"",
            grouped=False,
            on_output=on_output,
            cancelled=cancelled,
        )


def build(
    command: tuple[str, ...],
    environment: dict[str, str],
    folder: str,
    limits: Limits,
    language: str,
) -> Plan:
    """The plan of a plain child below its keeper."""
    keeper = str(Path(__file__).with_name("keeper.py"))
    variables = b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items())
    return Plan(
        argv=(sys.executable, "-I", "-S", keeper, Fd("life"), Fd("status"), Fd("environment"), folder, *command),
        data={"environment": variables},
        reports=("status",),
        holds=("life",),
        # what this user runs already is counted with the script's
        rlimits=job.rlimits(limits, language, extra_processes=_own_processes() + 1),
        gates=1,
        bare=True,
    )


def _own_processes() -> int:
    """Processes and threads of this user, which the kernel counts together."""
    uid = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count


def _host_path(word: str, places: tuple[tuple[str, str], ...]) -> str:
    """What a path of the sandbox is on the host."""
    for host, inside in places:
        if word == inside or word.startswith(inside + "/"):
            return host + word[len(inside) :]
    return word


def _command(request: RunRequest, interpreter: Interpreter, boot: str, script: str) -> tuple[str, ...]:
    places = ((request.folder, "/tool"), *interpreter.binds)
    if request.environment is not None:
        places = ((os.path.realpath(request.environment.path), "/env"), *places)
    if request.program is not None:
        return tuple(_host_path(word, places) for word in request.program.command)
    words = (boot, script, *request.args) if boot else (script, *request.args)
    program = interpreter.path
    if interpreter.language == "python" and request.environment is not None and request.environment.kind == "python":
        program = "/env/bin/python"
    started = tuple(_host_path(word, places) for word in interpreter.command(program))
    if interpreter.language == "python":
        return (*started, "-s", "-B", *words)
    if interpreter.language == "nodejs":
        heap = max(16, request.limits.memory_bytes * 3 // 4 // job.MIB)
        return (*started, f"--max-old-space-size={heap}", *words)
    return (*started, "run", "--no-install", *words)


def _environment(request: RunRequest, folder: str) -> dict[str, str]:
    base = {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }
    if request.environment is not None:
        root = os.path.realpath(request.environment.path)
        if request.environment.kind == "python":
            base["PATH"] = f"{root}/bin:{base['PATH']}"
            base["VIRTUAL_ENV"] = root
        else:
            base["PATH"] = f"{root}/node_modules/.bin:{base['PATH']}"
            base["NODE_PATH"] = f"{root}/node_modules"
    variables = {
        f"{secret.name}_FILE" if secret.as_file else secret.name: f"{folder}/secret-{secret.name}"
        if secret.as_file
        else secret.value
        for secret in request.secrets
    }
    return {**base, **request.env, **variables}
