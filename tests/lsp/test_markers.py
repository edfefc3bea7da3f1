"""Every marker file, through the analyses: they must say what the file says. ``test_markers_wire.py`` asks a server the same.

``TAMIS_UPDATE_MARKERS=1`` writes what the analyses say into the files; read the difference before committing it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

from tamis.protocols.positions import LineIndex
from tamis.server.analysis.diagnostics import diagnose
from tests.lsp.marker_core import core_of
from tests.lsp.markers import (
    CASES,
    FIXTURES,
    Case,
    Shown,
    case_id,
    opened,
    read_case,
    render_diagnostics,
    sections,
    write_expected,
)
from tests.lsp.verbs import ASKS, MARKS

UPDATE = bool(os.environ.get("TAMIS_UPDATE_MARKERS"))


def through_core(case: Case, root: Path) -> list[str]:
    core = core_of(case, root)
    lines: list[str] = []
    for name, text in opened(case):
        shown = [
            Shown(
                finding.span,
                finding.severity,
                finding.code,
                finding.message,
                finding.tags,
                tuple(
                    f"{core.name(related.path) if related.path else name}:"
                    f"{related.line + 1 if related.line is not None else _line(case.documents.get(core.name(related.path) if related.path else name, ''), related.span[0])}: {related.message}"
                    for related in finding.related
                ),
            )
            for finding in diagnose(core.snapshot(name))
        ]
        lines += render_diagnostics(name, text, shown)
        for ask in case.options.get("ask", ()):
            lines += ASKS[ask].through_core(core, name, None)
        for mark in case.marks[name]:
            lines += MARKS[mark.verb].through_core(core, name, mark)
    return lines


def _line(text: str, offset: int) -> int:
    return LineIndex(text).position(offset)[0] + 1


def test_there_are_marker_files() -> None:
    assert CASES


def test_what_several_files_repeat_is_a_fixture_and_every_fixture_is_used() -> None:
    """A reader of a marker file sees what it is about: a document of three lines or more stands in two files at most."""
    files: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    used: set[str] = set()
    for path in CASES:
        for name, body in sections(path.read_text("utf-8")):
            if name.startswith("use "):
                used.update(name.removeprefix("use ").split(", "))
            elif name not in ("options", "expect") and body.count("\n") >= 3:
                files[name, body].append(case_id(path))
    assert [(name, where) for (name, _), where in files.items() if len(where) > 2] == []
    assert used == {path.stem for path in FIXTURES.glob("*.documents")}


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_analysis_says_what_the_file_says(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    said = "\n".join(through_core(case, tmp_path)) + "\n"
    if UPDATE:
        write_expected(case, said)
        case = read_case(path)
    assert said == case.expected
