"""Diagnostics that are asked for: of the documents beside one, and of the whole workspace (item 2: push, pull, workspace)."""

from __future__ import annotations

import json
import os
import queue
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.lsp_client import Client
from tests.lsp.workspace_folder import CALL, WATCHES, codes, manifest

PULLS: dict[str, Any] = {
    "textDocument": {"diagnostic": {"relatedDocumentSupport": True}},
    "workspace": {**WATCHES["workspace"], "diagnostics": {"refreshSupport": True}},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text("")
    (tmp_path / "echo.tool.json").write_text(manifest())
    (tmp_path / "a.md").write_text(CALL)
    (tmp_path / "good.md").write_text(CALL.replace("txt", "text"))
    (tmp_path / "prose.md").write_text("nothing\n")
    return tmp_path


def ask(client: Client, known: dict[str, str] | None = None, token: str | None = None) -> int:
    previous = [{"uri": uri, "value": value} for uri, value in (known or {}).items()]
    params: dict[str, Any] = {"previousResultIds": previous}
    if token is not None:
        params["partialResultToken"] = token
    return client.request("workspace/diagnostic", params)


def is_answered(client: Client, request: int) -> bool:
    """Whether the answer to a request is among what comes before a short silence."""
    try:
        while client.next(0.3).get("id") != request:
            continue
    except queue.Empty:
        return False
    return True


def streamed(client: Client, token: str) -> list[dict[str, Any]]:
    return [
        item
        for message in client.messages
        if message.get("method") == "$/progress" and message["params"]["token"] == token
        for item in message["params"]["value"]["items"]
    ]


def touch(client: Client, *paths: Path) -> None:
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": 2} for path in paths]})


# Of one document


def test_report_brings_that_of_the_other_manifest_of_a_duplicate_id(root: Path) -> None:
    other = root / "other.tool.json"
    other.write_text(manifest())
    uri = (root / "echo.tool.json").as_uri()
    with Client() as client:
        client.start(root, PULLS)
        client.open(uri, manifest(), "json")
        report = client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert "MF541" in [item["code"] for item in report["items"]]
        (beside,) = report["relatedDocuments"].items()
        assert beside[0] == other.as_uri()
        assert "MF541" in [item["code"] for item in beside[1]["items"]]
        # Renamed: the other file's finding is taken back along with this one's.
        client.change(uri, {"text": manifest("core:echo-two")})
        report = client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert "MF541" not in [item["code"] for item in report["items"]]
        (beside,) = report["relatedDocuments"].items()
        assert "MF541" not in [item["code"] for item in beside[1]["items"]]
        report = client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert "relatedDocuments" not in report


def test_client_that_knows_no_related_documents_gets_none(root: Path) -> None:
    (root / "other.tool.json").write_text(manifest())
    uri = (root / "echo.tool.json").as_uri()
    with Client() as client:
        client.start(root, {**PULLS, "textDocument": {"diagnostic": {}}})
        client.open(uri, manifest(), "json")
        assert "relatedDocuments" not in client.call("textDocument/diagnostic", {"textDocument": {"uri": uri}})


def test_document_that_is_not_open_has_no_findings_of_its_own_request(root: Path) -> None:
    with Client() as client:
        client.start(root, PULLS)
        params = {"textDocument": {"uri": (root / "nowhere.md").as_uri()}}
        report = client.call("textDocument/diagnostic", params)
        assert report["items"] == []
        assert (
            client.call("textDocument/diagnostic", {**params, "previousResultId": report["resultId"]})["kind"]
            == "unchanged"
        )


# Of the workspace


def test_workspace_report_has_every_file_that_says_something_about_tools(root: Path) -> None:
    with Client() as client:
        announced = client.start(root, PULLS)["capabilities"]["diagnosticProvider"]
        assert announced["workspaceDiagnostics"] is True
        items = client.answer(ask(client))["result"]["items"]
        by_name = {item["uri"].rsplit("/", 1)[-1]: item for item in items}
        assert codes(by_name["a.md"]["items"]) == ["VA403"]
        assert "prose.md" not in by_name
        assert by_name["a.md"]["version"] is None
        # Asked again with what it has, each is unchanged.
        known = {item["uri"]: item["resultId"] for item in items}
        again = client.answer(ask(client, known))["result"]["items"]
        assert {item["kind"] for item in again} == {"unchanged"}
        (root / "a.md").write_text(CALL.replace("txt", "text"))
        touch(client, root / "a.md")
        changed = client.answer(ask(client, known))["result"]["items"]
        assert [item["uri"] for item in changed if item["kind"] == "full"] == [(root / "a.md").as_uri()]


def test_open_document_is_reported_as_it_stands_in_the_editor(root: Path) -> None:
    uri = (root / "good.md").as_uri()
    with Client() as client:
        client.start(root, PULLS)
        client.open(uri, CALL)
        items = client.answer(ask(client))["result"]["items"]
        (found,) = [item for item in items if item["uri"] == uri]
        assert codes(found["items"]) == ["VA403"]
        assert found["version"] == 1


def test_streaming_client_is_answered_when_something_changed(root: Path) -> None:
    with Client() as client:
        client.start(root, PULLS)
        assert client.answer(ask(client, token="one"))["result"] == {"items": []}
        first = streamed(client, "one")
        assert [item["uri"] for item in first if codes(item["items"])] == [(root / "a.md").as_uri()]
        known = {item["uri"]: item["resultId"] for item in first}
        held = ask(client, known, "two")
        assert not is_answered(client, held)
        # A manifest changes on disk: what other files mean changes with it.
        (root / "echo.tool.json").write_text(manifest(parameter="txt"))
        touch(client, root / "echo.tool.json")
        client.answer(held)
        second = {item["uri"].rsplit("/", 1)[-1]: codes(item["items"]) for item in streamed(client, "two")}
        assert second["good.md"] == ["VA403"]
        assert second["a.md"] == []


def test_file_that_vanishes_is_reported_without_findings(root: Path) -> None:
    with Client() as client:
        client.start(root, PULLS)
        client.answer(ask(client, token="one"))
        known = {item["uri"]: item["resultId"] for item in streamed(client, "one")}
        held = ask(client, known, "two")
        (root / "a.md").unlink()
        touch(client, root / "a.md")
        client.answer(held)
        assert [(item["uri"], item["items"]) for item in streamed(client, "two")] == [((root / "a.md").as_uri(), [])]


def held_request(client: Client, root: Path) -> int:
    client.start(root, PULLS)
    client.answer(ask(client, token="one"))
    return ask(client, {item["uri"]: item["resultId"] for item in streamed(client, "one")}, "two")


def test_held_request_can_be_cancelled(root: Path) -> None:
    with Client() as client:
        held = held_request(client, root)
        client.notify("$/cancelRequest", {"id": held})
        assert client.answer(held)["error"]["code"] == -32800


def test_held_request_is_answered_at_shutdown(root: Path) -> None:
    with Client() as client:
        held = held_request(client, root)
        end = client.request("shutdown")
        assert client.answer(held)["error"]["code"] == -32800
        assert client.answer(end)["result"] is None


def test_of_two_requests_the_older_is_answered_with_nothing_new(root: Path) -> None:
    with Client() as client:
        held = held_request(client, root)
        ask(client, {}, "three")
        assert client.answer(held)["result"] == {"items": []}


def test_many_files_are_reported_in_parts(root: Path) -> None:
    for number in range(250):
        (root / f"{number}.md").write_text(CALL)
    with Client() as client:
        client.start(root, PULLS)
        client.answer(ask(client, token="one"))
        assert len([item for item in streamed(client, "one") if codes(item["items"])]) == 251
        parts = [message for message in client.messages if message.get("method") == "$/progress"]
        assert len(parts) >= 3


# For clients that are pushed to


def test_files_that_are_not_open_are_published_where_the_settings_say_so(root: Path) -> None:
    uri, other = (root / "a.md").as_uri(), (root / "good.md").as_uri()
    with Client() as client:
        client.start(root, WATCHES, {"settings": {"diagnostics": {"workspace": "on"}}})
        # They may come before the folder is said to be read.
        said = [one["params"] for one in client.messages if one.get("method") == "textDocument/publishDiagnostics"]
        first = next((one["diagnostics"] for one in said if one["uri"] == uri), None)
        assert codes(client.published(uri) if first is None else first) == ["VA403"]
        # While it is open, the editor's text counts; then the file's again.
        client.open(uri, CALL.replace("txt", "text"))
        assert codes(client.published(uri, 1)) == []
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        while codes(client.published(uri)) != ["VA403"]:
            pass
        (root / "echo.tool.json").write_text(manifest(parameter="txt"))
        touch(client, root / "echo.tool.json")
        assert codes(client.published(other)) == ["VA403"]
        client.notify("workspace/didChangeConfiguration", {"settings": {"diagnostics": {"workspace": "off"}}})
        assert client.published(other) == []


def test_files_that_are_not_open_are_left_alone_by_default(root: Path) -> None:
    with Client() as client:
        client.start(root, WATCHES)
        client.open((root / "good.md").as_uri(), CALL)
        client.published((root / "good.md").as_uri())
        with pytest.raises(queue.Empty):
            client.published((root / "a.md").as_uri(), timeout=0.3)


def test_large_document_has_one_finding() -> None:
    from tamis.server.analysis.diagnostics import diagnose
    from tamis.server.analysis.kinds import MAX_ANALYSED_CHARS, kind_of
    from tamis.server.analysis.snapshot import Snapshot

    text = json.dumps({"a": "x" * MAX_ANALYSED_CHARS})
    for name in ("a.md", "a.tool.json", "agent_profile.json"):
        found = diagnose(Snapshot(f"/w/{name}", kind_of(name, ""), text, None))
        assert [item.code for item in found] == ["TC024"]


def test_what_check_finds_in_a_folder_is_in_the_report_too(
    tmp_path: Path,
) -> None:  # issue 17: every error of the folder; seen by a fresh user
    (tmp_path / "tamis.toml").write_text('fooo = 1\n[sandbox]\nwallMs = "x"\n')
    (tmp_path / "bad.tool.json").write_text('{"toolId": 5}\n')
    os.mkfifo(tmp_path / "pipe.tool.json")
    (tmp_path / "link.tool.json").symlink_to(tmp_path / "bad.tool.json")
    with Client() as client:
        client.start(tmp_path, PULLS)
        report = client.answer(ask(client))["result"]["items"]
    found = {item["uri"].rpartition("/")[2]: sorted(one["code"] for one in item["items"]) for item in report}
    assert found.pop("bad.tool.json")
    assert found == {"tamis.toml": ["ST802", "ST803"], "pipe.tool.json": ["MF500"], "link.tool.json": ["MF500"]}


def test_a_setting_that_is_mended_leaves_the_report(tmp_path: Path) -> None:
    settings = tmp_path / "tamis.toml"
    settings.write_text("fooo = 1\n")
    with Client() as client:
        client.start(tmp_path, PULLS)
        (item,) = client.answer(ask(client))["result"]["items"]
        assert item["uri"] == settings.as_uri()
        settings.write_text("")
        touch(client, settings)
        while True:
            items = client.answer(ask(client, {item["uri"]: item["resultId"]}))["result"]["items"]
            if items and items[0]["kind"] == "full":
                break
        assert (items[0]["uri"], items[0]["items"]) == (settings.as_uri(), [])
