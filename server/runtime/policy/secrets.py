"""Which secrets a tool may have: what its manifest asks for, what the operator defines, what ``policy.secrets`` lets it have.

Names only. Must not read a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import HostHeader, Policy, Secret, toml_value


class SecretFault(msgspec.Struct, frozen=True):
    """Why a tool cannot have a secret. ``setting`` is what the operator has to write or mend, ``remedy`` says how."""

    name: str
    code: str
    reason: str
    setting: str
    remedy: str

    @property
    def sentence(self) -> str:
        """The reason and the remedy."""
        return f"{self.reason}; {self.remedy}"


def secret_fault(
    name: str,
    tool_id: str,
    version: str,
    secrets: Mapping[str, Secret],
    policy: Policy,
    asked: Sequence[str] = (),
) -> SecretFault | None:
    """Why a tool cannot have a secret, as far as settings tell; None when it may. ``asked``: all that the tool asks for, which one line
    of the policy has to name."""
    if name not in secrets:
        near = hint(best(name, secrets))
        return SecretFault(
            name,
            "secretMissing",
            f"no [secrets] of the operator's settings defines '{name}'{near}",
            f"secrets.{name}",
            f'add {name} = {{ env = "…" }} to [secrets] of your own configuration, see docs/secrets.md',
        )
    if not may_have(name, tool_id, version, policy):
        return SecretFault(
            name,
            "secretNotGranted",
            f"policy.secrets does not let '{tool_id}' have '{name}'",
            "policy.secrets",
            _grant_of(name, tool_id, policy, asked),
        )
    return None


def _grant_of(name: str, tool_id: str, policy: Policy, asked: Sequence[str]) -> str:
    """The one line that gives a tool all that it asks for: a second line of its id would be no TOML."""
    there = policy.secrets.get(tool_id)
    line = toml_value({tool_id: list(dict.fromkeys((*(there or ()), *(asked or (name,)))))})[2:-2]
    if there is None:
        return f"add {line} to [policy.secrets] of your own configuration"
    return f"make the line of this tool {line} in [policy.secrets] of your own configuration"


def missing_secret(
    names: Iterable[str], tool_id: str, version: str, secrets: Mapping[str, Secret], policy: Policy
) -> str:
    """Why no call of a tool can be run, for want of a secret; empty: there is none."""
    asked = tuple(names)
    faults = (secret_fault(name, tool_id, version, secrets, policy, asked) for name in asked)
    return next((f"the tool needs the secret '{fault.name}': {fault.sentence}" for fault in faults if fault), "")


def may_have(name: str, tool_id: str, version: str, policy: Policy) -> bool:
    """Whether ``policy.secrets`` lets a tool have a secret."""
    return any(
        (name in names or "*" in names) and fits_tool(pattern, tool_id, version)
        for pattern, names in policy.secrets.items()
    )


def fits_tool(pattern: str, tool_id: str, version: str) -> bool:
    """Whether a pattern is of a tool's id, or of ``id@version``."""
    return any(pattern == name or fnmatchcase(name, pattern) for name in (tool_id, f"{tool_id}@{version}"))


def headers_of(tool_id: str, version: str, hosts: Iterable[str], policy: Policy) -> dict[str, HostHeader]:
    """The headers that the proxy adds to a tool's requests, by host as the policy writes it; ``hosts`` are what it was granted."""
    if not policy.hosts or not hosts:
        return {}
    from tamis.sandbox.network.hosts import parse_rule

    granted = [parse_rule(text) for text in hosts]
    headers: dict[str, HostHeader] = {}
    for text, header in policy.hosts.items():
        try:
            rule = parse_rule(text)
        except ValueError:
            # `policy_faults` says so
            continue
        if any(each.matches_host(rule.host) for each in granted) and _is_for(header, tool_id, version, policy):
            headers[text] = header
    return headers


def _is_for(header: HostHeader, tool_id: str, version: str, policy: Policy) -> bool:
    if header.tools:
        return any(fits_tool(pattern, tool_id, version) for pattern in header.tools)
    return may_have(header.secret, tool_id, version, policy)
