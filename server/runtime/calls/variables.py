"""``@{name}`` in the texts of arguments, which the host replaces (seed 002 §5.2, T36). Must not know what a call does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import failure

T = TypeVar("T")
MAX_VARIABLES = 64
MAX_FILLED_CHARS = 4_000_000
"""So much may the values of one call's variables be together, however often a model names them."""
_VARIABLE = re.compile(r"@\{([^{}\s]{1,128})\}")


def filled(value: T, variables: Mapping[str, str]) -> T:
    """A value of JSON with each variable in its texts, not in its keys, as what it stands for; one that is not known stays as it is.

    What was put in is not looked at again: no value names another. Raises ``Stopped`` where it would become too long.
    """
    return cast("T", _filled(value, variables, [MAX_FILLED_CHARS])) if variables else value


def _filled(value: Any, variables: Mapping[str, str], left: list[int]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _put(match, variables, left), value) if "@{" in value else value
    if isinstance(value, dict):
        return {key: _filled(item, variables, left) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(item, variables, left) for item in cast("list[Any]", value)]
    return value


def _put(match: re.Match[str], variables: Mapping[str, str], left: list[int]) -> str:
    text = variables.get(match[1], match[0])
    left[0] -= len(text)
    if left[0] < 0:
        message = f"the values of the variables in the arguments are more than {MAX_FILLED_CHARS} characters together"
        raise Stopped("error", failure("ParameterValidationError", message))
    return text
