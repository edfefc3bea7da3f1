"""Where a granted host may be dialled: pins, one look-up, and the policy for each address that it gave.

Knows the rules of `hosts` for addresses and the system's resolver; sends nothing to anybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Final

from tamis.sandbox.network.hosts import address_allowed, host_address, parse_cidr, parse_pins, ranges_to_open

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
            found: list[str] = [str(literal or pinned)]
        else:
            try:
                found = list(await self._resolve(host, port))
            except TimeoutError:
                raise
            except (OSError, ValueError):
                raise Refused(502, f"the name {host} was not found") from None
        if not found:
            raise Refused(502, f"the name {host} has no address")
        public = [address for address in dict.fromkeys(found) if address_allowed(address, self._networks)]
        allowed = [address for address in public if not is_own(address) or self._opened(address)]
        if not allowed:
            what = "this machine's own" if public else "not public"
            told = f"{host} leads only to addresses that are {what}; the operator can open one with policy.allowCidrs"
            reason = self._reason(host, found[0], what) or told
            raise Refused(403, reason, found[0], told)
        return allowed[:_MAX_ADDRESSES]

    def _reason(self, host: str, address: str, what: str) -> str:
        """What keeps an address closed, for the operator; empty where it is none or no range opens it."""
        missing = ranges_to_open(address, self._networks)
        if not missing:
            return ""
        pinned = " (pinned)" if host in self._pins else ""
        at = f"{host} is" if host_address(host) is not None else f"{host} is at {address}{pinned}, which is"
        listed = ", ".join(f'"{text}"' for text in missing)
        how = f"by adding {listed} to policy.allowCidrs" if self._networks else f"with policy.allowCidrs = [{listed}]"
        return f"{at} {what}; the operator can open it {how}"

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
