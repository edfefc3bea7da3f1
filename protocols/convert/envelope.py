"""What a vendor's JSON says around its calls: members that no conversion carries, and ids that are numbers.

Must not know targets, nor how calls are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tamis.protocols.calljson.forms import FoundCall, find_calls
from tamis.protocols.contract import Loss
from tamis.protocols.convert.notes import loss
from tamis.protocols.jsontext.tree import JsonNode, Member
from tamis.protocols.model import Block, escape_pointer

_OF_MESSAGE = frozenset(("role", "type", "content", "tool_calls", "function_call"))
_OF_FORM = {"openai": frozenset(("type", "index", "function")), "mcp": frozenset(("jsonrpc", "method", "params"))}
_OF_OTHERS = frozenset(("type",))
"""What every target says in its own way."""


class CallEnvelope(msgspec.Struct, frozen=True):
    """What is said beside a call's name, arguments and id, by the members' names; the id if it is a whole number."""

    members: tuple[str, ...]
    number_id: int | None


class Envelope(msgspec.Struct, frozen=True):
    """Of a document of call JSON: its calls in order, and the members of the message that are not carried."""

    calls: tuple[CallEnvelope, ...] = ()
    members: tuple[str, ...] = ()


def read_envelope(text: str, block: Block) -> Envelope:
    """The envelope of a block of call JSON whose calls can all run. Never raises."""
    from tamis.protocols.jsontext.parse import parse_json

    root = parse_json(text[block.span[0] : block.span[1]]).root
    found_calls = find_calls(root, bare=True) if root is not None else None
    if root is None or found_calls is None:
        return Envelope()
    calls = tuple(CallEnvelope(tuple(_beside(call)), _number(call.call_id)) for call in found_calls)
    members: list[str] = []
    if root.kind == "object" and not any(one.node is root for one in found_calls):
        members += [member.key for member in root.members if member.key not in _OF_MESSAGE and _says(member)]
        content = root.get("content")
        for item in content.items if content is not None else ():
            kind = item.get("type")
            if kind is not None and kind.value == "text":
                members += [one.key for one in item.members if one.key not in ("type", "text") and _says(one)]
    return Envelope(calls, tuple(dict.fromkeys(members)))


def members_lost(members: Sequence[str], path: str, title: str) -> list[Loss]:
    """A loss for each member, below the place of what it stood beside."""
    why = "it has no place for it"
    return [
        loss(
            "TC052",
            f"{path}/{escape_pointer(name)}" if path else "",
            what=f"The member '{name}'",
            protocol=title,
            why=why,
        )
        for name in members
    ]


def _beside(found: FoundCall) -> Iterator[str]:
    inner = found.node.get({"openai": "function", "mcp": "params"}.get(found.form, ""))
    own = _OF_FORM.get(found.form, _OF_OTHERS)
    for node in (found.node, inner):
        for member in node.members if node is not None and node.kind == "object" else ():
            ours = any(member is one for one in (found.name, found.args)) or member.value is found.call_id
            if not ours and _says(member) and (node is inner or member.key not in own):
                yield member.key


def _number(node: JsonNode | None) -> int | None:
    value = node.value if node is not None and node.kind == "number" else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _says(member: Member) -> bool:
    """Whether the member holds anything: vendors write ``null`` and empty lists for what is not there."""
    node = member.value
    return node is not None and (bool(node.members) or bool(node.items) or node.value not in (None, ""))
