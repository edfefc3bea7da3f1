"""Questions to a person in a real Neovim, with the plug-in and without it: approvals, and those of MCP servers (editors 1.4 row 11, defect 2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import PLUGIN, neovim
from tests.runtime.mcp_calls import make
from tests.sample_tools import action, make_tool

__all__ = ["neovim"]

SESSION = """
local plugin, folder, result, plain = unpack(_G.arg)
vim.o.swapfile, vim.o.hidden = false, true
vim.cmd('filetype on')
if plain == 'plain' then
  -- As a user writes it who knows LSP and has no plug-in.
  vim.lsp.config('tamis', { cmd = { 'tamis', 'lsp' }, root_dir = folder, filetypes = { 'markdown' }, init_options = { trusted = true } })
else
  vim.opt.runtimepath:prepend(plugin)
  vim.cmd.runtime('plugin/tamis.lua')
  vim.g.tamis_trusted = true
end
local asked, opened, pick = {}, {}, nil
vim.ui.open = function(address) table.insert(opened, address) end
vim.ui.select = function(items, options, choose)
  local titles = vim.tbl_map(options.format_item or tostring, items)
  table.insert(asked, { prompt = options.prompt, titles = titles, kind = options.kind })
  for at, title in ipairs(titles) do
    if title == pick[1] then
      table.remove(pick, 1)
      return choose(items[at], at)
    end
  end
  choose(nil, nil)
end
vim.lsp.enable('tamis')
vim.cmd.edit('calls.md')
local client
local function ready()
  client = vim.lsp.get_clients({ bufnr = 0, name = 'tamis' })[1]
  return client and client.initialized
end
local seen = { runs = {} }
local ok = vim.wait(20000, ready, 20)
local function run(line, answers)
  pick, asked = answers, {}
  local title = 'Run'
  local lens
  vim.wait(10000, function()
    local found = client:request_sync('textDocument/codeLens', { textDocument = vim.lsp.util.make_text_document_params(0) }, 5000, 0)
    for _, one in ipairs(found and found.result or {}) do
      if one.command and one.command.command == 'tamis.run' and one.range.start.line == line then
        lens = one
      end
    end
    return lens ~= nil
  end, 50)
  local answer
  client:request('workspace/executeCommand', lens.command, function(fault, found) answer = fault or found end, 0)
  vim.wait(30000, function() return answer ~= nil end, 20)
  table.insert(seen.runs, { status = answer.status, output = answer.results and answer.results[1] and answer.results[1].output, asked = asked, error = answer.results and answer.results[1] and answer.results[1].error })
end
if ok then
  run(2, { 'Deny' })
  run(2, plain == 'plain' and { 'More…', 'Allow for this session' } or { 'Allow once' })
  run(6, { 'Answer: yes' })
  run(6, { 'Decline to answer' })
  run(6, {})
  seen.opened = opened
end
vim.fn.writefile({ vim.json.encode(seen) }, result)
vim.cmd(ok and 'qall!' or 'cquit 3')
"""
QUESTION = {
    "message": "Overwrite? See https://example.com/‮x",
    "requestedSchema": {"properties": {"sure": {"type": "boolean"}}},
}


@pytest.fixture(scope="module", params=["plug-in", "plain"])
def seen(request: pytest.FixtureRequest, neovim: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("folder")
    make(folder)
    make_tool(folder, "t:ask", execution={"requireConfirmation": True})
    manifest = json.loads((folder / "question.tool.json").read_text("utf-8"))
    manifest["parameters"] = {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": {"type": "object"}}},
    }
    (folder / "question.tool.json").write_text(json.dumps(manifest))
    questions = json.dumps([QUESTION])
    (folder / "calls.md").write_text(
        f"# Calls\n\n{action('t:ask', text='a')}\n\n## Other\n\n{action('mcp:question', questions=questions)}\n"
    )
    script, result = home / "session.lua", home / "seen.json"
    script.write_text(SESSION)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    env = {"PATH": path, "LANG": "C.UTF-8", **{name: str(home) for name in names}}
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script), str(PLUGIN), str(folder)]
    run = subprocess.run(
        [*command, str(result), request.param],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.exists(), run.stdout + run.stderr
    found = json.loads(result.read_text("utf-8"))
    assert run.returncode == 0, f"{found}\n{run.stderr[-2000:]}"
    return {**found, "plain": request.param == "plain"}


def test_a_client_without_the_plugin_has_three_buttons_on_one_line(seen: dict[str, Any]) -> None:
    denied, allowed = seen["runs"][:2]
    assert denied["status"] == "denied"
    assert allowed["status"] == "success"
    if seen["plain"]:
        (few,) = denied["asked"]
        assert few["titles"] == ["Allow once", "Deny", "More…"]
        assert few["prompt"] == 'Run t:ask (low risk)? {"text":"a"}: '
        assert [one["titles"] for one in allowed["asked"]][1:] == [
            ["Allow for this session", "Always allow", "Always deny", "Back"]
        ]
    else:
        assert denied["asked"][0]["kind"] == "tamis_approval"


def test_a_question_of_an_mcp_server_is_answered_declined_or_left(seen: dict[str, Any]) -> None:
    outputs = [json.loads(run["output"])["heard"] for run in seen["runs"][2:]]
    assert outputs == [
        [{"action": "accept", "content": {"sure": True}}],
        [{"action": "decline"}],
        [{"action": "cancel"}],
    ]


def test_a_question_says_whose_words_it_has_and_opens_nothing(seen: dict[str, Any]) -> None:
    (asked,) = seen["runs"][2]["asked"]
    assert asked["titles"] == ["Answer: yes", "Answer: no", "Decline to answer"]
    assert asked["prompt"].startswith("The MCP server 'test' asks (its words")
    assert "https://example.com/\\u202ex" in asked["prompt"]
    assert not seen["opened"]
