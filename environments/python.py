"""Python environments by uv: what beside a script declares one, and how it is built.

The first step resolves (for the very interpreter that will run the script) and installs wheels: no code of a package runs,
so it may write the shared cache. The second compiles bytecode without cache and network; with `-S`, so that not even a
`.pth` file runs. Only a recipe that the operator let build source distributions runs foreign code, with a cache of its own.
"""

from __future__ import annotations

import os
import platform
import re
import time
from functools import lru_cache
from pathlib import Path

from tamis.environments import requirements
from tamis.environments.configured_indexes import PipSettings, pip_settings
from tamis.environments.declared import INLINE_MARK, SCRIPT_BYTES, Folder
from tamis.environments.indexes import (
    IndexUrl,
    allow_list,
    local_folder,
    parse_index,
    require_configured,
    require_named,
)
from tamis.environments.model import Declared, DependencyFault, Done, Finished, Options, Recipe, Step
from tamis.environments.requirements import Requirement, Wanted
from tamis.environments.uv_words import explain, progress
from tamis.sandbox.interpreters import Missing, find_interpreter, find_uv, interpreter_version, uv_version
from tamis.sandbox.model import Interpreter, Interpreters

__all__ = ["detect", "explain", "finish", "progress", "recipe"]

KEPT_SECONDS = 5
RETRIES = 2
UV = "/opt/uv"
CERTIFICATES = "/opt/certificates.pem"
FILE_HOSTS = {"pypi.org": "files.pythonhosted.org", "test.pypi.org": "test-files.pythonhosted.org"}
"""Where the public indexes keep their files. Any other index serves them itself, or the operator names their host in
`dependencies.indexes`: what an index's own pages name is not believed."""

# The marks on standard output are for `progress` and `finish`. Everything that varies is in variables and files.
_INSTALL = """\
set -eu
find /env -mindepth 1 -delete
/opt/uv venv --quiet --no-project --allow-existing /env
echo '#tamis venv'; readlink /env/bin/python; cat /env/pyvenv.cfg
echo '#tamis resolving'
if [ -f uv.lock ]; then
  /opt/uv export --quiet --frozen --no-dev --no-default-groups --no-emit-project --no-annotate --no-header --output-file /tmp/lock.txt >/dev/null
elif [ -n "${TAMIS_HASHED:-}" ]; then
  cp requirements.in /tmp/lock.txt
else
  set -- --only-binary :all:
  if [ -n "${TAMIS_BUILD:-}" ]; then set --; fi
  if [ -f constraints.in ]; then set -- "$@" --constraints constraints.in; fi
  /opt/uv pip compile --quiet --python /env/bin/python --generate-hashes --no-annotate --no-header "$@" requirements.in --output-file /tmp/lock.txt >/dev/null
fi
echo "#tamis downloading $(grep -c '==' /tmp/lock.txt || true)"
set -- --only-binary :all:
if [ -n "${TAMIS_BUILD:-}" ]; then set --; fi
if [ -f constraints.in ] && [ -n "${TAMIS_HASHED:-}" ]; then set -- "$@" --constraints constraints.in; fi
/opt/uv pip install --python /env/bin/python --require-hashes "$@" -r /tmp/lock.txt
echo '#tamis lock'; cat /tmp/lock.txt
"""
_BYTECODE = Path(__file__).with_name("compile_bytecode.py")
_METADATA = re.compile(r"(?m)^# /// script[ \t]*\r?$\n((?:^#(?: .*)?\r?$\n)+?)^# ///[ \t]*\r?$")


def detect(folder: Folder) -> Declared | None:
    """What a Python script's folder declares: metadata in the script, else the first of uv.lock, requirements.txt, pyproject.toml."""
    inline = _inline_metadata(folder)
    if inline is not None:
        return Declared(kind="python", form="script", files=(("script.toml", inline),)) if inline else None
    if folder.has("uv.lock") and folder.has("pyproject.toml"):
        files = tuple((name, folder.read(name)) for name in ("pyproject.toml", "uv.lock"))
        return Declared(kind="python", form="uv.lock", files=files)
    if folder.has("requirements.txt"):
        files = requirements.gather("requirements.txt", folder.read)
        declaration = Declared(kind="python", form="requirements.txt", files=files)
        return declaration if requirements.declares_something(files) else None
    if folder.has("pyproject.toml"):
        files = (("pyproject.toml", folder.read("pyproject.toml")),)
        declares = requirements.project_requirements(files[0][1], "pyproject.toml") is not None
        return Declared(kind="python", form="pyproject.toml", files=files) if declares else None
    return None


def _inline_metadata(folder: Folder) -> bytes | None:
    """The TOML of the metadata in the script (PEP 723): None without, empty where it asks for no package."""
    start = folder.read_start(folder.script, SCRIPT_BYTES)
    if INLINE_MARK not in start:
        return None
    text = start.decode("utf-8", "replace")
    match = _METADATA.search(text)
    if match is None:
        return None
    lines = (line.removeprefix("# ").removeprefix("#") for line in match.group(1).splitlines())
    toml = "\n".join(lines).encode()
    first = text.count("\n", 0, match.start()) + 1
    return toml if requirements.script_requirements(toml, folder.script, first) else b""


def recipe(declared: Declared, options: Options) -> Recipe:
    """How to build what was declared. Raises `DependencyFault`; reads pip's and uv's settings, runs nothing of the declaration."""
    # asked for at every call of a tool: what is looked up of the machine holds for some seconds
    return _recipe(declared, options, pip_settings(), int(time.monotonic() // KEPT_SECONDS))


@lru_cache(maxsize=64)
def _recipe(declared: Declared, options: Options, settings: PipSettings, _moment: int) -> Recipe:
    interpreter = _interpreter(options.interpreters)
    uv = find_uv(options.interpreters.uv)
    if isinstance(uv, Missing):
        raise DependencyFault(
            f"the packages of {declared.form} need uv to be installed, and {uv.reason}",
            cause="installer",
            remedy=uv.remedy,
            passing=True,
        )
    files = dict(declared.files)
    places = _Places(options, settings)
    if declared.form == "uv.lock":
        wanted = Wanted()
        requirements.check(files["uv.lock"], places.allowed, places.index_urls)
        shown = {"pyproject.toml": requirements.trimmed_project(files["pyproject.toml"]), "uv.lock": files["uv.lock"]}
    else:
        wanted = _wanted(declared)
        places.add(wanted)
        _may_build(wanted, options, declared.form)
        for requirement in wanted.requirements:
            if requirement.url:
                places.take_file(requirement)
        shown = {"requirements.in": _lines(wanted.requirements)}
        if wanted.constraints:
            shown["constraints.in"] = _lines(wanted.constraints)
    env = {**places.variables(), **_variables(wanted, options)}
    install = Step(
        name="install",
        command=("/bin/sh", "-c", _INSTALL),
        binds=((uv, UV), *interpreter.binds, *places.binds()),
        env={**env, "UV_PYTHON": interpreter.path, **places.certificates()},
        network=bool(places.hosts()),
        cache=True,
        patient={"UV_HTTP_RETRIES": str(RETRIES)} if RETRIES else None,
        offline={"UV_OFFLINE": "1"},
        offline_first=not wanted.findings,
    )
    compile_all = Step(
        name="bytecode",
        command=(interpreter.path, "-I", "-S", "-B", "/tool/compile_bytecode.py", "/env"),
        binds=interpreter.binds,
        progress="bytecode",
        optional=True,
    )
    identity: dict[str, object] = {
        "python": [interpreter.path, interpreter_version(interpreter)],
        "machine": [platform.machine(), *platform.libc_ver()],
        "uv": uv_version(uv),
        "files": {name: content.decode("utf-8", "replace") for name, content in shown.items()},
        "options": env,
        "build": options.allow_build,
        "folders": places.folder_stamps(),
    }
    return Recipe(
        kind="python",
        form=declared.form,
        identity=identity,
        files=(*shown.items(), ("compile_bytecode.py", _BYTECODE.read_bytes())),
        steps=(install, compile_all),
        hosts=places.hosts(),
        cache="uv",
        private_cache=options.allow_build,
        findings=wanted.findings,
    )


def _interpreter(chosen: Interpreters) -> Interpreter:
    interpreter = find_interpreter("python", chosen)
    if isinstance(interpreter, Missing):
        raise DependencyFault(interpreter.reason, cause="installer", remedy=interpreter.remedy, passing=True)
    return interpreter


def _wanted(declared: Declared) -> Wanted:
    files = dict(declared.files)
    if declared.form == "requirements.txt":
        return requirements.parse_files("requirements.txt", files)
    if declared.form == "script":
        return requirements.as_wanted(requirements.script_requirements(files["script.toml"], "script") or (), "script")
    project_requirements = requirements.project_requirements(files["pyproject.toml"], "pyproject.toml")
    return requirements.as_wanted(project_requirements or (), "pyproject.toml")


def _lines(requirements: tuple[Requirement, ...]) -> bytes:
    return "".join(f"{requirement.text}\n" for requirement in requirements).encode()


def _may_build(wanted: Wanted, options: Options, form: str) -> None:
    if wanted.no_binary and not options.allow_build:
        raise DependencyFault(
            f"{form} wants source distributions (--no-binary), and nothing may be built",
            cause="source",
            remedy="leave it out, or set policy.allowBuild and the tool's execution.allowBuild",
        )


def _variables(wanted: Wanted, options: Options) -> dict[str, str]:
    chosen = {
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": "/cache",
        "UV_LINK_MODE": "copy",
        "UV_NO_PROGRESS": "1",
        "UV_HTTP_TIMEOUT": "20",
        "UV_HTTP_RETRIES": "0",
        "UV_CONCURRENT_DOWNLOADS": "16",
        "UV_CONCURRENT_INSTALLS": "4",
        "UV_CONCURRENT_BUILDS": "2",
    }
    if options.allow_build:
        chosen["TAMIS_BUILD"] = "1"
    if wanted.prerelease:
        chosen["UV_PRERELEASE"] = "allow"
    if wanted.hashed:
        chosen["TAMIS_HASHED"] = "1"
    return chosen


class _Places:
    """Where this recipe's packages come from: what pip and uv are configured for, and what a declaration may add to it."""

    def __init__(self, options: Options, settings: PipSettings) -> None:
        self.allowed = allow_list(options.indexes)
        self._certificates = settings.certificates
        self._no_index = settings.no_index
        self._strategy = settings.strategy
        self._default = self._configured(*settings.default)
        self._extra = [self._configured(*item) for item in settings.extra]
        self._links = [self._configured(*item) for item in settings.find_links if not item[0].startswith(".")]
        self._file_hosts: list[str] = []

    def _configured(self, text: str, where: str) -> IndexUrl:
        url = parse_index(text, where)
        if not self._no_index:
            require_configured(url, self.allowed, where)
        return url

    def _named(self, text: str, where: str) -> IndexUrl:
        url = parse_index(text, where)
        require_named(url, self.allowed, where)
        return url

    def add(self, wanted: Wanted) -> None:
        """What a requirement file says of indexes; each must be on the operator's list."""
        if wanted.index is not None:
            self._default = self._named(*wanted.index)
            self._extra = []
        self._extra += [self._named(*item) for item in wanted.extra]
        self._links += [self._named(*item) for item in wanted.find_links]
        self._no_index = self._no_index or wanted.no_index

    def take_file(self, requirement: Requirement) -> None:
        """A requirement that is an address of a file; it must be on the operator's list."""
        url = self._named(requirement.url.split("#", 1)[0], requirement.place)
        if url.scheme == "file":
            raise DependencyFault(
                f"{requirement.place}: {requirement.name} is a file of this machine, and only packages of an index are installed",
                cause="refused",
                remedy="put it into a folder that pip's find-links names",
            )
        self._file_hosts.append(url.rule)

    def _used(self) -> list[IndexUrl]:
        return [] if self._no_index else [self._default, *self._extra]

    @property
    def index_urls(self) -> tuple[IndexUrl, ...]:
        """Every index that is asked."""
        return tuple(self._used())

    def hosts(self) -> tuple[str, ...]:
        """The rules of the egress proxy: the indexes, their files' hosts, and whatever else the operator listed."""
        rules = [url.rule for url in (*self._used(), *self._links, *self.allowed)]
        rules += [f"{FILE_HOSTS[url.host]}:{url.port}" for url in self._used() if url.host in FILE_HOSTS]
        return tuple(dict.fromkeys(rule for rule in (*rules, *self._file_hosts) if rule))

    def _folders(self) -> list[tuple[IndexUrl, str, str]]:
        """(address, folder on the host, folder inside) of each local index or package folder that is there."""
        folders: list[tuple[IndexUrl, str, str]] = []
        for url in dict.fromkeys((*self._used(), *self._links)):
            folder = local_folder(url) if url.scheme == "file" else ""
            if folder:
                folders.append((url, folder, f"/index/{len(folders)}/{os.path.basename(url.path)}"))
        return folders

    def binds(self) -> tuple[tuple[str, str], ...]:
        """The local folders; beside one called `simple` also those in which mirrors keep the files that its pages name."""
        shown: list[tuple[str, str]] = []
        for _, folder, inside in self._folders():
            shown.append((folder, inside))
            if os.path.basename(folder) == "simple":
                beside = (os.path.join(os.path.dirname(folder), name) for name in ("files", "packages"))
                shown += [
                    (path, f"{os.path.dirname(inside)}/{os.path.basename(path)}")
                    for path in beside
                    if os.path.isdir(path)
                ]
        return tuple(shown) + ((self._own_certificates(),) if self._own_certificates()[0] else ())

    def folder_stamps(self) -> list[list[object]]:
        """What tells a changed local folder from the one before."""
        return [[folder, os.stat(folder).st_mtime_ns] for _, folder, _ in self._folders()]

    def variables(self) -> dict[str, str]:
        """The indexes as uv takes them."""
        inside = {url: f"file://{place}" for url, _, place in self._folders()}

        def given(urls: list[IndexUrl]) -> str:
            texts = [inside.get(url, "" if url.scheme == "file" else url.text) for url in urls]
            return " ".join(dict.fromkeys(text for text in texts if text))

        links = given(self._links).replace(" ", ",")
        if self._no_index:
            chosen = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": links}
        else:
            chosen = {"UV_DEFAULT_INDEX": given([self._default]), "UV_INDEX": given(self._extra)}
            chosen |= {"UV_FIND_LINKS": links, "UV_INDEX_STRATEGY": self._strategy}
        return {name: value for name, value in chosen.items() if value}

    def _own_certificates(self) -> tuple[str, str]:
        path = os.path.realpath(self._certificates) if self._certificates else ""
        if not path or path.startswith(("/usr/", "/etc/ssl/certs/")) or not os.path.isfile(path):
            return "", ""
        return path, CERTIFICATES

    def certificates(self) -> dict[str, str]:
        """The authorities that this user trusts, where they are set and can be seen inside."""
        own = self._own_certificates()[1]
        path = own or (self._certificates if os.path.isfile(self._certificates) else "")
        return {"SSL_CERT_FILE": path} if path else {}


def finish(recipe: Recipe, tree: str, done: tuple[Done, ...]) -> Finished:
    """The packages and the lock; refuses a tree whose interpreter or settings a package has replaced."""
    text = next(step.stdout.decode("utf-8", "replace") for step in done if step.name == "install")
    parts = {head: body for head, _, body in (part.partition("\n") for part in text.split("#tamis ")[1:])}
    venv = parts.get("venv", "").partition("\n")
    config = Path(tree, "pyvenv.cfg")
    try:
        whole = os.readlink(f"{tree}/bin/python") == venv[0] and not config.is_symlink()
        whole = whole and config.read_text("utf-8") == venv[2] and not os.path.islink(f"{tree}/bin")
    except (OSError, UnicodeDecodeError):
        whole = False
    if not whole:
        raise DependencyFault(
            "a package replaces the environment's own interpreter or its settings",
            cause="installer",
            remedy="do without that package",
        )
    return Finished(_packages(tree), parts.get("lock", "").encode())


def _packages(tree: str) -> tuple[tuple[str, str], ...]:
    packages: list[tuple[str, str]] = []
    for place in sorted(Path(tree, "lib").glob("python3.*/site-packages")):
        if place.is_symlink():
            continue
        names = (name.removesuffix(".dist-info") for name in os.listdir(place) if name.endswith(".dist-info"))
        packages += [(name, version) for name, _, version in (name.partition("-") for name in names)]
    return tuple(sorted(packages))
