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
    ("[sandbox]\nopenFiles = 3\n", "3", "warning"),
    ("[sandbox]\nfileBytes = 10\n", "10", "warning"),
    ("[sandbox]\nmemoryBytes = 0\n", "0", "error"),
    ('[protocol]\nalso = ["tma"]\n', '"tma"', "error"),
]


def findings(path: Path, text: str) -> list[tuple[str, str, str]]:
    faults = disk_faults(path.parent, text)
    snapshot = Snapshot(str(path), kind_of(str(path), ""), text, None, settings_faults=faults)
    return [(one.code, text[slice(*one.span)], one.severity) for one in diagnose(snapshot)]


@pytest.mark.parametrize(("text", "place", "level"), WRONG)
def test_a_setting_without_effect_is_found_at_its_item(text: str, place: str, level: str, tmp_path: Path) -> None:
    assert findings(tmp_path / "tamis.toml", text) == [("ST804", place, level)]


def test_a_limit_below_the_least_is_told_with_the_least_and_the_default_is_not() -> None:
    path = "/w/tamis.toml"
    (one,) = diagnose(Snapshot(path, kind_of(path, ""), "[sandbox]\nopenFiles = 3\nfileBytes = 4096\n", None))
    assert one.message == "'sandbox.openFiles': no run can be held to 3; 32 holds in its place, write 32 or more"
    (one,) = diagnose(Snapshot(path, kind_of(path, ""), "[sandbox]\nprocesses = 0\nwallMs = 0\n", None))
    assert one.message == "'sandbox.processes': 0 lets no script run; write 1 or more"


def test_an_index_that_is_no_address_is_told_by_check_and_doctor(tmp_path: Path) -> None:
    text = '[dependencies]\nindexes = ["https://a.example/simple", "x"]\n'
    path = str(tmp_path / "tamis.toml")
    (one,) = diagnose(Snapshot(path, kind_of(path, ""), text, None))
    words = "'x' is no address of a package index: it begins with neither https://, http:// nor file://; write it as https://host/path"
    assert (one.code, text[slice(*one.span)], one.message) == ("ST804", '"x"', f"'dependencies.indexes': {words}")
    (told,) = configuration(tmp_path, text)
    assert (told["state"], told["text"]) == ("error", f"dependencies.indexes: {words}")


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
