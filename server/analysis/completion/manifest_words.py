"""Keys and values of manifests and profiles that come from the tools, the files and the text around, not from a schema."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Path
from tamis.protocols.model import escape_pointer
from tamis.protocols.schema.words import is_list, is_object
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.json_slot import Slot, value_item
from tamis.server.analysis.completion.proposals import escape_snippet
from tamis.server.analysis.completion.schema_proposals import key_item
from tamis.server.analysis.snapshot import Snapshot, ToolView

LANGUAGES = {
    "python": (".py",),
    "nodejs": (".js", ".mjs", ".cjs"),
    "bun": (".ts", ".js", ".mjs", ".tsx"),
}
_MAX_FILES = 400
_SEMVER = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})([-+].*)?\Z")
_FOREIGN_CHARS = re.compile(r"[^A-Za-z0-9_-]+")
_PREFIXES = (
    ("workflow:", "a workflow's file name without extension"),
    ("system:", "a tool of the host"),
    ("kb:", "a knowledge base"),
)
_BUILT_IN_SERVICES = (
    ("ExternalScriptExecutionService", "executeScript"),
    *(("File", "Write"), ("File", "Append"), ("File", "ApplyEdit")),
    *(("WorldState", "read"), ("PrivateState", "read"), ("PrivateState", "update"), ("Events", "publish")),
    *(("system", "get_current_time"), ("system", "task_status")),
)


def special_values(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Values for a place, best first."""
    path = slot.path
    if snapshot.kind == "profile":
        if len(path) == 2 and path[0] == "tool_ids_inventory":
            yield from _inventory(snapshot, tree, slot)
        return
    if path and path[0] in ("parameters", "output"):
        yield from _in_schema(tree, slot)
        return
    maker = _BY_PATH.get(tuple("*" if isinstance(token, int) else token for token in path))
    if maker is not None:
        yield from maker(snapshot, tree, slot)
    elif len(path) == 2 and path[0] == "dependencies":
        yield from _ranges(snapshot, tree, slot)


def special_keys(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Keys for a place that no schema declares."""
    members = slot.container.members if slot.container is not None else []
    present = {member.key for member in members if member is not slot.member}
    if snapshot.kind == "profile":
        if slot.path == ("toolCallConfig", "toolToggles"):
            for name in _texts(tree.node_at("/tool_ids_inventory")):
                if name not in present:
                    yield key_item(tree, slot, name, {"type": "boolean", "description": "in the inventory"}, False)
        return
    if slot.path == ("dependencies",):
        own = _text(tree, "/toolId")
        for tool in _tools(snapshot):
            if tool.tool_id not in present and tool.tool_id != own:
                version = f"^{tool.manifest.version}" if _SEMVER.match(tool.manifest.version) else "*"
                about = {"type": "string", "default": version, "description": tool.manifest.display_name}
                yield key_item(tree, slot, tool.tool_id, about, False)
    elif slot.path and slot.path[0] in ("parameters", "output") and slot.path[-1] == "properties":
        for name in _named_elsewhere(tree, slot.path):
            if name not in present:
                schema: dict[str, Any] = {"defaultSnippets": [{"body": _PROPERTY}], "type": "object"}
                schema["description"] = "named by `required` or an example, and not declared yet"
                yield key_item(tree, slot, name, schema, False)


_PROPERTY = {"type": "${1|string,integer,number,boolean,array,object|}", "description": "$2"}


def schema_ids(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """What ``$schema`` at the root may say."""
    if snapshot.kind != "manifest":
        return ()
    from tamis.protocols.manifest.json_schema import SCHEMA_ID

    return ((SCHEMA_ID, "the schema of tool manifests"),)


def _tools(snapshot: Snapshot) -> Iterator[ToolView]:
    """Each registered id once, in its newest version."""
    seen: set[str] = set()
    for tool in snapshot.registry.tools if snapshot.registry is not None else ():
        if tool.tool_id not in seen:
            seen.add(tool.tool_id)
            yield tool


def _others(snapshot: Snapshot) -> Iterator[ToolView]:
    """The tools of other manifests."""
    return (tool for tool in _tools(snapshot) if tool.path != snapshot.path)


def _text(tree: JsonTree, pointer: str) -> str:
    node = tree.node_at(pointer)
    return node.value if node is not None and isinstance(node.value, str) else ""


def _texts(node: JsonNode | None) -> list[str]:
    return [item.value for item in (node.items if node is not None else []) if isinstance(item.value, str)]


def _left(slot: Slot, words: Iterable[str]) -> Iterator[str]:
    """Words that the list does not hold yet."""
    items = slot.container.items if slot.container is not None else []
    there = {item.value for item in items if item is not slot.node}
    return (word for word in words if word not in there)


def _words(tree: JsonTree, slot: Slot, words: Iterable[str], about: str) -> Iterator[Proposal]:
    return (value_item(tree, slot, word, about) for word in _left(slot, words))


def _common(values: Iterable[str]) -> list[str]:
    """The most used first."""
    counted = Counter(values)
    return sorted((value for value in counted if value), key=lambda value: (-counted[value], value))


# Manifests


def _tool_ids(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """``namespace:name`` (D29): the name of the file in a namespace, then namespaces alone."""
    used = _common(tool.tool_id.partition(":")[0] for tool in _others(snapshot) if ":" in tool.tool_id)
    # What seed 003 §2.2.2 keeps for the host's own tools comes last.
    spaces = list(dict.fromkeys((*(name for name in used if name != "core"), "custom", "vendor", "core")))
    file = posixpath.basename(snapshot.path.replace("\\", "/"))
    stem = re.sub(r"[\s_.]+", "-", re.sub(r"(?:\.tool)?\.jsonc?\Z", "", file)).strip("-")
    if stem and snapshot.tool(f"{spaces[0]}:{stem}") is None and not _text(tree, "/toolId"):
        yield value_item(tree, slot, f"{spaces[0]}:{stem}", "named like the file", preselect=True)
    for name in spaces:
        text = f'"{name}:"'
        snippet = f'"{escape_snippet(name)}:$1"{slot.after}'
        yield Proposal(f"{name}:", "value", slot.span, text + slot.after, snippet, detail="namespace", filter=text)


def _versions(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """The next semantic versions (D32)."""
    match = _SEMVER.match(_text(tree, "/version").strip())
    if match is None:
        for version, about in (("1.0.0", "first version"), ("0.1.0", "first draft")):
            yield value_item(tree, slot, version, about)
        return
    major, minor, patch = (int(match[index]) for index in (1, 2, 3))
    if match[4]:
        yield value_item(tree, slot, f"{major}.{minor}.{patch}", "release")
    yield value_item(tree, slot, f"{major}.{minor}.{patch + 1}", "fix")
    yield value_item(tree, slot, f"{major}.{minor + 1}.0", "new feature, same calls")
    yield value_item(tree, slot, f"{major + 1}.0.0", "calls change")


def _scripts(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Files that the language can run first, then other scripts, then folders on the way."""
    endings = LANGUAGES.get(_text(tree, "/handler/language"), ())
    known = {ending for group in LANGUAGES.values() for ending in group}
    every = sorted(
        snapshot.folder.files if snapshot.folder is not None else (), key=lambda file: (file.count("/"), file)
    )
    scripts = [file for file in every if posixpath.splitext(file)[1] in known]
    scripts.sort(key=lambda file: posixpath.splitext(file)[1] not in endings)
    for file in scripts[:_MAX_FILES]:
        fits = not endings or posixpath.splitext(file)[1] in endings
        about = "script beside the manifest" if fits else f"not a {_text(tree, '/handler/language')} file"
        yield value_item(tree, slot, file, about, kind="file")
    typed = _text(tree, "/handler/scriptPath")
    top = posixpath.dirname(typed.replace("\\", "/"))
    inside = {
        file[: file.index("/", len(top) + 1 if top else 0) + 1]
        for file in scripts
        if file.startswith(f"{top}/" if top else "") and "/" in file[len(top) + 1 if top else 0 :]
    }
    for folder in sorted(inside)[:_MAX_FILES]:
        text = f'"{folder}"'
        snippet = f'"{escape_snippet(folder)}$0"{slot.after}'
        yield Proposal(folder, "folder", slot.span, text + slot.after, snippet, detail="folder", filter=text)


def _languages(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """The languages, the one that runs the script's ending first; then the operator's own runtimes."""
    ending = posixpath.splitext(_text(tree, "/handler/scriptPath"))[1]
    for name in sorted(
        LANGUAGES, key=lambda name: (bool(ending) and ending not in LANGUAGES[name], list(LANGUAGES).index(name))
    ):
        fits = bool(ending) and ending in LANGUAGES[name]
        yield value_item(tree, slot, name, f"runs {ending} files" if fits else "", preselect=fits)
    yield from _words(tree, slot, snapshot.settings.runtimes, "runtime of the operator")


def _entries(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Functions of the script, as far as its text is known."""
    for name in functions_of(snapshot, _text(tree, "/handler/scriptPath")):
        yield value_item(tree, slot, name, "function in the script")


_FUNCTION = {
    ".py": re.compile(r"(?m)^(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)[ \t]*\("),
    ".js": re.compile(
        r"(?m)^[ \t]*(?:export[ \t]+)?(?:default[ \t]+)?(?:async[ \t]+)?function\*?[ \t]+([A-Za-z_$][\w$]*)"
        r"|^[ \t]*export[ \t]+(?:const|let|var)[ \t]+([A-Za-z_$][\w$]*)[ \t]*="
        r"|^[ \t]*(?:module\.)?exports\.([A-Za-z_$][\w$]*)[ \t]*="
    ),
}


def functions_of(snapshot: Snapshot, script: str) -> list[str]:
    """Names of the functions at the top level of a script, public ones first; empty where its text is not known."""
    path = posixpath.normpath(script.replace("\\", "/")) if script else ""
    file = snapshot.script
    if file is None or not path or file.path != path:
        return []
    pattern = _FUNCTION[".py"] if path.endswith(".py") else _FUNCTION[".js"]
    names = dict.fromkeys(next(name for name in match.groups() if name) for match in pattern.finditer(file.text))
    return sorted(names, key=lambda name: name.startswith("_"))[:_MAX_FILES]


def _handler_types(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    yield from _words(tree, slot, snapshot.settings.handlers, "of an installed package")


def _named_handlers(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Service and method of every other manifest that names them."""
    handlers: list[tuple[str, str]] = []
    for tool in _others(snapshot):
        handler: Any = tool.manifest.raw.get("handler")
        if is_object(handler) and isinstance(handler.get("serviceName"), str):
            handlers.append((str(handler["serviceName"]), str(handler.get("methodName") or "")))
    return handlers


def _services(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Services that other manifests name (D36), and the built-in one."""
    used = _common(name for name, _ in _named_handlers(snapshot))
    yield from _words(tree, slot, used, "used by another manifest")
    yield from _words(tree, slot, list(dict.fromkeys(name for name, _ in _BUILT_IN_SERVICES)), "built in")


def _methods(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    service = _text(tree, "/handler/serviceName")
    named = _common(method for name, method in _named_handlers(snapshot) if method and service in ("", name))
    yield from _words(tree, slot, named, "used by another manifest")
    built_in = [method for name, method in _BUILT_IN_SERVICES if service in ("", name)]
    yield from _words(tree, slot, built_in, "built in")


def _in_context(snapshot: Snapshot, group: str, name: str) -> list[str]:
    """What other manifests ask for in their ``securityContext``."""
    words: list[str] = []
    for tool in _others(snapshot):
        context: Any = tool.manifest.raw.get("securityContext")
        part: Any = context.get(group) if is_object(context) else None
        listed: Any = part.get(name) if is_object(part) else None
        words += [value for value in listed if isinstance(value, str)] if is_list(listed) else []
    return _common(words)


def _reads(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    reads = [("self", "the script itself"), ("./*", "everything beside the script"), (".cache/**", "a cache folder")]
    yield from (value_item(tree, slot, word, about) for word, about in reads if word in set(_left(slot, [word])))
    folders = {
        file.partition("/")[0] + "/**" for file in (snapshot.folder.files if snapshot.folder else ()) if "/" in file
    }
    yield from _words(tree, slot, sorted(folders), "folder beside the manifest")
    yield from _words(tree, slot, _in_context(snapshot, "fileAccess", "allowRead"), "asked for by another tool")


def _writes(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    yield from _words(tree, slot, [".cache/**", "out/**"], "a folder to write to")
    folders = {
        file.partition("/")[0] + "/**" for file in (snapshot.folder.files if snapshot.folder else ()) if "/" in file
    }
    yield from _words(tree, slot, sorted(folders), "folder beside the manifest")
    yield from _words(tree, slot, _in_context(snapshot, "fileAccess", "allowWrite"), "asked for by another tool")


def _hosts(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    yield from _words(tree, slot, _in_context(snapshot, "networkAccess", "allowHosts"), "asked for by another tool")
    for label, snippet, about in (
        ("api.example.com", '"${1:api.example.com}"', "one host"),
        ("*.example.com", '"*.${1:example.com}"', "all sub-domains"),
        ("example.com:8443", '"${1:example.com}:${2:8443}"', "a host at a port"),
    ):
        text = f'"{label}"'
        yield Proposal(label, "value", slot.span, text + slot.after, snippet + slot.after, detail=about, filter=text)


_ABOUT_CAPABILITY = {
    "network": "the network beyond named hosts",
    "write": "writing beside its own folder",
    "subprocess": "starting other programs",
    "gpu": "a graphics processor",
    "build": "build steps of its packages",
}


def _capabilities(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    from tamis.protocols.manifest.security import CAPABILITIES

    return (value_item(tree, slot, name, _ABOUT_CAPABILITY.get(name, "")) for name in _left(slot, CAPABILITIES))


def _secrets(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    config = snapshot.settings.config
    known = sorted(config.secrets) if config is not None else []
    return (value_item(tree, slot, name, "a secret of your settings") for name in _left(slot, known))


def _tags(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    return _words(tree, slot, _common(tag for tool in _others(snapshot) for tag in tool.manifest.tags), "tag in use")


def _aliases(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """A name that every protocol and provider takes (A15), made from the id."""
    tool_id = _text(tree, "/toolId")
    portable = _FOREIGN_CHARS.sub("_", tool_id).strip("_")
    short = _FOREIGN_CHARS.sub("_", tool_id.rpartition(":")[2]).strip("_")
    names = [
        name for name in dict.fromkeys((portable, short)) if name and name != tool_id and snapshot.tool(name) is None
    ]
    yield from _words(tree, slot, names, "portable name")


def _commands(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    tool_id = _text(tree, "/toolId")
    words = [word for word in re.split(r"[^A-Za-z0-9]+", tool_id.rpartition(":")[2]) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return _words(tree, slot, [name] if name else [], "from the id")


def _ranges(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Ranges around the version that is registered (D91)."""
    tool = snapshot.tool(str(slot.path[-1]))
    version = tool.manifest.version if tool is not None else ""
    match = _SEMVER.match(version)
    if match is not None:
        yield value_item(tree, slot, f"^{version}", "no change of calls", preselect=True)
        yield value_item(tree, slot, f"~{version}", "fixes only")
        yield value_item(tree, slot, f">={version}", "this one or any later")
        yield value_item(tree, slot, version, "exactly this one")
    yield value_item(tree, slot, "*", "any version")


_BY_PATH: dict[Path, Any] = {
    ("toolId",): _tool_ids,
    ("version",): _versions,
    ("handler", "type"): _handler_types,
    ("handler", "scriptPath"): _scripts,
    ("handler", "language"): _languages,
    ("handler", "entryPoint"): _entries,
    ("handler", "serviceName"): _services,
    ("handler", "methodName"): _methods,
    ("securityContext", "fileAccess", "allowRead", "*"): _reads,
    ("securityContext", "fileAccess", "allowWrite", "*"): _writes,
    ("securityContext", "networkAccess", "allowHosts", "*"): _hosts,
    ("securityContext", "requiredCapabilities", "*"): _capabilities,
    ("securityContext", "secrets", "*"): _secrets,
    ("tags", "*"): _tags,
    ("aliases", "*"): _aliases,
    ("protocolConfig", "vcpCommand"): _commands,
}


# Embedded schemas


def _in_schema(tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    path = slot.path
    if len(path) < 2 or tree.root is None:
        return
    if path[-1] == "$ref":
        yield from _references(tree, slot)
    elif path[-2] == "required" and isinstance(path[-1], int):
        owner = tree.root.at(path[:-2])
        declared = owner.get("properties") if owner is not None else None
        names = [member.key for member in declared.members] if declared is not None else []
        yield from _words(tree, slot, names, "declared property")


def _references(tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Targets in the same schema: its definitions, then its whole; ``#`` counts from the embedded schema's root."""
    root = tree.root.at(slot.path[:1]) if tree.root is not None else None
    for name in ("$defs", "definitions"):
        listed = root.get(name) if root is not None else None
        for member in listed.members[:_MAX_FILES] if listed is not None else ():
            node = (
                member.value.get("description") if member.value is not None and member.value.kind == "object" else None
            )
            about = node.value if node is not None and isinstance(node.value, str) else ""
            key = escape_pointer(member.key)
            yield value_item(tree, slot, f"#/{name}/{key}", "definition", about)
    yield value_item(tree, slot, "#", "the whole schema")


def _named_elsewhere(tree: JsonTree, path: Path) -> Iterator[str]:
    """Names that an object's ``required`` or the examples use and ``properties`` may lack."""
    owner = tree.root.at(path[:-1]) if tree.root is not None else None
    yield from _texts(owner.get("required") if owner is not None else None)
    if path == ("parameters", "properties") and tree.root is not None:
        examples = tree.root.get("examples")
        for example in examples.items[:50] if examples is not None else ():
            node = example.get("input") if example.kind == "object" else None
            yield from (member.key for member in (node.members[:_MAX_FILES] if node is not None else ()))


# Profiles


def _inventory(snapshot: Snapshot, tree: JsonTree, slot: Slot) -> Iterator[Proposal]:
    """Registered ids and workflows that are not listed yet (W01), then the prefixes of ids that a host resolves (W03)."""
    there = set(_texts(tree.node_at("/tool_ids_inventory")))
    tools = {tool.tool_id: tool for tool in _tools(snapshot) if tool.tool_id not in there}
    for name, tool in tools.items():
        item = value_item(tree, slot, name, tool.manifest.display_name, kind="tool", label=name)
        yield item
    if snapshot.index is not None:
        for declared in snapshot.index.tools():
            if declared.tool_id not in there and declared.tool_id not in tools:
                about = declared.declared.display_name or declared.declared.kind
                yield value_item(tree, slot, declared.tool_id, about, kind="tool", label=declared.tool_id)
    for prefix, about in _PREFIXES:
        text = f'"{prefix}"'
        yield Proposal(
            prefix, "value", slot.span, text + slot.after, f'"{prefix}$1"{slot.after}', detail=about, filter=text
        )
