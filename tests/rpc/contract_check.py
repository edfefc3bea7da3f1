"""Holds what a daemon sends against the published schemas, closed: a field that is not declared is a finding."""

from __future__ import annotations

import copy
import functools
from typing import Any, cast

from jsonschema import Draft202012Validator

from tamis.protocols import messages
from tamis.server.rpc.described import files
from tamis.server.rpc.described.methods import Described, described
from tamis.server.rpc.described.schemas import Schemas, schemas
from tamis.server.rpc.session import numbers

MAX_BYTES = 200_000
"""Larger messages are not looked at: the parts are the same as in small ones."""


@functools.cache
def methods() -> dict[str, Described]:
    return {one.name: one for one in described(files.declared())}


@functools.cache
def contract() -> Schemas:
    return schemas(methods().values())


@functools.cache
def _parts() -> dict[str, Any]:
    """The parts that a host reads, closed."""
    parts = copy.deepcopy(contract().parts)
    for part in parts.values():
        part.setdefault("additionalProperties", False)
    return parts


@functools.cache
def _validator(kind: str, name: str) -> Draft202012Validator | None:
    found = (contract().results if kind == "result" else contract().params).get(name)
    return None if found is None else Draft202012Validator({**found, "$defs": _parts()})


def _has_own_warnings(name: str) -> bool:
    result = contract().results.get(name) or {}
    part = contract().parts.get(str(result.get("$ref", "")).rpartition("/")[2], result)
    return "warnings" in part.get("properties", {})


def faults(kind: str, name: str, value: Any) -> list[str]:
    """What is wrong with a ``result`` of a method, or with the ``params`` that the daemon sent."""
    validator = _validator(kind, name)
    if validator is None:
        return [f"{name}: its {kind} is not described"]
    if kind == "result" and isinstance(value, dict) and "warnings" in value and not _has_own_warnings(name):
        # what every result may say of members of the request that were not read
        value = dict(cast("dict[str, Any]", value))
        told = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Problem"}, "$defs": _parts()}
        if not Draft202012Validator(told).is_valid(value.pop("warnings")):
            return [f"{name}: its warnings are no problems"]
    return [f"{name}: {kind} {error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value)]


def error_faults(method: str, code: int) -> list[str]:
    """Whether a method may give an error with this number."""
    if method not in methods():
        return []
    allowed = {numbers()[name] for name in methods()[method].errors}
    return [] if code in allowed else [f"{method}: gave the error {code}, and only {sorted(allowed)} are described"]


def message_faults(message: dict[str, Any], asked: dict[Any, str]) -> list[str]:
    """What is wrong with any message of the daemon; ``asked``: method by id of what was sent."""
    name = message.get("method")
    if name is not None:
        known = {**messages.NOTIFICATIONS, **messages.REQUESTS}
        return faults("params", name, message.get("params")) if name in known else [f"{name} is not described"]
    method = asked.get(message.get("id"))
    if method is None or method not in methods():
        return []
    if "error" in message:
        return error_faults(method, cast("int", message["error"]["code"]))
    return faults("result", method, message.get("result"))
