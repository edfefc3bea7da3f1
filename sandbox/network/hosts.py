"""Which hosts a sandboxed run may reach: canonical names, rules of `allowHosts`, and the policy for addresses.

Pure text and numbers: no sockets, no asyncio, no resolver, no manifests. Everything that is compared is compared in one
canonical form, and whatever has two readings (``127.1``, ``a*.x``, a URL) is refused, never guessed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal

import msgspec

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Port = int | Literal["*"] | None
"""A port number, ``"*"`` for every port, or None for the web ports 80 and 443."""

WEB_PORTS: Final = (80, 443)
_NEAR: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
_MAX_HOST: Final = 512  # before IDNA; the canonical form has at most 253 characters (RFC 1035)

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_DOTTED_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})", re.ASCII)
# What inet_aton or a URL parser would take for a number, so that the whole name could become an IPv4 address.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_IDNA_DOTS = re.compile("[\u3002\uff0e\uff61]")
# IDNA 2003 and 2008 send these to different names, so a rule that holds one would open a host that nobody named.
_IDNA_DEVIATIONS: Final = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def canonical_host(text: str) -> str:
    """The one spelling of a host: a lower-case ASCII name, a dotted quad, or an IPv6 address in brackets.

    Idempotent. Raises ValueError, with the remedy, for anything else: user info, ports, zones, percent signs, spaces,
    labels that are not letters, digits, hyphens and underscores, and other spellings of an IPv4 address.
    """
    if not text:
        raise ValueError("the host is empty; write a name such as 'api.example.com'")
    if len(text) > _MAX_HOST:
        raise ValueError(f"host {_quote(text)} has {len(text)} characters; a host name has at most 253")
    if text.startswith("["):
        return _canonical_ipv6(text)
    name = _IDNA_DOTS.sub(".", text)
    labels = [_ascii_label(label, text) for label in name.removesuffix(".").split(".")]
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise ValueError(_label_fault(label, text))
    name = ".".join(labels)
    if len(name) > 253:
        raise ValueError(f"host {_quote(text)} is longer than the 253 characters of a host name")
    numeric = _NUMERIC_LABEL.fullmatch(labels[-1]) is not None
    if numeric and (not _DOTTED_QUAD.fullmatch(name) or any(int(label) > 255 for label in labels)):
        raise ValueError(
            f"host {_quote(text)} ends in a number and is not an IPv4 address; write four decimal numbers, '192.0.2.7'"
        )
    return name


def _canonical_ipv6(text: str) -> str:
    if not text.endswith("]"):
        raise ValueError(f"host {_quote(text)} has text after its bracket; write '[2001:db8::1]'")
    inner = text[1:-1]
    if "%" in inner:
        raise ValueError(f"host {_quote(text)} has a zone; write the address without '%'")
    try:
        return f"[{IPv6Address(inner).compressed}]"
    except ValueError:
        raise ValueError(f"host {_quote(text)} is not an IPv6 address in brackets; write '[2001:db8::1]'") from None


def _ascii_label(label: str, host: str) -> str:
    if label.isascii():
        return label.lower()
    if not _IDNA_DEVIATIONS.isdisjoint(label):
        raise ValueError(f"host {_quote(host)} has a character that clients map differently; write its 'xn--' form")
    from encodings import idna  # its tables cost milliseconds, and most hosts are ASCII

    try:
        return idna.ToASCII(label).decode("ascii").lower()
    except UnicodeError:
        raise ValueError(f"host {_quote(host)} is not an international domain name; write its 'xn--' form") from None


def _label_fault(label: str, host: str) -> str:
    if not label:
        return f"host {_quote(host)} has an empty label; write a name such as 'api.example.com'"
    if len(label) > 63:
        return f"host {_quote(host)} has a label of {len(label)} characters; a label has at most 63"
    if ":" in label:
        return f"host {_quote(host)} has a ':'; an IPv6 address stands in brackets, '[2001:db8::1]'"
    return f"host {_quote(host)}: {_quote(label)} is not a label of letters, digits, '-' and '_'; write a name such as 'api.example.com'"


def host_address(host: str) -> Address | None:
    """The address that a canonical host spells, or None for a name."""
    if host.startswith("["):
        return IPv6Address(host[1:-1])
    return IPv4Address(host) if _DOTTED_QUAD.fullmatch(host) else None


def parse_port(text: str) -> int:
    """A port of 1 to 65535 without sign or leading zero; ValueError otherwise."""
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise ValueError(f"port {_quote(text)} is not a number from 1 to 65535")
    return int(text)


def split_port(text: str) -> tuple[str, str | None]:
    """Splits ``host[:port]`` at the colon after the host; an IPv6 host stands in brackets. ValueError if it does not."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"host {_quote(text)} is not an address in brackets; write '[2001:db8::1]:443'")
        return f"{host}]", rest[1:] if rest else None
    if text.count(":") > 1:
        raise ValueError(
            f"host {_quote(text)} has more than one ':'; an IPv6 address stands in brackets, '[2001:db8::1]'"
        )
    host, colon, port = text.partition(":")
    return host, port if colon else None


class Rule(msgspec.Struct, frozen=True):
    """One entry of `allowHosts`.

    ``name`` and ``address`` match the host itself, ``subdomains`` every name below it (never the host), and ``public``
    every host; its `host` is empty.
    """

    kind: Literal["name", "subdomains", "address", "public"]
    host: str
    port: Port = None

    @property
    def text(self) -> str:
        """The canonical spelling; `parse_policy_rule` reads it back to an equal rule."""
        host = {"public": "*", "subdomains": f"*.{self.host}"}.get(self.kind, self.host)
        return host if self.port is None else f"{host}:{self.port}"

    def matches_host(self, host: str) -> bool:
        """Whether a canonical host is one that the rule names, whatever the port."""
        if self.kind == "public":
            return True
        if self.kind == "subdomains":
            return host.endswith(f".{self.host}")
        return host == self.host

    def matches_port(self, port: int) -> bool:
        """Whether the rule opens this port."""
        return self.port == "*" or port == self.port or (self.port is None and port in WEB_PORTS)


def parse_rule(text: str) -> Rule:
    """Reads ``name``, ``*.name``, ``ip`` or ``[v6]``, each with ``:port``, ``:*`` or no port (80 and 443).

    Raises ValueError naming the rule and the remedy for everything else, ``*`` included: a request names its hosts.
    """
    rule = parse_policy_rule(text)
    if rule.kind == "public":
        raise ValueError(
            f"rule {_quote(text)} is every host; name the hosts, such as 'api.example.com' or '*.example.com'"
        )
    return rule


def parse_policy_rule(text: str) -> Rule:
    """Reads a rule of the operator's policy: like `parse_rule`, and ``*`` (``*:port``, ``*:*``) for any public host."""
    if not text:
        raise ValueError("the rule is empty; write a host such as 'api.example.com'")
    if "/" in text or "\\" in text:
        raise ValueError(
            f"rule {_quote(text)} is a URL or a range; write the host alone, such as 'api.example.com:443'"
        )
    if "@" in text:
        raise ValueError(f"rule {_quote(text)} holds user information; write the host alone")
    try:
        below = text.startswith("*.")
        host, port_text = split_port(text[2:] if below else text)
        port: Port = "*" if port_text == "*" else None if port_text is None else parse_port(port_text)
        if below:
            return Rule("subdomains", _wildcard_base(host), port)
        if host == "*":
            return Rule("public", "", port)
        if "*" in host:
            raise ValueError("'*' stands only for whole labels in front, as in '*.example.com'")
        name = canonical_host(host)
    except ValueError as error:
        raise ValueError(f"rule {_quote(text)}: {error}") from None
    return Rule("name" if host_address(name) is None else "address", name, port)


def _wildcard_base(text: str) -> str:
    if "*" in text:
        raise ValueError("it has more than one '*'; write one in front, as in '*.example.com'")
    base = canonical_host(text)
    if host_address(base) is not None:
        raise ValueError("an address has no sub-domains; write the address alone")
    if "." not in base:
        raise ValueError(f"it opens all of '.{base}'; keep at least two labels after '*.', as in '*.example.com'")
    return base


class Decision(msgspec.Struct, frozen=True):
    """Whether a host and port may be reached, and why in one line that a reader can act on."""

    allowed: bool
    reason: str


class Rules(msgspec.Struct, frozen=True):
    """The rules of one run."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Rules:
        """Reads every text with `parse_rule`; ValueError names the first bad one."""
        return cls(tuple(dict.fromkeys(parse_rule(text) for text in texts)))

    def decide(self, host: str, port: int) -> Decision:
        """Whether the rules open this host and port; a host without a canonical form is refused."""
        try:
            host = canonical_host(host)
        except ValueError as error:
            return Decision(False, str(error))
        if not 1 <= port <= 65535:
            return Decision(False, f"port {port} is not a number from 1 to 65535")
        named = [rule for rule in self.rules if rule.matches_host(host)]
        for rule in named:
            if rule.matches_port(port):
                return Decision(True, f"allowHosts has '{rule.text}'")
        if named:
            rules = ", ".join(f"'{rule.text}'" for rule in named[:4])
            return Decision(
                False, f"port {port} of {host} is not allowed: allowHosts has {rules}; ask for '{host}:{port}' there"
            )
        return Decision(False, f"host {host} is not allowed: allowHosts has {self._summary()}; ask for '{host}' there")

    def _summary(self) -> str:
        if not self.rules:
            return "no entry"
        shown = ", ".join(f"'{rule.text}'" for rule in self.rules[:8])
        return shown if len(self.rules) <= 8 else f"{shown} and {len(self.rules) - 8} more"


def rule_covers(policy_rule: Rule, requested_rule: Rule, allow_cidrs: Sequence[str | Network] = ()) -> bool:
    """Whether every host and port of the request lies within the operator's rule.

    ``*`` covers every name, and an address only if it is public or in a range that the operator opened.
    """
    return narrow(policy_rule, requested_rule, allow_cidrs) == requested_rule


def narrow(policy_rule: Rule, requested_rule: Rule, allow_cidrs: Sequence[str | Network] = ()) -> Rule | None:
    """The hosts and ports that both rules open, as one rule; None if there are none."""
    host = _narrow_host(policy_rule, requested_rule, allow_cidrs)
    if host is None:
        return None
    if policy_rule.port == requested_rule.port or policy_rule.port == "*":
        port = requested_rule.port
    elif requested_rule.port == "*":
        port = policy_rule.port
    elif isinstance(policy_rule.port, int):
        if not requested_rule.matches_port(policy_rule.port):
            return None
        port = policy_rule.port
    elif isinstance(requested_rule.port, int) and policy_rule.matches_port(requested_rule.port):
        port = requested_rule.port
    else:
        return None
    return Rule(host.kind, host.host, port)


def _narrow_host(policy: Rule, requested: Rule, allow_cidrs: Sequence[str | Network]) -> Rule | None:
    if requested.kind == "public":
        return policy
    if policy.kind == "public":
        address = host_address(requested.host) if requested.kind == "address" else None
        return requested if address is None or address_allowed(address, allow_cidrs) else None
    if policy.kind == "subdomains":
        if requested.host.endswith(f".{policy.host}") or (
            requested.kind == "subdomains" and requested.host == policy.host
        ):
            return requested
        return policy if requested.kind == "subdomains" and policy.host.endswith(f".{requested.host}") else None
    if requested.kind == "subdomains":
        return policy if requested.matches_host(policy.host) else None
    return requested if requested.host == policy.host else None


def intersect(
    policy: Iterable[Rule], requested: Iterable[Rule], allow_cidrs: Sequence[str | Network] = ()
) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """The grant and what was refused (ruling 38): (rules that both sides open, requests of which nothing is open)."""
    policy = tuple(policy)
    granted: dict[Rule, None] = {}
    refused: dict[Rule, None] = {}
    for request in requested:
        shared = [rule for rule in (narrow(entry, request, allow_cidrs) for entry in policy) if rule is not None]
        granted.update(dict.fromkeys(shared))
        if not shared:
            refused[request] = None
    return tuple(granted), tuple(refused)


def opening(setting: str, *texts: str) -> str:
    """The remedy for what the policy does not open: what to write, and whose word counts. ``texts`` may be a stranger's."""
    from json import dumps  # quoted so that what is copied is one text, whatever it holds

    added = ", ".join(dumps(text, ensure_ascii=False) for text in texts)
    return f"add {added} to policy.{setting} of {OPERATORS}"


OPERATORS = "your own configuration, or of the tamis.toml of a folder that you trust (`tamis trust`)"
"""Where what widens a policy is in force."""


def refusal_of(policy: Sequence[Rule], requested: Rule, allow_cidrs: Sequence[str | Network] = ()) -> str:
    """Why nothing of a request is open under the operator's rules, and the rule that would open it."""
    hosts = [rule for rule in policy if _narrow_host(rule, requested, allow_cidrs) is not None]
    if hosts:
        shown = ", ".join(f"'{rule.text}'" for rule in hosts[:4])
        ports = (
            ""
            if any(rule.port is not None for rule in hosts)
            else f", which means ports {WEB_PORTS[0]} and {WEB_PORTS[1]}"
        )
        return (
            f"policy.allowHosts in force here opens this host, but not this port: it has {shown}{ports};"
            f" {opening('allowHosts', requested.text)}"
        )
    address = host_address(requested.host) if requested.kind == "address" else None
    if address is not None and any(
        rule.kind == "public" and narrow(rule, requested, [ip_network(address)]) for rule in policy
    ):
        return (
            f"'*' in policy.allowHosts means public hosts, and {address} is not public;"
            f" {opening('allowCidrs', str(ip_network(address)))}"
        )
    return f"policy.allowHosts in force here does not open this host; {opening('allowHosts', requested.text)}"


def is_this_machine(host: str) -> bool:
    """Whether what is sent to a canonical host stays on this machine: `localhost` (`Addresses` holds the name to it) or a loopback address."""
    address = host_address(host)
    return host == "localhost" if address is None else is_loopback(address)


def is_loopback(address: Address) -> bool:
    """127.0.0.0/8 or ::1; an IPv6 address that carries one of them is none."""
    return address.is_loopback and (isinstance(address, IPv4Address) or address.ipv4_mapped is None)


def loopback_fault(requested: Rule) -> str:
    """Why a request for loopback opens nothing, or an empty text: clients do not send it to the proxy (`NO_PROXY`)."""
    if requested.host not in _NEAR and not requested.host.endswith(".localhost"):
        return ""
    address = "::1" if requested.host == "[::1]" else "127.0.0.1"
    return (
        f"{requested.host} is the sandbox itself there, so it needs no grant; a server of this machine is reached by a"
        f' pinned name: policy.pin = {{ "host.test" = "{address}" }} and policy.allowCidrs = ["{ip_network(address)}"],'
        " with that name in both allowHosts"
    )


# The IANA special-purpose registries. Own tables, because `ipaddress.is_global` differs between releases of Python.
_NOT_PUBLIC_V4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_PUBLIC_V6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
# Where clouds answer with credentials. Only a range of exactly one address opens one of these.
_METADATA: Final = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.0.23",
        "169.254.42.42",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.169.123",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd00:42::42",
        "fd20:ce::254",
        "fe80::a9fe:a9fe",
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_V4_COMPATIBLE: Final = IPv6Network("::/96")


def parse_cidr(text: str) -> Network:
    """A range that the operator opens, ``10.1.0.0/16`` or one address; ValueError names the fault and the remedy."""
    if "%" in text:
        raise ValueError(f"range {_quote(text)} has a zone; write it without '%'")
    try:
        widened = ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"range {_quote(text)} is not an address range; write '10.1.0.0/16' or 'fd00::/8'") from None
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(f"range {_quote(text)} has bits after its prefix; write '{widened}'") from None


def parse_pin(name: str, address: str) -> tuple[str, str]:
    """A pin of the operator's: (canonical name, address) for a name that is at one address and is not looked up.

    Whether that address may be dialled is `address_allowed`'s to say. ValueError names the fault and the remedy.
    """
    try:
        host = canonical_host(name)
    except ValueError as error:
        raise ValueError(f"pin {_quote(name)}: {error}") from None
    if host_address(host) is not None:
        raise ValueError(f"pin {_quote(name)} is of an address, which is not looked up; pin a name, 'api.example.com'")
    try:
        place = ip_address(address)
    except ValueError:
        place = None
    if place is None or (isinstance(place, IPv6Address) and place.scope_id is not None):
        raise ValueError(
            f"pin {_quote(name)}: {_quote(address)} is not an IP address; write '192.0.2.7' or '2001:db8::1'"
        )
    return host, str(place)


def parse_pins(pins: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Address by canonical name; ValueError for a bad pin, and for a name with two addresses."""
    by_host: dict[str, str] = {}
    for name, address in pins:
        host, place = parse_pin(name, address)
        if by_host.setdefault(host, place) != place:
            raise ValueError(f"pin {_quote(name)}: {host} has two addresses, {by_host[host]} and {place}; keep one")
    return by_host


def pin_faults(pins: Iterable[tuple[str, str]], allow_cidrs: Sequence[str] = ()) -> list[str]:
    """What keeps pins from opening anything, a sentence each: unreadable, twice, or at an address that no range opens."""
    faults: list[str] = []
    ranges: list[Network] = []
    for text in allow_cidrs:
        with contextlib.suppress(ValueError):
            ranges.append(parse_cidr(text))
    known: list[tuple[str, str]] = []
    for name, address in pins:
        try:
            place = parse_pins([*known, (name, address)])[canonical_host(name)]
        except ValueError as error:
            faults.append(str(error))
            continue
        known.append((name, address))
        if not address_allowed(place, ranges):
            faults.append(
                f"pin {_quote(name)}: {place} is not public and no range of allowCidrs holds it; add '{place}'"
            )
    return faults


def address_allowed(ip: str | Address, allow_cidrs: Sequence[str | Network] = ()) -> bool:
    """Whether an address may be dialled: it is public, or lies in a range that the operator opened.

    An IPv6 address that carries an IPv4 one (mapped, compatible, NAT64, 6to4) is never public; it needs both its own range
    and the carried address to be open. Text that is not an address, or has a zone, is refused. ValueError for a bad range.
    """
    try:
        address = ip_address(ip) if isinstance(ip, str) else ip
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    networks = [parse_cidr(entry) if isinstance(entry, str) else entry for entry in allow_cidrs]
    return _allowed(address, networks)


def ranges_to_open(ip: str, allow_cidrs: Sequence[Network] = ()) -> list[str]:
    """The smallest ranges that the operator would have to add for this address to be dialled; none where none helps."""
    try:
        address = ip_address(ip)
    except ValueError:
        return []
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return []
    carried = _carried_ipv4(address) if isinstance(address, IPv6Address) else None
    wanted = [address, *([carried] if carried is not None else [])]
    opened = [network for network in allow_cidrs if network.num_addresses == 1]
    return [str(ip_network(each)) for each in wanted if ip_network(each) not in opened]


def _allowed(address: Address, networks: Sequence[Network]) -> bool:
    opened = [network for network in networks if address in network]
    if isinstance(address, IPv6Address):
        carried = _carried_ipv4(address)
        if carried is not None:
            return bool(opened) and _allowed(carried, networks)
    if address in _METADATA:
        return any(network.num_addresses == 1 for network in opened)
    return bool(opened) or _public(address)


def _public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    return address in _PUBLIC_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def _carried_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    # `::` and `::1` are addresses of their own, not 0.0.0.0 and 0.0.0.1 in disguise.
    if address in _NAT64 or (address in _V4_COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
