"""What comes out of the sandbox over the hand-off channel is the proxy's listener, or the run ends (S7)."""

from __future__ import annotations

import array
import asyncio
import os
import socket
import tempfile
from collections.abc import Callable, Sequence

import pytest

from tamis.sandbox.job import PROXY_PORT
from tamis.sandbox.model import Denial, Refusal, RunOutcome, Unavailable
from tamis.sandbox.network.egress_hosts import Refused
from tamis.sandbox.network.handoff import Handoff, with_contacts
from tamis.sandbox.network.hosts import opening


def serve(send: Callable[[socket.socket], None]) -> Handoff:
    """One hand-off to which the inside says this; the descriptors that it leaves open are counted."""

    async def taken() -> Handoff:
        handoff = Handoff(("example.org",))
        inside = socket.socket(fileno=os.dup(handoff.inside))
        try:
            with inside:
                send(inside)
                await handoff.serve()
        finally:
            await handoff.close()
        return handoff

    before = len(os.listdir("/proc/self/fd"))
    try:
        return asyncio.run(taken())
    finally:
        assert len(os.listdir("/proc/self/fd")) <= before


def handing(make: Callable[[], Sequence[int]]) -> Callable[[socket.socket], None]:
    def send(inside: socket.socket) -> None:
        fds = make()
        inside.sendmsg([b"l"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        for fd in fds:
            os.close(fd)

    return send


def listening(address: tuple[str, int]) -> int:
    return socket.create_server(address).detach()


def connected() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return socket.create_connection(listener.getsockname()).detach()


def bound() -> int:
    end = socket.socket()
    end.bind(("127.0.0.1", 0))
    return end.detach()


def a_file() -> int:
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


GARBAGE: dict[str, Callable[[], Sequence[int]]] = {
    "nothing": lambda: (),
    "a file": lambda: (a_file(),),
    "a folder": lambda: (os.open("/", os.O_RDONLY),),
    "a device": lambda: (os.open("/dev/null", os.O_RDWR),),
    "a process": lambda: (os.pidfd_open(os.getpid()),),
    "a memory file": lambda: (os.memfd_create("x"),),
    "no listener": lambda: (bound(),),
    "a connection": lambda: (connected(),),
    "UDP": lambda: (socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach(),),
    "Unix": lambda: (socket.socket(socket.AF_UNIX).detach(),),
    "IPv6": lambda: (socket.create_server(("::1", 0), family=socket.AF_INET6).detach(),),
    "every interface": lambda: (listening(("", 0)),),
    "another loopback address": lambda: (listening(("127.0.0.2", PROXY_PORT)),),
    "another port": lambda: (listening(("127.0.0.1", 0)),),
    "two descriptors": lambda: (a_file(), a_file()),
    "many descriptors": lambda: [a_file() for _ in range(100)],
}


@pytest.mark.parametrize("make", GARBAGE.values(), ids=GARBAGE.keys())
def test_anything_but_the_listener_ends_the_run_and_is_closed(make: Callable[[], Sequence[int]]) -> None:
    with pytest.raises(Unavailable, match="the sandbox handed out"):
        serve(handing(make))


def test_sandbox_that_ends_before_it_hands_out_is_no_fault_of_the_proxy() -> None:
    serve(lambda inside: inside.shutdown(socket.SHUT_RDWR))


def test_sandbox_that_hands_out_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.sandbox.network.handoff.SECONDS", 0.1)
    with pytest.raises(Unavailable, match="did not come out"):
        serve(lambda inside: None)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Handoff(("*",)), "'\\*'"),
        (lambda: Handoff(("a.test",), ("10.0.0.1/8",)), "10.0.0.1/8"),
        (lambda: Handoff(("a.test",), (), (("a.test", "x"),)), "pin 'a.test'"),
    ],
)
def test_bad_rule_range_or_pin_is_refused_by_name(make: Callable[[], Handoff], named: str) -> None:
    with pytest.raises(Refusal, match=named) as caught:
        make()
    assert caught.value.remedy


def test_refusals_are_told_with_a_success_and_explain_a_failure() -> None:
    async def contacts() -> tuple[RunOutcome, RunOutcome]:
        handoff = Handoff(("a.test",))
        handoff.egress.denials["evil.test:443"] = "host evil.test is not allowed"
        handoff.egress.reached["a.test:443"] = None
        made = [with_contacts(RunOutcome(kind=kind, message="it failed"), handoff.egress) for kind in ("ok", "error")]
        await handoff.close()
        return made[0], made[1]

    fine, failed = asyncio.run(contacts())
    for outcome in (fine, failed):
        assert outcome.denied_hosts == ("evil.test:443",) and outcome.reached_hosts == ("a.test:443",)
        assert outcome.denials == (Denial("evil.test:443", "host evil.test is not allowed"),)
    assert (fine.kind, fine.error_type, fine.message) == ("ok", "", "it failed")
    assert failed.error_type == "SecurityError" and "evil.test:443: host evil.test is not allowed" in failed.message


def test_failure_after_an_address_that_is_not_open_names_it_and_the_setting_alone() -> None:
    async def failed() -> RunOutcome:
        handoff = Handoff(("api.test:*",), (), (("api.test", "127.0.0.1"),))
        with pytest.raises(Refused) as caught:
            await handoff.egress._addresses.vetted("api.test", 80)  # pyright: ignore[reportPrivateUsage]
        handoff.egress.denials["api.test:80"] = caught.value.reason
        made = with_contacts(RunOutcome(kind="error", message="it failed"), handoff.egress)
        await handoff.close()
        assert "127.0.0.1" not in caught.value.told, "the script is not told"
        return made

    outcome = asyncio.run(failed())
    assert outcome.message == (
        "it failed, after it was refused api.test:80: api.test is at 127.0.0.1 (pinned), which is not public;"
        f" {opening('allowCidrs', '127.0.0.1/32')}"
    )
    assert outcome.remedy == "", "both sides do open the host"


def test_more_ranges_are_added_to_those_that_are_there() -> None:
    async def reason() -> str:
        handoff = Handoff(("api.test",), ("10.1.0.0/16",), (("api.test", "10.2.0.1"),))
        with pytest.raises(Refused) as caught:
            await handoff.egress._addresses.vetted("api.test", 80)  # pyright: ignore[reportPrivateUsage]
        await handoff.close()
        return caught.value.reason

    assert asyncio.run(reason()).endswith(f"; {opening('allowCidrs', '10.2.0.1/32')}")
