"""Runs that failed as diagnostics at their block, with the script's line behind them; gone as soon as the text is another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.model import Diag
from tamis.protocols.observation import plain
from tamis.protocols.positions import Span
from tamis.server.analysis.running.expectations import Judgement, expectations_of, judge
from tamis.server.analysis.running.runnables import Target, targets
from tamis.server.analysis.running.variables import variables_in
from tamis.server.lsp.documents import Document
from tamis.server.lsp.structs import Diagnostic, Location, Position, Range, RelatedInformation

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.running.runs import Run
    from tamis.server.lsp.session import Session

MAX_REASON_CHARS = 300
MAX_DIFFERENCE_CHARS = 2_000
_SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
_SAID_ALREADY = frozenset({"UnknownTool", "ParameterValidationError"})
"""What analysing the text says without running it."""
_NO_FAILURES = frozenset(
    {"success", "cancelled", "denied", "approvalTimeout", "approvalUnavailable", "accepted", "inputRequired"}
)


def run_findings(session: Session, document: Document, snapshot: Snapshot) -> list[Diagnostic]:
    """The failures of a document's last runs."""
    found = targets(snapshot)
    runs = session.runs.results(document.uri, document.text, [target.span for target in found])
    return [
        _to_lsp(document, diag, run)
        for target in found
        if (run := runs.get(target.span)) is not None
        for diag in _of_run(snapshot, target, run)
    ]


def _of_run(snapshot: Snapshot, target: Target, run: Run) -> list[Diag]:
    """What is to be said of a run: that it failed, or what it did not give of what is expected as it stands there now."""
    if run.kind == "example" or target.kind != "block":
        failed = _failure(run, target.head)
        return [] if failed is None else [failed]
    unmet = (
        judge(expected, run.results, variables_in(snapshot))
        if (expected := expectations_of(snapshot, target.block))
        else None
    )
    if unmet is None:
        failed = _failure(run, target.head)
        return [] if failed is None else [failed]
    return [
        Diag("VA462", target.head if one.expectation is None else one.expectation.span, {"reason": _told(one)})
        for one in unmet
    ]


def _told(unmet: Judgement) -> str:
    return plain("\n".join((unmet.reason, *unmet.details)))[:MAX_DIFFERENCE_CHARS]


def _failure(run: Run, span: Span) -> Diag | None:
    for result in () if run.passed else run.results:
        if result.status in _NO_FAILURES or (result.error is not UNSET and result.error.type in _SAID_ALREADY):
            continue
        reason = result.status if result.error is UNSET else f"{result.error.type}: {result.error.message}"
        details = UNSET if result.error is UNSET else result.error.details
        if details is not UNSET and details.text is not UNSET and details.text.strip():
            # The last line of a traceback says what was raised.
            reason += f" ({details.text.strip().splitlines()[-1].strip()})" if run.trace else ""
        return Diag("VA460", span, {"id": result.tool_id, "reason": plain(reason)[:MAX_REASON_CHARS]})
    if run.passed is False and run.status == "success" and run.kind == "example":
        import msgspec

        output = run.results[-1].output
        given = "nothing" if output is UNSET else msgspec.json.encode(output).decode("utf-8", "replace")
        return Diag("VA461", span, {"i": run.example or 0, "reason": plain(f"it gave {given}")[:MAX_REASON_CHARS]})
    return None


def _to_lsp(document: Document, diag: Diag, run: Run) -> Diagnostic:
    related = [
        RelatedInformation(Location(one.uri, Range(Position(one.line, 0), Position(one.line, 0))), one.text)
        for one in run.trace
    ]
    return Diagnostic(
        document.range(diag.span),
        message(diag),
        severity=_SEVERITIES[severity(diag)],
        code=diag.code,
        source="tamis",
        related_information=related or UNSET,
        data={"slug": CATALOGUE[diag.code].slug, "run": run.run},
    )
