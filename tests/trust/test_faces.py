"""A stranger's folder over the daemons: its operator settings act in no method, whatever the host says of trust (trust 1, 2, 4)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.rpc.methods import RpcServer
from tamis.server.runtime.settings.faults import disk_faults
from tests.daemon import answers_of
from tests.lsp.lsp_client import Client
from tests.sample_tools import make_tool
from tests.trust.conftest import World
from tests.trust.support import RPC

LSP = [*RPC[:-1], "lsp"]


@pytest.fixture
def evil(world: World) -> World:
    """A folder whose every program leaves a mark, and whose audit log is somebody else's file."""
    program = world.root / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {world.root}/marker\necho 3.11.7\n")
    program.chmod(0o755)
    make_tool(world.root, "t:echo")
    (world.state / "bashrc").write_text("own\n")
    lines = "".join(f'{name} = "{program}"\n' for name in ("python", "nodejs", "bun", "uv"))
    world.folder(
        f'[sandbox.interpreters]\n{lines}[audit]\npath = "{world.state}/bashrc"\n[policy]\nreadRoots = ["{world.state}"]\n'
    )
    return world


def is_untouched(world: World) -> bool:
    return not (world.root / "marker").exists() and (world.state / "bashrc").read_text() == "own\n"


def rpc(world: World, options: dict[str, Any], methods: list[tuple[str, Any]]) -> dict[Any, dict[str, Any]]:
    start = {"rootUri": world.root.as_uri(), "capabilities": {}, "initializationOptions": options}
    requests = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}]
    requests += [
        {"jsonrpc": "2.0", "id": number, "method": name, "params": params}
        for number, (name, params) in enumerate(methods, 1)
    ]
    return answers_of([*RPC, "--root", str(world.root)], requests)[0]


@pytest.mark.parametrize("options", [{}, {"trusted": False}], ids=["missing", "false"])
def test_no_method_of_the_daemon_lets_a_stranger_s_settings_act(evil: World, options: dict[str, Any]) -> None:
    call = {
        "toolId": "t:echo",
        "args": {"text": "x"},
        "text": "<ACTION><t:echo><text>x</text></t:echo></ACTION>",
        "path": "x",
    }
    names = sorted(set(RpcServer(None).declared) - {"rpc.discover"})
    answers = rpc(evil, options, [(name, call) for name in names])
    assert len(answers) == len(names) + 1
    assert is_untouched(evil)
    if options:
        errors = [
            answers[1 + names.index(name)].get("error", {}).get("code") for name in ("tool/execute", "tool/executeText")
        ]
        assert errors == [1901, 1901]


def test_a_host_s_settings_are_the_operators_and_its_trust_counts(evil: World) -> None:
    answers = rpc(evil, {"trusted": True, "settings": {"audit": {"enabled": False}}}, [("server/health", {})])
    assert answers[1]["result"]["audit"] == {"enabled": False}
    told = rpc(evil, {}, [("server/health", {})])[1]["result"]["problems"]
    assert any("not in force: 'audit.path'" in problem for problem in told)


@pytest.mark.parametrize("trusted", [None, False])
def test_the_editor_s_server_starts_nothing_of_a_stranger_s(evil: World, trusted: bool | None) -> None:
    options: dict[str, Any] = {"settings": {"sandbox": {"interpreters": {"python": str(evil.root / "evil.sh")}}}}
    if trusted is not None:
        options["trusted"] = trusted
    with Client(inside=True) as client:
        client.start(evil.root, options=options)
        uri = (evil.root / "tamis.toml").as_uri()
        client.open(uri, (evil.root / "tamis.toml").read_text(), "toml")
        client.answer(client.request("tool/list", {}))
        client.answer(client.request("server/health", {}))
    assert is_untouched(evil)


@pytest.mark.parametrize("face", ["rpc", "mcp"])
def test_a_daemon_tells_on_standard_error_what_is_wrong_and_not_in_force(world: World, face: str) -> None:
    world.folder('nonsense = 1\n[policy]\nallowHosts = ["a.com"]\n')
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    requests = [("initialize", hello), ("tools/list" if face == "mcp" else "tool/list", {})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(requests)
    ]
    words = [*RPC[:-1], face, "--root", str(world.root)]
    done = subprocess.run(words, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    told = done.stderr.splitlines()
    assert "tamis: warning: tamis.toml:1:1: Unknown setting 'nonsense'" in told
    assert "tamis: warning: not in force: policy.allowHosts of " + str(world.root / "tamis.toml") in "\n".join(told)
    assert len(told) == 2
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines())


def test_check_and_editors_say_at_its_place_what_is_not_in_force(evil: World) -> None:
    path = evil.root / "tamis.toml"
    text = path.read_text()
    found = diagnose(
        Snapshot(str(path), kind_of(str(path), ""), text, None, settings_faults=disk_faults(evil.root, text))
    )
    told = {text[slice(*one.span)]: one for one in found if one.code == "ST805"}
    assert told.keys() == {"python", "nodejs", "bun", "uv", "path", "readRoots"}
    assert {one.severity for one in told.values()} == {"information"}
    assert told["path"].message.startswith("Not in force: 'audit.path'")
    assert json.dumps(told["path"].message).isascii()


@pytest.mark.parametrize(("words", "variable", "word"), [(["--trust"], "", "--trust"), ([], "1", "TAMIS_TRUST")])
def test_daemons_say_at_their_start_that_every_folder_is_trusted(
    world: World, words: list[str], variable: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # ruling 58: told once on standard error, and by server/health
    world.folder('[policy]\nallowHosts = ["api.test"]\n')
    if variable:
        monkeypatch.setenv("TAMIS_TRUST", variable)
    notice = f"{word}: every folder is trusted here; server/health tells what that puts in force"
    health = [{"jsonrpc": "2.0", "id": 1, "method": "server/health"}]
    command = [*RPC, "--root", str(world.root), *words]
    ran = subprocess.run(command, input=json.dumps(health[0]) + "\n", capture_output=True, text=True, check=True)
    assert ran.stderr.count(notice) == 1
    assert f"{word} puts in force: policy.allowHosts" in json.loads(ran.stdout)["result"]["problems"]
    ran = subprocess.run([*LSP, *words], input="", capture_output=True, text=True, check=False)
    assert ran.stderr == f"tamis: {notice}\n"


def test_a_daemon_that_trusts_nobody_by_itself_says_nothing(world: World) -> None:
    for command in (RPC, LSP):
        ran = subprocess.run(command, input="", capture_output=True, text=True, check=False, cwd=world.root)
        assert ran.stderr == ""


def test_the_editor_is_told_too_that_every_folder_is_trusted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def logged() -> list[str]:
        with Client(inside=True) as client:
            client.start(world.root)
            client.answer(client.request("tool/list", {}))
            return [one["params"]["message"] for one in client.messages if one.get("method") == "window/logMessage"]

    assert logged() == []
    monkeypatch.setenv("TAMIS_TRUST", "1")
    assert [line.partition(";")[0] for line in logged()] == ["TAMIS_TRUST: every folder is trusted here"]
