"""How a path pattern of ``securityContext.fileAccess`` is spelled, and what it stands for (sandbox spec, securityContext patterns).

Pure: nothing is looked up, decoded or expanded here. What cannot be granted by its spelling alone is refused with the reason.
"""

from __future__ import annotations

import fnmatch
import re

import msgspec

from tamis.protocols.invisible import LINE_SEPARATORS, NOT_IN_NAMES

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
_UNSEEN = re.compile(rf"[\x00-\x1f\x7f-\x9f{LINE_SEPARATORS}{NOT_IN_NAMES}]")


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
    if _UNSEEN.search(text):
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
