"""Installed packages against advisories that somebody brings (T16, D97)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.environments.audit import Advisories, DataError, read_advisories, version_key


def osv(*events: dict[str, str], name: str = "Some_Package", ecosystem: str = "PyPI", **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": [*events]}] if events else []
    package = {"ecosystem": ecosystem, "name": name}
    affected = {"package": package, "ranges": ranges, "versions": more.pop("versions", [])}
    return {"id": "X-1", "aliases": ["CVE-1"], "summary": "Bad.", "affected": [affected], **more}


def ids(document: Any, name: str, version: str, kind: str = "python") -> list[str] | None:
    data = Advisories()
    data.add(document, "here")
    found = data.of(kind, name, version)
    return None if found is None else [one.id for one in found]


@pytest.mark.parametrize(
    ("version", "is_hit"),
    [
        ("0.9", False),
        ("1.0", True),
        ("1.0.0", True),
        ("1.5rc1", True),
        ("2.0.dev1", True),
        ("2.0a1", True),
        ("2.0", False),
        ("2.0.post1", False),
        ("3.0", True),
        ("3.1", True),
        ("3.1.1", False),
        ("1!0.1", False),
        ("no version", True),
    ],
)
def test_a_version_is_hit_where_a_range_says_so(version: str, is_hit: bool) -> None:
    """T16: introduced, fixed and last affected, by PEP 440; what cannot be compared counts as affected."""
    document = osv({"introduced": "1.0"}, {"fixed": "2.0"}, {"introduced": "3.0"}, {"last_affected": "3.1"})
    assert ids(document, "some-package", version) == (["X-1"] if is_hit else [])


@pytest.mark.parametrize(
    ("version", "is_hit"),
    [("1.2.3", True), ("1.2.4-beta.2", True), ("1.2.4", False), ("1.2.10", False), ("0.0.1", True)],
)
def test_npm_is_compared_by_semver(version: str, is_hit: bool) -> None:
    """T16: and its names are spelt exactly."""
    document = osv({"introduced": "0"}, {"fixed": "1.2.4"}, name="@a/B", ecosystem="npm")
    assert ids(document, "@a/B", version, "javascript") == (["X-1"] if is_hit else [])
    assert ids(document, "@a/b", version, "javascript") == []
    assert ids(document, "@a/B", version, "python") is None


def test_named_versions_count_and_withdrawn_advisories_do_not() -> None:
    """T16."""
    assert ids(osv(versions=["1.0"]), "some.package", "1.0") == ["X-1"]
    assert ids(osv(versions=["1.0"]), "some.package", "1.1") == []
    assert ids(osv({"introduced": "0"}, withdrawn="2026-01-01T00:00:00Z"), "some-package", "1.0") is None


def test_a_report_of_pip_audit_and_an_answer_of_pypi_are_read() -> None:
    """T16: they speak of the versions that they name, and of no other."""
    bad = {"id": "PYSEC-1", "fix_versions": ["2.0"], "aliases": ["CVE-2"], "description": "Long\ntext."}
    report = {
        "dependencies": [{"name": "A", "version": "1.0", "vulns": [bad]}, {"name": "b", "version": "1.0", "vulns": []}]
    }
    assert ids(report, "a", "1.0") == ["PYSEC-1"]
    assert ids(report, "b", "1.0") == []
    assert ids(report, "a", "1.1") is None
    pypi = {
        "info": {"name": "A", "version": "1.0"},
        "vulnerabilities": [{"id": "P", "fixed_in": ["2"], "withdrawn": None}],
    }
    assert ids(pypi, "a", "1.0") == ["P"]


def test_files_folders_and_archives_are_read(tmp_path: Path) -> None:
    """T16."""
    folder = tmp_path / "osv"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(osv({"introduced": "0"})))
    (tmp_path / "list.json").write_text(json.dumps([osv({"introduced": "0"}, id="L")]))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("Z.json", json.dumps(osv({"introduced": "0"}, id="Z")))
        archive.writestr("readme.txt", "no advisory")
    data = read_advisories([folder, tmp_path / "list.json", tmp_path / "all.zip"])
    assert data.count == 3
    found = data.of("python", "Some.Package", "1.0")
    assert found is not None
    assert [(one.id, one.aliases, one.summary) for one in found] == [
        ("L", ("CVE-1",), "Bad."),
        ("X-1", ("CVE-1",), "Bad."),
        ("Z", ("CVE-1",), "Bad."),
    ]


@pytest.mark.parametrize(
    ("content", "said"), [(b"{", "no JSON"), (b"[1]", "no advisory of OSV"), (b'{"a": 1}', "no advisory"), (b"\xff", "no JSON"), (b"[" * 100_000, "no JSON")]
)  # fmt: skip
def test_data_that_cannot_be_read_is_told_with_its_file(tmp_path: Path, content: bytes, said: str) -> None:
    """T16."""
    file = tmp_path / "data.json"
    file.write_bytes(content)
    with pytest.raises(DataError, match=said):
        read_advisories([file])
    with pytest.raises(DataError, match=r"nothing\.json cannot be read"):
        read_advisories([tmp_path / "nothing.json"])


def test_a_small_archive_of_a_huge_advisory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T16: by its declared size, before it is unpacked."""
    monkeypatch.setattr("tamis.environments.audit.MAX_ADVISORY_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", " " * 1_000_000)
    with pytest.raises(DataError, match=r"bomb\.json: an advisory of more than"):
        read_advisories([tmp_path / "all.zip"])


ORDERED = [
    "1.dev0",
    "1.0a1.dev1",
    "1.0a1",
    "1.0a2",
    "1.0b1",
    "1.0rc1",
    "1",
    "1.0.post1.dev1",
    "1.0.post1",
    "1.1.dev1",
    "1.1",
    "1.10",
    "1!0.5",
]


def test_versions_are_ordered_as_pep_440_says() -> None:
    """T16."""
    keys = [version_key("pypi", one) for one in ORDERED]
    assert None not in keys
    assert keys == sorted(keys, key=lambda key: key or ())
    assert version_key("pypi", "1.0") == version_key("pypi", "v1.0.0+local")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "affected", "package", "ecosystem", "name", "ranges", "events", "type", "introduced", "fixed", "versions", "dependencies", "vulns", "info", "vulnerabilities", "withdrawn"]), inner, max_size=4), max_leaves=12), st.text(max_size=6))  # fmt: skip
def test_any_document_is_read_or_refused(document: Any, version: str) -> None:
    """T16: hostile data costs no more than its refusal."""
    data = Advisories()
    try:
        data.add(document, "here")
    except DataError:
        return
    data.of("python", "a", version)
    data.of("javascript", "a", version)
