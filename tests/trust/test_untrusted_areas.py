"""What the rest of the suite shows for an operator in a folder of their own, shown for a user who trusted nothing too (trust 1).

The suite sets ``TAMIS_TRUST``; these areas could hide behind that: settings and their findings, doctor, loader, examples, demo.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.server.runtime.settings.loading import load_settings
from tests.cli.in_process import Tamis
from tests.trust.conftest import World

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
AREAS = (
    "tests/lsp/test_settings_findings.py",
    "tests/lsp/test_settings_faults.py",
    "tests/runtime/test_config.py",
    "tests/runtime/test_doctor.py",
    "tests/runtime/test_loader.py",
    "tests/runtime/test_registry.py",
    "tests/examples/test_workflows.py",
)
_ITS_ITEM = "tests/lsp/test_settings_faults.py::test_a_setting_without_effect_is_found_at_its_item"
NEED_TRUST = {
    "tests/runtime/test_doctor.py::test_nsjail_says_what_stands_on_something_else": "the folder chooses sandbox.backend",
    "tests/runtime/test_doctor.py::test_no_sandbox_is_an_error_with_a_remedy": "the folder chooses sandbox.backend",
    "tests/runtime/test_doctor.py::test_roots_that_open_nothing_or_everything_are_named": "the folder sets policy.readRoots",
    "tests/lsp/test_settings_faults.py::test_doctor_says_the_line_of_what_opens_nothing": "the folder sets policy.readRoots",
    "tests/runtime/test_config.py::test_the_file_is_read_with_camel_case_names": "the folder sets settings of every class",
    rf'{_ITS_ITEM}[[policy]\nallowHosts = ["a.com", "https://a.com"]\n-"https://a.com"-error]': "what the folder asks for is told as that, and not looked for",
    rf'{_ITS_ITEM}[[policy]\nallowCidrs = ["10.1.2.3/8"]\n-"10.1.2.3/8"-error]': "what the folder asks for is told as that, and not looked for",
    rf'{_ITS_ITEM}[[policy]\nreadRoots = ["data"]\n-"data"-error]': "what the folder asks for is told as that, and not looked for",
    rf'{_ITS_ITEM}[[policy]\nwriteRoots = ["/tmp", "/no/such/place"]\n-"/no/such/place"-warning]': "what the folder asks for is told as that, and not looked for",
    rf'{_ITS_ITEM}[[protocol]\ndefault = "vpc"\n-"vpc"-error]': "what the folder asks for is told as that, and not looked for",
    rf'{_ITS_ITEM}[[protocol]\nalso = ["tma"]\n-"tma"-error]': "what the folder asks for is told as that, and not looked for",
    "tests/lsp/test_settings_faults.py::test_what_is_there_is_silent": "the folder sets policy.readRoots",
    "tests/lsp/test_settings_faults.py::test_a_misspelt_protocol_has_the_fix": "the folder sets protocol.default",
    "tests/lsp/test_settings_faults.py::test_an_index_that_is_no_address_is_told_by_check_and_doctor": "the folder sets dependencies.indexes",
}
"""The tests of these areas that hold only where the folder's word is the operator's, with what it says."""


def suite(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--untrusted", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_areas_hold_for_a_user_who_trusted_nothing_but_for_the_tests_that_are_listed() -> None:
    done = suite(*AREAS)
    assert [name for name in NEED_TRUST if f"FAILED {name}" not in done.stdout] == [], done.stdout[-6000:]
    assert f"{len(NEED_TRUST)} failed, " in done.stdout, done.stdout[-6000:]
    assert " error" not in done.stdout.splitlines()[-1]


# The examples


ASKING = {
    "web:fetch": "reaches a host, which only the operator's policy.allowHosts opens; its examples reach none",
    "notes:search": "writes to .cache in its own folder",
}
"""The examples that ask for anything in their manifests, and why."""
PACKAGES = {"image:thumbnail": "pillow", "yaml:convert": "yaml"}
"""The examples that install packages first, which has its own tests."""


@pytest.fixture
def examples(world: World) -> Path:
    """A stranger's copy of the examples."""
    shutil.rmtree(world.root)
    shutil.copytree(EXAMPLES, world.root)
    subprocess.run(["chmod", "-R", "go-w,a+rX", str(world.root)], check=True)
    world.write(world.user, '[dependencies]\ninstall = "off"\n')
    return world.root


@pytest.fixture
def tamis(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tamis:
    return Tamis(world.root, monkeypatch, capsys)


def test_the_examples_ask_for_nothing_that_needs_trust(examples: Path) -> None:
    loaded = load_settings(examples)
    assert (loaded.asks, loaded.not_in_force, loaded.problems, loaded.closed) == ((), (), (), "")
    asking: set[str] = set()
    for path in (examples / "tools").rglob("*.tool.json"):
        manifest: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", path.read_text("utf-8")))
        if manifest.get("securityContext"):
            asking.add(manifest["toolId"])
    assert asking == {*ASKING}


def test_every_example_of_every_tool_runs_untrusted(examples: Path, tamis: Tamis) -> None:
    done = tamis("test", "--json")
    told = done.json()
    assert "not in force" not in done.err
    failed = {one["toolId"] for one in told["tests"] if one["outcome"] == "failed"}
    assert failed <= {*PACKAGES}
    skipped = {one["toolId"]: one["reason"] for one in told["tests"] if one["outcome"] == "skipped"}
    assert all("no bun was found" in reason for reason in skipped.values()), skipped
    assert {one["toolId"] for one in told["tests"] if one["outcome"] == "passed"} >= {*ASKING}
    assert told["passed"] > 25


def test_a_host_that_only_a_manifest_asks_for_stays_closed(examples: Path, tamis: Tamis) -> None:
    done = tamis("call", "web:fetch", "--yes", "--json", "--args", '{"url": "https://example.com/"}')
    result = done.json()
    assert result["permissions"]["granted"]["hosts"] == []
    assert result["status"] == "error"


@pytest.mark.parametrize("name", ["action", "tam", "vcp", "repairs"])
def test_the_transcripts_run_untrusted(examples: Path, tamis: Tamis, name: str) -> None:
    done = tamis("run", "--yes", "--json", f"transcripts/{name}.md")
    results = done.json()["results"]
    assert [one["status"] for one in results if one["status"] != "success"] == [], done.out[-2000:]
    assert len(results) >= 2
    assert "not in force" not in done.err


def test_the_demo_s_command_runs_untrusted(tamis: Tamis) -> None:
    """The last line of `./demo`, with what it sets up replaced by what is here."""
    line = (ROOT / "demo").read_text("utf-8").strip().splitlines()[-1]
    words = shlex.split(line.replace("$here", str(ROOT)))
    assert words[:3] == ["exec", "$programs/tamis", "run"]
    assert words[-1].startswith("${@:-")
    text = words[-1].removeprefix("${@:-").removesuffix("}")
    done = tamis(*words[2:-1], text)
    assert done.code == 0, done.err
    assert done.out.count("executed successfully") == 3
    assert "not in force" not in done.err
