"""``observation/format``: results of any origin as the text that a model reads next, in a protocol's words.

The sentences are ``protocols/observation.py``'s; a protocol that a plug-in brought has its own. Must not know framing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.base import Shape
from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.contract import ErrorType, ExecutionError, ExecutionResult, Status
from tamis.protocols.inert import inert
from tamis.protocols.observation import Observed, cut_middle, inert_result, observations, style_of, value_text
from tamis.protocols.plugins import BUILT_IN, extras_of, find_protocol
from tamis.server.runtime.calls.runner import empty_result


class GivenDetails(msgspec.Struct, rename="camel", kw_only=True):
    """What of an error's details stands in an observation; the rest of them is not looked at."""

    text: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


class GivenError(msgspec.Struct, rename="camel", kw_only=True):
    """An error with the fields that an observation needs."""

    type: ErrorType
    message: str
    details: GivenDetails | None = None


class GivenResult(msgspec.Struct, rename="camel", kw_only=True):
    """An ``ExecutionResult``, or as much of one as an observation needs. ``step`` is TAM's number, ``request_id`` what VCP answers to."""

    tool_id: str
    status: Status = "success"
    call_id: str = ""
    output: Any = UNSET
    error: GivenError | None = None
    duration_ms: float = 0.0
    attempts: int = 0
    task_id: str | None = None
    observation: str = ""
    step: int | None = None
    request_id: str | None = None
    tool_call_id: str | None = None
    called_as: str | None = None
    approval: dict[str, Any] | None = None
    """What a person answered: the ``comment`` of a refusal, ``editedArgs`` that it ran with instead."""
    parts: list[dict[str, Any]] | None = None
    """What the host shows of the output; it is named only."""


def format_results(
    results: Sequence[GivenResult], protocol: str, shape: Shape = "tag", max_chars: int | None = None
) -> str:
    """One observation per result, each on a line or as a block; see ``observations`` for ``max_chars``.

    TAM steps are named when more than one of the results has a number.
    """
    if protocol not in BUILT_IN:
        return _plugged(protocol, results, max_chars)
    steps = sum(result.step is not None for result in results)
    style = style_of(protocol, shape)
    observed = [
        Observed(
            result=_full(result),
            style=style,
            step=result.step if extras_of(protocol).modifiers and steps > 1 else None,
            problems=_is_problem(result),
            request_id=result.request_id or "",
            given=_unreadable(result) if extras_of(protocol).observed == "line" else "",
        )
        for result in results
    ]
    return observations(observed, max_chars)


def _full(call_result: GivenResult) -> ExecutionResult:
    result = empty_result(call_result.call_id, call_result.tool_id, call_result.status)
    result.tool_call_id = UNSET if call_result.tool_call_id is None else call_result.tool_call_id
    result.called_as = UNSET if call_result.called_as is None else call_result.called_as
    result.output, result.duration_ms, result.attempts = (
        call_result.output,
        call_result.duration_ms,
        call_result.attempts,
    )
    result.task_id = UNSET if call_result.task_id is None else call_result.task_id
    result.approval = UNSET if call_result.approval is None else call_result.approval
    result.parts = UNSET if call_result.parts is None else call_result.parts
    if call_result.error is not None:
        result.error = _error(call_result.error, str)
    return result


def _error(error: GivenError, shorten: Callable[[str], str]) -> ExecutionError:
    from tamis.protocols.contract import ErrorDetails

    details = error.details
    if details is None:
        return ExecutionError(type=error.type, message=shorten(error.message))
    text = UNSET if details.text is UNSET else shorten(details.text)
    return ExecutionError(
        type=error.type, message=shorten(error.message), details=ErrorDetails(text=text, code=details.code)
    )


def _is_problem(call_result: GivenResult) -> bool:
    error = call_result.error
    return error is not None and call_result.attempts == 0 and error.type in ("UnknownTool", "ParameterValidationError")


def _unreadable(call_result: GivenResult) -> str:
    """The observation of a block that could not be read: only it knows the place, so it is kept as it came (A29)."""
    details = call_result.error.details if call_result.error is not None else None
    code = UNSET if details is None else details.code
    broken = code is not UNSET and code in CATALOGUE and not code.startswith("VA")
    if not broken:
        return ""
    head = "Observation: " if call_result.observation.startswith("Observation: ") else ""
    return head + inert(call_result.observation.removeprefix(head))


def _plugged(name: str, results: Sequence[GivenResult], max_chars: int | None) -> str:
    protocol = find_protocol(name)
    if protocol is None:
        raise ValueError(f"no protocol '{name}'")

    def text(limit: int | None) -> str:
        return protocol.format_tool_results([inert_result(_shortened(result, limit), name) for result in results])

    whole = text(None)
    if max_chars is None or len(whole) <= max_chars:
        return whole
    # What a plug-in adds to a value is not known: the longest values that fit are found by halving.
    low, high = 0, max_chars
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(text(middle)) <= max_chars else (low, middle - 1)
    return text(low)


def _shortened(call_result: GivenResult, limit: int | None) -> ExecutionResult:
    result = _full(call_result)
    if limit is None:
        return result
    if result.output is not UNSET and len(value_text(result.output)) > limit:
        result.output = cut_middle(value_text(result.output), limit)
    if call_result.error is not None:
        result.error = _error(call_result.error, lambda value: cut_middle(value, limit))
    return result
