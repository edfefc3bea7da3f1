"""The daemon's methods as methods of the clients. Written by tools/published_contract.py from what the daemon declares."""

# fmt: off
# ruff: noqa: A002
# pyright: reportUnusedImport=false

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, cast

from tamis.client import params as _params
from tamis.client import results as _results

RESULTS: dict[str, type[_results.Result] | tuple[type[_results.Result], ...]] = {
    "agent/end": _results.EndedSession,
    "agent/session": _results.SessionView,
    "agent/step": _results.StepResult,
    "approval/list": _results.ApprovalList,
    "approval/revoke": _results.RevokedApprovals,
    "initialize": _results.InitializeResult,
    "observation/format": _results.ObservationText,
    "parse/close": _results.ParseResult,
    "parse/feed": _results.FedText,
    "parse/open": _results.OpenedStream,
    "prompt/generate": _results.PromptResult,
    "prompt/grammar": _results.GrammarText,
    "registry/reload": _results.RegistryChanges,
    "registry/status": _results.RegistryChanges,
    "rpc.discover": _results.OpenRpcDocument,
    "server/health": _results.Health,
    "server/metrics": (_results.MetricsReport, _results.MetricsText),
    "service/list": _results.ServiceList,
    "service/register": _results.ServiceRegistration,
    "service/unregister": _results.ServiceRemoval,
    "state/get": _results.StateValue,
    "state/set": _results.StateWritten,
    "stream/read": _results.StreamItems,
    "task/answer": _results.Task,
    "task/cancel": _results.Task,
    "task/get": _results.Task,
    "task/list": _results.TaskList,
    "task/result": _results.ExecutionResult,
    "tool/cancel": _results.CancelResult,
    "tool/convert": _results.ConvertResult,
    "tool/describe": _results.Description,
    "tool/execute": _results.ExecutionResult,
    "tool/executeText": _results.ExecuteTextResult,
    "tool/explain": _results.ExplainResult,
    "tool/list": _results.ToolList,
    "tool/parse": _results.ParseResult,
    "tool/repair": _results.RepairResult,
    "tool/validate": _results.ValidateResult,
    "workflow/describe": _results.WorkflowDescription,
    "workflow/graph": _results.WorkflowGraph,
    "workflow/list": _results.WorkflowList,
    "workflow/run": _results.WorkflowRunResult,
}
"""The Struct that each method's result is decoded into, of several the first that fits; one that is not here gives plain data."""


class Methods:
    """One method for each method of the daemon; params that are left out are not sent."""

    @abstractmethod
    def call_with(self, method: str, params: dict[str, Any], timeout: float | None) -> Any:
        """Sends a request and gives its result as the method's Struct."""

    def agent_end(
        self,
        *,
        session_id: str,
        timeout: float | None = None,
    ) -> _results.EndedSession:
        """Forgets an agent's session, and cancels what still runs for it.

        session_id: The agent's session.
        """
        params: dict[str, Any] = {
            "sessionId": session_id,
        }
        return cast("_results.EndedSession", self.call_with("agent/end", params, timeout))

    def agent_session(
        self,
        *,
        session_id: str,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> _results.SessionView:
        """What is kept of an agent's session: its messages, whether it runs, and how many rounds it had.

        session_id: The agent's session.
        cursor: `nextCursor` of an earlier answer.
        limit: How many to give at most.
        """
        params: dict[str, Any] = {
            "sessionId": session_id,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("_results.SessionView", self.call_with("agent/session", params, timeout))

    def agent_step(
        self,
        *,
        text: str,
        session_id: str,
        config: _params.ToolCallConfig | None = None,
        new_turn: bool | None = None,
        complete: bool | None = None,
        options: _params.ReadingOptions | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        timeout: float | None = None,
    ) -> _results.StepResult:
        """One round of an agent's loop: reads a model's answer, runs its calls, and writes what the model reads next.

        text: The text.
        session_id: The agent's session.
        config: What the agent may do in this step; laid over the profile.
        new_turn: Somebody spoke to the model since its last answer.
        complete: `false`: the text was cut off.
        options: How to read; what is given goes over the settings.
        approval: The answer to a question that a result of this same answer held.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        """
        params: dict[str, Any] = {
            "text": text,
            "sessionId": session_id,
            "config": config,
            "newTurn": new_turn,
            "complete": complete,
            "options": options,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
        }
        return cast("_results.StepResult", self.call_with("agent/step", params, timeout))

    def approval_list(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.ApprovalList:
        """The answers of persons that hold for later calls in this folder, and the questions that are open."""
        params: dict[str, Any] = {}
        return cast("_results.ApprovalList", self.call_with("approval/list", params, timeout))

    def approval_revoke(
        self,
        *,
        id: str | None = None,
        tool_id: str | None = None,
        all: bool | None = None,
        timeout: float | None = None,
    ) -> _results.RevokedApprovals:
        """Forgets answers that hold; the next call is asked about again.

        id: Which one, as a list gave it.
        tool_id: The tool's id or an alias.
        all: `true`: all of them.
        """
        params: dict[str, Any] = {
            "id": id,
            "toolId": tool_id,
            "all": all,
        }
        return cast("_results.RevokedApprovals", self.call_with("approval/revoke", params, timeout))

    def observation_format(
        self,
        *,
        results: Sequence[_params.GivenResult | _results.ExecutionResult],
        protocol: str,
        shape: Literal["inputs", "tag"] | None = None,
        max_chars: int | None = None,
        timeout: float | None = None,
    ) -> _results.ObservationText:
        """Writes results as the text that a model reads next.

        results: `ExecutionResult`s, or as much of them as an observation needs.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        max_chars: The most characters of the whole text.
        """
        params: dict[str, Any] = {
            "results": results,
            "protocol": protocol,
            "shape": shape,
            "maxChars": max_chars,
        }
        return cast("_results.ObservationText", self.call_with("observation/format", params, timeout))

    def parse_close(
        self,
        *,
        stream_id: str,
        complete: bool | None = None,
        summary: bool | None = None,
        timeout: float | None = None,
    ) -> _results.ParseResult:
        """Ends a text that came in pieces; gives what `tool/parse` gives of the whole text.

        stream_id: The text that `parse/open` began.
        complete: `false`: the text was cut off.
        summary: Leave out what the host has from `parse/feed`: the texts, and of each call its arguments and their places.
        """
        params: dict[str, Any] = {
            "streamId": stream_id,
            "complete": complete,
            "summary": summary,
        }
        return cast("_results.ParseResult", self.call_with("parse/close", params, timeout))

    def parse_feed(
        self,
        *,
        stream_id: str,
        chunk: str,
        timeout: float | None = None,
    ) -> _results.FedText:
        """Takes the next piece of a text; gives what is certain with it: text to show, and calls.

        stream_id: The text that `parse/open` began.
        chunk: The next piece of the text.
        """
        params: dict[str, Any] = {
            "streamId": stream_id,
            "chunk": chunk,
        }
        return cast("_results.FedText", self.call_with("parse/feed", params, timeout))

    def parse_open(
        self,
        *,
        protocol: str | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.OpenedStream:
        """Begins a text that comes in pieces.

        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "protocol": protocol,
            "tools": tools,
            "options": options,
        }
        return cast("_results.OpenedStream", self.call_with("parse/open", params, timeout))

    def prompt_generate(
        self,
        *,
        protocol: str | None = None,
        shape: Literal["inputs", "tag"] | None = None,
        tool_ids: list[str] | None = None,
        filter: _params.ToolFilter | None = None,
        style: Literal["compact", "full"] | None = None,
        few_shot: int | None = None,
        instructions: bool | None = None,
        template: str | None = None,
        max_tokens: int | None = None,
        context: _params.Context | None = None,
        timeout: float | None = None,
    ) -> _results.PromptResult:
        """Writes what a model is told about the tools.

        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        tool_ids: Which tools, by id or alias; without it every tool that may be called.
        filter: Which tools are wanted.
        style: How much is said of each tool.
        few_shot: How many worked calls to show.
        instructions: `false`: leave out how to call.
        template: A text with `{{tools}}` where the definitions go.
        max_tokens: The most tokens of the whole text.
        context: Whose prompt it is: the profile of `agentId` decides which tools are in it.
        """
        params: dict[str, Any] = {
            "protocol": protocol,
            "shape": shape,
            "toolIds": tool_ids,
            "filter": filter,
            "style": style,
            "fewShot": few_shot,
            "instructions": instructions,
            "template": template,
            "maxTokens": max_tokens,
            "context": context,
        }
        return cast("_results.PromptResult", self.call_with("prompt/generate", params, timeout))

    def prompt_grammar(
        self,
        *,
        format: Literal["gbnf", "jsonSchema"],
        protocol: str | None = None,
        shape: Literal["inputs", "tag"] | None = None,
        tool_ids: list[str] | None = None,
        filter: _params.ToolFilter | None = None,
        timeout: float | None = None,
    ) -> _results.GrammarText:
        """Writes a grammar under which a model can only write calls that read back whole.

        format: The form that is wanted.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        tool_ids: Which tools, by id or alias; without it every tool that may be called.
        filter: Which tools are wanted.
        """
        params: dict[str, Any] = {
            "format": format,
            "protocol": protocol,
            "shape": shape,
            "toolIds": tool_ids,
            "filter": filter,
        }
        return cast("_results.GrammarText", self.call_with("prompt/grammar", params, timeout))

    def registry_reload(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.RegistryChanges:
        """Reads settings, tools, workflows and the agent profile again, and says what changed since the last reload."""
        params: dict[str, Any] = {}
        return cast("_results.RegistryChanges", self.call_with("registry/reload", params, timeout))

    def registry_status(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.RegistryChanges:
        """Says what is wrong with definitions, and what changed since the last reload; reads nothing."""
        params: dict[str, Any] = {}
        return cast("_results.RegistryChanges", self.call_with("registry/status", params, timeout))

    def rpc_discover(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.OpenRpcDocument:
        """Gives the OpenRPC document of this daemon; needs neither trust nor tools."""
        params: dict[str, Any] = {}
        return cast("_results.OpenRpcDocument", self.call_with("rpc.discover", params, timeout))

    def server_health(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.Health:
        """Says how the daemon is: versions, the sandbox, what runs, what is wrong."""
        params: dict[str, Any] = {}
        return cast("_results.Health", self.call_with("server/health", params, timeout))

    def server_metrics(
        self,
        *,
        format: Literal["json", "prometheus"] | None = None,
        timeout: float | None = None,
    ) -> _results.MetricsReport | _results.MetricsText:
        """What was counted since the daemon started: calls, outcomes, times, requests, approvals, its own process.

        format: `prometheus`: the text that a scraper reads.
        """
        params: dict[str, Any] = {
            "format": format,
        }
        return cast("_results.MetricsReport | _results.MetricsText", self.call_with("server/metrics", params, timeout))

    def service_list(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.ServiceList:
        """Lists the registered services."""
        params: dict[str, Any] = {}
        return cast("_results.ServiceList", self.call_with("service/list", params, timeout))

    def service_register(
        self,
        *,
        service_name: str,
        methods: list[Any],
        timeout: float | None = None,
    ) -> _results.ServiceRegistration:
        """Registers a service of the host: the daemon calls its methods with `service/invoke`. A service that is there is replaced.

        service_name: The service's name; it stands in front of the ids of its tools.
        methods: The methods (`MethodMetadata`): `name`, `description`, `parameters`, `agentCallable` and the rest of the page on services.
        """
        params: dict[str, Any] = {
            "serviceName": service_name,
            "methods": methods,
        }
        return cast("_results.ServiceRegistration", self.call_with("service/register", params, timeout))

    def service_unregister(
        self,
        *,
        service_name: str,
        methods: list[str] | None = None,
        timeout: float | None = None,
    ) -> _results.ServiceRemoval:
        """Takes a service of the host away, or some of its methods. Calls that run are not disturbed.

        service_name: The service.
        methods: Only these of its methods; all of them without it.
        """
        params: dict[str, Any] = {
            "serviceName": service_name,
            "methods": methods,
        }
        return cast("_results.ServiceRemoval", self.call_with("service/unregister", params, timeout))

    def state_get(
        self,
        *,
        scope: Literal["private", "world"] | None = None,
        agent_id: str | None = None,
        path: str | None = None,
        timeout: float | None = None,
    ) -> _results.StateValue:
        """Reads the world's state or an agent's private one.

        scope: The state of the world, or that of one agent.
        agent_id: Whose private state; empty: that of calls without `context.agentId`.
        path: Where to look, with dots between names; empty: the whole.
        """
        params: dict[str, Any] = {
            "scope": scope,
            "agentId": agent_id,
            "path": path,
        }
        return cast("_results.StateValue", self.call_with("state/get", params, timeout))

    def state_set(
        self,
        *,
        scope: Literal["private", "world"] | None = None,
        agent_id: str | None = None,
        values: dict[str, Any] | None = None,
        remove: list[str] | None = None,
        timeout: float | None = None,
    ) -> _results.StateWritten:
        """Changes the world's state, which `ReadWorldStateTool` reads, or an agent's private one. All of it is changed or nothing.

        scope: The state of the world, or that of one agent.
        agent_id: Whose private state; empty: that of calls without `context.agentId`.
        values: What to put at which path; objects on the way are made. The path `""` replaces the whole, by an object.
        remove: Paths at which nothing stands afterwards; they are removed first.
        """
        params: dict[str, Any] = {
            "scope": scope,
            "agentId": agent_id,
            "values": values,
            "remove": remove,
        }
        return cast("_results.StateWritten", self.call_with("state/set", params, timeout))

    def stream_read(
        self,
        *,
        handle: str,
        wait_ms: int | None = None,
        timeout: float | None = None,
    ) -> _results.StreamItems:
        """Gives what has come in a streamed output since the last reading, waiting for it as long as asked.

        handle: The handle that a result gave for its stream.
        wait_ms: Milliseconds to wait for the first new item.
        """
        params: dict[str, Any] = {
            "handle": handle,
            "waitMs": wait_ms,
        }
        return cast("_results.StreamItems", self.call_with("stream/read", params, timeout))

    def task_answer(
        self,
        *,
        task_id: str,
        approval: _params.GivenApproval,
        timeout: float | None = None,
    ) -> _results.Task:
        """Answers a question that a task has while it is `inputRequired`, and gives how it is then.

        task_id: The task.
        approval: The token of one of the task's `approvals`, and what its person chose.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
            "approval": approval,
        }
        return cast("_results.Task", self.call_with("task/answer", params, timeout))

    def task_cancel(
        self,
        *,
        task_id: str,
        timeout: float | None = None,
    ) -> _results.Task:
        """Cancels a task, also one of another daemon, and gives how it is then; one that has ended stays as it is.

        task_id: The task.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
        }
        return cast("_results.Task", self.call_with("task/cancel", params, timeout))

    def task_get(
        self,
        *,
        task_id: str,
        timeout: float | None = None,
    ) -> _results.Task:
        """How a task is.

        task_id: The task.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
        }
        return cast("_results.Task", self.call_with("task/get", params, timeout))

    def task_list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> _results.TaskList:
        """Lists the tasks of the root, the newest first, also those of other daemons.

        cursor: `nextCursor` of the page before.
        limit: Tasks on a page, at most 100.
        """
        params: dict[str, Any] = {
            "cursor": cursor,
            "limit": limit,
        }
        return cast("_results.TaskList", self.call_with("task/list", params, timeout))

    def task_result(
        self,
        *,
        task_id: str,
        wait_ms: int | None = None,
        timeout: float | None = None,
    ) -> _results.ExecutionResult:
        """The result of a task's call, waiting for it as long as asked; `accepted` while there is none.

        task_id: The task.
        wait_ms: Milliseconds to wait for the end of the task, at most an hour.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
            "waitMs": wait_ms,
        }
        return cast("_results.ExecutionResult", self.call_with("task/result", params, timeout))

    def tool_cancel(
        self,
        *,
        call_id: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        timeout: float | None = None,
    ) -> _results.CancelResult:
        """Cancels a call, a task, or all that runs for a session; they end soon, with their own results.

        call_id: The call's id in this session.
        task_id: The task.
        session_id: The agent's session.
        """
        params: dict[str, Any] = {
            "callId": call_id,
            "taskId": task_id,
            "sessionId": session_id,
        }
        return cast("_results.CancelResult", self.call_with("tool/cancel", params, timeout))

    def tool_convert(
        self,
        *,
        to: str,
        text: str | None = None,
        calls: list[dict[str, Any]] | dict[str, Any] | None = None,
        protocol: str | None = None,
        shape: Literal["inputs", "tag"] | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ConvertResult:
        """Writes calls in another protocol or a vendor's form; every loss is named.

        to: The form that is wanted: a protocol, or `openai`, `anthropic`, `mcp`.
        text: The text.
        calls: Calls as `tool/parse` gave them.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "to": to,
            "text": text,
            "calls": calls,
            "protocol": protocol,
            "shape": shape,
            "tools": tools,
            "options": options,
        }
        return cast("_results.ConvertResult", self.call_with("tool/convert", params, timeout))

    def tool_describe(
        self,
        *,
        tool_id: str,
        version: str | None = None,
        as_: Literal["anthropic", "cursor", "gemini", "mcp", "native", "openai", "openaiStrict", "smolagents", "vcp"] | None = None,
        timeout: float | None = None,
    ) -> _results.Description:
        """Gives the definition of one tool, as it is or in the form of another project.

        tool_id: The tool's id or an alias.
        version: The version, or a SemVer range where one is chosen.
        as_: The form that is wanted.
        """
        params: dict[str, Any] = {
            "toolId": tool_id,
            "version": version,
            "as": as_,
        }
        return cast("_results.Description", self.call_with("tool/describe", params, timeout))

    def tool_execute(
        self,
        *,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        tool_id: str | None = None,
        version: str | None = None,
        args: dict[str, Any] | None = None,
        call: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> _results.ExecutionResult:
        """Runs one tool in its sandbox; what happened to it is the result's `status`, never an error of the request.

        timeout_ms: Wall time of one call in milliseconds; only lowers the limit.
        idempotency_key: A key that was used before gives the stored result.
        dry_run: `true`: check everything, run nothing.
        approval: The `token` of a result that asks, and the option that the person chose.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        tool_id: The tool's id or an alias.
        version: The version, or a SemVer range where one is chosen.
        args: The arguments by name.
        call: A call as `tool/parse` gave it, instead of `toolId` and `args`.
        """
        params: dict[str, Any] = {
            "timeoutMs": timeout_ms,
            "idempotencyKey": idempotency_key,
            "dryRun": dry_run,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
            "toolId": tool_id,
            "version": version,
            "args": args,
            "call": call,
        }
        return cast("_results.ExecutionResult", self.call_with("tool/execute", params, timeout))

    def tool_execute_text(
        self,
        *,
        text: str,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        protocol: str | None = None,
        complete: bool | None = None,
        mode: Literal["parallel", "sequential"] | None = None,
        on_error: Literal["continue", "stop"] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ExecuteTextResult:
        """Finds the calls of a model's text, runs them in order and writes one observation for the model.

        text: The text.
        timeout_ms: Wall time of one call in milliseconds; only lowers the limit.
        idempotency_key: A key that was used before gives the stored result.
        dry_run: `true`: check everything, run nothing.
        approval: The `token` of a result that asks, and the option that the person chose.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        mode: One after the other, or at once (ACTION and VCP only).
        on_error: Whether a failed call stops the rest.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "timeoutMs": timeout_ms,
            "idempotencyKey": idempotency_key,
            "dryRun": dry_run,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
            "protocol": protocol,
            "complete": complete,
            "mode": mode,
            "onError": on_error,
            "options": options,
        }
        return cast("_results.ExecuteTextResult", self.call_with("tool/executeText", params, timeout))

    def tool_explain(
        self,
        *,
        text: str,
        protocol: str | None = None,
        complete: bool | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ExplainResult:
        """Says what the reader assumed, and the readings that it did not take.

        text: The text.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "protocol": protocol,
            "complete": complete,
            "tools": tools,
            "options": options,
        }
        return cast("_results.ExplainResult", self.call_with("tool/explain", params, timeout))

    def tool_list(
        self,
        *,
        filter: _params.ToolFilter | None = None,
        view: Literal["full", "summary"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> _results.ToolList:
        """Lists the registered tools, filtered, in a stable order, in pages.

        filter: Which tools are wanted.
        view: `full` adds each tool's definition.
        cursor: `nextCursor` of an earlier answer.
        limit: How many to give at most.
        """
        params: dict[str, Any] = {
            "filter": filter,
            "view": view,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("_results.ToolList", self.call_with("tool/list", params, timeout))

    def tool_parse(
        self,
        *,
        text: str,
        protocol: str | None = None,
        complete: bool | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ParseResult:
        """Finds the calls of a model's text, with the place of every part; runs nothing.

        text: The text.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "protocol": protocol,
            "complete": complete,
            "tools": tools,
            "options": options,
        }
        return cast("_results.ParseResult", self.call_with("tool/parse", params, timeout))

    def tool_repair(
        self,
        *,
        text: str,
        protocol: str | None = None,
        complete: bool | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.RepairResult:
        """Gives the safe edits that make a text canonical, and its calls; they are the same before and after.

        text: The text.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "protocol": protocol,
            "complete": complete,
            "tools": tools,
            "options": options,
        }
        return cast("_results.RepairResult", self.call_with("tool/repair", params, timeout))

    def tool_validate(
        self,
        *,
        tool_id: str | None = None,
        args: dict[str, Any] | None = None,
        calls: list[dict[str, Any]] | None = None,
        manifest: dict[str, Any] | str | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        timeout: float | None = None,
    ) -> _results.ValidateResult:
        """Checks arguments, calls or a manifest, and coerces what passes; an unknown tool is a problem, not an error.

        tool_id: The tool's id or an alias.
        args: The arguments by name.
        calls: Calls as `tool/parse` gave them.
        manifest: A manifest as an object, or as its text: then problems have ranges.
        tools: Tools of this request only, to read and check with.
        """
        params: dict[str, Any] = {
            "toolId": tool_id,
            "args": args,
            "calls": calls,
            "manifest": manifest,
            "tools": tools,
        }
        return cast("_results.ValidateResult", self.call_with("tool/validate", params, timeout))

    def workflow_describe(
        self,
        *,
        workflow_id: str,
        timeout: float | None = None,
    ) -> _results.WorkflowDescription:
        """The tool that a workflow is to agents, its file as it stands, and what keeps its graph from being run.

        workflow_id: The file's name without extension; with `workflow:` before it, the file's own `id` and its path are taken too.
        """
        params: dict[str, Any] = {
            "workflowId": workflow_id,
        }
        return cast("_results.WorkflowDescription", self.call_with("workflow/describe", params, timeout))

    def workflow_graph(
        self,
        *,
        workflow_id: str,
        format: Literal["mermaid", "svg"] | None = None,
        timeout: float | None = None,
    ) -> _results.WorkflowGraph:
        """Draws a workflow, with what its last run took where it ran.

        workflow_id: The workflow's id.
        format: The form that is wanted.
        """
        params: dict[str, Any] = {
            "workflowId": workflow_id,
            "format": format,
        }
        return cast("_results.WorkflowGraph", self.call_with("workflow/graph", params, timeout))

    def workflow_list(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.WorkflowList:
        """Lists the workflows with what they take and give."""
        params: dict[str, Any] = {}
        return cast("_results.WorkflowList", self.call_with("workflow/list", params, timeout))

    def workflow_run(
        self,
        *,
        workflow_id: str,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        inputs: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> _results.WorkflowRunResult:
        """Runs a workflow as a call of its tool; every node is in `steps`, also those that were not reached.

        workflow_id: The workflow's id.
        timeout_ms: Wall time of one call in milliseconds; only lowers the limit.
        idempotency_key: A key that was used before gives the stored result.
        dry_run: `true`: check everything, run nothing.
        approval: The `token` of a result that asks, and the option that the person chose.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        inputs: The values of the interface's inputs; those with a default may be missing.
        """
        params: dict[str, Any] = {
            "workflowId": workflow_id,
            "timeoutMs": timeout_ms,
            "idempotencyKey": idempotency_key,
            "dryRun": dry_run,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
            "inputs": inputs,
        }
        return cast("_results.WorkflowRunResult", self.call_with("workflow/run", params, timeout))


class AsyncMethods:
    """One method for each method of the daemon; params that are left out are not sent."""

    @abstractmethod
    async def call_with(self, method: str, params: dict[str, Any], timeout: float | None) -> Any:
        """Sends a request and gives its result as the method's Struct."""

    async def agent_end(
        self,
        *,
        session_id: str,
        timeout: float | None = None,
    ) -> _results.EndedSession:
        """Forgets an agent's session, and cancels what still runs for it.

        session_id: The agent's session.
        """
        params: dict[str, Any] = {
            "sessionId": session_id,
        }
        return cast("_results.EndedSession", await self.call_with("agent/end", params, timeout))

    async def agent_session(
        self,
        *,
        session_id: str,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> _results.SessionView:
        """What is kept of an agent's session: its messages, whether it runs, and how many rounds it had.

        session_id: The agent's session.
        cursor: `nextCursor` of an earlier answer.
        limit: How many to give at most.
        """
        params: dict[str, Any] = {
            "sessionId": session_id,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("_results.SessionView", await self.call_with("agent/session", params, timeout))

    async def agent_step(
        self,
        *,
        text: str,
        session_id: str,
        config: _params.ToolCallConfig | None = None,
        new_turn: bool | None = None,
        complete: bool | None = None,
        options: _params.ReadingOptions | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        timeout: float | None = None,
    ) -> _results.StepResult:
        """One round of an agent's loop: reads a model's answer, runs its calls, and writes what the model reads next.

        text: The text.
        session_id: The agent's session.
        config: What the agent may do in this step; laid over the profile.
        new_turn: Somebody spoke to the model since its last answer.
        complete: `false`: the text was cut off.
        options: How to read; what is given goes over the settings.
        approval: The answer to a question that a result of this same answer held.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        """
        params: dict[str, Any] = {
            "text": text,
            "sessionId": session_id,
            "config": config,
            "newTurn": new_turn,
            "complete": complete,
            "options": options,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
        }
        return cast("_results.StepResult", await self.call_with("agent/step", params, timeout))

    async def approval_list(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.ApprovalList:
        """The answers of persons that hold for later calls in this folder, and the questions that are open."""
        params: dict[str, Any] = {}
        return cast("_results.ApprovalList", await self.call_with("approval/list", params, timeout))

    async def approval_revoke(
        self,
        *,
        id: str | None = None,
        tool_id: str | None = None,
        all: bool | None = None,
        timeout: float | None = None,
    ) -> _results.RevokedApprovals:
        """Forgets answers that hold; the next call is asked about again.

        id: Which one, as a list gave it.
        tool_id: The tool's id or an alias.
        all: `true`: all of them.
        """
        params: dict[str, Any] = {
            "id": id,
            "toolId": tool_id,
            "all": all,
        }
        return cast("_results.RevokedApprovals", await self.call_with("approval/revoke", params, timeout))

    async def observation_format(
        self,
        *,
        results: Sequence[_params.GivenResult | _results.ExecutionResult],
        protocol: str,
        shape: Literal["inputs", "tag"] | None = None,
        max_chars: int | None = None,
        timeout: float | None = None,
    ) -> _results.ObservationText:
        """Writes results as the text that a model reads next.

        results: `ExecutionResult`s, or as much of them as an observation needs.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        max_chars: The most characters of the whole text.
        """
        params: dict[str, Any] = {
            "results": results,
            "protocol": protocol,
            "shape": shape,
            "maxChars": max_chars,
        }
        return cast("_results.ObservationText", await self.call_with("observation/format", params, timeout))

    async def parse_close(
        self,
        *,
        stream_id: str,
        complete: bool | None = None,
        summary: bool | None = None,
        timeout: float | None = None,
    ) -> _results.ParseResult:
        """Ends a text that came in pieces; gives what `tool/parse` gives of the whole text.

        stream_id: The text that `parse/open` began.
        complete: `false`: the text was cut off.
        summary: Leave out what the host has from `parse/feed`: the texts, and of each call its arguments and their places.
        """
        params: dict[str, Any] = {
            "streamId": stream_id,
            "complete": complete,
            "summary": summary,
        }
        return cast("_results.ParseResult", await self.call_with("parse/close", params, timeout))

    async def parse_feed(
        self,
        *,
        stream_id: str,
        chunk: str,
        timeout: float | None = None,
    ) -> _results.FedText:
        """Takes the next piece of a text; gives what is certain with it: text to show, and calls.

        stream_id: The text that `parse/open` began.
        chunk: The next piece of the text.
        """
        params: dict[str, Any] = {
            "streamId": stream_id,
            "chunk": chunk,
        }
        return cast("_results.FedText", await self.call_with("parse/feed", params, timeout))

    async def parse_open(
        self,
        *,
        protocol: str | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.OpenedStream:
        """Begins a text that comes in pieces.

        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "protocol": protocol,
            "tools": tools,
            "options": options,
        }
        return cast("_results.OpenedStream", await self.call_with("parse/open", params, timeout))

    async def prompt_generate(
        self,
        *,
        protocol: str | None = None,
        shape: Literal["inputs", "tag"] | None = None,
        tool_ids: list[str] | None = None,
        filter: _params.ToolFilter | None = None,
        style: Literal["compact", "full"] | None = None,
        few_shot: int | None = None,
        instructions: bool | None = None,
        template: str | None = None,
        max_tokens: int | None = None,
        context: _params.Context | None = None,
        timeout: float | None = None,
    ) -> _results.PromptResult:
        """Writes what a model is told about the tools.

        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        tool_ids: Which tools, by id or alias; without it every tool that may be called.
        filter: Which tools are wanted.
        style: How much is said of each tool.
        few_shot: How many worked calls to show.
        instructions: `false`: leave out how to call.
        template: A text with `{{tools}}` where the definitions go.
        max_tokens: The most tokens of the whole text.
        context: Whose prompt it is: the profile of `agentId` decides which tools are in it.
        """
        params: dict[str, Any] = {
            "protocol": protocol,
            "shape": shape,
            "toolIds": tool_ids,
            "filter": filter,
            "style": style,
            "fewShot": few_shot,
            "instructions": instructions,
            "template": template,
            "maxTokens": max_tokens,
            "context": context,
        }
        return cast("_results.PromptResult", await self.call_with("prompt/generate", params, timeout))

    async def prompt_grammar(
        self,
        *,
        format: Literal["gbnf", "jsonSchema"],
        protocol: str | None = None,
        shape: Literal["inputs", "tag"] | None = None,
        tool_ids: list[str] | None = None,
        filter: _params.ToolFilter | None = None,
        timeout: float | None = None,
    ) -> _results.GrammarText:
        """Writes a grammar under which a model can only write calls that read back whole.

        format: The form that is wanted.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        tool_ids: Which tools, by id or alias; without it every tool that may be called.
        filter: Which tools are wanted.
        """
        params: dict[str, Any] = {
            "format": format,
            "protocol": protocol,
            "shape": shape,
            "toolIds": tool_ids,
            "filter": filter,
        }
        return cast("_results.GrammarText", await self.call_with("prompt/grammar", params, timeout))

    async def registry_reload(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.RegistryChanges:
        """Reads settings, tools, workflows and the agent profile again, and says what changed since the last reload."""
        params: dict[str, Any] = {}
        return cast("_results.RegistryChanges", await self.call_with("registry/reload", params, timeout))

    async def registry_status(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.RegistryChanges:
        """Says what is wrong with definitions, and what changed since the last reload; reads nothing."""
        params: dict[str, Any] = {}
        return cast("_results.RegistryChanges", await self.call_with("registry/status", params, timeout))

    async def rpc_discover(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.OpenRpcDocument:
        """Gives the OpenRPC document of this daemon; needs neither trust nor tools."""
        params: dict[str, Any] = {}
        return cast("_results.OpenRpcDocument", await self.call_with("rpc.discover", params, timeout))

    async def server_health(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.Health:
        """Says how the daemon is: versions, the sandbox, what runs, what is wrong."""
        params: dict[str, Any] = {}
        return cast("_results.Health", await self.call_with("server/health", params, timeout))

    async def server_metrics(
        self,
        *,
        format: Literal["json", "prometheus"] | None = None,
        timeout: float | None = None,
    ) -> _results.MetricsReport | _results.MetricsText:
        """What was counted since the daemon started: calls, outcomes, times, requests, approvals, its own process.

        format: `prometheus`: the text that a scraper reads.
        """
        params: dict[str, Any] = {
            "format": format,
        }
        return cast("_results.MetricsReport | _results.MetricsText", await self.call_with("server/metrics", params, timeout))

    async def service_list(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.ServiceList:
        """Lists the registered services."""
        params: dict[str, Any] = {}
        return cast("_results.ServiceList", await self.call_with("service/list", params, timeout))

    async def service_register(
        self,
        *,
        service_name: str,
        methods: list[Any],
        timeout: float | None = None,
    ) -> _results.ServiceRegistration:
        """Registers a service of the host: the daemon calls its methods with `service/invoke`. A service that is there is replaced.

        service_name: The service's name; it stands in front of the ids of its tools.
        methods: The methods (`MethodMetadata`): `name`, `description`, `parameters`, `agentCallable` and the rest of the page on services.
        """
        params: dict[str, Any] = {
            "serviceName": service_name,
            "methods": methods,
        }
        return cast("_results.ServiceRegistration", await self.call_with("service/register", params, timeout))

    async def service_unregister(
        self,
        *,
        service_name: str,
        methods: list[str] | None = None,
        timeout: float | None = None,
    ) -> _results.ServiceRemoval:
        """Takes a service of the host away, or some of its methods. Calls that run are not disturbed.

        service_name: The service.
        methods: Only these of its methods; all of them without it.
        """
        params: dict[str, Any] = {
            "serviceName": service_name,
            "methods": methods,
        }
        return cast("_results.ServiceRemoval", await self.call_with("service/unregister", params, timeout))

    async def state_get(
        self,
        *,
        scope: Literal["private", "world"] | None = None,
        agent_id: str | None = None,
        path: str | None = None,
        timeout: float | None = None,
    ) -> _results.StateValue:
        """Reads the world's state or an agent's private one.

        scope: The state of the world, or that of one agent.
        agent_id: Whose private state; empty: that of calls without `context.agentId`.
        path: Where to look, with dots between names; empty: the whole.
        """
        params: dict[str, Any] = {
            "scope": scope,
            "agentId": agent_id,
            "path": path,
        }
        return cast("_results.StateValue", await self.call_with("state/get", params, timeout))

    async def state_set(
        self,
        *,
        scope: Literal["private", "world"] | None = None,
        agent_id: str | None = None,
        values: dict[str, Any] | None = None,
        remove: list[str] | None = None,
        timeout: float | None = None,
    ) -> _results.StateWritten:
        """Changes the world's state, which `ReadWorldStateTool` reads, or an agent's private one. All of it is changed or nothing.

        scope: The state of the world, or that of one agent.
        agent_id: Whose private state; empty: that of calls without `context.agentId`.
        values: What to put at which path; objects on the way are made. The path `""` replaces the whole, by an object.
        remove: Paths at which nothing stands afterwards; they are removed first.
        """
        params: dict[str, Any] = {
            "scope": scope,
            "agentId": agent_id,
            "values": values,
            "remove": remove,
        }
        return cast("_results.StateWritten", await self.call_with("state/set", params, timeout))

    async def stream_read(
        self,
        *,
        handle: str,
        wait_ms: int | None = None,
        timeout: float | None = None,
    ) -> _results.StreamItems:
        """Gives what has come in a streamed output since the last reading, waiting for it as long as asked.

        handle: The handle that a result gave for its stream.
        wait_ms: Milliseconds to wait for the first new item.
        """
        params: dict[str, Any] = {
            "handle": handle,
            "waitMs": wait_ms,
        }
        return cast("_results.StreamItems", await self.call_with("stream/read", params, timeout))

    async def task_answer(
        self,
        *,
        task_id: str,
        approval: _params.GivenApproval,
        timeout: float | None = None,
    ) -> _results.Task:
        """Answers a question that a task has while it is `inputRequired`, and gives how it is then.

        task_id: The task.
        approval: The token of one of the task's `approvals`, and what its person chose.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
            "approval": approval,
        }
        return cast("_results.Task", await self.call_with("task/answer", params, timeout))

    async def task_cancel(
        self,
        *,
        task_id: str,
        timeout: float | None = None,
    ) -> _results.Task:
        """Cancels a task, also one of another daemon, and gives how it is then; one that has ended stays as it is.

        task_id: The task.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
        }
        return cast("_results.Task", await self.call_with("task/cancel", params, timeout))

    async def task_get(
        self,
        *,
        task_id: str,
        timeout: float | None = None,
    ) -> _results.Task:
        """How a task is.

        task_id: The task.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
        }
        return cast("_results.Task", await self.call_with("task/get", params, timeout))

    async def task_list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> _results.TaskList:
        """Lists the tasks of the root, the newest first, also those of other daemons.

        cursor: `nextCursor` of the page before.
        limit: Tasks on a page, at most 100.
        """
        params: dict[str, Any] = {
            "cursor": cursor,
            "limit": limit,
        }
        return cast("_results.TaskList", await self.call_with("task/list", params, timeout))

    async def task_result(
        self,
        *,
        task_id: str,
        wait_ms: int | None = None,
        timeout: float | None = None,
    ) -> _results.ExecutionResult:
        """The result of a task's call, waiting for it as long as asked; `accepted` while there is none.

        task_id: The task.
        wait_ms: Milliseconds to wait for the end of the task, at most an hour.
        """
        params: dict[str, Any] = {
            "taskId": task_id,
            "waitMs": wait_ms,
        }
        return cast("_results.ExecutionResult", await self.call_with("task/result", params, timeout))

    async def tool_cancel(
        self,
        *,
        call_id: str | None = None,
        task_id: str | None = None,
        session_id: str | None = None,
        timeout: float | None = None,
    ) -> _results.CancelResult:
        """Cancels a call, a task, or all that runs for a session; they end soon, with their own results.

        call_id: The call's id in this session.
        task_id: The task.
        session_id: The agent's session.
        """
        params: dict[str, Any] = {
            "callId": call_id,
            "taskId": task_id,
            "sessionId": session_id,
        }
        return cast("_results.CancelResult", await self.call_with("tool/cancel", params, timeout))

    async def tool_convert(
        self,
        *,
        to: str,
        text: str | None = None,
        calls: list[dict[str, Any]] | dict[str, Any] | None = None,
        protocol: str | None = None,
        shape: Literal["inputs", "tag"] | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ConvertResult:
        """Writes calls in another protocol or a vendor's form; every loss is named.

        to: The form that is wanted: a protocol, or `openai`, `anthropic`, `mcp`.
        text: The text.
        calls: Calls as `tool/parse` gave them.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        shape: The shape of ACTION: by tag, or with `tool_id` and `inputs`.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "to": to,
            "text": text,
            "calls": calls,
            "protocol": protocol,
            "shape": shape,
            "tools": tools,
            "options": options,
        }
        return cast("_results.ConvertResult", await self.call_with("tool/convert", params, timeout))

    async def tool_describe(
        self,
        *,
        tool_id: str,
        version: str | None = None,
        as_: Literal["anthropic", "cursor", "gemini", "mcp", "native", "openai", "openaiStrict", "smolagents", "vcp"] | None = None,
        timeout: float | None = None,
    ) -> _results.Description:
        """Gives the definition of one tool, as it is or in the form of another project.

        tool_id: The tool's id or an alias.
        version: The version, or a SemVer range where one is chosen.
        as_: The form that is wanted.
        """
        params: dict[str, Any] = {
            "toolId": tool_id,
            "version": version,
            "as": as_,
        }
        return cast("_results.Description", await self.call_with("tool/describe", params, timeout))

    async def tool_execute(
        self,
        *,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        tool_id: str | None = None,
        version: str | None = None,
        args: dict[str, Any] | None = None,
        call: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> _results.ExecutionResult:
        """Runs one tool in its sandbox; what happened to it is the result's `status`, never an error of the request.

        timeout_ms: Wall time of one call in milliseconds; only lowers the limit.
        idempotency_key: A key that was used before gives the stored result.
        dry_run: `true`: check everything, run nothing.
        approval: The `token` of a result that asks, and the option that the person chose.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        tool_id: The tool's id or an alias.
        version: The version, or a SemVer range where one is chosen.
        args: The arguments by name.
        call: A call as `tool/parse` gave it, instead of `toolId` and `args`.
        """
        params: dict[str, Any] = {
            "timeoutMs": timeout_ms,
            "idempotencyKey": idempotency_key,
            "dryRun": dry_run,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
            "toolId": tool_id,
            "version": version,
            "args": args,
            "call": call,
        }
        return cast("_results.ExecutionResult", await self.call_with("tool/execute", params, timeout))

    async def tool_execute_text(
        self,
        *,
        text: str,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        protocol: str | None = None,
        complete: bool | None = None,
        mode: Literal["parallel", "sequential"] | None = None,
        on_error: Literal["continue", "stop"] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ExecuteTextResult:
        """Finds the calls of a model's text, runs them in order and writes one observation for the model.

        text: The text.
        timeout_ms: Wall time of one call in milliseconds; only lowers the limit.
        idempotency_key: A key that was used before gives the stored result.
        dry_run: `true`: check everything, run nothing.
        approval: The `token` of a result that asks, and the option that the person chose.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        mode: One after the other, or at once (ACTION and VCP only).
        on_error: Whether a failed call stops the rest.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "timeoutMs": timeout_ms,
            "idempotencyKey": idempotency_key,
            "dryRun": dry_run,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
            "protocol": protocol,
            "complete": complete,
            "mode": mode,
            "onError": on_error,
            "options": options,
        }
        return cast("_results.ExecuteTextResult", await self.call_with("tool/executeText", params, timeout))

    async def tool_explain(
        self,
        *,
        text: str,
        protocol: str | None = None,
        complete: bool | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ExplainResult:
        """Says what the reader assumed, and the readings that it did not take.

        text: The text.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "protocol": protocol,
            "complete": complete,
            "tools": tools,
            "options": options,
        }
        return cast("_results.ExplainResult", await self.call_with("tool/explain", params, timeout))

    async def tool_list(
        self,
        *,
        filter: _params.ToolFilter | None = None,
        view: Literal["full", "summary"] | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> _results.ToolList:
        """Lists the registered tools, filtered, in a stable order, in pages.

        filter: Which tools are wanted.
        view: `full` adds each tool's definition.
        cursor: `nextCursor` of an earlier answer.
        limit: How many to give at most.
        """
        params: dict[str, Any] = {
            "filter": filter,
            "view": view,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("_results.ToolList", await self.call_with("tool/list", params, timeout))

    async def tool_parse(
        self,
        *,
        text: str,
        protocol: str | None = None,
        complete: bool | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.ParseResult:
        """Finds the calls of a model's text, with the place of every part; runs nothing.

        text: The text.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "protocol": protocol,
            "complete": complete,
            "tools": tools,
            "options": options,
        }
        return cast("_results.ParseResult", await self.call_with("tool/parse", params, timeout))

    async def tool_repair(
        self,
        *,
        text: str,
        protocol: str | None = None,
        complete: bool | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        options: _params.ReadingOptions | None = None,
        timeout: float | None = None,
    ) -> _results.RepairResult:
        """Gives the safe edits that make a text canonical, and its calls; they are the same before and after.

        text: The text.
        protocol: The call protocol, such as `action`, `tam`, `vcp`; `auto` finds it where a text is read.
        complete: `false`: the text was cut off.
        tools: Tools of this request only, to read and check with.
        options: How to read; what is given goes over the settings.
        """
        params: dict[str, Any] = {
            "text": text,
            "protocol": protocol,
            "complete": complete,
            "tools": tools,
            "options": options,
        }
        return cast("_results.RepairResult", await self.call_with("tool/repair", params, timeout))

    async def tool_validate(
        self,
        *,
        tool_id: str | None = None,
        args: dict[str, Any] | None = None,
        calls: list[dict[str, Any]] | None = None,
        manifest: dict[str, Any] | str | None = None,
        tools: Sequence[_params.InlineTool] | None = None,
        timeout: float | None = None,
    ) -> _results.ValidateResult:
        """Checks arguments, calls or a manifest, and coerces what passes; an unknown tool is a problem, not an error.

        tool_id: The tool's id or an alias.
        args: The arguments by name.
        calls: Calls as `tool/parse` gave them.
        manifest: A manifest as an object, or as its text: then problems have ranges.
        tools: Tools of this request only, to read and check with.
        """
        params: dict[str, Any] = {
            "toolId": tool_id,
            "args": args,
            "calls": calls,
            "manifest": manifest,
            "tools": tools,
        }
        return cast("_results.ValidateResult", await self.call_with("tool/validate", params, timeout))

    async def workflow_describe(
        self,
        *,
        workflow_id: str,
        timeout: float | None = None,
    ) -> _results.WorkflowDescription:
        """The tool that a workflow is to agents, its file as it stands, and what keeps its graph from being run.

        workflow_id: The file's name without extension; with `workflow:` before it, the file's own `id` and its path are taken too.
        """
        params: dict[str, Any] = {
            "workflowId": workflow_id,
        }
        return cast("_results.WorkflowDescription", await self.call_with("workflow/describe", params, timeout))

    async def workflow_graph(
        self,
        *,
        workflow_id: str,
        format: Literal["mermaid", "svg"] | None = None,
        timeout: float | None = None,
    ) -> _results.WorkflowGraph:
        """Draws a workflow, with what its last run took where it ran.

        workflow_id: The workflow's id.
        format: The form that is wanted.
        """
        params: dict[str, Any] = {
            "workflowId": workflow_id,
            "format": format,
        }
        return cast("_results.WorkflowGraph", await self.call_with("workflow/graph", params, timeout))

    async def workflow_list(
        self,
        *,
        timeout: float | None = None,
    ) -> _results.WorkflowList:
        """Lists the workflows with what they take and give."""
        params: dict[str, Any] = {}
        return cast("_results.WorkflowList", await self.call_with("workflow/list", params, timeout))

    async def workflow_run(
        self,
        *,
        workflow_id: str,
        timeout_ms: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool | None = None,
        approval: _params.GivenApproval | None = None,
        output: Literal["buffer", "stream"] | None = None,
        context: _params.Context | None = None,
        work_done_token: str | int | None = None,
        inputs: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> _results.WorkflowRunResult:
        """Runs a workflow as a call of its tool; every node is in `steps`, also those that were not reached.

        workflow_id: The workflow's id.
        timeout_ms: Wall time of one call in milliseconds; only lowers the limit.
        idempotency_key: A key that was used before gives the stored result.
        dry_run: `true`: check everything, run nothing.
        approval: The `token` of a result that asks, and the option that the person chose.
        output: Whether `tool/output` is sent; what `initialize` said when it is not given.
        context: Whose call it is.
        work_done_token: Send `$/progress` with it while the request is worked on.
        inputs: The values of the interface's inputs; those with a default may be missing.
        """
        params: dict[str, Any] = {
            "workflowId": workflow_id,
            "timeoutMs": timeout_ms,
            "idempotencyKey": idempotency_key,
            "dryRun": dry_run,
            "approval": approval,
            "output": output,
            "context": context,
            "workDoneToken": work_done_token,
            "inputs": inputs,
        }
        return cast("_results.WorkflowRunResult", await self.call_with("workflow/run", params, timeout))
