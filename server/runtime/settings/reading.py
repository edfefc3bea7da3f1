"""Reading settings as a file or a host writes them: each value by itself, so that one that is wrong costs only itself.

A mistake is said with the setting's name, and whether it binds: one in what bounds tools keeps every tool from running. Must not know
where the values come from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin

import msgspec

from tamis.protocols.suggest import best, hint
from tamis.server.runtime.settings.config import CustomRuntime, Secret, Settings

if TYPE_CHECKING:
    from tamis.protocols.positions import Span
    from tamis.protocols.tomltext import Path, Place

# A mistake in one of these must not open what was meant to be closed; an unknown name there may be a misspelled bound.
_BINDING_NAMES = ("policy", "sandbox", "dependencies", "profile", "tools", "onConflict")
_BINDING = tuple(f"{what}'{name}" for what in ("", "unknown setting ") for name in _BINDING_NAMES)


class Read(msgspec.Struct, frozen=True):
    """What was read: the values that are right, by the settings' dotted names, and what is wrong."""

    values: dict[str, Any]
    problems: tuple[tuple[str, bool], ...] = ()
    """Each sentence with whether it keeps tools from running. The first name in quotes is the setting."""


def read_settings(raw: Mapping[str, Any]) -> Read:
    """The settings in a table. Never raises."""
    problems: list[str] = []
    values: dict[str, Any] = {}
    _read(Settings, raw, "", problems, values)
    problems.extend(_runtime_problems(values.get("sandbox.runtimes", {})))
    problems.extend(_secret_problems(values.get("secrets", {})))
    problems.extend(_lint_problems(values.get("lint", {})))
    return Read(values, tuple((problem, _binds(problem)) for problem in problems))


def settings_problems(raw: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """What is wrong with settings as they stand in the file, each with whether it keeps tools from running. The first name in quotes
    is the setting."""
    return list(read_settings(raw).problems)


def settings_of(raw: Mapping[str, Any]) -> Settings:
    """Settings as they stand in one file, with the default for every one that is wrong."""
    return settings_with(read_settings(raw).values)


def settings_with(values: Mapping[str, Any]) -> Settings:
    """The settings with these values by dotted name, and the defaults."""
    return cast("Settings", _built(Settings, _tables(values)))


def _tables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted name as tables in tables."""
    tables: dict[str, Any] = {}
    for dotted, value in values.items():
        *above, name = dotted.split(".")
        table = tables
        for part in above:
            table = table.setdefault(part, {})
        table[name] = value
    return tables


def _built(kind: type[msgspec.Struct], tables: Mapping[str, Any]) -> msgspec.Struct:
    given: dict[str, Any] = {}
    for name, (field, of) in _fields(kind).items():
        if name in tables:
            value = tables[name]
            given[field] = _built(of, value) if _is_struct(of) else value
    return kind(**given)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[str, Any]]:
    """What can be set of a kind by its name in files: the field's own name and its type. msgspec evaluates the annotations at each look."""
    return {field.encode_name: (field.name, cast("Any", field).type) for field in msgspec.structs.fields(kind)}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _runtime_problems(runtimes: Mapping[str, CustomRuntime]) -> list[str]:
    from tamis.protocols.manifest.reading import LANGUAGE_NAME, LANGUAGES

    problems: list[str] = []
    for name, runtime in runtimes.items():
        place = f"'sandbox.runtimes.{name}"
        if name in LANGUAGES:
            problems.append(f"{place}' is built in; its program is sandbox.interpreters.{name}")
        elif not re.fullmatch(LANGUAGE_NAME, name):
            problems.append(f"{place}' cannot be a runtime's name: small letters, digits, '+', '-' and '_'")
        if not runtime.command or not os.path.isabs(runtime.command[0]):
            problems.append(f"{place}.command' must begin with a program's absolute path")
        problems.extend(
            f"{place}.show' holds '{path}', which is not absolute" for path in runtime.show if not os.path.isabs(path)
        )
        problems.extend(
            f"{place}.extensions' holds '{extension}', which does not begin with a dot"
            for extension in runtime.extensions
            if not extension.startswith(".")
        )
    return problems


def _secret_problems(secrets: Mapping[str, Secret]) -> list[str]:
    if not secrets:
        return []
    from tamis.protocols.manifest.security import variable_name_fault

    problems: list[str] = []
    for name, secret in secrets.items():
        place = f"'secrets.{name}"
        if fault := variable_name_fault(name):
            problems.append(f"{place}' cannot be a secret's name: {fault}")
        sources = [field for field in ("env", "file", "command", "keyring") if getattr(secret, field)]
        if len(sources) != 1:
            problems.append(f"{place}' must say exactly one of env, file, command and keyring")
        if secret.command and not os.path.isabs(secret.command[0]):
            problems.append(f"{place}.command' must begin with a program's absolute path")
        if secret.keyring and not all(secret.keyring.partition("/")[::2]):
            problems.append(f"{place}.keyring' must be the service, '/' and the user")
    return problems


def _lint_problems(table: Mapping[str, Any]) -> list[str]:
    if not table:
        return []
    from tamis.protocols.levels import read_levels

    # The name is what the message begins with.
    return [f"'lint.{problem.message[1:]}" for problem in read_levels(table).problems]


_NAMED = re.compile(r"'([^']*)'")


def path_of(problem: str, by_name: Mapping[str, Path]) -> Path:
    """The path of the setting that a sentence is about, or of the nearest table above it that the text has. Empty: none."""
    named = _NAMED.search(problem)
    dotted = named[1] if named is not None else ""
    while dotted not in by_name and "." in dotted:
        dotted = dotted.rpartition(".")[0]
    return by_name.get(dotted, ())


def span_of(problem: str, place: Place | None) -> Span:
    """What of a setting a sentence is about: the name of one that is unknown, else its value. ``place`` is that of its path."""
    if place is None:
        return (0, 0)
    return place.key if code_of(problem) == "ST802" or place.value[0] == place.value[1] else place.value


def code_of(problem: str) -> str:
    """The finding that a sentence about a setting is: one that is unknown, or one with a wrong value."""
    return "ST802" if problem.startswith("unknown ") or " is no rule" in problem else "ST803"


def level_of(problem: str) -> Literal["error", "warning"]:
    """How grave a mistake is, for whoever tells it: an error where no tool is run for it, else what its finding is."""
    from tamis.protocols.catalogue import CATALOGUE

    return "error" if _binds(problem) or CATALOGUE[code_of(problem)].severity == "error" else "warning"


def _binds(problem: str) -> bool:
    # A table that is not known (`[policies]`) may be a misspelled bound; so may a near miss of a binding name.
    return problem.startswith((*_BINDING, "unknown table")) or any(
        f"did you mean '{name}'" in problem for name in _BINDING_NAMES
    )


def _wanted(kind: Any) -> str:
    """What a setting takes, in words."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f'"{value}"' for value in get_args(kind))
    names = {str: "a text", int: "a whole number", bool: "true or false"}
    if get_origin(kind) is tuple:
        return "a list of texts" if get_args(kind)[0] is str else "a list of tables"
    return names.get(kind, "a table")


def _shown(value: object) -> str:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _table_of(kind: Any) -> type[msgspec.Struct] | None:
    """What the entries of a table with free names are."""
    entry = get_args(kind)[1] if get_origin(kind) is dict else None
    return entry if isinstance(entry, type) and issubclass(entry, msgspec.Struct) else None


def _is_one(value: object, kind: Any) -> bool:
    """Whether an entry of a table with free names is of its kind."""
    return value in get_args(kind) if get_origin(kind) is Literal else type(value) is kind


def _list_of(kind: Any) -> type[msgspec.Struct] | None:
    """What the tables of a list are."""
    entry = get_args(kind)[0] if get_origin(kind) is tuple else None
    return entry if isinstance(entry, type) and issubclass(entry, msgspec.Struct) else None


_WRONG: Any = object()


def _read(
    kind: type[msgspec.Struct], raw: Mapping[str, Any], prefix: str, problems: list[str], values: dict[str, Any]
) -> None:
    """Converts field by field, so that one wrong value costs that value only; ``values`` gets the others by dotted name."""
    fields = _fields(kind)
    for name, value in raw.items():
        path, field = f"{prefix}{name}", fields.get(name)
        if field is None:
            near = best(name, fields)
            what = "table" if isinstance(value, dict) else "setting"
            problems.append(f"unknown {what} '{path}'{hint(f'{prefix}{near}' if near else None)}")
            continue
        of = field[1]
        if not _is_struct(of):
            converted = _value(of, value, path, problems)
            if converted is not _WRONG:
                values[path] = converted
        elif isinstance(value, dict):
            _read(of, cast("dict[str, Any]", value), f"{path}.", problems, values)
        else:
            problems.append(f"'{path}' must be a table")


def _value(of: Any, value: object, path: str, problems: list[str]) -> Any:
    """A setting's value; ``_WRONG`` where nothing of it can be used."""
    entry, listed = _table_of(of), _list_of(of)
    if entry is not None and isinstance(value, dict):
        return dict(_entries(entry, cast("dict[str, object]", value).items(), path, problems))
    if listed is not None and isinstance(value, list | tuple):
        numbered = enumerate(cast("list[object]", value), 1)
        return tuple(item for _, item in _entries(listed, numbered, path, problems))
    item_kind: Any = get_args(of)[1] if get_origin(of) is dict else Any
    if (item_kind in (str, int, bool) or get_origin(item_kind) is Literal) and isinstance(value, dict):
        return _words_of(item_kind, cast("dict[str, object]", value), path, problems)
    try:
        converted: object = msgspec.convert(value, of)
    except (msgspec.ValidationError, RecursionError):
        problems.append(f"'{path}' must be {_wanted(of)}, not {_shown(value)}")
        return _WRONG
    if isinstance(converted, int) and not isinstance(converted, bool) and converted < 0:
        problems.append(f"'{path}' must not be negative")
        return _WRONG
    return converted


def _entries(
    kind: type[msgspec.Struct], items: Iterable[tuple[Any, object]], path: str, problems: list[str]
) -> Iterator[tuple[Any, msgspec.Struct]]:
    """The tables of a list by number, or of a table by name."""
    for key, item in items:
        if not isinstance(item, dict):
            problems.append(f"'{path}.{key}' must be a table")
            continue
        values: dict[str, Any] = {}
        _read(kind, cast("dict[str, Any]", item), f"{path}.{key}.", problems, values)
        below = len(f"{path}.{key}.")
        yield key, _built(kind, _tables({dotted[below:]: value for dotted, value in values.items()}))


def _words_of(kind: Any, table: Mapping[str, object], path: str, problems: list[str]) -> dict[str, object]:
    """The entries of a table with free names that are of its kind."""
    right = {key: item for key, item in table.items() if _is_one(item, kind)}
    problems.extend(
        f"'{path}.{key}' must be {_wanted(kind)}, not {_shown(item)}" for key, item in table.items() if key not in right
    )
    return right
