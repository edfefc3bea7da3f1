"""units:convert: converts a quantity exactly, with the factors of `units.json` beside this file.

Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import difflib
import json
import sys
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

UNITS_FILE = Path(__file__).resolve().parent / "units.json"
LARGEST = Decimal("1e30")
SMALLEST = Decimal("1e-30")
MAX_DIGITS = 60


class InputError(Exception):
    """The request cannot be answered; the message says what to change."""


class Unit(NamedTuple):
    """`base = value * factor + offset`, where base is the base unit of the dimension."""

    symbol: str
    dimension: str
    factor: Fraction
    offset: Fraction


def refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def read_request() -> dict[str, Any]:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
        # Decimal keeps 0.1 what it is; a float would bring its own error into an exact conversion.
        request = json.loads(text, parse_float=Decimal, parse_constant=refuse_constant)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InputError(f"standard input is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InputError("the input must be one JSON object")
    return cast("dict[str, Any]", request)


def load_units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for dimension, entries in json.loads(UNITS_FILE.read_text(encoding="utf-8")).items():
        for symbol, entry in entries.items():
            unit = Unit(symbol, dimension, Fraction(entry["factor"]), Fraction(entry.get("offset", "0")))
            units.update(dict.fromkeys((symbol, *entry["names"]), unit))
    return units


def find_unit(request: dict[str, Any], parameter: str, units: dict[str, Unit]) -> Unit:
    name = request.get(parameter)
    if not isinstance(name, str) or not name.strip() or len(name) > 40:
        raise InputError(f"'{parameter}' is required and must be the symbol or name of a unit")
    name = name.strip()
    # Letter case is taken as written in short symbols: Mg is not mg, and a wrong guess is a wrong result.
    unit = units.get(name) or (units.get(name.lower()) if len(name) > 3 else None)
    if unit is None:
        near = [other for other in units if other.casefold() == name.casefold()]
        near = near or difflib.get_close_matches(name, units, n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(repr(other) for other in near)}?" if near else ""
        raise InputError(f"unknown unit {name!r}{hint}")
    return unit


def quantity(request: dict[str, Any]) -> Decimal:
    value = request.get("value")
    if not isinstance(value, (int, Decimal)) or isinstance(value, bool):
        raise InputError("'value' is required and must be a number")
    number = Decimal(value)
    # Bounds keep the exact arithmetic small: 1e999999999 is ten characters, but a number with a billion digits.
    if number and not SMALLEST <= number.copy_abs() <= LARGEST:
        raise InputError(f"'value' must be 0 or between {SMALLEST} and {LARGEST}, positive or negative")
    if len(number.as_tuple().digits) > MAX_DIGITS:
        raise InputError(f"'value' has more than {MAX_DIGITS} digits")
    return number if number else Decimal(0)


def json_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)


def convert(request: dict[str, Any]) -> dict[str, object]:
    units = load_units()
    value = quantity(request)
    source = find_unit(request, "from_unit", units)
    target = find_unit(request, "to_unit", units)
    if source.dimension != target.dimension:
        raise InputError(
            f"{source.symbol} measures {source.dimension} and {target.symbol} measures {target.dimension}; "
            "they cannot be converted into each other"
        )
    digits = request.get("significant_digits", 6)
    if not isinstance(digits, int) or isinstance(digits, bool) or not 1 <= digits <= 15:
        raise InputError("'significant_digits' must be a whole number from 1 to 15")

    base = Fraction(value) * source.factor + source.offset
    answer = (base - target.offset) / target.factor
    rounded = Context(prec=digits).divide(Decimal(answer.numerator), Decimal(answer.denominator))
    result = json_number(rounded)
    return {
        "value": result,
        "unit": target.symbol,
        "dimension": target.dimension,
        "exact": Fraction(rounded) == answer,
        "text": f"{json_number(value)} {source.symbol} = {result} {target.symbol}",
    }


def main() -> int:
    try:
        result = convert(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
