"""Both daemons answer on, whatever stands between the messages (R3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lsp.lsp_client import Inside as Lsp
from tests.rpc.inside import rpc_server

JUNK = {
    "a NUL": b"\x00",
    "a mark of UTF-8": b"\xef\xbb\xbf",
    "a log line": b"warning: something\r\n",
    "a header alone": b"Content-Type: x\r\n\r\n",
    "half a message": b'{"jsonrpc": "2.0", "id": ',
}


def frame(number: int, extra: int = 0) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "initialize" if number == 0 else "server/health", "params": {}})  # fmt: skip
    return f"Content-Length: {len(body) + extra}\r\n\r\n{body}".encode()


def answered(face: str, stream: bytes, folder: Path) -> set[int]:
    """The ids that a daemon answers."""
    server = Lsp() if face == "lsp" else rpc_server(folder)
    server.stdin.write(stream)
    server.stdin.close()
    with server.stdout as out:
        said = out.read()
    found: set[int] = set()
    for part in said.split(b"Content-Length: ")[1:]:
        message = json.loads(part.partition(b"\r\n\r\n")[2])
        if isinstance(message.get("id"), int) and "method" not in message:
            found.add(message["id"])
    return found


@pytest.mark.parametrize("face", ["rpc", "lsp"])
@pytest.mark.parametrize("name", JUNK)
def test_every_right_message_is_answered(face: str, name: str, tmp_path: Path) -> None:
    """R3: 0 of 20 were, for the rpc, and 0 of 5 for the lsp."""
    stream = frame(0) + b"".join(JUNK[name] + frame(number) for number in range(1, 20))
    assert answered(face, stream, tmp_path) == set(range(20))


@pytest.mark.parametrize("face", ["rpc", "lsp"])
def test_a_length_one_too_large_costs_its_message(face: str, tmp_path: Path) -> None:
    """R3: no other."""
    stream = b"".join(frame(number, extra=int(number == 5)) for number in range(20))
    assert answered(face, stream, tmp_path) == set(range(20)) - {5}
