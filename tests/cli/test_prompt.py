"""``tamis prompt``: the text on standard output, everything else on standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.in_process import tamis
from tests.sample_tools import make_tool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "test:echo", examples=[{"description": "Hello.", "input": {"text": "hello"}}], tags=["a"])
    make_tool(tmp_path, "other:count", properties={"n": {"type": "integer"}})
    return tmp_path


def test_the_text_goes_to_stdout_and_its_tokens_to_stderr(root: Path) -> None:
    done = tamis("prompt", "--protocol", "tam", "--few-shot", "2", cwd=root)
    assert done.returncode == 0
    assert "command:»»»test:echo«««\ntext:»»»hello«««" in done.stdout
    assert "tokens, 2 tools, tam" in done.stderr


def test_a_template_is_printed_byte_for_byte_around_the_text(root: Path) -> None:  # V30
    (root / "system.md").write_bytes("你好\r\n{{tools}}\r\n\\{{tools}} {{user}}".encode())
    words = ("prompt", "--template", "system.md", "--no-instructions", "--tool", "test:echo")
    done = tamis(*words, cwd=root)
    plain = tamis("prompt", "--no-instructions", "--tool", "test:echo", cwd=root).stdout.removesuffix("\n")
    assert done.stdout == f"你好\r\n{plain}\r\n{{{{tools}}}} {{{{user}}}}"


def test_json_is_the_rpc_result(root: Path) -> None:
    done = tamis("prompt", "--json", "--style", "compact", "--tag", "a", cwd=root)
    made = json.loads(done.stdout)
    assert made["style"] == "compact"
    assert [*made["tokens"]["perTool"]] == ["test:echo"]


def test_a_budget_takes_examples_away_and_then_refuses(root: Path) -> None:
    large = json.loads(tamis("prompt", "--few-shot", "1", "--json", cwd=root).stdout)["tokens"]["total"]
    done = tamis("prompt", "--few-shot", "1", "--max-tokens", str(large - 1), cwd=root)
    assert done.returncode == 0
    assert f"1 of 1 example is left out: more would be above --max-tokens {large - 1}" in done.stderr
    done = tamis("prompt", "--max-tokens", "2", cwd=root)
    assert (done.returncode, done.stdout) == (1, "")
    assert "more than --max-tokens 2; choose fewer with --tool or --tag" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--tool", "test:ecko"], "did you mean 'test:echo'?"),
        (["--protocol", "acton"], "did you mean 'action'?"),
        (["--few-shot", "many"], "is not a whole number from 0 to 50"),
        (["--max-tokens", "0"], "is not a whole number above zero"),
        (["--template", "nowhere.md"], "cannot read 'nowhere.md'"),
        (["--style", "short"], "invalid choice"),
    ],
)
def test_wrong_usage_is_said(root: Path, words: list[str], told: str) -> None:
    done = tamis("prompt", *words, cwd=root)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_where_calls_are_off_nothing_is_printed(root: Path) -> None:  # V31
    (root / "agent_profile.json").write_text("{}")
    (root / "tamis.toml").write_text('profile = "agent_profile.json"\n')
    done = tamis("prompt", cwd=root)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no toolCallConfig" in done.stderr


def test_a_template_without_the_macro_is_said_to_be_alone(root: Path) -> None:
    (root / "bare.md").write_text("no macro here")
    done = tamis("prompt", "--template", "bare.md", cwd=root)
    assert "the template has no {{tools}}" in done.stderr
    assert "of the template alone" in done.stderr
    assert "2 tools" not in done.stderr


def test_one_tool_is_counted_as_one_and_a_shape_that_is_not_used_is_said(root: Path) -> None:
    done = tamis("prompt", "--protocol", "tam", "--shape", "inputs", "--tool", "test:echo", cwd=root)
    assert "tokens, 1 tool, tam" in done.stderr
    assert "shape 'inputs' is one of ACTION's; tam has one form" in done.stderr


def test_a_tool_without_its_option_is_told_with_it(root: Path) -> None:
    done = tamis("prompt", "test:echo", "other:count", "--protocol", "tam", cwd=root)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "tamis: tools are named by an option: --tool test:echo --tool other:count\n"
    assert "names" not in tamis("prompt", "--help", cwd=root).stdout.partition("options:")[0]
