"""What a folder that nobody trusts names outside of it is neither opened nor looked for, by commands and editors (trust 1, ruling 58)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.server.cli.main import main
from tests.lsp.lsp_client import Client
from tests.trust.conftest import World
from tests.trust.support import accept

ASKING = {
    "profile": 'profile = "{place}"\n',
    "tools": 'tools = [".", "{place}"]\n',
    "workflows": 'workflows = ["{place}"]\n',
    "resources": '[resources]\nnotes = "{place}"\n',
    "schemaExtension": 'schemaExtension = ["{place}"]\n',
    "readRoots": '[policy]\nreadRoots = ["{place}"]\n',
    "writeRoots": '[policy]\nwriteRoots = ["{place}"]\n',
    "interpreter": '[sandbox.interpreters]\npython = "{place}"\n',
    "runtime": '[sandbox.runtimes.r]\ncommand = ["{place}"]\nshow = ["{place}"]\n',
    "secret": '[secrets]\nKEY = {{ file = "{place}" }}\n',
    "server": '[mcpServers.s]\ncommand = ["python3", "s.py"]\nfolder = "{place}"\nscript = "s.py"\n',
    "audit": '[audit]\npath = "{place}"\n',
}
COMMANDS = (["check"], ["check", "tamis.toml"], ["list"], ["prompt"], ["doctor"], ["trust", "--json"], ["format", "."])
LOOKS = ("stat", "lstat", "open", "readlink", "scandir", "listdir", "access", "statvfs")


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that this process asks the system about from now on."""
    paths: list[str] = []

    def spied(name: str) -> Callable[..., Any]:
        ask = getattr(os, name)

        def spy(path: Any = ".", *words: Any, **more: Any) -> Any:
            if not isinstance(path, int):
                paths.append(os.fsdecode(path))
            return ask(path, *words, **more)

        return spy

    for name in LOOKS:
        monkeypatch.setattr(os, name, spied(name))
    return paths


@pytest.fixture
def stranger(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A stranger's folder with a link, beside a place that is none of its business."""
    place(world).mkdir()
    (place(world) / "token").write_text("hunter2\n")
    (world.root / "link").symlink_to(place(world))
    (world.root / "a.md").write_text("<ACTION><t:x></t:x></ACTION>\n")
    monkeypatch.chdir(world.root)
    return world


def place(world: World) -> Path:
    return world.root.parent / "elsewhere"


def spellings(world: World) -> list[str]:
    return [str(place(world) / "token"), "../elsewhere/token", "link/token", "./link/../../elsewhere/token"]


def outside(world: World, looked: list[str]) -> list[str]:
    there = str(place(world))
    return [path for path in looked if os.path.normpath(os.path.join(world.root, path)).startswith(there)]


@pytest.mark.parametrize("name", ASKING)
def test_no_command_looks_for_what_is_not_in_force(
    name: str, stranger: World, looked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for spelling in spellings(stranger):
        if name in ("readRoots", "writeRoots") and not spelling.startswith("/"):
            continue
        stranger.folder(ASKING[name].format(place=spelling))
        for words in COMMANDS:
            looked.clear()
            main(words)
            told = capsys.readouterr()
            assert outside(stranger, looked) == [], (spelling, words)
            assert "hunter2" not in told.out + told.err


@pytest.mark.parametrize("name", ASKING)
def test_the_language_server_looks_for_none_of_it_either(name: str, stranger: World, looked: list[str]) -> None:
    uri = (stranger.root / "tamis.toml").as_uri()
    text = ASKING[name].format(place=place(stranger) / "token")
    stranger.folder(text)
    end = text.index(str(place(stranger)))
    at = {"textDocument": {"uri": uri}, "position": {"line": text[:end].count("\n"), "character": 0}}
    at["position"]["character"] = end + 3 - (text.rfind("\n", 0, end) + 1)
    with Client(inside=True) as client:
        client.start(stranger.root)
        client.open(uri, text, "toml")
        assert "ST805" in [item["code"] for item in client.published(uri)]
        for method in ("completion", "hover", "documentLink", "definition", "codeAction", "documentSymbol"):
            params: dict[str, Any] = dict(at)
            if method == "codeAction":
                params |= {"range": {"start": at["position"], "end": at["position"]}, "context": {"diagnostics": []}}
            if method in ("documentLink", "documentSymbol", "codeAction"):
                del params["position"]
            assert "hunter2" not in str(client.call(f"textDocument/{method}", params))
        client.published(uri, client.change(uri, {"text": text + "# typed\n"}))
        client.answer(client.request("tool/list", {}))
        client.answer(client.request("server/health", {}))
    assert outside(stranger, looked) == []


def test_what_check_says_does_not_depend_on_what_is_there(stranger: World, capsys: pytest.CaptureFixture[str]) -> None:
    token = place(stranger) / "token"
    stranger.folder("".join(ASKING[name].format(place=token) for name in ("profile", "tools", "workflows")))

    def said() -> tuple[int, str]:
        return main(["check", "tamis.toml"]), capsys.readouterr().out

    before = said()
    token.unlink()
    assert said() == before
    token.mkdir()
    assert said() == before
    # a long path is cut
    assert re.search(r"'profile' = \S+; what it names was not looked for; `tamis trust` shows it", before[1])
    assert before[0] == 0


def test_what_is_typed_and_would_not_be_in_force_is_not_looked_for(stranger: World, looked: list[str]) -> None:
    """The text of the editor counts, not that of the file; the trust of a host does not reach beyond its folders."""
    uri = (stranger.root / "tamis.toml").as_uri()
    stranger.folder("")
    accept(stranger)
    with Client(inside=True) as client:
        client.start(stranger.root)
        client.open(uri, f'profile = "{place(stranger)}/token"\n', "toml")
        assert [item["code"] for item in client.published(uri)] == ["ST805"]
    assert outside(stranger, looked) == []


def test_what_a_trusted_folder_names_is_looked_for(stranger: World, capsys: pytest.CaptureFixture[str]) -> None:
    stranger.folder('profile = "../elsewhere/none.json"\n')
    accept(stranger)
    assert main(["check", "tamis.toml"]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().out


def test_an_editor_that_trusts_the_folder_looks_for_what_it_names(stranger: World) -> None:
    uri = (stranger.root / "tamis.toml").as_uri()
    text = 'profile = "../elsewhere/none.json"\n'
    stranger.folder(text)
    with Client(inside=True) as client:
        client.start(stranger.root, options={"trusted": True})
        client.open(uri, text, "toml")
        assert [item["code"] for item in client.published(uri)] == ["ST804"]


def test_a_changed_file_is_not_looked_into_for_what_it_names_now(stranger: World, looked: list[str]) -> None:
    stranger.folder('[policy]\nallowHosts = ["a.test"]\n')
    accept(stranger)
    stranger.folder(ASKING["profile"].format(place=place(stranger) / "token"))
    looked.clear()
    assert main(["trust", "--json"]) == 3
    assert main(["trust", "--list"]) == 0
    assert outside(stranger, looked) == []


@pytest.mark.parametrize("kind", ["fifo", "link", "dangling"])
def test_the_text_of_a_file_that_is_never_in_force_is_not_looked_into(
    kind: str, stranger: World, looked: list[str]
) -> None:
    path = stranger.root / "tamis.toml"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(place(stranger) / ("token" if kind == "link" else "none"))
    with Client(inside=True) as client:
        client.start(stranger.root)
        looked.clear()
        client.open(path.as_uri(), f'profile = "{place(stranger)}/profile.json"\ntools = ["nope"]\n', "toml")
        (finding,) = client.published(path.as_uri())
    assert finding["code"] == "ST804"
    assert "no tool is run until it is mended" in finding["message"]
    assert not any("profile.json" in path or "nope" in path for path in looked)


def test_a_manifest_s_schema_elsewhere_has_no_link_that_tells_whether_it_is_there(
    stranger: World, looked: list[str]
) -> None:
    path = stranger.root / "x.tool.json"
    text = f'{{"$schema": "{place(stranger)}/token", "toolId": "t:x"}}'
    path.write_text(text)
    with Client(inside=True) as client:
        client.start(stranger.root)
        client.open(path.as_uri(), text, "json")
        links = client.call("textDocument/documentLink", {"textDocument": {"uri": path.as_uri()}})
    assert [link for link in links or [] if str(place(stranger)) in link["target"]] == []
    assert outside(stranger, looked) == []
