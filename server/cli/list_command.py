"""List the registered tools and the manifests that could not be registered."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.server.cli.inputs import UsageError, root_of, short_path, tell_settings, tell_unregistered
from tamis.server.cli.outputs import Paint, Painted, print_json, warn, write_line, write_rows

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.tool import Tool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis list``."""
    parser.add_argument("--json", action="store_true", help="print the tool/list result")
    parser.add_argument("--tag", action="append", default=[], help="only tools with this tag (several: all of them)")
    parser.add_argument("--namespace", help="only tools whose id begins with this and a colon")
    parser.add_argument(
        "--query", help="only tools that these words find in ids, names, tags, descriptions and parameters; best first"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the list; a file that could not be registered is said on stderr."""
    try:
        root = root_of(arguments.root)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.store.collector import uncollected

    with uncollected():
        code = _print(arguments, root)
        gc.freeze()  # the process ends: nothing that was read is garbage to be looked for, now or on the way out
    return code


def _print(arguments: argparse.Namespace, root: Path) -> int:
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.tools.listing import ToolFilter

    runtime = Runtime(root)
    wanted = ToolFilter(tags=arguments.tag, query=arguments.query, namespace=arguments.namespace)
    tools = runtime.listed(wanted)
    tell_settings(runtime.loaded)
    tell_unregistered(runtime)
    for conflict in runtime.registry.conflicts:
        warn(f"{short_path(conflict.dropped, root)}: {conflict.message}")
    if arguments.json:
        from tamis.protocols.contract import ToolList

        print_json(ToolList(tools=runtime.summaries(wanted), etag=runtime.etag))
        return 0
    paint = Paint(sys.stdout)
    write_rows(_rows(tools, runtime, paint))
    asked = [f"--tag '{tag}'" for tag in arguments.tag]
    asked += [f"--namespace '{arguments.namespace}'"] if arguments.namespace is not None else []
    asked += [f"--query '{arguments.query}'"] if (arguments.query or "").strip() else []
    if not tools and asked and runtime.registry.tools:
        together = " together" if len(asked) > 1 else ""
        warn(f"no registered tool fits {' and '.join(asked)}{together}")
    elif not tools:
        write_line(f"no tools below {root}; `tools` in tamis.toml names the folders to search")
    return 0


def _rows(tools: Sequence[Tool], runtime: Runtime, paint: Paint) -> Iterator[tuple[str | Painted, ...]]:
    from tamis.server.runtime.tools.listing import judged

    width = max((len(tool.brief.tool_id) for tool in tools), default=0)
    ready: set[object] = set()
    for tool in tools:
        brief = tool.brief
        first = brief.description.partition("\n")[0]
        text = first if len(first) <= 90 else first[:89] + "…"
        name, what = brief.tool_id.ljust(width), f"  {brief.version:<8} {text}"
        row = (paint("1", name), what) if paint.on else (name + what,)
        reason = runtime.why_not(tool, ready)
        if reason or not tool.available:
            yield *row, paint("33", f" [not available: {reason}]")
        elif not runtime.may_call(tool):
            kept = judged(tool, runtime.agent, runtime.registry)
            yield *row, paint("33", f" [not for agents: {kept.reason}]" if kept is not None else " [not for agents]")
        else:
            yield row
