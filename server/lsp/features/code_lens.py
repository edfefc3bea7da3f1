"""``textDocument/codeLens`` and ``codeLens/resolve``; and the same offers as code actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tamis.server.analysis.kinds import serves
from tamis.server.lsp import convert
from tamis.server.lsp.documents import path_of
from tamis.server.lsp.features.execute_command import COMMANDS, commands_of
from tamis.server.lsp.verb import Verb
from tamis.server.wire.jsonrpc import encode

if TYPE_CHECKING:
    from lsprotocol import types

    from tamis.protocols.positions import Span
    from tamis.server.analysis.running.lenses import Around, Lens
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.documents import Document
    from tamis.server.lsp.session import Session

RUN_KIND = "refactor.tamis.run"
CONVERT_KIND = "refactor.rewrite.tamis.convert"
KINDS = (RUN_KIND, CONVERT_KIND)
"""Kinds of the code actions that are commands."""


def code_lens(session: Session, params: types.CodeLensParams) -> msgspec.Raw | list[Any]:
    """What can be done with the calls, examples and tools of a document."""
    from tamis.server.analysis.running.lenses import lenses

    document = session.documents.get(params.text_document.uri)
    if (
        document is None
        or not serves(document.kind, "targets")
        or not session.workspace.client.switch("codeLens.enable")
    ):
        return []
    snapshot = session.workspace.snapshot(document, wait=0.5)
    offered = lenses(snapshot, around(session, document, snapshot))
    places: dict[tuple[int | str, ...], Any] = {}
    # Written here: the framework's converter would look at each of thousands of objects.
    entries = [_to_lens(document, lens, places) for lens in offered]
    return msgspec.Raw(encode(_in_order(entries) if _sorts_lenses(session) else entries))


def _sorts_lenses(session: Session) -> bool:
    """Whether the client sorts the lenses of a line by their columns, equal ones in any order: Neovim does."""
    initialize_params = session.initialize
    return (
        initialize_params is not None
        and initialize_params.client_info is not None
        and initialize_params.client_info.name == "Neovim"
    )


def _in_order(lenses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lenses of one place with columns that grow, so that a client that sorts by them keeps their order."""
    seen: dict[tuple[int, int], int] = {}
    placed: list[dict[str, Any]] = []
    for lens in lenses:
        start, end = lens["range"]["start"], lens["range"]["end"]
        key = (start["line"], start["character"])
        after = seen[key] = seen.get(key, -1) + 1
        moved = {"line": start["line"], "character": start["character"] + after}
        if end["line"] == moved["line"] and end["character"] < moved["character"]:
            end = moved
        placed.append({**lens, "range": {"start": moved, "end": end}})
    return placed


def resolve(session: Session, params: types.CodeLens) -> dict[str, Any]:
    """A lens with its title."""
    sent: Any = params.data
    data = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
    where = params.range
    lens: dict[str, Any] = {
        "range": {
            "start": {"line": where.start.line, "character": where.start.character},
            "end": {"line": where.end.line, "character": where.end.character},
        }
    }
    arguments = data.get("arguments")
    argument = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    if data.get("command") not in COMMANDS:
        # Complete as it came, or none of ours: what it had, it keeps.
        given_back: Any = params.command
        if given_back is not None:
            lens["command"] = {"title": given_back.title, "command": given_back.command}
            if given_back.arguments is not None:
                lens["command"]["arguments"] = given_back.arguments
        return lens
    title = _title(session, str(data.get("resolve")), argument)
    lens["command"] = {"title": title, "command": str(data.get("command", "")), "arguments": [argument]}
    return lens


def around(session: Session, document: Document, snapshot: Snapshot) -> Around:
    """What the offers for a document depend on."""
    from tamis.server.analysis.running.lenses import Around
    from tamis.server.analysis.running.runnables import targets
    from tamis.server.lsp.running.runs import in_short

    client = session.workspace.client
    edits = session.can("workspace.applyEdit")
    tries = session.capability("experimental.tamis.try") is True
    surroundings = Around(trusted=client.trusted, enabled=client.switch("execution.enable"), edits=edits, tries=tries)
    if not session.has_runs(document.uri):
        return surroundings
    runnables = targets(snapshot)
    spans = [target.span for target in runnables]
    runs = session.runs.results(document.uri, document.text, spans)
    return msgspec.structs.replace(
        surroundings,
        outcomes={span: in_short(run) for span, run in runs.items()},
        asking=session.runs.asking(document.uri, document.text, spans),
        running=session.runs.running(document.uri, document.text, runnables),
    )


def actions(session: Session, document: Document, snapshot: Snapshot, span: Span) -> list[dict[str, Any]]:
    """What can be run, converted or copied at a place, as code actions that are commands."""
    from tamis.server.analysis.running.lenses import CONVERT, COPY_AS, run_actions
    from tamis.server.analysis.running.rewriting import can_become, form_title

    actions: list[dict[str, Any]] = []
    for lens in run_actions(snapshot, span, around(session, document, snapshot)):
        if lens.command == CONVERT:
            for name in can_become(snapshot, lens.target):
                title = f"Convert to {form_title(name)}"
                actions.append(_action(document, lens, title, CONVERT_KIND, {"to": name}))
        elif lens.command == COPY_AS:
            actions.append(_action(document, lens, "Copy the call as…", RUN_KIND, {}))
        else:
            actions.append(_action(document, lens, lens.title.removeprefix("▶ "), RUN_KIND, {}))
    return actions


def _action(document: Document, lens: Lens, title: str, kind: str, more: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {**arguments_of(document, lens), **more}
    return {
        "title": title,
        "kind": kind,
        "command": {"title": title, "command": lens.command, "arguments": [arguments]},
    }


def arguments_of(document: Document, lens: Lens) -> dict[str, Any]:
    """A command's arguments: the place and the digest of exactly the text that is shown there."""
    return {**_shown(document, lens.target.span), **lens.more}


def _shown(document: Document, span: Span) -> dict[str, Any]:
    from tamis.server.analysis.running.runnables import digest_of

    return {
        "uri": document.uri,
        "version": document.version,
        "range": convert.to_range(document, span),
        "digest": digest_of(document.text[span[0] : span[1]]),
    }


def _to_lens(document: Document, lens: Lens, places: dict[tuple[int | str, ...], dict[str, Any]]) -> dict[str, Any]:
    # The lenses of a target share its place, and places are what costs.
    key = (*lens.target.span, "shown")
    if key not in places:
        places[key] = _shown(document, lens.target.span)
    arguments = {**places[key], **lens.more}
    if lens.span not in places:
        places[lens.span] = convert.to_range(document, lens.span)
    members: dict[str, Any] = {"range": places[lens.span]}
    if lens.resolve:
        members["data"] = {"resolve": lens.resolve, "command": lens.command, "arguments": arguments}
    else:
        members["command"] = {"title": lens.title, "command": lens.command, "arguments": [arguments]}
    return members


def _title(session: Session, resolve: str, argument: dict[str, Any]) -> str:
    from tamis.server.analysis.running.lenses import resolved_title

    uri, tool_id = str(argument.get("uri", "")), str(argument.get("toolId", ""))
    document = session.documents.get(uri)
    if document is None:
        return "Preview prompt" if resolve == "prompt" else "references"
    tokens = None
    if resolve == "prompt":
        root = session.workspace.root_of(document.path or path_of(uri))
        tokens = commands_of(session).previews.tokens(root, tool_id) if root is not None else None
    snapshot = session.workspace.snapshot(document)
    return resolved_title(resolve, [tool_id], snapshot, tokens) or "references"


REQUESTS = (
    Verb(
        method="textDocument/codeLens",
        params="CodeLensParams",
        handler=code_lens,
        schedule="snapshot",
        capability={"codeLensProvider": {"resolveProvider": True, "workDoneProgress": False}},
    ),
    Verb(method="codeLens/resolve", params="CodeLens", handler=resolve, schedule="snapshot"),
)
