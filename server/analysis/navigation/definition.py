"""Going to a definition, a declaration or an implementation: from a call to the manifest, from there to the script and its function.

Pure: a target names a file; whether it is there, and where in a script a function stands, the asker finds out with
``functions.find_function``. Must not know LSP.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.positions import Span
from tamis.protocols.tomltext import read_toml
from tamis.server.analysis.facts import Declared, inner
from tamis.server.analysis.kinds import holds_calls
from tamis.server.analysis.navigation.schemas_here import declaring, property_of
from tamis.server.analysis.navigation.subject import Subject, has_slots, input_of, script_of, subject_at
from tamis.server.analysis.running.mentions import keys_of, unquoted
from tamis.server.analysis.running.variables import Reference, names_in, reference_at, variables_in
from tamis.server.analysis.snapshot import Snapshot


class Target(msgspec.Struct, frozen=True):
    """A place to go to. ``span`` is what to select, ``whole`` what belongs to it; with ``function`` both are found in the file's text.

    ``setting`` is a key of the folder's ``tamis.toml``, whose path the asker knows; its place is found with ``find_setting``.
    """

    path: str
    span: Span = (0, 0)
    whole: Span = (0, 0)
    function: str = ""
    setting: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """Where a question leads, and the place that it was asked of."""

    origin: Span = (0, 0)
    targets: tuple[Target, ...] = ()


def definition(snapshot: Snapshot, offset: int) -> Found:
    """A call's tool to its manifest, the manifest's id to its script, a parameter to its property, a reference to its target."""
    named = reference_at(snapshot, offset) if holds_calls(snapshot.kind) else None
    if named is not None:
        # the comment that gives an earlier block its name
        spans = [name.span for name in names_in(snapshot) if name.name == named[0].head and name.block < named[1]]
        return Found(
            named[0].span,
            tuple(Target(snapshot.path, span, span) for span in spans[:1]) or _variable(snapshot, named[0]),
        )
    subject = subject_at(snapshot, offset)
    if subject is None:
        return Found()
    if subject.kind == "tool" and subject.declares:
        targets = _scripts(snapshot, subject) or _manifests(snapshot, subject)
    elif subject.kind == "tool":
        # Of several versions the one that would run; the declaration has them all.
        candidates = _manifests(snapshot, subject)
        targets = [target for target in candidates if target.path == subject.manifest] or candidates
    elif subject.kind == "parameter":
        targets = _property(snapshot, subject)
    elif subject.kind in ("script", "entry"):
        targets = _scripts(snapshot, subject)
    elif subject.kind in ("variable", "environment", "result", "secret"):
        targets = _inline(snapshot, subject)
    else:
        targets = _in_file(snapshot, subject)
    return Found(subject.span, tuple(targets))


def _variable(snapshot: Snapshot, reference: Reference) -> tuple[Target, ...]:
    """A variable's key below the environment that it is from."""
    origin = "" if reference.secret else variables_in(snapshot).origins.get(reference.head, "")
    path = reference.name.partition("[")[0].split(".")
    return (Target("", setting=("environments", origin, *path)),) if origin else ()


def _inline(snapshot: Snapshot, subject: Subject) -> list[Target]:
    """Of a name outside of calls: the comment of the block, the key in ``tamis.toml``; where it is declared itself."""
    if subject.declares:
        return [Target(snapshot.path, subject.span, subject.span)]
    if subject.kind == "result":
        spans = [name.span for name in names_in(snapshot) if name.name == subject.names[0]]
        return [Target(snapshot.path, span, span) for span in spans[:1]]
    if subject.kind == "environment":
        keys = [key for key in keys_of(read_toml(snapshot.text)) if key.path == subject.names]
        spans = [unquoted(snapshot.text, key.span) for key in keys[:1]]
        return [Target(snapshot.path, span, span) for span in spans]
    origin = variables_in(snapshot).origins.get(subject.names[0], "") if subject.kind == "variable" else ""
    return [Target("", setting=("environments", origin, *subject.names))] if origin else []


def find_setting(text: str, keys: Sequence[str]) -> Span | None:
    """The place of a variable's key in the text of a ``tamis.toml``, or of the part of its path that is written as one; None: it is not there."""
    best: tuple[int, Span] = (2, (0, 0))
    tables = [table for table in read_toml(text).tables if not table.array]
    waiting = [(table.names, table.entries) for table in tables]
    places = [(table.names, table.spans, 0) for table in tables]
    while waiting:
        prefix, entries = waiting.pop()
        for entry in entries:
            names = (*prefix, *entry.names)
            if names == tuple(keys[: len(names)]) and entry.value is not None:
                waiting.append((names, entry.value.entries))
            places.append((names, entry.spans, len(prefix)))
    for names, spans, before in places:
        depth = min(len(names), len(keys))
        if best[0] < depth and depth > before and names[:depth] == tuple(keys[:depth]):
            best = (depth, spans[depth - before - 1])
    return best[1] if best[0] > 2 else None


def declaration(snapshot: Snapshot, offset: int) -> Found:
    """Where a name is declared: for a tool its manifest also from the manifest itself, else the same as the definition."""
    subject = subject_at(snapshot, offset)
    if subject is not None and subject.kind == "tool":
        return Found(subject.span, tuple(_manifests(snapshot, subject)))
    return definition(snapshot, offset)


def implementation(snapshot: Snapshot, offset: int) -> Found:
    """What a tool runs: its script, with an entry point the function in it. From a call, a profile or the manifest."""
    subject = subject_at(snapshot, offset)
    if subject is None or subject.kind not in ("tool", "script", "entry"):
        return Found()
    return Found(subject.span, tuple(_scripts(snapshot, subject)))


def text_of(snapshot: Snapshot, path: str) -> str:
    """The text of a file as far as it is known: this document, a file of the index, or another manifest."""
    if path == snapshot.path:
        return snapshot.text
    text = snapshot.index.text(path) if snapshot.index is not None else ""
    return text or snapshot.neighbours.get(path, "")


def tree_of(snapshot: Snapshot, path: str) -> JsonTree:
    """A manifest's tree."""
    return (
        snapshot.manifest.tree
        if path == snapshot.path and snapshot.kind == "manifest"
        else parse_json(text_of(snapshot, path))
    )


def _manifests(snapshot: Snapshot, subject: Subject) -> list[Target]:
    """Every file that declares the tool; the version that would run first."""
    targets: list[Target] = []
    for tool in snapshot.index.declarations(subject.tool_id) if snapshot.index is not None else ():
        declared = tool.declared
        text = text_of(snapshot, tool.path)
        whole = (0, len(text)) if declared.kind == "tool" else declared.span
        targets.append(Target(tool.path, declared.span, whole))
    if not targets and subject.manifest:
        tree = tree_of(snapshot, subject.manifest)
        node = tree.root.get("toolId") if tree.root is not None and tree.root.kind == "object" else None
        span = inner(tree.text, *node.span) if node is not None else (0, 0)
        targets.append(Target(subject.manifest, span, (0, len(tree.text))))
    return sorted(targets, key=lambda target: target.path != subject.manifest)


def _scripts(snapshot: Snapshot, subject: Subject) -> list[Target]:
    targets: list[Target] = []
    for tool in _declarations(snapshot, subject):
        path = script_of(tool[0], tool[1].script_path)
        function = "" if subject.kind == "script" else tool[1].entry_point
        target = Target(path, function=function)
        if path and target not in targets:
            targets.append(target)
    return targets


def _declarations(snapshot: Snapshot, subject: Subject) -> list[tuple[str, Declared]]:
    """The declarations that a subject means: of a manifest its own, else all of the id, the one that would run first."""
    index = snapshot.index
    if index is None:
        return []
    if subject.manifest == snapshot.path:
        facts = index.facts(snapshot.path)
        own = facts.declares if facts is not None else ()
        return [
            (snapshot.path, declaration)
            for declaration in own
            if len(own) == 1 or declaration.tool_id == subject.tool_id
        ]
    declarations = [(tool.path, tool.declared) for tool in index.declarations(subject.tool_id)]
    return sorted(declarations, key=lambda item: item[0] != subject.manifest)


def _property(snapshot: Snapshot, subject: Subject) -> list[Target]:
    if not subject.manifest:
        return []
    tree = tree_of(snapshot, subject.manifest)
    if has_slots(snapshot, subject.manifest):
        member = input_of(tree, subject.name, subject.tool_id)
    else:
        here = subject.manifest == snapshot.path
        spot = property_of(tree, subject.schema, subject.name) if here else declaring(tree, (subject.name,))
        member = spot[1] if spot is not None else None
    if member is None:
        return []
    return [Target(subject.manifest, inner(tree.text, member.key_start, member.key_end), member.span)]


def _in_file(snapshot: Snapshot, subject: Subject) -> list[Target]:
    tree = snapshot.manifest.tree
    parent = tree.root.at(subject.path[:-1]) if tree.root is not None else None
    member = parent.member(str(subject.path[-1])) if parent is not None and parent.kind == "object" else None
    if member is not None:
        return [Target(snapshot.path, inner(tree.text, member.key_start, member.key_end), member.span)]
    node = tree.root.at(subject.path) if tree.root is not None else None
    return [Target(snapshot.path, node.span, node.span)] if node is not None else []


# Where a script defines a function: found in its text, which is never run or imported. For Python and for JavaScript and TypeScript in the spellings
# that people write; the first definition at the outermost level wins. A dotted name leads through a class.


_MAX_CHARS = 4 * 1024 * 1024
_SCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx")


def find_function(text: str, name: str, path: str) -> Span | None:
    """The place of a function's name in a script, or None. ``name`` may be ``Class.method``."""
    if not name or len(text) > _MAX_CHARS:
        return None
    find = _in_javascript if path.endswith(_SCRIPT) else _in_python
    start, end = 0, len(text)
    span: Span | None = None
    for part in name.split("."):
        span = find(text, part, start, end)
        if span is None:
            return None
        start = span[1]
    return span


def _in_python(text: str, name: str, start: int, end: int) -> Span | None:
    word = re.escape(name)
    pattern = re.compile(
        rf"(?m)^([ \t]*)(?:async[ \t]+def|def|class)[ \t]+({word})\b|^()({word})[ \t]*(?::[^=\n]+)?=(?!=)"
    )
    return _outermost(pattern, text, start, end)


def _in_javascript(text: str, name: str, start: int, end: int) -> Span | None:
    word = re.escape(name)
    named = rf"(?<![\w$.]){word}(?![\w$])"
    for body in (
        rf"(?m)^([ \t]*)(?:export[ \t]+)?(?:default[ \t]+)?(?:async[ \t]+)?(?:function[ \t]*\*?|class)[ \t]*({named})",
        rf"(?m)^([ \t]*)(?:export[ \t]+)?(?:const|let|var)[ \t]+({named})[ \t]*[=:]",
        rf"(?m)^([ \t]*)(?:module\.)?exports\.({word})(?![\w$])[ \t]*=",
        rf"(?m)^([ \t]*)(?:static[ \t]+)?(?:async[ \t]+)?\*?[ \t]*({named})[ \t]*\([^\n]{{0,2000}}\)[ \t]{{0,8}}(?::[^\n{{]{{1,200}})?\{{",
        rf"(?m)^([ \t]*)[\"']?({named})[\"']?[ \t]*:[ \t]*(?:async\b|function\b|\()",
        rf"(?m)^([ \t]*)export[ \t]*\{{[^{{}}]*?\bas[ \t]+({word})\b",
        rf"(?m)^([ \t]*)(?:module\.exports[ \t]*=[ \t]*|export[ \t]*)\{{[^{{}}]*?({named})",
    ):
        span = _outermost(re.compile(body), text, start, end)
        if span is not None:
            return span
    return None


def _outermost(pattern: re.Pattern[str], text: str, start: int, end: int) -> Span | None:
    """The match with the least indentation; of equal ones the last, which is the one that counts when a script runs."""
    best: tuple[int, Span] | None = None
    for match in pattern.finditer(text, start, end):
        group = 2 if match[2] is not None else 4
        depth = len((match[1] or "").expandtabs(8))
        if best is None or depth <= best[0]:
            best = (depth, match.span(group))
    return best[1] if best is not None else None
