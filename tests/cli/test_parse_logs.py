"""`tamis parse --jsonl`: a log of any size, and every way in which a log is bad (C1)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tamis.protocols import read
from tamis.server.logs import records
from tests.cli.in_process import Tamis
from tests.cli.process import COMMAND
from tests.waiting import until

ACTION = "<ACTION><t:a><x>1</x></t:a></ACTION>"
GOOD = json.dumps({"text": ACTION}).encode()


def log(tamis: Tamis, data: bytes, name: str = "log.jsonl") -> Path:
    path = tamis.folder / name
    path.write_bytes(data)
    return path


def out(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_a_record_in_is_a_result_out(tamis: Tamis) -> None:
    """C1: a ``ParseResult`` a line, in order, as `tamis parse` gives it of each text alone."""
    texts = [ACTION, "prose", f"<think>{ACTION}</think>", ACTION.removesuffix("</ACTION>"), "", "a\nb \u2028 说"]
    log(tamis, "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts).encode())
    done = tamis("parse", "--jsonl", "log.jsonl")
    assert (done.code, done.err) == (0, "")
    assert out(done.out) == [json.loads(json.dumps(read(text))) for text in texts]


@pytest.mark.parametrize("jobs", ["1", "2", "3"])
def test_the_number_of_processes_changes_nothing(tamis: Tamis, jobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1: parallel over cores; a log of several blocks."""
    monkeypatch.setattr(records, "BLOCK_BYTES", 16 * 1024)
    lines = [json.dumps({"text": f"{n} {ACTION}" + "x" * 200}) for n in range(400)]
    log(tamis, "\n".join(lines).encode())
    done = tamis("parse", "--jsonl", "log.jsonl", "--jobs", jobs)
    found = out(done.out)
    assert done.code == 0
    assert [one["responseText"] for one in found] == [f"{n} " for n in range(400)]


BROKEN: dict[str, tuple[bytes, int, str]] = {
    "no JSON": (b"plain words", 1, "not JSON"),
    "cut off within": (b'{"text": "a', 1, "not JSON"),
    "two records on a line": (GOOD + GOOD, 1, "Extra data"),
    "NUL bytes": (b"\x00\x00\x00", 1, "not JSON"),
    "nested too deeply": (b"[" * 100_000, 1, "nested too deeply"),
    "a number": (b"5", 1, "no field"),
    "the field is missing": (b'{"message": "x"}', 1, "no field 'text' or 'content'"),
    "the field is a list of messages": (b'{"text": [{"role": "user"}]}', 1, "is a list"),
    "the field is an object": (b'{"text": {"a": 1}}', 1, "is an object"),
    "Latin-1": (b'{"text": "n\xe9"}', 0, "not UTF-8 at byte 11"),
    "UTF-16 within": ('{"text": "a"}'.encode("utf-16-le"), 1, "not JSON"),
    "a control character in a string": (b'{"text": "a\x01"}', 1, "not JSON"),
    "what a terminal obeys in a name": (b'{"\x1b]0;owned\x07": 1}', 1, "not JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_broken_record_costs_that_record(tamis: Tamis, name: str, jobs: str) -> None:
    """C1: it is told with its line number, a line of its own comes out, and the records around it are read."""
    bad, code, words = BROKEN[name]
    log(tamis, GOOD + b"\n\n" + bad + b"\r\n" + GOOD)
    done = tamis("parse", "--jsonl", "log.jsonl", "--jobs", jobs)
    first, middle, last = out(done.out)
    assert first["calls"] and last == first
    assert done.code == code
    assert done.err.startswith("tamis: log.jsonl:3: ") and words in done.err and done.err.count("\n") == 1
    assert "\x1b" not in done.err
    if code:
        assert set(middle) == {"line", "error"} and middle["line"] == 3 and words in middle["error"]["message"]


def test_a_flood_of_broken_records_is_told_in_few_lines(tamis: Tamis) -> None:
    """C1: the first of them, and how many there were."""
    log(tamis, b"x\n" * 5000 + GOOD)
    done = tamis("parse", "--jsonl", "log.jsonl")
    assert done.code == 1 and len(out(done.out)) == 5001
    assert done.err.count("\n") == 21 and "4980 more" in done.err and "5000 gave nothing" in done.err


def test_a_record_over_the_limit_costs_that_record(tamis: Tamis) -> None:
    """C1: `--max-record`."""
    log(tamis, GOOD + b"\n" + json.dumps({"text": "x" * 3_000_000}).encode() + b"\n" + GOOD)
    done = tamis("parse", "--jsonl", "log.jsonl", "--max-record", "2M")
    first, middle, last = out(done.out)
    assert done.code == 1 and first == last and middle["error"]["code"] == "tooLarge" and middle["line"] == 2
    assert "log.jsonl:2: the record has 3000012 bytes, more than 2097152" in done.err


def test_records_of_100_megabytes_are_read_in_bounded_memory(tmp_path: Path, is_long: bool) -> None:
    """C1: two of them, which have 10 MB without --long, between small ones; the peak depends on the largest record, not on their number."""
    big = json.dumps({"id": 1, "text": f"{ACTION}\n" + "lorem ipsum " * (8_500_000 if is_long else 850_000)}).encode()
    with (tmp_path / "log.jsonl").open("wb") as stream:
        for line in (GOOD, big, GOOD, big, GOOD):
            stream.write(line + b"\n")
    code = (
        "import json, sys, subprocess, resource\n"
        "status = subprocess.run(sys.argv[1:], stdout=open('out', 'wb')).returncode\n"
        "print(json.dumps([status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))\n"
    )
    command = [*COMMAND, "parse", "--jsonl", "log.jsonl"]
    done = subprocess.run([sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, check=True)
    status, peak = json.loads(done.stdout)
    found = (tmp_path / "out").read_bytes().split(b"\n")
    assert status == 0 and [line.count(b'"toolId":') for line in found] == [1, 1, 1, 1, 1, 0]
    assert len(found[1]) > 10_000_000 and found[1] == found[3]
    assert peak < 80_000 + 6.2 * len(big) / 1024, f"{peak} KiB in one process"


def test_a_million_blank_lines_are_no_record(tamis: Tamis) -> None:
    """C1: blank lines, also with blanks and carriage returns."""
    log(tamis, b"\n \r\n\t\n" * 100_000)
    done = tamis("parse", "--jsonl", "log.jsonl")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_marks_of_encodings_at_the_beginning(tamis: Tamis) -> None:
    """C1: a log that another program wrote as UTF-16, or with a byte order mark."""
    for encoding in ("utf-8-sig", "utf-16"):
        log(tamis, '{"text": "né 说"}\n'.encode(encoding))
        done = tamis("parse", "--jsonl", "log.jsonl")
        assert (done.code, done.err) == (0, "") and out(done.out)[0]["responseText"] == "né 说"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.jsonl"], "cannot read 'nowhere.jsonl': No such file"),
        (["."], "'.' is a folder; name a file"),
        (["log.gz"], "packed with gzip: `zcat log.gz | tamis … -`"),
        (["log.jsonl", "--field", "a..b"], "--field: 'a..b' is no field"),
        (["log.jsonl", "--jobs", "0"], "--jobs is a number"),
        (["log.jsonl", "--max-record", "much"], "'much' is no size"),
        (["log.jsonl", "--repair"], "for one text"),
        (["log.jsonl", "--protocol", "nope"], "nope"),
    ],
)
def test_wrong_usage_is_told(tamis: Tamis, words: list[str], told: str) -> None:
    """C1: exit code 2 and one sentence."""
    log(tamis, GOOD)
    log(tamis, b"\x1f\x8b\x08\x00\x00", "log.gz")
    done = tamis("parse", "--jsonl", *words)
    assert done.code == 2 and told in done.err and not done.out


@pytest.mark.parametrize("option", [["--field", "a"], ["--jobs", "2"], ["--max-record", "1M"]])
def test_options_of_logs_are_refused_without_a_log(tamis: Tamis, option: list[str]) -> None:
    """C1: an option that would do nothing is wrong usage."""
    log(tamis, GOOD)
    done = tamis("parse", "log.jsonl", *option)
    assert done.code == 2 and "only with --jsonl" in done.err


def test_a_file_that_grows_while_it_is_read_ends(tmp_path: Path) -> None:
    """C1: up to the size that it had, and on to the end of that line; what is written later is left."""
    path = tmp_path / "log.jsonl"
    path.write_bytes((GOOD + b"\n") * 20_000 + GOOD[:10])
    code = f"import time\nf = open('log.jsonl', 'ab', buffering=0)\nf.write({GOOD[10:]!r} + b'\\n')\n"
    code += f"while True: f.write({GOOD!r} + b'\\n'); time.sleep(0.0005)"
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    try:
        until(lambda: path.stat().st_size >= 20_100 * (len(GOOD) + 1))
        started = path.stat().st_size
        done = subprocess.run(
            [*COMMAND, "parse", "--jsonl", "log.jsonl"], cwd=tmp_path, capture_output=True, check=False
        )
    finally:
        writer.kill()
        writer.wait()
    assert done.returncode == 0 and done.stderr == b""
    lines = done.stdout.count(b"\n")
    assert started // (len(GOOD) + 1) <= lines and path.stat().st_size > lines * (len(GOOD) + 1)


def test_a_last_line_that_is_still_being_written_is_told(tamis: Tamis) -> None:
    """C1: a log whose writer was stopped within a record."""
    log(tamis, GOOD + b"\n" + GOOD[:20])
    done = tamis("parse", "--jsonl", "log.jsonl")
    assert done.code == 1 and "log.jsonl:2: " in done.err and len(out(done.out)) == 2


def test_a_closed_pipe_ends_the_command_quietly(tmp_path: Path) -> None:
    """C1: `tamis parse --jsonl log | head -1`, with nothing on standard error and no process left."""
    (tmp_path / "log.jsonl").write_bytes((GOOD + b"\n") * 20_000)
    reader = subprocess.Popen(
        [*COMMAND, "parse", "--jsonl", "log.jsonl"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert reader.stdout is not None and reader.stderr is not None
    assert json.loads(reader.stdout.readline())["calls"]
    reader.stdout.close()
    assert reader.stderr.read() == b"" and reader.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(reader.pid, 0)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_command_that_is_ended_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    """C1: workers end with their pipe."""
    reader = subprocess.Popen(
        [*COMMAND, "parse", "--jsonl", "-", "--jobs", "3"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert reader.stdin is not None and reader.stdout is not None
    for _ in range(3):
        reader.stdin.write(GOOD + b"\n")
        reader.stdin.flush()
        assert reader.stdout.readline()
    reader.send_signal(how)
    assert reader.wait() != 0

    def is_gone() -> bool:
        # where this process adopts orphans they are its to bury, and a dead one is no process that lives on
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-reader.pid, os.WNOHANG)
        try:
            os.killpg(reader.pid, 0)
        except ProcessLookupError:
            return True
        return False

    until(is_gone)
    reader.stdin.close()
    reader.stdout.close()


def test_a_record_that_comes_alone_is_answered_at_once(tmp_path: Path) -> None:
    """C1: `tail -f log | tamis parse --jsonl -` waits for no further record."""
    reader = subprocess.Popen(
        [*COMMAND, "parse", "--jsonl", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert reader.stdin is not None and reader.stdout is not None
    for number in range(3):
        reader.stdin.write(json.dumps({"text": str(number)}).encode() + b"\n")
        reader.stdin.flush()
        assert json.loads(reader.stdout.readline())["responseText"] == str(number)
    reader.stdin.close()
    assert reader.wait() == 0
    reader.stdout.close()


def test_memory_does_not_grow_with_the_log(tmp_path: Path, is_long: bool) -> None:
    """C1: the peak of a log of ten times the size is the same."""
    peaks: list[int] = []
    for count in (20_000, 200_000) if is_long else (8_000, 80_000):
        lines = (json.dumps({"text": "x" * 500}) + "\n").encode() * 1000
        reader = subprocess.Popen(
            [*COMMAND, "parse", "--jsonl", "-"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert reader.stdin is not None
        for _ in range(count // 1000):
            reader.stdin.write(lines)
        reader.stdin.close()
        _, status, usage = os.wait4(reader.pid, 0)
        reader.returncode = os.waitstatus_to_exitcode(status)
        assert reader.returncode == 0
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < peaks[0] * 1.3 + 5000, peaks


def test_registered_tools_guide_the_reading_unless_told_not_to(tamis: Tamis) -> None:
    """C1: as in `tamis parse` of one text."""
    manifest = {"toolId": "t:a", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}
    manifest |= {"displayName": "A", "description": "a", "version": "1.0.0"}
    manifest |= {"handler": {"type": "external-script", "scriptPath": "a.py", "language": "python"}}
    (tamis.folder / "a.tool.json").write_text(json.dumps(manifest))
    (tamis.folder / "a.py").write_text("")
    text = "<ACTION><t:a><x>1<!-- c --></x></t:a></ACTION>"
    log(tamis, json.dumps({"text": text}).encode())
    (tamis.folder / "one.txt").write_text(text)
    for words in ([], ["--no-tools"]):
        alone = tamis("parse", "one.txt", *words).json()
        assert out(tamis("parse", "--jsonl", "log.jsonl", *words).out) == [alone]
