"""Schemas of parameters as types of an XML Schema 1.0, for the text or the elements that an ACTION block has for a value.

A type refuses no value that the schema takes as it is written canonically; what a type cannot say is left open and named among
the losses. Types are global and shared where they say the same. Must not know blocks or tools.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from tamis.protocols.export.losses import Losses, below
from tamis.protocols.model import Json
from tamis.protocols.schema.regex import PatternError, compile_pattern, forks
from tamis.protocols.schema.words import is_constraint, is_list, is_object, types_of
from tamis.protocols.writing.values import json_text

# Patterns of JSON Schemas as XML Schema writes them; None where XML Schema has no words for one. XML Schema's patterns always hold for the whole text
# and know no anchors, no look-around and no back references.


MAX_REPEAT = 1_000
"""Repeats that count further, alone or inside each other, are not written: a validator may build that many states."""
MAX_CHARS = 4_000
_BEGIN = ("AT_BEGINNING", "AT_BEGINNING_STRING")
_END = "AT_END_STRING"
_ANYTHING = r"[\s\S]*"
# What Python's and JavaScript's \s take, of the characters that XML has.
_SPACE = "\\t\\n\\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PATTERN_SPECIAL = frozenset("\\|.?*+(){}[]^-")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML text can hold."""

Items = list[tuple[Any, Any]]


class _UnsaidError(Exception):
    """A part that XML Schema cannot say."""


def xml_pattern(pattern: str) -> str | None:
    """The pattern of an XML Schema that takes the texts in which an ECMA 262 pattern is found; not yet escaped for XML."""
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return None
    if compiled.risk:
        return None
    parser: Any = importlib.import_module("re._parser")
    try:
        items = cast("Items", list(parser.parse(compiled.regex.pattern)))
        begins = bool(items) and _is_at(items[0], *_BEGIN)
        ends = bool(items) and _is_at(items[-1], _END)
        # A validator goes back through a text as Python does, no limit of ours stands before it, and libxml2 gives up.
        if forks(items[begins : len(items) - ends], ends=ends) + (not begins) > 1:
            return None
        written = _whole(items)
    except (_UnsaidError, RecursionError):
        return None
    return written if len(written) <= MAX_CHARS else None


def _whole(items: Items) -> str:
    """A pattern that is searched for as one that the whole text must match."""
    if len(items) == 1 and str(items[0][0]) == "BRANCH":
        return "|".join(_whole(list(branch)) for branch in items[0][1][1])
    begins = bool(items) and _is_at(items[0], *_BEGIN)
    items = items[begins:]
    ends = bool(items) and _is_at(items[-1], _END)
    items = items[: len(items) - ends]
    return f"{'' if begins else _ANYTHING}{_sequence(items, 1)}{'' if ends else _ANYTHING}"


def _is_at(item: tuple[Any, Any], *names: str) -> bool:
    return str(item[0]) == "AT" and str(item[1]) in names


def _sequence(items: Items, repeated: int) -> str:
    return "".join(_item(str(op), av, repeated) for op, av in items)


def _item(name: str, av: Any, repeated: int) -> str:
    if name == "LITERAL":
        return _char(int(av))
    if name == "NOT_LITERAL":
        return f"[^{_char(int(av))}]"
    if name == "ANY":
        return r"[^\n]"
    if name == "IN":
        return _set(list(av))
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeat(int(av[0]), av[1], list(av[2]), repeated)
    if name == "BRANCH":
        return f"({'|'.join(_sequence(list(branch), repeated) for branch in av[1])})"
    # A group that switches flags means other characters.
    if name == "SUBPATTERN" and not av[1] and not av[2]:
        return f"({_sequence(list(av[3]), repeated)})"
    raise _UnsaidError


def _repeat(least: int, most: Any, body: Items, repeated: int) -> str:
    endless = str(most) == "MAXREPEAT"
    count = repeated * max(least, 1 if endless else int(most), 1)
    if count > MAX_REPEAT:
        raise _UnsaidError
    return f"({_sequence(body, count)}){{{least},{'' if endless else int(most)}}}"


def _set(members: Items) -> str:
    negated = bool(members) and str(members[0][0]) == "NEGATE"
    parts = [_member(str(op), av) for op, av in members[negated:]]
    if "" in parts:
        # \S stands for all but some: alone it is their negation, beside others it cannot be said
        if len(parts) > 1:
            raise _UnsaidError
        return f"[{_SPACE}]" if negated else f"[^{_SPACE}]"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _member(name: str, av: Any) -> str:
    """One member of a set; empty for all that is no space."""
    if name == "LITERAL":
        return _char(int(av))
    if name == "RANGE":
        return f"{_char(int(av[0]))}-{_char(int(av[1]))}"
    if name == "CATEGORY" and str(av) == "CATEGORY_SPACE":
        return _SPACE
    if name == "CATEGORY" and str(av) == "CATEGORY_NOT_SPACE":
        return ""
    raise _UnsaidError


def _char(code: int) -> str:
    char = chr(code)
    if UNWRITABLE.match(char):
        raise _UnsaidError
    return _NAMED.get(char) or (f"\\{char}" if char in _PATTERN_SPECIAL else char)


MAX_LEVELS = 16
"""Values that nest deeper are left open."""
MAX_BOUND = 10**18
"""Bounds beyond it are not written: validators differ in how many digits they take."""
MAX_VALUES = 5_000
_MAX_REAL = 1e300
_MAX_LENGTH = 2**31 - 1
# Letters that every edition of XML takes in a name; a validator of an older one refuses more of the others than it should.
_LETTERS = "A-Za-z_À-ÖØ-öø-ıΑ-ΡΣ-ώЁ-ЌЎ-яё-ќ一-龥ぁ-ゔァ-ヺ가-힣"
_NAME = re.compile(f"[{_LETTERS}][{_LETTERS}0-9.\\-]*")
_SPECIAL = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)
_ANY = '<xs:sequence><xs:any processContents="skip" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>'
_NUMBER = r"\-?[0-9]+(\.[0-9]+)?([eE][+\-]?[0-9]+)?"
_CHOICES = ("anyOf", "oneOf")


class Type(NamedTuple):
    """A type by its name. ``simple``: it has text only. ``repeats``: the element may stand several times, as a list."""

    name: str
    simple: bool
    repeats: bool = False


class Child(NamedTuple):
    """A parameter, or a member of an object, as an element."""

    name: str
    type: Type
    required: bool
    about: str = ""

    def element(self, occurs: str = "") -> str:
        """The declaration of the element."""
        text = documentation(self.about)
        return f'<xs:element name="{self.name}" type="{self.type.name}"{occurs}' + (
            f">{text}</xs:element>" if text else "/>"
        )


STRING = Type("xs:string", True)
ANY = Type("any", False)


def is_xml_name(name: str) -> bool:
    """Whether an element of an XML Schema may have this name: XML's names, without a colon."""
    return _NAME.fullmatch(name) is not None and len(name) <= 256


def escaped(text: str) -> str:
    """A text for an attribute or an element; characters that XML has not become U+FFFD."""
    return UNWRITABLE.sub("\ufffd", text).translate(_SPECIAL)


def documentation(text: str) -> str:
    """What is said to a reader of the schema, or nothing."""
    if not text:
        return ""
    shown = escaped(text).replace("&#10;", "\n")
    return f"<xs:annotation><xs:documentation>{shown}</xs:documentation></xs:annotation>"


def every(children: Iterable[Child]) -> str:
    """Each of these once, in any order; those that are not required may be missing."""
    optional = ' minOccurs="0"'
    return f"<xs:all>{''.join(child.element('' if child.required else optional) for child in children)}</xs:all>"


def required_names(schema: dict[str, Json]) -> list[str]:
    """The names that an object schema requires, in its order."""
    listed = schema.get("required")
    return list(dict.fromkeys(name for name in listed if isinstance(name, str))) if is_list(listed) else []


def is_open(schema: dict[str, Json]) -> bool:
    """Whether an object schema says that it takes members that it does not declare."""
    return schema.get("additionalProperties", False) is not False or "patternProperties" in schema


class Types:
    """Makes types and holds them for the document."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, str], str] = {}

    def declarations(self) -> list[str]:
        """The global types, in the order in which they were met."""
        return [
            f'<xs:complexType name="any" mixed="true">{_ANY}</xs:complexType>',
            *(
                f'<xs:{kind} name="{name}"{attributes}>{body}</xs:{kind}>'
                for (kind, attributes, body), name in self._names.items()
            ),
        ]

    def named(self, kind: str, body: str, attributes: str = "") -> str:
        """The name of a global type (``simpleType`` or ``complexType``)."""
        return self._names.setdefault((kind, attributes, body), f"t{len(self._names) + 1}")

    def with_attribute(self, value: Type, attribute: str) -> str:
        """The name of the type of an element with such a value and an attribute."""
        if value.simple:
            extension = f'<xs:extension base="{value.name}">{attribute}</xs:extension>'
            return self.named("complexType", f"<xs:simpleContent>{extension}</xs:simpleContent>")
        # An extension of xs:all is not allowed, so that the content is written again.
        bodies = (body for (_, _, body), name in self._names.items() if name == value.name)
        return self.named("complexType", next(bodies, _ANY) + attribute, ' mixed="true"')

    def union(self, parts: Iterable[Type]) -> Type:
        """The type of what any of these takes."""
        several = list(dict.fromkeys(part._replace(repeats=False) for part in parts))
        if len(several) == 1:
            return several[0]
        if not all(part.simple for part in several):
            return ANY
        if STRING in several:
            return STRING
        members = " ".join(part.name for part in several)
        return Type(self.named("simpleType", f'<xs:union memberTypes="{members}"/>'), True)

    def of(self, schema: Json, path: str, losses: Losses, level: int = 0) -> Type:
        """The type of a value; ``path`` is a JSON Pointer into the manifest. The schema has no references."""
        if not is_object(schema):
            return ANY
        if level > MAX_LEVELS:
            losses.add("too-deep", path, f"it nests deeper than {MAX_LEVELS} levels: any value is allowed here")
            return ANY
        if "const" in schema or is_list(schema.get("enum")):
            listed = [schema["const"]] if "const" in schema else schema["enum"]
            return self._enumeration(listed if is_list(listed) else [], path, losses)
        if any(key in schema for key in _CHOICES):
            return self._choice(schema, path, losses, level)
        for key in ("allOf", "not", "if", "dependentSchemas", "multipleOf"):
            if key in schema:
                losses.add("keyword-dropped", below(path, key), f"an XML Schema cannot say '{key}'")
        if "allOf" in schema:
            return ANY
        kinds = types_of(schema)
        if not kinds:
            return ANY if not any(map(is_constraint, schema)) else self._untyped(path, losses)
        if "array" in kinds or "object" in kinds:
            return self._of_elements(schema, [kind for kind in kinds if kind != "null"], path, losses, level)
        return self.union(self._scalar(kind, schema, path, losses) for kind in kinds)

    def _untyped(self, path: str, losses: Losses) -> Type:
        losses.add("type-missing", path, "the schema names no type: any value is allowed here")
        return ANY

    # Texts

    def _scalar(self, kind: str, schema: dict[str, Json], path: str, losses: Losses) -> Type:
        if kind == "boolean":
            return self._listed(["true", "false"])
        if kind == "null":
            return self._listed(["null"])
        if kind == "string":
            facets = [*_lengths(schema, path, losses), *_pattern(schema, path, losses)]
            return self._restricted("xs:string", facets) if facets else STRING
        bounds = _bounds(schema, path, losses, whole=kind == "integer")
        if kind == "integer":
            return self._restricted("xs:integer", bounds)
        return self._restricted("xs:double", [("pattern", _NUMBER), *bounds])

    def _restricted(self, base: str, facets: list[tuple[str, str]]) -> Type:
        if not facets:
            return Type(base, True)
        body = "".join(f'<xs:{name} value="{escaped(value)}"/>' for name, value in facets)
        return Type(self.named("simpleType", f'<xs:restriction base="{base}">{body}</xs:restriction>'), True)

    def _listed(self, texts: list[str]) -> Type:
        # Blanks around a value do not count where no value has any that would be lost.
        plain = all(text and text == " ".join(text.split()) for text in texts)
        return self._restricted("xs:token" if plain else "xs:string", [("enumeration", text) for text in texts])

    def _enumeration(self, values: list[Json], path: str, losses: Losses) -> Type:
        texts: list[str] = []
        for value in values:
            if is_list(value) or is_object(value):
                losses.add("values-open", path, "lists and objects among the values cannot be listed: any is allowed")
                return ANY
            texts += [value] if isinstance(value, str) else _spellings(value)
        kept = list(dict.fromkeys(text for text in texts if UNWRITABLE.search(text) is None))
        if len(kept) < len(set(texts)):
            losses.add("value-dropped", path, "values with characters that XML has not are left out")
        if not kept or len(kept) > MAX_VALUES:
            losses.add("values-open", path, f"only 1 to {MAX_VALUES} values can be listed: any is allowed")
            return ANY
        return self._listed(kept)

    def _choice(self, schema: dict[str, Json], path: str, losses: Losses, level: int) -> Type:
        key = next(key for key in _CHOICES if key in schema)
        parts = schema[key]
        beside = [name for name in schema if name != key and is_constraint(name) and name != "type"]
        if beside or not is_list(parts) or not parts:
            losses.add(
                "keyword-dropped", below(path, key), f"'{key}' beside other keywords cannot be said: any is allowed"
            )
            return ANY
        union = self.union(self.of(part, below(path, key, i), losses, level + 1) for i, part in enumerate(parts))
        if union is ANY:
            losses.add(
                "keyword-dropped", below(path, key), "alternatives with elements cannot be told apart: any is allowed"
            )
        elif key == "oneOf" and len(parts) > 1:
            losses.add(
                "keyword-dropped",
                below(path, key),
                "that exactly one alternative fits cannot be said: one fits at least",
            )
        return union

    # Elements

    def _of_elements(self, schema: dict[str, Json], kinds: list[str], path: str, losses: Losses, level: int) -> Type:
        if len(kinds) > 1:
            losses.add("alternatives", path, "a list or an object beside other types cannot be said: any is allowed")
            return ANY._replace(repeats="array" in kinds)
        children = (
            self._items(schema, path, losses, level)
            if kinds == ["array"]
            else self._members(schema, path, losses, level)
        )
        repeats = kinds == ["array"]
        if children is None:
            return ANY._replace(repeats=repeats)
        declared = "".join(child.element() for child in children)
        body = (
            f'<xs:choice minOccurs="0" maxOccurs="unbounded">{declared}</xs:choice>' if declared else "<xs:sequence/>"
        )
        if not repeats and declared and not any(child.type.repeats for child in children):
            # JSON text may stand in place of the elements, so that none of them is required.
            body = every([child._replace(required=False) for child in children])
        return Type(self.named("complexType", body, ' mixed="true"'), False, repeats)

    def _items(self, schema: dict[str, Json], path: str, losses: Losses, level: int) -> list[Child] | None:
        """``<item>``, and where an item is an object also its members: the element is then one item of the list."""
        for key in ("minItems", "maxItems", "uniqueItems", "contains", "prefixItems"):
            if key in schema:
                losses.add(
                    "keyword-dropped", below(path, key), f"'{key}' cannot be said of a list that may be JSON text"
                )
        items = schema.get("items")
        if not is_object(items) or "prefixItems" in schema:
            return None
        inner = self.of(items, below(path, "items"), losses, level + 1)
        item = Child("item", inner._replace(repeats=False), False)
        if types_of(items) != ("object",) or inner.name == ANY.name:
            return [item]
        members = self._members(items, below(path, "items"), losses, level + 1)
        return None if members is None or any(member.name == "item" for member in members) else [item, *members]

    def _members(self, schema: dict[str, Json], path: str, losses: Losses, level: int) -> list[Child] | None:
        if is_open(schema) or not is_object(schema.get("properties")):
            return None
        return self.children(schema, path, losses, level)

    def children(self, schema: dict[str, Json], path: str, losses: Losses, level: int = 0) -> list[Child]:
        """The members of an object whose names are XML names, in the order of the schema."""
        properties = schema.get("properties")
        needed = set(required_names(schema))
        children: list[Child] = []
        for name, part in properties.items() if is_object(properties) else ():
            where = below(path, "properties", name)
            if not is_xml_name(name):
                losses.add("no-xml-name", where, "the name is no XML name without a colon: no element can have it")
                continue
            about = part.get("description") if is_object(part) else None
            child_type = self.of(part, where, losses, level + 1)
            children.append(Child(name, child_type, name in needed, about if isinstance(about, str) else ""))
        return children


def _spellings(value: Json) -> list[str]:
    text = json_text(value)
    whole = isinstance(value, float) and value.is_integer() and abs(value) < MAX_BOUND
    return [text, str(int(value))] if whole and isinstance(value, float) else [text]


def _lengths(schema: dict[str, Json], path: str, losses: Losses) -> list[tuple[str, str]]:
    keywords = [key for key in ("minLength", "maxLength") if key in schema]
    counts = {key: int(count) for key in keywords if (count := _number(schema[key], _MAX_LENGTH)) is not None}
    least, most = counts.get("minLength", 0), counts.get("maxLength", _MAX_LENGTH)
    if len(counts) < len(keywords) or not 0 <= least <= most:
        losses.add("bounds-dropped", path, "its bounds of length cannot be said")
        return []
    return [(key, str(count)) for key, count in counts.items()]


def _pattern(schema: dict[str, Json], path: str, losses: Losses) -> list[tuple[str, str]]:
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return []
    written = xml_pattern(pattern)
    if written is None:
        losses.add("pattern-dropped", below(path, "pattern"), "the pattern cannot be said in an XML Schema")
        return []
    return [("pattern", written)]


def _bounds(schema: dict[str, Json], path: str, losses: Losses, *, whole: bool) -> list[tuple[str, str]]:
    keywords = [key for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if key in schema]
    most = MAX_BOUND if whole else _MAX_REAL
    numbers = {key: bound for key in keywords if (bound := _number(schema[key], most)) is not None}
    if len(numbers) < len(keywords):
        losses.add("bounds-dropped", path, "bounds that are no numbers or very large ones cannot be said")
    low = _tighter(numbers, "minimum", "exclusiveMinimum", 1)
    high = _tighter(numbers, "maximum", "exclusiveMaximum", -1)
    if whole:
        low = None if low is None else (math.floor(low[0]) + 1 if low[1] else math.ceil(low[0]), False)
        high = None if high is None else (math.ceil(high[0]) - 1 if high[1] else math.floor(high[0]), False)
    if low is not None and high is not None and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
        losses.add("bounds-dropped", path, "no number lies between its bounds, which cannot be said")
        return []
    facets: list[tuple[str, str]] = []
    for side, bound in (("min", low), ("max", high)):
        if bound is not None:
            facets.append((f"{side}{'Exclusive' if bound[1] else 'Inclusive'}", json_text(bound[0])))
    return facets


def _number(value: Json, most: float) -> int | float | None:
    """A number whose size is below ``most``; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < most:
        return None
    return value


def _tighter(numbers: dict[str, int | float], closed: str, excluded: str, sign: int) -> tuple[int | float, bool] | None:
    """The bound of one side that refuses more, and whether it is excluded itself."""
    bounds = [(numbers[key], key == excluded) for key in (closed, excluded) if key in numbers]
    return max(bounds, key=lambda bound: (sign * bound[0], bound[1]), default=None)
