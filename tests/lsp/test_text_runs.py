"""Running texts with variables, chains, secrets and expectations from an editor (docs/editors/testing.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import EVERYTHING, Editor
from tests.lsp.lsp_client import edit
from tests.sample_tools import action, make_tool

PROPERTIES = {"text": {"type": "string"}, "key": {"type": "string", "x-secret": True}}
TOML = '[environments.default]\ncity = "Oslo"\n[environments.live]\ncity = "Rome"\n'
KEY = "hunter22-of-the-test"
SecretRun = Callable[..., tuple[dict[str, Any], str]]
CHAIN = f"""<!-- tamis-name: first -->
{action("t:echo", text="{{city}}")}

---

<!-- tamis-name: second -->
{action("t:echo", text="{{first.output.text}}!")}

---

{action("t:echo", text="{{second.output.text}}?")}

```json expect
{{"text": "Oslo!?"}}
```
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir(mode=0o755)
    make_tool(folder, "t:echo", properties=PROPERTIES)
    (folder / "tamis.toml").write_text(TOML, encoding="utf-8")
    return folder


@pytest.fixture
def editor(root: Path) -> Iterator[Editor]:
    with Editor(cwd=root) as client:
        client.start(root, EVERYTHING)
        yield client
        assert client.stop() == 0


def opened(editor: Editor, root: Path, text: str) -> str:
    uri = (root / "a.md").as_uri()
    editor.open(uri, text)
    return uri


def lenses(editor: Editor, uri: str, title: str) -> list[dict[str, Any]]:
    return [lens for lens in editor.lenses(uri) if lens["command"]["title"].startswith(title)]


def findings(editor: Editor, uri: str, code: str) -> list[dict[str, Any]]:
    report = editor.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    return [item for item in report["items"] if item["code"] == code]


def test_a_block_takes_the_last_result_of_the_named_one_and_runs_nothing_by_itself(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, CHAIN)
    first, second, _ = (lens["command"] for lens in lenses(editor, uri, "▶ Run") if lens["command"]["title"] == "▶ Run")
    error = editor.fails("workspace/executeCommand", second)
    assert "the block 'first' has no good result yet" in error["message"]
    assert editor.run(first)["results"][0]["output"] == {"text": "Oslo"}
    assert editor.run(second)["results"][0]["output"] == {"text": "Oslo!"}


def test_the_lens_runs_all_that_a_block_uses_in_order_and_holds_it_against_what_is_expected(
    editor: Editor, root: Path
) -> None:
    uri = opened(editor, root, CHAIN)
    *_, lens = lenses(editor, uri, "▶ Run with")
    assert lens["command"]["title"] == "▶ Run with second"
    run = editor.run(lens["command"])
    assert (run["passed"], run["expected"], run["results"][0]["output"]) == (
        True,
        {"text": "Oslo!?"},
        {"text": "Oslo!?"},
    )
    assert len(lenses(editor, uri, "✓")) == 3


def test_what_is_not_as_expected_is_a_finding_at_its_fence_until_one_of_them_changes(
    editor: Editor, root: Path
) -> None:
    text = action("t:echo", text="a") + '\n\n```json expect\n{"text": "b"}\n```\n'
    uri = opened(editor, root, text)
    run = editor.run(lenses(editor, uri, "▶ Run")[0]["command"])
    assert run["passed"] is False
    assert run["differences"] == ["the output is not the expected one", '/text: expected "b", given "a"']
    assert lenses(editor, uri, "✗ not what is expected")
    (finding,) = findings(editor, uri, "VA462")
    assert finding["range"]["start"]["line"] == 2
    assert 'expected "b", given "a"' in finding["message"]
    editor.change(uri, edit((3, 10), (3, 11), "a"))
    assert findings(editor, uri, "VA462") == []


def test_the_editor_chooses_the_environment(editor: Editor, root: Path) -> None:
    editor.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"environment": "live"}}})
    uri = opened(editor, root, action("t:echo", text="{{city}}"))
    assert editor.run(lenses(editor, uri, "▶ Run")[0]["command"])["results"][0]["output"] == {"text": "Rome"}


@pytest.fixture
def secret_run(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> SecretRun:
    """Runs a text's first lens where the secret is there; returns the answer and all that the server said."""
    config = root.parent / "config" / "tamis" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    lines = '[secrets]\nKEY = { env = "KEY_OF_TEST" }\n[policy.secrets]\n"t:echo" = ["KEY"]\n'
    config.write_text(lines, encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config.parents[1]))
    monkeypatch.setenv("KEY_OF_TEST", KEY)

    def run(trust: str, text: str, name: str = "a.md") -> tuple[dict[str, Any], str]:
        monkeypatch.setenv("TAMIS_TRUST", trust)
        with Editor(cwd=root) as editor:
            editor.start(root, {**EVERYTHING, "experimental": {"tamis": {"output": True}}})
            uri = (root / name).as_uri()
            editor.open(uri, text)
            answer = editor.answer(editor.command(editor.lens(uri, "▶ Run")))
            editor.lenses(uri)
            editor.call(
                "textDocument/hover",
                {"textDocument": {"uri": uri}, "position": {"line": 0, "character": text.find("secret")}},
            )
            assert editor.stop() == 0
        return answer, str(editor.messages) + capsys.readouterr().err

    return run


SECRET = action("t:echo", key="{{secret:KEY}}")


def test_a_secret_is_handed_over_in_a_trusted_folder_and_shown_nowhere(secret_run: SecretRun) -> None:
    answer, said = secret_run("1", SECRET)
    assert answer["result"]["results"][0]["output"] == {"key": "***"}
    assert "tool/output" in said  # also what comes while the script runs
    assert KEY not in said


@pytest.mark.parametrize(
    ("text", "trust", "name", "words"),
    [
        (SECRET, "", "a.md", "a folder that you do not trust"),
        (SECRET, "1", "../away.md", "only to calls of files in the folder"),
        (
            action("t:echo", text="{{secret:KEY}}"),
            "1",
            "a.md",
            "only be the whole value of a parameter marked x-secret",
        ),
        (
            action("t:echo", key="{{secret:KEY}}", text="a {{secret:KEY}}"),
            "1",
            "a.md",
            "marked x-secret; 'text' is not",
        ),
    ],
)
def test_a_secret_goes_nowhere_else(secret_run: SecretRun, text: str, trust: str, name: str, words: str) -> None:
    answer, said = secret_run(trust, text, name)
    assert words in answer["error"]["message"]
    assert KEY not in said


def test_a_dry_run_reads_no_secret(editor: Editor, root: Path) -> None:
    uri = opened(editor, root, SECRET)
    run = editor.run(editor.lens(uri, "Dry run"))
    assert run["results"][0]["output"]["args"] == {"key": "***"}


def test_a_models_text_of_a_host_in_the_editor_is_filled_with_nothing(editor: Editor) -> None:
    text = "<!-- tamis-name: a -->\n" + action("t:echo", text="{{city}} {{secret:KEY}}")
    result = editor.call("tool/executeText", {"text": text})
    assert result["results"][0]["output"] == {"text": "{{city}} {{secret:KEY}}"}


def test_an_example_of_a_manifest_has_the_environments_variables(root: Path) -> None:
    example = {"description": "The town.", "input": {"text": "{{city}}"}, "expectedOutput": {"text": "{{city}}"}}
    folder = make_tool(root, "t:example", properties=PROPERTIES, examples=[example])
    with Editor(cwd=root) as editor:
        editor.start(root, EVERYTHING)
        uri = (folder / "x.tool.json").as_uri()
        editor.open(uri, (folder / "x.tool.json").read_text("utf-8"), "json")
        run = editor.run(editor.lens(uri, "▶ Run example 1"))
        assert (run["passed"], run["results"][0]["output"]) == (True, {"text": "Oslo"})


def test_a_form_is_offered_to_clients_that_have_one(root: Path) -> None:
    manifest = root / "t_echo" / "x.tool.json"
    for tries in (True, False):
        with Editor(cwd=root) as editor:
            editor.start(root, {**EVERYTHING, "experimental": {"tamis": {"try": tries}}})
            editor.open(manifest.as_uri(), manifest.read_text("utf-8"), "json")
            offered = lenses(editor, manifest.as_uri(), "▶ Try…")
            assert [lens["command"]["command"] for lens in offered] == (["tamis.try"] if tries else [])
            assert [lens["command"]["arguments"][0]["toolId"] for lens in offered] == (["t:echo"] if tries else [])


@pytest.mark.parametrize(("level", "lines"), [("info", True), ("error", False)])
def test_the_editors_log_level_acts_in_a_trusted_folder(root: Path, level: str, lines: bool) -> None:  # row 6
    with Editor(cwd=root) as editor:
        editor.start(root, EVERYTHING, {"trusted": True, "settings": {"logLevel": level}})
        uri = opened(editor, root, action("t:echo", text="a"))
        editor.run(lenses(editor, uri, "▶ Run")[0]["command"])
        assert any("call.ended" in one["message"] for one in editor.told("window/logMessage")) is lines
