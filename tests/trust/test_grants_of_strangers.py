"""The operator's grants in a folder that nobody trusts are told or asked about (ruling 58): ids are what a manifest says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.server.runtime.policy.permissions import grant_of
from tamis.server.runtime.runtime import Runtime
from tests.cli.in_process import Tamis
from tests.daemon import answers_of
from tests.sample_tools import action, make_tool
from tests.trust.conftest import World
from tests.trust.support import RPC, in_a_terminal

GETS = "weather:anything gets secret FILE_KEY, read access to "
QUESTION = "Run with these?"
EXAMPLE = {"description": "Says hello.", "input": {"text": "hello"}, "expectedOutput": {"text": "hello"}}
WORDS = {
    "call": ["call", "weather:anything", "--args", '{"text": "hello"}'],
    "test": ["test"],
}


@pytest.fixture
def stranger(world: World, tmp_path: Path) -> World:
    """A folder whose tool says that it is one of those that the user grants a secret and a place."""
    key = tmp_path / "key"
    key.write_text("k3y-0f-the-user\n")
    key.chmod(0o600)
    data = tmp_path / "data"
    data.mkdir()
    world.write(
        world.user,
        f'[secrets]\nFILE_KEY = {{ file = "{key}" }}\n[policy]\nreadRoots = ["{data}"]\n'
        '[policy.secrets]\n"weather:*" = ["FILE_KEY"]\n',
    )
    make_tool(
        world.root,
        "weather:anything",
        examples=[EXAMPLE],
        securityContext={"secrets": ["FILE_KEY"], "fileAccess": {"allowRead": [f"{data}/**"]}},
    )
    (world.root / "talk.md").write_text(action("weather:anything", text="hello"))
    return world


@pytest.fixture
def tamis(stranger: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    return Tamis(stranger.root, monkeypatch, capsys)


@pytest.mark.parametrize("words", [*WORDS.values(), ["run", "--yes", "talk.md"]], ids=["call", "test", "run"])
def test_without_a_terminal_one_line_says_what_a_tool_gets(tamis: Tamis, words: list[str]) -> None:
    done = tamis(*words)
    assert (done.code, done.err.count("is not trusted")) == (0, 1), done.err
    assert GETS in done.err
    assert "k3y-0f" not in done.out + done.err


def test_nothing_is_said_where_the_folder_is_trusted(tamis: Tamis) -> None:
    assert tamis("trust", "--yes").code == 0
    assert GETS not in tamis(*WORDS["call"]).err
    (tamis.folder / "tamis.toml").write_text("[sandbox]\nwallMs = 20000\n")
    done = tamis(*WORDS["call"])
    assert "has changed since it was trusted" in done.err
    assert GETS in done.err
    assert GETS not in tamis(*WORDS["call"], "--trust").err


def test_nothing_is_said_of_the_operators_own_tools(stranger: World, tamis: Tamis, tmp_path: Path) -> None:
    elsewhere = tmp_path / "empty"
    elsewhere.mkdir()
    stranger.user.write_text(f'tools = ["{stranger.root}"]\n' + stranger.user.read_text())
    done = tamis(*WORDS["call"], cwd=elsewhere)
    assert (done.code, "not trusted" in done.err) == (0, False), done.err


@pytest.mark.parametrize("words", [*WORDS.values(), ["run", "talk.md"]], ids=["call", "test", "run"])
def test_a_terminal_asks_once_and_a_no_runs_without(stranger: World, words: list[str]) -> None:
    code, said = _talk(stranger, words, "n")
    assert (code, said.count(QUESTION)) == (0 if words == ["test"] else 3, 1), said
    assert GETS in said
    assert "run without what your configuration grants" in said
    assert "policy.secrets" not in said, "the configuration grants it; the person said no"
    if words[0] != "test":
        assert "not granted: secret FILE_KEY: this folder is not trusted, and the answer was to run without" in said


def test_a_yes_holds_for_the_command(stranger: World) -> None:
    code, said = _talk(stranger, WORDS["call"], "y")
    assert (code, said.count(QUESTION)) == (0, 1), said
    code, said = _talk(stranger, WORDS["call"], "")
    assert (code, said.count(QUESTION)) == (3, 1), said


def test_a_no_leaves_a_tool_that_can_do_without_its_places(stranger: World) -> None:
    data = stranger.root.parent / "data"
    make_tool(stranger.root, "weather:other", securityContext={"fileAccess": {"allowRead": [f"{data}/**"]}})
    code, said = _talk(stranger, ["call", "weather:other", "--json", "--args", '{"text": "hello"}'], "n")
    assert (code, said.count(QUESTION)) == (0, 1), said
    result = json.loads(said[said.index("{") :])
    assert result["permissions"]["granted"]["read"] == []
    (denied,) = result["permissions"]["denied"]
    assert "the answer was to run without" in denied["reason"], "no root of the policy is what is wrong"


def test_what_the_policy_refuses_itself_keeps_its_reason_after_a_no(stranger: World) -> None:
    data = stranger.root.parent / "data"
    asked = {"fileAccess": {"allowRead": [f"{data}/**", "/nowhere/**"]}}
    make_tool(stranger.root, "weather:other", securityContext=asked)
    _code, said = _talk(stranger, ["call", "weather:other", "--json", "--args", '{"text": "hello"}'], "n")
    reasons = {one["value"]: one["reason"] for one in json.loads(said[said.index("{") :])["permissions"]["denied"]}
    assert "the answer was" in reasons[f"{data}/**"] and "readRoots" in reasons["/nowhere/**"], reasons


@pytest.mark.parametrize("options", [{}, {"trusted": True}], ids=["missing", "trusted"])
def test_a_daemon_logs_it_once_unless_the_host_trusts(stranger: World, options: dict[str, bool]) -> None:
    start = {"rootUri": stranger.root.as_uri(), "capabilities": {}, "initializationOptions": options}
    call = {"toolId": "weather:anything", "args": {"text": "hello"}}
    requests = [("initialize", start), ("tool/execute", call), ("tool/execute", call)]
    answers, log = answers_of(
        [*RPC, "--root", str(stranger.root)],
        [
            {"jsonrpc": "2.0", "id": number, "method": name, "params": params}
            for number, (name, params) in enumerate(requests)
        ],
    )
    done = [answers[number]["result"]["status"] for number in (1, 2)]
    assert done == ["success", "success"]
    assert log.count(GETS) == (0 if options else 1), log


def test_a_yes_is_for_what_was_shown_alone(stranger: World) -> None:
    make_tool(stranger.root, "weather:other", securityContext={"secrets": ["FILE_KEY"]})
    runtime = Runtime(stranger.root)
    shown, other = (runtime.registry.get(name) for name in ("weather:anything", "weather:other"))
    assert shown is not None
    assert other is not None
    rights = {tool.tool_id: grant_of(tool, runtime.registry, runtime.settings, runtime.root) for tool in (shown, other)}
    runtime.gate.allowed = frozenset(runtime.gate.asked_of(shown, rights[shown.tool_id]))
    assert runtime.gate.lets(shown, rights[shown.tool_id])
    assert not runtime.gate.lets(other, rights[other.tool_id])


def _talk(world: World, words: list[str], answer: str) -> tuple[int, str]:
    return in_a_terminal(world, words, answer, waits_for=QUESTION)
