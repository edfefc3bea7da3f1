"""``tamis rpc`` as a process of its own, and the processes below it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.client import Client, RpcFailure

COMMAND = [sys.executable, "-m", "tamis.server.cli.main", "rpc"]


def failure(client: Client, method: str, params: Any = None) -> RpcFailure:
    with pytest.raises(RpcFailure) as caught:
        client.request(method, params)
    return caught.value


def rpc(method: str, params: Any = None, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method} | ({} if params is None else {"params": params})


def descendants(pid: int) -> list[int]:
    """Every process below one, from /proc."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = int(fields[1])
    found: list[int] = []
    level = {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found.extend(level)
    return found


def alive(pids: list[int]) -> list[int]:
    """Those that still run; a zombie does not."""
    running: list[int] = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            running.append(pid)
    return running
