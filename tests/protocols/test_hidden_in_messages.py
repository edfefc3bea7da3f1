"""What nobody sees stands escaped in the sentences that quote it, whoever shows them (D74)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import CATALOGUE, message
from tamis.protocols.invisible import visible_line
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.model import Diag

GOOD = {
    "toolId": "t:x",
    "displayName": "X",
    "description": "Does nothing that anybody could want.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "x.py", "language": "python"},
}


@given(st.sampled_from(sorted(CATALOGUE)), st.text(st.sampled_from("a\x1b[31m\x07\x9b\u202e\u200b\u2028\n\ud800")))
def test_no_sentence_holds_what_nobody_sees(code: str, text: str) -> None:
    names = ("v", "p", "k", "name", "reason", "text", "tool", "param", "where", "list", "hint", "what", "subject")
    told = message(Diag(code, (0, 0), dict.fromkeys(names, text)))
    assert visible_line(told) == told


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("toolId", "t:\x1b[31mx"),
        ("securityContext", {"fileAccess": {"allowWrite": ["da\x1b[31mta"]}}),
        ("securityContext", {"networkAccess": {"allowHosts": ["a\x1b[31m.test"]}}),
        ("x\x1b[31my", 1),
    ],
)
def test_a_finding_shows_the_control_character_in_its_quotation(field: str, value: object) -> None:
    reading = read_manifest(json.dumps({**GOOD, field: value}))
    assert any("\\x1b[31m" in message(diag) for diag in reading.diagnostics)
