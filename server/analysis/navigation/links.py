"""Links of a document: scripts, references, schemas, workflows, resources. Pure: whether a file is there is the asker's to say.

Must not know LSP.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

import msgspec

from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.positions import Span
from tamis.server.analysis.facts import inner, string_at
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.kinds import answer
from tamis.server.analysis.navigation.schemas_here import anchors_of, references, resolve_reference
from tamis.server.analysis.navigation.subject import script_of
from tamis.server.analysis.snapshot import Snapshot

MAX_LINKS = 1_000
_WORDS = {"tool": "manifest", "workflow": "workflow", "node": "node definition"}
_RESOURCE = re.compile(r"(?i:fam)://[^\s\"'<>«»「」`\\]{1,1024}")
_WEB = re.compile(r"https?://[^\s]+")


class Link(msgspec.Struct, frozen=True):
    """A link. One of: ``path`` (a file, at ``target`` in it where that is not None), ``uri`` (a web page), ``resource`` (``fam://…``).

    ``sure`` is false where the file may not be there.
    """

    span: Span
    tooltip: str
    path: str = ""
    target: Span | None = None
    uri: str = ""
    resource: str = ""
    sure: bool = True


def links_of(snapshot: Snapshot) -> list[Link]:
    """The links of a document by place, at most a thousand."""
    find = answer(snapshot, "links")
    links: list[Link] = list(find(snapshot)) if find is not None else []
    return sorted(links, key=lambda link: link.span)[:MAX_LINKS]


def of_manifest(snapshot: Snapshot) -> Iterator[Link]:
    """The script, the schema, what references lead to."""
    tree = snapshot.manifest.tree
    root = tree.root
    if root is None or root.kind != "object":
        return
    written, span = string_at(tree, "handler", "scriptPath")
    path = script_of(snapshot.path, written)
    facts = snapshot.folder
    if path and (facts is None or not facts.complete or posixpath.normpath(written) in facts.files):
        yield Link(span, "Open the script", path, sure=False)
    yield from _schema(snapshot, tree)
    anchors = anchors_of(tree)
    for at, node in references(tree):
        target = resolve_reference(tree, node.value, at, anchors) if isinstance(node.value, str) else None
        place = root.at(target) if target is not None else None
        if place is not None:
            yield Link(inner(tree.text, *node.span), "Go to the definition", snapshot.path, place.span)
    dependencies = root.get("dependencies")
    for member in dependencies.members if dependencies is not None and dependencies.kind == "object" else ():
        yield from _tool(snapshot.index, member.key, inner(tree.text, member.key_start, member.key_end))
    yield from _resources(tree.text, [(node.start, node.end) for node in _strings(root)])


def _schema(snapshot: Snapshot, tree: JsonTree) -> Iterator[Link]:
    written, span = string_at(tree, "$schema")
    if _WEB.fullmatch(written):
        yield Link(span, "Open the schema", uri=written)
    elif written and ":" not in written and not written.startswith("#"):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(snapshot.path), written.partition("#")[0]))
        yield Link(span, "Open the schema", path, sure=False)


def of_profile(snapshot: Snapshot) -> Iterator[Link]:
    """The manifests of the tools that a profile lists."""
    for name, node in snapshot.profile.entries:
        yield from _tool(snapshot.index, name, inner(snapshot.text, *node.span))


def _tool(index: WorkspaceIndex | None, name: str, span: Span) -> Iterator[Link]:
    """The file that declares a tool: a manifest, a workflow, or a node definition."""
    tool_id = index.resolve(name) if index is not None else None
    for tool in index.declarations(tool_id)[:1] if index is not None and tool_id is not None else ():
        yield Link(span, f"Open the {_WORDS[tool.declared.kind]}", tool.path, tool.declared.span)


def of_graph(snapshot: Snapshot) -> Iterator[Link]:
    """The tools that a workflow or a node definition names."""
    facts = snapshot.index.facts(snapshot.path) if snapshot.index is not None else None
    for use in facts.uses if facts is not None else ():
        if use.role == "dependency":
            yield from _tool(snapshot.index, use.name, use.span)


def of_text(snapshot: Snapshot) -> Iterator[Link]:
    """The resources that calls name."""
    if "://" in snapshot.text:
        yield from _resources(snapshot.text, [block.span for block in snapshot.document.blocks])


def _resources(text: str, spans: list[Span]) -> Iterator[Link]:
    for start, end in spans:
        for match in _RESOURCE.finditer(text, start, end):
            yield Link(match.span(), "Open the resource", resource=match[0])


def _strings(node: JsonNode) -> Iterator[JsonNode]:
    stack = [node]
    while stack:
        here = stack.pop()
        if here.kind == "string" and isinstance(here.value, str) and "://" in here.value:
            yield here
        stack += [member.value for member in here.members if member.value is not None]
        stack += here.items


# Linked editing: the names of an ACTION element's opening and closing tag, which change together. Looks at the block around the cursor alone, so it
# works while the block is being typed. Two tags that do not have the same name are not linked.


MAX_BLOCK_CHARS = 256 * 1024
WORD = r"[^\s<>/\"'`=][^\s<>\"'`=]*"
"""What a tag's name may be, ids like ``core:x`` and ``workflows/skills/x.json`` among them."""

_OPEN = re.compile(r"(?i:<action\s{0,8}>)")
_CLOSE = re.compile(r"(?i:</\s{0,8}action\s{0,8}>)")
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<(?P<slash>/?)(?P<name>[^\s<>/!?\"'`=][^\s<>\"'`=]{0,255}?)(?:\s[^<>]{0,1024})?(?P<empty>/)?>",
    re.S,
)


def linked_names(snapshot: Snapshot, offset: int) -> tuple[Span, Span] | None:
    """The two places that change together with the name at an offset, or None."""
    if snapshot.kind != "text":
        return None
    text = snapshot.text
    block = _block(text, offset)
    if block is None:
        return None
    stack: list[tuple[str, Span]] = []
    for match in _TOKEN.finditer(text, *block):
        name = match["name"]
        if name is None or match["empty"]:
            continue
        span = match.span("name")
        if not match["slash"]:
            stack.append((name, span))
            continue
        at = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][0] == name), -1)
        if at < 0:
            continue
        opened = stack[at][1]
        del stack[at:]
        if _touches(opened, offset) or _touches(span, offset):
            return opened, span
        if (
            match.start() > offset
            and not any(_touches(item, offset) for _, item in stack)
            and not _before(stack, offset)
        ):
            return None
    return None


def _before(stack: list[tuple[str, Span]], offset: int) -> bool:
    return any(span[0] <= offset for _, span in stack)


def _touches(span: Span, offset: int) -> bool:
    return span[0] <= offset <= span[1]


def _block(text: str, offset: int) -> Span | None:
    """The ACTION block around an offset, its markers included."""
    floor, ceiling = max(0, offset - MAX_BLOCK_CHARS), min(len(text), offset + MAX_BLOCK_CHARS)
    start = None
    for match in _OPEN.finditer(text, floor, min(ceiling, offset + 16)):
        if match.start() <= offset:
            start = match.start()
    if start is None:
        return None
    close = _CLOSE.search(text, start, ceiling)
    end = close.end() if close is not None else ceiling
    return (start, end) if offset <= end else None
