"""Actions in calls: add the arguments that are missing, remove unknown ones, write a value so that nothing in it is markup.

Every edit is proven: the text is read again, and an action is only offered if the call then says what it promises.
"""

from __future__ import annotations

import json
import re

from tamis.protocols.model import Call, Edit, Json, Param
from tamis.protocols.plugins import SHIPPED
from tamis.protocols.positions import Span
from tamis.server.analysis.actions.manifests import add_to_profiles
from tamis.server.analysis.actions.refactorings import FileChange, Refactoring
from tamis.server.analysis.actions.samples import sample, sample_value
from tamis.server.analysis.snapshot import Snapshot

MAX_CALLS = 20


def in_text_file(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """Actions of a text: those of its calls, and in Python those of a function."""
    found = in_text(snapshot, span)
    if snapshot.path.endswith(".py"):
        from tamis.server.analysis.actions.manifests import in_python

        found += in_python(snapshot, span)
    return found


def in_text(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """Actions of the calls that a selection touches."""
    found: list[Refactoring] = []
    touched = [call for call in snapshot.document.calls if _touches(span, call.span)]
    for call in touched[:MAX_CALLS]:
        found += _missing(snapshot, call)
        found += _unknown(snapshot, call, span)
        found += _wrapped(snapshot, call, span)
        tool = snapshot.tool(call.tool_id) if call.tool_id else None
        if tool is not None and _touches(span, call.tool_span):
            found += add_to_profiles(snapshot, tool.tool_id)
    found += _other_shape(snapshot, span)
    return found


def _other_shape(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """An ACTION block in the other of its two shapes (ruling 12), where it says the same there."""
    from tamis.protocols.convert.convert import ConvertOptions, convert

    found: list[Refactoring] = []
    for block in snapshot.document.blocks:
        if block.protocol != "action" or not block.calls or not _touches(span, block.span):
            continue
        shapes = {call.shape for call in block.calls}
        if len(shapes) != 1 or not all(call.executable for call in block.calls):
            continue
        to = "tag" if shapes == {"inputs"} else "inputs"
        alone = snapshot.read(snapshot.text[block.span[0] : block.span[1]])
        hints = snapshot.registry.hints() if snapshot.registry is not None else {}
        made = convert(alone, "action", ConvertOptions(hints, to))
        new = made.text.rstrip("\n")
        if made.refused or made.losses or not new:
            continue
        again = snapshot.read(snapshot.text[: block.span[0]] + new + snapshot.text[block.span[1] :])
        if [call.tool_id for call in again.calls if call.executable] != [
            call.tool_id for call in snapshot.document.calls if call.executable
        ]:
            continue
        title = "Write with <tool_id> and <inputs>" if to == "inputs" else "Write with the tool id as the tag"
        found.append(Refactoring(title, "refactor.rewrite", (FileChange(edits=(Edit(*block.span, new),)),)))
    return found


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
    found: list[Refactoring] = []
    if len(names) > 1:
        found += _adding(snapshot, call, names, properties, f"Add all missing arguments ({', '.join(names)})")
    for name in names:
        found += _adding(snapshot, call, [name], properties, f"Add the argument '{name}'")
    return found


def _adding(
    snapshot: Snapshot, call: Call, names: list[str], properties: dict[str, Json], title: str
) -> list[Refactoring]:
    from tamis.protocols.check import reading_of

    if reading_of(call.protocol) == "typed":
        edit = _member_insertion(snapshot.text, call, {name: sample_value(properties.get(name)) for name in names})
    else:
        edit = _insertion(snapshot.text, call, {name: sample(properties.get(name)) for name in names})
    if edit is None:
        return []
    text = snapshot.text[: edit.start] + edit.new_text + snapshot.text[edit.end :]
    again = next((one for one in snapshot.read(text).calls if one.tool_span[0] == call.tool_span[0]), None)
    if again is None or not {param.name for param in again.params} >= set(names):
        return []
    return [Refactoring(title, "quickfix", (FileChange(edits=(edit,)),), code="VA404")]


def _insertion(text: str, call: Call, values: dict[str, str]) -> Edit | None:
    """Where and how arguments are written behind the last one, in the call's own protocol and layout."""
    last = call.params[-1].span if call.params else None
    anchor = last if last is not None else call.tool_span
    line = text.rfind("\n", 0, anchor[0]) + 1
    lead = re.match(r"[ \t]*", text[line : anchor[0]])
    margin = lead[0] if lead else ""
    eol = "\r\n" if "\r\n" in text else "\n"
    if call.protocol == "tam":
        suffix = (
            f"_{call.step}" if call.step is not None and re.match(rf"\s*command_{call.step}\b", text[line:]) else ""
        )
        if last is not None and (
            numbered := re.search(r"_\d+$", text[call.params[-1].name_span[0] : call.params[-1].name_span[1]])
        ):
            suffix = numbered[0]
        fields = [f"{name}{suffix}:»»»{value}«««" for name, value in values.items()]
        at = _line_end(text, anchor[1], "<|[")
        return Edit(at, at, "".join(f"{eol}{margin}{field}" for field in fields))
    if call.protocol == "vcp":
        fields = [f"{name}:「始」{value}「末」" for name, value in values.items()]
        end = _line_end(text, anchor[1], "<<<[")
        comma = "" if "," in text[anchor[1] : end] else ","
        return Edit(end, end, comma + ",".join(f"{eol}{margin}{field}" for field in fields))
    if call.shape == "inputs":
        parts = [f'<input name="{_attribute(name)}">{_escaped(value)}</input>' for name, value in values.items()]
        if last is None:
            opener = re.compile(r"<inputs\s*(/?)>").search(text, anchor[1], call.span[1])
            whole = f"<inputs>{''.join(parts)}</inputs>"
            if opener is None:
                closed = re.compile(r"\s*</tool_id\s*>").match(text, anchor[1])
                own_line = text[line : anchor[0]].strip() == "<tool_id>"
                return closed and Edit(closed.end(), closed.end(), (f"{eol}{margin}" if own_line else "") + whole)
            if opener[1]:
                return Edit(*opener.span(), whole)
            return Edit(opener.end(), opener.end(), "".join(parts))
    else:
        if any(not re.fullmatch(r"[^\s<>/&\"'=]+", name) for name in values):
            return None
        parts = [f"<{name}>{_escaped(value)}</{name}>" for name, value in values.items()]
        if last is None:
            closer = re.compile(r"\s*(/?)>").match(text, call.tool_span[1])
            if closer is None:
                return None
            if closer[1]:
                return Edit(*closer.span(), f">{''.join(parts)}</{text[slice(*call.tool_span)]}>")
            return Edit(closer.end(), closer.end(), "".join(parts))
    own_line = not text[line : anchor[0]].strip()
    between = f"{eol}{margin}" if own_line else ""
    return Edit(anchor[1], anchor[1], "".join(f"{between}{part}" for part in parts))


def _member_insertion(text: str, call: Call, values: dict[str, Json]) -> Edit | None:
    """Where and how members are written behind the last argument of a call in JSON, or into its empty arguments."""
    made = json.dumps(values, ensure_ascii=False)[1:-1]
    if call.params:
        at = call.params[-1].span[1]
        return Edit(at, at, f", {made}")
    opener = re.compile(r'"arguments"\s*:\s*\{').search(text, *call.span)
    return None if opener is None else Edit(opener.end(), opener.end(), made)


def _line_end(text: str, at: int, marker: str = "\n") -> int:
    """The end of the line, or of what stands on it before a marker."""
    end = len(text)
    for mark in ("\r", "\n", marker):
        found = text.find(mark, at)
        end = found if 0 <= found < end else end
    return end


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(value: str) -> str:
    return _escaped(value).replace('"', "&quot;")


# Unknown arguments


def _unknown(snapshot: Snapshot, call: Call, span: Span) -> list[Refactoring]:
    """Remove an argument that the tool does not know."""
    tool = snapshot.tool(call.tool_id) if call.tool_id else None
    if tool is None or call.protocol not in ("action", "tam", "vcp"):
        return []
    from tamis.protocols.check import check_call

    unknown = {
        str(problem.diag.data.get("path", "")).removeprefix("/")
        for problem in check_call(call, snapshot.text, tool.plan).problems
        if problem.diag.code == "VA403"
    }
    found: list[Refactoring] = []
    for param in call.params:
        if param.name in unknown and _touches(span, param.span):
            edit = _removal(snapshot.text, param, call.protocol)
            text = snapshot.text[: edit.start] + edit.new_text + snapshot.text[edit.end :]
            again = next((one for one in snapshot.read(text).calls if one.tool_span[0] == call.tool_span[0]), None)
            kept = {one.name for one in call.params if one is not param}
            if again is not None and {one.name for one in again.params} == kept:
                title = f"Remove the argument '{param.name}'"
                found.append(Refactoring(title, "quickfix", (FileChange(edits=(edit,)),), code="VA403"))
    return found


def _removal(text: str, param: Param, protocol: str) -> Edit:
    """An argument with the line that it has for itself."""
    start, end = param.span
    if protocol == "vcp":
        comma = re.compile(r"[ \t]*,").match(text, end)
        end = comma.end() if comma else end
    line = text.rfind("\n", 0, start) + 1
    stop = _line_end(text, end)
    if not text[line:start].strip() and not text[end:stop].strip():
        after = stop + (2 if text[stop : stop + 2] == "\r\n" else 1)
        return Edit(line, min(after, len(text)), "")
    return Edit(start, end, "")


# Values


def _wrapped(snapshot: Snapshot, call: Call, span: Span) -> list[Refactoring]:
    """Write an ACTION value as CDATA, or its entities as characters, so that nothing in it is markup."""
    if call.protocol != "action":
        return []
    found: list[Refactoring] = []
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
        again = next((one for one in snapshot.read(text).calls if one.tool_span[0] == call.tool_span[0]), None)
        same = again.param(param.name) if again is not None else None
        if same is not None and same.value.kind == "text" and same.value.text(text) == meant:
            title = f"Write the value of '{param.name}' as CDATA"
            found.append(Refactoring(title, "refactor.rewrite", (FileChange(edits=(edit,)),)))
    return found


def _touches(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
