"""Diagnostics over the wire: when they come, where they point, and what makes them come anew."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.lsp_client import Client, edit

MANIFEST: dict[str, Any] = {
    "toolId": "core:echo",
    "displayName": "Echo",
    "description": "Gives back the text that it is given, so that a call can be tried out.",
    "version": "1.0.0",
    "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "python"},
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
CALL = "<ACTION><core:echo><txt>x</txt></core:echo></ACTION>"
PULLS: dict[str, Any] = {
    "textDocument": {"diagnostic": {}},
    "workspace": {"diagnostics": {"refreshSupport": True}},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text("")
    (tmp_path / "echo.tool.json").write_text(json.dumps(MANIFEST))
    return tmp_path


def codes(items: list[dict[str, Any]], *, errors: bool = True) -> list[str]:
    return [item["code"] for item in items if not errors or item["severity"] == 1]


@pytest.mark.parametrize(
    ("encoding", "width"), [("utf-8", 3 + 3 + 1 + 4 + 1), ("utf-16", 1 + 1 + 1 + 2 + 1), ("utf-32", 5)]
)
def test_positions_behind_wide_characters(root: Path, encoding: str, width: int) -> None:
    # ruling 9, S9
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root, {"general": {"positionEncodings": [encoding]}})
        client.open(uri, f"前言\u2028\f\n好的 😋 {CALL}\n")
        (found,) = [item for item in client.published(uri, 1) if item["code"] == "VA403"]
        start = width + len("<ACTION><core:echo><")
        # Only \n, \r\n and \r end a line: the separators before it stay on line 0.
        assert found["range"] == {
            "start": {"line": 1, "character": start},
            "end": {"line": 1, "character": start + 3},
        }


def test_document_outside_every_folder_is_diagnosed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    uri = (tmp_path_factory.mktemp("elsewhere") / "a.md").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]


def test_document_without_any_folder_is_diagnosed() -> None:
    with Client() as client:
        client.start()
        client.open("untitled:a.tool.json", "{", "json")
        assert client.published("untitled:a.tool.json")
        client.open("untitled:Untitled-1", "</ACTION>", "plaintext")
        assert codes(client.published("untitled:Untitled-1"), errors=False) == ["TC003"]


def test_edit_brings_and_takes_findings(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, CALL)
        assert codes(client.published(uri, 1)) == ["VA403"]
        start, end = CALL.index("txt"), CALL.rindex("txt")
        version = client.change(uri, edit((0, end), (0, end + 3), "text"), edit((0, start), (0, start + 3), "text"))
        assert codes(client.published(uri, version)) == []
        version = client.change(uri, edit((0, 0), (0, 0), "</ACTION>\n"))
        assert codes(client.published(uri, version), errors=False) == ["TC003"]


def test_closing_takes_the_findings_away(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, CALL)
        assert client.published(uri)
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert client.published(uri) == []


def test_burst_of_keystrokes_is_answered_a_few_times_with_the_last_state(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.server.lsp.main.BURST_SECONDS", 86_400.0)
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, CALL)
        client.published(uri, 1)
        before = len(client.messages)
        data = b""
        for version in range(2, 32):
            change = {
                "jsonrpc": "2.0",
                "method": "textDocument/didChange",
                "params": {
                    "textDocument": {"uri": uri, "version": version},
                    "contentChanges": [edit((0, 0), (0, 0), "x")],
                },
            }
            body = json.dumps(change).encode()
            data += b"Content-Length: %d\r\n\r\n" % len(body) + body
        client.send_bytes(data)
        found = client.published(uri, 31)
        assert [item["range"]["start"]["character"] for item in found if item["code"] == "VA403"] == [
            30 + CALL.index("txt")
        ]
        assert len(client.messages) - before <= 3


def _large_manifest() -> str:
    """Above the size at which reading and advice are told apart; one parameter's type is none, and none is described."""
    names = {f"parameter_{number}": {"type": "string"} for number in range(6_000)}
    schema = {"type": "object", "properties": {**names, "wrong": {"type": "strin"}}}
    return json.dumps({**MANIFEST, "parameters": schema}, indent=2)


def _published(client: Client) -> list[tuple[int, list[str]]]:
    """What was published so far: the version, and the codes."""
    return [
        (message["params"]["version"], codes(message["params"]["diagnostics"], errors=False))
        for message in client.messages
        if message.get("method") == "textDocument/publishDiagnostics"
    ]


def test_a_large_manifest_is_told_at_once_what_reading_found(root: Path) -> None:  # R8
    uri = (root / "large.tool.json").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, _large_manifest(), "json")
        first = codes(client.published(uri, 1), errors=False)
        assert "VA450" in first
        assert not any(code.startswith("LN") for code in first)
        whole = codes(client.published(uri, 1), errors=False)
        assert set(first) < set(whole)
        assert any(code.startswith("LN") for code in whole)
        # From now on one publish a version says everything.
        version = client.change(uri, edit((0, 0), (0, 0), " "))
        assert codes(client.published(uri, version), errors=False) == whole
        assert [told for told, _ in _published(client)] == [1, 1, version]


def test_typing_into_a_large_manifest_before_all_was_said_never_shows_an_old_version(root: Path) -> None:  # R8
    uri = (root / "large.tool.json").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, _large_manifest(), "json")
        last = 1
        for _ in range(5):
            last = client.change(uri, edit((0, 0), (0, 0), " "))
        while not any(code.startswith("LN") for code in codes(client.published(uri, last), errors=False)):
            continue
        told = _published(client)
        assert [version for version, _ in told] == sorted(version for version, _ in told)
        # What reading found is never taken back, and advice never comes and goes.
        assert all("VA450" in found for _, found in told)
        advised = [any(code.startswith("LN") for code in found) for _, found in told]
        assert advised == sorted(advised)


def test_a_large_manifest_that_is_pulled_has_all_its_findings_at_once(root: Path) -> None:  # R8
    uri = (root / "large.tool.json").as_uri()
    with Client() as client:
        client.start(root, PULLS)
        client.open(uri, _large_manifest(), "json")
        pulled = client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        found = codes(pulled["items"], errors=False)
        assert "VA450" in found
        assert any(code.startswith("LN") for code in found)


def test_closing_a_large_manifest_takes_back_what_was_said_first(root: Path) -> None:  # R8
    uri = (root / "large.tool.json").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, _large_manifest(), "json")
        assert client.published(uri, 1)
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        while client.published(uri):
            continue


def test_what_the_first_wrong_value_has_to_have_is_imported_in_a_pause(tmp_path: Path) -> None:  # R8
    told = """
import sys, time
from tamis.server.lsp.session import Session
session = Session(lambda *_, **__: None, lambda work: work())
session.rest()
assert "jsonschema" not in sys.modules, "nothing is open"
session.documents["a"] = None
session.rest()
while not {"jsonschema", "tamis.protocols.jsontext.edit"} <= sys.modules.keys():
    time.sleep(0.01)
print(*sorted({"jsonschema", "tamis.protocols.jsontext.edit"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["jsonschema", "tamis.protocols.jsontext.edit"]


def test_pulled_findings_are_not_pushed_and_not_sent_twice(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    with Client() as client:
        result = client.start(root, PULLS)
        assert result["capabilities"]["diagnosticProvider"]["interFileDependencies"] is True
        client.open(uri, CALL)
        first = client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert codes(first["items"]) == ["VA403"]
        again = client.call(
            "textDocument/diagnostic", {"textDocument": {"uri": uri}, "previousResultId": first["resultId"]}
        )
        assert again == {"kind": "unchanged", "resultId": first["resultId"]}
        client.change(uri, {"text": "nothing"})
        changed = client.call(
            "textDocument/diagnostic", {"textDocument": {"uri": uri}, "previousResultId": first["resultId"]}
        )
        assert changed["kind"] == "full"
        assert changed["items"] == []
        assert not [
            message for message in client.messages if message.get("method") == "textDocument/publishDiagnostics"
        ]


def test_client_that_pushes_is_offered_no_pull(root: Path) -> None:
    with Client() as client:
        assert "diagnosticProvider" not in client.start(root)["capabilities"]


def test_client_that_pulls_and_cannot_be_told_to_pull_again_is_pushed(root: Path) -> None:
    # Neovim 0.11: findings would stay old when another file changes.
    uri = (root / "a.md").as_uri()
    with Client() as client:
        announced = client.start(root, {"textDocument": {"diagnostic": {}}})["capabilities"]
        assert "diagnosticProvider" not in announced
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        client.open((root / "echo.tool.json").as_uri(), json.dumps(MANIFEST).replace('"text"', '"txt"'), "json")
        assert codes(client.published(uri)) == []


def test_pulling_client_is_asked_to_pull_again_when_tools_change(root: Path) -> None:
    with Client() as client:
        client.start(root, PULLS)
        asked = [message.get("method") for message in client.messages].count("workspace/diagnostic/refresh")
        while not asked:
            asked = client.next().get("method") == "workspace/diagnostic/refresh"
        client.open((root / "echo.tool.json").as_uri(), json.dumps(MANIFEST).replace('"text"', '"txt"'), "json")
        while client.next().get("method") != "workspace/diagnostic/refresh":
            pass


def test_watched_file_reloads_the_tools(root: Path) -> None:
    # W20: no restart
    uri = (root / "a.md").as_uri()
    manifest = root / "echo.tool.json"
    with Client() as client:
        client.start(root, {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}})
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        registrations = [message for message in client.messages if message.get("method") == "client/registerCapability"]
        patterns = registrations[0]["params"]["registrations"][0]["registerOptions"]["watchers"]
        # Manifests, node definitions, and workflows, which may have any name.
        assert {"globPattern": "**/*.{json,jsonc}"} in patterns
        manifest.write_text(json.dumps(MANIFEST).replace('"text"', '"txt"'))
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": manifest.as_uri(), "type": 2}]})
        assert codes(client.published(uri)) == []
        manifest.write_text(json.dumps(MANIFEST))
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": manifest.as_uri(), "type": 2}]})
        assert codes(client.published(uri)) == ["VA403"]
        manifest.rename(root / "gone.json")
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": manifest.as_uri(), "type": 3}]})
        # No tool is known any more: then calls are not judged, only read.
        assert codes(client.published(uri), errors=False) == []


def test_script_that_appears_settles_its_finding(root: Path) -> None:
    uri = (root / "echo.tool.json").as_uri()
    (root / "echo.py").unlink()
    with Client() as client:
        client.start(root, {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}})
        client.open(uri, json.dumps(MANIFEST), "json")
        assert codes(client.published(uri)) == ["MF540"]
        (root / "echo.py").write_text("")
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": (root / "echo.py").as_uri(), "type": 1}]})
        assert codes(client.published(uri)) == []


def test_open_manifest_counts_as_it_stands_in_the_editor(root: Path) -> None:
    uri, manifest = (root / "a.md").as_uri(), (root / "echo.tool.json").as_uri()
    text = json.dumps(MANIFEST)
    with Client() as client:
        client.start(root)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        client.open(manifest, text, "json")
        client.published(manifest)
        version = client.change(manifest, {"text": text.replace('"text"', '"txt"')})
        assert codes(client.published(uri)) == []
        # Half-typed: the last version that read clean stays in force.
        version = client.change(manifest, {"text": text.replace('"text"', '"txt"')[:-1]})
        assert codes(client.published(manifest, version)) == ["MF521"]
        client.change(uri, {"text": CALL + "\n"})
        assert codes(client.published(uri)) == []
        client.notify("textDocument/didClose", {"textDocument": {"uri": manifest}})
        assert codes(client.published(uri)) == ["VA403"]


def test_folder_added_later_brings_its_tools(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    first = tmp_path_factory.mktemp("first")
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(first)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == []
        event = {"added": [{"uri": root.as_uri(), "name": "b"}], "removed": []}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        assert codes(client.published(uri)) == ["VA403"]


def test_settings_of_the_editor_overlay_the_file(root: Path) -> None:
    (root / "tamis.toml").write_text("strictJson = false\n")
    uri = (root / "echo.tool.json").as_uri()
    text = "// note\n" + json.dumps(MANIFEST)
    with Client() as client:
        client.start(root, options={"settings": {"strictJson": True}})
        client.open(uri, text, "json")
        assert "error" in {_word(item) for item in client.published(uri)}
        client.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"strictJson": False, "path": "x"}}})
        assert "error" not in {_word(item) for item in client.published(uri)}
        assert not _logged(client)


def test_trust_alone_leaves_the_other_settings_as_they_are(root: Path) -> None:
    """What VS Code tells when its user trusts a folder (editors 1.3 row 7)."""
    uri = (root / "echo.tool.json").as_uri()
    text = "// note\n" + json.dumps(MANIFEST)
    with Client() as client:
        client.start(root, options={"trusted": False})
        client.open(uri, text, "json")
        client.published(uri)
        client.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"strictJson": True}}})
        assert "error" in {_word(item) for item in client.published(uri)}
        client.notify("workspace/didChangeConfiguration", {"settings": {"tamis": {"trusted": True}}})
        client.change(uri, {"text": text + "\n"})
        assert "error" in {_word(item) for item in client.published(uri)}


def _word(item: dict[str, Any]) -> str:
    return {1: "error", 2: "warning", 3: "information", 4: "hint"}[item["severity"]]


def _logged(client: Client) -> list[str]:
    """What was logged, but for the line that the suite trusts every folder."""
    logged = [message for message in client.messages if message.get("method") == "window/logMessage"]
    return [text for message in logged if not (text := message["params"]["message"]).startswith("TAMIS_TRUST: ")]


def test_wrong_settings_are_said_in_the_log(root: Path) -> None:
    (root / "tamis.toml").write_text("strictJsn = true\n")
    with Client() as client:
        client.start(root)
        (said,) = _logged(client)
        assert "strictJsn" in said


def test_findings_are_capped_and_the_cap_is_said(root: Path) -> None:
    uri = (root / "a.md").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, CALL.replace("core:echo", "core:eco") * 300)
        found = client.published(uri)
        assert len(found) == 201
        (said,) = [item for item in found if item["code"] == "TC025"]
        assert "200" in said["message"]


def test_root_argument_wins_over_the_clients_folders(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    import sys

    other = tmp_path_factory.mktemp("other")
    uri = (other / "a.md").as_uri()
    command = [str(Path(sys.executable).with_name("tamis")), "lsp", "--stdio", "--root", str(root)]
    with Client(command=command) as client:
        client.start(other)
        client.open(uri, CALL)
        assert codes(client.published(uri)) == ["VA403"]
        assert client.stop() == 0


def test_other_json_documents_are_left_alone(root: Path) -> None:
    uri = (root / "package.json").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, "{", "json")
        assert (
            client.call(
                "textDocument/completion", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 1}}
            )["items"]
            == []
        )
        with pytest.raises(queue.Empty):
            client.published(uri, timeout=0.3)


def test_status_tells_of_the_tools_and_of_broken_manifests(root: Path) -> None:
    (root / "broken.tool.json").write_text("{")
    with Client() as client:
        client.start(root)
        (status,) = [
            message["params"]
            for message in client.messages
            if message.get("method") == "experimental/serverStatus" and message["params"]["quiescent"]
        ]
        assert status == {"health": "warning", "quiescent": True, "message": "tools: 1, problems with manifests: 1"}


def test_rules_of_ones_own_are_told_while_typing(root: Path) -> None:  # T4
    (root / "rules.json").write_text(json.dumps({"properties": {"toolId": {"pattern": "^acme:"}}}))
    (root / "tamis.toml").write_text('schemaExtension = ["rules.json"]\n')
    uri = (root / "echo.tool.json").as_uri()
    with Client() as client:
        client.start(root)
        client.open(uri, json.dumps(MANIFEST), "json")
        (found,) = [item for item in client.published(uri, 1) if item["severity"] == 1]
        text = json.dumps(MANIFEST)
        assert (found["code"], text[found["range"]["start"]["character"] :].startswith('"core:echo"')) == (
            "MF550",
            True,
        )
        client.change(uri, {"text": json.dumps({**MANIFEST, "toolId": "acme:echo"})})
        assert codes(client.published(uri, 2)) == []
