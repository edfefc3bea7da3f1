"""Environments of JavaScript tools, against a registry that the test serves (D07-D12, D78)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.environments import configured_indexes, javascript, npm_files, npm_words
from tamis.environments.configured_indexes import PUBLIC_REGISTRY
from tamis.environments.model import Declared, DependencyFault, Options, Recipe, Step
from tamis.environments.prepare import prepare, recipe_for
from tamis.environments.store import Lease
from tamis.sandbox import runner
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.model import Environment, Interpreters, Language, Limits, RunOutcome, RunRequest
from tests.environments.js_registry import NAME, Registry, serving, tarball

LOOPBACK: dict[str, Any] = {"allow_cidrs": ("127.0.0.0/8",), "pin": ((NAME, "127.0.0.1"), ("other.test", "127.0.0.1"))}
SHOW = "console.log(JSON.stringify(require('a')))\n"


@functools.cache
def own_bun() -> str:
    given_bun = os.environ.get("TAMIS_TEST_BUN", "")
    if given_bun:
        return given_bun
    # Not at the top: the run as an ordinary user has this folder only, and is given its bun.
    installing = pytest.importorskip("tests.node_runtime", reason="TAMIS_TEST_BUN names no bun")
    return str(installing.bun())


def npm_is_here() -> None:
    found = find_interpreter("nodejs", Interpreters())
    if isinstance(found, Missing):
        pytest.skip(f"{found.reason}: {found.remedy}")


@pytest.fixture(scope="module", autouse=True)
def bun_from_the_real_registry() -> None:
    """Installed before any test points npm at a registry of its own."""
    with contextlib.suppress(pytest.skip.Exception):  # then the tests that need it say so
        own_bun()


@pytest.fixture(params=["bun", pytest.param("npm", marks=pytest.mark.share(2))])
def interpreters(request: pytest.FixtureRequest) -> Interpreters:
    """Each package manager alone; npm takes ten times the processor time, and half of its tests are left to ``--long``."""
    if request.param == "bun":
        return Interpreters(bun=own_bun())
    npm_is_here()
    return Interpreters(bun="/nowhere/bun")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in list(os.environ):
        if name.lower().startswith(("npm_config_", "bun_config")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(javascript, "RETRIES", 0)  # what does not answer here will not answer in a second either
    with serving() as found:
        monkeypatch.setenv("npm_config_registry", found.url)
        yield found


def options(tmp_path: Path, interpreters: Interpreters, **more: Any) -> Options:
    return Options(store=str(tmp_path / "store"), interpreters=interpreters, **{**LOOPBACK, **more})


def tool(
    tmp_path: Path, dependencies: Any, files: dict[str, Any] | None = None, script: str = SHOW, **manifest: Any
) -> str:
    folder = tmp_path / "tool"
    folder.mkdir(exist_ok=True)
    written = {"tool.js": script, "package.json": {"dependencies": dependencies, **manifest}, **(files or {})}
    for name, content in written.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return os.path.realpath(folder)


def lock_of(integrity: str, **entry: Any) -> dict[str, Any]:
    return {
        "lockfileVersion": 3,
        "requires": True,
        "packages": {
            "": {"dependencies": {"a": "^1.0.0"}},
            "node_modules/a": {"version": "1.0.0", "integrity": integrity, **entry},
        },
    }


def made(folder: str, chosen: Options, language: Language = "nodejs", script: str = "tool.js") -> Lease:
    lease = asyncio.run(prepare(folder, script, language, chosen, again=True))
    assert lease is not None
    return lease


def fault(folder: str, chosen: Options) -> DependencyFault:
    with pytest.raises(DependencyFault) as caught:
        made(folder, chosen).close()
    return caught.value


def run(
    folder: str, lease: Lease | None, chosen: Options, script: str = "tool.js", language: Language = "nodejs"
) -> RunOutcome:
    environment = Environment("javascript", lease.path) if lease is not None else None
    wanted = RunRequest(
        folder=folder,
        script=script,
        language=language,
        environment=environment,
        interpreters=chosen.interpreters,
        limits=Limits(wall_ms=300_000),
    )
    return asyncio.run(runner.run(wanted))


# What works


def test_declared_packages_are_installed_and_found(
    tmp_path: Path, registry: Registry, interpreters: Interpreters
) -> None:
    registry.add("a", dependencies={"@scope/b": "^2.0.0"})
    registry.add("@scope/b", "2.1.0")
    folder, chosen = tool(tmp_path, {"a": "^1.0.0"}), options(tmp_path, interpreters)
    with made(folder, chosen) as lease:
        assert lease.meta.packages == (("@scope/b", "2.1.0"), ("a", "1.0.0"))
        assert sorted(os.listdir(lease.path)) == ["node_modules"]
        outcome = run(folder, lease, chosen)
    assert outcome.stdout == b'"a@1.0.0"\n', outcome
    asked = len(registry.asked)
    made(folder, chosen).close()
    assert len(registry.asked) == asked  # D08
    assert sorted(os.listdir(folder)) == ["package.json", "tool.js"]


@pytest.mark.parametrize(
    ("name", "script", "language"),
    [
        ("tool.mjs", "import a from 'a';\nconsole.log(a);\n", "nodejs"),
        ("sub/tool.js", "console.log(require('a'), process.cwd());\n", "nodejs"),
        ("tool.ts", "import a from 'a';\nconsole.log(a as string);\n", "bun"),
        ("tool.cjs", "console.log(require('a'));\n", "bun"),
    ],
    ids=["esm", "subfolder", "bun-typescript", "bun-commonjs"],
)
def test_both_module_systems_find_the_packages(
    tmp_path: Path, registry: Registry, name: str, script: str, language: Language
) -> None:
    registry.add("a")
    chosen = options(tmp_path, Interpreters(bun=own_bun()))
    folder = tool(tmp_path, {"a": "1.0.0"}, script="")
    place = Path(folder, name)
    place.parent.mkdir(exist_ok=True)
    place.write_text(script)
    if place.parent != Path(folder):
        shutil.copy(Path(folder, "package.json"), place.parent)
    with made(folder, chosen, language, name) as lease:
        outcome = run(folder, lease, chosen, name, language)
    assert outcome.stdout.split()[0] == b"a@1.0.0", outcome


@pytest.mark.parametrize("name", ["package-lock.json", "npm-shrinkwrap.json"])
def test_npms_lock_file_is_read_by_bun_where_npm_is_not(tmp_path: Path, registry: Registry, name: str) -> None:
    chosen = options(tmp_path, Interpreters(bun=own_bun(), nodejs="/nowhere/node"))
    first = registry.add("a")
    registry.add("a", "1.5.0")
    with made(tool(tmp_path, {"a": "^1.0.0"}, {name: lock_of(first)}), chosen) as lease:
        assert lease.meta.packages == (("a", "1.0.0"),)
    error = fault(tool(tmp_path, {"a": "^1.0.0"}, {name: lock_of("sha512-" + "A" * 86 + "==")}), chosen)
    assert (error.cause, error.package) == ("hash", "a")


def test_the_lock_file_decides_the_version(tmp_path: Path, registry: Registry) -> None:
    npm_is_here()
    first = registry.add("a")
    registry.add("a", "1.5.0")
    chosen = options(tmp_path, Interpreters(bun="/nowhere/bun"))
    folder = tool(tmp_path, {"a": "^1.0.0"}, {"package-lock.json": lock_of(first)})
    with made(folder, chosen) as lease:
        assert lease.meta.packages == (("a", "1.0.0"),)
    (Path(folder) / "package-lock.json").unlink()
    with made(folder, chosen) as lease:
        assert lease.meta.packages == (("a", "1.5.0"),)
        lock = Path(lease.path, "..", "lock.txt").read_text()
    assert '"node_modules/a"' in lock


def test_buns_lock_file_decides_the_version(tmp_path: Path, registry: Registry) -> None:
    chosen = options(tmp_path, Interpreters(bun=own_bun(), nodejs="/nowhere/node"))
    first = registry.add("a")
    lock = f'{{"lockfileVersion": 1, "workspaces": {{"": {{"dependencies": {{"a": "^1.0.0",}},}},}}, "packages": {{"a": ["a@1.0.0", "", {{}}, "{first}"],}}}}'
    registry.add("a", "1.5.0")
    folder = tool(tmp_path, {"a": "^1.0.0"}, {"bun.lock": lock})
    with made(folder, chosen) as lease:
        assert lease.meta.packages == (("a", "1.0.0"),)


def test_two_tools_with_conflicting_versions_both_work(tmp_path: Path, registry: Registry) -> None:  # D10, D12
    registry.add("a")
    registry.add("a", "2.0.0")
    chosen = options(tmp_path, Interpreters(bun=own_bun()))
    folders = [
        tool(tmp_path / name, {"a": version})
        for name, version in (("x", "1.0.0"), ("y", "2.0.0"))
        if not (tmp_path / name).mkdir()
    ]

    async def both() -> list[Lease | None]:
        return list(await asyncio.gather(*(prepare(folder, "tool.js", "nodejs", chosen) for folder in folders)))

    leases = asyncio.run(both())
    said = [run(folder, lease, chosen).stdout for folder, lease in zip(folders, leases, strict=True)]
    assert said == [b'"a@1.0.0"\n', b'"a@2.0.0"\n']


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"name": "x", "type": "module"},
        {"devDependencies": {"a": "1"}},
        {"dependencies": {}},
        {"peerDependencies": {}, "scripts": {"postinstall": "exit 1"}},
    ],
)
def test_a_tool_that_declares_nothing_needs_no_environment(tmp_path: Path, manifest: dict[str, Any]) -> None:
    folder = tool(tmp_path, {}, {"package.json": manifest})
    assert recipe_for(folder, "tool.js", "nodejs", options(tmp_path, Interpreters(bun="/nowhere"))) is None


def test_packages_that_stand_in_the_folder_are_used_as_they_are(tmp_path: Path, registry: Registry) -> None:
    folder = tool(tmp_path, {"a": "1"})
    chosen = options(tmp_path, Interpreters(bun=own_bun()))
    Path(folder, "node_modules").mkdir()
    assert recipe_for(folder, "tool.js", "nodejs", chosen) is not None  # an empty folder has none
    Path(folder, "node_modules", "a").mkdir()
    Path(folder, "node_modules", "a", "index.js").write_text("module.exports = 'vendored'")
    assert recipe_for(folder, "tool.js", "nodejs", chosen) is None
    npm_is_here()
    assert run(folder, None, chosen).stdout == b'"vendored"\n'


# What is hostile


def test_no_script_of_a_package_runs(tmp_path: Path, registry: Registry, interpreters: Interpreters) -> None:  # D09
    scripts = dict.fromkeys(
        ("preinstall", "install", "postinstall", "prepare"), "touch /env/ran /cache/ran /tmp/ran; exit 1"
    )
    archive = tarball(
        {
            "package.json": json.dumps({"name": "a", "version": "1.0.0", "scripts": scripts}),
            "index.js": "module.exports = 1",
            "binding.gyp": "{}",
        }
    )
    registry.add("a", archive=archive, scripts=scripts, hasInstallScript=True)
    chosen = options(tmp_path, interpreters)
    with made(tool(tmp_path, {"a": "1.0.0"}, scripts=scripts), chosen):
        assert not list((tmp_path / "store").rglob("ran"))


def test_scripts_run_where_they_are_allowed_without_network_and_cache(tmp_path: Path, registry: Registry) -> None:
    npm_is_here()
    probe = "node -e \"require('fs').writeFileSync('made.json', JSON.stringify([process.getuid(), require('fs').existsSync('/cache'), Object.keys(process.env).filter(n => /^https?_proxy$/i.test(n))]))\""
    scripts = {"postinstall": f"{probe}; touch /tool/outside /usr/outside /outside; true"}
    archive = tarball(
        {
            "package.json": json.dumps({"name": "a", "version": "1.0.0", "scripts": scripts}),
            "index.js": "module.exports = require('./made.json')",
        }
    )
    registry.add("a", archive=archive, scripts=scripts, hasInstallScript=True)
    folder, chosen = tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, Interpreters(bun="/nowhere"), allow_build=True)
    with made(folder, chosen) as lease:
        assert run(folder, lease, chosen).stdout == b"[1000,false,[]]\n"
    assert not list(tmp_path.rglob("outside"))


def test_a_script_that_fails_names_its_package(tmp_path: Path, registry: Registry) -> None:
    npm_is_here()
    scripts = {"install": "echo no compiler >&2; exit 3"}
    archive = tarball({"package.json": json.dumps({"name": "a", "version": "1.0.0", "scripts": scripts})})
    registry.add("a", archive=archive, scripts=scripts, hasInstallScript=True)
    error = fault(tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, Interpreters(bun="/nowhere"), allow_build=True))
    assert (error.cause, error.package) == ("installer", "a"), (error.message, error.text)
    assert "no compiler" in error.text


ARCHIVES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "links": ({"out": "/etc/passwd", "up": "../../../../../../etc/passwd"}, {}),
    "dots": ({}, {"../../../../escape": "x", "package/../../../escape": "x", "/tmp/escape": "x", "/env/escape": "x"}),
    "through": ({"node_modules": "/tmp"}, {"package/node_modules/escape": "x"}),
    "files": ({}, {"package/.npmrc": "registry=http://evil.test/", "package/.bin/a": "x"}),
}


def test_an_archive_writes_below_its_package_only(
    tmp_path: Path, registry: Registry, interpreters: Interpreters
) -> None:
    chosen = options(tmp_path, interpreters)
    folders: dict[str, str] = {}
    for name, (links, raw) in ARCHIVES.items():
        files = {"package.json": json.dumps({"name": name, "version": "1.0.0"}), "index.js": "module.exports = 1"}
        registry.add(name, archive=tarball(files, links=links, raw=raw))
        (tmp_path / name).mkdir()
        folders[name] = tool(tmp_path / name, {name: "1.0.0"})

    async def one(name: str) -> Lease | DependencyFault | None:
        try:
            return await prepare(folders[name], "tool.js", "nodejs", chosen)
        except DependencyFault as fault:
            return fault

    async def every() -> list[Lease | DependencyFault | None]:
        return await asyncio.gather(*(one(name) for name in folders))

    for name, built in zip(folders, asyncio.run(every()), strict=True):
        assert built is not None
        if isinstance(built, DependencyFault):
            assert built.cause in ("installer", "hash"), (name, built.message)
            continue
        tree = Path(built.path)
        assert sorted(os.listdir(tree)) == ["node_modules"]
        assert {entry.name for entry in (tree / "node_modules").iterdir()} <= {name, ".package-lock.json", "escape"}
        assert not [path for path in tree.rglob("*") if path.is_symlink()]
        built.close()
    # a name may be kept without what would lead out, below the package: in the environment, or in bun's own download cache
    assert not [path for path in tmp_path.rglob("escape") if not {"node_modules", "caches"} & {*path.parts}]
    assert not os.path.exists("/tmp/escape")


def test_a_program_of_a_package_is_linked_inside(
    tmp_path: Path, registry: Registry, interpreters: Interpreters
) -> None:
    files = {
        "package.json": json.dumps(
            {
                "name": "a",
                "version": "1.0.0",
                "bin": {"a": "./run.js", "../../../b": "./run.js", "c": "../../../../../tmp/x"},
            }
        ),
        "run.js": "#!/usr/bin/env node\n",
        "index.js": "module.exports = 1",
    }
    registry.add(
        "a", archive=tarball(files), bin={"a": "./run.js", "../../../b": "./run.js", "c": "../../../../../tmp/x"}
    )
    try:
        lease = made(tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, interpreters))
    except DependencyFault as error:
        said = error.message
    else:
        tree, said = Path(lease.path), "leaves the environment"
        for path in tree.rglob("*"):
            assert not path.is_symlink() or os.path.realpath(path).startswith(os.path.realpath(tree))
        assert sorted(os.listdir(tree)) == ["node_modules"]
        lease.close()
    assert "leaves the environment" in said


def test_a_link_that_leaves_the_environment_is_refused(tmp_path: Path) -> None:
    made_by = Recipe(kind="javascript", form="package.json", identity={}, files=(), steps=())
    for number, target in enumerate(("/etc/passwd", "../../../outside", "../../package.json", "..")):
        tree = tmp_path / str(number)
        (tree / "node_modules" / "a").mkdir(parents=True)
        (tree / "node_modules" / "a" / "fine").symlink_to("index.js")
        assert javascript.finish(made_by, str(tree), ()).packages == ()
        (tree / "node_modules" / "a" / "link").symlink_to(target)
        if target == "..":
            javascript.finish(made_by, str(tree), ())
            continue
        with pytest.raises(DependencyFault, match="leaves the environment"):
            javascript.finish(made_by, str(tree), ())


# What fails, by name and cause


FAILURES: list[tuple[dict[str, str], str, str, str]] = [
    ({"absent": "1.0.0"}, "missing", "absent", "the registry has no package 'absent'"),
    ({"@scope/absent": "1.0.0"}, "missing", "@scope/absent", "no package '@scope/absent'"),
    ({"wants": "1.0.0"}, "missing", "gone", "the registry has no package 'gone'"),
    ({"a": "^9.0.0"}, "version", "a", "no version of 'a' fits ^9.0.0"),
    ({"broken": "1.0.0"}, "hash", "broken", "'broken' has another content"),
    ({"elsewhere": "1.0.0"}, "network", "", "elsewhere.test:80 was refused"),
    ({"private": "1.0.0"}, "refused", "private", "wants credentials"),
]


def test_a_failure_names_the_package_and_the_cause(
    tmp_path: Path, registry: Registry, interpreters: Interpreters
) -> None:
    registry.add("a")
    registry.add("wants", dependencies={"gone": "1"})
    registry.add("broken", sri="sha512-" + "A" * 86 + "==")
    registry.add("elsewhere", dist="http://elsewhere.test/x.tgz")
    registry.status["/private"] = 401
    chosen = options(tmp_path, interpreters)

    async def one(number: int) -> DependencyFault:
        (tmp_path / str(number)).mkdir()
        folder = tool(tmp_path / str(number), FAILURES[number][0])
        with pytest.raises(DependencyFault) as caught:
            await prepare(folder, "tool.js", "nodejs", chosen)
        return caught.value

    async def every() -> list[DependencyFault]:
        return await asyncio.gather(*(one(number) for number in range(len(FAILURES))))

    for (_, cause, package, words), error in zip(FAILURES, asyncio.run(every()), strict=True):
        assert (error.cause, error.package) == (cause, package), (error.message, error.text)
        assert words in error.message
        assert cause != "network" or error.denied == ("elsewhere.test:80",)


def test_versions_that_contradict_each_other_are_said(tmp_path: Path, registry: Registry) -> None:
    npm_is_here()
    registry.add("a")
    registry.add("b", peerDependencies={"a": "^9.0.0"})
    error = fault(tool(tmp_path, {"a": "1.0.0", "b": "1.0.0"}), options(tmp_path, Interpreters(bun="/nowhere")))
    assert error.cause == "conflict"
    assert 'peer a@"^9.0.0" from b@1.0.0' in error.message


def test_a_lock_file_that_does_not_fit_is_said(tmp_path: Path, registry: Registry, interpreters: Interpreters) -> None:
    first = registry.add("a")
    registry.add("b")
    by_bun = interpreters.bun != "/nowhere/bun"
    bun_lock = f'{{"lockfileVersion": 1, "workspaces": {{"": {{"dependencies": {{"a": "^1.0.0"}}}}}}, "packages": {{"a": ["a@1.0.0", "", {{}}, "{first}"]}}}}'
    files = {"bun.lock": bun_lock} if by_bun else {"package-lock.json": lock_of(first)}
    error = fault(tool(tmp_path, {"a": "^1.0.0", "b": "1.0.0"}, files), options(tmp_path, interpreters))
    assert error.cause == "declaration", (error.message, error.text)
    assert "do not fit together" in error.message


def test_a_lock_files_hash_is_held(tmp_path: Path, registry: Registry, interpreters: Interpreters) -> None:  # D78
    first = registry.add("a")
    by_bun = interpreters.bun != "/nowhere/bun"
    chosen = options(tmp_path, interpreters)
    made(tool(tmp_path, {"a": "^1.0.0"}), chosen).close()  # now it is in the download cache
    other = "sha512-" + "A" * 86 + "=="
    assert first != other
    bun_lock = f'{{"lockfileVersion": 1, "workspaces": {{"": {{"dependencies": {{"a": "^1.0.0"}}}}}}, "packages": {{"a": ["a@1.0.0", "", {{}}, "{other}"]}}}}'
    files = {"bun.lock": bun_lock} if by_bun else {"package-lock.json": lock_of(other)}
    error = fault(tool(tmp_path, {"a": "^1.0.0"}, files), chosen)
    assert (error.cause, error.package) == ("hash", "a"), (error.message, error.text)


def test_a_registry_that_is_not_there_is_a_network_fault(
    tmp_path: Path, registry: Registry, interpreters: Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("npm_config_registry", f"http://{NAME}:{unused.getsockname()[1]}")
        error = fault(tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, interpreters, wall_ms=60_000))
    assert error.cause == "network", (error.message, error.text)


def test_an_address_that_the_operator_did_not_open_is_a_network_fault(tmp_path: Path, registry: Registry) -> None:
    registry.add("a")
    chosen = options(tmp_path, Interpreters(bun=own_bun()), allow_cidrs=())
    error = fault(tool(tmp_path, {"a": "1.0.0"}), chosen)
    assert error.cause == "network"
    assert f"{NAME}:{registry.port}" in error.denied
    assert "allowCidrs" in error.remedy
    assert not registry.asked


# What is refused before anything runs


@pytest.mark.parametrize(
    "asked",
    [
        *(
            "git+https://example.com/a.git",
            "git://example.com/a",
            "github:user/a",
            "user/a",
            "gitlab:user/a",
            "git@example.com:a.git",
        ),
        *(
            "https://example.com/a.tgz",
            "http://example.com/a.tgz",
            "file:../a",
            "link:../a",
            "./a",
            "../a",
            "/a",
            "~/a",
        ),
        *("workspace:*", "portal:../a", "patch:a@1", "npm:../a@1", "npm:a@file:x", "npm:a@user/b", "jsr:@a/b@1"),
    ],
)
def test_a_package_from_elsewhere_than_a_registry_is_refused(asked: str) -> None:
    for field in ("dependencies", "optionalDependencies", "peerDependencies"):
        with pytest.raises(DependencyFault) as caught:
            npm_files.read_manifest(json.dumps({field: {"a": asked}}).encode())
        assert (caught.value.cause, caught.value.package) == ("refused", "a")
    for more in ({"overrides": {"b": {"a": asked}}}, {"resolutions": {"a": asked}}):
        with pytest.raises(DependencyFault):
            npm_files.read_manifest(json.dumps({"dependencies": {"b": "1"}, **more}).encode())
    lock = {"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.0.0", "resolved": asked}}}
    if not asked.startswith("http"):
        with pytest.raises(DependencyFault):
            npm_files.read_npm_lock(json.dumps(lock).encode(), "package-lock.json")
    with pytest.raises(DependencyFault):
        npm_files.read_bun_lock(json.dumps({"lockfileVersion": 1, "packages": {"a": [f"a@{asked}", "x"]}}).encode())


@pytest.mark.parametrize(
    "asked",
    ["1.0.0", "^1.2", "~1", "*", "", "latest", ">=1 <2 || 3.x", "1.0.0 - 2.0.0", "npm:b@^1", "npm:@x/b@1.0.0", "npm:b"],
)
def test_a_version_range_is_taken(asked: str) -> None:
    wanted = npm_files.read_manifest(json.dumps({"dependencies": {"a": asked}}).encode())
    assert wanted is not None
    assert wanted.direct == {"a": asked}
    assert bool(wanted.findings) == (asked not in ("1.0.0", "npm:@x/b@1.0.0"))


@pytest.mark.parametrize("name", ["../a", "a/b", "@a", "@/a", "a b", "-a@1", "a\n", "@a/../b", "", ".."])
def test_a_name_that_no_registry_has_is_refused(name: str) -> None:
    with pytest.raises(DependencyFault):
        npm_files.read_manifest(json.dumps({"dependencies": {name: "1.0.0"}}).encode())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b"\xff", "is no JSON"),
        (b'{"dependencies": []}', "'dependencies' must be an object"),
        (b'{"dependencies": {"a": 1}}', "must be a text"),
        (b'{"dependencies": {"a": "1"}, "workspaces": ["x"]}', "workspaces are not installed"),
        (b'{"dependencies": {"a": "1"}, "overrides": []}', "'overrides' must be an object"),
        (b"[" * 100_000, "is no JSON"),
        (b'{\n  "name": "x",\n  bad\n}', "^package.json:3:3: is no JSON: "),
        (b'\xef\xbb\xbf{\n "a": "\xc3\xa4", }', "^package.json:2:12: is no JSON: "),
        (b'{\n "a":', "^package.json:2:6: is no JSON: it ends too early"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_said(data: bytes, words: str) -> None:
    with pytest.raises(DependencyFault, match=words):
        npm_files.read_manifest(data)


@given(st.binary(max_size=120) | st.text(max_size=120).map(str.encode))
def test_no_file_content_raises_anything_else(data: bytes) -> None:
    for read in (
        npm_files.read_manifest,
        npm_files.read_bun_lock,
        lambda found: npm_files.read_npm_lock(found, "package-lock.json"),
    ):
        with contextlib.suppress(DependencyFault):
            read(data)


def test_dependencies_for_development_are_not_installed(
    tmp_path: Path, registry: Registry, interpreters: Interpreters
) -> None:
    registry.add("a")
    folder = tool(tmp_path, {"a": "1.0.0"}, devDependencies={"absent": "1", "from-git": "user/x"})
    with made(folder, options(tmp_path, interpreters)) as lease:
        assert lease.meta.packages == (("a", "1.0.0"),)


@pytest.mark.parametrize(
    ("resolved", "refused"),
    [
        ("{registry}/a/-/a-1.0.0.tgz", False),
        (f"{PUBLIC_REGISTRY}/a/-/a-1.0.0.tgz", False),
        ("http://elsewhere.test/a.tgz", True),
        (f"{PUBLIC_REGISTRY}.evil.test/a.tgz", True),
        (PUBLIC_REGISTRY.replace("//", "//user:secret@") + "/a.tgz", True),
        ("git+ssh://git@example.com/a.git#abc", True),
        ("file:../a", True),
    ],
)
def test_an_address_in_a_lock_file_is_the_registrys_or_refused(
    tmp_path: Path, registry: Registry, resolved: str, refused: bool
) -> None:
    npm_is_here()
    first = registry.add("a")
    lock = lock_of(first, resolved=resolved.format(registry=registry.url))
    folder, chosen = (
        tool(tmp_path, {"a": "^1.0.0"}, {"package-lock.json": lock}),
        options(tmp_path, Interpreters(bun="/nowhere")),
    )
    if not refused:
        made(folder, chosen).close()
        return
    error = fault(folder, chosen)
    assert (error.cause, "secret" in error.message) == ("refused", False), error.message
    assert not registry.asked


def test_an_address_that_the_operator_named_is_taken(tmp_path: Path, registry: Registry) -> None:
    named = "http://other.test:8000/npm"
    lock = lock_of("sha512-" + "A" * 86 + "==", resolved=f"{named}/a/-/a-1.0.0.tgz")
    folder = tool(tmp_path, {"a": "^1.0.0"}, {"package-lock.json": lock})
    npm_is_here()
    chosen = options(tmp_path, Interpreters(bun="/nowhere"), indexes=(registry.url, named))
    made_by = recipe_for(folder, "tool.js", "nodejs", chosen)
    assert made_by is not None
    assert made_by[1].hosts == (f"{NAME}:{registry.port}", "other.test:8000")


def test_a_registry_that_the_operator_did_not_name_is_refused(tmp_path: Path, registry: Registry) -> None:
    chosen = options(tmp_path, Interpreters(bun=own_bun()), indexes=("https://index.example.org/simple",))
    error = fault(tool(tmp_path, {"a": "1.0.0"}), chosen)
    assert error.cause == "refused"
    assert "dependencies.indexes" in error.message
    assert not registry.asked


# Configuration


def test_credentials_never_reach_the_sandbox(
    tmp_path: Path, registry: Registry, interpreters: Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.add("a")
    secret = "s3cr3t-token"
    (tmp_path / "home" / ".npmrc").write_text(
        f"//{NAME}:{registry.port}/:_authToken={secret}\n//{NAME}:{registry.port}/:_password={secret}\n_auth={secret}\nregistry={registry.url}\n"
    )
    monkeypatch.setenv(f"npm_config_//{NAME}:{registry.port}/:_authToken", secret)
    monkeypatch.setenv("NPM_TOKEN", secret)
    chosen = options(tmp_path, interpreters)
    folder = tool(tmp_path, {"a": "1.0.0"}, {".npmrc": f"_authToken={secret}"})
    with made(folder, chosen) as lease:
        assert not [
            path
            for path in Path(lease.path).rglob("*")
            if path.is_file() and secret in path.read_text("utf-8", "replace")
        ]
    assert registry.headers
    assert not [headers for headers in registry.headers if "authorization" in headers or secret in str(headers)]
    found = recipe_for(folder, "tool.js", "nodejs", chosen)
    assert found is not None
    assert secret not in repr(found[1])


def test_a_registry_with_a_password_in_its_address_is_refused(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", f"http://user:s3cr3t@{NAME}:{registry.port}/")
    error = fault(tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, Interpreters(bun=own_bun())))
    assert error.cause == "refused"
    assert "s3cr3t" not in error.message + error.remedy


def test_a_scope_has_its_registry(tmp_path: Path, registry: Registry, interpreters: Interpreters) -> None:
    with serving() as scoped:
        scoped.url = f"http://other.test:{scoped.port}"
        scoped.add("@own/b")
        registry.add("a")
        (tmp_path / "home" / ".npmrc").write_text(f"@own:registry={scoped.url}/\n")
        folder, chosen = tool(tmp_path, {"a": "1.0.0", "@own/b": "1.0.0"}), options(tmp_path, interpreters)
        with made(folder, chosen) as lease:
            assert lease.meta.packages == (("@own/b", "1.0.0"), ("a", "1.0.0"))
        assert not [path for path in registry.asked if "own" in path]


def test_a_scope_that_may_not_be_reached_is_not_taken_from_another_registry(
    tmp_path: Path, registry: Registry, interpreters: Interpreters
) -> None:
    registry.add("@own/b")
    registry.add("a", dependencies={"@own/b": "1.0.0"})
    (tmp_path / "home" / ".npmrc").write_text("@own:registry=http://private.test/\n")
    folder, chosen = tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, interpreters, indexes=(registry.url,))
    error = fault(folder, chosen)
    assert error.cause == "network", (error.message, error.text)
    assert not [path for path in registry.asked if "own" in path]


@pytest.mark.parametrize(
    ("files", "variables", "registry_text", "scopes"),
    [
        ({}, {}, PUBLIC_REGISTRY, ()),
        ({"home/.npmrc": "registry = https://a.test/\n"}, {}, "https://a.test/", ()),
        (
            {"home/.npmrc": '; note\n# note\n[x]\nregistry="https://a.test/"\n@S:registry=https://s.test\n'},
            {},
            "https://a.test/",
            ("@s",),
        ),
        (
            {"home/.npmrc": "registry=https://${WHERE}.test\n"},
            {"npm_where": "x", "WHERE": "b"},
            "https://${WHERE}.test",
            (),
        ),
        ({"home/.npmrc": "registry=https://a.test/"}, {"NPM_CONFIG_REGISTRY": "https://c.test"}, "https://c.test", ()),
        ({"usr/etc/npmrc": "registry=https://g.test/"}, {}, "https://g.test/", ()),
        (
            {"usr/etc/npmrc": "registry=https://g.test/", "home/.npmrc": "registry=https://a.test/"},
            {},
            "https://a.test/",
            (),
        ),
        ({"npm/npmrc": "registry=https://builtin.test/"}, {}, "https://builtin.test/", ()),
        ({"other": "registry=https://o.test/"}, {"npm_config_userconfig": "{top}/other"}, "https://o.test/", ()),
        ({"other": "registry=https://o.test/"}, {"npm_config_globalconfig": "{top}/other"}, "https://o.test/", ()),
        (
            {
                "home/.bunfig.toml": '[install]\nregistry = "https://bun.test"\n[install.scopes]\nb = {url="https://b.test", token="$T"}\n'
            },
            {},
            "https://bun.test",
            ("@b",),
        ),
        (
            {
                "home/.bunfig.toml": '[install]\nregistry = "https://bun.test"\n',
                "home/.npmrc": "registry=https://a.test",
            },
            {},
            "https://a.test",
            (),
        ),
        ({"home/.bunfig.toml": "not [toml"}, {}, PUBLIC_REGISTRY, ()),
        ({"home/.npmrc": "\0\xff= = =\n===\nregistry\nregistry=\n"}, {}, PUBLIC_REGISTRY, ()),
    ],
)
def test_the_registry_is_the_one_that_npm_is_configured_for(
    tmp_path: Path, files: dict[str, str], variables: dict[str, str], registry_text: str, scopes: tuple[str, ...]
) -> None:
    (tmp_path / "home").mkdir()
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    environ = {"HOME": str(tmp_path / "home"), "npm_config_prefix": str(tmp_path / "usr")}
    environ |= {name: value.format(top=tmp_path) if "{top}" in value else value for name, value in variables.items()}
    if Path("/etc/npmrc").exists():
        environ.setdefault("npm_config_globalconfig", str(tmp_path / "usr" / "etc" / "npmrc"))
    found = configured_indexes.npm_settings((str(tmp_path / "npm"),), environ)
    assert found.registry[0] == registry_text
    assert tuple(scope for scope, _, _ in found.scopes) == scopes


def test_what_npm_says_of_itself_is_what_is_read(tmp_path: Path) -> None:
    npm_is_here()
    found = find_interpreter("nodejs", Interpreters())
    assert not isinstance(found, Missing)
    top = os.path.dirname(os.path.dirname(found.file))
    cli = f"{top}/lib/node_modules/npm/bin/npm-cli.js"
    if not os.path.exists(cli):
        pytest.skip(f"no npm stands beside {found.file}")
    said = subprocess.run(
        [found.file, cli, "config", "get", "registry"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert configured_indexes.npm_settings((os.path.dirname(os.path.dirname(cli)), top)).registry[0].rstrip(
        "/"
    ) == said.strip().rstrip("/")


# The recipe


def test_the_key_changes_with_what_decides_and_with_nothing_else(tmp_path: Path, registry: Registry) -> None:
    chosen = options(tmp_path, Interpreters(bun=own_bun()))

    def key(folder: str, used: Options = chosen) -> str:
        found = recipe_for(folder, "tool.js", "nodejs", used)
        assert found is not None
        return found[1].key

    first = key(tool(tmp_path, {"a": "1.0.0"}))
    assert key(tool(tmp_path, {"a": "1.0.0"}, script="other", scripts={"x": "y"}, devDependencies={"d": "1"})) == first
    assert key(tool(tmp_path, {"a": "1.0.1"})) != first
    assert key(tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, Interpreters(bun=own_bun()), pin=())) == first
    if not isinstance(find_interpreter("nodejs", Interpreters()), Missing):
        assert (
            key(tool(tmp_path, {"a": "1.0.0"}), options(tmp_path, Interpreters(bun=own_bun()), allow_build=True))
            != first
        )


def test_the_lint_names_what_is_not_pinned(tmp_path: Path, registry: Registry) -> None:  # D78
    chosen = options(tmp_path, Interpreters(bun=own_bun()))
    folder = tool(
        tmp_path,
        {},
        {"package.json": '{\n "dependencies": {\n  "a": "^1",\n  "b": "1.0.0"\n }\n}', "yarn.lock": "", ".npmrc": ""},
    )
    found = recipe_for(folder, "tool.js", "nodejs", chosen)
    assert found is not None
    said = [(remark.file, remark.line) for remark in found[1].findings]
    assert said == [("package.json", 0), ("package.json", 3), ("yarn.lock", 0), (".npmrc", 0)]


def test_a_missing_package_manager_is_said(tmp_path: Path, registry: Registry) -> None:
    neither = options(tmp_path, Interpreters(bun="/nowhere/bun", nodejs="/nowhere/node"))
    error = fault(tool(tmp_path, {"a": "1"}), neither)
    assert (error.cause, error.passing) == ("installer", True)
    assert "/nowhere/bun" in error.message
    assert "sandbox.interpreters" in error.remedy


def test_a_link_in_the_place_of_a_manifest_is_refused(tmp_path: Path) -> None:
    folder = tool(tmp_path, {"a": "1"})
    Path(folder, "package.json").unlink()
    Path(folder, "package.json").symlink_to("/etc/passwd")
    error = fault(folder, options(tmp_path, Interpreters(bun="/nowhere")))
    assert error.cause == "declaration"
    assert "symbolic link" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "error: something",
        "npm error code EWHATEVER\nnpm error ~~~",
        "\x1b[31m" * 9000,
        "a" * 100_000,
        "npm error path " * 9000,
        "GET http://x/" * 9000,
        "peer\n" * 20_000,
    ],
)
def test_any_words_of_an_installer_give_a_fault(text: str) -> None:
    step = Step(name="npm install", command=("/bin/true",))
    made_by = Recipe(kind="javascript", form="package.json", identity={}, files=(), steps=(step,))
    error = npm_words.explain(made_by, step, RunOutcome(kind="error", stderr=text.encode(), exit_code=1))
    assert error.cause == "installer"
    assert len(error.text) < 2_000
    assert len(error.message) < 400


def configured_registry() -> tuple[str, ...]:
    """The range of the registry that npm is configured for on this machine: its address may be no public one."""
    parts = urlsplit(configured_indexes.npm_settings().registry[0])
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=600) as connection:
            address = str(connection.getpeername()[0])
    except OSError as error:
        pytest.skip(f"the registry that npm is configured for is not reached: {error}")
    return (f"{address}/{128 if ':' in address else 32}",)


def test_the_real_esbuild_installs_where_scripts_may_run(tmp_path: Path, is_long: bool) -> None:  # T11
    """Its script links the program to a second name, and starts it: both hold in the environment."""
    if not is_long:
        pytest.skip("it downloads 10 MB from the registry that npm is configured for: --long runs it")
    npm_is_here()
    opened = configured_registry()
    chosen = options(tmp_path, Interpreters(bun="/nowhere"), allow_cidrs=opened, pin=(), allow_build=True)
    script = "const made = require('esbuild').transformSync('let a: number = 1', {loader: 'ts'}); console.log(JSON.stringify(made.code))"
    folder = tool(tmp_path, {"esbuild": "0.25.0"}, script=script)
    with made(folder, chosen) as lease:
        outcome = run(folder, lease, chosen)
        assert outcome.stdout == b'"let a = 1;\\n"\n', (outcome.kind, outcome.stderr)
        program = Path(lease.path, "node_modules", "esbuild", "bin", "esbuild").stat()
        assert program.st_mode & 0o222 == 0


# it needs the network; the tests above show the same with a registry on loopback
@pytest.mark.long
def test_a_real_package_comes_from_the_configured_registry(tmp_path: Path) -> None:
    """Against the registry that npm is configured for on this machine, where it is reached."""
    chosen = options(tmp_path, Interpreters(bun=own_bun()), allow_cidrs=configured_registry(), pin=())
    folder = tool(tmp_path, {"ms": "2.1.3"}, script="console.log(require('ms')('2 days'))")
    with made(folder, chosen) as lease:
        assert run(folder, lease, chosen).stdout == b"172800000\n"


def test_declared_files_are_bounded(tmp_path: Path) -> None:
    folder = tool(tmp_path, {"a": "1"})
    with open(f"{folder}/package-lock.json", "wb") as stream:
        stream.truncate(5 * 1024 * 1024)
    error = fault(folder, options(tmp_path, Interpreters(bun="/nowhere")))
    assert "larger than" in error.message


def test_a_declaration_is_read_once(tmp_path: Path, registry: Registry) -> None:
    """What was checked is what is built: the recipe holds the bytes."""
    manifest = json.dumps({"dependencies": {"a": "1.0.0"}}).encode()
    declared = Declared(kind="javascript", form="package.json", files=(("package.json", manifest),))
    found = javascript.recipe(declared, options(tmp_path, Interpreters(bun=own_bun())))
    assert json.loads(dict(found.files)["package.json"]) == {"dependencies": {"a": "1.0.0"}}
