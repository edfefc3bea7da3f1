"""Run one tool with JSON arguments, in the sandbox."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tamis.server.cli.asking import ask_for_grants, ask_for_trust, positive
from tamis.server.cli.inputs import UsageError, read_text, root_of, tell_settings
from tamis.server.cli.outputs import print_json, warn, write_document, write_note, write_value

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime

SHOWN_LOG_LINES = 50
CALL_ID = "call-1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis call``."""
    parser.add_argument("tool", metavar="TOOL_ID", help="the tool's id, an alias, or id@version")
    parser.add_argument(
        "--args", default="{}", metavar="JSON", help="the arguments as a JSON object; @FILE or - reads them"
    )
    parser.add_argument("--json", action="store_true", help="print the ExecutionResult")
    parser.add_argument("--dry-run", action="store_true", help="check everything, run nothing")
    parser.add_argument(
        "--yes",
        "-y",
        action="store_true",
        help="run without asking, where the policy asks; a terminal asks y (once), s (to this tool, the rest of this command), n (no), q (no to all)",
    )
    parser.add_argument("--timeout-ms", type=positive, metavar="MS", help="wall clock; lowers the operator's")


def run(arguments: argparse.Namespace) -> int:
    """Runs the tool; prints its output, or the observation of what went wrong."""
    try:
        root = root_of(arguments.root)
        args = args_of(arguments.args)
    except UsageError as error:
        warn(str(error))
        return 2
    ask_for_trust(root, stdin_is_text=arguments.args in ("-", "@-"))
    from tamis.server.cli.interrupts import run_to_end
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    tell_settings(runtime.loaded)
    may_ask = not (arguments.yes or arguments.dry_run or arguments.args in ("-", "@-"))
    ask_for_grants(runtime, [runtime.registry.get(arguments.tool)], may_ask=may_ask)
    return run_to_end(run_call(arguments, runtime, args))


def args_of(text: str) -> dict[str, Any]:
    """The arguments of ``--args``. Raises ``UsageError``."""
    import msgspec

    where = ""
    if text == "-" or text.startswith("@"):
        name = text.removeprefix("@")
        where = "standard input, " if name == "-" else f"'{name}', "
        text = read_text(name)
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise UsageError(f"--args: {_not_args(text, where)}; {RIGHT_ARGS}") from None


RIGHT_ARGS = """the arguments are one JSON object, such as '{"text": "hello", "count": 2}'"""


_NOT_HERE = {
    "MF525": "comments are not JSON",
    "MF526": "a comma stands before a bracket",
    "MF527": "this is half of a surrogate pair, which no text holds; write both halves, or the character itself",
}
"""What a manifest may have, in words that fit arguments."""


def _not_args(text: str, where: str) -> str:
    """What is wrong with arguments, and where it stands in them."""
    from tamis.protocols.catalogue import message, severity
    from tamis.protocols.jsontext.parse import parse_json
    from tamis.protocols.positions import LineIndex

    tree = parse_json(text, comments=False)
    broken = next((diag for diag in tree.diagnostics if severity(diag) == "error"), None)
    if broken is None and (tree.root is None or tree.root.kind != "object"):
        return (
            f"{where}line 1, column 1: this is no object" if tree.root is not None else f"{where}nothing stands there"
        )
    # JSON may hold half of a surrogate pair; a text that goes to a script or a server cannot
    broken = broken or next((diag for diag in tree.diagnostics if diag.code == "MF527"), None)
    if broken is None:
        return f"{where}it holds bytes that are no UTF-8"
    line, column = LineIndex(text).position(broken.span[0])
    return f"{where}line {line + 1}, column {column + 1}: {_NOT_HERE.get(broken.code) or message(broken)}"


def _shown_logs(lines: list[str], *, is_cut: bool) -> Iterator[str]:
    """The last lines of a log, after how many are left out; ``is_cut``: it has lost some already, nobody counted how many."""
    left = len(lines) - SHOWN_LOG_LINES
    if left > 0 and is_cut:
        yield f"… {left} lines and more left out (--json shows these)"
    elif left > 0:
        yield f"… {left} line{'s' if left > 1 else ''} left out (--json shows {'them' if left > 1 else 'it'})"
    elif is_cut:
        yield "… parts of the log are left out: it has more than is kept"
    yield from lines[-SHOWN_LOG_LINES:]


async def run_call(arguments: argparse.Namespace, runtime: Runtime, args: dict[str, Any]) -> int:
    """Runs one call and prints what came of it; gives the exit code."""
    from tamis.server.cli.asking import always, asked_here, exit_code, tell_beside, terminal_ask, told_progress
    from tamis.server.cli.interrupts import cancel_on_interrupt
    from tamis.server.runtime.calls.model import CallRequest
    from tamis.server.runtime.calls.outputs import is_own_line
    from tamis.server.runtime.execution.pipeline import execute
    from tamis.server.runtime.handlers.script.judge import UNSANDBOXED
    from tamis.server.runtime.observe.trail import Caller

    result = await execute(
        CallRequest(
            call_id=CALL_ID,
            name=arguments.tool,
            args=args,
            timeout_ms=arguments.timeout_ms,
            dry_run=arguments.dry_run,
        ),
        runtime.call_context(
            ask=always if arguments.yes else terminal_ask(),
            on_progress=told_progress(),
            cancelled=cancel_on_interrupt(),
            caller=Caller("cli"),
        ).having(**asked_here(arguments)),
    )
    if arguments.json:
        print_json(result)
    elif result.status == "success":
        write_value(result.output)
    else:
        write_document(result.observation + "\n", of_tool=True)
    if not arguments.json:
        # A failure's last words stand in its observation already.
        lines = [line for line in result.logs if not is_own_line(line)]
        for line in _shown_logs(lines, is_cut=result.logs_truncated) if result.status == "success" else ():
            write_note(line)
        if result.error and result.error.type == "UnknownTool":
            warn("`tamis list` shows the registered tools")
        if result.status == "approvalUnavailable":
            warn("there is no terminal to ask on; --yes runs the tool without asking, within the policy")
        # a value on standard output does not say it; an observation does (interface, Running)
        if result.status == "success" and result.sandbox is not None and result.sandbox.backend == UNSANDBOXED:
            warn(f"no sandbox held this run of {result.tool_id}")
        tell_beside(result, set())
    return exit_code([result])
