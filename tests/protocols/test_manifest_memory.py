"""A manifest that is read again after each keystroke is what it is when it is read from scratch (language server, bars)."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.protocols.jsontext.edit import edited
from tamis.protocols.jsontext.parse import parse_json
from tamis.protocols.manifest.reading import ManifestReading, read_manifest
from tamis.protocols.manifest.worked import Memory
from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.snapshot import Snapshot

_BITS = (
    *(
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "1",
        "x",
        " ",
        "\n",
        "0.5",
        "true",
        "null",
        "//",
        '"a": 1, ',
        '"type": "string", ',
    ),
    *(
        '"default": 1, ',
        '"$ref": "#/$defs/d", ',
        '"$id": "a", ',
        '"required": ["a"], ',
        '"enum": [1], ',
        '"title": "T", ',
    ),
    *(
        '"description": "d", ',
        '"minimum": 2, ',
        '"properties": {"q": {}}, ',
        '"oneOf": [{"type": "null"}], ',
        "integer",
    ),
    *('{"input": {}}, ', '"x-y": 1, ', '"input": {"p1": "s"}, ', "emoji 🚀"),
)


def _text(r: random.Random, *, advised: bool = False) -> str:
    """``advised``: with outer fields of which there is something to say."""
    count = r.choice((3, 40, 80))
    kinds = ("string", "integer", "number", "boolean")
    properties: dict[str, Any] = {
        f"p{i}": {"type": kinds[i % 4], "description": f"Parameter no. {i} of this tool."} for i in range(count)
    }
    for i, name in enumerate(list(properties)[: r.randint(0, 4)]):
        properties[name] |= r.choice(({"default": "x"}, {"enum": ["a", 1]}, {"minimum": 3}, {"$ref": "#/$defs/d"}))
        properties[f"{name}_{i}"] = {
            "type": "object",
            "properties": {"deep": {"type": "array", "items": {"type": "null"}}},
        }
    values: tuple[Any, ...] = ("s", 1, 1.5, True, None, [1], {"deep": [None]})
    examples = [
        {
            "description": f"No. {i}",
            "input": {f"p{r.randrange(count)}": r.choice(values) for _ in range(r.randint(0, 2))},
        }
        for i in range(r.choice((0, 2, 50)))
    ]
    for example in examples[: r.randint(0, 5)]:
        example["expectedOutput"] = r.choice(({"a": 1}, {"a": "x"}, 3))
    whole: dict[str, Any] = {
        "toolId": "core:kept",
        "displayName": "Kept",
        "description": "A tool whose manifest is typed into, keystroke by keystroke.",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "a.py", "language": "python"},
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": [f"p{i}" for i in range(r.randint(0, 2))],
        },
        "output": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "examples": examples,
        "tags": ["one", "two"],
        "execution": {"timeoutMs": 1000},
    }
    if r.random() < 0.3:
        whole["parameters"]["$defs"] = {"d": {"type": "string"}, "e": {"$ref": "#/$defs/d"}}
    if advised:
        whole["toolId"] = r.choice(("core:kept", "tools/kept.json", "core kept"))
        whole["handler"]["language"] = r.choice(("python", "nodejs"))
        whole["aliases"] = r.choice((["kept"], ["core:kept"], []))
        whole["securityContext"] = {"requiredCapabilities": r.choice(([], ["network"]))}
    return json.dumps(whole, indent=r.choice((None, 1)))


def _edit(r: random.Random, text: str) -> tuple[int, int, str]:
    at = r.randrange(len(text) + 1)
    roll = r.random()
    if r.random() < 0.2 and (name := text.find('"p', at)) >= 0:
        # A letter of a parameter's name, which moves nothing to another place.
        return (name + 2, name + 3, "z") if roll < 0.5 else (name + 2, name + 2, "z")
    if roll < 0.5:
        return at, at, r.choice(_BITS)
    if roll < 0.8:
        return at, min(len(text), at + r.choice((1, 1, 2, 9))), ""
    return at, min(len(text), at + r.choice((1, 5))), r.choice(_BITS)


def _same(kept: ManifestReading, fresh: ManifestReading) -> None:
    assert kept.diagnostics == fresh.diagnostics
    assert kept.manifest == fresh.manifest
    if kept.manifest is not None:
        assert repr(kept.manifest.raw) == repr(fresh.tree.root.to_python() if fresh.tree.root else None)


# A quarter of the usual number: each is a session of eight keystrokes.
@settings(max_examples=max(1, settings().max_examples // 4))
@given(st.randoms(use_true_random=False))
def test_a_manifest_read_on_is_the_one_read_from_scratch(r: random.Random) -> None:
    text = _text(r, advised=True)
    tree = parse_json(text)
    memory: Memory | None = None
    undo: tuple[int, int, str] | None = None
    for _ in range(8):
        kept = read_manifest(tree.text, tree=tree, memory=memory)
        memory = kept.memory
        _same(kept, read_manifest(tree.text))
        found = diagnose(_snapshot(tree.text, memory, kept))
        assert found == diagnose(_snapshot(tree.text, None, None))
        # Most edits are taken back again: what was broken for a while must not stay so.
        edit = undo if undo is not None and r.random() < 0.6 else _edit(r, tree.text)
        start, end, new = edit
        undo = None if edit is undo else (start, start + len(new), tree.text[start:end])
        tree = edited(tree, start, end, new)


def _snapshot(text: str, memory: Memory | None, reading: ManifestReading | None) -> Snapshot:
    snapshot = Snapshot("/w/kept.tool.json", "manifest", text, None, memory=memory)
    if reading is not None:
        snapshot.__dict__["manifest"] = reading
    return snapshot


def test_what_did_not_change_is_the_same_object() -> None:
    r = random.Random(5)
    tree = parse_json(_text(r))
    first = read_manifest(tree.text, tree=tree)
    at = tree.text.index("keystroke")
    after = edited(tree, at, at, "every ")
    second = read_manifest(after.text, tree=after, memory=first.memory)
    assert first.manifest is not None
    assert second.manifest is not None
    assert second.manifest.description != first.manifest.description
    assert second.manifest.parameters is first.manifest.parameters
    assert second.manifest.examples is first.manifest.examples


def test_a_word_in_a_description_costs_no_plan() -> None:
    tree = parse_json(_text(random.Random(6)))
    first = read_manifest(tree.text, tree=tree)
    at = tree.text.index("Parameter no. 2")
    after = edited(tree, at, at, "The ")
    second = read_manifest(after.text, tree=after, memory=first.memory)
    assert second.memory.parameters.held is first.memory.parameters.held
    assert second.memory.parameters.checked is not first.memory.parameters.checked
