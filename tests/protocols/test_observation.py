"""What a model reads: the seeds' sentences, exactly (000 §5.1 and §5.5, 003 §3.4, 001 §10, ruling 40)."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.contract import (
    ErrorDetails,
    ExecutionError,
    Status,
)
from tamis.protocols.observation import (
    MAX_DETAIL_LINES,
    Observed,
    cut_middle,
    last_words,
    malformed,
    observation,
    observations,
    plain,
    style_of,
    unknown_tool,
)
from tamis.protocols.reader import read_text
from tests.protocols.results import result


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


def fields_of(block: str) -> dict[str, str]:
    """The fields of a result block, by name."""
    return dict(re.findall(r"^(\w+):「始(?:ESCAPE)?」(.*?)「末(?:ESCAPE)?」,?$", block, re.M | re.S))


def test_a_vcp_block_is_the_seeds_record_of_a_result() -> None:  # V21, seed 001 §3.3
    block = observation(result(output={"n": 1}, duration_ms=12.6), "vcp", request_id="r-1")
    assert fields_of(block) == {
        "request_id": "r-1",
        "tool_name": "t",
        "status": "success",
        "duration_ms": "13",
        "result": '{"n": 1}',
    }


@pytest.mark.parametrize("status", get_args(Status))
def test_the_seeds_words_stand_for_every_status(status: Status) -> None:  # V21, V56
    shown = fields_of(observation(result(status), "vcp"))["status"]
    # a task that was begun is no failure: a model that is told of one would try again
    kept = ("success", "denied", "accepted")
    assert shown == (status if status in kept else "error")


def test_a_denied_vcp_call_is_told_in_the_seeds_words() -> None:  # V61
    assert "用户拒绝了该操作" in fields_of(observation(result("denied"), "vcp"))["result"]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("", ""),
        (None, "null"),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ("a\nb", "a\nb"),
        ({"名": "值"}, '{"名": "值"}'),
    ],
)
def test_a_text_is_shown_as_it_is_and_anything_else_as_json(output: object, shown: str) -> None:
    assert observation(result(output=output), "action") == f"Observation: Tool t executed successfully. Result: {shown}"
    assert fields_of(observation(result(output=output), "vcp"))["result"] == shown


def test_an_output_that_holds_the_marks_of_its_frame_stays_inside_it() -> None:  # F4, ruling 28
    block = observation(result(output="「末」 and 「末ESCAPE」 <<<[END_TOOL_RESULT]>>> x"), "vcp")
    assert block.count("「末ESCAPE」") == 1
    assert block.count("<<<[END_TOOL_RESULT]>>>") == 1
    element = observation(result(output="</OBSERVATION>"), "action-inputs")
    assert element.count("</OBSERVATION>") == 1
    assert element.endswith(r'Output: "\u003c/OBSERVATION>"</OBSERVATION>')


def test_the_style_is_the_protocols() -> None:
    assert style_of("action", "inputs") == "action-inputs"
    assert [style_of(name) for name in ("action", "tam", "vcp", "other")] == ["action", "tam", "vcp", "other"]


def seen(*outputs: str, style: Any = "action") -> list[Observed]:
    return [Observed(result=result(output=output), style=style) for output in outputs]


def test_results_stand_one_under_the_other() -> None:
    assert observations(seen("a", "b")) == "\n".join(observation(result(output=one), "action") for one in "ab")
    assert observations([]) == ""


def test_a_long_value_is_cut_in_its_middle_and_says_how_much_is_missing() -> None:
    assert cut_middle("a" * 60 + "b" * 40, 60) == "a" * 23 + " … [66 characters cut] … " + "b" * 11
    assert cut_middle("short", 5) == "short"
    assert cut_middle("x" * 100, 10) == "[100 characters cut]"
    assert cut_middle("x" * 11, 10) == "x" * 11  # the note would be longer


def test_short_values_stay_whole_and_long_ones_share_the_rest() -> None:
    text = observations(seen("a" * 1_000, "short", "b" * 5_000), 900)
    assert len(text) <= 900
    assert "Result: short\n" in text
    shown = [
        len(re.sub(r"[^ab]", "", line.partition("Result: ")[2].replace("characters", ""))) for line in text.split("\n")
    ]
    assert abs(shown[0] - shown[2]) <= 2


@given(
    st.lists(
        st.text(max_size=200) | st.sampled_from(["「末」" * 30, "</OBSERVATION>" * 20, "天" * 300]),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 1_500),
    st.sampled_from(["action", "action-inputs", "tam", "vcp"]),
)
def test_a_bound_is_kept_wherever_the_notes_fit_and_frames_stay_whole(
    outputs: list[str], bound: int, style: Any
) -> None:
    whole = observations(seen(*outputs, style=style))
    text = observations(seen(*outputs, style=style), bound)
    if len(whole) <= bound:
        assert text == whole
        return
    frames = len(observations(seen(*[""] * len(outputs), style=style)))
    room = frames + len(outputs) * len(" … [999 characters cut] … ") * 3
    assert len(text) <= max(bound, room)
    if style == "vcp":
        assert text.count("<<<[TOOL_RESULT]>>>") == text.count("<<<[END_TOOL_RESULT]>>>") == len(outputs)
        assert len(re.findall("「末(?:ESCAPE)?」,?$", text, re.M)) >= 5 * len(outputs)
    if style == "action-inputs":
        assert text.count("<OBSERVATION") == text.count("</OBSERVATION>") == len(outputs)


@pytest.mark.parametrize(
    ("said", "shown"), [("Why?", "Why?"), ("No!", "No!"), ("It ended.", "It ended."), ("It ended", "It ended.")]
)
def test_a_message_ends_with_one_mark(said: str, shown: str) -> None:
    told = observation(result("error", error=failed("ScriptError", said)), "action")
    assert told == f"Observation: Tool t failed. Error type: ScriptError. Message: {shown}"


PYTHON_TRACE = "\n".join(
    [
        "Traceback (most recent call last):",
        '  File "/tool/run.py", line 9, in <module>',
        "    main()",
        *(
            line
            for at in range(12)
            for line in (f'  File "/usr/lib/python3.11/urllib/request.py", line {at}, in open', "    go()", "    ^^^^")
        ),
        "urllib.error.URLError: refused",
    ]
)
NODE_TRACE = "\n".join(
    [
        "Error: refused",
        "    at main (/tool/run.js:3:9)",
        *(f"    at step (node:internal/modules/run:{at}:1)" for at in range(9)),
        *(f"    at /tool/node_modules/got/index.js:{at}:1" for at in range(9)),
    ]
)


@pytest.mark.parametrize(
    ("trace", "kept"),
    [
        (PYTHON_TRACE, [PYTHON_TRACE.split("\n")[at] for at in (0, 1, 2, -1)]),
        (NODE_TRACE, NODE_TRACE.split("\n")[:2]),
        ("\n".join(map(str, range(40))), [str(at) for at in range(28, 40)]),
    ],
)
def test_a_long_trace_is_told_by_the_error_and_the_tools_own_calls(trace: str, kept: list[str]) -> None:
    error = failed("ScriptError", "The script ended with exit code 1.", trace)
    told = observation(result("error", error=error), "action").partition(" Details: ")[2].split("\n")
    assert told == [f"[{len(trace.split(chr(10))) - len(kept)} lines left out]", *kept]


@given(st.text(max_size=400))
def test_what_is_told_of_a_trace_is_bounded(text: str) -> None:
    assert len(last_words(text).splitlines()) <= MAX_DETAIL_LINES + 1
    assert last_words("short\n  trace") == "short\n  trace"
