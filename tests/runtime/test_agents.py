"""Agent profiles, rates and resources: what bounds an agent's calls beyond the tool's own grant."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from tamis.protocols.contract import ExecuteTextResult
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.runtime import Runtime
from tests.runtime.profiles import ON, call, with_profile
from tests.sample_tools import make_tool, tam


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "test:echo")
    return tmp_path


def test_a_profile_that_is_on_and_lists_the_tool_lets_it_run(root: Path) -> None:  # V08, ruling 42
    profile = {"tool_ids_inventory": ["test:echo"], "toolCallConfig": ON}
    assert with_profile(root, profile).status == "success"


@pytest.mark.parametrize(
    ("profile", "cause"),
    [
        ({"tool_ids_inventory": ["test:echo"]}, "no toolCallConfig"),  # V17
        ({"toolCallConfig": {"enabled": False}}, "enabled"),  # V08
        ({"toolCallConfig": {}}, "enabled"),  # V08
        ({"toolCallConfig": ON | {"toolToggles": {"test:echo": False}}}, "switches 'test:echo' off"),  # V10
        ({"toolCallConfig": ON | {"defaultToolEnabled": False}}, "switches 'test:echo' off"),  # V11
        ("{", "cannot be used"),
        ({"toolCallConfig": 3}, "cannot be used"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_profile_that_does_not_allow_a_call_blocks_it(root: Path, profile: Any, cause: str) -> None:
    result = with_profile(root, profile)
    assert result.status == "blocked"
    assert result.error is not UNSET
    assert cause in result.error.message
    assert result.attempts == 0


def test_a_toggle_wins_over_the_default(root: Path) -> None:  # V10
    config = ON | {"defaultToolEnabled": False, "toolToggles": {"test:echo": True}}
    assert with_profile(root, {"toolCallConfig": config}).status == "success"


def test_a_tool_outside_the_inventory_does_not_exist_for_the_agent(root: Path) -> None:  # A23
    result = with_profile(root, {"tool_ids_inventory": ["kb:Query"], "toolCallConfig": ON})
    assert result.observation.startswith("Observation: Error - Unknown tool ID 'test:echo'")


def test_a_missing_profile_file_means_no_calls(root: Path) -> None:
    assert call(root, {"profile": "nowhere.json"})[0].status == "blocked"


@pytest.mark.parametrize("config", [{"mode": "manual"}, {"requireConfirmation": True}])
def test_a_profile_can_make_every_call_await_a_person(root: Path, config: dict[str, Any]) -> None:  # V09, V14
    assert with_profile(root, {"toolCallConfig": ON | config}).status == "approvalUnavailable"


def test_the_profiles_timeout_bounds_a_call(root: Path) -> None:  # V13
    make_tool(root, "test:echo", "import time\ntime.sleep(10**6)")
    result = with_profile(root, {"toolCallConfig": ON | {"timeout": 300}})
    assert (result.status, "300 ms" in result.observation) == ("timeout", True)


def test_a_tool_that_the_profile_switches_off_is_listed_as_not_callable(root: Path) -> None:
    (root / "agent_profile.json").write_text(json.dumps({"toolCallConfig": {"enabled": False}}))
    listed = Runtime(root, {"profile": "agent_profile.json"}).list_tools()
    assert [tool.callable for tool in listed.tools] == [False]


def test_calls_over_the_rate_are_refused_and_say_when(root: Path) -> None:  # D84
    results = call(root, {"policy": {"callsPerMinute": 2}}, times=3)
    assert [result.status for result in results] == ["success", "success", "error"]
    assert results[2].error is not UNSET
    assert results[2].error.type == "RateLimited"
    assert "try again in" in results[2].error.message


def run_text(root: Path, text: str, resources: dict[str, str]) -> ExecuteTextResult:
    runtime = Runtime(root, {"resources": resources})
    return asyncio.run(execute_text(runtime.read(text), runtime.call_context(), TextOptions()))


def test_a_parameter_by_uri_gets_the_path_of_its_resource_which_can_be_read(root: Path) -> None:  # T17
    (root / "shared").mkdir()
    (root / "shared" / "in put.txt").write_text("hello")
    script = "import json, sys\nprint(json.dumps(open(json.load(sys.stdin)['image']).read()))"
    make_tool(root, "read", script, properties={"image": {"type": "string"}})
    text = tam({"command": "read", "uri_image": "fam://project/in%20put.txt"})
    result = run_text(root, text, {"project": "shared"}).results[0]
    assert (result.status, result.output) == ("success", "hello"), result


@pytest.mark.parametrize(
    ("uri", "cause"),
    [
        ("fam://project/../secret.txt", ".."),
        ("fam://project/%2e%2e/secret.txt", ".."),
        ("fam://project/link", "link"),
        ("fam://project/nowhere", "No such file"),
        ("fam://projct/a", "did you mean 'project'?"),
        ("file:///etc/passwd", "no fam://"),
    ],
)
def test_a_uri_that_leaves_its_folder_or_leads_nowhere_runs_nothing(root: Path, uri: str, cause: str) -> None:  # T18
    (root / "shared").mkdir()
    (root / "secret.txt").write_text("x")
    (root / "shared" / "link").symlink_to(root / "secret.txt")
    make_tool(root, "read", properties={"image": {"type": "string"}})
    result = run_text(root, tam({"command": "read", "uri_image": uri}), {"project": "shared"}).results[0]
    assert (result.status, result.attempts) == ("error", 0)
    assert result.error is not UNSET
    assert result.error.type == "SecurityError"
    assert cause in result.error.message
