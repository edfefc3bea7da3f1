"""Workflows as editors meet them: which files there are, what their tools are, what their files lack (seed 004; W02, W03, W07).

Must not know how a workflow runs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.manifest.workflow import PREFIX, workflow_tool
from tamis.protocols.model import Diag, Edit, Fix, Json
from tamis.protocols.schema.words import is_list, is_object
from tamis.server.analysis.describe import code, type_name
from tamis.server.analysis.facts import INTERFACE, may_matter, workflow_id
from tamis.server.analysis.kinds import kind_of

if TYPE_CHECKING:
    from tamis.server.analysis.index import WorkspaceIndex
    from tamis.server.analysis.snapshot import Snapshot

MAX_INPUTS = 20
MAX_WORKFLOW_CHARS = 4 * 1024 * 1024
_HOST_TOOLS = {"system": "A tool of the host's own", "kb": "A knowledge base of the host's"}


def workflow_files(index: WorkspaceIndex, folders: Sequence[str], path: str) -> dict[str, str]:
    """The workflow files that ids can name, by id; ``folders`` are those of the settings, none: any. ``path`` is the file that names them.

    Goes by names and a look at each text, so nothing has to be read for it. Relative folders are those of any folder above ``path``.
    """
    workflow_files: dict[str, str] = {}
    for file in index.files():
        if kind_of(file, "") == "workflow" and (not folders or any(_inside(file, folder, path) for folder in folders)):
            workflow_files.setdefault(workflow_id(file), file)
    return workflow_files


def _inside(file: str, folder: str, path: str) -> bool:
    if posixpath.isabs(folder):
        return file.startswith(posixpath.normpath(folder).rstrip("/") + "/")
    above = posixpath.dirname(path)
    while True:
        if file.startswith(posixpath.normpath(posixpath.join(above, folder)).rstrip("/") + "/"):
            return True
        parent = posixpath.dirname(above)
        if parent == above:
            return False
        above = parent


def is_workflow_file(path: str, text: str) -> bool:
    """Whether a document may be a workflow; one search in its text."""
    return len(text) <= MAX_WORKFLOW_CHARS and kind_of(path, "") == "workflow" and may_matter(path, text)


def may_be_graph(path: str, text: str) -> bool:
    """Whether a document may be one where it stands in a workflow folder; one search in its text."""
    from tamis.protocols.workflow.reading import may_be_workflow

    return len(text) <= MAX_WORKFLOW_CHARS and kind_of(path, "") == "workflow" and may_be_workflow(text)


def in_workflow_folder(path: str, folders: Sequence[str]) -> bool:
    """Whether a file stands in one of the settings' workflow folders; relative ones are those of any folder above it."""
    return any(_inside(path, folder, path) for folder in folders)


def workflow_findings(snapshot: Snapshot) -> list[Diag]:
    """What a model would miss in a workflow's tool: its description (W07). Nothing of a file that is no workflow."""
    root = snapshot.tree.root
    if root is None or root.kind != "object" or not root.closed:
        return []
    if all(root.get(name) is None for name in INTERFACE):
        return []
    node = root.get("description")
    if node is not None and (not isinstance(node.value, str) or node.value.strip()):
        return []
    tool_id = workflow_id(snapshot.path)
    if node is not None:
        return [Diag("LN780", node.span, {"id": tool_id})]
    first = root.members[0]
    begin = snapshot.text.rfind("\n", 0, first.key_start) + 1
    lead = snapshot.text[begin : first.key_start]
    between = f"\n{lead}" if not lead.strip() else " "
    name = root.get("name")
    text = name.value if name is not None and isinstance(name.value, str) else ""
    edit = Edit(first.key_start, first.key_start, f'"description": {quoted(text)},{between}')
    title = "Add 'description', with the name to begin with" if text else "Add 'description'"
    return [Diag("LN780", (root.start, root.start + 1), {"id": tool_id}, fix=Fix(title, (edit,), "unsafe"))]


def workflow_card(snapshot: Snapshot, name: str) -> str:
    """What an id of an inventory means that no manifest declares, as Markdown; empty where nothing is known of it."""
    prefix, colon, _ = name.partition(":")
    if colon and prefix in _HOST_TOOLS:
        return f"**{name}**\n\n{_HOST_TOOLS[prefix]}: it is resolved there, and not known here."
    if not name.startswith(PREFIX) or snapshot.index is None:
        return ""
    for declared in snapshot.index.declarations(name):
        if declared.declared.kind == "workflow":
            return _card(snapshot, declared.path, name)
    return ""


def _card(snapshot: Snapshot, path: str, name: str) -> str:
    from tamis.protocols.jsontext.parse import parse_json

    text = snapshot.index.text(path) if snapshot.index is not None else ""
    root = parse_json(text).root
    raw = root.to_python() if root is not None else None
    if not is_object(raw):
        return ""
    definition = workflow_tool(name.removeprefix(PREFIX), raw)
    title, description = raw.get("name"), definition["description"]
    parts = [f"**{name}**" + (f" {title}" if isinstance(title, str) and title else "")]
    parts.append(str(description) if description else "No description: the model has only the name to go by.")
    inputs = _inputs(definition["parameters"])
    if inputs:
        parts.append("\n".join(inputs))
    parts.append(f"Workflow in {code(posixpath.relpath(path, posixpath.dirname(snapshot.path) or '.'))}")
    return "\n\n".join(parts)


def _inputs(parameters: Json) -> list[str]:
    if not is_object(parameters) or not is_object(properties := parameters["properties"]):
        return []
    required = parameters["required"]
    needed = required if is_list(required) else []
    lines: list[str] = []
    for name, schema in properties.items():
        if len(lines) >= MAX_INPUTS:
            lines.append("- …")
            break
        description = schema.get("description") if is_object(schema) else None
        about = f": {description}" if isinstance(description, str) else ""
        lines.append(f"- `{name}` ({type_name(schema)}{', required' if name in needed else ''}){about}")
    return lines
