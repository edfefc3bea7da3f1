"""Parse a text and run its calls in order, each in the sandbox; print the observations."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tamis.server.cli.asking import ask_for_grants, ask_for_trust, positive
from tamis.server.cli.inputs import PROTOCOL_HELP, UsageError, check_protocol, read_text, root_of, tell_settings
from tamis.server.cli.outputs import Paint, print_json, warn, write_document, write_note

if TYPE_CHECKING:
    from tamis.protocols.contract import ExecutionResult
    from tamis.protocols.model import Document
    from tamis.server.runtime.runtime import Runtime


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis run``."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text; - or nothing is stdin")
    parser.add_argument("--protocol", default="auto", metavar="P", help=PROTOCOL_HELP)
    parser.add_argument("--cut-off", action="store_true", help="the text is known to be cut off at its end")
    parser.add_argument(
        "--yes",
        "-y",
        action="store_true",
        help="run without asking, within the policy; a terminal asks y (once), s (to this tool, the rest of this command), n (no), q (no to all)",
    )
    parser.add_argument("--json", action="store_true", help="print the tool/executeText result")
    parser.add_argument("--dry-run", action="store_true", help="check everything, run nothing")
    parser.add_argument(
        "--timeout-ms", type=positive, metavar="MS", help="wall clock of each call; lowers the operator's"
    )
    parser.add_argument("--mode", choices=["sequential", "parallel"], default="sequential")
    parser.add_argument(
        "--on-error", choices=["stop", "continue"], help="override what a failed call does to its block"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the calls of the text; prints each observation as soon as it is there."""
    try:
        root = root_of(arguments.root)
        check_protocol(arguments.protocol)
        text = read_text(arguments.file)
    except UsageError as error:
        warn(str(error))
        return 2
    ask_for_trust(root, stdin_is_text=arguments.file == "-")
    from tamis.server.cli.interrupts import run_to_end
    from tamis.server.runtime.execution.text import plan_text
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    tell_settings(runtime.loaded, runtime.problems)
    document = runtime.read(text, arguments.protocol, complete=not arguments.cut_off)
    called = [runtime.registry.get(planned.call.tool_id) for planned in plan_text(document)]
    may_ask = not (arguments.yes or arguments.dry_run or arguments.file == "-")
    ask_for_grants(runtime, called, may_ask=may_ask)
    return run_to_end(_run(arguments, runtime, document, text))


def _show_observation(text: str) -> None:
    write_document(text + "\n", of_tool=True)


def _print_places(result: ExecutionResult, name: str) -> None:
    """Where in the text the problems of a call stand; the observation says what they are."""
    from tamis.server.cli.findings import shown_code

    details = result.error.details if result.error else None
    for problem in (details.errors or []) if details else []:
        if problem.range:
            start = problem.range.start
            shown = "<stdin>" if name == "-" else name
            place = f"{shown}:{start.line + 1}:{start.character + 1}"
            write_note(f"{place}: error: {problem.message} [{shown_code(problem.code)}]")


def _other_protocol(runtime: Runtime, text: str) -> str:
    """The protocol that would find calls in a text in which none was found, as the end of a sentence."""
    from tamis.protocols.plugins import BUILT_IN, SHIPPED, extras_of
    from tamis.server.runtime.settings.protocols import load_protocol

    for name in SHIPPED:
        if name in BUILT_IN:
            continue
        if load_protocol(name) == "" and any(call.executable for call in runtime.read(text, name).calls):
            whole = extras_of(name).whole_text
            also = "" if whole else f' (or, for every text, `also = ["{name}"]` under [protocol] in tamis.toml)'
            return f"; read as {name} it holds one: --protocol {name}{also}"
    return ""


async def _run(arguments: argparse.Namespace, runtime: Runtime, document: Document, text: str) -> int:
    from tamis.server.cli.asking import always, asked_here, exit_code, tell_beside, terminal_ask, told_progress
    from tamis.server.cli.findings import print_findings
    from tamis.server.cli.interrupts import cancel_on_interrupt
    from tamis.server.runtime.agents.step import execute_noted_text
    from tamis.server.runtime.execution.text import TextOptions, has_unread, plan_text
    from tamis.server.runtime.observe.trail import Caller

    paint = Paint(sys.stderr)
    name = "<stdin>" if arguments.file == "-" else arguments.file
    found = [] if arguments.json else print_findings(document, name)
    if not plan_text(document) and not has_unread(document):
        warn(f"no call found in the text{_other_protocol(runtime, text)}")

    told: set[str] = set()

    def show(result: ExecutionResult) -> None:
        if arguments.json:
            return
        _print_places(result, arguments.file)
        _show_observation(result.observation)
        layers = f", {result.sandbox.backend}" if result.sandbox is not None else ""
        colour = "32" if result.status == "success" else "31"
        write_note(paint(colour, f"  {result.tool_id}: {result.status}, {result.duration_ms:.0f} ms{layers}"))
        tell_beside(result, told)

    executed = await execute_noted_text(
        document,
        runtime.call_context(
            ask=always if arguments.yes else terminal_ask(),
            on_progress=told_progress(),
            cancelled=cancel_on_interrupt(),
            caller=Caller("cli"),
        ).having(**asked_here(arguments)),
        TextOptions(
            mode=arguments.mode,
            on_error=arguments.on_error,
            timeout_ms=arguments.timeout_ms,
            dry_run=arguments.dry_run,
            ask=not arguments.yes and not arguments.dry_run,
        ),
        show,
        None if arguments.json else _show_observation,
    )
    if not arguments.yes and any(result.status == "approvalUnavailable" for result in executed.results):
        warn("there is no terminal to ask on; --yes runs the calls without asking, within the policy")
    if any(result.error and result.error.type == "UnknownTool" for result in executed.results):
        warn("`tamis list` shows the registered tools")
    if arguments.json:
        print_json(executed)
    elif executed.explanation:
        for line in executed.explanation.split("\n"):
            if not any(sentence in line for sentence in found):
                warn(line)
    return exit_code(executed.results, unread=has_unread(document))
