"""JSON strings, numbers and free values as GBNF, for every surrounding that JSON text stands in.

What a surrounding forbids inside JSON (a closing marker, markup) can only stand in a string, where an escape says it too. Must
not know schemas.
"""

from __future__ import annotations

import msgspec

from tamis.protocols.action.decode import escape
from tamis.protocols.grammar.rules import CONTROLS, Rules, either, literal
from tamis.protocols.grammar.texts import Escapes, avoiding
from tamis.protocols.model import Json
from tamis.protocols.writing.values import json_text


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
    return rules.define(name, " | ".join([*free, *(shared(rules, one) for one in ("number", "boolean", "null"))]))


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


def constant(around: Surrounding, one: Json) -> str:
    """A JSON value as it is, with what the surroundings forbid as escapes."""
    if around is MARKUP and "]]>" in (text := json_text(one)):
        return literal(escape(text))
    text = json_text(one, around.escapes)
    for word in around.words:
        text = text.replace(word, word[:-1] + f"\\u{ord(word[-1]):04x}")
    return literal(text)


def scalars(rules: Rules, kinds: list[str]) -> str:
    """One of several scalar kinds."""
    return either([shared(rules, kind) for kind in kinds])
