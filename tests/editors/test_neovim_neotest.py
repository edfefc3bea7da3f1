"""The adapter of neotest in a real Neovim (editors 1.4 row 17): under a harness of its documented interface, and under neotest itself where there is one.

``TAMIS_NEOTEST`` names a folder with clones of ``neotest`` and ``nvim-nio``; no registry has them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import PLUGIN, neovim
from tests.sample_tools import action, make_tool

__all__ = ["neovim"]

PREPARE = """
local plugin, folder, extra, result = unpack(_G.arg)
vim.o.swapfile = false
vim.opt.runtimepath:prepend(plugin)
vim.cmd.runtime('plugin/tamis.lua')
local seen = {}
local function finish(code)
  vim.fn.writefile({ vim.json.encode(seen) }, result)
  vim.cmd(code == 0 and 'qall!' or 'cquit ' .. code)
end
local function text_of(path)
  return table.concat(vim.fn.readfile(path), '\\n')
end
local function plain(results)
  local found = {}
  for id, one in pairs(results) do
    local name = id:sub(#folder + 2)
    found[name] = { status = one.status, errors = one.errors, text = one.output and text_of(one.output) }
  end
  return found
end
"""
HARNESS = (
    PREPARE
    + """
local nio = dofile(extra)
local adapter = require('neotest-tamis')
local over = false
nio.run(function()
  seen.root = adapter.root(folder .. '/tools')
  seen.none = adapter.root('/') == nil
  seen.dirs = { adapter.filter_dir('tools'), adapter.filter_dir('node_modules'), adapter.filter_dir('.git') }
  seen.files = {}
  for _, name in ipairs({ 'README.md', 'plain.md', 't_echo/x.tool.json', 't_slow/x.tool.json', 't_bare/x.tool.json', 't_echo/x.py' }) do
    seen.files[name] = adapter.is_test_file(folder .. '/' .. name)
  end
  local function run(name, stop_after)
    local tree = adapter.discover_positions(folder .. '/' .. name)
    local spec = adapter.build_spec({ tree = tree, strategy = 'integrated' })
    local process = spec.strategy(spec, { position = tree:data(), adapter = adapter })
    if stop_after then
      nio.sleep(stop_after)
      process.stop()
    end
    local code = process.result()
    local results = adapter.results(spec, { code = code, output = process.output() }, tree)
    local positions = {}
    for _, position in tree:iter() do
      table.insert(positions, { position.type, position.name, position.range[1] })
    end
    return { code = code, results = plain(results), positions = positions, output = text_of(process.output()), complete = process.is_complete() }
  end
  seen.manifest = run('t_echo/x.tool.json')
  seen.text = run('README.md')
  seen.stopped = run('t_slow/x.tool.json', 1500)
  seen.nothing = adapter.discover_positions(folder .. '/t_bare/x.tool.json') == nil
  over = true
end)
finish(vim.wait(300000, function() return over end, 20) and 0 or 3)
"""
)
REAL = (
    PREPARE
    + """
for _, name in ipairs({ 'neotest', 'nvim-nio' }) do
  vim.opt.runtimepath:prepend(extra .. '/' .. name)
end
vim.cmd.cd(folder)
local told = {}
local neotest = require('neotest')
neotest.setup({
  adapters = { require('neotest-tamis') },
  consumers = {
    told = function(client)
      client.listeners.results = function(_, results)
        told = vim.tbl_extend('force', told, results)
      end
      return {}
    end,
  },
})
vim.cmd.edit('README.md')
neotest.run.run(folder)
local ended = vim.wait(300000, function()
  local states = 0
  for id, one in pairs(told) do
    states = states + ((id:find('::', 1, true) and one.status) and 1 or 0)
  end
  return states >= 4
end, 20)
seen.results = plain(told)
finish(ended and 0 or 3)
"""
)


def run_session(neovim: str, tmp_path_factory: pytest.TempPathFactory, script: str, extra: str) -> dict[str, Any]:
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("工具")
    (folder / "tamis.toml").write_text("")
    (folder / "tools").mkdir()
    said = {"description": "Says a.", "input": {"text": "a"}, "expectedOutput": {"text": "a"}}
    make_tool(folder, "t:echo", examples=[said, {**said, "description": "Says b.", "expectedOutput": {"text": "b"}}])
    make_tool(folder, "t:bare")
    if script == HARNESS:
        make_tool(folder, "t:slow", "import time\ntime.sleep(60)\n", examples=[{"input": {"text": "a"}}])
    call = action("t:echo", text="c")
    fences = [f'```json expect\n{{"text": "{word}"}}\n```\n' for word in ("c", "d")]
    (folder / "README.md").write_text(f"# Calls\n\n{call}\n\n{fences[0]}\n## Other\n\n{call}\n\n{fences[1]}")
    (folder / "plain.md").write_text("# Nothing\n")
    file, result = home / "session.lua", home / "seen.json"
    file.write_text(script)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    env = {"PATH": path, "LANG": "C.UTF-8", **{name: str(home) for name in names}}
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(file), str(PLUGIN), str(folder), extra]
    run = subprocess.run([*command, str(result)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert result.exists(), run.stdout + run.stderr
    found = json.loads(result.read_text("utf-8"))
    assert run.returncode == 0, f"{found}\n{run.stderr[-3000:]}"
    return {**found, "folder": str(folder)}


@pytest.fixture(scope="module")
def seen(neovim: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_session(neovim, tmp_path_factory, HARNESS, str(Path(__file__).with_name("neotest_harness.lua")))


def test_the_root_is_the_folder_of_the_settings(seen: dict[str, Any]) -> None:
    assert seen["root"] == seen["folder"]
    assert seen["none"] is True
    assert seen["dirs"] == [True, False, False]


def test_files_with_examples_or_expectations_are_test_files(seen: dict[str, Any]) -> None:
    assert {name for name, is_test in seen["files"].items() if is_test} == {
        "README.md",
        "t_echo/x.tool.json",
        "t_slow/x.tool.json",
    }
    assert seen["nothing"] is True


def test_examples_of_a_manifest_are_found_and_run(seen: dict[str, Any]) -> None:
    manifest = seen["manifest"]
    assert [place[:2] for place in manifest["positions"]] == [
        ["file", "x.tool.json"],
        ["test", "Says a."],
        ["test", "Says b."],
    ]
    assert manifest["code"] == 1
    assert manifest["results"]["t_echo/x.tool.json::0"]["status"] == "passed"
    assert manifest["results"]["t_echo/x.tool.json::1"]["status"] == "failed"


def test_a_failed_test_shows_what_differs_at_its_place(seen: dict[str, Any]) -> None:
    failed = seen["manifest"]["results"]["t_echo/x.tool.json::1"]
    assert '-  "text": "b"\n+  "text": "a"' in failed["text"]
    (error,) = failed["errors"]
    assert error["line"] > seen["manifest"]["positions"][2][2]  # where it is expected, not where the example begins
    assert failed["text"] in seen["manifest"]["output"] + "\n"


def test_calls_of_a_text_with_what_they_give_are_tests(seen: dict[str, Any]) -> None:
    states = sorted(one["status"] for one in seen["text"]["results"].values())
    assert states == ["failed", "passed"]


def test_a_run_that_is_stopped_is_skipped(seen: dict[str, Any]) -> None:
    assert [one["status"] for one in seen["stopped"]["results"].values()] == ["skipped"]
    assert seen["stopped"]["complete"] is True


def test_neotest_itself_runs_a_folder(neovim: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    clones = os.environ.get("TAMIS_NEOTEST")
    if not clones:
        pytest.skip("TAMIS_NEOTEST names no folder with clones of neotest and nvim-nio")
    results = run_session(neovim, tmp_path_factory, REAL, clones)["results"]
    assert results["t_echo/x.tool.json::0"]["status"] == "passed"
    assert '+  "text": "a"' in results["t_echo/x.tool.json::1"]["text"]
    assert results["README.md"]["status"] == "failed"
