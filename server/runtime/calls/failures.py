"""The error of a result that did not succeed. Data only; must not know what failed."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from tamis.protocols.contract import ErrorDetails, ErrorType, ExecutionError


def failure(error_type: ErrorType, message: str, **details: Any) -> ExecutionError:
    """An error with details, leaving out what is empty."""
    given = {name: value for name, value in details.items() if value not in (None, "", [], ())}
    return ExecutionError(type=error_type, message=message, details=ErrorDetails(**given) if given else UNSET)
