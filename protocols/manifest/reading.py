"""Tool manifests (``*.tool.json``, seed 003 §2.2): the model, and its reading with located findings.

A manifest is read into frozen structs; every fault is a diagnostic at the exact key or value. Facts about the disk (does the
script exist), other manifests (is the id taken) and the operator's policy are not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from tamis.protocols.catalogue import severity
from tamis.protocols.invisible import NOT_IN_NAMES
from tamis.protocols.jsontext.tree import JsonNode, JsonTree, Member
from tamis.protocols.manifest.fields import Findings, value_of
from tamis.protocols.manifest.foreign import SHAPES, foreign_shape
from tamis.protocols.manifest.security import CAPABILITIES, host_pattern_fault, path_pattern_fault, variable_name_fault
from tamis.protocols.model import MAX_NAME_CHARS, Diag, Edit, Example, Fix, Json
from tamis.protocols.patterns import lazy
from tamis.protocols.suggest import best, hint

if TYPE_CHECKING:
    from tamis.protocols.manifest.embedded import SchemaExtension
    from tamis.protocols.manifest.worked import Memory

LANGUAGES = ("python", "nodejs", "bun")
LANGUAGE_NAME = "[a-z][a-z0-9+_-]{0,31}"
"""What an operator's own runtime may be called: ``handler.language`` names it."""
HANDLER_TYPES = ("external-script", "service-method", "mcp")
HANDLER_NAME = "[a-z][a-z0-9._-]{0,63}"
"""What the handler type of an installed package may be called: the operator's settings have to name it."""
REQUIRED = ("toolId", "displayName", "description", "version", "handler")
FIELDS = (
    *REQUIRED,
    *("parameters", "output", "securityContext", "examples", "tags"),
    *("aliases", "agentCallable", "protocolConfig", "execution", "dependencies", "env"),
)
_REQUIRED = frozenset(REQUIRED)
_KNOWN = frozenset((*FIELDS, "$schema"))
LIMITS = (
    *("wallMs", "cpuSeconds", "memoryBytes", "processes", "openFiles"),
    *("fileBytes", "tmpBytes", "stdinBytes", "stdoutBytes", "stderrBytes"),
)


class ExternalScript(msgspec.Struct, frozen=True):
    """A script that is run with the arguments as JSON on standard input."""

    script_path: str
    language: str
    """One of ``LANGUAGES``, or the name of a runtime that the operator's settings have to know."""
    entry_point: str | None = None
    result: Literal["json", "vcp"] = "json"
    """Whether its output may say that it failed, as VCP plug-ins do: ``{"status": "error", "error": …}``."""


class ServiceMethod(msgspec.Struct, frozen=True):
    """A method of a service that the host registers."""

    service_name: str
    method_name: str
    parameter_mapping: dict[str, str] = {}
    """What the method calls parameters of the tool, by the tool's name for them."""


class McpTool(msgspec.Struct, frozen=True):
    """A tool of an MCP server that is started in the sandbox."""

    server: str
    """The name under which the operator's settings know the server."""
    tool: str


class WorkflowHandler(msgspec.Struct, frozen=True):
    """A workflow; only definitions that are made from workflow files have it."""

    workflow_id: str


class OtherHandler(msgspec.Struct, frozen=True):
    """A handler of an installed package; ``fields`` are the handler's own, without ``type``."""

    type: str
    fields: dict[str, Json] = {}


Handler = ExternalScript | ServiceMethod | McpTool | WorkflowHandler | OtherHandler


class FileAccess(msgspec.Struct, frozen=True):
    """Path patterns that a tool asks to read and write."""

    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()


class NetworkAccess(msgspec.Struct, frozen=True):
    """Host patterns that a tool asks to reach."""

    allow_hosts: tuple[str, ...] = ()
    through_proxy: str = ""
    """The one of them that is asked of the proxy also where it names loopback: an MCP server's own address, which no manifest says."""


class SecurityContext(msgspec.Struct, frozen=True):
    """What a tool asks for; a request, never a grant (ruling 38)."""

    file_access: FileAccess = FileAccess()
    network: NetworkAccess = NetworkAccess()
    required_capabilities: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of secrets that the operator's settings know."""

    @property
    def unknown_capabilities(self) -> tuple[str, ...]:
        """Required capabilities that no host has; a tool with any is refused (D41)."""
        return tuple(name for name in self.required_capabilities if name not in CAPABILITIES)


class Execution(msgspec.Struct, frozen=True):
    """How a tool wants to be run; ``limits`` only lower the operator's. Times in milliseconds."""

    mode: Literal["sync", "async"] = "sync"
    timeout_ms: int | None = None
    idempotent: bool = False
    require_confirmation: bool = False
    allow_build: bool = False
    integrity: str | None = None
    files: tuple[str, ...] = ()
    limits: dict[str, int] = {}


class Manifest(msgspec.Struct, frozen=True):
    """One tool. ``raw`` is the file's JSON; ``parameters`` and ``output`` are JSON Schemas, None where not given.

    ``agent_callable`` is None where the file does not say (ruling 34: what that means depends on where the tool comes from).
    """

    tool_id: str
    display_name: str
    description: str
    version: str
    handler: Handler
    parameters: dict[str, Json] | None = None
    output: Json = None
    security_context: SecurityContext = SecurityContext()
    examples: tuple[Example, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    agent_callable: bool | None = None
    protocol_config: dict[str, str] = {}
    execution: Execution = Execution()
    dependencies: dict[str, str] = {}
    env: dict[str, str] = {}
    """Variables of the script that are no secret."""
    raw: dict[str, Json] = {}

    @property
    def namespace(self) -> str:
        """What stands before the first colon of the id; empty without one."""
        head, colon, _ = self.tool_id.partition(":")
        return head if colon else ""

    @property
    def vcp_command(self) -> str | None:
        """The name under which VCP calls may reach the tool (seed 001 §3.2)."""
        return self.protocol_config.get("vcpCommand")


class ManifestReading(msgspec.Struct, eq=False):
    """A manifest file as it was read; ``manifest`` is None exactly when a diagnostic has error level."""

    manifest: Manifest | None
    tree: JsonTree
    diagnostics: list[Diag]
    memory: Memory


def read_manifest(
    text: str,
    *,
    strict: bool = False,
    runtimes: Container[str] = (),
    handlers: Container[str] = (),
    extensions: Sequence[SchemaExtension] = (),
    tree: JsonTree | None = None,
    memory: Memory | None = None,
) -> ManifestReading:
    """Reads a manifest. ``strict`` refuses comments and trailing commas (``strictJson``); ``runtimes`` are known beside the built-in
    languages, ``handlers`` beside the built-in types of handlers; ``extensions`` ask for more. Never raises.

    ``tree`` is the text as it was read already, in the same strictness. ``memory`` is that of the reading of a version before: parts
    that are the same Python objects in both trees are not looked at again; the result is that of a reading from scratch.
    """
    # A process that runs tools whose reading was kept needs the model alone.
    from tamis.protocols.manifest.worked import Memory

    if tree is None:
        from tamis.protocols.jsontext.parse import parse_json

        tree = parse_json(text, comments=not strict)
    memory = Memory(memory)
    findings = Findings("MF")
    manifest = None
    root = tree.root
    if root is not None:
        foreign = foreign_shape(root)
        if foreign is not None:
            shape, node = foreign
            span = (node.start, min(node.end, node.start + 1)) if node.kind in ("object", "array") else node.span
            findings.add("MF516", span, {"shape": SHAPES[shape]}, data={"shape": shape})
        elif root.kind != "object":
            findings.wrong_type(root, "the manifest", "an object")
        else:
            manifest = _read(tree, root, findings, memory)
            if extensions:
                from tamis.protocols.manifest.embedded import check_extensions

                check_extensions(tree, root, extensions, findings)
    diagnostics = [*tree.diagnostics, *findings.diags]
    if diagnostics:
        diagnostics.sort(key=lambda diag: diag.span)
        diagnostics = [diag for diag in diagnostics if not _is_known(diag, runtimes, handlers)]
        if any(severity(diag) == "error" for diag in diagnostics):
            manifest = None
    return ManifestReading(manifest, tree, diagnostics, memory)


def _is_known(diag: Diag, runtimes: Container[str], handlers: Container[str]) -> bool:
    """Whether a finding is only that a word is not built in, which the operator's settings know."""
    if diag.code == "MF536":
        return str(diag.args["v"]) in runtimes
    return diag.code == "MF503" and diag.args.get("p") == "handler.type" and str(diag.args["v"]) in handlers


def _read(tree: JsonTree, root: JsonNode, findings: Findings, memory: Memory) -> Manifest | None:
    from tamis.protocols.manifest.embedded import check_schema_field
    from tamis.protocols.manifest.worked import check_examples, read_once

    outer = _outer(root, findings, memory)
    leaves, parameters, before = memory.leaves, memory.parameters, memory.output
    schema = read_once(
        "parameters",
        root,
        findings,
        memory,
        lambda node, into: check_schema_field(tree, node, "parameters", into, parameters, leaves),
    )
    output = read_once(
        "output",
        root,
        findings,
        memory,
        lambda node, into: check_schema_field(tree, node, "output", into, before, leaves),
    )
    memory.parameters, memory.output = schema.memory, output.memory
    raw = root.to_python()
    examples, memory.examples = check_examples(
        tree, _field(root, "examples"), schema, output, findings, memory.examples
    )
    if outer is None or not isinstance(raw, dict):
        return None
    _check_mapping(root, outer, findings)
    arguments = raw.get("parameters")
    return msgspec.structs.replace(
        outer,
        parameters=arguments if isinstance(arguments, dict) else None,
        output=raw.get("output"),
        examples=examples,
        raw=raw,
    )


_INNER = frozenset(("parameters", "output", "examples"))


def _outer(root: JsonNode, findings: Findings, memory: Memory) -> Manifest | None:
    """The manifest without its schemas, its examples and ``raw``; where no fault was found the last time, what was read then of all that
    did not change."""
    keys, greens = root.keys, root.greens
    seen = (keys, [None if key in _INNER else green for key, green in zip(keys, greens, strict=True)], root.closed)
    known = cast("tuple[tuple[list[str], list[object], bool], Manifest] | None", memory.outer)
    fields = _FIELDS
    manifest: Manifest | None = None
    if known is not None and known[0][0] == keys and known[0][2] == root.closed:
        changed = {key for key, was, now in zip(keys, known[0][1], seen[1], strict=True) if was is not now}
        if not changed:
            return known[1]
        if _ALONE.issuperset(changed):
            manifest = known[1]
            fields = {key: _FIELDS[key] for key in changed}
    before = len(findings.diags)
    manifest = _read_outer(root, findings, memory, fields, manifest)
    if manifest is not None and len(findings.diags) == before and not findings.full:
        memory.outer = (seen, manifest)
    return manifest


def _read_outer(
    root: JsonNode, findings: Findings, memory: Memory, fields: Mapping[str, _Field], known: Manifest | None
) -> Manifest | None:
    """These fields, and all others as they are ``known``."""
    from tamis.protocols.manifest.worked import read_once

    if known is None:
        _check_names(root, findings)
        _check_variables(root, findings)
    values = {field: read_once(name, root, findings, memory, read) for name, (field, read) in fields.items()}
    if any(values.get(field, "") is None for field in _NEEDED):
        return None
    return Manifest(**values) if known is None else msgspec.structs.replace(known, **values)


def _check_names(root: JsonNode, findings: Findings) -> None:
    """Fields that are none, and required ones that are not there."""
    keys = root.keys
    if all(key in _KNOWN or key.startswith("x-") for key in keys) and _REQUIRED.issubset(keys):
        return
    fields = findings.object(root, "the manifest", FIELDS, REQUIRED)
    for name in REQUIRED:
        if name not in fields:
            findings.missing(root, name)


def _check_variables(root: JsonNode, findings: Findings) -> None:
    """A name that is asked for both as a variable and as a secret."""
    env, context = root.get("env"), root.get("securityContext")
    if env is None or context is None or env.kind != "object" or context.kind != "object":
        return
    listed = context.get("secrets")
    if listed is None or listed.kind != "array":
        return
    secrets = {item.value for item in listed.items}
    for member in env.members:
        if member.key in secrets:
            reason = "securityContext.secrets asks for a secret of this name"
            findings.add("MF537", member.key_span, {"v": member.key, "reason": reason})


def _field(root: JsonNode, name: str) -> JsonNode | None:
    node = root.get(name)
    return None if node is None or node.kind == "error" else node


# The shape of ids and versions

_PLAIN_ID = re.compile(r"\w[\w.-]*+(?::[\w.-]++)*", re.ASCII)
"""Most ids: none of the faults."""
_ID_FAULTS = (
    (lazy(r"\s"), "blanks are not allowed"),
    (lazy(rf"[\x00-\x1f\x7f{NOT_IN_NAMES}]"), "it holds an invisible character"),
    (lazy(r"[<>\"'`&=「」«»]"), "it holds a character that calls use as markup"),
    (lazy(r"@"), "@ sets off a version in calls"),
    (lazy(r"[,;|{}\\]"), "it holds a separator"),
    (lazy(r"^[/!?:-]|[:/]$"), "it begins or ends with punctuation"),
)


def tool_id_fault(tool_id: str) -> str | None:
    """Why a text cannot be a tool id, or None."""
    if not tool_id:
        return "it is empty"
    if len(tool_id) > MAX_NAME_CHARS:
        return f"it has more than {MAX_NAME_CHARS} characters"
    if _PLAIN_ID.fullmatch(tool_id):
        return None
    return next((reason for pattern, reason in _ID_FAULTS if pattern.search(tool_id)), None)


def _tool_id(node: JsonNode | None, findings: Findings) -> str | None:
    tool_id = findings.text(node, "toolId", empty=False)
    if tool_id is None or node is None:
        return None
    fault = tool_id_fault(tool_id)
    if fault is not None:
        findings.add("MF506", node.span, {"v": tool_id, "what": "a tool id", "reason": fault})
        return None
    if ":" not in tool_id:
        findings.add("MF507", node.span, {"v": tool_id})
    return tool_id


_SEMVER = lazy(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_RANGE_PART = lazy(
    r"(?:[~^]|[<>]=?|=)?\s*v?(?:\*|[xX]|\d+(?:\.(?:\d+|[xX*])){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)", re.ASCII
)


def is_semver(version: str) -> bool:
    """Whether a version follows SemVer 2.0."""
    return len(version) <= 256 and _SEMVER.fullmatch(version) is not None


def is_version_range(text: str) -> bool:
    """Whether a text is a version range: comparators, ``^``, ``~``, ``x``, hyphen ranges and ``||`` between them."""
    if not text.strip() or len(text) > 256:
        return False
    for alternative in text.split("||"):
        bare = alternative.replace(" - ", " ").strip()
        bare = re.sub(r"([~^<>=])\s+", r"\1", bare)
        if not bare or not all(_RANGE_PART.fullmatch(part) for part in re.split(r"[\s,]+", bare)):
            return False
    return True


def _version(node: JsonNode | None, findings: Findings) -> str | None:
    version = findings.text(node, "version", empty=False)
    if version is not None and node is not None and not is_semver(version):
        findings.add("MF508", node.span, {"v": version})
    return version


def _description(node: JsonNode | None, findings: Findings) -> str | None:
    description = findings.text(node, "description", empty=False)
    # A Chinese sentence says in ten characters what an English one says in thirty.
    if description is not None and node is not None and len(description) < 30 and len(description.encode()) < 30:
        findings.add("MF509", node.span)
    return description


# The parts

MAPPING = "parameterMapping"
_SCRIPT_FIELDS = ("scriptPath", "language", "entryPoint", "result")
RESULTS = ("json", "vcp")
_SERVICE_FIELDS = ("serviceName", "methodName", MAPPING)
_MCP_FIELDS = ("server", "tool")
_HANDLER_FIELDS: dict[str, tuple[str, ...]] = dict(
    zip(HANDLER_TYPES, (_SCRIPT_FIELDS, _SERVICE_FIELDS, _MCP_FIELDS), strict=True)
)
_ALL_HANDLER_FIELDS = tuple(name for names in _HANDLER_FIELDS.values() for name in names)
LANGUAGE_WORDS = {
    **dict.fromkeys(("py", "python3", "python2", "cpython", "uv"), "python"),
    **dict.fromkeys(("node", "js", "javascript", "ts", "typescript", "node.js"), "nodejs"),
}
_HANDLER_WORDS = {
    **dict.fromkeys(("script", "external", "python", "command", "stdio", "process"), "external-script"),
    **dict.fromkeys(("service", "method", "function", "builtin"), "service-method"),
    **dict.fromkeys(("mcp-tool", "mcp_tool", "mcptool", "mcp-server"), "mcp"),
}


def _handler(node: JsonNode | None, findings: Findings) -> Handler | None:
    if node is None:
        return None
    kind_node = value_of({member.key: member for member in node.members}, "type")
    kind = kind_node.value if kind_node is not None else None
    if isinstance(kind, str) and kind not in _HANDLER_FIELDS and re.fullmatch(HANDLER_NAME, kind):
        return _other_handler(node, kind_node, kind, findings)
    wanted = _HANDLER_FIELDS.get(kind, ()) if isinstance(kind, str) else ()
    needed = ("type", *(name for name in wanted if name not in ("entryPoint", "result", MAPPING)))
    fields = findings.object(node, "handler", ("type", *_ALL_HANDLER_FIELDS), needed)
    if node.kind != "object":
        return None
    if "type" not in fields:
        findings.missing(node, "type", f" of handler: {' or '.join(HANDLER_TYPES)}")
        return None
    kind = findings.choice(value_of(fields, "type"), "handler.type", HANDLER_TYPES, _HANDLER_WORDS)
    if kind is None:
        return None
    for name in _ALL_HANDLER_FIELDS:
        if name in fields and name not in wanted:
            findings.add("MF510", fields[name].key_span, {"k": name, "type": kind})
    for name in needed:
        if name not in fields:
            findings.missing(node, name, f" of a handler of type {kind}")
    if kind == "external-script":
        return _external_script(fields, findings)
    first, second = (findings.text(value_of(fields, name), f"handler.{name}", empty=False) for name in wanted[:2])
    mapping = _mapping(value_of(fields, MAPPING), findings)
    if first is None or second is None:
        return None
    return ServiceMethod(first, second, mapping) if kind == "service-method" else McpTool(first, second)


def _mapping(node: JsonNode | None, findings: Findings) -> dict[str, str]:
    """The method's names by the tool's; no two lead to one."""
    if node is None:
        return {}
    if node.kind != "object":
        findings.wrong_type(node, f"handler.{MAPPING}", "an object")
        return {}
    mapping: dict[str, str] = {}
    for member in node.members:
        name = findings.text(member.value, f"handler.{MAPPING}.{member.key}", empty=False)
        if name is None or member.value is None:
            continue
        if name in mapping.values():
            findings.add("MF539", member.value.span, {"v": name, "reason": "another parameter has this name already"})
        mapping[member.key] = name
    return mapping


def _check_mapping(root: JsonNode, outer: Manifest, findings: Findings) -> None:
    """Whether what is mapped are parameters of the tool, and no other parameter has the name that one is given."""
    handler = outer.handler
    if not isinstance(handler, ServiceMethod) or not handler.parameter_mapping:
        return
    node, properties = root.get("handler"), root.get("parameters")
    properties = None if properties is None else properties.get("properties")
    mapped = None if node is None else node.get(MAPPING)
    if mapped is None or properties is None or properties.kind != "object":
        return
    names = set(properties.keys)
    for member in mapped.members:
        target = handler.parameter_mapping.get(member.key)
        if member.key not in names:
            reason = f"the tool has no parameter of this name{hint(best(member.key, names))}"
            findings.add("MF539", member.key_span, {"v": member.key, "reason": reason})
        elif member.value is not None and target in names and target not in handler.parameter_mapping:
            reason = "it is a parameter of the tool itself; map that one too"
            findings.add("MF539", member.value.span, {"v": str(target), "reason": reason})


def _other_handler(node: JsonNode, kind_node: JsonNode | None, kind: str, findings: Findings) -> Handler | None:
    """A handler of a type that is not built in: an error unless the operator's settings know it (``read_manifest`` takes that away)."""
    near = _HANDLER_WORDS.get(kind) or best(kind, HANDLER_TYPES)
    if near is not None:
        # a slip: its fields are those of a built-in type
        findings.object(node, "handler", ("type", *_ALL_HANDLER_FIELDS), ("type",))
    findings.choice(kind_node, "handler.type", HANDLER_TYPES, _HANDLER_WORDS)
    fields = node.to_python()
    if not isinstance(fields, dict):
        return None
    return OtherHandler(kind, {name: value for name, value in fields.items() if name != "type"})


def _external_script(fields: dict[str, Member], findings: Findings) -> ExternalScript | None:
    node = value_of(fields, "scriptPath")
    path = findings.text(node, "handler.scriptPath", empty=False)
    if path is not None and node is not None:
        fault = script_path_fault(path)
        if fault is not None:
            findings.add("MF511", node.span, {"v": path, "reason": fault})
            path = None
    language = _language(value_of(fields, "language"), findings)
    entry = findings.text(value_of(fields, "entryPoint"), "handler.entryPoint", empty=False)
    result = findings.choice(value_of(fields, "result"), "handler.result", RESULTS)
    if path is None or language is None:
        return None
    return ExternalScript(path, language, entry, "vcp" if result == "vcp" else "json")


def _language(node: JsonNode | None, findings: Findings) -> str | None:
    """A known language, or the name of a runtime of the operator's: what a slip made of a known one is an error."""
    value = node.value if node is not None else None
    if node is not None and isinstance(value, str) and value not in LANGUAGES:
        near = LANGUAGE_WORDS.get(value.lower()) or best(value, LANGUAGES)
        if near is None and re.fullmatch(LANGUAGE_NAME, value):
            findings.add("MF536", node.span, {"v": value, "list": ", ".join(LANGUAGES)})
            return value
    return findings.choice(node, "handler.language", LANGUAGES, LANGUAGE_WORDS)


def script_path_fault(path: str) -> str | None:
    """Why a path cannot be a script's, or None: it is relative and stays below its folder (seed 003 §2.1.2-4)."""
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "it must be relative to the tool's folder"
    if "\\" in path:
        return "write / between folders"
    if ".." in path.split("/"):
        return "'..' leads out of the tool's folder"
    if any(ord(char) < 32 for char in path):
        return "it has a control character"
    if path.endswith("/") or path in (".", "./"):
        return "it names a folder"
    return None


def _words(node: JsonNode | None, label: str, findings: Findings) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    for value, item in findings.texts(node, label) or []:
        if value in seen:
            findings.add("MF518", item.span, {"v": value, "p": label})
        seen[value] = None
    return tuple(seen)


def _aliases(node: JsonNode | None, findings: Findings) -> tuple[str, ...]:
    if node is not None and node.kind == "array":
        for item in node.items:
            if item.kind == "string" and isinstance(item.value, str):
                fault = tool_id_fault(item.value)
                if fault is not None:
                    findings.add("MF506", item.span, {"v": item.value, "what": "an alias", "reason": fault})
    return _words(node, "aliases", findings)


_ELSEWHERE = {
    "allowRead": "fileAccess.allowRead",
    "allowWrite": "fileAccess.allowWrite",
    "allowHosts": "networkAccess.allowHosts",
}


def _security_context(node: JsonNode | None, findings: Findings) -> SecurityContext:
    fields = findings.object(
        node,
        "securityContext",
        ("fileAccess", "networkAccess", "requiredCapabilities", "secrets"),
        elsewhere=_ELSEWHERE,
    )
    access = findings.object(value_of(fields, "fileAccess"), "fileAccess", ("allowRead", "allowWrite"))
    network = findings.object(value_of(fields, "networkAccess"), "networkAccess", ("allowHosts",))
    read = _patterns(value_of(access, "allowRead"), "allowRead", findings)
    write = _patterns(value_of(access, "allowWrite"), "allowWrite", findings)
    hosts: list[str] = []
    for value, item in findings.texts(value_of(network, "allowHosts"), "allowHosts") or []:
        fault = host_pattern_fault(value)
        if fault is not None:
            findings.add("MF513", item.span, {"v": value, "reason": fault})
        hosts.append(value)
    needed: list[str] = []
    for value, item in findings.texts(value_of(fields, "requiredCapabilities"), "requiredCapabilities") or []:
        if value not in CAPABILITIES:
            near = best(value, CAPABILITIES)
            fix = Fix(f"Replace by '{near}'", (Edit(item.start, item.end, f'"{near}"'),), "unsafe") if near else None
            findings.add("MF514", item.span, {"v": value, "hint": hint(near)}, fix=fix)
        needed.append(value)
    secrets: list[str] = []
    for value, item in findings.texts(value_of(fields, "secrets"), "secrets") or []:
        if fault := variable_name_fault(value):
            findings.add("MF537", item.span, {"v": value, "reason": fault})
        elif value in secrets:
            findings.add("MF518", item.span, {"v": value, "p": "secrets"})
        secrets.append(value)
    return SecurityContext(
        FileAccess(read, write), NetworkAccess(tuple(hosts)), tuple(needed), tuple(dict.fromkeys(secrets))
    )


def _patterns(node: JsonNode | None, label: str, findings: Findings) -> tuple[str, ...]:
    patterns: list[str] = []
    for value, item in findings.texts(node, label) or []:
        fault = path_pattern_fault(value, write=label == "allowWrite")
        if fault is not None:
            findings.add("MF512", item.span, {"v": value, "reason": fault})
        patterns.append(value)
    return tuple(patterns)


def _protocol_config(node: JsonNode | None, findings: Findings) -> dict[str, str]:
    fields = findings.object(node, "protocolConfig", ("vcpCommand",))
    command = findings.text(value_of(fields, "vcpCommand"), "protocolConfig.vcpCommand", empty=False)
    return {} if command is None else {"vcpCommand": command}


_INTEGRITY = lazy(r"sha256-[A-Za-z0-9+/]{43}=")
_FLAGS = ("idempotent", "requireConfirmation", "allowBuild")
_EXECUTION = ("mode", "timeoutMs", *_FLAGS, "integrity", "files", "limits")
MAX_FILE_GLOBS = 64


def _execution(node: JsonNode | None, findings: Findings) -> Execution:
    fields = findings.object(node, "execution", _EXECUTION)
    mode = findings.choice(value_of(fields, "mode"), "execution.mode", ("sync", "async"))
    timeout = findings.whole(value_of(fields, "timeoutMs"), "execution.timeoutMs", 1)
    flags = {name: findings.flag(value_of(fields, name), f"execution.{name}") or False for name in _FLAGS}
    where = value_of(fields, "integrity")
    integrity = findings.text(where, "execution.integrity")
    if integrity is not None and where is not None and not _INTEGRITY.fullmatch(integrity):
        findings.add("MF533", where.span, {"v": integrity})
    members = findings.object(value_of(fields, "limits"), "execution.limits", LIMITS)
    limits = {name: findings.whole(value_of(members, name), f"execution.limits.{name}", 1) for name in members}
    return Execution(
        mode="async" if mode == "async" else "sync",
        timeout_ms=timeout,
        idempotent=flags["idempotent"],
        require_confirmation=flags["requireConfirmation"],
        allow_build=flags["allowBuild"],
        integrity=integrity,
        files=_files(value_of(fields, "files"), findings),
        limits={name: value for name, value in limits.items() if value is not None},
    )


MAX_VARIABLES = 256
MAX_VARIABLE_BYTES = 32_768


def _variables(node: JsonNode | None, findings: Findings) -> dict[str, str]:
    if node is None:
        return {}
    if node.kind != "object":
        findings.wrong_type(node, "env", "an object of names and texts")
        return {}
    variables: dict[str, str] = {}
    for index, member in enumerate(node.members):
        value = findings.text(member.value, f"env.{member.key}")
        fault = variable_name_fault(member.key)
        if fault is None and value is not None:
            fault = _variable_fault(value)
        if fault is None and index >= MAX_VARIABLES:
            fault = f"a tool has at most {MAX_VARIABLES} variables"
        if fault is not None:
            findings.add("MF537", member.key_span, {"v": member.key, "reason": fault})
        elif value is not None:
            variables[member.key] = value
    return variables


def _variable_fault(value: str) -> str | None:
    if "\0" in value:
        return "its value holds a NUL, which no variable can"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "its value holds half of a surrogate pair, which has no bytes"
    return None if size <= MAX_VARIABLE_BYTES else f"its value is longer than {MAX_VARIABLE_BYTES} bytes"


def _files(node: JsonNode | None, findings: Findings) -> tuple[str, ...]:
    """The globs of what belongs to a script, plain and relative to the tool's folder."""
    globs: list[str] = []
    for glob, where in findings.texts(node, "execution.files") or []:
        if len(globs) >= MAX_FILE_GLOBS or not glob or "\\" in glob or {"", ".", ".."} & set(glob.split("/")):
            expected = f"at most {MAX_FILE_GLOBS} globs relative to the tool's folder, such as 'lib/**'"
            args: dict[str, str | int] = {"p": "execution.files", "expected": expected, "received": f"'{glob}'"}
            findings.add("MF502", where.span, args)
        else:
            globs.append(glob)
    return tuple(globs)


def _dependencies(node: JsonNode | None, findings: Findings) -> dict[str, str]:
    if node is None:
        return {}
    if node.kind != "object":
        findings.wrong_type(node, "dependencies", "an object of tool ids and version ranges")
        return {}
    dependencies: dict[str, str] = {}
    for member in node.members:
        fault = tool_id_fault(member.key)
        if fault is not None:
            findings.add("MF506", member.key_span, {"v": member.key, "what": "a tool id", "reason": fault})
        value = findings.text(member.value, f"dependencies.{member.key}")
        if value is None or member.value is None:
            continue
        if not is_version_range(value):
            findings.add("MF534", member.value.span, {"v": value})
        dependencies[member.key] = value
    return dependencies


_Field = tuple[str, Callable[[JsonNode | None, Findings], Any]]
_FIELDS: dict[str, _Field] = {
    "toolId": ("tool_id", _tool_id),
    "displayName": ("display_name", lambda node, into: into.text(node, "displayName", empty=False)),
    "description": ("description", _description),
    "version": ("version", _version),
    "handler": ("handler", _handler),
    "securityContext": ("security_context", _security_context),
    "tags": ("tags", lambda node, into: _words(node, "tags", into)),
    "aliases": ("aliases", _aliases),
    "agentCallable": ("agent_callable", lambda node, into: into.flag(node, "agentCallable")),
    "protocolConfig": ("protocol_config", _protocol_config),
    "execution": ("execution", _execution),
    "dependencies": ("dependencies", _dependencies),
    "env": ("env", _variables),
}
"""The outer fields: what each is called in the model, and how it is read."""
_NEEDED = ("tool_id", "display_name", "description", "version", "handler")
_ALONE = frozenset(_FIELDS) - {"securityContext", "env"}
"""Fields that are read without a look at any other."""
