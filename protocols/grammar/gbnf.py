"""The GBNF grammar of an answer: some prose, then calls of known tools in one protocol's canonical layout.

What the grammar lets a model write is read back without a repair: calls that are whole, with arguments that fit their schema as
far as a grammar can say it. Order and spelling are the schema's. ``prose`` holds nothing that a mark of ``marks.py`` begins with, no
backslash, backtick, ``~`` or brace, no invisible character, nor the word that begins an echo in any letters that look like it, and ends with a blank line: nothing in it can open a block, a
fence, a stretch of reasoning, an echo, another's turn or a JSON document, or quote the marker (rulings 44 to 49). Must not know the
registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import CallProtocol, PlainCall, PromptTool, Shape, WriteOptions
from tamis.protocols.grammar.branches import COMPOSED
from tamis.protocols.grammar.json_rules import SchemaRules, Surrounding, constant, shared
from tamis.protocols.grammar.rules import CONTROLS, Rules, avoiding
from tamis.protocols.invisible import IGNORABLE
from tamis.protocols.marks import OBSERVATION_SIGNS, OBSERVATION_WORD, alike
from tamis.protocols.model import Json, ToolHint
from tamis.protocols.plugins import SHIPPED, extras_of
from tamis.protocols.schema.words import DRAFT_2020_12, LISTS, MAPS, SCHEMAS, is_list, is_object

_NO_PROSE = "<＜《`~\\{◁[\u2028\u2029" + CONTROLS + IGNORABLE
_ECHOES = ("Observation", "ObservatiOn")
_ALIKE = {letter: alike(letter, but=OBSERVATION_SIGNS) for letter in OBSERVATION_WORD} | {"O": OBSERVATION_SIGNS}
"""How the letters of the word may be written that begins an echo: its first one is a capital, the others are of any case."""


class GrammarError(ValueError):
    """There is no grammar: the protocol has none, or can carry no tool."""


def gbnf(protocol: CallProtocol, tools: Sequence[PromptTool], shape: Shape = "tag", notes: Sequence[str] = ()) -> str:
    """The grammar as text; the same for the same tools. ``notes`` are remarks for its head.

    A tool that the protocol cannot carry is left out with a remark. Raises ``GrammarError`` when none is left, or for a protocol
    that is not built in.
    """
    extras = extras_of(protocol.id)
    answer = extras.grammar_answer(shape)
    if not answer:
        able = ", ".join(name for name in SHIPPED if extras_of(name).grammar_answer("tag"))
        raise GrammarError(f"there is no grammar for protocol '{protocol.id}'; there is one for {able}")
    rules = Rules()
    rules.note(f"An answer in protocol {protocol.id}: prose, then calls. A rule named t1-… belongs to the first tool.")
    for note in notes:
        rules.note(note)
    calls: list[str] = []
    for number, tool in enumerate(tools, 1):
        rules.note(f"t{number}: {tool.name}")
        schemas = SchemaRules(rules, f"t{number}", tool.parameters)
        body = extras.grammar_call(tool, schemas, shape)
        if body:
            calls.append(rules.define(rules.name(f"t{number}-call"), body))
        else:
            rules.note(f"t{number} is left out: {protocol.id} cannot carry its name or a required parameter")
    if not calls:
        raise GrammarError(
            f"there is no grammar: {'no tool fits' if not tools else f'{protocol.id} can carry none of the tools'}"
        )
    rules.define("call", " | ".join(calls))
    if extras.whole_text:
        return rules.text(f'{answer} "\\n"?')
    avoiding(rules, "prose", _ECHOES, "\n\n", without=_NO_PROSE, alike=_ALIKE)
    return rules.text(f'prose? {answer} "\\n"?')


# A JSON Schema of the document in which a decoder for structured output writes a call. Of a block of JSON it is the inside (``{"name",
# "arguments"}``); for every other protocol ``{"toolName", "arguments"}``, which ``tool/parse`` reads with protocol ``json``: a text protocol's own
# layout is the GBNF grammar's matter.


_BASES = frozenset(("$id", "$schema"))


def call_schema(protocol: str, tools: Sequence[PromptTool], notes: Sequence[str] = ()) -> dict[str, Json]:
    """The schema of one call of any of the tools, draft 2020-12, with one branch of ``anyOf`` for each.

    Each tool's schema stands in ``$defs`` under its number, and its local references lead there. Names that a tool does not declare
    are not allowed unless its schema opens itself (ruling 3). ``notes`` become its ``$comment``. Raises ``GrammarError`` without tools.
    """
    if not tools:
        raise GrammarError("there is no grammar: no tool fits")
    key = extras_of(protocol).tool_key
    branches: list[Json] = []
    parameters: dict[str, Json] = {}
    for number, tool in enumerate(tools, 1):
        parameters[f"t{number}"] = _arguments(tool.parameters, f"#/$defs/t{number}")
        branch: dict[str, Json] = {
            "type": "object",
            "properties": {key: {"const": tool.name}, "arguments": {"$ref": f"#/$defs/t{number}"}},
            "required": [key, "arguments"],
            "additionalProperties": False,
        }
        branches.append(branch | ({"description": tool.description} if tool.description else {}))
    head: dict[str, Json] = {"$schema": DRAFT_2020_12, "title": f"A call: {key} and arguments"}
    if notes:
        head["$comment"] = "; ".join(notes)
    return {**head, "anyOf": branches, "$defs": parameters}


def _arguments(parameters: dict[str, Json], home: str) -> dict[str, Json]:
    moved = _moved(parameters, home, 0)
    arguments: dict[str, Json] = dict(moved) if is_object(moved) else {}
    arguments["type"] = "object"
    composed = any(keyword in arguments for keyword in ("$ref", "anyOf", "oneOf", "allOf", "if", "patternProperties"))
    # Beside composed schemas additionalProperties would forbid what the others declare.
    if not composed and "additionalProperties" not in arguments and "unevaluatedProperties" not in arguments:
        arguments["additionalProperties"] = False
    elif composed and "additionalProperties" not in arguments:
        arguments.setdefault("unevaluatedProperties", False)
    return arguments


def _moved(schema: Json, home: str, depth: int) -> Json:
    """A schema whose local references start at ``home`` instead of the root."""
    if not is_object(schema) or depth > 200:
        return schema
    result: dict[str, Json] = {}
    for keyword, part in schema.items():
        if keyword in _BASES:
            # An identifier would make its own root of the schema, and the references would lead nowhere.
            continue
        if keyword in ("$ref", "$dynamicRef") and isinstance(part, str) and (part == "#" or part.startswith("#/")):
            result[keyword] = home + part[1:]
        elif keyword in (*LISTS, "items") and is_list(part):
            result[keyword] = [_moved(item, home, depth + 1) for item in part]
        elif keyword in SCHEMAS or keyword == "items":
            result[keyword] = _moved(part, home, depth + 1)
        elif keyword in MAPS and is_object(part):
            result[keyword] = {name: _moved(item, home, depth + 1) for name, item in part.items()}
        else:
            result[keyword] = part
    return result


# One tool's call as a JSON object in GBNF, for the protocols whose calls are JSON.


def json_call(protocol: CallProtocol, tool: PromptTool, schemas: SchemaRules, around: Surrounding) -> str:
    """A call as a JSON object; empty when the name cannot be written."""
    options = WriteOptions(tools={tool.name: ToolHint(tool.name, {})})
    if protocol.write_calls((PlainCall(tool.name),), options).refusals:
        return ""
    shared(schemas.rules, "ws")
    # Names that the tool does not declare are offered only where its schema opens itself (ruling 3).
    parameters: dict[str, Json] = {**tool.parameters, "type": "object"}
    if not any(keyword in parameters for keyword in COMPOSED):
        parameters.setdefault("additionalProperties", False)
    members = [
        constant(around, extras_of(protocol.id).tool_key),
        constant(around, tool.name),
        constant(around, "arguments"),
        schemas.rule(parameters, around, ""),
    ]
    name, tool_name, arguments, value = members
    return f'"{{" ws {name} ws ":" ws {tool_name} ws "," ws {arguments} ws ":" ws {value} ws "}}"'
