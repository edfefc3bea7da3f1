"""The extension for Zed: compiled against a stand-in of Zed's crate, which no registry is needed for, and asked what Zed asks (issue 17).

What is shown is that it compiles with the signatures of the crate's sources and what it answers. Zed itself is not driven.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import ROOT
from tests.lsp.editor import Editor
from tests.sample_tools import action, make_tool

EXTENSION = ROOT / "editors" / "zed"
STAND_IN = Path(__file__).with_name("zed_api") / "lib.rs"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that asks the extension what Zed asks when it starts a server."""
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("no Rust compiler (rustc) on the PATH")
    folder = tmp_path_factory.mktemp("zed")
    (folder / "main.rs").write_text(
        f"#[path = {json.dumps(str(EXTENSION / 'src' / 'lib.rs'), ensure_ascii=False)}]\nmod extension;\n"
        "fn main() { zed_extension_api::drive(extension::registered()) }\n",
        "utf-8",
    )
    options = [rustc, "--edition", "2021", "-D", "warnings", "--out-dir", str(folder)]
    library = ["--crate-type", "rlib", "--crate-name", "zed_extension_api", str(STAND_IN)]
    program = ["--extern", f"zed_extension_api={folder / 'libzed_extension_api.rlib'}", str(folder / "main.rs")]
    for words in (library, program):
        done = subprocess.run([*options, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder / "main"


def asked(driver: Path, **zed: str) -> dict[str, Any]:
    """What the extension answers where Zed has these settings below ``lsp.tamis``; ``which`` is what stands on the PATH."""
    names = {"which": "ZED_WHICH_tamis"}
    env = {"PATH": os.defpath, **{names.get(name, f"ZED_tamis_{name}"): value for name, value in zed.items()}}
    done = subprocess.run([str(driver)], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_program_of_the_path_is_started_in_the_shells_environment(driver: Path) -> None:
    said = asked(driver, which="/bin/tamis")
    env = ["PATH=/shell", "FROM_SHELL=1"]
    assert said == {
        "command": {"command": "/bin/tamis", "args": ["lsp"], "env": env},
        "options": None,
        "configuration": None,
    }


def test_what_the_user_names_wins(driver: Path) -> None:
    said = asked(driver, which="/bin/tamis", path="/own/tamis", arguments="lsp -v", env="A=b")["command"]
    assert said == {"command": "/own/tamis", "args": ["lsp", "-v"], "env": ["PATH=/shell", "FROM_SHELL=1", "A=b"]}
    assert asked(driver, which="/bin/tamis", env="A=b")["command"]["args"] == ["lsp"]


def test_a_program_that_is_missing_is_said_with_the_remedy(driver: Path) -> None:
    fault = asked(driver)["command"]["fault"]
    assert "'tamis' is not on the PATH" in fault
    assert "pip install" in fault
    assert asked(driver, which="/bin/tamis", fault="unreadable settings") == {
        name: {"fault": "unreadable settings"} for name in ("command", "options", "configuration")
    }


def test_the_server_gets_the_options_and_its_section_of_the_settings(driver: Path, tmp_path: Path) -> None:
    make_tool(tmp_path, "t:echo")
    said = asked(
        driver,
        which=str(Path(sys.executable).with_name("tamis")),
        options='{"trusted": false}',
        settings='{"codeLens": {"enable": false}}',
    )
    assert said["options"] == {"trusted": False}
    assert said["configuration"] == {"tamis": {"codeLens": {"enable": False}}}
    # As Zed goes on: the options in `initialize`, and the asked section of the configuration.
    with Editor(cwd=tmp_path) as editor:
        editor.replies["workspace/configuration"] = [said["configuration"]["tamis"]]
        profile = json.loads((ROOT / "tests" / "lsp" / "editor_profiles.json").read_text("utf-8"))
        zed = next(one for one in profile if one["name"].startswith("Zed"))
        params = {"processId": None, "rootUri": tmp_path.as_uri(), "initializationOptions": said["options"]}
        editor.call("initialize", {**params, "capabilities": zed["capabilities"]})
        editor.notify("initialized", {})
        asks = editor.until(lambda one: one.get("method") == "workspace/configuration")
        assert [item["section"] for item in asks["params"]["items"]] == ["tamis"]
        uri = (tmp_path / "a.txt").as_uri()
        item = {"uri": uri, "languageId": "plaintext", "version": 1, "text": action("t:echo", text="a")}
        editor.notify("textDocument/didOpen", {"textDocument": item})
        assert editor.call("textDocument/codeLens", {"textDocument": {"uri": uri}}) in ([], None)


def test_the_manifest_names_the_server_and_the_languages_that_zed_knows() -> None:
    manifest = tomllib.loads((EXTENSION / "extension.toml").read_text("utf-8"))
    assert (manifest["id"], manifest["schema_version"]) == ("tamis", 1)
    server = manifest["language_servers"]["tamis"]
    assert server["languages"] == ["JSON", "JSONC", "Markdown", "Plain Text", "TOML", "Python"]
    assert set(server["language_ids"]) == set(server["languages"])
    crate = tomllib.loads((EXTENSION / "Cargo.toml").read_text("utf-8"))
    assert crate["lib"]["crate-type"] == ["cdylib"]
    assert crate["package"]["version"] == manifest["version"]
    assert list(crate["dependencies"]) == ["zed_extension_api"]
