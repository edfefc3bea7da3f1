"""Findings of a workflow file: what reading it found, and what its graph lacks, given the tools and workflows of the workspace.

Must not know how a workflow runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from tamis.protocols.manifest.profile import HOST_PREFIXES
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Diag
from tamis.protocols.workflow.graph import called_types, check_graph
from tamis.protocols.workflow.model import Slot, Workflow
from tamis.protocols.workflow.places import findings_at
from tamis.protocols.workflow.reading import read_workflow
from tamis.protocols.workflow.slots import WHOLE, Slots, slots_of

if TYPE_CHECKING:
    from tamis.server.analysis.snapshot import Snapshot


class _Types:
    """The types of nodes that a workspace has: its tools, and its workflow files."""

    def __init__(self, snapshot: Snapshot, own: Workflow) -> None:
        self._snapshot = snapshot
        self._registry = snapshot.registry
        self._files = snapshot.workflows or {}
        self._read: dict[str, Workflow | None] = {PREFIX + own.workflow_id: own}

    def slots(self, node_type: str) -> Slots | None:
        workflow = self._workflow(node_type)
        if workflow is not None:
            return _interface(workflow)
        tool = self._registry.get(node_type) if self._registry is not None else None
        return None if tool is None else slots_of(tool.manifest.parameters, tool.manifest.output)

    def names(self) -> Iterable[str]:
        return [*(self._registry.names() if self._registry is not None else ()), *self._files]

    def judges(self, node_type: str) -> bool:
        config = self._snapshot.settings.config
        if self._registry is None or (config is not None and config.engine.type != "builtin"):
            return False
        if node_type in self._files or PREFIX + node_type in self._files:
            return False  # it is there, and cannot be read now
        if node_type.startswith(PREFIX):
            # Without the workspace's list of workflows only a registry that has any can tell.
            return self._snapshot.workflows is not None or any(
                name.startswith(PREFIX) for name in self._registry.names()
            )
        return True

    def comes_later(self, node_type: str) -> bool:
        return node_type.partition(":")[0] in HOST_PREFIXES

    def called(self, node_type: str) -> str:
        workflow = self._workflow(node_type)
        return "" if workflow is None else workflow.workflow_id

    def calls_of(self, workflow_id: str) -> Iterable[str]:
        workflow = self._workflow(PREFIX + workflow_id)
        for name in called_types(workflow) if workflow is not None else ():
            if below := self.called(name):
                yield below

    def _workflow(self, name: str) -> Workflow | None:
        """A workflow by a name of its own, as it stands in the workspace or in the registry."""
        tool = self._registry.get(name) if self._registry is not None else None
        full = name if name.startswith(PREFIX) else PREFIX + name
        if tool is not None:
            if not tool.tool_id.startswith(PREFIX):
                return None
            full = tool.tool_id
        if full not in self._read:
            held: object = getattr(tool, "workflow", None)
            self._read[full] = held if isinstance(held, Workflow) else self._from_file(full)
        return self._read[full]

    def _from_file(self, tool_id: str) -> Workflow | None:
        path, index = self._files.get(tool_id), self._snapshot.index
        if path is None or index is None:
            return None
        return read_workflow(index.text(path), tool_id.removeprefix(PREFIX)).draft


def _interface(workflow: Workflow) -> Slots:
    outputs = {name: slot if not slot.is_stream else Slot(name) for name, slot in workflow.outputs.items()}
    outputs.setdefault(WHOLE, Slot(WHOLE))
    return Slots(dict(workflow.inputs), outputs)


def graph_findings(snapshot: Snapshot) -> list[Diag]:
    """Findings of a workflow file, without those of its description; nothing of a graph whose file is being typed."""
    reading = snapshot.workflow
    found = list(reading.diagnostics)
    if reading.draft is None or not reading.tree.ok:
        return found
    graph = check_graph(reading.draft, _Types(snapshot, reading.draft))
    return [*found, *(_softened(diag) for diag in findings_at(graph, reading.tree))]


def _softened(diag: Diag) -> Diag:
    """A type that nobody here has, and that looks like none that is: a host may bring it while it runs."""
    if diag.code == "WF905" and diag.fix is None:
        return msgspec.structs.replace(diag, severity="warning")
    return diag
