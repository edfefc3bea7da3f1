"""The registered tools as an MCP server, for hosts that speak the Model Context Protocol."""

from __future__ import annotations

import argparse
import gc

from tamis.server.cli.inputs import UsageError, root_of
from tamis.server.cli.outputs import write_note
from tamis.server.cli.rpc_command import LEFT_BEHIND_SECONDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tamis mcp``."""
    parser.add_argument(
        "verb",
        nargs="?",
        choices=("install", "bundle", "login", "logout"),
        help="install: add the server to a host's own list; bundle: write it as a file for desktop hosts; login, logout: at an MCP server of the settings",
    )
    parser.add_argument(
        "host",
        nargs="?",
        metavar="HOST",
        help="with install: claude, claude-code, codex, cursor, gemini, vscode, windsurf, zed; with bundle: the file to write; with login and logout: the server's name under [mcpServers]",
    )
    parser.add_argument(
        "--scope", default="", metavar="SCOPES", help="with login: what to ask for, in place of what the server names"
    )
    parser.add_argument("--no-browser", action="store_true", help="with login: only show the address, open nothing")
    parser.add_argument("--remove", action="store_true", help="with install: take the server out of the host's list")
    parser.add_argument("--print", action="store_true", help="with install: show the entry, write nothing")
    parser.add_argument("--name", default="tamis", help="with install: what the host calls the server (default: tamis)")
    parser.add_argument("--yes", "-y", action="store_true", help="with install: write without asking")
    parser.add_argument("--stdio", action="store_true", help="serve on stdio, as it does without --http")
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over Streamable HTTP at /mcp (needs the extra http)")
    parser.add_argument(
        "--bind-any", action="store_true", help="with --http: take an address that other machines can reach"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="with --http: a name of this server (repeatable)",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="with --http: the bearer token is in FILE (else TAMIS_MCP_TOKEN, else made)",
    )
    parser.add_argument("--no-token", action="store_true", help="with --http: ask for no token; only on this machine")


def run(arguments: argparse.Namespace) -> int:
    """Serves until its client has gone, or changes a host's list of servers."""
    if arguments.verb == "install":
        from tamis.server.cli.mcp_install import install

        return install(arguments)
    if arguments.verb == "bundle":
        from tamis.server.cli.mcp_install import bundle

        return bundle(arguments)
    if arguments.verb in ("login", "logout"):
        from tamis.server.cli.mcp_login import log_in_or_out

        return log_in_or_out(arguments)
    try:
        root = root_of(arguments.root) if arguments.root is not None else None
    except UsageError as error:
        write_note(f"tamis mcp: {error}")
        return 2
    if arguments.http is not None:
        from tamis.server.cli.mcp_http import serve_http

        return serve_http(arguments, root)
    from tamis.server.runtime.store.collector import uncollected

    with uncollected():  # what is loaded stays: looking for garbage in it is a tenth of the start
        from tamis.server.cli.interrupts import run_to_end
        from tamis.server.mcp.server import serve

        gc.freeze()
    code = serve(root, lambda work: run_to_end(work, LEFT_BEHIND_SECONDS))
    # the interpreter's last collection walks everything that was loaded; a host waits for the process to end
    gc.freeze()
    return code
