"""The JSON Schema of calls (``prompt/grammar`` with ``jsonSchema``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tamis.protocols.base import PlainCall, PromptTool, WriteOptions
from tamis.protocols.check import check_call
from tamis.protocols.grammar.gbnf import GrammarError, call_schema, gbnf
from tamis.protocols.model import Json, ReadOptions, ToolHint
from tamis.protocols.plugins import find_protocol
from tamis.protocols.reader import read_text
from tamis.protocols.schema.plan import compile_plan
from tests.protocols.gbnf_machine import parse
from tests.protocols.grammar_tools import ARGUMENTS, FORMS, HINTS, TOOLS

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "tools"


def example_tools() -> list[PromptTool]:
    found: list[PromptTool] = []
    for path in sorted(EXAMPLES.rglob("*.tool.json")):
        manifest = json.loads(path.read_text("utf-8"))
        found.append(PromptTool(manifest["toolId"], manifest["description"], manifest["parameters"]))
    assert len(found) > 5
    return found


def example_calls() -> list[tuple[str, dict[str, Json]]]:
    return [
        (manifest["toolId"], example["input"])
        for path in sorted(EXAMPLES.rglob("*.tool.json"))
        for manifest in [json.loads(path.read_text("utf-8"))]
        for example in manifest.get("examples", [])
    ]


def validator(protocol: str, tools: list[PromptTool]) -> Draft202012Validator:
    schema = call_schema(protocol, tools)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize(("protocol", "key"), [("json", "toolName"), ("hermes", "name"), ("action", "toolName")])
def test_valid_call_documents_fit(protocol: str, key: str) -> None:
    schema = validator(protocol, TOOLS)
    for tool, args in ARGUMENTS:
        assert schema.is_valid({key: tool, "arguments": args}), (tool, args)


@pytest.mark.parametrize(
    "document",
    [
        {"toolName": "serach", "arguments": {"q": "x", "opts": {"tags": []}}},
        {"toolName": "search", "arguments": {"q": "x"}},
        {"toolName": "search", "arguments": {"q": 5, "opts": {"tags": []}}},
        {"toolName": "search", "arguments": {"q": "x", "opts": {"tags": []}, "unknown": 1}},
        {"toolName": "search", "arguments": {"q": "x", "opts": {"tags": []}, "tree": {"v": 1, "kids": [{}]}}},
        {"toolName": "shapes", "arguments": {"both": {"x": "y"}}},
        {"toolName": "shapes", "arguments": {"own": ["c"]}},
        {"toolName": "nothing", "arguments": {"x": 1}},
        {"toolName": "nothing"},
        {"arguments": {}},
        {"name": "nothing", "arguments": {}},
        {"toolName": "nothing", "arguments": {}, "more": 1},
        [],
        "nothing",
    ],
)
def test_an_invalid_call_document_does_not_fit(document: Json) -> None:
    assert not validator("json", TOOLS).is_valid(document)


@pytest.mark.slow
def test_a_document_that_fits_is_read_as_a_valid_call() -> None:
    protocol = find_protocol("json")
    assert protocol is not None
    for tool, args in ARGUMENTS:
        text = protocol.write_calls((PlainCall(tool, args),), WriteOptions(tools=HINTS)).text
        assert validator("json", TOOLS).is_valid(json.loads(text))
        document = read_text(text, "json", ReadOptions(tools=HINTS))
        assert [call.executable for call in document.calls] == [True]
        check = check_call(document.calls[0], text, compile_plan(HINTS[tool].parameters))
        assert check.coerced == args


def test_references_of_every_tool_lead_into_its_own_schema() -> None:
    a = PromptTool(
        "a",
        "",
        {
            "properties": {"x": {"$ref": "#/$defs/v"}},
            "$defs": {"v": {"type": "integer"}},
            "$id": "https://example.org/a",
        },
    )
    b = PromptTool(
        "b",
        "",
        {
            "properties": {"x": {"$ref": "#/$defs/v"}, "$ref": {"const": "#/$defs/v"}},
            "$defs": {"v": {"type": "string"}},
        },
    )
    schema = validator("json", [a, b])
    assert schema.is_valid({"toolName": "a", "arguments": {"x": 1}})
    assert not schema.is_valid({"toolName": "a", "arguments": {"x": "s"}})
    # A parameter may be called $ref, and a constant may look like a reference.
    assert schema.is_valid({"toolName": "b", "arguments": {"x": "s", "$ref": "#/$defs/v"}})


def test_a_tool_may_open_its_arguments() -> None:
    tool = PromptTool("t", "", {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}})
    schema = validator("json", [tool])
    assert schema.is_valid({"toolName": "t", "arguments": {"any": 1}})
    assert not schema.is_valid({"toolName": "t", "arguments": {"any": "x"}})


def test_names_of_composed_schemas_are_declared() -> None:
    tool = PromptTool("t", "", {"allOf": [{"properties": {"x": {"type": "integer"}}}]})
    schema = validator("json", [tool])
    assert schema.is_valid({"toolName": "t", "arguments": {"x": 1}})
    assert not schema.is_valid({"toolName": "t", "arguments": {"y": 1}})


def test_without_tools_there_is_no_schema() -> None:
    with pytest.raises(GrammarError):
        call_schema("json", [])


def test_the_examples_of_the_manifests_fit_the_schema() -> None:
    schema = validator("json", example_tools())
    for tool, args in example_calls():
        assert schema.is_valid({"toolName": tool, "arguments": args}), (tool, args)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), FORMS, ids=[f"{name}-{shape}" for name, shape in FORMS])
def test_the_examples_of_the_manifests_are_sentences_of_the_grammar(name: str, shape: str) -> None:
    protocol = find_protocol(name)
    assert protocol is not None
    tools = example_tools()
    kept = "inputs" if shape == "inputs" else "tag"
    grammar = parse(gbnf(protocol, tools, kept))
    assert grammar.undefined() == grammar.unused() == grammar.left_recursive() == set()
    hints = {tool.name: ToolHint(tool.name, tool.parameters) for tool in tools}
    orders = {tool.name: list(ToolHint("", tool.parameters).properties) for tool in tools}
    for tool, args in example_calls():
        ordered = {name: args[name] for name in orders[tool] if name in args}
        written = protocol.write_calls((PlainCall(tool, ordered),), WriteOptions(kept, hints))
        assert written.refusals == ()
        assert grammar.accepts(written.text), written.text
