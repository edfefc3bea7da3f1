"""What can be said of the MCP servers of the settings without starting one. Must not know that they run (``handlers/mcp/servers.py``)."""

from __future__ import annotations

import os
from pathlib import Path

from tamis.protocols.manifest.reading import LANGUAGES, script_path_fault
from tamis.server.runtime.settings.config import McpServer, Settings


def folder_of(root: Path, declared: McpServer) -> str:
    """A server's folder."""
    return os.path.realpath(root / declared.folder)


def problem(root: Path, name: str, declared: McpServer) -> str:
    """Why a server cannot be started, by what the settings and the disk say; empty when nothing speaks against it."""
    fault = script_path_fault(declared.script) if declared.script else "it is empty"
    if fault is not None:
        return f"mcpServers.{name}.script cannot be used: {fault}"
    folder = folder_of(root, declared)
    if not os.path.isfile(os.path.join(folder, declared.script)):
        return f"mcpServers.{name}: there is no '{declared.script}' in {folder}"
    if declared.language not in LANGUAGES:
        return f"mcpServers.{name}.language must be one of {', '.join(LANGUAGES)}"
    return ""


def problems(root: Path, settings: Settings) -> dict[str, str]:
    """The same of all servers, by name."""
    return {name: problem(root, name, declared) for name, declared in settings.mcp_servers.items()}
