"""The Python client's methods (``client/methods.py``), what they give (``client/results.py``) and take (``client/params.py``), made from what the methods declare."""

from __future__ import annotations

import builtins
import functools
import json
import keyword
import re
from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec

from tamis.protocols.messages import NOTIFICATIONS, REQUESTS
from tamis.server.rpc.described.methods import Described
from tamis.server.rpc.described.schemas import PREFIX, Schema, Schemas, reachable, schemas

_HEAD = '''"""The daemon's methods as methods of the clients. Written by tools/published_contract.py from what the daemon declares."""

# fmt: off
# ruff: noqa: A002
# pyright: reportUnusedImport=false

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, cast

from tamis.client import params as _params
from tamis.client import results as _results
'''
_RESULTS_HEAD = '''"""What the daemon gives and asks: Structs of its results, notifications and requests. Written by tools/published_contract.py.

A field that the daemon leaves out is ``None`` here. Names are those of the wire in lower case with ``_``.
"""

# fmt: off

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Result(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Base of all of them."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data with the names of the wire; what is not there is left out. ``json.dumps`` takes it."""
        return msgspec.to_builtins(self)
'''
_PARAMS_HEAD = '''"""What the daemon's methods take beside plain values: dictionaries with the names of the wire. Written by tools/published_contract.py."""

# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
_RESULTS = '''
RESULTS: dict[str, type[_results.Result] | tuple[type[_results.Result], ...]] = {{
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
    """The text of the methods' module."""
    listed = [*methods]
    schema_set = schemas(listed)
    spelled = {method.name: ", ".join(map(_spelled, kinds)) for method in listed if (kinds := _structs(method))}
    rows = "".join(f'    "{name}": {f"({text})" if ", " in text else text},\n' for name, text in spelled.items())
    text = _HEAD + _RESULTS.format(rows=rows)
    for name, is_async in (("Methods", False), ("AsyncMethods", True)):
        text += _CLASS.format(name=name, prefix="async " if is_async else "")
        text += "".join(_method(method, schema_set, is_async) for method in listed if method.name not in _SKIPPED)
        text += "\n"
    return text.rstrip("\n") + "\n"


def results_module(methods: Iterable[Described]) -> str:
    """The text of the module of what the daemon gives, tells and asks, and of the host's answers."""
    schema_set = schemas(methods)
    sent = [schema_set.params[name] for name in {**NOTIFICATIONS, **REQUESTS} if name in schema_set.params]
    names = reachable([*schema_set.results.values(), *sent], schema_set.parts)
    return _RESULTS_HEAD + "".join(_struct(name, schema_set.parts[name]) for name in sorted(names))


def params_module(methods: Iterable[Described]) -> str:
    """The text of the module of the objects inside params."""
    listed = [*methods]
    schema_set = schemas(listed)
    outer = [
        schema_set.params[method.name]
        for method in listed
        if method.name in schema_set.params and method.name not in _SKIPPED
    ]
    names = reachable(outer, schema_set.parts) - {str(item["$ref"]).removeprefix(PREFIX) for item in outer}
    return _PARAMS_HEAD + "".join(_typed_dict(name, schema_set.parts[name]) for name in sorted(names))


def _struct(name: str, part: Schema) -> str:
    required = part.get("required", ())
    lines: list[str] = []
    for field, schema in sorted(part["properties"].items(), key=lambda item: item[0] not in required):
        own = _python_name(field)
        kind = _type(schema, str, nulls=True)
        if field not in required and "None" not in kind.split(" | ") and kind != "Any":
            kind += " | None"
        default = ("" if _camel(own) == field else f'name="{field}"', "" if field in required else "default=None")
        field_args = ", ".join(filter(None, default))
        plain = (
            "" if not field_args else " = None" if field_args == "default=None" else f" = msgspec.field({field_args})"
        )
        lines.append(f"    {own}: {kind}{plain}\n{_words(schema)}")
    return f"\n\nclass {name}(Result, kw_only=True):\n{_words(part)}" + ("\n" if lines else "") + "".join(lines)


def _typed_dict(name: str, part: Schema) -> str:
    required = part.get("required", ())
    lines: list[str] = []
    for field, schema in part["properties"].items():
        kind = _type(schema, str)
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}\n{_words(schema)}")
    return f"\n\nclass {name}(TypedDict):\n{_words(part)}\n{''.join(lines)}"


def _words(schema: Schema) -> str:
    text = str(schema.get("description", "")).replace("\\", "\\\\")
    return f'    """{text}"""\n' if text else ""


def _structs(method: Described) -> tuple[type[msgspec.Struct], ...]:
    are_structs = all(isinstance(kind, type) and issubclass(kind, msgspec.Struct) for kind in method.results)
    return cast("tuple[type[msgspec.Struct], ...]", method.results) if are_structs else ()


def _spelled(kind: type[Any]) -> str:
    return f"_results.{kind.__name__}"


def _method(method: Described, schemas: Schemas, is_async: bool) -> str:
    name = _snake(method.name.replace("/", "_").replace(".", "_"))
    reference = schemas.params.get(method.name)
    part: Schema = {} if reference is None else schemas.parts[str(reference["$ref"]).removeprefix(PREFIX)]
    required = part.get("required", ())
    fields = sorted(part.get("properties", {}).items(), key=lambda item: item[0] not in required)
    arguments: list[str] = []
    pairs: list[str] = []
    texts: list[str] = []
    for field, schema in fields:
        own = _python_name(field)
        kind = _type(schema, _param)
        arguments.append(f"{own}: {kind}" if field in required else f"{own}: {kind} | None = None")
        pairs.append(f'            "{field}": {own},\n')
        if schema.get("description"):
            texts.append(f"        {own}: {schema['description']}")
    arguments.append("timeout: float | None = None")
    structs = " | ".join(map(_spelled, _structs(method)))
    result = structs or ("None" if method.results == (type(None),) else "Any")
    literal = "{\n" + "".join(pairs) + "        }" if pairs else "{}"
    call = f'{"await " if is_async else ""}self.call_with("{method.name}", params, timeout)'
    words = f'        """{method.summary}' + ("\n\n" + "\n".join(texts) + "\n        " if texts else "") + '"""\n'
    body = f"        params: dict[str, Any] = {literal}\n"
    body += f'        return cast("{result}", {call})\n' if result != "Any" else f"        return {call}\n"
    listed = "".join(f"        {argument},\n" for argument in arguments)
    head = f"    {'async ' if is_async else ''}def {name}(\n        self,\n        *,\n{listed}    ) -> {result}:\n"
    return f"\n{head}{words.replace(chr(92), chr(92) * 2)}{body}"


def _type(schema: Any, refer: Callable[[str], str], *, nulls: bool = False) -> str:
    """A schema as an annotation; without ``nulls`` a null is what is left out."""
    members = cast("Schema", schema)
    spell = functools.partial(_type, refer=refer, nulls=nulls)
    if "$ref" in members:
        return refer(str(members["$ref"]).removeprefix(PREFIX))
    if "anyOf" in members:
        kinds = [item for item in members["anyOf"] if nulls or item.get("type") != "null"]
        return " | ".join(dict.fromkeys(spell(kind) for kind in kinds))
    if "enum" in members or "const" in members:
        values = members["enum"] if "enum" in members else [members["const"]]
        return f"Literal[{', '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"
    kind = members.get("type")
    if kind == "array":
        if "prefixItems" in members:
            return f"tuple[{', '.join(map(spell, members['prefixItems']))}]"
        inner = spell(members.get("items") or {})
        return f"{'Sequence' if inner.startswith('_params.') else 'list'}[{inner}]"
    if kind == "object":
        below = members.get("additionalProperties", True)
        return f"dict[str, {spell(below) if isinstance(below, dict) else 'Any'}]"
    return "Any" if kind is None else _PLAIN[kind]


def _param(name: str) -> str:
    """An object of a param; a result may be given back as it came."""
    return f"_params.{name} | _results.ExecutionResult" if name == "GivenResult" else f"_params.{name}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _python_name(field: str) -> str:
    name = re.sub(r"\W", "_", _snake(field))
    return f"{name}_" if keyword.iskeyword(name) or name in ("self", "timeout") or name in _SHADOWED else name


# Builtins that are used in the module itself; others may be shadowed by a param of the wire's name.
_SHADOWED = frozenset({"cast", "dict", "list"} & {*vars(builtins)})
