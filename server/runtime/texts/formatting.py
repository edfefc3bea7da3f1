"""Formatting files: which ones, under which root's tools, and the atomic write.

Folders are walked as ``tamis check`` walks them. Must not know how anything is spelled, nor the command line.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.convert.blocks import format_blocks
from tamis.protocols.manifest.format import format_manifest
from tamis.protocols.positions import LineIndex
from tamis.protocols.reader import read_text
from tamis.server.runtime.settings.files import find_root
from tamis.server.runtime.texts.checkables import find_checkables
from tamis.server.runtime.texts.converting import UNREAD_HERMES, unread_hermes
from tamis.server.runtime.tools.loader import SUFFIX

if TYPE_CHECKING:
    from tamis.server.runtime.runtime import Runtime

_BRACE = re.compile(r"\ufeff?+(?:[ \t\r\n]++|//[^\n]*+\n|/\*(?s:.*?)\*/)*+\{")


class Note(msgspec.Struct, frozen=True):
    """Something that was left as it is: its one-based line (0: the file) and why. ``doubtful``: a person has to look."""

    line: int
    text: str
    doubtful: bool


class FormattedFile(msgspec.Struct, frozen=True):
    """A file's canonical text beside the one it has."""

    path: str
    before: str
    text: str
    notes: list[Note] = []
    real: str | None = None
    """The file that was read and is to be written, empty where it is none; None: what stands at ``path``."""

    @property
    def changed(self) -> bool:
        """Whether the file is not canonical yet."""
        return self.before != self.text


def format_paths(paths: list[Path], root: Path, opened: Callable[[Path], Runtime]) -> list[FormattedFile]:
    """Every manifest and text below the paths, formatted but not written; unreadable ones have a note. ``opened`` makes the runtime of a root."""
    files, problems = find_checkables(paths)
    runtimes: dict[Path, Runtime] = {}
    formatted_files: list[FormattedFile] = []
    for file in files:
        nearest = find_root(Path(file.path).parent)
        own = nearest if nearest.is_relative_to(root) else root
        if own not in runtimes:
            runtimes[own] = opened(own)
        formatted = _format(file.path, file.text, runtimes[own])
        formatted_files.append(msgspec.structs.replace(formatted, real=file.real))
    formatted_files += [
        FormattedFile(problem.path, "", "", [Note(0, problem.message, not problem.passed)]) for problem in problems
    ]
    return sorted(formatted_files, key=lambda file: file.path)


def format_source(name: str, text: str, runtime: Runtime) -> FormattedFile:
    """One text under a name that may be ``-``; what begins with a brace, maybe behind comments, is a manifest then."""
    return _format(name, text, runtime)


def write_file(file: FormattedFile) -> str | None:
    """Replaces the file by its canonical text in one step, keeping its mode; a sentence when that was not possible.

    A link stays one, and the file that was read behind it is written. The file must still hold what was read.
    """
    path = os.path.realpath(file.path) if file.real is None else file.real
    if not path:
        return "is no regular file and cannot be written; `tamis format -` reads standard input"
    temporary = ""
    try:
        if os.path.realpath(path) != path:
            return "was changed meanwhile; not written"
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, encoding="utf-8", newline="") as stream:
            if stream.read() != file.before:
                return "was changed meanwhile; not written"
        mode = os.stat(path).st_mode & 0o7777
        descriptor, temporary = tempfile.mkstemp(prefix=".tamis-", dir=os.path.dirname(path))
        with open(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(file.text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except (OSError, UnicodeError) as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return f"cannot be written: {getattr(error, 'strerror', None) or error}"
    return None


def _format(path: str, text: str, runtime: Runtime) -> FormattedFile:
    if path.endswith(SUFFIX) or (path == "-" and _BRACE.match(text) is not None):
        formatted = format_manifest(text)
        notes = [] if formatted.text is not None else [Note(0, f"not formatted: {formatted.why}", True)]
        return FormattedFile(path, text, text if formatted.text is None else formatted.text, notes)
    if path.endswith(".json"):
        return FormattedFile(path, text, text)
    # A file is a page of calls, not a model's turn, of which only the first ACTION block would count.
    reading = runtime.read_options(options={"allowMultipleBlocks": True})
    document = read_text(text, "auto", reading)
    done = format_blocks(document, reading)
    unread = [Note(0, UNREAD_HERMES, False)] if unread_hermes(text, "auto", runtime.also) else []
    lines = LineIndex(text)
    notes = [
        Note(lines.position(left_block.span[0])[0] + 1, f"block left as it is: {left_block.why}", left_block.doubtful)
        for left_block in done.left
    ]
    return FormattedFile(path, text, done.text, unread + sorted(notes, key=lambda note: note.line))
