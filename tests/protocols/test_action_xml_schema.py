"""``tamis schema --action`` (F12): the XML Schema of tools' blocks, as libxml2 judges good and bad ones by it, in both shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from tamis.protocols.action.write import write_calls
from tamis.protocols.base import PlainCall, WriteOptions
from tamis.protocols.export.xml_schema import action_schema
from tamis.protocols.export.xml_types import xml_pattern
from tamis.protocols.manifest.reading import ExternalScript, Manifest, read_manifest
from tamis.protocols.model import Json, ToolHint
from tamis.protocols.schema.regex import compile_pattern

ROOT = Path(__file__).resolve().parent.parent.parent
SHAPES = ("tag", "inputs")


def manifest(properties: Any, required: Any = (), tool_id: str = "find", **fields: Any) -> Manifest:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    schema.update(fields.pop("schema", {}))
    return Manifest(
        tool_id=tool_id,
        display_name=fields.pop("display_name", "Find"),
        description=fields.pop("description", "Finds things."),
        version="1.0.0",
        handler=ExternalScript("tool.py", "python"),
        parameters=schema,
        **fields,
    )


def compiled(*manifests: Manifest) -> Any:
    return etree.XMLSchema(etree.fromstring(action_schema(manifests).text.encode()))


def valid(schema: Any, block: str) -> bool:
    return schema.validate(etree.fromstring(block))


def block(shape: str, tool_id: str, *params: tuple[str, str]) -> str:
    if shape == "tag":
        return f"<ACTION><{tool_id}>{''.join(f'<{n}>{v}</{n}>' for n, v in params)}</{tool_id}></ACTION>"
    inside = "".join(f'<input name="{n}">{v}</input>' for n, v in params)
    return f"<ACTION><tool_id>{tool_id}</tool_id><inputs>{inside}</inputs></ACTION>"


def losses(*manifests: Manifest) -> set[tuple[str, str]]:
    return {(loss.code, loss.path) for each in action_schema(manifests).losses.values() for loss in each}


FIND = manifest(
    {
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "rate": {"type": "number", "exclusiveMinimum": 0},
        "mode": {"enum": ["fast", "slow"]},
        "deep": {"type": "boolean"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
    },
    ["count", "mode"],
    aliases=("seek",),
)
GOOD = (("count", "3"), ("mode", "fast"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("params", "good"),
    [
        (GOOD, True),
        ((("mode", "fast"), ("count", "3")), True),
        ((*GOOD, ("rate", "0.5"), ("deep", "true"), ("code", "AB")), True),
        ((("count", " 3 "), ("mode", "\n slow\n")), True),
        ((("count", "3"),), False),
        ((), False),
        ((*GOOD, ("cuont", "3")), False),
        ((*GOOD, ("count", "4")), False),
        ((("count", "many"), ("mode", "fast")), False),
        ((*GOOD, ("code", "ab")), False),
        ((("count", "3"), ("mode", "medium")), False),
        ((*GOOD, ("deep", "maybe")), False),
        ((*GOOD, ("rate", "NaN")), False),
    ],
    ids=str,
)
def test_what_a_block_needs(shape: str, params: tuple[tuple[str, str], ...], good: bool) -> None:
    """F12: required, unknown and repeated parameters, types, ranges, patterns and values, in any order."""
    assert valid(compiled(FIND), block(shape, "find", *params)) is good


@pytest.mark.parametrize("shape", SHAPES)
def test_only_tools_that_exist_and_their_aliases(shape: str) -> None:  # F12
    schema = compiled(FIND)
    assert valid(schema, block(shape, "seek", *GOOD))
    assert not valid(schema, block(shape, "fnid", *GOOD))
    assert not valid(schema, "<ACTION/>")
    assert not valid(schema, "<find/>")


def test_the_type_of_a_parameter_is_its_own_by_tag() -> None:  # F12; with <inputs> XML Schema 1.0 cannot say it
    schema = compiled(FIND)
    assert not valid(schema, block("tag", "find", ("count", "true"), ("mode", "fast")))
    assert not valid(schema, block("tag", "find", ("count", "12"), ("mode", "fast")))
    assert valid(schema, block("inputs", "find", ("count", "true"), ("mode", "fast")))


def test_several_calls_stand_in_one_block() -> None:  # F12, ruling 14
    other = manifest({"path": {"type": "string"}}, ["path"], tool_id="core:read", aliases=("read",))
    schema = compiled(FIND, other)
    call = "<find><count>3</count><mode>fast</mode></find>"
    assert valid(schema, f"<ACTION>{call}<read><path>a</path></read>{call}</ACTION>")
    assert not valid(schema, f"<ACTION>{call}<read/></ACTION>")
    pair = '<tool_id>core:read</tool_id><inputs><input name="path">a</input></inputs>'
    assert valid(schema, f"<ACTION>{pair}{pair}</ACTION>")
    assert not valid(schema, f"<ACTION>{pair}<tool_id>core:raed</tool_id></ACTION>")


LISTS = manifest(
    {
        "file": {"type": "array", "items": {"type": "string"}},
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "where": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "boolean"}}},
            "additionalProperties": False,
        },
    },
    ["file", "query"],
)


@pytest.mark.parametrize(
    ("inside", "good"),
    [
        ("<query>q</query><file>a</file>", True),
        ("<file>a</file><query>q</query><file>b</file>", True),
        ("<file><item>a</item><item>b</item></file><query>q</query>", True),
        ('<query>q</query><limit>1</limit><file>["a", "b"]</file>', True),
        ("<query>q</query><file>a</file><where><x>1</x><tags>true</tags><tags>false</tags></where>", True),
        ('<where>{"x": 1}</where><query>q</query><file>a</file>', True),
        ("<query>q</query>", False),
        ("<file>a</file>", False),
        ("<file>a</file><query>q</query><query>r</query>", False),
        ("<file>a</file><query>q</query><limit>1</limit><limit>2</limit>", False),
        ("<file>a</file><query>q</query><limit>x</limit>", False),
        ("<query>q</query><file>a</file><where><y>1</y></where>", False),
        ("<query>q</query><file>a</file><where><x>one</x></where>", False),
        ("<query>q</query><file><one>a</one></file>", False),
    ],
)
def test_lists_are_elements_of_one_name_or_items_and_objects_have_members(
    inside: str, good: bool
) -> None:  # F12, ruling 15
    assert valid(compiled(LISTS), f"<ACTION><find>{inside}</find></ACTION>") is good


def test_required_lists_and_objects_stand_in_any_order() -> None:  # F12
    inner = {"type": "array", "items": {"type": "string"}}
    schema = compiled(manifest({"a": inner, "b": inner, "c": {"type": "object"}, "d": {"type": "string"}}, "abc"))
    for order in ("abc", "cab", "bcad", "dabcab"):
        assert valid(schema, f"<ACTION><find>{''.join(f'<{n}>1</{n}>' for n in order)}</find></ACTION>")
    for order in ("ab", "bcd", "aabb", ""):
        assert not valid(schema, f"<ACTION><find>{''.join(f'<{n}>1</{n}>' for n in order)}</find></ACTION>")


def test_what_goes_with_a_call_and_open_parameters_are_taken() -> None:  # F12, D70
    free = manifest({"a": {"type": "integer"}}, schema={"additionalProperties": True})
    schema = compiled(free)
    for shape in SHAPES:
        assert valid(schema, block(shape, "find", ("a", "1"), ("other", "x")))
    assert valid(schema, "<ACTION><tool_id>find</tool_id><inputs/><context><session>1</session></context></ACTION>")
    assert not valid(schema, "<ACTION><context/></ACTION>")
    assert ("open", "/parameters") in losses(free)


@pytest.mark.parametrize(
    ("properties", "tool_id", "loss"),
    [
        ({"a b": {"type": "string"}}, "find", ("no-xml-name", "/parameters/properties/a b")),
        ({"x:y": {"type": "string"}}, "find", ("no-xml-name", "/parameters/properties/x:y")),
        ({}, "core:find", ("no-tag", "/toolId")),
        ({}, "action", ("no-tag", "/toolId")),
        ({}, "workflows/x.json", ("no-tag", "/toolId")),
        (
            {"a": {"type": "string", "pattern": "^(?=x)"}},
            "find",
            ("pattern-dropped", "/parameters/properties/a/pattern"),
        ),
        (
            {"a": {"type": "string", "pattern": "(a*)*b"}},
            "find",
            ("pattern-dropped", "/parameters/properties/a/pattern"),
        ),
        (
            {"a": {"type": "number", "multipleOf": 2}},
            "find",
            ("keyword-dropped", "/parameters/properties/a/multipleOf"),
        ),
        (
            {"a": {"type": "integer", "minimum": 9, "maximum": 1}},
            "find",
            ("bounds-dropped", "/parameters/properties/a"),
        ),
        ({"a": {"enum": ["x", "\x07"]}}, "find", ("value-dropped", "/parameters/properties/a")),
        ({"a": {"enum": [["x"]]}}, "find", ("values-open", "/parameters/properties/a")),
        ({"a": {"type": ["array", "integer"]}}, "find", ("alternatives", "/parameters/properties/a")),
    ],
)
def test_what_cannot_be_said_is_named(properties: Any, tool_id: str, loss: tuple[str, str]) -> None:  # F12
    tool = manifest(properties, tool_id=tool_id)
    compiled(tool)
    assert loss in losses(tool)


def test_a_tool_whose_required_parameter_is_no_element_is_only_called_with_inputs() -> None:  # F12
    tool = manifest({"a b": {"type": "string"}}, ["a b"])
    schema = compiled(tool)
    assert not valid(schema, "<ACTION><find/></ACTION>")
    assert valid(schema, block("inputs", "find", ("a b", "x")))
    assert not valid(schema, block("inputs", "find"))


def test_values_of_secrets_are_not_told() -> None:  # F12, trust
    tool = manifest({"key": {"type": "string", "x-secret": True, "enum": ["hunter2"], "default": "hunter2"}})
    assert "hunter2" not in action_schema([tool]).text


def test_the_schema_does_not_depend_on_the_order_of_the_tools() -> None:  # F12
    tools = [FIND, manifest({"a": {"type": "string"}}, tool_id="other"), manifest({}, tool_id="third")]
    assert action_schema(tools) == action_schema(tools[::-1])


def examples() -> list[Manifest]:
    paths = sorted((ROOT / "examples" / "tools").rglob("*.tool.json"))
    return [tool for path in paths if (tool := read_manifest(path.read_text("utf-8")).manifest) is not None]


def written(tool: Manifest, name: str, args: dict[str, Json], shape: Any, elements: bool = False) -> str | None:
    hints = {key: ToolHint(tool.tool_id, tool.parameters or {}) for key in (tool.tool_id, name)}
    options = WriteOptions(shape=shape, tools=hints, elements=elements)
    return write_calls([PlainCall(name, args)], options).text or None


@pytest.mark.parametrize("elements", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_examples_of_manifests_are_valid_as_tamis_writes_them(shape: str, elements: bool) -> None:  # F12
    tools = examples()
    every = compiled(*tools)
    count = 0
    for tool in tools:
        for call in tool.examples:
            name = tool.tool_id if shape == "inputs" else next(one for one in tool.aliases if ":" not in one)
            text = written(tool, name, call.input, shape, elements)
            # Not every value can be elements.
            assert text is not None or elements
            if text is None:
                continue
            for schema in (every, compiled(tool)):
                assert valid(schema, text), (text, schema.error_log)
            count += 1
    assert count > 15


NAMES = st.from_regex(r"[a-z][a-z_]{0,5}", fullmatch=True).filter(lambda name: name != "item")
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x7f", categories=["L", "N", "P", "S", "Zs"]) | st.just("\n"),
    max_size=12,
)
Typed = tuple[dict[str, Any], st.SearchStrategy[Any]]
SCALARS: st.SearchStrategy[Typed] = st.sampled_from(
    [
        ({"type": "string"}, TEXTS),
        ({"type": "string", "minLength": 1, "maxLength": 3}, st.text("ab<&😀", min_size=1, max_size=3)),
        ({"type": "string", "pattern": "^a+\\s|[^x]$"}, st.sampled_from(["a b", "aa\nx", "xb", "é"])),
        ({"type": "integer"}, st.integers(-(10**17), 10**17)),
        ({"type": "integer", "minimum": 0, "exclusiveMaximum": 10}, st.integers(0, 9)),
        ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-99, 99)),
        ({"type": "number", "maximum": 1.5}, st.floats(max_value=1.5, allow_infinity=False)),
        ({"type": "boolean"}, st.booleans()),
        ({"type": ["integer", "null"]}, st.integers(-5, 5) | st.none()),
        ({"enum": ["x", " y", "<&>", 3, 1.5, True, None]}, st.sampled_from(["x", " y", "<&>", 3, 1.5, True])),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, st.integers(0, 5) | st.booleans()),
    ]
)


def _list_of(inner: Typed) -> Typed:
    return {"type": "array", "items": inner[0]}, st.lists(inner[1], max_size=3)


def _object_of(members: dict[str, Typed]) -> Typed:
    schema = {
        "type": "object",
        "properties": {name: one[0] for name, one in members.items()},
        "additionalProperties": False,
    }
    return schema, st.fixed_dictionaries({}, optional={name: one[1] for name, one in members.items()})


VALUES: st.SearchStrategy[Typed] = st.recursive(
    SCALARS, lambda inner: inner.map(_list_of) | st.dictionaries(NAMES, inner, max_size=3).map(_object_of), max_leaves=4
)


@st.composite
def tools_and_args(draw: st.DrawFn) -> tuple[Manifest, dict[str, Json]]:
    params = draw(st.dictionaries(NAMES, VALUES, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(params)), unique=True)) if params else []
    tool = manifest({name: one[0] for name, one in params.items()}, required)
    chosen = [name for name in params if name in required or draw(st.booleans())]
    return tool, {name: draw(params[name][1]) for name in draw(st.permutations(chosen))}


@pytest.mark.slow
@given(tools_and_args(), st.sampled_from(SHAPES), st.booleans())
def test_whatever_tamis_writes_for_good_arguments_is_valid(made: Any, shape: str, elements: bool) -> None:
    """F12, property: a schema refuses no canonical block of arguments that fit; without a required one it is refused."""
    tool, args = made
    text = written(tool, "find", args, shape, elements)
    if text is None:
        return
    schema = compiled(tool)
    assert valid(schema, text), (text, schema.error_log)
    required: Any = (tool.parameters or {})["required"]
    if required and ("required-dropped", "/parameters/required") not in losses(tool):
        without = {key: value for key, value in args.items() if key != required[0]}
        bad = written(tool, "find", without, shape, elements)
        assert bad is None or not valid(schema, bad)


HOSTILE = st.sampled_from(
    ['"><x/>', "]]>", "<!--", "&amp;", "a b", "x:y", "\x00", "\ud800", "é", "数", "1a", "-", "", "item", "xml"]
)
KEYWORDS = [
    *(
        "type",
        "properties",
        "items",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "pattern",
        "minimum",
        "maximum",
    ),
    *("exclusiveMinimum", "minLength", "maxLength", "required", "$ref", "$defs", "additionalProperties"),
    *("patternProperties", "description", "prefixItems", "multipleOf"),
]
WORDS = st.sampled_from(["string", "integer", "number", "array", "object", "#", "#/properties/a", "[", "^a$", "\\p{L}"])
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(HOSTILE | st.sampled_from(KEYWORDS), inner | WORDS, max_size=5)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(
    st.dictionaries(HOSTILE | NAMES, JUNK, max_size=4),
    st.lists(HOSTILE | NAMES, max_size=3),
    st.dictionaries(st.sampled_from(KEYWORDS), JUNK, max_size=2),
    HOSTILE,
    HOSTILE,
)
@example({"a": {"type": "string", "enum": ["<"], "description": "</xs:documentation>"}}, [], {}, "find", "--><x>")
@example({"a": {"$ref": "#"}}, ["a"], {"allOf": [{"$ref": "#"}]}, "find", "x")
def test_hostile_manifests_give_a_schema_that_compiles(
    properties: Any, required: Any, root: Any, tool_id: str, about: str
) -> None:
    """F12: names, patterns, values and texts with markup are escaped or left out."""
    tool = manifest(properties, required, tool_id=tool_id or "x", description=about, aliases=("a", about), schema=root)
    compiled(tool, FIND)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "^[a-z]+$",
            "abc",
            "^a|b$",
            "^(a|b)*c?$",
            "a.c",
            "\\d{2,4}",
            "^\\S+$",
            "[^\\s]",
            "^[\\w.-]+@x$",
            "^$",
            "^\\[\\]\\^\\\\-$",
        ),
        *("[\\]a-]", "x{0,2}y", "^(?:ab){2}$", "\\.", "^.$", "^é+", "^[一-龥]+$", "a{0}", "(?:)"),
    ],
)
@settings(max_examples=max(1, settings().max_examples // 2))
@given(st.data())
def test_a_translated_pattern_takes_what_the_pattern_takes(pattern: str, data: st.DataObject) -> None:  # F12
    found = xml_pattern(pattern)
    assert found is not None
    facet = etree.Element("pattern", value=found)
    escaped = etree.tostring(facet, encoding="unicode").replace("<pattern", "<xs:pattern")
    schema = etree.XMLSchema(
        etree.fromstring(
            '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a"><xs:simpleType>'
            f'<xs:restriction base="xs:string">{escaped}</xs:restriction></xs:simpleType></xs:element></xs:schema>'
        )
    )
    own = st.from_regex(compile_pattern(pattern).regex).filter(lambda text: all(c == "\n" or c >= " " for c in text))
    text = data.draw(st.text("abcxy.@-é一 \n\u00a0[]^\\12", max_size=5) | own)
    element = etree.Element("a")
    try:
        element.text = text
    except ValueError:
        return
    assert schema.validate(element) is compile_pattern(pattern).test(text)


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(a)\\1", "\\bx", "(^a)b", "(?i:a)", "a{2000}", "(a{100}){100}", "[", "\\x07", "(a*)*b"]
)
def test_a_pattern_that_cannot_be_said_is_left_out(pattern: str) -> None:  # F12
    assert xml_pattern(pattern) is None


def test_a_long_text_is_judged_by_every_pattern_that_is_written() -> (
    None
):  # F12: libxml2 gives up where it would go back too often
    for pattern in ("a.*b.*c.*d", "^a*a*a*b$", "^.*,.*,.*$"):
        assert xml_pattern(pattern) is None
    for pattern in ("^[^@]+@[a-z]+[.][a-z]+$", "^[a-z0-9]+(-[a-z0-9]+)*$", "x", "^[ab]*$", "^[a-z]{1,500}_[a-z]+$"):
        schema = compiled(manifest({"a": {"type": "string", "pattern": pattern}}))
        assert xml_pattern(pattern) is not None
        for text in ("ab" * 5_000, "7" * 5_000, "a-" * 5_000):
            good = compile_pattern(pattern).regex.search(text) is not None
            assert valid(schema, block("tag", "find", ("a", text))) is good


def test_large_tools_are_written_and_compiled() -> None:  # F12
    tool = manifest(
        {f"p{i}": {"type": "array" if i % 7 == 0 else "integer", "items": {"type": "string"}} for i in range(300)}
    )
    assert valid(compiled(tool), block("tag", "find", ("p1", "1"), ("p0", "x"), ("p299", "5")))
