"""A workflow as data: its interface, its nodes, what leads to what (seed 004; seed 000 §7).

Data only: reading is ``reading.py``, what a graph lacks ``graph.py``, what an engine gets ``payload.py``.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_list, is_object

TYPES = (
    *("STRING", "INTEGER", "FLOAT", "BOOLEAN", "OBJECT", "ARRAY"),
    *("WILDCARD", "CONVERTIBLE_ANY", "BINARY"),
)
"""What a slot may hold (seed 004 §2.3, ruling 36)."""
ANY = ("WILDCARD", "CONVERTIBLE_ANY")
MAX_NODES = 20_000
MAX_EDGES = 100_000
MAX_RETRIES = 100
"""The most that ``retry`` of a node may be."""
STOP, SKIP = "stop", "skip"
ERROR = "error"
"""The slot of a node that another's failure leads to in which it finds what went wrong: ``{type, message, nodeId}``."""
MAX_WAIT_MS = 60_000
"""How long a reading of a streamed output waits at most."""


class Slot(msgspec.Struct, frozen=True):
    """A named place where a value goes in or comes out."""

    name: str
    type: str = "WILDCARD"
    required: bool = False
    default: Json | UnsetType = UNSET
    is_stream: bool = False
    """An output whose values come one after the other (seed 004 §4)."""


class Place(msgspec.Struct, frozen=True):
    """A slot of a node."""

    node: str
    slot: str


class Node(msgspec.Struct, frozen=True):
    """One step: ``type`` is a built-in kind or a tool's id."""

    id: str
    type: str
    inputs: dict[str, Json] = {}
    config: dict[str, Json] = {}
    title: str = ""
    on_error: Json = STOP
    """What its failure means: ``stop`` ends the run, ``skip`` leaves out what depends on it, ``{"value": …}`` stands for its result, ``{"goto": node}``
    leads to another node, which runs only then."""
    retry: int = 0
    """How many more attempts it has."""

    @property
    def handler(self) -> str:
        """The node that its failure leads to; empty without one."""
        goto = self.on_error.get("goto") if isinstance(self.on_error, dict) else None
        return goto if isinstance(goto, str) else ""


class Edge(msgspec.Struct, frozen=True):
    """What comes out of one slot goes into another."""

    source: Place
    target: Place


class Workflow(msgspec.Struct, frozen=True):
    """One workflow file. ``raw`` is the file's JSON; ``nodes`` is None where the file has none: only its interface is known."""

    workflow_id: str
    """The file's name without extension: the id behind ``workflow:`` (W02)."""
    declared_id: str = ""
    """The ``id`` of seed 000 §7.1, another name of it."""
    name: str = ""
    description: str = ""
    version: str = ""
    inputs: dict[str, Slot] = {}
    outputs: dict[str, Slot] = {}
    nodes: tuple[Node, ...] | None = None
    edges: tuple[Edge, ...] = ()
    input_mappings: tuple[tuple[str, Place], ...] = ()
    """Which slots an interface input fills, besides the edges of ``input`` nodes."""
    output_mappings: dict[str, Place] = {}
    """Which slot gives an interface output, besides the edges into ``output`` nodes."""
    timeout_ms: int | None = None
    asynchronous: bool = False
    """Whether a call of it becomes a task."""
    raw: dict[str, Json] = {}


# Slots: which types go into which, what a value is, and the slots of a tool by its schemas (seed 004 §2.3, ruling 36).


_OF_SCHEMA = {
    "string": "STRING",
    "integer": "INTEGER",
    "number": "FLOAT",
    "boolean": "BOOLEAN",
    "object": "OBJECT",
    "array": "ARRAY",
}
WHOLE = "output"
"""The slot that gives all that a tool gave."""
SLOTS_WORD = "x-slots"
"""In a tool's ``output`` schema: the names and types of the slots of a workflow or node, whose bare result has no names."""


class Slots(msgspec.Struct, frozen=True):
    """The slots of one type of node. ``open_inputs``: any other input is taken too; ``open_outputs``: any other may be asked for."""

    inputs: dict[str, Slot] = {}
    outputs: dict[str, Slot] = {}
    open_inputs: bool = False
    open_outputs: bool = False
    bare: bool = False
    """The only named output is what the whole result is."""


def fits(value: Json, kind: str) -> bool:
    """Whether a value is of a slot's type."""
    if kind == "STRING":
        return isinstance(value, str)
    if kind == "BOOLEAN":
        return isinstance(value, bool)
    if kind in ("INTEGER", "FLOAT"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "FLOAT" or not isinstance(value, float) or value.is_integer())
    if kind == "OBJECT":
        return is_object(value)
    return is_list(value) if kind == "ARRAY" else True


def connects(source: str, target: str) -> bool:
    """Whether what comes out of a slot can go into another: the same type, an integer where a number is wanted, a single value where
    a text is wanted, anything where anything is taken. What holds anything may go anywhere: its value is judged when it is there."""
    if source == target or source in ANY or target in ANY:
        return True
    return (source, target) == ("INTEGER", "FLOAT") or (
        target == "STRING" and source in ("INTEGER", "FLOAT", "BOOLEAN")
    )


def converted(value: Json, kind: str) -> Json:
    """A value as the slot that it goes into wants it: a number or a boolean as text, in JSON's spelling."""
    if kind == "STRING" and isinstance(value, int | float):
        return msgspec.json.encode(value).decode() if abs(value) < 1 << 63 else str(value)
    return value


def held(value: Json, kind: str) -> tuple[Json, bool]:
    """A value as an output of the interface gives it, and whether it is another than was given. Null is no value, of any type.

    Raises ``ValueError`` for a value of another type: a text is never taken for a number.
    """
    if value is None or (kind != "INTEGER" and fits(value, kind)):
        return value, False
    if kind == "INTEGER" and fits(value, kind):
        return (int(value), True) if isinstance(value, float) else (value, False)
    if kind == "STRING" and isinstance(value, bool | int | float):
        return converted(value, kind), True
    raise ValueError(f"no {kind}")


def slots_of(parameters: Json, output: Json) -> Slots:
    """The slots of a tool: its parameters go in; ``output`` gives its whole result, and the result's declared properties stand beside it."""
    properties = parameters.get("properties") if is_object(parameters) else None
    needed = parameters.get("required") if is_object(parameters) else None
    required = needed if is_list(needed) else []
    inputs = {
        name: Slot(name, type_of(schema), required=name in required)
        for name, schema in (properties.items() if is_object(properties) else ())
    }
    closed = is_object(parameters) and (bool(inputs) or parameters.get("additionalProperties") is False)
    return _with_outputs(Slots(inputs, open_inputs=not closed), output)


def _with_outputs(slots: Slots, output: Json) -> Slots:
    named = output.get(SLOTS_WORD) if is_object(output) else None
    if is_object(named):
        outputs = {name: Slot(name, kind if isinstance(kind, str) else "WILDCARD") for name, kind in named.items()}
        whole = next(iter(outputs.values())).type if len(outputs) == 1 else "OBJECT"
        bare = len(outputs) == 1
        outputs.setdefault(WHOLE, Slot(WHOLE, whole))
        return msgspec.structs.replace(slots, outputs=outputs, bare=bare)
    properties = output.get("properties") if is_object(output) else None
    outputs = {
        name: Slot(name, type_of(schema)) for name, schema in (properties.items() if is_object(properties) else ())
    }
    outputs.setdefault(WHOLE, Slot(WHOLE, type_of(output)))
    is_open = type_of(output) in ("WILDCARD", "OBJECT") and len(outputs) == 1
    return msgspec.structs.replace(slots, outputs=outputs, open_outputs=is_open)


def type_of(schema: Json) -> str:
    """The slot type of a JSON Schema; what has several types or none holds anything."""
    kind = schema.get("type") if is_object(schema) else None
    return _OF_SCHEMA.get(kind, "WILDCARD") if isinstance(kind, str) else "WILDCARD"
