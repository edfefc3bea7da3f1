"""What the manifest and the sources of the VS Code extension declare (editors 1.3 rows 1, 3, 5-7, 12, 18, 25, 27, 28, 31)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tamis.server.cli.main import main
from tamis.server.lsp.features.execute_command import COMMANDS
from tests.editors.extension import MANIFEST, SOURCE, TEXTS


def test_activates_for_json_and_tool_folders_and_not_for_every_text() -> None:  # row 1, as defect 3 changed it
    events: list[str] = MANIFEST["activationEvents"]
    assert {"workspaceContains:**/*.tool.json", "onLanguage:json", "onLanguage:jsonc"} <= set(events)
    assert not {"*", "onStartupFinished", "onLanguage:markdown"} & set(events)


def test_the_json_service_is_given_no_schema() -> None:  # row 3, as defects 1 and 4 changed it
    assert "jsonValidation" not in MANIFEST["contributes"]
    assert "schemaDiagnostics" not in "".join(path.read_text("utf-8") for path in (SOURCE / "src").glob("*.ts"))


def texts_of(value: Any) -> set[str]:
    """The keys of texts that a part of the manifest takes from the language files."""
    if isinstance(value, str):
        return {value[1:-1]} if re.fullmatch(r"%[\w.-]+%", value) else set()
    parts: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return {key for part in parts for key in texts_of(part)}


def test_every_text_of_the_manifest_is_there_in_both_languages() -> None:  # row 27
    keys = texts_of(MANIFEST)
    for name in ("package.nls.json", "package.nls.zh-cn.json"):
        assert set(json.loads((SOURCE / name).read_text("utf-8"))) == keys, name


def test_every_text_of_the_client_is_there_in_chinese() -> None:  # row 27
    source = "".join(path.read_text("utf-8") for path in (SOURCE / "src").glob("*.ts"))
    said = {json.loads(f'"{text}"') for text in re.findall(r'\bt\(\s*"((?:[^"\\]|\\.)*)"', source)}
    bundle: dict[str, str] = json.loads((SOURCE / "l10n" / "bundle.l10n.zh-cn.json").read_text("utf-8"))
    assert set(bundle) == said
    for english, chinese in bundle.items():
        assert sorted(re.findall(r"\{\d\}", english)) == sorted(re.findall(r"\{\d\}", chinese)), english


def test_no_command_of_the_palette_has_the_id_of_one_of_the_server() -> None:  # row 12
    assert not {command["command"] for command in MANIFEST["contributes"]["commands"]} & set(COMMANDS)


def test_mcp_is_offered_only_where_the_user_said_so() -> None:  # row 25
    settings = {
        name: one for group in MANIFEST["contributes"]["configuration"] for name, one in group["properties"].items()
    }
    assert settings["tamis.mcp.register"]["default"] is False
    assert MANIFEST["contributes"]["mcpServerDefinitionProviders"] == [{"id": "tamis.tools", "label": "%mcp%"}]


def test_what_a_gallery_shows_is_there() -> None:  # row 28
    assert (SOURCE / MANIFEST["icon"]).read_bytes().startswith(b"\x89PNG")
    assert {"Testing", "Snippets", "Linters"} <= set(MANIFEST["categories"])
    assert MANIFEST["preview"] is False
    assert (SOURCE / "CHANGELOG.md").is_file()
    assert "no telemetry" in (SOURCE / "SUPPORT.md").read_text("utf-8")


def test_the_client_has_no_code_that_reaches_a_network() -> None:  # row 31
    """Its server speaks over pipes; what the client opens in a browser a person asked for."""
    reaching = re.compile(
        r"""["'](?:node:)?(?:https?|http2|net|tls|dgram|dns|inspector)["']"""
        r"|\b(?:fetch|WebSocket|XMLHttpRequest|EventSource|createTelemetryLogger|TelemetryLogger)\b"
        r"|TransportKind\.(?:socket|pipe)"
    )
    sources = sorted((SOURCE / "src").rglob("*.?ts")) + sorted((SOURCE / "src").rglob("*.ts"))
    found = {path.name: reaching.findall(path.read_text("utf-8")) for path in sources}
    assert len(found) > 10
    assert not {name: words for name, words in found.items() if words}


def test_each_kind_of_file_has_its_language_and_its_snippets() -> None:  # rows 2, 20
    languages = {
        pattern: one["id"]
        for one in MANIFEST["contributes"]["languages"]
        for pattern in (*one.get("extensions", ()), *one.get("filenamePatterns", ()))
    }
    assert languages == {
        "*.tool.json": "json",
        "*.tool.jsonc": "jsonc",
        ".tam": "tam",
        ".vcp": "vcp",
        ".action": "toolaction",
    }
    offered: dict[str, set[str]] = {
        one["language"]: {entry["prefix"] for entry in json.loads((SOURCE / one["path"]).read_text("utf-8")).values()}
        for one in MANIFEST["contributes"]["snippets"]
    }
    assert set(offered) == {*languages.values(), "markdown"}
    assert {"tamis-tool", "tamis-service"} <= offered["json"]
    assert offered["markdown"] == {"tam", "tam2", "vcp", "action"}


def test_the_walkthrough_has_a_page_for_each_step() -> None:  # row 19
    (walkthrough,) = MANIFEST["contributes"]["walkthroughs"]
    assert [step["id"] for step in walkthrough["steps"]] == ["server", "manifest", "fix", "run", "mcp"]
    for step in walkthrough["steps"]:
        assert (SOURCE / step["media"]["markdown"]).is_file(), step["id"]
        assert {step["title"].strip("%"), step["description"].strip("%")} <= set(TEXTS)


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
    running = {f"tamis.execution.{name}" for name in ("enable", "timeoutMs", "requireConfirmation")}
    programs = {f"tamis.{name}" for name in ("path", "args", "interpreter", "importStrategy", "roots", "mcp.register")}
    assert launching == programs | running
    assert set(limited["restrictedConfigurations"]) == launching


def test_every_setting_is_described_and_ordered() -> None:
    for group in MANIFEST["contributes"]["configuration"]:
        for name, schema in group["properties"].items():
            assert TEXTS[schema["markdownDescription"].strip("%")].endswith("."), name
            assert isinstance(schema["order"], int), name
            assert len(schema.get("enumDescriptions", [])) == len(schema.get("enum", [])), name


def test_every_declared_command_is_registered() -> None:  # row 5
    listed = re.findall(r'^  "(tamis\.\w+)",$', (SOURCE / "src" / "commands.ts").read_text("utf-8"), re.M)
    declared = [command["command"] for command in MANIFEST["contributes"]["commands"]]
    assert sorted(declared) == sorted(listed)
    # Each is handled somewhere else than where it is listed.
    handled = "".join(path.read_text("utf-8") for path in (SOURCE / "src").glob("*.ts") if path.name != "commands.ts")
    assert [name for name in declared if f'"{name}"' not in handled] == []


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


STRING = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')
WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
NOT_SHOWN = (
    "log.",  # logs are English
    "require(",
    "What happened, and what did you expect?",  # a report, which maintainers read
    '"tamis call …"',  # names of forms
    '"MCP tools/call"',
    "error.message : String(error)",  # what the server said
)


def test_no_text_that_users_see_is_outside_the_translations() -> None:  # row 27
    found: list[str] = []
    for path in (SOURCE / "src").glob("*.ts"):
        for line in path.read_text("utf-8").split("\n"):
            code = re.sub(r"^\s*(//|/?\*).*|\s//\s.*", "", line)
            code = re.sub(r'\bt\(\s*"(?:[^"\\]|\\.)*"', "", code)
            if not any(one in code for one in NOT_SHOWN):
                plain = [re.sub(r"\$\{.*?\}(?!`)", "", one) for one in STRING.findall(code)]
                found += [f"{path.name}: {one}" for one in plain if WORDS.search(one) and not re.search("[<>=]", one)]
    assert found == []


def test_the_problem_matcher_reads_what_check_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # row 18
    (tmp_path / "a.tool.json").write_text('{"toolId": "a:b", "description": "x"}\n')
    monkeypatch.chdir(tmp_path)
    main(["check"])
    printed = capsys.readouterr().out.splitlines()
    (matcher,) = MANIFEST["contributes"]["problemMatchers"]
    pattern = matcher["pattern"]
    found = [one for line in printed if (one := re.match(pattern["regexp"], line))]
    told = {(one[pattern["file"]], one[pattern["severity"]], one[pattern["code"]]) for one in found}
    assert ("a.tool.json", "error", "MF501") in told
    assert len(found) == len([line for line in printed if "[" in line])
