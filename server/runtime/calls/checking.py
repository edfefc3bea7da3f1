"""Arguments against a tool, from any source: a parsed call, a call off the wire, or plain JSON; answered as wire problems.

With them what the host puts in the place of variables. Must not know what happens to a call that passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.check import LocatedFinding, check_call, reading_of, to_problem
from tamis.protocols.contract import Problem, Range
from tamis.protocols.levels import FORMAT, read_levels
from tamis.protocols.model import Call, Param, Piece, Value
from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.protocols.schema.plan import Finding, Reading
from tamis.protocols.wire import to_range
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import failure
from tamis.server.runtime.settings.protocols import load_protocol
from tamis.server.runtime.tools.registry import Tool

T = TypeVar("T")


class Checked(msgspec.Struct, frozen=True):
    """Coerced arguments when ``valid``; problems in the order of the arguments."""

    valid: bool
    coerced: dict[str, Any]
    errors: list[Problem]
    warnings: list[Problem]


def formats_held(check: Checked, lint: Mapping[str, Any]) -> Checked:
    """A check as ``[lint]`` wants formats to be judged: a text without the format of its schema is a warning, unless that says otherwise."""
    odd = [warning for warning in check.warnings if warning.code == FORMAT] if check.warnings else []
    if not odd:
        return check
    level = read_levels(lint).of(FORMAT)
    rest = [warning for warning in check.warnings if warning.code != FORMAT]
    if level == "error":
        return Checked(False, {}, [*check.errors, *odd], rest)
    return msgspec.structs.replace(check, warnings=rest) if level == "off" else check


def check_arguments(args: Mapping[str, Any], tool: Tool, prefix: str = "") -> Checked:
    """Plain arguments of a host: typed JSON, or raw texts of a parse (interface, ``tool/validate``)."""
    outcome = tool.plan.check(dict(args))
    if outcome.valid and not outcome.warnings:
        return Checked(True, cast("dict[str, Any]", outcome.coerced), [], [])
    return Checked(
        outcome.valid,
        cast("dict[str, Any]", outcome.coerced) if outcome.valid else {},
        [to_problem(finding, prefix) for finding in outcome.errors],
        [to_problem(finding, prefix) for finding in outcome.warnings],
    )


def check_parsed(call: Call, source: str, tool: Tool, encoding: PositionEncoding | None = None) -> Checked:
    """A parsed call: type hints are applied, and every problem carries its range in ``source``."""
    check = check_call(call, source, tool.plan)
    lines = LineIndex(source) if check.problems else None

    def problem(located: LocatedFinding) -> Problem:
        assert lines is not None
        problem = to_problem(located.finding)
        problem.range = to_range(located.diag.span, lines, encoding)
        return problem

    return Checked(
        check.valid,
        dict(check.coerced),
        [problem(located_finding) for located_finding in check.problems if located_finding.finding.severity == "error"],
        [problem(located_finding) for located_finding in check.problems if located_finding.finding.severity != "error"],
    )


def check_wire_call(call: Mapping[str, Any], tool: Tool, prefix: str = "") -> Checked:
    """A call as ``tool/parse`` gave it: its protocol says how to read the values, its type hints are applied."""
    if not isinstance(call.get("protocol"), str):
        args = call.get("args")
        return check_arguments(cast("dict[str, Any]", args) if isinstance(args, dict) else {}, tool, prefix)
    check = check_call(call_from_wire(call), "", tool.plan)

    def problem(finding: Finding) -> Problem:
        problem = to_problem(finding, prefix)
        problem.range = range_of_argument(call, finding.path)
        return problem

    return Checked(
        check.valid,
        dict(check.coerced),
        [problem(finding) for finding in check.errors],
        [problem(finding) for finding in check.warnings],
    )


def range_of_argument(call: Mapping[str, Any], pointer: str) -> Range | UnsetType:
    """Where a wire call says that an argument stands: the smallest known part that holds it, for none of them the tool's id."""
    known = call.get("argRanges")
    if isinstance(known, dict):
        ranges = cast("dict[str, object]", known)
        while pointer:
            if pointer in ranges:
                return said_range(ranges[pointer])
            pointer = pointer.rpartition("/")[0]
    return said_range(call.get("toolIdRange"))


def said_range(value: object) -> Range | UnsetType:
    """A range as a host gave it back; what is none is left out."""
    try:
        return msgspec.convert(value, Range)
    except msgspec.ValidationError:
        return UNSET


def call_from_wire(call: Mapping[str, Any]) -> Call:
    """The call model of a wire call, without places: its text is elsewhere."""
    args = call.get("args")
    hints = call.get("typeHints")
    nowhere = (0, 0)
    protocol = str(call.get("protocol"))
    # A host may bring a call that another process parsed.
    load_protocol(protocol)
    reading = reading_of(protocol)
    params = [
        Param(str(name), _value(value, reading), nowhere, nowhere)
        for name, value in (cast("dict[str, Any]", args) if isinstance(args, dict) else {}).items()
    ]
    return Call(
        protocol=protocol,
        tool_id=str(call.get("toolId", "")),
        tool_span=nowhere,
        span=nowhere,
        params=params,
        type_hints={str(name): str(hint) for name, hint in cast("dict[str, Any]", hints).items()}
        if isinstance(hints, dict)
        else {},
    )


def _value(value: object, reading: Reading) -> Value:
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value)
        return Value("object", (0, 0), entries={str(name): _value(item, reading) for name, item in inner.items()})
    if isinstance(value, list):
        return Value("list", (0, 0), items=[_value(item, reading) for item in cast("list[object]", value)])
    if reading == "typed" and (value is None or isinstance(value, (bool, int, float))):
        return Value("literal", (0, 0), literal=value)
    text = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    return Value("text", (0, 0), (Piece(0, 0, text),))


# ``@{name}`` in the texts of arguments, which the host replaces (seed 002 §5.2, T36).


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
