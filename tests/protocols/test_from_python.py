"""Manifests drafted from Python functions: read and never imported (D88)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import severity
from tamis.protocols.manifest.from_python import draft_manifest, functions
from tamis.protocols.manifest.reading import read_manifest


def properties(signature: str, before: str = "") -> dict[str, Any]:
    source = f"{before}\ndef f({signature}): ...\n"
    draft = draft_manifest(source, "f", "f.py")
    assert draft is not None
    reading = read_manifest(json.dumps(draft.manifest))
    assert not [diag for diag in reading.diagnostics if severity(diag) == "error"]
    parameters: Any = draft.manifest["parameters"]
    return parameters["properties"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("'int'", {"type": "integer"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("typing.List[str]", {"type": "array", "items": {"type": "string"}}),
        ("dict[str, float]", {"type": "object", "additionalProperties": {"type": "number"}}),
        ("int | None", {"type": ["integer", "null"]}),
        ("Optional[str]", {"type": ["string", "null"]}),
        ("Union[int, list[int]]", {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
        ("Literal['a', 2, None]", {"enum": ["a", 2, None]}),
        ("Annotated[int, 'How many.']", {"type": "integer", "description": "How many."}),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("datetime.datetime", {"type": "string", "format": "date-time"}),
        ("Path", {"type": "string"}),
        ("SomethingElse", {}),
        ("int | SomethingElse", {}),
        ("Any", {}),
    ],
)
def test_an_annotation_as_schema(annotation: str, schema: dict[str, Any]) -> None:
    assert properties(f"x: {annotation}")["x"] == schema


def test_enums_and_typed_dicts_of_the_file_are_followed() -> None:
    before = (
        "class Mode(enum.Enum):\n    FAST = 'fast'\n    BEST = 'best'\n"
        "class Size(TypedDict):\n    width: int\n    unit: NotRequired[str]\n"
    )
    found = properties("mode: Mode, size: Size", before)
    assert found["mode"] == {"enum": ["fast", "best"]}
    assert found["size"] == {
        "type": "object",
        "properties": {"width": {"type": "integer"}, "unit": {"type": "string"}},
        "required": ["width"],
    }


def test_a_class_that_holds_itself_ends() -> None:
    assert properties("n: Node", "class Node(TypedDict):\n    next: Node\n")["n"]["type"] == "object"


def test_defaults_are_kept_and_the_rest_is_required() -> None:
    draft = draft_manifest("def f(a, b=2, *, c='x', d=os.sep, e): ...", "f", "f.py")
    assert draft is not None
    parameters: Any = draft.manifest["parameters"]
    assert parameters["required"] == ["a", "e"]
    assert parameters["properties"]["b"] == {"type": "integer", "default": 2}
    assert parameters["properties"]["c"] == {"type": "string", "default": "x"}
    assert "default" not in parameters["properties"]["d"]


@pytest.mark.parametrize(
    "docstring",
    [
        "Says hello.\n\n    Args:\n        who: Whom to greet.\n\n    Returns:\n        The greeting.\n    ",
        "Says hello.\n\n    Parameters\n    ----------\n    who : str\n        Whom to greet.\n\n    Returns\n    -------\n    str\n        The greeting.\n    ",
        "Says hello.\n\n    :param who: Whom to greet.\n    :returns: The greeting.\n    ",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_docstring_styles(docstring: str) -> None:
    draft = draft_manifest(f'def hello(who: str) -> str:\n    """{docstring}"""\n', "hello", "h.py")
    assert draft is not None
    assert draft.manifest["description"] == "Says hello."
    parameters: Any = draft.manifest["parameters"]
    assert parameters["properties"]["who"]["description"] == "Whom to greet."
    assert draft.manifest["output"] == {"type": "string", "description": "The greeting."}


def test_what_is_assumed_is_said() -> None:
    draft = draft_manifest("def f(a, /, *rest, **more): ...", "f", "f.py")
    assert draft is not None
    said = " ".join(note.message for note in draft.notes)
    assert "type of 'a'" in said
    assert "*rest" in said
    assert "position only" in said
    assert "no docstring" in said
    parameters: Any = draft.manifest["parameters"]
    assert parameters["additionalProperties"] is True


def test_places_of_functions_count_code_points() -> None:
    source = "名 = '😀'\n\n@cache\nasync def 求和(a): pass\ndef _own(): pass\nclass C:\n    def method(self): pass\n"
    (found,) = functions(source)
    assert source[found.name_span[0] : found.name_span[1]] == "求和"
    assert source[found.span[0] : found.span[1]] == "@cache\nasync def 求和(a): pass"


def test_nothing_of_the_file_is_run() -> None:
    source = "raise SystemExit(3)\ndef f(x=print('run')): ...\n"
    assert properties_of_text(source) == {"x": {}}


def properties_of_text(source: str) -> dict[str, Any]:
    draft = draft_manifest(source, "f", "f.py")
    assert draft is not None
    parameters: Any = draft.manifest["parameters"]
    return parameters["properties"]


@pytest.mark.parametrize("source", ["def f(:", "\0", "(" * 5000, "def f(): '''\\N{nope}'''", ""])
def test_a_file_that_is_no_python_has_no_functions(source: str) -> None:
    assert functions(source) == ()
    assert draft_manifest(source, "f", "f.py") is None


@given(st.text(max_size=60))
def test_any_docstring_is_read(text: str) -> None:
    source = f"def f(a):\n    {text!r}\n"
    draft = draft_manifest(source, "f", "f.py")
    assert draft is None or isinstance(draft.manifest["description"], str)
