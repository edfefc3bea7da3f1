"""`tamis.protocols.read`: the stable function of the library for other programs (C3)."""

from __future__ import annotations

import doctest
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.protocols import Reader, api, make_reader, read
from tamis.protocols.reader import read_text
from tamis.protocols.wire import parse_result
from tests.protocols.fuzz import TOKENS, WORDS

ACTION = "Now.\n<ACTION><time:now><zone>UTC</zone></time:now></ACTION>"
BUILTIN = (dict, list, tuple, str, int, float, bool, type(None))
TEXTS = st.lists(st.one_of(st.sampled_from([*TOKENS, *WORDS]), st.text(max_size=5)), max_size=24).map("".join)


def kinds(value: Any) -> set[type]:
    """The types of which a value is made."""
    if isinstance(value, dict):
        return {dict, *(kind for item in value.items() for part in item for kind in kinds(part))}
    if isinstance(value, list | tuple):
        return {type(value), *(kind for part in value for kind in kinds(part))}
    return {type(value)}


@given(TEXTS)
def test_every_text_gives_plain_data_that_pickles(text: str) -> None:
    """C3: nothing but built-in types, and equal to the ``ParseResult`` of ``tool/parse``."""
    result = read(text)
    assert kinds(result) <= set(BUILTIN)
    assert pickle.loads(pickle.dumps(result)) == result
    assert result == msgspec.to_builtins(parse_result(read_text(text), None))


@given(TEXTS)
def test_the_result_depends_on_the_text_alone(text: str) -> None:
    """C3: pure: what was read before changes nothing, and no two results share a part that can be changed."""
    first = read(text)
    kept = json.dumps(first)
    second = read(text)
    for part in second.values():
        if isinstance(part, list):
            part.clear()
    assert json.dumps(read(text)) == kept == json.dumps(first)


def test_nothing_of_the_server_is_loaded() -> None:
    """C3: by what a fresh interpreter has loaded after reading every protocol."""
    code = """
import sys
from tamis.protocols import read
for text in ("<ACTION><a><b>R&D</b></a></ACTION>", "<|[REQUEST_TOOL]|>\\ncommand:»»»a«««\\n<|[END_TOOL]|>",
             "<<<[TOOL_REQUEST]>>>\\ntool_name:「始」a「末」\\n<<<[END_TOOL_REQUEST]>>>", '{"toolName": "a", "arguments": {}}'):
    assert read(text)["calls"], text
assert read("<tool_call>{\\"name\\": \\"a\\", \\"arguments\\": {}}</tool_call>", "hermes")["calls"]
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "tamis.protocols.reader" in loaded
    foreign = [name for name in loaded if name.startswith(("tamis.server", "tamis.sandbox", "tamis.client"))]
    assert not foreign
    assert not loaded & {
        "asyncio",
        "socket",
        "subprocess",
        "multiprocessing",
        "pygls",
        "jsonschema",
        "lxml",
        "pathspec",
    }


def test_the_function_and_a_reader_pickle() -> None:
    """C3: both are sent to the workers of other programs."""
    guided = make_reader("tam", complete=False, tools=[{"toolId": "a", "parameters": {"type": "object"}}])
    assert pickle.loads(pickle.dumps(read)) is read
    again = pickle.loads(pickle.dumps(guided))
    assert isinstance(again, Reader) and again == guided and again("x") == guided("x")


def test_many_threads_may_read() -> None:
    """C3: no state is shared."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read, [ACTION.replace("UTC", f"Z{number}") for number in range(400)]))
    assert [one["calls"][0]["args"]["zone"] for one in found] == [f"Z{number}" for number in range(400)]


def test_arguments_mean_what_they_mean_in_tool_parse() -> None:
    """C3: `complete`, `protocol`, `options` and `tools`."""
    assert read(ACTION)["calls"][0]["executable"] is True
    assert read(ACTION.removesuffix("</ACTION>"), complete=False)["calls"][0]["executable"] is False
    assert read(ACTION, "tam")["calls"] == []
    thought = f"<think>{ACTION}</think>"
    assert read(thought)["calls"][0]["executable"] is False
    assert read(thought, options={"reasoningCalls": "run"})["calls"][0]["executable"] is True
    item = "<ACTION><t><list><item>a</item></list></t></ACTION>"
    text = {"toolId": "t", "parameters": {"type": "object", "properties": {"list": {"type": "string"}}}}
    options = read_text(item, options=api.make_reader(tools=[text]).options)
    assert read(item, tools=[text]) == msgspec.to_builtins(parse_result(options, None))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"text": b"x"}, TypeError, "not bytes"),
        ({"text": None}, TypeError, "not NoneType"),
        ({"text": "x", "protocol": "nope"}, ValueError, "unknown protocol 'nope'"),
        ({"text": "x", "options": {"nope": 1}}, ValueError, "wrong options: .*nope"),
        ({"text": "x", "options": {"fencedCalls": "maybe"}}, ValueError, "wrong options"),
        ({"text": "x", "options": {"also": ["nope"]}}, ValueError, "unknown protocol 'nope'"),
        ({"text": "x", "tools": [{"id": "a"}]}, ValueError, "toolId"),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    """C3: a mistake in the arguments is an error, a strange text never is."""
    with pytest.raises(error, match=words):
        read(**arguments)


def test_a_reader_writes_json_also_of_texts_that_utf8_cannot_carry() -> None:
    """C1: one document without a line end."""
    assert json.loads(Reader().json(ACTION)) == json.loads(json.dumps(read(ACTION)))
    line = Reader().json(ACTION.replace("UTC", "a\ud800b\n"))
    assert b"\n" not in line
    assert json.loads(line)["calls"][0]["args"] == {"zone": "a\ufffdb"}


def test_the_examples_of_the_documentation_run() -> None:
    """House: a public docstring has an example that runs."""
    assert doctest.testmod(api).failed == 0 and doctest.testmod(api).attempted >= 3


TOOL = {
    "toolId": "t:add",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


@pytest.mark.parametrize(
    ("text", "calls", "codes"),
    [
        ("<ACTION><t:add><n>7</n></t:add></ACTION>", [("t:add", True, {"n": 7})], []),
        ("<ACTION><t:add><n>x</n></t:add></ACTION>", [("t:add", False, {"n": "x"})], ["VA410"]),
        ("<ACTION><t:ad><n>7</n></t:ad></ACTION>", [("t:ad", False, {"n": "7"})], ["VA401"]),
        ("> <ACTION><t:add><n>x</n></t:add></ACTION>", [], ["TC018"]),
        ("<ACTION><t:add><n>7</n>", [], ["TC001"]),
        ("no call", [], []),
    ],
)
def test_calls_are_checked_against_tools_in_process(text: str, calls: Any, codes: list[str]) -> None:
    """P3: coerced where valid; set-aside and cut-off calls are none."""
    result = tamis.check(text, tools=[TOOL])
    assert [(one["toolId"], one["valid"], one["args"]) for one in result["calls"]] == calls
    found = [one["code"] for one in result["diagnostics"]]
    assert found == codes
    assert result["errors"] == sum(one["severity"] == "error" for one in result["diagnostics"])


def test_a_manifest_is_checked_in_process() -> None:
    """P3."""
    result = tamis.check('{"toolId": "a:b"}', "folder/x.tool.json")
    assert result["errors"] > 0
    assert {one["code"][:2] for one in result["diagnostics"]} == {"MF"}
    assert result["calls"] == []


@given(TEXTS, st.booleans())
def test_checking_never_raises_and_gives_plain_data(text: str, is_manifest: bool) -> None:
    """P3."""
    result = tamis.check(text, "x.tool.json" if is_manifest else "", tools=[TOOL])
    assert kinds(result) <= set(BUILTIN)
    assert result["warnings"] == sum(one["severity"] == "warning" for one in result["diagnostics"])
    if not is_manifest:
        assert all(one["valid"] <= (one["toolId"] == "t:add") for one in result["calls"])


def test_the_top_of_the_package_loads_nothing_until_it_is_asked() -> None:
    """P3: ``import tamis`` costs what an empty module costs; ``parse`` and ``check`` load nothing of server or client."""
    code = """
import sys
before = {*sys.modules}
import tamis
assert {*sys.modules} - before <= {"tamis"}, {*sys.modules} - before
assert "parse" in dir(tamis) and not hasattr(tamis, "nothing")
assert tamis.parse("<ACTION><a><b>1</b></a></ACTION>")["calls"]
tamis.check("<ACTION><a><b>1</b></a></ACTION>", tools=[{"toolId": "a"}])
print(*(name for name in sys.modules if name.startswith(("tamis.server", "tamis.client", "tamis.sandbox", "asyncio"))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
