"""Findings of ``tamis.toml`` while it is edited: what ``tamis doctor`` would say of it, at its place (interface, Configuration).

What there is to set, and what is wrong with it, is the runtime's to say (``server/runtime/config.py``); this module only finds the
places. Must not know the disk.
"""

from __future__ import annotations

import re

from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span
from tamis.protocols.tomltext import TomlError, read_toml
from tamis.server.analysis.toml_places import Path, Place, toml_places

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAME = re.compile(r"'([^']*)'")
_MEANT = re.compile(r"did you mean '([^']+)'\?$")


def settings_findings(text: str) -> list[Diag]:
    """The findings of a ``tamis.toml``. Never raises."""
    import tomllib

    from tamis.server.runtime.config import settings_problems

    tree = read_toml(text)
    try:
        raw = tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        return [Diag("ST801", (0, 0), {"reason": "it is nested too deep"})]
    except ValueError as error:
        # The library says where it gave up; what is wrong often stands before that.
        return [_own(tree.errors[0])] if tree.errors else [_syntax(text, str(error))]
    places = toml_places(tree)
    return [_finding(text, places, problem, closes) for problem, closes in settings_problems(raw)]


def _own(error: TomlError) -> Diag:
    return Diag("ST801", error.span, {"reason": error.message})


def _syntax(text: str, said: str) -> Diag:
    match = _AT.search(said)
    at = len(text)
    if match is not None and match[1]:
        lines = text.split("\n")
        line = min(int(match[1]), len(lines)) - 1
        at = min(len(text), sum(len(one) + 1 for one in lines[:line]) + int(match[2]) - 1)
    reason = _AT.sub("", said)
    end = text.find("\n", at)
    return Diag("ST801", (at, len(text) if end < 0 else max(at, end)), {"reason": reason[:1].lower() + reason[1:]})


def _finding(text: str, places: dict[Path, Place], problem: str, closes: bool) -> Diag:
    unknown = problem.startswith("unknown ") or " is no rule" in problem
    named = _NAME.search(problem)
    path = named[1] if named is not None else ""
    place = _place(places, path)
    span = (0, 0)
    if place is not None:
        span = place.key if unknown or place.value[0] == place.value[1] else place.value
    reason = problem[:1].upper() + problem[1:]
    if closes:
        reason += "; no tool is run until it is mended"
    severity = "error" if closes else None
    code = "ST802" if unknown else "ST803"
    return Diag(code, span, {"reason": reason}, severity=severity, fix=_fix(text, problem, span, unknown))


def _place(places: dict[Path, Place], dotted: str) -> Place | None:
    """The place of a setting by its dotted name, or of the nearest table above it; names may hold dots themselves."""
    fitting = [path for path in places if ".".join(path) == dotted]
    while not fitting and "." in dotted:
        dotted = dotted.rpartition(".")[0]
        fitting = [path for path in places if ".".join(path) == dotted]
    return places[fitting[0]] if fitting else None


def _fix(text: str, problem: str, span: Span, unknown: bool) -> Fix | None:
    meant = _MEANT.search(problem)
    if meant is None or span[0] == span[1]:
        return None
    new = meant[1].rpartition(".")[2] if unknown else f'"{meant[1]}"'
    quoted = unknown and text[span[0] : span[0] + 1] in ('"', "'")
    return Fix(f"Change to '{meant[1]}'", (Edit(*span, f'"{new}"' if quoted else new),), "unsafe")
