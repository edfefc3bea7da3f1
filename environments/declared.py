"""What a script's folder declares: the files beside the script, read by the no-follow walk, every size bounded.

Python: metadata inside the script (PEP 723), then `uv.lock` with `pyproject.toml`, `requirements.txt`, `pyproject.toml` with
`[project] dependencies`. JavaScript: `javascript.detect`. `prepare.detect` asks both. A folder without such files costs a few failed opens. Must not
know what an installer is.
"""

from __future__ import annotations

import os
import posixpath

from tamis.environments.model import DependencyFault
from tamis.sandbox.model import Language, PathRefused, lacks
from tamis.sandbox.paths.walk import Opened, open_absolute, open_beneath, relative_parts

MAX_FILE_BYTES = 4 * 1024 * 1024
"""A lock file of some thousand packages is about this large."""
SCRIPT_BYTES = 64 * 1024
"""How far into a script its metadata is looked for."""
INLINE_MARK = b"# /// script"

_PYTHON_FILES = ("requirements.txt", "pyproject.toml")


class Folder:
    """A script's folder below its tool's folder, both opened without following a link; files are read below it only."""

    def __init__(self, tool_folder: str, script: str) -> None:
        parts = relative_parts(script)
        self.script = parts[-1]
        self.path = posixpath.join(tool_folder, *parts[:-1])
        with open_absolute(tool_folder) as top:
            self._opened = open_beneath(top, "/".join(parts[:-1])) if parts[:-1] else Opened(os.dup(top.fd), top.path)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def has(self, name: str) -> bool:
        """Whether an entry of that name stands directly in the folder, whatever it is."""
        try:
            os.stat(name, dir_fd=self._opened.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def filled(self, name: str) -> bool:
        """Whether a folder of that name stands in the folder, no link, with anything in it."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._opened.fd)
        except OSError:
            return False
        try:
            with os.scandir(fd) as listed:
                return next(listed, None) is not None
        finally:
            os.close(fd)

    def read(self, path: str, *, most_bytes: int = MAX_FILE_BYTES) -> bytes:
        """A plain file's content. Raises `DependencyFault` for a link, a special file, one that is too large or not there."""
        try:
            with open_beneath(self._opened, path) as opened:
                if opened.is_folder:
                    raise _unusable(path, "is a folder")
                if opened.stat.st_size > most_bytes:
                    raise _unusable(path, f"is larger than {most_bytes} bytes")
                fd = os.open(f"/proc/self/fd/{opened.fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                with open(fd, "rb") as stream:
                    data = stream.read(most_bytes + 1)
        except PathRefused as error:
            raise _unusable(path, f"cannot be read ({error.message})") from error
        except OSError as error:
            raise _unusable(path, f"cannot be read ({error.strerror})") from error
        if len(data) > most_bytes:
            raise _unusable(path, f"is larger than {most_bytes} bytes")
        return data

    def read_start(self, path: str, size: int) -> bytes:
        """The first bytes of a plain file, empty where it cannot be read."""
        try:
            with open_beneath(self._opened, path) as opened:
                if opened.is_folder:
                    return b""
                fd = os.open(f"/proc/self/fd/{opened.fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                with open(fd, "rb") as stream:
                    return stream.read(size)
        except PathRefused:
            return b""
        except OSError as error:
            if lacks(error):
                raise
            return b""


def _unusable(path: str, why: str) -> DependencyFault:
    return DependencyFault(
        f"{path} {why}", cause="declaration", remedy="put a plain file of that name beside the script"
    )


def declares(tool_folder: str, script: str, language: Language) -> bool:
    """Whether it is worth to `detect` at all: a few failed opens, and nothing is imported. Raises `PathRefused`,
    and OSError for a want of descriptors or memory, of which nothing follows."""
    try:
        with Folder(tool_folder, script) as folder:
            return may_declare(folder, language)
    except OSError as error:
        if lacks(error):
            raise
        return False


def may_declare(folder: Folder, language: Language) -> bool:
    """Whether a file stands there that could declare anything."""
    if language != "python":
        return folder.has("package.json")
    marked = INLINE_MARK in folder.read_start(folder.script, SCRIPT_BYTES)
    return marked or any(folder.has(name) for name in _PYTHON_FILES)
