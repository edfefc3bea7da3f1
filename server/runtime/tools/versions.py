"""Versions and ranges of them: ``1.2.0``, ``^1.2``, ``~1.2.3``, ``>=1.0 <2``, ``1.x``, ``1.0 - 1.4``, ``^1 || ^3``, ``*``.

Precedence is SemVer 2.0's (§11). Ranges are those of npm's semver, the ones that ``^`` and ``~`` are known from, with its rule for
pre-releases: a range holds one only where it names one of the same release. Used to resolve ``id@range`` and dependencies between tools
(D90, D91, ruling 35). Pure; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_CHARS = 256
"""Of a version or a range; longer ones are read as no version, and hold nothing."""

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
_PART = r"\d+|[xX*]"
_COMPARATOR = re.compile(
    rf"(\^|~|>=|<=|>|<|=)?\s*v?({_PART})(?:\.({_PART}))?(?:\.({_PART}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_BETWEEN = re.compile(r"[\s,]+")
ANY = ("", "*", "latest")
"""Ranges that hold every version; resolving one takes a release where there is any."""

Identifiers = tuple[tuple[int, int, str], ...]
Key = tuple[int, int, int, int, Identifiers]
_Comparator = tuple[Key, "Key | None"]
_Alternative = tuple[tuple[_Comparator, ...], frozenset[tuple[int, int, int]]]


@lru_cache(maxsize=4_096)
def version_key(text: str) -> Key:
    """A sort key; versions that are no SemVer sort below all others, by their text. Build data counts for nothing."""
    match = _VERSION.fullmatch(text.strip()) if len(text) <= MAX_CHARS else None
    if match is None:
        return (-1, 0, 0, 0, ((1, 0, text),))
    major, minor, patch, pre = match.groups()
    # A pre-release sorts before its release.
    return (int(major), int(minor or 0), int(patch or 0), 0 if pre else 1, _identifiers(pre))


def is_release(version: str) -> bool:
    """Whether a version is one that is taken without being asked for: neither a pre-release nor a text that is no version."""
    key = version_key(version)
    return key[0] >= 0 and key[3] == 1


def newest_first(versions: Iterable[str]) -> list[str]:
    """Versions by precedence; those of equal precedence by their text, so that no order of files decides."""
    return sorted(versions, key=lambda version: (version_key(version), version), reverse=True)


def pick(versions: Iterable[str], wanted: str | None = None) -> str | None:
    """The version that a call gets: of those in the range the newest; without a range the newest release, where there is one."""
    ordered = newest_first(versions)
    if wanted is None or wanted.strip() in ANY:
        return next((version for version in ordered if is_release(version)), ordered[0] if ordered else None)
    return next((version for version in ordered if satisfies(version, wanted)), None)


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is in a range. An exact text always matches itself; an unreadable range matches nothing else."""
    if version == wanted or wanted.strip() in ANY:
        return True
    alternatives = _read(wanted)
    if alternatives is None:
        return False
    key = version_key(version)
    if key[0] < 0:
        return False
    return any(_within(key, alternative) for alternative in alternatives)


def is_range(text: str) -> bool:
    """Whether a text can be read as a range."""
    return text.strip() in ANY or _read(text) is not None


def _within(key: Key, alternative: _Alternative) -> bool:
    comparators, named = alternative
    if key[3] == 0 and key[:3] not in named:
        # Who wrote `^1.0.0` did not ask for `1.4.0-beta`; who wrote `>=1.4.0-alpha` did.
        return False
    return all(low <= key and (high is None or key < high) for low, high in comparators)


@lru_cache(maxsize=1_024)
def _read(text: str) -> tuple[_Alternative, ...] | None:
    """A range as alternatives of comparators, each half-open; None for what is none."""
    if len(text) > MAX_CHARS:
        return None
    read = [_alternative(part.strip()) for part in text.split("||")]
    alternatives = tuple(one for one in read if one is not None)
    return alternatives if len(alternatives) == len(read) else None


def _alternative(text: str) -> _Alternative | None:
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        words = [f">={hyphen.group(1)}", f"<={hyphen.group(2)}"]
        if any(word[2:3] in "^~<>=" for word in words):
            return None
    else:
        words = [word for word in _BETWEEN.split(re.sub(r"([~^<>=])\s+", r"\1", text)) if word]
    comparators: list[_Comparator] = []
    named: set[tuple[int, int, int]] = set()
    for word in words:
        match = _COMPARATOR.fullmatch(word)
        if match is None:
            return None
        operator, *parts, pre = match.groups()
        given = _given(parts)
        if pre and len(given) < 3:
            return None
        if pre:
            named.add((given[0], given[1], given[2]))
        comparators.append(_bounds(operator or "", given, pre))
    return (tuple(comparators), frozenset(named)) if comparators else None


def _given(parts: list[str | None]) -> list[int]:
    """The numbers of a version up to the first that is missing or ``x``: ``1.x.3`` says no more than ``1``."""
    given: list[int] = []
    for part in parts:
        if part is None or not part.isdigit():
            break
        given.append(int(part))
    return given


def _identifiers(pre: str | None) -> Identifiers:
    if not pre:
        return ()
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))


def _below(major: int, minor: int, patch: int) -> Key:
    """Below every pre-release of a version too."""
    return (major, minor, patch, 0, ())


_LOWEST = _below(0, 0, 0)
_NOTHING = (_below(1, 0, 0), _LOWEST)


def _bounds(operator: str, given: list[int], pre: str | None) -> _Comparator:
    """What a comparator holds: at least the first, below the second."""
    if not given:
        return _NOTHING if operator in ("<", ">") else (_LOWEST, None)
    major, minor, patch = [*given, 0, 0][:3]
    exact: Key = (major, minor, patch, 0 if pre else 1, _identifiers(pre))
    start = exact if len(given) == 3 else _below(major, minor, patch)
    above = _above(exact, given)
    if operator == "^":
        if major or len(given) == 1:
            return start, _below(major + 1, 0, 0)
        return start, _below(0, minor + 1, 0) if minor or len(given) == 2 else _below(0, 0, patch + 1)
    if operator == "~":
        return start, _below(major + 1, 0, 0) if len(given) == 1 else _below(major, minor + 1, 0)
    if operator == ">=":
        return start, None
    if operator == ">":
        return above, None
    if operator == "<":
        return _LOWEST, start
    if operator == "<=":
        return _LOWEST, above
    return start, above


def _above(exact: Key, given: list[int]) -> Key:
    """The first that is above all that a version, or the part of one, stands for."""
    if len(given) == 1:
        return _below(given[0] + 1, 0, 0)
    if len(given) == 2:
        return _below(given[0], given[1] + 1, 0)
    # Longer than the version itself, and shorter than anything that sorts behind it.
    return (*exact[:4], (*exact[4], (-1, 0, "")))
