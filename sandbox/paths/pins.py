"""A script that is pinned by its hash: the bytes that were checked are the bytes that run.

A file can change after it was read. So the checked bytes are put into the sandbox as a file of its own, and the tool's folder is
built around it from what stands beside the script, each entry by its descriptor. Every mount point is then in the sandbox's
own tmpfs: none is looked up in a folder that somebody else can change (CVE-2026-87766).
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat

from tamis.sandbox.job import InsideFile
from tamis.sandbox.model import PathRefused, Refusal, size
from tamis.sandbox.paths.grants import Opening
from tamis.sandbox.paths.walk import Opened, open_beneath

MAX_BYTES = 16 * 1024 * 1024
MAX_BESIDE = 128


def pin_script(
    folder: Opened,
    script: str,
    integrity: str,
    opening: Opening,
    hidden: frozenset[str] = frozenset(),
    *,
    copied: bool = False,
) -> InsideFile:
    """Check `script` below `folder` against `integrity` (`sha256-` and base64) and open all that stands beside it.

    Links beside the script, and the names `hidden` at the top, are left out. Raises `Refusal` for another script, and for a folder with too many entries.
    """
    with open_beneath(folder, script) as file:
        content = _read(file, script)
    found = "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()
    if found != integrity:
        raise Refusal(
            f"the script '{script}' is not the one that execution.integrity pins; it is {found}",
            "review the script, then pin its new hash",
        )
    here, place = folder, "/tool"
    parts = script.split("/")
    for level, part in enumerate(parts):
        following = _open_beside(here, place, part, opening, hidden if level == 0 else frozenset())
        if level < len(parts) - 1:
            if following is None or not following.is_folder:
                raise PathRefused(f"{script} changed while it was opened")
            opening.opened[f"tool-at-{level}"] = following
            here, place = following, f"{place}/{part}"
        elif following is not None:
            following.close()
    return InsideFile("script", f"/tool/{script}", content, copied)


def _read(file: Opened, script: str) -> bytes:
    descriptor = os.open(f"/proc/self/fd/{file.fd}", os.O_RDONLY | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Refusal(f"the script '{script}' is larger than {size(MAX_BYTES)}, which is the most that can be pinned")
    return content


def _open_beside(here: Opened, place: str, besides: str, opening: Opening, hidden: frozenset[str]) -> Opened | None:
    """Open all entries of a folder into `opening` but the hidden ones and one, which is returned."""
    descriptor = os.open(f"/proc/self/fd/{here.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = sorted(name for name in os.listdir(descriptor) if name == besides or name not in hidden)
    finally:
        os.close(descriptor)
    kept: Opened | None = None
    try:
        for name in names:
            try:
                fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here.fd)
            except FileNotFoundError:
                continue
            mode = os.fstat(fd).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.close(fd)
                continue
            opened = Opened(fd, f"{here.path}/{name}")
            if name == besides:
                kept = opened
                continue
            number = sum(1 for known in opening.opened if known.startswith("beside"))
            if number >= MAX_BESIDE:
                opened.close()
                raise Refusal(
                    f"more than {MAX_BESIDE} files and folders stand beside the pinned script",
                    "put the script into a folder of its own",
                )
            opening.add(f"beside{number}", opened, f"{place}/{name}", writable=False)
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    return kept
