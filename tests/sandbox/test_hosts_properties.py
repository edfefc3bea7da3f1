"""Properties of host names and rules under any text."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.sandbox.network.hosts import (
    Rules,
    address_allowed,
    canonical_host,
    host_address,
    narrow,
    parse_pins,
    parse_policy_rule,
    parse_rule,
    rule_covers,
)

HOSTISH = st.text(alphabet="abXx0127.-_*:[]%@/。ü例ß１\u200d\ud800 ", max_size=40)
TEXTS = st.one_of(st.text(max_size=60), HOSTISH)
NAMES = st.lists(st.text(alphabet="abc0-", min_size=1, max_size=3), min_size=1, max_size=4).map(".".join)
RULE_TEXTS = st.builds(
    lambda star, name, port: f"{star}{name}{port}",
    st.sampled_from(["", "*."]),
    NAMES,
    st.sampled_from(["", ":80", ":443", ":8443", ":*"]),
)


@given(TEXTS)
def test_canonical_host_is_idempotent_and_raises_only_value_error(text: str) -> None:
    try:
        host = canonical_host(text)
    except ValueError:
        return
    assert canonical_host(host) == host
    assert host.isascii() and host == host.lower() and len(host) <= 253
    host_address(host)


@given(TEXTS)
def test_parse_rule_round_trips_and_raises_only_value_error(text: str) -> None:
    try:
        rule = parse_rule(text)
    except ValueError:
        return
    assert parse_rule(rule.text) == rule
    assert parse_rule(rule.text).text == rule.text


@given(TEXTS, st.integers(-2, 70000))
def test_only_a_host_that_a_rule_names_is_allowed(text: str, port: int) -> None:
    decision = Rules.parse(["a.b", "*.a.b:*"]).decide(text, port)
    if decision.allowed:
        host = canonical_host(text)
        assert (host == "a.b" and port in (80, 443)) or (host.endswith(".a.b") and 0 < port < 65536)


@settings(max_examples=300)
@given(RULE_TEXTS, RULE_TEXTS, NAMES, st.sampled_from([80, 443, 8443, 22]))
def test_the_narrowed_rule_opens_what_both_open(policy_text: str, request_text: str, host: str, port: int) -> None:
    try:
        policy, request = parse_policy_rule(policy_text), parse_rule(request_text)
    except ValueError:
        return
    shared = narrow(policy, request)

    def opens(rule: object) -> bool:
        return Rules((rule,)).decide(host, port).allowed if rule is not None else False  # type: ignore[arg-type]

    assert opens(shared) == (opens(policy) and opens(request))
    if rule_covers(policy, request) and opens(request):
        assert opens(policy)


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_public_ipv4_agrees_with_the_standard_library_where_it_is_stricter(address: IPv4Address) -> None:
    if address_allowed(address):
        assert address.is_global and not address.is_multicast
    assert not address_allowed(IPv6Address(f"::ffff:{address}"))
    assert not address_allowed(IPv6Address(int(IPv6Address("64:ff9b::")) | int(address)))
    assert not address_allowed(IPv6Address((0x2002 << 112) | (int(address) << 80) | 1))


@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_public_ipv6_is_never_special(address: IPv6Address) -> None:
    if address_allowed(address):
        assert address.is_global and not address.is_multicast


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    assert address_allowed(text) in (True, False)


PARTS = st.lists(
    st.one_of(
        st.integers(0, 2**32).map(str),
        st.integers(0, 2**32).map(lambda number: f"{number:#x}"),
        st.integers(0, 2**32).map(lambda number: f"0{number:o}"),
        st.text(alphabet="0123456789abcdefx+- ", max_size=6),
    ),
    min_size=1,
    max_size=5,
).map(".".join)


@given(st.one_of(PARTS, st.text(alphabet="0123456789xXaAfF.", max_size=20)))
def test_what_the_c_library_takes_for_an_address_is_that_address_or_refused(text: str) -> None:
    # inet_aton reads 127.1, 0x7f.1 and 017700000001: such a name must never pass as a name
    try:
        read = socket.inet_ntoa(socket.inet_aton(text))
    except (OSError, ValueError):
        return
    try:
        host = canonical_host(text)
    except ValueError:
        return
    assert host == read and host_address(host) == IPv4Address(read)


@given(st.integers(0, 2**128 - 1).map(IPv6Address), st.sampled_from(["{0}", "{1}", "{2}"]))
def test_every_spelling_of_an_ipv6_address_is_the_same_host(address: IPv6Address, form: str) -> None:
    text = form.format(address.compressed, address.exploded, address.exploded.upper())
    assert canonical_host(f"[{text}]") == f"[{address.compressed}]"


@given(TEXTS, TEXTS)
def test_any_pin_is_read_or_refused(name: str, address: str) -> None:
    try:
        pins = parse_pins([(name, address)])
    except ValueError:
        return
    ((host, place),) = pins.items()
    assert canonical_host(name) == host and host_address(host) is None
    assert str(IPv4Address(place) if "." in place and ":" not in place else IPv6Address(place)) == place
