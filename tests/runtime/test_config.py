"""Settings: one spelling in file and overlay, wrong values said and harmless."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.files import find_root
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.profile import load_agent_rules
from tamis.server.runtime.settings.reading import level_of


def test_without_a_file_the_defaults_of_the_interface_hold(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path)
    assert msgspec.to_builtins(loaded.settings) == msgspec.to_builtins(
        Settings()
    )  # a dict: pytest names the member that differs
    assert loaded.settings.sandbox.wall_ms == 30_000
    assert loaded.settings.policy.allow_hosts == ()
    assert loaded.problems == ()


def test_the_file_is_read_with_camel_case_names(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text(
        'tools = ["a", "b"]\n[policy]\nallowHosts = ["example.com"]\n[sandbox]\nwallMs = 5\n[sandbox.interpreters]\npython = "/x"\n'
    )
    settings = load_settings(tmp_path).settings
    assert settings.tools == ("a", "b")
    assert settings.policy.allow_hosts == ("example.com",)
    assert settings.sandbox.wall_ms == 5
    assert settings.sandbox.interpreters.python == "/x"


def test_an_overlay_lies_over_the_file_table_by_table(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text("[sandbox]\nwallMs = 15\ncpuSeconds = 7\n")
    settings = load_settings(tmp_path, {"sandbox": {"wallMs": 9}}).settings
    assert (settings.sandbox.wall_ms, settings.sandbox.cpu_seconds) == (9, 7)


def test_null_in_an_overlay_leaves_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text("[sandbox]\nwallMs = 5\n")
    loaded = load_settings(tmp_path, {"sandbox": {"wallMs": None}, "policy": None, "tools": None})
    assert (loaded.settings.sandbox.wall_ms, loaded.problems, loaded.closed) == (5, (), "")


def test_a_wrong_value_costs_only_itself_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text(
        'tools = ["a"]\nonConflict = "keepfirst"\n[sandbox]\nwallMs = "x"\nmemoryBytes = -1\n'
    )
    loaded = load_settings(tmp_path)
    assert loaded.settings.tools == ("a",)
    assert loaded.settings.on_conflict == "keepFirst"
    assert loaded.settings.sandbox.wall_ms == 30_000
    assert loaded.settings.sandbox.memory_bytes == 268_435_456
    assert ["'onConflict'" in problem for problem in loaded.problems].count(True) == 1
    assert any("'sandbox.wallMs'" in problem for problem in loaded.problems)
    assert any("must not be negative" in problem for problem in loaded.problems)


def test_an_unknown_setting_is_said_with_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text("[policy]\nallow_hosts = []\n")
    assert load_settings(tmp_path).problems == (
        "tamis.toml:2:1: Unknown setting 'policy.allow_hosts', did you mean 'policy.allowHosts'?; no tool is run until it is mended",
    )


def test_an_unknown_setting_at_the_top_closes_nothing(tmp_path: Path) -> None:  # T20
    (tmp_path / "tamis.toml").write_text("frobnicate = 1\n")
    loaded = load_settings(tmp_path)
    assert [("frobnicate" in problem, level_of(problem.partition(": ")[2])) for problem in loaded.problems] == [
        (True, "warning")
    ]
    assert not loaded.closed


def test_a_policy_that_cannot_be_read_stays_closed(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text('[policy]\nallowHosts = "*"\nwriteRoots = [1]\n')
    policy = load_settings(tmp_path).settings.policy
    assert policy.allow_hosts == ()
    assert policy.write_roots == ()


def test_a_broken_file_is_said_and_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_bytes(b"tools = [\xff")
    loaded = load_settings(tmp_path)
    assert loaded.settings == Settings(tools=())
    assert len(loaded.problems) == 1
    assert loaded.closed


def test_the_root_is_the_nearest_folder_upwards_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "tamis.toml").write_text("")
    assert find_root(tmp_path / "a" / "b") == (tmp_path / "a").resolve()
    assert find_root(tmp_path) == tmp_path.resolve()


@pytest.mark.parametrize(
    "text",
    [
        '[policy]\nrequireConfirmation = "alwys"\n',
        '[policy]\nrequireConfirmation = "always"\nallowHosts = [\n',
        "[policy]\nalowHosts = []\n",
        "[sandbox]\nmemoryBytes = -5\n",
        "policy = 3\n",
        '[policies]\nrequireConfirmation = "always"\n',
        "tools = 3\n",
        'tols = ["tools"]\n',
        "[dependencies]\nx = 1\n",
    ],
)
def test_a_mistake_in_what_bounds_tools_closes_everything(tmp_path: Path, text: str) -> None:
    (tmp_path / "tamis.toml").write_text(text)
    closed = load_settings(tmp_path).closed
    assert "configuration has a fault" in closed
    if "is no TOML" not in closed:
        assert "a mistake in tools, profile, onConflict, [policy], [sandbox] or [dependencies]" in closed


def test_a_mistake_elsewhere_closes_nothing(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text('logLevel = "loud"\nnonsense = 1\n[audit]\nmaxByte = 1\n')
    loaded = load_settings(tmp_path)
    assert (loaded.closed, len(loaded.problems)) == ("", 3)
    assert '\'logLevel\' must be one of "debug", "info", "warning", "error", not \'loud\'' in loaded.problems[0]


@pytest.mark.parametrize("kind", ["folder", "loop", "dangling"])
def test_a_settings_file_that_is_no_file_closes_everything(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tamis.toml"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else tmp_path / "nowhere")
    assert load_settings(tmp_path).closed
    assert find_root(tmp_path / ".") == tmp_path.resolve()


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tamis.toml")
    loaded = load_settings(tmp_path)
    assert loaded.problems == (
        f"{tmp_path}/tamis.toml cannot be read: it is a FIFO, not a regular file; no tool is run until it is mended",
    )
    os.mkfifo(tmp_path / "agent_profile.json")
    assert (
        "it is not a regular file" in load_agent_rules(tmp_path, "agent_profile.json", load_settings(tmp_path)).problem
    )
