"""Findings of manifests and profiles that one file alone cannot give: its script on disk, the other manifests, the tools."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Mapping

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonNode
from tamis.protocols.manifest.profile import HOST_PREFIXES
from tamis.protocols.manifest.reading import is_version_range, script_path_fault, tool_id_fault
from tamis.protocols.manifest.workflow import PREFIX
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.positions import Span
from tamis.protocols.schema.words import MAPS
from tamis.protocols.suggest import best, hint
from tamis.server.analysis.answers import Related
from tamis.server.analysis.lints.handler import pin_fix
from tamis.server.analysis.lints.names import names_of
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.policy.path_grants import marks_a_project, never_granted

# Strings of a manifest that go on behind a line break, or lack one of their quotes: one finding with what is missing, none about the rest. A JSON
# reader ends a string with its line, and reads every quote behind a lost one the other way round, so the rest reads like a heap of faults.


MAX_PROVED_CHARS = 200_000
"""The largest text in which a quote is tried out."""
MAX_LINES = 40
"""How many lines of a text are looked at for the quote that closes it."""
_LINE = re.compile(r"(\r?\n)([^\r\n]*)")
_CLOSER = re.compile(r'(?:[^"\\]|\\.)*"(?=[ \t]*(?:[,}\]]|$))')
_CONTROL = re.compile(r"\r?\n|\t")


def mend_broken_strings(text: str, diags: list[Diag]) -> list[Diag]:
    """The findings with those about the rest of a broken string left out; the list itself where there is no such string."""
    by_start: dict[int, tuple[int, Diag]] = {}
    last = -1
    for diag in diags:
        if diag.code == "MF522" and diag.args.get("fault") == "unclosed-string" and diag.span[0] >= last:
            end = _end(text, diag.span)
            if end:
                last = end
                by_start[diag.span[0]] = (end, _mended(text, diag, end))
    if not by_start:
        return diags
    starts = sorted(by_start)
    kept: list[Diag] = []
    for diag in diags:
        at = bisect_right(starts, diag.span[0]) - 1
        start = starts[at] if at >= 0 else -1
        if start < 0 or diag.span[0] > by_start[start][0]:
            kept.append(diag)
        elif diag.span[0] == start and diag.code == "MF522":
            kept.append(by_start[start][1])
    return kept


def _end(text: str, span: Span) -> int:
    """Where a string is closed that goes on behind its line; 0 where what follows is no rest of a string."""
    at = text.find("\n", span[1])
    if at < 0 or text[span[1] : at].strip(" \t\r,"):
        return 0
    at -= text[at - 1] == "\r"
    for _ in range(MAX_LINES):
        line = _LINE.match(text, at)
        if line is None:
            return 0
        closer = _CLOSER.match(line[2])
        if closer is not None:
            return line.start(2) + closer.end()
        if '"' in line[2] or line[2].lstrip()[:1] in ("{", "}", "[", "]"):
            return 0
        at = line.end()
    return 0


def _mended(text: str, diag: Diag, end: int) -> Diag:
    edits = tuple(
        Edit(match.start(), match.end(), "\\t" if match[0] == "\t" else "\\n")
        for match in _CONTROL.finditer(text, diag.span[1], end)
    )
    return msgspec.structs.replace(
        diag, span=(diag.span[0], end), fix=Fix("Write the line breaks as \\n", edits, "unsafe")
    )


_LOST_MAX = 8
_OPENING = re.compile(r'"[ \t]*:')
_VALUE_END = re.compile(r'"[ \t]*(?:[,}\]\r\n]|\Z)')
_NAME_AND_COLON = re.compile(r'"([^":{}\[\],]+?)[ \t]*:[ \t]*"')


def mend_lost_quotes(text: str, diags: list[Diag]) -> list[Diag]:
    """The findings with one for each lost quote, in the place of all that its line is told of behind it; the list itself where none is lost."""
    if sum(diag.code in _FAULTS for diag in diags) < 2:
        return diags
    by_start: dict[int, Diag] = {}
    ends: list[Span] = []
    for diag in diags:
        if len(by_start) < _LOST_MAX and not any(start <= diag.span[0] < end for start, end in ends):
            lost = _lost(text, diag)
            if lost is not None:
                by_start[lost.span[0]] = lost
                end = text.find("\n", lost.span[0])
                ends.append((lost.span[0], len(text) if end < 0 else end))
    if not by_start:
        return diags
    names = {str(diag.args.get("name", "")) for diag in by_start.values()}
    kept = [
        diag
        for diag in diags
        if not any(start <= diag.span[0] < end for start, end in ends)
        # A name that lacks its quote is there.
        and not (diag.code == "MF501" and str(diag.args.get("k", "")) in names)
    ]
    return sorted([*kept, *by_start.values()], key=lambda diag: diag.span)


_FAULTS = frozenset(("MF520", "MF521", "MF522", "MF523"))


def _lost(text: str, diag: Diag) -> Diag | None:
    """The quote that is missing at a fault, or None."""
    start, end = diag.span
    fault = diag.args.get("fault")
    if fault == "missing-colon" and text[start : start + 1] == '"':
        match = _NAME_AND_COLON.fullmatch(text, start, end)
        if match is None:
            return None
        edit, what, span, name = Edit(match.end(1), match.end(1), '"'), "closing", (start, match.end(1)), match[1]
    elif fault == "unquoted-name" and _OPENING.match(text, end):
        edit, what, span, name = Edit(start, start, '"'), "opening", (start, end + 1), text[start:end]
    elif (diag.code == "MF523" or fault == "unexpected-value") and _VALUE_END.match(text, end):
        edit, what, span, name = Edit(start, start, '"'), "opening", (start, end + 1), ""
    else:
        return None
    after = text[: edit.start] + '"' + text[edit.end :]
    if len(text) > MAX_PROVED_CHARS or _count(after) >= _count(text):
        return None
    fix = Fix("Insert '\"'", (edit,), "unsafe")
    shown = name or text[start:end]
    return Diag("MF520", span, {"reason": f"{shown} has no {what} quote", "name": name}, fix=fix)


def _count(text: str) -> int:
    return sum(diag.code in _FAULTS for diag in parse_json(text).diagnostics)


SCHEMA_CODES = frozenset(
    {
        "MF501",
        "MF502",
        "MF503",
        "MF504",
        "MF505",
        "MF531",
        "MF533",
        "MF520",
        "MF521",
        "MF522",
        "MF523",
        "MF524",
        "MF525",
        "MF526",
    }
)
"""What an editor's own JSON service says with our schema; left to it when it does (``schemaDiagnostics: "off"``)."""

Findings = list[tuple[Diag, tuple[Related, ...]]]


def manifest_findings(snapshot: Snapshot) -> Findings:
    """Findings of a manifest, with the other places that belong to them."""
    manifest_findings: Findings = _of_reading(snapshot) if snapshot.manifest.diagnostics else []
    root = snapshot.manifest.tree.root
    scans = snapshot.manifest.memory.scans
    seen = None if root is None else _looked_at(snapshot, root)
    if seen is None or scans.get("beside") != seen:
        beside = [
            *_paths(snapshot),
            *_script(snapshot),
            *_mcp_server(snapshot),
            *_twins(snapshot),
            *_dependencies(snapshot),
        ]
        scans["beside"] = None if beside else seen
        manifest_findings += beside
    return manifest_findings


def _of_reading(snapshot: Snapshot) -> Findings:
    """What reading found, without what the editor's own service says, and with one finding for each string that lacks a quote."""
    left = {id(diag) for diag in left_to_client(snapshot)}
    diags = mend_broken_strings(snapshot.text, snapshot.manifest.diagnostics)
    if snapshot.settings.schema_diagnostics:
        diags = mend_lost_quotes(snapshot.text, diags)
    return [(_with_hash(snapshot, diag), ()) for diag in diags if id(diag) not in left]


def _with_hash(snapshot: Snapshot, diag: Diag) -> Diag:
    """The finding of what is no hash, with the fix that writes the script's."""
    root, script = snapshot.manifest.tree.root, snapshot.script
    if diag.code != "MF533" or root is None or script is None or not script.sha256:
        return diag
    execution = root.get("execution")
    node = execution.get("integrity") if execution is not None else None
    return diag if node is None else msgspec.structs.replace(diag, fix=pin_fix(root, node, script))


_UNSEEN = frozenset(("parameters", "output", "examples", "description", "displayName", "tags"))
"""Fields that none of these findings looks at."""


def _looked_at(snapshot: Snapshot, root: JsonNode) -> tuple[object, ...]:
    """All that these findings depend on: where it is the same as when there were none, there are none."""
    keys = root.keys
    outer = [green for key, green in zip(keys, root.greens, strict=False) if key not in _UNSEEN]
    return (keys, outer, snapshot.path, snapshot.registry, snapshot.folder, snapshot.mcp)


def left_to_client(snapshot: Snapshot) -> list[Diag]:
    """Findings of a manifest that the editor's own JSON service tells, so that they are not told twice."""
    if snapshot.settings.schema_diagnostics:
        return []
    # The schema lets any name of a runtime through: an operator may have one of that name.
    language = _value_span(snapshot, "/handler/language")
    return [
        diag
        for diag in snapshot.manifest.diagnostics
        if (diag.code in SCHEMA_CODES and diag.span != language and not _is_blank(diag)) or metaschema_says(diag)
    ]


def _is_blank(diag: Diag) -> bool:
    """Whether a text is only blanks, which is not empty to a schema."""
    return diag.code == "MF505" and diag.span[1] - diag.span[0] > 2


def _value_span(snapshot: Snapshot, pointer: str) -> Span | None:
    node = snapshot.manifest.tree.node_at(pointer)
    if node is None or node.kind != "string":
        return None
    return node.span


def _text(snapshot: Snapshot, pointer: str) -> str:
    node = snapshot.manifest.tree.root
    for name in pointer[1:].split("/"):
        node = None if node is None else node.get(name)
    return node.value if node is not None and isinstance(node.value, str) else ""


def _paths(snapshot: Snapshot) -> Findings:
    """Path patterns that no policy can grant: the tool is registered, and runs without them."""
    root = snapshot.manifest.tree.root
    if root is None or "securityContext" not in root.keys:
        return []
    reported_spans = {diag.span for diag in snapshot.manifest.diagnostics if diag.code == "MF512"}
    folder = posixpath.dirname(snapshot.path)

    beside = () if snapshot.folder is None else (*snapshot.folder.files, *snapshot.folder.others)
    is_project = marks_a_project(path.partition("/")[0] for path in beside)
    paths: Findings = []
    for name in ("allowRead", "allowWrite"):
        node = snapshot.manifest.tree.node_at(f"/securityContext/fileAccess/{name}")
        for item in node.items if node is not None else ():
            if not isinstance(item.value, str) or item.span in reported_spans or item.value.startswith("fam://"):
                continue
            reason = never_granted(item.value, folder, writable=name == "allowWrite", is_project=is_project)
            if reason:
                paths.append((Diag("MF512", item.span, {"v": item.value, "reason": reason}, severity="warning"), ()))
    return paths


def _script(snapshot: Snapshot) -> Findings:
    """The handler's script must exist beside the manifest (D34)."""
    facts = snapshot.folder
    span = _value_span(snapshot, "/handler/scriptPath")
    if facts is None or span is None or _text(snapshot, "/handler/type") != "external-script":
        return []
    written = _text(snapshot, "/handler/scriptPath")
    path = posixpath.normpath(written) if written else ""
    if script_path_fault(written):
        return []  # no such path can name a script, which is said already
    # Paths that leave the folder have a finding of their own; folders that were not listed are not judged.
    if not path or path.startswith(("/", "..")) or ":" in path or any(p in _UNLISTED for p in path.split("/")):
        return []
    what = _no_file(path, facts.others)
    if what:
        return [(Diag("MF542", span, {"v": written, "what": what}), ())]
    if path in facts.files or not facts.complete:
        return []
    suggestion = best(path, facts.files) or next(
        (file for file in sorted(facts.files) if posixpath.basename(file) == posixpath.basename(path)), None
    )
    fix = None
    if suggestion is not None:
        fix = Fix(f"Change to '{suggestion}'", (Edit(span[0], span[1], f'"{suggestion}"'),), "unsafe")
    return [(Diag("MF540", span, {"v": written, "hint": hint(suggestion)}, fix=fix), ())]


def _mcp_server(snapshot: Snapshot) -> Findings:
    """The handler's MCP server must be one of the settings, and be there (D92)."""
    span = _value_span(snapshot, "/handler/server")
    name = _text(snapshot, "/handler/server")
    if snapshot.mcp is None or span is None or not name or _text(snapshot, "/handler/type") != "mcp":
        return []
    reason = snapshot.mcp.get(name)
    if reason is not None:
        return [(Diag("MF548", span, {"v": name, "reason": reason}), ())] if reason else []
    suggestion = best(name, snapshot.mcp)
    fix = None
    if suggestion is not None:
        fix = Fix(f"Change to '{suggestion}'", (Edit(span[0], span[1], quoted(suggestion)),), "unsafe")
    known = ", ".join(sorted(snapshot.mcp)) or "none"
    return [(Diag("MF547", span, {"v": name, "hint": hint(suggestion), "list": known}, fix=fix), ())]


def _no_file(path: str, others: Mapping[str, str]) -> str:
    """Why a path that is there cannot be run, in words; empty for a file or nothing. Links lead anywhere, so none is followed."""
    at = path.find("/")
    while at >= 0:
        if others.get(path[:at]) == "link":
            return f"behind '{path[:at]}', a symbolic link; put the folder itself there"
        at = path.find("/", at + 1)
    return _WHAT.get(others.get(path, ""), "")


_WHAT = {
    "link": "a symbolic link; put the file itself there",
    "folder": "a folder; name a file in it",
    "special": "not a regular file",
    "unreadable": "not readable; allow its owner and Tamis to read it",
}
_UNLISTED = frozenset({"node_modules", ".venv", "__pycache__", ".git", ".hg", ".svn"})


def _twins(snapshot: Snapshot) -> Findings:
    """Another manifest with the same id and version (ruling 35); both files get the finding."""
    span = _value_span(snapshot, "/toolId")
    tool_id, version = _text(snapshot, "/toolId"), _text(snapshot, "/version")
    if snapshot.registry is None or span is None or not tool_id:
        return []
    related: list[Related] = []
    kept = ""
    names = names_of(snapshot.registry)
    for tool in names.twins.get((tool_id, version), ()):
        if tool.path != snapshot.path:
            related.append(_place(snapshot, tool.path, tool_id))
            kept = "that one is used"
    for conflict in names.conflicts.get((tool_id, version, snapshot.path), ()):
        if conflict.dropped == conflict.kept:
            continue  # a manifest whose own names clash
        related.append(_place(snapshot, conflict.dropped, tool_id))
        kept = "this one is used"
    if not related:
        return []
    places = tuple(dict.fromkeys(related))
    other = _beside(snapshot.path, places[0].path)
    if len(places) > 1:
        other += f" and {len(places) - 1} more"
    args: dict[str, str | int] = {"v": tool_id, "version": version, "kept": kept, "other": other}
    return [(Diag("MF541", span, args), places)]


def _dependencies(snapshot: Snapshot) -> Findings:
    """Tools that this one needs, and that are not there, not in a version that fits, or need it in turn (D91)."""
    node = snapshot.manifest.tree.node_at("/dependencies")
    registry, tool_id = snapshot.registry, _text(snapshot, "/toolId")
    if registry is None or node is None or node.kind != "object" or not tool_id:
        return []
    members = {
        member.key: member
        for member in node.members
        if member.value is not None
        and isinstance(member.value.value, str)
        and is_version_range(member.value.value)
        and tool_id_fault(member.key) is None
    }
    wanted = {name: str(member.value.value) for name, member in members.items() if member.value is not None}
    dependencies: Findings = []
    for fault in registry.dependency_faults(tool_id, _text(snapshot, "/version"), wanted):
        member = members[fault.name]
        if fault.kind == "version" and member.value is not None:
            args: dict[str, str | int] = {"v": fault.name, "range": f"'{fault.wanted}'", "list": fault.detail}
            dependencies.append((Diag("MF545", member.value.span, args), ()))
        elif fault.kind == "cycle":
            dependencies.append((Diag("MF546", member.key_span, {"v": fault.name, "way": fault.detail}), ()))
        elif fault.kind == "missing" and fault.name.partition(":")[0] not in _ELSEWHERE:
            near = best(fault.name, registry.names())
            fix = None
            if near is not None:
                fix = Fix(f"Change to '{near}'", (Edit(*member.key_span, quoted(near)),), "unsafe")
            dependencies.append((Diag("MF544", member.key_span, {"v": fault.name, "hint": hint(near)}, fix=fix), ()))
    return dependencies


_ELSEWHERE = frozenset((*HOST_PREFIXES, PREFIX.rstrip(":")))
"""Namespaces of tools that come from no manifest: an editor does not know which of them are there."""


def _beside(path: str, other: str) -> str:
    """The path of another manifest as seen from the folder of this one, where both are written in the same way."""
    path, other = path.replace("\\", "/"), other.replace("\\", "/")
    if path.startswith("/") != other.startswith("/") or path[1:2] == ":" or other[1:2] == ":":
        return other
    return posixpath.relpath(other, posixpath.dirname(path) or ".")


def _place(snapshot: Snapshot, path: str, tool_id: str) -> Related:
    match = re.search(r'"toolId"\s*:\s*("' + re.escape(tool_id) + r'")', snapshot.text_at(path))
    return Related(f"'{tool_id}' is declared here too", match.span(1) if match else (0, 0), path)


def profile_findings(snapshot: Snapshot) -> Findings:
    """Findings of an agent profile; ids are checked against the tools where there are any (W01)."""
    return [(diag, ()) for diag in snapshot.profile.diagnostics]


def plugin_findings(snapshot: Snapshot) -> Findings:
    """That a plug-in manifest of VCP can be converted; what is wrong in it is another project's matter (ruling 32)."""
    from tamis.protocols.jsontext.parse import parse_json
    from tamis.protocols.manifest.foreign import SHAPES, foreign_shape

    root = parse_json(snapshot.text).root
    shape = foreign_shape(root) if root is not None else None
    if shape is None or shape[0] != "vcp":
        return []
    span = (shape[1].start, min(shape[1].end, shape[1].start + 1)) if shape[1].kind == "object" else shape[1].span
    return [(Diag("MF516", span, {"shape": SHAPES["vcp"]}, severity="information", data={"shape": "vcp"}), ())]


_MAPS = (MAPS - {"$defs", "dependentSchemas"}) | {"dependencies"}
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "items", "enum", "required", "type", "examples"))
_SCHEMAS = frozenset(
    ("additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not", "items")
)
_LEAVES = frozenset(
    (
        *("$id", "$schema", "$ref", "$comment", "title", "description", "readOnly", "multipleOf"),
        *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
        *("maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "format"),
        *("contentMediaType", "contentEncoding"),
    )
)
_BEYOND: frozenset[object] = frozenset(("bad-pattern", "ref-nowhere", "ref-endless", "too-large", "empty-enum"))
"""Faults that no metaschema sees."""


def metaschema_says(diag: Diag) -> bool:
    """Whether a finding on a schema (``VA450``) is one of its shape, below keywords that draft-07 has."""
    fault = diag.args.get("fault")
    tokens = str(diag.data.get("path", "")).split("/")[2:]
    if diag.code != "VA450" or fault in _BEYOND:
        return False
    if tokens[-1:] == ["items"] and fault == "list-for-schema":
        return False  # a list of schemas, which draft-07 has
    at = 0
    while at < len(tokens):
        word = tokens[at]
        numbered = tokens[at + 1 : at + 2] and tokens[at + 1].isdecimal()
        if word in _MAPS:
            at += 2
            if word == "dependencies" and tokens[at : at + 1] and tokens[at].isdecimal():
                at += 1
        elif word in _LISTS and numbered:
            at += 2
        elif word in _SCHEMAS or word in _LISTS or word in _LEAVES:
            at += 1
        else:
            return False
    return True
