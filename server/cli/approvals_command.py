"""The answers of persons that hold for later calls in this root: list them, and take them back."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from tamis.server.cli.inputs import UsageError, root_of, tell_settings
from tamis.server.cli.outputs import print_json, warn, write_line

if TYPE_CHECKING:
    from tamis.protocols.contract import StandingApproval
    from tamis.server.runtime.runtime import Runtime

_WORDS = {"allow_always": "always allowed", "reject_always": "never allowed"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis approvals``."""
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "revoke"), help="list them (the default), or revoke"
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="revoke: the answers with these ids")
    parser.add_argument("--tool", action="append", default=[], metavar="TOOL_ID", help="only answers about this tool")
    parser.add_argument("--all", action="store_true", help="revoke: all of them")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked; 0 well, 1 an answer that was named does not hold here, 2 wrong usage."""
    ids, tools = set[str](arguments.ids), set[str](arguments.tool)
    try:
        root = root_of(arguments.root)
        if arguments.action == "list" and (ids or arguments.all):
            raise UsageError("ids and --all are for revoke; --tool narrows the list")
        if arguments.action == "revoke" and bool(ids) + bool(tools) + arguments.all != 1:
            raise UsageError("revoke takes ids, or --tool, or --all")
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    tell_settings(runtime.loaded)
    if arguments.action == "list":
        return asyncio.run(_list(runtime, tools, as_json=arguments.json))
    return asyncio.run(_revoke(runtime, ids, tools, as_json=arguments.json))


async def _list(runtime: Runtime, tools: set[str], *, as_json: bool) -> int:
    try:
        standing_approvals = await runtime.parts.approvals.standing.listed()
    finally:
        await runtime.close()
    shown = [entry for entry in standing_approvals if not tools or entry.tool_id in tools]
    if as_json:
        print_json({"approvals": shown})
        return 0
    for entry in shown:
        agent = f", agent {entry.agent_id}" if entry.agent_id else ""
        write_line(f"{entry.id}  {_WORDS.get(entry.kind, entry.kind)}  {entry.tool_id} {entry.version}{agent}")
        write_line(f"{'':{len(entry.id)}}  since {entry.created_at[:19]}Z")
    if not shown:
        write_line("no answer holds here" + (" for that" if tools else ""))
    return 0


async def _revoke(runtime: Runtime, ids: set[str], tools: set[str], *, as_json: bool) -> int:
    standing_approvals: list[StandingApproval] = []

    def wanted(entry: StandingApproval) -> bool:
        fits = (not ids and not tools) or entry.id in ids or entry.tool_id in tools
        if fits:
            standing_approvals.append(entry)
        return fits

    try:
        gone = await runtime.parts.approvals.standing.revoke(wanted)
    finally:
        await runtime.close()
    missing = [
        *sorted(ids - {entry.id for entry in standing_approvals}),
        *sorted(tools - {entry.tool_id for entry in standing_approvals}),
    ]
    for name in missing:
        warn(
            f"no answer {'about' if name in tools else 'with the id'} '{name}' holds here; `tamis approvals` lists them"
        )
    if as_json:
        print_json({"revoked": gone})
    else:
        write_line(f"{len(gone)} answer{'' if len(gone) == 1 else 's'} revoked")
    return 1 if missing else 0
