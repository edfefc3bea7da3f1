"""Run the examples of manifests as tests, each in the sandbox, and hold the output against expectedOutput."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.server.cli.asking import ask_for_grants, ask_for_trust, positive
from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import Paint, print_json, warn, write_line

if TYPE_CHECKING:
    from tamis.server.cli.example_runs import Case, Verdict

MAX_JOBS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis test``."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="manifests, folders with some (default: every tool of the root), or texts with calls (*.md …)",
    )
    parser.add_argument(
        "--filter",
        metavar="TEXT",
        help="only examples whose tool id or description holds it; * and ? stand for any text",
    )
    parser.add_argument(
        "--environment", metavar="NAME", help="the environment whose variables hold (setting environment)"
    )
    parser.add_argument("--yes", "-y", action="store_true", help="run without asking, within the policy")
    parser.add_argument("--junit", metavar="FILE", help="write the results there as JUnit XML too")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--timeout-ms", type=positive, metavar="MS", help="wall clock of each run; lowers the operator's"
    )
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="how many run at once (default: processors, at most 4)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the examples; exit code 1 when one failed. What could not be run is skipped, said and counted."""
    from tamis.server.cli.example_runs import find_cases, fits

    try:
        root = root_of(arguments.root)
        paths = [Path(os.path.abspath(path)) for path in arguments.paths]
        for path, argument in zip(paths, arguments.paths, strict=True):
            if not path.exists():
                raise UsageError(f"'{argument}' does not exist")
        if arguments.junit and not Path(arguments.junit).absolute().parent.is_dir():
            raise UsageError(f"--junit: there is no folder for '{arguments.junit}'")
        ask_for_trust(root)
        cases = find_cases(root, paths, fixed=arguments.root is not None, environment=arguments.environment or "")
        if arguments.filter is not None and cases:
            cases = [case for case in cases if case.is_settings or fits(case, arguments.filter)]
            if not cases:
                raise UsageError(f"--filter: no example fits '{arguments.filter}'")
    except UsageError as error:
        warn(str(error))
        return 2
    for runtime in {id(case.runtime): case.runtime for case in cases if case.runtime is not None}.values():
        ask_for_grants(runtime, [case.tool for case in cases if case.runtime is runtime], may_ask=not arguments.yes)
    if not cases:
        _tell_nothing(arguments.paths or [str(root)])
    from tamis.server.cli.interrupts import run_to_end

    return run_to_end(_run_and_report(arguments, cases))


def _tell_nothing(paths: list[str]) -> None:
    """Says what would be a test in manifests, and in texts."""
    from tamis.server.cli.example_runs import TEXT_SUFFIXES

    texts = [path for path in paths if path.endswith(TEXT_SUFFIXES) and not os.path.isdir(path)]
    rest = [path for path in paths if path not in texts]
    if texts:
        warn(f"no call in {', '.join(texts)}; a call with what is expected of it is a test (docs/editors/testing.md)")
    if rest:
        warn(f"no examples in the manifests of {', '.join(rest)}; `examples` in a manifest are its tests")


async def _run_and_report(arguments: argparse.Namespace, cases: list[Case]) -> int:
    verdicts = await _run(arguments, cases)
    if arguments.json:
        print_json(_report(verdicts))
    if arguments.junit:
        from tamis.server.cli.example_runs import junit_xml

        try:
            Path(arguments.junit).write_text(junit_xml(verdicts), encoding="utf-8", errors="replace")
        except OSError as error:
            warn(f"cannot write '{arguments.junit}': {error.strerror}")
            return 2
    return 1 if any(verdict.outcome == "failed" for verdict in verdicts) else 0


async def _run(arguments: argparse.Namespace, cases: list[Case]) -> list[Verdict]:
    from tamis.server.cli.asking import always, terminal_ask
    from tamis.server.cli.example_runs import run_cases
    from tamis.server.cli.interrupts import cancel_on_interrupt

    jobs = arguments.jobs or min(MAX_JOBS, os.cpu_count() or 1)
    verdicts: list[Verdict] = []
    paint = Paint(sys.stdout)
    ask = always if arguments.yes else terminal_ask()
    cancelled = cancel_on_interrupt()
    async for verdict in run_cases(cases, ask=ask, jobs=jobs, timeout_ms=arguments.timeout_ms, cancelled=cancelled):
        verdicts.append(verdict)
        if not arguments.json:
            _show(verdict, paint)
    if not arguments.json:
        _summary(verdicts, paint)
    return verdicts


_WORDS = {"passed": ("32", "pass"), "failed": ("31", "FAIL"), "skipped": ("33", "skip")}


def _show(verdict: Verdict, paint: Paint) -> None:
    colour, word = _WORDS[verdict.outcome]
    case = verdict.case
    tool = f"{case.tool_id}@{case.version}" if case.version else case.tool_id
    number = f" {case.number}" if case.number and case.text is None else ""
    name = case.name if len(case.name) <= 90 else case.name[:89] + "…"
    time = f" ({verdict.duration_ms:.0f} ms)" if verdict.result is not None else ""
    why = f" - {verdict.reason}" if verdict.reason else ""
    write_line(paint(colour, word), "  ", paint("1", tool), f"{number}  {name}{time}{why}")
    if verdict.outcome == "failed":
        place = os.path.relpath(case.path) if case.path.startswith(os.getcwd() + os.sep) else case.path
        where = (
            f":{case.text.line}" if case.text is not None else f", /examples/{case.number - 1}" if case.number else ""
        )
        write_line(f"        in {place}{where}")
        for detail in verdict.details:
            write_line(f"        {detail}")


def _summary(everything: list[Verdict], paint: Paint) -> None:
    # a fault in the settings, or in a manifest, is a row that fails, and no example
    verdicts = [verdict for verdict in everything if verdict.case.is_test]
    lost = sum(1 for verdict in everything if not verdict.case.is_test and not verdict.case.is_settings)
    outcomes = [verdict.outcome for verdict in verdicts]
    tools = len({(verdict.case.tool_id, verdict.case.version) for verdict in verdicts})
    parts = [
        f"{outcomes.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped") if outcomes.count(outcome)
    ]
    what = "call" if any(verdict.case.text is not None for verdict in verdicts) else "example"
    text = f"{len(outcomes)} {what}{'' if len(outcomes) == 1 else 's'} of {tools} tool{'' if tools == 1 else 's'}"
    faulty = f"; {lost} manifest{' has' if lost == 1 else 's have'} an error" if lost else ""
    faulty += "; the settings have a fault" if any(verdict.case.is_settings for verdict in everything) else ""
    colour = "31" if "failed" in outcomes or faulty else "33" if "skipped" in outcomes else "32"
    write_line(paint(colour, f"{text}: {', '.join(parts) or 'nothing to run'}{faulty}"))


def _report(verdicts: list[Verdict]) -> dict[str, Any]:
    from msgspec import UNSET

    outcomes = [verdict.outcome for verdict in verdicts]
    tests: list[dict[str, Any]] = []
    for verdict in verdicts:
        case, result = verdict.case, verdict.result
        test: dict[str, Any] = {
            "toolId": case.tool_id,
            "version": case.version,
            "path": case.path,
            "example": case.number - 1 if case.number and case.text is None else None,
            "description": case.name,
            "outcome": verdict.outcome,
            "durationMs": verdict.duration_ms,
        }
        if case.text is not None:
            test["line"] = case.text.line
        if verdict.reason:
            test["reason"] = verdict.reason
        if verdict.details:
            test["details"] = list(verdict.details)
        if case.example is not None and case.example.expected_output is not UNSET:
            test["expectedOutput"] = case.example.expected_output
        if result is not None:
            test["status"] = result.status
            if result.output is not UNSET:
                test["output"] = result.output
            if result.error is not UNSET:
                test["error"] = result.error
        tests.append(test)
    return {
        "tests": tests,
        "passed": outcomes.count("passed"),
        "failed": outcomes.count("failed"),
        "skipped": outcomes.count("skipped"),
    }
