"""``"ask": ["links"]``: the links of a document that lead somewhere."""

from __future__ import annotations

import os
from typing import Any

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.navigation.links import links_of
from tests.lsp.markers import Core, Mark, Wire, place

ASK = "links"
CAPABILITIES: dict[str, Any] = {"textDocument": {"documentLink": {"tooltipSupport": True}}}


def through_core(core: Core, name: str, _mark: Mark | None) -> list[str]:
    lines = [f"links {name}"]
    for link in links_of(core.snapshot(name)):
        target = link.uri
        if link.path and (link.sure or os.path.isfile(link.path)):
            target = core.name(link.path)
            if link.target is not None and link.target != (0, 0):
                text = core.case.documents[target]
                line, _ = LineIndex(text).position(link.target[0])
                target += f":{line + 1}"
        if link.resource:
            folder, _, rest = link.resource.removeprefix("fam://").partition("/")
            target = f"{core.case.options['settings']['resources'][folder]}/{rest}"
            target = target if target in core.case.documents else ""
        if target:
            lines.append(f"  {place(core.text(name), link.span)} → {target} ({link.tooltip})")
    return lines


def through_wire(wire: Wire, name: str, _mark: Mark | None) -> list[str]:
    lines = [f"links {name}"]
    for link in wire.ask("textDocument/documentLink", {"textDocument": {"uri": wire.uri(name)}}):
        uri, _, fragment = link["target"].partition("#")
        target = wire.name(uri) if uri.startswith("file:") else link["target"]
        if uri.startswith("file:") and fragment:
            target += f":{fragment.split(',')[0]}"
        span = wire.span(name, link["range"])
        lines.append(f"  {place(wire.text(name), span)} → {target} ({link['tooltip']})")
    return lines
