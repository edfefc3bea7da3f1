"""Completion and hover in manifests and agent profiles: which schemas hold at a place, and what the tools around it add.

The manifest's own schema says what belongs where; inside ``parameters`` and ``output`` the keywords of JSON Schema do, inside the
examples the tool's own parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Path
from tamis.protocols.manifest.reading import LANGUAGES
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.answers import HoverText, Proposal
from tamis.server.analysis.completion.json_slot import Slot, missing_comma, slot_at, slot_without_comma
from tamis.server.analysis.completion.json_words import DIALECTS, KEYWORDS_OF, META, META_07, PROFILE
from tamis.server.analysis.completion.proposals import escape_snippet, snippet_of_body
from tamis.server.analysis.completion.schema_place import Schema, folded, schemas_at
from tamis.server.analysis.completion.schema_proposals import JsonAsk, finish, keys, values
from tamis.server.analysis.describe import describe_schema, type_name
from tamis.server.analysis.snapshot import Snapshot

_PLAIN = frozenset(("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"))
"""What makes the way down a schema more than a walk along ``properties``."""


MAX_PROPERTIES = 600
"""Properties of an example's schema that are looked at; more than a list of proposals holds."""


def propose_in_json(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """Proposals at an offset of a manifest or profile."""
    tree = _tree(snapshot)
    slot = slot_at(tree, offset) or slot_without_comma(tree, offset)
    if slot is None:
        return []
    from tamis.server.analysis.completion.manifest_words import schema_ids, special_keys, special_values

    if tree.root is None:
        return list(skeletons(snapshot, slot))
    ask = JsonAsk(
        tree,
        lambda path: _schemas(snapshot, tree, path, tree.text[slot.span[0] : min(offset, slot.span[0] + 100)]),
        schema_ids=schema_ids(snapshot),
        hidden=lambda path: _hidden(snapshot, tree, path),
        distinct=bool(slot.path) and slot.path[0] not in ("parameters", "output", "examples"),
    )
    if slot.kind == "key":
        items = [*special_keys(snapshot, tree, slot), *_with_bodies(snapshot, slot, list(keys(ask, slot)))]
        items = items if slot.names_only else [_with_value(item, slot) for item in items]
        items = finish(_fitting_first(snapshot, tree, slot, items))
        comma = missing_comma(tree, slot)
        more = ((comma, comma, ","),)
        return items if comma < 0 else [msgspec.structs.replace(item, extra=more) for item in items]
    if slot.path[:1] == ("examples",) and slot.path[2:3] in (("input",), ("expectedOutput",)):
        from tamis.server.analysis.completion.texts import propose_in_example

        references = propose_in_example(snapshot, offset)
        if references is not None:
            return references
    special = [
        *_dialects(tree, slot),
        *special_values(snapshot, tree, slot),
    ]
    named = values(ask, slot)
    # What the workspace knows is nearer than an example out of a description.
    return finish([*special, *(item for item in named if not special or item.detail != "example")])


_BODIES: dict[str, Any] = {
    "handler": {
        "type": "external-script",
        "scriptPath": "$1",
        "language": "${2|python,nodejs,bun|}",
    },
    "parameters": {
        "type": "object",
        "properties": {
            "${1:name}": {"type": "${2|string,integer,number,boolean,array,object|}", "description": "$3"},
        },
        "required": ["$1"],
    },
    "examples": [{"description": "$1", "input": "^{$2}"}],
}
"""What people write under a key of a manifest, to be filled in."""


def _with_bodies(snapshot: Snapshot, slot: Slot, items: list[Proposal]) -> list[Proposal]:
    if snapshot.kind != "manifest" or slot.names_only:
        return items
    if slot.path:
        return [_with_choice(item, slot) for item in items]
    return [
        msgspec.structs.replace(item, snippet=f'"{item.label}": {snippet_of_body(_BODIES[item.label])}{slot.after}')
        if item.label in _BODIES
        else item
        for item in items
    ]


def _with_choice(item: Proposal, slot: Slot) -> Proposal:
    """A key below the root whose value is one of a few words, though its schema lets others through."""
    if slot.path == ("handler",) and item.label == "language":
        words = LANGUAGES
    elif item.label == "type" and slot.path[0] in ("parameters", "output") and item.detail == "any":
        words = ("string", "integer", "number", "boolean", "array", "object")
    else:
        return item
    text = f'"{item.label}": "{words[0]}"{slot.after}'
    snippet = f'"{item.label}": "${{1|{",".join(words)}|}}"{slot.after}'
    return msgspec.structs.replace(item, text=text, snippet=snippet)


def _with_value(item: Proposal, slot: Slot) -> Proposal:
    """A key that only other parts of the file suggest: with its colon, and a place for the value."""
    if '": ' in item.text:
        return item
    text, snippet = f"{item.text}: null{slot.after}", f"{item.snippet or escape_snippet(item.text)}: $1{slot.after}"
    return msgspec.structs.replace(item, text=text, snippet=snippet)


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
    for schema in folded(_schemas(snapshot, tree, place.path) or []):
        text = describe_schema(schema)
        if text:
            name = place.path[-1]
            title = f"**{name}**" if isinstance(name, str) else f"item {name}"
            return HoverText(span, f"{title} ({type_name(schema)})\n\n{text}")
    return None


def _tree(snapshot: Snapshot) -> JsonTree:
    return snapshot.tree


# Schemas by place


@lru_cache(maxsize=1)
def _manifest_schema() -> Schema:
    from tamis.protocols.manifest.json_schema import manifest_schema

    return cast("Schema", manifest_schema())


def embedded(path: Path) -> Path | None:
    """The way inside an embedded schema (``parameters``, ``output``), or None outside of both."""
    return path[1:] if path and path[0] in ("parameters", "output") else None


def _schemas(snapshot: Snapshot, tree: JsonTree, path: Path, typed: str = "") -> list[Schema] | None:
    if snapshot.kind == "profile":
        return schemas_at(PROFILE, tree.root, path)
    inner = embedded(path)
    if inner is not None:
        return _in_schema(tree, path, inner)
    example = _example(path)
    if example is not None:
        return _in_example(tree, path, *example, typed)
    return schemas_at(_manifest_schema(), tree.root, path)


def _in_schema(tree: JsonTree, path: Path, inner: Path) -> list[Schema]:
    """The schemas of a place inside an embedded schema; of a default or another value to show, what that schema says itself."""
    root = tree.root.at(path[:1]) if tree.root is not None else None
    meta = meta_of(root)
    for back in (1, 2):
        word = inner[-back] if len(inner) >= back else None
        if (back == 1 and word in ("default", "const")) or (back == 2 and word in ("examples", "enum")):
            owner = tree.root.at(path[:-back]) if tree.root is not None else None
            if owner is not None and is_schema_place(meta, root, inner[:-back]):
                own = owner.to_python()
                rest = {name: part for name, part in own.items() if name != word} if is_object(own) else {}
                rest.pop("const" if word != "const" else "default", None)
                if word in ("enum", "examples"):
                    rest.pop("examples", None)
                return schemas_at(rest, None, ())
    return schemas_at(meta, root, inner)


def meta_of(root: JsonNode | None) -> Schema:
    """The keywords of the dialect that an embedded schema names."""
    named = root.get("$schema") if root is not None else None
    return META_07 if named is not None and "draft-07" in str(named.value) else META


def is_schema_place(meta: Schema, root: JsonNode | None, inner: Path) -> bool:
    """Whether a schema stands at a path of an embedded schema, not a value or a map of names."""
    words = meta["$defs"]["schema"]["properties"]
    return any(schema.get("properties") is words for schema in schemas_at(meta, root, inner))


def _example(path: Path) -> tuple[str, Path] | None:
    """For a place in an example: which of the tool's schemas holds there, and the way inside it."""
    if len(path) >= 3 and path[0] == "examples" and path[2] in ("input", "expectedOutput"):
        return ("parameters" if path[2] == "input" else "output"), path[3:]
    return None


def _in_example(tree: JsonTree, path: Path, name: str, inner: Path, typed: str) -> list[Schema] | None:
    own = tree.root.get(name) if tree.root is not None else None
    if own is None:
        return None
    value = tree.root.at(path[: len(path) - len(inner)]) if tree.root is not None else None
    # Only the part that matters becomes data: a large manifest's schema is large.
    while inner and own.kind == "object" and not any(own.member(word) is not None for word in _PLAIN):
        listed = own.get("properties")
        part = listed.get(inner[0]) if listed is not None and isinstance(inner[0], str) else None
        if part is None:
            break
        own, value, inner = part, value.at(inner[:1]) if value is not None else None, inner[1:]
    schema = own.to_python() if inner else _named_like(own, typed.strip("\"'").casefold())
    whole = tree.root.get(name) if tree.root is not None else None
    has_reference = whole is not None and whole is not own and "$ref" in tree.text[own.start : own.end]
    return schemas_at(schema, value, inner, whole.to_python() if has_reference and whole is not None else None)


def _named_like(own: JsonNode, typed: str) -> object:
    """A schema as data; of very many properties those that are required or hold what is typed, more than a list can show."""
    listed = own.get("properties") if own.kind == "object" else None
    if listed is None or len(listed.members) <= MAX_PROPERTIES:
        return own.to_python()
    needed = own.get("required")
    names = {item.value for item in needed.items} if needed is not None else set[object]()
    fitting = [member for member in listed.members if member.key in names or typed in member.key.casefold()]
    others: dict[str, Any] = {
        member.key: member.value.to_python()
        for member in own.members
        if member.value is not None and member.key != "properties"
    }
    others["properties"] = {
        member.key: member.value.to_python() for member in fitting[:MAX_PROPERTIES] if member.value is not None
    }
    return others


# What fits first


def _hidden(snapshot: Snapshot, tree: JsonTree, path: Path) -> frozenset[str]:
    """Keys of the other branch of ``handler`` (D34, D36)."""
    if path != ("handler",) or snapshot.kind != "manifest":
        return frozenset()
    node = tree.node_at("/handler/type")
    kind = node.value if node is not None else None
    fields = {
        "external-script": ("scriptPath", "language", "entryPoint", "result"),
        "service-method": ("serviceName", "methodName", "parameterMapping"),
        "mcp": ("server", "tool"),
    }
    if kind not in fields:
        return frozenset()
    return frozenset(name for other, names in fields.items() if other != kind for name in names)


def _fitting_first(snapshot: Snapshot, tree: JsonTree, slot: Slot, items: list[Proposal]) -> list[Proposal]:
    """Keywords of a schema: those that its ``type`` calls for, then the ones for every type, then the others."""
    inner = embedded(slot.path) if snapshot.kind == "manifest" else None
    if inner is None or slot.container is None:
        return items
    root = tree.root.at(slot.path[:1]) if tree.root is not None else None
    if not is_schema_place(meta_of(root), root, inner):
        return items
    named = slot.container.get("type")
    kinds = [named.value] if named is not None and named.kind == "string" else []
    kinds += [item.value for item in named.items] if named is not None and named.kind == "array" else []
    kinds = [kind for kind in kinds if kind in KEYWORDS_OF]
    if not kinds and any(slot.container.member(word) for word in ("properties", "required")):
        kinds = ["object"]
    own = {word for kind in kinds for word in KEYWORDS_OF.get(str(kind), ())}
    foreign = {word for words in KEYWORDS_OF.values() for word in words} - own if kinds else set[str]()
    if any(word in ("type", "description") for word in (item.label for item in items)):
        first = ("type", "description")
    else:
        first = ()
    order = {word: index for index, word in enumerate((*first, *own_order(kinds)))}
    late = {"$schema", "$id", "$comment", "$anchor", "$dynamicRef", "$dynamicAnchor"} if inner else set[str]()

    def rank(item: Proposal) -> tuple[int, int]:
        if item.label in order:
            return 0, order[item.label]
        return (2 if item.label in foreign or item.label in late else 1), 0

    return sorted(
        [
            item if item.label not in foreign else msgspec.structs.replace(item, aside="for other types")
            for item in items
        ],
        key=rank,
    )


def own_order(kinds: list[Any]) -> list[str]:
    """The keywords for these types, in the order in which people write them."""
    return [word for kind in kinds for word in KEYWORDS_OF.get(str(kind), ())]


def _dialects(tree: JsonTree, slot: Slot) -> list[Proposal]:
    if len(slot.path) < 2 or slot.path[-1] != "$schema" or embedded(slot.path) is None:
        return []
    from tamis.server.analysis.completion.json_slot import value_item

    return [value_item(tree, slot, uri, about) for uri, about in DIALECTS]


def skeletons(snapshot: Snapshot, slot: Slot) -> Iterator[Proposal]:
    """Whole documents, for an empty one."""
    span = slot.span
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
