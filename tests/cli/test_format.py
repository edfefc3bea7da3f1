"""``tamis format``: canonical manifests and call blocks; what is doubtful is left and named."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.cli.main import main
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.texts.formatting import FormattedFile, format_source, write_file
from tests.cli.in_process import tamis
from tests.sample_tools import make_tool

MANIFEST = '{"tags": ["x"], "toolId": "a:b", /* kept */ "version": "1.0.0",\n "displayName": "A"}'
TEXT = "Look: <ACTION><T><p>1</p></T></ACTION>\n\nthen <<<[tool_request]>>>\ntool_name：「始」a「末」\n<<<[END_TOOL_REQUEST]>>>\n"
CANONICAL = (
    "Look: <ACTION>\n  <T>\n    <p>1</p>\n  </T>\n</ACTION>\n\n"
    "then <<<[TOOL_REQUEST]>>>\ntool_name:「始」a「末」\n<<<[END_TOOL_REQUEST]>>>\n"
)


def test_manifests_and_texts_below_a_folder_are_written_in_place(tmp_path: Path) -> None:
    (tmp_path / "a.tool.json").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "notes.md").write_text(TEXT, encoding="utf-8")
    (tmp_path / "other.txt").write_text(TEXT, encoding="utf-8")
    done = tamis("format", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "formatted a.tool.json\nformatted notes.md\n")
    assert (tmp_path / "a.tool.json").read_text("utf-8") == (
        '{\n  "toolId": "a:b", /* kept */\n  "displayName": "A",\n  "version": "1.0.0",\n  "tags": [\n    "x"\n  ]\n}\n'
    )
    assert (tmp_path / "notes.md").read_text("utf-8") == CANONICAL
    assert (tmp_path / "other.txt").read_text("utf-8") == TEXT
    again = tamis("format", ".", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "")


def test_check_writes_nothing_and_fails(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(TEXT, encoding="utf-8")
    done = tamis("format", "--check", "notes.md", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "would format notes.md\n")
    assert (tmp_path / "notes.md").read_text("utf-8") == TEXT


def test_stdin_goes_to_stdout(tmp_path: Path) -> None:
    assert tamis("format", "-", cwd=tmp_path, data=TEXT).stdout == CANONICAL
    assert tamis("format", "-", cwd=tmp_path, data='{"a":1}').stdout == '{\n  "a": 1\n}\n'
    assert tamis("format", "--check", "-", cwd=tmp_path, data=TEXT).returncode == 1
    assert tamis("format", "--check", "-", cwd=tmp_path, data=CANONICAL).returncode == 0


@pytest.mark.parametrize(
    ("block", "why", "code"),
    [
        ("<ACTION><T><p>1</p></T><!-- why --></ACTION>", "it has comments", 0),
        ("  <ACTION><T><p>1</p></T></ACTION>", "it is indented", 0),
        ("<ACTION>\r\n<T><p>1</p></T></ACTION>", "its line ends are not plain line feeds", 0),
        ("<|[REQUEST_TOOL]|>\ncommand:»»»a«««\ncomment:»»»x«««\nx: »»»1«««\n<|[END_TOOL]|>", "it has comments", 0),
        ("<|[REQUEST_TOOL]|>\ncommand:»»»a«««\ncommon_x: »»»1«««\n<|[END_TOOL]|>", "it has shared parameters", 0),
        ("<|[REQUEST_TOOL]|>\ncommand:»»»a«««\nx:»»»1«««\nx:»»»2«««\n<|[END_TOOL]|>", "x given 2 times", 1),
        ("<ACTION><T><p>1</p>", "ACTION block is cut off", 1),
    ],
    ids=str,
)
def test_what_a_person_has_to_look_at_is_left_and_named(tmp_path: Path, block: str, why: str, code: int) -> None:
    done = tamis("format", "-", cwd=tmp_path, data=block)
    assert (done.returncode, done.stdout) == (code, block)
    assert "-:1: block left as it is: " in done.stderr and why in done.stderr


def test_a_schema_gives_a_tam_key_its_spelling_back(tmp_path: Path) -> None:
    make_tool(tmp_path, "t", properties={"filePath": {"type": "string"}})
    text = "<|[REQUEST_TOOL]|>\ncommand: »»»t«««\nfilePath: »»» x «««\n<|[END_TOOL]|>"
    done = tamis("format", "-", cwd=tmp_path, data=text)
    assert done.stdout == "<|[REQUEST_TOOL]|>\ncommand:»»»t«««\nfile_path:»»»x«««\n<|[END_TOOL]|>"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"toolId": "a",', "The text ends before"),
        ('{"toolId": "a", "toolId": "b"}', "stands twice"),
        ('{"toolId": /* odd */ "a"}', "a comment stands"),
        ("", "empty"),
    ],
)
def test_a_manifest_that_is_not_sound_is_left_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "x.tool.json"
    path.write_text(text, encoding="utf-8")
    done = tamis("format", "x.tool.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "x.tool.json: not formatted: " in done.stderr and why in done.stderr
    assert path.read_text("utf-8") == text


def test_a_file_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "real.md"
    path.write_text(TEXT, encoding="utf-8")
    path.chmod(0o640)
    (tmp_path / "link.md").symlink_to(path)
    assert tamis("format", "link.md", cwd=tmp_path).returncode == 0
    assert (path.read_text("utf-8"), path.stat().st_mode & 0o777) == (CANONICAL, 0o640)
    assert (tmp_path / "link.md").is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.md", "real.md"]


def test_a_file_that_changed_or_went_away_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("someone else was here", encoding="utf-8")
    assert write_file(FormattedFile(str(path), TEXT, CANONICAL)) == "was changed meanwhile; not written"
    assert path.read_text("utf-8") == "someone else was here"
    gone = write_file(FormattedFile(str(tmp_path / "none" / "x.md"), TEXT, CANONICAL))
    assert gone is not None and "cannot be written" in gone
    assert [one.name for one in tmp_path.iterdir()] == ["notes.md"]


BLOCKS = (
    "<ACTION><t:x><p>1</p></t:x></ACTION>",
    "<ACTION>\n  <t:x>\n    <p>1</p>\n  </t:x>\n</ACTION>",
    "<action><T><p> 1 </p><p>2</p></T></action>",
    "<ACTION><t:x><p>a < b</p></t:x></ACTION>",
    "<ACTION><T><p>1</p>",
    '<ACTION id="t:x"><INPUTS>{"a": 1}</INPUTS></ACTION>',
    "<|[REQUEST_TOOL]|>\ncommand: »»»t«««\nfilePath: »»» x «««\n<|[END_TOOL]|>",
    "<|[REQUEST_TOOL]|>\ncommand:»»»a«««\nx:»»»1«««\nx:»»»2«««\n<|[END_TOOL]|>",
    "<<<[tool_request]>>>\ntool_name：「始」a「末」\n<<<[END_TOOL_REQUEST]>>>",
    "<<<[TOOL_REQUEST]>>>\ntool_name:「始」a「末」,\nx:「始」b「末」\n<<<[END_TOOL_REQUEST]>>>",
    '<tool_call>\n{"name": "t",   "arguments": {}}\n</tool_call>',
)
BETWEEN = ("", "\n", "\n\n", "Text. ", "\n# Heading\n\n", "> ", "  ", "```\n", "`", "<think>", "</think>", "- ", "\r\n")


@given(st.lists(st.tuples(st.sampled_from(BETWEEN), st.sampled_from(BLOCKS)), min_size=1, max_size=5), st.booleans())
def test_a_formatted_file_is_as_it_should_be(pieces: list[tuple[str, str]], also: bool) -> None:
    """Formatting twice is formatting once, and `--check` behind it fails for nothing but what a person has to look at."""
    text = "".join(part for piece in pieces for part in piece)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tamis.toml").write_text('[protocol]\nalso = ["hermes"]\n' if also else "")
        runtime = Runtime(Path(folder))
        once = format_source("a.md", text, runtime)
        twice = format_source("a.md", once.text, runtime)
    assert (twice.text, twice.changed) == (once.text, False)
    assert [note.text for note in twice.notes if note.doubtful] == [note.text for note in once.notes if note.doubtful]


@pytest.mark.parametrize("name", ["a.md", "a.action", "a.tam", "a.vcp", "any"])
@pytest.mark.parametrize(
    "block", [BLOCKS[0], BLOCKS[6], BLOCKS[8], '<action id="t:x"><inputs>{"a":1}</inputs></action>'], ids=range(4)
)
def test_every_block_of_a_file_is_formatted(name: str, block: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"{block}\n\n{block}\n\nText\n\n{block}\n")
    assert main(["format", str(tmp_path / name)]) == 0
    once = (tmp_path / name).read_text()
    assert len(set(once.replace("\n\nText", "").rstrip("\n").split("\n\n"))) == 1 and block not in once
    assert main(["format", "--check", str(tmp_path / name)]) == 0


@pytest.mark.parametrize("words", [["format"], ["format", "nowhere"], ["format", "-", "x.md"]])
def test_wrong_usage_exits_with_two(tmp_path: Path, words: list[str]) -> None:
    assert tamis(*words, cwd=tmp_path).returncode == 2


def test_the_projects_own_examples_are_canonical(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent.parent / "examples"
    done = tamis("format", "--check", "tools", "--root", str(root), cwd=root)
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads((root / "tools/units-convert/units-convert.tool.json").read_text("utf-8"))["toolId"]


def test_stdin_is_a_manifest_behind_a_comment_or_by_its_name(tmp_path: Path) -> None:
    assert tamis("format", "-", cwd=tmp_path, data='// c\n{"a":1}').stdout == '// c\n{\n  "a": 1\n}\n'
    named = tamis("format", "--stdin-name", "x.tool.json", "-", cwd=tmp_path, data="[1]")
    assert named.stdout == "[\n  1\n]\n"
    assert tamis("format", "--stdin-name", "x.md", "notes.md", cwd=tmp_path).returncode == 2


def test_hermes_that_is_not_asked_for_is_said(tmp_path: Path) -> None:
    done = tamis("format", "-", cwd=tmp_path, data="<tool_call>\n{}\n</tool_call>\n")
    assert (done.returncode, done.stdout) == (0, "<tool_call>\n{}\n</tool_call>\n")
    assert "<tool_call> is not read" in done.stderr
