"""Documents that are written from the code are not stale, and what they name is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from tamis.protocols import contract
from tamis.protocols.catalogue import CATALOGUE
from tamis.protocols.manifest.json_schema import manifest_schema
from tamis.protocols.manifest.reading import FIELDS, LIMITS
from tamis.protocols.manifest.security import CAPABILITIES
from tamis.protocols.reader import read_text
from tamis.server.cli.main import COMMANDS
from tamis.server.rpc import methods as rpc_methods
from tamis.server.rpc import session as rpc_errors
from tamis.server.rpc.methods import RpcServer
from tamis.server.runtime.settings.config import Settings
from tamis.server.runtime.settings.loading import load_settings
from tamis.server.runtime.settings.rule_pages import page_text

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_diagnostics_page_is_written_from_the_catalogue() -> None:
    done = subprocess.run(
        [sys.executable, "tools/diagnostics_page.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_finding_is_explained_and_told_how_to_switch_off() -> None:
    for code in CATALOGUE:
        text = page_text(code)
        assert "**What to do:**" in text, f"{code} is not in tools/explanations.txt"
        assert "[lint]" in text or "cannot be switched off" in text


def test_every_code_has_one_slug_and_every_slug_one_code_in_its_group() -> None:
    seen: set[tuple[str, str]] = set()
    for code, entry in CATALOGUE.items():
        assert re.fullmatch(r"(TC|AX|TM|VC|HM|VA|MF|LN|TH|ST|PF|WF)\d{3}", code)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.slug)
        assert (code[:2], entry.slug) not in seen
        seen.add((code[:2], entry.slug))


PAGES = [
    *("README.md", "ARCHITECTURE.md", "examples/README.md", "editors/neovim/README.md", "editors/vscode/README.md"),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES)
def test_files_and_sections_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for name, section in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), f"{page} links to {name}"
        if section:
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in anchors, f"{page} links to {name}#{section}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_commands_that_there_are(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"(?:`|^\$ |^)tamis ([a-z]+)", text, re.M)) - {"mcp"}  # ARCHITECTURE.md: "later `tamis mcp`"
    assert named <= {*COMMANDS}, page


@pytest.mark.parametrize("page", PAGES)
def test_no_page_installs_a_package_that_is_not_published(page: str) -> None:
    assert not re.search(r"(pip|uv tool|pipx) install tamis", (ROOT / page).read_text("utf-8"))


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    listed = set(re.findall(r"\]\(([a-z]+\.md)\)", index))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}


def first_cells(page: str) -> set[str]:
    """What stands in code marks in the first cells of a page's tables."""
    rows = re.findall(r"^\| ([^|]*) \|", (ROOT / "docs" / page).read_text("utf-8"), re.M)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def manifest_fields(schema: dict[str, Any], prefix: str) -> Iterator[str]:
    """The leaves of the manifest's own JSON Schema, which a test holds against the reader."""
    for name, part in schema.get("properties", {}).items():
        below = [*manifest_fields(part, f"{prefix}{name}.")]
        below += manifest_fields(part.get("items", {}), f"{prefix}{name}[].")
        yield from below or [f"{prefix}{name}"]


def test_the_manifest_page_names_every_field_and_no_other() -> None:
    wanted = {*manifest_fields(manifest_schema(), "")}
    assert {*FIELDS} == {re.split(r"[.\[]", name)[0] for name in wanted} - {"$schema"}
    assert {f"execution.limits.{name}" for name in LIMITS} <= wanted
    named = first_cells("manifest.md")
    assert wanted - named == set()
    paths = {
        name for name in named if re.match(r"(handler|securityContext|examples\[\]|execution|protocolConfig)\.", name)
    }
    assert paths - {"execution.limits"} <= wanted


def test_the_manifest_page_names_every_value_of_its_enumerations() -> None:
    text = (ROOT / "docs" / "manifest.md").read_text("utf-8")
    for word in ("external-script", "service-method", "python", "nodejs", "bun", "sync", "async", *CAPABILITIES):
        assert re.search(rf'`"?{word}"?`', text), word


def settings_of(kind: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every setting with its type and default."""
    hints = get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        wanted = hints[field.name]
        name = f"{prefix}{field.encode_name}"
        if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
            yield from settings_of(wanted, f"{name}.")
        else:
            yield name, wanted, field.default


def test_the_settings_page_names_every_setting_with_its_values_and_default() -> None:
    rows = {
        row[0].strip("` "): row[1:]
        for line in (ROOT / "docs" / "settings.md").read_text("utf-8").splitlines()
        if line.startswith("| `") and len(row := line.strip("| ").split(" | ")) > 2
    }
    for name, wanted, default in settings_of(Settings):
        assert name in rows, name
        if get_origin(wanted) is Literal:
            for value in get_args(wanted):
                assert f'`"{value}"`' in rows[name][0], (name, value)
        if isinstance(default, bool):
            assert rows[name][1] == f"`{str(default).lower()}`", name
        elif isinstance(default, int):
            assert rows[name][1].startswith(f"`{default}`"), name
        elif isinstance(default, str):
            assert rows[name][1].startswith(f'`"{default}"`'), name
    known = {name for name, _, _ in settings_of(Settings)}
    assert rows.keys() - known <= {"sandbox.interpreters", "sandbox.runners"}


def test_every_setting_of_the_example_configuration_exists() -> None:
    path = ROOT / "examples" / "tamis.toml"
    loaded = load_settings(path.parent)
    assert loaded.problems == ()
    plain = msgspec.json.decode(msgspec.json.encode(Settings()))
    for table, value in tomllib.loads(path.read_text("utf-8")).items():
        # The file says that every value is the default but the folders.
        if isinstance(value, dict):
            assert {name: plain[table][name] for name in value} == value
        elif table not in ("tools", "workflows"):
            assert plain[table] == value


def test_the_rpc_page_names_every_method_and_no_other() -> None:
    text = (ROOT / "docs" / "rpc.md").read_text("utf-8")
    table = text.partition("## Methods")[2].partition("\n\n| param")[0]
    assert set(re.findall(r"^\| `([\w/.]+)` \|", table, re.M)) == {*RpcServer(ROOT).session.methods}
    readme = (ROOT / "README.md").read_text("utf-8")
    for method in RpcServer(ROOT).session.methods:
        assert method == "shutdown" or f"`{method}`" in readme


def test_the_rpc_page_names_every_parameter_field_and_error() -> None:
    text = (ROOT / "docs" / "rpc.md").read_text("utf-8")
    structs = [
        kind
        for module in (contract, *rpc_methods.GROUPS)
        for kind in (getattr(module, name) for name in dir(module))
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__.startswith(module.__name__)
    ]
    unused = {"FileDiagnostics", "CheckResult", "Loss"}  # of `tamis check`; no export has losses yet
    names = {
        field.encode_name for kind in structs if kind.__name__ not in unused for field in msgspec.structs.fields(kind)
    }
    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()
    for name, number in vars(rpc_errors)["_NUMBERS"].items():
        assert name in text
        assert str(number) in text
    for word in (*get_args(contract.Status), *get_args(contract.ErrorType)):
        assert word in text


def test_the_page_on_running_says_what_stands_for_the_seeds_tester() -> None:  # V67, seed 001 §13
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    (line,) = (line for line in page.splitlines() if "tool-calling-tester" in line)
    assert "`tamis run`" in line and "lenses" in line


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for command in COMMANDS:
        assert f"tamis {command}" in text


def test_no_path_of_this_machine_and_no_registry_address_is_in_a_tracked_file() -> None:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    here = str(ROOT).encode()
    for name in done.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert here not in content, name
            if name.endswith("package-lock.json"):
                assert b'"resolved"' not in content, name
            if name.endswith(".lock"):
                assert not re.search(rb"--(?:index-url|extra-index-url|find-links)|://", content), name


def test_modules_that_a_docstring_names_exist() -> None:
    rooms = ("protocols", "sandbox", "environments", "server", "client")
    for path in (file for room in rooms for file in (ROOT / room).rglob("*.py")):
        for name in re.findall(r"``([a-z_]+(?:/[a-z_]+)*\.py)``", path.read_text("utf-8")):
            around = (
                path.parent,
                *(parent for parent in path.parents if parent != ROOT.parent),
                ROOT / "server/runtime",
            )
            assert any((folder / name).exists() for folder in around), f"{path.relative_to(ROOT)} names {name}"


def test_the_page_on_protocols_shows_several_calls_in_one_vcp_block() -> None:
    """Strangers: the example is read as the page says."""
    page = (ROOT / "docs" / "protocols.md").read_text("utf-8")
    (shown,) = re.findall(r"```vcp\n(.*?)\n```\n\n```json\n(.*?)\n```", page, re.S)
    document = read_text(shown[0], "vcp")
    assert document.diagnostics == [] and len(document.blocks) == 1
    assert [{"toolId": call.tool_id, "args": call.args(shown[0])} for call in document.calls] == json.loads(shown[1])
