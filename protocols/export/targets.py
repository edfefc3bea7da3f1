"""A manifest as MCP, OpenAI, Anthropic, Gemini, Cursor and smolagents take tool definitions (interop §2.2 and §2.3).

What people, the sandbox and the registry need (display name, version, handler, rights, tags, aliases) stays with Tamis, which runs the
call, and is no loss; what a model would have been told and is not is one. Must not know where manifests stand.
"""

from __future__ import annotations

import keyword
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tamis.protocols.contract import Loss
from tamis.protocols.export.losses import Losses, below
from tamis.protocols.export.names import Target
from tamis.protocols.export.roots import CHOICES, Inliner, flat_root, object_root
from tamis.protocols.export.shape import map_parts, type_name
from tamis.protocols.export.subset import Rules, Subset
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tamis.protocols.model import MCP_META, Json
from tamis.protocols.prompt.parameters import Parameter, parameters_of
from tamis.protocols.schema.secrets import mask, without_secret_values
from tamis.protocols.schema.words import is_constraint, is_list, is_object, types_of

_PARAMETERS = "/parameters"
_OPENAI_ROOT = (*CHOICES, "enum", "const", "not")
_BOUNDS = ("minimum", "maximum", "minItems", "maxItems", "pattern")
STRICT = Rules(
    "OpenAI's strict manner",
    frozenset((*_BOUNDS, "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
    frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")),
    strict=True,
)
GEMINI = Rules(
    "Gemini's 'parameters'",
    frozenset((*_BOUNDS, "minLength", "maxLength", "minProperties", "maxProperties", "default")),
    frozenset(("date-time",)),
    strict=False,
)
MAX_DESCRIPTION_CHARS = 1_024
"""OpenAI refuses a request with a longer description of a tool (``string_above_max_length``)."""
_SENTENCE_ENDS = (". ", ".\n", "\n", "。", "! ", "? ")
MAX_STRICT_PROPERTIES = 5_000
MAX_STRICT_DEPTH = 10
MAX_STRICT_VALUES = 1_000


class Exported(msgspec.Struct, frozen=True):
    """A definition in another form, and what it does not hold."""

    definition: dict[str, Any]
    losses: list[Loss]


def export_tool(manifest: Manifest, target: Target, name: str) -> Exported:
    """A tool under ``name`` (of ``portable_names``) as ``target`` takes it. Never raises."""
    losses = Losses()
    definition = _EXPORTS[target](manifest, name, losses)
    return Exported(definition, losses.found)


# The forms


def _mcp(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    schema = object_root(shown_parameters(manifest, losses), losses, _PARAMETERS)
    definition: dict[str, Any] = {
        "name": name,
        "title": manifest.display_name,
        "description": manifest.description,
        "inputSchema": schema,
    }
    if has_output_schema(manifest):
        definition["outputSchema"] = manifest.output
    elif manifest.output is not None:
        what = "an output schema must be of type object at its root: clients refuse the tool otherwise"
        losses.add("output-dropped", "/output", what)
    definition["annotations"] = {"title": manifest.display_name, **_hints(manifest)}
    meta: dict[str, Any] = {f"{MCP_META}toolId": manifest.tool_id, f"{MCP_META}version": manifest.version}
    if manifest.tags:
        meta[f"{MCP_META}tags"] = list(manifest.tags)
    if manifest.examples:
        meta[f"{MCP_META}examples"] = worked_calls(manifest)
    definition["_meta"] = meta
    return definition


def has_output_schema(manifest: Manifest) -> bool:
    """Whether MCP is told what a tool gives: only of an object at the root, since clients refuse the tool otherwise."""
    return is_object(manifest.output) and manifest.output.get("type") == "object"


def worked_calls(manifest: Manifest) -> list[dict[str, Json]]:
    """The examples as the manifest has them, the values of secrets hidden."""
    calls: list[dict[str, Json]] = []
    for example in manifest.examples:
        shown: dict[str, Json] = {"description": example.description} if example.description else {}
        shown["input"] = mask(example.input, manifest.parameters or {})
        if example.expected_output is not msgspec.UNSET:
            shown["expectedOutput"] = example.expected_output
        calls.append(shown)
    return calls


def _hints(manifest: Manifest) -> dict[str, bool]:
    """What a tool may do. Only of a script is known, by its sandbox, that it writes nowhere."""
    hints: dict[str, bool] = {}
    security_context = manifest.security_context
    if security_context.file_access.allow_write:
        hints["readOnlyHint"] = False
        hints["destructiveHint"] = manifest.raw.get("x-additive") is not True
    elif isinstance(manifest.handler, ExternalScript):
        hints["readOnlyHint"] = True
    if manifest.execution.idempotent:
        hints["idempotentHint"] = True
    if security_context.network.allow_hosts:
        hints["openWorldHint"] = True
    elif isinstance(manifest.handler, ExternalScript):
        hints["openWorldHint"] = False
    return hints


def _openai(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    _told_less(manifest, name, losses)
    schema = flat_root(shown_parameters(manifest, losses), losses, _PARAMETERS, _OPENAI_ROOT)
    schema = _with_items(object_root(schema, losses, _PARAMETERS))
    schema.setdefault("properties", {})
    return {
        "type": "function",
        "function": {"name": name, "description": _fitting(manifest, losses), "parameters": schema},
    }


def _strict(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    _told_less(manifest, name, losses)
    root, inliner = _inlined(manifest, losses, keep_recursive=True)
    subset = Subset(STRICT, losses)
    schema = subset.schema(root, _PARAMETERS)
    if inliner.defs:
        schema["$defs"] = {
            key: subset.schema(part, below(_PARAMETERS, "$defs", key), 1) for key, part in inliner.defs.items()
        }
    _strict_limits(schema, losses)
    function = {"name": name, "description": _fitting(manifest, losses), "strict": True, "parameters": schema}
    return {"type": "function", "function": function}


def _fitting(manifest: Manifest, losses: Losses) -> str:
    text = shortened(manifest.description)
    if text != manifest.description:
        what = f"OpenAI takes at most {MAX_DESCRIPTION_CHARS} characters: the last {len(manifest.description) - len(text)} are not told"
        losses.add("description-cut", "/description", what)
    return text


def shortened(text: str) -> str:
    """A description as far as OpenAI takes it: up to its last sentence that fits, where that is not less than half."""
    if len(text) <= MAX_DESCRIPTION_CHARS:
        return text
    fitting = text[:MAX_DESCRIPTION_CHARS]
    end = max(fitting.rfind(mark) + 1 for mark in _SENTENCE_ENDS)
    return fitting[:end].rstrip() if 2 * end > MAX_DESCRIPTION_CHARS else f"{fitting[:-1].rstrip()}…"


def _anthropic(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    _told_less(manifest, name, losses)
    schema = flat_root(shown_parameters(manifest, losses), losses, _PARAMETERS, CHOICES)
    schema = object_root(schema, losses, _PARAMETERS)
    properties = schema.get("properties")
    for key in properties if is_object(properties) else ():
        if len(key) > 64 or not all(char.isascii() and (char.isalnum() or char in "_.-") for char in key):
            what = f"the interface refuses a tool with the property '{key[:64]}': letters, digits, '_', '.', '-', at most 64"
            losses.add("property-name", below(_PARAMETERS, "properties", key), what)
    return {"name": name, "description": manifest.description, "input_schema": schema}


def _gemini(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    _told_less(manifest, name, losses)
    root, _ = _inlined(manifest, losses, keep_recursive=False)
    definition: dict[str, Any] = {"name": name, "description": manifest.description}
    if not is_object(properties := root.get("properties")) or not (properties or root.get("required")):
        if root.get("additionalProperties") is not False:
            what = "no parameters are declared, and an object with any names cannot be said: no arguments can be given"
            losses.add("free-object", _PARAMETERS, what)
        for key in root:
            if is_constraint(key) and key not in ("type", "properties", "required", "additionalProperties"):
                losses.add("keyword-dropped", below(_PARAMETERS, key), "a tool without parameters has no schema there")
        return definition
    before = len(losses)
    definition["parameters"] = Subset(GEMINI, losses).schema(root, _PARAMETERS)
    if len(losses) > before:
        what = "the field 'parametersJsonSchema' takes the schema as it is, instead of 'parameters' (`inputSchema` of the form 'mcp')"
        losses.add("use-json-schema", "", what)
    return definition


def _cursor(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    """As MCP, under a name that the program does not change on the way: it makes others to such a one, and calls by that."""
    _renamed(manifest, name, losses)
    return _mcp(manifest, name, losses)


def _smolagents(manifest: Manifest, name: str, losses: Losses) -> dict[str, Any]:
    """The attributes of a ``smolagents.Tool``. Agents that write code are told the type and the description of an input alone."""
    _renamed(manifest, name, losses)
    if manifest.examples:
        losses.add("examples-dropped", "/examples", "there is no place for worked calls")
    root, _ = _inlined(manifest, losses, keep_recursive=False)
    declared, needed = root.get("properties"), root.get("required")
    required = needed if is_list(needed) else []
    properties: dict[str, Json] = dict(declared) if is_object(declared) else {}
    properties |= {key: True for key in required if isinstance(key, str) and key not in properties}
    if root.get("additionalProperties") is not False:
        losses.add("object-closed", _PARAMETERS, "only declared names can be given here: a call takes no others")
    for key in root:
        if is_constraint(key) and key not in ("type", "properties", "required", "additionalProperties"):
            losses.add("keyword-dropped", below(_PARAMETERS, key), "only single inputs have a schema there")
    inputs: dict[str, Any] = {}
    for key, part in properties.items():
        path = below(_PARAMETERS, "properties", key)
        if not key.isidentifier() or keyword.iskeyword(key):
            what = f"an agent that writes code passes inputs by name, and '{key[:64]}' is no name of Python"
            losses.add("property-name", path, what)
        inputs[key] = _input(part, key, path, losses)
        if key not in required:
            inputs[key]["nullable"] = True
    definition = {"name": name, "description": manifest.description, "inputs": inputs, "output_type": "any"}
    output = manifest.output
    if is_object(output):
        kinds = types_of(output)
        definition |= {"output_type": kinds[0] if len(kinds) == 1 else "any", "output_schema": output}
    return definition


def _input(part: Json, name: str, path: str, losses: Losses) -> dict[str, Any]:
    """One input, with the type and the description that each must have."""
    schema: dict[str, Any] = dict(part) if is_object(part) else {}
    if part is False:
        losses.add("nothing-fits", path, "no value is allowed here, which this form cannot say")
    untold = [key for key in schema if is_constraint(key) and key != "type"]
    if untold:
        what = f"an agent that writes code is not told {', '.join(map(repr, untold[:5]))}: say it in the description"
        losses.add("only-described", path, what)
    kinds = types_of(schema)
    if not kinds and is_list(values := schema.get("enum", [schema["const"]] if "const" in schema else None)):
        kinds = tuple(dict.fromkeys(type_name(value) for value in values))
    schema["type"] = (kinds[0] if len(kinds) == 1 else list(kinds)) if kinds else "any"
    if not isinstance(schema.get("description"), str):
        losses.add("description-added", path, f"an input must have a description; '{name[:60]}' has none but its name")
        schema["description"] = name
    return schema


_EXPORTS = {
    "mcp": _mcp,
    "openai": _openai,
    "openaiStrict": _strict,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "cursor": _cursor,
    "smolagents": _smolagents,
}


# What they share


def shown_parameters(manifest: Manifest, losses: Losses) -> dict[str, Json]:
    """The parameters as a model may see them."""
    schema = manifest.parameters or {}
    shown = without_secret_values(schema)
    if shown != schema:
        what = "values that the schema gives for a secret (default, enum, examples) are not told"
        losses.add("secret-values", _PARAMETERS, what)
    return shown


def _renamed(manifest: Manifest, name: str, losses: Losses) -> None:
    if name not in (manifest.tool_id, *manifest.aliases):
        losses.add("name-changed", "/toolId", f"models call it '{name}': calls by that name mean '{manifest.tool_id}'")


def _told_less(manifest: Manifest, name: str, losses: Losses) -> None:
    _renamed(manifest, name, losses)
    if manifest.output is not None:
        losses.add("output-dropped", "/output", "there is no place for what a tool gives back")
    if manifest.examples:
        losses.add("examples-dropped", "/examples", "there is no place for worked calls")


def _inlined(manifest: Manifest, losses: Losses, *, keep_recursive: bool) -> tuple[dict[str, Json], Inliner]:
    inliner = Inliner(shown_parameters(manifest, losses), losses, _PARAMETERS, keep_recursive=keep_recursive)
    flat = flat_root(inliner.schema(), losses, _PARAMETERS, _OPENAI_ROOT)
    return object_root(flat, losses, _PARAMETERS), inliner


def _with_items(node: Json, depth: int = 0) -> Any:
    """The schema with ``items`` in every list that has none, without which OpenAI refuses it; it takes any items as before."""
    if not is_object(node) or depth > 64:
        return node
    schema = map_parts(node, lambda part, _names: _with_items(part, depth + 1))
    kinds = schema.get("type")
    if "array" in (kinds if is_list(kinds) else [kinds]) and "items" not in schema:
        schema["items"] = {}
    return schema


def _strict_limits(schema: dict[str, Json], losses: Losses) -> None:
    properties = values = deepest = 0
    stack: list[tuple[Json, int]] = [(schema, 1)]
    while stack:
        node, depth = stack.pop()
        if not is_object(node):
            continue
        declared, listed = node.get("properties"), node.get("enum")
        properties += len(declared) if is_object(declared) else 0
        values += len(listed) if is_list(listed) else 0
        deepest = max(deepest, depth if "properties" in node else 0)
        below_it: list[Json] = []
        map_parts(node, lambda part, _names, into=below_it: into.append(part))
        stack += [(part, depth + ("properties" in node or "items" in node)) for part in below_it]
    over = [
        f"{count} {what} of at most {most}"
        for count, most, what in (
            (properties, MAX_STRICT_PROPERTIES, "properties"),
            (values, MAX_STRICT_VALUES, "listed values"),
            (deepest, MAX_STRICT_DEPTH, "levels of objects"),
        )
        if count > most
    ]
    if over:
        losses.add("over-limit", _PARAMETERS, f"OpenAI refuses the schema: it has {', '.join(over)}")


# A manifest as a CAIU, the record of a knowledge base (D87, seed 003 §6.1), for hosts that choose tools by retrieval. ``content.value`` is what is
# searched: names, description, parameters and output in words. ``extensions`` holds what a program needs, the schemas among it.


ENTRY_TYPE = "tool"
_MAX_EXAMPLES = 5


def caiu_record(manifest: Manifest, *, enabled: bool = True, usage: Mapping[str, Any] | None = None) -> Exported:
    """The record of a tool; its id is the same for every version of a tool. ``usage`` are counters of calls. Never raises."""
    losses = Losses()
    raw = manifest.raw
    parameters = shown_parameters(manifest, losses)
    extensions: dict[str, Any] = {
        "toolId": manifest.tool_id,
        "version": manifest.version,
        "handler": raw.get("handler", {}),
        "parametersSchema": parameters,
    }
    if manifest.output is not None:
        extensions["outputSchema"] = manifest.output
    if manifest.examples:
        extensions["examples"] = worked_calls(manifest)
    for key in ("securityContext", "execution", "aliases", "dependencies", "protocolConfig"):
        if raw.get(key):
            extensions[key] = raw[key]
    if usage:
        extensions["usage"] = dict(usage)
    words = dict.fromkeys((manifest.display_name, *manifest.tags, *manifest.aliases))
    record: dict[str, Any] = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"tamis:tool/{manifest.tool_id}")),
        "version": 1,
        "entry_type": ENTRY_TYPE,
        "displayName": manifest.display_name,
        "content": {"mime_type": "text/markdown", "value": _text(manifest, parameters)},
        "activation_criteria": {"keywords": list(words), "use_semantic_search": True},
        "management_metadata": {"tags": list(manifest.tags), "source": "tamis_export", "is_enabled": enabled},
        "tags": list(manifest.tags),
        "extensions": extensions,
    }
    return Exported(record, losses.found)


def _text(manifest: Manifest, parameters: dict[str, Any]) -> str:
    lines = [f"# {manifest.display_name}", "", manifest.description.strip()]
    declared = parameters_of(parameters)
    if declared:
        lines += ["", "## Parameters", "", *_lines(declared, "")]
    output = manifest.output
    told = parameters_of(output) if is_object(output) else ()
    about = output.get("description") if is_object(output) else None
    if told or isinstance(about, str):
        lines += ["", "## Output", "", *([about] if isinstance(about, str) else []), *_lines(told, "")]
    examples = [example.description.strip() for example in manifest.examples if example.description.strip()][
        :_MAX_EXAMPLES
    ]
    if examples:
        lines += ["", "## Examples", "", *(f"- {text}" for text in examples)]
    return "\n".join(lines)


def _lines(parameters: Sequence[Parameter], indent: str) -> list[str]:
    lines: list[str] = []
    for parameter in parameters:
        words = " ".join((parameter.description, *parameter.facts)).split()
        lines.append(
            f"{indent}- {parameter.name} ({parameter.type}{'' if parameter.required else ', optional'}): {' '.join(words)}".rstrip(
                ": "
            )
        )
        lines += _lines(parameter.parts, indent + "  ")
    return lines
