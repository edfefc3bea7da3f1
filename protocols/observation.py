"""Observations: what a model reads after its calls ran.

The sentences are the seeds' (000 §3.3, 003 §3.4, 001 §10), and ours where they are silent (interface, Observations). Each
protocol's sentence is made from one ``ExecutionResult``; must not know how the result came about.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Literal

from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.model import Json
from tamis.protocols.suggest import best, hint

Style = Literal["action", "action-inputs", "tam", "vcp"]

# Everything but tab and line end that a terminal, a log or a prompt could take for more than text (D74).
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_NOT_RUN = {
    "denied": "the user denied it (用户拒绝了该操作)",
    "approvalTimeout": "no one answered the approval request in time; this is not a refusal",
    "approvalUnavailable": "there is no one to ask for approval",
    "cancelled": "it was cancelled",
    "inputRequired": "it waits for an approval",
}


def plain(text: str) -> str:
    """The text with control and direction characters shown as escapes, so that it can be read and logged safely."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text.replace("\r\n", "\n"))


def value_text(value: object) -> str:
    """A result as it is shown: a text as it is, anything else as JSON on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def observation(
    result: ExecutionResult, style: Style, *, step: int | None = None, problems: bool = False, request_id: str = ""
) -> str:
    """The observation of one result.

    ``step`` is given for a TAM block of several steps; ``problems`` says that the call itself was wrong (unknown tool,
    unfit arguments), which has its own sentence in the ACTION-by-tag style.
    """
    if style == "vcp":
        return _vcp_block(result, request_id or result.call_id)
    name = result.tool_id if step is None else f"{result.tool_id} (step {step})"
    if style == "action-inputs":
        return f'<OBSERVATION tool_id="{escape(result.tool_id)}">{_sentence(result, name, "Output")}</OBSERVATION>'
    if problems and result.error is not UNSET:
        if result.error.type == "UnknownTool":
            return f"Observation: Error - {result.error.message}"
        return f"Observation: Error - Invalid parameters for {name}: {result.error.message}"
    return f"Observation: {_sentence(result, name, 'Result')}"


def malformed(protocol: str, line: int, column: int, cause: str) -> str:
    """The observation of a block that could not be read; ``line`` and ``column`` are one-based (A29, ruling 19)."""
    what = "Malformed XML in ACTION block" if protocol == "action" else f"Malformed {protocol.upper()} block"
    return f"Observation: Error - {what}: line {line}, column {column}: {plain(cause)}"


def unknown_tool(tool_id: str, known: list[str]) -> tuple[str, str | None]:
    """The message for an unknown tool and the suggestion in it, if any (ruling 3)."""
    found = best(tool_id, known)
    return f"Unknown tool ID '{plain(tool_id[:256])}'{hint(found)}", found


def _sentence(result: ExecutionResult, name: str, word: str) -> str:
    if result.status == "success":
        value: Json = None if result.output is UNSET else result.output
        shown = value_text(value) if word == "Result" else json.dumps(value, ensure_ascii=False)
        return f"Tool {name} executed successfully. {word}: {shown}"
    if result.status == "accepted":
        return f"Tool {name} was started as task {result.task_id}."
    if result.status == "cancelled" and result.attempts:
        return f"Tool {name} was stopped while it ran: it was cancelled. What it did until then stands."
    if result.status in _NOT_RUN:
        return f"Tool {name} was not executed: {_NOT_RUN[result.status]}."
    error = result.error
    if error is UNSET:
        return f"Tool {name} failed."
    if result.status == "blocked":
        return f"Tool {name} was not executed: policy forbids it: {plain(error.message.rstrip('.'))}."
    sentence = f"Tool {name} failed. Error type: {error.type}. Message: {plain(error.message.rstrip('.'))}."
    details = UNSET if error.details is UNSET else error.details.text
    if details is not UNSET and details.strip():
        sentence += f" Details: {plain(details.strip())}"
    return sentence


def _vcp_block(result: ExecutionResult, request_id: str) -> str:
    if result.status == "success":
        status, shown = "success", value_text(None if result.output is UNSET else result.output)
    else:
        status = "denied" if result.status == "denied" else "error"
        shown = _sentence(result, result.tool_id, "Result")
    fields = {
        "request_id": request_id,
        "tool_name": result.tool_id,
        "status": status,
        "duration_ms": str(round(result.duration_ms)),
        "result": shown,
    }
    lines = ",\n".join(f"{name}:{_marked(value)}" for name, value in fields.items())
    return f"<<<[TOOL_RESULT]>>>\n{lines}\n<<<[END_TOOL_RESULT]>>>"


def _marked(value: str) -> str:
    # A value that holds the closing mark needs the ESCAPE form, which real VCP text knows (ruling 28).
    return f"「始ESCAPE」{value}「末ESCAPE」" if "「末" in value or "「始" in value else f"「始」{value}「末」"
