"""Exported schemas: where no loss is said they accept exactly what the manifest's does, whatever the schema (interop §2.2, §2.3)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tamis.protocols.export.names import MAX_CHARS, TARGETS, Target, portable_names
from tamis.protocols.export.targets import Exported, export_tool
from tamis.protocols.manifest.reading import ExternalScript, Manifest
from tests.protocols.export_rules import NAMES, faults


def manifest(parameters: Any = None, **fields: Any) -> Manifest:
    raw = {"toolId": "test:tool", **fields}
    return Manifest(
        tool_id="test:tool",
        display_name="Tool",
        description="Does what a tool does.",
        version="1.0.0",
        handler=ExternalScript("tool.py", "python"),
        parameters=parameters,
        raw=raw,
    )


def exported(parameters: Any, target: Target) -> Exported:
    return export_tool(manifest(parameters), target, "test_tool")


def schema_of(made: Exported, target: Target) -> Any:
    body = made.definition.get("function", made.definition)
    if target in ("mcp", "cursor"):
        return body["inputSchema"]
    if target == "smolagents":
        parts = {
            name: {key: value for key, value in part.items() if key != "nullable" and (key, value) != ("type", "any")}
            for name, part in body["inputs"].items()
        }
        required = [name for name, part in body["inputs"].items() if "nullable" not in part]
        return {"type": "object", "properties": parts, "required": required, "additionalProperties": False}
    if target == "anthropic":
        return body["input_schema"]
    if target == "gemini":
        none = {"type": "object", "additionalProperties": False}
        return as_json_schema(body["parameters"]) if "parameters" in body else none
    return body["parameters"]


def as_json_schema(node: Any) -> Any:
    """Gemini's ``nullable`` in JSON Schema's words."""
    if isinstance(node, list):
        return [as_json_schema(part) for part in node]
    if not isinstance(node, dict):
        return node
    made = {key: as_json_schema(part) for key, part in node.items() if key != "nullable"}
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") is True else made


def codes(made: Exported) -> list[str]:
    return [loss.code for loss in made.losses]


# Random schemas and values of one small world, so that values often fit

_names = st.sampled_from(["a", "b", "c"])
_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, 1.5, "", "x", "yy", "zzz"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_types = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": _types | st.lists(_types, min_size=1, max_size=3, unique=True),
        "description": st.just("What it is."),
        "default": _values,
        "enum": st.lists(_values, min_size=1, max_size=3),
        "const": _values,
        "minimum": st.integers(-1, 2),
        "exclusiveMinimum": st.integers(-1, 2) | st.just(0.5),
        "exclusiveMaximum": st.integers(1, 3) | st.just(2.5),
        "multipleOf": st.just(2),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^x", "y$"]),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "properties": st.dictionaries(_names, inner, max_size=3),
        "required": st.lists(_names, max_size=2, unique=True),
        "additionalProperties": st.booleans() | inner,
        "minProperties": st.integers(0, 2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "if": inner,
        "$ref": st.sampled_from(["#/$defs/d", "#/$defs/e", "#", "#/nowhere"]),
    }
    typed = st.sampled_from(["string", "integer", "object", "array"]).flatmap(
        lambda kind: st.fixed_dictionaries({"type": st.just(kind)}, optional={k: words[k] for k in _USUAL[kind]})
    )
    closed = st.dictionaries(_names, inner, max_size=3).map(
        lambda parts: {"type": "object", "properties": parts, "required": [*parts], "additionalProperties": False}
    )
    wild = st.lists(st.sampled_from(sorted(words)), max_size=4, unique=True).flatmap(
        lambda keys: st.fixed_dictionaries({key: words[key] for key in keys})
    )
    return typed | closed | wild


_USUAL = {
    "string": ("enum", "minLength", "pattern", "description"),
    "integer": ("minimum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems", "prefixItems"),
}
_any = st.recursive(st.booleans() | st.just({}) | _types.map(lambda kind: {"type": kind}), _schemas, max_leaves=6)
_roots = st.tuples(_schemas(_any), st.fixed_dictionaries({"d": _any, "e": _any})).map(
    lambda pair: {**pair[0], "$defs": pair[1]}
)


def sound(schema: Any, values: list[Any]) -> list[bool] | None:
    """What the schema says of the values; None where the library itself cannot say."""
    try:
        validator = jsonschema.Draft202012Validator(schema)
        return [validator.is_valid(value) for value in values]
    except Exception:
        return None


@settings(suppress_health_check=list(HealthCheck))
@given(schema=_roots, values=st.lists(st.dictionaries(_names, _values, max_size=3), min_size=1, max_size=12))
def test_without_a_loss_the_export_accepts_exactly_what_the_manifest_does(schema: Any, values: list[Any]) -> None:
    before = sound(schema, values)
    for target in TARGETS:
        made = exported(schema, target)
        assert faults(target, made.definition) == []
        json.dumps(made.definition)
        if before is not None and not any(loss.path.startswith("/parameters") for loss in made.losses):
            assert sound(schema_of(made, target), values) == before, target


@given(st.lists(st.text(min_size=1, max_size=90) | st.sampled_from(["a:b", "a_b", "a.b", "天气", "新闻"]), max_size=12))
def test_names_are_allowed_distinct_and_the_same_every_time(ids: list[str]) -> None:
    for target in TARGETS:
        names = portable_names(ids, target)
        assert set(names) == set(ids)
        assert len(set(names.values())) == len(names)
        assert all(NAMES[target].fullmatch(name) for name in names.values())
        assert portable_names(reversed(ids), target) == names


def test_an_id_that_is_a_name_keeps_it_and_the_others_get_numbers() -> None:
    names = portable_names(["core:echo", "core_echo", "core.echo"], "mcp")
    assert names == {"core_echo": "core_echo", "core.echo": "core_echo_2", "core:echo": "core_echo_3"}
    assert portable_names(["a:b", "a.b"], "mcp") == {"a.b": "a_b_1", "a:b": "a_b_2"}
    # an alias of another tool is that one's
    assert portable_names(["a:b"], "openai", {"a_b": "c"}) == {"a:b": "a_b_2"}
    assert portable_names(["a:b"], "openai", {"a_b": "a:b"}) == {"a:b": "a_b"}
    long = portable_names(["x" * 80, "x" * 90], "openai")
    assert sorted(map(len, long.values())) == [MAX_CHARS, MAX_CHARS]
    assert portable_names(["1-x"], "gemini") == {"1-x": "_1-x"}


# The words of one target


def test_strict_makes_optional_ones_nullable_and_says_so() -> None:  # interop §2.3
    made = exported(
        {"properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 3}}, "required": ["a"]},
        "openaiStrict",
    )
    parameters = made.definition["function"]["parameters"]
    assert parameters["required"] == ["a", "b"]
    assert parameters["properties"]["b"]["type"] == ["integer", "null"]
    assert "default" not in parameters["properties"]["b"]
    assert "3" in parameters["properties"]["b"]["description"]
    assert {(loss.code, loss.path) for loss in made.losses} >= {
        ("optional-nullable", "/parameters/properties/b"),
        ("default-dropped", "/parameters/properties/b/default"),
        ("object-closed", "/parameters"),
    }


def test_strict_gives_a_free_object_as_json_text_that_is_read_back() -> None:
    from tamis.protocols.schema.plan import compile_plan

    schema: Any = {
        "properties": {"o": {"type": "object"}, "l": {"type": "array", "items": {"type": "object"}}},
        "required": ["o", "l"],
        "additionalProperties": False,
    }
    made = exported(schema, "openaiStrict")
    assert made.definition["function"]["parameters"]["properties"]["o"]["type"] == "string"
    assert codes(made).count("free-object") == 2
    checked = compile_plan(schema).check({"o": '{"x": 1}', "l": ['{"y": 2}']}, "any")
    assert checked.errors == []
    assert checked.coerced == {"o": {"x": 1}, "l": [{"y": 2}]}


def test_strict_keeps_a_schema_that_holds_itself() -> None:
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        "required": ["kids"],
        "additionalProperties": False,
    }
    root = {
        "type": "object",
        "properties": {"t": {"$ref": "#/$defs/tree"}},
        "required": ["t"],
        "additionalProperties": False,
    }
    made = exported({**root, "$defs": {"tree": tree}}, "openaiStrict")
    assert [loss for loss in made.losses if loss.path.startswith("/parameters")] == []
    validator = jsonschema.Draft202012Validator(schema_of(made, "openaiStrict"))
    assert validator.is_valid({"t": {"kids": [{"kids": []}]}})
    assert not validator.is_valid({"t": {"kids": [{"kids": [1]}]}})
    assert "recursive-ref" in codes(exported({**root, "$defs": {"tree": tree}}, "gemini"))


def test_anthropic_and_openai_get_no_choice_at_the_root() -> None:  # interop §2.3
    parts = [
        {"properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]
    for target in ("anthropic", "openai", "openaiStrict", "gemini"):
        made = exported({"type": "object", "oneOf": parts}, target)
        assert set(schema_of(made, target)["properties"]) == {"id", "name"}
        assert "root-combination" in codes(made)
        joined = exported({"allOf": parts}, target)
        assert sorted(schema_of(joined, target)["required"]) == ["id", "name"]
        assert "root-combination" not in codes(joined)


def test_gemini_has_a_type_of_its_own_for_everything_and_points_at_the_other_field() -> None:  # interop §2.3
    made = exported(
        {
            "properties": {
                "u": {"type": ["string", "null"]},
                "k": {"const": "x"},
                "n": {"enum": [1, 2]},
                "t": {"prefixItems": [{"type": "string"}], "items": False, "type": "array"},
                "r": {"$ref": "#/$defs/s"},
                "m": {"type": "string", "format": "email"},
                "l": {"type": "array"},
            },
            "$defs": {"s": {"type": "string", "description": "A street."}},
        },
        "gemini",
    )
    parameters = made.definition["parameters"]["properties"]
    assert parameters["u"] == {"type": "string", "nullable": True}
    assert parameters["k"] == {"type": "string", "enum": ["x"]}
    assert parameters["n"] == {"type": "integer", "description": "One of: 1, 2."}
    assert parameters["r"] == {"type": "string", "description": "A street."}
    assert parameters["t"]["maxItems"] == 1
    assert {"enum-dropped", "tuple-as-list", "keyword-dropped", "any-value", "use-json-schema"} <= set(codes(made))


def test_a_tool_without_parameters_can_be_exported_everywhere() -> None:
    for target in TARGETS:
        for parameters in (
            None,
            {},
            {"type": "object", "properties": {}},
            {"type": "object", "additionalProperties": False},
        ):
            made = exported(parameters, target)
            assert faults(target, made.definition) == []
    assert "parameters" not in exported({"type": "object"}, "gemini").definition


def test_values_of_secrets_are_not_told_to_any_model() -> None:
    schema = {"properties": {"key": {"type": "string", "x-secret": True, "default": "hunter2", "enum": ["hunter2"]}}}
    for target in TARGETS:
        made = exported(schema, target)
        assert "hunter2" not in json.dumps(made.definition)
        assert "secret-values" in codes(made)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_schemas_end_in_time_and_in_a_definition(target: Target) -> None:
    deep: Any = {"type": "string"}
    for _ in range(120):
        deep = {"type": "object", "properties": {"a": deep}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    wide = {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}, "$ref": "#/$defs/d0"}
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    many = {"properties": {f"p{i}": {"enum": [i, "x"]} for i in range(1200)}}
    for schema in (deep, wide, loop, many, {"allOf": [{"allOf": [{"type": "object"}]}]}, {"enum": []}, {"type": []}):
        made = exported(schema, target)
        assert faults(target, made.definition) == []
        assert len(made.losses) <= 501


@pytest.mark.parametrize(
    "part",
    [
        {"const": 1, "enum": [2]},
        {"type": "string", "enum": [1]},
        False,
        {"allOf": [False]},
        {"enum": []},
        {"type": "array", "items": False, "minItems": 1},
    ],
)
@pytest.mark.parametrize("target", ["openaiStrict", "gemini"])
def test_what_nothing_fits_is_never_opened_without_a_word(target: Target, part: Any) -> None:
    schema = {"properties": {"p": part}, "required": ["p"], "additionalProperties": False}
    for whole in (schema, {"allOf": [schema, False]}):
        made = exported(whole, target)
        lost = any(loss.path.startswith("/parameters") for loss in made.losses)
        validator = jsonschema.Draft202012Validator(schema_of(made, target))
        assert lost or not any(validator.is_valid({"p": value}) for value in (1, 2, "x", [], [1], None))
    for form in TARGETS:
        root = exported({"allOf": [False]}, form)
        assert (
            root.losses != [] if form not in ("mcp", "cursor") else root.definition["inputSchema"]["allOf"] == [False]
        )
