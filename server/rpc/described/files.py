"""The published descriptions as files, and as ``tamis schema`` prints them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from tamis.protocols.messages import NOTIFICATIONS, REQUESTS
from tamis.server.rpc.described import openrpc, python, schemas, typescript
from tamis.server.rpc.described.methods import Described, described
from tamis.server.rpc.described.schemas import PREFIX, Schema, Schemas
from tamis.server.rpc.described.schemas import schemas as all_schemas
from tamis.server.rpc.described.typescript import type_of
from tamis.server.rpc.methods import RpcServer
from tamis.server.rpc.params import Group
from tamis.server.rpc.session import GIVEN_BY, MEANINGS, numbers

# The reference page (``docs/reference.md``): every method, message and shape as tables.


_HEAD = """\
# Reference of the JSON-RPC contract

Written by `tools/published_contract.py` from the Structs of the code; a test fails when it is stale. What the methods are for is told in
[rpc.md](rpc.md), how a host is built in [embedding.md](embedding.md). The same in other forms: `schemas/openrpc.json` (also `rpc.discover` and
`tamis schema --openrpc`), `schemas/contract.json` (JSON Schema) and `schemas/tamis.d.ts` (TypeScript).

A `?` marks what may be missing. Fields of params that a method does not know are ignored, except in `options`, where a misspelt name is refused; a value
of the wrong type is the error -32602, which names its place.
"""
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*')


def page(declared: Group) -> str:
    """The text of the page."""
    methods = described(declared)
    schemas = all_schemas(methods)
    out = [_HEAD, "## Methods\n"]
    out += [_method(method, schemas) for method in methods]
    out.append("## Notifications of the daemon\n")
    out += [_sent(name, "Notification", schemas) for name in NOTIFICATIONS]
    out.append(
        "## Requests of the daemon\n\nThe host answers them; one that it does not know it answers with -32601.\n"
    )
    out += [_sent(name, "Request", schemas) for name in REQUESTS]
    # Params stand with their message, unless something else has them too.
    hidden = {str(ref["$ref"]).removeprefix(PREFIX) for ref in schemas.params.values()}
    hidden -= {*re.findall(rf'"{re.escape(PREFIX)}(\w+)"', json.dumps([schemas.parts, schemas.results]))}
    out.append("## Shapes\n")
    out += [_shape(name, part, schemas) for name, part in schemas.parts.items() if name not in hidden]
    out.append("## Numbers of errors\n\n| code | name | means |\n|---|---|---|")
    out += [f"| {code} | `{name}` | {MEANINGS.get(name, '')} |" for name, code in numbers().items()]
    return "\n".join(out) + "\n"


def _method(method: Described, schemas: Schemas) -> str:
    words = [
        method.summary,
        method.description,
        "This method may still change." if method.stability != "stable" else "",
    ]
    lines = [f"### Method `{method.name}`\n", "\n\n".join(word for word in words if word) + "\n"]
    reference = schemas.params.get(method.name)
    if reference is not None:
        lines.append(_table(_part(reference, schemas), schemas, head="param"))
    lines.append(f"Result: {_linked(schemas.results[method.name], schemas)}.")
    known = numbers()
    special = [f"{known[name]} `{name}`" for name in method.errors if name in GIVEN_BY and name != "overloaded"]
    if special:
        lines[-1] += f" Errors of its own: {', '.join(special)}."
    return "\n".join(lines) + "\n"


def _sent(name: str, kind: str, schemas: Schemas) -> str:
    part = _part(schemas.params[name], schemas)
    lines = [f"### {kind} `{name}`\n", f"{part.get('description', '')}\n", _table(part, schemas, head="param")]
    if name in schemas.results:
        lines.append(f"Result: {_linked(schemas.results[name], schemas)}.\n")
    return "\n".join(lines)


def _shape(name: str, part: Schema, schemas: Schemas) -> str:
    return f"### {name}\n\n{part.get('description', '')}\n\n{_table(part, schemas, head='field')}"


def _table(part: Schema, schemas: Schemas, *, head: str) -> str:
    required = part.get("required", ())
    rows = [f"| {head} | type | meaning |", "|---|---|---|"]
    for field, schema in part["properties"].items():
        text = str(schema.get("description", ""))
        default = schema.get("default")
        if default is not None and len(shown := json.dumps(default, ensure_ascii=False)) < 60:
            text = f"{text} Default: `{shown}`.".strip()
        bounds = ", ".join(f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema)
        text = f"{text} ({bounds})" if bounds else text
        mark = "" if field in required else "?"
        rows.append(f"| `{field}{mark}` | {_linked(schema, schemas)} | {text.replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"


_BOUNDS = {"minimum": "at least", "maximum": "at most"}


def _linked(schema: Schema, schemas: Schemas) -> str:
    """The type with links to the shapes that it names."""
    text = type_of({key: value for key, value in schema.items() if key != "description"})
    if len(text) > 200:
        text = "object"
    names = [name for name in _WORD.findall(text) if name in schemas.parts]
    shown = f"`{text}`".replace("|", "\\|")
    if not names:
        return shown
    if text == names[0]:
        return f"[`{text}`](#{text.lower()})"
    links = ", ".join(f"[{name}](#{name.lower()})" for name in dict.fromkeys(names))
    return f"{shown}: {links}"


def _part(reference: Any, schemas: Schemas) -> Schema:
    return schemas.parts[str(cast("Schema", reference)["$ref"]).removeprefix(PREFIX)]


@functools.cache
def declared() -> Group:
    """What the groups of this daemon declare, without one being started."""
    return RpcServer(None).declared


def openrpc_text() -> str:
    """The OpenRPC document."""
    return _json(msgspec.to_builtins(openrpc.document(declared())))


def json_schema_text() -> str:
    """The JSON Schemas."""
    return _json(schemas.document(described(declared())))


def typescript_text() -> str:
    """The TypeScript declarations."""
    return typescript.declarations(declared())


_TEXTS: dict[str, Callable[[], str]] = {
    "schemas/openrpc.json": openrpc_text,
    "schemas/contract.json": json_schema_text,
    "schemas/tamis.d.ts": typescript_text,
    "docs/reference.md": lambda: page(declared()),
    "client/methods.py": lambda: python.module(described(declared())),
    "client/results.py": lambda: python.results_module(described(declared())),
    "client/params.py": lambda: python.params_module(described(declared())),
}
NAMES = tuple(_TEXTS)
"""The published files by their path in the project."""


def texts() -> dict[str, str]:
    """Their texts."""
    return {name: make() for name, make in _TEXTS.items()}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
