"""The contract over the wire (issue 6.7): every method answers in its published shape, and reads its params like every other.

No list of methods stands here: what a method takes and gives is read from the description that it declares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from tamis.client import Client, RpcFailure
from tamis.server.rpc.described.examples import EXAMPLES
from tamis.server.rpc.described.openrpc import document
from tamis.server.rpc.methods import RpcServer
from tests.rpc import contract_check
from tests.rpc.inside import InsideClient
from tests.sample_tools import make_tool, vcp

ROOT = Path(__file__).resolve().parents[2]
BEGIN_AND_END = {"initialize", "shutdown"}
NAMES = sorted(contract_check.methods().keys() - BEGIN_AND_END)
FAIL = "import sys\nsys.stderr.write('no')\nsys.exit(3)\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("contract")
    make_tool(root, "test:echo", tags=["a"])
    make_tool(root, "test:fail", FAIL)
    make_tool(root, "test:asks", execution={"requireConfirmation": True})
    (root / "broken").mkdir()
    (root / "broken" / "x.tool.json").write_text('{"toolId": "a:b"', "utf-8")
    return root


@pytest.fixture(scope="module")
def daemon(root: Path) -> Iterator[Client]:
    with InsideClient(root, on_log=lambda _line: None) as client:
        yield client


def part_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with its references resolved at the top."""
    while "$ref" in schema:
        schema = contract_check.contract().parts[str(schema["$ref"]).rpartition("/")[2]]
    return schema


def fields_of(method: str) -> dict[str, Any]:
    reference = contract_check.contract().params.get(method)
    return {} if reference is None else part_of(reference)["properties"]


def sample(schema: dict[str, Any]) -> Any:
    """A value that fits."""
    schema = part_of(schema)
    if "enum" in schema or "const" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        return {name: sample(one) for name, one in schema.get("properties", {}).items() if name in required}
    plain: dict[Any, Any] = {"string": "x", "array": [], "boolean": True, "null": None, None: "x"}
    return plain[kind] if kind in plain else max(1, schema.get("minimum", 1))


def least(method: str) -> dict[str, Any]:
    """The least params that fit: those that are required."""
    reference = contract_check.contract().params.get(method)
    return {} if reference is None else cast("dict[str, Any]", sample(reference))


def wrong(schema: dict[str, Any]) -> Any:
    """A value of a wrong type, or None when every JSON value fits."""
    whole = {**schema, "$defs": contract_check.contract().parts}
    validator = Draft202012Validator(whole)
    return next((value for value in (7, "x", [7], {"a": 7}, False) if not validator.is_valid(value)), None)


def failure(client: Client, method: str, params: Any) -> RpcFailure | None:
    try:
        client.request(method, params)
    except RpcFailure as error:
        return error
    return None


WRONG = [(name, field) for name in NAMES for field, schema in fields_of(name).items() if wrong(schema) is not None]
REQUIRED = [(name, field) for name in NAMES for field in least(name)]


@pytest.mark.parametrize(("method", "field"), WRONG, ids="-".join)
def test_a_value_of_the_wrong_type_is_refused_with_its_place(daemon: Client, method: str, field: str) -> None:
    error = failure(daemon, method, least(method) | {field: wrong(fields_of(method)[field])})
    assert error is not None
    assert error.code == -32602
    assert f"`/{field}" in error.message


@pytest.mark.parametrize(("method", "field"), REQUIRED, ids="-".join)
def test_a_required_param_that_is_missing_is_named(daemon: Client, method: str, field: str) -> None:
    params = least(method)
    del params[field]
    error = failure(daemon, method, params)
    assert error is not None
    assert error.code == -32602
    assert f"'{field}' is missing" in error.message


@pytest.mark.parametrize("method", NAMES)
def test_params_that_a_method_does_not_know_are_ignored(daemon: Client, method: str) -> None:
    """Also what a newer host says: the answer is that to the same request without it."""
    plain = failure(daemon, method, least(method))
    extended = failure(daemon, method, least(method) | {"xNew": {"a": 1}, "_meta": {}})
    assert (plain and plain.code, plain and plain.message) == (
        extended and extended.code,
        extended and extended.message,
    )


@pytest.mark.parametrize("method", [name for name in NAMES if "options" in fields_of(name)])
def test_a_misspelt_option_of_reading_is_refused_everywhere(daemon: Client, method: str) -> None:
    """It would change what runs; so an unknown name is an error there, and in the config of `agent/step`."""
    error = failure(daemon, method, least(method) | {"options": {"reasoningCall": "run"}})
    assert error is not None
    assert (error.code, "reasoningCall" in error.message) == (-32602, True)


def test_no_other_part_of_params_refuses_unknown_names() -> None:
    closed = {
        name for name, part in contract_check.contract().parts.items() if part.get("additionalProperties") is False
    }
    assert closed == {"ReadingOptions", "ToolCallConfig"}


@pytest.mark.parametrize("method", NAMES)
def test_params_by_position_are_refused(daemon: Client, method: str) -> None:
    error = failure(daemon, method, ["x"])
    assert error is not None
    assert error.code == -32602


@pytest.mark.parametrize("method", NAMES)
def test_params_that_are_left_out_are_empty_ones(daemon: Client, method: str) -> None:
    without, empty = failure(daemon, method, None), failure(daemon, method, {})
    assert (without and without.message) == (empty and empty.message)


def test_the_examples_of_the_description_are_true() -> None:
    with InsideClient(ROOT / "examples", on_log=lambda _line: None) as client:
        for example in EXAMPLES:
            given = client.request(example.method, example.params)
            assert without_measures(given) == without_measures(example.result), (example.method, example.name)


def without_measures(value: Any) -> Any:
    """The value without what differs from run to run and machine to machine."""
    if isinstance(value, list):
        return [without_measures(one) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    measured = {"durationMs", "usage", "sandbox", "etag", "tokens"}
    found = cast("dict[str, Any]", value)
    return {name: without_measures(one) for name, one in found.items() if name not in measured}


def test_each_way_a_call_can_end_has_the_published_shape(root: Path) -> None:
    """What the fixture of this folder checks of every message, for the ends that there are."""
    told: list[str] = []
    with InsideClient(
        root,
        on_approval=lambda question: next(one.option_id for one in question.options if one.kind == "reject_once"),
        on_notification=lambda method, _params: told.append(method),
        on_log=lambda _line: None,
    ) as client:
        client.initialize(output=True)
        ends = {
            client.tool_execute(tool_id="test:echo", args={"text": "x"}).status,
            client.tool_execute(tool_id="test:fail").status,
            client.tool_execute(tool_id="test:none").status,
            client.tool_execute(tool_id="test:echo", args={"txt": 1}).status,
            client.tool_execute(tool_id="test:echo", timeout_ms=1).status,
            client.tool_execute(tool_id="test:asks").status,
        }
        assert ends == {"success", "error", "timeout", "denied"}
        done = client.tool_execute_text(
            text=vcp("test:echo", text="y") + vcp("test:none") + "<ACTION><a", complete=False
        )
        assert [result.status for result in done.results] == ["success", "error"]
        assert client.tool_validate(calls=[{"toolId": "test:echo", "args": {"text": 1}}]).valid is False
        assert client.registry_reload().errors[0].path.endswith("x.tool.json")
        assert "tool/output" in told


def test_what_is_seldom_sent_has_the_published_shape(root: Path) -> None:
    told: list[str] = []
    asked: list[str] = []

    def answer(method: str, params: Any) -> Any:
        asked.append(method)
        return params["actions"][0]

    with InsideClient(
        root, on_request=answer, on_notification=lambda method, _params: told.append(method), on_log=lambda _line: None
    ) as client:
        client.request("initialize", {"capabilities": {"window": {"showMessage": {}}}})
        assert client.tool_execute(tool_id="test:asks").status == "success"
        assert client.tool_execute(tool_id="PublishEventTool", args={"event_type": "a.b"}).status == "success"
        assert client.approval_revoke(all=True).revoked == []
        assert client.request("shutdown") is None
    assert asked == ["window/showMessageRequest"]
    assert "event/published" in told


def test_a_wrong_message_would_be_found() -> None:
    asked: dict[Any, str] = {1: "tool/list"}
    good = {"tools": [], "etag": "x"}
    assert contract_check.message_faults({"id": 1, "result": good}, asked) == []
    assert "'mine' was unexpected" in contract_check.message_faults({"id": 1, "result": good | {"mine": 1}}, asked)[0]
    assert (
        "'etag' is a required property" in contract_check.message_faults({"id": 1, "result": {"tools": []}}, asked)[0]
    )
    assert contract_check.message_faults({"method": "tool/secret", "params": {}}, {}) != []
    assert contract_check.message_faults({"id": 1, "error": {"code": 1301}}, asked) != []


# rpc.discover


def test_discover_gives_the_document_that_is_published(daemon: Client) -> None:
    given = daemon.request("rpc.discover")
    assert given == json.loads((ROOT / "schemas" / "openrpc.json").read_text("utf-8"))
    assert {one["name"] for one in given["methods"]} == contract_check.methods().keys()


def test_discover_needs_neither_trust_nor_tools(tmp_path: Path) -> None:
    (tmp_path / "tamis.toml").write_text("tools = 3\n", "utf-8")
    with InsideClient(tmp_path, on_log=lambda _line: None) as client:
        client.initialize(trusted=False)
        first = client.rpc_discover()
        assert first.methods == client.rpc_discover().methods
        assert first.openrpc.startswith("1.3")


def test_the_description_is_the_same_each_time() -> None:
    server = RpcServer(None)
    assert document(server.declared) == document(server.declared)


def test_initialize_names_every_method_with_its_stability(root: Path) -> None:
    with InsideClient(root) as client:
        given = client.initialize().capabilities.experimental.tamis.methods
    assert given == {name: contract_check.methods()[name].stability for name in NAMES}


@pytest.mark.parametrize("events", [True, False])
def test_a_tool_that_is_refused_too_often_is_told_to_the_host(tmp_path: Path, events: bool) -> None:
    """D98: to a host with the capability `events`."""
    make_tool(tmp_path, "t:gpu", securityContext={"requiredCapabilities": ["gpu"]})
    told: list[tuple[str, Any]] = []
    with InsideClient(tmp_path, on_notification=lambda *one: told.append(one)) as client:
        if events:
            client.initialize()
        for _ in range(12):
            done = client.tool_execute(tool_id="t:gpu", context={"sessionId": "s"})
            assert done.status != "success"
    found = [params for method, params in told if method == "abuse/suspected"]
    assert len(found) == (1 if events else 0)
    for one in found:
        assert (one["toolId"], one["sessionId"], one["agentId"]) == ("t:gpu", "s", "")
        assert "refused 10 times within a minute" in one["message"]
