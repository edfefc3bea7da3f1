"""The questions of one text, asked at once before the turn of its first call comes (V61).

Each call takes its answer when its turn comes, if it is still the call that was shown. Must not know texts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Sequence

from tamis.server.runtime.calls.model import Batch, CallContext, Question, Reply
from tamis.server.runtime.execution.approvals.questions import Approvals, in_batch


class Together:
    """Questions that are open together."""

    def __init__(self, approvals: Approvals, questions: Sequence[Question], context: CallContext) -> None:
        """Asks all of them now."""
        identity = f"batch-{os.urandom(8).hex()}"
        self._waiting: dict[tuple[str, str], asyncio.Task[Reply]] = {}
        for index, question in enumerate(questions):
            asked = in_batch(question, Batch(identity, index, len(questions)))
            task = asyncio.get_running_loop().create_task(approvals.ask(asked, context))
            self._waiting[question.call_id, question.binding] = task

    def __call__(self, question: Question) -> Awaitable[Reply] | None:
        """The answer to a question that was asked already, once; None when it has to be asked."""
        return self._waiting.pop((question.call_id, question.binding), None)

    async def end(self) -> None:
        """Withdraws what no call came for."""
        left, self._waiting = list(self._waiting.values()), {}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
