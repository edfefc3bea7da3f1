"""Which files ``tamis check`` looks at, and the facts about the disk that checking them needs.

A named file is always checked; a folder is searched for manifests, node definitions, agent profiles, ``tamis.toml`` and Markdown, TAM, VCP and ACTION texts.
Ignore files count. Must not know what a finding is.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from pathlib import Path

import msgspec

from tamis.protocols.manifest.reading import ExternalScript, read_manifest
from tamis.server.runtime.handlers.script.running import files_pin
from tamis.server.runtime.tools.loader import MAX_BYTES, SUFFIX, LoadProblem, is_definition, walk_files

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


def find_checkables(paths: list[Path]) -> tuple[list[Checkable], list[LoadProblem]]:
    """The texts of the named files and of the files below the named folders, each once."""
    by_file: dict[str, Checkable] = {}
    problems: list[LoadProblem] = []
    for path in paths:
        if path.is_dir() and not path.name.endswith(SUFFIX):
            files, more = walk_files(path, _wanted)
            problems.extend(more)
        else:
            files = [str(path)]
        for file in files:
            if file in by_file:
                continue
            read = _read(file)
            if isinstance(read, LoadProblem):
                problems.append(read)
            else:
                by_file[file] = read
    return list(by_file.values()), problems


def find_workflows(paths: list[Path], folders: list[Path]) -> list[str]:
    """The files below the workflow folders that may be workflows, as far as they stand below the folders that are checked."""
    from tamis.server.runtime.tools.workflows import is_workflow_name

    files: dict[str, None] = {}
    for folder in map(Path, map(os.path.realpath, folders)):
        for path in paths:
            real = Path(os.path.realpath(path))
            inside = path / folder.relative_to(real) if folder.is_relative_to(real) else None
            inner = path if real.is_relative_to(folder) else inside
            if inner is not None and inner.is_dir():
                files.update(dict.fromkeys(walk_files(inner, is_workflow_name)[0]))
    return list(files)


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


def pins_files(text: str) -> bool:
    """Whether a manifest's text may pin more than its script: then ``script_beside`` needs all of it."""
    return '"integrity"' in text and '"files"' in text


def script_beside(manifest: str, text: str) -> ScriptText | None:
    """The script that a manifest's text names: its path from the manifest's folder, its text, whether that is all, and what
    ``execution.integrity`` has to be to pin it, or the files that belong to it.

    None where the text names none, and for what is no readable file in that folder; links are not followed. The text is cut after 256
    KiB. A script is read again only when the file changed.
    """
    script = _script_beside(manifest, text)
    if script is None or not pins_files(text):
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
    return name == "tamis.toml" or is_definition(name) or name.endswith(("agent_profile.json", *TEXT_SUFFIXES))


def _read(path: str) -> Checkable | LoadProblem:
    limit = MAX_BYTES if path.endswith(".json") else MAX_TEXT_BYTES
    try:
        if os.path.isdir(path):
            return LoadProblem(path, "is a folder, not a file; rename it or remove it")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        return LoadProblem(path, f"cannot be read: {error.strerror}")
    if len(data) > limit:
        return LoadProblem(path, f"is larger than {limit} bytes; not checked")
    try:
        return Checkable(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return LoadProblem(path, f"is not UTF-8 at byte {error.start} (line {line}); save it as UTF-8")
