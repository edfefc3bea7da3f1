"""The examples of manifests, and the calls of texts that say what they give, as tests of an editor's test explorer, in rust-analyzer's
messages (interface, Notifications).

``experimental/discoverTest`` lists tools and their examples, ``runTest`` answers at once and tells states by ``changeTestState`` until
``endRunTest``, ``abortRunTest`` ends it; ``testCoverage`` tells what examples covered, to a client that asks. Must not know how an example or a call is run.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from tamis.protocols.observation import plain
from tamis.server.analysis.kinds import holds_calls
from tamis.server.analysis.running.expectations import WORD, Exercise, covered, expectations_of
from tamis.server.analysis.running.runnables import Target, example_input, expected_span, targets
from tamis.server.analysis.running.variables import filled_json, names_in, variables_in
from tamis.server.lsp.client import Client
from tamis.server.lsp.documents import Document, path_of, uri_of
from tamis.server.lsp.running.runner import Runner
from tamis.server.lsp.running.runs import is_good
from tamis.server.lsp.structs import Range
from tamis.server.rpc.params import asked_for, read_request
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.running.runs import Run
    from tamis.server.lsp.session import Session

MAX_MESSAGE_CHARS = 4_000
MAX_LABEL_CHARS = 100
MAX_UNKNOWN = 100
"""Ids of no test that are told of."""
MAX_TEXTS = 500
"""Texts with expectations that are listed."""


class Discover(msgspec.Struct, rename="camel"):
    """Of ``experimental/discoverTest``; without an id everything is listed."""

    test_id: str | None = None


class RunTests(msgspec.Struct, rename="camel"):
    """Of ``experimental/runTest``; an id of a file means all its tests, no ``include`` means everything. With ``coverage`` it is told before the
    end what the examples covered of each manifest."""

    include: list[str] | None = None
    exclude: list[str] | None = None
    coverage: bool = False


class ExampleTests:
    """The tests of one session."""

    def __init__(self, session: Session, client: Client, runner: Runner) -> None:
        self._session = session
        self._client = client
        self._runner = runner
        self._listed: list[dict[str, Any]] | None = None
        """What the client was told last; None for one that never asked."""
        self._cancel: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def discover(self, params: object) -> dict[str, Any]:
        """The files with tests and these, or those of one file. Raises ``RpcError`` for wrong parameters."""
        request, _ = read_request(Discover, params)
        everything = self._listed = [item for path in self._paths() for item in self._items(path)]
        if request.test_id is None:
            return {"tests": everything}
        path = path_of(request.test_id.partition("#")[0])
        items = [item for item in everything if path_of(item["textDocument"]["uri"]) == path]
        return {"tests": items, "scopeFile": [{"uri": request.test_id.partition("#")[0]}]}

    def changed(self) -> None:
        """The tools or texts may be others now: a client that listed their tests gets the new list."""
        if self._listed is None:
            return
        tests = [item for path in self._paths() for item in self._items(path)]
        if tests != self._listed:
            self._listed = tests
            self._session.notify("experimental/discoveredTests", {"tests": tests})

    def run(self, params: object) -> None:
        """Begins to run tests; their states are told. Raises ``RpcError`` where nothing may run, and for params that are wrong."""
        request, unread = read_request(RunTests, params)
        self._runner.check_allowed()
        if asked := asked_for(unread):
            # the request has no result that could tell it, and without the member meant too much would be run
            raise RpcError(INVALID_PARAMS, f"wrong params: {asked}")
        cancel = self._cancel = asyncio.Event()
        chosen, unknown = self._chosen(request)
        task = asyncio.get_running_loop().create_task(self._run(chosen, unknown, cancel, request.coverage))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def abort(self) -> None:
        """Ends what is run; tests that did not end are ``skipped``."""
        if self._cancel is not None:
            self._cancel.set()

    def _chosen(self, request: RunTests) -> tuple[dict[str, list[int]], list[str]]:
        """The tests that are run, by file, and what was asked for and is none."""
        include, exclude = request.include, set(request.exclude or ())
        chosen: dict[str, list[int]] = {}
        unknown = dict.fromkeys(include or ())
        for path in self._paths():
            uri = uri_of(path)
            for number, _ in self._tests(path)[1]:
                name = f"{uri}#{number}"
                wanted = include is None or name in include or uri in include
                unknown.pop(name, None)
                unknown.pop(uri, None)
                if wanted and not exclude & {name, uri}:
                    chosen.setdefault(path, []).append(number)
        return chosen, list(unknown)[:MAX_UNKNOWN]

    async def _run(
        self, chosen: dict[str, list[int]], unknown: list[str], cancel: asyncio.Event, coverage: bool
    ) -> None:
        for name in unknown:
            text = "There is no such test; experimental/discoverTest lists those that there are"
            self._session.notify(
                "experimental/changeTestState", {"testId": name, "state": {"tag": "failed", "message": text}}
            )
        for path, numbers in chosen.items():
            for number in numbers:
                self._state(path, number, {"tag": "enqueued"})
        try:
            for path, numbers in chosen.items():
                await self._run_file(path, numbers, cancel, coverage)
        finally:
            self._session.notify("experimental/endRunTest", {})

    async def _run_file(self, path: str, numbers: Sequence[int], cancel: asyncio.Event, coverage: bool) -> None:
        document = self._document(path)
        told: set[int] = set()

        def tell(number: int, state: dict[str, Any]) -> None:
            told.add(number)
            self._state(path, number, state)

        try:
            if document is not None and not cancel.is_set():
                file = _File(document, self._session.workspace.snapshot(document), self._runner, set(), [])
                for number in numbers:
                    if cancel.is_set():
                        break
                    self._state(path, number, {"tag": "started"})
                    try:
                        tell(number, await file.run(number, cancel))
                    except RpcError as error:
                        tell(number, {"tag": "failed", "message": error.text})
                if coverage and file.exercises:
                    self._session.notify("experimental/testCoverage", file.coverage())
        except Exception as error:  # one file's tests must not end the others'
            self._session.log(f"Tests of {path} failed: {error!r}")
        for number in numbers:
            if number not in told:
                tell(number, {"tag": "skipped"})

    def _state(self, path: str, number: int, state: dict[str, Any]) -> None:
        params = {"testId": f"{uri_of(path)}#{number}", "state": state}
        self._session.notify("experimental/changeTestState", params)

    # What there is

    def _paths(self) -> list[str]:
        paths: dict[str, None] = {}
        for root in self._session.workspace.roots:
            registry = root.registry
            if registry is not None:
                paths.update((tool.path, None) for tool in registry.tools if tool.manifest.examples)
        workspace = self._session.workspace
        workspace.settle()
        index = workspace.index
        texts = [path for path in index.files() if index.kind(path) == "text" and WORD in index.text(path)]
        return [*paths, *texts[:MAX_TEXTS]]

    def _document(self, path: str) -> Document | None:
        opened = self._session.documents.get(uri_of(path))
        if opened is not None:
            return opened
        root = self._session.workspace.root_of(path)
        text = root.texts.get(path) if root is not None else None
        if text is None:
            text = self._session.workspace.index.text(path) or None
        return None if text is None else Document(uri_of(path), "", None, text, self._session.encoding)

    def _tests(self, path: str) -> tuple[Document | None, list[tuple[int, Target]]]:
        """The tests of a file with their numbers: its examples, or its blocks with something expected behind them."""
        document = self._document(path)
        if document is None:
            return None, []
        snapshot = self._session.workspace.snapshot(document)
        runnables = targets(snapshot)
        if document.uri not in self._session.documents:
            self._session.workspace.forget(document)
        if not holds_calls(document.kind):
            return document, [(target.example, target) for target in runnables if target.kind == "example"]
        blocks = [
            target
            for target in runnables
            if target.kind == "block" and not snapshot.document.blocks[target.block].aside
        ]
        return document, [(block.block, block) for block in blocks if expectations_of(snapshot, block.block)]

    def _items(self, path: str) -> list[dict[str, Any]]:
        document, tests = self._tests(path)
        if document is None or not tests:
            return []
        is_manifest = not holds_calls(document.kind)
        labels = _descriptions(document) if is_manifest else _block_names(self._session.workspace.snapshot(document))
        top = tests[0][1].tool_ids[0] if is_manifest else plain(posixpath.basename(path))
        about = {"canResolveChildren": False, "textDocument": {"uri": document.uri}}
        module = {"id": document.uri, "label": top, "kind": "module", "range": document.range((0, 0)), **about}
        items: list[dict[str, Any]] = [module]
        for number, target in tests:
            label = labels.get(number, "") or f"Example {number + 1}"
            if not is_manifest:
                tools = ", ".join(dict.fromkeys(target.tool_ids))
                place = labels.get(number) or f"line {document.range(target.head).start.line + 1}"
                label = f"{place} · {plain(tools)}" if tools else place
            items.append(
                {
                    "id": f"{document.uri}#{number}",
                    "label": label[:MAX_LABEL_CHARS],
                    "kind": "test",
                    "parent": document.uri,
                    "range": document.range(target.span),
                    **about,
                }
            )
        return items


def _descriptions(document: Document) -> dict[int, str]:
    """What the examples of a manifest say of themselves."""
    from tamis.protocols.manifest.reading import read_manifest

    manifest = read_manifest(document.text).manifest
    return {} if manifest is None else {at: plain(example.description) for at, example in enumerate(manifest.examples)}


def _block_names(snapshot: Snapshot) -> dict[int, str]:
    """The names that the blocks of a text have."""
    return {name.block: name.name for name in reversed(names_in(snapshot))}


class _File(msgspec.Struct, frozen=True):
    """A file whose tests are run, as it stood when they began; ``done`` are its blocks that were run already, ``exercises`` its examples that were."""

    document: Document
    snapshot: Snapshot
    runner: Runner
    done: set[int]
    exercises: list[Exercise]

    async def run(self, number: int, cancel: asyncio.Event) -> dict[str, Any]:
        """The state that a test ends in. Raises ``RpcError`` where it cannot be run."""
        if holds_calls(self.document.kind):
            return await self._run_block(number, cancel)
        (run,) = await self.runner.test_examples(self.document, self.snapshot, None, cancel, only=[number])
        if run.passed is not None:
            given = filled_json(example_input(self.snapshot, number), variables_in(self.snapshot))[0]
            refused = {(one.kind, one.value) for result in run.results for one in result.permissions.denied}
            self.exercises.append(Exercise(given, frozenset(refused)))
        span = expected_span(self.snapshot, number)
        return _state(run, run.expected, None if span is None else self.document.range(span))

    def coverage(self) -> dict[str, Any]:
        """What the examples covered, as it is told: ``{uri, details: [{kind, name, range, count}]}``."""
        details = [
            {"kind": part.kind, "name": plain(part.name), "range": self.document.range(part.span), "count": part.count}
            for part in covered(self.snapshot, self.exercises)
        ]
        return {"uri": self.document.uri, "details": details}

    async def _run_block(self, number: int, cancel: asyncio.Event) -> dict[str, Any]:
        """A block, and before it what it uses, as far as that was not run here yet."""
        by_block = {target.block: target for target in targets(self.snapshot) if target.kind == "block"}
        target = by_block.get(number)
        if target is None:
            return {"tag": "skipped"}
        for before in self.runner.chain(self.snapshot, target):
            if before.block not in self.done:
                run = await self.runner.run_calls(self.document, self.snapshot, before, None, cancel)
                self.done.add(before.block)
                if not is_good(run):
                    return {"tag": "failed", "message": f"Not run: a call that it uses failed: {run.outcome}"}
        run = await self.runner.run_calls(self.document, self.snapshot, target, None, cancel)
        self.done.add(number)
        unmet = self.runner.first_unmet(self.document, self.snapshot, target, run)
        if unmet is None:
            return _state(run, UNSET, None)
        expectation, expected = unmet
        return _state(run, expected, None if expectation is None else self.document.range(expectation.span))


def _state(run: Run, expected: Any, place: Range | None) -> dict[str, Any]:
    """The state of a test that ended; ``expected`` and ``actual`` as text for clients that show what differs, ``range`` where it is expected."""
    if run.passed is None:
        return {"tag": "skipped"}
    took: dict[str, Any] = {"durationMs": run.duration_ms}
    if run.results:
        took["permissions"] = run.results[-1].permissions
    if run.passed:
        return {"tag": "passed", **took}
    if place is not None:
        took["range"] = place
    if run.status != "success" or expected is UNSET:
        text = "\n".join(run.differences) or run.observation
        return {"tag": "failed", "message": text[:MAX_MESSAGE_CHARS], **took}
    output = run.results[-1].output
    actual = "nothing" if output is UNSET else _json(output)
    text = f"expected: {_json(expected)}\ngiven: {actual}"
    differs = {"expected": _pages(expected), "actual": "" if output is UNSET else _pages(output)}
    return {"tag": "failed", "message": text[:MAX_MESSAGE_CHARS], **differs, **took}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _pages(value: Any) -> str:
    """A value as lines of JSON, its keys in order, so that two of them can be laid side by side."""
    encoded = msgspec.json.encode(value, order="sorted")
    return msgspec.json.format(encoded, indent=2).decode("utf-8", "replace")[:MAX_MESSAGE_CHARS]
