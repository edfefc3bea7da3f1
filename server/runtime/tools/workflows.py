"""Workflow files as tools of the registry: found in the configured folders, each under ``workflow:`` and its file's name (W02, A42).

The workflows themselves hang on their tools, so that a call keeps the graph that its registry was made with. Must not know how they run.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol as TypingProtocol
from typing import Self

import msgspec
from msgspec import UNSET

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.contract import Problem
from tamis.protocols.manifest.reading import Execution, Manifest, WorkflowHandler, is_semver, tool_id_fault
from tamis.protocols.manifest.workflow import PREFIX, workflow_tool
from tamis.protocols.model import Diag, Json
from tamis.protocols.positions import LineIndex
from tamis.protocols.schema.words import is_object
from tamis.protocols.workflow.graph import GraphFinding, Types, called_types, check_graph
from tamis.protocols.workflow.model import MAX_WAIT_MS, SLOTS_WORD, WHOLE, Slots, Workflow, slots_of
from tamis.protocols.workflow.reading import WorkflowReading, is_meant, is_workflow, may_be_workflow, read_workflow
from tamis.server.runtime.tools.builtin import READER
from tamis.server.runtime.tools.loader import SUFFIX, FoundFile, read_manifest_file, walk_files
from tamis.server.runtime.tools.registry import Registry, RegistryError, Tool

NO_VERSION = "0.0.0"


class WorkflowTool(Tool):
    """A workflow as a tool, with its graph."""

    __slots__ = ("_by_path", "_fault", "_twin", "checked", "inside", "workflow")

    def __init__(self, manifest: Manifest, path: str, workflow: Workflow, inside: str = "") -> None:
        """``inside``: its path in the root, as calls may write it."""
        super().__init__(manifest, path, origin="workflow")
        self.workflow = workflow
        self.inside = inside
        self._by_path: WorkflowTool | None = None
        self.checked: tuple[object, list[Problem]] | None = None
        """The faults of the graph, with the registry that was asked for types."""
        self._fault: str | None = None
        self._twin: WorkflowTool | None = None

    def defined_by(self, manifest: Manifest) -> Self:
        """The same workflow with another manifest; the last such is kept, for registries are made often and alike."""
        twin = self._twin
        if not isinstance(twin, type(self)) or twin.manifest != manifest:
            self._twin = twin = super().defined_by(manifest)
            twin.checked = None
        return twin

    def by_path(self) -> WorkflowTool:
        """The same workflow as a tool of its own under its path, for where another file has its name; None of its other names lead to it."""
        if self._by_path is None:
            workflow = msgspec.structs.replace(self.workflow, workflow_id=self.inside)
            raw = dict(self.manifest.raw) | {"name": PREFIX + self.inside}
            manifest = msgspec.structs.replace(
                self.manifest,
                tool_id=PREFIX + self.inside,
                handler=WorkflowHandler(self.inside),
                aliases=(self.inside,),
                raw=raw,
            )
            self._by_path = WorkflowTool(manifest, self.path, workflow, self.inside)
        return self._by_path

    @property
    def content(self) -> object:
        """The file: another graph is another tool, also where the interface is the same. What is secret of that depends on other tools."""
        return self.workflow.raw if not self.may_have_secrets else [self.workflow.raw, self.manifest.parameters]

    @property
    def fault(self) -> str:
        """Why the workflow cannot run whatever tools there are, cause and remedy; empty when it is whole in itself."""
        if self._fault is None:
            from tamis.protocols.workflow.graph import Unknown

            problems = problems_of(self.workflow, Unknown())
            remedy = "see `tamis check`" if self.workflow.nodes is not None else "add its nodes"
            self._fault = f"the workflow cannot be run: {problems[0].message}; {remedy}" if problems else ""
        return self._fault


def graph_problems(tool: WorkflowTool, registry: Registry, *, complete: bool = True) -> list[Problem]:
    """The faults of error level in a workflow's graph, given these tools."""

    if tool.checked is None or tool.checked[0] is not registry:
        tool.checked = (registry, problems_of(tool.workflow, RegistryTypes(registry, complete=complete)))
    return tool.checked[1]


def graph_fault(tool: Tool, registry: Registry) -> str:
    """Why a workflow cannot run with these tools, cause and remedy; empty where it can."""
    problems = graph_problems(tool, registry) if isinstance(tool, WorkflowTool) else []
    return f"the workflow cannot be run: {problems[0].message}; see `tamis check`" if problems else ""


def workflow_files(root: Path, folders: Iterable[str]) -> tuple[list[FoundFile], list[RegistryError]]:
    """The files below the configured folders that may be workflows, in a stable order, and what could not be read."""
    files: dict[str, FoundFile] = {}
    errors: list[RegistryError] = []
    for name in folders:
        folder = Path(os.path.realpath(root / name))
        if not os.path.isdir(folder):
            what = "is not a folder" if os.path.exists(folder) else "does not exist"
            text = f"the workflow folder {what}; mend `workflows` in tamis.toml"
            errors.append(RegistryError(str(folder), text))
            continue
        paths, problems = walk_files(folder, is_workflow_name)
        errors.extend(RegistryError(problem.path, problem.message) for problem in problems)
        for path in paths:
            if path in files:
                continue
            manifest_file = read_manifest_file(path)
            if isinstance(manifest_file, FoundFile):
                files[path] = FoundFile(path, workflow_text(manifest_file.text), manifest_file.stamp)
            else:
                errors.append(RegistryError(path, manifest_file.message))
    return list(files.values()), errors


def workflow_text(text: str) -> str:
    """A text as far as it matters here: other JSON stands anywhere, and may be large, so nothing of it is kept."""
    return text if may_be_workflow(text) else ""


def streams(tool: Tool) -> bool:
    """Whether a tool is a workflow with a streamed output."""
    return isinstance(tool, WorkflowTool) and any(slot.is_stream for slot in tool.workflow.outputs.values())


def reader_tool() -> Tool:
    """The tool by which agents read streamed outputs (W22); it is there where a workflow has one."""
    raw: dict[str, Json] = {
        "toolId": READER,
        "displayName": "Read a stream",
        "description": "Reads what has come in a streamed output of a workflow since the last reading. Call it again until done is true.",
        "version": "1.0.0",
        "parameters": {
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "The handle that the workflow's result gave."},
                "waitMs": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": MAX_WAIT_MS,
                    "description": "How long to wait for the next items, in milliseconds. Default 1000.",
                },
            },
            "required": ["handle"],
            "additionalProperties": False,
        },
    }
    parameters = raw["parameters"]
    manifest = Manifest(
        READER,
        str(raw["displayName"]),
        str(raw["description"]),
        str(raw["version"]),
        WorkflowHandler(READER),
        parameters=parameters if is_object(parameters) else None,
        raw=raw,
    )
    return Tool(manifest, "", origin="builtin")


def is_workflow_name(name: str) -> bool:
    """Whether a file's name lets it be a workflow."""
    others = (SUFFIX, ".tool.jsonc", ".node.json", "agent_profile.json", "plugin-manifest.json")
    return name.endswith((".json", ".jsonc")) and not name.endswith(others)


def workflow_id(path: str) -> str:
    """A workflow's id: its file's name without extension (W02)."""
    return os.path.basename(path).rsplit(".", 1)[0]


def read_workflow_file(
    file: FoundFile, root: Path, *, strict: bool = False, reading: WorkflowReading | None = None
) -> Tool | RegistryError | None:
    """The tool of a file in a workflow folder, the first error in it with its place, or None where it is no workflow at all.

    ``reading`` is the file as it was read already, in the same strictness.
    """
    if not may_be_workflow(file.text):
        return None
    reading = reading or read_workflow(file.text, workflow_id(file.path), strict=strict)
    top = reading.tree.root
    if not is_meant(file.text, top):
        return None
    if reading.workflow is None or not is_workflow(top):
        return _first_error(file, reading)
    return tool_of_workflow(reading.workflow, file.path, root)


def tool_of_workflow(workflow: Workflow, path: str, root: Path = Path()) -> WorkflowTool:
    """The tool of a workflow. It is called by its full id, and also by its bare name, the ``id`` in its file and its path (seed 000 §3.3, §7)."""
    definition = workflow_tool(workflow.workflow_id, workflow.raw)
    parameters = definition["parameters"]
    tool_id = PREFIX + workflow.workflow_id
    inside = os.path.relpath(path, root).replace(os.sep, "/")
    names = (workflow.workflow_id, workflow.declared_id, inside)
    aliases = tuple(dict.fromkeys(name for name in names if name != tool_id and tool_id_fault(name) is None))
    manifest = Manifest(
        tool_id,
        workflow.name or workflow.workflow_id,
        workflow.description,
        workflow.version if is_semver(workflow.version) else NO_VERSION,
        WorkflowHandler(workflow.workflow_id),
        parameters=parameters if is_object(parameters) else None,
        output=output_schema(workflow),
        aliases=aliases,
        execution=Execution("async" if workflow.asynchronous else "sync", workflow.timeout_ms),
        raw=definition,
    )
    return WorkflowTool(manifest, path, workflow, inside if inside in aliases else "")


def told_apart(tools: list[Tool], policy: str) -> list[Tool]:
    """The tools, with those workflows whose files have one name (T7): each is reached by its path, under ``workflow:`` and that path.

    The name stays with the one that ``onConflict`` gives it to, and both where they are versions of one workflow; lists show the other by its path.
    """
    named: dict[str, list[WorkflowTool]] = {}
    for tool in tools:
        if isinstance(tool, WorkflowTool) and tool.inside:
            named.setdefault(tool.tool_id, []).append(tool)
    rivals = [group for group in named.values() if len({tool.path for tool in group}) > 1]
    if not rivals:
        return tools
    twins: list[Tool] = []
    changed: dict[int, Tool] = {}
    for group in rivals:
        for number, tool in enumerate(group):
            others = [
                group[i].version for i in (range(number) if policy == "keepFirst" else range(number + 1, len(group)))
            ]
            if policy == "error":
                others = [workflow_tool.version for workflow_tool in group if workflow_tool is not tool]
            twin = tool.by_path()
            if tool.version not in others:
                # lists show it by its name
                twin = copy.copy(twin)
                twin.listed = False
            twins.append(twin)
            rest = tuple(name for name in tool.manifest.aliases if name != tool.inside)
            changed[id(tool)] = tool.defined_by(msgspec.structs.replace(tool.manifest, aliases=rest))
    return [*(changed.get(id(tool), tool) for tool in tools), *twins]


def output_schema(workflow: Workflow) -> Json:
    """What a call gives: the bare value of a single output, else an object of them (W18); None without outputs.

    The types of slots are not enforced: a branch that was not taken leaves its output without a value.
    """
    if not workflow.outputs:
        return None
    named: dict[str, Json] = {
        slot.name: "WILDCARD" if slot.is_stream else slot.type for slot in workflow.outputs.values()
    }
    return {SLOTS_WORD: named} if len(named) == 1 else {"type": "object", SLOTS_WORD: named}


def _first_error(file: FoundFile, reading: WorkflowReading) -> RegistryError:
    tool_id = PREFIX + workflow_id(file.path)
    worst = next((diag for diag in reading.diagnostics if severity(diag) == "error"), None)
    if worst is None:
        text = "holds no workflow: neither nodes nor interfaceInputs nor interfaceOutputs"
        return RegistryError(file.path, text, tool_id=tool_id)
    line, column = LineIndex(file.text).position(worst.span[0])
    more = sum(1 for diag in reading.diagnostics if severity(diag) == "error") - 1
    suffix = f" (and {more} more; `tamis check` lists all)" if more else ""
    return RegistryError(file.path, message(worst) + suffix, line + 1, column + 1, tool_id)


# The faults of a workflow's graph as results and descriptions tell them.


def problems_of(workflow: Workflow, types: Types) -> list[Problem]:
    """The faults of error level in a graph, as they stand in results; a file without nodes has nothing that could run."""
    problems = [problem_of(finding) for finding in check_graph(workflow, types) if _is_error(finding)]
    if workflow.nodes is None:
        text = "the file has no 'nodes': only its interface is known"
        return [Problem(code="WF913", slug=CATALOGUE["WF913"].slug, path="/nodes", message=text)]
    return problems


def _is_error(finding: GraphFinding) -> bool:
    return severity(Diag(finding.code, (0, 0), dict(finding.args))) == "error"


def problem_of(finding: GraphFinding) -> Problem:
    """A graph finding as it stands in results; ``path`` leads into the workflow's file."""
    about = finding.about
    paths = {
        "node": f"/nodes/{about.index}",
        "edge": f"/edges/{about.index}",
        "input": f"/interfaceInputs/{about.name}",
        "output": f"/interfaceOutputs/{about.name}",
        "outputMapping": f"/outputInterfaceMappings/{about.name}",
        "inputMapping": f"/interfaceInputMappings/{about.name}",
    }
    return Problem(
        code=finding.code,
        slug=CATALOGUE[finding.code].slug,
        path=paths[about.what],
        message=message(Diag(finding.code, (0, 0), dict(finding.args))),
        suggestion=UNSET if finding.suggestion is None else finding.suggestion,
    )


# The types of nodes that a registry has: every tool is one (seed 000 §7.1).


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
            slots = None if tool is None else slots_of(tool.manifest.parameters, tool.manifest.output)
            self._slots[node_type] = slots
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
