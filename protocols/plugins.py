"""The protocols that are known, by id: those of this package, and what an entry point brought.

A protocol that is registered can be asked for by its id; ``auto`` reads the built-in ones and those that ``ReadOptions.also``
names, so that installing a package never changes what is run. A protocol stands on the reader, and the reader asks here for a
protocol: so one of this package is a row that names its object, as an entry point names a plug-in's, and is loaded when it is
first asked for. Must not look for entry points (``server/runtime`` does), and knows no tools.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tamis.protocols.base import CallProtocol, Extras

if TYPE_CHECKING:
    from tamis.protocols.editing import Editing

BUILT_IN: Final = ("action", "tam", "vcp")
"""Read by ``auto``, in the order in which their openers are tried; ``json`` besides, where a text is nothing but call JSON."""

OBJECTS = {
    "action": "tamis.protocols.action.protocol:ACTION",
    "tam": "tamis.protocols.tam.protocol:TAM",
    "vcp": "tamis.protocols.vcp.protocol:VCP",
    "hermes": "tamis.protocols.hermes.protocol:HERMES",
    "json": "tamis.protocols.calljson.protocol:JSON",
}
"""The protocols of this package: the module of each and its object there."""
DOCUMENTS: Final = ("json",)
"""Those whose calls are a whole text, which ``auto`` reads too."""
ALWAYS = (*BUILT_IN, *DOCUMENTS)
"""Those that need no registration; the others are found as a plug-in is."""

SHIPPED = tuple(OBJECTS)
"""The ids of the protocols that come with this package, whether or not they were asked for yet."""

_known: dict[str, CallProtocol] = {}
_ID = re.compile(r"[a-z][a-z0-9]{0,31}")


def register(protocol: CallProtocol) -> None:
    """Makes a protocol known by its id.

    Raises ``ValueError`` when the id is not of lower-case letters and digits, or belongs to another protocol.
    """
    name = protocol.id
    if _ID.fullmatch(name) is None or name == "auto":
        raise ValueError(f"protocol id {name!r} is not of lower-case letters and digits")
    if find_protocol(name) is None:
        _known.setdefault(name, protocol)
    if _known[name] is not protocol:
        raise ValueError(f"there is a protocol {name!r} already")


def find_protocol(name: str) -> CallProtocol | None:
    """The protocol of that id, or None."""
    protocol = _known.get(name)
    if protocol is None and name in ALWAYS:
        protocol = _known.setdefault(name, _object(name))
    return protocol


def _object(name: str) -> CallProtocol:
    module, _, attribute = OBJECTS[name].partition(":")
    return getattr(import_module(module), attribute)


_extras: dict[str, Extras] = {}
_NONE = Extras()


def extras_of(name: str) -> Extras:
    """What the protocol of that id brings besides reading and writing; of a plug-in, and of anything else, what holds for all."""
    extras = _extras.get(name)
    if extras is None and name in OBJECTS:
        protocol = _object(name)
        extras = _extras[name] = protocol if isinstance(protocol, Extras) else _NONE
    return extras or _NONE


_editings: dict[str, Editing] = {}


def editing_of(name: str) -> Editing:
    """How an editor serves the blocks of the protocol of that id."""
    editing = _editings.get(name)
    if editing is None:
        editing = extras_of(name).editing()
        if name in OBJECTS:
            _editings[name] = editing
    return editing


def know_shipped(name: str) -> None:
    """Makes a protocol of this package known that is otherwise found as a plug-in is; nothing for any other id."""
    if name in OBJECTS and find_protocol(name) is None:
        register(_object(name))


def known_protocols() -> tuple[str, ...]:
    """The ids of all protocols that are known, the built-in ones first."""
    return tuple(dict.fromkeys((*ALWAYS, *_known)))
