"""Questions to a person in a real Neovim, with the plug-in and without it: approvals, and those of MCP servers (editors 1.4 row 11, defect 2)."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import PLUGIN, neovim
from tests.runtime.mcp_calls import make
from tests.sample_tools import action, make_tool

__all__ = ["neovim"]

SESSION = """
local plugin, folder, result, plain, script = unpack(_G.arg)
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
vim.ui.open = function(address)
  table.insert(opened, address)
  if address:find('no%-browser') then
    return nil, 'there is no browser'
  end
  return {}
end
-- What is typed next; false leaves the prompt, `true` takes what stands there.
vim.ui.input = function(options, done)
  table.insert(asked, { prompt = options.prompt, default = options.default, kind = 'input' })
  local text = table.remove(pick, 1)
  if text == true then
    text = options.default
  end
  done(text or nil)
end
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
local ok = vim.wait(300000, ready, 20)
local function run(line, answers)
  pick, asked = answers, {}
  local title = 'Run'
  local lens
  vim.wait(300000, function()
    local found = client:request_sync('textDocument/codeLens', { textDocument = vim.lsp.util.make_text_document_params(0) }, 300000, 0)
    for _, one in ipairs(found and found.result or {}) do
      if one.command and one.command.command == 'tamis.run' and one.range.start.line == line then
        lens = one
      end
    end
    return lens ~= nil
  end, 50)
  local answer
  client:request('workspace/executeCommand', lens.command, function(fault, found) answer = fault or found end, 0)
  vim.wait(300000, function() return answer ~= nil end, 20)
  table.insert(seen.runs, { status = answer.status, output = answer.results and answer.results[1] and answer.results[1].output, asked = asked, error = answer.results and answer.results[1] and answer.results[1].error })
end
if ok then
  run(2, { 'Deny' })
  run(2, plain == 'plain' and { 'More…', 'Allow for this session' } or { 'Allow once' })
  run(6, { 'Answer: yes' })
  run(6, { 'Decline to answer' })
  run(6, {})
  seen.opened = opened
  for _, one in ipairs(script and vim.json.decode(vim.fn.readblob(script)) or {}) do
    opened = {}
    run(one.line, one.picks)
    local forms = seen.runs[#seen.runs]
    forms.opened, forms.left, forms.name = opened, #pick, one.name
    seen.runs[#seen.runs] = nil
    seen.forms = vim.list_extend(seen.forms or {}, { forms })
  end
end
vim.fn.writefile({ vim.json.encode(seen) }, result)
vim.cmd(ok and 'qall!' or 'cquit 3')
"""
QUESTION = {
    "message": "Overwrite? See https://example.com/‮x",
    "requestedSchema": {"properties": {"sure": {"type": "boolean"}}},
}


CITY = {"type": "string", "title": "City", "minLength": 2, "default": "Berlin"}
TRIP: dict[str, Any] = {
    "message": "Where to?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "city": CITY | {"description": "Where the\ntrip ends."},
            "people": {"type": "integer", "minimum": 1, "maximum": 9},
            "mail": {"type": "string", "format": "email"},
            "window": {"type": "boolean", "default": False},
            "class": {"type": "string", "oneOf": [{"const": "1", "title": "First"}, {"const": "2", "title": "Second"}]},
            "meals": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 2},
        },
        "required": ["city", "people"],
    },
}


def form(**fields: Any) -> dict[str, Any]:
    return {"message": "m", "requestedSchema": {"type": "object", "properties": fields}}


def address(url: str) -> dict[str, Any]:
    return {"mode": "url", "message": "Log in", "elicitationId": "e", "url": url}


FILL, DECLINE, SEND = "Answer with this form", "Decline to answer", "Send to 'test'"
KEYS = "\x12=execute('let g:run = 1')"
FORMS: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "filled": (
        [TRIP],
        [
            FILL,
            "K",
            "Köln",
            "0",
            "2",
            "a@b.example",
            "yes",
            "Leave out",
            "[ ] a",
            "[ ] b",
            "[ ] c",
            "Done",
            "[x] b",
            "Done",
            "Change City: Köln",
            "Oslo",
            SEND,
        ],
    ),
    "declined": ([TRIP, form(city=CITY)], [DECLINE, FILL, True, DECLINE]),
    "left": ([form(city=CITY), form(city=CITY)], [FILL, False, FILL, True]),
    "left out": ([form(a={"type": "string"}, b={"type": "number"})], [FILL, "", "", SEND]),
    "an address": ([address("https://example.com:8443/a?b=%2F#c")], ["Open example.com:8443"]),
    "an address without a browser": ([address("https://no-browser.example/")], ["Open no-browser.example"]),
    "addresses that are not opened": ([address("https://example.com/")] * 2, [DECLINE]),
    "hostile addresses": (
        [
            address(url)
            for url in (
                "javascript:alert(1)",
                "file:///etc/passwd",
                "https://good.example@evil.example/",
                "https://good.example\\@evil.example/",
                "https://gооd.example/",
            )
        ],
        [],
    ),
    "a thousand fields": ([form(**{f"f{at}": {"type": "string"} for at in range(1_000)})], []),
    "hostile words": (
        [
            form(
                a={"type": "string", "title": "A\n" + "x" * 10_000 + "\u202e", "default": KEYS},
                b={"type": "string", "title": "B\u202eb\x1b[2J", "description": "c\r\nSend? y\n" * 500},
            )
        ],
        [FILL, True, "b"],
    ),
}
TABLE = Path(__file__).resolve().parents[2] / "editors" / "vscode" / "test" / "answers.json"


def block_of(questions: list[dict[str, Any]]) -> str:
    return f"{action('mcp:question', questions=json.dumps(questions))}\n"


def session(neovim: str, tmp_path_factory: pytest.TempPathFactory, how: str) -> dict[str, Any]:
    """What came of the questions in a Neovim with the plug-in, of the forms too, or ``plain``."""
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
    text = f"# Calls\n\n{action('t:ask', text='a')}\n\n## Other\n\n{action('mcp:question', questions=questions)}\n"
    steps: list[dict[str, Any]] = []
    for name, (asked, picks) in FORMS.items():
        text += f"\n## {name}\n\n"
        steps.append({"name": name, "line": text.count("\n"), "picks": picks})
        text += block_of(asked)
    (folder / "calls.md").write_text(text)
    script, result = home / "session.lua", home / "seen.json"
    (home / "forms.json").write_text(json.dumps(steps))
    script.write_text(SESSION)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    env = {"PATH": path, "LANG": "C.UTF-8", **{name: str(home) for name in names}}
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script), str(PLUGIN), str(folder)]
    run = subprocess.run(
        [*command, str(result), how, *([str(home / "forms.json")] if how == "plug-in" else [])],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.exists(), run.stdout + run.stderr
    found = json.loads(result.read_text("utf-8"))
    assert run.returncode == 0, f"{found}\n{run.stderr[-2000:]}"
    return {**found, "plain": how == "plain"}


@pytest.fixture(scope="module")
def sessions(neovim: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """Gives the session of a way, which is made once."""
    return functools.cache(lambda how: session(neovim, tmp_path_factory, how))


@pytest.fixture(scope="module", params=["plug-in", "plain"])
def seen(request: pytest.FixtureRequest, sessions: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return sessions(request.param)


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


@pytest.fixture(scope="module")
def forms(sessions: Callable[[str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What came of each form and address, by its name."""
    found = sessions("plug-in")["forms"]
    return {one["name"]: one | {"heard": json.loads(one["output"])["heard"]} for one in found}


def test_a_form_is_filled_field_by_field_and_sent_whole(forms: dict[str, dict[str, Any]]) -> None:  # issue 17
    run = forms["filled"]
    content = {"city": "Oslo", "people": 2, "mail": "a@b.example", "window": True, "meals": ["a", "c"]}
    assert run["heard"] == [{"action": "accept", "content": content}]
    assert not run["left"]
    prompts = [one["prompt"] for one in run["asked"]]
    assert prompts[1] == "[1/6] City - Where the trip ends.: "
    assert run["asked"][1]["default"] == "Berlin"
    assert prompts[2] == "[1/6] City - Where the trip ends. (that does not fit: it has at least 2 characters): "
    assert prompts[4].endswith("(that does not fit: it is at least 1): ")
    assert prompts[5] == "[3/6] mail (may be left out): "
    assert run["asked"][6]["titles"] == ["no (suggested)", "yes", "Leave out"]
    assert any(prompt.endswith("(that does not fit: it has at most 2 choices)") for prompt in prompts)
    review = run["asked"][-1]["titles"]
    assert review[:3] == [SEND, "Change City: Oslo", "Change people: 2"]
    assert review[5:] == ["Change class: (left out)", "Change meals: a, c", DECLINE]


def test_a_form_is_declined_before_it_and_at_its_end(forms: dict[str, dict[str, Any]]) -> None:  # issue 17
    assert forms["declined"]["heard"] == [{"action": "decline"}, {"action": "decline"}]


def test_a_form_that_is_left_sends_no_default(forms: dict[str, dict[str, Any]]) -> None:  # issue 17
    assert forms["left"]["heard"] == [{"action": "cancel"}, {"action": "cancel"}]


def test_optional_fields_can_all_be_left_out(forms: dict[str, dict[str, Any]]) -> None:  # issue 17
    assert forms["left out"]["heard"] == [{"action": "accept", "content": {}}]


def test_an_address_is_shown_whole_and_opened_only_by_a_choice(forms: dict[str, dict[str, Any]]) -> None:  # issue 17
    url = "https://example.com:8443/a?b=%2F#c"
    run = forms["an address"]
    (asked,) = run["asked"]
    assert asked["titles"] == ["Open example.com:8443", DECLINE]
    assert asked["prompt"].endswith(f"an address of the host example.com:8443: {url}")
    assert (run["heard"], run["opened"]) == ([{"action": "accept"}], [url])
    none = forms["addresses that are not opened"]
    assert (none["heard"], none["opened"]) == ([{"action": "decline"}, {"action": "cancel"}], [])
    assert forms["an address without a browser"]["heard"] == [{"action": "cancel"}]


def test_hostile_addresses_and_endless_forms_are_not_shown(forms: dict[str, dict[str, Any]]) -> None:  # issue 17
    for name in ("hostile addresses", "a thousand fields"):
        run = forms[name]
        assert run["heard"] == [{"action": "decline"}] * len(FORMS[name][0]), name
        assert not run["asked"] and not run["opened"], name


def test_hostile_words_are_a_line_and_no_key_is_typed_for_a_person(forms: dict[str, dict[str, Any]]) -> None:
    run = forms["hostile words"]
    assert run["heard"] == [{"action": "cancel"}]
    first, second = run["asked"][1:3]
    assert first["default"] == ""
    for one in (first, second):
        assert one["prompt"].isprintable()
        assert len(one["prompt"]) < 500
    assert "B\\u202eb\\u001b[2J" in second["prompt"]


CHECKS = """
local plugin, table_of, result = unpack(_G.arg)
vim.opt.runtimepath:prepend(plugin)
local approval = require('tamis.approval')
local read = {}
for _, case in ipairs(vim.json.decode(vim.fn.readblob(table_of), { luanil = { object = true } })) do
  local value, wrong
  if case.typed then
    value, wrong = approval.read(case.field, case.typed)
  end
  table.insert(read, { value = value, wrong = wrong or '', typed = case.typed ~= nil })
end
local open = {}
for _, one in ipairs({ 'https://a.example/x|a.example', 'HTTPS://A.example|a.example', 'http://[::1]:8/|[::1]:8', 'https://a@b.example/|b.example',
  [[https://a.example\\@b.example/|a.example]], 'javascript:alert(1)|a', 'file:///etc/passwd|', 'https://a.example/ b|a.example', 'https://a.example/|b.example', '-x|x' }) do
  local url, host = one:match('^(.*)|(.*)$')
  table.insert(open, approval.openable(url, host))
end
vim.fn.writefile({ vim.json.encode({ read = read, open = open }) }, result)
vim.cmd('qall!')
"""


@pytest.fixture(scope="module")
def checked(neovim: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("checks")
    (folder / "checks.lua").write_text(CHECKS)
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(folder / "checks.lua"), str(PLUGIN)]
    subprocess.run([*command, str(TABLE), str(folder / "seen.json")], check=True)
    return json.loads((folder / "seen.json").read_text("utf-8"))


def test_what_is_typed_fits_or_is_told_as_the_server_tells_it(checked: dict[str, Any]) -> None:  # issue 17
    for case, read in zip(json.loads(TABLE.read_text("utf-8")), checked["read"], strict=True):
        if read["typed"]:
            assert read["wrong"] == case["wrong"], case
            assert case["wrong"] or read.get("value") == case["value"], case


def test_only_http_addresses_of_the_shown_host_are_opened(checked: dict[str, Any]) -> None:  # issue 17
    assert checked["open"] == [True, True, True, *[False] * 7]
