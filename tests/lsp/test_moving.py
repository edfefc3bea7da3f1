"""The verbs that move, over the wire: what clients of different abilities get, in files that are not open too (issue 5, ruling 9).

What the answers are is shown by ``tests/markers/navigation``; here is how they are said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.lsp_client import Client

ECHO = """{
  "toolId": "core:echo",
  "displayName": "😋 Echo",
  "description": "Gives back the text that it is given, so that a call can be tried out.", "version": "1.0.0",
  "handler": { "type": "external-script", "scriptPath": "echo.py", "language": "python" },
  "parameters": { "type": "object", "properties": { "text": { "type": "string", "description": "你好 😋" } }, "required": ["text"] }
}
"""
CALL = "😋𝒳 <ACTION><core:echo><text>a</text></core:echo></ACTION>\n"
OTHER = (
    "你好 <ACTION><core:echo></core:echo></ACTION>\n\n```\n<ACTION><core:echo></core:echo></ACTION>\nand words\n```\n"
)
UNITS = {
    "utf-8": lambda text: len(text.encode()),
    "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf-32": len,
}
FULL: dict[str, Any] = {
    "textDocument": {
        "definition": {"linkSupport": True},
        "rename": {"prepareSupport": True},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "documentLink": {"tooltipSupport": True},
    },
    "workspace": {
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
        "fileOperations": {"willRename": True},
        "symbol": {"resolveSupport": {"properties": ["location.range"]}},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"echo.tool.json": ECHO, "echo.py": "print()\n", "a.md": CALL, "b.md": OTHER}.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def place(text: str, needle: str, encoding: str, nth: int = 0) -> dict[str, int]:
    """The position of a needle's nth occurrence, counted anew here."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(needle, at + 1)
    line = text.count("\n", 0, at)
    return {"line": line, "character": UNITS[encoding](text[text.rfind("\n", 0, at) + 1 : at])}


def spot(text: str, needle: str, encoding: str, nth: int = 0) -> dict[str, Any]:
    start = place(text, needle, encoding, nth)
    return {"start": start, "end": {**start, "character": start["character"] + UNITS[encoding](needle)}}


def ask(client: Client, folder: Path, method: str, position: dict[str, int], **more: object) -> Any:
    document = {"textDocument": {"uri": (folder / "a.md").as_uri()}, "position": position}
    return client.call(f"textDocument/{method}", {**document, **more})


@pytest.mark.parametrize("encoding", UNITS)
def test_places_in_files_that_are_not_open_are_in_the_clients_units(folder: Path, encoding: str) -> None:
    with Client(cwd=folder) as client:
        client.start(folder, {**FULL, "general": {"positionEncodings": [encoding]}})
        client.open((folder / "a.md").as_uri(), CALL, "markdown")
        here = place(CALL, "core:echo", encoding)
        (link,) = ask(client, folder, "definition", here)
        assert link["originSelectionRange"] == spot(CALL, "core:echo", encoding)
        assert link["targetUri"] == (folder / "echo.tool.json").as_uri()
        assert link["targetSelectionRange"] == spot(ECHO, "core:echo", encoding)
        (text,) = ask(client, folder, "definition", place(CALL, "text>", encoding))
        assert text["targetSelectionRange"] == spot(ECHO, "text", encoding, 1)
        found = ask(client, folder, "references", here, context={"includeDeclaration": False})
        assert [(Path(one["uri"]).name, one["range"]) for one in found] == [
            ("a.md", spot(CALL, "core:echo", encoding)),
            ("b.md", spot(OTHER, "core:echo", encoding)),
            ("b.md", spot(OTHER, "core:echo", encoding, 2)),
        ]
        edit = ask(client, folder, "rename", here, newName="core:say")
        by_name = {Path(one["textDocument"]["uri"]).name: one for one in edit["documentChanges"]}
        assert [one["range"] for one in by_name["b.md"]["edits"]] == [
            spot(OTHER, "core:echo", encoding, i) for i in range(4)
        ]
        assert client.stop() == 0


def test_a_rename_is_bound_to_versions_and_asks_before_it_reaches_closed_files(folder: Path) -> None:
    with Client(cwd=folder) as client:
        result = client.start(folder, FULL)
        assert result["capabilities"]["renameProvider"] == {"prepareProvider": True}
        client.open((folder / "a.md").as_uri(), CALL, "markdown")
        here = place(CALL, "core:echo", "utf-16")
        assert ask(client, folder, "prepareRename", here)["placeholder"] == "core:echo"
        edit = ask(client, folder, "rename", here, newName="core:say")
        assert "changes" not in edit
        assert edit["changeAnnotations"]["closed"]["needsConfirmation"] is True
        versions = {
            Path(one["textDocument"]["uri"]).name: one["textDocument"]["version"] for one in edit["documentChanges"]
        }
        assert versions == {"a.md": 1, "b.md": None, "echo.tool.json": None}
        annotated = {
            Path(one["textDocument"]["uri"]).name: {each.get("annotationId") for each in one["edits"]}
            for one in edit["documentChanges"]
        }
        assert annotated == {"a.md": {None}, "b.md": {"closed"}, "echo.tool.json": {"closed"}}
        # Of an open file only the quoted example asks.
        client.open((folder / "b.md").as_uri(), OTHER, "markdown")
        edit = ask(client, folder, "rename", here, newName="core:say")
        (other,) = [one for one in edit["documentChanges"] if one["textDocument"]["uri"].endswith("b.md")]
        assert [each.get("annotationId") for each in other["edits"]] == [None, None, "aside", "aside"]
        answer = client.answer(
            client.request(
                "textDocument/rename",
                {"textDocument": {"uri": (folder / "a.md").as_uri()}, "position": here, "newName": "no id"},
            )
        )
        assert answer["error"]["code"] == -32803
        assert answer["error"]["message"] == "'no id' cannot be a tool id: blanks are not allowed"
        assert client.stop() == 0


@pytest.mark.parametrize("annotates", [True, False], ids=["annotations", "message"])
def test_a_rename_says_what_renaming_back_would_not_undo_and_undoes_what_it_remembers(
    folder: Path, annotates: bool
) -> None:
    text = "<ACTION><tool_id>core:echo</tool_id></ACTION>\n<ACTION><tool_id>core_echo</tool_id></ACTION>\n"
    sentence = "Renaming back leaves 'core:echo' where 'core_echo' stands now"
    uri = (folder / "a.md").as_uri()
    here = {"line": 0, "character": 20}
    with Client(cwd=folder, inside=True) as client:
        client.start(folder, FULL if annotates else {})
        client.open(uri, text, "markdown")

        def renamed(new: str, text: str) -> str:
            edit = ask(client, folder, "rename", here, newName=new)
            changes = edit.get("changes") or {
                one["textDocument"]["uri"]: one["edits"] for one in edit["documentChanges"]
            }
            said = [
                edit["changeAnnotations"][one["annotationId"]]["description"]
                for one in changes[uri]
                if "annotationId" in one
            ]
            shown = [one["params"]["message"] for one in client.messages if one.get("method") == "window/showMessage"]
            if new == "plain":
                assert (said, shown) == (([sentence], []) if annotates else ([], [sentence]))
            else:
                assert (said, shown) == ([], [] if annotates else [sentence])
            lines = text.split("\n")
            for one in reversed(changes[uri]):
                line, start, end = (
                    one["range"]["start"]["line"],
                    one["range"]["start"]["character"],
                    one["range"]["end"]["character"],
                )
                lines[line] = lines[line][:start] + one["newText"] + lines[line][end:]
            # Files that are not open are written by the editor too.
            for other in folder.iterdir():
                if other.as_uri() in changes and other.as_uri() != uri:
                    old = "core:echo" if new == "plain" else "plain"
                    other.write_text(other.read_text("utf-8").replace(old, new), "utf-8")
                    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": other.as_uri(), "type": 2}]})
            return "\n".join(lines)

        after = renamed("plain", text)
        assert after == text.replace("core:echo", "plain").replace("core_echo", "plain")
        client.change(uri, {"text": after})
        assert renamed("core:echo", after) == text


def test_a_client_without_any_capability_gets_plain_forms(folder: Path) -> None:
    with Client(cwd=folder) as client:
        result = client.start(folder, {})
        assert result["capabilities"]["renameProvider"] is True
        assert "fileOperations" not in result["capabilities"]["workspace"]
        client.open((folder / "a.md").as_uri(), CALL, "markdown")
        here = place(CALL, "core:echo", "utf-16")
        target = {"uri": (folder / "echo.tool.json").as_uri(), "range": spot(ECHO, "core:echo", "utf-16")}
        assert ask(client, folder, "definition", here) == [target]
        edit = ask(client, folder, "rename", here, newName="core:say")
        assert set(edit) == {"changes"}
        symbols = client.call("textDocument/documentSymbol", {"textDocument": {"uri": (folder / "a.md").as_uri()}})
        assert [(one["name"], one.get("containerName")) for one in symbols] == [
            ("ACTION", None),
            ("core:echo", "ACTION"),
            ("text", "core:echo"),
        ]
        assert all(1 <= one["kind"] <= 18 and "location" in one for one in symbols)
        (tool,) = client.call("workspace/symbol", {"query": "echo"})
        assert tool["location"] == target
        linked = ask(client, folder, "linkedEditingRange", here)
        assert linked["ranges"] == [spot(CALL, "core:echo", "utf-16"), spot(CALL, "core:echo", "utf-16", 1)]
        assert client.stop() == 0


def test_edits_that_are_not_saved_count_and_symbols_resolve_later(folder: Path) -> None:
    with Client(cwd=folder) as client:
        result = client.start(folder, FULL)
        filters = result["capabilities"]["workspace"]["fileOperations"]["willRename"]["filters"]
        assert {one["pattern"]["matches"] for one in filters} == {"file", "folder"}
        uri = (folder / "echo.tool.json").as_uri()
        client.open(uri, "\n\n" + ECHO.replace("core:echo", "core:neu"), "json")
        client.open((folder / "a.md").as_uri(), CALL.replace("core:echo", "core:neu"), "markdown")
        (link,) = ask(client, folder, "definition", place(CALL, "core:echo", "utf-16"))
        assert link["targetSelectionRange"]["start"]["line"] == 3
        (tool,) = client.call("workspace/symbol", {"query": "neu"})
        assert tool["location"] == {"uri": uri}
        resolved = client.call("workspaceSymbol/resolve", tool)
        assert resolved["location"]["range"]["start"] == {"line": 3, "character": 13}
        moved = {"files": [{"oldUri": (folder / "echo.py").as_uri(), "newUri": (folder / "lib/shout.py").as_uri()}]}
        edit = client.call("workspace/willRenameFiles", moved)
        ((change,),) = [one["edits"] for one in edit["documentChanges"]]
        assert (change["newText"], change["range"]["start"]["line"]) == ("lib/shout.py", 6)
        away = {"files": [{"oldUri": (folder / "echo.py").as_uri(), "newUri": (folder.parent / "echo.py").as_uri()}]}
        assert client.call("workspace/willRenameFiles", away) is None
        said = [one for one in client.messages if one.get("method") == "window/showMessage"]
        assert "not below the manifest's folder" in json.dumps(said)
        assert client.stop() == 0


def test_files_that_changed_or_vanished_unseen_are_read_again_before_a_rename(folder: Path) -> None:
    with Client(cwd=folder) as client:
        client.start(folder, FULL)
        client.open((folder / "a.md").as_uri(), CALL, "markdown")
        here = place(CALL, "core:echo", "utf-16")
        assert len(ask(client, folder, "rename", here, newName="core:say")["documentChanges"]) == 3
        (folder / "b.md").unlink()
        (folder / "echo.tool.json").write_text("\n" + ECHO, "utf-8")
        edit = ask(client, folder, "rename", here, newName="core:say")
        lines = {
            Path(one["textDocument"]["uri"]).name: [each["range"]["start"]["line"] for each in one["edits"]]
            for one in edit["documentChanges"]
        }
        assert lines == {"a.md": [0, 0], "echo.tool.json": [2]}
        assert client.stop() == 0


def test_a_workflows_id_is_renamed_with_its_file_where_the_client_can(folder: Path) -> None:
    # W02: the id is the file's name.
    flow = folder / "flows" / "sum.json"
    flow.parent.mkdir()
    flow.write_text('{"interfaceInputs": {}}', "utf-8")
    call = CALL.replace("core:echo", "workflow:sum")
    able = {**FULL, "workspace": {**FULL["workspace"]}}
    able["workspace"]["workspaceEdit"] = {"documentChanges": True, "resourceOperations": ["create", "rename"]}
    with Client(cwd=folder) as client:
        client.start(folder, able)
        uri = (folder / "a.md").as_uri()
        client.open(uri, call, "markdown")
        here = place(call, "workflow:sum", "utf-16")
        edit = ask(client, folder, "rename", here, newName="workflow:total")
        edits, move = edit["documentChanges"]
        assert [one["newText"] for one in edits["edits"]] == ["workflow:total", "workflow:total"]
        new = (flow.parent / "total.json").as_uri()
        assert move == {"kind": "rename", "oldUri": flow.as_uri(), "newUri": new}
        params = {"textDocument": {"uri": uri}, "position": here, "newName": "core:total"}
        assert client.fails("textDocument/rename", params)["message"].endswith("and the name of its file")
        assert client.stop() == 0


def test_a_client_that_renames_no_files_is_told_what_names_a_workflow(folder: Path) -> None:  # W02
    flow = folder / "flows" / "sum.json"
    flow.parent.mkdir()
    flow.write_text('{"interfaceInputs": {}}', "utf-8")
    with Client(cwd=folder, inside=True) as client:
        client.start(folder, {})
        uri = (folder / "a.md").as_uri()
        for name in ("workflow:sum", "sum", "workflow_sum"):
            call = CALL.replace("core:echo", name)
            client.open(uri, call, "markdown")
            params = {"textDocument": {"uri": uri}, "position": place(call, name, "utf-16")}
            for verb, more in (("prepareRename", {}), ("rename", {"newName": "workflow:total"})):
                refused = client.fails(f"textDocument/{verb}", {**params, **more})
                assert refused["message"] == "'workflow:sum' is named by its workflow file; rename the file"
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_a_variable_is_renamed_in_files_that_are_not_open_and_not_in_a_chat(folder: Path) -> None:  # issue 17
    settings = 'environment = "dev"\n\n[environments.dev]\ncity = "你好 😋"\n\n[environments.live]\n"city" = 1\n'
    call = CALL.replace(">a<", ">{{city}}<")
    (folder / "tamis.toml").write_text(settings, "utf-8")
    (folder / "b.md").write_text("## Later\n\n" + call, "utf-8")
    (folder / "chat.md").write_text(f"<|im_start|>assistant\n{call}<|im_end|>\n", "utf-8")
    with Client(cwd=folder) as client:
        client.start(folder, FULL)
        client.open((folder / "a.md").as_uri(), call, "markdown")
        here = place(call, "city", "utf-16")
        edit = ask(client, folder, "rename", here, newName="town")
        assert ask(client, folder, "prepareRename", here) == {
            "range": spot(call, "city", "utf-16"),
            "placeholder": "city",
        }
        by_name = {Path(one["textDocument"]["uri"]).name: one for one in edit["documentChanges"]}
        assert {name: one["textDocument"]["version"] for name, one in by_name.items()} == {
            "a.md": 1,
            "b.md": None,
            "tamis.toml": None,
        }
        places = [(one["range"], one["newText"], one["annotationId"]) for one in by_name["tamis.toml"]["edits"]]
        assert places == [
            (spot(settings, "city", "utf-16"), "town", "closed"),
            (spot(settings, '"city"', "utf-16"), '"town"', "closed"),
        ]
        assert [one["range"] for one in by_name["b.md"]["edits"]] == [spot("## Later\n\n" + call, "city", "utf-16")]
        # What the rename leaves is told.
        left = [one["params"]["message"] for one in client.messages if one.get("method") == "window/showMessage"]
        assert left == [
            "'city' stays as it is where nothing is read as a call or filled in (chats, prose, other forms): 'chat.md'"
        ]
        # The file as the editor has it counts, also before it is saved; on disk it may change unseen.
        (folder / "b.md").unlink()
        client.open((folder / "tamis.toml").as_uri(), "\n" + settings, "toml")
        found = ask(client, folder, "references", here, context={"includeDeclaration": True})
        assert [
            (Path(one["uri"]).name, one["range"]["start"]["line"]) for one in found if "b.md" not in one["uri"]
        ] == [
            ("a.md", 0),
            ("tamis.toml", 4),
            ("tamis.toml", 7),
        ]
        edit = ask(client, folder, "rename", here, newName="town")
        assert [Path(one["textDocument"]["uri"]).name for one in edit["documentChanges"]] == ["a.md", "tamis.toml"]
        params = {"textDocument": {"uri": (folder / "a.md").as_uri()}, "position": here, "newName": "no blanks"}
        assert client.fails("textDocument/rename", params)["message"].startswith("'no blanks' cannot be a variable")
        assert client.stop() == 0
