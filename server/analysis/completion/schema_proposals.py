"""Completion in JSON by a schema: keys that are left, values that are named, and what other parts of the text suggest.

Knows JSON Schema's own words and the ones that editors share (``defaultSnippets``, ``enumDescriptions``, ``doNotSuggest`` …). Must
not know what the document is; who asks brings the schemas of a place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Path
from tamis.protocols.schema.words import is_object
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.json_slot import (
    Slot,
    filter_of,
    first_value,
    label_of,
    list_of,
    slot_at,
    value_item,
)
from tamis.server.analysis.completion.proposals import escape_snippet, snippet_of_body, value_of_body
from tamis.server.analysis.completion.schema_place import Schema, folded
from tamis.server.analysis.describe import type_name

_MAX_LABEL = 60
_MAX_VALUES = 600


class JsonAsk(msgspec.Struct, frozen=True):
    """What is asked: the tree and the schemas of its places.

    ``schemas`` gives the schemas of a place, None where no schema says anything: then the text itself suggests.
    ``schema_ids`` are proposed for ``$schema``; ``hidden`` are keys not to propose at a place.
    """

    tree: JsonTree
    schemas: Callable[[Path], list[Schema] | None]
    schema_ids: tuple[tuple[str, str], ...] = ()
    hidden: Callable[[Path], frozenset[str]] = lambda _: frozenset()
    distinct: bool = False
    """What a list holds already is not proposed for it again, whatever its schema says."""


def propose_json(ask: JsonAsk, offset: int) -> list[Proposal]:
    """Proposals at an offset, each label once, required keys and defaults first."""
    slot = slot_at(ask.tree, offset)
    if slot is None:
        return []
    return finish(keys(ask, slot) if slot.kind == "key" else values(ask, slot))


def finish(items: Iterator[Proposal] | list[Proposal]) -> list[Proposal]:
    """Each label once and short; what a twin knows more goes to the one that stays."""
    by_label: dict[str, int] = {}
    labels: set[str] = set()
    kept: list[Proposal] = []
    for item in items:
        at = by_label.get(item.label)
        if at is not None:
            first = kept[at]
            if not first.detail and item.detail:
                kept[at] = msgspec.structs.replace(first, detail=item.detail)
            if not first.documentation and item.documentation:
                kept[at] = msgspec.structs.replace(kept[at], documentation=item.documentation)
            continue
        by_label[item.label] = len(kept)
        label = item.label.replace("\n", "↵")
        if len(label) > _MAX_LABEL and f"{label[: _MAX_LABEL - 3].strip()}..." not in labels:
            label = f"{label[: _MAX_LABEL - 3].strip()}..."
        labels.add(label)
        kept.append(item if label == item.label else msgspec.structs.replace(item, label=label))
    return kept


_MAX_REFERENCES = 20
"""Declared keys whose reference is followed to say their type."""

# Keys


def keys(ask: JsonAsk, slot: Slot) -> Iterator[Proposal]:
    """The keys that may be written in an object."""
    container = slot.container
    members = container.members if container is not None else []
    present = {other.key for other in members if other is not slot.member}
    schemas = ask.schemas(slot.path)
    if schemas is None:
        if not slot.path and slot.member is not None and slot.member.key.startswith("$") and "$schema" not in present:
            yield key_item(ask.tree, slot, "$schema", {"$comment": "any"}, False)
        for name in keys_alike(ask.tree, slot):
            if name not in present:
                quoted = json.dumps(name, ensure_ascii=False)
                yield Proposal(
                    name,
                    "property",
                    slot.span,
                    quoted,
                    escape_snippet(quoted),
                    filter=filter_of(ask.tree, slot, quoted),
                )
        return
    hidden = ask.hidden(slot.path)
    looks = _MAX_REFERENCES
    for name, schema, required in declared_keys(schemas):
        if name not in present and name not in hidden:
            if isinstance(schema.get("$ref"), str) and "type" not in schema and looks:
                looks -= 1
                schema = next(iter(folded(ask.schemas((*slot.path, name)) or [])), schema)
            yield key_item(ask.tree, slot, name, schema, required)


def declared_keys(schemas: list[Schema]) -> list[tuple[str, Schema, bool]]:
    """The keys that schemas declare or list by ``propertyNames``: required ones first, deprecated ones last."""
    by_name: dict[str, Schema] = {}
    needed: set[str] = set()
    barred: set[str] = set()
    for schema in schemas:
        required: Any = schema.get("required")
        if isinstance(required, list):
            needed.update(str(name) for name in cast("list[Any]", required))
        properties: Any = schema.get("properties")
        if isinstance(properties, dict):
            for name, part in cast("Schema", properties).items():
                if part is False:
                    barred.add(name)
                chosen: Schema = part if is_object(part) else {}
                known = by_name.get(name)
                if known is None or set(known) <= {"const", "enum"}:
                    by_name[name] = {**chosen, **(known or {})} if chosen or known is None else known
        for name, part in _named(schema.get("propertyNames")):
            by_name.setdefault(name, part)
    listed = [
        (name, schema, name in needed)
        for name, schema in by_name.items()
        if name not in barred and _is_proposed(schema)
    ]
    listed.sort(key=lambda item: (item[1].get("deprecated") is True, not item[2]))
    return listed


def _is_proposed(schema: Schema) -> bool:
    return not schema.get("doNotSuggest") and not schema.get("deprecationMessage")


def _named(schema: object) -> Iterator[tuple[str, Schema]]:
    """The names that ``propertyNames`` lists, each with what is said of it."""
    if not isinstance(schema, dict):
        return
    here = cast("Schema", schema)
    listed = [("enum", value) for value in list_of(here.get("enum"))]
    listed += [("const", here["const"])] if "const" in here else []
    listed += [("examples", value) for value in list_of(here.get("examples"))]
    for at, (word, value) in enumerate(listed):
        if not isinstance(value, str):
            continue
        about: Schema = {
            name: here[name] for name in ("doNotSuggest", "deprecationMessage", "suggestSortText") if name in here
        }
        about["$comment"] = "any"
        text = _enum_words(here, at) if word == "enum" else _words(here)
        if text:
            about["markdownDescription"] = text
        order = list_of(here.get("enumSortTexts"))
        if word == "enum" and at < len(order):
            about["suggestSortText"] = order[at]
        yield value, about


def key_item(tree: JsonTree, slot: Slot, name: str, schema: Schema, required: bool) -> Proposal:
    """A key with a first value, or the name alone where a colon stands behind it."""
    quoted = json.dumps(name, ensure_ascii=False)
    text, snippet = quoted, escape_snippet(quoted)
    if not slot.names_only:
        plain, stops = first_value(schema)
        text, snippet = f"{quoted}: {plain}{slot.after}", f"{snippet}: {stops}{slot.after}"
    kind = "" if set(schema) == {"$comment"} else type_name(schema)
    return Proposal(
        name,
        "property",
        slot.span,
        text,
        "" if slot.names_only else snippet,
        detail=kind + (", required" if required else ""),
        subject=schema,
        filter=filter_of(tree, slot, quoted),
        sort=str(schema.get("suggestSortText") or ""),
        deprecated=schema.get("deprecated") is True,
    )


# Values


def values(ask: JsonAsk, slot: Slot) -> Iterator[Proposal]:
    """The values that may be written at a place."""
    schemas = ask.schemas(slot.path)
    if slot.path == ("$schema",):
        for uri, about in ask.schema_ids:
            yield value_item(ask.tree, slot, uri, about)
    if schemas is None:
        yield from values_alike(ask.tree, slot)
        return
    taken = _taken(ask, slot)
    named = {json.dumps(value) for schema in schemas for value in _named_values(schema)}
    for schema in schemas:
        for item in _schema_values(ask.tree, slot, schema, alone=len(named) == 1):
            if not (taken and item.text.removesuffix(slot.after) in taken):
                yield item
    kinds = {name for schema in schemas for name in _kinds(schema)}
    closed = any("const" in schema or isinstance(schema.get("enum"), list) for schema in schemas)
    if "boolean" in kinds and not closed:
        yield value_item(ask.tree, slot, True)
        yield value_item(ask.tree, slot, False)
    if "null" in kinds and not closed:
        yield value_item(ask.tree, slot, None)
    if slot.node is None and not closed:
        if "object" in kinds:
            yield value_item(ask.tree, slot, {}, "object")
        if "array" in kinds:
            yield value_item(ask.tree, slot, [], "array")


def _named_values(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list_of(schema.get("enum"))[:_MAX_VALUES]


def _kinds(schema: Schema) -> list[str]:
    return [str(item) for item in list_of(schema.get("type")) or [schema.get("type")]]


def _taken(ask: JsonAsk, slot: Slot) -> set[str]:
    """What a list of unique items holds already."""
    if slot.container is None or slot.container.kind != "array" or not slot.path:
        return set()
    above = ask.schemas(slot.path[:-1]) or []
    if not ask.distinct and not any(schema.get("uniqueItems") is True for schema in above):
        return set()
    others = [item for item in slot.container.items[:_MAX_VALUES] if item is not slot.node]
    return {json.dumps(item.to_python(), ensure_ascii=False) for item in others}


def _schema_values(tree: JsonTree, slot: Slot, schema: Schema, *, alone: bool) -> Iterator[Proposal]:
    if schema.get("doNotSuggest"):
        return
    default = json.dumps(schema["default"], ensure_ascii=False) if "default" in schema else None
    if "const" in schema:
        yield value_item(tree, slot, schema["const"], "the only value" if alone else "", _words(schema))
    order, details = list_of(schema.get("enumSortTexts")), list_of(schema.get("enumDetails"))
    for at, value in enumerate(list_of(schema.get("enum"))[:_MAX_VALUES]):
        is_default = json.dumps(value, ensure_ascii=False) == default
        detail = str(details[at]) if at < len(details) else "default" if is_default else ""
        item = value_item(tree, slot, value, detail, _enum_words(schema, at), preselect=is_default)
        yield msgspec.structs.replace(item, sort=str(order[at])) if at < len(order) else item
    yield from _defaults(tree, slot, schema, 0)


def _defaults(tree: JsonTree, slot: Slot, schema: Schema, depth: int) -> Iterator[Proposal]:
    """``default``, ``examples`` and ``defaultSnippets``; of a list without any of them those of its items, in a list."""
    any_said = False
    for word, why in (("default", "default"), ("examples", "example")):
        if word in schema:
            for value in [schema[word]] if word == "default" else list_of(schema[word])[:_MAX_VALUES]:
                any_said = True
                wrapped = _wrap(value, depth)
                yield value_item(tree, slot, wrapped, why, _words(schema), preselect=word == "default")
    for item in list_of(schema.get("defaultSnippets")):
        if isinstance(item, dict):
            any_said = True
            proposal = _snippet(tree, slot, cast("Schema", item), depth)
            if proposal is not None:
                yield proposal
    items: Any = schema.get("items")
    if not any_said and isinstance(items, dict) and depth < 5 and "array" in _kinds(schema):
        yield from _defaults(tree, slot, cast("Schema", items), depth + 1)


def _wrap(value: object, depth: int) -> object:
    for _ in range(depth):
        value = [value]
    return value


def _snippet(tree: JsonTree, slot: Slot, preset: Schema, depth: int) -> Proposal | None:
    if "body" in preset:
        body = _wrap(preset["body"], depth)
        snippet = snippet_of_body(body)
        plain = json.dumps(value_of_body(body), ensure_ascii=False)
        label = str(preset.get("label") or label_of(value_of_body(body)))
    elif isinstance(preset.get("bodyText"), str):
        snippet = preset["bodyText"]
        for _ in range(depth):
            snippet = "[\n\t" + snippet.replace("\n", "\n\t") + "\n]"
        plain = re.sub(r"\$\{\d+:([^}]*)\}|\$\d+", r"\1", snippet)
        label = str(preset.get("label") or plain)
    else:
        return None
    markdown_description = preset.get("markdownDescription") or preset.get("description")
    quoted = plain if plain[:1] != "[" or depth == 0 else label
    return Proposal(
        label,
        "value",
        slot.span,
        plain + slot.after,
        snippet + slot.after,
        documentation=markdown_description if isinstance(markdown_description, str) else "",
        filter=filter_of(tree, slot, quoted),
    )


def _enum_words(schema: Schema, at: int) -> str:
    for word in ("markdownEnumDescriptions", "enumDescriptions"):
        descriptions = list_of(schema.get(word))
        if at < len(descriptions) and isinstance(descriptions[at], str) and descriptions[at]:
            return descriptions[at]
    return _words(schema)


def _words(schema: Schema) -> str:
    markdown_description: Any = schema.get("markdownDescription") or schema.get("description")
    return markdown_description if isinstance(markdown_description, str) else ""


_MAX_SEEN = 20_000


def _objects(root: JsonNode | None) -> Iterator[tuple[str, JsonNode]]:
    """Values of the text with their keys, a bounded number."""
    stack: list[tuple[str, JsonNode]] = [("", root)] if root is not None else []
    seen = 0
    while stack and seen < _MAX_SEEN:
        key, node = stack.pop()
        seen += 1
        yield key, node
        if node.kind == "array":
            stack.extend(("", item) for item in reversed(node.items[: _MAX_SEEN - seen]))
        else:
            members = node.members[: _MAX_SEEN - seen]
            stack.extend((member.key, member.value) for member in reversed(members) if member.value is not None)


def keys_alike(tree: JsonTree, slot: Slot) -> Iterator[str]:
    """Keys of objects that stand in the same list, or under the same key elsewhere."""
    if not slot.path or tree.root is None:
        return
    if isinstance(slot.path[-1], int):
        above = tree.root.at(slot.path[:-1])
        alike = [item for item in above.items if item is not slot.container] if above is not None else []
    else:
        alike = [node for key, node in _objects(tree.root) if key == slot.path[-1] and node is not slot.container]
    seen: dict[str, None] = {}
    for node in alike[:_MAX_VALUES]:
        seen.update((member.key, None) for member in node.members[:_MAX_VALUES])
    yield from seen


def values_alike(tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Values that the same key has elsewhere, or that stand in the same list."""
    name = slot.path[-1] if slot.path else None
    if isinstance(name, int):
        nodes = [item for item in (slot.container.items if slot.container is not None else []) if item is not slot.node]
    else:
        nodes = [
            node for key, node in _objects(tree.root) if name is not None and key == name and node is not slot.node
        ]
    for node in nodes[:_MAX_VALUES]:
        if node.kind in ("object", "array"):
            yield value_item(tree, slot, {} if node.kind == "object" else [], node.kind)
        elif node.kind == "boolean":
            yield value_item(tree, slot, True)
            yield value_item(tree, slot, False)
        elif node.kind != "error":
            written = tree.text[node.start : node.end]
            filter_text = filter_of(tree, slot, written)
            text = written + slot.after
            yield Proposal(written, "value", slot.span, text, escape_snippet(text), filter=filter_text)
