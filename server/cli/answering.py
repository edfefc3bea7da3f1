"""Asking on the terminal before a call runs, and turning results into exit codes. Shared by ``run`` and ``call``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable

from tamis.protocols.contract import ExecutionResult
from tamis.server.cli.inputs import Paint
from tamis.server.runtime.calls.model import Answer, Ask, OnProgress, Question

REFUSED = frozenset({"denied", "approvalTimeout", "approvalUnavailable", "blocked", "inputRequired"})


def exit_code(results: Iterable[ExecutionResult], *, unread: bool = False) -> int:
    """0 all succeeded, 1 a call failed, 3 refused, unanswered or no sandbox; the largest wins."""
    code = 1 if unread else 0
    for result in results:
        if result.status in REFUSED or (result.error and result.error.type == "SandboxUnavailable"):
            code = max(code, 3)
        elif result.status not in ("success", "accepted"):
            code = max(code, 1)
    return code


def terminal_ask() -> Ask | None:
    """Asks on the controlling terminal; None when there is none."""
    try:
        terminal = open("/dev/tty", "r+b", buffering=0)  # noqa: SIM115 (kept for every question of the command)
    except OSError:
        return None
    if not sys.stderr.isatty():
        terminal.close()
        return None
    paint = Paint(sys.stderr)

    async def ask(question: Question) -> Answer:
        import asyncio

        granted = question.permissions.granted
        rights = [
            *(f"write {path}" for path in granted.write),
            *(f"read {path}" for path in granted.read),
            *(f"connect to {host}" for host in granted.hosts),
        ]
        sys.stderr.write(f"\nRun {paint('1', question.tool_id)} ({question.display_name})?\n")
        for name, value in question.args.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            sys.stderr.write(f"  {name} = {text if len(text) <= 200 else text[:199] + '…'}\n".replace("\033", "\\033"))
        if rights:
            sys.stderr.write(f"  may {', '.join(rights)}\n")
        sys.stderr.write("[y] yes  [n] no (default): ")
        sys.stderr.flush()
        line = await asyncio.get_running_loop().run_in_executor(None, terminal.readline)
        return "allow" if line.strip().lower() in (b"y", b"yes") else "deny"

    return ask


def told_progress() -> OnProgress | None:
    """Says on a terminal's standard error where an installation stands; None without a terminal."""
    if not sys.stderr.isatty():
        return None

    def tell(_call_id: str, text: str) -> None:
        sys.stderr.write(f"packages: {text}\n")

    return tell


def positive(text: str) -> int:
    """An argument that must be a whole number above zero."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above zero")
    return int(text)


async def always(_question: Question) -> Answer:
    """The answer of ``--yes``."""
    return "allow"
