"""World state and private state (seed 000 §4.2): JSON documents in the store, one for the world and one for each agent.

The host writes the world's (``state/set``) and tools read it; an agent's private one is written by its own calls. Both outlive the
process, as far as the store's file can be used. Must not know faces.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from tamis.protocols.messages import StateChanged
from tamis.protocols.observation import plain
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure
from tamis.server.runtime.store.store import Store

T = TypeVar("T")

WORLD = "world"
MAX_STATE_BYTES = 1_048_576
"""So large may one document be as JSON."""
MAX_HOLDERS = 4_096
"""So many agents may have a private state below one root."""
MAX_DEPTH = 100
MAX_NAME_CHARS = 200


class StateError(ValueError):
    """Why a state cannot be read or changed, as a sentence for whoever asked."""


class Found(msgspec.Struct, frozen=True):
    """What stands at a path; ``nearest`` is how far the path leads when nothing does, ``names`` are what stands there."""

    found: bool
    value: Any = None
    nearest: str = ""
    names: tuple[str, ...] = ()


def private_to(agent_id: str) -> str:
    """The holder of an agent's private state; calls without an agent share one."""
    if len(agent_id) > MAX_NAME_CHARS:
        raise StateError(f"an agent's id has at most {MAX_NAME_CHARS} characters here")
    return f"agent:{agent_id}"


class States:
    """The documents of one root. Each change is one transaction, so that processes and calls beside each other lose nothing."""

    def __init__(self, store: Store, root: Path) -> None:
        self._store = store
        self._root = str(root)

    async def read(self, holder: str) -> dict[str, Any]:
        """A document; an empty one where nothing was ever written."""
        return await self._store.run(lambda rows: _document(rows, self._root, holder))

    async def change(self, holder: str, edit: Callable[[dict[str, Any]], T]) -> T:
        """Lets ``edit`` change the document in place, and keeps it. Raises ``StateError``, and what ``edit`` raises; then nothing is changed."""

        def work(rows: sqlite3.Connection) -> T:
            document = _document(rows, self._root, holder)
            result = edit(document)
            _keep(rows, self._root, holder, document)
            return result

        return await self._store.run(work)


def _document(rows: sqlite3.Connection, root: str, holder: str) -> dict[str, Any]:
    row = rows.execute("SELECT value FROM states WHERE root = ? AND holder = ?", (root, holder)).fetchone()
    if row is None:
        return {}
    try:
        value = msgspec.json.decode(row[0])
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _keep(rows: sqlite3.Connection, root: str, holder: str, document: dict[str, Any]) -> None:
    try:
        value = msgspec.json.encode(document)
    except RecursionError:
        raise StateError(f"the value is nested deeper than {MAX_DEPTH} levels") from None
    if len(value) > MAX_STATE_BYTES:
        raise StateError(
            f"the state would have {len(value)} bytes; it has room for {MAX_STATE_BYTES}: remove something"
        )
    known = rows.execute("SELECT 1 FROM states WHERE root = ? AND holder = ?", (root, holder)).fetchone()
    if known is None:
        (count,) = rows.execute("SELECT count(*) FROM states WHERE root = ?", (root,)).fetchone()
        if count >= MAX_HOLDERS:
            raise StateError(f"{MAX_HOLDERS} agents have a private state here already, which is the most")
    rows.execute(
        "INSERT INTO states (root, holder, value, changed) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (root, holder) DO UPDATE SET value = excluded.value, changed = excluded.changed",
        (root, holder, value, time.time()),
    )


# Paths in a document: parts between dots, list items by their number


def find(document: Any, path: str) -> Found:
    """What stands at a dotted path; ``""`` is the whole. A name that itself has dots is found as it is written."""
    here, walked, rest = document, "", path
    while rest:
        if isinstance(here, dict):
            table = cast("dict[str, Any]", here)
            name = rest if rest in table else rest.partition(".")[0]
            if name not in table:
                return Found(False, nearest=walked, names=tuple(sorted(table)))
            here = table[name]
        elif isinstance(here, list):
            items = cast("list[Any]", here)
            name = rest.partition(".")[0]
            if not (_is_number(name) and int(name) < len(items)):
                return Found(False, nearest=walked, names=tuple(str(n) for n in range(min(len(items), 8))))
            here = items[int(name)]
        else:
            return Found(False, nearest=walked)
        walked = f"{walked}.{name}" if walked else name
        rest = rest[len(name) + 1 :]
    return Found(True, here)


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Puts a value at a dotted path, with objects on the way where nothing is; ``""`` replaces the whole. Raises ``StateError``."""
    if not path:
        if not isinstance(value, dict):
            raise StateError("the whole state must be an object")
        document.clear()
        document.update(cast("dict[str, Any]", value))
        return
    *way, last = _parts(path)
    here: Any = document
    for number, name in enumerate(way):
        here = _step(here, name, ".".join(way[:number]))
    if isinstance(here, dict):
        cast("dict[str, Any]", here)[last] = value
    else:
        items, at = _item(here, last, ".".join(way))
        if at == len(items):
            items.append(value)
        else:
            items[at] = value


def remove(document: dict[str, Any], path: str) -> bool:
    """Takes away what stands at a dotted path; whether anything did."""
    if not path:
        had = bool(document)
        document.clear()
        return had
    *way, last = _parts(path)
    above = find(document, ".".join(way))
    here = above.value if above.found else None
    if isinstance(here, dict) and last in here:
        del cast("dict[str, Any]", here)[last]
        return True
    if isinstance(here, list) and _is_number(last) and int(last) < len(cast("list[Any]", here)):
        del cast("list[Any]", here)[int(last)]
        return True
    return False


def _parts(path: str) -> list[str]:
    parts = path.split(".")
    if len(parts) > MAX_DEPTH:
        raise StateError(f"a path has at most {MAX_DEPTH} parts")
    if not all(parts):
        raise StateError(f"the path '{path[:100]}' has an empty part")
    return parts


def _step(here: Any, name: str, place: str) -> Any:
    if isinstance(here, dict):
        return cast("dict[str, Any]", here).setdefault(name, {})
    items, at = _item(here, name, place)
    if at == len(items):
        items.append({})
    return items[at]


def _item(here: Any, name: str, place: str) -> tuple[list[Any], int]:
    if not isinstance(here, list):
        raise StateError(f"'{place}' holds no object, so nothing can stand at '{name}' in it")
    items = cast("list[Any]", here)
    if not (_is_number(name) and int(name) <= len(items)):
        raise StateError(f"'{place}' is a list of {len(items)}: '{name}' is no place in it")
    return items, int(name)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


# The tools


async def read_world(call: Invocation) -> Any:
    """``ReadWorldStateTool``."""
    return await _read(call, WORLD, str(call.args["path"]), "the world state")


async def read_private(call: Invocation) -> Any:
    """``ReadPrivateStateTool``."""
    return await _read(call, _holder(call), str(call.args["key"]), "your private state")


async def update_private(call: Invocation) -> dict[str, Any]:
    """``UpdatePrivateStateTool``."""
    key, value = str(call.args["key"]), call.args["value"]

    def edit(document: dict[str, Any]) -> bool:
        created = key not in document
        document[key] = value
        return created

    try:
        created = await call.services.states.change(_holder(call), edit)
    except StateError as error:
        raise Stopped("error", failure("ServiceError", str(error)), started=True) from None
    call.services.tell(
        "state/changed", StateChanged(scope="private", agent_id=call.context.caller.agent_id, keys=[key])
    )
    return {"key": key, "created": created}


def _holder(call: Invocation) -> str:
    try:
        return private_to(call.context.caller.agent_id)
    except StateError as error:
        raise Stopped("error", failure("ServiceError", str(error)), started=True) from None


async def _read(call: Invocation, holder: str, path: str, what: str) -> Any:
    position = find(await call.services.states.read(holder), path)
    if position.found:
        return position.value
    if "default_value" in call.args:
        return call.args["default_value"]
    missing = path[len(position.nearest) + 1 :] if position.nearest else path
    near = best(missing.partition(".")[0], position.names)
    suggestion = hint(f"{position.nearest}.{near}" if near and position.nearest else near)
    there = (
        ""
        if suggestion or not position.names
        else f"; '{position.nearest}' has {', '.join(position.names[:8])}"
        if position.nearest
        else ""
    )
    text = f"nothing stands at '{plain(path)}' in {what}{suggestion}{there}; give default_value where that is no error"
    raise Stopped("error", failure("ServiceError", text), started=True)
