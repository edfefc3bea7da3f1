"""The published descriptions as files, and as ``tamis schema`` prints them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

import msgspec

from tamis.server.rpc.described import openrpc, python, reference, schemas, typescript
from tamis.server.rpc.described.methods import described
from tamis.server.rpc.methods import RpcServer
from tamis.server.rpc.params import Group


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
    "docs/reference.md": lambda: reference.page(declared()),
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
