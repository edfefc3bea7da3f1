"""A parameter schema in words: types, required or not, allowed values, ranges, defaults, and what nests in it.

Says the same for every protocol; how a parameter is written is the protocol's. Bounded in depth and length, and says where it stopped.
Must not know prompts or tools.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.model import Json
from tamis.protocols.patterns import lazy
from tamis.protocols.schema.regex import PatternError, compile_pattern
from tamis.protocols.schema.words import as_json, is_list, is_object, resolve, type_of

MAX_DEPTH = 6
MAX_PARAMETERS = 500
MAX_VALUES = 40
MAX_SHOWN = 200


class Parameter(msgspec.Struct, frozen=True):
    """One parameter in words. ``facts`` are sentences about its values; ``parts`` are the properties of an object or of a list's items."""

    name: str
    type: str
    required: bool
    description: str = ""
    facts: tuple[str, ...] = ()
    parts: tuple[Parameter, ...] = ()
    listed: bool = False
    """A list: the protocol may have its own way to write one."""
    brief: str = ""
    """The type and the facts in the short form of a signature: ``integer 1..15 = 6``."""


def parameters_of(schema: dict[str, Json]) -> tuple[Parameter, ...]:
    """The parameters that a tool's schema declares, in its order."""
    return _Words(schema).properties(schema, 0)


def signature(parameters: tuple[Parameter, ...]) -> str:
    """``value: number, unit?: "m"|"km" = "m"``: a question mark says optional."""
    return ", ".join(_signed(parameter) for parameter in parameters)


def _signed(parameter: Parameter) -> str:
    parts = f" {{{signature(parameter.parts)}}}" if parameter.parts else ""
    return f"{parameter.name}{'' if parameter.required else '?'}: {parameter.brief}{parts}"


class _Words:
    def __init__(self, root: dict[str, Json]) -> None:
        self.root = root
        self.left = MAX_PARAMETERS

    def properties(self, schema: dict[str, Json], depth: int) -> tuple[Parameter, ...]:
        declared = schema.get("properties")
        if not is_object(declared):
            return ()
        needed = schema.get("required")
        required = {name for name in needed if isinstance(name, str)} if is_list(needed) else set[str]()
        parameters: list[Parameter] = []
        for name, property_schema in declared.items():
            self.left -= 1
            if self.left < 0:
                text = f"{len(declared) - len(parameters)} more parameters are not shown here."
                parameters.append(Parameter("…", "any", required=False, description=text, brief="any"))
                break
            parameters.append(self.parameter(name, property_schema, name in required, depth))
        return tuple(parameters)

    def parameter(self, name: str, declared: Json, required: bool, depth: int) -> Parameter:
        schema = self.followed(declared)
        description = schema.get("description")
        title = schema.get("title")
        text = description if isinstance(description, str) else title if isinstance(title, str) else ""
        facts, brief_facts = _facts(schema, text)
        kind = self.kind(schema)
        below, listed = self.below(schema)
        parts: tuple[Parameter, ...] = ()
        if below is not None and is_object(below.get("properties")):
            if depth + 1 < MAX_DEPTH:
                parts = self.properties(below, depth + 1)
            else:
                facts = [*facts, "What it holds is nested too deep to be shown here."]
        if listed:
            item, brief_item = _facts(below or {}, text)
            facts += [f"Each item: {fact[0].lower()}{fact[1:]}" for fact in item]
            brief_facts += brief_item
        choice = brief_facts[0] if brief_facts and '"' in brief_facts[0][:1] else ""
        short = " ".join(brief_facts if choice and not listed else [kind, *brief_facts])
        return Parameter(name, kind, required, text, tuple(facts), parts, listed, short)

    def followed(self, declared: Json) -> dict[str, Json]:
        """The schema behind local references, its own keywords over those that it refers to."""
        schema: dict[str, Json] = declared if is_object(declared) else {}
        for _ in range(MAX_DEPTH):
            ref = schema.get("$ref")
            if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
                break
            try:
                target = resolve(self.root, ref)
            except KeyError:
                break
            own = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**target, **own} if is_object(target) else own
        return schema

    def below(self, schema: dict[str, Json]) -> tuple[dict[str, Json] | None, bool]:
        """The schema whose properties are shown, and whether it is that of a list's items."""
        if _types(schema) == ["array"]:
            return self.followed(schema.get("items")), True
        return schema, False

    def kind(self, schema: dict[str, Json], depth: int = 0) -> str:
        """The types in words of the seed's list (A51): ``string``, ``array of integer``, ``string or null``, ``any``."""
        types = _types(schema)
        if not types:
            for key in ("anyOf", "oneOf"):
                choices = schema.get(key)
                if is_list(choices) and depth < MAX_DEPTH:
                    words = [self.kind(self.followed(choice), depth + 1) for choice in choices[:MAX_VALUES]]
                    return " or ".join(dict.fromkeys(words)) or "any"
            return "any"
        words: list[str] = []
        for name in types:
            item = self.followed(schema.get("items")) if name == "array" else {}
            inner = self.kind(item, depth + 1) if item and depth < MAX_DEPTH else ""
            words.append(f"array of {inner}" if inner and inner != "any" else name)
        return " or ".join(words)


def _types(schema: dict[str, Json]) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if is_list(kind):
        return [name for name in kind if isinstance(name, str)]
    values = schema.get("enum")
    if is_list(values) and values:
        return list(dict.fromkeys(type_of(value) for value in values))
    if "const" in schema:
        return [type_of(schema["const"])]
    return ["object"] if is_object(schema.get("properties")) else ["array"] if "items" in schema else []


_Bounds = tuple[tuple[str, str, Literal["{low} to {high}", "at least {low}", "at most {high}"]], ...]


def _facts(schema: dict[str, Json], description: str) -> tuple[list[str], list[str]]:
    """What is known of the values, as sentences and as the words of a signature. A secret's own values are never shown.

    What the description says of lengths, counts and patterns is not said again.
    """
    if schema.get("x-secret") is True:
        return ["Secret: never repeat its value."], ["(secret)"]
    long: list[str] = []
    short: list[str] = []
    values = schema.get("enum")
    if is_list(values) and values:
        shown = [_value(value) for value in values[:MAX_VALUES]]
        more = len(values) - len(shown)
        if more or not _lists(description, shown):
            long.append(f"One of: {', '.join(shown)}{f' and {more} more' if more else ''}.")
        short.append("|".join(as_json(value) for value in values[:MAX_VALUES]) + ("|…" if more else ""))
    if "const" in schema:
        long.append(f"Always {_value(schema['const'])}.")
        short.append(_cut(as_json(schema["const"])))
    low, high = _bound(schema, "minimum", "exclusiveMinimum"), _bound(schema, "maximum", "exclusiveMaximum")
    if low or high:
        long.append(f"Range: {_range(low, high)}.")
        short.append(f"{low.removeprefix('more than ')}..{high.removeprefix('less than ')}")
    pattern = schema.get("pattern")
    shown_pattern = isinstance(pattern, str) and _shows_form(description, pattern)
    for unit, least, most in _SIZES:
        size = _size(_number(schema, least), _number(schema, most), unit)
        if size and not (_says(description, size) or (unit == "character" and shown_pattern)):
            long.append(f"{size[0].upper()}{size[1:]}.")
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and not isinstance(step, bool):
        long.append(f"A multiple of {as_json(step)}.")
    if isinstance(pattern, str) and not shown_pattern and not (len(pattern) > 2 and pattern in description):
        long.append(f"Pattern: {_cut(pattern)}.")
    form = schema.get("format")
    if isinstance(form, str):
        long.append(f"Format: {_cut(form)}.")
        short.append(_cut(form))
    if schema.get("uniqueItems") is True:
        long.append("No item twice.")
    samples = schema.get("examples")
    if is_list(samples) and samples:
        long.append(f"Example: {_value(samples[0])}.")
    if "default" in schema:
        long.append(f"Default: {_value(schema['default'])}.")
        short.append(f"= {_cut(as_json(schema['default']))}")
    return long, short


_SIZES = (
    ("character", "minLength", "maxLength"),
    ("item", "minItems", "maxItems"),
    ("property", "minProperties", "maxProperties"),
)
_NUMBER = lazy(r"\d+")
_WORD = lazy(r"[^\s,;()\"'`]{1,64}")
_MASK_LETTERS = lazy(r"[YMDHSymdhsNnXx#]")
_MAX_WORDS = 200


def _says(description: str, size: str) -> bool:
    """Whether a description names every number of a size."""
    named = set(_NUMBER.findall(description))
    return all(number in named for number in _NUMBER.findall(size))


def _lists(description: str, values: list[str]) -> bool:
    """Whether a description explains every value: each stands before a colon, as in ``add: adds days``."""
    return all(f"{value}:" in description for value in values)


def _shows_form(description: str, pattern: str) -> bool:
    """Whether a description holds a sample that a pattern takes, or a form such as YYYY-MM-DD of one. Words alone are no sample."""
    if not any(char.isdigit() or not char.isalnum() for char in description.strip(" .")):
        return False
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return False
    for word in _WORD.findall(description)[:_MAX_WORDS]:
        sample = word.strip(".:")
        if sample.isalpha() or compiled.test(""):
            continue
        form = _MASK_LETTERS.sub("0", sample)
        if any(compiled.test(text) and not compiled.test(f"{text}~") for text in (sample, form)):
            return True
    return False


def _number(schema: dict[str, Json], key: str) -> str:
    value = schema.get(key)
    return as_json(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _bound(schema: dict[str, Json], key: str, exclusive: str) -> str:
    limit = _number(schema, exclusive)
    if limit:
        return f"{'more' if key == 'minimum' else 'less'} than {limit}"
    return _number(schema, key)


def _range(low: str, high: str) -> str:
    if low and high:
        return f"{low} to {high}"
    if low:
        return low if low.startswith("more") else f"at least {low}"
    return high if high.startswith("less") else f"at most {high}"


def _size(low: str, high: str, unit: str) -> str:
    """``1 to 40 characters``; empty where nothing is bounded. One that is at least there needs no word."""
    if low in ("", "0", "1") and not high:
        return ""
    amount = f"exactly {low}" if low and low == high else _range("" if low in ("0", "1") else low, high)
    last = high or low
    plural = {"property": "properties"}.get(unit, f"{unit}s")
    return f"{amount} {unit if last == '1' else plural}"


def _value(value: Json) -> str:
    """A value as a model would write it: a text as it is, unless only quotes show where it ends."""
    if (
        isinstance(value, str)
        and value
        and value == value.strip()
        and len(value.splitlines()) == 1
        and ", " not in value
    ):
        return _cut(value)
    return _cut(as_json(value))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
