"""What the last run gave stands beside its block, until its text changes (editors ring 0, row 14)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tamis.server.analysis.running.runnables import digest_of, targets
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.lsp.documents import Document
from tamis.server.lsp.features.inlay_hint import _results  # pyright: ignore[reportPrivateUsage]
from tamis.server.lsp.running.runs import Run, Runs

BLOCK = "<|[REQUEST_TOOL]|>\ncommand:»»»core:echo«««\n<|[END_TOOL]|>"
URI = "file:///w/a.md"


def shown(runs: Runs, text: str) -> dict[str, str]:
    document = Document(URI, "markdown", 1, text, "utf-16")
    session: Any = SimpleNamespace(runs=runs)
    snapshot = Snapshot("/w/a.md", "text", text, None)
    return {text[slice(*span)]: said for span, said in _results(session, document, snapshot).items()}


def test_a_result_is_shown_while_its_block_is_as_it_was() -> None:
    runs = Runs()
    text = f"before\n{BLOCK}\nafter"
    (target, *_) = targets(Snapshot("/w/a.md", "text", text, None))
    run = Run(
        run=1,
        uri=URI,
        kind="run",
        target=target.kind,
        digest=digest_of(text[slice(*target.span)]),
        tool_ids=("core:echo",),
        status="success",
        exit_code=0,
        duration_ms=412.0,
        when="2026-01-01T00:00:00Z",
        outcome="",
        observation="",
        results=cast("list[Any]", []),
    )
    assert shown(runs, text) == {}
    runs.add(run, 0)
    assert shown(runs, text) == {BLOCK: "✓ 412 ms"}
    assert shown(runs, f"moved\n\n{text}") == {BLOCK: "✓ 412 ms"}, "it moves with its block"
    assert shown(runs, text.replace("core:echo", "core:other")) == {}, "another text was not run"
