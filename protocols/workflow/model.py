"""A workflow as data: its interface, its nodes, what leads to what (seed 004; seed 000 §7).

Data only: reading is ``reading.py``, what a graph lacks ``graph.py``, what an engine gets ``payload.py``.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from tamis.protocols.model import Json

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
