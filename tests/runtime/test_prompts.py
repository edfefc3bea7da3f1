"""Which tools a prompt tells of, under which names, and how long it is kept (seed 001 §5 and §6, ruling 42)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import PromptResult
from tamis.protocols.plugins import find_protocol
from tamis.protocols.prompt.assemble import PromptTooLargeError
from tamis.server.runtime.execution.text import TextOptions, execute_text
from tamis.server.runtime.runtime import Runtime, ToolFilter
from tamis.server.runtime.store.collector import uncollected
from tamis.server.runtime.texts.exports import describe
from tamis.server.runtime.texts.grammars import grammar
from tamis.server.runtime.texts.prompts import PromptError, PromptRequest, Prompts, prompt_tool
from tamis.server.runtime.texts.token_counts import count_tokens
from tests.growth import calibration
from tests.sample_tools import make_tool

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def generate(root: Path, settings: dict[str, Any] | None = None, **wish: Any) -> PromptResult:
    return Prompts().generate(
        Runtime(root, settings), PromptRequest(**{"protocol": "vcp", "instructions": False} | wish)
    )


def told(result: PromptResult) -> list[str]:
    """The ids of the tools that a prompt tells of."""
    return [*result.tokens.per_tool]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "test:echo", aliases=["test.echo", "test_echo"], tags=["text"])
    make_tool(tmp_path, "test:hidden", agentCallable=False)
    make_tool(tmp_path, "plain_name", protocolConfig={"vcpCommand": "PlainCommand"})
    make_tool(tmp_path, "workflow:greet")
    return tmp_path


def profile(root: Path, content: Any) -> dict[str, Any]:
    (root / "agent_profile.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return {"profile": "agent_profile.json"}


ON = {"enabled": True}


def test_without_a_profile_every_callable_tool_is_told_of(root: Path) -> None:  # ruling 42, V03
    result = generate(root)
    assert told(result) == ["plain_name", "test:echo", "workflow:greet"]
    assert result.text.count("<<<[TOOL_DEFINITION]>>>") == 3
    assert result.notes == []


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ({"tool_ids_inventory": ["test:echo"], "toolCallConfig": ON}, ["test:echo"]),  # A44, W01
        ({"toolCallConfig": ON | {"toolToggles": {"test:echo": False}}}, ["plain_name", "workflow:greet"]),  # V10
        ({"toolCallConfig": ON | {"defaultToolEnabled": False}}, []),  # V11
        ({"toolCallConfig": ON | {"defaultToolEnabled": False, "toolToggles": {"plain_name": True}}}, ["plain_name"]),
    ],
)
def test_with_a_profile_only_listed_and_switched_on_tools_are(
    root: Path, content: Any, wanted: list[str]
) -> None:  # V27
    assert told(generate(root, profile(root, content))) == wanted


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ({"toolCallConfig": {"enabled": False}}, "enabled of the agent profile is false"),  # V08, V31
        ({"tool_ids_inventory": ["test:echo"]}, "no toolCallConfig"),  # V17
        ("{", "cannot be used"),
    ],
)
def test_where_calls_are_off_the_text_is_empty_and_a_note_says_why(root: Path, content: Any, cause: str) -> None:
    settings = profile(root, content)
    result = generate(root, settings, instructions=True, few_shot=3)
    assert result.text == ""
    assert len(result.notes) == 1
    assert cause in result.notes[0]
    assert generate(root, settings, template="a {{tools}} b").text == "a  b"


def test_the_profile_says_the_protocol_where_the_request_does_not(root: Path) -> None:  # V16
    assert generate(root, protocol=None).protocol == "action"  # T19
    assert generate(root, {"protocol": {"default": "tam"}}, protocol=None).protocol == "tam"
    settings = profile(root, {"toolCallConfig": ON | {"protocol": "action"}}) | {"protocol": {"default": "tam"}}
    assert generate(root, settings, protocol=None).protocol == "action"
    silent = profile(root, {"toolCallConfig": ON}) | {"protocol": {"default": "tam"}}
    assert generate(root, silent, protocol=None).protocol == "tam"  # T19
    assert generate(root, settings, protocol="tam").protocol == "tam"


def test_a_tag_shows_the_portable_alias_and_vcp_the_mapped_command(root: Path) -> None:  # A15, A16, V18
    action = generate(root, protocol="action").text
    assert "`<test.echo>`" in action
    assert "`<plain_name>`" in action
    assert "`<workflow:greet>`" in action
    vcp = generate(root).text
    assert "tool_name:「始」PlainCommand「末」" in vcp
    assert "tool_name:「始」test:echo「末」" in vcp
    assert "`<tool_id>test:echo</tool_id>`" in generate(root, protocol="action", shape="inputs").text


def test_an_alias_that_belongs_to_another_tool_is_not_shown(tmp_path: Path) -> None:
    make_tool(tmp_path, "a:one", aliases=["same"])
    make_tool(tmp_path, "b:two", aliases=["same"])
    shown = generate(tmp_path, protocol="action").text
    assert "`<same>`" in shown
    assert "`<b:two>`" in shown


@pytest.mark.parametrize(
    ("protocol", "shape"), [("action", "tag"), ("action", "inputs"), ("tam", "tag"), ("vcp", "tag")]
)
def test_every_name_that_is_shown_reaches_its_tool(protocol: str, shape: str) -> None:
    runtime = Runtime(EXAMPLES)
    result = Prompts().generate(runtime, PromptRequest(protocol=protocol, shape=shape, few_shot=13))  # pyright: ignore[reportArgumentType]
    document = runtime.read(result.text, options={"allowMultipleBlocks": True})
    called = [call for call in document.calls if call.executable]
    assert len(called) == result.few_shot + 2
    # a workflow has no examples of its own to be shown calling
    shown = {tool_id for tool_id in told(result) if not tool_id.startswith("workflow:")}
    assert {tool.tool_id for call in called if (tool := runtime.registry.get(call.tool_id))} == shown


@pytest.mark.parametrize(
    ("protocol", "shape"), [("action", "tag"), ("action", "inputs"), ("tam", "tag"), ("vcp", "tag")]
)
def test_the_wrong_call_of_a_prompt_gets_the_observation_that_stands_there(protocol: str, shape: str) -> None:  # A35
    runtime = Runtime(EXAMPLES)
    request = PromptRequest(protocol=protocol, shape=shape, few_shot=1, tool_ids=("units:convert",))  # pyright: ignore[reportArgumentType]
    text = Prompts().generate(runtime, request).text
    wrong = text.partition("A call that was wrong")[2]
    block = runtime.read(wrong, options={"allowMultipleBlocks": True}).blocks[0].span
    executed = asyncio.run(
        execute_text(runtime.read(wrong[slice(*block)]), runtime.call_context(), TextOptions(dry_run=True))
    )
    assert executed.results[0].status == "error"
    told_lines = [
        line for line in executed.observation.splitlines() if "duration_ms" not in line and "request_id" not in line
    ]
    assert told_lines
    for line in told_lines:
        assert line in wrong.splitlines()


def test_workflows_stand_under_skills(root: Path) -> None:  # A32
    tools, _, skills = generate(root, protocol="action").text.partition("**Skills (workflow executions):**")
    assert "workflow:greet" in skills
    assert "test.echo" in tools
    assert "test.echo" not in skills


def test_a_script_that_is_missing_is_left_out_with_its_reason(root: Path) -> None:
    (root / "test_echo" / "tool.py").unlink()
    result = generate(root)
    assert "test:echo" not in told(result)
    (note,) = result.notes
    assert note.startswith("test:echo is left out: the script 'tool.py' does not exist")


def test_what_a_list_calls_unavailable_is_left_out_with_its_reason(root: Path) -> None:  # F11, issue 14, item 8
    handler = {"type": "service-method", "serviceName": "Host", "methodName": "m"}
    make_tool(root, "host:method", handler=handler)
    result = generate(root)
    assert "host:method" not in told(result)
    assert any(note.startswith("host:method is left out: ") for note in result.notes)


@pytest.mark.parametrize("protocol", ["action", "tam", "vcp"])
def test_definitions_cost_no_more_than_minified_json(protocol: str) -> None:  # A53
    runtime = Runtime(EXAMPLES)
    tools = [tool for tool in runtime.registry.current() if tool.kind == "tool"][:10]
    json_tools = [describe(tool, "openai", runtime.registry) for tool in tools]
    minified = json.dumps([one.definition for one in json_tools], separators=(",", ":"), ensure_ascii=False)
    tokens, exact = count_tokens(minified)
    assert exact
    shown = [prompt_tool(tool, protocol, "tag", runtime.registry) for tool in tools]
    spoken = find_protocol(protocol)
    assert spoken is not None
    assert count_tokens(spoken.generate_tool_definitions(shown, "full"))[0] <= tokens
    assert count_tokens(spoken.generate_tool_definitions(shown, "compact"))[0] * 3 <= tokens


def test_the_definitions_of_vcp_cost_little_more_than_those_of_action() -> None:  # F11: they were 40 % dearer
    runtime = Runtime(EXAMPLES)

    def cost(protocol: str) -> int:
        spoken = find_protocol(protocol)
        assert spoken is not None
        tools = [tool for tool in runtime.registry.current() if tool.kind == "tool"]
        shown = [prompt_tool(tool, protocol, "tag", runtime.registry) for tool in tools]
        return count_tokens(spoken.generate_tool_definitions(shown, "full"))[0]

    assert cost("vcp") <= cost("action") * 1.15


def test_an_observation_uses_the_name_that_the_prompt_showed(root: Path) -> None:  # F11, issue 14, item 8
    runtime = Runtime(root)
    document = runtime.read("<ACTION><test_echo><text>x</text></test_echo></ACTION>")
    executed = asyncio.run(execute_text(document, runtime.call_context(), TextOptions(dry_run=True)))
    assert executed.results[0].tool_id == "test:echo"
    assert executed.observation.startswith("Observation: Tool test_echo was not executed: this was a dry run")


def test_a_skill_stands_with_its_name_and_is_called_by_it() -> None:  # A57, seed 000 §7.2
    runtime = Runtime(EXAMPLES)
    text = Prompts().generate(runtime, PromptRequest(protocol="action")).text
    assert re.search(r"`<reading_list>` \([^)]+\): ", text)
    called = runtime.registry.resolve_call("reading_list", "action", {})
    assert called.tool is not None
    assert called.tool.tool_id == "workflow:reading_list"


def test_tools_are_chosen_by_id_alias_and_filter(root: Path) -> None:
    assert told(generate(root, tool_ids=("test_echo", "plain_name"))) == ["test:echo", "plain_name"]
    assert told(generate(root, filter=ToolFilter(tags=["text"]))) == ["test:echo"]
    assert told(generate(root, filter=ToolFilter(namespace="workflow"))) == ["workflow:greet"]
    nothing = generate(root, filter=ToolFilter(tags=["none"]), instructions=True)
    assert (nothing.text, nothing.notes) == ("", ["no registered tool fits"])
    hidden = generate(root, tool_ids=("test:hidden",))
    assert (hidden.text, hidden.notes) == ("", ["test:hidden is left out: the manifest says agentCallable: false"])


def test_an_unknown_id_or_protocol_is_an_error_with_a_suggestion(root: Path) -> None:  # ruling 3
    with pytest.raises(PromptError, match="no tool 'test:ecko', did you mean 'test:echo'\\?"):
        generate(root, tool_ids=("test:ecko",))
    with pytest.raises(PromptError, match="no protocol 'acton', did you mean 'action'\\?"):
        generate(root, protocol="acton")
    with pytest.raises(PromptError, match="no protocol 'auto'"):
        generate(root, protocol="auto")


def test_only_the_newest_version_is_told_of(tmp_path: Path) -> None:
    make_tool(tmp_path / "old", "a:b", version="1.9.0", description="The old one of the two versions there are.")
    make_tool(tmp_path / "new", "a:b", version="1.10.0", description="The new one of the two versions there are.")
    shown = generate(tmp_path).text
    assert "The new one" in shown
    assert "The old one" not in shown
    assert "The old one" in generate(tmp_path, tool_ids=("a:b@1.9.0",)).text


def test_the_same_request_gives_the_same_object(root: Path) -> None:  # V28
    runtime, prompts = Runtime(root), Prompts()
    first = prompts.generate(runtime, PromptRequest(protocol="vcp"))
    assert prompts.generate(runtime, PromptRequest(protocol="vcp")) is first
    assert prompts.generate(runtime, PromptRequest(protocol="tam")) is not first
    assert prompts.generate(runtime, PromptRequest(protocol="vcp", few_shot=1)) is not first
    runtime.reload()
    assert prompts.generate(runtime, PromptRequest(protocol="vcp")) is first


def test_a_change_of_tools_or_profile_empties_what_was_kept(root: Path) -> None:  # V29
    runtime, prompts = Runtime(root, profile(root, {"toolCallConfig": ON})), Prompts()
    request = PromptRequest(protocol="vcp")
    first = prompts.generate(runtime, request)
    make_tool(root, "test:new")
    assert prompts.generate(runtime, request) is first
    runtime.reload()
    second = prompts.generate(runtime, request)
    assert "test:new" in told(second)
    assert second.etag != first.etag
    profile(root, {"toolCallConfig": ON | {"toolToggles": {"test:new": False}}})
    runtime.reload()
    third = prompts.generate(runtime, request)
    assert "test:new" not in told(third)
    assert third.etag == first.etag


def test_what_is_kept_is_bounded(root: Path) -> None:
    runtime, prompts = Runtime(root), Prompts()
    first = prompts.generate(runtime, PromptRequest(template="0"))
    for number in range(1, 70):
        prompts.generate(runtime, PromptRequest(template=str(number)))
    assert prompts.generate(runtime, PromptRequest(template="0")) is not first


def test_text_and_etag_are_the_same_in_another_process() -> None:  # V34
    code = (
        "import sys; from pathlib import Path; from tamis.server.runtime.runtime import Runtime; from tamis.server.runtime.texts.prompts import *;"
        "r = Prompts().generate(Runtime(Path(sys.argv[1])), PromptRequest(protocol='action', few_shot=9)); print(r.etag)"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLES)],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    own = Prompts().generate(Runtime(EXAMPLES), PromptRequest(protocol="action", few_shot=9)).etag
    assert other.stdout == own + "\n"


def test_a_template_without_the_macro_is_unchanged_and_noted(root: Path) -> None:
    result = generate(root, template="nothing here")
    assert result.text == "nothing here"
    assert result.notes == ["the template has no {{tools}}, so it is unchanged"]


def test_a_budget_that_cannot_be_kept_is_refused(root: Path) -> None:
    with pytest.raises(PromptTooLargeError, match="choose fewer with toolIds or filter"):
        generate(root, max_tokens=3)
    large = generate(root, instructions=True)
    assert generate(root, instructions=True, max_tokens=large.tokens.total).text == large.text
    small = generate(root, instructions=True, max_tokens=large.tokens.total - 1)
    assert small.style == "compact"
    assert small.tokens.total < large.tokens.total


@pytest.mark.parametrize("what", ["prompt", "grammar"])
def test_no_step_of_a_long_prompt_keeps_all_threads_waiting(what: str, tmp_path: Path, is_long: bool) -> None:
    """R4: measured in processor time, so that a busy machine counts for nothing. The tokenizer is loaded before: that is one step, once in
    a process (45 ms, 120 on a slow machine)."""
    count_tokens("x")
    for number in range(10_000 if is_long else 400):
        make_tool(tmp_path, f"many:tool_{number}", required=["text"])
    runtime = Runtime(tmp_path)
    assert runtime.registry
    request = PromptRequest(protocol="action")

    def work() -> None:
        time.sleep(0.02)
        with uncollected():
            Prompts().generate(runtime, request) if what == "prompt" else grammar(runtime, request, "gbnf")

    def longest_step() -> float:
        spent: list[float] = []
        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            began = time.process_time()
            time.sleep(0.002)
            spent.append(time.process_time() - began)
        assert len(spent) > 10
        return max(spent)

    # on a busy machine this thread may get its turn late, but not each time
    bound = 20 * calibration()
    assert any(longest_step() < bound for _ in range(10))
