"""The shapes in which JSON says that a tool is called, found in a tree.

``toolName`` (seed 004 §2.4), OpenAI's tool calls and Responses items, Anthropic's ``tool_use`` blocks, MCP's ``tools/call``, and the
bare ``{name, arguments}`` of Hermes. Must not know where the JSON stood or what its values mean.
"""

from __future__ import annotations

import json
from typing import Literal

import msgspec

from tamis.protocols.jsontext.spoken import Layer, Spoken, TooDeepError, read_spoken, value_of
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.model import MAX_DEPTH, MAX_NAME_CHARS, MAX_PARAMS, Call, Diag, Edit, Fix, Param

Form = Literal["toolName", "openai", "responses", "anthropic", "mcp", "named"]

ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "tool_input")
NAMES = ("name", "tool_name", "toolName", "tool", "function", "tool_id", "toolId")
_BESIDE: dict[Form, frozenset[str]] = {
    "toolName": frozenset(("id", "callId", "requestId", "type")),
    "openai": frozenset(("id", "type", "index")),
    "responses": frozenset(("id", "call_id", "type", "status")),
    "anthropic": frozenset(("id", "type", "cache_control", "caller")),
    "mcp": frozenset(("id", "jsonrpc", "method", "params")),
    "named": frozenset(("id", "type", "call_id")),
}
_OWN_ARGUMENTS: dict[Form, str] = {
    "toolName": "arguments",
    "openai": "arguments",
    "responses": "arguments",
    "anthropic": "input",
    "mcp": "arguments",
    "named": "arguments",
}


class FoundCall(msgspec.Struct):
    """One call in a tree: the object that is the call, the members that say its name and arguments, and what else it holds."""

    form: Form
    node: JsonNode
    name: Member | None
    args: Member | None
    call_id: JsonNode | None = None
    unused: list[Member] = []

    @property
    def rival(self) -> Member | None:
        """A second member that could be the name or the arguments as well; then there are two readings."""
        return next((m for m in self.unused if m.key in (*NAMES, *ARGUMENTS) and _says(m.value)), None)

    @property
    def misspelled(self) -> list[tuple[Member, str]]:
        """Members under another name than the form's own, with that one."""
        misspellings: list[tuple[Member, str]] = []
        wanted = "toolName" if self.form == "toolName" else "name"
        if self.name is not None and self.name.key != wanted:
            misspellings.append((self.name, wanted))
        if self.args is not None and self.args.key != _OWN_ARGUMENTS[self.form]:
            misspellings.append((self.args, _OWN_ARGUMENTS[self.form]))
        return misspellings


def find_calls(root: JsonNode, *, bare: bool) -> list[FoundCall] | None:
    """The calls of a document, in order, or None when it is not a document of calls.

    Without ``bare`` only forms count that cannot be anything else; with it ``{name, arguments}`` is a call too.
    """
    if root.kind == "array":
        return _of_list(root, bare)
    if root.kind != "object":
        return None
    inner = root.get("tool_calls")
    if inner is not None:
        return _of_list(inner, True) if inner.kind == "array" else None
    choices = root.get("choices")
    if choices is not None and choices.kind == "array":
        # Several choices are alternatives of one answer; only one of them could be meant.
        answer = choices.items[0].get("message") if len(choices.items) == 1 else None
        return None if answer is None else find_calls(answer, bare=bare)
    content = root.get("content")
    if content is not None and content.kind == "array" and root.member("name") is None:
        return _of_list(content, False)
    legacy = root.get("function_call")
    if legacy is not None and legacy.kind == "object" and legacy.member("name") is not None:
        return [_named(legacy, "openai")]
    call = _single(root, bare)
    return None if call is None else [call]


def _of_list(node: JsonNode, bare: bool) -> list[FoundCall] | None:
    """The calls of a list; beside them only what messages hold: texts, reasoning, images."""
    found_calls: list[FoundCall] = []
    for item in node.items:
        if item.kind != "object":
            return None
        call = _single(item, bare)
        if call is not None:
            found_calls.append(call)
        elif not isinstance(_text(item.get("type")), str) or item.member("name") is not None:
            return None
    return found_calls or None


def _single(node: JsonNode, bare: bool) -> FoundCall | None:
    kind = _text(node.get("type"))
    function = node.get("function")
    if function is not None and function.kind == "object" and (kind in (None, "function")):
        if function.member("name") is None or (kind is None and function.member("arguments") is None and not bare):
            return None
        # A definition has the same shape; its parameters are a schema, not arguments.
        if function.member("arguments") is None and function.member("parameters") is not None:
            return None
        call = _named(function, "openai")
        call.node = node
        call.call_id = node.get("id")
        call.unused += [member for member in node.members if member.key not in (*_BESIDE["openai"], "function")]
        return call
    if kind == "function_call" and node.member("name") is not None:
        call = _named(node, "responses")
        call.call_id = node.get("call_id") or node.get("id")
        return call
    if kind == "tool_use" and node.member("name") is not None:
        return _named(node, "anthropic")
    if _text(node.get("method")) == "tools/call" and (params := node.get("params")) is not None:
        if params.kind != "object":
            return None
        call = _named(params, "mcp")
        call.node = node
        call.call_id = node.get("id")
        call.unused = [member for member in call.unused if member.key != "_meta"]
        return call
    if node.member("toolName") is not None and (bare or node.member("arguments") is not None):
        return _named(node, "toolName")
    if bare and not _is_definition(node):
        return _named(node, "named")
    return None


def _is_definition(node: JsonNode) -> bool:
    """A tool's definition has the shape of a call; its parameters are a schema."""
    schema = node.get("parameters")
    return schema is not None and schema.member("properties") is not None and node.member("arguments") is None


def _named(node: JsonNode, form: Form) -> FoundCall:
    names = ("toolName",) if form == "toolName" else NAMES if form == "named" else ("name",)
    own = _OWN_ARGUMENTS[form]
    keys = dict.fromkeys((own, *ARGUMENTS)) if form in ("named", "toolName", "openai") else {own: None}
    name = next((member for key in names if (member := node.member(key)) is not None), None)
    args = next((member for key in keys if (member := node.member(key)) is not None), None)
    beside = _BESIDE[form]
    unused = [
        member
        for member in node.members
        if member is not name
        and member is not args
        and member.key not in beside
        and not (name is not None and member.key == name.key)
        and not (args is not None and member.key == args.key)
    ]
    call_id = next((id_node for key in ("id", "call_id", "callId", "requestId") if (id_node := node.get(key))), None)
    return FoundCall(form, node, name, args, call_id, unused)


def _says(node: JsonNode | None) -> bool:
    return node is not None and (bool(node.members) or bool(node.items) or node.value not in (None, ""))


def _text(node: JsonNode | None) -> str | None:
    return node.value if node is not None and isinstance(node.value, str) else None


# From a found call to the call model: name, typed arguments with their places, and what had to be assumed. Shared by every protocol whose calls are
# JSON.


_TEXT_IS_CANONICAL = frozenset(("openai", "responses"))


class MadeCall(msgspec.Struct):
    """A call of the model, or None where the JSON names no tool, with the findings about it."""

    call: Call | None
    diags: list[Diag]


def make_call(found_call: FoundCall, spoken: Spoken, protocol: str) -> MadeCall:
    """One call of the model. Findings of error level keep it from running; the caller says so (ruling 1)."""
    made_call = MadeCall(None, [])
    span = spoken.span(found_call.node.start, found_call.node.end)
    name = found_call.name.value if found_call.name is not None else None
    if found_call.name is None or name is None:
        made_call.diags.append(Diag("HM601", span))
        return made_call
    if not isinstance(name.value, str) or not name.value.strip():
        made_call.diags.append(Diag("HM601", spoken.node_span(name)))
        return made_call
    where = spoken.node_span(name)
    tool = name.value.strip()
    if tool != name.value:
        fix = Fix("Remove the blanks", (Edit(*where, spoken.layer.written(_quoted(tool)[1:-1])),))
        args: dict[str, str | int] = {"raw": _quoted(name.value), "canonical": _quoted(tool)}
        made_call.diags.append(Diag("HM604", where, args, fix=fix, repair=True))
    if len(tool) > MAX_NAME_CHARS:
        made_call.diags.append(Diag("TC021", where, {"limit": MAX_NAME_CHARS}))
    for member, canonical in found_call.misspelled:
        key = spoken.inner_span(member.key_start, member.key_end)
        fix = Fix(f"Write {canonical}", (Edit(*key, canonical),))
        args = {"raw": f"'{member.key}'", "canonical": f"'{canonical}'"}
        made_call.diags.append(Diag("HM604", key, args, fix=fix, repair=True))
    rival = found_call.rival
    if rival is not None:
        reason = f"it has {_quoted(rival.key)} beside {_quoted(found_call.name.key)}; which one counts is unclear"
        if found_call.args is not None and rival.key in ARGUMENTS:
            reason = f"it has both {_quoted(found_call.args.key)} and {_quoted(rival.key)}"
        made_call.diags.append(Diag("HM602", span, {"reason": reason}))
    for member in found_call.unused:
        key = spoken.inner_span(member.key_start, member.key_end)
        made_call.diags.append(Diag("HM616", key, {"k": member.key}))
    call = Call(protocol, tool, where, span)
    if found_call.call_id is not None and found_call.call_id.value not in (None, ""):
        call.meta = {"id": str(found_call.call_id.value)}
    made_call.call = call
    try:
        _arguments(found_call, spoken, call, made_call.diags)
    except (TooDeepError, RecursionError):
        made_call.diags.append(Diag("TC020", span, {"limit": MAX_DEPTH}))
    if len(call.params) > MAX_PARAMS:
        made_call.diags.append(Diag("TC022", span, {"limit": MAX_PARAMS, "what": "arguments"}))
        del call.params[MAX_PARAMS:]
    return made_call


def _arguments(found_call: FoundCall, spoken: Spoken, call: Call, diags: list[Diag]) -> None:
    node = found_call.args.value if found_call.args is not None else None
    if node is None or node.kind == "null":
        _without(found_call, node, spoken, diags)
        return
    if node.kind == "string":
        inner = _inner(node, found_call, spoken, diags)
        if inner is not None and inner.root is not None:
            _params(inner.root, inner, call)
        return
    if node.kind != "object":
        received = {"array": "a list", "boolean": "a boolean", "number": "a number"}.get(node.kind, node.kind)
        diags.append(Diag("HM606", spoken.node_span(node), {"received": received}))
        return
    _params(node, spoken, call)


def _without(call: FoundCall, node: JsonNode | None, spoken: Spoken, diags: list[Diag]) -> None:
    """No arguments: an empty object, unless other members look like the arguments themselves."""
    if node is None and call.unused:
        reason = f"it has no arguments, but a member {_quoted(call.unused[0].key)} beside its name"
        diags.append(Diag("HM602", spoken.span(call.node.start, call.node.end), {"reason": reason}))
        return
    if node is not None:
        where = spoken.node_span(node)
        edits = (Edit(*where, spoken.layer.written("{}")),)
    else:
        last = call.name
        assert last is not None
        assert last.value is not None
        end = spoken.span(last.value.start, last.value.end)[1]
        where = spoken.node_span(last.value)
        key = "input" if call.form == "anthropic" else "arguments"
        begun = next((member for member in call.node.members if member.key == key), None)
        if begun is None:
            edits = (Edit(end, end, spoken.layer.written(f', "{key}": {{}}')),)
        elif begun.colon >= 0:
            at = spoken.span(begun.colon, begun.colon + 1)[1]
            edits = (Edit(at, at, spoken.layer.written(" {}")),)
        else:
            edits = ()
    fix = Fix("Write an empty object", edits) if edits else None
    diags.append(Diag("HM619", where, fix=fix, repair=True))


def _inner(node: JsonNode, call: FoundCall, spoken: Spoken, diags: list[Diag]) -> Spoken | None:
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
    if call.form in _TEXT_IS_CANONICAL:
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
