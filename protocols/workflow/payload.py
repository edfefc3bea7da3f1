"""What an engine is given: ``WorkflowExecutionPayload`` (seed 004 §2.4, seed 000 §7.3), for a workflow (path A) and for one tool alone (path B).

The field names are those of the engines that the seeds describe. Must not know engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET

from tamis.protocols.model import Json
from tamis.protocols.workflow.kinds import kind_of_node
from tamis.protocols.workflow.model import STOP, Node, Place, Workflow
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
    found = dict(workflow.output_mappings)
    for edge in workflow.edges if ends else ():
        if edge.target.node in ends:
            found.setdefault(edge.target.slot, edge.source)
    # A constant that an output node was given by hand is the node's own.
    for node in workflow.nodes or ():
        if node.id in ends:
            for name in node.inputs:
                found.setdefault(name, Place(node.id, name))
    return {name: found[name] for name in workflow.outputs if name in found}


def _node(node: Node, mapped: Mapping[str, Json], values: Mapping[str, Json]) -> Payload:
    given = dict(values) if kind_of_node(node.type) == "input" else {}
    payload: Payload = {"id": node.id, "fullType": node.type, "inputs": {**given, **node.inputs, **mapped}}
    payload |= {"configValues": dict(node.config)} if node.config else {}
    payload |= {} if node.on_error == STOP else {"onError": node.on_error}
    return payload | ({"retry": node.retry} if node.retry else {})


def _interface(workflow: Workflow, names: tuple[str, ...]) -> Json:
    nothing: dict[str, Json] = {}
    return next((workflow.raw[name] for name in names if name in workflow.raw), nothing)


def _mapping(place: Place) -> Payload:
    return {"sourceNodeId": place.node, "sourceSlotKey": place.slot}
