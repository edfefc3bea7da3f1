"""``@tamis.tool`` and ``Client.serve(functions)``: typed Python functions as tools of a host (P4)."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import doctest
import enum
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.client import AsyncClient, functions
from tamis.client.functions import ToolFunction
from tamis.protocols.manifest.reading import read_manifest
from tests.rpc.inside import InsideClient

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text("utf-8")


class Unit(enum.Enum):
    KM = "km"
    MILE = "mi"


@dataclasses.dataclass
class Place:
    lat: float
    lon: float = 0.0


class Options(TypedDict, total=False):
    deep: bool


@tamis.tool
def distance(a: Place, unit: Unit = Unit.KM, day: datetime.date | None = None, *, limit: int = 3) -> dict[str, float]:
    """How far it is.

    As the crow flies.

    Args:
        a: Where from.
        limit: How many.
    """
    assert isinstance(a, Place) and isinstance(unit, Unit)
    assert day is None or isinstance(day, datetime.date)
    return {"far": a.lat + limit}


def test_a_function_is_called_as_before() -> None:
    """P4."""
    assert distance(Place(1.0), limit=2) == {"far": 3.0}
    assert distance.__name__ == "distance"


def test_the_manifest_is_made_from_signature_and_docstring() -> None:
    """P4."""
    manifest = distance.manifest
    assert manifest["toolId"] == "host:distance"
    assert manifest["description"] == "How far it is. As the crow flies."
    assert manifest["handler"] == {"type": "service-method", "serviceName": "host", "methodName": "distance"}
    parameters = manifest["parameters"]
    assert parameters["required"] == ["a"]
    assert parameters["properties"]["a"]["description"] == "Where from."
    assert parameters["properties"]["limit"] == {"type": "integer", "default": 3, "description": "How many."}
    assert parameters["properties"]["unit"]["default"] == "km"
    assert manifest["output"] == {"type": "object", "additionalProperties": {"type": "number"}}
    reading = read_manifest(msgspec.json.encode(manifest).decode())
    assert [diag.code for diag in reading.diagnostics] == []


def test_arguments_come_as_the_annotated_types_and_results_go_as_plain_data() -> None:
    """P4."""
    given = {"a": {"lat": 1}, "unit": "mi", "day": "2026-11-23", "limit": 1}
    assert distance.handle(given) == {"far": 2}

    @tamis.tool
    def where(at: datetime.datetime, options: Options, more: list[Place]) -> list[Place]:
        assert options.get("deep") is True
        return [*more, Place(at.year)]

    args = {"at": "2026-11-23T00:00:00Z", "options": {"deep": True}, "more": [{"lat": 1, "lon": 2}]}
    assert where.handle(args) == [{"lat": 1.0, "lon": 2.0}, {"lat": 2026, "lon": 0.0}]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"a": {"lat": "far"}}, "'a': Expected `float`"),
        ({"a": {"lat": 1}, "limit": 1.5}, "'limit': Expected `int`"),
        ({"a": {"lat": 1}, "limits": 1}, "no parameter 'limits'"),
        ({}, "missing 1 required"),
    ],
)
def test_arguments_of_other_types_are_the_calls_fault(args: dict[str, Any], words: str) -> None:
    """P4: also where a host hands them on itself, past the daemon's check."""
    with pytest.raises((msgspec.ValidationError, TypeError), match=words):
        distance.handle(args)


KINDS = {
    "str": (str, st.text()),
    "int": (int, st.integers(-(2**53), 2**53)),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False)),
    "bool": (bool, st.booleans()),
    "list": (list[int], st.lists(st.integers(-9, 9), max_size=4)),
    "map": (dict[str, bool], st.dictionaries(st.text(max_size=4), st.booleans(), max_size=3)),
    "literal": (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    "maybe": (int | None, st.none() | st.integers(-9, 9)),
    "place": (Place, st.fixed_dictionaries({"lat": st.floats(-9, 9), "lon": st.floats(-9, 9)})),
    "unit": (Unit, st.sampled_from(["km", "mi"])),
}


@given(st.lists(st.sampled_from([*KINDS]), unique=True), st.data())
def test_what_the_schema_takes_the_function_gets_and_gives_back(names: list[str], data: st.DataObject) -> None:
    """P4: schema and conversion say the same, for any mixture of types."""

    def echo(**given: Any) -> Any:
        return given

    def make(kinds: dict[str, Any]) -> ToolFunction[..., Any]:
        source = f"def made({', '.join(f'{name}: KINDS_{name}' for name in kinds)}): return echo({', '.join(f'{n}={n}' for n in kinds)})"
        scope: dict[str, Any] = {"echo": echo, **{f"KINDS_{name}": kind for name, kind in kinds.items()}}
        exec(source, scope)
        return tamis.tool(scope["made"])

    made = make({name: KINDS[name][0] for name in names})
    args = {name: data.draw(KINDS[name][1], label=name) for name in names}
    jsonschema.Draft202012Validator(made.manifest["parameters"]).validate(args)
    assert made.handle(args) == args
    for name in names:
        wrong = {**args, name: object()}
        with pytest.raises(msgspec.ValidationError):
            made.handle(wrong)


class Odd:
    """No type of JSON."""


def odd(a: Odd) -> None: ...
def many(*texts: str) -> None: ...
def _hidden() -> None: ...
def unknown(a: NoSuchType) -> None: ...  # noqa: F821  # pyright: ignore


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (odd, "odd: its parameter 'a' has no form in JSON"),
        (many, r"many takes \*texts.*make it a list"),
        (_hidden, "'_hidden' is no name of a tool: give one with tool_id"),
        (lambda: 1, "is no name of a tool"),
        (unknown, "an annotation of unknown is not known"),
    ],
)
def test_what_cannot_be_a_tool_is_told_when_it_is_decorated(function: Callable[..., Any], words: str) -> None:
    """P4: with the place and a remedy."""
    with pytest.raises(TypeError, match=words):
        tamis.tool(function)


@pytest.mark.parametrize("tool_id", ["", "bare", "a:b:c d", "a:_b", "a/b:c", "a:b\n"])
def test_an_id_that_is_none_is_refused(tool_id: str) -> None:
    with pytest.raises(ValueError, match="no id of a tool"):
        tamis.tool(tool_id=tool_id)(distance)


def test_a_secret_parameter_is_marked_and_its_default_is_told_to_nobody() -> None:
    """P4: a manifest is shown to every model."""

    @tamis.tool(secret=["token"], tool_id="web:get", execution={"requireConfirmation": True}, tags=["net"])
    def get(url: Annotated[str, "the address"], token: str = "hunter2") -> str:
        return url

    assert "hunter2" not in str(get.manifest) + str(get.method)
    assert get.manifest["parameters"]["properties"]["token"]["x-secret"] is True
    assert get.manifest["parameters"]["properties"]["url"]["description"] == "the address"
    assert (get.service, get.method["execution"], get.method["tags"]) == ("web", {"requireConfirmation": True}, ["net"])
    with pytest.raises(ValueError, match="secret names 'tokn'"):
        tamis.tool(secret=["tokn"])(odd_job)


def test_functions_are_tools_of_the_daemon_with_one_line(tmp_path: Path) -> None:
    """P4: through the daemon's check, with typed arguments, and a failure as the tool's."""

    def plain(n: int) -> int:
        """Ten divided by a number."""
        return 10 // n

    async def slow(text: str) -> str:
        """Waits a little."""
        await asyncio.sleep(0)
        return text.upper()

    with InsideClient(tmp_path) as client:
        assert client.serve([distance, plain, slow, tamis.tool(tool_id="game:player")(odd_job)]) == [
            "host:distance",
            "host:plain",
            "host:slow",
            "game:player",
        ]
        text = "<ACTION><host:distance><a><lat>1.5</lat></a><limit>2</limit></host:distance></ACTION>"
        done = client.tool_execute_text(text=text).results[0]
        assert (done.status, done.output) == ("success", {"far": 3.5})
        assert client.tool_execute(tool_id="host:slow", args={"text": "a"}).output == "A"
        assert client.tool_execute(tool_id="game:player", args={}).output == "job"
        failed = client.tool_execute(tool_id="host:plain", args={"n": 0})
        assert failed.error is not None
        assert (failed.status, failed.error.type) == ("error", "ServiceError")
        assert client.tool_execute(tool_id="host:plain", args={"n": "many"}).status == "error"
        listed = [one.tool_id for one in client.tool_list(filter={"callable": True}).tools]
        assert "host:distance" in listed
        assert "How far it is" in client.prompt_generate(tool_ids=["host:distance"]).text
        with pytest.raises(ValueError, match="two functions are the tool 'host:plain'"):
            client.serve([plain, plain])


def odd_job() -> str:
    """A job."""
    return "job"


def test_an_asyncio_host_serves_functions_too(tmp_path: Path) -> None:
    """P4."""

    @tamis.tool
    async def double(n: int) -> int:
        """Twice a number."""
        await asyncio.sleep(0)
        return 2 * n

    async def work() -> Any:
        async with AsyncClient(tmp_path) as client:
            assert await client.serve([double, odd_job]) == ["host:double", "host:odd_job"]
            return (await client.tool_execute(tool_id="host:double", args={"n": 4})).output

    assert asyncio.run(work()) == 8


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """P4: docs/client.md."""
    section = PAGE.split("## Functions as tools")[1].split("\n## ")[0]
    code = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)[0]
    exec(compile(code, "docs/client.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == re.findall(r"^```text\n(.*?)^```", section, re.M | re.S)[0]


def test_the_examples_of_the_docstrings_are_true() -> None:
    assert doctest.testmod(functions).failed == 0
