"""From a found call to the call model: name, typed arguments with their places, and what had to be assumed.

Shared by every protocol whose calls are JSON. Must not know blocks or documents.
"""

from __future__ import annotations

import json

import msgspec

from tamis.protocols.calljson.forms import ARGUMENTS, FoundCall
from tamis.protocols.jsontext.spoken import Layer, Spoken, read_spoken
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.jsontext.values import TooDeepError, value_of
from tamis.protocols.model import MAX_DEPTH, MAX_NAME_CHARS, MAX_PARAMS, Call, Diag, Edit, Fix, Param

_TEXT_IS_CANONICAL = frozenset(("openai", "responses"))


class MadeCall(msgspec.Struct):
    """A call of the model, or None where the JSON names no tool, with the findings about it."""

    call: Call | None
    diags: list[Diag]


def make_call(found: FoundCall, spoken: Spoken, protocol: str) -> MadeCall:
    """One call of the model. Findings of error level keep it from running; the caller says so (ruling 1)."""
    made = MadeCall(None, [])
    span = spoken.span(found.node.start, found.node.end)
    name = found.name.value if found.name is not None else None
    if found.name is None or name is None:
        made.diags.append(Diag("HM601", span))
        return made
    if not isinstance(name.value, str) or not name.value.strip():
        made.diags.append(Diag("HM601", spoken.node_span(name)))
        return made
    where = spoken.node_span(name)
    tool = name.value.strip()
    if tool != name.value:
        fix = Fix("Remove the blanks", (Edit(*where, spoken.layer.written(_quoted(tool)[1:-1])),))
        args: dict[str, str | int] = {"raw": _quoted(name.value), "canonical": _quoted(tool)}
        made.diags.append(Diag("HM604", where, args, fix=fix, repair=True))
    if len(tool) > MAX_NAME_CHARS:
        made.diags.append(Diag("TC021", where, {"limit": MAX_NAME_CHARS}))
    for member, canonical in found.misspelled:
        key = spoken.inner_span(member.key_start, member.key_end)
        fix = Fix(f"Write {canonical}", (Edit(*key, canonical),))
        args = {"raw": f"'{member.key}'", "canonical": f"'{canonical}'"}
        made.diags.append(Diag("HM604", key, args, fix=fix, repair=True))
    rival = found.rival
    if rival is not None:
        reason = f"it has {_quoted(rival.key)} beside {_quoted(found.name.key)}; which one counts is unclear"
        if found.args is not None and rival.key in ARGUMENTS:
            reason = f"it has both {_quoted(found.args.key)} and {_quoted(rival.key)}"
        made.diags.append(Diag("HM602", span, {"reason": reason}))
    for member in found.unused:
        key = spoken.inner_span(member.key_start, member.key_end)
        made.diags.append(Diag("HM616", key, {"k": member.key}))
    call = Call(protocol, tool, where, span)
    if found.call_id is not None and found.call_id.value not in (None, ""):
        call.meta = {"id": str(found.call_id.value)}
    made.call = call
    try:
        _arguments(found, spoken, call, made.diags)
    except (TooDeepError, RecursionError):
        made.diags.append(Diag("TC020", span, {"limit": MAX_DEPTH}))
    if len(call.params) > MAX_PARAMS:
        made.diags.append(Diag("TC022", span, {"limit": MAX_PARAMS, "what": "arguments"}))
        del call.params[MAX_PARAMS:]
    return made


def _arguments(found: FoundCall, spoken: Spoken, call: Call, diags: list[Diag]) -> None:
    node = found.args.value if found.args is not None else None
    if node is None or node.kind == "null":
        _without(found, node, spoken, diags)
        return
    if node.kind == "string":
        inner = _inner(node, found, spoken, diags)
        if inner is not None and inner.root is not None:
            _params(inner.root, inner, call)
        return
    if node.kind != "object":
        received = {"array": "a list", "boolean": "a boolean", "number": "a number"}.get(node.kind, node.kind)
        diags.append(Diag("HM606", spoken.node_span(node), {"received": received}))
        return
    _params(node, spoken, call)


def _without(found: FoundCall, node: JsonNode | None, spoken: Spoken, diags: list[Diag]) -> None:
    """No arguments: an empty object, unless other members look like the arguments themselves."""
    if node is None and found.unused:
        reason = f"it has no arguments, but a member {_quoted(found.unused[0].key)} beside its name"
        diags.append(Diag("HM602", spoken.span(found.node.start, found.node.end), {"reason": reason}))
        return
    if node is not None:
        where = spoken.node_span(node)
        edits = (Edit(*where, spoken.layer.written("{}")),)
    else:
        last = found.name
        assert last is not None
        assert last.value is not None
        end = spoken.span(last.value.start, last.value.end)[1]
        where = spoken.node_span(last.value)
        key = "input" if found.form == "anthropic" else "arguments"
        begun = next((member for member in found.node.members if member.key == key), None)
        if begun is None:
            edits = (Edit(end, end, spoken.layer.written(f', "{key}": {{}}')),)
        elif begun.colon >= 0:
            at = spoken.span(begun.colon, begun.colon + 1)[1]
            edits = (Edit(at, at, spoken.layer.written(" {}")),)
        else:
            edits = ()
    fix = Fix("Write an empty object", edits) if edits else None
    diags.append(Diag("HM619", where, fix=fix, repair=True))


def _inner(node: JsonNode, found: FoundCall, spoken: Spoken, diags: list[Diag]) -> Spoken | None:
    """Arguments that are a JSON text in a string: OpenAI's own form, elsewhere a slip with one reading."""
    where = spoken.node_span(node)
    value = value_of(node, spoken)
    layer = Layer(spoken.layer.source, *where, value)
    if not layer.text.strip():
        diags.append(Diag("HM619", where, fix=_object_fix(node, spoken, "{}"), repair=True))
        return None
    inner = read_spoken(layer)
    if inner.root is None:
        reason = inner.fault or Diag("HM603", where, {"reason": "the arguments are no JSON"})
        diags.append(msgspec.structs.replace(reason, fix=None))
        return None
    if inner.root.kind != "object":
        diags.append(Diag("HM606", where, {"received": f"a text that holds a JSON {inner.root.kind}"}))
        return None
    if found.form in _TEXT_IS_CANONICAL:
        diags.extend(inner.diags)
        return inner
    # The object takes the place of the text that held it, with every repair inside.
    fix = _object_fix(node, spoken, inner.clean)
    diags.append(Diag("HM605", where, fix=fix, repair=True))
    diags.extend(msgspec.structs.replace(diag, fix=None) for diag in inner.diags)
    return inner


def _object_fix(node: JsonNode, spoken: Spoken, text: str) -> Fix:
    start, end = spoken.span(node.start, node.end)
    return Fix("Write the object itself", (Edit(start, end, spoken.layer.written(text)),))


def _params(node: JsonNode, spoken: Spoken, call: Call) -> None:
    params: dict[str, Param] = {}
    for member in node.members:
        if member.value is None or member.value.kind == "error":
            continue
        params[member.key] = Param(
            member.key,
            value_of(member.value, spoken),
            spoken.span(member.key_start, member.value.end),
            spoken.inner_span(member.key_start, member.key_end),
            _raw(member, spoken),
            "json",
        )
    call.params = list(params.values())


def _raw(member: Member, spoken: Spoken) -> str:
    return spoken.layer.source[slice(*spoken.inner_span(member.key_start, member.key_end))]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
