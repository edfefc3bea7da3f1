"""What a JSON text without a schema suggests of itself: keys of objects alike, values of the same key (as VS Code's service does)."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.json_items import filter_of, value_item
from tamis.server.analysis.completion.json_slot import Slot
from tamis.server.analysis.completion.snippets import escape_snippet

_MAX_SEEN = 20_000
_MAX_VALUES = 600


def _objects(root: JsonNode | None) -> Iterator[tuple[str, JsonNode]]:
    """Values of the text with their keys, a bounded number."""
    stack: list[tuple[str, JsonNode]] = [("", root)] if root is not None else []
    seen = 0
    while stack and seen < _MAX_SEEN:
        key, node = stack.pop()
        seen += 1
        yield key, node
        if node.kind == "array":
            stack.extend(("", item) for item in reversed(node.items[: _MAX_SEEN - seen]))
        else:
            members = node.members[: _MAX_SEEN - seen]
            stack.extend((member.key, member.value) for member in reversed(members) if member.value is not None)


def keys_alike(tree: JsonTree, slot: Slot) -> Iterator[str]:
    """Keys of objects that stand in the same list, or under the same key elsewhere."""
    if not slot.path or tree.root is None:
        return
    if isinstance(slot.path[-1], int):
        above = tree.root.at(slot.path[:-1])
        alike = [item for item in above.items if item is not slot.container] if above is not None else []
    else:
        alike = [node for key, node in _objects(tree.root) if key == slot.path[-1] and node is not slot.container]
    seen: dict[str, None] = {}
    for node in alike[:_MAX_VALUES]:
        seen.update((member.key, None) for member in node.members[:_MAX_VALUES])
    yield from seen


def values_alike(tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Values that the same key has elsewhere, or that stand in the same list."""
    name = slot.path[-1] if slot.path else None
    if isinstance(name, int):
        found = [item for item in (slot.container.items if slot.container is not None else []) if item is not slot.node]
    else:
        found = [
            node for key, node in _objects(tree.root) if name is not None and key == name and node is not slot.node
        ]
    for node in found[:_MAX_VALUES]:
        if node.kind in ("object", "array"):
            yield value_item(tree, slot, {} if node.kind == "object" else [], node.kind)
        elif node.kind == "boolean":
            yield value_item(tree, slot, True)
            yield value_item(tree, slot, False)
        elif node.kind != "error":
            written = tree.text[node.start : node.end]
            filter_text = filter_of(tree, slot, written)
            text = written + slot.after
            yield Proposal(written, "value", slot.span, text, escape_snippet(text), filter=filter_text)
