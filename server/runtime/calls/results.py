"""The result of a call before anything ran, and the error of one that did not succeed. Data only."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from tamis.protocols.contract import (
    ErrorDetails,
    ErrorType,
    ExecutionError,
    ExecutionResult,
    Granted,
    Permissions,
    Status,
    Usage,
)
from tamis.protocols.model import Call
from tamis.server.runtime.policy.secrets import SecretFault


def failure(error_type: ErrorType, message: str, **details: Any) -> ExecutionError:
    """An error with details, leaving out what is empty."""
    given = {name: value for name, value in details.items() if value not in (None, "", [], ())}
    return ExecutionError(type=error_type, message=message, details=ErrorDetails(**given) if given else UNSET)


def secret_failure(message: str, fault: SecretFault) -> ExecutionError:
    """The error of a call that lacks a secret, with which it is and what the operator has to write."""
    return failure(
        "SecurityError", message, code=fault.code, secret=fault.name, setting=fault.setting, remedy=fault.remedy
    )


def empty_result(
    call_id: str, tool_id: str, status: Status = "error", *, version: str = "", call: Call | None = None
) -> ExecutionResult:
    """The result of a call of which nothing was run: no usage, no rights, no output. ``call``: as it was read, if it was."""
    return ExecutionResult(
        call_id=call_id,
        tool_id=tool_id,
        tool_call_id=UNSET if call is None else call.meta.get("id", UNSET),
        version=version,
        status=status,
        usage=Usage(cpu_ms=0.0, max_rss_bytes=0),
        permissions=Permissions(requested={}, granted=Granted(), denied=[]),
    )
