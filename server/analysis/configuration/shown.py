"""Hover, outline and folds of ``tamis.toml``. Must not know LSP."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import Span
from tamis.protocols.tomltext import TomlEntry, TomlTable, TomlTree, TomlValue, read_toml
from tamis.server.analysis.answers import HoverText
from tamis.server.analysis.configuration.completion import path_of_key, toml_text
from tamis.server.analysis.configuration.place import Path, dotted, place_at, schema_of
from tamis.server.analysis.describe import code, type_name
from tamis.server.analysis.navigation.symbols import MAX_SYMBOLS, Symbol
from tamis.server.analysis.shown.folding import Fold, comment_folds
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.settings.classes import whose_word
from tamis.server.runtime.settings.schema import example, settings_schema

_ACTS = {
    "lint": "Acts in editors and in `tamis check`.",
    "diagnostics": "Acts in editors.",
    "logFormat": "Acts in `tamis rpc`.",
    "logLevel": "Acts in `tamis rpc`, `tamis run` and `tamis call`.",
}
MAX_SHOWN = 60


def explain_settings(snapshot: Snapshot, offset: int, _facts: object = None) -> HoverText | None:
    """What to say about an offset: the table, the setting, or the setting whose value stands there."""
    tree = read_toml(snapshot.text)
    place = place_at(tree, offset)
    if place is None:
        return None
    if place.kind == "header":
        table = tree.table_at(offset)
        for index, span in enumerate(table.spans):
            if span[0] <= offset <= span[1]:
                return _said(table.names[: index + 1], span)
        return None
    if place.kind == "key":
        return _said(path_of_key(place), place.span) if place.entry is not None else None
    path = place.path[:-1] if place.path[-1:] == ("*",) else place.path
    return _said(path, place.span) if place.value is not None else None


def _said(path: Path, span: Span) -> HoverText | None:
    schema = schema_of(settings_schema(), path)
    if schema is None:
        return None
    return HoverText(span, setting_card(path, schema))


def setting_card(path: Path, schema: dict[str, Any]) -> str:
    """A setting in words: its name and type, what it means, values, default, bounds, an example, where it acts, who may set it."""
    name = dotted(path)
    kind = type_name(schema)
    parts = [f"**{name}** ({'table' if kind == 'object' else kind})"]
    description = str(schema.get("description", ""))
    if description:
        description = description[:1].upper() + description[1:]
        parts.append(description if description.endswith((".", "*")) else f"{description}.")
    facts: list[str] = []
    if "enum" in schema:
        facts.append("One of " + ", ".join(code(toml_text(value)) for value in schema["enum"]))
    default = schema.get("default")
    if default is not None and kind != "object":
        facts.append(f"Default {code(toml_text(default))}")
    if "minimum" in schema:
        facts.append(f"At least {code(toml_text(schema['minimum']))}")
    shown = example(name)
    if shown:
        facts.append(f"Example {code(shown)}")
    more = [told for told in (_ACTS.get(path[0], ""), whose_word(name)) if told]
    return "\n\n".join([*parts, *facts, *more])


# Outline


def outline_of_settings(snapshot: Snapshot) -> list[Symbol]:
    """Tables with their settings; settings before the first header stand for themselves."""
    tree = read_toml(snapshot.text)
    left = [MAX_SYMBOLS]
    symbols = _entries(tree, tree.tables[0].entries, left)
    for index, table in enumerate(tree.tables[1:], start=1):
        name = dotted(table.names).strip(".")
        if not name:
            continue
        if left[0] <= 0:
            break
        left[0] -= 1
        end = _end(tree, index)
        span = (table.header[0], max(table.header[1], end))
        symbols.append(Symbol(name, "group", span, table.header, "", _entries(tree, table.entries, left)))
    return symbols


def _entries(tree: TomlTree, entries: list[TomlEntry], left: list[int]) -> list[Symbol]:
    symbols: list[Symbol] = []
    for entry in entries:
        name = dotted(entry.names).strip(".")
        if not name:
            continue
        left[0] -= 1
        if left[0] < 0:
            break
        value = entry.value
        inner = value.entries if value is not None and value.kind == "table" else []
        detail = "" if value is None or inner else " ".join(tree.text[slice(*value.span)].split())
        if len(detail) > MAX_SHOWN:
            detail = detail[: MAX_SHOWN - 1] + "…"
        place = (entry.spans[0][0], entry.spans[-1][1])
        symbols.append(Symbol(name, "field", entry.span, place, detail, _entries(tree, inner, left)))
    return symbols


def _end(tree: TomlTree, index: int) -> int:
    """Where the last of a table's entries ends."""
    table: TomlTable = tree.tables[index]
    return max((entry.span[1] for entry in table.entries[-1:]), default=table.header[1])


# Folds


def folds_of_settings(snapshot: Snapshot) -> list[Fold]:
    """Tables behind their headers, lists over several lines, and comments."""
    tree = read_toml(snapshot.text)
    folds: list[Fold] = []
    for index, table in enumerate(tree.tables):
        if index:
            folds.append(Fold((table.header[1], max(table.header[1], _end(tree, index))), 0, last=True))
        for entry in table.entries:
            if entry.value is not None:
                folds += _lists(entry.value)
    kept = [fold for fold in folds if "\n" in snapshot.text[slice(*fold.span)]]
    return [*kept, *comment_folds(snapshot.text, tree.comments)]


def _lists(value: TomlValue) -> list[Fold]:
    if value.kind != "array" or not value.closed:
        return []
    return [Fold((value.span[0] + 1, value.span[1] - 1), 1)]
