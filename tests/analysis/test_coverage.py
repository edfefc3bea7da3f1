"""What examples cover of a manifest (editors 1.3 row 17): counted where it stands."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tamis.server.analysis.running.expectations import MAX_COVERED, MAX_DEPTH, Covered, Exercise, covered
from tamis.server.analysis.snapshot import Snapshot


def manifest_snapshot(text: str) -> Snapshot:
    return Snapshot("/w/a.tool.json", "manifest", text, None)


def parts(
    parameters: Any, *inputs: Any, context: Any = None, refused: frozenset[tuple[str, str]] = frozenset()
) -> list[Covered]:
    text = json.dumps({"parameters": parameters, "securityContext": context or {}}, ensure_ascii=False, indent=1)
    found = covered(manifest_snapshot(text), [Exercise(one, refused) for one in inputs])
    for part in found:
        assert part.name in text[slice(*part.span)]  # the place is its own
    return found


def counts(found: list[Covered]) -> list[tuple[str, str, int]]:
    return [(part.kind, part.name, part.count) for part in found]


def test_a_parameter_is_covered_by_the_runs_that_give_it() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "文件": {"type": "string"}}}
    assert counts(parts(schema, {"text": "a"}, {"text": "b", "x": 1})) == [
        ("parameter", "text", 2),
        ("parameter", "文件", 0),
    ]


def test_only_the_values_of_runs_count_and_no_text_that_looks_alike() -> None:
    assert counts(parts({"properties": {"n": {"enum": [1, True, "1"]}}}, {"n": 1.0}, {"n": "1"})) == [
        ("parameter", "n", 2),
        ("value", "1", 1),
        ("value", "true", 0),
        ("value", "1", 1),
    ]


def test_a_value_of_an_enum_is_covered_where_it_came() -> None:
    schema = {"properties": {"mode": {"enum": ["plain", "loud"]}}}
    assert counts(parts(schema, {"mode": "loud"}, {"mode": "odd"})) == [
        ("parameter", "mode", 2),
        ("value", "plain", 0),
        ("value", "loud", 1),
    ]


def test_parts_of_objects_and_lists_are_covered_by_the_values_that_reach_them() -> None:
    inner = {"type": "object", "properties": {"w": {"type": "number"}, "h": {"type": "number"}}}
    schema = {"properties": {"dims": inner, "all": {"type": "array", "items": inner}}}
    found = parts(schema, {"dims": {"w": 1}, "all": [{"h": 1}, {"h": 2}]}, {"dims": "none"})
    assert counts(found) == [
        ("parameter", "dims", 2),
        ("parameter", "w", 1),
        ("parameter", "h", 0),
        ("parameter", "all", 1),
        ("parameter", "w", 0),
        ("parameter", "h", 2),
    ]


def test_a_permission_is_covered_by_the_runs_that_were_not_refused_it() -> None:
    context = {
        "fileAccess": {"allowRead": ["a/**"], "allowWrite": ["a/**"]},
        "networkAccess": {"allowHosts": ["b.example"]},
    }
    found = parts({}, {}, {}, context=context, refused=frozenset({("read", "a/**")}))
    assert counts(found) == [("permission", "a/**", 0), ("permission", "a/**", 2), ("permission", "b.example", 2)]


def test_a_manifest_of_very_many_or_very_deep_parts_is_told_within_bounds() -> None:
    assert len(parts({"properties": {f"p{number}": {} for number in range(3 * MAX_COVERED)}}, {})) == MAX_COVERED
    deep: Any = {}
    for _ in range(3 * MAX_DEPTH):
        deep = {"properties": {"in": deep}}
    assert len(parts(deep, {})) == MAX_DEPTH + 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(values, st.lists(values, max_size=3))
def test_nothing_that_stands_in_a_manifest_ends_the_count(parameters: Any, inputs: list[Any]) -> None:
    text = json.dumps({"parameters": {"properties": parameters}, "securityContext": {"secrets": parameters}})
    for part in covered(manifest_snapshot(text), [Exercise(one) for one in inputs]):
        assert part.count >= 0
        assert part.span[0] < part.span[1] <= len(text)
