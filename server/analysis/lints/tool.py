"""Lints of a whole manifest as a model and its author meet it: description, id, aliases, examples, what is asked for.

Looks at the outer fields only; schemas are ``walk.py``'s. Must not know the disk or other manifests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator

from tamis.protocols.jsontext.green import Branch, Green, python_of
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode, Member, memo_of
from tamis.protocols.levels import Levels
from tamis.protocols.manifest.reading import tool_id_fault
from tamis.protocols.model import Edit, Fix
from tamis.protocols.suggest import best, hint, same_name
from tamis.server.analysis.lints import parameters
from tamis.server.analysis.lints.local import Collector, kept, object_at, text_of, texts_of
from tamis.server.analysis.lints.parameters import describe, lint_extra

_PORTABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_EXTENSION = re.compile(r"\.(?:json|jsonc|py|js|mjs|cjs|ts|ya?ml|md|toml|sh)$")
_MAX_COMPARED = 64_000
"""Characters of ``examples`` that are compared with each other at each edit."""


_MAX_ALIKE = 100


def lint_tool(root: JsonNode, text: str, taken: Container[str], levels: Levels, collector: Collector) -> None:
    """The findings of a manifest's outer fields; ``taken`` are the names that other tools have."""
    parameters = object_at(root, "parameters")
    properties = object_at(parameters, "properties") if parameters is not None else None
    _description(root, properties, collector)
    _tool_id(root, text, taken, levels, collector)
    _names_twice(root, collector)
    if properties is not None and (levels.says("LN734") or levels.says("LN735")):
        for diag in lint_extra(properties):
            span = (diag.span[0] + properties.start, diag.span[1] + properties.start)
            collector.add(diag.code, span, diag.args)


def _description(root: JsonNode, properties: JsonNode | None, collector: Collector) -> None:
    node = root.get("description")
    text = text_of(node)
    if node is None or text is None or not text.strip():
        return
    tool_id = text_of(root.get("toolId")) or ""
    names = (tool_id.rpartition(":")[2], tool_id, text_of(root.get("displayName")) or "")
    describe(node, text, names, parameters.TOOL_TOKENS, collector)
    spoken = parameters.named_parameters(text)
    if not spoken or properties is None:
        return
    declared = list(properties.keys)
    for name, sure in spoken:
        if name in declared:
            continue
        near = best(name, declared)
        # A name in code marks may be anything; one that only its spelling sets off from a parameter is a slip.
        if not (sure or (near is not None and same_name(near, name))) or name in set(_names_below(properties)):
            continue
        fix = None
        if near is not None:
            source = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", near.replace("\\", r"\\"), text)
            fix = Fix(f"Change to '{near}'", (Edit(node.start, node.end, quoted(source)),), "unsafe")
        collector.add("LN723", node.span, {"v": name, "hint": hint(near)}, fix=fix)


def _names_below(node: JsonNode) -> Iterator[str]:
    """The keys at any depth, bounded: a description may speak of a member of a parameter."""
    stack = [node]
    for _ in range(2_000):
        if not stack:
            return
        here = stack.pop()
        for member in here.members:
            yield member.key
            if member.value is not None:
                stack.append(member.value)
        stack.extend(here.items)


def portable_alias(tool_id: str, *taken: Container[str]) -> str:
    """A name that every protocol and provider takes: ``workflows/skills/x.json`` gives ``skill_x`` (A15). Empty: none is near."""
    parts = [part for part in _EXTENSION.sub("", tool_id).split("/") if part]
    # Of a path the kind of thing and its name are enough.
    kind = parts[-2][:-1] if len(parts) > 1 and re.search("[^s]s$", parts[-2]) else parts[-2] if len(parts) > 1 else ""
    words = f"{kind}_{parts[-1]}" if kind else parts[-1] if parts else ""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", words).strip("_-")[:60]
    if not any(char.isalnum() for char in name):
        return ""
    if name[0].isdigit():
        name = f"tool_{name}"
    alias, number = name, 2
    while any(alias in names for names in taken) and number < 100:
        alias, number = f"{name}_{number}", number + 1
    return alias


def _is_xml_name(name: str) -> bool:
    """Whether a name can be a tag; a pattern with these ranges would take 10 ms to compile."""
    first = name[0]
    return (first.isalpha() or first in "_:" or ord(first) > 0xF7) and all(
        char.isalnum() or char in "_:.-\u00b7" or ord(char) > 0xF7 for char in name
    )


def _tool_id(root: JsonNode, text: str, taken: Container[str], levels: Levels, collector: Collector) -> None:
    node = root.get("toolId")
    tool_id = text_of(node)
    if node is None or not tool_id or tool_id_fault(tool_id) is not None:
        return
    legal = _is_xml_name(tool_id)
    if legal and (not levels.says("LN730") or _PORTABLE.fullmatch(tool_id)):
        return
    aliases = [alias for alias, _ in texts_of(root.get("aliases"))]
    if any(_PORTABLE.fullmatch(alias) for alias in aliases):
        return
    alias = portable_alias(tool_id, taken, aliases)
    if not alias or alias == tool_id:
        return
    fix = add_alias(root, text, alias)
    if not legal:
        collector.add("LN729", node.span, {"v": tool_id, "alias": alias}, fix=fix)
    else:
        wanted = "letters, digits, '_', '-' and '.'"
        collector.add("LN730", node.span, {"v": tool_id, "alias": alias, "wanted": wanted}, fix=fix)


def add_alias(root: JsonNode, text: str, alias: str) -> Fix | None:
    """The fix that gives the tool one more name."""
    title = f"Add the alias '{alias}'"
    member = root.member("aliases")
    if member is None:
        return insert_field(root, text, "toolId", "aliases", f"[{quoted(alias)}]", title)
    node = member.value
    if node is None or node.kind != "array" or not node.closed:
        return None
    if node.items:
        end = node.items[-1].end
        return Fix(title, (Edit(end, end, f", {quoted(alias)}"),), "unsafe")
    return Fix(title, (Edit(node.start, node.end, f"[{quoted(alias)}]"),), "unsafe")


def insert_field(node: JsonNode, text: str, after: str, name: str, value: str, title: str) -> Fix | None:
    """The fix that adds a field behind another one, on a line of its own where fields stand so."""
    member: Member | None = node.member(after)
    if member is None or member.value is None:
        return None
    line = text.rfind("\n", 0, member.key_start)
    before = text[line + 1 : member.key_start]
    gap = "\n" + before if line >= node.start and not before.strip() else " "
    end = member.value.end
    return Fix(title, (Edit(end, end, f",{gap}{quoted(name)}: {value}"),), "unsafe")


def _names_twice(root: JsonNode, collector: Collector) -> None:
    """Other names that are the id itself, or each other."""
    tool_id = text_of(root.get("toolId"))
    aliases = texts_of(root.get("aliases"))
    for alias, item in aliases:
        if alias == tool_id:
            collector.add("LN736", item.span, {"v": alias, "what": "the tool's id"})
    config = object_at(root, "protocolConfig")
    command = config.get("vcpCommand") if config is not None else None
    name = text_of(command)
    if command is None or name is None:
        return
    if name == tool_id:
        collector.add("LN736", command.span, {"v": name, "what": "the tool's id"})
    elif any(name == alias for alias, _ in aliases):
        collector.add("LN736", command.span, {"v": name, "what": "an alias"})


def lint_examples(root: JsonNode, levels: Levels, collector: Collector) -> None:
    """The findings of the examples as a list; whether each fits the schemas is reading's business."""
    examples = root.get("examples")
    if examples is None or not examples.greens:
        properties = object_at(object_at(root, "parameters"), "properties")
        empty = examples is None or examples.kind == "array"
        if empty and root.closed and root.member("handler") is not None and properties is not None and properties.keys:
            collector.add("LN731", (root.start, root.start + 1))
        return
    if examples.end - examples.start > _MAX_COMPARED:
        return
    for start, i, j in kept(examples, "alike", lambda: _alike(examples)):
        collector.add("LN732", (examples.start + start, examples.start + start + 1), {"i": i, "j": j})
    if not levels.says("LN733"):
        return
    parameters = object_at(root, "parameters")
    properties = object_at(parameters, "properties")
    if parameters is not None and properties is not None:
        inputs = [example_input for item in examples.greens if (example_input := _input_of(item)) is not None]
        required = {name for name, _ in texts_of(parameters.get("required"))}
        optional = set(properties.keys) - required
        if inputs and optional and all(optional.isdisjoint(branch.keys) for _, branch in inputs):
            collector.add("LN733", (examples.start, examples.start + 1))


def _input_of(item: Green | None) -> tuple[int, Branch] | None:
    """Where an example's input starts, from the start of the example, and the input; None where there is no object.

    Without views: one is made anew for every container that an edit moved.
    """
    if not isinstance(item, Branch) or item.kind != "object" or "input" not in item.keys:
        return None
    index = len(item.keys) - 1 - item.keys[::-1].index("input")  # of several the last counts
    member = item.values[index]
    if not isinstance(member, Branch) or member.kind != "object":
        return None
    return item.value_start(index), member


def _alike(examples: JsonNode) -> tuple[tuple[int, int, int], ...]:
    """Examples with the same input as one before: where the input stands from the start of the list, and both indices."""
    branch = examples.green
    if not isinstance(branch, Branch):
        return ()
    duplicates: list[tuple[int, int, int]] = []
    seen: dict[str, int] = {}
    for i, item in enumerate(branch.values):
        example_input = _input_of(item)
        if example_input is None or len(seen) + len(duplicates) >= _MAX_ALIKE:
            continue
        start, value = example_input
        memo = memo_of(value)
        text = memo.get("sorted")
        if not isinstance(text, str):
            text = memo["sorted"] = json.dumps(python_of(value), sort_keys=True)
        first = seen.setdefault(text, i)
        if first != i:
            duplicates.append((branch.starts[i] + start, i, first))
    return tuple(duplicates)
