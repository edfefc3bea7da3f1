"""A tool to begin with: a manifest, its script and an example that passes. Text in, text out; must not know files."""

from __future__ import annotations

import json
import re
import unicodedata

import msgspec

from tamis.protocols.manifest.imported import NAMESPACE, NEW_TOOL, VERSION, spaced
from tamis.protocols.manifest.reading import tool_id_fault
from tamis.protocols.model import Json

MAX_NAME_BYTES = 180
"""So that a file name with its suffix stays below the 255 bytes that file systems take."""
SUFFIXES = {"python": ".py", "nodejs": ".mjs", "bun": ".ts"}

_PYTHON = '''"""Reads one JSON object from standard input and writes one JSON value to standard output."""

import json
import sys


def run(text: str, times: int = 1) -> dict[str, object]:
    """Says the text as often as asked."""
    said = " ".join([text] * times)
    return {"text": said, "characters": len(said)}


arguments = json.load(sys.stdin)
json.dump(run(**arguments), sys.stdout, ensure_ascii=False)
'''
_NODE = """// Reads one JSON object from standard input and writes one JSON value to standard output.
import { readFileSync } from "node:fs";

function run({ text, times = 1 }) {
  const said = Array(times).fill(text).join(" ");
  return { text: said, characters: [...said].length };
}

const given = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(run(given)));
"""
_BUN = """// Reads one JSON object from standard input and writes one JSON value to standard output.
function run({ text, times = 1 }: { text: string; times?: number }) {
  const said = Array(times).fill(text).join(" ");
  return { text: said, characters: [...said].length };
}

const given = await Bun.stdin.json();
process.stdout.write(JSON.stringify(run(given)));
"""
_SCRIPTS = {"python": _PYTHON, "nodejs": _NODE, "bun": _BUN}


class NewTool(msgspec.Struct, frozen=True):
    """A tool that can be written to a folder of its name."""

    tool_id: str
    name: str
    """The folder's and the files' name."""
    files: dict[str, str]
    """File name → text."""


def new_tool(name: str, *, language: str = "python", tool_id: str = "", namespace: str = "") -> NewTool:
    """A tool of that name; ``namespace:name`` gives both. Raises ``ValueError`` with the reason where it can have none."""
    head, colon, tail = name.rpartition(":")
    bare = file_name(tail if colon else name)
    full_id = tool_id or f"{namespace or head or NAMESPACE}:{bare}"
    fault = tool_id_fault(full_id)
    if fault is not None:
        raise ValueError(f"'{full_id}' cannot be a tool's id: {fault}")
    # one name for the script that Python can import too, as far as the letters allow it
    script = (bare.replace("-", "_") if language == "python" else bare) + SUFFIXES[language]
    manifest: dict[str, Json] = {
        "toolId": full_id,
        "displayName": spaced((tail if colon else name).strip()),
        "description": f"Says a text as often as asked. {NEW_TOOL}",
        "version": VERSION,
        "handler": {"type": "external-script", "scriptPath": script, "language": language},
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say."},
                "times": {"type": "integer", "description": "How often.", "minimum": 1, "maximum": 10, "default": 1},
            },
            "required": ["text"],
            "additionalProperties": False,
        },
        "output": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What was said."},
                "characters": {"type": "integer", "description": "How long it is."},
            },
            "required": ["text", "characters"],
        },
        "examples": [
            {
                "description": "A word, twice.",
                "input": {"text": "tea", "times": 2},
                "expectedOutput": {"text": "tea tea", "characters": 7},
            }
        ],
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return NewTool(full_id, bare, {f"{bare}.tool.json": text, script: _SCRIPTS[language]})


def file_name(name: str) -> str:
    """A name as that of a file and as the second half of a tool id. Raises ``ValueError`` where nothing of it remains."""
    normal = unicodedata.normalize("NFC", name.strip())
    # marks belong to letters in many scripts, though no word character of a regular expression
    kept = "".join(char if _in_name(char) else "-" for char in normal)
    bare = re.sub(r"-{2,}", "-", kept).strip("-._")
    while len(bare.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        bare = bare[:-1]
    if not any(char.isalnum() for char in bare):
        raise ValueError(f"'{name}' holds no letter or digit: name the tool with a word")
    return bare


def _in_name(char: str) -> bool:
    return char.isalnum() or char in "-._" or (unicodedata.category(char) in ("Mn", "Mc") and not char.isspace())
