"""Circles in a graph of numbers: which nodes wait for each other. Must not know what the nodes are."""

from __future__ import annotations


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
    found = [part for part in parts if len(part) > 1 or part[0] in after[part[0]]]
    return sorted((_around(part, after, part_of) for part in found), key=lambda circle: circle[0])


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
