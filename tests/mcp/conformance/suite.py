"""The conformance suite of MCP as npm has it, for the tests of the server and of the client."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.node_runtime import npm

HERE = Path(__file__).parent
REVISIONS = ("2026-07-28", "2025-11-25")
Checks = dict[str, dict[str, str]]
"""What failed, by scenario and check."""


def installed(folder: Path) -> Path:
    """The suite, in a folder."""
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / name, folder)
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    return folder
