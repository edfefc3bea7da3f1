"""From the outcome of a sandboxed run to the result of a call: status, output or error, logs without secrets.

Ruling 37 and the sandbox's classification decide. Must not start anything.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.check import to_problem, told
from tamis.protocols.contract import (
    Denied,
    ErrorDetails,
    ErrorType,
    ExecutionError,
    ExecutionResult,
    SandboxInfo,
    Usage,
)
from tamis.protocols.manifest.reading import LANGUAGES, ExternalScript
from tamis.protocols.model import Json
from tamis.protocols.observation import plain, readable
from tamis.protocols.schema.secrets import MASK, mask
from tamis.sandbox import model as sandbox
from tamis.server.runtime.calls.outputs import own_line, told_apart
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.handlers.script.output import OutputError, excerpt, log_text, read_output, vcp_fault
from tamis.server.runtime.observe.masking import without
from tamis.server.runtime.observe.trail import Trail
from tamis.server.runtime.settings.config import SandboxSettings
from tamis.server.runtime.tools.registry import Tool

UNSANDBOXED = "none"
"""The backend of a run that nothing held: an operator insisted on it."""
MAX_DENIED = 64
MAX_LOG_LINES = 500
MAX_LOG_LINE_CHARS = 2_000
MAX_DETAIL_CHARS = 4_000


def judge(
    outcome: sandbox.RunOutcome,
    tool: Tool,
    limits: sandbox.Limits,
    secrets: tuple[str, ...],
    stderr_fails: bool,
    result: ExecutionResult,
    *,
    has_environment: bool = False,
) -> None:
    """Turns an outcome into the result's status, output or error (ruling 37; sandbox spec, Classification).

    ``has_environment``: the run was shown what its script's folder declares.
    """
    info = outcome.sandbox
    started = outcome.wall_ms > 0 or outcome.exit_code is not None
    if not started:
        # refused, too large, cancelled or without a sandbox: nothing ran (interface, Running)
        result.attempts = max(0, result.attempts - 1)
    result.sandbox = (
        SandboxInfo(backend=info.backend, version=info.version, layers=list(info.layers), warm=info.warm)
        if started and outcome.kind != "unavailable"
        else None
    )
    result.usage = Usage(cpu_ms=round(outcome.cpu_ms, 3), max_rss_bytes=outcome.max_rss_bytes)
    result.error, result.output = UNSET, UNSET
    stderr = _log_of(outcome.stderr, secrets, cut=outcome.stderr_truncated)
    output: Any = UNSET
    error: ExecutionError | None = None
    if outcome.kind == "ok":
        try:
            output = read_output(outcome.stdout)
        except OutputError as problem:
            problem = _without_secrets(problem, outcome.stdout, secrets)
            shown = told_apart(f"Standard output began with: {readable(problem.excerpt)}") if problem.excerpt else ""
            error = failure(
                "OutputFormatError", problem.text, text=without(_details(shown, stderr), secrets), exit_code=0
            )
        else:
            if phrase := _fault_said(tool, output):
                error = failure("ScriptError", _told_fault(phrase, secrets), text=_tail(stderr), exit_code=0)
                output = UNSET
            else:
                error = _output_fault(tool, output)
            if error is None and stderr_fails and stderr.strip():
                error = failure("ScriptError", "the script wrote to standard error", text=_tail(stderr), exit_code=0)
    elif outcome.kind == "cancelled":
        result.status = "cancelled"
    elif outcome.kind == "timeout":
        result.status = "timeout"
        error = failure("TimeoutError", f"no result after {limits.wall_ms} ms", text=_tail(stderr), limit="wall")
    elif outcome.kind == "unavailable":
        fix = f"; fix: {outcome.remedy}" if outcome.remedy else ""
        error = failure(outcome.error_type or "SandboxUnavailable", f"{outcome.message}{fix}")
    else:
        error_type: ErrorType = outcome.error_type or "ScriptError"
        # A failed script's remedy is its own standard error, which is in the details.
        remedy = "; ".join(filter(None, (outcome.remedy, _set_by_manifest(outcome.limit, tool, limits))))
        if error_type == "ScriptError":
            granted = result.permissions.granted
            hidden = info.backend != UNSANDBOXED and _reaches_what_is_not_shown(stderr, (*granted.read, *granted.write))
            hint = (_NOT_SHOWN if hidden else _sandbox_hint(stderr, tool)) or (
                "" if has_environment else _package_hint(stderr, tool)
            )
            remedy = hint or (outcome.remedy if outcome.signal else "")
            if phrase := _last_words(tool, outcome):
                remedy = "; ".join(filter(None, (_told_fault(phrase, secrets), remedy)))
        text = f"{outcome.message}; {remedy}" if remedy else outcome.message
        error = failure(
            error_type,
            text,
            text=_tail(stderr),
            limit=outcome.limit,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
        )
    _say_denials(outcome, error, result)
    result.logs, result.logs_truncated = _logs(outcome, stderr, secrets, with_stdout=output is UNSET)
    if outcome.kind == "timeout":
        # here, because the observation's sentence is the interface's and ends with the number
        result.logs.append(own_line(_set_by_manifest("wall", tool, limits) or _MORE_TIME))
    if error is not None:
        result.status = result.status if outcome.kind == "timeout" else "error"
        result.error = error
    elif outcome.kind == "ok":
        result.status, result.output = "success", output


def _say_denials(outcome: sandbox.RunOutcome, error: ExecutionError | None, result: ExecutionResult) -> None:
    """Hosts that the script was refused while it ran are denials like those before it, also when it succeeded all the same."""
    reasons = {denial.target: denial.reason for denial in outcome.denials}
    for target in dict.fromkeys((*outcome.denied_hosts, *reasons)):
        denied = Denied(kind="network", value=target, reason=reasons.get(target, "the host is not granted"))
        if denied not in result.permissions.denied and len(result.permissions.denied) < MAX_DENIED:
            # what was granted may be shared with other calls
            told = [*result.permissions.denied, denied]
            result.permissions = msgspec.structs.replace(result.permissions, denied=told)
    if error is not None and outcome.denied_hosts:
        details = ErrorDetails() if error.details is UNSET else error.details
        details.denied_hosts = list(outcome.denied_hosts[:MAX_DENIED])
        error.details = details


def note_outcome(outcome: sandbox.RunOutcome, trail: Trail) -> None:
    """Writes down what a run did and how it ended."""
    for denial in outcome.denials[:MAX_DENIED]:
        trail.note("network.denied", "warning", target=denial.target, reason=denial.reason)
    for target in outcome.reached_hosts[:MAX_DENIED]:
        trail.note("network.reached", target=target)
    for violation in outcome.violations[:MAX_DENIED]:
        trail.note("sandbox.violation", "warning", text=violation)
    if outcome.kind == "timeout":
        trail.note("run.timeout", "warning", message=outcome.message, wallMs=round(outcome.wall_ms))
    elif outcome.limit is not None:
        trail.note(
            "run.limit", "warning", limit=outcome.limit, message=outcome.message, suspected=outcome.suspected or None
        )
    elif outcome.kind == "refused":
        trail.note("run.refused", "warning", message=outcome.message, remedy=outcome.remedy)
    elif outcome.kind == "unavailable":
        trail.note("sandbox.unavailable", "error", message=outcome.message, remedy=outcome.remedy)
    if outcome.sandbox.backend == UNSANDBOXED:
        trail.note("sandbox.none", "warning", message="the script ran without a sandbox")
    trail.note(
        "run.ended",
        kind=outcome.kind,
        exitCode=outcome.exit_code,
        signal=outcome.signal,
        wallMs=round(outcome.wall_ms, 3),
        cpuMs=round(outcome.cpu_ms, 3),
        maxRssBytes=outcome.max_rss_bytes,
        stdoutBytes=len(outcome.stdout),
        stderrBytes=len(outcome.stderr),
        truncated=outcome.stdout_truncated or outcome.stderr_truncated or None,
        sandbox={"backend": outcome.sandbox.backend, "warm": outcome.sandbox.warm},
    )


# What scripts of the three languages print when they reach for what the sandbox does not have.
_NO_NETWORK = re.compile(
    r"Name or service not known|Temporary failure in name resolution|Network is unreachable|ENOTFOUND|EAI_AGAIN"
    r"|ENETUNREACH|getaddrinfo|ConnectionRefused|ECONNREFUSED|Connection refused"
)
_NO_WRITE = re.compile(r"Read-only file system|EROFS|\[Errno 30\]")
_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]{1,100})'", re.MULTILINE)
_NO_PACKAGE = re.compile(
    r"Cannot find (?:module|package) ['\"]((?:@[\w.-]{1,100}/)?[\w-][\w.-]{0,99})(?:/[^'\"]*)?['\"]"
)
_MORE_TIME = (
    "the lowest of the call's timeoutMs, the manifest's execution.timeoutMs and sandbox.wallMs in tamis.toml holds: raise"
    " it, or make the script finish sooner"
)


# What a script says of a path that is not there: the last words of Python, Node and bun.
_NO_FILE = re.compile(
    r"(?:^FileNotFoundError: \[Errno 2\] [^\n]*?|ENOENT: no such file or directory, \w{1,20} )b?['\"](/[^'\"\n]{1,4096})['\"]",
    re.MULTILINE,
)
_SHOWN = frozenset(
    (
        *("bin", "dev", "env", "etc", "lib", "lib32", "lib64", "libx32", "node_modules", "proc", "run", "sbin", "sys"),
        *("tmp", "tool", "usr"),
    )
)
"""The first names of paths that the sandbox has of its own."""
_GLOB_TAIL = re.compile(r"(?:/[^/]*[*?\[].*|/)$", re.DOTALL)
_NOT_SHOWN = (
    "the sandbox shows no file of the machine that is not granted: securityContext.fileAccess.allowRead in the manifest"
    " names what the tool reads, and policy.readRoots has to allow it"
)

_SETTINGS: dict[str, tuple[str, ...]] = {
    "wall": ("wallMs",),
    "cpu": ("cpuSeconds",),
    "memory": ("memoryBytes",),
    "processes": ("processes",),
    "files": ("openFiles", "fileBytes", "tmpBytes"),
    "stdout": ("stdoutBytes",),
    "stderr": ("stderrBytes",),
    "stdin": ("stdinBytes",),
}
"""The names in `[sandbox]` and `execution.limits` behind each limit of an outcome."""


def _set_by_manifest(limit: str | None, tool: Tool, limits: sandbox.Limits) -> str:
    """Says that it was the manifest that set the limit which a run met; nothing where it was the operator or the call."""
    execution = tool.manifest.execution
    if limit is None:
        return ""
    in_force = {field.encode_name: field.name for field in msgspec.structs.fields(SandboxSettings)}
    names = [
        f"execution.limits.{name}"
        for name in _SETTINGS.get(limit, ())
        if execution.limits.get(name) == getattr(limits, in_force[name])
    ]
    if limit == "wall" and execution.timeout_ms == limits.wall_ms:
        names = ["execution.timeoutMs"]
    return f"the manifest set this limit ({', '.join(names)})" if names else ""


def _reaches_what_is_not_shown(stderr: str, granted: Iterable[str]) -> bool:
    """Whether a script's last words are of a missing file where the sandbox has nothing, judged by its name alone.

    Whether the host has such a file is not looked at: the answer would tell the script what stands where.
    """
    missing = _NO_FILE.findall(stderr[-4_000:])
    if not missing:
        return False
    path = posixpath.normpath("/" + missing[-1].lstrip("/"))
    folders = (folder for pattern in granted if (folder := _GLOB_TAIL.sub("", pattern)).startswith("/"))
    below = any(path == folder or path.startswith(f"{folder}/") for folder in folders)
    return not below and path.split("/")[1] not in _SHOWN


def _sandbox_hint(stderr: str, tool: Tool) -> str:
    context = tool.manifest.security_context
    last_words = stderr[-4_000:]
    if _NO_WRITE.search(last_words):
        return (
            "tools write to /tmp, or below their own folder where securityContext.fileAccess.allowWrite names a folder"
        )
    if _NO_NETWORK.search(last_words):
        if context.network.allow_hosts:
            return "the network is open only for hosts that allowHosts and policy.allowHosts both name"
        return "tools have no network unless securityContext.networkAccess.allowHosts and the policy name the host"
    return ""


def _package_hint(stderr: str, tool: Tool) -> str:
    """How to have a package that the script did not find; nothing for modules of the language and files of its own."""
    handler = tool.manifest.handler
    if isinstance(handler, ExternalScript) and handler.language not in LANGUAGES:
        return ""  # a runtime of the operator's own finds its packages itself
    last_words = stderr[-4_000:]
    modules = _NO_MODULE.findall(last_words)
    if modules:
        name = modules[-1].partition(".")[0]
        known = name.removeprefix("_") in sys.stdlib_module_names or name in sys.stdlib_module_names
        return "" if known else f"to have '{name}', name its package in a requirements.txt beside the script"
    package = _NO_PACKAGE.search(last_words)
    if package is not None:
        return f"to have '{package[1]}', name it among the dependencies of a package.json beside the script"
    return ""


def _fault_said(tool: Tool, document: Any) -> str:
    """Why a script's document says that it failed, where its manifest declares that documents say so."""
    handler = tool.manifest.handler
    return vcp_fault(document) if isinstance(handler, ExternalScript) and handler.result == "vcp" else ""


def _last_words(tool: Tool, outcome: sandbox.RunOutcome) -> str:
    """The same of a script that ended with an exit code of its own."""
    try:
        return "" if outcome.stdout_truncated else _fault_said(tool, read_output(outcome.stdout))
    except OutputError:
        return ""


def _told_fault(text: str, secrets: tuple[str, ...]) -> str:
    """A script's own words for its failure, fit for a sentence."""
    return told_apart(without(plain(text), secrets))[:MAX_DETAIL_CHARS]


def _log_of(data: bytes, secrets: tuple[str, ...], *, cut: bool) -> str:
    """What a script wrote for people, without secrets, and without a line that passes for one of Tamis."""
    return told_apart(without(log_text(data), secrets, cut=cut))


def _output_fault(tool: Tool, output: Any) -> ExecutionError | None:
    # The built-in script service describes its own record, not what the script prints (ruling 43).
    plan = tool.output_plan if isinstance(tool.manifest.handler, ExternalScript) else None
    if plan is None or plan.is_valid(output):
        return None
    problems = [to_problem(finding, of="output") for finding in plan.check(output, "typed").errors]
    text = told(problems[:8], "output")
    return failure(
        "OutputValidationError",
        f"the script's output does not fit the manifest's output schema: {text}",
        errors=problems,
    )


def _logs(
    outcome: sandbox.RunOutcome, stderr: str, secrets: tuple[str, ...], *, with_stdout: bool
) -> tuple[list[str], bool]:
    lines: deque[str] = deque(maxlen=MAX_LOG_LINES)
    cut = outcome.stderr_truncated or (with_stdout and outcome.stdout_truncated)
    streams = [("stderr", stderr)]
    if with_stdout:
        streams.insert(0, ("stdout", _log_of(outcome.stdout, secrets, cut=outcome.stdout_truncated)))
    count = 0
    for name, text in streams:
        for line in text.splitlines():
            if line.strip():
                count += 1
                cut = cut or len(line) > MAX_LOG_LINE_CHARS
                lines.append(f"{name}: {line[:MAX_LOG_LINE_CHARS]}")
    # what the sandbox found is no stream of the script's; the interface knows only these two
    for line in outcome.violations:
        count += 1
        lines.append(
            own_line(f"after the run: {without(plain(line), secrets)}")[: MAX_LOG_LINE_CHARS + len("stderr: ")]
        )
    return list(lines), cut or count > MAX_LOG_LINES


def _without_secrets(problem: OutputError, stdout: bytes, secrets: tuple[str, ...]) -> OutputError:
    """What is wrong with an output, in words that cut no secret of it in two."""
    if not secrets:
        return problem
    shown = without(stdout.decode("utf-8", "surrogateescape"), secrets).encode("utf-8", "surrogateescape")
    try:
        read_output(shown)
    except OutputError as again:
        return again
    return OutputError(without(problem.text, secrets), excerpt(shown))


def _details(shown: str, stderr: str) -> str:
    tail = _tail(stderr)
    return f"{shown}\n{tail}" if shown and tail else shown or tail


def _tail(text: str) -> str:
    """The end of a log, where the cause stands."""
    text = text.strip()
    return text if len(text) <= MAX_DETAIL_CHARS else "…" + text[-MAX_DETAIL_CHARS + 1 :]


def masked(args: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """The arguments with what ``x-secret`` marks hidden; the same object where it marks nothing."""
    if not tool.may_have_secrets:
        return args
    return cast("dict[str, Any]", mask(cast("Json", args), tool.manifest.parameters or {}))


def received(args: dict[str, Any], tool: Tool) -> dict[str, Any]:
    """The arguments of a call as they came, masked; of a tool that has secrets also what its schema does not name."""
    shown = masked(args, tool)
    schema = tool.manifest.parameters or {}
    named = schema.get("properties")
    if tool.may_have_secrets and isinstance(named, dict):
        shown = {name: value if name in named else MASK for name, value in shown.items()}
    return shown
