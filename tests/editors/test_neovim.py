"""The Neovim client, in a real headless Neovim: what a user sees when opening, editing, completing and fixing (editors 1.4)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import ECHO, PLUGIN, PLUGIN_FIRST
from tests.editors.neovim import neovim as neovim

TRANSCRIPT = "好的 😋 <ACTION><core:echo><txt>你好</txt></core:echo></ACTION>\n\n<|[REQUEST_TOOL]|>\ncommand:»»»core:eccho«««\ntext:»»»a«««\n<|[END_TOOL]|>\n"


@pytest.fixture(scope="module")
def seen(neovim: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session of an hour in a second: what Neovim showed at each step."""
    home = tmp_path_factory.mktemp("home")
    workspace = tmp_path_factory.mktemp("工具")
    outside = tmp_path_factory.mktemp("outside")
    tools = workspace / "tools"
    tools.mkdir()
    (workspace / "tamis.toml").write_text("")
    (workspace / "package.json").write_text("{}")
    (workspace / "calls.vcp").write_text("")
    (outside / "README.md").write_text("# Nothing here\n<ACTION>\n")
    (outside / ".git").mkdir()
    (tools / "echo.py").write_text("")
    (tools / "echo.tool.json").write_text(json.dumps(ECHO, indent=2))
    broken = json.dumps({**ECHO, "toolId": "core:broken", "displayName": "回声 😋"}, indent=2, ensure_ascii=False)
    broken = broken.replace('"echo.py"', '"missing.py"').replace('"python"', '"pyton"')
    (tools / "broken.tool.json").write_text(broken)
    (workspace / "transcript.md").write_text(TRANSCRIPT)
    result = home / "seen.json"
    script = Path(__file__).with_name("neovim_session.lua")
    env = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LANG": "C.UTF-8",
    }
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script)]
    run = subprocess.run(
        [*command, str(PLUGIN), str(workspace), str(outside), str(result)],
        cwd=workspace,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    log = home / "state" / "nvim" / "lsp.log"
    said = f"{run.stdout}\n{run.stderr}\n{log.read_text('utf-8')[-3000:] if log.exists() else ''}"
    assert result.exists(), said
    found = json.loads(result.read_text("utf-8"))
    assert run.returncode == 0, f"{found.get('failed')}\n{said}"
    found["workspace"] = str(workspace)
    return found


def by_code(items: list[dict[str, Any]], code: str) -> dict[str, Any]:
    found = [item for item in items if item["code"] == code]
    assert len(found) == 1, items
    return found[0]


def test_manifest_stays_json_and_attaches_at_the_root(seen: dict[str, Any]) -> None:
    assert seen["filetype"] == "json"
    assert seen["root"] == seen["workspace"]


def test_broken_manifest_shows_its_errors_where_they_are(seen: dict[str, Any]) -> None:
    wrong = by_code(seen["manifest"], "MF503")
    assert "python" in wrong["message"]
    assert wrong["source"] == "tamis"
    assert wrong["severity"] == 1
    assert (wrong["from"], wrong["to"]) == ([8, 16], [8, 23])
    missing = by_code(seen["manifest"], "MF540")
    assert "missing.py" in missing["message"]
    assert (missing["from"], missing["to"]) == ([7, 18], [7, 30])


def test_typing_the_right_values_makes_the_errors_vanish(seen: dict[str, Any]) -> None:
    assert [item for item in seen["mended"] if item["severity"] == 1] == []


def test_completion_offers_the_script_beside_the_manifest(seen: dict[str, Any]) -> None:
    assert '"echo.py"' in seen["scripts"]


def test_transcript_positions_are_right_behind_characters_of_every_width(seen: dict[str, Any]) -> None:
    # S9: "好的 😋 " is 3 + 3 + 1 + 4 + 1 bytes, which is how Neovim counts columns.
    unknown = by_code(seen["transcript"], "VA403")
    start = len("好的 😋 <ACTION><core:echo>".encode())
    assert unknown["from"][0] == 0
    assert start <= unknown["from"][1] <= start + 1
    assert "'txt'" in unknown["message"]


def test_completion_offers_the_parameters_that_are_left(seen: dict[str, Any]) -> None:
    assert {"text", "mode"} <= set(seen["parameters"])


def test_mended_call_has_no_findings_about_its_parameters(seen: dict[str, Any]) -> None:
    assert {"VA403", "VA404"} & {item["code"] for item in seen["transcript_mended"]} == set()


def test_quick_fix_replaces_the_unknown_tool_id(seen: dict[str, Any]) -> None:
    assert seen["fixed_line"] == "command:»»»core:echo«««"


def test_hover_tells_what_the_tool_does(seen: dict[str, Any]) -> None:
    assert ECHO["description"] in seen["hover"]


def test_one_server_serves_all_buffers_of_a_root(seen: dict[str, Any]) -> None:
    assert seen["clients"] == 1


def test_other_json_and_markdown_buffers_stay_alone(seen: dict[str, Any]) -> None:
    assert seen["attached_to_other_json"] is False
    assert seen["attached_to_other_markdown"] is False


def test_own_filetypes(seen: dict[str, Any]) -> None:
    assert seen["vcp_filetype"] == "vcp"


def test_server_is_gone_when_the_client_stops(seen: dict[str, Any]) -> None:
    assert seen["stopped"] is True


@pytest.fixture(scope="module")
def tags(neovim: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The tags that Neovim writes for the help."""
    doc = tmp_path_factory.mktemp("doc")
    shutil.copy(PLUGIN / "doc" / "tamis.txt", doc)
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", f"+helptags {doc}", "+qa"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr.strip() == ""
    return (doc / "tags").read_text("utf-8")


def test_the_committed_help_tags_are_those_of_the_help(tags: str) -> None:
    assert (PLUGIN / "doc" / "tags").read_text("utf-8") == tags, "stale: run `:helptags editors/neovim/doc`"


def test_help_has_tags_for_every_command(tags: str) -> None:
    assert ":Tamis\t" in tags
    assert "tamis-health\t" in tags
    lua = "".join(path.read_text("utf-8") for path in PLUGIN.rglob("*.lua"))
    verbs = re.findall(r"^  (\w+) = ", lua.partition("\nM.verbs = {")[2].partition("\n}\n")[0], re.M)
    assert len(verbs) == 21
    groups = set(re.findall(r"^  (Tamis\w+) = '[A-Z]", lua, re.M))
    events = set(re.findall(r"tamis\.event\('(Tamis\w+)'", lua))
    wanted = {*(f":Tamis-{verb}" for verb in verbs), *(f"hl-{group}" for group in groups), *events}
    wanted |= {f"<Plug>({name})" for name in re.findall(r"^  (Tamis\w+) = '[a-z]", lua, re.M)}
    assert len(groups) == 7
    assert len(events) == 6
    assert wanted <= {line.split("\t")[0] for line in tags.splitlines()}


def test_checkhealth_reports_the_server(neovim: str, tmp_path: Path) -> None:
    out = tmp_path / "health.txt"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    subprocess.run(
        [
            *[neovim, "--headless", "-u", "NONE", "-i", "NONE", "--cmd", PLUGIN_FIRST],
            *["+lua vim.lsp.enable('tamis')", "+checkhealth tamis", f"+silent write! {out}", "+qa!"],
        ],
        env={**os.environ, "PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    report = out.read_text("utf-8")
    assert "server:" in report
    assert "ERROR" not in report


def test_the_help_has_the_servers_settings() -> None:  # row 8
    from tools.editor_help import HELP, written

    text = HELP.read_text("utf-8")
    assert written(text) == text, "stale: run `python tools/editor_help.py`, then `:helptags editors/neovim/doc`"
    assert "policy.requireConfirmation\n" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_an_older_neovim_is_told_what_is_needed_and_nothing_else_is_done(neovim: str, tmp_path: Path) -> None:  # row 20
    lines = [
        "said = {}",
        "vim.notify_once = function(text) table.insert(said, text) end",
        "local has = vim.fn.has",
        # what a Neovim 0.10 answers
        "vim.fn.has = function(what) return what == 'nvim-0.11' and 0 or has(what) end",
        f"dofile([[{PLUGIN / 'plugin' / 'tamis.lua'}]])",
        "io.write(vim.json.encode({ said = said, command = vim.fn.exists(':Tamis') }))",
    ]
    init = tmp_path / "old.lua"
    init.write_text("\n".join(lines))
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(init)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout or run.stderr)
    assert found == {"said": ["tamis needs Neovim 0.11 or later; see :help tamis"], "command": 0}


@pytest.mark.parametrize(("enable", "files", "times"), [(True, 3, 1), (False, 3, 0), (True, 1, 0)])
def test_a_missing_program_is_said_once_with_its_remedy(
    neovim: str, tmp_path: Path, enable: bool, files: int, times: int
) -> None:
    """Only where the client would attach: not when it is not enabled, and not for other JSON files."""
    names = ["a.tool.json", "b.tool.json", "package.json"][-files:]
    init = tmp_path / "init.lua"
    lines = [
        f"vim.opt.runtimepath:prepend([[{PLUGIN}]])",
        "said = {}",
        "vim.notify = function(text) table.insert(said, text) end",
        "vim.lsp.config('tamis', { cmd = { 'no-such-tamis', 'lsp' } })",
        "vim.lsp.enable('tamis')" if enable else "",
    ]
    init.write_text("\n".join(lines))
    wait = 300_000 if times else 200
    opened = "".join(f"vim.cmd.edit('{name}') " for name in names)
    look = f"+lua {opened} vim.wait({wait}, function() return #said > 0 end) io.write(vim.json.encode(said))"
    run = subprocess.run(
        [neovim, "--headless", "-u", str(init), "-i", "NONE", look, "+qa!"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [text for text in json.loads(run.stdout or "[]") or [] if "no-such-tamis" in text]
    assert len(said) == times, run.stdout + run.stderr
    assert all("pip install ." in text and ".venv/bin/tamis" in text for text in said)


def test_the_server_is_told_the_language_of_messages(neovim: str, tmp_path: Path) -> None:  # issue 17, row 27
    script = tmp_path / "locale.lua"
    script.write_text(
        "local config = dofile(arg[1] .. '/lsp/tamis.lua')\n"
        "local own, given = { initializationOptions = {} }, { initializationOptions = {}, locale = 'zh-CN' }\n"
        "config.before_init(own, { root_dir = '/nowhere' })\n"
        "config.before_init(given, { root_dir = '/nowhere' })\n"
        "io.stdout:write(vim.json.encode({ own = own.locale, lang = vim.v.lang, given = given.locale }))\n"
    )
    command = [
        neovim,
        "--headless",
        "-u",
        "NONE",
        "-i",
        "NONE",
        "--cmd",
        PLUGIN_FIRST,
        "-l",
        str(script),
        str(PLUGIN),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "LANG": "C.UTF-8", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["own"] == told["lang"] != ""
    assert told["given"] == "zh-CN"


NOT_ATTACHED = """
local plugin, file, other, result_file = unpack(_G.arg)
vim.opt.runtimepath:prepend(plugin)
vim.cmd('filetype on')
vim.cmd.runtime({ 'ftdetect/*.lua', bang = true })
vim.cmd.runtime('plugin/tamis.lua')
vim.lsp.enable('tamis')
local told = {}
vim.notify = function(text)
  table.insert(told, text)
end
local function open(path)
  vim.cmd.edit(vim.fn.fnameescape(path))
  return vim.wait(300000, function() return #vim.lsp.get_clients({ bufnr = 0, name = 'tamis' }) > 0 end, 20)
end
vim.cmd.edit(vim.fn.fnameescape(other))
vim.cmd('Tamis run')
assert(open(file))
vim.cmd('b ' .. vim.fn.bufnr(other))
vim.cmd('Tamis run')
vim.cmd('Tamis copy tam')
vim.fn.writefile({ vim.json.encode(told) }, result_file)
vim.cmd('qall!')
"""


def test_a_buffer_without_a_server_is_told_to_be_that_and_what_to_do(neovim: str, tmp_path: Path) -> None:
    """The finding of a fresh user: `there is no call here`, in a text with a call that the server never saw."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "call.md").write_text("<ACTION><t:echo><text>a</text></t:echo></ACTION>\n")
    (inside / "tamis.toml").write_text("")
    script, result = tmp_path / "script.lua", tmp_path / "told.json"
    script.write_text(NOT_ATTACHED)
    env = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script)]
    paths = [str(PLUGIN), str(inside / "call.md"), str(outside / "call.md"), str(result)]
    run = subprocess.run([*command, *paths], env=env, capture_output=True, text=True, check=False)
    assert result.is_file(), run.stderr
    first, *others = json.loads(result.read_text())
    assert first == "Tamis: no server is attached; see :checkhealth tamis"
    assert len(others) == 2
    for told in others:
        assert "not attached to this buffer (filetype 'markdown')" in told and ":set filetype=tam" in told
