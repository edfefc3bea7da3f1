"""Grants of the operator's configuration in a folder that nobody trusts: told, or put to a person (ruling 58).

The operator's grants go by tool id, and an id is what a manifest says of itself. So a stranger's tool may carry the id of a known one.
Must not know how a person is asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from tamis.server.runtime.policy.permissions import Grant
from tamis.server.runtime.policy.secrets import SecretFault
from tamis.server.runtime.settings.classes import is_inside
from tamis.server.runtime.settings.config import LoadedSettings, Policy
from tamis.server.runtime.settings.loading import is_trusted, was_trusted
from tamis.server.runtime.tools.registry import Tool

Gain = tuple[str, str]
"""A tool's ``id@version``, and one thing that it gets, in words."""
_REFUSED = "this folder is not trusted, and the answer was to run without what your configuration grants"
_REMEDY = "answer yes, or trust the folder with `tamis trust`"


def gains(tool: Tool, rights: Grant) -> tuple[Gain, ...]:
    """What a call gets beyond its own folder and temporary space; nothing where it cannot run at all. Holds no value of a secret."""
    shown = rights.permissions.granted.capabilities
    if rights.blocked or not (rights.secrets or rights.headers or rights.read or rights.write or rights.hosts or shown):
        return ()
    secrets = dict.fromkeys((*rights.secrets, *(header.secret for header in rights.headers.values())))
    words = (
        *(f"secret {name}" for name in secrets),
        *(f"read access to {path}" for path in rights.read),
        *(f"write access to {folder.path}" for folder in rights.write),
        *(f"access to {host}" for host in rights.hosts),
        *(f"capability {name}" for name in shown if name not in ("network", "write")),
    )
    return tuple((f"{tool.tool_id}@{tool.manifest.version}", word) for word in words)


def bare(policy: Policy) -> Policy:
    """A policy that grants nothing; what it forbids stays."""
    return msgspec.structs.replace(
        policy, read_roots=(), write_roots=(), allow_hosts=(), allow_cidrs=(), capabilities=(), secrets={}, hosts={}
    )


def refused(offered: Grant, rights: Grant) -> Grant:
    """``rights``, by a bare policy, with the answer as the reason for what ``offered``, by the policy in force, had granted."""
    reason = f"{_REFUSED}; {_REMEDY}"
    before = {(denied.kind, denied.value): denied for denied in offered.permissions.denied}
    denied = [
        before.get((one.kind, one.value)) or msgspec.structs.replace(one, reason=reason)
        for one in rights.permissions.denied
    ]
    permissions = msgspec.structs.replace(rights.permissions, denied=denied)
    lacks = rights.lacks
    if lacks is not None:
        lacks = SecretFault(lacks.name, "secretNotGranted", _REFUSED, "policy.secrets", _REMEDY)
    blocked = rights.blocked and reason
    return msgspec.structs.replace(rights, permissions=permissions, blocked=blocked, lacks=lacks)


class StrangerGate:
    """What the tools of one root get of the operator's configuration while nobody trusts the root."""

    def __init__(self, loaded: Callable[[], LoadedSettings], tell: Callable[[str], None]) -> None:
        """``loaded`` gives the settings in force; ``tell`` takes each line once."""
        self._loaded = loaded
        self._tell = tell
        self._settled: set[Gain] = set()
        self.allowed: frozenset[Gain] | None = None
        """What a person was asked about and allowed; None: nobody was asked, and what is granted is told."""

    def tell_by(self, tell: Callable[[str], None]) -> None:
        """From now on lines go there."""
        self._tell = tell

    def asked_of(self, tool: Tool, rights: Grant) -> tuple[Gain, ...]:
        """What a tool gets that is for a person to know: nothing in a trusted folder, nor of a tool that the operator brought."""
        grants = gains(tool, rights)
        return () if not grants or self._is_operators(tool) or self.is_trusted() else grants

    def lets(self, tool: Tool, rights: Grant) -> bool:
        """Whether a call keeps its grant; tells what it gets where nobody was asked."""
        grants = gains(tool, rights)
        if not grants or (self.allowed is None and self._settled.issuperset(grants)):
            return True
        if self.allowed is not None:
            return self.allowed.issuperset(grants) or self._is_operators(tool)
        if not self._is_operators(tool) and not self.is_trusted():
            self._tell(told(self._loaded(), grants))
        self._settled.update(grants)
        return True

    def _is_operators(self, tool: Tool) -> bool:
        """Whether the host or the operator's own settings brought the tool; a folder's own ``tools`` cannot lead outside."""
        if not tool.folder:
            return True
        loaded = self._loaded()
        root = os.path.realpath(loaded.root)
        if is_inside(tool.folder, root):
            return False
        tops = (os.path.realpath(os.path.join(root, name)) for name in loaded.settings.tools if "\0" not in name)
        return any(is_inside(tool.folder, top) for top in tops)

    def is_trusted(self) -> bool:
        """Whether somebody trusted the root as it is now."""
        return is_trusted(self._loaded())


def told(loaded: LoadedSettings, grants: tuple[Gain, ...]) -> str:
    """What tools of an untrusted folder get, as one line."""
    by_tool: dict[str, list[str]] = {}
    for name, word in grants:
        by_tool.setdefault(name.rpartition("@")[0], []).append(word)
    shown = "; ".join(f"{name} gets {', '.join(words)}" for name, words in by_tool.items())
    state = "has changed since it was trusted" if was_trusted(loaded.root) else "is not trusted"
    return f"{loaded.root} {state}, and from your configuration {shown}"
