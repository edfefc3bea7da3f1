"""The network policy through the real proxy: spellings, hostile name servers, pins, bytes (D17, ruling 38).

Every refusal is checked at the far end too: the server that must not be reached has seen nobody.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Sequence

import pytest

from tamis.sandbox.network import egress_hosts
from tamis.sandbox.network.egress import Egress
from tamis.sandbox.network.egress_hosts import is_own
from tamis.sandbox.network.hosts import parse_rule, ranges_to_open
from tests.sandbox import network_cases as cases
from tests.sandbox.client_hello import client_hello
from tests.sandbox.proxy_bench import CONNECTED, OK, SHORT, Bench, Names, Upstream, bench, listening, run


def status_of(answer: bytes) -> bytes:
    return answer.split(b" ")[1] if answer.startswith(b"HTTP/1.1 ") else b""


async def unreached(at: Bench, request: bytes) -> bytes:
    """Says this to the proxy; the answer, once it is certain that nobody else heard it."""
    answer = await at.say(request.replace(b"{port}", b"%d" % at.upstream.port))
    assert at.upstream.received == [], request
    assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3")), answer
    return answer


@pytest.mark.parametrize("method", [b"CONNECT %b:{port} HTTP/1.1\r\n\r\n", b"GET http://%b:{port}/ HTTP/1.1\r\n\r\n"])
@pytest.mark.parametrize("spelling", cases.INSIDE_SPELLINGS)
def test_no_spelling_of_an_inside_address_is_dialled(spelling: str, method: bytes) -> None:
    """Even if a rule grants it: the operator opened no range."""
    try:
        granted = [parse_rule(f"{spelling}:*").text]
    except ValueError:
        granted = []
    names = Names()
    names.answers = {rule.removesuffix(":*"): [["127.0.0.1", "::1", "169.254.169.254"]] for rule in granted}

    async def test() -> None:
        async with bench("api.test:*", *granted, names=names, allow_cidrs=()) as at:
            for host in (spelling, *(rule.removesuffix(":*") for rule in granted)):
                answer = await unreached(at, method % host.encode())
                # in a request a host is ASCII; only a rule may be written otherwise
                assert status_of(answer) == (b"403" if granted and host.isascii() else b"400"), (answer, granted)

    run(test())


@pytest.mark.parametrize("answers", cases.INSIDE_ANSWERS, ids=lambda answers: answers[0] or "empty")
def test_name_server_that_points_inside_is_refused_after_one_look_up(answers: Sequence[str]) -> None:
    async def test() -> None:
        names = Names(api_test=[answers])
        async with bench("api.test:*", names=names, allow_cidrs=()) as at:
            for asked, method in enumerate((b"CONNECT api.test:{port}", b"GET http://api.test:{port}/"), 1):
                answer = await unreached(at, method + b" HTTP/1.1\r\n\r\n")
                assert status_of(answer) == b"403" and b"not public" in answer
                assert not any(address.encode() in answer for address in answers if len(address) > 4)
                assert names.asked == ["api.test"] * asked
            assert at.egress.denied == [f"api.test:{at.upstream.port}"]
            # the operator is told the address, and what would open it
            reason = at.egress.denials[at.egress.denied[0]]
            if not ranges_to_open(answers[0]):  # no address
                assert answers[0] not in reason or not answers[0]
                return
            assert reason.startswith(f"api.test is at {answers[0]}, which is not public")
            settings = re.findall(r'"([^"]+)"', reason.partition("; add ")[2].partition(" to policy.allowCidrs")[0])
            assert egress_hosts.address_allowed(answers[0], settings), reason

    run(test())


REACHING = [answers for answers in cases.INSIDE_ANSWERS if answers[0] in ("127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1")]


@pytest.mark.parametrize("answers", REACHING, ids=lambda answers: f"{answers[0]}-{len(answers)}")
def test_without_the_address_policy_the_same_answers_lead_inside(
    answers: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layer's meta-test: what refuses the cases above is the policy for addresses, nothing else."""
    monkeypatch.setattr(egress_hosts, "address_allowed", lambda *_: True)
    monkeypatch.setattr(egress_hosts, "is_own", lambda *_: False)

    async def test() -> None:
        async with bench("api.test:*", names=Names(api_test=[answers]), allow_cidrs=()) as at:
            assert await at.say(b"GET http://api.test:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port) == OK
            assert len(at.upstream.received) == 1

    run(test())


def test_mixed_answer_leaves_only_what_is_permitted_in_its_order() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.1", "8.8.8.8", "::1", "::ffff:8.8.8.8", "2606:4700::1111", "8.8.8.8", "169.254.169.254", "x"]

    async def test() -> None:
        addresses = egress_hosts.Addresses(resolver=resolve)
        assert await addresses.vetted("api.test", 443) == ["8.8.8.8", "2606:4700::1111"]
        addresses.close()

    run(test())


def test_name_that_flips_between_look_ups_is_judged_each_time() -> None:
    async def test() -> None:
        names = Names(api_test=[["127.0.0.1"], ["169.254.169.254"], ["127.0.0.1"], ["10.0.0.1", "::1"]])
        async with bench("api.test:*", names=names) as at:
            request = b"GET http://api.test:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port
            statuses = [status_of(await at.say(request)) for _ in range(4)]
            assert statuses == [b"200", b"403", b"200", b"403"]
            assert len(names.asked) == 4 and len(at.upstream.received) == 2

    run(test())


@pytest.mark.parametrize("target", cases.DENIED_TARGETS)
def test_target_beside_the_rules_is_refused_without_a_look_up(target: str) -> None:
    async def test() -> None:
        async with bench("api.test", "*.wild.test:443", names=Names(), allow_cidrs=()) as at:
            for request in (b"CONNECT %b HTTP/1.1\r\n\r\n", b"GET http://%b/ HTTP/1.1\r\n\r\n"):
                answer = await unreached(at, request % target.encode())
                assert status_of(answer) == b"403" and b"allowHosts has" in answer and b"ask for" in answer
            assert at.names.asked == []
            assert list(at.egress.denials) == [target]

    run(test())


@pytest.mark.parametrize("attack", cases.MALFORMED.values(), ids=cases.MALFORMED.keys())
def test_malformed_bytes_reach_nobody(attack: bytes) -> None:
    async def test() -> None:
        async with bench("api.test:*", names=Names(api_test=[["127.0.0.1"]])) as at:
            assert status_of(await unreached(at, attack)) == b"400"
            assert at.names.asked == []

    run(test())


@pytest.mark.parametrize("attack", ["two hosts", "length and chunks", "folded", "LF in the head", "backslash"])
def test_the_same_bytes_without_their_fault_pass(attack: str) -> None:
    """The attacks above are refused for their fault: with it taken out, they arrive."""
    mended = cases.MALFORMED[attack]
    for fault, mend in (
        (b"Host: evil.test\r\n", b""),
        (b"Content-Length: 5\r\n", b""),
        (b"\r\n b", b""),
        (b"1\nB", b"1\r\nB"),
        (b"evil.test\\@", b""),
    ):
        mended = mended.replace(fault, mend)

    async def test() -> None:
        async with bench("api.test:*", names=Names(api_test=[["127.0.0.1"]])) as at:
            assert await at.say(mended.replace(b"{port}", b"%d" % at.upstream.port)) == OK

    run(test())


def test_host_field_never_chooses_the_site() -> None:
    async def test() -> None:
        async with bench("api.test:*", names=Names(api_test=[["127.0.0.1"]])) as at:
            at_port = b"api.test:%d" % at.upstream.port
            await at.say(b"GET http://" + at_port + b"/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
            assert at.upstream.received == [b"GET / HTTP/1.1\r\nHost: " + at_port + b"\r\nConnection: close\r\n\r\n"]

    run(test())


# --- pins (issue 4 item 4)


def test_pinned_name_is_dialled_at_its_address_without_a_look_up() -> None:
    async def test() -> None:
        async with bench("api.test:*", names=Names(), pins=[("API.test.", "127.0.0.1")]) as at:
            assert await at.say(b"GET http://api.test:%d/ HTTP/1.1\r\n\r\n" % at.upstream.port) == OK
            assert at.names.asked == []

    run(test())


@pytest.mark.parametrize(
    ("rule", "pin", "ranges"),
    [
        ("other.test:*", ("api.test", "127.0.0.1"), ["127.0.0.0/8"]),  # a pin grants nothing
        ("api.test:*", ("api.test", "127.0.0.1"), []),  # its address is judged like any other
        ("api.test:*", ("api.test", "127.0.0.1"), ["10.0.0.0/8"]),
        ("api.test:*", ("api.test", "::ffff:127.0.0.1"), ["127.0.0.0/8"]),
        ("api.test:*", ("api.test", "169.254.169.254"), ["169.254.0.0/16"]),
        ("api.test:1", ("api.test", "127.0.0.1"), ["127.0.0.0/8"]),  # nor a port
    ],
)
def test_pin_opens_nothing_that_the_rules_and_ranges_do_not(rule: str, pin: tuple[str, str], ranges: list[str]) -> None:
    async def test() -> None:
        async with bench(rule, names=Names(), pins=[pin], allow_cidrs=ranges) as at:
            answer = await unreached(at, b"CONNECT api.test:{port} HTTP/1.1\r\n\r\n")
            assert status_of(answer) == b"403" and at.names.asked == []

    run(test())


def test_pin_holds_for_its_name_alone() -> None:
    async def test() -> None:
        names = Names(a_api_test=[["10.0.0.1"]])
        async with bench("*.api.test:*", "api.test:*", names=names, pins=[("api.test", "127.0.0.1")]) as at:
            answer = await unreached(at, b"CONNECT a.api.test:{port} HTTP/1.1\r\n\r\n")
            assert status_of(answer) == b"403" and names.asked == ["a.api.test"]

    run(test())


@pytest.mark.parametrize(
    ("pins", "fault"),
    [
        ([("", "8.8.8.8")], "empty"),
        ([("*.api.test", "8.8.8.8")], "label"),
        ([("api.test:443", "8.8.8.8")], "':'"),
        ([("8.8.4.4", "8.8.8.8")], "pin a name"),
        ([("[::1]", "8.8.8.8")], "pin a name"),
        ([("api.test", "")], "not an IP address"),
        ([("api.test", "127.1")], "not an IP address"),
        ([("api.test", "8.8.8.8:443")], "not an IP address"),
        ([("api.test", "[::1]")], "not an IP address"),
        ([("api.test", "10.0.0.0/8")], "not an IP address"),
        ([("api.test", "::1%lo")], "not an IP address"),
        ([("api.test", "other.test")], "not an IP address"),
        ([("api.test", "8.8.8.8"), ("API.TEST", "8.8.4.4")], "two addresses"),
    ],
)
def test_bad_pin_is_refused_by_name_before_anything_runs(pins: list[tuple[str, str]], fault: str) -> None:
    with pytest.raises(ValueError, match="pin") as caught:
        Egress(["api.test"], pins=pins)
    assert fault in str(caught.value)


# --- the machine's own addresses, and the machine's own threads


def test_public_address_of_this_machine_itself_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    # a service behind the firewall listens there too, and packets to it never pass the firewall
    monkeypatch.setattr(egress_hosts, "is_own", lambda address: address == "8.8.8.8")

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["8.8.8.8"]

    async def test() -> None:
        with pytest.raises(egress_hosts.Refused, match="this machine's own") as caught:
            await egress_hosts.Addresses(resolver=resolve).vetted("api.test", 443)
        assert caught.value.status == 403
        opened = egress_hosts.Addresses(["8.8.8.8/32"], resolver=resolve)
        assert await opened.vetted("api.test", 443) == ["8.8.8.8"]

    run(test())


def test_own_addresses_are_found_by_the_kernels_routes() -> None:
    assert is_own("127.0.0.1")
    assert not is_own("192.0.2.1") and not is_own("2001:db8::1") and not is_own("not an address")


def test_names_that_never_answer_hold_up_no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    asked: list[str] = []

    def hang(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        release.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def test() -> None:
        egress = Egress(["*.api.test"], budgets=SHORT)
        listener = listening()
        port = listener.getsockname()[1]
        await egress.serve(listener)
        at = Bench(egress, port, Upstream(), Names())
        try:
            answers = await asyncio.gather(
                *(at.say(b"CONNECT n%d.api.test:443 HTTP/1.1\r\n\r\n" % number) for number in range(30))
            )
            assert {status_of(answer) for answer in answers} == {b"504"}
            assert len(asked) <= 4
            assert await asyncio.to_thread(int, "7") == 7
        finally:
            release.set()
            await egress.close()

    run(test())


# --- what is refused is no secret, what is let through is recorded


def test_every_decision_is_told_with_its_reason() -> None:
    async def test() -> None:
        async with bench("api.test:*", names=Names(api_test=[["127.0.0.1"]]), upstream=Upstream(echo=True)) as at:
            target = b"api.test:%d" % at.upstream.port
            hello = client_hello("api.test")
            assert (await at.say(b"CONNECT " + target + b" HTTP/1.1\r\n\r\n" + hello, ends=True)) == CONNECTED + hello
            await at.say(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")
            await at.say(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n")
            assert list(at.egress.reached) == [target.decode()]
            assert list(at.egress.denials) == ["evil.test:443"]
            assert "ask for 'evil.test'" in at.egress.denials["evil.test:443"]
            assert [event.action for event in at.egress.events] == ["allow", "deny", "deny"]

    run(test())
