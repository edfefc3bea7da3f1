"""The built-in kinds of nodes: what they take and give, what their config must be, and what the pure ones compute.

``input`` and ``output`` stand for the workflow's interface; ``constant``, ``template``, ``condition`` and ``merge`` compute; ``map`` runs another node over a
list, which is the engine's work. Graph editors' names of the first two are read too. Must not know engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import msgspec

from tamis.protocols.model import Json
from tamis.protocols.schema.words import index_in, is_list, is_object
from tamis.protocols.workflow.model import Node, Slot, Slots, Workflow, converted

KINDS = ("input", "output", "constant", "template", "condition", "merge", "map")
_ALSO = {"core:GroupInput": "input", "core:GroupOutput": "output"}
OPERATORS = (
    *("truthy", "empty", "equals", "notEquals"),
    *("less", "lessOrEqual", "greater", "greaterOrEqual", "contains"),
)
MAX_ITEMS = 10_000
MAX_TEMPLATE_CHARS = 16 * 1024 * 1024
"""How long a filled template may get."""
_HOLE = re.compile(r"\{\{\s*([^{}\s](?:[^{}]*[^{}\s])?)\s*\}\}")


class NodeError(Exception):
    """A node cannot compute; the text says why."""


def kind_of_node(node_type: str) -> str:
    """The built-in kind that a node's type names, or an empty text."""
    return node_type if node_type in KINDS else _ALSO.get(node_type, "")


# What they take and give


def kind_slots(kind: str, node: Node, workflow: Workflow | None = None) -> Slots:
    """The slots of a node of a built-in kind."""
    if kind == "input":
        return Slots(outputs=dict(workflow.inputs) if workflow is not None else {}, open_outputs=workflow is None)
    if kind == "output":
        inputs = {
            name: Slot(name, "WILDCARD" if slot.is_stream else slot.type)
            for name, slot in (workflow.outputs if workflow is not None else {}).items()
        }
        return Slots(inputs=inputs, open_inputs=workflow is None)
    if kind == "constant":
        return Slots(outputs={"value": Slot("value", _type_of_value(node.config.get("value")))})
    if kind == "template":
        names = holes(_text(node.config.get("template")))
        input_names = dict.fromkeys(name.split(".", 1)[0] for name in names)
        return Slots({name: Slot(name, required=True) for name in input_names}, {"text": Slot("text", "STRING")})
    if kind == "condition":
        inputs = {"value": Slot("value", required=True), "than": Slot("than"), "data": Slot("data")}
        outputs = {"then": Slot("then"), "else": Slot("else"), "result": Slot("result", "BOOLEAN")}
        return Slots(inputs, outputs)
    if kind == "merge":
        return Slots(outputs={"value": Slot("value")}, open_inputs=True)
    items = {"items": Slot("items", "ARRAY", required=True)}
    return Slots(items, {"results": Slot("results", "ARRAY")}, open_inputs=True)


def _type_of_value(value: Json) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    kinds = ((str, "STRING"), (int, "INTEGER"), (float, "FLOAT"), (dict, "OBJECT"), (list, "ARRAY"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "WILDCARD")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


# What their config must be


def config_fault(kind: str, node: Node) -> str:
    """What is wrong with the config of a node of a built-in kind; empty when nothing is."""
    config = node.config
    if kind == "constant" and "value" not in config:
        return "config.value is missing"
    if kind == "template" and not isinstance(config.get("template"), str):
        return "config.template must be a text"
    if kind == "condition":
        operator = config.get("operator", "truthy")
        if operator not in OPERATORS:
            return f"config.operator must be one of {', '.join(OPERATORS)}"
    if kind == "map":
        inner = config.get("type")
        if not isinstance(inner, str) or not inner.strip():
            return "config.type must name the tool or kind of node that each item goes to"
        if kind_of_node(inner) in ("input", "output", "map"):
            return f"config.type cannot be '{inner}'; put it into a workflow and name that"
        if config.get("onError", "stop") not in ("stop", "skip"):
            return "config.onError must be 'stop' or 'skip'"
        for name in ("item", "output"):
            if name in config and not isinstance(config[name], str):
                return f"config.{name} must be a text"
    return ""


def inner_node(node: Node) -> Node:
    """The node that a ``map`` runs for each item, without the item."""
    config = node.config
    own = config.get("config")
    fixed = config.get("inputs")
    return Node(
        node.id,
        _text(config.get("type")),
        dict(fixed) if is_object(fixed) else {},
        dict(own) if is_object(own) else {},
    )


def item_slot(node: Node, slots: Slots) -> str:
    """Which slot of the inner node takes the item: the one that is named, the only required one that nothing else fills, else ``item``."""
    named = node.config.get("item")
    if isinstance(named, str):
        return named
    filled = {*node.inputs, *inner_node(node).inputs}
    free = [name for name in slots.inputs if name not in filled]
    needed = [name for name in free if slots.inputs[name].required]
    if len(needed) == 1:
        return needed[0]
    return free[0] if len(free) == 1 else "item"


# What the pure ones compute


def compute(kind: str, config: Mapping[str, Json], inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The outputs of a node of a pure kind. An output that is not in them was not taken: what depends on it is skipped.

    Raises ``NodeError``.
    """
    if kind in ("input", "output"):
        return dict(inputs)
    if kind == "constant":
        return {"value": config.get("value")}
    if kind == "template":
        return {"text": filled(_text(config.get("template")), inputs)}
    if kind == "merge":
        return {"value": next(iter(inputs.values()))} if inputs else {}
    holds = _holds(config, inputs)
    data = inputs["data"] if "data" in inputs else inputs.get("value")
    return {"then" if holds else "else": data, "result": holds}


def holes(template: str) -> list[str]:
    """The names that a template has holes for, each once, in order."""
    return list(dict.fromkeys(match[1] for match in _HOLE.finditer(template)))


def filled(template: str, values: Mapping[str, Json]) -> str:
    """A template with its holes filled: ``{{name}}``, or ``{{name.key.0}}`` for a part of a value. What is no text is written as JSON."""
    size = 0

    def value(match: re.Match[str]) -> str:
        nonlocal size
        text = as_text(_part(match[1], values))
        size += len(text)
        if size > MAX_TEMPLATE_CHARS:
            raise NodeError(f"the filled template has more than {MAX_TEMPLATE_CHARS} characters")
        return text

    return _HOLE.sub(value, template)


def as_text(value: Json) -> str:
    """A value as it stands in a text: a text itself, else JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except (OverflowError, RecursionError):
        return str(converted(value, "STRING"))


def _part(name: str, values: Mapping[str, Json]) -> Json:
    if name in values:
        return values[name]
    head, *path = name.split(".")
    if head not in values:
        raise NodeError(f"nothing is given for {{{{{name}}}}}")
    value = values[head]
    for key in path:
        if is_object(value) and key in value:
            value = value[key]
        elif is_list(value) and (index := index_in(value, key)) >= 0:
            value = value[index]
        else:
            raise NodeError(f"the value of '{head}' has no part for {{{{{name}}}}}")
    return value


def _holds(config: Mapping[str, Json], inputs: Mapping[str, Json]) -> bool:
    operator = config.get("operator", "truthy")
    value = inputs.get("value")
    if operator == "truthy":
        return not _empty(value) and value is not False and not _is_zero(value)
    if operator == "empty":
        return _empty(value)
    than = inputs["than"] if "than" in inputs else config.get("than")
    if operator == "equals":
        return same(value, than)
    if operator == "notEquals":
        return not same(value, than)
    if operator == "contains":
        if isinstance(value, str):
            return as_text(than) in value
        if is_list(value):
            return any(same(item, than) for item in value)
        if is_object(value):
            return isinstance(than, str) and than in value
        raise NodeError("'contains' takes a text, a list or an object")
    return _ordered(str(operator), value, than)


def _ordered(operator: str, a: Json, b: Json) -> bool:
    numbers = _is_number(a) and _is_number(b)
    if not numbers and not (isinstance(a, str) and isinstance(b, str)):
        raise NodeError(f"'{operator}' takes two numbers or two texts")
    left, right = cast("float", a), cast("float", b)
    if operator == "less":
        return left < right
    if operator == "lessOrEqual":
        return left <= right
    return left > right if operator == "greater" else left >= right


def _empty(value: Json) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_zero(value: Json) -> bool:
    return _is_number(value) and value == 0


def same(a: Json, b: Json) -> bool:
    """Whether two JSON values are equal: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    pairs: list[tuple[Json, Json]] = [(a, b)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, bool) or isinstance(right, bool):
            if left is not right:
                return False
        elif is_object(left) and is_object(right):
            if left.keys() != right.keys():
                return False
            pairs += [(value, right[key]) for key, value in left.items()]
        elif is_list(left) and is_list(right):
            if len(left) != len(right):
                return False
            pairs += list(zip(left, right, strict=True))
        elif left != right:
            return False
    return True
