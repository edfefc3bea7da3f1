"""game:player_info: the one sound tool that the broken transcripts call.

Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import json
import sys
from typing import cast

PLAYERS = {
    "player007": ("小红", 7, list[str]()),
    "player123": ("Mika", 30, ["lamp", "rope"]),
}


class InputError(Exception):
    """The request cannot be answered; the message says what to change."""


def answer(text: bytes) -> dict[str, object]:
    try:
        request = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"standard input is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InputError("the input must be one JSON object")
    return player(cast("dict[str, object]", request))


def player(request: dict[str, object]) -> dict[str, object]:
    player_id = request.get("player_id")
    if not isinstance(player_id, str) or player_id not in PLAYERS:
        raise InputError(f"'player_id' must be one of {', '.join(PLAYERS)}")
    name, level, items = PLAYERS[player_id]
    least = request.get("min_level", 1)
    if not isinstance(least, int) or isinstance(least, bool):
        raise InputError("'min_level' must be a whole number")
    if level < least:
        raise InputError(f"{player_id} is below level {least}")
    detail = request.get("detail", "short")
    if detail not in ("short", "items"):
        raise InputError("'detail' must be short or items")
    short: dict[str, object] = {"name": name, "level": level}
    return {**short, "items": items} if detail == "items" else short


def main() -> int:
    try:
        result = answer(sys.stdin.buffer.read())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
