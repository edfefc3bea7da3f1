"""``⟦signature⟧``: the parameters of the call that is being typed, the active one between ``‹`` and ``›``."""

from __future__ import annotations

from typing import Any

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.hover.signature import signature_at
from tests.lsp.markers import Core, Mark, Wire

MARK = "signature"
CAPABILITIES: dict[str, Any] = {
    "textDocument": {
        "signatureHelp": {
            "contextSupport": True,
            "signatureInformation": {
                "documentationFormat": ["markdown", "plaintext"],
                "parameterInformation": {"labelOffsetSupport": True},
                "activeParameterSupport": True,
                "noActiveParameterSupport": True,
            },
        }
    }
}


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    found = signature_at(core.snapshot(name), mark.offset)
    if found is None:
        return _render(name, core.text(name), mark, None)
    active = found.arguments[found.active] if found.active is not None else None
    said = active.documentation if active else ""
    return _render(name, core.text(name), mark, (found.label, active.span if active else None, said))


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    context = {"triggerKind": 1, "isRetrigger": False}
    answer = wire.ask("textDocument/signatureHelp", {**wire.at(name, mark), "context": context})
    if answer is None:
        return _render(name, wire.text(name), mark, None)
    (found,) = answer["signatures"]
    assert answer["activeParameter"] == found["activeParameter"]
    if found["activeParameter"] is None:
        return _render(name, wire.text(name), mark, (found["label"], None, ""))
    active = found["parameters"][found["activeParameter"]]
    units = found["label"].encode("utf-16-le")
    start, end = (len(units[: 2 * at].decode("utf-16-le")) for at in active["label"])
    said = active.get("documentation", {}).get("value", "")
    return _render(name, wire.text(name), mark, (found["label"], (start, end), said))


def _render(name: str, text: str, mark: Mark, found: tuple[str, tuple[int, int] | None, str] | None) -> list[str]:
    line, column = LineIndex(text).position(mark.offset)
    lines = [f"signature {name}:{line + 1}:{column + 1}"]
    if found is not None:
        label, span, said = found
        lines.append(f"  {label}" if span is None else f"  {label[: span[0]]}‹{label[slice(*span)]}›{label[span[1] :]}")
        lines += [f"  | {row}".rstrip() for row in said.splitlines()]
    return lines
