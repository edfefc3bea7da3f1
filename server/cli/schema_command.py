"""Print the description of the JSON-RPC contract, the JSON Schema of manifests, or the XML Schema of calls, for other programs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import warn, write_document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis schema``."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--openrpc", action="store_true", help="the OpenRPC document (what rpc.discover gives)")
    which.add_argument("--json-schema", action="store_true", help="JSON Schemas (2020-12) of all params and results")
    which.add_argument("--typescript", action="store_true", help="TypeScript declarations of the same")
    which.add_argument("--manifest", action="store_true", help="the JSON Schema (2020-12) of *.tool.json")
    which.add_argument("--action", action="store_true", help="an XML Schema (1.0) of the tools' ACTION blocks")
    parser.add_argument(
        "tools",
        nargs="*",
        metavar="TOOL_ID",
        help="of --action: ids or aliases (default: every tool that may be called)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the one that is asked for; only ``--action`` looks into a folder, and nothing needs a sandbox."""
    try:
        if arguments.tools and not arguments.action:
            raise UsageError("TOOL_ID goes with --action")
        if arguments.action:
            return _action(root_of(arguments.root), arguments.tools)
    except UsageError as error:
        warn(str(error))
        return 2
    if arguments.manifest:
        from tamis.protocols.manifest.json_schema import published

        write_document(json.dumps(published("2020-12"), ensure_ascii=False, indent=2) + "\n")
        return 0
    from tamis.server.rpc.described import files

    if arguments.openrpc:
        text = files.openrpc_text()
    elif arguments.json_schema:
        text = files.json_schema_text()
    else:
        text = files.typescript_text()
    write_document(text)
    return 0


def _action(root: Path, names: list[str]) -> int:
    from tamis.protocols.export.xml_schema import action_schema
    from tamis.server.cli.export_command import chosen, say_losses
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    for problem in runtime.loaded.problems:
        warn(problem)
    tools, failed = chosen(runtime, names)
    if failed:
        return 1
    schema = action_schema([tool.manifest for tool in tools])
    for tool_id, losses in schema.losses.items():
        say_losses(tool_id, losses)
    write_document(schema.text)
    return 0
