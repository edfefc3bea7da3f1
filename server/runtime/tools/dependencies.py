"""What tools need of each other (``dependencies: {toolId: range}``, D91): gaps, versions that do not fit, circles.

Looks at names and versions alone. Which tools there are is given; whoever asks decides what a fault leads to: the registry makes the tool
unavailable, an editor shows it on the entry. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from tamis.server.runtime.tools.versions import pick

Kind = Literal["missing", "version", "cycle"]
MAX_SHOWN = 8
"""Members of a circle that are named; versions likewise."""

MAX_TRACED = 64
"""Tools that lead to each other, of which each circle is shown; of more only that they do."""

Node = tuple[str, str]
"""A tool's id and version."""
Find = Callable[[str], tuple[str, Sequence[str]] | None]
"""The id that a name stands for with its registered versions; None for a name that nobody has."""


class DependencyFault(msgspec.Struct, frozen=True):
    """One entry of ``dependencies`` that does not hold."""

    name: str
    """The entry's key, as it is written."""
    wanted: str
    kind: Kind
    detail: str
    """The versions that there are; of a circle its members in order."""

    @property
    def text(self) -> str:
        """Cause and remedy as the end of a sentence about the tool."""
        if self.kind == "missing":
            return f"it depends on '{self.name}', which is not registered; add that tool or take the entry out"
        if self.kind == "version":
            return f"it depends on '{self.name}' {self.wanted}, but there is {self.detail}; widen the range or add a version"
        return f"it depends on itself: {self.detail}; take one of these entries out"


def faults_of(
    node: Node, dependencies: Mapping[str, str], find: Find, circle: Mapping[str, str]
) -> list[DependencyFault]:
    """The faults of one tool's entries, in their order. ``circle``: the ids that lead back to it, each with the way as words."""
    dependency_faults: list[DependencyFault] = []
    for name, wanted in dependencies.items():
        there = find(name)
        if there is None:
            dependency_faults.append(DependencyFault(name, wanted, "missing", ""))
            continue
        tool_id, versions = there
        if pick(versions, wanted) is None:
            dependency_faults.append(DependencyFault(name, wanted, "version", ", ".join(versions[:MAX_SHOWN])))
        elif tool_id in circle:
            dependency_faults.append(DependencyFault(name, wanted, "cycle", circle[tool_id]))
    return dependency_faults


def edges_of(dependencies: Mapping[str, str], find: Find) -> list[tuple[str, Node]]:
    """What the entries of a tool lead to: the ids with the version that each entry gets; faulty entries lead nowhere."""
    edges: list[tuple[str, Node]] = []
    for name, wanted in dependencies.items():
        there = find(name)
        version = None if there is None else pick(there[1], wanted)
        if there is not None and version is not None:
            edges.append((there[0], (there[0], version)))
    return edges


def circles(edges: Mapping[Node, Sequence[Node]]) -> dict[Node, dict[str, str]]:
    """For every tool on a circle: the ids of its dependencies that lead back to it, each with the circle in words.

    Tarjan's components without recursion: a chain of ten thousand tools is no reason to fail. Of a large knot only the members are named.
    """
    component = _components(edges)
    members: dict[int, list[Node]] = {}
    for node in edges:
        members.setdefault(component[node], []).append(node)
    found: dict[Node, dict[str, str]] = {}
    for node, targets in edges.items():
        knot = members[component[node]]
        for target in targets:
            if component.get(target) == component[node]:
                large = len(knot) > MAX_TRACED
                words = _knot(knot) if large else _words([node, *_way(target, node, edges, component)])
                found.setdefault(node, {})[target[0]] = words
    return found


def _components(edges: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """Each tool's strongly connected component; a tool alone has one of its own, so that only a real circle joins two."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on: set[Node] = set()
    component: dict[Node, int] = {}
    for start in edges:
        if start in index:
            continue
        work: list[tuple[Node, int]] = [(start, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on.add(node)
            targets = edges.get(node, ())
            for number in range(at, len(targets)):
                target = targets[number]
                if target not in index:
                    work.append((node, number + 1))
                    work.append((target, 0))
                    break
                if target in on:
                    low[node] = min(low[node], index[target])
            else:
                if low[node] == index[node]:
                    while True:
                        member = stack.pop()
                        on.discard(member)
                        component[member] = index[node]
                        if member == node:
                            break
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
    return component


def _way(start: Node, end: Node, edges: Mapping[Node, Sequence[Node]], component: Mapping[Node, int]) -> list[Node]:
    """The shortest way from one tool to another of its component, both included."""
    before: dict[Node, Node | None] = {start: None}
    queue = [start]
    for node in queue:
        if node == end:
            break
        for target in edges.get(node, ()):
            if target not in before and component.get(target) == component[end]:
                before[target] = node
                queue.append(target)
    way: list[Node] = []
    at: Node | None = end
    while at is not None:
        way.append(at)
        at = before[at]
    return way[::-1]


def _knot(knot: list[Node]) -> str:
    return f"{len(knot)} tools lead to each other, {', '.join(tool_id for tool_id, _ in knot[:MAX_SHOWN])} …"


def _words(way: Sequence[Node]) -> str:
    names = [tool_id for tool_id, _ in way]
    if len(names) > MAX_SHOWN + 1:
        names = [*names[:MAX_SHOWN], "…", names[-1]]
    return " → ".join(names)
