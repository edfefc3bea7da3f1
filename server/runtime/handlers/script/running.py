"""One sandboxed run of a tool whose call was let through: limits, grants and program to the sandbox, its outcome to the result.

Must not decide whether a call may run.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from functools import partial
from typing import Any

from tamis.protocols.manifest.reading import Execution, ExternalScript, Manifest
from tamis.sandbox import model as sandbox
from tamis.sandbox.interpreters import Missing
from tamis.sandbox.model import Interpreter
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.outputs import ToldApart
from tamis.server.runtime.calls.prepared import script_contents
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.handlers.script.dependencies import prepared
from tamis.server.runtime.handlers.script.entry_points import boot_program
from tamis.server.runtime.handlers.script.interpreters import (
    built_in,
    custom_program,
    interpreter_for,
    interpreters_of,
    missing_for,
)
from tamis.server.runtime.handlers.script.judge import judge, note_outcome
from tamis.server.runtime.handlers.script.output import input_bytes, shown_text
from tamis.server.runtime.handlers.secrets import given_secrets
from tamis.server.runtime.observe.masking import MaskedStreams
from tamis.server.runtime.policy.contents import Unpinnable, listed_files
from tamis.server.runtime.policy.path_grants import inside
from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.builtin import NoScriptError, ScriptTarget, is_script_service, mirror, script_target
from tamis.server.runtime.tools.tool import Tool

# What a manifest pins (``execution.integrity``, D80): its script, or with ``execution.files`` all files that belong to it. The sandbox checks the
# script's bytes, and runs those that it checked; the other files are looked at right before the start.


def script_pin(tool: Tool) -> str:
    """The hash that the script's bytes must have, empty where nothing is pinned. Raises ``Stopped`` for other files than are pinned."""
    handler, execution = tool.manifest.handler, tool.manifest.execution
    if not isinstance(handler, ExternalScript) or not execution.integrity:
        return ""
    if not execution.files:
        return execution.integrity
    try:
        contents = listed_files(tool.folder, handler, execution.files)
        whole = files_hash(contents)
    except Unpinnable as why:
        text = f"execution.integrity pins files that cannot be pinned: {why}; name what belongs with execution.files"
        raise Stopped("error", failure("SecurityError", text, code="integrity")) from None
    if whole != execution.integrity:
        text = f"the files of {tool.tool_id} are not those that execution.integrity pins; their digest is {whole}; review them, then pin it"
        raise Stopped("error", failure("SecurityError", text, code="integrity"))
    script = contents.get(os.path.normpath(handler.script_path))
    if script is None:
        text = f"the script '{handler.script_path}' is not there"
        raise Stopped("error", failure("SecurityError", text, code="integrity"))
    return _sri(script)


def files_pin(folder: str, handler: ExternalScript, execution: Execution) -> str:
    """What ``execution.integrity`` has to be for the files as they are; empty where they cannot be pinned."""
    try:
        return files_hash(listed_files(folder, handler, execution.files))
    except Unpinnable:
        return ""


def files_hash(files: dict[str, bytes]) -> str:
    """The digest of files together, from the SHA-256 of each by its path: that of the lines that ``sha256sum`` prints of them, in the
    order of the paths' bytes. Raises ``Unpinnable`` for a name that ``sha256sum`` would write otherwise."""
    lines: list[bytes] = []
    for path, digest in sorted((os.fsencode(path), digest) for path, digest in files.items()):
        if any(byte in path for byte in (b"\\", b"\n", b"\r")):
            raise Unpinnable(f"the name {os.fsdecode(path)!a} holds a backslash or a line break")
        lines.append(digest.hex().encode("ascii") + b"  " + path + b"\n")
    return _sri(hashlib.sha256(b"".join(lines)).digest())


def _sri(digest: bytes) -> str:
    return "sha256-" + base64.b64encode(digest).decode("ascii")


MAX_TOLD_LINES = 20
"""So many lines of a script's output stand in the daemon's own log."""


def limits_of(settings: Settings, manifest: Manifest, wall_ms: int) -> sandbox.Limits:
    """The operator's limits, lowered by the manifest; nothing raises them. How long the run may take is given."""
    operator = settings.sandbox
    values = {field: getattr(operator, field) for field in sandbox.Limits.__struct_fields__}
    # not by `fields`, which works out the type of each again
    lowered = manifest.execution.limits
    for field, name in (
        zip(operator.__struct_fields__, operator.__struct_encode_fields__, strict=True) if lowered else ()
    ):
        asked = lowered.get(name)
        if asked is not None and field in values:
            values[field] = min(values[field], asked)
    values["wall_ms"] = wall_ms
    return sandbox.Limits(**values)


async def run_script(call: Invocation) -> None:
    """Runs the tool's script once and judges it into the call's result. Raises ``Stopped`` when it is not started.

    Where the folder holds anything else by now than a person allowed (``call.contents``), nothing is started.
    """
    # Loaded on the first run only: reading and listing need no sandbox.
    from tamis.sandbox.runner import run

    request, tool, target, rights = call.request, call.tool, call.target, call.rights
    context, trail, result = call.context, call.trail, call.result
    assert target is not None
    handler = target.handler
    trail.step(1, f"the script path '{handler.script_path}' is checked against the tool's folder")
    trail.step(2, f"the script is {target.folder}/{handler.script_path}")
    trail.step(3, f"the environment of {handler.language} is looked for")
    interpreter = interpreter_for(handler, context.settings)
    if missing := missing_for(handler, context.settings, interpreter):
        raise Stopped("error", failure("DependencyError", missing))
    # nothing is installed either for other files than are pinned; right before the start they are looked at again
    script_pin(tool)
    limits = limits_of(context.settings, tool.manifest, call.timeout_ms)
    credentials = await given_secrets(rights, context, trail, result)
    secrets = trail.secrets
    on_output = context.observer.on_output

    def show(stream: str, text: str) -> None:
        if on_output is not None:
            on_output(request.call_id, stream, text)

    lines = ToldApart(show)

    def tell_wait(text: str) -> None:
        trail.note("run.waits", text=text)
        if context.observer.on_progress is not None:
            context.observer.on_progress(request.call_id, text)

    streams = MaskedStreams(secrets, lambda stream, text: lines.piece(stream, shown_text(text)))

    with await prepared(request, tool, target, context, trail) as dependencies:
        warming = context.services.warming
        runs = run if warming is None else partial(warming.run, tool=tool, hold=dependencies.hold)
        writable = writable_folders(rights, tool, target)
        if dependencies.environment is not None:
            # what is installed takes its time
            interpreter = interpreter_for(handler, context.settings)
        command = _command(handler, context.settings, dependencies.environment, interpreter)
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
        if call.contents and script_contents(tool, target, rights) != call.contents:
            text = f"the files of {tool.tool_id} changed after the call was allowed; nothing was run, call it again"
            raise Stopped("error", failure("SecurityError", text, code="filesChanged"))
        pin = script_pin(tool)
        trail.step(5, f"the script is started with {limits.wall_ms} ms to run")
        outcome = await runs(
            sandbox.RunRequest(
                folder=target.folder,
                script=handler.script_path,
                language=built_in(handler.language),
                project=str(context.root),
                args=(handler.entry_point,) if handler.entry_point else (),
                boot=boot_program(handler.language) if handler.entry_point else "",
                stdin=input_bytes(target.stdin),
                limits=limits,
                read=tuple(sandbox.Mount(path) for path in rights.read),
                write=tuple(sandbox.Mount(path) for path in writable),
                hosts=rights.hosts,
                allow_cidrs=context.settings.policy.allow_cidrs,
                pin=tuple(context.settings.policy.pin.items()),
                interpreters=interpreters_of(context.settings),
                backend=context.settings.sandbox.backend,
                program=custom_program(handler, context.settings),
                integrity=pin,
                environment=dependencies.environment,
                env=tool.manifest.env,
                secrets=credentials.secrets,
                headers=credentials.headers,
                call_env={} if context.trace is None else context.trace.variables(),
            ),
            on_output=streams.piece if on_output is not None else None,
            cancelled=context.cancelled,
            on_wait=tell_wait,
        )
    streams.end()
    lines.end()
    if context.observer.on_cut is not None:
        for stream, cut in (("stdout", outcome.stdout_truncated), ("stderr", outcome.stderr_truncated)):
            if cut:
                context.observer.on_cut(request.call_id, stream)
    trail.step(6, f"the run ended: {outcome.kind}")
    note_outcome(outcome, trail)
    installed = dependencies.environment is not None
    judge(outcome, tool, limits, secrets, context.settings.protocol.stderr_fails, result, has_environment=installed)
    for line in result.logs[:MAX_TOLD_LINES]:
        trail.step(6, line)
    if is_script_service(tool.manifest.handler):
        mirror(result)
    trail.step(7, f"the result is {result.status}")


def writable_folders(rights: Grant, tool: Tool, target: ScriptTarget) -> tuple[str, ...]:
    """The folders that were granted for writing, made where they are missing."""
    script = f"{target.folder}/{target.handler.script_path}"
    # A script that the call names may lie where another call of the same tool could write (ruling 43).
    above = [tool.folder + target.folder[len(tool.folder) :][:end] for end in _ends(target.folder[len(tool.folder) :])]
    folders: list[str] = []
    for folder in (*rights.write, *rights.own_write):
        places = [folder.path]
        if folder in rights.own_write:
            places += [f"{top}/{folder.relative}" for top in above]
        if any(inside(script, place) for place in places):
            text = f"the script '{target.handler.script_path}' lies in '{folder.relative}', which the tool can write: it could change itself"
            raise Stopped("blocked", failure("SecurityError", text))
        try:
            folders.append(make_below(folder.top, folder.relative))
        except (OSError, sandbox.Refusal) as error:
            cause = error.message if isinstance(error, sandbox.Refusal) else error.strerror
            text = f"the writable folder '{folder.relative or folder.top}' cannot be made: {cause}"
            lack = isinstance(error, OSError) and sandbox.lacks(error)
            raise Stopped("error", failure("ResourceError" if lack else "SecurityError", text)) from None
    return tuple(folders)


def make_below(folder: str, relative: str) -> str:
    """Makes ``relative`` below a real absolute ``folder`` where it is missing; returns its absolute path.

    Raises OSError or the sandbox's ``PathRefused`` with the cause; what was made until then stays.
    """
    from tamis.sandbox.paths.walk import open_absolute, relative_parts

    if not relative:
        return folder
    with open_absolute(folder) as top:
        current = os.dup(top.fd)
        try:
            for name in relative_parts(relative):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=current)
                following = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
                os.close(current)
                current = following
        finally:
            os.close(current)
    return f"{folder.rstrip('/')}/{relative}"


def _ends(path: str) -> list[int]:
    """Where each folder on a path ends; a path begins with its separator."""
    return [at for at, letter in enumerate(path) if letter == "/"]


def _command(
    handler: ExternalScript,
    settings: Settings,
    environment: sandbox.Environment | None,
    interpreter: Interpreter | Missing | None,
) -> tuple[str, ...]:
    """The words that start the script inside the sandbox, without the sandbox's own."""
    script = f"/tool/{handler.script_path}"
    program = custom_program(handler, settings)
    if program is not None:
        return program.command
    own = environment is not None and environment.kind == "python"
    words = (
        interpreter.command("/env/bin/python" if own else interpreter.path)
        if isinstance(interpreter, Interpreter)
        else ()
    )
    return (*words, script, *((handler.entry_point,) if handler.entry_point else ()))


def target_of(tool: Tool, args: dict[str, Any]) -> ScriptTarget:
    """Which script a call runs, and where. Raises ``Stopped`` for one outside the tool's folder."""
    handler = tool.manifest.handler
    if isinstance(handler, ExternalScript):
        return ScriptTarget(tool.folder, handler, args)
    try:
        return script_target(tool.folder, args)
    except NoScriptError as error:
        raise Stopped("error", failure("ScriptError", str(error))) from None
    except ValueError as error:
        raise Stopped("error", failure("SecurityError", str(error))) from None
