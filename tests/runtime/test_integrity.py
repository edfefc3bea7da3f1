"""``execution.integrity`` pins the script's bytes (D80); that they are the ones that run is `tests/sandbox/test_pins.py`."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.server.runtime.handlers.script import running
from tamis.server.runtime.policy import contents
from tests.node_runtime import NODE, bun
from tests.runtime.run_tool import error_of, run_tool
from tests.sample_tools import ECHO, SUFFIXES, make_tool

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


def files_sri(folder: Path, *names: str) -> str:
    """As docs/runtimes.md tells to compute it in a shell."""
    command = 'LC_ALL=C; export LC_ALL; printf "%s\\n" "$@" | sort | tr "\\n" "\\0" | xargs -0 sha256sum | sha256sum | cut -c1-64'
    ran = subprocess.run(["sh", "-c", command, "sh", *names], cwd=folder, capture_output=True, text=True, check=True)
    return "sha256-" + base64.b64encode(bytes.fromhex(ran.stdout.strip())).decode()


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """A tool whose script and modules are pinned together."""
    folder = make_tool(tmp_path, "test:pinned", "import json, lib.a\nprint(json.dumps(lib.a.WORD))\n")
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / "lib" / "a.py").write_text("WORD = 'good'\n")
    (folder / "lib" / "deep" / "b.py").write_text("")
    (folder / "notes.txt").write_text("free to change")
    names = ("tool.py", "lib/a.py", "lib/deep/b.py")
    pin(folder, files_sri(folder, *names))
    return folder


def pin(folder: Path, digest: str) -> None:
    path = folder / "x.tool.json"
    manifest = json.loads(path.read_text())
    manifest["execution"] = {"files": ["lib/**"], "integrity": digest}
    path.write_text(json.dumps(manifest))


def test_with_files_integrity_is_the_digest_of_them_together(pinned: Path, tmp_path: Path) -> None:  # trust 6
    assert run_tool(tmp_path, "test:pinned", {}).output == "good"
    (pinned / "notes.txt").write_text("changed")
    assert run_tool(tmp_path, "test:pinned", {}).output == "good"


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module": lambda folder: (folder / "lib" / "a.py").write_text("WORD = 'evil'\n"),
    "the script": lambda folder: (folder / "tool.py").write_text("print(1)\n"),
    "a new module": lambda folder: (folder / "lib" / "new.py").write_text(""),
    "a module that is gone": lambda folder: (folder / "lib" / "deep" / "b.py").unlink(),
    "a name": lambda folder: (folder / "lib" / "deep" / "b.py").rename(folder / "lib" / "deep" / "c.py"),
    "packages": lambda folder: (folder / "requirements.txt").write_text("evil\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_of_those_that_are_pinned_is_refused_with_the_digest_now(
    pinned: Path, tmp_path: Path, change: str
) -> None:
    CHANGES[change](pinned)
    result = run_tool(tmp_path, "test:pinned", {})
    error = error_of(result)
    assert (error["type"], error["details"]["code"], result.attempts) == ("SecurityError", "integrity", 0)
    names = sorted(
        path.relative_to(pinned).as_posix()
        for path in [pinned / "tool.py", *pinned.glob("lib/**/*"), *pinned.glob("requirements.txt")]
        if path.is_file() and "__pycache__" not in path.parts
    )
    now = files_sri(pinned, *names)
    assert now in error["message"]
    if change != "packages":
        pin(pinned, now)
        assert run_tool(tmp_path, "test:pinned", {}).status == "success"


@pytest.mark.parametrize(("kind", "says"), [("link", "'lib/odd' is a link"), ("fifo", "'lib/odd' is no regular file")])
def test_what_is_no_regular_file_cannot_be_pinned(pinned: Path, tmp_path: Path, kind: str, says: str) -> None:
    odd = pinned / "lib" / "odd"
    if kind == "link":
        odd.symlink_to("a.py")
    else:
        os.mkfifo(odd)
    error = error_of(run_tool(tmp_path, "test:pinned", {}))
    assert says in error["message"]
    assert "execution.files" in error["message"]


@pytest.mark.parametrize("bound", ["MAX_ENTRIES", "MAX_BYTES"])
def test_too_many_files_are_not_pinned_in_part(
    pinned: Path, tmp_path: Path, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, bound, 2)
    error = error_of(run_tool(tmp_path, "test:pinned", {}))
    assert "cannot be pinned" in error["message"]


def test_the_script_s_checked_bytes_are_the_ones_that_run_with_files_too(
    pinned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = running.listed_files

    def then_changed(*args: Any) -> dict[str, bytes]:
        found = listed(*args)
        (pinned / "tool.py").write_text("print(1)\n")
        return found

    monkeypatch.setattr(running, "listed_files", then_changed)
    assert "execution.integrity" in error_of(run_tool(tmp_path, "test:pinned", {}))["message"]


def test_the_digest_does_not_depend_on_how_names_and_contents_are_cut() -> None:
    one = running.files_hash({"a": b"1" * 32, "b": b"2" * 32})
    assert one == running.files_hash({"b": b"2" * 32, "a": b"1" * 32})
    assert one != running.files_hash({"a": b"2" * 32, "b": b"1" * 32})
    with pytest.raises(contents.Unpinnable):
        running.files_hash({"a\nb": b"1" * 32})
