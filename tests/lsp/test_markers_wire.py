"""One marker file of each verb and a tenth of the others over the wire, all with ``--long``: a server says what the analyses say.

Every file has real messages in real frames, and one in sixteen a process of its own. Push and pull and the three encodings come in turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tamis.protocols.positions import PositionEncoding
from tests.lsp.lsp_client import Client
from tests.lsp.markers import (
    CASES,
    Case,
    Shown,
    Wire,
    case_id,
    language,
    opened,
    read_case,
    render_diagnostics,
    write_documents,
)
from tests.lsp.verbs import ASKS, MARKS, capabilities

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-16", "utf-8", "utf-32")


class Way(NamedTuple):
    """How a file is asked for."""

    encoding: PositionEncoding
    pull: bool
    inside: bool


def way_of(path: Path) -> Way:
    turn = sum(path.stem.encode())
    return Way(ENCODINGS[turn % 3], pull=turn % 2 == 1, inside=turn % 16 != 0)


def through_wire(case: Case, root: Path, way: Way) -> list[str]:
    encoding, pull, inside = way
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


def one_of_each_verb() -> set[Path]:
    """Returns the shortest files that hold every mark and every question at least once."""
    found: set[Path] = set()
    seen: set[str] = set()
    for path in sorted(CASES, key=lambda path: (path.stat().st_size, path)):
        case = read_case(path)
        verbs = {mark.verb for marks in case.marks.values() for mark in marks} | set(case.options.get("ask", ()))
        if not verbs <= seen:
            found.add(path)
            seen |= verbs
    return found


ALWAYS = one_of_each_verb()


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path in ALWAYS else pytest.mark.share(10), id=case_id(path)) for path in CASES],
)
def test_wire_says_what_the_file_says(path: Path, tmp_path: Path) -> None:
    case = read_case(path)
    assert "\n".join(through_wire(case, tmp_path, way_of(path))) + "\n" == case.expected


def test_what_runs_meets_every_way(request: pytest.FixtureRequest) -> None:
    """Push and pull, each encoding, a thread and processes."""
    chosen = [
        item.callspec.params["path"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_wire_says_what_the_file_says"
    ]
    if len(chosen) < len(CASES) // 20:
        pytest.skip("a few files were asked for")
    ways = [way_of(path) for path in chosen]
    assert {(way.encoding, way.pull) for way in ways} == {(one, pull) for one in ENCODINGS for pull in (True, False)}
    assert sum(not way.inside for way in ways) >= 2
