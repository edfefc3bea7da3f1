"""Comments that silence findings: where they stand, which rules they name, and what stretch of the text they are for.

- In a manifest or profile: ``// tamis-ignore LN721: reason`` at the end of a line is for that line, on a line of its own for the next
  one, before the first bracket for the whole file. Where comments are not allowed, ``"x-tamis-ignore": ["LN721"]`` in an object is
  for that object; in the outermost one for the whole file.
- In a text: ``<!-- tamis-ignore TM210: reason -->``, or ``#`` and ``//`` on a line of their own, is for the block that follows, inside a
  block for its next line, ``tamis-ignore-file`` for the whole file.

Without a rule everything there is meant. Must not know findings.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

import msgspec

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.jsontext.tree import JsonNode, JsonTree
from tamis.protocols.levels import NO_LEVELS, Levels, codes_of, is_binding, read_levels, rule_suggestion
from tamis.protocols.model import Block, Diag, Edit, Fix
from tamis.protocols.patterns import lazy
from tamis.protocols.positions import Span
from tamis.protocols.suggest import hint
from tamis.server.analysis.answers import Finding
from tamis.server.analysis.kinds import function_of
from tamis.server.analysis.snapshot import Snapshot

WORD = "tamis-ignore"
FIELD = "x-tamis-ignore"
_DIRECTIVE = lazy(r"tamis-ignore(-file)?(?!\w|-(?!->))([ \t]+[A-Za-z0-9][\w, \t-]*)?")
_NAME = lazy(r"[A-Za-z0-9][\w-]*")
_OUTER = lazy(r"(?m)<!--[ \t]*(?=tamis-ignore)|^[ \t]*(?:\#|//)[ \t]*(?=tamis-ignore)")
# A comment stands before the fence of a block, because inside it would make an example of the block (ruling 7).
_BETWEEN = lazy(r"\s*(?:(?:`{3,}|~{3,})[^\n]*\n\s*)?")
_FENCE = lazy(r"(?m)^[ \t]{0,3}(`{3,}|~{3,})")


class Named(msgspec.Struct, frozen=True):
    """One rule that a directive names, and where; ``name`` empty stands for all."""

    name: str
    span: Span


class Directive(msgspec.Struct, frozen=True):
    """One comment or field that silences what begins in ``target``; ``cut`` is what to take out when it is not needed."""

    span: Span
    names: tuple[Named, ...]
    target: Span
    cut: Span
    misshapen: Span | None = None
    """The value of a field that is no list of rules, nor true."""


def json_directives(tree: JsonTree) -> list[Directive]:
    """The directives of a manifest or profile."""
    if not tree.says(WORD):
        return []
    directives = [directive for comment in tree.comments if (directive := _comment(tree, comment)) is not None]
    directives.extend(_fields(tree))
    return directives


def _comment(tree: JsonTree, span: Span) -> Directive | None:
    text = tree.text
    match = _DIRECTIVE.search(text, span[0], span[1])
    # The word has to be the first of the comment: prose may speak of it.
    if match is None or text[span[0] : match.start()].strip(" \t*/") != "":
        return None
    names = tuple(_names(text, match))
    start, end = _line(text, span[0])
    first = tree.root.start if tree.root is not None else len(text)
    if match[1] or span[1] <= first:
        target = (0, len(text) + 1)
    elif text[start : span[0]].strip():
        target = (start, end)
    else:
        target = _next_line(text, _line(text, span[1])[1])
    alone = not text[start : span[0]].strip() and not text[span[1] : end].strip()
    return Directive(span, names, target, (start, min(end + 1, len(text))) if alone else span)


def _fields(tree: JsonTree) -> Iterator[Directive]:
    if tree.root is None or f'"{FIELD}"' not in tree.text:
        return
    at = -1
    while (at := tree.text.find(f'"{FIELD}"', at + 1)) >= 0:
        holder = _object_around(tree.root, at)
        member = (
            next((member for member in holder.members if member.key_start == at), None) if holder is not None else None
        )
        if holder is None or member is None or member.key != FIELD or member.value is None:
            continue
        value = member.value
        nodes = value.items if value.kind == "array" else [value]
        names = tuple(Named(node.value, node.span) for node in nodes if isinstance(node.value, str) and node.value)
        everything = value.value is True
        cut = (member.span[1], member.span[1])
        misshapen = None if value.kind == "array" or everything else value.span
        if names or everything:
            target = (0, len(tree.text) + 1) if holder is tree.root else (holder.start, holder.end)
            yield Directive(member.span, names or (Named("", member.span),), target, cut, misshapen)
        elif misshapen is not None and value.value is not False:
            yield Directive(member.span, (), (-1, -1), cut, misshapen)


def _object_around(root: JsonNode, offset: int) -> JsonNode | None:
    """The innermost object that an offset lies in."""
    node, holder = root, None
    while True:
        if node.kind == "object":
            holder = node
            parts = [member.value for member in node.members if member.value is not None]
        elif node.kind == "array":
            parts = node.items
        else:
            return holder
        at = bisect.bisect_right(parts, offset, key=lambda part: part.start) - 1
        if at < 0 or parts[at].end <= offset:
            return holder
        node = parts[at]


def text_directives(text: str, blocks: list[Block]) -> list[Directive]:
    """The directives of a text with calls."""
    if WORD not in text:
        return []
    directives: list[Directive] = []
    real = [block for block in blocks if block.state != "mention"]
    starts = [block.span[0] for block in real]
    for block in real:
        for comment in block.comments:
            match = _DIRECTIVE.search(text, *comment.span)
            if match is not None and not text[comment.span[0] : match.start()].strip(" \t#<!-/"):
                target = _next_line(text, _line(text, comment.span[1])[1])
                whole = (0, len(text) + 1) if match[1] else target
                directives.append(
                    Directive(comment.span, tuple(_names(text, match)), whole, _whole_line(text, comment.span))
                )
    fences = fenced(text)
    for opener in _OUTER.finditer(text):
        match = _DIRECTIVE.match(text, opener.end())
        at = bisect.bisect_right(starts, opener.start()) - 1
        inside = at >= 0 and opener.end() < real[at].span[1]
        if match is None or inside or any(start <= opener.start() < end for start, end in fences):
            continue
        close = text.find("-->", opener.end()) if opener.group().startswith("<!--") else -1
        begin = opener.end() - len(opener.group().lstrip())
        end = close + 3 if close >= 0 else _line(text, opener.end())[1]
        span = (begin, end)
        if match[1]:
            target = (0, len(text) + 1)
        else:
            target = _next_line(text, _line(text, end)[1])
            following = bisect.bisect_left(starts, end)
            if following < len(starts) and _BETWEEN.fullmatch(text, end, starts[following]):
                target = (end, real[following].span[1] + 1)
        directives.append(Directive(span, tuple(_names(text, match)), target, _whole_line(text, span)))
    return sorted(directives, key=lambda directive: directive.span)


def _names(text: str, match: re.Match[str]) -> Iterator[Named]:
    if match[2] is None:
        yield Named("", match.span())
        return
    previous = match.start(2)
    for name in _NAME.finditer(text, match.start(2), match.end(2)):
        between = text[previous : name.start()]
        # After the first rule without a comma behind it only words of a reason follow.
        if previous > match.start(2) and "," not in between and not re.fullmatch(r"[A-Z]{2}\d{0,3}", name.group()):
            return
        yield Named(name.group(), name.span())
        previous = name.end()


def fenced(text: str) -> list[Span]:
    """The fenced parts of a Markdown text, where a comment is only shown."""
    spans: list[Span] = []
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = match
        elif match[1].startswith(opened[1]):
            spans.append((opened.start(), match.end()))
            opened = None
    return spans


def _line(text: str, offset: int) -> Span:
    """The line that holds an offset, without its end."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    return start, len(text) if end < 0 else end


def _whole_line(text: str, span: Span) -> Span:
    start, end = _line(text, span[0])
    alone = not text[start : span[0]].strip() and not text[span[1] : end].strip()
    return (start, min(end + 1, len(text))) if alone else span


def _next_line(text: str, end: int) -> Span:
    """The next line that says something, from the end of a line on; lines of comments are passed over."""
    at = end + 1
    while at < len(text):
        start, stop = _line(text, at)
        line = text[start:stop].strip()
        if line and not (line.startswith(("//", "/*", "#", "<!--")) and WORD in line):
            return start, stop
        at = stop + 1
    return len(text), len(text) + 1


# Levels and silencing: what the settings and the comments of a document leave of its findings. What keeps a file from being loaded is always said.
# Nothing here changes what runs.


def levels_of(snapshot: Snapshot) -> Levels:
    """The levels in force for a document."""
    config = snapshot.settings.config
    return _levels(tuple(sorted((name, _plain(value)) for name, value in config.lint.items()))) if config else NO_LEVELS


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in cast("list[object]", value))
    return value if isinstance(value, (str, bool)) else str(value)


@lru_cache(maxsize=16)
def _levels(table: tuple[tuple[str, object], ...]) -> Levels:
    return read_levels(dict(table)) if table else NO_LEVELS


def with_levels(findings: list[Finding], levels: Levels) -> list[Finding]:
    """The findings at the chosen levels; those that are off are left out."""
    kept: list[Finding] = []
    for finding in findings:
        level = levels.of(finding.code)
        if level is None:
            if not CATALOGUE[finding.code].off:
                kept.append(finding)
        elif is_binding(finding.code, finding.severity):
            kept.append(finding)
        elif level != "off":
            kept.append(msgspec.structs.replace(finding, severity=level))
    return kept


def directives_of(snapshot: Snapshot) -> list[Directive]:
    """What silences findings of a document."""
    find = function_of(snapshot.kind, "directives")
    return find(snapshot) if find is not None else []


def directives_in_json(snapshot: Snapshot) -> list[Directive]:
    """The comments and fields of JSON that silence."""
    return json_directives(snapshot.tree)


def directives_in_text(snapshot: Snapshot) -> list[Directive]:
    """The comments and headings of a text that silence."""
    return text_directives(snapshot.text, snapshot.document.blocks)


def silenced(snapshot: Snapshot, findings: list[Finding], levels: Levels) -> tuple[list[Finding], list[Diag]]:
    """The findings that no directive is for, and what is to be said about the directives themselves."""
    directives = directives_of(snapshot)
    if not directives:
        return findings, []
    used: set[tuple[int, int]] = set()
    refused: dict[tuple[int, int], Finding] = {}
    wanted = [[_wanted(named.name) for named in directive.names] for directive in directives]
    places = {directive.span for directive in directives}
    kept: list[Finding] = []
    for finding in findings:
        if finding.code == "MF525" and finding.severity != "error" and finding.span in places:
            continue  # the comment is wanted, and the fix would take it out
        silent = False
        for i, directive in enumerate(directives):
            if not directive.target[0] <= finding.span[0] < max(directive.target[1], directive.target[0] + 1):
                continue
            for j in range(len(directive.names)):
                if wanted[i][j] is not None and finding.code not in cast("frozenset[str]", wanted[i][j]):
                    continue
                if is_binding(finding.code, finding.severity):
                    # Without a name everything is meant that can be.
                    if wanted[i][j] is not None:
                        refused[i, j] = finding
                else:
                    silent = True
                    used.add((i, j))
        if not silent:
            kept.append(finding)
    diagnostics = [
        diag
        for i, directive in enumerate(directives)
        for j in range(len(directive.names))
        if (i, j) not in used and (diag := _about(directive, j, refused.get((i, j)), levels)) is not None
    ]
    diagnostics += [
        _misshapen(directive, directive.misshapen) for directive in directives if directive.misshapen is not None
    ]
    return kept, diagnostics


def _misshapen(directive: Directive, span: tuple[int, int]) -> Diag:
    fix = None
    if directive.names:
        fix = Fix("Write a list", (Edit(span[0], span[0], "["), Edit(span[1], span[1], "]")), "safe")
    return Diag("LN793", span, {}, fix=fix)


def _wanted(name: str) -> frozenset[str] | None:
    """The codes that a name in a directive stands for; None for all."""
    return frozenset(codes_of(name)) if name else None


def _about(directive: Directive, index: int, refused: Finding | None, levels: Levels) -> Diag | None:
    named = directive.names[index]
    codes = codes_of(named.name) if named.name else ()
    if named.name and not codes:
        near = rule_suggestion(named.name)
        fix = Fix(f"Change to '{near}'", (_named_edit(named.span, near, directive),), "unsafe") if near else None
        return Diag("LN791", named.span, {"v": named.name, "hint": hint(near)}, fix=fix)
    if refused is not None:
        args: dict[str, str | int] = {"code": refused.code, "why": "keeps the file from being loaded"}
        return Diag("LN792", named.span, args)
    # What the settings turned off is not missing here.
    if codes and not any(levels.says(code) for code in codes):
        return None
    cut = directive.cut
    fix = None
    if len(directive.names) == 1 and cut[1] > cut[0]:
        fix = Fix("Remove the comment", (Edit(*cut, ""),), "unsafe")
    return Diag("LN790", named.span, {"code": named.name or "any rule"}, fix=fix)


def _named_edit(span: tuple[int, int], name: str, directive: Directive) -> Edit:
    # In a field the name stands in quotes.
    quotes = '"' if directive.cut[0] == directive.cut[1] else ""
    return Edit(*span, f"{quotes}{name}{quotes}")
