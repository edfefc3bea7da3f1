"""Grammars of the schemas of the JSON Schema test suite: always made, and right wherever no remark says that they are wider."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import tests.protocols.grammar_tools  # noqa: F401 - registers hermes
from tamis.protocols.base import PromptTool
from tamis.protocols.grammar.gbnf import GrammarError, gbnf
from tamis.protocols.model import Json
from tamis.protocols.plugins import find_protocol
from tests.protocols.gbnf_machine import parse

PROTOCOLS = ("action", "tam", "vcp", "hermes")
# What these files are about is not what the text of a schema alone says.
_BESIDE = ("vocabulary", "anchor", "id", "dynamicRef", "unknownKeyword", "infinite", "ref: naive replacement")


def grammar_of(schema: Json, name: str = "json") -> str:
    """The grammar of a tool with one parameter of this schema; references of the schema lead into it."""
    protocol = find_protocol(name)
    assert protocol is not None
    text = json.dumps(schema).replace('"#/', '"#/properties/p/').replace('"$ref": "#"', '"$ref": "#/properties/p"')
    return gbnf(
        protocol, [PromptTool("t", "", {"type": "object", "properties": {"p": json.loads(text)}, "required": ["p"]})]
    )


def schemas(corpora: Path) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for path in sorted((corpora / "json-schema-suite").rglob("draft2020-12/*.json")):
        found += [
            (f"{path.stem}: {group['description']}", group["schema"]) for group in json.loads(path.read_text("utf-8"))
        ]
    assert len(found) > 100
    return found


def test_sentences_fit_the_schemas_of_the_suite(corpora: Path, is_long: bool) -> None:
    rng = random.Random(20261122)
    exact = 0
    for title, schema in schemas(corpora):
        text = grammar_of(schema)
        grammar = parse(text)
        assert grammar.undefined() == grammar.unused() == grammar.left_recursive() == set(), title
        if "wider than" in text or title.startswith(_BESIDE) or "root" not in grammar.least():
            continue
        exact += 1
        validator = Draft202012Validator(schema)
        for _ in range(60 if is_long else 2):
            document = json.loads(grammar.sentence(rng, 150))
            for call in document if isinstance(document, list) else [document]:
                assert validator.is_valid(call["arguments"]["p"]), (title, call)
    assert exact > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_schema_of_the_suite_has_a_grammar_in_every_protocol(corpora: Path, name: str, is_long: bool) -> None:
    found = schemas(corpora)
    # Each schema in one protocol; with `--long` in all.
    for title, schema in found if is_long else found[PROTOCOLS.index(name) :: len(PROTOCOLS)]:
        try:
            grammar = parse(grammar_of(schema, name))
        except GrammarError:
            # The parameter is required, and no value fits it that the protocol could carry.
            continue
        assert grammar.undefined() == grammar.unused() == grammar.left_recursive() == set(), title


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema",
    [
        {
            "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(40)]
            + [{"enum": [1]}, {"enum": [2]}]
        },
        {"anyOf": [{"const": i} for i in range(5000)]},
        {"enum": list(range(3000))},
        {"allOf": [{"properties": {f"p{i}": {"type": "string"}}} for i in range(700)]},
        {"properties": 5, "required": "x", "items": 7, "enum": None, "type": {"a": 1}, "anyOf": 3, "allOf": None},
        {"type": ["string", 5, "other"], "prefixItems": 3, "minItems": -1, "maxItems": "x", "minimum": "0"},
        {"type": "array", "minItems": 10**9},
    ],
    ids=["product", "many branches", "many constants", "many parts", "odd", "odder", "many items"],
)
def test_a_hostile_schema_ends_with_a_grammar_of_bounded_size(schema: Json) -> None:
    for name in ("json", "action", "tam", "vcp"):
        try:
            text = grammar_of(schema, name)
        except GrammarError:
            continue
        assert len(text) < 2_000_000


def test_a_composition_nested_deeply_ends() -> None:
    schema: Json = {"type": "integer"}
    for _ in range(300):
        schema = {"allOf": [schema]}
    assert "too large" in grammar_of(schema)
