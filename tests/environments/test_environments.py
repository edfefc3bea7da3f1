"""Python environments, built in the sandbox from an index on loopback: what they hold, what is refused, what a fault says."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.environments import python, store
from tamis.environments.model import Cancelled, DependencyFault, Options
from tamis.environments.prepare import prepare
from tamis.environments.store import Lease, Store
from tamis.sandbox import runner
from tamis.sandbox.model import Environment, Interpreters, Limits, RunOutcome, RunRequest
from tamis.sandbox.network import egress_hosts
from tamis.sandbox.network.hosts import opening
from tests.environments.package_index import Index, hang, sdist, send, serving, wheel

AS_EVER = python.RETRIES
PINS = (("index.test", "127.0.0.1"), ("other.test", "127.0.0.1"))
SHOW = """
import importlib, json, os, sys
names = json.load(sys.stdin)
print(json.dumps({name: importlib.import_module(name).VERSION for name in names} | {"python": sys.executable}))
"""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving() as index:
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        monkeypatch.setattr(store, "REMEMBER_SECONDS", 3600.0)
        monkeypatch.setattr(python, "RETRIES", 0)  # what does not answer here will not answer in a second either
        yield index


def options(tmp_path: Path, **more: Any) -> Options:
    more.setdefault("interpreters", Interpreters(uv=os.environ.get("TAMIS_TEST_UV") or None))
    more.setdefault("allow_cidrs", ("127.0.0.0/8",))
    return Options(store=str(tmp_path / "store"), pin=PINS, **more)


def tool(tmp_path: Path, requirements: str, name: str = "tool", **files: str) -> str:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "tool.py").write_text(SHOW)
    for path, content in {"requirements.txt": requirements, **files}.items():
        if content:
            (folder / path).write_text(content)
    return os.path.realpath(folder)


def get(folder: str, chosen: Options, **more: Any) -> Lease:
    lease = asyncio.run(prepare(folder, "tool.py", "python", chosen, **more))
    assert lease is not None
    return lease


def fault(folder: str, chosen: Options, **more: Any) -> DependencyFault:
    with pytest.raises(DependencyFault) as caught:
        get(folder, chosen, **more).close()
    return caught.value


def faults(folders: Iterable[str], chosen: Options) -> list[DependencyFault]:
    """Of several builds at the same time."""

    async def one(folder: str) -> DependencyFault:
        with pytest.raises(DependencyFault) as caught:
            await prepare(folder, "tool.py", "python", chosen)
        return caught.value

    async def every() -> list[DependencyFault]:
        return await asyncio.gather(*(one(folder) for folder in folders))

    return asyncio.run(every())


def use(folder: str, lease: Lease, *names: str) -> dict[str, str]:
    request = RunRequest(
        folder=folder,
        script="tool.py",
        language="python",
        stdin=json.dumps(names).encode(),
        environment=Environment("python", lease.path),
        limits=Limits(wall_ms=300_000),
    )
    outcome: RunOutcome = asyncio.run(runner.run(request))
    assert outcome.kind == "ok", outcome
    return json.loads(outcome.stdout)


def left_behind(chosen: Options) -> list[str]:
    return [path.name for path in (Path(chosen.store) / "v1").iterdir() if path.name.startswith(".")]


def test_requirements_are_installed_with_what_they_need_and_found_by_the_script(tmp_path: Path, index: Index) -> None:
    # D06, D09, D10
    index.add(wheel("needle", "1.0", requires=("thread>=2",)))
    index.add(wheel("thread", "2.1"))
    folder, chosen = tool(tmp_path, "needle==1.0\n"), options(tmp_path)
    said: list[str] = []
    with get(folder, chosen, on_progress=lambda progress: said.append(progress.text)) as lease:
        seen = use(folder, lease, "needle", "thread")
        assert seen == {"needle": "1.0", "thread": "2.1", "python": "/env/bin/python"}
        assert lease.meta.packages == (("needle", "1.0"), ("thread", "2.1"))
        assert [word.split()[0] for word in said if not word.startswith("installing")] == [
            "resolving", "downloading", "bytecode", "ready"
        ]  # fmt: skip
        site = next(Path(lease.path).glob("lib/python3.*/site-packages"))
        assert list((site / "__pycache__").glob("needle.*.pyc"))
        lock = (Path(lease.path).parent / "lock.txt").read_text()
        assert "thread==2.1" in lock and "--hash=sha256:" in lock
        writable = [
            path for path in Path(lease.path).rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o222
        ]
        assert writable == []
        assert os.stat(lease.path).st_uid == os.geteuid()
    assert left_behind(chosen) == []


def test_a_second_call_installs_nothing_and_a_change_does(tmp_path: Path, index: Index) -> None:
    # D08
    index.add(wheel("needle", "1.0"))
    index.add(wheel("needle", "2.0"))
    folder, chosen = tool(tmp_path, "needle==1.0\n"), options(tmp_path)
    with get(folder, chosen) as first:
        asked = len(index.asked)
        (Path(folder) / "requirements.txt").write_text("# a remark\n\nneedle == 1.0   # the same\n")
        with get(folder, chosen) as second:
            assert second.key == first.key and len(index.asked) == asked
        (Path(folder) / "requirements.txt").write_text("needle==2.0\n")
        with get(folder, chosen) as third:
            assert third.key != first.key and use(folder, third, "needle")["needle"] == "2.0"


def test_two_scripts_with_conflicting_versions_run_at_the_same_time(tmp_path: Path, index: Index) -> None:
    # D10, D12
    chosen = options(tmp_path)
    folders = {version: tool(tmp_path, f"needle=={version}\n", f"tool-{version}") for version in ("1.0", "2.0")}
    for version in folders:
        index.add(wheel("needle", version))

    async def one(version: str) -> str:
        lease = await prepare(folders[version], "tool.py", "python", chosen)
        assert lease is not None
        with lease:
            outcome = await runner.run(
                RunRequest(
                    folder=folders[version],
                    script="tool.py",
                    language="python",
                    stdin=b'["needle"]',
                    environment=Environment("python", lease.path),
                )
            )
            return json.loads(outcome.stdout)["needle"]

    async def both() -> list[str]:
        return await asyncio.gather(*(one(version) for version in folders))

    assert asyncio.run(both()) == ["1.0", "2.0"]


def test_what_was_downloaded_once_is_installed_without_network(tmp_path: Path, index: Index) -> None:
    index.add(wheel("needle", "1.0"))
    folder, chosen = tool(tmp_path, "needle==1.0\n"), options(tmp_path)
    get(folder, chosen).close()
    Store(chosen.store).prune(0, grace=0)
    closed = options(tmp_path)
    index.pages = {"/simple/needle/": lambda request: send(request, 503, b"", "text/plain")}
    with get(folder, closed) as lease:
        assert use(folder, lease, "needle")["needle"] == "1.0"


def test_an_index_that_is_not_reached_is_named(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://index.test:9/simple")
    said = fault(tool(tmp_path, "needle==1.0\n"), options(tmp_path))
    assert said.cause == "network" and "index.test:9" in said.message + said.text


def test_an_index_that_is_not_public_is_refused_unless_it_is_opened(tmp_path: Path, index: Index) -> None:
    said = fault(tool(tmp_path, "needle==1.0\n"), options(tmp_path, allow_cidrs=()))
    assert said.cause == "network" and said.denied == (index.place,)
    assert "index.test is at 127.0.0.1, which is not public" in said.message and index.asked == []
    assert said.remedy == opening("allowCidrs", "127.0.0.1/32")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_installer_behind_a_refused_host_asks_once_and_ends(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """Strangers: uv does not try again and again where the proxy refuses; the message has host, file and remedy."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{scheme}://{index.place}/simple")
    monkeypatch.setattr(python, "RETRIES", AS_EVER)
    seen: list[str] = []
    ask = egress_hosts.Addresses.vetted

    async def vetted(self: Any, host: str, port: int) -> Any:
        seen.append(host)
        return await ask(self, host, port)

    monkeypatch.setattr(egress_hosts.Addresses, "vetted", vetted)
    said = fault(tool(tmp_path, "needle==1.0\n"), options(tmp_path, allow_cidrs=()))
    assert "index.test is at 127.0.0.1" in said.message and "policy.allowCidrs" in said.remedy
    assert seen == ["index.test"]


def test_an_index_that_fails_once_is_asked_again(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "RETRIES", AS_EVER)
    index.add(wheel("needle", "1.0"))
    answers = index.pages = dict(index.pages)
    failed: list[str] = []

    def once(request: Any) -> None:
        failed.append(request.path)
        del answers["/simple/needle/"]
        send(request, 503, b"", "text/plain")

    answers["/simple/needle/"] = once
    folder = tool(tmp_path, "needle==1.0\n")
    with get(folder, options(tmp_path)) as lease:
        assert use(folder, lease, "needle")["needle"] == "1.0"
    assert failed == ["/simple/needle/"]


def test_a_package_that_there_is_not_is_named_and_remembered_for_a_while(tmp_path: Path, index: Index) -> None:
    folder, chosen = tool(tmp_path, "absent-package==1.0\n"), options(tmp_path)
    said = fault(folder, chosen)
    assert said.cause == "missing" and said.package == "absent-package" and "absent-package" in said.message
    asked = len(index.asked)
    again = fault(folder, chosen)
    assert again.message == said.message and len(index.asked) == asked  # negative cache
    assert fault(folder, chosen, again=True).cause == "missing" and len(index.asked) > asked
    assert left_behind(chosen) == []


def test_faults_name_the_package_and_the_cause(tmp_path: Path, index: Index) -> None:
    index.add(wheel("needle", "1.0", requires=("thread<2",)))
    index.add(wheel("thread", "2.1"))
    index.add(wheel("thread", "1.1"))
    index.add(wheel("machine", "1.0", tag="cp311-cp311-win_amd64"))
    right = index.add(wheel("pinned", "1.0"))
    index.add(wheel("odd", "1.0"), sha256="0" * 64)
    cases = {
        "needle==9.9": ("version", "needle==9.9"),
        "needle==1.0\nthread==2.1": ("conflict", ""),
        "machine==1.0": ("version", "machine==1.0"),
        f"pinned==1.0 --hash=sha256:{'1' * 64}": ("hash", "pinned==1.0"),
        f"pinned==1.0 --hash=sha256:{right}\nneedle==1.0": ("hash", "needle==1.0"),
        "odd==1.0": ("hash", "odd==1.0"),
    }
    chosen = options(tmp_path)
    folders = [tool(tmp_path, requirements, f"tool{number}") for number, requirements in enumerate(cases)]
    for (requirements, wanted), said in zip(cases.items(), faults(folders, chosen), strict=True):
        assert (said.cause, said.package) == wanted, (requirements, said.message, said.text)
        assert said.text


MARK = """
import os, sys
open("/cache/owned", "w") if os.path.isdir("/cache") else None
print("setup.py ran", file=sys.stderr)
from setuptools import setup
setup(name="hostile", version="1.0", py_modules=[])
"""


def test_a_source_distribution_is_not_built_unless_both_allow_it(tmp_path: Path, index: Index) -> None:
    # D09: its setup.py would run
    index.add(sdist("hostile", "1.0", MARK))
    folder, chosen = tool(tmp_path, "hostile==1.0\n"), options(tmp_path)
    said = fault(folder, chosen)
    assert said.cause == "source" and said.package == "hostile==1.0" and "allowBuild" in said.remedy
    assert "setup.py ran" not in said.text
    shared = Path(chosen.store) / "caches" / "uv"
    built = fault(folder, options(tmp_path, allow_build=True))  # setuptools is not in this index
    assert built.cause in ("missing", "source") and "setuptools" in built.message + built.text
    assert not (shared / "owned").exists()


BACKEND = """
import os, sys, zipfile
sys.path.insert(0, os.path.dirname(__file__))
def build_wheel(folder, config=None, metadata=None):
    seen = sorted(os.listdir("/cache"))
    name = "homemade-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("homemade.py", f"VERSION = {[seen, os.path.exists('/cache/left-by-another')]!r}")
        archive.writestr("homemade-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: homemade\\nVersion: 1.0\\n")
        archive.writestr("homemade-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("homemade-1.0.dist-info/RECORD", "")
    open("/cache/left-by-another", "w").close()
    return name
"""


def test_build_code_never_sees_the_shared_cache(tmp_path: Path, index: Index) -> None:
    import io
    import tarfile

    buffer = io.BytesIO()
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "homemade"\nversion = "1.0"\n'
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in (
            ("pyproject.toml", project),
            ("backend.py", BACKEND),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: homemade\nVersion: 1.0\n"),
        ):
            entry = tarfile.TarInfo(f"homemade-1.0/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content.encode()))
    index.add(("homemade-1.0.tar.gz", buffer.getvalue()))
    index.add(wheel("needle", "1.0"))
    get(tool(tmp_path, "needle==1.0\n", "plain"), options(tmp_path)).close()  # fills the shared cache
    folder, chosen = tool(tmp_path, "homemade==1.0\n"), options(tmp_path, allow_build=True)
    with get(folder, chosen) as lease:
        seen, left = use(folder, lease, "homemade")["homemade"]
        assert not left
    assert not (Path(chosen.store) / "caches" / "uv" / "left-by-another").exists()
    with get(folder, options(tmp_path, allow_build=True, wall_ms=119_999)) as lease:
        assert seen is not None and lease.meta.packages == (("homemade", "1.0"),)


def test_hostile_wheels_change_nothing_outside_of_their_environment(tmp_path: Path, index: Index) -> None:
    # a path that leaves the environment, code that a `.pth` file would start, an interpreter of its own
    index.add(wheel("climber", "1.0", {"../../../../../cache/climbed": "x", "climber.py": "VERSION = 1"}))
    start = "import os; os.path.isdir('/cache') and open('/cache/started', 'w').close(); open('/env/started', 'w').close()\n"
    index.add(wheel("starter", "1.0", {"starter.pth": start, "starter.py": "VERSION = '1.0'\n"}))
    index.add(
        wheel("taker", "1.0", {"taker-1.0.data/scripts/python": "#!/bin/sh\necho mine\n", "taker.py": "VERSION = 1"})
    )
    index.add(wheel("setter", "1.0", {"setter-1.0.data/data/pyvenv.cfg": "home = /tool\n", "setter.py": "VERSION = 1"}))
    chosen = options(tmp_path)
    shared = Path(chosen.store) / "caches" / "uv"
    with get(tool(tmp_path, "climber==1.0", "one"), chosen) as lease:
        assert lease.meta.packages == (("climber", "1.0"),)
    assert not list(tmp_path.rglob("climbed*"))
    with get(tool(tmp_path, "starter==1.0", "two"), chosen) as lease:
        assert not (Path(lease.path) / "started").exists() and not (shared / "started").exists()
    for name in ("taker", "setter"):
        said = fault(tool(tmp_path, f"{name}==1.0", name), chosen)
        assert said.cause == "installer" and ("replaces" in said.message or name in said.package), said.message


def test_a_wheel_that_unpacks_to_more_than_the_limit_is_stopped(tmp_path: Path, index: Index) -> None:
    zeros = bytes(48 * 1024 * 1024)
    index.add(wheel("bomb", "1.0", {f"bomb/{number}": zeros for number in range(4)}))
    folder = tool(tmp_path, "bomb==1.0")
    said = fault(folder, options(tmp_path, cache_bytes=40 * 1024 * 1024))
    assert said.cause == "disk" and "40 MiB" in said.message
    assert left_behind(options(tmp_path)) == []


def test_an_index_that_leads_elsewhere_leads_nowhere(tmp_path: Path, index: Index) -> None:
    index.pages["/simple/needle/"] = lambda request: send(
        request, 302, b"", "text/html", Location="http://other.test:9/simple/needle/"
    )
    said = fault(tool(tmp_path, "needle==1.0"), options(tmp_path))
    assert said.cause in ("network", "missing") and "other.test:9" in " ".join((*said.denied, said.text))


def test_files_of_another_host_are_fetched_only_where_the_operator_named_it(tmp_path: Path, index: Index) -> None:
    with serving("other.test") as other:
        digest = other.add(wheel("needle", "1.0"))
        name = next(iter(other.files))
        link = f'<a href="http://{other.place}/files/{name}#sha256={digest}">{name}</a>'
        index.pages["/simple/needle/"] = lambda request: send(request, 200, link.encode(), "text/html")
        folder = tool(tmp_path, "needle==1.0")
        said = fault(folder, options(tmp_path))
        assert said.cause == "network" and other.place in " ".join(said.denied)
        named = options(tmp_path, indexes=(index.url, f"http://{other.place}/files"))
        with get(folder, named) as lease:
            assert use(folder, lease, "needle")["needle"] == "1.0"


def test_a_tool_may_name_an_index_that_the_operator_listed(tmp_path: Path, index: Index) -> None:
    # D78
    with serving("other.test") as other:
        other.add(wheel("needle", "7.0"))
        index.add(wheel("needle", "1.0"))
        folder = tool(tmp_path, f"--index-url {other.url}\nneedle==7.0\n")
        said = fault(folder, options(tmp_path))
        assert said.cause == "refused" and "requirements.txt:1" in said.message and other.asked == []
        with get(folder, options(tmp_path, indexes=(index.url, other.url))) as lease:
            assert use(folder, lease, "needle")["needle"] == "7.0" and index.asked == []


def test_garbage_and_silence_end_with_a_cause(tmp_path: Path, index: Index) -> None:
    index.pages["/simple/garbage/"] = lambda request: send(request, 200, os.urandom(4096), "text/html")
    index.pages["/simple/json/"] = lambda request: send(
        request, 200, b'{"files": [{"url": 7}]}', "application/vnd.pypi.simple.v1+json"
    )
    index.add(("broken-1.0-py3-none-any.whl", b"PK\x03\x04 this is no zip file"))
    index.pages["/simple/silent/"] = hang
    names = ("garbage", "json", "broken")
    folders = [tool(tmp_path, f"{name}==1.0", name) for name in names]
    for name, said in zip(names, faults(folders, options(tmp_path)), strict=True):
        assert said.cause in ("missing", "network", "installer", "version"), (name, said.message)
        assert said.text
    said = fault(tool(tmp_path, "silent==1.0", "silent"), options(tmp_path, wall_ms=2_500))
    assert said.cause == "timeout" and "dependencies.wallMs" in said.remedy


def test_a_build_is_cancelled_at_once_and_leaves_nothing(tmp_path: Path, index: Index) -> None:
    index.pages["/simple/silent/"] = hang
    folder, chosen = tool(tmp_path, "silent==1.0"), options(tmp_path)

    async def cancelled() -> None:
        stop = asyncio.Event()
        building = asyncio.ensure_future(prepare(folder, "tool.py", "python", chosen, cancelled=stop))
        while not index.asked:
            await asyncio.sleep(0.02)
        stop.set()
        await building

    with pytest.raises(Cancelled):
        asyncio.run(cancelled())
    assert left_behind(chosen) == []
    assert Store(chosen.store).remembered("x" * 40) is None and not any((Path(chosen.store) / "failed").iterdir())


def test_two_callers_build_one_environment_once(tmp_path: Path, index: Index) -> None:
    index.add(wheel("needle", "1.0"))
    folder, chosen = tool(tmp_path, "needle==1.0\n"), options(tmp_path)
    said: list[str] = []

    async def both() -> list[Lease | None]:
        return await asyncio.gather(
            *(
                prepare(folder, "tool.py", "python", chosen, on_progress=lambda at: said.append(at.word))
                for _ in range(3)
            )
        )

    leases = asyncio.run(both())
    assert len({lease.key for lease in leases if lease}) == 1 and said.count("ready") == 1 and "waiting" in said
    for lease in leases:
        assert lease is not None
        lease.close()


def test_a_lock_is_followed_to_the_letter(tmp_path: Path, index: Index) -> None:
    # uv.lock before requirements.txt, whatever newer versions there are
    digest = index.add(wheel("needle", "1.0"))
    index.add(wheel("needle", "2.0"))
    name = "needle-1.0-py3-none-any.whl"
    project = '[project]\nname = "my-tool"\nversion = "0.1"\nrequires-python = ">=3.9"\ndependencies = ["needle>=1"]\n'
    lock = f"""version = 1
revision = 3
requires-python = ">=3.9"

[[package]]
name = "my-tool"
version = "0.1"
source = {{ virtual = "." }}
dependencies = [{{ name = "needle" }}]

[package.metadata]
requires-dist = [{{ name = "needle", specifier = ">=1" }}]

[[package]]
name = "needle"
version = "1.0"
source = {{ registry = "{index.url}" }}
wheels = [{{ url = "http://{index.place}/files/{name}", hash = "sha256:{digest}" }}]
"""
    folder = tool(tmp_path, "needle==2.0\n", **{"pyproject.toml": project, "uv.lock": lock})
    with get(folder, options(tmp_path)) as lease:
        assert use(folder, lease, "needle")["needle"] == "1.0" and lease.meta.form == "uv.lock"


def test_a_project_and_a_script_may_declare_for_themselves(tmp_path: Path, index: Index) -> None:
    index.add(wheel("needle", "1.0"))
    project = '[project]\nname = "x"\nversion = "1"\ndependencies = ["needle"]\n'
    folder = tool(tmp_path, "", **{"pyproject.toml": project})
    chosen = options(tmp_path)
    with get(folder, chosen) as lease:
        assert use(folder, lease, "needle")["needle"] == "1.0" and lease.meta.form == "pyproject.toml"
    (Path(folder) / "tool.py").write_text(f'# /// script\n# dependencies = ["needle==1.0"]\n# ///\n{SHOW}')
    with get(folder, chosen) as lease:
        assert use(folder, lease, "needle")["needle"] == "1.0" and lease.meta.form == "script"


def test_switched_off_uses_what_is_ready_and_installs_nothing(tmp_path: Path, index: Index) -> None:
    index.add(wheel("needle", "1.0"))
    folder, chosen = tool(tmp_path, "needle==1.0\n"), options(tmp_path)
    said = fault(folder, chosen, install=False)
    assert said.cause == "off" and "tamis deps install" in said.remedy and index.asked == []
    get(folder, chosen).close()
    get(folder, chosen, install=False).close()


def registry() -> tuple[str, ...]:
    """The range of the index that pip is configured for: its address may be no public one."""
    import socket
    from urllib.parse import urlsplit

    from tamis.environments.configured_indexes import pip_settings

    parts = urlsplit(pip_settings().default[0])
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=600) as connection:
            address = str(connection.getpeername()[0])
    except OSError as error:
        pytest.skip(f"the index that pip is configured for is not reached: {error}")
    return (f"{address}/{128 if ':' in address else 32}",)


# it needs the network; the tests above show the same with an index on loopback
@pytest.mark.long
def test_packages_of_the_configured_index_are_installed_and_again_from_the_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = registry()
    folder = tool(tmp_path, "requests==2.32.3\nbeautifulsoup4==4.12.3\n")
    (Path(folder) / "tool.py").write_text(
        "import bs4, json, requests\nprint(json.dumps([requests.__version__, bs4.__version__]))\n"
    )
    took: list[float] = []
    for chosen in (options(tmp_path, allow_cidrs=opened), options(tmp_path, allow_cidrs=())):
        with get(folder, chosen) as lease:
            took.append(lease.meta.build_ms)
            request = RunRequest(
                folder=folder, script="tool.py", language="python", environment=Environment("python", lease.path)
            )
            assert json.loads(asyncio.run(runner.run(request)).stdout) == ["2.32.3", "4.12.3"]
        Store(chosen.store).prune(0, grace=0)
    with capsys.disabled():
        print(f"\n  requests and beautifulsoup4: {took[0]:.0f} ms from the index, {took[1]:.0f} ms from the cache")
