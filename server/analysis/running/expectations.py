"""What a text says that a call of it gives: fences marked ``expect`` between a block and the next one, and whether a result fits them; and what examples that
were run have covered of their manifest: which parameters had a value, which values of an ``enum`` came, which permissions were granted.

```` ```json expect ```` holds a JSON value of which objects may have more members (``json expect equal``: not), ```` ```text expect ```` the exact
text, ```` ```regex expect ```` a regular expression that is found in it. Pure; must not run anything.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.expected import MAX_DIFFERENCES, UNJUDGED, Match, shortfall
from tamis.protocols.model import Diag, Document, Json
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.schema.regex import PatternError, compile_pattern
from tamis.protocols.schema.words import is_list, is_object, json_equal
from tamis.server.analysis.running.variables import Variables, filled_json

if TYPE_CHECKING:
    from tamis.protocols.jsontext.tree import JsonNode
    from tamis.server.analysis.snapshot import Snapshot

Form = Literal["json", "text", "regex"]
MAX_COVERED = 2_000
"""Parts of one manifest that are told."""
MAX_DEPTH = 32
MAX_NAME_CHARS = 100
_RIGHTS = {
    "fileAccess/allowRead": "read",
    "fileAccess/allowWrite": "write",
    "networkAccess/allowHosts": "network",
    "requiredCapabilities": "capability",
    "secrets": "secret",
}
"""Where a manifest asks for rights, and what a refusal calls them (``Denied.kind``)."""
WORD = "expect"
_FENCE = lazy(r"(?m)^ {0,3}(`{3,}|~{3,})[ \t]*([^\n\r]*?)[ \t]*\r?$")
_FORMS: Mapping[str, Form] = {"json": "json", "regex": "regex", "regexp": "regex"}


class Expectation(msgspec.Struct, frozen=True):
    """What is expected: ``span`` is the line that opens the fence, ``body`` what stands in it, at ``place`` of the text."""

    span: Span
    form: Form
    match: Match
    body: str
    place: Span = (0, 0)


class Judgement(msgspec.Struct, frozen=True):
    """An expectation that was not met: why, and the places that differ."""

    expectation: Expectation | None
    reason: str
    details: tuple[str, ...] = ()


def expectations_of(snapshot: Snapshot, block: int) -> list[Expectation]:
    """What stands between a block and the next call of its text, by place."""
    return expectations_in(snapshot.document, block) if WORD in snapshot.text else []


def expectations_in(document: Document, block: int) -> list[Expectation]:
    """The same of a text that was read."""
    blocks = document.blocks
    start = blocks[block].span[1]
    later = (blocks[number] for number in range(block + 1, len(blocks)))
    end = next((block.span[0] for block in later if block.calls and not block.aside), len(document.text))
    return list(_fences(document.text, start, end))


def _fences(text: str, start: int, end: int) -> Iterator[Expectation]:
    line = text.find("\n", start, end)
    at = end if line < 0 else line + 1
    while (opened := _FENCE.search(text, at, end)) is not None:
        mark, info = opened[1], opened[2]
        body = min(opened.end() + 1, end)
        closed = next(
            (
                match
                for match in _FENCE.finditer(text, body, end)
                if not match[2] and match[1][0] == mark[0] and len(match[1]) >= len(mark)
            ),
            None,
        )
        inner = text[body : closed.start() if closed is not None else end]
        words = info.split()
        if WORD in words:
            named: list[Form] = [_FORMS[word] for word in words if word in _FORMS]
            form: Form = named[0] if named else "text"
            match: Match = "equal" if "equal" in words else "partial"
            whole = inner.replace("\r\n", "\n")
            yield Expectation((opened.start(1), opened.end(2)), form, match, whole, (body, body + len(inner)))
        if closed is None:
            return
        at = closed.end()


def fault_of(expectation: Expectation) -> str:
    """Why nothing can be held against it; empty where something can."""
    if expectation.form == "json":
        try:
            msgspec.json.decode(expectation.body.encode("utf-8", "surrogatepass"))
        except (msgspec.DecodeError, RecursionError) as error:
            return str(error)
    if expectation.form == "regex":
        try:
            compile_pattern(_text_of(expectation))
        except PatternError as error:
            return str(error)
    return ""


def expectation_findings(snapshot: Snapshot) -> list[Diag]:
    """Expectations of a text that cannot be read."""
    if WORD not in snapshot.text:
        return []
    return [
        Diag("VA474", expectation.span, {"reason": reason})
        for number, block in enumerate(snapshot.document.blocks)
        if block.calls and not block.aside
        for expectation in expectations_of(snapshot, number)
        if (reason := fault_of(expectation))
    ]


def judge(
    expectations: Sequence[Expectation], results: Sequence[ExecutionResult], variables: Variables
) -> list[Judgement] | None:
    """What of the results of a block is not as expected; None where nothing can be said, for a call was not let run.

    The last call's result is held against each expectation, those before it have to be successes. Without an expectation so has the last.
    """
    if not results or any(result.status in UNJUDGED for result in results):
        return None
    for result in results[:-1]:
        short = shortfall(UNSET, "equal", result)
        if short is not None:
            return [Judgement(None, f"{result.tool_id}: {short[0]}", short[1])]
    last = results[-1]
    if not expectations:
        short = shortfall(UNSET, "equal", last)
        return [] if short is None else [Judgement(None, *short)]
    return [
        judgement for expectation in expectations if (judgement := _judged(expectation, last, variables)) is not None
    ]


def _judged(expectation: Expectation, result: ExecutionResult, variables: Variables) -> Judgement | None:
    fault = fault_of(expectation)
    if fault:
        return Judgement(expectation, f"what is expected cannot be read: {fault}")
    if expectation.form == "json":
        expected, unknown = filled_json(expected_value(expectation), variables)
        if unknown:
            return Judgement(expectation, f"what is expected names '{unknown[0]}', which is no variable here")
        short = shortfall(expected, expectation.match, result)
        return None if short is None else Judgement(expectation, *short)
    short = shortfall(UNSET, "equal", result)
    if short is not None:
        return Judgement(expectation, *short)
    text = text_of_output(result)
    if expectation.form == "regex":
        test = compile_pattern(_text_of(expectation)).test(text)
        return None if test else Judgement(expectation, "the pattern is not found in the output", tuple(_lines(text)))
    wanted = _text_of(expectation)
    if wanted == text.rstrip("\n"):
        return None
    return Judgement(expectation, "the output is not the expected text", tuple(_difference(wanted, text)))


def expected_value(expectation: Expectation) -> Json:
    """What is expected, as a value: of a readable JSON fence what it holds, else its text."""
    if expectation.form == "json" and not fault_of(expectation):
        return msgspec.json.decode(expectation.body.encode("utf-8", "surrogatepass"))
    return _text_of(expectation)


def _text_of(expectation: Expectation) -> str:
    return expectation.body.rstrip("\n")


def text_of_output(result: ExecutionResult) -> str:
    """The output as a text: a string as it is, anything else as lines of JSON."""
    if result.output is UNSET:
        return ""
    output: object = result.output
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    return text.replace("\r\n", "\n")


def _lines(text: str) -> list[str]:
    lines = text[:4_000].split("\n")
    return lines if len(lines) <= MAX_DIFFERENCES else [*lines[:MAX_DIFFERENCES], "… and more"]


def _difference(wanted: str, output: str) -> list[str]:
    """Where two texts differ, a line of the expected one with ``-``, of the given one with ``+``."""
    wanted_lines, other = wanted[:20_000].split("\n")[:400], output.rstrip("\n")[:20_000].split("\n")[:400]
    changed = list(difflib.unified_diff(wanted_lines, other, n=0, lineterm=""))[2:]
    lines = [f"{line[0]} {line[1:]}" for line in changed if not line.startswith("@@")]
    return lines if len(lines) <= MAX_DIFFERENCES else [*lines[:MAX_DIFFERENCES], "… and more"]


# Coverage of manifests: counts are values that came, of a permission the runs that had it. A parameter inside of others is covered by what reaches
# it: members of objects, items of lists.


class Covered(msgspec.Struct, frozen=True):
    """A part of a manifest, where it stands, and how often it was used."""

    kind: Literal["parameter", "value", "permission"]
    name: str
    span: Span
    count: int


class Exercise(msgspec.Struct, frozen=True):
    """One run of an example: what it gave to the tool, and what the tool was refused, as kind and the manifest's value."""

    given: Any
    refused: frozenset[tuple[str, str]] = frozenset()


def covered(snapshot: Snapshot, exercises: Sequence[Exercise]) -> list[Covered]:
    """The parts of a manifest in the order of its parameters and permissions, at most ``MAX_COVERED``."""
    found: list[Covered] = []
    for part in _used(snapshot, exercises):
        if len(found) == MAX_COVERED:
            break
        found.append(part)
    return found


def _used(snapshot: Snapshot, exercises: Sequence[Exercise]) -> Iterator[Covered]:
    tree = snapshot.manifest.tree
    parameters = tree.node_at("/parameters")
    if parameters is not None:
        yield from _used_below(parameters, [exercise.given for exercise in exercises], 0)
    for place, kind in _RIGHTS.items():
        asked = tree.node_at(f"/securityContext/{place}")
        for item in asked.items if asked is not None else ():
            if isinstance(item.value, str):
                granted = sum((kind, item.value) not in exercise.refused for exercise in exercises)
                yield Covered("permission", _short(item.value), item.span, granted)


def _used_below(schema: JsonNode, values: list[Any], depth: int) -> Iterator[Covered]:
    """The parts of a schema that these values reached."""
    if depth > MAX_DEPTH:
        return
    for member in schema.members:
        node = member.value
        if node is None:
            continue
        if member.key == "properties":
            yield from _used_properties(node, values, depth)
        elif member.key == "items":
            yield from _used_below(node, [item for value in values if is_list(value) for item in value], depth + 1)
        elif member.key == "enum":
            for item in node.items:
                wanted = item.to_python()
                came = sum(json_equal(value, wanted) for value in values)
                yield Covered("value", _short(wanted), item.span, came)


def _used_properties(node: JsonNode, values: list[Any], depth: int) -> Iterator[Covered]:
    for member in node.members:
        given = [value[member.key] for value in values if is_object(value) and member.key in value]
        yield Covered("parameter", _short(member.key), (member.key_start, member.key_end), len(given))
        if member.value is not None:
            yield from _used_below(member.value, given, depth + 1)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    return text[:MAX_NAME_CHARS]
