"""What installed packages bring by entry point: found by name, loaded once, held against the version of its interface.

An installation does not change while a process runs. Whatever is wrong with a package is a sentence, never a crash; only what is named is
loaded. Must not know what is brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from tamis.protocols.observation import plain
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


MAX_WORDS = 2_000


class Brought(msgspec.Struct, frozen=True):
    """An object of a package; ``where`` names it and its package."""

    plugin: Any
    where: str


def names(group: str) -> list[str]:
    """What installed packages bring, in order; loads nothing."""
    return sorted({point.name for point in _points(group)})


def bring(group: str, name: str, what: str) -> Brought | str | None:
    """What a package brings under a name, or why it cannot be loaded; None when none brings it. ``what`` it is: ``the protocol``."""
    entry_points = [point for point in _points(group) if point.name == name]
    if not entry_points:
        return None
    if len({point.value for point in entry_points}) > 1:
        return f"two packages bring {what} '{name}': {' and '.join(map(_package, entry_points))}; remove one"
    where = f"{what} '{name}' of {_package(entry_points[0])}"
    try:
        return Brought(entry_points[0].load(), where)
    except BaseException as error:
        # also SystemExit: no package ends the process
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return f"{where} cannot be loaded: {words(error)}"


def fault(plugin: Any, api: int, named: str, name: str, methods: Sequence[str]) -> str:
    """What keeps an object from being what its entry point says: another version, another name (its attribute ``named``), lacking methods."""
    own = getattr(plugin, "api", None)
    if own != api:
        return f"it is written for version {own!r} of the interface, this Tamis has version {api}"
    if getattr(plugin, named, None) != name:
        return f"its {named} is {getattr(plugin, named, None)!r}"
    missing = [method for method in methods if not callable(getattr(plugin, method, None))]
    return f"it has no {' and no '.join(missing)}" if missing else ""


def words(error: BaseException) -> str:
    """An exception of somebody else's code, bounded and safe to show."""
    try:
        text = str(error)
    except Exception:
        text = "it has no words"
    return plain(f"{type(error).__name__}: {text[:MAX_WORDS]}")[:MAX_WORDS]


def _points(group: str) -> list[EntryPoint]:
    # looking at what is installed takes longer than reading a text
    from importlib.metadata import entry_points

    return list(entry_points(group=group))


def _package(point: EntryPoint) -> str:
    dist = getattr(point, "dist", None)
    return f"{dist.name} {dist.version}" if dist is not None else point.value


# Whether the workflow engine that the settings name can be used: its URL, or the package that brings it.


GROUP = "tamis.engines"


def missing_engine(name: str) -> str:
    """That no installed package brings an engine; empty when one does. Loads nothing."""
    known = names(GROUP)
    if name in known:
        return ""
    listed = f"; installed are {', '.join(known)}" if known else ""
    missing = f"no installed package brings an engine of that name (entry points {GROUP})"
    return f"engine.type is '{name}', and {missing}{hint(best(name, known)) or listed}"


def url_fault(url: str, settings: Settings) -> str:
    """Why an engine's URL cannot be used, cause and remedy; empty when it can."""
    if not url:
        return "is missing; write where the engine listens"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        return f"is no URL: {error}"
    if parts.scheme not in ("http", "https") or not host:
        return "must begin with http:// or https:// and a host"
    if parts.username is not None or parts.password is not None:
        return "must hold no user or password"
    return "" if is_near(host) else _policy_fault(parts, settings)


def is_near(host: str) -> bool:
    """Whether a URL's host is this machine by its spelling: ``localhost`` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _policy_fault(parts: SplitResult, settings: Settings) -> str:
    from tamis.sandbox.network.hosts import narrow, parse_cidr, parse_policy_rule, parse_rule, refusal_of

    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        wanted = parse_rule(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        rules = [parse_policy_rule(rule) for rule in settings.policy.allow_hosts]
        ranges = [parse_cidr(cidr) for cidr in settings.policy.allow_cidrs]
    except ValueError as error:
        return f"cannot be used: {error}"
    if any(narrow(rule, wanted, ranges) is not None for rule in rules):
        return ""
    return f"names '{host}', which is not this machine: {refusal_of(rules, wanted, ranges)}"
