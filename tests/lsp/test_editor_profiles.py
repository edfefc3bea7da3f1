"""Every feature without client code, for clients that declare exactly what an editor declares (issue 17, line 3).

``editor_profiles.json`` holds the capabilities as they stand in each editor's sources (Kate 22.12 and both of Emacs: as they were sent),
how it takes ``window/showMessageRequest`` (it asks, refuses the request, or never answers it), and whether it has lenses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import KEEP, Editor
from tests.sample_tools import action, make_tool

PROFILES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("editor_profiles.json").read_text("utf-8"))
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(86_400)\n"
EXAMPLES = [
    {"description": "Says a.", "input": {"text": "a"}, "expectedOutput": {"text": "a"}},
    {"description": "Says b.", "input": {"text": "a"}, "expectedOutput": {"text": "b"}},
]


class Profiled(Editor):
    """A client with an editor's capabilities, and what a person has of it."""

    profile: dict[str, Any]

    def begin(self, root: Path, profile: dict[str, Any]) -> None:
        self.profile = profile
        folders = [{"uri": root.as_uri(), "name": root.name}]
        params = {"processId": None, "rootUri": root.as_uri(), "capabilities": profile["capabilities"]}
        self.call("initialize", {**params, "workspaceFolders": folders})
        self.notify("initialized", {})
        if profile["questions"] == "refuses":
            self.replies["window/showMessageRequest"] = RuntimeError("Method not found: window/showMessageRequest")
        elif profile["questions"] == "ignores":
            self.replies["window/showMessageRequest"] = KEEP

    @property
    def pulls(self) -> bool:
        declared = self.profile["capabilities"]
        return "diagnostic" in declared["textDocument"] and "diagnostics" in declared["workspace"]

    def finding(self, uri: str, code: str) -> dict[str, Any]:
        """The finding of a code, as soon as the editor has it: pushed, or pulled when it is told to."""
        while True:
            heard = len(self.messages)
            if self.pulls:
                items = self.call("textDocument/diagnostic", {"textDocument": {"uri": uri}}).get("items", [])
            else:
                pushed = [one for one in self.told("textDocument/publishDiagnostics") if one["uri"] == uri]
                items = pushed[-1]["diagnostics"] if pushed else []
            for item in items:
                if item.get("code") == code:
                    return item
            if not self.pulls or all(
                one.get("method") != "workspace/diagnostic/refresh" for one in self.messages[heard:]
            ):
                self.next()

    def offer(self, uri: str, title: str, line: int = 0) -> dict[str, Any]:
        """The command that a person finds at a line by its title: a lens where the editor has lenses, else a code action."""
        if self.profile["lenses"]:
            return self.lens(uri, title)
        place = {"line": line, "character": 1}
        params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        actions = self.call("textDocument/codeAction", params) or []
        chosen = [one["command"] for one in actions if one["title"].startswith(title.removeprefix("▶ "))]
        assert chosen, (title, [one["title"] for one in actions])
        return chosen[0]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tools")
    make_tool(folder, "t:echo", examples=EXAMPLES)
    make_tool(folder, "t:ask", execution={"requireConfirmation": True})
    make_tool(folder, "t:sleep", SLEEPS)
    return folder


@pytest.fixture(scope="module", params=PROFILES, ids=[one["name"] for one in PROFILES])
def session(request: pytest.FixtureRequest, root: Path) -> Iterator[Profiled]:
    with Profiled(inside=True) as client:
        client.begin(root, request.param)
        yield client


@pytest.fixture
def opened(session: Profiled, root: Path) -> Iterator[Callable[[str, str], str]]:
    session.forget()

    def open_(name: str, text: str) -> str:
        uri = (root / name).as_uri()
        session.open(uri, text, "json" if name.endswith(".json") else "markdown")
        return uri

    yield open_
    session.close_all()


def status(session: Profiled, request: int) -> str:
    return session.answer(request)["result"]["status"]


def test_findings_fixes_and_completion(session: Profiled, opened: Callable[[str, str], str]) -> None:
    uri = opened("talk.md", action("t:ecco", text="a") + "\n\n<ACTION><")
    found = session.finding(uri, "VA401")
    assert found["message"] == "Unknown tool ID 't:ecco', did you mean 't:echo'?"
    params = {"textDocument": {"uri": uri}, "range": found["range"], "context": {"diagnostics": [found]}}
    fixes = session.call("textDocument/codeAction", params)
    if not session.profile["capabilities"]["textDocument"]["codeAction"].get("resolveSupport"):
        assert "edit" in fixes[0]
    assert fixes[0]["title"] == "Change to 't:echo'"
    place = {"textDocument": {"uri": uri}, "position": {"line": 2, "character": 9}}
    offered = session.call("textDocument/completion", place)
    items = offered["items"] if isinstance(offered, dict) else offered
    assert any("t:echo" in item["label"] for item in items)


def test_a_call_runs_and_its_outcome_is_shown(session: Profiled, opened: Callable[[str, str], str]) -> None:
    uri = opened("talk.md", action("t:echo", text="你好 🚄"))
    assert session.run(session.offer(uri, "▶ Run"))["status"] == "success"
    declared = session.profile["capabilities"]
    if "textDocumentContent" in declared.get("workspace", {}):
        (shown,) = session.questions("window/showDocument")
        text = session.call("workspace/textDocumentContent", {"uri": shown["uri"]})["text"]
        assert '"text": "你好 🚄"' in text
    else:
        (message,) = session.told("window/showMessage")
        assert "t:echo executed successfully" in message["message"]
    hover = session.call("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 11}})
    assert '"text": "你好 🚄"' in json.dumps(hover, ensure_ascii=False).replace('\\"', '"'), "the whole result"


@pytest.mark.parametrize(
    ("title", "at_the_block", "ends"),
    [("Allow once", "✓ Allow once", "success"), ("Deny", "✗ Deny", "denied")],
)
def test_an_approval_is_answered(
    session: Profiled, opened: Callable[[str, str], str], title: str, at_the_block: str, ends: str
) -> None:
    uri = opened("talk.md", action("t:ask", text="rm -rf 🚄"))
    if session.profile["questions"] == "asks":
        session.replies["window/showMessageRequest"] = {"title": title}
        assert session.run(session.offer(uri, "▶ Run"))["status"] == ends
        return
    request = session.command(session.offer(uri, "▶ Run"))
    # One says yes to what was shown: the finding at the call has all of the question.
    waiting = session.finding(uri, "VA463")
    assert 'Run t:ask with these arguments? {"text":"rm -rf 🚄"}' in waiting["message"]
    assert waiting["range"]["start"]["line"] == 0
    if session.profile["questions"] == "refuses":
        session.until(lambda one: "t:ask waits" in str(one.get("params", {}).get("message")))
    assert session.run(session.offer(uri, f"{at_the_block}: t:ask")) == {"answered": True}
    assert status(session, request) == ends


def test_what_runs_is_cancelled_where_it_stands(session: Profiled, opened: Callable[[str, str], str]) -> None:
    uri = opened("talk.md", action("t:sleep"))
    request = session.command(session.offer(uri, "▶ Run"))
    place = {"line": 0, "character": 1}
    params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}

    def cancels() -> list[dict[str, Any]]:
        actions = session.call("textDocument/codeAction", params)
        return [one["command"] for one in actions if one["title"] == "■ Cancel this run"]

    while not (offered := cancels()):
        continue
    assert session.run(offered[0])["cancelled"]
    assert status(session, request) == "cancelled"
    assert not cancels()


def test_examples_are_tested(session: Profiled, opened: Callable[[str, str], str], root: Path) -> None:
    manifest = root / "t_echo" / "x.tool.json"
    uri = opened("t_echo/x.tool.json", manifest.read_text("utf-8"))
    assert session.run(session.offer(uri, "▶ Test all examples"))["outcome"] == "✗ 1 of 2 examples passed"
    assert session.finding(uri, "VA461")["message"].startswith("examples[1] did not give")
    assert any("1 of 2 examples passed" in one["message"] for one in session.told("window/showMessage"))
