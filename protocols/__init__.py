"""Text to structure and back: calls, manifests, schemas, observations.

This room is pure. It never reads a file, starts a process, looks at a clock or knows LSP; see ARCHITECTURE.md. For other programs
``read``, ``check``, ``make_reader`` and ``count`` are stable (docs/scale.md); they are loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.protocols.api import Reader as Reader
    from tamis.protocols.api import check as check
    from tamis.protocols.api import make_reader as make_reader
    from tamis.protocols.api import read as read
    from tamis.protocols.counts import Counts as Counts
    from tamis.protocols.counts import count as count

_STABLE = {"Counts": "counts", "Reader": "api", "check": "api", "count": "counts", "make_reader": "api", "read": "api"}
"""The names and the modules that they are in."""


def __getattr__(name: str) -> Any:
    module = _STABLE.get(name)
    if module is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_STABLE})
