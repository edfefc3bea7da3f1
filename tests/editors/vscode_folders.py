"""The folders that the driven VS Code opens: tools, texts that call them, and what the editor needs beside the extension."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.editors.extension import SOURCE
from tests.sample_tools import make_tool, tam, vcp

WEATHER = """{
  "toolId": "demo:weather",
  "displayName": "Weather",
  "description": "Gives the weather of a city today, in words.",
  "version": "1.0.0",
  "handler": {
    "type": "external-script",
    "scriptPath": "wether.py",
    "language": "pyton"
  },
  "parameters": {
    "type": "object",
    "properties": {
      "city": { "type": "string", "description": "Its name." },
      "unit": { "type": "sting" }
    },
    "required": ["city"]
  }
}
"""
CALLS = """# A call

<ACTION>
  <text:statistics>
    <text>Hello world, 你好 😀</text>
  </text:statistics>
</ACTION>

<ACTION>
  <text:statistics>
    <text>A second block</text>
  </text:statistics>
</ACTION>
"""
CHAIN = """<!-- tamis-name: first -->
<ACTION><demo:form><text>{{city}}</text></demo:form></ACTION>

---

<ACTION><demo:form><text>{{first.output.text}}!</text></demo:form></ACTION>

```json expect
{"text": "Rome?"}
```
"""
MCP_SERVER = Path(__file__).resolve().parents[1] / "runtime" / "mcp_server.py"
COLOURS = {"type": "string", "title": "Colour", "enum": ["red", "blue"]}
QUESTIONS = [
    {"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {"colour": COLOURS}}},
    {"message": "Overwrite?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}},
    {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}},
]
MEALS = {"type": "array", "title": "Meals", "items": {"type": "string", "enum": ["early", "late"]}, "maxItems": 1}
HOSTILE = "City $(flame) [a](command:b)\n\u202e" + "x" * 10_000
FORM = {
    "city": {
        "type": "string",
        "title": HOSTILE,
        "description": "Where the trip [ends](https://a.example).",
        "minLength": 2,
    },
    "people": {"type": "integer", "title": "People", "minimum": 1, "default": 3},
    "mail": {"type": "string", "title": "Mail", "format": "email"},
    "window": {"type": "boolean", "title": "Window", "default": True},
    "meals": MEALS,
}
TRIP = {"type": "object", "properties": FORM, "required": ["city", "people"]}
NAMED = {"properties": {"name": {"type": "string", "default": "as suggested"}}}
ADDRESS = "https://login.example.com:8443/in?a=b%2Fc&d=%20"
FORMS = [
    {"message": "Which trip? [a](command:b)", "requestedSchema": TRIP},
    {"message": "What name?", "requestedSchema": NAMED},
    {"message": "Which name now?", "requestedSchema": NAMED},
    {"message": "No name?", "requestedSchema": NAMED},
]
ADDRESSES = [
    *(
        {"mode": "url", "message": text, "elicitationId": "e", "url": ADDRESS}
        for text in ("Log in", "Log on", "Log out")
    ),
    *(
        {"mode": "url", "message": "Log in", "elicitationId": "e", "url": url}
        for url in ("javascript:alert(1)", "file:///etc/passwd", "https://good.example@evil.example/")
    ),
    {"message": "Fill in", "requestedSchema": {"properties": {f"f{at}": {"type": "string"} for at in range(1000)}}},
]
QUESTION_TOOL = {
    "toolId": "mcp:question",
    "displayName": "Question",
    "description": "Asks what it is told to ask and gives what it heard, for tests.",
    "version": "1.0.0",
    "handler": {"type": "mcp", "server": "test", "tool": "question"},
    "parameters": {"type": "object", "properties": {"questions": {"type": "array", "description": "What to ask."}}},
}
EXAMPLES = SOURCE.parents[1] / "examples" / "tools"
OLD_SERVER = """import sys
import tamis
tamis.__version__ = "0.0.9"
from tamis.server.cli.main import entry
sys.exit(entry())
"""


def two_folders(work: Path) -> Path:
    """A workspace of two folders, with a server of another version."""
    make_tool(work / "first", "demo:ask", execution={"requireConfirmation": True})
    (work / "first" / "ask.tam").write_text(tam({"command": "demo:ask", "text": "a"}) + "\n")
    (work / "second").mkdir()
    (work / "second" / "closed.tool.json").write_text('{"toolId": "demo:closed"}\n')
    old = work / "tamis"
    old.write_text(f"#!{sys.executable}\n{OLD_SERVER}")
    old.chmod(0o755)
    workspace = work / "both.code-workspace"
    settings = {"tamis.path": str(old)}
    workspace.write_text(json.dumps({"folders": [{"path": "first"}, {"path": "second"}], "settings": settings}))
    return workspace


MEMORY = """const vscode = require("vscode");
const files = { "/first.tool.json": JSON.stringify({ toolId: "memory:first" }), "/call.tam": "<|[REQUEST_TOOL]|>\\ncommand:»»»memory:first«««\\n<|[END_TOOL]|>\\n" };
const wrong = () => { throw vscode.FileSystemError.NoPermissions("read only"); };
const stat = (uri) => {
  const { type, size } = uri.path === "/" ? { type: 2, size: 0 } : uri.path in files ? { type: 1, size: files[uri.path].length } : {};
  if (type === undefined) throw vscode.FileSystemError.FileNotFound(uri);
  return { type, size, ctime: 0, mtime: 0 };
};
exports.activate = () => vscode.workspace.registerFileSystemProvider("memory", {
  onDidChangeFile: () => ({ dispose() {} }), watch: () => ({ dispose() {} }), stat,
  readDirectory: () => Object.keys(files).map((name) => [name.slice(1), 1]),
  readFile: (uri) => (stat(uri), Buffer.from(files[uri.path])),
  writeFile: wrong, createDirectory: wrong, delete: wrong, rename: wrong,
}, { isReadonly: true });
"""


def add_helpers(work: Path) -> None:
    """What the session's editor needs beside ours: files in memory, and Chinese (of which the editor's own texts, which stay English, are none)."""
    anywhere = {"untrustedWorkspaces": {"supported": True}, "virtualWorkspaces": True}
    about = {"publisher": "test", "version": "0.0.1", "engines": {"vscode": "^1.91.0"}, "capabilities": anywhere}
    memory = work / "extensions" / "test.memory-0.0.1"
    memory.mkdir(parents=True)
    (memory / "main.js").write_text(MEMORY)
    events = ["onFileSystem:memory"]
    (memory / "package.json").write_text(
        json.dumps({**about, "name": "memory", "main": "./main.js", "activationEvents": events})
    )
    pack = work / "extensions" / "test.chinese-0.0.1"
    pack.mkdir()
    language = {"languageId": "zh-cn", "languageName": "Chinese", "localizedLanguageName": "中文"}
    translations = [{"id": "vscode", "path": "./main.i18n.json"}]
    (pack / "main.i18n.json").write_text(json.dumps({"version": "1.0.0", "contents": {}}))
    contributes = {"localizations": [{**language, "translations": translations}]}
    (pack / "package.json").write_text(json.dumps({**about, "name": "chinese", "contributes": contributes}))
    known = {
        "hash": "0",
        "extensions": [{"extensionIdentifier": {"id": "test.chinese"}, "version": "0.0.1"}],
        "translations": {"vscode": str(pack / "main.i18n.json")},
        "label": "中文",
    }
    (work / "user" / "User").mkdir(parents=True)
    (work / "user" / "languagepacks.json").write_text(json.dumps({"zh-cn": known}))
    # Without the file the editor is English; with it, its language is the browser's.
    (work / "user" / "User" / "argv.json").write_text("{}")


def unusual_folders(work: Path, many: int) -> dict[str, str]:
    """Folders that are not as most are, by the names that the driver has for them."""
    virtual = work / "virtual.code-workspace"
    virtual.write_text(json.dumps({"folders": [{"uri": "memory:/", "name": "in memory"}]}))
    tools = work / "many" / "tools"
    tools.mkdir(parents=True)
    said = {"text": {"type": "string", "description": "What is said."}}
    manifest = (make_tool(work / "model", "demo:many", properties=said) / "x.tool.json").read_text()
    (tools / "tool.py").write_text("print(1)\n")
    for number in range(many):
        text = manifest.replace("demo:many", f"demo:a{number:04}")
        (tools / f"a{number:04}.tool.json").write_text(text)
    (tools / "wrong.tool.json").write_text(manifest.replace('"python"', '"pyton"'))
    locked = work / "locked"
    make_tool(locked / "tools", "demo:locked")
    (locked / "tools" / "wrong.tool.json").write_text(WEATHER.replace("wether", "weather"))
    (locked / "tools" / "weather.py").write_text("print(1)\n")
    (locked / "shout.py").write_text('def shout(text: str) -> str:\n    """Says it loud."""\n    return text.upper()\n')
    for path in (*locked.rglob("*"), locked):
        path.chmod(0o555 if path.is_dir() else 0o444)
    chinese = work / "chinese"
    make_tool(chinese / "tools", "demo:ask", execution={"requireConfirmation": True})
    make_tool(chinese / "tools", "demo:other")  # a folder with one folder in it would be shown as one
    (chinese / "ask.tam").write_text(tam({"command": "demo:ask", "text": "a"}) + "\n")
    return {"virtual": str(virtual), "many": str(work / "many"), "locked": str(locked), "chinese": str(chinese)}


def tools_and_calls(work: Path) -> Path:
    """The folder of the first window."""
    folder = work / "agent tools"
    (folder / "tools").mkdir(parents=True)
    shutil.copytree(EXAMPLES / "text-statistics", folder / "tools" / "text-statistics")
    (folder / "tools" / "weather.tool.json").write_text(WEATHER)
    (folder / "tools" / "weather.py").write_text("print(1)\n")
    (folder / "calls.md").write_text(CALLS)
    (folder / "notes.txt").write_text(vcp("demo:echo", text="a") + "\n")
    (folder / "ask.tam").write_text(tam({"command": "demo:ask", "text": "a"}) + "\n")
    (folder / "sleep.vcp").write_text(vcp("demo:sleep", text="a") + "\n")
    (folder / "batch.tam").write_text(
        tam({"command": "demo:ask", "text": "first"}, {"command": "demo:ask", "text": "second"}) + "\n"
    )
    (folder / "fails.vcp").write_text(vcp("demo:fails", text="a") + "\n")
    (folder / "endless.vcp").write_text(vcp("demo:endless", text="a") + "\n")
    (folder / "questions.vcp").write_text(vcp("mcp:question", questions=json.dumps(QUESTIONS)) + "\n")
    (folder / "forms.vcp").write_text(vcp("mcp:question", questions=json.dumps(FORMS)) + "\n")
    (folder / "addresses.vcp").write_text(vcp("mcp:question", questions=json.dumps(ADDRESSES)) + "\n")
    (folder / "servers").mkdir()
    shutil.copy(MCP_SERVER, folder / "servers" / "server.py")
    (folder / "tools" / "question.tool.json").write_text(json.dumps(QUESTION_TOOL))
    make_tool(folder / "tools", "demo:fails", "def luck():\n    raise ValueError('out of luck')\n\nluck()\n")
    make_tool(folder / "tools", "demo:endless", "while True:\n    print('x' * 1000)\n")
    (folder / "empty.tool.json").write_text("")
    (folder / "closed.tool.json").write_text('{"toolId": "demo:closed"}\n')
    examples = [
        {"description": "Says a.", "input": {"text": "a"}, "expectedOutput": {"text": "a"}},
        {"description": "Says b.", "input": {"text": "a"}, "expectedOutput": {"text": "b"}},
    ]
    make_tool(folder / "tools", "demo:echo", examples=examples)
    make_tool(folder / "tools", "demo:ask", execution={"requireConfirmation": True})
    make_tool(folder / "tools", "demo:sleep", "import time\ntime.sleep(86400)\n")
    properties = {
        "text": {"type": "string", "description": "<b>What</b> is said."},
        "mode": {"enum": ["plain", "loud"]},
        "count": {"type": "integer", "default": 1},
        "key": {"type": "string", "x-secret": True},
    }
    make_tool(folder / "tools", "demo:form", properties=properties, required=["text"])
    make_tool(folder / "left out", "demo:excluded")
    (folder / "left out" / "by_task.tool.json").write_text('{"toolId": "demo:bytask"}\n')
    (folder / "tamis.toml").write_text(
        '[environments.default]\ncity = "Oslo"\n[environments.live]\ncity = "Rome"\n'
        '[mcpServers.test]\nfolder = "servers"\nscript = "server.py"\n'
    )
    (folder / "chain.md").write_text(CHAIN)
    return folder


def empty_folder(work: Path) -> Path:
    """A folder without a manifest."""
    empty = work / "empty"
    (empty / "tools").mkdir(parents=True)
    (empty / "package.json").write_text("{}\n")
    return empty


SETTINGS: dict[str, Any] = {
    "tamis.path": str(Path(sys.executable).with_name("tamis")),
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "files.autoSave": "off",
    "editor.minimap.enabled": False,
    "editor.hover.above": False,
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
    "tamis.exclude": ["left out/"],
    "tamis.environment": "live",
    "tamis.trace.server": "messages",
    "tamis.logLevel": "debug",
    # Other extensions look for tasks and repositories of their own.
    "editor.cursorBlinking": "solid",
    "git.enabled": False,
    "npm.autoDetect": "off",
    "typescript.tsc.autoDetect": "off",
}

PLACES = {
    "hoverKeyAt": [7, 8],
    "completeAt": [15, 25],
    "hoverAt": [4, 8],
    "fixAt": [4, 8],
    "pictureAt": [5, 8],
    "typeAt": [9, 20],
}
"""Lines and columns of the first folder's texts."""
