"""Serve editors as a language server on stdio."""

from __future__ import annotations

import argparse

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import warn, write_note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis lsp``."""
    parser.add_argument("--stdio", action="store_true", help="accepted and ignored: stdio is the only transport")


def run(arguments: argparse.Namespace) -> int:
    """Serves until ``exit`` or the end of stdin."""
    try:
        root = str(root_of(arguments.root)) if arguments.root is not None else None
    except UsageError as error:
        write_note(f"tamis lsp: {error}")
        return 2
    from tamis.server.lsp.main import serve
    from tamis.server.runtime.settings.loading import trust_notice

    if notice := trust_notice():
        warn(notice)

    return serve(root)
