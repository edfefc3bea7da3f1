"""The methods of the Python client (``client/methods.py``), made from what the methods declare."""

from __future__ import annotations

import builtins
import json
import keyword
import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from tamis.server.rpc.described.methods import Described
from tamis.server.rpc.described.schemas import PREFIX, Schema, Schemas, schemas

_HEAD = '''"""The daemon's methods as methods of the clients. Written by tools/published_contract.py from what the daemon declares."""

# fmt: off
# ruff: noqa: A002
# pyright: reportUnusedImport=false

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, cast

import msgspec

'''
_RESULTS = '''
RESULTS: dict[str, type[msgspec.Struct] | tuple[type[msgspec.Struct], ...]] = {{
{rows}}}
"""The Struct that each method's result is decoded into, of several the first that fits; one that is not here gives plain data."""

'''
_CLASS = '''
class {name}:
    """One method for each method of the daemon; params that are left out are not sent."""

    @abstractmethod
    {prefix}def call_with(self, method: str, params: dict[str, Any], timeout: float | None) -> Any:
        """Sends a request and gives its result as the method's Struct."""
'''
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
# What inlined shapes have no more than their keys to say of.
_SKIPPED = {"initialize", "shutdown"}


def module(methods: Iterable[Described]) -> str:
    """The text of the module."""
    listed = [*methods]
    made = schemas(listed)
    structs = {one.name: kinds for one in listed if (kinds := _structs(one))}
    modules = sorted({_module(kind) for kinds in structs.values() for kind in kinds})
    spelled = {name: ", ".join(map(_spelled, kinds)) for name, kinds in structs.items()}
    rows = "".join(f'    "{name}": {f"({text})" if ", " in text else text},\n' for name, text in spelled.items())
    text = _HEAD + f"from tamis.protocols import {', '.join(modules)}\n" + _RESULTS.format(rows=rows)
    for name, is_async in (("Methods", False), ("AsyncMethods", True)):
        text += _CLASS.format(name=name, prefix="async " if is_async else "")
        text += "".join(_method(one, made, is_async) for one in listed if one.name not in _SKIPPED)
        text += "\n"
    return text.rstrip("\n") + "\n"


def _structs(one: Described) -> tuple[type[msgspec.Struct], ...]:
    are_structs = all(isinstance(kind, type) and issubclass(kind, msgspec.Struct) for kind in one.results)
    return cast("tuple[type[msgspec.Struct], ...]", one.results) if are_structs else ()


def _module(kind: type[Any]) -> str:
    """Where hosts import it from: a module or package of ``tamis.protocols``."""
    return kind.__module__.split(".")[2]


def _spelled(kind: type[Any]) -> str:
    return f"{_module(kind)}.{kind.__name__}"


def _method(one: Described, made: Schemas, is_async: bool) -> str:
    name = _snake(one.name.replace("/", "_").replace(".", "_"))
    reference = made.params.get(one.name)
    part: Schema = {} if reference is None else made.parts[str(reference["$ref"]).removeprefix(PREFIX)]
    required = part.get("required", ())
    fields = sorted(part.get("properties", {}).items(), key=lambda item: item[0] not in required)
    arguments: list[str] = []
    pairs: list[str] = []
    texts: list[str] = []
    for field, schema in fields:
        own = _python_name(field)
        kind = _type(schema)
        arguments.append(f"{own}: {kind}" if field in required else f"{own}: {kind} | None = None")
        pairs.append(f'            "{field}": {own},\n')
        if schema.get("description"):
            texts.append(f"        {own}: {schema['description']}")
    arguments.append("timeout: float | None = None")
    structs = " | ".join(map(_spelled, _structs(one)))
    result = structs or ("None" if one.results == (type(None),) else "Any")
    given = "{\n" + "".join(pairs) + "        }" if pairs else "{}"
    call = f'{"await " if is_async else ""}self.call_with("{one.name}", given, timeout)'
    words = f'        """{one.summary}' + ("\n\n" + "\n".join(texts) + "\n        " if texts else "") + '"""\n'
    body = f"        given: dict[str, Any] = {given}\n"
    body += f'        return cast("{result}", {call})\n' if result != "Any" else f"        return {call}\n"
    listed = "".join(f"        {argument},\n" for argument in arguments)
    head = f"    {'async ' if is_async else ''}def {name}(\n        self,\n        *,\n{listed}    ) -> {result}:\n"
    return f"\n{head}{words.replace(chr(92), chr(92) * 2)}{body}"


def _type(schema: Any) -> str:
    given = cast("Schema", schema)
    if "$ref" in given:
        return "dict[str, Any]"
    if "anyOf" in given:
        # Leaving a param out is the same as null.
        return " | ".join(dict.fromkeys(_type(one) for one in given["anyOf"] if one.get("type") != "null"))
    if "enum" in given or "const" in given:
        values = given["enum"] if "enum" in given else [given["const"]]
        return f"Literal[{', '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"
    kind = given.get("type")
    if kind == "array":
        return f"list[{_type(given.get('items') or {})}]"
    if kind == "object":
        below = given.get("additionalProperties", True)
        return f"dict[str, {_type(below) if isinstance(below, dict) else 'Any'}]"
    return "Any" if kind is None else _PLAIN[kind]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _python_name(field: str) -> str:
    name = re.sub(r"\W", "_", _snake(field))
    return f"{name}_" if keyword.iskeyword(name) or name in ("self", "timeout") or name in _SHADOWED else name


# Builtins that are used in the module itself; others may be shadowed by a param of the wire's name.
_SHADOWED = frozenset({"cast", "dict", "list"} & {*vars(builtins)})
