"""Running from the editor: exactly the text that is shown, by the same steps as every face, with progress, questions and cancel.

Everything here runs on the framework lane's loop, whose thread lives as long as the session: a sandbox ends with the thread that started
it. The tools are those of the editor: an open manifest counts as it stands there, while it is broken its last version that read clean;
notes say so. Scripts are the files on disk. Must not know commands or the wire.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.expected import UNJUDGED, shortfall
from tamis.protocols.model import Call
from tamis.protocols.model import Document as Read
from tamis.server.analysis.running.expectations import Expectation, expectations_of, expected_value, judge
from tamis.server.analysis.running.runnables import (
    Target,
    digest_of,
    example_input,
    expected_match,
    expected_output,
    selected,
    targets,
)
from tamis.server.analysis.running.variables import (
    HIDDEN,
    NoResultYet,
    NotReady,
    SecretOf,
    Variables,
    chain_of,
    example_ready,
    filled_json,
    ready_to_run,
    result_of,
    variables_in,
    variables_of,
)
from tamis.server.lsp.client import Client, Progress
from tamis.server.lsp.documents import Document
from tamis.server.lsp.running.approvals import Approvals
from tamis.server.lsp.running.outcomes import finished_run, result_text, unsaved_notes
from tamis.server.lsp.running.runs import Run, Runs, VirtualDocuments, in_short, is_good, ordinal_of
from tamis.server.rpc.running import Shown
from tamis.server.runtime.calls.model import Answer, Ask, CallContext, CallRequest, Question, Reply
from tamis.server.runtime.execution.idempotency import IdempotencyKeys
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.execution.text import TextOptions, execute_text, unread_observations
from tamis.server.runtime.handlers.script.output import match_of
from tamis.server.runtime.observe.masking import left_result, without
from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.policy.secret_values import SecretUnusable
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.classes import is_inside
from tamis.server.wire.jsonrpc import RpcError

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session
    from tamis.server.lsp.workspace.workspace import Root
    from tamis.server.runtime.tools.registry import Tool

REQUEST_FAILED = -32803
NOT_TRUSTED = 1901
REGISTRY_WAIT_SECONDS = 0.5
_LOG_LEVELS = {"error": 1, "warning": 2, "info": 3}


class Running:
    """A run that is on its way."""

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.title = title
        self.cancelled = asyncio.Event()
        self.done = asyncio.Event()
        self.asked_seconds = 0.0
        """How long persons were asked meanwhile: their thinking is no time of the run."""
        self._questions = 0
        self._asked_since = 0.0

    def timed(self, ask: Ask) -> Ask:
        """An asking whose time is counted; questions at once count once."""

        async def asking(question: Question) -> Answer | Reply:
            if self._questions == 0:
                self._asked_since = perf_counter()
            self._questions += 1
            try:
                return await ask(question)
            finally:
                self._questions -= 1
                if self._questions == 0:
                    self.asked_seconds += perf_counter() - self._asked_since

        return asking


class Runner:
    """Runs the calls and examples of one session's documents."""

    def __init__(self, session: Session, client: Client, runs: Runs, documents: VirtualDocuments) -> None:
        self._session = session
        self._client = client
        self._runs = runs
        self._documents = documents
        self._runtimes: dict[str, Runtime] = {}
        self._running: dict[int, Running] = {}
        self._probed = False
        self.approvals = Approvals(client, runs, documents)

    # What runs

    def root(self, document: Document) -> Root:
        """The folder whose tools a document's calls mean. Raises ``RpcError`` when none is open."""
        root = self._session.workspace.root_of(document.path)
        if root is None:
            raise RpcError(
                REQUEST_FAILED, "No folder is open, so there are no tools; open the folder with the manifests"
            )
        return root

    def runtime(self, root: Root) -> Runtime:
        """The runtime of a folder with the tools and settings as the editor has them."""
        registry, loaded = root.registry, root.settings
        if registry is None or loaded is None:
            raise RpcError(REQUEST_FAILED, f"The tools of {root.path} are still being read; try again in a moment")
        known = self._runtimes.get(root.path)
        if known is None:
            known = self._runtimes[root.path] = Runtime(Path(root.path), loaded=loaded)
        known.log_level = loaded.settings.log_level
        known.log_writer = self._write_log
        known.adopt(registry, loaded)
        return known

    def _write_log(self, level: str, line: str) -> bool:
        """A line of a run's log goes where the editor shows its level; editors take all of standard error for errors."""
        self._session.log(line, _LOG_LEVELS.get(level, 4))
        return True

    def services_changed(self, root: Root) -> None:
        """The host's services have other methods now: they are tools of the folder."""
        from tamis.server.runtime.tools.host_tools import host_tools

        root.serve(host_tools(self.runtime(root).host_services()))
        self._session.post(self._session.tools_changed)

    async def _with_scripts(self, root: Root, names: Sequence[str]) -> Runtime:
        """The runtime; a script that was missing is looked for once more, for not every client tells of new files."""
        runtime = self.runtime(root)
        tools = [runtime.registry.get(name) for name in names]
        if any(tool is not None and not tool.available for tool in tools) and await asyncio.to_thread(root.recheck):
            self._session.post(self._session.tools_changed)
            return self.runtime(root)
        return runtime

    def check_allowed(self) -> None:
        """Raises ``RpcError`` where nothing may run: the folder is not trusted, or running is switched off."""
        settings = self._session.workspace.client
        if not settings.trusted:
            hint = "trust the workspace in the editor; until then it is only analysed"
            data = {"code": "notTrusted", "retryable": False, "hint": hint}
            raise RpcError(NOT_TRUSTED, "This workspace is not trusted; nothing is run in it", data)
        if not settings.switch("execution.enable"):
            raise RpcError(REQUEST_FAILED, "Running is switched off by the setting execution.enable")

    async def run_calls(
        self,
        document: Document,
        snapshot: Snapshot,
        target: Target,
        token: int | str | None,
        cancel: asyncio.Event,
        *,
        dry_run: bool = False,
    ) -> Run:
        """Runs the calls of a block, or one of them."""
        self.check_allowed()
        chosen = selected(snapshot.document, target)
        block = chosen.blocks[0]
        if target.reason and (block.aside or not (block.calls or unread_observations(chosen))):
            raise RpcError(REQUEST_FAILED, f"Not run: {target.reason}")
        names = [call.tool_id for call in chosen.calls]
        runtime = await self._with_scripts(self.root(document), names)
        tools = [runtime.registry.resolve_call(call.tool_id, call.protocol, None).tool for call in chosen.calls]
        words = ", ".join(dict.fromkeys(call.tool_id for call in chosen.calls)) or "a block"
        running = self._begin(f"{'Dry run of' if dry_run else 'Running'} {words}"[:100], cancel)
        progress = Progress(self._client, token, running.title, cancel.set)
        options = TextOptions(
            timeout_ms=self._session.workspace.client.timeout_ms,
            dry_run=dry_run,
            call_prefix=f"editor-{running.number}",
            encoding=document.encoding,
        )
        status = "failed"
        try:
            progress.begin()
            await self._probe(runtime)
            started, since = datetime.now(UTC), perf_counter()
            digest = digest_of(document.text[target.span[0] : target.span[1]])
            context = self._around(runtime, document, digest, running, progress)
            variables = self._variables(document, snapshot)
            put_in, hidden = await self._put_in(document, chosen, target.block, variables, runtime, dry_run=dry_run)
            context = context.having(secrets=hidden) if hidden else context
            total, done = len(chosen.calls), 0

            def tell(result: ExecutionResult) -> None:
                nonlocal done
                done += 1
                if total > 1:
                    progress.report(f"{done} of {total}: {result.tool_id} {result.status}", done * 100 // total)

            executed = await execute_text(put_in, context, options, tell)
            results = [left_result(result, hidden, hidden) for result in executed.results]
            expected = expectations_of(snapshot, target.block) if target.kind == "block" and not dry_run else []
            unmet = judge(expected, results, variables) if expected else None
            run = finished_run(
                running.number,
                document,
                target,
                "dryRun" if dry_run else "run",
                results,
                started,
                (perf_counter() - since - running.asked_seconds) * 1000,
                observation=without(executed.observation, hidden),
                notes=await asyncio.to_thread(
                    unsaved_notes, self._session.documents, document, [tool for tool in tools if tool is not None]
                ),
                tools=[tool for tool in tools if tool is not None],
                passed=None if unmet is None else not unmet,
                expected=UNSET
                if not expected
                else expected_value(expected[0])
                if len(expected) == 1
                else [expected_value(expectation) for expectation in expected],
                differences=tuple(line for judgement in unmet or () for line in (judgement.reason, *judgement.details)),
            )
            status = run.outcome
        finally:
            self._end(running)
            progress.end(status)
        self._keep(document, snapshot, target, run)
        return run

    def chain(self, snapshot: Snapshot, target: Target) -> list[Target]:
        """The blocks that have to run before one, in the order of the document."""
        blocks = chain_of(snapshot, target.block, variables_in(snapshot))[:-1]
        return [target for target in targets(snapshot) if target.kind == "block" and target.block in blocks]

    def _variables(self, document: Document, snapshot: Snapshot) -> Variables:
        """The variables of a document, with the last good results of its named blocks as they stand there now."""
        variables = variables_in(snapshot)
        if not variables.named:
            return variables
        runnables = targets(snapshot)
        runs = self._runs.results(document.uri, document.text, [target.span for target in runnables])
        spans = {target.block: target.span for target in runnables if target.kind == "block"}
        last = {name: runs.get(spans[first.block]) for name, first in variables.by_name.items() if first.block in spans}
        results = {
            name: result_of(run.status, run.results[-1].output)
            for name, run in last.items()
            if run is not None and run.results and is_good(run)
        }
        return msgspec.structs.replace(variables, results=results)

    def first_unmet(
        self, document: Document, snapshot: Snapshot, target: Target, run: Run
    ) -> tuple[Expectation | None, Any] | None:
        """What a block that was run did not give, with its variables put in; None where all is as expected. What differs is a place
        without a value where what is expected is no value (a pattern)."""
        variables = self._variables(document, snapshot)
        unmet = judge(expectations_of(snapshot, target.block), run.results, variables)
        if not unmet:
            return None
        expectation = unmet[0].expectation
        if expectation is None or expectation.form == "regex":
            return expectation, UNSET
        return expectation, filled_json(expected_value(expectation), variables)[
            0
        ] if expectation.form == "json" else expected_value(expectation)

    async def _put_in(
        self, document: Document, chosen: Read, block: int, variables: Variables, runtime: Runtime, *, dry_run: bool
    ) -> tuple[Read, tuple[str, ...]]:
        """The chosen calls with their references put in, and how the secrets among it may be spelled."""

        def tool_of(call: Call) -> Tool | None:
            return runtime.registry.resolve_call(call.tool_id, call.protocol, call.args(document.text)).tool

        try:
            secret_of = _secret_of(document, runtime, dry_run=dry_run)
            return await ready_to_run(chosen, block, variables, tool_of, secret_of)
        except NoResultYet as reason:
            text = f"Not run: {reason}: run it first, or run this block with what it uses"
            raise RpcError(REQUEST_FAILED, text) from None
        except NotReady as reason:
            raise RpcError(REQUEST_FAILED, f"Not run: {reason}") from None

    async def run_example(
        self, document: Document, snapshot: Snapshot, target: Target, token: int | str | None, cancel: asyncio.Event
    ) -> Run:
        """Runs one example of a manifest and holds the output against ``expectedOutput``."""
        tool, runtime = await self._example_tool(document, target)
        running = self._begin(f"Running example {target.example + 1} of {tool.tool_id}", cancel)
        progress = Progress(self._client, token, running.title, cancel.set)
        status = "failed"
        try:
            progress.begin()
            run = await self._example(document, snapshot, target, tool, runtime, running, progress)
            status = run.outcome
        finally:
            self._end(running)
            progress.end(status)
        return run

    async def test_examples(
        self,
        document: Document,
        snapshot: Snapshot,
        token: int | str | None,
        cancel: asyncio.Event,
        on_run: Callable[[Run], None] | None = None,
        only: Sequence[int] | None = None,
    ) -> list[Run]:
        """Runs the examples of a manifest one after the other; after a cancel the ones left are ``cancelled``."""
        examples = [
            target
            for target in targets(snapshot)
            if target.kind == "example" and not target.reason and (only is None or target.example in only)
        ]
        if not examples:
            raise RpcError(REQUEST_FAILED, "The manifest has no example that could be run")
        tool, runtime = await self._example_tool(document, examples[0])
        running = self._begin(f"Testing {tool.tool_id}", cancel)
        progress = Progress(self._client, token, running.title, cancel.set)
        done: list[Run] = []
        try:
            progress.begin()
            for target in examples:
                progress.report(f"example {len(done) + 1} of {len(examples)}", len(done) * 100 // len(examples))
                run = await self._example(document, snapshot, target, tool, runtime, running, progress)
                done.append(run)
                if on_run is not None:
                    on_run(run)
        finally:
            self._end(running)
            progress.end(f"{sum(run.passed is True for run in done)} of {len(examples)} passed")
        return done

    async def _example_tool(self, document: Document, target: Target) -> tuple[Tool, Runtime]:
        self.check_allowed()
        if target.reason:
            raise RpcError(REQUEST_FAILED, f"Not run: {target.reason}")
        runtime = await self._with_scripts(self.root(document), target.tool_ids)
        tool = next((tool for tool in runtime.registry.tools if tool.path == document.path), None)
        if tool is None:
            error = next((error for error in runtime.registry.errors if error.path == document.path), None)
            other = next(
                (conflict for conflict in runtime.registry.conflicts if conflict.dropped == document.path), None
            )
            why = error.message if error is not None else other.message if other is not None else ""
            why = why or "it stands in none of the tool folders (setting 'tools')"
            raise RpcError(REQUEST_FAILED, f"Not run: this manifest is not registered: {why}")
        return tool, runtime

    async def _example(
        self,
        document: Document,
        snapshot: Snapshot,
        target: Target,
        tool: Tool,
        runtime: Runtime,
        running: Running,
        progress: Progress,
    ) -> Run:
        await self._probe(runtime)
        started, since, asked = datetime.now(UTC), perf_counter(), running.asked_seconds
        digest = digest_of(document.text[target.span[0] : target.span[1]])
        is_expected, expected = expected_output(snapshot, target.example)
        variables = variables_of(runtime.settings)
        try:
            secret_of = _secret_of(document, runtime, dry_run=False)
            written = example_input(snapshot, target.example) or {}
            args, hidden = await example_ready(written, variables, tool, secret_of)
        except NotReady as reason:
            raise RpcError(REQUEST_FAILED, f"Not run: {reason}") from None
        expected, _ = filled_json(expected, variables)
        context = self._around(runtime, document, digest, running, progress)
        result = await execute(
            CallRequest(
                call_id=f"editor-{running.number}-{target.example + 1}",
                name=tool.tool_id,
                version=tool.manifest.version,
                args=args,
                timeout_ms=self._session.workspace.client.timeout_ms,
            ),
            context.having(secrets=hidden) if hidden else context,
        )
        result = left_result(result, hidden, hidden)
        match = match_of(tool.manifest, expected_match(snapshot, target.example))
        short = shortfall(expected if is_expected else UNSET, match, result)
        passed = None if result.status in UNJUDGED else short is None
        run = finished_run(
            self._runs.next_number(),
            document,
            target,
            "example",
            [result],
            started,
            (perf_counter() - since - (running.asked_seconds - asked)) * 1000,
            observation=result.observation,
            notes=await asyncio.to_thread(unsaved_notes, self._session.documents, document, [tool]),
            tools=[tool],
            passed=passed,
            expected=expected if is_expected else UNSET,
        )
        self._keep(document, snapshot, target, run)
        return run

    # Around a run

    def _around(
        self, runtime: Runtime, document: Document, digest: str, running: Running, progress: Progress
    ) -> CallContext:
        self._runs.begun(running.number, document.uri, digest)
        shows = self._session.capability("experimental.tamis.output") is True
        shown = Shown(functools.partial(self._show, progress.given))
        context = runtime.call_context(
            ask=running.timed(self.approvals.asker(document.uri, digest)),
            on_output=shown.piece if shows else None,
            on_progress=lambda _call_id, text: progress.report(text),
            cancelled=running.cancelled,
            caller=Caller("lsp"),
        )
        settings = context.settings
        policy = settings.policy
        stricter = self._session.workspace.client.confirmation(policy.require_confirmation)
        if stricter != policy.require_confirmation:
            policy = msgspec.structs.replace(policy, require_confirmation=stricter)
            settings = msgspec.structs.replace(settings, policy=policy)
        resolved = self.approvals.resolved
        # Pressing Run again is to run again: request ids count within one text only.
        context = context.having(
            settings=settings,
            idempotency=IdempotencyKeys(),
            on_resolved=resolved,
            elicits=self.approvals.elicits,
            forms=self.approvals.shows_forms,
            addresses=self.approvals.shows_forms,
            asks_together=self.approvals.together,
        )
        return context.having(on_cut=shown.cut) if shows else context

    def _show(self, token: int | str | None, told: dict[str, Any], _droppable: bool) -> bool:
        # A client may have several runs on their way, and knows them by its own tokens.
        self._session.notify("tool/output", told if token is None else {**told, "workDoneToken": token})
        return True

    async def _probe(self, runtime: Runtime) -> None:
        """Lets the sandbox be tried in a thread the first time, so that nothing waits for it."""
        if not self._probed:
            from tamis.server.runtime.health import sandbox_state

            await asyncio.to_thread(sandbox_state, runtime.settings)
            self._probed = True

    def _begin(self, title: str, cancel: asyncio.Event) -> Running:
        running = Running(self._runs.next_number(), title)
        running.cancelled = cancel
        self._running[running.number] = running
        return running

    def _end(self, running: Running) -> None:
        self._running.pop(running.number, None)
        self._runs.ended(running.number)
        running.done.set()

    def cancel(self, number: int | None = None) -> list[int]:
        """Cancels a run, or all; gives those that were on their way."""
        chosen = [
            running_call for running_call in self._running.values() if number is None or running_call.number == number
        ]
        for running_call in chosen:
            running_call.cancelled.set()
        return [running_call.number for running_call in chosen]

    async def close(self) -> None:
        """Cancels what runs and waits until it has ended."""
        waiting = [running_call.done.wait() for running_call in self._running.values()]
        self.cancel()
        await asyncio.gather(*waiting)

    # Results

    def _keep(self, document: Document, snapshot: Snapshot, target: Target, run: Run) -> None:
        self._runs.add(run, ordinal_of(document.text, targets(snapshot), target))
        self._documents.put(run.result_uri, lambda: self._result_text(run.run))
        self._client.refresh_marks()
        self._session.post(lambda: self._session.run_ended(run.uri))

    def _result_text(self, number: int) -> str:
        run = self._runs.get(number)
        if run is None:
            return '"This result is no longer kept; run it again"\n'
        return result_text(run)

    def short(self, run: Run) -> str:
        """A run in a few words."""
        return in_short(run).title


def _secret_of(document: Document, runtime: Runtime, *, dry_run: bool) -> SecretOf:
    """What gives secrets to the calls of a document: to those of files in the folder alone; a dry run reads none."""

    async def value(name: str, tool: Tool) -> tuple[str, tuple[str, ...]]:
        if document.path is None or not is_inside(document.path, os.path.realpath(runtime.root)):
            raise NotReady(f"the secret '{name}' is given only to calls of files in the folder {runtime.root}")
        if dry_run:
            return HIDDEN, ()
        try:
            secret = await runtime.secret_for(name, tool)
        except SecretUnusable as unusable:
            raise NotReady(unusable.fault.sentence) from None
        return secret.text, secret.spellings

    return value
