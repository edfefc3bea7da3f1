"""Actions in manifests, plug-in manifests of VCP, profiles and Python scripts.

Convert a foreign file (ruling 32), add what is missing, write the missing script, sort keys, draft a manifest from a function
(D88), add a tool to a profile (W23).
"""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.manifest.foreign import SHAPES, Shape, foreign_shape
from tamis.protocols.manifest.format import FIELD_ORDER, format_manifest
from tamis.protocols.manifest.imported import MISSING_FIELD
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Edit, Json, unescape_pointer
from tamis.protocols.positions import Span
from tamis.server.analysis.actions.refactorings import FileChange, Refactoring
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.snapshot import Snapshot

if TYPE_CHECKING:
    from tamis.protocols.schema.plan import Plan

PLUGIN_FILE = "plugin-manifest.json"
MAX_PROFILES = 20


def in_manifest(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """Actions of a manifest."""
    root = snapshot.tree.root
    if root is None:
        return _started(snapshot)
    refactorings: list[Refactoring] = []
    foreign = foreign_shape(root)
    if foreign is not None:
        return _convert(snapshot, foreign[0], root)
    if root.kind != "object":
        return refactorings
    refactorings += _missing_fields(snapshot, root, span)
    refactorings += _missing_script(snapshot, root, span)
    refactorings += _examples(snapshot, root, span)
    refactorings += _closed_parameters(snapshot, root, span)
    refactorings += _sorted(snapshot)
    refactorings += _to_profiles(snapshot, root, span)
    return refactorings


def in_plugin(snapshot: Snapshot, _span: Span) -> list[Refactoring]:
    """Actions of another project's manifest."""
    root = parse_json(snapshot.text).root
    foreign = foreign_shape(root) if root is not None else None
    return _convert(snapshot, foreign[0], root) if root is not None and foreign is not None else []


def manifest_text(manifest: dict[str, Json]) -> str:
    """A manifest as a canonical file."""
    ordered = {name: manifest[name] for name in FIELD_ORDER if name in manifest}
    ordered |= {name: value for name, value in manifest.items() if name not in ordered}
    text = json.dumps(ordered, ensure_ascii=False, indent=2) + "\n"
    formatted = format_manifest(text)
    return formatted.text if formatted.text is not None else text


# Foreign files


def _convert(snapshot: Snapshot, shape: Shape, root: JsonNode) -> list[Refactoring]:
    from tamis.protocols.manifest.imports import import_tools

    conversion = import_tools(shape, root.to_python())
    what = SHAPES[shape]
    if not conversion.tools:
        return [Refactoring("Convert to a Tamis manifest", "quickfix", disabled=conversion.why_not, code="MF516")]
    folder = posixpath.dirname(snapshot.path)
    notes = [f"{note.path}: {note.message}" for note in conversion.notes]
    name = posixpath.basename(snapshot.path)
    if len(conversion.tools) == 1:
        tool = conversion.tools[0]
        notes += [f"{note.path}: {note.message}" for note in tool.notes]
        text = manifest_text(tool.manifest)
        if name != PLUGIN_FILE:
            whole = (Edit(0, len(snapshot.text), text),)
            change = FileChange(edits=whole)
            return [
                Refactoring(
                    "Convert to a Tamis manifest",
                    "quickfix",
                    (change,),
                    preferred=True,
                    code="MF516",
                    notes=tuple(notes),
                )
            ]
        change = FileChange(posixpath.join(folder, f"{tool.name}.tool.json"), create=True, text=text)
        return [
            Refactoring(
                f"Create {tool.name}.tool.json from {what}",
                "quickfix",
                (change,),
                preferred=True,
                code="MF516",
                notes=tuple(notes),
            )
        ]
    changes: list[FileChange] = []
    for tool in conversion.tools:
        notes += [f"{tool.name}{note.path}: {note.message}" for note in tool.notes]
        path = posixpath.join(folder, f"{tool.name}.tool.json")
        changes.append(FileChange(path, create=True, text=manifest_text(tool.manifest)))
    notes.append(f"{posixpath.basename(snapshot.path)} stays as it is: delete it when the manifests are right")
    title = f"Create {len(changes)} manifests, one for each tool of the list"
    return [Refactoring(title, "quickfix", tuple(changes), preferred=True, code="MF516", notes=tuple(notes))]


# What is missing

_SAMPLES: dict[str, Json] = {
    "toolId": "custom:my-tool",
    "displayName": "My tool",
    "description": MISSING_FIELD,
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "my-tool.py", "language": "python"},
}
_HANDLER_SAMPLES: dict[str, Json] = {
    "type": "external-script",
    "scriptPath": "my-tool.py",
    "language": "python",
    "serviceName": "MyService",
    "methodName": "myMethod",
}


def _missing_fields(snapshot: Snapshot, root: JsonNode, span: Span) -> list[Refactoring]:
    """Add the fields that are required and not there: each alone, and all of an object at once (D30–D36)."""
    refactorings: list[Refactoring] = []
    by_object: dict[int, list[str]] = {}
    for diag in snapshot.manifest.diagnostics:
        field = diag.data.get("field")
        if diag.code == "MF501" and isinstance(field, str):
            by_object.setdefault(diag.span[0], []).append(field)
    for start, names in by_object.items():
        node = _object_at(root, start)
        if node is None or not _is_whole(snapshot, node) or not _touches(span, (node.start, node.end)):
            continue
        handler = root.get("handler")
        samples = _HANDLER_SAMPLES if handler is not None and node.start == handler.start else _sample_values(snapshot)
        known = [name for name in names if name in samples]
        for name in known if len(known) > 1 else ():
            edit = insertion(snapshot.text, node, {name: samples[name]})
            refactorings.append(Refactoring(f"Add '{name}'", "quickfix", (FileChange(edits=(edit,)),), code="MF501"))
        if known:
            edit = insertion(snapshot.text, node, {name: samples[name] for name in known})
            title = f"Add '{known[0]}'" if len(known) == 1 else f"Add all missing fields ({', '.join(known)})"
            refactorings.insert(0, Refactoring(title, "quickfix", (FileChange(edits=(edit,)),), True, code="MF501"))
    return refactorings


def _started(snapshot: Snapshot) -> list[Refactoring]:
    """A manifest to begin with in a file that is empty."""
    if snapshot.text.strip("\ufeff \t\r\n"):
        return []
    text = manifest_text({**_sample_values(snapshot), "parameters": {"type": "object", "properties": {}}})
    change = FileChange(edits=(Edit(0, len(snapshot.text), text),))
    return [Refactoring("Start a manifest", "quickfix", (change,), preferred=True, code="MF520")]


def _sample_values(snapshot: Snapshot) -> dict[str, Json]:
    """Values for missing root fields that fit the file's name."""
    stem = posixpath.basename(snapshot.path).removesuffix(".jsonc").removesuffix(".json").removesuffix(".tool")
    bare = "-".join("".join(c if c.isalnum() or c in "-_." else " " for c in stem).split()) or "my-tool"
    files = snapshot.folder.files if snapshot.folder is not None else frozenset[str]()
    script = next((f"{bare}{end}" for end in (".py", ".js", ".mjs", ".ts") if f"{bare}{end}" in files), f"{bare}.py")
    language = {"py": "python", "ts": "bun"}.get(script.rpartition(".")[2], "nodejs")
    return {
        **_SAMPLES,
        "toolId": f"custom:{bare}",
        "displayName": " ".join(bare.replace("-", " ").replace("_", " ").split()).capitalize() or "My tool",
        "handler": {"type": "external-script", "scriptPath": script, "language": language},
    }


def _object_at(root: JsonNode, start: int) -> JsonNode | None:
    """The object that begins at an offset, at the root or right below it."""
    if root.start == start:
        return root
    for member in root.members:
        value = member.value
        if value is not None and value.start == start and value.kind == "object":
            return value
        for item in value.items if value is not None else ():
            if item.start == start and item.kind == "object":
                return item
    return None


def _is_whole(snapshot: Snapshot, node: JsonNode) -> bool:
    """Whether a member put behind the last one of an object stands in sound text."""
    last = node.members[-1].key_start if node.members else node.start
    return node.closed and not any(
        diag.code in ("MF520", "MF521", "MF522", "MF523") and last <= diag.span[0] and diag.span[1] <= node.end
        for diag in snapshot.manifest.tree.diagnostics
    )


def insertion(text: str, node: JsonNode, values: dict[str, Json]) -> Edit:
    """The edit that adds members behind the last one of an object, indented as it is; required order is the caller's."""
    margin = _margin(text, node.start)
    multiline = "\n" in text[node.start : node.end] or not node.members
    last = node.members[-1] if node.members else None
    if last is not None and multiline:
        begin = text.rfind("\n", 0, last.key_start) + 1
        lead = text[begin : last.key_start]
        inner = lead if not lead.strip() else margin + "  "
    else:
        inner = margin + "  "
    eol = "\r\n" if "\r\n" in text else "\n"
    parts: list[str] = []
    for name, value in values.items():
        body = json.dumps(value, ensure_ascii=False, indent=2 if multiline else None)
        parts.append(f"{quoted(name)}: " + body.replace("\n", eol + inner))
    if not multiline:
        at = node.members[-1].span[1]
        return Edit(at, at, ", " + ", ".join(parts))
    joined = f",{eol}{inner}".join(parts)
    if last is None:
        # A comment that stands alone in the object stays, before what is added.
        held = text[node.start + 1 : node.end - 1].strip()
        held = f"{eol}{inner}{held}" if held else ""
        return Edit(node.start + 1, node.end - 1, f"{held}{eol}{inner}{joined}{eol}{margin}")
    at = last.span[1]
    return Edit(at, at, f",{eol}{inner}{joined}")


def _missing_script(snapshot: Snapshot, root: JsonNode, span: Span) -> list[Refactoring]:
    """Write the script that the handler names and that is not there (D34)."""
    handler = root.get("handler")
    if handler is None or handler.kind != "object" or not _touches(span, handler.span):
        return []
    from tamis.server.analysis.manifests import manifest_findings

    if not any(diag.code == "MF540" for diag, _ in manifest_findings(snapshot)):
        return []
    path, language = (
        node.value if (node := handler.get(name)) is not None and isinstance(node.value, str) else ""
        for name in ("scriptPath", "language")
    )
    entry = handler.get("entryPoint")
    from tamis.server.analysis.actions.scaffold import scaffold

    name = entry.value if entry is not None and isinstance(entry.value, str) else ""
    parameters, output = (
        node.to_python() if (node := root.get(field)) is not None else None for field in ("parameters", "output")
    )
    text = scaffold(language, path, parameters, output, name)
    if not path or text is None:
        return []
    change = FileChange(posixpath.join(posixpath.dirname(snapshot.path), path), create=True, text=text)
    return [Refactoring(f"Create the script '{path}'", "quickfix", (change,), code="MF540")]


# Examples and parameters


def _examples(snapshot: Snapshot, root: JsonNode, span: Span) -> list[Refactoring]:
    """Bring an example's input in line with the parameters (D42): rename, remove, add, coerce; offered only if it then fits."""
    listed, parameters = root.get("examples"), root.get("parameters")
    if listed is None or parameters is None or not _touches(span, listed.span):
        return []
    from tamis.protocols.schema.plan import compile_plan

    plan = compile_plan(parameters.to_python())
    refactorings: list[Refactoring] = []
    for i, item in enumerate(listed.items):
        node = item.get("input") if item.kind == "object" else None
        args = node.to_python() if node is not None else None
        if node is None or not isinstance(args, dict) or not _touches(span, item.span) or not plan.usable:
            continue
        mended = _in_line(plan, args)
        if mended is None:
            continue
        margin = _margin(snapshot.text, node.start)
        indent = 2 if "\n" in snapshot.text[node.start : node.end] else None
        text = json.dumps(mended, ensure_ascii=False, indent=indent)
        if indent is None:
            text = (
                "{ " + text[1:-1] + " }" if snapshot.text[node.start + 1 : node.start + 2] == " " and mended else text
            )
        eol = "\r\n" if "\r\n" in snapshot.text else "\n"
        edit = Edit(node.start, node.end, text.replace("\n", eol + margin))
        title = f"Bring example {i + 1} in line with the parameters"
        refactorings.append(Refactoring(title, "quickfix", (FileChange(edits=(edit,)),), code="VA453"))
    return refactorings


def _in_line(plan: Plan, args: dict[str, Json]) -> dict[str, Json] | None:
    """Arguments that fit and are near the given ones; None where they fit already or no such are found."""
    from tamis.protocols.schema.words import is_object
    from tamis.server.analysis.actions.scaffold import sample_value

    if plan.check(args, "typed").valid:
        return None
    schema = plan.schema
    declared = schema.get("properties") if is_object(schema) else None
    properties = declared if is_object(declared) else {}
    arguments: dict[str, Json] = dict(args)
    for finding in plan.check(args, "typed").errors:
        name, _, below = finding.path.removeprefix("/").partition("/")
        name = unescape_pointer(name)
        if finding.code == "VA404" and not below:
            arguments[name] = sample_value(properties.get(name))
        elif finding.code == "VA403" and not below and name in arguments:
            arguments = _renamed(arguments, name, finding.suggestion if finding.suggestion not in args else None)
    loose = plan.check(arguments, "any")
    if loose.valid and is_object(loose.coerced):
        arguments = loose.coerced
    else:
        for finding in loose.errors:
            name = unescape_pointer(finding.path.removeprefix("/").partition("/")[0])
            if name in arguments and name in properties:
                arguments[name] = sample_value(properties[name])
    return arguments if plan.check(arguments, "typed").valid else None


def _renamed(args: dict[str, Json], name: str, new: str | None) -> dict[str, Json]:
    """Arguments with one of them under another name, or without it, in their order."""
    arguments: dict[str, Json] = {}
    for key, value in args.items():
        if key != name:
            arguments[key] = value
        elif new is not None:
            arguments[new] = value
    return arguments


def _closed_parameters(snapshot: Snapshot, root: JsonNode, span: Span) -> list[Refactoring]:
    """Say in the schema that no other parameters are taken, which strict providers ask for."""
    node, member = root.get("parameters"), root.member("parameters")
    if (
        node is None
        or member is None
        or node.kind != "object"
        or not node.closed
        or not _touches(span, member.key_span)
    ):
        return []
    if node.member("additionalProperties") is not None or node.get("properties") is None:
        return []
    edit = insertion(snapshot.text, node, {"additionalProperties": False})
    title = "Refuse other parameters (additionalProperties: false)"
    return [Refactoring(title, "refactor.rewrite", (FileChange(edits=(edit,)),))]


def _margin(text: str, at: int) -> str:
    """The blanks before the first character of an offset's line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


# Order


def _sorted(snapshot: Snapshot) -> list[Refactoring]:
    """The canonical order of keys, with comments kept."""
    formatted = format_manifest(snapshot.text)
    if formatted.text is None or formatted.text == snapshot.text:
        return []
    edit = Edit(0, len(snapshot.text), formatted.text)
    return [Refactoring("Sort keys in the usual order", "source.sortKeys.tamis", (FileChange(edits=(edit,)),))]


# Profiles


def _to_profiles(snapshot: Snapshot, root: JsonNode, span: Span) -> list[Refactoring]:
    node = root.get("toolId")
    member = root.member("toolId")
    if node is None or member is None or not isinstance(node.value, str) or not _touches(span, member.span):
        return []
    return add_to_profiles(snapshot, node.value)


def add_to_profiles(snapshot: Snapshot, tool_id: str) -> list[Refactoring]:
    """For each profile of the workspace that lacks a tool: the action that adds it (W01, W23)."""
    index = snapshot.index
    if index is None or not tool_id:
        return []
    refactorings: list[Refactoring] = []
    profiles = [path for path in index.files() if kind_of(path, "") == "profile"]
    for path in sorted(profiles)[:MAX_PROFILES]:
        edit = inventory_edit(index.text(path), tool_id)
        if edit is not None:
            title = f"Add '{tool_id}' to {posixpath.relpath(path, posixpath.dirname(snapshot.path) or '.')}"
            refactorings.append(Refactoring(title, "refactor.rewrite", (FileChange(path, (edit,)),)))
    return refactorings


def inventory_edit(text: str, tool_id: str) -> Edit | None:
    """The edit that adds an id to ``tool_ids_inventory``; None where it is there, or the file cannot be read."""
    tree = parse_json(text)
    root = tree.root
    if root is None or root.kind != "object" or not root.closed or not tree.ok:
        return None
    listed = root.get("tool_ids_inventory")
    if listed is None:
        return insertion(text, root, {"tool_ids_inventory": [tool_id]})
    if listed.kind != "array" or any(item.value == tool_id for item in listed.items):
        return None
    if not listed.items:
        return Edit(listed.start, listed.end, f"[{quoted(tool_id)}]")
    last = listed.items[-1]
    line = text.rfind("\n", 0, last.start) + 1
    lead = text[line : last.start]
    eol = "\r\n" if "\r\n" in text else "\n"
    own_line = not lead.strip() and "\n" in text[listed.start : last.start]
    between = f",{eol}{lead}" if own_line else ", "
    return Edit(last.end, last.end, between + quoted(tool_id))


# Python


def in_python(snapshot: Snapshot, span: Span) -> list[Refactoring]:
    """A manifest from the function at the cursor, which is read and never imported (D88)."""
    from tamis.protocols.manifest.from_python import draft_manifest, functions

    folder, script = posixpath.split(snapshot.path)
    here = [item for item in functions(snapshot.text) if _touches(span, item.span)]
    if len(here) != 1:
        return []
    draft = draft_manifest(snapshot.text, here[0].name, script)
    if draft is None:
        return []
    name = f"{here[0].name.replace('_', '-')}.tool.json"
    if snapshot.folder is not None and name in snapshot.folder.files:
        return [
            Refactoring(f"Create {name} from '{here[0].name}'", "refactor.extract", disabled=f"{name} is there already")
        ]
    change = FileChange(posixpath.join(folder, name), create=True, text=manifest_text(draft.manifest))
    notes = tuple(f"{note.path}: {note.message}" for note in draft.notes)
    return [Refactoring(f"Create {name} from '{here[0].name}'", "refactor.extract", (change,), notes=notes)]


def _touches(first: Span, other: Span) -> bool:
    return first[0] <= other[1] and other[0] <= first[1]


# In an agent profile: add tools and workflows that it does not list (W23).


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
