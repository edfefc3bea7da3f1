"""What installed packages bring by entry point: found by name, loaded once, held against the version of its interface.

An installation does not change while a process runs. Whatever is wrong with a package is a sentence, never a crash; only what is named is
loaded. Must not know what is brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.protocols.observation import plain

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MAX_WORDS = 2_000


class Brought(msgspec.Struct, frozen=True):
    """An object of a package; ``where`` names it and its package."""

    plugin: Any
    where: str


def names(group: str) -> list[str]:
    """What installed packages bring, in order; loads nothing."""
    return sorted({point.name for point in _points(group)})


def bring(group: str, name: str, what: str) -> Brought | str | None:
    """What a package brings under a name, or why it cannot be loaded; None when none brings it. ``what`` it is: ``the protocol``."""
    found = [point for point in _points(group) if point.name == name]
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        return f"two packages bring {what} '{name}': {' and '.join(map(_package, found))}; remove one"
    where = f"{what} '{name}' of {_package(found[0])}"
    try:
        return Brought(found[0].load(), where)
    except BaseException as error:
        # also SystemExit: no package ends the process
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            raise
        return f"{where} cannot be loaded: {words(error)}"


def fault(plugin: Any, api: int, named: str, name: str, methods: Sequence[str]) -> str:
    """What keeps an object from being what its entry point says: another version, another name (its attribute ``named``), lacking methods."""
    own = getattr(plugin, "api", None)
    if own != api:
        return f"it is written for version {own!r} of the interface, this Tamis has version {api}"
    if getattr(plugin, named, None) != name:
        return f"its {named} is {getattr(plugin, named, None)!r}"
    missing = [method for method in methods if not callable(getattr(plugin, method, None))]
    return f"it has no {' and no '.join(missing)}" if missing else ""


def words(error: BaseException) -> str:
    """An exception of somebody else's code, bounded and safe to show."""
    try:
        said = str(error)
    except Exception:
        said = "it has no words"
    return plain(f"{type(error).__name__}: {said[:MAX_WORDS]}")[:MAX_WORDS]


def _points(group: str) -> list[EntryPoint]:
    # looking at what is installed takes longer than reading a text
    from importlib.metadata import entry_points

    return list(entry_points(group=group))


def _package(point: EntryPoint) -> str:
    dist = getattr(point, "dist", None)
    return f"{dist.name} {dist.version}" if dist is not None else point.value
