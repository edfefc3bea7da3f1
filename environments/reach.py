"""Whether the hosts of a recipe can be reached: what the proxy refused, in words, and one look-up of the names beforehand.

Sends nothing to any of them. Must not know installers.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence
from ipaddress import ip_address

import msgspec

from tamis.environments.model import Options
from tamis.sandbox.model import RunOutcome
from tamis.sandbox.network.egress_hosts import Addresses, Refused
from tamis.sandbox.network.hosts import OPERATORS, opening, ranges_to_open

LOOK_SECONDS = 3.0
_MAX_HOSTS = 32
_WORD = re.compile(r"[0-9A-Fa-f:.]{3,45}")


class Unreached(msgspec.Struct, frozen=True):
    """A host (`name:port`) that would not be reached, why, and what opens it."""

    host: str
    reason: str
    remedy: str


def refused(hosts: Sequence[str], outcome: RunOutcome) -> tuple[str, str]:
    """(sentence, remedy) of what the proxy refused to an installer that may reach `hosts`."""
    for denial in outcome.denials:
        if denial.target in hosts:
            why, remedy = _why(denial.target, denial.reason, _address_in(denial.reason))
            return f"the package index was not reached: {why}", remedy
    targets = ", ".join(outcome.denied_hosts[:4])
    return (
        f"{targets} was refused, as packages come from {', '.join(hosts[:4]) or 'no host'} only",
        "an index that keeps its files elsewhere needs that place in dependencies.indexes of tamis.toml; no other is fetched from",
    )


def _why(target: str, reason: str, address: str) -> tuple[str, str]:
    host = target.rpartition(":")[0]
    if not address:
        return (
            f"{target} was refused: {reason}",
            f"an address that is not public is opened by policy.allowCidrs of {OPERATORS}",
        )
    what = "this machine's own" if "this machine's own" in reason else "not public"
    at = f"the index host {host} is at {address}, which is" if host.strip("[]") != address else f"{host} is"
    return f"{at} {what}", opening("allowCidrs", *ranges_to_open(address))


def _address_in(reason: str) -> str:
    """The address that a reason names, empty without one."""
    for word in _WORD.findall(reason):
        try:
            return str(ip_address(word.strip(".").removesuffix(":")))
        except ValueError:
            continue
    return ""


async def unreached(hosts: Sequence[str], options: Options, *, seconds: float = LOOK_SECONDS) -> tuple[Unreached, ...]:
    """The hosts (`name:port`) whose names lead nowhere or to addresses that are not opened, each looked up once, all within
    `seconds`."""
    addresses = Addresses(options.allow_cidrs, options.pin, _look_up)

    async def look(target: str) -> Unreached | None:
        host, _, port = target.rpartition(":")
        try:
            await asyncio.wait_for(addresses.vetted(host.strip("[]"), int(port)), seconds)
        except Refused as error:
            if error.status == 403:
                return Unreached(target, *_why(target, error.reason, error.address))
            remedy = "see whether this machine is connected, or name its address in policy.pin"
            return Unreached(target, error.reason, remedy)
        except TimeoutError:
            return Unreached(target, f"the name {host} was not found within {seconds:g} s", "see to the name server")
        return None

    try:
        gather = await asyncio.gather(*(look(target) for target in dict.fromkeys(hosts[:_MAX_HOSTS])))
    finally:
        addresses.close()
    return tuple(failure for failure in gather if failure is not None)


async def _look_up(host: str, port: int) -> Sequence[str]:
    """The system's answer, by a thread that nobody waits for: a resolver without an answer does not hold up the end."""
    import socket

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str] | OSError] = loop.create_future()

    def tell(outcome: list[str] | OSError) -> None:
        if not answer.done():
            answer.set_result(outcome)

    def ask() -> None:
        try:
            outcome: list[str] | OSError = [
                str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            ]
        except (OSError, UnicodeError) as error:
            outcome = error if isinstance(error, OSError) else OSError(str(error))
        try:
            loop.call_soon_threadsafe(tell, outcome)
        except RuntimeError:
            return  # the loop is closed: the answer came too late

    threading.Thread(target=ask, name="tamis-index-lookup", daemon=True).start()
    outcome = await answer
    if isinstance(outcome, OSError):
        raise outcome
    return outcome
