"""Manifests on disk to tools, and the registry of them.

A file that cannot be read is an error with its place. Must not know what a tool is run for.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.invisible import LINE_SEPARATORS, NOT_IN_NAMES
from tamis.protocols.manifest.reading import ExternalScript, Manifest, ManifestReading, read_manifest
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import LineIndex
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import can_be_path
from tamis.server.runtime.tools.loader import FoundFile, LoadProblem, Scan, scan
from tamis.server.runtime.tools.registry import Registry
from tamis.server.runtime.tools.tool import RegistryError, Tool

if TYPE_CHECKING:
    from tamis.protocols.manifest.embedded import SchemaExtension
    from tamis.server.runtime.tools.reading_cache import KeptBrief


# How a path pattern of ``securityContext.fileAccess`` is spelled, and what it stands for (sandbox spec, securityContext patterns). Pure: nothing is
# looked up, decoded or expanded here. What cannot be granted by its spelling alone is refused with the reason.


MAX_PATTERN_CHARS = 4_096
MAX_PARTS = 64
MAX_NAME_BYTES = 255

_OWN_FOLDER = frozenset(("self", ".", "./", "*", "**", "./*", "./**"))
_GLOB = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_DRIVE = re.compile(r"[A-Za-z]:")
_ESCAPE = re.compile(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_VARIABLE = re.compile(r"\$[A-Za-z_{(]|%[A-Za-z_]+%")
# Control and direction characters, and the separators that some systems read as a line's end.
_UNSEEN = lazy(rf"[\x00-\x1f\x7f-\x9f{LINE_SEPARATORS}{NOT_IN_NAMES}]")


class BadPattern(ValueError):  # noqa: N818 (a refusal, not a fault of the program)
    """Why a pattern can never be granted, as a clause."""


class PathPattern(msgspec.Struct, frozen=True):
    """A pattern that may be granted: literal ``parts`` below the tool's folder or, if ``absolute``, below ``/``, and the
    ``glob`` parts behind them (empty: what ``parts`` names, with all below it). No parts at all: the tool's own folder."""

    absolute: bool = False
    parts: tuple[str, ...] = ()
    glob: tuple[str, ...] = ()

    @property
    def is_own_folder(self) -> bool:
        """Whether it stands for the tool's folder as a whole."""
        return not (self.absolute or self.parts or self.glob)


def read_pattern(text: str) -> PathPattern:
    """What a pattern stands for. Raises ``BadPattern``, and nothing else, for one that no policy can grant."""
    if text in _OWN_FOLDER:
        return PathPattern()
    _check_spelling(text)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    absolute = text.startswith("/")
    if ".." in parts:
        raise BadPattern("a path with '..' leaves the folder it is relative to")
    if len(parts) > MAX_PARTS:
        raise BadPattern(f"a path has at most {MAX_PARTS} parts")
    if any(len(part.encode("utf-8")) > MAX_NAME_BYTES for part in parts):
        raise BadPattern(f"a part of a path has at most {MAX_NAME_BYTES} bytes")
    while parts and parts[-1] == "**":
        parts.pop()
    cut = next((at for at, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    if absolute and cut == 0:
        raise BadPattern("the whole file system is never granted")
    glob = tuple(parts[cut:])
    if not absolute and cut == 0 and glob in (("*",), ("self",), ()):
        return PathPattern()
    return PathPattern(absolute, tuple(parts[:cut]), glob)


def _check_spelling(text: str) -> None:
    if not text.strip():
        raise BadPattern("the path is empty")
    if len(text) > MAX_PATTERN_CHARS:
        raise BadPattern(f"a path has at most {MAX_PATTERN_CHARS} characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadPattern("the path holds characters that have no bytes") from None
    if not (text.isascii() and text.isprintable()) and _UNSEEN.search(text):
        raise BadPattern("the path holds a NUL, a control character or one that cannot be seen")
    if text != text.strip():
        raise BadPattern("the path begins or ends with a blank")
    if "\\" in text:
        raise BadPattern("a backslash is no separator; write / between folders")
    if _SCHEME.match(text):
        raise BadPattern("a URI is no path; resources are given to a call by a uri_ parameter")
    if _DRIVE.match(text):
        raise BadPattern("a path of another system")
    if text.startswith("~"):
        raise BadPattern("~ is not expanded; write the whole path")
    if _VARIABLE.search(text):
        raise BadPattern("variables are not expanded; write the whole path")
    if _ESCAPE.search(text):
        raise BadPattern("escapes such as %2e are not decoded; write the character itself")
    if "{" in text or "}" in text:
        raise BadPattern("braces are not expanded; write one pattern for each")


def matches(name: str, part: str) -> bool:
    """Whether a file's name fits one part of a glob; a leading dot must be written (as in a shell)."""
    if name.startswith(".") and not part.startswith("."):
        return False
    return fnmatch.fnmatchcase(name, part)


def build_registry(definitions: Scan, settings: Settings, write_roots: Iterable[str] = ()) -> Registry:
    """Reads every found manifest and registers what reads clean; ``write_roots`` are folders in the searched ones that tools may write."""
    tools: list[Tool] = []
    errors = [load_error(problem) for problem in definitions.problems]
    for file in definitions.files:
        result = read_tool(file, settings)
        if isinstance(result, Tool):
            tools.append(result)
        else:
            errors.append(result)
    return register(tools, errors, settings, write_roots)


def register(
    tools: Iterable[Tool], errors: list[RegistryError], settings: Settings, write_roots: Iterable[str] = ()
) -> Registry:
    """The registry of tools that were read, without those that another tool could have put there."""
    kept, planted = unplanted(list(tools), write_roots)
    return Registry(kept, errors=[*errors, *planted], on_conflict=settings.on_conflict)


def unplanted(tools: list[Tool], write_roots: Iterable[str]) -> tuple[list[Tool], list[RegistryError]]:
    """The tools that no tool could have put there, and an error for each of the others."""
    # standing in a tool folder makes a tool callable (ruling 34): no tool may do that for another
    writable = dict.fromkeys(write_roots, "policy.writeRoots")
    writable |= writable_folders(
        (tool.path, asked) for tool in tools if (asked := tool.brief.security_context.file_access.allow_write)
    )
    if not writable:
        return tools, []
    kept: list[Tool] = []
    errors: list[RegistryError] = []
    for tool in tools:
        folder = planted_in(tool.path, writable)
        if folder:
            text = f"stands in {folder}, which tools may write ({writable[folder]}): a tool could have put it there; move it"
            errors.append(RegistryError(tool.path, text, tool_id=tool.tool_id))
        else:
            kept.append(tool)
    return kept, errors


def writable_folders(asked: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """The folders that manifests ask to write below their own, each with the manifest that asks; given (manifest path, patterns)."""
    folders: dict[str, str] = {}
    for manifest, patterns in asked:
        for text in patterns:
            try:
                pattern = read_pattern(text)
            except BadPattern:
                continue
            if pattern.parts and not (pattern.absolute or pattern.glob):
                folders.setdefault(os.path.join(os.path.dirname(manifest), *pattern.parts), manifest)
    return folders


def planted_in(path: str, writable: Mapping[str, str]) -> str:
    """The writable folder that a manifest stands in, or an empty text."""
    return next((folder for folder in _above(path) if folder in writable), "")


def _above(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    while folder != path:
        yield folder
        path, folder = folder, os.path.dirname(folder)


def load_registry(root: Path, settings: Settings) -> Registry:
    """Scans the configured folders and builds the registry of their manifests alone; ``sources.py`` knows the other sources."""
    return build_registry(scan(root, settings.tools), settings, inner_write_roots(root, settings))


def inner_write_roots(root: Path, settings: Settings) -> list[str]:
    """The operator's writable folders that lie in the searched ones."""
    searched = [os.path.realpath(root / name) for name in (*settings.tools, *settings.workflows) if can_be_path(name)]
    roots = [
        os.path.realpath(name) for name in settings.policy.write_roots if name.startswith("/") and can_be_path(name)
    ]
    return [name for name in roots if any(name.startswith(top.rstrip("/") + "/") for top in searched)]


def read_tool(file: FoundFile, settings: Settings, extensions: Sequence[SchemaExtension] = ()) -> Tool | RegistryError:
    """One file's tool, or the first error in it with its place."""
    try:
        reading = read_manifest(
            file.text, strict=settings.strict_json, handlers=settings.handlers, extensions=extensions
        )
    except Exception as error:  # a fault of ours: one file must not keep all others from being tools
        what = f"{type(error).__name__}: {error}"[:200]
        return RegistryError(file.path, f"reading it failed by a fault of Tamis ({what}); please report it")
    return tool_of(file, reading)


def tool_of(file: FoundFile, reading: ManifestReading) -> Tool | RegistryError:
    """The tool of a file that was read already, or the first error in it with its place."""
    if reading.manifest is None:
        return _first_error(file, reading)
    reason = why_unavailable(reading.manifest, os.path.dirname(file.path))
    return Tool(reading.manifest, file.path, available=not reason, reason=reason)


_READ_BY_ALL = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH


def why_unavailable(manifest: Manifest | KeptBrief, folder: str) -> str:
    """Why a tool that is registered cannot be called as the disk is now; empty when it can."""
    handler = manifest.handler
    if not isinstance(handler, ExternalScript):
        # Services come and go while the registry stands: their handlers know (``Runner.problem``).
        return ""
    script = handler.script_path
    path = f"{folder}/{script}" if folder and script and script[0] != "/" else os.path.join(folder, script)
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return f"the script '{script}' does not exist beside the manifest"
    if mode & _READ_BY_ALL == _READ_BY_ALL and stat.S_ISREG(mode):
        return ""
    if stat.S_ISLNK(mode):
        return f"the script '{script}' is a symbolic link; put the file itself there"
    if stat.S_ISDIR(mode):
        return f"the script '{script}' is a folder"
    if not stat.S_ISREG(mode):
        return f"the script '{script}' is not a regular file"
    return "" if os.access(path, os.R_OK) else f"the script '{script}' cannot be read; mend its rights"


def _first_error(file: FoundFile, reading: ManifestReading) -> RegistryError:
    diagnostics = reading.diagnostics
    declared = reading.tree.node_at("/toolId")
    declared_id = declared.to_python() if declared is not None else ""
    tool_id = declared_id if isinstance(declared_id, str) else ""
    worst = next((diag for diag in diagnostics if severity(diag) == "error"), None)
    if worst is None:
        return RegistryError(file.path, "holds no manifest", tool_id=tool_id)
    line, column = LineIndex(file.text).position(worst.span[0])
    more = sum(1 for diag in diagnostics if severity(diag) == "error") - 1
    suffix = f" (and {more} more; `tamis check` lists all)" if more else ""
    return RegistryError(file.path, message(worst) + suffix, line + 1, column + 1, tool_id)


def load_error(problem: LoadProblem) -> RegistryError:
    """What kept a file out."""
    return RegistryError(problem.path, problem.message)
