"""Print the calls found in a text, its repair or its explanation, as JSON; exit code 1 when something was rejected.

With --jsonl FILE is a log of messages, a JSON record a line (or Parquet): a result a line comes out, in order; exit code 1 when a record
could not be read.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tamis.server.cli import logs
from tamis.server.cli.inputs import (
    PROTOCOL_HELP,
    TooLargeError,
    UsageError,
    check_protocol,
    pieces_of,
    read_text,
    root_of,
    tell_settings,
)
from tamis.server.cli.outputs import print_json, warn, write_lines

if TYPE_CHECKING:
    from tamis.protocols.model import Document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis parse``."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text; - or nothing is stdin")
    parser.add_argument("--protocol", default="auto", metavar="P", help=PROTOCOL_HELP)
    parser.add_argument("--cut-off", action="store_true", help="the text is known to be cut off at its end")
    parser.add_argument("--no-tools", action="store_true", help="do not let the registered tools guide the reading")
    parser.add_argument("--jsonl", action="store_true", help="a record a line in, a result a line out, of any length")
    logs.add_arguments(parser)
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--repair", action="store_true", help="print the repaired text and its edits (tool/repair)")
    answer.add_argument(
        "--explain", action="store_true", help="print what was assumed, and other readings (tool/explain)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads the text and prints the ``tool/parse`` result."""
    if arguments.jsonl:
        return _parse_log(arguments)
    try:
        if logs.used(arguments):
            raise UsageError(f"{', '.join(logs.used(arguments))}: only with --jsonl")
        root = root_of(arguments.root)
        check_protocol(arguments.protocol)
        text = read_text(arguments.file)
    except TooLargeError as error:
        return _parse_pieces(arguments, error)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.protocols.wire import parse_result
    from tamis.server.runtime.runtime import Runtime

    runtime = Runtime(root)
    tell_settings(runtime.loaded, runtime.problems)

    def read(text: str) -> Document:
        return runtime.read(text, arguments.protocol, complete=not arguments.cut_off, guided=not arguments.no_tools)

    document = read(text)
    result = parse_result(document, None)
    if arguments.repair or arguments.explain:
        from tamis.protocols import repair

        print_json((repair.repair if arguments.repair else repair.explain)(document, read, None))
    else:
        print_json(result)
    rejected = any(diagnostic.severity == "error" for diagnostic in result.diagnostics)
    return 1 if rejected else 0


def _parse_log(arguments: argparse.Namespace) -> int:
    """A ``ParseResult`` a line for a record a line."""
    try:
        if arguments.repair or arguments.explain:
            raise UsageError("--repair and --explain are for one text, not for --jsonl")
        root = root_of(arguments.root)
        check_protocol(arguments.protocol)
        texts = logs.texts_of(arguments.field)
        read = logs.Logs(arguments, texts)
        from tamis.protocols.api import Reader
        from tamis.server.logs.parsing import Parse, lost_results
        from tamis.server.runtime.runtime import Runtime

        runtime = Runtime(root)
        tell_settings(runtime.loaded, runtime.problems)
        options = runtime.read_options(complete=not arguments.cut_off, guided=not arguments.no_tools)
        work = Parse(texts, Reader(arguments.protocol, options))
        for parsed in read.read([arguments.file], work, lost_results):
            write_lines(parsed.out)
    except UsageError as error:
        warn(str(error))
        return 2
    return 1 if read.broken else 0


def _parse_pieces(arguments: argparse.Namespace, error: TooLargeError) -> int:
    """The calls of a text that is too long for one result, each written when it is certain; in bounded memory."""
    import msgspec

    from tamis.protocols.api import Summary, read_pieces
    from tamis.server.runtime.runtime import Runtime

    if arguments.repair or arguments.explain or arguments.cut_off:
        warn(f"{error}; --repair, --explain and --cut-off are for shorter texts")
        return 2
    warn(f"{error}: only its calls are printed, and where the end left something undecided")
    runtime = Runtime(root_of(arguments.root))
    tell_settings(runtime.loaded, runtime.problems)
    options = runtime.read_options(guided=not arguments.no_tools)
    retracted: list[str] = []
    separator = b'{"calls":[\n'
    undecided = False
    for piece in read_pieces(pieces_of(error), arguments.protocol, options):
        if isinstance(piece, str):
            retracted.append(piece)
        elif isinstance(piece, Summary):
            begin = b"" if separator == b",\n" else separator
            undecided = piece.undecided is not None
            rest = {"retracted": retracted, "characters": piece.characters, "undecided": piece.undecided}
            write_lines(begin + b"\n]," + msgspec.json.encode(rest)[1:] + b"\n")
        else:
            write_lines(separator + msgspec.json.encode(piece))
            separator = b",\n"
    return 1 if undecided else 0
