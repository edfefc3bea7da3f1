"""The script that is written for a manifest runs on what its parameters allow (D34)."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.model import Json
from tamis.server.analysis.actions.scaffold import scaffold

PARAMETERS: dict[str, Json] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "times": {"type": "integer", "default": 1},
        "tags": {"type": "array", "default": ["a"]},
        "loud": {"type": "boolean", "default": True},
        "end": {"type": "string"},
        "class": {"type": "string", "default": "x"},
        "two words": {"type": "string"},
        "more": {"type": "object"},
        "self": {"type": "string", "default": 'say "hé"\n'},
        "ﬁt": {"type": "integer", "default": 2},
        "__proto__": {"type": "string"},
    },
    "required": ["two words", "text", "undeclared"],
}
LEAST: dict[str, Json] = {"two words": "2", "text": "t", "undeclared": None}
WANTED: dict[str, Json] = {
    **LEAST,
    "times": 1,
    "tags": ["a"],
    "loud": True,
    "class": "x",
    "self": 'say "hé"\n',
    "ﬁt": 2,
}
MORE: dict[str, Json] = {**LEAST, "times": 3, "end": "!", "more": {"a": 1}, "unheard of": 1}


def without_nulls(value: dict[str, Json]) -> dict[str, Json]:
    return {key: one for key, one in value.items() if one is not None}


def called(text: str, entry: str, arguments: dict[str, Json]) -> Any:
    space: dict[str, Any] = {}
    exec(compile(text, "made.py", "exec"), space)
    found: Any = None
    for name in entry.split("."):
        found = space[name] if found is None else getattr(found, name)
    return found(**arguments)


@pytest.mark.parametrize("entry", ["shout", "Group.shout", "Outer.Inner.shout"])
def test_a_function_takes_the_required_arguments_alone(entry: str) -> None:
    text = scaffold("python", "a.py", PARAMETERS, None, entry)
    assert text is not None
    assert without_nulls(called(text, entry, LEAST)) == without_nulls(WANTED)
    assert called(text, entry, MORE)["times"] == 3


def test_arguments_are_keywords_and_a_closed_schema_takes_no_others() -> None:
    closed: dict[str, Json] = {
        "properties": {"text": {}, "times": {"default": 1}},
        "required": ["text"],
        "additionalProperties": False,
    }
    text = scaffold("python", "a.py", closed, None, "shout")
    assert text == 'def shout(*, text, times=1):\n    return {"text": text, "times": times}\n'


def test_a_list_by_default_is_not_shared_between_calls() -> None:
    text = scaffold("python", "a.py", {"properties": {"tags": {"default": []}}}, None, "f")
    assert text is not None
    space: dict[str, Any] = {}
    exec(text, space)
    space["f"]()["tags"].append(1)
    assert space["f"]()["tags"] == []


@pytest.mark.parametrize("entry", ["a b", "class", "a.", ".a", "ﬁt", "a..b"])
def test_no_script_where_the_entry_point_is_no_name(entry: str) -> None:
    assert scaffold("python", "a.py", PARAMETERS, None, entry) is None


def test_a_program_takes_the_required_arguments_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = scaffold("python", "a.py", PARAMETERS, None, "")
    assert text is not None
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(LEAST)))
    with redirect_stdout(io.StringIO()) as told:
        exec(text, {})
    assert without_nulls(json.loads(told.getvalue())) == without_nulls(WANTED)


def test_a_declared_output_is_what_the_script_gives() -> None:
    text = scaffold("python", "a.py", PARAMETERS, {"type": "object", "default": {"ok": True}}, "f")
    assert text is not None
    assert called(text, "f", LEAST) == {"ok": True}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("name", ["made.mjs", "made.js", "made.cjs"])
@pytest.mark.parametrize("entry", ["shout", "Group.shout", "Outer.Inner.shout", ""])
def test_javascript_takes_the_required_arguments_alone(tmp_path: Path, name: str, entry: str) -> None:
    text = scaffold("nodejs", name, PARAMETERS, None, entry)
    assert text is not None
    script = tmp_path / name
    script.write_text(text, encoding="utf-8")
    line = [str(script)]
    if entry:
        call = (
            f"const module = await import({json.dumps(script.as_uri())});"
            f"console.log(JSON.stringify(module.{entry}(JSON.parse({json.dumps(json.dumps(LEAST))}))));"
        )
        line = ["--input-type=module", "--eval", call]
    told = subprocess.run(["node", *line], input=json.dumps(LEAST), capture_output=True, text=True, check=True)
    assert without_nulls(json.loads(told.stdout)) == without_nulls(WANTED)
