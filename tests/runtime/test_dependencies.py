"""Dependencies of a call: installed between approval and run, a failure is a `DependencyError`, nothing for what will not run."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols.contract import ExecutionResult
from tamis.server.cli.main import main
from tamis.server.runtime.calls.model import CallRequest
from tamis.server.runtime.execution.pipeline import execute
from tamis.server.runtime.handlers.script.dependencies import look_at, tools_with_scripts
from tamis.server.runtime.runtime import Runtime
from tests.environments.package_index import Index, sdist, serving, wheel
from tests.sample_tools import make_tool

SCRIPT = "import json, sys\njson.load(sys.stdin)\nimport needle\nprint(json.dumps({'version': needle.VERSION}))\n"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Index]:
    with serving() as index:
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("TAMIS_STATE_DIR", str(tmp_path / "state"))
        index.add(wheel("needle", "1.0"))
        yield index


def settings(**more: Any) -> dict[str, Any]:
    policy = {"allowCidrs": ["127.0.0.0/8"], "pin": {"index.test": "127.0.0.1"}}
    return {"policy": {**policy, **more.pop("policy", {})}, **more}


def needy(root: Path, requirements: str = "needle==1.0\n", **fields: Any) -> Path:
    folder = make_tool(root, "t:needy", SCRIPT, **fields)
    (folder / "requirements.txt").write_text(requirements)
    return folder


def call(root: Path, *, progress: list[str] | None = None, **more: Any) -> ExecutionResult:
    runtime = Runtime(root, settings(**{key: more.pop(key) for key in ("policy", "dependencies") if key in more}))

    async def run() -> ExecutionResult:
        context = runtime.call_context()
        if progress is not None:
            context = context.having(on_progress=lambda _, text: progress.append(text))
        return await execute(CallRequest(call_id="c1", name="t:needy", **more), context)

    return asyncio.run(run())


def test_a_tool_gets_what_it_declares_and_progress_is_told(tmp_path: Path, index: Index) -> None:
    # D06
    needy(tmp_path / "root")
    said: list[str] = []
    result = call(tmp_path / "root", progress=said)
    assert result.status == "success" and result.output == {"version": "1.0"}, result.error
    assert said[0] == "resolving" and "downloading 1 package" in said and said[-1] == "ready"
    said.clear()
    assert call(tmp_path / "root", progress=said).status == "success" and said == []


def test_a_failed_installation_is_a_dependency_error_that_names_package_and_cause(tmp_path: Path, index: Index) -> None:
    needy(tmp_path / "root", "absent==1.0\n")
    result = call(tmp_path / "root")
    assert result.status == "error" and result.error and result.error.type == "DependencyError"
    assert "absent" in result.error.message and result.error.details
    assert result.error.details.code == "missing" and "absent" in str(result.error.details.text)
    assert "DependencyError" in result.observation


def test_a_dry_run_and_a_closed_root_install_nothing(tmp_path: Path, index: Index) -> None:
    needy(tmp_path / "root")
    assert call(tmp_path / "root", dry_run=True).status == "success"
    result = call(tmp_path / "root", policy={"allowHosts": 7})
    assert result.status == "blocked"
    assert index.asked == [] and not (tmp_path / "cache").exists()


def test_switched_off_uses_only_what_is_ready_and_names_the_remedy(tmp_path: Path, index: Index) -> None:
    needy(tmp_path / "root")
    off = {"install": "off"}
    result = call(tmp_path / "root", dependencies=off)
    assert result.error and result.error.type == "DependencyError" and "tamis deps install" in result.error.message
    assert index.asked == []
    assert call(tmp_path / "root").status == "success"
    assert call(tmp_path / "root", dependencies=off).status == "success"


@pytest.mark.parametrize(("policy", "manifest"), [(True, False), (False, True)])
def test_building_needs_the_operators_word_and_the_tools(
    tmp_path: Path, index: Index, policy: bool, manifest: bool
) -> None:
    index.add(sdist("onlysource", "1.0", "raise SystemExit('setup.py ran')"))
    needy(tmp_path / "root", "onlysource==1.0\n", execution={"allowBuild": manifest})
    result = call(tmp_path / "root", policy={"allowBuild": policy})
    assert result.error and result.error.details and result.error.details.code == "source"
    assert "setup.py ran" not in str(result.error.details.text)


def test_a_tool_without_declarations_is_not_looked_at_twice(tmp_path: Path, index: Index) -> None:
    make_tool(tmp_path / "root", "t:needy", "import json\nprint(json.dumps(1))\n")
    assert call(tmp_path / "root").output == 1
    assert not (tmp_path / "cache").exists()


def test_deps_installs_lists_checks_and_prunes(
    tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    needy(root, "needle\n")
    (root / "tamis.toml").write_text('[policy]\nallowCidrs = ["127.0.0.0/8"]\npin = { "index.test" = "127.0.0.1" }\n')

    def deps(*words: str) -> tuple[int, Any]:
        code = main(["deps", *words, "--json", "--root", str(root)])
        return code, json.loads(capsys.readouterr().out)

    code, checked = deps("check")
    assert code == 0 and checked["tools"][0]["ready"] is False
    assert checked["tools"][0]["findings"][0]["line"] == 1  # D78: not pinned
    assert checked["tools"][0]["hosts"] == [index.place] and checked["unreached"] == []
    code, installed = deps("install", "t:needy")
    assert code == 0 and installed["tools"][0]["packages"] == 1
    code, listed = deps("list")
    assert listed["environments"][0]["tools"] == ["t:needy"]
    assert deps("prune")[1]["removed"] == []
    assert deps("prune", "--all")[1]["removed"] == [listed["environments"][0]["key"]]
    (root / "t_needy" / "requirements.txt").write_text("--index-url https://evil.test/simple\nneedle\n")
    code, checked = deps("check")
    assert code == 1 and "evil.test" in checked["tools"][0]["problem"]
    assert main(["deps", "install", "no:such", "--root", str(root)]) == 2


@pytest.mark.parametrize("verb", ["check", "install", "list"])
def test_options_and_tools_may_stand_in_any_order(
    tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    root = tmp_path / "root"
    needy(root)
    make_tool(root, "t:other", SCRIPT)
    (root / "t_other" / "requirements.txt").write_text("needle\n")
    (root / "tamis.toml").write_text('[policy]\nallowCidrs = ["127.0.0.0/8"]\npin = { "index.test" = "127.0.0.1" }\n')
    place = ["--root", str(root)]
    orders = [
        [verb, "--json", "t:needy", *place], [verb, *place, "t:needy", "--json"], ["--json", *place, verb, "t:needy"],
        [*place, verb, "--json", "t:needy"], [verb, "t:needy", "--json", *place], ["--json", verb, *place, "--", "t:needy"],
    ]  # fmt: skip
    for words in orders:
        assert main(["deps", *words]) == 0, words
        said = json.loads(capsys.readouterr().out)
        assert verb == "list" or [one["toolId"] for one in said["tools"]] == ["t:needy"], words
    assert main(["deps", verb, "t:needy", "--json", "t:other", *place]) == 0
    assert main(["deps", "prune", "--json", *place, "--all"]) == 0
    assert main(["deps", *place, "prune", "--json", "t:needy"]) == 2


def test_one_package_is_one_package(tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    needy(root)
    (root / "tamis.toml").write_text('[policy]\nallowCidrs = ["127.0.0.0/8"]\npin = { "index.test" = "127.0.0.1" }\n')
    assert main(["deps", "install", "--root", str(root)]) == 0
    assert "t:needy: 1 package ready" in capsys.readouterr().out


def test_an_index_that_would_not_be_reached_is_said_before_anything_is_installed(
    tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    needy(root)
    (root / "tamis.toml").write_text('[policy]\npin = { "index.test" = "127.0.0.1" }\n')
    assert main(["deps", "check", "--root", str(root)]) == 0
    said = capsys.readouterr().out
    assert (
        'index.test is at 127.0.0.1, which is not public; fix: add "127.0.0.1/32" to policy.allowCidrs of your own'
        in said
    )
    assert index.asked == []


def test_a_package_that_is_taken_for_a_tool_is_told_where_packages_go(
    tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    make_tool(root, "t:plain", SCRIPT, dependencies={"requests": ">=2", "t:other": ">=0"})
    make_tool(root, "t:other", SCRIPT)
    assert main(["deps", "check", "--root", str(root)]) == 0
    said = capsys.readouterr().out
    assert "t:plain: declares no packages" in said and "t:other" not in said
    assert "'requests' in dependencies is no registered tool; packages of a script go into requirements.txt" in said


@pytest.mark.parametrize(
    ("files", "place", "words"),
    [
        ({"requirements.txt": "needle==1.0\n-e .\n"}, "requirements.txt:2:1", "editable"),
        ({"requirements.txt": "https://x.test/six.whl\n"}, "requirements.txt:1:1", "without a package's name"),
        ({"requirements.txt": ""}, "", ""),
        ({"requirements.txt": "needle\n"}, "", ""),
        ({"pyproject.toml": "[project]\nname =\n"}, "pyproject.toml:2:1", "no TOML"),
    ],
)
def test_check_says_what_is_wrong_with_the_packages_of_a_tool(
    tmp_path: Path, index: Index, capsys: pytest.CaptureFixture[str], files: dict[str, str], place: str, words: str
) -> None:
    # MF543
    root = tmp_path / "root"
    folder = make_tool(root, "t:needy", SCRIPT)
    for name, text in files.items():
        (folder / name).write_text(text)
    assert main(["check", "--root", str(root), str(root)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "MF543" in line]
    assert len(lines) == bool(place)
    if place:
        assert (
            f"t_needy/{place}: warning: The packages of 't:needy' cannot be installed" in lines[0] and words in lines[0]
        )
    assert index.asked == [] and not (tmp_path / "cache").exists()


def test_a_waiting_sandbox_keeps_its_environment_from_being_pruned(tmp_path: Path, index: Index) -> None:
    from tamis.server.runtime.handlers.script.dependencies import environments, prune

    needy(tmp_path / "root")
    runtime = Runtime(tmp_path / "root", settings())
    runtime.keep_warm()

    async def work() -> None:
        for _ in range(3):
            result = await execute(CallRequest(call_id="c1", name="t:needy"), runtime.call_context())
            assert result.status == "success", result.error
            pool = runtime.warming._pool if runtime.warming is not None else None  # pyright: ignore[reportPrivateUsage]
            assert pool is not None
            await pool.settle()
        assert result.sandbox is not None and result.sandbox.warm and pool.metrics().idle
        assert prune(runtime.settings, everything=True).removed == ()
        assert (await execute(CallRequest(call_id="c1", name="t:needy"), runtime.call_context())).status == "success"
        await runtime.close()
        assert prune(runtime.settings, everything=True).removed != () and environments(runtime.settings) == []

    asyncio.run(work())


def test_looking_at_a_tool_never_raises(tmp_path: Path, index: Index) -> None:
    folder = needy(tmp_path / "root")
    (folder / "requirements.txt").write_bytes(b"\xff\xfe")
    runtime = Runtime(tmp_path / "root", settings())
    [(tool, handler)] = tools_with_scripts(runtime.registry)
    assert "UTF-8" in look_at(tool, handler, runtime.settings).problem
    (folder / "requirements.txt").unlink()
    (folder / "tool.py").unlink()
    look_at(tool, handler, runtime.settings)


def test_doctor_names_what_is_not_pinned_and_what_cannot_be_used(tmp_path: Path, index: Index) -> None:
    # D78
    from tamis.server.runtime.doctor import examine

    folder = needy(tmp_path / "root", "needle\n")
    texts = [
        one["text"]
        for one in examine(Runtime(tmp_path / "root", settings()))["checks"]
        if one["name"] == "dependencies"
    ]
    assert len(texts) == 1 and "requirements.txt:1" in texts[0] and "no exact version" in texts[0]
    (folder / "requirements.txt").write_text("git+https://example.com/x\n")
    checks = examine(Runtime(tmp_path / "root", settings()))["checks"]
    assert any(one["name"] == "dependencies" and "repository" in one["text"] for one in checks)
