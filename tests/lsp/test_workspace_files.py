"""What changes on disk reaches open documents without an edit to them: told by the client, by its file operations, or found by looking."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.positions import LineIndex
from tamis.server.lsp.documents import Document
from tamis.server.lsp.features import rename
from tamis.server.lsp.workspace import elsewhere, scanning
from tamis.server.lsp.workspace.roots import Root
from tamis.server.lsp.workspace.scanning import Change, Scanner
from tamis.server.lsp.workspace.workspace import Workspace
from tamis.server.runtime.settings.files import folder_time
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.texts import checkables
from tamis.server.runtime.tools.loader import walk_files
from tamis.server.runtime.tools.sources import composed, find
from tests.lsp.lsp_client import Client
from tests.lsp.workspace_folder import CALL, WATCHES, codes, manifest
from tests.waiting import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text("")
    (tmp_path / "echo.tool.json").write_text(manifest())
    return tmp_path


class Watched:
    """A workspace with its scanner, without a session."""

    def __init__(self, *folders: Path) -> None:
        self.workspace = Workspace()
        self.workspace.configure([str(folder) for folder in folders], {})
        self.changes: list[Change] = []
        self.said: list[str] = []
        self._idle = threading.Event()
        self.scanner = Scanner(
            self.workspace,
            loaded=lambda _: None,
            changed=self.changes.append,
            idle=self._idle.set,
            say=self.said.append,
            busy=lambda: False,
        )
        self.settle(lambda: self.scanner.load(self.workspace.roots))

    def settle(self, do: Callable[[], None]) -> None:
        """Does something and waits until the scanner has nothing left to do."""
        self._idle.clear()
        do()
        self._idle.wait()

    def look(self, *paths: Path) -> None:
        self.settle(lambda: self.scanner.look([str(path) for path in paths]))

    @property
    def root(self) -> Root:
        return self.workspace.roots[0]

    @property
    def files(self) -> list[str]:
        return [os.path.relpath(path, self.root.path) for path in self.workspace.index.files()]

    @property
    def tools(self) -> list[str]:
        registry = self.root.registry
        assert registry is not None
        return [tool.tool_id for tool in registry.tools]


def agrees_with_a_fresh_load(watched: Watched) -> None:
    """What was kept up to date is what loading everything anew finds."""
    folder = Path(watched.root.path)
    registry = watched.root.registry
    assert registry is not None
    settings = load_settings(folder).settings
    fresh = composed(find(folder, settings), settings, (), ())
    assert [(one.manifest, one.path, one.available, one.reason) for one in registry.tools] == [
        (one.manifest, one.path, one.available, one.reason) for one in fresh.tools
    ]
    assert registry.conflicts == fresh.conflicts
    assert sorted(error.path for error in registry.errors) == sorted(error.path for error in fresh.errors)
    again = Watched(folder)
    assert watched.workspace.index.files() == again.workspace.index.files()
    for path in again.workspace.index.files():
        assert watched.workspace.index.text(path) == again.workspace.index.text(path)


# Through the wire


def test_client_that_cannot_watch_sees_changes_all_the_same(root: Path) -> None:
    # item 1: by watching where the client cannot
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        (root / "echo.tool.json").write_text(manifest(parameter="txt"))
        assert codes(client.published(uri)) == []
        status = [one["params"] for one in client.messages if one.get("method") == "experimental/serverStatus"]
        assert status[-1]["message"].startswith("tools: 1")


def test_files_that_the_editor_creates_renames_and_deletes_are_looked_at(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    capabilities = {
        "workspace": {
            **WATCHES["workspace"],
            "fileOperations": {"didCreate": True, "didRename": True, "didDelete": True},
        }
    }
    with Client() as client:
        announced = client.start(root, capabilities)["capabilities"]["workspace"]["fileOperations"]
        assert {"didCreate", "didRename", "didDelete"} <= announced.keys()
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        # A folder is renamed, and the events name the folder alone.
        (root / "old").mkdir()
        (root / "echo.tool.json").rename(root / "old" / "echo.tool.json")
        client.notify("workspace/didCreateFiles", {"files": [{"uri": (root / "old").as_uri()}]})
        client.notify("workspace/didDeleteFiles", {"files": [{"uri": (root / "echo.tool.json").as_uri()}]})
        (root / "old").rename(root / "new")
        (root / "new" / "echo.tool.json").write_text(manifest(parameter="txt"))
        files = [{"oldUri": (root / "old").as_uri(), "newUri": (root / "new").as_uri()}]
        client.notify("workspace/didRenameFiles", {"files": files})
        while codes(client.published(uri)):
            pass
        (root / "new" / "echo.tool.json").unlink()
        (root / "other.tool.json").write_text(manifest("core:other"))
        client.notify("workspace/didDeleteFiles", {"files": [{"uri": (root / "new").as_uri()}]})
        client.notify("workspace/didCreateFiles", {"files": [{"uri": (root / "other.tool.json").as_uri()}]})
        while codes(client.published(uri)) != ["VA401"]:
            pass


def test_saving_a_new_manifest_brings_its_tool_without_any_watching(root: Path) -> None:
    uri, new = (root / "a.md").as_uri(), root / "new.tool.json"
    with Client() as client:
        client.start(root, WATCHES)
        client.open(uri, CALL.replace("core:echo", "core:new"))
        assert codes(client.published(uri)) == ["VA401"]
        client.open(new.as_uri(), manifest("core:new"), "json")
        new.write_text(manifest("core:new"))
        client.notify("textDocument/didSave", {"textDocument": {"uri": new.as_uri()}})
        while codes(client.published(uri)) != ["VA403"]:
            pass


def test_configuration_that_changes_on_disk_is_taken(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root, WATCHES)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        (root / "other").mkdir()
        (root / "tamis.toml").write_text('tools = ["other"]\n')
        client.notify(
            "workspace/didChangeWatchedFiles", {"changes": [{"uri": (root / "tamis.toml").as_uri(), "type": 1}]}
        )
        # No tool is known any more: then calls are not judged.
        assert codes(client.published(uri)) == []


def test_two_servers_on_one_folder_see_the_same(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    with Client() as one, Client() as two:
        for client in (one, two):
            client.start(root)
            client.open(uri, CALL)
            assert codes(client.published(uri)) == ["VA403"]
        (root / "echo.tool.json").write_text(manifest(parameter="txt"))
        for client in (one, two):
            assert codes(client.published(uri)) == []


def test_folder_behind_a_link_is_known_by_the_name_that_the_editor_uses(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = tmp_path_factory.mktemp("links") / "here"
    link.symlink_to(root)
    uri, there = (link / "a.md").as_uri(), (link / "echo.tool.json").as_uri()
    with Client() as client:
        client.start(link)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        client.open(there, manifest(), "json")
        client.published(there)
        client.change(there, {"text": manifest(parameter="txt")})
        assert codes(client.published(uri)) == []


URIS = [
    "file:///w/%00.md",
    "file:relative.md",
    "file://[",
    "file:",
    "",
    "a.md",
    "git:/w/a.md?x",
    "untitled:U",
    "file://host/a.md",
    "file:///w/%ff.md",
    "file:///w/" + "long" * 2_000 + ".md",
]


def test_uri_of_any_kind_is_a_document(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Client() as client:
        client.start(root)
        for uri in URIS:
            client.open(uri, "</ACTION>\n")
            assert [item["code"] for item in client.published(uri)] == ["TC003"]
            client.call("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 3}})
            client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
            client.notify("workspace/didRenameFiles", {"files": [{"oldUri": uri, "newUri": uri}]})
            client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert client.stop() == 0
    assert "Traceback" not in capsys.readouterr().err


# The scanner alone


def test_index_holds_what_says_something_about_tools(root: Path) -> None:
    (root / "a.md").write_text(CALL)
    (root / "prose.md").write_text("nothing to see\n")
    (root / "sub").mkdir()
    (root / "sub" / "b.vcp").write_text("<<<[TOOL_REQUEST]>>>\n")
    (root / "agent_profile.json").write_text('{"tool_ids_inventory": ["core:echo"]}')
    (root / "package.json").write_text("{}")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "c.md").write_text(CALL)
    (root / ".gitignore").write_text("ignored.md\n")
    (root / "ignored.md").write_text(CALL)
    watched = Watched(root)
    assert watched.files == ["a.md", "agent_profile.json", "echo.tool.json", "sub/b.vcp"]
    assert [one.role for one in watched.workspace.index.occurrences("core:echo")] == ["call", "profile", "declaration"]


def test_open_document_counts_instead_of_its_file(root: Path) -> None:
    (root / "a.md").write_text(CALL)
    watched = Watched(root)
    workspace = watched.workspace
    document = Document((root / "a.md").as_uri(), "markdown", 1, CALL + CALL, "utf-32")
    workspace.note(document)
    workspace.settle()
    assert workspace.index.text(str(root / "a.md")) == CALL + CALL
    (root / "a.md").write_text("on disk " + CALL)
    watched.look(root / "a.md")
    assert workspace.index.text(str(root / "a.md")) == CALL + CALL
    workspace.forget(document)
    watched.look(root / "a.md")
    assert workspace.index.text(str(root / "a.md")) == "on disk " + CALL


def test_document_that_was_never_saved_is_in_the_index_while_it_is_open() -> None:
    workspace = Workspace()
    document = Document("untitled:Untitled-1", "markdown", 1, CALL, "utf-32")
    workspace.note(document)
    workspace.settle()
    assert workspace.index.files() == ["untitled:Untitled-1"]
    workspace.forget(document)
    assert workspace.index.files() == []


def test_only_the_changed_file_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (root / f"t{number}.tool.json").write_text(manifest(f"core:t{number}"))
    watched = Watched(root)
    read: list[str] = []
    import tamis.server.runtime.tools.loader as loader

    original = loader.read_manifest_file
    monkeypatch.setattr(loader, "read_manifest_file", lambda path: (read.append(path), original(path))[1])
    (root / "t7.tool.json").write_text(manifest("core:seven"))
    watched.look(root / "t7.tool.json")
    assert set(read) == {str(root / "t7.tool.json")}
    assert "core:seven" in watched.tools
    assert "core:t7" not in watched.tools
    agrees_with_a_fresh_load(watched)


def vanish(root: Path) -> list[Path]:
    (root / "a.md").unlink()
    (root / "echo.tool.json").unlink()
    return [root / "a.md", root / "echo.tool.json"]


def become_folders(root: Path) -> list[Path]:
    vanish(root)
    (root / "a.md").mkdir()
    (root / "a.md" / "inner.md").write_text(CALL)
    (root / "echo.tool.json").mkdir()
    return [root / "a.md", root / "echo.tool.json"]


def become_links(root: Path) -> list[Path]:
    vanish(root)
    (root / "target.txt").write_text(CALL)
    (root / "a.md").symlink_to("target.txt")
    (root / "echo.tool.json").symlink_to("echo.tool.json")
    return [root / "a.md", root / "echo.tool.json", root / "target.txt"]


def become_pipes(root: Path) -> list[Path]:
    vanish(root)
    os.mkfifo(root / "a.md")
    os.mkfifo(root / "echo.tool.json")
    return [root / "a.md", root / "echo.tool.json"]


def become_no_text(root: Path) -> list[Path]:
    (root / "a.md").write_bytes(b"\xff\xfe" + CALL.encode())
    (root / "echo.tool.json").write_bytes(b"\xff\xfe{}")
    return [root / "a.md", root / "echo.tool.json"]


def become_huge(root: Path) -> list[Path]:
    (root / "a.md").write_text(CALL + "x" * 5_000_000)
    (root / "echo.tool.json").write_text(manifest() + " " * 5_000_000)
    return [root / "a.md", root / "echo.tool.json"]


def a_loop_appears(root: Path) -> list[Path]:
    (root / "loop").mkdir()
    (root / "loop" / "again").symlink_to(root)
    (root / "loop" / "b.md").write_text(CALL)
    return [root / "loop"]


def a_folder_moves(root: Path) -> list[Path]:
    (root / "one").mkdir()
    for name in ("a.md", "echo.tool.json"):
        (root / name).rename(root / "one" / name)
    return [root / "a.md", root / "echo.tool.json", root / "one"]


def a_duplicate_comes_first(root: Path) -> list[Path]:
    (root / "a.tool.json").write_text(manifest())
    return [root / "a.tool.json"]


def the_script_goes(root: Path) -> list[Path]:
    (root / "echo.py").unlink()
    return [root / "echo.py"]


def it_is_ignored(root: Path) -> list[Path]:
    (root / ".tamisignore").write_text("*.md\necho*\n")
    return [root / ".tamisignore"]


def something_ignored_changes(root: Path) -> list[Path]:
    (root / ".git").mkdir(exist_ok=True)
    (root / ".git" / "x.tool.json").write_text(manifest("core:hidden"))
    (root / "deep" / "node_modules").mkdir(parents=True)
    (root / "deep" / "node_modules" / "y.tool.json").write_text(manifest("core:hidden2"))
    return [root / ".git" / "x.tool.json", root / "deep" / "node_modules" / "y.tool.json"]


def it_cannot_be_read(root: Path) -> list[Path]:
    (root / "echo.tool.json").chmod(0)
    (root / "closed").mkdir()
    (root / "closed" / "b.md").write_text(CALL)
    (root / "closed").chmod(0)
    return [root / "echo.tool.json", root / "closed"]


HAPPENINGS = [
    vanish,
    become_folders,
    become_links,
    become_pipes,
    become_no_text,
    become_huge,
    a_loop_appears,
    a_folder_moves,
    a_duplicate_comes_first,
    the_script_goes,
    it_is_ignored,
    something_ignored_changes,
    it_cannot_be_read,
]


def a_workflow_comes(root: Path) -> list[Path]:
    (root / "flows" / "new.json").write_text(workflow("values"))
    return [root / "flows" / "new.json"]


def a_workflow_changes(root: Path) -> list[Path]:
    (root / "flows" / "a.json").write_text(workflow("values", "more"))
    return [root / "flows" / "a.json"]


def a_workflow_breaks(root: Path) -> list[Path]:
    (root / "flows" / "a.json").write_text(workflow("values")[:-20])
    return [root / "flows" / "a.json"]


def a_workflow_is_none_any_more(root: Path) -> list[Path]:
    (root / "flows" / "a.json").write_text('{"some": "data"}')
    return [root / "flows" / "a.json"]


def a_workflow_goes(root: Path) -> list[Path]:
    (root / "flows" / "a.json").unlink()
    return [root / "flows" / "a.json"]


def a_workflow_is_renamed(root: Path) -> list[Path]:
    (root / "flows" / "a.json").rename(root / "flows" / "b.json")
    return [root / "flows" / "a.json", root / "flows" / "b.json"]


def workflows_of_any_name_come(root: Path) -> list[Path]:
    for name in ("package.json", "x.jsonc", "deep/a.json", "agent_profile.json", "not.tool.jsonc"):
        (root / "flows" / name).parent.mkdir(exist_ok=True)
        (root / "flows" / name).write_text(workflow("values"))
    return [root / "flows" / "package.json", root / "flows" / "x.jsonc", root / "flows" / "deep"]


def the_workflow_folder_moves(root: Path) -> list[Path]:
    (root / "flows").rename(root / "streams")
    return [root / "flows", root / "streams"]


def a_workflow_folder_comes(root: Path) -> list[Path]:
    (root / "more").mkdir()
    (root / "more" / "m.json").write_text(workflow("values"))
    return [root / "more" / "m.json"]


def the_settings_name_other_folders(root: Path) -> list[Path]:
    (root / "other").mkdir()
    (root / "other" / "o.json").write_text(workflow("values"))
    (root / "tamis.toml").write_text('workflows = ["other"]\n')
    return [root / "tamis.toml"]


def a_workflow_streams(root: Path) -> list[Path]:
    text = workflow("values").replace('"STRING"', '"STRING", "isStream": true')
    (root / "flows" / "a.json").write_text(text)
    return [root / "flows" / "a.json"]


def nodes_change(root: Path) -> list[Path]:
    (root / "n.node.json").write_text(json.dumps([NODE, NODE | {"fullType": "x:other", "toolId": "core:nothing"}]))
    return [root / "n.node.json"]


def some_nodes_break(root: Path) -> list[Path]:
    (root / "n.node.json").write_text(json.dumps([NODE, {"fullType": 1}, NODE | {"fullType": "x y"}]))
    return [root / "n.node.json"]


def nodes_go(root: Path) -> list[Path]:
    (root / "n.node.json").unlink()
    return [root / "n.node.json"]


def what_does_a_nodes_work_goes(root: Path) -> list[Path]:
    (root / "echo.tool.json").unlink()
    (root / "z.tool.json").unlink()
    return [root / "echo.tool.json", root / "z.tool.json"]


HAPPENINGS += [
    a_workflow_comes,
    a_workflow_changes,
    a_workflow_breaks,
    a_workflow_is_none_any_more,
    a_workflow_goes,
    a_workflow_is_renamed,
    workflows_of_any_name_come,
    the_workflow_folder_moves,
    a_workflow_folder_comes,
    the_settings_name_other_folders,
    a_workflow_streams,
    nodes_change,
    some_nodes_break,
    nodes_go,
    what_does_a_nodes_work_goes,
]
NODE = {"fullType": "x:node", "toolId": "core:echo", "inputs": {"text": {"dataFlowType": "STRING"}}}


def workflow(*inputs: str) -> str:
    """A workflow with these inputs."""
    slots = {name: {"dataFlowType": "ARRAY"} for name in inputs}
    outputs = {"said": {"dataFlowType": "STRING"}}
    return json.dumps({"interfaceInputs": slots, "interfaceOutputs": outputs, "nodes": []})


@pytest.mark.parametrize("told", [True, False], ids=["told", "found"])
@pytest.mark.parametrize("happening", HAPPENINGS, ids=lambda one: one.__name__)
def test_what_is_known_stays_what_is_there(
    root: Path, happening: Callable[[Path], list[Path]], told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "POLL_SECONDS", 0.02)
    (root / "a.md").write_text(CALL)
    (root / "z.tool.json").write_text(manifest())
    (root / "flows").mkdir()
    (root / "flows" / "a.json").write_text(workflow("values"))
    (root / "flows" / "data.json").write_text('{"some": "data"}')
    (root / "n.node.json").write_text(json.dumps(NODE))
    (root / "tamis.toml").write_text('workflows = ["flows", "more"]\n')
    watched = Watched(root)
    assert {"workflow:a", "x:node", "core:echo"} <= set(watched.tools)
    before = len(watched.changes)
    paths = happening(root)
    if told:
        watched.look(*paths)
    else:
        watched.scanner.poll(True)
        until(lambda: len(watched.changes) > before or happening is something_ignored_changes)
        watched.scanner.poll(False)
        watched.look(root / "nothing.md")
    agrees_with_a_fresh_load(watched)
    if os.path.isdir(root / "closed"):
        (root / "closed").chmod(0o700)


# What a session that went on for long knew otherwise than a fresh server (soak of random sessions)


def open_in_editor(watched: Watched, path: Path, text: str) -> Document:
    language = "markdown" if path.suffix == ".md" else "json"
    document = Document(path.as_uri(), language, 1, text, "utf-32")
    watched.workspace.note(document)
    watched.workspace.settle()
    watched.root.show(str(path), text)
    return document


def close_in_editor(watched: Watched, document: Document) -> None:
    assert document.path is not None
    watched.workspace.forget(document)
    watched.root.hide(document.path)


def test_manifest_that_was_broken_saved_and_closed_counts_as_it_is_on_disk(root: Path) -> None:
    watched = Watched(root)
    path = root / "echo.tool.json"
    broken = manifest().replace('"toolId"', '"tool')
    document = open_in_editor(watched, path, broken)
    assert "core:echo" in watched.tools
    path.write_text(broken)
    watched.look(path)
    assert "core:echo" in watched.tools  # half-typed: what it meant stays in force while it is open
    close_in_editor(watched, document)
    watched.look(path)
    assert "core:echo" not in watched.tools
    agrees_with_a_fresh_load(watched)


def settings_change(root: Path) -> list[Path]:
    (root / "tamis.toml").write_bytes(b"\xff")
    return [root / "tamis.toml"]


@pytest.mark.parametrize("first", [True, False], ids=["first", "again"])
@pytest.mark.parametrize(
    "happening",
    [
        vanish,
        become_no_text,
        a_duplicate_comes_first,
        it_is_ignored,
        a_workflow_comes,
        a_workflow_changes,
        settings_change,
    ],
    ids=lambda one: one.__name__,
)
def test_what_changes_between_reading_and_listing_is_read_again(
    root: Path, happening: Callable[[Path], list[Path]], first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.md").write_text(CALL)
    (root / "flows").mkdir()
    (root / "flows" / "a.json").write_text(workflow("values"))
    (root / "tamis.toml").write_text('workflows = ["flows"]\n')
    watched = None if first else Watched(root)
    load, left = Root.load, [happening]

    def loads(self: Root) -> None:
        load(self)
        if left:
            left.pop()(root)

    monkeypatch.setattr(Root, "load", loads)
    if watched is None:
        watched = Watched(root)
    else:
        loaded = watched
        loaded.settle(lambda: loaded.scanner.load([loaded.root]))
    assert not left
    agrees_with_a_fresh_load(watched)


def test_time_of_a_searched_folder_is_from_before_the_search(root: Path) -> None:
    os.utime(root, ns=(10**18, 10**18))

    def wanted(name: str) -> bool:
        (root / f"with-{name}").write_text("")
        return True

    folders: dict[str, int] = {}
    walk_files(root, wanted, folders)
    assert folders == {str(root): 10**18}
    assert folder_time(str(root)) != 10**18


@pytest.mark.parametrize("of_folder", [False, True], ids=["file", "folder"])
def test_change_in_the_same_moment_as_the_one_before_is_found(
    root: Path, of_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems count time in steps: a second change within one leaves no sign."""
    monkeypatch.setattr(scanning, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(scanning, "FRESH_NS", 10**12)
    watched = Watched(root)
    path = root / "echo.tool.json"
    before = (root if of_folder else path).stat().st_mtime_ns
    if of_folder:
        (root / "new.tool.json").write_text(manifest("core:newt"))
        os.utime(root, ns=(before, before))
    else:
        path.write_text(manifest("core:newt"))
        os.utime(path, ns=(before, before))
    assert "core:newt" not in watched.tools
    monkeypatch.setattr(scanning, "FRESH_NS", 0)
    watched.scanner.poll(True)
    until(lambda: "core:newt" in watched.tools)
    watched.scanner.poll(False)


def test_document_without_a_file_is_forgotten_when_it_is_closed(root: Path) -> None:
    watched = Watched(root)
    document = open_in_editor(watched, root / "new.md", CALL)
    assert "new.md" in watched.files
    close_in_editor(watched, document)
    watched.look(root / "new.md")
    assert "new.md" not in watched.files


@pytest.mark.parametrize("beside", ["tamis.toml", "folder", "flows"])
def test_closed_document_counts_as_its_file_whatever_changed_at_the_same_time(root: Path, beside: str) -> None:
    (root / "a.md").write_text(CALL)
    (root / "tamis.toml").write_text('workflows = ["flows"]\n')
    watched = Watched(root)
    document = open_in_editor(watched, root / "a.md", CALL + CALL)
    close_in_editor(watched, document)
    if beside == "tamis.toml":
        (root / beside).write_text('workflows = ["flows"]\n# more\n')
    else:
        (root / beside).mkdir()
    watched.look(root / beside, root / "a.md")
    assert watched.workspace.index.text(str(root / "a.md")) == CALL
    agrees_with_a_fresh_load(watched)


def test_reading_that_a_newer_one_makes_moot_leaves_nothing_unread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.md").write_text(CALL)
    (root / "b.md").write_text(CALL)
    watched = Watched(root)
    (root / "a.md").write_text(CALL + CALL)
    (root / "b.md").unlink()
    load, left = Root.load, [1]

    def loads(self: Root) -> None:
        load(self)
        if left:
            left.pop()
            watched.scanner.load([self])

    monkeypatch.setattr(Root, "load", loads)
    watched.settle(lambda: watched.scanner.load([watched.root]))
    assert not left
    agrees_with_a_fresh_load(watched)


def test_older_text_of_a_document_never_comes_after_the_newer_one_into_the_index(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Watched(root).workspace
    older, newer = (Document((root / "a.md").as_uri(), "markdown", 1, text, "utf-32") for text in (CALL, CALL + CALL))
    update, others = workspace.index.update, list[threading.Thread]()

    def updates(path: str, text: str) -> None:
        if text == older.text:
            workspace.note(newer)
            others.append(threading.Thread(target=workspace.settle))
            others[0].start()
            others[0].join(0.1)  # goes ahead only where nothing holds it back
        update(path, text)

    monkeypatch.setattr(workspace.index, "update", updates)
    workspace.note(older)
    workspace.settle()
    others[0].join()
    assert workspace.index.text(str(root / "a.md")) == newer.text


def test_what_is_looked_up_while_files_change_is_looked_up_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Watched(root).workspace
    document = Document((root / "echo.tool.json").as_uri(), "json", 1, manifest(), "utf-32")
    beside, left = checkables.files_beside, [1]

    def files_beside(folder: str) -> Any:
        facts = beside(folder)
        if left:
            left.pop()
            (root / "echo.py").unlink()
            workspace.forget_facts()
        return facts

    monkeypatch.setattr(checkables, "files_beside", files_beside)
    assert workspace.snapshot(document).folder != workspace.snapshot(document).folder


def test_what_settings_name_is_looked_for_once_for_requests_in_a_row(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 16: each request about 1,200 servers read all of them anew (26 s for 38 requests)."""
    from tamis.server.runtime.settings import faults

    workspace = Watched(root).workspace
    text = 'tools = ["nope"]\n'
    looked: list[str] = []
    look = faults.disk_faults

    def disk_faults(root: Path, text: str, trusted: bool | None = None) -> Any:
        looked.append(text)
        return look(root, text, trusted)

    monkeypatch.setattr(faults, "disk_faults", disk_faults)
    monkeypatch.setattr("tamis.server.lsp.workspace.workspace.FACTS_SECONDS", 3600.0)
    uri = (root / "tamis.toml").as_uri()
    document = Document(uri, "toml", 1, text, "utf-32")
    first = workspace.snapshot(document)
    assert "does not exist" in first.settings_faults[0].message
    assert all(workspace.snapshot(document) is first for _ in range(5)) and looked == [text]
    (root / "nope").mkdir()
    workspace.forget_facts()
    assert workspace.snapshot(document).settings_faults == ()
    typed = text.replace("nope", "none")
    assert workspace.snapshot(Document(uri, "toml", 2, typed, "utf-32")).settings_faults
    assert looked == [text, text, typed]


def test_workflow_that_only_the_editor_has_reaches_profiles_and_other_workflows(root: Path) -> None:
    (root / "tamis.toml").write_text('workflows = ["flows"]\n')
    (root / "flows").mkdir()
    (root / "flows" / "bad.json").write_bytes(b"\xff")
    profile, flow = ((root / name).as_uri() for name in ("agent_profile.json", "flows/bad.json"))

    def lacks_workflow() -> bool:
        return "PF611" in {finding["code"] for finding in client.published(profile)}

    with Client(inside=True) as client:
        client.start(root, WATCHES)
        client.open(profile, '{"tool_ids_inventory": ["workflow:bad"]}', "json")
        assert lacks_workflow()
        client.open(flow, workflow("values"), "json")
        assert not lacks_workflow()
        client.change(flow, {"text": "{}"})
        assert lacks_workflow()
        client.change(flow, {"text": workflow("values")})
        assert not lacks_workflow()
        client.notify("textDocument/didClose", {"textDocument": {"uri": flow}})
        assert lacks_workflow()
        client.stop()


def test_folder_that_is_closed_is_forgotten(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "b.md").write_text(CALL)
    watched = Watched(root, other)
    assert str(other / "b.md") in watched.workspace.index.files()
    removed = watched.workspace.remove(str(other))
    assert removed is not None
    watched.scanner.later(lambda: watched.scanner.forget(removed))
    watched.look(root / "echo.tool.json")
    until(lambda: str(other / "b.md") not in watched.workspace.index.files())
    assert str(root / "echo.tool.json") in watched.workspace.index.files()


def test_bounds_are_said_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MAX_TOTAL_BYTES", 2_000)
    for number in range(50):
        (root / f"{number}.md").write_text(CALL)
    watched = Watched(root)
    assert len(watched.files) < 45
    assert len([line for line in watched.said if "2000 bytes" in line]) == 1
    (root / "big.md").write_bytes(b"x" * 4_200_000)
    (root / "big2.md").write_bytes(b"x" * 4_200_000)
    watched.look(root / "big.md", root / "big2.md")
    assert len([line for line in watched.said if "larger than" in line]) == 1


def test_a_folder_becomes_a_workflow_folder(root: Path) -> None:
    """Types of nodes in it are uses of tools as soon as the settings name the folder, of open files too (W02)."""
    (root / "flows").mkdir()
    graph = '{"nodes": [{"id": "a", "type": "core:echo"}]}'
    for name in ("closed.json", "open.json"):
        (root / "flows" / name).write_text(graph)
    watched = Watched(root)
    opened = root / "flows" / "open.json"
    watched.workspace.note(Document(opened.as_uri(), "json", 1, graph, "utf-16"))

    def uses() -> list[str]:
        watched.workspace.settle()
        index = watched.workspace.index
        return [os.path.basename(one.path) for one in index.occurrences("core:echo") if one.role == "dependency"]

    assert uses() == []
    (root / "tamis.toml").write_text('workflows = ["flows"]\n')
    watched.look(root / "tamis.toml")
    assert uses() == ["closed.json", "open.json"]
    (root / "tamis.toml").write_text("")
    watched.look(root / "tamis.toml")
    assert uses() == []


def test_a_folder_that_is_opened_meanwhile_does_not_cut_the_reading_of_another_short(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename must know every file of the first folder."""
    other = tmp_path_factory.mktemp("other")
    for number in range(3):
        (root / f"{number}.md").write_text(CALL)
    feed = Scanner._feed

    def feed_and_open(scanner: Scanner, *args: Any) -> None:
        feed(scanner, *args)
        if not any(one.path == str(other) for one in scanner._workspace.roots):
            scanner.load([scanner._workspace.add(str(other))])

    monkeypatch.setattr(Scanner, "_feed", feed_and_open)
    watched = Watched(root)
    assert {"0.md", "1.md", "2.md"} <= set(watched.files)


def test_a_rename_waits_until_every_file_was_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are known before the files that call them are."""
    for number in range(3):
        (root / f"{number}.md").write_text(CALL)
    asked = threading.Event()
    feed = Scanner._feed

    def feed_late(scanner: Scanner, *args: Any) -> None:
        asked.wait()
        feed(scanner, *args)

    wait = elsewhere.all_read

    def ask(session: Any, seconds: float) -> bool:
        asked.set()
        return wait(session, 600)

    monkeypatch.setattr(Scanner, "_feed", feed_late)
    monkeypatch.setattr(rename, "all_read", ask)
    uri = (root / "echo.tool.json").as_uri()
    text = (root / "echo.tool.json").read_text()
    with Client(inside=True) as client:
        client.request("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": {}})
        client.notify("initialized", {})
        client.open(uri, text, "json")
        line, column = LineIndex(text).position(text.index("core:echo") + 2)
        at = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        while client.next().get("method") != "textDocument/publishDiagnostics":
            pass
        changes = client.call("textDocument/rename", {**at, "newName": "core:say"})["changes"]
    assert {os.path.basename(name) for name in changes} == {"0.md", "1.md", "2.md", "echo.tool.json"}
