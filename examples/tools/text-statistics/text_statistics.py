"""text:statistics: counts what a text consists of, with Chinese and Japanese characters counted one by one.

Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from typing import cast

MAX_CHARACTERS = 500_000
CJK_PER_MINUTE = 300

CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# A full stop inside a number or a name (3.14, example.com) ends no sentence.
SENTENCE_END = re.compile(r"[.!?…]+(?=[\s\"'”’)\]]|$)|[。！？]+|\n\s*\n")
PARAGRAPH_END = re.compile(r"\n\s*\n")


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


def whole_number(request: dict[str, object], name: str, default: int, low: int, high: int) -> int:
    value = request.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"'{name}' must be a whole number from {low} to {high}")
    return value


def statistics(request: dict[str, object]) -> dict[str, object]:
    text = request.get("text")
    if not isinstance(text, str):
        raise InputError("'text' is required and must be a string")
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"'text' has {len(text)} characters; the limit is {MAX_CHARACTERS}")
    top = whole_number(request, "top_words", 5, 0, 50)
    speed = whole_number(request, "words_per_minute", 200, 50, 1000)

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    cjk = len(CJK.findall(text))
    words = [word.casefold() for word in WORD.findall(CJK.sub(" ", text))]
    counts = Counter(words)
    # Equal counts are put in alphabetical order, so that the same text always gives the same answer.
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:top]
    return {
        "characters": len(text),
        "characters_without_spaces": sum(not character.isspace() for character in text),
        "words": len(words),
        "cjk_characters": cjk,
        "unique_words": len(counts),
        "sentences": sum(bool(WORD.search(part)) for part in SENTENCE_END.split(text)),
        "paragraphs": sum(bool(part.strip()) for part in PARAGRAPH_END.split(text)),
        "lines": len(text.split("\n")) - text.endswith("\n") if text else 0,
        "reading_seconds": math.ceil(60 * (len(words) / speed + cjk / CJK_PER_MINUTE)),
        "top_words": [{"word": word, "count": count} for word, count in ranked],
    }


def main() -> int:
    try:
        result = statistics(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
