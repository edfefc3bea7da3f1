"""Running from the editor, over the wire, with real sandboxes: lenses, commands, approvals, results (W of editors.md ring 0; V66, D93)."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.lsp.editor import EVERYTHING, KEEP, Editor, all_end, children
from tests.lsp.lsp_client import edit
from tests.runtime.mcp_calls import make
from tests.sample_tools import action, make_tool, tam, vcp
from tests.waiting import until

SAMPLE = Path(__file__).parent.parent / "protocols" / "seed_manifest.jsonc"
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(86_400)\n"
FAILS = "def inner():\n    raise ValueError('no such thing')\n\n\ninner()\n"
WRITES = {"fileAccess": {"allowWrite": ["./out/**"]}}
EXAMPLES = [
    {"description": "Says a.", "input": {"text": "a"}, "expectedOutput": {"text": "a"}},
    {"description": "Says b.", "input": {"text": "a"}, "expectedOutput": {"text": "b"}},
]


def tools(folder: Path) -> Path:
    make_tool(folder, "t:once")
    make_tool(folder, "t:echo", examples=EXAMPLES)
    make_tool(folder, "t:sleep", SLEEPS)
    make_tool(folder, "t:fail", FAILS)
    make_tool(folder, "t:ask", execution={"requireConfirmation": True})
    make_tool(folder, "t:grant", execution={"requireConfirmation": True})
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tools that no test changes."""
    return tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture
def own_root(tmp_path: Path) -> Path:
    """A folder with the same tools for one test alone."""
    return tools(tmp_path)


@pytest.fixture(scope="module")
def session(root: Path) -> Iterator[Editor]:
    with Editor(cwd=root) as client:
        client.start(root, EVERYTHING)
        yield client
        assert client.stop() == 0


@pytest.fixture
def editor(session: Editor) -> Iterator[Editor]:
    """One session for all tests that leave it as it was; documents and results are put away after each."""
    session.forget()
    yield session
    session.replies = {}
    session.close_all()
    session.call("workspace/executeCommand", {"command": "tamis.clearResults"})


def fresh(root: Path, **settings: Any) -> Editor:
    """A session of a test's own."""
    client = Editor(cwd=root)
    client.start(root, EVERYTHING, {"settings": settings})
    return client


def opened(editor: Editor, root: Path, text: str, name: str = "talk.md") -> str:
    uri = (root / name).as_uri()
    editor.open(uri, text)
    return uri


def manifest(editor: Editor, root: Path, tool: str = "t_echo") -> str:
    path = root / tool / "x.tool.json"
    editor.open(path.as_uri(), path.read_text("utf-8"), "json")
    return path.as_uri()


def titles(editor: Editor, uri: str) -> list[str]:
    return [lens["command"]["title"] for lens in editor.lenses(uri)]


# What runs


def test_the_run_lens_runs_the_call_and_the_result_is_a_document(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, "Say it. 🚄\n\n" + action("t:echo", text="你好") + "\n")
    run = editor.run(editor.lens(uri, "▶ Run"))
    assert run["status"] == "success"
    assert run["results"][0]["output"] == {"text": "你好"}
    assert run["observation"] == 'Observation: Tool t:echo executed successfully. Result: {"text": "你好"}'
    assert run["exitCode"] == 0
    assert editor.questions("window/showDocument") == [{"uri": run["resultUri"], "takeFocus": False}]
    text = editor.call("workspace/textDocumentContent", {"uri": run["resultUri"]})["text"]
    assert json.loads(text)["run"]["results"][0]["sandbox"]["backend"] in ("bubblewrap", "nsjail")
    assert any(title.startswith("✓ ") and '{"text":"你好"}' in title for title in titles(editor, uri))
    assert editor.questions("workspace/codeLens/refresh")


def test_each_step_of_a_block_can_be_run_alone(editor: Editor, root: Path) -> None:
    block = tam({"command": "t:echo", "text": "one"}, {"command": "t:echo", "text": "two"})
    uri = opened(editor, root, block)
    run = editor.run(editor.lens(uri, "▶ Run step 2"))
    assert [result["output"] for result in run["results"]] == [{"text": "two"}]
    assert [result["output"] for result in editor.run(editor.lens(uri, "▶ Run 2 calls"))["results"]] == [
        {"text": "one"},
        {"text": "two"},
    ]


def test_pressing_run_again_runs_again_whatever_the_request_id_says(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, vcp("t:echo", request_id="r1", text="a"))
    command = editor.lens(uri, "▶ Run")
    assert [editor.run(command)["results"][0]["replayed"] for _ in range(2)] == [False, False]


def test_a_dry_run_checks_and_starts_nothing(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:sleep"))
    run = editor.run(editor.lens(uri, "Dry run"))
    assert run["results"][0]["output"] == {"dryRun": True, "args": {}}
    assert run["results"][0]["attempts"] == 0
    assert not any(title.startswith("✓") for title in titles(editor, uri))


def test_what_a_run_logs_goes_to_the_editors_log_at_its_level(own_root: Path) -> None:  # editors, defect 12
    with fresh(own_root) as editor:
        run = editor.run(editor.lens(opened(editor, own_root, action("t:echo", text="a")), "▶ Run"))
        assert run["status"] == "success"
        (line,) = (one for one in editor.told("window/logMessage") if "call.ended" in one["message"])
        assert line["type"] == 3


def test_a_dry_run_asks_nobody_and_says_that_a_run_would(editor: Editor, root: Path) -> None:  # editors, defect 16
    uri = opened(editor, root, action("t:ask", text="a"))
    run = editor.run(editor.lens(uri, "Dry run"))
    assert run["results"][0]["output"] == {"dryRun": True, "args": {"text": "a"}, "asks": True}
    assert not editor.questions("window/showMessageRequest")


def test_a_result_begins_with_its_output_and_is_named_after_what_ran(
    editor: Editor, root: Path
) -> None:  # editors, defect 8
    uri = opened(editor, root, action("t:echo", text="你好"))
    run = editor.run(editor.lens(uri, "▶ Run"))
    title = unquote(run["resultUri"].rpartition("/")[2])
    assert re.fullmatch(r"t:echo · ✓ \d+ ms\.json", title)
    text = editor.call("workspace/textDocumentContent", {"uri": run["resultUri"]})["text"]
    assert list(json.loads(text))[:2] == ["outcome", "output"]
    assert text.split("\n")[2:4] == ['  "output": {', '    "text": "你好"']


def test_a_lens_that_is_complete_comes_back_from_resolve_as_it_was(
    editor: Editor, root: Path
) -> None:  # editors, defect 13
    uri = opened(editor, root, action("t:echo", text="a"))
    whole = next(
        one for one in editor.call("textDocument/codeLens", {"textDocument": {"uri": uri}}) if "command" in one
    )
    assert editor.call("codeLens/resolve", whole) == whole


def test_each_block_of_a_text_runs_by_itself(editor: Editor, root: Path) -> None:  # editors, defect 7
    uri = opened(editor, root, "\n\n".join(action("t:echo", text=name) for name in ("one", "two")))
    found = [lens["command"] for lens in editor.lenses(uri) if lens["command"]["title"] == "▶ Run"]
    assert [editor.run(one)["results"][0]["output"] for one in found] == [{"text": "one"}, {"text": "two"}]


def test_an_example_is_held_against_its_expected_output(editor: Editor, root: Path) -> None:  # D42, D93
    uri = manifest(editor, root)
    assert editor.run(editor.lens(uri, "▶ Run example 1"))["passed"] is True
    failed = editor.run(editor.lens(uri, "▶ Run example 2"))
    assert (failed["status"], failed["passed"], failed["expected"]) == ("success", False, {"text": "b"})
    said = failure(editor, uri)
    assert said is not None
    assert said["message"] == 'examples[1] did not give its expectedOutput: it gave {"text":"a"}'


def test_both_examples_of_the_seeds_sample_pass_as_in_tamis_test(tmp_path: Path) -> None:  # D44, seed 003 §2.2.3
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "echo.py").write_text(
        "import json, sys\nprint(json.dumps({'received_message': json.load(sys.stdin)['message']}))"
    )
    (tmp_path / "examples" / "long_running.py").write_text(SLEEPS)
    (tmp_path / "x.tool.json").write_text(SAMPLE.read_text("utf-8"), encoding="utf-8")
    with fresh(tmp_path) as editor:
        uri = manifest(editor, tmp_path, "")
        tested = editor.run(editor.lens(uri, "▶ Test all examples"))
        assert (tested["passed"], tested["failed"]) == (2, 0), tested
        assert [run["status"] for run in tested["runs"]] == ["success", "timeout"]
        assert all(run["outcome"].startswith("✓") for run in tested["runs"])
        assert failure(editor, uri) is None
        assert sum(title.startswith("✓") for title in titles(editor, uri)) == 2
        assert editor.stop() == 0


def test_an_example_may_expect_a_failure_or_a_part(own_root: Path) -> None:  # D44
    wants = {"success": False, "error": {"type": "ScriptError", "details": "no such thing"}}
    other = {"success": False, "error": {"type": "TimeoutError"}}
    errors = [{"input": {}, "expectedOutput": wants}, {"input": {}, "expectedOutput": other}]
    make_tool(own_root, "t:wrong", FAILS.replace("raise", "import sys; sys.exit('no such thing')  #"), examples=errors)
    part = {"input": {"text": "a", "more": "b"}, "expectedOutput": {"text": "a"}}
    texts = {name: {"type": "string"} for name in ("text", "more")}
    make_tool(own_root, "t:part", examples=[{**part, "x-match": "partial"}, part], properties=texts)
    with fresh(own_root) as editor:
        for name in ("t_wrong", "t_part"):
            uri = manifest(editor, own_root, name)
            runs = editor.run(editor.lens(uri, "▶ Test all examples"))["runs"]
            assert [run["passed"] for run in runs] == [True, False], (name, runs)
        assert editor.stop() == 0


def test_all_examples_are_tested_one_after_the_other(editor: Editor, root: Path) -> None:
    tested = editor.run(editor.lens(manifest(editor, root), "▶ Test all examples"))
    assert (tested["passed"], tested["failed"]) == (1, 1)
    assert tested["outcome"] == "✗ 1 of 2 examples passed"
    assert [run["example"] for run in tested["runs"]] == [0, 1]


def test_a_call_with_wrong_arguments_says_what_a_model_would_read(editor: Editor, root: Path) -> None:
    run = editor.run(editor.lens(opened(editor, root, action("t:echo", txet="a")), "▶ Run"))
    assert run["observation"] == (
        "Observation: Error - Invalid parameters for t:echo: Unknown parameter 'txet', did you mean 'text'?"
    )
    assert run["exitCode"] is None


def test_two_runs_at_once_both_end(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:sleep") + "\n")
    other = opened(editor, root, action("t:echo", text="b"), "other.md")
    slow = editor.command(editor.lens(uri, "▶ Run"), token="slow")
    editor.until(lambda one: one.get("method") == "$/progress")
    assert editor.run(editor.lens(other, "▶ Run"))["status"] == "success"
    editor.notify("$/cancelRequest", {"id": slow})
    assert editor.answer(slow)["result"]["status"] == "cancelled"


def test_a_tool_that_takes_too_long_is_killed(root: Path) -> None:
    with fresh(root, execution={"timeoutMs": 300}) as editor:
        run = editor.run(editor.lens(opened(editor, root, action("t:sleep")), "▶ Run"))
    assert run["status"] == "timeout"
    assert "TimeoutError" in run["outcome"]


def test_what_is_not_saved_runs_as_it_is_shown_and_is_said(editor: Editor, root: Path) -> None:
    uri = manifest(editor, root)
    text = (root / "t_echo" / "x.tool.json").read_text("utf-8")
    editor.change(uri, {"text": text.replace('"text": {', '"word": {').replace('"text": "a"', '"word": "a"')})
    run = editor.run(editor.lens(uri, "▶ Run example 1"))
    assert run["results"][0]["output"] == {"word": "a"}
    assert run["notes"] == ["t:echo ran with its manifest as it stands in the editor, which is not saved"]
    script = root / "t_echo" / "tool.py"
    editor.open(script.as_uri(), "print(1)\n", "python")
    editor.change(uri, {"text": text})
    assert editor.run(editor.lens(uri, "▶ Run example 1"))["notes"] == [
        "the script of t:echo is not saved; the file on disk was run"
    ]


def test_a_run_waits_for_the_tools_of_its_folder(root: Path) -> None:
    with Editor(cwd=root) as editor:
        editor.call("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": {}})
        editor.notify("initialized", {})
        text = action("t:echo", text="early")
        uri = opened(editor, root, text)
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": len(text)}}
        early = {"command": "tamis.run", "arguments": [{"uri": uri, "range": span, "text": text}]}
        assert editor.run(early)["results"][0]["output"] == {"text": "early"}


def test_a_script_that_was_missing_is_looked_for_again(own_root: Path) -> None:
    script = own_root / "t_echo" / "tool.py"
    text = script.read_text("utf-8")
    script.unlink()
    with fresh(own_root) as editor:
        uri = opened(editor, own_root, action("t:echo", text="a"))
        missing = editor.run(editor.lens(uri, "▶ Run"))
        assert missing["results"][0]["error"]["type"] == "ScriptError"
        script.write_text(text, "utf-8")
        assert editor.run(editor.lens(uri, "▶ Run"))["status"] == "success"


def test_the_examples_of_the_example_tools_pass(tmp_path: Path) -> None:
    examples = Path(__file__).resolve().parents[2] / "examples"
    with Editor(cwd=tmp_path) as editor:
        editor.start(examples, EVERYTHING)
        for name in ("units-convert", "text-statistics"):
            path = next((examples / "tools" / name).glob("*.tool.json"))
            editor.open(path.as_uri(), path.read_text("utf-8"), "json")
            tested = editor.run(editor.lens(path.as_uri(), "▶ Test"))
            assert tested["passed"] == len(tested["runs"]), tested["outcome"]
        path = examples / "transcripts" / "vcp.md"
        editor.open(path.as_uri(), path.read_text("utf-8"))
        run = editor.run(editor.lens(path.as_uri(), "▶ Run"))
        assert (run["status"], run["toolIds"]) == ("success", ["units:convert"])


# What does not run


def test_only_the_text_that_was_shown_is_run(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:echo", text="a") + "\nafter\n")
    command = editor.lens(uri, "▶ Run")
    editor.change(uri, edit((1, 0), (1, 5), "behind"))
    assert editor.run(command)["status"] == "success"  # elsewhere the document may change
    editor.change(uri, edit((0, 22), (0, 23), "b"))
    assert editor.refused(command)["code"] == -32801
    editor.change(uri, {"text": "x\n" + action("t:echo", text="a")})
    assert editor.refused(command)["code"] == -32801


def test_the_shown_text_is_named_by_digest_text_or_version(editor: Editor, root: Path) -> None:
    call = action("t:echo", text="a")
    uri = opened(editor, root, call)
    command = editor.lens(uri, "▶ Run")
    plain = {key: value for key, value in command["arguments"][0].items() if key in ("uri", "range")}
    bare = {"command": "tamis.run", "arguments": [plain]}
    assert editor.refused(bare)["code"] == -32602
    assert editor.run(bare, text=call)["status"] == "success"
    assert editor.refused(bare, text=call + " ")["code"] == -32801
    assert editor.run(bare, version=1)["status"] == "success"
    assert editor.refused(bare, version=2)["code"] == -32801
    point = {"start": {"line": 0, "character": 12}, "end": {"line": 0, "character": 12}}
    assert editor.run(bare, version=1, range=point)["status"] == "success"  # the call under the cursor


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give the 'uri'"),
        ([{"uri": "file:///nowhere.md"}], "is not open"),
        ([{"uri": 7}], "Expected `str`"),
        ([{}, {}], "takes one object"),
        (["file:///a.md"], "Expected `object`"),
        ([{"url": "x"}], "unknown field"),
    ],
)
def test_wrong_arguments_are_said_in_words(editor: Editor, arguments: list[Any], words: str) -> None:
    error = editor.fails("workspace/executeCommand", {"command": "tamis.run", "arguments": arguments})
    assert error["code"] == -32602
    assert words in error["message"]


def test_an_unknown_command_is_refused_with_a_suggestion(editor: Editor) -> None:
    error = editor.fails("workspace/executeCommand", {"command": "tamis.runn", "arguments": []})
    assert error == {"code": -32602, "message": "No command 'tamis.runn', did you mean 'tamis.run'?"}


def test_an_untrusted_workspace_is_analysed_and_nothing_runs(root: Path) -> None:
    with Editor(cwd=root) as editor:
        editor.start(root, EVERYTHING, {"trusted": False})
        call = action("t:echo", text="a")
        uri = opened(editor, root, call)
        shown = titles(editor, uri)
        assert "Trust the workspace to run" in shown
        assert not any("Run" in title for title in shown)
        arguments = editor.lens(uri, "Copy as…")["arguments"]
        for name in ("tamis.run", "tamis.dryRun"):
            error = editor.refused({"command": name, "arguments": arguments})
            assert (error["code"], error["data"]["code"]) == (1901, "notTrusted")
        explained = editor.run(editor.lens(uri, "Trust"))
        assert "not trusted" in explained["reason"]
        editor.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"trusted": True}}})
        editor.quiescent()
        assert editor.run(editor.lens(uri, "▶ Run"))["status"] == "success"


def test_running_and_lenses_can_be_switched_off(root: Path) -> None:
    with fresh(root) as editor:
        switched_off(editor, root)


def switched_off(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:echo", text="a"))
    command = editor.lens(uri, "▶ Run")
    editor.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"execution.enable": False}}})
    editor.quiescent()
    assert titles(editor, uri)[0] == "Running is switched off (execution.enable)"
    assert editor.refused(command)["code"] == -32803
    editor.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"codeLens": {"enable": False}}}})
    editor.quiescent()
    assert titles(editor, uri) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```\n" + vcp("t:echo", text="a") + "\n```\n", "it stands in an example"),
        ("<think>" + action("t:echo", text="a") + "</think>", "it stands in reasoning"),
        ("<ACTION><t:echo><text>cut", "is cut off"),
    ],
)
def test_a_call_that_would_not_run_says_why(editor: Editor, root: Path, text: str, why: str) -> None:
    uri = opened(editor, root, text)
    first = next(one["command"] for one in editor.lenses(uri) if one["command"]["command"] == "tamis.explain")
    assert first["title"].startswith("Not run: ")
    assert why in first["title"]
    bare = {"command": "tamis.run", "arguments": [{**first["arguments"][0]}]}
    del bare["arguments"][0]["reason"]
    answer = editor.answer(editor.command(bare))
    if "error" in answer:
        assert why in answer["error"]["message"]
    else:
        assert all(result["attempts"] == 0 for result in answer["result"]["results"])


# Progress and cancel


def test_progress_begins_and_ends_by_the_clients_token(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:echo", text="a"))
    editor.answer(editor.command(editor.lens(uri, "▶ Run"), token="mine"))
    told = [one["value"] for one in editor.told("$/progress") if one["token"] == "mine"]
    assert told[0] == {"kind": "begin", "title": "Running t:echo", "cancellable": True}
    assert told[-1]["kind"] == "end"
    assert told[-1]["message"].startswith("✓ t:echo")


def begun(editor: Editor) -> Any:
    """Waits for the begin of progress, and gives its token."""
    found = editor.until(lambda one: one.get("method") == "$/progress" and one["params"]["value"]["kind"] == "begin")
    return found["params"]["token"]


def starts(root: Path, editor: Editor) -> list[int]:
    """Starts a run that does not end; returns the processes of the run."""
    server = editor.process.pid if isinstance(editor.process, subprocess.Popen) else os.getpid()
    before = set(children(server))
    editor.start(root, EVERYTHING)
    editor.command(editor.lens(opened(editor, root, action("t:sleep")), "▶ Run"))
    begun(editor)
    return until(lambda: [one for one in children(server) if one not in before])


@pytest.mark.parametrize("way", ["request", "progress", "command"])
def test_a_run_can_be_cancelled_and_gives_its_result(editor: Editor, root: Path, way: str) -> None:
    block = tam({"command": "t:sleep"}, {"command": "t:echo", "text": "never"})
    uri = opened(editor, root, block)
    request = editor.command(editor.lens(uri, "▶ Run"))
    token = begun(editor)  # a token that the server made: the client was asked first
    assert editor.questions("window/workDoneProgress/create") == [{"token": token}]
    time.sleep(0.1)
    if way == "request":
        editor.notify("$/cancelRequest", {"id": request})
    elif way == "progress":
        editor.notify("window/workDoneProgress/cancel", {"token": token})
    else:
        assert editor.call("workspace/executeCommand", {"command": "tamis.cancel"})["cancelled"]
    answer = editor.answer(request)
    assert [result["status"] for result in answer["result"]["results"]] == ["cancelled", "cancelled"]
    assert editor.told("$/progress")[-1]["value"]["kind"] == "end"
    assert not [one for one in titles(editor, uri) if one.startswith("✓")]


def test_a_client_that_dies_leaves_nothing_behind(root: Path) -> None:
    with Editor(cwd=root) as editor:
        below = starts(root, editor)
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        assert editor.exit_code() == 1
        all_end(below)


def test_a_killed_server_leaves_nothing_behind(root: Path) -> None:
    with Editor(cwd=root, inside=False) as editor:
        below = starts(root, editor)
        editor.process.kill()
        all_end(below)


def test_exit_during_a_run_ends_at_once(root: Path) -> None:
    with Editor(cwd=root) as editor:
        below = starts(root, editor)
        editor.request("shutdown")
        editor.notify("exit")
        assert editor.exit_code() == 0
        all_end(below)


# Approvals


def asked(editor: Editor, root: Path, text: str | None = None) -> Any:
    uri = opened(editor, root, text or action("t:ask", text="rm -rf 🚄"))
    return editor.run(editor.lens(uri, "▶ Run"))


def choose(title: str | None) -> Any:
    return None if title is None else {"title": title}


@pytest.mark.parametrize(
    ("title", "status"),
    [("Allow once", "success"), ("Deny", "denied"), (None, "cancelled"), ("Something else", "cancelled")],
)
def test_the_user_is_asked_with_the_exact_arguments(editor: Editor, root: Path, title: str | None, status: str) -> None:
    editor.replies["window/showMessageRequest"] = choose(title)
    run = asked(editor, root)
    assert run["status"] == status
    (question,) = editor.questions("window/showMessageRequest")
    assert question["message"] == 'Run t:ask (low risk)? {"text":"rm -rf 🚄"}'
    assert [one["title"] for one in question["actions"]] == ["Allow once", "Deny", "More…"]


def by_more(title: str) -> Any:
    """A person who looks behind More…, and chooses there."""

    def answer(question: Any) -> Any:
        titles = [one["title"] for one in question["actions"]]
        return choose(title if title in titles else "More…")

    return answer


def test_the_other_answers_stand_behind_more(editor: Editor, root: Path) -> None:  # editors, defect 2
    answers = iter(["More…", "Back", "Deny"])
    editor.replies["window/showMessageRequest"] = lambda _: choose(next(answers))
    assert asked(editor, root)["status"] == "denied"
    few, more, again = editor.questions("window/showMessageRequest")
    titles = [one["title"] for one in more["actions"]]
    assert titles == ["Allow for this session", "Always allow", "Always deny", "Details", "Back"]
    assert more["message"] == 'Run t:ask with these arguments? {"text":"rm -rf 🚄"}'
    assert again == few


def test_nobody_says_yes_to_what_a_line_does_not_show(editor: Editor, root: Path) -> None:
    """A long argument may hold anything in its middle."""
    editor.replies["window/showMessageRequest"] = by_more("Allow once")
    uri = opened(editor, root, action("t:ask", text=f"echo {'a' * 400}; rm -rf; {'b' * 400}"))
    assert editor.run(editor.lens(uri, "▶ Run"))["status"] == "success"
    few, more = editor.questions("window/showMessageRequest")
    assert [one["title"] for one in few["actions"]] == ["Deny", "More…"]
    assert len(few["message"]) < 400
    assert "rm -rf" in more["message"]


def test_a_program_that_answers_more_and_back_ends_the_question(editor: Editor, root: Path) -> None:
    editor.replies["window/showMessageRequest"] = lambda question: question["actions"][-1]
    assert asked(editor, root)["status"] == "cancelled"
    assert len(editor.questions("window/showMessageRequest")) == 20


def test_how_long_a_person_thinks_is_not_how_long_a_run_takes(editor: Editor, root: Path) -> None:  # editors, defect 11
    def think(_: Any) -> Any:
        time.sleep(0.3)
        return choose("Allow once")

    editor.replies["window/showMessageRequest"] = think
    before = time.monotonic()
    run = asked(editor, root)
    taken = (time.monotonic() - before) * 1000
    assert run["status"] == "success"
    assert run["durationMs"] <= taken - 250
    assert run["results"][0]["durationMs"] <= taken - 250


def test_a_grant_for_the_session_is_not_asked_for_again(editor: Editor, root: Path) -> None:
    editor.replies["window/showMessageRequest"] = by_more("Allow for this session")
    uri = opened(editor, root, action("t:grant", text="a"))
    for _ in range(2):
        assert editor.run(editor.lens(uri, "▶ Run"))["status"] == "success"
    assert len(editor.questions("window/showMessageRequest")) == 2


def test_an_answer_for_always_is_the_same_for_every_face(own_root: Path) -> None:  # V61
    with fresh(own_root, policy={}) as editor:
        editor.replies["window/showMessageRequest"] = by_more("Always deny")
        assert [asked(editor, own_root)["status"] for _ in range(2)] == ["denied", "denied"]
        assert len(editor.questions("window/showMessageRequest")) == 2
    with fresh(own_root, policy={}) as editor:
        assert asked(editor, own_root)["status"] == "denied"
        assert not editor.questions("window/showMessageRequest")


def test_details_open_a_document_and_ask_again(editor: Editor, root: Path) -> None:
    answers = iter(["More…", "Details", "Back", "Allow once"])
    editor.replies["window/showMessageRequest"] = lambda _: choose(next(answers))
    assert asked(editor, root)["status"] == "success"
    (shown, _result) = [one["uri"] for one in editor.questions("window/showDocument")]
    details = json.loads(editor.call("workspace/textDocumentContent", {"uri": shown})["text"])
    assert details["args"] == {"text": "rm -rf 🚄"}


def test_a_client_that_asks_itself_is_given_the_request(root: Path) -> None:
    declared = {**EVERYTHING, "experimental": {"tamis": {"approval": "request"}}}
    with Editor(cwd=root) as editor:
        editor.call("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": declared})
        editor.notify("initialized", {})
        editor.replies["tool/requestApproval"] = {"outcome": "selected", "optionId": "allow"}
        assert asked(editor, root)["status"] == "success"
        (question,) = editor.questions("tool/requestApproval")
        assert question["args"] == {"text": "rm -rf 🚄"}
        kinds = ["allow_once", "allow_session", "allow_always", "reject_once", "reject_always"]
        assert [one["kind"] for one in question["options"]] == kinds
        editor.replies["tool/requestApproval"] = {"outcome": "cancelled"}
        assert asked(editor, root)["status"] == "cancelled"
        assert not editor.questions("window/showMessageRequest")


def test_where_nobody_can_be_asked_nothing_runs(root: Path) -> None:
    """Neither messages, nor anything that stands at a block."""
    with Editor(cwd=root) as editor:
        editor.start(root, {"workspace": {"executeCommand": {}}})
        editor.replies["window/showMessageRequest"] = RuntimeError("no such method")
        uri = opened(editor, root, action("t:ask", text="a"))
        run = editor.run(editor.lens(uri, "▶ Run"))
        assert run["status"] == "approvalUnavailable"
        assert "there is no one to ask for approval" in run["observation"]


def test_a_refused_message_leaves_the_question_at_its_block_until_its_time_is_over(
    own_root: Path,
) -> None:  # issue 17, 3
    with fresh(own_root, policy={"approvalTimeoutMs": 300}) as editor:
        editor.replies["window/showMessageRequest"] = RuntimeError("no such method")
        run = asked(editor, own_root)
        assert run["status"] == "approvalTimeout", "never allowed by nobody's answer"
        (message,) = (one["message"] for one in editor.told("window/showMessage") if "waits" in one["message"])
        assert message == "t:ask waits 1 s for your answer: choose one at its block, by a code action or a lens"
        assert not any("Allow" in title for title in titles(editor, run["uri"]))
        assert not editor.told("textDocument/publishDiagnostics")[-1]["diagnostics"], (
            "the finding is gone with the question"
        )


def test_an_answer_that_does_not_stand_at_the_block_is_none(editor: Editor, root: Path) -> None:  # issue 17, 3
    editor.replies["window/showMessageRequest"] = KEEP
    uri = opened(editor, root, action("t:ask", text="a"))
    request = editor.command(editor.lens(uri, "▶ Run"))
    editor.until(lambda one: one.get("method") == "window/showMessageRequest")
    command = editor.lens(uri, "✓ Allow once: t:ask")
    for option in ("always", "allow-all", "anything"):
        assert editor.refused(command, optionId=option)["code"] == 1401
    assert editor.run(editor.lens(uri, "✗ Deny: t:ask")) == {"answered": True}
    assert editor.answer(request)["result"]["status"] == "denied"


@pytest.mark.parametrize(
    "question",
    [
        {"message": "m", "requestedSchema": {"properties": {"a": {"type": "string"}}}},
        {"message": "m", "mode": "url", "elicitationId": "e", "url": "https://example.com/"},
    ],
    ids=["form", "address"],
)
def test_what_is_typed_or_opened_can_only_be_declined_at_its_block(tmp_path: Path, question: dict[str, Any]) -> None:
    """issue 17: a yes at the block would be one without values, or to an address that nobody saw."""
    make(tmp_path)
    path = tmp_path / "question.tool.json"
    listed = {"type": "object", "properties": {"questions": {"type": "array", "items": {"type": "object"}}}}
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"parameters": listed}))
    shows = {"experimental": {"tamis": {"approval": "request", "elicitation": True, "forms": True}}}
    with Editor(cwd=tmp_path) as editor:
        editor.start(tmp_path, EVERYTHING | shows)
        editor.replies["tool/requestApproval"] = KEEP
        uri = opened(editor, tmp_path, action("mcp:question", questions=json.dumps([question])))
        request = editor.command(editor.lens(uri, "▶ Run"))
        asked = editor.until(lambda one: one.get("method") == "tool/requestApproval")["params"]
        assert [option["optionId"] for option in asked["options"]] == ["accept", "decline"]
        assert [title for title in titles(editor, uri) if "→" in title] == ["→ Decline to answer: mcp:question"]
        command = editor.lens(uri, "→ Decline to answer")
        assert editor.refused(command, optionId="accept")["code"] == 1401
        assert editor.run(command) == {"answered": True}
        assert json.loads(editor.answer(request)["result"]["results"][0]["output"])["heard"] == [{"action": "decline"}]


def test_a_question_goes_from_its_block_when_the_text_is_another(editor: Editor, root: Path) -> None:  # issue 17, 3
    """What is asked about is not what stands there now."""
    editor.replies["window/showMessageRequest"] = RuntimeError("no such method")
    uri = opened(editor, root, action("t:ask", text="a"))
    request = editor.command(editor.lens(uri, "▶ Run"))
    editor.until(lambda one: "t:ask waits" in str(one))
    editor.change(uri, edit((0, 0), (0, len(action("t:ask", text="a"))), action("t:ask", text="b")))
    assert not any("Allow" in title for title in titles(editor, uri))
    editor.notify("$/cancelRequest", {"id": request})
    assert editor.answer(request)["result"]["status"] == "cancelled"


@pytest.mark.parametrize(("lens", "status"), [("✓ Allow once", "success"), ("✗ Deny", "denied")])
def test_a_question_can_be_answered_by_its_lens(editor: Editor, root: Path, lens: str, status: str) -> None:
    editor.replies["window/showMessageRequest"] = KEEP
    uri = opened(editor, root, action("t:ask", text="a"))
    request = editor.command(editor.lens(uri, "▶ Run"))
    editor.until(lambda one: one.get("method") == "window/showMessageRequest")
    command = editor.lens(uri, f"{lens}: t:ask")
    assert editor.run(command) == {"answered": True}
    assert editor.answer(request)["result"]["status"] == status
    assert editor.told("$/cancelRequest")  # the message of the editor is withdrawn
    assert editor.refused(command)["code"] == 1401


def test_the_editor_can_ask_for_more_than_the_policy_but_not_for_less(own_root: Path) -> None:
    root = own_root
    (root / "tamis.toml").write_text('[policy]\nrequireConfirmation = "always"\n')
    with Editor(cwd=root) as editor:
        editor.start(root, EVERYTHING, {"settings": {"execution": {"requireConfirmation": "never"}}})
        assert asked(editor, root, action("t:echo", text="a"))["status"] == "cancelled"
    (root / "tamis.toml").unlink()
    with Editor(cwd=root) as editor:
        editor.start(root, EVERYTHING, {"settings": {"execution": {"requireConfirmation": "always"}}})
        assert asked(editor, root, action("t:echo", text="a"))["status"] == "cancelled"


def test_a_question_that_nobody_answers_ends_in_time_and_is_withdrawn(own_root: Path) -> None:
    with fresh(own_root, policy={"approvalTimeoutMs": 200}) as editor:
        editor.replies["window/showMessageRequest"] = KEEP
        run = asked(editor, own_root)
        assert run["status"] == "approvalTimeout"
        assert "this is not a refusal" in run["observation"]
        assert editor.told("$/cancelRequest")
        assert not any("Allow" in title for title in titles(editor, run["uri"]))


def test_a_run_that_waits_for_an_answer_can_be_cancelled(editor: Editor, root: Path) -> None:
    editor.replies["window/showMessageRequest"] = KEEP
    request = editor.command(editor.lens(opened(editor, root, action("t:ask", text="a")), "▶ Run"))
    editor.until(lambda one: one.get("method") == "window/showMessageRequest")
    editor.notify("$/cancelRequest", {"id": request})
    assert editor.answer(request)["result"]["status"] == "cancelled"


# Results


def test_output_comes_while_the_script_runs_to_a_client_that_wants_it(root: Path) -> None:
    with Editor(cwd=root) as editor:
        declared = {"experimental": {"tamis": {"output": True}}}
        editor.call("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": declared})
        editor.notify("initialized", {})
        request = editor.command(editor.lens(opened(editor, root, action("t:sleep")), "▶ Run"), token="mine")
        told = editor.until(lambda one: one.get("method") == "tool/output")["params"]
        # Of several runs the client tells by its own token which one it is (issue 17).
        assert told["workDoneToken"] == "mine"
        # The line and its end may come in two pieces.
        assert (told["seq"], told["stream"]) == (1, "stdout")
        assert "begun\n".startswith(told["text"])
        assert told["text"]
        editor.notify("$/cancelRequest", {"id": request})
        assert editor.answer(request)["result"]["status"] == "cancelled"


def test_output_over_its_limit_says_that_the_rest_is_missing(own_root: Path) -> None:
    make_tool(own_root, "t:flood", "import sys\nsys.stderr.write('x' * 9000)\nprint(1)")
    (own_root / "tamis.toml").write_text("[sandbox]\nstderrBytes = 5000\n")
    with Editor(cwd=own_root) as editor:
        declared = {"experimental": {"tamis": {"output": True}}}
        editor.call("initialize", {"processId": None, "rootUri": own_root.as_uri(), "capabilities": declared})
        editor.notify("initialized", {})
        request = editor.command(editor.lens(opened(editor, own_root, action("t:flood")), "▶ Run"))
        assert editor.answer(request)["result"]["status"] == "success"
        told = editor.told("tool/output")
        assert not any("workDoneToken" in one for one in told)
        assert sum(len(one["text"]) for one in told if one["stream"] == "stderr") == 5000
        assert [(one["stream"], one["text"]) for one in told if one["truncated"]] == [("stderr", "")]


def test_a_script_that_fails_is_a_finding_at_its_call_until_the_call_is_edited(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:fail") + "\n")
    editor.run(editor.lens(uri, "▶ Run"))
    found = failure(editor, uri)
    assert found is not None
    assert found["message"] == (
        "The last run of 't:fail' failed: ScriptError: the script ended with exit code 1 (ValueError: no such thing)"
    )
    (inner, outer) = found["relatedInformation"]
    assert inner["location"]["uri"] == (root / "t_fail" / "tool.py").as_uri()
    assert (inner["location"]["range"]["start"]["line"], outer["location"]["range"]["start"]["line"]) == (1, 4)
    assert any(title.startswith("✗ ScriptError") for title in titles(editor, uri))
    editor.change(uri, edit((1, 0), (1, 0), "elsewhere"))
    assert failure(editor, uri) is not None
    editor.change(uri, edit((0, 8), (0, 8), " "))
    assert failure(editor, uri) is None
    assert not any(title.startswith("✗") for title in titles(editor, uri))


def failure(editor: Editor, uri: str) -> dict[str, Any] | None:
    """The finding of a failed run, if the document has one."""
    return next((one for one in pulled(editor, uri) if one["code"] in ("VA460", "VA461")), None)


def pulled(editor: Editor, uri: str) -> list[dict[str, Any]]:
    """A document's findings now."""
    return editor.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]


def test_results_are_cleared_on_request(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:echo", text="a"))
    run = editor.run(editor.lens(uri, "▶ Run"))
    assert editor.run(editor.lens(uri, "✓"))["run"] == run["run"]
    assert editor.call("workspace/executeCommand", {"command": "tamis.clearResults"}) == {"cleared": [uri]}
    assert not any(title.startswith("✓") for title in titles(editor, uri))
    assert "no longer kept" in editor.call("workspace/textDocumentContent", {"uri": run["resultUri"]})["text"]
    assert editor.fails("workspace/executeCommand", {"command": "tamis.showResult"})["code"] == -32803


def test_the_last_run_is_run_again_if_its_text_still_stands(editor: Editor, root: Path) -> None:
    again = {"command": "tamis.rerunLast", "arguments": [{}]}
    assert editor.refused(again)["message"] == "Nothing was run yet"
    uri = opened(editor, root, action("t:echo", text="a"))
    editor.run(editor.lens(uri, "▶ Run"))
    editor.change(uri, edit((0, 0), (0, 0), "Now: "))
    assert editor.run(again)["results"][0]["output"] == {"text": "a"}
    editor.change(uri, edit((0, 27), (0, 28), "b"))
    assert editor.refused(again)["code"] == -32801


def test_a_client_without_documents_gets_one_line_and_the_result(root: Path) -> None:
    with Editor(cwd=root) as editor:
        told = editor.start(root, {})
        assert "textDocumentContent" not in told["capabilities"]["workspace"]
        run = editor.run(editor.lens(opened(editor, root, action("t:echo", text="a")), "▶ Run"))
        assert run["results"][0]["output"] == {"text": "a"}
        (message,) = editor.told("window/showMessage")
        assert message["type"] == 3
        assert message["message"].startswith("✓ t:echo, ")
        assert not [one for one in editor.asked if one[0].startswith("window/showDocument")]
        assert not editor.told("$/progress")


def test_a_client_that_shows_results_itself_is_not_told_twice(root: Path) -> None:
    with Editor(cwd=root) as editor:
        editor.start(root, {})
        uri = opened(editor, root, action("t:echo", text="a"))
        assert editor.run(editor.lens(uri, "▶ Run"), show=False)["status"] == "success"
        assert not editor.told("window/showMessage")


# Reading and rewriting


def test_the_prompt_preview_is_what_a_model_is_told(editor: Editor, root: Path) -> None:  # V66
    uri = manifest(editor, root)
    command = editor.lens(uri, "Preview prompt (")
    # The lens and the document say the same number in the same words.
    words = command["title"].removeprefix("Preview prompt (").removesuffix(")")
    assert words.endswith(" tokens for this tool")
    preview = editor.run(command)
    assert f"## ACTION, the tool id as tag: {words}, " in preview["text"]
    text = editor.call("workspace/textDocumentContent", {"uri": preview["uri"]})["text"]
    assert text == preview["text"]
    assert next(line for line in text.splitlines() if line.startswith("## ")).startswith(
        "## ACTION, the tool id as tag: "
    )
    assert "tool_name:「始」t:echo「末」" in text
    one = editor.run(command, protocol="tam")["text"]
    assert "## TAM" in one
    assert "## VCP" not in one


def test_without_our_documents_the_preview_is_a_short_message_and_the_result_has_it_all(root: Path) -> None:
    text = (root / "t_echo" / "x.tool.json").read_text("utf-8")
    uri = (root / "t_echo" / "x.tool.json").as_uri()
    with Editor() as client:
        client.start(root, {})
        client.open(uri, text, "json")
        call = {"command": "tamis.previewPrompt", "arguments": [{"uri": uri, "toolId": "t:echo"}]}
        whole = client.call("workspace/executeCommand", call)["text"]
        (told,) = client.told("window/showMessage")
        lines = told["message"].splitlines()
        assert lines[:10] == whole.splitlines()[:10]
        assert len(lines) == 11
        assert "tamis prompt --tool t:echo" in lines[10]


def test_a_preview_that_is_open_follows_the_manifest(own_root: Path) -> None:
    with fresh(own_root) as editor:
        follows(editor, own_root)


def follows(editor: Editor, root: Path) -> None:
    uri = manifest(editor, root)
    preview = editor.run(editor.lens(uri, "Preview prompt ("))
    text = (root / "t_echo" / "x.tool.json").read_text("utf-8")
    path = root / "t_echo" / "x.tool.json"
    path.write_text(text.replace("Test tool t:echo", "Says what you say"))
    editor.change(uri, {"text": path.read_text("utf-8")})
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    editor.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    now = editor.call("workspace/textDocumentContent", {"uri": preview["uri"]})["text"]
    assert "Says what you say" in now


@pytest.mark.parametrize("to", ["action", "tam", "vcp"])
def test_a_call_is_converted_in_its_place(editor: Editor, root: Path, to: str) -> None:
    texts = {
        "action": action("t:echo", text="a < b"),
        "tam": "<|[REQUEST_TOOL]|>\ncommand:»»»t:echo«««\ntext:»»»a < b«««\n<|[END_TOOL]|>",
        "vcp": vcp("t:echo", text="a < b"),
    }
    source = texts["vcp" if to == "tam" else "tam"]
    uri = opened(editor, root, f"Before.\n\n{source}\n\nBehind.\n")
    editor.replies["workspace/applyEdit"] = {"applied": True}
    done = editor.run(editor.lens(uri, "⇄ Convert to…"), to=to)
    assert done["applied"] is True
    (request,) = editor.questions("workspace/applyEdit")
    (change,) = request["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    (made,) = change["edits"]
    assert made["range"]["start"] == {"line": 2, "character": 0}
    again = opened(editor, root, made["newText"], "again.md")
    assert editor.run(editor.lens(again, "▶ Run"))["results"][0]["output"] == {"text": "a < b"}


def test_each_block_of_several_is_converted_by_itself(editor: Editor, root: Path) -> None:  # editors, defect 7
    two = f"{action('t:echo', text='a')}\n\n{action('t:echo', text='b')}\n"
    uri = opened(editor, root, two)
    assert titles(editor, uri).count("⇄ Convert to…") == 2
    editor.replies["workspace/applyEdit"] = {"applied": True}
    point = {"start": {"line": 2, "character": 2}, "end": {"line": 2, "character": 2}}
    editor.run({"command": "tamis.convert", "arguments": [{"uri": uri, "version": 1, "range": point, "to": "tam"}]})
    (made,) = editor.questions("workspace/applyEdit")[0]["edit"]["documentChanges"][0]["edits"]
    assert made["range"]["start"]["line"] == 2
    assert "text:»»»b«««" in made["newText"]


def test_without_edits_convert_is_not_offered_and_gives_the_text(root: Path) -> None:
    uri = (root / "talk.md").as_uri()
    text = vcp("t:echo", text="a")
    with Editor() as client:
        client.start(root, {"textDocument": {"codeLens": {}}})
        client.open(uri, text, "markdown")
        offered = client.call("textDocument/codeLens", {"textDocument": {"uri": uri}})
        assert not any("Convert" in one.get("command", {}).get("title", "") for one in offered)
        point = {"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 2}}
        argument = {"uri": uri, "version": 1, "range": point, "to": "tam"}
        done = client.call("workspace/executeCommand", {"command": "tamis.convert", "arguments": [argument]})
        assert done["applied"] is False
        assert "REQUEST_TOOL" in done["text"]
        # A client without code action literals knows commands only.
        params = {"textDocument": {"uri": uri}, "range": point, "context": {"diagnostics": []}}
        found = client.call("textDocument/codeAction", params)
        assert found
        assert all(isinstance(one["command"], str) for one in found)


def test_the_target_of_a_conversion_can_be_chosen(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, vcp("t:echo", text="a"))
    editor.replies["window/showMessageRequest"] = choose("TAM")
    editor.replies["workspace/applyEdit"] = {"applied": True}
    assert "REQUEST_TOOL" in editor.run(editor.lens(uri, "⇄ Convert to…"))["text"]
    editor.replies["window/showMessageRequest"] = None
    assert editor.run(editor.lens(uri, "⇄ Convert to…"))["applied"] is False
    assert len(editor.questions("workspace/applyEdit")) == 1


def test_what_would_be_lost_is_named_and_waits_for_a_word(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, "<|[REQUEST_TOOL]|>\n# a remark\ncommand:»»»t:echo«««\ntext:»»»a«««\n<|[END_TOOL]|>")
    editor.replies["workspace/applyEdit"] = {"applied": True}
    command = editor.lens(uri, "⇄ Convert to…")
    kept = editor.run(command, to="vcp")
    assert (kept["applied"], [one["code"] for one in kept["losses"]]) == (False, ["TC052"])
    (question,) = editor.questions("window/showMessageRequest")
    assert "a remark" in question["message"]
    assert editor.run(command, to="vcp", lossy=True)["applied"] is True


def test_a_call_is_copied_in_every_form(editor: Editor, root: Path) -> None:
    nasty = 'it\'s "$HOME" `id` \\ 你好\n--x'
    uri = opened(editor, root, action("t:echo", text=f"<![CDATA[{nasty}]]>"))
    command = editor.lens(uri, "Copy as…")
    texts = {
        to: editor.run(command, to=to)["text"] for to in ("action", "tam", "vcp", "openai", "anthropic", "mcp", "cli")
    }
    words = shlex.split(texts["cli"])
    assert words[:4] == ["tamis", "call", "t:echo", "--args"]
    assert json.loads(words[4]) == {"text": nasty}
    function = json.loads(texts["openai"])["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"text": nasty}
    assert json.loads(texts["mcp"])["params"]["arguments"] == {"text": nasty}
    for to in ("action", "tam", "vcp"):
        copy = opened(editor, root, texts[to], f"{to}.md")
        assert editor.run(editor.lens(copy, "▶ Run"))["results"][0]["output"] == {"text": nasty}, to
    assert editor.refused(command, to="xml")["code"] == -32602


def test_every_lens_is_also_a_code_action(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, vcp("t:echo", text="a"))
    point = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 2}}
    context = {"diagnostics": [], "only": ["refactor.tamis.run", "refactor.rewrite.tamis"]}
    found = editor.call("textDocument/codeAction", {"textDocument": {"uri": uri}, "range": point, "context": context})
    named = {one["title"]: one["command"] for one in found}
    assert set(named) == {"Run", "Dry run", "Copy the call as…", "Convert to ACTION", "Convert to TAM"}
    assert editor.run(named["Run"])["status"] == "success"


def test_references_are_counted_and_listed(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, action("t:once", text="a"))
    opened(editor, root, "Again: " + vcp("t:once", text="b"), "other.md")
    command = editor.lens(uri, "2 references")
    found = editor.run(command)["locations"]
    assert sorted(Path(one["uri"]).name for one in found) == ["other.md", "talk.md"]


def test_a_lens_that_is_none_of_ours_is_given_back(editor: Editor) -> None:
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    for data in (None, 7, {"resolve": "prompt"}, {"command": "rm"}):
        assert editor.call("codeLens/resolve", {"range": span, "data": data}) == {"range": span}
    odd = {"resolve": "calls", "command": "tamis.run", "arguments": {"uri": "file:///gone.md", "toolId": 7}}
    assert editor.call("codeLens/resolve", {"range": span, "data": odd})["command"]["title"] == "references"


def test_every_command_is_announced_and_documented(root: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "editors" / "commands.md").read_text("utf-8")
    with Editor(cwd=root) as editor:
        commands = editor.start(root, {})["capabilities"]["executeCommandProvider"]["commands"]
    assert len(commands) == len(set(commands))
    assert [name for name in commands if f"`{name}`" not in page] == []


@pytest.fixture
def open_root() -> Iterator[Path]:
    """The tools in a folder that pytest does not close to others, as it closes ``tmp_path`` whenever a session starts."""
    with tempfile.TemporaryDirectory() as folder:
        yield tools(Path(folder))


def test_an_ordinary_user_can_run_from_the_editor(open_root: Path) -> None:
    root = open_root
    if os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user already")
    home = root / "home"
    home.mkdir()
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)
    for path in (root, *root.parents):
        if path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    command = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        sys.executable,
        "-m",
        "tamis.server.lsp.main",
    ]
    with Editor(cwd=root, command=command, env={"HOME": str(home)}) as editor:
        editor.start(root, EVERYTHING)
        run = editor.run(editor.lens(opened(editor, root, action("t:echo", text="a")), "▶ Run"))
        assert run["status"] == "success", run["observation"]


# Test explorers


def states(editor: Editor) -> dict[str, list[str]]:
    """The states that each test went through, until all have ended."""
    editor.until(lambda one: one.get("method") == "experimental/endRunTest")
    found: dict[str, list[str]] = {}
    for one in editor.told("experimental/changeTestState"):
        found.setdefault(one["testId"].rpartition("/")[2], []).append(one["state"]["tag"])
    return found


def test_examples_are_tests_of_a_test_explorer(editor: Editor, root: Path) -> None:  # D93
    listed = editor.call("experimental/discoverTest", {})["tests"]
    uri = (root / "t_echo" / "x.tool.json").as_uri()
    assert [(one["id"], one["label"], one["kind"], one.get("parent")) for one in listed] == [
        (uri, "t:echo", "module", None),
        (f"{uri}#0", "Says a.", "test", uri),
        (f"{uri}#1", "Says b.", "test", uri),
    ]
    assert editor.call("experimental/discoverTest", {"testId": uri})["tests"] == listed
    assert editor.call("experimental/runTest", {"include": [uri]}) is None
    assert states(editor) == {
        "x.tool.json#0": ["enqueued", "started", "passed"],
        "x.tool.json#1": ["enqueued", "started", "failed"],
    }
    failed = [one["state"] for one in editor.told("experimental/changeTestState")][-1]
    assert failed["message"] == 'expected: {"text":"b"}\ngiven: {"text":"a"}'
    # Editors lay both side by side (editors 1.3 row 17).
    assert (failed["expected"], failed["actual"]) == ('{\n  "text": "b"\n}', '{\n  "text": "a"\n}')


def test_chosen_tests_run_and_the_others_do_not(editor: Editor, root: Path) -> None:
    uri = (root / "t_echo" / "x.tool.json").as_uri()
    editor.call("experimental/runTest", {"exclude": [f"{uri}#1"]})
    assert states(editor) == {"x.tool.json#0": ["enqueued", "started", "passed"]}
    assert editor.fails("experimental/runTest", {"include": 7})["code"] == -32602


def test_what_is_no_test_is_told_and_keeps_no_other_from_running(editor: Editor, root: Path) -> None:
    uri = (root / "t_echo" / "x.tool.json").as_uri()
    editor.call("experimental/runTest", {"include": [f"{uri}#0", f"{uri}#77", "file:///no/such"]})
    assert states(editor) == {
        "x.tool.json#77": ["failed"],
        "such": ["failed"],
        "x.tool.json#0": ["enqueued", "started", "passed"],
    }
    message = next(one["state"]["message"] for one in editor.told("experimental/changeTestState"))
    assert message == "There is no such test; experimental/discoverTest lists those that there are"


def test_params_of_a_run_of_tests_that_are_wrong_are_told_in_words(editor: Editor) -> None:
    wrong = editor.fails("experimental/runTest", {"coverage": "x"})
    assert (wrong["code"], wrong["message"]) == (
        -32602,
        "wrong params: must be true or false, not a text - at `/coverage`",
    )
    wrong = editor.fails("experimental/runTest", {"included": ["x"]})
    assert wrong["message"] == "wrong params: unknown member 'included', did you mean 'include'?"


def test_examples_that_ran_tell_what_they_covered_of_the_manifest(
    editor: Editor, root: Path
) -> None:  # editors 1.3 row 17
    path = root / "t_echo" / "x.tool.json"
    editor.call("experimental/runTest", {"include": [path.as_uri()], "coverage": True})
    states(editor)
    (told,) = editor.told("experimental/testCoverage")
    assert told["uri"] == path.as_uri()
    (part,) = [part for part in told["details"] if part["name"] == "text"]
    assert (part["kind"], part["count"]) == ("parameter", 2)
    place = part["range"]
    line = path.read_text("utf-8").split("\n")[place["start"]["line"]]
    assert line[place["start"]["character"] : place["end"]["character"]] == '"text"'


def test_what_was_covered_is_told_to_those_who_ask(editor: Editor, root: Path) -> None:
    editor.call("experimental/runTest", {"include": [(root / "t_echo" / "x.tool.json").as_uri()]})
    states(editor)
    assert editor.told("experimental/testCoverage") == []


def test_tests_can_be_aborted(own_root: Path) -> None:
    make_tool(own_root, "t:slow", SLEEPS, examples=[{"description": "Sleeps.", "input": {}}] * 2)
    with fresh(own_root) as editor:
        uri = (own_root / "t_slow" / "x.tool.json").as_uri()
        editor.call("experimental/runTest", {"include": [uri]})
        editor.until(lambda one: (one.get("params") or {}).get("state") == {"tag": "started"})
        time.sleep(0.1)
        editor.notify("experimental/abortRunTest")
        assert states(editor) == {
            "x.tool.json#0": ["enqueued", "started", "skipped"],
            "x.tool.json#1": ["enqueued", "skipped"],
        }


def test_no_test_runs_in_a_folder_that_is_not_trusted(root: Path) -> None:
    with Editor(cwd=root) as editor:
        editor.start(root, EVERYTHING, {"trusted": False})
        assert editor.call("experimental/discoverTest", {})["tests"]
        assert editor.fails("experimental/runTest", {})["code"] == 1901


TESTED = f"""# Tests

<!-- tamis-name: first -->
{action("t:echo", text="a")}

---

{action("t:echo", text="{{first.output.text}}!")}

```json expect
{{"text": "b!"}}
```

---

{action("t:echo", text="c")}

```json expect
{{"text": "c"}}
```
"""


def test_calls_of_a_text_with_what_they_give_are_tests(tmp_path: Path) -> None:  # editors 1.3 row 17
    make_tool(tmp_path, "t:echo")
    (tmp_path / "calls.md").write_text(TESTED, encoding="utf-8")
    (tmp_path / "plain.md").write_text(action("t:echo", text="a"), encoding="utf-8")
    with fresh(tmp_path) as editor:
        uri = (tmp_path / "calls.md").as_uri()
        listed = editor.call("experimental/discoverTest", {})["tests"]
        # the block that only gives another one its result is no test, nor is a text that expects nothing
        assert [(one["id"], one["label"], one["kind"], one.get("parent")) for one in listed] == [
            (uri, "calls.md", "module", None),
            (f"{uri}#1", "line 8 · t:echo", "test", uri),
            (f"{uri}#2", "line 16 · t:echo", "test", uri),
        ]
        editor.call("experimental/runTest", {"include": [uri]})
        assert states(editor) == {
            "calls.md#1": ["enqueued", "started", "failed"],
            "calls.md#2": ["enqueued", "started", "passed"],
        }
        told = [one["state"] for one in editor.told("experimental/changeTestState")]
        (failed,) = [state for state in told if state["tag"] == "failed"]
        assert (failed["expected"], failed["actual"]) == ('{\n  "text": "b!"\n}', '{\n  "text": "a!"\n}')
        line = next(at for at, text in enumerate(TESTED.split("\n")) if text.startswith("```json expect"))
        assert failed["range"]["start"] == {"line": line, "character": 0}


def test_what_a_failed_example_expects_has_its_place(editor: Editor, root: Path) -> None:  # editors 1.3 row 17
    path = root / "t_echo" / "x.tool.json"
    editor.call("experimental/runTest", {"include": [f"{path.as_uri()}#1"]})
    states(editor)
    (failed,) = [one["state"] for one in editor.told("experimental/changeTestState") if one["state"]["tag"] == "failed"]
    start, end = failed["range"]["start"], failed["range"]["end"]
    lines = path.read_text("utf-8").split("\n")[start["line"] : end["line"] + 1]
    assert json.loads("\n".join([lines[0][start["character"] :], *lines[1:-1], lines[-1][: end["character"]]])) == {
        "text": "b"
    }


def test_a_text_that_is_saved_with_something_expected_is_a_new_test(tmp_path: Path) -> None:  # editors 1.3 row 17
    make_tool(tmp_path, "t:echo")
    page = tmp_path / "calls.md"
    page.write_text("# Nothing yet\n", encoding="utf-8")
    with fresh(tmp_path) as editor:
        assert editor.call("experimental/discoverTest", {})["tests"] == []
        page.write_text(TESTED, encoding="utf-8")
        editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": page.as_uri(), "type": 2}]})
        editor.until(lambda one: one.get("method") == "experimental/discoveredTests")
        assert len(editor.told("experimental/discoveredTests")[-1]["tests"]) == 3


def test_a_call_that_uses_one_that_failed_is_not_run(tmp_path: Path) -> None:  # editors 1.3 row 17
    make_tool(tmp_path, "t:echo")
    make_tool(tmp_path, "t:bad", "import sys\nsys.exit('no')\n")
    text = TESTED.replace("t:echo", "t:bad", 2)
    (tmp_path / "calls.md").write_text(text, encoding="utf-8")
    with fresh(tmp_path) as editor:
        editor.call("experimental/runTest", {})
        assert states(editor)["calls.md#1"] == ["enqueued", "started", "failed"]
        told = [one["state"] for one in editor.told("experimental/changeTestState")]
        assert [one["message"][:42] for one in told if one["tag"] == "failed"] == [
            "Not run: a call that it uses failed: ✗ t:b"
        ]


@pytest.mark.parametrize("together", [True, False])
def test_the_questions_of_a_text_come_at_once_where_the_client_shows_them_so(tmp_path: Path, together: bool) -> None:
    """Editors 1.3 row 15: one list for all of them."""
    make_tool(tmp_path, "t:ask", execution={"requireConfirmation": True})
    asked: list[Any] = []

    def answer(params: Any) -> Any:
        asked.append(params.get("batch"))
        return {"outcome": "selected", "optionId": "allow"}

    capabilities = {**EVERYTHING, "experimental": {"tamis": {"approval": "request", "together": together}}}
    with Editor(cwd=tmp_path) as editor:
        editor.replies["tool/requestApproval"] = answer
        editor.start(tmp_path, capabilities)
        text = "<ACTION><t:ask><text>a</text></t:ask><t:ask><text>b</text></t:ask></ACTION>"
        run = editor.run(editor.lens(opened(editor, tmp_path, text), "▶ Run 2 calls"))
        assert run["status"] == "success"
    assert [one and (one["index"], one["count"]) for one in asked] == ([(0, 2), (1, 2)] if together else [None, None])
