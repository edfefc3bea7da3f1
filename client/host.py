"""What both clients are made of: what the host gave them, the state of the connection, and what the host's functions answer.

Knows neither processes nor how anything is waited for.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from tamis.client import messages
from tamis.client.messages import DaemonEnded, Decide, Framing, Incoming, Serve
from tamis.client.results import ApprovalRequest

LOGGER = logging.getLogger("tamis.client")
"""What the daemon writes on its standard error (level INFO), and what the host's own functions raised (ERROR)."""
# A library says nothing on standard error by itself: without a handler, logging itself would write errors there.
LOGGER.addHandler(logging.NullHandler())
MAX_SERVED = 64
"""So many requests of the daemon are served at once; more are refused."""


class Work(NamedTuple):
    """A request of the daemon's as this host serves it."""

    run: Callable[[], Any]
    result: Callable[[Any], Any]
    """What the reply has of what ``run`` gave."""
    call_id: str = ""
    """By which the daemon may withdraw it; empty when it cannot."""


class Host:
    """The part of a client that is the same for threads and asyncio."""

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        command: Sequence[str] | None = None,
        framing: Framing = "lines",
        timeout: float | None = 600.0,
        on_notification: Callable[[str, Any], None] | None = None,
        on_request: Callable[[str, Any], Any] | None = None,
        on_approval: Decide | None = None,
        on_question: Decide | None = None,
        on_log: Callable[[str], None] | None = None,
    ) -> None:
        """``command`` is the daemon, by default this Python's ``tamis rpc``.

        ``timeout`` (seconds) is how long a request is waited for that gives none of its own (None: without end). The daemon bounds
        what it runs by itself; a person who is asked may take five minutes.
        ``on_notification(method, params)`` is called while the daemon's messages are read, so that all output of a call has come
        before its result; it must not wait for an answer. ``on_approval(question)`` decides whether a call may run; the daemon is
        told that there is someone to ask before the first request. ``on_question(question)`` answers what the MCP server of a tool
        asks (``question.elicitation``): with an option's id, a dict of what was typed into its ``form``, or None for a closed
        question; without it servers ask nobody. ``on_request(method, params)`` answers every other request.
        ``on_log(line)`` takes the daemon's standard error, which otherwise goes to the logger ``tamis.client``.
        """
        self._words = messages.words(root, command)
        self._framing: Framing = framing
        self._timeout = timeout
        self._on_notification = on_notification
        self._on_request = on_request
        self._on_approval = on_approval
        self._on_question = on_question
        self._on_log = on_log
        self._services: dict[str, dict[str, Serve]] = {}
        self._numbers = itertools.count(1)
        self._tail: deque[str] = deque(maxlen=messages.TAIL_LINES)
        self._ended: DaemonEnded | None = None
        self._begun = on_approval is None and on_question is None
        self._closed = False
        self._start()

    def _start(self) -> None:
        """Sets up what waits for answers, with the daemon where it is started at once."""

    def _beginning_of(self, method: str) -> dict[str, Any] | None:
        """The ``initialize`` that has to go before a first request, if it is another one. Its reply says nothing that the host asked for."""
        begun, self._begun = self._begun, True
        if begun or method == "initialize":
            return None
        return messages.request(
            next(self._numbers),
            "initialize",
            messages.initialize_params(
                approval=self._on_approval is not None,
                questions=self._on_question is not None,
                events=self._on_notification is not None,
            ),
        )

    def _why_ended(self, code: int | None, wrong: str) -> DaemonEnded:
        """Why nothing comes any more, with the daemon's exit code, if it has one; what is said first stays."""
        if self._ended is None:
            what = wrong or ("the client was closed" if self._closed else "the daemon ended before it answered")
            self._ended = DaemonEnded(what, code, () if self._closed else tuple(self._tail))
        return self._ended

    def _logged(self, line: str) -> None:
        """A line of the daemon's standard error, without its end."""
        self._tail.append(line[:1000])
        try:
            if self._on_log is None:
                LOGGER.info("%s", line)
            else:
                self._on_log(line)
        except Exception:  # a host's fault must not stop the log
            LOGGER.exception("on_log failed")

    def _notified(self, message: Incoming) -> None:
        if self._on_notification is not None:
            try:
                self._on_notification(message.method or "", msgspec.json.decode(message.params))
            except Exception:  # a host's fault must not stop the reading
                LOGGER.exception("on_notification failed")

    def _work(self, message: Incoming) -> Work:
        """Who serves a request of the daemon's. Raises ``NotServed``."""
        method = message.method or ""
        if method == messages.APPROVAL and (self._on_approval or self._on_question):
            question = msgspec.json.decode(message.params, type=ApprovalRequest)
            asks = question.elicitation is not None
            decide = self._on_question if asks else self._on_approval
            if decide is None:
                raise messages.NotServed("there is nobody to ask here")
            return Work(lambda: decide(question), messages.question_reply if asks else messages.approval_reply)
        params = msgspec.json.decode(message.params)
        if method == messages.INVOKE and self._services:
            serve, args = messages.served(self._services, params)
            return Work(lambda: serve(args), _as_it_is, str(params.get("callId")))
        if (answer := self._on_request) is None:
            raise messages.NotServed(f"this host does not answer {method}")
        return Work(lambda: answer(method, params), _as_it_is)


def busy_reply(message: Incoming) -> dict[str, Any]:
    """The reply to a request of the daemon's that is one too many."""
    return messages.error_reply(message.id, messages.BUSY, f"{MAX_SERVED} requests are served already")


def _as_it_is(value: Any) -> Any:
    return value
