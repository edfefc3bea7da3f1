"""json:query: picks values out of a JSON document by path, and counts or adds them up.

A path is a JSON Pointer (`/orders/0/total`) or dotted (`orders[*].total`, `$.a["b c"][-1]`, `orders[state=paid].total`).
Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any, NoReturn, cast

MAX_PATH = 500
MAX_FOUND = 100_000
REDUCTIONS = ("list", "count", "sum", "mean", "min", "max", "unique")

STEP = re.compile(
    r"""
    \.?(?P<name>[^.\[\]"'=\s*]+)
    | \.?(?P<every>\*)
    | \[\s*(?P<index>-?\d{1,9})\s*\]
    | \[\s*(?P<wildcard>\*)\s*\]
    | \[\s*"(?P<quoted>[^"]*)"\s*\]
    | \[\s*'(?P<single>[^']*)'\s*\]
    | \[\s*(?P<field>[^\[\]=\s]+)\s*=\s*(?P<equals>[^\[\]]*?)\s*\]
    """,
    re.VERBOSE,
)

Found = tuple[str, Any]  # JSON Pointer, value


class InputError(Exception):
    """The request cannot be answered; the message says what to change."""


def refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return value


def read_request() -> dict[str, Any]:
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
        request = json.loads(text, parse_float=finite, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"standard input is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InputError("the input must be one JSON object")
    return cast("dict[str, Any]", request)


def child(found: Found, key: str | int) -> Found:
    step = str(key).replace("~", "~0").replace("/", "~1")
    return (f"{found[0]}/{step}", found[1][key])


def children(found: Found) -> list[Found]:
    value = found[1]
    if isinstance(value, dict):
        return [child(found, key) for key in cast("dict[str, Any]", value)]
    if isinstance(value, list):
        return [child(found, index) for index in range(len(cast("list[Any]", value)))]
    return []


def by_name(found: Found, name: str) -> list[Found]:
    value = found[1]
    if isinstance(value, dict):
        return [child(found, name)] if name in value else []
    if isinstance(value, list) and re.fullmatch(r"0|[1-9]\d{0,8}", name):
        return by_index(found, int(name))
    return []


def by_index(found: Found, index: int) -> list[Found]:
    value = found[1]
    if not isinstance(value, list):
        return []
    size = len(cast("list[Any]", value))
    return [child(found, index % size)] if -size <= index < size else []


def as_word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def matching(found: Found, field: str, wanted: str) -> list[Found]:
    plain = wanted[1:-1] if len(wanted) > 1 and wanted[0] == wanted[-1] and wanted[0] in "\"'" else wanted
    return [
        row
        for row in children(found)
        if isinstance(row[1], dict) and field in row[1] and as_word(row[1][field]) == plain
    ]


def follow_pointer(document: Any, path: str) -> list[Found]:
    found: list[Found] = [("", document)]
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = [hit for place in found for hit in by_name(place, name)]
    return found


def follow_dotted(document: Any, path: str) -> list[Found]:
    found: list[Found] = [("", document)]
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None or step.end() == at:
            raise InputError(f"'path' cannot be read from character {at + 1} on: {path[at : at + 20]!r}")
        at = step.end()
        part = step.groupdict()
        if part["index"] is not None:
            found = [hit for place in found for hit in by_index(place, int(part["index"]))]
        elif part["every"] or part["wildcard"]:
            found = [hit for place in found for hit in children(place)]
        elif part["field"] is not None:
            found = [hit for place in found for hit in matching(place, part["field"], part["equals"])]
        else:
            name = next(part[kind] for kind in ("name", "quoted", "single") if part[kind] is not None)
            found = [hit for place in found for hit in by_name(place, name)]
        if len(found) > MAX_FOUND:
            raise InputError(f"'path' matches more than {MAX_FOUND} values; make it narrower")
    return found


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def reduced(values: list[Any], reduction: str) -> Any:
    if reduction == "count":
        return len(values)
    if reduction == "unique":
        return [json.loads(text) for text in dict.fromkeys(json.dumps(value, sort_keys=True) for value in values)]
    if not values:
        return 0 if reduction == "sum" else None
    for value in values:
        if not is_number(value):
            raise InputError(f"'{reduction}' needs numbers, but one match is {as_word(value)[:60]!r}")
    if reduction in ("min", "max"):
        return min(values) if reduction == "min" else max(values)
    try:
        total = sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)
        result = total if reduction == "sum" else total / len(values)
    except OverflowError:
        raise InputError(f"'{reduction}' is too large for a number") from None
    return int(result) if isinstance(result, float) and result.is_integer() and abs(result) < 2**53 else result


def query(request: dict[str, Any]) -> dict[str, Any]:
    if "document" not in request or not isinstance(request["document"], (dict, list)):
        raise InputError("'document' is required and must be a JSON object or array")
    path = request.get("path")
    if not isinstance(path, str) or len(path) > MAX_PATH:
        raise InputError(f"'path' is required and must be a string of at most {MAX_PATH} characters")
    reduction = request.get("reduce", "list")
    if reduction not in REDUCTIONS:
        raise InputError(f"'reduce' must be one of {', '.join(REDUCTIONS)}")
    limit = request.get("limit", 100)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 1000:
        raise InputError("'limit' must be a whole number from 1 to 1000")

    path = path.strip()
    follow = follow_pointer if path.startswith("/") else follow_dotted
    found = follow(request["document"], path)
    values = [value for _, value in found]
    result = values[:limit] if reduction == "list" else reduced(values, reduction)
    return {"count": len(found), "result": result, "paths": [pointer for pointer, _ in found[:limit]]}


def main() -> int:
    try:
        result = query(read_request())
        text = json.dumps(result)
    except (InputError, RecursionError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
