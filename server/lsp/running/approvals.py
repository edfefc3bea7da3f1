"""Asking the person at the editor before a call runs: the first way that the client can, and what each answer means.

The ladder (interface, Reverse request): ``tool/requestApproval`` where the client declares it, ``window/showMessageRequest``, then the lenses
and code actions at the block, else there is no one to ask. The same question stands at its block in any case, whichever is answered
first counts. Must not decide whether a person has to be asked, nor for how long an answer holds (``server/runtime/execution/approving.py`` does).
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ApprovalOption, ApprovalResolved
from tamis.server.analysis.running.lenses import Asking
from tamis.server.lsp.client import Client
from tamis.server.lsp.running.runs import Runs, VirtualDocuments, Waiting
from tamis.server.runtime.calls.model import Ask, Question, Reply
from tamis.server.runtime.execution.approvals.questions import MAX_WHOLE_CHARS, as_request, ask_by_message
from tamis.server.runtime.execution.approvals.replies import (
    ALLOW,
    REJECT,
    SESSION,
    chosen,
    json_text,
    question_text,
    read_reply,
    sentence,
)
from tamis.server.wire.jsonrpc import RpcError

_TITLES = {
    ALLOW.option_id: "✓ Allow once",
    SESSION.option_id: "✓ Allow for this session",
    REJECT.option_id: "✗ Deny",
}
"""What stands at the block of a call; an answer for always is not one keystroke away."""


class Approvals:
    """The questions of one session."""

    def __init__(self, client: Client, runs: Runs, documents: VirtualDocuments) -> None:
        self._client = client
        self._runs = runs
        self._documents = documents
        self._open: dict[str, tuple[asyncio.Future[str], frozenset[str]]] = {}

    def asker(self, uri: str, digest: str) -> Ask:
        """How a run of a document's stretch asks."""

        async def ask(question: Question) -> Reply:
            approval_id = question.approval_id
            options = _at_the_block(question)
            by_lens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._open[approval_id] = (by_lens, frozenset(option for option, _ in options))
            asking = Asking(approval_id, question.tool_id, options, "" if self._declares_messages else _whole(question))
            self._mark(Waiting(uri, digest, asking))
            by_client = asyncio.ensure_future(self._ask(question))
            try:
                await asyncio.wait({by_lens, by_client}, return_when=asyncio.FIRST_COMPLETED)
                if not by_lens.done() and by_client.result().answer == "unavailable" and self._marks_blocks:
                    asking = msgspec.structs.replace(asking, question=_whole(question))
                    self._mark(Waiting(uri, digest, asking))
                    self._client.message("warning", _where(question))
                    await by_lens
                return chosen(by_lens.result(), question.options) if by_lens.done() else by_client.result()
            finally:
                by_lens.cancel()
                by_client.cancel()
                self._open.pop(approval_id, None)
                self._runs.answered(approval_id)
                self._marks_changed(uri, asking)

        return ask

    def _mark(self, waiting: Waiting) -> None:
        self._runs.wait(waiting)
        self._marks_changed(waiting.uri, waiting.asking)

    def _marks_changed(self, uri: str, asking: Asking) -> None:
        self._client.refresh_marks()
        if asking.question:
            self._client.session.post(lambda: self._client.session.run_ended(uri))

    @property
    def _marks_blocks(self) -> bool:
        """Whether the client shows what can be chosen at a block."""
        can = self._client.session.can
        return can("textDocument.codeAction") or can("textDocument.codeLens")

    @property
    def _declares_messages(self) -> bool:
        """Whether the client says that it asks. Where it does not, it may ignore the request without an answer: then the whole question
        is a finding at the block, whose code actions and lenses answer it. A yes is a yes to what was shown."""
        session = self._client.session
        return session.can("window.showMessage") or session.capability("experimental.tamis.approval") == "request"

    @property
    def elicits(self) -> bool:
        """Whether the client can show questions of MCP servers."""
        session = self._client.session
        return (
            session.can("window.showMessage")
            or self._marks_blocks
            or (
                session.capability("experimental.tamis.approval") == "request"
                and session.capability("experimental.tamis.elicitation") is True
            )
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
        """Takes the answer of a lens; False when nothing waits for it (any more), or it is none of those at the block."""
        waiting, options = self._open.get(approval_id, (None, frozenset[str]()))
        if waiting is None or waiting.done() or option_id not in options:
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


def _at_the_block(question: Question) -> tuple[tuple[str, str], ...]:
    """The answers that stand at the block, with their titles: all of a server's choice, the plain ones of an approval. A form is filled
    in, and an address is opened, by the client that shows them: there it can only be declined."""
    asked = question.elicitation
    typed = asked is not None and (asked.form is not UNSET or asked.url is not UNSET)

    def title(option: ApprovalOption) -> str | None:
        if typed and not option.kind.startswith("reject"):
            return None
        return f"→ {option.label}" if question.elicitation is not None else _TITLES.get(option.option_id)

    return tuple((option.option_id, text) for option in question.options if (text := title(option)) is not None)


def _where(question: Question) -> str:
    seconds = max(1, question.timeout_ms // 1000)
    return f"{question.tool_id} waits {seconds} s for your answer: choose one at its block, by a code action or a lens"


def _whole(question: Question) -> str:
    """All of a question on one line."""
    if question.elicitation is not None:
        return question_text(question)
    args = json_text(question.args)
    return sentence(question.tool_id, question.display_name, args, question.permissions, MAX_WHOLE_CHARS)
