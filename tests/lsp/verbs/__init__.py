"""What a marker file can ask, one module for each verb, found by looking into this folder.

A module has:

- ``MARK``: the name of its mark ``⟦name⟧`` or ``⟦name:argument⟧``; or ``ASK``: a word for the list ``ask`` of the file's options, for
  verbs that are asked of a whole document.
- ``through_core(core, name, mark)`` and ``through_wire(wire, name, mark)``: the lines that show the answer of the analyses, and of
  the server; ``mark`` is None for ``ASK``. Both must give the same lines, so both should end in one function that renders.
- optionally ``CAPABILITIES``: what the client declares for it.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, Protocol

from tests.lsp.markers import Core, Mark, Wire


class Verb(Protocol):
    """A module of this folder."""

    MARK: str
    ASK: str
    CAPABILITIES: dict[str, Any]
    through_core: Callable[[Core, str, Mark | None], list[str]]
    through_wire: Callable[[Wire, str, Mark | None], list[str]]


_MODULES: list[Any] = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
MARKS: dict[str, Verb] = {module.MARK: module for module in _MODULES if hasattr(module, "MARK")}
ASKS: dict[str, Verb] = {module.ASK: module for module in _MODULES if hasattr(module, "ASK")}


def capabilities() -> dict[str, Any]:
    """What a client declares that can do everything which the verbs ask."""
    merged: dict[str, Any] = {}
    for module in _MODULES:
        _merge(merged, getattr(module, "CAPABILITIES", {}))
    return merged


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = copy.deepcopy(value)
