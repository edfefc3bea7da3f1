"""notes:search: finds the sections of the Markdown notes beside this file that fit a question (BM25).

The word counts are kept in `.cache/index.json` when the operator lets this tool write there; the answer is the same without.
Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).resolve().parent
NOTES = HERE / "notes"
CACHE = HERE / ".cache" / "index.json"
FORMAT = 1
MAX_QUERY = 500

HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")
# Latin words and numbers whole; Chinese and Japanese one character at a time.
TERM = re.compile("[0-9a-z]+|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")

Section = dict[str, Any]  # {file, heading, line, text, terms: {term: count}}


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


def terms_of(text: str) -> list[str]:
    return TERM.findall(text.casefold())


def sections_of(path: Path) -> list[Section]:
    sections: list[Section] = []
    heading, start, body = path.stem, 1, list[str]()

    def close() -> None:
        text = "\n".join(body).strip()
        if text:
            terms = dict(Counter(terms_of(f"{heading}\n{text}")))
            sections.append({"file": path.name, "heading": heading, "line": start, "text": text, "terms": terms})

    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        match = HEADING.fullmatch(line)
        if match:
            close()
            heading, start, body = match[1], number, []
        else:
            body.append(line)
    close()
    return sections


def load_index() -> list[Section]:
    files = sorted(NOTES.glob("*.md"))
    stats = [(path.name, path.stat()) for path in files]
    fingerprint = [FORMAT, *([name, stat.st_size, stat.st_mtime_ns] for name, stat in stats)]
    try:
        cached = json.loads(CACHE.read_text(encoding="utf-8"))
        if cached["fingerprint"] == fingerprint:
            return cached["sections"]
    except (OSError, ValueError, TypeError, KeyError):
        pass  # No cache, or one that cannot be used: the notes themselves are the truth.
    sections = [section for path in files for section in sections_of(path)]
    try:
        CACHE.parent.mkdir(exist_ok=True)
        fresh = CACHE.with_suffix(".new")
        fresh.write_text(json.dumps({"fingerprint": fingerprint, "sections": sections}), encoding="utf-8")
        fresh.replace(CACHE)
    except OSError as error:
        print(f"the index was not kept: {error}", file=sys.stderr)
    return sections


def excerpt(text: str, wanted: set[str], length: int = 160) -> str:
    """The first line of the section that holds a wanted term, cut to `length` characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    best = next((line for line in lines if wanted.intersection(terms_of(line))), lines[0])
    return best if len(best) <= length else best[: length - 1] + "…"


def search(request: dict[str, object]) -> dict[str, object]:
    query = request.get("query")
    if not isinstance(query, str) or not query.strip() or len(query) > MAX_QUERY:
        raise InputError(f"'query' is required and must be a string of 1 to {MAX_QUERY} characters")
    limit = request.get("limit", 3)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 20:
        raise InputError("'limit' must be a whole number from 1 to 20")
    wanted = set(terms_of(query))
    if not wanted:
        raise InputError("'query' holds no word to search for")

    sections = load_index()
    lengths = [sum(section["terms"].values()) for section in sections]
    average = sum(lengths) / len(lengths) if lengths else 1
    weights = {
        term: math.log(1 + (len(sections) - found + 0.5) / (found + 0.5))
        for term in sorted(wanted)
        for found in [sum(term in section["terms"] for section in sections)]
    }
    ranked: list[tuple[float, Section]] = []
    for section, length in zip(sections, lengths):  # noqa: B905 - `strict` came with Python 3.10
        score = 0.0
        for term, weight in weights.items():
            count = section["terms"].get(term, 0)
            score += weight * count * 2.5 / (count + 1.5 * (0.25 + 0.75 * length / average))
        if score > 0:
            ranked.append((score, section))
    ranked.sort(key=lambda pair: (-pair[0], pair[1]["file"], pair[1]["line"]))
    hits = [
        {
            "file": section["file"],
            "line": section["line"],
            "heading": section["heading"],
            "score": round(score, 3),
            "excerpt": excerpt(section["text"], wanted),
        }
        for score, section in ranked[:limit]
    ]
    return {"found": len(ranked), "hits": hits}


def main() -> int:
    try:
        result = search(read_request())
    except InputError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
