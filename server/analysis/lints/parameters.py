"""Lints of one parameter as a model meets it: its name, what is said about it, and whether a call can write it flat.

Each function looks at one parameter, or at the names of all, so that its findings hold while other parameters are edited. Must
not know other fields of a manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from tamis.protocols.invisible import HIDING
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.manifest.imported import left_to_say
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.patterns import lazy
from tamis.protocols.tam.keys import parse_key, squash
from tamis.server.analysis.lints.local import Collector, Locals, text_of
from tamis.server.analysis.lints.schemas import types_of

# What is wrong with a description that a model reads: nothing in it, something left over, something hidden. Pure functions over texts.


TOOL_TOKENS = 600
PARAMETER_TOKENS = 200
_LOOKED_AT = 2_000
"""Characters of a description that slips are looked for in; what is hidden or opens a call is looked for in all of it.

The last two descriptions are remembered: a keystroke elsewhere looks at them again."""

_LEFT_OVER = lazy(
    r"\b(?:TODO|FIXME|TBD|XXX)\s*[:：(]"
    r"|(?i:lorem ipsum|description goes here|(?:your|insert|add|enter|put|write)[\w ]{0,20}\bdescription here)"
    r"|<(?:description|your[^<>]{0,30}|insert[^<>]{0,30})>|待补充|待完善|此处填写|在此填写"
)
_EMPTY_WORDS = lazy(
    r"(?i:\W*(?:todo|fixme|tbd|xxx|wip|n/?a|none|null|string|text|desc|description|test|foo|bar|asdf|placeholder"
    r"|描述|说明|参数|测试)?\W*)"
)
_WORD = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_FILLERS = frozenset(
    (
        *("a", "an", "the", "this", "that", "of", "for", "to", "is", "s", "your", "my", "its", "be", "used", "in"),
        *("parameter", "param", "argument", "arg", "value", "field", "input", "option", "tool", "function", "string"),
        *("number", "integer", "boolean", "list", "array", "object", "specifies", "specify", "provide", "provided"),
    )
)
_HIDDEN = re.compile(f"[{HIDING}]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_SPOKEN = lazy(
    r"(?i:\b(?:parameters?|arguments?|params?|options?)\b[ :]{1,2}|参数\s?)[`'\"]([A-Za-z_][\w-]{0,63})[`'\"]"
    r"|[`'\"]([A-Za-z_][\w-]{0,63})[`'\"](?i:\s(?:parameter|argument|param)\b|\s?参数)"
)
_CODE = lazy(r"`([A-Za-z_][\w-]{0,63})`")


@lru_cache(maxsize=2)
def placeholder(text: str) -> str | None:
    """What was left over in a description, or None."""
    if _EMPTY_WORDS.fullmatch(text):
        return text.strip() or None
    match = _LEFT_OVER.search(text, 0, _LOOKED_AT)
    return match.group().strip() if match else None


def words(text: str) -> list[str]:
    """The words of a name or sentence in small letters: ``userId`` and ``User ID`` are the same two."""
    return [word.lower() for word in _WORD.findall(text)]


def repeats(text: str, name: str) -> bool:
    """Whether a description says nothing beyond a name."""
    if len(text) > 160:
        return False
    named = frozenset(words(name))
    if not named:
        return False
    for match in _WORD.finditer(text):  # most descriptions say something with their first words
        word = match.group().lower()
        if word not in named and word not in _FILLERS and word.rstrip("s") not in named:
            return False
    return True


@lru_cache(maxsize=2)
def hidden_characters(text: str) -> str | None:
    """What invisible characters a text holds, in words; joiners of scripts and of emoji are none."""
    if text.isascii() or _HIDDEN.search(text) is None:
        return None
    chars = dict.fromkeys(_HIDDEN.findall(_FLAG.sub("", text)))
    if not chars:
        return None
    shown = ", ".join(f"U+{ord(char):04X}" for char in list(chars)[:4])
    return f"invisible characters ({shown}{'…' if len(chars) > 4 else ''})"


def without_hidden(text: str) -> str:
    """The text without what ``hidden`` finds."""
    return "".join(part if _FLAG.fullmatch(part) else _HIDDEN.sub("", part) for part in _FLAGS.split(text))


_FLAGS = re.compile(f"({_FLAG.pattern})")


def call_marker(text: str) -> str | None:
    """The first marker in a text that would open a call."""
    if not any(char in text for char in "<＜《"):
        return None
    match = _openers().search(text)
    return match.group().strip() if match else None


@cache
def _openers() -> re.Pattern[str]:
    from tamis.protocols.plugins import BUILT_IN, find_protocol

    protocols = [find_protocol(name) for name in BUILT_IN]
    return re.compile("|".join(f"(?:{protocol.opener.pattern})" for protocol in protocols if protocol is not None))


def named_parameters(text: str) -> list[tuple[str, bool]]:
    """The names that a description speaks of as parameters, each once; False for one that only stands in code marks."""
    parameters: dict[str, bool] = {}
    if "`" in text or "'" in text or '"' in text:
        for match in _SPOKEN.finditer(text, 0, _LOOKED_AT):
            parameters[match[1] or match[2]] = True
        for match in _CODE.finditer(text, 0, _LOOKED_AT):
            parameters.setdefault(match[1], False)
    return list(parameters.items())


@lru_cache(maxsize=2)
def too_long(text: str, limit: int) -> int:
    """The estimated tokens of a text above ``limit``, else 0; short texts are not counted, very long ones by their first part."""
    # No text has more tokens than characters and a half.
    if len(text) * 1.5 <= limit:
        return 0
    from tamis.protocols.tokens import estimate_tokens

    counted = text[: 4 * _LOOKED_AT]
    count = estimate_tokens(counted)
    count = count if len(counted) == len(text) else round(count * len(text) / len(counted))
    return count if count > limit else 0


MAX_PARAMETERS = 20
_MAX_DEPTH = 8
MAX_NAMES = 300
"""So many names are compared; a tool with more has other problems, and every keystroke would pay."""
_TYPED = frozenset(("type", "enum", "const", "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if"))
_LISTED = frozenset(("items", "prefixItems", "$ref", "enum"))
_NESTED = frozenset(("items", "properties", "$ref", "anyOf", "oneOf"))
_VCP_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NEGATED = re.compile(r"(?:no|not|dont|disable|disabled|without)(?:[_-]|(?=[A-Z]))[A-Za-z]")
_TAM_WORDS = {
    "command": "the tool of a step",
    "on_error": "what happens after a failed step",
    "retry": "how often a step is tried again",
    "request_id": "the id of the block",
    "comment": "a remark",
}
_TAM_PREFIXES = {
    "common_": "a value for all steps",
    "uri_": "a value by reference",
    "type_hint_": "the type of another",
}
_FLAT_WORDS = frozenset(("toolname", *(word.replace("_", "") for word in _TAM_WORDS)))
_FLAT_PREFIXES = tuple(prefix.replace("_", "") for prefix in _TAM_PREFIXES)
Resolve = Callable[[str], JsonNode | None]


def lint_parameter(member: Member) -> Locals:
    """The findings of one parameter, relative to the start of its schema."""
    node = member.value
    if node is None or node.kind != "object" or member.colon < 0:
        return ()
    name = member.key
    collector = Collector(node.start)
    _name(member, collector)
    _said(member, node, collector)
    types = types_of(node)
    if _TYPED.isdisjoint(node.keys):
        collector.add("LN711", member.key_span, {"p": name})
    if types == ("array",) and _LISTED.isdisjoint(node.keys):
        fix = None
        if node.closed and node.members and node.members[-1].value is not None:
            end = node.members[-1].value.end
            fix = Fix("Say that the items are texts", (Edit(end, end, ', "items": {"type": "string"}'),), "unsafe")
        collector.add("LN712", member.key_span, {"p": name}, fix=fix)
    plain = "object" not in types and _NESTED.isdisjoint(node.keys)
    shape = None if plain or refers(node) else _not_flat(node, _no_schema, 0)
    if shape is not None:
        collector.add("LN727", member.key_span, {"p": name, "what": shape[0], "advice": shape[1]})
    return collector.found


def _no_schema(_ref: str) -> None:
    return None


def refers(node: JsonNode, depth: int = 0) -> bool:
    """Whether what a parameter is stands elsewhere, at least in part."""
    if depth > _MAX_DEPTH or _NESTED.isdisjoint(node.keys):
        return False
    items = node.get("items")
    if node.member("$ref") is not None or (items is not None and items.kind == "object" and items.member("$ref")):
        return True
    branches = [part for key in ("anyOf", "oneOf") if (part := node.get(key)) is not None]
    return any(branch.kind == "object" and refers(branch, depth + 1) for part in branches for branch in part.items)


def lint_references(members: Sequence[Member], resolve: Resolve) -> list[Diag]:
    """Parameters that are not flat because of what they refer to, at absolute places."""
    collector = Collector()
    for member in members:
        shape = _not_flat(member.value, resolve, 0) if member.value is not None else None
        if shape is not None:
            collector.add("LN727", member.key_span, {"p": member.key, "what": shape[0], "advice": shape[1]})
    return list(collector.found)


def _name(member: Member, collector: Collector) -> None:
    name = member.key
    if _VCP_NAME.fullmatch(name):
        # the name without separators: what has no meaning so has none as it is read
        flat = name.replace("_", "").replace("-", "").lower()
        if flat and flat not in _FLAT_WORDS and not flat.startswith(_FLAT_PREFIXES):
            return
    key = parse_key(name)
    if squash(name) == "":
        collector.add("LN717", member.key_span, {"p": name, "protocol": "TAM and VCP"})
        return
    if not _VCP_NAME.fullmatch(name):
        collector.add("LN717", member.key_span, {"p": name, "protocol": "VCP"})
    meaning = _TAM_WORDS.get(key.normal) or next(
        (text for prefix, text in _TAM_PREFIXES.items() if key.normal.startswith(prefix)), None
    )
    if meaning is not None:
        collector.add("LN719", member.key_span, {"p": name, "protocol": "TAM", "meaning": meaning})
    elif squash(name) == "toolname":
        collector.add("LN719", member.key_span, {"p": name, "protocol": "VCP", "meaning": "the tool of the call"})


def _said(member: Member, node: JsonNode, collector: Collector) -> None:
    description = node.get("description")
    text = text_of(description)
    if description is None or (text is not None and not text.strip()):
        # What a schema refers to may say it.
        if node.member("$ref") is None:
            fix = None
            if description is None and node.closed:
                comma = ", " if node.members else " "
                at = node.members[-1].span[1] if node.members else node.start + 1
                fix = Fix("Add a description", (Edit(at, at, f'{comma}"description": ""'),), "unsafe")
            collector.add("LN721", member.key_span, {"p": member.key}, fix=fix)
        return
    if text is not None:
        describe(description, text, (member.key,), PARAMETER_TOKENS, collector)


def describe(node: JsonNode, text: str, names: tuple[str, ...], limit: int, collector: Collector) -> None:
    """The findings of one description; ``names`` are what it could merely repeat."""
    left = placeholder(text)
    if left is not None:
        collector.add("LN720", node.span, {"v": left})
        return
    asked = left_to_say(text)
    if asked is not None:
        collector.add("LN737", node.span, {"v": asked})
        return
    for name in names:
        if name and repeats(text, name):
            collector.add("LN722", node.span, {"name": name})
            break
    hidden = hidden_characters(text)
    if hidden is not None:
        clean = Edit(node.start, node.end, quoted(without_hidden(text)))
        collector.add("LN725", node.span, {"what": hidden}, fix=Fix("Remove what cannot be seen", (clean,), "unsafe"))
    marker = call_marker(text)
    if marker is not None:
        collector.add("LN726", node.span, {"v": marker})
    count = too_long(text, limit)
    if count:
        collector.add("LN724", node.span, {"n": count, "limit": limit})


def _not_flat(node: JsonNode, resolve: Resolve, depth: int) -> tuple[str, str] | None:
    """What a parameter holds that a flat call cannot write as it is, and what to do instead (V19, V63)."""
    if depth > _MAX_DEPTH or node.kind != "object":
        return None
    ref = text_of(node.get("$ref"))
    if ref is not None:
        target = resolve(ref)
        return None if target is None else _not_flat(target, resolve, depth + 1)
    types = types_of(node)
    members = node.get("properties")
    named = [member.key for member in members.members] if members is not None and members.kind == "object" else []
    if named or "object" in types:
        if not named:
            return "an object with free names", "a list of texts or one text is simpler to write"
        what = f"an object with {len(named)} member{'' if len(named) == 1 else 's'}"
        return what, f"give each member a parameter of its own ({', '.join(named[:3])}{'…' if len(named) > 3 else ''})"
    items = node.get("items")
    if "array" in types and items is not None and items.kind == "object":
        target = resolve(text_of(items.get("$ref")) or "") or items
        below = types_of(target)
        if "object" in below or target.member("properties") is not None:
            return "a list of objects", "take a list of texts, or one call for each"
        if "array" in below:
            return "a list of lists", "take a list of texts, or one call for each"
    for key in ("anyOf", "oneOf"):
        branches = node.get(key)
        for branch in branches.items if branches is not None else ():
            shape = _not_flat(branch, resolve, depth + 1)
            if shape is not None:
                return shape
    return None


def lint_names(node: JsonNode) -> Locals:
    """Parameters that one protocol cannot tell apart, and too many of them; relative to ``properties``."""
    collector = Collector(node.start)
    count = len(node.keys)
    if count > MAX_PARAMETERS:
        collector.add("LN728", (node.start, node.start + 1), {"n": count, "limit": MAX_PARAMETERS})
    seen: dict[str, str] = {}
    for i, key in enumerate(node.keys[:MAX_NAMES]):
        first = seen.setdefault(squash(key), key)
        if first != key and squash(key):
            member = node.view(i)
            if isinstance(member, Member):
                collector.add("LN718", member.key_span, {"a": first, "b": key, "protocol": "TAM"})
    return collector.found


def lint_required(node: JsonNode) -> Locals:
    """Defaults of required parameters, relative to the schema that declares both."""
    required, properties = node.get("required"), node.get("properties")
    if required is None or properties is None or required.kind != "array" or properties.kind != "object":
        return ()
    names = {item.value for item in required.items[:MAX_NAMES] if isinstance(item.value, str)}
    collector = Collector(node.start)
    for i, key in enumerate(properties.keys[:MAX_NAMES]) if names else ():
        member = properties.view(i) if key in names else None
        if isinstance(member, Member) and member.value is not None and member.value.kind == "object":
            default = member.value.member("default")
            if default is not None and default.value is not None:
                collector.add("LN715", default.key_span, {"p": key})
    return collector.found


def lint_extra(node: JsonNode) -> Locals:
    """The rules that are off unless asked for, over all parameters; relative to ``properties``."""
    collector = Collector(node.start)
    for member in node.members[:MAX_NAMES]:
        schema = member.value
        if schema is None or schema.kind != "object":
            continue
        if types_of(schema) == ("boolean",) and _NEGATED.match(member.key):
            collector.add("LN734", member.key_span, {"p": member.key})
        values, text = schema.get("enum"), text_of(schema.get("description"))
        texts = [item.value for item in values.items if isinstance(item.value, str)] if values is not None else []
        if (
            len(texts) > 1
            and text is not None
            and not any(candidate.lower() in text.lower() for candidate in texts if candidate)
        ):
            collector.add("LN735", member.key_span, {"p": member.key})
    return collector.found
