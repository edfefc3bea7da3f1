"""A JSON Schema as GBNF rules for JSON text.

Every sentence of the rules is JSON that fits the schema, as far as its keywords can be said in a grammar; a remark in the
grammar's head names each that cannot. Properties come in the order of the schema; names that it does not declare are offered only
where it opens itself. Must not know protocols.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.grammar.branches import Branch, branches_of
from tamis.protocols.grammar.integers import UNBOUNDED, bounds_of, spellings
from tamis.protocols.grammar.json_text import Surrounding, constant, free_array, free_object, shared, string, value
from tamis.protocols.grammar.rules import Rules, either, literal
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

_COMMA = '"," ws '
NOTHING = "nothing"
"""The rule that no text fits: a schema that allows no value."""
_MAX_DEPTH = 64
_MAX_COUNT = 64
"""Numbers of items up to which ``minItems`` and ``maxItems`` are kept."""


class SchemaRules:
    """Rules of the schemas of one tool; equal schemas in equal surroundings share a rule, which also closes circles."""

    def __init__(self, rules: Rules, tool: str, root: Json) -> None:
        self.rules = rules
        self.root = root
        self._tool = tool
        self._known: dict[tuple[str, bytes], str] = {}
        self._depth = 0

    def remark(self, where: str, what: str) -> None:
        """Says that something of a schema is wider in the grammar."""
        self.rules.note(f"{self._tool} {where or '/'}: wider than {what}")

    def branches(self, schema: Json, where: str) -> list[Branch]:
        """The alternatives of a schema of this tool."""
        return branches_of(schema, self.root, lambda what: self.remark(where, what))

    def rule(self, schema: Json, around: Surrounding, where: str) -> str:
        """The rule for JSON text that fits ``schema``; ``where`` is the parameter with the path in it."""
        key = (around.name, msgspec.json.encode(schema, order="sorted"))
        known = self._known.get(key)
        if known is not None:
            return known
        if self._depth >= _MAX_DEPTH or self.rules.full:
            self.remark(where, "this part: the schema is too deep or too large")
            return value(self.rules, around)
        name = self._known[key] = self.rules.name(f"{self._tool}-{where}")
        self._depth += 1
        parts = [part for branch in self.branches(schema, where) for part in self.parts(branch, around, where)]
        self._depth -= 1
        if len(parts) == 1 and self.rules.has(parts[0]):
            self._known[key] = parts[0]
            return parts[0]
        return self.rules.define(name, " | ".join(dict.fromkeys(parts)) if parts else nothing(self.rules))

    def parts(self, branch: Branch, around: Surrounding, where: str) -> list[str]:
        """The bodies of one alternative."""
        if branch.constants is not None:
            return [constant(around, one) for one in branch.constants]
        if branch.types is None:
            return [value(self.rules, around)]
        return [self._typed(name, branch.schema, around, where) for name in branch.types]

    def _typed(self, name: str, schema: dict[str, Json], around: Surrounding, where: str) -> str:
        if name == "object":
            return self._object(schema, around, where)
        if name == "array":
            return self._array(schema, around, where)
        return string(self.rules, around) if name == "string" else scalar(self.rules, name, schema)

    def _array(self, schema: dict[str, Json], around: Surrounding, where: str) -> str:
        items = schema.get("items", True)
        if is_list(items):
            self.remark(where, "items as a list")
            items = True
        first = schema.get("prefixItems")
        leading = [self.rule(part, around, f"{where}/{i}") for i, part in enumerate(first)] if is_list(first) else []
        least, most = _count(schema, "minItems") or 0, _count(schema, "maxItems")
        if max(least, most or 0) > _MAX_COUNT:
            self.remark(where, "minItems or maxItems")
            least, most = min(least, 1), None
        if most is not None:
            leading = leading[:most]
        if not leading and not least and most is None and items is True:
            return free_array(self.rules, around)
        shared(self.rules, "ws")
        item = (
            NOTHING
            if items is False
            else value(self.rules, around)
            if items is True
            else self.rule(items, around, f"{where}/items")
        )
        if item == NOTHING or most == len(leading):
            return _bracketed(_COMMA.join(f"{part} ws" for part in leading))
        more = f"({_COMMA}{item} ws)"
        low = max(least - len(leading), 0)
        high = None if most is None else most - len(leading)
        if leading:
            return _bracketed(_COMMA.join(f"{part} ws" for part in leading) + " " + _times(more, low, high))
        rest = f"{item} ws {_times(more, max(low - 1, 0), None if high is None else high - 1)}".strip()
        return _bracketed(rest if low else f"({rest})?")

    def _object(self, schema: dict[str, Json], around: Surrounding, where: str) -> str:
        given = schema.get("properties")
        properties: dict[str, Json] = dict(given) if is_object(given) else {}
        asked = schema.get("required")
        required = [name for name in asked if isinstance(name, str)] if is_list(asked) else []
        extra = schema.get("additionalProperties", not properties)
        for name in required:
            properties.setdefault(name, extra if is_object(extra) else True)
        if not properties and extra is not False:
            return free_object(self.rules, around, self.rule(extra, around, f"{where}/*") if is_object(extra) else None)
        shared(self.rules, "ws")
        pairs: list[tuple[str, bool]] = []
        for name, inner in properties.items():
            rule = self.rule(inner, around, f"{where}/{name}")
            if NOTHING not in (rule, self.rules.body(rule)) or name in required:
                pairs.append((f'{constant(around, name)} ws ":" ws {rule} ws', name in required))
        other = ""
        if extra is not False:
            more = self.rule(extra, around, f"{where}/*") if is_object(extra) else value(self.rules, around)
            other = f'{string(self.rules, around)} ws ":" ws {more} ws'
        return " ".join(filter(None, ('"{" ws', self._members(pairs, other, where), '"}"')))

    def _members(self, pairs: list[tuple[str, bool]], other: str, where: str) -> str:
        """The members in order, each with its comma only where another stands before it; linear in their number.

        ``other`` is a member of any further name, empty where there is none.
        """
        rest = other and f"({_COMMA}{other})*"
        head = other and f"({other} {rest})?"
        steps: list[tuple[str, bool, str]] = []
        for pair, needed in reversed(pairs):
            steps.append((pair, needed, rest))
            follow = f"{_COMMA}{pair}" if needed else f"({_COMMA}{pair})?"
            rest = self.rules.define(self.rules.name(f"{self._tool}-{where}-rest"), f"{follow} {rest}".strip())
        for pair, needed, after in steps:
            body = f"{pair} {after}".strip()
            if needed:
                head = body
            elif head:
                head = self.rules.define(self.rules.name(f"{self._tool}-{where}-first"), f"{body} | {head}")
            else:
                head = f"({body})?"
        return head


def scalar(rules: Rules, name: str, schema: dict[str, Json]) -> str:
    """A number, a boolean or ``null``; an integer keeps its range, and a number with a ``minimum`` of 0 has no sign."""
    if name == "integer":
        low, high = bounds_of(schema)
        if (low, high) == UNBOUNDED:
            return shared(rules, "integer")
        if (low, high) == (0, UNBOUNDED[1]):
            return shared(rules, "natural")
        found = spellings(low, high)
        return either(found) if found else nothing(rules)
    if name == "number" and (least := schema.get("minimum")) is not None and least == 0:
        return shared(rules, "positive")
    return shared(rules, name)


def nothing(rules: Rules) -> str:
    """The rule that no text fits: it needs itself, with a character before it so that no parser runs in a circle."""
    if not rules.has(NOTHING):
        rules.define(NOTHING, f"{literal(' ')} {NOTHING}")
    return NOTHING


def _bracketed(inside: str) -> str:
    return f'"[" ws {inside} "]"' if inside else '"[" ws "]"'


def _times(what: str, low: int, high: int | None) -> str:
    if high is None:
        return f"{what}*" if low == 0 else f"{what}{{{low},}}"
    return f"{what}{{{low},{high}}}" if high > 0 else ""


def _count(schema: dict[str, Json], keyword: str) -> int | None:
    found = schema.get(keyword)
    return int(found) if isinstance(found, (int, float)) and not isinstance(found, bool) and found >= 0 else None
