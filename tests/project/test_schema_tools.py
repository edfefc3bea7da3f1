"""The published schemas and the OpenRPC document under the tools that others use: ajv in strict mode, SchemaStore's checks, OpenRPC's dereferencer (F7, F8)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.editors.npm import find_npm

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = sorted((ROOT / "schemas").glob("*.schema.json"))
STORE = ROOT / "tools" / "schemastore"
PACKAGES = ("ajv@8", "ajv-formats@3", "@open-rpc/schema-utils-js@2")
# What SchemaStore's own checks let editors have besides.
EDITOR_WORDS = (
    "markdownDescription",
    "defaultSnippets",
    "enumDescriptions",
    "markdownEnumDescriptions",
    "deprecationMessage",
)
CHECK = """
const fs = require("fs");
const [words, schemas] = JSON.parse(process.argv[2]);
const told = {};
for (const [file, documents] of Object.entries(schemas)) {
  const schema = JSON.parse(fs.readFileSync(file));
  const Ajv = (schema.$schema.includes("2020-12") ? require("ajv/dist/2020") : require("ajv")).default;
  const ajv = new Ajv({strict: true, strictRequired: true, allErrors: true});
  require("ajv-formats").default(ajv);
  words.forEach((word) => ajv.addKeyword(word));
  try {
    const validate = ajv.compile(schema);
    told[file] = documents.map((one) => validate(JSON.parse(fs.readFileSync(one))));
  } catch (error) { told[file] = error.message; }
}
console.log(JSON.stringify(told));
"""
DEREFERENCE = """
const {parseOpenRPCDocument, validateOpenRPCDocument} = require("@open-rpc/schema-utils-js");
const given = JSON.parse(require("fs").readFileSync(process.argv[2]));
parseOpenRPCDocument(given, {dereference: true}).then(
  (made) => console.log(JSON.stringify([validateOpenRPCDocument(given) === true, made.methods.length])));
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a script beside the packages with arguments, and gives what it prints."""
    npm = find_npm()
    if npm is None:
        pytest.skip("there is no npm")
    folder = tmp_path_factory.mktemp("ajv")
    env = {**os.environ, "PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [*npm, "install", "--silent", "--no-audit", "--no-fund", *PACKAGES],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"npm cannot install {', '.join(PACKAGES)}: {done.stderr[-300:]}")
    program = npm[0] if len(npm) == 2 else shutil.which("node", path=env["PATH"])
    assert program is not None

    def run(script: str, *arguments: str) -> Any:
        (folder / "script.cjs").write_text(script)
        made = subprocess.run(
            [program, "script.cjs", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    return run


def documents() -> list[tuple[Path, bool]]:
    good = sorted((STORE / "test" / "tamis-tool").glob("*.json"))
    bad = sorted((STORE / "negative_test" / "tamis-tool").glob("*.json"))
    assert len(good) > 3 and len(bad) > 3
    return [*((one, True) for one in good), *((one, False) for one in bad)]


@pytest.mark.slow
def test_every_schema_is_one_for_ajv_in_strict_mode_and_judges_the_stores_documents(node: Any) -> None:  # F7
    of_tools = [str(path) for path, _ in documents()]
    asked = {str(path): of_tools if path.name.startswith("tool.") else [] for path in SCHEMAS}
    told = node(CHECK, json.dumps([EDITOR_WORDS, asked]))
    for path in SCHEMAS:
        wanted = [good for _, good in documents()] if asked[str(path)] else []
        assert told[str(path)] == wanted, path.name


@pytest.mark.slow
def test_the_openrpc_document_can_be_dereferenced(node: Any) -> None:  # F8: a circle never ended
    file = ROOT / "schemas" / "openrpc.json"
    assert node(DEREFERENCE, str(file)) == [True, len(json.loads(file.read_text("utf-8"))["methods"])]


def test_no_part_of_the_openrpc_document_leads_back_to_itself() -> None:  # F8
    parts = json.loads((ROOT / "schemas" / "openrpc.json").read_text("utf-8"))["components"]["schemas"]
    below = {name: set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(part))) for name, part in parts.items()}
    while leaves := [name for name, others in below.items() if not others]:
        for name in leaves:
            del below[name]
        for others in below.values():
            others.difference_update(leaves)
    assert below == {}


def test_each_schema_has_an_address_of_its_own() -> None:  # F7
    ids = [json.loads(path.read_text("utf-8"))["$id"] for path in SCHEMAS]
    assert len(set(ids)) == len(ids) == 4
    assert all(one.startswith("https://") for one in ids)


def test_the_entry_for_schemastore_fits_the_schema() -> None:  # F7
    entry = json.loads((STORE / "catalog-entry.json").read_text("utf-8"))
    schema = json.loads((ROOT / "schemas" / "tool.schema.json").read_text("utf-8"))
    assert entry["url"] == schema["$id"]
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    words, _, page = schema["description"].partition("\n")
    assert words and page.startswith("https://")
