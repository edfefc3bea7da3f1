"""What is kept of an earlier version of a manifest changes no finding: after any edits they are those of a fresh reading."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.jsontext.edit import edited
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.jsontext.tree import JsonTree
from tamis.protocols.manifest.worked import Memory
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.index import WorkspaceIndex
from tamis.server.analysis.snapshot import FolderFacts, ScriptFile, Settings, Snapshot
from tamis.server.lsp.documents import difference
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.tools.sources import composed, find
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
    for _ in range(20 if is_long else 1):
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


WHOLE: dict[str, Any] = {
    "toolId": "core:echo",
    "displayName": "Echo",
    "description": "Gives back the 'text' that it is given, so that a call can be tried out in every form.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "nodejs", "entryPoint": "run"},
    "parameters": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What is to be said", "default": "x"},
            "deep": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 3}}},
        },
        "required": ["text"],
    },
    "output": {
        "type": "object",
        "properties": {
            f"group{i}": {"type": "object", "properties": {"in": {"type": "array", "items": {"type": "string"}}}}
            for i in range(3)
        },
    },
    "securityContext": {
        "fileAccess": {"allowRead": ["/"], "allowWrite": ["/srv/data/**"]},
        "networkAccess": {"allowHosts": ["*.example.org", "a.example.org"]},
        "secrets": ["KEY"],
    },
    "examples": [{"description": "One", "input": {"text": "a"}}, {"input": {"text": "a", "deep": {"a": 2}}}],
    "tags": ["a", "b"],
    "aliases": ["echo", "other:twin"],
    "protocolConfig": {"vcpCommand": "echo"},
    "execution": {"timeoutMs": 100, "limits": {"wallMs": 50}},
    "dependencies": {"core:twin": "^2.0.0", "core:missing": "*"},
    "env": {"API_KEY": "sk-0123456789abcdef0123456789abcdef"},
}
SCRIPT = "#!/usr/bin/env python3\nimport urllib.request\ndef run(text, more):\n    open('/var/out', 'w')\n"
SWAPS = (
    *(
        ("core:echo", "core:twin"),
        ("core:echo", "twin"),
        ("Echo", "TODO"),
        ("'text'", "`other`"),
        ('"echo", ', '"core:echo", '),
        ('"other:twin"', '"twin"'),
        ('"1.0.0"', '"1"'),
    ),
    *(
        ("echo.py", "ecko.py"),
        ("nodejs", "python"),
        ('"run"', '"runs"'),
        ("allowWrite", "allowRead"),
        ("2.0.0", "1.0.0"),
    ),
    *(('"KEY"', '"API_KEY"'), ("external-script", "mcp"), ('"minimum"', '"minLength"'), ('"integer"', '"strin"')),
    *(
        ('"group1"', '"$defs"'),
        ('"items"', '"prefixItems"'),
        ('"a": 2', '"a": "x"'),
        ('"parameters"', '"x-parameters"'),
    ),
    *(("every form.", "every 'form'."), ('"in"', '"$id"'), ('"text":', '"text"'), ("/srv/data", "/tmp")),
)


def _stepped(rng: random.Random, text: str, earlier: list[str]) -> tuple[int, int, str]:
    """An edit: a word for another one or back, a piece put in or taken out, or all that leads back to an earlier text."""
    roll = rng.random()
    if roll < 0.5:
        one, other = rng.choice(SWAPS)
        here, there = (one, other) if rng.random() < 0.6 else (other, one)
        at = text.find(here, rng.randrange(len(text) // 2 + 1))
        if at >= 0:
            return at, at + len(here), there
    if roll < 0.75 and earlier:
        return difference(text, rng.choice(earlier[-4:]))
    start = rng.randrange(len(text) + 1)
    end = min(len(text), start + rng.choice((0, 0, 0, 1, 2, 9)))
    return start, end, rng.choice(PIECES) if rng.random() < 0.7 else ""


@pytest.mark.parametrize("seed", range(10))
def test_findings_of_a_whole_manifest_after_edits_are_those_of_a_fresh_start(
    seed: int, tmp_path: Path, is_long: bool
) -> None:
    rng = random.Random(seed)
    twin = {**WHOLE, "toolId": "core:twin", "aliases": ["twin"], "handler": {**WHOLE["handler"], "language": "python"}}
    for name, manifest in (("echo", WHOLE), ("twin", twin)):
        (tmp_path / f"{name}.tool.json").write_text(json.dumps(manifest))
    (tmp_path / "echo.py").write_text(SCRIPT)
    loaded = load_settings(tmp_path, {"lint": {"parameter-negated": "hint"} if seed % 3 == 1 else {}})
    registry = composed(find(tmp_path, loaded.settings), loaded.settings, (), ())
    path = str(tmp_path / "echo.tool.json")

    def snapshot(text: str, memory: Memory | None, tree: JsonTree | None) -> Snapshot:
        return Snapshot(
            path,
            "manifest",
            text,
            registry,
            folder=FolderFacts(frozenset(("echo.py", "echo.tool.json", "twin.tool.json"))),
            settings=Settings(config=loaded.settings),
            neighbours={},
            index=WorkspaceIndex(),
            script=ScriptFile("echo.py", SCRIPT, sha256="sha256-x"),
            memory=memory,
            tree=None if tree is None else tree_of(tree),
        )

    for _ in range(20 if is_long else 1):
        text = json.dumps(WHOLE, indent=rng.choice((None, 2)))
        tree, memory, earlier = parse_json(text), None, [text]
        for _ in range(40):
            start, end, new = _stepped(rng, text, earlier)
            text = text[:start] + new + text[end:]
            earlier.append(text)
            tree = edited(tree, start, end, new)
            kept = snapshot(text, memory, tree)
            assert diagnose(kept) == diagnose(snapshot(text, None, None)), (seed, text)
            memory = kept.known
