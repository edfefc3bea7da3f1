"""Values of settings as people are shown them: in one line, as TOML writes them, of tables only what is set."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def plain(value: Any) -> Any:
    """A value as lists and tables; a table that the schema knows holds what differs from its defaults."""
    if isinstance(value, msgspec.Struct):
        return {
            field.encode_name: plain(held)
            for field in msgspec.structs.fields(value)
            if not _is_default(field, held := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(name): plain(held) for name, held in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(held) for held in cast("list[Any]", value)]
    return value


def toml_value(value: Any) -> str:
    """A value in one line of ASCII that holds nothing a terminal obeys."""
    return _written(plain(value))


def _written(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {_written(held)}" for name, held in cast("dict[str, Any]", value).items())
        text = ", ".join(pairs)
        return f"{{ {text} }}" if text else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, cast('list[Any]', value)))}]"
    # TOML has no null, and JSON's DEL stands as it is
    return json.dumps(value, default=str).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _written(name)


def _is_default(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    if field.default is not msgspec.NODEFAULT:
        return value == field.default
    return field.default_factory is not msgspec.NODEFAULT and value == cast("Any", field).default_factory()
