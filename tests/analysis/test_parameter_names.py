"""What a parameter's name means elsewhere is found also where names without any meaning are passed by quickly (LN717, LN719)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.lints import parameters
from tamis.server.analysis.snapshot import Snapshot

_PIECES = st.sampled_from(
    [
        "command",
        "Command",
        "on",
        "On",
        "error",
        "ERROR",
        "retry",
        "request",
        "id",
        "comment",
        "common",
        "uri",
        "type",
        "hint",
        "tool",
        "name",
        "Name",
        "a",
        "B",
        "1",
        "22",
        "_",
        "__",
        "-",
        "x y",
        "é",
        "名",
    ]
)
_NAMES = st.lists(_PIECES, min_size=1, max_size=5).map("".join)


def named(name: str) -> list[tuple[str, str]]:
    """The findings of a parameter's name."""
    manifest = {
        "toolId": "t:a",
        "displayName": "A",
        "description": "Gives the rows of one table.",
        "version": "1.0.0",
        "handler": {"type": "service-method", "serviceName": "S", "methodName": "m"},
        "parameters": {
            "type": "object",
            "properties": {name: {"type": "string", "description": "Which rows it takes."}},
        },
    }
    findings = diagnose(Snapshot("/w/a.tool.json", "manifest", json.dumps(manifest), None))
    return [(finding.code, finding.message) for finding in findings if finding.code in ("LN717", "LN719")]


@given(_NAMES)
def test_a_name_that_is_passed_by_has_no_finding(name: str) -> None:
    quickly = named(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "_FLAT_PREFIXES", ("",))  # every name is read in full
        assert named(name) == quickly


def test_names_with_a_meaning_are_said() -> None:
    assert [[code for code, _ in named(name)] for name in ("on_error", "commonDir", "toolName", "rows", "x y")] == [
        ["LN719"],
        ["LN719"],
        ["LN719"],
        [],
        ["LN717"],
    ]
