"""The calls of a text as tests: its blocks one after the other, each with what it uses of the ones before, held against what the text expects.

The rule is the editor's (``server/analysis/running``). Must not know how results are printed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.model import Call
from tamis.protocols.positions import LineIndex
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.running.expectations import Judgement, expectations_of, judge
from tamis.server.analysis.running.runnables import MAX_TARGETS, Target, selected, targets
from tamis.server.analysis.running.variables import (
    NoResultYet,
    NotReady,
    SecretOf,
    Variables,
    ready_to_run,
    result_of,
    variables_in,
)
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.cli.check_command import analysis_settings
from tamis.server.cli.inputs import UsageError, read_text
from tamis.server.runtime.calls.model import CallContext
from tamis.server.runtime.execution.idempotency import IdempotencyKeys
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.observe.masking import left_result
from tamis.server.runtime.policy.secret_values import SecretUnusable
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.classes import is_inside
from tamis.server.runtime.tools.registry import Tool


class TestedText:
    """A text whose blocks are run in order; ``results`` are those of its named blocks."""

    __test__ = False

    def __init__(self, path: Path, snapshot: Snapshot, runtime: Runtime) -> None:
        self.path = path
        self.snapshot = snapshot
        self.runtime = runtime
        self.turn = asyncio.Lock()
        self.results: dict[str, Any] = {}
        self.tried: set[str] = set()
        """The names of the blocks that were to be run."""
        self._variables = variables_in(snapshot)

    def blocks(self) -> Iterator[TextBlock]:
        """Its blocks that are calls, or were meant as some."""
        lines = LineIndex(self.snapshot.text)
        for target in targets(self.snapshot):
            if target.kind == "block" and not self.snapshot.document.blocks[target.block].aside:
                yield TextBlock(self, target, lines.position(target.span[0])[0] + 1)

    @property
    def is_cut(self) -> bool:
        """Whether it has more than is run."""
        return len(targets(self.snapshot)) >= MAX_TARGETS

    @property
    def variables(self) -> Variables:
        """What its references lead to now."""
        return msgspec.structs.replace(self._variables, results=dict(self.results))


class TextBlock(msgspec.Struct, frozen=True):
    """A block of a tested text; ``line`` from one."""

    text: TestedText
    target: Target
    line: int

    @property
    def name(self) -> str:
        """What people call it."""
        own = (variable.name for variable in self.text.variables.named if variable.block == self.target.block)
        return next(own, f"line {self.line}")

    @property
    def tool_id(self) -> str:
        """The tools that it calls."""
        return ", ".join(dict.fromkeys(self.target.tool_ids))

    @property
    def tool(self) -> Tool | None:
        """The tool of its first call, if it is known."""
        calls = self.text.snapshot.document.blocks[self.target.block].calls
        return self._tool_of(calls[0]) if calls else None

    def _tool_of(self, call: Call) -> Tool | None:
        args = call.args(self.text.snapshot.text)
        return self.text.runtime.registry.resolve_call(call.tool_id, call.protocol, args).tool

    async def run(self, context: CallContext, timeout_ms: int | None) -> list[ExecutionResult]:
        """Runs its calls. Raises ``NotReady`` where something that it uses is not there."""
        chosen = selected(self.text.snapshot.document, self.target)
        secret_of = secrets_from(self.text.runtime, self.text.path)
        self.text.tried.add(self.name)
        try:
            ready, hidden = await ready_to_run(chosen, self.target.block, self.text.variables, self._tool_of, secret_of)
        except NoResultYet as lack:
            left_out = "was not run: let --filter take it too"
            todo = "did not pass: mend it, and this one can run" if lack.name in self.text.tried else left_out
            raise NotReady(f"{lack}; it {todo}") from None
        options = TextOptions(timeout_ms=timeout_ms, call_prefix=f"test-{self.target.block + 1}")
        # to test again is to run again: request ids count within one block's run
        context = context.having(secrets=hidden, idempotency=IdempotencyKeys())
        executed = await execute_text(ready, context, options)
        return [left_result(result, hidden, hidden) for result in executed.results]

    def unmet(self, results: Sequence[ExecutionResult]) -> list[Judgement] | None:
        """What is not as the text expects; None where nothing can be said."""
        return judge(expectations_of(self.text.snapshot, self.target.block), results, self.text.variables)

    def keep(self, results: Sequence[ExecutionResult]) -> None:
        """From now on the block's name leads to what it gave; without results to nothing."""
        own = next((variable.name for variable in self.text.variables.named if variable.block == self.target.block), "")
        first = self.text.variables.by_name.get(own)
        if results and own and first is not None and first.block == self.target.block:
            self.text.results[own] = result_of(results[-1].status, results[-1].output)


def text_of(path: Path, runtime: Runtime) -> TestedText:
    """A text to test. Raises ``UsageError`` for a file that cannot be read."""
    text = read_text(str(path))
    if kind_of(str(path), "") != "text":
        raise UsageError(f"'{path}' is no text with calls")
    settings = analysis_settings(runtime, runtime.settings)
    return TestedText(path, Snapshot(str(path), "text", text, runtime.registry, settings=settings), runtime)


def secrets_from(runtime: Runtime, path: Path) -> SecretOf:
    """What gives secrets to calls of a root: to those of files in the root alone, by the operator's settings."""

    async def value(name: str, tool: Tool) -> tuple[str, tuple[str, ...]]:
        if not is_inside(str(path), os.path.realpath(runtime.root)):
            raise NotReady(f"the secret '{name}' is given only to calls of files in the folder {runtime.root}")
        try:
            secret = await runtime.secret_for(name, tool)
        except SecretUnusable as unusable:
            raise NotReady(unusable.fault.sentence) from None
        return secret.text, secret.spellings

    return value
