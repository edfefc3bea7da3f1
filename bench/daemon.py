"""`tool/parse` beside a method that does nothing but answer, on one running server, in both framings."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Sample, Timed, in_turn, table
from bench.texts import message

ROOT = Path(__file__).resolve().parent.parent
_SERVER = """
import asyncio, sys
from pathlib import Path
from tamis.server.rpc.methods import RpcServer
from tamis.server.rpc.session import Method

async def serve():
    session = RpcServer(Path(sys.argv[1])).session
    session.methods["bench/echo"] = Method(lambda request, params: params)
    return await session.serve()

asyncio.run(serve())
"""


class _Client:
    """One request after another; each waits for its reply."""

    def __init__(self, process: subprocess.Popen[bytes], framing: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._lines = framing == "lines"

    def ask(self, body: bytes) -> bytes:
        """The reply to a request; what the daemon asks or tells meanwhile is answered or passed over."""
        reply = self._exchange(body)
        while b'"result"' not in reply and b'"error"' not in reply:
            if b'"service/invoke"' in reply:
                number = json.loads(reply)["id"]
                reply = self._exchange(json.dumps({"jsonrpc": "2.0", "id": number, "result": None}).encode())
            else:
                reply = self._exchange(b"")
        return reply

    def _exchange(self, body: bytes) -> bytes:
        if not body:
            return self._read()
        head = b"" if self._lines else b"Content-Length: %d\r\n\r\n" % len(body)
        self._in.write(head + body + (b"\n" if self._lines else b""))
        self._in.flush()
        return self._read()

    def _read(self) -> bytes:
        if self._lines:
            return self._out.readline()
        size = 0
        while (line := self._out.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        return self._out.read(size)

    def asking(self, method: str, params: object) -> Timed:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        reply = self.ask(body)
        assert b'"result"' in reply, (method, reply)

        def run(times: int) -> float:
            # The middle of many replies: a single late one is the scheduler's.
            import time

            spent: list[float] = []
            for _ in range(times):
                started = time.perf_counter()
                self.ask(body)
                spent.append(time.perf_counter() - started)
            return sorted(spent)[len(spent) // 2] * times

        return run


def bench_services() -> str:
    """p50 of running a no-op service over p50 of echoing the same params: Tamis's own clock, and a method of the host, which is asked in between."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    noop = {"name": "nothing", "description": "Does nothing.", "parameters": {"type": "object"}, "agentCallable": True}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tamis.toml").write_text('builtin = ["system:get_current_time"]\n', "utf-8")
        with subprocess.Popen(
            # the daemon's log has a line for each call
            [sys.executable, "-c", _SERVER, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            client = _Client(process, "lines")
            register = {"serviceName": "Bench", "methods": [noop]}
            client.ask(
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "service/register", "params": register}).encode()
            )
            own: dict[str, object] = {"toolId": "system:get_current_time", "args": {}}
            hosted: dict[str, object] = {"toolId": "Bench:nothing", "args": {}}
            sides = {
                "own": client.asking("tool/execute", own),
                "hosted": client.asking("tool/execute", hosted),
                "echo": client.asking("bench/echo", own),
            }
            found = in_turn({}, others=sides, rounds=15, at_least=0.1)
            rows.append(("`tool/execute` of the built-in clock", found["own"], found["echo"], "≤ 2"))
            rows.append(
                ("`tool/execute` of a host's no-op method (two round trips)", found["hosted"], found["echo"], "")
            )
            assert process.stdin is not None
            process.stdin.close()
    return table("Services beside an echo on the same connection (p50 of a round)", rows)


def bench_rpc() -> str:
    """p50 of parsing a 2 KB message over p50 of echoing the same params."""
    rows: list[tuple[str, Sample, Sample, str]] = []
    params = {"text": message(1_700, cdata=False)[0], "protocol": "auto"}
    for framing in ("headers", "lines"):
        with (
            tempfile.TemporaryDirectory() as folder,
            subprocess.Popen(
                [sys.executable, "-c", _SERVER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as process,
        ):
            client = _Client(process, framing)
            sides = {
                "parse": client.asking("tool/parse", params),
                "echo of the same": client.asking("bench/echo", params),
            }
            found = in_turn({}, others=sides, rounds=15, at_least=0.1)
            rows.append(
                (f"`tool/parse` 2 KB, framing by {framing}", found["parse"], found["echo of the same"], "≤ 1.4 (1.2)")
            )
            assert process.stdin is not None
            process.stdin.close()
    return table("Remote calls (p50 of a round)", rows)
