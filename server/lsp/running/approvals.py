"""Asking the person at the editor before a call runs: the first way that the client can, and what each answer means.

The ladder (interface, Reverse request): ``tool/requestApproval`` where the client declares it, ``window/showMessageRequest``, else there is
no one to ask. The same question stands as lenses at its block, whichever is answered first counts. Must not decide whether a person has
to be asked, nor for how long an answer holds (``server/runtime/execution/approving.py`` does).
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from tamis.protocols.contract import ApprovalResolved
from tamis.server.analysis.running.lenses import Asking
from tamis.server.lsp.client import Client
from tamis.server.lsp.running.runs import Runs, VirtualDocuments, Waiting
from tamis.server.runtime.calls.model import Ask, Question, Reply
from tamis.server.runtime.execution.approvals.questions import as_request, ask_by_message
from tamis.server.runtime.execution.approvals.replies import chosen, read_reply
from tamis.server.wire.jsonrpc import RpcError


class Approvals:
    """The questions of one session."""

    def __init__(self, client: Client, runs: Runs, documents: VirtualDocuments) -> None:
        self._client = client
        self._runs = runs
        self._documents = documents
        self._open: dict[str, asyncio.Future[str]] = {}

    def asker(self, uri: str, digest: str) -> Ask:
        """How a run of a document's stretch asks."""

        async def ask(question: Question) -> Reply:
            if question.elicitation is not None:
                return await self._ask(question)  # a lens allows or denies; a server's question has other answers
            approval_id = question.approval_id
            by_lens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._open[approval_id] = by_lens
            self._runs.wait(Waiting(uri, digest, Asking(approval_id, question.tool_id)))
            self._client.refresh_marks()
            by_client = asyncio.ensure_future(self._ask(question))
            try:
                await asyncio.wait({by_lens, by_client}, return_when=asyncio.FIRST_COMPLETED)
                return chosen(by_lens.result(), question.options) if by_lens.done() else by_client.result()
            finally:
                by_lens.cancel()
                by_client.cancel()
                self._open.pop(approval_id, None)
                self._runs.answered(approval_id)
                self._client.refresh_marks()

        return ask

    @property
    def elicits(self) -> bool:
        """Whether the client can show questions of MCP servers."""
        session = self._client.session
        return session.can("window.showMessage") or (
            session.capability("experimental.tamis.approval") == "request"
            and session.capability("experimental.tamis.elicitation") is True
        )

    @property
    def shows_forms(self) -> bool:
        """Whether the client shows those of them that have a form or an address."""
        session = self._client.session
        return (
            session.capability("experimental.tamis.approval") == "request"
            and session.capability("experimental.tamis.elicitation") is True
            and session.capability("experimental.tamis.forms") is True
        )

    @property
    def together(self) -> bool:
        """Whether the client shows the questions of one text at once."""
        session = self._client.session
        return (
            session.capability("experimental.tamis.approval") == "request"
            and session.capability("experimental.tamis.together") is True
        )

    def resolved(self, settled: ApprovalResolved) -> None:
        """Tells a client that is asked by ``tool/requestApproval`` that a question is settled, also elsewhere."""
        if self._client.session.capability("experimental.tamis.approval") == "request":
            self._client.session.notify("tool/approvalResolved", msgspec.to_builtins(settled))

    def answer(self, approval_id: str, option_id: str) -> bool:
        """Takes the answer of a lens; False when nothing waits for it (any more)."""
        waiting = self._open.get(approval_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(option_id)
        return True

    async def _ask(self, question: Question) -> Reply:
        try:
            if self._client.session.capability("experimental.tamis.approval") == "request" and (
                question.elicitation is None
                or self._client.session.capability("experimental.tamis.elicitation") is True
            ):
                raw: object = await self._client.ask("tool/requestApproval", as_request(question))
                return read_reply(raw, question.options)
            return await self._message(question)
        except RpcError:
            return Reply(answer="unavailable")

    async def _message(self, question: Question) -> Reply:
        def show() -> None:
            uri = f"tamis-result:/{question.approval_id}.json"
            request = msgspec.json.encode(as_request(question))
            self._documents.put(uri, msgspec.json.format(request, indent=2).decode())
            self._client.show(uri)

        choose = partial(self._client.choose, "warning")
        return await ask_by_message(question, choose, show if self._client.shows_documents else None)
