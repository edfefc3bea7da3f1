"""``workspace/executeCommand``: who does what a command says. It is done on the text that was shown, or not at all.

A command names its place by URI and range, proven by the digest or the text of that range, or by the document's version. Anything else
there now: ``ContentModified`` (-32801). Must not know how things are run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.protocols.observation import plain
from tamis.protocols.plugins import BUILT_IN
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.navigation.references import occurrences_of
from tamis.server.analysis.running import lenses
from tamis.server.analysis.running.rewriting import (
    FORMS,
    PROTOCOLS,
    Protocol,
    can_become,
    converted,
    copied,
    form_title,
)
from tamis.server.analysis.running.runnables import Target, TargetKind, digest_of, target_at, targets
from tamis.server.lsp.client import Client
from tamis.server.lsp.documents import Document, path_of, uri_of
from tamis.server.lsp.running.example_tests import ExampleTests
from tamis.server.lsp.running.previews import Previews
from tamis.server.lsp.running.runner import REQUEST_FAILED, Runner
from tamis.server.lsp.running.runs import Run, Runs, VirtualDocuments, is_good
from tamis.server.lsp.structs import Range
from tamis.server.wire.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session

CONTENT_MODIFIED = -32801


class Arguments(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What commands take; each uses what it needs (docs/editors/commands.md)."""

    uri: str = ""
    version: int | None = None
    range: Range | None = None
    digest: str | None = None
    text: str | None = None
    show: bool = True
    """Whether the outcome is shown by us, as a document or a message; false for clients that show it themselves."""
    example: int | None = None
    to: str | None = None
    protocol: str | None = None
    lossy: bool = False
    chain: bool = False
    """Of a run: the blocks whose results it uses are run before it."""
    tool_id: str = ""
    run: int | None = None
    approval_id: str = ""
    option_id: str = ""
    reason: str = ""


class Place(msgspec.Struct, frozen=True):
    """A document as it was shown, and the target of a command in it."""

    document: Document
    snapshot: Snapshot
    target: Target


def read_arguments(command: str, arguments: object) -> Arguments:
    """A command's one object. Raises ``RpcError`` (-32602) that names what is wrong."""
    entries = cast("list[object]", arguments) if isinstance(arguments, list | tuple) else []
    if len(entries) > 1:
        raise RpcError(INVALID_PARAMS, f"{command} takes one object, not {len(entries)} arguments")
    try:
        return msgspec.convert(entries[0] if entries else {}, Arguments)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RpcError(INVALID_PARAMS, f"Arguments of {command}: {error}") from None


def find_place(session: Session, arguments: Arguments, *kinds: TargetKind) -> Place:
    """What the arguments are about. Raises ``RpcError``: -32602 when they say too little, -32801 when the text is another one now."""
    document = session.documents.get(arguments.uri)
    if document is None:
        text = f"'{arguments.uri}' is not open" if arguments.uri else "give the 'uri' of an open document"
        raise RpcError(INVALID_PARAMS, f"{text}; commands work on open documents")
    snapshot = session.workspace.snapshot(document, wait=0.5)
    if arguments.range is None and arguments.example is None and "manifest" not in kinds:
        raise RpcError(INVALID_PARAMS, "give the 'range' of the call")
    shown = (0, len(document.text)) if arguments.range is None else _span(document, arguments.range)
    _check_shown(document, arguments, document.text[shown[0] : shown[1]])
    if arguments.example is not None:
        target = next((target for target in targets(snapshot) if target.example == arguments.example), None)
    else:
        chosen = [target_at(snapshot, shown, kind) for kind in kinds]
        fitting = [target for target in chosen if target is not None]
        exact = [target for target in fitting if target.span == shown]
        target = min(exact or fitting, key=lambda target: target.span[1] - target.span[0], default=None)
    if target is None or target.kind not in kinds:
        raise RpcError(INVALID_PARAMS, f"There is no {' or '.join(kinds)} at this place")
    return Place(document, snapshot, target)


def _span(document: Document, place: Range) -> tuple[int, int]:
    lines, encoding = document.lines, document.encoding
    start = lines.offset(place.start.line, place.start.character, encoding)
    return start, max(start, lines.offset(place.end.line, place.end.character, encoding))


def _check_shown(document: Document, arguments: Arguments, here: str) -> None:
    """Ruling of the mission: exactly the text that was shown is run."""
    if arguments.text is None and arguments.digest is None and arguments.version is None:
        raise RpcError(INVALID_PARAMS, "say which text was shown: by 'digest', 'text' or 'version'")
    same = (
        arguments.text == here
        if arguments.text is not None
        else arguments.digest == digest_of(here)
        if arguments.digest is not None
        else arguments.version == document.version
    )
    if not same:
        raise RpcError(CONTENT_MODIFIED, "The text at this place is another one now; nothing was done")


LOAD_SECONDS = 20.0
MAX_SHOWN_REFERENCES = 8
Token = int | str | None


class Commands:
    """The commands of one session."""

    def __init__(
        self, session: Session, client: Client, runs: Runs, documents: VirtualDocuments, announced: Sequence[str]
    ) -> None:
        self.runner = Runner(session, client, runs, documents)
        self.previews = Previews(client, self.runner, documents)
        self.tests = ExampleTests(session, client, self.runner)
        self._session = session
        self._client = client
        self._runs = runs
        self.documents = documents
        self._commands: dict[str, Callable[[Arguments, Token, asyncio.Event], Awaitable[Any]]] = {
            lenses.RUN: self._run,
            lenses.DRY_RUN: self._dry_run,
            lenses.RUN_EXAMPLE: self._run_example,
            lenses.TEST_EXAMPLES: self._test_examples,
            lenses.PREVIEW_PROMPT: self._preview_prompt,
            lenses.CONVERT: self._convert,
            lenses.COPY_AS: self._copy_as,
            lenses.SHOW_RESULT: self._show_result,
            lenses.SHOW_REFERENCES: self._show_references,
            lenses.APPROVE: self._approve,
            lenses.EXPLAIN: self._explain,
            "tamis.cancel": self._cancel,
            "tamis.rerunLast": self._rerun_last,
            "tamis.clearResults": self._clear_results,
        }
        assert set(self._commands) == set(announced)
        self._announced = announced

    async def execute(self, command: str, arguments: object, token: Token, cancel: asyncio.Event) -> Any:
        """A command's result as plain data. Raises ``RpcError`` for arguments that are wrong and texts that are others now."""
        handler = self._commands.get(command)
        if handler is None:
            raise RpcError(INVALID_PARAMS, f"No command '{command}'{hint(best(command, self._announced))}")
        params = read_arguments(command, arguments)
        await self._ready(params.uri)
        return msgspec.to_builtins(await handler(params, token, cancel))

    async def _ready(self, uri: str) -> None:
        """Waits for the tools of a document's folder while they are still being read."""
        document = self._session.documents.get(uri)
        root = self._session.workspace.root_of(document.path) if document is not None else None
        if root is not None and not root.loaded.is_set():
            await asyncio.to_thread(root.loaded.wait, LOAD_SECONDS)

    # Running

    async def _run(self, arguments: Arguments, token: Token, cancel: asyncio.Event) -> Run:
        self.runner.check_allowed()
        place = find_place(self._session, arguments, "call", "block")
        document = place.document
        for target in self.runner.chain(place.snapshot, place.target) if arguments.chain else ():
            run = await self.runner.run_calls(document, place.snapshot, target, token, cancel)
            if not is_good(run):
                return self._told(run, arguments)
            if self._session.documents.get(document.uri) is not document:
                raise RpcError(
                    CONTENT_MODIFIED, "The document was edited meanwhile; what was left of the chain was not run"
                )
        run = await self.runner.run_calls(document, place.snapshot, place.target, token, cancel)
        return self._told(run, arguments)

    async def _dry_run(self, arguments: Arguments, token: Token, cancel: asyncio.Event) -> Run:
        self.runner.check_allowed()
        place = find_place(self._session, arguments, "call", "block")
        run = await self.runner.run_calls(place.document, place.snapshot, place.target, token, cancel, dry_run=True)
        return self._told(run, arguments)

    async def _run_example(self, arguments: Arguments, token: Token, cancel: asyncio.Event) -> Run:
        self.runner.check_allowed()
        place = find_place(self._session, arguments, "example")
        return self._told(
            await self.runner.run_example(place.document, place.snapshot, place.target, token, cancel), arguments
        )

    async def _test_examples(self, arguments: Arguments, token: Token, cancel: asyncio.Event) -> dict[str, Any]:
        self.runner.check_allowed()
        place = find_place(self._session, arguments, "manifest")
        runs = await self.runner.test_examples(place.document, place.snapshot, token, cancel)
        passed = sum(run.passed is True for run in runs)
        wrong = [run.outcome for run in runs if run.passed is False]
        outcome = f"{'✓' if passed == len(runs) else '✗'} {passed} of {len(runs)} examples passed"
        if arguments.show:
            self._client.message("info" if not wrong else "warning", "\n".join([outcome, *wrong[:5]]))
        return {"outcome": outcome, "passed": passed, "failed": len(wrong), "runs": runs}

    async def _rerun_last(self, arguments: Arguments, token: Token, cancel: asyncio.Event) -> Run:
        self.runner.check_allowed()
        last = self._runs.last()
        document = self._session.documents.get(last.uri) if last is not None else None
        if last is None or document is None:
            raise RpcError(
                REQUEST_FAILED, "Nothing was run yet" if last is None else f"{last.uri} is not open any more"
            )
        from tamis.server.analysis.running.runnables import targets

        snapshot = self._session.workspace.snapshot(document, wait=0.5)
        target = next(
            (
                target
                for target in targets(snapshot)
                if target.kind == last.target
                and (last.example is None or target.example == last.example)
                and digest_of(document.text[target.span[0] : target.span[1]]) == last.digest
            ),
            None,
        )
        if target is None:
            raise RpcError(CONTENT_MODIFIED, "What was run last has been changed since; run it at its place")
        if target.kind == "example":
            run = await self.runner.run_example(document, snapshot, target, token, cancel)
        else:
            dry = last.kind == "dryRun"
            run = await self.runner.run_calls(document, snapshot, target, token, cancel, dry_run=dry)
        return self._told(run, arguments)

    async def _cancel(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        return {"cancelled": self.runner.cancel(arguments.run)}

    async def _approve(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        if not arguments.option_id:
            raise RpcError(INVALID_PARAMS, "give the 'optionId' of one of the question's answers")
        if not self.runner.approvals.answer(arguments.approval_id, arguments.option_id):
            data = {
                "code": "approvalUnknown",
                "retryable": False,
                "hint": "it was answered already, or the run has ended",
            }
            raise RpcError(1401, f"No approval '{arguments.approval_id}' is awaited", data)
        return {"answered": True}

    def _told(self, run: Run, arguments: Arguments) -> Run:
        """Shows what came of a run: as a document where the client opens ours, else as one line."""
        if arguments.show and not self._client.show(run.result_uri):
            good = is_good(run)
            first = run.observation.strip()
            more = f"\n{first if len(first) <= 300 else first[:299] + '…'}" if first and run.kind != "dryRun" else ""
            self._client.message("info" if good else "warning", plain("\n".join([run.outcome + more, *run.notes])))
        return run

    # Results

    async def _show_result(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> Run:
        run = self._runs.get(arguments.run) if arguments.run is not None else self._runs.last()
        if run is None:
            raise RpcError(REQUEST_FAILED, "There is no such result any more; run it again")
        return self._told(run, arguments)

    async def _clear_results(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        had = self._runs.forget(arguments.uri or None)
        self._client.refresh_marks()
        for uri in had:
            self._session.post(lambda uri=uri: self._session.run_ended(uri))
        return {"cleared": had}

    # Reading

    async def _preview_prompt(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        document = self._session.documents.get(arguments.uri) if arguments.uri else None
        if document is None and arguments.uri and path_of(arguments.uri) is None:
            raise RpcError(INVALID_PARAMS, f"'{arguments.uri}' is not open")
        root = self._session.workspace.root_of(document.path if document is not None else path_of(arguments.uri))
        if root is None:
            raise RpcError(REQUEST_FAILED, "No folder is open, so there are no tools")
        return self.previews.preview(root, document, arguments.tool_id, arguments.protocol, show=arguments.show)

    async def _convert(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        place = find_place(self._session, arguments, "block")
        target = place.target
        if target.reason:
            raise RpcError(REQUEST_FAILED, f"Not converted: {target.reason}")
        to = arguments.to
        if to is None:
            names = can_become(place.snapshot, target)
            if not names:
                others: list[Protocol] = [name for name in PROTOCOLS if name != target.protocol]
                raise RpcError(REQUEST_FAILED, f"Not converted: {converted(place.snapshot, target, others[0]).problem}")
            choices = {form_title(name): name for name in names}
            to = await self._chosen("Convert this call to", choices)
            if to is None:
                return {"applied": False, "losses": [], "text": ""}
        by_name: dict[str, Protocol] = {name: name for name in PROTOCOLS}
        wanted = by_name.get(to)
        if wanted is None:
            raise RpcError(INVALID_PARAMS, f"'to' must be one of {', '.join(PROTOCOLS)}")
        rewriting = converted(place.snapshot, target, wanted)
        if rewriting.edit is None:
            raise RpcError(REQUEST_FAILED, f"Not converted: {rewriting.problem}")
        if rewriting.losses and not arguments.lossy:
            lost = "\n".join(loss.message for loss in rewriting.losses[:10])
            anyway = await self._chosen(f"Something would be lost:\n{lost}", {"Convert anyway": "yes"})
            if anyway is None:
                return {"applied": False, "losses": rewriting.losses, "text": rewriting.text}
        if not self._client.can("workspace.applyEdit"):
            # The text is what the caller can put there.
            return {"applied": False, "losses": rewriting.losses, "text": rewriting.text}
        applied = await self._apply(
            place.document, f"Convert to {form_title(to)}", rewriting.edit.start, rewriting.edit.end, rewriting.text
        )
        return {"applied": applied, "losses": rewriting.losses, "text": rewriting.text}

    async def _copy_as(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        place = find_place(self._session, arguments, "block")
        if place.target.reason:
            raise RpcError(REQUEST_FAILED, f"Not copied: {place.target.reason}")
        form = arguments.to
        if form is None:
            form = await self._chosen("Copy this call as", {form_title(name): name for name in FORMS})
            if form is None:
                return {"text": "", "losses": [], "form": None}
        if form not in FORMS:
            raise RpcError(INVALID_PARAMS, f"'to' must be one of {', '.join(FORMS)}")
        rewriting = copied(place.snapshot, place.target, form)
        if rewriting.problem:
            raise RpcError(REQUEST_FAILED, f"Not copied: {rewriting.problem}")
        result = {"text": rewriting.text, "losses": rewriting.losses, "form": form}
        if arguments.show:
            # A server reaches no clipboard: the text is opened, or said, so that it can be taken from there.
            uri = f"tamis-result:/copy-{digest_of(rewriting.text)}.{_SUFFIXES.get(form, 'txt')}"
            self.documents.put(uri, rewriting.text)
            if not self._client.show(uri):
                self._client.message("info", f"As {form_title(form)}:\n{rewriting.text}")
        return result

    async def _show_references(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        if not arguments.tool_id:
            raise RpcError(INVALID_PARAMS, "give the 'toolId'")
        workspace = self._session.workspace
        document = self._session.documents.get(arguments.uri)
        index = workspace.index
        if document is not None:
            snapshot = workspace.snapshot(document, wait=0.5)
            workspace.settle()
            named = occurrences_of(snapshot, arguments.tool_id)
        else:
            named = index.occurrences(arguments.tool_id)
        places: list[dict[str, Any]] = []
        for occurrence in named:
            if occurrence.role == "declaration":
                continue
            opened = self._session.documents.get(uri_of(occurrence.path))
            shown = opened or Document(
                uri_of(occurrence.path), "", None, index.text(occurrence.path), self._session.encoding
            )
            places.append({"uri": shown.uri, "range": shown.range(occurrence.span)})
        if arguments.show:
            lines = [f"{item['uri']}:{item['range'].start.line + 1}" for item in places[:MAX_SHOWN_REFERENCES]]
            more = [f"… {len(places)} in all"] if len(places) > MAX_SHOWN_REFERENCES else []
            if len(places) == 1 and self._client.can("window.showDocument.support"):
                occurrence = places[0]
                params = {"uri": occurrence["uri"], "takeFocus": True, "selection": occurrence["range"]}
                self._client.tell("window/showDocument", params)
            else:
                title = (
                    f"{arguments.tool_id}: {len(places)} references"
                    if places
                    else f"{arguments.tool_id} is used nowhere"
                )
                self._client.message("info", "\n".join([title, *lines, *more]))
        return {"locations": places}

    async def _explain(self, arguments: Arguments, _token: Token, _cancel: asyncio.Event) -> dict[str, Any]:
        reason = arguments.reason or "nothing is known"
        if reason == lenses.UNTRUSTED:
            reason = "This workspace is not trusted, so nothing is run in it. Trust it in the editor to run calls."
        if arguments.show:
            self._client.message("info", reason)
        return {"reason": reason}

    async def _chosen(self, text: str, choices: dict[str, str]) -> str | None:
        try:
            title = await self._client.choose("info", text, list(choices))
        except RpcError:
            raise RpcError(
                INVALID_PARAMS, f"{text}: give it as an argument ('to', or 'lossy'); the editor cannot ask"
            ) from None
        return choices.get(title or "")

    async def _apply(self, document: Document, label: str, start: int, end: int, text: str) -> bool:
        if self._session.documents.get(document.uri) is not document:
            raise RpcError(CONTENT_MODIFIED, "The document was edited meanwhile; nothing was changed")
        if not self._client.can("workspace.applyEdit"):
            raise RpcError(REQUEST_FAILED, "The editor does not let servers edit (workspace/applyEdit)")
        edits = [{"range": document.range((start, end)), "newText": text}]
        if self._client.can("workspace.workspaceEdit.documentChanges"):
            identity = {"uri": document.uri, "version": document.version}
            edit: dict[str, Any] = {"documentChanges": [{"textDocument": identity, "edits": edits}]}
        else:
            edit = {"changes": {document.uri: edits}}
        answer = await self._client.ask("workspace/applyEdit", {"label": label, "edit": edit})
        return isinstance(answer, dict) and cast("dict[str, Any]", answer).get("applied") is True


_SUFFIXES = {
    "openai": "json",
    "anthropic": "json",
    "mcp": "json",
    "cli": "sh",
    **dict.fromkeys(BUILT_IN, "md"),
}
