"""The Lua of the Neovim plug-in: formatted, linted, and read by an older Neovim without harm (editors 1.4 rows 19, 20)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.editors.neovim import PLUGIN, PLUGIN_FIRST, version_of
from tests.editors.neovim_screen import Screen
from tests.editors.npm import package
from tests.node_runtime import NODE

FORMATTER = "@johnnymorganz/stylua@2.5.2"
# Gives the files that the formatter would write otherwise, with what it would write.
FORMAT = """
const { readFileSync } = require("node:fs");
const [formatter, settings, ...files] = process.argv.slice(2);
const lua = require(formatter);
const wanted = JSON.parse(settings);
const other = {};
for (const file of files) {
  const config = lua.Config.new();
  config.column_width = wanted.column_width;
  config.indent_width = wanted.indent_width;
  config.indent_type = lua.IndentType[wanted.indent_type];
  config.quote_style = lua.QuoteStyle[wanted.quote_style];
  const text = readFileSync(file, "utf8");
  const formatted = lua.formatCode(text, config, undefined, lua.OutputVerification.None);
  if (formatted !== text) other[file] = formatted;
}
console.log(JSON.stringify(other));
"""


def sources() -> list[Path]:
    return sorted(PLUGIN.rglob("*.lua"))


@pytest.fixture(scope="module")
def formatted_otherwise(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the library of stylua, as npm has it, writes otherwise: of the sources, and of a file ``other.lua``."""
    formatter = package(FORMATTER) / "node_modules" / "@johnnymorganz" / "stylua"
    folder = tmp_path_factory.mktemp("format")
    script, other = folder / "format.cjs", folder / "other.lua"
    script.write_text(FORMAT)
    other.write_text('local a = "b"\n')
    settings = tomllib.loads((PLUGIN / "stylua.toml").read_text("utf-8"))
    command = [NODE, str(script), str(formatter), json.dumps(settings), *map(str, sources()), str(other)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, str] = json.loads(run.stdout)
    return {"other.lua" if Path(file) == other else file: text for file, text in found.items()}


def test_every_file_is_formatted_as_stylua_toml_says(formatted_otherwise: dict[str, str]) -> None:  # row 19
    assert sources()
    otherwise = {file: text for file, text in formatted_otherwise.items() if file != "other.lua"}
    if os.environ.get("TAMIS_UPDATE_GOLDEN"):
        for file, text in otherwise.items():
            Path(file).write_text(text, "utf-8")
    assert not sorted(otherwise), "TAMIS_UPDATE_GOLDEN=1 writes them as they should be"


def test_a_file_with_other_quotes_is_formatted_otherwise(formatted_otherwise: dict[str, str]) -> None:  # row 19
    assert formatted_otherwise["other.lua"] == "local a = 'b'\n"


@pytest.fixture(scope="module")
def luacheck() -> str:
    found = shutil.which("luacheck")
    if found is None:
        pytest.skip("no luacheck: apt-get install lua-check brings it")
    return found


def test_luacheck_finds_nothing(luacheck: str) -> None:  # row 19
    run = subprocess.run([luacheck, "--no-color", "."], cwd=PLUGIN, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert f"0 errors in {len(sources())} files" in run.stdout


def test_luacheck_knows_the_globals_of_neovim_and_no_others(luacheck: str, tmp_path: Path) -> None:  # row 19
    (tmp_path / "a.lua").write_text("vim.cmd('help')\ntamis.run()\n")
    settings = str(PLUGIN / ".luacheckrc")
    run = subprocess.run(
        [luacheck, "--no-color", "--config", settings, "a.lua"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "undefined variable" in run.stdout and "1 warning" in run.stdout, run.stdout


@pytest.fixture(scope="module")
def older_neovim() -> str:
    places = [shutil.which("nvim", path=folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    older = next((place for place in places if place and version_of(place) < (0, 11)), None)
    if older is None:
        pytest.skip("no Neovim before 0.11 on the PATH: apt-get install neovim brings 0.7 on Debian 12")
    return older


def test_a_real_older_neovim_says_what_is_needed_and_works_on(older_neovim: str, tmp_path: Path) -> None:  # row 20
    """With the plug-in's folder on its path, as a plugin manager puts it there; files of Tamis are opened as others are."""
    home, folder = tmp_path / "home", tmp_path / "home" / "trip"
    folder.mkdir(parents=True)
    (folder / "a.tool.json").write_text('{\n  "toolId": "a:b"\n}\n')
    (folder / "batch.tam").write_text("[REQUEST_TOOL]\n[END_TOOL]\n")
    init = home / "init.vim"
    init.write_text(f"{PLUGIN_FIRST}\nfiletype plugin on\nsyntax on\n")
    env = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
    }
    screen = Screen([older_neovim, "-u", str(init), "-i", "NONE", "-n"], folder, env)
    try:
        screen.wait("tamis needs Neovim 0.11 or later; see :help tamis")
        if pictures := os.environ.get("TAMIS_KEEP_PICTURES"):
            screen.photograph(Path(pictures) / "nvim-older.png")
        told = []
        for name in ("a.tool.json", "batch.tam"):
            screen.keys(f":edit {name}<CR>")
            screen.until("return vim.fn.expand('%:t') == ...", name)
            told.append(screen.lua("return { vim.bo.filetype, vim.fn.exists(':Tamis'), vim.v.errmsg }"))
        assert told[0] == ["json", 0, ""]
        assert told[1][1:] == [0, ""]
        # The page that the message names is there.
        screen.keys(":help tamis<CR>")
        screen.wait("tamis.txt")
    finally:
        screen.close()
