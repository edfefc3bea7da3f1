"""What is kept of an earlier version of a manifest changes no finding: after any edits they are those of a fresh reading."""

from __future__ import annotations

import random

import pytest

from tamis.protocols.jsontext.edit import edited
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.snapshot import Snapshot
from tests.lsp.markers import FOLDER, read_case

PIECES = (
    *('"', "{", "}", "[", "]", ",", ":", "x", "1", "\n", " "),
    *(
        '"minLength": 1, ',
        '"type": "number", ',
        '"$ref": "#/$defs/a", ',
        '"p": { "type": "object" }, ',
        "// tamis-ignore LN704\n",
    ),
    *(
        '"description": "", ',
        '"enum": [1, 1], ',
        '"$defs": { "a": { "type": "array" } }, ',
        '"x-tamis-ignore": ["LN721"], ',
    ),
)
WIDE = (
    '{\n  "toolId": "a:b",\n  "parameters": {\n    "type": "object",\n    "properties": {\n'
    + ",\n".join(f'      "part{i}": {{ "type": "{("string", "number")[i % 2]}", "minLength": {i} }}' for i in range(90))
    + '\n    },\n    "required": ["part1"],\n    "$defs": { "a": { "type": "object" } }\n  }\n}\n'
)


def texts() -> list[str]:
    names = (
        "not_flat",
        "unused_definitions",
        "ignore_in_manifests",
        "keyword_for_other_type",
        "old_spellings",
        "parameter_names",
    )
    cases = [read_case(FOLDER / "lints" / f"{name}.txt") for name in names]
    return [WIDE, WIDE, *(text for case in cases for text in case.documents.values())]


def tree_of(tree: JsonTree):
    return lambda strict: tree


@pytest.mark.parametrize("seed", range(12))
def test_findings_after_edits_are_those_of_a_fresh_start(seed: int, is_long: bool) -> None:
    rng = random.Random(seed)
    for _ in range(20 if is_long else 2):
        text = rng.choice(texts())
        tree = parse_json(text)
        memory = None
        for _ in range(25):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice((0, 0, 0, 1, 2, 9, 40)))
            put = rng.choice(PIECES) if rng.random() < 0.8 else text[end : end + rng.randrange(30)]
            text = text[:start] + put + text[end:]
            tree = edited(tree, start, end, put)
            kept = Snapshot("/w/a.tool.json", "manifest", text, None, memory=memory, tree=tree_of(tree))
            assert diagnose(kept) == diagnose(Snapshot("/w/a.tool.json", "manifest", text, None)), (seed, text)
            memory = kept.known
