"""What the policy would grant a tool if it were called now, for those who show it. Looks at paths; opens, makes and runs nothing."""

from __future__ import annotations

from pathlib import Path

from tamis.protocols.contract import Permissions
from tamis.server.runtime.policy.path_grants import Place
from tamis.server.runtime.policy.permissions import Grant, grant
from tamis.server.runtime.policy.places import place_of
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.tools.registry import Registry, Tool


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
