"""A script with raw sockets against the real listener: what it cannot reach, break, keep or take over (D17, S7)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import runner
from tamis.sandbox.model import RunOutcome
from tests.sandbox import network_servers as servers
from tests.sandbox import support

COMMON = r"""
import errno, json, os, socket, sys, time

def proxy():
    return socket.create_connection(("127.0.0.1", 3128), 600)

def say(*pieces):
    with proxy() as end:
        try:
            for piece in pieces:
                end.sendall(piece)
            return read(end)
        except OSError as error:
            return f"lost: {error}".encode()

def read(end):
    answer = b""
    while piece := end.recv(65536):
        answer += piece
    return answer

def soon(wanted):
    # what was left behind is seen to by and by
    while (last := status(say(GET))) != wanted:
        time.sleep(0.05)
    return last

def why(action):
    try:
        return f"worked: {action()}"
    except OSError as error:
        return errno.errorcode.get(error.errno, "timed out") if not isinstance(error, socket.gaierror) else "no name"

def status(answer):
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else answer[:40].decode("latin-1")

port = int(sys.argv[1])
GET = b"GET http://api.test:%d/ HTTP/1.1\r\n\r\n" % port
out = {}
"""
END = "\nprint(json.dumps(out))\n"

AROUND = r"""
def tcp(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as end:
        end.settimeout(600)
        return end.connect(address)

def udp(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as end:
        end.settimeout(600)
        end.connect(address)
        end.send(b"\0" * 20)
        return end.recv(10)

v4, v6 = socket.AF_INET, socket.AF_INET6
out["tcp"] = {
    str(address): why(lambda family=family, address=address: tcp(family, address))
    for family, address in [
        (v4, ("127.0.0.1", port)), (v4, ("0.0.0.0", port)), (v4, ("127.0.0.2", port)), (v6, ("::1", port)),
        (v6, ("::ffff:127.0.0.1", port)), (v4, ("169.254.169.254", 80)), (v4, ("10.0.0.1", 80)), (v4, ("8.8.8.8", 53)),
        (v6, ("2001:4860:4860::8888", 53)), (v4, ("255.255.255.255", 80)), (v6, ("ff02::1", 80)),
    ]
}
out["udp"] = [why(lambda a=a: udp(v4, a)) for a in [("8.8.8.8", 53), ("127.0.0.53", 53), ("169.254.169.254", 53)]]
out["name"] = [why(lambda n=n: socket.getaddrinfo(n, 80)) for n in ("api.test", "example.org", "metadata.google.internal")]
out["raw"] = [
    why(lambda f=f, k=k, p=p: socket.socket(f, k, p).close())
    for f, k, p in [(v4, socket.SOCK_RAW, 1), (v6, socket.SOCK_RAW, 58), (17, socket.SOCK_RAW, 0x0300), (40, 1, 0), (38, 5, 0)]
]
out["unix"] = why(lambda: socket.socket(socket.AF_UNIX).close())
"""

TAKE_OVER = r"""
def bind(address, *options):
    with socket.socket() as end:
        for option in options:
            end.setsockopt(socket.SOL_SOCKET, option, 1)
        end.bind(address)
        end.listen()
        return "listens"

reuse = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
out["bind"] = [why(lambda: bind(("127.0.0.1", 3128))), why(lambda: bind(("127.0.0.1", 3128), *reuse)),
               why(lambda: bind(("0.0.0.0", 3128), *reuse)), why(lambda: bind(("", 3128), reuse[1]))]
sockets = {}
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            there = os.readlink(f"/proc/{pid}/fd/{fd}")
            if there.startswith("socket:"):
                sockets[f"{pid}/{fd}"] = there, why(lambda: os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR))
    except OSError:
        pass
out["sockets"] = sockets
out["itself"] = status(say(b"CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n"))
out["after"] = status(say(GET))
"""

ABUSE = r"""
out["pipelined"] = say(GET * 50).count(b"HTTP/1.1 ")
out["smuggled"] = say(GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\nabcde") + b"GET /2 HTTP/1.1\r\n\r\n").count(b"HTTP/1.1 ")
for _ in range(100):  # half a request, then gone
    with proxy() as end:
        end.sendall(GET[: len(GET) // 2])
for _ in range(50):  # gone while the far end is being reached
    with proxy() as end:
        end.sendall(b"CONNECT api.test:%d HTTP/1.1\r\n\r\n" % port)
for _ in range(50):  # gone with a reset, with bytes unread
    with proxy() as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        end.sendall(GET)
kept, refused = [], 0
for _ in range(200):  # as many descriptors as a run may have
    try:
        kept.append(proxy())
    except OSError:
        refused += 1
time.sleep(0.5)
out["held"] = len(kept) > 100
for end in kept:
    end.close()
for _ in range(1000):
    proxy().close()
out["after"] = [soon(200), status(say(GET)), status(say(GET))]
"""

BUDGET = r"""
kept = [proxy() for _ in range(32)]
for end in kept:
    end.sendall(b"G")
out["33rd"] = status(say(GET))
kept.pop().close()
out["after one left"] = soon(200)
"""


@pytest.fixture
def port() -> Iterator[int]:
    with servers.serving() as port:
        yield port


def attack(parent: Path, port: int, source: str, **more: Any) -> tuple[dict[str, Any], RunOutcome]:
    outcome = support.run_source(
        parent,
        COMMON + source + END,
        args=(str(port),),
        hosts=(f"api.test:{port}",),
        allow_cidrs=servers.OPEN,
        pin=servers.PINS,
        limits=support.PATIENT,
        **more,
    )
    assert outcome.kind == "ok", outcome
    return json.loads(outcome.stdout), outcome


REFUSED = {"ECONNREFUSED", "ENETUNREACH", "EACCES", "EADDRNOTAVAIL", "EINVAL", "EHOSTUNREACH"}


def test_nothing_but_the_proxy_is_there(tmp_path: Path, port: int) -> None:
    found, outcome = attack(tmp_path, port, AROUND)
    assert set(found["tcp"].values()) <= REFUSED and len(found["tcp"]) == 11, found
    assert set(found["udp"]) <= REFUSED, found
    assert found["name"] == ["no name"] * 3, found
    assert set(found["raw"]) <= {"EPERM", "EAFNOSUPPORT"}, found
    assert found["unix"] == "EAFNOSUPPORT", found
    assert outcome.reached_hosts == ()


def test_without_the_network_layer_the_same_connections_reach_this_machine(tmp_path: Path, port: int) -> None:
    """The layer's meta-test; it says nothing to any other machine."""
    source = COMMON + 'out = why(lambda: socket.create_connection(("127.0.0.1", port), 600))' + END
    wanted = support.request(support.tool_folder(tmp_path, source), args=(str(port),))
    held, open_ = support.run(wanted), support.run_without(wanted, "network")
    assert json.loads(held.stdout) == "ECONNREFUSED", held
    assert json.loads(open_.stdout).startswith("worked"), open_


def test_listener_and_channel_cannot_be_taken_over(tmp_path: Path, port: int) -> None:
    found, outcome = attack(tmp_path, port, TAKE_OVER)
    assert found["bind"] == ["EADDRINUSE"] * 4, found
    assert not any(said.startswith("worked") for _, said in found["sockets"].values()), found
    # pid 1 and the script hold no end of the channel, nor the listener
    assert found["sockets"] == {}, found
    assert (found["itself"], found["after"]) == (403, 200), found
    assert outcome.denied_hosts == ("127.0.0.1:3128",)


def test_abuse_of_the_listener_leaves_it_working_and_the_daemon_clean(tmp_path: Path, port: int) -> None:
    before = support.opened()
    found, outcome = attack(tmp_path, port, ABUSE)
    assert (found["pipelined"], found["smuggled"]) == (1, 1), found
    assert found["held"] and found["after"] == [200, 200, 200], found
    assert outcome.denied_hosts == ()
    # of 1,500 connections; the server of this test has kept one of its sockets, seldom, for a cause that is not known
    support.await_closed(before, spare=5)


def test_connection_above_the_budget_is_told_so(tmp_path: Path, port: int) -> None:
    found, _ = attack(tmp_path, port, BUDGET)
    assert found == {"33rd": 429, "after one left": 200}, found


def test_byte_budget_of_the_request_holds(tmp_path: Path, port: int) -> None:
    source = 'out["statuses"] = [status(say(GET)) for _ in range(20)]'
    found, _ = attack(tmp_path, port, source, network_bytes=1000)
    statuses = found["statuses"]
    assert statuses[0] == 200 and statuses[-1] == 429, found


def test_runs_at_once_have_a_network_of_their_own(tmp_path: Path) -> None:
    source = (
        COMMON + 'out["said"] = [status(say(GET.replace(b"api.test", n))) for n in (b"api.test", b"inside.test")]' + END
    )

    async def both(port: int) -> list[RunOutcome]:
        wanted = [
            support.request(
                support.tool_folder(tmp_path / name, source),
                args=(str(port),),
                hosts=(f"{name}:{port}",),
                allow_cidrs=servers.OPEN,
                pin=servers.PINS,
            )
            for name in ("api.test", "inside.test")
        ]
        return await asyncio.gather(*(runner.run(request) for request in wanted))

    for name in ("api.test", "inside.test"):
        (tmp_path / name).mkdir()
    with servers.serving() as port:
        outcomes = asyncio.run(both(port))
    assert [json.loads(outcome.stdout)["said"] for outcome in outcomes] == [[200, 403], [403, 200]], outcomes
    assert [outcome.denied_hosts for outcome in outcomes] == [(f"inside.test:{port}",), (f"api.test:{port}",)]


def test_open_tunnel_ends_with_its_run(tmp_path: Path) -> None:
    source = "end = proxy(); end.sendall(GET); time.sleep(0.3)"
    with servers.counting() as (port, seen):
        before = support.opened()
        _, outcome = attack(tmp_path, port, source)
        assert len(seen) == 1 and outcome.reached_hosts == (f"api.test:{port}",)
        support.await_closed(before)
