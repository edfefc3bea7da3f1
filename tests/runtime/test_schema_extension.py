"""`schemaExtension`: rules of one's own for manifests (T4), which only ever refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.manifest.embedded import SchemaExtension
from tamis.protocols.manifest.reading import read_manifest
from tamis.server.cli.main import main
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.loading import load_settings
from tests.sample_tools import make_tool

OWNER = {"required": ["x-owner"], "properties": {"x-owner": {"type": "string", "pattern": "^[a-z]+$"}}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_tool(tmp_path, "acme:owned", **{"x-owner": "ann"})
    make_tool(tmp_path, "acme:wrong", **{"x-owner": "Ann 7"})
    make_tool(tmp_path, "acme:bare")
    return tmp_path


def rules(root: Path, content: Any, name: str = "rules.json") -> dict[str, Any]:
    (root / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return {"schemaExtension": [name]}


def registered(runtime: Runtime) -> list[str]:
    return [tool.tool_id for tool in runtime.registry.tools]


def test_what_breaks_a_rule_is_not_registered_and_told_at_its_place(root: Path) -> None:
    """T4."""
    runtime = Runtime(root, rules(root, OWNER))
    assert registered(runtime) == ["acme:owned"]
    errors = {Path(error.path).parent.name: error for error in runtime.registry.errors}
    text = (root / "acme_wrong" / "x.tool.json").read_text().splitlines()
    assert '"Ann 7"' in text[errors["acme_wrong"].line - 1]
    assert "x-owner" in errors["acme_bare"].message
    assert "rules.json" in errors["acme_bare"].message


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"type": "no such type"}', None], ids=["cut", "list", "schema", "none"]
)
def test_rules_that_cannot_be_used_refuse_every_manifest(root: Path, content: str | None) -> None:
    """T4: what their author wanted is not known."""
    settings = {"schemaExtension": ["rules.json"]} if content is None else rules(root, content)
    runtime = Runtime(root, settings)
    assert registered(runtime) == []
    assert all("rules.json" in error.message for error in runtime.registry.errors)
    assert len(runtime.registry.errors) == 3


def test_rules_allow_nothing_that_tamis_refuses(root: Path) -> None:
    """T4."""
    path = root / "acme_owned" / "x.tool.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7}))
    assert registered(Runtime(root, rules(root, {"properties": {"version": {"type": "integer"}}}))) == []


def test_rules_are_in_force_after_a_reload_also_of_what_is_unchanged(root: Path) -> None:
    """T4: the manifests are as they were, the rules are not."""
    runtime = Runtime(root, rules(root, {}))
    assert len(registered(runtime)) == 3
    rules(root, OWNER)
    runtime.reload()
    assert registered(runtime) == ["acme:owned"]


def test_check_and_validate_tell_of_the_same_rules(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """T4."""
    settings = rules(root, OWNER)
    (root / "tamis.toml").write_text('schemaExtension = ["rules.json"]\n')
    assert main(["check", "--root", str(root), "--format", "json", str(root)]) == 1
    told = json.loads(capsys.readouterr().out)
    found = {
        Path(file["path"]).parent.name: [one["code"] for one in file["diagnostics"] if one["severity"] == "error"]
        for file in told["files"]
    }
    assert {name: codes for name, codes in found.items() if codes} == {"acme_wrong": ["MF550"], "acme_bare": ["MF550"]}
    runtime = Runtime(root, settings)
    manifest = json.loads((root / "acme_wrong" / "x.tool.json").read_text())
    (problem,) = runtime.validate_manifest(manifest).errors
    assert (problem.code, problem.path) == ("MF550", "/x-owner")


def test_a_folders_rules_come_to_the_operators(
    untrusted: object, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """T4: also where nobody trusted the folder; a file outside of it is not read, for what would be told of it."""
    own = tmp_path_factory.mktemp("operator") / "own.json"
    own.write_text('{"required": ["x-own"]}')
    rules(root, OWNER)
    (root / "tamis.toml").write_text(f'schemaExtension = ["rules.json", "{own.parent}/secret.json"]\n')
    loaded = load_settings(root, {"schemaExtension": [str(own)]})
    assert loaded.settings.schema_extension == (str(own), "rules.json")
    assert [one.setting for one in loaded.not_in_force] == ["schemaExtension"]


def test_nothing_is_fetched_and_no_work_is_without_bound() -> None:
    """T4: a hostile folder's rules lead nowhere else; what cannot be found out refuses."""
    manifest = json.dumps({"a": "a" * 40})
    for schema in (
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}},
        {"$defs": {"x": {"$ref": "#/$defs/x"}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
        {"properties": {"a": {"pattern": "^(a+)+$b"}}},
    ):
        codes = {
            one.code
            for one in read_manifest(manifest, extensions=[SchemaExtension("r", json.dumps(schema))]).diagnostics
        }
        assert codes & {"MF549", "MF550"}, schema
