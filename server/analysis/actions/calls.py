"""Actions in calls: add the arguments that are missing, remove unknown ones, write a value so that nothing in it is markup.

Every edit is proven: the text is read again, and an action is only offered if the call then says what it promises.
"""

from __future__ import annotations

import json
import re

from tamis.protocols.model import Call, Edit, Json
from tamis.protocols.plugins import SHIPPED, editing_of, extras_of
from tamis.protocols.positions import Span
from tamis.server.analysis.actions.manifests import add_to_profiles
from tamis.server.analysis.actions.refactorings import FileChange, Refactoring
from tamis.server.analysis.actions.scaffold import sample, sample_value
from tamis.server.analysis.snapshot import Snapshot

MAX_CALLS = 20


def in_text_file(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """Actions of a text: those of its calls, and in Python those of a function."""
    refactorings = in_text(snapshot, span)
    if snapshot.path.endswith(".py"):
        from tamis.server.analysis.actions.manifests import in_python

        refactorings += in_python(snapshot, span)
    return refactorings


def in_text(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """Actions of the calls that a selection touches."""
    refactorings: list[Refactoring] = []
    touched = [call for call in snapshot.document.calls if _touches(span, call.span)]
    for call in touched[:MAX_CALLS]:
        refactorings += _missing(snapshot, call)
        refactorings += _unknown(snapshot, call, span)
        refactorings += _wrapped(snapshot, call, span)
        tool = snapshot.tool(call.tool_id) if call.tool_id else None
        if tool is not None and _touches(span, call.tool_span):
            refactorings += add_to_profiles(snapshot, tool.tool_id)
    refactorings += _other_shape(snapshot, span)
    return refactorings


def _other_shape(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """An ACTION block in the other of its two shapes (ruling 12), where it says the same there."""
    from tamis.protocols.convert.convert import ConvertOptions, convert

    refactorings: list[Refactoring] = []
    for block in snapshot.document.blocks:
        if len(extras_of(block.protocol).shapes) < 2 or not block.calls or not _touches(span, block.span):
            continue
        shapes = {call.shape for call in block.calls}
        if len(shapes) != 1 or not all(call.executable for call in block.calls):
            continue
        to = "tag" if shapes == {"inputs"} else "inputs"
        alone = snapshot.read(snapshot.text[block.span[0] : block.span[1]])
        hints = snapshot.registry.hints() if snapshot.registry is not None else {}
        conversion = convert(alone, block.protocol, ConvertOptions(hints, to))
        new = conversion.text.rstrip("\n")
        if conversion.refused or conversion.losses or not new:
            continue
        again = snapshot.read(snapshot.text[: block.span[0]] + new + snapshot.text[block.span[1] :])
        if [call.tool_id for call in again.calls if call.executable] != [
            call.tool_id for call in snapshot.document.calls if call.executable
        ]:
            continue
        title = "Write with <tool_id> and <inputs>" if to == "inputs" else "Write with the tool id as the tag"
        refactorings.append(Refactoring(title, "refactor.rewrite", (FileChange(edits=(Edit(*block.span, new),)),)))
    return refactorings


# Missing arguments


def _missing(snapshot: Snapshot, call: Call) -> list[Refactoring]:
    """One argument, or all of them, with a value that the schema names or the emptiest one that it allows (D59)."""
    if not call.tool_id or call.protocol not in SHIPPED:
        return []
    present = {param.name for param in call.params} | set(call.uris)
    names = [str(name) for name in snapshot.required(call.tool_id) if isinstance(name, str) and name not in present]
    if not names:
        return []
    properties = snapshot.properties(call.tool_id)
    refactorings: list[Refactoring] = []
    if len(names) > 1:
        refactorings += _adding(snapshot, call, names, properties, f"Add all missing arguments ({', '.join(names)})")
    for name in names:
        refactorings += _adding(snapshot, call, [name], properties, f"Add the argument '{name}'")
    return refactorings


def _adding(
    snapshot: Snapshot, call: Call, names: list[str], properties: dict[str, Json], title: str
) -> list[Refactoring]:
    from tamis.protocols.check import reading_of

    if reading_of(call.protocol) == "typed":
        edit = _member_insertion(snapshot.text, call, {name: sample_value(properties.get(name)) for name in names})
    else:
        edit = editing_of(call.protocol).insertion(
            snapshot.text, call, {name: sample(properties.get(name)) for name in names}
        )
    if edit is None:
        return []
    text = snapshot.text[: edit.start] + edit.new_text + snapshot.text[edit.end :]
    again = next(
        (candidate for candidate in snapshot.read(text).calls if candidate.tool_span[0] == call.tool_span[0]), None
    )
    if again is None or not {param.name for param in again.params} >= set(names):
        return []
    return [Refactoring(title, "quickfix", (FileChange(edits=(edit,)),), code="VA404")]


def _member_insertion(text: str, call: Call, values: dict[str, Json]) -> Edit | None:
    """Where and how members are written behind the last argument of a call in JSON, or into its empty arguments."""
    members = json.dumps(values, ensure_ascii=False)[1:-1]
    if call.params:
        at = call.params[-1].span[1]
        return Edit(at, at, f", {members}")
    opener = re.compile(r'"arguments"\s*:\s*\{').search(text, *call.span)
    return None if opener is None else Edit(opener.end(), opener.end(), members)


# Unknown arguments


def _unknown(snapshot: Snapshot, call: Call, span: Span) -> list[Refactoring]:
    """Remove an argument that the tool does not know."""
    tool = snapshot.tool(call.tool_id) if call.tool_id else None
    if tool is None:
        return []
    from tamis.protocols.check import check_call

    unknown = {
        str(problem.diag.data.get("path", "")).removeprefix("/")
        for problem in check_call(call, snapshot.text, tool.plan).problems
        if problem.diag.code == "VA403"
    }
    refactorings: list[Refactoring] = []
    for param in call.params:
        if param.name in unknown and _touches(span, param.span):
            edit = editing_of(call.protocol).removal(snapshot.text, param)
            if edit is None:
                continue
            text = snapshot.text[: edit.start] + edit.new_text + snapshot.text[edit.end :]
            again = next(
                (candidate for candidate in snapshot.read(text).calls if candidate.tool_span[0] == call.tool_span[0]),
                None,
            )
            kept = {candidate.name for candidate in call.params if candidate is not param}
            if again is not None and {param.name for param in again.params} == kept:
                title = f"Remove the argument '{param.name}'"
                refactorings.append(Refactoring(title, "quickfix", (FileChange(edits=(edit,)),), code="VA403"))
    return refactorings


# Values


def _wrapped(snapshot: Snapshot, call: Call, span: Span) -> list[Refactoring]:
    """Write an ACTION value as CDATA, or its entities as characters, so that nothing in it is markup."""
    if not extras_of(call.protocol).elements:
        return []
    refactorings: list[Refactoring] = []
    for param in call.params:
        value = param.value
        if value.kind != "text" or not _touches(span, value.span) or not _touches(span, param.span):
            continue
        written = snapshot.text[value.span[0] : value.span[1]]
        meant = value.text(snapshot.text)
        outside = snapshot.text[: value.span[0]].rstrip()
        if outside.endswith("<![CDATA[") or "]]>" in meant or not re.search(r"[<&]", written):
            continue
        edit = Edit(value.span[0], value.span[1], f"<![CDATA[{meant}]]>")
        text = snapshot.text[: edit.start] + edit.new_text + snapshot.text[edit.end :]
        again = next(
            (candidate for candidate in snapshot.read(text).calls if candidate.tool_span[0] == call.tool_span[0]), None
        )
        same = again.param(param.name) if again is not None else None
        if same is not None and same.value.kind == "text" and same.value.text(text) == meant:
            title = f"Write the value of '{param.name}' as CDATA"
            refactorings.append(Refactoring(title, "refactor.rewrite", (FileChange(edits=(edit,)),)))
    return refactorings


def _touches(first: Span, other: Span) -> bool:
    return first[0] <= other[1] and other[0] <= first[1]
