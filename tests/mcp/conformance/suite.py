"""The conformance suite of MCP as npm has it, for the tests of the server and of the client."""

from __future__ import annotations

from pathlib import Path

from tests.mcp.kept_packages import node_modules

HERE = Path(__file__).parent
REVISIONS = ("2026-07-28", "2025-11-25")
Checks = dict[str, dict[str, str]]
"""What failed, by scenario and check."""


def installed() -> Path:
    """Returns the program of the suite."""
    return node_modules(HERE) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
