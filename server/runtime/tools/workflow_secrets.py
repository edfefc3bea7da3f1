"""The parameters of workflows and nodes that are secrets because of what they come into, marked ``x-secret`` as any other (D83).

A mark is all that masks need: the audit log, questions, observations and stores look at a tool's schema. Which inputs those are depends on
the other tools, so it is found whenever a registry is composed. Must not know how workflows run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tamis.protocols.manifest.reading import WorkflowHandler
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Json
from tamis.protocols.schema.secrets import mask
from tamis.protocols.schema.words import is_object
from tamis.protocols.workflow.graph import called_types
from tamis.protocols.workflow.model import Slots
from tamis.protocols.workflow.payload import Flow, flow_of
from tamis.server.runtime.tools.registry import Registry
from tamis.server.runtime.tools.tool import NodeTool, Tool
from tamis.server.runtime.tools.workflows import RegistryTypes, WorkflowTool

_Key = tuple[str, str, str]


def with_marks(tools: Iterable[Tool], registry: Registry) -> list[Tool] | None:
    """The tools, those whose parameters come into secret ones marked; None where nothing is to be marked.

    ``registry`` holds the same tools: it says what the types of nodes mean.
    """
    originals = list(tools)
    marks = _Marks(registry)
    ends = [tool for tool in originals if isinstance(tool, WorkflowTool | NodeTool)]
    if not any(marks.may_hide(tool) for tool in ends):
        return None
    for tool in ends:
        marks.find(tool)
    marked_tools = [marks.marked(tool) for tool in originals]
    return marked_tools if any(new is not old for new, old in zip(marked_tools, originals, strict=True)) else None


class _Marks:
    """What is secret of which tool, found once for each."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.types = RegistryTypes(registry)
        self._names: dict[str, Tool | None] = {}
        self._flows: dict[_Key, Flow] = {}
        self._begun: set[_Key] = set()

    def tool(self, node_type: str) -> Tool | None:
        """What a node of a type runs: where that is a node definition that stands for a workflow, the workflow."""
        if node_type not in self._names:
            self._names[node_type] = self.registry.get(node_type)
        return self._names[node_type]

    def below(self, tool: Tool) -> list[Tool]:
        """The tools that a workflow's nodes run, or the one that does a node's work."""
        if isinstance(tool, WorkflowTool):
            return [called_tool for name in called_types(tool.workflow) if (called_tool := self.tool(name)) is not None]
        if not isinstance(tool, NodeTool) or tool.target is None:
            return []
        handler = tool.manifest.handler
        of_workflow = self.tool(PREFIX + handler.workflow_id) if isinstance(handler, WorkflowHandler) else None
        return [of_workflow or tool.target]

    def may_hide(self, tool: Tool) -> bool:
        """Whether anything that a workflow or node runs has a secret, as far as that is seen without its own graph."""
        return any(tool.may_have_secrets for tool in self.below(tool))

    def find(self, tool: Tool) -> None:
        """Follows the inputs of a workflow, those of what it runs first. Workflows in a circle cannot run, and hide nothing of each other."""
        pending = [tool]
        while pending:
            here = pending[-1]
            key = _key(here)
            if key in self._flows or not isinstance(here, WorkflowTool | NodeTool):
                pending.pop()
            elif key in self._begun:
                pending.pop()
                self._flows[key] = self._flow(here)
            else:
                self._begun.add(key)
                pending += [tool for tool in self.below(here) if _key(tool) not in self._begun]

    def _flow(self, tool: Tool) -> Flow:
        if isinstance(tool, WorkflowTool):
            return flow_of(tool.workflow, self)
        names = (tool.manifest.parameters or {}).get("properties")
        below = self.below(tool)
        secret = [name for name in names if any(self._hides(tool, name) for tool in below)] if is_object(names) else []
        known = self._flows.get(_key(below[0])) if below else None
        return Flow(frozenset(secret), known.passed if known is not None else {})

    # what the following asks

    def slots(self, node_type: str) -> Slots | None:
        """The slots of a tool."""
        return self.types.slots(node_type)

    def hides(self, node_type: str, slot: str) -> bool:
        """Whether a tool's parameter is a secret, or has one inside."""
        tool = self.tool(node_type)
        return tool is not None and self._hides(tool, slot)

    def passed(self, node_type: str) -> Mapping[str, frozenset[str]]:
        """What a workflow gives of what it is given."""
        tool = self.tool(node_type)
        flow = None if tool is None else self._flows.get(_key(tool))
        return {} if flow is None else flow.passed

    def _hides(self, tool: Tool, slot: str) -> bool:
        flow = self._flows.get(_key(tool))
        return (flow is not None and slot in flow.secret) or _is_marked(tool, slot)

    def marked(self, tool: Tool) -> Tool:
        """The tool with its secret parameters marked; the same where each is."""
        flow = self._flows.get(_key(tool))
        new = [] if flow is None else sorted(name for name in flow.secret if not _is_marked(tool, name))
        parameters = tool.manifest.parameters
        properties = parameters.get("properties") if parameters is not None else None
        if not new or parameters is None or not is_object(properties):
            return tool
        shown = {name: _with_mark(item) if name in new else item for name, item in properties.items()}
        schema: dict[str, Json] = {**parameters, "properties": shown}
        raw = tool.manifest.raw
        raw = {**raw, "parameters": schema} if "parameters" in raw else raw
        return tool.defined_by(msgspec.structs.replace(tool.manifest, parameters=schema, raw=raw))


def _key(tool: Tool) -> _Key:
    # a registry may hold a twin of the tool that it was given
    return tool.tool_id, tool.version, tool.path


def _is_marked(tool: Tool, name: str) -> bool:
    """Whether a tool's own schema hides a parameter, or a part of it: then the whole input is one, for its parts have no names."""
    if not tool.may_have_secrets:
        return False
    sample: Json = {name: ""}
    return mask(sample, tool.manifest.parameters or {}) != sample


def _with_mark(schema: Json) -> Json:
    return {**schema, "x-secret": True} if is_object(schema) else schema
