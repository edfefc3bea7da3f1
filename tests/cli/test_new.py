"""``tamis new``: what it makes passes ``tamis check --strict`` and ``tamis test``, whatever script the name is written in."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.protocols.catalogue import severity
from tamis.protocols.manifest.reading import read_manifest
from tamis.protocols.manifest.template import new_tool
from tests.cli.in_process import Tamis
from tests.node_runtime import NODE, bun

NAMES = ("hello", "Weather Report", "天气", "नमस्ते", "مرحبا", "text:shout", "a & b", "x" * 300, "1", "ｆｕｌｌ")


def test_what_it_makes_is_clean_and_passes_in_every_script(tamis: Tamis) -> None:
    for name in NAMES:
        made = tamis("new", name)
        assert made.code == 0, made.err
        assert len(made.out.splitlines()) == 2
    checked = tamis("check", "--strict")
    assert checked.code == 0, checked.out
    tested = tamis("test")
    assert tested.code == 0, tested.out
    assert f"{len(NAMES)} examples of {len(NAMES)} tools: {len(NAMES)} passed" in tested.out


def test_the_other_languages_pass_too(tamis: Tamis, is_long: bool) -> None:
    # bun has to be installed first, which takes longer than all other tests here
    programs = {"nodejs": NODE} | ({"bun": bun()} if is_long else {})
    listed = ", ".join(f'{language} = "{program}"' for language, program in programs.items())
    (tamis.folder / "tamis.toml").write_text(f"[sandbox]\ninterpreters = {{ {listed} }}\n")
    for language in programs:
        assert tamis("new", language, "--language", language).code == 0
    assert tamis("check", "--strict").code == 0
    assert f"{len(programs)} passed" in tamis("test").out


def test_nothing_that_is_there_is_overwritten(tamis: Tamis) -> None:
    assert tamis("new", "hello").code == 0
    script = tamis.folder / "hello" / "hello.py"
    script.write_text("mine")
    again = tamis("new", "hello")
    assert (again.code, again.out) == (1, "")
    other = tamis("new", "hello", "--id", "other:id")
    assert other.code == 1
    assert "there already" in other.err
    assert script.read_text() == "mine"
    (tamis.folder / "file").write_text("")
    assert tamis("new", "x", "--folder", "file").code == 1


def test_ids_folders_and_namespaces_are_the_callers(tamis: Tamis) -> None:
    assert tamis("new", "One", "--namespace", "acme", "--folder", "tools/deep").code == 0
    manifest = json.loads((tamis.folder / "tools" / "deep" / "One.tool.json").read_text("utf-8"))
    assert manifest["toolId"] == "acme:One"
    assert tamis("new", "two", "--id", "whole:id").code == 0
    assert "whole:id" in tamis("list").out
    (tamis.folder / "tamis.toml").write_text('tools = ["tools"]\n')
    outside = tamis("new", "three")
    assert outside.code == 0
    assert "not registered" in outside.err


@pytest.mark.parametrize(
    "words", [["🎉"], ["..."], [""], ["ok", "--id", "a b"], ["ok", "--namespace", "a b"], ["ok", "--language", "perl"]]
)
def test_a_name_that_cannot_be_one_is_wrong_usage(tamis: Tamis, words: list[str]) -> None:
    done = tamis("new", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert list(tamis.folder.iterdir()) == []


@given(st.text(max_size=120))
def test_every_name_gives_a_sound_tool_or_a_reason(name: str) -> None:
    try:
        made = new_tool(name)
    except ValueError:
        assert not any(char.isalnum() for char in name.rpartition(":")[2]) or ":" in name
        return
    (manifest,) = (text for file, text in made.files.items() if file.endswith(".tool.json"))
    assert [diag for diag in read_manifest(manifest).diagnostics if severity(diag) in ("error", "warning")] == []
    for file in made.files:
        assert "/" not in file
        assert "\0" not in file
        assert len(file.encode(sys.getfilesystemencoding(), "surrogatepass")) < 256


def test_a_description_that_is_still_the_samples_is_told_until_it_is_written(tamis: Tamis) -> None:
    assert tamis("new", "my-tool").code == 0
    path = tamis.folder / "my-tool" / "my-tool.tool.json"
    assert "information: The description is still to be written" in (told := tamis("check").out)
    assert "[LN737 description-to-write]" in told
    path.write_text(path.read_text().replace("Replace this by what the tool does,", "It is for tests:"))
    assert tamis("check").out == ""
    # and by a switch
    assert tamis("new", "other").code == 0
    (tamis.folder / "tamis.toml").write_text('[lint]\nLN737 = "off"\n')
    assert tamis("check").out == ""


def test_what_may_not_be_written_is_said_with_cause_and_remedy(tamis: Tamis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 17, a read-only folder: root could write into one, so the refusal is the system's by its number."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "write_text", refuse)
    made = tamis("new", "text:shout")
    assert made.code == 1
    assert "shout.tool.json': Permission denied; make its folder writable, or write into another one" in made.err


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("../x", "`tamis new x --folder ../x`"), ("a/b/", "`tamis new b --folder a/b/`"), ("../", "--folder says where")],
)
def test_a_name_that_is_a_path_is_refused_with_what_was_meant(tamis: Tamis, name: str, remedy: str) -> None:
    """The finding of a fresh user: `tamis new ../x` made a folder x here."""
    done = tamis("new", name)
    assert (done.code, done.out) == (2, "")
    assert f"'{name}' is a path" in done.err and remedy in done.err
    assert list(tamis.folder.iterdir()) == []
