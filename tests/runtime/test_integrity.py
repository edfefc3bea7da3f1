"""``execution.integrity`` pins the script's bytes (D80); that they are the ones that run is `tests/sandbox/test_pins.py`."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from tests.node_runtime import NODE, bun
from tests.runtime.test_execute import error_of, run_tool
from tests.toolbox import ECHO, SUFFIXES, make_tool

TELL = {
    "python": "import json, sys, beside, os\njson.dump([beside.word, __file__, os.getcwd(), sorted(os.listdir('.'))], sys.stdout)\n",
    "nodejs": "console.log(JSON.stringify([require('./beside.js').word, __filename, process.cwd(), require('fs').readdirSync('.').sort()]))\n",
    "bun": "import { word } from './beside.ts';\nimport { readdirSync } from 'node:fs';\nconsole.log(JSON.stringify([word, import.meta.path, process.cwd(), readdirSync('.').sort()]))\n",
}
BESIDE = {
    "python": "word = 'beside'\n",
    "nodejs": "exports.word = 'beside'\n",
    "bun": "export const word: string = 'beside'\n",
}


def sri(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return "sha256-" + base64.b64encode(hashlib.sha256(data).digest()).decode()


@pytest.mark.parametrize("language", TELL)
def test_a_pinned_script_runs_in_its_place_beside_its_siblings(tmp_path: Path, language: str) -> None:
    ending = SUFFIXES[language]
    folder = make_tool(
        tmp_path, "test:pinned", TELL[language], language=language, execution={"integrity": sri(TELL[language])}
    )
    (folder / f"beside.{ending}").write_text(BESIDE[language])
    (folder / "data").mkdir()
    settings = {"sandbox": {"interpreters": {"nodejs": NODE, "bun": bun()}}}
    result = run_tool(tmp_path, "test:pinned", {}, settings=settings)
    names = sorted([f"beside.{ending}", "data", f"tool.{ending}", "x.tool.json"])
    assert (result.status, result.output) == ("success", ["beside", f"/tool/tool.{ending}", "/tool", names]), result


def test_another_script_is_refused_with_its_own_hash(tmp_path: Path) -> None:
    make_tool(tmp_path, "test:pinned", execution={"integrity": sri("something else")})
    result = run_tool(tmp_path, "test:pinned", {})
    error = error_of(result)
    assert error["type"] == "SecurityError"
    assert "execution.integrity" in error["message"]
    assert sri(ECHO) in error["message"]
    assert result.attempts == 0
