"""Whether the workflow engine that the settings name can be used: its URL, or the package that brings it. Must not know what an engine does."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.installed import names

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
