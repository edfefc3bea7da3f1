"""Versions and ranges of them: ``1.2.0``, ``^1.2``, ``~1.2.3``, ``>=1.0 <2``, ``1.x``, ``1.0 - 1.4``, ``^1 || ^3``, ``*``.

Precedence is SemVer 2.0's (§11). Ranges are those of npm's semver, the ones that ``^`` and ``~`` are known from, with its rule for
pre-releases: a range holds one only where it names one of the same release. Used to resolve ``id@range`` and dependencies between tools
(D90, D91, ruling 35). Pure; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from tamis.protocols.export.names import DIFFERENT, Target, names_in_turn, portable_name
from tamis.protocols.patterns import lazy

MAX_CHARS = 256
"""Of a version or a range; longer ones are read as no version, and hold nothing."""

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
_PART = r"\d+|[xX*]"
_COMPARATOR = lazy(
    rf"(\^|~|>=|<=|>|<|=)?\s*v?({_PART})(?:\.({_PART}))?(?:\.({_PART}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)
_HYPHEN = lazy(r"(\S+)\s+-\s+(\S+)")
_BETWEEN = lazy(r"[\s,]+")
ANY = ("", "*", "latest")
"""Ranges that hold every version; resolving one takes a release where there is any."""

Identifiers = tuple[tuple[int, int, str], ...]
Key = tuple[int, int, int, int, Identifiers]
_Comparator = tuple[Key, "Key | None"]
_Alternative = tuple[tuple[_Comparator, ...], frozenset[tuple[int, int, int]]]


@lru_cache(maxsize=4_096)
def version_key(text: str) -> Key:
    """A sort key; versions that are no SemVer sort below all others, by their text. Build data counts for nothing."""
    match = _VERSION.fullmatch(text.strip()) if len(text) <= MAX_CHARS else None
    if match is None:
        return (-1, 0, 0, 0, ((1, 0, text),))
    major, minor, patch, pre = match.groups()
    # A pre-release sorts before its release.
    return (int(major), int(minor or 0), int(patch or 0), 0 if pre else 1, _identifiers(pre))


def is_release(version: str) -> bool:
    """Whether a version is one that is taken without being asked for: neither a pre-release nor a text that is no version."""
    key = version_key(version)
    return key[0] >= 0 and key[3] == 1


def newest_first(versions: Iterable[str]) -> list[str]:
    """Versions by precedence; those of equal precedence by their text, so that no order of files decides."""
    return sorted(versions, key=lambda version: (version_key(version), version), reverse=True)


def pick(versions: Iterable[str], wanted: str | None = None) -> str | None:
    """The version that a call gets: of those in the range the newest; without a range the newest release, where there is one."""
    ordered = newest_first(versions)
    if wanted is None or wanted.strip() in ANY:
        return next((version for version in ordered if is_release(version)), ordered[0] if ordered else None)
    return next((version for version in ordered if satisfies(version, wanted)), None)


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is in a range. An exact text always matches itself; an unreadable range matches nothing else."""
    if version == wanted or wanted.strip() in ANY:
        return True
    alternatives = _read(wanted)
    if alternatives is None:
        return False
    key = version_key(version)
    if key[0] < 0:
        return False
    return any(_within(key, alternative) for alternative in alternatives)


def is_range(text: str) -> bool:
    """Whether a text can be read as a range."""
    return text.strip() in ANY or _read(text) is not None


def _within(key: Key, alternative: _Alternative) -> bool:
    comparators, named = alternative
    if key[3] == 0 and key[:3] not in named:
        # Who wrote `^1.0.0` did not ask for `1.4.0-beta`; who wrote `>=1.4.0-alpha` did.
        return False
    return all(low <= key and (high is None or key < high) for low, high in comparators)


@lru_cache(maxsize=1_024)
def _read(text: str) -> tuple[_Alternative, ...] | None:
    """A range as alternatives of comparators, each half-open; None for what is none."""
    if len(text) > MAX_CHARS:
        return None
    read = [_alternative(part.strip()) for part in text.split("||")]
    alternatives = tuple(alternative for alternative in read if alternative is not None)
    return alternatives if len(alternatives) == len(read) else None


def _alternative(text: str) -> _Alternative | None:
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        words = [f">={hyphen.group(1)}", f"<={hyphen.group(2)}"]
        if any(word[2:3] in "^~<>=" for word in words):
            return None
    else:
        words = [word for word in _BETWEEN.split(re.sub(r"([~^<>=])\s+", r"\1", text)) if word]
    comparators: list[_Comparator] = []
    named: set[tuple[int, int, int]] = set()
    for word in words:
        match = _COMPARATOR.fullmatch(word)
        if match is None:
            return None
        operator, *parts, pre = match.groups()
        numbers = _given(parts)
        if pre and len(numbers) < 3:
            return None
        if pre:
            named.add((numbers[0], numbers[1], numbers[2]))
        comparators.append(_bounds(operator or "", numbers, pre))
    return (tuple(comparators), frozenset(named)) if comparators else None


def _given(parts: list[str | None]) -> list[int]:
    """The numbers of a version up to the first that is missing or ``x``: ``1.x.3`` says no more than ``1``."""
    numbers: list[int] = []
    for part in parts:
        if part is None or not part.isdigit():
            break
        numbers.append(int(part))
    return numbers


def _identifiers(pre: str | None) -> Identifiers:
    if not pre:
        return ()
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split("."))


def _below(major: int, minor: int, patch: int) -> Key:
    """Below every pre-release of a version too."""
    return (major, minor, patch, 0, ())


_LOWEST = _below(0, 0, 0)
_NOTHING = (_below(1, 0, 0), _LOWEST)


def _bounds(operator: str, numbers: list[int], pre: str | None) -> _Comparator:
    """What a comparator holds: at least the first, below the second."""
    if not numbers:
        return _NOTHING if operator in ("<", ">") else (_LOWEST, None)
    major, minor, patch = [*numbers, 0, 0][:3]
    exact: Key = (major, minor, patch, 0 if pre else 1, _identifiers(pre))
    start = exact if len(numbers) == 3 else _below(major, minor, patch)
    above = _above(exact, numbers)
    if operator == "^":
        if major or len(numbers) == 1:
            return start, _below(major + 1, 0, 0)
        return start, _below(0, minor + 1, 0) if minor or len(numbers) == 2 else _below(0, 0, patch + 1)
    if operator == "~":
        return start, _below(major + 1, 0, 0) if len(numbers) == 1 else _below(major, minor + 1, 0)
    if operator == ">=":
        return start, None
    if operator == ">":
        return above, None
    if operator == "<":
        return _LOWEST, start
    if operator == "<=":
        return _LOWEST, above
    return start, above


def _above(exact: Key, numbers: list[int]) -> Key:
    """The first that is above all that a version, or the part of one, stands for."""
    if len(numbers) == 1:
        return _below(numbers[0] + 1, 0, 0)
    if len(numbers) == 2:
        return _below(numbers[0], numbers[1] + 1, 0)
    # Longer than the version itself, and shorter than anything that sorts behind it.
    return (*exact[:4], (*exact[4], (-1, 0, "")))


# What a written name of a tool can mean beside the name itself: ``id@range``, in VCP ``toolId_methodName`` (rulings 30, 35), and an exported name.
# The one rule that the registry, which resolves calls, and the index of a workspace, which finds them in texts, both keep: exact names first, then a
# pinned version, then for VCP the method with the longest name in front, then the name that an export gave, and never a neighbour (ruling 3, F25).
# Pure.


_FORMS: tuple[Target, ...] = ("openai", "gemini")
"""The forms in which few ids meet in one name: a tool is known by it also where its export had to number it."""


def split_pin(name: str) -> tuple[str, str] | None:
    """The name and the version of ``id@range``; None where nothing is pinned. No id holds an ``@``."""
    head, at, version = name.partition("@")
    return (head, version) if at and head else None


def method_spellings(tool_id: str, service: str, method: str, names: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """How VCP may write a method, each with what stands in front: the tool's names or the name of its service (V45)."""
    for head in dict.fromkeys((tool_id, *names, service)):
        if head and method:
            yield f"{head}_{method}", head


def longest(heads: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Of all (head, tool id) that spell one name, the ids that the longest head leads to; several: the name says too little."""
    candidates = list(heads)
    length = max((len(head) for head, _ in candidates), default=0)
    return tuple(sorted({tool_id for head, tool_id in candidates if len(head) == length}))


def plain_spellings(tool_id: str) -> tuple[str, ...]:
    """What an export calls a tool where no other is in the way, without the id itself."""
    return tuple(name for form in _FORMS if (name := portable_name(tool_id, form)) != tool_id)


def exported_spellings(tool_ids: Iterable[str], owned: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What exports call these tools: by name the ids that it may stand for. Several ids that meet in one name share it (F25), and each
    has the number that its export gave it as well. ``owned``: see ``portable_names``."""
    ids = sorted(set(tool_ids))
    by_name: dict[str, set[str]] = {}
    for names in names_in_turn(ids, DIFFERENT, owned, {}):
        for tool_id, name in names.items():
            by_name.setdefault(name, set()).add(tool_id)
    for tool_id in ids:
        for name in plain_spellings(tool_id):
            if owned.get(name, tool_id) == tool_id:
                by_name.setdefault(name, set()).add(tool_id)
    return {name: tuple(sorted(meant)) for name, meant in by_name.items() if meant != {name}}


# What tools need of each other (``dependencies: {toolId: range}``, D91): gaps, versions that do not fit, circles. Looks at names and versions alone.
# Which tools there are is given; whoever asks decides what a fault leads to: the registry makes the tool unavailable, an editor shows it on the
# entry. Pure.


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
    by_node: dict[Node, dict[str, str]] = {}
    for node, targets in edges.items():
        knot = members[component[node]]
        for target in targets:
            if component.get(target) == component[node]:
                large = len(knot) > MAX_TRACED
                words = _knot(knot) if large else _words([node, *_way(target, node, edges, component)])
                by_node.setdefault(node, {})[target[0]] = words
    return by_node


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
