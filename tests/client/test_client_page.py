"""docs/client.md says what ``tamis.client`` is: names and defaults are those of the code."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tamis.client
from tamis.client import AsyncClient, Client
from tamis.client.methods import AsyncMethods, Methods

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text("utf-8")


def shown(function: object) -> str:
    """A signature without its types."""
    assert callable(function)
    signature = inspect.signature(function)
    parameters = [
        one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values() if one.name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)).replace("'", '"')


def own(kind: type[object], generated: type[object]) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_") and name not in {*vars(generated)} - {"call_with"}}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_parameters_of_the_constructor_and_their_defaults_are_told(kind: type[object]) -> None:
    parameters = {name: one.default for name, one in inspect.signature(kind).parameters.items()}
    section = PAGE.split("## The constructor")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", section, re.M))
    assert {*rows} == {*parameters}
    for name in ("framing", "timeout"):
        assert rows[name].strip("`").strip('"') == str(parameters[name])
    assert f"Client({', '.join([*parameters]).replace('root,', 'root, *,')})" in section


@pytest.mark.parametrize(("kind", "generated"), [(Client, Methods), (AsyncClient, AsyncMethods)])
def test_every_method_is_told_with_its_signature(kind: type[object], generated: type[object]) -> None:
    for name in own(kind, generated) - {"process"}:
        assert f"| `{name}{shown(getattr(kind, name))}` |" in PAGE, name + shown(getattr(kind, name))


def test_every_method_that_is_told_is_there() -> None:
    section = PAGE.split("## Methods")[1].split("\n## ")[0]
    told = {*re.findall(r"^\| `(\w+)", section, re.M)}
    assert told == own(Client, Methods) | own(AsyncClient, AsyncMethods) | {"process"}
    assert "tool_execute_text(*, text, …, timeout=None)" in PAGE
    assert {"text", "timeout"} <= {*inspect.signature(Client.tool_execute_text).parameters}


def test_every_public_name_of_the_package_is_told() -> None:
    for name in tamis.client.__all__:
        assert f"`{name}" in PAGE, name
