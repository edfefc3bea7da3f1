"""Rewrite the calls of a text in another form; what is lost is said on stderr, and exit code 1 says that a call was left."""

from __future__ import annotations

import argparse

from tamis.protocols.plugins import extras_of
from tamis.server.cli.inputs import PROTOCOL_HELP, UsageError, check_protocol, read_text, root_of, tell_settings
from tamis.server.cli.outputs import warn, write_document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis convert``."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text; - or nothing is stdin")
    parser.add_argument(
        "--to",
        required=True,
        metavar="FORM",
        help="action, tam, vcp, json, hermes, openai, anthropic, mcp, or another protocol",
    )
    parser.add_argument("--from", dest="protocol", default="auto", metavar="FORM", help=PROTOCOL_HELP)
    parser.add_argument(
        "--shape", choices=["tag", "inputs"], help="the shape of ACTION (default: what carries the calls)"
    )
    parser.add_argument("--no-tools", action="store_true", help="do not let the registered tools type the values")


def run(arguments: argparse.Namespace) -> int:
    """Prints the converted text."""
    try:
        root = root_of(arguments.root)
        check_protocol(arguments.protocol)
        _check(arguments.to)
        text = read_text(arguments.file)
    except UsageError as error:
        warn(str(error))
        return 2
    from tamis.server.runtime.runtime import Runtime
    from tamis.server.runtime.texts.converting import UNREAD_HERMES, convert_text, unread_hermes

    if arguments.shape is not None and len(extras_of(arguments.to).shapes) < 2:
        warn(f"--shape is of ACTION; it means nothing with --to {arguments.to}")
    runtime = Runtime(root)
    tell_settings(runtime.loaded, runtime.problems)
    conversion = convert_text(
        runtime,
        text,
        arguments.to,
        protocol=arguments.protocol,
        shape=arguments.shape,
        guided=not arguments.no_tools,
    )
    write_document(conversion.text)
    for loss in conversion.losses:
        # An empty pointer is the whole text, as in ``tool/convert``.
        warn(f"{loss.path}: {loss.message} [{loss.code}]" if loss.path else f"{loss.message} [{loss.code}]")
    if unread_hermes(text, arguments.protocol, runtime.also):
        warn(UNREAD_HERMES)
    return 1 if conversion.refused else 0


def _check(to: str) -> None:
    from tamis.server.runtime.texts.converting import check_target

    if problem := check_target(to):
        raise UsageError(f"--to: {problem}")
