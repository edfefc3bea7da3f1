"""Asking the client, from the framework lane: requests with their answers as plain data, messages, progress, documents to show.

The client's answers are taken as they come and looked at by whoever asked; a wrong one is no answer. Must not know tools or runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, cast

from tamis.server.wire.jsonrpc import RpcError

if TYPE_CHECKING:
    from tamis.server.lsp.session import Session

CREATE_SECONDS = 5.0
_LEVELS = {"error": 1, "warning": 2, "info": 3}


class Carrier(Protocol):
    """The framework lane, as far as it is needed here."""

    progress: dict[int | str, Callable[[], None]]

    def ask(self, identity: str, method: str, params: object) -> Future[Any]:
        """Sends a request whose answer is taken as it comes; an error is an ``RpcError``."""
        ...


class Client:
    """The client of one session; every method runs on the framework lane's loop."""

    def __init__(self, session: Session, carrier: Carrier) -> None:
        self._session = session
        self._carrier = carrier
        self._number = 0
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def session(self) -> Session:
        """The session."""
        return self._session

    @property
    def progress(self) -> dict[int | str, Callable[[], None]]:
        """What ends the work that a progress tells of, by its token."""
        return self._carrier.progress

    def new_token(self) -> str:
        """A token that no other progress has."""
        self._number += 1
        return f"tamis-progress-{self._number}"

    def can(self, path: str) -> bool:
        """Whether the client declares a capability."""
        return self._session.can(path)

    async def ask(self, method: str, params: object) -> Any:
        """A request's result. Raises ``RpcError`` for an error; a caller that is cancelled withdraws the request."""
        self._number += 1
        identity = f"tamis-ask-{self._number}"
        try:
            return await asyncio.wrap_future(self._carrier.ask(identity, method, params))
        except asyncio.CancelledError:
            self._session.notify("$/cancelRequest", {"id": identity})
            raise

    def tell(self, method: str, params: object = None) -> None:
        """A request whose answer changes nothing; an error is no matter."""

        async def go() -> None:
            try:
                await self.ask(method, params)
            except RpcError:
                return

        task = asyncio.get_running_loop().create_task(go())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def message(self, level: str, text: str) -> None:
        """``window/showMessage``; ``level`` is ``error``, ``warning`` or ``info``."""
        self._session.notify("window/showMessage", {"type": _LEVELS[level], "message": text})

    async def choose(self, level: str, text: str, titles: Sequence[str]) -> str | None:
        """``window/showMessageRequest``: the chosen title, None when it was dismissed. Raises ``RpcError`` when it cannot be asked."""
        shown = self._session.words.titles(titles) if self._session.words is not None else list(titles)
        actions = [{"title": title} for title in shown]
        params = {"type": _LEVELS[level], "message": text, "actions": actions}
        answer = await self.ask("window/showMessageRequest", params)
        title: Any = cast("dict[str, Any]", answer).get("title") if isinstance(answer, dict) else None
        return titles[shown.index(title)] if title in shown else None

    @property
    def shows_documents(self) -> bool:
        """Whether the client opens documents whose content it asks us for."""
        return self.can("workspace.textDocumentContent") and self.can("window.showDocument.support")

    def show(self, uri: str, *, focus: bool = False) -> bool:
        """Opens one of our documents beside what the user does; False when the client cannot."""
        if not self.shows_documents:
            return False
        self.tell("window/showDocument", {"uri": uri, "takeFocus": focus})
        return True

    def refreshed(self, uri: str) -> None:
        """A document of ours says something else now."""
        if self.can("workspace.textDocumentContent"):
            self.tell("workspace/textDocumentContent/refresh", {"uri": uri})

    def refresh_marks(self) -> None:
        """What stands beside the text (lenses, inlay hints) says something else now."""
        for name in ("codeLens", "inlayHint"):
            if self.can(f"workspace.{name}.refreshSupport"):
                self.tell(f"workspace/{name}/refresh")


class Progress:
    """Work-done progress of one command: by the client's token, else by one that it lets us make, else silent."""

    def __init__(self, client: Client, token: int | str | None, title: str, cancel: Callable[[], None]) -> None:
        self._client = client
        self._title = title
        self._cancel = cancel
        self.given = token
        """The token that the client gave its command."""
        self._token = token
        self._begun = self._ended = False
        self._making: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Says that the work begins, as soon as the client is ready for it."""
        if self._token is not None:
            self._start()
        elif self._client.can("window.workDoneProgress"):
            self._making = asyncio.get_running_loop().create_task(self._make())

    async def _make(self) -> None:
        token = self._client.new_token()
        try:
            async with asyncio.timeout(CREATE_SECONDS):
                await self._client.ask("window/workDoneProgress/create", {"token": token})
        except (RpcError, TimeoutError):
            return
        if not self._ended:
            self._token = token
            self._start()

    def _start(self) -> None:
        assert self._token is not None
        self._client.progress[self._token] = self._cancel
        self._begun = True
        self._send({"kind": "begin", "title": self._title, "cancellable": True})

    def report(self, text: str, percentage: int | None = None) -> None:
        """Says what is done now."""
        if self._begun and not self._ended:
            more = {} if percentage is None else {"percentage": percentage}
            self._send({"kind": "report", "message": text, "cancellable": True, **more})

    def end(self, text: str) -> None:
        """Says what came of it; later calls do nothing."""
        if self._begun and not self._ended:
            self._send({"kind": "end", "message": text})
        self._ended = True
        if self._token is not None:
            self._client.progress.pop(self._token, None)
        if self._making is not None:
            self._making.cancel()

    def _send(self, value: dict[str, Any]) -> None:
        self._client.session.notify("$/progress", {"token": self._token, "value": value})
