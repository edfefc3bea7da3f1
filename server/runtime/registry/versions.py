"""Versions and ranges: ``1.2.0``, ``^1.2``, ``~1.2.3``, ``>=1.0 <2``, ``1.x``, ``*`` (SemVer 2.0 precedence).

Used to resolve ``id@range`` (D90, ruling 35). Pure.
"""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]{1,64}))?(?:\+[0-9A-Za-z.-]{1,64})?"
)
_TERM = re.compile(r"(\^|~|>=|<=|>|<|=)?\s*([0-9A-Za-z.*+-]{1,96})")
_PARTIAL = re.compile(r"v?(\d{1,9}|[xX*])(?:\.(\d{1,9}|[xX*]))?(?:\.(\d{1,9}|[xX*]))?")

Key = tuple[int, int, int, int, tuple[tuple[int, int, str], ...]]


def version_key(text: str) -> Key:
    """A sort key; versions that are no SemVer sort below all others, by their text."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return (-1, 0, 0, 0, ((1, 0, text),))
    major, minor, patch, pre = match.groups()
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")) if pre else ()
    # A pre-release sorts before its release.
    return (int(major), int(minor or 0), int(patch or 0), 0 if pre else 1, parts)


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is in a range. An exact text always matches itself; an unreadable range matches nothing else."""
    if version == wanted or wanted.strip() in ("", "*", "latest"):
        return True
    wanted = wanted.strip()
    key = version_key(version)
    if key[0] < 0:
        return False
    position = 0
    while position < len(wanted):
        match = _TERM.match(wanted, position)
        if match is None:
            return False
        bounds = _bounds(match.group(1) or "", match.group(2))
        if bounds is None:
            return False
        low, high = bounds
        if not (low <= key and (high is None or key < high)):
            return False
        position = match.end()
        while position < len(wanted) and wanted[position] in " ,":
            position += 1
    return True


def _release(major: int, minor: int, patch: int, flag: int = 0) -> Key:
    return (major, minor, patch, flag, ())


def _bounds(operator: str, text: str) -> tuple[Key, Key | None] | None:
    """Half-open bounds of one term; upper bounds shut out the pre-releases of the bound itself."""
    if _VERSION.fullmatch(text) is None and _PARTIAL.fullmatch(text) is None:
        return None
    numbers = [part for part in re.split(r"[.+-]", text.removeprefix("v"))[:3] if part.isdigit()]
    given = len(numbers)
    major, minor, patch = (int(number) for number in [*numbers, "0", "0", "0"][:3])
    exact = version_key(text) if given == 3 else _release(major, minor, patch)
    above: Key | None
    if given == 0:
        above = None
    elif given == 1:
        above = _release(major + 1, 0, 0)
    elif given == 2:
        above = _release(major, minor + 1, 0)
    else:
        above = (*exact[:4], (*exact[4], (2, 0, "")))
    nothing = _release(0, 0, 0)
    if operator == "^":
        if major or given < 2:
            return exact, _release(major + 1, 0, 0)
        return exact, _release(0, minor + 1, 0) if minor or given < 3 else _release(0, 0, patch + 1)
    if operator == "~":
        return exact, _release(major + 1, 0, 0) if given < 2 else _release(major, minor + 1, 0)
    if operator == ">=":
        return exact, None
    if operator == ">":
        return (above, None) if above is not None else None
    if operator == "<":
        return nothing, exact
    if operator == "<=":
        return nothing, above
    return exact, above
