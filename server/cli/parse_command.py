"""Print the calls found in a text, its repair or its explanation, as JSON; exit code 1 when something was rejected."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tamis.server.cli.inputs import PROTOCOL_HELP, UsageError, check_protocol, print_json, read_text, root_of, warn

if TYPE_CHECKING:
    from tamis.protocols.model import Document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis parse``."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text; - or nothing is stdin")
    parser.add_argument("--protocol", default="auto", metavar="P", help=PROTOCOL_HELP)
    parser.add_argument("--cut-off", action="store_true", help="the text is known to be cut off at its end")
    parser.add_argument("--no-tools", action="store_true", help="do not let the registered tools guide the reading")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--repair", action="store_true", help="print the repaired text and its edits (tool/repair)")
    answer.add_argument(
        "--explain", action="store_true", help="print what was assumed, and other readings (tool/explain)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads the text and prints the ``tool/parse`` result."""
    try:
        root = root_of(arguments.root)
        check_protocol(arguments.protocol)
        text = read_text(arguments.file)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.protocols.wire import parse_result
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    for problem in runtime.problems:
        warn(problem)

    def read(text: str) -> Document:
        return runtime.read(text, arguments.protocol, complete=not arguments.cut_off, guided=not arguments.no_tools)

    document = read(text)
    result = parse_result(document, None)
    if arguments.repair or arguments.explain:
        from tamis.protocols import explain

        print_json((explain.repair if arguments.repair else explain.explain)(document, read, None))
    else:
        print_json(result)
    rejected = any(diagnostic.severity == "error" for diagnostic in result.diagnostics)
    return 1 if rejected else 0
