"""``⟦hover⟧``: what a hover says."""

from __future__ import annotations

from typing import Any, cast

from tamis.protocols.contract import Permissions
from tamis.server.analysis.hover.explain import explain
from tamis.server.analysis.hover.tools import HoverFacts, PromptView
from tamis.server.analysis.snapshot import ToolView
from tamis.server.runtime.policy.permissions import permissions_of
from tamis.server.runtime.tools.registry import Registry, Tool
from tests.lsp.markers import Core, Mark, Wire, render_hover

MARK = "hover"
CAPABILITIES: dict[str, Any] = {"textDocument": {"hover": {"contentFormat": ["markdown", "plaintext"]}}}


def facts_of(core: Core, name: str) -> HoverFacts:
    snapshot = core.snapshot(name)
    config = snapshot.settings.config
    assert config is not None

    def rights(tool: ToolView) -> Permissions | None:
        return permissions_of(cast("Tool", tool), cast("Registry", snapshot.registry), config, core.root)

    return HoverFacts(PromptView(config.protocol.default), rights)


def through_core(core: Core, name: str, mark: Mark) -> list[str]:
    hover = explain(core.snapshot(name), mark.offset, facts_of(core, name))
    said = _without_root(hover.markdown, str(core.root)) if hover else ""
    return render_hover(name, core.text(name), mark.offset, (hover.span, said) if hover else None)


def through_wire(wire: Wire, name: str, mark: Mark) -> list[str]:
    hover = wire.ask("textDocument/hover", wire.at(name, mark))
    said = _without_root(hover["contents"]["value"], str(wire.root)) if hover else ""
    answer = (wire.span(name, hover["range"]), said) if hover else None
    return render_hover(name, wire.text(name), mark.offset, answer)


def _without_root(text: str, root: str) -> str:
    return text.replace(root, "/ROOT")
