"""The tools that come from no file: methods of the host's services, and Tamis's own. The registry takes them with the others.

``host_tools`` are registered under ``serviceName:methodName``, and can be called as ``serviceName_methodName`` (V45), as
``serviceName.methodName`` and by their VCP command too. ``builtin_tools`` give way to every tool that has one of their names; those
that nobody asked for (``Tool.listed`` is False) can be called and are in no list. Must not know how any of them is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.registry import Tool

if TYPE_CHECKING:
    # Most runtimes never have a service.
    from tamis.server.runtime.tools.host_services import HostMethod, HostServices

HOST_PATH = "service:"
"""What stands before a service's name where other tools have their file."""
BUILTIN_PATH = "tamis:builtin"


def host_tools(services: HostServices | None) -> list[Tool]:
    """The methods that the host has registered; None where it never did."""
    if services is None:
        return []
    methods = services.methods()
    owners = _owners_of_aliases(methods)
    return [_host_tool(method, owners) for method in methods]


def _owners_of_aliases(methods: list[HostMethod]) -> dict[str, str]:
    """Whose an alias is that several have: ``a_b_c`` may be ``c`` of ``a_b`` or ``b_c`` of ``a``; the longest service wins (V45, ruling 30)."""
    owners: dict[str, str] = {}
    for method in sorted(methods, key=lambda method: len(method.manifest.tool_id.rpartition(":")[0]), reverse=True):
        for alias in method.manifest.aliases:
            owners.setdefault(alias, method.manifest.tool_id)
    return owners


def _host_tool(method: HostMethod, owners: dict[str, str]) -> Tool:
    manifest = method.manifest
    own = tuple(alias for alias in manifest.aliases if owners[alias] == manifest.tool_id)
    if own != manifest.aliases:
        manifest = msgspec.structs.replace(manifest, aliases=own)
    return Tool(manifest, f"{HOST_PATH}{manifest.tool_id.rpartition(':')[0]}", origin="host")


def builtin_tools(root: Path, settings: Settings) -> list[Tool]:
    """Tamis's own tools, as far as the operator opened what they need."""
    from tamis.server.runtime.tools.builtin import manifests

    return [
        Tool(manifest, BUILTIN_PATH, origin="builtin", listed=listed) for manifest, listed in manifests(root, settings)
    ]
