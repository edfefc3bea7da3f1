"""The catalogue against the tests and the documentation: every code is produced by a test, explained on a page, and worded.

A code counts as produced when a test of its family names it. The families TC, TM and VC have a table
(``test_tam_vcp_codes.py``) whose rows are read here; the other families are looked up in the tests of their area.
"""

from __future__ import annotations

import json
import re
import string
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.protocols.catalogue import CATALOGUE, message
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.model import Diag
from tamis.protocols.reader import read_text
from tests.conftest import ROOT
from tests.protocols.pair_reading import BUILDERS, faulty
from tests.protocols.tam_vcp_rows import ROWS
from tests.runtime.profiles import ON, with_profile
from tests.sample_tools import make_tool

_CODE = re.compile(r"\b(?:TC|AX|TM|VC|HM|VA|MF|LN|TH|ST|PF|WF)\d{3}\b")
_PREFIXES = {code[:2] for code in CATALOGUE}


PRODUCED_HERE = {"MF500", "MF529", "MF530", "VA402"}


def _named_in_tests() -> dict[str, set[str]]:
    """The codes that tests name, each with the files."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix in (".py", ".txt", ".jsonc") and path.name != Path(__file__).name:
            for code in _CODE.findall(path.read_text("utf-8")):
                found.setdefault(code, set()).add(path.name)
    return found


def _placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_code_is_produced_by_a_test() -> None:
    produced = set(_named_in_tests()) | {row.code for row in ROWS} | PRODUCED_HERE
    assert sorted(set(CATALOGUE) - produced) == []


def test_every_code_that_a_test_names_is_in_the_catalogue() -> None:
    unknown = {code: files for code, files in _named_in_tests().items() if code not in CATALOGUE}
    assert unknown == {}


def test_codes_and_slugs_are_unique_and_well_formed() -> None:
    slugs = [entry.slug for entry in CATALOGUE.values()]
    doubled = {slug for slug in slugs if slugs.count(slug) > 1}
    # A family may use the word of another for the same thing in its own notation; within one family it has one meaning.
    for slug in doubled:
        families = [code[:2] for code, entry in CATALOGUE.items() if entry.slug == slug]
        assert len(families) == len(set(families)), slug
    assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", slug) for slug in slugs)
    assert all(re.fullmatch(r"[A-Z]{2}\d{3}", code) and code == entry.code for code, entry in CATALOGUE.items())


def test_every_code_has_its_place_on_the_page_of_diagnostics() -> None:
    page = (ROOT / "docs" / "diagnostics.md").read_text("utf-8")
    missing = [
        code
        for code, entry in CATALOGUE.items()
        if f'<a id="{code.lower()}"></a>\n\n### {code} {entry.slug}\n\n' not in page
    ]
    assert missing == []


def test_every_sentence_can_be_formatted_and_shows_what_it_is_given() -> None:
    for code, entry in CATALOGUE.items():
        names = _placeholders(entry.message)
        said = message(Diag(code, (0, 0), {name: f"<{name}>" for name in names}))
        assert all(f"<{name}>" in said for name in names)
        assert "\n" not in said


@pytest.mark.parametrize("family", sorted(_PREFIXES & {"TC", "TM", "VC"}))
def test_the_table_gives_every_argument_of_its_sentences(family: str) -> None:
    for row in ROWS:
        if row.code.startswith(family):
            for diag in read_text(row.text).diagnostics:
                assert _placeholders(CATALOGUE[diag.code].message) <= set(diag.args), diag


@pytest.mark.parametrize("protocol", BUILDERS)
def test_findings_of_faulty_blocks_give_every_argument_of_their_sentences(protocol: str) -> None:
    for seed in range(200):
        found = faulty(protocol, seed, 2)
        for diag in read_text(found[0].text()).diagnostics if found is not None else []:
            assert _placeholders(CATALOGUE[diag.code].message) <= set(diag.args), diag


@pytest.mark.parametrize("name", ["action_tag", "action_inputs", "tam", "vcp", "negatives"])
def test_findings_of_the_corpus_give_every_argument_of_their_sentences(corpora: Path, name: str) -> None:
    for line in (corpora / "calls" / f"{name}.jsonl").read_text("utf-8").splitlines():
        for diag in read_text(json.loads(line)["text"]).diagnostics:
            assert _placeholders(CATALOGUE[diag.code].message) <= set(diag.args), diag


def test_the_limits_of_json_files_are_said() -> None:
    assert [diag.code for diag in parse_json("[" + "~," * 5_000 + "]").diagnostics][-1] == "MF529"
    assert "MF530" in [diag.code for diag in parse_json("[" * 5_000).diagnostics]


def test_a_file_that_cannot_be_read_is_a_finding_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.tool.json").write_bytes(b"\xff\xfe{}\x00")
    command = [sys.executable, "-m", "tamis.server.cli.main", "check", "--format", "json", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    codes = [found["code"] for file in json.loads(done.stdout)["files"] for found in file["diagnostics"]]
    assert codes == ["MF500"]


def test_a_tool_outside_the_inventory_is_a_finding_of_its_own(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:echo")
    result = with_profile(tmp_path, {"tool_ids_inventory": ["kb:Query"], "toolCallConfig": ON})
    assert result.error and result.error.details and result.error.details.errors
    assert [problem.code for problem in result.error.details.errors] == ["VA402"]
