"""The forms in which models write calls, by their marks: to say which one a text has that was not read (ruling 55).

A form is known here whether or not a protocol reads it. Must not read calls, and knows no tools.
"""

from __future__ import annotations

import re

import msgspec

from tamis.protocols.model import Diag
from tamis.protocols.patterns import lazy
from tamis.protocols.plugins import BUILT_IN, SHIPPED, known_protocols


class Dialect(msgspec.Struct, frozen=True):
    """One form: its id, which is the protocol's where one reads it, who writes it, and the pattern of what a call begins with."""

    id: str
    families: str
    sign: str
    """A text without it has no such call; cheap to look for."""
    begins: re.Pattern[str]


def _dialect(name: str, families: str, sign: str, begins: str) -> Dialect:
    return Dialect(name, families, sign, lazy(begins))


DIALECTS: tuple[Dialect, ...] = (
    _dialect("action", "ACTION", "<", r"<(?i:action)>\s{0,40}+<"),
    _dialect("tam", "TAM", "<|[", r"<\|\[(?i:REQUEST_TOOL)\]\|>"),
    _dialect("vcp", "VCP", "<<<[", r"<<<\[(?i:TOOL_REQUEST)\]>>>"),
    _dialect(
        "qwen-xml", "Qwen Coder, MiMo, Step, Seed", "<function=", r"<function=[^<>\s]{1,128}+>\s{0,40}+<parameter="
    ),
    _dialect("glm", "GLM", "<arg_key>", r"<tool_call>[^<>]{1,128}+<arg_key>"),
    _dialect("hermes", "Hermes, Qwen", "<tool_call>", r"<tool_call>\s{0,40}+[{\[]"),
    _dialect("invoke", "Claude prompts, MiniMax, Step 3", "invoke name=", r"<(?:\w{1,16}+:)?invoke name=\""),
    _dialect("dsml", "DeepSeek V3.2 and later", "DSML", r"<[|｜]DSML[|｜](?:function_calls|invoke)"),
    _dialect("deepseek", "DeepSeek V3 and R1", "tool▁call", r"<[|｜]tool▁calls?▁begin[|｜]>"),
    _dialect("kimi", "Kimi", "<|tool_call", r"<\|tool_calls?_(?:section_)?begin\|>"),
    _dialect("mistral", "Mistral", "[TOOL_CALLS]", r"\[TOOL_CALLS\]\s{0,40}+[\w\[{]"),
    _dialect("llama", "Llama 3", "<|python_tag|>", r"<\|python_tag\|>"),
    _dialect("pythonic", "Llama 4, OLMo, LFM", "<|tool_call_start|>", r"<\|tool_call_start\|>\s{0,40}+\["),
    _dialect("gemma", "Gemma", "call:", r"<(?:start_function_call|\|tool_call)>\s{0,40}+call:"),
    _dialect("harmony", "gpt-oss", " to=functions.", r"<\|channel\|>\w{1,32}+ to=functions\."),
    _dialect("cohere", "Command", "<|START_ACTION|>", r"<\|START_ACTION\|>"),
    _dialect("internlm", "InternLM", "<|action_start|>", r"<\|action_start\|>"),
    _dialect("phi", "Phi", "functools[", r"^functools\["),
    _dialect("granite", "Granite", "<function_call>", r"<function_call>\s{0,40}+[{\[]"),
)
_ANGLED = tuple(dialect for dialect in DIALECTS if dialect.begins.pattern.startswith("<"))
_SQUARE = tuple(dialect for dialect in DIALECTS if dialect not in _ANGLED)
"""Those that begin otherwise: a square bracket stands in the marks of each."""
_ANY_ANGLED = lazy("|".join(dialect.begins.pattern for dialect in _ANGLED))


def dialects_in(text: str, start: int = 0, end: int | None = None) -> list[tuple[Dialect, int, int]]:
    """The forms whose marks stand in a part of a text, each with its first place, in the order of the places."""
    stop = len(text) if end is None else end
    # One character is looked for many times as fast as several, and most texts have none of these.
    able = _SQUARE if text.find("[", start, stop) >= 0 else ()
    if text.find("<", start, stop) >= 0 and _ANY_ANGLED.search(text, start, stop) is not None:
        able += _ANGLED
    places = [
        (dialect, match.start(), match.end())
        for dialect in able
        if text.find(dialect.sign, start, stop) >= 0 and (match := dialect.begins.search(text, start, stop)) is not None
    ]
    return sorted(places, key=lambda place: place[1])


def unread_dialect(text: str, ids: tuple[str, ...], start: int = 0, end: int | None = None) -> Diag | None:
    """The hint for the first form that none of the protocols ``ids`` reads; None where there is none."""
    for dialect, first, last in dialects_in(text, start, end):
        if dialect.id in ids or text[max(0, first - 1) : first] in ("`", "\\"):
            continue
        if dialect.id in BUILT_IN:
            remedy = f'protocol "auto" or "{dialect.id}" reads it'
            return _hint(dialect, first, last, remedy)
        read = dialect.id in SHIPPED or dialect.id in known_protocols()
        remedy = (
            f'protocol "{dialect.id}" reads it, or for every text also = ["{dialect.id}"] under [protocol]'
            if read
            else "no protocol that is installed reads it; a plug-in that does is named in `also` under [protocol]"
        )
        return _hint(dialect, first, last, remedy)
    return None


def _hint(dialect: Dialect, first: int, last: int, remedy: str) -> Diag:
    return Diag("TC027", (first, last), {"dialect": dialect.id, "families": dialect.families, "remedy": remedy})
