"""One sandboxed run of a tool whose call was let through: limits, grants and program to the sandbox, its outcome to the result.

Must not decide whether a call may run.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.sandbox import model as sandbox
from tamis.sandbox.interpreters import Interpreter, find_interpreter
from tamis.server.runtime.calls.failures import failure
from tamis.server.runtime.calls.model import CallRequest, Stopped, Surroundings
from tamis.server.runtime.records.masking import MaskedStreams
from tamis.server.runtime.records.trail import Trail
from tamis.server.runtime.registry.registry import Tool
from tamis.server.runtime.rights.folders import make_below
from tamis.server.runtime.rights.path_grants import inside
from tamis.server.runtime.rights.permissions import Grant
from tamis.server.runtime.scripts.dependencies import prepared
from tamis.server.runtime.scripts.entry_points import boot_program
from tamis.server.runtime.scripts.integrity import pinned_hash
from tamis.server.runtime.scripts.interpreters import built_in, custom_program, interpreters_of, missing_for
from tamis.server.runtime.scripts.judge import judge, note_outcome
from tamis.server.runtime.scripts.output import input_bytes, shown_text
from tamis.server.runtime.scripts.service import ScriptTarget, is_script_service, mirror, script_target
from tamis.server.runtime.settings.config import Settings

MAX_TOLD_LINES = 20
"""So many lines of a script's output stand in the daemon's own log."""


def limits_of(settings: Settings, manifest: Manifest, timeout_ms: int | None) -> sandbox.Limits:
    """The operator's limits, lowered by the manifest and the request; nothing raises them."""
    operator = settings.sandbox
    values = {field: getattr(operator, field) for field in sandbox.Limits.__struct_fields__}
    execution = manifest.execution
    for field in msgspec.structs.fields(operator):
        asked = execution.limits.get(field.encode_name)
        if asked is not None and field.name in values:
            values[field.name] = min(values[field.name], asked)
    if execution.timeout_ms is not None:
        values["wall_ms"] = min(values["wall_ms"], execution.timeout_ms)
    if timeout_ms is not None:
        values["wall_ms"] = min(values["wall_ms"], timeout_ms)
    return sandbox.Limits(**values)


async def run_tool(
    request: CallRequest,
    tool: Tool,
    target: ScriptTarget,
    rights: Grant,
    around: Surroundings,
    trail: Trail,
    result: ExecutionResult,
) -> None:
    """Runs the tool's script once and judges it into ``result``. Raises ``Stopped`` when it is not started."""
    # Loaded on the first run only: reading and listing need no sandbox.
    from tamis.sandbox.runner import run

    handler = target.handler
    trail.step(1, f"the script path '{handler.script_path}' is checked against the tool's folder")
    trail.step(2, f"the script is {target.folder}/{handler.script_path}")
    trail.step(3, f"the environment of {handler.language} is looked for")
    if missing := missing_for(handler, around.settings):
        raise Stopped("error", failure("DependencyError", missing))
    asked = [ms for ms in (request.timeout_ms, around.agent.timeout_ms, target.timeout_ms) if ms is not None]
    limits = limits_of(around.settings, tool.manifest, min(asked, default=None))
    secrets = trail.secrets
    on_output = around.on_output

    def show(stream: str, text: str) -> None:
        if on_output is not None:
            on_output(request.call_id, stream, shown_text(text))

    streams = MaskedStreams(secrets, show)

    with await prepared(request, tool, target, around, trail) as dependencies:
        warming = around.warming
        runs = run if warming is None else partial(warming.run, tool=tool, hold=dependencies.hold)
        writable = writable_folders(rights, tool, target)
        command = _command(handler, around.settings, dependencies.environment)
        trail.step(4, f"the command is {command}")
        trail.note(
            "run.started",
            attempt=result.attempts,
            command=command,
            folder=target.folder,
            read=rights.read,
            write=writable,
            hosts=rights.hosts,
            limits={"wallMs": limits.wall_ms, "cpuSeconds": limits.cpu_seconds, "memoryBytes": limits.memory_bytes},
        )
        trail.step(5, f"the script is started with {limits.wall_ms} ms to run")
        outcome = await runs(
            sandbox.RunRequest(
                folder=target.folder,
                script=handler.script_path,
                language=built_in(handler.language),
                args=(handler.entry_point,) if handler.entry_point else (),
                boot=boot_program(handler.language) if handler.entry_point else "",
                stdin=input_bytes(target.stdin),
                limits=limits,
                read=tuple(sandbox.Mount(path) for path in rights.read),
                write=tuple(sandbox.Mount(path) for path in writable),
                hosts=rights.hosts,
                allow_cidrs=around.settings.policy.allow_cidrs,
                pin=tuple(around.settings.policy.pin.items()),
                interpreters=interpreters_of(around.settings),
                backend=around.settings.sandbox.backend,
                program=custom_program(handler, around.settings),
                integrity=pinned_hash(tool.manifest),
                environment=dependencies.environment,
                call_env={} if around.trace is None else around.trace.variables(),
            ),
            on_output=streams.piece if on_output is not None else None,
            cancelled=around.cancelled,
        )
    streams.end()
    if around.on_cut is not None:
        for stream, cut in (("stdout", outcome.stdout_truncated), ("stderr", outcome.stderr_truncated)):
            if cut:
                around.on_cut(request.call_id, stream)
    trail.step(6, f"the run ended: {outcome.kind}")
    note_outcome(outcome, trail)
    installed = dependencies.environment is not None
    judge(outcome, tool, limits, secrets, around.settings.protocol.stderr_fails, result, has_environment=installed)
    for line in result.logs[:MAX_TOLD_LINES]:
        trail.step(6, line)
    if is_script_service(tool.manifest):
        mirror(result)
    trail.step(7, f"the result is {result.status}")


def writable_folders(rights: Grant, tool: Tool, target: ScriptTarget) -> tuple[str, ...]:
    """The folders that were granted for writing, made where they are missing."""
    script = f"{target.folder}/{target.handler.script_path}"
    # A script that the call names may lie where another call of the same tool could write (ruling 43).
    around = [tool.folder + target.folder[len(tool.folder) :][:end] for end in _ends(target.folder[len(tool.folder) :])]
    made: list[str] = []
    for folder in (*rights.write, *rights.own_write):
        places = [folder.path]
        if folder in rights.own_write:
            places += [f"{top}/{folder.relative}" for top in around]
        if any(inside(script, place) for place in places):
            text = f"the script '{target.handler.script_path}' lies in '{folder.relative}', which the tool can write: it could change itself"
            raise Stopped("blocked", failure("SecurityError", text))
        try:
            made.append(make_below(folder.top, folder.relative))
        except (OSError, sandbox.Refusal) as error:
            cause = error.message if isinstance(error, sandbox.Refusal) else error.strerror
            text = f"the writable folder '{folder.relative or folder.top}' cannot be made: {cause}"
            raise Stopped("error", failure("SecurityError", text)) from None
    return tuple(made)


def _ends(path: str) -> list[int]:
    """Where each folder on a path ends; a path begins with its separator."""
    return [at for at, letter in enumerate(path) if letter == "/"]


def _command(handler: ExternalScript, settings: Settings, environment: sandbox.Environment | None) -> tuple[str, ...]:
    """The words that start the script inside the sandbox, without the sandbox's own."""
    script = f"/tool/{handler.script_path}"
    program = custom_program(handler, settings)
    if program is not None:
        return program.command
    found = find_interpreter(built_in(handler.language), interpreters_of(settings))
    own = environment is not None and environment.kind == "python"
    words = found.command("/env/bin/python" if own else found.path) if isinstance(found, Interpreter) else ()
    return (*words, script, *((handler.entry_point,) if handler.entry_point else ()))


def target_of(tool: Tool, args: dict[str, Any]) -> ScriptTarget:
    """Which script a call runs, and where. Raises ``Stopped`` for one outside the tool's folder."""
    handler = tool.manifest.handler
    if isinstance(handler, ExternalScript):
        return ScriptTarget(tool.folder, handler, args)
    try:
        return script_target(tool.folder, args)
    except ValueError as error:
        raise Stopped("error", failure("SecurityError", str(error))) from None
