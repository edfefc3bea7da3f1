"""Finding tools by words, offline: ranked, deterministic, and quick for thousands of tools.

A tool is a bag of terms, each with the weight of the field that it stands in: words of the id and of names, without case, split at
separators and at capitals; of writing without blanks (Chinese, Japanese, Korean …) single characters and pairs. Every word of a query must be found: as it is,
as the beginning of a term, or, from four characters on, with one slip (two from eight); of a run of such writing, whose words nothing sets apart, a
third of the pairs. A tool's score depends on the tool and the query
alone, so pages stay right while other tools come and go. Must not know who asks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from tamis.protocols.schema.words import is_object
from tamis.protocols.suggest import osa_distance
from tamis.server.runtime.tools.tool import Tool

MAX_QUERY_CHARS = 256
MAX_TERMS = 16
"""Words of a query that are looked for; the others are not."""
MAX_FIELD_CHARS = 4_000
MAX_PROPERTIES = 200
MAX_FORMS = 400
"""Known terms that stand for one word of a query; so many begin with a single letter."""
WEIGHTS = {"id": 40, "name": 24, "tag": 16, "description": 8, "parameter": 6, "more": 3}
EXACT, PREFIX, SLIP = 10, 6, 3
WHOLE_ID, WHOLE_NAME, IN_TEXT = 10_000, 5_000, 20
"""For a query that is an id, that is a name, and that stands in a name or description as it is."""

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\WA-Za-z\d_]+")
_DENSE = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+"
)


class Search:
    """An index of tools."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = list(tools)
        self._postings: dict[str, dict[int, int]] = {}
        self._texts: list[tuple[str, str, str]] = []
        for number, tool in enumerate(self._tools):
            for term, weight in _terms_of(tool):
                postings = self._postings.setdefault(term, {})
                postings[number] = max(postings.get(number, 0), weight)
            manifest = tool.manifest
            names = "\n".join(plain(name) for name in (*tool.names, manifest.display_name))
            self._texts.append((plain(tool.tool_id), names, plain(manifest.description[:MAX_FIELD_CHARS])))
        self._sorted = sorted(self._postings)
        self._by_length: dict[int, list[str]] = {}
        for term in self._sorted:
            self._by_length.setdefault(len(term), []).append(term)

    def ranked(self, query: str) -> list[tuple[int, Tool]]:
        """The tools that a query finds with their scores, best first; equal ones by id, then newest version first."""
        query = query[:MAX_QUERY_CHARS]
        whole = plain(query).strip()
        scores: dict[int, int] | None = None
        for group in list(dict.fromkeys(query_terms(query)))[:MAX_TERMS]:
            group_scores = self._group(group)
            scores = (
                group_scores
                if scores is None
                else {n: scores[n] + group_scores[n] for n in scores.keys() & group_scores.keys()}
            )
            if not scores:
                break
        scores = scores or {}
        if whole:
            for number, (tool_id, names, description) in enumerate(self._texts):
                # What a word list cannot say (`:`, `++`, the order of words) still stands in the texts as it is.
                if whole in names or whole in description:
                    scores[number] = scores.get(number, 0) + IN_TEXT * (2 if whole in names else 1)
                    if whole == tool_id:
                        scores[number] += WHOLE_ID
                    elif whole in names.split("\n"):
                        scores[number] += WHOLE_NAME
        order = sorted(scores, key=lambda number: (-scores[number], number))
        return [(scores[number], self._tools[number]) for number in order]

    def _group(self, group: tuple[str, ...]) -> dict[int, int]:
        """The tools with enough of the terms of one word, and what they count in each together."""
        if len(group) == 1:
            return self._found(group[0])
        scores: dict[int, int] = {}
        times: dict[int, int] = {}
        for term in dict.fromkeys(group):
            for number, score in self._found(term).items():
                scores[number] = scores.get(number, 0) + score
                times[number] = times.get(number, 0) + 1
        enough = -(-len(set(group)) // 3)
        return {number: score for number, score in scores.items() if times[number] >= enough}

    def _found(self, term: str) -> dict[int, int]:
        """The tools with a term, and what it counts in each."""
        scores: dict[int, int] = {}
        for form, factor in self._forms(term):
            for number, weight in self._postings[form].items():
                scores[number] = max(scores.get(number, 0), weight * factor)
        return scores

    def _forms(self, term: str) -> Iterator[tuple[str, int]]:
        """The known terms that a query's word may be."""
        if term in self._postings:
            yield term, EXACT
        if _DENSE.match(term):
            return
        start = bisect_left(self._sorted, term)
        longer = 0
        for form in self._sorted[start : start + MAX_FORMS]:
            if not form.startswith(term):
                break
            longer += 1
            if form != term:
                yield form, PREFIX
        if longer or len(term) < 4:
            return
        # Only a word that nothing begins with is taken for a slip.
        bound = 2 if len(term) >= 8 else 1
        letters = set(term)
        for length in range(len(term) - bound, len(term) + bound + 1):
            for form in self._by_length.get(length, ()):
                if len(letters.difference(form)) <= bound and osa_distance(term, form, bound) <= bound:
                    yield form, SLIP


def plain(text: str) -> str:
    """A text without case and without differences of width or of composed characters."""
    return _composed(text).casefold()


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def terms(text: str) -> Iterator[str]:
    """The terms of a text."""
    for word in _WORD.findall(_composed(text)):
        if word.isascii():
            yield from _spelled(word)
            continue
        last = 0
        for dense in _DENSE.finditer(word):
            yield from _spelled(word[last : dense.start()])
            yield from _dense(dense.group())
            last = dense.end()
        yield from _spelled(word[last:])


def query_terms(query: str) -> Iterator[tuple[str, ...]]:
    """The words of a query; of a run of dense writing its pairs, or its single character."""
    for word in _WORD.findall(plain(query)):
        last = 0
        for dense in _DENSE.finditer(word):
            if dense.start() > last:
                yield (word[last : dense.start()],)
            run = dense.group()
            yield tuple(run[at : at + 2] for at in range(len(run) - 1)) if len(run) > 1 else (run,)
            last = dense.end()
        if last < len(word):
            yield (word[last:],)


def _spelled(word: str) -> Iterator[str]:
    if not word:
        return
    yield word.casefold()
    if word.islower() and word.isalpha():
        return
    parts = _HUMP.findall(word)
    if len(parts) > 1:
        yield from (part.casefold() for part in parts)


def _dense(run: str) -> Iterator[str]:
    yield from run
    yield from (run[at : at + 2] for at in range(len(run) - 1))


def _terms_of(tool: Tool) -> Iterator[tuple[str, int]]:
    manifest = tool.manifest
    fields: list[tuple[str, str]] = [
        ("id", manifest.tool_id),
        *(("name", name) for name in (manifest.display_name, *tool.names[1:])),
        *(("tag", tag) for tag in manifest.tags),
        ("description", manifest.description),
    ]
    properties = (manifest.parameters or {}).get("properties")
    if is_object(properties):
        for name, schema in list(properties.items())[:MAX_PROPERTIES]:
            fields.append(("parameter", name))
            described = schema.get("description") if is_object(schema) else None
            if isinstance(described, str):
                fields.append(("more", described))
    for field, text in fields:
        weight = WEIGHTS[field]
        for term in set(terms(text[:MAX_FIELD_CHARS])):
            yield term, weight
