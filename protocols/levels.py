"""Levels of findings: what ``[lint]`` in the settings makes of the catalogue.

A name is a code (``LN721``), a slug (``parameter-undescribed``) or the beginning of codes (``LN``, ``LN72``); the most exact
one wins. Levels change what editors and ``tamis check`` say; what runs only where formats are made errors. Must not know documents or where settings come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

import msgspec

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.export.names import TARGET_WORDS, TARGETS, Target
from tamis.protocols.model import Severity
from tamis.protocols.suggest import best, hint

Level = Literal["off", "hint", "information", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)
_LEVEL_WORDS: dict[str, Level] = {
    **dict.fromkeys(("info", "note", "notice"), "information"),
    **dict.fromkeys(("warn",), "warning"),
    **dict.fromkeys(("none", "ignore", "disable", "disabled", "false", "silent"), "off"),
    **dict.fromkeys(("err", "fatal", "deny", "forbid"), "error"),
}
FORMAT = "VA438"
"""A text that has not the format of its schema: as an error it refuses a call (``formats = "error"``)."""
TARGETS_KEY = "targets"
"""The name in ``[lint]`` that is no rule: what tools are to be portable to."""
_READING_FAMILIES = ("MF", "PF", "WF", "VA45", "ST")
_OF_THE_DISK = frozenset(("MF540", "MF542"))


class LevelProblem(msgspec.Struct, frozen=True):
    """What is wrong with one entry of ``[lint]``: its name, a sentence about it, and the name or level that was meant."""

    name: str
    message: str
    suggestion: str = ""
    of_value: bool = False
    """Whether the level is wrong rather than the name."""


class Levels(msgspec.Struct, frozen=True):
    """The levels that differ from the catalogue's, by code."""

    by_code: dict[str, Level] = {}
    problems: tuple[LevelProblem, ...] = ()
    targets: tuple[Target, ...] = ()
    """What tools are to be portable to (``targets``)."""

    def of(self, code: str) -> Level | None:
        """The level that was chosen for a code, or None: then the finding's own holds."""
        return self.by_code.get(code)

    def says(self, code: str) -> bool:
        """Whether findings of a code are said at all."""
        chosen = self.by_code.get(code)
        return not CATALOGUE[code].off if chosen is None else chosen != "off"

    def says_any(self, codes: Sequence[str]) -> bool:
        """Whether findings of any of the codes are said."""
        for code in codes:
            chosen = self.by_code.get(code)
            if chosen != "off" and (chosen is not None or not CATALOGUE[code].off):
                return True
        return False


NO_LEVELS = Levels()


def codes_of(name: str) -> tuple[str, ...]:
    """The codes that a name stands for: its own, those of a slug, or all that begin with it; none for an unknown name."""
    if name in CATALOGUE:
        return (name,)
    if name == "formats":
        return (FORMAT,)
    upper = name.upper()
    if upper in CATALOGUE:
        return (upper,)
    by_slug = tuple(code for code, entry in CATALOGUE.items() if entry.slug == name.lower())
    if by_slug or not 2 <= len(upper) <= 4:
        return by_slug
    return tuple(code for code in CATALOGUE if code.startswith(upper))


def is_binding(code: str, severity: Severity) -> bool:
    """Whether a finding keeps a manifest or profile from being loaded: such errors are always said."""
    return severity == "error" and code.startswith(_READING_FAMILIES) and code not in _OF_THE_DISK


def rule_suggestion(name: str) -> str:
    """The rule that a wrong name may have meant; empty when there is none."""
    slugs = [entry.slug for entry in CATALOGUE.values()]
    return best(name.lower(), slugs) or (best(name.upper(), CATALOGUE) or "")


def read_levels(table: Mapping[str, object]) -> Levels:
    """Reads ``[lint]``: a wrong entry is reported and has no effect."""
    problems: list[LevelProblem] = []
    ranked: list[tuple[int, tuple[str, ...], Level]] = []
    targets: tuple[Target, ...] = ()
    for name, value in table.items():
        if name == TARGETS_KEY:
            targets, wrong = _read_targets(value)
            problems.extend(wrong)
            continue
        codes = codes_of(name)
        if not codes:
            near = rule_suggestion(name)
            problems.append(LevelProblem(name, f"'{name}' is no rule{hint(near)}", near))
            continue
        if value not in LEVELS:
            word = value.lower() if isinstance(value, str) else "off" if value is False else ""
            meant = word if word in LEVELS else _LEVEL_WORDS.get(word) or best(word, LEVELS) or ""
            message = f"'{name}' must be one of {', '.join(LEVELS)}{hint(meant)}"
            problems.append(LevelProblem(name, message, meant, of_value=True))
            continue
        level = value
        if len(codes) == 1 and level != "error" and is_binding(codes[0], CATALOGUE[codes[0]].severity):
            message = f"'{name}' keeps a file from being loaded and stays an error; the level has no effect"
            problems.append(LevelProblem(name, message))
            continue
        # The beginnings of codes first, the shortest before the longer, so that what is more exact overwrites.
        exact = name.upper() in CATALOGUE or CATALOGUE[codes[0]].slug == name.lower() or name == "formats"
        ranked.append((9 if exact else len(name), codes, level))
    by_code: dict[str, Level] = {}
    for _, codes, level in sorted(ranked, key=lambda entry: entry[0]):
        by_code.update(dict.fromkeys(codes, level))
    return Levels(by_code, tuple(problems), targets)


def _read_targets(value: object) -> tuple[tuple[Target, ...], list[LevelProblem]]:
    """The targets that are known, each once, and what is wrong with the list."""
    known: dict[str, Target] = {**TARGET_WORDS, **{target: target for target in TARGETS}}
    if not isinstance(value, list | tuple):
        message = f"'{TARGETS_KEY}' must be a list of {', '.join(TARGET_WORDS)}"
        return (), [LevelProblem(TARGETS_KEY, message, of_value=True)]
    names = cast("Sequence[object]", value)
    problems: list[LevelProblem] = []
    for name in names:
        if name not in known:
            near = best(str(name), TARGET_WORDS) or ""
            message = f"'{TARGETS_KEY}' holds '{name}', which is none of {', '.join(TARGET_WORDS)}{hint(near)}"
            problems.append(LevelProblem(TARGETS_KEY, message, of_value=True))
    return tuple(dict.fromkeys(known[name] for name in names if isinstance(name, str) and name in known)), problems
