"""Calls inside a prompt: written by the protocol's own writer, and shown only when they read back as exactly the same call (A35).

Must not know how a prompt is put together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from tamis.protocols.base import CallProtocol, PlainCall, PromptTool, Shape, WriteOptions
from tamis.protocols.catalogue import message
from tamis.protocols.check import CallCheck, check_call
from tamis.protocols.jsontext.tree import from_pointer
from tamis.protocols.model import Diag, Json, ReadOptions, ToolHint
from tamis.protocols.plugins import extras_of, find_protocol
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tamis.protocols.schema.secrets import mask
from tamis.protocols.schema.words import is_list, is_object, json_equal, resolve

_MAX_DEPTH = 6
_SAMPLES: dict[str, Json] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}


class ReadBack(msgspec.Struct, frozen=True):
    """A text that was written for a prompt, as Tamis reads it: the checked call, or why there is none."""

    check: CallCheck | None
    same: bool = False


def write(
    protocol: CallProtocol,
    tool: PromptTool,
    args: Mapping[str, Json],
    shape: Shape = "tag",
    *,
    elements: bool = False,
) -> str:
    """One call in canonical form; empty when the protocol cannot carry it exactly. ``elements`` as in ``WriteOptions``."""
    options = msgspec.structs.replace(_options(tool, shape), elements=elements)
    written = protocol.write_calls((PlainCall(tool.name, dict(args)),), options)
    return "" if written.refusals else written.text.strip("\n")


def read_back(protocol: CallProtocol, tool: PromptTool, text: str, args: Mapping[str, Json]) -> ReadBack:
    """Reads a written call as a model's answer would be read, and checks it against the tool's schema.

    ``same`` is true when the text holds that call and nothing else, alone and among the markers of every built-in protocol.
    """
    options = ReadOptions(tools={tool.name: _hint(tool)}, also=_also(protocol))
    document = read_text(text, "auto", options)
    calls = [call for call in document.calls if call.executable]
    if len(calls) != 1 or len(document.blocks) != 1 or calls[0].protocol != protocol.id or calls[0].repairs:
        return ReadBack(None)
    call = calls[0]
    if call.tool_id != tool.name or document.blocks[0].span != (0, len(text)):
        return ReadBack(None)
    check = check_call(call, text, compile_plan(tool.parameters))
    return ReadBack(check, check.valid and json_equal(check.coerced, dict(args)))


def written_example(protocol: CallProtocol, tool: PromptTool, args: Mapping[str, Json], shape: Shape = "tag") -> str:
    """A call that reads back equal; empty when there is none, or when it would show a secret."""
    if not json_equal(mask(dict(args), tool.parameters), dict(args)):
        return ""
    elements = reads_back_with(protocol, tool, args, shape)
    return "" if elements is None else write(protocol, tool, args, shape, elements=elements)


def reads_back_with(
    protocol: CallProtocol, tool: PromptTool, args: Mapping[str, Json], shape: Shape = "tag"
) -> bool | None:
    """Whether a call reads back equal with lists and objects as elements, the form that the instructions name first; None where it does in no form."""
    for elements in (True, False) if extras_of(protocol.id).elements else (False,):
        text = write(protocol, tool, args, shape, elements=elements)
        if text and read_back(protocol, tool, text, args).same:
            return elements
    return None


def example_call(name: str, tool: PromptTool, shape: Shape = "tag") -> str:
    """A tool's first example that can be shown, else a call with made-up values for what it requires; empty when neither can be."""
    protocol = find_protocol(name)
    if protocol is None:
        return ""
    for example in tool.examples:
        text = written_example(protocol, tool, example.input, shape)
        if text:
            return text
    text = write(protocol, tool, sample_arguments(tool.parameters), shape)
    document = read_text(text, "auto", ReadOptions(tools={tool.name: _hint(tool)}, also=_also(protocol)))
    return text if [call.tool_id for call in document.calls if call.executable] == [tool.name] else ""


def sample_arguments(schema: dict[str, Json]) -> dict[str, Json]:
    """A plausible value for every required parameter: what the schema offers, else one of its type."""
    sample = _sample(schema, schema, 0)
    return sample if is_object(sample) else {}


def _sample(schema: Json, root: dict[str, Json], depth: int) -> Json:
    node = schema if is_object(schema) else {}
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#") and depth < _MAX_DEPTH:
        try:
            return _sample(resolve(root, ref), root, depth + 1)
        except KeyError:
            return "…"
    if node.get("x-secret") is True:
        return "…"
    for key in ("const", "default"):
        if key in node:
            return node[key]
    for key in ("examples", "enum"):
        values = node.get(key)
        if is_list(values) and values:
            return values[0]
    for key in ("anyOf", "oneOf"):
        choices = node.get(key)
        if is_list(choices) and choices and "type" not in node and depth < _MAX_DEPTH:
            return _sample(choices[0], root, depth + 1)
    declared = node.get("properties")
    if is_object(declared) and depth < _MAX_DEPTH:
        needed = node.get("required")
        names = [name for name in needed if isinstance(name, str)] if is_list(needed) else []
        return {name: _sample(declared[name], root, depth + 1) for name in names if name in declared}
    kind = node.get("type")
    if is_list(kind) and kind:
        kind = kind[0]
    if kind in ("integer", "number"):
        low = node.get("minimum")
        return low if isinstance(low, int | float) else _SAMPLES[kind]
    if kind == "array" and node.get("items") is not None and depth < _MAX_DEPTH:
        return [_sample(node["items"], root, depth + 1)]
    return _SAMPLES.get(kind, "…") if isinstance(kind, str) else "…"


def unwritable(name: str, tool: PromptTool, shape: Shape = "tag") -> Mapping[str, str]:
    """The parameters whose names a protocol cannot carry, with the reason in the catalogue's words."""
    declared = tool.parameters.get("properties")
    return _unwritable(name, tool.name, tuple(declared), shape) if is_object(declared) else {}


@lru_cache(maxsize=16_384)
def _unwritable(name: str, tool: str, declared: tuple[str, ...], shape: Shape) -> Mapping[str, str]:
    """By the names alone, since a prompt of many tools is made again whenever one of them changes. ``name`` is a built-in protocol's."""
    protocol = find_protocol(name)
    if protocol is None:
        return {}
    probe: dict[str, Json] = dict.fromkeys(declared, "x")
    plain = PromptTool(tool, "", {"type": "object", "properties": {key: {} for key in declared}})
    written = protocol.write_calls((PlainCall(tool, probe),), _options(plain, shape))
    by_name: dict[str, str] = {}
    for refusal in written.refusals:
        path = from_pointer(refusal.path)
        if len(path) == 3 and path[1] == "args":
            why = refusal.args.get("why")
            by_name[str(path[2])] = str(why) if why else message(Diag(refusal.code, (0, 0), refusal.args))
    return by_name


def _hint(tool: PromptTool) -> ToolHint:
    return ToolHint(tool.name, tool.parameters)


def _options(tool: PromptTool, shape: Shape) -> WriteOptions:
    return WriteOptions(shape=shape, tools={tool.name: _hint(tool)})


def _also(protocol: CallProtocol) -> tuple[str, ...]:
    from tamis.protocols.plugins import BUILT_IN

    return () if protocol.id in BUILT_IN else (protocol.id,)
