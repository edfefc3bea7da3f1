"""Print the calls found in a text, as JSON; exit code 1 when something was rejected."""

from __future__ import annotations

import argparse

from tamis.server.cli.inputs import UsageError, print_json, read_text, root_of, warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis parse``."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text; - or nothing is stdin")
    parser.add_argument("--protocol", choices=["auto", "action", "tam", "vcp"], default="auto")
    parser.add_argument("--cut-off", action="store_true", help="the text is known to be cut off at its end")
    parser.add_argument("--no-tools", action="store_true", help="do not let the registered tools guide the reading")


def run(arguments: argparse.Namespace) -> int:
    """Reads the text and prints the ``tool/parse`` result."""
    try:
        root = root_of(arguments.root)
        text = read_text(arguments.file)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.runtime import Runtime

    result = Runtime(root).parse(
        text, arguments.protocol, complete=not arguments.cut_off, guided=not arguments.no_tools
    )
    print_json(result)
    rejected = any(diagnostic.severity == "error" for diagnostic in result.diagnostics)
    return 1 if rejected else 0
