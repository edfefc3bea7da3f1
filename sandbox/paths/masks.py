"""What a tool does not see of its own folder where that is the root of a project: history, settings, keys and passwords.

Only the top of the folder is looked at, and only names that are there are masked, so an ordinary tool's folder costs one look
at its time of change. A link is left as it is: what it leads to inside is judged by its own name.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
import time

from tamis.sandbox.job import Hidden
from tamis.sandbox.paths.never import SECRET_NAMES
from tamis.sandbox.paths.walk import Opened

MARKS = frozenset((".git", ".hg", ".svn", "tamis.toml", ".vscode", ".idea"))
"""A folder that holds one of these is the root of a project."""
_NAMES = MARKS | SECRET_NAMES | {".env", ".envrc", ".direnv", ".secrets", ".htpasswd", ".yarnrc", ".aider.conf.yml"}
_PATTERNS = (".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "id_*.pub")
_MATCHES = re.compile("|".join([*map(fnmatch.translate, _PATTERNS), r"id_[^.]*\Z"]))
_SETTLED_NS = 1_000_000_000
_KEPT = 256
_known: dict[tuple[int, int, int, int], tuple[bool, tuple[Hidden, ...]]] = {}


def hidden_in(folder: Opened, *, is_project: bool) -> tuple[Hidden, ...]:
    """What is masked at the top of a tool's folder, sorted. `is_project`: the caller knows that it is a project's root."""
    info = os.fstat(folder.fd)
    key = (info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns)
    found = _known.get(key)
    if found is None:
        found = _look(folder)
        # two changes within one tick of the file system's clock leave the same time
        if time.time_ns() - info.st_mtime_ns > _SETTLED_NS:
            if len(_known) >= _KEPT:
                _known.clear()
            _known[key] = found
    marked, hidden = found
    return hidden if is_project or marked else ()


def is_hidden_name(name: str) -> bool:
    """Whether a name is masked at the top of a project."""
    return name in _NAMES or _MATCHES.match(name) is not None


def _look(folder: Opened) -> tuple[bool, tuple[Hidden, ...]]:
    marked = False
    hidden: list[Hidden] = []
    descriptor = os.open(f"/proc/self/fd/{folder.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                marked = marked or entry.name in MARKS
                if is_hidden_name(entry.name):
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                        hidden.append(Hidden(entry.name, stat.S_ISDIR(mode)))
    finally:
        os.close(descriptor)
    return marked, tuple(sorted(hidden, key=lambda one: one.name))
