"""A long session of random edits, requests, cancellations and changes on disk: no failure, no leak, and at its end what a fresh
server says of the same state (issue 5: "a ten-minute random editing session")."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.positions import LineIndex, PositionEncoding
from tamis.server.lsp.features.tool_methods import NAMES
from tamis.server.lsp.table import REQUESTS
from tests.lsp.lsp_client import Client
from tests.lsp.markers import FOLDER, LANGUAGES, read_case
from tests.lsp.typed_texts import PIECES, TEXTS
from tests.waiting import until

GRAPHS = ("flows/sum.json", "flows/twice.json", "image.node.json", "tamis.toml")


def manifest(tool_id: str, words: str, *, newline: str = "\n") -> str:
    content: dict[str, Any] = {
        "toolId": tool_id,
        "displayName": f"Tool {words}",
        "description": f"Gives back the text that it is given, so that a call can be tried out. {words}",
        "version": "1.0.0",
        "handler": {"type": "external-script", "scriptPath": "echo.py", "language": "python"},
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say"},
                "mode": {"type": "string", "enum": ["soft", "loud"], "default": "soft", "description": "How"},
            },
            "required": ["text"],
        },
        "examples": [{"description": "One", "input": {"text": words}}],
    }
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").replace("\n", newline)


MANIFESTS = {"echo.tool.json": "core:echo", "twin.tool.json": "core:twin", "sub/other.tool.json": "core:twin"}
# What may be refused with words, because there is nothing of the kind at a random place.
MAY_BE_REFUSED = {
    "textDocument/rename",
    "textDocument/prepareRename",
    "workspace/executeCommand",
    "workspace/textDocumentContent",
}
RESOLVES = {
    "textDocument/codeLens": "codeLens/resolve",
    "textDocument/codeAction": "codeAction/resolve",
    "textDocument/completion": "completionItem/resolve",
    "textDocument/documentLink": "documentLink/resolve",
    "textDocument/inlayHint": "inlayHint/resolve",
    "workspace/symbol": "workspaceSymbol/resolve",
}
CALLS = ("callHierarchy/incomingCalls", "callHierarchy/outgoingCalls")
"""Ask about an item that ``textDocument/prepareCallHierarchy`` gave."""
OURS = {"initialize", "shutdown", "experimental/discoverTest", "experimental/runTest"}
MAX_IN_FLIGHT = 40
READS = (0, 0, 0, 0, 1, 1, 2, 5)
"""How many messages are read after a request."""


class Soak:
    """A client that does whatever comes to its mind, and remembers what it did. What it does to documents and files follows from the seed
    alone, however fast the server answers: each step has random numbers of its own, and no answer decides how documents go on."""

    def __init__(
        self, root: Path, seed: int, encoding: PositionEncoding, *, watches: bool, inside: bool = False
    ) -> None:
        self.root = root
        self.inside = inside
        self.seed = seed
        self.done = 0
        self.random = random.Random(seed)
        self.encoding: PositionEncoding = encoding
        self.watches = watches
        self.texts: dict[str, str] = {}
        self.before: dict[str, list[str]] = {}
        self.results: dict[str, list[Any]] = {}
        self.in_flight: dict[int, str] = {}
        self.cancelled: set[int] = set()
        self.answers = 0
        self.asked: set[str] = set()
        self.versions: dict[str, int] = {}
        self.refused: list[tuple[str, dict[str, Any]]] = []
        self.published: dict[str, list[Any]] = {}
        for name, text in self.sample().items():
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
        (root / "echo.py").write_text("")
        (root / "sub" / "echo.py").write_text("")
        self.client = self.connect()

    def connect(self) -> Client:
        """A server of this folder."""
        client = Client(inside=self.inside)
        client.start(self.root, self.capabilities(), {"trusted": False})
        return client

    def sample(self) -> dict[str, str]:
        return {**TEXTS, **{name: manifest(tool_id, "a") for name, tool_id in MANIFESTS.items()}}

    def capabilities(self) -> dict[str, Any]:
        return {
            "general": {"positionEncodings": [self.encoding]},
            "textDocument": {
                "completion": {
                    "completionItem": {"snippetSupport": True, "resolveSupport": {"properties": ["documentation"]}}
                },
                "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}},
                "rename": {"prepareSupport": True},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
            },
            "workspace": {
                "didChangeWatchedFiles": {"dynamicRegistration": self.watches},
                "workspaceEdit": {"documentChanges": True},
                "codeLens": {"refreshSupport": True},
                "inlayHint": {"refreshSupport": True},
                "semanticTokens": {"refreshSupport": True},
            },
            "window": {"workDoneProgress": True},
        }

    # Messages

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def take(self, timeout: float | None) -> bool:
        """Takes one message; False when none came in time."""
        try:
            message = self.client.next(timeout)
        except queue.Empty:
            return False
        self.client.messages.clear()
        if message.get("method") == "textDocument/publishDiagnostics":
            self.published[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "method" not in message:
            method = self.in_flight.pop(message["id"])
            self.answers += 1
            if "error" in message:
                code = message["error"]["code"]
                fine = (-32800 if message["id"] in self.cancelled else None, -32801)
                if code not in fine and not (method in MAY_BE_REFUSED and code not in (-32603, -32601)):
                    self.refused.append((method, message))
            elif (method in RESOLVES or method == "textDocument/prepareCallHierarchy") and message["result"]:
                found = message["result"]
                self.results[method] = (found["items"] if isinstance(found, dict) else found)[:20]
            elif method == "textDocument/semanticTokens/full" and message["result"]:
                self.results[method] = [message["result"].get("resultId")]
        return True

    def drain(self) -> None:
        while self.in_flight:
            self.take(None)

    def ask(self, method: str, params: Any) -> None:
        if len(self.in_flight) > MAX_IN_FLIGHT:
            self.drain()
        self.asked.add(method)
        sent = self.client.request(method, params)
        self.in_flight[sent] = method
        if self.random.random() < 0.1:
            self.cancelled.add(sent)
            self.client.notify("$/cancelRequest", {"id": sent})
        for _ in range(self.random.choice(READS)):
            if not self.take(0.001):
                break

    # Documents

    def open(self, name: str) -> None:
        try:
            text = (self.root / name).read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            text = self.sample()[name]
        self.texts[name], self.before[name], self.versions[name] = text, [], 1
        language = LANGUAGES.get(Path(name).suffix, "plaintext")
        item = {"uri": self.uri(name), "languageId": language, "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": item})

    def close(self, name: str) -> None:
        del self.texts[name]
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    def change(self, name: str, edits: list[tuple[int, int, str]], *, whole: bool = False) -> None:
        """Edits one after the other, each in the text that the one before it left."""
        text = self.texts[name]
        self.before[name] = [*self.before[name][-20:], text]
        changes: list[dict[str, Any]] = []
        for start, end, new in edits:
            # An editor never cuts a line end in two.
            index = LineIndex(text)
            places = [index.position(offset, self.encoding) for offset in (start, end)]
            start, end = (index.offset(line, column, self.encoding) for line, column in places)
            changes.append(
                {
                    "range": {
                        "start": {"line": places[0][0], "character": places[0][1]},
                        "end": {"line": places[1][0], "character": places[1][1]},
                    },
                    "text": new,
                }
            )
            text = text[:start] + new + text[end:]
        self.texts[name] = text
        self.versions[name] += 1
        document = {"uri": self.uri(name), "version": self.versions[name]}
        self.client.notify(
            "textDocument/didChange",
            {"textDocument": document, "contentChanges": [{"text": text}] if whole else changes},
        )

    def place(self, text: str) -> int:
        return self.random.randint(0, len(text))

    def edit(self, name: str) -> None:
        text, chance = self.texts[name], self.random.random()
        at = self.place(text)
        if chance < 0.45:
            self.change(name, [(at, at, self.random.choice(PIECES))])
        elif chance < 0.6:
            self.change(name, [(at, min(len(text), at + self.random.randint(1, 30)), "")])
        elif chance < 0.7:
            piece = self.random.choice(list(self.sample().values()))
            start = self.place(piece)
            self.change(name, [(at, at, piece[start : start + self.random.randint(1, 300)])])
        elif chance < 0.8:
            edits: list[tuple[int, int, str]] = []
            for _ in range(3):
                spot = self.random.randint(0, max(0, len(text) - 60))
                edits.append((spot, spot, self.random.choice(PIECES)))
            self.change(name, edits)
        elif chance < 0.9 and self.before[name]:
            self.change(name, [(0, len(text), self.before[name][-1])], whole=self.random.random() < 0.5)
        elif chance < 0.95:
            for letter in self.random.choice(["<ACTION><core:echo>", '"description": "x"', "tool_name:「始」core:"]):
                here = min(at, len(self.texts[name]))
                self.change(name, [(here, here, letter)])
                at = here + 1
        else:
            self.change(name, [(0, len(text), self.sample()[name])])
        if len(self.texts[name]) > 20_000:
            self.change(name, [(0, len(self.texts[name]), self.sample()[name])])

    def position(self, name: str) -> dict[str, int]:
        text = self.texts[name]
        line, character = LineIndex(text).position(self.place(text), self.encoding)
        return {"line": line, "character": character}

    def range(self, name: str) -> dict[str, Any]:
        text = self.texts[name]
        places = sorted((self.place(text), self.place(text)))
        index = LineIndex(text)
        start, end = (index.position(place, self.encoding) for place in places)
        return {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        }

    # Verbs

    def verb(self, name: str) -> None:
        document = {"textDocument": {"uri": self.uri(name)}}
        method = self.random.choice(VERBS)
        options = {"tabSize": 2, "insertSpaces": True}
        params: dict[str, Any]
        if method in RESOLVES.values():
            source = next(one for one, resolve in RESOLVES.items() if resolve == method)
            if not self.results.get(source):
                return
            params = self.random.choice(self.results[source])
            if source == "textDocument/codeAction" and "kind" not in params:
                return
        elif method in CALLS:
            if not self.results.get("textDocument/prepareCallHierarchy"):
                return
            params = {"item": self.random.choice(self.results["textDocument/prepareCallHierarchy"])}
        elif method == "workspace/executeCommand":
            found = [one for one in self.results.get("textDocument/codeLens", ()) if one.get("command")]
            if not found:
                return
            command = self.random.choice(found)["command"]
            params = {"command": command["command"], "arguments": command.get("arguments") or []}
        elif method == "workspace/symbol":
            params = {"query": self.random.choice(["", "e", "core:", "😋"])}
        elif method == "workspace/diagnostic":
            params = {"previousResultIds": []}
        elif method == "workspace/textDocumentContent":
            params = {"uri": self.random.choice(["tamis-result:1", "tamis:x", "file:///x"])}
        elif method == "workspace/willRenameFiles":
            params = {"files": [{"oldUri": self.uri("echo.py"), "newUri": self.uri("moved.py")}]}
        else:
            params = dict(document)
            if method in (
                "textDocument/codeAction",
                "textDocument/inlayHint",
                "textDocument/rangeFormatting",
                "textDocument/semanticTokens/range",
            ):
                params["range"] = self.range(name)
            elif method == "textDocument/rangesFormatting":
                params["ranges"] = [self.range(name), self.range(name)]
            elif method == "textDocument/selectionRange":
                params["positions"] = [self.position(name) for _ in range(3)]
            elif method not in WHOLE:
                params["position"] = self.position(name)
            if "ormatting" in method:
                params["options"] = options
            if method == "textDocument/onTypeFormatting":
                params["ch"] = self.random.choice([">", "\n", "|"])
            elif method == "textDocument/codeAction":
                params["context"] = {"diagnostics": self.published.get(self.uri(name), [])[:3]}
                if self.random.random() < 0.3:
                    params["context"]["only"] = [
                        self.random.choice(["quickfix", "source.fixAll", "refactor", "source"])
                    ]
            elif method == "textDocument/references":
                params["context"] = {"includeDeclaration": True}
            elif method == "textDocument/rename":
                params["newName"] = self.random.choice(["core:renamed", "", "core:echo", "x y", "workflow:total"])
            elif method == "textDocument/semanticTokens/full/delta":
                known = self.results.get("textDocument/semanticTokens/full")
                params["previousResultId"] = known[0] if known and known[0] else "none"
        self.ask(method, params)

    # The disk

    def disk(self) -> None:
        name = self.random.choice(list(self.sample()))
        path, chance = self.root / name, self.random.random()
        if path.is_dir():
            shutil.rmtree(path)
        if chance < 0.06:
            # A file becomes a folder, with a file of its name in it.
            path.unlink(missing_ok=True)
            path.mkdir()
            (path / Path(name).name).write_bytes(self.sample()[name].encode())
        elif chance < 0.12:
            with contextlib.suppress(FileNotFoundError):
                path.rename(path.with_name(f"old-{path.name}.bak"))
        elif chance < 0.25:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        elif chance < 0.5 and name in self.texts:
            path.write_bytes(self.texts[name].encode("utf-8", "replace"))
            self.client.notify("textDocument/didSave", {"textDocument": {"uri": self.uri(name)}})
        elif chance < 0.6:
            path.write_bytes(b"\xff" + self.sample()[name].encode())
        else:
            path.write_bytes(self.sample()[name].encode())
        self.told(path)
        script = self.root / "sub" / "echo.py"
        if chance > 0.9:
            with contextlib.suppress(FileNotFoundError):
                script.unlink()
            self.told(script)
        elif chance > 0.8:
            script.write_text("")
            self.told(script)

    def told(self, path: Path) -> None:
        if self.watches:
            kind = 2 if path.exists() else 3
            self.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": path.as_uri(), "type": kind}]})

    # Sessions

    def step(self) -> None:
        self.done += 1
        self.random.seed(f"{self.seed} {self.done}")
        chance = self.random.random()
        if chance < 0.03 or not self.texts:
            closed = [name for name in self.sample() if name not in self.texts]
            if closed:
                self.open(self.random.choice(closed))
        elif chance < 0.05 and len(self.texts) > 2:
            self.close(self.random.choice(list(self.texts)))
        elif chance < 0.08:
            self.disk()
        else:
            name = self.random.choice(list(self.texts))
            if chance < 0.45:
                self.edit(name)
            else:
                self.verb(name)

    def finish(self) -> dict[str, list[Any]]:
        """What is said of all at the end. Manifests, workflows, nodes and settings are mended before: a broken one counts as it was,
        which a fresh server cannot know."""
        self.random.seed(f"{self.seed} end")
        for name, tool_id in MANIFESTS.items():
            if name in self.texts:
                newline = self.random.choice(["\n", "\r\n"])
                words = self.random.choice(["a", "😋 两", "b c"])
                self.change(name, [(0, len(self.texts[name]), manifest(tool_id, words, newline=newline))])
        for name in GRAPHS:
            if name in self.texts:
                self.change(name, [(0, len(self.texts[name]), TEXTS[name])])
        self.drain()
        return self.settled()

    def settled(self) -> dict[str, list[Any]]:
        """The findings of the open documents when nothing more comes."""
        while self.take(0.5 if self.watches else 1.5):
            pass
        return {name: self.published.get(self.uri(name), []) for name in self.texts}

    def usage(self) -> tuple[int, int]:
        """Resident bytes and open descriptors of the server's process; nothing of a server in a thread."""
        process = self.client.process
        if not isinstance(process, subprocess.Popen):
            return 0, 0
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{process.pid}/fd"))


WHOLE = {
    "textDocument/codeLens",
    "textDocument/diagnostic",
    "textDocument/documentLink",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/formatting",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
}
VERBS = sorted(REQUESTS.keys() - set(NAMES) - OURS)


def ends_as_a_fresh_one_begins(soak: Soak) -> None:
    """Waits until the session's server says what a server says that was started just now, of the same files and the same open documents.

    On a busy machine either may be quiet for a while before it has read all.
    """
    found = soak.finish()
    other = object.__new__(Soak)
    other.__dict__.update(soak.__dict__)
    other.published = {}
    with Client() as other.client:
        other.client.start(soak.root, soak.capabilities(), {"trusted": False})
        for name, text in soak.texts.items():
            language = LANGUAGES.get(Path(name).suffix, "plaintext")
            item = {"uri": soak.uri(name), "languageId": language, "version": 1, "text": text}
            other.client.notify("textDocument/didOpen", {"textDocument": item})
        while found != (again := other.settled()):
            for name in soak.texts:
                if found[name] != again[name]:
                    print("differs so far:", name, found[name], again[name], repr(soak.texts[name]))
            found = soak.settled()


def run(soak: Soak, *, steps: int = 0, seconds: float = 0.0) -> None:
    with soak.client as client:
        for name in soak.sample():
            soak.open(name)
        started = time.monotonic()
        warm = (0, 0)
        done = 0
        while done < steps or time.monotonic() - started < seconds:
            soak.step()
            done += 1
            if warm == (0, 0) and (done > steps / 2 if steps else time.monotonic() - started > seconds / 3):
                soak.drain()
                warm = soak.usage()
        ends_as_a_fresh_one_begins(soak)
        assert not soak.refused, soak.refused[:3]
        assert b"Traceback" not in client.stderr, client.stderr.decode(errors="replace")[-3000:]
        until(lambda: soak.usage()[1] <= warm[1] + 2)
        now = soak.usage()
        # A short session is still taking modules in.
        assert now[0] - warm[0] < (40 if seconds else 120) * 1024 * 1024, (warm, now)
        assert client.stop() == 0
    print(
        f"{done} steps, {soak.answers} answers, memory {warm[0] >> 20} → {now[0] >> 20} MB, descriptors {warm[1]} → {now[1]}"
    )


class Bare(Soak):
    """A client without any capability."""

    def capabilities(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("seed", "encoding", "watches", "kind"),
    [(1, "utf-16", True, Soak), (2, "utf-8", False, Soak), (4, "utf-16", False, Bare)],
    ids=["watching", "not-watching", "bare"],
)
def test_random_session_ends_as_a_fresh_one_begins(
    tmp_path: Path,
    seed: int,
    encoding: PositionEncoding,
    watches: bool,
    kind: type[Soak],
    is_long: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Memory and descriptors are those of a process: one of the short sessions has one.
    soak = kind(tmp_path, seed, encoding, watches=watches, inside=not (is_long or watches))
    if is_long:
        run(soak, seconds=600)
        assert soak.asked == set(VERBS)
    else:
        run(soak, steps=150)
        assert len(soak.asked) > len(VERBS) // 2
    assert "Traceback" not in capsys.readouterr().err


class Scripted(Client):
    """In place of a server: answers every request with null, at once or only when it is waited for."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.messages: list[dict[str, Any]] = []
        self.sent: list[tuple[str, object]] = []
        self.owed: list[int] = []
        self.asked = 0

    def send(self, message: dict[str, Any]) -> None:
        if message["method"] != "$/cancelRequest":
            self.sent.append((message["method"], message["params"]))

    def request(self, method: str, params: object = None) -> int:
        self.asked += 1
        self.owed.append(self.asked)
        return self.asked

    def next(self, timeout: float | None = None) -> dict[str, Any]:
        if not self.owed or not (self.quick or timeout is None):
            raise queue.Empty
        return {"id": self.owed.pop(0), "result": None}


class Alone(Soak):
    """A session without a server."""

    def __init__(self, root: Path, *, quick: bool) -> None:
        self.scripted = Scripted(quick=quick)
        super().__init__(root, 1, "utf-16", watches=True)

    def connect(self) -> Client:
        return self.scripted


def test_walk_of_a_session_is_that_of_its_seed_however_fast_the_server_answers(tmp_path: Path) -> None:
    walks: list[tuple[list[tuple[str, object]], dict[Path, bytes]]] = []
    for quick in (True, False):
        soak = Alone(tmp_path, quick=quick)
        for name in soak.sample():
            soak.open(name)
        for _ in range(300):
            soak.step()
        soak.finish()
        files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        walks.append((soak.scripted.sent, files))
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert walks[0] == walks[1]
    assert walks[0][0]


def test_every_verb_at_every_place_of_every_sample(
    tmp_path: Path, is_long: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half-typed everything: each marker document cut at a place, with every verb asked there (a seeded share in CI)."""
    chooser = random.Random(5)
    cases = sorted(FOLDER.rglob("*.txt"))
    chosen = cases if is_long else chooser.sample(cases, 6)
    soak = Soak(tmp_path, 3, "utf-32", watches=True, inside=True)
    with soak.client as client:
        for path in chosen:
            for name, text in read_case(path).documents.items():
                file = f"{path.stem}-{Path(name).name}"
                if Path(name).suffix not in LANGUAGES or not text:
                    continue
                language = LANGUAGES.get(Path(name).suffix, "plaintext")
                item = {"uri": soak.uri(file), "languageId": language, "version": 1, "text": text}
                client.notify("textDocument/didOpen", {"textDocument": item})
                soak.texts[file], soak.before[file], soak.versions[file] = text, [], 1
                for _ in range(40 if is_long else 2):
                    cut = chooser.randint(0, len(text))
                    soak.change(file, [(0, len(soak.texts[file]), text[:cut])])
                    for _ in range(len(VERBS) if is_long else 6):
                        soak.verb(file)
                soak.close(file)
        soak.drain()
        assert not soak.refused, soak.refused[:3]
        assert client.stop() == 0
    assert "Traceback" not in capsys.readouterr().err
