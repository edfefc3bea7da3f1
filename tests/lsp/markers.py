"""Marker files: documents with marks, and what is expected at them (``tests/markers/README.md``).

Reads and writes the files, and renders answers the same way whether they came from the analyses or over the wire.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.analysis.snapshot import Snapshot

if TYPE_CHECKING:
    from tests.lsp.lsp_client import Client

FOLDER = Path(__file__).resolve().parents[1] / "markers"
FIXTURES = FOLDER / "fixtures"
CASES = sorted(FOLDER.rglob("*.txt"))
_SECTION = re.compile(r"(?m)^-- (.+?) --\n")
_MARK = re.compile(r"⟦([a-z]+)(?::([^⟧]*))?⟧")
MAX_SHOWN = 12


class Mark(msgspec.Struct, frozen=True):
    """A place where something is asked: verb, code-point offset, and what stands behind a colon in the mark."""

    verb: str
    offset: int
    argument: str = ""


class Case(msgspec.Struct, frozen=True):
    """One marker file. Documents are without their marks."""

    path: Path
    about: str
    documents: dict[str, str]
    marks: dict[str, list[Mark]]
    options: dict[str, Any]
    expected: str


def case_id(path: Path) -> str:
    """The name of a marker file in the ids of tests."""
    return path.relative_to(FOLDER).with_suffix("").as_posix()


def read_case(path: Path) -> Case:
    """Reads a marker file."""
    text = path.read_text("utf-8")
    documents: dict[str, str] = {}
    marks: dict[str, list[Mark]] = {}
    options: dict[str, Any] = {}
    expected = ""
    for name, body in sections(text):
        if name == "expect":
            expected = body
        elif name == "options":
            options = msgspec.json.decode(body)
        elif name.startswith("use "):
            assert not body, f"{path.name}: nothing stands below '-- {name} --'"
            for fixture in name.removeprefix("use ").split(", "):
                for shared, document in read_fixture(fixture):
                    assert shared not in documents, f"{path.name}: {shared} is there twice"
                    documents[shared], marks[shared] = document, []
        else:
            documents[name], marks[name] = _without_marks(body)
    if "lints" not in path.parts:
        # Advice on every manifest would hide what a file is about; the folder ``lints`` is for it.
        options.setdefault("settings", {}).setdefault("lint", {"LN": "off"})
    return Case(path, _SECTION.split(text, 1)[0].strip(), documents, marks, options, expected)


@functools.cache
def read_fixture(name: str) -> tuple[tuple[str, str], ...]:
    """The documents, with their paths, that ``-- use NAME --`` stands for."""
    return tuple(sections((FIXTURES / f"{name}.documents").read_text("utf-8")))


def sections(text: str) -> list[tuple[str, str]]:
    """A file's sections: what stands between the dashes, and the lines below it."""
    parts = _SECTION.split(text)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _without_marks(body: str) -> tuple[str, list[Mark]]:
    marks: list[Mark] = []
    text = ""
    at = 0
    for match in _MARK.finditer(body):
        text += body[at : match.start()]
        marks.append(Mark(match[1], len(text), match[2] or ""))
        at = match.end()
    return text + body[at:], marks


LANGUAGES = {
    ".json": "json",
    ".jsonc": "jsonc",
    ".toml": "toml",
    ".md": "markdown",
    ".tam": "tam",
    ".vcp": "vcp",
    ".txt": "plaintext",
    ".action": "toolaction",
}
SCRIPTS = {".py": "python", ".js": "javascript", ".ts": "typescript"}


def language(name: str) -> str:
    """The language id that an editor gives a document."""
    suffix = Path(name).suffix
    return LANGUAGES.get(suffix) or SCRIPTS[suffix]


def opened(case: Case) -> list[tuple[str, str]]:
    """The documents that an editor would open with the server; scripts only stand there, unless something is asked in them."""
    return [
        (name, text)
        for name, text in case.documents.items()
        if Path(name).suffix in LANGUAGES or (case.marks[name] and Path(name).suffix in SCRIPTS)
    ]


def write_documents(case: Case, root: Path) -> None:
    """Puts a case's documents on disk."""
    for name, text in case.documents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


class Core:
    """A case as the analyses see it: documents, and a snapshot of each."""

    def __init__(self, case: Case, root: Path, snapshot: Callable[[str], Snapshot]) -> None:
        self.case = case
        self.root = root
        self.snapshot = functools.cache(snapshot)

    def text(self, name: str) -> str:
        """A document's text."""
        return self.case.documents[name]

    def path(self, name: str) -> str:
        """A document's absolute path."""
        return str(self.root / name)

    def name(self, path: str) -> str:
        """The document of an absolute path."""
        return os.path.relpath(path, self.root)


class Wire:
    """A case as a client sees it."""

    def __init__(self, case: Case, root: Path, client: Client, encoding: PositionEncoding) -> None:
        self.case = case
        self.root = root
        self.client = client
        self.encoding: PositionEncoding = encoding
        self.capabilities: dict[str, Any] = {}
        """What the server announced."""
        self._lines = {name: LineIndex(text) for name, text in case.documents.items()}

    def text(self, name: str) -> str:
        """A document's text."""
        return self.case.documents[name]

    def uri(self, name: str) -> str:
        """A document's URI."""
        return (self.root / name).as_uri()

    def name(self, uri: str) -> str:
        """The document of a URI."""
        return os.path.relpath(unquote(urlsplit(uri).path), self.root)

    def span(self, name: str, found: dict[str, Any]) -> tuple[int, int]:
        """A range of the wire as code-point offsets."""
        start, end = found["start"], found["end"]
        index = self._lines[name]
        return (
            index.offset(start["line"], start["character"], self.encoding),
            index.offset(end["line"], end["character"], self.encoding),
        )

    def position(self, name: str, offset: int) -> dict[str, int]:
        """An offset as a position of the wire."""
        line, character = self._lines[name].position(offset, self.encoding)
        return {"line": line, "character": character}

    def at(self, name: str, mark: Mark) -> dict[str, Any]:
        """``TextDocumentPositionParams`` of a mark."""
        return {"textDocument": {"uri": self.uri(name)}, "position": self.position(name, mark.offset)}

    def ask(self, method: str, params: object) -> Any:
        """A request's result; fails on an error."""
        return self.client.call(method, params)


def write_expected(case: Case, expected: str) -> None:
    """Replaces a file's expectations."""
    text = case.path.read_text("utf-8")
    head, found, _ = text.partition("-- expect --\n")
    assert found, f"{case.path.name} has no section 'expect'"
    case.path.write_text(head + found + expected, "utf-8")


# Rendering


class Shown(msgspec.Struct, frozen=True):
    """A diagnostic as it is rendered."""

    span: tuple[int, int]
    severity: str
    code: str
    message: str
    tags: tuple[str, ...] = ()
    related: tuple[str, ...] = ()


def place(text: str, span: tuple[int, int]) -> str:
    """A span as one-based line:column-line:column with the text that it covers."""
    lines = LineIndex(text)
    (line, column), (end_line, end_column) = (lines.position(offset) for offset in span)
    covered = text[span[0] : span[1]].replace("\n", "⏎")
    if len(covered) > 40:
        covered = covered[:19] + "…" + covered[-20:]
    end = f"{end_column + 1}" if end_line == line else f"{end_line + 1}:{end_column + 1}"
    return f"{line + 1}:{column + 1}-{end} ⟨{covered}⟩"


def render_diagnostics(name: str, text: str, items: list[Shown]) -> list[str]:
    """A document's diagnostics."""
    lines = [f"diagnostics {name}"]
    for item in sorted(items, key=lambda item: (item.span, item.code)):
        tags = "".join(f" ({tag})" for tag in item.tags)
        lines.append(f"  {place(text, item.span)} {item.severity} {item.code}{tags}: {item.message}")
        lines += [f"    see {related}" for related in item.related]
    return lines


def render_completion(
    name: str, text: str, offset: int, items: list[tuple[str, str, tuple[int, int], str]]
) -> list[str]:
    """Proposals in their order: (label, detail, replaced span, inserted text)."""
    line, column = LineIndex(text).position(offset)
    lines = [f"complete {name}:{line + 1}:{column + 1}"]
    for label, detail, span, inserted in items[:MAX_SHOWN]:
        about = f" ({detail})" if detail else ""
        lines.append(f"  {label}{about}: ⟨{text[span[0] : span[1]]}⟩ → ⟨{inserted.replace(chr(10), '⏎')}⟩")
    if len(items) > MAX_SHOWN:
        lines.append(f"  … {len(items)} in all")
    return lines


def render_hover(name: str, text: str, offset: int, found: tuple[tuple[int, int], str] | None) -> list[str]:
    """What a hover says."""
    line, column = LineIndex(text).position(offset)
    lines = [f"hover {name}:{line + 1}:{column + 1}"]
    if found is not None:
        lines.append(f"  {place(text, found[0])}")
        lines += [f"  | {said}".rstrip() for said in found[1].splitlines()]
    return lines


def render_fixes(name: str, text: str, offset: int, fixes: list[tuple[str, list[tuple[int, int, str]]]]) -> list[str]:
    """Quick fixes with the lines that they leave."""
    line, column = LineIndex(text).position(offset)
    lines = [f"fix {name}:{line + 1}:{column + 1}"]
    for title, edits in sorted(fixes):
        lines.append(f"  {title}")
        lines += render_changes(text, edits)
    return lines


def render_changes(text: str, edits: list[tuple[int, int, str]]) -> list[str]:
    """The lines that edits take away and put there."""
    fixed = text
    for start, end, new in sorted(edits, reverse=True):
        fixed = fixed[:start] + new + fixed[end:]
    before, after = text.split("\n"), fixed.split("\n")
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return [f"  - {old}" for old in before] + [f"  + {new}" for new in after]
