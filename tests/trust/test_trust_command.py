"""``tamis trust``: what it shows, asks and records, driven as a command and in a real terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.server.cli.main import main
from tamis.server.runtime.settings.trust import trusted_folders
from tests.cli.in_process import Tamis
from tests.sample_tools import action, make_tool
from tests.trust.conftest import World
from tests.trust.support import accept, in_a_terminal

ASKS = '[policy]\nallowHosts = ["a.test"]\n[sandbox.interpreters]\npython = "/tmp/evil.sh"\n'


@pytest.fixture
def tamis(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    world.folder(ASKS)
    return Tamis(world.root, monkeypatch, capsys)


def test_it_shows_in_plain_words_and_without_a_terminal_trusts_nothing(tamis: Tamis) -> None:
    done = tamis("trust")
    assert done.code == 3
    assert '  lets tools reach these hosts: policy.allowHosts = ["a.test"]' in done.out
    assert '  runs tools by this program: sandbox.interpreters.python = "/tmp/evil.sh"' in done.out
    assert "there is no terminal to ask on; --yes trusts without asking" in done.err
    assert tamis("trust", "--list").out == "no folder is trusted\n"


def test_yes_records_it_and_a_changed_file_shows_the_difference(tamis: Tamis) -> None:
    assert tamis("trust", "--yes").code == 0
    assert "is trusted as it is" in tamis("trust").out
    assert tamis("trust", "--json").json()["trusted"] is True
    assert tamis("trust", "--list", "--json").json()["folders"][0]["changed"] is False
    (tamis.folder / "tamis.toml").write_text(ASKS.replace("a.test", "b.test") + "# \x1b[2J\n".replace("\x1b", "\u009b"))
    done = tamis("trust")
    assert done.code == 3
    assert '  -allowHosts = ["a.test"]' in done.out
    assert '  +allowHosts = ["b.test"]' in done.out
    assert "\u009b" not in done.out
    assert "changed since" in tamis("trust", "--list").out
    assert tamis("trust", "--revoke").code == 0
    assert tamis("trust", "--revoke").code == 3


def test_a_folder_that_asks_for_nothing_needs_no_trust(tamis: Tamis) -> None:
    (tamis.folder / "tamis.toml").write_text("[sandbox]\nwallMs = 5\n")
    done = tamis("trust")
    assert (done.code, "asks for nothing that needs your trust" in done.out) == (0, True)


def test_a_damaged_record_is_one_sentence(tamis: Tamis, world: World) -> None:
    (world.state / "trust.json").write_text("{")
    done = tamis("trust", "--list")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "is damaged" in done.err


@pytest.mark.parametrize("words", [["list"], ["prompt"], ["check"], ["call", "t:echo", "--dry-run"], ["doctor"]])
def test_a_stranger_s_program_is_started_by_no_command(tamis: Tamis, words: list[str]) -> None:  # trust 1, 2
    marker = tamis.folder / "marker"
    evil = tamis.folder / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\necho 3.11.7\n")
    evil.chmod(0o755)
    make_tool(tamis.folder, "t:echo")
    (tamis.folder / "tamis.toml").write_text(
        "".join(
            f'[sandbox.interpreters]\n{name} = "{evil}"\n' if name == "python" else f'{name} = "{evil}"\n'
            for name in ("python", "nodejs", "bun", "uv")
        )
    )
    done = tamis(*words)
    assert not marker.exists()
    assert "not in force" in done.err + done.out


def test_the_flag_and_the_variable_are_told(tamis: Tamis, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--trust puts in force: policy.allowHosts, sandbox.interpreters.python" in tamis("list", "--trust").err
    assert "not in force" in tamis("list").err
    monkeypatch.setenv("TAMIS_TRUST", "1")
    assert "TAMIS_TRUST puts in force" in tamis("list").err


def test_a_given_file_is_the_operators_word(tamis: Tamis, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[policy]\nallowHosts = ["own.test"]\n')
    done = tamis("doctor", "--config", tmp_path / "own.toml")
    assert f"policy.allowHosts: {tmp_path / 'own.toml'}" in done.out
    assert tamis("list", "--config", tmp_path / "missing.toml").code == 2


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 3), ("n", 3), ("yess", 3)])
def test_it_asks_in_a_terminal(world: World, answer: str, code: int) -> None:
    world.folder(ASKS)
    ended, said = in_a_terminal(world, ["trust"], answer)
    assert ended == code, said
    assert "lets tools reach these hosts" in said
    assert (world.state / "trust.json").exists() == (answer == "y")


def test_a_call_asks_once_in_a_terminal_and_then_no_more(world: World) -> None:
    world.folder('[policy]\nallowHosts = ["a.test"]\n')
    make_tool(world.root, "t:echo")
    words = ["call", "t:echo", "--args", '{"text": "hello"}', "--dry-run"]
    _, said = in_a_terminal(world, words, "y")
    assert said.count("Trust it as it is now?") == 1
    _, said = in_a_terminal(world, words, "y")
    assert "Trust it" not in said


EXAMPLE = {"description": "Says hello.", "input": {"text": "hello"}, "expectedOutput": {"text": "hello"}}
ASKING = {
    "call": ["call", "t:echo", "--yes", "--args", '{"text": "hello"}'],
    "run": ["run", "--yes", "talk.md"],
    "test": ["test", "--yes"],
}
"""The commands that ask, and run a tool that needs no grant."""


@pytest.fixture
def talk(world: World) -> World:
    world.folder('[policy]\nallowHosts = ["a.test"]\n')
    make_tool(world.root, "t:echo", examples=[EXAMPLE])
    (world.root / "talk.md").write_text(action("t:echo", text="hello"))
    return world


@pytest.mark.parametrize("name", ASKING)
def test_a_yes_is_recorded_and_asked_no_more(talk: World, name: str) -> None:
    code, said = in_a_terminal(talk, ASKING[name], "y")
    assert (code, said.count("Trust it as it is now?")) == (0, 1), said
    assert "lets tools reach these hosts: policy.allowHosts" in said
    assert "not in force" not in said
    assert (talk.state / "trust.json").exists()
    code, said = in_a_terminal(talk, ASKING[name], "n")
    assert (code, "Trust it" in said, "not in force" in said) == (0, False, False), said


@pytest.mark.parametrize("name", ASKING)
def test_a_no_goes_on_without_the_settings_and_says_so_once(talk: World, name: str) -> None:
    code, said = in_a_terminal(talk, ASKING[name], "")
    assert (code, said.count("Trust it as it is now?"), said.count("not in force")) == (0, 1, 1), said
    assert not (talk.state / "trust.json").exists()


def test_other_commands_ask_nothing(talk: World) -> None:
    names = ("list", "prompt", "check", "doctor", "deps")
    commands = [["parse", "talk.md"], ["export", "mcp"], *([name] for name in names)]
    code, said = in_a_terminal(talk, [json.dumps(words) for words in commands], "y", several=True)
    assert (code, "Trust it" in said) == (0, False), said
    assert not (talk.state / "trust.json").exists()


def test_examples_say_what_is_not_in_force_once_in_all(tamis: Tamis) -> None:
    make_tool(tamis.folder, "t:echo", examples=[EXAMPLE])
    done = tamis("test", "--yes")
    assert done.code == 0
    assert done.err.count("not in force") == 1
    assert "not in force: policy.allowHosts, sandbox.interpreters.python of" in done.err.replace(
        "sandbox.interpreters.python, policy.allowHosts", "policy.allowHosts, sandbox.interpreters.python"
    )


@pytest.mark.parametrize("words", [["trust"], ["trust", "--json"], ["trust", "--yes"]])
def test_a_file_that_is_never_in_force_is_said_and_is_no_success(tamis: Tamis, words: list[str]) -> None:
    (tamis.folder / "tamis.toml").chmod(0o666)
    done = tamis(*words)
    assert (done.code, "may be written by others" in done.err) == (1, True)
    if "--json" in words:
        told = done.json()
        assert (told["trusted"], told["asks"], len(told["problems"])) == (False, [], 1)


@pytest.mark.parametrize(
    ("text", "place", "cause"),
    [
        ("tools = []\nprofile = \n", "2:1", "This is no TOML: the value is missing"),
        ('[policy]\nallowHosts = "x"\n', "2:14", "'policy.allowHosts' must be a list of texts, not 'x'"),
        ('[policy]\nreadRoots = ["/srv"]\nfoo = 1\n', "3:1", "Unknown setting 'policy.foo'"),
    ],
)
def test_a_faulty_file_is_told_with_its_place_and_nothing_is_recorded(
    text: str, place: str, cause: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.folder(text)
    for words in (["trust"], ["trust", "--yes"]):
        assert main([*words, str(world.root)]) == 1
        told = capsys.readouterr()
        assert f"{world.root}/tamis.toml:{place}: {cause}" in told.err
        assert "not trusted, and nothing is recorded until what is told above is mended" in told.err
        assert ("policy.readRoots = " in told.out) is ("readRoots" in text)
    assert trusted_folders() == {}
    assert main(["trust", "--json", str(world.root)]) == 1
    assert json.loads(capsys.readouterr().out)["problems"][0].startswith(f"{world.root}/tamis.toml:{place}: {cause}")


def test_a_file_that_became_faulty_is_not_the_one_that_was_trusted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.folder('[policy]\nallowHosts = ["a.test"]\n')
    accept(world)
    world.folder("[policy\n")
    assert main(["trust", str(world.root)]) == 1
    assert "that you trusted it as it was before does not count for what it is now" in capsys.readouterr().err


def test_a_fault_that_bounds_nothing_is_told_and_the_rest_is_trusted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.folder('[lint]\nfoo = "off"\n[policy]\nallowHosts = ["a.test"]\n')
    assert main(["trust", "--yes", str(world.root)]) == 0
    told = capsys.readouterr().err
    assert f"{world.root}/tamis.toml:2:1: 'lint.foo' is no rule" in told and "is trusted;" in told


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("policy.readRoots", '[policy]\nreadRoots = ["/srv/data"]\n'),
        ("policy.allowHosts", '[policy]\nallowHosts = ["a.test"]\n'),
        ("policy.allowCidrs", '[policy]\nallowCidrs = ["10.0.0.0/8"]\n'),
        ("policy.secrets", '[policy.secrets]\n"t:*" = ["KEY"]\n'),
        ("sandbox.interpreters.python", '[sandbox.interpreters]\npython = "/usr/bin/python3"\n'),
    ],
)
@pytest.mark.parametrize("more", ["", '[sandbox.interpreters]\nbun = "/usr/bin/bun"\n'])
def test_what_the_users_settings_grant_already_is_shown_before_the_record_holds_it(
    tamis: Tamis, world: World, setting: str, text: str, more: str
) -> None:  # trust 2: the record outlives the grant
    more = more if "interpreters" not in text else ""
    world.folder(text + more)
    world.write(world.user, text)
    shown = tamis("trust", "--yes").out
    assert f": {setting}" in shown
    assert "the folder keeps it without them" in shown
    assert [one["setting"].startswith(setting) for one in tamis("trust", "--json").json()["grantedAlready"]] == [True]
    world.user.unlink()
    # what is in force now was shown then, and is shown again
    after = tamis("trust").out
    assert "is trusted as it is; it sets:" in after
    assert f": {setting}" in after


def test_a_part_that_the_user_grants_already_is_shown_too(tamis: Tamis, world: World) -> None:
    world.folder('[policy]\nreadRoots = ["/srv/a", "/srv/b"]\n')
    world.write(world.user, '[policy]\nreadRoots = ["/srv/a"]\n')
    shown = tamis("trust").out
    assert 'policy.readRoots = ["/srv/b"]\n' in shown
    assert 'policy.readRoots = ["/srv/a", "/srv/b"] (yours grant it now' in shown


def test_many_settings_that_are_not_in_force_are_one_short_line(tamis: Tamis, world: World) -> None:
    """The finding of a fresh user: the line named every setting on every command."""
    world.folder(
        'logLevel = "debug"\n[policy]\nreadRoots = ["/srv"]\nallowHosts = ["a.test"]\ncapabilities = ["gpu"]\n[audit]\npath = "/tmp/x"\n'
    )
    told = [line for line in tamis("list").err.splitlines() if "not in force" in line]
    assert told == ["tamis: not in force: logLevel, policy.readRoots and 3 more of tamis.toml; `tamis trust` shows all"]
    shown = tamis("trust").out
    assert all(name in shown for name in ("logLevel", "readRoots", "allowHosts", "capabilities", "audit.path"))
