"""What settings name that opens nothing or is not there: the same in the editor, in `tamis check` and in `tamis doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.server.analysis.diagnostics import diagnose
from tamis.server.analysis.kinds import kind_of
from tamis.server.analysis.snapshot import Snapshot
from tamis.server.cli.main import main
from tamis.server.runtime.doctor import examine
from tamis.server.runtime.runtime import Runtime
from tamis.server.runtime.settings.faults import disk_faults
from tests.lsp.lsp_client import Client

WRONG: list[tuple[str, str, str]] = [
    ('[policy]\nallowHosts = ["a.com", "https://a.com"]\n', '"https://a.com"', "error"),
    ('[policy]\nallowCidrs = ["10.1.2.3/8"]\n', '"10.1.2.3/8"', "error"),
    ('[policy]\nreadRoots = ["data"]\n', '"data"', "error"),
    ('[policy]\nwriteRoots = ["/tmp", "/no/such/place"]\n', '"/no/such/place"', "warning"),
    ('tools = [".", "nope"]\n', '"nope"', "error"),
    ('workflows = ["nope"]\n', '"nope"', "error"),
    ('profile = "nope.json"\n', '"nope.json"', "error"),
    ('environment = "dve"\n[environments.dev]\nx = 1\n', '"dve"', "error"),
    ('[protocol]\ndefault = "vpc"\n', '"vpc"', "error"),
    ('[protocol]\nalso = ["tma"]\n', '"tma"', "error"),
]


def findings(path: Path, text: str) -> list[tuple[str, str, str]]:
    faults = disk_faults(path.parent, text)
    snapshot = Snapshot(str(path), kind_of(str(path), ""), text, None, settings_faults=faults)
    return [(one.code, text[slice(*one.span)], one.severity) for one in diagnose(snapshot)]


@pytest.mark.parametrize(("text", "place", "level"), WRONG)
def test_a_setting_without_effect_is_found_at_its_item(text: str, place: str, level: str, tmp_path: Path) -> None:
    assert findings(tmp_path / "tamis.toml", text) == [("ST804", place, level)]


def test_what_is_there_is_silent(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    text = f'tools = ["tools"]\n[policy]\nreadRoots = ["{tmp_path}"]\nallowHosts = ["a.com"]\n[protocol]\ndefault = "tam"\n'
    assert findings(tmp_path / "tamis.toml", text) == []


def test_a_misspelt_protocol_has_the_fix(tmp_path: Path) -> None:
    text = '[protocol]\ndefault = "vpc"\n'
    path = str(tmp_path / "tamis.toml")
    (one,) = diagnose(Snapshot(path, kind_of(path, ""), text, None, settings_faults=disk_faults(tmp_path, text)))
    assert one.fix is not None
    assert one.fix.edits[0].new_text == '"vcp"'


def test_the_wire_and_the_command_line_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'profile = "nope.json"\n'
    (tmp_path / "tamis.toml").write_text(text)
    uri = (tmp_path / "tamis.toml").as_uri()
    with Client() as client:
        client.start(tmp_path)
        client.open(uri, text, "toml")
        assert [item["code"] for item in client.published(uri)] == ["ST804"]
    assert main(["check", str(tmp_path / "tamis.toml")]) == 1
    assert "ST804" in capsys.readouterr().out


def test_a_wrong_entry_of_a_table_stands_on_its_value(tmp_path: Path) -> None:
    text = '[resources]\ngood = "docs"\nnotes = 3\n'
    path = str(tmp_path / "tamis.toml")
    (one,) = diagnose(Snapshot(path, kind_of(path, ""), text, None))
    assert (text[slice(*one.span)], one.message) == ("3", "'resources.notes' must be a text, not 3")


def configuration(root: Path, text: str) -> list[dict[str, Any]]:
    (root / "tamis.toml").write_text(text)
    return [one for one in examine(Runtime(root))["checks"] if one["name"] == "configuration"]


def test_doctor_warns_of_unknown_rules_with_the_line(tmp_path: Path) -> None:
    (one,) = configuration(tmp_path, '# a\n[lint]\nnope = "off"\n')
    assert one["state"] == "warning"
    assert f"line 3 of {tmp_path / 'tamis.toml'}" in one["remedy"]


def test_doctor_says_the_line_of_what_opens_nothing(tmp_path: Path) -> None:
    (one,) = configuration(tmp_path, '[policy]\nallowHosts = ["https://a.com"]\n')
    assert one["state"] == "error"
    assert "line 2 of" in one["remedy"]
