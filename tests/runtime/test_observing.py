"""Results in the words of a protocol that a plug-in brought, and the bound on their length."""

from __future__ import annotations

import json

import pytest

from tamis.protocols.hermes.protocol import HERMES
from tamis.protocols.plugins import find_protocol, register
from tamis.server.runtime.texts.observing import GivenDetails, GivenError, GivenResult, format_results

LONG = GivenResult(tool_id="a", output={"text": "x" * 5_000})
FAILED = GivenResult(
    tool_id="b",
    status="error",
    attempts=1,
    error=GivenError(type="ScriptError", message="m" * 3_000, details=GivenDetails(text="d" * 3_000)),
)


@pytest.fixture(autouse=True)
def hermes() -> None:
    if find_protocol(HERMES.id) is None:
        register(HERMES)


@pytest.mark.parametrize("protocol", ["hermes", "json", "action", "tam", "vcp"])
@pytest.mark.parametrize("bound", [700, 1_500, 6_000])
def test_the_bound_is_kept_in_every_protocol(protocol: str, bound: int) -> None:
    text = format_results([LONG, FAILED], protocol, max_chars=bound)
    assert bound // 2 < len(text) <= bound
    assert "characters cut]" in text
    assert len(format_results([LONG, FAILED], protocol)) > 11_000


def test_a_plug_in_gives_its_own_form_which_stays_whole() -> None:
    text = format_results([LONG, FAILED], "hermes", max_chars=1_000)
    assert text.count("<tool_response>") == text.count("</tool_response>") == 2
    first = text.partition("<tool_response>")[2].partition("</tool_response>")[0]
    assert json.loads(first)["name"] == "a"


def test_an_unreadable_block_keeps_the_observation_it_came_with() -> None:  # A29, ruling 19
    told = "Observation: Error - Malformed XML in ACTION block: line 1, column 1: x"
    error = GivenError(type="ParameterValidationError", message="x", details=GivenDetails(code="AX101"))
    given = GivenResult(tool_id="t", status="error", error=error, observation=told)
    assert format_results([given], "action") == told
    assert "result:「始」Tool t failed." in format_results([given], "vcp")
