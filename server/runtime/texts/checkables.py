"""Which files ``tamis check`` looks at, and the facts about the disk that checking them needs.

A named file is always checked; a folder is searched for manifests, node definitions, agent profiles, ``tamis.toml`` and Markdown, TAM, VCP and ACTION texts.
Ignore files count. Must not know what a finding is.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tamis.protocols.manifest.reading import ExternalScript, read_manifest
from tamis.server.runtime.handlers.script.running import files_pin
from tamis.server.runtime.settings.files import FILE_NAME, leads_out, leads_outside, way_of
from tamis.server.runtime.tools.loader import (
    MAX_BYTES,
    SUFFIX,
    LoadProblem,
    decoded,
    is_definition,
    read_manifest_file,
    read_regular,
    walk_files,
)

TEXT_SUFFIXES = (".md", ".markdown", ".tam", ".vcp", ".action")
MAX_TEXT_BYTES = 64 * 1024 * 1024
MAX_BESIDE = 2_000
MAX_BESIDE_DEPTH = 6
MAX_SCRIPT_BYTES = 256 * 1024
MAX_SCRIPTS = 256

ScriptText = tuple[str, str, bool, str]


class Checkable(msgspec.Struct, frozen=True):
    """A file's text; ``note`` says what had to be replaced to read it."""

    path: str
    text: str
    note: str = ""
    real: str = ""
    """The real path of the file that was read; empty for what is no regular file."""
    refused: str = ""
    """Why the registry does not take a definition that a person named."""


def find_checkables(paths: list[Path], workflows: Sequence[str] = ()) -> tuple[list[Checkable], list[LoadProblem]]:
    """The texts of the named files, of the files below the named folders and of ``workflows`` that were found there, each once.

    A search follows no link out of its folder, and opens nothing but regular files; what a person names is followed.
    """
    by_file: dict[str, Checkable] = {}
    problems: dict[tuple[str, str], LoadProblem] = {}

    def take(path: str, read: Checkable | LoadProblem | None) -> None:
        if isinstance(read, LoadProblem):
            problems.setdefault((path, read.message), read)
        elif read is not None:
            by_file[path] = read

    for path in paths:
        if not _is_searched(path):
            if str(path) not in by_file:
                take(str(path), _read_named(str(path)))
            continue
        files, more = walk_files(path, _wanted)
        for problem in more:
            take(problem.path, problem)
        found, top = set(files), os.path.realpath(path)
        for file in files:
            if file not in by_file:
                take(file, _read_found(file, str(path), top, found))
    for file in workflows:
        if file not in by_file:
            take(file, _read_definition(file))
    return list(by_file.values()), list(problems.values())


def _is_searched(path: Path) -> bool:
    return path.is_dir() and not path.name.endswith(SUFFIX)


def find_workflows(paths: list[Path], folders: list[Path]) -> list[str]:
    """The files below the workflow folders that may be workflows, as far as they stand below the folders that are checked."""
    from tamis.server.runtime.tools.workflows import is_workflow_name

    files: dict[str, None] = {}
    for folder in map(Path, map(os.path.realpath, folders)):
        for path in filter(_is_searched, paths):
            real = Path(os.path.realpath(path))
            inside = path / folder.relative_to(real) if folder.is_relative_to(real) else None
            inner = path if real.is_relative_to(folder) else inside
            if inner is not None and inner.is_dir():
                files.update(dict.fromkeys(walk_files(inner, is_workflow_name)[0]))
    return list(files)


def text_of(path: str) -> str:
    """The text of a regular file; empty for what is none, or cannot be read."""
    read = _read_text(path, path)
    return read.text if isinstance(read, Checkable) else ""


def files_beside(folder: str) -> tuple[frozenset[str], bool, dict[str, str]]:
    """The readable files below a folder as relative paths, bounded; False when the list was cut; what the other entries are.

    The last says ``link``, ``folder``, ``special`` or ``unreadable``; links are not followed, as they are not at a call.
    """
    files: list[str] = []
    others: dict[str, str] = {}
    pending = [("", 0)]
    complete = os.path.isdir(folder)
    while pending:
        inner, depth = pending.pop()
        try:
            with os.scandir(os.path.join(folder, inner)) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    name = f"{inner}/{entry.name}" if inner else entry.name
                    if len(files) + len(others) >= MAX_BESIDE:
                        complete = False
                        break
                    if kind := _no_file(entry):
                        others[name] = kind
                    if kind == "folder":
                        if depth < MAX_BESIDE_DEPTH and entry.name not in (".git", "node_modules", ".venv"):
                            pending.append((name, depth + 1))
                    elif not kind:
                        files.append(name)
        except OSError:
            complete = False
    return frozenset(files), complete, others


_SCRIPT_PATH = re.compile(r'"scriptPath"\s*:\s*"([^"\\\n]{1,400})"')
_scripts: dict[str, tuple[tuple[int, int, int], ScriptText]] = {}


def pins_files(says: Callable[[str], bool]) -> bool:
    """Whether a manifest's text, of which ``says`` knows whether a word stands in it, may pin more than its script: then ``script_beside``
    needs all of it."""
    return says('"integrity"') and says('"files"')


def script_beside(manifest: str, text: str) -> ScriptText | None:
    """The script that a manifest's text names: its path from the manifest's folder, its text, whether that is all, and what
    ``execution.integrity`` has to be to pin it, or the files that belong to it.

    None where the text names none, and for what is no readable file in that folder; links are not followed. The text is cut after 256
    KiB. A script is read again only when the file changed.
    """
    script = _script_beside(manifest, text)
    if script is None or not pins_files(text.__contains__):
        return script
    declared = read_manifest(text).manifest
    if declared is None:
        return (*script[:3], "")
    if not isinstance(declared.handler, ExternalScript) or not declared.execution.files:
        return script
    folder = os.path.dirname(os.path.abspath(manifest))
    return (*script[:3], files_pin(folder, declared.handler, declared.execution))


def _script_beside(manifest: str, text: str) -> ScriptText | None:
    at = text.find('"scriptPath"')
    match = _SCRIPT_PATH.match(text, at) if at >= 0 else None
    if match is None or "\0" in match[1]:
        return None
    name = os.path.normpath(match[1])
    if name.startswith(("/", "..")) or name == ".":
        return None
    folder = os.path.realpath(os.path.dirname(manifest))
    path = os.path.join(folder, name)
    try:
        if os.path.realpath(path) != path:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            mark = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = _scripts.get(path)
            if known is not None and known[0] == mark and known[1][0] == name:
                return known[1]
            if not stat.S_ISREG(status.st_mode):
                return None
            data = stream.read(MAX_SCRIPT_BYTES + 1)
    except (OSError, ValueError):
        return None
    whole = len(data) <= MAX_SCRIPT_BYTES
    digest = "sha256-" + base64.b64encode(hashlib.sha256(data).digest()).decode() if whole else ""
    script = (name, data[:MAX_SCRIPT_BYTES].decode("utf-8", "replace"), whole, digest)
    if len(_scripts) >= MAX_SCRIPTS:
        _scripts.clear()
    _scripts[path] = (mark, script)
    return script


def _no_file(entry: os.DirEntry[str]) -> str:
    """What an entry is when it is no readable file, else nothing."""
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    if not entry.is_file(follow_symlinks=False):
        return "special"
    return "" if os.access(entry.path, os.R_OK) else "unreadable"


def _wanted(name: str) -> bool:
    return name == FILE_NAME or is_definition(name) or name.endswith(("agent_profile.json", *TEXT_SUFFIXES))


def _read_found(path: str, top: str, real_top: str, found: set[str]) -> Checkable | LoadProblem | None:
    """A file that a search of ``top`` came to; None for a link to what the search comes to anyway."""
    if is_definition(os.path.basename(path)):
        return _read_definition(path)
    if not os.path.islink(path):
        return _read_text(path, path)
    way = way_of(os.path.relpath(path, top), real_top)
    if way == "endless":
        return LoadProblem(path, f"cannot be read: {os.strerror(errno.ELOOP)}")
    if way == "outside":
        return LoadProblem(path, "is a link that leads out of the searched folder; passed over", passed=True)
    real = os.path.realpath(path)
    inside = os.path.relpath(real, real_top)
    if inside.startswith("..") or os.path.isdir(real) or os.path.join(top, inside) in found:
        return None
    # One of several links to a file that is found in no other way.
    found.add(os.path.join(top, inside))
    return _read_text(path, real)


def _read_definition(path: str) -> Checkable | LoadProblem:
    """As the registry reads it."""
    read = read_manifest_file(path)
    return read if isinstance(read, LoadProblem) else Checkable(path, read.text, real=os.path.realpath(path))


def _read_text(path: str, real: str) -> Checkable | LoadProblem:
    """A text whose file is ``real``, which is no link."""
    read = read_regular(real, MAX_BYTES if path.endswith(".json") else MAX_TEXT_BYTES)
    text = read if isinstance(read, LoadProblem) else decoded(path, read[0])
    if isinstance(text, LoadProblem):
        return LoadProblem(path, text.message)
    return Checkable(path, text, real=os.path.realpath(real))


def _read_named(path: str) -> Checkable | LoadProblem:
    """A file that a person named: links are followed, and what another program writes into a FIFO is read."""
    name, folder = os.path.basename(path), os.path.dirname(path)
    if name == FILE_NAME and leads_out(path, folder):
        return LoadProblem(path, str(leads_outside()))
    real, named = os.path.realpath(path), is_definition(name)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or named:
            read = _read_text(path, real)
            link = read_manifest_file(path) if named and isinstance(read, Checkable) and os.path.islink(path) else None
            refused = link.message if isinstance(link, LoadProblem) else ""
            return read if isinstance(read, LoadProblem) else msgspec.structs.replace(read, refused=refused)
        if stat.S_ISSOCK(mode):
            return LoadProblem(path, "is a socket, not a regular file")
        # Not to wait where nobody writes; from then on for what is written.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            os.set_blocking(descriptor, True)
            data = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        return LoadProblem(path, f"cannot be read: {error.strerror}")
    if stat.S_ISFIFO(mode) and not data:
        return LoadProblem(path, "is a FIFO that nobody writes to")
    if len(data) > MAX_TEXT_BYTES:
        return LoadProblem(path, f"is larger than {MAX_TEXT_BYTES} bytes")
    text = decoded(path, data)
    return text if isinstance(text, LoadProblem) else Checkable(path, text)
