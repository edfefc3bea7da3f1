"""What runs the tools' languages on this machine: found, or by the operator's choice, or a runtime of the operator's own."""

from __future__ import annotations

import os
import posixpath

from tamis.protocols.manifest.reading import LANGUAGES, ExternalScript, Manifest
from tamis.protocols.suggest import best, hint
from tamis.sandbox.interpreters import MIN_NODE, NODE_WITH_TYPES, Missing, find_interpreter, interpreter_version
from tamis.sandbox.model import Interpreter, Interpreters, Language, Program
from tamis.sandbox.paths.never import shown_fault
from tamis.server.runtime.settings.config import CustomRuntime, Settings

_SCRIPT = "{script}"
_TYPESCRIPT = (".ts", ".mts", ".cts", ".tsx")


def interpreters_of(settings: Settings) -> Interpreters:
    """The interpreters and runners that the operator chose."""
    own, runners = settings.sandbox.interpreters, settings.sandbox.runners
    python, nodejs, bun, uv = _place(own.python), _place(own.nodejs), _place(own.bun), _place(own.uv)
    return Interpreters(python, nodejs, bun, uv, runners.python, runners.nodejs)


def _place(path: str) -> str | None:
    return (os.path.expanduser(path) if path[0] == "~" else path) if path else None


def missing_runtime(manifest: Manifest, settings: Settings) -> str:
    """Why the tool's language cannot be run on this machine, with the remedy; empty when it can."""
    return missing_for(manifest.handler, settings) if isinstance(manifest.handler, ExternalScript) else ""


def interpreter_for(handler: ExternalScript, settings: Settings) -> Interpreter | Missing | None:
    """What runs a script of a built-in language now; None for any other language."""
    if handler.language not in LANGUAGES:
        return None
    return find_interpreter(built_in(handler.language), interpreters_of(settings))


def missing_for(handler: ExternalScript, settings: Settings, found: Interpreter | Missing | None = None) -> str:
    """Why a script cannot be run on this machine, with the remedy; empty when it can. ``found``: what was found just now."""
    interpreter = found or interpreter_for(handler, settings)
    if interpreter is None:
        return _missing_custom(handler, settings)
    if isinstance(interpreter, Missing):
        return f"{interpreter.reason}; fix: {interpreter.remedy}"
    if handler.language == "nodejs" and interpreter.language == "nodejs" and handler.script_path.endswith(_TYPESCRIPT):
        version = interpreter_version(interpreter)
        if version and version_numbers(version) < NODE_WITH_TYPES:
            wanted = ".".join(map(str, NODE_WITH_TYPES))
            return (
                f"the script '{handler.script_path}' is TypeScript, and Node.js {version} does not run it; fix: make the "
                f'language "bun", set sandbox.runners.nodejs = "bun", or use Node.js {wanted} or newer'
            )
    return ""


def built_in(language: str) -> Language:
    """A built-in language by its name; an operator's own runtime is held to Node.js' limits, which are the widest."""
    return "python" if language == "python" else "bun" if language == "bun" else "nodejs"


def custom_program(handler: ExternalScript, settings: Settings) -> Program | None:
    """The words that run a script of a runtime of the operator's own; None for a built-in language."""
    runtime = None if handler.language in LANGUAGES else settings.sandbox.runtimes.get(handler.language)
    if runtime is None:
        return None
    script = posixpath.join("/tool", handler.script_path)
    words = tuple(word.replace(_SCRIPT, script) for word in runtime.command)
    if not any(_SCRIPT in word for word in runtime.command):
        words = (*words, script)
    # A link is shown as what it leads to, at its own place.
    shown = {path: os.path.realpath(path) for path in (*runtime.show, *_unseen(runtime))}
    return Program(words, tuple(sorted((real, inside) for inside, real in shown.items())))


def version_numbers(version: str) -> tuple[int, ...]:
    """`20.1.2` as numbers; what is no number ends them."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def describe(interpreter: Interpreter) -> str:
    """An interpreter for a person: its file, version and runner."""
    version = interpreter_version(interpreter)
    by = f", started by {' '.join(interpreter.runner[:2])}" if interpreter.runner else ""
    return f"{interpreter.file or interpreter.path}{f' ({version})' if version else ''}{by}"


def outdated(interpreter: Interpreter) -> str:
    """What is wrong with an interpreter's version; empty when nothing is."""
    version = interpreter_version(interpreter) if interpreter.language == "nodejs" else ""
    if version and version_numbers(version) < (MIN_NODE,):
        return f"Node.js {version} is older than {MIN_NODE}, which entryPoint and packages need"
    return ""


def _unseen(runtime: CustomRuntime) -> tuple[str, ...]:
    """The program itself, where the sandbox does not show it anyway."""
    program = runtime.command[0]
    if program.startswith(("/usr/", "/bin/", "/sbin/")) or any(
        program == path or program.startswith(path.rstrip("/") + "/") for path in runtime.show
    ):
        return ()
    return (program,)


def _missing_custom(handler: ExternalScript, settings: Settings) -> str:
    runtimes = settings.sandbox.runtimes
    name = handler.language
    runtime = runtimes.get(name)
    if runtime is None:
        known = [*LANGUAGES, *runtimes]
        return (
            f"no runtime named '{name}' is configured{hint(best(name, known))}; known are {', '.join(known)}; "
            f"fix: say how it runs in sandbox.runtimes.{name}.command"
        )
    place = f"sandbox.runtimes.{name}"
    program = runtime.command[0] if runtime.command else ""
    if not (os.path.isfile(program) and os.access(program, os.X_OK)):
        return (
            f"{place}.command names '{program}', which is not an executable file; fix: install it or correct the path"
        )
    for path in runtime.show:
        if not os.path.exists(path):
            return f"{place}.show names '{path}', which does not exist; fix: correct the path"
        closed = shown_fault(path)
        if closed:
            return f"{place}.show names '{path}', which is too much to show to a tool: {closed}; fix: name the folder that is needed"
    for path in _unseen(runtime):
        closed = shown_fault(path)
        if closed:
            return f"{place}.command names '{program}', which cannot be shown: {closed}; fix: install it elsewhere"
    if handler.entry_point:
        return f"entryPoint is for {', '.join(LANGUAGES)}; a script of '{name}' runs as a program; fix: leave it out"
    if runtime.extensions and handler.script_path and not handler.script_path.endswith(runtime.extensions):
        return f"the script '{handler.script_path}' does not end as {place}.extensions says: {', '.join(runtime.extensions)}"
    return ""
