"""The protocols that are known, by id: the built-in ones, and what an entry point brought.

A protocol that is registered can be asked for by its id; ``auto`` reads the built-in ones and those that ``ReadOptions.also``
names, so that installing a package never changes what is run. Must not look for entry points (``server/runtime``
does), and knows no tools.
"""

from __future__ import annotations

import re

from tamis.protocols.action.protocol import ACTION
from tamis.protocols.base import CallProtocol
from tamis.protocols.tam.protocol import TAM
from tamis.protocols.vcp.protocol import VCP

BUILT_IN = ("action", "tam", "vcp")
"""Read by ``auto``, in the order in which their openers are tried; ``json`` besides, where a text is nothing but call JSON."""

_known: dict[str, CallProtocol] = {"action": ACTION, "tam": TAM, "vcp": VCP}
_ID = re.compile(r"[a-z][a-z0-9]{0,31}")


def register(protocol: CallProtocol) -> None:
    """Makes a protocol known by its id.

    Raises ``ValueError`` when the id is not of lower-case letters and digits, or belongs to another protocol.
    """
    name = protocol.id
    if _ID.fullmatch(name) is None or name == "auto":
        raise ValueError(f"protocol id {name!r} is not of lower-case letters and digits")
    if _known.setdefault(name, protocol) is not protocol:
        raise ValueError(f"there is a protocol {name!r} already")


def find_protocol(name: str) -> CallProtocol | None:
    """The protocol of that id, or None."""
    if name == "json" and name not in _known:
        # Few texts are call JSON; what reads it is loaded with the first.
        from tamis.protocols.calljson.protocol import JSON

        register(JSON)
    return _known.get(name)


SHIPPED = (*BUILT_IN, "json", "hermes")
"""The ids of the protocols that come with this package, whether or not they were asked for yet."""


def known_protocols() -> tuple[str, ...]:
    """The ids of all protocols that are known, the built-in ones first."""
    return tuple(dict.fromkeys((*BUILT_IN, "json", *_known)))
