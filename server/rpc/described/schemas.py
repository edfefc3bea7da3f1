"""JSON Schemas (2020-12) of everything on the wire, made from the Structs.

What a host writes keeps its defaults; what it reads has every field that is always written as required. Texts below a field are
its description, which only the source has: it is read once. Must not know how the schemas are shown.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from tamis.protocols.messages import NOTIFICATIONS, REQUESTS, Sent
from tamis.protocols.schema.words import DRAFT_2020_12
from tamis.server.rpc.described.methods import Described, plain

WRITTEN = {
    "agentId": "The agent.",
    "all": "`true`: all of them.",
    "approval": "The `token` of a result that asks, and the option that the person chose.",
    "args": "The arguments by name.",
    "as": "The form that is wanted.",
    "call": "A call as `tool/parse` gave it, instead of `toolId` and `args`.",
    "calls": "Calls as `tool/parse` gave them.",
    "chunk": "The next piece of the text.",
    "complete": "`false`: the text was cut off.",
    "config": "What the agent may do in this step; laid over the profile.",
    "context": "Whose call it is.",
    "cursor": "`nextCursor` of an earlier answer.",
    "dryRun": "`true`: check everything, run nothing.",
    "fewShot": "How many worked calls to show.",
    "filter": "Which tools are wanted.",
    "format": "The form that is wanted.",
    "handle": "The handle that a result gave for its stream.",
    "id": "Which one, as a list gave it.",
    "idempotencyKey": "A key that was used before gives the stored result.",
    "inputs": "The inputs by name.",
    "instructions": "`false`: leave out how to call.",
    "limit": "How many to give at most.",
    "manifest": "A manifest as an object, or as its text: then problems have ranges.",
    "maxChars": "The most characters of the whole text.",
    "maxTokens": "The most tokens of the whole text.",
    "mode": "One after the other, or at once (ACTION and VCP only).",
    "onError": "Whether a failed call stops the rest.",
    "options": "How to read; what is given goes over the settings.",
    "output": "Whether `tool/output` is sent; what `initialize` said when it is not given.",
    "results": "`ExecutionResult`s, or as much of them as an observation needs.",
    "sessionId": "The agent's session.",
    "shape": "The shape of ACTION: by tag, or with `tool_id` and `inputs`.",
    "style": "How much is said of each tool.",
    "taskId": "The task.",
    "template": "A text with `{{tools}}` where the definitions go.",
    "text": "The text.",
    "timeoutMs": "Wall time of one call in milliseconds; only lowers the limit.",
    "to": "The form that is wanted: a protocol, or `openai`, `anthropic`, `mcp`.",
    "toolIds": "Which tools, by id or alias; without it every tool that may be called.",
    "tools": "Tools of this request only, to read and check with.",
    "version": "The version, or a SemVer range where one is chosen.",
    "view": "`full` adds each tool's definition.",
    "waitMs": "How long to wait for news, in milliseconds.",
    "workflowId": "The workflow's id.",
    "workDoneToken": "Send `$/progress` with it while the request is worked on.",
}
"""Fields of what a host writes."""

READ = {
    "argRanges": "Where each argument stands, by JSON Pointer.",
    "args": "The arguments by name.",
    "attempts": "How often it was tried; 0 when nothing ran.",
    "callId": "The call's id in this session.",
    "code": "The finding's code in the catalogue.",
    "coerced": "The arguments as the tool gets them; there exactly when `valid`.",
    "definition": "The definition in the form asked for.",
    "durationMs": "How long it took, in milliseconds.",
    "etag": "Another one means other tools.",
    "executable": "Whether it may be run.",
    "fix": "Edits that make the finding go away.",
    "index": "The place among the calls of the text, from zero.",
    "logs": "Lines of the run, each begun with `stdout: ` or `stderr: `.",
    "losses": "What could not be carried over.",
    "message": "A sentence for a person or a model.",
    "nextCursor": "Give it as `cursor` to get the rest.",
    "observation": "What the model reads next.",
    "permissions": "What the tool asked for, got and was refused.",
    "protocol": "The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.",
    "range": "Where it stands in the text.",
    "replayed": "Whether this is the stored result of an earlier call.",
    "sandbox": "The sandbox it ran in; null when nothing ran in one.",
    "severity": "How bad it is.",
    "slug": "The finding's name.",
    "step": "TAM's number of the step.",
    "streamId": "The text that `parse/open` began.",
    "taskId": "The task that goes on with the call.",
    "toolId": "The tool's id or an alias.",
    "toolIdRange": "Where the tool's id stands.",
}
"""Fields of what a host reads."""


Schema = dict[str, Any]
PREFIX = "#/$defs/"


class Schemas(msgspec.Struct, frozen=True):
    """The schemas of all parts, and what each message refers to."""

    parts: dict[str, Schema]
    """By name, in the order of names."""
    params: dict[str, Schema]
    """By method, notification or request of the daemon; without those that take none."""
    results: dict[str, Schema]
    """By method or request of the daemon."""


def schemas(methods: Iterable[Described]) -> Schemas:
    """The schemas of the methods and of what the daemon sends by itself."""
    listed = [*methods]
    sent: dict[str, Sent] = {**NOTIFICATIONS, **REQUESTS}
    # What a host writes: the params of methods, and its own replies. What it reads: everything else.
    written = [
        (method.name, f"{method.title}Params", method.params) for method in listed if method.params.__struct_fields__
    ]
    replies = [(name, "", request.result) for name, request in REQUESTS.items() if request.result is not None]
    told = [(name, "", notification.params) for name, notification in sent.items()]
    read = [(method.name, "", kind) for method in listed for kind in method.results]
    kinds = [*written, *replies, *told, *read]
    classes = _classes(kind for _, _, kind in kinds)
    wanted = [*(kind for _, _, kind in kinds), *classes]
    components, parts = msgspec.json.schema_components(wanted, ref_template=PREFIX + "{name}")
    schema_list: list[Schema] = [*components]
    by_class = {_name(schema): kind for schema, kind in zip(schema_list[len(kinds) :], classes, strict=True)}
    ours, theirs = schema_list[: len(written) + len(replies)], schema_list[len(written) + len(replies) : len(kinds)]
    inputs = reachable(ours, parts)
    params = {_name(schema) for schema in ours[: len(written)]}
    for name, part in parts.items():
        _describe(part, by_class[name], {**READ, **WRITTEN} if name in params else READ)
    for name in reachable(theirs, parts) - inputs:
        _require(parts[name], by_class[name])
    out = Schemas({}, {}, {})
    for (method, title, _), schema in zip(written, ours, strict=False):
        # The params of each method have their own name, also where two methods share a Struct.
        out.parts[title] = copy.deepcopy(parts[_name(schema)])
        out.params[method] = {"$ref": PREFIX + title}
    out.results.update({name: schema for (name, _, _), schema in zip(replies, ours[len(written) :], strict=True)})
    out.params.update({name: schema for (name, _, _), schema in zip(told, theirs, strict=False)})
    for (name, _, _), schema in zip(read, theirs[len(told) :], strict=True):
        # A method whose request decides what it gives has several results.
        first = out.results.get(name)
        out.results[name] = schema if first is None else {"anyOf": [*first.get("anyOf", [first]), schema]}
    roots = [*out.parts.values(), *out.params.values(), *out.results.values()]
    for name in reachable(roots, parts) - out.parts.keys():
        if name != by_class[name].__name__:
            # One name, one shape: hosts know parts by their names alone.
            raise TypeError(f"two Structs on the wire have the same name: rename {by_class[name]}")
        out.parts[name] = parts[name]
    ordered = dict(sorted(out.parts.items()))
    for name, part in ordered.items():
        part["title"] = name
    return Schemas(ordered, out.params, out.results)


def refer(schema: Any, prefix: str) -> Any:
    """The schema with its references below ``prefix`` instead of ``$defs``."""
    if isinstance(schema, dict):
        members = cast("Schema", schema)
        return {
            key: prefix + value.removeprefix(PREFIX) if key == "$ref" else refer(value, prefix)
            for key, value in members.items()
        }
    return [refer(item, prefix) for item in cast("list[Any]", schema)] if isinstance(schema, list) else schema


def document(methods: Iterable[Described]) -> Schema:
    """``schemas/contract.json``: every part under ``$defs``, and under ``x-messages`` which parts a message has."""
    schema_set = schemas(methods)
    names = [*dict.fromkeys([*schema_set.params, *schema_set.results])]
    return {
        "$schema": DRAFT_2020_12,
        "$id": "tamis:contract/v1.json",
        "title": "What goes over the wire between Tamis and a host",
        "$defs": schema_set.parts,
        "x-messages": {
            name: {
                key: by_name[name]
                for key, by_name in (("params", schema_set.params), ("result", schema_set.results))
                if name in by_name
            }
            for name in sorted(names)
        },
    }


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix(PREFIX)


def _classes(kinds: Iterable[Any]) -> list[type[msgspec.Struct]]:
    seen: set[type[msgspec.Struct]] = set()
    for info in msgspec.inspect.multi_type_info([*kinds]):
        _collect(info, seen)
    return sorted(seen, key=lambda kind: (kind.__module__, kind.__qualname__))


def _collect(info: Any, seen: set[type[msgspec.Struct]]) -> None:
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls not in seen:
            seen.add(info.cls)
            for field in info.fields:
                _collect(field.type, seen)
        return
    for name in ("type", "item_type", "item_types", "key_type", "value_type", "types"):
        below = getattr(info, name, ())
        for item in cast("Iterable[Any]", below) if isinstance(below, tuple) else (below,):
            _collect(item, seen)


def _describe(part: Schema, kind: type[msgspec.Struct], shared: dict[str, str]) -> None:
    if "description" in part:
        part["description"] = plain(str(part["description"]))
    texts = _field_texts(kind)
    for field in msgspec.structs.fields(kind):
        schema = part["properties"][field.encode_name]
        text = texts.get(field.name) or shared.get(field.encode_name, "")
        if text and "description" not in schema:
            schema["description"] = plain(text)


def _require(part: Schema, kind: type[msgspec.Struct]) -> None:
    # Everything but what may be left out (UNSET) is always written.
    optional = {field.encode_name for field in msgspec.structs.fields(kind) if field.default is msgspec.UNSET}
    part["required"] = [name for name in part["properties"] if name not in optional]
    for schema in part["properties"].values():
        schema.pop("default", None)


def reachable(roots: Iterable[Any], parts: dict[str, Schema]) -> set[str]:
    """The names of the parts that schemas refer to, directly or through others."""
    names: set[str] = set()
    left: list[Any] = [*roots]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += cast("list[Any]", node)
        elif isinstance(node, dict):
            members = cast("Schema", node)
            name = str(members.get("$ref", "")).removeprefix(PREFIX)
            if name in parts and name not in names:
                names.add(name)
                left.append(parts[name])
            left += members.values()
    return names


def _field_texts(kind: type[msgspec.Struct]) -> dict[str, str]:
    field_texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        field_texts |= _texts_of(base.__module__).get(base.__name__, {}) if base.__module__.startswith("tamis.") else {}
    return field_texts


@functools.cache
def _texts_of(module: str) -> dict[str, dict[str, str]]:
    """Class → field → the text below it."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:  # installed without its source: the description has fewer words
        return {}
    return {
        node.name: {
            before.target.id: node_text
            for before, after in zip(node.body, node.body[1:], strict=False)
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(node_text := after.value.value, str)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
