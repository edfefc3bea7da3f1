"""A JSON Schema of the document in which a decoder for structured output writes a call.

Of a block of JSON it is the inside (``{"name", "arguments"}``); for every other protocol ``{"toolName", "arguments"}``, which
``tool/parse`` reads with protocol ``json``: a text protocol's own layout is the GBNF grammar's matter. Must not know the registry.
"""

from __future__ import annotations

from collections.abc import Sequence

from tamis.protocols.base import PromptTool
from tamis.protocols.grammar.gbnf import GrammarError
from tamis.protocols.model import Json
from tamis.protocols.plugins import extras_of
from tamis.protocols.schema.vocabulary import DRAFT_2020_12, LISTS, MAPS, SCHEMAS
from tamis.protocols.schema.words import is_list, is_object

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
            result[keyword] = [_moved(one, home, depth + 1) for one in part]
        elif keyword in SCHEMAS or keyword == "items":
            result[keyword] = _moved(part, home, depth + 1)
        elif keyword in MAPS and is_object(part):
            result[keyword] = {name: _moved(one, home, depth + 1) for name, one in part.items()}
        else:
            result[keyword] = part
    return result
