"""A schema in the words that a target knows, as near as these come: each place where it comes out otherwise is a loss.

For OpenAI's strict manner (every object closed, every property required) and for Gemini's ``parameters`` (words of OpenAPI 3.0). The
schema comes without references but those of the strict manner to what holds itself. Must not know tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import msgspec

from tamis.protocols.export.losses import Losses, below
from tamis.protocols.export.shape import (
    ABOUT,
    MAX_DEPTH,
    OF_ONE_TYPE,
    conjunction,
    disjoint,
    implied_type,
    is_told,
    nullable,
    only_null,
    shown,
    type_name,
    whole_bounds,
)
from tamis.protocols.model import Json
from tamis.protocols.schema.words import ANNOTATIONS, SILENT, is_constraint, is_list, is_object, types_of

MAX_SHOWN = 20
MAX_NODES = 10_000
_HANDLED = frozenset(
    (
        *("type", "enum", "const", "properties", "required", "additionalProperties", "unevaluatedProperties"),
        *("items", "prefixItems", "additionalItems"),
    )
)
_SCALARS = ("string", "integer", "number", "boolean")


class Rules(msgspec.Struct, frozen=True):
    """What a target knows beside types, properties, items, enums and ``anyOf``."""

    name: str
    """What the target is called in sentences."""
    plain: frozenset[str]
    """Keywords that are taken over as they are."""
    formats: frozenset[str]
    strict: bool
    """Every object is closed and all that it declares required; several types may stand in a list, and null is one of them. Else objects
    are open, there is one type, null is ``nullable``, and allowed values are texts."""


class Subset:
    """Rewrites the schemas of one definition."""

    def __init__(self, rules: Rules, losses: Losses) -> None:
        self._rules = rules
        self._losses = losses
        self._left = MAX_NODES

    def schema(self, node: Json, path: str, depth: int = 0) -> dict[str, Json]:
        """One schema."""
        if node is False:
            self._losses.add("nothing-fits", path, "no value is allowed here, which this form cannot say")
            node = True
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            why = f"it nests deeper than {MAX_DEPTH} levels" if depth > MAX_DEPTH else "the schema becomes too large"
            self._losses.add("too-deep", path, f"{why}: any value is allowed here")
            node = True
        if not is_object(node):
            return self._anything({}, path)
        if "$ref" in node:
            return {"$ref": node["$ref"]}
        node = self._one_value(self._joined(node, path), path)
        words = self._words(node, path)
        if any(is_list(node.get(key)) for key in ("anyOf", "oneOf")):
            return self._choice(node, words, path, depth)
        kinds = self._kinds(node, path)
        if not kinds:
            return self._anything(words, path)
        if "enum" in node:
            return self._enum(node, kinds, words, path, depth)
        return self._of_kinds(node, kinds, words, path, depth)

    # What stands beside the types

    def _joined(self, node: dict[str, Json], path: str) -> dict[str, Json]:
        """The schema with what stands in ``allOf`` as its own words."""
        for _ in range(MAX_DEPTH):
            parts = node.get("allOf")
            if not is_list(parts):
                return node
            rest = {key: value for key, value in node.items() if key != "allOf"}
            merged, exact = conjunction([rest, *parts])
            if not exact or not is_object(merged):
                self._losses.add(
                    "all-of-merged", path, "its 'allOf' was joined to one schema, which is not quite the same"
                )
            node = merged if is_object(merged) else rest
        return node

    def _one_value(self, node: dict[str, Json], path: str) -> dict[str, Json]:
        if "const" not in node:
            return node
        rest = {key: value for key, value in node.items() if key != "const"}
        merged, exact = conjunction([{"enum": [node["const"]]}, rest])
        if not exact:
            self._losses.add("nothing-fits", path, "'const' and 'enum' have no value in common")
        return merged if is_object(merged) else rest

    def _words(self, node: dict[str, Json], path: str) -> dict[str, Json]:
        """What it says of itself to people and models."""
        words = {key: node[key] for key in ("title", "description") if isinstance(node.get(key), str)}
        for key in node:
            if key in ("examples", "deprecated", "readOnly", "writeOnly"):
                self._losses.add("keyword-dropped", below(path, key), f"{self._rules.name} does not know '{key}'")
        if "default" in node:
            if "default" in self._rules.plain:
                words["default"] = node["default"]
            else:
                text = f"Default: {shown(node['default'])}."
                words["description"] = f"{words['description']} {text}" if words.get("description") else text
                what = f"{self._rules.name} takes no 'default': it is told in the description"
                self._losses.add("default-dropped", below(path, "default"), what)
        return words

    def _kinds(self, node: dict[str, Json], path: str) -> tuple[str, ...]:
        """The types of a schema, also where it only implies them; none where any value is allowed."""
        kinds = types_of(node)
        values = node.get("enum")
        if is_list(values):
            of_values = tuple(dict.fromkeys(type_name(value) for value in values))
            if not kinds:
                return of_values
            kinds = tuple(kind for kind in of_values if kind in kinds or (kind == "integer" and "number" in kinds))
            if not kinds and of_values:
                self._losses.add("nothing-fits", path, "none of the listed values has the type that is asked for")
            return kinds or of_values
        if kinds:
            return tuple(kind for kind in kinds if kind != "integer" or "number" not in kinds)
        kind = implied_type(node)
        if kind is None:
            return ()
        implied = sorted(key for key in node if key in ABOUT[kind] and key != "format") or ["format"]
        what = f"'{implied[0]}' stands here without a type: only values of type {kind} are taken"
        self._losses.add("type-assumed", path, what)
        return (kind,)

    def _anything(self, words: dict[str, Json], path: str) -> dict[str, Json]:
        what = "any value is allowed here; this form needs a type, so only texts, numbers and booleans can be given"
        self._losses.add("any-value", path, what)
        if self._rules.strict:
            return {"type": ["string", "number", "boolean", "null"], **words}
        return self._any_of([{"type": kind} for kind in ("string", "number", "boolean")], words, null=True)

    # Choices

    def _choice(self, node: dict[str, Json], words: dict[str, Json], path: str, depth: int) -> dict[str, Json]:
        key = "anyOf" if is_list(node.get("anyOf")) else "oneOf"
        if key == "anyOf" and "oneOf" in node:
            self._losses.add("keyword-dropped", below(path, "oneOf"), "it stands beside 'anyOf', which is kept")
        rest = {
            name: value
            for name, value in node.items()
            if name not in ("anyOf", "oneOf") and (is_constraint(name) or name == "$defs")
        }
        alternatives = node[key]
        branches: list[Json] = []
        for i, branch in enumerate(alternatives if is_list(alternatives) else []):
            schema, exact = conjunction([rest, branch]) if rest else (branch, True)
            if not exact:
                what = "what stands beside the choice was joined to each of its branches, which is not quite the same"
                self._losses.add("all-of-merged", below(path, key, i), what)
            if schema is not False:
                branches.append(schema)
        if key == "oneOf" and not disjoint(branches):
            what = "'oneOf' became 'anyOf': values that fit more than one branch are accepted too"
            self._losses.add("one-of-as-any-of", below(path, key), what)
        if not branches:
            return self.schema(rest or True, path, depth + 1)
        nulls = [only_null(branch) for branch in branches]
        null = any(nulls) and not self._rules.strict
        parts = [
            self.schema(branch, below(path, key, i), depth + 1)
            for i, (branch, is_null) in enumerate(zip(branches, nulls, strict=True))
            if not (null and is_null)
        ]
        if not parts:
            return self._null(words, path)
        if len(parts) == 1:
            schema = {**parts[0], **words} if "$ref" not in parts[0] else parts[0]
            return self._nullable(schema) if null else schema
        return self._any_of(parts, words, null=null)

    def _any_of(self, parts: Sequence[dict[str, Json]], words: dict[str, Json], *, null: bool) -> dict[str, Json]:
        flat: list[Json] = []
        for part in parts:
            inner = part.get("anyOf")
            flat += inner if is_list(inner) and len(part) == 1 else [part]
        if self._rules.strict:
            return {"anyOf": flat, **words}
        # beside anyOf nothing else may stand: each branch says what the whole says
        told: list[Json] = []
        for part in flat:
            union = (
                {**{key: value for key, value in words.items() if key == "description"}, **part}
                if is_object(part)
                else {}
            )
            told.append(self._nullable(union) if null else union)
        return {"anyOf": told}

    def _nullable(self, schema: dict[str, Json]) -> dict[str, Json]:
        inner = schema.get("anyOf")
        if self._rules.strict:
            return nullable(schema)
        if is_list(inner):
            return {**schema, "anyOf": [self._nullable(part) if is_object(part) else part for part in inner]}
        return {**schema, "nullable": True}

    def _null(self, words: dict[str, Json], path: str) -> dict[str, Json]:
        if self._rules.strict:
            return {"type": "null", **words}
        self._losses.add("any-value", path, "only null is allowed here, which this form cannot say")
        return {"type": "string", "nullable": True, **words}

    # Allowed values

    def _enum(
        self, node: dict[str, Json], kinds: tuple[str, ...], words: dict[str, Json], path: str, depth: int
    ) -> dict[str, Json]:
        enum = node["enum"]
        values = [value for value in (enum if is_list(enum) else []) if type_name(value) in kinds]
        kept = [value for value in values if is_told(value, strict=self._rules.strict)]
        null = None in values
        if len(kept) + (null and not self._rules.strict) != len(values) or not kept:
            listed = ", ".join(map(shown, values[:MAX_SHOWN]))
            what = f"{self._rules.name} takes no such list of values: the description tells them"
            self._losses.add("enum-dropped", below(path, "enum"), what)
            words = {**words, "description": f"{words.get('description', '')} One of: {listed}.".strip()}
            rest = {key: value for key, value in node.items() if key != "enum"}
            return self._of_kinds(rest, kinds, words, path, depth)
        self._drop(node, kinds, path)
        # a pattern or a length beside the list could refuse one of its values
        beside = {
            key: node[key] for kind in kinds for key in ABOUT.get(kind, ()) if key in node and key in self._rules.plain
        }
        if self._rules.strict:
            listed = [kind for kind in kinds if kind != "integer" or "number" not in kinds]
            return {"type": listed[0] if len(listed) == 1 else list[Json](listed), **words, "enum": kept, **beside}
        schema: dict[str, Json] = {"type": "string", **words, "enum": kept, **beside}
        return self._nullable(schema) if null else schema

    # Types

    def _of_kinds(
        self, node: dict[str, Json], kinds: tuple[str, ...], words: dict[str, Json], path: str, depth: int
    ) -> dict[str, Json]:
        null = "null" in kinds
        others = [kind for kind in kinds if kind != "null"]
        self._drop(node, kinds, path)
        if not others:
            return self._null(words, path)
        if self._rules.strict and all(kind in _SCALARS for kind in others):
            listed = [*others, *(["null"] if null else [])]
            kept = {key: value for kind in others for key, value in self._of_type(node, kind, path, depth).items()}
            return {**kept, "type": listed[0] if len(listed) == 1 else list[Json](listed), **words}
        parts = [self._of_type(node, kind, path, depth) for kind in others]
        if len(parts) > 1:
            return self._any_of(
                parts if not (null and self._rules.strict) else [*parts, {"type": "null"}], words, null=null
            )
        description = parts[0].pop("description", None)
        schema = {**parts[0], **words}
        if isinstance(description, str):
            schema["description"] = f"{words['description']} {description}" if words.get("description") else description
        return self._nullable(schema) if null else schema

    def _of_type(self, node: dict[str, Json], kind: str, path: str, depth: int) -> dict[str, Json]:
        if kind == "object":
            return self._object(node, path, depth)
        if kind == "array":
            return self._array(node, path, depth)
        schema: dict[str, Json] = {"type": kind}
        for key in ABOUT.get(kind, ()):
            if key in node and key in self._rules.plain and (key != "format" or node[key] in self._rules.formats):
                schema[key] = node[key]
        if not self._rules.strict and kind == "integer":
            whole_bounds(node, schema)
        return schema

    def _drop(self, node: dict[str, Json], kinds: Iterable[str], path: str) -> None:
        """Says of each keyword that is not taken over, and that does refuse values of these types, that it is gone."""
        handled = _HANDLED if node.get("uniqueItems") is not False else _HANDLED | {"uniqueItems"}
        keywords = frozenset[str]().union(*(ABOUT.get(kind, frozenset[str]()) for kind in kinds))
        for key, value in node.items():
            if key in handled or key in SILENT or key in ANNOTATIONS or key.startswith("x-"):
                continue
            if key in OF_ONE_TYPE and key not in keywords:
                continue
            if key == "format" and value in self._rules.formats and "string" in kinds:
                continue
            if key in self._rules.plain and key != "format":
                continue
            if (
                not self._rules.strict
                and key in ("exclusiveMinimum", "exclusiveMaximum")
                and tuple(kinds) == ("integer",)
            ):
                continue
            self._losses.add("keyword-dropped", below(path, key), f"{self._rules.name} does not know '{key[:60]}' here")

    # Lists and objects

    def _array(self, node: dict[str, Json], path: str, depth: int) -> dict[str, Json]:
        schema: dict[str, Json] = {"type": "array"}
        bounds = {key: node[key] for key in ("minItems", "maxItems") if key in node}
        items, first = node.get("items"), node.get("prefixItems")
        if is_list(items):
            items, first = node.get("additionalItems", True), items
        if is_list(first) and first:
            what = "each place of the list has a schema of its own, which this form cannot say: all take any of these"
            self._losses.add("tuple-as-list", path, what)
            parts = [part for part in first if part is not False]
            if items is False:
                known = bounds.get("maxItems")
                bounds["maxItems"] = min(known, len(first)) if isinstance(known, int) else len(first)
            else:
                parts.append(True if items is None else items)
            shown = [self.schema(part, below(path, "prefixItems", i), depth + 1) for i, part in enumerate(parts)]
            distinct = list({json.dumps(part, sort_keys=True): part for part in shown}.values())
            schema["items"] = distinct[0] if len(distinct) == 1 else self._any_of(distinct, {}, null=False)
        elif items is False:
            schema["items"] = {"type": "string"}
            bounds["maxItems"] = 0
        else:
            schema["items"] = self.schema(True if items is None else items, below(path, "items"), depth + 1)
        return schema | bounds

    def _object(self, node: dict[str, Json], path: str, depth: int) -> dict[str, Json]:
        properties = node.get("properties")
        declared: dict[str, Json] = dict(properties) if is_object(properties) else {}
        needed = node.get("required")
        required = [name for name in needed if isinstance(name, str)] if is_list(needed) else []
        declared |= {name: True for name in required if name not in declared}
        more = node.get("additionalProperties", node.get("unevaluatedProperties", True))
        if more is False or not declared:
            # properties that no value may have need no mention where the others are closed
            declared = {name: part for name, part in declared.items() if part is not False or name in required}
        if not declared and depth:
            return self._text_object(more, path)
        if not self._rules.strict:
            return self._open_object(node, declared, required, more, path, depth)
        if more is not False:
            what = "only declared names can be given here: this form closes every object"
            self._losses.add("object-closed", path, what)
        schemas: dict[str, Json] = {}
        for name, part in declared.items():
            where = below(path, "properties", name)
            schema = self.schema(part, where, depth + 1)
            schemas[name] = schema if name in required else nullable(schema)
            if name not in required:
                what = f"'{name[:60]}' is optional, which this form cannot say: null stands for not given, leave it out then"
                self._losses.add("optional-nullable", where, what)
        return {"type": "object", "properties": schemas, "required": list(schemas), "additionalProperties": False}

    def _open_object(
        self, node: dict[str, Json], declared: dict[str, Json], required: list[str], more: Json, path: str, depth: int
    ) -> dict[str, Json]:
        if more is not True:
            what = "what this says of names that are not declared is gone: this form has no word for it"
            self._losses.add("object-opened", path, what)
        properties: dict[str, Json] = {
            name: self.schema(part, below(path, "properties", name), depth + 1) for name, part in declared.items()
        }
        schema: dict[str, Json] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = list[Json](required)
        return schema | {key: node[key] for key in ("minProperties", "maxProperties") if key in node}

    def _text_object(self, more: Json, path: str) -> dict[str, Json]:
        if more is False and self._rules.strict:
            return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        what = "an object with any names cannot be given in this form: it is given as a text that holds JSON"
        self._losses.add("free-object", path, what)
        return {"type": "string", "description": "A JSON object, written as text."}
