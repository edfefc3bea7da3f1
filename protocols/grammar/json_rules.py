"""A JSON Schema as GBNF rules for JSON text.

Every sentence of the rules is JSON that fits the schema, as far as its keywords can be said in a grammar; a remark in the
grammar's head names each that cannot. Properties come in the order of the schema; names that it does not declare are offered only
where it opens itself. Must not know protocols.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.action.decode import escape
from tamis.protocols.grammar.branches import Branch, branches_of
from tamis.protocols.grammar.rules import (
    CONTROLS,
    UNBOUNDED,
    Escapes,
    Rules,
    avoiding,
    bounds_of,
    either,
    literal,
    spellings,
)
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object
from tamis.protocols.writing.values import json_text

# JSON strings, numbers and free values as GBNF, for every surrounding that JSON text stands in. What a surrounding forbids inside JSON (a closing
# marker, markup) can only stand in a string, where an escape says it too.


class Surrounding(msgspec.Struct, frozen=True):
    """Where JSON text stands. ``words`` must not be in it, nor ``chars``; ``escapes`` are written as escapes in constants."""

    name: str
    words: tuple[str, ...] = ()
    chars: str = ""
    escapes: str = ""


PLAIN = Surrounding("json")
MARKUP = Surrounding("xml-json", chars="<&", escapes="<&")
SECTION = Surrounding("cdata-json", words=("]]>",))
TAM = Surrounding("tam-json", words=("«««", "»»»"))
VCP = Surrounding("vcp-json", chars="「", escapes="「<")
HERMES = Surrounding("hermes-json", words=("<tool_", "</tool_"))

_SHARED = {
    # Few blanks at a time: a model must not fill its answer with them.
    "ws": r'("\n"{1,2} [ \t]{0,20} | " ")?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "digits": "[0-9]{1,16}",
    "whole": "[1-9] [0-9]{0,18}",
    "natural": '"0" | whole',
    "integer": '"0" | "-"? whole',
    # An exponent stays within what a double can say.
    "exponent": '[eE] [-+]? ([0-9]{1,2} | [12] [0-9] [0-9] | "30" [0-7])',
    "positive": '("0" | [1-9] [0-9]{0,15}) ("." digits)? | [0-9] ("." digits)? exponent',
    "number": '"-"? positive',
    "hex": "[0-9a-fA-F]",
    # No half of a surrogate pair alone and no NUL.
    "code": '[1-9a-cA-CefEF] hex hex hex | "0" [1-9a-fA-F] hex hex | "00" [1-9a-fA-F] hex | "000" [1-9a-fA-F]'
    ' | [dD] [0-7] hex hex | [dD] [89abAB] hex hex "\\\\u" [dD] [c-fC-F] hex hex',
    "plain-escape": '"\\\\" (["\\x5C/] | "u" code)',
    "escape": '"\\\\" (["\\x5C/bfnrt] | "u" code)',
    # Markup inside a string; a reference to a quote would end it.
    "xml-plain-escape": 'plain-escape | "&" ("amp" | "lt" | "gt") ";"',
    "xml-escape": 'escape | "&" ("amp" | "lt" | "gt") ";"',
}


def shared(rules: Rules, name: str) -> str:
    """A rule that every JSON text uses, defined at its first mention."""
    if not rules.has(name):
        rules.define(name, _SHARED[name])
        for other in _needed(name):
            shared(rules, other)
    return name


def _needed(name: str) -> tuple[str, ...]:
    return {
        "natural": ("whole",),
        "integer": ("whole",),
        "positive": ("digits", "exponent"),
        "number": ("positive",),
        "code": ("hex",),
        "plain-escape": ("code",),
        "escape": ("code",),
        "xml-plain-escape": ("plain-escape",),
        "xml-escape": ("escape",),
    }.get(name, ())


def string(rules: Rules, around: Surrounding) -> str:
    """The rule of a JSON string."""
    name = f"{around.name}-string"
    if not rules.has(name):
        rules.define(name, "")
        without = '"\\\n\r\t' + around.chars + CONTROLS
        kind = "xml-" if around is MARKUP else ""
        escapes = Escapes(shared(rules, f"{kind}escape"), shared(rules, f"{kind}plain-escape"))
        inner = avoiding(rules, f"{around.name}-char", around.words, '"', without=without, escapes=escapes)
        rules.define(name, f'"\\"" {inner}')
    return name


def value(rules: Rules, around: Surrounding) -> str:
    """The rule of any JSON value."""
    name = f"{around.name}-value"
    if rules.has(name):
        return name
    rules.define(name, "")
    free = [free_object(rules, around), free_array(rules, around), string(rules, around)]
    return rules.define(name, " | ".join([*free, *(shared(rules, kind) for kind in ("number", "boolean", "null"))]))


def free_object(rules: Rules, around: Surrounding, of: str | None = None) -> str:
    """The rule of an object with any names; ``of`` is the rule of its values."""
    pair = f"{string(rules, around)} ws {literal(':')} ws {of or f'{around.name}-value'}"
    name = rules.name(f"{around.name}-object") if of else f"{around.name}-object"
    if of is None and rules.has(name):
        return name
    rules.define(name, f'"{{" ws ({pair} ws ("," ws {pair} ws)*)? "}}"')
    shared(rules, "ws")
    if of is None:
        value(rules, around)
    return name


def free_array(rules: Rules, around: Surrounding) -> str:
    """The rule of an array of any values."""
    name = f"{around.name}-array"
    if not rules.has(name):
        item = f"{around.name}-value"
        rules.define(name, f'"[" ws ({item} ws ("," ws {item} ws)*)? "]"')
        shared(rules, "ws")
        value(rules, around)
    return name


def constant(around: Surrounding, json_value: Json) -> str:
    """A JSON value as it is, with what the surroundings forbid as escapes."""
    if around is MARKUP and "]]>" in (text := json_text(json_value)):
        return literal(escape(text))
    text = json_text(json_value, around.escapes)
    for word in around.words:
        text = text.replace(word, word[:-1] + f"\\u{ord(word[-1]):04x}")
    return literal(text)


def scalars(rules: Rules, kinds: list[str]) -> str:
    """One of several scalar kinds."""
    return either([shared(rules, kind) for kind in kinds])


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
            return [constant(around, item) for item in branch.constants]
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
        declared = schema.get("properties")
        properties: dict[str, Json] = dict(declared) if is_object(declared) else {}
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
        alternatives = spellings(low, high)
        return either(alternatives) if alternatives else nothing(rules)
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
    limit = schema.get(keyword)
    return int(limit) if isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit >= 0 else None
