"""Serve editors as a language server on stdio."""

from __future__ import annotations

import argparse
import sys

from tamis.server.cli.inputs import UsageError, root_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis lsp``."""
    parser.add_argument("--stdio", action="store_true", help="accepted and ignored: stdio is the only transport")


def run(arguments: argparse.Namespace) -> int:
    """Serves until ``exit`` or the end of stdin."""
    try:
        root = str(root_of(arguments.root)) if arguments.root is not None else None
    except UsageError as error:
        sys.stderr.write(f"tamis lsp: {error}\n")
        return 2
    from tamis.server.lsp.main import serve

    return serve(root)
