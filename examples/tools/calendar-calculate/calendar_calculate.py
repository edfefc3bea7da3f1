"""calendar:calculate: date arithmetic that models get wrong: adding months, counting days and working days, weekdays.

It has no clock: every date comes from the caller, so the same input always gives the same output.
Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import calendar
import json
import re
import sys
from datetime import date, timedelta
from typing import cast

OPERATIONS = ("describe", "add", "difference", "add_workdays")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MAX_AMOUNT = 100_000
MAX_HOLIDAYS = 500
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


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


def to_date(value: object, name: str) -> date:
    if not isinstance(value, str) or not ISO_DATE.fullmatch(value):
        raise InputError(f"'{name}' must be a date written as YYYY-MM-DD")
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise InputError(f"'{name}' is no date of the calendar: {value} ({error})") from error


def amount(request: dict[str, object], name: str) -> int:
    value = request.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_AMOUNT:
        raise InputError(f"'{name}' must be a whole number from -{MAX_AMOUNT} to {MAX_AMOUNT}")
    return value


def holidays_of(request: dict[str, object]) -> set[date]:
    listed = request.get("holidays", [])
    if not isinstance(listed, list):
        raise InputError("'holidays' must be a list of dates")
    dates = cast("list[object]", listed)
    if len(dates) > MAX_HOLIDAYS:
        raise InputError(f"'holidays' has {len(dates)} dates; the limit is {MAX_HOLIDAYS}")
    return {to_date(entry, f"holidays[{index}]") for index, entry in enumerate(dates)}


def described(day: date) -> dict[str, object]:
    year, week, _ = day.isocalendar()
    return {
        "date": day.isoformat(),
        "weekday": WEEKDAYS[day.weekday()],
        "iso_week": f"{year:04d}-W{week:02d}",
        "day_of_year": day.timetuple().tm_yday,
        "leap_year": calendar.isleap(day.year),
    }


def add_months(day: date, months: int) -> date:
    """The same day of another month, or that month's last day when it is shorter (31 January + 1 month)."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def workdays_between(start: date, end: date, holidays: set[date]) -> int:
    """Working days after `start` up to and including `end`, for start <= end."""
    weeks, rest = divmod((end - start).days, 7)
    count = 5 * weeks
    for step in range(1, rest + 1):
        count += (start + timedelta(days=weeks * 7 + step)).weekday() < 5
    return count - sum(start < holiday <= end and holiday.weekday() < 5 for holiday in holidays)


def add_workdays(day: date, count: int, holidays: set[date]) -> date:
    step = timedelta(days=1 if count > 0 else -1)
    left = abs(count)
    while left:
        day += step
        left -= day.weekday() < 5 and day not in holidays
    return day


def calculate(request: dict[str, object]) -> dict[str, object]:
    operation = request.get("operation")
    if operation not in OPERATIONS:
        raise InputError(f"'operation' is required and must be one of {', '.join(OPERATIONS)}")
    if "date" not in request:
        raise InputError("'date' is required and must be written as YYYY-MM-DD")
    day = to_date(request["date"], "date")
    try:
        if operation == "add":
            day = add_months(day, 12 * amount(request, "years") + amount(request, "months"))
            day += timedelta(days=7 * amount(request, "weeks") + amount(request, "days"))
        elif operation == "add_workdays":
            day = add_workdays(day, amount(request, "days"), holidays_of(request))
        elif operation == "difference":
            if "until" not in request:
                raise InputError("'until' is required for the operation difference")
            return difference(day, to_date(request["until"], "until"), holidays_of(request))
    except OverflowError:
        raise InputError("the result lies outside the years 1 to 9999") from None
    return described(day)


def difference(start: date, end: date, holidays: set[date]) -> dict[str, object]:
    sign = 1 if start <= end else -1
    early, late = (start, end) if sign == 1 else (end, start)
    months = (late.year - early.year) * 12 + late.month - early.month
    if add_months(early, months) > late:
        months -= 1
    return {
        "days": sign * (late - early).days,
        "workdays": sign * workdays_between(early, late, holidays),
        "years": sign * (months // 12),
        "months": sign * (months % 12),
        "remaining_days": sign * (late - add_months(early, months)).days,
    }


def main() -> int:
    try:
        result = calculate(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
