"""Judging what a call gave that was no script's standard output: it is JSON, of a bounded size, and fits the declared schema (D64).

Must not know where it came from.
"""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from tamis.protocols.check import to_problem, told
from tamis.protocols.contract import ErrorType
from tamis.protocols.jsontext.tree import not_finite, number_name
from tamis.protocols.schema.plan import Plan
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure

MAX_TOLD = 8


def failed(error_type: ErrorType, message: str, **details: Any) -> Stopped:
    """The end of a call that was begun and did not succeed."""
    return Stopped("error", failure(error_type, message, **details), started=True)


class NotJsonError(ValueError):
    """A value that JSON cannot hold; the message says what and, as far as it is known, where."""


def as_json(value: Any) -> tuple[Any, int]:
    """A value as JSON reads it again (what is no plain data but has a form in JSON in that form), and its bytes. Raises ``NotJsonError``."""
    try:
        data = msgspec.json.encode(value)
        if msgspec.json.decode(data) == value:
            return value, len(data)
        # numbers that JSON does not have are written as null
        plain = msgspec.to_builtins(value)
        spot = not_finite(plain)
        if spot is None:
            return json.loads(data), len(data)
    except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from None
    place, number = spot
    raise NotJsonError(f"{number_name(number)}{f' at {place}' if place else ''}; give null or a text instead")


def take_output(call: Invocation, output: Any, whose: str, own_plan: Plan | None = None) -> None:
    """Makes ``output`` the call's success. Raises ``Stopped`` for one that cannot be; ``whose`` names its giver in the message.

    ``own_plan`` is the schema of the giver, for tools whose manifest declares none.
    """
    output = _bounded(call, output, whose)
    plan = call.tool.output_plan or own_plan
    if plan is not None and not plan.is_valid(output):
        problems = [to_problem(finding, of="output") for finding in plan.check(output, "typed").errors]
        text = f"the result of {whose} does not fit the declared output schema: {told(problems[:MAX_TOLD], 'output')}"
        raise Stopped("error", failure("OutputValidationError", text, errors=problems), started=True)
    call.result.status, call.result.output = "success", output


def checked_parts(call: Invocation, parts: list[Any], whose: str) -> list[dict[str, Any]]:
    """Parts of a result for the host, as JSON has them. Raises ``Stopped`` as ``take_output`` does."""
    return cast("list[dict[str, Any]]", _bounded(call, parts, whose))


def _bounded(call: Invocation, output: Any, whose: str) -> Any:
    most = call.context.settings.sandbox.stdout_bytes
    limit = min(most, call.tool.manifest.execution.limits.get("stdoutBytes", most))
    try:
        output, size = as_json(output)
    except NotJsonError as error:
        text = f"the result of {whose} is no JSON: {error}"
        raise Stopped("error", failure("OutputFormatError", text), started=True) from None
    if size > limit:
        text = f"the result has {size} bytes, more than the {limit} of sandbox.stdoutBytes; give less, or a file's name"
        raise Stopped("error", failure("ResourceError", text, limit="stdout"), started=True)
    return output
