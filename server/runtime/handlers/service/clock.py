"""``system:get_current_time`` and ``system:task_status`` (seed 004 §1, seed 003 §6.5). Must not know how tasks are kept."""

from __future__ import annotations

import asyncio
import re
import secrets
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, cast

import msgspec
from msgspec import UNSET

from tamis.protocols.messages import EventPublished
from tamis.protocols.suggest import best, hint
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.runner import Invocation, failure

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_NO_FILE = frozenset(("", "local", "utc"))
_WAYS = "give an IANA name (Asia/Shanghai), UTC or an offset such as +08:00"
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,3}")


async def get_current_time(call: Invocation) -> dict[str, Any]:
    """Date and time now, in the zone that the call names."""
    name = str(call.args.get("timezone", ""))
    try:
        if name.lower() in _NO_FILE:
            return time_in(datetime.now(UTC), name)
        # Zones are read from files.
        return await asyncio.to_thread(time_in, datetime.now(UTC), name)
    except ValueError as error:
        raise Stopped("error", failure("ParameterValidationError", str(error)), started=True) from None


def time_in(now: datetime, name: str) -> dict[str, Any]:
    """A moment as the tool tells it. Raises ValueError for a name that is no zone."""
    zone, called = _zone(name.strip())
    here = now.astimezone(zone)
    iso = here.isoformat(timespec="seconds")
    return {
        "iso": iso,
        "date": iso[:10],
        "time": iso[11:19],
        "weekday": _WEEKDAYS[here.weekday()],
        "timezone": called or here.tzname() or "local",
        "utcOffset": iso[19:25],
        "epochMs": int(now.timestamp() * 1000),
    }


# Not by `strftime`: that speaks the language of the machine.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _zone(name: str) -> tuple[tzinfo | None, str]:
    if name.lower() in ("", "local"):
        return None, ""
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC, "UTC"
    offset = _OFFSET.fullmatch(name.upper())
    if offset is not None:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours > 14 or minutes > 59:
            raise ValueError(f"'{name}' is no offset from UTC; they go from -14:00 to +14:00")
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=hours, minutes=minutes)), f"UTC{offset[1]}{hours:02}:{minutes:02}"
    if not _ZONE.fullmatch(name):
        raise ValueError(f"'{name[:60]}' is no time zone; {_WAYS}")
    # Only a call that names a zone pays for them.
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return ZoneInfo(name), name
    except (KeyError, OSError, ValueError):
        known = available_timezones()
    exact = next((zone for zone in known if zone.lower() == name.lower()), None)
    if exact is not None:
        return ZoneInfo(exact), exact
    if not known:
        raise ValueError(f"this machine has no data of time zones; give an offset such as +08:00 instead of '{name}'")
    raise ValueError(f"'{name}' is no time zone{hint(best(name, known)) or f'; {_WAYS}'}")


async def task_status(call: Invocation) -> dict[str, Any]:
    """How far a task is, and what it gave when it has ended: what a model needs, and none of what a host keeps of it."""
    task = await call.services.tasks.status(str(call.args["task_id"]))
    if task is None:
        text = f"there is no task '{call.args['task_id']}'; tasks are forgotten some time after their end"
        raise Stopped("error", failure("ServiceError", text, code="taskNotFound"), started=True)
    task_status: dict[str, Any] = {"taskId": task.task_id, "status": task.status}
    if task.progress is not UNSET:
        task_status["progress"] = msgspec.to_builtins(task.progress)
    if task.result is not UNSET:
        members = msgspec.to_builtins(task.result)
        task_status["result"] = {name: members[name] for name in ("status", "output", "error") if name in members}
    if task.error is not UNSET:
        task_status["error"] = msgspec.to_builtins(task.error)
    return task_status


# ``PublishEventTool`` (seed 000 §4.2): what a model publishes goes to the host as the notification ``event/published``. The host's own event bus
# takes it from there.


MAX_EVENT_BYTES = 262_144
"""So large may an event's data be as JSON."""


async def publish(call: Invocation) -> dict[str, Any]:
    """Tells the host of an event; the event's id."""
    payload = cast("dict[str, Any]", call.args.get("payload") or {})
    size = len(msgspec.json.encode(payload))
    if size > MAX_EVENT_BYTES:
        text = f"the payload has {size} bytes; an event takes {MAX_EVENT_BYTES}: name where the data are instead"
        raise Stopped("error", failure("ResourceError", text), started=True)
    event = EventPublished(
        event_id=f"event-{secrets.token_hex(8)}",
        event_type=str(call.args["event_type"]),
        payload=payload,
        call_id=call.request.call_id,
        session_id=call.context.caller.session_id,
        agent_id=call.context.caller.agent_id,
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
    call.services.tell("event/published", event)
    return {"eventId": event.event_id}
