"""Every place that means the same thing: a tool, a parameter, a definition, a script; across files, also ones that are not open.

The places are the ground of references, highlights and renames, so each one says how its name is written. Pure. Must not know LSP.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from tamis.protocols.jsontext.tree import JsonTree, Path
from tamis.protocols.model import Block, Call, Document, Param
from tamis.protocols.plugins import editing_of, extras_of
from tamis.protocols.positions import Span
from tamis.protocols.tomltext import read_toml
from tamis.server.analysis.facts import Role, inner, protocol_of
from tamis.server.analysis.index import Occurrence, WorkspaceIndex
from tamis.server.analysis.kinds import DocumentKind, holds_calls, kind_of, serves
from tamis.server.analysis.navigation.definition import text_of, tree_of
from tamis.server.analysis.navigation.schemas_here import (
    anchors_of,
    arguments_schema,
    declaring,
    pointer_sites,
    property_spots,
    references,
    resolve_reference,
)
from tamis.server.analysis.navigation.subject import (
    Subject,
    calls_of,
    closing_name,
    extra_keys,
    has_slots,
    input_of,
    manifest_of,
    read_file,
    script_of,
    subject_at,
    tool_id_of,
)
from tamis.server.analysis.running.mentions import (
    Mention,
    chosen_in,
    keys_of,
    may_hold,
    mentions_here,
    mentions_in,
    names_of,
    root_of,
    settings_path,
    unquoted,
)
from tamis.server.analysis.running.variables import named_blocks
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.runtime.tools.versions import plain_spellings

Form = Literal["json", "tag", "close", "attribute", "key", "text", "pointer"]
"""How a name is written: as JSON text, an opening or closing tag, the value of an attribute, a ``key:``, plain text, or in a ``$ref``."""


class Site(msgspec.Struct, frozen=True):
    """One place of a name. ``raw`` is what is written there; ``call`` the id of the tool whose call it stands in."""

    path: str
    span: Span
    role: Role | Literal["parameter"]
    form: Form
    raw: str
    declares: bool = False
    aside: bool = False
    protocol: str = ""


def sites_of(snapshot: Snapshot, subject: Subject, *, only: str = "") -> list[Site]:
    """Every place of a subject by file and place; with ``only`` those of one file."""
    if subject.kind == "tool":
        sites = _tool(snapshot, subject, only)
    elif subject.kind == "parameter":
        sites = _parameter(snapshot, subject, only)
    elif subject.kind in ("definition", "reference"):
        sites = _definition(snapshot, subject)
    elif subject.kind == "script":
        sites = _script(snapshot, subject, only)
    elif subject.kind == "result":
        sites = _result(snapshot, subject)
    elif subject.kind in ("variable", "environment", "secret"):
        sites = _inline(snapshot, subject, only)
    else:
        sites = iter([_here(snapshot, subject)])
    return sorted(dict.fromkeys(sites), key=lambda site: (site.path, site.span))


def find_references(snapshot: Snapshot, offset: int, *, include_declaration: bool = True) -> list[Site]:
    """The places that mean what stands at an offset; a closing tag counts with its opening one."""
    subject = subject_at(snapshot, offset)
    if subject is None:
        return []
    return [
        site
        for site in sites_of(snapshot, subject)
        if site.form != "close" and (include_declaration or not site.declares)
    ]


class Highlight(msgspec.Struct, frozen=True):
    """A place of the same thing in this document; ``write`` where it is declared."""

    span: Span
    write: bool = False


def highlights(snapshot: Snapshot, offset: int) -> list[Highlight]:
    """The places of this document that mean what stands at an offset, closing tags among them."""
    subject = subject_at(snapshot, offset)
    if subject is None:
        return []
    sites = [site for site in sites_of(snapshot, subject, only=snapshot.path) if site.path == snapshot.path]
    highlights = [Highlight(site.span, site.declares) for site in sites]
    if not any(highlight.span == subject.span for highlight in highlights):
        highlights.append(Highlight(subject.span, subject.declares))
    return sorted(highlights, key=lambda highlight: highlight.span)


def _here(snapshot: Snapshot, subject: Subject) -> Site:
    return Site(snapshot.path, subject.span, "declaration", "json", snapshot.text[slice(*subject.span)], declares=True)


# Tools


def _tool(snapshot: Snapshot, subject: Subject, only: str) -> Iterator[Site]:
    for occurrence in occurrences_of(snapshot, subject.tool_id):
        if only and occurrence.path != only:
            continue
        text = text_of(snapshot, occurrence.path)
        form = _form(text, occurrence.span, occurrence.use.protocol, tag=occurrence.use.tag)
        declares = occurrence.role in ("declaration", "alias")
        for span in occurrence.spans:
            where: Form = "close" if span == occurrence.use.close else form
            yield Site(
                occurrence.path,
                span,
                occurrence.role,
                where,
                text[slice(*span)],
                declares,
                occurrence.use.aside,
                occurrence.use.protocol,
            )


def occurrences_of(snapshot: Snapshot, name: str) -> list[Occurrence]:
    """Every place that names a tool, given by a name, by any of its names: those that files declare, and those that only the registry knows."""
    tool_id = tool_id_of(snapshot, name) or name
    registry = snapshot.registry
    tool = registry.get(tool_id) if registry is not None else None
    also: list[str] = []
    if registry is not None and tool is not None:
        for other in (*tool.manifest.aliases, *plain_spellings(tool_id)):
            meant = registry.resolve_call(other, "", None).tool
            if meant is not None and meant.tool_id == tool_id:
                also.append(other)
    return snapshot.index.occurrences(tool_id, also) if snapshot.index is not None else []


def _form(text: str, span: Span, protocol: str, *, tag: bool) -> Form:
    if tag:
        return "tag"
    if extras_of(protocol).elements:
        return "attribute" if text[span[0] - 1 : span[0]] in ("'", '"', "=") else "text"
    return "text" if editing_of(protocol).fields is not None else "json"


# Parameters


def _parameter(snapshot: Snapshot, subject: Subject, only: str) -> Iterator[Site]:
    if not subject.manifest:
        yield from _unknown_parameter(snapshot, subject)
        return
    tree = tree_of(snapshot, subject.manifest)
    if has_slots(snapshot, subject.manifest):
        member = input_of(tree, subject.name, subject.tool_id)
        if member is not None and only in ("", subject.manifest):
            span = inner(tree.text, member.key_start, member.key_end)
            yield Site(subject.manifest, span, "parameter", "json", tree.text[slice(*span)], declares=True)
        yield from _in_calls(snapshot, subject, only)
        return
    schema: Path | None = subject.schema
    if subject.manifest != snapshot.path:
        declaration = declaring(tree, (subject.name,))
        schema = declaration[0] if declaration is not None else None
    if schema is not None and only in ("", subject.manifest):
        for spot in property_spots(tree, schema, subject.name):
            raw = tree.text[slice(*spot.span)]
            yield Site(subject.manifest, spot.span, "parameter", "json", raw, spot.declares)
        for span in pointer_sites(tree, (*schema, "properties", subject.name)):
            yield Site(subject.manifest, span, "parameter", "pointer", tree.text[slice(*span)])
    if schema is None or schema == arguments_schema(tree):
        yield from _in_calls(snapshot, subject, only)


def _unknown_parameter(snapshot: Snapshot, subject: Subject) -> Iterator[Site]:
    """Of a tool that nobody declares, the parameter in its calls here."""
    tool = _call_around(snapshot, subject)
    for block, call in calls_of(snapshot.document) if snapshot.kind == "text" else ():
        if tool is not None and call.tool_id == tool:
            yield from _of_call(snapshot.path, snapshot.text, block, call, subject.name)


def _call_around(snapshot: Snapshot, subject: Subject) -> str | None:
    if snapshot.kind != "text":
        return None
    calls = [call for _, call in calls_of(snapshot.document)]
    return next(
        (call.tool_id for call in calls for param in call.params if _holds(param.span, subject.span)),
        None,
    )


def _holds(outer: Span, part: Span) -> bool:
    return outer[0] <= part[0] and part[1] <= outer[1]


def _in_calls(snapshot: Snapshot, subject: Subject, only: str) -> Iterator[Site]:
    index = snapshot.index
    if index is None:
        return
    tool_id = subject.tool_id or index_id(snapshot, subject.manifest)
    paths = dict.fromkeys(
        occurrence.path for occurrence in occurrences_of(snapshot, tool_id) if occurrence.role == "call"
    )
    for path in paths:
        if only and path != only:
            continue
        text = text_of(snapshot, path)
        document = read_file(snapshot, path, text)
        for block, call in calls_of(document):
            same = tool_id_of(snapshot, call.tool_id, call.protocol) == tool_id
            if same and means(snapshot, call, subject.manifest):
                yield from _of_call(path, text, block, call, subject.name)


def index_id(snapshot: Snapshot, manifest: str) -> str:
    """The id that a file declares."""
    facts = snapshot.index.facts(manifest) if snapshot.index is not None else None
    return facts.declared.tool_id if facts is not None and facts.declared is not None else ""


def means(snapshot: Snapshot, call: Call, manifest: str) -> bool:
    """Whether a call would run the tool of a manifest."""
    manifest_path = manifest_of(snapshot, call.tool_id, call.protocol)
    if manifest_path == manifest:
        return True
    # Of several files with one id and version only one runs; its calls are those of the others too.
    return bool(manifest_path) and _identity(snapshot, manifest_path) == _identity(snapshot, manifest) is not None


def _identity(snapshot: Snapshot, manifest: str) -> tuple[str, str] | None:
    facts = snapshot.index.facts(manifest) if snapshot.index is not None else None
    return (
        (facts.declared.tool_id, facts.declared.version) if facts is not None and facts.declared is not None else None
    )


def _of_call(path: str, text: str, block: Block, call: Call, name: str) -> Iterator[Site]:
    for param in call.params:
        if param.name != name:
            continue
        form = form_of(text, param)
        yield Site(path, param.name_span, "parameter", form, _raw(text, param), False, block.aside, call.protocol)
        close = closing_name(text, param)
        if close is not None:
            yield Site(path, close, "parameter", "close", text[slice(*close)], False, block.aside, call.protocol)
    for about, span in extra_keys(text, block, call):
        if about == name:
            yield Site(path, span, "parameter", "key", text[slice(*span)], False, block.aside, call.protocol)


def form_of(text: str, param: Param) -> Form:
    """How a parameter's name is written."""
    if param.origin == "json":
        return "json"
    if param.origin in ("pair", "common"):
        return "key"
    opened = text[param.span[0] : param.name_span[0]].strip(" \t`'\"")
    return "tag" if param.origin == "child" and opened in ("<", "＜") else "attribute"


def _raw(text: str, param: Param) -> str:
    return text[slice(*param.name_span)]


# Definitions and scripts


def _definition(snapshot: Snapshot, subject: Subject) -> Iterator[Site]:
    tree: JsonTree = snapshot.manifest.tree
    root = tree.root
    target = subject.path
    parent = root.at(target[:-1]) if root is not None and target else None
    member = parent.member(str(target[-1])) if parent is not None and parent.kind == "object" else None
    if member is not None:
        span = inner(tree.text, member.key_start, member.key_end)
        yield Site(snapshot.path, span, "declaration", "json", tree.text[slice(*span)], declares=True)
    anchors = anchors_of(tree)
    named = pointer_sites(tree, target)
    ends = {span[1] for span in named}
    for span in named:
        yield Site(snapshot.path, span, "parameter", "pointer", tree.text[slice(*span)])
    for path, node in references(tree):
        span = inner(tree.text, node.start, node.end)
        if (
            isinstance(node.value, str)
            and resolve_reference(tree, node.value, path, anchors) == target
            and span[1] not in ends
        ):
            # By its anchor, or the root.
            yield Site(snapshot.path, span, "parameter", "text", tree.text[slice(*span)])


def _script(snapshot: Snapshot, subject: Subject, only: str) -> Iterator[Site]:
    """Every manifest that runs the same file."""
    wanted = script_of(subject.manifest, subject.name)
    if not wanted or snapshot.index is None:
        yield _here(snapshot, subject)
        return
    for path in snapshot.index.files():
        if (only and path != only) or snapshot.index.kind(path) != "manifest":
            continue
        facts = snapshot.index.facts(path)
        declared = facts.declared if facts is not None else None
        if declared is not None and script_of(path, declared.script_path) == wanted:
            text = text_of(snapshot, path)
            yield Site(path, declared.script_span, "declaration", "json", text[slice(*declared.script_span)])


# Variables, environments, results of blocks, secrets: only what a person runs. Of texts outside of the settings' folder, and of models' words, none.


def _result(snapshot: Snapshot, subject: Subject) -> Iterator[Site]:
    text = snapshot.text
    named = [name for name in names_of(text, snapshot.document) if name.name == subject.names[0]]
    if subject.declares and named[0].span != subject.span:
        # An earlier block has the name already: nothing means this one.
        yield _spot(snapshot.path, text, subject.span, declares=True)
        return
    yield from (_spot(snapshot.path, text, name.span, declares=True) for name in named[:1])
    for mention in mentions_here(snapshot):
        if not mention.secret and mention.path[0] == subject.names[0]:
            yield _spot(snapshot.path, text, mention.names[0][1])


def _inline(snapshot: Snapshot, subject: Subject, only: str) -> Iterator[Site]:
    settings = settings_path(snapshot)
    if settings and only in ("", settings) and subject.kind != "secret":
        yield from _in_settings(settings, text_of(snapshot, settings), subject)
    if subject.kind == "environment":
        return
    depth = len(subject.names)
    for path, text, mention in mentions_of(snapshot, subject.names[0], only=only, secrets=subject.kind == "secret"):
        if mention.path[:depth] == subject.names:
            yield _spot(path, text, mention.names[depth - 1][1])


def _in_settings(path: str, text: str, subject: Subject) -> Iterator[Site]:
    tree = read_toml(text)
    chosen = chosen_in(tree)
    if subject.kind == "environment" and chosen is not None and chosen[0] == subject.names[0]:
        yield _spot(path, text, chosen[1])
    for key in keys_of(tree):
        if (key.path if subject.kind == "environment" else key.path[1:]) == subject.names:
            yield _spot(path, text, unquoted(text, key.span), declares=True)


def mentions_of(
    snapshot: Snapshot, head: str, *, only: str = "", secrets: bool = False
) -> Iterator[tuple[str, str, Mention]]:
    """Every reference to a variable of the folder's settings, or to a secret, by the first name of its path; with its file and text."""
    for path, text, document in inline_files(snapshot, head, only):
        hidden = not secrets and document is not None and any(n.name == head for n in named_blocks(document))
        for mention in mentions_in(kind_here(snapshot, path), text, document) if not hidden else ():
            if mention.secret == secrets and mention.path[0] == head:
                yield path, text, mention


def inline_files(snapshot: Snapshot, name: str, only: str = "") -> Iterator[tuple[str, str, Document | None]]:
    """The texts and manifests with the same settings that may hold a name in ``{{…}}``; texts as they are read."""
    root = root_of(snapshot.roots, snapshot.path)
    files = snapshot.index.files() if snapshot.index is not None else []
    for path in [only] if only else sorted({*files, snapshot.path}):
        kind = kind_here(snapshot, path)
        if not serves(kind, "mentions") or root_of(snapshot.roots, path) != root:
            continue
        text = text_of(snapshot, path)
        # A name may be written with escapes.
        if may_hold(text) and (name in text or "\\" in text or "&" in text):
            yield path, text, read_as_run(snapshot, path, text) if holds_calls(kind) else None


def kind_here(snapshot: Snapshot, path: str) -> DocumentKind:
    """What a file is: the document asked about by its language too."""
    return snapshot.kind if path == snapshot.path else kind_of(path, "")


def read_as_run(snapshot: Snapshot, path: str, text: str) -> Document:
    """A text as a run in an editor reads it."""
    if path == snapshot.path and text == snapshot.text:
        return snapshot.document
    from tamis.protocols.reader import read_text

    return read_text(text, protocol_of(path), snapshot.reading)


def _spot(path: str, text: str, span: Span, *, declares: bool = False) -> Site:
    return Site(path, span, "declaration" if declares else "parameter", "text", text[slice(*span)], declares)


# Who names a tool, and which tools a file names: manifests by their dependencies, texts by their calls, profiles by their lists. Pure.


class Caller(msgspec.Struct, frozen=True):
    """A file that declares a tool or names some. ``tool_id`` is empty for texts and profiles."""

    path: str
    name: str
    span: Span
    tool_id: str = ""
    detail: str = ""


class Edge(msgspec.Struct, frozen=True):
    """The other end, and the places where the naming file names the tool."""

    other: Caller
    spans: tuple[Span, ...]


def callers_at(snapshot: Snapshot, offset: int) -> list[Caller]:
    """The tool at an offset, by the file that declares it; of several versions the one that would run."""
    subject = subject_at(snapshot, offset)
    if subject is None or subject.kind != "tool" or snapshot.index is None:
        return []
    tools = snapshot.index.declarations(subject.tool_id)
    callers = [caller_of(snapshot.index, tool.path, tool.tool_id) for tool in tools]
    return [caller for caller in callers if caller.path == subject.manifest] or callers


def caller_of(index: WorkspaceIndex, path: str, tool_id: str = "") -> Caller:
    """A file as one end; of one that declares several tools the one with this id."""
    facts = index.facts(path)
    own = facts.declares if facts is not None else ()
    declared = next((declaration for declaration in own if len(own) == 1 or declaration.tool_id == tool_id), None)
    if declared is None or not declared.tool_id:
        return Caller(path, path.rsplit("/", 1)[-1], (0, 0))
    return Caller(path, declared.tool_id, declared.span, declared.tool_id, declared.display_name)


def incoming(index: WorkspaceIndex, path: str, tool_id: str = "") -> list[Edge]:
    """The files that name the tool of a file, by path; ``tool_id`` tells which where it declares several."""
    tool_id = caller_of(index, path, tool_id).tool_id
    places: dict[str, list[Span]] = {}
    for occurrence in index.occurrences(tool_id) if tool_id else ():
        if occurrence.role in ("call", "profile", "dependency"):
            places.setdefault(occurrence.path, []).append(occurrence.span)
    return [Edge(caller_of(index, other), tuple(spans)) for other, spans in places.items()]


def outgoing(index: WorkspaceIndex, path: str) -> list[Edge]:
    """The tools that a file names, in the order of their first place; names that nothing declares are left out."""
    facts = index.facts(path)
    places: dict[str, list[Span]] = {}
    for use in facts.uses if facts is not None else ():
        tool_id = index.resolve(use.name, use.protocol) if use.role in ("call", "profile", "dependency") else None
        if tool_id is not None:
            places.setdefault(tool_id, []).append(use.span)
    return [
        Edge(caller_of(index, tools[0].path, tool_id), tuple(spans))
        for tool_id, spans in places.items()
        if (tools := index.declarations(tool_id))
    ]
