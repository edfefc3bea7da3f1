"""Which npm registries this user is configured for: npm's own files and variables, bun's file, else the public registry.

Later and more special places win, as in npm; npm's word goes before bun's. A tool's own `.npmrc` is never read. Credentials are
noticed and never carried: only that some are configured for an address is told. Must not know what is allowed.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec

from tamis.environments.pip_settings import configuration_text

PUBLIC_REGISTRY = "https://registry.npmjs.org"

_SCOPE = re.compile(r"(@[a-z0-9~._-]{1,214}):registry", re.IGNORECASE)
_CREDENTIAL = re.compile(r"//(.+?)/?:(?:_authToken|_auth|_password|username|certfile|keyfile)", re.IGNORECASE)
_VARIABLE = re.compile(r"(?<!\\)\$\{([^${}]+)\}")


class NpmSettings(msgspec.Struct, frozen=True):
    """Registry addresses as they are written, each with where it stands: the default, and (scope, address, place) rows.

    `credentials` are `host/path` that some are configured for. `certificates` is a file of authorities, or empty.
    """

    registry: tuple[str, str] = (PUBLIC_REGISTRY, "the default")
    scopes: tuple[tuple[str, str, str], ...] = ()
    credentials: tuple[str, ...] = ()
    certificates: str = ""


def npm_settings(prefixes: tuple[str, ...] = (), environ: Mapping[str, str] | None = None) -> NpmSettings:
    """What holds now. `prefixes` are the folders that Node stands in (`/usr` for `/usr/bin/node`), and npm's own folder with the
    built-in file. Files are read again only when they changed."""
    given = os.environ if environ is None else environ
    names = ("npm_", "bun_", "xdg_", "node_extra_ca_certs", "ssl_cert_file", "home")
    variables = tuple(sorted((name, value) for name, value in given.items() if name.lower().startswith(names)))
    files = (*_npm_files(given, prefixes), *_bun_files(given))
    return _read(variables, prefixes, tuple((path, *_stamp(path)) for path in files))


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def _options(environ: Mapping[str, str]) -> dict[str, str]:
    """npm's options in the environment: `npm_config_fetch_timeout` is `fetch-timeout`; a lower-case spelling wins."""
    found: dict[str, str] = {}
    for name in sorted(environ):
        if name.lower().startswith("npm_config_") and environ[name]:
            option = name[len("npm_config_") :]
            key = option if option.startswith(("@", "//")) else re.sub(r"(?!^)_", "-", option).lower()
            found[key] = environ[name]
    return found


def _npm_files(environ: Mapping[str, str], prefixes: tuple[str, ...]) -> list[str]:
    """npm's configuration files, weakest first: built in, for the machine, for the user."""
    options = _options(environ)
    home = environ.get("HOME") or os.path.expanduser("~")
    builtin = [f"{prefix}/npmrc" for prefix in prefixes]
    machine = ["/etc/npmrc", *(f"{prefix}/etc/npmrc" for prefix in (*prefixes, options.get("prefix", "")) if prefix)]
    if "globalconfig" in options:
        machine = [options["globalconfig"]]
    return [*builtin, *machine, options.get("userconfig") or f"{home}/.npmrc"]


def _bun_files(environ: Mapping[str, str]) -> list[str]:
    home = environ.get("HOME") or os.path.expanduser("~")
    own = environ.get("XDG_CONFIG_HOME")
    return [f"{home}/.bunfig.toml", *([f"{own}/.bunfig.toml"] if own else [])]


class _Found:
    """What was found so far; a later word replaces an earlier one of the same kind."""

    def __init__(self) -> None:
        self.registry: tuple[str, str] | None = None
        self.scopes: dict[str, tuple[str, str]] = {}
        self.credentials: set[str] = set()
        self.certificates = ""

    def take(self, name: str, value: str, where: str) -> None:
        scope = _SCOPE.fullmatch(name)
        secret = _CREDENTIAL.fullmatch(name)
        if scope is not None and value:
            self.scopes[scope.group(1).lower()] = (value, where)
        elif secret is not None:
            self.credentials.add(secret.group(1))
        elif name == "registry" and value:
            self.registry = (value, where)
        elif name == "cafile" and value not in ("", "null"):
            self.certificates = value


@lru_cache(maxsize=8)
def _read(
    variables: tuple[tuple[str, str], ...],
    prefixes: tuple[str, ...],
    files: tuple[tuple[str, int, int, int], ...],
) -> NpmSettings:
    environ = dict(variables)
    present = {path for path, inode, _, _ in files if inode}
    npm, bun = _Found(), _Found()
    for path in _npm_files(environ, prefixes):
        if path in present:
            _read_npmrc(configuration_text(path), path, environ, npm)
    for name, value in _options(environ).items():
        npm.take(name, value, f"npm_config_{name}")
    for path in _bun_files(environ):
        if path in present:
            _read_bunfig(path, bun)
    for name in ("BUN_CONFIG_REGISTRY",):
        if environ.get(name):
            bun.registry = (environ[name], name)
    scopes = {**bun.scopes, **npm.scopes}
    return NpmSettings(
        registry=npm.registry or bun.registry or NpmSettings().registry,
        scopes=tuple((scope, *scopes[scope]) for scope in sorted(scopes)),
        credentials=tuple(sorted(npm.credentials | bun.credentials)),
        certificates=npm.certificates
        or bun.certificates
        or environ.get("NODE_EXTRA_CA_CERTS", "")
        or environ.get("SSL_CERT_FILE", ""),
    )


def _read_npmrc(text: str, path: str, environ: Mapping[str, str], found: _Found) -> None:
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in ";#[":
            continue
        name, equals, value = line.partition("=")
        if equals:
            found.take(_plain(name, environ), _plain(value, environ), path)


def _plain(text: str, environ: Mapping[str, str]) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    # what has no value stays as it is written, as in npm
    return _VARIABLE.sub(lambda match: environ.get(match.group(1).rstrip("?"), match.group()), text)


def _read_bunfig(path: str, found: _Found) -> None:
    try:
        raw = tomllib.loads(configuration_text(path))
    except tomllib.TOMLDecodeError:
        return
    install = raw.get("install")
    if not isinstance(install, dict):
        return
    table = cast("dict[str, Any]", install)
    _read_bun_registry(table.get("registry"), "registry", path, found)
    scopes = table.get("scopes")
    for scope, value in (cast("dict[str, Any]", scopes) if isinstance(scopes, dict) else {}).items():
        name = scope if scope.startswith("@") else f"@{scope}"
        _read_bun_registry(value, f"{name}:registry", path, found)
    if isinstance(table.get("cafile"), str):
        found.certificates = str(table["cafile"])


def _read_bun_registry(value: object, name: str, path: str, found: _Found) -> None:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        url = str(table.get("url", ""))
        found.take(name, url, path)
        if {"token", "password", "username"} & table.keys():
            found.credentials.add(url.partition("://")[2].rstrip("/"))
    elif isinstance(value, str):
        found.take(name, value, path)
