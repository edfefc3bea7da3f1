"""What was run from the editor: the outcome of each block and example, kept until its text changes.

A result belongs to an exact text, by digest and place among equal ones; as soon as the text is another one it is forgotten. Bounded in
number and bytes; safe to use from both lanes. Must not run anything nor know LSP's shapes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.contract import ExecutionResult
from tamis.protocols.model import Diag
from tamis.protocols.observation import plain
from tamis.protocols.positions import Span
from tamis.server.analysis.running.expectations import Judgement, expectations_of, judge
from tamis.server.analysis.running.lenses import Asking, Outcome
from tamis.server.analysis.running.runnables import Target, TargetKind, digest_of, targets
from tamis.server.analysis.running.variables import variables_in
from tamis.server.lsp.documents import Document
from tamis.server.lsp.structs import Diagnostic, Location, Position, Range, RelatedInformation

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot
    from tamis.server.lsp.session import Session


MAX_RUNS = 100
MAX_BYTES = 16 * 1024 * 1024
MAX_SHOWN_CHARS = 60

RunKind = Literal["run", "dryRun", "example"]


class Trace(msgspec.Struct, frozen=True, rename="camel"):
    """A line of a tool's own file where it failed, zero-based, and what failed."""

    uri: str
    line: int
    text: str


class Run(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One finished run, as ``workspace/executeCommand`` answers it and the result document shows it.

    ``status`` is the first that is no success, else ``success``; ``exitCode`` that call's, if its script ran and ended by itself.
    ``when`` is the start as ISO 8601 in UTC. ``outcome`` is one line for people, ``observation`` what a model would read.
    """

    run: int
    uri: str
    kind: RunKind
    target: TargetKind
    digest: str
    tool_ids: tuple[str, ...]
    status: str
    exit_code: int | None
    duration_ms: float
    when: str
    outcome: str
    observation: str
    results: list[ExecutionResult]
    notes: tuple[str, ...] = ()
    example: int | None = None
    passed: bool | None = None
    """Of an example, and of a block with something expected behind it: whether it gave that."""
    expected: Any = msgspec.UNSET
    differences: tuple[str, ...] = ()
    """Of a block: why it did not give what is expected, and where."""
    trace: tuple[Trace, ...] = ()
    result_uri: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """An approval that is awaited, and the text whose run waits for it."""

    uri: str
    digest: str
    asking: Asking


class Runs:
    """The runs of one session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._runs: dict[int, Run] = {}
        self._sizes: dict[int, int] = {}
        self._places: dict[str, dict[tuple[str, int], int]] = {}
        """By document: digest and place among equal texts → number of the last run there."""
        self._waiting: dict[str, Waiting] = {}
        self._under_way: dict[int, tuple[str, str]] = {}
        """By number: the document and the digest of what runs."""

    def next_number(self) -> int:
        """The number of a run that begins."""
        with self._lock:
            self._number += 1
            return self._number

    def add(self, run: Run, ordinal: int) -> None:
        """Keeps a run; the oldest ones go when there are too many. ``ordinal``: which of the equal texts of its document it was."""
        size = len(msgspec.json.encode(run))
        with self._lock:
            self._runs[run.run] = run
            self._sizes[run.run] = size
            if run.kind != "dryRun":
                self._places.setdefault(run.uri, {})[(run.digest, ordinal)] = run.run
            while len(self._runs) > MAX_RUNS or (len(self._runs) > 1 and sum(self._sizes.values()) > MAX_BYTES):
                oldest = next(iter(self._runs))
                del self._runs[oldest], self._sizes[oldest]

    def get(self, number: int) -> Run | None:
        """A run by its number, while it is kept."""
        with self._lock:
            return self._runs.get(number)

    def last(self) -> Run | None:
        """The newest run that is kept."""
        with self._lock:
            return next(reversed(self._runs.values()), None)

    def has(self, uri: str) -> bool:
        """Whether anything is known of a document; cheap, so that others need not look closer."""
        with self._lock:
            busy = (
                *(waiting.uri for waiting in self._waiting.values()),
                *(place[0] for place in self._under_way.values()),
            )
            return bool(self._places.get(uri)) or uri in busy

    def begun(self, number: int, uri: str, digest: str) -> None:
        """A run of a document's stretch is on its way."""
        with self._lock:
            self._under_way[number] = (uri, digest)

    def ended(self, number: int) -> None:
        """A run is no longer on its way."""
        with self._lock:
            self._under_way.pop(number, None)

    def running(self, uri: str, text: str, runnables: Sequence[Target]) -> dict[Span, tuple[int, ...]]:
        """What is on its way of a document: each run at its own stretch, and all of them at the manifest."""
        with self._lock:
            under_way = [(number, digest) for number, (place, digest) in self._under_way.items() if place == uri]
        if not under_way:
            return {}
        by_span: dict[Span, tuple[int, ...]] = {}
        for target in runnables:
            here = digest_of(text[target.span[0] : target.span[1]])
            by_span[target.span] = tuple(
                number for number, digest in under_way if digest == here or target.kind == "manifest"
            )
        return by_span

    def results(self, uri: str, text: str, spans: Sequence[Span]) -> dict[Span, Run]:
        """The last run of each of a document's stretches, of those that were run; what stands nowhere any more is forgotten."""
        with self._lock:
            places = self._places.get(uri)
            if not places:
                return {}
            by_span: dict[Span, Run] = {}
            seen: set[tuple[str, int]] = set()
            for span, key in zip(spans, keys_of(text, spans), strict=True):
                number = places.get(key)
                run = self._runs.get(number) if number is not None else None
                if run is not None:
                    seen.add(key)
                    by_span[span] = run
            for key in places.keys() - seen:
                del places[key]
            return by_span

    def forget(self, uri: str | None = None) -> list[str]:
        """Forgets the runs of a document, or of all; gives the documents that had any."""
        with self._lock:
            uris = [uri] if uri is not None else list(self._places)
            had = [uri for uri in uris if self._places.pop(uri, None)]
            for number in [number for number, run in self._runs.items() if uri is None or run.uri == uri]:
                del self._runs[number], self._sizes[number]
            return had

    def wait(self, waiting: Waiting) -> None:
        """An approval is awaited from now on."""
        with self._lock:
            self._waiting[waiting.asking.approval_id] = waiting

    def answered(self, approval_id: str) -> None:
        """An approval is no longer awaited."""
        with self._lock:
            self._waiting.pop(approval_id, None)

    def asking(self, uri: str, text: str, spans: Sequence[Span]) -> dict[Span, tuple[Asking, ...]]:
        """The approvals that are awaited for stretches of a document."""
        with self._lock:
            waiting = [waiter for waiter in self._waiting.values() if waiter.uri == uri]
        if not waiting:
            return {}
        by_span: dict[Span, tuple[Asking, ...]] = {}
        for span in spans:
            digest = digest_of(text[span[0] : span[1]])
            asked = tuple(waiter.asking for waiter in waiting if waiter.digest == digest)
            if asked:
                by_span[span] = asked
        return by_span


def keys_of(text: str, spans: Iterable[Span]) -> list[tuple[str, int]]:
    """Each stretch's digest and how many equal ones stand before it."""
    seen: dict[str, int] = {}
    keys: list[tuple[str, int]] = []
    for start, end in spans:
        digest = digest_of(text[start:end])
        seen[digest] = seen.get(digest, -1) + 1
        keys.append((digest, seen[digest]))
    return keys


def ordinal_of(text: str, targets: Sequence[Target], target: Target) -> int:
    """Which of the equal texts among a document's targets one is."""
    spans = [target.span for target in targets]
    return dict(zip(spans, keys_of(text, spans), strict=True)).get(target.span, ("", 0))[1]


def is_good(run: Run) -> bool:
    """Whether a run came out well: an example as it expects, which may be a failure, anything else with success."""
    return run.status == "success" if run.passed is None else run.passed


def in_short(run: Run) -> Outcome:
    """A run in a few words, for the line of its block: ``✓ 412 ms {"n":1}`` or ``✗ ScriptError 12 ms``."""
    words = ["✓" if is_good(run) else "✗"]
    first = None if run.passed else next((result for result in run.results if result.status != "success"), None)
    if first is not None:
        words.append(first.error.type if first.error is not msgspec.UNSET else first.status)
    elif run.passed is False:
        words.append("not what the example expects" if run.kind == "example" else "not what is expected")
    words.append(f"{run.duration_ms:.0f} ms")
    if first is None and run.results and run.results[-1].output is not msgspec.UNSET:
        words.append(msgspec.json.encode(run.results[-1].output).decode("utf-8", "replace"))
    text = plain(" ".join(words))
    return Outcome(text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…", run.run)


# Documents that only the server has: results of runs and prompt previews (``workspace/textDocumentContent``). Bounded.


RESULT_SCHEME = "tamis-result"
PROMPT_SCHEME = "tamis-prompt"
SCHEMES = (RESULT_SCHEME, PROMPT_SCHEME)
MAX_KEPT = 200


class VirtualDocuments:
    """Texts by URI; a text may be made when it is asked for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str | Callable[[], str]] = OrderedDict()

    def put(self, uri: str, text: str | Callable[[], str]) -> None:
        """Keeps a document, or how it is made; the oldest ones go when there are too many."""
        self._kept[uri] = text
        self._kept.move_to_end(uri)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def get(self, uri: str) -> str | None:
        """A document's present text, or None when it is not kept."""
        content = self._kept.get(uri)
        if content is None:
            # Editors write the escapes of a URI in their own way.
            meant = unquote(uri)
            content = next((text for known, text in self._kept.items() if unquote(known) == meant), None)
        return content if content is None or isinstance(content, str) else content()

    def uris(self, scheme: str) -> list[str]:
        """The kept documents of a scheme."""
        return [uri for uri in self._kept if uri.startswith(scheme + ":")]


# Runs that failed as diagnostics at their block, with the script's line behind them; gone as soon as the text is another one.


MAX_REASON_CHARS = 300
MAX_DIFFERENCE_CHARS = 2_000
_SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
_SAID_ALREADY = frozenset({"UnknownTool", "ParameterValidationError"})
"""What analysing the text says without running it."""
_NO_FAILURES = frozenset(
    {"success", "cancelled", "denied", "approvalTimeout", "approvalUnavailable", "accepted", "inputRequired"}
)


def run_findings(session: Session, document: Document, snapshot: Snapshot) -> list[Diagnostic]:
    """The failures of a document's last runs, and the questions that can only be answered at their block."""
    runnables = targets(snapshot)
    spans = [target.span for target in runnables]
    runs = session.runs.results(document.uri, document.text, spans)
    asking = session.runs.asking(document.uri, document.text, spans)
    waiting = [
        _to_lsp(document, Diag("VA463", target.head, {"question": asked.question}))
        for target in runnables
        for asked in asking.get(target.span, ())
        if asked.question
    ]
    return waiting + [
        _to_lsp(document, diag, run)
        for target in runnables
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
        Diag(
            "VA462",
            target.head if judgement.expectation is None else judgement.expectation.span,
            {"reason": _told(judgement)},
        )
        for judgement in unmet
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
        actual = "nothing" if output is UNSET else msgspec.json.encode(output).decode("utf-8", "replace")
        return Diag("VA461", span, {"i": run.example or 0, "reason": plain(f"it gave {actual}")[:MAX_REASON_CHARS]})
    return None


def _to_lsp(document: Document, diag: Diag, run: Run | None = None) -> Diagnostic:
    related = [
        RelatedInformation(Location(trace.uri, Range(Position(trace.line, 0), Position(trace.line, 0))), trace.text)
        for trace in (() if run is None else run.trace)
    ]
    return Diagnostic(
        document.range(diag.span),
        message(diag),
        severity=_SEVERITIES[severity(diag)],
        code=diag.code,
        source="tamis",
        related_information=related or UNSET,
        data={"slug": CATALOGUE[diag.code].slug, **({} if run is None else {"run": run.run})},
    )
