"""What a workflow's graph lacks: unknown types, slots that are none or do not fit, circles, inputs that nothing gives, nodes for nothing.

Linear in the graph. Which tools there are is asked of a ``Types``. Findings name what they are about; ``graph.py`` puts them on the place
in the file. Must not know the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

import msgspec

from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.model import Diag, Edit, Fix, escape_pointer
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import is_object
from tamis.protocols.suggest import best, hint, short_for
from tamis.protocols.workflow.kinds import KINDS, config_fault, inner_node, item_slot, kind_of_node, kind_slots
from tamis.protocols.workflow.model import ERROR, Node, Place, Slot, Slots, Workflow, connects, fits
from tamis.protocols.workflow.payload import output_mappings
from tamis.protocols.workflow.reading import edge_pointer, interface_pointer, node_pointer


def circles(after: list[list[int]]) -> list[list[int]]:
    """The circles of a graph: for each set of nodes that all reach each other, one way around, from the first of them. Linear."""
    # Tarjan's algorithm with a stack of its own: a chain of ten thousand nodes is no depth to recurse to.
    order = [-1] * len(after)
    low = [0] * len(after)
    part_of = [-1] * len(after)
    stack: list[int] = []
    parts: list[list[int]] = []
    count = 0
    for root in range(len(after)):
        if order[root] >= 0:
            continue
        work: list[tuple[int, int]] = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                order[node] = low[node] = count
                count += 1
                stack.append(node)
            for position in range(at, len(after[node])):
                below = after[node][position]
                if order[below] < 0:
                    work += [(node, position + 1), (below, 0)]
                    break
                if part_of[below] < 0:
                    low[node] = min(low[node], order[below])
            else:
                if low[node] == order[node]:
                    cut = stack.index(node) if len(stack) < 64 else _last_index(stack, node)
                    parts.append(stack[cut:])
                    del stack[cut:]
                    for member in parts[-1]:
                        part_of[member] = len(parts) - 1
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
    components = [part for part in parts if len(part) > 1 or part[0] in after[part[0]]]
    return sorted((_around(part, after, part_of) for part in components), key=lambda circle: circle[0])


def _last_index(stack: list[int], node: int) -> int:
    at = len(stack) - 1
    while stack[at] != node:
        at -= 1
    return at


def _around(part: list[int], after: list[list[int]], part_of: list[int]) -> list[int]:
    """One way around within nodes that all reach each other, from the first of them."""
    start = min(part)
    came: dict[int, int] = {}
    pending = [start]
    for node in pending:
        for below in after[node]:
            if below == start:
                path = [node]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            if part_of[below] == part_of[start] and below not in came:
                came[below] = node
                pending.append(below)
    return sorted(part)


MAX_FINDINGS = 200
MAX_SHOWN = 10
MAX_DEPTH = 16
"""How deep workflows may call workflows."""


class Types(Protocol):
    """Which types of nodes there are besides the built-in kinds."""

    def slots(self, node_type: str) -> Slots | None:
        """The slots of a type, or None for one that is not known."""
        ...

    def names(self) -> Iterable[str]:
        """All names of types, for suggestions."""
        ...

    def called(self, node_type: str) -> str:
        """The id of the workflow that a type calls; empty for any other type."""
        ...

    def calls_of(self, workflow_id: str) -> Iterable[str]:
        """The ids of the workflows that a workflow calls."""
        ...

    def judges(self, node_type: str) -> bool:
        """Whether it is a fault that a type is not known: it is none where another engine may know it."""
        ...

    def comes_later(self, node_type: str) -> bool:
        """Whether a type that is not known may be registered by a host before the graph is run."""
        ...


class Unknown:
    """Nothing is known of types besides the built-in kinds."""

    def slots(self, node_type: str) -> Slots | None:
        """None."""
        return None

    def names(self) -> Iterable[str]:
        """None."""
        return ()

    def called(self, node_type: str) -> str:
        """Not known."""
        return ""

    def calls_of(self, workflow_id: str) -> Iterable[str]:
        """Not known."""
        return ()

    def judges(self, node_type: str) -> bool:
        """No."""
        return False

    def comes_later(self, node_type: str) -> bool:
        """No."""
        return False


class About(msgspec.Struct, frozen=True):
    """What a finding is about: a node, an edge, an output mapping or an input mapping by number, or a part of the interface by name."""

    what: Literal["node", "edge", "input", "output", "outputMapping", "inputMapping"]
    index: int = 0
    name: str = ""
    part: str = ""


class GraphFinding(msgspec.Struct, frozen=True):
    """One fault of a graph."""

    code: str
    about: About
    args: dict[str, str | int] = {}
    suggestion: str | None = None


class _Check:
    """One look at a graph."""

    def __init__(self, workflow: Workflow, types: Types) -> None:
        self.workflow = workflow
        self.types = types
        self.nodes: tuple[Node, ...] = workflow.nodes or ()
        self.found: list[GraphFinding] = []
        self.index: dict[str, int] = {}
        self.slots: list[Slots | None] = []
        self.taken: list[set[str]] = [set() for _ in self.nodes]
        self._known: dict[str, Slots | None] = {}

    def add(self, code: str, about: About, suggestion: str | None = None, /, **args: str | int) -> None:
        if len(self.found) < MAX_FINDINGS:
            self.found.append(GraphFinding(code, about, args, suggestion))

    def type_slots(self, name: str) -> Slots | None:
        if name not in self._known:
            self._known[name] = self.types.slots(name)
        return self._known[name]

    # nodes

    def look_at_nodes(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.id in self.index:
                self.add("WF906", About("node", number, part="id"), id=node.id)
            elif node.id:
                self.index[node.id] = number
            self.slots.append(self._slots(number, node))

    def _slots(self, number: int, node: Node) -> Slots | None:
        kind = kind_of_node(node.type)
        if not kind:
            return self._tool_slots(number, node.type, "type")
        fault = config_fault(kind, node)
        if fault:
            self.add("WF919", About("node", number, part="config"), id=node.id, type=node.type, reason=fault)
            return None
        if kind == "map":
            return self._map_slots(number, node)
        return kind_slots(kind, node, self.workflow)

    def _tool_slots(self, number: int, name: str, part: str) -> Slots | None:
        slots = self.type_slots(name) if name else None
        if slots is None and name and self.types.judges(name):
            near = best(name, [*KINDS, *self.types.names()])
            code = "WF926" if self.types.comes_later(name) else "WF905"
            self.add(code, About("node", number, part=part), near, v=name, hint=hint(near))
        return slots

    def _map_slots(self, number: int, node: Node) -> Slots | None:
        """The slots of a ``map``: its list, and what else its inner node takes."""
        inner = inner_node(node)
        kind = kind_of_node(inner.type)
        fault = config_fault(kind, inner) if kind else ""
        if fault:
            self.add("WF919", About("node", number, part="config"), id=node.id, type=node.type, reason=fault)
            return None
        own = kind_slots("map", node)
        below = kind_slots(kind, inner) if kind else self._tool_slots(number, inner.type, "config")
        if below is None:
            return own
        taken = item_slot(node, below)
        if taken not in below.inputs and not below.open_inputs:
            self._no_slot(About("node", number, part="config"), inner.type, "input", taken, below.inputs)
        more = {
            name: slot
            for name, slot in below.inputs.items()
            if name != taken and name not in inner.inputs and name != "items"
        }
        return Slots({**own.inputs, **more}, own.outputs, open_inputs=below.open_inputs)

    def _no_slot(self, about: About, node_type: str, side: str, name: str, known: dict[str, Slot]) -> None:
        near = best(name, known)
        self.add("WF908", about, near, type=node_type, side=side, v=name, hint=hint(near))

    # what leads where

    def slot(self, place: Place, side: Literal["input", "output"], about: Callable[[str], About]) -> Slot | None:
        """The slot of a place, which is reported when it is none; None also where nothing is known of it."""
        number = self.index.get(place.node)
        if number is None:
            if place.node:
                near = best(place.node, self.index) or short_for(place.node, self.index)
                self.add("WF907", about("node"), near, v=place.node, hint=hint(near))
            return None
        slots = self.slots[number]
        if slots is None or not place.slot:
            return None
        known, is_open = (slots.inputs, slots.open_inputs) if side == "input" else (slots.outputs, slots.open_outputs)
        slot = known.get(place.slot)
        if slot is None and not is_open:
            self._no_slot(about("slot"), self.nodes[number].type, side, place.slot, known)
        return slot

    def take(self, place: Place, about: About) -> None:
        number = self.index.get(place.node)
        if number is None or not place.slot:
            return
        if place.slot in self.taken[number]:
            self.add("WF915", about, p=place.slot, id=place.node)
        self.taken[number].add(place.slot)

    def look_at_edges(self) -> None:
        for number, edge in enumerate(self.workflow.edges):
            source = self.slot(edge.source, "output", lambda part, n=number: About("edge", n, "source", part))
            target = self.slot(edge.target, "input", lambda part, n=number: About("edge", n, "target", part))
            self.take(edge.target, About("edge", number, "target", "slot"))
            self._fit(source, target, edge.source, edge.target, About("edge", number, "target", "slot"))
        for number, (name, place) in enumerate(self.workflow.input_mappings):
            about = About("inputMapping", number, name)
            target = self.slot(place, "input", lambda part, n=number, of=name: About("inputMapping", n, of, part))
            self.take(place, about)
            self._fit(self.workflow.inputs.get(name), target, Place(name, name), place, about)
        for name, place in self.workflow.output_mappings.items():
            about = About("outputMapping", name=name)
            source = self.slot(place, "output", lambda part, of=name: About("outputMapping", name=of, part=part))
            declared = self.workflow.outputs.get(name)
            self._fit(
                source, None if declared is None or declared.is_stream else declared, place, Place(name, name), about
            )

    def _fit(self, source: Slot | None, target: Slot | None, a: Place, b: Place, about: About) -> None:
        if source is not None and target is not None and not connects(source.type, target.type):
            named = {"a": f"{a.node}.{a.slot}", "b": f"{b.node}.{b.slot}"}
            self.add("WF909", about, source=source.type, target=target.type, **named)

    def look_at_handlers(self) -> None:
        """Where failures lead: to a node that is there, which then has the error."""
        for number, node in enumerate(self.nodes):
            kind = kind_of_node(node.type)
            if kind == "condition" and is_object(node.on_error) and "value" in node.on_error:
                reason = "onError.value does not say which branch it takes; lead to a node with goto"
                self.add("WF919", About("node", number, part="onError"), id=node.id, type=node.type, reason=reason)
            if not node.handler:
                continue
            about = About("node", number, part="onError")
            target = self.index.get(node.handler)
            if target is None:
                self.slot(Place(node.handler, ERROR), "input", lambda _part, of=about: of)
            elif kind_of_node(self.nodes[target].type) == "input":
                reason = f"'{node.handler}' stands for the workflow's inputs, and cannot be led to"
                self.add("WF919", about, id=node.id, type=node.type, reason=reason)
            else:
                # several nodes may share one handler
                self.taken[target].add(ERROR)

    def look_at_inputs(self) -> None:
        for number, node in enumerate(self.nodes):
            slots = self.slots[number]
            if slots is None or self.index.get(node.id) != number:
                continue
            for name, slot in slots.inputs.items():
                if slot.required and name not in node.inputs and name not in self.taken[number]:
                    self.add("WF911", About("node", number, part="id"), id=node.id, type=node.type, p=name)
            for name, value in node.inputs.items():
                slot = slots.inputs.get(name)
                if slot is None and not slots.open_inputs:
                    self._no_slot(About("node", number, name, "inputs"), node.type, "input", name, slots.inputs)
                # texts are coerced by the tool's schema, as those of any call
                elif slot is not None and not isinstance(value, str) and not fits(value, slot.type):
                    if slot.type == "STRING" and isinstance(value, int | float):
                        continue
                    reason = f"the value is no {slot.type}"
                    self.add("WF917", About("node", number, name, "inputs"), id=node.id, p=name, reason=reason)

    # the interface

    def look_at_interface(self) -> None:
        mapped = output_mappings(self.workflow)
        for name in self.workflow.outputs:
            if name not in mapped:
                self.add("WF913", About("output", name=name), p=name)
        starts = {node.id for node in self.nodes if kind_of_node(node.type) == "input"}
        used = {name for name, _ in self.workflow.input_mappings}
        used |= {edge.source.slot for edge in self.workflow.edges if edge.source.node in starts}
        for name in self.workflow.inputs:
            if name not in used:
                self.add("WF914", About("input", name=name), p=name)
        self._dead(mapped)

    def _dead(self, mapped: dict[str, Place]) -> None:
        if not self.workflow.outputs:
            return
        before: dict[int, list[int]] = {}
        for edge in self.workflow.edges:
            source, target = self.index.get(edge.source.node), self.index.get(edge.target.node)
            if source is not None and target is not None:
                before.setdefault(target, []).append(source)
        for number, node in enumerate(self.nodes):
            if (handler := self.index.get(node.handler)) is not None:
                before.setdefault(handler, []).append(number)
        ends = [place.node for place in mapped.values()]
        ends += [node.id for node in self.nodes if kind_of_node(node.type) == "output"]
        pending = [self.index[name] for name in dict.fromkeys(ends) if name in self.index]
        alive = set(pending)
        while pending:
            for number in before.get(pending.pop(), ()):
                if number not in alive:
                    alive.add(number)
                    pending.append(number)
        for number, node in enumerate(self.nodes):
            if number not in alive and node.id and kind_of_node(node.type) != "input":
                self.add("WF912", About("node", number, part="id"), id=node.id)

    # circles

    def look_for_circles(self) -> None:
        after: list[list[int]] = [[] for _ in self.nodes]
        for edge in self.workflow.edges:
            source, target = self.index.get(edge.source.node), self.index.get(edge.target.node)
            if source is not None and target is not None:
                after[source].append(target)
        for number, node in enumerate(self.nodes):
            if (handler := self.index.get(node.handler)) is not None:
                after[number].append(handler)
        for circle in circles(after):
            names = [self.nodes[number].id for number in circle]
            self.add("WF910", About("node", circle[0], part="id"), list=_chain(names))

    def look_for_recursion(self) -> None:
        own = self.workflow.workflow_id
        for number, node in enumerate(self.nodes):
            is_map = kind_of_node(node.type) == "map"
            called = self.types.called(inner_node(node).type if is_map else node.type)
            path = _way(called, own, self.types) if called else []
            if path:
                part = "config" if is_map else "type"
                self.add("WF916", About("node", number, part=part), list=_chain([own, *path]))


def check_graph(workflow: Workflow, types: Types | None = None) -> list[GraphFinding]:
    """The faults of a workflow's graph, at most 200; none where the file has only an interface. Never raises."""
    if workflow.nodes is None:
        return []
    check = _Check(workflow, types or Unknown())
    check.look_at_nodes()
    check.look_at_edges()
    check.look_at_handlers()
    check.look_at_inputs()
    check.look_at_interface()
    check.look_for_circles()
    check.look_for_recursion()
    return check.found


def called_types(workflow: Workflow) -> list[str]:
    """The types of the nodes that a workflow runs besides the built-in kinds, each once."""
    names: dict[str, None] = {}
    for node in workflow.nodes or ():
        kind = kind_of_node(node.type)
        name = inner_node(node).type if kind == "map" else node.type if not kind else ""
        if name and not kind_of_node(name):
            names[name] = None
    return list(names)


def _chain(names: list[str]) -> str:
    shown = names[:MAX_SHOWN]
    more = f", … ({len(names)} in all)" if len(names) > MAX_SHOWN else ""
    return " → ".join(f"'{name}'" for name in shown) + more


def _way(start: str, goal: str, types: Types) -> list[str]:
    """The workflows on the way from one to another by their calls, both ends included; empty when there is none."""
    came: dict[str, str] = {start: ""}
    pending = [start]
    while pending:
        here = pending.pop()
        if here == goal:
            path = [here]
            while came[path[-1]]:
                path.append(came[path[-1]])
            return path[::-1]
        for below in types.calls_of(here):
            if below not in came:
                came[below] = here
                pending.append(below)
    return []


# Graph findings as diagnostics at the exact key or value of the file.


def findings_at(graph_findings: Iterable[GraphFinding], tree: JsonTree) -> list[Diag]:
    """Graph findings as diagnostics at the exact value or key of the file."""
    diags: list[Diag] = []
    for graph_finding in graph_findings:
        span, is_value = _span(graph_finding.about, tree)
        fix = None
        if graph_finding.suggestion is not None and is_value:
            fix = Fix(
                f"Replace by '{graph_finding.suggestion}'",
                (Edit(span[0], span[1], quoted(graph_finding.suggestion)),),
                "unsafe",
            )
        data = {"suggestion": graph_finding.suggestion} if graph_finding.suggestion is not None else {}
        diags.append(Diag(graph_finding.code, span, dict(graph_finding.args), fix=fix, data=dict(data)))
    return diags


def _span(about: About, tree: JsonTree) -> tuple[Span, bool]:
    """Where something stands, and whether that is a text which a better one can replace."""
    if about.what in ("input", "output"):
        side: Literal["input", "output"] = "input" if about.what == "input" else "output"
        return tree.key_span(interface_pointer(tree, side, about.name)) or _start(tree), False
    if about.what == "node" and about.part == "inputs":
        pointer = f"{node_pointer(tree, about.index, 'inputs')}/{escape_pointer(about.name)}"
        return tree.key_span(pointer) or _start(tree), False
    if about.what == "node" and about.part == "config":
        base = node_pointer(tree, about.index, "config")
        node = tree.node_at(base + "/type") or tree.node_at(base)
    elif about.what == "node":
        base = node_pointer(tree, about.index, about.part)
        node = (tree.node_at(base + "/goto") if about.part == "onError" else None) or tree.node_at(base)
    elif about.what == "edge":
        side_of: Literal["source", "target"] = "source" if about.name == "source" else "target"
        part: Literal["node", "slot"] = "slot" if about.part == "slot" else "node"
        node = tree.node_at(edge_pointer(tree, about.index, side_of, part))
    else:
        group = "interfaceInputMappings" if about.what == "inputMapping" else "outputInterfaceMappings"
        return tree.key_span(f"/{group}/{escape_pointer(about.name)}") or _start(tree), False
    if node is None:
        return _start(tree), False
    if node.kind in ("object", "array"):
        return (node.start, min(node.end, node.start + 1)), False
    return node.span, node.kind == "string"


def _start(tree: JsonTree) -> Span:
    root = tree.root
    return (0, 0) if root is None else (root.start, min(root.end, root.start + 1))
