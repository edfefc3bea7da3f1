"""What a model reads: the seeds' sentences, exactly (000 §5.1 and §5.5, 003 §3.4, 001 §10, ruling 40)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import (
    ErrorDetails,
    ExecutionError,
    ExecutionResult,
    Granted,
    Permissions,
    Status,
    Usage,
)
from tamis.protocols.observation import malformed, observation, plain, unknown_tool
from tamis.protocols.reader import read_text


def result(status: Status = "success", tool_id: str = "t", **fields: Any) -> ExecutionResult:
    return ExecutionResult(
        call_id="c1",
        tool_id=tool_id,
        version="1.0.0",
        status=status,
        usage=Usage(cpu_ms=0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
        **fields,
    )


def failed(kind: Any, message: str, text: str = "") -> ExecutionError:
    return ExecutionError(type=kind, message=message, details=ErrorDetails(text=text))


def test_success_by_tag_is_the_seeds_sentence() -> None:  # A27, A36
    assert observation(result(tool_id="ReadWorldStateTool", output="sunny"), "action") == (
        "Observation: Tool ReadWorldStateTool executed successfully. Result: sunny"
    )


def test_success_in_the_inputs_shape_is_the_seeds_sentence() -> None:  # D65, D67
    output = {"processed_items": 10, "report_url": "/reports/analyzer_123.html"}
    assert observation(result(tool_id="core:execute-python-script", output=output), "action-inputs") == (
        '<OBSERVATION tool_id="core:execute-python-script">Tool core:execute-python-script executed successfully. '
        'Output: {"processed_items": 10, "report_url": "/reports/analyzer_123.html"}</OBSERVATION>'
    )


def test_failure_is_the_seeds_sentence_with_details_only_when_there_are_some() -> None:  # D66
    error = failed("ScriptError", "Division by zero in script.", "Traceback (most recent call last)...")
    assert observation(result("error", "core:x", error=error), "action") == (
        "Observation: Tool core:x failed. Error type: ScriptError. Message: Division by zero in script. "
        "Details: Traceback (most recent call last)..."
    )
    error = failed("ParameterValidationError", "Input parameter 'timeoutMs' must be an integer")
    assert observation(result("error", "core:x", error=error), "action-inputs") == (
        '<OBSERVATION tool_id="core:x">Tool core:x failed. Error type: ParameterValidationError. '
        "Message: Input parameter 'timeoutMs' must be an integer.</OBSERVATION>"
    )


def test_tam_names_the_step_when_there_are_several() -> None:
    assert observation(result(output=1), "tam", step=2) == (
        "Observation: Tool t (step 2) executed successfully. Result: 1"
    )
    assert observation(result(output=1), "tam") == "Observation: Tool t executed successfully. Result: 1"


NOT_RUN: list[tuple[Status, str]] = [
    ("denied", "the user denied it (用户拒绝了该操作)."),
    ("approvalTimeout", "no one answered the approval request in time; this is not a refusal."),
    ("approvalUnavailable", "there is no one to ask for approval."),
    ("cancelled", "it was cancelled."),
]


@pytest.mark.parametrize(("status", "words"), NOT_RUN)
def test_each_way_not_to_run_has_its_own_words(status: Status, words: str) -> None:  # ruling 40, V61
    assert observation(result(status), "action") == f"Observation: Tool t was not executed: {words}"


def test_policy_and_timeout_have_their_own_words() -> None:  # ruling 40
    blocked = result("blocked", error=failed("SecurityError", "no network."))
    assert observation(blocked, "action") == "Observation: Tool t was not executed: policy forbids it: no network."
    late = result("timeout", error=failed("TimeoutError", "no result after 100 ms"))
    assert observation(late, "action").endswith("Error type: TimeoutError. Message: no result after 100 ms.")


def test_malformed_blocks_open_with_the_seeds_words_and_say_where() -> None:  # A29, ruling 19
    assert malformed("action", 3, 7, "no tool") == (
        "Observation: Error - Malformed XML in ACTION block: line 3, column 7: no tool"
    )


def test_an_unknown_tool_is_asked_about_only_with_a_suggestion() -> None:  # F25
    assert unknown_tool("readfile", ["read_file"]) == (
        "Unknown tool ID 'readfile', did you mean 'read_file'?",
        "read_file",
    )
    assert unknown_tool("zzz", ["read_file"]) == ("Unknown tool ID 'zzz'", None)


@given(st.text(max_size=60))
def test_a_vcp_result_block_holds_any_text_and_is_no_request(text: str) -> None:
    block = observation(result(output=text), "vcp")
    assert not [call for call in read_text(block).calls if call.executable]
    assert block.startswith("<<<[TOOL_RESULT]>>>\n")
    assert block.endswith("\n<<<[END_TOOL_RESULT]>>>")


def test_control_and_direction_characters_are_shown_not_sent() -> None:  # D74
    assert plain("a\x1b[31m\u202eb\x00") == "a\\u001b[31m\\u202eb\\u0000"
    assert plain("tab\tline\nend") == "tab\tline\nend"
