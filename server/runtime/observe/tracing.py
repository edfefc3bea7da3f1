"""W3C trace context: which trace a call belongs to, read from a host and passed on to everything the call starts (D94).

`traceparent` is version, trace id, parent id and flags in lower-case hex; `tracestate` is the vendors' own and goes through as it came.
A value that does not follow the recommendation counts as none, as the recommendation asks. Must not know who collects traces.
"""

from __future__ import annotations

import os
import re

import msgspec

# https://www.w3.org/TR/trace-context/: a higher version may append fields, ff is no version
_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_STATE = re.compile(r"[\x20-\x7e\t]*")
MAX_STATE_CHARS = 512


class Trace(msgspec.Struct, frozen=True):
    """A place in a trace."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits: what is started now is a child of it."""
    flags: str = "00"
    state: str = ""

    @property
    def parent(self) -> str:
        """The `traceparent` of what is started now."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def child(self) -> Trace:
        """A new place below this one."""
        return msgspec.structs.replace(self, span_id=os.urandom(8).hex())

    def headers(self) -> dict[str, str]:
        """As HTTP headers and MCP metadata spell it."""
        return {"traceparent": self.parent} | ({"tracestate": self.state} if self.state else {})

    def variables(self) -> dict[str, str]:
        """As environment variables, which OpenTelemetry's libraries for command line programs read."""
        return {name.upper(): value for name, value in self.headers().items()}


def read_trace(parent: str | None, state: str | None = None) -> Trace | None:
    """The trace that a host names; None for none and for a `traceparent` that is not valid."""
    match = _PARENT.fullmatch(parent) if parent is not None and len(parent) <= 1_000 else None
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    fits = state is not None and len(state) <= MAX_STATE_CHARS and _STATE.fullmatch(state)
    # of the flags only those of version 00 are known
    return Trace(trace_id, span_id, f"{int(flags, 16) & 0x03:02x}", (state or "").strip() if fits else "")
