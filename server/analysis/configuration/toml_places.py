"""Where the keys and values of a ``tamis.toml`` stand, by their path. Must not know settings."""

from __future__ import annotations

from typing import NamedTuple

from tamis.protocols.positions import Span
from tamis.protocols.tomltext import TomlEntry, TomlTree, read_toml

Path = tuple[str, ...]


class Place(NamedTuple):
    """Where a setting stands: its key, and its value; a table's header is its key and has no value."""

    key: Span
    value: Span


def toml_places(text: str | TomlTree) -> dict[Path, Place]:
    """The places of all keys by their path; of a key that stands more than once the first."""
    tree = read_toml(text) if isinstance(text, str) else text
    places: dict[Path, Place] = {}
    for table in tree.tables:
        _names(places, (), table.names, table.spans)
        _entries(places, table.names, table.entries)
    return places


def _names(places: dict[Path, Place], above: Path, names: Path, spans: tuple[Span, ...]) -> None:
    for index, span in enumerate(spans):
        places.setdefault((*above, *names[: index + 1]), Place(span, (span[1], span[1])))


def _entries(places: dict[Path, Place], above: Path, entries: list[TomlEntry]) -> None:
    for entry in entries:
        _names(places, above, entry.names[:-1], entry.spans[:-1])
        path = (*above, *entry.names)
        value = entry.value
        end = max(entry.equals + 1, entry.spans[-1][1])
        places.setdefault(path, Place(entry.spans[-1], value.span if value is not None else (end, end)))
        if value is not None:
            _entries(places, path, value.entries)
