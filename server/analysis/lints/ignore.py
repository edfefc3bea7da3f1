"""Code actions that silence a finding: where the comment goes that ``directives.py`` reads.

What is written never changes what a text calls: where a comment would, the action is not offered. Must not know LSP.
"""

from __future__ import annotations

import re

import msgspec

from tamis.protocols.jsontext.tokens import quoted
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.levels import codes_of, is_binding
from tamis.protocols.model import Block, Edit, Fix
from tamis.protocols.positions import Span
from tamis.server.analysis.answers import Finding
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import function_of
from tamis.server.analysis.lints.directives import FIELD, Directive, directives_of, fenced, text_directives
from tamis.server.analysis.snapshot import Snapshot

_NEVER = frozenset(("TC024", "TC025", "LN790", "LN791", "LN792", "LN793"))
_STAYS: dict[str, str] = dict.fromkeys(("MF540", "MF542"), " (the tool stays not available)")
"""What silencing does not change: the finding alone says why such a tool cannot be run."""
_MAX_PROVED = 256 * 1024
_FENCE_LINE = re.compile(r"[ \t]{0,3}(?:`{3,}|~{3,})[^\n]*\n$")
_FRONT_MATTER = re.compile(r"\ufeff?(?:---[ \t]*\r?\n(?:.*\r?\n)*?---[ \t]*(?:\r?\n|\Z))?")


def ignore_actions(snapshot: Snapshot, finding: Finding) -> list[Fix]:
    """The actions that silence one finding, here and in the whole file; none for what is always said."""
    if finding.code in _NEVER or is_binding(finding.code, finding.severity):
        return []
    offer = function_of(snapshot.kind, "ignore")
    if offer is None:
        return []
    titles = tuple(f"Ignore {finding.code} {where}{_STAYS.get(finding.code, '')}" for where in ("here", "in this file"))
    offers: list[tuple[str, Edit | None]] = offer(snapshot, finding, *titles)
    return [Fix(title, (edit,), "unsafe") for title, edit in offers if edit is not None]


def in_json(snapshot: Snapshot, finding: Finding, here: str, file: str) -> list[tuple[str, Edit | None]]:
    """The edits that silence a finding of JSON, with their titles."""
    tree = snapshot.tree
    if snapshot.settings.strict_json:
        return [(file, _field(tree, finding.code))]
    directives = directives_of(snapshot)
    return [(here, _json_line(tree, finding, directives)), (file, _json_file(tree, finding.code, directives))]


def in_text(snapshot: Snapshot, finding: Finding, here: str, file: str) -> list[tuple[str, Edit | None]]:
    """The edits that silence a finding of a text, with their titles, as far as they do."""
    offers = [(here, _text_block(snapshot, finding)), (file, _text_file(snapshot, finding.code))]
    return [(title, edit) for title, edit in offers if edit is not None and _silences(snapshot, edit, finding)]


def ignoring(snapshot: Snapshot, span: Span) -> list[tuple[Finding, Fix]]:
    """The actions for all findings that touch ``span``, each edit once, with the first finding that it is for."""
    by_fix: dict[Fix, Finding] = {}
    for finding in diagnose(snapshot):
        if finding.span[0] <= span[1] and span[0] <= finding.span[1]:
            for fix in ignore_actions(snapshot, finding):
                by_fix.setdefault(fix, finding)
    return [(finding, fix) for fix, finding in by_fix.items()]


def _more(directive: Directive, text: str, code: str) -> Edit:
    """One more rule in a directive that is there already."""
    at = directive.names[-1].span[1]
    return Edit(at, at, f", {code}" if directive.names[-1].name else f" {code}")


def _json_line(tree: JsonTree, finding: Finding, directives: list[Directive]) -> Edit | None:
    text, root = tree.text, tree.root
    start = text.rfind("\n", 0, finding.span[0]) + 1
    if root is None or start <= root.start:
        return None  # a comment before the first bracket is for the whole file
    if any(first < start < last for first, last in tree.comments):
        return None  # the line begins inside a comment
    before = next(
        (directive for directive in directives if directive.target[0] == start and directive.span[1] <= start), None
    )
    if before is not None and before.cut[0] != before.cut[1]:
        return _more(before, text, finding.code)
    indent = text[start : start + len(text[start:]) - len(text[start:].lstrip(" \t"))]
    return Edit(start, start, f"{indent}// tamis-ignore {finding.code}{_newline(text)}")


def _json_file(tree: JsonTree, code: str, directives: list[Directive]) -> Edit | None:
    root = tree.root
    if root is None:
        return None
    if root.kind == "object" and root.member(FIELD) is not None:
        return _field(tree, code)
    top = next((directive for directive in directives if directive.span[1] <= root.start), None)
    if top is not None:
        return _more(top, tree.text, code)
    at = 1 if tree.text.startswith("\ufeff") else 0
    return Edit(at, at, f"// tamis-ignore {code}{_newline(tree.text)}")


def _field(tree: JsonTree, code: str) -> Edit | None:
    root = tree.root
    # In broken text the last member may end anywhere.
    if root is None or root.kind != "object" or not root.closed or not tree.ok:
        return None
    member = root.member(FIELD)
    if member is not None:
        node = member.value
        if node is None or node.kind != "array" or not node.closed:
            return None
        at = node.items[-1].end if node.items else node.start + 1
        return Edit(at, at, f"{', ' if node.items else ''}{quoted(code)}")
    text = f'"{FIELD}": [{quoted(code)}]'
    if not root.members:
        return Edit(root.start + 1, root.start + 1, text)
    last = root.members[-1]
    line = tree.text.rfind("\n", 0, last.key_start)
    before = tree.text[line + 1 : last.key_start]
    gap = _newline(tree.text) + before if line >= root.start and not before.strip() else " "
    end = last.span[1]
    return Edit(end, end, f",{gap}{text}")


def _text_block(snapshot: Snapshot, finding: Finding) -> Edit | None:
    text = snapshot.text
    block = _block_at(snapshot, finding.span[0])
    start = text.rfind("\n", 0, block.span[0] if block is not None else finding.span[0]) + 1
    if block is not None and text[start : block.span[0]].strip():
        return None  # the block begins in the middle of a line
    # A line inside a fence would make an example of the block (ruling 7).
    line = text.rfind("\n", 0, max(0, start - 1)) + 1
    fences = fenced(text)
    if start and _FENCE_LINE.fullmatch(text[line:start]) and not any(line < end <= start for _, end in fences):
        start = line
    if any(begin < start < end for begin, end in fences):
        return None  # a comment would only be shown there
    existing = next(
        (
            directive
            for directive in directives_of(snapshot)
            if directive.span[1] <= start and directive.target[0] == directive.span[1]
        ),
        None,
    )
    if existing is not None and not text[existing.span[1] : start].strip():
        return _more(existing, text, finding.code)
    return Edit(start, start, _comment(snapshot, f"tamis-ignore {finding.code}"))


def _text_file(snapshot: Snapshot, code: str) -> Edit | None:
    whole = (0, len(snapshot.text) + 1)
    existing = next((directive for directive in directives_of(snapshot) if directive.target == whole), None)
    if existing is not None:
        return _more(existing, snapshot.text, code)
    matter = _FRONT_MATTER.match(snapshot.text)
    at = matter.end() if matter is not None else 0
    return Edit(at, at, _comment(snapshot, f"tamis-ignore-file {code}"))


def _block_at(snapshot: Snapshot, offset: int) -> Block | None:
    return next(
        (
            block
            for block in snapshot.document.blocks
            if block.state != "mention" and block.span[0] <= offset <= block.span[1]
        ),
        None,
    )


def _comment(snapshot: Snapshot, words: str) -> str:
    end = _newline(snapshot.text)
    return f"# {words}{end}" if snapshot.path.endswith(".tam") else f"<!-- {words} -->{end}"


def _newline(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _silences(snapshot: Snapshot, edit: Edit, finding: Finding) -> bool:
    """Whether the text makes the same calls with the comment in it, and the comment is read as one for the finding."""
    text = snapshot.text
    if len(text) > _MAX_PROVED:
        return False
    after = text[: edit.start] + edit.new_text + text[edit.end :]
    blocks = snapshot.read(after).blocks
    if _calls(snapshot.document.blocks, text) != _calls(blocks, after):
        return False
    place = finding.span[0] + (len(edit.new_text) if edit.start <= finding.span[0] else 0)
    return any(
        text_directive.target[0] <= place < max(text_directive.target[1], text_directive.target[0] + 1)
        and any(not named.name or finding.code in codes_of(named.name) for named in text_directive.names)
        for text_directive in text_directives(after, blocks)
    )


def _calls(blocks: list[Block], text: str) -> list[bytes]:
    return [
        msgspec.json.encode([call.tool_id, call.executable, call.args(text)])
        for block in blocks
        for call in block.calls
    ]
