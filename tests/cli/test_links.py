"""Searches of ``check`` and ``format``: no link leads out of the searched folder, and nothing but regular files is opened."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from tamis.server.cli.main import main
from tamis.server.runtime.tools.loader import LoadProblem, read_manifest_file
from tests.cli.in_process import Tamis
from tests.sample_tools import make_tool

TEXT = "<ACTION><t:x><p>1</p></t:x></ACTION>\n"
CANONICAL = "<ACTION>\n  <t:x>\n    <p>1</p>\n  </t:x>\n</ACTION>\n"
NAMES = ("a.md", "a.tam", "tamis.toml", "agent_profile.json", "a.tool.json", "a.node.json", ".gitignore")


@pytest.fixture
def tamis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside").mkdir()
    return Tamis(tmp_path / "folder", monkeypatch, capsys)


def outside(tamis: Tamis, text: str = TEXT, name: str = "secret.md") -> Path:
    path = tamis.folder.parent / "outside" / name
    path.write_text(text)
    return path


def test_a_search_neither_writes_nor_reads_through_a_link_that_leads_out(tamis: Tamis) -> None:
    target = outside(tamis)
    (tamis.folder / "a.md").symlink_to(target)
    (tamis.folder / "docs").symlink_to(target.parent)
    (tamis.folder / "back.md").symlink_to("../outside/../folder/../outside/secret.md")
    done = tamis("format", ".")
    assert (done.code, done.out) == (0, "")
    assert target.read_text() == TEXT
    assert "a.md: is a link that leads out of the searched folder; passed over" in done.err
    done = tamis("check", "--format", "json")
    assert (done.code, done.json()["files"]) == (0, [])
    assert "back.md is a link that leads out of the searched folder; passed over" in done.err


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [("check",), ("format", "."), ("list",)], ids=" ".join)
def test_what_a_link_leads_to_elsewhere_is_not_opened(
    name: str, command: tuple[str, ...], tamis: Tamis, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = outside(tamis, "hunter2 hunter2\n")
    (tamis.folder / name).symlink_to(target)
    opened: list[str] = []
    ask = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *words, **more: (opened.append(os.path.realpath(path)), ask(path, *words, **more))[1]
    )
    done = tamis(*command)
    assert str(target) not in opened
    assert "hunter2" not in done.out + done.err


def test_a_link_within_the_folder_is_looked_at_once(tamis: Tamis) -> None:
    (tamis.folder / "real.md").write_text(TEXT)
    (tamis.folder / "link.md").symlink_to("real.md")
    (tamis.folder / "plain.txt").write_text(TEXT)
    for name in ("one.md", "two.md"):
        (tamis.folder / name).symlink_to("plain.txt")
    (tamis.folder / "loop").symlink_to(".")
    assert sorted(file["path"] for file in tamis("check", "--format", "json").json()["files"]) == ["one.md", "real.md"]
    assert tamis("format", ".").out == "formatted one.md\nformatted real.md\n"
    assert (tamis.folder / "plain.txt").read_text() == (tamis.folder / "real.md").read_text() == CANONICAL
    assert (tamis.folder / "one.md").is_symlink()


def test_what_a_person_names_is_followed(tamis: Tamis) -> None:
    target = outside(tamis)
    (tamis.folder / "a.md").symlink_to(target)
    (tamis.folder / "docs").symlink_to(target.parent)
    assert [file["path"] for file in tamis("check", "--format", "json", "a.md").json()["files"]] == ["a.md"]
    assert [file["path"] for file in tamis("check", "--format", "json", "docs").json()["files"]] == ["docs/secret.md"]
    assert tamis("format", "a.md").out == "formatted a.md\n"
    assert target.read_text() == CANONICAL


def special(path: Path, kind: str) -> None:
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(path.name)
        os.chdir(here)
    else:
        try:
            os.mknod(path, 0o20600, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("tamis.toml", ".gitignore")])
def test_what_is_no_file_is_an_error_that_names_it_and_is_never_opened(
    name: str, kind: str, tamis: Tamis, monkeypatch: pytest.MonkeyPatch
) -> None:
    special(tamis.folder / name, kind)
    opened: list[str] = []
    ask = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *words, **more: (opened.append(str(path)), ask(path, *words, **more))[1]
    )
    checked, formatted = tamis("check"), tamis("format", ".")
    assert (checked.code, formatted.code) == (1, 1)
    assert f"{name}:1:1: error: is a {kind}, not a regular file" in checked.out
    assert f"{name}: is a {kind}, not a regular file" in formatted.err
    assert [path for path in opened if path.endswith(name)] == []


@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_check_says_of_a_manifest_what_the_registry_says(kind: str, tamis: Tamis) -> None:
    path = tamis.folder / "a.tool.json"
    make_tool(tamis.folder, "t:x")
    if kind == "link":
        path.symlink_to(next(tamis.folder.rglob("*.tool.json")))
    else:
        os.mkfifo(path)
    problem = read_manifest_file(str(path))
    assert isinstance(problem, LoadProblem)
    told = problem.message
    assert told in tamis("list").err + tamis("doctor").out
    for words in ((), ("a.tool.json",)):
        done = tamis("check", "--format", "json", *words)
        found = {file["path"]: file["diagnostics"] for file in done.json()["files"]}["a.tool.json"]
        assert (done.code, [(one["code"], one["message"]) for one in found]) == (1, [("MF500", told)])


def test_a_workflow_that_is_a_link_is_refused_as_in_the_registry(tamis: Tamis) -> None:
    target = outside(tamis, json.dumps({"nodes": [], "edges": [], "description": "x"}), "flow.json")
    (tamis.folder / "tamis.toml").write_text('workflows = ["flows"]\n')
    (tamis.folder / "flows").mkdir()
    (tamis.folder / "flows" / "flow.json").symlink_to(target)
    done = tamis("check", "flows")
    assert done.code == 1
    assert "flows/flow.json:1:1: error: is a symbolic link; put the file itself here" in done.out


def test_a_settings_file_that_leads_out_is_not_quoted_when_it_is_named(tamis: Tamis) -> None:
    (tamis.folder / "tamis.toml").symlink_to(outside(tamis, "hunter2 = [\n"))
    done = tamis("check", "tamis.toml")
    assert done.code == 1
    assert "hunter2" not in done.out + done.err
    assert "is a link that leads outside its folder; put the file itself there" in done.out


def test_what_another_program_writes_into_a_named_fifo_is_checked(tamis: Tamis) -> None:
    path = tamis.folder / "pipe"
    os.mkfifo(path)
    done = tamis("check", "pipe")
    assert (done.code, "is a FIFO that nobody writes to" in done.out) == (1, True)
    holding = os.open(path, os.O_RDWR)

    def write() -> None:
        with path.open("w") as stream:
            os.close(holding)
            stream.write("<ACTION><t:x><p>1</t:x></ACTION>")

    writer = threading.Timer(0.2, write)
    writer.start()
    done = tamis("check", "pipe")
    writer.join()
    assert "pipe:1:" in done.out


def test_a_file_that_became_a_link_meanwhile_is_not_written(tamis: Tamis, monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.server.runtime.texts import formatting

    target, path = outside(tamis), tamis.folder / "a.md"
    path.write_text(TEXT)
    write = formatting.write_file

    def swapped(file: formatting.FormattedFile) -> str | None:
        path.unlink()
        path.symlink_to(target)
        return write(file)

    monkeypatch.setattr(formatting, "write_file", swapped)
    done = tamis("format", ".")
    assert (done.code, target.read_text()) == (1, TEXT)
    assert "was changed meanwhile; not written" in done.err


def test_an_ignore_file_is_no_link_and_no_fifo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("root", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "rules").write_text("*.md\n")
    (tmp_path / "root" / "a.md").write_text("x")
    (tmp_path / "root" / ".gitignore").symlink_to(tmp_path / "other" / "rules")
    os.mkfifo(tmp_path / "root" / ".ignore")
    assert main(["check", str(tmp_path / "root"), "--format", "json"]) == 0
    assert "a.md" in capsys.readouterr().out


def test_doctor_does_not_open_where_the_settings_lead(tamis: Tamis, monkeypatch: pytest.MonkeyPatch) -> None:
    target = outside(tamis, "hunter2 = 1\n")
    (tamis.folder / "tamis.toml").symlink_to(target)
    opened: list[str] = []
    ask = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *words, **more: (opened.append(os.path.realpath(path)), ask(path, *words, **more))[1]
    )
    done = tamis("doctor")
    assert "is a link that leads outside its folder and is not in force" in done.out
    assert str(target) not in opened and "hunter2" not in done.out
