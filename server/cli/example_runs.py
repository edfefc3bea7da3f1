"""The examples of manifests as tests: which there are, running each on the path of every call, and what came of it (D42, D44).

Must not know how results are printed.
"""

from __future__ import annotations

import asyncio
import fnmatch
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.expected import UNJUDGED, Match, shortfall
from tamis.protocols.model import Example
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.running.runnables import MAX_TARGETS
from tamis.server.analysis.running.variables import NotReady, example_ready, filled_json, variables_of
from tamis.server.cli.asking import REFUSED
from tamis.server.cli.inputs import UsageError, tell_settings
from tamis.server.cli.text_tests import TextBlock, secrets_from, text_of
from tamis.server.runtime.calls.model import Ask, CallContext, CallRequest
from tamis.server.runtime.handlers.script.output import MATCH_KEY, match_of
from tamis.server.runtime.observe.masking import left_result
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import find_root
from tamis.server.runtime.settings.profile import AgentRules
from tamis.server.runtime.tools.loader import SUFFIX, LoadProblem, read_manifest_file, scan
from tamis.server.runtime.tools.reading import read_tool
from tamis.server.runtime.tools.registry import Registry, RegistryError, Tool

Outcome = Literal["passed", "failed", "skipped"]
DEFAULT_ENVIRONMENT = Settings().environment
TEXT_SUFFIXES = (".md", ".markdown", ".txt", ".tam", ".vcp", ".action")


class Case(msgspec.Struct, frozen=True):
    """One example of one tool, or one block of a text; ``number`` is 0 for a manifest that has none to run, with the reason in ``fault``."""

    path: str
    tool_id: str
    version: str
    number: int
    example: Example | None = None
    match: Match = "equal"
    fault: str = ""
    runtime: Runtime | None = None
    tool: Tool | None = None
    text: TextBlock | None = None
    """The block of a text that the case is, instead of an example."""
    is_settings: bool = False
    """It stands for settings that let nothing run."""

    @property
    def is_test(self) -> bool:
        """Whether it is an example or a block: else it stands for what lets none be run."""
        return self.text is not None or self.number > 0

    @property
    def name(self) -> str:
        """What people call it."""
        if self.text is not None:
            return self.text.name
        about = " ".join(self.example.description.split()) if self.example is not None else ""
        return about or (f"example {self.number}" if self.number else "settings" if self.is_settings else "manifest")


class Verdict(msgspec.Struct, frozen=True):
    """What came of a case; ``reason`` says why it did not pass."""

    case: Case
    outcome: Outcome
    reason: str = ""
    details: tuple[str, ...] = ()
    """Where the output differs, or the last lines of what the script printed."""
    result: ExecutionResult | None = None

    @property
    def duration_ms(self) -> float:
        """How long the run took; 0 when there was none."""
        return self.result.duration_ms if self.result is not None else 0.0


def find_cases(root: Path, paths: Sequence[Path], *, fixed: bool, environment: str = "") -> list[Case]:
    """The examples below the paths (none: of every tool of ``root``), by file. Raises ``UsageError`` for a path that is no manifest.

    ``fixed``: ``root`` was named, so that no nearer ``tamis.toml`` counts.
    """
    runtimes: dict[Path, Runtime] = {}

    def runtime_of(folder: Path) -> Runtime:
        own = root if fixed else find_root(folder)
        if own not in runtimes:
            # what a person chooses for this command goes over the files
            runtimes[own] = Runtime(own, {"environment": environment} if environment else None)
            tell_settings(runtimes[own].loaded, runtimes[own].problems)
            _check_environment(environment, runtimes[own])
        return runtimes[own]

    def closed() -> list[Case]:
        # else a mistake in the settings, which lets nothing be found or run, would be a pass
        return [
            Case(
                str(own / "tamis.toml"),
                "tamis.toml",
                "",
                0,
                fault=runtime.loaded.closed,
                is_settings=True,
            )
            for own, runtime in runtimes.items()
            if runtime.loaded.closed
        ]

    if not paths:
        runtime = runtime_of(root)
        cases = [case for tool in runtime.registry.tools if tool.origin == "manifest" for case in _cases(tool, runtime)]
        broken = [
            Case(error.path, error.tool_id or _stem(error.path), "", 0, fault=_told(error, runtime))
            for error in runtime.registry.errors
        ]
        return _sorted([*closed(), *cases, *broken])
    by_key: dict[str, Case] = {}
    for path in paths:
        for test_case in _of_path(path, runtime_of):
            by_key.setdefault(f"{test_case.path}#{test_case.number}", test_case)
    return _sorted([*closed(), *by_key.values()])


def _check_environment(name: str, runtime: Runtime) -> None:
    """Raises ``UsageError`` where a root has no environment of that name."""
    known = runtime.settings.environments
    if not name or name in known or name == DEFAULT_ENVIRONMENT or runtime.loaded.closed:
        return
    there = ", ".join(f"'{other}'" for other in known) or "none: [environments.NAME] in tamis.toml makes one"
    raise UsageError(f"--environment: no environment '{name}'{hint(best(name, known))} (there is {there})")


def _sorted(cases: Any) -> list[Case]:
    # the blocks of a text stand in its order, behind the manifests: a later one may use what an earlier one gave
    return sorted(
        cases,
        key=lambda case: (
            ("", "", case.path, case.number)
            if case.text is not None
            else (case.tool_id, case.version, case.path, case.number)
        ),
    )


def _of_path(path: Path, runtime_of: Callable[[Path], Runtime]) -> list[Case]:
    if path.is_dir():
        looked = scan(path, (".",))
        files, problems = looked.files, looked.problems
    elif path.name.endswith(SUFFIX):
        read = read_manifest_file(str(path))
        files, problems = ((), (read,)) if isinstance(read, LoadProblem) else ((read,), ())
    elif path.name.endswith(TEXT_SUFFIXES):
        return _of_text(path, runtime_of(path.parent))
    else:
        wanted = f"end with {SUFFIX}, nor is it a text ({', '.join(TEXT_SUFFIXES)})"
        raise UsageError(f"'{path}' is no manifest: its name does not {wanted}")
    cases = [
        Case(problem.path, _stem(problem.path), "", 0, fault=f"not registered: {problem.message}")
        for problem in problems
    ]
    for file in files:
        runtime = runtime_of(Path(file.path).parent)
        real = os.path.realpath(file.path)
        tool = next((tool for tool in runtime.registry.tools if os.path.realpath(tool.path) == real), None)
        # a manifest outside the tool folders, or one that another one of its id keeps out, is tested all the same
        candidate = tool or read_tool(file, runtime.settings)
        if isinstance(candidate, Tool):
            cases += _cases(candidate, runtime)
        else:
            cases.append(
                Case(
                    candidate.path,
                    candidate.tool_id or _stem(candidate.path),
                    "",
                    0,
                    fault=f"not registered: {_placed(candidate.message, candidate.line, candidate.column)}",
                )
            )
    return cases


def _of_text(path: Path, runtime: Runtime) -> list[Case]:
    """The blocks of a text that are calls, each a case; what is set aside or mentioned is none."""
    text = text_of(path, runtime)
    more = f"it has more than {MAX_TARGETS} calls; those behind them are not run" if text.is_cut else ""
    cut = [Case(str(path), "", "", MAX_TARGETS, fault=more, runtime=runtime)] if more else []
    return cut + [
        Case(
            str(path),
            block.tool_id,
            "",
            block.target.block + 1,
            fault=block.target.reason,
            runtime=runtime,
            tool=block.tool,
            text=block,
        )
        for block in text.blocks()
    ]


def _told(error: RegistryError, runtime: Runtime) -> str:
    """What is wrong with a definition; one that is registered all the same cannot be called."""
    tool = runtime.registry.get(error.tool_id) if error.tool_id else None
    there = tool is not None and tool.path == error.path
    return f"not {'available' if there else 'registered'}: {error.message}"


def _placed(message: str, line: int, column: int) -> str:
    return f"{message} (line {line}, column {column})" if line else message


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(SUFFIX)


def _cases(tool: Tool, runtime: Runtime) -> list[Case]:
    raw = tool.manifest.raw.get("examples")
    entries = raw if is_list(raw) else []
    cases: list[Case] = []
    for i, example in enumerate(tool.manifest.examples):
        entry = entries[i] if i < len(entries) else None
        match = match_of(tool.manifest, entry.get(MATCH_KEY) if is_object(entry) else None)
        cases.append(
            Case(tool.path, tool.tool_id, tool.manifest.version, i + 1, example, match, runtime=runtime, tool=tool)
        )
    return cases


def fits(case: Case, wanted: str) -> bool:
    """Whether a case is among those that ``--filter`` wants: a part or a pattern of ``TOOL_ID DESCRIPTION``."""
    text, wanted = f"{case.tool_id} {case.name}".casefold(), wanted.casefold()
    return wanted in text or fnmatch.fnmatchcase(case.tool_id.casefold(), wanted) or fnmatch.fnmatchcase(text, wanted)


async def run_cases(
    cases: Sequence[Case], *, ask: Ask | None, jobs: int, timeout_ms: int | None, cancelled: asyncio.Event
) -> AsyncIterator[Verdict]:
    """Runs the cases, up to ``jobs`` at a time; gives the verdicts in the order of the cases."""
    turns, asking = asyncio.Semaphore(jobs), asyncio.Lock()

    async def run(case: Case) -> Verdict:
        async with nullcontext() if case.text is None else case.text.text.turn, turns:
            if case.fault or case.runtime is None or (case.tool is None and case.text is None):
                return Verdict(case, "failed", case.fault)
            if cancelled.is_set():
                return Verdict(case, "skipped", "the tests were interrupted")
            context = case.runtime.call_context(ask=ask, cancelled=cancelled, caller=Caller("cli")).having(turn=asking)
            if case.text is not None:
                return await _run_text(case, case.text, context, timeout_ms)
            assert case.tool is not None
            return await _run(case, case.tool, context, timeout_ms)

    tasks = [asyncio.get_running_loop().create_task(run(case)) for case in cases]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        for runtime in {id(case.runtime): case.runtime for case in cases if case.runtime is not None}.values():
            await runtime.close()


async def _run(case: Case, tool: Tool, context: CallContext, timeout_ms: int | None) -> Verdict:
    from tamis.server.runtime.execution.pipeline import execute

    assert case.example is not None
    assert case.runtime is not None
    reason = case.runtime.why_not(tool)
    if reason:
        return Verdict(case, "skipped", f"not available: {reason}")
    if context.registry.get(tool.tool_id, tool.manifest.version) is not tool:
        context = msgspec.structs.replace(context, registry=Registry([tool]))
    variables = variables_of(case.runtime.settings)
    try:
        args, hidden = await example_ready(
            dict(case.example.input), variables, tool, secrets_from(case.runtime, Path(case.path))
        )
    except NotReady as reason:
        return Verdict(case, "failed", str(reason))
    request = CallRequest(
        call_id=f"test-{case.number}",
        name=tool.tool_id,
        version=tool.manifest.version,
        args=args,
        timeout_ms=timeout_ms,
    )
    # what agents may call, and how often, is no matter of tests
    result = await execute(request, context.having(rate=None, agent=AgentRules(), secrets=hidden))
    if case.example.expected_output is not UNSET:
        expected, _ = filled_json(case.example.expected_output, variables)
        case = msgspec.structs.replace(case, example=msgspec.structs.replace(case.example, expected_output=expected))
    return judged(case, left_result(result, hidden, hidden))


async def _run_text(case: Case, block: TextBlock, context: CallContext, timeout_ms: int | None) -> Verdict:
    """Runs a block of a text, and holds what it gave against what the text expects."""
    try:
        results = await block.run(context.having(rate=None, agent=AgentRules()), timeout_ms)
    except NotReady as reason:
        return Verdict(case, "failed", str(reason))
    last = results[-1] if results else None
    unmet = block.unmet(results)
    if unmet is None:
        refused = next((candidate for candidate in results if candidate.status in UNJUDGED), None)
        return _refused(case, refused) if refused is not None else Verdict(case, "failed", "no call could be read here")
    block.keep(results if not unmet else [])
    if not unmet:
        return Verdict(case, "passed", result=last)
    return Verdict(
        case, "failed", unmet[0].reason, tuple(line for judgement in unmet for line in judgement.details), last
    )


def _refused(case: Case, result: ExecutionResult) -> Verdict:
    """A call that was not let run, or not to its end, says nothing about its tool."""
    if result.status == "cancelled":
        return Verdict(case, "skipped", "the tests were interrupted", result=result)
    text = "" if result.error is UNSET else f"{result.error.type}: {result.error.message}"
    needs = {"approvalUnavailable": "it needs approval: --yes gives it", "denied": "it was refused"}
    return Verdict(case, "skipped", needs.get(result.status, text or result.status), result=result)


def judged(case: Case, result: ExecutionResult) -> Verdict:
    """Whether a result is what the example says."""
    assert case.example is not None
    if result.status in REFUSED or result.status == "cancelled":
        return _refused(case, result)
    short = shortfall(case.example.expected_output, case.match, result)
    return Verdict(case, "passed", result=result) if short is None else Verdict(case, "failed", *short, result)


# The verdicts of ``tamis test`` as JUnit XML, which build servers read.


_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(verdicts: Sequence[Verdict]) -> str:
    """One ``testsuite`` for each tool, one ``testcase`` for each example; ``time`` in seconds."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="tamis test" {_counts(verdicts)}>',
    ]
    for (tool_id, version), group in groupby(
        verdicts, key=lambda verdict: (verdict.case.tool_id, verdict.case.version)
    ):
        own = list(group)
        name = f"{tool_id}@{version}" if version else tool_id
        lines.append(f"  <testsuite name={_attribute(name)} file={_attribute(own[0].case.path)} {_counts(own)}>")
        for verdict in own:
            head = f"    <testcase classname={_attribute(tool_id)} name={_attribute(verdict.case.name)} time={_seconds([verdict])}"
            lines.append(head + ("/>" if verdict.outcome == "passed" else f">{_why(verdict)}</testcase>"))
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _counts(verdicts: Sequence[Verdict]) -> str:
    outcomes = [verdict.outcome for verdict in verdicts]
    failed, skipped = outcomes.count("failed"), outcomes.count("skipped")
    return f'tests="{len(outcomes)}" failures="{failed}" errors="0" skipped="{skipped}" time={_seconds(verdicts)}'


def _seconds(verdicts: Sequence[Verdict]) -> str:
    return f'"{sum(verdict.duration_ms for verdict in verdicts) / 1000:.3f}"'


def _why(verdict: Verdict) -> str:
    if verdict.outcome == "skipped":
        return f"<skipped message={_attribute(verdict.reason)}/>"
    return f"<failure message={_attribute(verdict.reason)}>{_text(chr(10).join(verdict.details))}</failure>"


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
