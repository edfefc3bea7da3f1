"""Where settings come from, which of two counts, and what trust and a final policy change (ruling 58)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tamis.server.runtime.observe.trail import Caller
from tamis.server.runtime.policy.rules import ruling, told, verdicts
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.loading import StartedWith, load_settings, start_with
from tests.trust.conftest import World
from tests.trust.support import accept


def wall(world: World) -> int:
    return load_settings(world.root).settings.sandbox.wall_ms


def test_each_source_goes_over_the_weaker_ones_and_is_named(world: World, tmp_path: Path) -> None:
    assert wall(world) == 30_000
    world.write(world.machine, "[sandbox]\nwallMs = 1\ncpuSeconds = 1\n")
    assert wall(world) == 1
    world.write(world.user, "[sandbox]\nwallMs = 2\nmemoryBytes = 2\n")
    assert wall(world) == 2
    start_with(StartedWith(str(world.write(tmp_path / "given.toml", "[sandbox]\nwallMs = 3\n"))))
    assert wall(world) == 3
    loaded = load_settings(world.root, {"sandbox": {"wallMs": 4}})
    assert loaded.settings.sandbox.wall_ms == 4
    assert loaded.sources == {
        "sandbox.cpuSeconds": str(world.machine),
        "sandbox.memoryBytes": str(world.user),
        "sandbox.wallMs": "host settings",
    }


def test_a_relative_configuration_folder_is_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(world.root / "config" / "tamis" / "config.toml", "[sandbox]\nwallMs = 2\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", str(world.root / "nowhere"))
    monkeypatch.chdir(world.root)
    assert wall(world) == 30_000


GRANTS = (
    '[policy]\nallowHosts = ["evil.test"]\nreadRoots = ["/home"]\n[sandbox.interpreters]\npython = "/tmp/evil.sh"\n'
)


def test_what_a_stranger_s_folder_asks_for_is_not_in_force(world: World) -> None:  # trust 1, 4
    world.folder(GRANTS + '[audit]\npath = "/root/.bashrc"\n[engine]\ntype = "http"\nurl = "http://127.0.0.1:1/"\n')
    loaded = load_settings(world.root)
    assert loaded.settings == Settings()
    assert {one.setting for one in loaded.not_in_force} == {
        "policy.allowHosts",
        "policy.readRoots",
        "sandbox.interpreters.python",
        "audit.path",
        "engine.type",
        "engine.url",
    }
    assert (loaded.closed, loaded.problems, loaded.trusted_by) == ("", (), "")


def test_a_trusted_folder_counts_over_the_user_and_below_the_host(world: World) -> None:
    world.write(
        world.user, '[sandbox.interpreters]\npython = "/usr/bin/python3"\n[policy]\nallowHosts = ["own.test"]\n'
    )
    world.folder(GRANTS)
    accept(world)
    loaded = load_settings(world.root)
    assert (loaded.trusted_by, loaded.not_in_force) == ("record", ())
    assert loaded.settings.policy.allow_hosts == ("evil.test",)
    assert loaded.sources["sandbox.interpreters.python"] == str(world.root / "tamis.toml")
    over = load_settings(world.root, {"sandbox": {"interpreters": {"python": "/opt/python"}}})
    assert over.settings.sandbox.interpreters.python == "/opt/python"


@pytest.mark.parametrize("by", ["--trust", "TAMIS_TRUST", "host"])
def test_the_word_that_trusts_a_folder_is_told(world: World, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world.folder(GRANTS)
    if by == "--trust":
        start_with(StartedWith(trust=True))
    if by == "TAMIS_TRUST":
        monkeypatch.setenv("TAMIS_TRUST", "1")
    loaded = load_settings(world.root, trusted=True if by == "host" else None)
    assert loaded.trusted_by == by
    assert loaded.settings.policy.allow_hosts == ("evil.test",)
    assert load_settings(world.root, trusted=False).settings.policy.allow_hosts == ()


@pytest.mark.parametrize("value", ["", "0", "true", "yes"])
def test_the_variable_means_trust_only_as_1(world: World, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world.folder(GRANTS)
    monkeypatch.setenv("TAMIS_TRUST", value)
    assert load_settings(world.root).trusted_by == ""


def test_an_editor_s_workspace_settings_are_of_the_folder_s_side(world: World) -> None:
    given = {"sandbox": {"wallMs": 5, "interpreters": {"python": "/tmp/evil.sh"}}, "audit": {"path": "/root/.bashrc"}}
    loaded = load_settings(world.root, given, "editor settings", editor=True)
    assert loaded.settings.sandbox.wall_ms == 5
    assert loaded.settings.sandbox.interpreters.python == ""
    assert {one.where for one in loaded.not_in_force} == {"editor settings"}
    trusting = load_settings(world.root, given, "editor settings", editor=True, trusted=True)
    assert trusting.settings.sandbox.interpreters.python == "/tmp/evil.sh"


def test_the_record_does_not_speak_of_what_an_editor_sends(world: World) -> None:
    world.folder(GRANTS)
    accept(world)
    loaded = load_settings(
        world.root, {"sandbox": {"interpreters": {"python": "/other"}}}, "editor settings", editor=True
    )
    assert loaded.settings.sandbox.interpreters.python == "/tmp/evil.sh"
    assert [one.where for one in loaded.not_in_force] == ["editor settings"]


def test_a_folder_narrows_against_every_source(world: World) -> None:
    world.folder('[sandbox]\nwallMs = 5\n[policy]\nrequireConfirmation = "always"\ntools = { "x:*" = "deny" }\n')
    settings = {"sandbox": {"wallMs": 9}, "policy": {"requireConfirmation": "never", "tools": {"x:y": "allow"}}}
    loaded = load_settings(world.root, settings)
    assert loaded.settings.sandbox.wall_ms == 5
    assert loaded.settings.policy.require_confirmation == "always"
    decided = ruling(loaded.settings.policy, "x:y", "1.0.0", {}, Caller("cli"))
    assert decided is not None
    assert (decided.verdict, decided.where) == ("deny", "tamis.toml")


# Rules: the strictest of both verdicts holds


VERDICTS = [
    # the operator's, the folder's, what holds
    ('"t:a" = "deny"', '"t:a" = "ask"', "deny"),
    ('"t:a" = "deny"', '"t:*" = "allow"', "deny"),
    ('"t:a" = "ask"', '"t:a" = "allow"', "ask"),
    ('"t:a" = "ask"', '"t:a" = "deny"', "deny"),
    ('"t:a" = "allow"', '"t:*" = "ask"', "ask"),
    ('"t:a" = "allow"', '"other" = "deny"', "allow"),
    ("", '"t:a" = "allow"', None),
    ("", '"t:*" = "ask", "t:a" = "allow"', None),
    ("", '"t:*" = "deny"', "deny"),
]


@pytest.mark.parametrize(("operator", "folder", "holds"), VERDICTS)
@pytest.mark.parametrize("form", ["tools", "rules"])
def test_the_strictest_verdict_of_operator_and_folder_holds(
    world: World, operator: str, folder: str, holds: str | None, form: str
) -> None:
    world.write(world.user, _policy(operator, form))
    world.folder(_policy(folder, form))
    policy = load_settings(world.root).settings.policy
    decided = ruling(policy, "t:a", "1.0.0", {}, Caller("cli"))
    assert (decided.verdict if decided is not None else None) == holds
    assert (holds in verdicts(policy, "t:a", "1.0.0", Caller("cli"))) or holds is None


def _policy(entries: str, form: str) -> str:
    if form == "tools":
        return f"[policy]\ntools = {{ {entries} }}\n"
    # the last entry is the most exact one
    pairs = [entry.split(" = ") for entry in reversed(entries.split(", ")) if entry]
    return "".join(f"[[policy.rules]]\ntool = {tool}\nverdict = {verdict}\n" for tool, verdict in pairs)


def test_a_folder_s_ask_before_the_operators_deny_weakens_nothing(world: World) -> None:
    world.write(world.user, '[[policy.rules]]\ntool = "t:a"\nverdict = "deny"\nreason = "never"\n')
    world.folder('[[policy.rules]]\ntool = "*"\nverdict = "ask"\n')
    policy = load_settings(world.root).settings.policy
    decided = ruling(policy, "t:a", "1.0.0", {}, Caller("cli"))
    assert decided is not None
    assert decided.sentence == f"rule 1 of policy.rules in {world.user} denies it: never"
    assert [rule.words for rule in told(policy)] == [
        f"rule 1 of policy.rules in {world.user}: deny t:a (never)",
        "rule 1 of policy.rules in tamis.toml: ask *",
    ]


def test_a_folder_that_wants_questions_gets_them_although_the_user_allows(world: World) -> None:
    world.write(world.user, '[policy]\ntools = { "t:*" = "allow" }\n')
    world.folder('[policy]\nrequireConfirmation = "always"\n')
    decided = ruling(load_settings(world.root).settings.policy, "t:a", "1.0.0", {}, Caller("cli"))
    assert decided is not None
    assert (decided.verdict, decided.unless) == ("allow", "always")


@pytest.mark.parametrize(("wanted", "outcomes"), [("never", {"allow"}), ("always", {"allow", "ask"})])
def test_a_folder_that_wants_questions_makes_one_possible(world: World, wanted: str, outcomes: set[str]) -> None:
    world.write(world.user, '[policy]\ntools = { "t:*" = "allow" }\n')
    world.folder(f'[policy]\nrequireConfirmation = "{wanted}"\ntools = {{ "other" = "deny" }}\n')
    policy = load_settings(world.root).settings.policy
    assert verdicts(policy, "t:a", "1.0.0", Caller("cli")) == outcomes


# A final policy


def test_a_final_policy_is_widened_by_nobody(world: World, tmp_path: Path) -> None:
    world.write(
        world.machine,
        '[policy]\nfinal = true\nallowHosts = ["own.test", "two.test"]\ncallsPerMinute = 10\ntools = { "x:*" = "deny" }\n',
    )
    wide = '[policy]\nallowHosts = ["*"]\nreadRoots = ["/"]\ncallsPerMinute = 0\nallowBuild = true\nfinal = false\ntools = { "x:y" = "allow" }\n'
    world.write(world.user, wide)
    world.folder(wide)
    start_with(StartedWith(str(world.write(tmp_path / "given.toml", wide)), trust=True))
    policy = {"allowHosts": ["*"], "writeRoots": ["/"], "tools": {"x:y": "allow"}, "rules": [{"verdict": "allow"}]}
    loaded = load_settings(world.root, {"policy": policy}, trusted=True)
    own = loaded.settings.policy
    assert (own.allow_hosts, own.read_roots, own.write_roots) == (("own.test", "two.test"), (), ())
    assert (own.calls_per_minute, own.allow_build, own.final) == (10, False, True)
    decided = ruling(own, "x:y", "1.0.0", {}, Caller("cli"))
    assert decided is not None
    assert decided.verdict == "deny"
    assert any("the machine's policy is final" in one.sentence for one in loaded.not_in_force)


def test_a_final_policy_can_be_narrowed_by_everybody(world: World) -> None:
    world.write(world.machine, '[policy]\nfinal = true\nallowHosts = ["own.test", "two.test"]\n')
    world.write(world.user, '[policy]\nallowHosts = ["own.test"]\ntools = { "x:*" = "ask" }\n')
    loaded = load_settings(world.root)
    assert loaded.settings.policy.allow_hosts == ("own.test",)
    assert verdicts(loaded.settings.policy, "x:y", "1.0.0", Caller("cli")) == {"ask", None}
    assert loaded.not_in_force == ()


def test_final_acts_in_the_machines_file_alone(world: World) -> None:
    world.write(world.user, "[policy]\nfinal = true\n")
    loaded = load_settings(world.root, {"policy": {"allowHosts": ["a.test"]}})
    assert loaded.settings.policy.allow_hosts == ("a.test",)
    assert loaded.problems == (f"{world.user}: 'policy.final' acts in {world.machine} alone",)
    assert loaded.closed == ""


# Places


def test_places_of_a_folder_stay_inside_it(world: World, tmp_path: Path) -> None:
    (world.root / "tools").mkdir()
    (world.root / "away").symlink_to(tmp_path)
    world.folder(
        f'tools = ["tools", "../state", "away", "{tmp_path}", "missing"]\nworkflows = ["/etc"]\nprofile = "../profile.json"\n'
        '[resources]\nown = "tools"\nhome = "~"\nkeys = "../.ssh"\nlink = "away"\n'
    )
    loaded = load_settings(world.root)
    assert loaded.settings.tools == ("tools", "missing")
    assert loaded.settings.workflows == ()
    assert loaded.settings.profile == ""
    assert loaded.settings.resources == {"own": "tools", "home": "~"}
    assert {one.setting: one.asked for one in loaded.not_in_force} == {
        "tools": ("../state", "away", str(tmp_path)),
        "workflows": ("/etc",),
        "profile": "../profile.json",
        "resources": {"keys": "../.ssh", "link": "away"},
    }


# Mistakes


@pytest.mark.parametrize("which", ["machine", "user"])
@pytest.mark.parametrize("text", ["policy = 3\n", "[polices]\n", "tools = [\n", "[sandbox]\nwallMs = -1\n"])
def test_a_mistake_in_an_operators_file_closes(world: World, which: str, text: str) -> None:
    path = world.write(world.machine if which == "machine" else world.user, text)
    loaded = load_settings(world.root)
    assert "the configuration has a fault" in loaded.closed
    assert str(path) in loaded.closed


def test_a_given_file_that_went_away_says_nothing_and_an_unreadable_one_closes(world: World, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    start_with(StartedWith(str(tmp_path / "fifo.toml")))
    assert "it is a FIFO" in load_settings(world.root).closed


def test_an_untrusted_folder_s_wrong_value_still_closes_it(world: World) -> None:
    world.folder("[policy]\nallowHosts = 3\n")
    assert "'policy.allowHosts' must be a list of texts" in load_settings(world.root).closed


def test_the_machine_s_file_of_the_page_for_operators_is_a_ceiling(world: World) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operators.md").read_text("utf-8")
    example = page.partition("```toml\n# /etc/tamis/config.toml")[2].partition("```")[0]
    world.write(world.machine, f"#{example}")
    wider = '[policy]\nallowHosts = ["evil.test"]\ncallsPerMinute = 0\n[policy.secrets]\n"*" = ["*"]\n'
    world.write(world.user, f"{wider}[sandbox]\nwallMs = 30000\n")
    world.folder('[policy]\nrequireConfirmation = "never"\n')
    loaded = load_settings(world.root, trusted=True)
    assert loaded.problems == ()
    policy = loaded.settings.policy
    assert policy.allow_hosts == ("api.example.com", "*.internal.example.com")
    assert (policy.calls_per_minute, policy.require_confirmation) == (120, "writes")
    assert policy.secrets == {"weather:*": ("WEATHER_KEY",)}
    assert loaded.settings.sandbox.wall_ms == 30_000  # what is not of the policy a user may set, as the page says
    assert loaded.settings.secrets["WEATHER_KEY"].file == "/etc/tamis/keys/weather"
