"""Where a granted host may be dialled: pins, one look-up, and the policy for each address that it gave.

Knows the rules of `hosts` for addresses and the system's resolver; sends nothing to anybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Final

import msgspec

from tamis.sandbox.model import AddedHeader, Refusal
from tamis.sandbox.network.hosts import (
    Rule,
    address_allowed,
    host_address,
    is_loopback,
    opening,
    parse_cidr,
    parse_pins,
    parse_rule,
    ranges_to_open,
)

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks a name up: (host, port) to IP addresses as text. OSError when the name has none."""

_MAX_ADDRESSES: Final = 16
_LOOKUPS: Final = 4  # at a time


class Refused(Exception):  # noqa: N818 - an answer, not an error
    """What the proxy answers instead: an HTTP status, a reason, and the address that was refused, if one was.

    `told` is what the run itself hears, where that is less than the reason.
    """

    def __init__(self, status: int, reason: str, address: str = "", told: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.address = address
        self.told = told or reason


class Addresses:
    """The addresses of one run's hosts.

    `allow_cidrs` are ranges beside the public ones that the operator opened, `pins` (name, address) of names that are not
    looked up, `resolver` looks up the others (default: the system's). Raises ValueError naming a bad range or pin.
    """

    def __init__(
        self, allow_cidrs: Sequence[str] = (), pins: Sequence[tuple[str, str]] = (), resolver: Resolver | None = None
    ) -> None:
        self._networks = tuple(parse_cidr(text) for text in allow_cidrs)
        self._pins = parse_pins(pins)
        self._resolve = resolver or self._ask_system
        # Threads of its own: a run that asks for many names that never answer must not hold up the daemon's others.
        self._lookups = ThreadPoolExecutor(_LOOKUPS, "tamis-lookup")

    def close(self) -> None:
        """Gives up the look-ups that have not begun; one that has ends with the resolver's own patience."""
        self._lookups.shutdown(wait=False, cancel_futures=True)

    async def vetted(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be dialled, at most 16, after exactly one look-up. Raises `Refused`."""
        literal = host_address(host)
        pinned = self._pins.get(host)
        if literal is not None or pinned is not None:
            addresses: list[str] = [str(literal or pinned)]
        else:
            try:
                addresses = list(await self._resolve(host, port))
            except TimeoutError:
                raise
            except (OSError, ValueError):
                raise Refused(502, f"the name {host} was not found") from None
        if not addresses:
            raise Refused(502, f"the name {host} has no address")
        if host == "localhost" or host.endswith(".localhost"):
            # whatever the system's resolver says (RFC 6761): what is sent there without encryption must not leave
            away = addresses[0]
            addresses = [address for address in addresses if is_loopback(ip_address(address))]
            if not addresses:
                told = f"{host} leads away from this machine here, so it is not dialled"
                raise Refused(403, f"{told}: its address is {away}", away, told)
        public = [address for address in dict.fromkeys(addresses) if address_allowed(address, self._networks)]
        allowed = [address for address in public if not is_own(address) or self._opened(address)]
        if not allowed:
            what = "this machine's own" if public else "not public"
            told = f"{host} leads only to addresses that are {what}; the operator can open one with policy.allowCidrs"
            reason = self._reason(host, addresses[0], what) or told
            raise Refused(403, reason, addresses[0], told)
        return allowed[:_MAX_ADDRESSES]

    def _reason(self, host: str, address: str, what: str) -> str:
        """What keeps an address closed, for the operator; empty where it is none or no range opens it."""
        missing = ranges_to_open(address, self._networks)
        if not missing:
            return ""
        pinned = " (pinned)" if host in self._pins else ""
        at = f"{host} is" if host_address(host) is not None else f"{host} is at {address}{pinned}, which is"
        return f"{at} {what}; {opening('allowCidrs', *missing)}"

    def _opened(self, address: str) -> bool:
        return any(ip_address(address) in network for network in self._networks)

    async def _ask_system(self, host: str, port: int) -> Sequence[str]:
        return await asyncio.get_running_loop().run_in_executor(self._lookups, _look_up, host, port)


def _look_up(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def is_own(address: str) -> bool:
    """Whether packets to this address stay on this machine: a service behind its firewall listens there. Sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return probe.getsockname()[0] == address
    return False


# Headers that the egress proxy adds to plain requests, so that what runs inside never sees their values. Pure bytes and rules. Only a request that
# the proxy reads itself can get one: what goes through a TLS tunnel is not looked into.


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
# A line break would make a second header of the value's rest.
_VALUE = re.compile(r"[\x20-\x7e\x80-\U0010ffff\t]*")
_NOT_TO_ADD = frozenset(
    ("host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection")
)
TLS_PORT = 443


def check_header(header: AddedHeader) -> None:
    """Raises `Refusal` for what cannot be added; the value is not shown."""
    where = f"the header {header.name!r} for {header.host!r}"
    if not _NAME.fullmatch(header.name) or header.name.lower() in _NOT_TO_ADD:
        raise Refusal(f"{where} cannot be added: it is no header's name, or it frames the request")
    if not _VALUE.fullmatch(header.value):
        raise Refusal(f"{where} cannot be added: its value holds a line break or another control character")
    try:
        parse_rule(header.host)
        header.value.encode()
    except UnicodeEncodeError:
        raise Refusal(f"{where} cannot be added: its value has no bytes") from None
    except ValueError as error:
        raise Refusal(f"{where} cannot be added: {error}") from None


class Added(msgspec.Struct, frozen=True):
    """The headers of one run by the hosts that they are for."""

    rules: tuple[tuple[Rule, AddedHeader], ...] = ()

    @classmethod
    def parse(cls, headers: Sequence[AddedHeader]) -> Added:
        """Headers that were checked."""
        return cls(tuple((parse_rule(header.host), header) for header in headers))

    def of(self, host: str, port: int) -> list[AddedHeader]:
        """What is added to a plain request to a canonical host; a rule without a port is for each that was granted."""
        return [
            header
            for rule, header in self.rules
            if rule.matches_host(host) and (rule.port is None or rule.matches_port(port))
        ]


def upstream_port(port: int) -> int:
    """Where a host is spoken to by TLS, when the client asked for this port without."""
    return TLS_PORT if port == 80 else port


def with_headers(head: bytes, headers: Sequence[AddedHeader]) -> bytes:
    """A head as it was rewritten for the server, with these headers in the place of any of their names."""
    line, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    # some servers take `_` for `-`
    names = {header.name.lower().replace("_", "-").encode() for header in headers}
    kept = [field for field in fields if field.partition(b":")[0].lower().replace(b"_", b"-") not in names]
    added = [f"{header.name}: {header.value}".encode() for header in headers]
    return b"\r\n".join((line, *kept[:1], *added, *kept[1:], b"", b""))
