"""What a host says of a method (``MethodMetadata``, seed 001 §3.2) as the manifest that every tool has.

Parameters come as a JSON Schema or as the seed's list of ``{name, type, description, required, defaultValue, properties}``; both give
the same tool. A method is registered only if its manifest reads clean, so that nothing about it is a surprise when it is called.
Must not know how a method is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from tamis.protocols.catalogue import message, severity
from tamis.protocols.manifest.reading import Manifest, read_manifest, tool_id_fault

# The names of types as hosts write them (``string[]``, ``number | null``, ``'a' | 'b'``) as JSON Schemas. A name that says nothing to JSON
# (``GenerateTreeOptions``) gives a schema that takes anything and tells the name. Pure.


_NAMES = {
    "string": ("string", "str", "text", "char", "path"),
    "number": ("number", "float", "double", "decimal"),
    "integer": ("integer", "int", "long", "bigint"),
    "boolean": ("boolean", "bool"),
    "object": ("object", "dict", "map", "record", "json"),
    "array": ("array", "list"),
    "null": ("null", "none", "undefined", "void"),
}
_KINDS: dict[str, dict[str, Any]] = {name: {"type": kind} for kind, names in _NAMES.items() for name in names}
_ANYTHING = ("any", "unknown", "mixed", "")
_LISTS = ("array", "list", "readonlyarray", "set", "iterable")
_WRAPPERS = ("promise", "readonly", "optional", "partial", "awaited")
_MAX_TYPE_DEPTH = 8
_MAX_CHARS = 2_000


def schema_of_type(text: str) -> dict[str, Any]:
    """The schema of a type's name; never raises."""
    return _schema(text.strip()[:_MAX_CHARS], 0)


def _schema(text: str, depth: int) -> dict[str, Any]:
    text = _bare(text)
    known = _KINDS.get(text.lower())
    if known is not None:
        return dict(known)
    if text.lower() in _ANYTHING:
        return {}
    if depth < _MAX_TYPE_DEPTH:
        schema = _composed(text, depth)
        if schema is not None:
            return schema
    return {"description": text[:200]}


def _composed(text: str, depth: int) -> dict[str, Any] | None:
    options = _split(text, "|")
    if len(options) > 1:
        return _union(options, depth)
    if text.endswith("[]"):
        return {"type": "array", "items": _schema(text[:-2], depth + 1)}
    if text.endswith("?"):
        return _schema(text[:-1], depth + 1)
    literal = _literal(text)
    if literal is not None:
        return {"const": literal[0]}
    name, opening, inner = text.partition("<") if text.endswith(">") else text.partition("[")
    if not opening or text[-1] not in ">]":
        return {"type": "object"} if text.startswith("{") and text.endswith("}") else None
    parts = _split(inner[:-1], ",")
    kind = name.strip().lower()
    if kind in _LISTS and parts:
        return {"type": "array", "items": _schema(parts[0], depth + 1)}
    if kind in ("record", "map", "dict") and len(parts) == 2:
        return {"type": "object", "additionalProperties": _schema(parts[1], depth + 1) or True}
    if kind in _WRAPPERS and len(parts) == 1:
        return _schema(parts[0], depth + 1)
    return None


def _union(options: list[str], depth: int) -> dict[str, Any]:
    literals = [_literal(option) for option in options]
    if all(literal is not None for literal in literals):
        return {"enum": [literal[0] for literal in literals if literal is not None]}
    # `undefined` says that the parameter may be left out, which `required` says already
    schemas = [_schema(option, depth + 1) for option in options if option.strip().lower() not in ("undefined", "void")]
    if len(schemas) == 1:
        return schemas[0]
    kinds = [schema.get("type") for schema in schemas]
    if all(list(schema) == ["type"] for schema in schemas) and all(isinstance(kind, str) for kind in kinds):
        return {"type": list(dict.fromkeys(kinds))}
    return {"anyOf": schemas}


def _literal(text: str) -> tuple[Any] | None:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"`":
        return (text[1:-1],)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return (value,) if isinstance(value, (int, float, bool)) else None


def _bare(text: str) -> str:
    """The text without blanks and without parentheses around the whole."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def _split(text: str, separator: str) -> list[str]:
    """Parts of a type between separators that stand in no brackets and no quotes."""
    parts: list[str] = []
    depth, start, quote = 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


MAX_METHOD_BYTES = 262_144
"""So large may one method's metadata be as JSON."""
MAX_NAME_CHARS = 100
VERSION = "1.0.0"
"""The version of a method that names none."""
_MAX_DEPTH = 16
_PLAIN_NAME = re.compile(r"[^\W\d][\w-]*")
_ALIKE = re.compile(r"[^0-9a-z\u0080-\U0010ffff]+")


class Refused(ValueError):  # noqa: N818 (an outcome, not a fault)
    """Why a service or a method cannot be registered, as a clause."""


def service_name_fault(name: object) -> str:
    """Why a text cannot be a service's name, or nothing."""
    if not isinstance(name, str) or not name:
        return "serviceName must be a text that is not empty"
    if len(name) > MAX_NAME_CHARS:
        return f"serviceName has more than {MAX_NAME_CHARS} characters"
    if name.startswith("_"):
        return f"the service '{name}' is private by its name: it begins with '_'"
    if "/" in name or "\\" in name:
        return "serviceName holds a separator of paths"
    fault = tool_id_fault(name)
    return f"serviceName '{name[:60]}' cannot be part of a tool id: {fault}" if fault else ""


def method_name_fault(name: object) -> str:
    """Why a text cannot name a public method, or nothing (D61): private and special names and names with dots never do."""
    if not isinstance(name, str) or not name:
        return "name must be a text that is not empty"
    if len(name) > MAX_NAME_CHARS:
        return f"the name has more than {MAX_NAME_CHARS} characters"
    if name.startswith("_"):
        return f"'{name}' is private by its name: only names that do not begin with '_' can be called"
    if "." in name:
        return f"'{name}' has a dot: only a method of the service itself can be called, none of what it holds"
    if not _PLAIN_NAME.fullmatch(name):
        return f"'{name[:60]}' is no method name: a letter, then letters, digits, '_' and '-'"
    return ""


def alike(name: str) -> str:
    """A name without case and separators: ``playerId`` and ``player_id`` are alike."""
    return _ALIKE.sub("", name.casefold())


def manifest_of(service: str, declaration: object) -> Manifest:
    """The manifest of one method. Raises ``Refused``."""
    if not isinstance(declaration, dict):
        raise Refused("a method must be an object with a name, a description and parameters")
    method = cast("dict[str, Any]", declaration)
    fault = method_name_fault(method.get("name"))
    if fault:
        raise Refused(fault)
    try:
        if len(msgspec.json.encode(method)) > MAX_METHOD_BYTES:
            raise Refused(f"its metadata has more than {MAX_METHOD_BYTES} bytes")
        raw = _raw_manifest(service, method)
        text = msgspec.json.encode(raw).decode("utf-8", "replace")
    except (RecursionError, msgspec.MsgspecError, TypeError, UnicodeError) as error:
        raise Refused(f"its metadata cannot be read: {error}") from None
    reading = read_manifest(text)
    if reading.manifest is None:
        worst = next((diag for diag in reading.diagnostics if severity(diag) == "error"), None)
        raise Refused(message(worst) if worst is not None else "its metadata gives no tool")
    return reading.manifest


def _raw_manifest(service: str, method: Mapping[str, Any]) -> dict[str, Any]:
    name: str = method["name"]
    display = _text(method, "displayName") or name
    raw: dict[str, Any] = {
        "toolId": f"{service}:{name}",
        "displayName": display,
        "description": _text(method, "description") or display,
        "version": _text(method, "version") or VERSION,
        "handler": {"type": "service-method", "serviceName": service, "methodName": name},
    }
    # Ruling 34: what does not say that agents may call it is for the host alone.
    if method.get("agentCallable") is not None:
        raw["agentCallable"] = _flag(method, "agentCallable")
    # What says nothing of its parameters takes any (ruling 2); an empty list says that there are none.
    if method.get("parameters") is not None or method.get("secret") is not None:
        raw["parameters"] = _parameters(method)
    output = _output(method)
    if output is not None:
        raw["output"] = output
    aliases = [f"{service}_{name}", f"{service}.{name}"]
    raw["aliases"] = list(dict.fromkeys((*aliases, *_texts(method, "aliases"))))
    for field in ("examples", "tags"):
        if field in method:
            raw[field] = method[field]
    command = _vcp_command(method)
    if command:
        raw["protocolConfig"] = {"vcpCommand": command}
    execution = _execution(method)
    if execution:
        raw["execution"] = execution
    return raw


def _text(method: Mapping[str, Any], field: str) -> str:
    value = method.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused(f"'{field}' must be a text")
    return value.strip()


def _texts(method: Mapping[str, Any], field: str) -> list[str]:
    value = method.get(field, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
        raise Refused(f"'{field}' must be a list of texts")
    return cast("list[str]", value)


def _flag(method: Mapping[str, Any], field: str) -> bool:
    value = method.get(field)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Refused(f"'{field}' must be true or false")
    return value


def _vcp_command(method: Mapping[str, Any]) -> str:
    config = method.get("protocolConfig")
    if config is None:
        return ""
    if not isinstance(config, dict):
        raise Refused("'protocolConfig' must be an object")
    return _text(cast("dict[str, Any]", config), "vcpCommand")


def _execution(method: Mapping[str, Any]) -> dict[str, Any]:
    """``execution`` as in a manifest; the short forms that hosts use stand beside it."""
    execution = method.get("execution")
    if execution is not None and not isinstance(execution, dict):
        raise Refused("'execution' must be an object")
    fields: dict[str, Any] = dict(cast("dict[str, Any]", execution or {}))
    for short, name in (("timeoutMs", "timeoutMs"), ("timeout", "timeoutMs"), ("executionMode", "mode")):
        if method.get(short) is not None:
            fields.setdefault(name, method[short])
    for name in ("idempotent", "requireConfirmation"):
        if name in method:
            fields.setdefault(name, _flag(method, name))
    return fields


def _output(method: Mapping[str, Any]) -> Any:
    for field in ("output", "returns"):
        value = method.get(field)
        if isinstance(value, (dict, bool)):
            return cast("Any", value)
        if isinstance(value, str):
            return _described_output(value)
        if value is not None:
            raise Refused(f"'{field}' must be a JSON Schema, or the name of a type")
    kind = method.get("returnType")
    return _described_output(kind) if isinstance(kind, str) else None


def _described_output(kind: str) -> Any:
    # What a type's name promises is told, and not checked: `Promise<Summary>` says nothing that JSON could be held to.
    return {"description": kind[:200]} if kind.strip() else None


def _parameters(method: Mapping[str, Any]) -> dict[str, Any]:
    parameters = method.get("parameters")
    if parameters is None:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
    elif isinstance(parameters, list):
        schema = _listed(cast("list[object]", parameters), "parameters", 0)
    elif isinstance(parameters, dict):
        schema = dict(cast("dict[str, Any]", parameters))
    else:
        raise Refused("'parameters' must be a JSON Schema, or a list of parameters")
    secret = method.get("secret")
    if secret is not None:
        schema = _with_secrets(schema, _texts(method, "secret"))
    return schema


def _with_secrets(schema: dict[str, Any], names: list[str]) -> dict[str, Any]:
    properties = schema.get("properties")
    known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    missing = next((name for name in names if not isinstance(known.get(name), dict)), None)
    if missing is not None:
        raise Refused(f"'secret' names '{missing[:60]}', which is no parameter")
    return {**schema, "properties": known | {name: {**known[name], "x-secret": True} for name in names}}


def _listed(items: list[object], where: str, depth: int) -> dict[str, Any]:
    """The seed's list of parameters as a JSON Schema; a parameter is required unless it says no or has a default."""
    if depth > _MAX_DEPTH:
        raise Refused(f"'{where}' is nested deeper than {_MAX_DEPTH} levels")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for number, item in enumerate(items):
        place = f"{where}[{number}]"
        if not isinstance(item, dict):
            raise Refused(f"'{place}' must be an object with name and type")
        parameter = cast("dict[str, Any]", item)
        name = parameter.get("name")
        if not isinstance(name, str) or not name.strip():
            raise Refused(f"'{place}.name' must be a text that is not empty")
        if name in properties:
            raise Refused(f"'{place}' names '{name[:60]}' a second time")
        properties[name] = _parameter(parameter, place, depth)
        needed = parameter.get("required")
        if needed is not None and not isinstance(needed, bool):
            raise Refused(f"'{place}.required' must be true or false")
        has_default = "defaultValue" in parameter or "default" in parameter
        if needed is True or (needed is None and not has_default and not parameter.get("optional")):
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})


_CARRIED = ("enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "format", "items", "x-secret")


def _parameter(parameter: Mapping[str, Any], place: str, depth: int) -> dict[str, Any]:
    kind = parameter.get("type", "any")
    schema: dict[str, Any]
    if isinstance(kind, dict):
        schema = dict(cast("dict[str, Any]", kind))
    elif isinstance(kind, str):
        schema = schema_of_type(kind)
    else:
        raise Refused(f"'{place}.type' must be the name of a type, or a JSON Schema")
    inner = parameter.get("properties")
    if isinstance(inner, list):
        below = _listed(cast("list[object]", inner), f"{place}.properties", depth + 1)
        schema = {**schema, "items": below} if schema.get("type") == "array" else {**schema, **below}
    elif isinstance(inner, dict):
        schema = {**schema, "type": "object", "properties": cast("dict[str, Any]", inner)}
    description = _text(parameter, "description")
    if description:
        schema["description"] = description
    for name in ("default", "defaultValue"):
        if name in parameter:
            schema["default"] = parameter[name]
    schema.update({name: parameter[name] for name in _CARRIED if name in parameter})
    if _flag(parameter, "secret"):
        schema["x-secret"] = True
    return schema
