"""Agent profiles (``agent_profile.json``): which tools an agent has, and how calls are handled.

``tool_ids_inventory`` (seed 004 §2.1) names the tools of every kind; ``toolCallConfig`` (seed 001 §3.1) sets the rules, with the
seed's defaults. A missing config means that tool calls are off (V17). Must not know the registry: known ids are given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from tamis.protocols.catalogue import severity
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.manifest.fields import Findings, value_of
from tamis.protocols.manifest.reading import tool_id_fault
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Diag, Edit, Fix, Json
from tamis.protocols.plugins import known_protocols
from tamis.protocols.suggest import best, hint

PREFIXES = ("workflow", "system", "kb", "core", "vendor", "custom")
"""Namespaces that the seeds give a meaning to; a registered tool's namespace is as good."""
HOST_PREFIXES = ("system", "kb")
"""What a host resolves by itself (W03): it may register what is not there yet."""
_CONFIG = (
    *("enabled", "mode", "toolToggles", "defaultToolEnabled", "maxIterations"),
    *("timeout", "requireConfirmation", "parallelExecution", "protocol"),
)
MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000


class ToolCallConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How an agent's calls are handled; the defaults are the seed's (V08 to V16). ``timeout`` is in milliseconds."""

    enabled: bool = False
    mode: Literal["auto", "manual"] = "auto"
    tool_toggles: dict[str, bool] = {}
    default_tool_enabled: bool = True
    max_iterations: int = 5
    timeout: int = 30_000
    require_confirmation: bool = False
    parallel_execution: bool = False
    protocol: str = "vcp"

    def allows(self, tool_id: str) -> bool:
        """Whether a tool is switched on: its own toggle wins, then that of its service or namespace, else the default (V10, V11)."""
        own = self.tool_toggles.get(tool_id)
        if own is None:
            own = self.tool_toggles.get(tool_id.rpartition(":")[0], self.default_tool_enabled)
        return self.enabled and own


class Profile(msgspec.Struct, frozen=True):
    """An agent's profile. ``inventory`` is None where the file has no ``tool_ids_inventory``; ``raw`` is the file's JSON."""

    inventory: tuple[str, ...] | None = None
    config: ToolCallConfig = ToolCallConfig()
    has_config: bool = False
    raw: dict[str, Json] = {}

    def lists(self, tool_id: str) -> bool:
        """Whether the inventory holds a tool; without an inventory every tool counts as held."""
        return self.inventory is None or tool_id in self.inventory


class ProfileReading(msgspec.Struct):
    """A profile as it was read; ``profile`` is None exactly when a diagnostic has error level.

    ``entries`` are the inventory's ids with their nodes, for completion, links and renaming.
    """

    profile: Profile | None
    tree: JsonTree
    diagnostics: list[Diag]
    entries: list[tuple[str, JsonNode]] = []


def read_profile(
    text: str,
    known_ids: Iterable[str] | None = None,
    *,
    strict: bool = False,
    tree: JsonTree | None = None,
    workflows: Iterable[str] | None = None,
) -> ProfileReading:
    """Reads a profile. With ``known_ids``, ids that are not among them are reported; with ``workflows`` (ids) those of workflows that have no
    file. ``tree`` is the text as it was read already, in the same strictness. Never raises."""
    if tree is None:
        from tamis.protocols.jsontext.parse import parse_json

        tree = parse_json(text, comments=not strict)
    findings = Findings("PF")
    known = None if known_ids is None else list(known_ids)
    profile = None
    entries: list[tuple[str, JsonNode]] = []
    root = tree.root
    if root is not None and root.kind != "object":
        findings.wrong_type(root, "the profile", "an object")
    elif root is not None:
        members = {member.key: member for member in root.members}
        inventory = value_of(members, "tool_ids_inventory")
        entries = _inventory(inventory, known, None if workflows is None else list(workflows), findings)
        config_node = value_of(members, "toolCallConfig")
        listed = None if inventory is None else {tool_id for tool_id, _ in entries}
        config = _config(config_node, listed, findings)
        _misspelled(root, findings)
        if config_node is None and "toolCallConfig" not in members:
            findings.add("PF608", (root.start, root.start + 1))
        ids = None if inventory is None else tuple(dict.fromkeys(tool_id for tool_id, _ in entries))
        raw = root.to_python()
        profile = Profile(ids, config, config_node is not None, raw if isinstance(raw, dict) else {})
    diagnostics = sorted([*tree.diagnostics, *findings.diags], key=lambda diag: diag.span)
    if any(severity(diag) == "error" for diag in diagnostics):
        profile = None
    return ProfileReading(profile, tree, diagnostics, entries)


def _misspelled(root: JsonNode, findings: Findings) -> None:
    """A profile has other fields of its host; only near misses of the two that count here are reported."""
    wanted = [name for name in ("tool_ids_inventory", "toolCallConfig") if root.member(name) is None]
    for member in root.members:
        meant = best(member.key, wanted)
        if meant is not None:
            findings.unknown_field(member, wanted)
            if meant == "tool_ids_inventory":
                # Without it every tool counts as listed, which who wrote a list did not want.
                findings.add("PF612", (root.start, root.start + 1))
                wanted.remove(meant)


def _inventory(
    node: JsonNode | None, known: list[str] | None, workflows: list[str] | None, findings: Findings
) -> list[tuple[str, JsonNode]]:
    entries = findings.texts(node, "tool_ids_inventory") or []
    seen: set[str] = set()
    prefixes = {*PREFIXES, *(tool_id.partition(":")[0] for tool_id in known or () if ":" in tool_id)}
    known_set = set(known or ())
    for tool_id, item in entries:
        fault = tool_id_fault(tool_id)
        if fault is not None:
            findings.add("PF610", item.span, {"id": tool_id, "reason": fault})
            continue
        if tool_id in seen:
            findings.add("PF607", item.span, {"id": tool_id})
            continue
        seen.add(tool_id)
        prefix, colon, _ = tool_id.partition(":")
        if tool_id in known_set:
            continue
        if colon and prefix not in prefixes:
            near = best(prefix, sorted(prefixes))
            if known is None and near is None:
                continue  # the tools are not known, so neither are their namespaces
            renamed = f"{near}:{tool_id.partition(':')[2]}" if near else None
            args = {"prefix": prefix, "id": tool_id, "hint": hint(near)}
            findings.add("PF605", item.span, args, fix=_replacing(item, renamed))
        elif colon and prefix in HOST_PREFIXES:
            if known is not None:
                near = best(tool_id, known)
                findings.add("PF613", item.span, {"id": tool_id, "hint": hint(near)}, fix=_replacing(item, near))
        elif tool_id.startswith(PREFIX):
            if workflows is not None and tool_id not in workflows:
                near = best(tool_id, workflows)
                findings.add("PF611", item.span, {"id": tool_id, "hint": hint(near)}, fix=_replacing(item, near))
        elif known is not None:
            near = best(tool_id, known)
            findings.add("PF606", item.span, {"id": tool_id, "hint": hint(near)}, fix=_replacing(item, near))
    return entries


def _replacing(node: JsonNode, text: str | None) -> Fix | None:
    if text is None:
        return None
    return Fix(f"Replace by '{text}'", (Edit(node.start, node.end, quoted(text)),), "unsafe")


def _config(node: JsonNode | None, listed: set[str] | None, findings: Findings) -> ToolCallConfig:
    if node is None:
        return ToolCallConfig()
    fields = findings.object(node, "toolCallConfig", _CONFIG)

    def flag(name: str, default: bool) -> bool:
        value = findings.flag(value_of(fields, name), name)
        return default if value is None else value

    mode = findings.choice(value_of(fields, "mode"), "mode", ("auto", "manual"))
    protocol = findings.choice(value_of(fields, "protocol"), "protocol", known_protocols())
    rounds = findings.whole(value_of(fields, "maxIterations"), "maxIterations", 1, 1000)
    timeout = findings.whole(value_of(fields, "timeout"), "timeout", 1, MAX_TIMEOUT_MS)
    return ToolCallConfig(
        enabled=flag("enabled", False),
        mode="manual" if mode == "manual" else "auto",
        tool_toggles=_toggles(value_of(fields, "toolToggles"), listed, findings),
        default_tool_enabled=flag("defaultToolEnabled", True),
        max_iterations=5 if rounds is None else rounds,
        timeout=30_000 if timeout is None else timeout,
        require_confirmation=flag("requireConfirmation", False),
        parallel_execution=flag("parallelExecution", False),
        protocol=protocol or "vcp",
    )


def _toggles(node: JsonNode | None, listed: set[str] | None, findings: Findings) -> dict[str, bool]:
    if node is None:
        return {}
    if node.kind != "object":
        findings.wrong_type(node, "toolToggles", "an object of tool ids with true or false")
        return {}
    toggles: dict[str, bool] = {}
    for member in node.members:
        value = findings.flag(member.value, f"toolToggles.{member.key}")
        if (
            listed is not None
            and member.key not in listed
            and not any(item.startswith(f"{member.key}:") for item in listed)
        ):
            near = best(member.key, sorted(listed))
            findings.add("PF609", member.key_span, {"id": member.key, "hint": hint(near)})
        if value is not None:
            toggles[member.key] = value
    return toggles
