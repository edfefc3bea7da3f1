"""List the registered tools and the manifests that could not be registered."""

from __future__ import annotations

import argparse
import os
import sys

from tamis.server.cli.inputs import Paint, UsageError, print_json, root_of, warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis list``."""
    parser.add_argument("--json", action="store_true", help="print the tool/list result")
    parser.add_argument("--tag", action="append", default=[], help="only tools with this tag (several: all of them)")
    parser.add_argument("--query", help="only tools whose id, name, description or tags hold this text")


def run(arguments: argparse.Namespace) -> int:
    """Prints the list; a file that could not be registered is said on stderr."""
    try:
        root = root_of(arguments.root)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.runtime import Runtime, ToolFilter

    runtime = Runtime(root)
    listed = runtime.list_tools(ToolFilter(tags=arguments.tag, query=arguments.query), full=False)
    for problem in runtime.loaded.problems:
        warn(problem)
    for error in runtime.registry.errors:
        place = f":{error.line}:{error.column}" if error.line else ""
        warn(f"{_short(error.path, root)}{place}: not registered: {error.message}")
    for conflict in runtime.registry.conflicts:
        warn(f"{_short(conflict.dropped, root)}: {conflict.message}")
    if arguments.json:
        print_json(listed)
        return 0
    paint = Paint(sys.stdout)
    width = max((len(tool.tool_id) for tool in listed.tools), default=0)
    for tool in listed.tools:
        mark = (
            ""
            if tool.available and tool.callable
            else paint("33", f" [not available: {tool.reason}]" if not tool.available else " [agentCallable: false]")
        )
        first = tool.description.split("\n")[0]
        text = first if len(first) <= 90 else first[:89] + "…"
        print(f"{paint('1', tool.tool_id.ljust(width))}  {tool.version:<8} {text}{mark}")
    if not listed.tools and (arguments.tag or arguments.query):
        warn("no registered tool fits --tag and --query")
    elif not listed.tools:
        print(f"no tools below {root}; `tools` in tamis.toml names the folders to search")
    return 0


def _short(path: str, root: object) -> str:
    return os.path.relpath(path, str(root)) if path.startswith(f"{root}{os.sep}") else path
