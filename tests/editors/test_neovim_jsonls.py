"""A real ``jsonls`` beside Tamis in a real Neovim: each thing is told once (editors 1.4 row 4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import ECHO, PLUGIN, neovim
from tests.editors.neovim_screen import Screen
from tests.editors.npm import package
from tests.node_runtime import NODE

__all__ = ["neovim"]

SERVERS = "vscode-langservers-extracted@4.10.0"
SESSION = """
local plugin, folder, node, server, first, result = unpack(_G.arg)
vim.o.swapfile, vim.o.hidden = false, true
vim.opt.runtimepath:prepend(plugin)
vim.cmd('filetype on')
vim.cmd.runtime({ 'ftdetect/*.lua', bang = true })
vim.cmd.runtime('plugin/tamis.lua')
-- Scheduled work of the plug-in file.
vim.wait(50)
vim.lsp.config('jsonls', {
  cmd = { node, server, '--stdio' },
  filetypes = { 'json', 'jsonc' },
  root_dir = folder,
  init_options = { provideFormatter = true },
  settings = { json = { validate = { enable = true }, schemas = { require('tamis').schema() } } },
})
local seen = {}
local function finish(code)
  vim.fn.writefile({ vim.json.encode(seen) }, result)
  vim.cmd(code == 0 and 'qall!' or 'cquit ' .. code)
end
local function sources()
  local found = {}
  for _, item in ipairs(vim.diagnostic.get(0)) do
    table.insert(found, ('%s %s'):format(item.source or 'json', item.code or ''))
  end
  return vim.fn.sort(found)
end
local function wait(what, test)
  if not vim.wait(300000, test, 20) then
    seen.failed = { what = what, shown = vim.inspect(vim.diagnostic.get(0)), clients = #vim.lsp.get_clients({ bufnr = 0 }) }
    finish(3)
  end
end
local function says(part)
  return function()
    return vim.iter(sources()):any(function(text) return text:find(part, 1, true) ~= nil end)
  end
end
local function both()
  local clients = vim.lsp.get_clients({ bufnr = 0 })
  return #clients == 2 and clients[1].initialized and clients[2].initialized
end
local function labels(line, column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  local found = {}
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', function(client)
    return vim.lsp.util.make_position_params(0, client.offset_encoding)
  end, 300000)
  for _, answer in pairs(answers or {}) do
    for _, item in ipairs(answer.result and (answer.result.items or answer.result) or {}) do
      table.insert(found, (item.label:gsub('"', '')))
    end
  end
  return vim.fn.sort(found)
end
local function hovers(line, column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  local count = 0
  assert(#vim.lsp.get_clients({ bufnr = 0 }) == 2)
  for _, answer in pairs(vim.lsp.buf_request_sync(0, 'textDocument/hover', function(client)
    return vim.lsp.util.make_position_params(0, client.offset_encoding)
  end, 300000) or {}) do
    count = count + ((answer.result and answer.result.contents) and 1 or 0)
  end
  return count
end
vim.lsp.enable(first)
vim.cmd.edit('tools/broken.tool.json')
wait('the first server', function() return #vim.lsp.get_clients({ bufnr = 0 }) == 1 end)
if first == 'jsonls' then
  wait('its findings', says('json'))
  seen.alone = sources()
  seen.labels_alone = labels(3, 2)
end
vim.lsp.enable(first == 'jsonls' and 'tamis' or 'jsonls')
wait('both', both)
wait('findings of Tamis', says('MF503'))
-- What jsonls still has to say is said by then.
vim.wait(1500)
seen.findings = sources()
seen.labels = labels(3, 2)
seen.hovers = hovers(2, 4)
vim.cmd.edit('tools/cut.tool.json')
wait('both on the other', both)
wait('the syntax error', says('tamis'))
vim.wait(1000)
seen.syntax = sources()
vim.cmd.edit('other.json')
wait('jsonls on another file', says('json'))
seen.other = sources()
vim.cmd.edit('tools/broken.tool.json')
vim.lsp.enable('tamis', false)
vim.lsp.stop_client(vim.lsp.get_clients({ name = 'tamis' }))
wait('Tamis to leave', function() return #vim.lsp.get_clients({ name = 'tamis' }) == 0 end)
wait('jsonls to tell its findings again', says('json'))
seen.after = sources()
finish(0)
"""


@pytest.fixture(scope="module")
def json_server() -> Path:
    """The JSON server of VS Code, as npm has it."""
    return package(SERVERS) / "node_modules" / "vscode-langservers-extracted" / "bin" / "vscode-json-language-server"


@pytest.fixture(scope="module", params=["jsonls", "tamis"])
def seen(
    request: pytest.FixtureRequest, neovim: str, json_server: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What Neovim showed; the parameter is the server that is there first."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("folder")
    tools = folder / "tools"
    tools.mkdir()
    (folder / "tamis.toml").write_text("")
    (folder / "other.json").write_text('{"a": 1,, "b": 2}')
    (tools / "echo.py").write_text("")
    broken = {**ECHO, "handler": {**ECHO["handler"], "type": "no-such-type", "language": "pyton"}}
    text = json.dumps(broken, indent=2).replace("{\n", '{\n  "version": "1.0.0",\n  \n', 1)
    (tools / "broken.tool.json").write_text(text.replace(',\n  "version": "1.0.0",\n  "handler"', ',\n  "handler"'))
    (tools / "cut.tool.json").write_text(json.dumps(ECHO, indent=2)[:-3])
    script, result = home / "session.lua", home / "seen.json"
    script.write_text(SESSION)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    env = {"PATH": path, "LANG": "C.UTF-8", **{name: str(home) for name in names}}
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script), str(PLUGIN), str(folder)]
    run = subprocess.run(
        [*command, NODE, str(json_server), request.param, str(result)],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.exists(), run.stdout + run.stderr
    found = json.loads(result.read_text("utf-8"))
    assert run.returncode == 0, f"{found}\n{run.stderr[-2000:]}"
    found["first"] = request.param
    return found


# Both servers, as a user has them who names the schema to the other one.
BOTH = """
local plugin, node, server = unpack(vim.json.decode(vim.env.TAMIS_TEST_PARTS))
vim.opt.runtimepath:prepend(plugin)
vim.opt.swapfile = false
vim.cmd('filetype plugin on | syntax on')
vim.diagnostic.config({ virtual_text = { source = true } })
vim.lsp.config('jsonls', {
  cmd = { node, server, '--stdio' },
  filetypes = { 'json' },
  root_markers = { 'tamis.toml' },
  init_options = { provideFormatter = true },
  before_init = function(_, config)
    config.settings = { json = { validate = { enable = true }, schemas = { require('tamis').schema() } } }
  end,
})
vim.lsp.enable({ 'tamis', 'jsonls' })
vim.api.nvim_create_autocmd('LspAttach', { command = 'redrawstatus' })
vim.o.laststatus = 2
vim.o.statusline = '%f   %{%v:lua.servers()%}'
function _G.servers()
  return 'servers: ' .. vim.iter(vim.lsp.get_clients({ bufnr = 0 })):map(function(client) return client.name end):join(', ')
end
"""


def test_what_stands_at_a_line_comes_from_tamis_where_both_serve(
    neovim: str, json_server: Path, tmp_path: Path
) -> None:  # row 4
    home, folder = tmp_path, tmp_path / "trip"
    folder.mkdir()
    (folder / "tamis.toml").write_text("")
    (folder / "echo.py").write_text("")
    broken = {**ECHO, "handler": {**ECHO["handler"], "language": "pyton"}}
    (folder / "echo.tool.json").write_text(json.dumps(broken, indent=2) + "\n")
    init = home / "init.lua"
    init.write_text(BOTH)
    env = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TAMIS_TEST_PARTS": json.dumps([str(PLUGIN), NODE, str(json_server)]),
    }
    screen = Screen([neovim, "-u", str(init), "-i", "NONE", "-n"], folder, env)
    try:
        screen.keys(":edit echo.tool.json<CR>")
        screen.until("return #vim.lsp.get_clients({ bufnr = 0 }) == 2")
        shown = screen.wait("servers: ", "tamis", "jsonls", "'pyton' is not")
        if pictures := os.environ.get("TAMIS_KEEP_PICTURES"):
            screen.photograph(Path(pictures) / "nvim-jsonls.png")
        (line,) = [line for line in shown.splitlines() if "pyton" in line]
        assert line.count("pyton") == 2 and "tamis:" in line, shown
    finally:
        screen.close()


def test_jsonls_alone_tells_what_the_schema_says(seen: dict[str, Any]) -> None:
    if seen["first"] == "jsonls":
        assert seen["alone"] and all(not text.startswith("tamis") for text in seen["alone"])
        assert "agentCallable" in seen["labels_alone"]
    assert seen["after"] and all(not text.startswith("tamis") for text in seen["after"])


def test_findings_of_a_manifest_come_from_tamis_alone(seen: dict[str, Any]) -> None:
    assert {text.split()[0] for text in seen["findings"]} == {"tamis"}
    assert {"tamis MF503"} <= set(seen["findings"])


def test_a_syntax_error_of_a_manifest_is_told_once(seen: dict[str, Any]) -> None:
    assert {text.split()[0] for text in seen["syntax"]} == {"tamis"}


def test_nothing_is_offered_twice(seen: dict[str, Any]) -> None:
    assert "agentCallable" in seen["labels"]
    assert sorted(set(seen["labels"])) == seen["labels"]


def test_a_field_is_explained_once(seen: dict[str, Any]) -> None:
    assert seen["hovers"] == 1


def test_what_jsonls_says_of_other_files_stays(seen: dict[str, Any]) -> None:
    assert seen["other"] and all(not text.startswith("tamis") for text in seen["other"])
