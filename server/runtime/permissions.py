"""What a tool asks for, what the operator's policy allows, and what it therefore gets.

``securityContext`` is a request, never a grant: the grant is its intersection with the policy, and every refused request is
said with its reason (ruling 38, D85). Pure except for resolving the operator's own roots.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from tamis.protocols.contract import Denied, Granted, Permissions
from tamis.protocols.manifest.reading import Manifest
from tamis.protocols.manifest.security import CAPABILITIES
from tamis.server.runtime.config import Policy

_OWN_FOLDER = frozenset({"self", ".", "./", "*", "**", "./*", "./**"})
_GLOB = frozenset("*?[")


class Grant(msgspec.Struct, frozen=True):
    """The rights of one run. ``read`` and ``write`` are absolute host paths beside the tool's own folder;
    ``own_write`` are folders below it. ``blocked`` is the reason why the tool must not run at all, or empty."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    own_write: tuple[str, ...]
    hosts: tuple[str, ...]
    permissions: Permissions
    blocked: str = ""


def grant(manifest: Manifest, policy: Policy) -> Grant:
    """Intersects a manifest's requests with the policy."""
    context = manifest.security_context
    granted = Granted()
    denied: list[Denied] = []
    read: list[str] = []
    write: list[str] = []
    own_write: list[str] = []
    hosts: list[str] = []
    blocked = ""
    for pattern in context.file_access.allow_read:
        found = _path(pattern, policy.read_roots, "readRoots")
        if isinstance(found, Denied):
            denied.append(found)
            continue
        granted.read.append(pattern)
        if os.path.isabs(found):
            read.append(found)
    for pattern in context.file_access.allow_write:
        found = _path(pattern, policy.write_roots, "writeRoots")
        if not isinstance(found, Denied) and found == ".":
            found = Denied(
                kind="write",
                value=pattern,
                reason="a tool must not write its own folder as a whole: it could change its own script; name a folder in it",
            )
        if isinstance(found, Denied):
            denied.append(Denied(kind="write", value=pattern, reason=found.reason))
            continue
        granted.write.append(pattern)
        (write if os.path.isabs(found) else own_write).append(found)
    hosts, refused = _hosts(context.network.allow_hosts, policy)
    granted.hosts.extend(hosts)
    denied.extend(refused)
    for name in context.required_capabilities:
        if name not in CAPABILITIES:
            reason = f"no capability of this name is known; known are {', '.join(sorted(CAPABILITIES))}"
        elif name not in policy.capabilities:
            reason = "policy.capabilities in tamis.toml does not name it"
        else:
            granted.capabilities.append(name)
            continue
        denied.append(Denied(kind="capability", value=name, reason=reason))
        blocked = blocked or f"the tool requires the capability '{name}': {reason}"
    requested = manifest.raw.get("securityContext")
    permissions = Permissions(
        requested=requested if isinstance(requested, dict) else {}, granted=granted, denied=denied
    )
    return Grant(tuple(read), tuple(write), tuple(own_write), tuple(hosts), permissions, blocked)


def _path(pattern: str, roots: tuple[str, ...], setting: str) -> str | Denied:
    """The folder or file a pattern stands for: relative to the tool's folder (``.`` for all of it) or absolute."""

    def refused(reason: str) -> Denied:
        return Denied(kind="read", value=pattern, reason=reason)

    if not pattern or "\0" in pattern or "\\" in pattern:
        return refused("an empty path, a backslash or a NUL is no path pattern")
    if "://" in pattern:
        return refused("resources are given to a call by a uri_ parameter, not to a tool by securityContext")
    if pattern in _OWN_FOLDER:
        return "."
    base = pattern.removesuffix("/**").removesuffix("/*").removesuffix("/") or "/"
    if set(base) & _GLOB:
        return refused("only a folder, a file, or a folder followed by /** can be granted")
    parts = PurePosixPath(base).parts
    if ".." in parts:
        return refused("a path with '..' leaves the folder it is relative to")
    if not base.startswith("/"):
        return str(PurePosixPath(*[part for part in parts if part != "."]))
    real = os.path.realpath(base)
    for root in roots:
        top = os.path.realpath(root)
        if real == top or real.startswith(top.rstrip("/") + "/"):
            return real
    return refused(f"policy.{setting} in tamis.toml does not hold this path")


def _hosts(requested: Sequence[str], policy: Policy) -> tuple[list[str], list[Denied]]:
    if not requested:
        return [], []
    # The sandbox's own rules: the same code decides what may be asked for and what is let through.
    from tamis.sandbox.hosts import Rule, intersect, parse_policy_rule, parse_rule

    opened: list[Rule] = []
    for text in policy.allow_hosts:
        with contextlib.suppress(ValueError):
            opened.append(parse_policy_rule(text))
    granted: list[str] = []
    denied: list[Denied] = []
    for text in requested:
        try:
            shared, _ = intersect(opened, (parse_rule(text),), policy.allow_cidrs)
        except ValueError as error:
            denied.append(Denied(kind="network", value=text, reason=str(error)))
            continue
        granted.extend(rule.text for rule in shared)
        if not shared:
            reason = "policy.allowHosts in tamis.toml does not open this host"
            denied.append(Denied(kind="network", value=text, reason=reason))
    return granted, denied
