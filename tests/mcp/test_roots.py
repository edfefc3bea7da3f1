"""The folders that a client names (mcp, Server: a host's roots are told as folders; trust.md)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.server.mcp import server
from tamis.server.mcp.revisions import MAX_ROOTS, folders_of
from tests.mcp.raw_client import RawClient, started
from tests.sample_tools import make_tool

ROOTS = {"roots": {"listChanged": True}}


class Host(RawClient):
    """A client that answers for its folders."""

    def __init__(self, roots: list[Any], process: subprocess.Popen[bytes] | None = None) -> None:
        super().__init__(None, process)
        self.roots = roots
        self.asked = 0

    def next(self) -> dict[str, Any]:
        message = super().next()
        if message.get("method") == "roots/list":
            self.asked += 1
            listed = [{"uri": root} for root in self.roots]
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": listed}})
        return message

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["result"]["tools"]]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, untrusted: None) -> Path:
    """The working folder ``start``, and two that a client names."""
    for name in ("start", "one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tamis.toml").write_text("")
        make_tool(tmp_path / name, f"{name}:tool")
        make_tool(tmp_path / name, "all:echo", f"print('\"{name}\"')")
    monkeypatch.chdir(tmp_path / "start")
    monkeypatch.setattr(server, "ROOTS_S", 600.0)  # these clients do answer, however busy the machine is
    return tmp_path


@pytest.fixture
def host(folders: Path) -> Iterator[Host]:
    with Host(roots=[(folders / name).as_uri() for name in ("one", "two")]) as made:
        yield made


def test_the_tools_of_several_roots_are_offered_and_the_first_of_a_name_counts(host: Host) -> None:
    host.shake(able=ROOTS)
    assert host.names() == ["all_echo", "one_tool", "two_tool"]
    assert host.asked == 1
    called = host.ask("tools/call", {"name": "two_tool", "arguments": {"text": "x"}})["result"]
    assert called["structuredContent"] == {"text": "x"}
    assert host.ask("tools/call", {"name": "all_echo"})["result"]["content"][0]["text"] == "one"
    assert "one:tool" in host.ask("resources/read", {"uri": "tamis:tool/one_tool"})["result"]["contents"][0]["text"]


def test_other_roots_are_followed_and_the_client_is_told(host: Host, folders: Path) -> None:
    host.shake(able=ROOTS)
    assert "one_tool" in host.names()
    changed = "notifications/tools/list_changed"
    before = len(host.later(changed))
    host.roots = [(folders / "two").as_uri()]
    host.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    while len(host.later(changed)) == before:
        host.next()
    assert host.names() == ["all_echo", "two_tool"]
    assert host.ask("tools/call", {"name": "one_tool"})["error"]["code"] == -32602


def test_roots_that_are_no_folders_leave_the_folder_of_the_start(folders: Path) -> None:
    (folders / "file").touch()
    wrong = [(folders / "file").as_uri(), (folders / "gone").as_uri(), "https://example.com/x", "file://other/x", 7]
    with Host(roots=wrong) as host:
        host.shake(able=ROOTS)
        assert host.names() == ["all_echo", "start_tool"]
        host.end()
        log = "".join(host.errors)
    for words in ("is a file, no folder", "is not there", "'https://example.com/x' is no file:// address"):
        assert words in log


@pytest.mark.parametrize(
    ("words", "able"), [(("--root", "."), ROOTS), (("--trust",), ROOTS), ((), {})], ids=["root", "trust", "none"]
)
def test_nobody_is_asked_for_roots_where_the_start_says_the_folder(
    folders: Path, words: tuple[str, ...], able: dict[str, Any]
) -> None:
    """trust.md: what the person said with the start holds for that folder, and for none that a host names."""
    with Host([(folders / "one").as_uri()], started(None, *words, cwd=folders / "start")) as host:
        host.shake(able=able)
        assert host.names() == ["all_echo", "start_tool"]
        assert host.asked == 0


def test_a_root_is_untrusted_whatever_its_own_file_says(folders: Path) -> None:
    """trust.md: a folder from a host's roots is untrusted until the person said otherwise."""
    mark = folders / "mark"
    evil = folders / "one" / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {mark}\n")
    evil.chmod(0o755)
    asks = '[policy]\nreadRoots = ["/"]\n[sandbox.interpreters]\npython = "{}"\n[resources]\nout = "/etc"\n'
    (folders / "one" / "tamis.toml").write_text(asks.format(evil))
    with Host(roots=[(folders / "one").as_uri()]) as host:
        host.shake(able=ROOTS)
        assert "one_tool" in host.names()
        called = host.ask("tools/call", {"name": "one_tool", "arguments": {"text": "x"}})["result"]
        assert called["structuredContent"] == {"text": "x"}
        assert host.ask("resources/read", {"uri": "fam://out/hostname"})["error"]["code"] == -32002
    assert not mark.exists()


def test_a_client_that_does_not_name_its_folders_is_served_all_the_same(folders: Path) -> None:
    with RawClient(None) as client:
        client.shake(able=ROOTS)
        while not (asked := [one for one in client.seen if one.get("method") == "roots/list"]):
            client.next()
        client.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}})
        refusal = {"code": -32601, "message": "no roots here"}
        client.send({"jsonrpc": "2.0", "id": asked[0]["id"], "error": refusal})
        assert [tool["name"] for tool in client.until(9)["result"]["tools"]] == ["all_echo", "start_tool"]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("file:///", "/"),
        *[(uri, None) for uri in ("file:a", "file://host/a", "file:///a%00", "file:///%ff", "FTP:///a", "/a", "", "file:///a?b")],
        ("file:///" + "x" * 5_000, None),
        ("http://[", None),
    ],
)  # fmt: skip
def test_a_root_is_a_file_address_of_this_machine(uri: str, path: str | None) -> None:
    paths, refused = folders_of({"roots": [{"uri": uri}]})
    assert paths == ([] if path is None else [path])
    assert len(refused) == (path is None)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(answer=_JSON | st.fixed_dictionaries({"roots": st.lists(st.fixed_dictionaries({"uri": _JSON}), max_size=40)}))
def test_any_answer_about_roots_is_read(answer: Any) -> None:
    paths, _ = folders_of(answer)
    assert len(paths) <= MAX_ROOTS
    assert all(os.path.isabs(path) and "\0" not in path for path in paths)
