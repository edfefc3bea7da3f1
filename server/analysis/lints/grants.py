"""Lints of what a tool asks for: contradictions in itself, and what this root's settings never grant.

Only what the settings alone decide; places on disk are the sandbox's to judge. Must not know scripts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.manifest.security import host_pattern_fault, variable_name_fault
from tamis.server.analysis.lints.local import Collector, object_at, text_of, texts_of, without_item
from tamis.server.runtime.observe.redaction import looks_secret

if TYPE_CHECKING:
    from tamis.server.runtime.settings.config import Policy
    from tamis.server.runtime.settings.config import Settings as RootSettings

_LIMITS = {
    "wallMs": "wall_ms",
    "cpuSeconds": "cpu_seconds",
    "memoryBytes": "memory_bytes",
    "processes": "processes",
    "openFiles": "open_files",
    "fileBytes": "file_bytes",
    "tmpBytes": "tmp_bytes",
    "stdinBytes": "stdin_bytes",
    "stdoutBytes": "stdout_bytes",
    "stderrBytes": "stderr_bytes",
}


def lint_grants(root: JsonNode, config: RootSettings | None, collector: Collector) -> None:
    """The findings of ``securityContext`` and ``execution``."""
    context = object_at(root, "securityContext")
    if context is not None:
        _asked(context, config.policy if config is not None else None, collector)
        _secrets(root, context, config, collector)
    _variables(root, collector)
    execution = object_at(root, "execution")
    if execution is not None:
        _limits(execution, config, collector)


def _asked(context: JsonNode, policy: Policy | None, collector: Collector) -> None:
    files = object_at(context, "fileAccess")
    network = object_at(context, "networkAccess")
    host_list = network.get("allowHosts") if network is not None else None
    hosts = texts_of(host_list)
    writes = texts_of(files.get("allowWrite")) if files is not None else []
    reads = texts_of(files.get("allowRead")) if files is not None else []
    refused: set[str] = set()
    for name, item in texts_of(context.get("requiredCapabilities")):
        if name == "network" and not hosts:
            collector.add("LN761", item.span, {"v": name, "field": "networkAccess.allowHosts"})
        elif name == "write" and not writes:
            collector.add("LN761", item.span, {"v": name, "field": "fileAccess.allowWrite"})
        elif policy is not None and name in ("network", "write", "subprocess", "gpu", "build"):
            if name not in policy.capabilities:
                reason = "policy.capabilities in force here does not name it, so every call is blocked"
                collector.add("LN762", item.span, {"v": name, "reason": reason}, severity="information")
            elif name == "build" and not policy.allow_build:
                reason = "policy.allowBuild is not set here, so every call is blocked"
                collector.add("LN762", item.span, {"v": name, "reason": reason}, severity="information")
    if host_list is not None:
        _covered(host_list, collector)
    if policy is None:
        return
    if hosts:
        from tamis.server.runtime.policy.permissions import is_near

        reasons = _refused_hosts(tuple(host for host, _ in hosts[:256]), policy.allow_hosts, policy.allow_cidrs)
        for host, item in hosts:
            # What is no host pattern is said by the reading (MF513).
            if host in reasons and host not in refused and host_pattern_fault(host) is None:
                refused.add(host)
                # no policy grants what is the sandbox itself: that is the manifest's mistake
                level = "warning" if is_near(host) else None
                collector.add("LN762", item.span, {"v": host, "reason": reasons[host]}, severity=level)
    for items, roots, setting in ((reads, policy.read_roots, "readRoots"), (writes, policy.write_roots, "writeRoots")):
        for path, item in items:
            if path.startswith("/") and not any(_inside(path, folder) for folder in roots):
                reason = f"policy.{setting} in force here does not hold this path"
                collector.add("LN762", item.span, {"v": path, "reason": reason})


def _secrets(root: JsonNode, context: JsonNode, config: RootSettings | None, collector: Collector) -> None:
    """Secrets that no setting defines, or that the policy does not let the tool have."""
    names = texts_of(context.get("secrets"))
    if not names or config is None:
        return
    from tamis.server.runtime.policy.secrets import secret_fault

    tool_id = text_of(root.get("toolId")) or ""
    asked = tuple(name for name, _ in names)
    for name, item in names:
        if variable_name_fault(name):
            continue
        fault = secret_fault(name, tool_id, "", config.secrets, config.policy, asked)
        if fault is not None:
            collector.add("LN762", item.span, {"v": name, "reason": fault.sentence}, severity="information")


def _variables(root: JsonNode, collector: Collector) -> None:
    """Values of ``env`` that look like keys."""
    variables = object_at(root, "env")
    for member in variables.members if variables is not None else ():
        text = text_of(member.value)
        if text is not None and member.value is not None and looks_secret(member.key, text):
            collector.add("LN765", member.value.span, {"p": member.key})


def _inside(path: str, folder: str) -> bool:
    path, folder = path.rstrip("/") + "/", folder.rstrip("/") + "/"
    return path.startswith(folder)


@lru_cache(maxsize=64)
def _refused_hosts(hosts: tuple[str, ...], allowed: tuple[str, ...], ranges: tuple[str, ...]) -> dict[str, str]:
    # The same code as at a call decides, so that what is said here is what happens there.
    from tamis.server.runtime.policy.permissions import refused_hosts
    from tamis.server.runtime.settings.config import Policy

    return refused_hosts(hosts, Policy(allow_hosts=allowed, allow_cidrs=ranges))


def _covered(node: JsonNode, collector: Collector) -> None:
    """Hosts below a wildcard that stands beside them."""
    hosts = texts_of(node)[:200]
    wild = [host[1:].lower() for host, _ in hosts if host.startswith("*.") and ":" not in host]
    for host, item in hosts if wild else ():
        ending = next((end for end in wild if host.lower().endswith(end) and host.lower() != "*" + end), None)
        if ending is not None and ":" not in host:
            at = next(i for i, node in enumerate(node.items) if node is item)
            fix = without_item(node, at, "Remove it", "safe")
            collector.add("LN764", item.span, {"v": host, "other": "*" + ending}, fix=fix)


def _limits(execution: JsonNode, config: RootSettings | None, collector: Collector) -> None:
    timeout, limits = execution.get("timeoutMs"), object_at(execution, "limits")
    own = limits.get("wallMs") if limits is not None else None
    if timeout is not None and own is not None and _whole(timeout) > _whole(own) > 0:
        args = {"v": "execution.timeoutMs", "name": "execution.limits.wallMs", "limit": _whole(own)}
        collector.add("LN763", timeout.span, args)
    if config is None:
        return
    operators = config.sandbox
    if timeout is not None and _whole(timeout) > operators.wall_ms:
        args = {"v": "execution.timeoutMs", "name": "sandbox.wallMs", "limit": operators.wall_ms}
        collector.add("LN763", timeout.span, args)
    for member in limits.members if limits is not None else ():
        field = _LIMITS.get(member.key)
        if field is None or member.value is None:
            continue
        limit: int = getattr(operators, field)
        if _whole(member.value) > limit:
            args = {"v": f"execution.limits.{member.key}", "name": f"sandbox.{member.key}", "limit": limit}
            collector.add("LN763", member.value.span, args)


def _whole(node: JsonNode) -> int:
    """A whole number, else 0, which is above nothing."""
    value = node.value
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
