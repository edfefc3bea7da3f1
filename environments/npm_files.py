"""What a JavaScript tool's files say: `package.json`, `package-lock.json`, `bun.lock`. Pure: bytes in, data or a fault out.

A dependency comes from a registry by a version range, or it is refused: an address of another kind (git, a tarball, a folder) is
pinned by nothing and would be fetched from anywhere.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from tamis.environments.indexes import shown_url
from tamis.environments.model import DependencyFault, Finding

MANIFEST = "package.json"
NPM_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
BUN_LOCK = "bun.lock"
FOREIGN_LOCKS = ("yarn.lock", "pnpm-lock.yaml", "bun.lockb")

_NAME = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]{0,213}/)?[a-z0-9~_.-][a-z0-9._~-]{0,213}", re.IGNORECASE)
# A version range or a tag: no colon and no slash, which every other kind of specification has.
_RANGE = re.compile(r"[^:/\\]{0,400}")
_ALIAS = re.compile(r"npm:((?:@[^/@]+/)?[^/@]+)(?:@([^:/\\]*))?")
_PINNED = re.compile(r"=?v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[}\]])')
_USED = ("dependencies", "optionalDependencies", "peerDependencies")
_MAX_PACKAGES = 20_000
_HASH_BYTES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


class Wanted(msgspec.Struct, frozen=True):
    """A `package.json` that declares something: direct dependencies by name, remarks, and the text for an installer without a
    lock file, which sees nothing but these."""

    direct: Mapping[str, str]
    findings: tuple[Finding, ...]
    bare: bytes


class Locked(msgspec.Struct, frozen=True):
    """A lock file: the packages in it as (name, version), remarks, the addresses that it names with their packages, and its text
    for the installer."""

    packages: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    addresses: tuple[tuple[str, str], ...]
    text: bytes


def _fault(file: str, why: str, remedy: str = "", package: str = "", *, refused: bool = True) -> DependencyFault:
    return DependencyFault(
        f"{file}: {why}", cause="refused" if refused else "declaration", remedy=remedy, package=package
    )


def _object(data: bytes, file: str) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError) as error:
        place, why = _said_of_json(data.removeprefix(b"\xef\xbb\xbf"), str(error))
        raise _fault(file + place, f"is no JSON: {why}", refused=False) from error
    if not isinstance(value, dict):
        raise _fault(file, "is no JSON object", refused=False)
    return cast("dict[str, Any]", value)


def _said_of_json(data: bytes, words: str) -> tuple[str, str]:
    """(`:line:column`, why) of a decoder's words, which count bytes."""
    match = re.search(r"\(byte (\d+)\)", words)
    if match is None and "truncated" not in words:
        return "", words
    before = data[: int(match.group(1)) if match else len(data)].decode("utf-8", "replace")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    why = words.partition(" (byte")[0].removeprefix("JSON is malformed: ") if match else "it ends too early"
    return f":{line}:{column}", why


def _table(value: object, file: str, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _fault(file, f"'{name}' must be an object", refused=False)
    return cast("dict[str, Any]", value)


def read_manifest(data: bytes) -> Wanted | None:
    """What a `package.json` wants from a registry, or None for nothing. Raises `DependencyFault`."""
    raw = _object(data, MANIFEST)
    tables = {name: _table(raw.get(name), MANIFEST, name) for name in _USED}
    if not any(tables.values()):
        return None
    if raw.get("workspaces"):
        raise _fault(MANIFEST, "workspaces are not installed", "give each tool a package.json of its own")
    optional_peers = _table(raw.get("peerDependenciesMeta"), MANIFEST, "peerDependenciesMeta")
    direct: dict[str, str] = {}
    for table in (tables["peerDependencies"], tables["dependencies"], tables["optionalDependencies"]):
        for name, asked in table.items():
            if table is tables["peerDependencies"] and name in optional_peers:
                continue
            direct[name] = _specification(name, asked, MANIFEST)
    for name in ("overrides", "resolutions"):
        _overrides(raw.get(name), name)
    kept = {
        name: raw[name]
        for name in ("name", "version", *_USED, "peerDependenciesMeta", "overrides", "resolutions")
        if name in raw
    }
    findings = tuple(
        Finding(
            MANIFEST, _line_of(data, name), f"'{name}' is not pinned: '{asked or '*'}' may be another version tomorrow"
        )
        for name, asked in direct.items()
        if not _PINNED.fullmatch(_range_of(asked))
    )
    return Wanted(direct, findings, msgspec.json.encode(kept))


def _range_of(asked: str) -> str:
    alias = _ALIAS.fullmatch(asked)
    return (alias.group(2) or "") if alias else asked


def _specification(name: str, asked: object, file: str) -> str:
    if not _NAME.fullmatch(name) or ".." in name:
        raise _fault(file, f"{name[:100]!r} cannot be a package's name", package=name[:100])
    if not isinstance(asked, str):
        raise _fault(file, f"the version of '{name}' must be a text", package=name, refused=False)
    asked = asked.strip()
    alias = _ALIAS.fullmatch(asked)
    if alias is not None and _NAME.fullmatch(alias.group(1)):
        return asked
    if not _RANGE.fullmatch(asked) or asked.startswith((".", "~/")):
        raise _fault(
            file,
            f"'{name}' is wanted from {shown_url(asked)!r}, and only versions from a registry are installed",
            "publish it to a registry, or put its files into the tool's folder",
            name,
        )
    return asked


def _overrides(value: object, where: str) -> None:
    """Checks the versions in `overrides` (nested by package) and `resolutions`; `$name` refers to a direct dependency."""
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        for name, asked in (_table(item, MANIFEST, where) if depth < 20 else {}).items():
            if isinstance(asked, dict):
                stack.append((cast("object", asked), depth + 1))
            elif isinstance(asked, str) and not asked.startswith("$"):
                _specification("override", asked, f"{MANIFEST}, {where} of '{name[:100]}'")


def _line_of(data: bytes, name: str) -> int:
    at = data.find(f'"{name}"'.encode())
    return data.count(b"\n", 0, at) + 1 if at >= 0 else 0


def read_npm_lock(data: bytes, file: str) -> Locked:
    """A `package-lock.json` of any version. Raises `DependencyFault` for a package that comes from elsewhere than a registry.

    Addresses of tarballs are left out of the text that the installer gets: it asks the configured registry, and the hash decides.
    """
    raw = _object(data, file)
    version = raw.get("lockfileVersion")
    if version not in (1, 2, 3):
        raise _fault(
            file, f"lockfileVersion {version!r} is not known", "write it again with npm 7 or newer", refused=False
        )
    packages: list[tuple[str, str]] = []
    findings: list[Finding] = []
    addresses: list[tuple[str, str]] = []
    for name, entry in _npm_entries(raw, file):
        if entry.get("link"):
            raise _fault(file, f"'{name}' is a link to a folder", "install what it links to from a registry", name)
        if entry.get("dev") or entry.get("devOptional") or entry.get("inBundle") or entry.get("bundled"):
            continue
        pinned_version = str(entry.get("version", ""))
        if not _PINNED.fullmatch(pinned_version):
            _specification(name, pinned_version, file)  # version 1 writes the address of a git or tarball package here
        resolved = entry.get("resolved")
        if isinstance(resolved, str):
            if not resolved.startswith(("https://", "http://")):
                _specification(name, resolved, file)
            addresses.append((name, resolved))
        findings.extend(_hash_findings(entry.get("integrity"), file, name))
        if entry.get("hasInstallScript"):
            findings.append(Finding(file, 0, f"'{name}' has install scripts, which run only with execution.allowBuild"))
        packages.append((name, pinned_version))
    for _, entry in _npm_entries(raw, file):
        entry.pop("resolved", None)
    return Locked(tuple(packages), tuple(findings), tuple(addresses), msgspec.json.encode(raw))


def _hash_findings(value: object, file: str, name: str) -> Iterator[Finding]:
    """Raises `DependencyFault` for a hash that cannot be read: an installer might take it for none."""
    if value is None or value == "":
        yield Finding(file, 0, f"'{name}' has no hash: nothing says that its content stays the same")
        return
    for part in str(value).split():
        kind, _, digest = part.partition("?")[0].partition("-")
        try:
            raw = base64.b64decode(digest, validate=True)
        except ValueError:
            raw = b""
        # another spelling of the same bytes is no hash to some installers
        if len(raw) != _HASH_BYTES.get(kind, -1) or base64.b64encode(raw).decode() != digest:
            raise _fault(file, f"the hash of '{name}' cannot be read", "write the lock file again", name, refused=False)


def package_of_hash(data: bytes, file: str, integrity: str) -> str:
    """The package that a lock file pins to a hash; empty for none."""
    try:
        entries = list(_npm_entries(_object(data, file), file))
    except DependencyFault:
        return ""
    return next((name for name, entry in entries if integrity in str(entry.get("integrity", "")).split()), "")


def _npm_entries(raw: dict[str, Any], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    count = 0
    for path, value in _table(raw.get("packages"), file, "packages").items():
        entry = _table(value, file, path)
        if path:
            name = str(entry.get("name") or path.rpartition("node_modules/")[2])
            if not path.startswith("node_modules/"):
                raise _fault(
                    file, f"'{path[:100]}' is a folder of a workspace", "give each tool a package.json of its own"
                )
            count += 1
            yield name, entry
        else:
            for asked in _USED:
                for name, value in _table(entry.get(asked), file, asked).items():
                    _specification(name, value, file)
    stack = [(_table(raw.get("dependencies"), file, "dependencies"), 0)]
    while stack:
        table, depth = stack.pop()
        for name, value in table.items():
            entry = _table(value, file, name)
            count += 1
            if count > _MAX_PACKAGES or depth > 100:
                raise _fault(file, f"it names more than {_MAX_PACKAGES} packages", refused=False)
            yield name, entry
            stack.append((_table(entry.get("dependencies"), file, name), depth + 1))


def read_bun_lock(data: bytes) -> Locked:
    """A `bun.lock`. Raises `DependencyFault` for a package that comes from elsewhere than a registry."""
    raw = _object(
        _TRAILING_COMMA.sub(lambda match: match.group(1) or "", data.decode("utf-8", "replace")).encode(), BUN_LOCK
    )
    if not isinstance(raw.get("lockfileVersion"), int):
        raise _fault(BUN_LOCK, "has no lockfileVersion", "write it again with `bun install`", refused=False)
    if len(_table(raw.get("workspaces"), BUN_LOCK, "workspaces")) > 1:
        raise _fault(BUN_LOCK, "workspaces are not installed", "give each tool a package.json of its own")
    packages: list[tuple[str, str]] = []
    findings: list[Finding] = []
    addresses: list[tuple[str, str]] = []
    for place, value in _table(raw.get("packages"), BUN_LOCK, "packages").items():
        parts = cast("list[Any]", value) if isinstance(value, list) else []
        if not parts or not isinstance(parts[0], str):
            raise _fault(BUN_LOCK, f"'{place[:100]}' cannot be read", refused=False)
        name, at, version = parts[0][1:].partition("@")
        name = parts[0][0] + name
        if not at or not _PINNED.fullmatch(version):
            _specification(name, version, BUN_LOCK)
            raise _fault(BUN_LOCK, f"'{name}' has no version but {version[:100]!r}", package=name)
        if len(parts) > 1 and isinstance(parts[1], str) and parts[1]:
            addresses.append((name, parts[1]))
        findings.extend(_hash_findings(parts[-1] if len(parts) > 3 else None, BUN_LOCK, name))
        packages.append((name, version))
    return Locked(tuple(packages), tuple(findings), tuple(addresses), data)
