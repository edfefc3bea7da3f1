"""Host names, rules of `allowHosts` and addresses: the tables behind D17, D40 and ruling 38."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tamis.sandbox.network.hosts import (
    Rule,
    Rules,
    address_allowed,
    canonical_host,
    intersect,
    narrow,
    parse_cidr,
    parse_policy_rule,
    parse_rule,
    rule_covers,
)

CANONICAL = [
    ("example.com", "example.com"),
    ("EXAMPLE.Com", "example.com"),
    ("example.com.", "example.com"),
    ("localhost", "localhost"),
    ("_dmarc.example.com", "_dmarc.example.com"),
    ("r3---sn.example.com", "r3---sn.example.com"),
    ("a" * 63 + ".com", "a" * 63 + ".com"),
    ("0xdead.example.com", "0xdead.example.com"),
    ("1.2.3.4.com", "1.2.3.4.com"),
    ("192.0.2.7", "192.0.2.7"),
    ("192.0.2.7.", "192.0.2.7"),
    ("bücher.example", "xn--bcher-kva.example"),
    ("Bücher.example", "xn--bcher-kva.example"),
    ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
    ("例子.测试", "xn--fsqu00a.xn--0zwm56d"),
    ("例子。测试", "xn--fsqu00a.xn--0zwm56d"),
    ("ｅxample.com", "example.com"),
    ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
    ("[::1]", "[::1]"),
]


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_host_has_one_spelling(text: str, expected: str) -> None:
    assert canonical_host(text) == expected
    assert canonical_host(expected) == expected


NOT_HOSTS = [
    "",
    ".",
    "..",
    "example..com",
    ".example.com",
    "example.com..",
    "-a.example.com",
    "a-.example.com",
    "a" * 64 + ".com",
    ".".join(["a" * 60] * 5),
    "a" * 100_000,
    "ex ample.com",
    " example.com",
    "example.com\n",
    "example.com\x00",
    "user@example.com",
    "example.com:80",
    "example.com/path",
    "example.com#x",
    "exa%6dple.com",
    "exam*ple.com",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0x",
    "0177.0.0.1",
    "127.0.0.01",
    "127.0.0.0x1",
    "1.2.3.256",
    "1.2.3.4.5",
    "1.2.3.4..",
    "foo.1",
    "foo.0x1f",
    "１２７.１",
    "127。1",
    "fass.ß.de",
    "a\u200db.com",
    "\u2100.com",  # decomposes to 'a/c'
    "::1",
    "2001:db8::1",
    "[::1",
    "[::1]x",
    "[::1]:80",
    "[fe80::1%eth0]",
    "[127.0.0.1]",
    "[]",
    "[v1.x]",
    "\ud800.com",
]


@pytest.mark.parametrize("text", NOT_HOSTS)
def test_text_with_two_readings_is_no_host(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_host(text)


RULES = [
    ("api.example.com", Rule("name", "api.example.com")),
    ("API.Example.com.:8443", Rule("name", "api.example.com", 8443)),
    ("api.example.com:*", Rule("name", "api.example.com", "*")),
    ("*.example.com", Rule("subdomains", "example.com")),
    ("*.co.uk:443", Rule("subdomains", "co.uk", 443)),
    ("*.bücher.example", Rule("subdomains", "xn--bcher-kva.example")),
    ("192.0.2.7", Rule("address", "192.0.2.7")),
    ("192.0.2.7:1", Rule("address", "192.0.2.7", 1)),
    ("[2001:db8::1]", Rule("address", "[2001:db8::1]")),
    ("[2001:DB8::1]:65535", Rule("address", "[2001:db8::1]", 65535)),
    ("localhost:8080", Rule("name", "localhost", 8080)),
]


@pytest.mark.parametrize(("text", "expected"), RULES)
def test_rule_is_read_and_written_back(text: str, expected: Rule) -> None:
    assert parse_rule(text) == expected
    assert parse_rule(expected.text) == expected


BAD_RULES = [
    ("", "is empty"),
    ("*", "every host"),
    ("*:*", "every host"),
    ("*.com", "at least two labels"),
    ("*.com.", "at least two labels"),
    ("*.", "empty"),
    ("*.*.com", "more than one"),
    ("**.example.com", "whole labels"),
    ("a*.example.com", "whole labels"),
    ("api.*.com", "whole labels"),
    ("example.*", "whole labels"),
    ("*example.com", "whole labels"),
    ("*.192.0.2.7", "no sub-domains"),
    ("*.[2001:db8::1]", "no sub-domains"),
    ("https://example.com", "URL"),
    ("example.com/", "URL"),
    ("10.0.0.0/8", "URL or a range"),
    ("example.com\\x", "URL"),
    ("user@example.com", "user information"),
    ("example.com:", "port"),
    ("example.com:0", "port"),
    ("example.com:65536", "port"),
    ("example.com:080", "port"),
    ("example.com:+80", "port"),
    ("example.com:-1", "port"),
    ("example.com: 80", "port"),
    ("example.com:http", "port"),
    ("example.com:８０", "port"),
    ("example.com:80:81", "':'"),
    ("example.com:80-90", "port"),
    ("2001:db8::1", "brackets"),
    ("[2001:db8::1]80", "brackets"),
    ("[fe80::1%1]", "zone"),
    ("127.1", "IPv4"),
    (" example.com", "label"),
    ("example.com,example.org", "label"),
]


@pytest.mark.parametrize(("text", "fault"), BAD_RULES)
def test_bad_rule_is_refused_by_name_with_its_fault(text: str, fault: str) -> None:
    # D40
    with pytest.raises(ValueError, match=r"rule") as caught:
        parse_rule(text)
    assert fault in str(caught.value)
    assert not text or repr(text) in str(caught.value)


EXAMPLE_RULES = Rules.parse(
    [
        "api.example.com",
        "*.wild.example.org",
        "port.example.com:8443",
        "any.example.com:*",
        "192.0.2.7",
        "[2001:db8::1]:8080",
        "*.bücher.example:443",
    ]
)
DECISIONS = [
    ("api.example.com", 443, True),
    ("api.example.com", 80, True),
    ("API.EXAMPLE.COM.", 443, True),
    ("api.example.com", 8443, False),
    ("api.example.com", 22, False),
    ("api.example.com", 0, False),
    ("any.example.com", 0, False),
    ("any.example.com", 65536, False),
    ("any.example.com", -1, False),
    ("example.com", 443, False),
    ("x.api.example.com", 443, False),
    ("xapi.example.com", 443, False),
    ("api.example.com.evil.org", 443, False),
    ("api.example.comm", 443, False),
    ("wild.example.org", 443, False),
    ("a.wild.example.org", 443, True),
    ("a.b.wild.example.org", 80, True),
    ("awild.example.org", 443, False),
    (".wild.example.org", 443, False),
    ("a.wild.example.org", 8080, False),
    ("*.wild.example.org", 443, False),
    ("port.example.com", 8443, True),
    ("port.example.com", 443, False),
    ("any.example.com", 1, True),
    ("any.example.com", 65535, True),
    ("192.0.2.7", 80, True),
    ("192.0.2.8", 80, False),
    ("192.0.2.7.", 443, True),
    ("3221225991", 80, False),
    ("0xc0000207", 80, False),
    ("[2001:db8:0::1]", 8080, True),
    ("[2001:db8::1]", 443, False),
    ("[::ffff:192.0.2.7]", 80, False),
    ("shop.xn--bcher-kva.example", 443, True),
    ("shop.BÜCHER.example", 443, True),
    ("shop.xn--bcher-kva.example", 80, False),
    ("api.example.com@evil.org", 443, False),
    ("api.example.com%00.evil.org", 443, False),
    ("api.example.com\x00", 443, False),
    ("", 443, False),
]


@pytest.mark.parametrize(("host", "port", "allowed"), DECISIONS)
def test_host_decision(host: str, port: int, allowed: bool) -> None:
    # D17, ruling 38
    decision = EXAMPLE_RULES.decide(host, port)
    assert decision.allowed is allowed
    assert decision.reason


def test_network_is_off_without_rules() -> None:
    # ruling 38
    decision = Rules().decide("example.com", 443)
    assert not decision.allowed
    assert "no entry" in decision.reason


def test_denied_host_names_the_rules_and_what_to_ask_for() -> None:
    decision = Rules.parse(["api.example.com"]).decide("evil.org", 443)
    assert decision.reason == "host evil.org is not allowed: allowHosts has 'api.example.com'; ask for 'evil.org' there"


def test_denied_port_names_the_rule_of_its_host() -> None:
    decision = Rules.parse(["api.example.com"]).decide("api.example.com", 8080)
    assert "port 8080" in decision.reason
    assert "'api.example.com:8080'" in decision.reason


ADDRESSES = [
    ("8.8.8.8", True),
    ("1.1.1.1", True),
    ("100.63.255.255", True),
    ("172.15.255.255", True),
    ("172.32.0.1", True),
    ("192.31.196.1", True),
    ("223.255.255.255", True),
    ("2606:4700::1111", True),
    ("2a00:1450:4001::200e", True),
    ("0.0.0.0", False),
    ("0.1.2.3", False),
    ("127.0.0.1", False),
    ("127.255.255.254", False),
    ("10.0.0.1", False),
    ("172.16.0.1", False),
    ("172.31.255.255", False),
    ("192.168.1.1", False),
    ("100.64.0.1", False),
    ("100.127.255.255", False),
    ("169.254.1.1", False),
    ("169.254.169.254", False),
    ("168.63.129.16", False),
    ("100.100.100.200", False),
    ("192.0.0.192", False),
    ("192.0.2.1", False),
    ("192.88.99.1", False),
    ("198.18.0.1", False),
    ("198.19.255.255", False),
    ("198.51.100.1", False),
    ("203.0.113.1", False),
    ("224.0.0.1", False),
    ("239.255.255.255", False),
    ("240.0.0.1", False),
    ("255.255.255.255", False),
    ("::", False),
    ("::1", False),
    ("fe80::1", False),
    ("fec0::1", False),
    ("fc00::1", False),
    ("fd00:ec2::254", False),
    ("ff02::1", False),
    ("2001:db8::1", False),
    ("3fff::1", False),
    ("2001::1", False),  # Teredo
    ("2001:10::1", False),
    ("100::1", False),
    ("5f00::1", False),
    ("4000::1", False),
    ("::ffff:127.0.0.1", False),
    ("::ffff:10.0.0.1", False),
    ("::ffff:8.8.8.8", False),
    ("::127.0.0.1", False),
    ("::8.8.8.8", False),
    ("64:ff9b::127.0.0.1", False),
    ("64:ff9b::169.254.169.254", False),
    ("64:ff9b::8.8.8.8", False),
    ("64:ff9b:1::1", False),
    ("2002:7f00:1::", False),
    ("2002:a00:1::1", False),
    ("2002:808:808::1", False),
    ("fe80::1%eth0", False),
    ("2606:4700::1111%eth0", False),
    ("127.1", False),
    ("0x7f.0.0.1", False),
    ("example.com", False),
    ("", False),
]


@pytest.mark.parametrize(("address", "allowed"), ADDRESSES)
def test_only_public_addresses_are_dialled(address: str, allowed: bool) -> None:
    assert address_allowed(address) is allowed


OPENED = [
    ("10.1.2.3", ["10.1.0.0/16"], True),
    ("10.2.2.3", ["10.1.0.0/16"], False),
    ("127.0.0.1", ["127.0.0.0/8"], True),
    ("0.0.0.0", ["127.0.0.0/8"], False),
    ("::1", ["127.0.0.0/8"], False),
    ("::1", ["::1/128"], True),
    ("fd12::1", ["fd12::/16"], True),
    ("::ffff:10.1.2.3", ["10.1.0.0/16"], False),
    ("::ffff:10.1.2.3", ["::ffff:0:0/96"], False),
    ("::ffff:10.1.2.3", ["::ffff:0:0/96", "10.1.0.0/16"], True),
    ("64:ff9b::8.8.8.8", ["64:ff9b::/96"], True),
    ("64:ff9b::127.0.0.1", ["64:ff9b::/96"], False),
    ("169.254.169.254", ["169.254.0.0/16"], False),
    ("169.254.169.254", ["0.0.0.0/0"], False),
    ("169.254.0.23", ["169.254.0.0/16"], False),
    ("169.254.42.42", ["169.254.0.0/16"], False),
    ("fd00:42::42", ["fd00::/8"], False),
    ("169.254.169.254", ["169.254.169.254/32"], True),
    ("64:ff9b::169.254.169.254", ["64:ff9b::/96", "169.254.0.0/16"], False),
    ("fd00:ec2::254", ["fd00::/8"], False),
    ("8.8.8.8", ["10.0.0.0/8"], True),
]


@pytest.mark.parametrize(("address", "ranges", "allowed"), OPENED)
def test_operator_opens_exactly_the_ranges_that_are_named(address: str, ranges: list[str], allowed: bool) -> None:
    assert address_allowed(address, ranges) is allowed


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1/8", "10.0.0.0/33", "10", "fe80::%eth0/64", "example.com", "10.0.0.0/8/8"]
)
def test_bad_range_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"range") as caught:
        parse_cidr(text)
    assert repr(text) in str(caught.value)


COVERS = [
    ("*", "api.example.com", True),
    ("*", "*.example.com:443", True),
    ("*", "api.example.com:8443", False),
    ("*:*", "api.example.com:8443", True),
    ("*:*", "api.example.com:*", True),
    ("*", "8.8.8.8", True),
    ("*", "10.0.0.1", False),
    ("*", "[::1]", False),
    ("api.example.com", "api.example.com", True),
    ("api.example.com", "API.example.com.:443", True),
    ("api.example.com", "api.example.com:*", False),
    ("api.example.com:443", "api.example.com", False),
    ("api.example.com:*", "api.example.com", True),
    ("*.example.com", "api.example.com", True),
    ("*.example.com", "*.example.com", True),
    ("*.example.com", "*.api.example.com", True),
    ("*.example.com", "example.com", False),
    ("*.api.example.com", "*.example.com", False),
    ("api.example.com", "*.example.com", False),
    ("*.example.com", "notexample.com", False),
    ("10.0.0.1", "10.0.0.1", True),
    ("10.0.0.1", "10.0.0.2", False),
]


@pytest.mark.parametrize(("policy", "requested", "covered"), COVERS)
def test_policy_covers_a_request(policy: str, requested: str, covered: bool) -> None:
    # ruling 38
    assert rule_covers(parse_policy_rule(policy), parse_rule(requested)) is covered


def test_any_public_host_includes_addresses_in_ranges_the_operator_opened() -> None:
    assert rule_covers(parse_policy_rule("*"), parse_rule("10.0.0.1"), ["10.0.0.0/8"])


@pytest.mark.parametrize(
    ("policy", "requested", "shared"),
    [
        ("*.api.example.com", "*.example.com:443", "*.api.example.com:443"),
        ("api.example.com:443", "*.example.com", "api.example.com:443"),
        ("*:8443", "a.example.com:*", "a.example.com:8443"),
        ("*:8443", "a.example.com", None),
        ("a.example.com", "b.example.com", None),
    ],
)
def test_grant_is_the_narrower_of_policy_and_request(policy: str, requested: str, shared: str | None) -> None:
    # ruling 38
    rule = narrow(parse_policy_rule(policy), parse_rule(requested))
    assert (rule.text if rule else None) == shared


def test_intersection_says_what_was_refused() -> None:
    # ruling 38
    policy = [parse_policy_rule(text) for text in ("api.example.com:443", "*.example.org")]
    requested = [parse_rule(text) for text in ("api.example.com", "cdn.example.org", "evil.net")]
    granted, refused = intersect(policy, requested)
    assert [rule.text for rule in granted] == ["api.example.com:443", "cdn.example.org"]
    assert [rule.text for rule in refused] == ["evil.net"]


def test_hosts_alone_loads_no_event_loop() -> None:
    code = "import sys, tamis.sandbox.network.hosts as h; h.parse_rule('*.example.com'); sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
