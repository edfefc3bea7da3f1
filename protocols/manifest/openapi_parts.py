"""Schemas of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12 that stands alone: what it refers to in the document goes into ``$defs``.

Only references into the document itself are followed. Bounded in size. Must not know operations.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from tamis.protocols.manifest.foreign_fields import Say
from tamis.protocols.model import Json, escape_pointer
from tamis.protocols.schema.words import LISTS, MAPS, is_list, is_object, resolve

Use = Literal["request", "response"]
MAX_NODES = 20_000
MAX_DEPTH = 64
_HOPS = 16
_DROPPED = frozenset(("xml", "externalDocs", "discriminator", "nullable", "example"))
_ONE = frozenset(
    ("additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties")
)


def look_up(document: dict[str, Json], ref: str) -> Json:
    """What a reference into the document names; None where it names nothing there."""
    try:
        return resolve(document, ref)
    except KeyError:
        return None


def resolved(document: dict[str, Json], node: Json) -> dict[str, Json] | None:
    """An object of the document behind its references; None where these lead nowhere, in a circle or out of the document."""
    for _ in range(_HOPS):
        if not is_object(node):
            return None
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return node
        node = look_up(document, ref)
    return None


class SchemaReader:
    """Reads the schemas of one tool; ``defs`` holds what they refer to."""

    def __init__(self, document: dict[str, Json], use: Use, say: Say) -> None:
        self._document = document
        self._use: Use = use
        self._say = say
        self._old = str(document.get("openapi", "")).startswith("3.0")
        self._left = MAX_NODES
        self._names: dict[str, str] = {}
        self.defs: dict[str, Json] = {}

    def schema(self, node: Json, path: str, depth: int = 0) -> Json:
        """One schema."""
        self._left -= 1
        if isinstance(node, bool):
            return node
        if not is_object(node):
            return {}
        if self._left < 0 or depth > MAX_DEPTH:
            self._say(path, "the schema is too large to be taken over: any value is allowed here", "too-large")
            return {}
        ref = node.get("$ref")
        if isinstance(ref, str):
            reference: dict[str, Json] = {"$ref": self._named(ref, path)}
            if reference["$ref"] == "":
                return {}
            # before 3.1 nothing beside a reference counted
            beside = {} if self._old else {key: value for key, value in node.items() if key != "$ref"}
            inner = self._parts(beside, path, depth)
            return reference | inner
        return self._parts(self._today(node) if self._old else node, path, depth)

    def _named(self, ref: str, path: str) -> str:
        """The reference to what a reference of the document names, which is taken over; empty where there is nothing."""
        if ref not in self._names:
            target = look_up(self._document, ref)
            if not is_object(target) and not isinstance(target, bool):
                why = "leads out of the document" if not ref.startswith("#") else "leads nowhere"
                self._say(path, f"the reference '{ref[:100]}' {why}: any value is allowed here", "ref-unresolved")
                return ""
            bare = unquote(ref.rpartition("/")[2]).replace("~1", "_").replace("~0", "_").replace("%", "_") or "schema"
            name, number = bare, 2
            while name in self.defs:
                name, number = f"{bare}_{number}", number + 1
            self._names[ref] = name
            self.defs[name] = {}
            self.defs[name] = self.schema(target, ref.removeprefix("#"), 1)
        escaped = escape_pointer(self._names[ref])
        return f"#/$defs/{escaped}"

    def _parts(self, node: dict[str, Json], path: str, depth: int) -> dict[str, Json]:
        parts: dict[str, Json] = {}
        for key, value in node.items():
            where = f"{path}/{key}"
            if key in MAPS and is_object(value):
                parts[key] = {name: self.schema(part, f"{where}/{name}", depth + 1) for name, part in value.items()}
            elif key in LISTS and is_list(value):
                parts[key] = [self.schema(part, f"{where}/{i}", depth + 1) for i, part in enumerate(value)]
            elif key in _ONE and (is_object(value) or isinstance(value, bool)):
                parts[key] = self.schema(value, where, depth + 1)
            elif key == "discriminator":
                self._say(
                    where,
                    "'discriminator' has no word in JSON Schema: branches are told apart by their schemas",
                    "field-dropped",
                )
            elif key not in _DROPPED:
                parts[key] = value
        if "example" in node and "examples" not in parts:
            parts["examples"] = [node["example"]]
        return self._one_way(parts)

    def _one_way(self, schema: dict[str, Json]) -> dict[str, Json]:
        """An object without the properties that only go the other way."""
        properties = schema.get("properties")
        word = "readOnly" if self._use == "request" else "writeOnly"
        away = (
            {name for name, part in properties.items() if is_object(part) and part.get(word) is True}
            if is_object(properties)
            else set[str]()
        )
        if not away or not is_object(properties):
            return schema
        schema["properties"] = {name: part for name, part in properties.items() if name not in away}
        required = schema.get("required")
        if is_list(required):
            schema["required"] = [name for name in required if name not in away]
        return schema

    @staticmethod
    def _today(node: dict[str, Json]) -> dict[str, Json]:
        """A schema of OpenAPI 3.0 in today's words."""
        modern_schema = dict(node)
        for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(modern_schema.get(key), bool):
                exclusive = modern_schema.pop(key)
                if exclusive and bound in modern_schema:
                    modern_schema[key] = modern_schema.pop(bound)
        if modern_schema.pop("nullable", None) is not True:
            return modern_schema
        kind, values = modern_schema.get("type"), modern_schema.get("enum")
        if isinstance(kind, str):
            modern_schema["type"] = [kind, "null"]
            if is_list(values) and None not in values:
                modern_schema["enum"] = [*values, None]
            return modern_schema
        return {"anyOf": [modern_schema, {"type": "null"}]}


# Media types, hosts and path templates of OpenAPI documents.


def is_json(media: str) -> bool:
    """Whether a media type is JSON."""
    bare = media.partition(";")[0].strip().lower()
    return bare == "application/json" or bare.endswith("+json") or bare == "*/*"


def is_form(media: str) -> bool:
    """Whether a media type is a form that is written like a query."""
    return media.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded"


def host_of(url: str) -> str:
    """The pattern that opens a URL's host: with its port where that is not the usual one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return shown if port is None or port == usual else f"{shown}:{port}"


def without_parameters(path: str, wire: dict[str, Any]) -> str:
    """A path template less the parameters that fill it."""
    for name, place, *_ in wire.values():
        if place == "path":
            path = path.replace(f"{{{name}}}", "")
    return path
