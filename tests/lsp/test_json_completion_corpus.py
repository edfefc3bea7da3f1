"""The completion cases of VS Code's JSON service (``corpora/lsp-json``), asked of ours with the schema of each case.

A case holds when every label that is expected is there with the text that it leaves, and none that must not be there is. Two
rules hold for the comparison. A tab stop that lists its choices (``${1|true,false|}``) counts as the tab stop that it is
(``$1``): it spares the client a second request, and works in clients without VS Code's ``triggerSuggest``. And where VS Code
gives the description alone, ours may go on with the bounds and values of the schema.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.jsontext.parse import parse_json
from tamis.server.analysis.answers import Proposal
from tamis.server.analysis.completion.proposals import documentation_of
from tamis.server.analysis.completion.schema_place import schemas_at
from tamis.server.analysis.completion.schema_proposals import JsonAsk, propose_json

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "lsp-json" / "vscode_json_completion.jsonl"
CASES: list[dict[str, Any]] = (
    [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()] if CORPUS.is_file() else []
)
KNOWN_SCHEMAS = (
    ("http://myschemastore/test1", ""),
    ("https://json-schema.org/draft-04/schema#", ""),
    ("https://json-schema.org/draft-07/schema#", ""),
)
"""What the cases about ``$schema`` take as known."""


def proposals(case: dict[str, Any]) -> list[Proposal]:
    tree = parse_json(case["value"])
    schema = case["schema"]
    ask = JsonAsk(
        tree, lambda path: None if schema is None else schemas_at(schema, tree.root, path), schema_ids=KNOWN_SCHEMAS
    )
    return propose_json(ask, case["offset"])


def _plain_stops(text: str) -> str:
    return re.sub(r"\$\{(\d+)\|[^}]*\|\}", r"$\1", text)


def faults(case: dict[str, Any]) -> list[str]:
    """What of a case does not hold."""
    found = proposals(case)
    by_label: dict[str, list[Proposal]] = {}
    for item in found:
        by_label.setdefault(item.label, []).append(item)
    expected = case["expected"]
    said: list[str] = []
    if "count" in expected and len(found) != expected["count"]:
        said.append(f"{len(found)} proposals instead of {expected['count']}: {[item.label for item in found]}")
    for wanted in expected.get("items", ()):
        items = by_label.get(wanted["label"], [])
        if wanted.get("notAvailable"):
            said += [f"{wanted['label']} must not be proposed"] * bool(items)
        elif len(items) != 1:
            said.append(f"{wanted['label']} is proposed {len(items)} times, of {[item.label for item in found]}")
        else:
            said += list(_differences(case["value"], items[0], wanted))
    return said


def _differences(text: str, item: Proposal, wanted: dict[str, Any]) -> list[str]:
    said: list[str] = []
    start, end = item.span
    result = text[:start] + _plain_stops(item.snippet or item.text) + text[end:]
    if "resultText" in wanted and result != wanted["resultText"]:
        said.append(f"{item.label}: {result!r} instead of {wanted['resultText']!r}")
    about = wanted.get("documentation", "")
    about = about["value"] if isinstance(about, dict) else about
    if not documentation_of(item).startswith(about):
        said.append(f"{item.label}: said {documentation_of(item)!r} instead of {about!r}")
    for name, ours in (("sortText", item.sort), ("detail", item.detail)):
        if name in wanted and ours != wanted[name]:
            said.append(f"{item.label}: {name} {ours!r} instead of {wanted[name]!r}")
    if wanted.get("labelDetails", {}).get("description") == "Default value" and item.detail != "default":
        said.append(f"{item.label}: not said to be the default")
    return said


@pytest.mark.skipif(not CASES, reason="the folder corpora/lsp-json is absent")
@pytest.mark.parametrize("case", CASES or [{"id": "none"}], ids=lambda case: case["id"])
def test_case_of_vscode(case: dict[str, Any]) -> None:
    assert not (said := faults(case)), "\n".join(said)
