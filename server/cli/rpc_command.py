"""Serve the tool methods as JSON-RPC on stdio; both framings are read, the answer comes in kind."""

from __future__ import annotations

import argparse
import gc

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import write_note

LEFT_BEHIND_SECONDS = 1.0
"""How long what the handlers of packages left behind may keep the daemon, when its host is gone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis rpc``."""
    parser.add_argument("--stdio", action="store_true", help="accepted and ignored: stdio is the only transport")


def run(arguments: argparse.Namespace) -> int:
    """Serves until stdin ends."""
    try:
        root = root_of(arguments.root) if arguments.root is not None else None
    except UsageError as error:
        write_note(f"tamis rpc: {error}")
        return 2
    from tamis.server.cli.interrupts import run_to_end
    from tamis.server.rpc.methods import serve

    code = serve(root, lambda work: run_to_end(work, LEFT_BEHIND_SECONDS))
    # the interpreter's last collection walks everything that was loaded; a host waits for the process to end
    gc.freeze()
    return code
