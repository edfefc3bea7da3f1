"""Packages of npm as a folder's lock file has them, kept between runs."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from pathlib import Path

from tests.editors.npm import kept
from tests.node_runtime import npm

_DECLARED = ("package.json", "package-lock.json", ".npmrc")


def node_modules(source: Path) -> Path:
    """Returns the installed packages of a folder with a lock file: of an earlier run, unless the lock file is another one."""
    declared = [path for name in _DECLARED if (path := source / name).is_file()]
    key = hashlib.sha256(b"\0".join(path.read_bytes() for path in declared)).hexdigest()[:16]

    def fill(folder: Path) -> bool:
        for path in declared:
            shutil.copy(path, folder)
        npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
        return True

    try:
        folder = kept(f"{source.parent.name}-{source.name}-{key}", fill)
    except OSError:  # the cache cannot be written
        folder = Path(tempfile.mkdtemp(prefix="tamis-npm-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        fill(folder)
    assert folder is not None
    return folder / "node_modules"


def project(source: Path, target: Path) -> Path:
    """Returns a copy of the folder with its packages."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("node_modules"))
    (target / "node_modules").symlink_to(node_modules(source))
    return target
