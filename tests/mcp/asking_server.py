"""A folder with the tools of an MCP server that asks questions."""

from __future__ import annotations

from pathlib import Path

from tests.runtime import mcp_calls


def make(root: Path, how: str = "", *, settings: str = "") -> None:
    """Writes the folder; the server may take ten minutes to start, which a busy machine does not need."""
    mcp_calls.make(root, how, settings=settings, more="startMs = 600000")
