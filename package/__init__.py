"""Tamis: a language server and sandboxed runner for agent tools.

The version is a constant: reading package metadata at start-up costs more than the whole command line. ``parse`` and ``check`` are the pure
library in this process, without a daemon (docs/scale.md); ``tool`` makes a tool of a Python function (docs/client.md). They are loaded when
they are asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's; typing itself would be most of what this import costs
if TYPE_CHECKING:
    from typing import Any

    from tamis.client.functions import tool as tool
    from tamis.protocols import api as _api
    from tamis.protocols.api import check as check

    parse = _api.read

__version__ = "0.1.0"
_NAMES = {"check": "protocols.api:check", "parse": "protocols.api:read", "tool": "client.functions:tool"}
"""Names for other programs, and where they are."""


def __getattr__(name: str) -> Any:
    place = _NAMES.get(name)
    if place is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    module, _, own = place.partition(":")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), own)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
