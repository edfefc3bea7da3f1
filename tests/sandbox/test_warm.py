"""A script cannot tell a warm start from a cold one: the same script both ways gives the same bytes and exit code."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tamis.sandbox import questions
from tamis.sandbox.interpreters import Missing, find_interpreter
from tamis.sandbox.model import Interpreters, RunOutcome, RunRequest
from tamis.sandbox.warm.boot import PYTHON_PATH, compiled, python_starter, starter
from tamis.sandbox.warm.pool import PoolSettings, opened_pool
from tests.sandbox import support, warm_cases

STDIN = b'{"a": [1, "\xc3\xa9"]}\nsecond line\n'
# What no two runs have in common.
_ALIKE = (
    (re.compile(rb"0x[0-9a-f]{6,}"), b"0x"),
    (re.compile(rb"tmp[a-z0-9_]{8}"), b"tmp"),
    # the warning is given where no script is any more: a cold run has no frame there, a warm one its starter's
    (re.compile(rb"^\S+:\d+: (?=RuntimeWarning: coroutine)"), b""),
)
ALWAYS_COLD = {"syntax-error", "syntax-warning", "bad-encoding", "deprecated-module"}
"""Scripts that cannot be made ready without a trace: no sandbox ever waits for them."""


Pair = tuple[RunOutcome, RunOutcome]


async def both(wanted: RunRequest) -> Pair:
    async with opened_pool(PoolSettings(eager=True)) as pool:
        cold = await pool.run(wanted)
        await pool.settle()
        return cold, await pool.run(wanted)


def seen(outcome: RunOutcome) -> dict[str, Any]:
    streams = {"stdout": outcome.stdout, "stderr": outcome.stderr}
    for name, content in streams.items():
        for pattern, same in _ALIKE:
            content = pattern.sub(same, content)
        streams[name] = content
    return {
        "kind": outcome.kind,
        "exit": outcome.exit_code,
        "signal": outcome.signal,
        "limit": outcome.limit,
        **streams,
    }


def request_of(language: str, name: str, place: Path) -> RunRequest:
    text = (warm_cases.PYTHON if language == "python" else warm_cases.NODE)[name]
    script = "tool.py" if language == "python" else "tool.js"
    encoding = "latin-1" if name == "latin-1-source" else "utf-8"
    folder = support.tool_folder(place, text.encode(encoding), script)
    stdin = b'{"a": [1, 2]}' if name == "json-in-out" else STDIN
    args = ("a b", "--c") if language == "python" else ()
    return support.request(folder, script, language, stdin=stdin, args=args)


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Pair]:
    """What the chosen scripts came to; the first of sixteen runs them all, a few at a time."""
    items = [
        item for item in request.session.items if isinstance(item, pytest.Function) and item.module is request.module
    ]
    cases = [item for item in items if item.originalname.endswith("_cannot_tell")]
    chosen = [(item.originalname.split("_")[1], item.callspec.params["name"]) for item in cases]

    async def one(gate: asyncio.Semaphore, language: str, name: str) -> Pair:
        async with gate:
            wanted = request_of("nodejs" if language == "node" else language, name, tmp_path_factory.mktemp(language))
            return await both(wanted)

    found: dict[tuple[str, str], Pair] = {}

    async def work(some: list[tuple[str, str]]) -> list[Pair]:
        gate = asyncio.Semaphore(support.AT_ONCE)
        return await asyncio.gather(*(one(gate, *which) for which in some))

    def pair(language: str, name: str) -> Pair:
        if (language, name) not in found:
            at = chosen.index((language, name))
            some = chosen[at : at + 16]
            found.update(zip(some, asyncio.run(work(some)), strict=True))
        return found[language, name]

    return pair


@pytest.mark.share(4)
@pytest.mark.parametrize("name", warm_cases.PYTHON)
def test_python_script_cannot_tell(name: str, results: Callable[[str, str], Pair]) -> None:
    cold, warm = results("python", name)
    assert cold.kind != "unavailable", cold
    assert (cold.sandbox.warm, warm.sandbox.warm) == (False, name not in ALWAYS_COLD)
    assert seen(warm) == seen(cold)


@pytest.mark.skipif(
    isinstance(find_interpreter("nodejs", Interpreters()), Missing), reason="no Node.js on this machine"
)
@pytest.mark.share(4)
@pytest.mark.parametrize("name", warm_cases.NODE)
def test_node_script_cannot_tell(name: str, results: Callable[[str, str], Pair]) -> None:
    cold, warm = results("node", name)
    assert cold.kind != "unavailable", cold
    assert (cold.sandbox.warm, warm.sandbox.warm) == (False, True)
    assert seen(warm) == seen(cold)


@pytest.mark.parametrize(
    ("language", "script", "text"),
    [
        (
            "python",
            "tool.py",
            "import json, os; print(json.dumps([os.environ.get('TRACEPARENT'), os.environ.get('NEVER')]))",
        ),
        ("nodejs", "tool.js", "console.log(JSON.stringify([process.env.TRACEPARENT, process.env.NEVER ?? null]))"),
    ],
)
def test_a_waiting_sandbox_is_told_the_variables_of_its_call(
    language: str, script: str, text: str, tmp_path: Path
) -> None:
    """D94: the trace of a call reaches the script, and costs no warm start."""
    if isinstance(find_interpreter(language, Interpreters()), Missing):
        pytest.skip(f"no {language} here")
    folder = support.tool_folder(tmp_path, text.encode(), script)
    wanted = [
        support.request(folder, script, language, call_env={"TRACEPARENT": f'00-{number}="é'}) for number in range(3)
    ]

    async def run() -> list[RunOutcome]:
        async with opened_pool(PoolSettings(eager=True)) as pool:
            found = [await pool.run(wanted[0])]
            for one in wanted[1:]:
                await pool.settle()
                found.append(await pool.run(one))
            return found

    outcomes = asyncio.run(run())
    assert [outcome.sandbox.warm for outcome in outcomes] == [False, True, True]
    assert [json.loads(outcome.stdout) for outcome in outcomes] == [[f'00-{n}="é', None] for n in range(3)]


def test_a_waiting_python_began_with_a_compiled_starter(tmp_path: Path) -> None:
    """R9: the interpreter compiles its starter once, not before each call."""
    text = f"print(open({PYTHON_PATH!r}, 'rb').read(4)[2:])"
    folder = support.tool_folder(tmp_path, text.encode())
    cold, warm = asyncio.run(both(support.request(folder)))
    assert (cold.kind, warm.sandbox.warm) == ("error", True)
    assert warm.stdout == b"b'\\r\\n'\n"


@pytest.mark.parametrize("answer", [b"", b"source\n", b"\xa7\r\r", b"\xa7\r\r\n" + bytes(12)])
def test_an_interpreter_that_compiles_nothing_is_given_the_source(answer: bytes) -> None:
    assert compiled(answer, is_gate=False) == starter("python")
    assert compiled(answer, is_gate=True) == python_starter(is_gate=True).encode() != starter("python")


def test_a_starter_that_is_the_gate_looks_at_nothing_of_the_tool_before_the_word(tmp_path: Path) -> None:
    """A daemon that died before the limits stood leaves a gate at the end of its input, and nothing else."""
    program, script = tmp_path / "starter.py", tmp_path / "tool.py"
    program.write_text(python_starter(is_gate=True))
    os.mkfifo(script)  # whoever opens it waits for ever
    with subprocess.Popen([sys.executable, "-s", "-B", program, script], stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"\n"
        assert process.communicate() == (b"", b"")
    assert process.returncode == 1


def test_a_starter_that_the_interpreter_does_not_take_never_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of an interpreter that was replaced meanwhile costs the warm start, and no call."""
    monkeypatch.setattr(questions, "ask", lambda program, words: b"\x01\x02\r\n" + bytes(40))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    folder = support.tool_folder(tmp_path, b"print(1)")
    first, second = asyncio.run(both(support.request(folder)))
    assert [(one.stdout, one.sandbox.warm) for one in (first, second)] == [(b"1\n", False)] * 2
