"""Asking the person at the editor before a call runs: the first way that the client can, and what each answer means.

The ladder (interface, Reverse request): ``tool/requestApproval`` where the client declares it, ``window/showMessageRequest``, else there is
no one to ask. The same question stands as lenses at its block, whichever is answered first counts. Grants for the session end with
it. Must not decide whether a person has to be asked (``server/runtime/calls/approving.py`` does).
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from tamis.protocols.observation import plain
from tamis.server.analysis.running.lenses import Asking
from tamis.server.lsp.client import Client
from tamis.server.lsp.running.runs import Runs, Waiting
from tamis.server.lsp.running.virtual import VirtualDocuments
from tamis.server.runtime.calls.model import Answer, Ask, Question
from tamis.server.wire.jsonrpc import RpcError

ALLOW, SESSION, DENY, DETAILS = "Allow once", "Allow for this session", "Deny", "Details"
MAX_ARGS_CHARS = 2_000
MAX_DETAILS_CHARS = 20_000
OPTIONS = (
    {"optionId": "allow", "label": ALLOW, "kind": "allow_once"},
    {"optionId": "session", "label": SESSION, "kind": "allow_session"},
    {"optionId": "reject", "label": DENY, "kind": "reject_once"},
)


class Approvals:
    """The questions of one session and what was granted for its length."""

    def __init__(self, client: Client, runs: Runs, documents: VirtualDocuments) -> None:
        self._client = client
        self._runs = runs
        self._documents = documents
        self._granted: set[tuple[str, str, str]] = set()
        self._open: dict[str, asyncio.Future[str]] = {}
        self._number = 0

    def asker(self, root: str, uri: str, digest: str) -> Ask:
        """How a run of a document's stretch asks."""

        async def ask(question: Question) -> Answer:
            key = (root, question.tool_id, _rights(question))
            if key in self._granted:
                return "allow"
            self._number += 1
            approval_id = f"approval-{self._number}"
            by_lens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._open[approval_id] = by_lens
            self._runs.wait(Waiting(uri, digest, Asking(approval_id, question.tool_id)))
            self._client.refresh_marks()
            by_client = asyncio.ensure_future(self._ask(approval_id, question))
            try:
                await asyncio.wait({by_lens, by_client}, return_when=asyncio.FIRST_COMPLETED)
                option = by_lens.result() if by_lens.done() else by_client.result()
            finally:
                by_lens.cancel()
                by_client.cancel()
                self._open.pop(approval_id, None)
                self._runs.answered(approval_id)
                self._client.refresh_marks()
            if option == "session":
                self._granted.add(key)
                return "allow"
            answers: dict[str, Answer] = {"allow": "allow", "reject": "deny", "unavailable": "unavailable"}
            return answers.get(option, "cancelled")

        return ask

    def answer(self, approval_id: str, option_id: str) -> bool:
        """Takes the answer of a lens; False when nothing waits for it (any more)."""
        waiting = self._open.get(approval_id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(option_id)
        return True

    async def _ask(self, approval_id: str, question: Question) -> str:
        try:
            if self._client.session.capability("experimental.tamis.approval") == "request":
                return await self._request(approval_id, question)
            return await self._message(approval_id, question)
        except RpcError:
            return "unavailable"

    async def _request(self, approval_id: str, question: Question) -> str:
        until = datetime.now(UTC) + timedelta(milliseconds=question.timeout_ms)
        granted = question.permissions.granted
        reply = await self._client.ask(
            "tool/requestApproval",
            {
                "approvalId": approval_id,
                "callId": question.call_id,
                "tool": question.tool_id,
                "args": question.args,
                "argsPreview": _cut(_json(question.args), MAX_ARGS_CHARS),
                "risk": "high" if granted.write or granted.hosts else "low",
                "permissions": question.permissions,
                "options": OPTIONS,
                "expiresAt": until.isoformat(),
            },
        )
        content = cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}
        return str(content.get("optionId")) if content.get("outcome") == "selected" else "cancelled"

    async def _message(self, approval_id: str, question: Question) -> str:
        text = _sentence(question, MAX_ARGS_CHARS)
        titles = [ALLOW, SESSION, DENY, DETAILS]
        while True:
            chosen = await self._client.choose("warning", text, titles)
            if chosen != DETAILS:
                return {ALLOW: "allow", SESSION: "session", DENY: "reject"}.get(chosen or "", "cancelled")
            uri = f"tamis-result:/{approval_id}.json"
            self._documents.put(uri, msgspec.json.format(msgspec.json.encode(question), indent=2).decode())
            if not self._client.show(uri):
                # Everything stands in the question itself where no document can be opened.
                text = _sentence(question, MAX_DETAILS_CHARS)
                titles = [ALLOW, SESSION, DENY]


def _sentence(question: Question, limit: int) -> str:
    granted = question.permissions.granted
    rights = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("read", granted.read),
            ("write", granted.write),
            ("reach", granted.hosts),
            ("use", granted.capabilities),
        )
        if names
    ]
    name = question.display_name
    title = f"{question.tool_id} ({name})" if name and name != question.tool_id else question.tool_id
    may = f" It may {'; '.join(rights)}." if rights else ""
    # A direction or control character in an argument must not change what the question seems to say.
    return plain(f"Run {title} with these arguments? {_cut(_json(question.args), limit)}{_cut(may, limit)}")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _rights(question: Question) -> str:
    """What was granted, as a digest: a tool that may do more than it could when it was allowed is asked about again."""
    return hashlib.sha256(msgspec.json.encode(question.permissions.granted)).hexdigest()
