"""Code lenses: what an editor offers above a call, a manifest and each of its examples. Cheap; titles that need counting come later.

The same offers are code actions (``run_actions``), for editors without lenses. Must not run anything nor know LSP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tamis.protocols.positions import Span
from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS
from tamis.server.analysis.navigation.references import occurrences_of
from tamis.server.analysis.running.runnables import Target, target_at, targets
from tamis.server.analysis.snapshot import Snapshot

RUN = "tamis.run"
DRY_RUN = "tamis.dryRun"
RUN_EXAMPLE = "tamis.runExample"
TEST_EXAMPLES = "tamis.testExamples"
PREVIEW_PROMPT = "tamis.previewPrompt"
CONVERT = "tamis.convert"
COPY_AS = "tamis.copyAs"
SHOW_RESULT = "tamis.showResult"
SHOW_REFERENCES = "tamis.showReferences"
APPROVE = "tamis.approve"
EXPLAIN = "tamis.explain"
CANCEL = "tamis.cancel"
TRY = "tamis.try"
"""A command of clients that have a form for arguments; the server has none of that name."""

UNTRUSTED = "Trust the workspace to run"
SWITCHED_OFF = "Running is switched off (execution.enable)"
MAX_REASON_CHARS = 100


class Lens(msgspec.Struct, frozen=True):
    """An offer. ``resolve`` names what its title still needs; ``more`` are further arguments of the command."""

    span: Span
    title: str
    command: str
    target: Target
    more: Mapping[str, Any] = {}
    resolve: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What came of the last run of a target, in a few words, and the number of its result."""

    title: str
    run: int


class Asking(msgspec.Struct, frozen=True):
    """A call that waits for a person. ``options`` are the answers that stand at its block, each with its title."""

    approval_id: str
    tool_id: str
    options: tuple[tuple[str, str], ...]
    question: str = ""
    """The whole question, for an editor that has no other way to show it; empty where the client asks by itself."""


class Around(msgspec.Struct, frozen=True):
    """What the offers depend on beside the text: whether anything may run, what ran last, what waits for an answer, by span."""

    trusted: bool = True
    enabled: bool = True
    outcomes: Mapping[Span, Outcome] = {}
    asking: Mapping[Span, tuple[Asking, ...]] = {}
    running: Mapping[Span, tuple[int, ...]] = {}
    """The numbers of the runs that are on their way, by span."""
    edits: bool = True
    """Whether a command may edit the document."""
    tries: bool = False
    """Whether the client has a form for a tool's arguments."""

    @property
    def barred(self) -> str:
        """Why nothing is run here; empty when runs are allowed."""
        return UNTRUSTED if not self.trusted else "" if self.enabled else SWITCHED_OFF


def lenses(snapshot: Snapshot, around: Around) -> list[Lens]:
    """The lenses of a document, in its order."""
    if len(snapshot.text) > MAX_ANALYSED_CHARS:
        return []
    wanted = _wanted(snapshot, around, counts=snapshot.index is not None)
    return [lens for target in targets(snapshot) for lens in _of(target, around, wanted)]


def run_actions(snapshot: Snapshot, span: Span, around: Around) -> list[Lens]:
    """What can be done at a place of a document: the offers of the targets there, without the ones that only tell."""
    runnable = target_at(snapshot, span)
    if runnable is None:
        return []
    here = [runnable]
    if runnable.kind == "call":
        here += [target for target in targets(snapshot) if target.kind == "block" and target.block == runnable.block]
    wanted = _wanted(snapshot, around, counts=False)
    cancels = [
        Lens(target.head, "■ Cancel this run", CANCEL, target, {"run": number})
        for target in here
        for number in around.running.get(target.span, ())
    ]
    return cancels + [
        lens
        for target in here
        for lens in _of(target, around, wanted)
        if lens.command not in (EXPLAIN, SHOW_RESULT) and not lens.resolve.startswith("references")
    ]


def tokens_of_tool(tokens: int, exact: bool) -> str:
    """What a tool's definition costs, in the words of the lens and of the document that it opens."""
    return f"{'' if exact else '≈'}{tokens} tokens for this tool"


def resolved_title(
    lens_resolve: str, tool_ids: Iterable[str], snapshot: Snapshot, tokens: tuple[int, bool] | None
) -> str:
    """The title of a lens that had none yet: ``references`` and ``calls`` count in the workspace index, ``prompt`` shows ``tokens``."""
    if lens_resolve == "prompt":
        if tokens is None:
            return "Preview prompt"
        return f"Preview prompt ({tokens_of_tool(*tokens)})"
    if snapshot.index is None:
        return ""
    roles = {"call"} if lens_resolve == "calls" else {"call", "profile", "dependency"}
    count = sum(
        occurrence.role in roles for name in dict.fromkeys(tool_ids) for occurrence in occurrences_of(snapshot, name)
    )
    word = "call" if lens_resolve == "calls" else "reference"
    return f"{count} {word}{'' if count == 1 else 's'}"


class _Wanted(msgspec.Struct, frozen=True):
    """Whether counts can be had, and whether a block may become one of another protocol: a file of one protocol's ending holds no other."""

    counts: bool
    converting: bool
    """Also a client that lets no one edit is offered no conversion."""


def _wanted(snapshot: Snapshot, around: Around, *, counts: bool) -> _Wanted:
    if snapshot.kind != "text" or not around.edits:
        return _Wanted(counts, converting=False)
    return _Wanted(counts, snapshot.protocol == "auto")


def _of(target: Target, around: Around, wanted: _Wanted) -> list[Lens]:
    if target.kind == "block":
        return _of_block(target, around, wanted)
    if target.kind in ("call", "example") and (target.reason or around.barred):
        return []  # said once, at the block or the manifest
    if target.kind == "call":
        return _running(target, around, f"▶ Run step {target.step}" if target.step is not None else "▶ Run this call")
    if target.kind == "example":
        return _running(target, around, f"▶ Run example {target.example + 1}", RUN_EXAMPLE)
    return _of_manifest(target, around, wanted)


def _of_block(target: Target, around: Around, wanted: _Wanted) -> list[Lens]:
    several = len(target.tool_ids)
    lenses = _running(target, around, f"▶ Run {several} calls" if several > 1 else "▶ Run")
    if not target.reason:
        if not around.barred and target.needs:
            lenses.insert(1, Lens(target.head, f"▶ Run with {', '.join(target.needs)}", RUN, target, {"chain": True}))
        if not around.barred:
            lenses.insert(1, Lens(target.head, "Dry run", DRY_RUN, target))
        lenses.append(Lens(target.head, "Copy as…", COPY_AS, target))
        if wanted.converting:
            lenses.append(Lens(target.head, "⇄ Convert to…", CONVERT, target))
    if wanted.counts and several == 1 and not target.reason:
        lenses.append(Lens(target.head, "", SHOW_REFERENCES, target, {"toolId": target.tool_ids[0]}, "references"))
    return lenses


def _of_manifest(target: Target, around: Around, wanted: _Wanted) -> list[Lens]:
    lenses: list[Lens] = []
    if target.examples and target.reason:
        lenses.append(_told(target, f"Not run: {target.reason}"))
    elif target.examples:
        word = "all examples" if target.examples > 1 else "the example"
        lenses += _running(target, around, f"▶ Test {word}", TEST_EXAMPLES)
    if not target.reason and around.tries:
        lenses.insert(0, Lens(target.head, "▶ Try…", TRY, target, {"toolId": target.tool_ids[0]}))
    if not target.reason:
        lenses.append(
            Lens(target.head, "Preview prompt", PREVIEW_PROMPT, target, {"toolId": target.tool_ids[0]}, "prompt")
        )
    if wanted.counts:
        lenses.append(Lens(target.head, "", SHOW_REFERENCES, target, {"toolId": target.tool_ids[0]}, "calls"))
    return lenses


def _running(target: Target, around: Around, title: str, command: str = RUN) -> list[Lens]:
    """The offer to run a target, or the reason why not; answers that are awaited and the last outcome beside it."""
    if target.reason:
        return [_told(target, f"Not run: {target.reason}")]
    if around.barred:
        return [_told(target, around.barred)]
    more = {"example": target.example} if target.kind == "example" else {}
    lenses = [Lens(target.head, title, command, target, more)]
    for asking in around.asking.get(target.span, ()):
        for option, title in asking.options:
            extra = {"approvalId": asking.approval_id, "optionId": option}
            lenses.append(Lens(target.head, f"{title}: {asking.tool_id}", APPROVE, target, extra))
    outcome = around.outcomes.get(target.span)
    if outcome is not None:
        lenses.append(Lens(target.head, outcome.title, SHOW_RESULT, target, {"run": outcome.run}))
    return lenses


def _told(target: Target, text: str) -> Lens:
    phrase = text if len(text) <= MAX_REASON_CHARS else text[: MAX_REASON_CHARS - 1] + "…"
    return Lens(target.head, phrase, EXPLAIN, target, {"reason": text[:1000]})
