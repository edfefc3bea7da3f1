"""Known vulnerabilities of installed packages, by advisories that somebody brings: OSV's files, pip-audit's report, or what PyPI says of a version.

No package is looked up anywhere: what the given data does not speak of is not known. Pure but for reading these files.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

MAX_ADVISORY_BYTES = 16 * 1024 * 1024
MAX_DATA_BYTES = 4 * 1024 * 1024 * 1024
MAX_FILES = 1_000_000
ECOSYSTEMS = {"python": "pypi", "javascript": "npm"}
"""The ecosystem of a kind of environment, in small letters."""
_RELEASE = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|alpha|b|beta|rc|c|pre|preview)[-_.]?(\d*))?"
    r"(?:-(\d+)|[-_.]?(?:post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+[a-z0-9.]+)?",
    re.I,
)
_SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")
_STAGE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "rc": 2, "c": 2, "pre": 2, "preview": 2}
Key = tuple[Any, ...]


class Vulnerability(msgspec.Struct, frozen=True, rename="camel", order=True):
    """An advisory that a version of a package is subject to. ``fixed``: versions without it, as far as the data names any."""

    package: str
    version: str
    id: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    fixed: tuple[str, ...] = ()


class DataError(ValueError):
    """Advisories that cannot be read; the text says why."""


class Advisories:
    """Advisories by ecosystem and package."""

    def __init__(self) -> None:
        self._osv: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._said: dict[tuple[str, str, str], list[Vulnerability]] = {}
        """What a report says of one version of a package, also that it says nothing bad."""
        self.count = 0

    def add(self, document: object, whence: str) -> None:
        """Takes a document of any of the forms. Raises ``DataError``."""
        if isinstance(document, list):
            for item in cast("list[object]", document):
                self.add(item, whence)
            return
        content = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
        if isinstance(content.get("dependencies"), list):
            for item in _objects(content["dependencies"]):
                self._report("pypi", str(item.get("name")), str(item.get("version")), _objects(item.get("vulns")))
        elif isinstance(content.get("info"), dict) and isinstance(content.get("vulnerabilities"), list):
            info = cast("dict[str, Any]", content["info"])
            self._report("pypi", str(info.get("name")), str(info.get("version")), _objects(content["vulnerabilities"]))
        elif isinstance(content.get("id"), str) and isinstance(content.get("affected"), list):
            self.count += 1
            if not content.get("withdrawn"):
                for affected in _objects(content["affected"]):
                    package = affected.get("package")
                    named = cast("dict[str, Any]", package) if isinstance(package, dict) else {}
                    ecosystem = str(named.get("ecosystem", "")).partition(":")[0].lower()
                    name = _name(ecosystem, str(named.get("name", "")))
                    self._osv.setdefault((ecosystem, name), []).append({**affected, "of": content})
        else:
            raise DataError(
                f"{whence} is no advisory of OSV, no report of pip-audit and no answer of PyPI about a version"
            )

    def _report(self, ecosystem: str, name: str, version: str, advisories: list[dict[str, Any]]) -> None:
        self.count += 1
        vulnerabilities = self._said.setdefault((ecosystem, _name(ecosystem, name), version), [])
        for advisory in advisories:
            if not advisory.get("withdrawn"):
                fixed = _texts(advisory.get("fix_versions") or advisory.get("fixed_in"))
                summary = str(advisory.get("summary") or advisory.get("description") or "")
                vulnerability = Vulnerability(
                    name, version, str(advisory.get("id")), _texts(advisory.get("aliases")), _line(summary), fixed
                )
                vulnerabilities.append(vulnerability)

    def of(self, kind: str, name: str, version: str) -> list[Vulnerability] | None:
        """What is known against a version; None where the data does not speak of the ecosystem at all."""
        ecosystem = ECOSYSTEMS.get(kind, kind)
        key = (ecosystem, _name(ecosystem, name))
        vulnerabilities = self._said.get((*key, version))
        if vulnerabilities is None and not any(item == ecosystem for item, _ in self._osv):
            return None
        by_id = {vulnerability.id: vulnerability for vulnerability in vulnerabilities or ()}
        for affected in self._osv.get(key, ()):
            if _hits(affected, ecosystem, version):
                of = cast("dict[str, Any]", affected["of"])
                summary = str(of.get("summary") or of.get("details") or "")
                fixed = tuple(dict.fromkeys(text for event in _events(affected) if (text := event.get("fixed"))))
                vulnerability = Vulnerability(name, version, of["id"], _texts(of.get("aliases")), _line(summary), fixed)
                by_id.setdefault(vulnerability.id, vulnerability)
        return sorted(by_id.values())


def read_advisories(paths: Iterable[str | Path]) -> Advisories:
    """Advisories of files, of folders of them, and of OSV's ``all.zip``. Raises ``DataError``."""
    advisories = Advisories()
    for path in map(Path, paths):
        try:
            for whence, data in _documents(path):
                try:
                    advisories.add(msgspec.json.decode(data), whence)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise DataError(f"{whence} is no JSON: {error}") from None
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return advisories


def _documents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every document below a path with its name, each and all of them of a bounded size."""
    if path.is_dir():
        files = sorted(path for path in path.rglob("*.json") if path.is_file())
        yield from _bounded((str(file), file.stat().st_size, file.read_bytes) for file in files)
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = [entry for entry in archive.infolist() if entry.filename.endswith(".json")]
            yield from _bounded(
                (member.filename, member.file_size, lambda entry=member: archive.read(entry)) for member in members
            )
    else:
        # one document may be a whole list of advisories
        size = path.stat().st_size
        if size > 16 * MAX_ADVISORY_BYTES:
            raise DataError(
                f"{path} has more than {16 * MAX_ADVISORY_BYTES} bytes: give a folder or an archive of advisories"
            )
        yield str(path), path.read_bytes()


def _bounded(files: Iterable[tuple[str, int, Any]]) -> Iterator[tuple[str, bytes]]:
    total = 0
    for number, (name, size, read) in enumerate(files):
        total += size
        if size > MAX_ADVISORY_BYTES or total > MAX_DATA_BYTES or number >= MAX_FILES:
            raise DataError(
                f"{name[:200]}: an advisory of more than {MAX_ADVISORY_BYTES} bytes, or more than {MAX_FILES} files or {MAX_DATA_BYTES} bytes in all"
            )
        yield name[:200], read()


def _hits(affected: dict[str, Any], ecosystem: str, version: str) -> bool:
    if version in _texts(affected.get("versions")):
        return True
    key = version_key(ecosystem, version)
    if key is None:
        # a version that nobody can compare: told rather than passed over
        return bool(_events(affected))
    for item in _objects(affected.get("ranges")):
        if item.get("type") in ("ECOSYSTEM", "SEMVER") and _within(_objects(item.get("events")), ecosystem, key):
            return True
    return False


def _within(events: list[dict[str, Any]], ecosystem: str, key: Key) -> bool:
    """Whether a version lies in a range of OSV: introduced at or before it, not fixed at or before it, not behind the last affected."""
    is_in = False
    points: list[tuple[Key, int, str]] = []
    for event in events:
        for number, name in enumerate(("introduced", "fixed", "last_affected")):
            text = event.get(name)
            if isinstance(text, str):
                at: Key | None = () if text == "0" else version_key(ecosystem, text)
                if at is not None:
                    points.append((at, number, name))
    for at, _, name in sorted(points):
        if name == "introduced" and at <= key:
            is_in = True
        elif (name == "fixed" and at <= key) or (name == "last_affected" and at < key):
            is_in = False
    return is_in


def version_key(ecosystem: str, version: str) -> Key | None:
    """What versions are ordered by (PEP 440, or SemVer for npm); None for a text that is no version."""
    if ecosystem == "npm":
        match = _SEMVER.fullmatch(version.strip())
        if match is None:
            return None
        parts = [(0, int(item), "") if item.isdigit() else (1, 0, item) for item in (match[4] or "").split(".") if item]
        return (*(int(match[i]) for i in (1, 2, 3)), 0 if parts else 1, *parts)
    match = _RELEASE.fullmatch(version.strip())
    if match is None:
        return None
    epoch, release, stage, number, post, post_word, dev, dev_number = match.groups()
    numbers = [int(item) for item in release.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    is_post = post is not None or post_word is not None
    # a development release comes before all that it leads to, a plain one behind its pre-releases
    if stage:
        pre: Key = (_STAGE[stage.lower()], int(number or 0))
    else:
        pre = (-1, 0) if dev and not is_post else (3, 0)
    after = int(post or post_word or 0) if is_post else -1
    return (int(epoch or 0), tuple(numbers), pre, after, int(dev_number or 0) if dev else float("inf"))


def _events(affected: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for item in _objects(affected.get("ranges")) for event in _objects(item.get("events"))]


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _texts(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))


def _name(ecosystem: str, name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower() if ecosystem == "pypi" else name


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
