"""What an engine is given: ``WorkflowExecutionPayload`` (seed 004 §2.4, seed 000 §7.3), for a workflow (path A) and for one tool alone (path B).

The field names are those of the engines that the seeds describe. Must not know engines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from tamis.protocols.model import Json
from tamis.protocols.workflow.kinds import holes, inner_node, item_slot, kind_of_node, kind_slots
from tamis.protocols.workflow.model import STOP, WHOLE, Edge, Node, Place, Slots, Workflow
from tamis.protocols.workflow.reading import INPUTS, OUTPUTS

Payload = dict[str, Any]
NODE = "node"
"""The id of the only node of a wrapped tool."""


def input_values(workflow: Workflow, args: Mapping[str, Json]) -> dict[str, Json]:
    """The values of the interface's inputs: what the call gives, else ``config.default`` (W16); an input with neither is left out."""
    values: dict[str, Json] = {}
    for name, slot in workflow.inputs.items():
        if name in args:
            values[name] = args[name]
        elif slot.default is not UNSET:
            values[name] = slot.default
    return values


def workflow_payload(workflow: Workflow, args: Mapping[str, Json]) -> Payload:
    """Path A (seed 000 §7.3.1): the graph with the arguments mapped into the slots that they fill (A46, W16)."""
    values = input_values(workflow, args)
    filled: dict[str, dict[str, Json]] = {}
    for name, place in workflow.input_mappings:
        if name in values:
            filled.setdefault(place.node, {})[place.slot] = values[name]
    nodes = [_node(node, filled.get(node.id, {}), values) for node in workflow.nodes or ()]
    mappings = output_mappings(workflow)
    return {
        "workflowId": workflow.workflow_id,
        "nodes": nodes,
        "edges": [
            {
                "sourceNodeId": edge.source.node,
                "sourceHandle": edge.source.slot,
                "targetNodeId": edge.target.node,
                "targetHandle": edge.target.slot,
            }
            for edge in workflow.edges
        ],
        "inputs": values,
        "interfaceInputs": _interface(workflow, INPUTS),
        "interfaceOutputs": _interface(workflow, OUTPUTS),
        "outputInterfaceMappings": {name: _mapping(place) for name, place in mappings.items()},
    }


def single_node_payload(full_type: str, args: Mapping[str, Json], outputs: Iterable[str]) -> Payload:
    """Path B (seed 000 §7.3.2): one node, no edges, its inputs filled, every output slot mapped to an output of the interface (A47)."""
    return {
        "nodes": [{"id": NODE, "fullType": full_type, "inputs": dict(args)}],
        "edges": [],
        "inputs": dict(args),
        "outputInterfaceMappings": {name: _mapping(Place(NODE, name)) for name in outputs},
    }


def output_mappings(workflow: Workflow) -> dict[str, Place]:
    """Which slot gives each output: what the file maps, else what leads into an ``output`` node; in the interface's order."""
    ends = {node.id for node in workflow.nodes or () if kind_of_node(node.type) == "output"}
    output_mappings = dict(workflow.output_mappings)
    for edge in workflow.edges if ends else ():
        if edge.target.node in ends:
            output_mappings.setdefault(edge.target.slot, edge.source)
    # A constant that an output node was given by hand is the node's own.
    for node in workflow.nodes or ():
        if node.id in ends:
            for name in node.inputs:
                output_mappings.setdefault(name, Place(node.id, name))
    return {name: output_mappings[name] for name in workflow.outputs if name in output_mappings}


def _node(node: Node, mapped: Mapping[str, Json], values: Mapping[str, Json]) -> Payload:
    input_fields = dict(values) if kind_of_node(node.type) == "input" else {}
    payload: Payload = {"id": node.id, "fullType": node.type, "inputs": {**input_fields, **node.inputs, **mapped}}
    payload |= {"configValues": dict(node.config)} if node.config else {}
    payload |= {} if node.on_error == STOP else {"onError": node.on_error}
    return payload | ({"retry": node.retry} if node.retry else {})


def _interface(workflow: Workflow, names: tuple[str, ...]) -> Json:
    nothing: dict[str, Json] = {}
    return next((workflow.raw[name] for name in names if name in workflow.raw), nothing)


def _mapping(place: Place) -> Payload:
    return {"sourceNodeId": place.node, "sourceSlotKey": place.slot}


# Which inputs of a workflow are secrets: their values come into a parameter that ``x-secret`` marks (D83). A value is followed through the nodes
# whose work is known: the built-in kinds, and workflows that pass it on. What a tool makes of its arguments is not known, so nothing is followed
# through a tool. Linear in the graph.


Carried = dict[str, int]
"""By slot: the inputs whose values are in it, as bits in the interface's order."""


class Types(Protocol):
    """What is known of the types of nodes that are no built-in kinds."""

    def slots(self, node_type: str) -> Slots | None:
        """The slots of a type, or None for one that is not known."""
        ...

    def hides(self, node_type: str, slot: str) -> bool:
        """Whether what a type is given in a slot is a secret."""
        ...

    def passed(self, node_type: str) -> Mapping[str, frozenset[str]]:
        """For each output of a workflow, the inputs whose values are in it; empty for any other type."""
        ...


class Flow(msgspec.Struct, frozen=True):
    """Where the values of a workflow's inputs go."""

    secret: frozenset[str] = frozenset()
    """The inputs that come into a secret parameter."""
    passed: dict[str, frozenset[str]] = {}
    """For each output, the inputs whose values are in it."""


def flow_of(workflow: Workflow, types: Types) -> Flow:
    """Where the values of a workflow's inputs go. What stands in a circle is left out: it cannot run."""
    nodes = workflow.nodes or ()
    if not nodes or not workflow.inputs:
        return Flow()
    return _Following(workflow, nodes, types).flow()


class _Following:
    """One pass over a graph, from the inputs on."""

    def __init__(self, workflow: Workflow, nodes: tuple[Node, ...], types: Types) -> None:
        self.workflow = workflow
        self.nodes = nodes
        self.types = types
        self.names = list(workflow.inputs)
        self.bits = {name: 1 << at for at, name in enumerate(self.names)}
        self.index: dict[str, int] = {}
        for at, node in enumerate(nodes):
            self.index.setdefault(node.id, at)
        self.into: list[list[Edge]] = [[] for _ in nodes]
        self.after: list[list[int]] = [[] for _ in nodes]
        for edge in workflow.edges:
            source, target = self.index.get(edge.source.node), self.index.get(edge.target.node)
            if source is not None and target is not None:
                self.into[target].append(edge)
                self.after[source].append(target)
        self.mapped: dict[str, list[tuple[str, str]]] = {}
        for name, place in workflow.input_mappings:
            if name in self.bits:
                self.mapped.setdefault(place.node, []).append((name, place.slot))
        self.given: list[Carried] = [{} for _ in nodes]
        self.secret = 0

    def flow(self) -> Flow:
        waits = [len(edges) for edges in self.into]
        ready = deque(at for at, count in enumerate(waits) if not count)
        while ready:
            at = ready.popleft()
            self.given[at] = self._given(at)
            for target in self.after[at]:
                waits[target] -= 1
                if not waits[target]:
                    ready.append(target)
        passed = {
            name: self._named(self.given[self.index[place.node]].get(place.slot, 0))
            for name, place in output_mappings(self.workflow).items()
            if place.node in self.index
        }
        return Flow(self._named(self.secret), passed)

    def _named(self, bits: int) -> frozenset[str]:
        return frozenset(name for name in self.names if bits & self.bits[name]) if bits else frozenset()

    def _taken(self, at: int) -> Carried:
        """What comes into a node."""
        node = self.nodes[at]
        taken: Carried = dict(self.bits) if kind_of_node(node.type) == "input" else {}
        for name, slot in self.mapped.get(node.id, ()):
            taken[slot] = taken.get(slot, 0) | self.bits[name]
        for edge in self.into[at]:
            bits = self.given[self.index[edge.source.node]].get(edge.source.slot, 0)
            taken[edge.target.slot] = taken.get(edge.target.slot, 0) | bits
        return taken

    def _given(self, at: int) -> Carried:
        """What a node gives of what comes into it; secret parameters on the way are noted."""
        node, taken = self.nodes[at], self._taken(at)
        kind = kind_of_node(node.type)
        if kind == "map":
            return {"results": self._mapped(node, taken)}
        if not kind:
            return self._called(node.type, taken)
        return _computed(kind, node, taken, lambda slot: self._is_sure(at, slot))

    def _called(self, node_type: str, taken: Carried) -> Carried:
        for slot, bits in taken.items():
            if bits and self.types.hides(node_type, slot):
                self.secret |= bits
        by_slot = {
            output: _all(taken.get(name, 0) for name in names) for output, names in self.types.passed(node_type).items()
        }
        if by_slot:
            by_slot.setdefault(WHOLE, _all(by_slot.values()))
        return by_slot

    def _mapped(self, node: Node, taken: Carried) -> int:
        """What the results of a map carry: it runs its inner node with what comes in, each item in the item's slot."""
        inner = inner_node(node)
        kind = kind_of_node(inner.type)
        slots = (kind_slots(kind, inner) if kind else self.types.slots(inner.type)) or Slots()
        into = item_slot(node, slots)
        below = {name: bits for name, bits in taken.items() if name != "items"} | {into: taken.get("items", 0)}
        by_slot = _computed(kind, inner, below, below.__contains__) if kind else self._called(inner.type, below)
        wanted = node.config.get("output")
        return by_slot.get(wanted, 0) if isinstance(wanted, str) else _all(by_slot.values())

    def _is_sure(self, at: int, slot: str) -> bool:
        """Whether a slot has a value whenever its node runs: only an input of the interface can be left out."""
        node = self.nodes[at]
        if slot in node.inputs:
            return True
        filling = [name for name, place in self.mapped.get(node.id, ()) if place == slot]
        for edge in self.into[at]:
            if edge.target.slot == slot:
                if kind_of_node(self.nodes[self.index[edge.source.node]].type) != "input":
                    return True
                filling.append(edge.source.slot)
        there = [self.workflow.inputs[name] for name in filling if name in self.workflow.inputs]
        return any(slot.required or slot.default is not UNSET for slot in there)


def _computed(kind: str, node: Node, taken: Carried, is_sure: Callable[[str], bool]) -> Carried:
    """What the outputs of a node of a pure kind carry (``kinds.compute``)."""
    if kind in ("input", "output"):
        return taken
    if kind == "template":
        template = node.config.get("template")
        names = holes(template) if isinstance(template, str) else []
        slots = {part for name in names for part in (name, name.split(".", 1)[0])}
        return {"text": _all(taken.get(slot, 0) for slot in slots)}
    if kind == "merge":
        return {"value": _all(taken.values())}
    if kind == "condition":
        data = taken.get("data", 0) | (0 if is_sure("data") else taken.get("value", 0))
        return {"then": data, "else": data}
    return {}


def _all(carried: Iterable[int]) -> int:
    bits = 0
    for item in carried:
        bits |= item
    return bits
