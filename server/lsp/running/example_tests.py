"""The examples of manifests as tests of an editor's test explorer, in rust-analyzer's messages (interface, Notifications).

``experimental/discoverTest`` lists tools and their examples, ``runTest`` answers at once and tells states by ``changeTestState`` until
``endRunTest``, ``abortRunTest`` ends it. Must not know how an example is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from tamis.protocols.observation import plain
from tamis.server.analysis.running.runnables import Target, targets
from tamis.server.lsp.client import Client
from tamis.server.lsp.documents import Document, path_of, uri_of
from tamis.server.lsp.running.runner import Runner
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.lsp.running.runs import Run
    from tamis.server.lsp.session import Session

T = TypeVar("T")
MAX_MESSAGE_CHARS = 4_000
MAX_LABEL_CHARS = 100


class Discover(msgspec.Struct, rename="camel"):
    """Of ``experimental/discoverTest``; without an id everything is listed."""

    test_id: str | None = None


class RunTests(msgspec.Struct, rename="camel"):
    """Of ``experimental/runTest``; an id of a tool means its examples, no ``include`` means everything."""

    include: list[str] | None = None
    exclude: list[str] | None = None


class ExampleTests:
    """The tests of one session."""

    def __init__(self, session: Session, client: Client, runner: Runner) -> None:
        self._session = session
        self._client = client
        self._runner = runner
        self._asked = False
        self._cancel: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def discover(self, params: object) -> dict[str, Any]:
        """The tools with examples and these, or those of one tool. Raises ``RpcError`` for wrong parameters."""
        given = _read(params, Discover)
        self._asked = True
        if given.test_id is None:
            return {"tests": [item for path in self._paths() for item in self._items(path)]}
        path = path_of(given.test_id.partition("#")[0])
        items = self._items(path) if path in self._paths() else []
        return {"tests": items, "scopeFile": [{"uri": given.test_id.partition("#")[0]}]}

    def changed(self) -> None:
        """The tools may be others now: a client that listed them gets the new list."""
        if self._asked:
            tests = [item for path in self._paths() for item in self._items(path)]
            self._session.notify("experimental/discoveredTests", {"tests": tests})

    def run(self, params: object) -> None:
        """Begins to run tests; their states are told. Raises ``RpcError`` where nothing may run."""
        given = _read(params, RunTests)
        self._runner.check_allowed()
        cancel = self._cancel = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._run(self._chosen(given), cancel))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def abort(self) -> None:
        """Ends what is run; tests that did not end are ``skipped``."""
        if self._cancel is not None:
            self._cancel.set()

    def _chosen(self, given: RunTests) -> dict[str, list[int]]:
        include, exclude = given.include, set(given.exclude or ())
        chosen: dict[str, list[int]] = {}
        for path in self._paths():
            uri = uri_of(path)
            for target in self._examples(path)[1]:
                name = f"{uri}#{target.example}"
                wanted = include is None or name in include or uri in include
                if wanted and not exclude & {name, uri}:
                    chosen.setdefault(path, []).append(target.example)
        return chosen

    async def _run(self, chosen: dict[str, list[int]], cancel: asyncio.Event) -> None:
        for path, numbers in chosen.items():
            for number in numbers:
                self._state(path, number, {"tag": "enqueued"})
        try:
            for path, numbers in chosen.items():
                await self._run_tool(path, numbers, cancel)
        finally:
            self._session.notify("experimental/endRunTest", {})

    async def _run_tool(self, path: str, numbers: Sequence[int], cancel: asyncio.Event) -> None:
        document = self._document(path)
        told: set[int] = set()

        def tell(run: Run) -> None:
            assert run.example is not None
            told.add(run.example)
            self._state(path, run.example, _state(run))

        try:
            if document is not None and not cancel.is_set():
                snapshot = self._session.workspace.snapshot(document)
                for number in numbers:
                    if cancel.is_set():
                        break
                    self._state(path, number, {"tag": "started"})
                    await self._runner.test_examples(document, snapshot, None, cancel, tell, [number])
        except RpcError as error:
            for number in numbers:
                if number not in told:
                    told.add(number)
                    self._state(path, number, {"tag": "failed", "message": error.text})
        except Exception as error:  # one tool's tests must not end the others'
            self._session.log(f"Tests of {path} failed: {error!r}")
        for number in numbers:
            if number not in told:
                self._state(path, number, {"tag": "skipped"})

    def _state(self, path: str, number: int, state: dict[str, Any]) -> None:
        params = {"testId": f"{uri_of(path)}#{number}", "state": state}
        self._session.notify("experimental/changeTestState", params)

    # What there is

    def _paths(self) -> list[str]:
        found: dict[str, None] = {}
        for root in self._session.workspace.roots:
            registry = root.registry
            if registry is not None:
                found.update((tool.path, None) for tool in registry.tools if tool.manifest.examples)
        return list(found)

    def _document(self, path: str) -> Document | None:
        opened = self._session.documents.get(uri_of(path))
        if opened is not None:
            return opened
        root = self._session.workspace.root_of(path)
        text = root.texts.get(path) if root is not None else None
        return None if text is None else Document(uri_of(path), "json", None, text, self._session.encoding)

    def _examples(self, path: str) -> tuple[Document | None, list[Target]]:
        document = self._document(path)
        if document is None:
            return None, []
        snapshot = self._session.workspace.snapshot(document)
        found = [one for one in targets(snapshot) if one.kind in ("manifest", "example")]
        if document.uri not in self._session.documents:
            self._session.workspace.forget(document)
        return document, [one for one in found if one.kind == "example"]

    def _items(self, path: str) -> list[dict[str, Any]]:
        document, examples = self._examples(path)
        if document is None or not examples:
            return []
        from tamis.protocols.manifest.reading import read_manifest

        manifest = read_manifest(document.text).manifest
        told = [example.description for example in manifest.examples] if manifest is not None else []
        about = {"textDocument": {"uri": document.uri}}
        items: list[dict[str, Any]] = [
            {
                "id": document.uri,
                "label": examples[0].tool_ids[0],
                "kind": "module",
                "canResolveChildren": False,
                "range": document.range((0, 0)),
                **about,
            }
        ]
        for one in examples:
            label = plain(told[one.example]) if one.example < len(told) else ""
            items.append(
                {
                    "id": f"{document.uri}#{one.example}",
                    "label": label[:MAX_LABEL_CHARS] or f"Example {one.example + 1}",
                    "kind": "test",
                    "canResolveChildren": False,
                    "parent": document.uri,
                    "range": document.range(one.span),
                    **about,
                }
            )
        return items


def _state(run: Run) -> dict[str, Any]:
    """The state of a test that ended; ``expected`` and ``actual`` as JSON for clients that show what differs."""
    if run.passed is None:
        return {"tag": "skipped"}
    took: dict[str, Any] = {"durationMs": run.duration_ms}
    if run.results:
        took["permissions"] = run.results[-1].permissions
    if run.passed:
        return {"tag": "passed", **took}
    text = run.observation
    if run.status != "success":
        return {"tag": "failed", "message": text[:MAX_MESSAGE_CHARS], **took}
    output = run.results[-1].output
    given = "nothing" if output is UNSET else _json(output)
    text = f"expected: {_json(run.expected)}\ngiven: {given}"
    differs = {"expected": _pages(run.expected), "actual": "" if output is UNSET else _pages(output)}
    return {"tag": "failed", "message": text[:MAX_MESSAGE_CHARS], **differs, **took}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _pages(value: Any) -> str:
    """A value as lines of JSON, its keys in order, so that two of them can be laid side by side."""
    encoded = msgspec.json.encode(value, order="sorted")
    return msgspec.json.format(encoded, indent=2).decode("utf-8", "replace")[:MAX_MESSAGE_CHARS]


def _read(params: object, kind: type[T]) -> T:
    try:
        return msgspec.convert(params or {}, kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, str(error)) from None
