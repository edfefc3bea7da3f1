"""The published descriptions of the contract are of this code, and are what they say they are (issue 6.7)."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from tamis.protocols import messages
from tamis.server.cli.main import main
from tamis.server.rpc.described import files
from tamis.server.rpc.described.methods import Described, described
from tamis.server.rpc.described.schemas import Schemas, schemas
from tamis.server.rpc.described.typescript import type_of
from tamis.server.rpc.session import GIVEN_BY, MEANINGS, numbers
from tests.node_runtime import NODE, node_project

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def methods() -> list[Described]:
    return described(files.declared())


@pytest.fixture(scope="module")
def made(methods: list[Described]) -> Schemas:
    return schemas(methods)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return files.texts()


@pytest.fixture(scope="module")
def openrpc(texts: dict[str, str]) -> dict[str, Any]:
    return json.loads(texts["schemas/openrpc.json"])


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node_project(Path(__file__).parent / "node", tmp_path_factory.mktemp("contract") / "node")


@pytest.mark.parametrize("name", files.NAMES)
def test_a_committed_description_is_not_stale(name: str, texts: dict[str, str]) -> None:
    assert (ROOT / name).read_text("utf-8") == texts[name], f"{name} is stale: run python tools/published_contract.py"


def test_the_tool_that_writes_them_says_which_are_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], texts: dict[str, str]
) -> None:
    spec = importlib.util.spec_from_file_location("published_contract", ROOT / "tools" / "published_contract.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "texts", lambda: texts)
    for name in texts:
        (tmp_path / name).parent.mkdir(exist_ok=True)
    monkeypatch.setattr("sys.argv", ["published_contract.py"])
    assert tool.main() == 0
    monkeypatch.setattr("sys.argv", ["published_contract.py", "--check"])
    assert tool.main() == 0
    (tmp_path / "schemas" / "openrpc.json").write_text("{}")
    assert tool.main() == 1
    assert "schemas/openrpc.json is stale" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "name"),
    [("--openrpc", "openrpc.json"), ("--json-schema", "contract.json"), ("--typescript", "tamis.d.ts")],
)
def test_tamis_schema_prints_what_is_published(
    option: str, name: str, capsys: pytest.CaptureFixture[str], texts: dict[str, str]
) -> None:
    assert main(["schema", option]) == 0
    assert capsys.readouterr().out == texts[f"schemas/{name}"]


def test_tamis_schema_prints_the_schema_of_manifests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--manifest"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((ROOT / "schemas/tool.2020-12.schema.json").read_text())
    assert main(["schema"]) == 2
    assert "--openrpc" in capsys.readouterr().err


def test_openrpc_is_valid_by_its_own_schema(openrpc: dict[str, Any], node_folder: Path) -> None:
    script = "const m = require('@open-rpc/meta-schema'); console.log(JSON.stringify(m.default || m))"
    done = subprocess.run([NODE, "-e", script], cwd=node_folder, capture_output=True, text=True, check=True)
    meta = json.loads(done.stdout)
    if openrpc["openrpc"] not in meta["properties"]["openrpc"].get("enum", [openrpc["openrpc"]]):
        meta["properties"]["openrpc"] = {"type": "string"}
    # Its definitions of a schema lead to the web; embedded schemas are checked by themselves.
    meta = json.loads(re.sub(r'"\$ref": "https://[^"]*"', '"x-left": ""', json.dumps(meta)))
    del meta["$schema"], meta["$id"]
    errors = [f"{error.json_path}: {error.message}" for error in Draft7Validator(meta).iter_errors(openrpc)]
    assert errors == []


def test_the_examples_fit_the_schemas_of_the_document_as_draft_07(openrpc: dict[str, Any]) -> None:
    examples = [(method, one) for method in openrpc["methods"] for one in method.get("examples", ())]
    assert len(examples) > 5
    for method, example in examples:
        params = {param["name"]: param["schema"] for param in method["params"]}
        given = [(params[one["name"]], one["value"]) for one in example["params"]]
        for schema, value in [*given, (method["result"]["schema"], example["result"]["value"])]:
            whole = {"allOf": [schema], "components": openrpc["components"]}
            assert [error.message for error in Draft7Validator(whole).iter_errors(value)] == [], method["name"]


def test_every_reference_of_the_openrpc_document_leads_somewhere(openrpc: dict[str, Any]) -> None:
    for reference in re.findall(r'"\$ref": "([^"]+)"', json.dumps(openrpc)):
        found: Any = openrpc
        for word in reference.removeprefix("#/").split("/"):
            found = found[word]
    names = [method["name"] for method in openrpc["methods"]]
    assert len(names) == len(set(names))


def test_a_method_says_what_it_does_and_each_of_its_params_what_it_means(openrpc: dict[str, Any]) -> None:
    for method in openrpc["methods"]:
        assert len(method["summary"]) > 10, f"{method['name']}: its handler needs a docstring"
        assert "``" not in method["summary"]
        for param in method["params"]:
            assert param.get("description"), f"{method['name']}: '{param['name']}' needs a text below its field"


def test_every_result_is_declared_as_a_struct_of_the_contract(methods: list[Described]) -> None:
    for method in methods:
        for kind in method.results:
            assert kind is type(None) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)), (
                f"{method.name}: annotate the result of its handler with a Struct, not {kind}"
            )
            assert kind is type(None) or kind.__module__.startswith("tamis.protocols."), method.name


def test_the_json_schemas_are_valid_and_each_default_fits_its_own(texts: dict[str, str]) -> None:
    document = json.loads(texts["schemas/contract.json"])
    Draft202012Validator.check_schema(document)
    for name, part in document["$defs"].items():
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)
        for field, schema in part["properties"].items():
            if "default" in schema:
                whole = {**schema, "$defs": document["$defs"]}
                assert Draft202012Validator(whole).is_valid(schema["default"]), (name, field)


def test_what_a_host_reads_has_its_fields_required_and_what_it_writes_has_not(made: Schemas) -> None:
    result = made.parts["ExecutionResult"]
    assert {"callId", "logs", "replayed", "sandbox", "observation"} <= {*result["required"]}
    assert "output" not in result["required"]
    assert made.parts["ToolParseParams"]["required"] == ["text"]


def test_every_error_has_a_meaning_and_belongs_to_methods_that_there_are(methods: list[Described]) -> None:
    assert {*numbers()} == {*MEANINGS}
    names = {method.name for method in methods}
    assert {name for given in GIVEN_BY.values() for name in given} <= names
    assert {*GIVEN_BY} <= {*numbers()}
    assert len({*numbers().values()}) == len(numbers())


def test_what_the_daemon_sends_by_itself_is_described(openrpc: dict[str, Any]) -> None:
    assert {one["name"] for one in openrpc["x-notifications"]} == {*messages.NOTIFICATIONS}
    assert {one["name"] for one in openrpc["x-requests"]} == {*messages.REQUESTS}
    assert all(one["summary"] for one in openrpc["x-notifications"] + openrpc["x-requests"])
    assert all("result" in one for one in openrpc["x-requests"])


def test_messages_that_the_code_sends_are_described() -> None:
    """A notification or request that some module sends by name is in ``messages.py``."""
    sent: set[str] = set()
    for path in [*(ROOT / "server/rpc").rglob("*.py"), *(ROOT / "server/runtime").rglob("*.py")]:
        text = path.read_text("utf-8")
        sent |= {*re.findall(r'(?:\.tell|\.notify|\.ask)\(\s*"([$\w]+/\w+)"', text)}
    assert "workflow/stepChanged" in sent
    assert sent <= {*messages.NOTIFICATIONS, *messages.REQUESTS}


def test_the_typescript_declarations_compile_and_hold(texts: dict[str, str], node_folder: Path) -> None:
    (node_folder / "tamis.d.ts").write_text(texts["schemas/tamis.d.ts"], "utf-8")
    words = ("--noEmit", "--strict", "--target", "es2022", "--skipLibCheck", "false", "use.ts", "tamis.d.ts")
    done = subprocess.run(
        [NODE, "node_modules/typescript/bin/tsc", *words],
        cwd=node_folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({}, "Json"),
        ({"type": "integer"}, "number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "[number, string]"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "{ [name: string]: string }"),
        ({"$ref": "#/$defs/Range"}, "Range"),
    ],
    ids=str,
)
def test_a_schema_as_typescript(schema: dict[str, Any], wanted: str) -> None:
    assert type_of(schema) == wanted


def test_a_keyword_without_a_typescript_form_is_refused() -> None:
    with pytest.raises(ValueError, match="oneOf"):
        type_of({"oneOf": []})


def test_the_reference_names_every_method_and_every_shape(methods: list[Described], made: Schemas) -> None:
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    for method in methods:
        assert f"### Method `{method.name}`\n" in text
    for name, part in made.parts.items():
        assert f"### {name}\n" in text or name in {str(ref["$ref"]).rpartition("/")[2] for ref in made.params.values()}
        for field in part["properties"]:
            assert f"| `{field}" in text, (name, field)
