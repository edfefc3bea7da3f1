"""A stranger's folder over every method of the daemon, every verb of the language server, every command: its word acts in none.

The lists come from the code: what is new there and not here fails the test (trust 1, 3, 4; rulings 58, 59).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tamis.server.cli.main import COMMANDS
from tamis.server.lsp.features.execute_command import COMMANDS as EDITOR_COMMANDS
from tamis.server.lsp.table import NOTIFICATIONS, REQUESTS
from tamis.server.rpc.methods import RpcServer
from tests.daemon import answers_of
from tests.lsp.editor import EVERYTHING, Editor
from tests.sample_tools import action, vcp
from tests.trust.conftest import World
from tests.trust.hostile import HOOK_MANY, OWN, Hostile, ended_of, hostile_folder

NOT_TRUSTED = 1901
WRONG_PARAMS = -32602
TEXT = action("t:echo", text="x")
EVERY = "\n".join(vcp(f"t:{name}") for name in ("reads", "writes", "needs", "packs", "js", "own", "later"))
CALLS = [
    {"toolId": "t:echo", "args": {"text": "x"}},
    *({"toolId": f"t:{name}"} for name in ("reads", "writes", "needs", "packs", "js", "own", "later")),
    {"toolId": "workflow:flow", "args": {"text": "x"}},
]
"""One call of every tool; the first needs no grant and runs."""

RPC: dict[str, list[dict[str, Any]]] = {
    "agent/end": [{"sessionId": "s"}],
    "agent/session": [{"sessionId": "s"}],
    "agent/step": [{"sessionId": "s", "text": TEXT, "config": {"protocol": "action"}}],
    "approval/list": [{}],
    "approval/revoke": [{"all": True}],
    "observation/format": [{"results": [{"toolId": "t:echo", "status": "success", "output": 1}], "protocol": "action"}],
    "parse/open": [{}],
    "parse/feed": [{"streamId": "stream-1", "chunk": TEXT}],
    "parse/close": [{"streamId": "stream-1"}],
    "prompt/generate": [{}, {"context": {"agentId": "a"}}],
    "prompt/grammar": [{"format": "gbnf"}, {"format": "jsonSchema"}],
    "registry/reload": [{}],
    "registry/status": [{}],
    "rpc.discover": [{}],
    "server/health": [{}],
    "server/metrics": [{}],
    "service/list": [{}],
    "service/register": [{"serviceName": "s", "methods": []}],
    "service/unregister": [{"serviceName": "s"}],
    "state/get": [{}],
    "state/set": [{"values": {"a": 1}}],
    "stream/read": [{"handle": "none"}],
    "task/answer": [{"taskId": "none", "approval": {"token": "x", "optionId": "allow"}}],
    "task/cancel": [{"taskId": "none"}],
    "task/get": [{"taskId": "none"}],
    "task/list": [{}],
    "task/result": [{"taskId": "none"}],
    "tool/cancel": [{"callId": "none"}],
    "tool/convert": [{"text": TEXT, "to": "vcp"}],
    "tool/describe": [{"toolId": f"t:{name}"} for name in ("echo", "needs", "own")],
    "tool/execute": [*CALLS, {"toolId": "t:echo", "args": {"text": "x"}, "dryRun": True}],
    "tool/executeText": [{"text": TEXT}, {"text": EVERY}, {"text": TEXT, "dryRun": True}],
    "tool/explain": [{"text": TEXT}],
    "tool/list": [{}, {"view": "full"}],
    "tool/parse": [{"text": TEXT}],
    "tool/repair": [{"text": TEXT}],
    "tool/validate": [{"toolId": "t:echo", "args": {"text": "x"}}],
    "workflow/describe": [{"workflowId": "flow"}],
    "workflow/graph": [{"workflowId": "flow"}],
    "workflow/list": [{}],
    "workflow/run": [{"workflowId": "flow", "inputs": {"text": "x"}}],
}
"""What every method is asked."""
RUNS = {"agent/step", "tool/execute", "tool/executeText", "workflow/run"}
"""The methods that run something: refused as a whole where the host says that the folder is not trusted."""


@pytest.fixture
def hostile(world: World) -> Iterator[Hostile]:
    with hostile_folder(world) as folder:
        yield folder


# The daemon


def rpc(hostile: Hostile, options: dict[str, Any] | None) -> list[tuple[str, dict[str, Any]]]:
    """Asks a daemon everything; the answers with their methods. None: nobody initialized it."""
    asked = [(name, params) for name, several in RPC.items() for params in several]
    requests = [
        {"jsonrpc": "2.0", "id": number, "method": name, "params": params}
        for number, (name, params) in enumerate(asked, 1)
    ]
    if options is not None:
        start = {"rootUri": hostile.root.as_uri(), "capabilities": {}, "initializationOptions": options}
        requests.insert(0, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start})
    answers, _ = answers_of(hostile.command("rpc", "--root", str(hostile.root)), requests)
    return [(name, answers[number]) for number, (name, _) in enumerate(asked, 1)]


def test_the_table_holds_every_method_of_the_daemon() -> None:
    assert RPC.keys() == RpcServer(None).declared.keys()


@pytest.mark.parametrize("options", [None, {}, {"trusted": None}, {"trusted": False}, {"trusted": "yes"}], ids=repr)
def test_no_method_of_the_daemon_lets_a_stranger_s_word_act(hostile: Hostile, options: dict[str, Any] | None) -> None:
    answers = rpc(hostile, options)
    assert hostile.harm() == []
    assert OWN.strip() not in repr(answers)
    codes = [(name, answer.get("error", {}).get("code")) for name, answer in answers]
    # which there is none of, since a workflow gives one only when it is asked to
    assert {name for name, code in codes if code == WRONG_PARAMS} == {"stream/read"}
    if (options or {}).get("trusted") is not None:
        # what is neither yes nor no is no
        assert {name for name, code in codes if code == NOT_TRUSTED} == RUNS
        assert {code for name, code in codes if name in RUNS} == {NOT_TRUSTED}
        assert hostile.runs() == []
        return
    assert NOT_TRUSTED not in dict(codes).values()
    first = next(answer["result"] for name, answer in answers if name == "tool/execute")
    assert (first["status"], first["output"]) == ("success", {"text": "x"})
    assert hostile.runs() != []


@pytest.fixture
def able(hostile: Hostile) -> Hostile:
    """The same folder with a Python that runs, and an audit log that can be one."""
    path = hostile.root / "tamis.toml"
    path.write_text(path.read_text().replace("python =", "# python =", 1).replace("bashrc", "audit.jsonl"))
    return hostile


def test_the_look_sees_what_a_trusted_folder_does(able: Hostile) -> None:
    """The same questions and a host that trusts the folder: what the tests here look for is there to be seen."""
    answers = rpc(able, {"trusted": True})
    harm = able.harm()
    assert {"changed audit.jsonl", "changed new", "marked by evil-command"} <= {*harm}
    assert able.listener.connections > 0
    assert OWN.strip() in repr(answers)
    # ruling 59: an interpreter is started in the sandbox alone, whoever names it
    assert {one for one in harm if one.startswith("marked")} == {"marked by evil-command"}
    assert {one for one in harm if one.startswith("started")} <= {f"started {able.root}/evil-command"}
    assert all(answer.get("error", {}).get("code") != NOT_TRUSTED for _, answer in answers)


# The language server


def verbs(hostile: Hostile) -> dict[str, list[dict[str, Any]]]:
    """What every request of an editor is asked with."""
    talk = (hostile.root / "talk.md").as_uri()
    document = {"textDocument": {"uri": talk}}
    at = {**document, "position": {"line": 0, "character": 10}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": len(TEXT)}}
    style = {"tabSize": 2, "insertSpaces": True}
    item = {"name": "t:echo", "kind": 12, "uri": talk, "range": whole, "selectionRange": whole}
    new = (hostile.root / "new.md").as_uri()
    plain = {
        name: [{**at}]
        for name in (
            *("textDocument/completion", "textDocument/declaration", "textDocument/definition"),
            *("textDocument/documentHighlight", "textDocument/hover", "textDocument/implementation"),
            *("textDocument/linkedEditingRange", "textDocument/prepareCallHierarchy", "textDocument/prepareRename"),
            "textDocument/signatureHelp",
        )
    }
    of_document = {
        name: [{**document}, {"textDocument": {"uri": (hostile.root / "tamis.toml").as_uri()}}]
        for name in (
            *("textDocument/codeLens", "textDocument/diagnostic", "textDocument/documentLink"),
            *("textDocument/documentSymbol", "textDocument/foldingRange", "textDocument/semanticTokens/full"),
        )
    }
    return {
        **RPC,
        **plain,
        **of_document,
        "callHierarchy/incomingCalls": [{"item": item}],
        "callHierarchy/outgoingCalls": [{"item": item}],
        "codeLens/resolve": [{"range": whole}],
        "completionItem/resolve": [{"label": "t:echo"}],
        "documentLink/resolve": [{"range": whole}],
        "experimental/discoverTest": [{}],
        "experimental/runTest": [{}],
        "inlayHint/resolve": [{"position": at["position"], "label": "x"}],
        "textDocument/codeAction": [{**document, "range": whole, "context": {"diagnostics": []}}],
        "textDocument/formatting": [{**document, "options": style}],
        "textDocument/inlayHint": [{**document, "range": whole}],
        "textDocument/onTypeFormatting": [{**at, "ch": ">", "options": style}],
        "textDocument/rangeFormatting": [{**document, "range": whole, "options": style}],
        "textDocument/rangesFormatting": [{**document, "ranges": [whole], "options": style}],
        "textDocument/references": [{**at, "context": {"includeDeclaration": True}}],
        "textDocument/rename": [{**at, "newName": "t:other"}],
        "textDocument/selectionRange": [{**document, "positions": [at["position"]]}],
        "textDocument/semanticTokens/full/delta": [{**document, "previousResultId": "1"}],
        "textDocument/semanticTokens/range": [{**document, "range": whole}],
        "workspace/diagnostic": [{"previousResultIds": [{"uri": talk, "value": "1"}]}],
        "workspace/executeCommand": [
            {"command": name, "arguments": [{"show": False, **arguments}]} for name, arguments in commands(hostile)
        ],
        "workspace/symbol": [{"query": "t"}],
        "workspace/textDocumentContent": [{"uri": "tamis-result:/1.md"}],
        "workspace/willRenameFiles": [{"files": [{"oldUri": talk, "newUri": new}]}],
        "workspaceSymbol/resolve": [{"name": "t", "kind": 1, "location": {"uri": talk, "range": whole}}],
    }


def commands(hostile: Hostile) -> list[tuple[str, dict[str, Any]]]:
    """What every command of an editor is given."""
    talk, manifest = hostile.root / "talk.md", hostile.root / "t_echo" / "x.tool.json"
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": len(TEXT)}}
    block = {"uri": talk.as_uri(), "range": whole, "version": 1}
    own = {"uri": manifest.as_uri(), "version": 1}
    return [
        ("tamis.run", block),
        ("tamis.dryRun", block),
        ("tamis.rerunLast", {}),
        ("tamis.runExample", {**own, "example": 0}),
        ("tamis.testExamples", own),
        ("tamis.previewPrompt", {"uri": talk.as_uri(), "toolId": "t:echo"}),
        ("tamis.convert", {**block, "to": "vcp"}),
        ("tamis.copyAs", {**block, "to": "cli"}),
        ("tamis.cancel", {}),
        ("tamis.showResult", {}),
        ("tamis.clearResults", {}),
        ("tamis.showReferences", {"toolId": "t:echo"}),
        ("tamis.approve", {"approvalId": "none", "optionId": "allow"}),
        ("tamis.explain", {}),
    ]


RUN_COMMANDS = {"tamis.run", "tamis.dryRun", "tamis.runExample", "tamis.testExamples", "tamis.rerunLast"}


def told(hostile: Hostile) -> list[tuple[str, Any]]:
    """Every notification of an editor, those that open documents first."""
    files = sorted(path for path in hostile.root.rglob("*") if path.suffix in (".json", ".toml"))
    uri = (hostile.root / "talk.md").as_uri()
    texts = [(uri, "markdown", TEXT), *((path.as_uri(), path.suffix[1:], path.read_text()) for path in files)]
    document = {"textDocument": {"uri": files[0].as_uri()}}
    edited = {"textDocument": {"uri": files[0].as_uri(), "version": 2}, "contentChanges": [{"text": "{}"}]}
    one = {"files": [{"uri": uri}]}
    settings = {"tamis": {"audit": {"path": str(hostile.victim / "home" / "bashrc")}}}
    return [
        ("initialized", {}),
        ("$/setTrace", {"value": "verbose"}),
        *(
            ("textDocument/didOpen", {"textDocument": {"uri": at, "languageId": kind, "version": 1, "text": text}})
            for at, kind, text in texts
        ),
        ("workspace/didChangeConfiguration", {"settings": settings}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": 2} for path in files]}),
        ("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": []}}),
        ("workspace/didCreateFiles", one),
        ("workspace/didDeleteFiles", {"files": [{"uri": (hostile.root / "none.md").as_uri()}]}),
        ("workspace/didRenameFiles", {"files": [{"oldUri": f"{uri}.old", "newUri": uri}]}),
        ("textDocument/didSave", document),
        ("experimental/abortRunTest", {}),
        ("window/workDoneProgress/cancel", {"token": "none"}),
        ("textDocument/didChange", edited),
        ("textDocument/didClose", document),
    ]


def test_the_tables_hold_every_verb_of_the_language_server(hostile: Hostile) -> None:
    assert verbs(hostile).keys() == {*REQUESTS} - {"initialize", "shutdown"}
    assert {name for name, _ in told(hostile)} == {*NOTIFICATIONS}
    assert {name for name, _ in commands(hostile)} == {*EDITOR_COMMANDS}


@pytest.mark.parametrize("trusted", [None, False])
def test_no_verb_of_the_language_server_lets_a_stranger_s_word_act(hostile: Hostile, trusted: bool | None) -> None:
    """The editor's own settings name the evil interpreter too: they may come from the folder (ruling 58)."""
    settings = {"sandbox": {"interpreters": {"python": str(hostile.root / "evil-python")}}}
    options: dict[str, Any] = {"settings": settings} | ({} if trusted is None else {"trusted": trusted})
    answers: list[tuple[str, dict[str, Any]]] = []
    unknown = {"stream/read", "workspace/textDocumentContent"}
    with Editor(cwd=hostile.root, command=hostile.command("lsp")) as editor:
        editor.start(hostile.root, EVERYTHING, options)
        for name, params in told(hostile):
            if name != "initialized":
                editor.notify(name, params)
        for name, several in verbs(hostile).items():
            for params in several:
                shown = params["command"] if name == "workspace/executeCommand" else name
                answers.append((shown, editor.answer(editor.request(name, params))))
        assert editor.stop() == 0
    assert hostile.harm() == []
    assert OWN.strip() not in repr(answers)
    codes = [(name, answer.get("error", {}).get("code")) for name, answer in answers]
    assert {name for name, code in codes if code == WRONG_PARAMS} <= unknown
    if trusted is False:
        runs = RUNS | RUN_COMMANDS | {"experimental/runTest"}
        assert {name for name, code in codes if code == NOT_TRUSTED} == runs
        assert {code for name, code in codes if name in runs} == {NOT_TRUSTED}
        assert hostile.runs() == []
        return
    assert NOT_TRUSTED not in dict(codes).values()
    results = {name: answer.get("result") for name, answer in answers}
    assert results["tamis.run"]["status"] == "success"
    assert results["tamis.testExamples"]["passed"] == 1


# The commands


LINES: dict[str, list[list[str]]] = {
    "approvals": [["list"], ["revoke", "--all"]],
    "call": [[one["toolId"], "--yes", "--args", '{"text": "x"}' if "args" in one else "{}"] for one in CALLS]
    + [["t:echo", "--args", '{"text": "x"}', "--dry-run"]],
    "check": [[], ["--format", "json", "tamis.toml"]],
    "convert": [["--to", "vcp", "talk.md"]],
    "deps": [["list"], ["check"], ["audit"], ["install"], ["prune"]],
    "doctor": [[], ["--json"]],
    "export": [["mcp"], ["vcp"]],
    "format": [["--check", "."]],
    "import": [["openai", "functions.json", "--out", "../out"]],
    "list": [[], ["--json"]],
    "lsp": [],
    "mcp": [["install", "codex", "--print"]],
    "new": [["n:new", "--folder", "../out"]],
    "parse": [["talk.md"], ["--repair", "talk.md"], ["--jsonl", "functions.json"]],
    "prompt": [[], ["--grammar", "gbnf"]],
    "rpc": [],
    "run": [["--yes", "talk.md"], ["--dry-run", "talk.md"]],
    "schema": [["--openrpc"]],
    "stats": [["functions.json"], ["functions.json", "--html", "../out.html"]],
    "test": [["--yes"]],
    "trust": [[], ["--json"], ["--list"], ["--revoke"]],
    "workflow": [["list"], ["graph", "flow"], ["run", "flow", "--yes", "--args", '{"text": "x"}']],
}
"""What every command is started with; the daemons are above."""


def test_the_table_holds_every_command() -> None:
    assert LINES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", [name for name, lines in LINES.items() if lines])
def test_no_command_lets_a_stranger_s_word_act(hostile: Hostile, name: str) -> None:
    (hostile.root / "talk.md").write_text(TEXT + EVERY)
    (hostile.root / "functions.json").write_text(
        '[{"type": "function", "name": "f", "parameters": {"type": "object"}}]'
    )
    command = [sys.executable, "-P", "-c", HOOK_MANY, str(hostile.log)]
    lines = [[name, *words] for words in LINES[name]]
    process = subprocess.run(
        [*command, json.dumps(lines)],
        cwd=hostile.root,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    for words, done in zip(lines, ended_of(process), strict=True):
        said = done.stdout + done.stderr
        assert hostile.harm() == [], (words, said)
        assert OWN.strip() not in said
        assert done.returncode != 2, said
    if name in ("call", "run", "test", "workflow"):
        assert hostile.runs() != []
    elif name != "deps":
        assert hostile.runs() == []


def test_the_look_sees_what_a_trusted_folder_does_by_a_command(able: Hostile) -> None:
    ended(able, "call", "t:needs", "--yes", "--trust")
    assert {"marked by evil-command", "changed audit.jsonl"} <= {*able.harm()}


def ended(hostile: Hostile, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        hostile.command(*words),
        cwd=hostile.root,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
