"""``PublishEventTool`` (seed 000 §4.2): what a model publishes goes to the host as the notification ``event/published``.

The host's own event bus takes it from there. Must not know what an event means.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from tamis.protocols.messages import EventPublished
from tamis.server.runtime.calls.model import Stopped
from tamis.server.runtime.calls.results import failure
from tamis.server.runtime.calls.runner import Invocation

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
    call.context.parts.tell("event/published", event)
    return {"eventId": event.event_id}
