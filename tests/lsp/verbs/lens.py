"""``ask: ["lens"]``: the code lenses of a document. Titles that need a tool's prompt stand as ``(prompt)``."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.running.lenses import Around, lenses, resolved_title
from tests.lsp.markers import Core, Mark, Wire, place

ASK = "lens"
CAPABILITIES: dict[str, Any] = {"textDocument": {"codeLens": {}}, "workspace": {"applyEdit": True}}
Row = tuple[tuple[int, int], str, str, tuple[int, int]]


def through_core(core: Core, name: str, mark: Mark | None) -> list[str]:
    trusted = core.case.options.get("trusted") is not False
    snapshot = core.snapshot(name)
    rows: list[Row] = []
    for lens in lenses(snapshot, Around(trusted)):
        title = lens.title
        if lens.resolve:
            ids = [str(lens.more["toolId"])]
            title = "(prompt)" if lens.resolve == "prompt" else resolved_title(lens.resolve, ids, snapshot, None)
        rows.append((lens.span, title, lens.command, lens.target.span))
    return render(name, core.text(name), rows)


def through_wire(wire: Wire, name: str, mark: Mark | None) -> list[str]:
    rows: list[Row] = []
    for lens in wire.ask("textDocument/codeLens", {"textDocument": {"uri": wire.uri(name)}}):
        prompt = lens.get("data", {}).get("resolve") == "prompt"
        whole = lens if "command" in lens else wire.ask("codeLens/resolve", lens)
        command = whole["command"]
        title = "(prompt)" if prompt and command["title"].startswith("Preview prompt") else command["title"]
        target = wire.span(name, command["arguments"][0]["range"])
        rows.append((wire.span(name, whole["range"]), title, command["command"], target))
    return render(name, wire.text(name), rows)


def render(name: str, text: str, rows: list[Row]) -> list[str]:
    lines = [f"lenses {name}"]
    last: tuple[tuple[int, int], tuple[int, int]] | None = None
    for span, title, command, target in rows:
        if (span, target) != last:
            lines.append(f"  {place(text, span)} of {place(text, target)}")
            last = (span, target)
        lines.append(f"    {title} → {command}")
    return lines
