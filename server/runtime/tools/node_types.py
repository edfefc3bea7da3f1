"""The types of nodes that a registry has: every tool is one (seed 000 §7.1). Must not know how nodes run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Protocol as TypingProtocol

from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Json
from tamis.protocols.schema.words import is_object
from tamis.protocols.workflow.graph import called_types
from tamis.protocols.workflow.model import Workflow
from tamis.protocols.workflow.slots import WHOLE, Slots, slots_of

if TYPE_CHECKING:
    from tamis.protocols.manifest.reading import Manifest


class _Tool(TypingProtocol):
    @property
    def tool_id(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


class _Registry(TypingProtocol):
    def get(self, name: str, version: str | None = None) -> _Tool | None: ...
    def names(self) -> Iterable[str]: ...


class RegistryTypes:
    """The tools of a registry as types of nodes. ``complete`` is false where another engine knows types that no registry has."""

    def __init__(self, registry: _Registry, *, complete: bool = True) -> None:
        self._registry = registry
        self._complete = complete
        self._slots: dict[str, Slots | None] = {}

    def slots(self, node_type: str) -> Slots | None:
        """The slots of a tool by its schemas."""
        if node_type not in self._slots:
            tool = self._registry.get(node_type)
            made = None if tool is None else slots_of(tool.manifest.parameters, tool.manifest.output)
            self._slots[node_type] = made
        return self._slots[node_type]

    def names(self) -> Iterable[str]:
        """Every name that a call may use."""
        return self._registry.names()

    def judges(self, node_type: str) -> bool:
        """Whether every type has to be a tool here."""
        return self._complete

    def comes_later(self, node_type: str) -> bool:
        """No: what a host registered is here."""
        return False

    def called(self, node_type: str) -> str:
        """The id of the workflow that a type is."""
        tool = self._registry.get(node_type)
        return tool.tool_id.removeprefix(PREFIX) if tool is not None and tool.tool_id.startswith(PREFIX) else ""

    def calls_of(self, workflow_id: str) -> Iterable[str]:
        """The ids of the workflows that a workflow calls."""
        tool = self._registry.get(PREFIX + workflow_id)
        workflow: object = getattr(tool, "workflow", None)
        if isinstance(workflow, Workflow):
            for name in called_types(workflow):
                below = self.called(name)
                if below:
                    yield below


def outputs_of(value: Json, slots: Slots | None) -> dict[str, Json]:
    """What a tool gave, by slot: the whole of it, and the parts that its schema names or, without one, that are there.

    A workflow with one output gives its bare value (W18), which is that output's too.
    """
    named = [name for name in slots.outputs if name != WHOLE] if slots is not None else []
    outputs: dict[str, Json] = {}
    if len(named) == 1 and slots is not None and slots.bare:
        outputs[named[0]] = value
    elif is_object(value):
        outputs = dict(value) if slots is None or slots.open_outputs else {n: value[n] for n in named if n in value}
    if WHOLE not in named:
        outputs[WHOLE] = value
    return outputs
