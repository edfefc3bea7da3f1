"""The OpenRPC document (``rpc.discover``, ``schemas/openrpc.json``). Must not know how requests are answered."""

from __future__ import annotations

from typing import Any, cast

from tamis import __version__
from tamis.protocols.contract import OpenRpcDocument
from tamis.protocols.messages import NOTIFICATIONS, REQUESTS
from tamis.server.rpc.described.examples import EXAMPLES
from tamis.server.rpc.described.methods import Described, described
from tamis.server.rpc.described.schemas import PREFIX, Schema, Schemas, refer, schemas
from tamis.server.rpc.params import Group
from tamis.server.rpc.session import MEANINGS, STANDARD, numbers

OPENRPC = "1.3.2"
_PARTS = "#/components/schemas/"


def document(declared: Group) -> OpenRpcDocument:
    """The document of everything that the groups declare."""
    methods = described(declared)
    schema_set = schemas(methods)
    return OpenRpcDocument(
        openrpc=OPENRPC,
        info={
            "title": "Tamis",
            "description": "Reads, checks and safely runs the tool calls that language models write. JSON-RPC 2.0 on the standard streams of `tamis rpc`.",
            "version": __version__,
            "license": {"name": "Apache-2.0"},
        },
        methods=[_method(method, schema_set) for method in methods],
        components={"schemas": _schema(_without_circles(schema_set)), "errors": _errors()},
        notifications=[_sent(name, schema_set) for name in NOTIFICATIONS],
        requests=[_sent(name, schema_set) for name in REQUESTS],
    )


def _method(method: Described, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {
        "name": method.name,
        "tags": [{"name": method.name.replace(".", "/").partition("/")[0]}],
        "summary": method.summary,
    }
    if method.description:
        content["description"] = method.description
    content |= {
        "paramStructure": "by-name",
        "params": _params(schemas, method.name),
        "result": _result(schemas, method.name),
        "errors": [{"$ref": f"#/components/errors/{name}"} for name in method.errors],
    }
    examples = [_example(example) for example in EXAMPLES if example.method == method.name]
    if examples:
        content["examples"] = examples
    content["x-stability"] = method.stability
    content["x-onCancel"] = "result" if method.finishes else "error"
    return content


def _schema(schema: Any) -> Any:
    """A schema as OpenRPC has it: draft-07, where a tuple is spelt otherwise."""
    return _tuples(refer(schema, _PARTS))


def _without_circles(schemas: Schemas) -> dict[str, Any]:
    """The parts, none of which leads back to itself: OpenRPC's own tools put every reference in place, and never end at a circle.

    Results are walked first, so that what closes a circle is what stands deepest in them (the error of a node of a failed workflow).
    """
    parts: dict[str, Any] = {}
    above: list[str] = []

    def walk(name: str) -> None:
        if name in parts or name in above:
            return
        above.append(name)
        parts[name] = changed(schemas.parts[name])
        above.pop()

    def changed(schema: Any) -> Any:
        if isinstance(schema, list):
            return [changed(item) for item in cast("list[Any]", schema)]
        if not isinstance(schema, dict):
            return schema
        fields = cast("Schema", schema)
        name = str(fields.get("$ref", "")).removeprefix(PREFIX)
        if name in above:
            rest = {key: item for key, item in fields.items() if key != "$ref"}
            description = str(rest.get("description") or schemas.parts[name].get("description") or "")
            return {**rest, "type": "object", "description": f"{description} Its form is that of {name}.".strip()}
        if name in schemas.parts:
            walk(name)
        return {key: changed(item) for key, item in fields.items()}

    for reference in (*schemas.results.values(), *schemas.params.values()):
        changed(reference)
    for name in schemas.parts:
        walk(name)
    return {name: parts[name] for name in schemas.parts}


def _tuples(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_tuples(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = {name: _tuples(item) for name, item in cast("Schema", schema).items()}
    if isinstance(members.get("prefixItems"), list):
        members |= {"items": members.pop("prefixItems"), "additionalItems": False}
    return members


def _params(schemas: Schemas, name: str) -> list[dict[str, Any]]:
    reference = schemas.params.get(name)
    if reference is None:
        return []
    part: Schema = schemas.parts[str(reference["$ref"]).removeprefix(PREFIX)]
    required = part.get("required", ())
    params: list[dict[str, Any]] = []
    for field, schema in part["properties"].items():
        param: dict[str, Any] = {"name": field}
        if "description" in schema:
            param["description"] = schema["description"]
        rest = {key: value for key, value in schema.items() if key != "description"}
        params.append(param | {"required": field in required, "schema": _schema(rest)})
    return params


def _result(schemas: Schemas, name: str) -> dict[str, Any]:
    schema = schemas.results[name]
    title = str(schema.get("$ref", "")).removeprefix(PREFIX) or "result"
    return {"name": title, "schema": _schema(schema)}


def _sent(name: str, schemas: Schemas) -> dict[str, Any]:
    part = schemas.parts[str(schemas.params[name]["$ref"]).removeprefix(PREFIX)]
    content: dict[str, Any] = {
        "name": name,
        "summary": part.get("description", ""),
        "paramStructure": "by-name",
        "params": _params(schemas, name),
    }
    return content | ({"result": _result(schemas, name)} if name in schemas.results else {})


def _errors() -> dict[str, Any]:
    errors: dict[str, Any] = {}
    for name, number in numbers().items():
        errors[name] = {"code": number, "message": MEANINGS.get(name, name)}
        if name not in STANDARD:
            errors[name]["data"] = {"code": name, "retryable": name == "overloaded", "hint": "what to do about it"}
    return errors


def _example(example: Any) -> dict[str, Any]:
    return {
        "name": example.name,
        "params": [{"name": name, "value": value} for name, value in example.params.items()],
        "result": {"name": "result", "value": example.result},
    }
