"""csv:summary: tells what the columns of a CSV text hold, so that a model need not read every row.

Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from datetime import date
from typing import cast

MAX_CHARACTERS = 900_000
MAX_COLUMNS = 200
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}

# A leading zero marks an identifier (a postal code, an article number), not a quantity.
INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,14})")
NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)?(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
BOOLEANS = {"true", "false", "yes", "no"}
MISSING = {"", "na", "n/a", "null", "none", "-"}


class InputError(Exception):
    """The request cannot be answered; the message says what to change."""


def read_request() -> dict[str, object]:
    try:
        request = json.loads(sys.stdin.buffer.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"standard input is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InputError("the input must be one JSON object")
    return cast("dict[str, object]", request)


def rows_of(text: str, delimiter: str) -> list[list[str]]:
    csv.field_size_limit(MAX_CHARACTERS)
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise InputError(f"'csv_text' is not readable CSV: {error}") from error


def guess_delimiter(text: str) -> str:
    """The delimiter that cuts the first rows into the most columns of one and the same number."""
    sample = "\n".join(text.splitlines()[:50])

    def score(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for row in rows_of(sample, delimiter)]
        if not widths or widths[0] == 1:
            return (0.0, 0)
        return (sum(width == widths[0] for width in widths) / len(widths), widths[0])

    return max(DELIMITERS.values(), key=score)


def number_of(cell: str) -> float | None:
    if not cell or len(cell) > 40 or not NUMBER.fullmatch(cell) or not any(c.isdigit() for c in cell):
        return None
    value = float(cell)
    return value if math.isfinite(value) else None


def is_date(cell: str) -> bool:
    if not DATE.fullmatch(cell):
        return False
    try:
        date.fromisoformat(cell)
    except ValueError:
        return False
    return True


def column_type(cells: list[str]) -> str:
    if not cells:
        return "empty"
    if all(INTEGER.fullmatch(cell) for cell in cells):
        return "integer"
    if all(number_of(cell) is not None for cell in cells):
        return "number"
    if all(is_date(cell) for cell in cells):
        return "date"
    if all(cell.lower() in BOOLEANS for cell in cells):
        return "boolean"
    return "text"


def rounded(value: float) -> int | float:
    """Twelve significant digits, without a `.0` that the source never had."""
    short = float(f"{value:.12g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def summary_of(name: str, cells: list[str]) -> dict[str, object]:
    values = [cell for cell in cells if cell.lower() not in MISSING]
    kind = column_type(values)
    summary: dict[str, object] = {
        "name": name,
        "type": kind,
        "missing": len(cells) - len(values),
        "distinct": len(set(values)),
    }
    if kind in ("integer", "number"):
        numbers = [float(cell) for cell in values]
        try:
            summary["mean"] = rounded(math.fsum(numbers) / len(numbers))
        except OverflowError:
            print(f"column {name!r}: the mean is too large for a number", file=sys.stderr)
        summary["min"] = rounded(min(numbers))
        summary["max"] = rounded(max(numbers))
    elif kind == "date":
        summary["min"] = min(values)
        summary["max"] = max(values)
    elif kind == "text":
        summary["examples"] = [cell[:80] for cell in dict.fromkeys(values)][:3]
    return summary


def unique_names(header: list[str]) -> list[str]:
    names: list[str] = []
    taken: set[str] = set()
    for place, cell in enumerate(header, start=1):
        name = base = cell.strip() or f"column {place}"
        copy = 2
        while name in taken:
            name = f"{base} ({copy})"
            copy += 1
        taken.add(name)
        names.append(name)
    return names


def chosen_columns(request: dict[str, object], names: list[str]) -> list[str]:
    wanted = request.get("columns")
    if wanted is None:
        return names
    if not isinstance(wanted, list) or not wanted:
        raise InputError("'columns' must be a list of column names")
    chosen: list[str] = []
    for name in cast("list[object]", wanted):
        if not isinstance(name, str) or name not in names:
            raise InputError(f"there is no column {name!r}; the columns are {', '.join(names)[:500]}")
        if name not in chosen:
            chosen.append(name)
    return chosen


def summarise(request: dict[str, object]) -> dict[str, object]:
    text = request.get("csv_text")
    if not isinstance(text, str) or not text.strip():
        raise InputError("'csv_text' is required and must be a string with at least one row")
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"'csv_text' has {len(text)} characters; the limit is {MAX_CHARACTERS}")
    chosen = request.get("delimiter", "auto")
    if chosen != "auto" and (not isinstance(chosen, str) or chosen not in DELIMITERS):
        raise InputError(f"'delimiter' must be one of auto, {', '.join(DELIMITERS)}")
    has_header = request.get("has_header", True)
    if not isinstance(has_header, bool):
        raise InputError("'has_header' must be true or false")

    text = text.strip("\n\r\ufeff")
    delimiter = guess_delimiter(text) if chosen == "auto" else DELIMITERS[str(chosen)]
    rows = rows_of(text, delimiter)
    if not rows:
        raise InputError("'csv_text' holds no row with a value")
    width = len(rows[0])
    if width > MAX_COLUMNS:
        raise InputError(f"the first row has {width} columns; the limit is {MAX_COLUMNS}")
    names = unique_names(rows[0] if has_header else [""] * width)
    body = rows[1:] if has_header else rows
    place = {name: index for index, name in enumerate(names)}
    wanted = chosen_columns(request, names)
    return {
        "delimiter": next(word for word, character in DELIMITERS.items() if character == delimiter),
        "rows": len(body),
        "ragged_rows": sum(len(row) != width for row in body),
        "columns": [
            summary_of(name, [row[place[name]].strip() if place[name] < len(row) else "" for row in body])
            for name in wanted
        ],
    }


def main() -> int:
    try:
        result = summarise(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
