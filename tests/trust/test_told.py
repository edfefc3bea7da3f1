"""What a fresh user reads of trust: files that changed, remedies that can be followed, values as TOML, no push to trust a stranger."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from tamis.server.runtime.doctor import examine
from tamis.server.runtime.policy.secrets import secret_fault
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.config import McpServer, Policy, Secret, toml_value
from tamis.server.runtime.settings.loading import load_settings
from tests.cli.in_process import Tamis
from tests.sample_tools import make_tool
from tests.trust.conftest import World
from tests.trust.support import accept

NAMES_A_FILE = '[sandbox.interpreters]\npython = "python.sh"\n'


@pytest.fixture
def tamis(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    return Tamis(world.root, monkeypatch, capsys)


def test_a_named_file_that_changed_is_named(tamis: Tamis, world: World) -> None:
    world.folder(NAMES_A_FILE)
    program = world.root / "python.sh"
    program.write_text("#!/bin/sh\n")
    assert tamis("trust", "--yes").code == 0
    program.write_text("#!/bin/sh\nexit 1\n")
    assert f"  {program} has changed" in tamis("trust").out
    program.unlink()
    assert f"  {program} is not there" in tamis("trust").out


@pytest.mark.slow
@pytest.mark.parametrize("words", [["list"], ["call", "t:echo", "--dry-run"]])
def test_a_folder_that_changed_since_it_was_trusted_is_told_so(tamis: Tamis, world: World, words: list[str]) -> None:
    make_tool(world.root, "t:echo")
    world.folder('[policy]\nallowHosts = ["a.test"]\n')
    assert "since you trusted it" not in tamis(*words).err
    assert tamis("trust", "--yes").code == 0
    world.folder('[policy]\nallowHosts = ["b.test"]\n')
    assert "it has changed since you trusted it" in tamis(*words).err


@pytest.mark.parametrize("granted", [{}, {"other:now": ("THIRD",)}])
def test_the_remedy_for_secrets_is_one_line_with_all_names(granted: dict[str, tuple[str, ...]]) -> None:
    secrets = {name: Secret(env=name) for name in ("KEY", "TOKEN")}
    policy = Policy(secrets=granted)
    faults = [secret_fault(name, "other:now", "1.0.0", secrets, policy, ("KEY", "TOKEN")) for name in ("KEY", "TOKEN")]
    remedies = {fault.remedy for fault in faults if fault is not None}
    assert len(remedies) == 1
    (remedy,) = remedies
    line = remedy[remedy.index('"') : remedy.index("]") + 1]
    assert set(tomllib.loads(line)["other:now"]) == {"KEY", "TOKEN", *granted.get("other:now", ())}


@pytest.mark.slow
def test_doctor_says_once_what_is_not_in_force_and_pushes_nobody(tamis: Tamis, world: World) -> None:
    world.folder('[policy]\nallowHosts = ["a.test"]\nreadRoots = ["/srv"]\n[sandbox.interpreters]\npython = "/tmp/x"\n')
    checks = [check for check in tamis("doctor", "--json").json()["checks"] if check["name"] == "trust"]
    assert len(checks) == 1
    assert all(name in checks[0]["text"] for name in ("policy.allowHosts", "policy.readRoots", "interpreters.python"))
    assert checks[0]["remedy"].startswith("nothing to do, unless the folder is yours")


@pytest.mark.slow
def test_doctor_names_a_secret_once(tamis: Tamis, world: World) -> None:
    world.write(world.user, '[secrets]\nFILE_KEY = { env = "NOT_THERE" }\n')
    checks = tamis("doctor", "--json").json()["checks"]
    (secret,) = [check for check in checks if check["name"] == "secret FILE_KEY"]
    assert "FILE_KEY" not in secret["text"]


def test_values_are_shown_as_toml_and_only_what_is_set(tamis: Tamis, world: World) -> None:
    world.folder(
        '[policy]\nreadRoots = ["/root", "/srv"]\n[secrets]\nKEY = { env = "HOME" }\n'
        '[mcpServers.files]\nfolder = "s"\nscript = "server.py"\n'
    )
    told = {one.setting: one.sentence for one in load_settings(world.root).not_in_force}
    assert """'policy.readRoots' = ["/root", "/srv"];""" in told["policy.readRoots"]
    assert """'secrets' = { KEY = { env = "HOME" } };""" in told["secrets"]
    done = tamis("trust")
    assert 'secrets = { KEY = { env = "HOME" } }\n' in done.out
    assert 'mcpServers = { files = { script = "server.py", folder = "s" } }\n' in done.out


@pytest.mark.parametrize(
    "value",
    [("a", 'b"\\\n'), {"a b": True, "c": 1}, {"x": {"y": [1.5, "\x1b\x7f\u0085"]}}, {}, [], "ü"],
)
def test_shown_values_are_toml(value: object) -> None:
    shown = toml_value(value)
    assert shown.isascii()
    assert shown.isprintable()
    read = tomllib.loads(f"v = {shown}")["v"]
    assert read == (list(value) if isinstance(value, tuple) else value)


def test_of_a_known_table_only_what_is_set_is_shown() -> None:
    assert toml_value({"s": McpServer(script="x.py")}) == '{ s = { script = "x.py" } }'


@pytest.mark.parametrize("path", ["bin/python", "./bin/python"])
def test_a_program_is_relative_to_the_folder_of_the_file_that_names_it(world: World, path: str) -> None:
    world.folder(f'[sandbox.interpreters]\npython = "{path}"\n')
    trusted = load_settings(world.root, trusted=True).settings.sandbox.interpreters
    assert trusted.python == str(world.root / "bin/python")
    world.folder("")
    world.write(world.user, f'[sandbox.interpreters]\nnodejs = "{path}"\nbun = "~/bun"\n')
    own = load_settings(world.root).settings.sandbox.interpreters
    assert (own.nodejs, own.bun, own.uv) == (str(world.user.parent / "bin/python"), "~/bun", "")


def test_schema_prints_nothing_where_an_id_is_unknown(tamis: Tamis, world: World) -> None:
    make_tool(world.root, "t:echo")
    for ids in (["nope:x"], ["t:echo", "nope:x"]):
        done = tamis("schema", "--action", *ids)
        assert (done.code, done.out) == (1, "")
        assert "no tool 'nope:x'" in done.err


def _given_away(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, 4242, 4242)
    else:
        path.chmod(0o666)


def test_check_finds_a_settings_file_that_is_never_in_force(tamis: Tamis, world: World) -> None:
    make_tool(world.root, "t:echo")
    world.folder("[sandbox]\nwallMs = 500\n")
    _given_away(world.root / "tamis.toml")
    done = tamis("check")
    assert done.code == 1
    assert "ST804" in done.out
    assert "no tool is run until it is mended" in done.out
    assert "1 error" in done.err


def test_a_folder_whose_file_is_never_in_force_counts_as_trusted_by_no_record(tamis: Tamis, world: World) -> None:
    assert tamis("trust", "--yes").code == 0
    assert tamis("trust", "--json").json()["trusted"] is True
    world.folder("")
    _given_away(world.root / "tamis.toml")
    assert tamis("trust", "--json").json()["trusted"] is False


def test_doctor_does_not_call_a_stranger_s_allowing_rule_ok(world: World) -> None:
    world.folder(
        '[[policy.rules]]\nverdict = "allow"\ntool = "x:*"\n[[policy.rules]]\nverdict = "deny"\ntool = "y:*"\n'
        '[policy.tools]\n"a:b" = "allow"\n'
    )
    checks = examine(Runtime(world.root))["checks"]
    rules = {one["text"]: one for one in checks if one["name"] == "policy"}
    because = "opens nothing, because the folder is not trusted"
    assert {text: one["state"] for text, one in rules.items()} == {
        f"rule 1 of policy.rules: allow x:*: {because}": "warning",
        "rule 2 of policy.rules: deny y:*": "ok",
        f"policy.tools: allow a:b: {because}": "warning",
    }
    assert all("`tamis trust` shows what it asks for" in one["remedy"] for one in rules.values() if "remedy" in one)
    set_by = [one["text"] for one in checks if one["name"] == "setting"]
    assert any(text.startswith("policy.rules: ") for text in set_by)
    assert not any(text.startswith("policy.tools: ") for text in set_by)
    accept(world)
    assert {one["state"] for one in examine(Runtime(world.root))["checks"] if one["name"] == "policy"} == {"ok"}


def test_doctor_says_that_a_final_policy_keeps_an_allowing_rule_idle(world: World) -> None:
    world.write(world.machine, "[policy]\nfinal = true\n")
    world.write(world.user, '[policy.tools]\n"a:b" = "allow"\n')
    (rule,) = [one for one in examine(Runtime(world.root))["checks"] if one["name"] == "policy"]
    assert (rule["state"], rule["text"].rpartition(": ")[2]) == (
        "warning",
        "opens nothing, because the machine's policy is final",
    )


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("tools = [\n", "config.toml:", "is no TOML"),
        ('\n[sandbox]\nwallMs = "long"\n', "config.toml:3:", "wallMs"),
    ],
    ids=["no TOML", "a wrong value"],
)
def test_a_fault_in_the_user_s_own_file_is_a_finding_and_a_failing_row(
    tamis: Tamis, world: World, text: str, place: str, said: str
) -> None:
    """The finding of a fresh user: `check` exited with 0, and `doctor` said "0 registered" and named the folder's file."""
    make_tool(world.root, "test:echo")
    world.write(world.user, text)
    checked = tamis("check", "--format", "text")
    assert checked.code == 1
    assert place in checked.out and ": error" in checked.out
    told = tamis("doctor")
    assert told.code == 1
    row = next(line for line in told.out.splitlines() if line.startswith("FAIL  configuration"))
    assert said in row
    assert f"{world.user}" in told.out.partition("FAIL  configuration")[2].splitlines()[1]
    assert "none is run, because the configuration has a fault" in told.out


def test_a_fault_of_the_folder_is_told_once(tamis: Tamis, world: World) -> None:
    world.folder("tools = [\n")
    assert "1 file checked, 1 error, 0 warnings" in tamis("check").err


def test_a_user_s_setting_that_bounds_nothing_costs_no_check(tamis: Tamis, world: World) -> None:
    world.write(world.user, "nonsense = 1\n")
    assert tamis("check").code == 0
