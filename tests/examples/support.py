"""The example tools, run as plain programs without Tamis."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.node_runtime import NODE, bun, node_project

ROOT = Path(__file__).resolve().parents[2] / "examples"


TOOLS = ROOT / "tools"


@functools.cache
def manifest(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@functools.cache
def interpreter(language: str) -> list[str]:
    """The command before the script; Node and bun are the ones that the development dependencies bring."""
    if language == "python":
        return [sys.executable, "-I", "-B"]
    return [bun(), "run"] if language == "bun" else [NODE]


@functools.cache
def node_packages(folder: Path) -> Path:
    """The packages that a tool's package-lock.json pins, installed once for this run of the suite."""
    place = tempfile.mkdtemp(prefix="tamis-packages-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return node_project(folder, Path(place) / folder.name) / "node_modules"


@functools.cache
def python_with_packages(folder: Path) -> str:
    """A Python with what a tool's requirements.txt pins, installed once for this run of the suite."""
    place = Path(tempfile.mkdtemp(prefix="tamis-packages-")) / "env"
    atexit.register(shutil.rmtree, place.parent, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(place), "install", "-q", "--only-binary", ":all:"]
    done = subprocess.run([*install, "-r", str(folder / "requirements.txt")], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the packages of {folder.name} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    return str(place / "bin" / "python")


def run(path: Path, folder: Path, text: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One run in a fresh copy of the tool's folder, with next to no environment, as in the sandbox."""
    handler = manifest(path)["handler"]
    command = interpreter(handler["language"])
    if (path.parent / "requirements.txt").exists():
        command = [python_with_packages(path.parent), *command[1:]]
    copy = folder / path.parent.name
    shutil.copytree(path.parent, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".cache"))
    if (copy / "package.json").exists() and not (copy / "node_modules").exists():
        (copy / "node_modules").symlink_to(node_packages(path.parent))
    return subprocess.run(
        [*command, handler["scriptPath"]],
        cwd=copy,
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C"} | (env or {}),
        check=False,
    )


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a refused request."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def tool(name: str) -> Path:
    return TOOLS / name / f"{name}.tool.json"
