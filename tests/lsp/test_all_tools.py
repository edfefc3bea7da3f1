"""In an editor the tools of a folder are all of its tools, as `tamis check` and `tamis rpc` know them: of workflows (W02, A42), of node
definitions (A41) and of the host's services (V45), as they are now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.workflow import reading as workflow_reading
from tamis.server.lsp.workspace import roots, scanning
from tamis.server.lsp.workspace.roots import Root
from tamis.server.runtime.tools import loader
from tests.lsp.editor import EVERYTHING, Editor
from tests.lsp.lsp_client import Client
from tests.sample_tools import make_tool, tam

WATCHES = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
CALL = tam({"command": "workflow:sum", "values": "[1, 2]"})


def workflow(said: str = "ready", *, required: tuple[str, ...] = (), node: Any = None) -> str:
    names = {"values": "ARRAY", **dict.fromkeys(required, "STRING")}
    inputs = {name: {"dataFlowType": kind, "required": name in required} for name, kind in names.items()}
    made = node or {"id": "c", "type": "constant", "config": {"value": said}}
    return json.dumps(
        {
            "name": "Sum",
            "description": "Adds numbers up, for a test of this project.",
            "interfaceInputs": inputs,
            "interfaceOutputs": {"said": {"dataFlowType": "WILDCARD"}},
            "nodes": [made],
            "outputInterfaceMappings": {"said": {"nodeId": "c", "slotKey": "output" if node else "value"}},
        },
        indent=2,
    )


def node(worker: str = "test:echo", full_type: str = "test:node") -> str:
    inputs = {"text": {"dataFlowType": "STRING", "required": True}}
    return json.dumps({"fullType": full_type, "description": "A node.", "toolId": worker, "inputs": inputs})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tamis.toml").write_text('tools = ["tools"]\nworkflows = ["flows"]\n')
    (tmp_path / "flows").mkdir()
    make_tool(tmp_path / "tools", "test:echo")
    return tmp_path


@pytest.fixture
def client(root: Path) -> Iterator[Editor]:
    with Editor(inside=True) as started:
        started.start(root, {**EVERYTHING, **WATCHES}, {"trusted": True})
        yield started


def says(client: Client, uri: str, *codes: str) -> None:
    """Waits until these are the errors of a document."""
    while [item["code"] for item in client.published(uri) if item["severity"] == 1] != list(codes):
        pass


def told(client: Client, *paths: Path) -> None:
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": 2} for path in paths]})


def whole(client: Client, uri: str, text: str) -> None:
    client.change(uri, {"text": text})


def test_a_workflow_that_comes_changes_moves_and_goes_changes_what_calls_are_told(root: Path, client: Editor) -> None:
    uri, path = (root / "a.tam").as_uri(), root / "flows" / "sum.json"
    client.open(uri, CALL)
    says(client, uri, "VA401")
    path.write_text(workflow())
    told(client, path)
    says(client, uri)
    path.write_text(workflow(required=("unit",)))
    told(client, path)
    says(client, uri, "VA404")
    other = path.rename(root / "flows" / "total.json")
    told(client, path, other)
    says(client, uri, "VA401")
    other.rename(path)
    told(client, path, other)
    says(client, uri, "VA404")
    path.unlink()
    told(client, path)
    says(client, uri, "VA401")


def test_without_a_client_that_watches_changes_are_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "POLL_SECONDS", 0.02)
    uri = (root / "a.tam").as_uri()
    with Client(inside=True) as client:
        client.start(root)
        client.open(uri, tam({"command": "test:node"}, {"command": "workflow:sum"}))
        says(client, uri, "VA401", "VA401")
        (root / "flows" / "sum.json").write_text(workflow())
        says(client, uri, "VA401")
        (root / "tools" / "n.node.json").write_text(node())
        says(client, uri, "VA404")
        (root / "tools" / "n.node.json").unlink()
        says(client, uri, "VA401")


def test_an_open_workflow_counts_as_it_stands_and_while_it_is_broken_as_it_was(root: Path, client: Editor) -> None:
    uri, path = (root / "a.tam").as_uri(), root / "flows" / "sum.json"
    path.write_text(workflow())
    told(client, path)
    flow = path.as_uri()
    client.open(uri, CALL)
    says(client, uri)
    client.open(flow, workflow(), "json")
    whole(client, flow, workflow(required=("unit",)))
    says(client, uri, "VA404")
    whole(client, flow, workflow(required=("unit",))[:-9])
    whole(client, uri, CALL + "\n")
    says(client, uri, "VA404")
    whole(client, flow, workflow(required=("unit", "more")))
    says(client, uri, "VA404", "VA404")
    client.notify("textDocument/didClose", {"textDocument": {"uri": flow}})
    says(client, uri)


def test_an_open_file_of_nodes_counts_as_it_stands(root: Path, client: Editor) -> None:  # A41
    uri, path = (root / "a.tam").as_uri(), root / "tools" / "n.node.json"
    path.write_text(node())
    told(client, path)
    client.open(uri, tam({"command": "test:node", "text": "a"}))
    says(client, uri)
    client.open(path.as_uri(), node(), "json")
    whole(client, path.as_uri(), node().replace('"text"', '"words"'))
    says(client, uri, "VA404", "VA403")
    whole(client, path.as_uri(), node().replace('"text"', '"words')[:-1])
    whole(client, uri, tam({"command": "test:node", "text": "a"}) + "\n")
    says(client, uri, "VA404", "VA403")
    whole(client, path.as_uri(), node(full_type="test:other"))
    says(client, uri, "VA401")


def test_the_settings_say_which_folders_hold_workflows(root: Path, client: Editor) -> None:
    uri = (root / "a.tam").as_uri()
    (root / "other").mkdir()
    (root / "other" / "sum.json").write_text(workflow())
    client.open(uri, CALL)
    says(client, uri, "VA401")
    (root / "tamis.toml").write_text('tools = ["tools"]\nworkflows = ["flows", "other"]\n')
    told(client, root / "tamis.toml")
    says(client, uri)


def test_a_workflow_that_a_tool_could_have_put_there_is_none(root: Path, client: Editor) -> None:  # ruling 34
    uri, path = (root / "a.tam").as_uri(), root / "flows" / "out" / "sum.json"
    path.parent.mkdir()
    path.write_text(workflow())
    told(client, path)
    client.open(uri, CALL)
    says(client, uri)
    own = f'tools = ["tools"]\nworkflows = ["flows"]\n[policy]\nwriteRoots = [{json.dumps(str(path.parent))}]\n'
    (root / "tamis.toml").write_text(own)
    told(client, root / "tamis.toml")
    says(client, uri, "VA406")


def test_methods_of_the_hosts_services_are_tools(root: Path, client: Editor) -> None:  # V45
    uri = (root / "a.vcp").as_uri()
    name = "tool_name:「始」files_read「末」"
    other = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」workflow:sum「末」\n<<<[END_TOOL_REQUEST]>>>"
    client.open(uri, f"<<<[TOOL_REQUEST]>>>\n{name},\nlins:「始」1「末」\n<<<[END_TOOL_REQUEST]>>>\n{other}")
    says(client, uri, "VA401", "VA401")
    lines = {"type": "object", "properties": {"lines": {"type": "integer"}}, "additionalProperties": False}
    method = {"name": "read", "description": "Reads a file.", "parameters": lines, "agentCallable": True}
    client.request("service/register", {"serviceName": "files", "methods": [method]})
    says(client, uri, "VA403", "VA401")
    place = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 15}}
    assert "files:read" in client.call("textDocument/hover", place)["contents"]["value"]
    assert client.call("textDocument/definition", place) in (None, [])
    assert {"files:read"} <= {tool["toolId"] for tool in client.call("tool/list")["tools"]}
    # Other settings are no other host.
    (root / "other").mkdir()
    (root / "other" / "sum.json").write_text(workflow())
    (root / "tamis.toml").write_text('tools = ["tools"]\nworkflows = ["other"]\n')
    told(client, root / "tamis.toml")
    says(client, uri, "VA403")
    client.replies["service/invoke"] = lambda params: {"lines": params["args"]["lines"]}
    found = client.call("tool/execute", {"toolId": "files:read", "args": {"lines": 3}})
    assert (found["status"], found["output"]) == ("success", {"lines": 3})
    client.request("service/unregister", {"serviceName": "files"})
    says(client, uri, "VA401")


def test_a_workflow_is_run_from_the_editor(root: Path, client: Editor) -> None:
    echo = {"id": "c", "type": "test:echo", "inputs": {"text": "hello"}}
    (root / "flows" / "sum.json").write_text(workflow(node=echo))
    told(client, root / "flows" / "sum.json")
    uri = (root / "a.tam").as_uri()
    client.open(uri, CALL)
    says(client, uri)
    dry = client.run(client.lens(uri, "Dry run"))
    assert dry["results"][0]["status"] == "success", dry
    run = client.run(client.lens(uri, "▶ Run"))
    assert run["status"] == "success", run
    assert run["results"][0]["output"] == {"text": "hello"}
    assert run["toolIds"] == ["workflow:sum"]


def test_what_ran_was_the_graph_in_the_editor(root: Path, client: Editor) -> None:
    path = root / "flows" / "sum.json"
    path.write_text(workflow("on disk"))
    told(client, path)
    client.open(path.as_uri(), workflow("on disk"), "json")
    whole(client, path.as_uri(), workflow("in the editor"))
    uri = (root / "a.tam").as_uri()
    client.open(uri, CALL)
    says(client, uri)
    run = client.run(client.lens(uri, "▶ Run"))
    assert run["results"][0]["output"] == "in the editor"
    assert run["notes"] == ["workflow:sum ran with its graph as it stands in the editor, which is not saved"]
    whole(client, path.as_uri(), workflow("broken")[:-5])
    run = client.run(client.lens(uri, "▶ Run"))
    assert run["results"][0]["output"] == "in the editor"
    assert "last version of its graph that read clean" in run["notes"][0]


# Not more than is needed


class _Loaded:
    """A folder as the workspace has it, with the number of files that were read for it and of workflows that were read."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = Root(str(path), None)
        self.root.load()
        assert self.root.registry is not None
        self.disk: list[str] = []
        self.parsed: list[str] = []
        read_file, read_flow = loader.read_manifest_file, workflow_reading.read_workflow
        from tamis.server.runtime.tools import workflows as source

        monkeypatch.setattr(loader, "read_manifest_file", lambda path: (self.disk.append(path), read_file(path))[1])
        monkeypatch.setattr(source, "read_manifest_file", lambda path: (self.disk.append(path), read_file(path))[1])
        monkeypatch.setattr(
            source,
            "read_workflow",
            lambda text, name, **more: (self.parsed.append(name), read_flow(text, name, **more))[1],
        )


def test_typing_in_a_workflow_reads_that_workflow_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "flows" / "sum.json"
    path.write_text(workflow())
    (root / "flows" / "other.json").write_text(workflow())
    (root / "tools" / "n.node.json").write_text(node())
    loaded = _Loaded(root, monkeypatch)
    before = loaded.root.registry
    # What the tool is stays the same: blanks, a comment, a text that cannot be read.
    for text in (workflow() + " ", "// a\n" + workflow(), workflow()[:-3], workflow()):
        assert loaded.root.show(str(path), text)
        assert loaded.root.registry is before
    assert loaded.root.show(str(path), workflow("else"))
    assert loaded.root.registry_beside(str(path)) is before, "its own findings go by what is typed"
    after = loaded.root.registry
    assert after is not None and before is not None and after is not before
    for name in ("workflow:other", "test:echo"):
        assert after.get(name) is before.get(name)
    assert (set(loaded.parsed), loaded.disk) == ({"sum"}, [])
    # Data beside the workflows is no workflow, however it is typed.
    (root / "flows" / "data.json").write_text("{}")
    loaded.root.take(str(root / "flows" / "data.json"), loader.read_manifest_file(str(root / "flows" / "data.json")))
    after = loaded.root.registry
    assert not loaded.root.show(str(root / "flows" / "data.json"), '{"a": 1}')
    assert loaded.root.registry is after


def test_typing_in_a_manifest_reads_no_workflow(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "flows" / "sum.json").write_text(workflow())
    path = root / "tools" / "test_echo" / "x.tool.json"
    loaded = _Loaded(root, monkeypatch)
    before, text = loaded.root.registry, path.read_text()
    assert loaded.root.show(str(path), text + "\n")
    assert loaded.root.registry is before
    assert loaded.root.show(str(path), text.replace("1.0.0", "1.0.1"))
    assert loaded.root.registry is not before
    assert (loaded.parsed, loaded.disk) == ([], [])


def test_a_file_of_nodes_keeps_its_good_ones_when_another_is_broken_from_the_start(root: Path) -> None:
    path = root / "tools" / "n.node.json"
    broken = {"fullType": "x y"}
    good = json.loads(node())
    path.write_text(json.dumps([broken, good]))
    loaded = Root(str(root), None)
    loaded.load()

    def tools() -> set[str]:
        registry = loaded.registry
        assert registry is not None
        return {tool.tool_id for tool in registry.tools if tool.origin == "node"}

    assert tools() == {"test:node"}
    loaded.show(str(path), json.dumps([broken, good, good | {"fullType": "test:more"}]))
    assert tools() == {"test:node", "test:more"}
    loaded.show(str(path), json.dumps([broken, good | {"inputs": 1}, good | {"fullType": "test:third"}]))
    assert tools() == {"test:node", "test:more"}, "it is more broken than before"


def test_the_module_of_the_folder_knows_no_protocol() -> None:
    assert "lsprotocol" not in Path(roots.__file__).read_text("utf-8")
