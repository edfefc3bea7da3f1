"""Every marker file, through the analyses and over the wire: both must say what the file says.

``TAMIS_UPDATE_MARKERS=1`` writes what the analyses say into the files; read the difference before committing it.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.analysis.actions import quick_fixes
from tamis.server.analysis.completion import complete
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.hover import explain
from tamis.server.analysis.snapshot import FolderFacts, Settings, Snapshot, kind_of
from tamis.server.runtime.config import load_settings
from tamis.server.runtime.loader import FoundFile, Scan
from tamis.server.runtime.registry import build_registry
from tests.lsp.lsp_client import Client
from tests.lsp.markers import (
    FOLDER,
    Case,
    Shown,
    read_case,
    render_completion,
    render_diagnostics,
    render_fixes,
    render_hover,
    write_expected,
)

CASES = sorted(FOLDER.glob("*.txt"))
UPDATE = bool(os.environ.get("TAMIS_UPDATE_MARKERS"))
LANGUAGES = {
    ".json": "json",
    ".md": "markdown",
    ".tam": "tam",
    ".vcp": "vcp",
    ".txt": "plaintext",
    ".action": "toolaction",
}


def write_documents(case: Case, root: Path) -> None:
    for name, text in case.documents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def opened(case: Case) -> list[tuple[str, str]]:
    """The documents that an editor would open with the server; the others (scripts) only stand there."""
    return [(name, text) for name, text in case.documents.items() if Path(name).suffix in LANGUAGES]


def through_analysis(case: Case, root: Path) -> list[str]:
    write_documents(case, root)
    found = tuple(
        FoundFile(str(root / name), text)
        for name, text in sorted(case.documents.items())
        if name.endswith(".tool.json")
    )
    loaded = load_settings(root, case.options.get("settings"))
    registry = build_registry(Scan(found, ()), loaded.settings)
    settings = Settings(
        schema_diagnostics=case.options.get("schemaDiagnostics") != "off", strict_json=loaded.settings.strict_json
    )
    neighbours = {str(root / name): text for name, text in case.documents.items() if name.endswith(".tool.json")}
    lines: list[str] = []
    for name, text in opened(case):
        path = str(root / name)
        folder = posixpath.dirname(name)
        beside = {posixpath.relpath(other, folder or ".") for other in case.documents}
        facts = FolderFacts(frozenset(other for other in beside if not other.startswith("..")))
        kind = kind_of(path, LANGUAGES[Path(name).suffix])
        snapshot = Snapshot(path, kind, text, registry, folder=facts, settings=settings, neighbours=neighbours)
        shown = [
            Shown(
                finding.span,
                finding.severity,
                finding.code,
                finding.message,
                finding.tags,
                tuple(
                    f"{os.path.relpath(related.path, root) if related.path else name}:{_line(neighbours.get(related.path, text), related.span[0])}: {related.message}"
                    for related in finding.related
                ),
            )
            for finding in diagnose(snapshot)
        ]
        lines += render_diagnostics(name, text, shown)
        for mark in case.marks[name]:
            if mark.verb == "complete":
                items = sorted(complete(snapshot, mark.offset).items, key=lambda item: item.sort)
                rows = [(item.label, item.detail, item.span, item.snippet or item.text) for item in items]
                lines += render_completion(name, text, mark.offset, rows)
            elif mark.verb == "hover":
                hover = explain(snapshot, mark.offset)
                lines += render_hover(name, text, mark.offset, (hover.span, hover.markdown) if hover else None)
            else:
                fixes = [
                    (action.fix.title, [(edit.start, edit.end, edit.new_text) for edit in action.fix.edits])
                    for action in quick_fixes(snapshot, (mark.offset, mark.offset))
                ]
                lines += render_fixes(name, text, mark.offset, fixes)
    return lines


def _line(text: str, offset: int) -> int:
    return LineIndex(text).position(offset)[0] + 1


def through_wire(case: Case, root: Path, encoding: PositionEncoding, pull: bool) -> list[str]:
    write_documents(case, root)
    capabilities: dict[str, Any] = {
        "general": {"positionEncodings": [encoding]},
        "textDocument": {"completion": {"completionItem": {"snippetSupport": True}}},
    }
    if pull:
        capabilities["textDocument"]["diagnostic"] = {}
    lines: list[str] = []
    with Client(cwd=root) as client:
        result = client.start(root, capabilities, case.options)
        assert result["capabilities"]["positionEncoding"] == encoding
        for name, text in opened(case):
            uri = (root / name).as_uri()
            language = LANGUAGES[Path(name).suffix]
            index = LineIndex(text)

            def span(found: dict[str, Any], index: LineIndex = index) -> tuple[int, int]:
                start, end = found["start"], found["end"]
                return (
                    index.offset(start["line"], start["character"], encoding),
                    index.offset(end["line"], end["character"], encoding),
                )

            client.open(uri, text, language)
            identity = {"uri": uri}
            if pull:
                report = client.call("textDocument/diagnostic", {"textDocument": identity})
                items = report["items"]
                again = client.call(
                    "textDocument/diagnostic", {"textDocument": identity, "previousResultId": report["resultId"]}
                )
                assert again == {"kind": "unchanged", "resultId": report["resultId"]}
            else:
                items = client.published(uri)
            words = {1: "error", 2: "warning", 3: "information", 4: "hint"}
            tags = {1: "unnecessary", 2: "deprecated"}
            shown = [
                Shown(
                    span(item["range"]),
                    words[item["severity"]],
                    item["code"],
                    item["message"],
                    tuple(tags[tag] for tag in item.get("tags", ())),
                    tuple(
                        f"{_relative(related['location']['uri'], root)}:{related['location']['range']['start']['line'] + 1}: {related['message']}"
                        for related in item.get("relatedInformation", ())
                    ),
                )
                for item in items
            ]
            assert all(item["source"] == "tamis" for item in items)
            lines += render_diagnostics(name, text, shown)
            for mark in case.marks[name]:
                line, character = index.position(mark.offset, encoding)
                where = {"textDocument": identity, "position": {"line": line, "character": character}}
                if mark.verb == "complete":
                    found = client.call("textDocument/completion", where)["items"]
                    rows = [
                        (
                            item["label"],
                            item.get("detail", ""),
                            span(item["textEdit"]["range"]),
                            item["textEdit"]["newText"],
                        )
                        for item in sorted(found, key=lambda item: item["sortText"])
                    ]
                    lines += render_completion(name, text, mark.offset, rows)
                elif mark.verb == "hover":
                    hover = client.call("textDocument/hover", where)
                    answer = (span(hover["range"]), hover["contents"]["value"]) if hover else None
                    lines += render_hover(name, text, mark.offset, answer)
                else:
                    point = {"start": where["position"], "end": where["position"]}
                    actions = client.call(
                        "textDocument/codeAction",
                        {"textDocument": identity, "range": point, "context": {"diagnostics": []}},
                    )
                    fixes = [
                        (
                            action["title"],
                            [(*span(edit["range"]), edit["newText"]) for edit in action["edit"]["changes"][uri]],
                        )
                        for action in actions
                    ]
                    lines += render_fixes(name, text, mark.offset, fixes)
        assert client.stop() == 0
    return lines


def _relative(uri: str, root: Path) -> str:
    return uri.removeprefix(root.as_uri() + "/")


def test_there_are_marker_files() -> None:
    assert CASES


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_analysis_says_what_the_file_says(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    said = "\n".join(through_analysis(case, tmp_path)) + "\n"
    if UPDATE:
        write_expected(case, said)
        case = read_case(path)
    assert said == case.expected


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_wire_says_what_the_file_says(path: Path, tmp_path: Path) -> None:
    # Push and pull and the three encodings in turn: each file meets one of each, the set all of them.
    turn = CASES.index(path)
    encodings: tuple[PositionEncoding, ...] = ("utf-16", "utf-8", "utf-32")
    case = read_case(path)
    said = through_wire(case, tmp_path, encodings[turn % 3], pull=turn % 2 == 1)
    assert "\n".join(said) + "\n" == case.expected
