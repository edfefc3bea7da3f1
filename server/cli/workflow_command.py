"""Workflows: list them, draw one, run one with the state of every node."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tamis.server.cli.asking import ask_for_grants, ask_for_trust, positive
from tamis.server.cli.inputs import UsageError, root_of, tell_settings
from tamis.server.cli.outputs import Paint, print_json, warn, write_document, write_line, write_note

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.workflows import WorkflowTool

MARKS = {"success": "32", "skipped": "2", "pending": "2", "cancelled": "33"}
"""The colours of states; any other is a failure's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis workflow``."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "graph", "run"), help="list (the default), draw, or run"
    )
    parser.add_argument(
        "workflow", nargs="?", metavar="WORKFLOW", help="its id, with or without workflow:, or its path"
    )
    parser.add_argument(
        "--args", default="{}", metavar="JSON", help="run: the inputs as a JSON object; @FILE or - reads them"
    )
    parser.add_argument("--format", choices=("mermaid", "svg"), default="mermaid", help="graph: what is drawn")
    parser.add_argument("--json", action="store_true", help="list, run: print the result as JSON")
    parser.add_argument("--dry-run", action="store_true", help="run: check everything, run nothing")
    parser.add_argument("--yes", "-y", action="store_true", help="run: without asking, where the policy asks")
    parser.add_argument("--timeout-ms", type=positive, metavar="MS", help="run: wall clock; lowers the operator's")


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked; 0 well, 1 the run failed, 2 wrong usage or no such workflow."""
    try:
        root = root_of(arguments.root)
        if (arguments.action == "list") != (arguments.workflow is None):
            raise UsageError(
                "list takes no workflow"
                if arguments.workflow
                else f"{arguments.action} needs a workflow; `tamis workflow list` shows them"
            )
        if arguments.action == "run":
            return _run(arguments)
        from tamis.server.runtime.runtime import Runtime

        runtime = Runtime(root)
        tell_settings(runtime.loaded)
        return (
            _graph(_find(arguments.workflow, runtime), arguments.format)
            if arguments.workflow
            else _list(runtime, as_json=arguments.json)
        )
    except UsageError as error:
        warn(str(error))
        return 2


def _find(name: str, runtime: Runtime) -> WorkflowTool:
    from tamis.protocols.suggest import best, hint
    from tamis.server.rpc.workflows import find
    from tamis.server.runtime.tools.workflows import WorkflowTool

    tool = find(name, runtime)
    if tool is None:
        ids = [tool.workflow.workflow_id for tool in runtime.registry.tools if isinstance(tool, WorkflowTool)]
        raise UsageError(f"no workflow '{name}'{hint(best(name, ids))} (`tamis workflow list` shows them)")
    return tool


def _list(runtime: Runtime, *, as_json: bool) -> int:
    from tamis.server.rpc.workflows import listed

    workflow_list = listed(runtime)
    if as_json:
        print_json(workflow_list)
        return 0
    paint = Paint(sys.stdout)
    width = max((len(workflow.workflow_id) for workflow in workflow_list.workflows), default=0)
    for workflow in workflow_list.workflows:
        about = f"  ({', '.join(workflow.inputs)}) → {', '.join(workflow.outputs) or 'nothing'}  {workflow.description.partition(chr(10))[0][:90]}"
        mark = () if workflow.available else (paint("33", f" [not available: {workflow.reason}]"),)
        write_line(paint("1", workflow.workflow_id.ljust(width)), about, *mark)
    if not workflow_list.workflows:
        write_line("no workflows; `workflows` in tamis.toml names the folders to search")
    return 0


def _graph(tool: WorkflowTool, form: str) -> int:
    from tamis.server.rpc.workflows import drawn

    write_document(drawn(tool.workflow, form))
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from tamis.server.cli import call_command
    from tamis.server.cli.interrupts import run_to_end

    args = call_command.args_of(arguments.args)
    root = root_of(arguments.root)
    ask_for_trust(root, stdin_is_text=arguments.args in ("-", "@-"))
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    tell_settings(runtime.loaded)
    tool = _find(arguments.workflow, runtime)
    arguments.tool = tool.tool_id
    ask_for_grants(runtime, [tool], may_ask=not (arguments.yes or arguments.dry_run or arguments.args in ("-", "@-")))
    part = runtime.parts.workflows
    part.expect(call_command.CALL_ID)
    code = run_to_end(call_command.run_call(arguments, runtime, args))
    record = part.take(call_command.CALL_ID)
    paint = Paint(sys.stderr)
    for step in record.steps if record is not None else ():
        took = f"  {step.duration_ms:.0f} ms" if isinstance(step.duration_ms, float) else ""
        why = f"  {step.error.message}" if step.error else ""
        write_note(
            paint(MARKS.get(step.status, "31"), f"{step.status:<9}"), f" {step.node_id} ({step.type}){took}{why}"
        )
    return code
