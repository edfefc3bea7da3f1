"""What a written name of a tool can mean beside the name itself: ``id@range``, in VCP ``toolId_methodName`` (rulings 30, 35), and an exported name.

The one rule that the registry, which resolves calls, and the index of a workspace, which finds them in texts, both keep: exact names first,
then a pinned version, then for VCP the method with the longest name in front, then the name that an export gave, and never a neighbour
(ruling 3, F25). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tamis.protocols.export.names import Target, portable_name, portable_names

_FORMS: tuple[Target, ...] = ("openai", "gemini")
"""The forms whose names differ; the others name tools as the first does."""


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
    found = list(heads)
    length = max((len(head) for head, _ in found), default=0)
    return tuple(sorted({tool_id for head, tool_id in found if len(head) == length}))


def plain_spellings(tool_id: str) -> tuple[str, ...]:
    """What an export calls a tool where no other is in the way, without the id itself."""
    return tuple(name for form in _FORMS if (name := portable_name(tool_id, form)) != tool_id)


def exported_spellings(tool_ids: Iterable[str], owned: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What exports call these tools: by name the ids that it may stand for. Several ids that meet in one name share it (F25), and each
    has the number that its export gave it as well. ``owned``: see ``portable_names``."""
    ids = list(tool_ids)
    found: dict[str, set[str]] = {}
    for form in _FORMS:
        for tool_id, name in portable_names(ids, form, owned).items():
            found.setdefault(name, set()).add(tool_id)
    for tool_id in ids:
        for name in plain_spellings(tool_id):
            if owned.get(name, tool_id) == tool_id:
                found.setdefault(name, set()).add(tool_id)
    return {name: tuple(sorted(meant)) for name, meant in found.items() if meant != {name}}
