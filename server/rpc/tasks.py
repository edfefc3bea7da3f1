"""Tasks (``task/list``, ``task/get``, ``task/result``, ``task/answer``, ``task/cancel``) and cancelling what runs (``tool/cancel``). Holds no rules of its own."""

from __future__ import annotations

import asyncio

import msgspec

from tamis.protocols.contract import CancelResult, ExecutionResult, Task, TaskList
from tamis.server.rpc.approvals import GivenApproval, token_answer, unknown
from tamis.server.rpc.params import Group, Host, Params, check_page
from tamis.server.rpc.session import Request, named_error
from tamis.server.runtime.execution.approvals.questions import ApprovalUnknown
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError


class ListTasks(Params, kw_only=True):
    """Params of ``task/list``."""

    cursor: str | None = None
    """``nextCursor`` of the page before."""
    limit: int | None = None
    """Tasks on a page, at most 100."""


class OneTask(Params, kw_only=True):
    """Params of ``task/get`` and ``task/cancel``."""

    task_id: str


class TaskOutcome(Params, kw_only=True):
    """Params of ``task/result``."""

    task_id: str
    wait_ms: int = 0
    """Milliseconds to wait for the end of the task, at most an hour."""


class AnswerTask(Params, kw_only=True):
    """Params of ``task/answer``."""

    task_id: str
    approval: GivenApproval
    """The token of one of the task's ``approvals``, and what its person chose."""


class Cancel(Params, kw_only=True):
    """Params of ``tool/cancel``: at least one of them; a call must fit both ``callId`` and ``sessionId`` where both are given."""

    call_id: str | None = None
    task_id: str | None = None
    session_id: str | None = None


class _Methods:
    """The methods, for one client."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def page(self, _request: Request, params: ListTasks) -> TaskList:
        """Lists the tasks of the root, the newest first, also those of other daemons."""
        check_page(params.cursor, params.limit)
        return await self._host.runtime.parts.tasks.page(params.cursor, params.limit)

    async def get(self, _request: Request, params: OneTask) -> Task:
        """How a task is."""
        task = await self._host.runtime.parts.tasks.get(params.task_id)
        if task is None:
            raise _unknown(params.task_id)
        return self._with_questions(task)

    async def answer(self, _request: Request, params: AnswerTask) -> Task:
        """Answers a question that a task has while it is ``inputRequired``, and gives how it is then."""
        answer = token_answer(params.approval)
        if answer is None or await self._host.runtime.parts.tasks.get(params.task_id) is None:
            raise _unknown(params.task_id)
        try:
            self._host.runtime.parts.tasks.answer(params.task_id, answer)
        except ApprovalUnknown as error:
            raise unknown(error, "task/get gives the questions that the task has now") from None
        await asyncio.sleep(0)  # the task goes on with it
        task = await self._host.runtime.parts.tasks.get(params.task_id)
        if task is None:
            raise _unknown(params.task_id)
        return self._with_questions(task)

    def _with_questions(self, task: Task) -> Task:
        asked = self._host.runtime.parts.tasks.asked(task.task_id)
        return msgspec.structs.replace(task, approvals=asked) if asked else task

    async def result(self, _request: Request, params: TaskOutcome) -> ExecutionResult:
        """The result of a task's call, waiting for it as long as asked; ``accepted`` while there is none."""
        result = await self._host.runtime.parts.tasks.result(params.task_id, params.wait_ms)
        if result is None:
            raise _unknown(params.task_id)
        return result

    async def cancel(self, _request: Request, params: OneTask) -> Task:
        """Cancels a task, also one of another daemon, and gives how it is then; one that has ended stays as it is."""
        task = await self._host.runtime.parts.tasks.cancel(params.task_id)
        if task is None:
            raise _unknown(params.task_id)
        return task

    async def cancel_running(self, _request: Request, params: Cancel) -> CancelResult:
        """Cancels a call, a task, or all that runs for a session; they end soon, with their own results."""
        if not (params.call_id or params.task_id or params.session_id):
            raise RpcError(INVALID_PARAMS, "wrong params: give callId, taskId or sessionId")
        parts = self._host.runtime.parts
        cancelled: dict[str, None] = {}
        not_found: list[str] = []
        if params.call_id or params.session_id:
            whole = "" if params.call_id else params.session_id or ""
            between = parts.running_calls.has_session(whole) if whole else False
            cancelled_ids = parts.running_calls.cancel(call_id=params.call_id, session_id=params.session_id)
            if whole:
                cancelled_ids += await parts.tasks.cancel_session(whole)
            if between and not cancelled_ids:
                # a text or a step between two calls: what is cancelled has no id but the session's
                cancelled_ids = [whole]
            cancelled.update(dict.fromkeys(cancelled_ids))
            if not cancelled_ids:
                not_found.append(params.call_id or params.session_id or "")
        if params.task_id:
            task = await parts.tasks.cancel(params.task_id)
            if task is not None and task.status in ("working", "inputRequired", "cancelled"):
                cancelled[params.task_id] = None
            else:
                not_found.append(params.task_id)
        return CancelResult(cancelled=list(cancelled), not_found=not_found)


def _unknown(task_id: str) -> RpcError:
    text = f"no task '{task_id[:200]}'; it was never there, or it is forgotten (tasks.keepSeconds, tasks.keep)"
    return named_error("taskNotFound", text, "task/list names the tasks that there are")


def methods(host: Host) -> Group:
    """The methods of this group."""
    group = _Methods(host)
    return {
        "task/list": (ListTasks, group.page),
        "task/get": (OneTask, group.get),
        "task/result": (TaskOutcome, group.result),
        "task/answer": (AnswerTask, group.answer),
        "task/cancel": (OneTask, group.cancel),
        "tool/cancel": (Cancel, group.cancel_running),
    }
