"""Every code of TAM and VCP, and the common ones: text → severity, place, sentence, and the fix with its applicability.

The table follows the catalogue in the project's specification. Where a row is graver or its fix more careful than there, the
comment beside the rule in ``protocols/pairs`` or ``protocols/tam`` says why (ruling 1, ruling 24, F4).
"""

from __future__ import annotations

import pytest

from tamis.protocols.catalogue import CATALOGUE, message, severity
from tamis.protocols.reader import read_text
from tamis.protocols.repair import apply_edits
from tests.protocols.tam_vcp_rows import ROWS, Row

ELSEWHERE = {
    "TC020": "nesting is ACTION's: tests/protocols/test_action_repairs.py",
    "TC024": "an editor's document: tests/lsp/test_robustness.py",
    "TC025": "an editor's document: tests/lsp/test_robustness.py",
    "VC328": "it makes hints of all others: tests/protocols/test_values_kept.py",
    "TM248": "it takes a known tool: tests/protocols/test_values_kept.py",
    "TC026": "a plug-in that fails: tests/protocols/test_plugins.py",
    "TC019": "call JSON in a fence: tests/protocols/test_call_json.py",
    "TC029": "call JSON with a fault: tests/protocols/test_call_json.py",
    "TC028": "a text of very many blocks: tests/protocols/test_reader.py",
    "TC027": "a form of another protocol: tests/protocols/test_dialects.py",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code}-{row.severity}-{row.span[:12]}")
def test_a_code_is_found_with_its_severity_place_sentence_and_fix(row: Row) -> None:
    found = next(diag for diag in read_text(row.text).diagnostics if diag.code == row.code)
    assert severity(found) == row.severity
    assert row.text[slice(*found.span)].startswith(row.span) and bool(row.span) == (found.span[1] > found.span[0])
    assert message(found) == row.message
    assert (found.fix.applicability if found.fix else "") == row.fix
    assert (apply_edits(row.text, found.fix.edits) if found.fix else "") == row.fixed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code}-{row.severity}-{row.span[:12]}")
def test_only_errors_and_what_was_set_aside_keep_a_call_from_running(row: Row) -> None:
    document = read_text(row.text)
    if any(severity(diag) == "error" for diag in document.diagnostics):
        assert not any(call.executable for call in document.calls)


def test_every_code_of_tam_and_vcp_and_every_common_one_has_a_row() -> None:
    wanted = {
        code for code in CATALOGUE if code.startswith(("TM2", "VC3")) or (code.startswith("TC") and code < "TC05")
    }
    wanted |= {code for code in CATALOGUE if code.startswith("TC06")}
    assert wanted - {row.code for row in ROWS} - set(ELSEWHERE) == set()
