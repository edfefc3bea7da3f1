"""``:Tamis install`` in a real Neovim: what is offered, where it goes, and that a strange folder has no say in it (editors: a server that installs itself)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import PLUGIN, neovim
from tests.environments.package_index import serving, wheel

__all__ = ["neovim"]

SESSION = """
local plugin, result, wish, what = unpack(_G.arg)
vim.opt.runtimepath:prepend(plugin)
vim.cmd('filetype on')
vim.cmd.runtime({ 'ftdetect/*.lua', bang = true })
vim.cmd.runtime('plugin/tamis.lua')
local seen = { before = require('tamis.install').command(), said = {}, asked = {} }
vim.notify = function(text) table.insert(seen.said, text) end
vim.notify_once = vim.notify
vim.ui.select = function(items, options, choose)
  table.insert(seen.asked, { prompt = options.prompt, titles = vim.tbl_map(options.format_item, items) })
  for _, item in ipairs(items) do
    if item.name == wish then
      return choose(item)
    end
  end
  choose(nil)
end
vim.lsp.enable('tamis')
vim.cmd.edit('a.tool.json')
vim.wait(300000, function() return #seen.said > 0 end, 20)
seen.unasked = { asked = #seen.asked, there = vim.fn.isdirectory(vim.fn.stdpath('data') .. '/tamis') }
vim.api.nvim_create_autocmd('User', { pattern = 'TamisInstallEnd', callback = function(event) seen.ended = event.data end })
for _, one in ipairs(vim.split(what, ' ')) do
  vim.cmd('Tamis install ' .. one)
end
vim.wait(wish == 'none' and 200 or 300000, function() return seen.ended ~= nil end, 20)
seen.cmd = vim.lsp.config.tamis.cmd
seen.later = require('tamis.install').command()
vim.fn.writefile({ vim.json.encode(seen) }, result)
vim.cmd('qall!')
"""
ENTRY = "tamis-0.1.0.dist-info/entry_points.txt"


def install(
    neovim: str, tmp_path: Path, wish: str, *, version: str = "0.1.0", what: str = "tamis==0.1.0"
) -> dict[str, Any]:
    """A session in a folder that would like to be asked."""
    home, folder, programs = tmp_path / "home", tmp_path / "strange", tmp_path / "programs"
    for one in (home, folder, programs, folder / ".venv" / "bin", folder / "tamis"):
        one.mkdir(parents=True)
    (folder / "a.tool.json").write_text("{}")
    evil = folder / ".venv" / "bin" / "tamis"
    evil.write_text("#!/bin/sh\ntouch ran\n")
    evil.chmod(0o755)
    (folder / "tamis" / "pyproject.toml").write_text("[project]\nname = 'tamis'\nversion = '6.6.6'\n")
    (programs / "python3").symlink_to(
        sys.executable if sys.prefix == sys.base_prefix else Path(sys.base_prefix, "bin", "python3")
    )
    (programs / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    script, result = home / "session.lua", home / "seen.json"
    script.write_text(SESSION)
    with serving("127.0.0.1") as index:
        (folder / "uv.toml").write_text(f'index-url = "http://127.0.0.1:{index.port}/evil"\n')
        files = {
            "tamis_stub.py": f"def main():\n    print('tamis {version}')\n",
            ENTRY: "[console_scripts]\ntamis = tamis_stub:main\n",
        }
        index.add(wheel("tamis", "0.1.0", files))
        names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
        own = home / "config" / "uv"
        own.mkdir(parents=True)
        env = {
            "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin", "LANG": "C.UTF-8", **{name: str(home) for name in names},
            "UV_INDEX_URL": index.url, "PIP_INDEX_URL": index.url, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }  # fmt: skip
        command = [
            neovim,
            "--headless",
            "-u",
            "NONE",
            "-i",
            "NONE",
            "-l",
            str(script),
            str(PLUGIN),
            str(result),
            wish,
            what,
        ]
        run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        asked = [path for path in index.asked if "evil" in path]
    assert result.exists(), run.stdout + run.stderr
    return {**json.loads(result.read_text("utf-8")), "evil": asked, "ran": (folder / "ran").exists(), "home": str(home)}


@pytest.mark.parametrize(
    "way",
    [
        "uv",
        # pip takes five times as long and differs in what the menu shows, which the next test reads.
        pytest.param("venv", marks=pytest.mark.long),
    ],
)
def test_the_program_goes_into_the_data_folder_and_is_found_there(neovim: str, tmp_path: Path, way: str) -> None:
    seen = install(neovim, tmp_path, way)
    program = str(Path(seen["home"]) / "nvim" / "tamis" / "venv" / "bin" / "tamis")
    assert seen["ended"] == {"ok": True, "program": program}, seen["said"]
    assert seen["cmd"] == seen["later"] == [program, "lsp"]
    assert seen["before"] == ["tamis", "lsp"]
    assert not seen["evil"]
    assert not seen["ran"]


def test_nothing_is_installed_unasked_and_what_will_be_run_is_shown(neovim: str, tmp_path: Path) -> None:
    seen = install(neovim, tmp_path, "none", what="tamis==0.1.0 tamis")
    assert seen["unasked"] == {"asked": 0, "there": 0}
    assert any(":Tamis install" in text for text in seen["said"])
    asked, named = seen["asked"]
    assert asked["prompt"].startswith("Install tamis==0.1.0 into ")
    assert any(title.startswith("uv: uv venv ") and title.endswith(" tamis==0.1.0") for title in asked["titles"])
    assert any(title.startswith("venv: ") and "-m pip install " in title for title in asked["titles"])
    # A name is no folder of the open one.
    assert named["prompt"].startswith("Install tamis into ")
    assert "ended" not in seen


def test_a_program_of_another_version_is_refused(neovim: str, tmp_path: Path) -> None:
    seen = install(neovim, tmp_path, "uv", version="9.9.9")
    assert seen["ended"] == {"ok": False}
    assert any("this plug-in was made for 0.1" in text for text in seen["said"])
    assert seen["cmd"] == ["tamis", "lsp"]
