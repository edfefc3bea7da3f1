"""Which Python package indexes this user is configured for: pip's and uv's own files and variables, else the public index.

Later and more special places win, as in pip and uv; uv's word goes before pip's. Must not know what is allowed.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

PUBLIC_INDEX = "https://pypi.org/simple"
FIRST_MATCH = "unsafe-first-match"
"""How several indexes are asked unless uv's settings say otherwise: all of them, as pip does, but what an earlier one has
wins over a higher version of a later one."""
MAX_FILE_BYTES = 1024 * 1024

_STRATEGIES = ("first-index", "unsafe-first-match", "unsafe-best-match")


class PipSettings(msgspec.Struct, frozen=True):
    """Index addresses as they are written, each with where it stands. `certificates` is a file of authorities, or empty."""

    default: tuple[str, str] = (PUBLIC_INDEX, "the default")
    extra: tuple[tuple[str, str], ...] = ()
    find_links: tuple[tuple[str, str], ...] = ()
    no_index: bool = False
    certificates: str = ""
    strategy: str = FIRST_MATCH


def pip_settings(environ: Mapping[str, str] | None = None) -> PipSettings:
    """What holds now. Files are read again only when they changed."""
    environment = os.environ if environ is None else environ
    names = ("PIP_", "UV_", "XDG_", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HOME", "VIRTUAL_ENV")
    variables = tuple(sorted((name, value) for name, value in environment.items() if name.startswith(names)))
    return _read(
        variables, tuple((path, *_stamp(path)) for path in (*_pip_files(environment), *_uv_files(environment)))
    )


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def _pip_files(environ: Mapping[str, str]) -> list[str]:
    """pip's configuration files, weakest first."""
    own = environ.get("PIP_CONFIG_FILE", "")
    if own == os.devnull:
        return []
    home = _home(environ)
    system = [f"{place}/pip/pip.conf" for place in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")[::-1]]
    user = f"{environ.get('XDG_CONFIG_HOME') or home + '/.config'}/pip/pip.conf"
    site = f"{environ.get('VIRTUAL_ENV') or sys.prefix}/pip.conf"
    return [*system, "/etc/pip.conf", f"{home}/.pip/pip.conf", user, site, *([own] if own else [])]


def _uv_files(environ: Mapping[str, str]) -> list[str]:
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes"):
        return []
    if environ.get("UV_CONFIG_FILE"):
        return [environ["UV_CONFIG_FILE"]]
    system = [f"{place}/uv/uv.toml" for place in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")[::-1]]
    return ["/etc/uv/uv.toml", *system, f"{environ.get('XDG_CONFIG_HOME') or _home(environ) + '/.config'}/uv/uv.toml"]


def configuration_text(path: str) -> str:
    """A configuration file as text, at most its first part; empty when it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(MAX_FILE_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


class _Found:
    """What was found so far; a later word replaces an earlier one of the same kind."""

    def __init__(self) -> None:
        self.default: tuple[str, str] | None = None
        self.extra: list[tuple[str, str]] = []
        self.find_links: list[tuple[str, str]] = []
        self.no_index = False
        self.certificates = ""
        self.strategy = ""

    def take(self, name: str, values: Sequence[str], where: str) -> None:
        values = [value for value in values if value]
        if name == "index-url" and values:
            self.default = (values[0], where)
        elif name == "extra-index-url":
            self.extra = [(value, where) for value in values]
        elif name == "find-links":
            self.find_links = [(value, where) for value in values]
        elif name == "no-index" and values:
            self.no_index = values[0].lower() in ("1", "true", "yes", "on")
        elif name == "cert" and values:
            self.certificates = values[0]
        elif name == "index-strategy" and values and values[0] in _STRATEGIES:
            self.strategy = values[0]


@lru_cache(maxsize=8)
def _read(variables: tuple[tuple[str, str], ...], files: tuple[tuple[str, int, int, int], ...]) -> PipSettings:
    environ = dict(variables)
    present = {path for path, inode, _, _ in files if inode}
    pip, uv = _Found(), _Found()
    for path in _pip_files(environ):
        if path in present:
            _read_pip_file(path, pip)
    for name in ("index-url", "extra-index-url", "find-links", "no-index", "cert"):
        variable = "PIP_" + name.upper().replace("-", "_")
        if variable in environ:
            pip.take(name, environ[variable].split(), variable)
    for path in _uv_files(environ):
        if path in present:
            _read_uv_file(path, uv)
    _read_uv_variables(environ, uv)
    extra = dict.fromkeys([*uv.extra, *pip.extra])
    links = dict.fromkeys([*uv.find_links, *pip.find_links])
    system = environ.get("SSL_CERT_FILE") or environ.get("REQUESTS_CA_BUNDLE") or ""
    return PipSettings(
        default=uv.default or pip.default or PipSettings().default,
        extra=_distinct(extra),
        find_links=_distinct(links),
        no_index=pip.no_index or uv.no_index,
        certificates=uv.certificates or pip.certificates or system,
        strategy=uv.strategy or FIRST_MATCH,
    )


def _distinct(pairs: Mapping[tuple[str, str], None]) -> tuple[tuple[str, str], ...]:
    """Each address once, as it was found first."""
    origins: dict[str, str] = {}
    for text, where in pairs:
        origins.setdefault(text, where)
    return tuple(origins.items())


def _read_pip_file(path: str, settings: _Found) -> None:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(configuration_text(path))
    except configparser.Error:
        return
    for section in ("global", "install"):
        if parser.has_section(section):
            for name, value in parser.items(section):
                settings.take(name.replace("_", "-"), value.split(), path)


def _read_uv_file(path: str, settings: _Found) -> None:
    try:
        raw = tomllib.loads(configuration_text(path))
    except tomllib.TOMLDecodeError:
        return
    for table in (raw.get("pip"), raw):
        if isinstance(table, dict):
            _read_uv_table(cast("dict[str, Any]", table), path, settings)


def _read_uv_table(table: Mapping[str, Any], path: str, settings: _Found) -> None:
    for name in ("index-url", "extra-index-url", "find-links", "no-index", "index-strategy"):
        if name in table:
            value = table[name]
            settings.take(
                name, [str(item) for item in cast("list[Any]", value if isinstance(value, list) else [value])], path
            )
    listed = table.get("index")
    for entry in cast("list[Any]", listed if isinstance(listed, list) else []):
        if not isinstance(entry, dict):
            continue
        index = cast("dict[str, Any]", entry)
        url = str(index.get("url", ""))
        if index.get("explicit") or not url:
            continue  # only for packages that a project assigns to it
        if index.get("format") == "flat":
            settings.find_links.append((url, path))
        elif index.get("default"):
            settings.default = (url, path)
        else:
            settings.extra.append((url, path))


def _read_uv_variables(environ: Mapping[str, str], settings: _Found) -> None:
    def urls(name: str) -> list[str]:
        # `name=https://…`: an index may be given a name
        words = environ[name].replace(",", " ").split() if name == "UV_FIND_LINKS" else environ[name].split()
        return [word.split("=", 1)[1] if "=" in word.split("://", 1)[0] else word for word in words]

    for name, option in (
        ("UV_INDEX_URL", "index-url"),
        ("UV_DEFAULT_INDEX", "index-url"),
        ("UV_EXTRA_INDEX_URL", "extra-index-url"),
        ("UV_INDEX", "extra-index-url"),
        ("UV_FIND_LINKS", "find-links"),
        ("UV_NO_INDEX", "no-index"),
        ("UV_INDEX_STRATEGY", "index-strategy"),
    ):
        if environ.get(name):
            settings.take(option, urls(name), name)


# Which npm registries this user is configured for: npm's own files and variables, bun's file, else the public registry. Later and more special places
# win, as in npm; npm's word goes before bun's. A tool's own `.npmrc` is never read. Credentials are noticed and never carried: only that some are
# configured for an address is told.


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
    environment = os.environ if environ is None else environ
    names = ("npm_", "bun_", "xdg_", "node_extra_ca_certs", "ssl_cert_file", "home")
    variables = tuple(sorted((name, value) for name, value in environment.items() if name.lower().startswith(names)))
    files = (*_npm_files(environment, prefixes), *_bun_files(environment))
    return _read_npm(variables, prefixes, tuple((path, *_stamp(path)) for path in files))


def _options(environ: Mapping[str, str]) -> dict[str, str]:
    """npm's options in the environment: `npm_config_fetch_timeout` is `fetch-timeout`; a lower-case spelling wins."""
    options: dict[str, str] = {}
    for name in sorted(environ):
        if name.lower().startswith("npm_config_") and environ[name]:
            option = name[len("npm_config_") :]
            key = option if option.startswith(("@", "//")) else re.sub(r"(?!^)_", "-", option).lower()
            options[key] = environ[name]
    return options


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


class _NpmFound:
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
def _read_npm(
    variables: tuple[tuple[str, str], ...],
    prefixes: tuple[str, ...],
    files: tuple[tuple[str, int, int, int], ...],
) -> NpmSettings:
    environ = dict(variables)
    present = {path for path, inode, _, _ in files if inode}
    npm, bun = _NpmFound(), _NpmFound()
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


def _read_npmrc(text: str, path: str, environ: Mapping[str, str], settings: _NpmFound) -> None:
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in ";#[":
            continue
        name, equals, value = line.partition("=")
        if equals:
            settings.take(_plain(name, environ), _plain(value, environ), path)


def _plain(text: str, environ: Mapping[str, str]) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    # what has no value stays as it is written, as in npm
    return _VARIABLE.sub(lambda match: environ.get(match.group(1).rstrip("?"), match.group()), text)


def _read_bunfig(path: str, settings: _NpmFound) -> None:
    try:
        raw = tomllib.loads(configuration_text(path))
    except tomllib.TOMLDecodeError:
        return
    install = raw.get("install")
    if not isinstance(install, dict):
        return
    table = cast("dict[str, Any]", install)
    _read_bun_registry(table.get("registry"), "registry", path, settings)
    scopes = table.get("scopes")
    for scope, value in (cast("dict[str, Any]", scopes) if isinstance(scopes, dict) else {}).items():
        name = scope if scope.startswith("@") else f"@{scope}"
        _read_bun_registry(value, f"{name}:registry", path, settings)
    if isinstance(table.get("cafile"), str):
        settings.certificates = str(table["cafile"])


def _read_bun_registry(value: object, name: str, path: str, settings: _NpmFound) -> None:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        url = str(table.get("url", ""))
        settings.take(name, url, path)
        if {"token", "password", "username"} & table.keys():
            settings.credentials.add(url.partition("://")[2].rstrip("/"))
    elif isinstance(value, str):
        settings.take(name, value, path)
