"""``⟦complete⟧``: proposals."""

from __future__ import annotations

from typing import Any

from tamis.server.analysis.completion.proposals import complete
from tests.lsp.markers import Core, Mark, Wire, render_completion

MARK = "complete"
CAPABILITIES: dict[str, Any] = {"textDocument": {"completion": {"completionItem": {"snippetSupport": True}}}}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    items = sorted(complete(core.snapshot(name), mark.offset).items, key=lambda item: item.sort)
    rows = [(item.label, item.detail, item.span, item.snippet or item.text) for item in items]
    return render_completion(name, core.text(name), mark.offset, rows)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    found = wire.ask("textDocument/completion", wire.at(name, mark))["items"]
    rows = [
        (
            item["label"],
            item.get("detail", ""),
            wire.span(name, item["textEdit"]["range"]),
            item["textEdit"]["newText"],
        )
        for item in sorted(found, key=lambda item: item["sortText"])
    ]
    return render_completion(name, wire.text(name), mark.offset, rows)
