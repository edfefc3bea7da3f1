"""``tamis import``: manifests from other formats with each loss said, and tools that work (ruling 32, D88, interop §2.4)."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.cli.in_process import Done, Tamis
from tests.protocols.openapi_document import pets

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = {
    "name": "SciCalc",
    "displayName": "科学计算器",
    "version": "1.1.0",
    "description": "Evaluates sums for the agent, with plain arithmetic only.",
    "pluginType": "synchronous",
    "entryPoint": {"type": "python", "command": "python calc.py"},
    "communication": {"protocol": "stdio", "timeout": 10000},
    "configSchema": {"KEY": "string"},
    "capabilities": {
        "invocationCommands": [
            {
                "commandIdentifier": "calc",
                "description": "计算。\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」SciCalc「末」,\nexpression:「始」(必需) 表达式「末」,\n"
                "digits:「始」(可选) 小数位数「末」\n<<<[END_TOOL_REQUEST]>>>",
                "example": "<<<[TOOL_REQUEST]>>>\ntool_name:「始」SciCalc「末」,\nexpression:「始」1+2「末」\n<<<[END_TOOL_REQUEST]>>>",
            }
        ]
    },
}
CALC = (
    "import sys, json\na, _, b = json.loads(sys.stdin.read())['expression'].partition('+')\n"
    "print(json.dumps({'status': 'success', 'result': int(a) + int(b)}))"
)


def losses(done: Done) -> set[tuple[str, str]]:
    report = done.json()
    told = [*report["losses"], *(loss for tool in report["tools"] for loss in tool["losses"])]
    assert all(set(loss) == {"code", "path", "message"} and loss["message"] for loss in told)
    return {(loss["code"], loss["path"]) for loss in told}


def put(tamis: Tamis, name: str, data: Any) -> str:
    path = tamis.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return name


def test_a_stdio_plugin_of_vcp_runs_as_it_is(tamis: Tamis) -> None:  # interop §2.4: the contract is identical
    put(tamis, "plugin/calc.py", CALC)
    file = put(tamis, "plugin/plugin-manifest.json", PLUGIN)
    told = tamis("import", "vcp", file, "--json")
    assert {code for code, _ in losses(told)} == {"inferred", "credentials"}
    parameters = told.json()["tools"][0]["manifest"]["parameters"]
    assert (list(parameters["properties"]), parameters["required"]) == (["expression", "digits"], ["expression"])
    made = tamis("import", "vcp", file, "--out", "plugin")
    assert made.code == 0
    assert "parameters inferred from its text" in made.err
    assert "[inferred]" in made.err
    # its key is a secret of the operator's now (ruling 60)
    assert (
        "no [secrets] of the operator's settings defines 'KEY'"
        in tamis("call", "SciCalc", "--args", '{"expression": "4+2"}').out
    )
    put(tamis, "key", "s3cret-key")
    put(tamis, "tamis.toml", '[secrets]\nKEY = { file = "key" }\n[policy.secrets]\n"*" = ["KEY"]\n')
    called = tamis("call", "SciCalc", "--args", '{"expression": "40+2"}')
    assert json.loads(called.out) == {"status": "success", "result": 42}
    assert "1 passed" in tamis("test").out  # its embedded example is one now


def test_a_plugin_whose_script_stands_elsewhere_says_where(tamis: Tamis) -> None:
    put(tamis, "plugin/calc.py", CALC)
    file = put(tamis, "plugin/plugin-manifest.json", PLUGIN)
    told = tamis("import", "vcp", file, "--out", "tools").err
    assert "until then the tool is not available (MF540) [script-elsewhere]" in told


SERVER = (Path(__file__).parent.parent / "runtime" / "mcp_server.py").read_text("utf-8")


def test_a_live_mcp_server_is_asked_for_its_tools_in_the_sandbox(tamis: Tamis) -> None:
    """mcp.md: `tamis import mcp --server NAME` lists a live server and writes its manifests, which work."""
    put(tamis, "tamis.toml", '[mcpServers.small]\nfolder = "servers"\nscript = "server.py"\n')
    (tamis.folder / "servers").mkdir()
    put(tamis, "servers/server.py", SERVER)
    done = tamis("import", "mcp", "--server", "small", "--out", "tools")
    assert done.code == 0, done.err
    names = sorted(path.name for path in (tamis.folder / "tools").iterdir())
    assert len(names) == 16 and "echo.tool.json" in names
    called = tamis("call", "custom:echo", "--args", '{"text": "tea"}')
    assert (called.code, called.out) == (0, "tea"), called.err
    assert "[mcpServers.small]" not in done.err


def test_a_live_server_has_no_more_rights_while_it_is_asked_than_its_calls(tamis: Tamis) -> None:
    put(tamis, "tamis.toml", '[mcpServers.small]\nscript = "server.py"\n')
    put(
        tamis,
        "server.py",
        "from pathlib import Path\nPath('planted').write_text('x')\nPath('/tmp/planted').write_text('x')\n" + SERVER,
    )
    done = tamis("import", "mcp", "--server", "small")
    assert done.code == 1 and "Read-only file system" in done.err, done.err
    assert not (tamis.folder / "planted").exists() and not Path("/tmp/planted").exists()


def test_a_server_that_policy_asks_about_is_not_started_where_nobody_can_be_asked(tamis: Tamis) -> None:
    put(tamis, "tamis.toml", '[mcpServers.small]\nscript = "server.py"\n[policy]\nrequireConfirmation = "always"\n')
    put(tamis, "server.py", SERVER)
    refused = tamis("import", "mcp", "--server", "small")
    assert refused.code == 1 and refused.out == ""
    assert tamis("import", "mcp", "--server", "small", "--yes").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--server", "smal"), "no MCP server 'smal' is configured, did you mean 'small'?"),
        ((), "`tamis import mcp --server NAME` asks a server of the settings"),
        (("--server", "small"), "exit code 2"),
    ],
)
def test_a_live_server_that_cannot_be_asked_is_said(tamis: Tamis, words: tuple[str, ...], message: str) -> None:
    put(tamis, "tamis.toml", '[mcpServers.small]\nscript = "server.py"\nargs = ["dies"]\n')
    put(tamis, "server.py", SERVER)
    done = tamis("import", "mcp", *words)
    assert done.code in (1, 2) and done.out == "" and message in done.err


def test_the_tools_of_an_mcp_server_get_a_handler_that_calls_them(tamis: Tamis) -> None:  # interop §2.2, reverse
    tools = [
        {
            "name": "get.weather",
            "description": "Gets the weather of a place.",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "del",
            "title": "Delete",
            "inputSchema": {"type": "object"},
            "annotations": {"destructiveHint": True},
            "icons": [],
        },
        {"title": "nameless"},
    ]
    file = put(tamis, "weather.json", {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, "nextCursor": "x"}})
    told = tamis("import", "mcp", file, "--json", "--namespace", "acme")
    assert told.code == 0
    first, second = (tool["manifest"] for tool in told.json()["tools"])
    assert first["handler"] == {"type": "mcp", "server": "weather", "tool": "get.weather"}
    assert (first["toolId"], second["displayName"]) == ("acme:get.weather", "Delete")
    assert second["execution"] == {"requireConfirmation": True}
    assert {"description-missing", "annotation-dropped", "annotation-mapped", "field-dropped", "tool-dropped"} <= {
        code for code, _ in losses(told)
    }
    put(tamis, "tamis.toml", '[mcpServers.w2]\nfolder = "."\nscript = "server.py"\n')
    assert "[mcpServers.weather]" in tamis("import", "mcp", file).err
    named = tamis("import", "mcp", file, "--server", "w2", "--out", "tools")
    assert "server-unset" not in named.err
    assert named.code == 0
    assert json.loads((tamis.folder / "tools" / "del.tool.json").read_text())["handler"]["server"] == "w2"
    assert "acme" not in tamis("list").out
    assert "custom:del" in tamis("list").out


@pytest.mark.parametrize(
    "shape",
    [
        lambda f: f,
        lambda f: {"type": "function", "function": f},
        lambda f: {"type": "function", "strict": True, **f},
        lambda f: [{"type": "function", "function": f}],
        lambda f: {"model": "m", "tools": [{"type": "function", **f}]},
        lambda f: {"functions": [f]},
    ],
)
def test_openai_functions_in_every_wrapping(tamis: Tamis, shape: Any) -> None:
    function = {
        "name": "search_web",
        "description": "Searches the web for a phrase.",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    }
    file = put(tamis, "f.json", shape(function))
    done = tamis("import", "openai", file, "--json")
    assert done.code == 0
    (tool,) = done.json()["tools"]
    assert tool["toolId"] == "custom:search_web"
    assert tool["manifest"]["parameters"]["properties"] == {"q": {"type": "string"}}
    assert "handler-missing" in {code for code, _ in losses(done)}


def test_python_functions_are_read_and_never_run(tamis: Tamis) -> None:  # D88
    source = (
        "open('ran', 'w').close()\n"
        "def add(a: int, b: int = 2) -> int:\n    '''Adds two numbers and gives their sum.\n\n    Args:\n        a: One.\n        b: Other.\n    '''\n"
        "    return a + b\n"
        "def 你好(名: str) -> str:\n    '''Says hello to somebody, in a friendly manner.'''\n    return '你好' + 名\n"
        "def _hidden(): ...\n"
    )
    file = put(tamis, "tools/f.py", source.partition("\n")[2])
    whole = put(tamis, "f.py", source)
    read = tamis("import", "python", whole, "--json")
    assert [tool["toolId"] for tool in read.json()["tools"]] == ["custom:add", "custom:你好"]
    assert not (tamis.folder / "ran").exists()
    assert tamis("import", "python", file, "--out", "tools").code == 0
    assert tamis("call", "custom:add", "--args", '{"a": 40}').out == "42\n"
    assert tamis("call", "custom:你好", "--args", '{"名": "李"}').out == "你好李"


class _Server(http.server.BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, str, dict[str, str], bytes]]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        if self.command == "DELETE":
            self.send_response(204 if self.headers.get("X-Key") == "s3cret" else 401)
            self.end_headers()
            return
        found = not self.path.startswith("/v1/pets/404")
        data = json.dumps({"id": 7, "name": "Rex", "tag": None}).encode() if found else b"no such pet"
        self.send_response(200 if found else 404)
        self.send_header("content-type", "application/json" if found else "text/plain")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def port() -> Iterator[int]:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    _Server.seen.clear()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_operations_of_an_openapi_document_are_tools_that_work(tamis: Tamis, port: int) -> None:  # D88
    put(
        tamis,
        "tamis.toml",
        '[policy]\nallowHosts = ["api.test:*"]\nallowCidrs = ["127.0.0.0/8"]\npin = { "api.test" = "127.0.0.1" }\n',
    )
    file = put(tamis, "pets.json", pets(f"http://api.test:{port}/v1"))
    made = tamis("import", "openapi", file, "--out", "tools")
    assert made.code == 0, made.err
    assert tamis("check", "--strict").code == 0
    got = tamis("call", "getPet", "--args", '{"petId": 7, "tags": ["a", "b c"], "where": {"x": 1}, "X-Trace": "t"}')
    assert json.loads(got.out) == {"id": 7, "name": "Rex", "tag": None}
    method, path, headers, _ = _Server.seen.pop()
    assert (method, path) == ("GET", "/v1/pets/7?tags=a&tags=b+c&where%5Bx%5D=1")
    assert headers["X-Trace"] == "t"
    assert tamis("call", "createPet", "--args", '{"body": {"name": "Mia", "kids": [{"name": "Bo"}]}}').code == 0
    assert json.loads(_Server.seen.pop()[3]) == {"name": "Mia", "kids": [{"name": "Bo"}]}
    missing = tamis("call", "getPet", "--args", '{"petId": 404}')
    assert missing.code == 1
    assert "404 Not Found: no such pet" in missing.out
    # keys are the operator's to give, never a model's (ruling 60)
    refused = tamis("call", "custom:delete-pets-petId", "--yes", "--args", '{"petId": 7}')
    assert "add PETS_KEY = " in refused.out
    put(tamis, "key", "s3cret\n")
    settings = (tamis.folder / "tamis.toml").read_text("utf-8")
    put(
        tamis, "tamis.toml", f'{settings}secrets = {{ "*" = ["PETS_KEY"] }}\n[secrets]\nPETS_KEY = {{ file = "key" }}\n'
    )
    deleted = tamis("call", "custom:delete-pets-petId", "--yes", "--args", '{"petId": 7}')
    assert (deleted.code, deleted.out) == (0, "null\n")
    assert _Server.seen.pop()[2]["X-Key"] == "s3cret"


def test_a_service_that_is_down_was_not_refused_by_the_sandbox(tamis: Tamis) -> None:
    with socket.socket() as held:  # bound and not listened on: nobody answers, and nobody else can take it
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        policy = 'allowHosts = ["api.test:*"]\nallowCidrs = ["127.0.0.0/8"]\npin = { "api.test" = "127.0.0.1" }\n'
        put(tamis, "tamis.toml", f"[policy]\n{policy}")
        tamis("import", "openapi", put(tamis, "pets.json", pets(f"http://api.test:{port}/v1")), "--out", "tools")
        down = tamis("call", "getPet", "--args", '{"petId": 7}').out
        assert "was not answered: Not reached: " in down and "Refused by the sandbox" not in down
        assert down.count("does not accept a connection") == 1
        put(tamis, "tamis.toml", f"[policy]\n{policy.replace('127.0.0.0/8', '10.0.0.0/8')}")
        refused = tamis("call", "getPet", "--args", '{"petId": 7}').out
        assert "was not answered: Refused by the sandbox: " in refused


def test_openapi_paths_and_headers_may_be_of_every_script(tamis: Tamis, port: int) -> None:
    put(
        tamis,
        "tamis.toml",
        '[policy]\nallowHosts = ["api.test:*"]\nallowCidrs = ["127.0.0.0/8"]\npin = { "api.test" = "127.0.0.1" }\n',
    )
    header = {"name": "X-Note", "in": "header", "schema": {"type": "string"}}
    operation = {"operationId": "寻找", "parameters": [header], "responses": {"200": {"description": "d"}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "宠物", "version": "1"},
        "servers": [{"url": f"http://api.test:{port}"}],
        "paths": {"/寻找": {"get": operation}},
    }
    assert tamis("import", "openapi", put(tamis, "pets.json", document), "--out", "tools").code == 0
    tamis("call", "custom:寻找", "--args", '{"X-Note": "猫"}')
    method, path, headers, _ = _Server.seen.pop()
    assert (method, path) == ("GET", "/%E5%AF%BB%E6%89%BE")
    assert headers["X-Note"].encode("latin-1").decode() == "猫"
    refused = tamis("call", "custom:寻找", "--args", '{"X-Note": "a\\r\\nX-Evil: 1"}')
    assert "the header X-Note cannot be sent" in refused.out and "Traceback" not in refused.out
    assert not _Server.seen


def test_nothing_is_overwritten_and_nothing_half_written(tamis: Tamis) -> None:
    file = put(tamis, "pets.json", pets())
    put(tamis, "tools/getPet.tool.json", "{}")
    done = tamis("import", "openapi", file, "--out", "tools")
    assert (done.code, done.out) == (1, "")
    assert [path.name for path in (tamis.folder / "tools").iterdir()] == ["getPet.tool.json"]
    assert tamis("import", "openapi", file, "--out", "tools", "--force").code == 0
    assert tamis("import", "openapi", file, "--force").code == 2


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("openapi", "openapi: 3.1.0\npaths: {}\n", "YAML"),
        ("openapi", '{"swagger": "2.0", "paths": {"/": {}}}', "Swagger 2.0"),
        ("openapi", '{"openapi": "3.1.0"}', "no paths"),
        ("openapi", '{"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}', "--base-url"),
        ("vcp", "[]", "no object"),
        ("vcp", '{"name": "x"}', "invocationCommands"),
        ("mcp", '{"tools": 3}', "tools/list"),
        ("openai", '{"a": 1}', "no function definition"),
        ("openai", '{"openapi": "3.0.0"}', "no function definition"),
        ("python", "def f(:", "no sound Python"),
        ("python", "x = 1", "no public function"),
        ("openai", '{"name": "x", ', "no sound JSON"),
        ("mcp", "", "empty"),
    ],
)
def test_what_holds_no_tools_says_why(tamis: Tamis, kind: str, text: str, words: str) -> None:
    file = put(tamis, "file.txt", text)
    done = tamis("import", kind, file)
    assert (done.code, done.out) == (1, "")
    assert words in done.err


def test_real_plugins_can_be_counted(tmp_path: Path) -> None:  # F1, F4: the measure of the import works itself
    wrong = json.loads(json.dumps(PLUGIN))
    wrong["capabilities"]["invocationCommands"].append(
        {
            "commandIdentifier": "b",
            "example": "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Other「末」\n<<<[END_TOOL_REQUEST]>>>",
        }
    )
    none = {**PLUGIN, "capabilities": {"invocationCommands": [{"commandIdentifier": "c"}]}}
    for name, data in {"right": PLUGIN, "again": PLUGIN, "wrong": wrong, "none": none}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "plugin-manifest.json").write_text(json.dumps(data), encoding="utf-8")
    command = [sys.executable, "tools/vcp_imports", "--show", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    counts = {
        what.strip(): int(number)
        for number, _, what in (line.strip().partition(" ") for line in done.stdout.splitlines())
        if number.isdigit()
    }
    assert counts == {"with documented calls": 2, "without documented calls": 1, "documented calls": 5, "clean": 1}
    assert "unknown-tool Other" in done.stdout


def test_wrong_usage(tamis: Tamis) -> None:
    assert tamis("import", "xml", "file").code == 2
    assert tamis("import", "mcp", "nowhere.json").code == 2
    assert tamis("import", "mcp").code == 2


def test_without_out_the_manifests_are_printed(tamis: Tamis) -> None:
    file = put(tamis, "pets.json", pets())
    assert isinstance(tamis("import", "openapi", file).json(), list)
    one = put(tamis, "f.json", {"name": "x", "description": "Does x for the test.", "parameters": {"type": "object"}})
    assert tamis("import", "openai", one).json()["toolId"] == "custom:x"
    assert list(tamis.folder.glob("*.tool.json")) == []


BROKEN = '[\n {"type": "function", "function": {"name": "a"}}\n {"x": 1}]\n'
NAMELESS = '\ufeff[{"name": "a", "parameters": {"type":\n  "objekt"}},\n {"name": "", "parameters": {}}]\n'
PLUG_IN = '{"name": "p",\n "pluginType": 3'


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("openai", BROKEN, "given.json: line 3, column 2: it is no sound JSON"),
        ("openapi", BROKEN, "given.json: line 3, column 2: it is no sound JSON"),
        ("vcp", PLUG_IN, "given.json: line 2, column 16: it is no sound JSON"),
        ("openai", NAMELESS, "given.json:3:2: /1: left out: it has no name"),
        ("openai", NAMELESS, "given.json:2:3: custom:a /0/parameters/type: the type 'objekt' is none"),
        ("mcp", '{"tools": [\n  {"name": 5}]}', "given.json:2:3: /tools/0: left out: it has no name"),
        (
            "openapi",
            '{"openapi": "3.0.0",\n "paths": {"/a": {"get": {}}}}',
            "given.json:2:26: /paths/~1a/get: left out",
        ),
    ],
)
def test_what_is_wrong_in_an_imported_file_is_told_with_its_line(tamis: Tamis, kind: str, text: str, said: str) -> None:
    """The finding of a fresh user: the errors of an import named no line."""
    (tamis.folder / "given.json").write_text(text, "utf-8")
    assert said in tamis("import", kind, "given.json").err
