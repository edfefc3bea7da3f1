"""The ways to a client over HTTP: the answer to each POST, and the stream that a session of an earlier revision opens with GET.

What is said about a request goes on its own way, never on another's. Must not know of HTTP's headers, nor what a method does.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Any, cast

from tamis.server.mcp.server import McpSession
from tamis.server.rpc.session import Answer, Method, Request

MAX_DROPPABLE_BYTES = 4 * 1024 * 1024
"""So much may wait for a client that does not read, before what may be lost is lost."""
MAX_UNREAD = 256
"""So many messages wait on a stream that nobody has opened; then the oldest is lost."""
MAX_REPLAY_BYTES = 4 * 1024 * 1024
MAX_REPLAY = 256
MAX_STREAMS = 32
"""So many streams that have ended can be resumed in a session."""


class Stream:
    """Messages in the order in which they go to one reader, who may come back for what it missed."""

    def __init__(self, name: str = "") -> None:
        """``name``: in the ids of its events; empty: it cannot be resumed."""
        self.name = name
        self.ended = False
        self.reader = 0
        """The number of the reader that counts; an earlier one has been taken over."""
        self.is_read = False
        self._events: deque[tuple[int, bytes]] = deque()
        self._number = 0
        self._sent = 0
        self._unread = 0
        self._changed = asyncio.Event()

    def put(self, message: bytes, *, droppable: bool = False) -> bool:
        """Adds a message; False when it was dropped."""
        if self.ended or (droppable and self._unread > MAX_DROPPABLE_BYTES):
            return False
        self._number += 1
        self._events.append((self._number, message))
        self._unread += len(message)
        if not self.is_read:
            while self._number - self._sent > MAX_UNREAD:
                self._sent += 1
                if self._events and self._events[0][0] <= self._sent:
                    self._unread -= len(self._events.popleft()[1])
        self._changed.set()
        return True

    def answer(self, reply: bytes | None) -> None:
        """The last message, or the end without one."""
        if reply is not None:
            self.put(reply)
        self.end()

    def end(self) -> None:
        """Nothing more comes."""
        self.ended = True
        self._changed.set()

    def take(self) -> int:
        """The number of a new reader, which takes the place of any other."""
        self.reader += 1
        self.is_read = True
        self._changed.set()
        return self.reader

    def leave(self, reader: int) -> None:
        """A reader has gone."""
        if reader == self.reader:
            self.is_read = False

    @property
    def alone(self) -> bytes | None:
        """The only message of a stream that has ended; None where there are others, or none."""
        return self._events[0][1] if self.ended and len(self._events) == 1 and self._number == 1 else None

    @property
    def first(self) -> int:
        """What a reader who comes without an event of its own goes on behind: all that went to another."""
        return self._sent

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever said."""
        return self._number == 0

    def behind(self, number: int) -> list[tuple[int, bytes]]:
        """The messages behind one, as far as they are kept."""
        return [event for event in self._events if event[0] > number]

    def was_sent(self, number: int) -> None:
        """A message has gone out; of those that have, the last are kept for a reader who comes back."""
        if number > self._sent:
            self._unread -= sum(len(body) for at, body in self._events if self._sent < at <= number)
            self._sent = number
        kept = 0 if not self.name else MAX_REPLAY
        while (
            self._events
            and self._events[0][0] <= self._sent
            and (len(self._events) > kept or sum(len(body) for _, body in self._events) > MAX_REPLAY_BYTES)
        ):
            self._events.popleft()

    async def wait(self, seconds: float) -> bool:
        """Waits for a change; False when there was none for so long."""
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True


class HttpSession(McpSession):
    """The connection to one MCP client over HTTP, or what stands for it during one POST."""

    def __init__(self, methods: dict[str, Method]) -> None:
        super().__init__(methods)
        self.standing = Stream("0")
        """What is about no request; a client of an earlier revision opens it with GET."""
        self.streams: OrderedDict[str, Stream] = OrderedDict({"0": self.standing})
        self._arriving: Stream | None = None
        self._number = 0

    def new_stream(self) -> Stream:
        """A stream that can be resumed."""
        self._number += 1
        stream = self.streams[str(self._number)] = Stream(str(self._number))
        ended = [name for name, stream in self.streams.items() if stream.ended and not stream.is_read]
        for name in ended[:-MAX_STREAMS]:
            del self.streams[name]
        return stream

    def arrived(self, message: object, stream: Stream) -> None:
        """Takes what one POST brought, and answers on ``stream``."""
        self._arriving = stream
        try:
            if isinstance(message, list):
                self._batch(cast("list[object]", message))
            else:
                self._message(message, stream.answer)
        finally:
            self._arriving = None

    def left(self, stream: Stream) -> None:
        """The client has closed the stream of a request, which it takes back by that."""
        for request, _ in list(self.pending.values()):
            if request.stream is stream:
                self.take_back(request)

    def _way(self) -> Answer:
        assert self._arriving is not None
        return self._arriving.answer

    def _new_request(self, identity: object, answer: Answer, method: str) -> Request:
        request = super()._new_request(identity, answer, method)
        request.stream = self._arriving
        return request

    def _send(self, body: bytes, *, droppable: bool = False, about: Request | None = None) -> bool:
        stream: Any = self.standing if about is None else about.stream
        return isinstance(stream, Stream) and stream.put(body, droppable=droppable)
