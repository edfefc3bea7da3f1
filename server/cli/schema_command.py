"""Print the description of the JSON-RPC contract, or the JSON Schema of manifests, for other programs."""

from __future__ import annotations

import argparse
import json
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis schema``."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--openrpc", action="store_true", help="the OpenRPC document (what rpc.discover gives)")
    which.add_argument("--json-schema", action="store_true", help="JSON Schemas (2020-12) of all params and results")
    which.add_argument("--typescript", action="store_true", help="TypeScript declarations of the same")
    which.add_argument("--manifest", action="store_true", help="the JSON Schema (2020-12) of *.tool.json")


def run(arguments: argparse.Namespace) -> int:
    """Prints the one that is asked for; needs no folder and no sandbox."""
    if arguments.manifest:
        from tamis.protocols.manifest.json_schema import published

        sys.stdout.write(json.dumps(published("2020-12"), ensure_ascii=False, indent=2) + "\n")
        return 0
    from tamis.server.rpc.described import files

    if arguments.openrpc:
        text = files.openrpc_text()
    elif arguments.json_schema:
        text = files.json_schema_text()
    else:
        text = files.typescript_text()
    sys.stdout.write(text)
    return 0
