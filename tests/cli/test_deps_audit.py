"""``tamis deps audit`` (T16, D97)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tamis.environments.model import Meta
from tamis.environments.store import Entry
from tamis.server.cli.main import main
from tamis.server.runtime.handlers.script import dependencies
from tests.sample_tools import make_tool


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_tool(tmp_path, "t:needy")
    base = folder if folder.is_dir() else folder.parent
    (base / "requirements.txt").write_text("some-package==1.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def installed(monkeypatch: pytest.MonkeyPatch, *packages: tuple[str, str]) -> None:
    """As if these were what was installed for every tool."""
    looked = dependencies.ToolDependencies(
        tool_id="t:needy", version="1.0.0", form="requirements.txt", key="k", ready=True
    )
    monkeypatch.setattr(dependencies, "look_at", lambda *_: looked)
    meta = Meta(
        format=1,
        key="k",
        kind="python",
        form="requirements.txt",
        created=0,
        build_ms=0,
        bytes=0,
        entries=0,
        packages=packages,
    )
    monkeypatch.setattr(dependencies, "environments", lambda _settings: [Entry(meta, 0.0)])


def advisory(root: Path, **more: Any) -> str:
    affected = {
        "package": {"ecosystem": "PyPI", "name": "some-package"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}],
    }
    file = root / "advisory.json"
    file.write_text(
        json.dumps({"id": "X-1", "aliases": ["CVE-1"], "summary": "Bad \x1b[31m.", "affected": [affected], **more})
    )
    return str(file)


def test_a_vulnerable_package_is_told_with_what_mends_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """T16."""
    installed(monkeypatch, ("some-package", "1.0"), ("other", "1.0"))
    assert main(["deps", "audit", "--advisories", advisory(root)]) == 1
    written = capsys.readouterr().out
    assert "t:needy: 2 packages, 1 known vulnerability" in written
    assert "some-package 1.0: X-1 (CVE-1): Bad" in written and "fixed in 2.0" in written
    assert "\x1b" not in written


def test_what_is_mended_is_well(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """T16."""
    installed(monkeypatch, ("some-package", "2.0"))
    assert main(["deps", "audit", "--advisories", advisory(root), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["tools"]
    assert (row["vulnerabilities"], row["unknown"]) == ([], [])


def test_without_data_it_says_that_it_cannot_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """T16: silence would be read as good news."""
    installed(monkeypatch, ("some-package", "2.0"))
    assert main(["deps", "audit"]) == 3
    written = capsys.readouterr().out
    assert "of 1 nothing can be known" in written and "--advisories" in written


@pytest.mark.slow  # looks for interpreters, which starts them the first time
def test_what_is_not_installed_cannot_be_known(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """T16: only what was resolved has versions."""
    assert main(["deps", "audit", "--advisories", advisory(root)]) == 3
    assert "t:needy: cannot be known: not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["audit", "--advisories", "nothing.json"], "cannot be read"),
        (["list", "--advisories", "x"], "--advisories is for audit"),
    ],
)
def test_wrong_words_are_told(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    """T16."""
    assert main(["deps", *words]) == 2
    assert said in capsys.readouterr().err
