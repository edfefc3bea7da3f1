"""What running calls write, as ``tool/output`` notifications. Must not know how a client is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Shown:
    """The output of the calls of one request. ``send`` takes the params and whether they may be dropped, and gives whether they went out."""

    def __init__(self, send: Callable[[dict[str, Any], bool], bool]) -> None:
        self._send = send
        self._numbers: dict[str, int] = {}
        self._lost: set[str] = set()

    def piece(self, call_id: str, stream: str, text: str) -> None:
        """More of a stream."""
        if self._tell(call_id, stream, text, cut=False):
            self._lost.discard(call_id)
        else:
            self._lost.add(call_id)

    def cut(self, call_id: str, stream: str) -> None:
        """The rest of a stream is over its limit."""
        self._tell(call_id, stream, "", cut=True)

    def _tell(self, call_id: str, stream: str, text: str, *, cut: bool) -> bool:
        number = self._numbers[call_id] = self._numbers.get(call_id, 0) + 1
        truncated = cut or call_id in self._lost
        told = {"callId": call_id, "seq": number, "stream": stream, "text": text, "truncated": truncated}
        return self._send(told, not cut)
