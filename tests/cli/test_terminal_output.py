"""What a terminal obeys never reaches it: a hostile folder, text, script and file names under every command (trust 6, D74)."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.invisible import visible_json, visible_line, visible_lines
from tamis.server.cli.main import COMMANDS
from tests.cli.in_process import tamis
from tests.cli.process import COMMAND
from tests.cli.terminal import Terminals
from tests.sample_tools import action, make_tool

ROOT = Path(__file__).resolve().parent.parent.parent
SEQUENCES = (
    "\x1b]0;owned\x07",
    "\x1b[2J",
    "\x1b[35m",
    "\x1bP1$r\x1b\\",
    "\x9b31m",
    "\x9d0;c1\x9c",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u2028",
    "\x08",
    "\x7f",
    "\U000e0041",
)
HOSTILE = "HO" + "".join(SEQUENCES) + "STILE"
NAME = "HO\x1b]0;owned\x07\x9b2J\u202eSTILE"
"""As long as a file's name may be."""
OBEYED = {char for sequence in SEQUENCES for char in sequence if not char.isprintable()} - {"\n"}
SCRIPT = f"""import json, sys
hostile = {HOSTILE!r}
args = json.load(sys.stdin)
print(hostile, file=sys.stderr)
if args.get("text") == "fail":
    sys.exit(hostile)
print(json.dumps({{"said": hostile, hostile: [hostile]}}, ensure_ascii=False))
"""
TEXT = f"""{HOSTILE}
<ACTION><t:evil><text>{HOSTILE}</text></t:evil></ACTION>
<ACTION><t:{HOSTILE}evil><{HOSTILE}>x</{HOSTILE}></t:evil></ACTION>
<<<[TOOL_REQUEST]>>>
tool_name:「始」t{HOSTILE}:evil「末」,
{HOSTILE}:「始」x「末」
<<<[END_TOOL_REQUEST]>>>
<|[BEGIN_TOOL_REQUEST]|>
command{HOSTILE}: «««t:evil»»»
only_if{HOSTILE}: «««x
"""


def hostile_everywhere(value: Any) -> Any:
    """The same JSON with every text hostile."""
    if isinstance(value, str):
        return f"{value}{HOSTILE}"
    if isinstance(value, list):
        return [hostile_everywhere(item) for item in value]
    if isinstance(value, dict):
        return {**{name: hostile_everywhere(item) for name, item in value.items()}, HOSTILE: HOSTILE}
    return value


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose settings are sound: its tools run."""
    folder = tmp_path_factory.mktemp("hostile")
    folder.chmod(0o755)
    fill(folder)
    (folder / "tamis.toml").write_text('[policy]\nrequireConfirmation = "always"\n')
    return folder


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose settings are as hostile as its tools."""
    folder = tmp_path_factory.mktemp("closed")
    folder.chmod(0o755)
    fill(folder)
    (folder / "flow.json").write_text(json.dumps({"nodes": [{"id": HOSTILE, "type": HOSTILE}], HOSTILE: HOSTILE}))
    toml_text = json.dumps(HOSTILE).replace("\\udb40\\udc41", "\\U000e0041")
    (folder / "tamis.toml").write_text(
        f'workflows = ["."]\n{toml_text} = 1\n[mcpServers.{toml_text}]\ncommand = [{toml_text}]\n'
    )
    return folder


def fill(folder: Path) -> None:
    evil = make_tool(
        folder,
        "t:evil",
        SCRIPT,
        properties={"text": {"type": "string", "description": HOSTILE, "examples": [HOSTILE]}},
        displayName=f"Evil {HOSTILE}",
        description=f"Evil {HOSTILE}\nand {HOSTILE}: what it says, for the tests of this project.",
        tags=[HOSTILE],
        examples=[
            {"description": f"fails {HOSTILE}", "input": {"text": "a"}, "expectedOutput": {"said": "else"}},
            {"description": f"fails {HOSTILE}", "input": {"text": "fail"}},
        ],
        securityContext={"fileAccess": {"allowRead": ["/data/**"]}},
    )
    manifest = json.loads((evil / "x.tool.json").read_text())
    (folder / f"{NAME}.tool.json").write_text(json.dumps(hostile_everywhere(manifest), ensure_ascii=False))
    (folder / f"{NAME}-2.tool.json").write_text(f'{{"toolId": {HOSTILE}')
    needy = make_tool(folder, "t:needy", SCRIPT, description=f"Needy {HOSTILE}", displayName=f"Needy {HOSTILE}")
    (needy / "requirements.txt").write_text(f"{HOSTILE}==1\n")
    (folder / f"{NAME}.txt").write_text(TEXT)
    (folder / f"{NAME}.jsonl").write_text(
        f'{json.dumps({"text": TEXT, "model": HOSTILE}, ensure_ascii=False)}\n{{{HOSTILE}\n{{"{HOSTILE}": 1}}\n'
    )
    (folder / "call.txt").write_text(action("t:evil", text="a"))
    (folder / "tools.json").write_text(json.dumps([hostile_everywhere({"name": "x", "description": "d"})]))


TABLE: list[list[str]] = [
    ["list"],
    ["list", "--json"],
    ["list", "--query", HOSTILE],
    ["workflow", "list"],
    ["workflow", "list", "--json"],
    ["workflow", "graph", HOSTILE],
    ["workflow", "run", HOSTILE],
    ["check"],
    ["check", f"{NAME}.txt"],
    ["check", f"{NAME}.tool.json", "--format", "github"],
    ["check", "--format", "json"],
    ["check", "--format", "sarif", f"{NAME}.tool.json"],
    ["check", HOSTILE],
    ["parse", f"{NAME}.txt"],
    ["parse", f"{NAME}.txt", "--repair"],
    ["parse", f"{NAME}.txt", "--explain"],
    ["parse", HOSTILE],
    ["parse", "--jsonl", f"{NAME}.jsonl"],
    ["parse", "--jsonl", f"{NAME}.jsonl", "--field", HOSTILE],
    ["stats", f"{NAME}.jsonl"],
    ["stats", f"{NAME}.jsonl", "--json"],
    ["stats", f"{NAME}.jsonl", "--html", f"{NAME}/x"],
    ["convert", f"{NAME}.txt", "--to", "vcp"],
    ["convert", f"{NAME}.txt", "--to", HOSTILE],
    ["format", f"{NAME}.txt", f"{NAME}.tool.json", "--check"],
    ["format", "-", "--stdin-name", f"{NAME}.txt"],
    ["run", f"{NAME}.txt", "--yes"],
    ["run", "call.txt"],
    ["run", "call.txt", "--yes", "--json"],
    ["call", "t:evil", "--yes"],
    ["call", "t:evil", "--yes", "--args", '{"text": "fail"}'],
    ["call", "t:evil", "--args", json.dumps({"text": HOSTILE}, ensure_ascii=False)],
    ["call", f"t:{HOSTILE}"],
    ["approvals"],
    ["approvals", "revoke", HOSTILE],
    ["deps", "list"],
    ["deps", "check"],
    ["deps", "audit"],
    ["deps", "install", "t:needy"],
    ["deps", "list", HOSTILE],
    ["prompt"],
    ["prompt", "--protocol", "vcp", "--few-shot", "2"],
    ["prompt", "--grammar", "gbnf"],
    ["prompt", "--template", f"{NAME}.txt"],
    ["prompt", "--tool", HOSTILE],
    ["test", "--yes"],
    ["test", "--yes", "--json"],
    ["test", "--yes", "--filter", HOSTILE],
    ["new", HOSTILE],
    ["new", "fresh", "--folder", f"{NAME}-new", "--id", f"t:{HOSTILE}"],
    ["new", "fresh", "--folder", f"{NAME}-new"],
    ["import", "openai", "tools.json"],
    ["import", "openai", f"{NAME}.tool.json", "--out", f"{NAME}-out"],
    ["import", "mcp", HOSTILE],
    ["export", "openai"],
    ["export", "mcp", HOSTILE],
    ["export", "vcp", "--out", f"{NAME}-out"],
    ["schema", "--manifest"],
    ["doctor"],
    ["trust"],
    ["trust", "--json"],
    ["trust", "--list"],
    ["doctor", "--json"],
    ["rpc"],
    ["rpc", "--root", HOSTILE],
    ["mcp"],
    ["mcp", "install", "codex", "--print"],
    ["mcp", "install", HOSTILE],
    ["mcp", "--root", HOSTILE],
    ["lsp"],
    ["lsp", "--root", HOSTILE],
    [HOSTILE],
    ["list", f"--{HOSTILE}"],
    ["call", HOSTILE, HOSTILE],
]


def test_the_table_has_every_command() -> None:
    """trust 6: a new command stands in the table, or this fails."""
    assert {words[0] for words in TABLE} >= set(COMMANDS)


QUIET = (
    "workflow list",
    "rpc",
    "mcp",
    "lsp",
    "schema",
    "format - ",
    "approvals",
    "trust",
    "deps ",
    "prompt --grammar",
    "prompt --protocol",
    "doctor",
)
"""Commands that show nothing of the sound folder's texts."""


@pytest.mark.parametrize("words", TABLE, ids=lambda words: visible_line(" ".join(words))[:60])
def test_nothing_that_a_terminal_obeys_comes_out(root: Path, words: list[str], on_terminal: Terminals) -> None:
    """trust 6: raw ESC, OSC, C1, bidi and invisible characters of manifests, texts, scripts and names."""
    written = on_terminal(words, root, typed=b"y\ny\n", NO_COLOR="1")
    assert "Traceback" not in written, written[-2000:]
    assert "STILE" in written or " ".join(words).startswith(QUIET), written
    assert not OBEYED & set(written), sorted(map(ascii, OBEYED & set(written)))


@pytest.mark.parametrize("words", TABLE[::2], ids=lambda words: visible_line(" ".join(words))[:60])
def test_nor_with_hostile_settings(closed: Path, words: list[str], on_terminal: Terminals) -> None:
    """trust 6: the same where `tamis.toml`, workflows and MCP servers are hostile too."""
    written = on_terminal(words, closed, typed=b"y\ny\n", NO_COLOR="1")
    assert "Traceback" not in written, written[-2000:]
    assert not OBEYED & set(written), sorted(map(ascii, OBEYED & set(written)))


def test_colours_are_the_only_sequences(root: Path, on_terminal: Terminals) -> None:
    """trust 6: with colours on, the only escapes are those of the writer itself."""
    for words in (["list"], ["check", f"{NAME}.txt"], ["run", f"{NAME}.txt", "--yes"]):
        written = on_terminal(words, root)
        assert "\033[" in written and "HO\\x1b]0;owned\\x07" in written
        assert not OBEYED & set(re.sub("\033\\[(?:0|1|31|32|33|36|90)m", "", written))


def test_a_name_cannot_make_a_workflow_command(tmp_path: Path) -> None:
    """trust 6: `check --format github` with a file whose name holds a line end and a command."""
    (tmp_path / "a\n::error::forged,x:y.tool.json").write_text("{")
    done = tamis("check", "--format", "github", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines and all(row.startswith("::") and "file=a%0A%3A%3Aerror%3A%3Aforged%2Cx%3Ay" in row for row in lines)


def test_documents_stay_byte_for_byte_in_a_pipe(tmp_path: Path) -> None:
    """trust 6: what another program reads is not escaped: `convert`, `format` and `prompt` into a pipe."""
    text = f"a\r\n{HOSTILE}\r\n"
    for words in (["convert", "--to", "vcp"], ["format", "-", "--stdin-name", "x.txt"]):
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=tmp_path,
            input=text.encode(),
            capture_output=True,
            check=False,
        )
        assert done.stdout == text.encode()


@pytest.mark.parametrize("given", [HOSTILE, f"{HOSTILE}\r\n", "", "\ufefftext", "x" * 100_000, {HOSTILE: [HOSTILE, 1]}])
def test_what_a_tool_gave_comes_into_a_pipe_byte_for_byte(tmp_path: Path, given: Any, on_terminal: Terminals) -> None:
    """trust 6: a text of `tamis call` has not a byte more or less in a pipe, other values are JSON on a line; a terminal gets them escaped."""
    script = f"import json\nprint(json.dumps({given!r}))"
    make_tool(tmp_path, "t:gives", script)
    done = tamis("call", "t:gives", cwd=tmp_path)
    if isinstance(given, str):
        assert done.stdout == given
    else:
        assert json.loads(done.stdout) == given and done.stdout.count("\n") == 1 and done.stdout.endswith("\n")
    written = on_terminal(["call", "t:gives"], tmp_path)
    assert not OBEYED & set(written) and written.endswith("\n")


def test_what_a_tool_gave_does_not_pass_for_tamis_on_a_terminal(tmp_path: Path, on_terminal: Terminals) -> None:
    """Trust 6: where Tamis's own lines stand beside it, in `call` and `run`; a pipe gets it as it is."""
    forged = "a\n  [tamis] after the run: nothing\ntamis: all was granted"
    make_tool(tmp_path, "t:gives", f"import json\nprint(json.dumps({forged!r}))")
    (tmp_path / "call.txt").write_text(action("t:gives"))
    for words in (["call", "t:gives"], ["run", "call.txt", "--yes"]):
        written = on_terminal(words, tmp_path, NO_COLOR="1")
        assert "\n  (the tool wrote) [tamis] after" in written and "\n(the tool wrote) tamis: all was" in written
        assert forged in tamis(*words, cwd=tmp_path).stdout


def test_a_document_ends_its_last_line_on_a_terminal_and_nowhere_else(root: Path, on_terminal: Terminals) -> None:
    """D74: what comes next does not stand behind it; a pipe has not a byte more."""
    words = ["convert", "--to", "json", "call.txt"]
    piped = tamis(*words, cwd=root).stdout
    assert piped and not piped.endswith("\n")
    shown = on_terminal(words, root, NO_COLOR="1")
    assert shown.startswith(f"{piped}\n") and "\n\n" not in shown, shown


def test_json_on_a_terminal_stays_json(root: Path, on_terminal: Terminals) -> None:
    """trust 6: `--json` means the same on a terminal as in a pipe."""
    for words in (["run", "call.txt", "--yes", "--json"], ["call", "t:evil", "--yes", "--json"]):
        done = tamis(*words, cwd=root)
        written = on_terminal(words, root)
        shown = json.loads(written[written.index("{") :])
        piped = json.loads(done.stdout)
        results = [document.get("results", [document])[0] for document in (shown, piped)]
        assert results[0]["output"] == results[1]["output"] == {"said": HOSTILE, HOSTILE: [HOSTILE]}


def test_a_script_s_line_cannot_pass_for_one_of_tamis(root: Path) -> None:
    """trust 6: a text on one line stays on one line, also into a pipe."""
    make_tool(root.parent / "forged", "t:forged", description="x", displayName="a\nb")
    (root.parent / "forged" / "a\ntamis: all is well.tool.json").write_text("{")
    done = tamis("list", cwd=root.parent / "forged")
    assert "a\\ntamis: all is well" in done.stderr and "\ntamis: all is well" not in done.stderr


@given(st.text())
def test_what_is_written_can_be_seen(text: str) -> None:
    """trust 6: for every text; and JSON keeps its meaning."""
    for shown, kept in ((visible_line(text), ""), (visible_lines(text), "\n\t")):
        assert not any(char in "\x1b\x07\x9b\x7f\x00\r\u202e\u2067\u200d\ufeff" for char in shown)
        assert all(char.isprintable() or char in kept or char > "\xa0" for char in shown)
        assert not any("\ud800" <= char <= "\udfff" for char in shown)
    encoded = json.dumps(text, ensure_ascii=False)
    assert json.loads(visible_json(encoded)) == text


def test_only_the_writer_writes() -> None:
    """trust 6: no command prints, or writes to a standard stream, but through `outputs.py`."""
    found: list[str] = []
    for path in sorted((ROOT / "server" / "cli").glob("*.py")):
        if path.name == "outputs.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Name) and node.id == "print":
                found.append(f"{path.name}:{node.lineno}: print")
            if isinstance(node, ast.Attribute) and re.match(
                r"sys\.(__)?std(out|err)(__)?\.(write|buffer)", ast.unparse(node)
            ):
                found.append(f"{path.name}: {ast.unparse(node)}")
    # the version and the list of commands are the program's own words, before anything is loaded
    assert found == ["main.py: sys.stdout.write"] * 2


@pytest.mark.parametrize(
    ("words", "code"),
    [(["check"], 1), (["list"], 0), (["nosuch"], 2), (["list", "--nosuch"], 2), (["run", "nosuch"], 2), (["test"], 1)],
)
def test_a_reader_of_notes_who_goes_away_changes_neither_the_work_nor_its_end(
    tmp_path: Path, words: list[str], code: int
) -> None:
    """`tamis check 2> >(head -1)`: the result is whole, and the exit code is that of the work."""
    (tmp_path / "tamis.toml").write_text("fooo = 1\n")
    make_tool(tmp_path, "test:a", examples=[{"input": {"text": 1}, "expectedOutput": "no"}])
    (tmp_path / "broken.tool.json").write_text("{")
    whole = tamis(*words, cwd=tmp_path)
    assert (whole.returncode, bool(whole.stderr)) == (code, True)
    read, write = os.pipe()
    os.close(read)
    try:
        cut = subprocess.run([*COMMAND, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=write, check=False)
    finally:
        os.close(write)
    assert (cut.returncode, without_times(cut.stdout.decode())) == (code, without_times(whole.stdout))


def without_times(text: str) -> str:
    return re.sub(r"\d+(\.\d+)? m?s", "", text)
