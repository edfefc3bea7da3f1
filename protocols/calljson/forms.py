"""The shapes in which JSON says that a tool is called, found in a tree.

``toolName`` (seed 004 §2.4), OpenAI's tool calls and Responses items, Anthropic's ``tool_use`` blocks, MCP's ``tools/call``, and the
bare ``{name, arguments}`` of Hermes. Must not know where the JSON stood or what its values mean.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, Member

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
        found: list[tuple[Member, str]] = []
        wanted = "toolName" if self.form == "toolName" else "name"
        if self.name is not None and self.name.key != wanted:
            found.append((self.name, wanted))
        if self.args is not None and self.args.key != _OWN_ARGUMENTS[self.form]:
            found.append((self.args, _OWN_ARGUMENTS[self.form]))
        return found


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
    found = _single(root, bare)
    return None if found is None else [found]


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
    call_id = next((found for key in ("id", "call_id", "callId", "requestId") if (found := node.get(key))), None)
    return FoundCall(form, node, name, args, call_id, unused)


def _says(node: JsonNode | None) -> bool:
    return node is not None and (bool(node.members) or bool(node.items) or node.value not in (None, ""))


def _text(node: JsonNode | None) -> str | None:
    return node.value if node is not None and isinstance(node.value, str) else None
