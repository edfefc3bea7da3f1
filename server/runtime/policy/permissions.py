"""What a tool asks for, what the operator's policy allows, and what it therefore gets.

``securityContext`` is a request, never a grant: the grant is its intersection with the policy, and every refused request is
said with its reason (ruling 38, D85). Looks at paths (``path_grants.py``), opens and makes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tamis.protocols.contract import Denied, Granted, Permissions
from tamis.protocols.manifest.reading import Manifest, SecurityContext
from tamis.protocols.manifest.security import CAPABILITIES
from tamis.server.runtime.policy.path_grants import (
    MAX_PATHS,
    Place,
    Root,
    below_root,
    expand,
    hidden_fault,
    inside,
    look,
    missing_root,
    place_of,
    real_roots,
    write_fault,
)
from tamis.server.runtime.policy.secrets import SecretFault, headers_of, secret_fault
from tamis.server.runtime.settings.config import HostHeader, Policy, Secret, Settings
from tamis.server.runtime.tools.reading import BadPattern, PathPattern, read_pattern
from tamis.server.runtime.tools.registry import Registry, Tool

_ASKS_NOTHING = SecurityContext()
MAX_REQUESTS = 256
"""So many patterns of one kind are read."""


class MadeFolder(msgspec.Struct, frozen=True):
    """A folder to write to: ``relative`` below the real folder ``top``; it is made before the run where it is missing."""

    top: str
    relative: str

    @property
    def path(self) -> str:
        """Its absolute path."""
        return f"{self.top.rstrip('/')}/{self.relative}" if self.relative else self.top


class Grant(msgspec.Struct, frozen=True):
    """The rights of one run. ``read`` are absolute host paths beside the tool's own folder, ``write`` the folders below the
    operator's roots, ``own_write`` those below the tool's own folder. ``secrets`` are names of what the script is given, ``headers``
    what the proxy adds for it, by host. ``blocked`` is the reason why the tool must not run at all, or empty; ``lacks`` is the secret
    that it is."""

    read: tuple[str, ...]
    write: tuple[MadeFolder, ...]
    own_write: tuple[MadeFolder, ...]
    hosts: tuple[str, ...]
    permissions: Permissions
    blocked: str = ""
    secrets: tuple[str, ...] = ()
    headers: dict[str, HostHeader] = {}
    lacks: SecretFault | None = None


_NO_SECRETS: Mapping[str, Secret] = {}


def asks_nothing(manifest: Manifest) -> bool:
    """Whether a manifest asks for no right at all, so that what it is granted depends on nothing else."""
    return manifest.security_context == _ASKS_NOTHING


def grant(
    manifest: Manifest, policy: Policy, place: Place | None = None, secrets: Mapping[str, Secret] = _NO_SECRETS
) -> Grant:
    """Intersects a manifest's requests with the policy; ``place`` says where the tool stands and what is closed there, ``secrets``
    which the operator defines."""
    context = manifest.security_context
    requested = manifest.raw.get("securityContext")
    requested = requested if isinstance(requested, dict) else {}
    if asks_nothing(manifest):
        return Grant((), (), (), (), Permissions(requested=requested, granted=Granted(), denied=[]))
    place = place or Place()
    files = _Files(policy, place, asked=bool(context.file_access.allow_read or context.file_access.allow_write))
    for pattern in files.limited("write", context.file_access.allow_write):
        files.ask("write", pattern, files.write)
    for pattern in files.limited("read", context.file_access.allow_read):
        files.ask("read", pattern, files.read)
    granted, denied = files.granted, files.denied
    wanted = files.limited("network", context.network.allow_hosts)
    hosts, refused = _hosts(wanted, policy, context.network.through_proxy)
    granted.hosts.extend(hosts)
    denied.extend(refused)
    blocked = ""
    for name in dict.fromkeys(context.required_capabilities):
        reason = _capability_fault(name, policy, granted, denied)
        if reason:
            denied.append(Denied(kind="capability", value=name, reason=reason))
            blocked = blocked or _missing(name, reason)
        else:
            granted.capabilities.append(name)
    headers = headers_of(manifest.tool_id, manifest.version, hosts, policy)
    lacks = None
    names: list[str] = []
    for name in context.secrets:
        fault = secret_fault(name, manifest.tool_id, manifest.version, secrets, policy, context.secrets)
        if fault is None:
            names.append(name)
        else:
            lacks = lacks or fault
            denied.append(Denied(kind="secret", value=name, reason=fault.sentence))
    # what the proxy adds the script never sees
    added = {header.secret for header in headers.values()}
    secret_names = tuple(name for name in names if name not in added)
    if names or added:
        granted.secrets = [*names, *sorted(added.difference(names))]
    if lacks is not None:
        blocked = blocked or f"the tool needs the secret '{lacks.name}': {lacks.sentence}"
    permissions = Permissions(requested=requested, granted=granted, denied=denied)
    outer = [folder for folder in files.writes if folder.top != place.folder]
    own = [folder for folder in files.writes if folder.top == place.folder]
    reads = [path for path in files.reads if not any(path != other and inside(path, other) for other in files.reads)]
    return Grant(
        tuple(reads), tuple(outer), tuple(own), tuple(hosts), permissions, blocked, secret_names, headers, lacks
    )


def missing_capability(context: SecurityContext, policy: Policy) -> str:
    """Why no call of a tool can be run, whatever its arguments: a capability that it requires and never has (D41). Empty: there is none."""
    faults = ((name, _never_given(name, policy)) for name in context.required_capabilities)
    return next((_missing(name, reason) for name, reason in faults if reason), "")


def _opening(setting: str, text: str) -> str:
    from tamis.sandbox.network.hosts import opening

    return opening(setting, text)


def _missing(name: str, reason: str) -> str:
    return f"the tool requires the capability '{name}': {reason}"


def _never_given(name: str, policy: Policy) -> str:
    if name not in CAPABILITIES:
        return f"no capability of this name is known; known are {', '.join(sorted(CAPABILITIES))}"
    if name not in policy.capabilities:
        return f"policy.capabilities in force here does not name it; {_opening('capabilities', name)}"
    if name == "build" and not policy.allow_build:
        from tamis.sandbox.network.hosts import OPERATORS

        return f"policy.allowBuild is not set here; set it in [policy] of {OPERATORS}"
    return ""


def _capability_fault(name: str, policy: Policy, granted: Granted, denied: list[Denied]) -> str:
    """Why a required capability is not there, or an empty text (D41)."""
    never = _never_given(name, policy)
    if never:
        return never
    for wanted, kind, grants, field in (
        ("network", "network", granted.hosts, "networkAccess.allowHosts"),
        ("write", "write", granted.write, "fileAccess.allowWrite"),
    ):
        if name == wanted and not grants:
            refused = next((item for item in denied if item.kind == kind), None)
            if refused is None:
                return f"{field} asks for nothing"
            return f"nothing of {field} was granted ({refused.value}: {refused.reason})"
    return ""


class _Files:
    """The file requests of one manifest, one after the other; writes first, as reads must not lie below them."""

    def __init__(self, policy: Policy, place: Place, *, asked: bool) -> None:
        self._place = place
        self._read_roots = real_roots(policy.read_roots) if asked else []
        self._write_roots = real_roots(policy.write_roots) if asked else []
        self.granted = Granted()
        self.denied: list[Denied] = []
        self.reads: list[str] = []
        self.writes: list[MadeFolder] = []

    def limited(self, kind: str, patterns: Sequence[str]) -> Sequence[str]:
        """The patterns that are looked at; the first of the others is refused for all of them."""
        if len(patterns) > MAX_REQUESTS:
            reason = f"only the first {MAX_REQUESTS} patterns are read"
            self.denied.append(Denied(kind=kind, value=patterns[MAX_REQUESTS], reason=reason))
        return patterns[:MAX_REQUESTS]

    def ask(self, kind: str, text: str, decide: Callable[[PathPattern, str], None]) -> None:
        """Grants one pattern, or refuses it with the reason."""
        try:
            decide(read_pattern(text), text)
        except BadPattern as refused:
            self.denied.append(Denied(kind=kind, value=text, reason=str(refused)))
        else:
            (self.granted.read if kind == "read" else self.granted.write).append(text)

    def read(self, pattern: PathPattern, text: str) -> None:
        # the tool's own folder is shown whole
        if not pattern.absolute:
            return
        root, parts = below_root(pattern, self._read_roots, "readRoots")
        base = _joined(root.real, parts)
        writable = next((folder.path for folder in self.writes if inside(base, folder.path)), None)
        if writable is not None:
            raise BadPattern("it lies below a folder granted for writing, where it can be read anyway")
        if inside(base, "/usr/share") or (self._place.folder and inside(base, self._place.folder)):
            # every sandbox shows it
            return
        self._open(base)
        self._there(root, "readRoots")
        kind = look(root.real, parts)
        if not pattern.glob:
            # what is not there (yet) is nothing to show
            if kind and base not in self.reads:
                self._room(1)
                self.reads.append(base)
            return
        if kind != "folder":
            return
        fitting = expand(base, pattern.glob)
        shown = [path for path in fitting if path not in self.reads and self._may_show(path)]
        room = MAX_PATHS - len(self.reads)
        self.reads.extend(shown[: max(0, room)])
        if len(fitting) > MAX_PATHS or len(shown) > room:
            reason = f"more than {MAX_PATHS} files and folders fit; only the first are shown, name their folder instead"
            self.denied.append(Denied(kind="read", value=text, reason=reason))

    def write(self, pattern: PathPattern, _text: str) -> None:
        if pattern.is_own_folder:
            raise BadPattern(
                "a tool must not write its own folder as a whole: it could change its own script; name a folder in it"
            )
        if pattern.glob:
            raise BadPattern("only a folder, or a folder followed by /**, can be granted for writing")
        if pattern.absolute:
            root, parts = below_root(pattern, self._write_roots, "writeRoots")
        elif self._place.folder:
            root, parts = Root(self._place.folder, self._place.folder), pattern.parts
        else:
            # below an empty folder it would be a path from the root, or from wherever the daemon was started
            raise BadPattern(
                "the tool stands in no folder, so nothing is below it; name an absolute path that policy.writeRoots holds"
            )
        made_folder = MadeFolder(root.real, "/".join(parts))
        self._open(made_folder.path, writable=True)
        reason = write_fault(made_folder.path, root.real, self._place)
        if reason:
            raise BadPattern(reason)
        if pattern.absolute:
            self._there(root, "writeRoots")
        if look(root.real, parts) == "file":
            raise BadPattern("it is a file; only a folder can be granted for writing")
        if any(inside(made_folder.path, folder.path) for folder in self.writes):
            return
        self.writes = [folder for folder in self.writes if not inside(folder.path, made_folder.path)]
        self._room(1)
        self.writes.append(made_folder)

    def _open(self, path: str, *, writable: bool = False) -> None:
        reason = hidden_fault(path, self._place, writable=writable)
        if reason:
            raise BadPattern(reason)

    def _there(self, root: Root, setting: str) -> None:
        reason = missing_root(root, setting)
        if reason:
            raise BadPattern(reason)

    def _may_show(self, path: str) -> bool:
        return not hidden_fault(path, self._place) and not any(inside(path, folder.path) for folder in self.writes)

    def _room(self, count: int) -> None:
        if len(self.reads) + len(self.writes) + count > MAX_PATHS:
            raise BadPattern(f"one run is shown at most {MAX_PATHS} files and folders")


def _joined(top: str, parts: Sequence[str]) -> str:
    return "/".join((top.rstrip("/"), *parts)) if parts else top


def refused_hosts(requested: Sequence[str], policy: Policy) -> dict[str, str]:
    """The host patterns that a policy refuses, each with its reason; nothing is looked up."""
    return {denied.value: denied.reason for denied in _hosts(requested, policy)[1]}


def is_near(host: str) -> bool:
    """Whether a sound host pattern means the sandbox's own loopback, which no policy grants."""
    from tamis.sandbox.network.hosts import loopback_fault, parse_rule

    return bool(loopback_fault(parse_rule(host)))


def _hosts(requested: Sequence[str], policy: Policy, through_proxy: str = "") -> tuple[list[str], list[Denied]]:
    """``through_proxy``: the one that is not the sandbox's own loopback, whatever its name."""
    if not requested:
        return [], []
    # The sandbox's own rules: the same code decides what may be asked for and what is let through.
    from tamis.sandbox.network.hosts import Rule, intersect, loopback_fault, parse_policy_rule, parse_rule, refusal_of

    opened: list[Rule] = []
    for text in policy.allow_hosts:
        with contextlib.suppress(ValueError):
            opened.append(parse_policy_rule(text))
    granted: list[str] = []
    denied: list[Denied] = []
    for text in requested:
        try:
            rule = parse_rule(text)
            shared, _ = intersect(opened, (rule,), policy.allow_cidrs)
        except ValueError as error:
            denied.append(Denied(kind="network", value=text, reason=str(error)))
            continue
        near = "" if text == through_proxy else loopback_fault(rule)
        reason = near or ("" if shared else refusal_of(opened, rule, policy.allow_cidrs))
        if reason:
            denied.append(Denied(kind="network", value=text, reason=reason))
        else:
            granted.extend(each.text for each in shared)
    return granted, denied


# What the policy would grant a tool if it were called now, for those who show it. Looks at paths; opens, makes and runs nothing.


def permissions_of(tool: Tool, registry: Registry, settings: Settings, root: Path) -> Permissions:
    """The tool's request, its grant, and what was refused with the reason, as a call's result tells them."""
    return grant_of(tool, registry, settings, root).permissions


def grant_of(tool: Tool, registry: Registry, settings: Settings, root: Path) -> Grant:
    """What a call of the tool would be granted now."""
    access = tool.manifest.security_context.file_access
    # Looking around costs something, and only paths need it.
    asks = access.allow_read or access.allow_write
    place = place_of(tool.folder, registry, settings, root) if asks else Place(folder=tool.folder)
    return grant(tool.manifest, settings.policy, place, settings.secrets)
