"""Levels and silencing: what the settings and the comments of a document leave of its findings.

What keeps a file from being loaded is always said. Nothing here changes what runs. Must not know how findings are made.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import msgspec

from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.levels import NO_LEVELS, Levels, codes_of, is_binding, read_levels, rule_suggestion
from tamis.protocols.model import Diag, Edit, Fix
from tamis.protocols.suggest import hint
from tamis.server.analysis.answers import Finding
from tamis.server.analysis.kinds import function_of
from tamis.server.analysis.lints.directives import Directive, json_directives, text_directives
from tamis.server.analysis.snapshot import Snapshot


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
    said = [
        diag
        for i, directive in enumerate(directives)
        for j in range(len(directive.names))
        if (i, j) not in used and (diag := _about(directive, j, refused.get((i, j)), levels)) is not None
    ]
    said += [_misshapen(directive, directive.misshapen) for directive in directives if directive.misshapen is not None]
    return kept, said


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
