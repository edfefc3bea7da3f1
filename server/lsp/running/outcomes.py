"""What came of a run, for people and for machines: one line, the exit code, where a script failed, and which manifests and scripts of
it were not saved.

Must not run anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from tamis.protocols.contract import ExecutionResult
from tamis.protocols.manifest.reading import ExternalScript
from tamis.protocols.observation import plain
from tamis.server.analysis.running.runnables import Target, digest_of, places
from tamis.server.lsp.documents import Document, uri_of
from tamis.server.lsp.running.runs import Run, RunKind, Trace

if TYPE_CHECKING:
    from tamis.server.runtime.tools.registry import Tool


MAX_TITLE_CHARS = 80


def unsaved_notes(documents: Mapping[str, Document], document: Document, tools: Sequence[Tool]) -> tuple[str, ...]:
    """What differs from the files of the tools, of the open documents and the one that was run from; looks at the disk."""
    notes: list[str] = []
    for tool in dict.fromkeys(tools):
        shown = document if tool.path == document.path else documents.get(uri_of(tool.path))
        if shown is not None and is_unsaved(shown):
            what = {"workflow": "graph", "node": "definition"}.get(tool.origin, "manifest")
            clean = _reads_clean(tool, shown.text)
            as_it_is = f"ran with its {what} as it stands in the editor, which is not saved"
            last = f"ran with the last version of its {what} that read clean; the one in the editor has errors"
            notes.append(f"{tool.tool_id} {as_it_is if clean else last}")
        handler = tool.manifest.handler
        if isinstance(handler, ExternalScript):
            script = documents.get(uri_of(os.path.join(tool.folder, handler.script_path)))
            if script is not None and is_unsaved(script):
                notes.append(f"the script of {tool.tool_id} is not saved; the file on disk was run")
    return tuple(notes)


def _reads_clean(tool: Tool, text: str) -> bool:
    if tool.origin == "workflow":
        from tamis.protocols.workflow.reading import read_workflow

        return read_workflow(text, tool.tool_id.partition(":")[2]).workflow is not None
    if tool.origin == "node":
        from tamis.protocols.manifest.node import read_nodes

        return not read_nodes(text).faults
    from tamis.protocols.manifest.reading import read_manifest

    return read_manifest(text).manifest is not None


MAX_BYTES = 64 * 1024 * 1024


def is_unsaved(document: Document) -> bool:
    """Whether the editor's text differs from the file, or there is no such file; looks at the disk."""
    if document.path is None:
        return True
    text = document.text.encode("utf-8", "surrogatepass")
    try:
        size = os.stat(document.path).st_size
        if size > MAX_BYTES or abs(size - len(text)) > len(b"\xef\xbb\xbf"):
            return True
        with open(document.path, "rb") as stream:
            return stream.read(MAX_BYTES).removeprefix(b"\xef\xbb\xbf") != text.removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return True


def exit_code(results: Sequence[ExecutionResult]) -> int | None:
    """The exit code of the first script that failed, 0 when all that ran did not; None when none ended by itself."""
    for result in results:
        if result.status != "success":
            details = UNSET if result.error is UNSET else result.error.details
            return None if details is UNSET or details.exit_code is UNSET else details.exit_code
    return 0 if any(result.attempts for result in results) else None


def outcome(
    kind: str,
    target: Target,
    results: Sequence[ExecutionResult],
    duration_ms: float,
    passed: bool | None,
    observation: str,
) -> str:
    """One line for people."""
    failed = [] if passed else [result for result in results if result.status != "success"]
    what = f"Example {target.example + 1} of {target.tool_ids[0]}" if kind == "example" else _names(results)
    if not results:
        return plain(observation.partition("\n")[0])[:300] or "nothing was run"
    if not failed:
        other = " did not give its expectedOutput" if kind == "example" else " did not give what is expected"
        verdict = other if passed is False else " would run" if kind == "dryRun" else ""
        return f"{'✗' if passed is False else '✓'} {what}{verdict}, {duration_ms:.0f} ms"
    first = failed[0]
    why = first.status if first.error is UNSET else f"{first.error.type}: {first.error.message}"
    some = f"{len(failed)} of {len(results)} calls: " if len(results) > 1 else ""
    return plain(
        f"✗ {some}{what if len(results) == 1 or kind == 'example' else first.tool_id}: {why}, {duration_ms:.0f} ms"
    )[:500]


def _names(results: Sequence[ExecutionResult]) -> str:
    return results[0].tool_id if len(results) == 1 else f"{len(results)} calls"


def trace(results: Sequence[ExecutionResult], tools: Sequence[Tool]) -> tuple[Trace, ...]:
    """Where the first script that failed says that it did, in files of its tool's folder."""
    failed = next(
        (candidate for candidate in results if candidate.error is not UNSET and candidate.error.type == "ScriptError"),
        None,
    )
    tool = next((tool for tool in tools if failed is not None and tool.tool_id == failed.tool_id), None)
    if failed is None or tool is None:
        return ()
    text = (failed.error.message if failed.error is not UNSET else "")[:300]
    return tuple(
        Trace(uri_of(os.path.join(tool.folder, place.path)), place.line, text) for place in places(failed.logs)
    )


def finished_run(
    number: int,
    document: Document,
    target: Target,
    kind: RunKind,
    results: list[ExecutionResult],
    started: datetime,
    duration_ms: float,
    *,
    observation: str,
    notes: tuple[str, ...],
    tools: Sequence[Tool],
    passed: bool | None = None,
    expected: Any = UNSET,
    differences: tuple[str, ...] = (),
) -> Run:
    """A run as it is kept."""
    failed = next((result for result in results if result.status != "success"), None)
    return Run(
        run=number,
        uri=document.uri,
        kind=kind,
        target=target.kind,
        digest=digest_of(document.text[target.span[0] : target.span[1]]),
        tool_ids=tuple(dict.fromkeys(result.tool_id for result in results)),
        status="success" if failed is None and results else "error" if failed is None else failed.status,
        exit_code=exit_code(results),
        duration_ms=round(duration_ms, 3),
        when=started.isoformat(timespec="milliseconds"),
        outcome=outcome(kind, target, results, duration_ms, passed, observation),
        observation=observation,
        results=results,
        notes=notes,
        example=target.example if target.kind == "example" else None,
        passed=passed,
        expected=expected,
        differences=differences,
        trace=trace(results, tools),
        result_uri=_result_uri(number, document, results, duration_ms, failed is None and passed is not False),
    )


def _result_uri(
    number: int, document: Document, results: Sequence[ExecutionResult], duration_ms: float, good: bool
) -> str:
    """The name of a result's document, whose last part is what an editor shows as its title: ``notes:append · ✓ 412 ms``."""
    what = _names(results) if results else os.path.basename(document.uri)
    title = plain(f"{what} · {'✓' if good else '✗'} {duration_ms:.0f} ms").replace("/", "∕")
    return f"tamis-result:/{number}/{quote(title[:MAX_TITLE_CHARS])}.json"


def result_text(run: Run) -> str:
    """A run as a document for people: what came out stands first, the whole record behind it."""
    shown: dict[str, Any] = {"outcome": run.outcome}
    if len(run.results) == 1:
        (only,) = run.results
        if only.output is not UNSET:
            shown["output"] = only.output
        if only.error is not UNSET:
            shown["error"] = only.error
    elif run.results:
        shown["outputs"] = [
            {
                "toolId": call_result.tool_id,
                "status": call_result.status,
                **({} if call_result.output is UNSET else {"output": call_result.output}),
            }
            for call_result in run.results
        ]
    if run.expected is not UNSET:
        shown["expected"] = run.expected
    if run.differences:
        shown["differences"] = run.differences
    if run.notes:
        shown["notes"] = run.notes
    # On a line of its own each, as a person reads it.
    shown["observation"] = run.observation.split("\n") if "\n" in run.observation else run.observation
    shown["run"] = run
    return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode("utf-8", "replace") + "\n"
