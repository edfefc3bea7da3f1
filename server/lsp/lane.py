"""The way to the framework lane: what is handed over before it is there waits for it.

pygls and lsprotocol take half a second to import. That happens in a thread, so that the first hover does not keep a keystroke waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tamis.server.lsp.trace import report_failure
from tamis.server.wire.jsonrpc import INTERNAL_ERROR, RpcError

if TYPE_CHECKING:
    from tamis.server.lsp.envelope import Envelope, MessageId
    from tamis.server.lsp.framework import Framework
    from tamis.server.lsp.session import Send, Session


class Lane:
    """A framework that is there or on its way; begins to be with the first message. Any thread."""

    def __init__(self, session: Session, send: Send) -> None:
        self._session = session
        self._send = send
        self._lock = threading.Lock()
        self._built: Framework | None = None
        self._framework: Framework | Missing | None = None
        """Who is given what is handed over, once what waited has been."""
        self._waiting: list[Callable[[Any], None]] = []
        self._closed = False
        threading.Thread(target=self._build, name="tamis-framework-import", daemon=True).start()

    @property
    def built(self) -> Framework:
        """The framework itself, for the handlers that run on it."""
        assert self._built is not None
        return self._built

    def receive(self, message: Envelope) -> None:
        """Hands over a message."""
        self._do(lambda framework: framework.receive(message))

    def cancel(self, identity: MessageId) -> None:
        """Ends the work of a request."""
        self._do(lambda framework: framework.cancel(identity))

    def cancel_progress(self, token: int | str) -> None:
        """Ends the work that a progress tells of."""
        self._do(lambda framework: framework.cancel_progress(token))

    def abort_tests(self) -> None:
        """Ends the tests that run."""
        self._do(lambda framework: framework.abort_tests())

    def tools_changed(self, *, edited: bool = False) -> None:
        """What is known of tools is different; ``edited``: by an edit of an open manifest."""
        self._do(lambda framework: framework.tools_changed(edited=edited))

    def texts_changed(self) -> None:
        """Texts on disk are others."""
        self._do(lambda framework: framework.texts_changed())

    def close(self) -> None:
        """Ends what was started for the client, within a bounded time; nothing was while it is on its way."""
        with self._lock:
            self._closed = True
        if self._framework is not None:
            self._framework.close()

    def _do(self, work: Callable[[Framework | Missing], None]) -> None:
        with self._lock:
            if self._framework is None:
                self._waiting.append(work)
                return
        work(self._framework)

    def _build(self) -> None:
        framework: Framework | Missing
        try:
            from tamis.server.lsp.framework import Framework

            framework = self._built = Framework(self._session, self._send)
        except Exception as error:  # a broken installation: what needs no framework goes on
            report_failure("the start of pygls")
            framework = Missing(self._session, error)
        while True:
            with self._lock:
                if self._closed or not self._waiting:
                    self._framework = framework
                    break
                waiting, self._waiting = self._waiting, []
            for work in waiting:
                work(framework)
        if self._closed:
            framework.close()


class Missing:
    """Stands for a framework that cannot be started: every request has its error."""

    def __init__(self, session: Session, error: Exception) -> None:
        self._session = session
        self._error = error

    def receive(self, message: Envelope) -> None:
        """Answers a request."""
        identity = message.id
        if isinstance(identity, (int, str)) and self._session.pending.take(identity) is not None:
            text = f"pygls could not be started: {self._error!r}; install Tamis anew"
            self._session.fail(identity, RpcError(INTERNAL_ERROR, text))

    def cancel(self, identity: MessageId) -> None:
        """Nothing runs."""

    def cancel_progress(self, token: int | str) -> None:
        """Nothing runs."""

    def abort_tests(self) -> None:
        """Nothing runs."""

    def tools_changed(self, *, edited: bool = False) -> None:
        """Nobody is told."""

    def texts_changed(self) -> None:
        """Nobody is told."""

    def close(self) -> None:
        """Nothing was started."""
