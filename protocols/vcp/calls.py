"""From the pairs of a VCP block to its calls: tool name, metadata, batches (seed 001 §4.2, rulings 27 to 30).

Must not know marks or markers.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import msgspec

from tamis.protocols.model import MAX_NAME_CHARS, MAX_STEPS, Call, Edit, Param, Piece, ReadOptions, ToolHint, Value
from tamis.protocols.pairs.walk import Findings, Lexed, Pair, delete, fix
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.tam.keys import squash, suspicious_script, visible

META: Final = ("archery", "ink", "river", "vref", "timely_contact", "tool_password", "requireAdmin")
"""Fields that upstream reads for itself and never hands to a tool (ruling 28)."""

_KEY = lazy(r"[A-Za-z0-9_-]++")
_NUMBERED = lazy(r"(.*?[^0-9])([0-9]{1,9})", re.S)


def make_calls(text: str, lexed: Lexed, opener: Span, options: ReadOptions) -> list[tuple[Call, set[int]]]:
    """The calls of a block, one or one per ``commandN``, each with the indices of the pairs that it was made of."""
    findings, pairs = lexed.findings, lexed.pairs
    keys = [visible(pair.raw) for pair in pairs]
    for index, (pair, key) in enumerate(zip(pairs, keys, strict=True)):
        _note_key(findings, index, pair, key)
    named = _tool_name(findings, pairs, keys)
    if named is None:
        findings.add("VC302", opener)
        return []
    start, end = _trimmed(text, *pairs[named].value)
    tool = visible(text[start:end]).strip()
    if not tool:
        findings.add("VC303", (pairs[named].start, pairs[named].end), named, severity="error")
        return []
    _note_tool(findings, text, named, tool, (start, end))
    fields = _last_wins(findings, pairs, keys, {i for i, key in enumerate(keys) if key == keys[named] or i == named})
    steps = _batch(findings, pairs, keys, fields)
    if not steps:
        return [_call(text, lexed, tool, (start, end), named, {i: keys[i] for i in fields}, options)]
    calls: list[tuple[Call, set[int]]] = []
    for number in steps:
        chosen = _step(keys, fields, number, steps)
        call, own = _call(text, lexed, tool, (start, end), named, chosen, options)
        mine = [pairs[i] for i in own if i != named and _number(keys[i]) == number]
        call.span = (min(pair.start for pair in mine), max(pair.end for pair in mine))
        calls.append((call, own))
    return calls


def _trimmed(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    left = len(part) - len(part.lstrip())
    return (start, start) if left == len(part) else (start + left, start + len(part.rstrip()))


def _note_key(findings: Findings, index: int, pair: Pair, key: str) -> None:
    if not key:
        findings.add("TC061", (pair.start, pair.end), index, severity="warning")
    elif not _KEY.fullmatch(key) and squash(key) != "toolname":
        findings.add("VC323", pair.key, index, args={"raw": key}, repair=True)
        if script := suspicious_script(pair.raw):
            findings.add("TC016", pair.key, index, args={"raw": pair.raw, "script": script}, repair=True)


def _note_tool(findings: Findings, text: str, index: int, tool: str, span: Span) -> None:
    raw = text[span[0] : span[1]]
    if len(tool) > MAX_NAME_CHARS:
        findings.add("TC021", span, index, args={"limit": MAX_NAME_CHARS})
    if raw != tool:
        char = next(char for char in raw if not visible(char))
        findings.add(
            "TC013",
            span,
            index,
            args={"hex": f"{ord(char):04X}", "where": "the tool name"},
            fix=fix("Remove the invisible character", Edit(*span, tool)),
            repair=True,
        )
    if script := suspicious_script(raw):
        findings.add("TC016", span, index, args={"raw": raw, "script": script}, repair=True)


def _tool_name(findings: Findings, pairs: list[Pair], keys: list[str]) -> int | None:
    """The index of the pair that names the tool: the last ``tool_name``, else the last spelling variant of it."""
    exact = [i for i, key in enumerate(keys) if key == "tool_name"]
    if not exact:
        exact = [i for i, key in enumerate(keys) if squash(key) == "toolname"]
        for i in exact:
            rename = fix("Write tool_name", Edit(pairs[i].key[0], pairs[i].key[1], "tool_name"))
            findings.add("VC322", pairs[i].key, i, args={"raw": keys[i]}, fix=rename, repair=True)
    for earlier, later in pairwise(exact):
        remove = fix("Remove the earlier one", delete(pairs[earlier].start, pairs[earlier].end), unsafe=True)
        findings.add("VC304", pairs[later].key, later, fix=remove)
    return exact[-1] if exact else None


def _last_wins(findings: Findings, pairs: list[Pair], keys: list[str], names: set[int]) -> list[int]:
    """The indices of the fields that count, in order: of equal keys the last (seed 001 §7.3)."""
    last: dict[str, int] = {}
    counts: dict[str, int] = {}
    for i, key in enumerate(keys):
        if i in names or not key:
            continue
        before = last.pop(key, None)
        if before is not None:
            counts[key] = counts.get(key, 1) + 1
            findings.add(
                "TC060",
                pairs[i].key,
                i,
                args={"name": key, "n": counts[key], "policy": "the last one is used"},
                fix=fix("Remove the earlier one", delete(pairs[before].start, pairs[before].end), unsafe=True),
            )
        last[key] = i
    return sorted(last.values())


def _number(key: str) -> int | None:
    match = _NUMBERED.fullmatch(key)
    return int(match.group(2)) if match and match.group(2) == str(int(match.group(2))) else None


def _batch(findings: Findings, pairs: list[Pair], keys: list[str], fields: list[int]) -> list[int]:
    """The numbers of ``command1`` … in numeric order; without any of them a trailing digit belongs to the key (F24)."""
    steps = sorted(
        number
        for i in fields
        if keys[i].startswith("command") and (number := _number(keys[i])) is not None and keys[i] == f"command{number}"
    )
    if len(steps) > MAX_STEPS:
        findings.add("TC022", pairs[0].key, args={"limit": MAX_STEPS, "what": "commands"})
        return steps[:MAX_STEPS]
    return steps


def _step(keys: list[str], fields: list[int], number: int, steps: list[int]) -> dict[int, str]:
    """The fields of one step with their names: its own without the number, which win, and those without a step's number."""
    known = set(steps)
    own: dict[int, str] = {}
    shared: dict[int, str] = {}
    for i in fields:
        key = keys[i]
        step = _number(key)
        if step == number:
            own[i] = key[: -len(str(number))]
        elif step not in known:
            shared[i] = key
    names = set(own.values())
    return {**{i: name for i, name in shared.items() if name not in names}, **own}


def _call(
    text: str,
    lexed: Lexed,
    tool: str,
    tool_span: Span,
    named: int,
    fields: dict[int, str],
    options: ReadOptions,
) -> tuple[Call, set[int]]:
    """One call of the given fields; metadata goes to ``meta`` unless the tool declares it."""
    pairs = lexed.pairs
    declared = _declared(text, tool, pairs, fields, options)
    call = Call("vcp", tool, tool_span, (pairs[0].start, pairs[-1].end))
    for i, name in sorted(fields.items()):
        pair = pairs[i]
        start, end = pair.value
        if name in META and name not in declared:
            call.meta[name] = text[start:end].strip()
            lexed.findings.add("VC327", pair.key, i, args={"key": name}, minor=True)
            continue
        pieces = (Piece(start, end),) if end > start else ()
        value = Value("text", (start, end), pieces)
        call.params.append(Param(name, value, (pair.start, pair.end), pair.key, pair.raw, "pair"))
    return call, {named, *fields}


def _declared(
    text: str, tool: str, pairs: list[Pair], fields: dict[int, str], options: ReadOptions
) -> dict[str, msgspec.Raw] | dict[str, object]:
    """The declared parameters of the tool, looked up as ruling 30 names it; nothing when it is unknown here."""
    if not options.tools:
        return {}
    hint: ToolHint | None = options.tools.get(tool)
    if hint is None:
        command = next((text[slice(*pairs[i].value)].strip() for i, name in fields.items() if name == "command"), "")
        hint = options.tools.get(f"{tool}_{command}") if command else None
    return dict(hint.properties) if hint else {}
