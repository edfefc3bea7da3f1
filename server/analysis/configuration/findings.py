"""Findings of ``tamis.toml`` while it is edited: what ``tamis doctor`` would say of it, at its place (interface, Configuration).

What there is to set, and what is wrong with it, is the runtime's to say (``server/runtime/settings/config.py``); this module only finds the
places. Must not know the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span
from tamis.protocols.suggest import best
from tamis.protocols.tomltext import (
    Path,
    Place,
    TomlTree,
    TomlValue,
    paths_by_name,
    read_toml,
    syntax_fault,
    toml_places,
)

if TYPE_CHECKING:
    from tamis.server.runtime.settings.faults import Fault

_MEANT = re.compile(r"did you mean '([^']+)'\?$")


def settings_findings(text: str, on_disk: Iterable[Fault] = ()) -> list[Diag]:
    """The findings of a ``tamis.toml``; ``on_disk`` is what it names that is not there. Never raises."""
    import tomllib

    from tamis.server.runtime.settings.faults import value_faults
    from tamis.server.runtime.settings.reading import read_settings, settings_with

    tree = read_toml(text)
    try:
        raw = tomllib.loads(text.removeprefix("\ufeff"))
    except (RecursionError, ValueError) as error:
        span, reason = syntax_fault(text, error)
        return [Diag("ST801", span, {"reason": reason})]
    places = toml_places(tree)
    read = read_settings(raw)
    by_name = paths_by_name(places) if read.problems else {}
    diagnostics = [_finding(text, places, by_name, problem, closes) for problem, closes in read.problems]
    faults = [*value_faults(settings_with(read.values)), *on_disk]
    lists = _lists(tree) if any(fault.item is not None for fault in faults) else {}
    return diagnostics + [
        _of_fault(text, lists, places, fault) for fault in faults if not fault.setting or fault.setting in places
    ]


def _of_fault(text: str, lists: dict[Path, list[TomlValue]], places: dict[Path, Place], fault: Fault) -> Diag:
    if not fault.setting:
        # it is about the file as a whole
        return Diag("ST804", (0, 0), {"reason": fault.message}, severity=fault.level)
    place = places[fault.setting]
    if not fault.in_force:
        return Diag("ST805", place.key, {"reason": fault.message[:1].upper() + fault.message[1:]})
    span = place.key if place.value[0] == place.value[1] else place.value
    if fault.item is not None:
        items = lists.get(fault.setting, [])
        span = items[fault.item].span if fault.item < len(items) else span
    reason = f"'{'.'.join(fault.setting)}': {fault.message}"
    return Diag("ST804", span, {"reason": reason}, severity=fault.level, fix=_fix_name(text, fault.message, span))


def _lists(tree: TomlTree) -> dict[Path, list[TomlValue]]:
    """The items of the settings that stand in tables, by path; of one that stands twice those of the first."""
    lists: dict[Path, list[TomlValue]] = {}
    for table in tree.tables:
        for entry in table.entries:
            if entry.value is not None:
                lists.setdefault((*table.names, *entry.names), entry.value.items)
    return lists


def _fix_name(text: str, message: str, span: Span) -> Fix | None:
    meant = re.search(r"did you mean '([^']+)'\?", message)
    if meant is None or text[span[0] : span[0] + 1] not in ('"', "'"):
        return None
    return Fix(f"Change to '{meant[1]}'", (Edit(*span, f'"{meant[1]}"'),), "unsafe")


def _finding(text: str, places: dict[Path, Place], by_name: dict[str, Path], problem: str, closes: bool) -> Diag:
    from tamis.server.runtime.settings.reading import code_of, path_of, span_of

    code = code_of(problem)
    unknown = code == "ST802"
    names = path_of(problem, by_name)
    span = span_of(problem, places.get(names))
    reason = problem[:1].upper() + problem[1:]
    if closes:
        reason += "; no tool is run until it is mended"
    severity = "error" if closes else None
    return Diag(
        code,
        span,
        {"reason": reason},
        severity=severity,
        fix=_fix(text, problem, span, unknown) or _word_fix(text, names, span, code),
    )


def _fix(text: str, problem: str, span: Span, unknown: bool) -> Fix | None:
    meant = _MEANT.search(problem)
    if meant is None or span[0] == span[1]:
        return None
    new = meant[1].rpartition(".")[2] if unknown else f'"{meant[1]}"'
    quoted = unknown and text[span[0] : span[0] + 1] in ('"', "'")
    return Fix(f"Change to '{meant[1]}'", (Edit(*span, f'"{new}"' if quoted else new),), "unsafe")


def _word_fix(text: str, path: Path, span: Span, code: str) -> Fix | None:
    """The word that was meant where a setting takes one of some."""
    if code != "ST803" or text[span[0] : span[0] + 1] not in ('"', "'"):
        return None
    from tamis.server.analysis.configuration.place import schema_of
    from tamis.server.runtime.settings.schema import settings_schema

    words: list[str] = (schema_of(settings_schema(), path) or {}).get("enum", [])
    near = best(text[span[0] + 1 : span[1] - 1], words)
    return Fix(f"Change to '{near}'", (Edit(*span, f'"{near}"'),), "unsafe") if near else None
