"""``tamis mcp --http HOST:PORT``: where the server listens, and the token that its clients show.

Without a word to the contrary only this machine reaches it, and only who knows the token. Must not know messages.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import re
import secrets
import socket
from pathlib import Path

from tamis.server.cli.inputs import UsageError
from tamis.server.cli.outputs import warn, write_note
from tamis.server.mcp.http_access import Access, is_local_address

TOKEN_VARIABLE = "TAMIS_MCP_TOKEN"
MIN_TOKEN_CHARS, MAX_TOKEN_CHARS = 16, 4_096
LEFT_BEHIND_SECONDS = 2.0
_PLACE = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*)):(\d{1,5})")
_TOKEN = re.compile(r"[\x21-\x7e]+")


def serve_http(arguments: argparse.Namespace, root: Path | None) -> int:
    """Serves until a signal ends it; the exit code."""
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        warn("--http needs the extra http; install it: pip install 'tamis[http]'")
        return 2
    try:
        host, port = place_of(arguments.http)
        is_local = is_local_address(host)
        if not is_local and not arguments.bind_any:
            text = f"--http: other machines can reach {host or 'every address'}; use 127.0.0.1, or add --bind-any"
            raise UsageError(text)
        token, is_made = _token(arguments, is_local=is_local)
    except UsageError as error:
        write_note(f"tamis mcp: {error}")
        return 2
    try:
        bound = _bound("127.0.0.1" if host == "localhost" else host, port)
    except OSError as error:
        write_note(f"tamis mcp: cannot listen on {arguments.http}: {error.strerror or error}")
        return 1
    if not is_local:
        warn("other machines can reach this server, and its messages are not encrypted; put a TLS proxy in front of it")
    shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
    url = f"http://{shown}:{bound.getsockname()[1]}/mcp"

    def announce() -> None:
        write_note(f"tamis mcp: serving at {url}")
        if is_made:
            write_note(f"tamis mcp: clients send the header: Authorization: Bearer {token}")

    from tamis.server.cli.interrupts import run_to_end
    from tamis.server.mcp.http import serve

    names = frozenset(name.lower() for name in arguments.allow_host)
    access = Access(token=token.encode("ascii"), names=names, is_local=is_local)
    code = serve(root, bound, access, announce, lambda work: run_to_end(work, LEFT_BEHIND_SECONDS))
    gc.freeze()
    return code


def place_of(text: str) -> tuple[str, int]:
    """Host and port. Raises ``UsageError``."""
    at = _PLACE.fullmatch(text if ":" in text else f"127.0.0.1:{text}")
    if at is None or int(at[3]) > 65_535:
        raise UsageError(f"--http: '{text}' is no HOST:PORT, as in 127.0.0.1:8765; port 0 takes a free one")
    return at[1] or at[2], int(at[3])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


def _token(arguments: argparse.Namespace, *, is_local: bool) -> tuple[str, bool]:
    """The token, and whether it was made here; empty where none is asked for. Raises ``UsageError``."""
    # no child of this process needs it
    token = os.environ.pop(TOKEN_VARIABLE, None)
    if arguments.no_token:
        if not is_local:
            raise UsageError("--no-token: only a server that no other machine can reach goes without a token")
        if arguments.token_file is not None:
            raise UsageError("--no-token and --token-file exclude each other")
        warn("no token is asked for: every program of every user of this machine can call the tools")
        return "", False
    if arguments.token_file is not None:
        return _checked(_read(arguments.token_file), "--token-file"), False
    if token is not None:
        return _checked(token, TOKEN_VARIABLE), False
    return secrets.token_urlsafe(32), True


def _read(name: str) -> str:
    try:
        with open(name, encoding="ascii") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                warn(f"--token-file: other users can read '{name}'; chmod 600 it")
            return file.read(MAX_TOKEN_CHARS + 3)
    except OSError as error:
        raise UsageError(f"--token-file: '{name}' cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"--token-file: '{name}' holds more than ASCII") from None


def _checked(text: str, whose: str) -> str:
    token = text.strip()
    if not MIN_TOKEN_CHARS <= len(token) <= MAX_TOKEN_CHARS or _TOKEN.fullmatch(token) is None:
        words = f"a token has {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS} visible ASCII characters, and no blank"
        raise UsageError(f"{whose}: {words}")
    return token
