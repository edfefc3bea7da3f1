"""The worked examples of a manifest, each held against the schemas once (D42).

What is known of each example is kept from version to version: after an edit only an example that changed, or that has a
property whose schema changed, is looked at again. Must not know the other fields of a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, TypeVar, cast

import msgspec

from tamis.protocols.jsontext.green import Green
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.manifest.embedded import FieldMemory, FieldSchema, reasons, value_span
from tamis.protocols.manifest.fields import MAX_FINDINGS, Findings, value_of
from tamis.protocols.model import Edit, Example, Fix, Json
from tamis.protocols.schema.facts import Facts
from tamis.protocols.schema.held import Held, Use, changed_since
from tamis.protocols.schema.words import Finding, is_list, is_object


class _Record(msgspec.Struct, eq=False):
    """One entry of the list: as it was read, whether reading it found faults, and what is wrong with it.

    None for errors: it may not fit, and the words were not needed yet. They are set once, for every version that shares it.
    """

    example: Example | None
    noisy: bool
    given: tuple[Finding, ...] | None = ()
    expected: tuple[Finding, ...] | None = ()

    @property
    def loud(self) -> bool:
        """Whether there may be something to say of it."""
        return self.noisy or self.given != () or self.expected != ()


class ExamplesMemory(msgspec.Struct, frozen=True, eq=False):
    """The list as it was read, and the schemas that its records were held against."""

    values: list[Json] = []
    records: list[_Record] = []
    examples: tuple[Example, ...] = ()
    plan: Held | None = None
    output: Held | None = None
    loud: frozenset[int] = frozenset()
    """The indices of the records of which there may be something to say."""


def check_examples(
    tree: JsonTree,
    node: JsonNode | None,
    parameters: FieldSchema,
    output: FieldSchema,
    findings: Findings,
    before: ExamplesMemory | None = None,
) -> tuple[tuple[Example, ...], ExamplesMemory]:
    """The examples, each held against the schemas as far as these are sound, and what to start from next time."""
    memory = before or ExamplesMemory()
    if node is None:
        return (), memory
    if node.kind != "array":
        findings.wrong_type(node, "examples", "a list of examples")
        return (), memory
    values = node.to_python()
    if not is_list(values):
        return (), memory
    plan, wanted = parameters.memory.held, output.memory.held
    if values is memory.values and plan is memory.plan and wanted is memory.output:
        now = memory
    else:
        records, changed = _taken_over(memory, values)
        for i in changed:
            records[i] = _read(_entry(node, i), i, Findings("MF"))
        touched = {*changed}
        touched |= _judge(records, changed, memory.plan, plan, "arguments")
        touched |= _judge(records, changed, memory.output, wanted, "value")
        now = ExamplesMemory(
            values, records, _examples(memory, records, changed), plan, wanted, _loud(memory, records, touched)
        )
    if now.loud:
        _report(tree, node, now, parameters.held, output.held, findings)
    return now.examples, now


def _examples(memory: ExamplesMemory, records: list[_Record], changed: Sequence[int]) -> tuple[Example, ...]:
    """The examples of the records, of unchanged ones taken over."""
    known = memory.examples
    if len(records) == len(memory.records) == len(known):
        examples: list[Example] = list(known)
        for i in changed:
            example = records[i].example
            if example is None:
                break
            examples[i] = example
        else:
            return tuple(examples) if changed else known
    return tuple(record.example for record in records if record.example is not None)


def _loud(memory: ExamplesMemory, records: list[_Record], touched: set[int]) -> frozenset[int]:
    if len(records) != len(memory.records) or len(touched) > _MANY:
        return frozenset(i for i, record in enumerate(records) if record.loud)
    if not touched:
        return memory.loud
    return (memory.loud - touched) | {i for i in touched if records[i].loud}


_MANY = 1_000


def _taken_over(memory: ExamplesMemory, values: list[Json]) -> tuple[list[_Record], Sequence[int]]:
    """The records of unchanged entries at their new places, and the indices of the others."""
    old, known = memory.values, memory.records
    size = len(values)
    if len(old) == size:
        return list(known), list(compress(range(size), map(is_not, old, values)))
    least = min(len(old), size)
    head = next(compress(count(), map(is_not, old, values)), least)
    tail = next(compress(count(), map(is_not, reversed(old), reversed(values))), least)
    tail = min(tail, least - head)
    blank = _Record(None, noisy=True)
    records = [*known[:head], *[blank] * (size - head - tail), *known[len(known) - tail :]]
    return records, range(head, size - tail)


def _entry(node: JsonNode, i: int) -> JsonNode:
    item = node.child(i)
    assert item is not None
    return item


def _read(item: JsonNode, i: int, findings: Findings) -> _Record:
    """One entry; its faults go to ``found``."""
    fields = findings.object(item, f"examples[{i}]", ("description", "input", "expectedOutput"))
    if item.kind != "object":
        return _Record(None, noisy=True)
    description = findings.text(value_of(fields, "description"), f"examples[{i}].description") or ""
    value = value_of(fields, "input")
    if value is None:
        if "input" not in fields:
            findings.missing(item, "input", f" of examples[{i}]")
        return _Record(None, noisy=True)
    args = value.to_python()
    if not is_object(args):
        findings.wrong_type(value, f"examples[{i}].input", "an object of arguments")
        return _Record(None, noisy=True)
    wanted = value_of(fields, "expectedOutput")
    expected = msgspec.UNSET if wanted is None else wanted.to_python()
    return _Record(Example(args, description, expected), bool(findings.diags))


def _judge(records: list[_Record], changed: Sequence[int], before: Held | None, now: Held | None, use: Use) -> set[int]:
    """Holds the changed entries, and those that a change of the schema touches, against it; the indices of the latter."""
    if now is None:
        return set()
    names = None if before is None else changed_since(before, now)
    if names is None:
        for i, record in enumerate(records):
            records[i] = _judged(record, now, use)
        return set(range(len(records)))
    judged: set[int] = set()
    if names:
        assert before is not None
        fresh = set(changed)
        moved = len(before.names) != len(now.names) or any(name not in before.names for name in names)
        for i in _touched(records, names, use, moved=moved):
            if i in fresh:
                continue
            record = records[i]
            if _errors(record, use) == () and _still_fits(record, names, before, now, use):
                continue
            records[i] = _judged(record, now, use)
            judged.add(i)
    for i in changed:
        records[i] = _judged(records[i], now, use)
    return judged


def _touched(records: list[_Record], names: frozenset[str], use: Use, *, moved: bool) -> list[int]:
    """The entries whose verdict or its wording may change with the schemas of these properties."""
    indices: list[int] = []
    for i, record in enumerate(records):
        example = record.example
        if example is None:
            continue
        value = example.input if use == "arguments" else example.expected_output
        if isinstance(value, dict) and not names.isdisjoint(value):
            indices.append(i)
            continue
        errors = record.given if use == "arguments" else record.expected
        # What is missing is described by its schema; an unknown name may mean another one now.
        if errors and (moved or any(error.code == "VA404" for error in errors)):
            indices.append(i)
    return indices


def _still_fits(record: _Record, names: frozenset[str], before: Held, now: Held, use: Use) -> bool:
    """Whether an entry that fitted does so with the properties that changed; false where that is not plain."""
    example = record.example
    assert example is not None
    value = example.input if use == "arguments" else example.expected_output
    if not isinstance(value, dict):
        return False
    for name in names:
        if name in value:
            check = now.check_of(name)
            if check is None or name not in before.names:
                return False
            try:
                if not check(value[name]):
                    return False
            except (RecursionError, ArithmeticError):
                return False
    return True


def _errors(record: _Record, use: Use) -> tuple[Finding, ...] | None:
    return record.given if use == "arguments" else record.expected


def _judged(record: _Record, held: Held, use: Use) -> _Record:
    example = record.example
    if example is None:
        return record
    if use == "arguments":
        issues = () if held.fits(example.input, use) else None
        return record if issues == () == record.given else _Record(example, record.noisy, issues, record.expected)
    value = example.expected_output
    expected = () if value is msgspec.UNSET or held.fits(value, use) else None
    return record if expected == () == record.expected else _Record(example, record.noisy, record.given, expected)


def _report(
    tree: JsonTree, node: JsonNode, memory: ExamplesMemory, plan: Held | None, output: Held | None, findings: Findings
) -> None:
    if memory.loud and any(diag.code == "MF535" and diag.severity is None for diag in findings.diags):
        plan = None  # arguments are no list or text: that is said of the parameters
    undeclared = {diag.args["k"] for diag in findings.diags if diag.code == "MF515"}
    for i in sorted(memory.loud):
        if len(findings.diags) >= MAX_FINDINGS:
            return
        record = memory.records[i]
        if record.noisy:
            _read(_entry(node, i), i, findings)
        example = record.example
        if example is None:
            continue
        fails = _expected_failure(example)
        if plan is not None and fails != "ParameterValidationError":
            if record.given is None:
                record.given = plan.errors(example.input, "arguments")
            for error in record.given:
                if error.code == "VA404" and error.args["p"] in undeclared:
                    continue  # it is said of the list that requires it
                _add(tree, error, f"/examples/{i}/input", "VA453", i, findings)
        if output is not None and not fails:
            if record.expected is None and example.expected_output is not msgspec.UNSET:
                record.expected = output.errors(example.expected_output, "value")
            # An output may hold more than its schema declares: names are only strict in what models write.
            for error in record.expected or ():
                if error.code != "VA403":
                    _add(tree, error, f"/examples/{i}/expectedOutput", "MF517", i, findings)


def _expected_failure(example: Example) -> str:
    """The type of the error that the example expects; empty for one that succeeds."""
    if not is_object(example.expected_output):
        return ""
    # few manifests have an example that does not fit
    from tamis.protocols.expected import expected_error

    error = expected_error(example.expected_output)
    return "" if error is None else str(error["type"])


def _add(tree: JsonTree, finding: Finding, base: str, code: str, index: int, findings: Findings) -> None:
    path = f"{base}{finding.path}"
    unknown = finding.code == "VA403"
    span = (tree.key_span(path) if unknown else None) or value_span(tree, path)
    fix = None
    if unknown and finding.suggestion is not None:
        text = quoted(finding.suggestion)
        fix = Fix(f"Rename to '{finding.suggestion}'", (Edit(*span, text),), "unsafe")
    args: dict[str, str | int] = {"i": index, "reason": reasons([finding], base.rpartition("/")[2])}
    findings.add(code, span, args, fix=fix, data={"code": finding.code, "path": path})


# What is known of a manifest from its versions before, so that a keystroke costs what it changed. Nothing here can be wrong of a value that is still
# there: everything is known of a value, none of a place.


T = TypeVar("T")


class Memory:
    """What readings of one document leave for the next one; ``before`` is what the last one left."""

    __slots__ = ("examples", "fields", "leaves", "outer", "output", "parameters", "scans")

    def __init__(self, before: Memory | None = None) -> None:
        self.parameters = FieldMemory() if before is None else before.parameters
        self.output = FieldMemory() if before is None else before.output
        self.examples = ExamplesMemory() if before is None else before.examples
        self.leaves: dict[object, Facts] = {} if before is None else before.leaves
        self.outer: tuple[object, object] | None = None if before is None else before.outer
        """All other fields as they stood when no fault was found in them, and what they were read as."""
        self.fields: dict[str, tuple[Green, object]] = {} if before is None else before.fields
        """By field the last value in which no fault was found, and what it was read as."""
        self.scans: dict[Hashable, Any] = {} if before is None else before.scans
        """Room for who looks at wide containers of the document (``server/analysis/lints/local.py``)."""


def read_once(
    name: str, root: JsonNode, findings: Findings, memory: Memory, read: Callable[[JsonNode | None, Findings], T]
) -> T:
    """One field of the outermost object as ``read`` reads it; a value without faults is read once."""
    member = root.member(name)
    node = member.value if member is not None else None
    if node is None or node.kind == "error":
        return read(None, findings)
    known = memory.fields.get(name)
    if known is not None and known[0] is node.green:
        return cast("T", known[1])
    before = len(findings.diags)
    reading = read(node, findings)
    if len(findings.diags) == before and not findings.full:
        memory.fields[name] = (node.green, reading)
    return reading
