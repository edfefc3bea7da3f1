"""Actions in an agent profile: add tools and workflows that it does not list (W23)."""

from __future__ import annotations

from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Edit
from tamis.protocols.positions import Span
from tamis.server.analysis.actions.manifests import inventory_edit
from tamis.server.analysis.actions.refactorings import FileChange, Refactoring
from tamis.server.analysis.snapshot import Snapshot

MAX_OFFERED = 20
"""Of more tools the first are offered one by one; completion in the list knows all."""


def in_profile(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """For each tool and workflow that is not listed the action that adds it; offered at the inventory, or anywhere without one."""
    root = snapshot.profile.tree.root
    if root is None or root.kind != "object":
        return []
    member = root.member("tool_ids_inventory")
    if member is not None and not (member.span[0] <= span[1] and span[0] <= member.span[1]):
        return []
    listed = {name for name, _ in snapshot.profile.entries}
    refactorings: list[Refactoring] = []
    tools, workflows = addable(snapshot)
    for what, names in (("workflow tool", workflows), ("tool", tools)):
        for name in [name for name in names if name not in listed][:MAX_OFFERED]:
            edit = inventory_edit(snapshot.text, name)
            if edit is not None:
                refactorings.append(_adding(f"Add {what} '{name}'", (edit,)))
    return refactorings


def addable(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """The ids of the registered tools, and those of the workflows."""
    tools = {tool.tool_id for tool in snapshot.registry.tools} if snapshot.registry is not None else set[str]()
    workflows = {*(snapshot.workflows or ()), *(tool_id for tool_id in tools if tool_id.startswith(PREFIX))}
    return sorted(tools - workflows), sorted(workflows)


def _adding(title: str, edits: tuple[Edit, ...]) -> Refactoring:
    return Refactoring(title, "refactor.rewrite", (FileChange(edits=edits),))
