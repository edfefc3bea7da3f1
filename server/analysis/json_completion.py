"""Completion and hover in manifests and agent profiles: keys and values by place.

The manifest's own schema says what belongs where; inside ``parameters`` and ``output`` the keywords of JSON Schema do, inside the
examples the tool's own parameters.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from typing import Any, cast

from tamis.protocols.jsontext.tree import JsonTree, Path, Place
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.answers import HoverText, ItemKind, Proposal
from tamis.server.analysis.describe import describe_schema, type_name
from tamis.server.analysis.json_words import META, PROFILE
from tamis.server.analysis.schema_place import Schema, schemas_at
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.analysis.text_completion import escape_snippet

_LANGUAGES = {"python": (".py",), "nodejs": (".js", ".mjs", ".cjs"), "bun": (".ts", ".js", ".mjs", ".tsx")}


def propose_in_json(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """Proposals at an offset of a manifest or profile."""
    tree = _tree(snapshot)
    if any(start < offset < end for start, end in tree.comments):
        return []
    if tree.root is None:
        return list(_skeletons(snapshot, (offset, offset)))
    place = tree.pointer_at(offset)
    if place.slot == "gap" and not _may_be_key(snapshot.text, offset, place):
        return []
    return list(
        _values(snapshot, tree, place, offset) if place.slot == "value" else _keys(snapshot, tree, place, offset)
    )


def explain_in_json(snapshot: Snapshot, offset: int) -> HoverText | None:
    """What the schema says about the key or value at an offset."""
    tree = _tree(snapshot)
    place = tree.pointer_at(offset)
    if not place.path or place.slot == "gap":
        return None
    member = place.member
    span = member.key_span if member is not None and place.slot == "key" else place.node.span if place.node else None
    if span is None or not span[0] <= offset <= span[1]:
        return None
    for schema in _schemas(snapshot, tree, place.path):
        text = describe_schema(schema)
        if text:
            name = place.path[-1]
            title = f"**{name}**" if isinstance(name, str) else f"item {name}"
            return HoverText(span, f"{title} ({type_name(schema)})\n\n{text}")
    return None


def _tree(snapshot: Snapshot) -> JsonTree:
    return snapshot.manifest.tree if snapshot.kind == "manifest" else snapshot.profile.tree


def _may_be_key(text: str, offset: int, place: Place) -> bool:
    """Whether a key may begin in a gap: after a comma or an opening brace, not right behind a value."""
    before = text[:offset].rstrip()
    return place.container is not None and place.container.kind == "object" and before[-1:] in (",", "{")


# Schemas by place


def _embedded(path: Path) -> Path | None:
    """The way inside an embedded schema (``parameters``, ``output``), or None outside of both."""
    return path[1:] if path and path[0] in ("parameters", "output") else None


def _schemas(snapshot: Snapshot, tree: JsonTree, path: Path) -> list[Schema]:
    if snapshot.kind == "profile":
        return schemas_at(PROFILE, tree.root, path)
    inner = _embedded(path)
    if inner is not None:
        return schemas_at(META, tree.root.at(path[:1]) if tree.root is not None else None, inner)
    example = _example(path)
    if example is not None:
        own = tree.node_at(f"/{example[0]}")
        schema = own.to_python() if own is not None else {}
        root = tree.root.at(path[: len(path) - len(example[1])]) if tree.root is not None else None
        return schemas_at(schema, root, example[1])
    from tamis.protocols.manifest.json_schema import manifest_schema

    return schemas_at(manifest_schema(), tree.root, path)


def _example(path: Path) -> tuple[str, Path] | None:
    """For a place in an example: which of the tool's schemas holds there, and the way inside it."""
    if len(path) >= 3 and path[0] == "examples" and path[2] in ("input", "expectedOutput"):
        return ("parameters" if path[2] == "input" else "output"), path[3:]
    return None


# Keys


def _keys(snapshot: Snapshot, tree: JsonTree, place: Place, offset: int) -> Iterator[Proposal]:
    container = place.container
    if container is None or container.kind != "object":
        return
    member = place.member if place.slot == "key" else None
    path = place.path[:-1] if member is not None else place.path
    if place.slot == "gap" and place.member is not None and place.path and place.path[-1] == place.member.key:
        path = place.path[:-1]
    span: Span = (offset, offset)
    has_value = False
    if member is not None:
        span = member.key_span
        has_value = member.colon >= 0
    present = {other.key for other in container.members if other is not member}
    comma = "" if has_value else _comma(snapshot.text, span[1])
    for name, schema, required in _declared_keys(snapshot, tree, path):
        if name in present:
            continue
        quoted = json.dumps(name, ensure_ascii=False)
        text, snippet = quoted, ""
        if not has_value:
            plain, stops = _starter(schema)
            text = f"{quoted}: {plain}{comma}"
            snippet = f"{escape_snippet(quoted)}: {stops}{comma}"
        detail = type_name(schema) + (", required" if required else "")
        yield Proposal(
            name,
            "property",
            span,
            text,
            snippet,
            detail=detail,
            documentation=describe_schema(schema),
            filter=quoted,
            deprecated=schema.get("deprecated") is True,
        )


def _declared_keys(snapshot: Snapshot, tree: JsonTree, path: Path) -> list[tuple[str, Schema, bool]]:
    found: dict[str, tuple[Schema, bool]] = {}
    for schema in _schemas(snapshot, tree, path):
        properties: Any = schema.get("properties")
        required: Any = schema.get("required")
        needed = cast("list[Any]", required) if isinstance(required, list) else []
        if isinstance(properties, dict):
            for name, part in cast("Schema", properties).items():
                known = found.get(name)
                chosen: Schema = part if is_object(part) else {}
                if known is not None and known[0]:
                    chosen = {**chosen, **known[0]}
                found[name] = (chosen, name in needed or (known is not None and known[1]))
        for name in needed:
            if name in found:
                found[name] = (found[name][0], True)
    unused = _unused_handler_keys(tree) if path == ("handler",) and snapshot.kind == "manifest" else ()
    listed = [(name, schema, need) for name, (schema, need) in found.items() if name not in unused]
    listed.sort(key=lambda item: not item[2])
    return listed


def _unused_handler_keys(tree: JsonTree) -> tuple[str, ...]:
    """Keys of the other branch of ``handler`` (D34, D36)."""
    node = tree.node_at("/handler/type")
    kind = node.value if node is not None else None
    script, service = ("scriptPath", "language", "entryPoint"), ("serviceName", "methodName")
    return service if kind == "external-script" else script if kind == "service-method" else ()


def _comma(text: str, at: int) -> str:
    """A comma if another member follows."""
    rest = text[at : at + 2_000].lstrip()
    return "," if rest[:1] == '"' else ""


def _starter(schema: Schema) -> tuple[str, str]:
    """A first value for a new key: plain, and with tab stops."""
    if "default" in schema:
        text = json.dumps(schema["default"], ensure_ascii=False)
        return text, "${1:" + escape_snippet(text) + "}"
    choices = [json.dumps(choice, ensure_ascii=False) for choice in cast("list[Any]", schema.get("enum") or [])]
    if "const" in schema:
        choices = [json.dumps(schema["const"], ensure_ascii=False)]
    if choices and not any(set(choice) & set("|,\\") for choice in choices):
        return choices[0], "${1|" + ",".join(escape_snippet(choice) for choice in choices) + "|}"
    kind: Any = schema.get("type")
    first: Any = (cast("list[Any]", kind) or [None])[0] if isinstance(kind, list) else kind
    examples = cast("list[Any]", schema.get("examples") or [])
    if first == "string" and examples and isinstance(examples[0], str):
        text = json.dumps(examples[0], ensure_ascii=False)[1:-1]
        return '""', '"${1:' + escape_snippet(text) + '}"'
    return {
        "string": ('""', '"$1"'),
        "object": ("{}", "{$1}"),
        "array": ("[]", "[$1]"),
        "boolean": ("false", "${1|true,false|}"),
        "integer": ("0", "${1:0}"),
        "number": ("0", "${1:0}"),
    }.get(str(first), ("null", "$1"))


# Values


def _values(snapshot: Snapshot, tree: JsonTree, place: Place, offset: int) -> Iterator[Proposal]:
    node = place.node
    inside = node is not None and node.kind not in ("object", "array") and node.start <= offset <= node.end
    span: Span = node.span if inside and node is not None else (offset, offset)
    if inside and node is not None and node.kind == "string" and offset == node.start:
        span = (offset, offset)
    if node is not None and not inside and node.kind in ("object", "array"):
        return
    yield from _special_values(snapshot, tree, place.path, span)
    for schema in _schemas(snapshot, tree, place.path):
        for text, why in _json_choices(schema):
            yield _value_item(text, span, why, describe_schema(schema))
        if not inside and schema.get("type") in ("object", "array"):
            plain, stops = _starter({"type": schema["type"]})
            yield _value_item(plain, span, str(schema["type"]), "", stops)


def _json_choices(schema: Schema) -> list[tuple[str, str]]:
    values = [(json.dumps(value, ensure_ascii=False), "") for value in cast("list[Any]", schema.get("enum") or [])]
    if "const" in schema:
        values.append((json.dumps(schema["const"], ensure_ascii=False), "the only value"))
    if schema.get("type") == "boolean":
        values += [("true", ""), ("false", "")]
    if "default" in schema:
        values.append((json.dumps(schema["default"], ensure_ascii=False), "default"))
    for value in cast("list[Any]", schema.get("examples") or []):
        values.append((json.dumps(value, ensure_ascii=False), "example"))
    return list(dict(reversed(values)).items())[::-1]


def _value_item(
    text: str, span: Span, detail: str = "", documentation: str = "", snippet: str = "", kind: ItemKind = "value"
) -> Proposal:
    return Proposal(text, kind, span, text, snippet, detail=detail, documentation=documentation, filter=text)


def _special_values(snapshot: Snapshot, tree: JsonTree, path: Path, span: Span) -> Iterator[Proposal]:
    """Values that come from the tools and files around, not from a schema."""
    if snapshot.kind == "profile":
        if len(path) == 2 and path[0] == "tool_ids_inventory":
            yield from _known_ids(snapshot, tree, span)
        return
    if path == ("handler", "scriptPath"):
        yield from _scripts(snapshot, tree, span)
    elif path == ("toolId",):
        spaces = {tool.tool_id.partition(":")[0] for tool in _tools(snapshot) if ":" in tool.tool_id}
        for name in sorted(spaces | {"core", "custom", "vendor"}):
            text = json.dumps(name + ":", ensure_ascii=False)
            yield Proposal(
                name + ":", "value", span, text, f'"{escape_snippet(name)}:$1"', detail="namespace", filter=text
            )
    elif len(path) == 2 and path[0] == "tags":
        tags = {tag for tool in _tools(snapshot) for tag in tool.manifest.tags}
        for tag in sorted(tags):
            yield _value_item(json.dumps(tag, ensure_ascii=False), span, "tag in use")
    elif len(path) >= 2 and path[-2] == "required" and _embedded(path) is not None:
        owner = tree.root.at(path[:-2]) if tree.root is not None else None
        declared = owner.get("properties") if owner is not None else None
        listed = owner.get("required") if owner is not None else None
        there = [item.value for item in listed.items] if listed is not None else []
        for member in declared.members if declared is not None else ():
            if member.key not in there:
                yield _value_item(json.dumps(member.key, ensure_ascii=False), span, "declared property")


def _tools(snapshot: Snapshot) -> list[Any]:
    return list(snapshot.registry.tools) if snapshot.registry is not None else []


def _known_ids(snapshot: Snapshot, tree: JsonTree, span: Span) -> Iterator[Proposal]:
    listed = tree.node_at("/tool_ids_inventory")
    there = [item.value for item in listed.items] if listed is not None else []
    seen: set[str] = set()
    for tool in _tools(snapshot):
        if tool.tool_id not in there and tool.tool_id not in seen:
            seen.add(tool.tool_id)
            text = json.dumps(tool.tool_id, ensure_ascii=False)
            yield Proposal(tool.tool_id, "tool", span, text, detail=tool.manifest.display_name, filter=text)


def _scripts(snapshot: Snapshot, tree: JsonTree, span: Span) -> Iterator[Proposal]:
    node = tree.node_at("/handler/language")
    language = node.value if node is not None and isinstance(node.value, str) else ""
    endings = _LANGUAGES.get(language, tuple(sorted({e for group in _LANGUAGES.values() for e in group})))
    for file in sorted(snapshot.folder.files if snapshot.folder is not None else ()):
        if posixpath.splitext(file)[1] in endings:
            yield _value_item(json.dumps(file, ensure_ascii=False), span, "script beside the manifest", kind="file")


# A new file


def _skeletons(snapshot: Snapshot, span: Span) -> Iterator[Proposal]:
    if snapshot.kind != "manifest":
        text = '{\n  "tool_ids_inventory": []\n}'
        yield Proposal("agent profile", "block", span, text, '{\n  "tool_ids_inventory": [$0]\n}', detail="skeleton")
        return
    for label, handler, stops in (
        (
            "script tool",
            '"type": "external-script",\n    "scriptPath": "",\n    "language": "python"',
            '"type": "external-script",\n    "scriptPath": "$5",\n    "language": "${6|python,nodejs,bun|}"',
        ),
        (
            "service tool",
            '"type": "service-method",\n    "serviceName": "",\n    "methodName": ""',
            '"type": "service-method",\n    "serviceName": "$5",\n    "methodName": "$6"',
        ),
    ):
        yield Proposal(
            label,
            "block",
            span,
            _skeleton(("", "", "", "1.0.0"), handler, ""),
            _skeleton(("${1:custom:my-tool}", "$2", "$3", "${4:1.0.0}"), stops, "$0"),
            detail="manifest skeleton",
        )


def _skeleton(fields: tuple[str, str, str, str], handler: str, rest: str) -> str:
    tool_id, display, description, version = fields
    return (
        f'{{\n  "toolId": "{tool_id}",\n  "displayName": "{display}",\n  "description": "{description}",\n'
        f'  "version": "{version}",\n  "handler": {{\n    {handler}\n  }},\n'
        f'  "parameters": {{\n    "type": "object",\n    "properties": {{{rest}}},\n    "required": []\n  }}\n}}\n'
    )
