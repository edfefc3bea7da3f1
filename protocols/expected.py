"""What an example says that should come out, held against what came out (D42, D44). Must not know how anything is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from msgspec import UNSET, UnsetType

from tamis.protocols.contract import ExecutionResult, Status
from tamis.protocols.export.losses import below
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object, json_equal

Match = Literal["equal", "partial"]
UNJUDGED: frozenset[Status] = frozenset(
    {"cancelled", "denied", "approvalTimeout", "approvalUnavailable", "blocked", "inputRequired"}
)
"""What became of a call that says nothing about its tool: it was not let run, or not to its end."""
MAX_DIFFERENCES = 20
_MAX_CHARS = 200


def differences(expected: Json, actual: Json, match: Match = "equal") -> list[str]:
    """Where two JSON values differ, a line each with a JSON Pointer; empty when ``given`` is as expected.

    Numbers are compared by value, ``true`` is not 1. With ``partial`` objects may have members that are not expected.
    """
    differences: list[str] = []
    try:
        for line in _differences(expected, actual, match, ""):
            if len(differences) == MAX_DIFFERENCES:
                return [*differences, "… and more"]
            differences.append(line)
    except RecursionError:
        return ["the values nest too deeply to be compared"]
    return differences


def shortfall(expected: Json | UnsetType, match: Match, result: ExecutionResult) -> tuple[str, tuple[str, ...]] | None:
    """Why the result of a call that ran is not what its example expects, and the places; None when it is.

    UNSET: an example that only expects success.
    """
    if result.status != "success":
        wanted = None if expected is UNSET else expected_error(expected)
        if wanted is not None:
            lines = _of_failure(wanted, result)
            return ("it failed otherwise than expected", lines) if lines else None
        error = None if result.error is UNSET else result.error
        return (f"it ended {result.status}" if error is None else f"{error.type}: {error.message}"), _last_words(result)
    if expected is UNSET:
        return None
    if result.output is UNSET:
        return "it gave no output", ()
    lines = tuple(differences(expected, result.output, match))
    return ("the output is not the expected one", lines) if lines else None


def _of_failure(wanted: dict[str, Json], result: ExecutionResult) -> tuple[str, ...]:
    """How a failure differs from the one that is expected: its type, and its message and details where they are given."""
    views: list[dict[str, Json]] = []
    if result.error is not UNSET:
        views.append({"type": result.error.type, "message": result.error.message})
        details = result.error.details
        if details is not UNSET and details.text is not UNSET:
            views[0]["details"] = details.text
    output: Json = None if result.output is UNSET else result.output
    record = output.get("error") if is_object(output) else None
    if is_object(record):
        views.append(record)
    candidates = [tuple(differences({"error": wanted}, {"error": view}, "partial")) for view in views or [{}]]
    return min(candidates, key=len)


def _last_words(result: ExecutionResult) -> tuple[str, ...]:
    details = UNSET if result.error is UNSET else result.error.details
    text = "" if details is UNSET or details.text is UNSET else details.text
    return tuple((text.splitlines() or result.logs)[-10:])


def expected_error(expected: Json) -> dict[str, Json] | None:
    """The ``error`` of an example that says a call fails, in the form of seed 003 §2.2.3: ``{"success": false, "error": {"type": …}}``."""
    if is_object(expected) and expected.get("success") is False and is_object(error := expected.get("error")):
        return error if isinstance(error.get("type"), str) else None
    return None


def _differences(expected: Json, actual: Json, match: Match, path: str) -> Iterator[str]:
    if is_object(expected) and is_object(actual):
        for key, value in expected.items():
            if key in actual:
                yield from _differences(value, actual[key], match, below(path, key))
            else:
                yield f"{below(path, key)}: expected {_shown(value)}, not there"
        if match == "equal":
            yield from (
                f"{below(path, key)}: not expected: {_shown(actual[key])}" for key in actual if key not in expected
            )
    elif is_list(expected) and is_list(actual):
        for i, (wanted_part, other) in enumerate(zip(expected, actual, strict=False)):
            yield from _differences(wanted_part, other, match, below(path, i))
        if len(expected) != len(actual):
            yield f"{path or '/'}: expected {len(expected)} items, given {len(actual)}"
    elif not json_equal(expected, actual):
        yield f"{path or '/'}: expected {_shown(expected)}, given {_shown(actual)}"


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
