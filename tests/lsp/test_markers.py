"""Every marker file, through the analyses and over the wire: both must say what the file says.

``TAMIS_UPDATE_MARKERS=1`` writes what the analyses say into the files; read the difference before committing it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.analysis.diagnostics import diagnose
from tests.lsp.lsp_client import Client
from tests.lsp.marker_core import core_of
from tests.lsp.markers import (
    FIXTURES,
    FOLDER,
    Case,
    Shown,
    Wire,
    language,
    opened,
    read_case,
    render_diagnostics,
    sections,
    write_documents,
    write_expected,
)
from tests.lsp.verbs import ASKS, MARKS, capabilities

CASES = sorted(FOLDER.rglob("*.txt"))
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


def through_wire(case: Case, root: Path, encoding: PositionEncoding, pull: bool, *, inside: bool) -> list[str]:
    write_documents(case, root)
    declared = capabilities()
    declared.setdefault("general", {})["positionEncodings"] = [encoding]
    if pull:
        declared["textDocument"]["diagnostic"] = {}
        declared.setdefault("workspace", {})["diagnostics"] = {"refreshSupport": True}
    lines: list[str] = []
    with Client(cwd=root, inside=inside) as client:
        options = {name: value for name, value in case.options.items() if name != "ask"}
        result = client.start(root, declared, options)
        assert result["capabilities"]["positionEncoding"] == encoding
        wire = Wire(case, root, client, encoding)
        wire.capabilities = result["capabilities"]
        for name, text in opened(case):
            uri = wire.uri(name)
            client.open(uri, text, language(name))
            if pull:
                identity = {"uri": uri}
                report = client.call("textDocument/diagnostic", {"textDocument": identity})
                items = report["items"]
                again = client.call(
                    "textDocument/diagnostic", {"textDocument": identity, "previousResultId": report["resultId"]}
                )
                assert again == {"kind": "unchanged", "resultId": report["resultId"]}
            else:
                items = client.published(uri)
            lines += render_diagnostics(name, text, [_shown(wire, name, item) for item in items])
            for ask in case.options.get("ask", ()):
                lines += ASKS[ask].through_wire(wire, name, None)
            for mark in case.marks[name]:
                lines += MARKS[mark.verb].through_wire(wire, name, mark)
        assert client.stop() == 0
    return lines


def _shown(wire: Wire, name: str, item: dict[str, Any]) -> Shown:
    words = {1: "error", 2: "warning", 3: "information", 4: "hint"}
    tags = {1: "unnecessary", 2: "deprecated"}
    assert item["source"] == "tamis"
    return Shown(
        wire.span(name, item["range"]),
        words[item["severity"]],
        item["code"],
        item["message"],
        tuple(tags[tag] for tag in item.get("tags", ())),
        tuple(
            f"{wire.name(related['location']['uri'])}:{related['location']['range']['start']['line'] + 1}: {related['message']}"
            for related in item.get("relatedInformation", ())
        ),
    )


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


def case_id(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_analysis_says_what_the_file_says(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    said = "\n".join(through_core(case, tmp_path)) + "\n"
    if UPDATE:
        write_expected(case, said)
        case = read_case(path)
    assert said == case.expected


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_wire_says_what_the_file_says(path: Path, tmp_path: Path, is_long: bool) -> None:
    # Push and pull and the three encodings in turn: each file meets one of each, the set all of them.
    turn = sum(path.stem.encode())
    # Every file has real messages in real frames; a share of them, and all with --long, a process of their own.
    inside = turn % 16 != 0 and not is_long
    encodings: tuple[PositionEncoding, ...] = ("utf-16", "utf-8", "utf-32")
    case = read_case(path)
    said = through_wire(case, tmp_path, encodings[turn % 3], pull=turn % 2 == 1, inside=inside)
    assert "\n".join(said) + "\n" == case.expected
