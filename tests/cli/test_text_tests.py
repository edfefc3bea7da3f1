"""``tamis test README.md``: calls of a text as tests, with variables, results of earlier calls, secrets, and what is expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import Tamis
from tests.sample_tools import action, make_tool, tam

TOML = '[environments.shared]\ncity = "Oslo"\n[environments.live]\ncity = "Rome"\n'
KEY = "hunter22-of-the-test"
PROPERTIES = {"text": {"type": "string"}, "key": {"type": "string", "x-secret": True}}
EXAMPLES = Path(__file__).parents[2] / "examples" / "testing"

# Each runs its calls in the sandbox.
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tamis: Tamis) -> Path:
    make_tool(tamis.folder, "t:echo", properties=PROPERTIES)
    make_tool(tamis.folder, "t:other", properties=PROPERTIES)
    (tamis.folder / "tamis.toml").write_text(TOML, encoding="utf-8")
    return tamis.folder


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEY_OF_TEST", KEY)
    path = tmp_path / "own.toml"
    path.write_text(
        '[secrets]\nKEY = { env = "KEY_OF_TEST" }\n[policy.secrets]\n"t:echo" = ["KEY"]\n', encoding="utf-8"
    )
    return path


def told(report: Any) -> list[tuple[str, str]]:
    return [(test["outcome"], test.get("reason", "")) for test in report["tests"]]


def test_the_example_folder_passes_in_each_environment(tamis: Tamis) -> None:
    for words in ((), ("--environment", "south")):
        done = tamis("test", "README.md", *words, cwd=EXAMPLES)
        assert (done.code, done.out.splitlines()[-1]) == (0, "3 calls of 2 tools: 3 passed"), done
    assert tamis("test", cwd=EXAMPLES).code == 0
    assert "0 errors, 0 warnings" in tamis("check", "--strict", cwd=EXAMPLES).err + tamis("check", cwd=EXAMPLES).out


def test_calls_run_in_order_with_what_they_use_and_expect(tamis: Tamis, folder: Path) -> None:
    text = f"""<!-- tamis-name: first -->
{action("t:echo", text="{{city}}")}

```json expect
{{"text": "{{{{city}}}}"}}
```

## Then

{tam({"command": "t:echo", "text": "{{first.output.text}}!"})}

```json expect
{{"text": "Oslo?"}}
```

---

{action("t:echo", text="{{ctiy}}")}

<think>{action("t:echo", text="{{nobody}}")}</think>
"""
    (folder / "a.md").write_text(text, encoding="utf-8")
    done = tamis("test", "a.md", "--json")
    assert (done.code, told(done.json())) == (
        1,
        [
            ("passed", ""),
            ("failed", "the output is not the expected one"),
            ("failed", "No variable 'ctiy' in the environment 'default', did you mean 'city'?"),
        ],
    )
    assert done.json()["tests"][1]["details"] == ['/text: expected "Oslo?", given "Oslo!"']
    assert [test["line"] for test in done.json()["tests"]] == [2, 10, 21]
    live = tamis("test", "a.md", "--environment", "live", "--filter", "first", "--json")
    assert live.json()["tests"][0]["output"] == {"text": "Rome"}


def test_a_call_behind_one_that_failed_says_what_it_lacks(tamis: Tamis, folder: Path) -> None:
    text = f"# tamis-name: a\n{action('t:none', text='1')}\n\n---\n\n{action('t:echo', text='{{a.output}}')}\n"
    (folder / "a.md").write_text(text, encoding="utf-8")
    found = told(tamis("test", "a.md", "--json").json())
    assert [outcome for outcome, _ in found] == ["failed", "failed"]
    assert found[1][1] == "the block 'a' has no good result yet; it did not pass: mend it, and this one can run"


def test_a_call_whose_predecessor_was_filtered_out_says_so(tamis: Tamis, folder: Path) -> None:
    """Strangers: the advice is one that can be followed on the command line."""
    text = f"# tamis-name: a\n{action('t:echo', text='1')}\n\n---\n\n# tamis-name: b\n{action('t:echo', text='{{a.output}}')}\n"
    (folder / "a.md").write_text(text, encoding="utf-8")
    found = told(tamis("test", "a.md", "--json", "--filter", "*b").json())
    assert found == [("failed", "the block 'a' has no good result yet; it was not run: let --filter take it too")]


def secret_run(tamis: Tamis, folder: Path, text: str, *words: str | Path) -> tuple[list[tuple[str, str]], str]:
    (folder / "a.md").write_text(text, encoding="utf-8")
    done = tamis("test", "a.md", "--json", *words)
    return told(done.json()), done.out + done.err


SECRET = action("t:echo", key="{{secret:KEY}}")


def test_a_secret_reaches_a_marked_parameter_and_is_shown_nowhere(tamis: Tamis, folder: Path, config: Path) -> None:
    found, shown = secret_run(
        tamis, folder, SECRET + '\n\n```regex expect\n"key": "."\n```\n', "--config", config, "--trust"
    )
    assert found[0][0] == "failed", found
    assert KEY not in shown
    assert '"key": "***"' in json.dumps(json.loads(shown[: shown.rindex("}") + 1])["tests"][0]["output"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (action("t:echo", text="{{secret:KEY}}"), "can only be the whole value"),
        (action("t:echo", key="x {{secret:KEY}}"), "can only be the whole value"),
        (action("t:echo", key="{{secret:KEY}}", text="{{secret:KEY}}"), "can only be the whole value"),
        (action("t:other", key="{{secret:KEY}}"), "policy.secrets does not let 't:other' have 'KEY'"),
        (action("t:echo", key="{{secret:NONE}}"), "defines 'NONE'"),
        (action("t:unknown", key="{{secret:KEY}}"), "can only be the whole value"),
    ],
)
def test_a_secret_goes_nowhere_else(tamis: Tamis, folder: Path, config: Path, text: str, words: str) -> None:
    found, shown = secret_run(tamis, folder, text, "--config", config, "--trust")
    assert found[0][0] == "failed"
    assert words in found[0][1]
    assert KEY not in shown


def test_a_folder_that_is_not_trusted_gets_no_secret(tamis: Tamis, folder: Path, config: Path, untrusted: None) -> None:
    found, shown = secret_run(tamis, folder, SECRET, "--config", config)
    assert "not given to calls of a folder that you do not trust" in found[0][1]
    assert KEY not in shown


def test_a_text_outside_the_trusted_folder_gets_no_secret(
    tamis: Tamis, folder: Path, config: Path, tmp_path: Path
) -> None:
    (tmp_path / "away.md").write_text(SECRET, encoding="utf-8")
    done = tamis("test", tmp_path / "away.md", "--json", "--config", config, "--trust", "--root", folder)
    assert "is given only to calls of files in the folder" in done.json()["tests"][0]["reason"]


def test_a_variable_that_spells_a_secret_gets_its_text(tamis: Tamis, folder: Path, config: Path) -> None:
    (folder / "tamis.toml").write_text('[environments.default]\nk = "{{secret:KEY}}"\n', encoding="utf-8")
    text = action("t:echo", key="{{k}}", text="{{k}}") + '\n\n```json expect\n{"text": "{{k}}"}\n```\n'
    found, shown = secret_run(tamis, folder, text, "--config", config, "--trust")
    assert found == [("passed", "")]
    assert KEY not in shown


def test_a_model_that_writes_a_reference_gets_the_text_that_it_wrote(tamis: Tamis, folder: Path, config: Path) -> None:
    text = "<!-- tamis-name: a -->\n" + action("t:echo", key="{{secret:KEY}}", text="{{city}}")
    (folder / "a.md").write_text(text, encoding="utf-8")
    done = tamis("run", "a.md", "--yes", "--json", "--config", config, "--trust")
    assert KEY not in done.out + done.err
    assert done.json()["results"][0]["output"] == {"key": "{{secret:KEY}}", "text": "{{city}}"}
    parsed = tamis("parse", "a.md", "--config", config, "--trust").out
    assert KEY not in parsed
    assert "Oslo" not in parsed


def test_an_example_of_a_manifest_has_variables_too(tamis: Tamis, folder: Path) -> None:
    examples = [{"input": {"text": "{{city}}"}, "expectedOutput": {"text": "Oslo"}}, {"input": {"text": "{{nope}}"}}]
    make_tool(folder, "t:example", properties=PROPERTIES, examples=examples)
    found = told(tamis("test", "--json").json())
    assert found == [("passed", ""), ("failed", "No variable 'nope' in the environment 'default'")]


def test_a_file_that_is_neither_says_what_would_do(tamis: Tamis, folder: Path) -> None:
    done = tamis("test", "tamis.toml")
    assert done.code == 2
    assert ".tool.json, nor is it a text (.md" in done.err


def test_an_example_may_name_a_secret_for_a_marked_parameter_alone(tamis: Tamis, folder: Path, config: Path) -> None:
    examples = [{"input": {"key": "{{secret:KEY}}"}}, {"input": {"text": "{{secret:KEY}}"}}]
    echo = make_tool(folder, "t:echo", properties=PROPERTIES, examples=examples)
    done = tamis("test", echo / "x.tool.json", "--json", "--config", config, "--trust")
    assert [outcome for outcome, _ in told(done.json())] == ["passed", "failed"]
    assert done.json()["tests"][0]["output"] == {"key": "***"}
    assert KEY not in done.out + done.err
    bare = tamis("test", echo / "x.tool.json", "--json", "--config", config)
    assert KEY not in bare.out + bare.err
