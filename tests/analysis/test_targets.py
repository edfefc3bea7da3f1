"""``[lint] targets`` and ``tamis check --target``: what a target would refuse or lose, at its place, with a fix that mends it (interop §2.3)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.export.losses import REFUSED, SAID_OTHERWISE
from tamis.protocols.export.names import TARGETS, Target, portable_names
from tamis.protocols.export.targets import export_tool, shortened
from tamis.protocols.levels import Levels, read_levels
from tamis.protocols.model import Diag
from tamis.server.analysis.lints.targets import _FIXES, lint_targets
from tamis.server.analysis.snapshot import Snapshot
from tests.analysis.few_examples import FEW

ROOT = Path(__file__).resolve().parents[2]
_LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1},
        {"type": "integer", "default": 3},
        {"type": ["string", "null"]},
        {"const": "x"},
        {"enum": ["a", 1]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
        {},
        {"$ref": "#/$defs/d"},
        {"type": "string", "format": "idn-email"},
        {"not": {"type": "string"}},
    ]
)
_NAMES = st.sampled_from(["a", "b", "way", "a b", "名", "x/y", "~t"])
_DESCRIPTIONS = ["Fetch the rows of a table.", 'Fetch "rows". ' * 80, "表" * 1_025]
_OUTPUTS = st.sampled_from([None, {"type": "object"}, {"type": "array"}, True])


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """A manifest that can be registered, as text."""
    parameters: dict[str, Any] = {"type": "object", "properties": draw(st.dictionaries(_NAMES, _LEAVES, max_size=4))}
    if draw(st.booleans()):
        parameters["required"] = draw(
            st.lists(st.sampled_from([*parameters["properties"], "a"]), unique=True, max_size=3)
        )
    if draw(st.booleans()):
        parameters["additionalProperties"] = draw(st.sampled_from([True, False]))
    parameters["$defs"] = {"d": {"type": "string", "maxLength": 3}}
    made: dict[str, Any] = {
        "toolId": draw(st.sampled_from(["net:rows", "rows", "a.b"])),
        "displayName": "Rows",
        "description": draw(st.sampled_from(_DESCRIPTIONS)),
        "version": "1.0.0",
        "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
        "parameters": parameters,
    }
    output = draw(_OUTPUTS)
    if output is not None:
        made["output"] = output
    return json.dumps(made, ensure_ascii=False, indent=draw(st.sampled_from([None, 2])))


def found(text: str, *targets: Target) -> list[Diag]:
    return lint_targets(Snapshot("/w/a.tool.json", "manifest", text, None), Levels(targets=targets))


@pytest.mark.parametrize("target", TARGETS)
@FEW
@given(text=manifests())
def test_each_loss_of_an_export_is_a_finding_of_its_level_inside_the_file(target: Target, text: str) -> None:
    snapshot = Snapshot("/w/a.tool.json", "manifest", text, None)
    manifest = snapshot.manifest.manifest
    assert manifest is not None
    losses = export_tool(manifest, target, manifest.tool_id).losses
    said = [loss for loss in losses if loss.code != "output-dropped" or target in ("mcp", "cursor")]
    diags = [diag for diag in found(text, target) if "models call it" not in str(diag.args["reason"])]
    codes = ["TH401" if loss.code in REFUSED else "TH403" if loss.code in SAID_OTHERWISE else "TH402" for loss in said]
    assert [diag.code for diag in diags] == codes
    assert [diag.args["reason"] for diag in diags] == [loss.message for loss in said]
    assert all(0 <= diag.span[0] < diag.span[1] <= len(text) for diag in diags)


@pytest.mark.parametrize("target", TARGETS)
@FEW
@given(text=manifests())
def test_a_fix_leaves_a_manifest_that_loads_without_the_finding(target: Target, text: str) -> None:
    before = [diag.args["reason"] for diag in found(text, target)]
    for diag in found(text, target):
        if diag.fix is None:
            continue
        mended = text
        for edit in sorted(diag.fix.edits, key=lambda edit: -edit.start):
            mended = mended[: edit.start] + edit.new_text + mended[edit.end :]
        assert Snapshot("/w/a.tool.json", "manifest", mended, None).manifest.manifest is not None, mended
        after = [one.args["reason"] for one in found(mended, target)]
        assert after.count(diag.args["reason"]) < before.count(diag.args["reason"]), mended


WITHOUT_A_FIX = {
    **dict.fromkeys(("over-limit",), "what is left out is for its author to decide"),
    **dict.fromkeys(
        ("root-combination", "tuple-as-list", "free-object", "any-value", "recursive-ref", "ref-unresolved", "too-deep",
         "nothing-fits", "enum-dropped", "object-opened"),
        "where every other way to write it takes other values",
    ),
    "only-described": "and for the words of a description",
    **dict.fromkeys(
        ("examples-dropped", "secret-values", "all-of-merged", "use-json-schema", "description-added"),
        "where the manifest is of use elsewhere as it is",
    ),
}  # fmt: skip
"""Why no edit mends it, in words of docs/diagnostics.md."""


def test_each_loss_has_a_fix_or_the_catalogue_says_why_not() -> None:
    """interop §2.3: a quick fix for each code of the exports."""
    sources = "".join(
        (ROOT / "protocols" / "export" / f"{name}.py").read_text() for name in ("targets", "roots", "subset")
    )
    codes = set(re.findall(r'osses\.add\(\s*"([a-z-]+)"', sources))
    assert codes == {*_FIXES, "name-changed", *WITHOUT_A_FIX}
    assert _FIXES.keys().isdisjoint(WITHOUT_A_FIX)
    page = (ROOT / "docs" / "diagnostics.md").read_text("utf-8")
    assert [why for why in set(WITHOUT_A_FIX.values()) if why not in page] == []


@pytest.mark.parametrize(
    ("tool_id", "target", "name"),
    [
        ("net:get-rows", "cursor", "net_get_rows"),
        ("a" * 80, "cursor", "a" * 54),
        ("class", "smolagents", "class_"),
        ("7up", "smolagents", "_7up"),
        ("net:get-rows", "smolagents", "net_get_rows"),
    ],
)
def test_a_name_is_one_that_the_target_calls_by(tool_id: str, target: Target, name: str) -> None:
    """docs/formats.md: Cursor takes letters, digits and `_`, 59 characters with the server's; smolagents names of Python."""
    assert portable_names([tool_id], target) == {tool_id: name}
    many = portable_names([f"{tool_id}{end}" for end in ("-", ".", ":")], target)
    assert len(set(many.values())) == 3
    assert all(len(other) <= (54 if target == "cursor" else 64) for other in many.values())


def test_the_same_text_is_looked_at_once_and_a_changed_one_again() -> None:
    text = json.dumps(_tool("a b"))
    first = Snapshot("/w/a.tool.json", "manifest", text, None)
    assert lint_targets(first, Levels(targets=("anthropic",))) is lint_targets(first, Levels(targets=("anthropic",)))
    assert lint_targets(first, Levels(targets=("mcp",))) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x" * 1_024, "x" * 1_024),
        ("x" * 1_025, "x" * 1_023 + "…"),
        ("Say it. " * 200, ("Say it. " * 128).rstrip()),
        ("A. " + "x" * 2_000, "A. " + "x" * 1_020 + "…"),
        ("说。" * 600, "说。" * 512),
    ],
)
def test_a_description_is_cut_behind_its_last_sentence_that_fits(text: str, told: str) -> None:
    """OpenAI refuses a longer one: https://github.com/getsentry/sentry-mcp/issues/106."""
    assert shortened(text) == told
    assert len(told) <= 1_024
    assert shortened(told) == told


def _tool(parameter: str) -> dict[str, Any]:
    return {
        "toolId": "rows",
        "displayName": "Rows",
        "description": "Fetch the rows of a table.",
        "version": "1.0.0",
        "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
        "parameters": {"type": "object", "properties": {parameter: {"type": "string"}}},
    }


@pytest.mark.parametrize(
    ("value", "targets", "message"),
    [
        (["mcp", "openai-strict", "mcp"], ("mcp", "openaiStrict"), None),
        (["openaiStrict"], ("openaiStrict",), None),
        (
            ["mcp", "openapi"],
            ("mcp",),
            "'targets' holds 'openapi', which is none of mcp, openai, openai-strict, anthropic, gemini, cursor, smolagents, did you mean 'openai'?",
        ),
        ("mcp", (), "'targets' must be a list of mcp, openai, openai-strict, anthropic, gemini, cursor, smolagents"),
        (
            [1],
            (),
            "'targets' holds '1', which is none of mcp, openai, openai-strict, anthropic, gemini, cursor, smolagents",
        ),
    ],
)
def test_targets_that_are_not_known_are_said(value: object, targets: tuple[str, ...], message: str | None) -> None:
    levels = read_levels({"targets": value})
    assert levels.targets == targets
    assert [problem.message for problem in levels.problems] == ([message] if message else [])
